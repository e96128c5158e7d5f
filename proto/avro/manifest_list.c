#include "proto/avro/manifest_list.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/avro/avro_container.h"
#include "proto/avro/avro_prog.h"
#include "proto/avro/manifest_cols.h"

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the manifest list exceeds the memory limit");
}

struct manifest_file manifest_file_empty(void)
{
	return (struct manifest_file){
		.seq = SEQ_NONE,
		.min_seq = SEQ_NONE,
		.added_snapshot_id = SNAPSHOT_NONE,
		.first_row_id = ROW_ID_NONE,
	};
}

bool manifest_file_copy(struct arena *a, const struct manifest_file *row,
			struct manifest_file *ret_row)
{
	struct manifest_file c = *row;
	if (!arena_strv(a, row->path, &c.path))
		return false;
	if (row->has_key_metadata && !arena_bytes(a, row->key_metadata, &c.key_metadata))
		return false;
	if (row->partitions) {
		c.partitions = arena_calloc(a, row->n_partitions, sizeof *c.partitions);
		if (!c.partitions)
			return false;
	}
	for (size_t i = 0; i < row->n_partitions; i++) {
		struct partition_summary *s = &c.partitions[i];
		*s = row->partitions[i];
		if ((s->lower.p && !arena_bytes(a, s->lower, &s->lower)) ||
		    (s->upper.p && !arena_bytes(a, s->upper, &s->upper)))
			return false;
	}
	*ret_row = c;
	return true;
}

/* ---- writing ---- */

static enum status internal(struct err *err, const char *field, const char *why)
{
	return err_set(err, ST_INTERNAL, field, "%s", why);
}

static enum status write_header(struct avro_writer *w, const struct manifest_list_params *p,
				const struct manifest_cols *cols, struct buf *out, struct err *err)
{
	struct buf avro, iceberg;
	struct jwrite j;
	char snapshot[24], parent[24] = "null", seq[24], row_id[24], version[16];
	buf_init(&avro, out->max);
	buf_init(&iceberg, out->max);
	jwrite_init(&j, &avro);
	avro_record_schema(&j, "manifest_file", cols->cols, cols->n, p->format_version);
	jwrite_init(&j, &iceberg);
	avro_record_iceberg(&j, cols->cols, cols->n, p->format_version);
	snprintf(snapshot, sizeof snapshot, "%" PRId64, p->snapshot_id);
	if (p->parent_snapshot_id != SNAPSHOT_NONE)
		snprintf(parent, sizeof parent, "%" PRId64, p->parent_snapshot_id);
	snprintf(seq, sizeof seq, "%" PRId64, p->seq);
	snprintf(row_id, sizeof row_id, "%" PRId64, p->first_row_id);
	snprintf(version, sizeof version, "%d", p->format_version);
	struct avro_meta meta[7] = {
		{STRV("avro.schema"), buf_strv(&avro)},
		{STRV("iceberg.schema"), buf_strv(&iceberg)},
		{STRV("snapshot-id"), strv_of(snapshot)},
		{STRV("parent-snapshot-id"), strv_of(parent)},
		{STRV("format-version"), strv_of(version)},
		/* From here on by version: each knows one more. */
		{STRV("sequence-number"), strv_of(seq)},
		{STRV("first-row-id"), strv_of(row_id)},
	};
	size_t n = 4 + (size_t)p->format_version;
	enum status st = avro_container_begin(w, out, p->codec, p->sync, meta, n, err);
	if (st == ST_OK && (!buf_ok(&avro) || !buf_ok(&iceberg)))
		st = no_memory(err);
	buf_fini(&avro);
	buf_fini(&iceberg);
	return st;
}

