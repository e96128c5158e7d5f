#include "store/pg/pg_head.h"

void pg_head_args(const struct sql_effect *fx, struct pgargs *a)
{
	switch (fx->kind) {
	case SQL_RECOVER:
		break;
	case SQL_HEAD_READ:
	case SQL_QUEUE_READ:
		pgargs_uuid(a, fx->u.table.u);
		break;
	case SQL_HEAD_BUMP:
		pgargs_uuid(a, fx->u.bump.table.u);
		pgargs_i64(a, fx->u.bump.incarnation);
		pgargs_i64(a, fx->u.bump.epoch_read);
		pgargs_uuid(a, fx->u.bump.holder.u);
		break;
	case SQL_HORIZON:
		pgargs_i64(a, fx->u.horizon.lifetime_ms);
		break;
	case SQL_HALT:
		pgargs_uuid(a, fx->u.halt.table.u);
		pgargs_i64(a, fx->u.halt.epoch);
		pgargs_text(a, fx->u.halt.cause);
		break;
	default:
		ASSERT(false);
	}
}

/* now, secret, table; at least one row */
static bool recover(const struct pgres *res, struct arena *arena, struct sql_result *ret)
{
	size_t rows = pgres_rows(res);
	struct pgrow r = {.res = res};
	struct bytes secret = pgrow_bytes(&r, 1);
	struct table_id *tables = arena_calloc(arena, rows + 1, sizeof *tables);
	if (!tables || secret.n != sizeof ret->secret.b)
		return false;
	memcpy(ret->secret.b, secret.p, secret.n);
	for (r.row = 0; r.row < rows; r.row++)
		if (!pgrow_null(&r, 2))
			tables[ret->n_tables++].u = pgrow_uuid(&r, 2);
	ret->tables = tables;
	return !r.bad;
}

/* now, part, transaction, fragment, halt; one row of part 0 carries clock and halt alone */
static bool queue(const struct pgres *res, struct arena *arena, struct sql_result *ret)
{
	enum { TXN = 2, FRAGMENT = TXN + PG_TXN_COLS, HALT = FRAGMENT + PG_FRAGMENT_COLS };
	size_t rows = pgres_rows(res);
	struct sql_item_result *items = arena_calloc(arena, rows + 1, sizeof *items);
	if (!items)
		return false;
	for (size_t i = 0; i < rows;) {
		struct pgrow r = {.res = res, .row = i};
		int32_t part = pgrow_i32(&r, 1);
		if (part == 0) {
			if (!pgrow_null(&r, HALT)) {
				ret->halted = pgrow_text(&r, HALT);
				ret->halted_pg_ms = pgrow_i64(&r, HALT + 1);
			}
			if (r.bad)
				return false;
			i++;
			continue;
		}
		if (part != 1)
			return false;
		size_t end = i + 1;
		for (; end < rows; end++) {
			struct pgrow next = {.res = res, .row = end};
			if (pgrow_i32(&next, 1) != 2)
				break;
		}
		struct sql_item_result *item = &items[ret->n_items++];
		item->has_row = true;
		pg_rows_txn(&r, TXN, &item->row);
		bool bad = r.bad;
		if (end > i + 1)
			pg_rows_fragments(res, i + 1, end, FRAGMENT, arena, item, &bad);
		if (bad)
			return false;
		i = end;
	}
	ret->items = items;
	return true;
}

bool pg_head_result(const struct sql_effect *fx, const struct pgres *res, struct arena *arena,
		    struct sql_result *ret)
{
	struct pgrow r = {.res = res};
	ret->pg_ms = pgrow_i64(&r, 0);
	switch (fx->kind) {
	case SQL_RECOVER:
		return !r.bad && recover(res, arena, ret);
	case SQL_QUEUE_READ:
		return !r.bad && queue(res, arena, ret);
	case SQL_HEAD_READ:
	case SQL_HEAD_BUMP:
		ret->found = !pgrow_null(&r, 1);
		ret->verdict = ret->found ? SQL_APPLIED : SQL_REFUSED;
		if (ret->found) {
			pg_rows_head(&r, 1, &ret->head);
			ret->head.name = pgrow_text(&r, 1 + PG_HEAD_COLS);
		}
		return !r.bad;
	case SQL_HALT:
		ret->verdict = pgrow_bool(&r, 1) ? SQL_APPLIED : SQL_REFUSED;
		return !r.bad;
	default: /* SQL_HORIZON */
		return !r.bad;
	}
}
