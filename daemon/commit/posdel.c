#include "daemon/commit/posdel.h"
#include "daemon/commit/mutant.h"

#include "daemon/commit/algebra.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/rpc.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "data_files",
		       "the transaction exceeds the memory limit; name the data files");
}

/* ------------------------------------------------------------------ the read snapshot */

static struct bytes bound_of(const struct bound *v, size_t n, int32_t field)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].field_id == field)
			return v[i].b;
	return (struct bytes){NULL, 0};
}

/* Whether the bounds can be those of a file whose paths begin with `first` and end with `last`: whole,
 * or cut as writers cut long text, the upper one with its last character raised. */
static bool only_names(struct strv first, struct strv last, struct strv low, struct strv high)
{
	if (low.p && !strv_starts(first, low))
		return false;
	if (!high.p || strv_eq(high, last))
		return true;
	size_t n = high.n;
	while (n > 1 && ((uint8_t)high.p[n - 1] & 0xc0) == 0x80)
		n--;
	return n > 0 && high.n < last.n && strv_starts(last, strv_sub(high, 0, n - 1));
}

/* data: NULL when the name is not in the read snapshot, of whose view `v` it is. */
static enum status told_name(const struct plan_delete_file *d, const struct mview *v,
			     const struct mfile *data, struct strv name, struct err *err)
{
	const char *dots;
	struct strv tail = algebra_tail(name, &dots);
	const struct content_file *f = &d->file;
	if (!data)
		return err_set(err, ST_FILE_GONE, "data_files",
			       "not a data file of the read snapshot: %s%.*s", dots,
			       STRV_ARG(tail));
	if (f->spec_id != v->spec_id || !tuple_eq(&f->partition, mview_tuple(v, data)))
		return err_set(err, ST_TUPLE_MISMATCH, "partition",
			       "this data file has another spec or partition: %s%.*s", dots,
			       STRV_ARG(tail));
	struct strv low = bytes_strv(bound_of(f->lower, f->n_lower, FIELD_ID_DELETE_FILE_PATH));
	struct strv high = bytes_strv(bound_of(f->upper, f->n_upper, FIELD_ID_DELETE_FILE_PATH));
	if ((low.p && strv_cmp(name, low) < 0) || (high.p && strv_cmp(name, high) > 0))
		return err_set(err, ST_METRICS_INVALID, "upper_bounds",
			       "this data file lies outside of the path bounds: %s%.*s", dots,
			       STRV_ARG(tail));
	/* A path that is not told would not be looked at for changes, and when a single one is told it
	 * becomes the file's scope: readers then pass over all others. Names are told in order. */
	if (!only_names(d->names[0], d->names[d->n_names - 1], low, high))
		return err_set(err, ST_METRICS_INVALID, "upper_bounds",
			       "the path bounds hold more than the names: %s%.*s", dots,
			       STRV_ARG(tail));
	return ST_OK;
}

enum status posdel_gather(const struct mview *v, struct arena *a, struct plan_delete_file *d,
			  struct err *err)
{
	void *items = (void *)(uintptr_t)d->names;
	ASSERT(v->m != NULL);
	for (size_t k = 0; k < v->m->n; k++) {
		const struct content_file *f = &v->m->entries[k].file;
		if (v->m->entries[k].status == ENTRY_DELETED ||
		    !tuple_eq(&f->partition, &d->file.partition))
			continue;
		if (!arena_grow(a, &items, &d->cap_names, d->n_names + 1, sizeof(struct strv)))
			return full(err);
		d->names = items;
		if (!arena_strv(a, f->path, &((struct strv *)items)[d->n_names]))
			return full(err);
		d->n_names++;
		d->most = f->record_count > d->most ? f->record_count : d->most;
	}
	return ST_OK;
}

enum status posdel_names(struct mview *const *views, size_t n, struct plan_delete_file *d,
			 struct err *err)
{
	enum status st = ST_OK;
	for (size_t i = 0; d->told && st == ST_OK && i < d->n_names; i++) {
		struct located l = algebra_locate(views, n, mview_key(d->names[i]));
		st = told_name(d, l.data ? views[l.data_row] : NULL, l.data, d->names[i], err);
		if (st == ST_OK && l.data->record_count > d->most)
			d->most = l.data->record_count;
	}
	if (!d->told && d->n_names == 0)
		st = err_set(err, ST_FILE_GONE, "partition",
			     "the partition has no data file at the read snapshot");
	if (st != ST_OK)
		return st;
	struct bytes high = bound_of(d->file.upper, d->file.n_upper, FIELD_ID_DELETE_POS);
	if (high.n == 8 && (int64_t)get_u64le(high.p) >= d->most)
		return err_set(err, ST_POSITION_RANGE, "upper_bounds",
			       "position %lld is not below the record count of any named data file",
			       (long long)get_u64le(high.p));
	return ST_OK;
}

/* ------------------------------------------------------------------ the head */

static size_t slot(int ref, struct strv path)
{
	return (size_t)(bytes_hash(strv_bytes(path)) + (uint64_t)ref) % PLAN_BUCKETS;
}

static bool touched(const struct plan *p, int ref, struct strv path)
{
	const struct plan_touch *x = p->touched[slot(ref, path)];
	while (x && (x->ref != ref || !strv_eq(x->path, path)))
		x = x->next;
	return x != NULL;
}

/* Sequence number of the snapshot that added the file; writers that did not know the column leave
 * it out, and then the snapshot itself tells, if it is still there. */
