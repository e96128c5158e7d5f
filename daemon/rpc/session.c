#include "daemon/rpc/session.h"

#include "conf/log.h"
#include "proto/rpc/frame.h"

/* What a waiting request costs beside its bytes: here, in the core and in the statement it waits for;
 * measured. */
#define REQUEST_OVERHEAD ((size_t)6144)
/* An answer above this is not sent: clients need not take larger frames. */
#define ANSWER_MAX FRAME_MAX
/* Once the server is stopping: a client that reads nothing for this long is not waited for. */
#define DRAIN_WRITE_MS INT64_C(3000)
/* Answers of one connection that wait to be sent; the budget stops reading long before. */
#define OUT_MAX ((size_t)1 << 30)

struct session {
	struct list node;
	struct rpc_server *s;
	union {
		uv_handle_t handle;
		uv_stream_t stream;
		uv_tcp_t tcp;
		uv_pipe_t pipe;
	} h;
	uint64_t number;
	int version; /* agreed with Hello; 0 before */
	bool provenance;
	bool reading;
	bool finish; /* close once all is answered and sent */
	bool closing;
	bool backlog; /* whole frames wait in `in` for room in the budget */

	struct buf in;    /* the beginning of a frame, or frames that wait for room in the budget */
	struct buf out;   /* answers of this turn */
	uint8_t *writing; /* handed to the kernel, sent in part; NULL when nothing is */
	size_t writing_n;
	uv_write_t write;
	size_t left; /* bytes unsent when the write timer was set */

	struct list requests; /* without an answer */
	size_t charge;        /* bytes of requests without an answer and of answers unsent */
	struct loop_timer read_timer, write_timer;
	struct loop_hook pump;
};

static void charge(struct session *c, size_t n)
{
	c->charge += n;
	c->s->stats.bytes += n;
}

static void discharge(struct session *c, size_t n)
{
	ASSERT(n <= c->charge);
	c->charge -= n;
	c->s->stats.bytes -= n;
}

static bool has_room(const struct session *c)
{
	return c->charge <= c->s->o.session_budget;
}

static bool is_quiet(const struct session *c)
{
	return list_empty(&c->requests) && c->out.n == 0 && !c->writing;
}

/* Closing */

static void on_closed(uv_handle_t *h)
{
	struct session *c = h->data;
	struct rpc_server *s = c->s;
	ASSERT(!c->writing);
	list_remove(&c->node);
	buf_fini(&c->in);
	buf_fini(&c->out);
	base_free(c);
	s->stats.sessions--;
	s->changed(s);
}

static void session_close(struct session *c, const char *why)
{
	if (c->closing)
		return;
	c->closing = true;
	LOG(LOG_DEBUG, "rpc.closed", NULL, "connection %llu: %s", (unsigned long long)c->number,
	    why);
	/* The sink goes on with what it holds; its answers find nobody. */
	LIST_FOR(it, tmp, &c->requests)
	{
		struct rpc_request *r = LIST_ITEM(it, struct rpc_request, node);
		list_remove(&r->node);
		r->peer = NULL;
	}
	discharge(c, c->charge);
	c->s->stats.bytes -= c->in.n;
	buf_fini(&c->in);
	loop_timer_cancel(c->s->o.loop, &c->read_timer);
	loop_timer_cancel(c->s->o.loop, &c->write_timer);
	loop_hook_disarm(&c->pump);
	uv_close(&c->h.handle, on_closed);
}

/* Writing */

static void arm(struct session *c)
{
	if (!c->closing)
		loop_hook_arm(c->s->o.loop, &c->pump);
}

static void send_record(struct session *c, const struct rpc_message *m, uint32_t request_id,
			const void *record)
{
	size_t before = c->out.n;
	/* Hello is answered in the version that it came in. */
	int version = m->type == RPC_MSG_HELLO_REPLY || !c->version ? RPC_VERSION : c->version;
	size_t start = frame_open(&c->out, (uint8_t)m->type, (uint8_t)version, request_id);
	msg_encode(m->record, record, &c->out);
	frame_close(&c->out, start);
	if (!buf_ok(&c->out)) {
		session_close(c, "no memory for an answer");
		return;
	}
	charge(c, c->out.n - before);
	arm(c);
}

