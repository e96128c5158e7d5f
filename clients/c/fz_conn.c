#include "clients/c/fz_conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients/c/fz_error.h"

#define READ_BYTES ((size_t)64 * 1024)

bool fz_address_parse(const char *text, struct fz_address *ret_a)
{
	struct strv s = strv_of(text);
	struct fz_address a = {0};
	bool named = strv_starts(s, STRV("unix:"));
	if (named || strv_find(s, '/') < s.n) {
		if (named)
			s = strv_sub(s, 5, s.n);
		if (strv_starts(s, STRV("//")))
			s = strv_sub(s, 2, s.n);
		a.is_unix = true;
		if (s.n == 0 || !strv_cstr(s, a.path, sizeof a.path))
			return false;
		*ret_a = a;
		return true;
	}
	size_t colon = s.n;
	while (colon > 0 && s.p[colon - 1] != ':')
		colon--;
	if (colon < 2)
		return false;
	struct strv host = strv_sub(s, 0, colon - 1), port = strv_sub(s, colon, s.n);
	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
		host = strv_sub(host, 1, host.n - 1);
	int64_t number;
	if (host.n == 0 || !strv_i64(port, &number) || number < 1 || number > 65535 ||
	    !strv_cstr(host, a.host, sizeof a.host) || !strv_cstr(port, a.port, sizeof a.port))
		return false;
	*ret_a = a;
	return true;
}

static bool failed(struct fz_error *err, const char *what, int number)
{
	char text[128];
	fz_error_set(err, FZ_LOST, "", "", "%s: %s", what, strerror_r(number, text, sizeof text));
	return false;
}

void fz_conn_init(struct fz_conn *c, int epoll, size_t max_frame)
{
	*c = (struct fz_conn){.epoll = epoll, .sock = -1, .max_frame = max_frame};
	/* A frame that is not whole yet never needs more than this. */
	buf_init(&c->in, max_frame + READ_BYTES);
}

void fz_conn_close(struct fz_conn *c)
{
	/* Closing takes the descriptor off the epoll set. */
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
	c->connecting = false;
	c->events = 0;
	size_t max = c->in.max;
	buf_fini(&c->in);
	buf_init(&c->in, max);
	c->in_at = 0;
}

void fz_conn_fini(struct fz_conn *c)
{
	fz_conn_close(c);
	buf_fini(&c->in);
}

static bool open_socket(struct fz_conn *c, int family, const struct sockaddr *sa, socklen_t n,
			struct fz_error *err)
{
	int on = 1;
	c->sock = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->sock < 0)
		return failed(err, "socket", errno);
	if (family != AF_UNIX)
		setsockopt(c->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(c->sock, sa, n) && errno != EINPROGRESS) {
		failed(err, "connect", errno);
		fz_conn_close(c);
		return false;
	}
	c->connecting = true;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT, .data.fd = c->sock};
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->sock, &ev)) {
		failed(err, "epoll", errno);
		fz_conn_close(c);
		return false;
	}
	c->events = ev.events;
	return true;
}

bool fz_conn_open(struct fz_conn *c, const struct fz_address *a, unsigned turn,
		  struct fz_error *err)
{
	if (a->is_unix) {
		struct sockaddr_un un = {.sun_family = AF_UNIX};
		memcpy(un.sun_path, a->path, sizeof un.sun_path);
		return open_socket(c, AF_UNIX, (const struct sockaddr *)&un, sizeof un, err);
	}
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(a->host, a->port, &hints, &found);
	if (rc || !found) {
		fz_error_set(err, FZ_LOST, "", "address", "%s: %s", a->host, gai_strerror(rc));
		return false;
	}
	unsigned count = 0;
	for (const struct addrinfo *i = found; i; i = i->ai_next)
		count++;
	const struct addrinfo *pick = found;
	for (unsigned skip = turn % count; skip; skip--)
		pick = pick->ai_next;
	bool ok = open_socket(c, pick->ai_family, pick->ai_addr, pick->ai_addrlen, err);
	freeaddrinfo(found);
	return ok;
}

int fz_conn_ready(struct fz_conn *c, struct fz_error *err)
{
	struct pollfd p = {.fd = c->sock, .events = POLLOUT};
	if (!c->connecting)
		return 1;
	if (poll(&p, 1, 0) <= 0)
		return 0;
	int number = 0;
	socklen_t n = sizeof number;
	if (getsockopt(c->sock, SOL_SOCKET, SO_ERROR, &number, &n))
		number = errno;
	if (number) {
		failed(err, "connect", number);
		return -1;
	}
	c->connecting = false;
	return 1;
}

ssize_t fz_conn_write(struct fz_conn *c, struct bytes data, struct fz_error *err)
{
	for (;;) {
		ssize_t n = send(c->sock, data.p, data.n, MSG_NOSIGNAL);
		if (n >= 0)
			return n;
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		failed(err, "send", errno);
		return -1;
	}
}

int fz_conn_read(struct fz_conn *c, struct fz_error *err)
{
	if (c->in_at) {
		buf_consume(&c->in, c->in_at);
		c->in_at = 0;
	}
	size_t before = c->in.n;
	uint8_t *p = buf_room(&c->in, READ_BYTES);
	if (!p) {
		fz_error_set(err, FZ_LOST, "", "", "no memory for an answer");
		return -1;
	}
	c->in.n = before;
	ssize_t n;
	do
		n = recv(c->sock, p, READ_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		c->in.n += (size_t)n;
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n == 0)
		fz_error_set(err, FZ_LOST, "", "", "the server closed the connection");
	else
		failed(err, "recv", errno);
	return -1;
}

int fz_conn_frame(struct fz_conn *c, struct frame *ret_f, struct fz_error *err)
{
	struct bytes left = {c->in.p + c->in_at, c->in.n - c->in_at};
	struct err base = {0};
	size_t used = 0;
	if (left.n == 0)
		return 0;
	if (frame_parse(left, c->max_frame, ret_f, &used, &base) != ST_OK) {
		fz_error_set(err, FZ_PROTOCOL, "", base.field, "%s", base.msg);
		return -1;
	}
	c->in_at += used;
	return used != 0;
}

void fz_conn_want(struct fz_conn *c, bool write)
{
	struct epoll_event ev = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.fd = c->sock};
	if (c->sock < 0 || ev.events == c->events)
		return;
	if (epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->sock, &ev) == 0)
		c->events = ev.events;
}
