#include "daemon/commit/intake/check.h"

#include "daemon/commit/intake/colmetrics.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

static bool is_local(struct strv p)
{
	return strv_starts(p, STRV("file:")) || strv_starts(p, STRV("/"));
}

/* A local path without its scheme; other schemes stay, their keys are their text. */
static struct strv bare(struct strv p)
{
	if (!strv_starts(p, STRV("file:")))
		return p;
	p = strv_sub(p, 5, p.n);
	size_t i = 0;
	while (i < p.n && p.p[i] == '/')
		i++;
	return i ? strv_sub(p, i - 1, p.n) : p;
}

static struct strv without_slash(struct strv root)
{
	while (root.n > 1 && root.p[root.n - 1] == '/')
		root.n--;
	return root;
}

static bool beneath(struct strv path, struct strv root)
{
	return root.n > 0 && path.n > root.n + 1 && strv_starts(path, root) &&
	       path.p[root.n] == '/';
}

static bool has_dots(struct strv p)
{
	size_t from = 0;
	for (size_t i = 0; i <= p.n; i++) {
		if (i < p.n && p.p[i] != '/')
			continue;
		struct strv part = strv_sub(p, from, i);
		if (strv_eq(part, STRV("..")) || strv_eq(part, STRV(".")))
			return true;
		from = i + 1;
	}
	return false;
}

static bool has_empty_part(struct strv p)
{
	for (size_t i = 1; i < p.n; i++)
		if (p.p[i] == '/' && p.p[i - 1] == '/')
			return true;
	return false;
}

/* One local file has many spellings ("file:/a/b", "file:///a/b", "/a//b"), and under two of them
 * its rows would count twice. So a new file has one: its root letter by letter, then no empty
 * part. The path itself is never rewritten. */
enum status check_path(const struct metadata *m, struct strv path, struct err *err)
{
	if (path.n == 0)
		return err_set(err, ST_BAD_REQUEST, "path", "the path is empty");
	struct strv data = without_slash(metadata_property(m, "write.data.path")),
		    root = without_slash(metadata_location(m));
	bool in_data = data.p && beneath(bare(path), bare(data)),
	     in_table = beneath(bare(path), bare(root));
	if ((!in_data && !in_table) || has_dots(path))
		return err_set(err, ST_PATH_OUTSIDE, "path",
			       "the path is not beneath the table's location or write.data.path");
	if (!in_table || (in_data && bare(data).n > bare(root).n))
		root = data;
	if (!beneath(path, root) ||
	    (is_local(path) && has_empty_part(strv_sub(path, root.n, path.n))))
		return err_set(err, ST_PATH_OUTSIDE, "path",
			       "the path is another spelling of one that begins with %.*s/",
			       STRV_ARG(strv_sub(root, 0, root.n < 120 ? root.n : 120)));
	return ST_OK;
}

/* The value of one partition field. A file that was written under an older schema may hold the
 * narrower value of a column that has been promoted since: `wrote` is the type that the file's
 * schema gives, `now` the table's. */
static enum status check_value(const struct transform *t, const struct type *wrote,
			       const struct type *now, struct bytes b, struct arena *a,
			       struct value *ret_v, struct err *err)
{
	struct value v;
	bool widened = wrote->kind != now->kind && wrote->kind != TYPE_UNKNOWN;
	enum status st = value_read(widened ? wrote : now, b, false, ST_TUPLE_MISMATCH, a, &v, err);
	if (st == ST_OK && widened)
		st = value_read(now, v.b, true, ST_TUPLE_MISMATCH, a, &v, err);
	if (st != ST_OK)
		return st;
	if (!transform_gives(t, now, &v))
		return err_set(err, ST_TUPLE_MISMATCH, "", "is no result of %.*s",
			       STRV_ARG(t->text));
	/* The request goes with its answer, the file stays. */
	return value_copy(a, &v, ret_v) ? ST_OK : full(err);
}

