/* Workers: transactions step by step or in one message, repeated until the answer is certain, given
 * up, aborted, with messages out of turn and with wrong tokens. */
#include <inttypes.h>

#include "proto/avro/manifest_list.h"
#include "proto/avro/manifest_write.h"
#include "proto/base/jwrite.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/rpc/msg.h"
#include "tests/sim/actors.h"

struct worker {
	int number;
	struct world *w;
};

struct job {
	struct worker *worker;
	struct intent *in;
	struct table_id table;
	int64_t incarnation;
	struct rpc_begin begin;
	struct rpc_fragment *frags;
	size_t n_frags, staged;
	struct rpc_property *summary; /* makes a snapshot of its own */
	size_t n_summary;
	bool once, unknown, over, aborting;
	struct bytes token;
	enum ev_kind step;
	int tries;
	uint64_t current; /* request whose answer counts */
};

static void next_job(struct world *w, void *arg);
static void go(struct world *w, void *arg);

/* ------------------------------------------------------------------ what to commit */

static struct bitmap64 *some_rows(struct world *w, const struct scan_file *f)
{
	struct bitmap64 *set = bitmap64_new();
	struct err err;
	int n = 1 + world_below(w, 4);
	if (world_chance(w, 100))
		n = (int)f->records; /* all that are left */
	for (int i = 0; i < n; i++) {
		uint64_t pos = n == (int)f->records ? (uint64_t)i
						    : (uint64_t)world_below(w, (int)f->records);
		ASSERT(bitmap64_add(set, pos, &err) == ST_OK);
	}
	return set;
}

static void add_delete(struct world *w, struct job *j, const struct scan_file *f,
		       struct rpc_fragment *frag)
{
	struct intent *in = j->in;
	for (size_t i = 0; i < in->n_deletes; i++)
		if (strv_eq(in->deletes[i].path, f->path))
			return;
	struct bitmap64 *all = some_rows(w, f), *fresh = bitmap64_clone(all);
	if (scan_gone(f))
		bitmap64_subtract(fresh, scan_gone(f));
	struct buf b;
	struct err err;
	buf_init(&b, (size_t)1 << 20);
	ASSERT(dv_blob_encode(all, &b, &err) == ST_OK);
	struct rpc_delete_vector *d = &frag->deletes[frag->n_deletes++];
	*d = (struct rpc_delete_vector){.data_file = f->path,
					.vector = world_copy(w, buf_bytes(&b)),
					.cardinality = (int64_t)bitmap64_cardinality(all)};
	d->provenance = j->begin.kind == RPC_KIND_DELETE && world_chance(w, 500)
				? RPC_PROVENANCE_DEAD
				: RPC_PROVENANCE_ABSENT;
	buf_fini(&b);
	bitmap64_free(all);
	in->deletes[in->n_deletes++] = (struct intent_delete){.path = f->path, .positions = fresh};
}

/* Puts the vectors into one file and refers to them by their places. */
static void into_file(struct world *w, struct job *j, struct strv location)
{
	struct rpc_fragment *f = &j->frags[0];
	struct buf b;
	buf_init(&b, (size_t)1 << 20);
	j->in->spent = world_printf(w, "%.*s/data/v-%06d.puffin", STRV_ARG(location),
				    w->actors->files++);
	buf_puts(&b, "PFA1");
	for (size_t i = 0; i < f->n_deletes; i++) {
		struct rpc_blob_ref *ref = world_alloc(w, sizeof *ref);
		*ref = (struct rpc_blob_ref){j->in->spent, (int64_t)b.n,
					     (int64_t)f->deletes[i].vector.n};
		buf_put(&b, f->deletes[i].vector.p, f->deletes[i].vector.n);
		f->deletes[i].vector = (struct bytes){NULL, 0};
		f->deletes[i].blob = ref;
	}
	if (!w->calm && world_chance(w, 30))
		j->in->sabotaged = j->in->hopeless = true;
	else
		store_put(w, j->in->spent, world_copy(w, buf_bytes(&b)), (int64_t)b.n);
	buf_fini(&b);
}

