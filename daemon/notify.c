#include "daemon/notify.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

struct notify {
	struct app *app;
	struct loop_timer timer;
	int64_t every_us;
	bool ready; /* was told */
	const char *said;
};

static void on_timer(struct loop_timer *t)
{
	struct notify *n = CONTAINER_OF(t, struct notify, timer);
	sd_notify(0, "WATCHDOG=1");
	loop_timer_set(&n->app->loop, t, loop_mono_us(&n->app->loop) + n->every_us);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	struct notify *n = base_calloc(1, sizeof *n);
	n->app = app;
	app->notify = n;
	loop_timer_init(&n->timer, on_timer);
	uint64_t usec = 0;
	if (sd_watchdog_enabled(0, &usec) > 0 && usec < INT64_MAX) {
		n->every_us = (int64_t)usec / 2;
		loop_timer_set(&app->loop, &n->timer, loop_mono_us(&app->loop) + n->every_us);
	}
	return ST_OK;
}

static bool stop(struct app *app)
{
	loop_timer_cancel(&app->loop, &app->notify->timer);
	base_free(app->notify);
	app->notify = NULL;
	return true;
}

void notify_tell(struct app *app)
{
	struct notify *n = app->notify;
	if (!n || (app->state != APP_STARTING && app->state != APP_RUNNING))
		return;
	const char *why = app_not_ready(app), *text = why ? why : "serving";
	bool waits = app->state == APP_STARTING && app->start_pending;
	if (!n->ready && (app->state == APP_RUNNING || waits)) {
		n->ready = true;
		sd_notifyf(0, "READY=1\nSTATUS=%s", text);
	} else if (text != n->said) {
		sd_notifyf(0, "STATUS=%s", text);
	}
	n->said = text;
}

static void reload(struct app *app, const struct conf *old)
{
	(void)old;
	const char *why = app_not_ready(app);
	sd_notifyf(0, "STATUS=%s, reloaded", why ? why : "serving");
	app->notify->said = NULL;
}

const struct app_step notify_step = {"notify", start, stop, reload};

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=draining");
}

int notify_listen_fd(const char *name)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(0, &names), found = -1;
	for (int i = 0; i < n; i++) {
		if (found < 0 && names && strv_eq(strv_of(names[i]), strv_of(name)))
			found = SD_LISTEN_FDS_START + i;
		base_free(names[i]);
	}
	base_free(names);
	return found;
}

enum status notify_listen(const struct conf *c, const char *name, int *ret_fd, struct err *err)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof sa, size = sizeof(int);
	int type = 0, listening = 0;
	int fd = notify_listen_fd(name);
	if (fd >= 0) {
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 ||
		    !listening || getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
			return err_set(err, ST_ILLEGAL_ARGUMENT, name,
				       "descriptor %d, handed over under this name, is not a "
				       "listening stream socket",
				       fd);
		enum status st = conf_check_address(c, &sa, name, err);
		if (st != ST_OK)
			return st;
	}
	*ret_fd = fd;
	return ST_OK;
}
