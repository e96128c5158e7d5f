/* An operator's words: memory follows the rows, in whatever order statements are answered. */
#include "tests/unit/core_script.h"

static const char document[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1700000000000,"
	"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
	"\"last-partition-id\":999,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
	"\"fields\":[]}],\"properties\":{},\"next-row-id\":0}";

static struct script s;
static const struct table_id table = {{{1}}};

static struct metadata *meta(void)
{
	struct metadata *m = NULL;
	struct err err = {0};
	struct bytes b = {(const uint8_t *)document, sizeof document - 1};
	UNIT_OK(metadata_parse(b, ST_CORRUPT, &m, &err), &err);
	return m;
}

static req_id commit(void)
{
	struct event ev = {.kind = EV_TABLE_COMMIT};
	ev.u.req.table = table;
	ev.u.req.incarnation = 1;
	req_id r = script_request(&s, ev);
	script_tick(&s, 0);
	return r;
}

static req_id word(enum ev_kind kind, int64_t deadline_us)
{
	struct event ev = {.kind = kind};
	ev.u.req.table = table;
	ev.u.req.deadline_us = deadline_us;
	if (kind == EV_HALT)
		ev.u.req.u.halt.cause = STRV("because");
	return script_request(&s, ev);
}

static size_t under_way(void)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n_open; i++)
		n += s.open[i].kind == FX_SQL && s.open[i].u.sql.kind == SQL_HALT;
	return n;
}

static void applied(void)
{
	struct effect e = script_sql(&s, SQL_HALT);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
}

static void up(void)
{
	script_init(&s);
}

static void down(void)
{
	script_fini(&s);
}

static void load(struct strv halted)
{
	script_load_with(&s, table, meta(),
			 (struct sql_result){.halted = halted, .halted_pg_ms = SCRIPT_PG_MS});
}

/* Halted, then resumed while the first statement is under way: it serves in the end. */
START_TEST(one_word_at_a_time)
{
	req_id r = commit();
	load(STRV(""));
	script_tick(&s, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	req_id halt = word(EV_HALT, 0), resume = word(EV_RESUME, 0);
	ck_assert_uint_eq(under_way(), 1);
	applied();
	ck_assert_int_eq(script_reply(&s, halt), ST_OK);
	ck_assert_int_eq(script_reply(&s, resume), -1);
	ck_assert_uint_eq(under_way(), 1);
	applied();
	ck_assert_int_eq(script_reply(&s, resume), ST_OK);
	load(STRV(""));
	ck_assert_int_eq(script_reply(&s, commit()), ST_OK);
}
END_TEST

/* Who waited for too long is passed over. */
START_TEST(a_word_that_nobody_waits_for)
{
	req_id r = commit();
	load(STRV(""));
	script_tick(&s, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	req_id resume = word(EV_RESUME, 0), late = word(EV_HALT, s.now_us + 1000);
	req_id last = word(EV_RESUME, 0);
	script_tick(&s, 2000);
	ck_assert_int_eq(script_reply(&s, late), ST_OVERLOADED);
	applied();
	ck_assert_int_eq(script_reply(&s, resume), ST_OK);
	applied();
	ck_assert_int_eq(script_reply(&s, last), ST_OK);
	ck_assert_uint_eq(under_way(), 0);
	ck_assert_int_eq(script_reply(&s, commit()), ST_OK);
}
END_TEST

/* The rows of a table that is being loaded were read before the word was taken back, and are answered
 * after it. */
START_TEST(resumed_while_it_is_loaded)
{
	req_id r = commit(), resume = word(EV_RESUME, 0);
	if (_i)
		applied();
	load(STRV("surgery"));
	if (!_i) {
		ck_assert_int_eq(script_reply(&s, r), ST_TABLE_HALTED);
		applied();
		load(STRV(""));
	} else {
		script_tick(&s, 0);
		ck_assert_int_eq(script_reply(&s, r), ST_OK);
	}
	ck_assert_int_eq(script_reply(&s, resume), ST_OK);
	ck_assert_int_eq(script_reply(&s, commit()), ST_OK);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("halt");
	TCase *t = tcase_create("words");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_test(t, one_word_at_a_time);
	tcase_add_test(t, a_word_that_nobody_waits_for);
	tcase_add_loop_test(t, resumed_while_it_is_loaded, 0, 2);
	suite_add_tcase(all, t);
	return all;
}

UNIT_MAIN(suite)
