#include "store/pg/pg_txn.h"

/* ------------------------------------------------------------------ checks and sizes */

static enum status bad_text(struct err *err, const char *field)
{
	return err_set(err, ST_ILLEGAL_ARGUMENT, field,
		       "not UTF-8, holds U+0000, or is too long for the catalog");
}

enum status pg_txn_check_paths(const struct strv *paths, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (!pgargs_text_ok(paths[i], PG_PATH_MAX))
			return bad_text(err, "path");
	return ST_OK;
}

static enum status check_row(const struct txn_row *row, struct err *err)
{
	if (!pgargs_text_ok(row->ref, PG_NAME_MAX))
		return bad_text(err, "ref");
	if (!pgargs_text_ok(row->principal, PG_NAME_MAX))
		return bad_text(err, "principal");
	return ST_OK;
}

static enum status check_stage(const struct sql_stage_item *item, struct err *err)
{
	if (!pgargs_text_ok(item->row.fragment_id, PG_NAME_MAX))
		return bad_text(err, "fragment_id");
	return pg_txn_check_paths(item->paths, item->n_paths, err);
}

enum status pg_txn_check(const struct sql_effect *fx, struct err *err)
{
	enum status st;
	switch (fx->kind) {
	case SQL_TXN_BEGIN:
		return check_row(fx->u.begin, err);
	case SQL_TXN_STAGE:
		return check_stage(fx->u.stage, err);
	case SQL_TXN_SEAL:
		return pg_txn_check_paths(fx->u.seal->losers, fx->u.seal->n_losers, err);
	case SQL_TXN_ONCE:
		st = check_row(&fx->u.once->row, err);
		for (size_t i = 0; st == ST_OK && i < fx->u.once->n_stages; i++)
			st = check_stage(&fx->u.once->stages[i], err);
		return st;
	default:
		return ST_OK;
	}
}

static size_t row_size(const struct txn_row *row)
{
	return 256 + row->ref.n + row->principal.n + row->begin.n + row->seal.n + row->summary.n;
}

static size_t stage_size(const struct sql_stage_item *item)
{
	size_t n = 128 + item->row.fragment_id.n + item->row.payload.n;
	for (size_t i = 0; i < item->n_paths; i++)
		n += item->paths[i].n + 16;
	return n;
}

size_t pg_txn_size(const struct sql_effect *fx)
{
	size_t n;
	switch (fx->kind) {
	case SQL_TXN_BEGIN:
		return row_size(fx->u.begin);
	case SQL_TXN_STAGE:
		return stage_size(fx->u.stage);
	case SQL_TXN_SEAL:
		n = 128 + fx->u.seal->seal.n + fx->u.seal->summary.n;
		for (size_t i = 0; i < fx->u.seal->n_losers; i++)
			n += fx->u.seal->losers[i].n + 16;
		return n;
	case SQL_TXN_ONCE:
		n = row_size(&fx->u.once->row);
		for (size_t i = 0; i < fx->u.once->n_stages; i++)
			n += stage_size(&fx->u.once->stages[i]);
		return n;
	case SQL_TXN_REQUEST:
		return 64 + fx->u.request->summary.n;
	default:
		return 64;
	}
}

struct txn_id pg_txn_id(const struct sql_effect *fx)
{
	switch (fx->kind) {
	case SQL_TXN_BEGIN:
		return fx->u.begin->txn;
	case SQL_TXN_STAGE:
		return fx->u.stage->row.txn;
	case SQL_TXN_SEAL:
		return fx->u.seal->txn;
	case SQL_TXN_ONCE:
		return fx->u.once->row.txn;
	case SQL_TXN_REQUEST:
		return fx->u.request->txn;
	case SQL_TXN_END:
		return fx->u.end.txn;
	default:
		return fx->u.txn;
	}
}

/* ------------------------------------------------------------------ parameters */

/* One array parameter over all items. */
#define EACH(oid, put, expr)                                                                       \
	do {                                                                                       \
		pgargs_array(a, oid);                                                              \
		for (size_t i = 0; i < n; i++)                                                     \
			put(a, expr);                                                              \
		pgargs_end(a);                                                                     \
	} while (0)

static void put_digest(struct pgargs *a, const struct digest *d)
{
	pgargs_put_bytes(a, (struct bytes){d->b, sizeof d->b});
}

static const struct txn_row *row_of(const struct sql_effect *fx)
{
	return fx->kind == SQL_TXN_BEGIN ? fx->u.begin : &fx->u.once->row;
}

