/* Reading the manifests of tests/golden/manifests, written by the Java library, together with the
 * JSON of what that library reads back from them. Included by unit programs. */
#ifndef TESTS_UNIT_AVRO_GOLDEN_H
#define TESTS_UNIT_AVRO_GOLDEN_H

#include <stdio.h>

#include "proto/avro/manifest.h"
#include "proto/avro/manifest_list.h"
#include "proto/base/buf.h"
#include "proto/base/digest.h"
#include "proto/base/json.h"
#include "proto/iceberg/partition.h"
#include "tests/unit/unit.h"

#define GOLDEN_DIR "tests/golden/manifests/"
#define GOLDEN_LIMIT ((size_t)64 << 20)

static inline void golden_load(const char *name, struct buf *ret_b)
{
	char path[256];
	snprintf(path, sizeof path, GOLDEN_DIR "%s", name);
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	buf_init(ret_b, (size_t)1 << 24);
	char chunk[4096];
	for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
		buf_put(ret_b, chunk, n);
	fclose(f);
	ck_assert(buf_ok(ret_b) && ret_b->n > 0);
}

/* One format version: the expected JSON, schema, specs and their tuple types. */
struct golden {
	struct arena a;
	struct buf text;
	struct jdoc *doc;
	const struct jval *rows;
	struct strv schema_json;
	struct schema schema;
	struct partition_spec specs[3];
	struct field *partition[3];
	size_t n_specs;
	struct manifest_list list;
};

static inline void golden_open(struct golden *g, int version)
{
	struct err err = {0};
	char name[32];
	snprintf(name, sizeof name, "v%d.json", version);
	arena_init(&g->a, GOLDEN_LIMIT);
	golden_load(name, &g->text);
	UNIT_OK(jdoc_parse(buf_bytes(&g->text), ST_CORRUPT, &g->doc, &err), &err);
	const struct jval *root = jdoc_root(g->doc);
	UNIT_OK(schema_parse(jval_get(root, "schema"), ST_CORRUPT, &g->a, &g->schema, &err), &err);
	g->n_specs = jval_count(jval_get(root, "specs"));
	ck_assert_uint_le(g->n_specs, 3);
	for (size_t i = 0; i < g->n_specs; i++) {
		UNIT_OK(partition_parse(jval_at(jval_get(root, "specs"), i), ST_CORRUPT, &g->a,
					&g->specs[i], &err),
			&err);
		UNIT_OK(partition_type(&g->specs[i], &g->schema, &g->a, &g->partition[i], &err),
			&err);
	}
	g->rows = jval_get(root, "rows");
	struct buf file;
	snprintf(name, sizeof name, "v%d-list.avro", version);
	golden_load(name, &file);
	UNIT_OK(manifest_list_read(buf_bytes(&file), &g->a, &g->list, &err), &err);
	buf_fini(&file);
}

static inline void golden_close(struct golden *g)
{
	jdoc_free(g->doc);
	buf_fini(&g->text);
	arena_fini(&g->a);
}

/* Index into specs and partition of a row. */
static inline size_t golden_spec(const struct golden *g, const struct manifest_file *row)
{
	size_t i = 0;
	while (i < g->n_specs && g->specs[i].spec_id != row->spec_id)
		i++;
	ck_assert_uint_lt(i, g->n_specs);
	return i;
}

/* The file behind a row's path, in the golden folder. */
static inline void golden_manifest_bytes(const struct manifest_file *row, struct buf *ret_b)
{
	char name[64];
	struct strv prefix = STRV("memory:/golden/");
	ck_assert(strv_starts(row->path, prefix));
	ck_assert(strv_cstr(strv_sub(row->path, prefix.n, row->path.n), name, sizeof name));
	golden_load(name, ret_b);
}

