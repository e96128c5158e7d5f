/* Metrics of a staged file, by type of column; the expected verdicts are those of the spec's "Data
 * File Fields" and Appendix D. */
#include "daemon/commit/intake/colmetrics.h"

#include "tests/unit/golden_values.h"

static struct arena a;
static struct schema s;

static void setup(void)
{
	static const char *const types[] = {
		"boolean", "int",         "long",         "float",        "double",    "date",
		"time",    "timestamptz", "string",       "uuid",         "fixed[33]", "binary",
		"unknown", "variant",     "decimal(9,2)", "timestamp_ns", "geometry",  "geography"};
	struct err err = {0};
	struct jdoc *d = NULL;
	struct buf b;
	arena_init(&a, 1 << 20);
	buf_init(&b, 65536);
	buf_puts(&b, "{\"type\":\"struct\",\"fields\":[");
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		buf_printf(&b, "{\"id\":%zu,\"name\":\"%s\",\"required\":false,\"type\":\"%s\"},",
			   i + 1, types[i], types[i]);
	buf_puts(&b, "{\"id\":30,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\","
		     "\"element-id\":31,\"element\":\"int\",\"element-required\":false}}]}");
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &d, &err), &err);
	UNIT_OK(schema_parse(jdoc_root(d), ST_CORRUPT, &a, &s, &err), &err);
	jdoc_free(d);
	buf_fini(&b);
}

static void teardown(void)
{
	arena_fini(&a);
}

static struct bytes raw(const char *hex)
{
	struct bytes b;
	struct buf buf;
	buf_init(&buf, 4096);
	golden_hex(hex, &buf);
	ck_assert(arena_bytes(&a, buf_bytes(&buf), &b));
	buf_fini(&buf);
	return b;
}

static int32_t column(const char *name)
{
	const struct schema_node *n = schema_find_name(&s, strv_of(name));
	ck_assert(n);
	return n->id;
}

#define F0 "0000000000000000" /* 0.0 */
#define F1 "000000000000f03f" /* 1.0 */
#define F2 "0000000000000040" /* 2.0 */
#define NAN8 "000000000000f87f"

/* NULL: that bound is not there. The verdict is that on the pair. */
static const struct {
	const char *column, *lower, *upper;
	bool ok;
} pairs[] = {
	/* case BC-108: a boolean is one byte, infinities are bounds, NaN is none. */
	{"boolean", "00", "01", true},
	{"boolean", "01", "00", false},
	{"boolean", "", NULL, false},
	{"boolean", "0000", NULL, false},
	{"double", "000000000000f0ff", "000000000000f07f", true},
	{"double", NAN8, NULL, false},
	{"double", NULL, NAN8, false},
	{"double", NULL, "010000000000f0ff", false},
	{"double", F2, F1, false},
	{"double", "0000000000000080", F0, true},
	{"float", "0000c07f", NULL, false},
	{"float", "000080ff", "0000807f", true},
	/* case BC-120: lower above upper, by the order of the type. */
	{"int", "09000000", "03000000", false},
	{"int", "03000000", "09000000", true},
	{"int", "ffffffff", "00000000", true},
	{"int", "00000000", "ffffffff", false},
	{"int", "0300000000000000", NULL, false},
	{"long", "03000000", NULL, false},
	{"date", "ffffffff", "01000000", true},
	{"time", F0, "ff5fd71d14000000", true},
	{"time", NULL, "0060d71d14000000", false},
	{"timestamptz", "ffffffffffffffff", F0, true},
	{"timestamp_ns", F0, "ffffffffffffffff", false},
	{"string", "61", "62", true},
	{"string", "62", "61", false},
	{"string", "7f", "c280", true},
	{"string", "ff", NULL, false},
	{"string", "c3", NULL, false},
	{"string", "", "", true},
	{"binary", "7f", "80", true},
	{"binary", "80", "7f", false},
	/* case BC-106 */
	{"decimal(9,2)", "80", "0080", true},
	{"decimal(9,2)", "0080", "80", false},
	{"decimal(9,2)", "", NULL, false},
	{"decimal(9,2)", "ffffffffffffffffffffffffffffffffffffff80",
	 "00000000000000000000000000000000000001", true},
	{"boolean", "02", "01", true},
	{"decimal(9,2)", "0100000000", NULL, false},
	/* Cut, as binary is. */
	{"fixed[33]", "00112233445566778899aabbccddeeff", "00112233445566778899aabbccddef", true},
	{"fixed[33]", "", NULL, false},
	{"fixed[33]", "0000000000000000000000000000000000000000000000000000000000000000000000",
	 NULL, false},
	{"uuid", "00", NULL, false},
	{"unknown", "", NULL, false},
	{"l", "00000000", NULL, false},
	{"l.element", "00000000", "00000000", true},
	{"variant", "0100000000", NULL, true},
	{"variant", "", NULL, false},
	{"variant", "0200000000", NULL, false},
	/* Points of two, three or four coordinates. */
	{"geometry", F0 F1, F1 F2, true},
	{"geometry", F1 F1, F0 F2, false},
	{"geometry", F0 F2, F1 F1, false},
	{"geometry", F0 F0 NAN8 F0, F1 F1 NAN8 F1, true},
	{"geometry", F0 F0 F2, F1 F1 F1, false},
	{"geometry", NAN8 F0, NULL, false},
	{"geometry", F0, NULL, false},
	/* A geography's x may be inverted, its y not. case BC-120 */
	{"geography", F1 F1, F0 F2, true},
	{"geography", F0 F2, F1 F1, false},
};

