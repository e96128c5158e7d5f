/* sim --seed N [--trace] | --seeds A..B [--jobs N] [--mutant NAME]: runs each seed twice, in a
 * process of its own, and compares the hashes of the two runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/world.h"

#define CALM_US INT64_C(30000000)
#define LAST_US INT64_C(20000000)

#ifdef FRAZIL_MUTANT
static const char *mutant = "";

bool mutant_is(const char *name)
{
	return !strcmp(mutant, name);
}
#endif

/* All changes of rows are effects: set by who replays them elsewhere. */
static bool effects_only;

static int pick(struct world *w, int permille, int value)
{
	return world_chance(w, permille) ? 1 + world_below(w, value) : 0;
}

/* Each seed has some of the faults and its own sizes. */
static void draw(struct world *w)
{
	struct sim_conf *c = &w->conf;
	struct faults *f = &c->f;
	f->sql_unsent = pick(w, 400, 30);
	f->sql_error = pick(w, 300, 20);
	f->sql_lost_before = pick(w, 400, 30);
	f->sql_lost_after = pick(w, 500, 40);
	f->sql_late = pick(w, 400, 30);
	f->put_fail = pick(w, 300, 20);
	f->put_lost = pick(w, 300, 15);
	f->put_late = pick(w, 300, 15);
	f->get_fail = pick(w, 300, 30);
	f->stat_fail = pick(w, 300, 40);
	f->reply_lost = pick(w, 500, 60);
	f->crash = pick(w, 500, 5);
	f->give_up = pick(w, 400, 30);
	c->tables = 1 + world_below(w, 2);
	c->workers = 1 + world_below(w, 8);
	c->rest_clients = world_below(w, 3);
	c->partitioned = world_chance(w, 300);
	c->deletes = world_chance(w, 650);
	c->dropper = world_chance(w, 150);
	c->outside = world_chance(w, 150) && !effects_only;
	c->operator = w->seed % 6 == 5;
	c->steal = world_chance(w, 150) ? 100 : 5;
	c->zombies = world_chance(w, 300);
	/* Not drawn: the other seeds stay what they are. */
	c->v2 = w->seed % 7 == 6;
	c->several = w->seed % 4 == 3;
	c->comeback = w->seed % 9 == 8;
	c->expirer = w->seed % 9 == 0;
	c->dropper |= c->comeback;
	if (c->several) {
		c->tables = 2 + (int)(w->seed / 4 % 2);
		c->rest_clients += 2;
	}
	c->sql_us = 200 + world_below(w, 4000);
	c->io_us = 200 + world_below(w, 10000);
	c->run_us = 1500000 + world_below(w, 2500000);
	c->client_timeout_us = 100000 + world_below(w, 1500000);
	c->ttl_ms = 1000 + world_below(w, 5000);
	c->grace_ms = 100 + world_below(w, 1500);
	c->batch_max = world_chance(w, 200) ? 1 + (size_t)world_below(w, 3) : 256;
	c->window_us = world_chance(w, 500) ? world_below(w, 50000) : 0;
	c->cache_max = world_chance(w, 300) ? 1000 : (size_t)64 << 20;
}

static void calm(struct world *w, void *arg)
{
	(void)arg;
	world_trace(w, "faults end");
	w->calm = true;
}

