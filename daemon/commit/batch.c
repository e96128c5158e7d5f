/* A batch from the queue to its end: plan, encode, hand over to publish. At most one per table, so
 * publishes of a table are strictly one after another. */
#include "daemon/commit/state.h"

#include "proto/iceberg/metadata.h"

#define BATCH_MAX_BYTES ((size_t)512 << 20)

void batch_move(struct core *c, struct batch *b, enum batch_state to)
{
	static const struct {
		enum batch_state from, to;
	} moves[] = {
#define MOVE(from, event, to, step) {BATCH_##from, BATCH_##to},
#include "daemon/commit/batch.tbl"
	};
	(void)c;
	bool allowed = false;
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++)
		allowed |= moves[i].from == b->state && moves[i].to == to;
	ASSERT(allowed);
	b->state = to;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	core_timer_stop(&b->timer);
	needs_fini(&b->needs);
	plan_free(b->plan);
	encode_out_free(b->out);
	metadata_unref(b->fresh);
	metadata_unref(b->base);
	rest_unview(b);
	base_free(b->txns);
	arena_fini(&b->arena);
	base_free(b);
}

void batch_drop(struct core *c, struct batch *b)
{
	batch_move(c, b, BATCH_DONE);
	b->table->batch = NULL;
	if (b->holds == 0)
		batch_free(b);
}

/* ------------------------------------------------------------------ giving up */

void batch_back(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	/* The order of arrival is kept: back to the front, last one first. */
	for (size_t i = b->n; i-- > 0;) {
		struct txn *x = b->txns[i];
		if (!x)
			continue;
		txn_move(c, x, TXN_QUEUED);
		list_push_front(&t->queue, &x->entry.node);
		t->n_queue++;
	}
	if (b->rest) {
		struct request *r = b->rest;
		r->batch = NULL;
		b->rest = NULL;
		rest_back(c, t, r);
	}
	if (b->part)
		multi_back(c, b);
	batch_drop(c, b);
	t->first_us = c->now_us;
	table_pause(c, t);
}

/* A batch that does not fit is halved; a single transaction that does not fit is refused. */
static void too_big(struct core *c, struct batch *b, const struct err *err)
{
	struct table *t = b->table;
	if (b->n <= 1) {
		b->txns[0]->refused = *err;
	} else {
		t->batch_limit = b->n / 2;
	}
	batch_back(c, b);
}

void batch_failed(struct core *c, struct batch *b, const struct err *err)
{
	struct table *t = b->table;
	struct err told = *err;
	/* Memory that is gone now may be there later: no transaction is too large because of it. */
	err_memory(&told);
	err = &told;
	core_log(c, 4, "batch.failed", t, NULL, err);
	if (err->st == ST_LIMIT) {
		if (b->ask)
			rest_failed(c, b, err);
		else
			too_big(c, b, err);
		return;
	}
	bool passing = err->st == ST_IO || err->st == ST_UNAVAILABLE ||
		       err->st == ST_OVERLOADED || err->st == ST_TIMEOUT;
	struct err copy = *err;
	if (!passing)
		table_blame(t, b, b->needs.bad);
	batch_back(c, b);
	if (!passing)
		table_halt(c, t, &copy);
}

/* ------------------------------------------------------------------ planning */

static struct reflog *log_of(void *ctx, struct strv ref, int64_t head)
{
	struct batch *b = ctx;
	return table_log(b->table, ref, head);
}

/* Random and positive; redrawn while the table has it. */
int64_t batch_snapshot_id(struct core *c, const struct metadata *m)
{
	for (;;) {
		int64_t id = (int64_t)(core_random(c) & INT64_MAX);
		if (id > 0 && !metadata_snapshot(m, id))
			return id;
	}
}

static int64_t new_snapshot_id(void *ctx)
{
	struct batch *b = ctx;
	return batch_snapshot_id(b->core, b->table->meta);
}

