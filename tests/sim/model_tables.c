/* Tables: their names and places, an operator's halt, and the statements that make and end them, one
 * or several at one instant. */
#include "tests/sim/model_pg.h"

#include "proto/iceberg/place.h"

/* ------------------------------------------------------------------ an operator's halt */

struct m_halt *pg_halt(struct world *w, struct table_id table)
{
	for (size_t i = 0; i < w->pg.n_halts; i++)
		if (uuid_eq(w->pg.halts[i].table.u, table.u))
			return &w->pg.halts[i];
	return NULL;
}

static void end_halt(struct world *w, struct table_id table)
{
	struct m_halt *h = pg_halt(w, table);
	if (h)
		*h = w->pg.halts[--w->pg.n_halts];
}

void tables_halt(struct world *w, const struct sql_halt *k, struct sql_result *r)
{
	struct pg *p = &w->pg;
	const struct head_row *head = pg_head(w, k->table);
	struct m_halt *h = pg_halt(w, k->table);
	r->verdict = SQL_APPLIED;
	if (k->cause.n == 0) {
		end_halt(w, k->table);
	} else if (!head || head->epoch != k->epoch) {
		r->verdict = SQL_REFUSED;
	} else if (h) {
		h->cause = world_strv(w, k->cause);
	} else {
		p->halts = world_grow(w, p->halts, &p->cap_halts, p->n_halts + 1, sizeof *p->halts);
		p->halts[p->n_halts++] = (struct m_halt){k->table, world_strv(w, k->cause), false};
	}
}

/* ------------------------------------------------------------------ places */

static bool same_place(struct strv a, struct strv b)
{
	return strv_eq(a, b) || place_beneath(a, b) || place_beneath(b, a);
}

struct m_tab *tables_find(struct world *w, struct table_id table)
{
	for (size_t i = 0; i < w->pg.n_tabs; i++)
		if (uuid_eq(w->pg.tabs[i].table.u, table.u))
			return &w->pg.tabs[i];
	return NULL;
}

/* Whether nothing of another table, the one that it replaces left aside, lies in, around or at a new
 * place; otherwise the error that undoes the statement. */
bool tables_places_free(struct world *w, struct table_id table, struct table_id replaced,
			const struct strv *places, size_t n, struct sql_result *r)
{
	const struct m_tab *own = tables_find(w, table);
	for (size_t i = 0; i < n; i++) {
		bool fresh = true;
		for (size_t k = 0; own && k < own->n_places; k++)
			fresh &= !strv_eq(own->places[k], places[i]);
		for (size_t t = 0; fresh && t < w->pg.n_tabs; t++) {
			const struct m_tab *o = &w->pg.tabs[t];
			if (uuid_eq(o->table.u, table.u) || uuid_eq(o->table.u, replaced.u))
				continue;
			for (size_t k = 0; k < o->n_places; k++)
				if (same_place(o->places[k], places[i])) {
					err_set(&r->err, ST_PLACE_TAKEN, "location", "taken");
					return false;
				}
		}
	}
	return true;
}

/* ------------------------------------------------------------------ making and ending */

static void end_table(struct world *w, struct table_id table)
{
	struct pg *p = &w->pg;
	end_halt(w, table);
	for (size_t i = 0; i < p->n_txns; i++) {
		struct m_txn *t = p->txns[i];
		if (uuid_eq(t->r.table.u, table.u) && t->r.state <= TXN_DB_SEALED) {
			t->r.state = TXN_DB_ABORTED;
			t->r.batch_no = TXN_BATCH_GONE;
			txns_queue_staged(w, t->r.txn);
		}
	}
	for (size_t i = 0; i < p->n_objs; i++)
		if (uuid_eq(p->objs[i].table.u, table.u) && p->objs[i].state == OBJ_LEDGER &&
		    p->objs[i].epoch >= 0)
			rows_obj_to(w, &p->objs[i], OBJ_QUEUED);
	for (size_t i = p->n_heads; i-- > 0;)
		if (uuid_eq(p->heads[i].table.u, table.u))
			p->heads[i] = p->heads[--p->n_heads];
	for (size_t i = p->n_tabs; i-- > 0;)
		if (uuid_eq(p->tabs[i].table.u, table.u))
			p->tabs[i] = p->tabs[--p->n_tabs];
}

