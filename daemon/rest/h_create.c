/* Tables coming: create, staged create, register, and the commit that creates a staged table. */
#include "daemon/rest/h_create.h"
#include "daemon/rest/h_idem.h"

#include "proto/base/digest.h"
#include "proto/iceberg/metadata.h"
#include "proto/rest/rb_table.h"
#include "store/obj/fs.h"
#include "store/pg/pg_tabular.h"

#define TABLE_EXISTS "Requirement failed: table already exists"
#define STAGED_MAX_BYTES METADATA_MAX_BYTES

struct create_work {
	struct call *call;
	struct h_place place;
	struct uuid uuid; /* of the new table */
	struct strv location;
	struct rb_table_create create;
	struct rb_table_register reg;
	const struct rb_change *change; /* a commit that creates */
	struct jdoc *own_doc;           /* of that commit */
	struct mcache_wait wait;
	struct mcache_entry *entry; /* register: the file that was read */
	struct metadata *m;
	struct strv file; /* of the metadata */
	bool looked_again;
};

static struct create_work *work_new(struct call *own_call)
{
	struct create_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	uint8_t random[16];
	if (!w) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return NULL;
	}
	digest_random(random, sizeof random);
	w->call = own_call;
	w->uuid = uuid_v4(random);
	return w;
}

/* Everything but the call, which then gets its answer. */
static void release(struct create_work *w)
{
	call_free_doc(w->call, w->create.doc);
	call_free_doc(w->call, w->reg.doc);
	call_free_doc(w->call, w->own_doc);
	metadata_unref(w->m);
	if (w->entry)
		mcache_unref(w->entry);
}

static void fail(struct create_work *w, const struct err *err)
{
	struct err e = *err;
	release(w);
	call_reply_err(w->call, &e);
}

/* ------------------------------------------------------------------ where it lies */

static enum status place_metadata(struct create_work *w, struct err *err)
{
	enum status st = h_check_folders(w->call, &w->place, w->m, err);
	if (st != ST_OK)
		return st;
	return h_metadata_file(w->call, metadata_location(w->m),
			       metadata_property(w->m, "write.metadata.path"),
			       (struct strv){NULL, 0}, metadata_wants_gzip(w->m), &w->file, err);
}

/* ------------------------------------------------------------------ to the core */

static void resolve(struct create_work *w);

static void created(void *ctx, const struct reply *reply)
{
	struct create_work *w = ctx;
	struct err err;
	if (reply->kind != REPLY_ERR) {
		struct metadata *m = metadata_ref(reply->metadata);
		struct call *call = w->call;
		if (reply->remembered)
			h_idem_decided(call);
		release(w);
		if (call->hit.route == ROUTE_txn_commit)
			call_reply_status(call, 204);
		else
			h_reply_table(call, reply->metadata_location, m);
		metadata_unref(m);
		return;
	}
	err = reply->err;
	if (w->change && err.st == ST_ALREADY_EXISTS &&
	    strv_starts(strv_of(err.msg), STRV("Table already exists"))) {
		if (!w->looked_again) {
			/* It came between the look and the statement: perhaps by this very request. */
			w->looked_again = true;
			metadata_unref(w->m);
			w->m = NULL;
			resolve(w);
			return;
		}
		/* To a client that commits a creation it is its requirement that failed. */
		err_set(&err, ST_COMMIT_FAILED, "", TABLE_EXISTS);
	}
	fail(w, &err);
}

/* The table is there. Whether this very request made it, its answer lost, is the core's to say; a plain
 * conflict would have the client delete the files of a live table. */
static void submit_known(struct create_work *w, const struct pg_tabular_row *row)
{
	const struct rb_change *c = w->change;
	struct event ev = {.kind = EV_TABLE_COMMIT};
	ev.u.req.principal = w->call->principal;
	ev.u.req.deadline_us = h_deadline_us(w->call);
	ev.u.req.table = row->table;
	ev.u.req.incarnation = row->incarnation;
	ev.u.req.u.commit_table = (struct ask_commit){c->requirements, c->n_requirements, c->updates,
						      c->n_updates};
	bind_request(bind_of(w->call->app), &ev, created, w);
}

