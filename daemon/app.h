/* The running process: configuration in force, the loop, and the steps that start one after another
 * and stop in reverse. Each part of the daemon (listeners, store, core, worker sessions) is one
 * step and hangs its object on a slot below. */
#ifndef DAEMON_APP_H
#define DAEMON_APP_H

#include "conf/conf.h"
#include "daemon/loop.h"
#include "proto/base/uuid.h"

#define APP_VERSION "0.1.0"

struct app;

struct app_step {
	const char *name;
	/* ST_OK with *ret_pending true: goes on; app_step_started is called later, exactly once. On
	 * an error nothing of the step is left. */
	enum status (*start)(struct app *app, bool *ret_pending, struct err *err);
	/* true: stopped. false: goes on; app_step_stopped is called later, exactly once. Running
	 * work is finished first (drain); the process ends after drain.timeout-ms whatever happens.
	 */
	bool (*stop)(struct app *app);
	/* After a reload; app->conf is the new one. May be NULL. */
	void (*reload)(struct app *app, const struct conf *old);
};

enum app_state { APP_STARTING, APP_RUNNING, APP_DRAINING, APP_STOPPED };

/* Says why the daemon is not ready: a static text, or NULL when it is. */
typedef const char *(*app_ready_fn)(struct app *app);
#define APP_READY_MAX 8

struct app {
	struct loop loop;
	const struct conf *conf;
	struct daemon_id id; /* of this run, version 7 */
	enum app_state state;
	int exit_code;

	const struct app_step *const *steps; /* NULL at the end */
	size_t started;                      /* steps that run; the one being started not counted */
	bool start_pending;
	/* Called once when the process shall stop while this start is pending: it then ends soon,
	 * either way. Cleared when it ends. */
	void (*cancel_start)(struct app *app);
	app_ready_fn ready[APP_READY_MAX];
	size_t n_ready;

	/* Builds a fresh configuration from the same sources, for reload. */
	enum status (*load)(void *ctx, struct conf **ret_conf, struct err *err);
	void *load_ctx;

	/* Slots; each is set and freed by its step only. */
	struct drain *drain;
	struct notify *notify;
	struct front *rest_front, *admin_front;
	struct route_table *routes; /* handlers, set at start by their steps */
	struct auth *auth;	    /* clients of the REST port; NULL: none are configured */
	void *store;                /* rows and objects */
	void *core;                 /* commit core and its driver */
	void *rpc;                  /* worker sessions */
	void *rest;                 /* state of the catalog's handlers */
	void *check;                /* an operator's check of a table */
	void *unplaced;             /* tables whose folders are being read */
};

/* own_conf becomes the app's. The loop is initialised, nothing started. */
void app_init(struct app *app, const struct conf *own_conf, const struct app_step *const *steps);
void app_fini(struct app *app);
/* Starts the steps, runs until they have stopped; the exit code of the process. */
int app_run(struct app *app);
/* Completion of a pending start; st other than OK ends the process (err names the cause). */
void app_step_started(struct app *app, enum status st, const struct err *err);
void app_step_stopped(struct app *app);
/* Begins to stop; harmless when already stopping. exit_code counts when it is the first. */
void app_stop(struct app *app, int exit_code);
void app_reload(struct app *app);

void app_ready_add(struct app *app, app_ready_fn fn);
/* NULL when ready, else a static text. */
const char *app_not_ready(struct app *app);

#endif
