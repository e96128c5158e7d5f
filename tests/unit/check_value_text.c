#include "proto/iceberg/value_text.h"

#include <math.h>

#include "tests/unit/golden_values.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, 16 << 20);
}

static void teardown(void)
{
	arena_fini(&a);
}

static struct type *type(const char *text)
{
	return golden_type(&a, strv_of(text));
}

static struct jdoc *doc(const char *text)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_CORRUPT, &d, &err), &err);
	return d;
}

static void json_of(const struct type *t, const struct value *v, struct buf *b)
{
	struct jwrite w;
	buf_init(b, 4096);
	jwrite_init(&w, b);
	value_text_write(&w, t, v);
	ck_assert(buf_ok(b));
}

/* Bytes and text of every type against another implementation, both ways. */
START_TEST(golden)
{
	struct jdoc *d = golden_load("tests/golden/values.json");
	const struct jval *rows = jval_get(jdoc_root(d), "values");
	ck_assert_uint_gt(jval_count(rows), 70);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i), *json = jval_get(row, "json");
		struct strv name = golden_str(row, "type"), hex = golden_str(row, "bytes"), want,
			    got;
		const struct type *t = golden_type(&a, name);
		struct value v = golden_value(&a, row, t), back;
		golden_bytes(v.b, hex, type_name(t).z);
		struct err err = {0};
		UNIT_OK(value_read(t, v.b, false, ST_CORRUPT, &a, &back, &err), &err);
		ck_assert(value_eq(&v, &back));
		struct buf b;
		json_of(t, &v, &b);
		struct jdoc *again = NULL;
		UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &again, &err), &err);
		if (jval_as_str(json, &want)) {
			ck_assert(jval_as_str(jdoc_root(again), &got));
			ck_assert_msg(strv_eq(got, want), "%.*s: %.*s", STRV_ARG(got),
				      STRV_ARG(want));
		} else {
			UNIT_OK(value_text_parse(t, jdoc_root(again), ST_CORRUPT, &a, &back, &err),
				&err);
			ck_assert_msg(value_eq(&v, &back), "%.*s", STRV_ARG(buf_strv(&b)));
		}
		jdoc_free(again);
		buf_fini(&b);
	}
	jdoc_free(d);
}
END_TEST

/* Bounds that the reference implementation cut, and what they promise. */
static void golden_bounds(const struct jval *rows, size_t least)
{
	ck_assert_uint_gt(jval_count(rows), least);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		const struct type *t = golden_type(&a, golden_str(row, "type"));
		struct buf b;
		int64_t length;
		struct value upper = VALUE_NULL;
		bool has = false;
		buf_init(&b, 1000);
		golden_hex(golden_str(row, "bytes").p, &b);
		ck_assert(jval_as_i64(jval_get(row, "length"), &length));
		struct value v = {.b = buf_bytes(&b)};
		golden_bytes(value_cut_lower(t, &v, (size_t)length).b, golden_str(row, "lower"),
			     "lower");
		ck_assert(value_cut_upper(t, &v, (size_t)length, &a, &upper, &has));
		ck_assert(has == !jval_is_null(jval_get(row, "upper")));
		if (has)
			golden_bytes(upper.b, golden_str(row, "upper"), "upper");
		struct value lower = value_cut_lower(t, &v, (size_t)length);
		ck_assert(value_valid(t, lower.b) && value_cmp(t, &lower, &v) <= 0);
		ck_assert(!has || (value_valid(t, upper.b) && value_cmp(t, &upper, &v) >= 0));
		buf_fini(&b);
	}
}

/* Bounds and JSON that Java wrote; its text of times has fewer digits, so only values compare. */
START_TEST(golden_java)
{
	struct jdoc *d = golden_load("tests/golden/values_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "values");
	ck_assert_uint_gt(jval_count(rows), 70);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		const struct type *t = golden_type(&a, golden_str(row, "type"));
		golden_bytes(golden_value(&a, row, t).b, golden_str(row, "bytes"), type_name(t).z);
	}
	golden_bounds(jval_get(jdoc_root(d), "bounds"), 40);
	jdoc_free(d);
}
END_TEST

