#include "store/pg/pg_ns.h"

#include "store/pg/pg_txn.h"

#define RESULT_BYTES_MAX (64u << 20)
#define PROPERTY_BYTES_MAX (1u << 20)
#define LIST_ALL INT32_MAX

static void finish(struct pgcat_call *call, const struct pg_ns_result *res)
{
	((pg_ns_done)call->done)(call->ctx, res);
}

static void undecodable(struct pg_ns_result *res)
{
	memset(res, 0, sizeof *res);
	err_set(&res->err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
}

static enum status start(struct pgcat_call *call, struct pg_path path, enum pgsql stmt,
			 struct err *err)
{
	pgcat_dotted(call->name, sizeof call->name, path, NULL);
	return pgcat_send(call, stmt, err);
}

static enum status no_namespace(struct err *err, const char *name)
{
	return err_set(err, ST_NO_SUCH_NAMESPACE, "", "Namespace does not exist: %s", name);
}

/* ------------------------------------------------------------------ warehouses */

static void warehouse_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK && !pgrow_bool(&r, 0))
		err_set(&ret.err, ST_ALREADY_EXISTS, "warehouse",
			"Warehouse %s is in use with another location", call->name);
	if (err->st == ST_OK && r.bad)
		undecodable(&ret);
	finish(call, &ret);
}

enum status pg_ns_warehouse(struct pgcat *cat, struct strv name, struct strv location,
			    bool overlap, pg_ns_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_name(name, "warehouse", err);
	if (st == ST_OK)
		st = pg_txn_check_paths(&location, 1, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, warehouse_done, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = pgcat_args(cat);
	pgargs_text(a, name);
	pgargs_text(a, location);
	pgargs_bool(a, overlap);
	return start(call, (struct pg_path){.levels = &name, .n = 1}, PGSQL_WAREHOUSE_ENSURE, err);
}

/* ------------------------------------------------------------------ create and drop */

static void create_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		int32_t v = pgrow_i32(&r, 0);
		if (r.bad)
			undecodable(&ret);
		else if (v == 1)
			err_set(&ret.err, ST_NO_SUCH_WAREHOUSE, "warehouse",
				"Warehouse does not exist");
		else if (v == 2)
			no_namespace(&ret.err, call->name2);
		else if (v == 3)
			err_set(&ret.err, ST_ALREADY_EXISTS, "", "Namespace already exists: %s",
				call->name);
	}
	finish(call, &ret);
}

static enum status check_property(struct strv_pair p, struct err *err)
{
	if (!pgargs_text_ok(p.key, PG_PATH_MAX) || !pgargs_text_ok(p.value, PROPERTY_BYTES_MAX))
		return err_set(err, ST_BAD_REQUEST, "properties",
			       "a property is not UTF-8, holds U+0000, or is too long");
	return ST_OK;
}

static void property_args(struct pgargs *a, const struct strv_pair *p, size_t n)
{
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < n; i++)
		pgargs_put_text(a, p[i].key);
	pgargs_end(a);
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < n; i++)
		pgargs_put_text(a, p[i].value);
	pgargs_end(a);
}

static struct pgargs *path_args(struct pgcat *cat, struct pg_path path)
{
	struct pgargs *a = pgcat_args(cat);
	pgargs_text(a, path.warehouse);
	pgargs_texts(a, path.levels, path.n);
	return a;
}

enum status pg_ns_create(struct pgcat *cat, struct pg_path path, const struct strv_pair *properties,
			 size_t n, const struct pg_idem *idem, pg_ns_done done, void *ctx,
			 struct err *err)
{
	enum status st = pgcat_check_path(path, false, err);
	for (size_t i = 0; st == ST_OK && i < n; i++)
		st = check_property(properties[i], err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, create_done, (void (*)(void))done, ctx);
	call->write = true;
	pgcat_dotted(call->name2, sizeof call->name2,
		     (struct pg_path){.levels = path.levels, .n = path.n - 1}, NULL);
	struct pgargs *a = path_args(cat, path);
	property_args(a, properties, n);
	pg_idem_args_answer(a, idem);
	return start(call, path, PGSQL_NS_CREATE, err);
}

static void drop_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		int32_t v = pgrow_i32(&r, 0);
		if (r.bad)
			undecodable(&ret);
		else if (v == 1)
			no_namespace(&ret.err, call->name);
		else if (v == 2)
			err_set(&ret.err, ST_NAMESPACE_NOT_EMPTY, "", "Namespace %s is not empty",
				call->name);
	}
	finish(call, &ret);
}

