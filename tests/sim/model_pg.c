/* What a statement does: every effect judges its guard and writes at one instant, as the semantics in
 * proto/commit/sqlport.h say. */
#include "tests/sim/model_pg.h"

#include <inttypes.h>
#include <stdlib.h>

#include "proto/iceberg/place.h"

void (*pg_executed)(struct world *w, const struct flight *fl);

static const char *const kind_names[] = {
	"recover",      "head_read",  "head_bump",   "queue_read", "batch_look",
	"txn_begin",    "txn_stage",  "txn_seal",    "txn_once",   "txn_request",
	"txn_end",      "txn_read",   "ledger",      "publish",    "unledger",
	"table_create", "tables_commit", "table_drop", "clean_claim", "clean_look", "clean_done",
	"horizon",      "halt",
};

const char *model_kind_name(enum sql_kind kind)
{
	return kind_names[kind];
}

/* ------------------------------------------------------------------ transactions */

static void result_row(struct sql_item_result *it, const struct m_txn *t)
{
	it->has_row = true;
	it->row = t->r;
}

void model_queue_staged(struct world *w, struct txn_id id)
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

static void do_begin(struct world *w, const struct txn_row *r, struct sql_item_result *it)
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

static void do_stage(struct world *w, const struct sql_stage_item *s, struct sql_item_result *it)
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

static void do_seal(struct world *w, const struct sql_seal_item *s, struct sql_item_result *it)
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

static void do_once(struct world *w, const struct sql_once_item *o, struct sql_item_result *it)
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

