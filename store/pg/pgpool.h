/* The daemon's connections to PostgreSQL: one control session (pgctl) and N pipelined ones with all
 * statements of sql.tbl prepared. Routes statements, reconnects with back-off, reports health. */
#ifndef STORE_PG_PGPOOL_H
#define STORE_PG_PGPOOL_H

#include "store/pg/pgc.h"

enum pgsql {
#define PGSQL(name, sql) PGSQL_##name,
#include "store/pg/sql.tbl"
#undef PGSQL
	PGSQL_COUNT
};

enum pgpool_state {
	PGPOOL_DOWN,    /* no server, or one that may not be used: the error says why */
	PGPOOL_STANDBY, /* another daemon serves this database */
	PGPOOL_UP,      /* this daemon holds the lock, schema checked, connections ready */
	PGPOOL_FENCED,  /* the lock's session was lost; UP follows when it is ours again. Epochs
			 * decide what may still be published */
};

struct pgpool_conf {
	const char *conninfo;
	int size; /* pipelined connections, 1 to 64 */
	int64_t connect_timeout_ms;
	int64_t statement_timeout_ms; /* on the server; the own deadline is a little later */
	int64_t lock_timeout_ms;
	int64_t tcp_user_timeout_ms;
	bool allow_unsafe, allow_proxy; /* see pgcheck.h */
	bool exclusive;                 /* one daemon a database; false only for tools */
	void *ctx;
	/* On every change of state, and for PGPOOL_DOWN again when the cause changed. */
	void (*changed)(void *ctx, enum pgpool_state state, const struct err *err);
};

struct pgpool;

/* Strings are copied. */
struct pgpool *pgpool_new(uv_loop_t *loop, const struct pgpool_conf *conf);
/* Statements in flight end as PGC_LOST before this returns; memory goes with the loop's next
 * turns. */
void pgpool_free(struct pgpool *own_pool);
enum pgpool_state pgpool_state(const struct pgpool *pool);
bool pgpool_unsafe(const struct pgpool *pool);
int pgpool_size(const struct pgpool *pool);
int pgpool_ready(const struct pgpool *pool);

#define PGPOOL_ANY UINT64_MAX
/* One statement on the connection that `route` (a hash: the same value, the same connection, in the
 * order sent) names, or on the least busy one. Sets the op's deadline when it has none. false:
 * nothing was sent and op->done will not run. */
MUST_CHECK bool pgpool_send(struct pgpool *pool, uint64_t route, enum pgsql stmt,
			    const struct pgargs *args, struct pgc_op *op);

#endif
