#include "daemon/app.h"

#include "daemon/drain.h"
#include "daemon/notify.h"
#include "proto/base/digest.h"

static void start_next(struct app *app);
static void stop_next(struct app *app);

void app_init(struct app *app, const struct conf *own_conf, const struct app_step *const *steps)
{
	*app = (struct app){.conf = own_conf, .steps = steps};
	uint8_t random[10];
	digest_random(random, sizeof random);
	app->id.u = uuid_v7(loop_wall_ms(), random);
	log_set_level(own_conf->log_level);
	loop_init(&app->loop, (int)own_conf->jobs_threads, (int)own_conf->jobs_cpu);
}

void app_fini(struct app *app)
{
	loop_fini(&app->loop);
	conf_unref(app->conf);
	app->conf = NULL;
}

static void on_signal(void *ctx, enum loop_signal signal)
{
	struct app *app = ctx;
	if (signal == LOOP_SIGNAL_RELOAD) {
		app_reload(app);
		return;
	}
	/* A second one means that somebody has no patience. */
	if (app->state == APP_DRAINING)
		drain_force(app, "second signal");
	LOG(LOG_INFO, "app.signal", NULL, "stopping");
	app_stop(app, 0);
}

static void fail_start(struct app *app, const struct err *err)
{
	LOG(LOG_ERROR, "app.failed", LOG_WITH(.st = err->st), "step %s: %s%s%s%s%s",
	    app->steps[app->started]->name, err->field, err->field[0] ? ": " : "", err->msg,
	    err->detail[0] ? ": " : "", err->detail);
	app_stop(app, 1);
}

/* Runs the steps until one is pending; ends when all have started. */
static void start_next(struct app *app)
{
	while (app->state == APP_STARTING && app->steps[app->started]) {
		struct err err = {0};
		bool pending = false;
		const struct app_step *step = app->steps[app->started];
		if (step->start(app, &pending, &err) != ST_OK) {
			fail_start(app, &err);
			return;
		}
		if (pending) {
			app->start_pending = true;
			return;
		}
		app->started++;
	}
	if (app->state != APP_STARTING)
		return;
	app->state = APP_RUNNING;
	char id[UUID_TEXT_LEN + 1];
	uuid_text(app->id.u, id);
	LOG(LOG_INFO, "app.ready", NULL, "version " APP_VERSION " instance %s", id);
	notify_tell(app);
}

void app_step_started(struct app *app, enum status st, const struct err *err)
{
	ASSERT(app->start_pending);
	app->start_pending = false;
	app->cancel_start = NULL;
	if (st != ST_OK) {
		/* The step left nothing behind; what started before it stops. */
		if (app->state == APP_STARTING)
			fail_start(app, err);
		else
			stop_next(app);
		return;
	}
	app->started++;
	if (app->state == APP_STARTING)
		start_next(app);
	else
		stop_next(app);
}

static void stop_next(struct app *app)
{
	while (app->started > 0) {
		const struct app_step *step = app->steps[app->started - 1];
		LOG(LOG_DEBUG, "app.stopping", NULL, "step %s", step->name);
		if (!step->stop(app))
			return;
		app->started--;
	}
	app->state = APP_STOPPED;
	drain_end(app);
	loop_stop(&app->loop);
}

void app_step_stopped(struct app *app)
{
	ASSERT(app->started > 0 && app->state == APP_DRAINING);
	app->started--;
	stop_next(app);
}

void app_stop(struct app *app, int exit_code)
{
	if (app->state == APP_DRAINING || app->state == APP_STOPPED)
		return;
	app->exit_code = exit_code;
	app->state = APP_DRAINING;
	drain_begin(app);
	if (!app->start_pending) {
		stop_next(app);
		return;
	}
	/* The completion of the pending start goes on from here. */
	void (*cancel)(struct app *) = app->cancel_start;
	app->cancel_start = NULL;
	if (cancel)
		cancel(app);
}

int app_run(struct app *app)
{
	loop_on_signal(&app->loop, on_signal, app);
	start_next(app);
	if (app->state != APP_STOPPED)
		loop_run(&app->loop);
	ASSERT(app->state == APP_STOPPED);
	LOG(LOG_INFO, "app.stopped", NULL, "exit %d", app->exit_code);
	return app->exit_code;
}

void app_reload(struct app *app)
{
	struct conf *fresh = NULL;
	struct err err = {0};
	struct buf changed;
	if (!app->load || app->state != APP_RUNNING)
		return;
	buf_init(&changed, 4096);
	enum status st = app->load(app->load_ctx, &fresh, &err);
	if (st == ST_OK)
		st = conf_keep_cold(fresh, app->conf, &changed, &err);
	if (st != ST_OK) {
		LOG_ERR(LOG_ERROR, "conf.refused", &err);
		conf_unref(fresh);
		buf_fini(&changed);
		return;
	}
	if (changed.n)
		LOG(LOG_WARN, "conf.kept", NULL, "needs a restart: %.*s",
		    STRV_ARG(buf_strv(&changed)));
	buf_fini(&changed);
	const struct conf *old = app->conf;
	app->conf = fresh;
	log_set_level(fresh->log_level);
	for (size_t i = 0; i < app->started; i++)
		if (app->steps[i]->reload)
			app->steps[i]->reload(app, old);
	conf_unref(old);
	LOG(LOG_INFO, "conf.reloaded", NULL, "%s", "");
}

void app_ready_add(struct app *app, app_ready_fn fn)
{
	ASSERT(app->n_ready < APP_READY_MAX);
	app->ready[app->n_ready++] = fn;
}

const char *app_not_ready(struct app *app)
{
	if (app->state != APP_RUNNING && app->state != APP_STARTING)
		return "draining";
	/* A step that waits for the world says for what. */
	for (size_t i = 0; i < app->n_ready; i++) {
		const char *why = app->ready[i](app);
		if (why)
			return why;
	}
	return app->state == APP_STARTING ? "starting" : NULL;
}
