/* The way of a statement: it is executed late or its answer is lost. It takes its locks one by one in
 * a fixed order, waits where it must, holds them for a while, and then judges and writes at one
 * instant: while it holds the locks nobody changes what it judges, and plain reads see what is
 * committed. */
#include "tests/sim/model_pg.h"

#include <inttypes.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ locks */

static struct m_lock *lock_of(struct world *w, struct uuid key)
{
	struct pg *p = &w->pg;
	for (size_t i = 0; i < p->n_locks; i++)
		if (uuid_eq(p->locks[i].key, key))
			return &p->locks[i];
	p->locks = world_grow(w, p->locks, &p->cap_locks, p->n_locks + 1, sizeof *p->locks);
	p->locks[p->n_locks] = (struct m_lock){.key = key};
	return &p->locks[p->n_locks++];
}

static void commit(struct world *w, void *arg);

static void acquire(struct world *w, struct flight *fl)
{
	while (fl->n_held < fl->n_locks) {
		struct m_lock *l = lock_of(w, fl->locks[fl->n_held]);
		if (l->holder) {
			if (l->last)
				l->last->lock_next = fl;
			else
				l->first = fl;
			l->last = fl;
			fl->lock_next = NULL;
			return;
		}
		l->holder = fl;
		fl->n_held++;
	}
	int64_t hold = fl->n_locks ? world_latency(w, w->conf.sql_us / 2 + 1) : 0;
	/* A late COMMIT: it has its locks for a long time. */
	if (fl->n_locks && fl->fate == FATE_LATE)
		hold += world_below(w, world_chance(w, 500) ? 100000 : 2000000);
	world_at(w, hold, commit, fl);
}

static void release(struct world *w, struct flight *fl)
{
	size_t n = fl->n_held;
	fl->n_held = 0;
	for (size_t i = 0; i < n; i++) {
		struct m_lock *l = lock_of(w, fl->locks[i]);
		l->holder = NULL;
		struct flight *next = l->first;
		if (!next)
			continue;
		l->first = next->lock_next;
		if (!l->first)
			l->last = NULL;
		acquire(w, next);
	}
}

static void answer(struct world *w, void *arg)
{
	struct flight *fl = arg;
	struct event ev = {.u.done.sql = &fl->res};
	world_complete(w, fl, &ev);
}

static void commit(struct world *w, void *arg)
{
	struct flight *fl = arg;
	model_execute(w, fl);
	release(w, fl);
	if (!fl->completed && (fl->fate == FATE_OK))
		world_at(w, world_latency(w, w->conf.sql_us / 4 + 1), answer, fl);
}

static void arrive(struct world *w, void *arg)
{
	struct flight *fl = arg;
	if (fl->completed && fl->fate == FATE_LOST_BEFORE)
		return; /* went down with its daemon */
	if (fl->orphaned) {
		fl->orphaned = false;
		world_at(w, world_below(w, 2000000), arrive, fl);
		return;
	}
	acquire(w, fl);
}

static int by_uuid(const void *a, const void *b)
{
	return uuid_cmp(*(const struct uuid *)a, *(const struct uuid *)b);
}

static void find_locks(struct world *w, struct flight *fl)
{
	const struct sql_effect *e = &fl->e.u.sql;
	size_t n = e->kind == SQL_PUBLISH	 ? e->u.publish->row.n_txns
		   : e->kind == SQL_TABLES_COMMIT ? e->u.tables->n_parts
						  : 0;
	fl->locks = world_alloc(w, (n + 1) * sizeof *fl->locks);
	switch (e->kind) {
	case SQL_HEAD_BUMP:
		fl->locks[fl->n_locks++] = e->u.bump.table.u;
		return;
	case SQL_LEDGER:
		if (e->u.ledger.epoch >= 0)
			fl->locks[fl->n_locks++] = e->u.ledger.table.u;
		return;
	case SQL_HALT:
		fl->locks[fl->n_locks++] = e->u.halt.table.u;
		return;
	case SQL_UNLEDGER:
		fl->locks[fl->n_locks++] = e->u.unledger.table.u;
		return;
	case SQL_TABLE_DROP:
		fl->locks[fl->n_locks++] = e->u.drop.table.u;
		return;
	case SQL_TABLES_COMMIT:
		/* As they come: ascending, which the core owes. */
		for (size_t i = 0; i < n; i++) {
			fl->locks[fl->n_locks++] = e->u.tables->parts[i]->row.table.u;
			if (i && by_uuid(&fl->locks[i - 1], &fl->locks[i]) >= 0)
				world_fail(w, "tables of a commit are not in the order of their ids");
		}
		return;
	case SQL_TXN_BEGIN:
		fl->locks[fl->n_locks++] = e->u.begin->txn.u;
		return;
	case SQL_TXN_STAGE:
		fl->locks[fl->n_locks++] = e->u.stage->row.txn.u;
		return;
	case SQL_TXN_SEAL:
		fl->locks[fl->n_locks++] = e->u.seal->txn.u;
		return;
	case SQL_TXN_ONCE:
		fl->locks[fl->n_locks++] = e->u.once->row.txn.u;
		return;
	case SQL_TXN_REQUEST:
		fl->locks[fl->n_locks++] = e->u.request->txn.u;
		return;
	case SQL_TXN_END:
		fl->locks[fl->n_locks++] = e->u.end.txn.u;
		return;
	case SQL_PUBLISH:
		fl->locks[fl->n_locks++] = e->u.publish->row.table.u;
		for (size_t i = 0; i < n; i++)
			fl->locks[fl->n_locks++] = e->u.publish->row.txns[i].u;
		/* The head first, then the transactions in key order. */
		qsort(fl->locks + 1, n, sizeof *fl->locks, by_uuid);
		return;
	default:
		return;
	}
}

