#include "daemon/commit/algebra.h"
#include "daemon/commit/mutant.h"

#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

struct located algebra_locate(struct mview *const *views, size_t n, struct mkey key)
{
	struct located l = {0};
	for (size_t i = 0; i < n; i++) {
		const struct mfile *f = mview_look(views[i], key);
		if (!f)
			continue;
		if (views[i]->content == MANIFEST_DATA) {
			l.data_row = i;
			l.data = f;
			continue;
		}
		/* Equal keys lie together: one manifest may have two vectors of a file. */
		const struct mfile *end = views[i]->files + views[i]->n_files;
		for (; f < end && f->key.hi == key.hi && f->key.lo == key.lo; f++) {
			l.dv_row = i;
			l.dv = f;
			l.n_dvs++;
		}
	}
	return l;
}

/* The only path that a position delete file can hold, by its reference or by equal bounds of its
 * path column; p NULL when it may hold several. */
static struct strv single_path(const struct content_file *f)
{
	if (f->referenced_data_file.p)
		return f->referenced_data_file;
	struct strv lower = {NULL, 0};
	for (size_t i = 0; i < f->n_lower; i++)
		if (f->lower[i].field_id == FIELD_ID_DELETE_FILE_PATH)
			lower = bytes_strv(f->lower[i].b);
	for (size_t i = 0; i < f->n_upper; i++)
		if (f->upper[i].field_id == FIELD_ID_DELETE_FILE_PATH && lower.p &&
		    strv_eq(lower, bytes_strv(f->upper[i].b)))
			return lower;
	return (struct strv){NULL, 0};
}

/* No field that splits the table: deletes under such a spec have no partition to be held to. */
static bool unpartitioned(const struct partition_spec *spec)
{
	for (size_t i = 0; spec && i < spec->n; i++)
		if (spec->fields[i].transform.kind != TRANSFORM_VOID)
			return false;
	return spec != NULL;
}

struct algebra_data algebra_data_of(const struct mview *v, const struct mfile *f, struct strv path)
{
	return (struct algebra_data){path, f->seq, v->spec_id, mview_tuple(v, f)};
}

bool algebra_may_apply(const struct metadata *m, const struct manifest_entry *del,
		       const struct algebra_data *data)
{
	const struct content_file *f = &del->file;
	if (del->status == ENTRY_DELETED || f->content == CONTENT_DATA || content_file_is_dv(f))
		return false;
	bool equality = f->content == CONTENT_EQUALITY_DELETES;
	if (equality ? del->seq <= data->seq : del->seq < data->seq)
		return false;
	struct strv only = equality ? (struct strv){NULL, 0} : single_path(f);
	if (only.p)
		return strv_eq(only, data->path);
	if (equality && unpartitioned(metadata_spec_by_id(m, f->spec_id)))
		return true;
	return f->spec_id == data->spec_id && tuple_eq(&f->partition, data->partition);
}

struct strv algebra_tail(struct strv path, const char **ret_dots)
{
	size_t max = 74;
	*ret_dots = path.n > max ? "..." : "";
	return path.n > max ? strv_sub(path, path.n - max, path.n) : path;
}

enum status algebra_legacy(const struct metadata *m, struct mview *const *views, size_t n,
			   const struct algebra_data *data, bool vector, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!views[i]->n_legacy && !views[i]->n_equality)
			continue;
		ASSERT(views[i]->m != NULL);
		for (size_t k = 0; k < views[i]->m->n; k++) {
			const struct manifest_entry *e = &views[i]->m->entries[k];
			if ((vector && e->file.content == CONTENT_POSITION_DELETES) ||
			    !algebra_may_apply(m, e, data))
				continue;
			const char *dots, *more;
			struct strv one = algebra_tail(e->file.path, &dots),
				    two = algebra_tail(data->path, &more);
			enum status st = err_set(err, ST_LEGACY_DELETES, "deletes.data_file",
						 "deletes in %s%.*s may apply to %s%.*s", dots,
						 STRV_ARG(one), more, STRV_ARG(two));
			err_detail(err, "delete file %.*s", STRV_ARG(e->file.path));
			return st;
		}
	}
	return ST_OK;
}

static size_t slot(int ref, struct strv path)
{
	return (size_t)(bytes_hash(strv_bytes(path)) + (uint64_t)ref) % PLAN_BUCKETS;
}

struct plan_file *algebra_file(const struct plan *p, int ref, struct strv path)
{
	struct plan_file *f = p->files[slot(ref, path)];
	while (f && (f->ref != ref || !strv_eq(f->path, path)))
		f = f->next;
	return f;
}