static void submit(struct create_work *w, bool registered, bool overwrite)
{
	struct event ev = {.kind = EV_TABLE_CREATE};
	ev.u.req.principal = w->call->principal;
	ev.u.req.deadline_us = h_deadline_us(w->call);
	bool alone = w->call->hit.route != ROUTE_txn_commit;
	ev.u.req.idem = h_idem(w->call, alone ? 200 : 204, alone);
	ev.u.req.u.create.warehouse = w->place.ns.warehouse;
	ev.u.req.u.create.levels = w->place.ns.levels;
	ev.u.req.u.create.n_levels = w->place.ns.n;
	ev.u.req.u.create.name = w->place.name;
	ev.u.req.u.create.metadata = w->m;
	ev.u.req.u.create.location = w->file;
	ev.u.req.u.create.registered = registered;
	ev.u.req.u.create.overwrite = overwrite;
	bind_request(bind_of(w->call->app), &ev, created, w);
}

/* The metadata is made: stored and published, or only shown. */
static void metadata_made(struct create_work *w)
{
	struct err err = {0};
	struct buf b;
	if (place_metadata(w, &err) != ST_OK) {
		fail(w, &err);
		return;
	}
	if (!w->create.stage) {
		submit(w, false, false);
		return;
	}
	struct call *call = w->call;
	buf_init(&b, STAGED_MAX_BYTES);
	rb_table_load_write(&b, (struct strv){NULL, 0}, w->m, false);
	release(w);
	call_reply_buf(call, 200, &b);
}

/* ------------------------------------------------------------------ POST tables */

static void create_metadata(struct create_work *w)
{
	struct err err = {0};
	const struct metadata_create c = {
		.uuid = w->uuid,
		.now_ms = h_now_ms(w->call->app),
		.location = w->create.location.n ? w->create.location : w->location,
		.schema = w->create.schema,
		.spec = w->create.spec,
		.order = w->create.order,
		.properties = w->create.properties,
		.n_properties = w->create.n_properties,
	};
	if (metadata_new(&c, &w->m, &err) != ST_OK)
		fail(w, &err);
	else
		metadata_made(w);
}

static void commit_metadata(struct create_work *w);

/* One look tells whether the namespace is there, where it wants its tables, and whether the name is
 * taken; who creates it first is decided by the core's statement. */
static void name_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct create_work *w = ctx;
	struct err err = res->err;
	if (err.st == ST_OK && res->found && res->row.kind == PG_TABULAR_TABLE && w->change) {
		submit_known(w, &res->row);
		return;
	}
	if (err.st == ST_OK && res->found && res->row.kind == PG_TABULAR_VIEW)
		err_set(&err, ST_ALREADY_EXISTS, "", "View with same name already exists: %s",
			w->place.dotted);
	else if (err.st == ST_OK && res->found)
		err_set(&err, ST_ALREADY_EXISTS, "", "Table already exists: %s", w->place.dotted);
	else if (err.st == ST_OK && !h_locate(w->call, &w->place, res->ns_location, w->uuid, &w->location))
		err_set(&err, ST_LIMIT, "location", "the location is too long");
	if (err.st != ST_OK)
		fail(w, &err);
	else if (w->change)
		commit_metadata(w);
	else
		create_metadata(w);
}

static void resolve(struct create_work *w)
{
	struct err err = {0};
	if (pg_tabular_resolve(bind_cat(w->call->app), w->place.ns, w->place.name, name_resolved,
			       w, &err) != ST_OK)
		fail(w, &err);
}

static enum status parse_create(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct create_work *w = ctx;
	return rb_table_create_parse(body, a, &w->create, err);
}

static void create_parsed(void *ctx, enum status st, const struct err *err)
{
	struct create_work *w = ctx;
	if (st != ST_OK) {
		call_reply_err(w->call, err);
		return;
	}
	h_place_name(&w->place, w->create.name);
	resolve(w);
}

static void table_create(struct call *own_call)
{
	struct create_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_NAMESPACE, &w->place))
		call_parse(own_call, parse_create, create_parsed, w);
}

/* ------------------------------------------------------------------ the commit of a creation */