static void fail_reply(struct world *w, void *arg)
{
	struct flight *fl = arg;
	struct sql_result r = {.kind = fl->e.u.sql.kind, .pg_ms = 0};
	r.sent = fl->fate != FATE_UNSENT;
	r.lost = fl->fate >= FATE_LOST_BEFORE;
	if (fl->fate == FATE_ERROR)
		err_set(&r.err, ST_UNAVAILABLE, "", "the server answered with an error");
	if (fl->fate == FATE_UNSENT)
		err_set(&r.err, ST_UNAVAILABLE, "", "no connection");
	world_trace(w, "sql %s fate %d", model_kind_name(r.kind), (int)fl->fate);
	struct event ev = {.u.done.sql = &r};
	world_complete(w, fl, &ev);
}

static enum fate draw_fate(struct world *w)
{
	const struct faults *f = &w->conf.f;
	if (world_fault(w, f->sql_unsent))
		return FATE_UNSENT;
	if (world_fault(w, f->sql_error))
		return FATE_ERROR;
	if (world_fault(w, f->sql_lost_before))
		return FATE_LOST_BEFORE;
	if (world_fault(w, f->sql_lost_after))
		return FATE_LOST_AFTER;
	if (world_fault(w, f->sql_late))
		return FATE_LATE;
	return FATE_OK;
}

void pg_submit(struct world *w, struct flight *fl)
{
	rows_copy_effect(w, &fl->e.u.sql);
	fl->fate = draw_fate(w);
	find_locks(w, fl);
	int64_t travel = world_latency(w, w->conf.sql_us);
	bool executes = fl->fate == FATE_OK || fl->fate >= FATE_LOST_AFTER;
	if (fl->fate == FATE_LATE && world_chance(w, 500))
		world_at(w, travel + world_below(w, world_chance(w, 500) ? 100000 : 2000000), arrive,
			 fl);
	else if (executes)
		world_at(w, travel, arrive, fl);
	if (fl->fate != FATE_OK)
		world_at(w, world_latency(w, w->conf.sql_us * 2), fail_reply, fl);
}

void pg_orphan(struct world *w, struct flight *fl)
{
	/* What has not arrived yet arrives late, or never. */
	if (fl->executed || fl->fate != FATE_OK)
		return;
	int dice = world_below(w, 3);
	if (fl->n_held == 0 && dice == 0)
		fl->fate = FATE_LOST_BEFORE;
	else if (dice == 1)
		fl->orphaned = true;
}

/* ------------------------------------------------------------------ somebody else's SQL */

static void abort_one(struct world *w)
{
	struct pg *p = &w->pg;
	for (size_t i = p->n_txns; i-- > 0;) {
		struct m_txn *t = p->txns[i];
		if (t->r.state != TXN_DB_SEALED || lock_of(w, t->r.txn.u)->holder)
			continue;
		t->r.state = TXN_DB_ABORTED;
		txns_queue_staged(w, t->r.txn);
		oracle_ended(w, t->r.txn);
		world_trace(w, "outside: a sealed transaction is aborted");
		return;
	}
}

/* What no daemon does: a version from outside, a sealed transaction ended, another holder. */
static void outside(struct world *w, void *arg)
{
	(void)arg;
	struct pg *p = &w->pg;
	if (w->calm)
		return;
	world_at(w, 200000 + world_below(w, 800000), outside, NULL);
	if (p->n_heads == 0)
		return;
	struct head_row *h = &p->heads[world_below(w, (int)p->n_heads)];
	if (lock_of(w, h->table.u)->holder)
		return; /* it would wait for the row */
	switch (world_below(w, 3)) {
	case 0: {
		struct object *o = store_find(w, h->metadata_location);
		const char *gzip = metadata_file_gzip(h->metadata_location) ? ".gz" : "";
		struct strv path =
			world_printf(w, "%.*s-%d%s.metadata.json", STRV_ARG(h->metadata_location),
				     (int)h->version, gzip);
		store_put(w, path, o->data, 0);
		h->metadata_location = path;
		h->version++;
		oracle_moved(w, h->table);
		world_trace(w, "outside: another version");
		return;
	}
	case 1:
		abort_one(w);
		return;
	default:
		h->epoch++;
		h->holder = (struct daemon_id){0};
		world_trace(w, "outside: another epoch");
	}
}

void pg_init(struct world *w)
{
	if (w->conf.outside)
		world_at(w, 500000, outside, NULL);
	world_bytes(w, w->pg.secret.b, sizeof w->pg.secret.b);
}
