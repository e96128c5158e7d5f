/* The object store: put-if-absent, latency, lost replies, writes that arrive late. */
#include "tests/sim/world.h"

#include "daemon/commit/decode.h"
#include "proto/base/gzip.h"
#include "proto/iceberg/metadata.h"

#define DECODED_MAX ((size_t)256 << 20)

static struct object **slot(struct world *w, struct strv path)
{
	struct object **p = &w->store.buckets[bytes_hash(strv_bytes(path)) % 1024];
	while (*p && !strv_eq((*p)->path, path))
		p = &(*p)->next;
	return p;
}

struct object *store_find(struct world *w, struct strv path)
{
	return *slot(w, path);
}

static struct object *new_object(struct world *w, struct strv path)
{
	struct object **p = slot(w, path);
	if (*p)
		return NULL; /* put-if-absent */
	*p = world_alloc(w, sizeof **p);
	(*p)->path = world_strv(w, path);
	return *p;
}

void store_put(struct world *w, struct strv path, struct bytes data, int64_t size)
{
	struct object *o = new_object(w, path);
	if (!o)
		return;
	o->data = world_copy(w, data);
	o->size = data.p ? (int64_t)data.n : size;
}

static void store_put_pieces(struct world *w, struct strv path, const struct pieces *content)
{
	struct object *o = new_object(w, path);
	if (!o)
		return;
	o->data = world_join(w, content);
	o->size = (int64_t)o->data.n;
}

void store_fini(struct world *w)
{
	for (size_t i = 0; i < 1024; i++)
		for (struct object *o = w->store.buckets[i]; o; o = o->next)
			mview_unref(o->view);
}

/* ------------------------------------------------------------------ readers */

struct metadata *store_metadata(struct world *w, struct strv path)
{
	struct object *o = store_find(w, path);
	struct metadata *m = NULL;
	struct err err = {0};
	if (!o)
		world_fail(w, "metadata file is missing: %.*s", STRV_ARG(path));
	struct buf plain;
	buf_init(&plain, METADATA_MAX_BYTES);
	bool gzip = metadata_file_gzip(path);
	if ((gzip && gzip_read(o->data, &plain, &err) != ST_OK) ||
	    metadata_parse(gzip ? buf_bytes(&plain) : o->data, ST_CORRUPT, &m, &err) != ST_OK)
		world_fail(w, "metadata does not parse: %s: %s", err.field, err.msg);
	buf_fini(&plain);
	return m;
}

struct mlist *store_list(struct world *w, struct strv path)
{
	struct object *o = store_find(w, path);
	struct mlist *l = NULL;
	struct err err = {0};
	if (!o)
		world_fail(w, "manifest list is missing: %.*s", STRV_ARG(path));
	if (mlist_read(o->data, DECODED_MAX, &l, &err) != ST_OK)
		world_fail(w, "manifest list does not decode: %s: %s", err.field, err.msg);
	return l;
}

struct mview *store_view(struct world *w, const struct manifest_file *row, const struct metadata *m)
{
	struct object *o = store_find(w, row->path);
	struct err err = {0};
	if (!o)
		world_fail(w, "manifest is missing: %.*s", STRV_ARG(row->path));
	if ((int64_t)o->data.n != row->length)
		world_fail(w, "manifest length differs: %.*s", STRV_ARG(row->path));
	if (o->view && o->view_first == row->first_row_id)
		return o->view;
	mview_unref(o->view);
	o->view = NULL;
	if (mview_read(o->data, row, m, DECODED_MAX, &o->view, &err) != ST_OK)
		world_fail(w, "manifest does not decode: %s: %s", err.field, err.msg);
	o->view_first = row->first_row_id;
	return o->view;
}

/* ------------------------------------------------------------------ effects */

static void decode(const struct read_effect *r, const struct object *o, struct read_result *res)
{
	struct bytes data = o->data;
	if (read_is_range(r)) {
		if (r->offset < 0 || r->length < 0 || r->offset + r->length > (int64_t)data.n) {
			err_set(&res->err, ST_CORRUPT, "range", "beyond the file");
			return;
		}
		data = (struct bytes){data.p + r->offset, (size_t)r->length};
	}
	decode_run(r, data, res);
}

