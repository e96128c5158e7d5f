/* Operator routes about tables: what is loaded, halted and why, and resuming. */
#include "daemon/bind/bind_admin.h"

#include "daemon/bind/bind.h"
#include "daemon/net/call.h"
#include "proto/base/jwrite.h"

#define LIST_MAX ((size_t)64 << 20)

struct listing {
	struct jwrite w;
	bool halted_only;
};

static void one_table(void *ctx, const struct core_table_info *info)
{
	struct listing *l = ctx;
	struct jwrite *w = &l->w;
	char id[UUID_TEXT_LEN + 1];
	if (l->halted_only && !info->halted)
		return;
	uuid_text(info->table.u, id);
	jwrite_object(w);
	jwrite_kstr(w, "table-uuid", strv_of(id));
	jwrite_kstr(w, "name", info->name);
	jwrite_kstr(w, "state", strv_of(info->state));
	jwrite_ki64(w, "epoch", info->epoch);
	jwrite_ki64(w, "version", info->version);
	jwrite_ki64(w, "last-batch", info->last_batch);
	jwrite_ki64(w, "queued", (int64_t)info->queued);
	jwrite_kbool(w, "halted", info->halted);
	if (info->halted)
		jwrite_kstr(w, "cause", info->halt_cause);
	jwrite_end_object(w);
}

static void unavailable(struct call *call)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "the daemon is starting or shutting down");
	call_reply_err(call, &err);
}

/* GET: every table in memory; ?halted=true only those that wait for an operator. */
static void tables(struct call *own_call)
{
	struct bind *b = bind_of(own_call->app);
	struct buf out;
	struct listing l = {.halted_only = false};
	struct jwrite *w = &l.w;
	const struct route_arg *arg = route_arg(&own_call->hit, "halted");
	if (!b) {
		unavailable(own_call);
		return;
	}
	l.halted_only = arg && strv_ieq(arg->value.text, STRV("true"));
	buf_init(&out, LIST_MAX);
	jwrite_init(w, &out);
	jwrite_object(w);
	jwrite_key(w, "tables");
	jwrite_array(w);
	core_each_table(bind_core(b), one_table, &l);
	jwrite_end_array(w);
	const struct core_counters *c = core_counters(bind_core(b));
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
	jwrite_end_object(w);
	call_reply_buf(own_call, 200, &out);
}

static void resumed(void *ctx, const struct reply *reply)
{
	struct call *call = ctx;
	if (reply->kind == REPLY_ERR)
		call_reply_err(call, &reply->err);
	else
		call_reply_status(call, 204);
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
	route_set(app->routes, ROUTE_admin_tables, tables);
	route_set(app->routes, ROUTE_admin_resume, resume);
}
