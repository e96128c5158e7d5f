/* Deletes queued objects, one table after the other: claim them in a commit of their own, only then
 * read the head, look for each path in every snapshot of that metadata, and delete what none of them
 * names. Whoever put a path into the queue did not know whether it is live; this look does. Which tables
 * have something due the rows tell, loaded or not. */
#include <stdlib.h>

#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/walk.h"

#include "proto/iceberg/metadata.h"

/* One round: steps of one table each, one after the other. */
#define ROUND_STEPS 256
#define STEP_PATHS 256
#define STEP_BYTES ((size_t)64 << 20)
/* Named by one statement. */
#define DUE_MAX 64
/* Under way at once: the writers' objects need the store too. */
#define DELETES_MAX 16
#define HORIZON_US INT64_C(60000000)
#define CREATE_SLACK_MS 1000

enum fate {
	FATE_DEAD,   /* nothing names it: it is deleted */
	FATE_LIVE,   /* it stays, the row goes */
	FATE_UNSURE, /* a DELETE without an answer: the row stays claimed */
	FATE_BACK,   /* nothing was done: back into the queue */
	FATE_COUNT
};

struct path {
	struct strv text;
	enum fate fate;
};

struct cleaner {
	struct timer timer;
	struct core *core;
	int steps;   /* of this round */
	bool useful; /* something was done since the start of the list */
	bool ended;  /* the list has come to its end */
	/* What is due: asked from `from`, and where the list goes on; nil: at its start. */
	struct table_id due[DUE_MAX];
	bool gone[DUE_MAX];
	size_t n_due, i_due;
	struct table_id from, after;
	int64_t horizon_us; /* when it is due */

	/* The step */
	bool busy;
	struct table_id table;
	bool none; /* it has no head: nothing could name its paths */
	int64_t claim_us; /* when the claim was sent */
	struct arena arena;
	struct path *paths; /* ascending */
	struct strv *sorted; /* room for as many of each fate */
	size_t n;
	struct strv location; /* of the metadata */
	struct metadata *meta;
	struct walk walk;
	struct gather gather;
	struct needs needs;
	size_t deletes; /* under way */
	size_t next;	/* to delete */
	struct sql_clean_done done;
};

static void start_round(struct core *c, struct timer *t);
static void go_on(struct core *c, struct cleaner *k);

static void round_over(struct core *c, struct cleaner *k)
{
	k->n_due = k->i_due = 0;
	c->background--;
	core_timer(c, &k->timer, c->now_us + c->conf.cleaner_interval_us, start_round);
}

static void step_release(struct cleaner *k)
{
	metadata_unref(k->meta);
	k->meta = NULL;
	needs_release(&k->needs);
	if (k->busy)
		arena_fini(&k->arena);
	k->busy = false;
}

static void step_over(struct core *c, struct cleaner *k)
{
	step_release(k);
	go_on(c, k);
}

/* PostgreSQL is away: not before the next round. What is claimed comes up again after the tombstone
 * time. */
static void step_lost(struct core *c, struct cleaner *k)
{
	step_release(k);
	round_over(c, k);
}

/* After the tombstone time another daemon may take the claims over, and what it has deleted may be staged
 * again: a step that takes long deletes nothing more and says nothing, long before that. */
static bool outdated(const struct core *c, const struct cleaner *k)
{
	int64_t life = c->conf.cleaner_tombstone_ms * 1000;
	return life > 0 && c->now_us - k->claim_us >= life / 2 && !MUTANT("claims-for-ever");
}

/* The table for the log; of one that is not loaded the message tells the id. */
static const struct table *named(struct core *c, const struct cleaner *k, struct err *err)
{
	const struct table *t = table_find(c, k->table);
	if (!t) {
		struct err why = *err;
		char id[UUID_TEXT_LEN + 1];
		uuid_text(k->table.u, id);
		err_set(err, why.st, why.field, "table %s: %.140s", id, why.msg);
	}
	return t;
}

/* ------------------------------------------------------------------ deleting */

static void told(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (r->lost || core_sql_clean_failure(r)) {
		step_lost(c, k);
		return;
	}
	k->useful |= k->done.n_deleted + k->done.n_live > 0;
	step_over(c, k);
}

