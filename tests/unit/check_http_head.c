/* Heads as they come over a socket, and the judgement alone on fields laid out as the library has
 * them. */
#include "daemon/net/http_head.h"

#include "tests/unit/http_peer.h"

/* Heads that two servers may read differently (RFC 9112 §6.1, §11.2): refused, and what stands
 * behind them is never served. */
#define TAIL "GET /smuggled " HEAD "\r\n"
static void smuggle_script(void)
{
	static const char *const probes[] = {
		"POST /a " HEAD
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD
		"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" TAIL,
		"POST /a " HEAD
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length: +0\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length: 0, 0\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length: -1\r\n\r\n" TAIL,
		"POST /a " HEAD "Content-Length : 0\r\n\r\n" TAIL,
		"POST /a " HEAD "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" TAIL,
		"POST /a " HEAD "Host: other\r\nContent-Length: 0\r\n\r\n" TAIL,
		"POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n" TAIL,
	};
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		talk(probes[i]);
		ck_assert_msg(strncmp(answer, "HTTP/1.1 400 ", 13) == 0, "probe %zu: %s", i,
			      answer);
		ck_assert_msg(count(answer, "HTTP/1.1 200") == 0, "probe %zu: %s", i, answer);
	}
}

START_TEST(smuggle)
{
	with_client(smuggle_script);
	ck_assert_int_eq(served, 0);
}
END_TEST

/* What the library refuses by itself speaks the error model too, and closes the connection. Case
 * BC-229: a query that is too long is 414. */
static void own_refusals_script(void)
{
	static char long_target[40000], long_header[40000], many_headers[40000], arguments[40000];
	static const struct {
		const char *head;
		int status;
		const char *body;
	} probes[] = {
		{"GET /a HTTP/1.1\r\n\r\n", 400, "refused BAD_REQUEST"}, /* no Host */
		{"GET /a HTTP/1.1\r\nno colon\r\n\r\n", 400, "refused BAD_REQUEST"},
		{"POST /a " HEAD "Content-Length: 99999999999999999999999\r\n\r\n", 413,
		 "refused TOO_LARGE"},
		{"POST /a " HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400,
		 "refused BAD_REQUEST"},
		{long_target, 414, "refused TOO_LARGE"},
		{long_header, 431, "refused TOO_LARGE"},
		{many_headers, 431, "refused TOO_LARGE"},
		{arguments, 431, "refused TOO_LARGE"},
		{"GET / HTTP/2.7\r\nHost: h\r\n\r\n", 505, "refused UNSUPPORTED"},
	};
	snprintf(long_target, sizeof long_target, "GET /%0*d " HEAD "\r\n", 39000, 0);
	snprintf(long_header, sizeof long_header, "GET / " HEAD "X: %0*d\r\n\r\n", 39000, 0);
	/* More arguments than the library has memory for, though the line is short enough. */
	size_t n = (size_t)snprintf(arguments, sizeof arguments, "GET /?");
	while (n < 20000)
		n += (size_t)snprintf(arguments + n, sizeof arguments - n, "a=b&");
	snprintf(arguments + n, sizeof arguments - n, " " HEAD "\r\n");
	n = (size_t)snprintf(many_headers, sizeof many_headers, "GET / " HEAD);
	while (n < sizeof many_headers - 16)
		n += (size_t)snprintf(many_headers + n, sizeof many_headers - n, "a:b\r\n");
	memcpy(many_headers + n, "\r\n", 3);
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		char want[40];
		talk(probes[i].head);
		snprintf(want, sizeof want, "HTTP/1.1 %d ", probes[i].status);
		ck_assert_msg(strncmp(answer, want, strlen(want)) == 0, "probe %zu: %s", i, answer);
		ck_assert_msg(strstr(answer, "Content-Type: application/json\r\n") != NULL,
			      "probe %zu: %s", i, answer);
		const char *body = strstr(answer, "\r\n\r\n");
		ck_assert_msg(body && strcmp(body + 4, probes[i].body) == 0, "probe %zu: %s", i,
			      answer);
	}
}

