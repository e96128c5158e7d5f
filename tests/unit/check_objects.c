/* Decoded lists: what is refused. */
#include "daemon/commit/objects.h"

#include "tests/unit/core_table.h"

static struct core_table *t;

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "");
}

static void down(void)
{
	ct_close(t);
}

START_TEST(reading)
{
	struct err err = {0};
	(void)ct_append(t, CT_MAIN, "a", 10);
	ct_commit(t);
	const struct ct_object *list = ct_object(t, ct_snapshot(t, CT_MAIN)->manifest_list);
	struct mlist *l = NULL;
	UNIT_OK(mlist_read(list->data, CT_MAX, &l, &err), &err);
	ck_assert_uint_eq(l->l.n, 1);
	ck_assert_ptr_eq(mlist_ref(l), l);
	mlist_unref(l);
	mlist_unref(l);
	l = NULL;
	UNIT_STATUS(mlist_read((struct bytes){list->data.p, list->data.n - 1}, CT_MAX, &l, &err),
		    ST_CORRUPT);
	UNIT_STATUS(mlist_read(list->data, 64, &l, &err), ST_LIMIT);
	ck_assert(!l);
	mlist_unref(NULL);
	vec_unref(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("objects");
	TCase *c = tcase_create("objects");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, reading);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
