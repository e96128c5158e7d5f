/* Requests from their event to their one reply: the gates before a handler runs, the answer, the
 * deadline. A request that was answered by its deadline goes on in the background; what it later
 * wants to answer is dropped. */
#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"

#include "proto/iceberg/metadata.h"

static void drop(struct request *r)
{
	list_remove(&r->node);
	list_remove(&r->wait);
	needs_fini(&r->needs);
	metadata_unref(r->replied);
	arena_fini(&r->arena);
	base_free(r);
}

static void reply_done(struct core *c, void *ctx, const struct event *ev)
{
	(void)c;
	(void)ev;
	struct request *r = ctx;
	r->released = true;
	if (r->holds == 0)
		drop(r);
}

void request_hold(struct request *r)
{
	r->holds++;
}

void request_let(struct request *r)
{
	ASSERT(r->holds > 0);
	if (--r->holds > 0)
		return;
	struct txn *x = r->held;
	r->held = NULL;
	if (x)
		txn_let(x);
	if (r->released)
		drop(r);
}

void request_hold_txn(struct request *r, struct txn *x)
{
	request_hold(r);
	ASSERT(r->held == NULL);
	r->held = x;
	txn_hold(x);
}

struct txn *request_txn(const struct request *r)
{
	return r->txn && !r->txn->gone ? r->txn : NULL;
}

void request_ended(struct core *c, struct request *r)
{
	request_status(c, r, ST_TXN_STATE, "txn_id", "the transaction ended meanwhile");
}

static struct effect *answer(struct core *c, struct request *r)
{
	if (r->answered)
		return NULL;
	r->answered = true;
	if (r->multi)
		multi_answered(c, r->multi);
	struct effect *e = core_emit(c, FX_REPLY, reply_done, r);
	e->u.reply.req = r->in.req;
	return e;
}

void request_fail(struct core *c, struct request *r, const struct err *err)
{
	struct effect *e = answer(c, r);
	if (!e)
		return;
	e->u.reply.reply.kind = REPLY_ERR;
	e->u.reply.reply.err = *err;
	if (err->st == ST_LIMIT || err->st == ST_TOO_LARGE)
		err_memory(&e->u.reply.reply.err);
}

void request_status(struct core *c, struct request *r, enum status st, const char *field,
		    const char *msg)
{
	struct err err = {0};
	err_set(&err, st, field, "%s", msg);
	request_fail(c, r, &err);
}

void request_rpc(struct core *c, struct request *r, const void *msg)
{
	struct effect *e = answer(c, r);
	if (!e)
		return;
	e->u.reply.reply.kind = REPLY_RPC;
	e->u.reply.reply.msg = msg;
}

void request_remembered(struct core *c, struct request *r)
{
	struct effect *e = answer(c, r);
	if (!e)
		return;
	e->u.reply.reply.kind = REPLY_RPC;
	e->u.reply.reply.remembered = r->in.idem.set;
}

void request_dropped(struct core *c, struct request *r, struct strv location)
{
	struct effect *e = answer(c, r);
	if (!e)
		return;
	struct strv copy;
	ASSERT(arena_strv(&r->arena, location, &copy));
	e->u.reply.reply.kind = REPLY_DROPPED;
	e->u.reply.reply.metadata_location = copy;
}

void request_committed(struct core *c, struct request *r, struct strv location, struct metadata *m,
		       bool remembered)
{
	struct effect *e = answer(c, r);
	if (!e)
		return;
	/* Both may be replaced before the reply is written. */
	struct strv copy;
	ASSERT(arena_strv(&r->arena, location, &copy));
	r->replied = metadata_ref(m);
	e->u.reply.reply.kind = REPLY_COMMITTED;
	e->u.reply.reply.remembered = remembered;
	e->u.reply.reply.metadata_location = copy;
	e->u.reply.reply.metadata = m;
}

static bool is_txn_message(enum ev_kind k)
{
	return k == EV_STAGE || k == EV_SEAL || k == EV_COMMIT || k == EV_STATUS || k == EV_ABORT;
}

