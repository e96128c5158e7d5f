/* Files of position deletes (format version 2, spec "Position Delete Files"): which data files a
 * staged one may name, and what else may have happened to those since the read snapshot. Positions
 * are in the files alone, so two writers of one data file meet by name, not by row. */
#ifndef DAEMON_COMMIT_POSDEL_H
#define DAEMON_COMMIT_POSDEL_H

#include "daemon/commit/plan.h"

/* Adds to the names of one that tells none what a whole view of the read snapshot has in its
 * partition; each data manifest of its spec once. Names live in `a`. ST_TOO_LARGE. */
MUST_CHECK enum status posdel_gather(const struct mview *v, struct arena *a,
				     struct plan_delete_file *d, struct err *err);
/* Judges d->names, gathered or told; views of the read snapshot hold those told. ST_FILE_GONE for a
 * data file that is not there, ST_TUPLE_MISMATCH for one of another spec or partition (readers would
 * not apply the deletes to it), ST_METRICS_INVALID for one outside of the path bounds (they would skip
 * it) or bounds that hold other paths, ST_POSITION_RANGE for positions that no named file has. */
MUST_CHECK enum status posdel_names(struct mview *const *views, size_t n,
				    struct plan_delete_file *d, struct err *err);
/* Judges the transaction's delete files against the ref's head and the batch: t->reject says why
 * not; otherwise the plan knows the data files that they name. false: the plan's memory is used up. */
MUST_CHECK bool posdel_apply(struct plan *p, int ref, struct plan_txn *t);
/* Whether the lane's delete files move rows: some came with new files. */
bool posdel_moves(const struct plan_lane *lane);

#endif
