/* Commits of unmodified clients: the finished snapshots of a REST request, checked against the
 * head, in the same queue as the workers' transactions. */
#include "daemon/commit/state.h"

#include "daemon/commit/lineage.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"

#define AHEAD_MAX_MS INT64_C(60000)

void rest_enqueue(struct core *c, struct request *r)
{
	struct table *t = r->table;
	if (t->state == TABLE_HALTED) {
		request_status(c, r, ST_TABLE_HALTED, "", t->halt.msg);
		return;
	}
	if (t->incarnation != r->in.incarnation) {
		request_status(c, r, ST_NO_SUCH_TABLE, "", "the table was dropped or replaced");
		return;
	}
	if (t->n_queue >= c->conf.queue_max) {
		request_status(c, r, ST_OVERLOADED, "", "the table's queue is full");
		return;
	}
	struct entry *e = arena_calloc(&r->arena, 1, sizeof *e);
	ASSERT(e != NULL);
	list_init(&e->node);
	e->kind = ENTRY_REST;
	e->req = r;
	r->entry = e;
	request_hold(r);
	table_enqueue(c, t, e);
}

/* Out of the queue and not in a batch any more. */
static void over(struct request *r)
{
	r->batch = NULL;
	request_let(r);
}

/* Back at the front after an attempt without effect, unless its client has been answered. */
void rest_back(struct core *c, struct table *t, struct request *r)
{
	(void)c;
	if (r->answered) {
		request_let(r);
		return;
	}
	struct entry *e = arena_calloc(&r->arena, 1, sizeof *e);
	ASSERT(e != NULL);
	list_init(&e->node);
	e->kind = ENTRY_REST;
	e->req = r;
	r->entry = e;
	r->sent = false;
	list_push_front(&t->queue, &e->node);
	t->n_queue++;
}

static void finish(struct core *c, struct batch *b, const struct err *err)
{
	struct request *r = b->rest;
	struct table *t = b->table;
	b->rest = NULL;
	if (err)
		request_fail(c, r, err);
	over(r);
	batch_drop(c, b);
	table_pump(c, t);
}

void rest_failed(struct core *c, struct batch *b, const struct err *err)
{
	finish(c, b, err);
}

static const struct snapshot *added_snapshot(const struct update *u)
{
	return u->kind == UPDATE_ADD_SNAPSHOT ? u->u.snapshot : NULL;
}

/* Every snapshot that the request adds: not ahead of the clock, row ids within bounds. The manifest
 * list alone is read. */
