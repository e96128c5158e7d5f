/* Decoded objects by path: what is asked for once, kept, dropped and told. */
#include "daemon/commit/cache.h"

#include <stdio.h>

#include "proto/iceberg/metadata.h"
#include "tests/unit/unit.h"

#define BUDGET ((size_t)1 << 20)

static struct cache *c;
static struct needs needs;
static struct err err;

static void up(void)
{
	c = cache_new(BUDGET);
	needs = (struct needs){0};
	err = (struct err){0};
}

static void down(void)
{
	needs_fini(&needs);
	cache_free(c);
}

static struct mlist *list_of(size_t bytes)
{
	struct mlist *l = base_calloc(1, sizeof *l);
	l->refs = 1;
	arena_init(&l->arena, bytes + 16);
	ck_assert(arena_alloc(&l->arena, bytes) != NULL);
	return l;
}

static struct mview *view_of(size_t bytes)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, bytes + 16);
	ck_assert(arena_alloc(&m->arena, bytes) != NULL);
	return mview_new(m);
}

static enum cache_answer ask(const char *path, struct mlist **ret_l)
{
	return cache_list(c, strv_of(path), &needs, ret_l, &err);
}

/* Puts a list of so many bytes there that nobody else holds. */
static void put(const char *path, size_t bytes)
{
	struct mlist *l = list_of(bytes);
	cache_put_list(c, strv_of(path), l);
	mlist_unref(l);
}

static bool has(const char *path)
{
	struct mlist *l;
	struct needs mine = {0};
	enum cache_answer ans = cache_list(c, strv_of(path), &mine, &l, &err);
	ck_assert_int_ne(ans, CACHE_FAIL);
	needs_fini(&mine);
	return ans == CACHE_HAVE;
}

static void unread(struct cache_item *it, enum status st)
{
	struct read_result res = {0};
	err_set(&res.err, st, "x", "told");
	cache_item_done(c, it, &res);
}

START_TEST(read_once)
{
	struct mlist *l = NULL;
	ck_assert_int_eq(ask("a", &l), CACHE_WAIT);
	ck_assert_int_eq(ask("a", &l), CACHE_WAIT);
	ck_assert_int_eq(ask("b", &l), CACHE_WAIT);
	ck_assert_uint_eq(needs.n, 2);
	struct cache_item *a = needs.v[0];
	const struct read_effect *r = cache_item_read(a);
	ck_assert_int_eq(r->as, READ_MANIFEST_LIST);
	ck_assert(strv_eq(r->path, STRV("a")));
	ck_assert_int_eq(r->path.p[r->path.n], 0);
	/* Two who wait: the second finds it under way and gets the same item. */
	struct needs other = {0};
	ck_assert_int_eq(cache_list(c, STRV("a"), &other, &l, &err), CACHE_WAIT);
	ck_assert_ptr_eq(other.v[0], a);
	ck_assert(cache_item_begin(a));
	ck_assert(!cache_item_begin(other.v[0]));
	struct read_result res = {.own_list = list_of(100)};
	cache_item_done(c, a, &res);
	ck_assert(!res.own_list); /* the reference went over */
	ck_assert(!cache_item_begin(a));
	needs.n = other.n = 0;
	ck_assert_int_eq(ask("a", &l), CACHE_HAVE);
	ck_assert_uint_eq(needs.n, 0);
	struct mlist *same = NULL;
	ck_assert_int_eq(cache_list(c, STRV("a"), &other, &same, &err), CACHE_HAVE);
	ck_assert_ptr_eq(l, same);
	ck_assert_int_eq(l->refs, 1);
	ck_assert_uint_eq(cache_bytes(c), l->arena.used);
	needs_fini(&other);
}
END_TEST

/* A failure is told to the first who asks; whoever asks again means a new attempt. */
START_TEST(failed_read)
{
	struct mlist *l = NULL;
	ck_assert_int_eq(ask("a", &l), CACHE_WAIT);
	ck_assert(cache_item_begin(needs.v[0]));
	unread(needs.v[0], ST_IO);
	needs.n = 0;
	ck_assert_int_eq(ask("a", &l), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_IO);
	ck_assert_str_eq(err.msg, "told");
	ck_assert_uint_eq(needs.n, 0);
	err = (struct err){0};
	ck_assert_int_eq(ask("a", &l), CACHE_WAIT);
	ck_assert_int_eq(err.st, ST_OK);
	ck_assert_uint_eq(needs.n, 1);
	ck_assert(cache_item_begin(needs.v[0]));
	struct read_result res = {.own_list = list_of(100)};
	cache_item_done(c, needs.v[0], &res);
	ck_assert_int_eq(ask("a", &l), CACHE_HAVE);
}
END_TEST

