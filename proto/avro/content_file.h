/* One file as a manifest lists it: the record data_file of the table spec ("Manifests"), with
 * every optional member either empty, a named constant of ids.h, or behind a has_ flag. Views point
 * into whoever owns the record: a manifest's arena or the caller's memory. */
#ifndef PROTO_AVRO_CONTENT_FILE_H
#define PROTO_AVRO_CONTENT_FILE_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/iceberg/ids.h"
#include "proto/iceberg/value.h"

enum content { CONTENT_DATA, CONTENT_POSITION_DELETES, CONTENT_EQUALITY_DELETES };

/* One entry of an int-keyed map: sizes in bytes and counts in values, by column. */
struct metric {
	int32_t field_id;
	int64_t v;
};
/* A lower or upper bound in single-value binary form; possibly cut short, as writers may. */
struct bound {
	int32_t field_id;
	struct bytes b;
};

/* An empty map or list is the same as an absent one. Maps keep the order they were given in. */
struct content_file {
	enum content content;
	int32_t spec_id; /* the manifest's; not stored per entry */
	struct strv path;
	struct strv format; /* any case; compare with strv_ieq */
	struct tuple partition;
	int64_t record_count;
	int64_t file_size; /* of the whole file, also when several vectors share it */
	struct metric *column_sizes, *value_counts, *null_counts, *nan_counts;
	size_t n_column_sizes, n_value_counts, n_null_counts, n_nan_counts;
	struct bound *lower, *upper;
	size_t n_lower, n_upper;
	struct bytes key_metadata;
	bool has_key_metadata;
	int64_t *split_offsets;
	size_t n_split_offsets;
	int32_t *equality_ids;
	size_t n_equality_ids;
	int32_t sort_order_id;            /* SORT_ORDER_NONE */
	int64_t first_row_id;             /* ROW_ID_NONE */
	struct strv referenced_data_file; /* p is NULL when absent */
	int64_t content_offset;           /* OFFSET_NONE; with content_size only on a vector */
	int64_t content_size;             /* OFFSET_NONE */
};

/* All members absent or zero, with the named constants in place. */
struct content_file content_file_empty(void);
/* A deletion vector: position deletes with a place inside their file. */
bool content_file_is_dv(const struct content_file *f);
/* What holds for every record on its own: sizes not negative, a vector complete and in Puffin,
 * a place inside the file only on a vector, equality ids exactly on equality deletes, row ids only
 * on data, and nothing that format_version lacks. Does not look at the tuple. The first breach is
 * status `bad` with the member's name in the spec as field. */
MUST_CHECK enum status content_file_check(const struct content_file *f, int format_version,
					  enum status bad, struct err *err);
/* Deep copy into a; false on exhaustion, *ret_f then untouched. */
MUST_CHECK bool content_file_copy(struct arena *a, const struct content_file *f,
				  struct content_file *ret_f);

#endif