static enum cache_answer load_vector(struct plan *p, struct plan_ref *r, size_t row,
				     struct strv path, struct cache *c, struct needs *needs,
				     struct vec **ret_v, struct err *err)
{
	enum cache_answer ans = plan_whole(p, r, row, c, needs, err);
	if (ans != CACHE_HAVE)
		return ans;
	const struct manifest_entry *e = mview_find(r->views[row], path);
	if (!e) {
		err_set(err, ST_CORRUPT, "referenced_data_file", "two paths have one key: %.*s",
			STRV_ARG(path));
		return CACHE_FAIL;
	}
	return cache_vec(c, &e->file, needs, ret_v, err);
}

/* The plan's state of a data file, made from the head on first use. */
static enum cache_answer state_of(struct plan *p, int ref, struct strv path, struct cache *c,
				  struct needs *needs, struct plan_file **ret_f, struct err *err)
{
	struct plan_file *f = algebra_file(p, ref, path);
	if (f) {
		*ret_f = f;
		return CACHE_HAVE;
	}
	struct plan_ref *r = &p->refs[ref];
	size_t n = r->list ? r->list->l.n : 0;
	struct mkey key = mview_key(path);
	struct located l = algebra_locate(r->views, n, key);
	struct vec *base = NULL;
	enum cache_answer ans = CACHE_HAVE;
	if (l.n_dvs == 1)
		ans = load_vector(p, r, l.dv_row, path, c, needs, &base, err);
	if (ans != CACHE_HAVE)
		return ans;
	f = arena_calloc(&p->arena, 1, sizeof *f);
	struct mfile *copies = arena_calloc(&p->arena, 2, sizeof *copies);
	if (!f || !copies) {
		err_set(err, ST_LIMIT, "", "the plan's memory limit is reached");
		return CACHE_FAIL;
	}
	/* The views may be exchanged for whole ones. */
	l = algebra_locate(r->views, n, key);
	if (l.data)
		copies[0] = *l.data;
	if (l.dv)
		copies[1] = *l.dv;
	*f = (struct plan_file){.ref = ref,
				.path = path,
				.key = key,
				.data = l.data ? &copies[0] : NULL,
				.data_row = l.data_row,
				.dv = l.dv ? &copies[1] : NULL,
				.dv_row = l.dv_row,
				.lane = -1,
				.frozen = -1};
	if (base) {
		if (p->n_vecs == p->cap_vecs) {
			p->cap_vecs = p->cap_vecs ? p->cap_vecs * 2 : 8;
			p->vecs = base_realloc_array(p->vecs, p->cap_vecs, sizeof *p->vecs);
		}
		p->vecs[p->n_vecs++] = vec_ref(base);
		f->base = base;
		f->now = plan_own_set(p, MUTANT("vector-replaced") ? bitmap64_new()
								   : bitmap64_clone(base->set));
	} else {
		f->now = plan_own_set(p, bitmap64_new());
	}
	f->n_dvs = l.n_dvs;
	f->next = p->files[slot(ref, path)];
	p->files[slot(ref, path)] = f;
	*ret_f = f;
	return CACHE_HAVE;
}

static enum status refuse(struct plan_txn *t, enum status st, const char *what, struct strv path)
{
	err_set(&t->reject, st, "deletes.data_file", "%s: %.*s", what, STRV_ARG(path));
	return st;
}

/* Whether every position that somebody else deleted since the read snapshot was deleted for good.
 * What is not known counts as moved. */
static bool all_dead(const struct plan *p, int ref, const struct plan_txn *t,
		     const struct plan_file *f, const struct bitmap64 *positions)
{
	const struct reflog *log = p->refs[ref].log;
	if (!reflog_knows(log, t->read_snapshot))
		return false;
	const struct bitmap64 *moved = reflog_moved_of(log, f->path);
	if (moved && bitmap64_common(moved, positions) > 0)
		return false;
	return !f->moved || bitmap64_common(f->moved, positions) == 0;
}

bool algebra_read_bound(const struct plan *p, int ref, const struct plan_txn *t, int64_t *ret_seq)
{
	const struct snapshot *read = metadata_snapshot(p->base, t->read_snapshot);
	if (read) {
		*ret_seq = read->sequence_number;
		return true;
	}
	for (const struct snapshot *s = p->refs[ref].head; s; s = metadata_parent(p->base, s))
		if (s->parent_id == t->read_snapshot) {
			*ret_seq = s->sequence_number - 1;
			return true;
		}
	return false;
}

/* A path may have left the ref and been written again: then its positions are other rows. ST_OK,
 * ST_FILE_GONE, or ST_SNAPSHOT_TOO_OLD when nobody can tell any more. */
static enum status same_file(const struct plan *p, int ref, const struct plan_txn *t,
			     const struct plan_file *f)
{
	const struct reflog *log = p->refs[ref].log;
	int64_t bound;
	if (algebra_read_bound(p, ref, t, &bound))
		return f->data->file_seq != SEQ_UNKNOWN && f->data->file_seq > bound ? ST_FILE_GONE
										      : ST_OK;
	return reflog_was_emptied(log, f->path) || !reflog_knows(log, t->read_snapshot)
		       ? ST_SNAPSHOT_TOO_OLD
		       : ST_OK;
}

