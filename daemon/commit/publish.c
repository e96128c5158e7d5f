/* The durable half of a batch: ledger rows, the wave of PUTs, the one statement that decides, and
 * finding out what happened when its answer is lost. */
#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"

#include "proto/iceberg/metadata.h"
#include "proto/iceberg/place.h"

/* ------------------------------------------------------------------ attempts that are over */

struct unledger {
	struct sql_unledger u;
	struct timer timer;
};

static void unledger_send(struct core *c, struct timer *timer);

static void unledger_done(struct core *c, void *ctx, const struct event *ev)
{
	struct unledger *u = ctx;
	const struct sql_result *r = ev->u.done.sql;
	c->background--;
	if (r->lost || core_sql_clean_failure(r)) {
		/* Idempotent: the rows are queued once, however often this is sent. */
		core_timer(c, &u->timer, c->now_us + c->conf.retry_us, unledger_send);
		return;
	}
	core_timer_stop(&u->timer);
	core_unkeep(u);
}

static void unledger_send(struct core *c, struct timer *timer)
{
	struct unledger *u = CONTAINER_OF(timer, struct unledger, timer);
	c->background++;
	struct effect *e = core_emit(c, FX_SQL, unledger_done, u);
	e->u.sql.kind = SQL_UNLEDGER;
	e->u.sql.u.unledger = u->u;
}

/* Only for an attempt whose publish was never sent, or is resolved. */
void publish_unledger(struct core *c, struct table_id table, struct batch_id id, int64_t epoch)
{
	struct unledger *u = core_keep(c, sizeof *u, NULL);
	u->u = (struct sql_unledger){table, id, epoch};
	unledger_send(c, &u->timer);
}

static void drop_attempt(struct core *c, struct batch *b)
{
	if (b->ledgered)
		publish_unledger(c, b->table->id, b->id, b->ledger.epoch);
	batch_back(c, b);
}

static void put_wave(struct core *c, struct batch *b);

/* ------------------------------------------------------------------ the statement */

/* What nothing names once this is published. */
static bool garbage(struct batch *b)
{
	const struct encode_out *out = b->out;
	size_t n = out->n_expired;
	for (size_t i = 0; !b->ask && i < b->n; i++)
		n += b->txns[i]->n_spent;
	struct strv *v = arena_calloc(&b->arena, n ? n : 1, sizeof *v);
	if (!v)
		return false;
	n = 0;
	for (size_t i = 0; i < out->n_expired; i++)
		v[n++] = out->expired[i];
	/* Those of the others are queued with all else that they have staged. */
	for (size_t i = 0; !b->ask && !MUTANT("spent-forgotten") && i < b->n; i++)
		for (size_t k = 0; b->states[i] == TXN_DB_COMMITTED && k < b->txns[i]->n_spent; k++)
			v[n++] = b->txns[i]->spent[k];
	b->publish.garbage = v;
	b->publish.n_garbage = n;
	return true;
}

/* Only a client's commit can move a table. */
static bool places(struct batch *b)
{
	struct strv was[PLACE_MAX], now[PLACE_MAX];
	if (!b->ask || !b->base)
		return true;
	size_t n_was = place_list(b->base, was), n = place_list(b->out->metadata, now);
	bool same = n == n_was;
	for (size_t i = 0; same && i < n; i++)
		same = strv_eq(was[i], now[i]);
	if (!same)
		b->publish.n_places = n;
	return same || place_copy(&b->arena, now, n, &b->publish.places);
}

