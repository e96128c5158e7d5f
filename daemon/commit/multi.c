/* One request over several tables: all of its changes are published by one statement, or none is.
 *
 * It reserves its tables one after the other, in the order of their ids: two requests that share tables
 * never wait for each other in a circle. A reservation is a place in the table's queue and then a batch
 * that does nothing but hold the table. When the last one is there every part is judged on its head,
 * then all that change something are encoded and written side by side; each stops before its decision.
 * Then one statement names all guards.
 *
 * Whatever goes wrong before that statement lets everything go. After it an unknown outcome is resolved
 * on the first table alone: every table's guard stands in the one statement, so one epoch that has
 * moved makes it impossible, and one batch row that is there proves all. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/commit/mutant.h"
#include "daemon/commit/state.h"
#include "proto/iceberg/metadata.h"

/* Refusals by PostgreSQL of the very same statement, in a row. */
#define REFUSALS_MAX 5

struct part {
	struct multi *m;
	const struct ask_part *ask; /* of the message: not looked at once it was answered */
	size_t number;		    /* in the message */
	struct table_id table;
	struct entry entry;
	struct table *queued; /* whose queue has the entry */
	struct batch *batch;
	struct creation *creation;
	enum rest_judged judged;
	struct err err; /* why it was not judged well */
	bool ready;
};

struct multi {
	struct request *r; /* held */
	struct arena arena;
	struct part *v; /* tables that are there, ascending by id; then creations */
	size_t n, n_live;
	size_t asked, reserved; /* of the live ones */
	size_t open;		/* parts that are not ready */
	bool creating;		/* creations were begun */
	bool planned;		/* `open` counts */
	bool ending;		/* everything is being let go */
	bool again;		/* ... and then begun anew, unless its client was answered */
	bool lost;		/* an answer of the statement was lost */
	enum status gone; /* what a take-over after a lost answer found; ST_OK: still ours */
	int refusals;
	const struct sql_publish **parts;	  /* of the statement */
	const struct sql_table_create **creates;
	struct sql_tables_commit sql;
	struct timer timer;
};

static void multi_fini(void *p)
{
	struct multi *m = p;
	/* The core may go while they wait. */
	for (size_t i = 0; m->v && i < m->n; i++)
		if (m->v[i].queued)
			list_remove(&m->v[i].entry.node);
	arena_fini(&m->arena);
}

int64_t multi_oldest_us(const struct multi *m)
{
	int64_t oldest = INT64_MAX;
	for (size_t i = m->n_live; i < m->n; i++)
		if (m->v[i].creation && create_since_us(m->v[i].creation) < oldest)
			oldest = create_since_us(m->v[i].creation);
	return oldest;
}

/* ------------------------------------------------------------------ letting go */

static void reserve(struct core *c, struct multi *m);
static void unwind(struct core *c, struct timer *timer);

static void end(struct core *c, struct multi *m)
{
	/* From outside: who answers a request is in the middle of something else. */
	m->ending = true;
	core_timer(c, &m->timer, c->now_us, unwind);
}

void multi_answered(struct core *c, struct multi *m)
{
	if (!m->r->sent)
		end(c, m);
}

static void begin_again(struct core *c, struct timer *timer)
{
	reserve(c, CONTAINER_OF(timer, struct multi, timer));
}

/* Nothing of it is under way any more: the end, or the next attempt. Creations stay as they are. */
static void ended(struct core *c, struct multi *m)
{
	struct request *r = m->r;
	if (m->again && !r->answered) {
		m->ending = m->again = m->lost = m->planned = false;
		m->asked = m->reserved = 0;
		r->sent = false;
		core_timer(c, &m->timer, c->now_us + c->conf.retry_us, begin_again);
		return;
	}
	for (size_t i = m->n_live; i < m->n; i++)
		if (m->v[i].creation)
			create_forget(c, m->v[i].creation);
	core_timer_stop(&m->timer);
	r->multi = NULL;
	core_unkeep(m);
	request_let(r);
}

static bool has_batches(const struct multi *m)
{
	for (size_t i = 0; i < m->n_live; i++)
		if (m->v[i].batch)
			return true;
	return false;
}