/* An outcome must be told even when its lists are too long for a frame. */
static void send_answer(struct session *c, const struct rpc_message *m, uint32_t request_id,
			const void *record)
{
	size_t before = c->out.n;
	send_record(c, m, request_id, record);
	if (c->closing || c->out.n - before <= ANSWER_MAX)
		return;
	discharge(c, c->out.n - before);
	c->out.n = before;
	if (m->type == RPC_MSG_OUTCOME) {
		struct rpc_outcome o = *(const struct rpc_outcome *)record;
		o.n_files = o.n_deletes = 0;
		o.note = STRV("files and deletes are left out: too many for one frame");
		send_record(c, m, request_id, &o);
		return;
	}
	struct err err = {0};
	struct rpc_error e;
	(void)err_set(&err, ST_INTERNAL, "", "the answer is too large for a frame");
	rpc_error_of(&err, &e);
	send_record(c, rpc_message_of(RPC_MSG_ERROR), request_id, &e);
}

static void send_error(struct session *c, uint32_t request_id, const struct err *err)
{
	struct rpc_error e;
	rpc_error_of(err, &e);
	send_record(c, rpc_message_of(RPC_MSG_ERROR), request_id, &e);
}

static void set_write_timer(struct session *c)
{
	const struct rpc_server *s = c->s;
	int64_t ms = s->o.write_timeout_ms;
	if (s->draining && ms > DRAIN_WRITE_MS)
		ms = DRAIN_WRITE_MS;
	c->left = uv_stream_get_write_queue_size(&c->h.stream);
	loop_timer_set(s->o.loop, &c->write_timer, loop_mono_us(s->o.loop) + ms * 1000);
}

static void on_write_slow(struct loop_timer *t)
{
	struct session *c = CONTAINER_OF(t, struct session, write_timer);
	size_t left = uv_stream_get_write_queue_size(&c->h.stream);
	if (left < c->left) {
		set_write_timer(c);
		return;
	}
	c->s->stats.slow++;
	LOG(LOG_INFO, "rpc.slow", NULL, "connection %llu does not read its answers",
	    (unsigned long long)c->number);
	session_close(c, "does not read");
}

static void on_written(uv_write_t *w, int status)
{
	struct session *c = w->data;
	base_free(c->writing);
	c->writing = NULL;
	if (c->closing)
		return;
	loop_timer_cancel(c->s->o.loop, &c->write_timer);
	discharge(c, c->writing_n);
	if (status < 0)
		session_close(c, uv_strerror(status));
	else
		arm(c);
}

/* Gives the turn's answers to the kernel: mostly at once, the rest when the socket takes it. */
static void flush(struct session *c)
{
	if (c->writing || c->out.n == 0)
		return;
	uv_buf_t b = uv_buf_init((char *)c->out.p, (unsigned)c->out.n);
	int n = uv_try_write(&c->h.stream, &b, 1);
	if (n < 0 && n != UV_EAGAIN) {
		session_close(c, uv_strerror(n));
		return;
	}
	if (n > 0) {
		discharge(c, (size_t)n);
		buf_consume(&c->out, (size_t)n);
	}
	if (c->out.n == 0) {
		/* Idle connections hold no buffers. */
		buf_fini(&c->out);
		buf_init(&c->out, OUT_MAX);
		return;
	}
	c->writing = buf_take(&c->out, &c->writing_n);
	c->write.data = c;
	b = uv_buf_init((char *)c->writing, (unsigned)c->writing_n);
	int st = uv_write(&c->write, &c->h.stream, &b, 1, on_written);
	if (st < 0) {
		base_free(c->writing);
		c->writing = NULL;
		session_close(c, uv_strerror(st));
		return;
	}
	set_write_timer(c);
}

