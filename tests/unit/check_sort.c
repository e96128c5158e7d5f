#include "proto/iceberg/sort.h"

#include "tests/unit/unit.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, 1 << 20);
}

static void teardown(void)
{
	arena_fini(&a);
}

static struct jdoc *doc(const char *text)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_CORRUPT, &d, &err), &err);
	return d;
}

static enum status try(const char *json, struct sort_order *ret_order, struct err *err)
{
	struct jdoc *d = doc(json);
	enum status st = sort_parse(jdoc_root(d), ST_CORRUPT, &a, ret_order, err);
	jdoc_free(d);
	return st;
}

static struct sort_order order(const char *json)
{
	struct err err = {0};
	struct sort_order o;
	UNIT_OK(try(json, &o, &err), &err);
	return o;
}

#define F(transform, source, direction, nulls)                                                     \
	"{\"transform\":\"" transform "\",\"source-id\":" #source ",\"direction\":\"" direction    \
	"\",\"null-order\":\"" nulls "\"}"
#define O(fields) "{\"order-id\":1,\"fields\":[" fields "]}"

/* The example of spec Appendix C. */
static const char example[] =
	O(F("identity", 2, "asc", "nulls-first") "," F("bucket[4]", 3, "desc", "nulls-last"));

START_TEST(round_trip)
{
	static const char *const rows[] = {
		example,
		"{\"order-id\":0,\"fields\":[]}",
		"{\"fields\":[{\"transform\":\"zorder\",\"source-ids\":[1,2],\"direction\":\"asc\","
		"\"null-order\":\"nulls-first\",\"x\":1}],\"y\":2}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sort_order o = order(rows[i]);
		struct buf b;
		struct jwrite w;
		buf_init(&b, 4096);
		jwrite_init(&w, &b);
		sort_write(&w, &o);
		ck_assert_msg(strv_eq(buf_strv(&b), strv_of(rows[i])), "%.*s",
			      STRV_ARG(buf_strv(&b)));
		buf_fini(&b);
	}
	struct sort_order o = order(example);
	ck_assert(!o.fields[0].descending && !o.fields[0].nulls_last);
	ck_assert(o.fields[1].descending && o.fields[1].nulls_last);
}
END_TEST

START_TEST(refused)
{
	static const char *const rows[][2] = {
		{"[]", ""},
		{"{\"order-id\":1}", "fields"},
		{O("7"), "fields[0]"},
		{O(F("identity", 1, "up", "nulls-first")), "fields[0].direction"},
		{O(F("identity", 1, "asc", "first")), "fields[0].null-order"},
		{O(F("truncate[0]", 1, "asc", "nulls-first")), "fields[0].transform"},
		{O("{\"transform\":\"identity\",\"direction\":\"asc\",\"null-order\":\"nulls-"
		   "first\"}"),
		 "fields[0].source-id"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		struct sort_order o = {.n = 77};
		ck_assert_msg(try(rows[i][0], &o, &err) == ST_CORRUPT, "%s", rows[i][0]);
		ck_assert_str_eq(err.field, rows[i][1]);
		ck_assert_uint_eq(o.n, 77);
	}
}
END_TEST

START_TEST(comparison)
{
	struct sort_order x = order(example), y = order(example);
	y.order_id = 7;
	ck_assert(sort_same(&x, &y));
	static const char *const differ[] = {
		O(""),
		O(F("identity", 2, "asc", "nulls-first")),
		O(F("identity", 9, "asc", "nulls-first") "," F("bucket[4]", 3, "desc",
							       "nulls-last")),
		O(F("identity", 2, "desc", "nulls-first") "," F("bucket[4]", 3, "desc",
								"nulls-last")),
		O(F("identity", 2, "asc", "nulls-last") "," F("bucket[4]", 3, "desc",
							      "nulls-last")),
		O(F("identity", 2, "asc", "nulls-first") "," F("bucket[5]", 3, "desc",
							       "nulls-last")),
		O(F("bucket[4]", 3, "desc", "nulls-last") "," F("identity", 2, "asc",
								"nulls-first")),
	};
	for (size_t i = 0; i < ARRAY_SIZE(differ); i++) {
		y = order(differ[i]);
		ck_assert_msg(!sort_same(&x, &y), "%s", differ[i]);
	}
}
END_TEST

START_TEST(rules)
{
	struct err err = {0};
	struct schema s;
	struct jdoc *d = doc("{\"type\":\"struct\",\"fields\":["
			     "{\"id\":2,\"name\":\"a\",\"required\":true,\"type\":\"long\"},"
			     "{\"id\":3,\"name\":\"b\",\"required\":true,\"type\":\"string\"},"
			     "{\"id\":4,\"name\":\"v\",\"required\":false,\"type\":\"variant\"}]}");
	UNIT_OK(schema_parse(jdoc_root(d), ST_CORRUPT, &a, &s, &err), &err);
	jdoc_free(d);
	struct sort_order o = order(example);
	UNIT_OK(sort_check(&o, &s, &err), &err);
	o = order(O(F("identity", 9, "asc", "nulls-first")));
	UNIT_STATUS(sort_check(&o, &s, &err), ST_VALIDATION);
	ck_assert_msg(strstr(err.msg, "Cannot find source column") != NULL, "%s", err.msg);
	o = order(O(F("identity", 2, "asc", "nulls-first") "," F("day", 3, "asc", "nulls-first")));
	UNIT_STATUS(sort_check(&o, &s, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "fields[1]");
	o = order(O(F("identity", 4, "asc", "nulls-first")));
	UNIT_STATUS(sort_check(&o, &s, &err), ST_VALIDATION);
	o = order(O(""));
	UNIT_OK(sort_check(&o, &s, &err), &err);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("sort");
	TCase *t = tcase_create("sort");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, refused);
	tcase_add_test(t, comparison);
	tcase_add_test(t, rules);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
