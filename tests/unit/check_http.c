/* Real sockets: the server runs on the test's thread, a client on another. */
#include "daemon/net/http.h"

#include "tests/unit/http_peer.h"

static void pipeline_script(void)
{
	/* One write: answers in order, suspended ones too, the connection stays usable. */
	talk("GET /a " HEAD "\r\nGET /later " HEAD "\r\nGET /job " HEAD "\r\nPOST /b " HEAD
	     "Content-Length: 3\r\n\r\nxyzGET /c " HEAD LAST "\r\n");
	ck_assert_int_eq(count(answer, "HTTP/1.1 200 OK\r\n"), 5);
	const char *p = strstr(answer, "GET /a host=h body=0:;");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(p = strstr(p, "\r\n\r\nlater"));
	ck_assert_ptr_nonnull(p = strstr(p, "\r\n\r\njob"));
	ck_assert_ptr_nonnull(p = strstr(p, "POST /b host=h body=3:xyz;"));
	ck_assert_ptr_nonnull(strstr(p, "GET /c"));
	ck_assert_int_eq(count(answer, "X-Test: yes\r\n"), 5);
}

START_TEST(pipeline)
{
	with_client(pipeline_script);
	ck_assert_int_eq(served, 5);
	ck_assert_int_eq(over, 5);
}
END_TEST

static void many_script(void)
{
	/* More connections at once than one drive answers, all suspended and resumed by jobs. */
	int fds[40];
	for (int i = 0; i < 40; i++)
		fds[i] = dial();
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 40; i++)
			send_text(fds[i], "GET /job " HEAD "\r\n");
		for (int i = 0; i < 40; i++)
			ck_assert(read_until(fds[i], answer, sizeof answer, "\r\n\r\njob"));
	}
	for (int i = 0; i < 40; i++)
		close(fds[i]);
}

START_TEST(many)
{
	with_client(many_script);
	ck_assert_int_eq(served, 200);
}
END_TEST

static void targets_script(void)
{
	talk("GET /a%2Fb%1F%00?x=%20+&y HTTP/1.1\r\nHost: h\r\n" LAST "\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "GET /a%2Fb%1F%00?x=%20+&y host=h"));
	talk("HEAD /a HTTP/1.1\r\nHost: h\r\n" LAST "\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 23\r\n"));
	ck_assert_ptr_null(strstr(answer, "body="));
}

START_TEST(targets)
{
	with_client(targets_script);
}
END_TEST

static void bodies_script(void)
{
	talk("POST /a " HEAD LAST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n"
	     "0\r\n\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "body=5:abcde;"));
	/* The head is judged before the body is asked for. */
	int fd = dial();
	send_text(fd, "POST /a " HEAD LAST "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
	ck_assert(read_until(fd, answer, sizeof answer, "100 Continue\r\n\r\n"));
	send_text(fd, "ok");
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "body=2:ok;"));
	close(fd);
	fd = dial();
	send_text(fd, "POST /a " HEAD "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 413 "));
	ck_assert_ptr_null(strstr(answer, "100 Continue"));
	close(fd);
	/* Byte by byte. */
	static const char slow[] = "POST /a " HEAD LAST "Content-Length: 4\r\n\r\nslow";
	fd = dial();
	for (size_t i = 0; i + 1 < sizeof slow; i++)
		send_all(fd, slow + i, 1);
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "body=4:slow;"));
	close(fd);
}

START_TEST(bodies)
{
	with_client(bodies_script);
	ck_assert_int_eq(served, 3);
}
END_TEST

