/* Real sockets: the server runs on the test's thread, a client on another; the sink is the test's.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/rpc/listen.h"
#include "tests/unit/rpc_peer.h"

static struct loop loop;
static struct rpc_server *server;
static struct rpc_options options;
static uv_async_t wake;
static struct list held;
static atomic_int n_held, drained, provenance;
static _Atomic size_t most_bytes;
/* Counters for the client's thread, copied by the loop every few milliseconds. */
static struct loop_timer publish;
static atomic_int seen_sessions, seen_slow;
static char socket_path[108];

/* What the sink does with a Status is in the first byte of its txn_id. */
enum { SAY, HOLD, RELEASE, REFUSE, LARGE, LISTS };
#define LARGE_BYTES ((size_t)200000)

static void say(struct rpc_request *r)
{
	static char text[LARGE_BYTES];
	const struct rpc_status *m = r->msg;
	struct rpc_outcome o = {.txn_id = m->txn_id, .state = RPC_STATE_COMMITTED};
	if (m->txn_id.b[0] == LARGE) {
		memset(text, 'x', sizeof text);
		o.note = (struct strv){text, sizeof text};
	}
	if (m->txn_id.b[0] == LISTS) {
		/* 400,000 entries of some 200 bytes are more than any frame. */
		static struct rpc_file_outcome files[400000];
		memset(text, 'p', 200);
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			files[i].path = (struct strv){text, 200};
		o.files = files;
		o.n_files = ARRAY_SIZE(files);
	}
	rpc_reply(r, &o);
}

static void sink(void *ctx, struct rpc_request *r)
{
	struct err err = {0};
	ck_assert_ptr_eq(ctx, &loop);
	size_t bytes = rpc_server_stats(server).bytes;
	if (bytes > most_bytes)
		most_bytes = bytes;
	provenance = r->provenance;
	if (r->message->type != RPC_MSG_STATUS) {
		(void)err_set(&err, ST_UNSUPPORTED, "kind", "only Status");
		rpc_reply_err(r, &err);
		return;
	}
	const struct rpc_status *m = r->msg;
	switch (m->txn_id.b[0]) {
	case HOLD: {
		struct list *n = arena_alloc(&r->arena, sizeof *n + sizeof r);
		ck_assert_ptr_nonnull(n);
		list_init(n);
		memcpy(n + 1, &r, sizeof r);
		list_push_front(&held, n);
		n_held++;
		break;
	}
	case RELEASE: {
		/* The last one held is answered first. */
		struct list *n;
		while ((n = list_pop_front(&held))) {
			struct rpc_request *h;
			memcpy(&h, n + 1, sizeof h);
			n_held--;
			say(h);
		}
		say(r);
		break;
	}
	case REFUSE:
		(void)err_set(&err, ST_WRITE_WRITE, "deletes[0]", "row %d", 7);
		rpc_reply_err(r, &err);
		break;
	default:
		say(r);
	}
}

static void on_wake(uv_async_t *a)
{
	(void)a;
	loop_stop(&loop);
}

static void on_publish(struct loop_timer *t)
{
	struct rpc_stats now = rpc_server_stats(server);
	seen_sessions = now.sessions;
	seen_slow = (int)now.slow;
	loop_timer_set(&loop, t, loop_mono_us(&loop) + 3000);
}

static void setup(void)
{
	struct err err = {0};
	snprintf(socket_path, sizeof socket_path, "/tmp/check_session.%d", (int)getpid());
	list_init(&held);
	loop_init(&loop, 2, 2);
	uv_async_init(&loop.uv, &wake, on_wake);
	options = (struct rpc_options){.loop = &loop,
				       .sink = {sink, &loop},
				       .tcp = true,
				       .own_fd = -1,
				       .socket = socket_path,
				       .max_frame = 65536,
				       .max_connections = 50,
				       .server = "test/1"};
	options.daemon_id.u.b[0] = 0xd;
	UNIT_OK(addr_parse(STRV("127.0.0.1:0"), "", &options.addr, &err), &err);
}

static void start(void)
{
	struct err err = {0};
	UNIT_OK(rpc_server_new(&options, &server, &err), &err);
	loop_timer_init(&publish, on_publish);
	on_publish(&publish);
}

static void on_drained(void *ctx)
{
	(void)ctx;
	drained++;
	loop_stop(&loop);
}

