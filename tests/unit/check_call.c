/* Calls from socket to handler and back: the whole app with steps of the test. */
#include "daemon/net/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "conf/addr.h"
#include "daemon/admin/ad_health.h"
#include "daemon/admin/ad_metrics.h"
#include "daemon/net/front.h"
#include "proto/base/json.h"
#include "tests/unit/unit.h"

static struct app app;
static struct addr rest_addr, admin_addr;
static uv_async_t wake;
static struct loop_timer later;
static struct call *held;
static atomic_int holding, released, late_replies;
static const char *not_ready_reason;

/* Handlers. */

static void h_echo(struct call *own_call)
{
	struct buf b;
	const struct route_arg *arg = route_arg(&own_call->hit, "parent");
	buf_init(&b, 1000);
	buf_printf(&b, "prefix=%.*s parent=%.*s inm=%.*s key=%.*s body=%.*s id=%s",
		   STRV_ARG(own_call->hit.prefix), STRV_ARG(arg ? arg->value.text : STRV("-")),
		   STRV_ARG(own_call->if_none_match), STRV_ARG(own_call->idempotency_key),
		   STRV_ARG(bytes_strv(own_call->body)), own_call->id_text);
	call_header(own_call, "ETag", STRV("\"e1\""));
	call_reply_buf(own_call, 200, &b);
}

static void on_release(void *arg)
{
	ck_assert_ptr_eq(arg, &released);
	released++;
}

static void h_shared(struct call *own_call)
{
	static const uint8_t text[] = {'{', '}'};
	call_reply_shared(own_call, 200, (struct bytes){text, 2}, on_release, &released);
}

static void h_304(struct call *own_call)
{
	call_reply_status(own_call, 304);
}

static void h_down(struct call *own_call)
{
	struct err err = {0};
	call_header(own_call, "ETag", STRV("\"never\""));
	err_set(&err, ST_UNAVAILABLE, "pg", "say \"\xff\" twice");
	err_detail(&err, "not for clients");
	call_reply_err(own_call, &err);
}

/* Replies long after the client got its answer, from memory of the call. */
static void h_hold(struct call *own_call)
{
	held = own_call;
	holding++;
	loop_timer_set(&app.loop, &later, loop_mono_us(&app.loop) + 400000);
}

static void on_later(struct loop_timer *t)
{
	struct buf b;
	(void)t;
	late_replies++;
	ck_assert(call_is_overdue(held));
	buf_init(&b, 100);
	buf_putv(&b, bytes_strv(held->body));
	call_header(held, "ETag", held->target);
	call_reply_buf(held, 200, &b);
}

static void h_too_large(struct call *own_call)
{
	struct buf b;
	buf_init(&b, 1);
	buf_puts(&b, "more than one");
	call_reply_buf(own_call, 200, &b);
}

/* A parser that takes its time with a large body. */
static atomic_int parsing, parsed, parse_gate;

static enum status slow_parse(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	(void)ctx;
	parsing++;
	for (int i = 0; body.n > 1000 && i < 3000 && !parse_gate; i++)
		poll(NULL, 0, 1);
	/* The arena is the job's meanwhile. */
	if (!arena_alloc(a, 4096))
		return err_set(err, ST_LIMIT, "", "arena");
	return body.p[0] == '!' ? err_set(err, ST_BAD_REQUEST, "f", "bad body") : ST_OK;
}

static void slow_parsed(void *ctx, enum status st, const struct err *err)
{
	struct call *call = ctx;
	parsed++;
	if (st != ST_OK)
		call_reply_err(call, err);
	else
		call_reply_status(call, 204);
}

static void h_parse(struct call *own_call)
{
	call_parse(own_call, slow_parse, slow_parsed, own_call);
}

static const char *ready(struct app *a)
{
	(void)a;
	return not_ready_reason;
}

static void on_wake(uv_async_t *a)
{
	(void)a;
	app_stop(&app, 7);
}

static void *client(void *arg)
{
	((void (*)(void))(uintptr_t)arg)();
	uv_async_send(&wake);
	return NULL;
}

static pthread_t thread;
static void (*script)(void);

static void resolve(const struct front *f, struct addr *out)
{
	char text[ADDR_TEXT_MAX];
	struct err err;
	front_address(f, text);
	UNIT_OK(addr_parse(strv_of(text), "", out, &err), &err);
}

