/* Deletes queued objects, one table at a time: claim them in a commit of their own, only then read
 * the head, look for each path in every snapshot of that metadata, and delete what none of them
 * names. Whoever put a path into the queue did not know whether it is live; this look does. */
#include <stdlib.h>

#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/walk.h"

#include "proto/iceberg/metadata.h"

#define ROUND_MAX 256
#define ROUND_BYTES ((size_t)64 << 20)
#define HORIZON_US INT64_C(60000000)
#define CREATE_SLACK_MS 1000

struct path {
	struct strv text;
	bool live, unsure;
	bool dead; /* to the table itself */
};

struct cleaner {
	struct timer timer;
	struct core *core;
	bool busy;
	struct table_id table; /* nil: tables that were dropped */
	struct table_id last;  /* where the next round goes on */
	struct arena arena;
	struct path *paths; /* ascending */
	size_t n;
	struct metadata *meta;
	struct walk walk;
	struct gather gather;
	struct needs needs;
	size_t deletes; /* under way */
	struct sql_clean_done done;
	int64_t horizon_us; /* when it is due */
};

static void start_round(struct core *c, struct timer *t);

static void round_over(struct core *c, struct cleaner *k)
{
	metadata_unref(k->meta);
	k->meta = NULL;
	needs_release(&k->needs);
	arena_fini(&k->arena);
	k->busy = false;
	c->background--;
	core_timer(c, &k->timer, c->now_us + c->conf.cleaner_interval_us, start_round);
}

/* ------------------------------------------------------------------ deleting */

static void told(struct core *c, void *ctx, const struct event *ev)
{
	(void)ev;
	/* Without an answer the rows stay claimed and come up again after the tombstone time. */
	round_over(c, ctx);
}

static void tell(struct core *c, struct cleaner *k)
{
	struct strv *v = arena_calloc(&k->arena, k->n * 3, sizeof *v);
	if (!v) {
		round_over(c, k);
		return;
	}
	struct strv *deleted = v, *live = v + k->n, *unsure = v + 2 * k->n;
	k->done = (struct sql_clean_done){.deleted = deleted, .live = live, .unsure = unsure};
	for (size_t i = 0; i < k->n; i++) {
		if (k->paths[i].live)
			live[k->done.n_live++] = k->paths[i].text;
		else if (k->paths[i].unsure)
			unsure[k->done.n_unsure++] = k->paths[i].text;
		else
			deleted[k->done.n_deleted++] = k->paths[i].text;
	}
	struct effect *e = core_emit(c, FX_SQL, told, k);
	e->u.sql.kind = SQL_CLEAN_DONE;
	e->u.sql.u.clean_done = &k->done;
}

struct deleting {
	struct cleaner *k;
	struct path *p;
};

static void deleted(struct core *c, void *ctx, const struct event *ev)
{
	struct deleting *d = ctx;
	struct cleaner *k = d->k;
	d->p->unsure = ev->u.done.err->st != ST_OK;
	core_unkeep(d);
	if (--k->deletes == 0)
		tell(c, k);
}

static void delete_dead(struct core *c, struct cleaner *k)
{
	for (size_t i = 0; i < k->n; i++)
		k->deletes += !k->paths[i].live;
	if (k->deletes == 0) {
		tell(c, k);
		return;
	}
	for (size_t i = 0; i < k->n; i++) {
		if (k->paths[i].live)
			continue;
		struct deleting *d = core_keep(c, sizeof *d, NULL);
		*d = (struct deleting){k, &k->paths[i]};
		struct effect *e = core_emit(c, FX_DELETE, deleted, d);
		e->u.path = k->paths[i].text;
	}
}

/* ------------------------------------------------------------------ looking */

static void mark(struct cleaner *k, struct strv path);

/* What lies in a folder of another table or view may be live there, whatever this one says. */
static void others_told(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (r->lost || core_sql_clean_failure(r)) {
		round_over(c, k);
		return;
	}
	if (r->verdict != SQL_APPLIED) {
		/* They stay claimed and come up again. */
		core_log(c, 3, "cleaner.waits", NULL, NULL, NULL);
		round_over(c, k);
		return;
	}
	for (size_t i = 0; i < k->n; i++)
		k->paths[i].dead = !k->paths[i].live;
	for (size_t i = 0; i < r->n_paths; i++)
		mark(k, r->paths[i]);
	for (size_t i = 0; i < k->n; i++) {
		struct err err = {0};
		if (!k->paths[i].dead || !k->paths[i].live)
			continue;
		c->counters.cleaner_shared++;
		err_set(&err, ST_PLACE_TAKEN, "path", "in a folder of another table or view: %.*s",
			STRV_ARG(k->paths[i].text));
		core_log(c, 4, "cleaner.kept", table_find(c, k->table), NULL, &err);
	}
	delete_dead(c, k);
}

