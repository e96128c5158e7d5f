#include "store/pg/pgctl.h"

#include "store/pg/pgmig.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000
#define STANDBY_MS 1000
#define BEAT_MS 1000
#define BEAT_DEADLINE_US (5 * 1000000ll)

/* The lock's number is the text "frazild" read as bytes; the database is part of a lock's key. */
#define LOCK_SQL "SELECT pg_try_advisory_lock(x'6672617a696c64'::int8)"

struct pgctl {
	uv_loop_t *loop;
	struct pgctl_conf conf;
	struct pgc_conf pgc;
	struct pgc *c;
	uv_timer_t timer; /* reconnect, ask again or beat */
	uint64_t retry_ms;
	bool held, standby, freed;
	struct pgc_op op;
	struct pgmig mig;
};

static void tell(struct pgctl *ctl, enum pgctl_event ev, const struct err *err)
{
	if (!ctl->freed)
		ctl->conf.event(ctl->conf.ctx, ev, err);
}

static int64_t soon(int64_t us)
{
	return (int64_t)(uv_hrtime() / 1000) + us;
}

static void connect_now(uv_timer_t *t)
{
	struct pgctl *ctl = t->data;
	ctl->c = pgc_open(ctl->loop, &ctl->pgc);
}

static void on_beat(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		    const struct err *err);

static void beat(uv_timer_t *t)
{
	struct pgctl *ctl = t->data;
	ctl->op.done = on_beat;
	ctl->op.deadline_us = soon(BEAT_DEADLINE_US);
	if (ctl->c && !pgc_query(ctl->c, "SELECT 1", &ctl->op))
		pgc_close(ctl->c);
}

static void on_beat(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		    const struct err *err)
{
	struct pgctl *ctl = CONTAINER_OF(op, struct pgctl, op);
	(void)res, (void)err;
	if (end == PGC_ROWS)
		uv_timer_start(&ctl->timer, beat, BEAT_MS, 0);
	else if (end == PGC_REJECTED)
		pgc_close(ctl->c);
}

static void on_migrated(struct pgmig *m, const struct err *err)
{
	struct pgctl *ctl = CONTAINER_OF(m, struct pgctl, mig);
	if (err->st != ST_OK) {
		if (!ctl->c) /* the connection's own end is told by on_down */
			return;
		tell(ctl, PGCTL_DOWN, err);
		pgc_close(ctl->c);
		return;
	}
	ctl->held = true;
	ctl->retry_ms = RETRY_MIN_MS;
	uv_timer_start(&ctl->timer, beat, BEAT_MS, 0);
	tell(ctl, PGCTL_HELD, err);
}

static void ask_lock(uv_timer_t *t);

static void on_lock(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		    const struct err *err)
{
	struct pgctl *ctl = CONTAINER_OF(op, struct pgctl, op);
	struct pgrow r = {.res = res};
	if (end == PGC_LOST)
		return;
	if (end == PGC_REJECTED) {
		tell(ctl, PGCTL_DOWN, err);
		pgc_close(ctl->c);
		return;
	}
	if (pgrow_bool(&r, 0)) {
		ctl->standby = false;
		pgmig_run(&ctl->mig, ctl->c, on_migrated);
		return;
	}
	if (!ctl->standby)
		tell(ctl, PGCTL_STANDBY, err);
	ctl->standby = true;
	uv_timer_start(&ctl->timer, ask_lock, STANDBY_MS, 0);
}

static void ask_lock(uv_timer_t *t)
{
	struct pgctl *ctl = t->data;
	ctl->op.done = on_lock;
	ctl->op.deadline_us = soon(BEAT_DEADLINE_US);
	if (!pgc_query(ctl->c, LOCK_SQL, &ctl->op))
		pgc_close(ctl->c);
}

static void on_ready(void *ctx, struct pgc *c)
{
	struct pgctl *ctl = ctx;
	ctl->c = c;
	if (ctl->conf.exclusive)
		ask_lock(&ctl->timer);
	else
		pgmig_run(&ctl->mig, c, on_migrated);
}

static void on_down(void *ctx, struct pgc *c, const struct err *err)
{
	struct pgctl *ctl = ctx;
	(void)c;
	ctl->c = NULL;
	ctl->standby = false;
	if (ctl->freed)
		return;
	uv_timer_start(&ctl->timer, connect_now, ctl->retry_ms, 0);
	ctl->retry_ms = ctl->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : ctl->retry_ms * 2;
	bool was = ctl->held;
	ctl->held = false;
	tell(ctl, was && ctl->conf.exclusive ? PGCTL_FENCED : PGCTL_DOWN, err);
}

static enum status check_hello(void *ctx, const struct pgres *res, int pid, struct err *err)
{
	struct pgctl *ctl = ctx;
	return pgcheck_on_hello(&ctl->conf.check, res, pid, err);
}

static enum status check_setup(void *ctx, const struct pgres *res, int pid, struct err *err)
{
	struct pgctl *ctl = ctx;
	return pgcheck_on_setup(&ctl->conf.check, res, pid, err);
}

struct pgctl *pgctl_new(uv_loop_t *loop, const struct pgctl_conf *conf)
{
	struct pgctl *ctl = base_calloc(1, sizeof *ctl);
	ctl->loop = loop;
	ctl->conf = *conf;
	pgcheck_init(&ctl->conf.check);
	ctl->pgc = (struct pgc_conf){
		.conninfo = conf->conninfo,
		.application_name = "frazild control",
		.connect_timeout_us = conf->connect_timeout_us,
		.tcp_user_timeout_ms = conf->tcp_user_timeout_ms,
		.hello_sql = pgcheck_hello,
		.setup_sql = ctl->conf.check.setup,
		.check_hello = check_hello,
		.check_setup = check_setup,
		.ctx = ctl,
		.ready = on_ready,
		.down = on_down,
	};
	ctl->retry_ms = RETRY_MIN_MS;
	uv_timer_init(loop, &ctl->timer);
	ctl->timer.data = ctl;
	connect_now(&ctl->timer);
	return ctl;
}

static void closed(uv_handle_t *h)
{
	base_free(h->data);
}

void pgctl_free(struct pgctl *own_ctl)
{
	own_ctl->freed = true;
	if (own_ctl->c)
		pgc_close(own_ctl->c);
	uv_close((uv_handle_t *)&own_ctl->timer, closed);
}

bool pgctl_unsafe(const struct pgctl *ctl)
{
	return ctl->conf.check.unsafe;
}
