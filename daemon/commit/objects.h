/* Decoded objects that the core shares between snapshots: manifest lists, manifests with a hash
 * over the paths that they name, deletion vectors. Immutable once made and refcounted on the loop
 * thread; jobs read them under a reference that the loop holds.
 *
 * Every lookup of a data file goes through the manifests of one snapshot's list, so that any
 * retained snapshot, not only a ref's head, can be asked without a structure of its own. */
#ifndef DAEMON_COMMIT_OBJECTS_H
#define DAEMON_COMMIT_OBJECTS_H

#include "proto/avro/manifest_list.h"
#include "proto/dv/bitmap64.h"

struct metadata;

/* A decoded manifest list and what owns it. */
struct mlist {
	int refs;
	struct arena arena;
	struct manifest_list l;
};

/* A decoded manifest and its paths: referenced_data_file of vectors, file_path of everything else.
 * Only live entries are in the hash. */
struct mview {
	int refs;
	struct manifest *m;
	uint32_t *slots; /* entry + 1; 0 is empty; a power of two many */
	size_t n_slots;
	size_t n_live;
	size_t n_legacy; /* live position delete files that are no vectors */
	size_t n_equality;
};

struct vec {
	int refs;
	struct bitmap64 *set;
};

/* limit: bytes the decoded form may take. One reference is returned. */
MUST_CHECK enum status mlist_read(struct bytes file, size_t limit, struct mlist **ret_l,
				  struct err *err);
struct mlist *mlist_ref(struct mlist *l);
void mlist_unref(struct mlist *own_l); /* NULL is allowed, as below */

/* Decodes under the specs of `meta`; legacy content codes of vectors are accepted as the manifest
 * decoder does. ST_CORRUPT when the row's spec is not in the metadata. */
MUST_CHECK enum status mview_read(struct bytes file, const struct manifest_file *row,
				  const struct metadata *meta, size_t limit, struct mview **ret_v,
				  struct err *err);
/* Takes the manifest's reference. */
struct mview *mview_new(struct manifest *own_m);
struct mview *mview_ref(struct mview *v);
void mview_unref(struct mview *own_v);
/* The live entry with this path, or the vector of the data file with this path; or NULL. */
const struct manifest_entry *mview_find(const struct mview *v, struct strv path);
/* The same for one path in many manifests: hash is mview_hash(path). */
uint64_t mview_hash(struct strv path);
const struct manifest_entry *mview_find_hash(const struct mview *v, struct strv path,
					     uint64_t hash);
/* Bytes held, for budgets. */
size_t mview_memory(const struct mview *v);

struct vec *vec_new(struct bitmap64 *own_set);
struct vec *vec_ref(struct vec *v);
void vec_unref(struct vec *own_v);

#endif
