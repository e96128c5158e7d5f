/* Test tool around manifests.
 *
 *   avro_tool dump LIST            prints a manifest list and all its entries as JSON, with the
 * names and forms of tests/golden/manifests/v*.json avro_tool rewrite LIST FOLDER  writes the same
 * list and manifests with our encoder into FOLDER
 *
 * Manifests are taken from the list's own folder by the last part of their path. The tuple's types
 * come from the schema and spec inside each manifest. */
#include <stdio.h>
#include <stdlib.h>

#include "proto/avro/avro_container.h"
#include "proto/avro/manifest_list.h"
#include "proto/avro/manifest_write.h"
#include "proto/base/digest.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/partition.h"

#define LIMIT ((size_t)1 << 30)

static struct arena arena;
static struct err err;

static void die(const char *what)
{
	fprintf(stderr, "avro_tool: %s: %s: %s: %s\n", what, status_info(err.st)->name, err.field,
		err.msg);
	exit(1);
}

static void need(enum status st, const char *what)
{
	if (st != ST_OK)
		die(what);
}

static struct bytes load(const char *path)
{
	struct buf b;
	struct bytes out = {NULL, 0};
	char chunk[65536];
	FILE *f = fopen(path, "rb");
	if (!f)
		die(path);
	buf_init(&b, LIMIT);
	for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
		buf_put(&b, chunk, n);
	fclose(f);
	if (!buf_ok(&b) || !arena_bytes(&arena, buf_bytes(&b), &out))
		die(path);
	buf_fini(&b);
	return out;
}

static void store(const char *path, const struct buf *b)
{
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(b->p, 1, b->n, f) != b->n || fclose(f) != 0)
		die(path);
}

static struct strv last_part(struct strv path)
{
	size_t at = path.n;
	while (at && path.p[at - 1] != '/')
		at--;
	return strv_sub(path, at, path.n);
}

/* FOLDER of `list` (or `folder`) and the last part of a manifest's path. */
static const char *beside(const char *folder, struct strv path)
{
	struct strv name = last_part(path);
	const char *out = arena_printf(&arena, "%s/%.*s", folder, STRV_ARG(name));
	if (!out)
		die("memory");
	return out;
}

static const char *folder_of(const char *list)
{
	struct strv path = strv_of(list);
	size_t n = path.n - last_part(path).n;
	const char *out = arena_printf(&arena, "%.*s.", (int)n, list);
	if (!out)
		die("memory");
	return out;
}

static struct manifest *read_manifest(const char *path, const struct manifest_file *row)
{
	struct bytes file = load(path);
	struct avro_container c;
	struct strv schema_json = {NULL, 0}, spec_json = {NULL, 0};
	struct jdoc *schema_doc, *spec_doc;
	struct schema schema;
	struct partition_spec spec;
	struct field *partition;
	struct manifest *m;
	need(avro_container_open(file, &arena, &c, &err), path);
	if (!avro_container_meta(&c, STRV("schema"), &schema_json) ||
	    !avro_container_meta(&c, STRV("partition-spec"), &spec_json))
		die("the manifest lacks schema or spec");
	need(jdoc_parse(strv_bytes(schema_json), ST_CORRUPT, &schema_doc, &err), "schema");
	need(jdoc_parse(strv_bytes(spec_json), ST_CORRUPT, &spec_doc, &err), "partition-spec");
	need(schema_parse(jdoc_root(schema_doc), ST_CORRUPT, &arena, &schema, &err), "schema");
	need(partition_parse_fields(jdoc_root(spec_doc), ST_CORRUPT, &arena, &spec, &err),
	     "partition-spec");
	need(partition_type(&spec, &schema, &arena, &partition, &err), "partition-spec");
	jdoc_free(schema_doc);
	jdoc_free(spec_doc);
	need(manifest_read(file, row, partition, spec.n, LIMIT, &m, &err), path);
	return m;
}

/* ---- dump ---- */

static void number(struct jwrite *w, const char *key, int64_t v, int64_t absent)
{
	jwrite_key(w, key);
	if (v == absent)
		jwrite_null(w);
	else
		jwrite_i64(w, v);
}

static void hex(struct jwrite *w, bool has, struct bytes b)
{
	struct buf text;
	if (!has) {
		jwrite_null(w);
		return;
	}
	buf_init(&text, LIMIT);
	digest_hex(&text, b);
	jwrite_str(w, buf_strv(&text));
	buf_fini(&text);
}

static void metrics(struct jwrite *w, const char *key, const struct metric *m, size_t n)
{
	jwrite_key(w, key);
	jwrite_array(w);
	for (size_t i = 0; i < n; i++) {
		jwrite_i64(w, m[i].field_id);
		jwrite_i64(w, m[i].v);
	}
	jwrite_end_array(w);
}

