#include "proto/avro/manifest_write.h"

#include <stdio.h>

#include "proto/avro/avro_container.h"
#include "proto/avro/manifest_cols.h"
#include "proto/avro/manifest_list.h"

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the manifest exceeds the memory limit");
}

/* ---- header ---- */

static enum status write_header(struct avro_writer *w, const struct manifest_params *p,
				const struct manifest_cols *cols, struct buf *out, struct err *err)
{
	struct buf avro, iceberg;
	struct jwrite j;
	char spec_id[16], schema_id[16], version[16];
	buf_init(&avro, out->max);
	buf_init(&iceberg, out->max);
	jwrite_init(&j, &avro);
	avro_record_schema(&j, "manifest_entry", cols->cols, cols->n, p->format_version);
	jwrite_init(&j, &iceberg);
	avro_record_iceberg(&j, cols->cols, cols->n, p->format_version);
	snprintf(spec_id, sizeof spec_id, "%d", p->spec_id);
	snprintf(schema_id, sizeof schema_id, "%d", p->schema_id);
	snprintf(version, sizeof version, "%d", p->format_version);
	struct avro_meta meta[8] = {
		{STRV("avro.schema"), buf_strv(&avro)},
		{STRV("iceberg.schema"), buf_strv(&iceberg)},
		{STRV("schema"), p->schema},
		{STRV("schema-id"), strv_of(schema_id)},
		{STRV("partition-spec"), p->spec_fields},
		{STRV("partition-spec-id"), strv_of(spec_id)},
		{STRV("format-version"), strv_of(version)},
		{STRV("content"), p->content == MANIFEST_DATA ? STRV("data") : STRV("deletes")},
	};
	/* Version 1 knows no content. */
	size_t n = p->format_version == 1 ? 7 : 8;
	enum status st = avro_container_begin(w, out, p->codec, p->sync, meta, n, err);
	if (st == ST_OK && (!buf_ok(&avro) || !buf_ok(&iceberg)))
		st = no_memory(err);
	buf_fini(&avro);
	buf_fini(&iceberg);
	return st;
}

/* ---- the row ---- */

static enum status count(struct manifest_file *row, const struct manifest_entry *e, struct err *err)
{
	int32_t *files[] = {&row->existing_files, &row->added_files, &row->deleted_files};
	int64_t *records[] = {&row->existing_rows, &row->added_rows, &row->deleted_rows};
	if (*files[e->status] == INT32_MAX)
		return err_set(err, ST_LIMIT, "entries", "more than 2^31 - 1 files in a manifest");
	(*files[e->status])++;
	if (!add_i64(*records[e->status], e->file.record_count, records[e->status]))
		return err_set(err, ST_LIMIT, "record_count", "rows of a manifest pass 63 bits");
	/* Only live entries keep an old number alive. */
	if (e->status != ENTRY_DELETED && e->seq != SEQ_NONE &&
	    (row->min_seq == SEQ_NONE || e->seq < row->min_seq))
		row->min_seq = e->seq;
	return ST_OK;
}

/* Readers order UUIDs either as unsigned bytes or, in Java, as two signed numbers. Where both
 * orders would give other bounds no bounds are right for all, and one without bounds counts as "all
 * null": the row then goes without any summaries, and nothing is skipped. */
static bool uuid_orders_differ(const struct type *type, const struct value *v,
			       const struct bytes first)
{
	return type->kind == TYPE_UUID && first.p && v->b.n == 16 && first.n == 16 &&
	       ((v->b.p[0] ^ first.p[0]) & 0x80 || (v->b.p[8] ^ first.p[8]) & 0x80);
}

/* Zeros have a sign in the order of bounds but not in queries, so a bound of zero includes both. */
static struct bytes zero_bound(const struct type *type, const struct bytes b, bool upper)
{
	static const uint8_t zeros[2][8] = {{0, 0, 0, 0, 0, 0, 0, 0x80}, {0}};
	const struct value v = {.b = b};
	if (!b.p || (type->kind != TYPE_FLOAT && type->kind != TYPE_DOUBLE) ||
	    value_double(type, &v) != 0)
		return b;
	/* The sign is in the last byte of either width. */
	return (struct bytes){zeros[upper] + 8 - b.n, b.n};
}

static void summarise(struct manifest_file *row, const struct field *partition,
		      const struct tuple *t)
{
	for (size_t i = 0; i < row->n_partitions; i++) {
		struct partition_summary *s = &row->partitions[i];
		const struct type *type = partition[i].type;
		const struct value *v = &t->v[i];
		if (v->null) {
			s->contains_null = true;
			continue;
		}
		if (value_is_nan(type, v)) {
			s->contains_nan = true;
			continue;
		}
		if (!value_has_order(type))
			continue;
		if (uuid_orders_differ(type, v, s->lower)) {
			row->partitions = NULL;
			row->n_partitions = 0;
			return;
		}
		struct value lower = {.b = s->lower}, upper = {.b = s->upper};
		/* A bound without a pointer is none; the empty string is one. */
		struct bytes b = v->b.p ? v->b : strv_bytes(STRV(""));
		if (!s->lower.p || value_cmp(type, v, &lower) < 0)
			s->lower = zero_bound(type, b, false);
		if (!s->upper.p || value_cmp(type, v, &upper) > 0)
			s->upper = zero_bound(type, b, true);
	}
}

static enum status begin_row(const struct manifest_params *p, struct arena *a,
			     struct manifest_file *row, struct err *err)
{
	*row = manifest_file_empty();
	row->spec_id = p->spec_id;
	row->content = p->content;
	row->added_snapshot_id = p->snapshot_id;
	row->has_file_counts = row->has_row_counts = true;
	row->n_partitions = p->n_partition;
	row->partitions = arena_calloc(a, p->n_partition, sizeof *row->partitions);
	if (!row->partitions)
		return no_memory(err);
	for (size_t i = 0; i < p->n_partition; i++)
		row->partitions[i].has_contains_nan = true;
	return ST_OK;
}

