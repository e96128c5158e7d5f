/* A table in memory under the decision and the encode job: batches of transactions are planned and
 * published against stored bytes, which are read back with the decoders (those are tested against
 * the reference implementation). Foreign snapshots are written entry by entry. */
#ifndef TESTS_UNIT_CORE_TABLE_H
#define TESTS_UNIT_CORE_TABLE_H

#include <stdarg.h>
#include <stdio.h>

#include "daemon/commit/decode.h"
#include "daemon/commit/encode.h"
#include "proto/avro/manifest_write.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/update.h"
#include "proto/rpc/rpc.h"
#include "tests/unit/unit.h"

#define CT_MAX ((size_t)64 << 20)
#define CT_NOW INT64_C(1800000000000)
#define CT_MAIN SNAPSHOT_REF_MAIN

struct ct_object {
	struct strv path;
	struct bytes data;
};

/* One snapshot, decoded from what is stored. */
struct ct_state {
	struct mlist *list;
	struct mview *views[256];
};

struct core_table {
	struct arena arena;
	struct metadata *meta;
	struct cache *cache;
	struct ct_object objects[4096];
	size_t n_objects;
	size_t n_reads;
	struct reflog *logs[8];
	size_t n_logs;
	int64_t last_snapshot; /* ours count up from 1001, foreign ones from 501 */
	int64_t last_foreign;
	int runs;
	struct plan_txn txns[256]; /* of the current batch */
	size_t n;
	struct bitmap64 *sets[512];
	size_t n_sets;
	size_t plan_bytes; /* limit for the plan */
	struct plan *plan;
	struct encode_out *out;
	struct ct_state states[64];
	size_t n_states;
};

static inline struct strv ct_text(struct core_table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline struct strv ct_text(struct core_table *t, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	ck_assert(n >= 0 && (size_t)n < sizeof line);
	struct strv s;
	ck_assert(arena_strv(&t->arena, strv_of(line), &s));
	return s;
}

static inline struct strv ct_path(struct core_table *t, const char *name)
{
	return ct_text(t, "file:///t/data/%s.parquet", name);
}

/* ------------------------------------------------------------------ the table */

#define CT_SCHEMA                                                                                  \
	"{\"type\":\"struct\",\"schema-id\":0,\"fields\":["                                        \
	"{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"},"                          \
	"{\"id\":2,\"name\":\"p\",\"required\":false,\"type\":\"int\"}]}"
#define CT_SPEC "[{\"source-id\":2,\"field-id\":1000,\"name\":\"p\",\"transform\":\"identity\"}]"

static inline struct metadata *ct_parse(struct bytes json)
{
	struct metadata *m = NULL;
	struct err err = {0};
	UNIT_OK(metadata_parse(json, ST_CORRUPT, &m, &err), &err);
	return m;
}

/* Spec 0 is unpartitioned, spec 1 is identity(p). Schema 1 has lost the column p. */
static inline void ct_open(struct core_table *t, int version, const char *properties)
{
	*t = (struct core_table){.last_snapshot = 1000,
				 .last_foreign = 500,
				 .plan_bytes = CT_MAX,
				 .cache = cache_new(CT_MAX)};
	arena_init(&t->arena, CT_MAX);
	struct buf b;
	buf_init(&b, 65536);
	buf_printf(&b,
		   "{\"format-version\":%d,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
		   "\"location\":\"file:///t\",\"last-sequence-number\":0,"
		   "\"last-updated-ms\":1700000000000,\"last-column-id\":2,"
		   "\"current-schema-id\":0,\"schemas\":[%s,{\"type\":\"struct\",\"schema-id\":1,"
		   "\"fields\":[{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"}]}],"
		   "\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},"
		   "{\"spec-id\":1,\"fields\":%s}],\"last-partition-id\":1000,"
		   "\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],"
		   "\"properties\":{%s}%s}",
		   version, CT_SCHEMA, CT_SPEC, properties,
		   version >= 3 ? ",\"next-row-id\":0" : "");
	t->meta = ct_parse(buf_bytes(&b));
	buf_fini(&b);
}

static inline void ct_close(struct core_table *t)
{
	for (size_t s = 0; s < t->n_states; s++) {
		for (size_t i = 0; i < t->states[s].list->l.n; i++)
			mview_unref(t->states[s].views[i]);
		mlist_unref(t->states[s].list);
	}
	encode_out_free(t->out);
	plan_free(t->plan);
	for (size_t i = 0; i < t->n_sets; i++)
		bitmap64_free(t->sets[i]);
	for (size_t i = 0; i < t->n_logs; i++)
		reflog_free(t->logs[i]);
	cache_free(t->cache);
	metadata_unref(t->meta);
	arena_fini(&t->arena);
}

