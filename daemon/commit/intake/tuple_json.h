/* Partition tuples in the JSON forms in which engines report them, into the wire form of a data
 * file: one value for each field of the spec, in its order. The values are checked where every
 * staged tuple is (check.h); here only what the text's form demands. `s` is the schema that the
 * file was written with: values come in its types. */
#ifndef DAEMON_COMMIT_INTAKE_TUPLE_JSON_H
#define DAEMON_COMMIT_INTAKE_TUPLE_JSON_H

#include "proto/base/arena.h"
#include "proto/rpc/rpc.h"

struct field;
struct metadata;
struct partition_spec;
struct schema;

/* {"partitionValues":[…]} of Velox, Presto and Trino: dates as days, times and timestamps as
 * numbers of their unit, binary as base64, NaN and infinities as text. With `unscaled` an integer
 * for a decimal is its unscaled value (Velox, Presto), else the value itself (Trino); with a point
 * or exponent it is always the value. ST_TUPLE_MISMATCH, field "partitionValues[i]". *ret_v has
 * spec->n values in the arena. */
MUST_CHECK enum status tuple_json_read(struct strv json, const struct partition_spec *spec,
				       const struct metadata *m, const struct schema *s,
				       bool unscaled, struct arena *a,
				       struct rpc_partition_value **ret_v, struct err *err);
/* The array or object (by field id, nulls left out) of single-value JSON in a content file (table
 * specification, Appendix D). ST_TUPLE_MISMATCH, field "[i]". */
MUST_CHECK enum status tuple_json_single(struct strv json, const struct partition_spec *spec,
					 const struct metadata *m, const struct schema *s,
					 struct arena *a, struct rpc_partition_value **ret_v,
					 struct err *err);
/* A tuple of nulls; false when the arena is full. */
MUST_CHECK bool tuple_json_nulls(const struct partition_spec *spec, struct arena *a,
				 struct rpc_partition_value **ret_v);

#endif
