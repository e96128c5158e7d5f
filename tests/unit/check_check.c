/* What must hold of a staged data file, one breach at a time. */
#include "daemon/commit/intake/check.h"

#include "tests/unit/core_table.h"

static struct core_table *t;
static struct rpc_data_file f;
static struct rpc_partition_value seven = {.field_id = 1000, .has_value = true};
static struct rpc_metric metrics[2] = {{1, 10}, {2, 10}};
static struct rpc_bound bounds[2];
static int64_t offsets[3] = {4, 100, 200};
static const uint8_t long_bytes[8] = {1}, int_bytes[4] = {7};

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "\"write.data.path\":\"file:///elsewhere/\"");
	seven = (struct rpc_partition_value){
		.field_id = 1000, .has_value = true, .value = {int_bytes, 4}};
	metrics[0] = (struct rpc_metric){1, 10};
	metrics[1] = (struct rpc_metric){2, 10};
	bounds[0] = (struct rpc_bound){1, {long_bytes, 8}};
	bounds[1] = (struct rpc_bound){2, {int_bytes, 4}};
	offsets[0] = 4;
	offsets[1] = 100;
	offsets[2] = 200;
	f = (struct rpc_data_file){.path = STRV("file:///t/data/a.parquet"),
				   .format = STRV("PARQUET"),
				   .spec_id = 1,
				   .partition = &seven,
				   .n_partition = 1,
				   .record_count = 10,
				   .file_size = 1000,
				   .new_row_count = 10,
				   .column_sizes = metrics,
				   .n_column_sizes = 2,
				   .value_counts = metrics,
				   .n_value_counts = 2,
				   .null_counts = metrics,
				   .n_null_counts = 2,
				   .nan_counts = metrics,
				   .n_nan_counts = 2,
				   .lower_bounds = bounds,
				   .n_lower_bounds = 2,
				   .upper_bounds = bounds,
				   .n_upper_bounds = 2,
				   .split_offsets = offsets,
				   .n_split_offsets = 3};
}

static void down(void)
{
	ct_close(t);
}

#define EDIT(name, what)                                                                           \
	static void name(void)                                                                     \
	{                                                                                          \
		what;                                                                              \
	}