static void finish(void)
{
	struct list *n;
	while ((n = list_pop_front(&held))) {
		struct rpc_request *h;
		memcpy(&h, n + 1, sizeof h);
		say(h);
	}
	if (!drained) {
		rpc_server_drain(server, on_drained, NULL);
		loop_run(&loop);
	}
	ck_assert_int_eq(drained, 1);
	ck_assert_int_eq(rpc_server_stats(server).requests, 0);
	ck_assert_uint_eq(rpc_server_stats(server).bytes, 0);
	loop_timer_cancel(&loop, &publish);
	rpc_server_free(server);
	uv_close((uv_handle_t *)&wake, NULL);
	loop_fini(&loop);
	ck_assert_int_ne(access(socket_path, F_OK), 0);
}

static void *(*client_fn)(void *);

static void *client_main(void *arg)
{
	client_fn(arg);
	uv_async_send(&wake);
	return NULL;
}

/* Runs the client beside the loop until it returns. */
static void run(void *(*fn)(void *))
{
	pthread_t t;
	client_fn = fn;
	ck_assert_int_eq(pthread_create(&t, NULL, client_main, NULL), 0);
	loop_run(&loop);
	pthread_join(t, NULL);
}

/* The client's side. */

static int dial_unix(void)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	memcpy(sun.sun_path, socket_path, strlen(socket_path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sun, sizeof sun), 0);
	struct timeval tv = {.tv_sec = 5};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	return fd;
}

static int dial(void)
{
	char text[ADDR_TEXT_MAX];
	struct addr a;
	struct err err;
	rpc_server_address(server, text);
	UNIT_OK(addr_parse(strv_of(text), "", &a, &err), &err);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a.sa, a.len), 0);
	struct timeval tv = {.tv_sec = 5};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
	return fd;
}

static struct rpc_hello hello = {.min_version = 1, .max_version = 3, .client = STRV("check")};

static int greet(int fd)
{
	struct answer w;
	send_msg(fd, RPC_MSG_HELLO, 1, 77, &hello);
	receive(fd, &w);
	ck_assert_int_eq(w.f.type, RPC_MSG_HELLO_REPLY);
	ck_assert_uint_eq(w.f.request_id, 77);
	const struct rpc_hello_reply *h = w.v;
	ck_assert_int_eq(h->version, 1);
	ck_assert_int_eq(h->max_frame_bytes, 65536);
	ck_assert_int_eq(h->daemon_id.b[0], 0xd);
	ck_assert(strv_eq(h->server, STRV("test/1")));
	answer_fini(&w);
	return fd;
}

static void wait_held(int n)
{
	for (int i = 0; i < 500 && n_held != n; i++)
		nap(10);
	ck_assert_int_eq(n_held, n);
}

static void *do_any_order(void *arg)
{
	int fd = greet(dial());
	for (uint32_t i = 1; i <= 3; i++)
		ask(fd, i, HOLD);
	ask(fd, 4, SAY);
	expect_outcome(fd, 4);
	ask(fd, 5, REFUSE);
	expect_error(fd, 5, ST_WRITE_WRITE, "deletes[0]");
	ck_assert_int_eq(provenance, 0);
	ask(fd, 6, RELEASE);
	for (uint32_t i = 3; i >= 1; i--)
		expect_outcome(fd, i);
	expect_outcome(fd, 6);
	close(fd);

	/* One byte at a time, over the unix socket, with a capability. */
	struct strv can[] = {STRV("other"), STRV("provenance")};
	struct rpc_hello h = hello;
	struct rpc_status m = {.txn_id.b = {SAY, 9}};
	struct buf b;
	h.capabilities = can;
	h.n_capabilities = 2;
	buf_init(&b, 4096);
	put(&b, RPC_MSG_HELLO, 1, 1, &h);
	put(&b, RPC_MSG_STATUS, 1, 9, &m);
	fd = dial_unix();
	for (size_t i = 0; i < b.n; i++)
		ck_assert(send_all(fd, (struct bytes){b.p + i, 1}));
	struct answer w;
	receive(fd, &w);
	ck_assert_int_eq(w.f.type, RPC_MSG_HELLO_REPLY);
	answer_fini(&w);
	expect_outcome(fd, 9);
	ck_assert_int_eq(provenance, 1);
	close(fd);
	buf_fini(&b);
	return arg;
}

