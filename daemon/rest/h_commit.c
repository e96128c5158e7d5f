/* Commits: one table on its own route, and the route of transactions. Both enter the queue of the core,
 * beside the transactions of workers. */
#include "daemon/rest/h_create.h"
#include "daemon/rest/h_idem.h"
#include "daemon/rest/h_multi.h"

#include <stdio.h>

#include "proto/iceberg/place.h"
#include "store/pg/pg_tabular.h"

struct commit_work {
	struct call *call;
	struct h_place place;
	struct rb_commit req;
};

static void drop_doc(struct commit_work *w)
{
	call_free_doc(w->call, w->req.doc);
	w->req.doc = NULL;
}

static void fail(struct commit_work *w, const struct err *err)
{
	struct err e = *err;
	drop_doc(w);
	call_reply_err(w->call, &e);
}

static void gone(struct commit_work *w)
{
	drop_doc(w);
	h_no_table(w->call, &w->place);
}

static void committed(void *ctx, const struct reply *reply)
{
	struct commit_work *w = ctx;
	if (reply->kind == REPLY_ERR && reply->err.st == ST_NO_SUCH_TABLE) {
		gone(w);
	} else if (reply->kind == REPLY_ERR) {
		fail(w, &reply->err);
	} else {
		drop_doc(w);
		if (reply->remembered)
			h_idem_decided(w->call);
		if (w->call->hit.route == ROUTE_txn_commit)
			call_reply_status(w->call, 204);
		else
			h_reply_table(w->call, reply->metadata_location, reply->metadata);
	}
}

static void resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct commit_work *w = ctx;
	const struct rb_change *c = w->req.changes;
	struct event ev = {.kind = EV_TABLE_COMMIT};
	if (res->err.st != ST_OK && res->err.st != ST_NO_SUCH_NAMESPACE) {
		fail(w, &res->err);
		return;
	}
	if (res->err.st != ST_OK || !res->found || res->row.kind != PG_TABULAR_TABLE) {
		gone(w);
		return;
	}
	ev.u.req.principal = w->call->principal;
	ev.u.req.deadline_us = h_deadline_us(w->call);
	ev.u.req.table = res->row.table;
	ev.u.req.incarnation = res->row.incarnation;
	bool alone = w->call->hit.route == ROUTE_table_commit;
	ev.u.req.idem = h_idem(w->call, alone ? 200 : 204, alone);
	ev.u.req.u.commit_table.requirements = c->requirements;
	ev.u.req.u.commit_table.n_requirements = c->n_requirements;
	ev.u.req.u.commit_table.updates = c->updates;
	ev.u.req.u.commit_table.n_updates = c->n_updates;
	bind_request(bind_of(w->call->app), &ev, committed, w);
}

/* A table may move only to where the store can write; said before anything is planned. */
enum status h_check_places(const struct call *call, const struct h_place *place,
			   const struct rb_change *c, struct err *err)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < c->n_updates && st == ST_OK; i++) {
		const struct update *u = &c->updates[i];
		char field[96];
		if (u->kind == UPDATE_SET_LOCATION && u->u.text.n) {
			snprintf(field, sizeof field, "updates[%zu].location", i);
			st = h_check_folder(call, place, u->u.text, field, err);
		}
		for (size_t k = 0; u->kind == UPDATE_SET_PROPERTIES && st == ST_OK &&
				   k < u->u.properties.n; k++) {
			const struct strv_pair *p = &u->u.properties.v[k];
			/* An empty one is as good as none. */
			if (!place_is_key(p->key) || p->value.n == 0)
				continue;
			snprintf(field, sizeof field, "updates[%zu].%.*s", i, STRV_ARG(p->key));
			st = h_check_folder(call, place, p->value, field, err);
		}
	}
	return st;
}

static void commit(struct commit_work *w)
{
	struct err err = {0};
	if (h_check_places(w->call, &w->place, w->req.changes, &err) != ST_OK)
		fail(w, &err);
	else if (w->req.changes->create)
		h_create_commit(w->call, &w->place, w->req.changes, w->req.doc);
	else if (pg_tabular_resolve(bind_cat(w->call->app), w->place.ns, w->place.name, resolved,
				    w, &err) != ST_OK)
		fail(w, &err);
}

static struct commit_work *work_new(struct call *own_call)
{
	struct commit_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return NULL;
	}
	w->call = own_call;
	return w;
}

static enum status parse_one(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct commit_work *w = ctx;
	return rb_commit_parse(body, a, &w->req, err);
}

static void one_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct commit_work *w = ctx;
	struct err err = {0};
	if (st != ST_OK) {
		call_reply_err(w->call, parse_err);
		return;
	}
	const struct rb_ident path = {w->place.ns.levels, w->place.ns.n, w->place.name};
	if (w->req.changes->has_ident && !rb_ident_eq(&w->req.changes->ident, &path)) {
		err_set(&err, ST_BAD_REQUEST, "identifier",
			"names another table than the path, which is %s", w->place.dotted);
		fail(w, &err);
		return;
	}
	commit(w);
}

static void table_commit(struct call *own_call)
{
	struct commit_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_TABLE, &w->place))
		call_parse(own_call, parse_one, one_parsed, w);
}

static enum status parse_many(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct commit_work *w = ctx;
	return rb_commit_parse_many(body, a, &w->req, err);
}

static void many_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct commit_work *w = ctx;
	struct call *call = w->call;
	if (st != ST_OK) {
		call_reply_err(call, parse_err);
		return;
	}
	if (w->req.n > 1) {
		h_multi_commit(call, &w->req);
		return;
	}
	struct jdoc *doc = w->req.doc;
	if (!h_place_of(call, &w->req.changes->ident, &w->place)) {
		jdoc_free(doc);
		return;
	}
	commit(w);
}

static void txn_commit(struct call *own_call)
{
	struct commit_work *w = work_new(own_call);
	if (w)
		call_parse(own_call, parse_many, many_parsed, w);
}

void h_commit_routes(struct route_table *t)
{
	route_set(t, ROUTE_table_commit, table_commit);
	route_set(t, ROUTE_txn_commit, txn_commit);
}
