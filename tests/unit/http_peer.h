/* An HTTP server on the test's thread and a client on another, over real sockets. Included once by a
 * program. */
#ifndef TESTS_UNIT_HTTP_PEER_H
#define TESTS_UNIT_HTTP_PEER_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/net/http.h"
#include "tests/unit/unit.h"

static struct loop loop;
static struct http *http;
static struct http_options options;
static uv_async_t wake;
static char reply_text[1024];
static atomic_int heads, served, over, overdue, drained;
static struct http_req *waiting;
static struct loop_timer later;
static int later_ms = 5;

static void say(struct http_req *r, int status, const char *text)
{
	http_reply(r, &(struct http_reply){.status = status,
					   .body = {(const uint8_t *)text, strlen(text)},
					   .n_headers = 1,
					   .headers = {{"X-Test", "yes"}}});
}

static void say_big(struct http_req *r)
{
	static const uint8_t big[8 << 20];
	http_reply(r, &(struct http_reply){.status = 200, .body = {big, sizeof big}});
}

static void on_later(struct loop_timer *t)
{
	(void)t;
	struct http_req *r = waiting;
	waiting = NULL;
	if (r && strv_starts(http_target(r), STRV("/late-and-big")))
		say_big(r);
	else if (r)
		say(r, 200, "later");
}

struct work {
	struct loop_job job;
	struct http_req *r;
};
static void work_run(struct loop_job *job)
{
	(void)job;
}
static void work_done(struct loop_job *job)
{
	struct work *w = CONTAINER_OF(job, struct work, job);
	say(w->r, 200, "job");
	base_free(w);
}

/* "/refuse…" is refused by its head, "/form…" may have ten bytes. */
static void op_head(void *ctx, struct http_req *r)
{
	ck_assert_ptr_eq(ctx, &loop);
	struct strv target = http_target(r);
	bool small = !strv_starts(target, STRV("/form")) || http_limit_body(r, 10);
	if (small && !strv_starts(target, STRV("/refuse")))
		return;
	heads++;
	http_set_user(r, &loop);
	say(r, small ? 401 : 413, http_has_body(r) ? "refused, body" : "refused");
}

static void op_serve(void *ctx, struct http_req *r)
{
	ck_assert_ptr_eq(ctx, &loop);
	struct strv target = http_target(r);
	served++;
	http_set_user(r, &loop);
	if (strv_starts(target, STRV("/late"))) {
		waiting = r;
		loop_timer_set(&loop, &later, loop_mono_us(&loop) + later_ms * 1000);
	} else if (strv_starts(target, STRV("/job"))) {
		struct work *w = base_calloc(1, sizeof *w);
		w->job.run = work_run;
		w->job.done = work_done;
		w->r = r;
		loop_job_start(&loop, &w->job, true);
	} else if (strv_starts(target, STRV("/big"))) {
		say_big(r);
	} else if (!strv_starts(target, STRV("/never"))) {
		struct strv host = http_header(r, "HOST"), body = bytes_strv(http_body(r));
		snprintf(reply_text, sizeof reply_text, "%.*s %.*s host=%.*s body=%zu:%.*s;",
			 STRV_ARG(http_method(r)), STRV_ARG(target), STRV_ARG(host), body.n,
			 body.n < 100 ? (int)body.n : 0, body.p ? body.p : "");
		say(r, 200, reply_text);
	}
}

static void op_overdue(void *ctx, struct http_req *r)
{
	(void)ctx;
	overdue++;
	if (waiting == r)
		waiting = NULL;
	say(r, 504, "overdue");
}

static void op_over(void *ctx, struct http_req *r)
{
	(void)ctx;
	ck_assert_ptr_eq(http_user(r), &loop);
	over++;
}

static void op_error(const struct err *err, int status, struct buf *out)
{
	(void)status;
	buf_printf(out, "refused %s", status_info(err->st)->name);
}

static const struct http_ops ops = {op_head, op_serve, op_overdue, op_over, op_error};

static void on_wake(uv_async_t *a)
{
	(void)a;
	loop_stop(&loop);
}

static void start(void)
{
	struct err err = {0};
	loop_init(&loop, 4, 2);
	loop_timer_init(&later, on_later);
	uv_async_init(&loop.uv, &wake, on_wake);
	options.loop = &loop;
	options.own_fd = -1;
	options.ops = &ops;
	options.ctx = &loop;
	UNIT_OK(addr_parse(STRV("127.0.0.1:0"), "", &options.addr, &err), &err);
	UNIT_OK(http_new(&options, &http, &err), &err);
}

static void setup(void)
{
	options = (struct http_options){.max_connections = 50,
					.max_body = 1000,
					.max_bodies = 100000,
					.request_timeout_ms = 5000,
					.idle_timeout_ms = 10000};
	start();
}

static void on_drained(void *ctx)
{
	(void)ctx;
	drained++;
	loop_stop(&loop);
}

static void teardown(void)
{
	if (!drained) {
		http_drain(http, on_drained, NULL);
		loop_run(&loop);
	}
	ck_assert_int_eq(drained, 1);
	ck_assert_int_eq(http_stats(http).requests, 0);
	http_free(http);
	uv_close((uv_handle_t *)&wake, NULL);
	loop_fini(&loop);
}

/* The client's side. */

static int dial(void)
{
	char text[ADDR_TEXT_MAX];
	struct addr a;
	struct err err;
	http_address(http, text);
	UNIT_OK(addr_parse(strv_of(text), "", &a, &err), &err);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = {.tv_sec = 3};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	if (connect(fd, (struct sockaddr *)&a.sa, a.len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);
		if (w <= 0)
			return;
		p += w;
		n -= (size_t)w;
	}
}

static void send_text(int fd, const char *z)
{
	send_all(fd, z, strlen(z));
}

/* All that comes until the peer closes (true) or 3 s of silence (false). */
static bool read_all(int fd, char *out, size_t cap)
{
	size_t n = 0;
	ssize_t r;
	while ((r = recv(fd, out + n, cap - 1 - n, 0)) > 0)
		n += (size_t)r;
	out[n] = 0;
	return r == 0 || errno == ECONNRESET;
}

/* Until this text has come. */
static UNUSED bool read_until(int fd, char *out, size_t cap, const char *mark)
{
	size_t n = 0;
	ssize_t r;
	out[0] = 0;
	while (!strstr(out, mark) && (r = recv(fd, out + n, cap - 1 - n, 0)) > 0) {
		n += (size_t)r;
		out[n] = 0;
	}
	return strstr(out, mark) != NULL;
}

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static char answer[65536];
static void (*script)(void);

static void *client(void *arg)
{
	(void)arg;
	script();
	uv_async_send(&wake);
	return NULL;
}

/* Runs the script beside the server until it ends. */
static void with_client(void (*fn)(void))
{
	pthread_t t;
	script = fn;
	ck_assert_int_eq(pthread_create(&t, NULL, client, NULL), 0);
	loop_run(&loop);
	pthread_join(t, NULL);
}

/* Sends, then reads until the server closes; fails when it does not. */
static void talk(const char *request)
{
	int fd = dial();
	send_text(fd, request);
	ck_assert_msg(read_all(fd, answer, sizeof answer), "not closed after: %s\ngot: %s", request,
		      answer);
	close(fd);
}

#define HEAD "HTTP/1.1\r\nHost: h\r\n"
#define LAST "Connection: close\r\n"

#endif
