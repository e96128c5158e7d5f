/* What happened on one ref since this daemon took the table over: which snapshots were added, which
 * rows were moved rather than deleted, which files left because all their rows were deleted. What
 * went before is told by the snapshots themselves, as far as they do. What is not known counts as
 * moved, which can refuse a deletion but never lose one. */
#ifndef DAEMON_COMMIT_REFLOG_H
#define DAEMON_COMMIT_REFLOG_H

#include "proto/dv/bitmap64.h"

struct reflog;

/* head: SNAPSHOT_NONE for a ref without snapshots. */
struct reflog *reflog_new(struct strv ref, int64_t head);
void reflog_free(struct reflog *own_l);
struct strv reflog_ref(const struct reflog *l);
int64_t reflog_head(const struct reflog *l);

/* A snapshot of ours; its moved rows and emptied files follow by the next two calls. */
void reflog_ours(struct reflog *l, int64_t snapshot);
void reflog_moved(struct reflog *l, struct strv path, const struct bitmap64 *rows);
/* A snapshot of ours that moved rows which nobody listed: a row delta by position delete files. */
void reflog_ours_moved(struct reflog *l, int64_t snapshot);
/* The data file left with all of its rows deleted; what was moved of it stays recorded. */
void reflog_emptied(struct reflog *l, struct strv path);
/* A commit by somebody else. dead: every snapshot of it had operation delete and added no file. */
void reflog_foreign(struct reflog *l, int64_t snapshot, bool dead);
/* The ref went somewhere that is not a descendant: forget everything. */
void reflog_reset(struct reflog *l, int64_t head);

/* Whether everything since snapshot `read` is known and nothing unknown was moved. */
bool reflog_knows(const struct reflog *l, int64_t read);
/* Whether the snapshot was seen and is known to have moved no row, or recorded ones only. */
bool reflog_plain(const struct reflog *l, int64_t snapshot);
/* Whether the snapshot was seen on the ref, the start included. */
bool reflog_saw(const struct reflog *l, int64_t snapshot);
/* Rows of the file that were moved; NULL for none. */
const struct bitmap64 *reflog_moved_of(const struct reflog *l, struct strv path);
/* A foreign commit left the data file's vectors or row ids contradictory. */
void reflog_spoil(struct reflog *l, struct strv path);
bool reflog_spoilt(const struct reflog *l, struct strv path);
bool reflog_was_emptied(const struct reflog *l, struct strv path);

#endif
