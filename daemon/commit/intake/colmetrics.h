/* Column metrics of a data file that a worker staged: sizes, counts and bounds. */
#ifndef DAEMON_COMMIT_INTAKE_COLMETRICS_H
#define DAEMON_COMMIT_INTAKE_COLMETRICS_H

#include "proto/avro/content_file.h"
#include "proto/iceberg/schema.h"
#include "proto/rpc/rpc.h"

/* Checks the metrics of `in` against its schema and copies them to f, in the order of field ids.
 * Every id names a column or a row lineage column, once; nulls and NaNs do not exceed the values;
 * bounds decode as the column's type, are no NaN, and lower ones lie below upper ones (spec "Data
 * File Fields"). Bounds of a uuid column that readers order differently are left out.
 * s NULL: the columns of a position delete file, file_path and pos (spec "Position Delete Files"). */
MUST_CHECK enum status colmetrics_check(const struct schema *s, const struct rpc_data_file *in,
					struct arena *a, struct content_file *f, struct err *err);

#endif