static void tell(struct core *c, struct cleaner *k)
{
	if (outdated(c, k)) {
		struct err err = {0};
		err_set(&err, ST_TIMEOUT, "", "%zu claimed files wait for the end of their claim", k->n);
		core_log(c, 4, "cleaner.slow", named(c, k, &err), NULL, &err);
		step_over(c, k);
		return;
	}
	struct strv *v = k->sorted;
	size_t n[FATE_COUNT] = {0};
	for (size_t i = 0; i < k->n; i++) {
		enum fate f = k->paths[i].fate;
		v[f * k->n + n[f]++] = k->paths[i].text;
	}
	k->done = (struct sql_clean_done){.deleted = v + FATE_DEAD * k->n,
					  .n_deleted = n[FATE_DEAD],
					  .live = v + FATE_LIVE * k->n,
					  .n_live = n[FATE_LIVE],
					  .unsure = v + FATE_UNSURE * k->n,
					  .n_unsure = n[FATE_UNSURE],
					  .back = v + FATE_BACK * k->n,
					  .n_back = n[FATE_BACK]};
	struct effect *e = core_emit(c, FX_SQL, told, k);
	e->u.sql.kind = SQL_CLEAN_DONE;
	e->u.sql.u.clean_done = &k->done;
}

/* Nothing of the step was done, nor will be. */
static void give_back(struct core *c, struct cleaner *k)
{
	for (size_t i = 0; i < k->n; i++)
		k->paths[i].fate = FATE_BACK;
	tell(c, k);
}

struct deleting {
	struct cleaner *k;
	struct path *p;
};

static void delete_dead(struct core *c, struct cleaner *k);

static void deleted(struct core *c, void *ctx, const struct event *ev)
{
	struct deleting *d = ctx;
	struct cleaner *k = d->k;
	if (ev->u.done.err->st != ST_OK)
		d->p->fate = FATE_UNSURE;
	core_unkeep(d);
	k->deletes--;
	delete_dead(c, k);
}

static void delete_dead(struct core *c, struct cleaner *k)
{
	for (; k->next < k->n && k->deletes < DELETES_MAX; k->next++) {
		struct path *p = &k->paths[k->next];
		if (p->fate != FATE_DEAD)
			continue;
		if (c->draining || outdated(c, k)) {
			p->fate = FATE_BACK;
			continue;
		}
		struct deleting *d = core_keep(c, sizeof *d, NULL);
		*d = (struct deleting){k, p};
		struct effect *e = core_emit(c, FX_DELETE, deleted, d);
		e->u.path = p->text;
		k->deletes++;
	}
	if (k->deletes == 0)
		tell(c, k);
}

/* ------------------------------------------------------------------ looking */

static int by_text(const void *a, const void *b)
{
	return strv_cmp(((const struct path *)a)->text, ((const struct path *)b)->text);
}

static struct path *find(struct cleaner *k, struct strv path)
{
	struct path key = {.text = path};
	return bsearch(&key, k->paths, k->n, sizeof key, by_text);
}

/* What lies in a folder of another table or view may be live there, whatever this one says. */
static void others_told(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	struct err err = {0};
	if (r->lost || core_sql_clean_failure(r)) {
		give_back(c, k);
		return;
	}
	size_t n_wait = 0;
	for (size_t i = 0; i < r->n_paths; i++) {
		struct path *p = find(k, r->paths[i]);
		if (!p || p->fate != FATE_DEAD)
			continue;
		if (r->waits[i]) {
			p->fate = FATE_BACK;
			n_wait++;
			continue;
		}
		p->fate = FATE_LIVE;
		c->counters.cleaner_shared++;
		err_set(&err, ST_PLACE_TAKEN, "path", "in a folder of another table or view: %.*s",
			STRV_ARG(p->text));
		core_log(c, 4, "cleaner.kept", named(c, k, &err), NULL, &err);
	}
	if (n_wait) {
		c->counters.cleaner_waiting += (int64_t)n_wait;
		err_set(&err, ST_OK, "", "%zu files may lie in a folder of a table that is not read yet",
			n_wait);
		core_log(c, 4, "cleaner.waits", named(c, k, &err), NULL, &err);
	}
	delete_dead(c, k);
}

