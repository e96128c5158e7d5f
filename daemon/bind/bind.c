#include "daemon/bind/bind.h"

#include "conf/log.h"
#include "daemon/bind/bind_admin.h"
#include "daemon/bind/bind_store.h"
#include "daemon/bind/crash.h"
#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/decode.h"
#include "daemon/commit/encode.h"
#include "daemon/commit/objects.h"
#include "proto/iceberg/metadata.h"
#include "store/obj/obj.h"

/* Decoding more than this is a job (a few hundred microseconds on the loop otherwise). */
#define INLINE_BYTES ((size_t)64 << 10)
#define OBJECT_MAX_BYTES ((size_t)512 << 20)
#define RETRY_US INT64_C(100000)
#define LOAD_TIMEOUT_US INT64_C(30000000)
#define REQUEST_BYTES ((size_t)256 << 20)

struct pending_request {
	struct list node;
	req_id id;
	bind_done done;
	void *ctx;
};

struct bind {
	struct app *app;
	struct bind_store *store;
	struct core *core;
	struct effects fx;
	/* Events that arrive while the core is stepping, or that effects make at once. */
	struct event *queue;
	size_t n_queue, cap_queue, head_queue;
	bool stepping;
	struct list requests[1024];
	req_id last_req;
	struct loop_timer timer;
	struct loop_hook turn;
	int64_t pg_ms, pg_at_us; /* newest clock of a reply, and when it came */
	void (*on_head)(void *ctx, struct table_id table, struct strv location,
			struct metadata *m);
	void *head_ctx;
	size_t in_flight; /* effects that the world has not answered */
	bool stopping;
	bool reconf; /* the store's state changed */
};

/* One effect under way. */
struct work {
	struct bind *b;
	struct fx_token token;
	enum fx_kind kind;
	struct obj_op op;
	struct loop_job job;
	struct effect fx; /* copy */
	struct bytes data;
	uint8_t *own_data;
	struct read_result read;
	struct stat_result stat;
	struct err err;
};

struct bind *bind_of(const struct app *app)
{
	return app->core;
}

struct core *bind_core(struct bind *b)
{
	return b->core;
}

int64_t bind_pg_ms(const struct bind *b)
{
	if (b->pg_ms == 0)
		return 0;
	return b->pg_ms + (loop_mono_us(&b->app->loop) - b->pg_at_us) / 1000;
}

/* ------------------------------------------------------------------ stepping */

static void execute(struct bind *b, const struct effect *e);

static void push(struct bind *b, const struct event *ev)
{
	if (b->n_queue == b->cap_queue) {
		b->cap_queue = b->cap_queue ? b->cap_queue * 2 : 64;
		b->queue = base_realloc_array(b->queue, b->cap_queue, sizeof *b->queue);
	}
	b->queue[b->n_queue++] = *ev;
}

static void step_one(struct bind *b, const struct event *ev)
{
	struct event now = *ev;
	now.mono_us = loop_mono_us(&b->app->loop);
	now.pg_ms = bind_pg_ms(b);
	core_step(b->core, &now, &b->fx);
	for (size_t i = 0; i < b->fx.n; i++)
		execute(b, &b->fx.v[i]);
	b->fx.n = 0;
}

static void set_timer(struct bind *b)
{
	int64_t at = core_next_deadline(b->core);
	if (at == INT64_MAX)
		loop_timer_cancel(&b->app->loop, &b->timer);
	else
		loop_timer_set(&b->app->loop, &b->timer, at);
}

/* Completions that the core gets inside a callback point at memory that ends with it: the event is
 * stepped at once, and whatever it makes in turn after it. */
static void step(struct bind *b, const struct event *ev)
{
	if (b->stepping) {
		push(b, ev);
		return;
	}
	b->stepping = true;
	step_one(b, ev);
	while (b->head_queue < b->n_queue) {
		struct event next = b->queue[b->head_queue++];
		step_one(b, &next);
	}
	b->head_queue = b->n_queue = 0;
	b->stepping = false;
	set_timer(b);
	if (b->stopping && core_idle(b->core))
		loop_hook_arm(&b->app->loop, &b->turn);
}

static void tick(struct loop_timer *timer)
{
	struct bind *b = CONTAINER_OF(timer, struct bind, timer);
	step(b, &(struct event){.kind = EV_TICK});
}

/* ------------------------------------------------------------------ completions */

