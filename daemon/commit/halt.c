/* Tables that stand still: by a cause that would do damage, or by an operator's word. The word is a row,
 * so that it outlives the daemon; an operator's resume takes it back and adopts what head says. */
#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"

void table_blame(struct table *t, const struct batch *b, struct strv object)
{
	struct core_halt *h = &t->blame;
	char *p = base_alloc(object.n + 1);
	if (object.n)
		memcpy(p, object.p, object.n);
	p[object.n] = 0;
	base_free((char *)(uintptr_t)h->object.p);
	h->object = (struct strv){p, object.n};
	h->by_operator = false;
	h->pg_ms = 0;
	h->batch_no = b ? b->no : 0;
	h->batch = b ? b->id : (struct batch_id){0};
	h->n_txns = b ? b->n : 0;
	for (size_t i = 0; i < h->n_txns && i < ARRAY_SIZE(h->txns); i++)
		h->txns[i] = b->txns[i]->id;
}

/* Who asked for a halt hears that the table stands still, by whatever cause. */
static void tell_halters(struct core *c, struct table *t)
{
	for (struct list *n; (n = list_pop_front(&t->halters));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		r->sent = false;
		request_rpc(c, r, NULL);
	}
}

void table_halt(struct core *c, struct table *t, const struct err *err)
{
	t->state = TABLE_HALTED;
	t->halt = *err;
	t->blame.st = status_info(err->st)->name;
	if (!t->blame.pg_ms)
		t->blame.pg_ms = c->pg_ms;
	core_log(c, 3, "table.halted", t, NULL, err);
	LIST_FOR (n, tmp, &t->queue) {
		struct entry *e = LIST_ITEM(n, struct entry, node);
		if (e->kind == ENTRY_REST) {
			struct request *q = e->req;
			struct err told = *err;
			told.st = ST_TABLE_HALTED;
			table_dequeue(t, e);
			rest_turn_away(c, q, t, &told);
			request_let(q);
		} else if (e->kind == ENTRY_PART) {
			struct err told = *err;
			told.st = ST_TABLE_HALTED;
			list_remove(&e->node);
			t->n_queue--;
			multi_unqueued(c, e->part, &told);
		} else {
			/* Sealed transactions stay; who waits for them is told. */
			LIST_FOR (n2, tmp2, &e->txn->waiters) {
				list_remove(n2);
				struct err told = *err;
				told.st = ST_TABLE_HALTED;
				table_tell(c, LIST_ITEM(n2, struct request, wait), e->txn, &told);
			}
		}
	}
	tell_halters(c, t);
	request_table_ready(c, t);
}

/* ------------------------------------------------------------------ an operator's word */

static void by_operator(struct core *c, struct table *t)
{
	struct err err = t->wish;
	t->wish = (struct err){0};
	table_blame(t, NULL, (struct strv){NULL, 0});
	t->blame.by_operator = true;
	t->blame.pg_ms = t->wish_pg_ms;
	table_halt(c, t, &err);
}

static void wish(struct table *t, struct strv cause, int64_t pg_ms)
{
	err_set(&t->wish, ST_TABLE_HALTED, "", "halted by an operator: %.*s", STRV_ARG(cause));
	t->wish_pg_ms = pg_ms;
}

bool halt_due(struct core *c, struct table *t)
{
	if (t->wish.st == ST_OK || t->batch || t->taking || t->state != TABLE_READY)
		return false;
	if (MUTANT("deaf-to-halt"))
		return false;
	by_operator(c, t);
	return true;
}

void halt_restored(struct core *c, struct table *t, const struct sql_result *r)
{
	bool resumed = t->resumed;
	t->resumed = false;
	if (r->halted.n == 0 || resumed || MUTANT("halt-forgotten"))
		return;
	wish(t, r->halted, r->halted_pg_ms);
	halt_due(c, t);
}