void publish_prepare(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	struct encode_out *out = b->out;
	size_t n = out->n_objects;
	struct strv *paths = arena_calloc(&b->arena, n ? n : 1, sizeof *paths);
	b->ids = arena_calloc(&b->arena, b->n ? b->n : 1, sizeof *b->ids);
	b->states = arena_calloc(&b->arena, b->n ? b->n : 1, sizeof *b->states);
	ASSERT(paths && b->ids && b->states);
	for (size_t i = 0; i < n; i++)
		paths[i] = out->objects[i].path;
	for (size_t i = 0; i < b->n; i++) {
		b->ids[i] = b->plan_txns[i].id;
		b->states[i] = (uint8_t)b->plan_txns[i].state;
	}
	struct strv location = b->in.metadata_path;
	if (!out->changed)
		ASSERT(arena_strv(&b->arena, t->location, &location));
	b->ledger = (struct sql_ledger){.table = t->id,
					.incarnation = t->incarnation,
					.epoch = t->epoch,
					.batch = b->id,
					.holder = c->conf.daemon,
					.paths = paths,
					.n_paths = n};
	b->publish = (struct sql_publish){
		.row = {.table = t->id,
			.incarnation = t->incarnation,
			.batch_no = b->no,
			.batch = b->id,
			.epoch = t->epoch,
			.base_version = t->version,
			.txns = b->ids,
			.txn_states = b->states,
			.n_txns = b->n,
			.snapshots = out->snapshots,
			.n_snapshots = out->n_snapshots,
			.first_row_id = out->first_row_id,
			.added_rows = out->added_rows,
			.metadata_location = location},
		.last_seq = out->last_seq,
		.next_row_id = out->next_row_id,
		.objects = paths,
		.n_objects = n,
	};
	if (b->rest)
		b->publish.idem = b->rest->in.idem;
	bool ok = garbage(b) && places(b) && (b->ask || answer_pack(c, b));
	if (!ok) {
		struct err err = {0};
		err_set(&err, ST_LIMIT, "", "the outcomes exceed the memory limit");
		batch_failed(c, b, &err);
		return;
	}
	if (n == 0) {
		publish_send(c, b);
		return;
	}
	batch_move(c, b, BATCH_LEDGER);
	if (MUTANT("put-before-ledger"))
		put_wave(c, b);
	else
		publish_ledger(c, b);
}

/* ------------------------------------------------------------------ ledger */

static void resume(struct core *c, struct timer *timer)
{
	struct batch *b = CONTAINER_OF(timer, struct batch, timer);
	if (multi_over(c, b))
		return;
	if (b->resume == BATCH_LEDGER) {
		batch_move(c, b, BATCH_LEDGER);
		publish_ledger(c, b);
	} else {
		publish_send(c, b);
	}
}

static void pause(struct core *c, struct batch *b, enum batch_state then)
{
	b->resume = then;
	batch_move(c, b, BATCH_PAUSED);
	core_timer(c, &b->timer, c->now_us + c->conf.retry_us, resume);
}

/* Refusals that do not pass by themselves, in a row, before the table halts. */
#define REFUSALS_MAX 5

/* A server that refuses the very same statement again and again (a right was taken away, a function
 * is gone) would be asked for ever and nobody would see it: the table halts. true: b is over. */
static bool hopeless(struct core *c, struct batch *b, const struct sql_result *r)
{
	struct table *t = b->table;
	struct err err = {0};
	if (!r->sent && r->err.st == ST_LIMIT) {
		/* Larger than a statement may be. */
		err = r->err;
		if (b->ledgered)
			publish_unledger(c, t->id, b->id, b->ledger.epoch);
		batch_failed(c, b, &err);
		return true;
	}
	if (!r->sent || r->err.st == ST_UNAVAILABLE || ++b->refusals < REFUSALS_MAX)
		return false;
	err_set(&err, ST_TABLE_HALTED, "batch",
		"PostgreSQL refuses the batch, SQLSTATE %.5s; the log has the detail",
		r->err.detail[0] ? r->err.detail : "unknown");
	if (b->ledgered)
		publish_unledger(c, t->id, b->id, b->ledger.epoch);
	table_blame(t, b, STRV("PostgreSQL"));
	batch_back(c, b);
	table_halt(c, t, &err);
	return true;
}

static void refused_done(struct core *c, void *ctx, const struct event *ev);

/* The guard did not hold: somebody else wrote the head. Read what it says now. */
void publish_refused(struct core *c, struct batch *b)
{
	c->counters.conflicts++;
	b->holds++;
	struct effect *e = core_emit(c, FX_SQL, refused_done, b);
	e->u.sql.kind = SQL_HEAD_READ;
	e->u.sql.u.table = b->table->id;
}

static void refused_again(struct core *c, struct timer *timer)
{
	publish_refused(c, CONTAINER_OF(timer, struct batch, timer));
}

static void forget_table(struct core *c, struct batch *b, enum status st, const char *why)
{
	struct table *t = b->table;
	struct err err = {0};
	if (st == ST_FENCED)
		c->counters.fenced++;
	err_set(&err, st, "", "%s", why);
	if (b->part)
		multi_fail(c, b->part, &err);
	if (b->ledgered)
		publish_unledger(c, t->id, b->id, b->ledger.epoch);
	batch_back(c, b);
	core_log(c, 4, "table.forgotten", t, NULL, NULL);
	table_drop(c, t, st, why);
}

struct recheck {
	struct batch *b;
	size_t i;
};