START_TEST(own_refusals)
{
	with_client(own_refusals_script);
	ck_assert_int_eq(served, 0);
	ck_assert_int_eq(http_stats(http).refused, 9);
}
END_TEST

/* The library has refused the arguments of a request line and reads on: when it must refuse what
 * follows as well, it closes the connection without telling that the request is over. */
static void twice_refused_script(void)
{
	static char line[20100], more[40000];
	size_t n = (size_t)snprintf(line, sizeof line, "GET /?");
	while (n < 20000)
		n += (size_t)snprintf(line + n, sizeof line - n, "a=b&");
	snprintf(line + n, sizeof line - n, " " HEAD "X: ");
	memset(more, 'y', sizeof more - 1);
	for (int i = 0; i < 20; i++) {
		int fd = dial();
		send_text(fd, line);
		if (i % 2)
			poll(NULL, 0, 5);
		send_text(fd, more);
		ck_assert(read_all(fd, answer, sizeof answer));
		ck_assert_msg(strncmp(answer, "HTTP/1.1 4", 10) == 0, "%s", answer);
		close(fd);
	}
	while (http_stats(http).connections > 0)
		poll(NULL, 0, 1);
	ck_assert_int_eq(http_stats(http).requests, 0);
}

START_TEST(twice_refused)
{
	with_client(twice_refused_script);
	ck_assert_int_eq(served, 0);
}
END_TEST

/* One head in memory, as the library leaves it: every line ended by two zeros, every name by one
 * and the space behind it. */
struct laid {
	char text[512];
	size_t n;
	struct http_head h;
};

static const char *lay(struct laid *l, const char *p, size_t n, size_t zeros)
{
	char *at = l->text + l->n;
	ck_assert_uint_lt(l->n + n + zeros, sizeof l->text);
	memcpy(at, p, n);
	l->n += n + zeros;
	return at;
}

static void begin(struct laid *l, const char *target)
{
	memset(l, 0, sizeof *l);
	http_head_init(&l->h, sizeof l->text);
	const char *method = lay(l, "POST", 4, 1);
	const char *at = lay(l, target, strlen(target), 1);
	const char *version = lay(l, "HTTP/1.1", 8, 2);
	http_head_line(&l->h, method, at, strlen(target), version);
}

/* seen: bytes of the value that the library shows. */
static void field(struct laid *l, const char *name, const char *value, size_t n, size_t seen)
{
	const char *key = lay(l, name, strlen(name), 2);
	const char *v = lay(l, value, n, 2);
	http_head_field(&l->h, (struct strv){key, strlen(name)}, (struct strv){v, seen});
}

static void whole(struct laid *l, const char *name, const char *value)
{
	field(l, name, value, strlen(value), strlen(value));
}

static enum status judged(struct laid *l, struct err *err)
{
	*err = (struct err){0};
	return http_head_judge(&l->h, "HTTP/1.1", 1000, err);
}