/* What is to be said when the rows did not take the word; false: they did. */
static bool refused(struct core *c, struct request *r, const struct sql_result *q)
{
	if (q->lost) {
		request_status(c, r, ST_TIMEOUT, "", "PostgreSQL did not answer; repeat");
		return true;
	}
	if (core_sql_clean_failure(q)) {
		r->sent = false;
		request_status(c, r, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
		return true;
	}
	return false;
}

/* Words are said one at a time, in the order in which they came: of two statements under way the answers
 * could overtake each other, and memory would follow the one that the rows do not. */
static void word_over(struct core *c)
{
	struct request *r = NULL;
	c->word = NULL;
	for (struct list *n; !r && (n = list_pop_front(&c->words));) {
		r = LIST_ITEM(n, struct request, wait);
		if (r->answered)
			r = NULL;
	}
	if (r)
		request_run(c, r);
}

/* false: r waits for its turn. */
static bool word_begin(struct core *c, struct request *r)
{
	if (c->word) {
		list_push_back(&c->words, &r->wait);
		return false;
	}
	c->word = r;
	return true;
}

static void halt_done(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	struct table *t = r->halting;
	const struct sql_result *q = ev->u.done.sql;
	r->halting = NULL;
	if (t->gone) {
		/* Whoever loads it finds the row. */
		request_status(c, r, ST_TIMEOUT, "", "the table changed hands meanwhile; repeat");
	} else if (!refused(c, r, q)) {
		if (q->verdict == SQL_REFUSED) {
			r->sent = false;
			if (!t->batch && !t->taking)
				table_drop(c, t, ST_FENCED, "another daemon holds the table");
			request_status(c, r, ST_UNAVAILABLE, "",
				       "the table changed hands meanwhile; repeat");
		} else if (t->state == TABLE_HALTED) {
			request_rpc(c, r, NULL);
		} else {
			wish(t, r->cause, ev->pg_ms);
			if (!r->answered)
				list_push_back(&t->halters, &r->wait);
			multi_interrupt(c, t, ST_TABLE_HALTED, t->wish.msg);
			halt_due(c, t);
		}
	}
	table_let(t);
	request_let(r);
	word_over(c);
}

void halt_request(struct core *c, struct request *r)
{
	struct table *t = r->table;
	if (!word_begin(c, r))
		return;
	if (!arena_strv(&r->arena, r->in.u.halt.cause, &r->cause)) {
		request_status(c, r, ST_TOO_LARGE, "cause", "the reason is too long");
		word_over(c);
		return;
	}
	r->sent = true;
	r->halting = t;
	table_hold(t);
	request_hold(r);
	struct effect *e = core_emit(c, FX_SQL, halt_done, r);
	e->u.sql.kind = SQL_HALT;
	e->u.sql.u.halt = (struct sql_halt){.table = t->id, .epoch = t->epoch, .cause = r->cause};
}

/* Requests of the table wait for the reload. */
static void resume_done(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	struct table *t = table_find(c, r->resumed);
	if (!refused(c, r, ev->u.done.sql) && !c->conf.standby) {
		if (t && t->state == TABLE_HALTED) {
			table_drop(c, t, ST_FENCED, "resumed by an operator");
			t = NULL;
		} else if (t) {
			t->wish = (struct err){0};
			/* Its rows may have been read before. */
			t->resumed = t->state == TABLE_LOADING;
			tell_halters(c, t);
		}
		if (!t)
			table_open(c, r->resumed);
	}
	r->sent = false;
	request_rpc(c, r, NULL);
	request_let(r);
	word_over(c);
}

void halt_resume(struct core *c, struct request *r)
{
	if (!word_begin(c, r))
		return;
	r->sent = true;
	r->resumed = r->in.table;
	request_hold(r);
	struct effect *e = core_emit(c, FX_SQL, resume_done, r);
	e->u.sql.kind = SQL_HALT;
	e->u.sql.u.halt = (struct sql_halt){.table = r->resumed, .cause = STRV("")};
}