static enum status handlers_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	route_set(a->routes, ROUTE_ns_list, h_echo);
	route_set(a->routes, ROUTE_ns_create, h_echo);
	route_set(a->routes, ROUTE_table_load, h_shared);
	route_set(a->routes, ROUTE_table_exists, h_304);
	route_set(a->routes, ROUTE_ns_load, h_down);
	route_set(a->routes, ROUTE_table_create, h_down);
	route_set(a->routes, ROUTE_ns_properties, h_hold);
	route_set(a->routes, ROUTE_table_commit, h_hold);
	route_set(a->routes, ROUTE_table_list, h_too_large);
	route_set(a->routes, ROUTE_table_register, h_parse);
	app_ready_add(a, ready);
	loop_timer_init(&later, on_later);
	uv_async_init(&a->loop.uv, &wake, on_wake);
	return ST_OK;
}

static bool handlers_stop(struct app *a)
{
	(void)a;
	ck_assert_ptr_null(a->rest_front);
	uv_close((uv_handle_t *)&wake, NULL);
	return true;
}

static enum status client_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	resolve(a->rest_front, &rest_addr);
	resolve(a->admin_front, &admin_addr);
	pthread_create(&thread, NULL, client, (void *)(uintptr_t)script);
	return ST_OK;
}

static bool client_stop(struct app *a)
{
	(void)a;
	pthread_join(thread, NULL);
	return true;
}

static const struct app_step handlers_step = {"handlers", handlers_start, handlers_stop, NULL};
static const struct app_step client_step = {"client", client_start, client_stop, NULL};
static const struct app_step *const steps[] = {&front_routes_step,
					       &handlers_step,
					       &ad_health_step,
					       &front_admin_step,
					       &front_rest_step,
					       &client_step,
					       NULL};

static void run(void (*fn)(void))
{
	struct err err = {0};
	struct conf *c = conf_new();
	static const char text[] = "[rest]\nlisten=127.0.0.1:0\nrequest-timeout-ms=150\n"
				   "[admin]\nlisten=127.0.0.1:0\n[log]\nlevel=error\n";
	UNIT_OK(conf_apply_text(c, strv_of(text), "test", &err), &err);
	script = fn;
	app_init(&app, c, steps);
	ck_assert_int_eq(app_run(&app), 7);
	app_fini(&app);
}

static char answer[65536];

static void talk(const struct addr *a, const char *line, const char *headers, const char *body)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = {.tv_sec = 3};
	struct buf b;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&a->sa, a->len), 0);
	buf_init(&b, 300000);
	buf_printf(&b,
		   "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
		   line, headers, strlen(body), body);
	ck_assert_int_eq(write(fd, b.p, b.n), (ssize_t)b.n);
	buf_fini(&b);
	size_t n = 0;
	ssize_t r;
	while ((r = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0)
		n += (size_t)r;
	ck_assert_int_eq(r, 0);
	answer[n] = 0;
	close(fd);
}

static void rest(const char *line, const char *headers, const char *body)
{
	talk(&rest_addr, line, headers, body);
}

static void has(const char *text)
{
	ck_assert_msg(strstr(answer, text) != NULL, "%s not in: %s", text, answer);
}

static void lacks(const char *text)
{
	ck_assert_msg(strstr(answer, text) == NULL, "%s in: %s", text, answer);
}

static void answers_script(void)
{
	rest("GET /v1/w%201/namespaces?parent=a%1Fb",
	     "If-None-Match: \"x\"\r\nidempotency-key: k\r\n", "");
	has("HTTP/1.1 200 OK\r\n");
	/* A Java client looks these names up in this very case. */
	has("\r\nETag: \"e1\"\r\n");
	has("\r\nContent-Type: application/json\r\n");
	has("prefix=w 1 parent=a\x1f"
	    "b inm=\"x\" key=k body= id=");
	/* The id in the header is the call's. */
	const char *id = strstr(answer, "X-Request-Id: ");
	ck_assert_ptr_nonnull(id);
	ck_assert_int_eq(strncmp(id + 14, strstr(answer, " id=") + 4, UUID_TEXT_LEN), 0);
	struct uuid u;
	ck_assert(uuid_parse((struct strv){id + 14, UUID_TEXT_LEN}, &u));
	ck_assert_int_eq(uuid_version(u), 7);

	rest("POST /v1/namespaces", "", "{\"a\":1}");
	has("prefix= parent=- inm= key= body={\"a\":1} id=");
	rest("HEAD /v1/namespaces/a/tables/t", "", "");
	has("HTTP/1.1 304 ");
	rest("GET /v1/namespaces/a/tables/t", "", "");
	has("\r\n\r\n{}");
	rest("HEAD /v1/namespaces/a/tables", "", "");
	has("HTTP/1.1 500 ");
	lacks("InternalServerError");
}