static void run_read(struct world *w, void *arg)
{
	struct flight *fl = arg;
	if (!world_alive(w, fl->gen))
		return;
	struct read_result res = {0};
	const struct read_effect *r = &fl->e.u.read;
	const struct object *o = store_find(w, r->path);
	if (world_fault(w, w->conf.f.get_fail))
		err_set(&res.err, ST_IO, "", "read failed");
	else if (!o)
		err_set(&res.err, ST_NOT_FOUND, "", "no such object");
	else
		decode(r, o, &res);
	world_trace(w, "read %d %.*s st %d", (int)r->as, STRV_ARG(r->path), (int)res.err.st);
	struct event ev = {.u.done.read = &res};
	world_complete(w, fl, &ev);
}

static void run_stat(struct world *w, void *arg)
{
	struct flight *fl = arg;
	struct stat_result res = {0};
	if (!world_alive(w, fl->gen))
		return; /* the path went with its daemon */
	const struct object *o = store_find(w, fl->e.u.path);
	if (world_fault(w, w->conf.f.stat_fail))
		err_set(&res.err, ST_IO, "", "stat failed");
	else if (!o)
		err_set(&res.err, ST_NOT_FOUND, "", "no such object");
	else
		res.size = o->size;
	struct event ev = {.u.done.stat = &res};
	world_complete(w, fl, &ev);
}

struct late_put {
	struct strv path;
	struct bytes data;
};

static void put_late(struct world *w, void *arg)
{
	struct late_put *l = arg;
	world_trace(w, "late put %.*s", STRV_ARG(l->path));
	store_put(w, l->path, l->data, 0);
}

static void send_late(struct world *w, const struct put_effect *p)
{
	struct late_put *l = world_alloc(w, sizeof *l);
	*l = (struct late_put){world_strv(w, p->path), world_join(w, &p->content)};
	world_at(w, world_below(w, 3000000), put_late, l);
}

void store_orphan(struct world *w, struct flight *fl)
{
	if (world_chance(w, 500))
		send_late(w, &fl->e.u.put);
}

static void run_put(struct world *w, void *arg)
{
	struct flight *fl = arg;
	const struct put_effect *p = &fl->e.u.put;
	/* The bytes belong to the core: they went over the wire when it was sent. */
	struct err err = {0};
	if (!world_alive(w, fl->gen))
		return;
	struct object *o = store_find(w, p->path);
	if (!pg_obj(w, p->path) && !o)
		world_fail(w, "object is put before its ledger row: %.*s", STRV_ARG(p->path));
	if (o && !pieces_are(&p->content, o->data)) {
		err_set(&err, ST_IO, "", "another object has this name");
	} else if (world_fault(w, w->conf.f.put_fail)) {
		err_set(&err, ST_IO, "", "put failed");
	} else if (world_fault(w, w->conf.f.put_lost)) {
		err_set(&err, ST_IO_UNKNOWN, "", "no answer");
		if (world_chance(w, 500))
			store_put_pieces(w, p->path, &p->content);
	} else if (world_fault(w, w->conf.f.put_late)) {
		err_set(&err, ST_IO_UNKNOWN, "", "no answer");
		send_late(w, p);
	} else {
		store_put_pieces(w, p->path, &p->content);
	}
	world_trace(w, "put %.*s %zu st %d", STRV_ARG(p->path),
		    pieces_size(&p->content), (int)err.st);
	struct event ev = {.u.done.err = &err};
	world_complete(w, fl, &ev);
}

static void run_delete(struct world *w, void *arg)
{
	struct flight *fl = arg;
	if (!world_alive(w, fl->gen))
		return;
	struct object **p = slot(w, fl->e.u.path);
	const struct m_obj *row = pg_obj(w, fl->e.u.path);
	if (!row || row->state != OBJ_CLAIMED)
		world_fail(w, "an object is deleted that is not claimed: %.*s",
			   STRV_ARG(fl->e.u.path));
	bool lost = world_fault(w, w->conf.f.put_lost);
	if (lost)
		err_set(&fl->err, ST_IO_UNKNOWN, "", "no answer");
	if (*p && !(lost && world_chance(w, 500))) {
		mview_unref((*p)->view);
		(*p)->view = NULL;
		*p = (*p)->next;
	}
	world_trace(w, "delete %.*s st %d", STRV_ARG(fl->e.u.path), (int)fl->err.st);
	struct event ev = {.u.done.err = &fl->err};
	world_complete(w, fl, &ev);
}

void store_submit(struct world *w, struct flight *fl)
{
	world_fn fn = fl->e.kind == FX_READ   ? run_read
		      : fl->e.kind == FX_PUT  ? run_put
		      : fl->e.kind == FX_STAT ? run_stat
					      : run_delete;
	world_at(w, world_latency(w, w->conf.io_us), fn, fl);
}