static void part_drop(struct core *c, struct part *p)
{
	struct batch *b = p->batch;
	struct table *t = b->table;
	if (b->ledgered)
		publish_unledger(c, t->id, b->id, b->ledger.epoch);
	p->batch = NULL;
	b->part = NULL;
	batch_drop(c, b);
	t->first_us = c->now_us;
	table_pump(c, t);
}

/* What is at rest goes now; what waits for an answer goes with it. */
static void unwind(struct core *c, struct timer *timer)
{
	struct multi *m = CONTAINER_OF(timer, struct multi, timer);
	list_remove(&m->r->wait);
	for (size_t i = 0; i < m->n_live; i++) {
		struct part *p = &m->v[i];
		struct table *t = p->queued;
		if (t) {
			table_dequeue(t, &p->entry);
			p->queued = NULL;
			table_pump(c, t);
		}
		if (p->batch && p->batch->holds == 0 && p->batch->gather.waiting == 0)
			part_drop(c, p);
	}
	if (!has_batches(m))
		ended(c, m);
}

bool multi_over(struct core *c, struct batch *b)
{
	struct part *p = b->part;
	if (!p || !p->m->ending)
		return false;
	struct multi *m = p->m;
	part_drop(c, p);
	end(c, m);
	return true;
}

/* Whether a table holds something of this request, which was committed before then: all of it, or as
 * much as has not been expired, dropped or renamed since. */
static bool partly_before(struct core *c, const struct multi *m)
{
	for (size_t i = 0; i < m->n_live; i++) {
		const struct table *t = table_find(c, m->v[i].table);
		if (t && t->meta &&
		    rest_before(t->meta, &m->v[i].ask->commit) != REST_NOT_BEFORE)
			return true;
	}
	return false;
}

/* A client that is told that nothing happened deletes its files: not while snapshots of them are live. */
static void spare(struct core *c, const struct multi *m, struct err *err)
{
	if (status_info(err->st)->effect == EFFECT_CLEAN && err->st != ST_OVERLOADED &&
	    partly_before(c, m))
		rest_unknown(err);
	else if (err->st == ST_FENCED && !m->planned)
		err->st = ST_OVERLOADED; /* it was not judged: no conflict */
}

/* The answer names the table: by its place in the message, and for people by its name. */
static void answer(struct core *c, struct part *p, const struct err *why)
{
	struct err err = *why;
	if (p->m->r->answered)
		return;
	spare(c, p->m, &err);
	size_t n = strlen(err.msg);
	if (err.st == ST_TABLE_GONE)
		err.st = ST_NO_SUCH_TABLE;
	err_prefix(&err, "table-changes[%zu]", p->number);
	if (!p->ask->creates) /* those of creations name it */
		snprintf(err.msg + n, sizeof err.msg - n, " (table %.*s)", STRV_ARG(p->ask->name));
	request_fail(c, p->m->r, &err);
}

void multi_fail(struct core *c, struct part *p, const struct err *err)
{
	answer(c, p, err);
	end(c, p->m);
}

void multi_failed(struct core *c, struct batch *b, const struct err *err)
{
	struct part *p = b->part;
	multi_fail(c, p, err);
	part_drop(c, p);
}

void multi_back(struct core *c, struct batch *b)
{
	struct part *p = b->part;
	p->batch = NULL;
	b->part = NULL;
	p->m->again = true;
	end(c, p->m);
}

void multi_unqueued(struct core *c, struct part *p, const struct err *why)
{
	p->queued = NULL;
	if (why)
		multi_fail(c, p, why);
}

void multi_interrupt(struct core *c, struct table *t, enum status st, const char *why)
{
	struct part *p = t->batch ? t->batch->part : NULL;
	struct err err = {0};
	if (!p || p->m->r->sent || p->m->ending)
		return;
	err_set(&err, st, "", "%s", why);
	multi_fail(c, p, &err);
}

/* ------------------------------------------------------------------ reserving */

static void judge(struct core *c, struct multi *m);

/* Nobody waits behind a table that is held for one that is still being loaded. true: one is. */
static bool loading(struct core *c, struct multi *m)
{
	bool any = false;
	for (size_t i = 0; i < m->n_live; i++) {
		struct table *t = table_open(c, m->v[i].table);
		if (t->state == TABLE_LOADING && !any) {
			any = true;
			list_push_back(&t->waiting, &m->r->wait);
		}
	}
	return any;
}