static void look_at_others(struct core *c, struct cleaner *k)
{
	struct table_id whose = {0};
	struct strv *v = k->sorted;
	size_t n = 0;
	if (!k->none)
		whose = k->table;
	for (size_t i = 0; i < k->n; i++)
		if (k->paths[i].fate == FATE_DEAD)
			v[n++] = k->paths[i].text;
	if (n == 0) {
		tell(c, k);
		return;
	}
	struct effect *e = core_emit(c, FX_SQL, others_told, k);
	e->u.sql.kind = SQL_CLEAN_LOOK;
	e->u.sql.u.clean_look = (struct sql_clean_look){whose, v, n};
}

static void mark(struct cleaner *k, struct strv path)
{
	struct path *p = find(k, path);
	if (p && !MUTANT("cleaner-blind"))
		p->fate = FATE_LIVE;
}

static void mark_object(void *ctx, struct strv path)
{
	mark(ctx, path);
}

/* A file that this one marks deleted is live in an older manifest as long as anybody may read it. */
static void mark_entry(void *ctx, const struct manifest_entry *e)
{
	if (e->status != ENTRY_DELETED)
		mark(ctx, e->file.path);
}

static void look(struct core *c, struct gather *g)
{
	struct cleaner *k = CONTAINER_OF(g, struct cleaner, gather);
	const struct metadata *m = k->meta;
	const struct walk_told tell_it = {k, mark_object, mark_entry};
	struct err err = {0};
	switch (walk_run(&k->walk, c->cache, &k->needs, &tell_it, &err)) {
	case CACHE_WAIT:
		core_gather(c, g, &k->needs);
		return;
	case CACHE_FAIL:
		/* What cannot be read may name anything: nothing of this table is deleted. */
		core_log(c, 4, "cleaner.unreadable", named(c, k, &err), NULL, &err);
		give_back(c, k);
		return;
	case CACHE_HAVE:
		break;
	}
	size_t n;
	const struct metadata_log_entry *log = metadata_log(m, &n);
	for (size_t i = 0; i < n; i++)
		mark(k, log[i].file);
	mark(k, k->location);
	look_at_others(c, k);
}

static void start_look(struct core *c, struct cleaner *k)
{
	k->walk = (struct walk){.meta = k->meta, .arena = &k->arena};
	k->gather.run = look;
	look(c, &k->gather);
}

static void metadata_told(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	struct read_result *r = ev->u.done.read;
	if (r->err.st != ST_OK) {
		struct err err = r->err;
		core_log(c, 4, "cleaner.unreadable", named(c, k, &err), NULL, &err);
		give_back(c, k);
		return;
	}
	k->meta = r->own_metadata;
	r->own_metadata = NULL;
	start_look(c, k);
}

/* A file of metadata never changes: what is in memory counts when the head, read after the claim, names
 * that file. */
static void head_read(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	const struct table *t = table_find(c, k->table);
	if (r->lost || core_sql_clean_failure(r) || !r->found ||
	    !arena_strv(&k->arena, r->head.metadata_location, &k->location)) {
		give_back(c, k);
		return;
	}
	if (t && t->meta && strv_eq(t->location, k->location)) {
		k->meta = metadata_ref(t->meta);
		start_look(c, k);
		return;
	}
	struct effect *e = core_emit(c, FX_READ, metadata_told, k);
	e->u.read = (struct read_effect){.as = READ_METADATA, .path = k->location, .length = -1};
}

static void claimed(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (r->lost || core_sql_clean_failure(r)) {
		step_lost(c, k);
		return;
	}
	if (r->n_paths == 0) {
		step_over(c, k);
		return;
	}
	k->n = 0;
	k->paths = arena_calloc(&k->arena, r->n_paths, sizeof *k->paths);
	k->sorted = arena_calloc(&k->arena, r->n_paths * FATE_COUNT, sizeof *k->sorted);
	for (size_t i = 0; k->paths && k->sorted && i < r->n_paths; i++)
		if (arena_strv(&k->arena, r->paths[i], &k->paths[k->n].text))
			k->n++;
	if (k->n == 0) {
		step_lost(c, k);
		return;
	}
	qsort(k->paths, k->n, sizeof *k->paths, by_text);
	if (k->none) {
		/* No table, hence no snapshot that could name them. */
		look_at_others(c, k);
		return;
	}
	struct effect *e = core_emit(c, FX_SQL, head_read, k);
	e->u.sql.kind = SQL_HEAD_READ;
	e->u.sql.u.table = k->table;
}

