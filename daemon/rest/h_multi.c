/* One request over several tables: names are resolved, creations made ready, and all goes to the core
 * as one. */
#include "daemon/rest/h_multi.h"

#include <stdio.h>

#include "daemon/rest/h_create.h"
#include "daemon/rest/h_idem.h"
#include "proto/iceberg/metadata.h"

#define TABLE_EXISTS "Requirement failed: table already exists"

struct multi_part {
	struct multi_work *w;
	const struct rb_change *change;
	struct h_place place;
	struct err err;
	struct metadata *m; /* of a table that comes; owned */
};

struct multi_work {
	struct call *call;
	struct jdoc *doc;
	struct multi_part *parts;
	struct ask_part *ask;
	size_t n, waiting;
	bool refused, looked_again;
};

static void over(struct multi_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		metadata_unref(w->parts[i].m);
	call_free_doc(w->call, w->doc);
}

static void fail(struct multi_work *w, const struct err *err)
{
	struct err e = *err;
	/* To a client that commits a creation it is its requirement that failed. */
	if (e.st == ST_ALREADY_EXISTS &&
	    strv_starts(strv_of(e.msg), STRV("Table already exists")))
		err_set(&e, ST_COMMIT_FAILED, "", TABLE_EXISTS);
	over(w);
	call_reply_err(w->call, &e);
}

static void resolve(struct multi_work *w);

static void committed(void *ctx, const struct reply *reply)
{
	struct multi_work *w = ctx;
	if (reply->kind == REPLY_ERR && reply->err.st == ST_ALREADY_EXISTS && !w->refused &&
	    !w->looked_again) {
		/* It came between the look and the statement: perhaps by this very request. */
		w->looked_again = true;
		resolve(w);
		return;
	}
	if (reply->kind == REPLY_ERR) {
		fail(w, &reply->err);
		return;
	}
	if (reply->remembered)
		h_idem_decided(w->call);
	over(w);
	call_reply_status(w->call, 204);
}

/* Tables that are there and get snapshots, moved to the front; returns how many. */
static size_t provable(struct multi_work *w)
{
	size_t n = 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct ask_commit *c = &w->ask[i].commit;
		size_t k = 0;
		while (k < c->n_updates && c->updates[k].kind != UPDATE_ADD_SNAPSHOT)
			k++;
		if (w->parts[i].err.st == ST_OK && !w->ask[i].creates && k < c->n_updates)
			w->ask[n++] = w->ask[i];
	}
	return n;
}

/* All names are known: the first that is wrong answers. A request that was committed, its answer lost,
 * may name what has been dropped or renamed since: then its snapshots are looked for in the others. */
static void submit(struct multi_work *w)
{
	struct event ev = {.kind = EV_TABLES_COMMIT};
	const struct err *wrong = NULL;
	size_t n = w->n;
	for (size_t i = 0; i < w->n && !wrong; i++)
		if (w->parts[i].err.st != ST_OK)
			wrong = &w->parts[i].err;
	if (wrong && (wrong->st == ST_UNAVAILABLE || (n = provable(w)) == 0)) {
		fail(w, wrong);
		return;
	}
	ev.u.req.principal = w->call->principal;
	ev.u.req.deadline_us = h_deadline_us(w->call);
	ev.u.req.idem = h_idem(w->call, 204, false);
	ev.u.req.u.commit_tables.v = w->ask;
	ev.u.req.u.commit_tables.n = n;
	ev.u.req.u.commit_tables.refused = wrong;
	w->refused = wrong;
	ev.u.req.u.commit_tables.may_look = !wrong && !w->looked_again;
	bind_request(bind_of(w->call->app), &ev, committed, w);
}

static void let_go(struct multi_work *w)
{
	if (--w->waiting == 0)
		submit(w);
}

