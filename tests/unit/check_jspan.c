#include "proto/base/jspan.h"
#include "tests/unit/unit.h"

static const struct jspan *parse(struct arena *a, const char *text)
{
	struct err err = {0};
	const struct jspan *v = NULL;
	UNIT_OK(jspan_parse(strv_bytes(strv_of(text)), ST_CORRUPT, a, &v, &err), &err);
	return v;
}

/* What RFC 8259 forbids, and what Iceberg's own parsers refuse (duplicate keys). */
static const char *const bad[] = {
	"",
	" ",
	"nul",
	"tru",
	"True",
	"+1",
	"01",
	"-",
	"1.",
	".5",
	"1e",
	"1e+",
	"-01",
	"NaN",
	"[",
	"]",
	"{",
	"}",
	"[1",
	"[1,",
	"[1,]",
	"[,1]",
	"[1 2]",
	"{\"a\"",
	"{\"a\":",
	"{\"a\":1",
	"{\"a\":1,",
	"{\"a\":1,}",
	"{a:1}",
	"{\"a\" 1}",
	"{1:2}",
	"{,}",
	"[}",
	"{]",
	"[1}",
	"{\"a\":1]",
	"1 1",
	"{} x",
	"\"",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u12g4\"",
	"\"\\ud800\"",
	"\"\\udc00\"",
	"\"\\ud800\\u0041\"",
	"\"\\ud800x\"",
	"\"\x01\"",
	"\"\t\"",
	"\"\xc3\"",
	"\"\xed\xa0\x80\"",
	"\"\xc0\x80\"",
	"'a'",
	"/**/1",
	"{\"a\":1,\"a\":2}",
	"{\"a\":1,\"\\u0061\":2}",
	"[{\"x\":{\"b\":0,\"b\":0}}]",
	"\xef\xbb\xbf{}",
};

START_TEST(refusals)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct arena a;
		struct err err = {0};
		const struct jspan *v = NULL;
		arena_init(&a, 100000);
		enum status st = jspan_parse(strv_bytes(strv_of(bad[i])), ST_CORRUPT, &a, &v, &err);
		ck_assert_msg(st == ST_CORRUPT, "accepted: %s", bad[i]);
		ck_assert_ptr_null(v);
		ck_assert_int_eq(err.st, ST_CORRUPT);
		arena_fini(&a);
	}
}
END_TEST

/* Every proper prefix of a document is malformed. */
START_TEST(prefixes)
{
	const char *text = "{\"a\":[1,-2.5e+3,true,null],\"b\":{\"c\":\"\\ud83d\\ude00\"}}";
	for (size_t n = 0; n < strlen(text); n++) {
		struct arena a;
		const struct jspan *v;
		arena_init(&a, 100000);
		UNIT_STATUS(jspan_parse((struct bytes){(const uint8_t *)text, n}, ST_CORRUPT, &a,
					&v, NULL),
			    ST_CORRUPT);
		arena_fini(&a);
	}
}
END_TEST

START_TEST(structure)
{
	struct arena a;
	struct strv s;
	int64_t i64;
	int32_t i32;
	arena_init(&a, 100000);
	const struct jspan *o =
		parse(&a, " { \"a\" : [ 1 , [ ] , { } , \"x\\n\\u00e9\\ud83d\\ude00\" ] ,"
			  "\"\\u0062\":-9223372036854775808,\"c\":1.50E2, \"d\" : null } ");
	ck_assert_uint_eq(o->count, 4);
	const struct jspan *arr = jspan_get(o, "a");
	ck_assert_uint_eq(arr->count, 4);
	size_t n = 0;
	const enum jspan_kind kinds[] = {JSPAN_NUMBER, JSPAN_ARRAY, JSPAN_OBJECT, JSPAN_STRING};
	JSPAN_EACH(e, arr)
	{
		ck_assert_int_eq(e->kind, kinds[n]);
		if (++n == 4) {
			ck_assert(jspan_str(e, &a, &s));
			ck_assert(strv_eq(s, STRV("x\né😀")));
		}
	}
	ck_assert_uint_eq(n, 4);
	ck_assert(jspan_i64(jspan_get(o, "b"), &i64));
	ck_assert_int_eq(i64, INT64_MIN);
	ck_assert(!jspan_i32(jspan_get(o, "b"), &i32));
	ck_assert(!jspan_i64(jspan_get(o, "c"), &i64));
	ck_assert(strv_eq(jspan_text(jspan_get(o, "c")), STRV("1.50E2")));
	ck_assert(jspan_is_null(jspan_get(o, "d")));
	ck_assert_ptr_null(jspan_get(o, "e"));
	ck_assert_ptr_null(jspan_get(arr, "a"));
	n = 0;
	JSPAN_EACH(none, jspan_get(o, "e"))
	n += none != NULL;
	JSPAN_EACH(none, o)
	n += none != NULL;
	ck_assert_uint_eq(n, 0);
	struct buf b;
	buf_init(&b, 1000);
	jspan_compact(o, &b);
	ck_assert(strv_eq(buf_strv(&b),
			  STRV("{\"a\":[1,[],{},\"x\\n\\u00e9\\ud83d\\ude00\"],"
			       "\"\\u0062\":-9223372036854775808,\"c\":1.50E2,\"d\":null}")));
	buf_fini(&b);
	arena_fini(&a);
}
END_TEST

