/* Every object that snapshots reach: each manifest once, however little has room, also when resumed. */
#include "daemon/commit/walk.h"

#include "tests/unit/core_table.h"

static struct core_table *t;
static size_t objects, live, dead;
static struct strv told[512];

static void tell_object(void *ctx, struct strv path)
{
	ck_assert_ptr_eq(ctx, t);
	ck_assert_uint_lt(objects, ARRAY_SIZE(told));
	ck_assert(arena_strv(&t->arena, path, &told[objects++]));
}

static void tell_entry(void *ctx, const struct manifest_entry *e)
{
	ck_assert_ptr_eq(ctx, t);
	live += e->status != ENTRY_DELETED;
	dead += e->status == ENTRY_DELETED;
}

static void up(void)
{
	static struct core_table table;
	char name[32];
	t = &table;
	ct_open(t, 3, "");
	objects = live = dead = 0;
	/* Eight snapshots that share manifests; the last takes away a file and its vector. */
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof name, "f%d", i);
		(void)ct_append(t, CT_MAIN, name, 10);
		ct_commit(t);
		ct_batch(t);
	}
	(void)ct_delete(t, CT_MAIN, "f2", "1");
	ct_commit(t);
	ct_batch(t);
	(void)ct_delete(t, CT_MAIN, "f2", "0 2-9");
	ct_commit(t);
}

static void down(void)
{
	ct_close(t);
}

static enum cache_answer run(size_t budget, struct needs *needs, size_t limit, struct err *err)
{
	struct arena a;
	struct walk w = {.meta = t->meta, .arena = &a};
	const struct walk_told tell = {t, tell_object, tell_entry};
	enum cache_answer ans;
	arena_init(&a, limit);
	cache_free(t->cache);
	t->cache = cache_new(budget);
	while ((ans = walk_run(&w, t->cache, needs, &tell, err)) == CACHE_WAIT) {
		ck_assert_uint_ge(needs->n, 1);
		ct_serve(t, needs);
	}
	needs_fini(needs);
	cache_trim(t->cache);
	ck_assert_uint_le(cache_bytes(t->cache), budget);
	arena_fini(&a);
	return ans;
}

static const size_t budgets[] = {CT_MAX, 6000, 1};

START_TEST(everything)
{
	struct needs needs = {0};
	struct err err = {0};
	ck_assert_int_eq(run(budgets[_i], &needs, CT_MAX, &err), CACHE_HAVE);
	/* Eight lists; six manifests of appends, one of the vector, and two copies where the file and
	 * the vector are deleted. */
	ck_assert_uint_eq(objects, 8 + 6 + 1 + 2);
	ck_assert_uint_eq(live, 6 + 1);
	ck_assert_uint_eq(dead, 2);
	for (size_t i = 0; i < objects; i++)
		for (size_t k = 0; k < i; k++)
			ck_assert(!strv_eq(told[i], told[k]));
}
END_TEST

START_TEST(unreadable)
{
	const struct snapshot *first = metadata_snapshot_at(t->meta, 0);
	struct ct_object *o = (struct ct_object *)(uintptr_t)ct_object(t, first->manifest_list);
	struct needs needs = {0};
	struct err err = {0};
	o->path.n--;
	ck_assert_int_eq(run(budgets[_i], &needs, CT_MAX, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_NOT_FOUND);
	/* Who can do without goes on; the list's manifest stands in the others too. */
	objects = live = dead = 0;
	needs = (struct needs){.tolerant = true};
	ck_assert_int_eq(run(budgets[_i], &needs, CT_MAX, &err), CACHE_HAVE);
	ck_assert_uint_eq(objects, 17);
	o->path.n++;
	o = (struct ct_object *)(uintptr_t)ct_object(
		t, ct_look_ref(t, CT_MAIN)->list->l.rows[0].path);
	o->path.n--;
	objects = live = dead = 0;
	needs = (struct needs){.tolerant = true};
	ck_assert_int_eq(run(budgets[_i], &needs, CT_MAX, &err), CACHE_HAVE);
	ck_assert_uint_eq(objects, 17);
	ck_assert_uint_eq(live + dead, 8);
}
END_TEST

START_TEST(no_memory)
{
	struct needs needs = {0};
	struct err err = {0};
	ck_assert_int_eq(run(CT_MAX, &needs, 64, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_LIMIT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("walk");
	TCase *c = tcase_create("walk");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, everything, 0, ARRAY_SIZE(budgets));
	tcase_add_loop_test(c, unreadable, 0, ARRAY_SIZE(budgets));
	tcase_add_test(c, no_memory);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