/* The fourteen parameters that begin_items and once_items share. */
static void rows_args(const struct sql_effect *const *fx, size_t n, struct pgargs *a)
{
	EACH(PGARGS_UUID, pgargs_put_uuid, row_of(fx[i])->txn.u);
	EACH(PGARGS_UUID, pgargs_put_uuid, row_of(fx[i])->table.u);
	EACH(PGARGS_INT8, pgargs_put_i64, row_of(fx[i])->incarnation);
	EACH(PGARGS_TEXT, pgargs_put_text, row_of(fx[i])->ref);
	EACH(PGARGS_INT4, pgargs_put_i32, row_of(fx[i])->kind);
	EACH(PGARGS_INT4, pgargs_put_i32, row_of(fx[i])->isolation);
	pgargs_array(a, PGARGS_INT8);
	for (size_t i = 0; i < n; i++) {
		if (row_of(fx[i])->has_read_snapshot)
			pgargs_put_i64(a, row_of(fx[i])->read_snapshot);
		else
			pgargs_put_null(a);
	}
	pgargs_end(a);
	EACH(PGARGS_TEXT, pgargs_put_text, row_of(fx[i])->principal);
	EACH(PGARGS_BYTEA, put_digest, &row_of(fx[i])->params);
	EACH(PGARGS_BYTEA, pgargs_put_bytes, row_of(fx[i])->begin);
	EACH(PGARGS_INT8, pgargs_put_i64, row_of(fx[i])->ttl_ms);
	if (n && fx[0]->kind == SQL_TXN_ONCE) {
		EACH(PGARGS_BYTEA, put_digest, &row_of(fx[i])->set_digest);
		EACH(PGARGS_BYTEA, pgargs_put_bytes, row_of(fx[i])->seal);
		EACH(PGARGS_BYTEA, pgargs_put_bytes, row_of(fx[i])->summary);
	} else {
		pgargs_array(a, PGARGS_BYTEA);
		pgargs_end(a);
		pgargs_array(a, PGARGS_BYTEA);
		pgargs_end(a);
		pgargs_array(a, PGARGS_BYTEA);
		pgargs_end(a);
	}
}

static const struct sql_stage_item *stages_of(const struct sql_effect *fx, size_t *ret_n)
{
	if (fx->kind == SQL_TXN_STAGE) {
		*ret_n = 1;
		return fx->u.stage;
	}
	*ret_n = fx->u.once->n_stages;
	return fx->u.once->stages;
}

enum stage_column { STAGE_ORD, STAGE_ID, STAGE_ATTEMPT, STAGE_DIGEST, STAGE_PAYLOAD };

static void stage_column(const struct sql_effect *const *fx, size_t n, enum stage_column column,
			 struct pgargs *a)
{
	static const enum pgargs_oid oid[] = {PGARGS_INT4, PGARGS_TEXT, PGARGS_INT4, PGARGS_BYTEA,
					      PGARGS_BYTEA};
	pgargs_array(a, oid[column]);
	for (size_t i = 0; i < n; i++) {
		size_t k;
		const struct sql_stage_item *s = stages_of(fx[i], &k);
		for (; k > 0; k--, s++) {
			if (column == STAGE_ORD)
				pgargs_put_i32(a, (int32_t)i + 1);
			else if (column == STAGE_ID)
				pgargs_put_text(a, s->row.fragment_id);
			else if (column == STAGE_ATTEMPT)
				pgargs_put_i32(a, s->row.attempt);
			else if (column == STAGE_DIGEST)
				put_digest(a, &s->row.digest);
			else
				pgargs_put_bytes(a, s->row.payload);
		}
	}
	pgargs_end(a);
}

static void path_args(const struct sql_effect *const *fx, size_t n, struct pgargs *a)
{
	for (int pass = 0; pass < 2; pass++) {
		pgargs_array(a, pass == 0 ? PGARGS_INT4 : PGARGS_TEXT);
		for (size_t i = 0; i < n; i++) {
			size_t k;
			const struct sql_stage_item *s = stages_of(fx[i], &k);
			for (; k > 0; k--, s++) {
				for (size_t p = 0; p < s->n_paths; p++) {
					if (pass == 0)
						pgargs_put_i32(a, (int32_t)i + 1);
					else
						pgargs_put_text(a, s->paths[p]);
				}
			}
		}
		pgargs_end(a);
	}
}

static void loser_args(const struct sql_effect *const *fx, size_t n, struct pgargs *a)
{
	for (int pass = 0; pass < 2; pass++) {
		pgargs_array(a, pass == 0 ? PGARGS_INT4 : PGARGS_TEXT);
		for (size_t i = 0; i < n; i++) {
			for (size_t k = 0; k < fx[i]->u.seal->n_losers; k++) {
				if (pass == 0)
					pgargs_put_i32(a, (int32_t)i + 1);
				else
					pgargs_put_text(a, fx[i]->u.seal->losers[k]);
			}
		}
		pgargs_end(a);
	}
}