/* A transaction that the guard found not sealed is final: its rows say how. */
static void recheck_done(struct core *c, void *ctx, const struct event *ev)
{
	struct recheck *k = ctx;
	struct batch *b = k->b;
	const struct sql_result *r = ev->u.done.sql;
	struct txn *x = b->txns[k->i];
	if (!r->lost && !core_sql_clean_failure(r) && x &&
	    r->item.st == ST_TXN_UNKNOWN) {
		/* Planned again it would be refused for ever, and all that share its batches. */
		b->txns[k->i] = NULL;
		txn_vanish(c, x);
	} else if (!r->lost && !core_sql_clean_failure(r) && x) {
		const struct sql_item_result *item = &r->item;
		bool gone = item->st != ST_OK;
		bool final = !gone && item->row.state != TXN_DB_OPEN &&
			     item->row.state != TXN_DB_SEALED;
		struct bytes outcome;
		if (final && answer_item(&x->arena, item, &outcome)) {
			b->txns[k->i] = NULL;
			struct bytes kept;
			if (arena_bytes(&x->arena, outcome, &kept))
				outcome = kept;
			txn_final(c, x, outcome);
		}
	}
	core_unkeep(k);
	b->holds--;
	if (--b->rechecks == 0) {
		/* Final ones are out; the rest is planned again. */
		size_t n = 0;
		for (size_t i = 0; i < b->n; i++)
			if (b->txns[i])
				b->txns[n++] = b->txns[i];
		b->n = n;
		drop_attempt(c, b);
	}
}

static void recheck(struct core *c, struct batch *b)
{
	if (b->n == 0) {
		drop_attempt(c, b);
		return;
	}
	b->rechecks = b->n;
	for (size_t i = 0; i < b->n; i++) {
		struct recheck *k = core_keep(c, sizeof *k, NULL);
		*k = (struct recheck){b, i};
		b->holds++;
		struct effect *e = core_emit(c, FX_SQL, recheck_done, k);
		e->u.sql.kind = SQL_TXN_READ;
		e->u.sql.u.txn = b->txns[i]->id;
	}
}

void publish_changed(struct core *c, struct batch *b, int64_t version)
{
	struct table *t = b->table;
	struct err err = {0};
	err_set(&err, ST_TABLE_HALTED, "head",
		"the table's head was changed from outside: version %lld, expected %lld",
		(long long)version, (long long)b->publish.row.base_version);
	if (b->ledgered)
		publish_unledger(c, t->id, b->id, b->ledger.epoch);
	table_blame(t, b, STRV("head"));
	batch_back(c, b);
	table_halt(c, t, &err);
}

static void refused_done(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	struct table *t = b->table;
	const struct sql_result *r = ev->u.done.sql;
	b->holds--;
	if (multi_over(c, b))
		return;
	if (r->lost || core_sql_clean_failure(r)) {
		core_timer(c, &b->timer, c->now_us + c->conf.retry_us, refused_again);
		return;
	}
	if (!r->found || r->head.incarnation != t->incarnation) {
		forget_table(c, b, ST_TABLE_GONE, "the table was dropped or replaced");
	} else if (r->head.epoch != t->epoch) {
		forget_table(c, b, ST_FENCED, "another daemon holds the table");
	} else if (r->head.version != t->version ||
		   !strv_eq(r->head.metadata_location, t->location)) {
		publish_changed(c, b, r->head.version);
	} else if (b->state == BATCH_LEDGER) {
		/* The guard of the ledger judges the head alone; it holds now. */
		publish_ledger(c, b);
	} else {
		recheck(c, b);
	}
}

static void ledgered(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	const struct sql_result *r = ev->u.done.sql;
	b->holds--;
	/* A lost reply may have written the rows; the statement is repeated with the same rows. */
	b->ledgered |= r->lost || !core_sql_clean_failure(r);
	if (multi_over(c, b))
		return;
	if (r->lost || core_sql_clean_failure(r)) {
		if (r->lost || !hopeless(c, b, r))
			pause(c, b, BATCH_LEDGER);
		return;
	}
	if (r->verdict != SQL_APPLIED) {
		b->ledgered = false;
		publish_refused(c, b);
		return;
	}
	put_wave(c, b);
}

void publish_ledger(struct core *c, struct batch *b)
{
	b->holds++;
	struct effect *e = core_emit(c, FX_SQL, ledgered, b);
	e->u.sql.kind = SQL_LEDGER;
	e->u.sql.u.ledger = b->ledger;
}

/* ------------------------------------------------------------------ the wave */

