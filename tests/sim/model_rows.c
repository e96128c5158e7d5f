/* Rows of the model: finding, adding, and copies that outlive the core that asked. */
#include "tests/sim/model_pg.h"

#include <stdlib.h>

struct head_row *pg_head(struct world *w, struct table_id table)
{
	for (size_t i = 0; i < w->pg.n_heads; i++)
		if (uuid_eq(w->pg.heads[i].table.u, table.u))
			return &w->pg.heads[i];
	return NULL;
}

struct m_txn *pg_txn(struct world *w, struct txn_id id)
{
	for (size_t i = 0; i < w->pg.n_txns; i++)
		if (uuid_eq(w->pg.txns[i]->r.txn.u, id.u))
			return w->pg.txns[i];
	return NULL;
}

struct batch_row *pg_batch(struct world *w, struct table_id table, int64_t incarnation,
			   int64_t batch_no)
{
	for (size_t i = 0; i < w->pg.n_batches; i++) {
		struct batch_row *b = w->pg.batches[i];
		if (b->batch_no == batch_no && b->incarnation == incarnation &&
		    uuid_eq(b->table.u, table.u))
			return b;
	}
	return NULL;
}

struct batch_row *rows_batch_by_id(struct world *w, struct batch_id id)
{
	for (size_t i = 0; i < w->pg.n_batches; i++)
		if (uuid_eq(w->pg.batches[i]->batch.u, id.u))
			return w->pg.batches[i];
	return NULL;
}

struct m_obj *pg_obj(struct world *w, struct strv path)
{
	for (size_t i = w->pg.n_objs; i-- > 0;)
		if (strv_eq(w->pg.objs[i].path, path))
			return &w->pg.objs[i];
	return NULL;
}

void rows_obj_remove(struct world *w, struct m_obj *o)
{
	*o = w->pg.objs[--w->pg.n_objs];
}

void rows_obj_to(struct world *w, struct m_obj *o, enum obj_state to)
{
	o->state = to;
	o->since_ms = world_pg_ms(w);
}

void rows_obj_add(struct world *w, struct m_obj o)
{
	struct pg *p = &w->pg;
	o.since_ms = world_pg_ms(w);
	p->objs = world_grow(w, p->objs, &p->cap_objs, p->n_objs + 1, sizeof *p->objs);
	p->objs[p->n_objs++] = o;
}

struct m_txn *rows_txn_add(struct world *w, const struct txn_row *row)
{
	struct pg *p = &w->pg;
	struct m_txn *t = world_alloc(w, sizeof *t);
	t->r = *row;
	t->r.created_pg_ms = world_pg_ms(w);
	t->r.expires_pg_ms = t->r.created_pg_ms + t->r.ttl_ms;
	p->txns = world_grow(w, p->txns, &p->cap_txns, p->n_txns + 1, sizeof *p->txns);
	p->txns[p->n_txns++] = t;
	return t;
}

/* ------------------------------------------------------------------ copies of what was sent */

static struct strv *copy_paths(struct world *w, const struct strv *v, size_t n)
{
	struct strv *out = world_alloc(w, (n ? n : 1) * sizeof *out);
	for (size_t i = 0; i < n; i++)
		out[i] = world_strv(w, v[i]);
	return out;
}

static void copy_txn_row(struct world *w, struct txn_row *r)
{
	r->ref = world_strv(w, r->ref);
	r->principal = world_strv(w, r->principal);
	r->begin = world_copy(w, r->begin);
	r->seal = world_copy(w, r->seal);
	r->summary = world_copy(w, r->summary);
}

static void copy_stage(struct world *w, struct sql_stage_item *s)
{
	s->row.fragment_id = world_strv(w, s->row.fragment_id);
	s->row.payload = world_copy(w, s->row.payload);
	s->paths = copy_paths(w, s->paths, s->n_paths);
}

static void copy_batch(struct world *w, struct batch_row *b)
{
	void *v = world_alloc(w, (b->n_txns + 1) * sizeof *b->txns);
	if (b->n_txns)
		memcpy(v, b->txns, b->n_txns * sizeof *b->txns);
	b->txns = v;
	v = world_alloc(w, b->n_txns + 1);
	if (b->n_txns)
		memcpy(v, b->txn_states, b->n_txns);
	b->txn_states = v;
	v = world_alloc(w, (b->n_snapshots + 1) * sizeof *b->snapshots);
	if (b->n_snapshots)
		memcpy(v, b->snapshots, b->n_snapshots * sizeof *b->snapshots);
	b->snapshots = v;
	b->outcomes = world_copy(w, b->outcomes);
	b->metadata_location = world_strv(w, b->metadata_location);
}

