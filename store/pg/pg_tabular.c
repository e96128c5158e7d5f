#include "store/pg/pg_tabular.h"

#include "store/pg/pg_txn.h"

#define RESULT_BYTES_MAX (64u << 20)
#define LIST_ALL INT32_MAX
#define RESOLVE_MAX 256

static void finish(struct pgcat_call *call, const struct pg_tabular_result *res)
{
	((pg_tabular_done)call->done)(call->ctx, res);
}

static void undecodable(struct pg_tabular_result *res)
{
	memset(res, 0, sizeof *res);
	err_set(&res->err, ST_INTERNAL, "", "PostgreSQL's answer does not decode");
}

static void no_namespace(struct pg_tabular_result *res, const char *name)
{
	err_set(&res->err, ST_NO_SUCH_NAMESPACE, "", "Namespace does not exist: %s", name);
}

static void missing(struct pg_tabular_result *res, int kind, const char *name)
{
	err_set(&res->err, kind == PG_TABULAR_VIEW ? ST_NO_SUCH_VIEW : ST_NO_SUCH_TABLE, "",
		"%s does not exist: %s", kind == PG_TABULAR_VIEW ? "View" : "Table", name);
}

static void taken(struct pg_tabular_result *res, enum pg_tabular_kind by, const char *name)
{
	res->taken_by = by;
	err_set(&res->err, ST_ALREADY_EXISTS, "", "%s already exists: %s",
		by == PG_TABULAR_VIEW ? "View" : "Table", name);
}

/* ------------------------------------------------------------------ list */

static void list_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	if (err->st == ST_OK) {
		if (!pgcat_names(res, call->limit, &arena, &ret.names, &ret.n_names, &ret.more))
			undecodable(&ret);
		else if (pgres_rows(res) == 0)
			no_namespace(&ret, call->name);
	}
	finish(call, &ret);
	arena_fini(&arena);
}

enum status pg_tabular_list(struct pgcat *cat, struct pg_path ns, enum pg_tabular_kind kind,
			    struct strv after, size_t limit, pg_tabular_done done, void *ctx,
			    struct err *err)
{
	enum status st = pgcat_check_path(ns, false, err);
	if (st == ST_OK && !pgargs_text_ok(after, PG_NAME_MAX))
		st = err_set(err, ST_BAD_REQUEST, "pageToken", "not a token of this server");
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, list_done, (void (*)(void))done, ctx);
	call->limit = limit && limit < LIST_ALL ? limit : LIST_ALL;
	pgcat_dotted(call->name, sizeof call->name, ns, NULL);
	struct pgargs *a = pgcat_args(cat);
	pgargs_text(a, ns.warehouse);
	pgargs_texts(a, ns.levels, ns.n);
	pgargs_i16(a, (int16_t)kind);
	pgargs_text(a, after);
	pgargs_i64(a, (int64_t)call->limit + 1);
	return pgcat_send(call, PGSQL_TABULAR_LIST, err);
}

/* ------------------------------------------------------------------ resolve */

/* One name that is asked for. Whoever asks for it again before its statement goes out shares the
 * answer. The path is copied: the requests may be gone by then. */
struct resolve {
	struct list node;   /* in the queue, then of its statement */
	struct list bucket; /* while it is queued */
	struct list askers;
	uint64_t hash;
	int32_t ord; /* in its statement */
	struct pg_path ns;
	struct strv name;
	char ns_dotted[160];
	struct strv levels[]; /* and behind them the text */
};

struct asker {
	struct list node;
	pg_tabular_done done;
	void *ctx;
};

/* One statement for many names. */
struct resolves {
	struct pgc_op op;
	struct pgcat *cat;
	struct list names;
	int32_t n;
};

/* ord, namespace is there, table_id, kind, location, incarnation, version, metadata, epoch, holder
 */
