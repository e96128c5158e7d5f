/* Tables in memory: taking one over, its queue, halting, forgetting. */
#include "daemon/commit/state.h"

#include "proto/iceberg/metadata.h"

/* Loading is tried this often before waiting requests are told. */
#define LOAD_FAILURES 3

static size_t slot_of(struct table_id id)
{
	return (size_t)bytes_hash((struct bytes){id.u.b, 16}) % 256;
}

struct table *table_find(struct core *c, struct table_id id)
{
	struct table *t = c->tables[slot_of(id)];
	while (t && !uuid_eq(t->id.u, id.u))
		t = t->next;
	return t;
}

static void own_text(struct strv *dst, struct strv src)
{
	char *p = base_alloc(src.n + 1);
	if (src.n)
		memcpy(p, src.p, src.n);
	p[src.n] = 0;
	base_free((char *)(uintptr_t)dst->p);
	*dst = (struct strv){p, src.n};
}

static void free_table(struct table *t)
{
	for (size_t i = 0; i < t->n_logs; i++)
		reflog_free(t->logs[i]);
	base_free(t->logs);
	metadata_unref(t->meta);
	base_free((char *)(uintptr_t)t->name.p);
	base_free((char *)(uintptr_t)t->location.p);
	base_free((char *)(uintptr_t)t->head_location.p);
	base_free((char *)(uintptr_t)t->blame.object.p);
	list_remove(&t->node);
	base_free(t);
}

/* A commit that was asked for lives on in its rows: whoever serves the table next decides it. Its
 * client must not take this refusal for the end. */
void table_tell(struct core *c, struct request *r, const struct txn *x, const struct err *err)
{
	struct err e = *err;
	bool passing = err->st == ST_FENCED || err->st == ST_TABLE_HALTED;
	bool commit = r->kind == EV_COMMIT || r->kind == EV_COMMIT_ONCE || r->kind == EV_ABORT;
	if (passing && commit && (r->sent || !x || x->row.commit_requested))
		e.st = ST_COMMIT_UNKNOWN;
	else if (passing && r->sent)
		e.st = ST_TIMEOUT;
	else if (err->st == ST_FENCED &&
		 (r->kind == EV_TABLE_COMMIT || r->kind == EV_TABLES_COMMIT))
		e.st = ST_OVERLOADED; /* not judged: no conflict */
	request_fail(c, r, &e);
}

/* The same for a table's end. What was asked for may be the repeat of what was decided long ago, or another
 * daemon has decided it before the table went: rows outlive the table, and they answer. */
static void end_with_table(struct core *c, struct request *r, const struct txn *x,
			   const struct err *err)
{
	bool asks = r->kind == EV_COMMIT || r->kind == EV_COMMIT_ONCE;
	if (!asks || err->st != ST_TABLE_GONE || r->answered) {
		table_tell(c, r, x, err);
		return;
	}
	r->txn = NULL;
	r->table = NULL;
	r->late_err = *err;
	if (r->kind == EV_COMMIT_ONCE)
		finish_reread(c, r);
	else
		request_read_row(c, r);
}

