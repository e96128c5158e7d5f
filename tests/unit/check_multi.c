/* A request over two tables, its statements answered one by one: in which order tables are reserved, what
 * the one statement holds, and what is said and let go when something comes between. */
#include "tests/unit/core_script.h"

#include "daemon/commit/encode.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"

#define SNAPSHOT(id, list)                                                                        \
	"{\"snapshot-id\":" id ",\"sequence-number\":1,\"timestamp-ms\":1700000000000,"            \
	"\"manifest-list\":\"file:///t/metadata/" list "\",\"first-row-id\":0,\"added-rows\":0,"    \
	"\"summary\":{\"operation\":\"append\"},\"schema-id\":0}"
#define DOCUMENT(seq, snapshots)                                                                  \
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","           \
	"\"location\":\"file:///t\",\"last-sequence-number\":" seq                                 \
	",\"last-updated-ms\":1700000000000,\"last-column-id\":1,\"current-schema-id\":0,"         \
	"\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"id\"," \
	"\"required\":true,\"type\":\"long\"}]}],\"default-spec-id\":0,\"partition-specs\":["      \
	"{\"spec-id\":0,\"fields\":[]}],\"last-partition-id\":999,\"default-sort-order-id\":0,"    \
	"\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{},\"next-row-id\":0,"    \
	"\"snapshots\":[" snapshots "]}"
static const char empty[] = DOCUMENT("0", ""), with_11[] = DOCUMENT("1", SNAPSHOT("11", "l11")),
		  other_11[] = DOCUMENT("1", SNAPSHOT("11", "l11-again"));

static struct script s;
static struct table_id low = {{{1}}}, high = {{{2}}};
static struct strv_pair pair = {{"owner", 5}, {"me", 2}};
static const struct update set = {.kind = UPDATE_SET_PROPERTIES, .u.properties = {.v = &pair, .n = 1}};
static const struct requirement never = {.kind = REQUIREMENT_REF_SNAPSHOT_ID, .ref = {"main", 4}, .snapshot_id = 77};
static struct ask_part parts[3];
static const struct snapshot s11 = {.snapshot_id = 11,
				    .parent_id = SNAPSHOT_NONE,
				    .sequence_number = 1,
				    .timestamp_ms = 1700000000000,
				    .manifest_list = {"file:///t/metadata/l11", 22},
				    .operation = {"append", 6}},
			     s12 = {.snapshot_id = 12,
				    .parent_id = SNAPSHOT_NONE,
				    .sequence_number = 2,
				    .timestamp_ms = 1700000000000,
				    .manifest_list = {"file:///t/metadata/l12", 22},
				    .operation = {"append", 6}};
static const struct update add[] = {{.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s11},
				    {.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s12}};

static struct metadata *meta_of(const char *document)
{
	struct metadata *m = NULL;
	struct err err = {0};
	struct bytes b = {(const uint8_t *)document, strlen(document)};
	UNIT_OK(metadata_parse(b, ST_CORRUPT, &m, &err), &err);
	return m;
}

static struct metadata *meta(void)
{
	return meta_of(empty);
}

/* Both tables are known and do nothing; the higher one stands first in the request. */
static void up_with(const char *low_document, const char *high_document)
{
	script_init(&s);
	for (int i = 0; i < 2; i++) {
		struct event ev = {.kind = EV_TABLE_COMMIT};
		ev.u.req.table = i ? high : low;
		ev.u.req.incarnation = 1;
		req_id r = script_request(&s, ev);
		script_load(&s, ev.u.req.table, meta_of(i ? high_document : low_document));
		script_tick(&s, 0);
		ck_assert_int_eq(script_reply(&s, r), ST_OK);
	}
	for (int i = 0; i < 2; i++)
		parts[i] = (struct ask_part){.name = i ? STRV("n.low") : STRV("n.high"),
					     .table = i ? low : high,
					     .incarnation = 1,
					     .commit = {NULL, 0, &set, 1}};
}

static void up(void)
{
	up_with(empty, empty);
}

static void down(void)
{
	script_fini(&s);
}

