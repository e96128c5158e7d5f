/* The client against a server in the same thread that speaks the daemon's codec: what is sent, and
 * sent again, and how calls end. Version 2 of the protocol exists here only. */
#include "clients/c/fz_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/rpc/listen.h"
#include "proto/rpc/msg.h"
#include "tests/unit/unit.h"

#define BYTES_MAX ((size_t)1 << 20)
#define PATIENCE_MS 5000

static struct fz_client *client;
static int listener, conn;
static char path[64];
static struct buf in, last; /* what the server got; payload of the last frame */
static struct frame got;
static int connections;
static struct arena arena;

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void setup(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	snprintf(path, sizeof path, "build/fzc-%d.sock", (int)getpid());
	unlink(path);
	memcpy(un.sun_path, path, sizeof path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&un, sizeof un), 0);
	ck_assert_int_eq(listen(listener, 8), 0);
	conn = -1;
	connections = 0;
	buf_init(&in, BYTES_MAX);
	buf_init(&last, BYTES_MAX);
	arena_init(&arena, BYTES_MAX);
}

static void drop(void)
{
	if (conn >= 0)
		close(conn);
	conn = -1;
	buf_clear(&in);
}

static void teardown(void)
{
	fz_close(client);
	drop();
	close(listener);
	unlink(path);
	buf_fini(&in);
	buf_fini(&last);
	arena_fini(&arena);
}

static void open_client(struct fz_options o)
{
	struct fz_error err;
	o.address = path;
	client = fz_open(&o, &err);
	ck_assert_msg(client != NULL, "%s", err.message);
}