enum status pg_ns_drop(struct pgcat *cat, struct pg_path path, const struct pg_idem *idem,
		       pg_ns_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_path(path, false, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, drop_done, (void (*)(void))done, ctx);
	call->write = true;
	pg_idem_args(path_args(cat, path), idem ? &idem->k : NULL);
	return start(call, path, PGSQL_NS_DROP, err);
}

/* ------------------------------------------------------------------ load, list, update */

/* key, value; one row of nulls when there are no properties, no row without the namespace */
static void load_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	size_t rows = pgres_rows(res);
	struct strv_pair *v = arena_calloc(&arena, rows + 1, sizeof *v);
	struct pgrow r = {.res = res};
	if (err->st != ST_OK) {
		finish(call, &ret);
		arena_fini(&arena);
		return;
	}
	for (; v && r.row < rows; r.row++)
		if (!pgrow_null(&r, 0))
			v[ret.n_properties++] =
				(struct strv_pair){pgrow_text(&r, 0), pgrow_text(&r, 1)};
	ret.properties = v;
	if (!v || r.bad)
		undecodable(&ret);
	else if (rows == 0)
		no_namespace(&ret.err, call->name);
	finish(call, &ret);
	arena_fini(&arena);
}

enum status pg_ns_load(struct pgcat *cat, struct pg_path path, pg_ns_done done, void *ctx,
		       struct err *err)
{
	enum status st = pgcat_check_path(path, false, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, load_done, (void (*)(void))done, ctx);
	(void)path_args(cat, path);
	return start(call, path, PGSQL_NS_LOAD, err);
}

static void list_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	if (err->st == ST_OK) {
		if (!pgcat_names(res, call->limit, &arena, &ret.names, &ret.n_names, &ret.more))
			undecodable(&ret);
		else if (pgres_rows(res) == 0 && call->name[0])
			no_namespace(&ret.err, call->name);
		else if (pgres_rows(res) == 0)
			err_set(&ret.err, ST_NO_SUCH_WAREHOUSE, "warehouse",
				"Warehouse does not exist");
	}
	finish(call, &ret);
	arena_fini(&arena);
}

enum status pg_ns_list(struct pgcat *cat, struct pg_path path, struct strv after, size_t limit,
		       pg_ns_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_path(path, true, err);
	if (st == ST_OK && !pgargs_text_ok(after, PG_NAME_MAX))
		st = err_set(err, ST_BAD_REQUEST, "pageToken", "not a token of this server");
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, list_done, (void (*)(void))done, ctx);
	call->limit = limit && limit < LIST_ALL ? limit : LIST_ALL;
	struct pgargs *a = path_args(cat, path);
	pgargs_text(a, after);
	pgargs_i64(a, (int64_t)call->limit + 1);
	return start(call, path, PGSQL_NS_LIST, err);
}

static void update_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_ns_result ret = {.err = *err};
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	struct pgrow r = {.res = res};
	if (err->st == ST_OK && !pgrow_bool(&r, 0) && !r.bad) {
		no_namespace(&ret.err, call->name);
	} else if (err->st == ST_OK) {
		ret.updated = pgcat_texts(&r, 1, &arena, &ret.n_updated);
		ret.removed = pgcat_texts(&r, 2, &arena, &ret.n_removed);
		ret.missing = pgcat_texts(&r, 3, &arena, &ret.n_missing);
		if (!pgrow_null(&r, 4))
			ret.answer = pgrow_bytes(&r, 4);
		if (r.bad || !ret.updated || !ret.removed || !ret.missing)
			undecodable(&ret);
	}
	finish(call, &ret);
	arena_fini(&arena);
}

enum status pg_ns_update(struct pgcat *cat, struct pg_path path, const struct strv *removals,
			 size_t n_removals, const struct strv_pair *updates, size_t n_updates,
			 const struct pg_idem *idem, pg_ns_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_path(path, false, err);
	for (size_t i = 0; st == ST_OK && i < n_updates; i++)
		st = check_property(updates[i], err);
	for (size_t i = 0; st == ST_OK && i < n_removals; i++)
		st = check_property((struct strv_pair){removals[i], STRV("")}, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, update_done, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = path_args(cat, path);
	pgargs_texts(a, removals, n_removals);
	property_args(a, updates, n_updates);
	pg_idem_args(a, idem ? &idem->k : NULL);
	return start(call, path, PGSQL_NS_UPDATE, err);
}
