#include "daemon/commit/fair.h"
#include "tests/unit/unit.h"

#define MS INT64_C(1000)

/* Nothing is measured: the whole bound, until the client is back. */
START_TEST(first)
{
	struct fair f = {0};
	ck_assert(!fair_arrived(&f, 900 * MS));
	fair_own(&f, 990 * MS);
	ck_assert_int_eq(fair_wait(&f, 1000 * MS, 200 * MS), 1000 * MS);
	fair_refused(&f, 1000 * MS, 200 * MS);
	ck_assert_int_eq(f.until_us, 1200 * MS);
	ck_assert(fair_arrived(&f, 1050 * MS));
	ck_assert_int_eq(f.until_us, 1050 * MS);
	ck_assert_int_eq(f.round_us, 50 * MS);
	ck_assert(!fair_arrived(&f, 1050 * MS)); /* one hold, one that goes first */
	/* 50 ms were held: the next refusal is told when 250 have passed. */
	ck_assert_int_eq(fair_wait(&f, 1060 * MS, 200 * MS), 1250 * MS);
	ck_assert_int_eq(fair_wait(&f, 1260 * MS, 200 * MS), 1260 * MS);
}
END_TEST

/* Off: a refusal never holds. */
START_TEST(off)
{
	struct fair f = {.own_us = 999 * MS};
	fair_refused(&f, 1000 * MS, 0);
	ck_assert_int_eq(fair_wait(&f, 1000 * MS, 0), 1000 * MS);
	ck_assert_int_eq(f.until_us, 0);
	ck_assert(!fair_arrived(&f, 1001 * MS));
}
END_TEST

/* Nobody waits for workers that do not work. */
START_TEST(alone)
{
	struct fair f = {0};
	fair_refused(&f, 1000 * MS, 500 * MS);
	ck_assert_int_eq(f.until_us, 0);
	fair_own(&f, 1000 * MS);
	fair_refused(&f, 1999 * MS, 500 * MS);
	ck_assert_int_eq(f.until_us, 2499 * MS);
	ck_assert_int_eq(fair_wait(&f, 2600 * MS, 500 * MS), 2600 * MS);
	struct fair g = {0};
	fair_own(&g, 1000 * MS);
	fair_refused(&g, 2001 * MS, 500 * MS);
	ck_assert_int_eq(g.until_us, 0);
}
END_TEST

/* The measured round replaces the bound, and never passes it. */
START_TEST(measured)
{
	struct fair f = {.own_us = 1000 * MS};
	fair_refused(&f, 1000 * MS, 500 * MS);
	ck_assert(fair_arrived(&f, 1040 * MS));
	fair_own(&f, 1990 * MS);
	fair_refused(&f, 2000 * MS, 500 * MS);
	ck_assert_int_eq(f.until_us, 2160 * MS);
	ck_assert(!fair_arrived(&f, 9000 * MS)); /* too late; 7 s are its round now */
	fair_own(&f, 20000 * MS);
	fair_refused(&f, 20000 * MS, 500 * MS);
	ck_assert_int_eq(f.until_us, 20500 * MS);
}
END_TEST

/* A client whose round takes seconds (one that validates a long history again) is waited for as well; a
 * bound of a second would never see it back. Nobody measured yet: a second. */
START_TEST(slow_client)
{
	struct fair f = {0};
	fair_own(&f, 1000 * MS);
	fair_refused(&f, 1000 * MS, 5000 * MS);
	ck_assert_int_eq(f.until_us, 2000 * MS);
	ck_assert(!fair_arrived(&f, 2300 * MS)); /* after 1.3 s: too late */
	fair_own(&f, 5900 * MS);
	ck_assert_int_eq(fair_wait(&f, 5900 * MS, 5000 * MS), 6000 * MS);
	fair_refused(&f, 6000 * MS, 5000 * MS);
	ck_assert_int_eq(f.until_us, 11000 * MS); /* after a hold in vain: the bound */
	ck_assert(fair_arrived(&f, 7300 * MS));
	fair_own(&f, 12500 * MS);
	fair_refused(&f, 12600 * MS, 5000 * MS);
	ck_assert_int_eq(f.until_us, 17600 * MS); /* four rounds of 1.3 s are more than the bound */
	ck_assert(fair_arrived(&f, 13900 * MS));
}
END_TEST

/* Refused without end, by clients that never come back in time: a fifth of the time is held. */
START_TEST(share)
{
	struct fair f = {0};
	int64_t held = 0;
	for (int64_t now = 1; now < 100000 * MS; now += MS) {
		if (now < f.until_us) {
			held += MS;
		} else {
			fair_own(&f, now);
			fair_refused(&f, now, 300 * MS);
		}
	}
	ck_assert_int_le(held, 20000 * MS + 300 * MS);
	ck_assert_int_ge(held, 19000 * MS);
	/* Also when they do come back. */
	struct fair g = {0};
	held = 0;
	for (int64_t now = 1; now < 100000 * MS; now += MS) {
		if (now < g.until_us) {
			held += MS;
			if (now - g.began_us > 37 * MS)
				fair_arrived(&g, now);
		} else {
			fair_own(&g, now);
			fair_refused(&g, now, 300 * MS);
		}
	}
	ck_assert_int_le(held, 20000 * MS + 300 * MS);
	ck_assert_int_ge(held, 18000 * MS);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fair");
	TCase *t = tcase_create("fair");
	tcase_add_test(t, first);
	tcase_add_test(t, off);
	tcase_add_test(t, alone);
	tcase_add_test(t, measured);
	tcase_add_test(t, slow_client);
	tcase_add_test(t, share);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
