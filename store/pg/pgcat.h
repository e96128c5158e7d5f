/* Catalog statements beside the commit log: one asynchronous call, its decoder and its answer. What
 * pg_ns and pg_tabular share. */
#ifndef STORE_PG_PGCAT_H
#define STORE_PG_PGCAT_H

#include "proto/base/arena.h"
#include "store/pg/pgpool.h"

/* A namespace by name, or the whole of a warehouse when n is 0. */
struct pg_path {
	struct strv warehouse;
	const struct strv *levels;
	size_t n;
};

struct pgcat;
struct pgcat_call;

/* Turns the answer into the caller's result and hands it over. err->st: ST_OK with res, UNAVAILABLE
 * (nothing happened), COMMIT_UNKNOWN (a write without answer), KEY_DECIDED (nothing happened: its
 * idempotency key was there) or the server's refusal. */
typedef void (*pgcat_decode)(struct pgcat_call *call, const struct pgres *res, struct err *err);

struct pgcat_call {
	struct pgc_op op;
	struct pgcat *cat;
	struct list node;
	pgcat_decode decode;
	void (*done)(void); /* of the decoder's real type */
	void *ctx;
	bool write;
	enum pgsql stmt;
	int kind;
	size_t limit;
	char name[160];         /* "a.b" or "a.b.t", for messages */
	char name2[160];        /* a rename's destination, or the namespace alone */
	size_t ns_end, ns_end2; /* where the namespace ends in them */
};

struct pgcat *pgcat_new(struct pgpool *pool);
/* After pgpool_free. */
void pgcat_free(struct pgcat *own_cat);
/* room(ctx): names wait, and the statement that they waited for has been answered. Calls pgcat_flush
 * later in the same turn. */
void pgcat_on_room(struct pgcat *cat, void (*room)(void *ctx), void *ctx);
/* Sends what pg_tabular_resolve and pg_idem_look collected; at the end of each turn of the loop. One such statement is
 * under way at a time: who comes meanwhile shares the next. true: some wait for room; flush again
 * every PGCAT_PATIENCE_US: an answer that takes longer holds nobody else up. */
bool pgcat_flush(struct pgcat *cat);
#define PGCAT_PATIENCE_US INT64_C(5000)

/* step(stmt, false) before each statement of pgcat_send is sent, step(stmt, true) when its answer is
 * there: where the fault build may die. */
void pgcat_on_step(struct pgcat *cat, void (*step)(enum pgsql stmt, bool after));

/* Sent since the start. */
int64_t pgcat_statements(const struct pgcat *cat);

/* For pg_ns and pg_tabular */
struct pgcat_call *pgcat_call_new(struct pgcat *cat, pgcat_decode decode, void (*done)(void),
				  void *ctx);
/* Emptied; fill it, then send at once. */
struct pgargs *pgcat_args(struct pgcat *cat);
MUST_CHECK enum status pgcat_send(struct pgcat_call *own_call, enum pgsql stmt, struct err *err);
/* Names of 1 to 1,024 bytes, 2,048 for all levels, UTF-8, no U+0000. */
MUST_CHECK enum status pgcat_check_name(struct strv name, const char *field, struct err *err);
MUST_CHECK enum status pgcat_check_path(struct pg_path path, bool may_be_root, struct err *err);
/* "a.b", or "a.b.name"; cut when it does not fit. */
void pgcat_dotted(char *out, size_t cap, struct pg_path path, const struct strv *name);
/* A text[] column; NULL when it does not decode. */
const struct strv *pgcat_texts(struct pgrow *r, int col, struct arena *arena, size_t *ret_n);

/* A page of names: column 0 of each row that is not null, at most limit of them, and whether there
 * were more. false when they do not decode. */
MUST_CHECK bool pgcat_names(const struct pgres *res, size_t limit, struct arena *a,
			    const struct strv **ret_names, size_t *ret_n, bool *ret_more);

/* Makes an error of the server's FZ004 into PLACE_TAKEN; the detail keeps the two places. */
void pgcat_place_taken(struct err *err);

/* The resolve queue, kept for pg_tabular. */
struct pgcat_resolves {
	struct list names;
	struct list buckets[256]; /* the same names, by hash */
	size_t n;
	int in_flight;	 /* statements */
	int64_t sent_us; /* the last one */
	int64_t sent;	 /* statements */
};
struct pgcat_resolves *pgcat_resolve_queue(struct pgcat *cat);
/* One of its statements has ended. */
void pgcat_resolve_over(struct pgcat *cat);
int64_t pgcat_now_us(void);
/* Keys to look for, kept for pg_idem. */
struct pgcat_looks {
	struct list calls;
	size_t n;
	int64_t sent; /* statements */
};
struct pgcat_looks *pgcat_look_queue(struct pgcat *cat);
struct pgpool *pgcat_pool(struct pgcat *cat);

#endif
