#include "proto/base/pieces.h"
#include "tests/unit/unit.h"

static struct bytes bytes_of(const char *z)
{
	return strv_bytes(strv_of(z));
}

START_TEST(joining)
{
	struct arena a;
	struct pieces p = {0};
	struct buf b;
	arena_init(&a, 4096);
	buf_init(&b, 100);
	ck_assert(pieces_add(&p, &a, bytes_of("ab")));
	ck_assert(pieces_add(&p, &a, (struct bytes){0}));
	ck_assert(pieces_add(&p, &a, bytes_of("c")));
	ck_assert(pieces_add(&p, &a, bytes_of("def")));
	ck_assert_uint_eq(p.n, 3);
	ck_assert_uint_eq(pieces_size(&p), 6);
	buf_puts(&b, "-");
	pieces_join(&p, &b);
	ck_assert(strv_eq(buf_strv(&b), STRV("-abcdef")));
	buf_fini(&b);
	/* Poisons like any append. */
	buf_init(&b, 5);
	pieces_join(&p, &b);
	ck_assert(!buf_ok(&b));
	buf_fini(&b);
	arena_fini(&a);
}
END_TEST

START_TEST(comparing)
{
	struct arena a;
	struct pieces p = {0};
	arena_init(&a, 4096);
	ck_assert(pieces_are(&p, bytes_of("")));
	ck_assert(!pieces_are(&p, bytes_of("a")));
	ck_assert(pieces_add(&p, &a, bytes_of("ab")));
	ck_assert(pieces_add(&p, &a, bytes_of("cd")));
	ck_assert(pieces_are(&p, bytes_of("abcd")));
	ck_assert(!pieces_are(&p, bytes_of("abc")));
	ck_assert(!pieces_are(&p, bytes_of("abcde")));
	ck_assert(!pieces_are(&p, bytes_of("abce")));
	ck_assert(!pieces_are(&p, bytes_of("a")));
	arena_fini(&a);
}
END_TEST

START_TEST(limit)
{
	struct arena a;
	struct pieces p = {0};
	size_t n = 0;
	arena_init(&a, 1024);
	while (n < 1000 && pieces_add(&p, &a, bytes_of("x")))
		n++;
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, 1000);
	ck_assert_uint_eq(p.n, n);
	ck_assert_uint_eq(pieces_size(&p), n);
	arena_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("pieces");
	TCase *t = tcase_create("pieces");
	tcase_add_test(t, joining);
	tcase_add_test(t, comparing);
	tcase_add_test(t, limit);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
