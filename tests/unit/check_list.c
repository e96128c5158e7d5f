#include "proto/base/list.h"
#include "tests/unit/unit.h"

struct item {
	int n;
	struct list node;
};

START_TEST(order)
{
	struct list l;
	struct item it[5];
	list_init(&l);
	ck_assert(list_empty(&l));
	ck_assert_ptr_null(list_pop_front(&l));
	for (int i = 0; i < 5; i++) {
		it[i].n = i;
		list_init(&it[i].node);
	}
	for (int i = 1; i < 5; i++)
		list_push_back(&l, &it[i].node);
	list_push_front(&l, &it[0].node);
	/* Removing the current node inside the loop is allowed. */
	int want = 0;
	LIST_FOR(at, tmp, &l)
	{
		struct item *x = LIST_ITEM(at, struct item, node);
		ck_assert_int_eq(x->n, want++);
		if (x->n % 2)
			list_remove(at);
	}
	ck_assert_int_eq(want, 5);
	ck_assert(list_empty(&it[1].node));
	list_remove(&it[1].node); /* twice is harmless */
	for (int i = 0; i < 5; i += 2)
		ck_assert_int_eq(LIST_ITEM(list_pop_front(&l), struct item, node)->n, i);
	ck_assert(list_empty(&l));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("list");
	TCase *t = tcase_create("list");
	tcase_add_test(t, order);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
