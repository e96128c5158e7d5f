/* Transactions in memory: their states, turns, verification and end. */
#include <stdlib.h>

#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"

#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/intake/intake.h"

#include "proto/dv/bitmap64.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

#define TXN_BUCKETS 4096

static size_t slot_of(struct txn_id id)
{
	return (size_t)bytes_hash((struct bytes){id.u.b, 16}) % TXN_BUCKETS;
}

struct txn *txn_find(struct core *c, struct txn_id id)
{
	struct txn *x = c->txns[slot_of(id)];
	while (x && !uuid_eq(x->id.u, id.u))
		x = x->next;
	return x;
}

struct txn *txn_new(struct core *c, struct table *t, struct txn_id id)
{
	struct txn *x = base_calloc(1, sizeof *x);
	x->id = id;
	x->table = t;
	x->state = TXN_NEW;
	arena_init(&x->arena, c->conf.request_max_bytes);
	list_init(&x->frags);
	list_init(&x->turn);
	list_init(&x->waiters);
	list_init(&x->entry.node);
	list_init(&x->ghost);
	list_init(&x->order);
	x->entry.kind = ENTRY_TXN;
	x->entry.txn = x;
	x->next = c->txns[slot_of(id)];
	c->txns[slot_of(id)] = x;
	c->n_txns++;
	return x;
}

void txn_weigh(struct core *c, struct txn *x)
{
	size_t now = x->arena.used + x->set_bytes;
	c->txn_bytes += now - x->weighed;
	x->weighed = now;
}

static void free_now(struct txn *x)
{
	list_remove(&x->ghost);
	for (size_t i = 0; i < x->n_sets; i++)
		bitmap64_free(x->sets[i]);
	base_free(x->sets);
	for (size_t i = 0; i < x->n_manifests; i++)
		adopt_free(x->manifests[i]);
	base_free(x->manifests);
	base_free(x->frag_slots);
	arena_fini(&x->arena);
	base_free(x);
}

void txn_hold(struct txn *x)
{
	x->holds++;
}

void txn_let(struct txn *x)
{
	ASSERT(x->holds > 0);
	if (--x->holds == 0 && x->gone)
		free_now(x);
}

void txn_free(struct core *c, struct txn *x)
{
	struct txn **p = &c->txns[slot_of(x->id)];
	while (*p != x)
		p = &(*p)->next;
	*p = x->next;
	c->n_txns--;
	c->txn_bytes -= x->weighed;
	list_remove(&x->entry.node);
	list_remove(&x->order);
	core_timer_stop(&x->timer);
	if (x->ask_paused)
		request_let(x->asker);
	x->ask_paused = false;
	x->gone = true;
	if (x->holds == 0)
		free_now(x);
	else
		list_push_back(&c->ghost_txns, &x->ghost);
}

void txn_free_all(struct core *c)
{
	for (size_t i = 0; i < TXN_BUCKETS; i++)
		while (c->txns[i])
			txn_free(c, c->txns[i]);
	while (!list_empty(&c->ghost_txns))
		free_now(LIST_ITEM(c->ghost_txns.next, struct txn, ghost));
}

void txn_move(struct core *c, struct txn *x, enum txn_state to)
{
	static const struct {
		enum txn_state from, to;
	} moves[] = {
#define MOVE(from, event, to, step) {TXN_##from, TXN_##to},
#include "daemon/commit/txn.tbl"
	};
	(void)c;
	bool allowed = false;
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		allowed |= moves[i].from == x->state && moves[i].to == to;
	ASSERT(allowed);
	x->state = to;
}

/* A repeated Begin must get the same token, also after a restart: it is derived from what both
 * know, keyed by a secret that only the database holds. */
struct digest txn_token(const struct core *c, struct txn_id id, struct table_id table,
			int64_t incarnation)
{
	uint8_t text[40];
	memcpy(text, id.u.b, 16);
	memcpy(text + 16, table.u.b, 16);
	put_u64be(text + 32, (uint64_t)incarnation);
	return digest_hmac((struct bytes){c->secret.b, sizeof c->secret.b},
			   (struct bytes){text, sizeof text});
}