EDIT(nothing, (void)0)
EDIT(other_root, f.path = STRV("file:///elsewhere/x/a.parquet"))
EDIT(one_slash, f.path = STRV("file:/t/data/a.parquet"))
EDIT(no_scheme, f.path = STRV("/t/data/a.parquet"))
EDIT(many_slashes, f.path = STRV("file:////t/data/a.parquet"))
EDIT(empty_part, f.path = STRV("file:///t/data//a.parquet"))
EDIT(other_case, f.path = STRV("FILE:///t/data/a.parquet"))
EDIT(no_path, f.path = STRV(""))
EDIT(outside, f.path = STRV("file:///tt/data/a.parquet"))
EDIT(root_itself, f.path = STRV("file:///t/"))
EDIT(prefix_only, f.path = STRV("file:///elsewhere2/a.parquet"))
EDIT(other_scheme, f.path = STRV("s3://t/data/a.parquet"))
EDIT(dots, f.path = STRV("file:///t/data/../../x/a.parquet"))
EDIT(dots_at_end, f.path = STRV("file:///t/data/.."))
EDIT(one_dot, f.path = STRV("file:///t/./a.parquet"))
EDIT(dots_in_name, f.path = STRV("file:///t/data/..a.parquet"))
EDIT(format_case, f.format = STRV("orc"))
EDIT(format_other, f.format = STRV("CSV"))
EDIT(format_puffin, f.format = STRV("PUFFIN"))
EDIT(no_schema, f.schema_id = 7)
EDIT(no_spec, f.spec_id = 7)
EDIT(no_rows, f.record_count = f.new_row_count = 0)
EDIT(negative_rows, f.record_count = -1)
EDIT(no_bytes, f.file_size = 0)
EDIT(too_many_new, f.new_row_count = 11)
EDIT(too_few_new, f.new_row_count = 9)
EDIT(negative_new, f.new_row_count = -1)
EDIT(updated_without_ids, f.updated_row_count = 1)
EDIT(with_ids, f.has_row_ids = true; f.new_row_count = 3; f.updated_row_count = 7)
EDIT(with_ids_too_many, f.has_row_ids = true; f.new_row_count = 4; f.updated_row_count = 7)
EDIT(negative_updated, f.has_row_ids = true; f.updated_row_count = -1)
EDIT(most_updated, f.has_row_ids = true; f.updated_row_count = INT64_MAX)
EDIT(unpartitioned, f.spec_id = 0; f.n_partition = 0)
EDIT(tuple_missing, f.n_partition = 0)
EDIT(tuple_too_much, f.spec_id = 0)
EDIT(tuple_other_field, seven.field_id = 1001)
EDIT(tuple_null, seven.has_value = false)
EDIT(tuple_short, seven.value.n = 3)
EDIT(tuple_promoted, (seven.value = (struct bytes){long_bytes, 8}))
EDIT(size_unknown_column, metrics[1].field_id = 3)
EDIT(size_row_id, metrics[1].field_id = FIELD_ID_ROW_ID)
EDIT(size_negative, metrics[0].value = -1)
EDIT(size_twice, metrics[1].field_id = 1)
EDIT(only_values, metrics[1].field_id = 3; f.n_column_sizes = f.n_null_counts = f.n_nan_counts = 0)
EDIT(only_nulls, metrics[1].field_id = 3; f.n_column_sizes = f.n_value_counts = f.n_nan_counts = 0)
EDIT(only_nans, metrics[1].field_id = 3; f.n_column_sizes = f.n_value_counts = f.n_null_counts = 0)
EDIT(bound_unknown, bounds[1].field_id = 3)
EDIT(bound_short, bounds[0].value.n = 7)
EDIT(bound_twice, bounds[1] = bounds[0])
EDIT(bound_upper, bounds[1].field_id = 3; f.n_lower_bounds = 0)
EDIT(bound_row_id, bounds[0].field_id = FIELD_ID_ROW_ID)
EDIT(bound_row_id_short, bounds[1].field_id = FIELD_ID_LAST_UPDATED_SEQ)
EDIT(order_known, f.has_sort_order_id = true; f.sort_order_id = 0)
EDIT(order_unknown, f.has_sort_order_id = true; f.sort_order_id = 5)
EDIT(offset_negative, offsets[0] = -1)
EDIT(offset_beyond, offsets[2] = 1000)
EDIT(offset_equal, offsets[1] = 4)
EDIT(offset_falls, offsets[2] = 50)
EDIT(old_schema, f.schema_id = 1)
EDIT(encrypted, ct_edit(t, "\"properties\":{", "\"properties\":{\"encryption.key-id\":\"k\","))
EDIT(version_2, ct_close(t); ct_open(t, 2, ""); f.has_row_ids = true)
EDIT(version_2_plain, ct_close(t); ct_open(t, 2, ""))

