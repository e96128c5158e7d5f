/* The decision over waiting transactions: which commit, which are refused and why, and what each
 * snapshot of the batch adds, deletes and drops. A pure function of the head snapshots and the
 * transactions; files that it needs come from the cache, so it is run again until none is missing.
 *
 * All transactions that commit are concurrent, so any order is a serial one: deletions go first,
 * then row deltas, then appends, one snapshot ("lane") per ref and kind. */
#ifndef DAEMON_COMMIT_PLAN_H
#define DAEMON_COMMIT_PLAN_H

#include "daemon/commit/probe.h"
#include "daemon/commit/reflog.h"

#define PLAN_BUCKETS 1024

struct plan_delete {
	struct strv data_file;
	/* What the transaction deletes beyond its read snapshot's vector; bits are below the file's
	 * record count. */
	const struct bitmap64 *positions;
	bool dead; /* the rows are gone; otherwise they were moved */
	/* out */
	int64_t deleted, overlap;
};

/* A file of position deletes that a worker wrote, for format version 2. */
struct plan_delete_file {
	struct content_file file;
	/* Data files that it may name: those that the worker told, else all that its partition had
	 * at the read snapshot. */
	const struct strv *names;
	size_t n_names;
	bool told;
	/* While names are gathered: their room, and the rows of the longest data file. */
	size_t cap_names;
	int64_t most;
};

/* A finished manifest of the worker's that is listed as it is; its files lie together. */
struct plan_adopted {
	struct strv path;
	int64_t length;
	int format_version; /* the manifest's */
	size_t first, n;    /* of the transaction's files */
};

enum plan_wish { PLAN_COMMIT, PLAN_ABORT, PLAN_EXPIRE };

struct plan_txn {
	struct txn_id id;
	enum plan_wish wish;
	int32_t kind; /* enum rpc_kind: APPEND, DELETE or ROW_DELTA */
	struct strv ref;
	bool has_read;
	int64_t read_snapshot;
	bool ordered;
	const struct content_file *files;
	const int32_t *schema_ids; /* parallel to files */
	size_t n_files;
	const struct plan_adopted *adopted; /* in the order of their files */
	size_t n_adopted;
	struct plan_delete *deletes; /* each data file once */
	size_t n_deletes;
	const struct plan_delete_file *delete_files;
	size_t n_delete_files;
	int64_t rows_updated; /* stated by the worker: rows carried with their ids */
	const struct strv_pair *summary;
	size_t n_summary;
	struct err refused; /* st != ST_OK: found out before planning */
	/* out */
	bool taken; /* false: waits for the next batch */
	enum txn_db_state state;
	struct err reject;
	int lane; /* -1: no snapshot */
};

/* One data file that deletions of this batch touch, on one ref. */
struct plan_file {
	struct plan_file *next;
	int ref;
	struct strv path;
	struct mkey key; /* of the path */
	const struct mfile *data; /* NULL: not in the head */
	size_t data_row;	  /* of the ref's list */
	const struct mfile *dv;	  /* NULL: no vector at the head */
	size_t dv_row;
	size_t n_dvs; /* more than one: the head is inconsistent */
	const struct vec *base;	 /* the head's vector, NULL without one */
	struct bitmap64 *now;	 /* base and all that was applied so far */
	struct bitmap64 *moved;	 /* of that, what this batch moved; NULL when nothing */
	bool emptied;		 /* a lane dropped it */
	int lane;		 /* the lane that changed it last, -1 before */
	int frozen;		 /* the lane whose change list holds it last, -1 before */
};

/* What one lane does to one file: result is the whole new vector. */
struct plan_change {
	struct plan_file *file;
	struct bitmap64 *result; /* NULL when the file is dropped */
	bool drop;
};

struct plan_lane {
	int ref;
	int rank; /* 0 deletions, 1 row deltas, 2 appends */
	int64_t snapshot_id;
	struct plan_txn **txns;
	size_t n_txns;
	struct plan_change *changes;
	size_t n_changes;
	size_t n_files; /* added data files over all its transactions */
	size_t n_delete_files;
	const struct strv_pair *summary; /* of a transaction that has its own */
	size_t n_summary;
};

struct plan_ref {
	struct strv name;
	const struct snapshot *head; /* NULL: the ref (main) does not exist yet */
	struct mlist *list;	     /* NULL with head; a reference is held */
	/* Parallel to the list's rows; references are held. Whole where entries will be written
	 * anew, else light where a path of this batch is found, else bare. */
	struct mview **views;
	struct reflog *log;	     /* the table's; not owned */
};

/* A data file that position delete files of this batch name, on one ref. */
struct plan_touch {
	struct plan_touch *next;
	int ref;
	struct strv path;
};

struct plan {
	struct arena arena;
	struct metadata *base; /* a reference is held */
	struct plan_ref *refs;
	size_t n_refs;
	struct plan_lane *lanes;
	size_t n_lanes;
	struct plan_txn *txns; /* the caller's */
	size_t n_txns;
	struct mkey **keys; /* by transaction: of the files that it adds, then of those that
			    * it deletes from; NULL: it is not judged */
	struct plan_file *files[PLAN_BUCKETS]; /* hash by ref and path */
	struct plan_touch *touched[PLAN_BUCKETS];
	struct bitmap64 **sets;	     /* owned sets, freed with the plan */
	size_t n_sets, cap_sets;
	struct vec **vecs; /* references held */
	size_t n_vecs, cap_vecs;
};

struct plan_in {
	struct metadata *base;
	struct plan_txn *txns; /* in queue order; outputs are written when the answer is DONE */
	size_t n_txns;
	/* The table's log of a ref; made on first use. */
	struct reflog *(*log_of)(void *ctx, struct strv ref, int64_t head);
	int64_t (*new_snapshot_id)(void *ctx);
	void *ctx;
	size_t max_bytes; /* of the plan's own memory */
};

enum plan_answer {
	PLAN_DONE,
	PLAN_WAIT, /* needs were recorded */
	PLAN_FAIL, /* a file of the head cannot be read: err */
};

enum plan_answer plan_run(const struct plan_in *in, struct cache *c, struct needs *needs,
			  struct plan **ret_plan, struct err *err);
void plan_free(struct plan *own_plan);
/* Tells the logs what the published plan did. */
void plan_published(const struct plan *plan);

/* Makes the view of a row of the ref's list a whole one. */
enum cache_answer plan_whole(struct plan *p, struct plan_ref *r, size_t row, struct cache *c,
			     struct needs *needs, struct err *err);
/* Keeps a set until the plan goes. */
struct bitmap64 *plan_own_set(struct plan *p, struct bitmap64 *own_set);

#endif
