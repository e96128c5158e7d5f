/* Vectors that workers wrote into files of their own: the range is read at Stage, its positions are
 * stored with the fragment, and nothing needs the file from then on. It is the transaction's in the
 * object ledger until the end and is deleted after that, whatever the end was. */
#include "daemon/commit/intake/intake.h"

#include "daemon/commit/intake/check.h"
#include "daemon/commit/intake/expand.h"
#include "daemon/commit/state.h"
#include "proto/dv/dv_blob.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

enum status blob_note(const struct metadata *m, struct txn *x, const struct rpc_blob_ref *in,
		      int64_t cardinality, size_t at, struct frag *f, struct err *err)
{
	int64_t end, sum = 0;
	enum status st = check_path(m, in->path, err);
	if (st != ST_OK)
		return st;
	if (in->offset < 0)
		return err_set(err, ST_BAD_REQUEST, "offset", "must not be negative");
	if (in->length <= 0 || !add_i64(in->offset, in->length, &end))
		return err_set(err, ST_BAD_REQUEST, "length", "not a range of a file");
	/* All of them are in memory at once. */
	for (size_t i = 0; i < f->n_blobs; i++)
		sum += f->blobs[i].length;
	if (!add_i64(sum, in->length, &sum) || (uint64_t)sum > x->arena.limit)
		return err_set(err, ST_TOO_LARGE, "length",
			       "the fragment's blobs exceed the memory limit");
	struct frag_blob *b = &f->blobs[f->n_blobs];
	*b = (struct frag_blob){.at = at,
				.offset = in->offset,
				.length = in->length,
				.cardinality = cardinality};
	if (!arena_strv(&x->arena, in->path, &b->path))
		return full(err);
	f->n_blobs++;
	return ST_OK;
}

enum status blob_spend(struct txn *x, struct frag *f, struct err *err)
{
	if (f->n_blobs == 0)
		return ST_OK;
	f->spent = arena_calloc(&x->arena, f->n_blobs, sizeof *f->spent);
	if (!f->spent)
		return full(err);
	for (size_t i = 0; i < f->n_blobs; i++)
		f->spent[i] = f->blobs[i].path;
	f->n_spent = frag_once(f->spent, f->n_blobs);
	for (size_t i = 0; i < frag_n_objects(f); i++)
		if (frag_among(f->spent, f->n_spent, frag_object(f, i)->path))
			return err_set(err, ST_DUPLICATE_PATH, "deletes.blob.path",
				       "the fragment brings this path as another file too: %.*s",
				       STRV_ARG(frag_object(f, i)->path));
	return ST_OK;
}

/* ------------------------------------------------------------------ reading */

struct fetch {
	struct request *r;
	struct frag *f;
	const struct frag_blob *b;
	size_t at;
};

/* What the store says, as it concerns whoever named the range. */
static void judge(struct err *err)
{
	switch (err->st) {
	case ST_NOT_FOUND:
		err_set(err, ST_FILE_MISSING, "path", "the file does not exist");
		break;
	case ST_CORRUPT:
		err_set(err, ST_DV_CORRUPT, "length", "the file ends before the range does");
		break;
	case ST_IO:
	case ST_OVERLOADED:
		err->st = ST_UNAVAILABLE;
		break;
	default:
		break;
	}
}

/* An answered request's message is gone, and nobody reads its error. */
static void blame(const struct fetch *g, struct err *err)
{
	if (!g->r->answered)
		expand_blame_delete(g->f->whole, g->b->at, err);
}

static void fetched(struct core *c, void *ctx, const struct event *ev)
{
	struct fetch *g = ctx;
	struct request *r = g->r;
	struct read_result *res = ev->u.done.read;
	struct txn *x = request_txn(r);
	struct err err = res->err;
	if (res->own_vector && x) {
		err = (struct err){0};
		if (frag_positions(x, res->own_vector, g->b->cardinality, "blob",
				   &g->f->deletes[g->b->at], &err) != ST_OK)
			blame(g, &err);
	} else if (res->own_vector) {
		bitmap64_free(res->own_vector);
	} else {
		judge(&err);
		err_prefix(&err, "blob");
		blame(g, &err);
	}
	res->own_vector = NULL;
	if (err.st != ST_OK && r->blob_err.st == ST_OK) {
		if (r->kind == EV_COMMIT_ONCE)
			err_prefix(&err, "fragments[%zu]", g->at);
		else
			err_prefix(&err, "fragment");
		r->blob_err = err;
	}
	core_unkeep(g);
	ASSERT(r->blobs > 0);
	if (--r->blobs == 0)
		r->gather.run(c, &r->gather);
}

void blob_fetch(struct core *c, struct request *r, struct frag *f, size_t at)
{
	r->blobs += f->n_blobs;
	for (size_t i = 0; i < f->n_blobs; i++) {
		struct fetch *g = core_keep(c, sizeof *g, NULL);
		*g = (struct fetch){r, f, &f->blobs[i], at};
		struct effect *e = core_emit(c, FX_READ, fetched, g);
		e->u.read = (struct read_effect){.as = READ_BLOB,
						 .path = f->blobs[i].path,
						 .offset = f->blobs[i].offset,
						 .length = f->blobs[i].length};
	}
}
