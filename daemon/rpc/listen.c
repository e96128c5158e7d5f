#include "daemon/rpc/listen.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/log.h"
#include "daemon/rpc/session.h"

#define BACKLOG 1024
#define TOTAL_BUDGET ((size_t)1 << 30)
#define HELLO_TIMEOUT_MS 10000
#define FRAME_TIMEOUT_MS 60000
#define WRITE_TIMEOUT_MS 30000

static void server_free(struct rpc_server *s)
{
	base_free(s->scratch);
	base_free(s);
}

static void check_drained(struct rpc_server *s)
{
	if (s->draining && s->done && s->stats.sessions == 0 && s->stats.requests == 0 &&
	    s->closing == 0)
		loop_hook_arm(s->o.loop, &s->drained);
}

static void on_drained(struct loop_hook *h)
{
	struct rpc_server *s = CONTAINER_OF(h, struct rpc_server, drained);
	void (*done)(void *) = s->done;
	s->done = NULL;
	done(s->done_ctx);
}

static void on_listener_closed(uv_handle_t *h)
{
	struct rpc_server *s = h->data;
	s->closing--;
	if (s->orphan && s->closing == 0)
		server_free(s);
	else
		check_drained(s);
}

static void close_listeners(struct rpc_server *s)
{
	if (s->tcp_open) {
		s->tcp_open = false;
		s->closing++;
		uv_close((uv_handle_t *)&s->tcp, on_listener_closed);
	}
	if (s->pipe_open) {
		s->pipe_open = false;
		s->closing++;
		/* Removes the socket's file as well. */
		uv_close((uv_handle_t *)&s->pipe, on_listener_closed);
	}
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct rpc_server *s = listener->data;
	bool tcp = listener == (uv_stream_t *)&s->tcp;
	if (status < 0) {
		LOG(LOG_WARN, "rpc.accept", NULL, "%s", uv_strerror(status));
		return;
	}
	/* Not accepted, the listener rests until it is; later ones wait in the kernel's queue. */
	if (s->stats.sessions >= s->o.max_connections)
		*(tcp ? &s->tcp_waits : &s->pipe_waits) = true;
	else
		session_accept(s, listener, tcp);
}

static void on_changed(struct rpc_server *s)
{
	if (s->tcp_open && s->tcp_waits && s->stats.sessions < s->o.max_connections) {
		s->tcp_waits = false;
		session_accept(s, (uv_stream_t *)&s->tcp, true);
	}
	if (s->pipe_open && s->pipe_waits && s->stats.sessions < s->o.max_connections) {
		s->pipe_waits = false;
		session_accept(s, (uv_stream_t *)&s->pipe, false);
	}
	check_drained(s);
}

static enum status listen_tcp(struct rpc_server *s, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	int st = uv_tcp_init(&s->o.loop->uv, &s->tcp);
	ASSERT(st == 0);
	s->tcp.data = s;
	s->tcp_open = true;
	addr_text(&s->o.addr.sa, text);
	st = s->o.own_fd >= 0 ? uv_tcp_open(&s->tcp, s->o.own_fd)
			      : uv_tcp_bind(&s->tcp, (const struct sockaddr *)&s->o.addr.sa, 0);
	if (st == 0)
		st = uv_listen((uv_stream_t *)&s->tcp, BACKLOG, on_connection);
	if (st < 0)
		return err_set(err, ST_IO, "rpc.listen", "%s: %s", text, uv_strerror(st));
	return ST_OK;
}

/* A socket file that nobody serves is what a killed process leaves behind. */
static enum status clear_stale(const char *path, struct err *err)
{
	struct stat sb;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	if (lstat(path, &sb) != 0)
		return ST_OK;
	if (!S_ISSOCK(sb.st_mode))
		return err_set(err, ST_IO, "rpc.socket", "%s is there and not a socket", path);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, ST_IO, "rpc.socket", "%s", uv_strerror(-errno));
	int refused = connect(fd, (const struct sockaddr *)&sun, sizeof sun) != 0 &&
		      errno == ECONNREFUSED;
	close(fd);
	if (!refused)
		return err_set(err, ST_IO, "rpc.socket", "%s is served by another process", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(err, ST_IO, "rpc.socket", "%s: %s", path, uv_strerror(-errno));
	return ST_OK;
}

static enum status listen_pipe(struct rpc_server *s, struct err *err)
{
	const char *path = s->o.socket;
	if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		return err_set(err, ST_IO, "rpc.socket", "a socket's path has at most %zu bytes",
			       sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
	enum status bad = clear_stale(path, err);
	if (bad != ST_OK)
		return bad;
	int st = uv_pipe_init(&s->o.loop->uv, &s->pipe, 0);
	ASSERT(st == 0);
	s->pipe.data = s;
	s->pipe_open = true;
	st = uv_pipe_bind(&s->pipe, path);
	if (st == 0 && chmod(path, 0660) != 0)
		st = -errno;
	if (st == 0)
		st = uv_listen((uv_stream_t *)&s->pipe, BACKLOG, on_connection);
	if (st < 0)
		return err_set(err, ST_IO, "rpc.socket", "%s: %s", path, uv_strerror(st));
	return ST_OK;
}

static void fill_defaults(struct rpc_options *o)
{
	if (o->session_budget == 0)
		o->session_budget = 2 * o->max_frame;
	if (o->total_budget == 0)
		o->total_budget = TOTAL_BUDGET;
	if (o->hello_timeout_ms == 0)
		o->hello_timeout_ms = HELLO_TIMEOUT_MS;
	if (o->frame_timeout_ms == 0)
		o->frame_timeout_ms = FRAME_TIMEOUT_MS;
	if (o->write_timeout_ms == 0)
		o->write_timeout_ms = WRITE_TIMEOUT_MS;
}

enum status rpc_server_new(const struct rpc_options *o, struct rpc_server **ret_s, struct err *err)
{
	struct rpc_server *s = base_calloc(1, sizeof *s);
	s->o = *o;
	fill_defaults(&s->o);
	list_init(&s->sessions);
	s->changed = on_changed;
	loop_hook_init(&s->drained, LOOP_PHASE_NET, on_drained);
	enum status st = o->tcp ? listen_tcp(s, err) : ST_OK;
	if (st == ST_OK && o->socket && o->socket[0])
		st = listen_pipe(s, err);
	if (st != ST_OK) {
		s->orphan = true;
		close_listeners(s);
		if (s->closing == 0)
			server_free(s);
		return st;
	}
	s->scratch = base_alloc(SESSION_SCRATCH);
	*ret_s = s;
	return ST_OK;
}

void rpc_server_drain(struct rpc_server *s, void (*done)(void *ctx), void *ctx)
{
	ASSERT(!s->draining);
	s->draining = true;
	s->done = done;
	s->done_ctx = ctx;
	close_listeners(s);
	session_drain_all(s);
	check_drained(s);
}

void rpc_server_free(struct rpc_server *own_s)
{
	ASSERT(own_s->draining && !own_s->done && own_s->stats.sessions == 0 &&
	       own_s->stats.requests == 0);
	server_free(own_s);
}

void rpc_server_address(const struct rpc_server *s, char *out)
{
	struct sockaddr_storage sa;
	int n = sizeof sa;
	out[0] = 0;
	if (s->tcp_open && uv_tcp_getsockname(&s->tcp, (struct sockaddr *)&sa, &n) == 0)
		addr_text(&sa, out);
}

struct rpc_stats rpc_server_stats(const struct rpc_server *s)
{
	return s->stats;
}
