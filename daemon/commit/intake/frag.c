/* Fragments: from the message, through what was already deleted at the read snapshot, to the
 * stored form and back. */
#include "daemon/commit/intake/intake.h"

#include <stdlib.h>

#include "daemon/commit/algebra.h"
#include "daemon/commit/intake/check.h"
#include "daemon/commit/intake/expand.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/posdel.h"
#include "daemon/commit/state.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

/* The version, the positions as the worker stated them (Seal's totals count those), the format
 * version of adopted manifests, the message with the files of those among its own. */
#define FRAG_VERSION 4
#define FRAG_HEAD 10
#define SEAL_VERSION 1

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

static int by_text(const void *a, const void *b)
{
	return strv_cmp(*(const struct strv *)a, *(const struct strv *)b);
}

ptrdiff_t frag_twice(struct strv *v, size_t n)
{
	if (n > 1)
		qsort(v, n, sizeof *v, by_text);
	for (size_t i = 1; i < n; i++)
		if (strv_eq(v[i - 1], v[i]))
			return (ptrdiff_t)i;
	return -1;
}

size_t frag_once(struct strv *v, size_t n)
{
	size_t once = 0;
	(void)frag_twice(v, n);
	for (size_t i = 0; i < n; i++)
		if (!once || !strv_eq(v[once - 1], v[i]))
			v[once++] = v[i];
	return once;
}

bool frag_among(const struct strv *sorted, size_t n, struct strv text)
{
	return n && bsearch(&text, sorted, n, sizeof *sorted, by_text) != NULL;
}

static size_t slot_of(const struct txn *x, struct strv id, int32_t attempt)
{
	return (size_t)(bytes_hash(strv_bytes(id)) + (uint64_t)(uint32_t)attempt) &
	       (x->n_frag_slots - 1);
}

struct frag *frag_find(const struct txn *x, struct strv id, int32_t attempt)
{
	if (!x->n_frag_slots)
		return NULL;
	struct frag *f = x->frag_slots[slot_of(x, id, attempt)];
	while (f && (f->attempt != attempt || !strv_eq(f->id, id)))
		f = f->next;
	return f;
}

const struct content_file *frag_object(const struct frag *f, size_t i)
{
	if (i < f->n_files)
		return &f->files[i];
	i -= f->n_files;
	return i < f->n_delete_files ? &f->delete_files[i].file
				     : &f->manifests[i - f->n_delete_files].object;
}

size_t frag_n_objects(const struct frag *f)
{
	return f->n_files + f->n_delete_files + f->n_manifests;
}

void frag_keep(struct txn *x, struct frag *f)
{
	if (x->n_frags >= x->n_frag_slots) {
		base_free(x->frag_slots);
		x->n_frag_slots = x->n_frag_slots ? x->n_frag_slots * 2 : 4;
		x->frag_slots = base_calloc(x->n_frag_slots, sizeof(struct frag *));
		LIST_FOR (n, tmp, &x->frags) {
			struct frag *old = LIST_ITEM(n, struct frag, node);
			struct frag **at = &x->frag_slots[slot_of(x, old->id, old->attempt)];
			old->next = *at;
			*at = old;
		}
	}
	struct frag **slot = &x->frag_slots[slot_of(x, f->id, f->attempt)];
	f->next = *slot;
	*slot = f;
	x->n_frags++;
	list_push_back(&x->frags, &f->node);
}

enum status frag_positions(struct txn *x, struct bitmap64 *own_set, int64_t cardinality,
			   const char *field, struct plan_delete *d, struct err *err)
{
	txn_own_set(x, own_set);
	if (bitmap64_empty(own_set))
		return err_set(err, ST_BAD_REQUEST, field, "the vector is empty");
	if (cardinality < 0 || (uint64_t)cardinality != bitmap64_cardinality(own_set))
		return err_set(err, ST_DV_CORRUPT, "cardinality",
			       "stated %lld positions, the vector has %llu", (long long)cardinality,
			       (unsigned long long)bitmap64_cardinality(own_set));
	d->positions = own_set;
	return ST_OK;
}