START_TEST(any_order)
{
	start();
	run(do_any_order);
	ck_assert_int_eq(rpc_server_stats(server).served, 7);
	finish();
}
END_TEST

static void *do_hello_first(void *arg)
{
	int fd = dial();
	ask(fd, 1, SAY);
	expect_error(fd, 1, ST_BAD_REQUEST, "frame.type");
	expect_closed(fd);
	struct rpc_hello later = {.min_version = 2, .max_version = 9};
	fd = dial();
	send_msg(fd, RPC_MSG_HELLO, 1, 3, &later);
	expect_error(fd, 3, ST_UNSUPPORTED, "min_version");
	expect_closed(fd);
	fd = dial();
	send_msg(fd, RPC_MSG_HELLO, 1, 3, NULL);
	expect_error(fd, 3, ST_BAD_REQUEST, "min_version");
	expect_closed(fd);
	fd = dial();
	send_msg(fd, RPC_MSG_HELLO, 2, 3, &hello);
	expect_error(fd, 3, ST_BAD_REQUEST, "frame.type");
	expect_closed(fd);
	return arg;
}

START_TEST(hello_first)
{
	start();
	run(do_hello_first);
	finish();
}
END_TEST

/* A second version, which exists here only: what the server agrees on for each range. */
static const struct {
	int min, max, agreed;
} ranges[] = {{1, 1, 1},	{1, 2, 2},	   {2, 2, 2},	   {0, 1, 1},  {-5, 900, 2},
	      {2, 9, 2},	{3, 3, 0},	   {3, 9, 0},	   {0, 0, 0},  {2, 1, 0},
	      {INT32_MIN, 0, 0}, {INT32_MIN, INT32_MAX, 2}, {9, 3, 0}};

static void *do_versions(void *arg)
{
	struct answer w;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct rpc_hello h = {.min_version = ranges[i].min, .max_version = ranges[i].max};
		struct rpc_status m = {.txn_id.b = {SAY, 2}};
		int fd = dial();
		send_msg(fd, RPC_MSG_HELLO, 1, 1, &h);
		if (!ranges[i].agreed) {
			expect_error(fd, 1, ST_UNSUPPORTED, "min_version");
			expect_closed(fd);
			continue;
		}
		uint8_t agreed = (uint8_t)ranges[i].agreed, other = agreed == 1 ? 2 : 1;
		receive(fd, &w);
		ck_assert_int_eq(w.f.type, RPC_MSG_HELLO_REPLY);
		ck_assert_int_eq(((const struct rpc_hello_reply *)w.v)->version, agreed);
		/* Before anything is agreed only one version can be known. */
		ck_assert_int_eq(w.f.version, 1);
		answer_fini(&w);
		/* From here on the agreed one, both ways; another is refused, and only that message. */
		for (uint8_t v = 0; v <= 3; v++) {
			if (v == agreed)
				continue;
			send_msg(fd, RPC_MSG_STATUS, v, 2, &m);
			receive(fd, &w);
			ck_assert_int_eq(w.f.type, RPC_MSG_ERROR);
			ck_assert_int_eq(w.f.version, agreed);
			const struct rpc_error *e = w.v;
			ck_assert(strv_eq(e->name, STRV("BAD_REQUEST")));
			ck_assert(strv_eq(e->field, STRV("frame.version")));
			answer_fini(&w);
		}
		send_msg(fd, RPC_MSG_HELLO, other, 3, &h);
		expect_error(fd, 3, ST_BAD_REQUEST, "frame.version");
		send_msg(fd, RPC_MSG_STATUS, agreed, 4, &m);
		receive(fd, &w);
		ck_assert_int_eq(w.f.type, RPC_MSG_OUTCOME);
		ck_assert_int_eq(w.f.version, agreed);
		answer_fini(&w);
		close(fd);
	}
	return arg;
}

START_TEST(versions)
{
	options.max_version = 2;
	start();
	run(do_versions);
	finish();
}
END_TEST