static void bounds(struct jwrite *w, const char *key, const struct bound *b, size_t n)
{
	jwrite_key(w, key);
	jwrite_array(w);
	for (size_t i = 0; i < n; i++) {
		jwrite_i64(w, b[i].field_id);
		hex(w, true, b[i].b);
	}
	jwrite_end_array(w);
}

static void dump_file(struct jwrite *w, const struct content_file *f)
{
	number(w, "content", f->content, INT64_MIN);
	jwrite_kstr(w, "file_path", f->path);
	jwrite_kstr(w, "file_format", f->format);
	jwrite_key(w, "partition");
	jwrite_array(w);
	for (size_t i = 0; i < f->partition.n; i++)
		hex(w, !f->partition.v[i].null, f->partition.v[i].b);
	jwrite_end_array(w);
	number(w, "record_count", f->record_count, INT64_MIN);
	number(w, "file_size_in_bytes", f->file_size, INT64_MIN);
	metrics(w, "column_sizes", f->column_sizes, f->n_column_sizes);
	metrics(w, "value_counts", f->value_counts, f->n_value_counts);
	metrics(w, "null_value_counts", f->null_counts, f->n_null_counts);
	metrics(w, "nan_value_counts", f->nan_counts, f->n_nan_counts);
	bounds(w, "lower_bounds", f->lower, f->n_lower);
	bounds(w, "upper_bounds", f->upper, f->n_upper);
	jwrite_key(w, "key_metadata");
	hex(w, f->has_key_metadata, f->key_metadata);
	jwrite_key(w, "split_offsets");
	jwrite_array(w);
	for (size_t i = 0; i < f->n_split_offsets; i++)
		jwrite_i64(w, f->split_offsets[i]);
	jwrite_end_array(w);
	jwrite_key(w, "equality_ids");
	jwrite_array(w);
	for (size_t i = 0; i < f->n_equality_ids; i++)
		jwrite_i64(w, f->equality_ids[i]);
	jwrite_end_array(w);
	number(w, "sort_order_id", f->sort_order_id, SORT_ORDER_NONE);
	number(w, "first_row_id", f->first_row_id, ROW_ID_NONE);
	jwrite_key(w, "referenced_data_file");
	if (f->referenced_data_file.p)
		jwrite_str(w, f->referenced_data_file);
	else
		jwrite_null(w);
	number(w, "content_offset", f->content_offset, OFFSET_NONE);
	number(w, "content_size_in_bytes", f->content_size, OFFSET_NONE);
}

