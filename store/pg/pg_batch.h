/* The durable decision: publish and the look for a batch row. */
#ifndef STORE_PG_PG_BATCH_H
#define STORE_PG_PG_BATCH_H

#include "store/pg/pg_rows.h"

MUST_CHECK enum status pg_batch_check(const struct sql_effect *fx, struct err *err);
void pg_batch_args(const struct sql_effect *fx, struct pgargs *args);
MUST_CHECK bool pg_batch_result(const struct sql_effect *fx, const struct pgres *res,
				struct arena *arena, struct sql_result *ret);
/* Parameters that tables' first batches share with later ones. */
void pg_batch_put_snapshots(const struct batch_row *row, struct pgargs *args);

#endif
