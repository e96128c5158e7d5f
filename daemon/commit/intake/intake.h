/* Intake: what workers staged, on its way from their messages into a transaction. The files of this
 * folder read what engines report (message, tuple_json, expand), judge it against the table (check,
 * colmetrics, adopt), fetch what it only refers to (blob, intake) and keep it as fragments, in memory
 * and as stored. Whether and when a fragment may be staged is not decided here but by its
 * transaction. This header is for files of the core. */
#ifndef DAEMON_COMMIT_INTAKE_INTAKE_H
#define DAEMON_COMMIT_INTAKE_INTAKE_H

#include "daemon/commit/plan.h"
#include "proto/base/list.h"
#include "proto/rpc/rpc.h"

struct adopted;
struct core;
struct expand;
struct request;
struct txn;

/* A vector in a file that a worker wrote. */
struct frag_blob {
	size_t at; /* of the deletes */
	struct strv path;
	int64_t offset, length;
	int64_t cardinality;
};

/* A finished manifest of a worker's. */
struct frag_manifest {
	struct rpc_manifest_ref ref;
	struct content_file object; /* path and size, as the store must have it */
	struct adopted *got; /* once it was read; the transaction's */
};

/* One staged attempt of a fragment, decoded, in the transaction's arena. */
struct frag {
	struct list node;
	struct frag *next; /* hash chain */
	struct strv id;
	int32_t attempt;
	struct digest digest;
	struct digest stored; /* as its row has it: the same, or over what blobs held, too */
	bool durable;
	bool won; /* scratch of the one pass that asks */
	struct content_file *files;
	int32_t *schema_ids;
	size_t n_files;
	int64_t rows_updated;
	int64_t rows;
	int64_t positions; /* as stated by the worker */
	struct expand *whole; /* the record with its messages' parts, while its request lives */
	struct strv warning;  /* empty, or a finding that does not refuse it */
	struct plan_delete *deletes; /* positions NULL until its blob was read */
	size_t n_deletes;
	struct frag_blob *blobs;
	size_t n_blobs;
	struct frag_manifest *manifests;
	size_t n_manifests;
	struct plan_adopted *adopted; /* NULL until the manifests' files are among the files */
	int manifest_version;
	struct strv *spent; /* the files of the blobs, each once, ascending: garbage in the end */
	size_t n_spent;
	struct plan_delete_file *delete_files;
	size_t n_delete_files;
	size_t gathered; /* manifests of the read snapshot that were asked for names */
	struct bytes payload; /* only until it is durable */
};

/* --- frag.c --- */
/* Checks a fragment against table and transaction and decodes it into the transaction's arena,
 * vectors as staged and messages put into the arrays of what they report. The digest is
 * recomputed. The record must live until the fragment is packed. */
MUST_CHECK enum status frag_decode(const struct metadata *m, struct txn *x,
				   const struct rpc_fragment *f, struct frag **ret_f,
				   struct err *err);
/* Checks what was staged for a deletion, inline or fetched; the set is the transaction's then. */
MUST_CHECK enum status frag_positions(struct txn *x, struct bitmap64 *own_set, int64_t cardinality,
				      const char *field, struct plan_delete *d, struct err *err);
/* Takes from every vector what was deleted at the read snapshot already. */
enum cache_answer frag_subtract(struct core *c, struct txn *x, struct metadata *m, struct frag *f,
				struct needs *needs, struct err *err);
/* The stored form: the fragment with what is new only, without messages. */
MUST_CHECK bool frag_pack(struct txn *x, struct frag *f);
MUST_CHECK enum status frag_unpack(struct txn *x, const struct fragment_row *row,
				   struct frag **ret_f, struct err *err);

/* The packed winners of a Seal: id, attempt and digest of each. */
MUST_CHECK bool frag_pack_seal(struct arena *a, struct frag *const *winners, size_t n,
			       struct bytes *ret_seal);
/* The same from a message's references. */
MUST_CHECK bool frag_pack_refs(struct arena *a, const struct rpc_fragment_ref *refs, size_t n,
			       struct bytes *ret_seal);
/* The digest that a packed seal has for an attempt; false when it does not name it. */
bool frag_sealed(struct bytes seal, struct strv id, int32_t attempt, struct digest *ret_d);
/* Finds them among the transaction's fragments. */
MUST_CHECK enum status frag_winners(struct txn *x, struct bytes seal, struct frag ***ret_w,
				    size_t *ret_n, struct err *err);
/* Where a text stands that is there twice, or -1; sorts v. */
ptrdiff_t frag_twice(struct strv *v, size_t n);
/* Sorts and leaves each once; returns how many. */
size_t frag_once(struct strv *v, size_t n);
bool frag_among(const struct strv *sorted, size_t n, struct strv text);
/* The i-th of the objects that it brings: data files, then delete files. */
const struct content_file *frag_object(const struct frag *f, size_t i);
size_t frag_n_objects(const struct frag *f);
/* ST_DUPLICATE_PATH when two of its objects have one path. */
MUST_CHECK enum status frag_no_path_twice(const struct frag *f, struct err *err);
/* Makes it one of the transaction's. */
void frag_keep(struct txn *x, struct frag *f);
struct frag *frag_find(const struct txn *x, struct strv id, int32_t attempt);

/* --- blob.c --- */
/* Checks where a deletion's vector lies and notes it in the fragment. */
MUST_CHECK enum status blob_note(const struct metadata *m, struct txn *x, const struct rpc_blob_ref *in,
				 int64_t cardinality, size_t at, struct frag *f, struct err *err);
/* Fixes the files of a fragment's blobs. ST_DUPLICATE_PATH when one of them is a data file too. */
MUST_CHECK enum status blob_spend(struct txn *x, struct frag *f, struct err *err);
/* Reads the fragment's blobs, never from memory; when the last of all that were started for the
 * request has been read, gather.run is called, with what was wrong in blob_err, whose field begins
 * at the fragment: member of the message, for CommitOnce the one at `at`. */
void blob_fetch(struct core *c, struct request *r, struct frag *f, size_t at);

/* --- intake.c --- */
/* Checks what the fragment says of its manifests. */
MUST_CHECK enum status intake_note(const struct metadata *m, struct txn *x,
				   const struct rpc_fragment *in, struct frag *f, struct err *err);
/* Reads them; otherwise as blob_fetch. */
void intake_fetch(struct core *c, struct request *r, struct txn *x, struct frag *f, size_t at);
/* Puts their files beside the fragment's own; nothing when that was done. */
MUST_CHECK enum status intake_join(struct txn *x, struct frag *f, struct err *err);
/* After a stored fragment's files were unpacked. */
MUST_CHECK enum status intake_unpack(struct txn *x, const struct rpc_fragment *in, int version,
				     struct frag *f, struct err *err);

#endif