/* A file of position deletes for data files of one partition, which it names or does not. */
static void add_delete_file(struct world *w, struct job *j, const struct scan *scan,
			    const struct scan_file *first, struct rpc_fragment *frag,
			    struct strv location)
{
	struct intent *in = j->in;
	int64_t size = 100 + world_below(w, 300);
	struct rpc_delete_file *d = world_alloc(w, sizeof *d);
	struct strv *names = world_alloc(w, 4 * sizeof *names);
	*d = (struct rpc_delete_file){.path = actors_data_file(w, location, size),
				      .format = STRV("PARQUET"),
				      .spec_id = first->spec_id,
				      .file_size = size,
				      .data_files = names};
	if (first->partition.n) {
		struct rpc_partition_value *v = world_alloc(w, sizeof *v);
		*v = (struct rpc_partition_value){.field_id = 1000,
						  .has_value = !first->partition.v[0].null,
						  .value = first->partition.v[0].b};
		d->partition = v;
		d->n_partition = 1;
	}
	bool told = !world_chance(w, 200);
	for (size_t i = 0; i < scan->n && in->n_deletes < 3; i++) {
		const struct scan_file *f = &scan->files[i];
		if (f != first && (f->spec_id != first->spec_id ||
				   !tuple_eq(&f->partition, &first->partition) ||
				   !world_chance(w, 200)))
			continue;
		struct bitmap64 *all = some_rows(w, f), *fresh = bitmap64_clone(all);
		if (scan_gone(f))
			bitmap64_subtract(fresh, scan_gone(f));
		scans_delete_file(w, d->path, f->path, all);
		d->record_count += (int64_t)bitmap64_cardinality(all);
		bitmap64_free(all);
		if (told)
			names[d->n_data_files++] = f->path;
		in->deletes[in->n_deletes++] =
			(struct intent_delete){.path = f->path, .positions = fresh};
	}
	frag->delete_files = d;
	frag->n_delete_files = 1;
	in->by_files = true;
}

/* The snapshot that the worker has read, and rows of it to delete. false: there is nothing. */
static bool plan_deletes(struct world *w, struct job *j, struct metadata *m, struct strv location)
{
	const struct snapshot *s = metadata_current_snapshot(m);
	for (int back = world_chance(w, 400) ? world_below(w, 6) : 0; s && back > 0; back--)
		s = metadata_parent(m, s) ? metadata_parent(m, s) : s;
	if (!s)
		return false;
	const struct scan *scan = scans_of(w, j->table, m, s);
	if (scan->n == 0)
		return false;
	j->begin.has_read_snapshot_id = true;
	j->begin.read_snapshot_id = s->snapshot_id;
	j->in->read_seq = s->sequence_number;
	if (metadata_format_version(m) < 3) {
		int range = world_chance(w, 600) ? 3 : (int)scan->n;
		int at = world_below(w, range < (int)scan->n ? range : (int)scan->n);
		add_delete_file(w, j, scan, &scan->files[at], &j->frags[0], location);
		return true;
	}
	/* Preferably the same few files, so that workers meet. */
	int n = 1 + world_below(w, 2);
	j->frags[0].deletes = world_alloc(w, 4 * sizeof *j->frags[0].deletes);
	for (int i = 0; i < n; i++) {
		int range = world_chance(w, 600) ? 3 : (int)scan->n;
		int at = world_below(w, range < (int)scan->n ? range : (int)scan->n);
		add_delete(w, j, &scan->files[at], &j->frags[0]);
	}
	if (world_chance(w, 300))
		into_file(w, j, metadata_location(m));
	return true;
}

