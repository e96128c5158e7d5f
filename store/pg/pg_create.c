#include "store/pg/pg_create.h"

#include "store/pg/pg_batch.h"
#include "store/pg/pg_idem.h"
#include "store/pg/pg_txn.h"

static enum status check_name(struct strv s, const char *field, struct err *err)
{
	if (s.n == 0 || !pgargs_text_ok(s, PG_NAME_MAX))
		return err_set(err, ST_ILLEGAL_ARGUMENT, field,
			       "empty, not UTF-8, holds U+0000, or longer than %d bytes",
			       PG_NAME_MAX);
	return ST_OK;
}

enum status pg_create_check(const struct sql_effect *fx, struct err *err)
{
	if (fx->kind == SQL_TABLE_DROP)
		return pg_txn_check_paths(fx->u.drop.purge_paths, fx->u.drop.n_purge_paths, err);
	const struct sql_table_create *c = fx->u.create;
	enum status st = check_name(c->name, "name", err);
	if (st == ST_OK)
		st = check_name(c->warehouse, "warehouse", err);
	if (st == ST_OK && c->n_levels == 0)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "namespace", "a namespace has a level");
	size_t total = 0;
	for (size_t i = 0; st == ST_OK && i < c->n_levels; i++) {
		st = check_name(c->levels[i], "namespace", err);
		total += c->levels[i].n + 4;
	}
	if (st == ST_OK && total > PG_PATH_MAX)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "namespace", "longer than %d bytes",
			     PG_PATH_MAX);
	if (st == ST_OK)
		st = pg_txn_check_paths(&c->location, 1, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(&c->row.metadata_location, 1, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(c->objects, c->n_objects, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(c->places, c->n_places, err);
	return st;
}

void pg_create_args(const struct sql_effect *fx, struct pgargs *a)
{
	if (fx->kind == SQL_TABLE_DROP) {
		pgargs_uuid(a, fx->u.drop.table.u);
		pgargs_i64(a, fx->u.drop.incarnation);
		pgargs_i64(a, fx->u.drop.purge ? fx->u.drop.version : -1);
		pgargs_texts(a, fx->u.drop.purge_paths,
			     fx->u.drop.purge ? fx->u.drop.n_purge_paths : 0);
		pgargs_bool(a, fx->u.drop.purge_all);
		pg_idem_args(a, &fx->u.drop.idem);
		pgargs_bool(a, fx->u.drop.idem.file);
		return;
	}
	const struct sql_table_create *c = fx->u.create;
	pgargs_text(a, c->warehouse);
	pgargs_texts(a, c->levels, c->n_levels - 1);
	pgargs_text(a, c->levels[c->n_levels - 1]);
	pgargs_text(a, c->name);
	pgargs_uuid(a, c->table.u);
	pgargs_text(a, c->location);
	pgargs_bool(a, c->overwrite);
	pgargs_uuid(a, c->holder.u);
	pgargs_uuid(a, c->row.batch.u);
	pgargs_i64(a, c->row.base_version);
	pgargs_bytes(a, c->row.outcomes);
	pg_batch_put_snapshots(&c->row, a);
	pgargs_i64(a, c->row.first_row_id);
	pgargs_i64(a, c->row.added_rows);
	pgargs_text(a, c->row.metadata_location);
	pgargs_i64(a, c->last_seq);
	pgargs_i64(a, c->next_row_id);
	pgargs_texts(a, c->objects, c->n_objects);
	pg_idem_args(a, &c->idem);
	pgargs_bool(a, c->idem.file);
	pgargs_texts(a, c->places, c->n_places);
}

static bool kept_paths(struct pgrow *r, struct arena *arena, struct sql_result *ret)
{
	struct pgrow_array_view a = pgrow_array(r, 2);
	struct strv *v = arena_calloc(arena, a.n + 1, sizeof *v);
	if (!v)
		return false;
	for (size_t i = 0; i < a.n; i++)
		v[i] = bytes_strv(pgrow_array_next(&a));
	ret->paths = v;
	ret->n_paths = a.n;
	return !a.bad && !r->bad;
}

bool pg_create_result(const struct sql_effect *fx, const struct pgres *res, struct arena *arena,
		      struct sql_result *ret)
{
	struct pgrow r = {.res = res};
	ret->pg_ms = pgrow_i64(&r, 0);
	if (fx->kind == SQL_TABLE_DROP) {
		ret->verdict = pgrow_bool(&r, 1) ? SQL_APPLIED : SQL_REFUSED;
		if (ret->verdict == SQL_APPLIED)
			ret->head.metadata_location = pgrow_text(&r, 3);
		ret->found = pgrow_bool(&r, 4);
		return kept_paths(&r, arena, ret);
	}
	int32_t v = pgrow_i32(&r, 1);
	if (v < SQL_CREATED || v > SQL_CREATE_CONDEMNED)
		return false;
	ret->created = (enum sql_create_verdict)v;
	ret->verdict = v == SQL_CREATED ? SQL_APPLIED : SQL_REFUSED;
	ret->found = !pgrow_null(&r, 2);
	if (ret->found)
		pg_rows_head(&r, 2, &ret->head);
	return !r.bad;
}
