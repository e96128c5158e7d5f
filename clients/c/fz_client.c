#include "clients/c/fz_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "clients/c/fz_error.h"

#define TIMEOUT_MS 60000
#define ATTEMPT_MS 20000
#define RETRIES 100
#define MEMORY_BYTES ((size_t)256 << 20)
#define REPLY_FACTOR 16
#define HELLO_BYTES ((size_t)64 * 1024)
#define PAUSE_MIN_US 50000
#define PAUSE_MAX_US 2000000
/* Reads of one fz_process, so that a talkative server does not hold the caller's loop. */
#define READS_MAX 32

static int64_t mono_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Growing, with chance, so that clients do not march. */
static int64_t pause_us(int failures)
{
	int64_t most = failures > 6 ? PAUSE_MAX_US : (int64_t)PAUSE_MIN_US << failures;
	uint8_t chance[2];
	if (most > PAUSE_MAX_US)
		most = PAUSE_MAX_US;
	digest_random(chance, sizeof chance);
	return most / 2 + most / 2 * get_u16le(chance) / 65536;
}

/* ---- life ---- */

struct fz_client *fz_open(const struct fz_options *options, struct fz_error *err)
{
	struct fz_address address;
	if (!options || !options->address || !fz_address_parse(options->address, &address)) {
		fz_error_set(err, FZ_USAGE, "ILLEGAL_ARGUMENT", "address",
			     "neither host:port nor the path of a socket");
		return NULL;
	}
	struct fz_client *c = base_calloc(1, sizeof *c);
	c->options = *options;
	c->address = address;
	struct fz_options *o = &c->options;
	const char *name = o->client_name ? o->client_name : "libfrazil/" FZ_VERSION;
	c->client_name = base_alloc(strlen(name) + 1);
	memcpy(c->client_name, name, strlen(name) + 1);
	o->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : TIMEOUT_MS;
	o->attempt_ms = o->attempt_ms > 0 ? o->attempt_ms : ATTEMPT_MS;
	o->retries = o->retries < 0 ? 0 : o->retries ? o->retries : RETRIES;
	o->max_memory = o->max_memory ? o->max_memory : MEMORY_BYTES;
	o->max_reply = o->max_reply ? o->max_reply : FRAME_MAX;
	if (o->max_reply > INT32_MAX)
		o->max_reply = INT32_MAX;
	c->timeout_ms = o->timeout_ms;
	c->min_version = c->max_version = FZ_PROTOCOL_VERSION;
	c->hello.server = "";
	fz_schemas_init(&c->schemas);
	buf_init(&c->hello_frame, HELLO_BYTES);
	arena_init(&c->hello_arena, HELLO_BYTES);
	arena_init(&c->kept, 0);
	list_init(&c->ready);
	list_init(&c->sent);
	list_init(&c->waiting);
	list_init(&c->ended);
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	fz_conn_init(&c->conn, c->epoll, o->max_reply);
	struct epoll_event ev = {.events = EPOLLIN};
	if (c->epoll < 0 || c->timer < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->timer, &ev)) {
		fz_error_set(err, FZ_USAGE, "LIMIT", "", "no descriptor left");
		fz_close(c);
		return NULL;
	}
	return c;
}

void fz_client_versions(struct fz_client *c, int min_version, int max_version)
{
	c->min_version = min_version;
	c->max_version = max_version;
}

static void free_client(struct fz_client *c)
{
	base_free(c->client_name);
	base_free(c);
}

static void call_free(struct fz_call *own_call)
{
	struct fz_call *call = own_call;
	list_remove(&call->node);
	if (call->txn)
		fz_txn_unref(call->txn);
	buf_fini(&call->frame);
	arena_fini(&call->arena);
	base_free((void *)(uintptr_t)call->ref.fragment_id);
	base_free(call);
}

void fz_client_drop(struct fz_call *own_call)
{
	call_free(own_call);
}

/* ---- ends of calls ---- */