/* Bounds at the width of metrics. case BC-102 */
START_TEST(golden_cuts)
{
	struct jdoc *d = golden_load("tests/golden/types_java.json");
	golden_bounds(jval_get(jdoc_root(d), "bounds"), 200);
	jdoc_free(d);
}
END_TEST

/* What the reference implementation reads out of single-value JSON. Two of its leniencies are not
 * taken over: a decimal of more digits than the type has, and a float that becomes infinite. One
 * of ours it has not: a real number without a point. */
START_TEST(golden_defaults)
{
	struct jdoc *d = golden_load("tests/golden/types_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "defaults");
	size_t differ = 0;
	ck_assert_uint_gt(jval_count(rows), 100);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		const struct type *t = golden_type(&a, golden_str(row, "type"));
		struct strv text = golden_str(row, "text");
		struct err err = {0};
		struct jdoc *one = NULL;
		struct value v = VALUE_NULL;
		enum status st = jdoc_parse(strv_bytes(text), ST_BAD_REQUEST, &one, &err);
		if (st == ST_OK)
			st = value_text_parse(t, jdoc_root(one), ST_BAD_REQUEST, &a, &v, &err);
		bool java = !jval_is_null(jval_get(row, "bytes"));
		jdoc_free(one);
		if ((st == ST_OK) != java) {
			bool real = t->kind == TYPE_FLOAT || t->kind == TYPE_DOUBLE;
			ck_assert_msg(java ? t->kind == TYPE_DECIMAL || t->kind == TYPE_FLOAT
					   : real,
				      "%s %.*s", type_name(t).z, STRV_ARG(text));
			differ++;
			continue;
		}
		if (java)
			golden_bytes(v.b, golden_str(row, "bytes"), text.p);
	}
	ck_assert_uint_eq(differ, 6);
	jdoc_free(d);
}
END_TEST

static void refuse(const char *t, const char *json)
{
	struct err err = {0};
	struct value v = {.b = {NULL, 77}};
	struct jdoc *d = doc(json);
	enum status st = value_text_parse(type(t), jdoc_root(d), ST_BAD_REQUEST, &a, &v, &err);
	ck_assert_msg(st == ST_BAD_REQUEST, "%s %s", t, json);
	ck_assert_uint_eq(v.b.n, 77);
	jdoc_free(d);
}

