#include "proto/iceberg/transform.h"

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

static struct transform parse(struct strv text)
{
	struct err err = {0};
	struct transform t;
	UNIT_OK(transform_parse(text, ST_BAD_REQUEST, &a, &t, &err), &err);
	return t;
}

/* Results of every transform of every type against another implementation. */
START_TEST(golden)
{
	struct jdoc *d = golden_load("tests/golden/values.json");
	const struct jval *rows = jval_get(jdoc_root(d), "transforms");
	ck_assert_uint_gt(jval_count(rows), 350);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		const struct type *source = golden_type(&a, golden_str(row, "type"));
		struct transform t = parse(golden_str(row, "transform"));
		struct value in = golden_value(&a, row, source), out;
		struct err err = {0};
		char what[200];
		snprintf(what, sizeof what, "row %zu: %.*s of %s", i, STRV_ARG(t.text),
			 type_name(source).z);
		ck_assert_msg(transform_accepts(&t, source), "%s", what);
		ck_assert_msg(type_eq(transform_result(&t, source),
				      golden_type(&a, golden_str(row, "result_type"))),
			      "%s", what);
		UNIT_OK(transform_apply(&t, source, &in, &a, &out, &err), &err);
		if (jval_is_null(jval_get(row, "result")))
			ck_assert_msg(out.null, "%s", what);
		else
			golden_bytes(out.b, golden_str(row, "result"), what);
	}
	jdoc_free(d);
}
END_TEST

/* The reference implementation's result and human form of one transform of one value. */
static void java_row(const struct type *source, const struct value *in, struct transform *t,
		     const struct jval *want)
{
	struct err err = {0};
	struct value out;
	struct strv human;
	struct buf b;
	char what[200];
	snprintf(what, sizeof what, "%.*s of %s", STRV_ARG(t->text), type_name(source).z);
	const struct type *result = transform_result(t, source);
	UNIT_OK(transform_apply(t, source, in, &a, &out, &err), &err);
	if (jval_is_null(jval_at(want, 0)))
		ck_assert_msg(out.null, "%s", what);
	else
		golden_bytes(out.b, golden_text(jval_at(want, 0)), what);
	ck_assert_msg(transform_gives(t, result, &out), "%s", what);
	buf_init(&b, 1000);
	transform_human(&b, t, result, &out);
	human = golden_text(jval_at(want, 1));
	ck_assert_msg(strv_eq(buf_strv(&b), human), "%s: %.*s, want %.*s", what,
		      STRV_ARG(buf_strv(&b)), STRV_ARG(human));
	buf_fini(&b);
}

/* Every transform of every type at the edges of its range. case BC-106, case BC-125 (instants
 * before 1970 round down) */
START_TEST(golden_edges)
{
	struct jdoc *d = golden_load("tests/golden/types_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "rows");
	size_t results = 0;
	ck_assert_uint_gt(jval_count(rows), 550);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i), *all = jval_get(row, "t");
		const struct type *source = golden_type(&a, golden_str(row, "type"));
		struct value in = golden_raw(&a, source, golden_str(row, "bytes"));
		for (struct jval_iter it = jval_iter(all); jval_next(&it); results++) {
			struct transform t = parse(it.key);
			java_row(source, &in, &t, it.val);
		}
	}
	ck_assert_uint_gt(results, 4000);
	jdoc_free(d);
}
END_TEST

/* Which transforms the reference implementation lets on a type. */
START_TEST(golden_accepts)
{
	static const char *const all[] = {"identity", "void",  "bucket[16]", "truncate[16]",
					  "year",     "month", "day",        "hour"};
	struct jdoc *d = golden_load("tests/golden/types_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "accepts");
	ck_assert_uint_eq(jval_count(rows), 24);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i), *list = jval_get(row, "transforms");
		const struct type *source = golden_type(&a, golden_str(row, "type"));
		for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
			struct transform t = parse(strv_of(all[k]));
			struct strv s;
			bool want = false;
			for (size_t j = 0; j < jval_count(list); j++)
				want |= jval_as_str(jval_at(list, j), &s) && strv_eq(s, t.text);
			ck_assert_msg(transform_accepts(&t, source) == want, "%s of %s", all[k],
				      type_name(source).z);
		}
	}
	jdoc_free(d);
}
END_TEST

static void hash(const char *t, const char *json, int32_t want)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	struct value v;
	int32_t got = 0;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(json)), ST_CORRUPT, &d, &err), &err);
	UNIT_OK(value_text_parse(type(t), jdoc_root(d), ST_CORRUPT, &a, &v, &err), &err);
	ck_assert(transform_hash(type(t), &v, &got));
	ck_assert_msg(got == want, "%s %s: %d", t, json, (int)got);
	jdoc_free(d);
}

