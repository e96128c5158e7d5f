#include "store/pg/pg_idem.h"

#include "store/pg/pg_txn.h"

/* Looks of one statement: kept answers may be large. */
#define LOOK_MAX 64

void pg_idem_args(struct pgargs *a, const struct sql_idem *k)
{
	if (!k || !k->set) {
		for (int i = 0; i < 3; i++)
			pgargs_null(a);
		return;
	}
	pgargs_uuid(a, k->key);
	pgargs_bytes(a, (struct bytes){k->bound.b, sizeof k->bound.b});
	pgargs_i16(a, k->http);
}

void pg_idem_args_answer(struct pgargs *a, const struct pg_idem *idem)
{
	pg_idem_args(a, idem ? &idem->k : NULL);
	if (idem && idem->answer.p)
		pgargs_bytes(a, idem->answer);
	else
		pgargs_null(a);
}

static void finish(struct pgcat_call *call, const struct pg_idem_result *res)
{
	((pg_idem_done)call->done)(call->ctx, res);
}

static void undecodable(struct pg_idem_result *res)
{
	memset(res, 0, sizeof *res);
	err_set(&res->err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
}

/* ------------------------------------------------------------------ looking */

struct looks {
	struct pgc_op op;
	struct list calls;
	size_t n;
};

struct look {
	struct pgcat_call call;
	struct uuid key;
};

/* ord, bound, status, location, answer; nulls without a row */
static void look_decode(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_idem_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st != ST_OK) {
		finish(call, &ret);
		return;
	}
	while (r.row < pgres_rows(res) && (size_t)pgrow_i32(&r, 0) != call->limit)
		r.row++;
	ret.found = r.row < pgres_rows(res) && !pgrow_null(&r, 1);
	if (ret.found) {
		struct bytes bound = pgrow_bytes(&r, 1);
		r.bad |= bound.n != sizeof ret.bound.b;
		if (!r.bad)
			memcpy(ret.bound.b, bound.p, sizeof ret.bound.b);
		ret.http = pgrow_i16(&r, 2);
		if (!pgrow_null(&r, 3))
			ret.location = pgrow_text(&r, 3);
		if (!pgrow_null(&r, 4))
			ret.answer = pgrow_bytes(&r, 4);
	}
	if (r.bad)
		undecodable(&ret);
	finish(call, &ret);
}

static void looks_done(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		       const struct err *err)
{
	struct looks *all = CONTAINER_OF(op, struct looks, op);
	struct list *n;
	while ((n = list_pop_front(&all->calls))) {
		struct pgcat_call *call = LIST_ITEM(n, struct pgcat_call, node);
		struct err why = *err;
		if (end == PGC_LOST)
			err_set(&why, ST_UNAVAILABLE, "", "PostgreSQL did not answer");
		call->decode(call, res, &why);
		base_free(call);
	}
	base_free(all);
}

void pg_idem_flush(struct pgcat *cat)
{
	struct pgcat_looks *queue = pgcat_look_queue(cat);
	while (queue->n) {
		struct looks *all = base_calloc(1, sizeof *all);
		list_init(&all->calls);
		all->op.done = looks_done;
		struct pgargs *a = pgcat_args(cat);
		pgargs_array(a, PGARGS_UUID);
		while (queue->n && all->n < LOOK_MAX) {
			struct list *n = list_pop_front(&queue->calls);
			struct look *l = LIST_ITEM(n, struct look, call.node);
			queue->n--;
			list_push_back(&all->calls, n);
			l->call.limit = ++all->n;
			pgargs_put_uuid(a, l->key);
		}
		pgargs_end(a);
		if (pgpool_send(pgcat_pool(cat), PGPOOL_ANY, PGSQL_IDEM_LOOK, a, &all->op)) {
			queue->sent++;
			continue;
		}
		struct err err = {0};
		err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
		looks_done(&all->op, PGC_REJECTED, NULL, &err);
	}
}

void pg_idem_fail(struct pgcat *cat, const struct err *err)
{
	struct list *n;
	while ((n = list_pop_front(&pgcat_look_queue(cat)->calls))) {
		struct pgcat_call *call = LIST_ITEM(n, struct pgcat_call, node);
		struct err why = *err;
		pgcat_look_queue(cat)->n--;
		call->decode(call, NULL, &why);
		base_free(call);
	}
}

void pg_idem_look(struct pgcat *cat, struct uuid key, pg_idem_done done, void *ctx)
{
	struct look *l = base_calloc(1, sizeof *l);
	l->key = key;
	l->call.cat = cat;
	l->call.decode = look_decode;
	l->call.done = (void (*)(void))done;
	l->call.ctx = ctx;
	list_init(&l->call.node);
	struct pgcat_looks *queue = pgcat_look_queue(cat);
	list_push_back(&queue->calls, &l->call.node);
	queue->n++;
}

/* ------------------------------------------------------------------ keeping, forgetting */

static void keep_decode(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_idem_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK)
		ret.found = pgrow_bool(&r, 0);
	if (r.bad)
		undecodable(&ret);
	finish(call, &ret);
}

enum status pg_idem_keep(struct pgcat *cat, const struct sql_idem *k, struct strv location,
			 struct bytes answer, pg_idem_done done, void *ctx, struct err *err)
{
	enum status st = location.p ? pg_txn_check_paths(&location, 1, err) : ST_OK;
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, keep_decode, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = pgcat_args(cat);
	pg_idem_args(a, k);
	if (location.p)
		pgargs_text(a, location);
	else
		pgargs_null(a);
	if (answer.p)
		pgargs_bytes(a, answer);
	else
		pgargs_null(a);
	return pgcat_send(call, PGSQL_IDEM_KEEP, err);
}

static void forget_decode(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_idem_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK)
		ret.found = pgrow_i64(&r, 0) > 0;
	if (r.bad)
		undecodable(&ret);
	finish(call, &ret);
}

enum status pg_idem_forget(struct pgcat *cat, int64_t lifetime_ms, int64_t max, pg_idem_done done,
			   void *ctx, struct err *err)
{
	struct pgcat_call *call = pgcat_call_new(cat, forget_decode, (void (*)(void))done, ctx);
	struct pgargs *a = pgcat_args(cat);
	pgargs_i64(a, lifetime_ms);
	pgargs_i64(a, max);
	return pgcat_send(call, PGSQL_IDEM_FORGET, err);
}
