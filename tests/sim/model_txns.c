/* Rows of transactions: what Begin to End do to them, and what reads tell of them. */
#include "tests/sim/model_pg.h"

#include <inttypes.h>
#include <stdlib.h>

static void result_row(struct sql_item_result *it, const struct m_txn *t)
{
	it->has_row = true;
	it->row = t->r;
}

void txns_queue_staged(struct world *w, struct txn_id id)
{
	for (size_t i = 0; i < w->pg.n_objs; i++)
		if (w->pg.objs[i].state == OBJ_STAGED && uuid_eq(w->pg.objs[i].owner, id.u))
			rows_obj_to(w, &w->pg.objs[i], OBJ_QUEUED);
}

static void extend(struct world *w, struct m_txn *t)
{
	int64_t to = world_pg_ms(w) + t->r.ttl_ms;
	if (t->r.state == TXN_DB_OPEN && t->r.expires_pg_ms < to)
		t->r.expires_pg_ms = to;
}

/* The row of a Begin; NULL with a refusal in *it. */
static struct m_txn *begin_row(struct world *w, const struct txn_row *r, struct sql_item_result *it,
			       bool *ret_fresh)
{
	struct m_txn *t = pg_txn(w, r->txn);
	*ret_fresh = false;
	if (t) {
		if (!uuid_eq(t->r.table.u, r->table.u) || !strv_eq(t->r.principal, r->principal) ||
		    !digest_eq(&t->r.params, &r->params)) {
			it->st = ST_DIGEST_CONFLICT;
			return NULL;
		}
		return t;
	}
	struct head_row *h = pg_head(w, r->table);
	if (!h || h->incarnation != r->incarnation) {
		it->st = ST_TABLE_GONE;
		return NULL;
	}
	if (uuid_v7_ms(r->txn.u) > world_pg_ms(w) + 600000) {
		it->st = ST_CLOCK_SKEW;
		return NULL;
	}
	*ret_fresh = true;
	return rows_txn_add(w, r);
}

void txns_begin(struct world *w, const struct txn_row *r, struct sql_item_result *it)
{
	bool fresh;
	struct m_txn *t = begin_row(w, r, it, &fresh);
	if (!t)
		return;
	if (fresh)
		t->r.state = TXN_DB_OPEN;
	else
		extend(w, t);
	result_row(it, t);
}

/* false: a path is in the way. */
static bool stage_paths(struct world *w, struct m_txn *t, const struct sql_stage_item *s,
			struct sql_item_result *it)
{
	for (size_t i = 0; i < s->n_paths; i++) {
		struct m_obj *o = pg_obj(w, s->paths[i]);
		if (!o || o->state == OBJ_QUEUED)
			continue;
		const struct m_txn *owner = pg_txn(w, (struct txn_id){o->owner});
		bool other = o->state == OBJ_STAGED && !uuid_eq(o->owner, t->r.txn.u) && owner &&
			     owner->r.state <= TXN_DB_SEALED;
		if (o->state == OBJ_CLAIMED || o->state == OBJ_LEDGER || other) {
			it->st = o->state == OBJ_CLAIMED ? ST_PATH_CONDEMNED : ST_DUPLICATE_PATH;
			it->path = o->path;
			return false;
		}
	}
	for (size_t i = 0; i < s->n_paths; i++) {
		struct m_obj *o = pg_obj(w, s->paths[i]);
		if (o)
			rows_obj_remove(w, o);
		rows_obj_add(w, (struct m_obj){.path = s->paths[i],
					  .table = t->r.table,
					  .owner = t->r.txn.u,
					  .state = OBJ_STAGED});
	}
	return true;
}

static const struct fragment_row *frag_of(const struct m_txn *t, const struct fragment_row *f)
{
	for (size_t i = 0; i < t->n_frags; i++)
		if (t->frags[i].attempt == f->attempt &&
		    strv_eq(t->frags[i].fragment_id, f->fragment_id))
			return &t->frags[i];
	return NULL;
}

static void frag_add(struct world *w, struct m_txn *t, const struct fragment_row *f)
{
	t->frags = world_grow(w, t->frags, &t->cap_frags, t->n_frags + 1, sizeof *t->frags);
	t->frags[t->n_frags++] = *f;
}

void txns_stage(struct world *w, const struct sql_stage_item *s, struct sql_item_result *it)
{
	struct m_txn *t = pg_txn(w, s->row.txn);
	if (!t) {
		it->st = ST_TXN_UNKNOWN;
		return;
	}
	const struct fragment_row *f = frag_of(t, &s->row);
	if (t->r.state > TXN_DB_SEALED) {
		it->st = ST_TXN_STATE;
	} else if (f) {
		it->st = digest_eq(&f->digest, &s->row.digest) ? ST_OK : ST_DIGEST_CONFLICT;
		if (it->st == ST_OK)
			extend(w, t);
	} else if (t->r.state == TXN_DB_SEALED) {
		it->st = ST_TXN_STATE;
	} else if (stage_paths(w, t, s, it)) {
		frag_add(w, t, &s->row);
		extend(w, t);
	}
	result_row(it, t);
}