START_TEST(bounds)
{
	struct err err = {0};
	const char *lower = pairs[_i].lower, *upper = pairs[_i].upper;
	int32_t id = column(pairs[_i].column);
	struct rpc_bound lo = {.field_id = id, .value = raw(lower ? lower : "")},
			 hi = {.field_id = id, .value = raw(upper ? upper : "")};
	struct rpc_data_file in = {.lower_bounds = &lo,
				   .n_lower_bounds = lower ? 1 : 0,
				   .upper_bounds = &hi,
				   .n_upper_bounds = upper ? 1 : 0};
	struct content_file f = content_file_empty();
	enum status st = colmetrics_check(&s, &in, &a, &f, &err);
	ck_assert_msg(st == (pairs[_i].ok ? ST_OK : ST_METRICS_INVALID), "%s %s %s: %s",
		      pairs[_i].column, lower, upper, err.msg);
	if (st != ST_OK) {
		ck_assert(strstr(err.field, "_bounds[0]") != NULL);
		return;
	}
	ck_assert_uint_eq(f.n_lower, in.n_lower_bounds);
	ck_assert_uint_eq(f.n_upper, in.n_upper_bounds);
	/* Whatever the worker wrote, the stored form is the canonical one. */
	const struct type *t = schema_find(&s, id)->type;
	struct value v;
	if (lower && value_valid(t, lo.value)) {
		UNIT_OK(value_read(t, lo.value, false, ST_CORRUPT, &a, &v, &err), &err);
		lo.value = v.b;
	}
	if (upper && value_valid(t, hi.value)) {
		UNIT_OK(value_read(t, hi.value, false, ST_CORRUPT, &a, &v, &err), &err);
		hi.value = v.b;
	}
	ck_assert(!lower || bytes_eq(f.lower[0].b, lo.value));
	ck_assert(!upper || bytes_eq(f.upper[0].b, hi.value));
	ck_assert(_i < 2 || strcmp(pairs[_i].column, "boolean") != 0 || f.lower[0].b.p[0] == 1);
}
END_TEST

/* Bounds of a uuid stay only where all orders of uuids agree on them; other columns are not
 * touched. */
