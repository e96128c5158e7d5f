/* One request of the worker protocol as its sink sees it, whatever way it came (frame or JSON), and
 * its one answer.
 *
 * The sink gets the request, keeps it as long as it works, and ends it with exactly one rpc_reply
 * or rpc_reply_err, at once or later; from then on the request is not the sink's any more. The
 * connection may be gone by then: the answer is dropped, and the client asks again. Loop thread
 * only. */
#ifndef DAEMON_RPC_RPC_REQUEST_H
#define DAEMON_RPC_RPC_REQUEST_H

#include "proto/base/arena.h"
#include "proto/base/list.h"
#include "proto/rpc/msg.h"

struct rpc_request {
	const struct rpc_message *message;
	const void *msg;    /* struct rpc_<message>, in the arena */
	struct arena arena; /* for the sink's own needs too */
	uint64_t session;   /* number of the connection: orders its transactions; 0 for JSON */
	bool provenance;    /* the client declared this capability */
	struct strv principal;
	int64_t started_mono_us;
	void *user; /* the sink's */

	/* Private: how the answer goes back. record is of `message`. */
	void (*answer)(struct rpc_request *own_r, const struct rpc_message *message,
		       const void *record, int http);
	struct list node;
	void *server;
	void *peer; /* NULL once the connection is gone */
	uint32_t request_id;
	size_t charge; /* bytes held against the connection's budget */
};

struct rpc_sink {
	void (*fn)(void *ctx, struct rpc_request *own_r);
	void *ctx;
};

/* record is a struct rpc_<message> of the request's reply type (message->reply), borrowed. */
void rpc_reply(struct rpc_request *own_r, const void *record);
/* err->st is not ST_OK; err->detail goes to the log. */
void rpc_reply_err(struct rpc_request *own_r, const struct err *err);

/* Memory of a request with n bytes of message: the decoded form and the sink's needs. */
size_t rpc_request_limit(size_t n);

struct json_request;
/* A request that came as JSON, in three steps, because a large body is decoded off the loop. done is
 * called once, with the reply's body, by rpc_json_run or later. */
struct json_request *rpc_json_new(struct strv name, int64_t now_mono_us,
				  void (*done)(void *ctx, int http, struct buf *own_body), void *ctx);
/* Pure; the body must live until the reply. NOT_FOUND when no request has the name. */
MUST_CHECK enum status rpc_json_decode(struct json_request *j, struct bytes body, struct err *err);
/* refused: what decoding said, st ST_OK when it went well. */
void rpc_json_run(struct json_request *own_j, const struct rpc_sink *sink, struct strv principal,
		  const struct err *refused);

#endif
