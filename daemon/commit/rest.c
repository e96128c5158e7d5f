/* Commits of unmodified clients: the finished snapshots of a REST request, checked against the
 * head, in the same queue as the workers' transactions. */
#include "daemon/commit/state.h"

#include "daemon/commit/intake/intake.h"
#include "daemon/commit/lineage.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/used.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"

void rest_enqueue(struct core *c, struct request *r)
{
	struct table *t = r->table;
	struct err err = {0};
	if (t->state == TABLE_HALTED) {
		err_set(&err, ST_TABLE_HALTED, "", "%s", t->halt.msg);
		rest_turn_away(c, r, t, &err);
		return;
	}
	if (!table_is(c, t, r->in.incarnation, &err)) {
		rest_turn_away(c, r, t, &err);
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
	if (fair_arrived(&t->fair, c->now_us))
		table_enqueue_first(c, t, e);
	else
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

/* err NULL: it was answered before. A part of several tables never ends like that. */
static void finish(struct core *c, struct batch *b, const struct err *err)
{
	struct request *r = b->rest;
	struct table *t = b->table;
	if (b->part) {
		ASSERT(err != NULL);
		multi_failed(c, b, err);
		return;
	}
	b->rest = NULL;
	if (err)
		request_fail(c, r, err);
	over(r);
	batch_drop(c, b);
	table_pump(c, t);
}


static const struct snapshot *added_snapshot(const struct update *u)
{
	return u->kind == UPDATE_ADD_SNAPSHOT ? u->u.snapshot : NULL;
}

/* Whether it is the very snapshot, with the manifest list that only its writer could name. */
static bool is_same(const struct snapshot *old, const struct snapshot *s)
{
	return s->manifest_list.p && strv_eq(old->manifest_list, s->manifest_list) &&
	       old->parent_id == s->parent_id && old->timestamp_ms == s->timestamp_ms;
}

static bool adds(const struct ask_commit *in, int64_t snapshot)
{
	for (size_t i = 0; i < in->n_updates; i++) {
		const struct snapshot *s = added_snapshot(&in->updates[i]);
		if (s && s->snapshot_id == snapshot)
			return true;
	}
	return false;
}

/* Whether a ref that the request puts on its own snapshot is there or has gone on from there. */
static bool ref_came(const struct metadata *m, const struct snapshot_ref *want)
{
	const struct snapshot_ref *r = metadata_ref_by_name(m, want->name);
	return r && metadata_is_ancestor(m, want->snapshot_id, r->snapshot_id);
}

/* A request whose answer was lost comes again; a plain conflict would have its client delete the files
 * of a live snapshot. It was committed when all that it adds is there and its refs have been there. With
 * a part of that it may be another request, or one of which something was expired or rolled back since:
 * then nobody knows. Nor when another attempt of its writer, under the same id, is there. */
enum rest_before rest_before(const struct metadata *m, const struct ask_commit *in)
{
	struct uuid uuid;
	bool live = false, lacking = false;
	bool creates = requirement_is_create(in->requirements, in->n_requirements);
	bool named = metadata_uuid(m, &uuid);
	for (size_t i = 0; i < in->n_updates; i++) {
		const struct update *u = &in->updates[i];
		const struct snapshot *s = added_snapshot(u);
		/* The uuid of a creation is as much its own as a snapshot. */
		if (creates && u->kind == UPDATE_ASSIGN_UUID) {
			if (!named || !uuid_eq(u->u.uuid, uuid))
				return REST_NOT_BEFORE;
			live = true;
		}
		const struct snapshot *old = s ? metadata_snapshot(m, s->snapshot_id) : NULL;
		live |= old != NULL;
		lacking |= s && (!old || !is_same(old, s));
		if (u->kind == UPDATE_SET_SNAPSHOT_REF && adds(in, u->u.ref.snapshot_id))
			lacking |= !ref_came(m, &u->u.ref);
	}
	return !live ? REST_NOT_BEFORE : lacking ? REST_MAYBE_BEFORE : REST_BEFORE;
}

void rest_unknown(struct err *err)
{
	err_set(err, ST_COMMIT_UNKNOWN, "",
		"snapshots of this request are committed; whether all of it was is not known");
}

/* Whether a request that was committed before could be known again at all. */
static bool provable(const struct ask_commit *in)
{
	for (size_t i = 0; i < in->n_updates; i++)
		if (added_snapshot(&in->updates[i]))
			return true;
	return requirement_is_create(in->requirements, in->n_requirements);
}

void rest_turn_away(struct core *c, struct request *r, const struct table *t, const struct err *err)
{
	const struct ask_commit *in = &r->in.u.commit_table;
	struct err told = *err;
	enum rest_before before = REST_NOT_BEFORE;
	if (r->answered)
		return;
	if (t->meta)
		before = rest_before(t->meta, in);
	else if (err->st == ST_TABLE_HALTED && provable(in))
		before = REST_MAYBE_BEFORE; /* nobody can read it */
	if (before == REST_BEFORE && t->state == TABLE_HALTED) {
		/* It is there for all to read. */
		request_committed(c, r, t->location, t->meta, false);
		return;
	}
	if (before != REST_NOT_BEFORE)
		rest_unknown(&told);
	else if (err->st == ST_FENCED)
		told.st = ST_OVERLOADED;
	request_fail(c, r, &told);
}

struct known_lists {
	const struct manifest_list **v;
	size_t n, cap;
};

static bool know_one(struct core *c, struct batch *b, const struct snapshot *s,
		     struct known_lists *known)
{
	struct mlist *old = NULL;
	struct err ignored = {0};
	if (!s || !s->manifest_list.p)
		return true;
	enum cache_answer ans = cache_list(c->cache, s->manifest_list, &b->needs, &old, &ignored);
	if (ans == CACHE_HAVE) {
		if (known->n == known->cap) {
			known->cap = known->cap ? known->cap * 2 : 16;
			known->v = base_realloc_array(known->v, known->cap, sizeof *known->v);
		}
		known->v[known->n++] = &old->l;
	}
	return ans != CACHE_WAIT;
}

/* The lists that may know the manifests of snapshot s of update i: those that the request added before
 * it (DuckDB's MERGE is two snapshots in one commit), the parent's, the heads of refs, or every
 * retained one. false: some are to be read first. */
static bool know(struct core *c, struct batch *b, size_t i, const struct snapshot *s, bool all,
		 struct known_lists *known)
{
	const struct metadata *base = b->base;
	bool have = true;
	for (size_t k = 0; k < i; k++)
		have &= know_one(c, b, added_snapshot(&b->ask->updates[k]),
				 known);
	if (all) {
		for (size_t k = 0; k < metadata_snapshot_count(base); k++)
			have &= know_one(c, b, metadata_snapshot_at(base, k), known);
		return have;
	}
	size_t n_refs;
	const struct snapshot_ref *refs = metadata_refs(base, &n_refs);
	have &= know_one(c, b, metadata_snapshot(base, s->parent_id), known);
	for (size_t k = 0; k < n_refs; k++)
		have &= know_one(c, b, metadata_snapshot(base, refs[k].snapshot_id), known);
	return have;
}

static void refuse_now(struct core *c, struct timer *timer)
{
	struct table *t = CONTAINER_OF(timer, struct table, fair_timer);
	fair_refused(&t->fair, c->now_us, c->conf.fairness_us);
	for (struct list *n; (n = list_pop_front(&t->refused));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		request_fail(c, r, &r->late_err);
	}
}

/* A requirement fails because the head has moved. While no hold may begin, the client's next
 * attempts would fail too and make it wait longer each time; so the answer waits, and the hold
 * begins with it. */
static void refuse(struct core *c, struct batch *b, const struct err *err)
{
	struct request *r = b->rest;
	struct table *t = b->table;
	int64_t at = fair_wait(&t->fair, c->now_us, c->conf.fairness_us);
	c->counters.rest_refused++;
	if (at > c->now_us && !c->draining &&
	    (r->in.deadline_us == 0 || at < r->in.deadline_us)) {
		r->late_err = *err;
		list_push_back(&t->refused, &r->wait);
		core_timer(c, &t->fair_timer, at, refuse_now);
		finish(c, b, NULL);
		return;
	}
	fair_refused(&t->fair, c->now_us, c->conf.fairness_us);
	finish(c, b, err);
}

/* Every snapshot that the request adds: not ahead of the clock, row ids within bounds. The manifest
 * list alone is read. */
static enum cache_answer check_snapshots(struct core *c, struct batch *b, bool all, struct err *err)
{
	const struct metadata *base = b->table->meta;
	bool waiting = false;
	for (size_t i = 0; i < b->ask->n_updates; i++) {
		const struct update *u = &b->ask->updates[i];
		if (u->kind != UPDATE_ADD_SNAPSHOT)
			continue;
		const struct snapshot *s = u->u.snapshot;
		if (c->pg_ms > 0 && s->timestamp_ms > c->pg_ms + SNAPSHOT_AHEAD_MAX_MS) {
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
			if (err->st != ST_IO && err->st != ST_UNAVAILABLE &&
			    err->st != ST_OVERLOADED)
				err->st = ST_VALIDATION;
			err_prefix(err, "updates[%zu].snapshot.manifest-list", i);
			return ans;
		}
		if (ans == CACHE_WAIT) {
			waiting = true;
			continue;
		}
		if (used_list_check(list, b->fresh, err) != ST_OK) {
			err_prefix(err, "updates[%zu]", i);
			return CACHE_FAIL;
		}
		struct known_lists known = {0};
		waiting |= !know(c, b, i, s, all, &known);
		if (waiting || s->first_row_id == ROW_ID_NONE || s->added_rows == ROW_ID_NONE) {
			base_free(known.v);
			continue; /* apply has said what is missing */
		}
		int64_t end = 0;
		enum status st = ST_OK;
		if (!add_i64(s->first_row_id, s->added_rows, &end))
			st = err_set(err, ST_VALIDATION, "snapshot.added-rows", "row ids overflow");
		else
			st = lineage_check(&list->l, known.v, known.n, metadata_next_row_id(base),
					   end, err);
		base_free(known.v);
		if (st != ST_OK) {
			err_prefix(err, "updates[%zu]", i);
			return CACHE_FAIL;
		}
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* ------------------------------------------------------------------ a look at its files */

void rest_unview(struct batch *b)
{
	for (size_t i = 0; i < b->n_verify; i++) {
		for (size_t k = 0; k < b->verify[i].n_now; k++)
			mview_unref(b->verify[i].now[k]);
		for (size_t k = 0; k < b->verify[i].n_before; k++)
			mview_unref(b->verify[i].before[k]);
	}
	b->n_verify = 0;
}

/* Whether a manifest of a list that is `fresh` may contradict older ones: one that only adds data
 * cannot, and appends cost no reading. */
static bool worth_a_look(const struct manifest_file *row)
{
	return row->content == MANIFEST_DELETES || !row->has_file_counts ||
	       row->existing_files > 0 || row->deleted_files > 0;
}

static bool listed(const struct mlist *list, struct strv path)
{
	for (size_t i = 0; list && i < list->l.n; i++)
		if (strv_eq(list->l.rows[i].path, path))
			return true;
	return false;
}

/* The list that names it may be gone when it is told. */
static void note_unread(struct batch *b, struct strv path)
{
	struct strv kept = STRV("");
	(void)!arena_strv(&b->arena, path, &kept);
	b->unread.n = 0;
	verify_note(&b->unread, VERIFY_UNREADABLE, kept);
}

/* Whole views of the list's fresh manifests. Unreadable ones are noted; then nothing is looked at. */
static enum cache_answer fresh_views(struct core *c, struct batch *b, struct mlist *list,
				     const bool *fresh, struct mview **v, bool *whole)
{
	bool waiting = false;
	for (size_t i = 0; i < list->l.n; i++) {
		struct err err = {0};
		if (!fresh[i])
			continue;
		enum cache_answer ans = cache_view(c->cache, list, &list->l.rows[i], b->fresh,
						   &b->needs, &v[i], &err);
		waiting |= ans == CACHE_WAIT;
		if (ans == CACHE_FAIL) {
			*whole = false;
			note_unread(b, list->l.rows[i].path);
		}
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* Keys of all data files that the fresh manifests speak of. */
static struct mkey *fresh_keys(struct mview *const *v, size_t n, size_t *ret_n)
{
	size_t most = 0, at = 0;
	for (size_t i = 0; i < n; i++)
		most += v[i] ? v[i]->m->n : 0;
	struct mkey *keys = base_calloc(most ? most : 1, sizeof *keys);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; v[i] && k < v[i]->m->n; k++) {
			const struct content_file *f = &v[i]->m->entries[k].file;
			if (v[i]->content == MANIFEST_DATA)
				keys[at++] = mview_key(f->path);
			else if (content_file_is_dv(f))
				keys[at++] = mview_key(f->referenced_data_file);
		}
	*ret_n = at;
	return keys;
}

/* What a list has of them; views that are there already stay. */
static enum cache_answer found_views(struct core *c, struct batch *b, struct mlist *list,
				     const struct mkey *keys, size_t n_keys, struct mview **v,
				     bool *whole)
{
	const struct probe *found = NULL;
	struct err err = {0};
	if (!list)
		return CACHE_HAVE;
	enum cache_answer ans = probe_list(c->cache, list, b->fresh, keys, n_keys, &b->needs,
					   &found, &err);
	if (ans == CACHE_FAIL) {
		*whole = false;
		note_unread(b, found->failed->path);
		return CACHE_HAVE;
	}
	for (size_t i = 0; ans == CACHE_HAVE && i < list->l.n; i++)
		v[i] = v[i] ? v[i] : found->views[i];
	return ans;
}

/* Loads what the look needs, once: the job does the looking. */
static enum cache_answer view_one(struct core *c, struct batch *b, const struct snapshot *s,
				  struct verify_snapshot *ret_v, struct err *err)
{
	struct mlist *list = NULL, *old = NULL;
	struct err ignored = {0};
	*ret_v = (struct verify_snapshot){0};
	if (!s->manifest_list.p)
		return CACHE_HAVE;
	enum cache_answer ans = cache_list(c->cache, s->manifest_list, &b->needs, &list, err);
	if (ans == CACHE_HAVE && used_list_check(list, b->fresh, err) != ST_OK)
		ans = CACHE_FAIL;
	if (ans != CACHE_HAVE)
		return ans;
	const struct snapshot *parent = metadata_snapshot(b->fresh, s->parent_id);
	if (parent && parent->manifest_list.p &&
	    cache_list(c->cache, parent->manifest_list, &b->needs, &old, &ignored) == CACHE_WAIT)
		return CACHE_WAIT;
	size_t n = list->l.n, n_old = old ? old->l.n : 0;
	bool *fresh = arena_calloc(&b->arena, n + 1, sizeof *fresh);
	struct mview **now = arena_calloc(&b->arena, n + 1, sizeof(struct mview *));
	struct mview **before = arena_calloc(&b->arena, n_old + 1, sizeof(struct mview *));
	if (!fresh || !now || !before) {
		err_set(err, ST_LIMIT, "", "the snapshot has too many manifests");
		return CACHE_FAIL;
	}
	bool look = false, whole = true;
	for (size_t i = 0; i < n; i++) {
		fresh[i] = !listed(old, list->l.rows[i].path);
		look |= fresh[i] && worth_a_look(&list->l.rows[i]);
	}
	if (!look)
		return CACHE_HAVE;
	ans = fresh_views(c, b, list, fresh, now, &whole);
	if (ans == CACHE_HAVE && whole) {
		size_t n_keys;
		struct mkey *keys = fresh_keys(now, n, &n_keys);
		ans = found_views(c, b, list, keys, n_keys, now, &whole);
		enum cache_answer too = found_views(c, b, old, keys, n_keys, before, &whole);
		base_free(keys);
		ans = ans == CACHE_HAVE ? too : ans;
	}
	if (ans != CACHE_HAVE || !whole)
		return ans;
	*ret_v = (struct verify_snapshot){now, fresh, n, before, n_old};
	for (size_t i = 0; i < n; i++)
		mview_ref(now[i]);
	for (size_t i = 0; i < n_old; i++)
		mview_ref(before[i]);
	return CACHE_HAVE;
}

static enum cache_answer view_snapshots(struct core *c, struct batch *b, struct err *err)
{
	size_t n = b->ask->n_updates;
	bool waiting = false;
	rest_unview(b);
	b->verify = arena_calloc(&b->arena, n + 1, sizeof *b->verify);
	if (!b->verify) {
		err_set(err, ST_LIMIT, "", "the request has too many updates");
		return CACHE_FAIL;
	}
	for (size_t i = 0; i < n; i++) {
		const struct snapshot *s = added_snapshot(&b->ask->updates[i]);
		if (!s)
			continue;
		enum cache_answer ans = view_one(c, b, s, &b->verify[b->n_verify], err);
		if (ans == CACHE_FAIL)
			return ans;
		waiting |= ans == CACHE_WAIT;
		b->n_verify += ans == CACHE_HAVE;
	}
	if (waiting)
		return CACHE_WAIT;
	if (b->unread.n && c->conf.verify_snapshots == 2) {
		verify_err(&b->unread.v[0], ST_VALIDATION, err);
		return CACHE_FAIL;
	}
	return CACHE_HAVE;
}

/* Counted, logged with names, and remembered: deletions from such a file are refused. */
static void tell_findings(struct core *c, struct batch *b, const struct verify_out *found)
{
	struct table *t = b->table;
	c->counters.findings += found->total;
	for (size_t i = 0; i < found->n; i++) {
		struct err err = {0};
		verify_err(&found->v[i], ST_TABLE_INCONSISTENT, &err);
		core_log(c, 4, "rest.finding", t, NULL, &err);
		inspect_note(c, t, &found->v[i]);
	}
}

static void spoil(struct batch *b, const struct verify_out *found)
{
	struct table *t = b->table;
	size_t n;
	const struct snapshot_ref *refs = metadata_refs(t->meta, &n);
	for (size_t i = 0; i < n; i++) {
		if (metadata_snapshot(b->base, refs[i].snapshot_id) || refs[i].tag)
			continue;
		struct reflog *l = table_log(t, refs[i].name, refs[i].snapshot_id);
		for (size_t k = 0; k < found->n; k++)
			reflog_spoil(l, found->v[k].path);
	}
}

void rest_failed(struct core *c, struct batch *b, const struct err *err)
{
	tell_findings(c, b, &b->out->found);
	finish(c, b, err);
}

void rest_taken(struct core *c, struct batch *b)
{
	struct err err = {0};
	err_set(&err, ST_KEY_DECIDED, "", "decided before");
	finish(c, b, &err);
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

/* Planted: what removes a snapshot takes the refs away that name it. */
static struct ask_commit with_refs(struct batch *b, const struct ask_commit *in)
{
	size_t n_refs, n = 0, most = in->n_updates;
	const struct snapshot_ref *refs = metadata_refs(b->base, &n_refs);
	for (size_t i = 0; i < in->n_updates; i++)
		if (in->updates[i].kind == UPDATE_REMOVE_SNAPSHOTS)
			most += in->updates[i].u.snapshot_ids.n * n_refs;
	struct update *v = arena_calloc(&b->arena, most + 1, sizeof *v);
	ASSERT(v != NULL);
	for (size_t i = 0; i < in->n_updates; i++) {
		const struct update *u = &in->updates[i];
		for (size_t k = 0; u->kind == UPDATE_REMOVE_SNAPSHOTS && k < n_refs; k++)
			for (size_t j = 0; j < u->u.snapshot_ids.n; j++)
				if (refs[k].snapshot_id == u->u.snapshot_ids.v[j])
					v[n++] = (struct update){.kind = UPDATE_REMOVE_SNAPSHOT_REF,
								 .u.text = refs[k].name};
		v[n++] = *u;
	}
	return (struct ask_commit){in->requirements, in->n_requirements, v, n};
}

enum rest_judged rest_judge(struct core *c, struct batch *b, struct err *err)
{
	const struct ask_commit *in = b->ask;
	struct ask_commit mutated;
	struct table *t = b->table;
	bool changed = false;
	b->base = metadata_ref(t->meta);
	if (MUTANT("refs-go-with-snapshots")) {
		mutated = with_refs(b, in);
		in = &mutated;
	}
	b->needs.tolerant = true;
	struct metadata_ctx ctx = {.now_ms = c->pg_ms,
				   .base_location = t->location,
				   .new_uuid = core_uuid4(c)};
	enum status st = requirement_check(in->requirements, in->n_requirements, t->meta, err);
	if (st == ST_OK)
		st = metadata_apply(t->meta, in->updates, in->n_updates, &ctx, &b->fresh, &changed,
				    err);
	if (st != ST_OK)
		switch (rest_before(t->meta, in)) {
		case REST_BEFORE:
			return REST_DONE;
		case REST_MAYBE_BEFORE:
			rest_unknown(err);
			return REST_REFUSED;
		case REST_NOT_BEFORE:
			return REST_REFUSED;
		}
	return changed ? REST_FRESH : REST_SAME;
}

static bool goes(const struct batch *b, const struct content_file *f)
{
	return metadata_spec_by_id(b->base, f->spec_id) && !metadata_spec_by_id(b->fresh, f->spec_id);
}

/* A worker's files say by which spec their partition values are to be read. The id of one that is gone may
 * be given to another spec, also by later requests: it stays while a transaction has files under it. */
static bool spec_is_staged(struct core *c, struct batch *b, struct err *err)
{
	if (!used_removes(b->base, b->fresh))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(c->txns); i++)
		for (const struct txn *x = c->txns[i]; x; x = x->next) {
			const struct content_file *found = NULL;
			if (x->table != b->table)
				continue;
			LIST_FOR (n, tmp, &x->frags) {
				const struct frag *f = LIST_ITEM(n, struct frag, node);
				for (size_t k = 0; k < f->n_files && !found; k++)
					found = goes(b, &f->files[k]) ? &f->files[k] : NULL;
				for (size_t k = 0; k < f->n_delete_files && !found; k++)
					found = goes(b, &f->delete_files[k].file)
							? &f->delete_files[k].file
							: NULL;
			}
			if (!found)
				continue;
			err_set(err, ST_COMMIT_FAILED, "updates",
				"Cannot remove partition spec %d: an open transaction has files of it",
				(int)found->spec_id);
			return true;
		}
	return false;
}

void rest_plan(struct core *c, struct batch *b)
{
	struct request *r = b->rest;
	struct table *t = b->table;
	struct err err = {0};
	if (multi_over(c, b))
		return;
	if (r && r->answered) {
		/* Its deadline passed before anything was sent. */
		finish(c, b, NULL);
		return;
	}
	/* One of several has been judged together with the others. */
	if (!b->fresh) {
		switch (rest_judge(c, b, &err)) {
		case REST_FRESH:
			break;
		case REST_SAME:
		case REST_DONE:
			request_committed(c, r, t->location, t->meta, false);
			finish(c, b, NULL);
			return;
		case REST_REFUSED:
			if (err.st == ST_COMMIT_FAILED)
				refuse(c, b, &err);
			else
				finish(c, b, &err);
			return;
		}
	}
	if (spec_is_staged(c, b, &err)) {
		finish(c, b, &err);
		return;
	}
	enum cache_answer ans = used_specs(b->base, b->fresh, &b->used_at, c->cache, &b->needs, &err);
	bool unused = ans == CACHE_HAVE;
	if (unused)
		ans = check_snapshots(c, b, false, &err);
	if (unused && ans == CACHE_FAIL && err.st == ST_VALIDATION) {
		/* It may use manifests that only an older snapshot lists. */
		struct err more = {0};
		enum cache_answer again = check_snapshots(c, b, true, &more);
		if (again != CACHE_FAIL)
			ans = again;
	}
	if (ans == CACHE_HAVE && c->conf.verify_snapshots > 0)
		ans = view_snapshots(c, b, &err);
	switch (ans) {
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
	tell_findings(c, b, &b->unread);
	tell_findings(c, b, &b->out->found);
	if (b->out->found.n)
		spoil(b, &b->out->found);
	if (!r)
		return; /* one of several: answered when all have been told */
	b->rest = NULL;
	request_committed(c, r, t->location, t->meta, r->in.idem.set);
	over(r);
}
