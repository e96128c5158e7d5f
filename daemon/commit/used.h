/* Whether manifests still name a partition spec: of the snapshots that a commit keeps, when it removes
 * specs, and of a list that it brings. A reader that meets a manifest of a spec which the table has not
 * cannot read the table any more. */
#ifndef DAEMON_COMMIT_USED_H
#define DAEMON_COMMIT_USED_H

#include "daemon/commit/cache.h"

/* Whether `fresh` lacks a spec of `base`. */
bool used_removes(const struct metadata *base, const struct metadata *fresh);
/* Looks in the manifest lists of every snapshot of `fresh` for specs that `base` has and `fresh` has not;
 * nothing is read when there are none. *io_snapshot is where it stands, 0 at first. FAIL: err;
 * ST_COMMIT_FAILED when one is in use (somebody may just have used it), ST_VALIDATION when that cannot be
 * known. What it held is let go. */
enum cache_answer used_specs(const struct metadata *base, const struct metadata *fresh,
			     size_t *io_snapshot, struct cache *c, struct needs *needs,
			     struct err *err);
/* ST_VALIDATION for a row whose spec the table has not. */
MUST_CHECK enum status used_list_check(const struct mlist *list, const struct metadata *m,
				       struct err *err);

#endif
