#include "daemon/commit/inspect.h"

#include <stdlib.h>

#include "daemon/commit/state.h"

/* ------------------------------------------------------------------ pages */

/* The smallest ids behind a cursor: a heap with the largest on top, so that a page of k out of n
 * costs no more than n looks at its top. */
struct pick {
	struct one {
		struct uuid id;
		const void *what;
	} *v;
	size_t n, cap;
	struct uuid after;
	bool more;
};

static int order(const struct uuid *a, const struct uuid *b)
{
	return memcmp(a->b, b->b, sizeof a->b);
}

static void pick_init(struct pick *p, struct uuid after, size_t limit)
{
	size_t cap = limit == 0 || limit > INSPECT_PAGE_MAX ? INSPECT_PAGE_MAX : limit;
	*p = (struct pick){.v = base_calloc(cap, sizeof *p->v), .cap = cap, .after = after};
}

static void sift_down(struct pick *p, size_t i)
{
	for (;;) {
		size_t l = 2 * i + 1, r = l + 1, big = i;
		if (l < p->n && order(&p->v[l].id, &p->v[big].id) > 0)
			big = l;
		if (r < p->n && order(&p->v[r].id, &p->v[big].id) > 0)
			big = r;
		if (big == i)
			return;
		struct one t = p->v[i];
		p->v[i] = p->v[big];
		p->v[big] = t;
		i = big;
	}
}

static void offer(struct pick *p, struct uuid id, const void *what)
{
	if (order(&id, &p->after) <= 0)
		return;
	if (p->n < p->cap) {
		p->v[p->n++] = (struct one){id, what};
		if (p->n == p->cap)
			for (size_t i = p->n / 2; i-- > 0;)
				sift_down(p, i);
		return;
	}
	p->more = true;
	if (order(&id, &p->v[0].id) >= 0)
		return;
	p->v[0] = (struct one){id, what};
	sift_down(p, 0);
}

static int by_id(const void *a, const void *b)
{
	return order(&((const struct one *)a)->id, &((const struct one *)b)->id);
}

static void sort(struct pick *p)
{
	qsort(p->v, p->n, sizeof *p->v, by_id);
}

static bool picked(struct pick *p)
{
	base_free(p->v);
	return p->more;
}

static bool wanted(const struct table *t, struct table_id table)
{
	return uuid_is_nil(table.u) || uuid_eq(t->id.u, table.u);
}

/* ------------------------------------------------------------------ tables */

static void tell_table(const struct table *t, void (*fn)(void *ctx, const struct core_table_info *),
		       void *ctx)
{
	static const char *const names[] = {"loading", "ready", "halted"};
	struct core_table_info info = {
		.table = t->id,
		.name = t->name,
		.state = names[t->state],
		.epoch = t->epoch,
		.version = t->version,
		.last_batch = t->last_batch,
		.queued = t->n_queue,
		.halted = t->state == TABLE_HALTED,
		.halt_cause = strv_of(t->halt.msg),
		.halt = t->state == TABLE_HALTED ? &t->blame : NULL,
	};
	fn(ctx, &info);
}

void core_each_table(const struct core *core, void (*fn)(void *ctx, const struct core_table_info *),
		     void *ctx)
{
	LIST_FOR (n, tmp, &core->table_list)
		tell_table(LIST_ITEM(n, struct table, node), fn, ctx);
}

bool inspect_tables(const struct core *core, bool halted_only, struct table_id after, size_t limit,
		    void (*fn)(void *ctx, const struct core_table_info *), void *ctx)
{
	struct pick p;
	pick_init(&p, after.u, limit);
	LIST_FOR (n, tmp, &core->table_list) {
		const struct table *t = LIST_ITEM(n, struct table, node);
		if (!halted_only || t->state == TABLE_HALTED)
			offer(&p, t->id.u, t);
	}
	sort(&p);
	for (size_t i = 0; i < p.n; i++)
		tell_table(p.v[i].what, fn, ctx);
	return picked(&p);
}

/* ------------------------------------------------------------------ transactions */

static const char *txn_word(enum txn_state s)
{
	switch (s) {
	case TXN_OPEN:
		return "open";
	case TXN_SEALED:
		return "sealed";
	case TXN_QUEUED:
		return "queued";
	case TXN_BATCHED:
		return "batched";
	default: /* no row yet, or final */
		return NULL;
	}
}

bool inspect_txns(const struct core *core, struct table_id table, struct txn_id after, size_t limit,
		  void (*fn)(void *ctx, const struct inspect_txn *), void *ctx)
{
	struct pick p;
	pick_init(&p, after.u, limit);
	for (size_t i = 0; i < ARRAY_SIZE(core->txns); i++)
		for (const struct txn *x = core->txns[i]; x; x = x->next)
			if (txn_word(x->state) && wanted(x->table, table))
				offer(&p, x->id.u, x);
	sort(&p);
	for (size_t i = 0; i < p.n; i++) {
		const struct txn *x = p.v[i].what;
		struct inspect_txn info = {
			.txn = x->id,
			.table = x->table->id,
			.table_name = x->table->name,
			.ref = x->row.ref,
			.principal = x->row.principal,
			.kind = x->row.kind,
			.state = txn_word(x->state),
			.commit_requested = x->row.commit_requested,
			.ordered = x->ordered,
			.has_read_snapshot = x->row.has_read_snapshot,
			.read_snapshot = x->row.read_snapshot,
			.created_pg_ms = x->row.created_pg_ms,
			.expires_pg_ms = x->row.expires_pg_ms,
			.fragments = x->n_frags,
			.files = x->n_files,
		};
		LIST_FOR (n, tmp, &x->waiters)
			info.waiters++;
		fn(ctx, &info);
	}
	return picked(&p);
}

