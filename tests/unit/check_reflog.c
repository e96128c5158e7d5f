/* What is known of a ref since the table was taken over; what is not known counts as moved. */
#include "daemon/commit/reflog.h"

#include "proto/iceberg/ids.h"
#include "tests/unit/unit.h"

static struct bitmap64 *rows(uint64_t a, uint64_t b)
{
	struct bitmap64 *s = bitmap64_new();
	struct err err;
	UNIT_OK(bitmap64_add(s, a, &err), &err);
	UNIT_OK(bitmap64_add(s, b, &err), &err);
	return s;
}

START_TEST(steps)
{
	struct reflog *l = reflog_new(STRV("main"), 10);
	ck_assert(strv_eq(reflog_ref(l), STRV("main")));
	ck_assert_int_eq(reflog_head(l), 10);
	ck_assert(reflog_saw(l, 10) && reflog_knows(l, 10));
	ck_assert(!reflog_saw(l, 9) && !reflog_knows(l, 9)); /* before the start */
	reflog_ours(l, 11);
	reflog_ours(l, 12);
	ck_assert_int_eq(reflog_head(l), 12);
	ck_assert(reflog_knows(l, 10) && reflog_knows(l, 11) && reflog_knows(l, 12));
	/* Somebody's deletions are as good as ours; whatever else they did is not known. */
	reflog_foreign(l, 13, true);
	ck_assert(reflog_knows(l, 10));
	reflog_foreign(l, 14, false);
	ck_assert(!reflog_knows(l, 10) && !reflog_knows(l, 13));
	ck_assert(reflog_knows(l, 14) && reflog_saw(l, 10));
	reflog_ours(l, 15);
	ck_assert(!reflog_knows(l, 13) && reflog_knows(l, 14));
	reflog_free(l);
}
END_TEST

START_TEST(files)
{
	struct reflog *l = reflog_new(STRV("main"), SNAPSHOT_NONE);
	struct strv f = STRV("file:///t/f"), g = STRV("file:///t/g");
	struct bitmap64 *none = bitmap64_new(), *a = rows(1, 2), *b = rows(2, 7);
	reflog_moved(l, f, none);
	ck_assert_ptr_null(reflog_moved_of(l, f));
	reflog_moved(l, f, a);
	reflog_moved(l, f, b);
	ck_assert_uint_eq(bitmap64_cardinality(reflog_moved_of(l, f)), 3);
	ck_assert(bitmap64_contains(reflog_moved_of(l, f), 7));
	ck_assert_ptr_null(reflog_moved_of(l, g));
	ck_assert(!reflog_was_emptied(l, f));
	reflog_emptied(l, f);
	ck_assert(reflog_was_emptied(l, f) && !reflog_was_emptied(l, g));
	ck_assert_uint_eq(bitmap64_cardinality(reflog_moved_of(l, f)), 3);
	/* The ref went elsewhere: nothing of this holds. */
	reflog_reset(l, 5);
	ck_assert_ptr_null(reflog_moved_of(l, f));
	ck_assert(!reflog_was_emptied(l, f) && !reflog_saw(l, SNAPSHOT_NONE));
	ck_assert(reflog_knows(l, 5));
	bitmap64_free(none);
	bitmap64_free(a);
	bitmap64_free(b);
	reflog_free(l);
}
END_TEST

START_TEST(bounded)
{
	struct reflog *l = reflog_new(STRV("main"), 0);
	for (int64_t i = 1; i <= 70000; i++)
		reflog_ours(l, i);
	/* It started anew on the way: old snapshots are refused, new ones are not. */
	ck_assert(!reflog_knows(l, 0));
	ck_assert(reflog_knows(l, 70000) && reflog_head(l) == 70000);
	reflog_free(l);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("reflog");
	TCase *t = tcase_create("all");
	tcase_add_test(t, steps);
	tcase_add_test(t, files);
	tcase_add_test(t, bounded);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
