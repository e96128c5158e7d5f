#include "tests/it/pgtest.h"

/* ------------------------------------------------------------------ loop */

static void ticked(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

static void timer_closed(uv_handle_t *h)
{
	base_free(h);
}

bool pgtest_until(struct pgtest *t, const bool *flag, uint64_t ms)
{
	bool late = false;
	uv_timer_t *timer = base_calloc(1, sizeof *timer);
	uv_timer_init(t->loop, timer);
	timer->data = &late;
	uv_timer_start(timer, ticked, ms, 0);
	while (!*flag && !late) {
		if (t->fx)
			while (pgfx_flush(t->fx))
				;
		uv_run(t->loop, UV_RUN_ONCE);
	}
	uv_timer_stop(timer);
	uv_close((uv_handle_t *)timer, timer_closed);
	return *flag;
}

void pgtest_sleep(struct pgtest *t, uint64_t ms)
{
	bool never = false;
	pgtest_until(t, &never, ms);
}

bool pgtest_until_state(struct pgtest *t, enum pgpool_state want, uint64_t ms)
{
	uint64_t end = uv_hrtime() / 1000000 + ms;
	while (t->state != want) {
		uint64_t now = uv_hrtime() / 1000000;
		t->changed = false;
		if (now >= end || !pgtest_until(t, &t->changed, end - now))
			return t->state == want;
	}
	return true;
}

static void changed(void *ctx, enum pgpool_state st, const struct err *err)
{
	static const char *const names[] = {"down", "standby", "up", "fenced"};
	struct pgtest *t = ctx;
	t->state = st;
	t->changed = true;
	t->fenced += st == PGPOOL_FENCED;
	printf("state %s %s %s\n", names[st], err->msg, err->detail);
	fflush(stdout);
}

void pgtest_open(struct pgtest *t, const char *conninfo)
{
	t->conf.conninfo = t->conninfo = conninfo;
	t->conf.ctx = t;
	t->conf.changed = changed;
	t->pool = pgpool_new(t->loop, &t->conf);
	t->fx = pgfx_new(t->pool);
}

void pgtest_close(struct pgtest *t)
{
	pgpool_free(t->pool);
	pgfx_free(t->fx);
	t->pool = NULL;
	t->fx = NULL;
}

/* ------------------------------------------------------------------ effects */

static void copy_text(char *out, size_t cap, struct strv s)
{
	size_t n = s.n < cap - 1 ? s.n : cap - 1;
	if (n)
		memcpy(out, s.p, n);
	out[n] = 0;
}

static void ran_done(void *ctx, const struct sql_result *r)
{
	struct ran *ran = ctx;
	ran->r = *r;
	ran->times++;
	ran->done = true;
	const struct batch_row *b = r->batch ? r->batch : r->item.batch;
	ran->has_batch = b != NULL;
	if (b)
		ran->batch = *b;
	ran->fragments = r->item.n_fragments;
	for (size_t i = 0; i < r->n_items; i++)
		ran->fragments += r->items[i].n_fragments;
	for (size_t i = 0; r->gone && i < r->n_tables && i < ARRAY_SIZE(ran->tables); i++) {
		ran->tables[i] = r->tables[i];
		ran->gone[i] = r->gone[i];
	}
	copy_text(ran->path, sizeof ran->path, r->n_paths ? r->paths[0] : r->item.path);
	copy_text(ran->location, sizeof ran->location, r->head.metadata_location);
	copy_text(ran->name, sizeof ran->name, r->head.name);
}

void pgtest_start(struct pgtest *t, const struct sql_effect *e, struct ran *ran)
{
	memset(ran, 0, sizeof *ran);
	ran->t = t;
	pgfx_submit(t->fx, e, ran_done, ran);
}

void pgtest_run(struct pgtest *t, const struct sql_effect *e, struct ran *ran)
{
	pgtest_start(t, e, ran);
	EXPECT(pgtest_until(t, &ran->done, 10000));
	if (ran->r.err.st != ST_OK) {
		printf("note: effect %d: %s %s\n", (int)e->kind, ran->r.err.msg, ran->r.err.detail);
		fflush(stdout);
	}
}

/* ------------------------------------------------------------------ the administrator */

struct admin {
	struct pgtest *t;
	struct pgc_conf conf;
	struct pgc *c;
	struct pgc_op op;
	bool ready, done, ok;
	int64_t value;
	char text[33];
};

static enum status admin_check(void *ctx, const struct pgres *res, int pid, struct err *err)
{
	(void)ctx, (void)res, (void)pid, (void)err;
	return ST_OK;
}

static void admin_ready(void *ctx, struct pgc *c)
{
	(void)c;
	((struct admin *)ctx)->ready = true;
}

static void admin_down(void *ctx, struct pgc *c, const struct err *err)
{
	struct admin *a = ctx;
	(void)c, (void)err;
	a->c = NULL;
}

static void admin_done(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		       const struct err *err)
{
	struct admin *a = CONTAINER_OF(op, struct admin, op);
	struct pgrow r = {.res = res};
	a->done = true;
	a->ok = end == PGC_ROWS;
	if (!a->ok)
		printf("admin: %s %s\n", err->msg, err->detail);
	struct bytes b = pgrow_bytes(&r, 0);
	a->value = b.n == 8 ? (int64_t)get_u64be(b.p) : 0;
	copy_text(a->text, sizeof a->text, bytes_strv(b));
}

struct pgtest *admin_test(struct admin *a)
{
	return a->t;
}

struct admin *admin_open(struct pgtest *t)
{
	struct admin *a = base_calloc(1, sizeof *a);
	a->t = t;
	a->conf = (struct pgc_conf){
		.conninfo = t->conninfo,
		.application_name = "admin",
		.connect_timeout_us = 5000000,
		.hello_sql = "SELECT 1",
		.setup_sql = "SELECT 1",
		.check_hello = admin_check,
		.check_setup = admin_check,
		.ctx = a,
		.ready = admin_ready,
		.down = admin_down,
	};
	a->c = pgc_open(t->loop, &a->conf);
	EXPECT(pgtest_until(t, &a->ready, 5000));
	return a;
}

void admin_close(struct admin *a)
{
	if (a->c)
		pgc_close(a->c);
	base_free(a);
}

void admin_script(struct admin *a, const char *sql)
{
	a->done = false;
	a->op.done = admin_done;
	a->op.deadline_us = 0;
	EXPECT(a->c && pgc_script(a->c, sql, &a->op));
	EXPECT(pgtest_until(a->t, &a->done, 10000) && a->ok);
}

int64_t admin_i64(struct admin *a, const char *sql)
{
	a->done = false;
	a->op.done = admin_done;
	a->op.deadline_us = 0;
	EXPECT(a->c && pgc_query(a->c, sql, &a->op));
	EXPECT(pgtest_until(a->t, &a->done, 10000) && a->ok);
	return a->value;
}

#define ROWS(table) "(SELECT string_agg(x::text, E'\\n' ORDER BY x::text) FROM frazil." table " x)"

void admin_dump(struct admin *a, char out[33])
{
	(void)admin_i64(
		a,
		"SELECT md5(concat_ws('|', " ROWS("tabular") ", " ROWS("namespace") ", " ROWS(
			"hea"
			"d") ", " ROWS("horizon") ", " ROWS("txn") ", " ROWS("fragment") ", " ROWS("batch") ","
													    " " ROWS(
														    "object") "))");
	memcpy(out, a->text, 33);
}
