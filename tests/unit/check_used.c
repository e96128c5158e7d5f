/* Partition specs in use: found in whichever kept snapshot it is, however little has room. */
#include "daemon/commit/used.h"

#include "proto/iceberg/update.h"
#include "tests/unit/core_table.h"

#define SNAPSHOTS 40
#define IN_SPEC_1 23 /* the snapshot whose list has a manifest of spec 1, and no other */

static struct core_table *t;
static int64_t ids[SNAPSHOTS];

static void up(void)
{
	static struct core_table table;
	char name[32];
	t = &table;
	ct_open(t, 2, "");
	for (int i = 0; i < SNAPSHOTS; i++) {
		bool one = i == IN_SPEC_1;
		snprintf(name, sizeof name, "f%d", i);
		struct content_file f = ct_data(t, name, 3);
		struct manifest_entry e =
			ct_entry(ENTRY_ADDED, one ? ct_in(t, f, 7) : f, SNAPSHOT_NONE, SEQ_NONE);
		struct manifest_file row = ct_manifest(t, 2, one ? 1 : 0, MANIFEST_DATA, &e, 1);
		ids[i] = ct_foreign(t, CT_MAIN, &row, 1, false);
	}
}

static void down(void)
{
	ct_close(t);
}

/* The table without this spec, and without those snapshots. */
static struct metadata *without(int32_t spec, const int64_t *gone, size_t n)
{
	struct update u[] = {
		{.kind = UPDATE_REMOVE_SNAPSHOTS, .u.snapshot_ids = {gone, n}},
		{.kind = UPDATE_SET_DEFAULT_SPEC, .u.id = spec == 0 ? 1 : 0},
		{.kind = UPDATE_REMOVE_SPECS, .u.ids = {&spec, 1}},
	};
	struct metadata_ctx ctx = {.now_ms = CT_NOW, .base_location = STRV("file:///t/metadata/x")};
	struct metadata *m = NULL;
	struct err err = {0};
	bool changed;
	UNIT_OK(metadata_apply(t->meta, u, 3, &ctx, &m, &changed, &err), &err);
	return m;
}

static enum cache_answer run(const struct metadata *fresh, size_t budget, struct err *err)
{
	struct needs needs = {.tolerant = true};
	size_t at = 0;
	enum cache_answer ans;
	cache_free(t->cache);
	t->cache = cache_new(budget);
	while ((ans = used_specs(t->meta, fresh, &at, t->cache, &needs, err)) == CACHE_WAIT) {
		ck_assert_uint_ge(needs.n, 1);
		ct_serve(t, &needs);
	}
	needs_fini(&needs);
	cache_trim(t->cache);
	ck_assert_uint_le(cache_bytes(t->cache), budget);
	return ans;
}

static const size_t budgets[] = {CT_MAX, 6000, 1};

START_TEST(found)
{
	char want[100];
	struct err err = {0};
	struct metadata *m = without(1, NULL, 0);
	ck_assert_int_eq(run(m, budgets[_i], &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_COMMIT_FAILED);
	snprintf(want, sizeof want, "Cannot remove partition spec 1: snapshot %lld uses it",
		 (long long)ids[IN_SPEC_1]);
	ck_assert_str_eq(err.msg, want);
	metadata_unref(m);
	/* Gone with its snapshot: nothing uses it. */
	m = without(1, &ids[IN_SPEC_1], 1);
	ck_assert_int_eq(run(m, budgets[_i], &err), CACHE_HAVE);
	metadata_unref(m);
	m = without(0, &ids[IN_SPEC_1], 1);
	ck_assert_int_eq(run(m, budgets[_i], &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_COMMIT_FAILED);
	metadata_unref(m);
}
END_TEST

/* Without a removal no list is read. */
START_TEST(nothing_removed)
{
	struct err err = {0};
	struct metadata *m = without(9, &ids[0], 1);
	size_t before = t->n_reads;
	ck_assert_int_eq(run(m, CT_MAX, &err), CACHE_HAVE);
	ck_assert_uint_eq(t->n_reads, before);
	metadata_unref(m);
}
END_TEST

/* What cannot be read may use anything. */
START_TEST(unreadable)
{
	const struct snapshot *s = metadata_snapshot(t->meta, ids[SNAPSHOTS - 2]);
	struct ct_object *o = (struct ct_object *)(uintptr_t)ct_object(t, s->manifest_list);
	struct err err = {0};
	struct metadata *m = without(1, &ids[IN_SPEC_1], 1);
	o->path.n--;
	ck_assert_int_eq(run(m, budgets[_i], &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_VALIDATION);
	o->path.n++;
	metadata_unref(m);
}
END_TEST

START_TEST(lists)
{
	struct needs needs = {0};
	struct mlist *list = NULL;
	struct err err = {0};
	struct metadata *m = without(1, NULL, 0);
	const struct snapshot *s = metadata_snapshot(t->meta, ids[IN_SPEC_1]);
	while (cache_list(t->cache, s->manifest_list, &needs, &list, &err) == CACHE_WAIT)
		ct_serve(t, &needs);
	UNIT_OK(used_list_check(list, t->meta, &err), &err);
	UNIT_STATUS(used_list_check(list, m, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "snapshot.manifest-list");
	needs_fini(&needs);
	metadata_unref(m);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("used");
	TCase *c = tcase_create("used");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, found, 0, ARRAY_SIZE(budgets));
	tcase_add_test(c, nothing_removed);
	tcase_add_loop_test(c, unreadable, 0, ARRAY_SIZE(budgets));
	tcase_add_test(c, lists);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
