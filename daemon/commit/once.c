/* CommitOnce: a whole small transaction in one message and one statement. */
#include "daemon/commit/state.h"

#include "daemon/commit/intake/intake.h"
#include "proto/iceberg/metadata.h"

/* Takes the request from its transaction, which goes; requests that came meanwhile run now. */
static void once_drop(struct core *c, struct request *r)
{
	struct txn *x = request_txn(r);
	r->txn = NULL;
	if (!x)
		return;
	struct list late;
	list_init(&late);
	for (struct list *n; (n = list_pop_front(&x->turn));)
		list_push_back(&late, n);
	txn_free(c, x);
	for (struct list *n; (n = list_pop_front(&late));)
		request_run(c, LIST_ITEM(n, struct request, wait));
}

static void once_fail(struct core *c, struct request *r, const struct err *err)
{
	request_fail(c, r, err);
	once_drop(c, r);
	request_let(r);
}

/* Refused before anything was sent. What it names may be gone because it was decided long ago and
 * now comes again (a spent file, a spec, a read snapshot): the rows know. */
static void once_refuse(struct core *c, struct request *r, const struct err *err)
{
	r->late_err = *err;
	once_drop(c, r);
	if (!r->answered)
		finish_reread(c, r);
	request_let(r);
}

/* All of a small transaction: one statement makes it durable, sealed and asked for. */
static void once_send(struct core *c, struct txn *x);

static void once_again(struct core *c, struct timer *timer)
{
	once_send(c, CONTAINER_OF(timer, struct txn, timer));
}

static void once_done(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (!x) {
		request_let(r);
		return;
	}
	if (txn_ask_failed(x, q)) {
		/* Sealed and asked for, or not: repeated until it is answered, because nobody else
		 * would queue it. */
		core_timer(c, &x->timer, c->now_us + c->conf.retry_us, once_again);
		return;
	}
	if (core_sql_clean_failure(q) || q->item.st != ST_OK ||
	    q->item.row.state != TXN_DB_SEALED) {
		bool final = !core_sql_clean_failure(q) && q->item.st == ST_OK;
		struct err err = {0};
		if (final) {
			/* Repeated after it had gone on: the rows answer. */
			once_drop(c, r);
			if (!r->answered)
				finish_reread(c, r);
			request_let(r);
			return;
		}
		if (core_sql_clean_failure(q))
			err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
		else if (q->item.path.n)
			err_set(&err, q->item.st, "fragments", "%s: %.*s",
				status_info(q->item.st)->help, STRV_ARG(q->item.path));
		else
			err_set(&err, q->item.st, "begin.txn_id", "%s",
				status_info(q->item.st)->help);
		once_fail(c, r, &err);
		return;
	}
	x->row.expires_pg_ms = q->item.row.expires_pg_ms;
	x->row.created_pg_ms = q->item.row.created_pg_ms;
	x->row.commit_requested = true;
	LIST_FOR (n, tmp, &x->frags)
		LIST_ITEM(n, struct frag, node)->durable = true;
	txn_move(c, x, TXN_SEALED);
	if (!r->answered)
		list_push_back(&x->waiters, &r->wait);
	txn_asked(x);
	txn_verify(c, x);
	txn_turn(c, x);
	request_let(r);
}

static void once_send(struct core *c, struct txn *x)
{
	x->ask_paused = false;
	struct effect *e = core_emit(c, FX_SQL, once_done, x->asker);
	e->u.sql.kind = SQL_TXN_ONCE;
	e->u.sql.u.once = x->once;
}

static struct sql_once_item *once_item(struct txn *x)
{
	struct sql_once_item *item = arena_calloc(&x->arena, 1, sizeof *item);
	struct sql_stage_item *stages =
		arena_calloc(&x->arena, x->n_winners ? x->n_winners : 1, sizeof *stages);
	if (!item || !stages)
		return NULL;
	for (size_t i = 0; i < x->n_winners; i++) {
		struct sql_stage_item *one = stage_item(x, x->winners[i]);
		if (!one)
			return NULL;
		stages[i] = *one;
	}
	x->row.state = TXN_DB_SEALED;
	x->row.commit_requested = true;
	*item = (struct sql_once_item){
		.row = x->row, .stages = stages, .n_stages = x->n_winners};
	return item;
}