#define SMUGGLED "GET /smuggled " HEAD "\r\n"
static void early_script(void)
{
	/* The final status in place of 100, and before any of the body. */
	static const char *const asking[] = {
		"POST /refuse " HEAD "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
		"POST /refuse " HEAD "Transfer-Encoding: chunked\r\n\r\n",
		"POST /refuse " HEAD "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
		"POST /refuse " HEAD
		"Content-Length: 3\r\nExpect: 100-continue\r\n\r\nxyz" SMUGGLED,
		"POST /refuse " HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" SMUGGLED,
		"PUT /form " HEAD "Content-Length: 11\r\nExpect: 100-continue\r\n\r\n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(asking); i++) {
		const char *want = i + 1 < ARRAY_SIZE(asking) ? "HTTP/1.1 401 " : "HTTP/1.1 413 ";
		talk(asking[i]);
		ck_assert_msg(strncmp(answer, want, strlen(want)) == 0, "%zu: %s", i, answer);
		ck_assert_msg(strstr(answer, "Connection: close\r\n") != NULL, "%zu: %s", i, answer);
		ck_assert_msg(strstr(answer, "\r\n\r\nrefused, body") != NULL, "%zu: %s", i, answer);
		ck_assert_int_eq(count(answer, "HTTP/1.1 "), 1);
	}
	ck_assert_int_eq(served, 0);
	/* Without a body, and with one that is soon read over, the connection goes on, in order. */
	talk("GET /refuse " HEAD "\r\nPOST /refuse " HEAD "Content-Length: 0\r\n\r\nGET /later " HEAD
	     "\r\nHEAD /refuse " HEAD
	     "\r\nPUT /refuse " HEAD "Content-Length: 3\r\n\r\nxyzPOST /form " HEAD
	     "Content-Length: 10\r\n\r\n0123456789"
	     "POST /form " HEAD "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n"
	     "GET /b " HEAD LAST "\r\n");
	ck_assert_int_eq(count(answer, "HTTP/1.1 401 "), 4);
	ck_assert_int_eq(count(answer, "HTTP/1.1 200 "), 3);
	ck_assert_int_eq(count(answer, "HTTP/1.1 413 "), 1);
	const char *p = strstr(answer, "\r\n\r\nlater");
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_nonnull(p = strstr(p, "body=10:0123456789;"));
	ck_assert_ptr_nonnull(p = strstr(p, "refused TOO_LARGE"));
	ck_assert_ptr_nonnull(strstr(p, "GET /b"));
}

START_TEST(early)
{
	with_client(early_script);
	ck_assert_int_eq(heads, 6 + 4);
	ck_assert_int_eq(served, 3);
	ck_assert_int_eq(over, heads + served);
	ck_assert_uint_eq(http_stats(http).bodies, 0);
}
END_TEST

/* Who sends a long body in spite of all gets the answer and no reset, and nothing of it is held. */
static void deaf_script(void)
{
	static char part[65536];
	int fd = dial();
	send_text(fd, "POST /refuse " HEAD "Content-Length: 8388608\r\n\r\n");
	for (int i = 0; i < 128; i++)
		ck_assert_int_eq(send(fd, part, sizeof part, MSG_NOSIGNAL), sizeof part);
	errno = 0;
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_int_ne(errno, ECONNRESET);
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 401 "));
	ck_assert_uint_eq(http_stats(http).bodies, 0);
	close(fd);
	while (http_stats(http).parting > 0)
		poll(NULL, 0, 1);
	/* The library's own refusals as well. */
	fd = dial();
	send_text(fd, "POST /a " HEAD "Content-Length: 99999999999999999999999\r\n\r\n");
	for (int i = 0; i < 128; i++)
		ck_assert_int_eq(send(fd, part, sizeof part, MSG_NOSIGNAL), sizeof part);
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_int_ne(errno, ECONNRESET);
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 413 "));
	close(fd);
}

START_TEST(deaf)
{
	with_client(deaf_script);
	ck_assert_int_eq(served, 0);
}
END_TEST

static void setup_large(void)
{
	options = (struct http_options){.max_connections = 50,
					.max_body = 16 << 20,
					.max_bodies = 32 << 20,
					.request_timeout_ms = 5000,
					.idle_timeout_ms = 10000};
	start();
}