static void add_file(struct world *w, struct job *j, struct rpc_fragment *f, struct strv location)
{
	struct intent *in = j->in;
	int64_t records = 1 + world_below(w, 20), size = 100 + world_below(w, 1000);
	struct strv path;
	bool bad = !w->calm && world_chance(w, 15);
	if (in->n_files == 0 && world_fault(w, w->conf.steal) && w->actors->files > 1) {
		/* Somebody else's path. */
		path = world_printf(w, "%.*s/data/f-%06d.parquet", STRV_ARG(location),
				    world_below(w, w->actors->files));
		struct object *o = store_find(w, path);
		bad = true;
		if (o)
			o->restaged = true;
		size = o ? o->size : size;
		oracle_stolen(w, path);
	} else {
		path = actors_data_file(w, location, bad && world_chance(w, 500) ? -1 : size);
		size += bad;
	}
	in->sabotaged |= bad;
	struct rpc_data_file *d = &f->data_files[f->n_data_files++];
	*d = (struct rpc_data_file){.path = path,
				    .format = STRV("PARQUET"),
				    .record_count = records,
				    .file_size = size,
				    .new_row_count = records};
	if (w->conf.partitioned) {
		struct rpc_partition_value *v = world_alloc(w, sizeof *v);
		uint8_t *b = world_alloc(w, 4);
		put_u32le(b, (uint32_t)world_below(w, 3));
		v->field_id = 1000;
		v->has_value = !world_chance(w, 100);
		v->value = (struct bytes){b, 4};
		d->partition = v;
		d->n_partition = 1;
	}
	in->files[in->n_files] = path;
	in->records[in->n_files++] = records;
}

/* ------------------------------------------------------------------ as an engine reports it */

static void message_begin(struct jwrite *jw, struct buf *b, const char *content, const char *format,
			  struct strv path, int64_t size, int64_t rows)
{
	buf_init(b, (size_t)1 << 20);
	jwrite_init(jw, b);
	jwrite_object(jw);
	jwrite_kstr(jw, "content", strv_of(content));
	jwrite_kstr(jw, "fileFormat", strv_of(format));
	jwrite_kstr(jw, "path", path);
	jwrite_ki64(jw, "fileSizeInBytes", size);
	jwrite_key(jw, "metrics");
	jwrite_object(jw);
	jwrite_ki64(jw, "recordCount", rows);
	jwrite_end_object(jw);
}

static void message_end(struct world *w, struct jwrite *jw, struct buf *b, struct rpc_fragment *f,
			enum rpc_dialect dialect)
{
	jwrite_end_object(jw);
	ASSERT(buf_ok(b));
	f->messages[f->n_messages++] =
		(struct rpc_task_message){dialect, world_copy(w, buf_bytes(b))};
	buf_fini(b);
}

static void report_file(struct world *w, struct rpc_fragment *f, const struct rpc_data_file *d)
{
	struct jwrite jw;
	struct buf b;
	message_begin(&jw, &b, "DATA", "PARQUET", d->path, d->file_size, d->record_count);
	jwrite_ki64(&jw, "partitionSpecJson", d->spec_id);
	if (d->n_partition) {
		const struct rpc_partition_value *v = d->partition;
		jwrite_kstr(&jw, "partitionDataJson",
			    v->has_value ? world_printf(w, "{\"partitionValues\":[%" PRIu32 "]}",
							get_u32le(v->value.p))
					 : STRV("{\"partitionValues\":[null]}"));
	}
	message_end(w, &jw, &b, f, RPC_DIALECT_VELOX);
}