/* The next table, when the one before is held. */
static void reserve(struct core *c, struct multi *m)
{
	struct request *r = m->r;
	if (m->ending || r->answered || (m->asked == 0 && loading(c, m)))
		return;
	if (r->in.u.commit_tables.refused) {
		struct err err = *r->in.u.commit_tables.refused;
		spare(c, m, &err);
		request_fail(c, r, &err);
		return;
	}
	while (!m->ending && !r->answered && m->asked < m->n_live) {
		struct part *p = &m->v[m->asked];
		struct table *t = table_open(c, p->table);
		struct err err = {0};
		if (t->state == TABLE_LOADING) {
			list_push_back(&t->waiting, &r->wait);
			return;
		}
		if (t->state == TABLE_HALTED)
			err_set(&err, ST_TABLE_HALTED, "", "%s", t->halt.msg);
		else if (table_is(c, t, p->ask->incarnation, &err) &&
			 t->n_queue >= c->conf.queue_max)
			err_set(&err, ST_OVERLOADED, "", "the table's queue is full");
		if (err.st != ST_OK) {
			multi_fail(c, p, &err);
			return;
		}
		m->asked++;
		p->entry = (struct entry){.kind = ENTRY_PART, .part = p};
		list_init(&p->entry.node);
		p->queued = t;
		if (fair_arrived(&t->fair, c->now_us))
			table_enqueue_first(c, t, &p->entry);
		else
			table_enqueue(c, t, &p->entry);
		if (!MUTANT("reserve-all-at-once"))
			return;
	}
	if (!m->ending && !r->answered && m->n_live == 0)
		judge(c, m);
}

void multi_reserved(struct core *c, struct batch *b)
{
	struct part *p = b->part;
	struct multi *m = p->m;
	p->batch = b;
	b->ask = &p->ask->commit;
	if (m->ending || m->r->answered) {
		end(c, m);
		return;
	}
	if (++m->reserved == m->n_live)
		judge(c, m);
	else if (!MUTANT("reserve-all-at-once"))
		reserve(c, m);
}

/* ------------------------------------------------------------------ planning */

static void decide(struct core *c, struct multi *m);

static void part_ready(struct core *c, struct part *p)
{
	struct multi *m = p->m;
	p->ready = true;
	if (!m->planned || m->ending)
		return;
	ASSERT(m->open > 0);
	if (--m->open == 0)
		decide(c, m);
}

void multi_ready(struct core *c, struct batch *b)
{
	batch_move(c, b, BATCH_READY);
	part_ready(c, b->part);
}

void multi_create_ready(struct core *c, struct part *p)
{
	part_ready(c, p);
}

/* Whether this very request was committed before and its answer was lost. A snapshot or the uuid of a
 * creation tells; other changes leave nothing that could be known again, but those that came with it
 * prove them as well, for they are one statement. Unless something says otherwise: then nobody knows,
 * and the client must neither repeat nor clean up. true: it was answered. */
static bool done_before(struct core *c, struct multi *m)
{
	struct part *odd = m->n_live < m->n ? &m->v[m->n_live] : NULL;
	bool done = false;
	struct err err = {0};
	for (size_t i = m->n_live; i-- > 0;) {
		struct part *p = &m->v[i];
		done |= p->judged == REST_DONE;
		if (p->judged == REST_REFUSED || p->judged == REST_FRESH)
			odd = p;
	}
	if (!done)
		return false;
	if (!odd) {
		request_rpc(c, m->r, NULL);
		end(c, m);
	} else if (odd->ask->creates && m->r->in.u.commit_tables.may_look) {
		/* Of two copies of one request the second had looked before the first was done. */
		request_status(c, m->r, ST_ALREADY_EXISTS, "", "Table already exists");
		end(c, m);
	} else {
		rest_unknown(&err);
		multi_fail(c, odd, &err);
	}
	return true;
}