static enum status decode_delete(const struct metadata *m, struct txn *x,
				 const struct rpc_delete_vector *in, size_t at, struct frag *f,
				 struct err *err)
{
	struct plan_delete *ret_d = &f->deletes[at];
	struct bitmap64 *set;
	enum status st;
	if (in->blob && in->vector.n)
		return err_set(err, ST_BAD_REQUEST, "blob",
			       "a deletion has a vector or a blob, not both");
	if (in->blob) {
		st = blob_note(m, x, in->blob, in->cardinality, at, f, err);
		if (st != ST_OK) {
			err_prefix(err, "blob");
			return st;
		}
	} else {
		st = dv_blob_decode(in->vector, &set, err);
		if (st != ST_OK) {
			err_prefix(err, "vector");
			return st;
		}
		st = frag_positions(x, set, in->cardinality, "vector", ret_d, err);
		if (st != ST_OK)
			return st;
	}
	if (!arena_strv(&x->arena, in->data_file, &ret_d->data_file))
		return full(err);
	ret_d->dead = x->row.kind == RPC_KIND_DELETE && in->provenance != RPC_PROVENANCE_MOVED;
	return ST_OK;
}

enum status frag_no_path_twice(const struct frag *f, struct err *err)
{
	size_t n = frag_n_objects(f);
	struct strv *v = base_calloc(n ? n : 1, sizeof *v);
	for (size_t i = 0; i < n; i++)
		v[i] = frag_object(f, i)->path;
	ptrdiff_t at = frag_twice(v, n);
	if (at >= 0)
		err_set(err, ST_DUPLICATE_PATH, "data_files.path",
			"the fragment brings this path twice: %.*s", STRV_ARG(v[at]));
	base_free(v);
	return at >= 0 ? ST_DUPLICATE_PATH : ST_OK;
}

/* Several messages may name one data file: each is a task's, and their vectors are merged. */
static enum status no_target_twice(const struct frag *f, struct err *err)
{
	size_t n = f->whole->own_deletes;
	struct strv *v = base_calloc(n ? n : 1, sizeof *v);
	for (size_t i = 0; i < n; i++)
		v[i] = f->deletes[i].data_file;
	ptrdiff_t at = frag_twice(v, n);
	if (at >= 0)
		err_set(err, ST_BAD_REQUEST, "deletes.data_file",
			"the fragment names this data file twice: %.*s", STRV_ARG(v[at]));
	base_free(v);
	return at >= 0 ? ST_BAD_REQUEST : ST_OK;
}

static enum status decode_files(const struct metadata *m, struct txn *x,
				const struct rpc_fragment *in, struct frag *f, struct err *err)
{
	f->files = arena_calloc(&x->arena, in->n_data_files ? in->n_data_files : 1,
				sizeof *f->files);
	f->schema_ids = arena_calloc(&x->arena, in->n_data_files ? in->n_data_files : 1,
				     sizeof *f->schema_ids);
	if (!f->files || !f->schema_ids)
		return full(err);
	for (size_t i = 0; i < in->n_data_files; i++) {
		const struct rpc_data_file *d = &in->data_files[i];
		enum status st = check_data_file(m, d, &x->arena, &f->files[i], err);
		if (st != ST_OK) {
			if (f->whole)
				expand_blame_file(f->whole, i, err);
			return st;
		}
		f->schema_ids[i] = d->schema_id;
		if (!add_i64(f->rows, d->record_count, &f->rows) ||
		    !add_i64(f->rows_updated, d->updated_row_count, &f->rows_updated))
			return err_set(err, ST_BAD_REQUEST, "data_files", "row counts overflow");
	}
	f->n_files = in->n_data_files;
	return ST_OK;
}

/* The names that a fragment tells; in the stored form the last of them is empty when it told none
 * and they are all of the partition's. */