/* Replaces a piece of the metadata's text, for states that no update leads to. */
static inline void ct_edit(struct core_table *t, const char *from, const char *to)
{
	struct buf b, c;
	buf_init(&b, CT_MAX);
	buf_init(&c, CT_MAX);
	metadata_json(t->meta, &b);
	buf_putc(&b, 0);
	char *at = strstr((char *)b.p, from);
	ck_assert_msg(at != NULL, "no %s in the metadata", from);
	buf_put(&c, b.p, (size_t)(at - (char *)b.p));
	buf_puts(&c, to);
	buf_puts(&c, at + strlen(from));
	metadata_unref(t->meta);
	t->meta = ct_parse(buf_bytes(&c));
	buf_fini(&b);
	buf_fini(&c);
}

static inline void ct_apply(struct core_table *t, const struct update *u, size_t n)
{
	struct metadata_ctx ctx = {.now_ms = CT_NOW, .base_location = STRV("file:///t/metadata/x")};
	struct metadata *m = NULL;
	bool changed;
	struct err err = {0};
	UNIT_OK(metadata_apply(t->meta, u, n, &ctx, &m, &changed, &err), &err);
	metadata_unref(t->meta);
	t->meta = m;
}

static inline void ct_upgrade(struct core_table *t)
{
	struct update u = {.kind = UPDATE_UPGRADE_FORMAT_VERSION, .u.format_version = 3};
	ct_apply(t, &u, 1);
}

static inline int64_t ct_head(const struct core_table *t, struct strv ref)
{
	const struct snapshot_ref *r = metadata_ref_by_name(t->meta, ref);
	return r ? r->snapshot_id : SNAPSHOT_NONE;
}

static inline const struct snapshot *ct_snapshot(const struct core_table *t, struct strv ref)
{
	const struct snapshot *s = metadata_snapshot(t->meta, ct_head(t, ref));
	ck_assert(s != NULL);
	return s;
}

static inline void ct_branch(struct core_table *t, struct strv name, bool tag)
{
	struct update u = {.kind = UPDATE_SET_SNAPSHOT_REF,
			   .u.ref = {.name = name, .snapshot_id = ct_head(t, CT_MAIN), .tag = tag}};
	ct_apply(t, &u, 1);
}

static inline void ct_store(struct core_table *t, struct strv path, struct bytes data)
{
	ck_assert(t->n_objects < ARRAY_SIZE(t->objects));
	struct ct_object *o = &t->objects[t->n_objects++];
	ck_assert(arena_strv(&t->arena, path, &o->path) && arena_bytes(&t->arena, data, &o->data));
}

static inline struct bytes ct_joined(struct core_table *t, const struct encode_object *o)
{
	struct bytes all;
	struct buf b;
	buf_init(&b, CT_MAX);
	pieces_join(&o->content, &b);
	ck_assert(buf_ok(&b) && arena_bytes(&t->arena, buf_bytes(&b), &all));
	buf_fini(&b);
	return all;
}

static inline const struct ct_object *ct_object(const struct core_table *t, struct strv path)
{
	for (size_t i = 0; i < t->n_objects; i++)
		if (strv_eq(t->objects[i].path, path))
			return &t->objects[i];
	return NULL;
}

/* ------------------------------------------------------------------ files and foreign snapshots */

static inline struct tuple ct_tuple(struct core_table *t, uint32_t p)
{
	struct value *v = arena_calloc(&t->arena, 1, sizeof *v);
	uint8_t *b = arena_calloc(&t->arena, 4, 1);
	ck_assert(v && b);
	put_u32le(b, p);
	v->b = (struct bytes){b, 4};
	return (struct tuple){v, 1};
}

/* "3 5 10-19" */
static inline struct bitmap64 *ct_set(struct core_table *t, const char *positions)
{
	struct bitmap64 *s = bitmap64_new();
	struct err err = {0};
	while (*positions) {
		char *end;
		uint64_t from = strtoull(positions, &end, 10), to = from;
		if (*end == '-')
			to = strtoull(end + 1, &end, 10);
		UNIT_OK(bitmap64_add_range(s, from, to + 1, &err), &err);
		positions = end;
		while (*positions == ' ')
			positions++;
	}
	ck_assert(t->n_sets < ARRAY_SIZE(t->sets));
	t->sets[t->n_sets++] = s;
	return s;
}

