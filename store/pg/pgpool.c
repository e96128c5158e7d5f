#include "store/pg/pgpool.h"

#include "store/pg/pgctl.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000
/* Hashing a password takes thousands of rounds on our thread: not all at one moment. */
#define STAGGER_MS 10
#define DEADLINE_EXTRA_MS 2000

static const struct pgc_stmt statements[] = {
#define PGSQL(name, sql) {#name, sql},
#include "store/pg/sql.tbl"
#undef PGSQL
};

struct slot {
	struct pgpool *pool;
	struct pgc *c;
	struct pgc_conf conf;
	uv_timer_t timer;
	uint64_t retry_ms;
};

struct pgpool {
	uv_loop_t *loop;
	struct pgpool_conf conf;
	char *conninfo;
	struct pgcheck check;
	struct pgctl *ctl;
	struct slot *slots;
	int size, ready, open_timers;
	enum pgpool_state state;
	struct err why;
	bool held, freed;
};

static void change(struct pgpool *pool, enum pgpool_state state, const struct err *err)
{
	bool same =
		pool->state == state && (state != PGPOOL_DOWN || !strcmp(pool->why.msg, err->msg));
	pool->state = state;
	pool->why = *err;
	if (!same && !pool->freed)
		pool->conf.changed(pool->conf.ctx, state, err);
}

/* ------------------------------------------------------------------ slots */

static void slot_connect(uv_timer_t *t)
{
	struct slot *s = t->data;
	if (!s->c && s->pool->held)
		s->c = pgc_open(s->pool->loop, &s->conf);
}

static void slot_ready(void *ctx, struct pgc *c)
{
	struct slot *s = ctx;
	struct pgpool *pool = s->pool;
	s->c = c;
	s->retry_ms = RETRY_MIN_MS;
	pool->ready++;
	struct err none = {0};
	if (pool->held && pool->ready == pool->size)
		change(pool, PGPOOL_UP, &none);
}

static void slot_down(void *ctx, struct pgc *c, const struct err *err)
{
	struct slot *s = ctx;
	struct pgpool *pool = s->pool;
	s->c = NULL;
	pool->ready = 0;
	for (int i = 0; i < pool->size; i++)
		if (pool->slots[i].c && pool->slots[i].c != c && pgc_ready(pool->slots[i].c))
			pool->ready++;
	if (pool->freed)
		return;
	uv_timer_start(&s->timer, slot_connect, s->retry_ms, 0);
	s->retry_ms = s->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : s->retry_ms * 2;
	/* A part of the connections away is no change of state: what they would carry is answered
	 * as not sent. */
	if (pool->ready == 0 && pool->held)
		change(pool, PGPOOL_DOWN, err);
}

static enum status slot_hello(void *ctx, const struct pgres *res, int pid, struct err *err)
{
	struct slot *s = ctx;
	return pgcheck_on_hello(&s->pool->check, res, pid, err);
}

static enum status slot_setup(void *ctx, const struct pgres *res, int pid, struct err *err)
{
	struct slot *s = ctx;
	return pgcheck_on_setup(&s->pool->check, res, pid, err);
}

static void connect_all(struct pgpool *pool)
{
	for (int i = 0; i < pool->size; i++)
		if (!pool->slots[i].c)
			uv_timer_start(&pool->slots[i].timer, slot_connect,
				       (uint64_t)i * STAGGER_MS, 0);
}

/* ------------------------------------------------------------------ control */

static void on_control(void *ctx, enum pgctl_event ev, const struct err *err)
{
	struct pgpool *pool = ctx;
	switch (ev) {
	case PGCTL_DOWN:
		pool->held = false;
		change(pool, PGPOOL_DOWN, err);
		break;
	case PGCTL_STANDBY:
		change(pool, PGPOOL_STANDBY, err);
		break;
	case PGCTL_HELD:
		pool->held = true;
		connect_all(pool);
		if (pool->ready == pool->size)
			change(pool, PGPOOL_UP, err);
		break;
	case PGCTL_FENCED:
		/* The other connections live on: the epoch in every guard stops what must not
		 * happen, and answers that are on their way still count. */
		pool->held = false;
		change(pool, PGPOOL_FENCED, err);
		break;
	}
}