enum status txn_fill(struct core *c, struct txn *x, const struct rpc_begin *m,
		     struct strv principal, struct err *err)
{
	struct txn_row *row = &x->row;
	*row = (struct txn_row){.txn = x->id,
				.table = x->table->id,
				.incarnation = x->table->incarnation,
				.kind = (int32_t)m->kind,
				.isolation = (int32_t)m->isolation,
				.has_read_snapshot = m->has_read_snapshot_id,
				.read_snapshot = m->read_snapshot_id,
				.ttl_ms = m->ttl_ms > 0 ? m->ttl_ms : c->conf.ttl_default_ms,
				.state = TXN_DB_OPEN};
	if (row->ttl_ms > c->conf.ttl_max_ms)
		row->ttl_ms = c->conf.ttl_max_ms;
	struct buf b;
	buf_init(&b, c->conf.request_max_bytes);
	msg_encode(&rpc_record_begin, m, &b);
	bool ok = buf_ok(&b) && arena_bytes(&x->arena, buf_bytes(&b), &row->begin) &&
		  arena_strv(&x->arena, m->ref, &row->ref) &&
		  arena_strv(&x->arena, principal, &row->principal);
	/* A repeated Begin must repeat everything but its time to live. */
	struct rpc_begin same = *m;
	same.ttl_ms = 0;
	buf_clear(&b);
	msg_encode(&rpc_record_begin, &same, &b);
	buf_putv(&b, principal);
	ok = ok && buf_ok(&b);
	row->params = digest_sha256(buf_bytes(&b));
	buf_fini(&b);
	if (!ok)
		return err_set(err, ST_TOO_LARGE, "", "the message exceeds the memory limit");
	x->ordered = m->ordered;
	x->format_version = metadata_format_version(x->table->meta);
	x->token = txn_token(c, x->id, x->table->id, row->incarnation);
	return ST_OK;
}

/* ------------------------------------------------------------------ turns */

/* Stages of different fragments go in parallel; Seal, Commit and Abort wait for them and for each
 * other. */
void txn_turn(struct core *c, struct txn *x)
{
	if (x->turning)
		return; /* called from inside: the loop below goes on */
	x->turning = true;
	txn_hold(x);
	while (!x->busy && !x->gone && !list_empty(&x->turn)) {
		struct request *r = LIST_ITEM(x->turn.next, struct request, wait);
		if (x->state == TXN_NEW)
			break;
		bool stage = r->kind == EV_STAGE;
		if (!stage && r->txn && x->stages > 0)
			break;
		list_remove(&r->wait);
		if (r->answered)
			continue;
		if (!r->txn) {
			/* It waited for Begin: the gates come first. */
			request_run(c, r);
			continue;
		}
		switch (r->kind) {
		case EV_STAGE:
			stage_stage(c, r);
			break;
		case EV_SEAL:
			stage_seal(c, r);
			break;
		case EV_COMMIT:
			finish_commit(c, r);
			break;
		case EV_ABORT:
			finish_abort(c, r);
			break;
		default:
			ASSERT_NEVER("no turn for this kind");
		}
	}
	x->turning = false;
	txn_let(x);
}

/* ------------------------------------------------------------------ sealing */

static int by_path(const void *a, const void *b)
{
	const struct plan_delete *x = a, *y = b;
	return strv_cmp(x->data_file, y->data_file);
}

static void own_set(struct txn *x, struct bitmap64 *set)
{
	if (x->n_sets == x->cap_sets) {
		x->cap_sets = x->cap_sets ? x->cap_sets * 2 : 8;
		x->sets = base_realloc_array(x->sets, x->cap_sets, sizeof(struct bitmap64 *));
	}
	x->sets[x->n_sets++] = set;
	x->set_bytes += bitmap64_memory(set);
}

void txn_own_adopted(struct txn *x, struct adopted *own_a)
{
	if (x->n_manifests == x->cap_manifests) {
		x->cap_manifests = x->cap_manifests ? x->cap_manifests * 2 : 4;
		x->manifests = base_realloc_array(x->manifests, x->cap_manifests,
						  sizeof(struct adopted *));
	}
	x->manifests[x->n_manifests++] = own_a;
	x->set_bytes += own_a->arena.used;
}

void txn_own_set(struct txn *x, struct bitmap64 *own_bits)
{
	own_set(x, own_bits);
}

/* Two tasks may delete from one data file: their positions are united. The rows count as moved when
 * one of the two says so. */