static void done_plain(struct bind *b, const struct effect *e)
{
	static const struct err ok;
	struct event ev = {.kind = EV_DONE};
	ev.u.done.token = e->token;
	ev.u.done.kind = e->kind;
	ev.u.done.err = &ok;
	step(b, &ev);
}

static void work_free(struct work *w)
{
	w->b->in_flight--;
	base_free(w->own_data);
	base_free(w);
}

static void work_done(struct work *w)
{
	struct event ev = {.kind = EV_DONE};
	ev.u.done.token = w->token;
	ev.u.done.kind = w->kind;
	ev.u.done.err = &w->err;
	ev.u.done.read = &w->read;
	ev.u.done.stat = &w->stat;
	/* Not from inside a step: what the event points at lives until it has been taken. */
	ASSERT(!w->b->stepping);
	step(w->b, &ev);
	/* A stale token left the objects behind. */
	metadata_unref(w->read.own_metadata);
	mlist_unref(w->read.own_list);
	mview_unref(w->read.own_view);
	bitmap64_free(w->read.own_vector);
	adopt_free(w->read.own_adopted);
	work_free(w);
}

static struct work *work_new(struct bind *b, const struct effect *e)
{
	struct work *w = base_calloc(1, sizeof *w);
	w->b = b;
	w->token = e->token;
	w->kind = e->kind;
	w->fx = *e;
	b->in_flight++;
	return w;
}

/* A start that failed: the completion comes in the next turn, as every other. */
static void fail_run(struct loop_job *job)
{
	(void)job;
}

static void fail_done(struct loop_job *job)
{
	work_done(CONTAINER_OF(job, struct work, job));
}

static void work_fail(struct work *w, const struct err *err)
{
	w->err = *err;
	w->read.err = *err;
	w->stat.err = *err;
	w->job.run = fail_run;
	w->job.done = fail_done;
	loop_job_start(&w->b->app->loop, &w->job, false);
}

/* ------------------------------------------------------------------ SQL */

static void sql_done(void *ctx, const struct sql_result *res)
{
	struct work *w = ctx;
	struct bind *b = w->b;
	crash_point(&w->fx, true);
	if (res->pg_ms > 0) {
		b->pg_ms = res->pg_ms;
		b->pg_at_us = loop_mono_us(&b->app->loop);
	}
	struct event ev = {.kind = EV_DONE};
	ev.u.done.token = w->token;
	ev.u.done.kind = FX_SQL;
	ev.u.done.sql = res;
	ASSERT(!b->stepping);
	step(b, &ev);
	work_free(w);
}

static void run_sql(struct bind *b, const struct effect *e)
{
	struct work *w = work_new(b, e);
	pgfx_submit(b->store->fx, &w->fx.u.sql, sql_done, w);
	bind_store_arm(b->store);
}

/* ------------------------------------------------------------------ objects */

static void decode_body(struct loop_job *job)
{
	struct work *w = CONTAINER_OF(job, struct work, job);
	base_memory_reset();
	decode_run(&w->fx.u.read, w->data, &w->read);
	err_memory(&w->read.err);
}

static void decode_finished(struct loop_job *job)
{
	work_done(CONTAINER_OF(job, struct work, job));
}

static void got(struct op *op, enum status st, const struct err *err)
{
	struct work *w = op->ctx;
	if (st != ST_OK) {
		w->read.err = *err;
		work_done(w);
		return;
	}
	size_t n = 0;
	w->own_data = obj_take(&w->op, &n);
	w->data = (struct bytes){w->own_data, n};
	w->job.run = decode_body;
	w->job.done = decode_finished;
	if (n > INLINE_BYTES) {
		loop_job_start(&w->b->app->loop, &w->job, true);
	} else {
		decode_body(&w->job);
		work_done(w);
	}
}

static void run_read(struct bind *b, const struct effect *e)
{
	struct work *w = work_new(b, e);
	const struct read_effect *r = &w->fx.u.read;
	struct err err = {0};
	struct obj_range range = {(uint64_t)r->offset, (uint64_t)r->length};
	bool part = read_is_range(r);
	size_t most = r->as == READ_ADOPTED ? (size_t)r->length : OBJECT_MAX_BYTES;
	enum status st = ST_OK;
	op_init(&w->op.op, got, w);
	if (part && (r->offset < 0 || r->length <= 0))
		st = err_set(&err, ST_CORRUPT, "content_offset", "not a place inside a file");
	if (st == ST_OK)
		st = obj_get(bind_obj(b->app), r->path, part ? &range : NULL, most, &w->op, &err);
	if (st != ST_OK)
		work_fail(w, &err);
}