/* The row as it is stored: the list's numbers where the row has none. */
static enum status stored_form(const struct manifest_list_params *p,
			       const struct manifest_file *row, struct manifest_file *ret_row,
			       struct err *err)
{
	struct manifest_file s = *row;
	bool data = s.content == MANIFEST_DATA;
	if (s.added_snapshot_id == SNAPSHOT_NONE)
		s.added_snapshot_id = p->snapshot_id;
	if (s.seq == SEQ_NONE) {
		if (s.added_snapshot_id != p->snapshot_id)
			return internal(err, "sequence_number",
					"a manifest of another snapshot must have its number");
		s.seq = p->seq;
	}
	/* No live entry has a number of its own: all have the manifest's. */
	if (s.min_seq == SEQ_NONE)
		s.min_seq = s.seq;
	if (p->format_version == 1 && !data)
		return internal(err, "content", "format version 1 has no delete manifests");
	if (p->format_version >= 2 && (!s.has_file_counts || !s.has_row_counts))
		return internal(err, "added_files_count", "from version 2 on counts are required");
	if (p->format_version >= 3 && data != (s.first_row_id != ROW_ID_NONE))
		return internal(err, "first_row_id",
				data ? "a data manifest must have one"
				     : "a delete manifest may not have one");
	if (p->format_version < 3 && s.first_row_id != ROW_ID_NONE)
		return internal(err, "first_row_id", "there are no row ids before version 3");
	*ret_row = s;
	return ST_OK;
}

enum status manifest_list_write(const struct manifest_list_params *params,
				const struct manifest_file *rows, size_t n, struct buf *out,
				struct err *err)
{
	ASSERT(params->format_version >= 1 && params->format_version <= 3);
	struct avro_writer w;
	struct manifest_cols cols = manifest_cols_list(params->format_version);
	enum status st = write_header(&w, params, &cols, out, err);
	for (size_t i = 0; st == ST_OK && i < n; i++) {
		struct manifest_file row;
		st = stored_form(params, &rows[i], &row, err);
		const struct avro_col *bad = NULL;
		if (st == ST_OK)
			bad = avro_record_put(&w.block, cols.cols, cols.n, params->format_version,
					      &row);
		if (bad)
			st = internal(err, bad->name, "a required value is missing");
		if (st == ST_OK)
			st = avro_container_datum(&w, err);
		if (st != ST_OK)
			err_prefix(err, "manifests[%zu]", i);
	}
	if (st == ST_OK)
		st = avro_container_end(&w, err);
	avro_container_fini(&w);
	return st;
}

/* ---- reading ---- */

static enum status header_i64(const struct avro_container *c, const char *key, int64_t absent,
			      int64_t *ret_v, struct err *err)
{
	struct strv text;
	int64_t v = absent;
	if (avro_container_meta(c, strv_of(key), &text) && !strv_eq(text, STRV("null")) &&
	    !strv_i64(text, &v))
		return err_set(err, ST_CORRUPT, key, "the header value is no number");
	*ret_v = v;
	return ST_OK;
}

static enum status read_header(const struct avro_container *c, struct manifest_list *list,
			       struct err *err)
{
	int64_t version = 0;
	enum status st = header_i64(c, "format-version", 0, &version, err);
	if (st == ST_OK)
		st = header_i64(c, "snapshot-id", SNAPSHOT_NONE, &list->snapshot_id, err);
	if (st == ST_OK)
		st = header_i64(c, "parent-snapshot-id", SNAPSHOT_NONE, &list->parent_snapshot_id,
				err);
	if (st == ST_OK)
		st = header_i64(c, "sequence-number", SEQ_NONE, &list->seq, err);
	if (st == ST_OK)
		st = header_i64(c, "first-row-id", ROW_ID_NONE, &list->first_row_id, err);
	if (st == ST_OK && (version < 0 || version > 3))
		st = err_set(err, ST_UNSUPPORTED, "format-version",
			     "manifest list of format version %lld", (long long)version);
	list->format_version = (int)version;
	return st;
}

/* Each group of counts is there as a whole or not at all. */
static enum status finish_counts(struct manifest_file *row, struct err *err)
{
	int32_t *files[] = {&row->added_files, &row->existing_files, &row->deleted_files};
	int64_t *records[] = {&row->added_rows, &row->existing_rows, &row->deleted_rows};
	for (size_t i = 0; i < 3; i++) {
		if (*files[i] == INT32_MIN)
			row->has_file_counts = false;
		else if (*files[i] < 0)
			return err_set(err, ST_CORRUPT, "added_files_count", "a count is negative");
		if (*records[i] == INT64_MIN)
			row->has_row_counts = false;
		else if (*records[i] < 0)
			return err_set(err, ST_CORRUPT, "added_rows_count", "a count is negative");
	}
	for (size_t i = 0; i < 3; i++) {
		if (!row->has_file_counts)
			*files[i] = 0;
		if (!row->has_row_counts)
			*records[i] = 0;
	}
	return ST_OK;
}

