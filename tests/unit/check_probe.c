/* Looking for paths in the manifests of a list, a part at a time, and plans whose cache is too small. */
#include "daemon/commit/probe.h"

#include "proto/base/digest.h"
#include "tests/unit/core_table.h"

#define FILES 20

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

static void fresh_cache(size_t bytes)
{
	cache_free(t->cache);
	t->cache = cache_new(bytes);
}

/* A manifest for each of f0 to f19. */
static struct mlist *many(void)
{
	char name[32];
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "f%d", i);
		(void)ct_append(t, CT_MAIN, name, 10 + i);
		ct_commit(t);
		ct_batch(t);
	}
	struct mlist *l = NULL;
	struct err err = {0};
	UNIT_OK(mlist_read(ct_object(t, ct_snapshot(t, CT_MAIN)->manifest_list)->data, CT_MAX, &l,
			   &err),
		&err);
	ck_assert_uint_eq(l->l.n, FILES);
	return l;
}

/* 64 bytes a file are reckoned, half of the budget a round. */
static const struct {
	size_t budget, most;
} rounds[] = {{CT_MAX, FILES}, {1000, 7}, {128, 1}, {1, 1}};

START_TEST(parts)
{
	struct mlist *l = many();
	struct needs needs = {0};
	struct err err = {0};
	const struct probe *p = NULL;
	struct mkey keys[3] = {mview_key(ct_path(t, "f3")), mview_key(ct_path(t, "f17")),
			       mview_key(ct_path(t, "absent"))};
	fresh_cache(rounds[_i].budget);
	size_t n = 0;
	while (probe_list(t->cache, l, t->meta, keys, 3, &needs, &p, &err) == CACHE_WAIT) {
		ck_assert_uint_ge(needs.n, 1);
		ck_assert_uint_le(needs.n, rounds[_i].most);
		ck_assert(n + needs.n <= FILES);
		n += needs.n;
		ct_serve(t, &needs);
	}
	ck_assert_int_eq(err.st, ST_OK);
	ck_assert_uint_eq(n, FILES); /* each read once, whatever was dropped meanwhile */
	for (size_t i = 0; i < FILES; i++) {
		bool hit = mview_look(p->views[i], keys[0]) || mview_look(p->views[i], keys[1]);
		ck_assert_uint_eq(p->views[i]->n_files, hit ? 1 : 0);
		ck_assert_uint_eq(p->views[i]->n_live, 1);
		ck_assert(!p->views[i]->m);
	}
	/* The answer stays; other keys are another question. */
	const struct probe *again = NULL;
	ck_assert_int_eq(probe_list(t->cache, l, t->meta, keys, 3, &needs, &again, &err), CACHE_HAVE);
	ck_assert_ptr_eq(p, again);
	ck_assert_int_eq(probe_list(t->cache, l, t->meta, keys, 1, &needs, &again, &err),
			 rounds[_i].budget == CT_MAX ? CACHE_HAVE : CACHE_WAIT);
	ck_assert_ptr_ne(p, again);
	needs_release(&needs);
	cache_trim(t->cache);
	ck_assert_uint_le(cache_bytes(t->cache), rounds[_i].budget);
	needs_fini(&needs);
	mlist_unref(l);
}
END_TEST

/* More keys than a manifest has files, and fewer: the fewer are looked for among the more. */
START_TEST(either_way)
{
	struct plan_txn *x = ct_append(t, CT_MAIN, "a", 10);
	ct_add(t, x, ct_data(t, "b", 10));
	ct_add(t, x, ct_data(t, "c", 10));
	ct_commit(t);
	ct_batch(t);
	(void)ct_append(t, CT_MAIN, "d", 10);
	ct_commit(t);
	static const struct {
		const char *names; /* of keys, a letter each */
		bool first, second;
	} cases[] = {{"b", true, false},    {"d", false, true},     {"yxcbw", true, false},
		     {"zyxwvud", false, true}, {"zyxwv", false, false}, {"dzyxa", true, true},
		     {"", false, false}};
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct needs needs = {0};
		struct err err = {0};
		struct mkey keys[8];
		const struct probe *p = NULL;
		size_t n = strlen(cases[i].names);
		for (size_t k = 0; k < n; k++)
			keys[k] = mview_key(ct_path(t, (const char[]){cases[i].names[k], 0}));
		while (probe_list(t->cache, s->list, t->meta, keys, n, &needs, &p, &err) == CACHE_WAIT)
			ct_serve(t, &needs);
		ck_assert_uint_eq(p->views[0]->n_files, cases[i].first ? 3 : 0);
		ck_assert_uint_eq(p->views[1]->n_files, cases[i].second ? 1 : 0);
		needs_fini(&needs);
	}
}
END_TEST

