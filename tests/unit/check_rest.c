/* REST commits of one table: what a client hears that repeats a request which was committed before, in
 * whole or in part, while the table serves, stands still or goes. A refusal would have it delete the files of
 * a live snapshot. */
#include "tests/unit/core_script.h"

#include "daemon/commit/encode.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"

static const char document[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":1,\"last-updated-ms\":1700000000000,"
	"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
	"\"last-partition-id\":999,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
	"\"fields\":[]}],\"properties\":{},\"next-row-id\":0,\"snapshots\":[{\"snapshot-id\":11,"
	"\"sequence-number\":1,\"timestamp-ms\":1700000000000,\"manifest-list\":"
	"\"file:///t/metadata/l11\",\"first-row-id\":0,\"added-rows\":0,\"summary\":{\"operation\":"
	"\"append\"},\"schema-id\":0}]}";

/* 11 is in the table, 12 and 13 are not. */
static const struct snapshot snapshots[] = {
	{.snapshot_id = 11,
	 .parent_id = SNAPSHOT_NONE,
	 .sequence_number = 1,
	 .timestamp_ms = 1700000000000,
	 .manifest_list = {"file:///t/metadata/l11", 22},
	 .operation = {"append", 6}},
	{.snapshot_id = 12,
	 .parent_id = 11,
	 .sequence_number = 2,
	 .timestamp_ms = 1700000000000,
	 .manifest_list = {"file:///t/metadata/l12", 22},
	 .operation = {"append", 6}},
	/* Another attempt of 11. */
	{.snapshot_id = 11,
	 .parent_id = SNAPSHOT_NONE,
	 .sequence_number = 1,
	 .timestamp_ms = 1700000000000,
	 .manifest_list = {"file:///t/metadata/l11-again", 28},
	 .operation = {"append", 6}},
};
static const struct requirement never = {.kind = REQUIREMENT_REF_SNAPSHOT_ID,
					 .ref = {"main", 4},
					 .snapshot_id = 77};
static struct table_id table = {{{1}}};
static struct script s;
static struct update pool[8][2]; /* one for each request */

static struct metadata *meta(void)
{
	struct metadata *m = NULL;
	struct err err = {0};
	struct bytes b = {(const uint8_t *)document, sizeof document - 1};
	UNIT_OK(metadata_parse(b, ST_CORRUPT, &m, &err), &err);
	return m;
}

/* first, second: of `snapshots`; second -1: only one is added. */
static req_id ask(int first, int second, bool fails)
{
	struct event ev = {.kind = EV_TABLE_COMMIT};
	struct update *updates = pool[s.last_req % ARRAY_SIZE(pool)];
	updates[0] = (struct update){.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &snapshots[first]};
	if (second >= 0)
		updates[1] = (struct update){.kind = UPDATE_ADD_SNAPSHOT,
					     .u.snapshot = &snapshots[second]};
	ev.u.req.table = table;
	ev.u.req.incarnation = 1;
	ev.u.req.u.commit_table =
		(struct ask_commit){fails ? &never : NULL, fails, updates, second < 0 ? 1 : 2};
	req_id r = script_request(&s, ev);
	script_tick(&s, 0);
	return r;
}

static void up(void)
{
	script_init(&s);
	struct event ev = {.kind = EV_TABLE_COMMIT};
	ev.u.req.table = table;
	ev.u.req.incarnation = 1;
	req_id r = script_request(&s, ev);
	script_load(&s, table, meta());
	script_tick(&s, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
}

static void down(void)
{
	script_fini(&s);
}

static const struct {
	int first, second;
	bool fails;
	int st, halted;
} repeats[] = {
	{0, -1, true, ST_OK, ST_OK},
	{1, -1, true, ST_COMMIT_FAILED, ST_TABLE_HALTED},
	/* A commit of two snapshots, as DuckDB's MERGE is: one of them has been expired since. */
	{0, 1, true, ST_COMMIT_UNKNOWN, ST_COMMIT_UNKNOWN},
	{1, 0, true, ST_COMMIT_UNKNOWN, ST_COMMIT_UNKNOWN},
	/* Another attempt of it is there, whether or not its requirements hold. */
	{2, -1, true, ST_COMMIT_UNKNOWN, ST_COMMIT_UNKNOWN},
	{2, -1, false, ST_COMMIT_UNKNOWN, ST_COMMIT_UNKNOWN},
};

START_TEST(repeated)
{
	req_id r = ask(repeats[_i].first, repeats[_i].second, repeats[_i].fails);
	ck_assert_int_eq(script_reply(&s, r), repeats[_i].st);
}
END_TEST

START_TEST(repeated_on_a_halted_table)
{
	struct event ev = {.kind = EV_HALT};
	ev.u.req.table = table;
	ev.u.req.u.halt.cause = STRV("because");
	script_request(&s, ev);
	struct effect e = script_sql(&s, SQL_HALT);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	req_id r = ask(repeats[_i].first, repeats[_i].second, repeats[_i].fails);
	ck_assert_int_eq(script_reply(&s, r), repeats[_i].halted);
}
END_TEST

/* It waits behind a batch while the table halts, or goes to another daemon. */
START_TEST(repeated_in_the_queue)
{
	for (int fenced = 0; fenced < 2; fenced++) {
		if (fenced) {
			down();
			up();
		}
		static const struct strv_pair pair = {{"owner", 5}, {"me", 2}};
		static const struct update set = {
			.kind = UPDATE_SET_PROPERTIES,
			.u.properties = {.v = (struct strv_pair *)(uintptr_t)&pair, .n = 1}};
		struct event ev = {.kind = EV_TABLE_COMMIT};
		ev.u.req.table = table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.commit_table = (struct ask_commit){NULL, 0, &set, 1};
		req_id first = script_request(&s, ev);
		script_tick(&s, 0);
		req_id there = ask(0, -1, true), fresh = ask(1, -1, true);
		struct effect e = script_take(&s, FX_ENCODE);
		encode_run(e.u.encode.in, e.u.encode.out);
		static const struct err ok;
		struct event done = {0};
		script_done(&e, &done);
		done.u.done.err = &ok;
		script_step(&s, &done);
		e = script_sql(&s, SQL_LEDGER);
		script_answer(&s, &e, (struct sql_result){.verdict = SQL_REFUSED});
		e = script_sql(&s, SQL_HEAD_READ);
		struct head_row head = {.table = table,
					.incarnation = 1,
					.epoch = fenced ? 6 : 5,
					.version = fenced ? 9 : 10,
					.metadata_location = STRV("file:///t/metadata/x.json"),
					.last_batch = 9,
					.name = STRV("w.n.t")};
		script_answer(&s, &e, (struct sql_result){.found = true, .head = head});
		int refused = fenced ? ST_OVERLOADED : ST_TABLE_HALTED;
		ck_assert_int_eq(script_reply(&s, first), refused);
		ck_assert_int_eq(script_reply(&s, fresh), refused);
		ck_assert_int_eq(script_reply(&s, there), fenced ? ST_COMMIT_UNKNOWN : ST_OK);
	}
}
END_TEST

/* Its metadata cannot be read: nobody knows what was committed. */
START_TEST(halted_unread)
{
	down();
	script_init(&s);
	req_id r = ask(1, -1, true);
	struct effect e = script_sql(&s, SQL_HEAD_READ);
	struct head_row head = {.table = table,
				.incarnation = 1,
				.epoch = 4,
				.version = 9,
				.metadata_location = STRV("file:///t/metadata/x.json"),
				.last_batch = 9,
				.name = STRV("w.n.t")};
	script_answer(&s, &e, (struct sql_result){.found = true, .head = head});
	e = script_sql(&s, SQL_HEAD_BUMP);
	head.epoch++;
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED, .head = head});
	e = script_take(&s, FX_READ);
	struct read_result read = {0};
	err_set(&read.err, ST_NOT_FOUND, "", "no such object");
	struct event ev = {0};
	script_done(&e, &ev);
	ev.u.done.read = &read;
	script_step(&s, &ev);
	ck_assert_int_eq(script_reply(&s, r), ST_COMMIT_UNKNOWN);
	/* A change of properties leaves no files behind. */
	struct event plain = {.kind = EV_TABLE_COMMIT};
	plain.u.req.table = table;
	plain.u.req.incarnation = 1;
	ck_assert_int_eq(script_reply(&s, script_request(&s, plain)), ST_TABLE_HALTED);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("rest");
	TCase *t = tcase_create("repeats");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_loop_test(t, repeated, 0, (int)ARRAY_SIZE(repeats));
	tcase_add_loop_test(t, repeated_on_a_halted_table, 0, (int)ARRAY_SIZE(repeats));
	tcase_add_test(t, repeated_in_the_queue);
	tcase_add_test(t, halted_unread);
	suite_add_tcase(all, t);
	return all;
}

UNIT_MAIN(suite)
