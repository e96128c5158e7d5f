#include "proto/avro/manifest_cols.h"

#include "proto/avro/manifest.h"
#include "proto/avro/manifest_list.h"

#define AT(type, member) offsetof(type, member)
/* Primitive column without a flag. */
#define COL(type, fid, fname, fkind, fin, fmust, member)                                           \
	{                                                                                          \
		.id = (fid), .name = (fname), .kind = (fkind), .in = (fin), .must = (fmust),       \
		.off = AT(type, member), .flag = AVRO_NO_FLAG                                      \
	}
#define COL_FLAG(type, fid, fname, fkind, fin, member, fflag)                                      \
	{                                                                                          \
		.id = (fid), .name = (fname), .kind = (fkind), .in = (fin),                        \
		.off = AT(type, member), .flag = AT(type, fflag)                                   \
	}

/* Key and value records of the int-keyed maps. */
#define PAIR(rec, key_id, value_id, type, vkind, member)                                           \
	static const struct avro_col rec[] = {                                                     \
		COL(type, key_id, "key", AVRO_I32, "rrr", true, field_id),                         \
		COL(type, value_id, "value", vkind, "rrr", true, member),                          \
	}
PAIR(k117_v118, 117, 118, struct metric, AVRO_I64, v);
PAIR(k119_v120, 119, 120, struct metric, AVRO_I64, v);
PAIR(k121_v122, 121, 122, struct metric, AVRO_I64, v);
PAIR(k138_v139, 138, 139, struct metric, AVRO_I64, v);
PAIR(k126_v127, 126, 127, struct bound, AVRO_BYTES, b);
PAIR(k129_v130, 129, 130, struct bound, AVRO_BYTES, b);

