#include "store/pg/pg_rows.h"

static void digest_at(struct pgrow *r, int col, struct digest *ret)
{
	struct bytes b = pgrow_bytes(r, col);
	if (b.n != sizeof ret->b) {
		r->bad = true;
		memset(ret, 0, sizeof *ret);
		return;
	}
	memcpy(ret->b, b.p, sizeof ret->b);
}

void pg_rows_txn(struct pgrow *r, int col, struct txn_row *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->txn.u = pgrow_uuid(r, col);
	ret->table.u = pgrow_uuid(r, col + 1);
	ret->incarnation = pgrow_i64(r, col + 2);
	ret->ref = pgrow_text(r, col + 3);
	ret->kind = pgrow_i32(r, col + 4);
	ret->isolation = pgrow_i32(r, col + 5);
	ret->has_read_snapshot = !pgrow_null(r, col + 6);
	if (ret->has_read_snapshot)
		ret->read_snapshot = pgrow_i64(r, col + 6);
	ret->principal = pgrow_text(r, col + 7);
	digest_at(r, col + 8, &ret->params);
	ret->begin = pgrow_bytes(r, col + 9);
	ret->ttl_ms = pgrow_i64(r, col + 10);
	ret->created_pg_ms = pgrow_i64(r, col + 11);
	ret->expires_pg_ms = pgrow_i64(r, col + 12);
	int16_t state = pgrow_i16(r, col + 13);
	if (state < TXN_DB_OPEN || state > TXN_DB_LOST)
		r->bad = true;
	else
		ret->state = (enum txn_db_state)state;
	ret->commit_requested = pgrow_bool(r, col + 14);
	ret->has_set_digest = !pgrow_null(r, col + 15);
	if (ret->has_set_digest)
		digest_at(r, col + 15, &ret->set_digest);
	ret->seal = pgrow_bytes(r, col + 16);
	ret->summary = pgrow_bytes(r, col + 17);
	ret->batch_no = pgrow_i64(r, col + 18);
}

void pg_rows_fragment(struct pgrow *r, int col, struct fragment_row *ret)
{
	ret->txn.u = pgrow_uuid(r, col);
	ret->fragment_id = pgrow_text(r, col + 1);
	ret->attempt = pgrow_i32(r, col + 2);
	digest_at(r, col + 3, &ret->digest);
	ret->payload = pgrow_bytes(r, col + 4);
}

static void txns_at(struct pgrow *r, int col, struct arena *arena, struct batch_row *ret)
{
	struct pgrow_array_view ids = pgrow_array(r, col), states = pgrow_array(r, col + 1);
	struct txn_id *txn = arena_calloc(arena, ids.n + 1, sizeof *txn);
	uint8_t *state = arena_calloc(arena, ids.n + 1, 1);
	if (!txn || !state || ids.n != states.n) {
		r->bad = true;
		return;
	}
	for (size_t i = 0; i < ids.n; i++) {
		struct bytes id = pgrow_array_next(&ids), st = pgrow_array_next(&states);
		if (id.n != sizeof txn[i].u.b || st.n != 2) {
			r->bad = true;
			return;
		}
		memcpy(txn[i].u.b, id.p, id.n);
		state[i] = st.p[1];
	}
	ret->txns = txn;
	ret->txn_states = state;
	ret->n_txns = ids.n;
}

static void snapshots_at(struct pgrow *r, int col, struct arena *arena, struct batch_row *ret)
{
	struct pgrow_array_view a = pgrow_array(r, col);
	int64_t *v = arena_calloc(arena, a.n + 1, sizeof *v);
	if (!v) {
		r->bad = true;
		return;
	}
	for (size_t i = 0; i < a.n; i++) {
		struct bytes b = pgrow_array_next(&a);
		if (b.n != 8) {
			r->bad = true;
			return;
		}
		v[i] = (int64_t)get_u64be(b.p);
	}
	ret->snapshots = v;
	ret->n_snapshots = a.n;
}

void pg_rows_batch(struct pgrow *r, int col, struct arena *arena, struct batch_row *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->batch.u = pgrow_uuid(r, col);
	ret->table.u = pgrow_uuid(r, col + 1);
	ret->incarnation = pgrow_i64(r, col + 2);
	ret->batch_no = pgrow_i64(r, col + 3);
	ret->epoch = pgrow_i64(r, col + 4);
	ret->base_version = pgrow_i64(r, col + 5);
	txns_at(r, col + 6, arena, ret);
	ret->outcomes = pgrow_bytes(r, col + 8);
	snapshots_at(r, col + 9, arena, ret);
	ret->first_row_id = pgrow_i64(r, col + 10);
	ret->added_rows = pgrow_i64(r, col + 11);
	ret->metadata_location = pgrow_text(r, col + 12);
	ret->created_pg_ms = pgrow_i64(r, col + 13);
}

void pg_rows_head(struct pgrow *r, int col, struct head_row *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->table.u = pgrow_uuid(r, col);
	ret->incarnation = pgrow_i64(r, col + 1);
	ret->epoch = pgrow_i64(r, col + 2);
	ret->holder.u = pgrow_uuid(r, col + 3);
	ret->version = pgrow_i64(r, col + 4);
	ret->metadata_location = pgrow_text(r, col + 5);
	ret->last_batch = pgrow_i64(r, col + 6);
	ret->last_seq = pgrow_i64(r, col + 7);
	ret->next_row_id = pgrow_i64(r, col + 8);
}

void pg_rows_fragments(const struct pgres *res, size_t from, size_t to, int col,
		       struct arena *arena, struct sql_item_result *item, bool *bad)
{
	struct fragment_row *v = arena_calloc(arena, to - from + 1, sizeof *v);
	if (!v) {
		*bad = true;
		return;
	}
	for (size_t i = from; i < to; i++) {
		struct pgrow r = {.res = res, .row = i};
		pg_rows_fragment(&r, col, &v[i - from]);
		*bad |= r.bad;
	}
	item->fragments = v;
	item->n_fragments = to - from;
}
