/* Heartbeat: renews the time to live of many transactions and tells the state of each. */
#include "daemon/commit/state.h"

struct beats {
	struct request *r; /* held */
	struct rpc_lease_state *v;
	size_t n, waiting;
};

struct beat {
	struct beats *all;
	size_t i;
	struct txn *x; /* held; NULL: asked of the rows */
};

static void refuse(struct beats *b, size_t i, enum status st, const char *field, const char *msg)
{
	struct err *kept = arena_calloc(&b->r->arena, 1, sizeof *kept);
	struct rpc_error *e = arena_calloc(&b->r->arena, 1, sizeof *e);
	if (!kept || !e)
		return; /* found by over() */
	err_set(kept, st, field, "%s", msg);
	rpc_error_of(kept, e);
	b->v[i].error = e;
}

static bool shown(const struct rpc_lease *l, const struct digest *token)
{
	return digest_eq_secret(l->lease_token, (struct bytes){token->b, sizeof token->b});
}

static void over(struct core *c, struct beats *b)
{
	struct request *r = b->r;
	struct rpc_heartbeat_reply *out = arena_calloc(&r->arena, 1, sizeof *out);
	if (!r->answered) {
		if (!out || !b->v) {
			request_status(c, r, ST_TOO_LARGE, "items", "the reply exceeds its limit");
		} else {
			out->items = b->v;
			out->n_items = b->n;
			request_rpc(c, r, out);
		}
	}
	core_unkeep(b);
	request_let(r);
}

static void answered(struct core *c, void *ctx, const struct event *ev)
{
	struct beat *k = ctx;
	struct beats *b = k->all;
	struct txn *x = k->x;
	const struct sql_result *q = ev->u.done.sql;
	bool failed = q->lost || core_sql_clean_failure(q);
	const struct txn_row *row = &q->item.row;
	if (x && !x->gone && !failed && q->item.st == ST_OK && q->item.has_row)
		x->row.expires_pg_ms = row->expires_pg_ms;
	if (!b->r->answered) {
		if (failed) {
			refuse(b, k->i, ST_UNAVAILABLE, "", "PostgreSQL did not answer; repeat");
		} else if (q->item.st != ST_OK || !q->item.has_row) {
			refuse(b, k->i, ST_TXN_UNKNOWN, "txn_id", "no transaction has this id");
		} else {
			struct digest token = txn_token(c, row->txn, row->table, row->incarnation);
			bool ours = shown(&b->r->in.u.heartbeat->items[k->i], &token);
			if (ours)
				b->v[k->i].state = finish_state_of(row->state);
			if (ours && !x && row->state == TXN_DB_OPEN)
				refuse(b, k->i, ST_UNAVAILABLE, "",
				       "its table is not loaded here; repeat");
			else if (!ours)
				refuse(b, k->i, ST_TOKEN_MISMATCH, "lease_token",
				       "the token is not this transaction's");
		}
	}
	if (x)
		txn_let(x);
	core_unkeep(k);
	if (--b->waiting == 0)
		over(c, b);
}

static struct effect *ask(struct core *c, struct beats *b, size_t i, struct txn *x)
{
	struct beat *k = core_keep(c, sizeof *k, NULL);
	*k = (struct beat){b, i, x};
	if (x)
		txn_hold(x);
	b->waiting++;
	return core_emit(c, FX_SQL, answered, k);
}

static void one(struct core *c, struct beats *b, size_t i)
{
	const struct rpc_lease *l = &b->r->in.u.heartbeat->items[i];
	struct txn_id id = {l->txn_id};
	struct txn *x = txn_find(c, id);
	b->v[i].txn_id = l->txn_id;
	if (!x || x->state == TXN_NEW) {
		/* Final, or its table is still being loaded: the rows know. */
		struct effect *e = ask(c, b, i, NULL);
		e->u.sql.kind = SQL_TXN_READ;
		e->u.sql.u.txn = id;
	} else if (!shown(l, &x->token)) {
		refuse(b, i, ST_TOKEN_MISMATCH, "lease_token",
		       "the token is not this transaction's");
	} else if (x->state == TXN_OPEN) {
		/* A repeated Begin renews an open row. */
		struct effect *e = ask(c, b, i, x);
		e->u.sql.kind = SQL_TXN_BEGIN;
		e->u.sql.u.begin = &x->row;
	} else {
		/* A sealed one is ended by nobody but the holder of its table, who judges by this
		 * time. After a restart the time in the row counts. */
		b->v[i].state = RPC_STATE_SEALED;
		if (x->row.expires_pg_ms < c->pg_ms + x->row.ttl_ms)
			x->row.expires_pg_ms = c->pg_ms + x->row.ttl_ms;
	}
}

void lease_heartbeat(struct core *c, struct request *r)
{
	const struct rpc_heartbeat *m = r->in.u.heartbeat;
	struct beats *b = core_keep(c, sizeof *b, NULL);
	*b = (struct beats){.r = r, .n = m->n_items, .waiting = 1};
	b->v = arena_calloc(&r->arena, m->n_items ? m->n_items : 1, sizeof *b->v);
	request_hold(r);
	for (size_t i = 0; b->v && i < m->n_items; i++)
		one(c, b, i);
	if (--b->waiting == 0)
		over(c, b);
}