/* ---- entries ---- */

static enum status internal(struct err *err, const char *field, const char *why)
{
	return err_set(err, ST_INTERNAL, field, "%s", why);
}

static enum status check_entry(const struct manifest_params *p, const struct manifest_entry *e,
			       struct err *err)
{
	const struct content_file *f = &e->file;
	uint32_t status = e->status;
	if (status > ENTRY_DELETED)
		return internal(err, "status", "no such status");
	enum status st = content_file_check(f, p->format_version, ST_INTERNAL, err);
	if (st != ST_OK)
		return st;
	if ((f->content == CONTENT_DATA) != (p->content == MANIFEST_DATA))
		return internal(err, "content", "the file belongs into the other kind of manifest");
	if (f->spec_id != p->spec_id)
		return internal(err, "partition", "the file has another spec than the manifest");
	if (f->partition.n != p->n_partition)
		return internal(err, "partition", "the tuple has another length than the spec");
	if (e->status == ENTRY_ADDED)
		return ST_OK;
	if (e->snapshot_id == SNAPSHOT_NONE)
		return internal(err, "snapshot_id", "only an added file may leave it out");
	if (p->format_version >= 2 && (e->seq == SEQ_NONE || e->seq < 0))
		return internal(err, "sequence_number", "only an added file may leave it out");
	if (p->format_version >= 2 && e->file_seq == SEQ_NONE)
		return internal(err, "file_sequence_number", "only an added file may leave it out");
	return ST_OK;
}

/* The entry as it is stored. */
static enum status stored_form(const struct manifest_params *p, const struct manifest_entry *e,
			       struct manifest_entry *ret_e, struct err *err)
{
	struct manifest_entry s = *e;
	if (e->status == ENTRY_ADDED) {
		/* Both are known only once the snapshot is published. */
		s.file_seq = SEQ_NONE;
		s.file.first_row_id = ROW_ID_NONE;
		if (p->format_version == 1 && s.snapshot_id == SNAPSHOT_NONE)
			s.snapshot_id = p->snapshot_id;
		if (p->format_version == 1 && s.snapshot_id == SNAPSHOT_NONE)
			return internal(err, "snapshot_id", "version 1 needs a snapshot id");
	} else if (s.file_seq == SEQ_UNKNOWN) {
		s.file_seq = SEQ_NONE;
	}
	*ret_e = s;
	return ST_OK;
}

static enum status write_entry(struct avro_writer *w, const struct manifest_params *p,
			       const struct manifest_cols *cols, const struct manifest_entry *e,
			       struct err *err)
{
	struct manifest_entry stored;
	enum status st = check_entry(p, e, err);
	if (st == ST_OK)
		st = stored_form(p, e, &stored, err);
	if (st != ST_OK)
		return st;
	const struct avro_col *bad =
		avro_record_put(&w->block, cols->cols, cols->n, p->format_version, &stored);
	if (bad && bad->kind == AVRO_VALUE)
		return err_set(err, ST_INTERNAL, "partition",
			       "the value of %.*s is none of its type", STRV_ARG(bad->label));
	if (bad)
		return internal(err, bad->name, "a required value is missing");
	return avro_container_datum(w, err);
}

static enum status check_params(const struct manifest_params *p, size_t n, struct err *err)
{
	ASSERT(p->format_version >= 1 && p->format_version <= 3);
	if (n == 0)
		return internal(err, "entries", "a manifest without entries is never written");
	if (p->format_version == 1 && p->content != MANIFEST_DATA)
		return internal(err, "content", "format version 1 has no delete manifests");
	return ST_OK;
}

enum status manifest_write(const struct manifest_params *params,
			   const struct manifest_entry *const *entries, size_t n, struct buf *out,
			   struct arena *a, struct manifest_file *ret_row, struct err *err)
{
	struct avro_writer w = {0};
	struct manifest_cols cols;
	struct manifest_file row;
	size_t start = out->n;
	enum status st = check_params(params, n, err);
	if (st != ST_OK)
		return st;
	st = begin_row(params, a, &row, err);
	if (st != ST_OK)
		return st;
	if (!manifest_cols_entry(params->partition, params->n_partition, a, &cols, NULL))
		return no_memory(err);
	st = write_header(&w, params, &cols, out, err);
	for (size_t i = 0; st == ST_OK && i < n; i++) {
		st = write_entry(&w, params, &cols, entries[i], err);
		if (st == ST_OK)
			st = count(&row, entries[i], err);
		if (st == ST_OK)
			summarise(&row, params->partition, &entries[i]->file.partition);
		else
			err_prefix(err, "entries[%zu]", i);
	}
	if (st == ST_OK)
		st = avro_container_end(&w, err);
	avro_container_fini(&w);
	if (st != ST_OK)
		return st;
	row.length = (int64_t)(out->n - start);
	if (params->format_version == 1)
		row.seq = row.min_seq = 0;
	*ret_row = row;
	return ST_OK;
}

enum status manifest_describe(const struct manifest_params *params,
			      const struct manifest_entry *const *entries, size_t n,
			      struct arena *a, struct manifest_file *ret_row, struct err *err)
{
	struct manifest_file row;
	enum status st = begin_row(params, a, &row, err);
	for (size_t i = 0; st == ST_OK && i < n; i++) {
		st = count(&row, entries[i], err);
		if (st == ST_OK)
			summarise(&row, params->partition, &entries[i]->file.partition);
	}
	if (st == ST_OK)
		*ret_row = row;
	return st;
}