static void put_done(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	const struct err *err = ev->u.done.err;
	b->holds--;
	if (err->st != ST_OK && b->put_err.st == ST_OK)
		b->put_err = *err;
	if (--b->puts > 0 || multi_over(c, b))
		return;
	if (b->put_err.st == ST_OK) {
		publish_send(c, b);
		return;
	}
	/* Names are never used again: the objects of this attempt are orphans on the ledger. */
	core_log(c, 4, "batch.put", b->table, NULL, &b->put_err);
	drop_attempt(c, b);
}

static void put_wave(struct core *c, struct batch *b)
{
	batch_move(c, b, BATCH_WRITING);
	b->puts = b->out->n_objects;
	for (size_t i = 0; i < b->out->n_objects; i++) {
		b->holds++;
		struct effect *e = core_emit(c, FX_PUT, put_done, b);
		e->u.put.path = b->out->objects[i].path;
		e->u.put.content = b->out->objects[i].content;
	}
}

/* ------------------------------------------------------------------ the decision */

static void published(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	const struct sql_result *r = ev->u.done.sql;
	b->holds--;
	if (r->lost) {
		publish_resolve(c, b);
	} else if (r->err.st == ST_PLACE_TAKEN && b->rest) {
		if (b->ledgered)
			publish_unledger(c, b->table->id, b->id, b->ledger.epoch);
		rest_failed(c, b, &r->err);
	} else if (core_sql_clean_failure(r)) {
		core_log(c, 4, "batch.publish", b->table, NULL, &r->err);
		if (!hopeless(c, b, r))
			pause(c, b, BATCH_PUBLISHING);
	} else if (r->verdict == SQL_APPLIED) {
		batch_published(c, b);
	} else if (r->verdict == SQL_KEY_TAKEN) {
		if (b->ledgered)
			publish_unledger(c, b->table->id, b->id, b->ledger.epoch);
		rest_taken(c, b);
	} else {
		publish_refused(c, b);
	}
}

void publish_send(struct core *c, struct batch *b)
{
	if (b->part) {
		multi_ready(c, b);
		return;
	}
	batch_move(c, b, BATCH_PUBLISHING);
	for (size_t i = 0; MUTANT("reply-before-row") && i < b->n; i++)
		for (struct list *n; (n = list_pop_front(&b->txns[i]->waiters));)
			finish_outcome(c, LIST_ITEM(n, struct request, wait), b->outcomes[i]);
	if (b->rest)
		b->rest->sent = true;
	b->holds++;
	struct effect *e = core_emit(c, FX_SQL, published, b);
	e->u.sql.kind = SQL_PUBLISH;
	e->u.sql.u.publish = &b->publish;
}

/* ------------------------------------------------------------------ the answer was lost */

static void look_again(struct core *c, struct timer *timer);

static void looked(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	struct table *t = b->table;
	const struct sql_result *r = ev->u.done.sql;
	b->holds--;
	if (r->lost || core_sql_clean_failure(r)) {
		core_timer(c, &b->timer, c->now_us + c->conf.retry_us, look_again);
		return;
	}
	if (r->found) {
		bool fenced = b->fenced;
		batch_published(c, b);
		if (fenced && !t->batch)
			table_drop(c, t, ST_FENCED, "another daemon holds the table");
	} else if (b->fenced) {
		forget_table(c, b, ST_FENCED, "another daemon holds the table");
	} else if (t->version != b->publish.row.base_version ||
		   !strv_eq(t->head_location, t->location)) {
		publish_changed(c, b, t->version);
	} else {
		drop_attempt(c, b);
	}
}

static void look(struct core *c, struct batch *b)
{
	b->holds++;
	struct effect *e = core_emit(c, FX_SQL, looked, b);
	e->u.sql.kind = SQL_BATCH_LOOK;
	e->u.sql.u.look = (struct sql_batch_look){b->table->id, b->id};
}

static void look_again(struct core *c, struct timer *timer)
{
	look(c, CONTAINER_OF(timer, struct batch, timer));
}

/* The bump waited for the old transaction: only now is a look final. */
static void resolved(struct core *c, struct table *t, enum status st)
{
	struct batch *b = t->batch;
	if (st == ST_TABLE_GONE) {
		/* Dropped: the row of the batch, if it came to be, tells; the head is gone. */
		b->fenced = true;
		look(c, b);
		return;
	}
	b->fenced = st == ST_FENCED;
	look(c, b);
}

void publish_resolve(struct core *c, struct batch *b)
{
	c->counters.unknown_outcomes++;
	batch_move(c, b, BATCH_RESOLVING);
	if (MUTANT("read-instead-of-bump")) {
		look(c, b);
		return;
	}
	table_take(c, b->table, b->table->epoch, resolved);
}
