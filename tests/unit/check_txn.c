/* Transactions whose end meets statements under way, step by step: nothing that an effect points at
 * goes before its answer, and every request is answered once. The sanitizers judge the memory. */
#include <stdio.h>

#include "daemon/commit/encode.h"
#include "proto/rpc/msg.h"
#include "tests/unit/core_script.h"

static const char DOCUMENT[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1700000000004,"
	"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":false,\"type\":\"long\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
	"\"last-partition-id\":999,\"default-sort-order-id\":0,"
	"\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{},\"next-row-id\":0,"
	"\"snapshots\":[],\"refs\":{}}";

struct bench {
	struct script s;
	struct table_id table;
	struct rpc_begin begin;
	struct rpc_stage stage;
	struct rpc_data_file file;
	req_id staging;
};

static struct txn_row row_of(const struct bench *b, enum txn_db_state state)
{
	return (struct txn_row){.txn = {b->begin.txn_id},
				.table = b->table,
				.incarnation = 1,
				.ttl_ms = 5000,
				.expires_pg_ms = SCRIPT_PG_MS + 5000,
				.state = state};
}

static struct sql_result item(const struct bench *b, enum status st, enum txn_db_state state)
{
	return (struct sql_result){
		.item = {.st = st, .has_row = true, .row = row_of(b, state)}};
}

/* An open transaction with a Stage statement under way. */
static void setup(struct bench *b)
{
	static const uint8_t random[10] = {1, 2, 3};
	struct script *s = &b->s;
	struct metadata *m = NULL;
	struct err err = {0};
	memset(b, 0, sizeof *b);
	UNIT_OK(metadata_parse((struct bytes){(const uint8_t *)DOCUMENT, sizeof DOCUMENT - 1},
			       ST_CORRUPT, &m, &err),
		&err);
	ck_assert(metadata_uuid(m, &b->table.u));
	script_init(s);
	b->begin = (struct rpc_begin){.txn_id = uuid_v7(SCRIPT_PG_MS, random),
				      .table = STRV("t"),
				      .ref = STRV("main"),
				      .kind = RPC_KIND_APPEND,
				      .isolation = RPC_ISOLATION_SNAPSHOT};
	struct event ev = {.kind = EV_BEGIN};
	ev.u.req.table = b->table;
	ev.u.req.incarnation = 1;
	ev.u.req.u.begin = &b->begin;
	req_id begun = script_request(s, ev);
	script_load(s, b->table, m);
	struct effect e = script_sql(s, SQL_TXN_BEGIN);
	ck_assert(uuid_eq(e.u.sql.u.begin->txn.u, b->begin.txn_id));
	script_answer(s, &e, item(b, ST_OK, TXN_DB_OPEN));
	ck_assert_int_eq(script_reply(s, begun), ST_OK);

	b->file = (struct rpc_data_file){.path = STRV("file:///t/data/a.parquet"),
					 .format = STRV("PARQUET"),
					 .record_count = 3,
					 .file_size = 100,
					 .new_row_count = 3};
	b->stage.txn_id = b->begin.txn_id;
	b->stage.lease_token = (struct bytes){s->replies[0].token.b, 32};
	b->stage.fragment.fragment_id = STRV("f1");
	b->stage.fragment.data_files = &b->file;
	b->stage.fragment.n_data_files = 1;
	ck_assert(msg_fragment_digest(&b->stage.fragment, &b->stage.fragment.digest));
	ev = (struct event){.kind = EV_STAGE};
	ev.u.req.u.stage = &b->stage;
	b->staging = script_request(s, ev);
}

START_TEST(expired_while_staging)
{
	struct bench b;
	setup(&b);
	script_tick(&b.s, 10000000);
	/* Whether or not the sweep waits for the Stage: an expiry that is under way when the Stage
	 * comes is the same case. */
	struct effect stage = script_sql(&b.s, SQL_TXN_STAGE);
	script_answer(&b.s, &stage, item(&b, ST_OK, TXN_DB_OPEN));
	ck_assert_int_eq(script_reply(&b.s, b.staging), ST_OK);
	script_tick(&b.s, 2000000);
	struct effect end = script_sql(&b.s, SQL_TXN_END);
	ck_assert_int_eq(end.u.sql.u.end.to, TXN_DB_EXPIRED);
	b.stage.fragment.fragment_id = STRV("f2");
	b.file.path = STRV("file:///t/data/b.parquet");
	ck_assert(msg_fragment_digest(&b.stage.fragment, &b.stage.fragment.digest));
	struct event ev = {.kind = EV_STAGE};
	ev.u.req.u.stage = &b.stage;
	req_id second = script_request(&b.s, ev);
	stage = script_sql(&b.s, SQL_TXN_STAGE);
	script_answer(&b.s, &end, item(&b, ST_OK, TXN_DB_EXPIRED));
	/* The statement's memory is still there, and so is whoever asked. */
	ck_assert(strv_eq(stage.u.sql.u.stage->row.fragment_id, STRV("f2")));
	ck_assert(strv_eq(stage.u.sql.u.stage->paths[0], STRV("file:///t/data/b.parquet")));
	script_answer(&b.s, &stage, item(&b, ST_TXN_STATE, TXN_DB_EXPIRED));
	int st = script_reply(&b.s, second);
	ck_assert_msg(st == ST_TXN_STATE || st == ST_TXN_EXPIRED, "got %d", st);
	script_fini(&b.s);
}
END_TEST

START_TEST(dropped_while_staging)
{
	struct bench b;
	setup(&b);
	struct effect stage = script_sql(&b.s, SQL_TXN_STAGE);
	struct event ev = {.kind = EV_TABLE_DROP};
	ev.u.req.table = b.table;
	ev.u.req.incarnation = 1;
	req_id drop = script_request(&b.s, ev);
	struct effect e = script_sql(&b.s, SQL_TABLE_DROP);
	script_answer(&b.s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(&b.s, drop), ST_OK);
	ck_assert_int_eq(script_reply(&b.s, b.staging), ST_TABLE_GONE);
	ck_assert(strv_eq(stage.u.sql.u.stage->row.fragment_id, STRV("f1")));
	script_answer(&b.s, &stage, item(&b, ST_TXN_STATE, TXN_DB_ABORTED));
	ck_assert_int_eq(script_reply(&b.s, b.staging), ST_TABLE_GONE);
	ck_assert(core_idle(b.s.core));
	script_fini(&b.s);
}
END_TEST

START_TEST(core_goes_in_the_middle)
{
	struct bench b;
	setup(&b);
	/* Nothing is answered any more: what is under way is freed all the same. */
	script_fini(&b.s);
}
END_TEST

static struct rpc_commit_once once_of(struct bench *b, uint8_t n, struct rpc_fragment *f,
				      struct rpc_data_file *file, struct strv path)
{
	uint8_t random[10] = {9, n};
	*file = b->file;
	file->path = path;
	*f = (struct rpc_fragment){
		.fragment_id = STRV("f"), .data_files = file, .n_data_files = 1};
	ck_assert(msg_fragment_digest(f, &f->digest));
	struct rpc_commit_once m = {.begin = b->begin, .fragments = f, .n_fragments = 1};
	m.begin.txn_id = uuid_v7(SCRIPT_PG_MS, random);
	m.begin.ordered = true;
	return m;
}

static void confirm(struct script *s, const struct effect *e)
{
	struct stat_result r = {.size = 100};
	struct event ev = {0};
	script_done(e, &ev);
	ev.u.done.stat = &r;
	script_step(s, &ev);
}

START_TEST(ordered_ones_keep_their_order)
{
	struct bench b;
	setup(&b);
	struct rpc_fragment f[2];
	struct rpc_data_file file[2];
	struct rpc_commit_once m[2] = {
		once_of(&b, 1, &f[0], &file[0], STRV("file:///t/data/1.parquet")),
		once_of(&b, 2, &f[1], &file[1], STRV("file:///t/data/2.parquet"))};
	struct effect stat[2];
	for (int i = 0; i < 2; i++) {
		struct event ev = {.kind = EV_COMMIT_ONCE};
		ev.u.req.table = b.table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.once = &m[i];
		script_request(&b.s, ev);
		struct effect e = script_sql(&b.s, SQL_TXN_ONCE);
		struct sql_result r = item(&b, ST_OK, TXN_DB_SEALED);
		r.item.row.txn = e.u.sql.u.once->row.txn;
		script_answer(&b.s, &e, r);
		stat[i] = script_take(&b.s, FX_STAT);
	}
	/* The later one's file is confirmed first: nothing is planned yet. */
	confirm(&b.s, &stat[1]);
	for (size_t i = 0; i < b.s.n_open; i++)
		ck_assert_int_ne(b.s.open[i].kind, FX_ENCODE);
	confirm(&b.s, &stat[0]);
	struct effect e = script_take(&b.s, FX_ENCODE);
	ck_assert_uint_ge(e.u.encode.in->plan->n_txns, 1);
	ck_assert(uuid_eq(e.u.encode.in->plan->txns[0].id.u, m[0].begin.txn_id));
	script_fini(&b.s);
}
END_TEST

/* The job finds that the batch exceeds its memory. */
static void too_big(struct script *s, const struct effect *e)
{
	struct event ev = {0};
	err_set(&e->u.encode.out->err, ST_LIMIT, "", "too big");
	script_done(e, &ev);
	script_step(s, &ev);
	script_tick(s, 1000000);
}

/* A batch that does not fit is halved until it fits; a transaction that does not fit alone is
 * refused, and the others are not. */
START_TEST(halved)
{
	enum { N = 5 };
	struct bench b;
	setup(&b);
	struct rpc_fragment f[N];
	struct rpc_data_file file[N];
	struct rpc_commit_once m[N];
	static const char *paths[N] = {"file:///t/data/1.parquet", "file:///t/data/2.parquet",
				       "file:///t/data/3.parquet", "file:///t/data/4.parquet",
				       "file:///t/data/5.parquet"};
	struct effect stat[N];
	for (uint8_t i = 0; i < N; i++) {
		m[i] = once_of(&b, i, &f[i], &file[i], strv_of(paths[i]));
		m[i].begin.ordered = false;
		struct event ev = {.kind = EV_COMMIT_ONCE};
		ev.u.req.table = b.table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.once = &m[i];
		script_request(&b.s, ev);
		struct effect e = script_sql(&b.s, SQL_TXN_ONCE);
		struct sql_result r = item(&b, ST_OK, TXN_DB_SEALED);
		r.item.row.txn = e.u.sql.u.once->row.txn;
		script_answer(&b.s, &e, r);
		stat[i] = script_take(&b.s, FX_STAT);
	}
	confirm(&b.s, &stat[0]);
	struct effect e = script_take(&b.s, FX_ENCODE);
	ck_assert_uint_eq(e.u.encode.in->plan->n_txns, 1);
	for (int i = 1; i < N; i++)
		confirm(&b.s, &stat[i]);
	too_big(&b.s, &e);
	/* The first is refused and goes along; five, two, then that one alone. */
	const size_t want[3] = {5, 2, 1};
	for (int i = 0; i < 3; i++) {
		e = script_take(&b.s, FX_ENCODE);
		const struct plan *p = e.u.encode.in->plan;
		ck_assert_uint_eq(p->n_txns, want[i]);
		ck_assert(uuid_eq(p->txns[0].id.u, m[0].begin.txn_id));
		ck_assert_int_eq(p->txns[0].state, TXN_DB_REJECTED);
		ck_assert_int_eq(p->txns[0].reject.st, ST_LIMIT);
		for (size_t k = 1; k < p->n_txns; k++)
			ck_assert_int_eq(p->txns[k].state, TXN_DB_COMMITTED);
		if (i < 2)
			too_big(&b.s, &e);
	}
	script_fini(&b.s);
}
END_TEST

START_TEST(lost_begin)
{
	struct bench b;
	static const uint8_t random[10] = {4, 4};
	setup(&b);
	struct effect e = script_sql(&b.s, SQL_TXN_STAGE);
	script_answer(&b.s, &e, item(&b, ST_OK, TXN_DB_OPEN));
	struct rpc_begin other = b.begin;
	other.txn_id = uuid_v7(SCRIPT_PG_MS, random);
	struct event ev = {.kind = EV_BEGIN};
	ev.u.req.table = b.table;
	ev.u.req.incarnation = 1;
	ev.u.req.u.begin = &other;
	ev.u.req.deadline_us = b.s.now_us + 50000;
	req_id req = script_request(&b.s, ev);
	e = script_sql(&b.s, SQL_TXN_BEGIN);
	script_answer(&b.s, &e, (struct sql_result){.lost = true});
	script_tick(&b.s, 60000);
	ck_assert_int_eq(script_reply(&b.s, req), ST_TIMEOUT);
	/* Its client went away; the statement is repeated and the row found, so that it expires. */
	script_tick(&b.s, 60000);
	e = script_sql(&b.s, SQL_TXN_BEGIN);
	struct sql_result r = item(&b, ST_OK, TXN_DB_OPEN);
	r.item.row.txn = (struct txn_id){other.txn_id};
	script_answer(&b.s, &e, r);
	script_tick(&b.s, 7000000);
	bool ended = false;
	for (int i = 0; i < 2; i++) {
		e = script_sql(&b.s, SQL_TXN_END);
		ended |= uuid_eq(e.u.sql.u.end.txn.u, other.txn_id);
	}
	ck_assert(ended);
	script_fini(&b.s);
}
END_TEST

/* N transactions that are asked for and confirmed; the first is being encoded alone. */
enum { TWO = 2 };
struct two {
	struct bench b;
	struct rpc_fragment f[TWO];
	struct rpc_data_file file[TWO];
	struct rpc_commit_once m[TWO];
	req_id req[TWO];
};

static void put_all(struct script *s)
{
	static const struct err ok;
	for (;;) {
		bool found = false;
		for (size_t i = 0; i < s->n_open; i++)
			found |= s->open[i].kind == FX_PUT;
		if (!found)
			return;
		struct effect e = script_take(s, FX_PUT);
		struct event ev = {0};
		script_done(&e, &ev);
		ev.u.done.err = &ok;
		script_step(s, &ev);
	}
}

static void run_encode(struct script *s)
{
	struct effect e = script_take(s, FX_ENCODE);
	struct event ev = {0};
	static const struct err ok;
	encode_run(e.u.encode.in, e.u.encode.out);
	ck_assert_int_eq(e.u.encode.out->err.st, ST_OK);
	script_done(&e, &ev);
	ev.u.done.err = &ok;
	script_step(s, &ev);
}

/* Up to the statement that decides; it is returned unanswered. */
static struct effect to_publish(struct script *s)
{
	run_encode(s);
	struct effect e = script_sql(s, SQL_LEDGER);
	script_answer(s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	put_all(s);
	return script_sql(s, SQL_PUBLISH);
}

static void ask_two(struct two *w, bool ordered, struct effect stat[TWO])
{
	static const char *paths[TWO] = {"file:///t/data/1.parquet", "file:///t/data/2.parquet"};
	setup(&w->b);
	for (uint8_t i = 0; i < TWO; i++) {
		w->m[i] = once_of(&w->b, i, &w->f[i], &w->file[i], strv_of(paths[i]));
		w->m[i].begin.ordered = ordered;
		struct event ev = {.kind = EV_COMMIT_ONCE};
		ev.u.req.table = w->b.table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.once = &w->m[i];
		w->req[i] = script_request(&w->b.s, ev);
		struct effect e = script_sql(&w->b.s, SQL_TXN_ONCE);
		struct sql_result r = item(&w->b, ST_OK, TXN_DB_SEALED);
		r.item.row.txn = e.u.sql.u.once->row.txn;
		script_answer(&w->b.s, &e, r);
		stat[i] = script_take(&w->b.s, FX_STAT);
	}
}

static void setup_two(struct two *w)
{
	struct effect stat[TWO];
	ask_two(w, true, stat);
	/* Ordered: the second's confirmation queues both at once. */
	confirm(&w->b.s, &stat[1]);
	confirm(&w->b.s, &stat[0]);
}

static const struct head_row SAME_HEAD = {.incarnation = 1,
					  .epoch = 5,
					  .version = 9,
					  .metadata_location =
						  {"file:///t/metadata/v9.metadata.json", 35},
					  .last_batch = 9};

/* Somebody deleted the row of a queued transaction: it is told so and the others are published; it
 * was planned again for ever. */
START_TEST(row_that_vanished)
{
	struct two w;
	setup_two(&w);
	struct script *s = &w.b.s;
	struct effect e = to_publish(s);
	size_t n = e.u.sql.u.publish->row.n_txns;
	script_answer(s, &e, (struct sql_result){.verdict = SQL_REFUSED});
	e = script_sql(s, SQL_HEAD_READ);
	script_answer(s, &e, (struct sql_result){.found = true, .head = SAME_HEAD});
	for (size_t i = 0; i < n; i++) {
		e = script_sql(s, SQL_TXN_READ);
		bool first = uuid_eq(e.u.sql.u.txn.u, w.m[0].begin.txn_id);
		struct sql_result r = item(&w.b, ST_OK, TXN_DB_SEALED);
		r.item.row.txn = e.u.sql.u.txn;
		if (first)
			r = (struct sql_result){.item = {.st = ST_TXN_UNKNOWN}};
		script_answer(s, &e, r);
	}
	ck_assert_int_eq(script_reply(s, w.req[0]), ST_TXN_UNKNOWN);
	ck_assert_int_eq(script_reply(s, w.req[1]), -1);
	script_tick(s, 1000000);
	e = to_publish(s);
	ck_assert_uint_eq(e.u.sql.u.publish->row.n_txns, 1);
	ck_assert(uuid_eq(e.u.sql.u.publish->row.txns[0].u, w.m[1].begin.txn_id));
	script_answer(s, &e, (struct sql_result){.verdict = SQL_APPLIED});
	ck_assert_int_eq(script_reply(s, w.req[1]), ST_OK);
	script_fini(s);
}
END_TEST

static void note_halted(void *ctx, const struct core_table_info *info)
{
	if (info->halted)
		snprintf(ctx, 200, "%.*s", STRV_ARG(info->halt_cause));
}

/* A server that keeps refusing a statement halts the table, which names the cause; one that is only
 * unavailable does not. _i: whether the ledger's statement is the one that is refused. */
START_TEST(refused_for_ever)
{
	struct two w;
	char cause[200] = "";
	setup_two(&w);
	struct script *s = &w.b.s;
	enum sql_kind kind = _i ? SQL_LEDGER : SQL_PUBLISH;
	struct effect e;
	if (_i) {
		run_encode(s);
		e = script_sql(s, SQL_LEDGER);
	} else {
		e = to_publish(s);
	}
	struct sql_result no = {.err = {.st = ST_UNAVAILABLE}};
	for (int i = 0; i < 20; i++) {
		script_answer(s, &e, no);
		script_tick(s, 1000000);
		e = script_sql(s, kind);
	}
	core_each_table(s->core, note_halted, cause);
	ck_assert_str_eq(cause, "");
	no = (struct sql_result){.err = {.st = ST_INTERNAL, .detail = "42501 permission denied"}};
	int tries = 1;
	for (;; tries++) {
		script_answer(s, &e, no);
		core_each_table(s->core, note_halted, cause);
		if (cause[0])
			break;
		ck_assert_int_lt(tries, 20);
		script_tick(s, 1000000);
		e = script_sql(s, kind);
	}
	ck_assert_int_gt(tries, 1);
	ck_assert_msg(strstr(cause, "42501"), "%s", cause);
	ck_assert_msg(!strstr(cause, "permission"), "%s", cause);
	/* What was asked for may still be decided, after a resume. */
	ck_assert_int_eq(script_reply(s, w.req[0]), ST_COMMIT_UNKNOWN);
	script_tick(s, 1000000);
	if (!_i)
		(void)script_sql(s, SQL_UNLEDGER);
	script_fini(s);
}
END_TEST

/* A transaction whose files are confirmed after the table has halted: who waits for it is told at once,
 * not at his deadline. */
START_TEST(confirmed_after_the_halt)
{
	struct two w;
	struct effect stat[TWO];
	ask_two(&w, false, stat);
	struct script *s = &w.b.s;
	confirm(s, &stat[0]);
	struct effect e = to_publish(s);
	const struct sql_result no = {.err = {.st = ST_INTERNAL, .detail = "42501 no"}};
	for (int i = 0; i < 5; i++) {
		script_answer(s, &e, no);
		script_tick(s, 200000);
		if (i < 4)
			e = script_sql(s, SQL_PUBLISH);
	}
	ck_assert_int_eq(script_reply(s, w.req[0]), ST_COMMIT_UNKNOWN);
	ck_assert_int_eq(script_reply(s, w.req[1]), -1);
	confirm(s, &stat[1]);
	ck_assert_int_eq(script_reply(s, w.req[1]), ST_COMMIT_UNKNOWN);
	script_fini(s);
}
END_TEST

/* A restarted daemon loads an operator's halted table while a Stage's row is being read: the transaction is
 * restored by then and goes on, as it does on a table that was halted before. A transaction that the loading
 * did not find is TABLE_HALTED. */
START_TEST(halted_while_the_row_was_read)
{
	for (int restored = 0; restored < 2; restored++) {
		struct bench b;
		struct buf begin;
		struct metadata *m = NULL;
		struct err err = {0};
		setup(&b);
		struct digest token = b.s.replies[0].token;
		b.stage.lease_token = (struct bytes){token.b, sizeof token.b};
		script_fini(&b.s);
		script_init(&b.s);
		buf_init(&begin, 65536);
		msg_encode(&rpc_record_begin, &b.begin, &begin);
		UNIT_OK(metadata_parse((struct bytes){(const uint8_t *)DOCUMENT,
						      sizeof DOCUMENT - 1},
				       ST_CORRUPT, &m, &err),
			&err);
		struct sql_result row = item(&b, ST_OK, TXN_DB_OPEN);
		row.item.row.begin = (struct bytes){begin.p, begin.n};
		struct event ev = {.kind = EV_STAGE};
		ev.u.req.u.stage = &b.stage;
		req_id staging = script_request(&b.s, ev);
		struct effect read = script_sql(&b.s, SQL_TXN_READ);
		/* Somebody else's Begin loads the table meanwhile. */
		struct rpc_begin other = b.begin;
		static const uint8_t random[10] = {6};
		other.txn_id = uuid_v7(SCRIPT_PG_MS, random);
		ev = (struct event){.kind = EV_BEGIN};
		ev.u.req.table = b.table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.begin = &other;
		req_id begun = script_request(&b.s, ev);
		script_load_with(&b.s, b.table, m,
				 (struct sql_result){.items = &row.item,
						     .n_items = restored ? 1 : 0,
						     .halted = STRV("surgery"),
						     .halted_pg_ms = SCRIPT_PG_MS});
		ck_assert_int_eq(script_reply(&b.s, begun), ST_TABLE_HALTED);
		script_answer(&b.s, &read, row);
		if (restored) {
			ck_assert_int_eq(script_reply(&b.s, staging), -1);
			struct effect e = script_sql(&b.s, SQL_TXN_STAGE);
			script_answer(&b.s, &e, row);
		}
		ck_assert_int_eq(script_reply(&b.s, staging),
				 restored ? (int)ST_OK : (int)ST_TABLE_HALTED);
		script_fini(&b.s);
		buf_fini(&begin);
	}
}
END_TEST

/* Another daemon has made it final while a Commit or an Abort was under way, or an earlier send of it was
 * executed: what the row says is the answer. A refusal would deny what may be committed. */
START_TEST(final_by_others)
{
	struct bench b;
	struct script *s = &b.s;
	bool abort = _i / 2, read = _i % 2;
	setup(&b);
	struct bytes token = {s->replies[0].token.b, 32};
	struct effect e = script_sql(s, SQL_TXN_STAGE);
	script_answer(s, &e, item(&b, ST_OK, TXN_DB_OPEN));
	struct event ev = {.kind = EV_ABORT};
	struct rpc_abort ab = {.txn_id = b.begin.txn_id, .lease_token = token};
	struct rpc_commit co = {.txn_id = b.begin.txn_id, .lease_token = token};
	struct rpc_fragment_ref ref = {.fragment_id = STRV("f1"),
				       .digest = b.stage.fragment.digest};
	struct rpc_seal seal = {.txn_id = b.begin.txn_id,
				.lease_token = token,
				.fragments = &ref,
				.n_fragments = 1,
				.expected_files = RPC_EXPECTED_NONE,
				.expected_rows = RPC_EXPECTED_NONE,
				.expected_deleted = RPC_EXPECTED_NONE};
	if (abort) {
		ev.u.req.u.abort = &ab;
	} else {
		ev.kind = EV_SEAL;
		ev.u.req.u.seal = &seal;
		req_id sealing = script_request(s, ev);
		e = script_take(s, FX_STAT);
		confirm(s, &e);
		e = script_sql(s, SQL_TXN_SEAL);
		script_answer(s, &e, item(&b, ST_OK, TXN_DB_SEALED));
		ck_assert_int_eq(script_reply(s, sealing), ST_OK);
		ev.kind = EV_COMMIT;
		ev.u.req.u.commit = &co;
	}
	req_id r = script_request(s, ev);
	e = script_sql(s, abort ? SQL_TXN_END : SQL_TXN_REQUEST);
	script_answer(s, &e, item(&b, ST_TXN_STATE, TXN_DB_EXPIRED));
	ck_assert_int_eq(script_reply(s, r), -1);
	for (int i = 0; i < 2; i++) {
		e = script_sql(s, SQL_TXN_READ);
		script_answer(s, &e,
			      read ? item(&b, ST_OK, TXN_DB_EXPIRED) : (struct sql_result){.lost = true});
	}
	/* An outcome, which says EXPIRED. */
	ck_assert_int_eq(script_reply(s, r), read ? (int)ST_OK : (int)ST_COMMIT_UNKNOWN);
	script_fini(s);
}
END_TEST

/* The same of a CommitOnce: its statement met a row that is final, which then cannot be read. */
START_TEST(once_final_and_unread)
{
	struct bench b;
	struct rpc_fragment f;
	struct rpc_data_file file;
	setup(&b);
	struct rpc_commit_once m = once_of(&b, 0, &f, &file, STRV("file:///t/data/1.parquet"));
	struct event ev = {.kind = EV_COMMIT_ONCE};
	ev.u.req.table = b.table;
	ev.u.req.incarnation = 1;
	ev.u.req.u.once = &m;
	req_id r = script_request(&b.s, ev);
	struct effect e = script_sql(&b.s, SQL_TXN_ONCE);
	script_answer(&b.s, &e, item(&b, ST_OK, TXN_DB_COMMITTED));
	e = script_sql(&b.s, SQL_TXN_READ);
	script_answer(&b.s, &e, (struct sql_result){.lost = true});
	ck_assert_int_eq(script_reply(&b.s, r), ST_COMMIT_UNKNOWN);
	script_fini(&b.s);
}
END_TEST

/* The table ends while a CommitOnce is under way, its statement sent or its files being read: it may be the
 * repeat of one that was decided long ago, and only rows know. */
START_TEST(once_when_the_table_ends)
{
	for (int known = 0; known < 2; known++) {
		struct bench b;
		struct script *s = &b.s;
		struct rpc_fragment f;
		struct rpc_data_file file;
		setup(&b);
		struct rpc_commit_once m = once_of(&b, 0, &f, &file, STRV("file:///t/data/1.parquet"));
		struct event ev = {.kind = EV_COMMIT_ONCE};
		ev.u.req.table = b.table;
		ev.u.req.incarnation = 1;
		ev.u.req.u.once = &m;
		req_id first = script_request(s, ev), second = script_request(s, ev);
		struct effect once = script_sql(s, SQL_TXN_ONCE);
		struct txn_row row = once.u.sql.u.once->row;
		row.state = TXN_DB_EXPIRED;
		ev = (struct event){.kind = EV_TABLE_DROP};
		ev.u.req.table = b.table;
		ev.u.req.incarnation = 1;
		script_request(s, ev);
		struct effect e = script_sql(s, SQL_TABLE_DROP);
		script_answer(s, &e, (struct sql_result){.verdict = SQL_APPLIED});
		script_answer(s, &once, item(&b, ST_TABLE_GONE, TXN_DB_OPEN));
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(script_reply(s, i ? second : first), -1);
			e = script_sql(s, SQL_TXN_READ);
			script_answer(s, &e,
				      known ? (struct sql_result){.item = {.has_row = true, .row = row}}
					    : (struct sql_result){.item = {.st = ST_TXN_UNKNOWN}});
			ck_assert_int_eq(script_reply(s, i ? second : first),
					 known ? (int)ST_OK : (int)ST_TABLE_GONE);
		}
		script_fini(s);
	}
}
END_TEST

/* Fragments of all open transactions together are bounded; what is there can still be ended. */
START_TEST(memory_of_all)
{
	struct bench b;
	setup(&b);
	struct script *s = &b.s;
	struct effect e = script_sql(s, SQL_TXN_STAGE);
	script_answer(s, &e, item(&b, ST_OK, TXN_DB_OPEN));
	struct core_conf conf = script_conf();
	conf.txn_max_bytes = 512;
	struct event ev = {.kind = EV_CONFIG};
	ev.u.conf = &conf;
	script_step(s, &ev);
	struct rpc_stage more = b.stage;
	more.fragment.fragment_id = STRV("f2");
	struct rpc_data_file file = b.file;
	file.path = STRV("file:///t/data/b.parquet");
	more.fragment.data_files = &file;
	ck_assert(msg_fragment_digest(&more.fragment, &more.fragment.digest));
	ev = (struct event){.kind = EV_STAGE};
	ev.u.req.u.stage = &more;
	ck_assert_int_eq(script_reply(s, script_request(s, ev)), ST_OVERLOADED);
	/* The same once more is answered from what is there. */
	ev.u.req.u.stage = &b.stage;
	ck_assert_int_eq(script_reply(s, script_request(s, ev)), ST_OK);
	struct rpc_begin other = b.begin;
	static const uint8_t random[10] = {4, 4};
	other.txn_id = uuid_v7(SCRIPT_PG_MS, random);
	struct event begin = {.kind = EV_BEGIN};
	begin.u.req.table = b.table;
	begin.u.req.incarnation = 1;
	begin.u.req.u.begin = &other;
	ck_assert_int_eq(script_reply(s, script_request(s, begin)), ST_OVERLOADED);
	struct rpc_abort abort = {.txn_id = b.begin.txn_id, .lease_token = b.stage.lease_token};
	struct event end = {.kind = EV_ABORT};
	end.u.req.u.abort = &abort;
	req_id ended = script_request(s, end);
	e = script_sql(s, SQL_TXN_END);
	script_answer(s, &e, item(&b, ST_OK, TXN_DB_ABORTED));
	ck_assert_int_eq(script_reply(s, ended), ST_OK);
	/* Its memory is free again. */
	script_request(s, begin);
	e = script_sql(s, SQL_TXN_BEGIN);
	script_fini(s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("txn");
	TCase *t = tcase_create("txn");
	tcase_add_test(t, expired_while_staging);
	tcase_add_test(t, dropped_while_staging);
	tcase_add_test(t, core_goes_in_the_middle);
	tcase_add_test(t, ordered_ones_keep_their_order);
	tcase_add_test(t, halved);
	tcase_add_test(t, lost_begin);
	tcase_add_test(t, row_that_vanished);
	tcase_add_loop_test(t, refused_for_ever, 0, 2);
	tcase_add_test(t, confirmed_after_the_halt);
	tcase_add_test(t, halted_while_the_row_was_read);
	tcase_add_loop_test(t, final_by_others, 0, 4);
	tcase_add_test(t, once_final_and_unread);
	tcase_add_test(t, once_when_the_table_ends);
	tcase_add_test(t, memory_of_all);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