/* s: the schema that the file was written with. */
static enum status check_tuple(const struct metadata *m, const struct schema *s, int32_t spec_id,
			       const struct rpc_partition_value *in, size_t n, struct arena *a,
			       struct content_file *f, struct err *err)
{
	const struct partition_spec *spec = metadata_spec_by_id(m, spec_id);
	if (!spec)
		return err_set(err, ST_SPEC_UNKNOWN, "spec_id",
			       "partition spec %d is not in the table", spec_id);
	for (size_t i = 0; i < spec->n; i++)
		if (spec->fields[i].transform.kind == TRANSFORM_UNKNOWN)
			return err_set(err, ST_UNSUPPORTED, "spec_id",
				       "partition spec %d has an unknown transform", spec_id);
	if (n != spec->n)
		return err_set(err, ST_TUPLE_MISMATCH, "partition",
			       "%zu values for a spec of %zu fields", n, spec->n);
	struct field *types, *written;
	enum status st = partition_type(spec, metadata_schema(m), a, &types, err);
	if (st == ST_OK)
		st = partition_type(spec, s, a, &written, err);
	if (st != ST_OK)
		return st;
	f->partition.n = spec->n;
	f->partition.v = arena_calloc(a, spec->n ? spec->n : 1, sizeof *f->partition.v);
	if (!f->partition.v)
		return full(err);
	for (size_t i = 0; i < spec->n; i++) {
		const struct rpc_partition_value *v = &in[i];
		if (v->field_id != spec->fields[i].field_id) {
			st = err_set(err, ST_TUPLE_MISMATCH, "field_id",
				     "the spec's field here is %d, not %d",
				     spec->fields[i].field_id, v->field_id);
		} else if (!v->has_value || spec->fields[i].transform.kind == TRANSFORM_VOID) {
			if (v->has_value)
				st = err_set(err, ST_TUPLE_MISMATCH, "value",
					     "a void field is always null");
			f->partition.v[i] = VALUE_NULL;
		} else {
			st = check_value(&spec->fields[i].transform, written[i].type, types[i].type,
					 v->value, a, &f->partition.v[i], err);
		}
		if (st != ST_OK) {
			err_prefix(err, "partition[%zu]", i);
			return st;
		}
	}
	return ST_OK;
}

static enum status check_counts(const struct metadata *m, const struct rpc_data_file *in,
				struct err *err)
{
	if (in->record_count <= 0)
		return err_set(err, ST_BAD_REQUEST, "record_count", "must be positive");
	if (in->file_size <= 0)
		return err_set(err, ST_BAD_REQUEST, "file_size", "must be positive");
	if (in->new_row_count < 0 || in->new_row_count > in->record_count)
		return err_set(err, ST_ROW_IDS, "new_row_count",
			       "must lie between 0 and record_count");
	if (in->updated_row_count < 0 || in->updated_row_count > in->record_count)
		return err_set(err, ST_ROW_IDS, "updated_row_count",
			       "must lie between 0 and record_count");
	if (!in->has_row_ids &&
	    (in->new_row_count != in->record_count || in->updated_row_count > 0))
		return err_set(err, ST_ROW_IDS, "new_row_count",
			       "without the column _row_id every row is new");
	if (in->has_row_ids && in->new_row_count + in->updated_row_count > in->record_count)
		return err_set(err, ST_ROW_IDS, "updated_row_count",
			       "new and updated rows exceed record_count");
	if (in->has_row_ids && metadata_format_version(m) < 3)
		return err_set(err, ST_ROW_IDS, "has_row_ids", "row ids need format version 3");
	for (size_t i = 0; i < in->n_split_offsets; i++)
		if (in->split_offsets[i] < 0 || in->split_offsets[i] >= in->file_size ||
		    (i && in->split_offsets[i] <= in->split_offsets[i - 1]))
			return err_set(err, ST_BAD_REQUEST, "split_offsets",
				       "must rise and lie inside the file");
	return ST_OK;
}

/* A known format in capitals, as the reference implementation stores it; false for others. */
static bool format_of(struct strv text, struct strv *ret_format)
{
	static const char *const known[] = {"PARQUET", "ORC", "AVRO"};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strv_ieq(text, strv_of(known[i]))) {
			*ret_format = strv_of(known[i]);
			return true;
		}
	return false;
}