static void put_done(struct op *op, enum status st, const struct err *err)
{
	struct work *w = op->ctx;
	crash_point(&w->fx, true);
	if (st != ST_OK)
		w->err = *err;
	work_done(w);
}

static void stat_done(struct op *op, enum status st, const struct err *err)
{
	struct work *w = op->ctx;
	if (st != ST_OK)
		w->stat.err = *err;
	else
		w->stat.size = (int64_t)w->op.size;
	work_done(w);
}

static void run_object(struct bind *b, const struct effect *e)
{
	struct work *w = work_new(b, e);
	struct obj_store *s = bind_obj(b->app);
	struct err err = {0};
	enum status st;
	op_init(&w->op.op, e->kind == FX_STAT ? stat_done : put_done, w);
	if (e->kind == FX_PUT)
		st = obj_put_pieces(s, e->u.put.path, &w->fx.u.put.content, &w->op, &err);
	else if (e->kind == FX_STAT)
		st = obj_stat(s, e->u.path, &w->op, &err);
	else
		st = obj_delete(s, e->u.path, &w->op, &err);
	if (st != ST_OK)
		work_fail(w, &err);
}

/* ------------------------------------------------------------------ encoding */

static void encode_body(struct loop_job *job)
{
	struct work *w = CONTAINER_OF(job, struct work, job);
	base_memory_reset();
	encode_run(w->fx.u.encode.in, w->fx.u.encode.out);
	err_memory(&w->fx.u.encode.out->err);
}

static void run_encode(struct bind *b, const struct effect *e)
{
	struct work *w = work_new(b, e);
	w->job.run = encode_body;
	w->job.done = decode_finished;
	loop_job_start(&b->app->loop, &w->job, true);
}

/* ------------------------------------------------------------------ effects that end at once */

static void run_reply(struct bind *b, const struct effect *e)
{
	struct list *bucket = &b->requests[e->u.reply.req % ARRAY_SIZE(b->requests)];
	LIST_FOR (n, tmp, bucket) {
		struct pending_request *p = LIST_ITEM(n, struct pending_request, node);
		if (p->id != e->u.reply.req)
			continue;
		list_remove(n);
		p->done(p->ctx, &e->u.reply.reply);
		base_free(p);
		done_plain(b, e);
		return;
	}
	ASSERT_NEVER("every reply names a request");
}

static void run_log(struct bind *b, const struct effect *e)
{
	enum log_level level = e->u.log.level <= 3   ? LOG_ERROR
			       : e->u.log.level == 4 ? LOG_WARN
						     : LOG_INFO;
	char table[UUID_TEXT_LEN + 1], txn[UUID_TEXT_LEN + 1];
	uuid_text(e->u.log.table.u, table);
	uuid_text(e->u.log.txn.u, txn);
	LOG(level, e->u.log.event, NULL, "table=%s%s%s epoch=%lld st=%s %.*s", table,
	    uuid_is_nil(e->u.log.txn.u) ? "" : " txn=", uuid_is_nil(e->u.log.txn.u) ? "" : txn,
	    (long long)e->u.log.epoch, status_info(e->u.log.st)->name, STRV_ARG(e->u.log.msg));
	done_plain(b, e);
}

static void execute(struct bind *b, const struct effect *e)
{
	crash_point(e, false);
	switch (e->kind) {
	case FX_REPLY:
		run_reply(b, e);
		return;
	case FX_SQL:
		run_sql(b, e);
		return;
	case FX_READ:
		run_read(b, e);
		return;
	case FX_PUT:
	case FX_STAT:
	case FX_DELETE:
		run_object(b, e);
		return;
	case FX_ENCODE:
		run_encode(b, e);
		return;
	case FX_HEAD:
		if (b->on_head)
			b->on_head(b->head_ctx, e->u.head.table, e->u.head.location,
				   e->u.head.metadata);
		done_plain(b, e);
		return;
	case FX_LOG:
		run_log(b, e);
		return;
	case FX_KIND_COUNT:
		break;
	}
	ASSERT_NEVER("unknown effect");
}

/* ------------------------------------------------------------------ requests */

