#include "proto/base/buf.h"
#include "tests/unit/unit.h"

START_TEST(appending)
{
	struct buf b;
	buf_init(&b, 100000);
	buf_puts(&b, "ab");
	buf_putc(&b, 0);
	buf_putv(&b, STRV("c"));
	buf_put(&b, NULL, 0);
	buf_printf(&b, "%04d", 42);
	ck_assert(bytes_eq(buf_bytes(&b), strv_bytes(STRV("ab\0c0042"))));
	for (int i = 0; i < 10000; i++)
		buf_putc(&b, (uint8_t)i);
	ck_assert(buf_ok(&b));
	ck_assert_uint_eq(b.n, 10008);
	ck_assert_uint_eq(b.p[10007], 9999 % 256);
	buf_consume(&b, 8);
	ck_assert_uint_eq(b.n, 10000);
	ck_assert_uint_eq(b.p[0], 0);
	buf_consume(&b, 10000);
	ck_assert_uint_eq(b.n, 0);
	buf_fini(&b);
}
END_TEST

/* The first append that does not fit poisons; nothing after it is written. */
START_TEST(maximum)
{
	struct buf b;
	size_t n = 7;
	buf_init(&b, 4);
	buf_puts(&b, "abcd");
	ck_assert(buf_ok(&b));
	buf_putc(&b, 'e');
	ck_assert(!buf_ok(&b));
	buf_put(&b, "", 0);
	ck_assert(!buf_ok(&b));
	ck_assert_ptr_null(buf_room(&b, 0));
	ck_assert_ptr_null(buf_take(&b, &n));
	ck_assert_uint_eq(n, 0);
	buf_clear(&b);
	ck_assert(buf_ok(&b));
	ck_assert_ptr_null(buf_room(&b, SIZE_MAX));
	ck_assert(!buf_ok(&b));
	buf_clear(&b);
	buf_puts(&b, "x");
	ck_assert(strv_eq(buf_strv(&b), STRV("x")));
	buf_printf(&b, "%s", "yzab");
	ck_assert(!buf_ok(&b));
	buf_fini(&b);
}
END_TEST

START_TEST(taking)
{
	struct buf b;
	size_t n = 0;
	buf_init(&b, 100);
	ck_assert_ptr_null(buf_take(&b, &n));
	buf_puts(&b, "abc");
	uint8_t *p = buf_take(&b, &n);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(memcmp(p, "abc", 3), 0);
	ck_assert_uint_eq(b.n, 0);
	buf_puts(&b, "again");
	ck_assert(strv_eq(buf_strv(&b), STRV("again")));
	base_free(p);
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("buf");
	TCase *t = tcase_create("buf");
	tcase_add_test(t, appending);
	tcase_add_test(t, maximum);
	tcase_add_test(t, taking);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
