#include "proto/iceberg/partition.h"

#include "tests/unit/golden_values.h"

static struct arena a;
static struct schema columns;

static const char columns_json[] =
	"{\"type\":\"struct\",\"schema-id\":0,\"fields\":["
	"{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"},"
	"{\"id\":2,\"name\":\"ts\",\"required\":false,\"type\":\"timestamptz\"},"
	"{\"id\":3,\"name\":\"data\",\"required\":false,\"type\":\"string\"},"
	"{\"id\":4,\"name\":\"s\",\"required\":false,\"type\":{\"type\":\"struct\",\"fields\":["
	"{\"id\":5,\"name\":\"d\",\"required\":false,\"type\":\"date\"}]}},"
	"{\"id\":6,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":7,"
	"\"element\":\"int\",\"element-required\":true}},"
	"{\"id\":8,\"name\":\"v\",\"required\":false,\"type\":\"variant\"},"
	"{\"id\":9,\"name\":\"g\",\"required\":false,\"type\":\"geometry\"}]}";

static struct jdoc *doc(const char *text)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_CORRUPT, &d, &err), &err);
	return d;
}

static void setup(void)
{
	struct err err = {0};
	arena_init(&a, 16 << 20);
	struct jdoc *d = doc(columns_json);
	UNIT_OK(schema_parse(jdoc_root(d), ST_CORRUPT, &a, &columns, &err), &err);
	jdoc_free(d);
}

static void teardown(void)
{
	arena_fini(&a);
}

static enum status try(const char *json, struct partition_spec *ret_spec, struct err *err)
{
	struct jdoc *d = doc(json);
	enum status st =
		jval_is_array(jdoc_root(d))
			? partition_parse_fields(jdoc_root(d), ST_CORRUPT, &a, ret_spec, err)
			: partition_parse(jdoc_root(d), ST_CORRUPT, &a, ret_spec, err);
	jdoc_free(d);
	return st;
}

static struct partition_spec spec(const char *json)
{
	struct err err = {0};
	struct partition_spec s;
	UNIT_OK(try(json, &s, &err), &err);
	return s;
}

#define F(name, transform, source, id)                                                             \
	"{\"name\":\"" name "\",\"transform\":\"" transform "\",\"source-id\":" #source            \
	",\"field-id\":" #id "}"
#define U(name, transform, source)                                                                 \
	"{\"name\":\"" name "\",\"transform\":\"" transform "\",\"source-id\":" #source "}"

/* The example of spec Appendix C, with a member of the future. */
static const char example[] = "{\"spec-id\":3,\"fields\":[" F(
	"id_bucket", "bucket[16]", 1, 1000) ","
					    "{\"name\":\"z\",\"transform\":\"zorder\",\"source-"
					    "ids\":[1,3],\"field-id\":1001,\"new\":[1]}],\"x\":{}}";

START_TEST(round_trip)
{
	struct partition_spec s = spec(example);
	struct buf b;
	struct jwrite w;
	buf_init(&b, 4096);
	jwrite_init(&w, &b);
	partition_write(&w, &s);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(example)), "%.*s", STRV_ARG(buf_strv(&b)));
	ck_assert_int_eq(s.spec_id, 3);
	ck_assert_int_eq(s.fields[0].transform.arg, 16);
	ck_assert_int_eq(s.fields[1].source_id, 1);
	ck_assert_uint_eq(s.fields[1].n_source_ids, 2);
	buf_clear(&b);
	jwrite_init(&w, &b);
	s = spec("[" U("d", "day", 2) "]");
	ck_assert_int_eq(s.spec_id, PARTITION_NO_ID);
	ck_assert_int_eq(s.fields[0].field_id, PARTITION_NO_ID);
	partition_write_fields(&w, &s);
	ck_assert(strv_eq(buf_strv(&b), STRV("[" U("d", "day", 2) "]")));
	buf_fini(&b);
}
END_TEST