static enum status finish_row(struct manifest_file *row, struct err *err)
{
	uint32_t content = row->content;
	if (content > MANIFEST_DELETES)
		return err_set(err, ST_CORRUPT, "content", "%u is not a content", content);
	if (row->path.n == 0)
		return err_set(err, ST_CORRUPT, "manifest_path", "the path is empty");
	if (row->length < 0)
		return err_set(err, ST_CORRUPT, "manifest_length", "the length is negative");
	if (row->seq < 0)
		return err_set(err, ST_CORRUPT, "sequence_number", "the number is negative");
	if (row->min_seq < 0)
		return err_set(err, ST_CORRUPT, "min_sequence_number", "the number is negative");
	/* Some writers leave anything in the column of a delete manifest; readers do not look. */
	if (row->content == MANIFEST_DELETES)
		row->first_row_id = ROW_ID_NONE;
	if (row->first_row_id != ROW_ID_NONE && row->first_row_id < 0)
		return err_set(err, ST_CORRUPT, "first_row_id", "the row id is negative");
	return finish_counts(row, err);
}

static enum status read_block(const struct avro_prog *prog, int64_t count, struct bytes data,
			      struct arena *a, struct manifest_list *list, size_t cap,
			      struct err *err)
{
	struct avro_in in = avro_bin_in(data);
	size_t items = data.n;
	struct manifest_file empty = manifest_file_empty();
	/* What absent columns mean: version 1. */
	empty.seq = empty.min_seq = 0;
	empty.added_files = empty.existing_files = empty.deleted_files = INT32_MIN;
	empty.added_rows = empty.existing_rows = empty.deleted_rows = INT64_MIN;
	for (int64_t i = 0; i < count; i++) {
		if (list->n == cap)
			return err_set(err, ST_CORRUPT, "", "more rows than the blocks count");
		struct manifest_file *row = &list->rows[list->n];
		*row = empty;
		enum status st = avro_prog_run(prog, &in, row, &items, a, err);
		if (st == ST_OK)
			st = finish_row(row, err);
		if (st != ST_OK) {
			err_prefix(err, "manifests[%zu]", list->n);
			return st;
		}
		list->n++;
	}
	return avro_bin_left(&in) ? err_set(err, ST_CORRUPT, "", "bytes are left over in a block")
				  : ST_OK;
}

enum status manifest_list_read(struct bytes file, struct arena *a, struct manifest_list *ret_list,
			       struct err *err)
{
	struct avro_container c;
	struct manifest_list list = {0};
	struct avro_prog *prog = NULL;
	struct strv schema = {"", 0};
	size_t cap = 0;
	/* The columns of the newest version are those of all. */
	struct manifest_cols cols = manifest_cols_list(3);
	enum status st = avro_container_open(file, a, &c, err);
	if (st == ST_OK)
		st = read_header(&c, &list, err);
	if (st != ST_OK)
		return st;
	(void)!avro_container_meta(&c, STRV("avro.schema"), &schema);
	st = avro_prog_compile(schema, cols.cols, cols.n, a, &prog, err);
	if (st == ST_OK)
		st = avro_container_count(&c, &cap, err);
	if (st != ST_OK)
		return st;
	list.rows = arena_calloc(a, cap, sizeof *list.rows);
	if (!list.rows)
		return no_memory(err);
	for (bool more = true; st == ST_OK;) {
		int64_t count = 0;
		struct bytes data;
		st = avro_container_next(&c, a, &more, &count, &data, err);
		if (st == ST_OK && !more)
			break;
		if (st == ST_OK)
			st = read_block(prog, count, data, a, &list, cap, err);
	}
	if (st == ST_OK)
		*ret_list = list;
	return st;
}