static void report_vector(struct world *w, struct rpc_fragment *f,
			  const struct rpc_delete_vector *d)
{
	struct jwrite jw;
	struct buf b, text;
	if (d->blob) {
		message_begin(&jw, &b, "POSITION_DELETES", "PUFFIN", d->blob->path, 1,
			      d->cardinality);
		jwrite_ki64(&jw, "contentOffset", d->blob->offset);
		jwrite_ki64(&jw, "contentSizeInBytes", d->blob->length);
	} else {
		message_begin(&jw, &b, "POSITION_DELETES", "PARQUET", STRV(""), 0, d->cardinality);
		buf_init(&text, (size_t)1 << 20);
		digest_base64(&text, d->vector);
		jwrite_kstr(&jw, "serializedDeletionVector", buf_strv(&text));
		buf_fini(&text);
	}
	jwrite_kstr(&jw, "referencedDataFile", d->data_file);
	message_end(w, &jw, &b, f, d->blob ? RPC_DIALECT_VELOX : RPC_DIALECT_TRINO);
}

/* The same fragment in the form of engines' messages. */
static void as_messages(struct world *w, struct rpc_fragment *f)
{
	f->messages = world_alloc(w, (f->n_data_files + f->n_deletes) * sizeof *f->messages);
	for (size_t i = 0; i < f->n_data_files; i++)
		report_file(w, f, &f->data_files[i]);
	for (size_t i = 0; i < f->n_deletes; i++)
		report_vector(w, f, &f->deletes[i]);
	f->n_data_files = f->n_deletes = 0;
}

/* Lists the fragment's files in a manifest of the worker's own and brings that. */
static void into_manifest(struct world *w, struct job *j, struct metadata *m, struct rpc_fragment *f)
{
	const struct partition_spec *spec = metadata_spec_by_id(m, 0);
	struct manifest_params p = {.format_version = metadata_format_version(m),
				    .content = MANIFEST_DATA,
				    .schema = STRV("{}"),
				    .schema_id = metadata_current_schema_id(m),
				    .spec_fields = STRV("[]"),
				    .n_partition = spec->n,
				    .snapshot_id = SNAPSHOT_NONE,
				    .codec = CODEC_DEFLATE};
	struct manifest_entry *e = world_alloc(w, f->n_data_files * sizeof *e);
	const struct manifest_entry **v = world_alloc(w, f->n_data_files * sizeof(void *));
	struct rpc_manifest_ref *ref = world_alloc(w, sizeof *ref);
	struct field *fields = NULL;
	struct manifest_file row;
	struct buf b;
	struct err err;
	ASSERT(partition_type(spec, metadata_schema(m), &w->mem, &fields, &err) == ST_OK);
	p.partition = fields;
	world_bytes(w, p.sync, sizeof p.sync);
	for (size_t i = 0; i < f->n_data_files; i++) {
		const struct rpc_data_file *d = &f->data_files[i];
		e[i] = (struct manifest_entry){.status = ENTRY_ADDED,
					       .snapshot_id = SNAPSHOT_NONE,
					       .seq = SEQ_NONE,
					       .file_seq = SEQ_NONE,
					       .file = content_file_empty()};
		e[i].file.path = d->path;
		e[i].file.format = d->format;
		e[i].file.record_count = d->record_count;
		e[i].file.file_size = d->file_size;
		e[i].file.partition.n = spec->n;
		e[i].file.partition.v = world_alloc(w, (spec->n + 1) * sizeof(struct value));
		if (spec->n)
			e[i].file.partition.v[0] =
				d->partition[0].has_value
					? (struct value){.b = d->partition[0].value}
					: VALUE_NULL;
		v[i] = &e[i];
	}
	buf_init(&b, (size_t)1 << 20);
	ASSERT(manifest_write(&p, v, f->n_data_files, &b, &w->mem, &row, &err) == ST_OK);
	*ref = (struct rpc_manifest_ref){
		.path = world_printf(w, "%.*s/metadata/w-%06d.avro", STRV_ARG(metadata_location(m)),
				     w->actors->files++),
		.length = (int64_t)b.n,
		.added_files = row.added_files,
		.added_rows = row.added_rows};
	if (!w->calm && world_chance(w, 20)) {
		ref->added_rows++;
		j->in->sabotaged = j->in->hopeless = true;
	}
	store_put(w, ref->path, world_copy(w, buf_bytes(&b)), (int64_t)b.n);
	buf_fini(&b);
	f->manifests = ref;
	f->n_manifests = 1;
	j->in->listed = true;
	f->data_files = NULL;
	f->n_data_files = 0;
}

