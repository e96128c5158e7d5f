/* One request as handlers see it, whatever way it came, and its one reply.
 *
 * A handler (route_fn) gets the call, keeps it as long as it works, and ends it with exactly one
 * call_reply_*; from then on the call is not the handler's any more. If the call's time is over
 * first, the client has got its answer already and the handler's reply is dropped. All views of
 * the call live in its arena until the reply. */
#ifndef DAEMON_NET_CALL_H
#define DAEMON_NET_CALL_H

#include "daemon/net/route.h"
#include "proto/base/uuid.h"

struct app;
struct call;
struct call_answer;
struct front;
struct http_req;
struct jdoc;

typedef void (*route_fn)(struct call *own_call);

/* Handlers by route; unset ones answer NOT_ACCEPTABLE. */
struct route_table {
	route_fn fn[ROUTE__COUNT];
	/* Asked before each call of the REST port, when its head is here alone: sets the principal, or
	 * answers the call and returns false. NULL: everybody may come. */
	bool (*admit)(struct call *call);
	/* Gets every call with an Idempotency-Key, and the handler that it was for. May be NULL. */
	void (*gate)(struct call *own_call, route_fn fn);
};
void route_set(struct route_table *t, enum route route, route_fn fn);

#define CALL_HEADERS_MAX 4

/* A handler's answer before it is sent. The headers stand in the call. */
struct call_answer {
	int http;
	bool again; /* an error that another attempt may not meet */
	const char *type;
	struct bytes body;
	void (*release)(void *arg); /* of the body; may be NULL */
	void *arg;
};

/* Who gets a call's answers in place of the client. Both own the call from then on. */
struct call_hold {
	void (*answered)(struct call *own_call, const struct call_answer *own_answer);
	/* The error was KEY_DECIDED: nothing happened, the answer is kept. */
	void (*decided)(struct call *own_call);
};

struct call {
	struct app *app;
	struct arena arena; /* for the handler's own needs too */
	struct uuid id;
	char id_text[UUID_TEXT_LEN + 1];
	struct strv method, target;
	struct route_hit hit; /* route, prefix, params, args */
	struct bytes body;
	/* Absent: p NULL. */
	struct strv if_none_match, idempotency_key, access_delegation, content_type, accept_encoding,
		authorization;
	struct strv principal;
	bool token_bad; /* one was shown, and did not open */
	int64_t started_mono_us, deadline_mono_us;
	void *user; /* the handler's */
	const struct call_hold *hold; /* NULL: answers go out */
	void *held;		      /* its own */

	/* Private to call and front. */
	struct front *front;
	struct http_req *req; /* NULL once answered */
	struct buf body_buf;
	bool begun; /* the handler has it */
	bool answered, handled;
	size_t n_headers;
	struct {
		const char *name, *value;
	} headers[CALL_HEADERS_MAX];
};

/* Sends it; the call must not be held any more. */
void call_send(struct call *own_call, const struct call_answer *own_answer);
/* Drops it, and the headers that it had put into the call. */
void call_drop(struct call *call, const struct call_answer *own_answer);
/* Whether an answer may come gzipped (RFC 9110, "Accept-Encoding"). */
bool call_accepts_gzip(const struct call *call);
/* Adds a header to the coming reply: static name; the value is copied and must hold no control
 * characters (ours, never input). */
void call_header(struct call *call, const char *name, struct strv value);
/* own_body: from base_alloc or buf_take. */
void call_reply_json(struct call *own_call, int http, struct bytes own_body);
/* Takes the buffer's content; a poisoned one is answered INTERNAL. */
void call_reply_buf(struct call *own_call, int http, struct buf *own_buf);
/* Shared bytes: release(arg) is called once when they are not needed any more, possibly at once. */
void call_reply_shared(struct call *own_call, int http, struct bytes body,
		       void (*release)(void *arg), void *arg);
/* Another content type than JSON. */
void call_reply_text(struct call *own_call, int http, const char *content_type,
		     struct buf *own_buf);
/* Without a body: 204, 304. */
void call_reply_status(struct call *own_call, int http);
/* Error model of the REST specification; err->detail goes to the log. */
void call_reply_err(struct call *own_call, const struct err *err);

/* {"error":{"message","type","code"}}, the field in front of the message; code is the HTTP status
 * that it goes out with. */
void call_error_body(const struct err *err, int http, struct buf *out);
/* Reads the body, off the loop when it is large (a parser may take seconds for what the limits
 * allow): parse is pure and touches the call's body, its arena and ctx only; then runs on the loop,
 * at once for a small body. */
void call_parse(struct call *call,
		enum status (*parse)(void *ctx, struct bytes body, struct arena *a, struct err *err),
		void (*then)(void *ctx, enum status st, const struct err *err), void *ctx);
/* Frees a parsed document, off the loop when the body it came from is large. NULL is fine. */
void call_free_doc(struct call *call, struct jdoc *own_doc);

/* The client has its answer already; work for it may stop. */
static inline bool call_is_overdue(const struct call *call)
{
	return call->answered;
}

#endif