/* Spec Appendix B, "32-bit Hash Requirements". */
START_TEST(spec_hashes)
{
	hash("int", "34", 2017239379);
	hash("long", "34", 2017239379);
	hash("decimal(9, 2)", "\"14.20\"", -500754589);
	hash("date", "\"2017-11-16\"", -653330422);
	hash("time", "\"22:31:08\"", -662762989);
	hash("timestamp", "\"2017-11-16T22:31:08\"", -2047944441);
	hash("timestamp", "\"2017-11-16T22:31:08.000001\"", -1207196810);
	hash("timestamptz", "\"2017-11-16T22:31:08+00:00\"", -2047944441);
	hash("timestamp_ns", "\"2017-11-16T22:31:08\"", -2047944441);
	hash("timestamp_ns", "\"2017-11-16T22:31:08.000001001\"", -1207196810);
	hash("timestamptz_ns", "\"2017-11-16T22:31:08.000001001+00:00\"", -1207196810);
	hash("string", "\"iceberg\"", 1210000089);
	hash("uuid", "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"", 1488055340);
	hash("fixed[4]", "\"00010203\"", -188683207);
	hash("binary", "\"00010203\"", -188683207);
	int32_t h;
	ck_assert(!transform_hash(type("float"),
				  &(struct value){.b = {(const uint8_t *)"\0\0\0", 4}}, &h));
	ck_assert(!transform_hash(type("int"), &VALUE_NULL, &h));
}
END_TEST

static struct value num(const char *t, int64_t n)
{
	struct value v;
	ck_assert(value_of_i64(type(t), n, &a, &v));
	return v;
}

static int64_t apply_i64(const char *tr, const char *t, int64_t n)
{
	struct err err = {0};
	struct transform x = parse(strv_of(tr));
	struct value in = num(t, n), out;
	UNIT_OK(transform_apply(&x, type(t), &in, &a, &out, &err), &err);
	return value_i64(transform_result(&x, type(t)), &out);
}

START_TEST(edges)
{
	/* Spec: "v - (v % W)", remainders positive: truncate[10] of 1 is 0, of -1 is -10. */
	ck_assert_int_eq(apply_i64("truncate[10]", "int", 1), 0);
	ck_assert_int_eq(apply_i64("truncate[10]", "int", -1), -10);
	ck_assert_int_eq(apply_i64("truncate[10]", "long", -11), -20);
	/* The least integers wrap, as in Java. */
	ck_assert_int_eq(apply_i64("truncate[10]", "int", INT32_MIN), 2147483646);
	ck_assert_int_eq(apply_i64("truncate[10]", "long", INT64_MIN),
			 INT64_C(9223372036854775806));
	ck_assert_int_eq(apply_i64("year", "date", -1), -1);
	ck_assert_int_eq(apply_i64("month", "date", -1), -1);
	ck_assert_int_eq(apply_i64("hour", "timestamp", -1), -1);
	ck_assert_int_eq(apply_i64("day", "timestamp_ns", -1), -1);
	struct err err = {0};
	struct transform hour = parse(STRV("hour")), other = parse(STRV("zorder"));
	struct value in = num("timestamp", INT64_MAX), out;
	UNIT_STATUS(transform_apply(&hour, type("timestamp"), &in, &a, &out, &err), ST_VALIDATION);
	UNIT_STATUS(transform_apply(&other, type("timestamp"), &in, &a, &out, &err),
		    ST_UNSUPPORTED);
	/* Sixteen bytes hold more than 38 digits; the least of them has no multiple of 3 below it.
	 */
	struct transform cut = parse(STRV("truncate[3]"));
	ck_assert(value_of_decimal((__int128)((unsigned __int128)1 << 127), &a, &in));
	UNIT_STATUS(transform_apply(&cut, type("decimal(38, 0)"), &in, &a, &out, &err), ST_LIMIT);
	struct transform bucket = parse(STRV("bucket[4]"));
	UNIT_OK(transform_apply(&bucket, type("int"), &VALUE_NULL, &a, &out, &err), &err);
	ck_assert(out.null);
}
END_TEST

START_TEST(text)
{
	struct transform t = parse(STRV("Bucket[016]"));
	ck_assert_int_eq(t.kind, TRANSFORM_BUCKET);
	ck_assert_int_eq(t.arg, 16);
	ck_assert(strv_eq(t.text, STRV("bucket[16]")));
	ck_assert_int_eq(parse(STRV("YEAR")).kind, TRANSFORM_YEAR);
	static const char *const unknown[] = {"",         "zorder",     "bucket",
					      "bucket[]", "bucket[-1]", "bucket[x]",
					      "bucket[1", "days",       "truncate(3)"};
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		t = parse(strv_of(unknown[i]));
		ck_assert_msg(t.kind == TRANSFORM_UNKNOWN, "%s", unknown[i]);
		ck_assert(strv_eq(t.text, strv_of(unknown[i])));
	}
	static const char *const bad[] = {"bucket[0]", "truncate[0]", "truncate[2147483648]",
					  "bucket[99999999999999999999]"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};
		UNIT_STATUS(transform_parse(strv_of(bad[i]), ST_VALIDATION, &a, &t, &err),
			    ST_VALIDATION);
		ck_assert_str_eq(err.field, "transform");
	}
}
END_TEST