/* Everything of the table in memory is forgotten; rows are the truth. */
static void forget(struct core *c, struct table *t, enum status st, const char *why)
{
	struct err err = {0};
	err_set(&err, st, "", "%s", why);
	LIST_FOR (n4, tmp4, &c->requests) {
		struct request *r = LIST_ITEM(n4, struct request, node);
		struct txn *x = request_txn(r);
		if (!x || x->table != t)
			continue;
		list_remove(&r->wait);
		end_with_table(c, r, x, &err);
		r->txn = NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(c->txns); i++)
		for (struct txn *x = c->txns[i], *next; x; x = next) {
			next = x->next;
			if (x->table != t)
				continue;
			LIST_FOR (n, tmp, &x->waiters) {
				list_remove(n);
				end_with_table(c, LIST_ITEM(n, struct request, wait), x, &err);
			}
			LIST_FOR (n2, tmp2, &x->turn) {
				list_remove(n2);
				end_with_table(c, LIST_ITEM(n2, struct request, wait), x, &err);
			}
			txn_free(c, x);
		}
	LIST_FOR (n, tmp, &t->queue) {
		struct entry *e = LIST_ITEM(n, struct entry, node);
		list_remove(n);
		if (e->kind == ENTRY_REST) {
			struct request *q = e->req;
			q->entry = NULL;
			rest_turn_away(c, q, t, &err);
			request_let(q);
		} else if (e->kind == ENTRY_PART) {
			multi_unqueued(c, e->part, &err);
		}
	}
	t->n_queue = 0;
	LIST_FOR (n2, tmp2, &t->waiting) {
		struct request *r = LIST_ITEM(n2, struct request, wait);
		list_remove(n2);
		end_with_table(c, r, NULL, &err);
	}
	for (struct list *n6; (n6 = list_pop_front(&t->halters));)
		table_tell(c, LIST_ITEM(n6, struct request, wait), NULL, &err);
	for (struct list *n5; (n5 = list_pop_front(&t->refused));)
		request_fail(c, LIST_ITEM(n5, struct request, wait), &err);
	LIST_FOR (n3, tmp3, &c->requests) {
		struct request *r = LIST_ITEM(n3, struct request, node);
		if (r->table == t) {
			table_tell(c, r, NULL, &err);
			r->table = NULL;
		}
	}
}

void table_drop(struct core *c, struct table *t, enum status st, const char *why)
{
	ASSERT(t->batch == NULL);
	forget(c, t, st, why);
	core_timer_stop(&t->timer);
	core_timer_stop(&t->fair_timer);
	struct table **p = &c->tables[slot_of(t->id)];
	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	list_remove(&t->node);
	t->gone = true;
	if (t->holds == 0)
		free_table(t);
	else
		list_push_back(&c->ghost_tables, &t->node);
}

void table_replaced(struct core *c, struct table_id id, int64_t last, const char *why)
{
	struct table *t = table_find(c, id);
	bool taking = t && t->state == TABLE_LOADING && t->taking;
	/* Whose take-over is under way may have read what was before: it reads again. */
	if (!t || (!taking && t->incarnation > last))
		return;
	/* One that is publishing finds out by its guard. */
	multi_interrupt(c, t, ST_NO_SUCH_TABLE, why);
	t->replaced = true;
	if (!t->batch && !t->taking)
		table_drop(c, t, ST_TABLE_GONE, why);
}

/* From a timer of its own: whoever ends a batch may not be done with the table. */
static void forget_replaced(struct core *c, struct timer *timer)
{
	struct table *t = CONTAINER_OF(timer, struct table, timer);
	if (!t->batch && !t->taking)
		table_drop(c, t, ST_TABLE_GONE, "the table was dropped or replaced");
}

bool table_is(struct core *c, struct table *t, int64_t incarnation, struct err *err)
{
	if (incarnation == t->incarnation)
		return true;
	if (incarnation < t->incarnation) {
		err_set(err, ST_NO_SUCH_TABLE, "", "the table was dropped or replaced");
		return false;
	}
	/* Incarnations only grow: ours is history, and what is asked for is not known here yet. */
	t->replaced = true;
	table_pump(c, t);
	err_set(err, ST_OVERLOADED, "", "the table was replaced and is being loaded anew");
	return false;
}

/* Effects that name a table keep its memory: it may be dropped while they are under way. */
static void let(struct table *t)
{
	ASSERT(t->holds > 0);
	if (--t->holds == 0 && t->gone)
		free_table(t);
}

void table_hold(struct table *t)
{
	t->holds++;
}

void table_let(struct table *t)
{
	let(t);
}

/* ------------------------------------------------------------------ taking over */

static void take_read(struct core *c, struct table *t);

