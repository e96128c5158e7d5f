/* First row ids of the data manifests of a new snapshot (Iceberg spec, "First Row ID Assignment"). */
#ifndef DAEMON_COMMIT_LINEAGE_H
#define DAEMON_COMMIT_LINEAGE_H

#include "daemon/commit/objects.h"

/* Gives every data manifest without a first-row-id the running number, in list order, and moves
 * that on by its existing and added rows; rows without counts are counted from the view. *next is
 * the table's next-row-id before and after. ST_LIMIT when the number would overflow. */
MUST_CHECK enum status lineage_assign(struct manifest_file *rows, struct mview *const *views,
				      size_t n, int64_t *next, struct err *err);
/* What a manifest list of a foreign snapshot must fulfil: every data manifest has a first-row-id;
 * one that `known` (an older list) already has keeps its number; new ones lie with their rows in
 * [low, end) and overlap nothing there. low is the table's next-row-id before the request, not the
 * snapshot's first-row-id: DuckDB's MERGE, two snapshots in one commit, states a first-row-id above
 * its rows. end is the snapshot's first-row-id + added-rows. ST_VALIDATION otherwise. */
MUST_CHECK enum status lineage_check(const struct manifest_list *list,
				     const struct manifest_list *const *known, size_t n_known,
				     int64_t low, int64_t end, struct err *err);

#endif
