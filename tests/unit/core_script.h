/* Drives the commit core by hand: effects are collected, a test picks one by its kind and answers it
 * with a scripted completion. What is not picked stays unanswered, which is how a test keeps a
 * statement under way. */
#ifndef TESTS_UNIT_CORE_SCRIPT_H
#define TESTS_UNIT_CORE_SCRIPT_H

#include "daemon/commit/port.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/rpc.h"
#include "tests/unit/unit.h"

#define SCRIPT_PG_MS INT64_C(1800000000000)

struct script {
	struct core *core;
	struct effect open[256]; /* not answered yet, oldest first */
	size_t n_open;
	struct {
		req_id req;
		enum reply_kind kind;
		enum status st;
		struct digest token; /* of a Begin */
	} replies[64];
	size_t n_replies;
	enum ev_kind kinds[64]; /* by req - 1 */
	int64_t now_us;
	int64_t pg_ms;
	req_id last_req;
};

static void script_done(const struct effect *e, struct event *ev)
{
	ev->kind = EV_DONE;
	ev->u.done.token = e->token;
	ev->u.done.kind = e->kind;
}

static void script_step(struct script *s, struct event *ev)
{
	struct effects fx;
	static const struct err ok;
	effects_init(&fx);
	ev->mono_us = s->now_us;
	ev->pg_ms = s->pg_ms;
	core_step(s->core, ev, &fx);
	/* Replies, logs and news are answered at once; all else waits for the test. */
	for (size_t i = 0; i < fx.n; i++) {
		struct effect *e = &fx.v[i];
		if (e->kind == FX_REPLY) {
			const struct reply *r = &e->u.reply.reply;
			ck_assert(s->n_replies < ARRAY_SIZE(s->replies));
			s->replies[s->n_replies].req = e->u.reply.req;
			s->replies[s->n_replies].kind = r->kind;
			s->replies[s->n_replies].st = r->kind == REPLY_ERR ? r->err.st : ST_OK;
			if (r->kind == REPLY_RPC && s->kinds[e->u.reply.req - 1] == EV_BEGIN) {
				const struct rpc_begin_reply *b = r->msg;
				ck_assert_uint_eq(b->lease_token.n, 32);
				memcpy(s->replies[s->n_replies].token.b, b->lease_token.p, 32);
			}
			s->n_replies++;
		}
		if (e->kind == FX_REPLY || e->kind == FX_LOG || e->kind == FX_HEAD) {
			struct event done = {0};
			script_done(e, &done);
			done.u.done.err = &ok;
			script_step(s, &done);
			continue;
		}
		ck_assert(s->n_open < ARRAY_SIZE(s->open));
		s->open[s->n_open++] = *e;
	}
	effects_fini(&fx);
	/* As the daemon does: a timer that is due fires in the next turn of the loop. */
	if (ev->kind != EV_TICK && core_next_deadline(s->core) <= s->now_us) {
		struct event tick = {.kind = EV_TICK};
		script_step(s, &tick);
	}
}

/* Takes the oldest open SQL effect of the kind; fails when there is none. */
static struct effect script_sql(struct script *s, enum sql_kind kind)
{
	for (size_t i = 0; i < s->n_open; i++)
		if (s->open[i].kind == FX_SQL && s->open[i].u.sql.kind == kind) {
			struct effect e = s->open[i];
			memmove(&s->open[i], &s->open[i + 1],
				(s->n_open - i - 1) * sizeof s->open[0]);
			s->n_open--;
			return e;
		}
	ck_abort_msg("no statement of kind %d is under way", (int)kind);
}

static struct effect script_take(struct script *s, enum fx_kind kind)
{
	for (size_t i = 0; i < s->n_open; i++)
		if (s->open[i].kind == kind) {
			struct effect e = s->open[i];
			memmove(&s->open[i], &s->open[i + 1],
				(s->n_open - i - 1) * sizeof s->open[0]);
			s->n_open--;
			return e;
		}
	ck_abort_msg("no effect of kind %d is under way", (int)kind);
}

