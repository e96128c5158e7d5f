/* libuv's turn is: timers, idle, prepare, poll, check, close callbacks. Hooks run in prepare (for
 * what timers and close callbacks armed) and in check (for what poll armed). If some are still
 * armed when prepare ends, an idle handle keeps poll from blocking. */
#include "daemon/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Rounds over all phases in one turn, so that hooks that arm each other cannot starve I/O. */
#define HOOK_ROUNDS 16

static void run_hooks(struct loop *l)
{
	ASSERT(!l->in_hooks);
	l->in_hooks = true;
	bool again = true;
	for (int round = 0; again && round < HOOK_ROUNDS; round++) {
		again = false;
		for (int phase = 0; phase < LOOP_PHASE__COUNT; phase++) {
			/* Only those armed before the phase began: a hook that arms itself runs in
			 * the next round. */
			struct list now;
			list_init(&now);
			struct list *node;
			while ((node = list_pop_front(&l->hooks[phase])))
				list_push_back(&now, node);
			while ((node = list_pop_front(&now))) {
				struct loop_hook *h = LIST_ITEM(node, struct loop_hook, node);
				h->run(h);
			}
		}
		for (int phase = 0; phase < LOOP_PHASE__COUNT; phase++)
			again = again || !list_empty(&l->hooks[phase]);
	}
	l->in_hooks = false;
}

static void on_idle(uv_idle_t *handle)
{
	(void)handle;
}

static void on_prepare(uv_prepare_t *handle)
{
	struct loop *l = handle->data;
	run_hooks(l);
	bool armed = false;
	for (int phase = 0; phase < LOOP_PHASE__COUNT; phase++)
		armed = armed || !list_empty(&l->hooks[phase]);
	if (armed)
		uv_idle_start(&l->idle, on_idle);
	else
		uv_idle_stop(&l->idle);
}

static void on_check(uv_check_t *handle)
{
	struct loop *l = handle->data;
	run_hooks(l);
}

void loop_hook_init(struct loop_hook *h, enum loop_phase phase, void (*run)(struct loop_hook *))
{
	list_init(&h->node);
	h->phase = phase;
	h->run = run;
}

void loop_hook_arm(struct loop *l, struct loop_hook *h)
{
	if (list_empty(&h->node))
		list_push_back(&l->hooks[h->phase], &h->node);
}

void loop_hook_disarm(struct loop_hook *h)
{
	list_remove(&h->node);
}

/* Timers: one uv_timer for the earliest of an intrusive heap. */

static void heap_place(struct loop *l, size_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->at = i + 1;
}

static void heap_up(struct loop *l, size_t i)
{
	struct loop_timer *t = l->heap[i];
	while (i > 0 && l->heap[(i - 1) / 2]->due_mono_us > t->due_mono_us) {
		heap_place(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_place(l, i, t);
}

static void heap_down(struct loop *l, size_t i)
{
	struct loop_timer *t = l->heap[i];
	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= l->heap_n)
			break;
		if (child + 1 < l->heap_n &&
		    l->heap[child + 1]->due_mono_us < l->heap[child]->due_mono_us)
			child++;
		if (l->heap[child]->due_mono_us >= t->due_mono_us)
			break;
		heap_place(l, i, l->heap[child]);
		i = child;
	}
	heap_place(l, i, t);
}

static void on_timer(uv_timer_t *handle);

/* Milliseconds are what libuv offers: round up, so that a timer never fires early. */
static void arm_timer(struct loop *l)
{
	if (l->in_timers)
		return;
	if (l->heap_n == 0) {
		uv_timer_stop(&l->timer);
		return;
	}
	int64_t wait_us = l->heap[0]->due_mono_us - loop_mono_us(l);
	/* At least 1: libuv would run a timer of 0 again in the same pass, and a timer that sets
	 * itself to now would never let the loop go on. */
	uint64_t ms = wait_us <= 0 ? 1 : ((uint64_t)wait_us + 999) / 1000;
	/* libuv counts from the start of the turn, which may be long ago. */
	uv_update_time(&l->uv);
	uv_timer_start(&l->timer, on_timer, ms, 0);
}

static void on_timer(uv_timer_t *handle)
{
	struct loop *l = handle->data;
	int64_t now = loop_mono_us(l);
	l->in_timers = true;
	l->timers_mono_us = now;
	while (l->heap_n && l->heap[0]->due_mono_us <= now) {
		struct loop_timer *t = l->heap[0];
		loop_timer_cancel(l, t);
		t->fire(t);
	}
	l->in_timers = false;
	arm_timer(l);
}

void loop_timer_init(struct loop_timer *t, void (*fire)(struct loop_timer *))
{
	*t = (struct loop_timer){.fire = fire};
}