static enum status merge_deletes(struct txn *x, size_t *ret_n, struct err *err)
{
	size_t n = 0;
	for (size_t i = 0; i < x->n_winners; i++)
		n += x->winners[i]->n_deletes;
	x->merged = arena_calloc(&x->arena, n ? n : 1, sizeof *x->merged);
	if (!x->merged)
		return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	size_t at = 0;
	for (size_t i = 0; i < x->n_winners; i++)
		for (size_t k = 0; k < x->winners[i]->n_deletes; k++)
			x->merged[at++] = x->winners[i]->deletes[k];
	if (n)
		qsort(x->merged, n, sizeof *x->merged, by_path);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		struct plan_delete *last = kept ? &x->merged[kept - 1] : NULL;
		if (!last || !strv_eq(last->data_file, x->merged[i].data_file)) {
			x->merged[kept++] = x->merged[i];
			continue;
		}
		struct bitmap64 *both = bitmap64_clone(last->positions);
		own_set(x, both);
		enum status st = bitmap64_union(both, &x->merged[i].positions, 1, err);
		if (st != ST_OK)
			return st;
		last->positions = both;
		last->dead = last->dead && x->merged[i].dead;
	}
	*ret_n = kept;
	return ST_OK;
}

const struct content_file *txn_object(const struct txn *x, size_t i)
{
	if (i < x->n_files)
		return &x->files[i];
	i -= x->n_files;
	return i < x->n_delete_files ? &x->delete_files[i].file
				     : &x->lists[i - x->n_delete_files];
}

size_t txn_n_objects(const struct txn *x)
{
	return x->n_files + x->n_delete_files + x->n_adopted;
}

enum status txn_seal(struct core *c, struct txn *x, struct frag **winners, size_t n,
		     struct err *err)
{
	(void)c;
	size_t files = 0, delete_files = 0, spent = 0, manifests = 0;
	x->winners = winners;
	x->n_winners = n;
	enum status st = merge_deletes(x, &x->n_merged, err);
	if (st != ST_OK)
		return st;
	for (size_t i = 0; i < n; i++) {
		files += winners[i]->n_files;
		delete_files += winners[i]->n_delete_files;
		manifests += winners[i]->n_manifests;
	}
	x->files = arena_calloc(&x->arena, files ? files : 1, sizeof *x->files);
	x->schema_ids = arena_calloc(&x->arena, files ? files : 1, sizeof *x->schema_ids);
	x->delete_files = arena_calloc(&x->arena, delete_files ? delete_files : 1,
				       sizeof *x->delete_files);
	x->adopted = arena_calloc(&x->arena, manifests ? manifests : 1, sizeof *x->adopted);
	x->lists = arena_calloc(&x->arena, manifests ? manifests : 1, sizeof *x->lists);
	if (!x->files || !x->schema_ids || !x->delete_files || !x->adopted || !x->lists)
		return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	x->n_files = x->n_delete_files = x->n_adopted = 0;
	x->rows_updated = 0;
	for (size_t i = 0; i < n; i++) {
		const struct frag *f = winners[i];
		for (size_t k = 0; k < f->n_manifests; k++) {
			struct plan_adopted *ad = &x->adopted[x->n_adopted];
			x->lists[x->n_adopted++] = f->manifests[k].object;
			*ad = f->adopted[k];
			ad->first += x->n_files;
		}
		for (size_t k = 0; k < f->n_files; k++) {
			x->files[x->n_files] = f->files[k];
			x->schema_ids[x->n_files++] = f->schema_ids[k];
		}
		for (size_t k = 0; k < f->n_delete_files; k++)
			x->delete_files[x->n_delete_files++] = f->delete_files[k];
		x->rows_updated += f->rows_updated;
		spent += f->n_spent;
	}
	x->spent = arena_calloc(&x->arena, spent ? spent : 1, sizeof *x->spent);
	if (!x->spent)
		return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
	x->n_spent = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < winners[i]->n_spent; k++)
			x->spent[x->n_spent++] = winners[i]->spent[k];
	x->n_spent = frag_once(x->spent, x->n_spent);
	/* Nothing but a pure deletion may leave its rows dead: anything that brings files may have
	 * written the rows again. */
	bool pure = x->row.kind == RPC_KIND_DELETE && x->n_files == 0;
	for (size_t i = 0; i < x->n_merged; i++)
		x->merged[i].dead = x->merged[i].dead && pure;
	return ST_OK;
}

