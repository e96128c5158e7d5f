/* The one event loop: libuv with end-of-turn hooks, cheap timers, jobs on the thread pool and
 * signals. All functions are for the loop's own thread, except the body of a job. */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <uv.h>

#include "proto/base/err.h"
#include "proto/base/list.h"

/* Work that is gathered during a turn and done once at its end, in this order of phases: decide,
 * send SQL, send answers. A phase may arm hooks of any phase; the turn ends when none is armed. */
enum loop_phase { LOOP_PHASE_CORE, LOOP_PHASE_SQL, LOOP_PHASE_NET, LOOP_PHASE__COUNT };

struct loop_hook {
	struct list node;
	enum loop_phase phase;
	void (*run)(struct loop_hook *hook);
};

/* A deadline: no allocation, no close callback, may be freed as soon as it is not set. */
struct loop_timer {
	int64_t due_mono_us;
	size_t at; /* place in the heap + 1; 0 when not set */
	void (*fire)(struct loop_timer *timer);
};

struct loop_job {
	struct list node;
	struct loop *loop;
	uv_work_t work;
	bool cpu;
	void (*run)(struct loop_job *job);  /* on a pool thread: no log, conf, loop, globals */
	void (*done)(struct loop_job *job); /* on the loop; the job may be freed or started again */
};

enum loop_signal { LOOP_SIGNAL_STOP, LOOP_SIGNAL_RELOAD };

struct loop {
	uv_loop_t uv;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t idle;
	uv_timer_t timer;
	uv_signal_t signals[3];
	struct list hooks[LOOP_PHASE__COUNT];
	struct loop_timer **heap; /* binary heap by due time */
	size_t heap_n, heap_cap;
	struct list cpu_waiting;
	int cpu_running, cpu_max;
	int jobs; /* started and not done, waiting ones too */
	bool in_hooks, in_timers;
	int64_t timers_mono_us; /* the pass of timers that runs */
	void (*on_signal)(void *ctx, enum loop_signal signal);
	void *signal_ctx;
};

/* threads: size of the pool, effective only before the first job of the process; cpu_jobs:
 * computing jobs in flight, 0 for as many as there are cores. SIGPIPE is ignored from here on. */
void loop_init(struct loop *l, int threads, int cpu_jobs);
/* No job may be in flight and all handles of others must be closed. */
void loop_fini(struct loop *l);
/* Until loop_stop. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

/* Monotonic time of now, microseconds: for deadlines, never stored or sent. */
int64_t loop_mono_us(const struct loop *l);
/* Wall clock, milliseconds since 1970: for logs and ids only. */
int64_t loop_wall_ms(void);

void loop_hook_init(struct loop_hook *h, enum loop_phase phase, void (*run)(struct loop_hook *));
/* Runs h once at the end of this turn; arming it again before that does nothing. */
void loop_hook_arm(struct loop *l, struct loop_hook *h);
void loop_hook_disarm(struct loop_hook *h);

void loop_timer_init(struct loop_timer *t, void (*fire)(struct loop_timer *));
/* Sets or moves; a time that has passed fires in the next turn. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t due_mono_us);
static inline bool loop_timer_is_set(const struct loop_timer *t)
{
	return t->at != 0;
}
/* Harmless when not set. */
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/* Starts run on the pool and later done on the loop, exactly once. Computing jobs (cpu) wait in
 * order while as many as allowed are in flight; jobs of file I/O do not. */
void loop_job_start(struct loop *l, struct loop_job *job, bool cpu);

/* SIGTERM and SIGINT are STOP, SIGHUP is RELOAD. */
void loop_on_signal(struct loop *l, void (*fn)(void *ctx, enum loop_signal signal), void *ctx);

#endif
