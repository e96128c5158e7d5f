/* The back half of a transaction: Commit, Abort, Status, Heartbeat, and every answer that tells an
 * outcome. */
#include "daemon/commit/state.h"

#include "daemon/commit/intake/intake.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

#define SUMMARY_VERSION 1
#define SUMMARY_MAX_PAIRS 64

/* ------------------------------------------------------------------ summary properties */

static bool reserved(struct strv key)
{
	static const char *const prefixes[] = {"added-",   "removed-",	    "deleted-", "total-",
					       "changed-", "manifests-",    "frazil.",	"partitions."};
	if (strv_eq(key, STRV("operation")) || key.n == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strv_starts(key, strv_of(prefixes[i])))
			return true;
	return false;
}

enum status finish_summary(struct txn *x, const struct rpc_property *in, size_t n, struct err *err)
{
	if (n > SUMMARY_MAX_PAIRS)
		return err_set(err, ST_BAD_REQUEST, "summary", "at most %d properties",
			       SUMMARY_MAX_PAIRS);
	x->summary = arena_calloc(&x->arena, n ? n : 1, sizeof *x->summary);
	struct buf b;
	buf_init(&b, x->arena.limit);
	bool ok = x->summary != NULL;
	enum status st = ST_OK;
	uint8_t word[4];
	if (n) {
		buf_putc(&b, SUMMARY_VERSION);
		put_u32le(word, (uint32_t)n);
		buf_put(&b, word, 4);
	}
	for (size_t i = 0; ok && i < n && st == ST_OK; i++) {
		if (reserved(in[i].key))
			st = err_set(err, ST_BAD_REQUEST, "summary",
				     "property %.*s is the server's own", STRV_ARG(in[i].key));
		ok = arena_strv(&x->arena, in[i].key, &x->summary[i].key) &&
		     arena_strv(&x->arena, in[i].value, &x->summary[i].value);
		put_u32le(word, (uint32_t)in[i].key.n);
		buf_put(&b, word, 4);
		buf_putv(&b, in[i].key);
		put_u32le(word, (uint32_t)in[i].value.n);
		buf_put(&b, word, 4);
		buf_putv(&b, in[i].value);
	}
	x->n_summary = n;
	if (ok && st == ST_OK)
		ok = buf_ok(&b) && arena_bytes(&x->arena, buf_bytes(&b), &x->row.summary);
	buf_fini(&b);
	if (st == ST_OK && !ok)
		st = err_set(err, ST_TOO_LARGE, "summary",
			     "the transaction exceeds the memory limit");
	return st;
}

static bool take_text(struct bytes in, size_t *at, struct arena *a, struct strv *ret_s)
{
	if (in.n - *at < 4)
		return false;
	size_t n = get_u32le(in.p + *at);
	*at += 4;
	if (n > in.n - *at)
		return false;
	if (!arena_strv(a, (struct strv){(const char *)in.p + *at, n}, ret_s))
		return false;
	*at += n;
	return true;
}

enum status txn_set_summary(struct txn *x, struct bytes packed, struct err *err)
{
	if (packed.n == 0)
		return ST_OK;
	if (packed.n < 5 || packed.p[0] != SUMMARY_VERSION)
		return err_set(err, ST_CORRUPT, "txn.summary", "unknown version");
	size_t n = get_u32le(packed.p + 1), at = 5;
	if (n > SUMMARY_MAX_PAIRS)
		return err_set(err, ST_CORRUPT, "txn.summary", "too many");
	x->summary = arena_calloc(&x->arena, n ? n : 1, sizeof *x->summary);
	for (size_t i = 0; x->summary && i < n; i++)
		if (!take_text(packed, &at, &x->arena, &x->summary[i].key) ||
		    !take_text(packed, &at, &x->arena, &x->summary[i].value))
			return err_set(err, ST_CORRUPT, "txn.summary", "too short");
	if (!x->summary || !arena_bytes(&x->arena, packed, &x->row.summary))
		return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	x->n_summary = n;
	return ST_OK;
}

/* ------------------------------------------------------------------ answers */

void finish_outcome(struct core *c, struct request *r, struct bytes outcome)
{
	const struct rpc_outcome *o;
	r->txn = NULL;
	if (r->answered)
		return;
	if (!answer_decode(outcome, &r->arena, &o)) {
		request_status(c, r, ST_INTERNAL, "", "the stored outcome does not decode");
		return;
	}
	request_rpc(c, r, o);
}

