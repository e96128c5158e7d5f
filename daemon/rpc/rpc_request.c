#include "daemon/rpc/rpc_request.h"

#include "conf/log.h"
#include "proto/rpc/msg_json.h"

/* Decoded records take several times the bytes of their Avro form, more when arrays grow. */
#define LIMIT_BASE ((size_t)64 << 10)
#define LIMIT_FACTOR 64
/* JSON is wordier: no record takes more than that of its text. */
#define LIMIT_JSON_FACTOR 32

size_t rpc_request_limit(size_t n)
{
	size_t limit;
	return mul_size(n, LIMIT_FACTOR, &limit) && add_size(limit, LIMIT_BASE, &limit) ? limit
											: SIZE_MAX;
}

void rpc_reply(struct rpc_request *own_r, const void *record)
{
	own_r->answer(own_r, rpc_message_of(own_r->message->reply), record, 200);
}

void rpc_reply_err(struct rpc_request *own_r, const struct err *err)
{
	struct rpc_error e;
	ASSERT(err->st != ST_OK);
	const struct status_info *info = status_info(err->st);
	/* What the client did wrong is its own matter; what we could not do is ours. */
	enum log_level level = info->http >= 500 ? LOG_WARN : LOG_DEBUG;
	LOG(level, "rpc.error", LOG_WITH(.st = err->st), "%s: %s%s%s%s%s", own_r->message->name,
	    err->field, err->field[0] ? ": " : "", err->msg, err->detail[0] ? " | " : "",
	    err->detail);
	rpc_error_of(err, &e);
	/* Clients of HTTP take 503 for "may have happened"; here nothing was started. */
	own_r->answer(own_r, rpc_message_of(RPC_MSG_ERROR), &e,
		      info->http == 503 ? 429 : info->http);
}

/* JSON */

struct json_request {
	struct rpc_request r;
	void (*done)(void *ctx, int http, struct buf *own_body);
	void *ctx;
};

static void json_answer(struct rpc_request *own_r, const struct rpc_message *message,
			const void *record, int http)
{
	struct json_request *j = CONTAINER_OF(own_r, struct json_request, r);
	struct buf body;
	buf_init(&body, SIZE_MAX);
	msg_json_encode(message->record, record, &body);
	arena_fini(&j->r.arena);
	j->done(j->ctx, http, &body);
	base_free(j);
}

struct json_request *rpc_json_new(struct strv name, int64_t now_mono_us,
				  void (*done)(void *ctx, int http, struct buf *own_body), void *ctx)
{
	/* For the refusal of a name that is none. */
	static const struct rpc_message unknown = {.name = "unknown", .reply = RPC_MSG_NONE};
	struct json_request *j = base_calloc(1, sizeof *j);
	const struct rpc_message *m = rpc_message_named(name);
	bool request = m && m->reply != RPC_MSG_NONE && m->type != RPC_MSG_HELLO;
	j->done = done;
	j->ctx = ctx;
	j->r.message = request ? m : &unknown;
	j->r.answer = json_answer;
	j->r.started_mono_us = now_mono_us;
	list_init(&j->r.node);
	arena_init(&j->r.arena, 0);
	return j;
}

enum status rpc_json_decode(struct json_request *j, struct bytes body, struct err *err)
{
	j->r.arena.limit = LIMIT_BASE + body.n * LIMIT_JSON_FACTOR;
	if (j->r.message->reply == RPC_MSG_NONE)
		return err_set(err, ST_NOT_FOUND, "message",
			       "no request of the worker protocol has this name");
	return msg_json_decode(j->r.message->record, body, &j->r.arena, &j->r.msg, err);
}

void rpc_json_run(struct json_request *own_j, const struct rpc_sink *sink, struct strv principal,
		  const struct err *refused)
{
	struct err err = *refused;
	if (err.st == ST_OK && !arena_strv(&own_j->r.arena, principal, &own_j->r.principal))
		err_set(&err, ST_TOO_LARGE, "principal", "the name is too long");
	if (err.st != ST_OK)
		rpc_reply_err(&own_j->r, &err);
	else
		sink->fn(sink->ctx, &own_j->r);
}
