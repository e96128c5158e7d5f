/* Views: a metadata file each, and a row that names it. They share names with tables and need none
 * of the commit core: a commit is one compare-and-swap of the row, tried again on what another
 * client has made of the view meanwhile. */
#include "daemon/bind/crash.h"
#include "daemon/rest/h_idem.h"
#include "daemon/rest/h_rest.h"

#include "proto/base/digest.h"
#include "proto/base/gzip.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/view.h"
#include "proto/rest/rb_table.h"
#include "proto/rest/rb_view.h"
#include "store/obj/fs.h"
#include "store/obj/obj.h"

/* Commits of one view that may come in between before the client is told. */
#define ATTEMPTS_MAX 8
/* Larger documents are gzipped by the pool. */
#define PACK_INLINE ((size_t)256 << 10)
#define VIEW_TOO_LARGE "the view is larger than this server's limit"
#define CODEC "write.metadata.compression-codec"
#define METADATA_FOLDER "write.metadata.path"

struct view_work {
	struct call *call;
	struct h_place place;
	struct jdoc *own_doc; /* of the request */
	struct rb_view_create create;
	struct rb_view_commit commit;
	struct uuid uuid;
	struct uuid attempt; /* that writes the file; nil: it was there before */
	int64_t version; /* of the row that is being replaced */
	int attempts;
	bool again; /* an answer that was given before */
	struct strv before; /* the metadata file that the row names */
	struct strv file;   /* the one to be named */
	struct view *view;  /* what it holds */
	struct obj_op obj;
	struct buf json;   /* being written */
	struct buf packed; /* the same gzipped, when the file's name says so */
	struct loop_job job;
	struct err pack_err;
	void (*read)(struct view_work *w); /* what to do with a view that was read */
};

static struct view_work *work_new(struct call *own_call)
{
	struct view_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
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
	buf_init(&w->json, VIEW_MAX_BYTES);
	buf_init(&w->packed, VIEW_MAX_BYTES + 65536); /* what zlib asks for at most */
	return w;
}

static void release(struct view_work *w)
{
	call_free_doc(w->call, w->own_doc);
	w->own_doc = NULL;
	view_free(w->view);
	w->view = NULL;
	buf_fini(&w->json);
	buf_fini(&w->packed);
}

static void fail(struct view_work *w, const struct err *err)
{
	struct err e = *err;
	/* Clients look for messages that begin with "Requirement failed". */
	if (e.st == ST_COMMIT_FAILED)
		e.field[0] = '\0';
	release(w);
	call_reply_err(w->call, &e);
}

static void no_view(struct view_work *w)
{
	struct err err;
	err_set(&err, ST_NO_SUCH_VIEW, "", "View does not exist: %s", w->place.dotted);
	fail(w, &err);
}

static void reply_view(struct view_work *w, struct strv location)
{
	struct call *call = w->call;
	struct buf b;
	h_idem_file(call, location);
	buf_init(&b, VIEW_MAX_BYTES * 2);
	rb_view_load_write(&b, location, w->view);
	release(w);
	call_reply_buf(call, 200, &b);
}

/* ------------------------------------------------------------------ looking */

/* Whether the name is a view; answers otherwise. */
static bool is_view(struct view_work *w, const struct pg_tabular_result *res)
{
	if (res->err.st != ST_OK && res->err.st != ST_NO_SUCH_NAMESPACE) {
		fail(w, &res->err);
		return false;
	}
	if (res->err.st != ST_OK || !res->found || res->row.kind != PG_TABULAR_VIEW) {
		no_view(w);
		return false;
	}
	return true;
}

static void resolve(struct view_work *w, pg_tabular_done done)
{
	struct err err = {0};
	if (pg_tabular_resolve(bind_cat(w->call->app), w->place.ns, w->place.name, done, w, &err) !=
	    ST_OK)
		fail(w, &err);
}