static inline struct content_file ct_data(struct core_table *t, const char *name, int64_t records)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_DATA;
	f.path = ct_path(t, name);
	f.format = STRV("PARQUET");
	f.record_count = records;
	f.file_size = records * 10;
	return f;
}

static inline struct content_file ct_in(struct core_table *t, struct content_file f, uint32_t p)
{
	f.spec_id = 1;
	f.partition = ct_tuple(t, p);
	return f;
}

/* A vector with its blob stored; only the blob's place matters to a reader. */
static inline struct content_file ct_vector(struct core_table *t, const char *name,
					    const char *positions)
{
	struct content_file f = content_file_empty();
	struct bitmap64 *set = ct_set(t, positions);
	struct err err = {0};
	struct buf b;
	buf_init(&b, CT_MAX);
	buf_puts(&b, "PFA1");
	UNIT_OK(dv_blob_encode(set, &b, &err), &err);
	f.content = CONTENT_POSITION_DELETES;
	f.path = ct_text(t, "file:///t/data/v%zu.puffin", t->n_objects);
	f.format = STRV("PUFFIN");
	f.record_count = (int64_t)bitmap64_cardinality(set);
	f.file_size = (int64_t)b.n + 100;
	f.referenced_data_file = ct_path(t, name);
	f.content_offset = 4;
	f.content_size = (int64_t)b.n - 4;
	ct_store(t, f.path, buf_bytes(&b));
	buf_fini(&b);
	return f;
}

/* Position deletes in Parquet, as version 2 has them. */
static inline struct content_file ct_legacy(struct core_table *t, const char *name)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_POSITION_DELETES;
	f.path = ct_path(t, name);
	f.format = STRV("PARQUET");
	f.record_count = 1;
	f.file_size = 100;
	return f;
}

static inline struct manifest_entry ct_entry(enum entry_status status, struct content_file f,
					     int64_t snapshot, int64_t seq)
{
	return (struct manifest_entry){
		.status = status, .snapshot_id = snapshot, .seq = seq, .file_seq = seq, .file = f};
}

/* Writes a manifest of a foreign snapshot; entries are of spec `spec` and data or deletes alike. */
static inline struct manifest_file ct_manifest(struct core_table *t, int version, int32_t spec,
					       enum manifest_content content,
					       const struct manifest_entry *e, size_t n)
{
	struct err err = {0};
	struct field *types = NULL;
	const struct partition_spec *s = metadata_spec_by_id(t->meta, spec);
	UNIT_OK(partition_type(s, metadata_schema_by_id(t->meta, 0), &t->arena, &types, &err),
		&err);
	struct manifest_params p = {.format_version = version,
				    .content = content,
				    .schema = STRV(CT_SCHEMA),
				    .schema_id = 0,
				    .spec_id = spec,
				    .spec_fields = spec ? STRV(CT_SPEC) : STRV("[]"),
				    .partition = types,
				    .n_partition = s->n,
				    .snapshot_id = t->last_foreign + 1,
				    .codec = CODEC_DEFLATE};
	const struct manifest_entry **v = arena_calloc(&t->arena, n, sizeof(void *));
	ck_assert(v != NULL);
	for (size_t i = 0; i < n; i++)
		v[i] = &e[i];
	struct manifest_file row;
	struct buf b;
	buf_init(&b, CT_MAX);
	UNIT_OK(manifest_write(&p, v, n, &b, &t->arena, &row, &err), &err);
	row.path = ct_text(t, "file:///t/metadata/f%zu.avro", t->n_objects);
	ct_store(t, row.path, buf_bytes(&b));
	buf_fini(&b);
	return row;
}