static struct txn_id id_of(const struct request *r)
{
	switch (r->kind) {
	case EV_STAGE:
		return (struct txn_id){r->in.u.stage->txn_id};
	case EV_SEAL:
		return (struct txn_id){r->in.u.seal->txn_id};
	case EV_COMMIT:
		return (struct txn_id){r->in.u.commit->txn_id};
	case EV_STATUS:
		return (struct txn_id){r->in.u.status->txn_id};
	case EV_ABORT:
		return (struct txn_id){r->in.u.abort->txn_id};
	case EV_BEGIN:
		return (struct txn_id){r->in.u.begin->txn_id};
	case EV_COMMIT_ONCE:
		return (struct txn_id){r->in.u.once->begin.txn_id};
	default:
		ASSERT_NEVER("not about one transaction");
		return (struct txn_id){0};
	}
}

static bool starts_work(enum ev_kind k)
{
	return k == EV_BEGIN || k == EV_COMMIT_ONCE || k == EV_TABLE_COMMIT ||
	       k == EV_TABLE_CREATE || k == EV_TABLES_COMMIT;
}

void request_new(struct core *c, const struct event *ev)
{
	struct request *r = base_calloc(1, sizeof *r);
	r->kind = ev->kind;
	r->in = ev->u.req;
	list_init(&r->node);
	list_init(&r->wait);
	arena_init(&r->arena, c->conf.request_max_bytes);
	list_push_back(&c->requests, &r->node);
	if (r->in.deadline_us > 0 && r->in.deadline_us < c->next_deadline)
		c->next_deadline = r->in.deadline_us;
	if (c->draining && starts_work(r->kind)) {
		request_status(c, r, ST_OVERLOADED, "", "the daemon is shutting down");
		return;
	}
	if (c->conf.standby && r->kind != EV_STATUS && r->kind != EV_HEARTBEAT) {
		/* A commit route never answers 503. */
		bool rest = r->kind == EV_TABLE_COMMIT || r->kind == EV_TABLE_CREATE ||
			    r->kind == EV_TABLES_COMMIT;
		request_status(c, r, rest ? ST_OVERLOADED : ST_UNAVAILABLE, "",
			       "this daemon is a standby");
		return;
	}
	if (!c->started)
		list_push_back(&c->starting, &r->wait);
	else
		request_run(c, r);
}

/* ------------------------------------------------------------------ the gates */

/* The table gate: a handler runs only on a READY table. */
static bool gate_table(struct core *c, struct request *r, struct table_id id)
{
	struct table *t = table_open(c, id);
	if (t->state == TABLE_LOADING) {
		list_push_back(&t->waiting, &r->wait);
		return false;
	}
	r->table = t;
	return true;
}

static void row_answer(struct core *c, struct request *r, const struct sql_result *q)
{
	if (q->lost || core_sql_clean_failure(q)) {
		request_status(c, r, r->sent ? ST_COMMIT_UNKNOWN : ST_UNAVAILABLE, "",
			       "PostgreSQL cannot be reached");
		return;
	}
	if (q->item.st != ST_OK) {
		request_status(c, r, q->item.st, "txn_id", "no transaction has this id");
		return;
	}
	if (finish_from_rows(c, r, &q->item))
		return;
	/* Not final, hence its table's: loading the table restores it. Asked twice without finding
	 * it in memory: it has moved on between the two, ask the rows again. */
	if (r->looked++ > 8) {
		request_status(c, r, ST_OVERLOADED, "txn_id", "the transaction keeps moving");
		return;
	}
	if (c->conf.standby) {
		if (r->kind == EV_STATUS)
			finish_row(c, r, &q->item.row);
		else
			request_status(c, r, ST_UNAVAILABLE, "", "this daemon is a standby");
		return;
	}
	if (!gate_table(c, r, q->item.row.table))
		return;
	struct table *t = r->table;
	/* A halted table serves what it holds; its loading may have ended while the row was read. */
	if (t->state == TABLE_HALTED && !txn_find(c, q->item.row.txn)) {
		if (r->kind == EV_STATUS)
			finish_row(c, r, &q->item.row);
		else
			finish_halted(c, r, t, q->item.row.commit_requested);
		return;
	}
	/* The table is loaded and does not know it: a statement whose answer was lost had been
	 * executed. */
	if (!txn_find(c, q->item.row.txn) && t->incarnation == q->item.row.incarnation)
		txn_restore(c, t, &q->item);
	request_run(c, r);
}

static void row_done(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	if (!r->answered)
		row_answer(c, r, ev->u.done.sql);
	request_let(r);
}

void request_read_row(struct core *c, struct request *r)
{
	request_hold(r);
	struct effect *e = core_emit(c, FX_SQL, row_done, r);
	e->u.sql.kind = SQL_TXN_READ;
	e->u.sql.u.txn = id_of(r);
}

