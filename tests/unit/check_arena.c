#include "proto/base/arena.h"
#include "tests/unit/unit.h"

START_TEST(limit)
{
	struct arena a;
	arena_init(&a, 1000);
	char *p = arena_alloc(&a, 500);
	ck_assert_ptr_nonnull(p);
	memset(p, 1, 500);
	ck_assert_ptr_null(arena_alloc(&a, 500)); /* 512 are used */
	ck_assert_ptr_nonnull(arena_alloc(&a, 480));
	ck_assert_ptr_null(arena_alloc(&a, 16));
	arena_reset(&a);
	ck_assert_uint_eq(a.used, 0);
	ck_assert_ptr_nonnull(arena_alloc(&a, 900));
	arena_fini(&a);
	ck_assert_ptr_null(arena_alloc(&a, 1));
	arena_fini(&a);
}
END_TEST

START_TEST(alignment)
{
	struct arena a;
	arena_init(&a, (size_t)8 << 20);
	for (size_t n = 0; n < 3000; n += 7) {
		uint8_t *p = arena_alloc(&a, n);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % 16, 0);
		memset(p, 0xa5, n);
	}
	/* Larger than any chunk. */
	uint8_t *big = arena_calloc(&a, 3, (size_t)1 << 20);
	ck_assert_ptr_nonnull(big);
	ck_assert_uint_eq(big[0] | big[((size_t)3 << 20) - 1], 0);
	arena_fini(&a);
}
END_TEST

START_TEST(overflow)
{
	struct arena a;
	arena_init(&a, SIZE_MAX);
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX));
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 15));
	ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX - 31));
	ck_assert_ptr_null(arena_calloc(&a, SIZE_MAX / 2, 3));
	void *items = NULL;
	size_t cap = 0;
	ck_assert(!arena_grow(&a, &items, &cap, SIZE_MAX, 16));
	ck_assert_ptr_null(items);
	ck_assert_uint_eq(cap, 0);
	ck_assert_uint_eq(a.used, 0);
	arena_fini(&a);
}
END_TEST

START_TEST(copies)
{
	struct arena a;
	arena_init(&a, 4096);
	struct strv s = {0};
	struct bytes b = {0};
	char text[] = "abc";
	ck_assert(arena_strv(&a, strv_of(text), &s));
	text[0] = 'X';
	ck_assert(strv_eq(s, STRV("abc")));
	ck_assert_int_eq(s.p[3], 0);
	ck_assert(arena_strv(&a, strv_of(NULL), &s));
	ck_assert_ptr_nonnull(s.p);
	ck_assert_uint_eq(s.n, 0);
	ck_assert(arena_bytes(&a, (struct bytes){NULL, 0}, &b));
	ck_assert_ptr_nonnull(b.p);
	ck_assert_str_eq(arena_printf(&a, "%s-%d", "n", 7), "n-7");
	struct strv huge = {"x", SIZE_MAX};
	s = STRV("kept");
	ck_assert(!arena_strv(&a, huge, &s));
	ck_assert(strv_eq(s, STRV("kept")));
	arena_fini(&a);
}
END_TEST

START_TEST(growing)
{
	struct arena a;
	arena_init(&a, 1 << 16);
	void *items = NULL;
	size_t cap = 0;
	for (size_t i = 0; i < 1000; i++) {
		ck_assert(arena_grow(&a, &items, &cap, i + 1, sizeof(size_t)));
		ck_assert_uint_ge(cap, i + 1);
		((size_t *)items)[i] = i * 3;
	}
	for (size_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(((size_t *)items)[i], i * 3);
	/* Exhaustion leaves array and capacity as they were. */
	void *before = items;
	size_t cap_before = cap;
	ck_assert(!arena_grow(&a, &items, &cap, 10000, sizeof(size_t)));
	ck_assert_ptr_eq(items, before);
	ck_assert_uint_eq(cap, cap_before);
	arena_fini(&a);
}
END_TEST

START_TEST(recycling)
{
	/* A small last chunk stays and is handed out again; a large one, and all others, go. */
	struct arena a;
	arena_init(&a, (size_t)1 << 20);
	arena_recycle(&a, 4096);
	ck_assert_ptr_null(a.head);
	for (int i = 0; i < 8; i++)
		ck_assert_ptr_nonnull(arena_alloc(&a, 300));
	struct arena_chunk *last = a.head;
	arena_recycle(&a, 4096);
	ck_assert_ptr_eq(a.head, last);
	ck_assert_uint_eq(a.used, 0);
	for (int i = 0; i < 3; i++) {
		char *p = arena_calloc(&a, 1, 300);
		ck_assert_ptr_nonnull(p);
		memset(p, 1, 300);
	}
	ck_assert_ptr_eq(a.head, last);
	ck_assert_ptr_nonnull(arena_alloc(&a, 100000));
	arena_recycle(&a, 4096);
	ck_assert_ptr_null(a.head);
	/* The limit is that of the beginning. */
	ck_assert_ptr_nonnull(arena_alloc(&a, ((size_t)1 << 20) - 16));
	ck_assert_ptr_null(arena_alloc(&a, 32));
	arena_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("arena");
	TCase *t = tcase_create("arena");
	tcase_add_test(t, limit);
	tcase_add_test(t, alignment);
	tcase_add_test(t, overflow);
	tcase_add_test(t, copies);
	tcase_add_test(t, growing);
	tcase_add_test(t, recycling);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
