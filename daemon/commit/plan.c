#include "daemon/commit/plan.h"
#include "daemon/commit/mutant.h"

#include "daemon/commit/algebra.h"
#include "daemon/commit/merge.h"
#include "daemon/commit/posdel.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/rpc/rpc.h"

#define RANKS 3

static int rank_of(const struct plan_txn *t)
{
	switch ((enum rpc_kind)t->kind) {
	case RPC_KIND_DELETE:
		return 0;
	case RPC_KIND_ROW_DELTA:
		return 1;
	case RPC_KIND_APPEND:
		return 2;
	case RPC_KIND_OVERWRITE:
	case RPC_KIND_REWRITE:
	case RPC_KIND_TRUNCATE:
		break;
	}
	ASSERT_NEVER("kinds that are not implemented are refused at Begin");
	return 0;
}

struct bitmap64 *plan_own_set(struct plan *p, struct bitmap64 *own_set)
{
	if (p->n_sets == p->cap_sets) {
		p->cap_sets = p->cap_sets ? p->cap_sets * 2 : 16;
		p->sets = base_realloc_array(p->sets, p->cap_sets, sizeof(struct bitmap64 *));
	}
	p->sets[p->n_sets++] = own_set;
	return own_set;
}

void plan_free(struct plan *own_plan)
{
	if (!own_plan)
		return;
	for (size_t i = 0; i < own_plan->n_sets; i++)
		bitmap64_free(own_plan->sets[i]);
	for (size_t i = 0; i < own_plan->n_vecs; i++)
		vec_unref(own_plan->vecs[i]);
	for (size_t r = 0; r < own_plan->n_refs; r++) {
		struct plan_ref *ref = &own_plan->refs[r];
		for (size_t i = 0; ref->views && i < ref->list->l.n; i++)
			mview_unref(ref->views[i]);
		mlist_unref(ref->list);
	}
	base_free(own_plan->sets);
	base_free(own_plan->vecs);
	metadata_unref(own_plan->base);
	arena_fini(&own_plan->arena);
	base_free(own_plan);
}

/* ------------------------------------------------------------------ heads */

static enum cache_answer no_memory(struct err *err)
{
	err_set(err, ST_LIMIT, "", "the plan's memory limit is reached");
	return CACHE_FAIL;
}

/* Paths that a transaction names: those that it adds, then those of which it deletes rows. */
static size_t count_added(const struct plan_txn *t)
{
	return t->n_files + t->n_delete_files;
}

static size_t count_named(const struct plan_txn *t)
{
	size_t n = t->n_deletes;
	for (size_t i = 0; i < t->n_delete_files; i++)
		n += t->delete_files[i].n_names;
	return n;
}

static struct mkey *keys_of(struct plan *p, const struct plan_txn *t)
{
	size_t total = count_added(t) + count_named(t), n = 0;
	struct mkey *k = arena_calloc(&p->arena, total ? total : 1, sizeof *k);
	for (size_t i = 0; k && i < t->n_files; i++)
		k[n++] = mview_key(t->files[i].path);
	for (size_t i = 0; k && i < t->n_delete_files; i++)
		k[n++] = mview_key(t->delete_files[i].file.path);
	for (size_t i = 0; k && i < t->n_deletes; i++)
		k[n++] = mview_key(t->deletes[i].data_file);
	for (size_t i = 0; k && i < t->n_delete_files; i++)
		for (size_t j = 0; j < t->delete_files[i].n_names; j++)
			k[n++] = mview_key(t->delete_files[i].names[j]);
	return k;
}

/* Each is computed once. */
static bool make_keys(struct plan *p)
{
	p->keys = arena_calloc(&p->arena, p->n_txns ? p->n_txns : 1, sizeof(struct mkey *));
	for (size_t i = 0; p->keys && i < p->n_txns; i++) {
		const struct plan_txn *t = &p->txns[i];
		if (t->wish != PLAN_COMMIT || t->refused.st != ST_OK)
			continue;
		p->keys[i] = keys_of(p, t);
		if (!p->keys[i])
			return false;
	}
	return p->keys != NULL;
}

