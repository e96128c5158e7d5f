/* Tables: list, load, exists, drop, unregister, rename, metrics reports. */
#include "daemon/rest/h_idem.h"
#include "daemon/rest/h_rest.h"

#include "proto/rest/rb_table.h"
#include "store/pg/pg_tabular.h"

/* One request under way. */
struct table_work {
	struct call *call;
	struct h_place place, to; /* to: of a rename */
	struct h_page page;
	struct mcache_wait wait;
	struct rb_rename rename;
	struct strv location; /* of the metadata file */
	bool flag;            /* drop: purge; load: only referenced snapshots */
	struct table_id table; /* drop, unregister */
	int64_t incarnation;
};

static struct table_work *work_new(struct call *own_call)
{
	struct table_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return NULL;
	}
	w->call = own_call;
	return w;
}

static void fail(struct table_work *w, const struct err *err)
{
	struct err e = *err;
	jdoc_free(w->rename.doc);
	call_reply_err(w->call, &e);
}

static void started(struct table_work *w, enum status st, const struct err *err)
{
	if (st != ST_OK)
		fail(w, err);
}

/* Whether the name is a table; answers otherwise. A missing namespace is a missing table here:
 * clients try "ns.table" with the name of a metadata table behind it, and go on only if the table is
 * what does not exist. */
static bool is_table(struct table_work *w, const struct pg_tabular_result *res)
{
	if (res->err.st != ST_OK && res->err.st != ST_NO_SUCH_NAMESPACE) {
		fail(w, &res->err);
		return false;
	}
	if (res->err.st != ST_OK || !res->found || res->row.kind != PG_TABULAR_TABLE) {
		h_no_table(w->call, &w->place);
		return false;
	}
	return true;
}

static void resolve(struct table_work *w, pg_tabular_done done)
{
	struct err err = {0};
	started(w,
		pg_tabular_resolve(bind_cat(w->call->app), w->place.ns, w->place.name, done, w,
				   &err),
		&err);
}

/* ------------------------------------------------------------------ list */

static void listed(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	struct h_page_names names = {res->names, res->n_names, res->more};
	if (res->err.st != ST_OK)
		fail(w, &res->err);
	else
		h_page_reply(w->call, &w->page, &w->place, rb_table_list_write, &names);
}

void h_list(struct call *own_call, enum pg_tabular_kind kind)
{
	struct call *call = own_call;
	struct table_work *w = work_new(call);
	struct strv what = kind == PG_TABULAR_VIEW ? STRV("views") : STRV("tables");
	struct err err = {0};
	if (!w || !h_place(call, ST_NO_SUCH_NAMESPACE, &w->place) ||
	    !h_page(call, &w->place, what, &w->page))
		return;
	started(w,
		pg_tabular_list(bind_cat(call->app), w->place.ns, kind, w->page.after,
				w->page.limit, listed, w, &err),
		&err);
}

/* ------------------------------------------------------------------ load */

static void load_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	if (is_table(w, res))
		h_load(w->call, res->row.metadata_location, false, w->flag);
}

static void table_load(struct call *own_call)
{
	struct call *call = own_call;
	struct table_work *w = work_new(call);
	const struct route_arg *snapshots = route_arg(&call->hit, "snapshots");
	struct err err;
	if (!w)
		return;
	w->flag = snapshots && strv_ieq(snapshots->value.text, STRV("refs"));
	if (snapshots && !w->flag && !strv_ieq(snapshots->value.text, STRV("all"))) {
		err_set(&err, ST_BAD_REQUEST, "snapshots", "must be all or refs");
		call_reply_err(call, &err);
		return;
	}
	if (h_place(call, ST_NO_SUCH_TABLE, &w->place))
		resolve(w, load_resolved);
}

/* ------------------------------------------------------------------ exists, metrics */

static void exists_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	if (is_table(w, res))
		call_reply_status(w->call, 204);
}

static void table_exists(struct call *own_call)
{
	struct table_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_TABLE, &w->place))
		resolve(w, exists_resolved);
}

static void table_metrics(struct call *own_call)
{
	struct call *call = own_call;
	struct err err;
	if (rb_report_check(call->body, &err) != ST_OK)
		call_reply_err(call, &err);
	else
		table_exists(call);
}

/* ------------------------------------------------------------------ drop */

static void dropped(void *ctx, const struct reply *reply)
{
	struct table_work *w = ctx;
	if (reply->kind == REPLY_ERR && reply->err.st == ST_NO_SUCH_TABLE)
		h_no_table(w->call, &w->place);
	else if (reply->kind == REPLY_ERR)
		fail(w, &reply->err);
	else {
		h_idem_decided(w->call);
		call_reply_status(w->call, 204);
	}
}