static struct job *new_job(struct world *w, struct worker *worker)
{
	struct job *j = world_alloc(w, sizeof *j);
	struct intent *in = world_alloc(w, sizeof *in);
	int slot = world_below(w, w->conf.tables);
	j->worker = worker;
	j->in = in;
	j->current = UINT64_MAX;
	if (!actors_table(w, slot, &j->table, &j->incarnation))
		return NULL;
	const struct head_row *h = pg_head(w, j->table);
	struct metadata *m = store_metadata(w, h->metadata_location);
	struct strv location = world_strv(w, metadata_location(m));
	uint8_t r[10];
	world_bytes(w, r, sizeof r);
	in->txn.u = uuid_v7(world_pg_ms(w) - world_below(w, 1000), r);
	in->snapshot_id = SNAPSHOT_NONE;
	struct strv *ns = world_alloc(w, sizeof *ns);
	ns[0] = STRV("ns");
	j->begin = (struct rpc_begin){.txn_id = in->txn.u,
				      .namespace = ns,
				      .n_namespace = 1,
				      .table = w->actors->tables[slot].name,
				      .ref = STRV("main"),
				      .kind = RPC_KIND_APPEND,
				      .ordered = world_chance(w, 100),
				      .ttl_ms = w->conf.ttl_ms};
	j->n_frags = 1 + (size_t)world_below(w, 3);
	j->frags = world_alloc(w, j->n_frags * sizeof *j->frags);
	in->files = world_alloc(w, 16 * sizeof *in->files);
	in->records = world_alloc(w, 16 * sizeof *in->records);
	in->deletes = world_alloc(w, 8 * sizeof *in->deletes);
	int dice = world_below(w, 10);
	if (w->conf.deletes && dice < 6) {
		j->begin.kind = dice < 4 ? RPC_KIND_DELETE : RPC_KIND_ROW_DELTA;
		in->dead = dice < 4;
		if (!plan_deletes(w, j, m, location)) {
			j->begin.kind = RPC_KIND_APPEND;
			in->dead = false;
		}
	}
	if (j->begin.kind == RPC_KIND_DELETE)
		j->n_frags = 1;
	for (size_t i = 0; i < j->n_frags; i++) {
		struct rpc_fragment *f = &j->frags[i];
		f->fragment_id = world_printf(w, "task-%zu", i);
		f->attempt = world_below(w, 2);
		int files = j->begin.kind == RPC_KIND_DELETE ? 0 : 1 + world_below(w, 2);
		f->data_files = world_alloc(w, 4 * sizeof *f->data_files);
		for (int k = 0; k < files; k++)
			add_file(w, j, f, location);
		if (files && metadata_format_version(m) >= 2 && world_chance(w, 250))
			into_manifest(w, j, m, f);
		if (world_chance(w, 200))
			as_messages(w, f);
		ASSERT(msg_fragment_digest(f, &f->digest));
	}
	metadata_unref(m);
	if (world_chance(w, 150)) {
		j->summary = world_alloc(w, sizeof *j->summary);
		*j->summary = (struct rpc_property){
			STRV("offset"), world_printf(w, "%d", world_below(w, 1000))};
		j->n_summary = 1;
		in->summary = j->summary->value;
	}
	j->once = world_chance(w, 500);
	j->step = j->once ? EV_COMMIT_ONCE : EV_BEGIN;
	oracle_intend(w, in);
	struct actors *a = w->actors;
	a->jobs = world_grow(w, a->jobs, &a->cap_jobs, a->n_jobs + 1, sizeof(struct job *));
	a->jobs[a->n_jobs++] = j;
	a->open_jobs++;
	return j;
}

/* ------------------------------------------------------------------ messages */