static bool resolve_row(struct pgrow *r, struct pg_tabular_result *ret, const char *ns)
{
	if (!pgrow_bool(r, 1)) {
		no_namespace(ret, ns);
		return !r->bad;
	}
	ret->ns_location = pgrow_text(r, 10);
	ret->found = !pgrow_null(r, 2);
	if (!ret->found)
		return !r->bad;
	struct pg_tabular_row *row = &ret->row;
	row->table.u = pgrow_uuid(r, 2);
	row->kind = pgrow_i16(r, 3) == 1 ? PG_TABULAR_VIEW : PG_TABULAR_TABLE;
	row->location = pgrow_text(r, 4);
	row->version = pgrow_i64(r, 6);
	row->metadata_location = pgrow_text(r, 7);
	if (row->kind == PG_TABULAR_TABLE) {
		row->incarnation = pgrow_i64(r, 5);
		row->epoch = pgrow_i64(r, 8);
		row->holder.u = pgrow_uuid(r, 9);
	}
	return !r->bad;
}

static void answer(struct resolve *own_q, const struct pg_tabular_result *res)
{
	struct list *n;
	while ((n = list_pop_front(&own_q->askers))) {
		struct asker *who = LIST_ITEM(n, struct asker, node);
		who->done(who->ctx, res);
		base_free(who);
	}
	base_free(own_q);
}

static void resolve_decode(struct resolve *own_q, const struct pgres *res, const struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		/* Most likely they come in order. */
		r.row = (size_t)own_q->ord - 1;
		if (r.row >= pgres_rows(res) || pgrow_i32(&r, 0) != own_q->ord)
			for (r.row = 0; r.row < pgres_rows(res); r.row++)
				if (pgrow_i32(&r, 0) == own_q->ord)
					break;
		if (!resolve_row(&r, &ret, own_q->ns_dotted))
			undecodable(&ret);
	}
	answer(own_q, &ret);
}

static void resolves_done(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
			  const struct err *err)
{
	struct resolves *all = CONTAINER_OF(op, struct resolves, op);
	struct err why = *err;
	struct list *n;
	if (end == PGC_LOST)
		err_set(&why, ST_UNAVAILABLE, "", "PostgreSQL did not answer");
	while ((n = list_pop_front(&all->names)))
		resolve_decode(LIST_ITEM(n, struct resolve, node), res, &why);
	pgcat_resolve_over(all->cat);
	base_free(all);
}

static void resolve_args(struct pgargs *a, const struct resolves *all)
{
	pgargs_array(a, PGARGS_TEXT);
	LIST_FOR(n, t1, &all->names)
	pgargs_put_text(a, LIST_ITEM(n, struct resolve, node)->ns.warehouse);
	pgargs_end(a);
	pgargs_array(a, PGARGS_TEXT);
	LIST_FOR(n, t2, &all->names)
	pgargs_put_text(a, LIST_ITEM(n, struct resolve, node)->name);
	pgargs_end(a);
	/* All levels in one array; each name has a slice of it. */
	pgargs_array(a, PGARGS_TEXT);
	LIST_FOR(n, t3, &all->names)
	{
		const struct resolve *q = LIST_ITEM(n, struct resolve, node);
		for (size_t i = 0; i < q->ns.n; i++)
			pgargs_put_text(a, q->ns.levels[i]);
	}
	pgargs_end(a);
	for (int end = 0; end < 2; end++) {
		int32_t at = 0;
		pgargs_array(a, PGARGS_INT4);
		LIST_FOR(n, t4, &all->names)
		{
			int32_t levels = (int32_t)LIST_ITEM(n, struct resolve, node)->ns.n;
			pgargs_put_i32(a, end ? at + levels : at + 1);
			at += levels;
		}
		pgargs_end(a);
	}
}

static void resolve_send(struct pgcat *cat)
{
	struct pgcat_resolves *queue = pgcat_resolve_queue(cat);
	struct resolves *all = base_calloc(1, sizeof *all);
	all->cat = cat;
	list_init(&all->names);
	all->op.done = resolves_done;
	while (queue->n && all->n < RESOLVE_MAX) {
		struct resolve *q =
			LIST_ITEM(list_pop_front(&queue->names), struct resolve, node);
		queue->n--;
		list_remove(&q->bucket);
		list_push_back(&all->names, &q->node);
		q->ord = ++all->n;
	}
	struct pgargs *a = pgcat_args(cat);
	resolve_args(a, all);
	queue->in_flight++;
	queue->sent_us = pgcat_now_us();
	if (pgpool_send(pgcat_pool(cat), PGPOOL_ANY, PGSQL_TABULAR_RESOLVE, a, &all->op)) {
		queue->sent++;
		return;
	}
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
	resolves_done(&all->op, PGC_REJECTED, NULL, &err);
}