static req_id ask(size_t n, int64_t deadline_us)
{
	struct event ev = {.kind = EV_TABLES_COMMIT};
	ev.u.req.deadline_us = deadline_us;
	ev.u.req.u.commit_tables.v = parts;
	ev.u.req.u.commit_tables.n = n;
	req_id r = script_request(&s, ev);
	script_tick(&s, 0);
	script_tick(&s, 0);
	return r;
}

static size_t open_sql(enum sql_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n_open; i++)
		n += s.open[i].kind == FX_SQL && s.open[i].u.sql.kind == kind;
	return n;
}

static size_t open_fx(enum fx_kind kind)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n_open; i++)
		n += s.open[i].kind == kind;
	return n;
}

static void answer(const struct effect *e)
{
	static const struct err ok;
	struct event ev = {0};
	script_done(e, &ev);
	ev.u.done.err = &ok;
	script_step(&s, &ev);
}

static void encode_one(void)
{
	struct effect e = script_take(&s, FX_ENCODE);
	encode_run(e.u.encode.in, e.u.encode.out);
	answer(&e);
}

static void write_one(void)
{
	struct effect e = script_sql(&s, SQL_LEDGER);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	e = script_take(&s, FX_PUT);
	answer(&e);
}

/* Up to the decision. */
static struct effect decision(void)
{
	while (open_fx(FX_ENCODE))
		encode_one();
	while (open_sql(SQL_LEDGER))
		write_one();
	ck_assert_uint_eq(open_sql(SQL_PUBLISH), 0);
	return script_sql(&s, SQL_TABLES_COMMIT);
}

static struct head_row head(struct table_id id, int64_t epoch, int64_t version)
{
	return (struct head_row){.table = id,
				 .incarnation = 1,
				 .epoch = epoch,
				 .holder = {{{1}}},
				 .version = version,
				 .metadata_location = STRV("file:///t/metadata/v9.metadata.json"),
				 .last_batch = 9,
				 .name = STRV("w.n.t")};
}

/* Another commit shows that the table is free. */
static void is_free(struct table_id id)
{
	struct event ev = {.kind = EV_TABLE_COMMIT};
	ev.u.req.table = id;
	ev.u.req.incarnation = 1;
	req_id r = script_request(&s, ev);
	script_tick(&s, s.now_us);
	script_tick(&s, 200000);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
}


START_TEST(one_statement_in_order)
{
	req_id r = ask(2, 0);
	struct effect e = decision();
	const struct sql_tables_commit *k = e.u.sql.u.tables;
	ck_assert_uint_eq(k->n_parts, 2);
	ck_assert_uint_eq(k->n_creates, 0);
	ck_assert(uuid_eq(k->parts[0]->row.table.u, low.u));
	ck_assert(uuid_eq(k->parts[1]->row.table.u, high.u));
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(k->parts[i]->row.epoch, 5);
		ck_assert_int_eq(k->parts[i]->row.base_version, 9);
		ck_assert_int_eq(k->parts[i]->row.batch_no, 10);
		ck_assert_uint_eq(k->parts[i]->n_objects, 1);
	}
	ck_assert(!uuid_eq(k->parts[0]->row.batch.u, k->parts[1]->row.batch.u));
	ck_assert_int_eq(script_reply(&s, r), -1);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(unchanged_is_guarded)
{
	parts[1].commit.n_updates = 0;
	req_id r = ask(2, 0);
	struct effect e = decision();
	const struct sql_tables_commit *k = e.u.sql.u.tables;
	ck_assert_uint_eq(k->n_parts, 2);
	ck_assert_int_eq(k->parts[0]->row.batch_no, 0);
	ck_assert_int_eq(k->parts[0]->row.base_version, 9);
	ck_assert_int_eq(k->parts[0]->row.epoch, 5);
	ck_assert_int_eq(k->parts[1]->row.batch_no, 10);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
}
END_TEST

START_TEST(nothing_is_sent_for_nothing)
{
	parts[0].commit.n_updates = parts[1].commit.n_updates = 0;
	req_id r = ask(2, 0);
	ck_assert_uint_eq(open_sql(SQL_TABLES_COMMIT), 0);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	is_free(low);
}
END_TEST

