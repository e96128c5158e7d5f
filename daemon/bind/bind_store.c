/* The step that opens PostgreSQL and the object store. It has started when this daemon may serve:
 * a standby waits here, alive but not ready. */
#include "daemon/bind/bind_store.h"

#include "conf/log.h"
#include "daemon/bind/crash.h"
#include "daemon/notify.h"
#include "store/obj/fs.h"

#define LOCK_TIMEOUT_MS 10000
#define TCP_USER_TIMEOUT_MS 15000

static const char *not_ready(struct app *app)
{
	const struct bind_store *s = app->store;
	if (!s || !s->pool || !s->heard)
		return "starting";
	switch (pgpool_state(s->pool)) {
	case PGPOOL_UP:
		return NULL;
	case PGPOOL_STANDBY:
		return "standby: another daemon serves this database";
	case PGPOOL_FENCED:
		return "fenced: the lock of this daemon was lost";
	case PGPOOL_DOWN:
		break;
	}
	return "PostgreSQL cannot be used";
}

bool bind_store_standby(const struct app *app)
{
	const struct bind_store *s = app->store;
	return s && s->standby;
}

static void flush(struct loop_hook *hook)
{
	struct bind_store *s = CONTAINER_OF(hook, struct bind_store, flush);
	if (s->cat && pgcat_flush(s->cat) && !loop_timer_is_set(&s->patience))
		loop_timer_set(&s->app->loop, &s->patience,
			       loop_mono_us(&s->app->loop) + PGCAT_PATIENCE_US);
	if (s->fx && pgfx_flush(s->fx))
		loop_hook_arm(&s->app->loop, &s->flush);
}

void bind_store_arm(struct bind_store *s)
{
	loop_hook_arm(&s->app->loop, &s->flush);
}

static void room(void *ctx)
{
	bind_store_arm(ctx);
}

static void out_of_patience(struct loop_timer *t)
{
	bind_store_arm(CONTAINER_OF(t, struct bind_store, patience));
}

static void changed(void *ctx, enum pgpool_state state, const struct err *err)
{
	struct bind_store *s = ctx;
	static const char *const names[] = {"down", "standby", "up", "fenced"};
	if (state == PGPOOL_UP)
		LOG(LOG_INFO, "pg.up", NULL, "serving");
	else
		LOG(LOG_WARN, "pg.changed", NULL, "%s: %s", names[state],
		    err && err->st != ST_OK ? err->msg : "");
	/* Waiting effects may be sendable now, or must be told. */
	bind_store_arm(s);
	/* Without a session to the server nobody can tell: what was known stays. */
	if (state != PGPOOL_DOWN)
		s->standby = state != PGPOOL_UP;
	s->heard = true;
	bind_reconfigure(s->app);
	if (state == PGPOOL_UP && !s->started) {
		s->started = true;
		app_step_started(s->app, ST_OK, NULL);
	} else {
		notify_tell(s->app);
	}
}

static enum status open_fs(struct bind_store *s, struct err *err)
{
	const struct conf *c = s->app->conf;
	struct strv roots[64], list = c->fs_roots;
	size_t n = 0;
	struct strv name, location;
	for (size_t i = 0; conf_warehouse(c, i, &name, &location); i++) {
		if (location.n == 0)
			return err_set(err, ST_ILLEGAL_ARGUMENT, "warehouse.location",
				       "no location is configured for warehouse %.*s",
				       STRV_ARG(name));
		enum status st = fs_make_root(location, err);
		if (st != ST_OK) {
			err_prefix(err, i ? "warehouse.extra" : "warehouse.location");
			return st;
		}
		if (n == ARRAY_SIZE(roots))
			return err_set(err, ST_LIMIT, "warehouse.extra", "too many warehouses");
		roots[n++] = location;
	}
	for (struct strv one; conf_list_next(&list, &one);) {
		if (n == ARRAY_SIZE(roots))
			return err_set(err, ST_LIMIT, "fs.roots", "too many roots");
		roots[n++] = one;
	}
	enum status st = fs_new(&s->app->loop.uv, roots, n, &s->fs, err);
	if (st == ST_OK)
		fs_put_delay(s->fs, (uint64_t)c->fs_put_delay_ms);
	return st;
}

/* Stopped while it waits for a database: it counts as started, so that stop() frees what is there
 * (the control session of a standby, timers). */
static void cancel(struct app *app)
{
	struct bind_store *s = app->store;
	s->started = true;
	app_step_started(app, ST_OK, NULL);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	struct bind_store *s = base_calloc(1, sizeof *s);
	s->app = app;
	loop_hook_init(&s->flush, LOOP_PHASE_SQL, flush);
	loop_timer_init(&s->patience, out_of_patience);
	const struct conf *c = app->conf;
	enum status st = pgc_conninfo_check(c->pg_conninfo.p, err);
	if (st == ST_OK)
		st = open_fs(s, err);
	if (st != ST_OK) {
		base_free(s);
		return st;
	}
	struct pgpool_conf pc = {
		.conninfo = c->pg_conninfo.p,
		.size = (int)c->pg_connections,
		.connect_timeout_ms = c->pg_connect_timeout_ms,
		.statement_timeout_ms = c->pg_statement_timeout_ms,
		.lock_timeout_ms = LOCK_TIMEOUT_MS,
		.tcp_user_timeout_ms = TCP_USER_TIMEOUT_MS,
		.allow_unsafe = c->pg_allow_unsafe,
		.exclusive = true,
		.ctx = s,
		.changed = changed,
	};
	app->store = s;
	app->cancel_start = cancel;
	app_ready_add(app, not_ready);
	*ret_pending = true;
	s->pool = pgpool_new(&app->loop.uv, &pc);
	s->fx = pgfx_new(s->pool);
	s->cat = pgcat_new(s->pool);
	pgcat_on_room(s->cat, room, s);
	crash_watch(s->cat);
	return ST_OK;
}

static void fs_closed(void *ctx)
{
	struct bind_store *s = ctx;
	struct app *app = s->app;
	app->store = NULL;
	base_free(s);
	app_step_stopped(app);
}

static bool stop(struct app *app)
{
	struct bind_store *s = app->store;
	struct fs *fs = s->fs;
	pgpool_free(s->pool);
	s->pool = NULL;
	pgfx_free(s->fx);
	s->fx = NULL;
	pgcat_free(s->cat);
	s->cat = NULL;
	loop_hook_disarm(&s->flush);
	loop_timer_cancel(&app->loop, &s->patience);
	s->fs = NULL;
	fs_free(fs, fs_closed, s);
	return false;
}

static void reload(struct app *app, const struct conf *old)
{
	struct bind_store *s = app->store;
	(void)old;
	fs_put_delay(s->fs, (uint64_t)app->conf->fs_put_delay_ms);
}

const struct app_step bind_store_step = {"store", start, stop, reload};

struct obj_store *bind_obj(const struct app *app)
{
	return fs_store(((struct bind_store *)app->store)->fs);
}

struct fs *bind_fs(const struct app *app)
{
	return ((struct bind_store *)app->store)->fs;
}

struct pgpool *bind_pool(const struct app *app)
{
	return ((struct bind_store *)app->store)->pool;
}

struct pgcat *bind_cat(const struct app *app)
{
	struct bind_store *s = app->store;
	bind_store_arm(s);
	return s->cat;
}
