/* Clock, random numbers, the event queue, and the driver of the core: effects out, completions in.
 */
#include "tests/sim/world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t world_random(struct world *w)
{
	return splitmix(&w->rng[0]);
}

int world_below(struct world *w, int n)
{
	return n <= 1 ? 0 : (int)(world_random(w) % (uint64_t)n);
}

bool world_chance(struct world *w, int permille)
{
	return permille > 0 && world_below(w, 1000) < permille;
}

bool world_fault(struct world *w, int permille)
{
	return !w->calm && world_chance(w, permille);
}

void world_bytes(struct world *w, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)world_random(w);
}

int64_t world_latency(struct world *w, int typical_us)
{
	int64_t t = typical_us / 2 + world_below(w, typical_us);
	if (world_chance(w, 20)) /* a long tail */
		t += (int64_t)typical_us * world_below(w, 30);
	return t + 1;
}

int64_t world_pg_ms(const struct world *w)
{
	return PG_EPOCH_MS + w->now / 1000;
}

/* ------------------------------------------------------------------ memory */

void *world_alloc(struct world *w, size_t n)
{
	void *p = arena_calloc(&w->mem, 1, n ? n : 1);
	ASSERT(p != NULL);
	return p;
}

struct strv world_strv(struct world *w, struct strv s)
{
	struct strv copy;
	if (!s.p)
		return s;
	ASSERT(arena_strv(&w->mem, s, &copy));
	return copy;
}

struct bytes world_join(struct world *w, const struct pieces *p)
{
	uint8_t *copy = arena_alloc(&w->mem, pieces_size(p));
	struct bytes all = {copy, 0};
	ASSERT(copy);
	for (size_t i = 0; i < p->n; i++) {
		memcpy(copy + all.n, p->v[i].p, p->v[i].n);
		all.n += p->v[i].n;
	}
	return all;
}

struct bytes world_copy(struct world *w, struct bytes b)
{
	struct bytes copy;
	if (!b.p)
		return b;
	ASSERT(arena_bytes(&w->mem, b, &copy));
	return copy;
}

void *world_grow(struct world *w, void *v, size_t *cap, size_t need, size_t size)
{
	ASSERT(arena_grow(&w->mem, &v, cap, need, size));
	return v;
}

struct strv world_printf(struct world *w, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return world_strv(w, strv_of(text));
}

/* ------------------------------------------------------------------ what happened */

void world_fail(struct world *w, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "seed %" PRIu64 ": at %" PRId64 ".%06" PRId64 " s: ", w->seed,
		w->now / 1000000, w->now % 1000000);
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	fflush(NULL);
	_Exit(3);
}

void world_trace(struct world *w, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	w->mix = (w->mix ^ bytes_hash((struct bytes){(uint8_t *)text, len}) ^ (uint64_t)w->now) *
		 0x9e3779b97f4a7c15u;
	w->mix ^= w->mix >> 29;
	if (w->tracing)
		printf("%10" PRId64 " %s\n", w->now, text);
}

/* ------------------------------------------------------------------ the queue */

