/* libmicrohttpd in external-epoll mode inside the loop.
 *
 * What its documentation does not say and this file lives by:
 * - A timeout of 0 means that work waits inside although its epoll descriptor stays quiet (its
 * sockets are edge-triggered): run again at once, a few times, then from a hook.
 * - Resuming a connection wakes nothing in this mode: a hook must drive.
 * - A reply in the handler's first call closes the connection after it; right for refusals only.
 * - The handler's url is decoded in place, %2F and %1F too: the raw target is taken in the callback
 *   that sees the request line.
 * - Content-Length twice, or beside Transfer-Encoding, is accepted: http_head refuses it, because a
 * proxy in front may read the other one. The refusal closes the connection and with it what was
 * smuggled behind.
 * - At the limit of connections it forgets to listen again until somebody runs it once more.
 * - What it refuses itself (a malformed head, one that is too large, HTTP/1.1 without Host) it answers
 *   in HTML, its head twice when it was reading a head, and offers no way to change that:
 *   MHD_queue_response below takes its place.
 * - A connection that it closes after a second refusal of its own was never told to be over: its
 *   request ends with the connection at the latest.
 * - It does not see the end of a peer's bytes that came together with the last of them: looked for here.
 * - A suspended connection is not watched, neither for its timeout nor for the peer: each request
 * has a timer of ours. Stopping with one suspended aborts the process.
 */
#include "daemon/net/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "conf/log.h"
#include "daemon/net/http_head.h"
#include "daemon/net/parting.h"

/* Head of a request and its answer's head live in it; one per connection, idle ones too. */
#define CONNECTION_MEMORY ((size_t)32 * 1024)
/* Runs before other work of the loop gets its turn. */
#define RUNS_MAX 8
/* Idle connections may still send a request this long after the drain began. */
#define DRAIN_LINGER_US 200000
/* Slow clients may finish sending a request until this long after it, or reading an answer until this
 * long after the last one was given. */
#define DRAIN_SLOW_US 3000000
/* First look for peers that have ended; the next ones take twice the time. */
#define LOOK_US 1000000
/* Seconds after which a refused client may come again. */
#define RETRY_AFTER "1"
#define BACKLOG 1024
/* A refused body up to this is read over, for nothing and into nothing. */
#define SKIP_MAX ((size_t)64 * 1024)
/* Bytes a second that a client must read of a long answer, beyond the time of a request. */
#define SLOWEST_READER 65536

enum req_state { REQ_HEAD, REQ_JUDGING, REQ_BODY, REQ_SERVING, REQ_REPLIED };

struct http {
	struct http_options o;
	struct MHD_Daemon *mhd;
	uv_poll_t poll;
	struct loop_hook hook;
	struct loop_timer timer; /* libmicrohttpd's own timeouts */
	struct sockaddr_storage bound;
	struct http_stats stats;
	struct parting parting;
	size_t limited; /* bytes of limited bodies that are being read */
	bool inside;   /* libmicrohttpd must not be entered from its own callbacks */
	bool draining, closing;
	int suspended; /* requests that a handler works on */
	int64_t drain_mono_us; /* when it began, or gave its last answer */
	void (*drained)(void *ctx);
	void *drained_ctx;
};

/* A connection between its requests. Its timer ends one that does not complete a request line in
 * time: the library only sees that bytes come, however slowly. */
struct conn {
	struct http *h;
	struct MHD_Connection *conn;
	struct loop_timer timer;
	int64_t waits_mono_us, until_mono_us;
	bool parts; /* it was answered before it had sent all */
	struct http_req *req;
};

struct http_req {
	struct http *h;
	struct MHD_Connection *conn;
	struct conn *of;
	enum req_state state;
	bool suspended;
	bool has_body;	    /* announced */
	bool waits;	    /* a refusal goes out before it */
	size_t stated;	    /* Content-Length */
	size_t max_body;
	bool limited;
	enum status refuse; /* of the body: answered when it has been read */
	struct MHD_Response *response;
	unsigned int status;
	size_t reply_n;
	struct loop_timer timer;
	int64_t started_mono_us, due_mono_us; /* the timer may look earlier */
	struct buf body;
	const char *method;
	const char *line_target; /* the library's copy, decoded by now */
	void *user;
	size_t target_n;
	char target[];
};

static void drain_check(struct http *h);