void tables_drop(struct world *w, const struct sql_table_drop *d, struct sql_result *r)
{
	const struct head_row *h = pg_head(w, d->table);
	r->verdict = SQL_REFUSED;
	r->found = h && h->incarnation == d->incarnation;
	if (!r->found || (d->purge && d->version >= 0 && d->version != h->version))
		return;
	if (model_taken(w, &d->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	model_remember(w, &d->idem, h->metadata_location);
	struct strv root = h->metadata_location;
	while (root.n && !strv_starts(strv_sub(h->metadata_location, root.n, h->metadata_location.n),
				      STRV("/metadata/")))
		root.n--;
	r->head.metadata_location = h->metadata_location;
	end_table(w, d->table);
	for (size_t i = 0; i < d->n_purge_paths; i++)
		if (!pg_obj(w, d->purge_paths[i]))
			rows_obj_add(w, (struct m_obj){.path = d->purge_paths[i],
						  .table = d->table,
						  .state = OBJ_QUEUED});
	for (size_t i = 0; i < w->pg.n_objs; i++) {
		struct m_obj *o = &w->pg.objs[i];
		if (!uuid_eq(o->table.u, d->table.u) || o->epoch != 0 ||
		    (o->state != OBJ_QUEUED && o->state != OBJ_CLAIMED))
			continue;
		bool sure = d->purge_all && strv_starts(o->path, root);
		for (size_t k = 0; k < d->n_purge_paths; k++)
			sure |= strv_eq(d->purge_paths[k], o->path);
		if (sure)
			o->epoch = 1;
	}
	r->verdict = SQL_APPLIED;
}

static const struct m_tab *tab_named(struct world *w, struct strv name)
{
	const struct pg *p = &w->pg;
	for (size_t i = 0; i < p->n_tabs; i++)
		if (strv_eq(p->tabs[i].name, name))
			return &p->tabs[i];
	return NULL;
}

/* Of the uuid, or, of a table made elsewhere, beneath its location. */
static bool comes_back(const struct sql_table_create *k, const struct m_obj *o)
{
	size_t n = k->location.n;
	while (n && k->location.p[n - 1] == '/')
		n--;
	return uuid_eq(o->table.u, k->table.u) ||
	       (k->n_objects == 0 && o->path.n > n && o->path.p[n] == '/' &&
		memcmp(o->path.p, k->location.p, n) == 0);
}

static enum sql_create_verdict judge_create(struct world *w, const struct sql_table_create *k)
{
	const struct m_tab *named = tab_named(w, k->name);
	if (rows_batch_by_id(w, k->row.batch))
		return SQL_CREATE_EXISTS;
	if (named && !k->overwrite)
		return SQL_CREATE_NAME_TABLE;
	if ((!named || !uuid_eq(named->table.u, k->table.u)) && pg_head(w, k->table))
		return SQL_CREATE_UUID_LIVE;
	for (size_t i = 0; i < w->pg.n_objs; i++)
		if (w->pg.objs[i].state == OBJ_CLAIMED && comes_back(k, &w->pg.objs[i]))
			return SQL_CREATE_CONDEMNED;
	return SQL_CREATED;
}

/* After it was judged well. */
static void create(struct world *w, const struct sql_table_create *k, struct sql_result *r)
{
	struct pg *p = &w->pg;
	const struct m_tab *named = tab_named(w, k->name);
	if (!model_listed(w, k->row.batch, k->objects, k->n_objects)) {
		err_set(&r->err, ST_INTERNAL, "", "an object of the batch is not in the ledger");
		return;
	}
	if (model_taken(w, &k->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	model_settle(w, k->row.batch, k->objects, k->n_objects);
	model_remember(w, &k->idem, k->row.metadata_location);
	if (named)
		end_table(w, named->table);
	for (size_t i = 0; i < p->n_objs; i++)
		if (p->objs[i].state == OBJ_QUEUED && comes_back(k, &p->objs[i]))
			p->objs[i].epoch = 0;
	for (size_t i = p->n_objs; k->n_objects == 0 && i-- > 0;)
		if (strv_eq(p->objs[i].path, k->row.metadata_location) &&
		    uuid_eq(p->objs[i].table.u, k->table.u) &&
		    (p->objs[i].state == OBJ_QUEUED || p->objs[i].state == OBJ_LEDGER))
			rows_obj_remove(w, &p->objs[i]);
	struct batch_row b = k->row;
	b.incarnation = ++p->incarnation;
	model_batch_add(w, &b);
	p->tabs = world_grow(w, p->tabs, &p->cap_tabs, p->n_tabs + 1, sizeof *p->tabs);
	p->tabs[p->n_tabs++] = (struct m_tab){k->name, k->table, k->places, k->n_places};
	p->heads = world_grow(w, p->heads, &p->cap_heads, p->n_heads + 1, sizeof *p->heads);
	p->heads[p->n_heads++] = (struct head_row){.table = k->table,
						   .incarnation = b.incarnation,
						   .epoch = 1,
						   .holder = k->holder,
						   .version = b.base_version + 1,
						   .metadata_location = b.metadata_location,
						   .last_batch = 1,
						   .last_seq = k->last_seq,
						   .next_row_id = k->next_row_id,
						   .name = k->name};
	r->created = SQL_CREATED;
	r->head = p->heads[p->n_heads - 1];
	oracle_published(w, &b);
}

void tables_create(struct world *w, const struct sql_table_create *k, struct sql_result *r)
{
	const struct m_tab *named = tab_named(w, k->name);
	r->created = judge_create(w, k);
	if (r->created == SQL_CREATED &&
	    tables_places_free(w, k->table, named ? named->table : k->table, k->places, k->n_places, r))
		create(w, k, r);
}

/* All at one instant, or nothing. */
void tables_commit(struct world *w, const struct sql_tables_commit *k, struct sql_result *r)
{
	r->verdict = SQL_APPLIED;
	for (size_t i = 0; i < k->n_parts + k->n_creates; i++) {
		struct batch_id id = i < k->n_parts ? k->parts[i]->row.batch
						    : k->creates[i - k->n_parts]->row.batch;
		if (rows_batch_by_id(w, id)) {
			r->verdict = model_taken(w, &k->idem) ? SQL_KEY_TAKEN : SQL_APPLIED;
			return;
		}
	}
	bool ok = true;
	for (size_t i = 0; i < k->n_parts && ok; i++) {
		r->at = i;
		ok = model_guard(w, k->parts[i], pg_head(w, k->parts[i]->row.table));
		if (ok && MUTANT("one-by-one") && k->parts[i]->row.batch_no != 0)
			model_publish(w, k->parts[i], r);
	}
	for (size_t i = 0; i < k->n_creates && ok; i++) {
		r->at = k->n_parts + i;
		r->created = judge_create(w, k->creates[i]);
		ok = r->created == SQL_CREATED;
	}
	r->verdict = ok ? SQL_APPLIED : SQL_REFUSED;
	if (!ok)
		return;
	/* An error undoes everything: those of the ledger are looked for first. */
	for (size_t i = 0; i < k->n_parts + k->n_creates; i++) {
		const struct sql_publish *p = i < k->n_parts ? k->parts[i] : NULL;
		const struct sql_table_create *t = p ? NULL : k->creates[i - k->n_parts];
		if (p && p->row.batch_no == 0)
			continue;
		if (!model_listed(w, p ? p->row.batch : t->row.batch, p ? p->objects : t->objects,
			    p ? p->n_objects : t->n_objects)) {
			err_set(&r->err, ST_INTERNAL, "", "an object is not in the ledger");
			return;
		}
		struct table_id id = p ? p->row.table : t->table;
		if (!tables_places_free(w, id, id, p ? p->places : t->places, p ? p->n_places : t->n_places,
				 r))
			return;
	}
	if (model_taken(w, &k->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	model_remember(w, &k->idem, (struct strv){NULL, 0});
	for (size_t i = 0; i < k->n_creates; i++)
		create(w, k->creates[i], r);
	for (size_t i = 0; i < k->n_parts && !MUTANT("one-by-one"); i++)
		if (k->parts[i]->row.batch_no != 0)
			model_publish(w, k->parts[i], r);
	r->verdict = SQL_APPLIED;
	r->at = 0;
}
