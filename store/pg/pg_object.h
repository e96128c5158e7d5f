/* Effects on the ledger and on the delete queue. */
#ifndef STORE_PG_PG_OBJECT_H
#define STORE_PG_PG_OBJECT_H

#include "store/pg/pg_rows.h"

MUST_CHECK enum status pg_object_check(const struct sql_effect *fx, struct err *err);
void pg_object_args(const struct sql_effect *fx, struct pgargs *args);
MUST_CHECK bool pg_object_result(const struct sql_effect *fx, const struct pgres *res,
				 struct arena *arena, struct sql_result *ret);

#endif
