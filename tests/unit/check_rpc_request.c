/* The JSON mirror with a sink of the test's. */
#include "daemon/rpc/rpc_request.h"

#include <string.h>

#include "tests/unit/unit.h"

static int mark_ctx, mark_sink;
static int json_http;
static char json_text[4096];
static int json_calls;

static void on_json(void *ctx, int http, struct buf *own_body)
{
	ck_assert_ptr_eq(ctx, &mark_ctx);
	json_http = http;
	json_calls++;
	ck_assert(buf_ok(own_body) && own_body->n < sizeof json_text);
	memcpy(json_text, own_body->p, own_body->n);
	json_text[own_body->n] = 0;
	buf_fini(own_body);
}

static void json_sink(void *ctx, struct rpc_request *r)
{
	struct err err = {0};
	ck_assert_ptr_eq(ctx, &mark_sink);
	ck_assert(strv_eq(r->principal, STRV("me")) && r->session == 0 && !r->provenance);
	ck_assert_int_eq(r->started_mono_us, 5);
	if (r->message->type == RPC_MSG_STATUS) {
		struct rpc_outcome o = {.txn_id = ((const struct rpc_status *)r->msg)->txn_id,
					.state = RPC_STATE_SEALED};
		rpc_reply(r, &o);
		return;
	}
	(void)err_set(&err, ST_UNAVAILABLE, "", "no database");
	rpc_reply_err(r, &err);
}

static void json(const char *name, const char *body)
{
	struct rpc_sink s = {json_sink, &mark_sink};
	int before = json_calls;
	struct json_request *j = rpc_json_new(strv_of(name), 5, on_json, &mark_ctx);
	struct err err = {0};
	if (rpc_json_decode(j, strv_bytes(strv_of(body)), &err) == ST_OK)
		ck_assert_int_eq(err.st, ST_OK);
	rpc_json_run(j, &s, STRV("me"), &err);
	ck_assert_int_eq(json_calls, before + 1);
}

START_TEST(json_mirror)
{
	json("status", "{\"txn_id\":\"00000000-0000-0000-0000-000000000001\"}");
	ck_assert_int_eq(json_http, 200);
	ck_assert_ptr_nonnull(strstr(json_text, "\"state\":\"SEALED\""));
	json("status", "{\"txn_id\":\"x\"}");
	ck_assert_int_eq(json_http, 400);
	ck_assert_ptr_nonnull(strstr(json_text, "\"name\":\"BAD_REQUEST\",\"field\":\"txn_id\""));
	json("status", "");
	ck_assert_int_eq(json_http, 400);
	json("nothing", "{}");
	ck_assert_int_eq(json_http, 404);
	json("hello", "{\"min_version\":1,\"max_version\":1}");
	ck_assert_int_eq(json_http, 404);
	json("outcome", "{}");
	ck_assert_int_eq(json_http, 404);
	/* Clients of HTTP take 503 for "it may have happened". */
	json("heartbeat", "{}");
	ck_assert_int_eq(json_http, 429);
	ck_assert_ptr_nonnull(strstr(json_text, "\"retry\":\"LATER\",\"effect\":\"CLEAN\""));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rpc_request");
	TCase *c = tcase_create("json");
	tcase_add_test(c, json_mirror);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