/* Requests */

static void session_answer(struct rpc_request *own_r, const struct rpc_message *message,
			   const void *record, int http)
{
	struct session *c = own_r->peer;
	struct rpc_server *s = own_r->server;
	(void)http;
	s->stats.requests--;
	s->stats.served++;
	if (c) {
		list_remove(&own_r->node);
		discharge(c, own_r->charge);
		send_answer(c, message, own_r->request_id, record);
	}
	arena_fini(&own_r->arena);
	base_free(own_r);
	s->changed(s);
}

/* The highest version that both speak; 0 when there is none. */
static int common_version(const struct session *c, const struct rpc_hello *h)
{
	int max = c->s->o.max_version ? c->s->o.max_version : RPC_VERSION;
	int best = h->max_version < max ? h->max_version : max;
	return h->min_version <= best && best >= RPC_VERSION ? best : 0;
}

static void on_hello(struct session *c, const struct frame *f)
{
	struct arena a;
	struct err err = {0};
	const void *v = NULL;
	enum status st;
	arena_init(&a, rpc_request_limit(f->payload.n));
	if (f->type != RPC_MSG_HELLO || f->version != RPC_VERSION)
		st = err_set(&err, ST_BAD_REQUEST, "frame.type", "the first message must be Hello");
	else
		st = msg_decode(&rpc_record_hello, f->payload, &a, &v, &err);
	const struct rpc_hello *h = v;
	if (st == ST_OK && !common_version(c, h))
		st = err_set(&err, ST_UNSUPPORTED, "min_version",
			     "versions %d to %d are offered, the server speaks %d to %d",
			     h->min_version, h->max_version, RPC_VERSION,
			     c->s->o.max_version ? c->s->o.max_version : RPC_VERSION);
	if (st != ST_OK) {
		send_error(c, f->request_id, &err);
		c->finish = true;
	} else {
		struct strv capabilities[] = {STRV("provenance")};
		for (size_t i = 0; i < h->n_capabilities; i++)
			if (strv_eq(h->capabilities[i], capabilities[0]))
				c->provenance = true;
		c->version = common_version(c, h);
		struct rpc_hello_reply reply = {
			.version = c->version,
			.server = strv_of(c->s->o.server),
			.daemon_id = c->s->o.daemon_id.u,
			.max_frame_bytes = (int64_t)c->s->o.max_frame,
			.capabilities = capabilities,
			.n_capabilities = ARRAY_SIZE(capabilities),
		};
		send_record(c, rpc_message_of(RPC_MSG_HELLO_REPLY), f->request_id, &reply);
		LOG(LOG_DEBUG, "rpc.hello", NULL, "connection %llu: %.*s",
		    (unsigned long long)c->number, STRV_ARG(h->client));
	}
	arena_fini(&a);
}

/* Load is shed before anything is decoded. */
static enum status check_frame(struct session *c, const struct frame *f,
			       const struct rpc_message *m, struct err *err)
{
	if (f->version != c->version)
		return err_set(err, ST_BAD_REQUEST, "frame.version",
			       "version %d was agreed, this is %u", c->version, f->version);
	if (!m || m->reply == RPC_MSG_NONE)
		return err_set(err, ST_UNSUPPORTED, "frame.type", "no request has type %u",
			       f->type);
	if (m->type == RPC_MSG_HELLO)
		return err_set(err, ST_BAD_REQUEST, "frame.type", "Hello was said already");
	if (c->s->draining)
		return err_set(err, ST_UNAVAILABLE, "", "the server is stopping");
	if (c->s->stats.bytes + f->payload.n > c->s->o.total_budget) {
		c->s->stats.overloaded++;
		return err_set(err, ST_OVERLOADED, "", "too many requests are waiting");
	}
	return ST_OK;
}