static void fill(struct world *w, struct job *j, enum ev_kind kind, struct bytes token,
		 struct event *ev)
{
	*ev = (struct event){.kind = kind};
	struct ev_request *r = &ev->u.req;
	r->table = j->table;
	r->incarnation = j->incarnation;
	struct uuid id = j->in->txn.u;
	switch (kind) {
	case EV_BEGIN:
		r->u.begin = &j->begin;
		return;
	case EV_STAGE: {
		struct rpc_stage *m = world_alloc(w, sizeof *m);
		size_t at = j->staged < j->n_frags ? j->staged : j->n_frags - 1;
		*m = (struct rpc_stage){id, token, j->frags[at]};
		r->u.stage = m;
		return;
	}
	case EV_SEAL: {
		struct rpc_seal *m = world_alloc(w, sizeof *m);
		struct rpc_fragment_ref *refs = world_alloc(w, j->n_frags * sizeof *refs);
		for (size_t i = 0; i < j->n_frags; i++)
			refs[i] = (struct rpc_fragment_ref){
				j->frags[i].fragment_id, j->frags[i].attempt, j->frags[i].digest};
		*m = (struct rpc_seal){.txn_id = id,
				       .lease_token = token,
				       .fragments = refs,
				       .n_fragments = j->n_frags,
				       .expected_files = (int64_t)j->in->n_files,
				       .expected_rows = RPC_EXPECTED_NONE,
				       .expected_deleted = RPC_EXPECTED_NONE};
		r->u.seal = m;
		return;
	}
	case EV_COMMIT: {
		struct rpc_commit *m = world_alloc(w, sizeof *m);
		*m = (struct rpc_commit){.txn_id = id,
					 .lease_token = token,
					 .summary = j->summary,
					 .n_summary = j->n_summary};
		r->u.commit = m;
		return;
	}
	case EV_ABORT: {
		struct rpc_abort *m = world_alloc(w, sizeof *m);
		*m = (struct rpc_abort){.txn_id = id, .lease_token = token};
		r->u.abort = m;
		return;
	}
	case EV_STATUS: {
		struct rpc_status *m = world_alloc(w, sizeof *m);
		m->txn_id = id;
		r->u.status = m;
		return;
	}
	case EV_HEARTBEAT: {
		struct rpc_heartbeat *m = world_alloc(w, sizeof *m);
		m->items = world_alloc(w, sizeof *m->items);
		m->items[0] = (struct rpc_lease){id, token};
		m->n_items = 1;
		r->u.heartbeat = m;
		return;
	}
	case EV_COMMIT_ONCE: {
		struct rpc_commit_once *m = world_alloc(w, sizeof *m);
		*m = (struct rpc_commit_once){
			.begin = j->begin,
			.fragments = j->frags,
			.n_fragments = j->n_frags,
			.summary = j->summary,
			.n_summary = j->n_summary};
		r->u.once = m;
		return;
	}
	default:
		ASSERT_NEVER("not a worker's message");
	}
}

static void finish(struct world *w, struct job *j)
{
	if (j->over)
		return;
	j->over = true;
	w->actors->open_jobs--;
	world_at(w, 1000 + world_below(w, 100000), next_job, j->worker);
}

static void again_later(struct world *w, struct job *j)
{
	j->current = UINT64_MAX;
	world_at(w, 5000 + world_below(w, 100000), go, j);
}

static void timed_out(struct world *w, void *arg)
{
	struct job *j = ((void **)arg)[0];
	uint64_t id = *(uint64_t *)((void **)arg)[1];
	if (j->over || j->current != id)
		return;
	j->unknown = true;
	again_later(w, j);
}