/* A server that hangs is not sent ever more. */
static bool may_send(const struct pgcat_resolves *queue)
{
	int more = queue->in_flight > 8 ? 8 : queue->in_flight;
	return more == 0 || queue->n >= RESOLVE_MAX ||
	       pgcat_now_us() - queue->sent_us >= PGCAT_PATIENCE_US << (more - 1);
}

bool pg_tabular_resolve_flush(struct pgcat *cat)
{
	struct pgcat_resolves *queue = pgcat_resolve_queue(cat);
	while (queue->n && may_send(queue))
		resolve_send(cat);
	return queue->n > 0;
}

void pg_tabular_resolve_fail(struct pgcat *cat, const struct err *err)
{
	struct pgcat_resolves *queue = pgcat_resolve_queue(cat);
	struct list *n;
	while ((n = list_pop_front(&queue->names))) {
		struct resolve *q = LIST_ITEM(n, struct resolve, node);
		queue->n--;
		list_remove(&q->bucket);
		resolve_decode(q, NULL, err);
	}
}

/* Lengths count too: ("ab", "c") is not ("a", "bc"). */
static uint64_t hash_on(uint64_t h, struct strv s)
{
	return h * UINT64_C(0x9e3779b97f4a7c15) + bytes_hash(strv_bytes(s)) + s.n;
}

static uint64_t resolve_hash(struct pg_path ns, struct strv name)
{
	uint64_t h = hash_on(hash_on(0, ns.warehouse), name);
	for (size_t i = 0; i < ns.n; i++)
		h = hash_on(h, ns.levels[i]);
	return h ^ h >> 32;
}

static bool asks_for(const struct resolve *q, struct pg_path ns, struct strv name)
{
	if (q->ns.n != ns.n || !strv_eq(q->name, name) || !strv_eq(q->ns.warehouse, ns.warehouse))
		return false;
	for (size_t i = 0; i < ns.n; i++)
		if (!strv_eq(q->ns.levels[i], ns.levels[i]))
			return false;
	return true;
}

static struct strv copy_to(char **at, struct strv s)
{
	struct strv copy = {*at, s.n};
	if (s.n)
		memcpy(*at, s.p, s.n);
	*at += s.n;
	return copy;
}

/* Sizes are bounded by pgcat_check_path. */
static struct resolve *resolve_new(struct pg_path ns, struct strv name, uint64_t hash)
{
	size_t bytes = ns.warehouse.n + name.n;
	for (size_t i = 0; i < ns.n; i++)
		bytes += ns.levels[i].n;
	struct resolve *q = base_alloc(sizeof *q + ns.n * sizeof q->levels[0] + bytes + 1);
	char *at = (char *)&q->levels[ns.n];
	list_init(&q->node);
	list_init(&q->askers);
	list_init(&q->bucket);
	q->hash = hash;
	q->ord = 0;
	for (size_t i = 0; i < ns.n; i++)
		q->levels[i] = copy_to(&at, ns.levels[i]);
	q->ns = (struct pg_path){.warehouse = copy_to(&at, ns.warehouse),
				 .levels = q->levels,
				 .n = ns.n};
	q->name = copy_to(&at, name);
	pgcat_dotted(q->ns_dotted, sizeof q->ns_dotted, ns, NULL);
	return q;
}