static bool token_ok(struct core *c, struct request *r, const struct txn *x)
{
	struct bytes token;
	switch (r->kind) {
	case EV_STAGE:
		token = r->in.u.stage->lease_token;
		break;
	case EV_SEAL:
		token = r->in.u.seal->lease_token;
		break;
	case EV_COMMIT:
		token = r->in.u.commit->lease_token;
		break;
	case EV_ABORT:
		token = r->in.u.abort->lease_token;
		break;
	default:
		return true;
	}
	if (digest_eq_secret(token, (struct bytes){x->token.b, sizeof x->token.b}) ||
	    MUTANT("any-token"))
		return true;
	request_status(c, r, ST_TOKEN_MISMATCH, "lease_token",
		       "the token is not this transaction's");
	return false;
}

void request_run(struct core *c, struct request *r)
{
	if (r->answered)
		return;
	if (is_txn_message(r->kind)) {
		struct txn *x = txn_find(c, id_of(r));
		if (!x || x->state == TXN_NEW) {
			if (x) /* Begin is under way: wait for it */
				list_push_back(&x->turn, &r->wait);
			else
				request_read_row(c, r);
			return;
		}
		if (!token_ok(c, r, x))
			return;
		r->txn = x;
		r->table = x->table;
		if (r->kind == EV_STATUS) {
			finish_status(c, r);
			return;
		}
		list_push_back(&x->turn, &r->wait);
		txn_turn(c, x);
		return;
	}
	switch (r->kind) {
	case EV_HEARTBEAT:
		lease_heartbeat(c, r);
		return;
	case EV_TABLE_CREATE:
		create_table(c, r);
		return;
	case EV_TABLES_COMMIT:
		multi_run(c, r);
		return;
	case EV_TABLE_DROP:
		create_drop(c, r);
		return;
	case EV_RESUME:
		halt_resume(c, r);
		return;
	default:
		break;
	}
	if (!r->table && !gate_table(c, r, r->in.table))
		return;
	switch (r->kind) {
	case EV_BEGIN:
		begin_start(c, r);
		return;
	case EV_COMMIT_ONCE:
		once_start(c, r);
		return;
	case EV_TABLE_COMMIT:
		rest_enqueue(c, r);
		return;
	case EV_HALT:
		halt_request(c, r);
		return;
	default:
		ASSERT_NEVER("every kind has a handler");
	}
}

void request_table_ready(struct core *c, struct table *t)
{
	/* Handlers may wait again; each request is let through once. */
	struct list now;
	list_init(&now);
	for (struct list *n; (n = list_pop_front(&t->waiting));)
		list_push_back(&now, n);
	for (struct list *n; (n = list_pop_front(&now));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		r->table = t;
		request_run(c, r);
	}
}

/* ------------------------------------------------------------------ deadlines */

/* What to say when time is up: work that has not begun is refused cleanly, a wait for an outcome
 * gives the state as it is, anything that may have happened is unknown. */
static void expire(struct core *c, struct request *r)
{
	const struct txn *x = request_txn(r);
	if ((r->kind == EV_COMMIT || r->kind == EV_COMMIT_ONCE) && x && x->state != TXN_NEW) {
		finish_pending(c, r, x);
		list_remove(&r->wait);
		return;
	}
	if (r->kind == EV_TABLE_COMMIT && r->entry && !r->batch) {
		table_dequeue(r->table, r->entry);
		request_status(c, r, ST_OVERLOADED, "", "the table's queue did not move in time");
		request_let(r);
		return;
	}
	/* An abort that waits for its turn in the table's queue is not taken back. */
	if (r->sent || r->batch || r->creation || (r->kind == EV_ABORT && r->txn)) {
		request_status(c, r,
			       r->kind == EV_TABLE_COMMIT || r->kind == EV_TABLE_CREATE ||
					       r->kind == EV_TABLES_COMMIT
				       ? ST_COMMIT_UNKNOWN
				       : ST_TIMEOUT,
			       "", "the deadline passed while the outcome was open");
		return;
	}
	list_remove(&r->wait);
	request_status(c, r, ST_OVERLOADED, "",
		       r->multi ? "the tables were not free in time"
				: "the deadline passed before work began");
}

void request_expire(struct core *c)
{
	LIST_FOR (n, tmp, &c->requests) {
		struct request *r = LIST_ITEM(n, struct request, node);
		if (!r->answered && r->in.deadline_us > 0 && r->in.deadline_us <= c->now_us)
			expire(c, r);
	}
}
