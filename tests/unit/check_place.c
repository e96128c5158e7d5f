#include "proto/iceberg/place.h"

#include "tests/unit/unit.h"

START_TEST(spelling)
{
	static const struct {
		const char *text;
		enum status st;
	} rows[] = {
		{"file:///w/t", ST_OK},
		{"file:///w/t/", ST_OK},
		{"/w//t", ST_OK},
		{"/w/a.b/..c/d../...", ST_OK},
		{"/w/a b/\xc3\xbc", ST_OK},
		{"/w/100%", ST_OK},
		{"/w/%zz/%4", ST_OK},
		{"/w/%41", ST_OK},
		{"", ST_ILLEGAL_ARGUMENT},
		{"/w/.", ST_ILLEGAL_ARGUMENT},
		{"/w/./t", ST_ILLEGAL_ARGUMENT},
		{"/w/../t", ST_ILLEGAL_ARGUMENT},
		{"/w/%2e%2E/t", ST_ILLEGAL_ARGUMENT},
		{"/w/.%2e", ST_ILLEGAL_ARGUMENT},
		{"/w/%2E/", ST_ILLEGAL_ARGUMENT},
		{"/w%2ft", ST_ILLEGAL_ARGUMENT},
		{"/w%5Ct", ST_ILLEGAL_ARGUMENT},
		{"/w\\t", ST_ILLEGAL_ARGUMENT},
		{"/w/%00", ST_ILLEGAL_ARGUMENT},
		{"/w/a\nb", ST_ILLEGAL_ARGUMENT},
		{"/w/\x7f", ST_ILLEGAL_ARGUMENT},
		{" /w", ST_ILLEGAL_ARGUMENT},
		{"/w ", ST_ILLEGAL_ARGUMENT},
		{"/w\t", ST_ILLEGAL_ARGUMENT},
		{"/w\xc2\xa0", ST_ILLEGAL_ARGUMENT},
		{"/w\xe3\x80\x80", ST_ILLEGAL_ARGUMENT},
		{"\xef\xbb\xbf/w", ST_ILLEGAL_ARGUMENT},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = {0};
		enum status st = place_check(strv_of(rows[i].text), &err);
		ck_assert_msg(st == rows[i].st, "row %zu \"%s\": %d %s", i, rows[i].text, (int)st,
			      err.msg);
	}
	struct err err;
	ck_assert_int_eq(place_check((struct strv){"/w\0t", 4}, &err), ST_ILLEGAL_ARGUMENT);
}
END_TEST

/* An index entry has 2,704 bytes; what is not ASCII takes four for one. */
START_TEST(length)
{
	char text[2500];
	struct err err;
	memset(text, 'a', sizeof text);
	text[0] = '/';
	ck_assert_int_eq(place_check((struct strv){text, 2398}, &err), ST_OK);
	ck_assert_int_eq(place_check((struct strv){text, 2399}, &err), ST_ILLEGAL_ARGUMENT);
	for (size_t i = 1; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "\xc3\xbc", 2);
	ck_assert_int_eq(place_check((struct strv){text, 599}, &err), ST_OK);
	ck_assert_int_eq(place_check((struct strv){text, 601}, &err), ST_ILLEGAL_ARGUMENT);
}
END_TEST

START_TEST(beneath)
{
	static const struct {
		const char *folder, *path;
		bool want;
	} rows[] = {
		{"/w/t", "/w/t/f", true},
		{"/w/t/", "/w/t/f", true},
		{"file:///w/t", "/w/t/d/f", true},
		{"/w/t", "file:/w/t/f", true},
		{"/w/t", "FILE:///w//t/./f", true},
		{"/w//t", "/w/t//f", true},
		{"/", "/w", true},
		{"s3://b/t", "s3://b/t/f", true},
		{"/w/t", "/w/t", false},
		{"/w/t", "/w/t/", false},
		{"/w/t", "/w/t/.", false},
		{"/w/t", "/w/t2/f", false},
		{"/w/t", "/w/f", false},
		{"/w/t", "/w/t/../f", false},
		{"/w/t", "/w/t/x/../f", false},
		{"/w/t", "/w/T/f", false},
		{"/w/t", "file://w/t/f", false},
		{"/w/%41", "/w/A/f", false},
		{"s3://b/t", "s3://c/t/f", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ck_assert_msg(place_beneath(strv_of(rows[i].folder), strv_of(rows[i].path)) ==
				      rows[i].want,
			      "row %zu: %s %s", i, rows[i].folder, rows[i].path);
}
END_TEST

START_TEST(keys)
{
	ck_assert(place_is_key(STRV("write.data.path")));
	ck_assert(place_is_key(STRV("write.metadata.path")));
	ck_assert(!place_is_key(STRV("write.data.path2")));
	ck_assert(!place_is_key(STRV("")));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("place");
	TCase *t = tcase_create("place");
	tcase_add_test(t, spelling);
	tcase_add_test(t, length);
	tcase_add_test(t, beneath);
	tcase_add_test(t, keys);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