/* RFC 9112 §6, RFC 9110 §10.1.1: one row for each judgement, with a good neighbour. */
START_TEST(fields)
{
	static const struct {
		const char *name, *value;
		enum status st;
		bool body;
	} rows[] = {
		{"Content-Length", "1000", ST_OK, true},
		{"Content-Length", "0", ST_OK, false},
		{"Content-Length", "1001", ST_TOO_LARGE, true},
		{"Content-Length", "9223372036854775808", ST_BAD_REQUEST, false},
		{"Content-Length", "-0", ST_BAD_REQUEST, false},
		{"Content-Length", "", ST_BAD_REQUEST, false},
		{"content-length", "7", ST_OK, true},
		{"Transfer-Encoding", "Chunked", ST_OK, true},
		{"Transfer-Encoding", "chunked, chunked", ST_BAD_REQUEST, true},
		{"Host", "again", ST_BAD_REQUEST, false},
		{"Expect", "100-Continue ", ST_OK, false},
		{"Expect", "200-ok", ST_EXPECTATION, false},
		{"Content-Encoding", "identity", ST_OK, false},
		{"Content-Encoding", "gzip", ST_UNSUPPORTED_MEDIA, false},
		{"X y", "z", ST_BAD_REQUEST, false},
		{"", "z", ST_BAD_REQUEST, false},
		{"X", "a\tb \xc3\xa9", ST_OK, false},
		{"X", "a\x0b", ST_BAD_REQUEST, false},
		{"X", "a\x7f", ST_BAD_REQUEST, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct laid l;
		struct err err;
		begin(&l, "/a");
		whole(&l, "Host", "h");
		whole(&l, rows[i].name, rows[i].value);
		ck_assert_msg(judged(&l, &err) == rows[i].st, "row %zu: %s", i, err.msg);
		ck_assert_msg(http_head_has_body(&l.h) == rows[i].body, "row %zu", i);
	}
}
END_TEST

START_TEST(two_of_a_kind)
{
	struct laid l;
	struct err err;
	begin(&l, "/a");
	whole(&l, "Host", "h");
	whole(&l, "Content-Length", "3");
	whole(&l, "Transfer-Encoding", "chunked");
	UNIT_STATUS(judged(&l, &err), ST_BAD_REQUEST);
	begin(&l, "/a");
	whole(&l, "Host", "h");
	whole(&l, "Authorization", "Bearer x");
	UNIT_OK(judged(&l, &err), &err);
	whole(&l, "authorization", "Bearer x");
	UNIT_STATUS(judged(&l, &err), ST_BAD_REQUEST);
	begin(&l, "/a");
	whole(&l, "Accept", "*");
	UNIT_STATUS(judged(&l, &err), ST_BAD_REQUEST); /* no Host */
	UNIT_OK(http_head_judge(&l.h, "HTTP/1.0", 1000, &err), &err);
}
END_TEST

/* A NUL in the request line, in a value between others and in the last one. */
START_TEST(hidden_text)
{
	struct laid l;
	struct err err;
	begin(&l, "/a");
	field(&l, "Host", "h\0evil", 6, 1);
	whole(&l, "X", "y");
	UNIT_STATUS(judged(&l, &err), ST_BAD_REQUEST);
	begin(&l, "/a");
	whole(&l, "X", "y");
	field(&l, "Host", "h\0evil", 6, 1);
	UNIT_STATUS(judged(&l, &err), ST_BAD_REQUEST);
	begin(&l, "/a");
	whole(&l, "Host", "h");
	UNIT_OK(judged(&l, &err), &err);
	const char line[] = "GET\0x /a\0HTTP/1.1";
	http_head_init(&l.h, sizeof l.text);
	http_head_line(&l.h, line, line + 6, 2, line + 9);
	ck_assert(l.h.bad_line);
	http_head_init(&l.h, sizeof l.text);
	http_head_line(&l.h, line + 5, line + 6, 1, line + 9);
	ck_assert(l.h.bad_line);
	http_head_init(&l.h, sizeof l.text);
	http_head_line(&l.h, line + 5, line + 6, 2, line + 9);
	ck_assert(!l.h.bad_line);
}
END_TEST

START_TEST(white_space)
{
	ck_assert(strv_eq(http_head_bare(STRV("a b \t ")), STRV("a b")));
	ck_assert_uint_eq(http_head_bare(STRV(" ")).n, 0);
	ck_assert_uint_eq(http_head_bare((struct strv){NULL, 0}).n, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("http_head");
	TCase *t = tcase_create("judgement");
	tcase_add_test(t, fields);
	tcase_add_test(t, two_of_a_kind);
	tcase_add_test(t, hidden_text);
	tcase_add_test(t, white_space);
	suite_add_tcase(s, t);
	t = tcase_create("socket");
	tcase_set_timeout(t, 20);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, smuggle);
	tcase_add_test(t, own_refusals);
	tcase_add_test(t, twice_refused);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
