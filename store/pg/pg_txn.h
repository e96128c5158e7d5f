/* Effects on transactions: many items of one kind in one statement, a result for each. */
#ifndef STORE_PG_PG_TXN_H
#define STORE_PG_PG_TXN_H

#include "store/pg/pg_rows.h"

/* Parameters of the statement for n effects of this kind (SQL_TXN_*). */
void pg_txn_args(enum sql_kind kind, const struct sql_effect *const *fx, size_t n,
		 struct pgargs *args);
/* Fills rets[n]; false when the answer does not decode. */
MUST_CHECK bool pg_txn_results(enum sql_kind kind, const struct pgres *res, struct arena *arena,
			       struct sql_result *rets, size_t n);
/* About how many parameter bytes the effect takes. */
size_t pg_txn_size(const struct sql_effect *fx);
/* Text that SQL cannot hold, or that an index cannot, is refused before anything is sent. */
MUST_CHECK enum status pg_txn_check(const struct sql_effect *fx, struct err *err);
/* The transaction the effect is about. */
struct txn_id pg_txn_id(const struct sql_effect *fx);

/* Longest text of a path and of a name: an index entry holds about 2,700 bytes. */
#define PG_PATH_MAX 2048
#define PG_NAME_MAX 1024
MUST_CHECK enum status pg_txn_check_paths(const struct strv *paths, size_t n, struct err *err);

#endif
