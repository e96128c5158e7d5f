/* Effects that begin and end an incarnation: create, register, overwrite, drop. */
#ifndef STORE_PG_PG_CREATE_H
#define STORE_PG_PG_CREATE_H

#include "store/pg/pg_rows.h"

MUST_CHECK enum status pg_create_check(const struct sql_effect *fx, struct err *err);
void pg_create_args(const struct sql_effect *fx, struct pgargs *args);
MUST_CHECK bool pg_create_result(const struct sql_effect *fx, const struct pgres *res,
				 struct arena *arena, struct sql_result *ret);

#endif
