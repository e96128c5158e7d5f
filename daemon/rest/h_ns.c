/* Namespaces: list, create, load, exists, drop, properties. */
#include "daemon/rest/h_idem.h"
#include "daemon/rest/h_rest.h"

#include "proto/rest/rb_ns.h"
#include "store/pg/pg_ns.h"

#define PROPERTIES_MAX_BYTES ((size_t)64 << 20)

/* One request under way. */
struct ns_work {
	struct call *call;
	struct h_place place;
	struct h_page page;
	struct rb_ns_create create;
	struct rb_ns_update update;
	struct buf answer; /* of a creation, while it is decided */
};

static struct ns_work *work_new(struct call *own_call)
{
	struct ns_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return NULL;
	}
	w->call = own_call;
	buf_init(&w->answer, PROPERTIES_MAX_BYTES);
	return w;
}

static void fail(struct ns_work *w, const struct err *err)
{
	struct err e = *err;
	struct call *call = w->call;
	call_free_doc(call, w->create.doc);
	call_free_doc(call, w->update.doc);
	buf_fini(&w->answer);
	call_reply_err(call, &e);
}

/* Ends a call whose statement could not be started. */
static void started(struct ns_work *w, enum status st, const struct err *err)
{
	if (st != ST_OK)
		fail(w, err);
}

static void listed(void *ctx, const struct pg_ns_result *res)
{
	struct ns_work *w = ctx;
	struct h_page_names names = {res->names, res->n_names, res->more};
	if (res->err.st != ST_OK)
		fail(w, &res->err);
	else
		h_page_reply(w->call, &w->page, &w->place, rb_ns_list_write, &names);
}

static void ns_list(struct call *own_call)
{
	struct call *call = own_call;
	struct ns_work *w = work_new(call);
	struct strv *levels;
	struct err err = {0};
	if (!w || !h_place_root(call, &w->place))
		return;
	const struct route_arg *parent = route_arg(&call->hit, "parent");
	if (parent && parent->value.raw.n) {
		if (route_namespace(&call->arena, parent->value.raw, "parent", &levels,
				    &w->place.ns.n, &err) != ST_OK) {
			call_reply_err(call, &err);
			return;
		}
		w->place.ns.levels = levels;
		if (!rb_levels_possible(levels, w->place.ns.n)) {
			char text[128];
			rb_dotted(levels, w->place.ns.n, (struct strv){NULL, 0}, text, sizeof text);
			err_set(&err, ST_NO_SUCH_NAMESPACE, "", "Namespace does not exist: %s",
				text);
			call_reply_err(call, &err);
			return;
		}
	}
	if (!h_page(call, &w->place, STRV("namespaces"), &w->page))
		return;
	started(w,
		pg_ns_list(bind_cat(call->app), w->place.ns, w->page.after, w->page.limit, listed, w,
			   &err),
		&err);
}

static void created(void *ctx, const struct pg_ns_result *res)
{
	struct ns_work *w = ctx;
	if (res->err.st != ST_OK) {
		fail(w, &res->err);
		return;
	}
	h_idem_decided(w->call);
	call_free_doc(w->call, w->create.doc);
	call_reply_buf(w->call, 200, &w->answer);
}

static enum status parse_create(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct ns_work *w = ctx;
	return rb_ns_create_parse(body, a, &w->create, err);
}

static void create_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct ns_work *w = ctx;
	struct call *call = w->call;
	struct err err = {0};
	if (st != ST_OK) {
		call_reply_err(call, parse_err);
		return;
	}
	w->place.ns.levels = w->create.levels;
	w->place.ns.n = w->create.n_levels;
	struct buf properties;
	buf_init(&properties, PROPERTIES_MAX_BYTES);
	rb_ns_properties_write(&properties, w->create.properties, w->create.n_properties);
	rb_ns_write(&w->answer, w->create.levels, w->create.n_levels, buf_strv(&properties));
	if (!buf_ok(&properties))
		w->answer.failed = true;
	buf_fini(&properties);
	if (!buf_ok(&w->answer)) {
		err_set(&err, ST_LIMIT, "properties", "the answer is too large");
		fail(w, &err);
		return;
	}
	const struct pg_idem idem = {h_idem(call, 200, false), buf_bytes(&w->answer)};
	started(w,
		pg_ns_create(bind_cat(call->app), w->place.ns, w->create.properties,
			     w->create.n_properties, &idem, created, w, &err),
		&err);
}

