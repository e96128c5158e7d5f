/* A request from its line to its end: judged by its head, its body taken within limits, served, replied
 * once, and let go when the library says that it is over. */
#include "daemon/net/http_inner.h"

#include <dlfcn.h>

#include "daemon/net/http_head.h"

/* Seconds after which a refused client may come again. */
#define RETRY_AFTER "1"
/* A refused body up to this is read over, for nothing and into nothing. */
#define SKIP_MAX ((size_t)64 * 1024)

/* Replies. */

enum MHD_Result http_send_response(struct MHD_Connection *conn, unsigned int status,
				     struct MHD_Response *response)
{
	static enum MHD_Result (*real)(struct MHD_Connection *, unsigned int,
				       struct MHD_Response *);
	if (!real) {
		void *found = dlsym(RTLD_NEXT, "MHD_queue_response");
		ASSERT(found);
		memcpy(&real, &found, sizeof real);
	}
	return real(conn, status, response);
}

static enum MHD_Result queue_reply(struct http_req *r)
{
	/* A client that reads a byte now and then would hold the answer for ever. */
	r->due_mono_us = loop_mono_us(r->h->o.loop) + r->h->o.request_timeout_ms * 1000 +
			 (int64_t)(r->reply_n / r->h->o.read_rate) * 1000000;
	loop_timer_set(r->h->o.loop, &r->timer, r->due_mono_us);
	if (r->h->draining) {
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
		r->h->drain_mono_us = loop_mono_us(r->h->o.loop);
	}
	enum MHD_Result rc = http_send_response(r->conn, r->status, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	return rc;
}

void http_reply(struct http_req *r, const struct http_reply *reply)
{
	ASSERT((r->state == REQ_SERVING || r->state == REQ_JUDGING) &&
	       reply->n_headers <= HTTP_HEADERS_MAX);
	r->state = REQ_REPLIED;
	r->status = (unsigned int)reply->status;
	/* The bytes are only read; the interface lacks const. */
	void *body = (void *)(uintptr_t)reply->body.p;
	r->reply_n = reply->body.n;
	r->response = reply->free_body
			      ? MHD_create_response_from_buffer_with_free_callback_cls(
					reply->body.n, body, reply->free_body, reply->free_arg)
			      : MHD_create_response_from_buffer(reply->body.n, body,
								MHD_RESPMEM_PERSISTENT);
	ASSERT(r->response);
	for (size_t i = 0; i < reply->n_headers; i++) {
		enum MHD_Result rc = MHD_add_response_header(r->response, reply->headers[i].name,
							     reply->headers[i].value);
		ASSERT(rc == MHD_YES);
	}
	if (r->suspended) {
		r->suspended = false;
		r->h->suspended--;
		MHD_resume_connection(r->conn);
		loop_hook_arm(r->h->o.loop, &r->h->hook);
	}
}

static void refuse(struct http_req *r, const struct err *err)
{
	struct buf b;
	size_t n = 0;
	buf_init(&b, 4096);
	r->h->o.ops->error_body(err, status_info(err->st)->http, &b);
	uint8_t *body = buf_take(&b, &n);
	buf_fini(&b);
	r->h->stats.refused++;
	r->state = REQ_SERVING;
	struct http_reply reply = {.status = status_info(err->st)->http,
				   .body = {body, n},
				   .free_body = body ? base_free : NULL,
				   .free_arg = body,
				   .n_headers = 1,
				   .headers = {{"Content-Type", "application/json"}}};
	if (status_info(err->st)->retry == RETRY_LATER) {
		reply.headers[reply.n_headers].name = "Retry-After";
		reply.headers[reply.n_headers++].value = RETRY_AFTER;
	}
	http_reply(r, &reply);
}

/* Heads. */

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_n,
				 const char *value, size_t value_n)
{
	(void)kind;
	http_head_field(cls, (struct strv){key, key_n}, (struct strv){value, value ? value_n : 0});
	return MHD_YES;
}

static enum status check_head(struct http_req *r, const char *version, struct err *err)
{
	struct http_head head;
	http_head_init(&head, HTTP_MEMORY);
	http_head_line(&head, r->method, r->line_target, r->target_n, version);
	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, on_header, &head);
	r->has_body = http_head_has_body(&head);
	r->waits = r->has_body && http_head_waits(&head, SKIP_MAX);
	r->stated = head.length;
	return http_head_judge(&head, version, r->h->o.max_body, err);
}

/* Bodies. */

static void drop_body(struct http_req *r)
{
	r->h->stats.bodies -= r->body.n;
	if (r->limited)
		r->h->limited -= r->body.n;
	buf_fini(&r->body);
}