/* ------------------------------------------------------------------ batches */

bool inspect_batches(const struct core *core, struct table_id table, struct table_id after,
		     size_t limit, void (*fn)(void *ctx, const struct inspect_batch *), void *ctx)
{
	static const char *const names[] = {"reserved", "gathering",  "encoding",
					    "ledger",	"writing",    "ready",
					    "publishing", "resolving", "paused", "done"};
	_Static_assert(ARRAY_SIZE(names) == BATCH__COUNT, "a word for each state");
	struct pick p;
	pick_init(&p, after.u, limit);
	LIST_FOR (n, tmp, &core->table_list) {
		const struct table *t = LIST_ITEM(n, struct table, node);
		if (t->batch && wanted(t, table))
			offer(&p, t->id.u, t);
	}
	sort(&p);
	for (size_t i = 0; i < p.n; i++) {
		const struct table *t = p.v[i].what;
		const struct batch *b = t->batch;
		struct inspect_batch info = {.batch = b->id,
					     .table = t->id,
					     .table_name = t->name,
					     .batch_no = b->no,
					     .epoch = t->epoch,
					     .base_version = t->version,
					     .state = names[b->state],
					     .rest = b->ask || b->part,
					     .txns = b->n,
					     .puts_open = b->puts};
		fn(ctx, &info);
	}
	return picked(&p);
}

void inspect_count(const struct core *core, struct inspect_totals *ret_t)
{
	struct inspect_totals s = {0};
	LIST_FOR (n, tmp, &core->table_list) {
		const struct table *t = LIST_ITEM(n, struct table, node);
		s.loading += t->state == TABLE_LOADING;
		s.ready += t->state == TABLE_READY;
		s.halted += t->state == TABLE_HALTED;
		s.batches += t->batch != NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(core->txns); i++)
		for (const struct txn *x = core->txns[i]; x; x = x->next) {
			s.open += x->state == TXN_OPEN;
			s.sealed += x->state == TXN_SEALED;
			s.queued += x->state == TXN_QUEUED;
			s.batched += x->state == TXN_BATCHED;
		}
	*ret_t = s;
}

/* ------------------------------------------------------------------ findings */

struct kept_finding {
	int64_t no, pg_ms;
	struct table_id table;
	const char *kind;
	struct strv name, path; /* owned */
};

/* A ring; the oldest is overwritten. */
struct inspect {
	struct kept_finding v[INSPECT_FINDINGS];
	int64_t last; /* number of the newest */
};

static struct strv kept_end(struct strv s)
{
	struct strv end = s.n > INSPECT_PATH_MAX ? strv_sub(s, s.n - INSPECT_PATH_MAX, s.n) : s;
	char *p = base_alloc(end.n + 1);
	memcpy(p, end.p, end.n);
	p[end.n] = 0;
	/* Cut inside of a character: what is left of it goes. */
	while (end.n && s.n > INSPECT_PATH_MAX && ((uint8_t)p[0] & 0xc0) == 0x80) {
		memmove(p, p + 1, end.n);
		end.n--;
	}
	return (struct strv){p, end.n};
}

static void forget(struct kept_finding *f)
{
	base_free((char *)(uintptr_t)f->name.p);
	base_free((char *)(uintptr_t)f->path.p);
}

void inspect_note(struct core *c, const struct table *t, const struct verify_finding *f)
{
	if (!c->inspect)
		c->inspect = base_calloc(1, sizeof *c->inspect);
	struct inspect *s = c->inspect;
	struct kept_finding *k = &s->v[(size_t)(s->last++ % INSPECT_FINDINGS)];
	forget(k);
	*k = (struct kept_finding){.no = s->last,
				   .pg_ms = c->pg_ms,
				   .table = t->id,
				   .kind = verify_word(f->kind),
				   .name = kept_end(t->name),
				   .path = kept_end(f->path)};
}

void inspect_free(struct inspect *own_s)
{
	for (size_t i = 0; own_s && i < INSPECT_FINDINGS; i++)
		forget(&own_s->v[i]);
	base_free(own_s);
}

bool inspect_findings(const struct core *core, struct table_id table, int64_t before, size_t limit,
		      void (*fn)(void *ctx, const struct inspect_finding *), void *ctx)
{
	const struct inspect *s = core->inspect;
	size_t left = limit == 0 || limit > INSPECT_PAGE_MAX ? INSPECT_PAGE_MAX : limit;
	if (!s)
		return false;
	int64_t no = before > 0 && before <= s->last ? before - 1 : s->last;
	for (; no > 0 && no > s->last - INSPECT_FINDINGS; no--) {
		const struct kept_finding *k = &s->v[(size_t)((no - 1) % INSPECT_FINDINGS)];
		if (!uuid_is_nil(table.u) && !uuid_eq(table.u, k->table.u))
			continue;
		if (left-- == 0)
			return true;
		struct inspect_finding info = {k->no,	k->pg_ms, k->table,
					       k->name, k->kind,  k->path};
		fn(ctx, &info);
	}
	return false;
}
