/* Decided batches of a table, for an operator's eyes. ST_OK = done runs once, later, on the loop; anything
 * else = never. */
#ifndef STORE_PG_PG_HISTORY_H
#define STORE_PG_PG_HISTORY_H

#include "store/pg/pgcat.h"

struct pg_history_batch {
	struct batch_id batch;
	int64_t batch_no, epoch, base_version, created_pg_ms;
	int32_t txns, committed; /* transactions; none in a batch of a REST client */
	int32_t snapshots;
	int64_t last_snapshot; /* with snapshots > 0 */
	int64_t first_row_id, added_rows;
	struct strv metadata_location;
};

/* Valid until done returns. NO_SUCH_TABLE, UNAVAILABLE. */
struct pg_history_result {
	struct err err;
	const struct pg_history_batch *batches; /* newest first */
	size_t n;
	bool more;
};
typedef void (*pg_history_done)(void *ctx, const struct pg_history_result *res);

/* Batches of the table as it is now (not of one that had its UUID before) with a number below
 * `before`, at most limit. */
MUST_CHECK enum status pg_history_batches(struct pgcat *cat, struct table_id table, int64_t before,
					  size_t limit, pg_history_done done, void *ctx,
					  struct err *err);

/* NO_SUCH_TABLE, UNAVAILABLE. Valid until done returns. */
struct pg_history_where {
	struct err err;
	struct strv metadata_location, name;
};
typedef void (*pg_history_found)(void *ctx, const struct pg_history_where *res);
/* The current metadata file of a table and its whole name. */
MUST_CHECK enum status pg_history_find(struct pgcat *cat, struct table_id table,
				       pg_history_found done, void *ctx, struct err *err);

#endif
