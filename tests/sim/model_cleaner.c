/* The cleaner's statements: what it may delete, and what it has deleted. */
#include "tests/sim/model_pg.h"

#include "proto/iceberg/place.h"

static bool left_over(struct world *w, const struct m_obj *o, int64_t grace_ms)
{
	const struct head_row *h = pg_head(w, o->table);
	if (o->state == OBJ_STAGED) {
		const struct m_txn *t = pg_txn(w, (struct txn_id){o->owner});
		return !t || t->r.state > TXN_DB_SEALED;
	}
	if (o->state != OBJ_LEDGER)
		return false;
	if (o->epoch < 0)
		return o->since_ms <= world_pg_ms(w) - grace_ms;
	return !h || h->epoch > o->epoch;
}

static bool takes(struct world *w, const struct m_obj *o, int64_t grace_ms, int64_t tombstone_ms)
{
	int64_t now = world_pg_ms(w);
	/* Whoever claims, a file that an answer is made from stays. */
	for (size_t i = 0; o->state == OBJ_QUEUED && i < w->pg.n_idems; i++)
		if (strv_eq(w->pg.idems[i].location, o->path))
			return false;
	return (o->state == OBJ_QUEUED && o->since_ms <= now - grace_ms) ||
	       (o->state == OBJ_CLAIMED && o->since_ms <= now - tombstone_ms);
}

void cleaner_due(struct world *w, const struct sql_clean_due *k, struct sql_result *r)
{
	struct table_id *v = world_alloc(w, ((size_t)k->max + 1) * sizeof *v);
	bool *gone = world_alloc(w, ((size_t)k->max + 1) * sizeof *gone);
	struct uuid last = k->after.u;
	r->tables = v;
	r->gone = gone;
	while (r->n_tables < (size_t)k->max) {
		const struct m_obj *first = NULL;
		for (size_t i = 0; i < w->pg.n_objs; i++) {
			const struct m_obj *o = &w->pg.objs[i];
			if (uuid_cmp(o->table.u, last) > 0 &&
			    (!first || uuid_cmp(o->table.u, first->table.u) < 0) &&
			    (left_over(w, o, k->grace_ms) ||
			     takes(w, o, k->grace_ms, k->tombstone_ms)))
				first = o;
		}
		if (!first)
			return;
		last = first->table.u;
		v[r->n_tables] = first->table;
		gone[r->n_tables++] = !pg_head(w, first->table);
	}
	r->next.u = last;
}

void cleaner_claim(struct world *w, const struct sql_clean_claim *k, struct sql_result *r)
{
	struct pg *p = &w->pg;
	struct strv *v = world_alloc(w, ((size_t)k->max + 1) * sizeof *v);
	bool back = k->gone && pg_head(w, k->table); /* since it was chosen */
	for (size_t i = p->n_objs; i-- > 0;) { /* backwards: a forgotten one is replaced by the last */
		struct m_obj *o = &p->objs[i];
		if (!uuid_eq(o->table.u, k->table.u))
			continue;
		if (left_over(w, o, k->grace_ms))
			rows_obj_to(w, o, OBJ_QUEUED);
		if (back || !takes(w, o, k->grace_ms, k->tombstone_ms) ||
		    r->n_paths >= (size_t)k->max)
			continue;
		if (k->gone && o->epoch == 0) {
			rows_obj_remove(w, o);
			continue;
		}
		rows_obj_to(w, o, OBJ_CLAIMED);
		v[r->n_paths++] = o->path;
	}
	r->paths = v;
}

static void claimed_gone(struct world *w, const struct strv *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct m_obj *o = pg_obj(w, v[i]);
		if (o && o->state == OBJ_CLAIMED)
			rows_obj_remove(w, o);
	}
}

void cleaner_done(struct world *w, const struct sql_clean_done *k)
{
	claimed_gone(w, k->deleted, k->n_deleted);
	claimed_gone(w, k->live, k->n_live);
	for (size_t i = 0; i < k->n_unsure; i++) {
		struct m_obj *o = pg_obj(w, k->unsure[i]);
		if (o && o->state == OBJ_CLAIMED)
			rows_obj_to(w, o, OBJ_CLAIMED);
	}
	for (size_t i = 0; i < k->n_back; i++) {
		struct m_obj *o = pg_obj(w, k->back[i]);
		if (o && o->state == OBJ_CLAIMED)
			rows_obj_to(w, o, OBJ_QUEUED);
	}
}

void cleaner_look(struct world *w, const struct sql_clean_look *l, struct sql_result *r)
{
	struct strv *v = world_alloc(w, (l->n_paths + 1) * sizeof *v);
	for (size_t i = 0; i < l->n_paths; i++) {
		bool shared = false;
		for (size_t t = 0; t < w->pg.n_tabs; t++)
			for (size_t k = 0; k < w->pg.tabs[t].n_places; k++)
				shared |= !uuid_eq(w->pg.tabs[t].table.u, l->table.u) &&
					  place_beneath(w->pg.tabs[t].places[k], l->paths[i]);
		if (shared)
			v[r->n_paths++] = l->paths[i];
	}
	r->paths = v;
	r->waits = world_alloc(w, l->n_paths + 1); /* none: all tables are known here */
	r->verdict = SQL_APPLIED;
}
