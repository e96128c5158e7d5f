/* Answers by idempotency key: rows of frazil.idem. A decision writes its key's row by
 * frazil.remember() in its own statement; here are the looks and what no statement decides. Each
 * call: ST_OK = done runs once, later, on the loop; anything else = never. */
#ifndef STORE_PG_PG_IDEM_H
#define STORE_PG_PG_IDEM_H

#include "proto/commit/sqlport.h"
#include "store/pg/pgcat.h"

/* SQLSTATE of a statement that was undone because its key's row is there. */
#define PG_IDEM_TAKEN "FZ010"

/* A key for a statement of the catalog, and the answer's bytes where the caller knows them. */
struct pg_idem {
	struct sql_idem k;
	struct bytes answer; /* p NULL: the status alone */
};

/* Valid until done returns. err: ST_OK, UNAVAILABLE, COMMIT_UNKNOWN (keep: no answer came). */
struct pg_idem_result {
	struct err err;
	bool found; /* look: the key's row is there; keep: false, the key has another answer */
	struct digest bound;
	int http;
	struct strv location; /* p NULL: none */
	struct bytes answer;  /* p NULL: none */
};
typedef void (*pg_idem_done)(void *ctx, const struct pg_idem_result *res);

/* Keys asked for in one turn share a statement, sent by pgcat_flush. */
void pg_idem_look(struct pgcat *cat, struct uuid key, pg_idem_done done, void *ctx);
/* Writes the answer unless the key has one: location or answer may have p NULL. */
MUST_CHECK enum status pg_idem_keep(struct pgcat *cat, const struct sql_idem *k,
				    struct strv location, struct bytes answer, pg_idem_done done,
				    void *ctx, struct err *err);
/* Forgets up to max rows that are older than the lifetime. */
MUST_CHECK enum status pg_idem_forget(struct pgcat *cat, int64_t lifetime_ms, int64_t max,
				      pg_idem_done done, void *ctx, struct err *err);

/* The last parameters of a deciding statement: key, bound, status; nulls without a key. */
void pg_idem_args(struct pgargs *a, const struct sql_idem *k);
/* The same, and the answer. NULL: no key. */
void pg_idem_args_answer(struct pgargs *a, const struct pg_idem *idem);

/* For pgcat: sends the looks that wait, or ends them. */
void pg_idem_flush(struct pgcat *cat);
void pg_idem_fail(struct pgcat *cat, const struct err *err);

#endif
