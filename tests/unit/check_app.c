/* Start and stop of steps, reload, the limit of a drain. */
#include "daemon/app.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct app app;
static struct loop_timer step_timer, stop_timer;
static char seen[64];

static void note(char c)
{
	size_t n = strlen(seen);
	ck_assert_uint_lt(n + 1, sizeof seen);
	seen[n] = c;
}

/* A: starts and stops at once. */
static enum status a_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)a;
	(void)ret_pending;
	(void)err;
	note('A');
	return ST_OK;
}
static bool a_stop(struct app *a)
{
	(void)a;
	note('a');
	return true;
}
static void a_reload(struct app *a, const struct conf *old)
{
	ck_assert_int_eq(old->commit_window_ms, 0);
	ck_assert_int_eq(a->conf->commit_window_ms, 5);
	note('r');
}

/* B: both take a while. */
static void b_started(struct loop_timer *t)
{
	(void)t;
	note('!');
	app_step_started(&app, ST_OK, NULL);
}
static void b_stopped(struct loop_timer *t)
{
	(void)t;
	note('b');
	app_step_stopped(&app);
}
static enum status b_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)err;
	note('B');
	*ret_pending = true;
	loop_timer_init(&step_timer, b_started);
	loop_timer_set(&a->loop, &step_timer, 0);
	return ST_OK;
}
static bool b_stop(struct app *a)
{
	note('-');
	loop_timer_init(&step_timer, b_stopped);
	loop_timer_set(&a->loop, &step_timer, 0);
	return false;
}

/* C: fails. */
static enum status c_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)a;
	(void)ret_pending;
	note('C');
	return err_set(err, ST_IO, "c", "broken");
}

/* D: never ends its start by itself. */
static void d_cancel(struct app *a)
{
	struct err err = {0};
	note('x');
	err_set(&err, ST_UNAVAILABLE, "d", "cancelled");
	app_step_started(a, err.st, &err);
}
static void on_stop(struct loop_timer *t)
{
	(void)t;
	app_stop(&app, 0);
}
static enum status d_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)err;
	note('D');
	*ret_pending = true;
	a->cancel_start = d_cancel;
	loop_timer_init(&stop_timer, on_stop);
	loop_timer_set(&a->loop, &stop_timer, 0);
	return ST_OK;
}

/* E: runs, then stops the process; F: never stops. */
static enum status e_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	loop_timer_init(&stop_timer, on_stop);
	loop_timer_set(&a->loop, &stop_timer, 0);
	return ST_OK;
}
static bool f_stop(struct app *a)
{
	(void)a;
	return false;
}
static bool f_stop_and_term(struct app *a)
{
	(void)a;
	kill(getpid(), SIGTERM);
	return false;
}

static const struct app_step step_a = {"a", a_start, a_stop, a_reload};
static const struct app_step step_b = {"b", b_start, b_stop, NULL};
static const struct app_step step_c = {"c", c_start, NULL, NULL};
static const struct app_step step_d = {"d", d_start, NULL, NULL};
static const struct app_step step_e = {"e", e_start, a_stop, NULL};
static const struct app_step step_f = {"f", e_start, f_stop, NULL};
static const struct app_step step_term = {"f", e_start, f_stop_and_term, NULL};

static int run(const struct app_step *const *steps, const char *set)
{
	struct conf *c = conf_new();
	struct err err = {0};
	if (set)
		UNIT_OK(conf_apply_set(c, strv_of(set), &err), &err);
	log_set_fd(-1);
	app_init(&app, c, steps);
	int code = app_run(&app);
	app_fini(&app);
	return code;
}

START_TEST(in_order)
{
	static const struct app_step *const steps[] = {&step_a, &step_b, &step_e, NULL};
	ck_assert_int_eq(run(steps, NULL), 0);
	ck_assert_str_eq(seen, "AB!a-ba");
}
END_TEST

/* A later step fails: those before it stop in reverse, pending ones too. */
START_TEST(failing_step)
{
	static const struct app_step *const steps[] = {&step_a, &step_b, &step_c, NULL};
	ck_assert_int_eq(run(steps, NULL), 1);
	ck_assert_str_eq(seen, "AB!C-ba");
}
END_TEST

START_TEST(cancelled_start)
{
	static const struct app_step *const steps[] = {&step_a, &step_d, &step_c, NULL};
	ck_assert_int_eq(run(steps, NULL), 0);
	ck_assert_str_eq(seen, "ADxa");
}
END_TEST

/* Exit code of the run in a process of its own. */
static int forked(const struct app_step *const *steps, const char *set)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(run(steps, set));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

START_TEST(limits)
{
	static const struct app_step *const stuck[] = {&step_f, NULL};
	static const struct app_step *const term[] = {&step_term, NULL};
	ck_assert_int_eq(forked(stuck, "drain.timeout-ms=20"), 3);
	/* One signal more while draining. */
	ck_assert_int_eq(forked(term, "drain.timeout-ms=600000"), 3);
}
END_TEST

/* Reload: a refused file changes nothing; a good one is taken but for what needs a restart. */
static int loads;
static enum status load(void *ctx, struct conf **ret_conf, struct err *err)
{
	ck_assert_ptr_eq(ctx, &loads);
	if (loads++ == 0)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "x", "typo");
	struct conf *c = conf_new();
	UNIT_OK(conf_apply_set(c, STRV("commit.window-ms=5"), err), err);
	UNIT_OK(conf_apply_set(c, STRV("pg.connections=9"), err), err);
	*ret_conf = c;
	return ST_OK;
}
static void on_reload_check(struct loop_timer *t)
{
	(void)t;
	const struct conf *before = app.conf;
	app_reload(&app);
	ck_assert_ptr_eq(app.conf, before);
	app_reload(&app);
	ck_assert_ptr_ne(app.conf, before);
	ck_assert_int_eq(app.conf->pg_connections, 4);
	ck_assert_str_eq(seen, "Ar");
	app_stop(&app, 0);
}
static enum status g_start(struct app *a, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	loop_timer_init(&stop_timer, on_reload_check);
	loop_timer_set(&a->loop, &stop_timer, 0);
	a->load = load;
	a->load_ctx = &loads;
	return ST_OK;
}
static const struct app_step step_g = {"g", g_start, a_stop, NULL};

START_TEST(reload)
{
	static const struct app_step *const steps[] = {&step_a, &step_g, NULL};
	ck_assert_int_eq(run(steps, NULL), 0);
	ck_assert_int_eq(loads, 2);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("app");
	TCase *t = tcase_create("app");
	tcase_add_test(t, in_order);
	tcase_add_test(t, failing_step);
	tcase_add_test(t, cancelled_start);
	tcase_add_test(t, limits);
	tcase_add_test(t, reload);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