static enum status decode_names(struct txn *x, const struct rpc_delete_file *in, bool stored,
				struct plan_delete_file *d, struct err *err)
{
	size_t n = in->n_data_files;
	d->told = n > 0 && !(stored && in->data_files[n - 1].n == 0);
	if (n && !d->told)
		n--;
	struct strv *names = arena_calloc(&x->arena, n ? n : 1, sizeof *names);
	if (!names)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		if (in->data_files[i].n == 0)
			return err_set(err, ST_BAD_REQUEST, "data_files", "a name is empty");
		if (!arena_strv(&x->arena, in->data_files[i], &names[i]))
			return full(err);
	}
	if (frag_twice(names, n) >= 0)
		return err_set(err, ST_BAD_REQUEST, "data_files", "a data file is named twice");
	d->names = names;
	d->n_names = n;
	return ST_OK;
}

static enum status decode_delete_files(const struct metadata *m, struct txn *x,
				       const struct rpc_fragment *in, bool stored, struct frag *f,
				       struct err *err)
{
	size_t n = in->n_delete_files;
	f->delete_files = arena_calloc(&x->arena, n ? n : 1, sizeof *f->delete_files);
	if (!f->delete_files)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		struct plan_delete_file *d = &f->delete_files[i];
		enum status st = check_delete_file(m, &in->delete_files[i], &x->arena, &d->file, err);
		if (st == ST_OK)
			st = decode_names(x, &in->delete_files[i], stored, d, err);
		if (st != ST_OK) {
			if (stored)
				err_prefix(err, "delete_files[%zu]", i);
			else
				expand_blame_delete_file(f->whole, i, err);
			return st;
		}
		if (!stored && !add_i64(f->positions, d->file.record_count, &f->positions))
			return err_set(err, ST_BAD_REQUEST, "delete_files", "row counts overflow");
	}
	f->n_delete_files = n;
	return ST_OK;
}

static enum status kind_allows(const struct metadata *m, const struct txn *x,
			       const struct rpc_fragment *in, struct err *err)
{
	int version = metadata_format_version(m);
	if (x->row.kind == RPC_KIND_APPEND && (in->n_deletes || in->n_delete_files))
		return err_set(err, ST_BAD_REQUEST, in->n_deletes ? "deletes" : "delete_files",
			       "an append deletes nothing");
	if (x->row.kind == RPC_KIND_DELETE && in->n_data_files)
		return err_set(err, ST_BAD_REQUEST, "data_files", "a delete stages no data file");
	if (in->n_deletes && version < 3)
		return err_set(err, ST_UNSUPPORTED, "deletes",
			       "deletion vectors need format version 3");
	if (in->n_delete_files && version >= 3)
		return err_set(err, x->format_version < 3 ? ST_FORMAT_CHANGED : ST_UNSUPPORTED,
			       "delete_files",
			       "format version %d has deletion vectors in place of position "
			       "delete files",
			       version);
	if (x->row.kind == RPC_KIND_DELETE && in->n_manifests)
		return err_set(err, ST_BAD_REQUEST, "manifests", "a delete stages no data file");
	if (in->n_data_files == 0 && in->n_deletes == 0 && in->n_delete_files == 0 &&
	    in->n_manifests == 0)
		return err_set(err, ST_BAD_REQUEST, "", "the fragment is empty");
	if (in->fragment_id.n == 0 || in->fragment_id.n > 255)
		return err_set(err, ST_BAD_REQUEST, "fragment_id", "must have 1 to 255 bytes");
	return ST_OK;
}