static void out_of_turn(struct world *w, void *arg)
{
	struct job *j = arg;
	static const enum ev_kind kinds[] = {EV_BEGIN, EV_STAGE, EV_SEAL, EV_STATUS};
	struct event ev;
	/* Told that the table is gone, a worker is done: a copy would be a new one of the table that came back. */
	if (w->calm || j->in->ended)
		return;
	if (j->once) {
		fill(w, j, world_chance(w, 500) ? EV_STATUS : EV_COMMIT_ONCE, j->token, &ev);
		j->unknown = true;
		actors_send(w, REQ_ECHO, j, NULL, &ev);
		return;
	}
	if (world_chance(w, 300) && j->token.p) {
		uint8_t *bad = world_alloc(w, j->token.n);
		memcpy(bad, j->token.p, j->token.n);
		bad[0] ^= 1;
		static const enum ev_kind probes[] = {EV_STAGE, EV_SEAL, EV_COMMIT, EV_ABORT};
		fill(w, j, probes[world_below(w, 4)], (struct bytes){bad, j->token.n}, &ev);
		actors_send(w, REQ_PROBE, j, NULL, &ev);
		return;
	}
	enum ev_kind k = kinds[world_below(w, 4)];
	if (!j->token.p && k != EV_STATUS)
		k = EV_BEGIN;
	fill(w, j, k, j->token, &ev);
	actors_send(w, REQ_ECHO, j, NULL, &ev);
}

static void go(struct world *w, void *arg)
{
	struct job *j = arg;
	struct event ev;
	if (j->over || j->current != UINT64_MAX)
		return;
	if (!w->calm && world_chance(w, w->conf.f.give_up)) {
		finish(w, j);
		return;
	}
	if (++j->tries > 400) {
		if (w->calm && j->tries > 2000)
			world_fail(w, "a client does not get an answer");
	}
	enum ev_kind kind = j->step;
	if (j->unknown && world_chance(w, 300))
		kind = EV_STATUS;
	if (!w->calm && j->token.p && kind != EV_STATUS && world_chance(w, 20)) {
		j->aborting = true;
		j->step = kind = EV_ABORT;
	}
	fill(w, j, kind, j->token, &ev);
	struct actors *a = w->actors;
	j->current = a->n_reqs;
	void **pair = world_alloc(w, 2 * sizeof(void *));
	uint64_t *id = world_alloc(w, sizeof *id);
	*id = j->current;
	pair[0] = j;
	pair[1] = id;
	actors_send(w, REQ_STEP, j, NULL, &ev);
	world_at(w, w->conf.client_timeout_us, timed_out, pair);
	if (!w->calm && world_chance(w, 100))
		world_at(w, world_below(w, 50000), out_of_turn, j);
	if (!w->calm && j->token.p && world_chance(w, 50)) {
		fill(w, j, EV_HEARTBEAT, j->token, &ev);
		actors_send(w, REQ_BEAT, j, NULL, &ev);
	}
}

/* ------------------------------------------------------------------ answers */

static void on_outcome(struct world *w, struct job *j, const struct rpc_outcome *o)
{
	oracle_told(w, j->in->txn, o);
	if (o->state != RPC_STATE_OPEN && o->state != RPC_STATE_SEALED) {
		finish(w, j);
		return;
	}
	if (!j->once && !j->aborting)
		j->step = o->state == RPC_STATE_SEALED         ? EV_COMMIT
			  : j->token.p && j->step == EV_COMMIT ? EV_SEAL
							       : j->step;
	again_later(w, j);
}