/* A chunked body may come without end: what is read for nothing is bounded by the request's timer,
 * which cuts the connection. */
static void take_body(struct http_req *r, const char *data, size_t n)
{
	struct http *h = r->h;
	if (r->refuse != ST_OK)
		return;
	if (n > h->o.max_bodies - h->stats.bodies ||
	    (r->limited && h->limited + n > h->o.max_body)) {
		drop_body(r);
		r->refuse = ST_OVERLOADED;
		return;
	}
	size_t before = r->body.n;
	buf_put(&r->body, data, n);
	h->stats.bodies += r->body.n - before;
	if (r->limited)
		h->limited += r->body.n - before;
	if (!buf_ok(&r->body)) {
		drop_body(r);
		r->refuse = ST_TOO_LARGE;
	}
}

static void serve(struct http_req *r)
{
	struct err err = {0};
	if (r->refuse == ST_TOO_LARGE) {
		err_set(&err, ST_TOO_LARGE, "", "the body is larger than %zu bytes", r->max_body);
		refuse(r, &err);
	} else if (r->refuse != ST_OK) {
		err_set(&err, r->refuse, "", "too many bytes of request bodies are in memory");
		refuse(r, &err);
	} else {
		r->state = REQ_SERVING;
		r->h->o.ops->serve(r->h->o.ctx, r);
	}
}

/* The library's callbacks. */

static void on_deadline(struct loop_timer *t)
{
	struct http_req *r = CONTAINER_OF(t, struct http_req, timer);
	int64_t now = loop_mono_us(r->h->o.loop);
	/* With an answer that is not queued yet a body is read over. */
	bool reads = r->state == REQ_HEAD || r->state == REQ_BODY ||
		     (r->state == REQ_REPLIED && r->response);
	if (now < r->due_mono_us && reads && http_has_ended(r->conn)) {
		http_hang_up(r->h, r->conn);
		return;
	}
	if (now < r->due_mono_us) {
		loop_timer_set(r->h->o.loop, t,
			       reads ? http_earlier(r->due_mono_us, now + HTTP_LOOK_US) : r->due_mono_us);
		return;
	}
	if (r->state == REQ_SERVING) {
		r->h->o.ops->overdue(r->h->o.ctx, r);
		ASSERT(r->state == REQ_REPLIED);
		return;
	}
	/* No answer can be queued in the middle of a head, a body or another answer: the connection
	 * ends. */
	http_cut(r->h, r->conn);
}

/* In the handler's first call: closes the connection after it. */
static enum MHD_Result answer_early(struct http_req *r)
{
	r->of->parts = true;
	return queue_reply(r);
}

void http_req_end(struct http_req *r)
{
	struct http *h = r->h;
	ASSERT(!r->suspended);
	r->of->req = NULL;
	loop_timer_cancel(h->o.loop, &r->timer);
	if (r->user)
		h->o.ops->over(h->o.ctx, r);
	if (r->response)
		MHD_destroy_response(r->response);
	drop_body(r);
	base_free(r);
	h->stats.requests--;
}

/* A request line was read; the target is not decoded yet. Its return value becomes *con_cls. */
void *http_req_line(void *cls, const char *target, struct MHD_Connection *conn)
{
	struct http *h = cls;
	struct conn *c = http_conn_of(conn);
	ASSERT(c);
	if (c->req)
		http_req_end(c->req);
	/* Bounded by HTTP_MEMORY. */
	size_t n = strlen(target);
	struct http_req *r = base_calloc(1, sizeof *r + n + 1);
	memcpy(r->target, target, n);
	r->line_target = target;
	r->target_n = n;
	r->h = h;
	r->conn = conn;
	r->of = c;
	c->req = r;
	r->started_mono_us = loop_mono_us(h->o.loop);
	r->max_body = h->o.max_body;
	buf_init(&r->body, r->max_body);
	loop_timer_init(&r->timer, on_deadline);
	r->due_mono_us = http_deadline_mono_us(r);
	loop_timer_set(h->o.loop, &r->timer, http_earlier(r->due_mono_us, r->started_mono_us + HTTP_LOOK_US));
	h->stats.requests++;
	loop_timer_cancel(h->o.loop, &c->timer);
	return r;
}