/* ------------------------------------------------------------------ verification */

static void verified(struct core *c, struct txn *x)
{
	x->verified = true;
	if (x->refused.st == ST_IO) {
		/* The store did not say: ask again, do not judge. */
		x->refused = (struct err){0};
		x->verified = false;
		core_timer(c, &x->timer, c->now_us + c->conf.retry_us, txn_verify_again);
		return;
	}
	txn_queue(c, x);
}

struct stat_ctx {
	struct txn *x;
	const struct content_file *f;
};

static void stat_done(struct core *c, void *ctx, const struct event *ev)
{
	struct stat_ctx *s = ctx;
	struct txn *x = s->x;
	const struct stat_result *r = ev->u.done.stat;
	if (!x->gone) {
		txn_stat_finding(s->f, r, &x->refused);
		if (--x->stats == 0)
			verified(c, x);
	}
	core_unkeep(s);
	txn_let(x);
}

void txn_stat_finding(const struct content_file *f, const struct stat_result *r, struct err *err)
{
	if (MUTANT("objects-unverified"))
		return;
	const char *files = f->content == CONTENT_DATA ? "data_files" : "delete_files";
	/* A certain finding outranks an uncertain one. */
	if (err->st != ST_OK && err->st != ST_IO)
		return;
	if (r->err.st == ST_NOT_FOUND)
		err_set(err, ST_FILE_MISSING, "path", "no such object: %.*s", STRV_ARG(f->path));
	else if (r->err.st == ST_PATH_OUTSIDE)
		*err = r->err;
	else if (r->err.st != ST_OK)
		err_set(err, ST_IO, "path", "%s", r->err.msg);
	else if (r->size != f->file_size)
		err_set(err, ST_SIZE_MISMATCH, "file_size",
			"stated %lld bytes, the object has %lld: %.*s", (long long)f->file_size,
			(long long)r->size, STRV_ARG(f->path));
	else
		return;
	if (r->err.st != ST_PATH_OUTSIDE)
		err_prefix(err, "%s", files);
}

void txn_verify_again(struct core *c, struct timer *t)
{
	txn_verify(c, CONTAINER_OF(t, struct txn, timer));
}

void txn_verify(struct core *c, struct txn *x)
{
	ASSERT(x->state == TXN_SEALED && x->stats == 0);
	x->stats = txn_n_objects(x);
	if (x->stats == 0) {
		verified(c, x);
		return;
	}
	for (size_t i = 0; i < txn_n_objects(x); i++) {
		struct stat_ctx *s = core_keep(c, sizeof *s, NULL);
		*s = (struct stat_ctx){x, txn_object(x, i)};
		txn_hold(x);
		struct effect *e = core_emit(c, FX_STAT, stat_done, s);
		e->u.path = s->f->path;
	}
}

static void queue(struct core *c, struct txn *x)
{
	struct table *t = x->table;
	txn_move(c, x, TXN_QUEUED);
	table_enqueue(c, t, &x->entry);
	/* It halted while the files were being confirmed: who waits is told as the others were. */
	for (struct list *n; t->state == TABLE_HALTED && (n = list_pop_front(&x->waiters));) {
		struct err told = t->halt;
		told.st = ST_TABLE_HALTED;
		table_tell(c, LIST_ITEM(n, struct request, wait), x, &told);
	}
}

/* Files of a later one may be confirmed first; it must not overtake. */
static void advance(struct core *c, struct table *t)
{
	while (!list_empty(&t->ordered)) {
		struct txn *x = LIST_ITEM(t->ordered.next, struct txn, order);
		if (!x->ready)
			return;
		list_remove(&x->order);
		queue(c, x);
	}
}

void txn_asked(struct txn *x)
{
	if (x->ordered && list_empty(&x->order))
		list_push_back(&x->table->ordered, &x->order);
}

void txn_queue(struct core *c, struct txn *x)
{
	if (list_empty(&x->order)) {
		queue(c, x);
		return;
	}
	x->ready = true;
	advance(c, x->table);
}

/* ------------------------------------------------------------------ restart */