static void file_read(struct op *op, enum status st, const struct err *err)
{
	struct view_work *w = op->ctx;
	struct err e = {0};
	if (st != ST_OK && w->again) {
		err_set(&e, ST_COMMIT_UNKNOWN, "", "done before, but the file of the answer cannot be read");
		fail(w, &e);
		return;
	}
	if (st == ST_NOT_FOUND) {
		struct call *call = w->call;
		struct strv file = w->before;
		release(w);
		h_refuse_gone(call, file);
		return;
	}
	if (st != ST_OK) {
		fail(w, err);
		return;
	}
	view_free(w->view);
	w->view = NULL;
	if (view_read(w->obj.data, metadata_file_gzip(w->before), &w->view, &e) == ST_OK) {
		w->read(w);
		return;
	}
	/* What is wrong with a file that the client named is wrong with the request. */
	if (w->call->hit.route == ROUTE_view_register) {
		if (e.st == ST_CORRUPT)
			e.st = ST_VALIDATION;
		err_prefix(&e, "metadata-location");
	}
	fail(w, &e);
}

/* Reads w->before. */
static void read_file(struct view_work *w, void (*read)(struct view_work *w))
{
	struct err err = {0};
	w->read = read;
	op_init(&w->obj.op, file_read, w);
	if (obj_get(bind_obj(w->call->app), w->before, NULL, VIEW_MAX_BYTES, &w->obj, &err) !=
	    ST_OK)
		fail(w, &err);
}

static bool take_row(struct view_work *w, const struct pg_tabular_result *res)
{
	struct err err;
	if (!is_view(w, res))
		return false;
	w->uuid = res->row.table.u;
	w->version = res->row.version;
	if (arena_strv(&w->call->arena, res->row.metadata_location, &w->before))
		return true;
	err_set(&err, ST_LIMIT, "", "the request is too large");
	fail(w, &err);
	return false;
}

/* ------------------------------------------------------------------ list, load, exists, drop */

static void view_list(struct call *own_call)
{
	h_list(own_call, PG_TABULAR_VIEW);
}

static void view_rename(struct call *own_call)
{
	h_rename(own_call, PG_TABULAR_VIEW);
}

static void loaded(struct view_work *w)
{
	reply_view(w, w->before);
}

static void load_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (!is_view(w, res))
		return;
	release(w);
	h_load(w->call, res->row.metadata_location, true, false);
}

void h_reply_view_file(struct call *own_call, struct strv location)
{
	struct view_work *w = work_new(own_call);
	struct err err;
	if (!w)
		return;
	w->again = true;
	if (arena_strv(&own_call->arena, location, &w->before)) {
		read_file(w, loaded);
		return;
	}
	err_set(&err, ST_COMMIT_UNKNOWN, "", "done before, but the answer is too large");
	fail(w, &err);
}

static void exists_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (!is_view(w, res))
		return;
	release(w);
	call_reply_status(w->call, 204);
}

static void dropped(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (res->err.st == ST_NO_SUCH_VIEW) {
		no_view(w);
	} else if (res->err.st != ST_OK) {
		fail(w, &res->err);
	} else {
		h_idem_decided(w->call);
		release(w);
		call_reply_status(w->call, 204);
	}
}

/* The metadata files stay, as the table's do without a purge: the view can be registered again. */
static void drop_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	struct err err = {0};
	const struct pg_idem idem = h_idem_pg(w->call, 204);
	if (is_view(w, res) &&
	    pg_tabular_view_drop(bind_cat(w->call->app), res->row.table.u, &idem, dropped, w,
				 &err) != ST_OK)
		fail(w, &err);
}

static void look(struct call *own_call, pg_tabular_done done)
{
	struct view_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_VIEW, &w->place))
		resolve(w, done);
}

static void view_load(struct call *own_call)
{
	look(own_call, load_resolved);
}

static void view_exists(struct call *own_call)
{
	look(own_call, exists_resolved);
}

static void view_drop(struct call *own_call)
{
	look(own_call, drop_resolved);
}

/* ------------------------------------------------------------------ writing */

struct leftover {
	struct obj_op obj;
	char path[];
};

static void leftover_gone(struct op *op, enum status st, const struct err *err)
{
	(void)st;
	(void)err;
	base_free(op->ctx);
}

