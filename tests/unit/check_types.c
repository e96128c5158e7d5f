#include "proto/iceberg/types.h"

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

static struct type *text(const char *z)
{
	struct err err = {0};
	struct type *t = NULL;
	UNIT_OK(type_parse_text(strv_of(z), ST_CORRUPT, &a, &t, &err), &err);
	return t;
}

/* Texts of spec Appendix C, and what the reference implementation reads besides. */
START_TEST(texts)
{
	static const char *const rows[][2] = {
		{"boolean", "boolean"},
		{"int", "int"},
		{"long", "long"},
		{"float", "float"},
		{"double", "double"},
		{"date", "date"},
		{"time", "time"},
		{"timestamp", "timestamp"},
		{"timestamptz", "timestamptz"},
		{"timestamp_ns", "timestamp_ns"},
		{"timestamptz_ns", "timestamptz_ns"},
		{"string", "string"},
		{"uuid", "uuid"},
		{"fixed[16]", "fixed[16]"},
		{"fixed[ 16 ]", "fixed[16]"},
		{"binary", "binary"},
		{"decimal(9,2)", "decimal(9, 2)"},
		{"DECIMAL( 38 , 38 )", "decimal(38, 38)"},
		{"unknown", "unknown"},
		{"variant", "variant"},
		{"geometry", "geometry"},
		{"geometry(srid:4326)", "geometry(srid:4326)"},
		{"geometry (OGC:CRS84)", "geometry"},
		{"geography", "geography"},
		{"geography(srid:4326)", "geography(srid:4326)"},
		{"geography(srid:4326, Karney)", "geography(srid:4326, karney)"},
		{"geography(OGC:CRS84, vincenty)", "geography(OGC:CRS84, vincenty)"},
		{"geography(OGC:CRS84, spherical)", "geography"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ck_assert_str_eq(type_name(text(rows[i][0])).z, rows[i][1]);
}
END_TEST

START_TEST(refused_texts)
{
	static const char *const rows[] = {"",
					   "integer",
					   "int ",
					   "fixed",
					   "fixed[]",
					   "fixed[-1]",
					   "fixed[0]",
					   "fixed[2147483648]",
					   "fixed(3)",
					   "decimal",
					   "decimal(9)",
					   "decimal()",
					   "decimal(0, 0)",
					   "decimal(39, 2)",
					   "decimal(9, -2)",
					   "decimal(9, 10)",
					   "decimal(9, 2",
					   "geometry()",
					   "geometry(a, b)",
					   "geography(a, flat)",
					   "geography(, karney)",
					   "struct",
					   "list",
					   "map",
					   "geometry((a)"};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct type *t = NULL;
		enum status st = type_parse_text(strv_of(rows[i]), ST_BAD_REQUEST, &a, &t, &err);
		ck_assert_msg(st == ST_BAD_REQUEST && !t, "%s", rows[i]);
		ck_assert_msg(strstr(err.msg, "Cannot parse type string to primitive") != NULL,
			      "%s", err.msg);
	}
}
END_TEST

static enum status parse(const char *json, struct type **ret_t, struct err *err)
{
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(json)), ST_CORRUPT, &d, err), err);
	enum status st = type_parse(jdoc_root(d), ST_CORRUPT, &a, ret_t, err);
	jdoc_free(d); /* the type keeps nothing of it */
	return st;
}

/* Written form: the members in the order of the reference implementation, unknown ones last. */
static const char nested[] =
	"{\"type\":\"struct\",\"fields\":["
	"{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"int\",\"doc\":\"d\\\"oc\","
	"\"initial-default\":7,\"write-default\":8,\"x-note\":{\"k\":[1,2.5]}},"
	"{\"id\":2,\"name\":\"l\",\"required\":false,\"type\":{\"type\":\"list\",\"element-id\":3,"
	"\"element\":{\"type\":\"map\",\"key-id\":4,\"key\":\"string\",\"value-id\":5,"
	"\"value\":\"decimal(9, "
	"2)\",\"value-required\":false,\"hint\":null},\"element-required\":true}}]}";

