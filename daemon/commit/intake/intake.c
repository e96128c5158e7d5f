/* Finished manifests on their way from a fragment into the transaction: read at Stage, judged in a
 * job, and their data files then stand beside those that the fragment brought itself, each manifest's
 * together and after all others. The stored form keeps the files too, so that nothing is read again
 * after a restart. */
#include "daemon/commit/intake/intake.h"

#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/intake/check.h"
#include "daemon/commit/intake/expand.h"
#include "daemon/commit/state.h"
#include "proto/iceberg/metadata.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

static struct frag_manifest manifest_of(const struct rpc_manifest_ref *in)
{
	struct frag_manifest m = {.ref = *in, .object = content_file_empty()};
	m.object.path = in->path;
	m.object.file_size = in->length;
	return m;
}

static enum status note_one(const struct metadata *m, struct txn *x,
			    const struct rpc_manifest_ref *in, struct frag_manifest *ret_m,
			    struct err *err)
{
	enum status st = check_path(m, in->path, err);
	if (st != ST_OK)
		return st;
	if (in->length <= 0)
		return err_set(err, ST_BAD_REQUEST, "length", "must be positive");
	if ((uint64_t)in->length > x->arena.limit)
		return err_set(err, ST_TOO_LARGE, "length", "the manifest exceeds the memory limit");
	if (in->added_files <= 0)
		return err_set(err, ST_BAD_REQUEST, "added_files", "must be positive");
	if (in->added_rows <= 0)
		return err_set(err, ST_BAD_REQUEST, "added_rows", "must be positive");
	*ret_m = manifest_of(in);
	if (!arena_strv(&x->arena, in->path, &ret_m->ref.path))
		return full(err);
	ret_m->object.path = ret_m->ref.path;
	return ST_OK;
}

enum status intake_note(const struct metadata *m, struct txn *x, const struct rpc_fragment *in,
			struct frag *f, struct err *err)
{
	int64_t bytes = 0;
	f->manifests = arena_calloc(&x->arena, in->n_manifests ? in->n_manifests : 1,
				    sizeof *f->manifests);
	if (!f->manifests)
		return full(err);
	for (size_t i = 0; i < in->n_manifests; i++) {
		enum status st = note_one(m, x, &in->manifests[i], &f->manifests[i], err);
		/* All of them are in memory at once. */
		if (st == ST_OK && (!add_i64(bytes, in->manifests[i].length, &bytes) ||
				    (uint64_t)bytes > x->arena.limit))
			st = err_set(err, ST_TOO_LARGE, "length",
				     "the fragment's manifests exceed the memory limit");
		if (st != ST_OK) {
			err_prefix(err, "manifests[%zu]", i);
			return st;
		}
		f->n_manifests++;
	}
	return ST_OK;
}

/* ------------------------------------------------------------------ reading */

struct fetch {
	struct request *r;
	struct frag *f;
	struct metadata *meta; /* a reference is held */
	size_t at;	       /* of the manifests */
	size_t frag_at;
};

static void let_go(void *p)
{
	metadata_unref(((struct fetch *)p)->meta);
}

static void judge(struct err *err)
{
	switch (err->st) {
	case ST_NOT_FOUND:
		err_set(err, ST_FILE_MISSING, "path", "the file does not exist");
		break;
	case ST_LIMIT:
		err_set(err, ST_SIZE_MISMATCH, "length", "the file is longer than stated");
		break;
	case ST_IO:
	case ST_OVERLOADED:
		err->st = ST_UNAVAILABLE;
		break;
	default:
		break;
	}
}

static void fetched(struct core *c, void *ctx, const struct event *ev)
{
	struct fetch *g = ctx;
	struct request *r = g->r;
	struct read_result *res = ev->u.done.read;
	struct txn *x = request_txn(r);
	struct adopted *got = res->own_adopted;
	res->own_adopted = NULL;
	if (got && x) {
		txn_own_adopted(x, got);
		g->f->manifests[g->at].got = got;
	} else if (got) {
		adopt_free(got);
	} else if (r->blob_err.st == ST_OK) {
		struct err err = res->err;
		judge(&err);
		err_prefix(&err, "manifests[%zu]", g->at);
		if (r->kind == EV_COMMIT_ONCE)
			err_prefix(&err, "fragments[%zu]", g->frag_at);
		else
			err_prefix(&err, "fragment");
		r->blob_err = err;
	}
	core_unkeep(g);
	ASSERT(r->blobs > 0);
	if (--r->blobs == 0)
		r->gather.run(c, &r->gather);
}