static void *do_bad_messages(void *arg)
{
	/* A message that is refused leaves the connection as it is. */
	int fd = greet(dial());
	send_msg(fd, RPC_MSG_STATUS, 1, 1, NULL);
	expect_error(fd, 1, ST_BAD_REQUEST, "txn_id");
	send_msg(fd, 99, 1, 2, NULL);
	expect_error(fd, 2, ST_UNSUPPORTED, "frame.type");
	struct rpc_seal_reply answer = {0};
	send_msg(fd, RPC_MSG_SEAL_REPLY, 1, 3, &answer);
	expect_error(fd, 3, ST_UNSUPPORTED, "frame.type");
	struct rpc_status m = {.txn_id.b = {SAY, 4}};
	send_msg(fd, RPC_MSG_STATUS, 2, 4, &m);
	expect_error(fd, 4, ST_BAD_REQUEST, "frame.version");
	send_msg(fd, RPC_MSG_HELLO, 1, 5, &hello);
	expect_error(fd, 5, ST_BAD_REQUEST, "frame.type");
	ask(fd, 6, SAY);
	expect_outcome(fd, 6);
	/* A frame that is broken ends it, after what came before is answered. */
	struct buf b;
	buf_init(&b, 4096);
	put(&b, RPC_MSG_STATUS, 1, 7, &m);
	put(&b, RPC_MSG_STATUS, 1, 8, &m);
	b.p[b.n - 1] ^= 1;
	ck_assert(send_all(fd, buf_bytes(&b)));
	struct answer w;
	receive(fd, &w);
	ck_assert_uint_eq(w.f.request_id, 7);
	answer_fini(&w);
	expect_error(fd, 0, ST_BAD_REQUEST, "frame.crc");
	expect_closed(fd);
	fd = greet(dial());
	ck_assert(send_all(fd, (struct bytes){(const uint8_t *)"\x7f\xff\xff\xff", 4}));
	expect_error(fd, 0, ST_TOO_LARGE, "frame.length");
	expect_closed(fd);
	buf_fini(&b);
	return arg;
}

START_TEST(bad_messages)
{
	start();
	run(do_bad_messages);
	ck_assert_int_eq(rpc_server_stats(server).malformed, 2);
	finish();
}
END_TEST

#define FLOOD 20000

static int flood_fd;
static atomic_int flood_sent;

static void *do_send_flood(void *arg)
{
	/* 60 bytes each on the wire: 1.2 MB in all. */
	struct buf b;
	buf_init(&b, 4 << 20);
	for (uint32_t i = 0; i < FLOOD; i++) {
		struct rpc_status m = {.txn_id.b = {HOLD, (uint8_t)i}};
		put(&b, RPC_MSG_STATUS, 1, i, &m);
	}
	ck_assert(send_all(flood_fd, buf_bytes(&b)));
	flood_sent = 1;
	buf_fini(&b);
	return arg;
}

static void *do_back_pressure(void *arg)
{
	flood_fd = greet(dial());
	pthread_t t;
	pthread_create(&t, NULL, do_send_flood, NULL);
	/* Requests cost their bytes and 6 KiB each, so that some 60 fill the budget of 384 KiB. */
	for (int i = 0; i < 100 && n_held < 40; i++)
		nap(10);
	nap(100);
	int stuck = n_held;
	ck_assert_int_ge(stuck, 40);
	ck_assert_int_le(stuck, 64);
	/* Others are served meanwhile, and what is answered makes room. */
	int other = greet(dial());
	bool seen[FLOOD] = {0};
	int answered = 0;
	uint32_t id = 1;
	while (answered < FLOOD) {
		ask(other, id, RELEASE);
		expect_outcome(other, id++);
		struct pollfd p = {.fd = flood_fd, .events = POLLIN};
		while (answered < FLOOD && poll(&p, 1, 20) == 1) {
			struct answer w;
			receive(flood_fd, &w);
			ck_assert_int_eq(w.f.type, RPC_MSG_OUTCOME);
			ck_assert(!seen[w.f.request_id]);
			seen[w.f.request_id] = true;
			answered++;
			answer_fini(&w);
			if (answered % 40 == 0)
				break;
		}
	}
	pthread_join(t, NULL);
	ck_assert_int_eq(flood_sent, 1);
	close(flood_fd);
	close(other);
	return arg;
}

START_TEST(back_pressure)
{
	options.session_budget = 6 * 65536;
	start();
	run(do_back_pressure);
	/* Never more than the budget, one frame and what one read brought. */
	ck_assert_uint_le(most_bytes, 6 * 65536 + 65536 + (256 << 10));
	finish();
}
END_TEST