void finish_final(struct core *c, struct request *r, struct bytes outcome)
{
	if (r->kind == EV_COMMIT || r->kind == EV_ABORT || r->kind == EV_COMMIT_ONCE) {
		finish_outcome(c, r, outcome);
		return;
	}
	r->txn = NULL;
	const struct rpc_outcome *o;
	enum status st = ST_TXN_STATE;
	if (answer_decode(outcome, &r->arena, &o))
		st = o->reject && o->state == RPC_STATE_ABORTED ? ST_TABLE_GONE
		     : o->state == RPC_STATE_EXPIRED	     ? ST_TXN_EXPIRED
		     : o->state == RPC_STATE_ABORTED ? ST_TXN_ABORTED
		     : o->state == RPC_STATE_LOST    ? ST_LOST
						     : ST_TXN_STATE;
	request_status(c, r, st, "txn_id",
		       st == ST_TXN_STATE ? "the transaction is final" : status_info(st)->help);
}

static enum rpc_state open_state(const struct txn *x)
{
	return x->state == TXN_OPEN ? RPC_STATE_OPEN : RPC_STATE_SEALED;
}

static int32_t position_of(const struct txn *x)
{
	if (x->state != TXN_QUEUED)
		return 0;
	int32_t n = 0;
	for (struct list *l = x->table->queue.next; l != &x->table->queue; l = l->next) {
		if (l == &x->entry.node)
			return n;
		n++;
	}
	return n;
}

void finish_pending(struct core *c, struct request *r, const struct txn *x)
{
	struct rpc_outcome *o = arena_calloc(&r->arena, 1, sizeof *o);
	if (!o) {
		request_status(c, r, ST_TOO_LARGE, "", "the reply exceeds its limit");
		return;
	}
	o->txn_id = x->id.u;
	o->state = open_state(x);
	if (x->state == TXN_QUEUED || x->state == TXN_BATCHED) {
		o->has_queue_position = true;
		o->queue_position = position_of(x);
	}
	request_rpc(c, r, o);
}

enum rpc_state finish_state_of(enum txn_db_state s)
{
	static const enum rpc_state map[] = {
		[TXN_DB_OPEN] = RPC_STATE_OPEN,		  [TXN_DB_SEALED] = RPC_STATE_SEALED,
		[TXN_DB_COMMITTED] = RPC_STATE_COMMITTED, [TXN_DB_REJECTED] = RPC_STATE_REJECTED,
		[TXN_DB_ABORTED] = RPC_STATE_ABORTED,	  [TXN_DB_EXPIRED] = RPC_STATE_EXPIRED,
		[TXN_DB_LOST] = RPC_STATE_LOST,
	};
	ASSERT((size_t)s < ARRAY_SIZE(map));
	return map[s];
}

void finish_row(struct core *c, struct request *r, const struct txn_row *row)
{
	struct rpc_outcome *o = arena_calloc(&r->arena, 1, sizeof *o);
	if (!o) {
		request_status(c, r, ST_TOO_LARGE, "", "the reply exceeds its limit");
		return;
	}
	struct rpc_error *e = arena_calloc(&r->arena, 1, sizeof *e);
	if (!e) {
		request_status(c, r, ST_TOO_LARGE, "", "the reply exceeds its limit");
		return;
	}
	answer_row(row, e, o);
	request_rpc(c, r, o);
}

static bool same_fragments(struct request *r, const struct txn_row *row)
{
	const struct rpc_commit_once *m = r->in.u.once;
	size_t n = m->n_fragments;
	struct rpc_fragment_ref *refs = arena_calloc(&r->arena, n ? n : 1, sizeof *refs);
	struct bytes packed;
	for (size_t i = 0; refs && i < n; i++)
		refs[i] = (struct rpc_fragment_ref){.fragment_id = m->fragments[i].fragment_id,
						    .attempt = m->fragments[i].attempt,
						    .digest = m->fragments[i].digest};
	/* A row without digest is that of a transaction that ended open. */
	if (!refs || !frag_pack_refs(&r->arena, refs, n, &packed))
		return false;
	struct digest d = digest_sha256(packed);
	return !row->has_set_digest || digest_eq(&d, &row->set_digest);
}

/* A repeated CommitOnce or Commit must be the same one: the id alone does not open an outcome to
 * other content. */