/* One turn of both sides; the client works only when its descriptor says so. */
static void turn(void)
{
	struct pollfd p[] = {{.fd = fz_fd(client), .events = POLLIN},
			     {.fd = listener, .events = POLLIN},
			     {.fd = conn, .events = POLLIN}};
	poll(p, 3, 20);
	if (p[0].revents)
		fz_process(client);
	if (conn < 0 && (conn = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		connections++;
	uint8_t raw[4096];
	ssize_t n = conn >= 0 ? recv(conn, raw, sizeof raw, 0) : -1;
	if (n > 0)
		buf_put(&in, raw, (size_t)n);
}

/* The next frame of the client; its payload is copied to `last`. */
static void next(int type)
{
	int64_t end = now_ms() + PATIENCE_MS;
	size_t used = 0;
	struct err err = {0};
	for (;;) {
		UNIT_OK(frame_parse(buf_bytes(&in), BYTES_MAX, &got, &used, &err), &err);
		if (used)
			break;
		ck_assert_msg(now_ms() < end, "no frame of type %d", type);
		turn();
	}
	buf_clear(&last);
	buf_put(&last, got.payload.p, got.payload.n);
	buf_consume(&in, used);
	ck_assert_int_eq(got.type, type);
}

static const void *read_as(const struct rpc_record *record)
{
	const void *v;
	struct err err = {0};
	UNIT_OK(msg_decode(record, buf_bytes(&last), &arena, &v, &err), &err);
	return v;
}

static void answer_to(uint32_t id, uint8_t version, int type, const void *v)
{
	struct buf b;
	buf_init(&b, BYTES_MAX);
	size_t start = frame_open(&b, (uint8_t)type, version, id);
	msg_encode(rpc_message_of((unsigned)type)->record, v, &b);
	frame_close(&b, start);
	ck_assert_int_eq(send(conn, b.p, b.n, MSG_NOSIGNAL), (ssize_t)b.n);
	buf_fini(&b);
}

static void answer(int type, const void *v)
{
	answer_to(got.request_id, got.version, type, v);
}

static void hello_of(int version, int64_t max_frame)
{
	next(FZ_MSG_HELLO);
	ck_assert_int_eq(got.version, 1);
	struct rpc_hello_reply h = {
		.version = version, .server = STRV("fake"), .max_frame_bytes = max_frame};
	answer(FZ_MSG_HELLO_REPLY, &h);
}

static void hello(void)
{
	hello_of(1, (int64_t)BYTES_MAX);
}

static void answer_error(const char *name, int code, enum rpc_retry retry, enum rpc_effect effect)
{
	struct rpc_error e = {code, strv_of(name), STRV("fld"), STRV("msg"), retry, effect};
	answer(FZ_MSG_ERROR, &e);
}

static void answer_outcome(const struct fz_txn *t, enum rpc_state state)
{
	struct rpc_outcome o = {.state = state, .snapshot_id = 5, .has_snapshot_id = true};
	memcpy(o.txn_id.b, fz_txn_id(t), 16);
	answer(FZ_MSG_OUTCOME, &o);
}

/* ---- the caller ---- */

struct end {
	int times;
	struct fz_reply reply;
	bool has_outcome;
	enum fz_state state;
};

static void done(void *ctx, const struct fz_reply *reply)
{
	struct end *e = ctx;
	e->times++;
	e->reply = *reply;
	e->has_outcome = reply->outcome != NULL;
	if (e->has_outcome)
		e->state = reply->outcome->state;
}

static void until_end(struct end *e)
{
	int64_t end = now_ms() + PATIENCE_MS;
	while (e->times == 0 && now_ms() < end)
		turn();
	ck_assert_int_eq(e->times, 1);
}

static void ends(struct end *e, enum fz_status st, const char *name, enum fz_effect effect)
{
	until_end(e);
	ck_assert_msg(e->reply.status == st && e->reply.error.effect == effect &&
			      strcmp(e->reply.error.name, name) == 0,
		      "%s %s %s effect %d", fz_status_name(e->reply.status), e->reply.error.name,
		      e->reply.error.message, e->reply.error.effect);
	if (st != FZ_OK)
		ck_assert_int_eq(e->reply.error.status, st);
	e->times = 0;
}

static struct fz_txn *new_txn(void)
{
	static const char *const levels[] = {"a"};
	struct fz_begin b = {.namespace_levels = levels, .n_levels = 1, .table = "t"};
	struct fz_txn *t = fz_txn_new(client, &b, NULL);
	ck_assert_ptr_nonnull(t);
	return t;
}

static void start_once(struct fz_txn *t, struct end *e)
{
	struct fz_error err;
	ck_assert_int_eq(fz_start_commit_once(t, NULL, 0, 0, NULL, 0, done, e, &err), FZ_OK);
}

static void answer_begin(const struct fz_txn *t)
{
	struct rpc_begin_reply b = {.lease_token = {(const uint8_t *)"tok", 3}};
	memcpy(b.txn_id.b, fz_txn_id(t), 16);
	answer(FZ_MSG_BEGIN_REPLY, &b);
}

START_TEST(a_transaction)
{
	struct end e = {0};
	struct fz_data_file file = {.path = "f", .record_count = 3, .new_row_count = 3};
	struct fz_fragment fragment = {.fragment_id = "x", .data_files = &file, .n_data_files = 1};
	open_client((struct fz_options){0});
	struct fz_txn *t = new_txn();
	ck_assert_int_eq(fz_start_stage(t, &fragment, done, &e, NULL), FZ_USAGE);
	ck_assert_int_eq(fz_start_begin(t, done, &e, NULL), FZ_OK);
	ck_assert_uint_eq(fz_pending(client), 1);
	hello();
	next(FZ_MSG_BEGIN);
	ck_assert_mem_eq(((const struct rpc_begin *)read_as(&rpc_record_begin))->txn_id.b,
			 fz_txn_id(t), 16);
	answer_begin(t);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	/* Two attempts of one fragment: the later one is sealed. */
	for (fragment.attempt = 0; fragment.attempt < 2; fragment.attempt++) {
		ck_assert_int_eq(fz_start_stage(t, &fragment, done, &e, NULL), FZ_OK);
		next(FZ_MSG_STAGE);
		const struct rpc_stage *s = read_as(&rpc_record_stage);
		ck_assert(s->lease_token.n == 3);
		struct rpc_stage_reply r = {.fragment_id = STRV("x"),
					    .attempt = fragment.attempt,
					    .digest = s->fragment.digest};
		answer(FZ_MSG_STAGE_REPLY, &r);
		ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	}
	ck_assert_int_eq(fz_start_seal(t, done, &e, NULL), FZ_OK);
	next(FZ_MSG_SEAL);
	const struct rpc_seal *seal = read_as(&rpc_record_seal);
	ck_assert(seal->n_fragments == 1 && seal->fragments[0].attempt == 1);
	ck_assert(seal->expected_files == 1 && seal->expected_rows == 3 &&
		  seal->expected_deleted == 0);
	struct rpc_seal_reply sealed = {.set_digest = {{1}}};
	answer(FZ_MSG_SEAL_REPLY, &sealed);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	ck_assert_int_eq(fz_start_commit(t, 5, NULL, 0, done, &e, NULL), FZ_OK);
	next(FZ_MSG_COMMIT);
	struct rpc_error reject = {62, STRV("WRITE_WRITE"), STRV("f"), STRV("m"), 0, 0};
	struct rpc_outcome o = {.state = RPC_STATE_REJECTED, .reject = &reject};
	memcpy(o.txn_id.b, fz_txn_id(t), 16);
	answer(FZ_MSG_OUTCOME, &o);
	ends(&e, FZ_REJECTED, "WRITE_WRITE", FZ_EFFECT_CLEAN);
	ck_assert(e.has_outcome && e.state == FZ_STATE_REJECTED);
	fz_txn_free(t);
	ck_assert_int_eq(connections, 1);
	ck_assert_uint_eq(fz_pending(client), 0);
}
END_TEST

/* A wrong digest of the server is noticed, and such a fragment is not sealed. */
START_TEST(wrong_digest)
{
	struct end e = {0};
	struct fz_fragment fragment = {.fragment_id = "x"};
	open_client((struct fz_options){0});
	struct fz_txn *t = new_txn();
	ck_assert_int_eq(fz_start_begin(t, done, &e, NULL), FZ_OK);
	hello();
	next(FZ_MSG_BEGIN);
	answer_begin(t);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	ck_assert_int_eq(fz_start_stage(t, &fragment, done, &e, NULL), FZ_OK);
	next(FZ_MSG_STAGE);
	struct rpc_stage_reply r = {.fragment_id = STRV("x")};
	answer(FZ_MSG_STAGE_REPLY, &r);
	ends(&e, FZ_PROTOCOL, "", FZ_EFFECT_UNKNOWN);
	ck_assert_int_eq(fz_start_seal(t, done, &e, NULL), FZ_OK);
	next(FZ_MSG_SEAL);
	ck_assert_uint_eq(((const struct rpc_seal *)read_as(&rpc_record_seal))->n_fragments, 0);
	fz_txn_free(t); /* the call goes on */
	struct rpc_seal_reply sealed = {.set_digest = {{1}}};
	answer(FZ_MSG_SEAL_REPLY, &sealed);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
}
END_TEST

START_TEST(lost_connection_repeats_the_same_message)
{
	struct end e = {0};
	struct buf first;
	open_client((struct fz_options){0});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	buf_init(&first, BYTES_MAX);
	buf_putv(&first, buf_strv(&last));
	for (int i = 0; i < 3; i++) {
		drop();
		hello();
		next(FZ_MSG_COMMIT_ONCE);
		ck_assert(bytes_eq(buf_bytes(&first), buf_bytes(&last)));
	}
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	ck_assert(e.state == FZ_STATE_COMMITTED && connections == 4);
	buf_fini(&first);
	fz_txn_free(t);
}
END_TEST

START_TEST(lost_for_good)
{
	struct end e = {0};
	open_client((struct fz_options){.retries = 1});
	struct fz_txn *t = new_txn();
	/* Nothing of it was sent: clean. */
	start_once(t, &e);
	next(FZ_MSG_HELLO);
	drop();
	next(FZ_MSG_HELLO);
	drop();
	ends(&e, FZ_LOST, "CONNECTION", FZ_EFFECT_CLEAN);
	/* It was sent: open. */
	start_once(t, &e);
	for (int i = 0; i < 2; i++) {
		hello();
		next(FZ_MSG_COMMIT_ONCE);
		drop();
	}
	ends(&e, FZ_LOST, "CONNECTION", FZ_EFFECT_UNKNOWN);
	ck_assert_int_eq(e.reply.error.retry, FZ_RETRY_SAME);
	/* Asking changes nothing. */
	ck_assert_int_eq(fz_start_status(client, fz_txn_id(t), done, &e, NULL), FZ_OK);
	for (int i = 0; i < 2; i++) {
		hello();
		next(FZ_MSG_STATUS);
		drop();
	}
	ends(&e, FZ_LOST, "CONNECTION", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(repeats_as_the_server_says)
{
	struct end e = {0};
	open_client((struct fz_options){.retries = 2});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("OVERLOADED", 18, RPC_RETRY_LATER, RPC_EFFECT_CLEAN);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("FENCED", 49, RPC_RETRY_SAME, RPC_EFFECT_CLEAN);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("OVERLOADED", 18, RPC_RETRY_LATER, RPC_EFFECT_CLEAN);
	ends(&e, FZ_OVERLOADED, "OVERLOADED", FZ_EFFECT_CLEAN);
	ck_assert_str_eq(e.reply.error.field, "fld");
	ck_assert_int_eq(e.reply.error.code, 18);
	/* Not these. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("DIGEST_CONFLICT", 45, RPC_RETRY_NONE, RPC_EFFECT_CLEAN);
	ends(&e, FZ_CONFLICT, "DIGEST_CONFLICT", FZ_EFFECT_CLEAN);
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("COMMIT_FAILED", 14, RPC_RETRY_REFRESH, RPC_EFFECT_CLEAN);
	ends(&e, FZ_REFUSED, "COMMIT_FAILED", FZ_EFFECT_CLEAN);
	ck_assert_int_eq(connections, 1);
	fz_txn_free(t);
}
END_TEST

START_TEST(unknown_ends_in_status)
{
	struct end e = {0};
	open_client((struct fz_options){.retries = -1});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("COMMIT_UNKNOWN", 20, RPC_RETRY_SAME, RPC_EFFECT_UNKNOWN);
	next(FZ_MSG_STATUS);
	ck_assert_mem_eq(((const struct rpc_status *)read_as(&rpc_record_status))->txn_id.b,
			 fz_txn_id(t), 16);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	ck_assert(e.state == FZ_STATE_COMMITTED);
	/* Still open: the first error, with what Status said. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("COMMIT_UNKNOWN", 20, RPC_RETRY_SAME, RPC_EFFECT_UNKNOWN);
	next(FZ_MSG_STATUS);
	answer_outcome(t, RPC_STATE_SEALED);
	ends(&e, FZ_UNKNOWN, "COMMIT_UNKNOWN", FZ_EFFECT_UNKNOWN);
	ck_assert(e.has_outcome && e.state == FZ_STATE_SEALED);
	/* Status itself refused. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("TIMEOUT", 22, RPC_RETRY_SAME, RPC_EFFECT_UNKNOWN);
	next(FZ_MSG_STATUS);
	answer_error("TXN_UNKNOWN", 40, RPC_RETRY_NONE, RPC_EFFECT_CLEAN);
	ends(&e, FZ_UNKNOWN, "TIMEOUT", FZ_EFFECT_UNKNOWN);
	fz_txn_free(t);
}
END_TEST

/* "Nothing was started" of the second attempt says nothing about the first one. */
START_TEST(clean_answer_after_a_lost_one)
{
	struct end e = {0};
	open_client((struct fz_options){.retries = 1});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	drop();
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	answer_error("OVERLOADED", 18, RPC_RETRY_LATER, RPC_EFFECT_CLEAN);
	next(FZ_MSG_STATUS);
	answer_outcome(t, RPC_STATE_OPEN);
	ends(&e, FZ_UNKNOWN, "OVERLOADED", FZ_EFFECT_UNKNOWN);
	fz_txn_free(t);
}
END_TEST

START_TEST(answers_in_any_order)
{
	struct end e[2] = {{0}, {0}};
	uint32_t ids[2];
	open_client((struct fz_options){0});
	struct fz_txn *t[2] = {new_txn(), new_txn()};
	start_once(t[0], &e[0]);
	start_once(t[1], &e[1]);
	hello();
	for (int i = 0; i < 2; i++) {
		next(FZ_MSG_COMMIT_ONCE);
		ids[i] = got.request_id;
	}
	struct rpc_outcome o = {.state = RPC_STATE_COMMITTED};
	memcpy(o.txn_id.b, fz_txn_id(t[1]), 16);
	answer_to(ids[1], 1, FZ_MSG_OUTCOME, &o);
	until_end(&e[1]);
	ck_assert(e[1].reply.status == FZ_OK && e[0].times == 0);
	/* The other one with the outcome of the wrong transaction. */
	answer_to(ids[0], 1, FZ_MSG_OUTCOME, &o);
	ends(&e[0], FZ_PROTOCOL, "", FZ_EFFECT_UNKNOWN);
	fz_txn_free(t[0]);
	fz_txn_free(t[1]);
}
END_TEST

/* The daemon's own sessions, which speak version 2 here. */
static struct loop server_loop;
static struct rpc_server *server;
static struct loop_timer client_timer;
static int asked;

static void sink(void *ctx, struct rpc_request *r)
{
	const struct rpc_status *m = r->msg;
	struct rpc_outcome o = {.txn_id = m->txn_id, .state = RPC_STATE_COMMITTED};
	(void)ctx;
	ck_assert_int_eq(r->message->type, RPC_MSG_STATUS);
	asked++;
	rpc_reply(r, &o);
}

static void stop_server(void *ctx)
{
	(void)ctx;
	loop_stop(&server_loop);
}

static void on_client(struct loop_timer *t)
{
	fz_process(client);
	loop_timer_set(&server_loop, t, loop_mono_us(&server_loop) + 1000);
}

static void status_done(void *ctx, const struct fz_reply *r)
{
	struct end *e = ctx;
	done(e, r);
	loop_stop(&server_loop);
}

START_TEST(versions_of_both)
{
	static const struct {
		int server, min, max, agreed;
	} rows[] = {{1, 1, 1, 1}, {1, 1, 2, 1}, {2, 1, 1, 1}, {2, 1, 2, 2},
		    {2, 2, 3, 2}, {2, 3, 4, 0}, {1, 2, 3, 0}};
	const uint8_t id[16] = {1, 2, 3, 4, 5, 6, 0x70, 8, 0x80};
	close(listener);
	unlink(path);
	loop_init(&server_loop, 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rpc_options o = {.loop = &server_loop,
					.sink = {sink, NULL},
					.own_fd = -1,
					.socket = path,
					.max_frame = BYTES_MAX,
					.max_connections = 4,
					.server = "both/1",
					.max_version = rows[i].server};
		struct err err = {0};
		struct fz_error why;
		struct end e = {0};
		UNIT_OK(rpc_server_new(&o, &server, &err), &err);
		open_client((struct fz_options){0});
		fz_client_versions(client, rows[i].min, rows[i].max);
		int before = asked;
		ck_assert_int_eq(fz_start_status(client, id, status_done, &e, &why), FZ_OK);
		loop_timer_init(&client_timer, on_client);
		loop_timer_set(&server_loop, &client_timer, loop_mono_us(&server_loop) + 1000);
		loop_run(&server_loop);
		if (rows[i].agreed) {
			ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
			ck_assert_int_eq(client->version, rows[i].agreed);
		} else {
			ends(&e, FZ_PROTOCOL, "UNSUPPORTED", FZ_EFFECT_CLEAN);
		}
		ck_assert_int_eq(asked - before, rows[i].agreed ? 1 : 0);
		loop_timer_cancel(&server_loop, &client_timer);
		fz_close(client);
		client = NULL;
		rpc_server_drain(server, stop_server, NULL);
		loop_run(&server_loop);
		rpc_server_free(server);
	}
	loop_fini(&server_loop);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
}
END_TEST

START_TEST(versions)
{
	struct end e = {0};
	open_client((struct fz_options){0});
	fz_client_versions(client, 1, 2);
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	next(FZ_MSG_HELLO);
	const struct rpc_hello *h = read_as(&rpc_record_hello);
	ck_assert(h->min_version == 1 && h->max_version == 2);
	struct rpc_hello_reply two = {
		.version = 2, .server = STRV("f"), .max_frame_bytes = 1 << 20};
	answer(FZ_MSG_HELLO_REPLY, &two);
	next(FZ_MSG_COMMIT_ONCE);
	ck_assert_int_eq(got.version, 2);
	/* The next server is older: the same message in its version. */
	drop();
	hello_of(1, (int64_t)BYTES_MAX);
	next(FZ_MSG_COMMIT_ONCE);
	ck_assert_int_eq(got.version, 1);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	/* An answer in another version than agreed ends the connection, not the call. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	got.version = 2;
	answer_outcome(t, RPC_STATE_COMMITTED);
	int64_t end = now_ms() + PATIENCE_MS;
	char byte;
	while (recv(conn, &byte, 1, MSG_PEEK) != 0 && now_ms() < end)
		turn();
	drop();
	hello_of(2, (int64_t)BYTES_MAX);
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(no_common_version)
{
	struct end e = {0};
	open_client((struct fz_options){0});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello_of(2, (int64_t)BYTES_MAX);
	ends(&e, FZ_PROTOCOL, "UNSUPPORTED", FZ_EFFECT_CLEAN);
	drop();
	start_once(t, &e);
	next(FZ_MSG_HELLO);
	answer_error("UNSUPPORTED", 80, RPC_RETRY_NONE, RPC_EFFECT_CLEAN);
	ends(&e, FZ_PROTOCOL, "UNSUPPORTED", FZ_EFFECT_CLEAN);
	drop();
	/* A server that is not ready yet is asked again. */
	start_once(t, &e);
	next(FZ_MSG_HELLO);
	answer_error("UNAVAILABLE", 21, RPC_RETRY_LATER, RPC_EFFECT_CLEAN);
	int64_t end = now_ms() + PATIENCE_MS;
	char byte;
	while (recv(conn, &byte, 1, MSG_PEEK) != 0 && now_ms() < end)
		turn();
	drop();
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(broken_answers)
{
	struct end e = {0};
	open_client((struct fz_options){.retries = 1, .max_reply = 4096});
	struct fz_txn *t = new_txn();
	static const uint8_t garbage[][16] = {"\0\0\0\x0c\x0a\1\0\0\0\1....xx",
					      "\xff\xff\xff\xffxxxx", "\0\0\0\1xxxx"};
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		start_once(t, &e);
		for (int k = 0; k < 2; k++) {
			hello();
			next(FZ_MSG_COMMIT_ONCE);
			ck_assert_int_eq(send(conn, garbage[i], 16, 0), 16);
			int64_t end = now_ms() + PATIENCE_MS;
			while (e.times == 0 && k == 1 && now_ms() < end)
				turn();
			char byte;
			while (k == 0 && recv(conn, &byte, 1, MSG_PEEK) != 0 && now_ms() < end)
				turn();
			drop();
		}
		ends(&e, FZ_PROTOCOL, "CONNECTION", FZ_EFFECT_UNKNOWN);
	}
	/* A frame that holds, a record that does not: only this call. */
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	struct rpc_seal_reply sealed = {.set_digest = {{1}}};
	answer(FZ_MSG_SEAL_REPLY, &sealed);
	ends(&e, FZ_PROTOCOL, "", FZ_EFFECT_UNKNOWN);
	ck_assert_str_eq(e.reply.error.field, "frame.type");
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(limits)
{
	struct end e = {0}, f = {0};
	struct fz_error err;
	static char name[2000];
	memset(name, 'x', sizeof name - 1);
	struct fz_fragment fragment = {.fragment_id = name};
	open_client((struct fz_options){.max_memory = 5000});
	struct fz_txn *t = new_txn();
	ck_assert_int_eq(fz_start_commit_once(t, &fragment, 1, 0, NULL, 0, done, &e, &err), FZ_OK);
	ck_assert_int_eq(fz_start_commit_once(t, &fragment, 1, 0, NULL, 0, done, &f, &err), FZ_OK);
	/* A third one has no room. */
	ck_assert_int_eq(fz_start_commit_once(t, &fragment, 1, 0, NULL, 0, done, &f, &err),
			 FZ_OVERLOADED);
	ck_assert_str_eq(err.name, "MEMORY");
	ck_assert_int_eq(err.effect, FZ_EFFECT_CLEAN);
	ck_assert_uint_eq(fz_pending(client), 2);
	/* The server takes less than that: known only now. */
	hello_of(1, 1000);
	ends(&e, FZ_USAGE, "TOO_LARGE", FZ_EFFECT_CLEAN);
	ends(&f, FZ_USAGE, "TOO_LARGE", FZ_EFFECT_CLEAN);
	ck_assert_int_eq(fz_start_commit_once(t, &fragment, 1, 0, NULL, 0, done, &f, &err),
			 FZ_USAGE);
	ck_assert_str_eq(err.name, "TOO_LARGE");
	/* Memory came back. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(deadlines)
{
	struct end e = {0};
	open_client((struct fz_options){.timeout_ms = 150});
	struct fz_txn *t = new_txn();
	int64_t begun = now_ms();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	ends(&e, FZ_UNKNOWN, "TIMEOUT", FZ_EFFECT_UNKNOWN);
	ck_assert_int_ge(now_ms() - begun, 149);
	/* A late answer finds nobody. */
	answer_outcome(t, RPC_STATE_COMMITTED);
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	fz_txn_free(t);
}
END_TEST

START_TEST(silent_server)
{
	struct end e = {0};
	open_client((struct fz_options){.attempt_ms = 100});
	struct fz_txn *t = new_txn();
	start_once(t, &e);
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	int64_t end = now_ms() + PATIENCE_MS;
	char byte;
	while (recv(conn, &byte, 1, MSG_PEEK) != 0 && now_ms() < end)
		turn();
	drop();
	hello();
	next(FZ_MSG_COMMIT_ONCE);
	answer_outcome(t, RPC_STATE_COMMITTED);
	ends(&e, FZ_OK, "", FZ_EFFECT_CLEAN);
	ck_assert_int_eq(connections, 2);
	fz_txn_free(t);
}
END_TEST

static void block_inside(void *ctx, const struct fz_reply *reply)
{
	int *seen = ctx;
	struct fz_error err;
	(void)reply;
	ck_assert_int_eq(fz_connect(client, NULL, &err), FZ_USAGE);
	ck_assert_str_eq(err.name, "STATE");
	++*seen;
}

START_TEST(call_backs)
{
	int seen = 0;
	struct end e = {0};
	open_client((struct fz_options){0});
	struct fz_txn *t = new_txn();
	ck_assert_int_eq(fz_start_status(client, fz_txn_id(t), block_inside, &seen, NULL), FZ_OK);
	hello();
	next(FZ_MSG_STATUS);
	answer_outcome(t, RPC_STATE_OPEN);
	int64_t end = now_ms() + PATIENCE_MS;
	while (seen == 0 && now_ms() < end)
		turn();
	ck_assert_int_eq(seen, 1);
	/* What is under way when the client closes ends there. */
	start_once(t, &e);
	next(FZ_MSG_COMMIT_ONCE);
	fz_close(client);
	client = NULL;
	ck_assert_int_eq(e.times, 1);
	ck_assert_int_eq(e.reply.status, FZ_LOST);
	ck_assert_str_eq(e.reply.error.name, "CLOSED");
	ck_assert_int_eq(e.reply.error.effect, FZ_EFFECT_UNKNOWN);
	fz_txn_free(t);
}
END_TEST

START_TEST(addresses)
{
	static const struct {
		const char *text, *host, *port, *path;
	} good[] = {{"h:1", "h", "1", ""},
		    {"[::1]:8182", "::1", "8182", ""},
		    {"unix:/a/b", "", "", "/a/b"},
		    {"unix:///a", "", "", "/a"},
		    {"./s", "", "", "./s"}};
	static const char *const bad[] = {"",        "h",   "h:",    ":1", "h:0",
					  "h:65536", "h:x", "unix:", NULL};
	struct fz_address a;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ck_assert(fz_address_parse(good[i].text, &a));
		ck_assert_str_eq(a.host, good[i].host);
		ck_assert_str_eq(a.port, good[i].port);
		ck_assert_str_eq(a.path, good[i].path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert(!fz_address_parse(bad[i], &a));
	char text[200] = "/";
	memset(text + 1, 'x', 150);
	ck_assert(!fz_address_parse(text, &a));
	client = fz_open(&(struct fz_options){.address = "h"}, NULL);
	ck_assert_ptr_null(client);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fz_client");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_transaction);
	tcase_add_test(t, wrong_digest);
	tcase_add_test(t, lost_connection_repeats_the_same_message);
	tcase_add_test(t, lost_for_good);
	tcase_add_test(t, repeats_as_the_server_says);
	tcase_add_test(t, unknown_ends_in_status);
	tcase_add_test(t, clean_answer_after_a_lost_one);
	tcase_add_test(t, answers_in_any_order);
	tcase_add_test(t, versions);
	tcase_add_test(t, versions_of_both);
	tcase_add_test(t, no_common_version);
	tcase_add_test(t, broken_answers);
	tcase_add_test(t, limits);
	tcase_add_test(t, deadlines);
	tcase_add_test(t, silent_server);
	tcase_add_test(t, call_backs);
	tcase_add_test(t, addresses);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