static void to_ended(struct fz_call *call)
{
	list_remove(&call->node);
	list_push_back(&call->client->ended, &call->node);
}

/* Ends a call with an error that stands in reply.error. */
static void end_error(struct fz_call *call)
{
	call->reply.status = call->reply.error.status;
	to_ended(call);
}

/* Messages whose effect is only to be read or renewed are clean however they fail. */
static bool may_change(const struct fz_call *call)
{
	return call->settling ||
	       (call->msg != 0 && call->msg != FZ_MSG_STATUS && call->msg != FZ_MSG_HEARTBEAT);
}

/* Ends a call that got no answer that decides. */
static void end_lost(struct fz_call *call, bool late)
{
	struct fz_client *c = call->client;
	struct fz_error *e = &call->reply.error;
	bool unknown = may_change(call) && (call->maybe || call->sent);
	if (call->settling) {
		/* The error that made us ask tells more. */
		end_error(call);
		return;
	}
	enum fz_status st = c->last.status == FZ_PROTOCOL ? FZ_PROTOCOL
			    : unknown && late             ? FZ_UNKNOWN
							  : FZ_LOST;
	const char *why = c->last.message[0] ? c->last.message : "no answer";
	fz_error_set(e, st, late ? "TIMEOUT" : "CONNECTION", "", "%s%s",
		     late ? "the deadline passed: " : "no connection: ", why);
	e->retry = FZ_RETRY_SAME;
	e->effect = unknown ? FZ_EFFECT_UNKNOWN : FZ_EFFECT_CLEAN;
	end_error(call);
}

static void end_all(struct list *l, const struct fz_error *e)
{
	LIST_FOR(it, tmp, l)
	{
		struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
		bool unknown = may_change(call) && (call->maybe || call->sent);
		if (!call->settling)
			call->reply.error = *e;
		if (unknown)
			call->reply.error.effect = FZ_EFFECT_UNKNOWN;
		end_error(call);
	}
}

/* ---- repeats ---- */

/* Puts a call aside for a growing pause; false when attempts or time are used up. */
static bool again_later(struct fz_call *call, int64_t now_us)
{
	struct fz_client *c = call->client;
	int64_t at = now_us + pause_us(call->attempts);
	if (call->attempts >= c->options.retries || at >= call->deadline_us)
		return false;
	call->attempts++;
	call->not_before_us = at;
	call->written = 0;
	list_remove(&call->node);
	list_push_back(&c->waiting, &call->node);
	return true;
}

/* Asks for the status instead of giving up: Commit, CommitOnce and Abort whose outcome is open. */
static bool settle(struct fz_call *call)
{
	struct fz_client *c = call->client;
	struct fz_encode e;
	if (call->settling || (call->msg != FZ_MSG_COMMIT && call->msg != FZ_MSG_COMMIT_ONCE &&
			       call->msg != FZ_MSG_ABORT))
		return false;
	c->memory -= call->frame.n;
	call->settling = true;
	call->attempts = 0;
	call->written = 0;
	buf_clear(&call->frame);
	/* The payload's size is constant and small, so that its encoding cannot fail. */
	(void)frame_open(&call->frame, FZ_MSG_STATUS, 0, 0);
	fz_encode_open(&e, &c->schemas, FZ_MSG_STATUS, HELLO_BYTES, NULL);
	fz_encode_status(&e, call->txn_id);
	bool ok = fz_encode_close(&e, &call->frame) == FZ_OK && buf_ok(&call->frame);
	c->memory += call->frame.n;
	list_remove(&call->node);
	if (ok)
		list_push_back(&c->ready, &call->node);
	return ok;
}