static void do_request(struct world *w, const struct sql_request_item *q,
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

static void do_end(struct world *w, const struct sql_end_item *e, struct sql_item_result *it)
{
	struct m_txn *t = pg_txn(w, e->txn);
	if (!t) {
		it->st = ST_TXN_UNKNOWN;
		return;
	}
	if (t->r.state == TXN_DB_OPEN &&
	    (e->to == TXN_DB_ABORTED || t->r.expires_pg_ms <= world_pg_ms(w))) {
		t->r.state = e->to;
		model_queue_staged(w, e->txn);
	}
	if (t->r.state != e->to)
		it->st = ST_TXN_STATE;
	result_row(it, t);
}

static void fill_read(struct world *w, const struct m_txn *t, struct sql_item_result *it)
{
	result_row(it, t);
	if (t->r.state <= TXN_DB_SEALED) {
		it->fragments = t->frags;
		it->n_fragments = t->n_frags;
	} else if (t->r.batch_no > 0) {
		it->batch = pg_batch(w, t->r.table, t->batch_incarnation, t->r.batch_no);
	}
}

static void do_queue_read(struct world *w, struct table_id table, struct sql_result *r)
{
	struct sql_item_result *v = world_alloc(w, (w->pg.n_txns + 1) * sizeof *v);
	for (size_t i = 0; i < w->pg.n_txns; i++) {
		const struct m_txn *t = w->pg.txns[i];
		if (t->r.state <= TXN_DB_SEALED && uuid_eq(t->r.table.u, table.u))
			fill_read(w, t, &v[r->n_items++]);
	}
	r->items = v;
	const struct m_halt *h = pg_halt(w, table);
	if (h) {
		r->halted = h->cause;
		r->halted_pg_ms = world_pg_ms(w);
	}
}

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

static void do_halt(struct world *w, const struct sql_halt *k, struct sql_result *r)
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

static struct m_tab *tab_of(struct world *w, struct table_id table)
{
	for (size_t i = 0; i < w->pg.n_tabs; i++)
		if (uuid_eq(w->pg.tabs[i].table.u, table.u))
			return &w->pg.tabs[i];
	return NULL;
}

/* Whether nothing of another table, the one that it replaces left aside, lies in, around or at a new
 * place; otherwise the error that undoes the statement. */
static bool places_free(struct world *w, struct table_id table, struct table_id replaced,
			const struct strv *places, size_t n, struct sql_result *r)
{
	const struct m_tab *own = tab_of(w, table);
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

static void do_look(struct world *w, const struct sql_clean_look *l, struct sql_result *r)
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

/* ------------------------------------------------------------------ the decision */

static bool guard(struct world *w, const struct sql_publish *p, struct head_row *h)
{
	const struct batch_row *b = &p->row;
	if (!h || h->incarnation != b->incarnation)
		return false;
	if (h->epoch != b->epoch && !MUTANT("guard-epoch"))
		return false;
	if (h->version != b->base_version && !MUTANT("guard-version"))
		return false;
	for (size_t i = 0; i < b->n_txns; i++) {
		const struct m_txn *t = pg_txn(w, b->txns[i]);
		if (MUTANT("guard-sealed"))
			continue;
		if (!t || t->r.state != TXN_DB_SEALED)
			return false;
	}
	return true;
}

/* Whether all objects of the batch are in the ledger; otherwise its statement is undone. */
static bool listed(struct world *w, struct batch_id batch, const struct strv *objects, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct m_obj *o = pg_obj(w, objects[i]);
		if (!o || o->state != OBJ_LEDGER || !uuid_eq(o->owner, batch.u))
			return false;
	}
	return true;
}

static void settle(struct world *w, struct batch_id batch, const struct strv *objects, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rows_obj_remove(w, pg_obj(w, objects[i]));
	for (size_t i = 0; i < w->pg.n_objs; i++)
		if (w->pg.objs[i].state == OBJ_LEDGER && uuid_eq(w->pg.objs[i].owner, batch.u))
			rows_obj_to(w, &w->pg.objs[i], OBJ_QUEUED);
}

/* ------------------------------------------------------------------ idempotency keys */

static struct m_idem *idem_find(struct world *w, struct uuid key)
{
	for (size_t i = 0; i < w->pg.n_idems; i++)
		if (uuid_eq(w->pg.idems[i].key, key))
			return &w->pg.idems[i];
	return NULL;
}

const struct m_idem *world_kept(struct world *w, struct uuid key)
{
	const struct m_idem *m = idem_find(w, key);
	return m && m->there ? m : NULL;
}

void world_keep(struct world *w, struct uuid key, int16_t http)
{
	struct pg *p = &w->pg;
	if (idem_find(w, key))
		world_fail(w, "a request with a key was done, and its answer is not kept");
	p->idems = world_grow(w, p->idems, &p->cap_idems, p->n_idems + 1, sizeof *p->idems);
	p->idems[p->n_idems++] = (struct m_idem){key, http, true};
}

struct sql_idem world_idem(struct world *w, int16_t http)
{
	uint8_t r[10];
	world_bytes(w, r, sizeof r);
	struct uuid key = uuid_v7(world_pg_ms(w), r);
	return (struct sql_idem){.set = true,
				 .file = http == 200,
				 .http = http,
				 .key = key,
				 .bound = digest_sha256((struct bytes){key.b, sizeof key.b})};
}

static bool taken(struct world *w, const struct sql_idem *k)
{
	return k->set && world_kept(w, k->key);
}

struct late_row {
	struct uuid key;
	uint32_t gen;
};

/* The planted error: a second statement, which a crash in between forgets. */
static void remember_late(struct world *w, void *arg)
{
	const struct late_row *l = arg;
	struct m_idem *m = idem_find(w, l->key);
	if (m && w->core && w->gen == l->gen)
		m->there = true;
}

static void remember(struct world *w, const struct sql_idem *k)
{
	if (!k->set)
		return;
	if (idem_find(w, k->key))
		world_fail(w, "a request with a key was done again");
	world_keep(w, k->key, k->http);
	if (MUTANT("key-in-second-statement")) {
		struct late_row *l = world_alloc(w, sizeof *l);
		*l = (struct late_row){k->key, w->gen};
		w->pg.idems[w->pg.n_idems - 1].there = false;
		world_at(w, 600000, remember_late, l);
	}
}

static void batch_add(struct world *w, const struct batch_row *row)
{
	struct pg *p = &w->pg;
	struct batch_row *b = world_alloc(w, sizeof *b);
	*b = *row;
	b->created_pg_ms = world_pg_ms(w);
	p->batches =
		world_grow(w, p->batches, &p->cap_batches, p->n_batches + 1, sizeof *p->batches);
	p->batches[p->n_batches++] = b;
}

/* After its guard held. */
static void publish(struct world *w, const struct sql_publish *p, struct sql_result *r)
{
	struct head_row *h = pg_head(w, p->row.table);
	if (pg_batch(w, p->row.table, p->row.incarnation, p->row.batch_no) ||
	    rows_batch_by_id(w, p->row.batch)) {
		if (!MUTANT("guard-version"))
			world_fail(w, "batch number %" PRId64 " is used twice", p->row.batch_no);
		return;
	}
	if (!listed(w, p->row.batch, p->objects, p->n_objects)) {
		err_set(&r->err, ST_INTERNAL, "", "an object of the batch is not in the ledger");
		return;
	}
	if (taken(w, &p->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	if (!places_free(w, p->row.table, p->row.table, p->places, p->n_places, r))
		return;
	struct m_tab *tab = tab_of(w, p->row.table);
	if (tab && p->n_places) {
		tab->places = p->places;
		tab->n_places = p->n_places;
	}
	settle(w, p->row.batch, p->objects, p->n_objects);
	remember(w, &p->idem);
	const struct m_halt *halt = pg_halt(w, p->row.table);
	if (halt && halt->confirmed)
		world_fail(w, "batch %" PRId64 " of a halted table", p->row.batch_no);
	h->version++;
	h->metadata_location = p->row.metadata_location;
	h->last_batch = p->row.batch_no;
	h->last_seq = p->last_seq;
	h->next_row_id = p->next_row_id;
	for (size_t i = 0; i < p->row.n_txns; i++) {
		struct m_txn *t = pg_txn(w, p->row.txns[i]);
		if (!t)
			continue;
		t->r.state = p->row.txn_states[i];
		t->r.batch_no = p->row.batch_no;
		t->batch_incarnation = p->row.incarnation;
		if (t->r.state != TXN_DB_COMMITTED) {
			model_queue_staged(w, t->r.txn);
			continue;
		}
		for (size_t k = w->pg.n_objs; k-- > 0;)
			if (w->pg.objs[k].state == OBJ_STAGED &&
			    uuid_eq(w->pg.objs[k].owner, t->r.txn.u))
				rows_obj_remove(w, &w->pg.objs[k]);
	}
	batch_add(w, &p->row);
	for (size_t i = 0; i < p->n_garbage; i++)
		if (!pg_obj(w, p->garbage[i]))
			rows_obj_add(w, (struct m_obj){.path = p->garbage[i],
						  .table = p->row.table,
						  .state = OBJ_QUEUED});
	r->verdict = SQL_APPLIED;
	oracle_published(w, &p->row);
}

static void do_publish(struct world *w, const struct sql_publish *p, struct sql_result *r)
{
	r->verdict = SQL_REFUSED;
	if (guard(w, p, pg_head(w, p->row.table)))
		publish(w, p, r);
}

static void do_ledger(struct world *w, const struct sql_ledger *l, bool late, struct sql_result *r)
{
	const struct head_row *h = pg_head(w, l->table);
	r->verdict = SQL_REFUSED;
	if (l->epoch >= 0 && (!h || h->incarnation != l->incarnation || h->epoch != l->epoch))
		return;
	/* A statement that was lost and repeated comes after the publish. */
	if (rows_batch_by_id(w, l->batch)) {
		err_set(&r->err, ST_INTERNAL, "", "the batch is published");
		return;
	}
	for (size_t i = 0; i < l->n_paths; i++) {
		struct m_obj *o = pg_obj(w, l->paths[i]);
		if (o && (o->state != OBJ_LEDGER || !uuid_eq(o->owner, l->batch.u))) {
			err_set(&r->err, ST_INTERNAL, "", "a new object name is in use");
			return;
		}
	}
	for (size_t i = 0; i < l->n_paths; i++)
		if (!pg_obj(w, l->paths[i]))
			rows_obj_add(w, (struct m_obj){.path = l->paths[i],
						  .table = l->table,
						  .owner = l->batch.u,
						  .epoch = l->epoch,
						  .late = late,
						  .state = OBJ_LEDGER});
	r->verdict = SQL_APPLIED;
}

static void do_unledger(struct world *w, const struct sql_unledger *u, struct sql_result *r)
{
	r->verdict = SQL_REFUSED;
	if (rows_batch_by_id(w, u->batch))
		return;
	for (size_t i = 0; i < w->pg.n_objs; i++) {
		struct m_obj *o = &w->pg.objs[i];
		if (o->state == OBJ_LEDGER && uuid_eq(o->owner, u->batch.u) && o->epoch <= u->epoch)
			rows_obj_to(w, o, OBJ_QUEUED);
	}
	r->verdict = SQL_APPLIED;
}

static void do_bump(struct world *w, const struct sql_head_bump *b, struct sql_result *r)
{
	struct head_row *h = pg_head(w, b->table);
	r->verdict = SQL_REFUSED;
	if (!h || h->incarnation != b->incarnation ||
	    (h->epoch != b->epoch_read))
		return;
	h->epoch++;
	h->holder = b->holder;
	r->head = *h;
	r->verdict = SQL_APPLIED;
}

/* ------------------------------------------------------------------ tables */

static void end_table(struct world *w, struct table_id table)
{
	struct pg *p = &w->pg;
	end_halt(w, table);
	for (size_t i = 0; i < p->n_txns; i++) {
		struct m_txn *t = p->txns[i];
		if (uuid_eq(t->r.table.u, table.u) && t->r.state <= TXN_DB_SEALED) {
			t->r.state = TXN_DB_ABORTED;
			t->r.batch_no = TXN_BATCH_GONE;
			model_queue_staged(w, t->r.txn);
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

static void do_drop(struct world *w, const struct sql_table_drop *d, struct sql_result *r)
{
	const struct head_row *h = pg_head(w, d->table);
	r->verdict = SQL_REFUSED;
	if (!h || h->incarnation != d->incarnation)
		return;
	if (taken(w, &d->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	remember(w, &d->idem);
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

static enum sql_create_verdict judge_create(struct world *w, const struct sql_table_create *k)
{
	const struct m_tab *named = tab_named(w, k->name);
	if (rows_batch_by_id(w, k->row.batch))
		return SQL_CREATE_EXISTS;
	if (named && !k->overwrite)
		return SQL_CREATE_NAME_TABLE;
	if ((!named || !uuid_eq(named->table.u, k->table.u)) && pg_head(w, k->table))
		return SQL_CREATE_UUID_LIVE;
	return SQL_CREATED;
}

/* After it was judged well. */
static void create(struct world *w, const struct sql_table_create *k, struct sql_result *r)
{
	struct pg *p = &w->pg;
	const struct m_tab *named = tab_named(w, k->name);
	if (!listed(w, k->row.batch, k->objects, k->n_objects)) {
		err_set(&r->err, ST_INTERNAL, "", "an object of the batch is not in the ledger");
		return;
	}
	if (taken(w, &k->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	settle(w, k->row.batch, k->objects, k->n_objects);
	remember(w, &k->idem);
	if (named)
		end_table(w, named->table);
	struct batch_row b = k->row;
	b.incarnation = ++p->incarnation;
	batch_add(w, &b);
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

static void do_create(struct world *w, const struct sql_table_create *k, struct sql_result *r)
{
	const struct m_tab *named = tab_named(w, k->name);
	r->created = judge_create(w, k);
	if (r->created == SQL_CREATED &&
	    places_free(w, k->table, named ? named->table : k->table, k->places, k->n_places, r))
		create(w, k, r);
}

/* All at one instant, or nothing. */
static void do_tables(struct world *w, const struct sql_tables_commit *k, struct sql_result *r)
{
	r->verdict = SQL_APPLIED;
	for (size_t i = 0; i < k->n_parts + k->n_creates; i++) {
		struct batch_id id = i < k->n_parts ? k->parts[i]->row.batch
						    : k->creates[i - k->n_parts]->row.batch;
		if (rows_batch_by_id(w, id)) {
			r->verdict = taken(w, &k->idem) ? SQL_KEY_TAKEN : SQL_APPLIED;
			return;
		}
	}
	bool ok = true;
	for (size_t i = 0; i < k->n_parts && ok; i++) {
		r->at = i;
		ok = guard(w, k->parts[i], pg_head(w, k->parts[i]->row.table));
		if (ok && MUTANT("one-by-one") && k->parts[i]->row.batch_no != 0)
			publish(w, k->parts[i], r);
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
		if (!listed(w, p ? p->row.batch : t->row.batch, p ? p->objects : t->objects,
			    p ? p->n_objects : t->n_objects)) {
			err_set(&r->err, ST_INTERNAL, "", "an object is not in the ledger");
			return;
		}
		struct table_id id = p ? p->row.table : t->table;
		if (!places_free(w, id, id, p ? p->places : t->places, p ? p->n_places : t->n_places,
				 r))
			return;
	}
	if (taken(w, &k->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	remember(w, &k->idem);
	for (size_t i = 0; i < k->n_creates; i++)
		create(w, k->creates[i], r);
	for (size_t i = 0; i < k->n_parts && !MUTANT("one-by-one"); i++)
		if (k->parts[i]->row.batch_no != 0)
			publish(w, k->parts[i], r);
	r->verdict = SQL_APPLIED;
	r->at = 0;
}

static void do_recover(struct world *w, struct sql_result *r)
{
	struct pg *p = &w->pg;
	struct table_id *v = world_alloc(w, (p->n_heads + 1) * sizeof *v);
	for (size_t i = 0; i < p->n_heads; i++) {
		bool any = false;
		for (size_t k = 0; k < p->n_txns; k++)
			any |= p->txns[k]->r.state <= TXN_DB_SEALED &&
			       uuid_eq(p->txns[k]->r.table.u, p->heads[i].table.u);
		if (any || pg_halt(w, p->heads[i].table))
			v[r->n_tables++] = p->heads[i].table;
	}
	r->tables = v;
	r->secret = p->secret;
}

/* ------------------------------------------------------------------ the cleaner */

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

static void do_claim(struct world *w, const struct sql_clean_claim *k, struct sql_result *r)
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

static void do_cleaned(struct world *w, const struct sql_clean_done *k)
{
	claimed_gone(w, k->deleted, k->n_deleted);
	claimed_gone(w, k->live, k->n_live);
	for (size_t i = 0; i < k->n_unsure; i++) {
		struct m_obj *o = pg_obj(w, k->unsure[i]);
		if (o && o->state == OBJ_CLAIMED)
			rows_obj_to(w, o, OBJ_CLAIMED);
	}
}

/* ------------------------------------------------------------------ statements */

void model_execute(struct world *w, struct flight *fl)
{
	const struct sql_effect *e = &fl->e.u.sql;
	struct sql_result *r = &fl->res;
	r->kind = e->kind;
	r->sent = true;
	fl->executed = true;
	switch (e->kind) {
	case SQL_RECOVER:
		do_recover(w, r);
		break;
	case SQL_HEAD_READ: {
		const struct head_row *h = pg_head(w, e->u.table);
		r->found = h != NULL;
		if (h)
			r->head = *h;
		break;
	}
	case SQL_HEAD_BUMP:
		do_bump(w, &e->u.bump, r);
		break;
	case SQL_QUEUE_READ:
		do_queue_read(w, e->u.table, r);
		break;
	case SQL_BATCH_LOOK:
		r->batch = rows_batch_by_id(w, e->u.look.batch);
		r->found = r->batch != NULL;
		break;
	case SQL_TXN_BEGIN:
		do_begin(w, e->u.begin, &r->item);
		break;
	case SQL_TXN_STAGE:
		do_stage(w, e->u.stage, &r->item);
		break;
	case SQL_TXN_SEAL:
		do_seal(w, e->u.seal, &r->item);
		break;
	case SQL_TXN_ONCE:
		do_once(w, e->u.once, &r->item);
		break;
	case SQL_TXN_REQUEST:
		do_request(w, e->u.request, &r->item);
		break;
	case SQL_TXN_END:
		do_end(w, &e->u.end, &r->item);
		break;
	case SQL_TXN_READ: {
		const struct m_txn *t = pg_txn(w, e->u.txn);
		if (t)
			fill_read(w, t, &r->item);
		else
			r->item.st = ST_TXN_UNKNOWN;
		break;
	}
	case SQL_LEDGER:
		do_ledger(w, &e->u.ledger, fl->completed, r);
		break;
	case SQL_PUBLISH:
		do_publish(w, e->u.publish, r);
		break;
	case SQL_UNLEDGER:
		do_unledger(w, &e->u.unledger, r);
		break;
	case SQL_TABLE_CREATE:
		do_create(w, e->u.create, r);
		break;
	case SQL_TABLES_COMMIT:
		do_tables(w, e->u.tables, r);
		break;
	case SQL_TABLE_DROP:
		do_drop(w, &e->u.drop, r);
		break;
	case SQL_HALT:
		do_halt(w, &e->u.halt, r);
		break;
	case SQL_CLEAN_CLAIM:
		do_claim(w, &e->u.claim, r);
		break;
	case SQL_CLEAN_LOOK:
		do_look(w, &e->u.clean_look, r);
		break;
	case SQL_CLEAN_DONE:
		do_cleaned(w, e->u.clean_done);
		break;
	default:
		r->verdict = SQL_APPLIED;
	}
	r->pg_ms = world_pg_ms(w);
	world_trace(w, "sql %s executed: verdict %d st %d found %d created %d err %d",
		    model_kind_name(e->kind), (int)r->verdict, (int)r->item.st, r->found,
		    (int)r->created, (int)r->err.st);
	oracle_check_groups(w);
	if (pg_executed)
		pg_executed(w, fl);
}
