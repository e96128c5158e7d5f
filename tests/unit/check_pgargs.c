#include "store/pg/pgargs.h"

#include "tests/unit/unit.h"

static void same(const struct pgargs *a, int i, const uint8_t *want, size_t n)
{
	ck_assert_uint_eq(a->len[i], n);
	ck_assert_mem_eq(a->buf.p + a->at[i], want, n);
}

/* Expected bytes: what PostgreSQL 15's own send functions give (SELECT int8send(-2),
 * array_send(…)),
 * but for the flag in an array's second word, which says here that nulls may follow. */
START_TEST(scalars)
{
	struct pgargs a;
	pgargs_init(&a);
	pgargs_i64(&a, -2);
	pgargs_null(&a);
	pgargs_i32(&a, 258);
	pgargs_bool(&a, true);
	pgargs_text(&a, STRV("é"));
	pgargs_bytes(&a, (struct bytes){NULL, 0});
	pgargs_i16(&a, -3);
	ck_assert_int_eq(a.n, 7);
	ck_assert(pgargs_ok(&a));
	same(&a, 0, (const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xfe", 8);
	ck_assert(a.null[1] && !a.null[0] && !a.null[5]);
	same(&a, 2, (const uint8_t *)"\0\0\1\2", 4);
	same(&a, 3, (const uint8_t *)"\1", 1);
	same(&a, 4, (const uint8_t *)"\xc3\xa9", 2);
	ck_assert_uint_eq(a.len[5], 0);
	same(&a, 6, (const uint8_t *)"\xff\xfd", 2);
	pgargs_clear(&a);
	ck_assert_int_eq(a.n, 0);
	pgargs_fini(&a);
}
END_TEST

START_TEST(arrays)
{
	struct pgargs a;
	pgargs_init(&a);
	pgargs_array(&a, PGARGS_INT4);
	pgargs_put_i32(&a, 1);
	pgargs_put_null(&a);
	pgargs_put_i32(&a, 3);
	pgargs_end(&a);
	/* array_send(ARRAY[1, NULL, 3]) */
	same(&a, 0,
	     (const uint8_t *)"\0\0\0\1\0\0\0\1\0\0\0\x17\0\0\0\3\0\0\0\1"
			      "\0\0\0\4\0\0\0\1\xff\xff\xff\xff\0\0\0\4\0\0\0\3",
	     40);
	struct strv v[2] = {STRV("a"), STRV("")};
	pgargs_texts(&a, v, 2);
	same(&a, 1,
	     (const uint8_t *)"\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\2\0\0\0\1"
			      "\0\0\0\1"
			      "a\0\0\0\0",
	     29);
	pgargs_fini(&a);
}
END_TEST

START_TEST(text)
{
	ck_assert(pgargs_text_ok(STRV("abc"), 3));
	ck_assert(!pgargs_text_ok(STRV("abc"), 2));
	ck_assert(!pgargs_text_ok((struct strv){"a\0b", 3}, 9));
	ck_assert(!pgargs_text_ok((struct strv){"\xed\xa0\x80", 3}, 9)); /* a surrogate */
	ck_assert(pgargs_text_ok((struct strv){NULL, 0}, 0));
}
END_TEST

/* Too much poisons the block; a clear makes it usable again. */
START_TEST(limit)
{
	struct pgargs a;
	pgargs_init(&a);
	static uint8_t big[1 << 20];
	pgargs_array(&a, PGARGS_BYTEA);
	for (int i = 0; i < 65; i++)
		pgargs_put_bytes(&a, (struct bytes){big, sizeof big});
	pgargs_end(&a);
	ck_assert(!pgargs_ok(&a));
	pgargs_clear(&a);
	pgargs_i32(&a, 1);
	ck_assert(pgargs_ok(&a));
	pgargs_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("pgargs");
	TCase *c = tcase_create("pgargs");
	tcase_add_test(c, scalars);
	tcase_add_test(c, arrays);
	tcase_add_test(c, text);
	tcase_add_test(c, limit);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