static void on_error(struct world *w, struct job *j, enum ev_kind kind, const struct err *err)
{
	const struct status_info *info = status_info(err->st);
	if (err->st == ST_TOKEN_MISMATCH)
		world_fail(w, "the right token was refused");
	if (info->effect == EFFECT_UNKNOWN)
		j->unknown = true;
	if (info->retry == RETRY_SAME || info->retry == RETRY_LATER) {
		again_later(w, j);
		return;
	}
	if (err->st == ST_TXN_UNKNOWN && kind == EV_STATUS) {
		/* Not begun, or not yet: only the same message again makes that certain. */
		j->unknown = false;
		if (!j->token.p)
			again_later(w, j);
		else
			finish(w, j);
		return;
	}
	if (err->st == ST_TXN_STATE) {
		/* Somebody, or an earlier message of ours, was faster. */
		j->unknown = true;
		j->step = kind == EV_STATUS ? j->step : kind;
		again_later(w, j);
		if (!j->once && kind == EV_STAGE)
			j->step = EV_SEAL;
		return;
	}
	j->in->ended |= err->st == ST_TABLE_GONE && (kind == EV_COMMIT || kind == EV_COMMIT_ONCE);
	if (j->in->decided && kind == EV_COMMIT_ONCE)
		world_fail(w, "a decided transaction was refused as if it had not been: %s",
			   info->name);
	/* Refused for good. */
	if (j->token.p && !j->aborting && world_chance(w, 700)) {
		j->aborting = true;
		j->step = EV_ABORT;
		again_later(w, j);
		return;
	}
	finish(w, j);
}

static void on_step(struct world *w, struct job *j, enum ev_kind kind, const struct reply *reply)
{
	j->current = UINT64_MAX;
	if (reply->kind == REPLY_ERR) {
		on_error(w, j, kind, &reply->err);
		return;
	}
	switch (kind) {
	case EV_BEGIN: {
		const struct rpc_begin_reply *m = reply->msg;
		if (j->token.p && !bytes_eq(j->token, m->lease_token))
			world_fail(w, "a repeated Begin got another token");
		j->token = world_copy(w, m->lease_token);
		j->step = EV_STAGE;
		break;
	}
	case EV_STAGE:
		if (++j->staged >= j->n_frags)
			j->step = EV_SEAL;
		break;
	case EV_SEAL:
		j->step = EV_COMMIT;
		break;
	default:
		on_outcome(w, j, reply->msg);
		return;
	}
	j->unknown = false;
	world_at(w, 500 + world_below(w, 20000), go, j);
}

void workers_reply(struct world *w, struct req *r, uint64_t id, const struct reply *reply)
{
	struct job *j = r->job;
	bool outcome = r->kind == EV_COMMIT || r->kind == EV_COMMIT_ONCE || r->kind == EV_STATUS ||
		       r->kind == EV_ABORT;
	if (r->use == REQ_PROBE) {
		if (reply->kind == REPLY_RPC)
			world_fail(w, "a wrong token was accepted by message %d", (int)r->kind);
		return;
	}
	if (r->use == REQ_BEAT)
		return;
	if (r->use == REQ_STEP && !j->over && j->current == id) {
		on_step(w, j, r->kind, reply);
		return;
	}
	/* Late, or out of turn. */
	if (reply->kind == REPLY_RPC && outcome)
		oracle_told(w, j->in->txn, reply->msg);
	if (reply->kind == REPLY_RPC && r->kind == EV_BEGIN && j->token.p) {
		const struct rpc_begin_reply *m = reply->msg;
		if (!bytes_eq(j->token, m->lease_token))
			world_fail(w, "a repeated Begin got another token");
	}
}

static void next_job(struct world *w, void *arg)
{
	if (w->calm)
		return;
	struct job *j = new_job(w, arg);
	if (j)
		go(w, j);
	else
		world_at(w, 50000, next_job, arg);
}

void workers_start(struct world *w)
{
	for (int i = 0; i < w->conf.workers; i++) {
		struct worker *k = world_alloc(w, sizeof *k);
		*k = (struct worker){i, w};
		world_at(w, world_below(w, 200000), next_job, k);
	}
}

void actors_check_done(struct world *w)
{
	for (size_t i = 0; i < w->actors->n_jobs; i++) {
		const struct job *j = w->actors->jobs[i];
		if (!j->over)
			world_fail(w, "a client still waits: step %d after %d tries", (int)j->step,
				   j->tries);
		if (j->in->decided > 1)
			world_fail(w, "a transaction was decided twice");
	}
}
