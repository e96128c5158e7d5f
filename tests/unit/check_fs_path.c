#include "store/obj/fs_path.h"

#include "tests/unit/unit.h"

static const struct {
	const char *uri;
	enum status st;
	const char *path;
} cases[] = {
	{"/a/b.parquet", ST_OK, "/a/b.parquet"},
	{"file:/a/b", ST_OK, "/a/b"},
	{"file:///a/b", ST_OK, "/a/b"},
	{"FILE:/a", ST_OK, "/a"},
	{"file:////a//b/./c/", ST_OK, "/a/b/c"},
	{"/", ST_OK, ""},
	/* Partition folders hold escapes that are part of the name. */
	{"file:/w/ts=2024-01-01T00%3A00/a%20b+c", ST_OK, "/w/ts=2024-01-01T00%3A00/a%20b+c"},
	{"/a/..b/b../...", ST_OK, "/a/..b/b../..."},
	{"/a:b/c", ST_OK, "/a:b/c"},
	{"file:/a/../b", ST_PATH_OUTSIDE, NULL},
	{"/..", ST_PATH_OUTSIDE, NULL},
	{"/a/b/..", ST_PATH_OUTSIDE, NULL},
	{"file://host/a", ST_UNSUPPORTED, NULL},
	{"file://", ST_UNSUPPORTED, NULL},
	{"s3://bucket/a", ST_UNSUPPORTED, NULL},
	{"hdfs:/a", ST_UNSUPPORTED, NULL},
	{"a/b", ST_ILLEGAL_ARGUMENT, NULL},
	{"file:a/b", ST_ILLEGAL_ARGUMENT, NULL},
	{"file:", ST_ILLEGAL_ARGUMENT, NULL},
	{"", ST_ILLEGAL_ARGUMENT, NULL},
};

START_TEST(forms)
{
	struct fs_path p = {.text = "untouched"};
	struct err err = {0};
	UNIT_STATUS(fs_path_of(strv_of(cases[_i].uri), &p, &err), cases[_i].st);
	ck_assert_str_eq(p.text, cases[_i].path ? cases[_i].path : "untouched");
	if (cases[_i].path)
		ck_assert_uint_eq(p.n, strlen(p.text));
	else
		ck_assert_str_eq(err.field, "path");
}
END_TEST

START_TEST(length_and_nul)
{
	static char text[FS_PATH_MAX + 1];
	memset(text, 'a', sizeof text);
	text[0] = '/';
	struct fs_path p;
	UNIT_STATUS(fs_path_of((struct strv){text, FS_PATH_MAX - 1}, &p, NULL), ST_OK);
	ck_assert_uint_eq(p.n, FS_PATH_MAX - 1);
	UNIT_STATUS(fs_path_of((struct strv){text, FS_PATH_MAX}, &p, NULL), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(fs_path_of((struct strv){"/a\0b", 4}, &p, NULL), ST_ILLEGAL_ARGUMENT);
}
END_TEST

START_TEST(beneath)
{
	static const struct {
		const char *root, *path, *rel;
	} t[] = {
		{"/w", "/w/a", "a"},      {"/w/", "file:///w//a/b", "a/b"},
		{"/", "/a", "a"},         {"/w", "/w", NULL},
		{"/w", "/wa/b", NULL},    {"/w/a", "/w/b", NULL},
		{"/w/a/b", "/w/a", NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct fs_path root, path;
		struct err err = {0};
		const char *rel = NULL;
		UNIT_OK(fs_path_of(strv_of(t[i].root), &root, &err), &err);
		UNIT_OK(fs_path_of(strv_of(t[i].path), &path, &err), &err);
		ck_assert(fs_path_beneath(&root, &path, &rel) == (t[i].rel != NULL));
		ck_assert_str_eq(rel ? rel : "", t[i].rel ? t[i].rel : "");
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fs_path");
	TCase *t = tcase_create("text");
	tcase_add_loop_test(t, forms, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(t, length_and_nul);
	tcase_add_test(t, beneath);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
