/* What systemd hears, and the sockets that it hands over. */
#include "daemon/notify.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct app app;
static int from_daemon;
static struct loop_timer end;

/* Messages received so far, each followed by '|'. */
static const char *heard(void)
{
	static char text[4096];
	char one[256];
	ssize_t n;
	text[0] = 0;
	while ((n = recv(from_daemon, one, sizeof one - 1, MSG_DONTWAIT)) > 0) {
		one[n] = 0;
		size_t at = strlen(text);
		snprintf(text + at, sizeof text - at, "%s|", one);
	}
	return text;
}

static int count(const char *text, const char *what)
{
	int n = 0;
	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

static void on_end(struct loop_timer *t)
{
	(void)t;
	app_stop(&app, 0);
}

static enum status end_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	ck_assert_str_eq(heard(), "");
	loop_timer_init(&end, on_end);
	loop_timer_set(&a->loop, &end, loop_mono_us(&a->loop) + 120000);
	notify_tell(a);
	ck_assert_str_eq(heard(), "STATUS=starting|");
	return ST_OK;
}
static bool end_stop(struct app *a)
{
	(void)a;
	return true;
}
static const struct app_step end_step = {"end", end_start, end_stop, NULL};

static void listen_to_daemon(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char text[128];
	/* An abstract address: nothing to clean up. */
	int n = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "frazil-notify-%d", getpid());
	from_daemon = socket(AF_UNIX, SOCK_DGRAM, 0);
	ck_assert_int_eq(bind(from_daemon, (struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
			 0);
	snprintf(text, sizeof text, "@%s", un.sun_path + 1);
	setenv("NOTIFY_SOCKET", text, 1);
	setenv("WATCHDOG_USEC", "40000", 1);
	unsetenv("WATCHDOG_PID");
	log_set_fd(-1);
}

START_TEST(messages)
{
	static const struct app_step *const steps[] = {&notify_step, &end_step, NULL};
	listen_to_daemon();
	app_init(&app, conf_new(), steps);
	ck_assert_int_eq(app_run(&app), 0);
	app_fini(&app);
	const char *all = heard();
	/* Ready only after all steps; the watchdog at half its interval: 6 times in 120 ms, fewer
	 * on a busy machine. */
	ck_assert_int_eq(strncmp(all, "READY=1\nSTATUS=serving|", 23), 0);
	ck_assert_int_ge(count(all, "|WATCHDOG=1|"), 2);
	ck_assert_int_le(count(all, "|WATCHDOG=1|"), 6);
	ck_assert_int_eq(count(all, "|STOPPING=1\n"), 1);
	ck_assert_ptr_null(strstr(strstr(all, "STOPPING"), "WATCHDOG"));
	close(from_daemon);
}
END_TEST

/* A step that waits for the world, as one that finds another daemon at work: its reason is told, then
 * that it serves. */
static const char *reason;

static const char *why_not(struct app *a)
{
	(void)a;
	return reason;
}

static void on_world(struct loop_timer *t)
{
	ck_assert_str_eq(heard(), "");
	if (!reason) {
		/* The start ends. */
		app_step_started(&app, ST_OK, NULL);
		ck_assert_str_eq(heard(), "STATUS=serving|");
		app_stop(&app, 0);
		return;
	}
	if (strcmp(reason, "starting") == 0) {
		reason = "standby";
		notify_tell(&app);
		ck_assert_str_eq(heard(), "READY=1\nSTATUS=standby|");
	} else {
		reason = "down";
		notify_tell(&app);
		notify_tell(&app);
		ck_assert_str_eq(heard(), "STATUS=down|");
		reason = NULL;
	}
	loop_timer_set(&app.loop, t, loop_mono_us(&app.loop) + 1000);
}

static enum status wait_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)err;
	reason = "starting";
	app_ready_add(a, why_not);
	*ret_pending = true;
	loop_timer_init(&end, on_world);
	loop_timer_set(&a->loop, &end, loop_mono_us(&a->loop) + 1000);
	return ST_OK;
}
static const struct app_step wait_step = {"wait", wait_start, end_stop, NULL};

START_TEST(waiting)
{
	static const struct app_step *const steps[] = {&notify_step, &wait_step, NULL};
	listen_to_daemon();
	unsetenv("WATCHDOG_USEC");
	app_init(&app, conf_new(), steps);
	ck_assert_int_eq(app_run(&app), 0);
	app_fini(&app);
	ck_assert_str_eq(heard(), "STOPPING=1\nSTATUS=draining|");
	close(from_daemon);
}
END_TEST

START_TEST(listen_fds)
{
	ck_assert_int_eq(notify_listen_fd("rest"), -1);
	/* The numbers are fixed at 3 and up, where this process has files of its own. */
	pid_t pid = fork();
	if (pid == 0) {
		char text[16];
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (dup2(fd, 3) != 3 || dup2(fd, 4) != 4)
			_exit(1);
		snprintf(text, sizeof text, "%d", getpid());
		setenv("LISTEN_PID", text, 1);
		setenv("LISTEN_FDS", "2", 1);
		setenv("LISTEN_FDNAMES", "admin:rest", 1);
		_exit(notify_listen_fd("rest") == 4 && notify_listen_fd("admin") == 3 &&
				      notify_listen_fd("rpc") == -1
			      ? 0
			      : 2);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("notify");
	TCase *t = tcase_create("notify");
	tcase_add_test(t, messages);
	tcase_add_test(t, waiting);
	tcase_add_test(t, listen_fds);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