static void refuse(struct core *c, struct part *p)
{
	struct table *t = p->batch->table;
	if (p->err.st == ST_COMMIT_FAILED) {
		c->counters.rest_refused++;
		fair_refused(&t->fair, c->now_us, c->conf.fairness_us);
	}
	multi_fail(c, p, &p->err);
}

/* All tables are held: requirements and updates of all, before anything is written. */
static void judge(struct core *c, struct multi *m)
{
	bool any = m->n_live < m->n;
	for (size_t i = 0; i < m->n_live; i++) {
		struct part *p = &m->v[i];
		batch_move(c, p->batch, BATCH_GATHERING);
		p->err = (struct err){0};
		p->ready = false;
		p->judged = rest_judge(c, p->batch, &p->err);
		any |= p->judged == REST_FRESH;
	}
	if (done_before(c, m))
		return;
	for (size_t i = 0; i < m->n_live; i++)
		if (m->v[i].judged == REST_REFUSED) {
			refuse(c, &m->v[i]);
			return;
		}
	if (!any) {
		request_rpc(c, m->r, NULL);
		end(c, m);
		return;
	}
	m->open = m->n_live + 1; /* one more: none is decided before all have been begun */
	for (size_t i = m->n_live; i < m->n; i++)
		m->open += !m->v[i].ready;
	m->planned = true;
	bool first = !m->creating;
	m->creating = true;
	for (size_t i = m->n_live; first && i < m->n && !m->ending; i++)
		m->v[i].creation = create_part(c, &m->v[i], &m->v[i].ask->create);
	for (size_t i = 0; i < m->n_live && !m->ending; i++) {
		struct batch *b = m->v[i].batch;
		if (m->v[i].judged == REST_SAME)
			multi_ready(c, b);
		else
			b->gather.run(c, &b->gather);
	}
	if (--m->open == 0 && !m->ending)
		decide(c, m);
}

/* ------------------------------------------------------------------ the decision */

static void send(struct core *c, struct multi *m);
static void look(struct core *c, struct multi *m);

static void send_again(struct core *c, struct timer *timer)
{
	send(c, CONTAINER_OF(timer, struct multi, timer));
}

static void look_again(struct core *c, struct timer *timer)
{
	look(c, CONTAINER_OF(timer, struct multi, timer));
}

static void move_all(struct core *c, struct multi *m, enum batch_state to)
{
	for (size_t i = 0; i < m->n_live; i++)
		batch_move(c, m->v[i].batch, to);
}

static void published(struct core *c, struct multi *m)
{
	for (size_t i = 0; i < m->n_live; i++) {
		struct part *p = &m->v[i];
		struct batch *b = p->batch;
		if (p->judged == REST_SAME || (MUTANT("first-alone-advances") && i > 0)) {
			part_drop(c, p);
			continue;
		}
		p->batch = NULL;
		b->part = NULL;
		batch_published(c, b);
	}
	for (size_t i = m->n_live; i < m->n; i++) {
		create_told(c, m->v[i].creation);
		m->v[i].creation = NULL;
	}
	request_remembered(c, m->r);
	m->again = false;
	ended(c, m);
}

/* PostgreSQL answered with an error, or nothing was sent: nothing was written. */
static void not_taken(struct core *c, struct multi *m, const struct sql_result *q)
{
	struct err err = {0};
	core_log(c, 4, "tables.commit", NULL, NULL, &q->err);
	if (m->r->answered) {
		end(c, m);
	} else if (q->err.st == ST_PLACE_TAKEN) {
		/* Judged after whether it is there already: an earlier send has done nothing. */
		m->r->sent = false;
		m->lost = false;
		request_fail(c, m->r, &q->err);
		end(c, m);
	} else if (!q->sent && q->err.st == ST_LIMIT && !m->lost) {
		err_set(&err, ST_TOO_LARGE, "table-changes", "%s", q->err.msg);
		request_fail(c, m->r, &err);
		end(c, m);
	} else if (q->sent && q->err.st != ST_UNAVAILABLE && ++m->refusals >= REFUSALS_MAX) {
		err_set(&err, m->lost ? ST_COMMIT_UNKNOWN : ST_OVERLOADED, "",
			"PostgreSQL refuses the commit, SQLSTATE %.5s; the log has the detail",
			q->err.detail[0] ? q->err.detail : "unknown");
		request_fail(c, m->r, &err);
		end(c, m);
	} else {
		core_timer(c, &m->timer, c->now_us + c->conf.retry_us, send_again);
	}
}