static void drive(struct http *h)
{
	ASSERT(!h->inside);
	if (h->closing)
		return;
	MHD_UNSIGNED_LONG_LONG wait_ms = 0;
	bool waits = false;
	h->inside = true;
	for (int i = 0; i < RUNS_MAX; i++) {
		int before = h->stats.connections;
		MHD_run(h->mhd);
		waits = MHD_get_timeout(h->mhd, &wait_ms) == MHD_YES;
		/* At the limit of connections or descriptors the library does not watch the
		 * listening socket, and takes it up again only in the run after the one in which a
		 * connection left. */
		bool freed = h->stats.connections < before;
		if (!freed && (!waits || wait_ms > 0))
			break;
	}
	h->inside = false;
	loop_timer_cancel(h->o.loop, &h->timer);
	if (waits && wait_ms == 0)
		loop_hook_arm(h->o.loop, &h->hook);
	else if (waits)
		loop_timer_set(h->o.loop, &h->timer,
			       loop_mono_us(h->o.loop) + (int64_t)wait_ms * 1000);
	if (h->draining)
		drain_check(h);
}

static void on_hook(struct loop_hook *hook)
{
	drive(CONTAINER_OF(hook, struct http, hook));
}

static void on_timer(struct loop_timer *t)
{
	drive(CONTAINER_OF(t, struct http, timer));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drive(poll->data);
}

/* Replies. */