static void fill_plan(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct txn *x = b->txns[i];
		b->plan_txns[i] = (struct plan_txn){
			.id = x->id,
			.wish = x->wish,
			.kind = x->row.kind,
			.ref = x->row.ref,
			.has_read = x->row.has_read_snapshot,
			.read_snapshot = x->row.read_snapshot,
			.ordered = x->ordered,
			.files = x->files,
			.schema_ids = x->schema_ids,
			.n_files = x->n_files,
			.adopted = x->adopted,
			.n_adopted = x->n_adopted,
			.deletes = x->merged,
			.n_deletes = x->n_merged,
			.delete_files = x->delete_files,
			.n_delete_files = x->n_delete_files,
			.rows_updated = x->rows_updated,
			.summary = x->summary,
			.n_summary = x->n_summary,
			.refused = x->refused,
		};
	}
}

/* Transactions that the plan left for the next batch go back at once. */
static void drop_leftovers(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	for (size_t i = b->n; i-- > 0;) {
		if (b->plan_txns[i].taken)
			continue;
		struct txn *x = b->txns[i];
		b->txns[i] = NULL;
		txn_move(c, x, TXN_QUEUED);
		list_push_front(&t->queue, &x->entry.node);
		t->n_queue++;
	}
	/* Those that stay come first; the plan knows them by index, so only the tail may go. */
	while (b->n && !b->txns[b->n - 1])
		b->n--;
	for (size_t i = 0; i < b->n; i++)
		ASSERT(b->txns[i] != NULL);
}

static void plan(struct core *c, struct gather *g)
{
	struct batch *b = CONTAINER_OF(g, struct batch, gather);
	struct err err = {0};
	if (b->ask) {
		rest_plan(c, b);
		return;
	}
	fill_plan(b);
	struct plan_in in = {.base = b->table->meta,
			     .txns = b->plan_txns,
			     .n_txns = b->n,
			     .log_of = log_of,
			     .new_snapshot_id = new_snapshot_id,
			     .ctx = b,
			     .max_bytes = BATCH_MAX_BYTES};
	switch (plan_run(&in, c->cache, &b->needs, &b->plan, &err)) {
	case PLAN_WAIT:
		core_gather(c, g, &b->needs);
		return;
	case PLAN_FAIL:
		batch_failed(c, b, &err);
		return;
	case PLAN_DONE:
		break;
	}
	drop_leftovers(c, b);
	batch_encode(c, b);
}

void batch_start(struct core *c, struct table *t)
{
	struct batch *b = base_calloc(1, sizeof *b);
	b->core = c;
	b->table = t;
	b->state = BATCH_GATHERING;
	arena_init(&b->arena, BATCH_MAX_BYTES);
	b->id.u = core_uuid7(c);
	b->no = t->last_batch + 1;
	b->gather.run = plan;
	t->batch = b;
	struct entry *first = LIST_ITEM(t->queue.next, struct entry, node);
	if (first->kind == ENTRY_REST) {
		b->rest = first->req;
		b->ask = &b->rest->in.u.commit_table;
		table_dequeue(t, first);
		b->rest->batch = b;
	} else if (first->kind == ENTRY_PART) {
		b->part = first->part;
		b->state = BATCH_RESERVED;
		table_dequeue(t, first);
		multi_reserved(c, b);
		return;
	} else {
		/* All that wait, up to the next REST commit, which keeps its turn. */
		size_t cap = t->batch_limit < t->n_queue ? t->batch_limit : t->n_queue;
		b->txns = base_calloc(cap ? cap : 1, sizeof(struct txn *));
		while (b->n < cap && !list_empty(&t->queue)) {
			struct entry *e = LIST_ITEM(t->queue.next, struct entry, node);
			if (e->kind != ENTRY_TXN)
				break;
			table_dequeue(t, e);
			txn_move(c, e->txn, TXN_BATCHED);
			b->txns[b->n++] = e->txn;
		}
		if (t->batch_limit < c->conf.batch_max_txns)
			t->batch_limit++; /* back up, slowly */
		b->plan_txns = arena_calloc(&b->arena, b->n, sizeof *b->plan_txns);
		ASSERT(b->plan_txns != NULL);
	}
	plan(c, &b->gather);
}