/* The connection is gone: everything under way goes back to the front, in its order. */
static void disconnect(struct fz_client *c, int64_t now_us, const struct fz_error *why)
{
	struct list again;
	c->last = *why;
	fz_conn_close(&c->conn);
	c->hello_done = false;
	c->retry_at_us = now_us + pause_us(c->failures);
	c->failures++;
	list_init(&again);
	while (!list_empty(&c->sent)) {
		struct list *n = list_pop_front(&c->sent);
		LIST_ITEM(n, struct fz_call, node)->maybe = true;
		list_push_back(&again, n);
	}
	while (!list_empty(&c->ready))
		list_push_back(&again, list_pop_front(&c->ready));
	while (!list_empty(&again)) {
		struct list *n = list_pop_front(&again);
		struct fz_call *call = LIST_ITEM(n, struct fz_call, node);
		call->written = 0;
		list_push_back(&c->ready, n);
		if (call->attempts++ >= c->options.retries)
			end_lost(call, false);
	}
}

/* ---- answers ---- */

/* An Error record answered: repeat, settle or end. */
static void on_error(struct fz_call *call, const struct fz_error *e, int64_t now_us)
{
	bool repeats = e->retry == FZ_RETRY_SAME || e->retry == FZ_RETRY_LATER;
	if (e->effect == FZ_EFFECT_UNKNOWN)
		call->maybe = true;
	if (repeats && again_later(call, now_us))
		return;
	if (call->settling) {
		end_error(call);
		return;
	}
	call->reply.error = *e;
	/* "Nothing was started" speaks of the last attempt only. */
	if (repeats && call->maybe && may_change(call)) {
		call->reply.error.status = FZ_UNKNOWN;
		call->reply.error.effect = FZ_EFFECT_UNKNOWN;
	}
	if (call->reply.error.effect == FZ_EFFECT_UNKNOWN && settle(call))
		return;
	end_error(call);
}

static bool final_state(enum fz_state s)
{
	return s != FZ_STATE_OPEN && s != FZ_STATE_SEALED;
}

static void on_answer(struct fz_call *call, const struct frame *f, int64_t now_us)
{
	struct fz_client *c = call->client;
	struct fz_reply *r = &call->reply;
	struct fz_decoded *d = &call->decoded;
	enum fz_msg want = fz_schemas_reply(call->settling ? FZ_MSG_STATUS : call->msg);
	struct fz_error err = {0};
	arena_reset(&call->arena);
	enum fz_status st = fz_decode(&c->schemas, f->type, f->payload, &call->arena, d, &err);
	if (st == FZ_OK && f->type != FZ_MSG_ERROR && f->type != (int)want)
		st = fz_error_set(&err, FZ_PROTOCOL, "", "frame.type", "%s was answered by %s",
				  fz_schemas_name((int)call->msg), fz_schemas_name(f->type));
	if (st != FZ_OK) {
		err.effect = may_change(call) ? FZ_EFFECT_UNKNOWN : FZ_EFFECT_CLEAN;
		err.retry = FZ_RETRY_SAME;
		r->error = err;
		end_error(call);
		return;
	}
	if (d->error) {
		on_error(call, d->error, now_us);
		return;
	}
	r->info = d->info;
	r->staged = d->staged;
	r->outcome = d->outcome;
	r->leases = d->leases;
	r->n_leases = d->n_leases;
	if (call->settling && !final_state(d->outcome->state)) {
		end_error(call);
		return;
	}
	memset(&r->error, 0, sizeof r->error);
	r->status = FZ_OK;
	to_ended(call);
}

/* ---- Hello ---- */

static bool hello_open(struct fz_client *c, int64_t now_us, struct fz_error *err)
{
	struct fz_encode e;
	buf_clear(&c->hello_frame);
	size_t start = frame_open(&c->hello_frame, FZ_MSG_HELLO, FZ_PROTOCOL_VERSION, 0);
	fz_encode_open(&e, &c->schemas, FZ_MSG_HELLO, HELLO_BYTES - FRAME_HEADER, err);
	fz_encode_hello(&e, c->min_version, c->max_version, c->client_name, c->options.provenance);
	if (fz_encode_close(&e, &c->hello_frame) != FZ_OK)
		return false;
	frame_close(&c->hello_frame, start);
	c->hello_written = 0;
	c->hello_end_us = now_us + (int64_t)c->options.attempt_ms * 1000;
	return true;
}