START_TEST(unreadable)
{
	struct mlist *l = many();
	struct needs needs = {0};
	struct err err = {0};
	const struct probe *p = NULL;
	struct mkey key = mview_key(ct_path(t, "f3"));
	struct ct_object *o = (struct ct_object *)(uintptr_t)ct_object(t, l->l.rows[5].path);
	enum cache_answer ans;
	o->path.n--;
	fresh_cache(1000);
	while ((ans = probe_list(t->cache, l, t->meta, &key, 1, &needs, &p, &err)) == CACHE_WAIT)
		ct_serve(t, &needs);
	ck_assert_int_eq(ans, CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_NOT_FOUND);
	ck_assert_ptr_eq(p->failed, &l->l.rows[5]);
	o->path.n++;
	/* Asked again, it is read again. */
	while ((ans = probe_list(t->cache, l, t->meta, &key, 1, &needs, &p, &err)) == CACHE_WAIT)
		ct_serve(t, &needs);
	ck_assert_int_eq(ans, CACHE_HAVE);
	needs_fini(&needs);
	mlist_unref(l);
}
END_TEST

/* Appends, vectors, replaced vectors, whole files, merges, refusals. */
static struct digest work(size_t budget, size_t *ret_reads)
{
	char name[32];
	ct_close(t);
	ct_open(t, 3, "\"commit.manifest.min-count-to-merge\":\"4\"");
	fresh_cache(budget);
	for (int turn = 0; turn < 6; turn++) {
		for (int i = 0; i < 5; i++) {
			snprintf(name, sizeof name, "t%d-%d", turn, i);
			(void)ct_append(t, CT_MAIN, name, 10);
			if (i % 2)
				ct_commit(t), ct_batch(t);
		}
		ct_commit(t);
		ct_batch(t);
		snprintf(name, sizeof name, "t%d-1", turn / 2);
		(void)ct_delete(t, CT_MAIN, name, turn % 2 ? "1 3" : "5");
		snprintf(name, sizeof name, "t%d-3", turn);
		(void)ct_delete(t, CT_MAIN, name, turn % 2 ? "0-9" : "2");
		snprintf(name, sizeof name, "t%d-2", turn);
		struct plan_txn *twice = ct_append(t, CT_MAIN, name, 3);
		struct plan_txn *gone = ct_delete(t, CT_MAIN, "never", "0");
		ct_commit(t);
		CT_REJECTED(twice, ST_DUPLICATE_PATH);
		CT_REJECTED(gone, ST_FILE_GONE);
		ct_batch(t);
	}
	struct digest_ctx c;
	digest_init(&c);
	for (size_t i = 0; i < t->n_objects; i++) {
		digest_add(&c, strv_bytes(t->objects[i].path));
		digest_add(&c, t->objects[i].data);
	}
	*ret_reads = t->n_reads;
	return digest_fini(&c);
}

/* The bytes of every object are the same, whatever has room; only reads are not. */
START_TEST(same_objects)
{
	size_t reads, more;
	struct digest want = work(CT_MAX, &reads);
	static const size_t budgets[] = {20000, 4000, 500, 1};
	for (size_t i = 0; i < ARRAY_SIZE(budgets); i++) {
		struct digest got = work(budgets[i], &more);
		ck_assert_msg(digest_eq(&got, &want), "budget %zu", budgets[i]);
		ck_assert_uint_ge(more, reads);
		reads = more;
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("probe");
	TCase *c = tcase_create("probe");
	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, parts, 0, ARRAY_SIZE(rounds));
	tcase_add_test(c, either_way);
	tcase_add_test(c, unreadable);
	tcase_add_test(c, same_objects);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