void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t due_mono_us)
{
	loop_timer_cancel(l, t);
	if (l->heap_n == l->heap_cap) {
		l->heap_cap = l->heap_cap ? 2 * l->heap_cap : 64;
		l->heap = base_realloc_array(l->heap, l->heap_cap, sizeof(struct loop_timer *));
	}
	/* Not in the pass that runs: others must have their turn. */
	if (l->in_timers && due_mono_us <= l->timers_mono_us)
		due_mono_us = l->timers_mono_us + 1;
	t->due_mono_us = due_mono_us;
	l->heap[l->heap_n++] = t;
	heap_up(l, l->heap_n - 1);
	if (t->at == 1)
		arm_timer(l);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	if (t->at == 0)
		return;
	size_t i = t->at - 1;
	ASSERT(i < l->heap_n && l->heap[i] == t);
	t->at = 0;
	struct loop_timer *last = l->heap[--l->heap_n];
	if (last == t)
		return;
	heap_place(l, i, last);
	heap_up(l, i);
	heap_down(l, last->at - 1);
	/* The uv_timer may now fire for nothing, which is cheaper than moving it each time. */
}

/* Jobs. */

static void job_run(uv_work_t *work)
{
	struct loop_job *job = work->data;
	job->run(job);
}

static void job_queue(struct loop_job *job);

static void job_done(uv_work_t *work, int status)
{
	struct loop_job *job = work->data;
	struct loop *l = job->loop;
	ASSERT(status == 0); /* nobody cancels */
	l->jobs--;
	if (job->cpu) {
		l->cpu_running--;
		struct list *next = list_pop_front(&l->cpu_waiting);
		if (next) {
			l->cpu_running++;
			job_queue(LIST_ITEM(next, struct loop_job, node));
		}
	}
	job->done(job);
}

static void job_queue(struct loop_job *job)
{
	job->work.data = job;
	int rc = uv_queue_work(&job->loop->uv, &job->work, job_run, job_done);
	ASSERT(rc == 0);
}

void loop_job_start(struct loop *l, struct loop_job *job, bool cpu)
{
	job->loop = l;
	job->cpu = cpu;
	list_init(&job->node);
	l->jobs++;
	if (cpu && l->cpu_running >= l->cpu_max) {
		list_push_back(&l->cpu_waiting, &job->node);
		return;
	}
	if (cpu)
		l->cpu_running++;
	job_queue(job);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct loop *l = handle->data;
	if (l->on_signal)
		l->on_signal(l->signal_ctx,
			     signum == SIGHUP ? LOOP_SIGNAL_RELOAD : LOOP_SIGNAL_STOP);
}

void loop_on_signal(struct loop *l, void (*fn)(void *ctx, enum loop_signal signal), void *ctx)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	l->on_signal = fn;
	l->signal_ctx = ctx;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int rc = uv_signal_start(&l->signals[i], on_signal, numbers[i]);
		ASSERT(rc == 0);
	}
}

static int cores(void)
{
	uv_cpu_info_t *info;
	int n = 1;
	if (uv_cpu_info(&info, &n) == 0)
		uv_free_cpu_info(info, n);
	return n > 0 ? n : 1;
}

void loop_init(struct loop *l, int threads, int cpu_jobs)
{
	*l = (struct loop){0};
	char size[16];
	snprintf(size, sizeof size, "%d", threads);
	setenv("UV_THREADPOOL_SIZE", size, 1);
	signal(SIGPIPE, SIG_IGN);
	l->cpu_max = cpu_jobs > 0 ? cpu_jobs : cores();
	int rc = uv_loop_init(&l->uv);
	ASSERT(rc == 0);
	list_init(&l->cpu_waiting);
	for (int i = 0; i < LOOP_PHASE__COUNT; i++)
		list_init(&l->hooks[i]);
	uv_prepare_init(&l->uv, &l->prepare);
	uv_check_init(&l->uv, &l->check);
	uv_idle_init(&l->uv, &l->idle);
	uv_timer_init(&l->uv, &l->timer);
	l->prepare.data = l->check.data = l->idle.data = l->timer.data = l;
	for (size_t i = 0; i < ARRAY_SIZE(l->signals); i++) {
		uv_signal_init(&l->uv, &l->signals[i]);
		l->signals[i].data = l;
	}
	uv_prepare_start(&l->prepare, on_prepare);
	uv_check_start(&l->check, on_check);
}

static void on_walk(uv_handle_t *handle, void *arg)
{
	const struct loop *l = arg;
	const char *p = (const char *)handle;
	/* Ours lie inside the struct; a foreign handle still open is a leak of its owner. */
	ASSERT(uv_is_closing(handle) || (p >= (const char *)l && p < (const char *)(l + 1)));
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

void loop_fini(struct loop *l)
{
	uv_prepare_stop(&l->prepare);
	uv_check_stop(&l->check);
	l->on_signal = NULL;
	/* Some jobs are nobody's any more: a large document is freed after its answer. */
	while (l->jobs > 0)
		uv_run(&l->uv, UV_RUN_ONCE);
	uv_walk(&l->uv, on_walk, l);
	/* A loop that was stopped before it ran holds that against the first run. */
	while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
		;
	int rc = uv_loop_close(&l->uv);
	ASSERT(rc == 0);
	base_free(l->heap);
	l->heap = NULL;
}

void loop_run(struct loop *l)
{
	uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

int64_t loop_mono_us(const struct loop *l)
{
	(void)l;
	return (int64_t)(uv_hrtime() / 1000);
}

int64_t loop_wall_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