static void taken(struct core *c, struct table *t, enum status st)
{
	t->taking = false;
	t->taken(c, t, st);
}

static void take_again(struct core *c, struct timer *timer)
{
	take_read(c, CONTAINER_OF(timer, struct table, timer));
}

static void adopt(struct table *t, const struct head_row *h)
{
	t->incarnation = h->incarnation;
	t->epoch = h->epoch;
	t->version = h->version;
	t->last_batch = h->last_batch;
	t->head_seq = h->last_seq;
	own_text(&t->head_location, h->metadata_location);
	own_text(&t->name, h->name);
}

static void bump_done(struct core *c, void *ctx, const struct event *ev)
{
	struct table *t = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (!t->gone) {
		if (core_sql_clean_failure(r) && !r->lost) {
			core_timer(c, &t->timer, c->now_us + c->conf.retry_us, take_again);
		} else if (!r->lost && r->verdict == SQL_APPLIED) {
			adopt(t, &r->head);
			taken(c, t, ST_OK);
		} else {
			/* No reply or no row: only a new read tells which. */
			t->bump_open = true;
			take_read(c, t);
		}
	}
	let(t);
}

static void take_bump(struct core *c, struct table *t)
{
	t->holds++;
	struct effect *e = core_emit(c, FX_SQL, bump_done, t);
	e->u.sql.kind = SQL_HEAD_BUMP;
	e->u.sql.u.bump = (struct sql_head_bump){.table = t->id,
						 .incarnation = t->read_incarnation,
						 .epoch_read = t->epoch_read,
						 .holder = c->conf.daemon};
}

static void head_done(struct core *c, void *ctx, const struct event *ev)
{
	struct table *t = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (t->gone) {
		let(t);
		return;
	}
	if (r->lost || core_sql_clean_failure(r)) {
		t->failures++;
		core_timer(c, &t->timer, c->now_us + c->conf.retry_us, take_again);
		if (t->failures >= LOAD_FAILURES && t->state == TABLE_LOADING) {
			struct err err = {0};
			err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
			LIST_FOR (n, tmp, &t->waiting) {
				struct request *q = LIST_ITEM(n, struct request, wait);
				list_remove(n);
				/* A commit route never answers 503. */
				err.st = q->kind == EV_TABLE_COMMIT || q->kind == EV_TABLES_COMMIT
						 ? ST_OVERLOADED
						 : ST_UNAVAILABLE;
				request_fail(c, q, &err);
			}
		}
	} else if (!r->found ||
		   (t->epoch_expected && r->head.incarnation != t->incarnation)) {
		/* Epochs of another incarnation say nothing about this one. */
		taken(c, t, ST_TABLE_GONE);
	} else if (t->bump_open && r->head.epoch == t->epoch_read + 1 &&
		   uuid_eq(r->head.holder.u, c->conf.daemon.u) &&
		   r->head.incarnation == t->read_incarnation) {
		/* The bump whose reply was lost was applied. */
		t->bump_open = false;
		adopt(t, &r->head);
		taken(c, t, ST_OK);
	} else if (t->bump_open && r->head.epoch != t->epoch_read) {
		t->bump_open = false;
		taken(c, t, ST_FENCED);
	} else {
		t->bump_open = false;
		t->epoch_read = r->head.epoch;
		t->read_incarnation = r->head.incarnation;
		if (t->epoch_expected && r->head.epoch != t->epoch_expected)
			taken(c, t, ST_FENCED);
		else if (c->conf.standby && !t->epoch_expected)
			taken(c, t, ST_FENCED);
		else
			take_bump(c, t);
	}
	let(t);
}

static void take_read(struct core *c, struct table *t)
{
	t->holds++;
	struct effect *e = core_emit(c, FX_SQL, head_done, t);
	e->u.sql.kind = SQL_HEAD_READ;
	e->u.sql.u.table = t->id;
}

