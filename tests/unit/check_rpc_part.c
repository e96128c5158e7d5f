/* The worker protocol inside the app: JSON through the REST port, frames through its own. */
#include "daemon/rpc/rpc_part.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/admin/ad_metrics.h"
#include "daemon/net/call.h"
#include "daemon/net/front.h"
#include "proto/rpc/frame.h"
#include "tests/unit/unit.h"

static struct app app;
static struct addr rest_addr, rpc_addr;
static uv_async_t wake;
static pthread_t thread;
static struct rpc_request *held;
static struct loop_timer later;

static void on_later(struct loop_timer *t)
{
	struct rpc_outcome o = {.state = RPC_STATE_COMMITTED};
	(void)t;
	rpc_reply(held, &o);
}

static void sink(void *ctx, struct rpc_request *r)
{
	struct err err = {0};
	ck_assert_ptr_eq(ctx, &app);
	ck_assert(strv_eq(r->principal, STRV("anonymous")));
	if (r->message->type == RPC_MSG_STATUS) {
		held = r;
		loop_timer_set(&app.loop, &later, loop_mono_us(&app.loop) + 20000);
		return;
	}
	(void)err_set(&err, ST_TXN_EXPIRED, "txn_id", "too late");
	rpc_reply_err(r, &err);
}

static void on_wake(uv_async_t *a)
{
	(void)a;
	app_stop(&app, 7);
}

static enum status part_start(struct app *a, bool *ret_pending, struct err *err)
{
	struct rpc_sink s = {sink, a};
	char text[ADDR_TEXT_MAX];
	(void)ret_pending;
	loop_timer_init(&later, on_later);
	uv_async_init(&a->loop.uv, &wake, on_wake);
	enum status st = rpc_part_start(a, &s, err);
	if (st != ST_OK)
		return st;
	rpc_server_address(rpc_part_server(a), text);
	return addr_parse(strv_of(text), "", &rpc_addr, err);
}

static bool part_stop(struct app *a)
{
	uv_close((uv_handle_t *)&wake, NULL);
	rpc_part_stop(a, app_step_stopped);
	return false;
}

static char answer[65536];

static size_t talk(const struct addr *a, struct bytes out)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = {.tv_sec = 3};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	ck_assert_int_eq(connect(fd, (const struct sockaddr *)&a->sa, a->len), 0);
	ck_assert_int_eq(write(fd, out.p, out.n), (ssize_t)out.n);
	/* The worker's side never closes by itself: half of the connection ends after the answer.
	 */
	size_t n = 0;
	ssize_t r;
	while ((r = recv(fd, answer + n, sizeof answer - 1 - n, 0)) > 0) {
		n += (size_t)r;
		if (a == &rpc_addr)
			break;
	}
	answer[n] = 0;
	close(fd);
	return n;
}

static void http(const char *line, const char *body)
{
	struct buf b;
	buf_init(&b, 10000);
	buf_printf(&b,
		   "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
		   line, strlen(body), body);
	talk(&rest_addr, buf_bytes(&b));
	buf_fini(&b);
}

static void has(const char *text)
{
	ck_assert_msg(strstr(answer, text) != NULL, "%s not in: %s", text, answer);
}

static void *client(void *arg)
{
	http("POST /frazil/v1/status", "{\"txn_id\":\"00000000-0000-0000-0000-000000000000\"}");
	has("HTTP/1.1 200 ");
	has("\r\nContent-Type: application/json\r\n");
	has("\"state\":\"COMMITTED\"");
	http("POST /frazil/v1/abort",
	     "{\"txn_id\":\"00000000-0000-0000-0000-000000000000\",\"lease_token\":\"\"}");
	has("HTTP/1.1 409 ");
	has("{\"code\":42,\"name\":\"TXN_EXPIRED\",\"field\":\"txn_id\",\"message\":\"too late\","
	    "\"retry\":\"NONE\",\"effect\":\"CLEAN\"}");
	http("POST /frazil/v1/status", "{}");
	has("HTTP/1.1 400 ");
	http("POST /frazil/v1/status/x", "{}");
	has("HTTP/1.1 404 ");
	http("GET /frazil/v1/status", "");
	has("HTTP/1.1 405 ");
	has("\r\nAllow: POST\r\n");

	struct rpc_hello hello = {.min_version = 1, .max_version = 1};
	struct buf b;
	struct frame f;
	size_t used = 0;
	struct err err = {0};
	buf_init(&b, 1000);
	size_t at = frame_open(&b, RPC_MSG_HELLO, 1, 5);
	msg_encode(&rpc_record_hello, &hello, &b);
	frame_close(&b, at);
	size_t n = talk(&rpc_addr, buf_bytes(&b));
	buf_fini(&b);
	UNIT_OK(frame_parse((struct bytes){(const uint8_t *)answer, n}, 65536, &f, &used, &err),
		&err);
	ck_assert_uint_eq(used, n);
	ck_assert_int_eq(f.type, RPC_MSG_HELLO_REPLY);
	uv_async_send(&wake);
	return arg;
}

static enum status client_start(struct app *a, bool *ret_pending, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	(void)ret_pending;
	front_address(a->rest_front, text);
	enum status st = addr_parse(strv_of(text), "", &rest_addr, err);
	if (st == ST_OK)
		pthread_create(&thread, NULL, client, NULL);
	return st;
}

static bool client_stop(struct app *a)
{
	struct buf b;
	pthread_join(thread, NULL);
	ck_assert_ptr_nonnull(a->rpc);
	buf_init(&b, 1 << 20);
	ad_metrics_render(&b);
	buf_putc(&b, 0);
	ck_assert_ptr_nonnull(strstr((char *)b.p, "frazil_rpc_connections "));
	buf_fini(&b);
	return true;
}

static const struct app_step part_step = {"part", part_start, part_stop, NULL};
static const struct app_step client_step = {"client", client_start, client_stop, NULL};
static const struct app_step *const steps[] = {&front_routes_step, &part_step, &front_rest_step,
					       &client_step, NULL};

START_TEST(in_the_app)
{
	struct err err = {0};
	struct conf *c = conf_new();
	static const char text[] = "[rest]\nlisten=127.0.0.1:0\n[rpc]\nlisten=127.0.0.1:0\n"
				   "[log]\nlevel=error\n";
	UNIT_OK(conf_apply_text(c, strv_of(text), "test", &err), &err);
	app_init(&app, c, steps);
	ck_assert_int_eq(app_run(&app), 7);
	ck_assert_ptr_null(app.rpc);
	app_fini(&app);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rpc_part");
	TCase *c = tcase_create("app");
	tcase_set_timeout(c, 30);
	tcase_add_test(c, in_the_app);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