START_TEST(json_round_trip)
{
	struct err err = {0};
	struct type *t;
	struct buf b;
	struct jwrite w;
	UNIT_OK(parse(nested, &t, &err), &err);
	buf_init(&b, 10000);
	jwrite_init(&w, &b);
	type_write(&w, t);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(nested)), "%.*s", STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
	ck_assert_int_eq(t->u.st.fields[1].type->u.list.element->u.map.value->scale, 2);
}
END_TEST

START_TEST(refused_json)
{
	static const char *const rows[][2] = {
		{"7", ""},
		{"{\"type\":\"set\"}", "type"},
		{"{\"fields\":[]}", "type"},
		{"{\"type\":\"struct\"}", "fields"},
		{"{\"type\":\"struct\",\"fields\":[1]}", "fields[0]"},
		{"{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true}]}",
		 "fields[0].type"},
		{"{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":1,"
		 "\"type\":\"int\"}]}",
		 "fields[0].required"},
		{"{\"type\":\"struct\",\"fields\":[{\"id\":4294967296,\"name\":\"a\",\"required\":"
		 "true,"
		 "\"type\":\"int\"}]}",
		 "fields[0].id"},
		{"{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true,"
		 "\"type\":\"int\",\"write-default\":\"x\"}]}",
		 "fields[0].write-default"},
		{"{\"type\":\"list\",\"element-id\":1,\"element\":\"int\"}", "element-required"},
		{"{\"type\":\"list\",\"element-id\":1,\"element-required\":true,\"element\":"
		 "\"set\"}",
		 "element"},
		{"{\"type\":\"map\",\"key-id\":1,\"key\":\"int\",\"value-id\":2,\"value\":\"int\"}",
		 "value-required"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct type *t = NULL;
		ck_assert_msg(parse(rows[i][0], &t, &err) == ST_CORRUPT && !t, "%s", rows[i][0]);
		ck_assert_str_eq(err.field, rows[i][1]);
	}
}
END_TEST

START_TEST(depth)
{
	/* Lists nest one JSON level each. */
	for (int n = 50; n < JDOC_MAX_DEPTH; n++) {
		struct buf b;
		struct err err = {0};
		struct type *t = NULL;
		buf_init(&b, 10000);
		for (int i = 0; i < n; i++)
			buf_printf(&b,
				   "{\"type\":\"list\",\"element-id\":%d,\"element-required\":true,"
				   "\"element\":",
				   i);
		buf_puts(&b, "\"int\"");
		for (int i = 0; i < n; i++)
			buf_putc(&b, '}');
		buf_putc(&b, 0);
		enum status st = parse((const char *)b.p, &t, &err);
		ck_assert_int_eq(st, n < JDOC_MAX_DEPTH - 8 ? ST_OK : ST_CORRUPT);
		buf_fini(&b);
	}
}
END_TEST

START_TEST(small_arena)
{
	struct jdoc *d = NULL;
	struct err err = {0};
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(nested)), ST_CORRUPT, &d, &err), &err);
	size_t ok = 0;
	for (size_t limit = 0; limit < 4096; limit += 16) {
		struct arena small;
		struct type *t = NULL;
		arena_init(&small, limit);
		enum status st = type_parse(jdoc_root(d), ST_CORRUPT, &small, &t, &err);
		ck_assert(st == ST_OK || (st == ST_LIMIT && !t));
		ok += st == ST_OK;
		arena_fini(&small);
	}
	ck_assert(ok > 0 && ok < 200);
	jdoc_free(d);
}
END_TEST

START_TEST(equality)
{
	static const char *const differ[][2] = {
		{"\"id\":1", "\"id\":9"},
		{"\"name\":\"a\"", "\"name\":\"b\""},
		{"\"required\":true", "\"required\":false"},
		{"\"type\":\"int\"", "\"type\":\"long\""},
		{"\"doc\":\"d\\\"oc\",", ""},
		{"\"initial-default\":7,", ""},
		{"\"write-default\":8", "\"write-default\":9"},
		{"\"element-id\":3", "\"element-id\":9"},
		{"\"value-id\":5", "\"value-id\":9"},
		{"\"element-required\":true", "\"element-required\":false"},
		{"decimal(9, 2)", "decimal(9, 3)"},
	};
	struct err err = {0};
	struct type *x, *y;
	UNIT_OK(parse(nested, &x, &err), &err);
	UNIT_OK(parse(nested, &y, &err), &err);
	ck_assert(type_eq(x, y));
	for (size_t i = 0; i < ARRAY_SIZE(differ); i++) {
		const char *at = strstr(nested, differ[i][0]);
		ck_assert_msg(at != NULL, "%s", differ[i][0]);
		char *other = arena_printf(&a, "%.*s%s%s", (int)(at - nested), nested, differ[i][1],
					   at + strlen(differ[i][0]));
		UNIT_OK(parse(other, &y, &err), &err);
		ck_assert_msg(!type_eq(x, y) && !type_eq(y, x), "%s", differ[i][0]);
	}
}
END_TEST