START_TEST(refused)
{
	static const char *const rows[][2] = {
		{"7", ""},
		{"{\"spec-id\":0}", "fields"},
		{"[7]", "fields[0]"},
		{"[{\"name\":\"a\",\"transform\":\"day\"}]", "fields[0].source-id"},
		{"[{\"name\":\"a\",\"source-id\":1}]", "fields[0].transform"},
		{"[{\"transform\":\"day\",\"source-id\":1}]", "fields[0].name"},
		{"[" U("a", "bucket[0]", 1) "]", "fields[0].transform"},
		{"[{\"name\":\"a\",\"transform\":\"x\",\"source-ids\":[]}]",
		 "fields[0].source-ids"},
		{"[{\"name\":\"a\",\"transform\":\"x\",\"source-ids\":[\"1\"]}]",
		 "fields[0].source-ids"},
		{"[" F("a", "day", 2, 1000) "," U("b", "day", 2) "]", "fields"},
		{"[" F("a", "day", 2, 1000) "," F("b", "year", 2, 1000) "]", "fields"},
		{"[" F("a", "day", 2, -3) "]", "fields[0].field-id"},
		{"{\"spec-id\":\"0\",\"fields\":[]}", "spec-id"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct partition_spec s = {.n = 77};
		ck_assert_msg(try(rows[i][0], &s, &err) == ST_CORRUPT, "%s", rows[i][0]);
		ck_assert_str_eq(err.field, rows[i][1]);
		ck_assert_uint_eq(s.n, 77);
	}
}
END_TEST

START_TEST(comparison)
{
	struct partition_spec x = spec("{\"spec-id\":1,\"fields\":[" F("d", "day", 2, 1000) "]}"),
			      y;
	y = spec("{\"spec-id\":2,\"fields\":[" F("d", "DAY", 2, 1007) "]}");
	ck_assert(partition_compatible(&x, &y) && !partition_same(&x, &y));
	y = spec("{\"spec-id\":2,\"fields\":[" F("d", "day", 2, 1000) "]}");
	ck_assert(partition_same(&x, &y));
	static const char *const differ[] = {
		"[" F("e", "day", 2, 1000) "]", "[" F("d", "hour", 2, 1000) "]",
		"[" F("d", "day", 5, 1000) "]", "[]",
		"[{\"name\":\"d\",\"transform\":\"day\",\"source-ids\":[2,5],\"field-id\":1000}]"};
	for (size_t i = 0; i < ARRAY_SIZE(differ); i++) {
		y = spec(differ[i]);
		ck_assert_msg(!partition_compatible(&x, &y), "%s", differ[i]);
	}
	ck_assert(partition_is_unpartitioned(&y) == false);
	y = spec("[" F("a", "void", 1, 1000) "]");
	ck_assert(partition_is_unpartitioned(&y));
}
END_TEST

static void check(const char *fields, int version, const char *want)
{
	struct err err = {0};
	struct partition_spec s = spec(fields);
	enum status st = partition_check(&s, &columns, version, &err);
	ck_assert_msg(st == (want ? ST_VALIDATION : ST_OK), "%s: %s", fields, err.msg);
	if (want)
		ck_assert_msg(strstr(err.msg, want) != NULL, "%s: %s", fields, err.msg);
}

START_TEST(rules)
{
	check("[" F("b", "bucket[4]", 1, 1000) "," F("t", "truncate[2]", 3, 1001) "]", 1, NULL);
	check("[" F("d", "month", 5, 1000) "]", 2, NULL);
	check("[" F("n", "day", 99, 1000) "]", 2, "Cannot find source column");
	check("[" F("n", "identity", 4, 1000) "]", 2, "not a primitive: struct");
	check("[" F("n", "identity", 8, 1000) "]", 2, "not a primitive: variant");
	check("[" F("n", "identity", 9, 1000) "]", 2, "Invalid source type: geometry");
	check("[" F("n", "day", 3, 1000) "]", 2, "Invalid source type: string for transform day");
	check("[" F("n", "hour", 5, 1000) "]", 2, "Invalid source type: date");
	check("[" F("n", "bucket[4]", 7, 1000) "]", 2, "list or map");
	/* void is exempt, even from having a source. */
	check("[" F("n", "void", 99, 1000) "," F("m", "void", 4, 1001) "]", 2, NULL);
	check("[" F("", "day", 2, 1000) "]", 2, "empty partition name");
	check("[" F("n", "day", 2, 1000) "," F("n", "identity", 1, 1001) "]", 2,
	      "more than once: n");
	check("[" F("id", "identity", 1, 1000) "]", 2, NULL);
	check("[" F("id", "identity", 3, 1000) "]", 2, "exists in schema: id");
	check("[" F("s.d", "day", 2, 1000) "]", 2, "exists in schema: s.d");
	check("[" F("n", "day", 2, 1001) "]", 1, "sequential IDs");
	check("[" F("n", "day", 2, 1001) "]", 2, NULL);
	check("[{\"name\":\"z\",\"transform\":\"zorder\",\"source-ids\":[1,99],\"field-id\":1000}]",
	      3, "Cannot find source column");
	/* Names are not looked at when the schema changes under a spec. */
	struct err err = {0};
	struct partition_spec s = spec("[" F("id", "day", 2, 1000) "]");
	UNIT_OK(partition_check_schema(&s, &columns, &err), &err);
	s = spec("[" F("x", "day", 99, 1000) "]");
	UNIT_STATUS(partition_check_schema(&s, &columns, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "fields[0]");
}
END_TEST

START_TEST(ids)
{
	struct err err = {0};
	struct partition_spec old =
		spec("[" F("a", "day", 2, 1000) "," F("b", "bucket[4]", 1, 1005) "]");
	const struct partition_spec *const specs[] = {&old};
	int32_t last = 1006;
	struct partition_spec s = spec(
		"[" U("x", "bucket[4]", 1) "," U("y", "year", 2) "," U("z", "bucket[4]", 1) "]");
	UNIT_OK(partition_assign_ids(&s, specs, 1, 2, &last, &err), &err);
	/* The known term keeps its id, but only once. */
	ck_assert(s.fields[0].field_id == 1005 && s.fields[1].field_id == 1007 &&
		  s.fields[2].field_id == 1008);
	ck_assert_int_eq(last, 1008);
	ck_assert_int_eq(partition_last_id(&s), 1008);
	last = 999;
	s = spec("[" U("x", "bucket[4]", 1) "," U("y", "year", 2) "]");
	UNIT_OK(partition_assign_ids(&s, specs, 1, 1, &last, &err), &err);
	ck_assert(s.fields[0].field_id == 1000 && s.fields[1].field_id == 1001 && last == 1001);
	last = 999;
	s = spec("[" F("x", "bucket[4]", 1, 1010) "]");
	UNIT_OK(partition_assign_ids(&s, NULL, 0, 2, &last, &err), &err);
	ck_assert_int_eq(last, 1010);
	last = INT32_MAX;
	s = spec("[" U("x", "bucket[4]", 1) "]");
	UNIT_STATUS(partition_assign_ids(&s, NULL, 0, 2, &last, &err), ST_VALIDATION);
	s = spec("[]");
	ck_assert_int_eq(partition_last_id(&s), 999);
}
END_TEST

START_TEST(tuple_type)
{
	struct err err = {0};
	struct field *f;
	struct partition_spec s =
		spec("[" F("i", "identity", 3, 1000) "," F("b", "bucket[4]", 1, 1001) "," F(
			"d", "day", 2,
			1002) "," F("h", "hour", 2,
				    1003) "," F("v", "void", 1,
						1004) "," F("gone", "identity", 99,
							    1005) "," F("goneb", "bucket[2]", 99,
									1006) "]");
	static const enum type_kind want[] = {TYPE_STRING, TYPE_INT,     TYPE_DATE, TYPE_INT,
					      TYPE_LONG,   TYPE_UNKNOWN, TYPE_INT};
	UNIT_OK(partition_type(&s, &columns, &a, &f, &err), &err);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		ck_assert_int_eq(f[i].type->kind, want[i]);
		ck_assert_int_eq(f[i].id, 1000 + (int32_t)i);
		ck_assert(!f[i].required && strv_eq(f[i].name, s.fields[i].name));
	}
}
END_TEST

START_TEST(paths)
{
	struct err err = {0};
	struct field *f;
	struct partition_spec s =
		spec("[" F("data", "identity", 3, 1000) "," F("d 1/2", "day", 2, 1001) "," F(
			"h", "hour", 2, 1002) "," F("n", "void", 1, 1003) "]");
	struct value v[4] = {
		{.b = strv_bytes(STRV("a b/c=d\xc3\xa9*~"))}, VALUE_NULL, VALUE_NULL, VALUE_NULL};
	struct buf b;
	UNIT_OK(partition_type(&s, &columns, &a, &f, &err), &err);
	ck_assert(value_of_i64(f[1].type, 17501, &a, &v[1]));
	ck_assert(value_of_i64(f[2].type, 420034, &a, &v[2]));
	buf_init(&b, 1000);
	partition_path(&b, &s, f, &(struct tuple){v, 4});
	ck_assert_msg(strv_eq(buf_strv(&b), STRV("data=a+b%2Fc%3Dd%C3%A9*%7E/d+1%2F2=2017-12-01/"
						 "h=2017-12-01-10/n=null")),
		      "%.*s", STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
	/* A full buffer is seen. */
	buf_init(&b, 10);
	partition_path(&b, &s, f, &(struct tuple){v, 4});
	ck_assert(!buf_ok(&b));
	buf_fini(&b);
}
END_TEST

/* Results and paths that Java wrote, for every transform that it lets a type have. */
START_TEST(golden_java)
{
	struct jdoc *d = golden_load("tests/golden/values_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "paths");
	ck_assert_uint_gt(jval_count(rows), 400);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		const struct type *source = golden_type(&a, golden_str(row, "type"));
		struct partition_field f = {.source_id = 1, .field_id = 1000, .name = STRV("p q")};
		struct partition_spec s = {.fields = &f, .n = 1};
		struct err err = {0};
		struct value in = golden_value(&a, row, source), out;
		char what[200];
		snprintf(what, sizeof what, "row %zu: %s", i, type_name(source).z);
		UNIT_OK(transform_parse(golden_str(row, "transform"), ST_CORRUPT, &a, &f.transform,
					&err),
			&err);
		ck_assert_msg(transform_accepts(&f.transform, source), "%s", what);
		UNIT_OK(transform_apply(&f.transform, source, &in, &a, &out, &err), &err);
		ck_assert_msg(out.null == jval_is_null(jval_get(row, "result")), "%s", what);
		if (!out.null)
			golden_bytes(out.b, golden_str(row, "result"), what);
		struct type result = *transform_result(&f.transform, source);
		struct field type = {.id = 1000, .name = f.name, .type = &result};
		struct buf b;
		buf_init(&b, 1000);
		partition_path(&b, &s, &type, &(struct tuple){&out, 1});
		ck_assert_msg(strv_eq(buf_strv(&b), golden_str(row, "path")),
			      "%s: got %.*s, want %.*s", what, STRV_ARG(buf_strv(&b)),
			      STRV_ARG(golden_str(row, "path")));
		buf_fini(&b);
	}
	jdoc_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("partition");
	TCase *t = tcase_create("partition");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, refused);
	tcase_add_test(t, comparison);
	tcase_add_test(t, rules);
	tcase_add_test(t, ids);
	tcase_add_test(t, tuple_type);
	tcase_add_test(t, paths);
	tcase_add_test(t, golden_java);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