/* The file of an attempt that certainly changed nothing. */
static void forget_file(struct view_work *w)
{
	struct err err = {0};
	struct leftover *l = base_alloc(sizeof *l + w->file.n);
	memcpy(l->path, w->file.p, w->file.n);
	op_init(&l->obj.op, leftover_gone, l);
	if (obj_delete(bind_obj(w->call->app), (struct strv){l->path, w->file.n}, &l->obj, &err) !=
	    ST_OK)
		base_free(l);
}

static void create_resolved(void *ctx, const struct pg_tabular_result *res);
static void replace_resolved(void *ctx, const struct pg_tabular_result *res);

static bool registers(const struct view_work *w)
{
	return w->call->hit.route == ROUTE_view_register;
}

/* Another client was faster, or the cleaner: from the start, with another file. */
static void try_again(struct view_work *w)
{
	resolve(w, w->call->hit.route == ROUTE_view_replace ? replace_resolved : create_resolved);
}

static void published(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	struct err err = res->err;
	if (err.st == ST_OK) {
		h_idem_decided(w->call);
		reply_view(w, w->file);
		return;
	}
	/* After an answer that was lost the row may name the file. */
	if (status_info(err.st)->effect == EFFECT_UNKNOWN && err.st != ST_KEY_DECIDED) {
		fail(w, &err);
		return;
	}
	if (!registers(w)) {
		forget_file(w);
		if ((err.st == ST_COMMIT_FAILED || err.st == ST_PATH_CONDEMNED) &&
		    ++w->attempts < ATTEMPTS_MAX) {
			try_again(w);
			return;
		}
	}
	/* It passes: the file will be gone, or free again. */
	if (err.st == ST_PATH_CONDEMNED)
		err.st = ST_OVERLOADED;
	if (err.st == ST_ALREADY_EXISTS && strv_starts(strv_of(err.msg), STRV("Table already")))
		err_set(&err, ST_ALREADY_EXISTS, "", "Table with same name already exists: %s",
			w->place.dotted);
	fail(w, &err);
}

/* Where it keeps its files; returns how many. */
static size_t folders(const struct view_work *w, struct strv ret[2])
{
	ret[0] = w->view->location;
	ret[1] = view_property(w->view, METADATA_FOLDER);
	return ret[1].n ? 2 : 1;
}

static enum status check_folders(const struct view_work *w, struct err *err)
{
	struct strv v[2];
	size_t n = folders(w, v);
	enum status st = h_check_folder(w->call, &w->place, v[0], "location", err);
	if (st == ST_OK && n > 1)
		st = h_check_folder(w->call, &w->place, v[1], METADATA_FOLDER, err);
	return st;
}

static void publish(struct view_work *w)
{
	struct pgcat *cat = bind_cat(w->call->app);
	struct err err = {0};
	struct strv v[2];
	size_t n = folders(w, v);
	const struct pg_idem idem = {.k = h_idem(w->call, 200, true)};
	enum status st =
		w->call->hit.route == ROUTE_view_replace
			? pg_tabular_view_replace(cat, w->uuid, w->version, w->attempt, v, n,
						  w->file, &idem, published, w, &err)
			: pg_tabular_view_create(cat, w->place.ns, w->place.name, w->view->uuid,
						 w->attempt, v, n, w->file, &idem, published, w,
						 &err);
	if (st == ST_OK)
		return;
	if (!registers(w))
		forget_file(w);
	fail(w, &err);
}

static void stored(struct op *op, enum status st, const struct err *err)
{
	struct view_work *w = op->ctx;
	crash_view_put(true);
	if (st == ST_OK) {
		publish(w);
		return;
	}
	/* The object may be there; no row names it, so nothing has happened. */
	struct err e = *err;
	if (status_info(e.st)->effect == EFFECT_UNKNOWN)
		e.st = ST_IO;
	forget_file(w);
	fail(w, &e);
}

static void put(struct view_work *w)
{
	struct err err = {0};
	op_init(&w->obj.op, stored, w);
	crash_view_put(false);
	if (obj_put(bind_obj(w->call->app), w->file,
		    buf_bytes(metadata_file_gzip(w->file) ? &w->packed : &w->json), &w->obj,
		    &err) != ST_OK)
		fail(w, &err);
}