static inline struct manifest *golden_manifest(const struct golden *g,
					       const struct manifest_file *row)
{
	struct err err = {0};
	struct buf file;
	struct manifest *m = NULL;
	size_t s = golden_spec(g, row);
	golden_manifest_bytes(row, &file);
	UNIT_OK(manifest_read(buf_bytes(&file), row, g->partition[s], g->specs[s].n, GOLDEN_LIMIT,
			      &m, &err),
		&err);
	buf_fini(&file);
	return m;
}

/* ---- comparison with the JSON ---- */

static inline void golden_i64(const struct jval *o, const char *key, int64_t absent, int64_t got)
{
	int64_t want = absent;
	if (!jval_is_null(jval_get(o, key)))
		ck_assert_msg(jval_as_i64(jval_get(o, key), &want), "%s", key);
	ck_assert_msg(want == got, "%s: want %lld, got %lld", key, (long long)want, (long long)got);
}

static inline void golden_hex(const struct jval *v, const char *what, bool has, struct bytes got)
{
	struct strv want = {NULL, 0};
	struct buf hex;
	ck_assert_msg(jval_is_null(v) == !has, "%s: presence differs", what);
	if (!has)
		return;
	buf_init(&hex, 4096);
	digest_hex(&hex, got);
	ck_assert_msg(jval_as_str(v, &want) && strv_eq(want, buf_strv(&hex)),
		      "%s: want %.*s, got %.*s", what, STRV_ARG(want), STRV_ARG(buf_strv(&hex)));
	buf_fini(&hex);
}

static inline void golden_str(const struct jval *o, const char *key, struct strv got)
{
	struct strv want = {NULL, 0};
	(void)!jval_as_str(jval_get(o, key), &want);
	ck_assert_msg(strv_eq(want, got) && !want.p == !got.p, "%s: want %.*s, got %.*s", key,
		      STRV_ARG(want), STRV_ARG(got));
}

static inline void golden_row(const struct jval *o, const struct manifest_file *r)
{
	golden_str(o, "manifest_path", r->path);
	golden_i64(o, "manifest_length", 0, r->length);
	golden_i64(o, "partition_spec_id", 0, r->spec_id);
	golden_i64(o, "content", 0, r->content);
	golden_i64(o, "sequence_number", 0, r->seq);
	golden_i64(o, "min_sequence_number", 0, r->min_seq);
	golden_i64(o, "added_snapshot_id", 0, r->added_snapshot_id);
	ck_assert(r->has_file_counts && r->has_row_counts);
	golden_i64(o, "added_files_count", 0, r->added_files);
	golden_i64(o, "existing_files_count", 0, r->existing_files);
	golden_i64(o, "deleted_files_count", 0, r->deleted_files);
	golden_i64(o, "added_rows_count", 0, r->added_rows);
	golden_i64(o, "existing_rows_count", 0, r->existing_rows);
	golden_i64(o, "deleted_rows_count", 0, r->deleted_rows);
	golden_i64(o, "first_row_id", ROW_ID_NONE, r->first_row_id);
	golden_hex(jval_get(o, "key_metadata"), "key_metadata", r->has_key_metadata,
		   r->key_metadata);
	const struct jval *parts = jval_get(o, "partitions");
	ck_assert_uint_eq(jval_count(parts), r->n_partitions);
	for (size_t i = 0; i < r->n_partitions; i++) {
		const struct jval *p = jval_at(parts, i);
		const struct partition_summary *s = &r->partitions[i];
		bool null = false, nan = false;
		ck_assert(jval_as_bool(jval_get(p, "contains_null"), &null));
		ck_assert_int_eq(null, s->contains_null);
		ck_assert_int_eq(jval_as_bool(jval_get(p, "contains_nan"), &nan),
				 s->has_contains_nan);
		ck_assert_int_eq(nan, s->contains_nan);
		golden_hex(jval_get(p, "lower_bound"), "lower_bound", s->lower.p, s->lower);
		golden_hex(jval_get(p, "upper_bound"), "upper_bound", s->upper.p, s->upper);
	}
}