static void *do_slow_reader(void *arg)
{
	int fd = greet(dial());
	for (uint32_t i = 0; i < 100; i++) {
		struct rpc_status m = {.txn_id.b = {LARGE, (uint8_t)i}};
		struct buf b;
		buf_init(&b, 4096);
		put(&b, RPC_MSG_STATUS, 1, i, &m);
		bool ok = send_all(fd, buf_bytes(&b));
		buf_fini(&b);
		if (!ok)
			break;
	}
	for (int i = 0; i < 1000 && seen_slow == 0; i++)
		nap(10);
	close(fd);
	/* One that reads slowly but steadily is served: 8 MB in small steps. */
	fd = greet(dial());
	for (uint32_t i = 0; i < 40; i++)
		ask(fd, i, LARGE);
	for (uint32_t i = 0; i < 40; i++) {
		expect_outcome(fd, i);
		nap(20);
	}
	close(fd);
	return arg;
}

START_TEST(slow_reader)
{
	options.write_timeout_ms = 1500; /* a busy machine may stall the steady reader */
	start();
	run(do_slow_reader);
	ck_assert_int_eq(rpc_server_stats(server).slow, 1);
	/* The unsent bytes of one connection stop at its budget and one answer. */
	ck_assert_uint_le(most_bytes, 2 * 65536 + LARGE_BYTES + 70000);
	finish();
}
END_TEST

static void *do_timeouts(void *arg)
{
	expect_closed(dial());
	int fd = greet(dial());
	int idle = greet(dial());
	ck_assert(send_all(fd, (struct bytes){(const uint8_t *)"\0\0\0\x40\x0d", 5}));
	expect_closed(fd);
	/* Without a frame begun a connection may be idle. */
	nap(1500);
	ask(idle, 1, SAY);
	expect_outcome(idle, 1);
	close(idle);
	return arg;
}

START_TEST(timeouts)
{
	options.hello_timeout_ms = 700;
	options.frame_timeout_ms = 700;
	start();
	run(do_timeouts);
	ck_assert_int_eq(rpc_server_stats(server).slow, 2);
	finish();
}
END_TEST

static void *do_gone(void *arg)
{
	int fd = greet(dial());
	ask(fd, 1, HOLD);
	ask(fd, 2, HOLD);
	wait_held(2);
	close(fd);
	for (int i = 0; i < 300 && seen_sessions > 0; i++)
		nap(10);
	fd = greet(dial());
	ask(fd, 3, RELEASE);
	expect_outcome(fd, 3);
	close(fd);
	return arg;
}

START_TEST(session_gone)
{
	start();
	run(do_gone);
	ck_assert_int_eq(n_held, 0);
	finish();
}
END_TEST

static void begin_drain(uv_async_t *a)
{
	(void)a;
	rpc_server_drain(server, on_drained, NULL);
}

static uv_async_t drain_now;

static void *do_drain(void *arg)
{
	int idle = greet(dial()), fd = greet(dial()), other = greet(dial());
	ask(fd, 1, HOLD);
	ask(other, 7, HOLD);
	wait_held(2);
	uv_async_send(&drain_now);
	expect_closed(idle);
	ask(fd, 2, SAY);
	expect_error(fd, 2, ST_UNAVAILABLE, "");
	ck_assert_int_eq(drained, 0);
	close(other);
	(void)arg;
	return (void *)(intptr_t)fd;
}

static void release_all(struct loop_timer *t)
{
	/* Once the drain has begun and the client has seen its refusal. */
	if (rpc_server_stats(server).sessions > 1) {
		loop_timer_set(&loop, t, loop_mono_us(&loop) + 20000);
		return;
	}
	struct list *n;
	while ((n = list_pop_front(&held))) {
		struct rpc_request *h;
		memcpy(&h, n + 1, sizeof h);
		n_held--;
		say(h);
	}
}

START_TEST(drain)
{
	pthread_t t;
	struct loop_timer later;
	void *fd = NULL;
	start();
	uv_async_init(&loop.uv, &drain_now, begin_drain);
	loop_timer_init(&later, release_all);
	loop_timer_set(&loop, &later, loop_mono_us(&loop) + 400000);
	pthread_create(&t, NULL, do_drain, NULL);
	loop_run(&loop); /* until on_drained */
	pthread_join(t, &fd);
	ck_assert_int_eq(drained, 1);
	expect_outcome((int)(intptr_t)fd, 1);
	expect_closed((int)(intptr_t)fd);
	uv_close((uv_handle_t *)&drain_now, NULL);
	finish();
}
END_TEST