/* ------------------------------------------------------------------ rounds */

/* A creation has no epoch that would protect its object until it is published, only its age: one that
 * is slow, under a short grace, must not lose it. */
static int64_t grace_ms(const struct core *c)
{
	int64_t since = create_oldest_us(c);
	int64_t age = since == INT64_MAX ? 0 : (c->now_us - since) / 1000 + CREATE_SLACK_MS;
	return age > c->conf.cleaner_grace_ms ? age : c->conf.cleaner_grace_ms;
}

static void step(struct core *c, struct cleaner *k)
{
	k->none = k->gone[k->i_due];
	k->table = k->due[k->i_due++];
	k->busy = true;
	k->n = k->next = 0;
	k->claim_us = c->now_us;
	arena_init(&k->arena, STEP_BYTES);
	struct effect *e = core_emit(c, FX_SQL, claimed, k);
	e->u.sql.kind = SQL_CLEAN_CLAIM;
	e->u.sql.u.claim = (struct sql_clean_claim){.table = k->table,
						    .gone = k->none,
						    .grace_ms = grace_ms(c),
						    .tombstone_ms = c->conf.cleaner_tombstone_ms,
						    .max = STEP_PATHS};
}

static void due_told(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (r->lost || core_sql_clean_failure(r) || r->n_tables > DUE_MAX) {
		round_over(c, k);
		return;
	}
	k->i_due = 0;
	k->n_due = r->n_tables;
	for (size_t i = 0; i < r->n_tables; i++) {
		k->due[i] = r->tables[i];
		k->gone[i] = r->gone[i];
	}
	k->from = k->after;
	k->after = r->next;
	k->ended = uuid_is_nil(r->next.u);
	go_on(c, k);
}

/* The next step, until nothing is due or the round has done its share; the next round goes on there. */
static void go_on(struct core *c, struct cleaner *k)
{
	if (c->draining || k->steps >= ROUND_STEPS) {
		if (k->i_due < k->n_due)
			k->after = k->i_due ? k->due[k->i_due - 1] : k->from;
		round_over(c, k);
		return;
	}
	k->steps++;
	if (k->i_due < k->n_due) {
		step(c, k);
		return;
	}
	if (k->ended && !k->useful) {
		round_over(c, k);
		return;
	}
	if (k->ended)
		k->useful = k->ended = false;
	struct effect *e = core_emit(c, FX_SQL, due_told, k);
	e->u.sql.kind = SQL_CLEAN_DUE;
	e->u.sql.u.clean_due = (struct sql_clean_due){.after = k->after,
						      .grace_ms = grace_ms(c),
						      .tombstone_ms = c->conf.cleaner_tombstone_ms,
						      .max = DUE_MAX};
}

static void horizon_done(struct core *c, void *ctx, const struct event *ev)
{
	(void)ctx;
	(void)ev;
	c->background--;
}

static void start_round(struct core *c, struct timer *timer)
{
	struct cleaner *k = CONTAINER_OF(timer, struct cleaner, timer);
	if (c->draining || !c->started) {
		core_timer(c, timer, c->now_us + c->conf.cleaner_interval_us, start_round);
		return;
	}
	if (c->now_us >= k->horizon_us) {
		k->horizon_us = c->now_us + HORIZON_US;
		c->background++;
		struct effect *e = core_emit(c, FX_SQL, horizon_done, NULL);
		e->u.sql.kind = SQL_HORIZON;
		e->u.sql.u.horizon = (struct sql_horizon){c->conf.lifetime_ms};
	}
	c->background++;
	k->steps = 0;
	k->ended = false;
	k->useful = !uuid_is_nil(k->after.u); /* what lies before has its turn in this round, too */
	go_on(c, k);
}

void cleaner_start(struct core *c)
{
	struct cleaner *k = base_calloc(1, sizeof *k);
	k->core = c;
	c->cleaner = k;
	core_timer(c, &k->timer, c->now_us + c->conf.cleaner_interval_us, start_round);
}

void cleaner_free(struct cleaner *own_k)
{
	if (!own_k)
		return;
	step_release(own_k);
	needs_fini(&own_k->needs);
	base_free(own_k);
}
