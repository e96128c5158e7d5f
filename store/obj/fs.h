/* Objects as files, on the loop's thread pool: temporary file in the same folder, sync, link under
 * its name, sync of the folder, and only then confirmed. Paths must lie beneath one of the roots.
 */
#ifndef STORE_OBJ_FS_H
#define STORE_OBJ_FS_H

#include <uv.h>

#include "store/obj/obj.h"

struct fs;

/* roots: absolute paths or file: URIs of folders. None has to exist yet, but an operation beneath
 * a missing root is ST_IO. Nothing blocks here. */
MUST_CHECK enum status fs_new(uv_loop_t *loop, const struct strv *roots, size_t n,
			      struct fs **ret_fs, struct err *err);
/* Adds one at run time; a second time is no error. */
MUST_CHECK enum status fs_add_root(struct fs *fs, struct strv root, struct err *err);
/* ST_OK when an object of this name could be had here: form of the path, and a root above it. */
MUST_CHECK enum status fs_check(const struct fs *fs, struct strv path, struct err *err);
struct obj_store *fs_store(struct fs *fs);
/* Waits so long before each write, without holding a thread: models a remote store. 0: not. */
void fs_put_delay(struct fs *fs, uint64_t delay_ms);
/* Cancels what runs (each `done` still comes), waits for calls that a thread is inside, then frees
 * fs and runs closed. Starting anything from now on is ST_UNAVAILABLE. */
void fs_free(struct fs *own_fs, void (*closed)(void *ctx), void *ctx);

/* Makes the folder of a root with all above it, durable. Blocks: for start-up and new warehouses
 * only. */
MUST_CHECK enum status fs_make_root(struct strv root, struct err *err);

#endif