void txn_restore(struct core *c, struct table *t, const struct sql_item_result *item)
{
	if (!item->has_row || txn_find(c, item->row.txn))
		return;
	struct txn *x = txn_new(c, t, item->row.txn);
	struct err err = {0};
	const void *msg = NULL;
	enum status st = msg_decode(&rpc_record_begin, item->row.begin, &x->arena, &msg, &err);
	if (st == ST_OK)
		st = txn_fill(c, x, msg, item->row.principal, &err);
	if (st == ST_OK) {
		x->row.incarnation = item->row.incarnation;
		x->row.expires_pg_ms = item->row.expires_pg_ms;
		x->row.commit_requested = item->row.commit_requested;
		x->row.set_digest = item->row.set_digest;
		x->row.has_set_digest = item->row.has_set_digest;
		x->row.ttl_ms = item->row.ttl_ms;
		x->token = txn_token(c, x->id, t->id, item->row.incarnation);
	}
	for (size_t i = 0; st == ST_OK && i < item->n_fragments; i++) {
		struct frag *f;
		st = frag_unpack(x, &item->fragments[i], &f, &err);
		if (st == ST_OK)
			frag_keep(x, f);
	}
	if (st == ST_OK && item->row.state == TXN_DB_OPEN) {
		txn_move(c, x, TXN_OPEN);
		txn_weigh(c, x);
		return;
	}
	struct frag **winners = NULL;
	size_t n = 0;
	if (st == ST_OK)
		st = frag_winners(x, item->row.seal, &winners, &n, &err);
	if (st == ST_OK)
		st = txn_seal(c, x, winners, n, &err);
	if (st == ST_OK)
		st = txn_set_summary(x, item->row.summary, &err);
	if (st != ST_OK && st != ST_CORRUPT && item->row.state == TXN_DB_SEALED) {
		/* The table has changed since it was sealed: decided as a rejection. */
		x->refused = err;
		x->n_winners = x->n_files = x->n_delete_files = x->n_adopted = x->n_merged = 0;
		st = ST_OK;
	}
	if (st != ST_OK) {
		/* Our own rows do not read back: never guess. The row stays, the log tells. */
		core_log(c, 3, "txn.restore", t, x, &err);
		txn_free(c, x);
		return;
	}
	txn_move(c, x, TXN_SEALED);
	txn_weigh(c, x);
	if (x->row.commit_requested) {
		txn_asked(x);
		txn_verify(c, x);
	}
}

/* ------------------------------------------------------------------ the end */

void txn_final(struct core *c, struct txn *x, struct bytes outcome)
{
	txn_move(c, x, TXN_FINAL);
	x->outcome = outcome;
	for (struct list *n; (n = list_pop_front(&x->waiters));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		finish_outcome(c, r, outcome);
	}
	/* Requests still in line find it final: the rows answer them. */
	for (struct list *n; (n = list_pop_front(&x->turn));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		finish_final(c, r, outcome);
	}
	if (x->busy)
		x->busy->txn = NULL;
	struct table *t = x->table;
	bool led = !list_empty(&x->order);
	txn_free(c, x);
	if (led)
		advance(c, t);
}

void txn_vanish(struct core *c, struct txn *x)
{
	struct err err = {0};
	struct table *t = x->table;
	err_set(&err, ST_TXN_UNKNOWN, "txn_id",
		"the transaction's row is gone from the database");
	core_log(c, 3, "txn.vanished", t, x, &err);
	for (struct list *n; (n = list_pop_front(&x->waiters));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		r->txn = NULL;
		request_fail(c, r, &err);
	}
	for (struct list *n; (n = list_pop_front(&x->turn));) {
		struct request *r = LIST_ITEM(n, struct request, wait);
		r->txn = NULL;
		request_fail(c, r, &err);
	}
	if (x->busy)
		x->busy->txn = NULL;
	bool led = !list_empty(&x->order);
	txn_free(c, x);
	if (led)
		advance(c, t);
}

/* ------------------------------------------------------------------ memory behind the rows */

/* Of a statement that is sent until it is answered: whether this answer is none. After a lost one a
 * clean failure says nothing about the first. */
bool txn_ask_failed(struct txn *x, const struct sql_result *r)
{
	x->ask_lost |= r->lost;
	x->ask_paused = r->lost || (x->ask_lost && core_sql_clean_failure(r));
	return x->ask_paused;
}