static bool may_see(struct core *c, struct request *r, const struct txn_row *row)
{
	if (r->kind == EV_STATUS)
		return true;
	if (r->kind == EV_COMMIT_ONCE) {
		struct rpc_begin same = r->in.u.once->begin;
		same.ttl_ms = 0;
		struct buf b;
		buf_init(&b, c->conf.request_max_bytes);
		msg_encode(&rpc_record_begin, &same, &b);
		buf_putv(&b, r->in.principal);
		struct digest d = digest_sha256(buf_bytes(&b));
		bool ok = buf_ok(&b) && digest_eq(&d, &row->params);
		buf_fini(&b);
		return ok && same_fragments(r, row);
	}
	struct digest token = txn_token(c, row->txn, row->table, row->incarnation);
	struct bytes shown = r->kind == EV_STAGE    ? r->in.u.stage->lease_token
			     : r->kind == EV_SEAL   ? r->in.u.seal->lease_token
			     : r->kind == EV_COMMIT ? r->in.u.commit->lease_token
						    : r->in.u.abort->lease_token;
	return digest_eq_secret(shown, (struct bytes){token.b, sizeof token.b});
}

/* Stage and Seal repeated after the end: what was durable then is answered as it was then. */
static bool repeated(struct core *c, struct request *r, const struct txn_row *row)
{
	if (r->kind == EV_STAGE) {
		const struct rpc_fragment *f = &r->in.u.stage->fragment;
		struct digest d;
		if (!frag_sealed(row->seal, f->fragment_id, f->attempt, &d))
			return false;
		if (digest_eq(&d, &f->digest))
			stage_reply(c, r, f->fragment_id, f->attempt, &d, (struct strv){NULL, 0});
		else
			request_status(c, r, ST_DIGEST_CONFLICT, "fragment.digest",
				       "this attempt of the fragment was staged with other content");
		return true;
	}
	if (r->kind == EV_SEAL && row->has_set_digest) {
		const struct rpc_seal *m = r->in.u.seal;
		struct bytes packed;
		if (!frag_pack_refs(&r->arena, m->fragments, m->n_fragments, &packed))
			return false;
		struct digest d = digest_sha256(packed);
		if (digest_eq(&d, &row->set_digest))
			stage_seal_reply(c, r, &d);
		else
			request_status(c, r, ST_DIGEST_CONFLICT, "fragments",
				       "the transaction was sealed with other fragments");
		return true;
	}
	return false;
}

bool finish_from_rows(struct core *c, struct request *r, const struct sql_item_result *item)
{
	const struct txn_row *row = &item->row;
	if (!may_see(c, r, row)) {
		if (r->kind == EV_COMMIT_ONCE)
			request_status(c, r, ST_DIGEST_CONFLICT, "begin.txn_id",
				       "the id was used before with other parameters");
		else
			request_status(c, r, ST_TOKEN_MISMATCH, "lease_token",
				       "the token is not this transaction's");
		return true;
	}
	if (row->state == TXN_DB_OPEN || row->state == TXN_DB_SEALED)
		return false;
	if (repeated(c, r, row))
		return true;
	struct bytes outcome;
	const struct rpc_outcome *o;
	if (!answer_item(&r->arena, item, &outcome) || !answer_decode(outcome, &r->arena, &o))
		request_status(c, r, ST_INTERNAL, "", "the stored outcome does not decode");
	else if (r->kind == EV_STATUS)
		request_rpc(c, r, answer_noted(&r->arena, table_find(c, row->table), row, o));
	else
		finish_final(c, r, outcome);
	return true;
}

/* ------------------------------------------------------------------ CommitOnce repeated */

