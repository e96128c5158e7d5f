#include "daemon/loop.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct loop loop;

static void setup(void)
{
	loop_init(&loop, 8, 2);
}

static void teardown(void)
{
	loop_fini(&loop);
}

/* Timers fire in order of their time, also when moved, and not when cancelled. */
static int fired[64], n_fired;
struct numbered {
	struct loop_timer t;
	int number;
};

static void on_fire(struct loop_timer *t)
{
	fired[n_fired++] = CONTAINER_OF(t, struct numbered, t)->number;
}

static void on_last(struct loop_timer *t)
{
	on_fire(t);
	loop_stop(&loop);
}

START_TEST(timers)
{
	static struct numbered many[40], last;
	int64_t now = loop_mono_us(&loop);
	for (int i = 0; i < 40; i++) {
		many[i].number = i;
		loop_timer_init(&many[i].t, on_fire);
		/* 17 is a generator modulo 41: a shuffled order without repeats. */
		loop_timer_set(&loop, &many[i].t, now + 500 * (1 + (i * 17) % 41));
	}
	last.number = 99;
	loop_timer_init(&last.t, on_last);
	loop_timer_set(&loop, &last.t, now + 1);
	loop_timer_set(&loop, &last.t, now + 40000);
	for (int i = 0; i < 40; i += 2)
		loop_timer_cancel(&loop, &many[i].t);
	loop_timer_cancel(&loop, &many[0].t);
	loop_run(&loop);
	ck_assert_int_ge(loop_mono_us(&loop), now + 40000);
	ck_assert_int_eq(n_fired, 21);
	for (int i = 0; i + 1 < 20; i++) {
		ck_assert_int_eq(fired[i] % 2, 1);
		ck_assert_int_lt((fired[i] * 17) % 41, (fired[i + 1] * 17) % 41);
	}
	ck_assert_int_eq(fired[20], 99);
	ck_assert(!loop_timer_is_set(&last.t));
}
END_TEST

/* A timer that sets itself to a time that has passed does not hold up the loop. */
static int greedy_runs;
static void on_greedy(struct loop_timer *t)
{
	greedy_runs++;
	loop_timer_set(&loop, t, 0);
}

START_TEST(greedy_timer)
{
	struct loop_timer greedy;
	struct numbered end = {.number = 1};
	loop_timer_init(&greedy, on_greedy);
	loop_timer_init(&end.t, on_last);
	loop_timer_set(&loop, &greedy, 0);
	loop_timer_set(&loop, &end.t, loop_mono_us(&loop) + 10000);
	loop_run(&loop);
	ck_assert_int_ge(greedy_runs, 2);
	loop_timer_cancel(&loop, &greedy);
}
END_TEST

/* A timer without I/O must still lead to its hooks in the same turn, in the order of phases; a hook
 * that arms itself for ever does not starve the timers. */
static char trace[64];
static struct loop_hook core, sql, net, endless;
static int endless_runs;

static void mark(char c)
{
	size_t n = strlen(trace);
	if (n + 1 < sizeof trace)
		trace[n] = c;
}
static void run_core(struct loop_hook *h)
{
	(void)h;
	mark('c');
	loop_hook_arm(&loop, &sql);
}
static void run_sql(struct loop_hook *h)
{
	(void)h;
	mark('s');
	if (strlen(trace) < 6)
		loop_hook_arm(&loop, &core);
}
static void run_net(struct loop_hook *h)
{
	(void)h;
	mark('n');
}
static void run_endless(struct loop_hook *h)
{
	endless_runs++;
	loop_hook_arm(&loop, h);
}
static void arm_all(struct loop_timer *t)
{
	(void)t;
	loop_hook_arm(&loop, &net);
	loop_hook_arm(&loop, &core);
	loop_hook_arm(&loop, &core);
}

START_TEST(hooks)
{
	struct loop_timer begin;
	struct numbered end = {.number = 1};
	loop_hook_init(&core, LOOP_PHASE_CORE, run_core);
	loop_hook_init(&sql, LOOP_PHASE_SQL, run_sql);
	loop_hook_init(&net, LOOP_PHASE_NET, run_net);
	loop_hook_init(&endless, LOOP_PHASE_NET, run_endless);
	loop_timer_init(&begin, arm_all);
	loop_timer_init(&end.t, on_last);
	loop_timer_set(&loop, &begin, loop_mono_us(&loop) + 1000);
	loop_timer_set(&loop, &end.t, loop_mono_us(&loop) + 20000);
	loop_hook_arm(&loop, &endless);
	loop_run(&loop);
	ck_assert_str_eq(trace, "csncscs");
	ck_assert_int_gt(endless_runs, 32);
	loop_hook_disarm(&endless);
}
END_TEST

/* Not more computing jobs at once than allowed; jobs of I/O pass them; each is done once. The
 * computing jobs wait for what is to be proved, so that no machine is too slow for it. */
#define IO_JOBS 4
static atomic_int computing, computing_most, io_done, waited_in_vain;
static int done_count;
struct counted {
	struct loop_job job;
	int done;
};

static void compute(struct loop_job *job)
{
	(void)job;
	int now = atomic_fetch_add(&computing, 1) + 1;
	int most = atomic_load(&computing_most);
	while (now > most && !atomic_compare_exchange_weak(&computing_most, &most, now))
		;
	uint64_t end = uv_hrtime() + 10000000000u;
	while (atomic_load(&io_done) < IO_JOBS || atomic_load(&computing_most) < 2) {
		if (uv_hrtime() > end) {
			atomic_store(&waited_in_vain, 1);
			break;
		}
		usleep(100);
	}
	atomic_fetch_sub(&computing, 1);
}
static void do_io(struct loop_job *job)
{
	(void)job;
	atomic_fetch_add(&io_done, 1);
}
static void job_over(struct loop_job *job)
{
	CONTAINER_OF(job, struct counted, job)->done++;
	if (++done_count == 24)
		loop_stop(&loop);
}

START_TEST(jobs)
{
	static struct counted many[24];
	for (int i = 0; i < 24; i++) {
		many[i].job.run = i < 24 - IO_JOBS ? compute : do_io;
		many[i].job.done = job_over;
		loop_job_start(&loop, &many[i].job, i < 24 - IO_JOBS);
	}
	ck_assert_int_eq(done_count, 0);
	loop_run(&loop);
	for (int i = 0; i < 24; i++)
		ck_assert_int_eq(many[i].done, 1);
	ck_assert_int_eq(computing_most, 2);
	ck_assert_int_eq(waited_in_vain, 0);
}
END_TEST

static int stops, reloads;
static void on_signals(void *ctx, enum loop_signal s)
{
	ck_assert_ptr_eq(ctx, &loop);
	if (s == LOOP_SIGNAL_RELOAD)
		reloads++;
	else if (++stops == 2)
		loop_stop(&loop);
	if (stops == 1)
		kill(getpid(), SIGINT);
}

START_TEST(signals)
{
	loop_on_signal(&loop, on_signals, &loop);
	kill(getpid(), SIGHUP);
	kill(getpid(), SIGTERM);
	loop_run(&loop);
	ck_assert_int_eq(reloads, 1);
	ck_assert_int_eq(stops, 2);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("loop");
	TCase *t = tcase_create("loop");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, timers);
	tcase_add_test(t, greedy_timer);
	tcase_add_test(t, hooks);
	tcase_add_test(t, jobs);
	tcase_add_test(t, signals);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
