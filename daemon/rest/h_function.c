/* Functions: list, load. The REST specification has no route that creates one, so a namespace has
 * none; what is asked for is looked up all the same, because a missing namespace is another answer. */
#include "daemon/rest/h_rest.h"

#include "proto/rest/rb_table.h"
#include "store/pg/pg_ns.h"

struct function_work {
	struct call *call;
	struct h_place place;
	struct h_page page;
};

static void fail(struct function_work *w, const struct err *err)
{
	call_reply_err(w->call, err);
}

static void listed(void *ctx, const struct pg_ns_result *res)
{
	struct function_work *w = ctx;
	const struct h_page_names none = {NULL, 0, false};
	if (res->err.st != ST_OK)
		fail(w, &res->err);
	else
		h_page_reply(w->call, &w->page, &w->place, rb_table_list_write, &none);
}

static void looked(void *ctx, const struct pg_ns_result *res)
{
	struct function_work *w = ctx;
	struct err err = res->err;
	if (err.st == ST_OK)
		err_set(&err, ST_NO_SUCH_FUNCTION, "", "Function does not exist: %s",
			w->place.dotted);
	fail(w, &err);
}

static void start(struct call *own_call, enum status missing, pg_ns_done done)
{
	struct function_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return;
	}
	w->call = own_call;
	if (!h_place(own_call, missing, &w->place) ||
	    !h_page(own_call, &w->place, STRV("functions"), &w->page))
		return;
	if (pg_ns_load(bind_cat(own_call->app), w->place.ns, done, w, &err) != ST_OK)
		fail(w, &err);
}

static void function_list(struct call *own_call)
{
	start(own_call, ST_NO_SUCH_NAMESPACE, listed);
}

static void function_load(struct call *own_call)
{
	start(own_call, ST_NO_SUCH_FUNCTION, looked);
}

void h_function_routes(struct route_table *t)
{
	route_set(t, ROUTE_function_list, function_list);
	route_set(t, ROUTE_function_load, function_load);
}
