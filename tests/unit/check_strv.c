#include "proto/base/strv.h"
#include "tests/unit/unit.h"

START_TEST(compare)
{
	ck_assert_int_lt(strv_cmp(STRV("a"), STRV("b")), 0);
	ck_assert_int_lt(strv_cmp(STRV("a"), STRV("aa")), 0);
	ck_assert_int_gt(strv_cmp(STRV("\xff"), STRV("a")), 0); /* unsigned bytes */
	ck_assert_int_eq(strv_cmp(STRV(""), strv_of(NULL)), 0);
	ck_assert(strv_eq(STRV("a\0b"), (struct strv){"a\0b", 3}));
	ck_assert(!strv_eq(STRV("a\0b"), STRV("a\0c")));
	ck_assert(strv_ieq(STRV("If-None-MATCH"), STRV("if-none-match")));
	ck_assert(!strv_ieq(STRV("\xc3\x89"), STRV("\xc3\xa9"))); /* ASCII only */
	ck_assert(!strv_ieq(STRV("["), STRV("{")));
}
END_TEST

START_TEST(parts)
{
	ck_assert(strv_starts(STRV("file:///x"), STRV("file:")));
	ck_assert(strv_starts(STRV("x"), STRV("")));
	ck_assert(!strv_starts(STRV("x"), STRV("xy")));
	ck_assert(strv_ends(STRV("a.parquet"), STRV(".parquet")));
	ck_assert(!strv_ends(STRV("t"), STRV("et")));
	ck_assert_uint_eq(strv_find(STRV("ab/c/"), '/'), 2);
	ck_assert_uint_eq(strv_find(STRV("abc"), '/'), 3);
	ck_assert_uint_eq(strv_find(strv_of(NULL), '/'), 0);
	ck_assert(strv_eq(strv_sub(STRV("abcdef"), 2, 4), STRV("cd")));
	ck_assert(strv_eq(strv_sub(STRV("abc"), 2, 99), STRV("c")));
	ck_assert_uint_eq(strv_sub(STRV("abc"), 3, 1).n, 0);
	ck_assert_uint_eq(strv_sub(strv_of(NULL), 0, 5).n, 0);
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		const char *text;
		int64_t v;
	} good[] = {
		{"0", 0},
		{"-0", 0},
		{"007", 7},
		{"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN},
	};
	static const char *const bad[] = {"",
					  "-",
					  "+1",
					  " 1",
					  "1 ",
					  "0x10",
					  "1e3",
					  "--1",
					  "1-",
					  "9223372036854775808",
					  "1.0",
					  "\xd9\xa1",
					  "-9223372036854775809",
					  "99999999999999999999999"};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		int64_t v = 42;
		ck_assert_msg(strv_i64(strv_of(good[i].text), &v), "%s", good[i].text);
		ck_assert_int_eq(v, good[i].v);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int64_t v = 42;
		ck_assert_msg(!strv_i64(strv_of(bad[i]), &v), "%s", bad[i]);
		ck_assert_int_eq(v, 42);
	}
	int64_t v = 42;
	ck_assert(!strv_i64(STRV("1\0"), &v));
}
END_TEST

/* Boundaries of each length, and the ill-formed sequences of Unicode 15, table 3-7. */
START_TEST(utf8)
{
	static const char *const good[] = {"",
					   "plain",
					   "\x7f",
					   "\xc2\x80",
					   "\xdf\xbf",
					   "\xe0\xa0\x80",
					   "\xed\x9f\xbf",
					   "\xee\x80\x80",
					   "\xef\xbf\xbf",
					   "\xf0\x90\x80\x80",
					   "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x80",
					  "\xbf",
					  "\xc0\x80",
					  "\xc1\xbf",
					  "\xc2",
					  "\xc2\x41",
					  "\xc2\xc2",
					  "\xe0\x9f\xbf",
					  "\xe0\x80\x80",
					  "\xe1\x80",
					  "\xed\xa0\x80",
					  "\xed\xbf\xbf",
					  "\xf0\x8f\xbf\xbf",
					  "\xf0\x90\x80",
					  "\xf4\x90\x80\x80",
					  "\xf5\x80\x80\x80",
					  "\xff",
					  "ok\xe2\x82"};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(strv_utf8(strv_of(good[i])), "good %zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!strv_utf8(strv_of(bad[i])), "bad %zu", i);
	ck_assert(strv_utf8(STRV("a\0b")));
}
END_TEST

START_TEST(cstr)
{
	char out[4] = "xxx";
	ck_assert(!strv_cstr(STRV("abcd"), out, sizeof out));
	ck_assert(!strv_cstr(STRV("a\0b"), out, sizeof out));
	ck_assert_str_eq(out, "xxx");
	ck_assert(strv_cstr(STRV("abc"), out, sizeof out));
	ck_assert_str_eq(out, "abc");
	ck_assert(strv_cstr(strv_of(NULL), out, sizeof out));
	ck_assert_str_eq(out, "");
}
END_TEST

/* Values of the FNV reference page, 64-bit FNV-1a. */
START_TEST(hash)
{
	ck_assert_uint_eq(bytes_hash(strv_bytes(STRV(""))), 0xcbf29ce484222325u);
	ck_assert_uint_eq(bytes_hash(strv_bytes(STRV("a"))), 0xaf63dc4c8601ec8cu);
	ck_assert_uint_eq(bytes_hash(strv_bytes(STRV("foobar"))), 0x85944171f73967e8u);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("strv");
	TCase *t = tcase_create("strv");
	tcase_add_test(t, compare);
	tcase_add_test(t, parts);
	tcase_add_test(t, numbers);
	tcase_add_test(t, utf8);
	tcase_add_test(t, cstr);
	tcase_add_test(t, hash);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
