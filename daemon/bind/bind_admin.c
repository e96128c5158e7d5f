/* Operator routes about tables: what is loaded, halted and why, and resuming. */
#include "daemon/bind/bind_admin.h"

#include "daemon/bind/bind_lists.h"
#include "daemon/commit/inspect.h"
#include "proto/base/json.h"

static void one_halt(struct bind_page *p, const struct core_halt *h)
{
	struct jwrite *w = &p->w;
	jwrite_key(w, "halt");
	jwrite_object(w);
	jwrite_kstr(w, "status", strv_of(h->st));
	jwrite_kbool(w, "by-operator", h->by_operator);
	jwrite_ki64(w, "since-ms", h->pg_ms);
	if (h->object.n)
		jwrite_kstr(w, "object", h->object);
	if (h->batch_no) {
		jwrite_ki64(w, "batch-no", h->batch_no);
		bind_page_uuid(p, "batch-id", h->batch.u);
		jwrite_ki64(w, "transactions-total", (int64_t)h->n_txns);
		jwrite_key(w, "transactions");
		jwrite_array(w);
		for (size_t i = 0; i < h->n_txns && i < CORE_HALT_TXNS; i++) {
			char id[UUID_TEXT_LEN + 1];
			uuid_text(h->txns[i].u, id);
			jwrite_str(w, strv_of(id));
		}
		jwrite_end_array(w);
	}
	jwrite_end_object(w);
}

static void one_table(void *ctx, const struct core_table_info *info)
{
	struct bind_page *p = ctx;
	struct jwrite *w = &p->w;
	p->last = info->table.u;
	jwrite_object(w);
	bind_page_uuid(p, "table-uuid", info->table.u);
	jwrite_kstr(w, "name", info->name);
	jwrite_kstr(w, "state", strv_of(info->state));
	jwrite_ki64(w, "epoch", info->epoch);
	jwrite_ki64(w, "version", info->version);
	jwrite_ki64(w, "last-batch", info->last_batch);
	jwrite_ki64(w, "queued", (int64_t)info->queued);
	jwrite_kbool(w, "halted", info->halted);
	if (info->halted)
		jwrite_kstr(w, "cause", info->halt_cause);
	if (info->halt)
		one_halt(p, info->halt);
	jwrite_end_object(w);
}

static void unavailable(struct call *call)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "the daemon is starting or shutting down");
	call_reply_err(call, &err);
}

/* GET: tables in memory; ?halted=true only those that wait for an operator. */
static void tables(struct call *own_call)
{
	struct bind_page p;
	struct inspect_totals t;
	struct jwrite *w = &p.w;
	const struct route_arg *arg = route_arg(&own_call->hit, "halted");
	if (!bind_page_init(&p, own_call))
		return;
	bool halted = arg && strv_ieq(arg->value.text, STRV("true"));
	bind_page_begin(&p, "tables");
	bool more = inspect_tables(bind_core(p.b), halted, (struct table_id){p.after}, p.limit,
				   one_table, &p);
	bind_page_end(&p, more);
	inspect_count(bind_core(p.b), &t);
	jwrite_key(w, "totals");
	jwrite_object(w);
	jwrite_ki64(w, "tables", (int64_t)(t.loading + t.ready + t.halted));
	jwrite_ki64(w, "halted", (int64_t)t.halted);
	jwrite_ki64(w, "transactions", (int64_t)(t.open + t.sealed + t.queued + t.batched));
	jwrite_ki64(w, "batches-in-flight", (int64_t)t.batches);
	jwrite_end_object(w);
	const struct core_counters *c = core_counters(bind_core(p.b));
	jwrite_key(w, "counters");
	jwrite_object(w);
	jwrite_ki64(w, "batches", c->batches);
	jwrite_ki64(w, "transactions-committed", c->txns_committed);
	jwrite_ki64(w, "transactions-rejected", c->txns_rejected);
	jwrite_ki64(w, "rest-commits", c->rest_commits);
	jwrite_ki64(w, "conflicts", c->conflicts);
	jwrite_ki64(w, "unknown-outcomes", c->unknown_outcomes);
	jwrite_ki64(w, "fenced", c->fenced);
	jwrite_ki64(w, "findings", c->findings);
	jwrite_end_object(w);
	bind_page_reply(&p);
}

static void resumed(void *ctx, const struct reply *reply)
{
	struct call *call = ctx;
	if (reply->kind == REPLY_ERR)
		call_reply_err(call, &reply->err);
	else
		call_reply_status(call, 204);
}

/* {"cause": "why"} into the call's memory; no body: none was given. */
static enum status cause_of(struct call *call, struct strv *ret_cause, struct err *err)
{
	struct jdoc *doc = NULL;
	struct strv text = {0};
	const struct jval *v;
	*ret_cause = STRV("no reason given");
	if (call->body.n == 0)
		return ST_OK;
	enum status st = jdoc_parse(call->body, ST_BAD_REQUEST, &doc, err);
	if (st != ST_OK)
		return st;
	v = jval_get(jdoc_root(doc), "cause");
	if (!jval_is_object(jdoc_root(doc)) || (v && !jval_as_str(v, &text)))
		st = err_set(err, ST_BAD_REQUEST, "cause", "not a text in an object");
	else if (text.n > CORE_CAUSE_MAX)
		st = err_set(err, ST_BAD_REQUEST, "cause", "longer than %d bytes", CORE_CAUSE_MAX);
	else if (text.n && !arena_strv(&call->arena, text, ret_cause))
		st = err_set(err, ST_LIMIT, "cause", "the request is too large");
	jdoc_free(doc);
	return st;
}

/* POST: no batch is begun until the resume; answered when none is under way. */
static void halt(struct call *own_call)
{
	struct bind *b = bind_of(own_call->app);
	struct event ev = {.kind = EV_HALT};
	struct err err = {0};
	if (!b) {
		unavailable(own_call);
		return;
	}
	enum status st = uuid_parse(own_call->hit.params[0].text, &ev.u.req.table.u)
				 ? cause_of(own_call, &ev.u.req.u.halt.cause, &err)
				 : err_set(&err, ST_BAD_REQUEST, "table", "not a table uuid");
	if (st != ST_OK) {
		call_reply_err(own_call, &err);
		return;
	}
	ev.u.req.principal = own_call->principal;
	ev.u.req.deadline_us = own_call->deadline_mono_us;
	bind_request(b, &ev, resumed, own_call);
}

/* POST: adopts what the head says now and clears the halt. */
static void resume(struct call *own_call)
{
	struct bind *b = bind_of(own_call->app);
	struct event ev = {.kind = EV_RESUME};
	struct err err = {0};
	if (!b) {
		unavailable(own_call);
		return;
	}
	if (!uuid_parse(own_call->hit.params[0].text, &ev.u.req.table.u)) {
		err_set(&err, ST_BAD_REQUEST, "table", "not a table uuid");
		call_reply_err(own_call, &err);
		return;
	}
	ev.u.req.principal = own_call->principal;
	ev.u.req.deadline_us = own_call->deadline_mono_us;
	bind_request(b, &ev, resumed, own_call);
}

void bind_admin_routes(struct app *app)
{
	bind_lists_routes(app);
	route_set(app->routes, ROUTE_admin_tables, tables);
	route_set(app->routes, ROUTE_admin_halt, halt);
	route_set(app->routes, ROUTE_admin_resume, resume);
}