START_TEST(uuids)
{
	static const struct {
		const char *lower, *upper;
		bool stay;
	} rows[] = {
		{"10000000000000008000000000000000", "7f000000000000008000000000000000", true},
		{"80000000000000008000000000000000", "ff000000000000008000000000000000", true},
		{"10000000000000008000000000000000", "ff000000000000008000000000000000", false},
		{"ff000000000000008000000000000000", "10000000000000008000000000000000", false},
		{"10000000000000000000000000000000", "10000000000000008000000000000000", false},
		{"10000000000000008000000000000000", NULL, false},
		{NULL, "10000000000000008000000000000000", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct rpc_bound lo[3], hi[3];
		size_t n_lo = 0, n_hi = 0;
		lo[n_lo++] = (struct rpc_bound){column("int"), raw("01000000")};
		if (rows[i].lower)
			lo[n_lo++] = (struct rpc_bound){column("uuid"), raw(rows[i].lower)};
		hi[n_hi++] = (struct rpc_bound){column("binary"), raw("ff")};
		if (rows[i].upper)
			hi[n_hi++] = (struct rpc_bound){column("uuid"), raw(rows[i].upper)};
		struct rpc_data_file in = {.lower_bounds = lo,
					   .n_lower_bounds = n_lo,
					   .upper_bounds = hi,
					   .n_upper_bounds = n_hi};
		struct content_file f = content_file_empty();
		UNIT_OK(colmetrics_check(&s, &in, &a, &f, &err), &err);
		ck_assert_uint_eq(f.n_lower, rows[i].stay ? 2 : 1);
		ck_assert_uint_eq(f.n_upper, rows[i].stay ? 2 : 1);
		ck_assert_int_eq(f.lower[0].field_id, column("int"));
		/* By field id, however they came. */
		ck_assert_int_eq(f.upper[f.n_upper - 1].field_id, column("binary"));
	}
}
END_TEST

/* Row lineage columns have metrics; other reserved and unknown ids are none of the table's. case
 * BC-091 */
START_TEST(columns)
{
	static const int32_t ids[] = {
		FIELD_ID_ROW_ID, FIELD_ID_LAST_UPDATED_SEQ, 2, 30, 31, 2147483546, 999, 0, -1};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct err err = {0};
		struct content_file f = content_file_empty();
		struct rpc_metric m = {ids[i], 3};
		struct rpc_data_file in = {.value_counts = &m, .n_value_counts = 1};
		enum status st = colmetrics_check(&s, &in, &a, &f, &err);
		ck_assert_msg(st == (i < 5 ? ST_OK : ST_METRICS_INVALID), "%d", (int)ids[i]);
	}
	struct err err = {0};
	struct content_file f = content_file_empty();
	struct rpc_bound lo = {FIELD_ID_ROW_ID, raw(F1)}, hi = {FIELD_ID_ROW_ID, raw(F0)};
	struct rpc_data_file in = {
		.lower_bounds = &lo, .n_lower_bounds = 1, .upper_bounds = &hi, .n_upper_bounds = 1};
	UNIT_STATUS(colmetrics_check(&s, &in, &a, &f, &err), ST_METRICS_INVALID);
	ck_assert_str_eq(err.field, "lower_bounds[0]");
}
END_TEST

START_TEST(counts)
{
	struct rpc_metric values[] = {{5, 10}, {2, 10}, {9, 3}},
			  nulls[] = {{2, 10}, {9, 3}, {4, 1}}, nans[] = {{5, 10}};
	struct rpc_data_file in = {.value_counts = values,
				   .n_value_counts = 3,
				   .null_counts = nulls,
				   .n_null_counts = 3,
				   .nan_counts = nans,
				   .n_nan_counts = 1};
	struct content_file f = content_file_empty();
	struct err err = {0};
	UNIT_OK(colmetrics_check(&s, &in, &a, &f, &err), &err);
	static const int32_t order[] = {2, 5, 9};
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(f.value_counts[i].field_id, order[i]);
	ck_assert_int_eq(f.null_counts[1].v, 1);
	nulls[1].value = 4;
	UNIT_STATUS(colmetrics_check(&s, &in, &a, &f, &err), ST_METRICS_INVALID);
	nulls[1].value = 3;
	nans[0].value = 11;
	UNIT_STATUS(colmetrics_check(&s, &in, &a, &f, &err), ST_METRICS_INVALID);
	ck_assert_str_eq(err.field, "nan_counts[0]");
	/* Twice, not side by side. */
	nans[0].value = 1;
	values[2].field_id = 5;
	UNIT_STATUS(colmetrics_check(&s, &in, &a, &f, &err), ST_METRICS_INVALID);
	ck_assert_str_eq(err.field, "value_counts[2]");
}
END_TEST

static Suite *suite(void)
{
	Suite *x = suite_create("colmetrics");
	TCase *t = tcase_create("colmetrics");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, bounds, 0, (int)ARRAY_SIZE(pairs));
	tcase_add_test(t, uuids);
	tcase_add_test(t, columns);
	tcase_add_test(t, counts);
	suite_add_tcase(x, t);
	return x;
}
UNIT_MAIN(suite)