static void reread_answer(struct core *c, struct request *r, const struct sql_result *q)
{
	if (q->lost || core_sql_clean_failure(q)) {
		/* Its own statement had told that the transaction is there and has gone on. */
		request_status(c, r, r->sent ? ST_COMMIT_UNKNOWN : ST_UNAVAILABLE, "",
			       "PostgreSQL cannot be reached");
		return;
	}
	if (q->item.st != ST_OK) {
		if (r->late_err.st != ST_OK)
			request_fail(c, r, &r->late_err);
		else
			request_status(c, r, q->item.st, "begin.txn_id", "no such transaction");
		return;
	}
	if (finish_from_rows(c, r, &q->item))
		return;
	struct table *t = table_find(c, q->item.row.table);
	struct txn *x = txn_find(c, q->item.row.txn);
	if (!x && t && t->state == TABLE_READY && t->incarnation == q->item.row.incarnation) {
		txn_restore(c, t, &q->item);
		x = txn_find(c, q->item.row.txn);
	}
	if (r->late_err.st == ST_TABLE_HALTED && t) {
		finish_halted(c, r, t, q->item.row.commit_requested);
	} else if (x && x->state != TXN_NEW && x->state != TXN_OPEN) {
		r->txn = x;
		finish_wait_same(c, r);
	} else if (r->late_err.st != ST_OK) {
		request_fail(c, r, &r->late_err);
	} else {
		request_status(c, r, ST_TXN_STATE, "begin.txn_id",
			       "the id is an open transaction's");
	}
}

static void reread_done(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	if (!r->answered)
		reread_answer(c, r, ev->u.done.sql);
	request_let(r);
}

void finish_reread(struct core *c, struct request *r)
{
	request_hold(r);
	struct effect *e = core_emit(c, FX_SQL, reread_done, r);
	e->u.sql.kind = SQL_TXN_READ;
	e->u.sql.u.txn = (struct txn_id){r->in.u.once->begin.txn_id};
}

void finish_wait_same(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	struct txn_row row = x->row;
	row.txn = x->id;
	row.table = x->table->id;
	if (!may_see(c, r, &row)) {
		r->txn = NULL;
		request_status(c, r, ST_DIGEST_CONFLICT, "begin.txn_id",
			       "the id was used before with other parameters");
		return;
	}
	list_push_back(&x->waiters, &r->wait);
}

/* ------------------------------------------------------------------ Commit */

static void ask_send(struct core *c, struct txn *x);

static void ask_again(struct core *c, struct timer *timer)
{
	ask_send(c, CONTAINER_OF(timer, struct txn, timer));
}

/* Another daemon, or an earlier send, has made it final: a refusal would deny what may be committed. */
static bool gone_on(const struct sql_result *q)
{
	return q->item.has_row && q->item.row.state != TXN_DB_OPEN &&
	       q->item.row.state != TXN_DB_SEALED;
}

static void answer_by_row(struct core *c, struct request *r)
{
	if (!r->answered)
		request_read_row(c, r);
}

static void requested(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (!x) {
		request_let(r);
		return;
	}
	if (txn_ask_failed(x, q)) {
		/* It may be asked for by now, and then nobody else would queue it: the statement
		 * is repeated until it is answered, whether or not its client still waits. */
		core_timer(c, &x->timer, c->now_us + c->conf.retry_us, ask_again);
		return;
	}
	x->busy = NULL;
	x->asker = NULL;
	if (!core_sql_clean_failure(q) && q->item.st == ST_OK && x->state == TXN_SEALED) {
		x->row.commit_requested = true;
		txn_asked(x);
		if (!r->answered)
			list_push_back(&x->waiters, &r->wait);
		else
			r->txn = NULL;
		if (x->verified)
			txn_queue(c, x);
		else if (x->stats == 0)
			txn_verify(c, x);
		txn_turn(c, x);
		request_let(r);
		return;
	}
	r->txn = NULL;
	if (!core_sql_clean_failure(q) && (q->item.has_row || q->item.st == ST_TXN_UNKNOWN))
		txn_reread(c, x);
	if (core_sql_clean_failure(q))
		request_status(c, r, ST_OVERLOADED, "", "PostgreSQL cannot be reached");
	else if (gone_on(q))
		answer_by_row(c, r);
	else
		request_status(c, r, q->item.st, "txn_id", status_info(q->item.st)->help);
	txn_turn(c, x);
	request_let(r);
}

static void ask_send(struct core *c, struct txn *x)
{
	x->ask_paused = false;
	struct effect *e = core_emit(c, FX_SQL, requested, x->asker);
	e->u.sql.kind = SQL_TXN_REQUEST;
	e->u.sql.u.request = x->ask;
}

void finish_halted(struct core *c, struct request *r, const struct table *t, bool asked)
{
	/* What was asked for before is decided when the table is resumed. */
	request_status(c, r, asked ? ST_COMMIT_UNKNOWN : ST_TABLE_HALTED, "", t->halt.msg);
}