/* One who goes on without the file reads it once; others try again. */
START_TEST(tolerant)
{
	struct mlist *l = NULL;
	needs.tolerant = true;
	ck_assert_int_eq(ask("a", &l), CACHE_WAIT);
	ck_assert(cache_item_begin(needs.v[0]));
	unread(needs.v[0], ST_NOT_FOUND);
	needs.n = 0;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(ask("a", &l), CACHE_FAIL);
		ck_assert_uint_eq(needs.n, 0);
		ck_assert_int_ne(err.st, ST_OK);
	}
	ck_assert_int_eq(ask("b", &l), CACHE_WAIT);
	struct needs other = {0};
	ck_assert_int_eq(cache_list(c, STRV("a"), &other, &l, &err), CACHE_WAIT);
	ck_assert(cache_item_begin(other.v[0]));
	struct read_result res = {.own_list = list_of(100)};
	cache_item_done(c, other.v[0], &res);
	/* There after all: that counts. */
	ck_assert_int_eq(ask("a", &l), CACHE_HAVE);
	needs_fini(&other);
}
END_TEST

START_TEST(budget)
{
	put("a", 1600);
	put("b", 1600);
	put("c", 1600);
	ck_assert_uint_eq(cache_bytes(c), 4800);
	cache_set_budget(c, 4800);
	cache_trim(c);
	ck_assert(has("b") && has("c") && has("a"));
	/* Used longest ago goes first, and no more than has to. */
	cache_set_budget(c, 4799);
	cache_trim(c);
	ck_assert_uint_eq(cache_bytes(c), 3200);
	ck_assert(!has("b"));
	ck_assert(has("c") && has("a"));
	/* Nothing is dropped but by a trim: what a step has borrowed stays. */
	cache_set_budget(c, 0);
	ck_assert(has("a"));
	cache_trim(c);
	ck_assert_uint_eq(cache_bytes(c), 0);
	ck_assert(!has("a") && !has("c"));
}
END_TEST

/* What somebody holds or waits for is not dropped, whatever the budget. */
START_TEST(pinned)
{
	struct mlist *held = list_of(1600), *l = NULL;
	struct mview *view = view_of(1600);
	struct vec *vec = vec_new(bitmap64_new());
	cache_put_list(c, STRV("held"), held);
	cache_put_view(c, STRV("view"), 5, 0, view);
	cache_put_vec(c, STRV("vec"), 4, vec);
	put("free", 1600);
	put("waited", 1600);
	ck_assert_int_eq(ask("reading", &l), CACHE_WAIT);
	struct cache_item *reading = needs.v[0];
	ck_assert(cache_item_begin(reading));
	struct list waiter;
	list_init(&waiter);
	ck_assert_int_eq(ask("late", &l), CACHE_WAIT);
	list_push_back(cache_item_waiters(needs.v[1]), &waiter);
	cache_set_budget(c, 0);
	cache_trim(c);
	ck_assert(has("held"));
	ck_assert(!has("free") && !has("waited"));
	struct read_result res = {.own_list = list_of(10)};
	cache_item_done(c, reading, &res);
	ck_assert(has("reading"));
	/* Let go of, it goes. */
	mlist_unref(held);
	mview_unref(view);
	vec_unref(vec);
	list_remove(&waiter);
	cache_trim(c);
	/* But what an operation has asked for is its, until it says so. */
	ck_assert(has("reading"));
	needs_release(&needs);
	cache_trim(c);
	ck_assert(!has("held") && !has("reading"));
	ck_assert_uint_eq(cache_bytes(c), 0);
}
END_TEST

/* Views of one path with different inherited numbers are different objects; so are vectors at
 * different places of one file, and kinds. */
START_TEST(identity)
{
	struct mview *one = view_of(100), *two = view_of(200), *v = NULL;
	cache_put_view(c, STRV("m"), 0, 4, one);
	cache_put_view(c, STRV("m"), 70, 4, two);
	struct manifest_file row = manifest_file_empty();
	row.path = STRV("m");
	row.first_row_id = 70;
	row.seq = 4;
	row.length = 321;
	struct mlist *l = list_of(16);
	struct metadata *none = NULL;
	ck_assert_int_eq(cache_view(c, l, &row, none, &needs, &v, &err), CACHE_HAVE);
	ck_assert_ptr_eq(v, two);
	row.first_row_id = 0;
	ck_assert_int_eq(cache_view(c, l, &row, none, &needs, &v, &err), CACHE_HAVE);
	ck_assert_ptr_eq(v, one);
	ck_assert_int_eq(l->refs, 1);
	ck_assert(!has("m"));
	struct vec *vec = vec_new(bitmap64_new()), *found = NULL;
	cache_put_vec(c, STRV("m"), 4, vec);
	struct content_file dv = content_file_empty();
	dv.path = STRV("m");
	dv.content_offset = 4;
	dv.content_size = 77;
	dv.record_count = 9;
	ck_assert_int_eq(cache_vec(c, &dv, &needs, &found, &err), CACHE_HAVE);
	ck_assert_ptr_eq(found, vec);
	dv.content_offset = 81;
	ck_assert_uint_eq(needs.n, 0);
	ck_assert_int_eq(cache_vec(c, &dv, &needs, &found, &err), CACHE_WAIT);
	const struct read_effect *r = cache_item_read(needs.v[0]);
	ck_assert_int_eq(r->as, READ_VECTOR);
	ck_assert_int_eq(r->offset, 81);
	ck_assert_int_eq(r->length, 77);
	ck_assert_int_eq(r->cardinality, 9);
	mview_unref(one);
	mview_unref(two);
	vec_unref(vec);
	mlist_unref(l);
}
END_TEST

