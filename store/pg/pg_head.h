/* Effects on a table's head row and what a take-over reads: recover, head, bump, queue, horizon. */
#ifndef STORE_PG_PG_HEAD_H
#define STORE_PG_PG_HEAD_H

#include "store/pg/pg_rows.h"

void pg_head_args(const struct sql_effect *fx, struct pgargs *args);
MUST_CHECK bool pg_head_result(const struct sql_effect *fx, const struct pgres *res,
			       struct arena *arena, struct sql_result *ret);

#endif