static uint64_t run(uint64_t seed, bool tracing, bool print)
{
	struct world *w = base_calloc(1, sizeof *w);
	world_init(w, seed, tracing);
	draw(w);
	w->core_conf = (struct core_conf){.queue_max = 1000,
					  .batch_max_txns = w->conf.batch_max,
					  .txn_max = 1000,
					  .request_max_bytes = (size_t)16 << 20,
					  .cache_max_bytes = w->conf.cache_max,
					  .window_us = w->conf.window_us,
					  .fairness_us = w->conf.window_us * 4,
					  .ttl_default_ms = 5000,
					  .ttl_max_ms = 60000,
					  .lifetime_ms = 600000,
					  .retry_us = 20000,
					  .load_timeout_us = 2000000,
					  .cleaner_grace_ms = w->conf.grace_ms,
					  .cleaner_tombstone_ms = 2 * w->conf.grace_ms,
					  .cleaner_interval_us = 200000,
					  .verify_snapshots = 1};
	scans_init(w);
	oracle_init(w);
	pg_init(w);
	world_start_core(w);
	actors_start(w);
	world_at(w, w->conf.run_us, calm, NULL);
	world_run(w, w->conf.run_us + CALM_US);
	actors_check_done(w);
	w->last_daemon = w->core ? w->daemon : w->last_daemon;
	/* A last daemon finds whatever is left. */
	struct event drain = {.kind = EV_DRAIN};
	world_step(w, &drain);
	world_run(w, w->now + 5000000);
	if (w->core && !core_idle(w->core))
		world_fail(w, "the daemon does not come to rest");
	if (w->core)
		world_crash_core(w);
	world_start_core(w);
	world_run(w, w->now + LAST_US);
	oracle_end(w);
	if (print)
		printf("seed %" PRIu64 ": %" PRId64 " committed, %" PRId64 " rejected, %" PRId64
		       " ended, %" PRId64 " publishes, %" PRId64 " REST, %" PRId64
		       " crashes, %" PRId64 " effects, hash %016" PRIx64 "\n",
		       seed, w->stats.committed, w->stats.rejected, w->stats.aborted,
		       w->stats.publishes, w->stats.rest, w->stats.crashes, w->stats.effects,
		       w->mix);
	uint64_t mix = w->mix;
	world_fini(w);
	base_free(w);
	return mix;
}

static int one(uint64_t seed, bool tracing, bool print)
{
	uint64_t a = run(seed, tracing, print), b = tracing ? a : run(seed, false, false);
	if (a == b)
		return 0;
	fprintf(stderr, "seed %" PRIu64 ": two runs differ\n", seed);
	return 4;
}

/* Seeds in processes: a crash of one says which it was, and memory does not add up. */
static int many(uint64_t from, uint64_t to, int jobs, bool quiet)
{
	uint64_t next = from;
	int running = 0, failed = 0;
	struct {
		pid_t pid;
		uint64_t seed;
	} child[64] = {0};
	while (next <= to || running) {
		while (next <= to && running < jobs && (!failed || !quiet)) {
			int at = 0;
			while (child[at].pid)
				at++;
			fflush(NULL);
			pid_t pid = fork();
			if (pid == 0) {
				if (quiet)
					(void)!freopen("/dev/null", "w", stderr);
				_exit(one(next, false, false));
			}
			child[at].pid = pid;
			child[at].seed = next++;
			running++;
		}
		if (!running)
			break;
		int status;
		pid_t pid = wait(&status);
		running--;
		for (int i = 0; i < 64; i++)
			if (child[i].pid == pid) {
				child[i].pid = 0;
				if (status) {
					failed++;
					printf("seed %" PRIu64 " failed (%x)\n", child[i].seed, status);
				}
			}
	}
	return failed;
}

int main(int argc, char **argv)
{
	uint64_t from = 1, to = 0, seed = 0;
	int jobs = 2;
	bool tracing = false, quiet = false;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
			(void)!sscanf(argv[++i], "%" SCNu64 "..%" SCNu64, &from, &to);
		else if (!strcmp(argv[i], "--jobs") && i + 1 < argc)
			jobs = (int)strtol(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--trace"))
			tracing = true;
		else if (!strcmp(argv[i], "--first"))
			quiet = true;
#ifdef FRAZIL_MUTANT
		else if (!strcmp(argv[i], "--mutant") && i + 1 < argc)
			mutant = argv[++i];
#endif
		else {
			fprintf(stderr, "sim --seed N [--trace] | --seeds A..B [--jobs N]\n");
			return 2;
		}
	}
	if (jobs < 1 || jobs > 64)
		jobs = 1;
	if (seed)
		return one(seed, tracing, true);
	int failed = many(from, to, jobs, quiet);
	printf("%" PRIu64 " seeds, %d failed\n", to - from + 1, failed);
	return failed ? 1 : 0;
}
