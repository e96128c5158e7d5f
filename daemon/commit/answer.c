/* Outcomes: packed into the batch row, and out of it again. A batch row is the only source of a
 * decided transaction's outcome; what is told at once comes from the same bytes. */
#include "daemon/commit/state.h"

#include <stdio.h>

#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

#define OUTCOMES_VERSION 1

static enum rpc_state state_of(enum txn_db_state s)
{
	switch (s) {
	case TXN_DB_COMMITTED:
		return RPC_STATE_COMMITTED;
	case TXN_DB_REJECTED:
		return RPC_STATE_REJECTED;
	case TXN_DB_ABORTED:
		return RPC_STATE_ABORTED;
	case TXN_DB_EXPIRED:
		return RPC_STATE_EXPIRED;
	case TXN_DB_LOST:
		return RPC_STATE_LOST;
	case TXN_DB_OPEN:
	case TXN_DB_SEALED:
		break;
	}
	ASSERT_NEVER("only final states have an outcome");
	return RPC_STATE_LOST;
}

static bool fill(struct batch *b, size_t i, struct rpc_outcome *o)
{
	const struct plan_txn *t = &b->plan_txns[i];
	const struct txn *x = b->txns[i];
	const struct encode_txn *e = &b->out->txns[i];
	*o = (struct rpc_outcome){.txn_id = t->id.u,
				  .state = state_of(t->state),
				  .has_batch_no = true,
				  .batch_no = b->no,
				  .has_batch_id = true,
				  .batch_id = b->id.u};
	if (t->state == TXN_DB_REJECTED) {
		struct rpc_error *re = arena_calloc(&b->arena, 1, sizeof *re);
		if (!re)
			return false;
		rpc_error_of(&t->reject, re);
		o->reject = re;
	}
	if (t->state != TXN_DB_COMMITTED)
		return true;
	if (e->snapshot_id != SNAPSHOT_NONE) {
		o->has_snapshot_id = true;
		o->snapshot_id = e->snapshot_id;
		o->has_sequence_number = true;
		o->sequence_number = e->seq;
	}
	o->metadata_location = b->publish.row.metadata_location;
	o->files = arena_calloc(&b->arena, t->n_files ? t->n_files : 1, sizeof *o->files);
	o->deletes = arena_calloc(&b->arena, t->n_deletes ? t->n_deletes : 1, sizeof *o->deletes);
	if (!o->files || !o->deletes)
		return false;
	int64_t rows = 0, deleted = 0;
	for (size_t k = 0; k < t->n_files; k++) {
		int64_t first = e->first_row_ids ? e->first_row_ids[k] : ROW_ID_NONE;
		o->files[k] = (struct rpc_file_outcome){.path = t->files[k].path,
							.has_first_row_id = first != ROW_ID_NONE,
							.first_row_id = first,
							.record_count = t->files[k].record_count};
		rows += t->files[k].record_count;
	}
	o->n_files = t->n_files;
	for (size_t k = 0; k < t->n_deletes; k++) {
		o->deletes[k] = (struct rpc_delete_outcome){.data_file = t->deletes[k].data_file,
							    .deleted = t->deletes[k].deleted,
							    .overlap = t->deletes[k].overlap};
		deleted += t->deletes[k].deleted;
	}
	o->n_deletes = t->n_deletes;
	/* Their positions are in the files: as many as the worker stated. */
	for (size_t k = 0; k < t->n_delete_files; k++)
		if (!add_i64(deleted, t->delete_files[k].file.record_count, &deleted))
			deleted = INT64_MAX;
	/* An update is one row written and one deleted; it counts once, as an update. */
	o->rows_updated = x->rows_updated;
	o->rows_inserted = rows > x->rows_updated ? rows - x->rows_updated : 0;
	o->rows_deleted = deleted > x->rows_updated ? deleted - x->rows_updated : 0;
	return true;
}