static void ledgered(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (res->err.st == ST_OK)
		put(w);
	else
		fail(w, &res->err);
}

static void ledger(struct view_work *w)
{
	struct err err = {0};
	uint8_t random[16];
	digest_random(random, sizeof random);
	w->attempt = uuid_v4(random);
	if (pg_tabular_view_ledger(bind_cat(w->call->app), w->uuid, w->attempt, w->file, ledgered,
				   w, &err) != ST_OK)
		fail(w, &err);
}

static void pack_run(struct loop_job *job)
{
	struct view_work *w = CONTAINER_OF(job, struct view_work, job);
	w->pack_err.st = gzip_write(buf_bytes(&w->json), &w->packed, &w->pack_err);
	if (w->pack_err.st == ST_OK && w->packed.n > VIEW_MAX_BYTES)
		err_set(&w->pack_err, ST_LIMIT, "", VIEW_TOO_LARGE);
	err_memory(&w->pack_err);
}

static void packed(struct loop_job *job)
{
	struct view_work *w = CONTAINER_OF(job, struct view_work, job);
	if (w->pack_err.st != ST_OK)
		fail(w, &w->pack_err);
	else
		ledger(w);
}

/* A codec that the next version could not be written with. */
static enum status check_codec(const struct view_work *w, struct err *err)
{
	struct strv codec = view_property(w->view, CODEC);
	enum status st = ST_OK;
	if (codec.p)
		st = metadata_check_property(STRV(CODEC), codec, ST_VALIDATION, err);
	if (st != ST_OK)
		err_prefix(err, "properties");
	return st;
}

/* Stores w->view as the file after w->before, its name on the ledger first, and has the row name it. */
static void store(struct view_work *w)
{
	struct err err = {0};
	bool gzip = strv_ieq(view_property(w->view, CODEC), STRV("gzip"));
	if (check_codec(w, &err) != ST_OK || check_folders(w, &err) != ST_OK ||
	    h_metadata_file(w->call, w->view->location, view_property(w->view, METADATA_FOLDER),
			    w->before, gzip, &w->file, &err) != ST_OK) {
		fail(w, &err);
		return;
	}
	buf_clear(&w->json);
	buf_clear(&w->packed);
	view_write(&w->json, w->view);
	if (!buf_ok(&w->json)) {
		err_set(&err, ST_LIMIT, "", VIEW_TOO_LARGE);
		fail(w, &err);
		return;
	}
	if (!gzip) {
		ledger(w);
		return;
	}
	w->pack_err = (struct err){0};
	w->job.run = pack_run;
	w->job.done = packed;
	if (w->json.n > PACK_INLINE) {
		loop_job_start(&w->call->app->loop, &w->job, true);
	} else {
		pack_run(&w->job);
		packed(&w->job);
	}
}

/* ------------------------------------------------------------------ create */

/* Whether the name is free as far as this look can tell; answers otherwise. */
static bool is_free(struct view_work *w, const struct pg_tabular_result *res)
{
	struct err err = res->err;
	if (err.st == ST_OK && res->found)
		err_set(&err, ST_ALREADY_EXISTS, "", "%s already exists: %s",
			res->row.kind == PG_TABULAR_VIEW ? "View" : "Table with same name",
			w->place.dotted);
	if (err.st != ST_OK)
		fail(w, &err);
	return err.st == ST_OK;
}

static void create_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	struct err err = {0};
	struct strv location = w->create.location;
	if (!is_free(w, res))
		return;
	if (!location.n &&
	    !h_locate(w->call, &w->place, res->ns_location, w->uuid, &location)) {
		err_set(&err, ST_LIMIT, "location", "the location is too long");
		fail(w, &err);
		return;
	}
	const struct view_create c = {.uuid = w->uuid,
				      .location = location,
				      .schema = w->create.schema,
				      .version = w->create.version,
				      .properties = w->create.properties,
				      .n_properties = w->create.n_properties};
	view_free(w->view); /* of an earlier attempt */
	w->view = NULL;
	if (view_create(&c, &w->view, &err) != ST_OK)
		fail(w, &err);
	else
		store(w);
}