static enum status apply_creation(struct call *call, const struct rb_change *c, struct uuid uuid,
				  struct strv location, struct metadata **own_m, struct err *err)
{
	bool placed = false, changed;
	struct update *updates = arena_calloc(&call->arena, c->n_updates + 1, sizeof *updates);
	if (!updates)
		return err_set(err, ST_LIMIT, "", "the request is too large");
	/* The updates of the request, and a location when they set none. */
	for (size_t i = 0; i < c->n_updates; i++) {
		updates[i] = c->updates[i];
		placed |= updates[i].kind == UPDATE_SET_LOCATION;
	}
	updates[c->n_updates].kind = UPDATE_SET_LOCATION;
	updates[c->n_updates].u.text = location;
	const struct metadata_ctx ctx = {.now_ms = h_now_ms(call->app), .new_uuid = uuid};
	return metadata_apply(NULL, updates, c->n_updates + !placed, &ctx, own_m, &changed, err);
}

static void commit_metadata(struct create_work *w)
{
	struct err err = {0};
	if (apply_creation(w->call, w->change, w->uuid, w->location, &w->m, &err) != ST_OK)
		fail(w, &err);
	else
		metadata_made(w);
}

enum status h_create_build(struct call *call, const struct h_place *place,
			   const struct rb_change *change, struct strv ns_location,
			   struct metadata **own_m, struct strv *ret_file, struct err *err)
{
	struct create_work w = {.call = call};
	uint8_t random[16];
	digest_random(random, sizeof random);
	w.uuid = uuid_v4(random);
	if (!h_locate(call, place, ns_location, w.uuid, &w.location))
		return err_set(err, ST_LIMIT, "location", "the location is too long");
	enum status st = apply_creation(call, change, w.uuid, w.location, &w.m, err);
	if (st == ST_OK)
		st = place_metadata(&w, err);
	if (st != ST_OK) {
		metadata_unref(w.m);
		return st;
	}
	*own_m = w.m;
	*ret_file = w.file;
	return ST_OK;
}

void h_create_commit(struct call *own_call, const struct h_place *place,
		     const struct rb_change *change, struct jdoc *own_doc)
{
	struct create_work *w = work_new(own_call);
	if (!w) {
		jdoc_free(own_doc);
		return;
	}
	w->place = *place;
	w->change = change;
	w->own_doc = own_doc;
	resolve(w);
}

/* ------------------------------------------------------------------ register */

static void register_read(struct mcache_wait *wait, struct mcache_entry *own_entry,
			  const struct err *err)
{
	struct create_work *w = CONTAINER_OF(wait, struct create_work, wait);
	struct err e = {0};
	if (!own_entry && err->st == ST_NOT_FOUND) {
		struct strv location = w->file;
		struct call *call = w->call;
		release(w);
		h_refuse_gone(call, location);
		return;
	}
	if (!own_entry) {
		e = *err;
		/* The client named the file: what is wrong with it is wrong with the request. */
		if (e.st == ST_CORRUPT)
			e.st = ST_VALIDATION;
		err_prefix(&e, "metadata-location");
		fail(w, &e);
		return;
	}
	w->entry = own_entry;
	w->m = metadata_ref(mcache_metadata(own_entry));
	if (h_check_folders(w->call, &w->place, w->m, &e) != ST_OK) {
		fail(w, &e);
		return;
	}
	/* What no commit could set may not come in by this door either. */
	if (metadata_check_properties(w->m, ST_VALIDATION, &e) != ST_OK) {
		fail(w, &e);
		return;
	}
	submit(w, true, w->reg.overwrite);
}

static enum status parse_register(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct create_work *w = ctx;
	(void)a;
	return rb_table_register_parse(body, &w->reg, err);
}

static void register_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct create_work *w = ctx;
	struct call *call = w->call;
	struct err err = {0};
	if (st != ST_OK) {
		call_reply_err(call, parse_err);
		return;
	}
	h_place_name(&w->place, w->reg.name);
	if (!arena_strv(&call->arena, w->reg.metadata_location, &w->file))
		err_set(&err, ST_LIMIT, "", "the request is too large");
	else if (fs_check(bind_fs(call->app), w->file, &err) != ST_OK)
		err_prefix(&err, "metadata-location");
	if (err.st != ST_OK) {
		fail(w, &err);
		return;
	}
	w->wait.rep = MCACHE_METADATA;
	w->wait.done = register_read;
	mcache_load(h_cache(call->app), w->file, &w->wait);
}

static void table_register(struct call *own_call)
{
	struct create_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_NAMESPACE, &w->place))
		call_parse(own_call, parse_register, register_parsed, w);
}

void h_create_routes(struct route_table *t)
{
	route_set(t, ROUTE_table_create, table_create);
	route_set(t, ROUTE_table_register, table_register);
}
