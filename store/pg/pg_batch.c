#include "store/pg/pg_batch.h"

#include "store/pg/pg_idem.h"
#include "store/pg/pg_txn.h"

enum status pg_batch_check(const struct sql_effect *fx, struct err *err)
{
	if (fx->kind != SQL_PUBLISH)
		return ST_OK;
	const struct sql_publish *p = fx->u.publish;
	enum status st = pg_txn_check_paths(&p->row.metadata_location, 1, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(p->objects, p->n_objects, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(p->garbage, p->n_garbage, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(p->places, p->n_places, err);
	return st;
}

void pg_batch_put_snapshots(const struct batch_row *row, struct pgargs *a)
{
	pgargs_array(a, PGARGS_INT8);
	for (size_t i = 0; i < row->n_snapshots; i++)
		pgargs_put_i64(a, row->snapshots[i]);
	pgargs_end(a);
}

void pg_batch_args(const struct sql_effect *fx, struct pgargs *a)
{
	if (fx->kind == SQL_BATCH_LOOK) {
		pgargs_uuid(a, fx->u.look.table.u);
		pgargs_uuid(a, fx->u.look.batch.u);
		return;
	}
	const struct sql_publish *p = fx->u.publish;
	const struct batch_row *row = &p->row;
	pgargs_uuid(a, row->table.u);
	pgargs_i64(a, row->incarnation);
	pgargs_i64(a, row->epoch);
	pgargs_i64(a, row->base_version);
	pgargs_i64(a, row->batch_no);
	pgargs_uuid(a, row->batch.u);
	pgargs_array(a, PGARGS_UUID);
	for (size_t i = 0; i < row->n_txns; i++)
		pgargs_put_uuid(a, row->txns[i].u);
	pgargs_end(a);
	pgargs_array(a, PGARGS_INT2);
	for (size_t i = 0; i < row->n_txns; i++)
		pgargs_put_i16(a, row->txn_states[i]);
	pgargs_end(a);
	pgargs_bytes(a, row->outcomes);
	pg_batch_put_snapshots(row, a);
	pgargs_i64(a, row->first_row_id);
	pgargs_i64(a, row->added_rows);
	pgargs_text(a, row->metadata_location);
	pgargs_i64(a, p->last_seq);
	pgargs_i64(a, p->next_row_id);
	pgargs_texts(a, p->objects, p->n_objects);
	pgargs_texts(a, p->garbage, p->n_garbage);
	pg_idem_args(a, &p->idem);
	pgargs_bool(a, p->idem.file);
	pgargs_texts(a, p->places, p->n_places);
}

bool pg_batch_result(const struct sql_effect *fx, const struct pgres *res, struct arena *arena,
		     struct sql_result *ret)
{
	struct pgrow r = {.res = res};
	ret->pg_ms = pgrow_i64(&r, 0);
	if (fx->kind == SQL_PUBLISH) {
		ret->verdict = pgrow_bool(&r, 1) ? SQL_APPLIED : SQL_REFUSED;
		return !r.bad;
	}
	ret->found = !pgrow_null(&r, 1);
	if (ret->found) {
		struct batch_row *b = arena_calloc(arena, 1, sizeof *b);
		if (!b)
			return false;
		pg_rows_batch(&r, 1, arena, b);
		ret->batch = b;
	}
	return !r.bad;
}