static void *do_limits(void *arg)
{
	/* The third waits until one of the two has gone. */
	int a = greet(dial()), b = greet(dial()), c = dial();
	send_msg(c, RPC_MSG_HELLO, 1, 77, &hello);
	struct pollfd p = {.fd = c, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 200), 0);
	close(a);
	struct answer w;
	receive(c, &w);
	ck_assert_int_eq(w.f.type, RPC_MSG_HELLO_REPLY);
	answer_fini(&w);
	/* Requests above the total are refused at once, and taken again later. */
	for (uint32_t i = 1; i <= 10; i++)
		ask(b, i, HOLD);
	wait_held(10);
	ask(c, 11, SAY);
	expect_error(c, 11, ST_OVERLOADED, "");
	close(b);
	for (int i = 0; i < 300 && seen_sessions > 1; i++)
		nap(10);
	ask(c, 12, SAY);
	expect_outcome(c, 12);
	/* So are frames that only begin. */
	struct buf big;
	buf_init(&big, 65536);
	uint8_t head[5] = {0, 0, 0xff, 0, 13};
	buf_put(&big, head, 5);
	ck_assert_ptr_nonnull(buf_room(&big, 64000));
	memset(big.p + 5, 0, 64000);
	ck_assert(send_all(c, buf_bytes(&big)));
	expect_error(c, 0, ST_OVERLOADED, "");
	expect_closed(c);
	buf_fini(&big);
	return arg;
}

START_TEST(limits)
{
	options.max_connections = 2;
	options.total_budget = 10 * (6144 + 16);
	start();
	run(do_limits);
	ck_assert_int_eq(rpc_server_stats(server).overloaded, 2);
	finish();
}
END_TEST

static void *do_long_lists(void *arg)
{
	int fd = greet(dial());
	struct answer w;
	ask(fd, 5, LISTS);
	receive(fd, &w);
	const struct rpc_outcome *o = w.v;
	ck_assert_int_eq(w.f.type, RPC_MSG_OUTCOME);
	ck_assert_int_eq(o->state, RPC_STATE_COMMITTED);
	ck_assert_uint_eq(o->n_files, 0);
	ck_assert_uint_gt(o->note.n, 0);
	answer_fini(&w);
	close(fd);
	return arg;
}

START_TEST(long_lists)
{
	start();
	run(do_long_lists);
	finish();
}
END_TEST

START_TEST(addresses)
{
	struct err err = {0};
	struct rpc_server *second = NULL;
	/* What a killed process left is taken over. */
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	memcpy(sun.sun_path, socket_path, strlen(socket_path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, sizeof sun), 0);
	close(fd);
	ck_assert_int_eq(access(socket_path, F_OK), 0);
	start();
	/* What is served is not. */
	struct rpc_options o = options;
	o.tcp = false;
	UNIT_STATUS(rpc_server_new(&o, &second, &err), ST_IO);
	ck_assert_str_eq(err.field, "rpc.socket");
	ck_assert_int_eq(access(socket_path, F_OK), 0);
	o.tcp = true;
	o.socket = NULL;
	char text[ADDR_TEXT_MAX];
	rpc_server_address(server, text);
	UNIT_OK(addr_parse(strv_of(text), "", &o.addr, &err), &err);
	UNIT_STATUS(rpc_server_new(&o, &second, &err), ST_IO);
	ck_assert_str_eq(err.field, "rpc.listen");
	/* A path too long, and one that is no socket. */
	char long_path[200];
	memset(long_path, 'x', sizeof long_path);
	long_path[199] = 0;
	o.tcp = false;
	o.socket = long_path;
	UNIT_STATUS(rpc_server_new(&o, &second, &err), ST_IO);
	o.socket = "/dev/null";
	UNIT_STATUS(rpc_server_new(&o, &second, &err), ST_IO);
	ck_assert_ptr_null(second);
	finish();
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("session");
	TCase *c = tcase_create("sockets");
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, any_order);
	tcase_add_test(c, hello_first);
	tcase_add_test(c, versions);
	tcase_add_test(c, bad_messages);
	tcase_add_test(c, back_pressure);
	tcase_add_test(c, slow_reader);
	tcase_add_test(c, timeouts);
	tcase_add_test(c, session_gone);
	tcase_add_test(c, drain);
	tcase_add_test(c, limits);
	tcase_add_test(c, long_lists);
	tcase_add_test(c, addresses);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
