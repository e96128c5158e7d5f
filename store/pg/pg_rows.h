/* Rows of the commit log in the order of their tables' columns, from a binary result. Views point
 * into the result; arrays of structures come from the arena. A row that does not decode sets
 * r->bad. */
#ifndef STORE_PG_PG_ROWS_H
#define STORE_PG_PG_ROWS_H

#include "proto/base/arena.h"
#include "proto/commit/sqlport.h"
#include "store/pg/pgc.h"

#define PG_TXN_COLS 21
#define PG_FRAGMENT_COLS 5
#define PG_BATCH_COLS 14
#define PG_HEAD_COLS 9

/* col: the row's first column in the result. */
void pg_rows_txn(struct pgrow *r, int col, struct txn_row *ret);
void pg_rows_fragment(struct pgrow *r, int col, struct fragment_row *ret);
void pg_rows_batch(struct pgrow *r, int col, struct arena *arena, struct batch_row *ret);
/* The name is not among head's columns and is left empty. */
void pg_rows_head(struct pgrow *r, int col, struct head_row *ret);

/* The fragments in rows [from, to), whose columns begin at col, become the item's. */
void pg_rows_fragments(const struct pgres *res, size_t from, size_t to, int col,
		       struct arena *arena, struct sql_item_result *item, bool *bad);

#endif
