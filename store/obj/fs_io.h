/* The blocking calls of a file store, one object each: run on the thread pool. No shared state but
 * struct fs_io_synced. Every component below the root is opened without following links, so that no
 * path leads out, whatever others do to the tree meanwhile. */
#ifndef STORE_OBJ_FS_IO_H
#define STORE_OBJ_FS_IO_H

#include <pthread.h>

#include "proto/base/digest.h"
#include "proto/base/err.h"
#include "proto/base/pieces.h"

/* Folders whose names are known to be durable all the way up to their root. A bounded memory: what
 * it forgets is synced again. */
#define FS_IO_SYNCED_SLOTS 1024
struct fs_io_synced {
	pthread_mutex_t lock;
	struct digest slots[FS_IO_SYNCED_SLOTS];
};

void fs_io_synced_init(struct fs_io_synced *s);
void fs_io_synced_fini(struct fs_io_synced *s);

/* Where an object lies: root is an absolute folder (whose own path may hold links, as its owner
 * set it up), rel the path below it; both normalised (fs_path). */
struct fs_io_place {
	const char *root;
	const char *rel;
};

/* Writes a file without a name in the object's folder (named temp_name where that cannot be), syncs
 * it, links it under its name unless that is taken, syncs the folder, and new folders up to the root.
 * *ret_existed: an equal object was there. ST_IO: nothing was made; ST_IO_UNKNOWN: it may be there, durable or not. */
MUST_CHECK enum status fs_io_put(struct fs_io_place at, const char *temp_name,
				 const struct pieces *content, struct fs_io_synced *synced,
				 bool *ret_existed, struct err *err);
/* Appends to out; length SIZE_MAX means the whole object, else exactly so much from offset on. */
MUST_CHECK enum status fs_io_get(struct fs_io_place at, uint64_t offset, size_t length,
				 struct buf *out, struct err *err);
MUST_CHECK enum status fs_io_stat(struct fs_io_place at, uint64_t *ret_size, struct err *err);
/* Durable when it returns ST_OK. */
MUST_CHECK enum status fs_io_delete(struct fs_io_place at, bool *ret_existed, struct err *err);
/* Makes an absolute folder with all above it and syncs what it made. */
MUST_CHECK enum status fs_io_make_folder(const char *path, struct err *err);

#endif