/* Publishes a foreign snapshot with these manifests. dead as reflog_foreign has it. */
static inline int64_t ct_foreign(struct core_table *t, struct strv ref,
				 const struct manifest_file *rows, size_t n, bool dead)
{
	int version = metadata_format_version(t->meta);
	int64_t id = ++t->last_foreign, head = ct_head(t, ref);
	int64_t seq = metadata_last_sequence_number(t->meta) + 1,
		first = metadata_next_row_id(t->meta);
	int64_t next = first;
	struct manifest_file *v = arena_calloc(&t->arena, n ? n : 1, sizeof *v);
	ck_assert(v != NULL);
	for (size_t i = 0; i < n; i++) {
		v[i] = rows[i];
		if (version >= 3 && v[i].content == MANIFEST_DATA &&
		    v[i].first_row_id == ROW_ID_NONE) {
			v[i].first_row_id = next;
			next += v[i].added_rows + v[i].existing_rows;
		}
	}
	struct manifest_list_params p = {.format_version = version,
					 .snapshot_id = id,
					 .parent_snapshot_id = head,
					 .seq = seq,
					 .first_row_id = version >= 3 ? first : ROW_ID_NONE,
					 .codec = CODEC_DEFLATE};
	struct err err = {0};
	struct buf b;
	buf_init(&b, CT_MAX);
	UNIT_OK(manifest_list_write(&p, v, n, &b, &err), &err);
	struct strv path = ct_text(t, "file:///t/metadata/snap-%lld.avro", (long long)id);
	ct_store(t, path, buf_bytes(&b));
	buf_fini(&b);
	struct snapshot s = {.snapshot_id = id,
			     .parent_id = head,
			     .sequence_number = seq,
			     .timestamp_ms = CT_NOW,
			     .schema_id = 0,
			     .first_row_id = version >= 3 ? first : ROW_ID_NONE,
			     .added_rows = version >= 3 ? next - first : ROW_ID_NONE,
			     .manifest_list = path,
			     .operation = STRV("append")};
	struct update u[2] = {
		{.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s},
		{.kind = UPDATE_SET_SNAPSHOT_REF, .u.ref = {.name = ref, .snapshot_id = id}}};
	ct_apply(t, u, 2);
	for (size_t i = 0; i < t->n_logs; i++)
		if (strv_eq(reflog_ref(t->logs[i]), ref))
			reflog_foreign(t->logs[i], id, dead);
	return id;
}

/* ------------------------------------------------------------------ transactions */

static inline void ct_batch(struct core_table *t)
{
	t->n = 0;
}

static inline struct plan_txn *ct_txn(struct core_table *t, struct strv ref, int32_t kind)
{
	ck_assert(t->n < ARRAY_SIZE(t->txns));
	struct plan_txn *x = &t->txns[t->n++];
	*x = (struct plan_txn){.id = {{{(uint8_t)t->n}}},
			       .wish = PLAN_COMMIT,
			       .kind = kind,
			       .ref = ref};
	x->has_read = ct_head(t, ref) != SNAPSHOT_NONE;
	x->read_snapshot = ct_head(t, ref);
	return x;
}

static inline void ct_add(struct core_table *t, struct plan_txn *x, struct content_file f)
{
	struct content_file *files = arena_calloc(&t->arena, x->n_files + 1, sizeof *files);
	int32_t *ids = arena_calloc(&t->arena, x->n_files + 1, sizeof *ids);
	ck_assert(files && ids);
	if (x->n_files)
		memcpy(files, x->files, x->n_files * sizeof *files);
	files[x->n_files++] = f;
	x->files = files;
	x->schema_ids = ids;
}

static inline struct plan_delete *ct_del(struct core_table *t, struct plan_txn *x, const char *name,
					 const char *positions, bool dead)
{
	struct plan_delete *d = arena_calloc(&t->arena, x->n_deletes + 1, sizeof *d);
	ck_assert(d != NULL);
	if (x->n_deletes)
		memcpy(d, x->deletes, x->n_deletes * sizeof *d);
	d[x->n_deletes] = (struct plan_delete){
		.data_file = ct_path(t, name), .positions = ct_set(t, positions), .dead = dead};
	x->deletes = d;
	return &d[x->n_deletes++];
}

/* A file of position deletes for one transaction; names: data files, separated by spaces. */
static inline struct plan_delete_file *ct_del_file(struct core_table *t, struct plan_txn *x,
						   const char *file, const char *names)
{
	struct plan_delete_file *d = arena_calloc(&t->arena, x->n_delete_files + 1, sizeof *d);
	struct strv *v = arena_calloc(&t->arena, 16, sizeof *v);
	ck_assert(d && v);
	if (x->n_delete_files)
		memcpy(d, x->delete_files, x->n_delete_files * sizeof *d);
	x->delete_files = d;
	d += x->n_delete_files++;
	*d = (struct plan_delete_file){.file = ct_legacy(t, file), .names = v, .told = true};
	d->file.record_count = 3;
	while (*names) {
		size_t n = strcspn(names, " ");
		char one[32];
		ck_assert(n < sizeof one && d->n_names < 16);
		memcpy(one, names, n);
		one[n] = 0;
		v[d->n_names++] = ct_path(t, one);
		names += n + (names[n] == ' ');
	}
	return d;
}