START_TEST(a_requirement_lets_all_go)
{
	parts[0].commit.requirements = &never;
	parts[0].commit.n_requirements = 1;
	req_id r = ask(2, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_COMMIT_FAILED);
	ck_assert_uint_eq(open_fx(FX_ENCODE), 0);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(twice_by_two_names)
{
	parts[1].table = high;
	req_id r = ask(2, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_BAD_REQUEST);
	is_free(high);
}
END_TEST

/* One request holds the lower table; what comes later waits there and holds nothing above it. */
START_TEST(reserved_one_by_one)
{
	req_id first = ask(2, 0);
	struct effect e = decision();
	req_id second = ask(2, s.now_us + 1000000);
	ck_assert_uint_eq(open_fx(FX_ENCODE), 0);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, first), ST_OK);
	/* Its turn has come; it changes nothing any more. */
	script_tick(&s, 0);
	script_tick(&s, 0);
	ck_assert_int_eq(script_reply(&s, second), ST_OK);
}
END_TEST

/* A table that is being loaded keeps nobody from the others. */
START_TEST(nobody_waits_for_a_load)
{
	static const struct table_id third = {{{3}}};
	parts[1].table = third;
	req_id r = ask(2, 0);
	is_free(high);
	ck_assert_int_eq(script_reply(&s, r), -1);
	script_load(&s, third, meta());
	script_tick(&s, 0);
	script_tick(&s, 0);
	struct effect e = decision();
	ck_assert(uuid_eq(e.u.sql.u.tables->parts[1]->row.table.u, third.u));
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
}
END_TEST

START_TEST(deadline_while_waiting)
{
	req_id first = ask(2, 0);
	struct effect e = decision();
	req_id second = ask(2, s.now_us + 50000);
	script_tick(&s, 60000);
	ck_assert_int_eq(script_reply(&s, second), ST_OVERLOADED);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, first), ST_OK);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(deadline_before_the_decision)
{
	req_id r = ask(2, s.now_us + 50000);
	encode_one();
	script_tick(&s, 60000);
	ck_assert_int_eq(script_reply(&s, r), ST_OVERLOADED);
	encode_one();
	/* The objects that were named go to the queue; nothing is decided. */
	struct effect e = script_sql(&s, SQL_LEDGER);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_uint_eq(open_sql(SQL_LEDGER), 0);
	ck_assert_uint_eq(open_fx(FX_PUT), 0);
	ck_assert_uint_eq(open_sql(SQL_UNLEDGER), 1);
	ck_assert_uint_eq(open_sql(SQL_TABLES_COMMIT), 0);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(deadline_after_the_decision)
{
	req_id r = ask(2, s.now_us + 50000);
	struct effect e = decision();
	script_tick(&s, 60000);
	ck_assert_int_eq(script_reply(&s, r), ST_COMMIT_UNKNOWN);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	is_free(low);
	is_free(high);
}
END_TEST

static struct effect lost(void)
{
	struct effect e = decision();
	script_answer(&s, &e, (struct sql_result){.lost = true});
	/* The first table alone is bumped, and only then looked for. */
	ck_assert_uint_eq(open_sql(SQL_BATCH_LOOK), 0);
	ck_assert_uint_eq(open_sql(SQL_HEAD_READ), 1);
	return script_sql(&s, SQL_HEAD_READ);
}

static struct effect bumped(struct effect e)
{
	ck_assert(uuid_eq(e.u.sql.u.table.u, low.u));
	script_answer(&s, &e, (struct sql_result){.found = true, .head = head(low, 5, 9)});
	e = script_sql(&s, SQL_HEAD_BUMP);
	ck_assert(uuid_eq(e.u.sql.u.bump.table.u, low.u));
	ck_assert_uint_eq(open_sql(SQL_BATCH_LOOK), 0);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED, .head = head(low, 6, 9)});
	return script_sql(&s, SQL_BATCH_LOOK);
}

