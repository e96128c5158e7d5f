#include "daemon/bind/tcheck.h"

#include <stdio.h>

#include "daemon/bind/bind_lists.h"
#include "daemon/commit/decode.h"
#include "daemon/commit/objects.h"
#include "proto/avro/manifest.h"
#include "proto/dv/bitmap64.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "store/obj/obj.h"
#include "store/pg/pg_history.h"

#define FINDINGS_MAX 200
#define FILE_MAX ((size_t)512 << 20)
#define PROBES 8
#define REPLY_MAX ((size_t)4 << 20)

enum what { META, LIST, MANIFEST };

struct probe {
	struct tcheck *t;
	bool busy, vector; /* vector: its blob is being read */
	const struct content_file *file;
	struct obj_op op;
	struct loop_job job;
	uint8_t *own_data;
	struct bytes data;
	struct err err;
};

struct finding {
	const char *kind;
	struct strv object; /* owned */
	char msg[192];
};

struct tcheck {
	struct app *app;
	int64_t no; /* of the check; 0 before the first */
	bool running, stopping;
	struct table_id table;
	struct strv name, location; /* owned */
	int64_t began_ms, ended_ms;

	/* Where it stands: refs' snapshots, rows of one's list, entries of one manifest. */
	struct metadata *meta;
	int64_t *snapshots;
	size_t n_snapshots, at_snapshot;
	struct mlist *list;
	size_t at_row;
	struct manifest *m;
	size_t at_entry;
	uint64_t *seen; /* manifests, by hash of their path */
	size_t n_seen, cap_seen;

	/* The one big file under way. */
	enum what what;
	struct strv path;
	struct obj_op op;
	struct loop_job job;
	uint8_t *own_data;
	struct bytes data;
	struct read_result read;
	struct manifest *got;
	struct err err;
	struct probe probes[PROBES];
	size_t busy;

	int64_t manifests, files, vectors;
	struct finding v[FINDINGS_MAX];
	size_t n;
	int64_t total;
};

static void advance(struct tcheck *t);
static void step_over(struct app *app);