static void on_frame(struct session *c, const struct frame *f)
{
	if (c->version == 0) {
		on_hello(c, f);
		return;
	}
	struct err err = {0};
	const struct rpc_message *m = rpc_message_of(f->type);
	if (check_frame(c, f, m, &err) != ST_OK) {
		send_error(c, f->request_id, &err);
		return;
	}
	struct rpc_request *r = base_calloc(1, sizeof *r);
	r->message = m;
	r->session = c->number;
	r->provenance = c->provenance;
	r->principal = STRV("anonymous");
	r->started_mono_us = loop_mono_us(c->s->o.loop);
	r->answer = session_answer;
	r->server = c->s;
	r->peer = c;
	r->request_id = f->request_id;
	r->charge = f->payload.n + REQUEST_OVERHEAD;
	list_init(&r->node);
	list_push_back(&c->requests, &r->node);
	charge(c, r->charge);
	c->s->stats.requests++;
	arena_init(&r->arena, rpc_request_limit(f->payload.n));
	base_memory_reset();
	enum status st = msg_decode(m->record, f->payload, &r->arena, &r->msg, &err);
	err_memory(&err);
	/* A few bytes may decode to many. */
	charge(c, r->arena.used);
	r->charge += r->arena.used;
	if (st != ST_OK)
		rpc_reply_err(r, &err);
	else
		c->s->o.sink.fn(c->s->o.sink.ctx, r);
}

/* Reading */

/* Takes whole frames from the start of `in` while the budget has room; returns the bytes used. */
static size_t take_frames(struct session *c, struct bytes in)
{
	size_t used = 0;
	c->backlog = false;
	while (!c->closing && !c->finish && used < in.n) {
		struct frame f;
		size_t n = 0;
		struct err err = {0};
		struct bytes rest = {in.p + used, in.n - used};
		if (!has_room(c)) {
			c->backlog = true;
			break;
		}
		if (frame_parse(rest, c->s->o.max_frame, &f, &n, &err) != ST_OK) {
			/* Nothing behind it can be trusted. */
			c->s->stats.malformed++;
			LOG(LOG_INFO, "rpc.malformed", LOG_WITH(.st = err.st),
			    "connection %llu: %s", (unsigned long long)c->number, err.msg);
			send_error(c, 0, &err);
			c->finish = true;
			return in.n;
		}
		if (n == 0)
			break;
		used += n;
		on_frame(c, &f);
	}
	return used;
}

static void on_read_slow(struct loop_timer *t)
{
	struct session *c = CONTAINER_OF(t, struct session, read_timer);
	c->s->stats.slow++;
	session_close(c, c->version ? "a frame did not end in time" : "no Hello in time");
}

/* After reading: the rest is the beginning of a frame, which must end in time, unless it waits for
 * us. Until Hello the first deadline stays. */
static void set_read_timer(struct session *c, bool progress)
{
	struct loop *l = c->s->o.loop;
	if (c->version == 0)
		return;
	if (c->in.n == 0 || c->backlog)
		loop_timer_cancel(l, &c->read_timer);
	else if (progress || !loop_timer_is_set(&c->read_timer))
		loop_timer_set(l, &c->read_timer,
			       loop_mono_us(l) + c->s->o.frame_timeout_ms * 1000);
}

static void keep(struct session *c, struct bytes rest)
{
	c->s->stats.bytes += rest.n;
	buf_put(&c->in, rest.p, rest.n);
	if (!buf_ok(&c->in) || c->s->stats.bytes > c->s->o.total_budget) {
		struct err err = {0};
		c->s->stats.overloaded++;
		c->s->stats.bytes -= rest.n;
		if (buf_ok(&c->in))
			c->in.n -= rest.n;
		(void)err_set(&err, ST_OVERLOADED, "", "too many bytes are waiting");
		send_error(c, 0, &err);
		c->finish = true;
	}
}

static void take_kept(struct session *c)
{
	bool progress = false;
	if (c->in.n > 0 && has_room(c)) {
		size_t used = take_frames(c, buf_bytes(&c->in));
		if (c->closing)
			return;
		progress = used > 0;
		c->s->stats.bytes -= used;
		buf_consume(&c->in, used);
		if (c->in.n == 0) {
			buf_fini(&c->in);
			buf_init(&c->in, SIZE_MAX);
		}
	}
	set_read_timer(c, progress);
}