void bind_request(struct bind *b, const struct event *ev, bind_done done, void *ctx)
{
	struct pending_request *p = base_calloc(1, sizeof *p);
	struct event copy = *ev;
	p->id = ++b->last_req;
	p->done = done;
	p->ctx = ctx;
	list_init(&p->node);
	list_push_back(&b->requests[p->id % ARRAY_SIZE(b->requests)], &p->node);
	copy.u.req.req = p->id;
	/* done runs later: a reply that the core makes at once waits for the end of the turn. */
	push(b, &copy);
	loop_hook_arm(&b->app->loop, &b->turn);
}

void bind_on_head(struct bind *b,
		  void (*fn)(void *ctx, struct table_id table, struct strv location,
			     struct metadata *m),
		  void *ctx)
{
	b->on_head = fn;
	b->head_ctx = ctx;
}

/* ------------------------------------------------------------------ the step of the app */

static struct core_conf conf_of(const struct app *app)
{
	const struct conf *c = app->conf;
	return (struct core_conf){
		.daemon = app->id,
		.queue_max = (size_t)c->commit_queue_max,
		.batch_max_txns = (size_t)c->commit_batch_max_txns,
		.txn_max = (size_t)c->txn_max_open,
		.request_max_bytes = REQUEST_BYTES,
		.txn_max_bytes = (size_t)c->txn_max_bytes,
		.cache_max_bytes = (size_t)c->index_max_bytes,
		.window_us = c->commit_window_ms * 1000,
		.fairness_us = c->commit_fairness_ms * 1000,
		.ttl_default_ms = c->txn_ttl_default_ms,
		.ttl_max_ms = c->txn_ttl_max_ms,
		.lifetime_ms = c->txn_lifetime_ms,
		.retry_us = RETRY_US,
		.load_timeout_us = LOAD_TIMEOUT_US,
		.cleaner_grace_ms = c->cleaner_grace_ms,
		.cleaner_tombstone_ms = c->cleaner_tombstone_ms,
		.cleaner_interval_us = c->cleaner_interval_ms * 1000,
		.verify_snapshots = (int)c->rest_verify_snapshots,
		.standby = bind_store_standby(app),
	};
}

static void configure(struct bind *b)
{
	struct core_conf conf = conf_of(b->app);
	struct event ev = {.kind = EV_CONFIG};
	ev.u.conf = &conf;
	ASSERT(!b->stepping);
	step(b, &ev);
}

void bind_reconfigure(struct app *app)
{
	struct bind *b = app->core;
	if (!b)
		return;
	b->reconf = true;
	loop_hook_arm(&app->loop, &b->turn);
}

static void finish(struct bind *b)
{
	struct app *app = b->app;
	loop_timer_cancel(&app->loop, &b->timer);
	/* The step that led here may have armed it again. */
	loop_hook_disarm(&b->turn);
	core_free(b->core);
	effects_fini(&b->fx);
	base_free(b->queue);
	app->core = NULL;
	base_free(b);
	app_step_stopped(app);
}

static void turn(struct loop_hook *hook)
{
	struct bind *b = CONTAINER_OF(hook, struct bind, turn);
	if (b->reconf) {
		b->reconf = false;
		configure(b);
	}
	if (b->n_queue > b->head_queue) {
		struct event next = b->queue[b->head_queue++];
		step(b, &next);
	}
	if (b->stopping && core_idle(b->core) && b->in_flight == 0)
		finish(b);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)err;
	*ret_pending = false;
	struct bind *b = base_calloc(1, sizeof *b);
	b->app = app;
	b->store = app->store;
	for (size_t i = 0; i < ARRAY_SIZE(b->requests); i++)
		list_init(&b->requests[i]);
	loop_timer_init(&b->timer, tick);
	loop_hook_init(&b->turn, LOOP_PHASE_CORE, turn);
	effects_init(&b->fx);
	uint64_t seed;
	digest_random((uint8_t *)&seed, sizeof seed);
	b->core = core_new(seed);
	app->core = b;
	bind_admin_routes(app);
	configure(b);
	step(b, &(struct event){.kind = EV_START});
	return ST_OK;
}

static bool stop(struct app *app)
{
	struct bind *b = app->core;
	b->stopping = true;
	step(b, &(struct event){.kind = EV_DRAIN});
	loop_hook_arm(&app->loop, &b->turn);
	return false;
}

static void reload(struct app *app, const struct conf *old)
{
	(void)old;
	configure(app->core);
}

const struct app_step bind_core_step = {"core", start, stop, reload};
