/* Deletions by row position: finding the data file on a ref, and what a position means when others
 * have deleted or moved the same row. */
#ifndef DAEMON_COMMIT_ALGEBRA_H
#define DAEMON_COMMIT_ALGEBRA_H

#include "daemon/commit/plan.h"

/* A data file and its vector in one snapshot; rows are places in its list. */
struct located {
	size_t data_row, dv_row;
	const struct mfile *data; /* NULL: not in the snapshot */
	const struct mfile *dv;	  /* NULL: no vector */
	size_t n_dvs;		  /* more than one: the snapshot is inconsistent */
};
struct located algebra_locate(struct mview *const *views, size_t n, struct mkey key);

/* What of a data file decides which delete files apply to it. */
struct algebra_data {
	struct strv path;
	int64_t seq;
	int32_t spec_id;
	const struct tuple *partition;
};
/* Borrows from the view and the path. */
struct algebra_data algebra_data_of(const struct mview *v, const struct mfile *f, struct strv path);

/* Whether a live delete file that is no vector may apply to the data file (spec, "Scan Planning":
 * sequence number, and scope by referenced file, equal path bounds or spec and partition; equality
 * deletes under a spec without partition fields apply everywhere). m: the table's metadata. */
bool algebra_may_apply(const struct metadata *m, const struct manifest_entry *del,
		       const struct algebra_data *data);
/* ST_LEGACY_DELETES, naming both files, when such a delete file is among the views: a deletion could
 * not be told from what it hides. vector: the data file has one, which replaces position delete
 * files but not equality deletes (spec, "Deletion Vectors"). Views with such files are whole. */
MUST_CHECK enum status algebra_legacy(const struct metadata *m, struct mview *const *views,
				      size_t n, const struct algebra_data *data, bool vector,
				      struct err *err);
/* The highest sequence number that the transaction's read snapshot can have seen: its own, or, when
 * it has been expired, one below its child's. false: nobody can tell any more. */
bool algebra_read_bound(const struct plan *p, int ref, const struct plan_txn *t, int64_t *ret_seq);
/* The end of a path, as much as two of them fit into a message; *ret_dots what to put before it. */
struct strv algebra_tail(struct strv path, const char **ret_dots);

/* The plan's state of a data file, NULL when no deletion has named it. */
struct plan_file *algebra_file(const struct plan *p, int ref, struct strv path);

/* Checks every deletion of the transaction against the plan's state of the ref and, when all hold,
 * applies them. CACHE_WAIT: vectors are missing. CACHE_FAIL with err: unreadable head. Otherwise
 * t->reject says why not, or the plan's files now hold the deletions. */
enum cache_answer algebra_apply(struct plan *p, int ref, struct plan_txn *t, bool dry,
				struct cache *c, struct needs *needs, struct err *err);

#endif