START_TEST(promotion)
{
	/* Spec "Schema Evolution": V1 and V2 know the first four, V3 the rest too. */
	static const struct {
		const char *from, *to;
		int since;
	} rows[] = {
		{"int", "long", 1},
		{"float", "double", 1},
		{"decimal(9, 2)", "decimal(10, 2)", 1},
		{"uuid", "uuid", 1},
		{"date", "timestamp", 3},
		{"date", "timestamp_ns", 3},
		{"unknown", "string", 3},
		{"unknown", "variant", 3},
		{"long", "int", 0},
		{"decimal(10, 2)", "decimal(9, 2)", 0},
		{"decimal(9, 2)", "decimal(10, 3)", 0},
		{"date", "timestamptz", 0},
		{"date", "long", 0},
		{"timestamp", "timestamp_ns", 0},
		{"int", "string", 0},
		{"fixed[2]", "binary", 0},
		{"geometry(a)", "geometry(b)", 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int version = 1; version <= 3; version++)
			ck_assert_msg(
				type_promotes(text(rows[i].from), text(rows[i].to), version) ==
					(rows[i].since && version >= rows[i].since),
				"%s to %s in v%d", rows[i].from, rows[i].to, version);
}
END_TEST

/* The reference implementation allows what V1 and V2 know, and not yet what V3 added. */
START_TEST(golden_promotion)
{
	struct jdoc *d = golden_load("tests/golden/types_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "promotes");
	ck_assert_uint_eq(jval_count(rows), 24);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *to = jval_get(jval_at(rows, i), "to");
		const struct type *from = golden_type(&a, golden_str(jval_at(rows, i), "type"));
		for (size_t k = 0; k < jval_count(rows); k++) {
			const struct type *t =
				golden_type(&a, golden_str(jval_at(rows, k), "type"));
			bool java = from->kind == TYPE_VARIANT && t->kind == TYPE_VARIANT;
			for (size_t j = 0; j < jval_count(to); j++)
				java |= type_eq(golden_type(&a, golden_text(jval_at(to, j))), t);
			bool added = (from->kind == TYPE_UNKNOWN) ||
				     (from->kind == TYPE_DATE &&
				      (t->kind == TYPE_TIMESTAMP || t->kind == TYPE_TIMESTAMP_NS));
			ck_assert_msg(type_promotes(from, t, 2) == java, "%s to %s in v2",
				      type_name(from).z, type_name(t).z);
			ck_assert_msg(type_promotes(from, t, 3) == (java || added),
				      "%s to %s in v3", type_name(from).z, type_name(t).z);
		}
	}
	jdoc_free(d);
}
END_TEST

START_TEST(versions)
{
	static const char *const v3[] = {"timestamp_ns", "timestamptz_ns", "unknown",
					 "variant",      "geometry",       "geography"};
	for (size_t i = 0; i < ARRAY_SIZE(v3); i++)
		ck_assert_int_eq(type_min_version(text(v3[i])), 3);
	ck_assert_int_eq(type_min_version(text("timestamptz")), 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("types");
	TCase *t = tcase_create("types");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, texts);
	tcase_add_test(t, refused_texts);
	tcase_add_test(t, json_round_trip);
	tcase_add_test(t, refused_json);
	tcase_add_test(t, depth);
	tcase_add_test(t, small_arena);
	tcase_add_test(t, equality);
	tcase_add_test(t, promotion);
	tcase_add_test(t, golden_promotion);
	tcase_add_test(t, versions);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
