/* Bodies of the namespace routes. */
#include "proto/rest/rb_ns.h"
#include "tests/unit/unit.h"

static struct arena arena;
static struct err err;
static struct buf out;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 16);
	err = (struct err){0};
}
static void teardown(void)
{
	arena_fini(&arena);
	buf_fini(&out);
}

static struct bytes text(const char *z)
{
	return (struct bytes){(const uint8_t *)z, strlen(z)};
}

static void wrote(const char *want)
{
	ck_assert(buf_ok(&out));
	ck_assert_msg(strv_eq(buf_strv(&out), strv_of(want)), "got  %.*s\nwant %s",
		      STRV_ARG(buf_strv(&out)), want);
}

START_TEST(create)
{
	struct rb_ns_create r;
	/* As the Java client sends it. */
	UNIT_OK(rb_ns_create_parse(text("{\"namespace\":[\"accounting\",\"tax\"],\"properties\":"
					"{\"owner\":\"Hank\"},\"later\":[1]}"),
				   &arena, &r, &err),
		&err);
	ck_assert_uint_eq(r.n_levels, 2);
	ck_assert(strv_eq(r.levels[0], STRV("accounting")));
	ck_assert_uint_eq(r.n_properties, 1);
	ck_assert(strv_eq(r.properties[0].key, STRV("owner")));
	ck_assert(strv_eq(r.properties[0].value, STRV("Hank")));
	rb_ns_write(&out, r.levels, r.n_levels, STRV("{\"owner\":\"Hank\"}"));
	wrote("{\"namespace\":[\"accounting\",\"tax\"],\"properties\":{\"owner\":\"Hank\"}}");
	buf_clear(&out);
	rb_ns_properties_write(&out, r.properties, r.n_properties);
	wrote("{\"owner\":\"Hank\"}");
	jdoc_free(r.doc);
	UNIT_OK(rb_ns_create_parse(text("{\"namespace\":[\"a\"],\"properties\":null}"), &arena, &r,
				   &err),
		&err);
	ck_assert_uint_eq(r.n_properties, 0);
	jdoc_free(r.doc);
}
END_TEST

START_TEST(create_refused)
{
	static const struct {
		const char *body, *field;
	} bad[] = {
		/* The first three are those of Java's parser tests. */
		{"{\"namespace\":\"accounting%1Ftax\",\"properties\":null}", "namespace"},
		{"{\"namespace\":[\"accounting\",\"tax\"],\"properties\":[]}", "properties"},
		{"{}", "namespace"},
		{"{\"namespace\":[]}", "namespace"},
		{"{\"namespace\":[\"a\"],\"properties\":{\"k\":1}}", "properties"},
		{"{\"namespace\":[\"a\"],\"properties\":{\"k\":null}}", "properties"},
		{"{\"namespace\":[\"a\",null]}", "namespace[1]"},
		{"[]", ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rb_ns_create r;
		err = (struct err){0};
		UNIT_STATUS(rb_ns_create_parse(text(bad[i].body), &arena, &r, &err),
			    ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, bad[i].field);
	}
}
END_TEST

START_TEST(update)
{
	struct rb_ns_update r;
	/* The specification's example, foo being set and bar not. */
	UNIT_OK(rb_ns_update_parse(text("{\"removals\":[\"foo\",\"bar\",\"foo\"],\"updates\":"
					"{\"owner\":\"Raoul\"}}"),
				   &arena, &r, &err),
		&err);
	ck_assert_uint_eq(r.n_removals, 2);
	ck_assert_uint_eq(r.n_updates, 1);
	bool removed[] = {false, false};
	ck_assert_uint_lt(rb_ns_removal(&r, STRV("foo")), 2);
	removed[rb_ns_removal(&r, STRV("foo"))] = true;
	ck_assert_uint_eq(rb_ns_removal(&r, STRV("owner")), 2);
	rb_ns_updated_write(&out, &r, removed);
	wrote("{\"updated\":[\"owner\"],\"removed\":[\"foo\"],\"missing\":[\"bar\"]}");
	jdoc_free(r.doc);
	UNIT_OK(rb_ns_update_parse(text("{}"), &arena, &r, &err), &err);
	ck_assert_uint_eq(r.n_removals + r.n_updates, 0);
	buf_clear(&out);
	rb_ns_updated_write(&out, &r, NULL);
	wrote("{\"updated\":[],\"removed\":[],\"missing\":[]}");
	jdoc_free(r.doc);
}
END_TEST

START_TEST(update_refused)
{
	struct rb_ns_update r;
	UNIT_STATUS(rb_ns_update_parse(text("{\"removals\":[\"b\",\"a\"],\"updates\":"
					    "{\"c\":\"1\",\"a\":\"1\"}}"),
				       &arena, &r, &err),
		    ST_UNPROCESSABLE);
	UNIT_STATUS(rb_ns_update_parse(text("{\"removals\":{}}"), &arena, &r, &err),
		    ST_BAD_REQUEST);
	UNIT_STATUS(rb_ns_update_parse(text("{\"updates\":{\"a\":{}}}"), &arena, &r, &err),
		    ST_BAD_REQUEST);
}
END_TEST

START_TEST(list)
{
	const struct strv parent[] = {STRV("accounting")};
	const struct strv names[] = {STRV("credits"), STRV("tax")};
	rb_ns_list_write(&out, parent, 1, names, 2, false, 1);
	wrote("{\"namespaces\":[[\"accounting\",\"credits\"],[\"accounting\",\"tax\"]],"
	      "\"next-page-token\":null}");
	buf_clear(&out);
	rb_ns_list_write(&out, NULL, 0, names, 2, true, 0xabc);
	wrote("{\"namespaces\":[[\"credits\"],[\"tax\"]],\"next-page-token\":\"20000000000000abc746178\"}");
	buf_clear(&out);
	rb_ns_list_write(&out, NULL, 0, NULL, 0, false, 1);
	wrote("{\"namespaces\":[],\"next-page-token\":null}");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rb_ns");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, create);
	tcase_add_test(t, create_refused);
	tcase_add_test(t, update);
	tcase_add_test(t, update_refused);
	tcase_add_test(t, list);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