START_TEST(lost_and_there)
{
	req_id r = ask(2, 0);
	struct effect e = bumped(lost());
	struct batch_row row = {.table = low};
	script_answer(&s, &e, (struct sql_result){.found = true, .batch = &row});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(lost_and_not_there)
{
	req_id r = ask(2, 0);
	struct effect e = bumped(lost());
	script_answer(&s, &e, (struct sql_result){0});
	ck_assert_int_eq(script_reply(&s, r), -1);
	ck_assert_uint_eq(open_sql(SQL_UNLEDGER), 2);
	/* Begun anew, under the new epoch. */
	script_tick(&s, 200000);
	script_tick(&s, 0);
	script_tick(&s, 200000);
	e = decision();
	ck_assert_int_eq(e.u.sql.u.tables->parts[0]->row.epoch, 6);
	ck_assert_int_eq(e.u.sql.u.tables->parts[1]->row.epoch, 5);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
}
END_TEST

START_TEST(lost_and_fenced)
{
	req_id r = ask(2, 0);
	struct effect e = lost();
	struct head_row h = head(low, 6, 9);
	h.holder = (struct daemon_id){{{9}}};
	script_answer(&s, &e, (struct sql_result){.found = true, .head = h});
	e = script_sql(&s, SQL_BATCH_LOOK);
	script_answer(&s, &e, (struct sql_result){0});
	ck_assert_int_eq(script_reply(&s, r), ST_FENCED);
	is_free(high);
}
END_TEST

START_TEST(lost_fenced_and_there)
{
	req_id r = ask(2, 0);
	struct effect e = lost();
	struct head_row h = head(low, 6, 10);
	struct batch_row row = {.table = low};
	h.holder = (struct daemon_id){{{9}}};
	script_answer(&s, &e, (struct sql_result){.found = true, .head = h});
	e = script_sql(&s, SQL_BATCH_LOOK);
	script_answer(&s, &e, (struct sql_result){.found = true, .batch = &row});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	is_free(high);
}
END_TEST

/* The guard of the second table: another daemon has it. The first stays ours. */
START_TEST(refused_by_the_second)
{
	req_id r = ask(2, 0);
	struct effect e = decision();
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_REFUSED, .at = 1});
	e = script_sql(&s, SQL_HEAD_READ);
	ck_assert(uuid_eq(e.u.sql.u.table.u, high.u));
	script_answer(&s, &e, (struct sql_result){.found = true, .head = head(high, 7, 9)});
	ck_assert_int_eq(script_reply(&s, r), ST_FENCED);
	script_tick(&s, 0);
	ck_assert_uint_eq(open_sql(SQL_UNLEDGER), 2);
	is_free(low);
}
END_TEST

START_TEST(refused_because_it_is_gone)
{
	req_id r = ask(2, 0);
	struct effect e = decision();
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_REFUSED, .at = 0});
	e = script_sql(&s, SQL_HEAD_READ);
	script_answer(&s, &e, (struct sql_result){.found = false});
	ck_assert_int_eq(script_reply(&s, r), ST_NO_SUCH_TABLE);
	is_free(high);
}
END_TEST

START_TEST(refused_by_an_error)
{
	req_id r = ask(2, 0);
	struct sql_result no = {0};
	for (int i = 0; i < 5; i++) {
		struct effect e = i ? script_sql(&s, SQL_TABLES_COMMIT) : decision();
		err_set(&no.err, ST_INTERNAL, "", "no");
		ck_assert_int_eq(script_reply(&s, r), -1);
		script_answer(&s, &e, no);
		script_tick(&s, 200000);
	}
	ck_assert_int_eq(script_reply(&s, r), ST_OVERLOADED);
	is_free(low);
}
END_TEST

START_TEST(dropped_before_the_decision)
{
	req_id r = ask(2, 0);
	struct event ev = {.kind = EV_TABLE_DROP};
	ev.u.req.table = high;
	ev.u.req.incarnation = 1;
	req_id drop = script_request(&s, ev);
	struct effect e = script_sql(&s, SQL_TABLE_DROP);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, drop), ST_OK);
	ck_assert_int_eq(script_reply(&s, r), ST_NO_SUCH_TABLE);
	encode_one();
	encode_one();
	ck_assert_uint_eq(open_sql(SQL_LEDGER), 0);
	is_free(low);
}
END_TEST