void table_take(struct core *c, struct table *t, int64_t expected,
		void (*fn)(struct core *c, struct table *t, enum status st))
{
	ASSERT(!t->taking);
	t->taking = true;
	t->taken = fn;
	t->bump_open = false;
	t->epoch_expected = expected;
	t->failures = 0;
	take_read(c, t);
}

/* ------------------------------------------------------------------ loading */

static void load(struct core *c, struct table *t);
static void read_meta(struct core *c, struct table *t);

static void load_again(struct core *c, struct timer *timer)
{
	load(c, CONTAINER_OF(timer, struct table, timer));
}

static void load_failed(struct core *c, struct table *t, const struct err *err)
{
	core_log(c, 4, "table.load", t, NULL, err);
	if (err->st == ST_IO || err->st == ST_UNAVAILABLE || err->st == ST_OVERLOADED ||
	    err->st == ST_TIMEOUT) {
		if (++t->failures >= LOAD_FAILURES) {
			LIST_FOR (n, tmp, &t->waiting) {
				list_remove(n);
				request_status(c, LIST_ITEM(n, struct request, wait),
					       ST_OVERLOADED, "", err->msg);
			}
		}
		core_timer(c, &t->timer, c->now_us + c->conf.retry_us, load_again);
		return;
	}
	table_blame(t, NULL, t->head_location);
	table_halt(c, t, err);
}

static void queue_done(struct core *c, void *ctx, const struct event *ev)
{
	struct table *t = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (!t->gone) {
		if (r->lost || core_sql_clean_failure(r)) {
			struct err err = {0};
			err_set(&err, ST_UNAVAILABLE, "",
				"the table's transactions cannot be read from PostgreSQL");
			load_failed(c, t, &err);
		} else {
			t->state = TABLE_READY;
			t->failures = 0;
			for (size_t i = 0; i < r->n_items; i++)
				txn_restore(c, t, &r->items[i]);
			halt_restored(c, t, r);
			request_table_ready(c, t);
			table_pump(c, t);
		}
	}
	let(t);
}

static void meta_done(struct core *c, void *ctx, const struct event *ev)
{
	struct table *t = ctx;
	struct read_result *r = ev->u.done.read;
	if (t->gone) {
		metadata_unref(r->own_metadata);
		r->own_metadata = NULL;
	} else if (r->err.st != ST_OK) {
		load_failed(c, t, &r->err);
	} else {
		metadata_unref(t->meta);
		t->meta = r->own_metadata;
		r->own_metadata = NULL;
		own_text(&t->location, t->head_location);
		t->holds++;
		struct effect *e = core_emit(c, FX_SQL, queue_done, t);
		e->u.sql.kind = SQL_QUEUE_READ;
		e->u.sql.u.table = t->id;
	}
	let(t);
}

static void read_meta(struct core *c, struct table *t)
{
	t->holds++;
	struct effect *e = core_emit(c, FX_READ, meta_done, t);
	e->u.read = (struct read_effect){
		.as = READ_METADATA, .path = t->head_location, .length = -1};
}

static void loaded_head(struct core *c, struct table *t, enum status st)
{
	if (t->replaced) {
		/* While it was being taken; what was read may be of before. */
		t->replaced = false;
		load(c, t);
	} else if (st == ST_OK) {
		read_meta(c, t);
	} else if (st == ST_TABLE_GONE) {
		table_drop(c, t, ST_TABLE_GONE, "the table does not exist");
	} else {
		table_drop(c, t, ST_FENCED, "another daemon holds the table");
	}
}

static void load(struct core *c, struct table *t)
{
	int failures = t->failures;
	table_take(c, t, 0, loaded_head);
	t->failures = failures;
}

