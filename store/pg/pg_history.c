#include "store/pg/pg_history.h"

#define RESULT_BYTES_MAX (4u << 20)

static void finish(struct pgcat_call *call, const struct pg_history_result *res)
{
	((pg_history_done)call->done)(call->ctx, res);
}

static void one(struct pgrow *r, struct pg_history_batch *b)
{
	b->batch.u = pgrow_uuid(r, 0);
	b->batch_no = pgrow_i64(r, 1);
	b->epoch = pgrow_i64(r, 2);
	b->base_version = pgrow_i64(r, 3);
	b->created_pg_ms = pgrow_i64(r, 4);
	b->txns = pgrow_i32(r, 5);
	b->committed = pgrow_i32(r, 6);
	b->snapshots = pgrow_i32(r, 7);
	if (b->snapshots > 0)
		b->last_snapshot = pgrow_i64(r, 8);
	b->first_row_id = pgrow_i64(r, 9);
	b->added_rows = pgrow_i64(r, 10);
	b->metadata_location = pgrow_text(r, 11);
}

static void decode(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_history_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	size_t rows = err->st == ST_OK ? pgres_rows(res) : 0;
	struct pg_history_batch *v = arena_calloc(&arena, rows + 1, sizeof *v);
	if (err->st == ST_OK && rows == 0) {
		err_set(&ret.err, ST_NO_SUCH_TABLE, "", "no table has this UUID");
	} else if (err->st == ST_OK && v) {
		for (; r.row < rows && ret.n < call->limit; r.row++)
			if (!pgrow_null(&r, 0))
				one(&r, &v[ret.n++]);
		ret.batches = v;
		ret.more = rows > call->limit;
	}
	if (err->st == ST_OK && (r.bad || !v)) {
		memset(&ret, 0, sizeof ret);
		err_set(&ret.err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
	}
	finish(call, &ret);
	arena_fini(&arena);
}

enum status pg_history_batches(struct pgcat *cat, struct table_id table, int64_t before,
			       size_t limit, pg_history_done done, void *ctx, struct err *err)
{
	struct pgcat_call *call = pgcat_call_new(cat, decode, (void (*)(void))done, ctx);
	call->limit = limit;
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, table.u);
	pgargs_i64(a, before);
	pgargs_i64(a, (int64_t)limit + 1);
	return pgcat_send(call, PGSQL_BATCH_LIST, err);
}

static void found(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_history_where ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK && pgres_rows(res) == 0) {
		err_set(&ret.err, ST_NO_SUCH_TABLE, "", "no table has this UUID");
	} else if (err->st == ST_OK) {
		ret.metadata_location = pgrow_text(&r, 0);
		ret.name = pgrow_text(&r, 1);
		if (r.bad)
			err_set(&ret.err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
	}
	((pg_history_found)call->done)(call->ctx, &ret);
}

enum status pg_history_find(struct pgcat *cat, struct table_id table, pg_history_found done,
			    void *ctx, struct err *err)
{
	struct pgcat_call *call = pgcat_call_new(cat, found, (void (*)(void))done, ctx);
	pgargs_uuid(pgcat_args(cat), table.u);
	return pgcat_send(call, PGSQL_TABLE_FIND, err);
}