/* Refused, and nothing was written: by the guard of a table, or because a creation cannot be. */
static void refused(struct core *c, struct multi *m, const struct sql_result *q)
{
	struct part *p = &m->v[q->at < m->n ? q->at : 0];
	struct err err = {0};
	/* The outcome is known: whoever answers from now on may say so. */
	m->r->sent = false;
	m->lost = false;
	c->counters.conflicts += p->creation != NULL;
	if (!p->creation) {
		publish_refused(c, p->batch);
		return;
	}
	create_verdict(p->creation, q->created, &err);
	multi_fail(c, p, &err);
}

/* Another attempt of this request was decided, or an earlier send of this very statement. */
static void key_taken(struct core *c, struct multi *m)
{
	m->r->sent = false;
	m->lost = false;
	request_status(c, m->r, ST_KEY_DECIDED, "", "");
	end(c, m);
}

static void resolved(struct core *c, struct table *t, enum status st)
{
	struct multi *m = t->batch->part->m;
	/* Dropped: the row tells all the same. */
	m->gone = st;
	look(c, m);
}

static void lost(struct core *c, struct multi *m)
{
	c->counters.unknown_outcomes++;
	m->lost = true;
	if (m->n_live == 0) {
		/* The statement knows its own batch rows. */
		core_timer(c, &m->timer, c->now_us + c->conf.retry_us, send_again);
		return;
	}
	m->gone = ST_OK;
	move_all(c, m, BATCH_RESOLVING);
	struct table *t = m->v[0].batch->table;
	if (MUTANT("read-instead-of-bump"))
		look(c, m);
	else
		table_take(c, t, t->epoch, resolved);
}

static void decided(struct core *c, void *ctx, const struct event *ev)
{
	struct multi *m = ctx;
	const struct sql_result *q = ev->u.done.sql;
	if (q->lost)
		lost(c, m);
	else if (core_sql_clean_failure(q))
		not_taken(c, m, q);
	else if (q->verdict == SQL_APPLIED)
		published(c, m);
	else if (q->verdict == SQL_KEY_TAKEN)
		key_taken(c, m);
	else
		refused(c, m, q);
}

static void send(struct core *c, struct multi *m)
{
	struct effect *e = core_emit(c, FX_SQL, decided, m);
	e->u.sql.kind = SQL_TABLES_COMMIT;
	e->u.sql.u.tables = &m->sql;
}

/* A table that is not changed is judged alone. */
static void only_guard(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	(void)c;
	b->publish = (struct sql_publish){.row = {.table = t->id,
						  .incarnation = t->incarnation,
						  .epoch = t->epoch,
						  .base_version = t->version,
						  .batch = b->id,
						  .metadata_location = STRV("")}};
}

static void decide(struct core *c, struct multi *m)
{
	const struct sql_publish **parts = m->parts;
	const struct sql_table_create **creates = m->creates;
	for (size_t i = 0; i < m->n_live; i++) {
		if (m->v[i].judged == REST_SAME)
			only_guard(c, m->v[i].batch);
		parts[i] = &m->v[i].batch->publish;
	}
	for (size_t i = m->n_live; i < m->n; i++) {
		create_asked(c, m->v[i].creation);
		creates[i - m->n_live] = create_row(m->v[i].creation);
	}
	m->sql = (struct sql_tables_commit){parts, m->n_live, creates, m->n - m->n_live,
					    m->r->in.idem};
	move_all(c, m, BATCH_PUBLISHING);
	m->refusals = 0;
	m->r->sent = true;
	send(c, m);
}

/* ------------------------------------------------------------------ the answer was lost */

static const char *lost_why(enum status st)
{
	return st == ST_FENCED ? "another daemon holds the table"
			       : "the table was dropped or replaced";
}