START_TEST(refused)
{
	static const char *const rows[][2] = {
		{"boolean", "1"},
		{"int", "2147483648"},
		{"int", "1.0"},
		{"int", "\"1\""},
		{"long", "1e3"},
		{"float", "1e39"},
		{"float", "\"NaN\""},
		{"date", "\"2017-02-29\""},
		{"date", "\"1900-02-29\""},
		{"date", "\"2017-13-01\""},
		{"date", "\"2017-1-01\""},
		{"date", "\"2017-01-01T00:00:00\""},
		{"date", "\"17-01-01\""},
		{"date", "\"+999999999-01-01\""},
		{"date", "17486"},
		{"time", "\"24:00:00\""},
		{"time", "\"22:60:00\""},
		{"time", "\"22:31\""},
		{"time", "\"22:31:08.1234567\""},
		{"time", "\"22:31:08.\""},
		{"timestamp", "\"2017-11-16T22:31:08+00:00\""},
		{"timestamp", "\"2017-11-16 22:31:08\""},
		{"timestamp", "\"+300000-01-01T00:00:00\""},
		{"timestamptz", "\"2017-11-16T22:31:08\""},
		{"timestamptz", "\"2017-11-16T22:31:08-07:00\""},
		{"timestamp_ns", "\"2262-04-11T23:47:16.854775808\""},
		{"timestamp_ns", "\"1677-09-21T00:12:43.145224191\""},
		{"uuid", "\"f79c3e09-677c-4bbd-a479-3f349cb785e\""},
		{"fixed[2]", "\"0001ff\""},
		{"binary", "\"001\""},
		{"binary", "\"0g\""},
		{"decimal(9, 2)", "\"14.2\""},
		{"decimal(9, 2)", "\"14.200\""},
		{"decimal(9, 2)", "\"14\""},
		{"decimal(9, 2)", "14.20"},
		{"decimal(9, 2)", "\".20\""},
		{"decimal(9, 2)", "\"1.4.0\""},
		{"decimal(3, 2)", "\"10.00\""},
		{"decimal(3, 0)", "\"10.\""},
		/* Ten times these first 38 digits is little more than 2^128. */
		{"decimal(38, 0)", "\"340282366920938463463374607431768211460\""},
		{"decimal(38, 1)", "\"-34028236692093846346337460743176821146.0\""},
		{"decimal(1, 0)", "\"10\""},
		{"decimal(3, 0)", "\"\""},
		{"decimal(3, 0)", "\"-\""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		refuse(rows[i][0], rows[i][1]);
}
END_TEST

static void bytes_of(const char *t, const char *json, int64_t want)
{
	struct err err = {0};
	struct value v;
	struct jdoc *d = doc(json);
	UNIT_OK(value_text_parse(type(t), jdoc_root(d), ST_CORRUPT, &a, &v, &err), &err);
	ck_assert_int_eq(value_i64(type(t), &v), want);
	jdoc_free(d);
}

START_TEST(range_ends)
{
	/* The first and last nanosecond of an int64, as RFC 3339 texts of these are commonly given.
	 */
	bytes_of("timestamp_ns", "\"2262-04-11T23:47:16.854775807\"", INT64_MAX);
	bytes_of("timestamp_ns", "\"1677-09-21T00:12:43.145224192\"", INT64_MIN);
	bytes_of("timestamp", "\"1970-01-01T00:00:00\"", 0);
	bytes_of("timestamp", "\"1970-01-01T00:00:00.5\"", 500000);
	bytes_of("date", "\"2000-02-29\"", 11016);
	bytes_of("date", "\"+10000-01-01\"", 2932897);
	bytes_of("date", "\"-0001-12-31\"", -719529);
}
END_TEST

/* Every day of the calendar from year -400 on for 1600 years, against counting. */
START_TEST(calendar)
{
	static const int length[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t day = -719528 - 146097; /* 0000-01-01 is day -719528 */
	for (int64_t year = -400; year < 1200; year++)
		for (int month = 1; month <= 12; month++) {
			bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
			int last = length[month - 1] + (month == 2 && leap);
			for (int d = 1; d <= last; d++, day++) {
				int64_t y;
				int m, dd;
				value_text_civil(day, &y, &m, &dd);
				ck_assert(y == year && m == month && dd == d);
			}
		}
}
END_TEST

static void human(const char *t, const char *json, const char *want)
{
	struct err err = {0};
	struct value v;
	struct buf b;
	struct jdoc *d = doc(json);
	UNIT_OK(value_text_parse(type(t), jdoc_root(d), ST_CORRUPT, &a, &v, &err), &err);
	buf_init(&b, 1000);
	value_text_human(&b, type(t), &v);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(want)), "%s: %.*s", want,
		      STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
	jdoc_free(d);
}

START_TEST(for_people)
{
	human("boolean", "true", "true");
	human("timestamp", "\"2017-12-01T10:12:55.038194\"", "2017-12-01T10:12:55.038194");
	human("timestamptz", "\"2017-12-01T10:12:55.038194+00:00\"",
	      "2017-12-01T10:12:55.038194+00:00");
	human("timestamp", "\"2017-12-01T10:12:00\"", "2017-12-01T10:12:00");
	human("timestamp", "\"2017-12-01T10:12:55.5\"", "2017-12-01T10:12:55.5");
	human("time", "\"10:12:00\"", "10:12");
	human("time", "\"10:12:55.038194\"", "10:12:55.038194");
	human("binary", "\"00010203\"", "AAECAw==");
	human("string", "null", "null");
	human("decimal(4, 2)", "\"-0.05\"", "-0.05");
	human("double", "1e7", "1.0E7");
	human("double", "9999999.5", "9999999.5");
	human("double", "0.001", "0.001");
	human("double", "0.0001", "1.0E-4");
	human("double", "100", "100.0");
	human("double", "-0.0", "-0.0");
	human("float", "0.1", "0.1");
	human("float", "16777216", "1.6777216E7");
}
END_TEST

START_TEST(not_a_number)
{
	struct value v;
	struct buf b;
	ck_assert(value_of_double(type("double"), NAN, &a, &v));
	json_of(type("double"), &v, &b);
	ck_assert(strv_eq(buf_strv(&b), STRV("\"NaN\"")));
	buf_fini(&b);
}
END_TEST

static void default_of(const char *t, const char *json, enum status want, const char *text)
{
	struct err err = {0};
	struct jdoc *td = doc(t), *d = doc(json);
	struct type *ty;
	struct strv out = {"unset", 5};
	UNIT_OK(type_parse(jdoc_root(td), ST_CORRUPT, &a, &ty, &err), &err);
	enum status st = value_text_default(ty, jdoc_root(d), ST_BAD_REQUEST, &a, &out, &err);
	ck_assert_msg(st == want, "%s %s", t, json);
	ck_assert_msg(strv_eq(out, strv_of(text)), "%s: %.*s", json, STRV_ARG(out));
	jdoc_free(td);
	jdoc_free(d);
}

START_TEST(defaults)
{
	static const char *list = "{\"type\":\"list\",\"element-id\":2,\"element\":\"int\","
				  "\"element-required\":true}",
			  *map = "{\"type\":\"map\",\"key-id\":2,\"key\":\"string\",\"value-id\":3,"
				 "\"value\":\"date\",\"value-required\":false}",
			  *st = "{\"type\":\"struct\",\"fields\":[]}";
	default_of("\"int\"", "null", ST_OK, NULL);
	default_of("\"float\"", "1.50", ST_OK, "1.5");
	default_of("\"uuid\"", "\"F79C3E09-677C-4BBD-A479-3F349CB785E7\"", ST_OK,
		   "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"");
	default_of("\"int\"", "\"x\"", ST_BAD_REQUEST, "unset");
	default_of("\"variant\"", "1", ST_BAD_REQUEST, "unset");
	default_of("\"unknown\"", "1", ST_BAD_REQUEST, "unset");
	default_of("\"geometry\"", "\"00\"", ST_BAD_REQUEST, "unset");
	default_of(list, "[1,2]", ST_OK, "[1,2]");
	default_of(list, "[1,null]", ST_BAD_REQUEST, "unset");
	default_of(list, "{}", ST_BAD_REQUEST, "unset");
	default_of(map, "{\"keys\":[\"a\",\"b\"],\"values\":[\"2017-11-16\",null]}", ST_OK,
		   "{\"keys\":[\"a\",\"b\"],\"values\":[\"2017-11-16\",null]}");
	default_of(map, "{\"keys\":[\"a\"],\"values\":[]}", ST_BAD_REQUEST, "unset");
	default_of(st, "{}", ST_OK, "{}");
	default_of(st, "{\"1\":2}", ST_BAD_REQUEST, "unset");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("value_text");
	TCase *t = tcase_create("value_text");
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, golden);
	tcase_add_test(t, golden_java);
	tcase_add_test(t, golden_cuts);
	tcase_add_test(t, golden_defaults);
	tcase_add_test(t, refused);
	tcase_add_test(t, range_ends);
	tcase_add_test(t, calendar);
	tcase_add_test(t, for_people);
	tcase_add_test(t, not_a_number);
	tcase_add_test(t, defaults);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