static void ns_create(struct call *own_call)
{
	struct ns_work *w = work_new(own_call);
	if (w && h_place_root(own_call, &w->place))
		call_parse(own_call, parse_create, create_parsed, w);
}

static void loaded(void *ctx, const struct pg_ns_result *res)
{
	struct ns_work *w = ctx;
	struct buf properties, b;
	if (res->err.st != ST_OK) {
		fail(w, &res->err);
		return;
	}
	if (w->call->hit.route == ROUTE_ns_exists) {
		call_reply_status(w->call, 204);
		return;
	}
	buf_init(&properties, PROPERTIES_MAX_BYTES);
	buf_init(&b, PROPERTIES_MAX_BYTES);
	rb_ns_properties_write(&properties, res->properties, res->n_properties);
	rb_ns_write(&b, w->place.ns.levels, w->place.ns.n, buf_strv(&properties));
	buf_fini(&properties);
	call_reply_buf(w->call, 200, &b);
}

static void ns_load(struct call *own_call)
{
	struct call *call = own_call;
	struct ns_work *w = work_new(call);
	struct err err = {0};
	if (w && h_place(call, ST_NO_SUCH_NAMESPACE, &w->place))
		started(w, pg_ns_load(bind_cat(call->app), w->place.ns, loaded, w, &err), &err);
}

static void dropped(void *ctx, const struct pg_ns_result *res)
{
	struct ns_work *w = ctx;
	if (res->err.st != ST_OK) {
		fail(w, &res->err);
		return;
	}
	h_idem_decided(w->call);
	call_reply_status(w->call, 204);
}

static void ns_drop(struct call *own_call)
{
	struct call *call = own_call;
	struct ns_work *w = work_new(call);
	struct err err = {0};
	const struct pg_idem idem = h_idem_pg(call, 204);
	if (w && h_place(call, ST_NO_SUCH_NAMESPACE, &w->place))
		started(w,
			pg_ns_drop(bind_cat(call->app), w->place.ns, &idem, dropped, w, &err),
			&err);
}

static void updated(void *ctx, const struct pg_ns_result *res)
{
	struct ns_work *w = ctx;
	const struct rb_ns_update *u = &w->update;
	struct buf b;
	if (res->err.st != ST_OK) {
		fail(w, &res->err);
		return;
	}
	h_idem_decided(w->call);
	if (res->answer.p) {
		buf_init(&b, PROPERTIES_MAX_BYTES);
		buf_put(&b, res->answer.p, res->answer.n);
		call_free_doc(w->call, w->update.doc);
		call_reply_buf(w->call, 200, &b);
		return;
	}
	bool *removed = arena_calloc(&w->call->arena, u->n_removals + 1, sizeof *removed);
	if (removed) {
		for (size_t k = 0; k < res->n_removed; k++) {
			size_t at = rb_ns_removal(u, res->removed[k]);
			if (at < u->n_removals)
				removed[at] = true;
		}
	}
	buf_init(&b, PROPERTIES_MAX_BYTES);
	if (removed)
		rb_ns_updated_write(&b, u, removed);
	else
		b.failed = true; /* answered INTERNAL */
	call_free_doc(w->call, w->update.doc);
	call_reply_buf(w->call, 200, &b);
}

static enum status parse_update(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct ns_work *w = ctx;
	return rb_ns_update_parse(body, a, &w->update, err);
}

static void update_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct ns_work *w = ctx;
	struct call *call = w->call;
	struct err err = {0};
	if (st != ST_OK) {
		call_reply_err(call, parse_err);
		return;
	}
	const struct pg_idem idem = h_idem_pg(call, 200);
	started(w,
		pg_ns_update(bind_cat(call->app), w->place.ns, w->update.removals,
			     w->update.n_removals, w->update.updates, w->update.n_updates, &idem,
			     updated, w, &err),
		&err);
}

static void ns_properties(struct call *own_call)
{
	struct ns_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_NAMESPACE, &w->place))
		call_parse(own_call, parse_update, update_parsed, w);
}

void h_ns_routes(struct route_table *t)
{
	route_set(t, ROUTE_ns_list, ns_list);
	route_set(t, ROUTE_ns_create, ns_create);
	route_set(t, ROUTE_ns_load, ns_load);
	route_set(t, ROUTE_ns_exists, ns_load);
	route_set(t, ROUTE_ns_drop, ns_drop);
	route_set(t, ROUTE_ns_properties, ns_properties);
}