START_TEST(answers)
{
	run(answers_script);
	ck_assert_int_eq(released, 1);
	ck_assert_int_eq(ad_metrics_get(METRIC_rest_2xx), 3);
	ck_assert_int_eq(ad_metrics_get(METRIC_rest_3xx), 1);
}
END_TEST

/* The body of the answer as the error model; fails when it is not JSON. */
static void error_model(int code, const char *type, const char *message)
{
	struct jdoc *d = NULL;
	struct err err = {0};
	const struct jval *e = NULL;
	struct strv s;
	int64_t v;
	const char *body = strstr(answer, "\r\n\r\n");
	ck_assert_ptr_nonnull(body);
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(body + 4)), ST_BAD_REQUEST, &d, &err), &err);
	UNIT_OK(jval_need_object(jdoc_root(d), "error", ST_BAD_REQUEST, &e, &err), &err);
	UNIT_OK(jval_need_i64(e, "code", ST_BAD_REQUEST, &v, &err), &err);
	ck_assert_int_eq(v, code);
	UNIT_OK(jval_need_str(e, "type", ST_BAD_REQUEST, &s, &err), &err);
	ck_assert_msg(strv_eq(s, strv_of(type)), "%.*s", STRV_ARG(s));
	UNIT_OK(jval_need_str(e, "message", ST_BAD_REQUEST, &s, &err), &err);
	ck_assert_msg(strv_eq(s, strv_of(message)), "%.*s", STRV_ARG(s));
	jdoc_free(d);
}

static void errors_script(void)
{
	rest("GET /v1/namespaces/a", "", "");
	has("HTTP/1.1 503 ");
	has("\r\nRetry-After: 1\r\n");
	lacks("ETag");
	lacks("not for clients");
	error_model(503, "ServiceUnavailableException", "pg: say \"?\" twice");
	/* Clients take 503 of a commit for an unknown outcome; nothing was begun here. */
	rest("POST /v1/namespaces/a/tables", "", "{}");
	has("HTTP/1.1 429 ");
	has("\r\nRetry-After: 1\r\n");
	error_model(429, "TooManyRequestsException", "pg: say \"?\" twice");
	rest("GET /v1/config", "", "");
	has("HTTP/1.1 406 ");
	rest("PUT /v1/config", "", "");
	has("HTTP/1.1 405 ");
	has("\r\nAllow: GET\r\n");
	rest("GET /v1/namespaces/%00", "", "");
	error_model(400, "BadRequestException", "path: %00 is not allowed");
	rest("GET /v1/namespaces/a/tables", "", "");
	error_model(500, "InternalServerError", "the answer is too large");
	rest("GET /nope", "", "");
	error_model(404, "NotFoundException", "no such route");
}

START_TEST(errors)
{
	run(errors_script);
}
END_TEST

static void overdue_script(void)
{
	rest("POST /v1/namespaces/a/properties", "", "{\"body\":1}");
	error_model(504, "RequestTimeoutException", "no answer within the time of a request");
	while (late_replies < 1)
		poll(NULL, 0, 5);
	/* For a commit the outcome is open, and the client must hear so. */
	rest("POST /v1/namespaces/a/tables/t", "", "{}");
	has("HTTP/1.1 500 ");
	error_model(500, "CommitStateUnknownException", "no answer within the time of a request");
	/* The process stops while the second handler is still at work: it waits for it. */
	ck_assert_int_eq(late_replies, 1);
}

START_TEST(overdue)
{
	run(overdue_script);
	ck_assert_int_eq(late_replies, 2);
	ck_assert_int_eq(ad_metrics_get(METRIC_rest_overdue), 2);
}
END_TEST

/* Large bodies are read off the loop: others are served meanwhile, the deadline holds, and the job
 * ends in peace after its client was answered. */