START_TEST(typed)
{
	struct arena a;
	struct err err = {0};
	arena_init(&a, 100000);
	const struct jspan *o = parse(&a, "{\"s\":\"t\",\"n\":7,\"z\":null,\"a\":[],\"f\":1.0}"),
			   *v = o;
	struct strv s = {0};
	int64_t n = 3;
	int32_t k = 3;
	bool has = true;
	UNIT_OK(jspan_need_str(o, "s", ST_CORRUPT, &a, &s, &err), &err);
	ck_assert(strv_eq(s, STRV("t")));
	UNIT_STATUS(jspan_need_str(o, "z", ST_CORRUPT, &a, &s, &err), ST_CORRUPT);
	ck_assert_str_eq(err.field, "z");
	UNIT_STATUS(jspan_need_i64(o, "f", ST_BAD_REQUEST, &n, &err), ST_BAD_REQUEST);
	UNIT_STATUS(jspan_need_i32(o, "x", ST_BAD_REQUEST, &k, &err), ST_BAD_REQUEST);
	UNIT_OK(jspan_opt_i64(o, "z", ST_CORRUPT, &n, &has, &err), &err);
	ck_assert(!has && n == 3);
	UNIT_OK(jspan_opt_i32(o, "n", ST_CORRUPT, &k, &has, &err), &err);
	ck_assert(has && k == 7);
	UNIT_STATUS(jspan_opt_str(o, "n", ST_CORRUPT, &a, &s, &has, &err), ST_CORRUPT);
	UNIT_STATUS(jspan_opt_object(o, "a", ST_CORRUPT, &v, &err), ST_CORRUPT);
	UNIT_OK(jspan_opt_array(o, "z", ST_CORRUPT, &v, &err), &err);
	ck_assert_ptr_null(v);
	arena_fini(&a);
}
END_TEST

/* Large objects take the sorting path. */
START_TEST(many_keys)
{
	for (int twice = 0; twice < 2; twice++) {
		struct buf b;
		struct arena a;
		const struct jspan *v;
		buf_init(&b, 100000);
		buf_putc(&b, '{');
		for (int i = 0; i < 500; i++)
			buf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i, i);
		buf_puts(&b, twice ? ",\"k\\u0037\":0}" : "}");
		arena_init(&a, 1000000);
		UNIT_STATUS(jspan_parse(buf_bytes(&b), ST_CORRUPT, &a, &v, NULL),
			    twice ? ST_CORRUPT : ST_OK);
		arena_fini(&a);
		buf_fini(&b);
	}
}
END_TEST

START_TEST(limits)
{
	struct arena a;
	const struct jspan *v;
	char deep[2 * JSPAN_MAX_DEPTH + 2];
	arena_init(&a, 100000);
	memset(deep, '[', JSPAN_MAX_DEPTH + 1);
	memset(deep + JSPAN_MAX_DEPTH + 1, ']', JSPAN_MAX_DEPTH + 1);
	struct bytes whole = {(const uint8_t *)deep, sizeof deep};
	UNIT_STATUS(jspan_parse(whole, ST_CORRUPT, &a, &v, NULL), ST_CORRUPT);
	UNIT_STATUS(jspan_parse((struct bytes){whole.p + 1, whole.n - 2}, ST_CORRUPT, &a, &v, NULL),
		    ST_OK);
	arena_fini(&a);
	arena_init(&a, 100);
	UNIT_STATUS(jspan_parse(strv_bytes(STRV("[1,2,3,4,5,6,7,8,9]")), ST_CORRUPT, &a, &v, NULL),
		    ST_LIMIT);
	arena_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("jspan");
	TCase *t = tcase_create("jspan");
	tcase_add_test(t, refusals);
	tcase_add_test(t, prefixes);
	tcase_add_test(t, structure);
	tcase_add_test(t, typed);
	tcase_add_test(t, many_keys);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
