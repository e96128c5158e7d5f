#include "store/pg/pgcat.h"

#include "store/pg/pg_idem.h"
#include "store/pg/pg_tabular.h"
#include "store/pg/pg_txn.h"

struct pgcat {
	struct pgpool *pool;
	struct pgargs args;
	struct pgcat_resolves resolves;
	struct pgcat_looks looks;
	int64_t sent; /* all but the resolves */
	void (*room)(void *ctx);
	void *room_ctx;
	void (*step)(enum pgsql stmt, bool after);
};

struct pgcat *pgcat_new(struct pgpool *pool)
{
	struct pgcat *cat = base_calloc(1, sizeof *cat);
	cat->pool = pool;
	pgargs_init(&cat->args);
	list_init(&cat->resolves.names);
	for (size_t i = 0; i < ARRAY_SIZE(cat->resolves.buckets); i++)
		list_init(&cat->resolves.buckets[i]);
	list_init(&cat->looks.calls);
	return cat;
}

void pgcat_free(struct pgcat *own_cat)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "the daemon is stopping");
	pg_tabular_resolve_fail(own_cat, &err);
	pg_idem_fail(own_cat, &err);
	pgargs_fini(&own_cat->args);
	base_free(own_cat);
}

void pgcat_on_room(struct pgcat *cat, void (*room)(void *ctx), void *ctx)
{
	cat->room = room;
	cat->room_ctx = ctx;
}

void pgcat_on_step(struct pgcat *cat, void (*step)(enum pgsql stmt, bool after))
{
	cat->step = step;
}

bool pgcat_flush(struct pgcat *cat)
{
	pg_idem_flush(cat);
	return pg_tabular_resolve_flush(cat);
}

int64_t pgcat_now_us(void)
{
	return (int64_t)(uv_hrtime() / 1000);
}

void pgcat_resolve_over(struct pgcat *cat)
{
	cat->resolves.in_flight--;
	if (cat->resolves.n && cat->room)
		cat->room(cat->room_ctx);
}

int64_t pgcat_statements(const struct pgcat *cat)
{
	return cat->sent + cat->resolves.sent + cat->looks.sent;
}

struct pgcat_resolves *pgcat_resolve_queue(struct pgcat *cat)
{
	return &cat->resolves;
}

struct pgcat_looks *pgcat_look_queue(struct pgcat *cat)
{
	return &cat->looks;
}

struct pgpool *pgcat_pool(struct pgcat *cat)
{
	return cat->pool;
}

static void on_done(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		    const struct err *err)
{
	struct pgcat_call *call = CONTAINER_OF(op, struct pgcat_call, op);
	struct err why = *err;
	if (call->cat->step)
		call->cat->step(call->stmt, true);
	if (end == PGC_REJECTED && !strcmp(op->sqlstate, "FZ004"))
		pgcat_place_taken(&why);
	if (end == PGC_REJECTED && !strcmp(op->sqlstate, "FZ002"))
		err_set(&why, ST_PATH_CONDEMNED, "",
			"the file is being deleted, or belongs to a change that is under way");
	if (end == PGC_LOST)
		err_set(&why, call->write ? ST_COMMIT_UNKNOWN : ST_UNAVAILABLE, "",
			"PostgreSQL did not answer");
	else if (end == PGC_REJECTED && !strcmp(op->sqlstate, PG_IDEM_TAKEN))
		err_set(&why, ST_KEY_DECIDED, "", "decided before");
	call->decode(call, end == PGC_ROWS ? res : NULL, &why);
	base_free(call);
}

void pgcat_place_taken(struct err *err)
{
	err_set(err, ST_PLACE_TAKEN, "location",
		"the location, or a folder that a property names, overlaps with that of another "
		"table or view");
}

struct pgcat_call *pgcat_call_new(struct pgcat *cat, pgcat_decode decode, void (*done)(void),
				  void *ctx)
{
	struct pgcat_call *call = base_calloc(1, sizeof *call);
	call->cat = cat;
	call->decode = decode;
	call->done = done;
	call->ctx = ctx;
	call->op.done = on_done;
	list_init(&call->node);
	return call;
}