enum status pg_tabular_resolve(struct pgcat *cat, struct pg_path ns, struct strv name,
			       pg_tabular_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_path(ns, false, err);
	if (st == ST_OK)
		st = pgcat_check_name(name, "name", err);
	if (st != ST_OK)
		return st;
	struct pgcat_resolves *queue = pgcat_resolve_queue(cat);
	uint64_t hash = resolve_hash(ns, name);
	struct list *bucket = &queue->buckets[hash % ARRAY_SIZE(queue->buckets)];
	struct resolve *q = NULL;
	LIST_FOR (n, tmp, bucket) {
		struct resolve *have = LIST_ITEM(n, struct resolve, bucket);
		if (have->hash == hash && asks_for(have, ns, name)) {
			q = have;
			break;
		}
	}
	if (!q) {
		q = resolve_new(ns, name, hash);
		list_push_back(bucket, &q->bucket);
		list_push_back(&queue->names, &q->node);
		queue->n++;
	}
	struct asker *who = base_alloc(sizeof *who);
	*who = (struct asker){.done = done, .ctx = ctx};
	list_init(&who->node);
	list_push_back(&q->askers, &who->node);
	return ST_OK;
}

/* ------------------------------------------------------------------ rename */

static void rename_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		int32_t v = pgrow_i32(&r, 0);
		if (r.bad) {
			undecodable(&ret);
		} else if (v == 1 || v == 3) {
			char *name = v == 1 ? call->name : call->name2;
			name[v == 1 ? call->ns_end : call->ns_end2] = 0;
			no_namespace(&ret, name);
		} else if (v == 2) {
			missing(&ret, call->kind, call->name);
		} else if (v >= 4) {
			taken(&ret, v == 5 ? PG_TABULAR_VIEW : PG_TABULAR_TABLE, call->name2);
		}
	}
	finish(call, &ret);
}

enum status pg_tabular_rename(struct pgcat *cat, struct pg_path from, struct strv from_name,
			      struct pg_path to, struct strv to_name, enum pg_tabular_kind kind,
			      const struct pg_idem *idem, pg_tabular_done done, void *ctx, struct err *err)
{
	enum status st = pgcat_check_path(from, false, err);
	if (st == ST_OK)
		st = pgcat_check_name(from_name, "source.name", err);
	if (st == ST_OK)
		st = pgcat_check_path(to, false, err);
	if (st == ST_OK)
		st = pgcat_check_name(to_name, "destination.name", err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, rename_done, (void (*)(void))done, ctx);
	call->write = true;
	call->kind = (int)kind;
	pgcat_dotted(call->name, sizeof call->name, from, NULL);
	call->ns_end = strlen(call->name);
	pgcat_dotted(call->name2, sizeof call->name2, to, NULL);
	call->ns_end2 = strlen(call->name2);
	pgcat_dotted(call->name, sizeof call->name, from, &from_name);
	pgcat_dotted(call->name2, sizeof call->name2, to, &to_name);
	struct pgargs *a = pgcat_args(cat);
	pgargs_text(a, from.warehouse);
	pgargs_texts(a, from.levels, from.n);
	pgargs_text(a, from_name);
	pgargs_texts(a, to.levels, to.n);
	pgargs_text(a, to_name);
	pgargs_i16(a, (int16_t)kind);
	pg_idem_args(a, idem ? &idem->k : NULL);
	return pgcat_send(call, PGSQL_TABULAR_RENAME, err);
}

/* ------------------------------------------------------------------ views */

static void view_create_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		int32_t v = pgrow_i32(&r, 0);
		if (r.bad)
			undecodable(&ret);
		else if (v == 4)
			no_namespace(&ret, call->name2);
		else if (v == 5)
			err_set(&ret.err, ST_ALREADY_EXISTS, "",
				"The view's uuid is in use under another name");
		else if (v != 0)
			taken(&ret, v == 3 ? PG_TABULAR_VIEW : PG_TABULAR_TABLE, call->name);
	}
	finish(call, &ret);
}

static void view_ledger_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	(void)res;
	/* Whatever became of the row: nothing was written and nothing was named. */
	if (ret.err.st == ST_COMMIT_UNKNOWN)
		ret.err.st = ST_UNAVAILABLE;
	finish(call, &ret);
}

