/* Views: there are none yet. Clients that look whether a name is a view get a clean answer; the
 * routes are not advertised. */
#include "daemon/rest/h_rest.h"

#include "proto/rest/rb_table.h"
#include "store/pg/pg_tabular.h"

#define LIST_MAX_BYTES ((size_t)256 << 20)

struct view_work {
	struct call *call;
	struct h_place place;
};

static void no_view(struct call *own_call)
{
	struct h_place place;
	struct err err;
	if (!h_place(own_call, ST_NO_SUCH_VIEW, &place))
		return;
	err_set(&err, ST_NO_SUCH_VIEW, "", "View does not exist: %s", place.dotted);
	call_reply_err(own_call, &err);
}

static void listed(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	struct buf b;
	if (res->err.st != ST_OK) {
		struct err err = res->err;
		call_reply_err(w->call, &err);
		return;
	}
	buf_init(&b, LIST_MAX_BYTES);
	rb_table_list_write(&b, w->place.ns.levels, w->place.ns.n, res->names, res->n_names,
			    res->more);
	call_reply_buf(w->call, 200, &b);
}

static void view_list(struct call *own_call)
{
	struct call *call = own_call;
	struct view_work *w = arena_calloc(&call->arena, 1, sizeof *w);
	struct strv after;
	size_t limit;
	struct err err = {0};
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(call, &err);
		return;
	}
	w->call = call;
	if (!h_place(call, ST_NO_SUCH_NAMESPACE, &w->place) || !h_page(call, &after, &limit))
		return;
	if (pg_tabular_list(bind_cat(call->app), w->place.ns, PG_TABULAR_VIEW, after, limit,
			    listed, w, &err) != ST_OK)
		call_reply_err(call, &err);
}

void h_view_routes(struct route_table *t)
{
	route_set(t, ROUTE_view_list, view_list);
	route_set(t, ROUTE_view_load, no_view);
	route_set(t, ROUTE_view_exists, no_view);
	route_set(t, ROUTE_view_drop, no_view);
}