struct pgargs *pgcat_args(struct pgcat *cat)
{
	pgargs_clear(&cat->args);
	return &cat->args;
}

enum status pgcat_send(struct pgcat_call *own_call, enum pgsql stmt, struct err *err)
{
	struct pgcat *cat = own_call->cat;
	if (!pgargs_ok(&cat->args)) {
		base_free(own_call);
		return err_set(err, ST_LIMIT, "", "one statement may take %u bytes",
			       PGARGS_BYTES_MAX);
	}
	own_call->stmt = stmt;
	if (cat->step)
		cat->step(stmt, false);
	if (pgpool_send(cat->pool, PGPOOL_ANY, stmt, &cat->args, &own_call->op)) {
		cat->sent++;
		return ST_OK;
	}
	base_free(own_call);
	return err_set(err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
}

enum status pgcat_check_name(struct strv name, const char *field, struct err *err)
{
	if (name.n == 0)
		return err_set(err, ST_BAD_REQUEST, field, "a name is empty");
	if (!pgargs_text_ok(name, PG_NAME_MAX))
		return err_set(err, ST_BAD_REQUEST, field,
			       "a name is not UTF-8, holds U+0000, or is longer than %d bytes",
			       PG_NAME_MAX);
	return ST_OK;
}

enum status pgcat_check_path(struct pg_path path, bool may_be_root, struct err *err)
{
	enum status st = pgcat_check_name(path.warehouse, "warehouse", err);
	size_t total = 0;
	if (st == ST_OK && path.n == 0 && !may_be_root)
		st = err_set(err, ST_BAD_REQUEST, "namespace",
			     "a namespace has at least one level");
	for (size_t i = 0; st == ST_OK && i < path.n; i++) {
		st = pgcat_check_name(path.levels[i], "namespace", err);
		total += path.levels[i].n + 4;
	}
	if (st == ST_OK && total > PG_PATH_MAX)
		st = err_set(err, ST_BAD_REQUEST, "namespace", "longer than %d bytes", PG_PATH_MAX);
	return st;
}

static void put(char *out, size_t cap, size_t *at, struct strv s)
{
	size_t room = cap - 1 - *at;
	size_t n = s.n < room ? s.n : room;
	/* Never half a character. */
	if (n < s.n)
		while (n > 0 && ((uint8_t)s.p[n] & 0xc0) == 0x80)
			n--;
	if (n)
		memcpy(out + *at, s.p, n);
	*at += n;
	out[*at] = 0;
}

void pgcat_dotted(char *out, size_t cap, struct pg_path path, const struct strv *name)
{
	size_t at = 0;
	out[0] = 0;
	for (size_t i = 0; i < path.n; i++) {
		if (i)
			put(out, cap, &at, STRV("."));
		put(out, cap, &at, path.levels[i]);
	}
	if (name) {
		if (path.n)
			put(out, cap, &at, STRV("."));
		put(out, cap, &at, *name);
	}
}

const struct strv *pgcat_texts(struct pgrow *r, int col, struct arena *arena, size_t *ret_n)
{
	struct pgrow_array_view a = pgrow_array(r, col);
	struct strv *v = arena_calloc(arena, a.n + 1, sizeof *v);
	if (!v || r->bad)
		return NULL;
	for (size_t i = 0; i < a.n; i++)
		v[i] = bytes_strv(pgrow_array_next(&a));
	if (a.bad)
		return NULL;
	*ret_n = a.n;
	return v;
}

bool pgcat_names(const struct pgres *res, size_t limit, struct arena *a,
		 const struct strv **ret_names, size_t *ret_n, bool *ret_more)
{
	size_t rows = pgres_rows(res), n = 0;
	struct strv *v = arena_calloc(a, rows + 1, sizeof *v);
	struct pgrow r = {.res = res};
	for (; v && r.row < rows; r.row++)
		if (!pgrow_null(&r, 0))
			v[n++] = pgrow_text(&r, 0);
	if (!v || r.bad)
		return false;
	*ret_names = v;
	*ret_more = n > limit;
	*ret_n = n > limit ? limit : n;
	return true;
}