struct table *table_open(struct core *c, struct table_id id)
{
	struct table *t = table_find(c, id);
	if (t)
		return t;
	t = base_calloc(1, sizeof *t);
	t->id = id;
	t->state = TABLE_LOADING;
	t->batch_limit = c->conf.batch_max_txns;
	list_init(&t->queue);
	list_init(&t->ordered);
	list_init(&t->waiting);
	list_init(&t->refused);
	list_init(&t->halters);
	list_init(&t->node);
	t->next = c->tables[slot_of(id)];
	c->tables[slot_of(id)] = t;
	list_push_back(&c->table_list, &t->node);
	load(c, t);
	return t;
}

/* Snapshots that a record begins with; a transaction that is older meets moved rows. */
#define LOG_SEED_MAX 256

/* Whether the snapshot was alone in its commit: the snapshot log of main leaves out those that were
 * overtaken within one. For other branches nobody knows. */
static bool alone(const struct metadata *m, struct strv ref, const struct snapshot *s)
{
	size_t n;
	bool here = false, before = s->parent_id == SNAPSHOT_NONE;
	const struct metadata_snapshot_log_entry *log = metadata_snapshot_log(m, &n);
	if (!strv_eq(ref, SNAPSHOT_REF_MAIN))
		return false;
	for (size_t i = 0; i < n; i++) {
		here |= log[i].snapshot_id == s->snapshot_id;
		before |= log[i].snapshot_id == s->parent_id;
	}
	return here && before;
}

/* Whether the snapshot itself says that no row was moved by it: ours by their own mark, others by
 * their label, if nothing else was committed with them. */
static bool nothing_moved(const struct metadata *m, struct strv ref, const struct snapshot *s)
{
	bool adds = snapshot_summary(s, "added-data-files").p != NULL;
	bool deletes = strv_eq(s->operation, STRV("delete"));
	if (snapshot_summary(s, "frazil.batch-id").p)
		return !snapshot_summary(s, "frazil.rows-moved").p;
	return alone(m, ref, s) &&
	       ((deletes && !adds) || strv_eq(s->operation, STRV("append")));
}

/* The record of a ref whose beginning this daemon has not seen: what the snapshots that are still
 * there tell about themselves. */
static void seed_log(struct reflog *l, const struct metadata *m, int64_t head)
{
	const struct snapshot *chain[LOG_SEED_MAX];
	size_t n = 0;
	const struct snapshot *s = head == SNAPSHOT_NONE ? NULL : metadata_snapshot(m, head);
	for (; s && n < ARRAY_SIZE(chain); s = metadata_parent(m, s))
		chain[n++] = s;
	reflog_reset(l, n ? chain[n - 1]->snapshot_id : head);
	for (size_t i = n; i-- > 1;)
		reflog_foreign(l, chain[i - 1]->snapshot_id,
			       nothing_moved(m, reflog_ref(l), chain[i - 1]));
}

struct reflog *table_log(struct table *t, struct strv ref, int64_t head)
{
	for (size_t i = 0; i < t->n_logs; i++)
		if (strv_eq(reflog_ref(t->logs[i]), ref)) {
			/* Somebody moved the ref without this record: start anew. */
			if (reflog_head(t->logs[i]) != head)
				reflog_reset(t->logs[i], head);
			return t->logs[i];
		}
	t->logs = base_realloc_array(t->logs, t->n_logs + 1, sizeof(struct reflog *));
	t->logs[t->n_logs] = reflog_new(ref, head);
	seed_log(t->logs[t->n_logs], t->meta, head);
	return t->logs[t->n_logs++];
}

struct note {
	struct metadata *m;
	struct strv location; /* owned */
};

static void note_fini(void *p)
{
	struct note *n = p;
	metadata_unref(n->m);
	base_free((char *)(uintptr_t)n->location.p);
}

static void head_noted(struct core *c, void *ctx, const struct event *ev)
{
	(void)c;
	(void)ev;
	core_unkeep(ctx);
}

