#include "daemon/rest/h_rest.h"

#include <stdio.h>

#include "conf/log.h"
#include "daemon/admin/ad_metrics.h"
#include "daemon/rest/h_idem.h"
#include "proto/base/digest.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/place.h"
#include "store/obj/fs.h"
#include "store/obj/fs_path.h"
#include "store/pg/pg_ns.h"

/* Bytes of one name in the path of a table: names are for people, the uuid makes it unique. */
#define SEGMENT_MAX 64
/* Metadata from which on the answer to a commit is compressed for who accepts it. */
#define GZIP_MIN_BYTES ((size_t)64 << 10)

struct rest {
	struct app *app;
	struct mcache *cache;
	struct idem *idem;
	size_t warehouse; /* being made known */
	bool cancelled;
};

struct mcache *h_cache(const struct app *app)
{
	return ((struct rest *)app->rest)->cache;
}

struct idem *h_idem_of(const struct app *app)
{
	return ((struct rest *)app->rest)->idem;
}

/* ------------------------------------------------------------------ what a request names */

bool h_warehouse(const struct conf *c, struct strv asked, size_t *ret_i)
{
	struct strv name, location;
	struct fs_path want, have;
	for (size_t i = 0; conf_warehouse(c, i, &name, &location); i++) {
		if (strv_eq(name, asked)) {
			*ret_i = i;
			return true;
		}
	}
	if (fs_path_of(asked, &want, NULL) != ST_OK)
		return false;
	for (size_t i = 0; conf_warehouse(c, i, &name, &location); i++) {
		if (fs_path_of(location, &have, NULL) == ST_OK &&
		    strcmp(have.text, want.text) == 0) {
			*ret_i = i;
			return true;
		}
	}
	return false;
}

bool h_place_root(struct call *own_call, struct h_place *ret_place)
{
	struct call *call = own_call;
	const struct conf *c = call->app->conf;
	size_t i = 0;
	struct err err;
	*ret_place = (struct h_place){0};
	if (call->hit.prefix.p && !h_warehouse(c, call->hit.prefix, &i)) {
		err_set(&err, ST_NO_SUCH_WAREHOUSE, "", "Warehouse does not exist: %.*s",
			STRV_ARG(strv_sub(call->hit.prefix, 0, 128)));
		call_reply_err(call, &err);
		return false;
	}
	bool found = conf_warehouse(c, i, &ret_place->ns.warehouse, &ret_place->root);
	ASSERT(found);
	return true;
}

static void name_place(struct h_place *p)
{
	rb_dotted(p->ns.levels, p->ns.n, p->name, p->dotted, sizeof p->dotted);
	rb_dotted(p->ns.levels, p->ns.n, (struct strv){NULL, 0}, p->ns_dotted,
		  sizeof p->ns_dotted);
}

void h_place_name(struct h_place *place, struct strv name)
{
	place->name = name;
	name_place(place);
}

bool h_place(struct call *own_call, enum status missing, struct h_place *ret_place)
{
	struct call *call = own_call;
	struct h_place p;
	struct strv *levels;
	struct err err;
	if (!h_place_root(call, &p))
		return false;
	ASSERT(call->hit.n_params > 0);
	if (route_namespace(&call->arena, call->hit.params[0].raw, "namespace", &levels, &p.ns.n,
			    &err) != ST_OK) {
		call_reply_err(call, &err);
		return false;
	}
	p.ns.levels = levels;
	if (call->hit.n_params > 1)
		p.name = call->hit.params[1].text;
	name_place(&p);
	if (!rb_levels_possible(p.ns.levels, p.ns.n) ||
	    (call->hit.n_params > 1 && !rb_name_possible(p.name))) {
		err_set(&err, missing, "", "%s does not exist: %s",
			missing == ST_NO_SUCH_NAMESPACE ? "Namespace"
			: missing == ST_NO_SUCH_VIEW    ? "View"
			: missing == ST_NO_SUCH_FUNCTION ? "Function"
							 : "Table",
			missing == ST_NO_SUCH_NAMESPACE ? p.ns_dotted : p.dotted);
		call_reply_err(call, &err);
		return false;
	}
	*ret_place = p;
	return true;
}