enum status check_data_file(const struct metadata *m, const struct rpc_data_file *in,
			    struct arena *a, struct content_file *ret_f, struct err *err)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_DATA;
	f.spec_id = in->spec_id;
	f.record_count = in->record_count;
	f.file_size = in->file_size;
	if (metadata_encryption_key_id(m).p)
		return err_set(err, ST_ENCRYPTED, "", "the table is encrypted");
	enum status st = check_path(m, in->path, err);
	if (st != ST_OK)
		return st;
	if (!format_of(in->format, &f.format))
		return err_set(err, ST_UNSUPPORTED, "format", "must be PARQUET, ORC or AVRO");
	const struct schema *s = metadata_schema_by_id(m, in->schema_id);
	if (!s)
		return err_set(err, ST_SCHEMA_UNKNOWN, "schema_id", "schema %d is not in the table",
			       in->schema_id);
	st = check_counts(m, in, err);
	if (st == ST_OK)
		st = check_tuple(m, s, in->spec_id, in->partition, in->n_partition, a, &f, err);
	if (st == ST_OK)
		st = colmetrics_check(s, in, a, &f, err);
	if (st != ST_OK)
		return st;
	if (in->has_sort_order_id) {
		if (!metadata_sort_order_by_id(m, in->sort_order_id))
			return err_set(err, ST_BAD_REQUEST, "sort_order_id",
				       "sort order %d is not in the table", in->sort_order_id);
		f.sort_order_id = in->sort_order_id;
	}
	f.n_split_offsets = in->n_split_offsets;
	f.split_offsets = arena_calloc(a, in->n_split_offsets ? in->n_split_offsets : 1,
				       sizeof *f.split_offsets);
	if (!f.split_offsets || !arena_strv(a, in->path, &f.path) ||
	    !arena_strv(a, f.format, &f.format))
		return full(err);
	if (in->n_split_offsets)
		memcpy(f.split_offsets, in->split_offsets,
		       in->n_split_offsets * sizeof *f.split_offsets);
	*ret_f = f;
	return ST_OK;
}

enum status check_delete_file(const struct metadata *m, const struct rpc_delete_file *in,
			      struct arena *a, struct content_file *ret_f, struct err *err)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_POSITION_DELETES;
	f.spec_id = in->spec_id;
	f.record_count = in->record_count;
	f.file_size = in->file_size;
	if (metadata_encryption_key_id(m).p)
		return err_set(err, ST_ENCRYPTED, "", "the table is encrypted");
	enum status st = check_path(m, in->path, err);
	if (st != ST_OK)
		return st;
	if (!format_of(in->format, &f.format))
		return err_set(err, ST_UNSUPPORTED, "format", "must be PARQUET, ORC or AVRO");
	if (in->record_count <= 0)
		return err_set(err, ST_BAD_REQUEST, "record_count", "must be positive");
	if (in->file_size <= 0)
		return err_set(err, ST_BAD_REQUEST, "file_size", "must be positive");
	const struct rpc_data_file metrics = {
		.column_sizes = in->column_sizes,
		.n_column_sizes = in->n_column_sizes,
		.value_counts = in->value_counts,
		.n_value_counts = in->n_value_counts,
		.null_counts = in->null_counts,
		.n_null_counts = in->n_null_counts,
		.lower_bounds = in->lower_bounds,
		.n_lower_bounds = in->n_lower_bounds,
		.upper_bounds = in->upper_bounds,
		.n_upper_bounds = in->n_upper_bounds,
	};
	st = check_tuple(m, metadata_schema(m), in->spec_id, in->partition, in->n_partition, a, &f,
			 err);
	if (st == ST_OK)
		st = colmetrics_check(NULL, &metrics, a, &f, err);
	if (st != ST_OK)
		return st;
	if (!arena_strv(a, in->path, &f.path) || !arena_strv(a, f.format, &f.format) ||
	    (in->n_data_files == 1 && !arena_strv(a, in->data_files[0], &f.referenced_data_file)))
		return full(err);
	*ret_f = f;
	return ST_OK;
}
