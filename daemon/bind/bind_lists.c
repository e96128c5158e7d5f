#include "daemon/bind/bind_lists.h"

#include "daemon/commit/inspect.h"
#include "proto/rpc/rpc.h"
#include "store/pg/pg_history.h"

#define PAGE_DEFAULT 100
/* A page of INSPECT_PAGE_MAX rows with the longest names. */
#define PAGE_BYTES_MAX ((size_t)8 << 20)

/* ------------------------------------------------------------------ pages */

static bool refuse(struct call *call, const char *field, const char *msg)
{
	struct err err = {0};
	err_set(&err, ST_BAD_REQUEST, field, "%s", msg);
	call_reply_err(call, &err);
	return false;
}

static bool arg_uuid(const struct call *call, const char *key, struct uuid *ret_u)
{
	const struct route_arg *a = route_arg(&call->hit, key);
	return !a || uuid_parse(a->value.text, ret_u);
}

static bool arg_number(const struct call *call, const char *key, int64_t *ret_n)
{
	const struct route_arg *a = route_arg(&call->hit, key);
	return !a || (strv_i64(a->value.text, ret_n) && *ret_n > 0);
}

bool bind_page_init(struct bind_page *p, struct call *call)
{
	int64_t limit = PAGE_DEFAULT;
	*p = (struct bind_page){.call = call, .b = bind_of(call->app)};
	if (!p->b) {
		struct err err = {0};
		err_set(&err, ST_UNAVAILABLE, "", "the daemon is starting or shutting down");
		call_reply_err(call, &err);
		return false;
	}
	if (!arg_number(call, "limit", &limit))
		return refuse(call, "limit", "not a number above 0");
	if (!arg_number(call, "before", &p->before))
		return refuse(call, "before", "not a number above 0");
	if (!arg_uuid(call, "after", &p->after))
		return refuse(call, "after", "not a UUID");
	if (call->hit.n_params ? !uuid_parse(call->hit.params[0].text, &p->table.u)
			       : !arg_uuid(call, "table", &p->table.u))
		return refuse(call, "table", "not a table's UUID");
	p->limit = limit > INSPECT_PAGE_MAX ? INSPECT_PAGE_MAX : (size_t)limit;
	return true;
}

void bind_page_begin(struct bind_page *p, const char *name)
{
	if (!p->out.max) {
		buf_init(&p->out, PAGE_BYTES_MAX);
		jwrite_init(&p->w, &p->out);
		jwrite_object(&p->w);
	}
	jwrite_key(&p->w, name);
	jwrite_array(&p->w);
}

void bind_page_end(struct bind_page *p, bool more)
{
	char text[UUID_TEXT_LEN + 1];
	jwrite_end_array(&p->w);
	if (!more)
		return;
	if (p->last_no) {
		jwrite_ki64(&p->w, "next", p->last_no);
	} else {
		uuid_text(p->last, text);
		jwrite_kstr(&p->w, "next", strv_of(text));
	}
}

void bind_page_reply(struct bind_page *p)
{
	jwrite_end_object(&p->w);
	call_reply_buf(p->call, 200, &p->out);
}

void bind_page_uuid(struct bind_page *p, const char *key, struct uuid id)
{
	char text[UUID_TEXT_LEN + 1];
	uuid_text(id, text);
	jwrite_kstr(&p->w, key, strv_of(text));
}

/* ------------------------------------------------------------------ transactions */

static void one_txn(void *ctx, const struct inspect_txn *x)
{
	struct bind_page *p = ctx;
	struct jwrite *w = &p->w;
	jwrite_object(w);
	bind_page_uuid(p, "txn-id", x->txn.u);
	bind_page_uuid(p, "table-uuid", x->table.u);
	jwrite_kstr(w, "table", x->table_name);
	jwrite_kstr(w, "ref", x->ref);
	jwrite_kstr(w, "kind", strv_of(rpc_symbol_name(&rpc_list_kind, (unsigned)x->kind)));
	jwrite_kstr(w, "state", strv_of(x->state));
	jwrite_kbool(w, "commit-requested", x->commit_requested);
	jwrite_kbool(w, "ordered", x->ordered);
	if (x->has_read_snapshot)
		jwrite_ki64(w, "read-snapshot-id", x->read_snapshot);
	jwrite_kstr(w, "principal", x->principal);
	jwrite_ki64(w, "created-ms", x->created_pg_ms);
	jwrite_ki64(w, "expires-ms", x->expires_pg_ms);
	jwrite_ki64(w, "fragments", (int64_t)x->fragments);
	jwrite_ki64(w, "files", (int64_t)x->files);
	jwrite_ki64(w, "waiters", (int64_t)x->waiters);
	jwrite_end_object(w);
	p->last = x->txn.u;
}

static void txns(struct call *own_call)
{
	struct bind_page p;
	if (!bind_page_init(&p, own_call))
		return;
	bind_page_begin(&p, "transactions");
	bool more = inspect_txns(bind_core(p.b), p.table, (struct txn_id){p.after}, p.limit,
				 one_txn, &p);
	bind_page_end(&p, more);
	bind_page_reply(&p);
}

