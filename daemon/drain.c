#include "daemon/drain.h"

#include <unistd.h>

#include "daemon/app.h"
#include "daemon/notify.h"

#define EXIT_FORCED 3

struct drain {
	struct app *app;
	struct loop_timer timer;
	int64_t began_mono_us;
};

static void on_timeout(struct loop_timer *t)
{
	drain_force(CONTAINER_OF(t, struct drain, timer)->app, "drain.timeout-ms has passed");
}

void drain_begin(struct app *app)
{
	struct drain *d = base_calloc(1, sizeof *d);
	d->app = app;
	d->began_mono_us = loop_mono_us(&app->loop);
	app->drain = d;
	loop_timer_init(&d->timer, on_timeout);
	loop_timer_set(&app->loop, &d->timer,
		       d->began_mono_us + app->conf->drain_timeout_ms * 1000);
	notify_stopping();
}

void drain_end(struct app *app)
{
	struct drain *d = app->drain;
	LOG(LOG_INFO, "app.drained",
	    LOG_WITH(.dur_us = loop_mono_us(&app->loop) - d->began_mono_us), "%s", "");
	loop_timer_cancel(&app->loop, &d->timer);
	base_free(d);
	app->drain = NULL;
}

void drain_force(struct app *app, const char *why)
{
	size_t at = app->started ? app->started - 1 : 0;
	LOG(LOG_ERROR, "app.forced", NULL, "%s; step %s had not stopped", why,
	    app->steps[at] ? app->steps[at]->name : "none");
	_exit(EXIT_FORCED);
}
