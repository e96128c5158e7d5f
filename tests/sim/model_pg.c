/* What a statement does: every effect judges its guard and writes at one instant, as the semantics in
 * proto/commit/sqlport.h say. */
#include "tests/sim/model_pg.h"

#include <inttypes.h>

void (*pg_executed)(struct world *w, const struct flight *fl);

static const char *const kind_names[] = {
	"recover",      "head_read",  "head_bump",   "queue_read", "batch_look",
	"txn_begin",    "txn_stage",  "txn_seal",    "txn_once",   "txn_request",
	"txn_end",      "txn_read",   "ledger",      "publish",    "unledger",
	"table_create", "tables_commit", "table_drop", "clean_due", "clean_claim", "clean_look", "clean_done",
	"horizon",      "halt",
};

const char *model_kind_name(enum sql_kind kind)
{
	return kind_names[kind];
}

/* ------------------------------------------------------------------ the decision */

bool model_guard(struct world *w, const struct sql_publish *p, struct head_row *h)
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
bool model_listed(struct world *w, struct batch_id batch, const struct strv *objects, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct m_obj *o = pg_obj(w, objects[i]);
		if (!o || o->state != OBJ_LEDGER || !uuid_eq(o->owner, batch.u))
			return false;
	}
	return true;
}

void model_settle(struct world *w, struct batch_id batch, const struct strv *objects, size_t n)
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
	p->idems[p->n_idems++] = (struct m_idem){.key = key, .http = http, .there = true};
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

bool model_taken(struct world *w, const struct sql_idem *k)
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

void model_remember(struct world *w, const struct sql_idem *k, struct strv location)
{
	if (!k->set)
		return;
	if (idem_find(w, k->key))
		world_fail(w, "a request with a key was done again");
	world_keep(w, k->key, k->http);
	if (k->file)
		w->pg.idems[w->pg.n_idems - 1].location = location;
	if (MUTANT("key-in-second-statement")) {
		struct late_row *l = world_alloc(w, sizeof *l);
		*l = (struct late_row){k->key, w->gen};
		w->pg.idems[w->pg.n_idems - 1].there = false;
		world_at(w, 600000, remember_late, l);
	}
}

void model_batch_add(struct world *w, const struct batch_row *row)
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
void model_publish(struct world *w, const struct sql_publish *p, struct sql_result *r)
{
	struct head_row *h = pg_head(w, p->row.table);
	if (pg_batch(w, p->row.table, p->row.incarnation, p->row.batch_no) ||
	    rows_batch_by_id(w, p->row.batch)) {
		if (!MUTANT("guard-version"))
			world_fail(w, "batch number %" PRId64 " is used twice", p->row.batch_no);
		return;
	}
	if (!model_listed(w, p->row.batch, p->objects, p->n_objects)) {
		err_set(&r->err, ST_INTERNAL, "", "an object of the batch is not in the ledger");
		return;
	}
	if (model_taken(w, &p->idem)) {
		r->verdict = SQL_KEY_TAKEN;
		return;
	}
	if (!tables_places_free(w, p->row.table, p->row.table, p->places, p->n_places, r))
		return;
	struct m_tab *tab = tables_find(w, p->row.table);
	if (tab && p->n_places) {
		tab->places = p->places;
		tab->n_places = p->n_places;
	}
	model_settle(w, p->row.batch, p->objects, p->n_objects);
	model_remember(w, &p->idem, p->row.metadata_location);
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
			txns_queue_staged(w, t->r.txn);
			continue;
		}
		for (size_t k = w->pg.n_objs; k-- > 0;)
			if (w->pg.objs[k].state == OBJ_STAGED &&
			    uuid_eq(w->pg.objs[k].owner, t->r.txn.u))
				rows_obj_remove(w, &w->pg.objs[k]);
	}
	model_batch_add(w, &p->row);
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
	if (model_guard(w, p, pg_head(w, p->row.table)))
		model_publish(w, p, r);
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

/* ------------------------------------------------------------------ statements */

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
		txns_queue_read(w, e->u.table, r);
		break;
	case SQL_BATCH_LOOK:
		r->batch = rows_batch_by_id(w, e->u.look.batch);
		r->found = r->batch != NULL;
		break;
	case SQL_TXN_BEGIN:
		txns_begin(w, e->u.begin, &r->item);
		break;
	case SQL_TXN_STAGE:
		txns_stage(w, e->u.stage, &r->item);
		break;
	case SQL_TXN_SEAL:
		txns_seal(w, e->u.seal, &r->item);
		break;
	case SQL_TXN_ONCE:
		txns_once(w, e->u.once, &r->item);
		break;
	case SQL_TXN_REQUEST:
		txns_request(w, e->u.request, &r->item);
		break;
	case SQL_TXN_END:
		txns_end(w, &e->u.end, &r->item);
		break;
	case SQL_TXN_READ: {
		const struct m_txn *t = pg_txn(w, e->u.txn);
		if (t)
			txns_read(w, t, &r->item);
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
		tables_create(w, e->u.create, r);
		break;
	case SQL_TABLES_COMMIT:
		tables_commit(w, e->u.tables, r);
		break;
	case SQL_TABLE_DROP:
		tables_drop(w, &e->u.drop, r);
		break;
	case SQL_HALT:
		tables_halt(w, &e->u.halt, r);
		break;
	case SQL_CLEAN_DUE:
		cleaner_due(w, &e->u.clean_due, r);
		break;
	case SQL_CLEAN_CLAIM:
		cleaner_claim(w, &e->u.claim, r);
		break;
	case SQL_CLEAN_LOOK:
		cleaner_look(w, &e->u.clean_look, r);
		break;
	case SQL_CLEAN_DONE:
		cleaner_done(w, e->u.clean_done);
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