/* ------------------------------------------------------------------ batches */

static void one_batch(void *ctx, const struct inspect_batch *x)
{
	struct bind_page *p = ctx;
	struct jwrite *w = &p->w;
	jwrite_object(w);
	bind_page_uuid(p, "batch-id", x->batch.u);
	bind_page_uuid(p, "table-uuid", x->table.u);
	jwrite_kstr(w, "table", x->table_name);
	jwrite_ki64(w, "batch-no", x->batch_no);
	jwrite_kstr(w, "state", strv_of(x->state));
	jwrite_ki64(w, "epoch", x->epoch);
	jwrite_ki64(w, "base-version", x->base_version);
	jwrite_kbool(w, "rest", x->rest);
	jwrite_ki64(w, "transactions", (int64_t)x->txns);
	jwrite_ki64(w, "writes-open", (int64_t)x->puts_open);
	jwrite_end_object(w);
	p->last = x->table.u;
}

static void batches(struct call *own_call)
{
	struct bind_page p;
	if (!bind_page_init(&p, own_call))
		return;
	bind_page_begin(&p, "in-flight");
	bool more = inspect_batches(bind_core(p.b), p.table, (struct table_id){p.after}, p.limit,
				    one_batch, &p);
	bind_page_end(&p, more);
	bind_page_reply(&p);
}

static void one_decided(struct bind_page *p, const struct pg_history_batch *x)
{
	struct jwrite *w = &p->w;
	jwrite_object(w);
	bind_page_uuid(p, "batch-id", x->batch.u);
	jwrite_ki64(w, "batch-no", x->batch_no);
	jwrite_ki64(w, "epoch", x->epoch);
	jwrite_ki64(w, "base-version", x->base_version);
	jwrite_ki64(w, "decided-ms", x->created_pg_ms);
	jwrite_ki64(w, "transactions", x->txns);
	jwrite_ki64(w, "committed", x->committed);
	jwrite_ki64(w, "snapshots", x->snapshots);
	if (x->snapshots > 0)
		jwrite_ki64(w, "last-snapshot-id", x->last_snapshot);
	jwrite_ki64(w, "first-row-id", x->first_row_id);
	jwrite_ki64(w, "added-rows", x->added_rows);
	jwrite_kstr(w, "metadata-location", x->metadata_location);
	jwrite_end_object(w);
	p->last_no = x->batch_no;
}

static void decided(void *ctx, const struct pg_history_result *res)
{
	struct call *call = ctx;
	struct bind_page p;
	if (res->err.st != ST_OK) {
		call_reply_err(call, &res->err);
		return;
	}
	/* Read again: the daemon may have begun to stop meanwhile. */
	if (!bind_page_init(&p, call))
		return;
	bind_page_begin(&p, "in-flight");
	bool more = inspect_batches(bind_core(p.b), p.table, (struct table_id){0}, 1, one_batch, &p);
	bind_page_end(&p, more);
	bind_page_begin(&p, "decided");
	for (size_t i = 0; i < res->n; i++)
		one_decided(&p, &res->batches[i]);
	bind_page_end(&p, res->more);
	bind_page_reply(&p);
}

static void table_batches(struct call *own_call)
{
	struct bind_page p;
	struct err err = {0};
	if (!bind_page_init(&p, own_call))
		return;
	if (pg_history_batches(bind_cat(own_call->app), p.table, p.before ? p.before : INT64_MAX,
			       p.limit, decided, own_call, &err) != ST_OK)
		call_reply_err(own_call, &err);
}

/* ------------------------------------------------------------------ findings */

static void one_finding(void *ctx, const struct inspect_finding *x)
{
	struct bind_page *p = ctx;
	struct jwrite *w = &p->w;
	jwrite_object(w);
	jwrite_ki64(w, "no", x->no);
	jwrite_ki64(w, "found-ms", x->pg_ms);
	bind_page_uuid(p, "table-uuid", x->table.u);
	jwrite_kstr(w, "table", x->table_name);
	jwrite_kstr(w, "kind", strv_of(x->kind));
	jwrite_kstr(w, "file", x->path);
	jwrite_end_object(w);
	p->last_no = x->no;
}

static void findings(struct call *own_call)
{
	struct bind_page p;
	if (!bind_page_init(&p, own_call))
		return;
	bind_page_begin(&p, "findings");
	bool more = inspect_findings(bind_core(p.b), p.table, p.before, p.limit, one_finding, &p);
	bind_page_end(&p, more);
	jwrite_ki64(&p.w, "total", core_counters(bind_core(p.b))->findings);
	bind_page_reply(&p);
}

void bind_lists_routes(struct app *app)
{
	route_set(app->routes, ROUTE_admin_txns, txns);
	route_set(app->routes, ROUTE_admin_batches, batches);
	route_set(app->routes, ROUTE_admin_table_batches, table_batches);
	route_set(app->routes, ROUTE_admin_findings, findings);
}
