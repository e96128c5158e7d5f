/* One PostgreSQL connection on the loop: connects, checks the session, prepares its statements and
 * then runs them in pipeline mode, one transaction each. A connection lives once: when it is lost
 * every statement in flight is answered, `down` runs, and its owner makes another one.
 *
 * A statement's transaction commits only when the server reads the sync behind it, so the answer
 * counts only together with that sync's own answer: rows alone prove nothing. */
#ifndef STORE_PG_PGC_H
#define STORE_PG_PGC_H

#include <uv.h>

#include "proto/base/err.h"
#include "proto/base/list.h"
#include "proto/base/uuid.h"
#include "store/pg/pgargs.h"
#include "store/pg/pgrow.h"

struct pgc;

enum pgc_end {
	PGC_ROWS,     /* answered and committed */
	PGC_REJECTED, /* the server answered with an error; nothing was written */
	PGC_LOST,     /* sent, and no full answer: the outcome is unknown */
};

/* Embedded in the caller's object. `done` runs exactly once, on the loop, after pgc_send or its
 * sisters returned true; res is borrowed until it returns and set with PGC_ROWS only. */
struct pgc_op {
	void (*done)(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		     const struct err *err);
	int64_t deadline_us; /* on uv_hrtime() / 1000; 0 = none. When it passes the connection is
			      * given up, for the answer would otherwise come to nobody. */
	char sqlstate[6];    /* with PGC_REJECTED */
	/* pgc's own */
	struct list node;
	struct pgres *rows;
	struct err err;
	bool failed, warned;
};

struct pgc_stmt {
	const char *name;
	const char *sql;
};

struct pgc_conf {
	const char *conninfo; /* libpq's, either form; password from a passfile or service */
	const char *application_name;
	int64_t connect_timeout_us;
	int64_t tcp_user_timeout_ms;
	/* Two statements, each its own transaction, asked first on every connection; a check judges
	 * the row. backend_pid is the process that the server named at the handshake. */
	const char *hello_sql, *setup_sql;
	enum status (*check_hello)(void *ctx, const struct pgres *res, int backend_pid,
				   struct err *err);
	enum status (*check_setup)(void *ctx, const struct pgres *res, int backend_pid,
				   struct err *err);
	const struct pgc_stmt *stmts;
	size_t n_stmts;
	bool pipeline; /* false: an ordinary connection for scripts, no statements */
	void *ctx;
	void (*ready)(void *ctx, struct pgc *c);
	/* The connection is gone and is freed after this returns; runs once, also when it never
	 * became ready and after pgc_close. err tells why. */
	void (*down)(void *ctx, struct pgc *c, const struct err *err);
};

/* conf and what it points at outlive the connection. Never fails: trouble comes as `down`, later.
 */
struct pgc *pgc_open(uv_loop_t *loop, const struct pgc_conf *conf);
/* Statements in flight end as PGC_LOST and `down` runs, both before this returns. */
void pgc_close(struct pgc *own_c);
bool pgc_ready(const struct pgc *c);
size_t pgc_in_flight(const struct pgc *c);

/* false: nothing was sent and `done` will never run. Arguments are copied out before return. */
MUST_CHECK bool pgc_send(struct pgc *c, size_t stmt, const struct pgargs *args, struct pgc_op *op);
/* One statement without parameters, rows in binary. */
MUST_CHECK bool pgc_query(struct pgc *c, const char *sql, struct pgc_op *op);
/* Many statements by the simple protocol, rows dropped; only where pipeline is false and nothing
 * is in flight. */
MUST_CHECK bool pgc_script(struct pgc *c, const char *sql, struct pgc_op *op);

/* ILLEGAL_ARGUMENT when libpq cannot read the connection string, which no waiting would help. */
MUST_CHECK enum status pgc_conninfo_check(const char *conninfo, struct err *err);

#endif
