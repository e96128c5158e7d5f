#include "proto/iceberg/schema.h"

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

static enum status parse(const char *json, struct schema *ret_s, struct err *err)
{
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(json)), ST_CORRUPT, &d, err), err);
	enum status st = schema_parse(jdoc_root(d), ST_CORRUPT, &a, ret_s, err);
	jdoc_free(d);
	return st;
}

static struct schema schema(const char *json)
{
	struct err err = {0};
	struct schema s;
	UNIT_OK(parse(json, &s, &err), &err);
	return s;
}

static struct strv written(const struct schema *s)
{
	struct buf b;
	struct jwrite w;
	struct strv out;
	buf_init(&b, 1 << 20);
	jwrite_init(&w, &b);
	schema_write(&w, s);
	ck_assert(buf_ok(&b) && arena_strv(&a, buf_strv(&b), &out));
	buf_fini(&b);
	return out;
}

/* Fields by name and type only; text that a test splices into a schema. */
#define FIELD(id, name, type, required)                                                            \
	"{\"id\":" #id ",\"name\":\"" name "\",\"required\":" #required ",\"type\":" type "}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"
#define LIST(id, type, required)                                                                   \
	"{\"type\":\"list\",\"element-id\":" #id ",\"element\":" type                              \
	",\"element-required\":" #required "}"
#define MAP(k, kt, v, vt)                                                                          \
	"{\"type\":\"map\",\"key-id\":" #k ",\"key\":" kt ",\"value-id\":" #v ",\"value\":" vt     \
	",\"value-required\":true}"

static const char deep[] =
	"{\"type\":\"struct\",\"schema-id\":4,\"identifier-field-ids\":[21,20],\"fields\":[" FIELD(
		20, "id", "\"long\"",
		true) "," FIELD(10, "s",
				STRUCT(FIELD(21, "x", "\"string\"",
					     true) "," FIELD(22, "y", "\"int\"", false)),
				true) "," FIELD(30, "l",
						LIST(31, STRUCT(FIELD(32, "x", "\"int\"", true)),
						     true),
						false) "," FIELD(40, "m",
								 MAP(41, "\"string\"", 42,
								     STRUCT(FIELD(43, "v",
										  "\"double\"",
										  false))),
								 false) "],\"x\":1}";

START_TEST(nodes)
{
	struct schema s = schema(deep);
	static const struct {
		const char *name;
		int32_t id;
		bool list, map;
	} rows[] = {{"id", 20, 0, 0},          {"s", 10, 0, 0},        {"s.x", 21, 0, 0},
		    {"s.y", 22, 0, 0},         {"l", 30, 0, 0},        {"l.element", 31, 1, 0},
		    {"l.element.x", 32, 1, 0}, {"m", 40, 0, 0},        {"m.key", 41, 0, 1},
		    {"m.value", 42, 0, 1},     {"m.value.v", 43, 0, 1}};
	ck_assert_uint_eq(s.n_nodes, ARRAY_SIZE(rows));
	ck_assert_int_eq(s.highest_id, 43);
	ck_assert_int_eq(s.schema_id, 4);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct schema_node *n = schema_find(&s, rows[i].id);
		ck_assert_msg(n && strv_eq(n->full_name, strv_of(rows[i].name)), "%s",
			      rows[i].name);
		ck_assert_ptr_eq(schema_find_name(&s, strv_of(rows[i].name)), n);
		ck_assert_int_eq(n->in_list, rows[i].list);
		ck_assert_int_eq(n->in_map, rows[i].map);
	}
	ck_assert_ptr_null(schema_find(&s, 23));
	ck_assert_ptr_null(schema_find_name(&s, STRV("s.z")));
	ck_assert(schema_find(&s, 43)->in_optional_struct == false);
	ck_assert_ptr_eq(schema_find(&s, 43)->parent, schema_find(&s, 42));
	/* Identifier ids are kept in order. */
	ck_assert(s.identifier_ids[0] == 20 && s.identifier_ids[1] == 21);
}
END_TEST

START_TEST(round_trip)
{
	struct schema s = schema(deep);
	struct strv text = written(&s);
	/* Order of members as the reference implementation writes them. */
	ck_assert(strv_starts(text,
			      STRV("{\"type\":\"struct\",\"schema-id\":4,"
				   "\"identifier-field-ids\":[20,21],\"fields\":[{\"id\":20,")));
	ck_assert(strv_ends(text, STRV("],\"x\":1}")));
	struct schema again = schema(text.p);
	ck_assert(schema_same(&s, &again));
	ck_assert(strv_eq(written(&again), text));
	/* No schema id is not id 0, and an empty schema is one. */
	s = schema("{\"type\":\"struct\",\"fields\":[]}");
	ck_assert_int_eq(s.schema_id, SCHEMA_ID_NONE);
	ck_assert(strv_eq(written(&s), STRV("{\"type\":\"struct\",\"fields\":[]}")));
}
END_TEST