/* A fault that repeating does not cure: every call ends. */
static void give_up(struct fz_client *c, int64_t now_us, const struct fz_error *why)
{
	end_all(&c->sent, why);
	end_all(&c->ready, why);
	end_all(&c->waiting, why);
	disconnect(c, now_us, why);
}

/* A call whose frame the server does not take is not sent. */
static void refuse_large(struct fz_client *c)
{
	LIST_FOR(it, tmp, &c->ready)
	{
		struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
		if ((int64_t)call->frame.n <= c->hello.max_frame_bytes || call->maybe)
			continue;
		fz_error_set(&call->reply.error, FZ_USAGE, "TOO_LARGE", "",
			     "the message has %zu bytes, the server takes %lld", call->frame.n,
			     (long long)c->hello.max_frame_bytes);
		end_error(call);
	}
}

static void on_hello(struct fz_client *c, const struct frame *f, int64_t now_us)
{
	struct fz_decoded d;
	struct fz_error err = {0};
	arena_reset(&c->hello_arena);
	c->hello.server = "";
	if (fz_decode(&c->schemas, f->type, f->payload, &c->hello_arena, &d, &err) != FZ_OK) {
		disconnect(c, now_us, &err);
		return;
	}
	if (d.error) {
		err = *d.error;
		err.effect = FZ_EFFECT_CLEAN;
		if (err.status == FZ_REJECTED) /* no transaction, no common version */
			err.status = FZ_PROTOCOL;
		if (err.retry == FZ_RETRY_LATER || err.retry == FZ_RETRY_SAME)
			disconnect(c, now_us, &err);
		else
			give_up(c, now_us, &err);
		return;
	}
	if (!d.hello || d.hello->version < c->min_version || d.hello->version > c->max_version) {
		fz_error_set(&err, FZ_PROTOCOL, "UNSUPPORTED", "version",
			     "versions %d to %d were offered, the server chose %d", c->min_version,
			     c->max_version, d.hello ? d.hello->version : 0);
		give_up(c, now_us, &err);
		return;
	}
	c->hello = *d.hello;
	c->version = d.hello->version;
	c->hello_done = true;
	memset(&c->last, 0, sizeof c->last);
	refuse_large(c);
}

/* ---- reading and writing ---- */

static void on_frame(struct fz_client *c, const struct frame *f, int64_t now_us)
{
	if (!c->hello_done) {
		on_hello(c, f, now_us);
		return;
	}
	LIST_FOR(it, tmp, &c->sent)
	{
		struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
		if (call->request_id == f->request_id) {
			c->failures = 0;
			on_answer(call, f, now_us);
			return;
		}
	}
	/* An answer that nobody waits for any more. */
}

/* Reads all that is there, within reason. Frames of a connection that ended meanwhile are gone. */
static void do_read(struct fz_client *c, int64_t now_us)
{
	struct fz_error err = {0};
	struct frame f;
	for (int reads = 0; reads < READS_MAX && c->conn.sock >= 0; reads++) {
		int got = fz_conn_read(&c->conn, &err);
		if (got == 0)
			return;
		int one = 0;
		while (got > 0 && c->conn.sock >= 0 &&
		       (one = fz_conn_frame(&c->conn, &f, &err)) > 0) {
			if (c->hello_done && f.version != c->version) {
				fz_error_set(&err, FZ_PROTOCOL, "", "frame.version",
					     "version %d was agreed, an answer has %u", c->version,
					     (unsigned)f.version);
				one = -1;
				break;
			}
			on_frame(c, &f, now_us);
		}
		if (c->conn.sock >= 0 && (got < 0 || one < 0)) {
			disconnect(c, now_us, &err);
			return;
		}
	}
}

/* true when all was written. */
static bool write_some(struct fz_client *c, const struct buf *b, size_t *written, int64_t now_us)
{
	struct fz_error err = {0};
	while (*written < b->n) {
		ssize_t n = fz_conn_write(&c->conn,
					  (struct bytes){b->p + *written, b->n - *written}, &err);
		if (n < 0)
			disconnect(c, now_us, &err);
		if (n <= 0)
			return false;
		*written += (size_t)n;
	}
	return true;
}