static struct sql_publish *copy_publish(struct world *w, const struct sql_publish *from)
{
	struct sql_publish *p = world_alloc(w, sizeof *p);
	*p = *from;
	copy_batch(w, &p->row);
	p->objects = copy_paths(w, p->objects, p->n_objects);
	p->garbage = copy_paths(w, p->garbage, p->n_garbage);
	p->places = copy_paths(w, p->places, p->n_places);
	return p;
}

static struct sql_table_create *copy_create(struct world *w, const struct sql_table_create *from)
{
	struct sql_table_create *k = world_alloc(w, sizeof *k);
	*k = *from;
	copy_batch(w, &k->row);
	k->name = world_strv(w, k->name);
	k->objects = copy_paths(w, k->objects, k->n_objects);
	k->places = copy_paths(w, k->places, k->n_places);
	return k;
}

void rows_copy_effect(struct world *w, struct sql_effect *e)
{
	switch (e->kind) {
	case SQL_TXN_BEGIN: {
		struct txn_row *r = world_alloc(w, sizeof *r);
		*r = *e->u.begin;
		copy_txn_row(w, r);
		e->u.begin = r;
		return;
	}
	case SQL_TXN_STAGE: {
		struct sql_stage_item *s = world_alloc(w, sizeof *s);
		*s = *e->u.stage;
		copy_stage(w, s);
		e->u.stage = s;
		return;
	}
	case SQL_TXN_SEAL: {
		struct sql_seal_item *s = world_alloc(w, sizeof *s);
		*s = *e->u.seal;
		s->seal = world_copy(w, s->seal);
		s->summary = world_copy(w, s->summary);
		s->losers = copy_paths(w, s->losers, s->n_losers);
		e->u.seal = s;
		return;
	}
	case SQL_TXN_ONCE: {
		struct sql_once_item *o = world_alloc(w, sizeof *o);
		*o = *e->u.once;
		copy_txn_row(w, &o->row);
		struct sql_stage_item *v = world_alloc(w, (o->n_stages + 1) * sizeof *v);
		for (size_t i = 0; i < o->n_stages; i++) {
			v[i] = o->stages[i];
			copy_stage(w, &v[i]);
		}
		o->stages = v;
		e->u.once = o;
		return;
	}
	case SQL_TXN_REQUEST: {
		struct sql_request_item *r = world_alloc(w, sizeof *r);
		*r = *e->u.request;
		r->summary = world_copy(w, r->summary);
		e->u.request = r;
		return;
	}
	case SQL_LEDGER:
		e->u.ledger.paths = copy_paths(w, e->u.ledger.paths, e->u.ledger.n_paths);
		return;
	case SQL_PUBLISH:
		e->u.publish = copy_publish(w, e->u.publish);
		return;
	case SQL_TABLE_CREATE:
		e->u.create = copy_create(w, e->u.create);
		return;
	case SQL_TABLES_COMMIT: {
		struct sql_tables_commit *k = world_alloc(w, sizeof *k);
		const struct sql_publish **parts;
		const struct sql_table_create **creates;
		*k = *e->u.tables;
		parts = world_alloc(w, (k->n_parts + 1) * sizeof(void *));
		creates = world_alloc(w, (k->n_creates + 1) * sizeof(void *));
		for (size_t i = 0; i < k->n_parts; i++)
			parts[i] = copy_publish(w, k->parts[i]);
		for (size_t i = 0; i < k->n_creates; i++)
			creates[i] = copy_create(w, k->creates[i]);
		k->parts = parts;
		k->creates = creates;
		e->u.tables = k;
		return;
	}
	case SQL_TABLE_DROP:
		e->u.drop.purge_paths =
			copy_paths(w, e->u.drop.purge_paths, e->u.drop.n_purge_paths);
		return;
	case SQL_CLEAN_LOOK:
		e->u.clean_look.paths =
			copy_paths(w, e->u.clean_look.paths, e->u.clean_look.n_paths);
		return;
	case SQL_CLEAN_DONE: {
		struct sql_clean_done *k = world_alloc(w, sizeof *k);
		*k = *e->u.clean_done;
		k->deleted = copy_paths(w, k->deleted, k->n_deleted);
		k->live = copy_paths(w, k->live, k->n_live);
		k->unsure = copy_paths(w, k->unsure, k->n_unsure);
		k->back = copy_paths(w, k->back, k->n_back);
		e->u.clean_done = k;
		return;
	}
	case SQL_HALT:
		e->u.halt.cause = world_strv(w, e->u.halt.cause);
		return;
	default:
		return;
	}
}