static bool before(const struct timed *a, const struct timed *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void world_at(struct world *w, int64_t delay_us, world_fn fn, void *arg)
{
	if (w->n_heap == w->cap_heap) {
		w->cap_heap = w->cap_heap ? w->cap_heap * 2 : 256;
		w->heap = base_realloc_array(w->heap, w->cap_heap, sizeof *w->heap);
	}
	size_t i = w->n_heap++;
	struct timed t = {w->now + (delay_us > 0 ? delay_us : 0), w->seq++, fn, arg};
	while (i && before(&t, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = t;
}

static struct timed pop(struct world *w)
{
	struct timed top = w->heap[0], last = w->heap[--w->n_heap];
	size_t i = 0;
	for (;;) {
		size_t k = 2 * i + 1;
		if (k >= w->n_heap)
			break;
		if (k + 1 < w->n_heap && before(&w->heap[k + 1], &w->heap[k]))
			k++;
		if (!before(&w->heap[k], &last))
			break;
		w->heap[i] = w->heap[k];
		i = k;
	}
	w->heap[i] = last;
	return top;
}

void world_run(struct world *w, int64_t until)
{
	while (w->n_heap && w->heap[0].at <= until) {
		struct timed t = pop(w);
		w->now = t.at;
		if (++w->steps > 3000000)
			world_fail(w, "the run does not end: too many events");
		t.fn(w, t.arg);
	}
	w->now = until;
}

/* ------------------------------------------------------------------ the driver */

bool world_alive(const struct world *w, uint32_t gen)
{
	return (w->core && gen == w->gen) || (w->zombie && gen == w->zombie_gen);
}

static void step_of(struct world *w, uint32_t gen, struct event *ev);

static void tick(struct world *w, void *arg)
{
	uint32_t gen = (uint32_t)(uintptr_t)arg;
	if (!world_alive(w, gen))
		return;
	int64_t *at = gen == w->gen ? &w->tick_at : &w->zombie_tick_at;
	if (*at > w->now)
		return;
	*at = INT64_MAX;
	struct event ev = {.kind = EV_TICK};
	step_of(w, gen, &ev);
}

static void arm_tick(struct world *w, uint32_t gen)
{
	int64_t *tick_at = gen == w->gen ? &w->tick_at : &w->zombie_tick_at;
	int64_t at = core_next_deadline(gen == w->gen ? w->core : w->zombie);
	if (at >= *tick_at || at == INT64_MAX)
		return;
	*tick_at = at > w->now ? at : w->now + 1;
	world_at(w, *tick_at - w->now, tick, (void *)(uintptr_t)gen);
}

void world_complete(struct world *w, struct flight *fl, struct event *ev)
{
	if (fl->completed)
		return;
	fl->completed = true;
	if (!world_alive(w, fl->gen))
		return;
	ev->kind = EV_DONE;
	ev->u.done.token = fl->e.token;
	ev->u.done.kind = fl->e.kind;
	step_of(w, fl->gen, ev);
}

static void run_encode(struct world *w, void *arg)
{
	struct flight *fl = arg;
	if (!world_alive(w, fl->gen))
		return;
	encode_run(fl->e.u.encode.in, fl->e.u.encode.out);
	world_trace(w, "encoded %zu objects, st %d", fl->e.u.encode.out->n_objects,
		    (int)fl->e.u.encode.out->err.st);
	struct event ev = {.u.done.err = &fl->err};
	world_complete(w, fl, &ev);
}

static void deliver_reply(struct world *w, void *arg)
{
	struct flight *fl = arg;
	if (!world_alive(w, fl->gen))
		return;
	if (world_fault(w, w->conf.f.reply_lost)) {
		w->stats.lost++;
	} else {
		/* One that was replaced may still say what it believes, but nothing final that is
		 * false. */
		w->reply_since = fl->gen == w->gen ? fl->since : 0;
		actors_reply(w, &fl->e);
	}
	struct event ev = {0};
	world_complete(w, fl, &ev);
}

static void finish_plain(struct world *w, void *arg)
{
	struct event ev = {0};
	world_complete(w, arg, &ev);
}

static void dispatch(struct world *w, uint32_t gen, const struct effect *e)
{
	struct flight *fl = world_alloc(w, sizeof *fl);
	fl->w = w;
	fl->gen = gen;
	fl->since = w->now;
	fl->e = *e;
	fl->prev = w->flights.prev;
	fl->next = &w->flights;
	fl->prev->next = fl;
	w->flights.prev = fl;
	w->stats.effects++;
	switch (e->kind) {
	case FX_SQL:
		pg_submit(w, fl);
		return;
	case FX_READ:
	case FX_PUT:
	case FX_STAT:
	case FX_DELETE:
		store_submit(w, fl);
		return;
	case FX_ENCODE:
		world_at(w, world_latency(w, 300), run_encode, fl);
		return;
	case FX_REPLY:
		/* The network: replies overtake each other. */
		world_at(w, world_latency(w, 100), deliver_reply, fl);
		return;
	case FX_LOG:
		world_trace(w, "log %d %s st %d %.*s", e->u.log.level, e->u.log.event,
			    (int)e->u.log.st, STRV_ARG(e->u.log.msg));
		world_at(w, 0, finish_plain, fl);
		return;
	case FX_HEAD:
		world_at(w, 0, finish_plain, fl);
		return;
	case FX_KIND_COUNT:
		break;
	}
	ASSERT_NEVER("unknown effect");
}

static void restart(struct world *w, void *arg)
{
	(void)arg;
	if (!w->core)
		world_start_core(w);
}

/* The daemon stands still while another takes its place. */
static void stand_still(struct world *w)
{
	if (w->zombie)
		core_free(w->zombie);
	w->zombie = w->core;
	w->zombie_gen = w->gen;
	w->zombie_tick_at = w->tick_at;
	w->core = NULL;
	world_trace(w, "daemon %u is replaced and lives on", w->gen);
	world_start_core(w);
}

static void step_of(struct world *w, uint32_t gen, struct event *ev)
{
	if (!world_alive(w, gen))
		return;
	bool zombie = gen != w->gen;
	ev->mono_us = w->now;
	ev->pg_ms = world_pg_ms(w);
	/* Steps nest when a client's message answers a reply: each has its own effects. */
	struct effects fx;
	effects_init(&fx);
	core_step(zombie ? w->zombie : w->core, ev, &fx);
	/* A crash: what this step asked for was sent or not. */
	bool crash = !zombie && world_fault(w, w->conf.f.crash);
	bool still = crash && w->conf.zombies && world_chance(w, 500);
	bool sent = !crash || still || world_chance(w, 700);
	for (size_t i = 0; sent && i < fx.n; i++)
		dispatch(w, gen, &fx.v[i]);
	effects_fini(&fx);
	if (still) {
		stand_still(w);
	} else if (crash) {
		world_crash_core(w);
		world_at(w, 1000 + world_below(w, 300000), restart, NULL);
	} else {
		arm_tick(w, gen);
	}
}

void world_step(struct world *w, struct event *ev)
{
	if (w->core)
		step_of(w, w->gen, ev);
}

void world_start_core(struct world *w)
{
	w->gen++;
	uint8_t r[10];
	world_bytes(w, r, sizeof r);
	w->daemon.u = uuid_v7(world_pg_ms(w), r);
	w->core = core_new(world_random(w));
	w->core_conf.daemon = w->daemon;
	w->tick_at = INT64_MAX;
	world_trace(w, "start of daemon %u", w->gen);
	struct event ev = {.kind = EV_CONFIG, .u.conf = &w->core_conf};
	world_step(w, &ev);
	struct event start = {.kind = EV_START};
	world_step(w, &start);
}

void world_crash_core(struct world *w)
{
	world_trace(w, "crash of daemon %u", w->gen);
	w->stats.crashes++;
	for (struct flight *fl = w->flights.next; fl != &w->flights; fl = fl->next)
		if (!fl->completed && fl->gen == w->gen) {
			if (fl->e.kind == FX_SQL)
				pg_orphan(w, fl);
			else if (fl->e.kind == FX_PUT)
				store_orphan(w, fl);
			fl->completed = true;
		}
	core_free(w->core);
	w->core = NULL;
	w->flights.next = w->flights.prev = &w->flights;
}

void world_init(struct world *w, uint64_t seed, bool tracing)
{
	*w = (struct world){.seed = seed, .tracing = tracing};
	uint64_t s = seed * 2 + 1;
	w->rng[0] = splitmix(&s);
	arena_init(&w->mem, (size_t)4 << 30);
	effects_init(&w->fx);
	w->flights.next = w->flights.prev = &w->flights;
}

void world_fini(struct world *w)
{
	if (w->core)
		core_free(w->core);
	if (w->zombie)
		core_free(w->zombie);
	oracle_fini(w);
	scans_fini(w);
	store_fini(w);
	effects_fini(&w->fx);
	base_free(w->heap);
	arena_fini(&w->mem);
}