static void do_write(struct fz_client *c, int64_t now_us)
{
	if (!write_some(c, &c->hello_frame, &c->hello_written, now_us))
		return;
	while (c->hello_done && !list_empty(&c->ready)) {
		struct fz_call *call = LIST_ITEM(c->ready.next, struct fz_call, node);
		if (call->msg == 0) {
			call->reply.status = FZ_OK;
			to_ended(call);
			continue;
		}
		if (call->written == 0) {
			call->request_id = ++c->next_request;
			call->frame.p[5] = (uint8_t)c->version;
			put_u32be(call->frame.p + 6, call->request_id);
			frame_close(&call->frame, 0);
			call->attempt_end_us = now_us + call->attempt_us;
		}
		if (!write_some(c, &call->frame, &call->written, now_us))
			return;
		call->sent = true;
		list_remove(&call->node);
		list_push_back(&c->sent, &call->node);
	}
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void late(struct list *l, int64_t now_us)
{
	LIST_FOR(it, tmp, l)
	{
		struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
		if (now_us >= call->deadline_us)
			end_lost(call, true);
	}
}

static void on_time(struct fz_client *c, int64_t now_us)
{
	uint64_t times;
	ssize_t n = read(c->timer, &times, sizeof times);
	(void)n;
	struct fz_call *cut =
		list_empty(&c->ready) ? NULL : LIST_ITEM(c->ready.next, struct fz_call, node);
	bool half = cut && cut->written > 0 && now_us >= cut->deadline_us;
	late(&c->sent, now_us);
	late(&c->ready, now_us);
	late(&c->waiting, now_us);
	LIST_FOR(it, tmp, &c->waiting)
	{
		struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
		if (now_us < call->not_before_us)
			continue;
		list_remove(it);
		list_push_back(&c->ready, it);
	}
	if (c->conn.sock < 0)
		return;
	bool dead = half || (!c->hello_done && now_us >= c->hello_end_us);
	LIST_FOR(it, tmp, &c->sent)
	dead = dead || now_us >= LIST_ITEM(it, struct fz_call, node)->attempt_end_us;
	if (dead) {
		/* Also after half a frame whose call has ended: the rest cannot follow. */
		struct fz_error err;
		fz_error_set(&err, FZ_LOST, "", "", "the server did not answer in time");
		disconnect(c, now_us, &err);
	}
}

static void arm(struct fz_client *c, int64_t now_us)
{
	int64_t next = INT64_MAX;
	struct list *const lists[] = {&c->sent, &c->ready, &c->waiting};
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		LIST_FOR(it, tmp, lists[i])
		{
			const struct fz_call *call = LIST_ITEM(it, struct fz_call, node);
			next = earlier(next, call->deadline_us);
			if (i == 0)
				next = earlier(next, call->attempt_end_us);
			if (i == 2)
				next = earlier(next, call->not_before_us);
		}
	if (c->conn.sock >= 0 && !c->hello_done)
		next = earlier(next, c->hello_end_us);
	if (c->conn.sock < 0 && !list_empty(&c->ready))
		next = earlier(next, c->retry_at_us);
	if (!list_empty(&c->ended))
		next = now_us;
	struct itimerspec t = {0};
	if (next != INT64_MAX) {
		/* Zero would disarm. */
		t.it_value.tv_sec = next / 1000000;
		t.it_value.tv_nsec = next % 1000000 * 1000 + 1;
	}
	timerfd_settime(c->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- the loop's entry ---- */

static void do_connect(struct fz_client *c, int64_t now_us)
{
	struct fz_error err = {0};
	if (c->conn.sock < 0) {
		if (list_empty(&c->ready) || now_us < c->retry_at_us)
			return;
		if (!hello_open(c, now_us, &err) ||
		    !fz_conn_open(&c->conn, &c->address, c->turns++, &err)) {
			disconnect(c, now_us, &err);
			return;
		}
	}
	int up = fz_conn_ready(&c->conn, &err);
	if (up < 0)
		disconnect(c, now_us, &err);
	if (up <= 0)
		return;
	do_write(c, now_us);
	if (c->conn.sock >= 0)
		do_read(c, now_us);
	/* Hello's answer opens the way for what waited. */
	if (c->conn.sock >= 0 && c->hello_done)
		do_write(c, now_us);
}

static void run_ended(struct fz_client *c)
{
	struct list now;
	list_init(&now);
	while (!list_empty(&c->ended))
		list_push_back(&now, list_pop_front(&c->ended));
	while (!list_empty(&now)) {
		struct fz_call *call = LIST_ITEM(list_pop_front(&now), struct fz_call, node);
		c->pending--;
		c->memory -= call->frame.n;
		if (call->apply)
			call->apply(call);
		if (call->reply.status != FZ_OK)
			call->reply.error.status = call->reply.status;
		if (call->blocking) {
			arena_fini(&c->kept);
			c->kept = call->arena;
			arena_init(&call->arena, 0);
			c->kept_reply = call->reply;
			c->kept_done = true;
		} else {
			bool outer = c->in_callback;
			c->in_callback = true;
			call->done(call->ctx, &call->reply);
			c->in_callback = outer;
		}
		call_free(call);
	}
}

void fz_process(struct fz_client *client)
{
	struct fz_client *c = client;
	if (c->in_callback)
		return;
	int64_t now_us = mono_us();
	/* What came while the caller did other things counts before clocks do. */
	if (c->conn.sock >= 0 && !c->conn.connecting)
		do_read(c, now_us);
	on_time(c, now_us);
	do_connect(c, now_us);
	run_ended(c);
	fz_conn_want(&c->conn, c->conn.connecting || c->hello_written < c->hello_frame.n ||
				       (c->hello_done && !list_empty(&c->ready)));
	arm(c, now_us);
}

void fz_close(struct fz_client *own_client)
{
	struct fz_client *c = own_client;
	struct fz_error err;
	if (!c)
		return;
	ASSERT(!c->in_callback);
	c->closing = true;
	fz_error_set(&err, FZ_LOST, "CLOSED", "", "the client was closed");
	end_all(&c->sent, &err);
	end_all(&c->ready, &err);
	end_all(&c->waiting, &err);
	run_ended(c);
	fz_conn_fini(&c->conn);
	if (c->timer >= 0)
		close(c->timer);
	if (c->epoll >= 0)
		close(c->epoll);
	buf_fini(&c->hello_frame);
	arena_fini(&c->hello_arena);
	arena_fini(&c->kept);
	fz_schemas_fini(&c->schemas);
	free_client(c);
}

int fz_fd(const struct fz_client *client)
{
	return client->epoll;
}

size_t fz_pending(const struct fz_client *client)
{
	return client->pending;
}

void fz_set_timeout(struct fz_client *client, int timeout_ms)
{
	client->timeout_ms = timeout_ms > 0 ? timeout_ms : client->options.timeout_ms;
}

/* Sleeps until the descriptor has work or `until_us`. */
static void nap(struct fz_client *c, int64_t until_us)
{
	struct pollfd p = {.fd = c->epoll, .events = POLLIN};
	int64_t ms = -1;
	if (until_us != INT64_MAX) {
		ms = (until_us - mono_us() + 999) / 1000;
		ms = ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : ms;
	}
	poll(&p, 1, (int)ms);
}

bool fz_drain(struct fz_client *client, int timeout_ms)
{
	int64_t until = timeout_ms < 0 ? INT64_MAX : mono_us() + (int64_t)timeout_ms * 1000;
	fz_process(client);
	while (client->pending > 0 && mono_us() < until && !client->in_callback) {
		nap(client, until);
		fz_process(client);
	}
	return client->pending == 0;
}

/* ---- calls ---- */

void fz_client_keep(void *ctx, const struct fz_reply *reply)
{
	(void)ctx;
	(void)reply;
	ASSERT_NEVER("blocking calls are kept by the engine");
}

struct fz_call *fz_client_call(struct fz_client *c, enum fz_msg msg, int64_t extra_ms, fz_done done,
			       void *ctx, struct fz_error *err)
{
	bool blocking = done == fz_client_keep;
	if (c->closing || (blocking && c->in_callback)) {
		fz_error_set(err, FZ_USAGE, "STATE", "",
			     c->closing ? "the client is being closed"
					: "a call-back may not block");
		return NULL;
	}
	if (extra_ms < 0 || extra_ms > INT32_MAX) {
		fz_error_set(err, FZ_USAGE, "ILLEGAL_ARGUMENT", "max_wait_ms", "out of range");
		return NULL;
	}
	struct fz_call *call = base_calloc(1, sizeof *call);
	int64_t now_us = mono_us();
	list_init(&call->node);
	call->client = c;
	call->msg = msg;
	call->done = done;
	call->ctx = ctx;
	call->blocking = blocking;
	call->deadline_us = now_us + (c->timeout_ms + extra_ms) * 1000;
	call->attempt_us = (c->options.attempt_ms + extra_ms) * 1000;
	buf_init(&call->frame, c->options.max_memory);
	arena_init(&call->arena, c->options.max_reply * REPLY_FACTOR);
	return call;
}

size_t fz_client_room(const struct fz_client *c)
{
	/* Whether it fits beside others is judged when it starts. */
	return c->options.max_memory > FRAME_HEADER ? c->options.max_memory - FRAME_HEADER : 0;
}

void fz_client_open_frame(struct fz_call *call)
{
	(void)frame_open(&call->frame, (uint8_t)call->msg, 0, 0);
}

enum fz_status fz_client_start(struct fz_call *own_call, struct fz_error *err)
{
	struct fz_call *call = own_call;
	struct fz_client *c = call->client;
	enum fz_status st = FZ_OK;
	if (c->hello.max_frame_bytes > 0 && (int64_t)call->frame.n > c->hello.max_frame_bytes)
		st = fz_error_set(err, FZ_USAGE, "TOO_LARGE", "",
				  "the message has %zu bytes, the server takes %lld", call->frame.n,
				  (long long)c->hello.max_frame_bytes);
	else if (!buf_ok(&call->frame) || call->frame.n > c->options.max_memory - c->memory) {
		st = fz_error_set(err, FZ_OVERLOADED, "MEMORY", "",
				  "%zu calls wait for answers and hold %zu bytes", c->pending,
				  c->memory);
		if (err)
			err->retry = FZ_RETRY_LATER;
	}
	if (st != FZ_OK) {
		call_free(call);
		return st;
	}
	c->memory += call->frame.n;
	c->pending++;
	list_push_back(&c->ready, &call->node);
	if (call->blocking)
		c->kept_done = false;
	/* Wakes whoever watches the descriptor. */
	struct itimerspec now = {.it_value.tv_nsec = 1};
	timerfd_settime(c->timer, 0, &now, NULL);
	return FZ_OK;
}

enum fz_status fz_client_wait(struct fz_client *c, struct fz_error *err)
{
	fz_process(c);
	while (!c->kept_done) {
		nap(c, INT64_MAX);
		fz_process(c);
	}
	if (err)
		*err = c->kept_reply.error;
	return c->kept_reply.status;
}

enum fz_status fz_connect(struct fz_client *client, const struct fz_hello **ret_hello,
			  struct fz_error *err)
{
	struct fz_call *call = fz_client_call(client, (enum fz_msg)0, 0, fz_client_keep, NULL, err);
	if (!call)
		return FZ_USAGE;
	enum fz_status st = fz_client_start(call, err);
	if (st == FZ_OK)
		st = fz_client_wait(client, err);
	if (st == FZ_OK && ret_hello)
		*ret_hello = &client->hello;
	return st;
}