static const struct {
	const char *name;
	void (*edit)(void);
	enum status want;
	const char *field;
} cases[] = {
	{"nothing", nothing, ST_OK, ""},
	{"other_root", other_root, ST_OK, ""},
	/* Other spellings of a good path: the same file would count twice. */
	{"one_slash", one_slash, ST_PATH_OUTSIDE, "path"},
	{"no_scheme", no_scheme, ST_PATH_OUTSIDE, "path"},
	{"many_slashes", many_slashes, ST_PATH_OUTSIDE, "path"},
	{"empty_part", empty_part, ST_PATH_OUTSIDE, "path"},
	{"other_case", other_case, ST_PATH_OUTSIDE, "path"},
	{"no_path", no_path, ST_BAD_REQUEST, "path"},
	{"outside", outside, ST_PATH_OUTSIDE, "path"},
	{"root_itself", root_itself, ST_PATH_OUTSIDE, "path"},
	{"prefix_only", prefix_only, ST_PATH_OUTSIDE, "path"},
	{"other_scheme", other_scheme, ST_PATH_OUTSIDE, "path"},
	{"dots", dots, ST_PATH_OUTSIDE, "path"},
	{"dots_at_end", dots_at_end, ST_PATH_OUTSIDE, "path"},
	{"one_dot", one_dot, ST_PATH_OUTSIDE, "path"},
	{"dots_in_name", dots_in_name, ST_OK, ""},
	{"format_case", format_case, ST_OK, ""},
	{"format_other", format_other, ST_UNSUPPORTED, "format"},
	{"format_puffin", format_puffin, ST_UNSUPPORTED, "format"},
	{"no_schema", no_schema, ST_SCHEMA_UNKNOWN, "schema_id"},
	{"no_spec", no_spec, ST_SPEC_UNKNOWN, "spec_id"},
	{"no_rows", no_rows, ST_BAD_REQUEST, "record_count"},
	{"negative_rows", negative_rows, ST_BAD_REQUEST, "record_count"},
	{"no_bytes", no_bytes, ST_BAD_REQUEST, "file_size"},
	{"too_many_new", too_many_new, ST_ROW_IDS, "new_row_count"},
	{"too_few_new", too_few_new, ST_ROW_IDS, "new_row_count"},
	{"negative_new", negative_new, ST_ROW_IDS, "new_row_count"},
	{"updated_without_ids", updated_without_ids, ST_ROW_IDS, "new_row_count"},
	{"with_ids", with_ids, ST_OK, ""},
	{"with_ids_too_many", with_ids_too_many, ST_ROW_IDS, "updated_row_count"},
	{"negative_updated", negative_updated, ST_ROW_IDS, "updated_row_count"},
	{"most_updated", most_updated, ST_ROW_IDS, "updated_row_count"},
	{"unpartitioned", unpartitioned, ST_OK, ""},
	{"tuple_missing", tuple_missing, ST_TUPLE_MISMATCH, "partition"},
	{"tuple_too_much", tuple_too_much, ST_TUPLE_MISMATCH, "partition"},
	{"tuple_other_field", tuple_other_field, ST_TUPLE_MISMATCH, "partition[0].field_id"},
	{"tuple_null", tuple_null, ST_OK, ""},
	{"tuple_short", tuple_short, ST_TUPLE_MISMATCH, "partition[0]"},
	{"tuple_promoted", tuple_promoted, ST_TUPLE_MISMATCH, "partition[0]"},
	{"size_unknown_column", size_unknown_column, ST_METRICS_INVALID, "column_sizes[1]"},
	{"size_row_id", size_row_id, ST_OK, ""},
	{"size_negative", size_negative, ST_METRICS_INVALID, "column_sizes[0]"},
	{"size_twice", size_twice, ST_METRICS_INVALID, "column_sizes[1]"},
	{"only_values", only_values, ST_METRICS_INVALID, "value_counts[1]"},
	{"only_nulls", only_nulls, ST_METRICS_INVALID, "null_counts[1]"},
	{"only_nans", only_nans, ST_METRICS_INVALID, "nan_counts[1]"},
	{"bound_unknown", bound_unknown, ST_METRICS_INVALID, "lower_bounds[1]"},
	{"bound_short", bound_short, ST_METRICS_INVALID, "lower_bounds[0]"},
	{"bound_twice", bound_twice, ST_METRICS_INVALID, "lower_bounds[1]"},
	{"bound_upper", bound_upper, ST_METRICS_INVALID, "upper_bounds[1]"},
	{"bound_row_id", bound_row_id, ST_OK, ""},
	{"bound_row_id_short", bound_row_id_short, ST_METRICS_INVALID, "lower_bounds[1]"},
	{"order_known", order_known, ST_OK, ""},
	{"order_unknown", order_unknown, ST_BAD_REQUEST, "sort_order_id"},
	{"offset_negative", offset_negative, ST_BAD_REQUEST, "split_offsets"},
	{"offset_beyond", offset_beyond, ST_BAD_REQUEST, "split_offsets"},
	{"offset_equal", offset_equal, ST_BAD_REQUEST, "split_offsets"},
	{"offset_falls", offset_falls, ST_BAD_REQUEST, "split_offsets"},
	/* The file's own schema counts for its metrics: column 2 is not in schema 1. */
	{"old_schema", old_schema, ST_METRICS_INVALID, "column_sizes[1]"},
	{"encrypted", encrypted, ST_ENCRYPTED, ""},
	{"version_2", version_2, ST_ROW_IDS, "has_row_ids"},
	{"version_2_plain", version_2_plain, ST_OK, ""},
};

START_TEST(breach)
{
	struct content_file out;
	struct err err = {0};
	memset(&out, 0xaa, sizeof out);
	struct content_file before = out;
	cases[_i].edit();
	enum status st = check_data_file(t->meta, &f, &t->arena, &out, &err);
	ck_assert_msg(st == cases[_i].want, "%s: %s %s %s", cases[_i].name, status_info(st)->name,
		      err.field, err.msg);
	if (st == ST_OK)
		return;
	ck_assert_msg(strncmp(err.field, cases[_i].field, strlen(cases[_i].field)) == 0,
		      "%s: field %s", cases[_i].name, err.field);
	ck_assert_mem_eq(&out, &before, sizeof out);
}
END_TEST