enum status frag_decode(const struct metadata *m, struct txn *x, const struct rpc_fragment *given,
			struct frag **ret_f, struct err *err)
{
	struct digest d;
	struct frag *f = arena_calloc(&x->arena, 1, sizeof *f);
	if (!f || !(f->whole = arena_calloc(&x->arena, 1, sizeof *f->whole)) ||
	    !msg_fragment_digest(given, &d))
		return full(err);
	if (!digest_eq(&d, &given->digest))
		return err_set(err, ST_BAD_REQUEST, "digest", "the digest is not the fragment's");
	enum status st = expand_fragment(m, given, &x->arena, f->whole, err);
	const struct rpc_fragment *in = &f->whole->all;
	if (st == ST_OK)
		st = kind_allows(m, x, in, err);
	if (st != ST_OK)
		return st;
	if (!arena_strv(&x->arena, in->fragment_id, &f->id))
		return full(err);
	list_init(&f->node);
	f->attempt = in->attempt;
	f->digest = f->stored = in->digest;
	st = decode_files(m, x, in, f, err);
	if (st != ST_OK)
		return st;
	size_t n_blobs = 0;
	for (size_t i = 0; i < in->n_deletes; i++)
		n_blobs += in->deletes[i].blob != NULL;
	f->deletes = arena_calloc(&x->arena, in->n_deletes ? in->n_deletes : 1, sizeof *f->deletes);
	f->blobs = arena_calloc(&x->arena, n_blobs ? n_blobs : 1, sizeof *f->blobs);
	if (!f->deletes || !f->blobs)
		return full(err);
	for (size_t i = 0; i < in->n_deletes; i++) {
		st = decode_delete(m, x, &in->deletes[i], i, f, err);
		if (st != ST_OK) {
			expand_blame_delete(f->whole, i, err);
			return st;
		}
		if (!add_i64(f->positions, in->deletes[i].cardinality, &f->positions))
			return err_set(err, ST_BAD_REQUEST, "deletes", "position counts overflow");
	}
	f->n_deletes = in->n_deletes;
	st = no_target_twice(f, err);
	if (st == ST_OK)
		st = decode_delete_files(m, x, in, false, f, err);
	if (st == ST_OK)
		st = intake_note(m, x, in, f, err);
	if (st == ST_OK)
		st = frag_no_path_twice(f, err);
	if (st == ST_OK)
		st = blob_spend(x, f, err);
	if (st == ST_OK)
		*ret_f = f;
	return st;
}

/* ------------------------------------------------------------------ the read snapshot */

static enum cache_answer too_old(struct err *err, const char *why)
{
	err_set(err, ST_SNAPSHOT_TOO_OLD, "read_snapshot_id", "%s", why);
	return CACHE_FAIL;
}

/* A read error of the store is not "too old": it may pass. */
static enum cache_answer unreadable(struct err *err)
{
	if (err->st == ST_IO || err->st == ST_OVERLOADED) {
		err->st = ST_UNAVAILABLE;
		return CACHE_FAIL;
	}
	return too_old(err, "the read snapshot's files cannot be read");
}

/* The read snapshot's list, and which of its manifests hold the fragment's data files. */
static enum cache_answer find_files(struct core *c, struct metadata *m, int64_t snapshot,
				    const struct mkey *keys, size_t n_keys, struct needs *needs,
				    struct mlist **ret_l, const struct probe **ret_p,
				    struct err *err)
{
	const struct snapshot *s = metadata_snapshot(m, snapshot);
	if (!s || !s->manifest_list.p)
		return too_old(err, "the table no longer has the read snapshot");
	enum cache_answer ans = cache_list(c->cache, s->manifest_list, needs, ret_l, err);
	if (ans == CACHE_HAVE)
		ans = probe_list(c->cache, *ret_l, m, keys, n_keys, needs, ret_p, err);
	return ans == CACHE_FAIL ? unreadable(err) : ans;
}

/* The vector that the read snapshot has for the file; its place is in the whole manifest. */
static enum cache_answer old_vector(struct core *c, struct metadata *m, struct mlist *list,
				    size_t row, struct strv path, struct needs *needs,
				    struct vec **ret_v, struct err *err)
{
	struct mview *v = NULL;
	enum cache_answer ans =
		cache_view(c->cache, list, &list->l.rows[row], m, needs, &v, err);
	const struct manifest_entry *e = ans == CACHE_HAVE ? mview_find(v, path) : NULL;
	if (e)
		ans = cache_vec(c->cache, &e->file, needs, ret_v, err);
	else if (ans == CACHE_HAVE)
		return too_old(err, "the read snapshot's files contradict each other");
	return ans == CACHE_FAIL ? unreadable(err) : ans;
}

