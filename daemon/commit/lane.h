/* One snapshot of a batch: its vectors, manifests and manifest list, on top of the list that the
 * lane before it left. Part of the encode job. */
#ifndef DAEMON_COMMIT_LANE_H
#define DAEMON_COMMIT_LANE_H

#include "daemon/commit/rewrite.h"
#include "proto/iceberg/snapshot.h"

/* A ref while its lanes are encoded one after another. */
struct lane_line {
	struct rewrite_row *rows;
	size_t n;
	const struct snapshot *head; /* newest snapshot: the plan's head or a lane's */
};

struct lane_work {
	struct rewrite w;
	const struct plan *plan;
	struct lane_line *lines;	    /* parallel to the plan's refs */
	struct snapshot *snapshots; /* parallel to its lanes */
	int64_t timestamp_ms;
	int64_t next_row_id;
	int n_vectors; /* numbers the names */
	const struct plan_change **changes; /* of the lane, ascending by path */
	size_t n_changes;
	struct strv data_dir;
};

/* Encodes the plan's lane `index`; the lines, row ids and snapshots in k move on. */
MUST_CHECK enum status lane_encode(struct lane_work *k, int index, struct err *err);

#endif
