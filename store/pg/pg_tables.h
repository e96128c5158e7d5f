/* The statement that decides over several tables at once. */
#ifndef STORE_PG_PG_TABLES_H
#define STORE_PG_PG_TABLES_H

#include "proto/commit/sqlport.h"
#include "store/pg/pgargs.h"
#include "store/pg/pgrow.h"

/* What SQL would refuse as a whole is refused here. */
MUST_CHECK enum status pg_tables_check(const struct sql_effect *fx, struct err *err);
void pg_tables_args(const struct sql_effect *fx, struct pgargs *a);
/* false: the answer does not decode. */
MUST_CHECK bool pg_tables_result(const struct sql_effect *fx, const struct pgres *res,
				 struct sql_result *ret);

#endif