void finish_commit(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	struct err err = {0};
	switch (x->state) {
	case TXN_OPEN:
		r->txn = NULL;
		request_status(c, r, ST_TXN_STATE, "txn_id", "the transaction is not sealed");
		return;
	case TXN_QUEUED:
	case TXN_BATCHED:
	case TXN_SEALED:
		break;
	default:
		r->txn = NULL;
		request_status(c, r, ST_TXN_STATE, "txn_id", "the transaction is final");
		return;
	}
	if (x->table->state == TABLE_HALTED) {
		r->txn = NULL;
		finish_halted(c, r, x->table, x->row.commit_requested);
		return;
	}
	/* Under way; or restored, and its objects are being confirmed. */
	if (x->state != TXN_SEALED || x->row.commit_requested) {
		list_push_back(&x->waiters, &r->wait);
		return;
	}
	if (x->table->n_queue >= c->conf.queue_max) {
		r->txn = NULL;
		request_status(c, r, ST_OVERLOADED, "", "the table's queue is full");
		return;
	}
	const struct rpc_commit *m = r->in.u.commit;
	struct sql_request_item *item = arena_calloc(&x->arena, 1, sizeof *item);
	enum status st = finish_summary(x, m->summary, m->n_summary, &err);
	if (st == ST_OK && !item)
		st = err_set(&err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	if (st != ST_OK) {
		r->txn = NULL;
		request_fail(c, r, &err);
		return;
	}
	*item = (struct sql_request_item){.txn = x->id, .summary = x->row.summary};
	x->busy = x->asker = r;
	x->ask_lost = false;
	x->ask = item;
	r->sent = true;
	request_hold_txn(r, x);
	ask_send(c, x);
}

/* ------------------------------------------------------------------ Abort */

static void aborted(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (!x) {
		request_let(r);
		return;
	}
	x->busy = NULL;
	struct bytes outcome;
	bool ok = !q->lost && !core_sql_clean_failure(q) && q->item.st == ST_OK &&
		  q->item.has_row && q->item.row.state == TXN_DB_ABORTED;
	if (ok && answer_item(&x->arena, &q->item, &outcome)) {
		if (!r->answered)
			list_push_back(&x->waiters, &r->wait);
		txn_final(c, x, outcome);
		request_let(r);
		return;
	}
	r->txn = NULL;
	if (!q->lost && !core_sql_clean_failure(q) && q->item.has_row)
		txn_reread(c, x);
	if (!r->answered) {
		if (q->lost)
			request_status(c, r, ST_TIMEOUT, "",
				       "PostgreSQL's answer was lost; repeat");
		else if (core_sql_clean_failure(q))
			request_status(c, r, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
		else if (gone_on(q))
			answer_by_row(c, r);
		else
			request_status(c, r, ST_TXN_STATE, "txn_id",
				       "the transaction is no longer open");
	}
	txn_turn(c, x);
	request_let(r);
}

void finish_abort(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	switch (x->state) {
	case TXN_OPEN: {
		x->busy = r;
		r->sent = true;
		request_hold(r);
		struct effect *e = core_emit(c, FX_SQL, aborted, r);
		e->u.sql.kind = SQL_TXN_END;
		e->u.sql.u.end = (struct sql_end_item){x->id, TXN_DB_ABORTED};
		return;
	}
	case TXN_SEALED:
		/* Only a batch row makes a sealed transaction final: the abort takes its turn in
		 * the table's queue. */
		r->sent = true;
		list_push_back(&x->waiters, &r->wait);
		if (x->stats == 0 && !x->row.commit_requested) {
			x->wish = PLAN_ABORT;
			txn_queue(c, x);
		} else {
			x->wish = PLAN_ABORT;
		}
		return;
	case TXN_QUEUED:
		if (x->wish == PLAN_COMMIT)
			x->wish = PLAN_ABORT;
		r->sent = true;
		list_push_back(&x->waiters, &r->wait);
		return;
	case TXN_BATCHED:
		/* Too late to change what is being decided; the outcome tells who won. */
		r->sent = true;
		list_push_back(&x->waiters, &r->wait);
		return;
	default:
		r->txn = NULL;
		request_status(c, r, ST_TXN_STATE, "txn_id", "the transaction is final");
	}
}

/* ------------------------------------------------------------------ Status */

void finish_status(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	r->txn = NULL;
	finish_pending(c, r, x);
}