START_TEST(refused)
{
	static const char *const rows[][2] = {
		{"[]", ""},
		{"{\"fields\":[]}", "Cannot parse type from json"},
		{"{\"type\":\"list\",\"fields\":[]}", "not a struct"},
		{"{\"type\":\"struct\"}", ""},
		{STRUCT(FIELD(1, "a", "\"int\"", true) "," FIELD(1, "b", "\"int\"", true)),
		 "field id 1 is used"},
		{STRUCT(FIELD(1, "a", LIST(1, "\"int\"", true), true)), "field id 1 is used"},
		{STRUCT(FIELD(1, "a", "\"int\"", true) "," FIELD(2, "a", "\"int\"", true)),
		 "multiple fields for name a"},
		{STRUCT(FIELD(1, "a.b", "\"int\"", true) "," FIELD(
			 2, "a", STRUCT(FIELD(3, "b", "\"int\"", true)), true)),
		 "multiple fields for name a.b"},
		{STRUCT(FIELD(2147483448, "a", "\"int\"", true)), "reserved"},
		{STRUCT(FIELD(-1, "a", "\"int\"", true)), "negative"},
		{STRUCT(FIELD(1, "a", "\"unknown\"", true)), "cannot be required"},
		{STRUCT(FIELD(1, "l", LIST(2, "\"unknown\"", true), true)), "cannot be required"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct schema s = {.n = 77};
		ck_assert_msg(parse(rows[i][0], &s, &err) == ST_CORRUPT, "%s", rows[i][0]);
		ck_assert_uint_eq(s.n, 77);
		ck_assert_msg(strstr(err.msg, rows[i][1]) != NULL, "%s: %s", rows[i][0], err.msg);
	}
	schema(STRUCT(FIELD(2147483447, "a", "\"int\"", true)));
	schema(STRUCT(FIELD(0, "a", "\"int\"", true)));
}
END_TEST

/* Spec "Identifier Field IDs". */
START_TEST(identifiers)
{
	static const char *const rows[][3] = {
		{"9", FIELD(1, "a", "\"int\"", true), "does not exist"},
		{"1", FIELD(1, "a", "\"int\"", false), "not a required field"},
		{"1", FIELD(1, "a", "\"float\"", true), "float or double"},
		{"1", FIELD(1, "a", "\"double\"", true), "float or double"},
		{"1", FIELD(1, "a", STRUCT(FIELD(2, "b", "\"int\"", true)), true),
		 "not a primitive"},
		{"1", FIELD(1, "a", "\"variant\"", true), "not a primitive"},
		{"2", FIELD(1, "a", STRUCT(FIELD(2, "b", "\"int\"", true)), false), "optional"},
		{"3",
		 FIELD(1, "a", STRUCT(FIELD(2, "b", STRUCT(FIELD(3, "c", "\"int\"", true)), true)),
		       false),
		 "optional"},
		{"2", FIELD(1, "a", LIST(2, "\"int\"", true), true), "list or map"},
		{"3", FIELD(1, "a", LIST(2, STRUCT(FIELD(3, "c", "\"int\"", true)), true), true),
		 "list or map"},
		{"2", FIELD(1, "a", MAP(2, "\"int\"", 3, "\"int\""), true), "list or map"},
		{"1,1", FIELD(1, "a", "\"int\"", true), "twice"},
		{"\"a\"", FIELD(1, "a", "\"int\"", true), "not a field id"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct schema s;
		char *json = arena_printf(
			&a, "{\"type\":\"struct\",\"identifier-field-ids\":[%s],\"fields\":[%s]}",
			rows[i][0], rows[i][1]);
		ck_assert_msg(parse(json, &s, &err) == ST_CORRUPT, "%s", json);
		ck_assert_str_eq(err.field, "identifier-field-ids");
		ck_assert_msg(strstr(err.msg, rows[i][2]) != NULL, "%s: %s", json, err.msg);
	}
	schema("{\"type\":\"struct\",\"identifier-field-ids\":[2],\"fields\":[" FIELD(
		1, "a", STRUCT(FIELD(2, "b", "\"uuid\"", true)), true) "]}");
}
END_TEST

START_TEST(sameness)
{
	struct schema x = schema(deep), y = schema(deep);
	y.schema_id = 9;
	ck_assert(schema_same(&x, &y));
	y = schema("{\"type\":\"struct\",\"fields\":[" FIELD(1, "a", "\"int\"", true) "]}");
	x = schema("{\"type\":\"struct\",\"identifier-field-ids\":[1],\"fields\":[" FIELD(
		1, "a", "\"int\"", true) "]}");
	ck_assert(!schema_same(&x, &y));
	/* The text of a default does not count, its value does. */
	x = schema(STRUCT("{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"double\",\"write-"
			  "default\":1e1}"));
	y = schema(STRUCT("{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"double\",\"write-"
			  "default\":10.0}"));
	ck_assert(schema_same(&x, &y));
}
END_TEST

START_TEST(versions)
{
	struct err err = {0};
	struct schema s = schema(STRUCT(FIELD(1, "l", LIST(2, "\"variant\"", false), true)));
	UNIT_STATUS(schema_check_version(&s, 2, &err), ST_VALIDATION);
	ck_assert_msg(strstr(err.msg, "variant is not supported until v3") != NULL, "%s", err.msg);
	ck_assert_msg(strstr(err.msg, "l.element") != NULL, "%s", err.msg);
	UNIT_OK(schema_check_version(&s, 3, &err), &err);
	s = schema(STRUCT("{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\",\"initial-"
			  "default\":1}"));
	UNIT_STATUS(schema_check_version(&s, 2, &err), ST_VALIDATION);
	UNIT_OK(schema_check_version(&s, 3, &err), &err);
	/* A write default is not checked, nor is an initial default of null. */
	s = schema(STRUCT("{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"int\",\"initial-"
			  "default\":null,"
			  "\"write-default\":1}"));
	UNIT_OK(schema_check_version(&s, 1, &err), &err);
}
END_TEST

/* Order of the reference implementation: a struct's fields first, then what each holds. */
START_TEST(fresh)
{
	struct err err = {0};
	struct schema s = schema(deep), f;
	UNIT_OK(schema_fresh(&s, 1, &a, &f, &err), &err);
	static const char *const order[] = {"id",    "s",       "l",         "m",
					    "s.x",   "s.y",     "l.element", "l.element.x",
					    "m.key", "m.value", "m.value.v"};
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const struct schema_node *n = schema_find_name(&f, strv_of(order[i]));
		ck_assert_msg(n && n->id == (int32_t)i + 1, "%s", order[i]);
	}
	ck_assert_int_eq(f.highest_id, 11);
	ck_assert_uint_eq(f.n_identifier, 2);
	ck_assert(f.identifier_ids[0] == 1 && f.identifier_ids[1] == 5);
	int32_t id = 0;
	ck_assert(schema_remap(&s, &f, 43, &id) && id == 11);
	ck_assert(schema_remap(&s, &f, 21, &id) && id == 5);
	ck_assert(!schema_remap(&s, &f, 99, &id));
	/* The original is untouched. */
	ck_assert_ptr_nonnull(schema_find(&s, 43));
	ck_assert_int_eq(s.fields[0].id, 20);
	UNIT_STATUS(schema_fresh(&s, SCHEMA_MAX_ID - 3, &a, &f, &err), ST_LIMIT);
}
END_TEST

static void same_text(const struct schema *s, struct strv json)
{
	/* Java keeps the order in which identifier fields were given; ours ascends. */
	struct err err = {0};
	struct jdoc *d = NULL;
	struct schema want;
	UNIT_OK(jdoc_parse(strv_bytes(json), ST_CORRUPT, &d, &err), &err);
	UNIT_OK(schema_parse(jdoc_root(d), ST_CORRUPT, &a, &want, &err), &err);
	ck_assert(schema_same(s, &want));
	jdoc_free(d);
	struct strv got = written(s);
	if (s->n_identifier < 2)
		ck_assert_msg(strv_eq(got, json), "%.*s", STRV_ARG(got));
	size_t i = strv_find(got, '['), k = strv_find(json, '[');
	ck_assert(strv_eq(strv_sub(got, 0, i), strv_sub(json, 0, k)));
	i += strv_find(strv_sub(got, i, got.n), ']');
	k += strv_find(strv_sub(json, k, json.n), ']');
	if (s->n_identifier > 0)
		ck_assert_msg(strv_eq(strv_sub(got, i, got.n), strv_sub(json, k, json.n)), "%.*s",
			      STRV_ARG(got));
}

START_TEST(golden_java)
{
	struct jdoc *d = golden_load("tests/golden/values_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "schemas");
	ck_assert_uint_eq(jval_count(rows), 2);
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		struct schema s = schema(golden_str(row, "given").p), f;
		struct err err = {0};
		same_text(&s, golden_str(row, "written"));
		UNIT_OK(schema_fresh(&s, 1, &a, &f, &err), &err);
		same_text(&f, golden_str(row, "fresh"));
	}
	jdoc_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("schema");
	TCase *t = tcase_create("schema");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nodes);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, refused);
	tcase_add_test(t, identifiers);
	tcase_add_test(t, sameness);
	tcase_add_test(t, versions);
	tcase_add_test(t, fresh);
	tcase_add_test(t, golden_java);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