static void oversize_script(void)
{
	char chunk[1200], request[4096];
	memset(chunk, 'x', sizeof chunk);
	chunk[1000] = 0;
	snprintf(request, sizeof request, "POST /a " HEAD LAST "Content-Length: 1000\r\n\r\n%s",
		 chunk);
	talk(request);
	ck_assert_ptr_nonnull(strstr(answer, "body=1000:"));
	snprintf(request, sizeof request,
		 "POST /a " HEAD LAST "Transfer-Encoding: chunked\r\n\r\n3e8\r\n%s\r\n1\r\nx\r\n"
		 "0\r\n\r\n",
		 chunk);
	talk(request);
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 413 "));
	ck_assert_ptr_nonnull(strstr(answer, "refused TOO_LARGE"));
	talk("POST /a " HEAD "Content-Length: 99999999999999999999\r\n\r\n");
	ck_assert_int_ge(count(answer, "HTTP/1.1 4"), 1);
	static char big[50000];
	memset(big, 'a', sizeof big - 1);
	memcpy(big, "GET /", 5);
	int fd = dial();
	send_text(fd, big);
	send_text(fd, " " HEAD "\r\n");
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 414 "));
	close(fd);
}

START_TEST(oversize)
{
	with_client(oversize_script);
	ck_assert_int_eq(served, 1);
}
END_TEST

static void deadline_script(void)
{
	int fd = dial();
	send_text(fd, "GET /never " HEAD "\r\n");
	ck_assert(read_until(fd, answer, sizeof answer, "\r\n\r\noverdue"));
	ck_assert_ptr_nonnull(strstr(answer, "HTTP/1.1 504 "));
	/* The connection goes on. */
	send_text(fd, "GET /a " HEAD LAST "\r\n");
	ck_assert(read_all(fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "GET /a"));
	close(fd);
	/* A head and a body that never end: the connection is cut. */
	talk("GET /a HTTP/1.1\r\nHost: h\r\nX: ");
	ck_assert_str_eq(answer, "");
	talk("POST /a " HEAD "Content-Length: 5\r\n\r\nab");
	ck_assert_str_eq(answer, "");
	/* A chunked body without end, past the limit. */
	fd = dial();
	send_text(fd, "POST /a " HEAD "Transfer-Encoding: chunked\r\n\r\n");
	for (;;) {
		static const char chunk[] = "10\r\n0123456789abcdef\r\n";
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, 1) == 1)
			break;
		send_text(fd, chunk);
	}
	close(fd);
}

START_TEST(deadline)
{
	with_client(deadline_script);
	ck_assert_int_eq(overdue, 1);
	ck_assert_int_eq(http_stats(http).cut, 3);
	ck_assert_int_eq(served, 2);
}
END_TEST

static void trickle_script(void)
{
	/* Byte by byte: a request line that never ends, then an answer that is never read. */
	static const char line[] = "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	int fd = dial(), small = 4096;
	size_t sent = 0;
	char c;
	for (; sent < sizeof line - 1; sent++) {
		if (send(fd, line + sent, 1, MSG_NOSIGNAL) < 0 ||
		    recv(fd, &c, 1, MSG_DONTWAIT) == 0)
			break;
		poll(NULL, 0, 150);
	}
	/* The library's own time-out would never come: bytes do. */
	ck_assert_uint_lt(sent, 30);
	close(fd);
	fd = dial();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	send_text(fd, "GET /big " HEAD "\r\n");
	bool closed = false;
	for (int i = 0; i < 60 && !closed; i++) {
		ssize_t got = recv(fd, answer, 512, 0);
		closed = got <= 0;
		poll(NULL, 0, 100);
	}
	/* What is in the kernel's buffers may still be read; the server has let go of it. */
	while (over < 1)
		poll(NULL, 0, 10);
	close(fd);
}

/* Case BC-223: deadlines are absolute, for a head as for the reading of an answer. */
START_TEST(trickle)
{
	with_client(trickle_script);
	/* On a busy machine the pauses are longer and the library ends the first one itself. */
	ck_assert_int_ge(http_stats(http).cut, 1);
	ck_assert_int_le(http_stats(http).cut, 2);
}
END_TEST

static void setup_deadline(void)
{
	setup();
	/* Begin again with a short time. */
	http_drain(http, on_drained, NULL);
	loop_run(&loop);
	http_free(http);
	uv_close((uv_handle_t *)&wake, NULL);
	loop_fini(&loop);
	drained = 0;
	options.request_timeout_ms = 100;
	options.idle_timeout_ms = 1000;
	options.read_rate = (size_t)8 << 20;
	start();
}