static void not_published(struct core *c, struct multi *m)
{
	struct part *p = &m->v[0];
	struct batch *b = p->batch;
	struct table *t = b->table;
	/* It is certain now: the first table's guard can never hold again. */
	m->r->sent = false;
	m->lost = false;
	if (m->gone != ST_OK) {
		struct err err = {0};
		c->counters.fenced += m->gone == ST_FENCED;
		err_set(&err, m->gone, "", "%s", lost_why(m->gone));
		multi_fail(c, p, &err);
		if (b->ledgered)
			publish_unledger(c, t->id, b->id, b->ledger.epoch);
		p->batch = NULL;
		b->part = NULL;
		batch_drop(c, b);
		table_drop(c, t, m->gone, lost_why(m->gone));
	} else if (t->version != b->publish.row.base_version ||
		   !strv_eq(t->head_location, t->location)) {
		publish_changed(c, b, t->version);
	} else {
		m->again = true;
		end(c, m);
	}
}

static void looked(struct core *c, void *ctx, const struct event *ev)
{
	struct multi *m = ctx;
	const struct sql_result *q = ev->u.done.sql;
	if (q->lost || core_sql_clean_failure(q)) {
		core_timer(c, &m->timer, c->now_us + c->conf.retry_us, look_again);
	} else if (q->found) {
		struct table *t = m->v[0].batch->table;
		enum status gone = m->gone;
		table_hold(t);
		published(c, m);
		if (gone != ST_OK && !t->gone && !t->batch)
			table_drop(c, t, gone, lost_why(gone));
		table_let(t);
	} else {
		not_published(c, m);
	}
}

/* Any row of it tells: a table that was only judged has none. */
static void look(struct core *c, struct multi *m)
{
	struct sql_batch_look l = {0};
	for (size_t i = 0; i < m->n; i++) {
		const struct part *p = &m->v[i];
		if (p->creation)
			l = (struct sql_batch_look){create_row(p->creation)->table,
						    create_row(p->creation)->row.batch};
		else if (p->judged == REST_FRESH)
			l = (struct sql_batch_look){p->table, p->batch->id};
		else
			continue;
		break;
	}
	struct effect *e = core_emit(c, FX_SQL, looked, m);
	e->u.sql.kind = SQL_BATCH_LOOK;
	e->u.sql.u.look = l;
}

/* ------------------------------------------------------------------ the request */

static int by_table(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->ask->creates != y->ask->creates)
		return x->ask->creates ? 1 : -1;
	int d = x->ask->creates ? 0 : uuid_cmp(x->table.u, y->table.u);
	return d ? d : x->number < y->number ? -1 : 1;
}

/* NULL: it was answered. */
static struct multi *multi_new(struct core *c, struct request *r)
{
	size_t n = r->in.u.commit_tables.n;
	if (n == 0 || n > CORE_PARTS_MAX) {
		struct err err = {0};
		err_set(&err, ST_TOO_LARGE, "table-changes", "names %zu tables, at most %d may be",
			n, CORE_PARTS_MAX);
		request_fail(c, r, &err);
		return NULL;
	}
	struct multi *m = core_keep(c, sizeof *m, multi_fini);
	arena_init(&m->arena, (size_t)64 << 20);
	m->v = arena_calloc(&m->arena, n, sizeof *m->v);
	m->parts = arena_calloc(&m->arena, n, sizeof(void *));
	m->creates = arena_calloc(&m->arena, n, sizeof(void *));
	ASSERT(m->v && m->parts && m->creates);
	m->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct ask_part *a = &r->in.u.commit_tables.v[i];
		m->v[i] = (struct part){.m = m, .ask = a, .number = i, .table = a->table};
		m->n_live += !a->creates;
	}
	qsort(m->v, n, sizeof *m->v, by_table);
	for (size_t i = 1; i < m->n_live; i++)
		if (uuid_eq(m->v[i].table.u, m->v[i - 1].table.u)) {
			core_unkeep(m);
			request_status(c, r, ST_BAD_REQUEST, "table-changes",
				       "a table is named twice: by a name it had and by its new one");
			return NULL;
		}
	m->r = r;
	r->multi = m;
	request_hold(r);
	return m;
}

void multi_run(struct core *c, struct request *r)
{
	struct multi *m = r->multi ? r->multi : multi_new(c, r);
	r->table = NULL;
	if (m)
		reserve(c, m);
}