static inline void golden_metrics(const struct jval *o, const char *key, const struct metric *m,
				  size_t n)
{
	const struct jval *a = jval_get(o, key);
	ck_assert_msg(jval_count(a) == 2 * n, "%s: count", key);
	for (size_t i = 0; i < n; i++) {
		int64_t id = 0, v = 0;
		ck_assert(jval_as_i64(jval_at(a, 2 * i), &id));
		ck_assert(jval_as_i64(jval_at(a, 2 * i + 1), &v));
		ck_assert_msg(id == m[i].field_id && v == m[i].v, "%s[%zu]", key, i);
	}
}

static inline void golden_bounds(const struct jval *o, const char *key, const struct bound *b,
				 size_t n)
{
	const struct jval *a = jval_get(o, key);
	ck_assert_msg(jval_count(a) == 2 * n, "%s: count", key);
	for (size_t i = 0; i < n; i++) {
		int64_t id = 0;
		ck_assert(jval_as_i64(jval_at(a, 2 * i), &id));
		ck_assert_msg(id == b[i].field_id, "%s[%zu]", key, i);
		golden_hex(jval_at(a, 2 * i + 1), key, true, b[i].b);
	}
}

static inline void golden_entry(const struct jval *o, const struct manifest_entry *e)
{
	const struct content_file *f = &e->file;
	golden_i64(o, "status", -1, e->status);
	golden_i64(o, "snapshot_id", SNAPSHOT_NONE, e->snapshot_id);
	golden_i64(o, "sequence_number", SEQ_NONE, e->seq);
	golden_i64(o, "file_sequence_number", SEQ_NONE, e->file_seq);
	golden_i64(o, "content", -1, f->content);
	golden_str(o, "file_path", f->path);
	struct strv format;
	ck_assert(jval_as_str(jval_get(o, "file_format"), &format));
	ck_assert(strv_ieq(format, f->format));
	const struct jval *tuple = jval_get(o, "partition");
	ck_assert_uint_eq(jval_count(tuple), f->partition.n);
	for (size_t i = 0; i < f->partition.n; i++)
		golden_hex(jval_at(tuple, i), "partition", !f->partition.v[i].null,
			   f->partition.v[i].b);
	golden_i64(o, "record_count", -1, f->record_count);
	golden_i64(o, "file_size_in_bytes", -1, f->file_size);
	golden_metrics(o, "column_sizes", f->column_sizes, f->n_column_sizes);
	golden_metrics(o, "value_counts", f->value_counts, f->n_value_counts);
	golden_metrics(o, "null_value_counts", f->null_counts, f->n_null_counts);
	golden_metrics(o, "nan_value_counts", f->nan_counts, f->n_nan_counts);
	golden_bounds(o, "lower_bounds", f->lower, f->n_lower);
	golden_bounds(o, "upper_bounds", f->upper, f->n_upper);
	golden_hex(jval_get(o, "key_metadata"), "key_metadata", f->has_key_metadata,
		   f->key_metadata);
	const struct jval *a = jval_get(o, "split_offsets");
	ck_assert_uint_eq(jval_count(a), f->n_split_offsets);
	for (size_t i = 0; i < f->n_split_offsets; i++) {
		int64_t v = 0;
		ck_assert(jval_as_i64(jval_at(a, i), &v) && v == f->split_offsets[i]);
	}
	a = jval_get(o, "equality_ids");
	ck_assert_uint_eq(jval_count(a), f->n_equality_ids);
	for (size_t i = 0; i < f->n_equality_ids; i++) {
		int64_t v = 0;
		ck_assert(jval_as_i64(jval_at(a, i), &v) && v == f->equality_ids[i]);
	}
	golden_i64(o, "sort_order_id", SORT_ORDER_NONE, f->sort_order_id);
	golden_i64(o, "first_row_id", ROW_ID_NONE, f->first_row_id);
	golden_str(o, "referenced_data_file", f->referenced_data_file);
	golden_i64(o, "content_offset", OFFSET_NONE, f->content_offset);
	golden_i64(o, "content_size_in_bytes", OFFSET_NONE, f->content_size);
}

#endif