/* ------------------------------------------------------------------ encoding */

static void encoded(struct core *c, void *ctx, const struct event *ev)
{
	struct batch *b = ctx;
	(void)ev;
	b->holds--;
	if (multi_over(c, b))
		return;
	if (b->out->err.st != ST_OK) {
		struct err err = b->out->err;
		if (b->ask)
			rest_failed(c, b, &err);
		else
			batch_failed(c, b, &err);
		return;
	}
	/* Of this plan only a prefix may have been taken; the outcomes follow it. */
	publish_prepare(c, b);
}

void batch_encode(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	struct uuid name = core_uuid4(c);
	char file[METADATA_FILE_NAME_MAX];
	struct strv dir;
	/* The plan, or the look at a client's snapshots, has its own references. */
	needs_release(&b->needs);
	batch_move(c, b, BATCH_ENCODING);
	const struct metadata *target = b->fresh ? b->fresh : t->meta;
	metadata_file_name(t->location, core_uuid4(c), metadata_wants_gzip(target), file);
	char *path = metadata_folder(target, &b->arena, &dir)
			     ? arena_printf(&b->arena, "%.*s/%s", STRV_ARG(dir), file)
			     : NULL;
	ASSERT(path != NULL);
	struct strv base;
	ASSERT(arena_strv(&b->arena, t->location, &base));
	b->in = (struct encode_in){.plan = b->plan,
				   .metadata = b->fresh,
				   .base = b->base,
				   .verify = b->verify,
				   .n_verify = b->n_verify,
				   .reject = c->conf.verify_snapshots == 2,
				   .metadata_path = strv_of(path),
				   .base_location = base,
				   .now_ms = c->pg_ms,
				   .commit_uuid = name,
				   .batch = b->id,
				   .max_bytes = BATCH_MAX_BYTES};
	core_random_bytes(c, b->in.sync, sizeof b->in.sync);
	b->out = encode_out_new(BATCH_MAX_BYTES);
	b->holds++;
	struct effect *e = core_emit(c, FX_ENCODE, encoded, b);
	e->u.encode.in = &b->in;
	e->u.encode.out = b->out;
}

/* ------------------------------------------------------------------ the end */

void batch_published(struct core *c, struct batch *b)
{
	struct table *t = b->table;
	struct encode_out *out = b->out;
	c->counters.batches++;
	for (size_t i = 0; i < out->n_lists; i++)
		cache_put_list(c->cache, out->lists[i].path, out->lists[i].list);
	for (size_t i = 0; i < out->n_views; i++) {
		const struct encode_view *v = &out->views[i];
		cache_put_index(c->cache, v->path, v->first_row_id, v->seq, v->view);
		if (v->view->m) /* not of an adopted manifest, whose file will be read when needed */
			cache_put_view(c->cache, v->path, v->first_row_id, v->seq, v->view);
	}
	for (size_t i = 0; i < out->n_vecs; i++)
		cache_put_vec(c->cache, out->vecs[i].path, out->vecs[i].offset, out->vecs[i].vec);
	table_set_head(c, t, out->metadata, b->publish.row.metadata_location,
		       b->publish.row.base_version + 1, b->no);
	if (b->ask) {
		c->counters.rest_commits++;
		rest_published(c, b);
	} else {
		fair_own(&t->fair, c->now_us);
		plan_published(b->plan);
		for (size_t i = 0; i < b->n; i++) {
			if (b->plan_txns[i].state == TXN_DB_COMMITTED)
				c->counters.txns_committed++;
			else if (b->plan_txns[i].state == TXN_DB_REJECTED)
				c->counters.txns_rejected++;
			txn_final(c, b->txns[i], b->outcomes[i]);
		}
	}
	b->n = 0;
	batch_drop(c, b);
	t->first_us = c->now_us;
	table_pump(c, t);
}