static struct strv copy(struct strv s)
{
	char *p = base_alloc(s.n + 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return (struct strv){p, s.n};
}

static void find(struct tcheck *t, struct strv object, const struct err *err)
{
	t->total++;
	if (t->n == FINDINGS_MAX)
		return;
	struct finding *f = &t->v[t->n++];
	f->kind = err->st == ST_NOT_FOUND	? "missing"
		  : err->st == ST_SIZE_MISMATCH ? "size"
		  : err->st == ST_CORRUPT	? "corrupt"
						: "unreadable";
	f->object = copy(object);
	snprintf(f->msg, sizeof f->msg, "%.60s%s%.128s", err->field, err->field[0] ? ": " : "",
		 err->msg[0] ? err->msg : status_info(err->st)->help);
}

static void forget(struct tcheck *t)
{
	for (size_t i = 0; i < t->n; i++)
		base_free((char *)(uintptr_t)t->v[i].object.p);
	base_free((char *)(uintptr_t)t->name.p);
	base_free((char *)(uintptr_t)t->location.p);
	t->name = t->location = (struct strv){NULL, 0};
	t->n = 0;
}

static void over(struct tcheck *t)
{
	manifest_unref(t->m);
	mlist_unref(t->list);
	metadata_unref(t->meta);
	base_free(t->snapshots);
	base_free(t->seen);
	t->m = NULL;
	t->list = NULL;
	t->meta = NULL;
	t->snapshots = NULL;
	t->seen = NULL;
	t->n_seen = t->cap_seen = 0;
	t->running = false;
	t->ended_ms = loop_wall_ms();
	LOG(t->total ? LOG_WARN : LOG_INFO, "table.checked", NULL,
	    "%.*s: %lld manifests, %lld files, %lld vectors, %lld findings", STRV_ARG(t->name),
	    (long long)t->manifests, (long long)t->files, (long long)t->vectors,
	    (long long)t->total);
	if (t->stopping) {
		struct app *app = t->app;
		step_over(app);
		app_step_stopped(app);
	}
}

/* ------------------------------------------------------------------ files of metadata */

static enum status read_manifest(struct tcheck *t, struct err *err)
{
	const struct manifest_file *row = &t->list->l.rows[t->at_row];
	const struct partition_spec *spec = metadata_spec_by_id(t->meta, row->spec_id);
	struct field *fields = NULL;
	struct arena a;
	if (t->data.n != (size_t)row->length)
		return err_set(err, ST_SIZE_MISMATCH, "manifest_length",
			       "%zu bytes, its list says %lld", t->data.n, (long long)row->length);
	if (!spec)
		return err_set(err, ST_CORRUPT, "partition_spec_id",
			       "spec %d is not in the metadata", row->spec_id);
	arena_init(&a, (size_t)1 << 20);
	enum status st = partition_type(spec, metadata_schema(t->meta), &a, &fields, err);
	if (st == ST_OK)
		st = manifest_read(t->data, row, fields, spec->n, DECODE_MAX_BYTES, &t->got, err);
	arena_fini(&a);
	return st;
}

static void decode_run_job(struct loop_job *job)
{
	struct tcheck *t = CONTAINER_OF(job, struct tcheck, job);
	if (t->err.st != ST_OK)
		return;
	if (t->what == MANIFEST) {
		if (read_manifest(t, &t->err) == ST_OK)
			t->err = (struct err){0};
		return;
	}
	struct read_effect read = {.as = t->what == META ? READ_METADATA : READ_MANIFEST_LIST,
				   .path = t->path,
				   .metadata = t->meta,
				   .length = -1};
	decode_run(&read, t->data, &t->read);
	t->err = t->read.err;
}

static void plan_snapshots(struct tcheck *t)
{
	size_t n;
	const struct snapshot_ref *refs = metadata_refs(t->meta, &n);
	t->snapshots = base_calloc(n + 1, sizeof *t->snapshots);
	for (size_t i = 0; i < n; i++) {
		bool known = false;
		for (size_t k = 0; k < t->n_snapshots; k++)
			known |= t->snapshots[k] == refs[i].snapshot_id;
		if (!known)
			t->snapshots[t->n_snapshots++] = refs[i].snapshot_id;
	}
}

static void decoded(struct loop_job *job)
{
	struct tcheck *t = CONTAINER_OF(job, struct tcheck, job);
	base_free(t->own_data);
	t->own_data = NULL;
	if (t->err.st != ST_OK)
		find(t, t->path, &t->err);
	switch (t->what) {
	case META:
		t->meta = t->read.own_metadata;
		if (t->meta)
			plan_snapshots(t);
		break;
	case LIST:
		t->list = t->read.own_list;
		t->at_row = 0;
		if (!t->list)
			t->at_snapshot++;
		break;
	case MANIFEST:
		t->manifests++;
		t->m = t->got;
		t->at_entry = 0;
		if (!t->m)
			t->at_row++;
		break;
	}
	t->read = (struct read_result){0};
	t->got = NULL;
	advance(t);
}

static void fetched(struct op *op, enum status st, const struct err *err)
{
	struct tcheck *t = op->ctx;
	size_t n = 0;
	t->err = (struct err){0};
	if (st != ST_OK) {
		t->err = *err;
	} else {
		t->own_data = obj_take(&t->op, &n);
		t->data = (struct bytes){t->own_data, n};
	}
	loop_job_start(&t->app->loop, &t->job, true);
}

static void fetch(struct tcheck *t, enum what what, struct strv path)
{
	struct err err = {0};
	t->what = what;
	t->path = path;
	op_init(&t->op.op, fetched, t);
	t->job.run = decode_run_job;
	t->job.done = decoded;
	if (obj_get(bind_obj(t->app), path, NULL, FILE_MAX, &t->op, &err) != ST_OK) {
		/* The job hands it on: not from inside of this call. */
		t->err = err;
		loop_job_start(&t->app->loop, &t->job, true);
	}
}

/* ------------------------------------------------------------------ files that manifests name */

static void probe_over(struct probe *p)
{
	struct tcheck *t = p->t;
	if (p->err.st != ST_OK)
		find(t, p->file->path, &p->err);
	base_free(p->own_data);
	p->own_data = NULL;
	p->busy = false;
	t->busy--;
	advance(t);
}

static void vector_run(struct loop_job *job)
{
	struct probe *p = CONTAINER_OF(job, struct probe, job);
	struct read_effect read = {.as = READ_VECTOR,
				   .path = p->file->path,
				   .offset = p->file->content_offset,
				   .length = p->file->content_size,
				   .cardinality = p->file->record_count};
	struct read_result got;
	if (p->err.st != ST_OK)
		return;
	decode_run(&read, p->data, &got);
	p->err = got.err;
	bitmap64_free(got.own_vector);
}

static void vector_done(struct loop_job *job)
{
	probe_over(CONTAINER_OF(job, struct probe, job));
}

static void probed(struct op *op, enum status st, const struct err *err)
{
	struct probe *p = op->ctx;
	struct tcheck *t = p->t;
	const struct content_file *f = p->file;
	size_t n = 0;
	if (st != ST_OK) {
		p->err = *err;
	} else if (p->vector) {
		p->own_data = obj_take(&p->op, &n);
		p->data = (struct bytes){p->own_data, n};
		loop_job_start(&t->app->loop, &p->job, true);
		return;
	} else if (p->op.size != (uint64_t)f->file_size) {
		err_set(&p->err, ST_SIZE_MISMATCH, "file_size_in_bytes",
			"%llu bytes, its manifest says %lld", (unsigned long long)p->op.size,
			(long long)f->file_size);
	}
	if (p->err.st == ST_OK && content_file_is_dv(f)) {
		struct obj_range range = {(uint64_t)f->content_offset, (uint64_t)f->content_size};
		p->vector = true;
		t->vectors++;
		if (obj_get(bind_obj(t->app), f->path, &range, FILE_MAX, &p->op, &p->err) == ST_OK)
			return;
	}
	probe_over(p);
}

static void probe(struct tcheck *t, const struct content_file *f)
{
	struct probe *p = t->probes;
	while (p->busy)
		p++;
	*p = (struct probe){.t = t, .busy = true, .file = f};
	p->job.run = vector_run;
	p->job.done = vector_done;
	op_init(&p->op.op, probed, p);
	t->busy++;
	t->files++;
	if (obj_stat(bind_obj(t->app), f->path, &p->op, &p->err) != ST_OK)
		loop_job_start(&t->app->loop, &p->job, true);
}

/* ------------------------------------------------------------------ on and on */

static bool new_manifest(struct tcheck *t, struct strv path)
{
	uint64_t h = bytes_hash(strv_bytes(path));
	for (size_t i = 0; i < t->n_seen; i++)
		if (t->seen[i] == h)
			return false;
	if (t->n_seen == t->cap_seen) {
		t->cap_seen = t->cap_seen ? t->cap_seen * 2 : 64;
		t->seen = base_realloc_array(t->seen, t->cap_seen, sizeof *t->seen);
	}
	t->seen[t->n_seen++] = h;
	return true;
}

/* Whatever is next; called when something has ended. */
static void advance(struct tcheck *t)
{
	while (!t->stopping && t->meta) {
		if (t->m) {
			while (t->busy < PROBES && t->at_entry < t->m->n) {
				const struct manifest_entry *e = &t->m->entries[t->at_entry++];
				if (e->status != ENTRY_DELETED)
					probe(t, &e->file);
			}
			if (t->busy)
				return;
			manifest_unref(t->m);
			t->m = NULL;
			t->at_row++;
		} else if (t->list) {
			if (t->at_row == t->list->l.n) {
				mlist_unref(t->list);
				t->list = NULL;
				t->at_snapshot++;
			} else if (new_manifest(t, t->list->l.rows[t->at_row].path)) {
				fetch(t, MANIFEST, t->list->l.rows[t->at_row].path);
				return;
			} else {
				t->at_row++;
			}
		} else if (t->at_snapshot < t->n_snapshots) {
			const struct snapshot *s =
				metadata_snapshot(t->meta, t->snapshots[t->at_snapshot]);
			if (s && s->manifest_list.p) {
				fetch(t, LIST, s->manifest_list);
				return;
			}
			t->at_snapshot++;
		} else {
			break;
		}
	}
	if (t->busy == 0)
		over(t);
}

/* ------------------------------------------------------------------ routes */

static void told_where(void *ctx, const struct pg_history_where *res)
{
	struct call *call = ctx;
	struct tcheck *t = call->app->check;
	struct buf out;
	struct jwrite w;
	struct err err = res->err;
	if (err.st == ST_OK && (!t || t->stopping))
		err_set(&err, ST_OVERLOADED, "", "the daemon is shutting down");
	else if (err.st == ST_OK && t->running)
		err_set(&err, ST_OVERLOADED, "", "another check is running: %.*s",
			STRV_ARG(t->name));
	if (err.st != ST_OK) {
		call_reply_err(call, &err);
		return;
	}
	forget(t);
	*t = (struct tcheck){.app = t->app,
			     .no = t->no + 1,
			     .running = true,
			     .name = copy(res->name),
			     .location = copy(res->metadata_location),
			     .began_ms = loop_wall_ms()};
	/* It was one when the request came. */
	ASSERT(uuid_parse(call->hit.params[0].text, &t->table.u));
	fetch(t, META, t->location);
	buf_init(&out, 256);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_ki64(&w, "check", t->no);
	jwrite_end_object(&w);
	call_reply_buf(call, 202, &out);
}

static void begin(struct call *own_call)
{
	struct table_id id;
	struct err err = {0};
	enum status st = uuid_parse(own_call->hit.params[0].text, &id.u)
				 ? ST_OK
				 : err_set(&err, ST_BAD_REQUEST, "table", "not a table's UUID");
	if (st == ST_OK && !own_call->app->check)
		st = err_set(&err, ST_UNAVAILABLE, "", "the daemon is starting or shutting down");
	if (st == ST_OK)
		st = pg_history_find(bind_cat(own_call->app), id, told_where, own_call, &err);
	if (st != ST_OK)
		call_reply_err(own_call, &err);
}

static void show(struct call *own_call)
{
	const struct tcheck *t = own_call->app->check;
	struct buf out;
	struct jwrite w;
	char id[UUID_TEXT_LEN + 1];
	buf_init(&out, REPLY_MAX);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_ki64(&w, "check", t ? t->no : 0);
	jwrite_kstr(&w, "state", strv_of(!t || !t->no ? "none" : t->running ? "running" : "done"));
	if (t && t->no) {
		uuid_text(t->table.u, id);
		jwrite_kstr(&w, "table-uuid", strv_of(id));
		jwrite_kstr(&w, "table", t->name);
		jwrite_kstr(&w, "metadata-location", t->location);
		jwrite_ki64(&w, "began-ms", t->began_ms);
		if (!t->running)
			jwrite_ki64(&w, "ended-ms", t->ended_ms);
		jwrite_ki64(&w, "snapshots", (int64_t)t->n_snapshots);
		jwrite_ki64(&w, "manifests", t->manifests);
		jwrite_ki64(&w, "files", t->files);
		jwrite_ki64(&w, "vectors", t->vectors);
		jwrite_ki64(&w, "findings-total", t->total);
		jwrite_key(&w, "findings");
		jwrite_array(&w);
		for (size_t i = 0; i < t->n; i++) {
			jwrite_object(&w);
			jwrite_kstr(&w, "kind", strv_of(t->v[i].kind));
			jwrite_kstr(&w, "object", t->v[i].object);
			jwrite_kstr(&w, "message", strv_of(t->v[i].msg));
			jwrite_end_object(&w);
		}
		jwrite_end_array(&w);
	}
	jwrite_end_object(&w);
	call_reply_buf(own_call, 200, &out);
}

/* ------------------------------------------------------------------ the step of the app */

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)err;
	*ret_pending = false;
	struct tcheck *t = base_calloc(1, sizeof *t);
	t->app = app;
	app->check = t;
	route_set(app->routes, ROUTE_admin_check, begin);
	route_set(app->routes, ROUTE_admin_check_show, show);
	return ST_OK;
}

static void step_over(struct app *app)
{
	struct tcheck *t = app->check;
	forget(t);
	base_free(t);
	app->check = NULL;
}

static bool stop(struct app *app)
{
	struct tcheck *t = app->check;
	t->stopping = true;
	if (t->running)
		return false;
	step_over(app);
	return true;
}

const struct app_step tcheck_step = {"check", start, stop, NULL};