enum status pg_tabular_view_ledger(struct pgcat *cat, struct uuid view, struct uuid attempt,
				   struct strv file, pg_tabular_done done, void *ctx,
				   struct err *err)
{
	enum status st = pg_txn_check_paths(&file, 1, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, view_ledger_done, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, view);
	pgargs_uuid(a, attempt);
	pgargs_texts(a, &file, 1);
	return pgcat_send(call, PGSQL_VIEW_LEDGER, err);
}

static void attempt_arg(struct pgargs *a, struct uuid attempt)
{
	if (uuid_is_nil(attempt))
		pgargs_null(a);
	else
		pgargs_uuid(a, attempt);
}

enum status pg_tabular_view_create(struct pgcat *cat, struct pg_path ns, struct strv name,
				   struct uuid view, struct uuid attempt, const struct strv *places, size_t n_places,
				   struct strv metadata_location, const struct pg_idem *idem, pg_tabular_done done, void *ctx,
				   struct err *err)
{
	enum status st = pgcat_check_path(ns, false, err);
	if (st == ST_OK)
		st = pgcat_check_name(name, "name", err);
	if (st == ST_OK)
		st = pg_txn_check_paths(places, n_places, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(&metadata_location, 1, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, view_create_done, (void (*)(void))done, ctx);
	call->write = true;
	pgcat_dotted(call->name, sizeof call->name, ns, &name);
	pgcat_dotted(call->name2, sizeof call->name2, ns, NULL);
	struct pgargs *a = pgcat_args(cat);
	pgargs_text(a, ns.warehouse);
	pgargs_texts(a, ns.levels, ns.n);
	pgargs_text(a, name);
	pgargs_uuid(a, view);
	pgargs_text(a, places[0]);
	pgargs_text(a, metadata_location);
	pg_idem_args(a, idem ? &idem->k : NULL);
	pgargs_texts(a, places, n_places);
	attempt_arg(a, attempt);
	return pgcat_send(call, PGSQL_VIEW_CREATE, err);
}

/* 0 done, 1 the guard did not hold */
static void view_change_done(struct pgcat_call *call, const struct pgres *res, struct err *err)
{
	struct pg_tabular_result ret = {.err = *err};
	struct pgrow r = {.res = res};
	if (err->st == ST_OK) {
		int32_t v = pgrow_i32(&r, 0);
		if (r.bad)
			undecodable(&ret);
		else if (v != 0 && call->kind)
			err_set(&ret.err, ST_COMMIT_FAILED, "",
				"The view was changed by another client");
		else if (v != 0)
			err_set(&ret.err, ST_NO_SUCH_VIEW, "", "View does not exist");
	}
	finish(call, &ret);
}

enum status pg_tabular_view_replace(struct pgcat *cat, struct uuid view, int64_t version,
				    struct uuid attempt,
				    const struct strv *places, size_t n_places,
				    struct strv metadata_location, const struct pg_idem *idem, pg_tabular_done done, void *ctx,
				    struct err *err)
{
	enum status st = pg_txn_check_paths(&metadata_location, 1, err);
	if (st == ST_OK)
		st = pg_txn_check_paths(places, n_places, err);
	if (st != ST_OK)
		return st;
	struct pgcat_call *call = pgcat_call_new(cat, view_change_done, (void (*)(void))done, ctx);
	call->write = true;
	call->kind = 1;
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, view);
	pgargs_i64(a, version);
	pgargs_text(a, metadata_location);
	pg_idem_args(a, idem ? &idem->k : NULL);
	pgargs_texts(a, places, n_places);
	attempt_arg(a, attempt);
	return pgcat_send(call, PGSQL_VIEW_REPLACE, err);
}

enum status pg_tabular_view_drop(struct pgcat *cat, struct uuid view, const struct pg_idem *idem, pg_tabular_done done,
				 void *ctx, struct err *err)
{
	struct pgcat_call *call = pgcat_call_new(cat, view_change_done, (void (*)(void))done, ctx);
	call->write = true;
	struct pgargs *a = pgcat_args(cat);
	pgargs_uuid(a, view);
	pg_idem_args(a, idem ? &idem->k : NULL);
	return pgcat_send(call, PGSQL_VIEW_DROP, err);
}
