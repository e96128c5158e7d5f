#include "store/pg/pg_place.h"

#include "store/pg/pg_txn.h"

static void place_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_place_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK && !call->write && pgres_rows(res) > 0) {
		ret.found = true;
		ret.table.u = pgrow_uuid(&r, 0);
		ret.version = pgrow_i64(&r, 1);
		ret.metadata_location = pgrow_text(&r, 2);
	}
	if (ret.err.st == ST_OK && call->write)
		ret.found = pgrow_bool(&r, 0);
	if (r.bad)
		err_set(&ret.err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
	((pg_place_done)call->done)(call->ctx, &ret);
}

enum status pg_place_next(struct pgcat *cat, struct table_id after, pg_place_done done, void *ctx,
			  struct err *err)
{
	struct pgcat_call *call = pgcat_call_new(cat, place_done, (void (*)(void))done, ctx);
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, after.u);
	return pgcat_send(call, PGSQL_PLACE_NEXT, err);
}

enum status pg_place_note(struct pgcat *cat, struct table_id table, int64_t version,
			  const struct strv *places, size_t n, pg_place_done done, void *ctx,
			  struct err *err)
{
	enum status st = pg_txn_check_paths(places, n, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, place_done, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, table.u);
	pgargs_i64(a, version);
	pgargs_texts(a, places, n);
	return pgcat_send(call, PGSQL_PLACE_NOTE, err);
}