void table_note(struct core *c, struct table_id id, struct strv location, struct metadata *m)
{
	struct note *n = core_keep(c, sizeof *n, note_fini);
	n->m = metadata_ref(m);
	own_text(&n->location, location);
	struct effect *e = core_emit(c, FX_HEAD, head_noted, n);
	e->u.head.table = id;
	e->u.head.location = n->location;
	e->u.head.metadata = n->m;
}

void table_set_head(struct core *c, struct table *t, struct metadata *m, struct strv location,
		    int64_t version, int64_t last_batch)
{
	struct metadata *old = t->meta;
	t->meta = metadata_ref(m);
	metadata_unref(old);
	own_text(&t->location, location);
	t->version = version;
	t->last_batch = last_batch;
	table_note(c, t->id, t->location, m);
}

/* ------------------------------------------------------------------ the queue */

static void window_over(struct core *c, struct timer *timer);

/* At the next tick, not at once: what else comes in with this turn of the loop shares the batch. A
 * batch or a take-over under way pumps by itself when it ends, and the timer may be its own. */
static void pump_soon(struct core *c, struct table *t)
{
	if (t->state == TABLE_READY && !t->batch && !t->taking)
		core_timer(c, &t->timer, c->now_us, window_over);
}

void table_enqueue(struct core *c, struct table *t, struct entry *e)
{
	list_push_back(&t->queue, &e->node);
	if (t->n_queue++ == 0)
		t->first_us = c->now_us;
	pump_soon(c, t);
}

void table_enqueue_first(struct core *c, struct table *t, struct entry *e)
{
	list_push_front(&t->queue, &e->node);
	if (t->n_queue++ == 0)
		t->first_us = c->now_us;
	table_pump(c, t);
}

void table_dequeue(struct table *t, struct entry *e)
{
	list_remove(&e->node);
	ASSERT(t->n_queue > 0);
	t->n_queue--;
	if (e->kind == ENTRY_REST)
		e->req->entry = NULL;
	else if (e->kind == ENTRY_PART)
		multi_unqueued(NULL, e->part, NULL);
}

static void window_over(struct core *c, struct timer *timer)
{
	table_pump(c, CONTAINER_OF(timer, struct table, timer));
}

void table_pause(struct core *c, struct table *t)
{
	t->pause_us = c->now_us + c->conf.retry_us;
	core_timer(c, &t->timer, t->pause_us, window_over);
}

/* One batch after the other while each ends at once; calls from inside are left to the loop. */
void table_pump(struct core *c, struct table *t)
{
	if (c->conf.standby)
		return;
	if (t->pumping)
		return;
	if (t->replaced && !t->batch && !t->taking) {
		core_timer(c, &t->timer, c->now_us, forget_replaced);
		return;
	}
	t->pumping = true;
	table_hold(t);
	halt_due(c, t);
	while (!t->gone && t->state == TABLE_READY && !t->batch && !t->taking && t->n_queue > 0) {
		int64_t at = t->pause_us;
		if (c->conf.window_us > 0 && at < t->first_us + c->conf.window_us)
			at = t->first_us + c->conf.window_us;
		struct entry *first = LIST_ITEM(t->queue.next, struct entry, node);
		if (first->kind == ENTRY_TXN && at < t->fair.until_us && !c->draining)
			at = t->fair.until_us;
		if (c->now_us < at) {
			core_timer(c, &t->timer, at, window_over);
			break;
		}
		batch_start(c, t);
		/* It may have ended at once. */
		halt_due(c, t);
	}
	t->pumping = false;
	table_let(t);
}

void table_free_all(struct core *c)
{
	txn_free_all(c);
	LIST_FOR (n2, tmp2, &c->ghost_tables)
		free_table(LIST_ITEM(n2, struct table, node));
	LIST_FOR (n, tmp, &c->table_list) {
		struct table *t = LIST_ITEM(n, struct table, node);
		list_remove(n);
		batch_free(t->batch);
		free_table(t);
	}
}