/* Everything is taken over, and nothing of the request is still needed. */
START_TEST(taken_over)
{
	struct content_file out;
	struct err err = {0};
	char path[] = "file:///t/data/a.parquet", format[] = "parquet";
	uint8_t value[4] = {7}, low[8] = {1};
	f.path = strv_of(path);
	f.format = strv_of(format);
	seven.value.p = value;
	bounds[0].value.p = low;
	f.has_sort_order_id = true;
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	memset(path, 0, sizeof path);
	memset(format, 0, sizeof format);
	memset(value, 0, sizeof value);
	memset(low, 0, sizeof low);
	memset(metrics, 0, sizeof metrics);
	memset(offsets, 0, sizeof offsets);
	memset(bounds, 0, sizeof bounds);
	ck_assert_int_eq(out.content, CONTENT_DATA);
	ck_assert(strv_eq(out.path, STRV("file:///t/data/a.parquet")));
	ck_assert(strv_eq(out.format, STRV("PARQUET"))); /* case BC-121 */
	ck_assert_int_eq(out.spec_id, 1);
	ck_assert_uint_eq(out.partition.n, 1);
	ck_assert(bytes_eq(out.partition.v[0].b, (struct bytes){int_bytes, 4}));
	ck_assert_int_eq(out.record_count, 10);
	ck_assert_int_eq(out.file_size, 1000);
	ck_assert_int_eq(out.sort_order_id, 0);
	ck_assert_int_eq(out.first_row_id, ROW_ID_NONE);
	ck_assert_uint_eq(out.n_column_sizes, 2);
	ck_assert_int_eq(out.column_sizes[1].field_id, 2);
	ck_assert_int_eq(out.null_counts[1].v, 10);
	ck_assert_uint_eq(out.n_lower, 2);
	ck_assert(bytes_eq(out.lower[0].b, (struct bytes){long_bytes, 8}));
	ck_assert_uint_eq(out.n_split_offsets, 3);
	ck_assert_int_eq(out.split_offsets[2], 200);
	ck_assert_int_eq(content_file_check(&out, 3, ST_INTERNAL, &err), ST_OK);
	/* Without an order there is none. */
	down();
	up();
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	ck_assert_int_eq(out.sort_order_id, SORT_ORDER_NONE);
}
END_TEST

/* A void field takes null only. */
START_TEST(void_field)
{
	struct content_file out;
	struct err err = {0};
	ct_edit(t, "\"transform\":\"identity\"", "\"transform\":\"void\"");
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_TUPLE_MISMATCH);
	seven.has_value = false;
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	ck_assert(out.partition.v[0].null);
	/* Values that the transform never gives. */
	seven.has_value = true;
	ct_edit(t, "\"transform\":\"void\"", "\"transform\":\"bucket[7]\"");
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_TUPLE_MISMATCH);
	ck_assert_str_eq(err.field, "partition[0]");
	ct_edit(t, "\"transform\":\"bucket[7]\"", "\"transform\":\"truncate[4]\"");
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_TUPLE_MISMATCH);
	ct_edit(t, "\"transform\":\"truncate[4]\"", "\"transform\":\"bucket[8]\"");
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	ct_edit(t, "\"transform\":\"bucket[8]\"", "\"transform\":\"void\"");
	seven.has_value = false;
	/* A transform that we do not know cannot be checked. */
	ct_edit(t, "\"transform\":\"void\"", "\"transform\":\"zorder\"");
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_UNSUPPORTED);
}
END_TEST

/* A file of an older schema brings the narrower value of a column that was promoted since. */
START_TEST(promoted_field)
{
	struct content_file out;
	struct err err = {0};
	f.schema_id = 2;
	f.n_column_sizes = f.n_value_counts = f.n_null_counts = f.n_nan_counts = 0;
	f.n_lower_bounds = f.n_upper_bounds = 0;
	ct_edit(t, "\"schemas\":[",
		"\"schemas\":[{\"type\":\"struct\",\"schema-id\":2,\"fields\":["
		"{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"},"
		"{\"id\":2,\"name\":\"p\",\"required\":false,\"type\":\"int\"}]},");
	ct_edit(t, "\"required\":false,\"type\":\"int\"}]},{\"type\":\"struct\",\"schema-id\":1",
		"\"required\":false,\"type\":\"long\"}]},{\"type\":\"struct\",\"schema-id\":1");
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	ck_assert_uint_eq(out.partition.v[0].b.n, 8);
	ck_assert_int_eq((int64_t)get_u64le(out.partition.v[0].b.p), 7);
	/* Only what the file's own schema has: eight bytes are no int, four no long. */
	seven.value = (struct bytes){long_bytes, 8};
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_TUPLE_MISMATCH);
	f.schema_id = 0;
	UNIT_OK(check_data_file(t->meta, &f, &t->arena, &out, &err), &err);
	seven.value = (struct bytes){int_bytes, 4};
	UNIT_STATUS(check_data_file(t->meta, &f, &t->arena, &out, &err), ST_TUPLE_MISMATCH);
}
END_TEST

