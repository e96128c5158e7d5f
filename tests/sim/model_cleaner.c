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

void cleaner_claim(struct world *w, const struct sql_clean_claim *k, struct sql_result *r)
{
	struct pg *p = &w->pg;
	int64_t now = world_pg_ms(w);
	struct strv *v = world_alloc(w, ((size_t)k->max + 1) * sizeof *v);
	bool nil = uuid_is_nil(k->table.u);
	for (size_t i = p->n_objs; i-- > 0;) { /* backwards: a forgotten one is replaced by the last */
		struct m_obj *o = &p->objs[i];
		bool mine = nil ? !pg_head(w, o->table) && o->state != OBJ_STAGED
				: uuid_eq(o->table.u, k->table.u);
		if (!mine)
			continue;
		if (left_over(w, o, k->grace_ms))
			rows_obj_to(w, o, OBJ_QUEUED);
		bool due = (o->state == OBJ_QUEUED && o->since_ms <= now - k->grace_ms) ||
			   (o->state == OBJ_CLAIMED && o->since_ms <= now - k->tombstone_ms);
		if (!due || r->n_paths >= (size_t)k->max)
			continue;
		if (nil && o->epoch == 0) {
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
	r->verdict = SQL_APPLIED;
}