/* An answer of PostgreSQL; res->kind and sent are filled here. */
static void script_answer(struct script *s, const struct effect *e, struct sql_result res)
{
	struct event ev = {0};
	res.kind = e->u.sql.kind;
	res.sent = true;
	res.pg_ms = s->pg_ms;
	script_done(e, &ev);
	ev.u.done.sql = &res;
	script_step(s, &ev);
}

/* The same of anything else than a statement or a read: it went well. */
static inline void script_good(struct script *s, const struct effect *e)
{
	static const struct err ok;
	struct event ev = {0};
	script_done(e, &ev);
	ev.u.done.err = &ok;
	script_step(s, &ev);
}

static void script_tick(struct script *s, int64_t us)
{
	struct event ev = {.kind = EV_TICK};
	s->now_us += us;
	s->pg_ms += us / 1000;
	script_step(s, &ev);
}

static req_id script_request(struct script *s, struct event ev)
{
	ev.u.req.req = ++s->last_req;
	ck_assert(s->last_req <= ARRAY_SIZE(s->kinds));
	s->kinds[s->last_req - 1] = ev.kind;
	ev.u.req.principal = STRV("tester");
	script_step(s, &ev);
	return s->last_req;
}

/* The status of a request's one reply; -1 when it has none yet. */
static int script_reply(const struct script *s, req_id req)
{
	int found = -1;
	for (size_t i = 0; i < s->n_replies; i++)
		if (s->replies[i].req == req) {
			ck_assert_msg(found == -1, "two replies");
			found = (int)s->replies[i].st;
		}
	return found;
}

static struct core_conf script_conf(void)
{
	return (struct core_conf){.daemon = {{{1}}},
				  .queue_max = 100,
				  .batch_max_txns = 100,
				  .txn_max = 100,
				  .request_max_bytes = (size_t)16 << 20,
				  .cache_max_bytes = (size_t)16 << 20,
				  .ttl_default_ms = 5000,
				  .ttl_max_ms = 60000,
				  .lifetime_ms = 86400000,
				  .retry_us = 100000,
				  .load_timeout_us = 1000000,
				  .cleaner_grace_ms = 86400000,
				  .cleaner_tombstone_ms = 86400000,
				  .cleaner_interval_us = INT64_C(3600000000),
				  .verify_snapshots = 1};
}

/* A started core that knows no table. */
static void script_init(struct script *s)
{
	static const struct digest secret = {{7}};
	*s = (struct script){.now_us = 1000000, .pg_ms = SCRIPT_PG_MS, .core = NULL};
	s->core = core_new(42);
	struct core_conf conf = script_conf();
	struct event ev = {.kind = EV_CONFIG};
	ev.u.conf = &conf;
	script_step(s, &ev);
	struct event start = {.kind = EV_START};
	script_step(s, &start);
	struct effect e = script_sql(s, SQL_RECOVER);
	script_answer(s, &e, (struct sql_result){.secret = secret});
}

static void script_fini(struct script *s)
{
	core_free(s->core);
}

/* Answers the take-over of a table whose metadata is `m` (consumed); `queue` is what its rows say. */
static void script_load_with(struct script *s, struct table_id id, struct metadata *own_m,
			     struct sql_result queue)
{
	struct effect e = script_sql(s, SQL_HEAD_READ);
	struct head_row head = {.table = id,
				.incarnation = 1,
				.epoch = 4,
				.version = 9,
				.metadata_location = STRV("file:///t/metadata/v9.metadata.json"),
				.last_batch = 9,
				.name = STRV("w.n.t")};
	script_answer(s, &e, (struct sql_result){.found = true, .head = head});
	e = script_sql(s, SQL_HEAD_BUMP);
	head.epoch++;
	script_answer(s, &e, (struct sql_result){.verdict = SQL_APPLIED, .head = head});
	e = script_take(s, FX_READ);
	struct read_result read = {.own_metadata = own_m};
	struct event ev = {0};
	script_done(&e, &ev);
	ev.u.done.read = &read;
	script_step(s, &ev);
	e = script_sql(s, SQL_QUEUE_READ);
	script_answer(s, &e, queue);
}

/* The same of a table that has no transactions. */
static inline void script_load(struct script *s, struct table_id id, struct metadata *own_m)
{
	script_load_with(s, id, own_m, (struct sql_result){0});
}

#endif