static enum cache_answer check_snapshots(struct core *c, struct batch *b, struct err *err)
{
	const struct ev_request *in = &b->rest->in;
	const struct metadata *base = b->table->meta;
	bool waiting = false;
	for (size_t i = 0; i < in->u.commit_table.n_updates; i++) {
		const struct update *u = &in->u.commit_table.updates[i];
		if (u->kind != UPDATE_ADD_SNAPSHOT)
			continue;
		const struct snapshot *s = u->u.snapshot;
		if (c->pg_ms > 0 && s->timestamp_ms > c->pg_ms + AHEAD_MAX_MS) {
			err_set(err, ST_VALIDATION, "snapshot.timestamp-ms",
				"more than a minute ahead of the server's clock");
			err_prefix(err, "updates[%zu]", i);
			return CACHE_FAIL;
		}
		if (metadata_format_version(b->fresh) < 3 || !s->manifest_list.p)
			continue;
		struct mlist *list = NULL;
		enum cache_answer ans = cache_list(c->cache, s->manifest_list, &b->needs, &list, err);
		if (ans == CACHE_FAIL) {
			if (err->st != ST_IO && err->st != ST_UNAVAILABLE)
				err->st = ST_VALIDATION;
			err_prefix(err, "updates[%zu].snapshot.manifest-list", i);
			return ans;
		}
		if (ans == CACHE_WAIT) {
			waiting = true;
			continue;
		}
		/* The lists that may know its manifests: the parent's, the heads of refs, and those that
		 * this request added before it (DuckDB's MERGE is two snapshots in one commit). */
		const struct manifest_list *known[64];
		size_t n_known = 0, n_refs;
		const struct snapshot_ref *refs = metadata_refs(base, &n_refs);
		for (size_t k = 0; k <= n_refs + i && n_known < ARRAY_SIZE(known); k++) {
			const struct snapshot *o;
			if (k <= i)
				o = k == i ? metadata_snapshot(base, s->parent_id)
					   : added_snapshot(&in->u.commit_table.updates[k]);
			else
				o = metadata_snapshot(base, refs[k - i - 1].snapshot_id);
			struct mlist *old = NULL;
			struct err ignored = {0};
			if (!o || !o->manifest_list.p)
				continue;
			ans = cache_list(c->cache, o->manifest_list, &b->needs, &old, &ignored);
			if (ans == CACHE_WAIT)
				waiting = true;
			else if (ans == CACHE_HAVE)
				known[n_known++] = &old->l;
		}
		if (waiting)
			continue;
		if (s->first_row_id == ROW_ID_NONE || s->added_rows == ROW_ID_NONE)
			continue; /* apply has said what is missing */
		int64_t end;
		if (!add_i64(s->first_row_id, s->added_rows, &end)) {
			err_set(err, ST_VALIDATION, "snapshot.added-rows", "row ids overflow");
			err_prefix(err, "updates[%zu]", i);
			return CACHE_FAIL;
		}
		if (lineage_check(&list->l, known, n_known, metadata_next_row_id(base), end, err) !=
		    ST_OK) {
			err_prefix(err, "updates[%zu]", i);
			return CACHE_FAIL;
		}
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* Whether every snapshot from `before` to `now` came with this commit and deleted rows for good. Of
 * one that the ref took over from elsewhere it is not known whether it moved rows. */
static bool only_dead(const struct metadata *m, const struct metadata *base, int64_t before,
		      int64_t now)
{
	while (now != before) {
		const struct snapshot *s = metadata_snapshot(m, now);
		if (!s || metadata_snapshot(base, now) || !strv_eq(s->operation, STRV("delete")) ||
		    snapshot_summary(s, "added-data-files").p)
			return false;
		now = s->parent_id;
	}
	return true;
}

void rest_plan(struct core *c, struct batch *b)
{
	struct request *r = b->rest;
	struct table *t = b->table;
	struct err err = {0};
	if (r->answered) {
		/* Its deadline passed before anything was sent. */
		finish(c, b, NULL);
		return;
	}
	const struct ev_request *in = &r->in;
	bool changed = false;
	if (!b->fresh) {
		b->base = metadata_ref(t->meta);
		struct metadata_ctx ctx = {.now_ms = c->pg_ms,
					    .base_location = t->location,
					    .new_uuid = core_uuid4(c)};
		enum status st =
			requirement_check(in->u.commit_table.requirements,
					  in->u.commit_table.n_requirements, t->meta, &err);
		if (st == ST_OK)
			st = metadata_apply(t->meta, in->u.commit_table.updates,
					    in->u.commit_table.n_updates, &ctx, &b->fresh,
					    &changed, &err);
		if (st != ST_OK) {
			finish(c, b, &err);
			return;
		}
		if (!changed) {
			request_committed(c, r, t->location, t->meta);
			finish(c, b, NULL);
			return;
		}
	}
	switch (check_snapshots(c, b, &err)) {
	case CACHE_WAIT:
		core_gather(c, &b->gather, &b->needs);
		return;
	case CACHE_FAIL:
		if (err.st == ST_IO || err.st == ST_UNAVAILABLE)
			err.st = ST_OVERLOADED;
		finish(c, b, &err);
		return;
	case CACHE_HAVE:
		break;
	}
	batch_encode(c, b);
}

void rest_published(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	struct request *r = b->rest;
	/* What each known ref did: moved on by deletions only, moved on, or moved elsewhere. */
	for (size_t i = 0; i < t->n_logs; i++) {
		struct reflog *l = t->logs[i];
		const struct snapshot_ref *ref = metadata_ref_by_name(t->meta, reflog_ref(l));
		int64_t now = ref ? ref->snapshot_id : SNAPSHOT_NONE;
		int64_t before = reflog_head(l);
		if (now == before)
			continue;
		if (now != SNAPSHOT_NONE && before != SNAPSHOT_NONE &&
		    metadata_is_ancestor(t->meta, before, now))
			reflog_foreign(l, now, only_dead(t->meta, b->base, before, now));
		else
			reflog_reset(l, now);
	}
	b->rest = NULL;
	request_committed(c, r, t->location, t->meta);
	over(r);
}