static void look_at_others(struct core *c, struct cleaner *k)
{
	struct strv *v = arena_calloc(&k->arena, k->n, sizeof *v);
	size_t n = 0;
	for (size_t i = 0; v && i < k->n; i++)
		if (!k->paths[i].live)
			v[n++] = k->paths[i].text;
	if (!v) {
		round_over(c, k);
		return;
	}
	if (n == 0) {
		tell(c, k);
		return;
	}
	struct effect *e = core_emit(c, FX_SQL, others_told, k);
	e->u.sql.kind = SQL_CLEAN_LOOK;
	e->u.sql.u.clean_look = (struct sql_clean_look){k->table, v, n};
}

static int by_text(const void *a, const void *b)
{
	return strv_cmp(((const struct path *)a)->text, ((const struct path *)b)->text);
}

static void mark(struct cleaner *k, struct strv path)
{
	struct path key = {.text = path};
	struct path *p = bsearch(&key, k->paths, k->n, sizeof key, by_text);
	if (p && !MUTANT("cleaner-blind"))
		p->live = true;
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
	const struct walk_told told = {k, mark_object, mark_entry};
	struct err err = {0};
	switch (walk_run(&k->walk, c->cache, &k->needs, &told, &err)) {
	case CACHE_WAIT:
		core_gather(c, g, &k->needs);
		return;
	case CACHE_FAIL:
		/* What cannot be read may name anything: nothing is deleted. */
		core_log(c, 4, "cleaner.unreadable", NULL, NULL, &err);
		round_over(c, k);
		return;
	case CACHE_HAVE:
		break;
	}
	size_t n;
	const struct metadata_log_entry *log = metadata_log(m, &n);
	for (size_t i = 0; i < n; i++)
		mark(k, log[i].file);
	struct table *t = table_find(c, k->table);
	if (t)
		mark(k, t->location);
	look_at_others(c, k);
}

static void head_read(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	struct table *t = table_find(c, k->table);
	/* The metadata in memory counts only when the head, read after the claim, still names it. */
	if (r->lost || core_sql_clean_failure(r) || !r->found || !t || t->state != TABLE_READY ||
	    r->head.epoch != t->epoch || r->head.version != t->version ||
	    !strv_eq(r->head.metadata_location, t->location)) {
		round_over(c, k);
		return;
	}
	k->meta = metadata_ref(t->meta);
	k->walk = (struct walk){.meta = k->meta, .arena = &k->arena};
	k->gather.run = look;
	look(c, &k->gather);
}

static void claimed(struct core *c, void *ctx, const struct event *ev)
{
	struct cleaner *k = ctx;
	const struct sql_result *r = ev->u.done.sql;
	if (r->lost || core_sql_clean_failure(r) || r->n_paths == 0) {
		round_over(c, k);
		return;
	}
	k->n = 0;
	k->paths = arena_calloc(&k->arena, r->n_paths, sizeof *k->paths);
	for (size_t i = 0; k->paths && i < r->n_paths; i++)
		if (arena_strv(&k->arena, r->paths[i], &k->paths[k->n].text))
			k->n++;
	if (k->n == 0) {
		round_over(c, k);
		return;
	}
	qsort(k->paths, k->n, sizeof *k->paths, by_text);
	if (uuid_is_nil(k->table.u)) {
		/* No table, hence no snapshot that could name them. */
		look_at_others(c, k);
		return;
	}
	struct effect *e = core_emit(c, FX_SQL, head_read, k);
	e->u.sql.kind = SQL_HEAD_READ;
	e->u.sql.u.table = k->table;
}

/* ------------------------------------------------------------------ rounds */

/* The loaded tables in turn, then the dropped ones. */
static struct table_id next_table(struct core *c, struct table_id last)
{
	bool seen = uuid_is_nil(last.u);
	LIST_FOR (n, tmp, &c->table_list) {
		const struct table *t = LIST_ITEM(n, struct table, node);
		if (seen && t->state == TABLE_READY)
			return t->id;
		seen |= uuid_eq(t->id.u, last.u);
	}
	return (struct table_id){0};
}

static void horizon_done(struct core *c, void *ctx, const struct event *ev)
{
	(void)ctx;
	(void)ev;
	c->background--;
}

/* A creation has no epoch that would protect its object until it is published, only its age: one that
 * is slow, under a short grace, must not lose it. */
static int64_t grace_ms(const struct core *c)
{
	int64_t since = create_oldest_us(c);
	int64_t age = since == INT64_MAX ? 0 : (c->now_us - since) / 1000 + CREATE_SLACK_MS;
	return age > c->conf.cleaner_grace_ms ? age : c->conf.cleaner_grace_ms;
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
	k->table = next_table(c, k->last);
	k->last = k->table;
	k->busy = true;
	c->background++;
	arena_init(&k->arena, ROUND_BYTES);
	struct effect *e = core_emit(c, FX_SQL, claimed, k);
	e->u.sql.kind = SQL_CLEAN_CLAIM;
	e->u.sql.u.claim = (struct sql_clean_claim){.table = k->table,
						    .grace_ms = grace_ms(c),
						    .tombstone_ms = c->conf.cleaner_tombstone_ms,
						    .max = ROUND_MAX};
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
	metadata_unref(own_k->meta);
	needs_fini(&own_k->needs);
	if (own_k->busy)
		arena_fini(&own_k->arena);
	base_free(own_k);
}
