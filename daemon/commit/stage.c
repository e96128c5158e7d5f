/* Staging fragments and sealing their set. */
#include "daemon/commit/state.h"

#include "daemon/commit/intake/intake.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

/* Whether an SQL item's completion settles the request; if not, the request was answered. A lost
 * reply is repeated with the same ids by whoever asked: the statement is idempotent. */
bool stage_settled(struct core *c, struct request *r, const struct sql_result *q)
{
	if (q->lost) {
		request_status(c, r, ST_TIMEOUT, "", "PostgreSQL's answer was lost; repeat");
		return false;
	}
	if (core_sql_clean_failure(q)) {
		request_status(c, r, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
		return false;
	}
	return true;
}

/* Stage and Seal renew the time to live; what memory knows follows the row. */
static void renewed(struct txn *x, const struct sql_item_result *item)
{
	if (item->has_row)
		x->row.expires_pg_ms = item->row.expires_pg_ms;
}

void stage_item_error(struct core *c, struct request *r, const struct sql_item_result *item)
{
	struct err err = {0};
	bool spent = r->frag && frag_among(r->frag->spent, r->frag->n_spent, item->path);
	const char *path = spent ? "deletes.blob.path" : "data_files.path";
	switch (item->st) {
	case ST_DUPLICATE_PATH:
		err_set(&err, item->st, path,
			"the path is staged by another transaction: %.*s", STRV_ARG(item->path));
		break;
	case ST_PATH_CONDEMNED:
		err_set(&err, item->st, path, "the path is being deleted: %.*s",
			STRV_ARG(item->path));
		break;
	case ST_TXN_STATE:
		if (item->has_row && item->row.batch_no == TXN_BATCH_GONE)
			err_set(&err, ST_TABLE_GONE, "table", "%s",
				status_info(ST_TABLE_GONE)->help);
		else
			err_set(&err, item->st, "txn_id", "the transaction is no longer open");
		break;
	default:
		err_set(&err, item->st, "txn_id", "%s", status_info(item->st)->help);
	}
	request_fail(c, r, &err);
}

/* ------------------------------------------------------------------ Stage */

static void stage_over(struct core *c, struct request *r)
{
	struct txn *x = request_txn(r);
	r->txn = NULL;
	if (!x) {
		request_ended(c, r);
	} else {
		ASSERT(x->stages > 0);
		x->stages--;
		txn_turn(c, x);
	}
}

void stage_reply(struct core *c, struct request *r, struct strv id, int32_t attempt,
		 const struct digest *d, struct strv warning)
{
	struct rpc_stage_reply *out = arena_calloc(&r->arena, 1, sizeof *out);
	if (!out || !arena_strv(&r->arena, id, &out->fragment_id)) {
		request_status(c, r, ST_TOO_LARGE, "", "the reply exceeds its limit");
		return;
	}
	out->attempt = attempt;
	out->digest = *d;
	out->doomed = RPC_DOOMED_NONE;
	if (warning.n) {
		out->warnings = arena_calloc(&r->arena, 1, sizeof *out->warnings);
		out->n_warnings = out->warnings && arena_strv(&r->arena, warning, out->warnings);
	}
	request_rpc(c, r, out);
}

/* Refused because the row has moved on: memory follows it. */
static void item_refused(struct core *c, struct request *r, struct txn *x,
			 const struct sql_item_result *item)
{
	stage_item_error(c, r, item);
	if (item->st == ST_TXN_UNKNOWN || (item->has_row && item->row.state != TXN_DB_OPEN))
		txn_reread(c, x);
}

static void staged(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (x && stage_settled(c, r, q)) {
		txn_renew(x, &q->item);
		if (q->item.st != ST_OK) {
			item_refused(c, r, x, &q->item);
		} else {
			r->frag->durable = true;
			renewed(x, &q->item);
			frag_keep(x, r->frag);
			stage_reply(c, r, r->frag->id, r->frag->attempt, &r->frag->digest,
				    r->frag->warning);
		}
	}
	stage_over(c, r);
	request_let(r);
}

struct sql_stage_item *stage_item(struct txn *x, struct frag *f)
{
	struct sql_stage_item *item = arena_calloc(&x->arena, 1, sizeof *item);
	size_t n = frag_n_objects(f), all = n + f->n_spent;
	struct strv *paths = arena_calloc(&x->arena, all ? all : 1, sizeof *paths);
	if (!item || !paths)
		return NULL;
	for (size_t i = 0; i < n; i++)
		paths[i] = frag_object(f, i)->path;
	for (size_t i = 0; i < f->n_spent; i++)
		paths[n + i] = f->spent[i];
	*item = (struct sql_stage_item){
		.row = {.txn = x->id,
			.fragment_id = f->id,
			.attempt = f->attempt,
			.digest = f->stored,
			.payload = f->payload},
		.paths = paths,
		.n_paths = all,
	};
	return item;
}

/* Runs until the files of the read snapshot are there, then stores the fragment. */
static void stage_run(struct core *c, struct gather *g)
{
	struct request *r = CONTAINER_OF(g, struct request, gather);
	struct txn *x = request_txn(r);
	struct err err = {0};
	if (r->answered || !x) {
		stage_over(c, r);
		request_let(r);
		return;
	}
	if (r->blob_err.st == ST_OK && intake_join(x, r->frag, &r->blob_err) != ST_OK)
		err_prefix(&r->blob_err, "fragment");
	if (r->blob_err.st != ST_OK) {
		request_fail(c, r, &r->blob_err);
		stage_over(c, r);
		request_let(r);
		return;
	}
	enum cache_answer ans =
		frag_subtract(c, x, x->table->meta, r->frag, &r->needs, &err);
	if (ans == CACHE_WAIT) {
		core_gather(c, g, &r->needs);
		return;
	}
	needs_release(&r->needs);
	struct sql_stage_item *item = NULL;
	if (ans == CACHE_HAVE) {
		if (frag_pack(x, r->frag))
			item = stage_item(x, r->frag);
		if (!item)
			err_set(&err, ST_TOO_LARGE, "",
				"the transaction exceeds the memory limit");
	}
	if (!item) {
		err_prefix(&err, "fragment");
		request_fail(c, r, &err);
		stage_over(c, r);
		request_let(r);
		return;
	}
	r->sent = true;
	txn_weigh(c, x);
	struct effect *e = core_emit(c, FX_SQL, staged, r);
	e->u.sql.kind = SQL_TXN_STAGE;
	e->u.sql.u.stage = item;
}

static void state_error(struct core *c, struct request *r, const struct txn *x)
{
	struct err err = {0};
	err_set(&err, ST_TXN_STATE, "txn_id", "the transaction is %s",
		x->state == TXN_FINAL ? "final" : "sealed");
	request_fail(c, r, &err);
}

/* Another attempt that wrote the same files, or the same attempt with other content. */
static bool stage_known(struct core *c, struct request *r, struct txn *x)
{
	const struct rpc_fragment *in = &r->in.u.stage->fragment;
	struct frag *f = frag_find(x, in->fragment_id, in->attempt);
	if (!f)
		return false;
	if (digest_eq(&f->digest, &in->digest))
		stage_reply(c, r, f->id, f->attempt, &f->digest, f->warning);
	else
		request_status(c, r, ST_DIGEST_CONFLICT, "fragment.digest",
			       "this attempt of the fragment was staged with other content");
	r->txn = NULL;
	return true;
}

void stage_stage(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	struct err err = {0};
	if (stage_known(c, r, x))
		return;
	if (x->state != TXN_OPEN) {
		state_error(c, r, x);
		r->txn = NULL;
		return;
	}
	if (txn_full(c)) {
		request_status(c, r, ST_OVERLOADED, "", "open transactions hold too much memory");
		r->txn = NULL;
		return;
	}
	enum status st =
		frag_decode(x->table->meta, x, &r->in.u.stage->fragment, &r->frag, &err);
	txn_weigh(c, x);
	if (st != ST_OK) {
		err_prefix(&err, "fragment");
		request_fail(c, r, &err);
		r->txn = NULL;
		return;
	}
	x->stages++;
	request_hold_txn(r, x);
	r->gather.run = stage_run;
	blob_fetch(c, r, r->frag, 0);
	intake_fetch(c, r, x, r->frag, 0);
	if (!r->blobs)
		stage_run(c, &r->gather);
}

/* ------------------------------------------------------------------ Seal */

static void seal_over(struct core *c, struct request *r)
{
	struct txn *x = request_txn(r);
	r->txn = NULL;
	if (!x) {
		request_ended(c, r);
	} else {
		x->busy = NULL;
		txn_turn(c, x);
	}
}

void stage_seal_reply(struct core *c, struct request *r, const struct digest *d)
{
	struct rpc_seal_reply *out = arena_calloc(&r->arena, 1, sizeof *out);
	if (!out) {
		request_status(c, r, ST_TOO_LARGE, "", "the reply exceeds its limit");
		return;
	}
	out->set_digest = *d;
	request_rpc(c, r, out);
}

static void sealed(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (x && stage_settled(c, r, q)) {
		txn_renew(x, &q->item);
		if (q->item.st != ST_OK) {
			item_refused(c, r, x, &q->item);
		} else {
			x->verified = true;
			renewed(x, &q->item);
			txn_move(c, x, TXN_SEALED);
			stage_seal_reply(c, r, &x->row.set_digest);
		}
	}
	seal_over(c, r);
	request_let(r);
}

/* Files of attempts that did not win: nobody can commit them any more. */
static bool losers(struct txn *x, const struct strv **ret_v, size_t *ret_n)
{
	size_t most = 0, n = 0;
	for (struct list *l = x->frags.next; l != &x->frags; l = l->next) {
		struct frag *f = LIST_ITEM(l, struct frag, node);
		most += frag_n_objects(f) + f->n_spent;
		f->won = false;
	}
	for (size_t i = 0; i < x->n_winners; i++)
		x->winners[i]->won = true;
	struct strv *v = arena_calloc(&x->arena, most ? most : 1, sizeof *v);
	if (!v)
		return false;
	size_t n_objects = txn_n_objects(x), n_kept = n_objects + x->n_spent;
	struct strv *kept = base_calloc(n_kept ? n_kept : 1, sizeof *kept);
	for (size_t i = 0; i < n_objects; i++)
		kept[i] = txn_object(x, i)->path;
	for (size_t i = 0; i < x->n_spent; i++)
		kept[n_objects + i] = x->spent[i];
	(void)frag_twice(kept, n_kept); /* sorts */
	for (struct list *l = x->frags.next; l != &x->frags; l = l->next) {
		const struct frag *f = LIST_ITEM(l, struct frag, node);
		for (size_t i = 0; !f->won && i < frag_n_objects(f); i++)
			if (!frag_among(kept, n_kept, frag_object(f, i)->path))
				v[n++] = frag_object(f, i)->path;
		for (size_t i = 0; !f->won && i < f->n_spent; i++)
			if (!frag_among(kept, n_kept, f->spent[i]))
				v[n++] = f->spent[i];
	}
	base_free(kept);
	*ret_v = v;
	*ret_n = frag_once(v, n);
	return true;
}

static void seal_send(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	struct sql_seal_item *item = arena_calloc(&x->arena, 1, sizeof *item);
	bool ok = item != NULL;
	if (ok) {
		*item = (struct sql_seal_item){
			.txn = x->id, .set_digest = x->row.set_digest, .seal = x->row.seal};
		ok = losers(x, &item->losers, &item->n_losers);
	}
	if (!ok) {
		request_status(c, r, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
		seal_over(c, r);
		request_let(r);
		return;
	}
	r->sent = true;
	struct effect *e = core_emit(c, FX_SQL, sealed, r);
	e->u.sql.kind = SQL_TXN_SEAL;
	e->u.sql.u.seal = item;
}

struct stat_ctx {
	struct request *r;
	struct txn *x;
	const struct content_file *f;
};

static void seal_stat(struct core *c, void *ctx, const struct event *ev)
{
	struct stat_ctx *s = ctx;
	struct request *r = s->r;
	txn_stat_finding(s->f, ev->u.done.stat, &r->stat_err);
	struct txn *x = s->x;
	core_unkeep(s);
	if (--r->stats == 0) {
		if (r->answered || !request_txn(r)) {
			seal_over(c, r);
			request_let(r);
		} else if (r->stat_err.st != ST_OK) {
			if (r->stat_err.st == ST_IO)
				r->stat_err.st = ST_UNAVAILABLE;
			request_fail(c, r, &r->stat_err);
			seal_over(c, r);
			request_let(r);
		} else {
			seal_send(c, r);
		}
	}
	txn_let(x);
}

static enum status seal_totals(const struct rpc_seal *m, struct frag *const *w, size_t n,
			       struct err *err)
{
	int64_t files = 0, rows = 0, deleted = 0;
	for (size_t i = 0; i < n; i++) {
		files += (int64_t)w[i]->n_files;
		rows += w[i]->rows;
		deleted += w[i]->positions;
	}
	if (m->expected_files != RPC_EXPECTED_NONE && m->expected_files != files)
		return err_set(err, ST_BAD_REQUEST, "expected_files",
			       "%lld expected, the fragments have %lld",
			       (long long)m->expected_files, (long long)files);
	if (m->expected_rows != RPC_EXPECTED_NONE && m->expected_rows != rows)
		return err_set(err, ST_BAD_REQUEST, "expected_rows",
			       "%lld expected, the fragments have %lld",
			       (long long)m->expected_rows, (long long)rows);
	if (m->expected_deleted != RPC_EXPECTED_NONE && m->expected_deleted != deleted)
		return err_set(err, ST_BAD_REQUEST, "expected_deleted",
			       "%lld expected, the fragments have %lld",
			       (long long)m->expected_deleted, (long long)deleted);
	return ST_OK;
}

enum status stage_check_winners(struct frag *const *w, size_t n, struct err *err)
{
	size_t files = 0, deletes = 0, at = 0;
	for (size_t i = 0; i < n; i++) {
		files += frag_n_objects(w[i]);
		deletes += w[i]->n_deletes;
	}
	if (files == 0 && deletes == 0)
		return err_set(err, ST_BAD_REQUEST, "fragments", "nothing is staged");
	struct strv *v = base_calloc(n > files ? n : files, sizeof *v);
	for (size_t i = 0; i < n; i++)
		v[i] = w[i]->id;
	enum status st = ST_OK;
	ptrdiff_t found = frag_twice(v, n);
	if (found >= 0)
		st = err_set(err, ST_BAD_REQUEST, "fragments", "fragment %.*s is named twice",
			     STRV_ARG(v[found]));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < frag_n_objects(w[i]); k++)
			v[at++] = frag_object(w[i], k)->path;
	if (st == ST_OK && (found = frag_twice(v, files)) >= 0)
		st = err_set(err, ST_DUPLICATE_PATH, "fragments", "two fragments bring %.*s",
			     STRV_ARG(v[found]));
	/* One file may hold the vectors of many tasks, but no rows. */
	for (size_t i = 0; st == ST_OK && i < n; i++)
		for (size_t k = 0; st == ST_OK && k < w[i]->n_spent; k++)
			if (frag_among(v, files, w[i]->spent[k]))
				st = err_set(err, ST_DUPLICATE_PATH, "fragments",
					     "a data file is named as a file of vectors: %.*s",
					     STRV_ARG(w[i]->spent[k]));
	base_free(v);
	return st;
}

static enum status seal_prepare(struct core *c, struct request *r, struct txn *x, struct err *err)
{
	const struct rpc_seal *m = r->in.u.seal;
	struct frag **w = arena_calloc(&x->arena, m->n_fragments ? m->n_fragments : 1,
				       sizeof(struct frag *));
	if (!w)
		return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	for (size_t i = 0; i < m->n_fragments; i++) {
		const struct rpc_fragment_ref *ref = &m->fragments[i];
		w[i] = frag_find(x, ref->fragment_id, ref->attempt);
		if (!w[i] || !digest_eq(&w[i]->digest, &ref->digest)) {
			enum status st = err_set(
				err, w[i] ? ST_DIGEST_CONFLICT : ST_FRAGMENT_MISSING, "",
				"fragment %.*s attempt %d %s", STRV_ARG(ref->fragment_id),
				ref->attempt,
				w[i] ? "was staged with other content" : "was not staged");
			err_prefix(err, "fragments[%zu]", i);
			return st;
		}
	}
	enum status st = stage_check_winners(w, m->n_fragments, err);
	if (st == ST_OK)
		st = seal_totals(m, w, m->n_fragments, err);
	if (st == ST_OK)
		st = txn_seal(c, x, w, m->n_fragments, err);
	if (st == ST_OK && !frag_pack_seal(&x->arena, w, m->n_fragments, &x->row.seal))
		st = err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	return st;
}

void stage_seal(struct core *c, struct request *r)
{
	struct txn *x = r->txn;
	struct err err = {0};
	if (x->state != TXN_OPEN) {
		/* Sealed before: the same set gets the same answer. */
		const struct rpc_seal *m = r->in.u.seal;
		struct bytes packed;
		bool same = x->row.has_set_digest &&
			    frag_pack_refs(&r->arena, m->fragments, m->n_fragments, &packed);
		if (same) {
			struct digest d = digest_sha256(packed);
			same = digest_eq(&d, &x->row.set_digest);
		}
		if (same)
			stage_seal_reply(c, r, &x->row.set_digest);
		else
			request_status(c, r, ST_DIGEST_CONFLICT, "fragments",
				       "the transaction was sealed with other fragments");
		r->txn = NULL;
		return;
	}
	if (seal_prepare(c, r, x, &err) != ST_OK) {
		request_fail(c, r, &err);
		r->txn = NULL;
		return;
	}
	txn_weigh(c, x);
	x->row.set_digest = digest_sha256(x->row.seal);
	x->row.has_set_digest = true;
	x->busy = r;
	request_hold_txn(r, x);
	r->stats = txn_n_objects(x);
	if (r->stats == 0) {
		seal_send(c, r);
		return;
	}
	for (size_t i = 0; i < txn_n_objects(x); i++) {
		struct stat_ctx *s = core_keep(c, sizeof *s, NULL);
		*s = (struct stat_ctx){r, x, txn_object(x, i)};
		txn_hold(x);
		struct effect *e = core_emit(c, FX_STAT, seal_stat, s);
		e->u.path = s->f->path;
	}
}