bool answer_pack(struct core *c, struct batch *b)
{
	struct buf all, one;
	buf_init(&all, c->conf.request_max_bytes * 4);
	buf_init(&one, c->conf.request_max_bytes);
	size_t *ends = arena_calloc(&b->arena, b->n ? b->n : 1, sizeof *ends);
	bool ok = ends != NULL;
	buf_putc(&all, OUTCOMES_VERSION);
	size_t n = 0;
	for (size_t i = 0; ok && i < b->n; i++) {
		if (!b->plan_txns[i].taken)
			continue;
		struct rpc_outcome o;
		ok = fill(b, i, &o);
		if (!ok)
			break;
		buf_clear(&one);
		msg_encode(&rpc_record_outcome, &o, &one);
		uint8_t word[4];
		put_u32le(word, (uint32_t)one.n);
		buf_put(&all, word, 4);
		buf_putv(&all, buf_strv(&one));
		ok = buf_ok(&one) && buf_ok(&all);
		ends[n++] = all.n;
	}
	struct bytes packed = {NULL, 0};
	ok = ok && arena_bytes(&b->arena, buf_bytes(&all), &packed);
	b->outcomes = ok ? arena_calloc(&b->arena, n ? n : 1, sizeof *b->outcomes) : NULL;
	ok = ok && b->outcomes;
	for (size_t i = 0, from = 1; ok && i < n; i++) {
		b->outcomes[i] = (struct bytes){packed.p + from + 4, ends[i] - from - 4};
		from = ends[i];
	}
	b->publish.row.outcomes = packed;
	buf_fini(&all);
	buf_fini(&one);
	return ok;
}

bool answer_of(const struct batch_row *row, struct txn_id id, struct bytes *ret_outcome)
{
	struct bytes in = row->outcomes;
	if (in.n < 1 || in.p[0] != OUTCOMES_VERSION)
		return false;
	size_t at = 1;
	for (size_t i = 0; i < row->n_txns; i++) {
		if (in.n - at < 4)
			return false;
		size_t n = get_u32le(in.p + at);
		at += 4;
		if (n > in.n - at)
			return false;
		if (uuid_eq(row->txns[i].u, id.u)) {
			*ret_outcome = (struct bytes){in.p + at, n};
			return true;
		}
		at += n;
	}
	return false;
}

static bool encode(struct arena *a, const struct rpc_outcome *o, struct bytes *ret_outcome)
{
	struct buf b;
	buf_init(&b, 4096);
	msg_encode(&rpc_record_outcome, o, &b);
	bool ok = buf_ok(&b) && arena_bytes(a, buf_bytes(&b), ret_outcome);
	buf_fini(&b);
	return ok;
}

bool answer_simple(struct arena *a, struct txn_id id, enum rpc_state state,
		   struct bytes *ret_outcome)
{
	struct rpc_outcome o = {.txn_id = id.u, .state = state};
	return encode(a, &o, ret_outcome);
}

void answer_row(const struct txn_row *row, struct rpc_error *scratch, struct rpc_outcome *ret_o)
{
	*ret_o = (struct rpc_outcome){.txn_id = row->txn.u, .state = finish_state_of(row->state)};
	if (row->batch_no == TXN_BATCH_GONE) {
		struct err err = {.st = ST_TABLE_GONE};
		rpc_error_of(&err, scratch);
		/* These would point into err. */
		scratch->field = STRV("table");
		scratch->message = strv_of(status_info(ST_TABLE_GONE)->help);
		ret_o->reject = scratch;
	}
}

bool answer_item(struct arena *a, const struct sql_item_result *item, struct bytes *ret_outcome)
{
	if (item->batch)
		return answer_of(item->batch, item->row.txn, ret_outcome);
	struct rpc_error e;
	struct rpc_outcome o;
	answer_row(&item->row, &e, &o);
	return encode(a, &o, ret_outcome);
}

const struct rpc_outcome *answer_noted(struct arena *a, const struct table *t,
				       const struct txn_row *row, const struct rpc_outcome *o)
{
	int64_t since;
	if (!t || t->state != TABLE_READY || t->incarnation != row->incarnation ||
	    o->state != RPC_STATE_COMMITTED || !o->has_snapshot_id ||
	    !metadata_left(t->meta, row->ref, o->snapshot_id, &since))
		return o;
	struct rpc_outcome *noted = arena_calloc(a, 1, sizeof *noted);
	char text[192];
	struct strv ref = strv_sub(row->ref, 0, row->ref.n < 100 ? row->ref.n : 100);
	int n = snprintf(text, sizeof text, "not in the history of %.*s any more", STRV_ARG(ref));
	if (since)
		n = snprintf(text, sizeof text, "not in the history of main since %lld",
			     (long long)since);
	struct strv kept;
	if (!noted || !arena_strv(a, (struct strv){text, (size_t)n}, &kept))
		return o;
	*noted = *o;
	noted->note = kept;
	return noted;
}

bool answer_decode(struct bytes outcome, struct arena *a, const struct rpc_outcome **ret_o)
{
	struct err err;
	const void *msg;
	if (msg_decode(&rpc_record_outcome, outcome, a, &msg, &err) != ST_OK)
		return false;
	*ret_o = msg;
	return true;
}