static void once_run(struct core *c, struct gather *g)
{
	struct request *r = CONTAINER_OF(g, struct request, gather);
	struct txn *x = request_txn(r);
	struct err err = {0};
	if (r->answered || !x) {
		/* Answered, or its rows are asked because the table has ended. */
		once_drop(c, r);
		request_let(r);
		return;
	}
	if (r->blob_err.st != ST_OK) {
		once_refuse(c, r, &r->blob_err);
		return;
	}
	const struct rpc_commit_once *m = r->in.u.once;
	for (size_t i = 0; i < m->n_fragments; i++) {
		struct frag *f = frag_find(x, m->fragments[i].fragment_id, m->fragments[i].attempt);
		if (intake_join(x, f, &err) != ST_OK) {
			err_prefix(&err, "fragments[%zu]", i);
			once_refuse(c, r, &err);
			return;
		}
	}
	bool waiting = false;
	enum status st = ST_OK;
	LIST_FOR (n, tmp, &x->frags) {
		enum cache_answer ans = frag_subtract(c, x, x->table->meta,
						      LIST_ITEM(n, struct frag, node), &r->needs,
						      &err);
		if (ans == CACHE_FAIL) {
			once_refuse(c, r, &err);
			return;
		}
		waiting |= ans == CACHE_WAIT;
	}
	if (waiting) {
		core_gather(c, g, &r->needs);
		return;
	}
	needs_release(&r->needs);
	size_t n = 0;
	struct frag **w = arena_calloc(&x->arena, m->n_fragments ? m->n_fragments : 1,
				       sizeof(struct frag *));
	for (size_t i = 0; w && i < m->n_fragments; i++) {
		w[n] = frag_find(x, m->fragments[i].fragment_id, m->fragments[i].attempt);
		ASSERT(w[n] != NULL);
		if (!frag_pack(x, w[n]))
			st = ST_TOO_LARGE;
		n++;
	}
	if (!w)
		st = ST_TOO_LARGE;
	if (st == ST_OK)
		st = stage_check_winners(w, n, &err);
	if (st == ST_OK)
		st = txn_seal(c, x, w, n, &err);
	if (st == ST_OK && !frag_pack_seal(&x->arena, w, n, &x->row.seal))
		st = ST_TOO_LARGE;
	struct sql_once_item *item = NULL;
	if (st == ST_OK) {
		x->row.set_digest = digest_sha256(x->row.seal);
		x->row.has_set_digest = true;
		item = once_item(x);
		if (!item)
			st = ST_TOO_LARGE;
	}
	if (st != ST_OK) {
		if (err.st == ST_OK)
			err_set(&err, st, "", "the transaction exceeds the memory limit");
		once_refuse(c, r, &err);
		return;
	}
	txn_weigh(c, x);
	r->sent = true;
	x->once = item;
	x->asker = r;
	once_send(c, x);
}

void once_start(struct core *c, struct request *r)
{
	const struct rpc_commit_once *m = r->in.u.once;
	struct table *t = r->table;
	struct err err = {0};
	/* A repeat is answered by its rows, whatever has become of the table since. */
	if (t->state == TABLE_HALTED)
		err_set(&r->late_err, ST_TABLE_HALTED, "", "%s", t->halt.msg);
	else if (!table_is(c, t, r->in.incarnation, &r->late_err) &&
		 r->late_err.st == ST_NO_SUCH_TABLE)
		err_set(&r->late_err, ST_TABLE_GONE, "table", "the table was replaced");
	if (r->late_err.st != ST_OK) {
		finish_reread(c, r);
		return;
	}
	struct txn *x = txn_find(c, (struct txn_id){m->begin.txn_id});
	if (x) {
		/* Repeated while the first is under way, or an open transaction's id. */
		if (x->state == TXN_NEW) {
			list_push_back(&x->turn, &r->wait);
		} else if (x->state == TXN_OPEN) {
			request_status(c, r, ST_DIGEST_CONFLICT, "begin.txn_id",
				       "the id is an open transaction's");
		} else {
			r->txn = x;
			finish_wait_same(c, r);
		}
		return;
	}
	if (c->n_txns >= c->conf.txn_max || t->n_queue >= c->conf.queue_max || txn_full(c)) {
		request_status(c, r, ST_OVERLOADED, "",
			       txn_full(c) ? "open transactions hold too much memory"
					   : "too many transactions are waiting");
		return;
	}
	if (begin_check(t, &m->begin, &err) != ST_OK) {
		err_prefix(&err, "begin");
		/* It may be a repeat whose read snapshot is gone by now: the rows know. */
		r->late_err = err;
		finish_reread(c, r);
		return;
	}
	x = txn_new(c, t, (struct txn_id){m->begin.txn_id});
	r->txn = x;
	request_hold_txn(r, x);
	enum status st = txn_fill(c, x, &m->begin, r->in.principal, &err);
	for (size_t i = 0; st == ST_OK && i < m->n_fragments; i++) {
		struct frag *f;
		st = frag_decode(t->meta, x, &m->fragments[i], &f, &err);
		/* Found by its name from here on: the one behind another would be passed over when
		 * files are read. */
		if (st == ST_OK && frag_find(x, f->id, f->attempt))
			st = err_set(&err, ST_BAD_REQUEST, "", "fragment %.*s is named twice",
				     STRV_ARG(f->id));
		if (st == ST_OK)
			frag_keep(x, f);
		else
			err_prefix(&err, "fragments[%zu]", i);
	}
	if (st == ST_OK)
		st = finish_summary(x, m->summary, m->n_summary, &err);
	if (st != ST_OK) {
		once_refuse(c, r, &err);
		return;
	}
	r->gather.run = once_run;
	for (size_t i = 0; i < m->n_fragments; i++) {
		struct frag *f = frag_find(x, m->fragments[i].fragment_id, m->fragments[i].attempt);
		blob_fetch(c, r, f, i);
		intake_fetch(c, r, x, f, i);
	}
	if (!r->blobs)
		once_run(c, &r->gather);
}
