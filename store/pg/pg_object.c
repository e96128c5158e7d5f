#include "store/pg/pg_object.h"

#include "store/pg/pg_txn.h"

enum status pg_object_check(const struct sql_effect *fx, struct err *err)
{
	/* The others name what a claim gave out, which came from the table. */
	return fx->kind == SQL_LEDGER
		       ? pg_txn_check_paths(fx->u.ledger.paths, fx->u.ledger.n_paths, err)
		       : ST_OK;
}

void pg_object_args(const struct sql_effect *fx, struct pgargs *a)
{
	switch (fx->kind) {
	case SQL_LEDGER:
		pgargs_uuid(a, fx->u.ledger.table.u);
		pgargs_i64(a, fx->u.ledger.incarnation);
		pgargs_i64(a, fx->u.ledger.epoch);
		pgargs_uuid(a, fx->u.ledger.batch.u);
		pgargs_texts(a, fx->u.ledger.paths, fx->u.ledger.n_paths);
		break;
	case SQL_UNLEDGER:
		pgargs_uuid(a, fx->u.unledger.table.u);
		pgargs_uuid(a, fx->u.unledger.batch.u);
		pgargs_i64(a, fx->u.unledger.epoch);
		break;
	case SQL_CLEAN_DUE:
		pgargs_uuid(a, fx->u.clean_due.after.u);
		pgargs_i64(a, fx->u.clean_due.grace_ms);
		pgargs_i64(a, fx->u.clean_due.tombstone_ms);
		pgargs_i32(a, fx->u.clean_due.max);
		break;
	case SQL_CLEAN_CLAIM:
		pgargs_uuid(a, fx->u.claim.table.u);
		pgargs_bool(a, fx->u.claim.gone);
		pgargs_i64(a, fx->u.claim.grace_ms);
		pgargs_i64(a, fx->u.claim.tombstone_ms);
		pgargs_i32(a, fx->u.claim.max);
		break;
	case SQL_CLEAN_LOOK:
		pgargs_uuid(a, fx->u.clean_look.table.u);
		pgargs_texts(a, fx->u.clean_look.paths, fx->u.clean_look.n_paths);
		break;
	case SQL_CLEAN_DONE: {
		const struct sql_clean_done *d = fx->u.clean_done;
		pgargs_array(a, PGARGS_TEXT);
		for (size_t i = 0; i < d->n_deleted; i++)
			pgargs_put_text(a, d->deleted[i]);
		for (size_t i = 0; i < d->n_live; i++)
			pgargs_put_text(a, d->live[i]);
		pgargs_end(a);
		pgargs_texts(a, d->unsure, d->n_unsure);
		pgargs_texts(a, d->back, d->n_back);
		break;
	}
	default:
		ASSERT(false);
	}
}

static bool due_tables(struct pgrow *r, size_t rows, struct arena *arena, struct sql_result *ret)
{
	struct table_id *tables = arena_calloc(arena, rows + 1, sizeof *tables);
	bool *gone = arena_calloc(arena, rows + 1, sizeof *gone);
	if (!tables || !gone || rows == 0)
		return false;
	for (r->row = 0; r->row < rows; r->row++) {
		struct table_id t = {pgrow_uuid(r, 1)};
		if (pgrow_null(r, 2)) {
			ret->next = t;
			continue;
		}
		tables[ret->n_tables] = t;
		gone[ret->n_tables++] = pgrow_bool(r, 2);
	}
	ret->tables = tables;
	ret->gone = gone;
	return !r->bad && ret->n_tables + 1 == rows;
}

bool pg_object_result(const struct sql_effect *fx, const struct pgres *res, struct arena *arena,
		      struct sql_result *ret)
{
	struct pgrow r = {.res = res};
	ret->pg_ms = pgrow_i64(&r, 0);
	if (fx->kind == SQL_LEDGER || fx->kind == SQL_UNLEDGER) {
		ret->verdict = pgrow_bool(&r, 1) ? SQL_APPLIED : SQL_REFUSED;
		return !r.bad;
	}
	ret->verdict = SQL_APPLIED;
	if (fx->kind == SQL_CLEAN_DONE)
		return !r.bad;
	size_t rows = pgres_rows(res);
	if (fx->kind == SQL_CLEAN_DUE)
		return due_tables(&r, rows, arena, ret);
	struct strv *paths = arena_calloc(arena, rows + 1, sizeof *paths);
	bool *waits = arena_calloc(arena, rows + 1, sizeof *waits);
	if (!paths || !waits)
		return false;
	for (r.row = 0; r.row < rows; r.row++) {
		if (pgrow_null(&r, 1))
			continue;
		if (fx->kind == SQL_CLEAN_LOOK)
			waits[ret->n_paths] = pgrow_bool(&r, 2);
		paths[ret->n_paths++] = pgrow_text(&r, 1);
	}
	ret->paths = paths;
	ret->waits = waits;
	return !r.bad;
}