static enum cache_answer check_one(struct plan *p, int ref, struct plan_txn *t,
				   struct plan_delete *d, struct cache *c, struct needs *needs,
				   struct err *err)
{
	struct plan_file *f;
	enum cache_answer ans = state_of(p, ref, d->data_file, c, needs, &f, err);
	if (ans != CACHE_HAVE)
		return ans;
	if (!f->data) {
		/* Gone from the ref. When it left because every row was deleted, deleting some of
		 * them again changes nothing. */
		if (d->dead && reflog_was_emptied(p->refs[ref].log, d->data_file) &&
		    all_dead(p, ref, t, f, d->positions)) {
			d->deleted = 0;
			d->overlap = (int64_t)bitmap64_cardinality(d->positions);
			return CACHE_HAVE;
		}
		refuse(t, ST_FILE_GONE, "data file is no longer in the ref", d->data_file);
		return CACHE_HAVE;
	}
	enum status same = same_file(p, ref, t, f);
	if (same != ST_OK) {
		refuse(t, same,
		       same == ST_FILE_GONE
			       ? "another data file has this path since the read snapshot"
			       : "the read snapshot is gone, and with it whether this is the file",
		       d->data_file);
		return CACHE_HAVE;
	}
	if (f->n_dvs > 1) {
		/* Left by a foreign commit. */
		refuse(t, ST_TABLE_INCONSISTENT, "data file has two vectors", d->data_file);
		return CACHE_HAVE;
	}
	const struct plan_ref *r = &p->refs[ref];
	if (reflog_spoilt(r->log, d->data_file)) {
		refuse(t, ST_TABLE_INCONSISTENT, "a foreign commit contradicts itself about",
		       d->data_file);
		return CACHE_HAVE;
	}
	struct algebra_data data = algebra_data_of(r->views[f->data_row], f->data, f->path);
	if (algebra_legacy(p->base, r->views, r->list->l.n, &data, f->dv != NULL, &t->reject) !=
	    ST_OK)
		return CACHE_HAVE;
	uint64_t max;
	if (bitmap64_max(d->positions, &max) && max >= (uint64_t)f->data->record_count) {
		refuse(t, ST_POSITION_RANGE, "position is not below the record count of",
		       d->data_file);
		return CACHE_HAVE;
	}
	uint64_t common = bitmap64_common(f->now, d->positions);
	d->overlap = (int64_t)common;
	d->deleted = (int64_t)(bitmap64_cardinality(d->positions) - common);
	if (common == 0)
		return CACHE_HAVE;
	if (!d->dead && !MUTANT("overlap-accepted"))
		refuse(t, ST_WRITE_WRITE, "a row to change was changed or deleted in", d->data_file);
	else if (!all_dead(p, ref, t, f, d->positions) && !MUTANT("provenance-ignored"))
		refuse(t, ST_ROW_MOVED, "a row to delete was moved out of", d->data_file);
	return CACHE_HAVE;
}

enum cache_answer algebra_apply(struct plan *p, int ref, struct plan_txn *t, bool dry,
				struct cache *c, struct needs *needs, struct err *err)
{
	bool waiting = false;
	for (size_t i = 0; i < t->n_deletes; i++) {
		if (dry) {
			/* Only to learn which vectors are missing, all at once. */
			struct plan_file *f;
			enum cache_answer ans =
				state_of(p, ref, t->deletes[i].data_file, c, needs, &f, err);
			if (ans == CACHE_FAIL)
				return ans;
			waiting |= ans == CACHE_WAIT;
			continue;
		}
		enum cache_answer ans = check_one(p, ref, t, &t->deletes[i], c, needs, err);
		if (ans != CACHE_HAVE)
			return ans;
		if (t->reject.st != ST_OK)
			return CACHE_HAVE;
	}
	if (dry)
		return waiting ? CACHE_WAIT : CACHE_HAVE;
	for (size_t i = 0; i < t->n_deletes; i++) {
		const struct plan_delete *d = &t->deletes[i];
		struct plan_file *f = algebra_file(p, ref, d->data_file);
		ASSERT(f != NULL);
		if (!f->data || d->deleted == 0)
			continue;
		if (bitmap64_union(f->now, &d->positions, 1, &t->reject) != ST_OK)
			ASSERT_NEVER("positions below a record count always fit");
		if (d->dead)
			continue;
		if (!f->moved)
			f->moved = plan_own_set(p, bitmap64_new());
		if (bitmap64_union(f->moved, &d->positions, 1, &t->reject) != ST_OK)
			ASSERT_NEVER("positions below a record count always fit");
	}
	return CACHE_HAVE;
}
