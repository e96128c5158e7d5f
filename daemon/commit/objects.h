/* Decoded objects that the core shares between snapshots: manifest lists, manifests (mview.h),
 * deletion vectors. Immutable once made and refcounted on the loop thread; jobs read them under a
 * reference that the loop holds.
 *
 * Every lookup of a data file goes through the manifests of one snapshot's list, so that any
 * retained snapshot, not only a ref's head, can be asked without a structure of its own. */
#ifndef DAEMON_COMMIT_OBJECTS_H
#define DAEMON_COMMIT_OBJECTS_H

#include "daemon/commit/mview.h"
#include "proto/dv/bitmap64.h"

/* A decoded manifest list and what owns it. */
struct mlist {
	int refs;
	struct arena arena;
	struct manifest_list l;
};

struct vec {
	int refs;
	struct bitmap64 *set;
};

/* limit: bytes the decoded form may take. One reference is returned. */
MUST_CHECK enum status mlist_read(struct bytes file, size_t limit, struct mlist **ret_l,
				  struct err *err);
struct mlist *mlist_ref(struct mlist *l);
void mlist_unref(struct mlist *own_l); /* NULL is allowed */

struct vec *vec_new(struct bitmap64 *own_set);
struct vec *vec_ref(struct vec *v);
void vec_unref(struct vec *own_v);

#endif