static void to_create(struct multi_part *p, struct ask_part *ask, struct strv ns_location)
{
	struct ask_create *c = &ask->create;
	ask->creates = true;
	c->warehouse = p->place.ns.warehouse;
	c->levels = p->place.ns.levels;
	c->n_levels = p->place.ns.n;
	c->name = p->place.name;
	if (h_create_build(p->w->call, &p->place, p->change, ns_location, &p->m, &c->location,
			   &p->err) == ST_OK)
		c->metadata = p->m;
}

static void resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct multi_part *p = ctx;
	struct multi_work *w = p->w;
	size_t at = (size_t)(p - w->parts);
	struct ask_part *ask = &w->ask[at];
	bool table = res->err.st == ST_OK && res->found && res->row.kind == PG_TABULAR_TABLE;
	bool view = res->err.st == ST_OK && res->found && !table;
	ask->name = strv_of(p->place.dotted);
	if (res->err.st != ST_OK && (res->err.st != ST_NO_SUCH_NAMESPACE || p->change->create)) {
		p->err = res->err;
	} else if (table) {
		/* A creation of it too: whether it is this very request's is the core's to say. */
		ask->table = res->row.table;
		ask->incarnation = res->row.incarnation;
		ask->commit = (struct ask_commit){p->change->requirements, p->change->n_requirements,
						  p->change->updates, p->change->n_updates};
	} else if (p->change->create && view) {
		err_set(&p->err, ST_ALREADY_EXISTS, "", "View with same name already exists: %s",
			p->place.dotted);
	} else if (p->change->create) {
		to_create(p, ask, res->ns_location);
	} else {
		err_set(&p->err, ST_NO_SUCH_TABLE, "", "Table does not exist: %s", p->place.dotted);
	}
	if (p->err.st != ST_OK && p->err.field[0])
		err_prefix(&p->err, "table-changes[%zu]", at);
	let_go(w);
}

static void resolve(struct multi_work *w)
{
	w->waiting = 1;
	for (size_t i = 0; i < w->n; i++) {
		struct multi_part *p = &w->parts[i];
		metadata_unref(p->m);
		p->m = NULL;
		w->ask[i] = (struct ask_part){0};
		w->waiting++;
		if (pg_tabular_resolve(bind_cat(w->call->app), p->place.ns, p->place.name, resolved, p,
				       &p->err) != ST_OK)
			let_go(w);
	}
	let_go(w);
}

void h_multi_commit(struct call *own_call, const struct rb_commit *own_req)
{
	struct call *call = own_call;
	struct err err = {0};
	size_t n = own_req->n;
	struct multi_work *w = arena_calloc(&call->arena, 1, sizeof *w);
	struct multi_part *parts = arena_calloc(&call->arena, n, sizeof *parts);
	struct ask_part *ask = arena_calloc(&call->arena, n, sizeof *ask);
	if (n > CORE_PARTS_MAX)
		err_set(&err, ST_TOO_LARGE, "table-changes", "names %zu tables, at most %d may be", n,
			CORE_PARTS_MAX);
	else if (!w || !parts || !ask)
		err_set(&err, ST_LIMIT, "", "the request is too large");
	struct h_place root;
	if (!h_place_root(call, &root)) {
		call_free_doc(call, own_req->doc);
		return;
	}
	for (size_t i = 0; err.st == ST_OK && i < n; i++)
		if (h_check_places(call, &root, &own_req->changes[i], &err) != ST_OK)
			err_prefix(&err, "table-changes[%zu]", i);
	if (err.st != ST_OK) {
		call_free_doc(call, own_req->doc);
		call_reply_err(call, &err);
		return;
	}
	*w = (struct multi_work){.call = call, .doc = own_req->doc, .parts = parts, .ask = ask, .n = n};
	for (size_t i = 0; i < n; i++) {
		parts[i] = (struct multi_part){.w = w, .change = &own_req->changes[i]};
		if (!h_place_of(call, &parts[i].change->ident, &parts[i].place)) {
			jdoc_free(own_req->doc);
			return;
		}
	}
	resolve(w);
}