static inline struct plan_txn *ct_append(struct core_table *t, struct strv ref, const char *name,
					 int64_t records)
{
	struct plan_txn *x = ct_txn(t, ref, RPC_KIND_APPEND);
	ct_add(t, x, ct_data(t, name, records));
	return x;
}

/* A pure DELETE at the head. */
static inline struct plan_txn *ct_delete(struct core_table *t, struct strv ref, const char *name,
					 const char *positions)
{
	struct plan_txn *x = ct_txn(t, ref, RPC_KIND_DELETE);
	ct_del(t, x, name, positions, true);
	return x;
}

/* An UPDATE at the head: rows of one file are written again into another. */
static inline struct plan_txn *ct_update(struct core_table *t, struct strv ref, const char *name,
					 const char *positions, const char *to)
{
	struct plan_txn *x = ct_txn(t, ref, RPC_KIND_ROW_DELTA);
	ct_del(t, x, name, positions, false);
	ct_add(t, x, ct_data(t, to, (int64_t)bitmap64_cardinality(x->deletes[0].positions)));
	return x;
}

/* ------------------------------------------------------------------ running */

static inline struct reflog *ct_log_of(void *ctx, struct strv ref, int64_t head)
{
	struct core_table *t = ctx;
	for (size_t i = 0; i < t->n_logs; i++)
		if (strv_eq(reflog_ref(t->logs[i]), ref))
			return t->logs[i];
	ck_assert(t->n_logs < ARRAY_SIZE(t->logs));
	return t->logs[t->n_logs++] = reflog_new(ref, head);
}

static inline int64_t ct_new_id(void *ctx)
{
	struct core_table *t = ctx;
	return ++t->last_snapshot;
}

static inline void ct_serve(struct core_table *t, struct needs *needs)
{
	for (size_t i = 0; i < needs->n; i++) {
		if (!cache_item_begin(needs->v[i]))
			continue;
		const struct read_effect *r = cache_item_read(needs->v[i]);
		const struct ct_object *o = ct_object(t, r->path);
		struct read_result res = {0};
		t->n_reads++;
		if (!o) {
			err_set(&res.err, ST_NOT_FOUND, "", "no such object");
		} else {
			struct bytes data = o->data;
			if (r->as == READ_VECTOR) {
				ck_assert(r->offset >= 0 && r->length >= 0 &&
					  (size_t)(r->offset + r->length) <= data.n);
				data = (struct bytes){data.p + r->offset, (size_t)r->length};
			}
			decode_run(r, data, &res);
		}
		cache_item_done(t->cache, needs->v[i], &res);
	}
	needs_begin(needs);
	cache_trim(t->cache);
}

/* Plans the batch; reads are served until nothing is missing. err may be NULL: must not fail. */
static inline enum plan_answer ct_plan(struct core_table *t, struct err *err)
{
	struct err own = {0};
	struct needs needs = {0};
	struct plan_in in = {.base = t->meta,
			     .txns = t->txns,
			     .n_txns = t->n,
			     .log_of = ct_log_of,
			     .new_snapshot_id = ct_new_id,
			     .ctx = t,
			     .max_bytes = t->plan_bytes};
	encode_out_free(t->out);
	t->out = NULL;
	plan_free(t->plan);
	t->plan = NULL;
	enum plan_answer ans;
	int rounds = 0;
	while ((ans = plan_run(&in, t->cache, &needs, &t->plan, err ? err : &own)) == PLAN_WAIT) {
		ck_assert_msg(needs.n > 0 && ++rounds < 1000, "waits for nothing");
		ct_serve(t, &needs);
	}
	needs_fini(&needs);
	ck_assert_msg(err || ans == PLAN_DONE, "plan: %s %s", own.field, own.msg);
	return ans;
}

MUST_CHECK static inline enum status ct_encode(struct core_table *t, size_t max_bytes)
{
	struct encode_in in = {
		.plan = t->plan,
		.metadata_path = ct_text(t, "file:///t/metadata/v%d.metadata.json", ++t->runs),
		.base_location = ct_text(t, "file:///t/metadata/v%d.metadata.json", t->runs - 1),
		.now_ms = CT_NOW + t->runs,
		.commit_uuid = {{(uint8_t)t->runs, (uint8_t)(t->runs >> 8)}},
		.batch = {{{9}}},
		.max_bytes = max_bytes};
	t->out = encode_out_new(max_bytes);
	encode_run(&in, t->out);
	return t->out->err.st;
}

