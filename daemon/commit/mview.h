/* A manifest in memory, in two sizes. A light view is the index that the core keeps of every
 * manifest of a head: a packed record for each live file, at most 64 bytes with all that belongs to
 * it, without paths, metrics and bounds. A whole view holds the decoded manifest besides; it is
 * made when an operation needs entries themselves (to write them into another manifest, to find a
 * vector's place) and goes first when memory is short. Immutable once made; references change on the
 * loop thread only, jobs read.
 *
 * Files are found by a key of their path, the first half of its SHA-256. Two paths with one key
 * would cost somebody who looks for them 2^64 hashes, so equal keys count as equal paths: a light
 * view has no text to compare. */
#ifndef DAEMON_COMMIT_MVIEW_H
#define DAEMON_COMMIT_MVIEW_H

#include "proto/avro/manifest_list.h"

struct metadata;

struct mkey {
	uint64_t hi, lo;
};
struct mkey mview_key(struct strv path);
int mview_key_cmp(struct mkey a, struct mkey b);
/* Of a delete file that is no vector: never the key of a data file, whatever its path. */
static inline struct mkey mview_delete_key(struct mkey of_path)
{
	return (struct mkey){of_path.hi, ~of_path.lo};
}

/* One live file: a data file under its path, a vector under the path of the data file that it
 * belongs to, any other delete file under its delete key. */
struct mfile {
	struct mkey key;
	int64_t seq, file_seq; /* as in manifest_entry */
	int64_t record_count;
	int64_t first_row_id;
	uint32_t entry; /* place in the manifest */
	uint32_t tuple; /* of data files: number in the view's tuples */
};

struct mview {
	int refs;
	struct manifest *m; /* NULL: light */
	enum manifest_content content;
	int32_t spec_id;
	size_t n_live;
	size_t n_legacy; /* live position delete files that are no vectors */
	size_t n_equality;
	int64_t rows; /* of all live entries; ROW_ID_NONE when they do not fit */
	struct field *partition; /* types of its tuples, which can differ between manifests of a spec */
	size_t n_partition;
	struct mfile *files; /* ascending by key, then entry */
	size_t n_files;
	struct tuple *tuples; /* each once */
	size_t n_tuples;
	struct arena arena;   /* of a light view: all of the above */
	struct mview *light;  /* of a whole view: what the above points into */
	struct mview *bare;
};

/* Decodes under the specs of `meta`; legacy content codes of vectors are accepted as the manifest
 * decoder does. limit: bytes the decoded form may take. ST_CORRUPT when the row's spec is not in
 * the metadata, ST_LIMIT when memory is gone. The result is a whole view. */
MUST_CHECK enum status mview_read(struct bytes file, const struct manifest_file *row,
				  const struct metadata *meta, size_t limit, struct mview **ret_v,
				  struct err *err);
/* A whole view; takes the manifest's reference. NULL when memory is gone. */
struct mview *mview_new(struct manifest *own_m);
struct mview *mview_ref(struct mview *v);
void mview_unref(struct mview *own_v); /* NULL is allowed */
/* The light view of a whole one, or v itself when it is light; a reference. */
struct mview *mview_light(struct mview *v);
/* A light view without any file, all else the same: for a manifest of which it is known that it has
 * none of the files in question. A reference. */
struct mview *mview_bare(struct mview *v);

/* The live file with this key, NULL when there is none. */
const struct mfile *mview_look(const struct mview *v, struct mkey key);
static inline const struct tuple *mview_tuple(const struct mview *v, const struct mfile *f)
{
	return &v->tuples[f->tuple];
}
/* Of a whole view: the live entry of the file with this path, or of the vector of the data file with
 * this path; NULL without. */
const struct manifest_entry *mview_find(const struct mview *v, struct strv path);
/* Whether tuples of the two have the same types: entries may then stand in one manifest. Manifests
 * of one spec can differ when its column was promoted before it left the schema. */
bool mview_same_tuple(const struct mview *a, const struct mview *b);
/* Bytes held, for budgets; of a whole view with its light one. */
size_t mview_memory(const struct mview *v);

#endif