/* The table "Partition Transforms" of the spec: which types a transform takes. */
START_TEST(accepted_types)
{
	static const struct {
		const char *transform, *types;
	} rows[] = {
		{"identity",
		 "boolean int long float double date time timestamp timestamptz timestamp_ns "
		 "timestamptz_ns string uuid fixed[4] binary decimal(9,2) unknown "},
		{"bucket[4]",
		 "int long date time timestamp timestamptz timestamp_ns timestamptz_ns string "
		 "uuid fixed[4] binary decimal(9,2) "},
		{"truncate[4]", "int long string binary decimal(9,2) "},
		{"year", "date timestamp timestamptz timestamp_ns timestamptz_ns "},
		{"month", "date timestamp timestamptz timestamp_ns timestamptz_ns "},
		{"day", "date timestamp timestamptz timestamp_ns timestamptz_ns "},
		{"hour", "timestamp timestamptz timestamp_ns timestamptz_ns "},
	};
	static const char *const all[] = {
		"boolean",        "int",     "long",      "float",       "double",
		"date",           "time",    "timestamp", "timestamptz", "timestamp_ns",
		"timestamptz_ns", "string",  "uuid",      "fixed[4]",    "binary",
		"decimal(9,2)",   "unknown", "variant",   "geometry",    "geography"};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
			struct transform t = parse(strv_of(rows[i].transform));
			char word[40];
			snprintf(word, sizeof word, " %s ", all[k]);
			char line[400];
			snprintf(line, sizeof line, " %s", rows[i].types);
			ck_assert_msg(transform_accepts(&t, type(all[k])) ==
					      (strstr(line, word) != NULL),
				      "%s %s", rows[i].transform, all[k]);
		}
	struct transform v = parse(STRV("void"));
	ck_assert(transform_accepts(&v, type("geometry")));
	ck_assert_int_eq(transform_result(&v, NULL)->kind, TYPE_UNKNOWN);
	ck_assert_int_eq(transform_result(&v, type("long"))->kind, TYPE_LONG);
}
END_TEST

static bool gives(const char *tr, const char *source, struct value v)
{
	struct transform t = parse(strv_of(tr));
	return transform_gives(&t, transform_result(&t, type(source)), &v);
}

/* What no application of a transform can give; that results pass, the golden file shows. */
START_TEST(impossible_results)
{
	static const char *const wide = "\U0001f600\u00e9xy";
	struct value s = {.b = {(const uint8_t *)wide, strlen(wide)}}, d;
	ck_assert(gives("bucket[4]", "string", num("int", 3)));
	ck_assert(!gives("bucket[4]", "string", num("int", 4)));
	ck_assert(!gives("bucket[4]", "string", num("int", -1)));
	ck_assert(gives("bucket[4]", "string", VALUE_NULL));
	ck_assert(gives("truncate[10]", "int", num("int", -20)));
	ck_assert(!gives("truncate[10]", "int", num("int", 21)));
	ck_assert(!gives("truncate[10]", "long", num("long", -5)));
	ck_assert(gives("truncate[10]", "int", num("int", 2147483646)));
	ck_assert(!gives("truncate[10]", "int", num("int", 2147483637)));
	ck_assert(gives("truncate[10]", "long", num("long", INT64_MAX - 1)));
	ck_assert(!gives("truncate[10]", "long", num("long", INT32_MAX - 1)));
	ck_assert(gives("truncate[2147483647]", "int", num("int", 5)));
	ck_assert(gives("truncate[4]", "string", s));
	ck_assert(!gives("truncate[3]", "string", s));
	ck_assert(!gives("truncate[4]", "binary", s));
	ck_assert(gives("truncate[8]", "binary", s));
	ck_assert(value_of_decimal(-1500, &a, &d));
	ck_assert(gives("truncate[50]", "decimal(9, 2)", d));
	ck_assert(!gives("truncate[70]", "decimal(9, 2)", d));
	ck_assert(gives("void", "int", VALUE_NULL));
	ck_assert(!gives("void", "int", num("int", 1)));
	ck_assert(gives("identity", "int", num("int", 1)));
	ck_assert(gives("year", "date", num("int", -1970)));
}
END_TEST

static void human(const char *tr, const char *result, int64_t n, const char *want)
{
	struct transform t = parse(strv_of(tr));
	struct value v = num(result, n);
	struct buf b;
	buf_init(&b, 100);
	transform_human(&b, &t, type(result), &v);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(want)), "%.*s", STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
}

START_TEST(for_people)
{
	human("year", "int", 47, "2017");
	human("month", "int", 575, "2017-12");
	human("day", "date", 17501, "2017-12-01");
	human("hour", "int", 420034, "2017-12-01-10");
	human("month", "int", -1, "1969-12");
	human("hour", "int", -1, "1969-12-31-23");
	human("bucket[16]", "int", 7, "7");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("transform");
	TCase *t = tcase_create("transform");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, golden);
	tcase_add_test(t, golden_edges);
	tcase_add_test(t, golden_accepts);
	tcase_add_test(t, spec_hashes);
	tcase_add_test(t, edges);
	tcase_add_test(t, text);
	tcase_add_test(t, accepted_types);
	tcase_add_test(t, impossible_results);
	tcase_add_test(t, for_people);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