#define MAP(fid, fname, member, pair)                                                              \
	{                                                                                          \
		.id = (fid), .name = (fname), .kind = AVRO_LIST, .in = "ooo",                      \
		.off = AT(struct content_file, member),                                            \
		.flag = AT(struct content_file, n_##member), .sub = (pair),                        \
		.n_sub = ARRAY_SIZE(pair), .rec = #pair, .elem = AVRO_RECORD,                      \
		.elem_size = sizeof *((struct content_file *)0)->member, .map = true               \
	}
#define LIST(fid, fname, fin, member, ekind, eid)                                                  \
	{                                                                                          \
		.id = (fid), .name = (fname), .kind = AVRO_LIST, .in = (fin),                      \
		.off = AT(struct content_file, member),                                            \
		.flag = AT(struct content_file, n_##member), .elem = (ekind),                      \
		.elem_size = sizeof *((struct content_file *)0)->member, .elem_id = (eid)          \
	}
#define FILE_COL(fid, fname, fkind, fin, fmust, member)                                            \
	COL(struct content_file, fid, fname, fkind, fin, fmust, member)

#define PARTITION_AT 3 /* index of the partition column below */
/* block_size_in_bytes is required in version 1 and means nothing; 64 MiB is what all write. */
#define BLOCK_SIZE 67108864

_Static_assert(sizeof(enum content) == 4, "content is decoded as an int");
_Static_assert(sizeof(enum entry_status) == 4, "status is decoded as an int");
_Static_assert(sizeof(enum manifest_content) == 4, "content is decoded as an int");

static const struct avro_col data_file[] = {
	FILE_COL(134, "content", AVRO_I32, "-rr", false, content),
	FILE_COL(100, "file_path", AVRO_STR, "rrr", true, path),
	FILE_COL(101, "file_format", AVRO_STR, "rrr", true, format),
	{.id = 102,
	 .name = "partition",
	 .kind = AVRO_TUPLE,
	 .in = "rrr",
	 .rec = "r102",
	 .off = AT(struct content_file, partition),
	 .flag = AVRO_NO_FLAG,
	 .must = true},
	FILE_COL(103, "record_count", AVRO_I64, "rrr", true, record_count),
	FILE_COL(104, "file_size_in_bytes", AVRO_I64, "rrr", true, file_size),
	{.id = 105,
	 .name = "block_size_in_bytes",
	 .kind = AVRO_CONST,
	 .in = "r--",
	 .off = BLOCK_SIZE,
	 .flag = AVRO_NO_FLAG},
	MAP(108, "column_sizes", column_sizes, k117_v118),
	MAP(109, "value_counts", value_counts, k119_v120),
	MAP(110, "null_value_counts", null_counts, k121_v122),
	MAP(137, "nan_value_counts", nan_counts, k138_v139),
	MAP(125, "lower_bounds", lower, k126_v127),
	MAP(128, "upper_bounds", upper, k129_v130),
	COL_FLAG(struct content_file, 131, "key_metadata", AVRO_BYTES, "ooo", key_metadata,
		 has_key_metadata),
	LIST(132, "split_offsets", "ooo", split_offsets, AVRO_I64, 133),
	LIST(135, "equality_ids", "-oo", equality_ids, AVRO_I32, 136),
	FILE_COL(140, "sort_order_id", AVRO_I32, "ooo", false, sort_order_id),
	FILE_COL(142, "first_row_id", AVRO_I64, "--o", false, first_row_id),
	FILE_COL(143, "referenced_data_file", AVRO_STR, "-oo", false, referenced_data_file),
	FILE_COL(144, "content_offset", AVRO_I64, "--o", false, content_offset),
	FILE_COL(145, "content_size_in_bytes", AVRO_I64, "--o", false, content_size),
};

#define DATA_FILE_AT 4 /* index of the data_file column below */
#define ENTRY_COL(fid, fname, fkind, fin, fmust, member)                                           \
	COL(struct manifest_entry, fid, fname, fkind, fin, fmust, member)

static const struct avro_col entry[] = {
	ENTRY_COL(0, "status", AVRO_I32, "rrr", true, status),
	ENTRY_COL(1, "snapshot_id", AVRO_I64, "roo", false, snapshot_id),
	ENTRY_COL(3, "sequence_number", AVRO_I64, "-oo", false, seq),
	ENTRY_COL(4, "file_sequence_number", AVRO_I64, "-oo", false, file_seq),
	{.id = 2,
	 .name = "data_file",
	 .kind = AVRO_RECORD,
	 .in = "rrr",
	 .rec = "r2",
	 .must = true,
	 .off = AT(struct manifest_entry, file),
	 .flag = AVRO_NO_FLAG,
	 .sub = data_file,
	 .n_sub = ARRAY_SIZE(data_file)},
};

bool manifest_cols_entry(const struct field *partition, size_t n, struct arena *a,
			 struct manifest_cols *ret_cols, struct type **ret_types)
{
	struct avro_col *top = arena_alloc(a, sizeof entry);
	struct avro_col *file = arena_alloc(a, sizeof data_file);
	struct avro_col *tuple = arena_calloc(a, n, sizeof *tuple);
	struct type *types = arena_calloc(a, n, sizeof *types);
	if (!top || !file || !tuple || !types)
		return false;
	memcpy(top, entry, sizeof entry);
	memcpy(file, data_file, sizeof data_file);
	for (size_t i = 0; i < n; i++) {
		/* Only a void transform has such a source, and then all is null; nested types would
		 * keep pointers into the caller's memory. */
		if (value_has_order(partition[i].type))
			types[i] = *partition[i].type;
		else
			types[i] = (struct type){.kind = TYPE_UNKNOWN};
		tuple[i] = (struct avro_col){
			.id = partition[i].id,
			.name = "partition",
			.kind = AVRO_VALUE,
			.in = "ooo",
			.off = i * sizeof(struct value),
			.flag = AVRO_NO_FLAG,
			.type = &types[i],
			.label = partition[i].name,
		};
	}
	file[PARTITION_AT].sub = tuple;
	file[PARTITION_AT].n_sub = n;
	/* An unpartitioned tuple has nothing that could be missed. */
	file[PARTITION_AT].must = n > 0;
	top[DATA_FILE_AT].sub = file;
	*ret_cols = (struct manifest_cols){top, ARRAY_SIZE(entry)};
	if (ret_types)
		*ret_types = types;
	return true;
}

#define SUMMARY_COL(fid, fname, fkind, fin, fmust, member)                                         \
	COL(struct partition_summary, fid, fname, fkind, fin, fmust, member)
static const struct avro_col summary[] = {
	SUMMARY_COL(509, "contains_null", AVRO_BOOL, "rrr", true, contains_null),
	COL_FLAG(struct partition_summary, 518, "contains_nan", AVRO_BOOL, "ooo", contains_nan,
		 has_contains_nan),
	SUMMARY_COL(510, "lower_bound", AVRO_BYTES, "ooo", false, lower),
	SUMMARY_COL(511, "upper_bound", AVRO_BYTES, "ooo", false, upper),
};

#define ROW_COL(fid, fname, fkind, fin, fmust, member)                                             \
	COL(struct manifest_file, fid, fname, fkind, fin, fmust, member)
#define ROW_PATH ROW_COL(500, "manifest_path", AVRO_STR, "rrr", true, path)
#define ROW_LENGTH ROW_COL(501, "manifest_length", AVRO_I64, "rrr", true, length)
#define ROW_SPEC ROW_COL(502, "partition_spec_id", AVRO_I32, "rrr", true, spec_id)
#define ROW_SNAPSHOT ROW_COL(503, "added_snapshot_id", AVRO_I64, "rrr", true, added_snapshot_id)
/* A group of counts shares one flag; the reader of lists clears it when only some are there. */
#define ROW_COUNT(fid, fname, fkind, member, fflag)                                                \
	COL_FLAG(struct manifest_file, fid, fname, fkind, "orr", member, fflag)
#define ROW_ADDED ROW_COUNT(504, "added_files_count", AVRO_I32, added_files, has_file_counts)
#define ROW_EXISTING                                                                               \
	ROW_COUNT(505, "existing_files_count", AVRO_I32, existing_files, has_file_counts)
#define ROW_DELETED ROW_COUNT(506, "deleted_files_count", AVRO_I32, deleted_files, has_file_counts)
#define ROW_ADDED_ROWS ROW_COUNT(512, "added_rows_count", AVRO_I64, added_rows, has_row_counts)
#define ROW_EXISTING_ROWS                                                                          \
	ROW_COUNT(513, "existing_rows_count", AVRO_I64, existing_rows, has_row_counts)
#define ROW_DELETED_ROWS                                                                           \
	ROW_COUNT(514, "deleted_rows_count", AVRO_I64, deleted_rows, has_row_counts)
#define ROW_PARTITIONS                                                                             \
	{                                                                                          \
		.id = 507, .name = "partitions", .kind = AVRO_LIST, .in = "ooo",                   \
		.off = AT(struct manifest_file, partitions),                                       \
		.flag = AT(struct manifest_file, n_partitions), .sub = summary,                    \
		.n_sub = ARRAY_SIZE(summary), .rec = "r508", .elem = AVRO_RECORD,                  \
		.elem_size = sizeof(struct partition_summary), .elem_id = 508, .keep_empty = true  \
	}
#define ROW_KEY                                                                                    \
	COL_FLAG(struct manifest_file, 519, "key_metadata", AVRO_BYTES, "ooo", key_metadata,       \
		 has_key_metadata)

static const struct avro_col rows_v1[] = {
	ROW_PATH,       ROW_LENGTH,        ROW_SPEC,         ROW_SNAPSHOT,
	ROW_ADDED,      ROW_EXISTING,      ROW_DELETED,      ROW_PARTITIONS,
	ROW_ADDED_ROWS, ROW_EXISTING_ROWS, ROW_DELETED_ROWS, ROW_KEY,
};
static const struct avro_col rows[] = {
	ROW_PATH,
	ROW_LENGTH,
	ROW_SPEC,
	ROW_COL(517, "content", AVRO_I32, "-rr", false, content),
	ROW_COL(515, "sequence_number", AVRO_I64, "-rr", false, seq),
	ROW_COL(516, "min_sequence_number", AVRO_I64, "-rr", false, min_seq),
	ROW_SNAPSHOT,
	ROW_ADDED,
	ROW_EXISTING,
	ROW_DELETED,
	ROW_ADDED_ROWS,
	ROW_EXISTING_ROWS,
	ROW_DELETED_ROWS,
	ROW_PARTITIONS,
	ROW_KEY,
	ROW_COL(520, "first_row_id", AVRO_I64, "--o", false, first_row_id),
};

struct manifest_cols manifest_cols_list(int version)
{
	return version == 1 ? (struct manifest_cols){rows_v1, ARRAY_SIZE(rows_v1)}
			    : (struct manifest_cols){rows, ARRAY_SIZE(rows)};
}
