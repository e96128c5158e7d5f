#include "daemon/commit/state.h"

#include "proto/iceberg/metadata.h"

#define SWEEP_US INT64_C(1000000)

/* ------------------------------------------------------------------ random numbers */

/* xoshiro256**, seeded through splitmix64: the simulator's runs must repeat exactly. */
static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t rotl(uint64_t v, int k)
{
	return v << k | v >> (64 - k);
}

uint64_t core_random(struct core *c)
{
	uint64_t *s = c->rng, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

void core_random_bytes(struct core *c, uint8_t *out, size_t n)
{
	while (n) {
		uint64_t v = core_random(c);
		size_t k = n < 8 ? n : 8;
		memcpy(out, &v, k);
		out += k;
		n -= k;
	}
}

struct uuid core_uuid7(struct core *c)
{
	uint8_t r[10];
	core_random_bytes(c, r, sizeof r);
	return uuid_v7(c->pg_ms, r);
}

struct uuid core_uuid4(struct core *c)
{
	uint8_t r[16];
	core_random_bytes(c, r, sizeof r);
	return uuid_v4(r);
}

/* ------------------------------------------------------------------ effects and tokens */

void effects_init(struct effects *fx)
{
	*fx = (struct effects){0};
}

void effects_fini(struct effects *fx)
{
	base_free(fx->v);
	*fx = (struct effects){0};
}

static uint32_t take_slot(struct core *c)
{
	if (c->free_slot == UINT32_MAX) {
		if (c->n_slots == c->cap_slots) {
			c->cap_slots = c->cap_slots ? c->cap_slots * 2 : 64;
			c->slots = base_realloc_array(c->slots, c->cap_slots, sizeof *c->slots);
		}
		ASSERT(c->n_slots < UINT32_MAX);
		c->slots[c->n_slots] = (struct slot){.gen = 1};
		return (uint32_t)c->n_slots++;
	}
	uint32_t at = c->free_slot;
	c->free_slot = c->slots[at].next_free;
	return at;
}

struct effect *core_emit(struct core *c, enum fx_kind kind, done_fn done, void *ctx)
{
	struct effects *fx = c->fx;
	ASSERT(fx != NULL);
	if (fx->n == fx->cap) {
		fx->cap = fx->cap ? fx->cap * 2 : 64;
		fx->v = base_realloc_array(fx->v, fx->cap, sizeof *fx->v);
	}
	uint32_t at = take_slot(c);
	struct slot *s = &c->slots[at];
	s->used = true;
	s->kind = kind;
	s->done = done;
	s->ctx = ctx;
	struct effect *e = &fx->v[fx->n++];
	memset(e, 0, sizeof *e);
	e->kind = kind;
	e->token = (struct fx_token){at, s->gen};
	if (kind == FX_SQL)
		c->counters.sql++;
	else if (kind == FX_PUT)
		c->counters.puts++;
	return e;
}

static void on_done(struct core *c, const struct event *ev)
{
	struct fx_token t = ev->u.done.token;
	if (t.slot >= c->n_slots || !c->slots[t.slot].used || c->slots[t.slot].gen != t.gen) {
		c->counters.stale_tokens++;
		return;
	}
	struct slot *s = &c->slots[t.slot];
	ASSERT(s->kind == ev->u.done.kind);
	done_fn done = s->done;
	void *ctx = s->ctx;
	s->used = false;
	s->gen++;
	s->next_free = c->free_slot;
	c->free_slot = t.slot;
	if (done)
		done(c, ctx, ev);
}

static void log_done(struct core *c, void *ctx, const struct event *ev)
{
	(void)c;
	(void)ev;
	core_unkeep(ctx);
}

void core_log(struct core *c, int level, const char *event, const struct table *t,
	      const struct txn *x, const struct err *err)
{
	/* The text must outlive the step: it is freed by the effect's completion. */
	struct err *copy = core_keep(c, sizeof *copy, NULL);
	if (err)
		*copy = *err;
	struct effect *e = core_emit(c, FX_LOG, log_done, copy);
	e->u.log.level = level;
	e->u.log.event = event;
	if (t) {
		e->u.log.table = t->id;
		e->u.log.epoch = t->epoch;
		e->u.log.batch_no = t->last_batch;
	}
	if (x)
		e->u.log.txn = x->id;
	e->u.log.st = copy->st;
	e->u.log.msg = strv_of(copy->msg);
}

/* ------------------------------------------------------------------ contexts of effects */

struct kept {
	struct list node;
	void (*fini)(void *p);
	max_align_t body[];
};

void *core_keep(struct core *c, size_t n, void (*fini)(void *p))
{
	size_t all;
	ASSERT(add_size(sizeof(struct kept), n, &all));
	struct kept *k = base_calloc(1, all);
	list_init(&k->node);
	k->fini = fini;
	list_push_back(&c->kept, &k->node);
	return k->body;
}

void core_unkeep(void *own_p)
{
	struct kept *k = (struct kept *)((char *)own_p - offsetof(struct kept, body));
	list_remove(&k->node);
	if (k->fini)
		k->fini(own_p);
	base_free(k);
}

/* ------------------------------------------------------------------ timers */

void core_timer(struct core *c, struct timer *t, int64_t at_us,
		void (*fire)(struct core *c, struct timer *t))
{
	if (!t->fire)
		list_init(&t->node);
	list_remove(&t->node);
	t->at_us = at_us;
	t->fire = fire;
	list_push_back(&c->timers, &t->node);
	if (at_us < c->next_deadline)
		c->next_deadline = at_us;
}

void core_timer_stop(struct timer *t)
{
	if (t->fire)
		list_remove(&t->node);
}

static void fire_timers(struct core *c)
{
	/* A timer that fires may arm itself again, for later: each is looked at once. */
	struct list due;
	list_init(&due);
	LIST_FOR (n, tmp, &c->timers)
		if (LIST_ITEM(n, struct timer, node)->at_us <= c->now_us) {
			list_remove(n);
			list_push_back(&due, n);
		}
	for (struct list *n; (n = list_pop_front(&due));) {
		struct timer *t = LIST_ITEM(n, struct timer, node);
		t->fire(c, t);
	}
}

static void find_deadline(struct core *c)
{
	int64_t at = INT64_MAX;
	LIST_FOR (n, tmp, &c->timers)
		if (LIST_ITEM(n, struct timer, node)->at_us < at)
			at = LIST_ITEM(n, struct timer, node)->at_us;
	LIST_FOR (n, tmp2, &c->requests) {
		const struct request *r = LIST_ITEM(n, struct request, node);
		if (!r->answered && r->in.deadline_us > 0 && r->in.deadline_us < at)
			at = r->in.deadline_us;
	}
	c->next_deadline = at;
}

int64_t core_next_deadline(const struct core *core)
{
	return core->next_deadline;
}

/* ------------------------------------------------------------------ gathering files */

struct wait {
	struct list node;
	struct gather *g;
};

static void read_done(struct core *c, void *ctx, const struct event *ev)
{
	struct cache_item *it = ctx;
	cache_item_done(c->cache, it, ev->u.done.read);
	/* One that runs may ask for the same file again, when it could not be read: it then waits
	 * for the next answer, not for this one. */
	struct list now;
	list_init(&now);
	for (struct list *n; (n = list_pop_front(cache_item_waiters(it)));)
		list_push_back(&now, n);
	for (struct list *n; (n = list_pop_front(&now));) {
		struct wait *w = LIST_ITEM(n, struct wait, node);
		struct gather *g = w->g;
		core_unkeep(w);
		ASSERT(g->waiting > 0);
		if (--g->waiting == 0)
			g->run(c, g);
	}
}

void core_gather(struct core *c, struct gather *g, struct needs *needs)
{
	ASSERT(g->waiting == 0 && needs->n > 0);
	g->waiting = needs->n;
	for (size_t i = 0; i < needs->n; i++) {
		struct cache_item *it = needs->v[i];
		struct wait *w = core_keep(c, sizeof *w, NULL);
		list_init(&w->node);
		w->g = g;
		list_push_back(cache_item_waiters(it), &w->node);
		if (cache_item_begin(it)) {
			struct effect *e = core_emit(c, FX_READ, read_done, it);
			e->u.read = *cache_item_read(it);
		}
	}
	needs_begin(needs);
}

/* ------------------------------------------------------------------ start */

static void recover(struct core *c, struct timer *t);

static void recover_done(struct core *c, void *ctx, const struct event *ev)
{
	(void)ctx;
	const struct sql_result *r = ev->u.done.sql;
	c->background--;
	if (r->lost || core_sql_clean_failure(r)) {
		core_timer(c, &c->recover, c->now_us + c->conf.retry_us, recover);
		return;
	}
	c->secret = r->secret;
	c->started = true;
	for (size_t i = 0; i < r->n_tables; i++)
		table_open(c, r->tables[i]);
	for (struct list *n; (n = list_pop_front(&c->starting));) {
		struct request *req = LIST_ITEM(n, struct request, wait);
		request_run(c, req);
	}
}

static void recover(struct core *c, struct timer *t)
{
	(void)t;
	struct effect *e = core_emit(c, FX_SQL, recover_done, NULL);
	e->u.sql.kind = SQL_RECOVER;
	c->background++;
}

/* Whoever has the lock now decides what is in the rows; what is being published is resolved first. */
static void stand_by(struct core *c)
{
	LIST_FOR (n, tmp, &c->table_list) {
		struct table *t = LIST_ITEM(n, struct table, node);
		multi_interrupt(c, t, ST_FENCED, "this daemon is a standby now");
		if (!t->batch && !t->taking)
			table_drop(c, t, ST_FENCED, "this daemon is a standby now");
	}
}

static void sweep(struct core *c, struct timer *t)
{
	if (c->conf.standby)
		stand_by(c);
	txn_sweep(c);
	core_timer(c, t, c->now_us + SWEEP_US, sweep);
}

struct core *core_new(uint64_t seed)
{
	struct core *c = base_calloc(1, sizeof *c);
	for (int i = 0; i < 4; i++)
		c->rng[i] = splitmix(&seed);
	c->free_slot = UINT32_MAX;
	list_init(&c->starting);
	list_init(&c->words);
	list_init(&c->requests);
	list_init(&c->kept);
	list_init(&c->ghost_txns);
	list_init(&c->ghost_tables);
	list_init(&c->timers);
	list_init(&c->table_list);
	c->cache = cache_new((size_t)64 << 20);
	c->next_deadline = INT64_MAX;
	return c;
}

void core_step(struct core *core, const struct event *ev, struct effects *fx)
{
	struct core *c = core;
	base_memory_reset();
	c->fx = fx;
	if (ev->mono_us > c->now_us)
		c->now_us = ev->mono_us;
	if (ev->pg_ms > c->pg_ms)
		c->pg_ms = ev->pg_ms;
	switch (ev->kind) {
	case EV_CONFIG: {
		bool was = c->conf.standby;
		c->conf = *ev->u.conf;
		cache_set_budget(c->cache, c->conf.cache_max_bytes);
		if (c->conf.standby && !was)
			stand_by(c);
		else if (was && !c->conf.standby && c->started)
			recover(c, NULL);
		break;
	}
	case EV_START:
		recover(c, NULL);
		sweep(c, &c->sweep);
		cleaner_start(c);
		break;
	case EV_TICK:
		fire_timers(c);
		request_expire(c);
		find_deadline(c);
		break;
	case EV_DRAIN:
		c->draining = true;
		break;
	case EV_DONE:
		on_done(c, ev);
		break;
	default:
		request_new(c, ev);
	}
	cache_trim(c->cache);
	c->fx = NULL;
}

bool core_idle(const struct core *core)
{
	if (!list_empty(&core->requests) || core->background > 0)
		return false;
	LIST_FOR (n, tmp, &core->table_list) {
		const struct table *t = LIST_ITEM(n, struct table, node);
		/* What a halted or unreachable table holds is durable and waits for better days. */
		if (t->batch || (t->state == TABLE_READY && t->n_queue))
			return false;
	}
	return true;
}

void core_free(struct core *own_core)
{
	if (!own_core)
		return;
	while (list_pop_front(&own_core->timers))
		;
	while (!list_empty(&own_core->kept))
		core_unkeep(LIST_ITEM(own_core->kept.next, struct kept, node)->body);
	cleaner_free(own_core->cleaner);
	table_free_all(own_core);
	LIST_FOR (n, tmp, &own_core->requests) {
		struct request *r = LIST_ITEM(n, struct request, node);
		needs_fini(&r->needs);
		metadata_unref(r->replied);
		arena_fini(&r->arena);
		base_free(r);
	}
	cache_free(own_core->cache);
	inspect_free(own_core->inspect);
	base_free(own_core->slots);
	base_free(own_core);
}

struct core_index_stats core_index_stats(const struct core *core)
{
	return cache_stats(core->cache);
}

const struct core_counters *core_counters(const struct core *core)
{
	return &core->counters;
}
