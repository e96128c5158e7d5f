/* Tables that come and go while one of the same uuid is in memory: the answer of a creation or of a drop
 * may come when the table is served again, and then speaks of another incarnation. */
#include "tests/unit/core_script.h"

#include "daemon/commit/encode.h"
#include "proto/iceberg/update.h"

static const char document[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1700000000000,"
	"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
	"\"last-partition-id\":999,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
	"\"fields\":[]}],\"properties\":{},\"next-row-id\":0}";

static struct script s;
static struct metadata *m;
static struct table_id table;
static struct strv_pair pairs[] = {{{"a", 1}, {"1", 1}}, {{"b", 1}, {"2", 1}}};
static struct update sets[2];

static struct metadata *meta(void)
{
	struct metadata *got = NULL;
	struct err err = {0};
	struct bytes b = {(const uint8_t *)document, sizeof document - 1};
	UNIT_OK(metadata_parse(b, ST_CORRUPT, &got, &err), &err);
	return got;
}

static void up(void)
{
	script_init(&s);
	m = meta();
	ck_assert(metadata_uuid(m, &table.u));
	for (int i = 0; i < 2; i++)
		sets[i] = (struct update){.kind = UPDATE_SET_PROPERTIES,
					  .u.properties = {.v = &pairs[i], .n = 1}};
}

static void down(void)
{
	script_fini(&s);
	metadata_unref(m);
}

static req_id create(void)
{
	static const struct strv level = STRV("n");
	struct event ev = {.kind = EV_TABLE_CREATE};
	ev.u.req.u.create = (struct ask_create){.warehouse = STRV("w"),
						.levels = &level,
						.n_levels = 1,
						.name = STRV("t"),
						.metadata = m,
						.location = STRV("file:///t/metadata/v9.metadata.json"),
						.registered = true};
	return script_request(&s, ev);
}

static req_id commit(int i)
{
	struct event ev = {.kind = EV_TABLE_COMMIT};
	ev.u.req.table = table;
	ev.u.req.incarnation = 1;
	ev.u.req.u.commit_table = (struct ask_commit){NULL, 0, &sets[i], 1};
	return script_request(&s, ev);
}

static void publish(void)
{
	script_tick(&s, 0);
	struct effect e = script_take(&s, FX_ENCODE);
	encode_run(e.u.encode.in, e.u.encode.out);
	script_good(&s, &e);
	e = script_sql(&s, SQL_LEDGER);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	e = script_take(&s, FX_PUT);
	script_good(&s, &e);
	e = script_sql(&s, SQL_PUBLISH);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
}

/* One commit is under way, another waits behind it; then the answer comes. */
static void both_land(req_id first, req_id second)
{
	publish();
	ck_assert_int_eq(script_reply(&s, first), ST_OK);
	ck_assert_int_eq(script_reply(&s, second), -1);
	publish();
	ck_assert_int_eq(script_reply(&s, second), ST_OK);
}

/* The answer of the creation was lost; whoever found the table by its name uses it already. */
START_TEST(in_use_before_the_answer)
{
	req_id made = create();
	struct effect e = script_sql(&s, SQL_TABLE_CREATE);
	bool known = _i; /* the first send is answered, late */
	if (!known)
		script_answer(&s, &e, (struct sql_result){.lost = true});
	req_id first = commit(0);
	script_load(&s, table, meta());
	req_id second = commit(1);
	script_tick(&s, 0);
	if (known) {
		script_answer(&s, &e,
			      (struct sql_result){.created = SQL_CREATED,
						  .head = {.table = table, .incarnation = 1, .epoch = 1}});
	} else {
		script_tick(&s, 200000);
		e = script_sql(&s, SQL_TABLE_CREATE);
		script_answer(&s, &e, (struct sql_result){.created = SQL_CREATE_EXISTS});
	}
	ck_assert_int_eq(script_reply(&s, made), ST_OK);
	both_land(first, second);
}
END_TEST

/* What is in memory is the incarnation before, or is still being read: it goes. */
START_TEST(older_in_memory)
{
	req_id first = commit(0);
	if (_i == 0)
		script_load(&s, table, meta());
	req_id second = commit(1);
	script_tick(&s, 0);
	create();
	struct effect e = script_sql(&s, SQL_TABLE_CREATE);
	script_answer(&s, &e,
		      (struct sql_result){.created = SQL_CREATED,
					  .head = {.table = table, .incarnation = 2, .epoch = 1}});
	if (_i == 0) {
		e = script_take(&s, FX_ENCODE);
		encode_run(e.u.encode.in, e.u.encode.out);
		script_good(&s, &e);
		e = script_sql(&s, SQL_LEDGER);
		script_answer(&s, &e, (struct sql_result){.verdict = SQL_REFUSED});
		e = script_sql(&s, SQL_HEAD_READ);
		struct head_row now = {.table = table, .incarnation = 2, .epoch = 1};
		script_answer(&s, &e, (struct sql_result){.found = true, .head = now});
		script_tick(&s, 0);
		ck_assert_int_eq(script_reply(&s, first), ST_TABLE_GONE);
		ck_assert_int_eq(script_reply(&s, second), ST_TABLE_GONE);
		return;
	}
	/* The head that was read may be that of before: it is read again. */
	e = script_sql(&s, SQL_HEAD_READ);
	script_answer(&s, &e, (struct sql_result){0});
	ck_assert_int_eq(script_reply(&s, first), -1);
	script_load(&s, table, meta());
	script_tick(&s, 0);
	both_land(first, second);
}
END_TEST

/* A drop is answered when the table is back and serves. */
START_TEST(back_before_the_drop_was_answered)
{
	struct event ev = {.kind = EV_TABLE_DROP};
	ev.u.req.table = table;
	ev.u.req.incarnation = 0;
	req_id drop = script_request(&s, ev);
	req_id first = commit(0);
	script_load(&s, table, meta());
	req_id second = commit(1);
	script_tick(&s, 0);
	struct effect e = script_sql(&s, SQL_TABLE_DROP);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, drop), ST_OK);
	both_land(first, second);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("create");
	TCase *t = tcase_create("incarnations");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_loop_test(t, in_use_before_the_answer, 0, 2);
	tcase_add_loop_test(t, older_in_memory, 0, 2);
	tcase_add_test(t, back_before_the_drop_was_answered);
	suite_add_tcase(all, t);
	return all;
}

UNIT_MAIN(suite)