START_TEST(halted_before_the_decision)
{
	req_id r = ask(2, 0);
	struct event ev = {.kind = EV_HALT};
	ev.u.req.table = low;
	ev.u.req.u.halt.cause = STRV("because");
	req_id halt = script_request(&s, ev);
	struct effect e = script_sql(&s, SQL_HALT);
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_TABLE_HALTED);
	ck_assert_int_eq(script_reply(&s, halt), -1);
	encode_one();
	encode_one();
	script_tick(&s, 0);
	ck_assert_int_eq(script_reply(&s, halt), ST_OK);
	is_free(high);
}
END_TEST

static void with_creation(struct metadata **own_m)
{
	static const struct strv level = STRV("n");
	*own_m = meta();
	parts[2] = (struct ask_part){.name = STRV("n.new"), .creates = true};
	parts[2].create = (struct ask_create){.warehouse = STRV("w"),
					      .levels = &level,
					      .n_levels = 1,
					      .name = STRV("new"),
					      .metadata = *own_m,
					      .location = STRV("file:///t/metadata/0.metadata.json")};
}

START_TEST(a_creation_that_cannot_be)
{
	struct metadata *m;
	with_creation(&m);
	req_id r = ask(3, 0);
	struct effect e = decision();
	ck_assert_uint_eq(e.u.sql.u.tables->n_creates, 1);
	script_answer(&s, &e,
		      (struct sql_result){.verdict = SQL_REFUSED, .at = 2, .created = SQL_CREATE_NAME_TABLE});
	ck_assert_int_eq(script_reply(&s, r), ST_ALREADY_EXISTS);
	script_tick(&s, 0);
	ck_assert_uint_eq(open_sql(SQL_UNLEDGER), 3);
	is_free(low);
	metadata_unref(m);
}
END_TEST

/* Nothing to bump: the statement is repeated until it is answered, it knows its batch row. */
START_TEST(creations_alone)
{
	struct metadata *m;
	with_creation(&m);
	parts[0] = parts[2];
	req_id r = ask(1, 0);
	struct effect e = decision();
	ck_assert_uint_eq(e.u.sql.u.tables->n_parts, 0);
	struct batch_id id = e.u.sql.u.tables->creates[0]->row.batch;
	script_answer(&s, &e, (struct sql_result){.lost = true});
	ck_assert_uint_eq(open_sql(SQL_HEAD_READ), 0);
	script_tick(&s, 200000);
	e = script_sql(&s, SQL_TABLES_COMMIT);
	ck_assert(uuid_eq(e.u.sql.u.tables->creates[0]->row.batch.u, id.u));
	script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	metadata_unref(m);
}
END_TEST

/* ------------------------------------------------------------------ a request that comes again */

/* parts[0] is the higher table's, parts[1] the lower one's. */
static void asks(size_t i, size_t snapshot, bool fails)
{
	parts[i].commit = (struct ask_commit){fails ? &never : NULL, fails, &add[snapshot], 1};
}

static void again(const char *low_document, const char *high_document)
{
	down();
	up_with(low_document, high_document);
	asks(1, 0, true);
	asks(0, 1, true);
}

static const struct {
	const char *low;
	bool high_fails;
	int st;
} mixed[] = {
	{empty, true, ST_COMMIT_FAILED},
	/* What came with it was undone since, or belongs to another request: nobody knows. To the
	 * client a conflict would make garbage of the live snapshot's files. */
	{with_11, true, ST_COMMIT_UNKNOWN},
	{with_11, false, ST_COMMIT_UNKNOWN},
	/* An earlier attempt of the same writer, with a manifest list of its own. */
	{other_11, true, ST_COMMIT_UNKNOWN},
	{other_11, false, ST_COMMIT_UNKNOWN},
};