static enum MHD_Result send_response(struct MHD_Connection *conn, unsigned int status,
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

/* The error model for a refusal of the library's own, straight into the socket, whose sending side is
 * closed then: queued while it reads a head, the answer's head would go out twice. */
static void send_error(struct http *h, int fd, unsigned int status)
{
	struct err err = {0};
	struct buf body, all;
	char date[40];
	struct tm tm;
	time_t now = (time_t)(loop_wall_ms() / 1000);
	if (status == MHD_HTTP_URI_TOO_LONG || status == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
		err_set(&err, ST_TOO_LARGE, "", "the head of a request may have %zu bytes",
			CONNECTION_MEMORY);
	else if (status == MHD_HTTP_CONTENT_TOO_LARGE)
		err_set(&err, ST_TOO_LARGE, "", "the body is larger than %zu bytes", h->o.max_body);
	else if (status == MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED)
		err_set(&err, ST_UNSUPPORTED, "", "HTTP/1.1 and HTTP/1.0 are served");
	else if (status < 500)
		err_set(&err, ST_BAD_REQUEST, "", "the request is not well-formed HTTP/1.1");
	else
		err_set(&err, ST_INTERNAL, "", "the request could not be read");
	buf_init(&body, 4096);
	buf_init(&all, 8192);
	h->o.ops->error_body(&err, (int)status, &body);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	buf_printf(&all,
		   "HTTP/1.1 %u %s\r\nDate: %s\r\nConnection: close\r\n"
		   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		   status, MHD_get_reason_phrase_for(status), date, body.n);
	buf_putv(&all, buf_strv(&body));
	/* Small: a socket that does not take it belongs to a peer that does not read. */
	(void)!send(fd, all.p, all.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_fini(&all);
	buf_fini(&body);
	h->stats.refused++;
}

/* Takes the place of the library's function of this name, which the library calls for its own
 * refusals too; ours go out by send_response alone. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *conn, unsigned int status,
				   struct MHD_Response *response)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	int at = fd ? fd->connect_fd : -1;
	const union MHD_ConnectionInfo *context =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (at < 0 || !context || !context->socket_context)
		return send_response(conn, status, response);
	struct conn *c = context->socket_context;
	send_error(c->h, at, status);
	c->parts = true;
	/* What it sends now fails, and it closes in its own time: told that nothing was queued it would
	 * free the connection's memory, which its parser of arguments still reads. */
	shutdown(at, SHUT_WR);
	return send_response(conn, status, response);
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
	enum MHD_Result rc = send_response(r->conn, r->status, r->response);
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
	http_head_init(&head, CONNECTION_MEMORY);
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

/* libmicrohttpd's callbacks. */

static int fd_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

static void hang_up(struct http *h, struct MHD_Connection *conn)
{
	shutdown(fd_of(conn), SHUT_RDWR);
	loop_hook_arm(h->o.loop, &h->hook);
}

static void cut(struct http *h, struct MHD_Connection *conn)
{
	h->stats.cut++;
	hang_up(h, conn);
}

/* The peer sends no more, and all that it sent was read. */
static bool has_ended(struct MHD_Connection *conn)
{
	char c;
	return recv(fd_of(conn), &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void on_idle(struct loop_timer *t)
{
	struct conn *c = CONTAINER_OF(t, struct conn, timer);
	int64_t now = loop_mono_us(c->h->o.loop);
	if (now >= c->until_mono_us)
		cut(c->h, c->conn);
	else if (has_ended(c->conn))
		hang_up(c->h, c->conn);
	else
		loop_timer_set(c->h->o.loop, t,
			       earlier(c->until_mono_us, 2 * now - c->waits_mono_us));
}

static struct conn *conn_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

/* A second more than the library, which ends the idle ones quietly. */
static void wait_for_request(struct conn *c)
{
	if (!c)
		return;
	c->waits_mono_us = loop_mono_us(c->h->o.loop);
	c->until_mono_us = c->waits_mono_us + (c->h->o.idle_timeout_ms + 1000) * 1000;
	loop_timer_set(c->h->o.loop, &c->timer, earlier(c->until_mono_us, c->waits_mono_us + LOOK_US));
}

static void on_deadline(struct loop_timer *t)
{
	struct http_req *r = CONTAINER_OF(t, struct http_req, timer);
	int64_t now = loop_mono_us(r->h->o.loop);
	/* With an answer that is not queued yet a body is read over. */
	bool reads = r->state == REQ_HEAD || r->state == REQ_BODY ||
		     (r->state == REQ_REPLIED && r->response);
	if (now < r->due_mono_us && reads && has_ended(r->conn)) {
		hang_up(r->h, r->conn);
		return;
	}
	if (now < r->due_mono_us) {
		loop_timer_set(r->h->o.loop, t,
			       reads ? earlier(r->due_mono_us, now + LOOK_US) : r->due_mono_us);
		return;
	}
	if (r->state == REQ_SERVING) {
		r->h->o.ops->overdue(r->h->o.ctx, r);
		ASSERT(r->state == REQ_REPLIED);
		return;
	}
	/* No answer can be queued in the middle of a head, a body or another answer: the connection
	 * ends. */
	cut(r->h, r->conn);
}

/* In the handler's first call: closes the connection after it. */
static enum MHD_Result answer_early(struct http_req *r)
{
	r->of->parts = true;
	return queue_reply(r);
}

static void end_request(struct http_req *r)
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
static void *on_target(void *cls, const char *target, struct MHD_Connection *conn)
{
	struct http *h = cls;
	struct conn *c = conn_of(conn);
	ASSERT(c);
	if (c->req)
		end_request(c->req);
	/* Bounded by CONNECTION_MEMORY. */
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
	loop_timer_set(h->o.loop, &r->timer, earlier(r->due_mono_us, r->started_mono_us + LOOK_US));
	h->stats.requests++;
	loop_timer_cancel(h->o.loop, &c->timer);
	return r;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
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

static void on_over(void *cls, struct MHD_Connection *conn, void **con_cls,
		    enum MHD_RequestTerminationCode why)
{
	struct http_req *r = *con_cls;
	(void)cls;
	(void)why;
	wait_for_request(conn_of(conn));
	if (!r)
		return;
	*con_cls = NULL;
	end_request(r);
}

/* The library closes its descriptor; the connection goes on with ours. */
static void part(struct http *h, struct MHD_Connection *conn)
{
	int fd = fcntl(fd_of(conn), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	shutdown(fd, SHUT_WR);
	parting_start(&h->parting, fd, h->o.max_body);
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_ctx,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *h = cls;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		struct conn *c = base_calloc(1, sizeof *c);
		c->h = h;
		c->conn = conn;
		loop_timer_init(&c->timer, on_idle);
		wait_for_request(c);
		*socket_ctx = c;
		h->stats.connections++;
	} else {
		struct conn *c = *socket_ctx;
		if (c->req)
			end_request(c->req);
		loop_timer_cancel(h->o.loop, &c->timer);
		if (c->parts && !h->closing)
			part(h, conn);
		base_free(c);
		*socket_ctx = NULL;
		h->stats.connections--;
	}
}

static void on_log(void *cls, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
static void on_log(void *cls, const char *fmt, va_list ap)
{
	char text[256];
	(void)cls;
	if (!log_enabled(LOG_DEBUG))
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	size_t n = strlen(text);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	LOG(LOG_DEBUG, "http.library", NULL, "%s", text);
}

/* Keeps targets and header values as they came. */
static size_t no_unescape(void *cls, struct MHD_Connection *conn, char *s)
{
	(void)cls;
	(void)conn;
	return strlen(s);
}

/* Life. */

static enum status open_socket(const struct addr *addr, int *ret_fd, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	int one = 1;
	addr_text(&addr->sa, text);
	int fd = socket(addr->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, ST_IO, "", "socket for %s: %s", text, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (addr->sa.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, (const struct sockaddr *)&addr->sa, addr->len) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		int saved = errno;
		close(fd);
		return err_set(err, ST_IO, "", "cannot listen on %s: %s", text, strerror(saved));
	}
	*ret_fd = fd;
	return ST_OK;
}

enum status http_new(const struct http_options *o, struct http **ret_http, struct err *err)
{
	int fd = o->own_fd;
	if (fd < 0) {
		enum status st = open_socket(&o->addr, &fd, err);
		if (st != ST_OK)
			return st;
	}
	/* One handed over may block, and accept would when the peer is gone again. */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	struct http *h = base_calloc(1, sizeof *h);
	h->o = *o;
	if (h->o.read_rate == 0)
		h->o.read_rate = SLOWEST_READER;
	socklen_t len = sizeof h->bound;
	getsockname(fd, (struct sockaddr *)&h->bound, &len);
	h->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)o->max_connections,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)((o->idle_timeout_ms + 999) / 1000),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
		0, MHD_OPTION_URI_LOG_CALLBACK, on_target, h, MHD_OPTION_UNESCAPE_CALLBACK,
		no_unescape, h, MHD_OPTION_NOTIFY_COMPLETED, on_over, h,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	const union MHD_DaemonInfo *info =
		h->mhd ? MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		close(fd);
		base_free(h);
		return err_set(err, ST_INTERNAL, "", "libmicrohttpd did not start");
	}
	parting_init(&h->parting, o->loop);
	loop_hook_init(&h->hook, LOOP_PHASE_NET, on_hook);
	loop_timer_init(&h->timer, on_timer);
	int rc = uv_poll_init(&o->loop->uv, &h->poll, info->epoll_fd);
	ASSERT(rc == 0);
	h->poll.data = h;
	uv_poll_start(&h->poll, UV_READABLE, on_poll);
	*ret_http = h;
	return ST_OK;
}

static void on_closed(uv_handle_t *handle)
{
	struct http *h = handle->data;
	/* Closes what is idle or too slow; none is suspended. */
	ASSERT(h->suspended == 0);
	MHD_stop_daemon(h->mhd);
	h->mhd = NULL;
	h->drained(h->drained_ctx);
}

/* Never from inside libmicrohttpd. */
static void drain_check(struct http *h)
{
	if (h->closing || h->suspended > 0)
		return;
	int64_t now = loop_mono_us(h->o.loop);
	int64_t until =
		h->drain_mono_us + (h->stats.requests > 0 ? DRAIN_SLOW_US : DRAIN_LINGER_US);
	if (h->stats.connections > 0 && now < until) {
		if (!loop_timer_is_set(&h->timer) || h->timer.due_mono_us > until)
			loop_timer_set(h->o.loop, &h->timer, until);
		return;
	}
	h->closing = true;
	parting_end(&h->parting);
	loop_timer_cancel(h->o.loop, &h->timer);
	loop_hook_disarm(&h->hook);
	/* Before its descriptor goes away. */
	uv_poll_stop(&h->poll);
	uv_close((uv_handle_t *)&h->poll, on_closed);
}

void http_drain(struct http *h, void (*done)(void *ctx), void *ctx)
{
	ASSERT(!h->draining && !h->inside);
	h->draining = true;
	h->drained = done;
	h->drained_ctx = ctx;
	h->drain_mono_us = loop_mono_us(h->o.loop);
	int fd = MHD_quiesce_daemon(h->mhd);
	if (fd >= 0)
		close(fd);
	loop_hook_arm(h->o.loop, &h->hook);
}

void http_free(struct http *own_h)
{
	ASSERT(!own_h || !own_h->mhd);
	base_free(own_h);
}

void http_address(const struct http *h, char *out)
{
	addr_text(&h->bound, out);
}

struct http_stats http_stats(const struct http *h)
{
	struct http_stats s = h->stats;
	s.parting = h->parting.n;
	return s;
}

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