static enum status parse_create(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct view_work *w = ctx;
	return rb_view_create_parse(body, a, &w->create, err);
}

static void create_parsed(void *ctx, enum status st, const struct err *err)
{
	struct view_work *w = ctx;
	if (st != ST_OK) {
		fail(w, err);
		return;
	}
	w->own_doc = w->create.doc;
	h_place_name(&w->place, w->create.name);
	resolve(w, create_resolved);
}

static void view_create_route(struct call *own_call)
{
	struct view_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_NAMESPACE, &w->place))
		call_parse(own_call, parse_create, create_parsed, w);
}

/* ------------------------------------------------------------------ replace */

static void replace_read(struct view_work *w)
{
	struct err err = {0};
	struct view *next = NULL;
	bool changed = false;
	if (view_commit(w->view, w->commit.requirements, w->commit.updates,
			h_now_ms(w->call->app), &next, &changed, &err) != ST_OK) {
		fail(w, &err);
		return;
	}
	view_free(w->view);
	w->view = next;
	if (changed)
		store(w);
	else
		reply_view(w, w->before);
}

static void replace_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (take_row(w, res))
		read_file(w, replace_read);
}

static enum status parse_commit(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct view_work *w = ctx;
	return rb_view_commit_parse(body, a, &w->commit, err);
}

static void commit_parsed(void *ctx, enum status st, const struct err *err)
{
	struct view_work *w = ctx;
	struct err e = {0};
	if (st != ST_OK) {
		fail(w, err);
		return;
	}
	w->own_doc = w->commit.doc;
	const struct rb_ident named = {
		.levels = w->place.ns.levels, .n_levels = w->place.ns.n, .name = w->place.name};
	if (w->commit.has_ident && !rb_ident_eq(&w->commit.ident, &named)) {
		err_set(&e, ST_BAD_REQUEST, "identifier", "is not the view of the path");
		fail(w, &e);
		return;
	}
	resolve(w, replace_resolved);
}

static void view_replace(struct call *own_call)
{
	struct view_work *w = work_new(own_call);
	if (w && h_place(own_call, ST_NO_SUCH_VIEW, &w->place))
		call_parse(own_call, parse_commit, commit_parsed, w);
}

/* ------------------------------------------------------------------ register */

static void register_read(struct view_work *w)
{
	struct err err = {0};
	if (check_folders(w, &err) != ST_OK) {
		fail(w, &err);
		return;
	}
	if (check_codec(w, &err) != ST_OK) {
		fail(w, &err);
		return;
	}
	w->file = w->before;
	publish(w);
}

static void register_resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct view_work *w = ctx;
	if (is_free(w, res))
		read_file(w, register_read);
}

static void view_register(struct call *own_call)
{
	struct call *call = own_call;
	struct view_work *w = work_new(call);
	struct rb_table_register reg;
	struct err err = {0};
	if (!w || !h_place(call, ST_NO_SUCH_NAMESPACE, &w->place))
		return;
	if (rb_table_register_parse(call->body, &reg, &err) != ST_OK) {
		call_reply_err(call, &err);
		return;
	}
	w->own_doc = reg.doc;
	h_place_name(&w->place, reg.name);
	if (!arena_strv(&call->arena, reg.metadata_location, &w->before))
		err_set(&err, ST_LIMIT, "", "the request is too large");
	else if (fs_check(bind_fs(call->app), w->before, &err) != ST_OK)
		err_prefix(&err, "metadata-location");
	if (err.st != ST_OK)
		fail(w, &err);
	else
		resolve(w, register_resolved);
}

void h_view_routes(struct route_table *t)
{
	route_set(t, ROUTE_view_list, view_list);
	route_set(t, ROUTE_view_create, view_create_route);
	route_set(t, ROUTE_view_register, view_register);
	route_set(t, ROUTE_view_load, view_load);
	route_set(t, ROUTE_view_exists, view_exists);
	route_set(t, ROUTE_view_replace, view_replace);
	route_set(t, ROUTE_view_drop, view_drop);
	route_set(t, ROUTE_view_rename, view_rename);
}
