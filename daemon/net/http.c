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

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "conf/log.h"
#include "daemon/net/http_inner.h"

/* Runs before other work of the loop gets its turn. */
#define RUNS_MAX 8
/* Idle connections may still send a request this long after the drain began. */
#define DRAIN_LINGER_US 200000
/* Slow clients may finish sending a request until this long after it, or reading an answer until this
 * long after the last one was given. */
#define DRAIN_SLOW_US 3000000
#define BACKLOG 1024
/* Bytes a second that a client must read of a long answer, beyond the time of a request. */
#define SLOWEST_READER 65536

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

/* The library's own refusals. */

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
			HTTP_MEMORY);
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
		return http_send_response(conn, status, response);
	struct conn *c = context->socket_context;
	send_error(c->h, at, status);
	c->parts = true;
	/* What it sends now fails, and it closes in its own time: told that nothing was queued it would
	 * free the connection's memory, which its parser of arguments still reads. */
	shutdown(at, SHUT_WR);
	return http_send_response(conn, status, response);
}

/* Connections. */

static int fd_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

void http_hang_up(struct http *h, struct MHD_Connection *conn)
{
	shutdown(fd_of(conn), SHUT_RDWR);
	loop_hook_arm(h->o.loop, &h->hook);
}

void http_cut(struct http *h, struct MHD_Connection *conn)
{
	h->stats.cut++;
	http_hang_up(h, conn);
}

/* The peer sends no more, and all that it sent was read. */
bool http_has_ended(struct MHD_Connection *conn)
{
	char c;
	return recv(fd_of(conn), &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_idle(struct loop_timer *t)
{
	struct conn *c = CONTAINER_OF(t, struct conn, timer);
	int64_t now = loop_mono_us(c->h->o.loop);
	if (now >= c->until_mono_us)
		http_cut(c->h, c->conn);
	else if (http_has_ended(c->conn))
		http_hang_up(c->h, c->conn);
	else
		loop_timer_set(c->h->o.loop, t,
			       http_earlier(c->until_mono_us, 2 * now - c->waits_mono_us));
}

struct conn *http_conn_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

/* A second more than the library, which ends the idle ones quietly. */
void http_wait_for_request(struct conn *c)
{
	if (!c)
		return;
	c->waits_mono_us = loop_mono_us(c->h->o.loop);
	c->until_mono_us = c->waits_mono_us + (c->h->o.idle_timeout_ms + 1000) * 1000;
	loop_timer_set(c->h->o.loop, &c->timer, http_earlier(c->until_mono_us, c->waits_mono_us + HTTP_LOOK_US));
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
		http_wait_for_request(c);
		*socket_ctx = c;
		h->stats.connections++;
	} else {
		struct conn *c = *socket_ctx;
		if (c->req)
			http_req_end(c->req);
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
		http_req_goes_on, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)o->max_connections,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)((o->idle_timeout_ms + 999) / 1000),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTP_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT,
		0, MHD_OPTION_URI_LOG_CALLBACK, http_req_line, h, MHD_OPTION_UNESCAPE_CALLBACK,
		no_unescape, h, MHD_OPTION_NOTIFY_COMPLETED, http_req_over, h,
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