START_TEST(one_part_is_there)
{
	again(mixed[_i].low, empty);
	asks(0, 1, mixed[_i].high_fails);
	req_id r = ask(2, 0);
	ck_assert_int_eq(script_reply(&s, r), mixed[_i].st);
	ck_assert_uint_eq(open_fx(FX_ENCODE), 0);
	is_free(low);
	is_free(high);
}
END_TEST

START_TEST(all_parts_are_there)
{
	again(with_11, with_11);
	asks(0, 0, true);
	req_id r = ask(2, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_OK);
	is_free(low);
}
END_TEST

/* The table that came with it was dropped or renamed since. */
START_TEST(there_but_for_a_creation)
{
	struct metadata *m;
	again(with_11, empty);
	with_creation(&m);
	parts[0] = parts[2];
	req_id r = ask(2, 0);
	ck_assert_int_eq(script_reply(&s, r), ST_COMMIT_UNKNOWN);
	ck_assert_uint_eq(open_fx(FX_ENCODE), 0);
	is_free(low);
	metadata_unref(m);
}
END_TEST

/* Before it was judged one of its tables cannot be had; the other shows that it was committed. */
START_TEST(not_judged)
{
	for (int there = 0; there < 2; there++) {
		again(there ? with_11 : empty, empty);
		struct event ev = {.kind = EV_HALT};
		ev.u.req.table = high;
		ev.u.req.u.halt.cause = STRV("because");
		req_id halt = script_request(&s, ev);
		struct effect e = script_sql(&s, SQL_HALT);
		script_answer(&s, &e, (struct sql_result){.verdict = SQL_APPLIED});
		ck_assert_int_eq(script_reply(&s, halt), ST_OK);
		req_id r = ask(2, 0);
		ck_assert_int_eq(script_reply(&s, r), there ? ST_COMMIT_UNKNOWN : ST_TABLE_HALTED);
		is_free(low);
	}
}
END_TEST

/* A creation whose uuid is live under another name: it may be this very one, renamed since. */
START_TEST(created_and_renamed)
{
	struct metadata *m;
	with_creation(&m);
	req_id r = ask(3, 0);
	struct effect e = decision();
	script_answer(&s, &e,
		      (struct sql_result){.verdict = SQL_REFUSED, .at = 2, .created = SQL_CREATE_UUID_LIVE});
	ck_assert_int_eq(script_reply(&s, r), ST_COMMIT_UNKNOWN);
	is_free(low);
	metadata_unref(m);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("multi");
	TCase *t = tcase_create("multi");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_loop_test(t, one_part_is_there, 0, (int)ARRAY_SIZE(mixed));
	tcase_add_test(t, all_parts_are_there);
	tcase_add_test(t, there_but_for_a_creation);
	tcase_add_test(t, not_judged);
	tcase_add_test(t, created_and_renamed);
	tcase_add_test(t, one_statement_in_order);
	tcase_add_test(t, unchanged_is_guarded);
	tcase_add_test(t, nothing_is_sent_for_nothing);
	tcase_add_test(t, a_requirement_lets_all_go);
	tcase_add_test(t, twice_by_two_names);
	tcase_add_test(t, reserved_one_by_one);
	tcase_add_test(t, nobody_waits_for_a_load);
	tcase_add_test(t, deadline_while_waiting);
	tcase_add_test(t, deadline_before_the_decision);
	tcase_add_test(t, deadline_after_the_decision);
	tcase_add_test(t, lost_and_there);
	tcase_add_test(t, lost_and_not_there);
	tcase_add_test(t, lost_and_fenced);
	tcase_add_test(t, lost_fenced_and_there);
	tcase_add_test(t, refused_by_the_second);
	tcase_add_test(t, refused_because_it_is_gone);
	tcase_add_test(t, refused_by_an_error);
	tcase_add_test(t, dropped_before_the_decision);
	tcase_add_test(t, halted_before_the_decision);
	tcase_add_test(t, a_creation_that_cannot_be);
	tcase_add_test(t, creations_alone);
	suite_add_tcase(all, t);
	return all;
}

UNIT_MAIN(suite)