static void dump_summaries(struct jwrite *w, const struct manifest_file *r)
{
	jwrite_key(w, "partitions");
	if (!r->partitions) {
		jwrite_null(w);
		return;
	}
	jwrite_array(w);
	for (size_t i = 0; i < r->n_partitions; i++) {
		const struct partition_summary *s = &r->partitions[i];
		jwrite_object(w);
		jwrite_kbool(w, "contains_null", s->contains_null);
		jwrite_key(w, "contains_nan");
		if (s->has_contains_nan)
			jwrite_bool(w, s->contains_nan);
		else
			jwrite_null(w);
		jwrite_key(w, "lower_bound");
		hex(w, s->lower.p, s->lower);
		jwrite_key(w, "upper_bound");
		hex(w, s->upper.p, s->upper);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
}

static void dump_row(struct jwrite *w, const struct manifest_file *r, const struct manifest *m)
{
	jwrite_object(w);
	jwrite_kstr(w, "manifest_path", r->path);
	number(w, "manifest_length", r->length, INT64_MIN);
	number(w, "partition_spec_id", r->spec_id, INT64_MIN);
	number(w, "content", r->content, INT64_MIN);
	number(w, "sequence_number", r->seq, SEQ_NONE);
	number(w, "min_sequence_number", r->min_seq, SEQ_NONE);
	number(w, "added_snapshot_id", r->added_snapshot_id, SNAPSHOT_NONE);
	number(w, "added_files_count", r->added_files, INT64_MIN);
	number(w, "existing_files_count", r->existing_files, INT64_MIN);
	number(w, "deleted_files_count", r->deleted_files, INT64_MIN);
	number(w, "added_rows_count", r->added_rows, INT64_MIN);
	number(w, "existing_rows_count", r->existing_rows, INT64_MIN);
	number(w, "deleted_rows_count", r->deleted_rows, INT64_MIN);
	dump_summaries(w, r);
	jwrite_key(w, "key_metadata");
	hex(w, r->has_key_metadata, r->key_metadata);
	number(w, "first_row_id", r->first_row_id, ROW_ID_NONE);
	jwrite_key(w, "entries");
	jwrite_array(w);
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		jwrite_object(w);
		number(w, "status", e->status, INT64_MIN);
		number(w, "snapshot_id", e->snapshot_id, SNAPSHOT_NONE);
		number(w, "sequence_number", e->seq, SEQ_NONE);
		number(w, "file_sequence_number", e->file_seq, SEQ_UNKNOWN);
		dump_file(w, &e->file);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	jwrite_end_object(w);
}

static void dump(const char *path, const struct manifest_list *list)
{
	struct buf out;
	struct jwrite w;
	const char *folder = folder_of(path);
	buf_init(&out, LIMIT);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	number(&w, "format-version", list->format_version, 0);
	number(&w, "snapshot-id", list->snapshot_id, SNAPSHOT_NONE);
	number(&w, "parent-snapshot-id", list->parent_snapshot_id, SNAPSHOT_NONE);
	number(&w, "sequence-number", list->seq, SEQ_NONE);
	number(&w, "first-row-id", list->first_row_id, ROW_ID_NONE);
	jwrite_key(&w, "rows");
	jwrite_array(&w);
	for (size_t i = 0; i < list->n; i++) {
		const struct manifest_file *r = &list->rows[i];
		struct manifest *m = read_manifest(beside(folder, r->path), r);
		dump_row(&w, r, m);
		manifest_unref(m);
	}
	jwrite_end_array(&w);
	jwrite_end_object(&w);
	if (!buf_ok(&out))
		die("memory");
	fwrite(out.p, 1, out.n, stdout);
	buf_fini(&out);
}

/* ---- rewrite ---- */

/* The entries without what they inherited. */
static const struct manifest_entry *const *raw(const struct manifest *m,
					       const struct manifest_file *row)
{
	const struct manifest_entry **list = arena_calloc(&arena, m->n, sizeof(void *));
	struct manifest_entry *e = arena_calloc(&arena, m->n, sizeof *e);
	if (!list || !e)
		die("memory");
	for (size_t i = 0; i < m->n; i++) {
		e[i] = m->entries[i];
		if (e[i].status == ENTRY_ADDED && e[i].seq == row->seq)
			e[i].seq = SEQ_NONE;
		list[i] = &e[i];
	}
	return list;
}

static void rewrite(const char *path, const char *to, struct manifest_list *list)
{
	const char *folder = folder_of(path);
	struct buf out;
	int version = list->format_version;
	buf_init(&out, LIMIT);
	for (size_t i = 0; i < list->n; i++) {
		struct manifest_file *r = &list->rows[i], made;
		struct manifest *m = read_manifest(beside(folder, r->path), r);
		struct manifest_params p = {
			.format_version = version,
			.content = m->content,
			.schema = m->schema,
			.schema_id = m->schema_id == SCHEMA_ID_NONE ? 0 : m->schema_id,
			.spec_id = m->spec_id,
			.spec_fields = m->spec_fields,
			.partition = m->partition,
			.n_partition = m->n_partition,
			.snapshot_id = r->added_snapshot_id,
			.codec = i % 2 ? CODEC_NULL : CODEC_DEFLATE,
		};
		digest_random(p.sync, sizeof p.sync);
		buf_clear(&out);
		need(manifest_write(&p, raw(m, r), m->n, &out, &arena, &made, &err), "manifest");
		made.path = strv_of(beside(to, r->path));
		made.first_row_id = r->first_row_id;
		if (r->seq != list->seq)
			made.seq = r->seq;
		/* Bounds point into the manifest's memory. */
		if (!manifest_file_copy(&arena, &made, r))
			die("memory");
		store(made.path.p, &out);
		manifest_unref(m);
	}
	struct manifest_list_params p = {
		.format_version = version,
		.snapshot_id = list->snapshot_id,
		.parent_snapshot_id = list->parent_snapshot_id,
		.seq = list->seq,
		.first_row_id = list->first_row_id,
		.codec = CODEC_DEFLATE,
	};
	digest_random(p.sync, sizeof p.sync);
	buf_clear(&out);
	need(manifest_list_write(&p, list->rows, list->n, &out, &err), "manifest list");
	store(beside(to, strv_of(path)), &out);
	buf_fini(&out);
}

int main(int argc, char **argv)
{
	struct manifest_list list;
	if (argc < 3) {
		fprintf(stderr, "usage: avro_tool dump LIST | rewrite LIST FOLDER\n");
		return 2;
	}
	arena_init(&arena, LIMIT);
	need(manifest_list_read(load(argv[2]), &arena, &list, &err), argv[2]);
	if (strcmp(argv[1], "dump") == 0)
		dump(argv[2], &list);
	else if (strcmp(argv[1], "rewrite") == 0 && argc == 4)
		rewrite(argv[2], argv[3], &list);
	arena_fini(&arena);
	return 0;
}