void pg_txn_args(enum sql_kind kind, const struct sql_effect *const *fx, size_t n, struct pgargs *a)
{
	switch (kind) {
	case SQL_TXN_BEGIN:
		rows_args(fx, n, a);
		break;
	case SQL_TXN_STAGE:
		EACH(PGARGS_UUID, pgargs_put_uuid, fx[i]->u.stage->row.txn.u);
		for (int c = STAGE_ID; c <= STAGE_PAYLOAD; c++)
			stage_column(fx, n, (enum stage_column)c, a);
		path_args(fx, n, a);
		break;
	case SQL_TXN_SEAL:
		EACH(PGARGS_UUID, pgargs_put_uuid, fx[i]->u.seal->txn.u);
		EACH(PGARGS_BYTEA, put_digest, &fx[i]->u.seal->set_digest);
		EACH(PGARGS_BYTEA, pgargs_put_bytes, fx[i]->u.seal->seal);
		EACH(PGARGS_BOOL, pgargs_put_bool, fx[i]->u.seal->commit_requested);
		EACH(PGARGS_BYTEA, pgargs_put_bytes, fx[i]->u.seal->summary);
		loser_args(fx, n, a);
		break;
	case SQL_TXN_ONCE:
		rows_args(fx, n, a);
		for (int c = STAGE_ORD; c <= STAGE_PAYLOAD; c++)
			stage_column(fx, n, (enum stage_column)c, a);
		path_args(fx, n, a);
		break;
	case SQL_TXN_REQUEST:
		EACH(PGARGS_UUID, pgargs_put_uuid, fx[i]->u.request->txn.u);
		EACH(PGARGS_BYTEA, pgargs_put_bytes, fx[i]->u.request->summary);
		break;
	case SQL_TXN_END:
		EACH(PGARGS_UUID, pgargs_put_uuid, fx[i]->u.end.txn.u);
		EACH(PGARGS_INT2, pgargs_put_i16, (int16_t)fx[i]->u.end.to);
		break;
	case SQL_TXN_READ:
		EACH(PGARGS_UUID, pgargs_put_uuid, fx[i]->u.txn.u);
		break;
	default:
		ASSERT(false);
	}
}

/* ------------------------------------------------------------------ results */

/* Codes of the functions in the migrations. */
static const enum status codes[] = {
	ST_OK,          ST_TABLE_GONE, ST_HORIZON_PASSED, ST_CLOCK_SKEW,     ST_DIGEST_CONFLICT,
	ST_TXN_UNKNOWN, ST_TXN_STATE,  ST_DUPLICATE_PATH, ST_PATH_CONDEMNED,
};

/* now, ord, code, path, transaction */
static bool item_rows(const struct pgres *res, struct sql_result *rets, size_t n)
{
	size_t rows = pgres_rows(res);
	if (rows != n)
		return false;
	for (size_t i = 0; i < rows; i++) {
		struct pgrow r = {.res = res, .row = i};
		int64_t now = pgrow_i64(&r, 0);
		int32_t ord = pgrow_i32(&r, 1);
		int16_t code = pgrow_i16(&r, 2);
		if (r.bad || ord < 1 || (size_t)ord > n || code < 0 ||
		    (size_t)code >= ARRAY_SIZE(codes) || rets[ord - 1].pg_ms)
			return false;
		struct sql_result *ret = &rets[ord - 1];
		ret->pg_ms = now;
		ret->verdict = code == 0 ? SQL_APPLIED : SQL_REFUSED;
		ret->item.st = codes[code];
		ret->item.path = pgrow_text(&r, 3);
		ret->item.has_row = !pgrow_null(&r, 4);
		if (ret->item.has_row)
			pg_rows_txn(&r, 4, &ret->item.row);
		if (r.bad)
			return false;
	}
	return true;
}

/* now, ord, part, transaction, fragment, batch: per item its transaction first, then fragments. */
static bool read_rows(const struct pgres *res, struct arena *arena, struct sql_result *rets,
		      size_t n)
{
	enum { TXN = 3, FRAGMENT = TXN + PG_TXN_COLS, BATCH = FRAGMENT + PG_FRAGMENT_COLS };
	size_t rows = pgres_rows(res), seen = 0;
	for (size_t i = 0; i < rows;) {
		struct pgrow r = {.res = res, .row = i};
		int64_t now = pgrow_i64(&r, 0);
		int32_t ord = pgrow_i32(&r, 1);
		if (r.bad || ord < 1 || (size_t)ord > n || pgrow_i32(&r, 2) != 1)
			return false;
		struct sql_result *ret = &rets[ord - 1];
		ret->pg_ms = now;
		seen++;
		size_t end = i + 1;
		for (; end < rows; end++) {
			struct pgrow next = {.res = res, .row = end};
			if (pgrow_i32(&next, 1) != ord)
				break;
		}
		ret->item.has_row = ret->found = !pgrow_null(&r, TXN);
		ret->item.st = ret->found ? ST_OK : ST_TXN_UNKNOWN;
		if (ret->found)
			pg_rows_txn(&r, TXN, &ret->item.row);
		if (!pgrow_null(&r, BATCH)) {
			struct batch_row *b = arena_calloc(arena, 1, sizeof *b);
			if (!b)
				return false;
			pg_rows_batch(&r, BATCH, arena, b);
			ret->item.batch = b;
		}
		bool bad = r.bad;
		if (end > i + 1)
			pg_rows_fragments(res, i + 1, end, FRAGMENT, arena, &ret->item, &bad);
		if (bad)
			return false;
		i = end;
	}
	return seen == n;
}

bool pg_txn_results(enum sql_kind kind, const struct pgres *res, struct arena *arena,
		    struct sql_result *rets, size_t n)
{
	return kind == SQL_TXN_READ ? read_rows(res, arena, rets, n) : item_rows(res, rets, n);
}
