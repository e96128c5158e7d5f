/* Which small manifests a snapshot puts together. Asked twice with the same answer: by the plan,
 * which has to load what will be written anew, and by the encode job. */
#ifndef DAEMON_COMMIT_MERGE_H
#define DAEMON_COMMIT_MERGE_H

#include "daemon/commit/plan.h"

struct merge_row {
	const struct manifest_file *f;
	struct mview *view;
};

/* Whether the lane's changes take an entry out of this manifest: a file that is dropped, a vector
 * that is replaced. */
bool merge_touches(const struct plan_lane *lane, const struct mview *v);
/* Whether anything in it is alive, as far as its row tells. */
bool merge_has_live(const struct manifest_file *f);
/* Marks rows of one content and spec once there are enough small ones; otherwise a table with many
 * small commits has a list that grows with every one. Properties and defaults are those that other
 * writers follow. Returns how many are marked. */
size_t merge_pick(const struct metadata *m, const struct plan_lane *lane,
		  const struct merge_row *rows, size_t n, bool *picked);

#endif