static int64_t added_at(const struct plan *p, const struct manifest_entry *e)
{
	if (e->file_seq != SEQ_UNKNOWN)
		return e->file_seq;
	const struct snapshot *s = metadata_snapshot(p->base, e->snapshot_id);
	return s ? s->sequence_number : INT64_MAX;
}

/* Delete files that were added since the read snapshot. Those of pure deletions do not count against
 * another one: what both delete is gone either way. */
struct recent {
	const struct manifest_entry **v;
	size_t n;
};

static bool collect(struct plan *p, int ref, const struct plan_txn *t, int64_t bound,
		    struct recent *ret_r)
{
	const struct plan_ref *r = &p->refs[ref];
	struct recent out = {0};
	void *items = NULL;
	size_t cap = 0;
	bool dead = t->kind == RPC_KIND_DELETE && reflog_knows(r->log, t->read_snapshot);
	for (size_t i = 0; !dead && i < r->list->l.n; i++) {
		const struct mview *v = r->views[i];
		if (!v->n_legacy && !v->n_equality)
			continue;
		ASSERT(v->m != NULL);
		for (size_t k = 0; k < v->m->n; k++) {
			const struct manifest_entry *e = &v->m->entries[k];
			if (e->status == ENTRY_DELETED || added_at(p, e) <= bound ||
			    (t->kind == RPC_KIND_DELETE && reflog_plain(r->log, e->snapshot_id)))
				continue;
			if (!arena_grow(&p->arena, &items, &cap, out.n + 1, sizeof *out.v))
				return false;
			out.v = items;
			out.v[out.n++] = e;
		}
	}
	*ret_r = out;
	return true;
}

static enum status refuse(struct plan_txn *t, enum status st, const char *what, struct strv path)
{
	const char *dots;
	struct strv tail = algebra_tail(path, &dots);
	return err_set(&t->reject, st, "delete_files.data_files", "%s: %s%.*s", what, dots,
		       STRV_ARG(tail));
}

static enum status judge(const struct plan *p, int ref, struct plan_txn *t,
			 const struct recent *recent, int64_t bound, struct strv name)
{
	const struct plan_ref *r = &p->refs[ref];
	struct located l = algebra_locate(r->views, r->list->l.n, mview_key(name));
	bool pure = t->kind == RPC_KIND_DELETE;
	if (!l.data) {
		/* Gone because all its rows were deleted: deleting some of them again changes
		 * nothing, and a later file of this path has a higher sequence number. */
		if (pure && reflog_knows(r->log, t->read_snapshot))
			return ST_OK;
		return refuse(t, ST_WRITE_WRITE, "data file was removed since the read snapshot",
			      name);
	}
	/* The positions are those of another file: they would delete rows that nobody meant. */
	int64_t seq = l.data->file_seq == SEQ_UNKNOWN ? l.data->seq : l.data->file_seq;
	if (seq > bound)
		return refuse(t, ST_WRITE_WRITE,
			      "another data file has this path since the read snapshot", name);
	struct algebra_data data = algebra_data_of(r->views[l.data_row], l.data, name);
	for (size_t i = 0; i < recent->n && !MUTANT("deletes-ignored"); i++) {
		const char *dots, *more;
		if (!algebra_may_apply(p->base, recent->v[i], &data))
			continue;
		struct strv del = algebra_tail(recent->v[i]->file.path, &dots),
			    file = algebra_tail(name, &more);
		return err_set(&t->reject, ST_WRITE_WRITE, "delete_files.data_files",
			       "%s%.*s was added for %s%.*s", dots, STRV_ARG(del), more,
			       STRV_ARG(file));
	}
	if (!pure && touched(p, ref, name) && !MUTANT("deletes-ignored"))
		return refuse(t, ST_WRITE_WRITE, "rows were changed or deleted in", name);
	return ST_OK;
}

bool posdel_apply(struct plan *p, int ref, struct plan_txn *t)
{
	int64_t bound = 0;
	struct recent recent = {0};
	if (t->n_delete_files == 0)
		return true;
	if (!algebra_read_bound(p, ref, t, &bound)) {
		err_set(&t->reject, ST_SNAPSHOT_TOO_OLD, "read_snapshot_id",
			"the read snapshot is gone, and with it what was added since");
		return true;
	}
	if (!collect(p, ref, t, bound, &recent))
		return false;
	for (size_t i = 0; i < t->n_delete_files; i++)
		for (size_t k = 0; k < t->delete_files[i].n_names; k++)
			if (judge(p, ref, t, &recent, bound, t->delete_files[i].names[k]) != ST_OK)
				return true;
	for (size_t i = 0; i < t->n_delete_files; i++)
		for (size_t k = 0; k < t->delete_files[i].n_names; k++) {
			struct strv name = t->delete_files[i].names[k];
			if (touched(p, ref, name))
				continue;
			struct plan_touch *x = arena_calloc(&p->arena, 1, sizeof *x);
			if (!x)
				return false;
			*x = (struct plan_touch){p->touched[slot(ref, name)], ref, name};
			p->touched[slot(ref, name)] = x;
		}
	return true;
}

bool posdel_moves(const struct plan_lane *lane)
{
	for (size_t i = 0; i < lane->n_txns; i++)
		if (lane->txns[i]->n_delete_files && lane->txns[i]->kind != RPC_KIND_DELETE)
			return true;
	return false;
}
