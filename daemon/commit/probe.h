/* Which manifests of a list hold any of some paths. Indexes are asked a part at a time and let go of
 * when they have been asked, so that a table whose index is larger than the cache's budget is looked
 * through within the budget; what was found stays with the operation between its runs. */
#ifndef DAEMON_COMMIT_PROBE_H
#define DAEMON_COMMIT_PROBE_H

#include "daemon/commit/cache.h"

struct probe {
	struct probe *next;
	struct mlist *list; /* a reference is held */
	struct mkey sum;    /* of the keys */
	struct mkey *keys;  /* ascending */
	size_t n_keys;
	/* Parallel to the list's rows; references are held. The light view of a manifest that has
	 * one of the keys, the bare one of any other, NULL where it has not been asked yet. */
	struct mview **views;
	size_t next_row; /* rows before have been asked */
	const struct manifest_file *failed; /* CACHE_FAIL: which could not be read */
};

/* HAVE: every manifest has been asked. FAIL: err; ret_p is set as well. The probe lives until
 * needs_release. */
enum cache_answer probe_list(struct cache *c, struct mlist *list, struct metadata *meta,
			     const struct mkey *keys, size_t n_keys, struct needs *needs,
			     const struct probe **ret_p, struct err *err);
void probe_free_all(struct needs *n);

#endif