void txns_seal(struct world *w, const struct sql_seal_item *s, struct sql_item_result *it)
{
	struct m_txn *t = pg_txn(w, s->txn);
	if (!t) {
		it->st = ST_TXN_UNKNOWN;
		return;
	}
	if (t->r.has_set_digest) {
		if (!digest_eq(&t->r.set_digest, &s->set_digest))
			it->st = ST_DIGEST_CONFLICT;
	} else if (t->r.state != TXN_DB_OPEN) {
		it->st = ST_TXN_STATE;
	} else {
		extend(w, t);
		t->r.state = TXN_DB_SEALED;
		t->r.has_set_digest = true;
		t->r.set_digest = s->set_digest;
		t->r.seal = s->seal;
		t->r.commit_requested = s->commit_requested;
		for (size_t i = 0; i < s->n_losers; i++) {
			struct m_obj *o = pg_obj(w, s->losers[i]);
			if (o && o->state == OBJ_STAGED && uuid_eq(o->owner, s->txn.u))
				rows_obj_to(w, o, OBJ_QUEUED);
		}
	}
	result_row(it, t);
}

void txns_once(struct world *w, const struct sql_once_item *o, struct sql_item_result *it)
{
	bool fresh;
	struct m_txn *t = begin_row(w, &o->row, it, &fresh);
	if (!t)
		return;
	if (!fresh)
		extend(w, t);
	if (!fresh && t->r.has_set_digest) {
		if (!digest_eq(&t->r.set_digest, &o->row.set_digest))
			it->st = ST_DIGEST_CONFLICT;
		result_row(it, t);
		return;
	}
	if (!fresh && t->r.state != TXN_DB_OPEN) {
		it->st = ST_TXN_STATE;
		result_row(it, t);
		return;
	}
	for (size_t i = 0; i < o->n_stages; i++)
		if (!stage_paths(w, t, &o->stages[i], it)) {
			/* A refused item leaves nothing behind. */
			for (size_t k = w->pg.n_objs; fresh && k-- > 0;)
				if (w->pg.objs[k].state == OBJ_STAGED &&
				    uuid_eq(w->pg.objs[k].owner, t->r.txn.u))
					rows_obj_remove(w, &w->pg.objs[k]);
			if (fresh)
				w->pg.n_txns--;
			else
				result_row(it, t);
			return;
		}
	for (size_t i = 0; i < o->n_stages; i++)
		if (!frag_of(t, &o->stages[i].row))
			frag_add(w, t, &o->stages[i].row);
	t->r.state = TXN_DB_SEALED;
	t->r.commit_requested = true;
	t->r.has_set_digest = true;
	t->r.set_digest = o->row.set_digest;
	t->r.seal = o->row.seal;
	t->r.summary = o->row.summary;
	result_row(it, t);
}

void txns_request(struct world *w, const struct sql_request_item *q,
		       struct sql_item_result *it)
{
	struct m_txn *t = pg_txn(w, q->txn);
	if (!t) {
		it->st = ST_TXN_UNKNOWN;
		return;
	}
	if (t->r.state == TXN_DB_SEALED && !t->r.commit_requested) {
		t->r.commit_requested = true;
		t->r.summary = q->summary;
	}
	if (t->r.state != TXN_DB_SEALED)
		it->st = ST_TXN_STATE;
	result_row(it, t);
}

void txns_end(struct world *w, const struct sql_end_item *e, struct sql_item_result *it)
{
	struct m_txn *t = pg_txn(w, e->txn);
	if (!t) {
		it->st = ST_TXN_UNKNOWN;
		return;
	}
	if (t->r.state == TXN_DB_OPEN &&
	    (e->to == TXN_DB_ABORTED || t->r.expires_pg_ms <= world_pg_ms(w))) {
		t->r.state = e->to;
		txns_queue_staged(w, e->txn);
	}
	if (t->r.state != e->to)
		it->st = ST_TXN_STATE;
	result_row(it, t);
}

void txns_read(struct world *w, const struct m_txn *t, struct sql_item_result *it)
{
	result_row(it, t);
	if (t->r.state <= TXN_DB_SEALED) {
		it->fragments = t->frags;
		it->n_fragments = t->n_frags;
	} else if (t->r.batch_no > 0) {
		it->batch = pg_batch(w, t->r.table, t->batch_incarnation, t->r.batch_no);
	}
}

void txns_queue_read(struct world *w, struct table_id table, struct sql_result *r)
{
	struct sql_item_result *v = world_alloc(w, (w->pg.n_txns + 1) * sizeof *v);
	for (size_t i = 0; i < w->pg.n_txns; i++) {
		const struct m_txn *t = w->pg.txns[i];
		if (t->r.state <= TXN_DB_SEALED && uuid_eq(t->r.table.u, table.u))
			txns_read(w, t, &v[r->n_items++]);
	}
	r->items = v;
	const struct m_halt *h = pg_halt(w, table);
	if (h) {
		r->halted = h->cause;
		r->halted_pg_ms = world_pg_ms(w);
	}
}
