/* Paths of a file store: from the text of a `file:` URI to an absolute path, and whether it lies
 * beneath a root. Text only; links are a matter of fs_io. */
#ifndef STORE_OBJ_FS_PATH_H
#define STORE_OBJ_FS_PATH_H

#include "proto/base/err.h"

#define FS_PATH_MAX 4096 /* with the NUL, as the kernel counts */

struct fs_path {
	char text[FS_PATH_MAX]; /* absolute, no empty or "." components, no '/' at the end */
	size_t n;               /* 0 for "/" itself */
};

/* Takes /p, file:/p and file:///p. Percent signs stay as they are: writers of tables put literal
 * paths into file URIs. ST_UNSUPPORTED for another scheme or a host, ST_PATH_OUTSIDE for a ".."
 * component, ST_ILLEGAL_ARGUMENT for a relative path, NUL or length. */
MUST_CHECK enum status fs_path_of(struct strv uri, struct fs_path *ret_path, struct err *err);
/* Does `path` lie truly below `root`? *ret_rel then points at the rest inside path->text. */
bool fs_path_beneath(const struct fs_path *root, const struct fs_path *path, const char **ret_rel);

#endif