/* Data files that the fragment names: of its vectors, then of its delete files. */
static void fill_keys(const struct frag *f, struct mkey *keys)
{
	size_t n = 0;
	for (size_t i = 0; i < f->n_deletes; i++)
		keys[n++] = mview_key(f->deletes[i].data_file);
	for (size_t i = 0; i < f->n_delete_files; i++) {
		const struct plan_delete_file *d = &f->delete_files[i];
		for (size_t k = 0; d->told && k < d->n_names; k++)
			keys[n++] = mview_key(d->names[k]);
	}
}

/* Adds the names that a manifest has for delete files that tell none. */
static enum status gather(struct txn *x, struct frag *f, const struct mview *v, struct err *err)
{
	enum status st = ST_OK;
	for (size_t k = 0; st == ST_OK && k < f->n_delete_files; k++) {
		struct plan_delete_file *d = &f->delete_files[k];
		if (d->told || d->file.spec_id != v->spec_id)
			continue;
		st = posdel_gather(v, &x->arena, d, err);
		if (st != ST_OK)
			expand_blame_delete_file(f->whole, k, err);
	}
	return st;
}

/* Data manifests of a spec of which a delete file may name every data file are read whole, some ahead,
 * and let go of one after the other; it goes on where it stood. */
static enum cache_answer gather_names(struct core *c, struct txn *x, struct metadata *m, struct frag *f,
				      struct mlist *list, struct needs *needs, struct err *err)
{
	bool waiting = false;
	for (size_t i = f->gathered; i < list->l.n; i++) {
		const struct manifest_file *row = &list->l.rows[i];
		struct mview *v = NULL;
		bool any = false;
		for (size_t k = 0; k < f->n_delete_files && row->content == MANIFEST_DATA; k++)
			any |= !f->delete_files[k].told &&
			       row->spec_id == f->delete_files[k].file.spec_id;
		enum cache_answer ans =
			any ? cache_view(c->cache, list, row, m, needs, &v, err) : CACHE_HAVE;
		if (ans == CACHE_FAIL)
			return unreadable(err);
		waiting |= ans == CACHE_WAIT;
		if (needs->full)
			break;
		if (waiting)
			continue;
		if (v && gather(x, f, v, err) != ST_OK)
			return CACHE_FAIL;
		if (v)
			cache_view_let(c->cache, row, needs);
		f->gathered = i + 1;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

/* Vectors whose writer states another spec than their data file has. */
struct strange {
	size_t n;
	struct strv data_file; /* of the first */
	int32_t stated, spec;
};

static void compare_spec(const struct frag *f, size_t i, int32_t spec, struct strange *io_s)
{
	const struct expand_spec *stated = f->whole->specs ? &f->whole->specs[i] : NULL;
	if (!stated || !stated->has || stated->id == spec)
		return;
	if (io_s->n++ == 0) {
		io_s->data_file = f->deletes[i].data_file;
		io_s->stated = stated->id;
		io_s->spec = spec;
	}
}

static bool warn(struct txn *x, struct frag *f, const struct strange *s)
{
	char *z =
		arena_printf(&x->arena,
			     "%zu vectors state another partition spec than their data file, which "
			     "has it: %d, not %d, of %.*s",
			     s->n, s->spec, s->stated, STRV_ARG(s->data_file));
	f->warning = strv_of(z);
	return z != NULL;
}

enum cache_answer frag_subtract(struct core *c, struct txn *x, struct metadata *m, struct frag *f,
				struct needs *needs, struct err *err)
{
	if ((f->n_deletes == 0 && f->n_delete_files == 0) || MUTANT("read-snapshot-ignored"))
		return CACHE_HAVE;
	struct arena a;
	arena_init(&a, c->conf.request_max_bytes);
	struct strange strange = {0};
	struct mlist *list = NULL;
	const struct probe *found = NULL;
	struct vec **olds = arena_calloc(&a, f->n_deletes ? f->n_deletes : 1, sizeof(struct vec *));
	size_t n_keys = f->n_deletes;
	for (size_t i = 0; i < f->n_delete_files; i++)
		n_keys += f->delete_files[i].told ? f->delete_files[i].n_names : 0;
	struct mkey *keys = arena_calloc(&a, n_keys ? n_keys : 1, sizeof *keys);
	enum cache_answer ans = CACHE_FAIL;
	if (olds && keys) {
		fill_keys(f, keys);
		ans = find_files(c, m, x->row.read_snapshot, keys, n_keys, needs, &list, &found,
				 err);
	} else {
		(void)full(err);
	}
	bool waiting = ans == CACHE_WAIT;
	for (size_t i = 0; ans == CACHE_HAVE && i < f->n_deletes; i++) {
		struct plan_delete *d = &f->deletes[i];
		struct located l = algebra_locate(found->views, list->l.n, keys[i]);
		if (!l.data) {
			err_set(err, ST_FILE_GONE, "data_file",
				"not a data file of the read snapshot: %.*s",
				STRV_ARG(d->data_file));
			ans = CACHE_FAIL;
		} else if (l.n_dvs > 1) {
			err_set(err, ST_TABLE_INCONSISTENT, "data_file",
				"the data file has two vectors: %.*s", STRV_ARG(d->data_file));
			ans = CACHE_FAIL;
		} else if (dv_blob_check_range(d->positions, l.data->record_count, err) != ST_OK) {
			ans = CACHE_FAIL;
		} else if (l.dv) {
			struct err reading = {0};
			enum cache_answer v = old_vector(c, m, list, l.dv_row, d->data_file, needs,
							 &olds[i], &reading);
			if (v == CACHE_FAIL) {
				*err = reading;
				ans = CACHE_FAIL;
			}
			waiting |= v == CACHE_WAIT;
		}
		if (ans == CACHE_FAIL)
			expand_blame_delete(f->whole, i, err);
		else
			compare_spec(f, i, found->views[l.data_row]->spec_id, &strange);
	}
	if (ans == CACHE_HAVE && f->n_delete_files)
		ans = gather_names(c, x, m, f, list, needs, err);
	for (size_t i = 0; ans == CACHE_HAVE && i < f->n_delete_files; i++)
		if (posdel_names(found->views, list->l.n, &f->delete_files[i], err) != ST_OK) {
			expand_blame_delete_file(f->whole, i, err);
			ans = CACHE_FAIL;
		}
	if (ans == CACHE_HAVE && waiting)
		ans = CACHE_WAIT;
	if (ans == CACHE_HAVE && strange.n && !warn(x, f, &strange)) {
		(void)full(err);
		ans = CACHE_FAIL;
	}
	for (size_t i = 0; ans == CACHE_HAVE && i < f->n_deletes; i++) {
		if (!olds[i])
			continue;
		struct bitmap64 *left = bitmap64_clone(f->deletes[i].positions);
		bitmap64_subtract(left, olds[i]->set);
		txn_own_set(x, left);
		f->deletes[i].positions = left;
	}
	arena_fini(&a);
	return ans;
}

/* ------------------------------------------------------------------ the stored form */

bool frag_pack(struct txn *x, struct frag *f)
{
	const struct rpc_fragment *in = &f->whole->all;
	struct rpc_fragment out = *in;
	struct buf b, blobs;
	size_t max = x->arena.limit;
	buf_init(&b, max);
	buf_init(&blobs, max);
	struct rpc_delete_vector *dv =
		arena_calloc(&x->arena, in->n_deletes ? in->n_deletes : 1, sizeof *dv);
	bool ok = dv != NULL;
	for (size_t i = 0; ok && i < in->n_deletes; i++) {
		struct err err;
		dv[i] = in->deletes[i];
		/* What is left of the vector; MOVED or DEAD as it will be judged. */
		dv[i].provenance = f->deletes[i].dead ? RPC_PROVENANCE_DEAD : RPC_PROVENANCE_MOVED;
		dv[i].cardinality = (int64_t)bitmap64_cardinality(f->deletes[i].positions);
		dv[i].includes_existing = false;
		buf_clear(&blobs);
		ok = dv_blob_encode(f->deletes[i].positions, &blobs, &err) == ST_OK &&
		     arena_bytes(&x->arena, buf_bytes(&blobs), &dv[i].vector);
	}
	struct rpc_delete_file *df =
		arena_calloc(&x->arena, in->n_delete_files ? in->n_delete_files : 1, sizeof *df);
	ok = ok && df;
	for (size_t i = 0; ok && i < in->n_delete_files; i++) {
		const struct plan_delete_file *d = &f->delete_files[i];
		df[i] = in->delete_files[i];
		if (d->told)
			continue;
		/* Nobody needs the read snapshot's files again: all names, and an empty one. */
		struct strv *names = arena_calloc(&x->arena, d->n_names + 1, sizeof *names);
		ok = names != NULL;
		for (size_t k = 0; ok && k < d->n_names; k++)
			names[k] = d->names[k];
		df[i].data_files = names;
		df[i].n_data_files = d->n_names + 1;
	}
	if (ok) {
		out.deletes = dv;
		out.delete_files = df;
		uint8_t stated[8];
		buf_putc(&b, FRAG_VERSION);
		put_u64be(stated, (uint64_t)f->positions);
		buf_put(&b, stated, sizeof stated);
		buf_putc(&b, (uint8_t)f->manifest_version);
		msg_encode(&rpc_record_fragment, &out, &b);
		ok = buf_ok(&b) && arena_bytes(&x->arena, buf_bytes(&b), &f->payload);
		/* The message does not say what its files held: a repeat that finds something else
		 * in them is another fragment. */
		if (ok && (f->n_blobs || f->n_manifests))
			f->stored = digest_sha256(f->payload);
	}
	buf_fini(&b);
	buf_fini(&blobs);
	return ok;
}

enum status frag_unpack(struct txn *x, const struct fragment_row *row, struct frag **ret_f,
			struct err *err)
{
	if (row->payload.n < FRAG_HEAD || row->payload.p[0] != FRAG_VERSION)
		return err_set(err, ST_CORRUPT, "fragment.payload", "unknown version");
	const void *msg;
	struct bytes body = {row->payload.p + FRAG_HEAD, row->payload.n - FRAG_HEAD};
	enum status st = msg_decode(&rpc_record_fragment, body, &x->arena, &msg, err);
	if (st != ST_OK)
		return st;
	const struct rpc_fragment *in = msg;
	struct frag *f = arena_calloc(&x->arena, 1, sizeof *f);
	if (!f)
		return full(err);
	list_init(&f->node);
	f->id = in->fragment_id;
	f->attempt = in->attempt;
	f->digest = in->digest;
	f->durable = true;
	f->positions = (int64_t)get_u64be(row->payload.p + 1);
	st = decode_files(x->table->meta, x, in, f, err);
	if (st != ST_OK)
		return st;
	f->deletes = arena_calloc(&x->arena, in->n_deletes ? in->n_deletes : 1, sizeof *f->deletes);
	f->blobs = arena_calloc(&x->arena, in->n_deletes ? in->n_deletes : 1, sizeof *f->blobs);
	if (!f->deletes || !f->blobs)
		return full(err);
	for (size_t i = 0; i < in->n_deletes; i++) {
		struct bitmap64 *set;
		st = dv_blob_decode(in->deletes[i].vector, &set, err);
		if (st != ST_OK)
			return st;
		txn_own_set(x, set);
		f->deletes[i] = (struct plan_delete){
			.data_file = in->deletes[i].data_file,
			.positions = set,
			.dead = in->deletes[i].provenance == RPC_PROVENANCE_DEAD};
		/* Read at Stage; only the file is still somebody's to delete. */
		if (in->deletes[i].blob)
			f->blobs[f->n_blobs++] =
				(struct frag_blob){.at = i, .path = in->deletes[i].blob->path};
	}
	f->n_deletes = in->n_deletes;
	st = decode_delete_files(x->table->meta, x, in, true, f, err);
	if (st == ST_OK)
		st = intake_unpack(x, in, row->payload.p[9], f, err);
	if (st == ST_OK)
		st = blob_spend(x, f, err);
	if (st == ST_OK)
		*ret_f = f;
	return st;
}

static void pack_one(struct buf *b, struct strv id, int32_t attempt, const struct digest *d)
{
	uint8_t word[4];
	put_u32le(word, (uint32_t)id.n);
	buf_put(b, word, 4);
	buf_putv(b, id);
	put_u32le(word, (uint32_t)attempt);
	buf_put(b, word, 4);
	buf_put(b, d->b, sizeof d->b);
}

static void pack_head(struct buf *b, size_t max, size_t n)
{
	uint8_t word[4];
	buf_init(b, max);
	buf_putc(b, SEAL_VERSION);
	put_u32le(word, (uint32_t)n);
	buf_put(b, word, 4);
}

static bool pack_end(struct buf *b, struct arena *a, struct bytes *ret_seal)
{
	bool ok = buf_ok(b) && arena_bytes(a, buf_bytes(b), ret_seal);
	buf_fini(b);
	return ok;
}

bool frag_pack_seal(struct arena *a, struct frag *const *winners, size_t n, struct bytes *ret_seal)
{
	struct buf b;
	pack_head(&b, a->limit, n);
	for (size_t i = 0; i < n; i++)
		pack_one(&b, winners[i]->id, winners[i]->attempt, &winners[i]->digest);
	return pack_end(&b, a, ret_seal);
}

bool frag_pack_refs(struct arena *a, const struct rpc_fragment_ref *refs, size_t n,
		    struct bytes *ret_seal)
{
	struct buf b;
	pack_head(&b, a->limit, n);
	for (size_t i = 0; i < n; i++)
		pack_one(&b, refs[i].fragment_id, refs[i].attempt, &refs[i].digest);
	return pack_end(&b, a, ret_seal);
}

/* The entry at *at, which moves on; false at the end or on damage. */
static bool seal_next(struct bytes seal, size_t *at, struct strv *ret_id, int32_t *ret_attempt,
		      const uint8_t **ret_digest)
{
	if (seal.n < *at || seal.n - *at < 40)
		return false;
	size_t len = get_u32le(seal.p + *at), p = *at + 4;
	if (len > seal.n - p || seal.n - p - len < 36)
		return false;
	*ret_id = (struct strv){(const char *)seal.p + p, len};
	p += len;
	*ret_attempt = (int32_t)get_u32le(seal.p + p);
	*ret_digest = seal.p + p + 4;
	*at = p + 36;
	return true;
}

bool frag_sealed(struct bytes seal, struct strv id, int32_t attempt, struct digest *ret_d)
{
	size_t at = 5;
	struct strv one;
	int32_t number;
	const uint8_t *digest;
	if (seal.n < 5 || seal.p[0] != SEAL_VERSION)
		return false;
	while (seal_next(seal, &at, &one, &number, &digest))
		if (number == attempt && strv_eq(one, id)) {
			memcpy(ret_d->b, digest, sizeof ret_d->b);
			return true;
		}
	return false;
}

enum status frag_winners(struct txn *x, struct bytes seal, struct frag ***ret_w, size_t *ret_n,
			 struct err *err)
{
	if (seal.n < 5 || seal.p[0] != SEAL_VERSION)
		return err_set(err, ST_CORRUPT, "txn.seal", "unknown version");
	size_t n = get_u32le(seal.p + 1), at = 5;
	/* Each entry has at least its fixed part. */
	if (n > (seal.n - at) / 40)
		return err_set(err, ST_CORRUPT, "txn.seal", "too short");
	struct frag **w = arena_calloc(&x->arena, n ? n : 1, sizeof(struct frag *));
	if (!w)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		struct strv id;
		int32_t attempt;
		const uint8_t *digest;
		if (!seal_next(seal, &at, &id, &attempt, &digest))
			return err_set(err, ST_CORRUPT, "txn.seal", "too short");
		w[i] = frag_find(x, id, attempt);
		if (!w[i] || memcmp(w[i]->digest.b, digest, sizeof w[i]->digest.b) != 0)
			return err_set(err, ST_CORRUPT, "txn.seal", "names a fragment without row");
	}
	if (at != seal.n)
		return err_set(err, ST_CORRUPT, "txn.seal", "bytes left over");
	*ret_w = w;
	*ret_n = n;
	return ST_OK;
}