struct pgpool *pgpool_new(uv_loop_t *loop, const struct pgpool_conf *conf)
{
	struct pgpool *pool = base_calloc(1, sizeof *pool);
	ASSERT(conf->size >= 1 && conf->size <= 64);
	pool->loop = loop;
	pool->conf = *conf;
	size_t n = strlen(conf->conninfo);
	pool->conninfo = base_alloc(n + 1);
	memcpy(pool->conninfo, conf->conninfo, n + 1);
	pool->conf.conninfo = pool->conninfo;
	pool->size = conf->size;
	pool->check = (struct pgcheck){
		.allow_unsafe = conf->allow_unsafe,
		.allow_proxy = conf->allow_proxy,
		.statement_timeout_ms = conf->statement_timeout_ms,
		.lock_timeout_ms = conf->lock_timeout_ms,
	};
	pgcheck_init(&pool->check);
	pool->slots = base_calloc((size_t)pool->size, sizeof *pool->slots);
	for (int i = 0; i < pool->size; i++) {
		struct slot *s = &pool->slots[i];
		s->pool = pool;
		s->retry_ms = RETRY_MIN_MS;
		s->conf = (struct pgc_conf){
			.conninfo = pool->conninfo,
			.application_name = "frazild",
			.connect_timeout_us = conf->connect_timeout_ms * 1000,
			.tcp_user_timeout_ms = conf->tcp_user_timeout_ms,
			.hello_sql = pgcheck_hello,
			.setup_sql = pool->check.setup,
			.check_hello = slot_hello,
			.check_setup = slot_setup,
			.stmts = statements,
			.n_stmts = ARRAY_SIZE(statements),
			.pipeline = true,
			.ctx = s,
			.ready = slot_ready,
			.down = slot_down,
		};
		uv_timer_init(loop, &s->timer);
		s->timer.data = s;
		pool->open_timers++;
	}
	struct pgctl_conf ctl = {
		.conninfo = pool->conninfo,
		.connect_timeout_us = conf->connect_timeout_ms * 1000,
		.tcp_user_timeout_ms = conf->tcp_user_timeout_ms,
		.exclusive = conf->exclusive,
		.check = pool->check,
		.ctx = pool,
		.event = on_control,
	};
	pool->ctl = pgctl_new(loop, &ctl);
	return pool;
}

/* Connections and the control session hold views of conninfo and of the slots only until their
 * `down`, which has run by now. */
static void timer_closed(uv_handle_t *h)
{
	struct pgpool *pool = ((struct slot *)h->data)->pool;
	if (--pool->open_timers > 0)
		return;
	base_free(pool->slots);
	base_free(pool->conninfo);
	base_free(pool);
}

void pgpool_free(struct pgpool *own_pool)
{
	own_pool->freed = true;
	pgctl_free(own_pool->ctl);
	own_pool->ctl = NULL;
	for (int i = 0; i < own_pool->size; i++) {
		struct slot *s = &own_pool->slots[i];
		if (s->c)
			pgc_close(s->c);
		uv_close((uv_handle_t *)&s->timer, timer_closed);
	}
}

enum pgpool_state pgpool_state(const struct pgpool *pool)
{
	return pool->state;
}

bool pgpool_unsafe(const struct pgpool *pool)
{
	return pool->ctl && pgctl_unsafe(pool->ctl);
}

int pgpool_size(const struct pgpool *pool)
{
	return pool->size;
}

int pgpool_ready(const struct pgpool *pool)
{
	return pool->ready;
}

bool pgpool_send(struct pgpool *pool, uint64_t route, enum pgsql stmt, const struct pgargs *args,
		 struct pgc_op *op)
{
	struct slot *s = NULL;
	if (pool->freed)
		return false;
	if (route != PGPOOL_ANY) {
		s = &pool->slots[route % (uint64_t)pool->size];
	} else {
		for (int i = 0; i < pool->size; i++) {
			struct slot *t = &pool->slots[i];
			if (t->c && pgc_ready(t->c) &&
			    (!s || pgc_in_flight(t->c) < pgc_in_flight(s->c)))
				s = t;
		}
	}
	if (!s || !s->c || !pgc_ready(s->c))
		return false;
	if (!op->deadline_us)
		op->deadline_us = (int64_t)(uv_hrtime() / 1000) +
				  (pool->conf.statement_timeout_ms + DEADLINE_EXTRA_MS) * 1000;
	return pgc_send(s->c, (size_t)stmt, args, op);
}