enum MHD_Result http_req_goes_on(void *cls, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_n, void **con_cls)
{
	struct http_req *r = *con_cls;
	(void)cls;
	(void)conn;
	(void)url;
	if (!r)
		return MHD_NO;
	switch (r->state) {
	case REQ_HEAD: {
		struct err err = {0};
		r->method = method;
		if (check_head(r, version, &err) != ST_OK) {
			refuse(r, &err);
			return answer_early(r);
		}
		r->state = REQ_JUDGING;
		r->h->o.ops->head(r->h->o.ctx, r);
		if (r->state == REQ_REPLIED && r->waits)
			return answer_early(r);
		/* Otherwise a later call answers, so that the connection goes on. */
		if (r->state == REQ_JUDGING)
			r->state = REQ_BODY;
		return MHD_YES;
	}
	case REQ_BODY:
		if (*upload_n) {
			take_body(r, upload, *upload_n);
			*upload_n = 0;
			return MHD_YES;
		}
		serve(r);
		break;
	case REQ_JUDGING:
	case REQ_SERVING:
	case REQ_REPLIED:
		if (*upload_n) {
			*upload_n = 0;
			return MHD_YES;
		}
		break;
	}
	if (r->response)
		return queue_reply(r);
	if (r->state == REQ_REPLIED)
		return MHD_YES;
	r->suspended = true;
	r->h->suspended++;
	MHD_suspend_connection(r->conn);
	return MHD_YES;
}

void http_req_over(void *cls, struct MHD_Connection *conn, void **con_cls,
		    enum MHD_RequestTerminationCode why)
{
	struct http_req *r = *con_cls;
	(void)cls;
	(void)why;
	http_wait_for_request(http_conn_of(conn));
	if (!r)
		return;
	*con_cls = NULL;
	http_req_end(r);
}

/* What callers ask. */

struct strv http_method(const struct http_req *r)
{
	return strv_of(r->method);
}

struct strv http_target(const struct http_req *r)
{
	return (struct strv){r->target, r->target_n};
}

struct strv http_header(const struct http_req *r, const char *name)
{
	const char *value = NULL;
	size_t n = 0;
	if (MHD_lookup_connection_value_n(r->conn, MHD_HEADER_KIND, name, strlen(name), &value,
					  &n) != MHD_YES)
		return (struct strv){NULL, 0};
	return value ? http_head_bare((struct strv){value, n}) : STRV("");
}

struct joined {
	struct strv name, value;
	struct arena *arena;
	bool failed;
};

static enum MHD_Result on_join(void *cls, enum MHD_ValueKind kind, const char *key, size_t key_n,
			       const char *value, size_t value_n)
{
	struct joined *j = cls;
	(void)kind;
	if (!strv_ieq((struct strv){key, key_n}, j->name))
		return MHD_YES;
	struct strv v = value ? (struct strv){value, value_n} : STRV("");
	if (!j->value.p) {
		j->value = v;
		return MHD_YES;
	}
	char *both = arena_printf(j->arena, "%.*s, %.*s", STRV_ARG(j->value), STRV_ARG(v));
	j->failed = !both;
	j->value = strv_of(both ? both : "");
	return both ? MHD_YES : MHD_NO;
}

bool http_header_list(const struct http_req *r, const char *name, struct arena *a,
		      struct strv *ret_v)
{
	struct joined j = {.name = strv_of(name), .arena = a};
	MHD_get_connection_values_n(r->conn, MHD_HEADER_KIND, on_join, &j);
	if (j.failed || (j.value.p && !arena_strv(a, j.value, &j.value)))
		return false;
	*ret_v = j.value;
	return true;
}

bool http_has_body(const struct http_req *r)
{
	return r->has_body;
}

bool http_limit_body(struct http_req *r, size_t max)
{
	ASSERT(r->state == REQ_JUDGING);
	if (max < r->max_body) {
		r->max_body = max;
		r->limited = true;
		buf_fini(&r->body);
		buf_init(&r->body, max);
	}
	return r->stated <= r->max_body;
}

struct bytes http_body(const struct http_req *r)
{
	return buf_bytes(&r->body);
}

void http_take_body(struct http_req *r, struct buf *ret_body)
{
	if (r->limited)
		r->h->limited -= r->body.n;
	*ret_body = r->body;
	buf_init(&r->body, 0);
}

void http_body_freed(struct http *h, struct buf *own_body)
{
	h->stats.bodies -= own_body->n;
	buf_fini(own_body);
}

int64_t http_started_mono_us(const struct http_req *r)
{
	return r->started_mono_us;
}

int64_t http_deadline_mono_us(const struct http_req *r)
{
	return r->started_mono_us + r->h->o.request_timeout_ms * 1000;
}

void http_set_user(struct http_req *r, void *user)
{
	r->user = user;
}

void *http_user(const struct http_req *r)
{
	return r->user;
}