static void end_table(struct table_work *w, struct sql_idem idem,
		      void (*done)(void *ctx, const struct reply *reply))
{
	struct event ev = {.kind = EV_TABLE_DROP};
	ev.u.req.principal = w->call->principal;
	ev.u.req.deadline_us = h_deadline_us(w->call);
	ev.u.req.table = w->table;
	ev.u.req.incarnation = w->incarnation;
	ev.u.req.idem = idem;
	ev.u.req.u.drop.purge = w->flag;
	bind_request(bind_of(w->call->app), &ev, done, w);
}

static void drop_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	if (!is_table(w, res))
		return;
	w->table = res->row.table;
	w->incarnation = res->row.incarnation;
	end_table(w, h_idem(w->call, 204, false), dropped);
}

static void table_drop(struct call *own_call)
{
	struct call *call = own_call;
	struct table_work *w = work_new(call);
	if (w && h_flag(call, "purgeRequested", &w->flag) &&
	    h_place(call, ST_NO_SUCH_TABLE, &w->place))
		resolve(w, drop_resolved);
}

/* ------------------------------------------------------------------ unregister */

static void unregistered(void *ctx, const struct reply *reply)
{
	struct table_work *w = ctx;
	if (reply->kind == REPLY_ERR && reply->err.st == ST_NO_SUCH_TABLE) {
		h_no_table(w->call, &w->place);
	} else if (reply->kind == REPLY_ERR) {
		fail(w, &reply->err);
	} else {
		/* Whatever was committed since the look before. LoadTableResult has all that
		 * UnregisterTableResult has. */
		h_idem_decided(w->call);
		h_reply_file(w->call, reply->metadata_location);
	}
}

/* A table whose metadata cannot be told is not let go. */
static void unregister_read(struct mcache_wait *wait, struct mcache_entry *own_entry,
			    const struct err *err)
{
	struct table_work *w = CONTAINER_OF(wait, struct table_work, wait);
	if (!own_entry && err->st == ST_NOT_FOUND) {
		h_refuse_gone(w->call, w->location);
	} else if (!own_entry) {
		fail(w, err);
	} else {
		mcache_unref(own_entry);
		end_table(w, h_idem(w->call, 200, true), unregistered);
	}
}

static void unregister_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	struct err err;
	if (!is_table(w, res))
		return;
	w->table = res->row.table;
	w->incarnation = res->row.incarnation;
	if (!arena_strv(&w->call->arena, res->row.metadata_location, &w->location)) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		fail(w, &err);
		return;
	}
	w->wait.rep = call_accepts_gzip(w->call) ? MCACHE_ALL_GZIP : MCACHE_ALL;
	w->wait.done = unregister_read;
	mcache_load(h_cache(w->call->app), w->location, &w->wait);
}

static void table_unregister(struct call *own_call)
{
	struct table_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_TABLE, &w->place))
		resolve(w, unregister_resolved);
}

/* ------------------------------------------------------------------ rename */

static void renamed(void *ctx, const struct pg_tabular_result *res)
{
	struct table_work *w = ctx;
	struct err err = res->err;
	if (err.st == ST_ALREADY_EXISTS)
		err_set(&err, ST_ALREADY_EXISTS, "", "Cannot rename %s to %s. %s already exists",
			w->place.dotted, w->to.dotted,
			res->taken_by == PG_TABULAR_VIEW ? "View" : "Table");
	if (err.st != ST_OK) {
		fail(w, &err);
		return;
	}
	h_idem_decided(w->call);
	jdoc_free(w->rename.doc);
	call_reply_status(w->call, 204);
}

void h_rename(struct call *own_call, enum pg_tabular_kind kind)
{
	struct call *call = own_call;
	struct table_work *w = work_new(call);
	struct err err = {0};
	if (!w)
		return;
	if (rb_rename_parse(call->body, &call->arena, &w->rename, &err) != ST_OK) {
		call_reply_err(call, &err);
		return;
	}
	/* The document lives until the answer: the places borrow from it. */
	struct jdoc *doc = w->rename.doc;
	if (!h_place_of(call, &w->rename.source, &w->place) ||
	    !h_place_of(call, &w->rename.destination, &w->to)) {
		jdoc_free(doc);
		return;
	}
	const struct pg_idem idem = h_idem_pg(call, 204);
	started(w,
		pg_tabular_rename(bind_cat(call->app), w->place.ns, w->place.name, w->to.ns,
				  w->to.name, kind, &idem, renamed, w, &err),
		&err);
}

static void table_list(struct call *own_call)
{
	h_list(own_call, PG_TABULAR_TABLE);
}

static void table_rename(struct call *own_call)
{
	h_rename(own_call, PG_TABULAR_TABLE);
}

void h_table_routes(struct route_table *t)
{
	route_set(t, ROUTE_table_list, table_list);
	route_set(t, ROUTE_table_load, table_load);
	route_set(t, ROUTE_table_exists, table_exists);
	route_set(t, ROUTE_table_metrics, table_metrics);
	route_set(t, ROUTE_table_drop, table_drop);
	route_set(t, ROUTE_table_rename, table_rename);
	route_set(t, ROUTE_table_unregister, table_unregister);
}
