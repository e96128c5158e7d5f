/* What the core holds, for an operator's eyes: pages of tables, transactions that are not final, batches
 * under way and findings. A page costs the loop one pass over what there is, never a copy of it;
 * what is handed over is borrowed for the call. */
#ifndef DAEMON_COMMIT_INSPECT_H
#define DAEMON_COMMIT_INSPECT_H

#include "daemon/commit/port.h"

/* The most that one page holds; a larger limit is this one. */
#define INSPECT_PAGE_MAX 500

struct inspect_totals {
	size_t loading, ready, halted;	       /* tables */
	size_t open, sealed, queued, batched; /* transactions; those without a row yet are not counted */
	size_t batches;			       /* under way */
};
void inspect_count(const struct core *core, struct inspect_totals *ret_t);

/* Tables by ascending UUID behind `after` (nil: from the first). true: there are more. */
bool inspect_tables(const struct core *core, bool halted_only, struct table_id after, size_t limit,
		    void (*fn)(void *ctx, const struct core_table_info *), void *ctx);

struct inspect_txn {
	struct txn_id txn;
	struct table_id table;
	struct strv table_name, ref, principal;
	int32_t kind;	   /* enum rpc kind */
	const char *state; /* open, sealed, queued, batched */
	bool commit_requested, ordered, has_read_snapshot;
	int64_t read_snapshot;
	int64_t created_pg_ms, expires_pg_ms;
	size_t fragments, files, waiters;
};
/* Transactions that are not final by ascending id, the oldest first, of one table or of all (nil). */
bool inspect_txns(const struct core *core, struct table_id table, struct txn_id after, size_t limit,
		  void (*fn)(void *ctx, const struct inspect_txn *), void *ctx);

struct inspect_batch {
	struct batch_id batch;
	struct table_id table;
	struct strv table_name;
	int64_t batch_no, epoch, base_version;
	const char *state; /* batch.tbl, lower case */
	bool rest;	   /* of a REST client: no transactions */
	size_t txns, puts_open;
};
/* Batches under way, by ascending table. */
bool inspect_batches(const struct core *core, struct table_id table, struct table_id after,
		     size_t limit, void (*fn)(void *ctx, const struct inspect_batch *), void *ctx);

/* The newest findings about snapshots of REST clients; older ones are in the log only. */
#define INSPECT_FINDINGS 1024
#define INSPECT_PATH_MAX 512

struct inspect_finding {
	int64_t no; /* counts from 1 since the start */
	int64_t pg_ms;
	struct table_id table;
	struct strv table_name;
	const char *kind;
	struct strv path; /* its end, when it is longer than INSPECT_PATH_MAX */
};
/* Newest first, those before `before` (0: from the newest), of one table or of all (nil). */
bool inspect_findings(const struct core *core, struct table_id table, int64_t before, size_t limit,
		      void (*fn)(void *ctx, const struct inspect_finding *), void *ctx);

#endif