bool h_place_of(struct call *own_call, const struct rb_ident *ident, struct h_place *ret_place)
{
	if (!h_place_root(own_call, ret_place))
		return false;
	ret_place->ns.levels = ident->levels;
	ret_place->ns.n = ident->n_levels;
	ret_place->name = ident->name;
	name_place(ret_place);
	return true;
}

/* ------------------------------------------------------------------ where things lie */

static void put_segment(struct buf *b, struct strv name)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=";
	name = strv_sub(name, 0, SEGMENT_MAX);
	for (size_t i = 0; i < name.n; i++) {
		bool ok = name.p[i] && strchr(plain, name.p[i]) && !(i == 0 && name.p[i] == '.');
		buf_putc(b, ok ? (uint8_t)name.p[i] : (uint8_t)'_');
	}
}

bool h_locate(struct call *call, const struct h_place *place, struct strv ns_location,
	      struct uuid uuid, struct strv *ret_location)
{
	struct buf b;
	buf_init(&b, 65536);
	if (ns_location.n) {
		buf_putv(&b, ns_location);
		while (b.n > 1 && b.p[b.n - 1] == '/')
			b.n--;
	} else {
		buf_putv(&b, place->root);
		for (size_t i = 0; i < place->ns.n; i++) {
			buf_putc(&b, '/');
			put_segment(&b, place->ns.levels[i]);
		}
	}
	buf_putc(&b, '/');
	put_segment(&b, place->name);
	buf_putc(&b, '-');
	digest_hex(&b, (struct bytes){uuid.b, sizeof uuid.b});
	bool ok = buf_ok(&b) && arena_strv(&call->arena, buf_strv(&b), ret_location);
	buf_fini(&b);
	return ok;
}

enum status h_check_folder(const struct call *call, const struct h_place *place,
			   struct strv folder, const char *field, struct err *err)
{
	struct strv roots = call->app->conf->fs_roots, root = place->root;
	enum status st = place_check(folder, err);
	if (st == ST_OK)
		st = fs_check(bind_fs(call->app), metadata_strip(folder), err);
	/* The store has the roots of all warehouses. */
	if (st == ST_OK && !place_beneath(root, folder)) {
		st = err_set(err, ST_PATH_OUTSIDE, "path",
			     "the folder lies beneath neither the root of warehouse %.*s nor one of "
			     "fs.roots",
			     STRV_ARG(place->ns.warehouse));
		while (st != ST_OK && conf_list_next(&roots, &root))
			if (place_beneath(root, folder))
				st = ST_OK;
	}
	if (st == ST_OK)
		*err = (struct err){0};
	else
		err_prefix(err, "%s", field);
	return st;
}