/* Stores what was encoded and goes on from it. */
static inline void ct_publish(struct core_table *t)
{
	if (!t->out->changed)
		return;
	for (size_t i = 0; i < t->out->n_objects; i++) {
		ck_assert_msg(!ct_object(t, t->out->objects[i].path), "written twice: %.*s",
			      STRV_ARG(t->out->objects[i].path));
		ct_store(t, t->out->objects[i].path, ct_joined(t, &t->out->objects[i]));
	}
	metadata_unref(t->meta);
	/* What a reader finds in the file. */
	t->meta = ct_parse(ct_joined(t, &t->out->objects[t->out->n_objects - 1]));
	plan_published(t->plan);
}

/* Plan, encode and publish. The batch's outcomes stay readable until the next ct_batch. */
static inline void ct_commit(struct core_table *t)
{
	(void)ct_plan(t, NULL);
	UNIT_OK(ct_encode(t, CT_MAX), &t->out->err);
	ct_publish(t);
}

static inline void ct_is_state(const struct plan_txn *x, enum txn_db_state state,
			       enum status reject)
{
	ck_assert_msg(x->taken && x->state == state && x->reject.st == reject,
		      "taken %d state %d, reject %s %s", x->taken, (int)x->state,
		      status_info(x->reject.st)->name, x->reject.msg);
}
#define CT_COMMITTED(x) ct_is_state(x, TXN_DB_COMMITTED, ST_OK)
#define CT_REJECTED(x, st) ct_is_state(x, TXN_DB_REJECTED, st)

/* ------------------------------------------------------------------ looking */

/* Decodes a snapshot from stored bytes. */
static inline const struct ct_state *ct_look(struct core_table *t, int64_t snapshot)
{
	struct err err = {0};
	ck_assert(t->n_states < ARRAY_SIZE(t->states));
	struct ct_state *s = &t->states[t->n_states++];
	const struct snapshot *snap = metadata_snapshot(t->meta, snapshot);
	ck_assert(snap != NULL);
	const struct ct_object *o = ct_object(t, snap->manifest_list);
	ck_assert(o != NULL);
	UNIT_OK(mlist_read(o->data, CT_MAX, &s->list, &err), &err);
	ck_assert(s->list->l.n <= ARRAY_SIZE(s->views));
	for (size_t i = 0; i < s->list->l.n; i++) {
		o = ct_object(t, s->list->l.rows[i].path);
		ck_assert(o != NULL);
		ck_assert_int_eq(s->list->l.rows[i].length, (int64_t)o->data.n);
		UNIT_OK(mview_read(o->data, &s->list->l.rows[i], t->meta, CT_MAX, &s->views[i],
				   &err),
			&err);
	}
	return s;
}

static inline const struct ct_state *ct_look_ref(struct core_table *t, struct strv ref)
{
	return ct_look(t, ct_head(t, ref));
}

/* The entry of a data file, or the vectors' that reference it; NULL when there is none with this
 * status. Fails on two. */
static inline const struct manifest_entry *ct_find(struct core_table *t, const struct ct_state *s,
						   enum manifest_content content, const char *name,
						   enum entry_status status)
{
	struct strv path = ct_path(t, name);
	const struct manifest_entry *found = NULL;
	for (size_t i = 0; i < s->list->l.n; i++)
		for (size_t k = 0; s->list->l.rows[i].content == content && k < s->views[i]->m->n;
		     k++) {
			const struct manifest_entry *e = &s->views[i]->m->entries[k];
			struct strv key = content == MANIFEST_DATA ? e->file.path
								   : e->file.referenced_data_file;
			if (e->status != status || !strv_eq(key, path))
				continue;
			ck_assert_msg(!found, "%s stands twice", name);
			found = e;
		}
	return found;
}

/* First row id of a live data file, which must be there. */
static inline int64_t ct_row_id(struct core_table *t, const struct ct_state *s, const char *name)
{
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DATA, name, ENTRY_ADDED);
	if (!e)
		e = ct_find(t, s, MANIFEST_DATA, name, ENTRY_EXISTING);
	ck_assert_msg(e != NULL, "%s is not there", name);
	return e->file.first_row_id;
}

static inline void ct_summary(const struct snapshot *s, const char *key, const char *want)
{
	struct strv v = snapshot_summary(s, key);
	if (!want)
		ck_assert_msg(!v.p, "%s is there: %.*s", key, STRV_ARG(v));
	else
		ck_assert_msg(strv_eq(v, strv_of(want)), "%s: %.*s, want %s", key, STRV_ARG(v),
			      want);
}

#endif