static void gone_script(void)
{
	/* The peer leaves while its request is suspended; the reply goes nowhere. */
	int fd = dial();
	send_text(fd, "GET /later " HEAD "\r\n");
	while (served == 0)
		poll(NULL, 0, 1);
	struct linger hard = {1, 0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
	close(fd);
	while (over == 0)
		poll(NULL, 0, 1);
	talk("GET /b " HEAD LAST "\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "GET /b"));
}

START_TEST(gone)
{
	with_client(gone_script);
	ck_assert_int_eq(over, 2);
}
END_TEST

static void crowd_script(void)
{
	/* One more than allowed waits in the kernel's queue and is served when another leaves. */
	int fds[51];
	struct pollfd p;
	for (int i = 0; i < 51; i++) {
		fds[i] = dial();
		send_text(fds[i], "GET /a " HEAD "\r\n");
		p = (struct pollfd){.fd = fds[i], .events = POLLIN};
		ck_assert_int_eq(poll(&p, 1, i < 50 ? 3000 : 100), i < 50 ? 1 : 0);
	}
	close(fds[7]);
	ck_assert_int_eq(poll(&p, 1, 3000), 1);
	for (int i = 0; i < 51; i++)
		if (i != 7)
			close(fds[i]);
}

START_TEST(crowd)
{
	with_client(crowd_script);
	ck_assert_int_eq(served, 51);
}
END_TEST

static void slow_reader_script(void)
{
	/* A client that asks much and reads nothing holds up nobody else. */
	int fd = dial(), small = 4096;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	send_text(fd, "GET /big " HEAD "\r\n");
	while (served == 0)
		poll(NULL, 0, 1);
	for (int i = 0; i < 20; i++)
		talk("GET /b " HEAD LAST "\r\n");
	close(fd);
}

START_TEST(slow_reader)
{
	with_client(slow_reader_script);
	ck_assert_int_eq(served, 21);
}
END_TEST

/* Mutated, cut and reset connections: nothing may be left of them, and others are served. */
static uint64_t seed = 12345;
static uint32_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static void garbage_script(void)
{
	static const char template[] =
		"POST /a " HEAD "Content-Length: 3\r\n\r\nxyzGET /job " HEAD "\r\nPOST /b " HEAD
		"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /c?x=%1F " HEAD
		"Expect: 100-continue\r\n" LAST "\r\n";
	for (int i = 0; i < 600; i++) {
		char text[sizeof template];
		size_t n = sizeof template - 1;
		memcpy(text, template, sizeof text);
		for (uint32_t k = next_random() % 5; k > 0; k--)
			text[next_random() % n] = (char)next_random();
		if (next_random() % 3 == 0)
			n = next_random() % n;
		int fd = dial();
		size_t half = next_random() % (n + 1);
		send_all(fd, text, half);
		send_all(fd, text + half, n - half);
		struct linger hard = {1, 0};
		if (next_random() % 2)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
		else
			shutdown(fd, SHUT_WR);
		if (next_random() % 4 == 0)
			recv(fd, answer, 100, MSG_DONTWAIT);
		close(fd);
	}
	talk("GET /b " HEAD LAST "\r\n");
	ck_assert_ptr_nonnull(strstr(answer, "GET /b"));
}

START_TEST(garbage)
{
	with_client(garbage_script);
	ck_assert_int_gt(served, 100);
}
END_TEST

static int idle_fd, busy_fd;
static void drain_script(void)
{
	idle_fd = dial();
	busy_fd = dial();
	send_text(idle_fd, "GET /a " HEAD "\r\n");
	ck_assert(read_until(idle_fd, answer, sizeof answer, "body=0:;"));
	send_text(busy_fd, "GET /later " HEAD "\r\n");
	while (served < 2)
		poll(NULL, 0, 1);
}

START_TEST(drain)
{
	later_ms = 50;
	with_client(drain_script);
	int64_t began = loop_mono_us(&loop);
	http_drain(http, on_drained, NULL);
	ck_assert_int_eq(drained, 0);
	/* The port is closed at once. */
	ck_assert_int_eq(dial(), -1);
	loop_run(&loop);
	ck_assert_int_eq(drained, 1);
	ck_assert_int_lt(loop_mono_us(&loop) - began, 2000000);
	ck_assert(read_all(busy_fd, answer, sizeof answer));
	ck_assert_ptr_nonnull(strstr(answer, "Connection: close\r\n"));
	ck_assert_ptr_nonnull(strstr(answer, "\r\n\r\nlater"));
	ck_assert(read_all(idle_fd, answer, sizeof answer));
	ck_assert_str_eq(answer, "");
	close(idle_fd);
	close(busy_fd);
}
END_TEST

static void drain_slow_script(void)
{
	int small = 4096;
	busy_fd = dial();
	setsockopt(busy_fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	send_text(busy_fd, "GET /big " HEAD "\r\n");
	idle_fd = dial();
	send_text(idle_fd, "POST /a " HEAD "Content-Length: 9\r\n\r\nhalf");
	while (served < 1)
		poll(NULL, 0, 1);
}

/* One client reads nothing, another sends half a body: the drain ends all the same. */
START_TEST(drain_slow)
{
	with_client(drain_slow_script);
	int64_t began = loop_mono_us(&loop);
	/* The half body may still be on its way in. */
	while (http_stats(http).requests < 2)
		uv_run(&loop.uv, UV_RUN_ONCE);
	http_drain(http, on_drained, NULL);
	loop_run(&loop);
	ck_assert_int_eq(drained, 1);
	ck_assert_int_lt(loop_mono_us(&loop) - began, 4500000);
	ck_assert_int_eq(over, 1);
	close(idle_fd);
	close(busy_fd);
}
END_TEST

static void drain_late_script(void)
{
	busy_fd = dial();
	send_text(busy_fd, "GET /late-and-big " HEAD "\r\n");
	while (served < 1)
		poll(NULL, 0, 1);
}

static size_t late_bytes;
static void *late_reader(void *arg)
{
	static char part[65536];
	ssize_t n;
	(void)arg;
	poll(NULL, 0, later_ms + 300);
	while ((n = recv(busy_fd, part, sizeof part, 0)) > 0)
		late_bytes += (size_t)n;
	return NULL;
}

/* An answer that is given when the slow ones have had their time is not cut. */
START_TEST(drain_late)
{
	pthread_t reader;
	later_ms = 3300;
	with_client(drain_late_script);
	ck_assert_int_eq(pthread_create(&reader, NULL, late_reader, NULL), 0);
	http_drain(http, on_drained, NULL);
	loop_run(&loop);
	pthread_join(reader, NULL);
	ck_assert_int_eq(drained, 1);
	ck_assert_uint_gt(late_bytes, 8 << 20);
	close(busy_fd);
}
END_TEST

START_TEST(address_in_use)
{
	char text[ADDR_TEXT_MAX];
	struct err err = {0};
	struct http *second = NULL;
	http_address(http, text);
	UNIT_OK(addr_parse(strv_of(text), "", &options.addr, &err), &err);
	UNIT_STATUS(http_new(&options, &second, &err), ST_IO);
	ck_assert_ptr_nonnull(strstr(err.msg, text));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("http");
	TCase *t = tcase_create("http");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, pipeline);
	tcase_add_test(t, many);
	tcase_add_test(t, targets);
	tcase_add_test(t, bodies);
	tcase_add_test(t, early);
	tcase_add_test(t, oversize);
	tcase_add_test(t, garbage);
	tcase_add_test(t, crowd);
	tcase_add_test(t, slow_reader);
	tcase_add_test(t, gone);
	tcase_add_test(t, drain);
	tcase_add_test(t, drain_slow);
	tcase_add_test(t, drain_late);
	tcase_add_test(t, address_in_use);
	suite_add_tcase(s, t);
	t = tcase_create("large");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup_large, teardown);
	tcase_add_test(t, deaf);
	suite_add_tcase(s, t);
	t = tcase_create("deadline");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup_deadline, teardown);
	tcase_add_test(t, deadline);
	tcase_add_test(t, trickle);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