enum status h_check_folders(const struct call *call, const struct h_place *place,
			    const struct metadata *m, struct err *err)
{
	struct strv folders[PLACE_MAX];
	size_t n = place_list(m, folders);
	for (size_t i = 0; i < n; i++) {
		enum status st = h_check_folder(call, place, folders[i], place_field(m, i), err);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

enum status h_metadata_file(struct call *call, struct strv location, struct strv folder,
			    struct strv before, bool gzip, struct strv *ret_file, struct err *err)
{
	char name[METADATA_FILE_NAME_MAX], *text;
	uint8_t random[16];
	struct fs *fs = bind_fs(call->app);
	location = metadata_strip(location);
	digest_random(random, sizeof random);
	metadata_file_name(before, uuid_v4(random), gzip, name);
	folder = metadata_strip(folder);
	if (folder.n)
		text = arena_printf(&call->arena, "%.*s/%s", STRV_ARG(folder), name);
	else
		text = arena_printf(&call->arena, "%.*s/metadata/%s", STRV_ARG(location), name);
	if (!text)
		return err_set(err, ST_LIMIT, "location", "the request is too large");
	*ret_file = strv_of(text);
	enum status st = fs_check(fs, *ret_file, err);
	if (st != ST_OK)
		err_prefix(err, folder.n ? "write.metadata.path" : "location");
	return st;
}

bool h_flag(struct call *own_call, const char *key, bool *ret_v)
{
	const struct route_arg *arg = route_arg(&own_call->hit, key);
	struct err err;
	if (!arg || strv_ieq(arg->value.text, STRV("false"))) {
		*ret_v = false;
		return true;
	}
	if (strv_ieq(arg->value.text, STRV("true"))) {
		*ret_v = true;
		return true;
	}
	err_set(&err, ST_BAD_REQUEST, key, "must be true or false");
	call_reply_err(own_call, &err);
	return false;
}

/* ------------------------------------------------------------------ answers */

void h_refuse(struct call *own_call, enum status st, const char *before, struct strv text)
{
	const struct status_info *info = status_info(st);
	struct buf message, body;
	struct jwrite w;
	buf_init(&message, (size_t)64 << 10);
	buf_init(&body, (size_t)512 << 10);
	buf_puts(&message, before);
	buf_putv(&message, text);
	jwrite_init(&w, &body);
	jwrite_object(&w);
	jwrite_key(&w, "error");
	jwrite_object(&w);
	jwrite_kstr(&w, "message", buf_strv(&message));
	jwrite_kstr(&w, "type", strv_of(info->iceberg_type));
	jwrite_ki64(&w, "code", info->http);
	jwrite_end_object(&w);
	jwrite_end_object(&w);
	buf_fini(&message);
	call_reply_buf(own_call, info->http, &body);
}

void h_refuse_gone(struct call *own_call, struct strv location)
{
	h_refuse(own_call, ST_NOT_FOUND, "Failed to open input stream for file: ", location);
}

void h_no_table(struct call *own_call, const struct h_place *place)
{
	struct err err;
	err_set(&err, ST_NO_SUCH_TABLE, "", "Table does not exist: %s", place->dotted);
	call_reply_err(own_call, &err);
}

static void release_entry(void *arg)
{
	mcache_unref(arg);
}

void h_reply_entry(struct call *own_call, struct mcache_entry *own_entry, enum mcache_rep rep)
{
	call_header(own_call, "ETag", strv_of(mcache_entry_etag(own_entry, rep)));
	call_header(own_call, "Vary", STRV("Accept-Encoding"));
	if (rep >= MCACHE_ALL_GZIP)
		call_header(own_call, "Content-Encoding", STRV("gzip"));
	call_reply_shared(own_call, 200, mcache_body(own_entry, rep), release_entry, own_entry);
}

/* A table that the core has just made current. */
struct made {
	struct mcache_wait wait;
	struct call *call;
};

static void made_ready(struct mcache_wait *w, struct mcache_entry *own_entry, const struct err *err)
{
	struct made *made = CONTAINER_OF(w, struct made, wait);
	struct err e;
	if (own_entry) {
		h_reply_entry(made->call, own_entry, w->rep);
		return;
	}
	/* It is committed all the same: never an error that lets the client delete its files. */
	e = *err;
	e.st = ST_COMMIT_UNKNOWN;
	call_reply_err(made->call, &e);
}

static struct made *made_new(struct call *own_call)
{
	struct made *made = arena_calloc(&own_call->arena, 1, sizeof *made);
	struct err err;
	if (!made) {
		err_set(&err, ST_COMMIT_UNKNOWN, "", "committed, but the answer is too large");
		call_reply_err(own_call, &err);
		return NULL;
	}
	made->call = own_call;
	return made;
}

static void made_load(struct made *made, struct strv location, const struct metadata *m)
{
	struct call *call = made->call;
	/* A small answer costs less than its compression. */
	made->wait.rep = call_accepts_gzip(call) && metadata_json_size(m) > GZIP_MIN_BYTES
				 ? MCACHE_ALL_GZIP
				 : MCACHE_ALL;
	made->wait.done = made_ready;
	mcache_load(h_cache(call->app), location, &made->wait);
}

void h_reply_table(struct call *own_call, struct strv location, struct metadata *m)
{
	struct made *made = made_new(own_call);
	if (!made)
		return;
	h_idem_file(own_call, location);
	mcache_put(h_cache(own_call->app), location, m);
	made_load(made, location, m);
}

static void file_ready(struct mcache_wait *w, struct mcache_entry *own_entry, const struct err *err)
{
	struct made *made = CONTAINER_OF(w, struct made, wait);
	if (!own_entry) {
		made_ready(w, NULL, err);
		return;
	}
	made_load(made, mcache_location(own_entry), mcache_metadata(own_entry));
	mcache_unref(own_entry);
}

void h_reply_file(struct call *own_call, struct strv location)
{
	struct made *made = made_new(own_call);
	if (!made)
		return;
	made->wait.rep = MCACHE_METADATA;
	made->wait.done = file_ready;
	mcache_load(h_cache(own_call->app), location, &made->wait);
}

int64_t h_deadline_us(const struct call *call)
{
	int64_t whole = call->deadline_mono_us - call->started_mono_us;
	return call->deadline_mono_us - whole / 20;
}

int64_t h_now_ms(const struct app *app)
{
	int64_t ms = bind_pg_ms(bind_of(app));
	/* Before PostgreSQL's first answer; nothing can be committed then anyway. */
	return ms > 0 ? ms : loop_wall_ms();
}

/* ------------------------------------------------------------------ the step */

static void on_head(void *ctx, struct table_id table, struct strv location, struct metadata *m)
{
	struct rest *r = ctx;
	(void)table;
	mcache_put(r->cache, location, m);
}

static void collect(void *ctx)
{
	struct mcache_stats s = mcache_stats(((struct rest *)ctx)->cache);
	ad_metrics_set(METRIC_cache_entries, (int64_t)s.entries);
	ad_metrics_set(METRIC_cache_bytes, (int64_t)s.bytes);
	ad_metrics_copy(METRIC_cache_hits, s.hits);
	ad_metrics_copy(METRIC_cache_reads, s.reads);
	ad_metrics_copy(METRIC_cache_looks, s.looks);
}

static void take_routes(struct rest *r)
{
	struct route_table *t = r->app->routes;
	bind_on_head(bind_of(r->app), on_head, r);
	t->gate = h_idem_gate;
	ad_metrics_collect(collect, r);
	h_config_routes(t);
	h_ns_routes(t);
	h_table_routes(t);
	h_create_routes(t);
	h_commit_routes(t);
	h_view_routes(t);
	h_function_routes(t);
	h_oauth_routes(r->app, t);
}

static void fini(struct rest *r)
{
	r->app->rest = NULL;
	mcache_free(r->cache);
	h_idem_free(r->idem);
	base_free(r);
}

static void next_warehouse(struct rest *r);

static void warehouse_done(void *ctx, const struct pg_ns_result *res)
{
	struct rest *r = ctx;
	struct app *app = r->app;
	struct err err = res->err;
	if (r->cancelled)
		err_set(&err, ST_UNAVAILABLE, "", "stopped during the start");
	if (err.st != ST_OK) {
		fini(r);
		app_step_started(app, err.st, &err);
		return;
	}
	r->warehouse++;
	next_warehouse(r);
}

static void next_warehouse(struct rest *r)
{
	struct app *app = r->app;
	struct strv name, location;
	struct err err = {0};
	if (!conf_warehouse(app->conf, r->warehouse, &name, &location)) {
		take_routes(r);
		app_step_started(app, ST_OK, NULL);
		return;
	}
	enum status st =
		pg_ns_warehouse(bind_cat(app), name, location, app->conf->warehouse_allow_overlap,
				warehouse_done, r, &err);
	if (st != ST_OK) {
		fini(r);
		app_step_started(app, st, &err);
	}
}

static void cancel(struct app *app)
{
	((struct rest *)app->rest)->cancelled = true;
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	struct strv name, location;
	struct rest *r = base_calloc(1, sizeof *r);
	r->app = app;
	r->cache = mcache_new(&app->loop, bind_obj(app), (size_t)app->conf->rest_cache_bytes);
	r->idem = h_idem_new(app);
	app->rest = r;
	bool some = conf_warehouse(app->conf, 0, &name, &location);
	ASSERT(some);
	enum status st = pg_ns_warehouse(bind_cat(app), name, location,
					 app->conf->warehouse_allow_overlap, warehouse_done, r, err);
	if (st != ST_OK) {
		fini(r);
		return st;
	}
	*ret_pending = true;
	app->cancel_start = cancel;
	return ST_OK;
}

static bool stop(struct app *app)
{
	bind_on_head(bind_of(app), NULL, NULL);
	ad_metrics_drop(collect, app->rest);
	fini(app->rest);
	return true;
}

const struct app_step h_rest_step = {"catalog", start, stop, NULL};