START_TEST(memory)
{
	struct err err = {0};
	for (size_t limit = 0;; limit += 16) {
		struct content_file out;
		struct arena a;
		arena_init(&a, limit);
		enum status st = check_data_file(t->meta, &f, &a, &out, &err);
		arena_fini(&a);
		if (st == ST_OK)
			break;
		ck_assert_msg(st == ST_TOO_LARGE || st == ST_LIMIT, "%s", status_info(st)->name);
		ck_assert(limit < 65536);
	}
}
END_TEST

/* ------------------------------------------------------------------ position deletes */

static struct rpc_delete_file pd;
static struct rpc_metric pd_metric;
static struct rpc_bound pd_bound;

static void pd_fine(void)
{
	static uint8_t zero[8];
	pd_metric = (struct rpc_metric){FIELD_ID_DELETE_POS, 3};
	pd_bound = (struct rpc_bound){FIELD_ID_DELETE_POS, {zero, 8}};
	pd = (struct rpc_delete_file){.path = STRV("file:///t/data/p.parquet"),
				      .format = STRV("parquet"),
				      .spec_id = f.spec_id,
				      .partition = f.partition,
				      .n_partition = f.n_partition,
				      .record_count = 3,
				      .file_size = 50,
				      .column_sizes = &pd_metric,
				      .n_column_sizes = 1,
				      .lower_bounds = &pd_bound,
				      .n_lower_bounds = 1};
}

static void pd_is(enum status want, const char *field)
{
	struct content_file out;
	struct err err = {0};
	enum status st = check_delete_file(t->meta, &pd, &t->arena, &out, &err);
	ck_assert_msg(st == want, "%s, not %s: %s %s", status_info(st)->name,
		      status_info(want)->name, err.field, err.msg);
	ck_assert_msg(!strncmp(err.field, field, strlen(field)), "field %s", err.field);
	pd_fine();
}

START_TEST(delete_file)
{
	struct content_file out;
	struct err err = {0};
	struct strv name = STRV("file:///t/data/a.parquet");
	pd_fine();
	pd.data_files = &name;
	pd.n_data_files = 1;
	UNIT_OK(check_delete_file(t->meta, &pd, &t->arena, &out, &err), &err);
	ck_assert_int_eq(out.content, CONTENT_POSITION_DELETES);
	ck_assert_int_eq(out.spec_id, 1);
	ck_assert_int_eq(out.record_count, 3);
	ck_assert_int_eq(out.file_size, 50);
	ck_assert(bytes_eq(out.partition.v[0].b, (struct bytes){int_bytes, 4}));
	ck_assert(strv_eq(out.referenced_data_file, name));
	ck_assert_uint_eq(out.n_column_sizes, 1);
	ck_assert_int_eq(out.lower[0].field_id, FIELD_ID_DELETE_POS);
	ck_assert(!content_file_is_dv(&out));
	ck_assert_int_eq(content_file_check(&out, 2, ST_INTERNAL, &err), ST_OK);
	pd_fine();
	pd.format = STRV("PUFFIN");
	pd_is(ST_UNSUPPORTED, "format");
	pd.path = STRV("file:///nowhere/p.parquet");
	pd_is(ST_PATH_OUTSIDE, "path");
	pd.record_count = 0;
	pd_is(ST_BAD_REQUEST, "record_count");
	pd.file_size = 0;
	pd_is(ST_BAD_REQUEST, "file_size");
	pd.n_partition = 0;
	pd_is(ST_TUPLE_MISMATCH, "partition");
	pd_metric.field_id = 1;
	pd_is(ST_METRICS_INVALID, "column_sizes[0]");
	pd_bound.field_id = FIELD_ID_DELETE_ROW;
	pd_is(ST_METRICS_INVALID, "lower_bounds[0]");
	pd_bound.value.n = 4;
	pd_is(ST_METRICS_INVALID, "lower_bounds[0]");
	pd_bound = (struct rpc_bound){FIELD_ID_DELETE_FILE_PATH, strv_bytes(STRV("\xff\xff"))};
	pd_is(ST_METRICS_INVALID, "lower_bounds[0]");
	encrypted();
	pd_is(ST_ENCRYPTED, "");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("check");
	TCase *c = tcase_create("check");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, breach, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(c, taken_over);
	tcase_add_test(c, void_field);
	tcase_add_test(c, promoted_field);
	tcase_add_test(c, memory);
	tcase_add_test(c, delete_file);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