static struct metadata *metadata(void)
{
	const char *json =
		"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
		"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1,"
		"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
		"\"schema-id\":0,\"fields\":[]}],\"default-spec-id\":0,\"partition-specs\":["
		"{\"spec-id\":0,\"fields\":[]}],\"last-partition-id\":999,"
		"\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],"
		"\"next-row-id\":0}";
	struct metadata *m = NULL;
	UNIT_OK(metadata_parse(strv_bytes(strv_of(json)), ST_CORRUPT, &m, &err), &err);
	return m;
}

/* While a manifest is read, the list that its row stands in stays, even when nobody else wants it.
 */
START_TEST(row_is_kept)
{
	struct metadata *m = metadata();
	struct mlist *l = list_of(sizeof(struct manifest_file) + 64);
	arena_reset(&l->arena);
	l->l.rows = arena_calloc(&l->arena, 1, sizeof *l->l.rows);
	ck_assert(l->l.rows != NULL);
	l->l.rows[0] = manifest_file_empty();
	l->l.rows[0].path = STRV("m");
	l->l.rows[0].length = 321;
	l->l.n = 1;
	struct mview *v = NULL;
	ck_assert_int_eq(cache_view(c, l, &l->l.rows[0], m, &needs, &v, &err), CACHE_WAIT);
	ck_assert_int_eq(l->refs, 2);
	/* Asked again before it is sent. */
	ck_assert_int_eq(cache_view(c, l, &l->l.rows[0], m, &needs, &v, &err), CACHE_WAIT);
	ck_assert_int_eq(l->refs, 2);
	struct cache_item *it = needs.v[0];
	ck_assert(cache_item_begin(it));
	struct mlist *mine = l;
	mlist_unref(mine);
	metadata_unref(m);
	cache_set_budget(c, 0);
	cache_trim(c);
	const struct read_effect *r = cache_item_read(it);
	ck_assert_int_eq(r->as, READ_MANIFEST);
	ck_assert_int_eq(r->row->length, 321);
	ck_assert_int_eq(r->length, 321);
	ck_assert_int_eq(metadata_format_version(r->metadata), 3);
	struct read_result res = {.own_view = view_of(50)};
	cache_item_done(c, it, &res);
	ck_assert(!cache_item_read(it)->row);
}
END_TEST

/* What a publish brings does not replace what is there or on its way. */
START_TEST(put_twice)
{
	struct mlist *l = NULL, *one = list_of(100), *two = list_of(200);
	cache_put_list(c, STRV("a"), one);
	cache_put_list(c, STRV("a"), two);
	ck_assert_int_eq(ask("a", &l), CACHE_HAVE);
	ck_assert_ptr_eq(l, one);
	ck_assert_int_eq(two->refs, 1);
	ck_assert_uint_eq(cache_bytes(c), one->arena.used);
	ck_assert_int_eq(ask("b", &l), CACHE_WAIT);
	ck_assert(cache_item_begin(needs.v[0]));
	cache_put_list(c, STRV("b"), two);
	ck_assert_int_eq(two->refs, 1);
	unread(needs.v[0], ST_IO);
	/* A failure that nobody has heard of is no reason to keep it. */
	cache_put_list(c, STRV("b"), two);
	ck_assert_int_eq(ask("b", &l), CACHE_HAVE);
	ck_assert_ptr_eq(l, two);
	mlist_unref(one);
	mlist_unref(two);
}
END_TEST

/* More items than buckets at the start: all are found again. */
START_TEST(many)
{
	char path[24];
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof path, "p%d", i);
		put(path, 16);
	}
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof path, "p%d", i);
		ck_assert(has(path));
	}
	ck_assert_uint_eq(cache_bytes(c), 32000);
	cache_set_budget(c, 1600);
	cache_trim(c);
	ck_assert_uint_eq(cache_bytes(c), 1600);
	for (int i = 0; i < 2000; i++) {
		snprintf(path, sizeof path, "p%d", i);
		ck_assert_int_eq(has(path), i >= 1900);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("cache");
	TCase *t = tcase_create("cache");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_test(t, read_once);
	tcase_add_test(t, failed_read);
	tcase_add_test(t, tolerant);
	tcase_add_test(t, budget);
	tcase_add_test(t, pinned);
	tcase_add_test(t, identity);
	tcase_add_test(t, row_is_kept);
	tcase_add_test(t, put_twice);
	tcase_add_test(t, many);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