void intake_fetch(struct core *c, struct request *r, struct txn *x, struct frag *f, size_t at)
{
	r->blobs += f->n_manifests;
	for (size_t i = 0; i < f->n_manifests; i++) {
		struct fetch *g = core_keep(c, sizeof *g, let_go);
		*g = (struct fetch){r, f, metadata_ref(x->table->meta), i, at};
		struct effect *e = core_emit(c, FX_READ, fetched, g);
		e->u.read = (struct read_effect){.as = READ_ADOPTED,
						 .path = f->manifests[i].ref.path,
						 .length = f->manifests[i].ref.length,
						 .ref = &f->manifests[i].ref,
						 .limit = x->arena.limit,
						 .metadata = g->meta};
	}
}

/* ------------------------------------------------------------------ joining */

static bool ranges(struct txn *x, struct frag *f, size_t first)
{
	f->adopted = arena_calloc(&x->arena, f->n_manifests ? f->n_manifests : 1,
				  sizeof *f->adopted);
	if (!f->adopted)
		return false;
	for (size_t i = 0; i < f->n_manifests; i++) {
		const struct frag_manifest *m = &f->manifests[i];
		f->adopted[i] = (struct plan_adopted){.path = m->ref.path,
						      .length = m->ref.length,
						      .format_version = f->manifest_version,
						      .first = first,
						      .n = (size_t)m->ref.added_files};
		first += f->adopted[i].n;
	}
	return true;
}

enum status intake_join(struct txn *x, struct frag *f, struct err *err)
{
	struct rpc_fragment *all = &f->whole->all;
	if (f->n_manifests == 0 || f->adopted)
		return ST_OK;
	size_t own = f->n_files, n = own;
	for (size_t i = 0; i < f->n_manifests; i++)
		n += f->manifests[i].got->n;
	struct rpc_data_file *records = arena_calloc(&x->arena, n, sizeof *records);
	struct content_file *files = arena_calloc(&x->arena, n, sizeof *files);
	int32_t *schemas = arena_calloc(&x->arena, n, sizeof *schemas);
	if (!records || !files || !schemas)
		return full(err);
	for (size_t i = 0; i < own; i++) {
		records[i] = all->data_files[i];
		files[i] = f->files[i];
		schemas[i] = f->schema_ids[i];
	}
	n = own;
	for (size_t i = 0; i < f->n_manifests; i++) {
		const struct adopted *got = f->manifests[i].got;
		f->manifest_version = got->format_version;
		for (size_t k = 0; k < got->n; k++, n++) {
			records[n] = got->records[k];
			files[n] = got->files[k];
			schemas[n] = got->records[k].schema_id;
		}
		if (!add_i64(f->rows, f->manifests[i].ref.added_rows, &f->rows))
			return err_set(err, ST_BAD_REQUEST, "manifests", "row counts overflow");
	}
	if (!ranges(x, f, own))
		return full(err);
	all->data_files = records;
	all->n_data_files = n;
	f->files = files;
	f->schema_ids = schemas;
	f->n_files = n;
	enum status st = frag_no_path_twice(f, err);
	return st == ST_OK ? blob_spend(x, f, err) : st;
}

enum status intake_unpack(struct txn *x, const struct rpc_fragment *in, int version,
			  struct frag *f, struct err *err)
{
	size_t adopted = 0;
	f->manifest_version = version;
	f->manifests = arena_calloc(&x->arena, in->n_manifests ? in->n_manifests : 1,
				    sizeof *f->manifests);
	if (!f->manifests)
		return full(err);
	for (size_t i = 0; i < in->n_manifests; i++) {
		f->manifests[i] = manifest_of(&in->manifests[i]);
		if (in->manifests[i].added_files <= 0 ||
		    (size_t)in->manifests[i].added_files > f->n_files - adopted)
			return err_set(err, ST_CORRUPT, "fragment.payload",
				       "manifests with more files than there are");
		adopted += (size_t)in->manifests[i].added_files;
	}
	f->n_manifests = in->n_manifests;
	return ranges(x, f, f->n_files - adopted) ? ST_OK : full(err);
}