static void parse_script(void)
{
	static char large[200000];
	static const char line[] = "POST /v1/namespaces/a/register";
	rest(line, "", "{}");
	has("HTTP/1.1 204 ");
	rest(line, "", "!");
	has("HTTP/1.1 400 ");
	error_model(400, "BadRequestException", "f: bad body");
	memset(large, ' ', sizeof large - 1);
	parse_gate = 1;
	rest(line, "", large);
	has("HTTP/1.1 204 ");
	large[0] = '!';
	rest(line, "", large);
	error_model(400, "BadRequestException", "f: bad body");
	parse_gate = 0;
	int before = parsed;
	rest(line, "", large);
	has("HTTP/1.1 500 "); /* a commit: unknown */
	ck_assert_int_eq(parsed, before);
	/* Under way still, and nobody waits for it. */
	rest("POST /v1/namespaces", "", "{}");
	has("HTTP/1.1 200 ");
	ck_assert_int_eq(parsed, before);
	parse_gate = 1;
	while (parsed == before)
		poll(NULL, 0, 1);
}

START_TEST(parse)
{
	run(parse_script);
	ck_assert_int_eq(parsing, 5);
	ck_assert_int_eq(parsed, 5);
}
END_TEST

static void gone_script(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static const char request[] = "POST /v1/namespaces/a/properties HTTP/1.1\r\nHost: h\r\n"
				      "Content-Length: 2\r\n\r\n{}";
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&rest_addr.sa, rest_addr.len), 0);
	ck_assert_int_eq(write(fd, request, sizeof request - 1), (ssize_t)sizeof request - 1);
	while (holding < 1)
		poll(NULL, 0, 1);
	close(fd);
	while (late_replies < 1)
		poll(NULL, 0, 5);
}

START_TEST(gone)
{
	run(gone_script);
	ck_assert_int_eq(late_replies, 1);
}
END_TEST

static void admin_script(void)
{
	talk(&admin_addr, "GET /healthz", "", "");
	has("HTTP/1.1 200 ");
	not_ready_reason = "no PostgreSQL";
	talk(&admin_addr, "GET /readyz", "", "");
	has("HTTP/1.1 503 ");
	has("no PostgreSQL");
	talk(&admin_addr, "GET /metrics", "", "");
	has("\nfrazil_ready 0\n");
	not_ready_reason = NULL;
	talk(&admin_addr, "GET /readyz", "", "");
	has("HTTP/1.1 200 ");
	talk(&admin_addr, "GET /metrics", "", "");
	has("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	has("\nfrazil_ready 1\n");
	has("\n# TYPE frazil_rest_seconds histogram\n");
	has("\nfrazil_rest_seconds_bucket{kind=\"commit\",le=\"+Inf\"} 0\n");
	rest("GET /healthz", "", "");
	has("HTTP/1.1 404 ");
	talk(&admin_addr, "GET /v1/namespaces", "", "");
	has("HTTP/1.1 404 ");
}

START_TEST(admin)
{
	run(admin_script);
	/* The admin port's own requests are not counted. */
	ck_assert_int_eq(ad_metrics_get(METRIC_rest_2xx), 0);
	ck_assert_int_eq(ad_metrics_get(METRIC_rest_4xx), 1);
}
END_TEST

/* One histogram by hand: bounds are inclusive, buckets add up. */
START_TEST(histogram)
{
	struct buf b;
	ad_metrics_observe_us(METRIC_rest_read, 100);
	ad_metrics_observe_us(METRIC_rest_read, 101);
	ad_metrics_observe_us(METRIC_rest_read, 31000000);
	buf_init(&b, 1 << 20);
	ad_metrics_render(&b);
	buf_putc(&b, 0);
	snprintf(answer, sizeof answer, "%s", (const char *)b.p);
	buf_fini(&b);
	has("frazil_rest_seconds_bucket{kind=\"other\",le=\"0.0001\"} 1\n");
	has("frazil_rest_seconds_bucket{kind=\"other\",le=\"0.00025\"} 2\n");
	has("frazil_rest_seconds_bucket{kind=\"other\",le=\"30\"} 2\n");
	has("frazil_rest_seconds_bucket{kind=\"other\",le=\"+Inf\"} 3\n");
	has("frazil_rest_seconds_sum{kind=\"other\"} 31.000201\n");
	has("frazil_rest_seconds_count{kind=\"other\"} 3\n");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("call");
	TCase *t = tcase_create("call");
	tcase_set_timeout(t, 20);
	tcase_add_test(t, answers);
	tcase_add_test(t, errors);
	tcase_add_test(t, overdue);
	tcase_add_test(t, parse);
	tcase_add_test(t, gone);
	tcase_add_test(t, admin);
	tcase_add_test(t, histogram);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