static void set_reading(struct session *c);

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct session *c = stream->data;
	if (n < 0) {
		session_close(c, n == UV_EOF ? "closed by the client" : uv_strerror((int)n));
		return;
	}
	if (c->finish)
		return;
	struct bytes got = {(const uint8_t *)b->base, (size_t)n};
	if (c->in.n == 0) {
		size_t used = take_frames(c, got);
		if (c->closing)
			return;
		if (used < got.n && !c->finish)
			keep(c, (struct bytes){got.p + used, got.n - used});
		set_read_timer(c, used > 0);
	} else {
		keep(c, got);
		if (!c->finish)
			take_kept(c);
	}
	/* At once: libuv would go on to read in this very turn. */
	if (!c->closing)
		set_reading(c);
	arm(c);
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *b)
{
	struct session *c = h->data;
	(void)suggested;
	*b = uv_buf_init(c->s->scratch, SESSION_SCRATCH);
}

static void set_reading(struct session *c)
{
	bool want = !c->finish && !c->backlog && has_room(c);
	if (want == c->reading)
		return;
	c->reading = want;
	int st = want ? uv_read_start(&c->h.stream, on_alloc, on_read) : uv_read_stop(&c->h.stream);
	if (st < 0)
		session_close(c, uv_strerror(st));
}

/* End of a turn: frames that waited, then answers, then whether to read on. */
static void on_pump(struct loop_hook *h)
{
	struct session *c = CONTAINER_OF(h, struct session, pump);
	if (!c->finish)
		take_kept(c);
	if (!c->closing)
		flush(c);
	if (!c->closing)
		set_reading(c);
	/* Sending made room. */
	if (c->backlog && has_room(c))
		arm(c);
	if (!c->closing && (c->finish || c->s->draining) && is_quiet(c))
		session_close(c, c->finish ? "refused" : "the server is stopping");
}

/* Opening */

static int take_connection(struct session *c, uv_stream_t *listener, bool tcp)
{
	int st = tcp ? uv_tcp_init(&c->s->o.loop->uv, &c->h.tcp)
		     : uv_pipe_init(&c->s->o.loop->uv, &c->h.pipe, 0);
	ASSERT(st == 0);
	c->h.handle.data = c;
	st = uv_accept(listener, &c->h.stream);
	if (st < 0)
		return st;
	if (tcp) {
		uv_tcp_nodelay(&c->h.tcp, 1);
		uv_tcp_keepalive(&c->h.tcp, 1, 60);
	}
	return 0;
}

void session_accept(struct rpc_server *s, uv_stream_t *listener, bool tcp)
{
	struct session *c = base_calloc(1, sizeof *c);
	c->s = s;
	c->number = ++s->last_session;
	list_init(&c->node);
	list_init(&c->requests);
	buf_init(&c->in, SIZE_MAX);
	buf_init(&c->out, OUT_MAX);
	loop_timer_init(&c->read_timer, on_read_slow);
	loop_timer_init(&c->write_timer, on_write_slow);
	loop_hook_init(&c->pump, LOOP_PHASE_NET, on_pump);
	list_push_back(&s->sessions, &c->node);
	s->stats.sessions++;
	s->stats.accepted++;
	int st = take_connection(c, listener, tcp);
	if (st < 0) {
		session_close(c, uv_strerror(st));
		return;
	}
	loop_timer_set(s->o.loop, &c->read_timer,
		       loop_mono_us(s->o.loop) + s->o.hello_timeout_ms * 1000);
	set_reading(c);
}

void session_drain_all(struct rpc_server *s)
{
	LIST_FOR(it, tmp, &s->sessions)
	{
		struct session *c = LIST_ITEM(it, struct session, node);
		if (c->writing && !c->closing)
			set_write_timer(c);
		arm(c);
	}
}