/* All keys of transactions on a ref, to ask its manifests for; *ret_deletes: some delete rows. */
static bool keys_of_ref(struct plan *p, struct strv ref, struct mkey **ret_keys, size_t *ret_n,
			bool *ret_deletes)
{
	size_t most = 0, n = 0;
	for (size_t i = 0; i < p->n_txns; i++)
		most += 2 * count_added(&p->txns[i]) + count_named(&p->txns[i]);
	struct mkey *all = arena_calloc(&p->arena, most ? most : 1, sizeof *all);
	if (!all)
		return false;
	*ret_deletes = false;
	for (size_t i = 0; i < p->n_txns; i++) {
		const struct plan_txn *t = &p->txns[i];
		if (!p->keys[i] || !strv_eq(t->ref, ref))
			continue;
		size_t added = count_added(t), named = count_named(t);
		for (size_t k = 0; k < added + named; k++)
			all[n++] = p->keys[i][k];
		for (size_t k = 0; k < added; k++)
			all[n++] = mview_delete_key(p->keys[i][k]);
		*ret_deletes |= named > 0;
	}
	*ret_keys = all;
	*ret_n = n;
	return true;
}

/* Delete files that are no vectors are judged entry by entry. */
static enum cache_answer load_legacy(struct plan *p, struct plan_ref *r, struct cache *c,
				     struct needs *needs, struct err *err)
{
	bool waiting = false;
	for (size_t i = 0; i < r->list->l.n; i++) {
		enum cache_answer ans = r->views[i]->n_legacy || r->views[i]->n_equality
						? plan_whole(p, r, i, c, needs, err)
						: CACHE_HAVE;
		if (ans == CACHE_FAIL)
			return ans;
		waiting |= ans == CACHE_WAIT;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* Loads list and manifests of a head into the plan; references are taken only when all are there. */
static enum cache_answer load_head(struct plan *p, struct plan_ref *r, struct cache *c,
				   struct needs *needs, struct err *err)
{
	struct mlist *list = NULL;
	struct mkey *keys;
	size_t n_keys;
	bool deletes;
	const struct probe *found;
	if (!r->head)
		return CACHE_HAVE;
	if (!r->head->manifest_list.p) {
		err_set(err, ST_UNSUPPORTED, "manifest-list",
			"the head snapshot lists its manifests inline");
		return CACHE_FAIL;
	}
	enum cache_answer ans = cache_list(c, r->head->manifest_list, needs, &list, err);
	if (ans != CACHE_HAVE)
		return ans;
	size_t n = list->l.n;
	struct mview **views = arena_calloc(&p->arena, n ? n : 1, sizeof(struct mview *));
	if (!views || !keys_of_ref(p, r->name, &keys, &n_keys, &deletes))
		return no_memory(err);
	ans = probe_list(c, list, p->base, keys, n_keys, needs, &found, err);
	if (ans != CACHE_HAVE)
		return ans;
	for (size_t i = 0; i < n; i++)
		views[i] = mview_ref(found->views[i]);
	r->list = mlist_ref(list);
	r->views = views;
	return deletes ? load_legacy(p, r, c, needs, err) : CACHE_HAVE;
}

enum cache_answer plan_whole(struct plan *p, struct plan_ref *r, size_t row, struct cache *c,
			     struct needs *needs, struct err *err)
{
	struct mview *v = r->views[row];
	if (v->m)
		return CACHE_HAVE;
	enum cache_answer ans =
		cache_view(c, r->list, &r->list->l.rows[row], p->base, needs, &v, err);
	if (ans == CACHE_HAVE) {
		mview_unref(r->views[row]);
		r->views[row] = mview_ref(v);
	}
	return ans;
}

static int ref_index(const struct plan *p, struct strv name)
{
	for (size_t i = 0; i < p->n_refs; i++)
		if (strv_eq(p->refs[i].name, name))
			return (int)i;
	return -1;
}

/* Which heads the transactions need. An unknown branch or a tag refuses only its transactions. */
static enum cache_answer load_refs(struct plan *p, const struct plan_in *in, struct cache *c,
				   struct needs *needs, struct err *err)
{
	p->refs = arena_calloc(&p->arena, in->n_txns ? in->n_txns : 1, sizeof *p->refs);
	if (!p->refs || !make_keys(p))
		return no_memory(err);
	bool waiting = false;
	for (size_t i = 0; i < in->n_txns; i++) {
		struct plan_txn *t = &in->txns[i];
		if (t->wish != PLAN_COMMIT || t->refused.st != ST_OK || ref_index(p, t->ref) >= 0)
			continue;
		const struct snapshot_ref *found = metadata_ref_by_name(p->base, t->ref);
		bool absent_main = !found && strv_eq(t->ref, SNAPSHOT_REF_MAIN);
		if ((!found && !absent_main) || (found && found->tag)) {
			err_set(&t->refused, ST_NO_SUCH_REF, "ref", "%.*s is %s", STRV_ARG(t->ref),
				found ? "a tag" : "no branch of the table");
			continue;
		}
		struct plan_ref *r = &p->refs[p->n_refs++];
		*r = (struct plan_ref){.name = t->ref};
		r->head = found ? metadata_snapshot(p->base, found->snapshot_id) : NULL;
		r->log = in->log_of(in->ctx, t->ref, found ? found->snapshot_id : SNAPSHOT_NONE);
		enum cache_answer ans = load_head(p, r, c, needs, err);
		if (ans == CACHE_FAIL)
			return ans;
		waiting |= ans == CACHE_WAIT;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* ------------------------------------------------------------------ checks of one transaction */

/* Paths that transactions of this batch bring, per plan; the table's own are asked of the views. */
struct paths {
	struct strv *v;
	size_t cap, n;
};

static bool paths_has(const struct paths *s, struct strv path)
{
	if (!s->cap)
		return false;
	size_t at = (size_t)bytes_hash(strv_bytes(path)) & (s->cap - 1);
	for (; s->v[at].p; at = (at + 1) & (s->cap - 1))
		if (strv_eq(s->v[at], path))
			return true;
	return false;
}

static void paths_add(struct paths *s, struct strv path)
{
	size_t at = (size_t)bytes_hash(strv_bytes(path)) & (s->cap - 1);
	while (s->v[at].p)
		at = (at + 1) & (s->cap - 1);
	s->v[at] = path;
	s->n++;
}

/* The column that a spec is made from may have been promoted or dropped since the file was staged:
 * its tuple can then not be written any more. types: those of the spec now. */
static enum status check_tuple(const struct content_file *f, const struct field *types,
			       struct err *err)
{
	for (size_t i = 0; i < f->partition.n; i++) {
		const struct value *v = &f->partition.v[i];
		if (!v->null && !value_valid(types[i].type, v->b))
			return err_set(err, ST_TUPLE_MISMATCH, "data_files.partition",
				       "the type of partition field %.*s changed since the file "
				       "was staged: %.*s",
				       STRV_ARG(types[i].name), STRV_ARG(f->path));
	}
	return ST_OK;
}

/* Data files and delete files alike. A data file does not know the format version: staged before
 * an upgrade, it gets its row ids like any other. */
static enum status check_files(struct plan *p, const struct plan_txn *t,
			       const struct plan_ref *r, const struct paths *batch,
			       struct err *err)
{
	int version = metadata_format_version(p->base);
	for (size_t i = 0; i < t->n_adopted; i++)
		if (t->adopted[i].format_version != version)
			return err_set(err, ST_FORMAT_CHANGED, "manifests",
				       "a manifest of version %d for a table of version %d: %.*s",
				       t->adopted[i].format_version, version,
				       STRV_ARG(t->adopted[i].path));
	const struct partition_spec *last = NULL;
	struct field *types = NULL;
	for (size_t i = 0; i < t->n_files + t->n_delete_files; i++) {
		bool data = i < t->n_files;
		const struct content_file *f =
			data ? &t->files[i] : &t->delete_files[i - t->n_files].file;
		const struct partition_spec *spec = metadata_spec_by_id(p->base, f->spec_id);
		if (!spec)
			return err_set(err, ST_SPEC_UNKNOWN, "data_files.spec_id",
				       "partition spec %d is no longer in the table", f->spec_id);
		if (data && !metadata_schema_by_id(p->base, t->schema_ids[i]))
			return err_set(err, ST_SCHEMA_UNKNOWN, "data_files.schema_id",
				       "schema %d is no longer in the table", t->schema_ids[i]);
		enum status st = ST_OK;
		if (spec != last)
			st = partition_type(spec, metadata_schema(p->base), &p->arena, &types, err);
		last = spec;
		if (st == ST_OK && f->partition.n)
			st = check_tuple(f, types, err);
		if (st != ST_OK)
			return st;
		if (paths_has(batch, f->path))
			return err_set(err, ST_DUPLICATE_PATH, "data_files.path",
				       "path is brought twice: %.*s", STRV_ARG(f->path));
		struct mkey key = p->keys[t - p->txns][i];
		for (size_t k = 0; r->list && k < r->list->l.n; k++) {
			const struct mview *v = r->views[k];
			if (mview_look(v, v->content == MANIFEST_DATA ? key
								      : mview_delete_key(key)))
				return err_set(err, ST_DUPLICATE_PATH, "data_files.path",
					       "path is already in the table: %.*s",
					       STRV_ARG(f->path));
		}
	}
	return ST_OK;
}

/* The read snapshot must be the head or an ancestor of it, by the metadata or by what was seen. */
static enum status check_read(const struct plan *p, const struct plan_txn *t,
			      const struct plan_ref *r, struct err *err)
{
	int version = metadata_format_version(p->base);
	if (t->n_deletes == 0 && t->n_delete_files == 0)
		return ST_OK;
	if (t->n_delete_files && version >= 3)
		return err_set(err, ST_FORMAT_CHANGED, "delete_files",
			       "the table went to version %d, which takes no position delete files",
			       version);
	if (t->n_deletes && version < 3)
		return err_set(err, ST_UNSUPPORTED, "deletes",
			       "deletion vectors need format version 3");
	int64_t head = r->head ? r->head->snapshot_id : SNAPSHOT_NONE;
	if (t->has_read && head != SNAPSHOT_NONE &&
	    (metadata_is_ancestor(p->base, t->read_snapshot, head) ||
	     reflog_saw(r->log, t->read_snapshot)))
		return ST_OK;
	return err_set(err, ST_SNAPSHOT_NOT_ANCESTOR, "read_snapshot_id",
		       "branch %.*s no longer descends from snapshot %lld", STRV_ARG(t->ref),
		       (long long)t->read_snapshot);
}

/* ------------------------------------------------------------------ lanes */

/* The newest lane, if the transaction may join it: a lane with frozen changes takes nobody. */
static struct plan_lane *open_lane(struct plan *p, int ref, const struct plan_txn *t)
{
	struct plan_lane *last = p->n_lanes ? &p->lanes[p->n_lanes - 1] : NULL;
	bool joins = last && !last->changes && last->ref == ref && last->rank == rank_of(t) &&
		     !last->n_summary && !t->n_summary;
	return joins ? last : NULL;
}

static struct plan_lane *lane_for(struct plan *p, int ref, struct plan_txn *t, int rank)
{
	struct plan_lane *last = open_lane(p, ref, t);
	if (last)
		return last;
	struct plan_lane *lane = &p->lanes[p->n_lanes++];
	*lane = (struct plan_lane){
		.ref = ref, .rank = rank, .summary = t->summary, .n_summary = t->n_summary};
	return lane;
}

/* Freezes what the lane's transactions did to the files, in the order of transactions and deletes,
 * so that the output does not depend on hash order. */
static bool close_lane(struct plan *p, struct plan_lane *lane, int index)
{
	size_t most = 0;
	for (size_t i = 0; i < lane->n_txns; i++)
		most += lane->txns[i]->n_deletes;
	lane->changes = arena_calloc(&p->arena, most ? most : 1, sizeof *lane->changes);
	if (!lane->changes)
		return false;
	for (size_t i = 0; i < lane->n_txns; i++)
		for (size_t k = 0; k < lane->txns[i]->n_deletes; k++) {
			struct plan_file *f = algebra_file(p, lane->ref,
							   lane->txns[i]->deletes[k].data_file);
			if (!f || f->lane != index || f->frozen == index)
				continue;
			f->frozen = index;
			f->emptied = bitmap64_cardinality(f->now) ==
				     (uint64_t)f->data->record_count;
			lane->changes[lane->n_changes++] = (struct plan_change){
				.file = f,
				.drop = f->emptied,
				.result = f->emptied ? NULL
						     : plan_own_set(p, bitmap64_clone(f->now))};
		}
	return true;
}

static void mark_files(struct plan *p, int ref, const struct plan_txn *t, int lane)
{
	for (size_t i = 0; i < t->n_deletes; i++) {
		struct plan_file *f = algebra_file(p, ref, t->deletes[i].data_file);
		if (f && f->data && t->deletes[i].deleted > 0)
			f->lane = lane;
	}
}

static enum cache_answer decide(struct plan *p, const struct plan_in *in, struct paths *batch,
				struct plan_txn *t, int ref, struct cache *c, struct needs *needs,
				struct err *err)
{
	const struct plan_ref *r = &p->refs[ref];
	t->state = TXN_DB_REJECTED;
	if (check_files(p, t, r, batch, &t->reject) != ST_OK ||
	    check_read(p, t, r, &t->reject) != ST_OK) {
		if (t->reject.st != ST_LIMIT)
			return CACHE_HAVE;
		*err = t->reject; /* not this one's fault */
		return CACHE_FAIL;
	}
	enum cache_answer ans = algebra_apply(p, ref, t, false, c, needs, err);
	if (ans == CACHE_HAVE && t->reject.st == ST_OK && !posdel_apply(p, ref, t)) {
		err_set(err, ST_LIMIT, "", "the plan's memory limit is reached");
		ans = CACHE_FAIL;
	}
	if (ans != CACHE_HAVE || t->reject.st != ST_OK)
		return ans;
	t->state = TXN_DB_COMMITTED;
	for (size_t i = 0; i < t->n_files; i++)
		paths_add(batch, t->files[i].path);
	for (size_t i = 0; i < t->n_delete_files; i++)
		paths_add(batch, t->delete_files[i].file.path);
	bool changes = t->n_files > 0 || t->n_delete_files > 0;
	for (size_t i = 0; i < t->n_deletes; i++)
		changes |= t->deletes[i].deleted > 0;
	if (!changes)
		return CACHE_HAVE; /* everything was deleted already: no snapshot */
	struct plan_lane *lane = lane_for(p, ref, t, rank_of(t));
	int index = (int)(lane - p->lanes);
	if (!lane->txns) {
		lane->txns = arena_calloc(&p->arena, in->n_txns, sizeof(struct plan_txn *));
		if (!lane->txns) {
			return no_memory(err);
		}
	}
	lane->txns[lane->n_txns++] = t;
	lane->n_files += t->n_files;
	lane->n_delete_files += t->n_delete_files;
	t->lane = index;
	mark_files(p, ref, t, index);
	return CACHE_HAVE;
}

/* How many transactions from the front this batch takes: ordered ones must not be overtaken by the
 * order of lanes, so the batch ends before one that would be. */
static size_t take(const struct plan_in *in)
{
	int highest = -1;
	for (size_t i = 0; i < in->n_txns; i++) {
		const struct plan_txn *t = &in->txns[i];
		if (t->wish != PLAN_COMMIT || !t->ordered)
			continue;
		if (rank_of(t) < highest)
			return i;
		highest = rank_of(t);
	}
	return in->n_txns;
}

static enum cache_answer dry_run(struct plan *p, const struct plan_in *in, size_t n,
				 struct cache *c, struct needs *needs, struct err *err)
{
	bool waiting = false;
	for (size_t i = 0; i < n; i++) {
		struct plan_txn *t = &in->txns[i];
		int ref = ref_index(p, t->ref);
		if (t->wish != PLAN_COMMIT || t->refused.st != ST_OK || ref < 0)
			continue;
		enum cache_answer ans = algebra_apply(p, ref, t, true, c, needs, err);
		if (ans == CACHE_FAIL)
			return ans;
		waiting |= ans == CACHE_WAIT;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

static enum cache_answer decide_all(struct plan *p, const struct plan_in *in, size_t n,
				    struct cache *c, struct needs *needs, struct err *err)
{
	size_t n_paths = 0;
	for (size_t i = 0; i < n; i++)
		n_paths += in->txns[i].n_files + in->txns[i].n_delete_files;
	struct paths batch = {.cap = 16};
	while (batch.cap < n_paths * 2)
		batch.cap *= 2;
	batch.v = arena_calloc(&p->arena, batch.cap, sizeof *batch.v);
	/* Each transaction can open one lane. */
	p->lanes = arena_calloc(&p->arena, n ? n : 1, sizeof *p->lanes);
	if (!batch.v || !p->lanes)
		return no_memory(err);
	for (size_t ref = 0; ref < p->n_refs; ref++)
		for (int rank = 0; rank < RANKS; rank++)
			for (size_t i = 0; i < n; i++) {
				struct plan_txn *t = &in->txns[i];
				if (t->wish != PLAN_COMMIT || t->refused.st != ST_OK ||
				    rank_of(t) != rank || ref_index(p, t->ref) != (int)ref)
					continue;
				/* What this one deletes must not get into the vectors of a
				 * lane that it does not join: that lane is frozen first. */
				size_t before = p->n_lanes;
				if (before > 0 && !MUTANT("lane-open") && !open_lane(p, (int)ref, t) &&
				    !p->lanes[before - 1].changes &&
				    !close_lane(p, &p->lanes[before - 1], (int)before - 1))
					return CACHE_FAIL;
				enum cache_answer ans =
					decide(p, in, &batch, t, (int)ref, c, needs, err);
				if (ans != CACHE_HAVE)
					return ans;
			}
	if (p->n_lanes && !p->lanes[p->n_lanes - 1].changes &&
	    !close_lane(p, &p->lanes[p->n_lanes - 1], (int)p->n_lanes - 1))
		return CACHE_FAIL;
	return CACHE_HAVE;
}

/* ------------------------------------------------------------------ manifests to be rewritten */

/* Of the data manifests, those that lose a file, which more than one may list when its writer did not
 * look; the vectors' were needed for their places. */
static enum cache_answer load_dropped(struct plan *p, struct cache *c, struct needs *needs,
				      struct err *err)
{
	bool waiting = false;
	for (size_t i = 0; i < p->n_lanes; i++) {
		const struct plan_lane *lane = &p->lanes[i];
		struct plan_ref *r = &p->refs[lane->ref];
		for (size_t k = 0; r->list && lane->n_changes && k < r->list->l.n; k++) {
			bool touched = r->views[k]->content == MANIFEST_DATA &&
				       merge_touches(lane, r->views[k]);
			enum cache_answer ans =
				touched ? plan_whole(p, r, k, c, needs, err) : CACHE_HAVE;
			if (ans == CACHE_FAIL)
				return ans;
			waiting |= ans == CACHE_WAIT;
		}
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* Small manifests that the first lane of a ref puts together. */
static enum cache_answer load_merged(struct plan *p, const struct plan_lane *lane, struct cache *c,
				     struct needs *needs, struct err *err)
{
	struct plan_ref *r = &p->refs[lane->ref];
	size_t n = r->list ? r->list->l.n : 0;
	struct merge_row *rows = arena_calloc(&p->arena, n ? n : 1, sizeof *rows);
	bool *picked = arena_calloc(&p->arena, n ? n : 1, sizeof *picked), waiting = false;
	if (!rows || !picked)
		return no_memory(err);
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct merge_row){&r->list->l.rows[i], r->views[i]};
	if (merge_pick(p->base, lane, rows, n, picked) == 0)
		return CACHE_HAVE;
	for (size_t i = 0; i < n; i++) {
		enum cache_answer ans =
			picked[i] ? plan_whole(p, r, i, c, needs, err) : CACHE_HAVE;
		if (ans == CACHE_FAIL)
			return ans;
		waiting |= ans == CACHE_WAIT;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

static enum cache_answer load_rewritten(struct plan *p, struct cache *c, struct needs *needs,
					struct err *err)
{
	enum cache_answer ans = load_dropped(p, c, needs, err);
	for (size_t i = 0; ans != CACHE_FAIL && i < p->n_lanes; i++) {
		if (i && p->lanes[i].ref == p->lanes[i - 1].ref)
			continue;
		enum cache_answer one = load_merged(p, &p->lanes[i], c, needs, err);
		if (one != CACHE_HAVE)
			ans = one;
	}
	return ans;
}

static void reset_outputs(const struct plan_in *in)
{
	for (size_t i = 0; i < in->n_txns; i++) {
		struct plan_txn *t = &in->txns[i];
		t->taken = false;
		t->lane = -1;
		t->reject = (struct err){0};
		for (size_t k = 0; k < t->n_deletes; k++)
			t->deletes[k].deleted = t->deletes[k].overlap = 0;
	}
}

enum plan_answer plan_run(const struct plan_in *in, struct cache *c, struct needs *needs,
			  struct plan **ret_plan, struct err *err)
{
	struct plan *p = base_calloc(1, sizeof *p);
	arena_init(&p->arena, in->max_bytes);
	p->base = metadata_ref(in->base);
	p->txns = in->txns;
	p->n_txns = in->n_txns;
	reset_outputs(in);
	size_t n = take(in);
	enum cache_answer ans = load_refs(p, in, c, needs, err);
	if (ans == CACHE_HAVE)
		ans = dry_run(p, in, n, c, needs, err);
	if (ans == CACHE_HAVE)
		ans = decide_all(p, in, n, c, needs, err);
	if (ans == CACHE_HAVE)
		ans = load_rewritten(p, c, needs, err);
	if (ans != CACHE_HAVE) {
		plan_free(p);
		if (ans == CACHE_WAIT)
			return PLAN_WAIT;
		if (err->st == ST_OK)
			err_set(err, ST_LIMIT, "", "the plan's memory limit is reached");
		return PLAN_FAIL;
	}
	for (size_t i = 0; i < n; i++) {
		struct plan_txn *t = &in->txns[i];
		t->taken = true;
		if (t->wish == PLAN_ABORT) {
			t->state = TXN_DB_ABORTED;
		} else if (t->wish == PLAN_EXPIRE) {
			t->state = TXN_DB_EXPIRED;
		} else if (t->refused.st != ST_OK) {
			t->state = TXN_DB_REJECTED;
			t->reject = t->refused;
		}
	}
	for (size_t i = 0; i < p->n_lanes; i++)
		p->lanes[i].snapshot_id = in->new_snapshot_id(in->ctx);
	*ret_plan = p;
	return PLAN_DONE;
}

void plan_published(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_lanes; i++) {
		const struct plan_lane *lane = &plan->lanes[i];
		if (posdel_moves(lane))
			reflog_ours_moved(plan->refs[lane->ref].log, lane->snapshot_id);
		else
			reflog_ours(plan->refs[lane->ref].log, lane->snapshot_id);
	}
	for (size_t b = 0; b < ARRAY_SIZE(plan->files); b++)
		for (const struct plan_file *f = plan->files[b]; f; f = f->next) {
			struct reflog *log = plan->refs[f->ref].log;
			if (f->moved)
				reflog_moved(log, f->path, f->moved);
			if (f->emptied)
				reflog_emptied(log, f->path);
		}
}