void txn_renew(struct txn *x, const struct sql_item_result *item)
{
	if (item->has_row && item->row.expires_pg_ms > x->row.expires_pg_ms)
		x->row.expires_pg_ms = item->row.expires_pg_ms;
}

/* Replaces what memory has by what the rows say; those in line go on with that. */
static void replace(struct core *c, struct txn *x, const struct sql_item_result *item)
{
	struct table *t = x->table;
	struct list late;
	list_init(&late);
	for (struct list *n; (n = list_pop_front(&x->turn));) {
		LIST_ITEM(n, struct request, wait)->txn = NULL;
		list_push_back(&late, n);
	}
	txn_free(c, x);
	txn_restore(c, t, item);
	for (struct list *n; (n = list_pop_front(&late));)
		request_run(c, LIST_ITEM(n, struct request, wait));
}

static void reread_done(struct core *c, void *ctx, const struct event *ev)
{
	struct txn *x = ctx;
	const struct sql_result *r = ev->u.done.sql;
	const struct sql_item_result *item = &r->item;
	x->ending = false;
	bool free = !x->gone && !r->lost && !core_sql_clean_failure(r) && !x->busy && !x->stages &&
		    !x->stats && (x->state == TXN_OPEN || x->state == TXN_SEALED);
	bool known = free && item->st == ST_OK;
	if (free && item->st == ST_TXN_UNKNOWN) {
		txn_vanish(c, x);
	} else if (known && item->row.state > TXN_DB_SEALED) {
		struct bytes outcome, kept;
		if (answer_item(&x->arena, item, &outcome) &&
		    arena_bytes(&x->arena, outcome, &kept))
			txn_final(c, x, kept);
	} else if (known && item->row.state == TXN_DB_SEALED && x->state == TXN_OPEN) {
		replace(c, x, item);
	}
	txn_let(x);
}

void txn_reread(struct core *c, struct txn *x)
{
	if (x->ending)
		return;
	x->ending = true;
	txn_hold(x);
	struct effect *e = core_emit(c, FX_SQL, reread_done, x);
	e->u.sql.kind = SQL_TXN_READ;
	e->u.sql.u.txn = x->id;
}

static void expired(struct core *c, void *ctx, const struct event *ev)
{
	struct txn *x = ctx;
	const struct sql_result *r = ev->u.done.sql;
	x->ending = false;
	if (!x->gone && !r->lost && !core_sql_clean_failure(r) && r->item.st == ST_OK &&
	    r->item.has_row && r->item.row.state == TXN_DB_EXPIRED && x->state == TXN_OPEN) {
		struct bytes outcome;
		if (answer_simple(&x->arena, x->id, RPC_STATE_EXPIRED, &outcome))
			txn_final(c, x, outcome);
	} else if (!x->gone && !r->lost && !core_sql_clean_failure(r) && r->item.has_row) {
		txn_renew(x, &r->item);
		if (r->item.row.state != TXN_DB_OPEN)
			txn_reread(c, x);
	} else if (!x->gone && !r->lost && !core_sql_clean_failure(r) &&
		   r->item.st == ST_TXN_UNKNOWN) {
		txn_reread(c, x);
	}
	txn_let(x);
}

void txn_sweep(struct core *c)
{
	if (c->pg_ms == 0)
		return;
	for (size_t i = 0; i < TXN_BUCKETS; i++)
		for (struct txn *x = c->txns[i], *next; x; x = next) {
			next = x->next;
			if (x->row.expires_pg_ms == 0 || x->row.expires_pg_ms > c->pg_ms ||
			    x->ending || x->busy || x->stages || x->table->state != TABLE_READY)
				continue;
			if (x->state == TXN_OPEN) {
				x->ending = true;
				txn_hold(x);
				struct effect *e = core_emit(c, FX_SQL, expired, x);
				e->u.sql.kind = SQL_TXN_END;
				e->u.sql.u.end =
					(struct sql_end_item){x->id, TXN_DB_EXPIRED};
			} else if (x->state == TXN_SEALED && !x->row.commit_requested &&
				   x->stats == 0) {
				/* Sealed ones end only through a batch. */
				x->wish = PLAN_EXPIRE;
				txn_queue(c, x);
			}
		}
}
