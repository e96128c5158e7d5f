#include "daemon/commit/intake/message.h"

#include "daemon/commit/intake/tuple_json.h"
#include "proto/base/jspan.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

/* The index of one message's text. */
#define SCRATCH_MAX ((size_t)64 << 20)

struct reader {
	const struct metadata *m;
	const struct jspan *o; /* the message */
	enum rpc_dialect dialect;
	struct arena *tmp; /* for what is needed while reading */
	struct arena *a;   /* for what stays */
	struct buf bytes;  /* of one value, again and again */
	struct err *err;
};

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

/* As the wire demands of any text: an escaped U+0000 is none. */
static enum status keep_str(struct reader *r, const char *key, struct strv s, struct strv *ret_s)
{
	if (strv_find(s, 0) < s.n)
		return err_set(r->err, ST_BAD_REQUEST, key, "holds U+0000");
	return arena_strv(r->a, s, ret_s) ? ST_OK : full(r->err);
}

static enum status need_str(struct reader *r, const char *key, struct strv *ret_s)
{
	struct strv s;
	enum status st = jspan_need_str(r->o, key, ST_BAD_REQUEST, r->tmp, &s, r->err);
	return st == ST_OK ? keep_str(r, key, s, ret_s) : st;
}

static enum status opt_str(struct reader *r, const char *key, struct strv *ret_s, bool *ret_has)
{
	struct strv s;
	enum status st = jspan_opt_str(r->o, key, ST_BAD_REQUEST, r->tmp, &s, ret_has, r->err);
	return st == ST_OK && *ret_has ? keep_str(r, key, s, ret_s) : st;
}

static bool absent(const struct reader *r, const char *key)
{
	return jspan_is_null(jspan_get(r->o, key));
}

/* ------------------------------------------------------------------ metrics */

static enum status bad_metric(const char *key, const char *what, struct err *err)
{
	return err_set(err, ST_BAD_REQUEST, key, "%s", what);
}

static bool column_of(struct strv key, int32_t *ret_id)
{
	int64_t n;
	if (!strv_i64(key, &n) || n < 0 || n > INT32_MAX)
		return false;
	*ret_id = (int32_t)n;
	return true;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static bool unhex(struct buf *b, struct strv s)
{
	for (size_t i = 0; i + 1 < s.n; i += 2) {
		int high = hex_digit(s.p[i]), low = hex_digit(s.p[i + 1]);
		if (high < 0 || low < 0)
			return false;
		buf_putc(b, (uint8_t)(high * 16 + low));
	}
	return s.n % 2 == 0 && buf_ok(b);
}

/* Base64 in the engines' messages, hexadecimal in content files. */
static enum status bytes_of(struct reader *r, const struct jspan *v, const char *key,
			    struct bytes *ret_b)
{
	struct strv s;
	bool hex = r->dialect == RPC_DIALECT_ICEBERG;
	if (!jspan_is(v, JSPAN_STRING))
		return bad_metric(key, "must be text", r->err);
	if (!jspan_str(v, r->tmp, &s))
		return full(r->err);
	buf_clear(&r->bytes);
	if (!(hex ? unhex(&r->bytes, s) : digest_unbase64(&r->bytes, s)))
		return bad_metric(key, hex ? "is not hexadecimal" : "is not base64", r->err);
	return arena_bytes(r->a, buf_bytes(&r->bytes), ret_b) ? ST_OK : full(r->err);
}

/* The entries of a map by column: an object with ids as keys, or in content files two arrays. The
 * next pair, or false at the end; null values are passed over. */
struct column_map {
	struct jspan_iter members;
	const struct jspan *keys, *values, *keys_end;
};

static enum status map_begin(struct reader *r, const struct jspan *from, const char *key,
			     struct column_map *ret_map, size_t *ret_n)
{
	const struct jspan *o;
	enum status st = jspan_opt_object(from, key, ST_BAD_REQUEST, &o, r->err);
	*ret_map = (struct column_map){.members = jspan_iter(NULL)};
	*ret_n = 0;
	if (st != ST_OK || !o)
		return st;
	if (r->dialect != RPC_DIALECT_ICEBERG) {
		ret_map->members = jspan_iter(o);
		*ret_n = o->count;
		return ST_OK;
	}
	const struct jspan *keys = jspan_get(o, "keys"), *values = jspan_get(o, "values");
	if (!jspan_is(keys, JSPAN_ARRAY) || !jspan_is(values, JSPAN_ARRAY) ||
	    keys->count != values->count)
		return bad_metric(key, "must have keys and values, equally many", r->err);
	ret_map->keys = jspan_first(keys);
	ret_map->keys_end = jspan_end(keys);
	ret_map->values = jspan_first(values);
	*ret_n = keys->count;
	return ST_OK;
}

static bool map_next(struct reader *r, struct column_map *map, bool *ret_ok, int32_t *ret_id,
		     const struct jspan **ret_v)
{
	do {
		if (map->keys) {
			if (map->keys == map->keys_end)
				return false;
			*ret_ok = jspan_i32(map->keys, ret_id);
			*ret_v = map->values;
			map->keys += map->keys->skip;
			map->values += map->values->skip;
		} else {
			struct strv key;
			if (!jspan_next(&map->members))
				return false;
			*ret_ok =
				jspan_str(map->members.key, r->tmp, &key) && column_of(key, ret_id);
			*ret_v = map->members.val;
		}
	} while (jspan_is_null(*ret_v));
	return true;
}

static enum status read_counts(struct reader *r, const struct jspan *from, const char *key,
			       struct rpc_metric **ret_v, size_t *ret_n)
{
	struct column_map map;
	size_t most;
	int32_t id = 0;
	bool ok = true;
	const struct jspan *value = NULL;
	enum status st = map_begin(r, from, key, &map, &most);
	if (st != ST_OK)
		return st;
	struct rpc_metric *v = arena_calloc(r->a, most ? most : 1, sizeof *v);
	if (!v)
		return full(r->err);
	size_t n = 0;
	for (; map_next(r, &map, &ok, &id, &value); n++) {
		if (!ok)
			return bad_metric(key, "a key is no column id", r->err);
		v[n].field_id = id;
		if (!jspan_i64(value, &v[n].value))
			return bad_metric(key, "a value is no integer", r->err);
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

static enum status read_bounds(struct reader *r, const struct jspan *from, const char *key,
			       struct rpc_bound **ret_v, size_t *ret_n)
{
	struct column_map map;
	size_t most;
	int32_t id = 0;
	bool ok = true;
	const struct jspan *value = NULL;
	enum status st = map_begin(r, from, key, &map, &most);
	if (st != ST_OK)
		return st;
	struct rpc_bound *v = arena_calloc(r->a, most ? most : 1, sizeof *v);
	if (!v)
		return full(r->err);
	size_t n = 0;
	for (; st == ST_OK && map_next(r, &map, &ok, &id, &value); n++) {
		if (!ok)
			return bad_metric(key, "a key is no column id", r->err);
		v[n].field_id = id;
		st = bytes_of(r, value, key, &v[n].value);
	}
	*ret_v = v;
	*ret_n = n;
	return st;
}

/* Everything but the number of rows may be missing. */
static enum status read_metrics(struct reader *r, struct rpc_data_file *f)
{
	static const char *const engine[] = {"recordCount",     "columnSizes",    "valueCounts",
					     "nullValueCounts", "nanValueCounts", "lowerBounds",
					     "upperBounds"};
	static const char *const iceberg[] = {
		"record-count",     "column-sizes", "value-counts", "null-value-counts",
		"nan-value-counts", "lower-bounds", "upper-bounds"};
	bool inside = r->dialect != RPC_DIALECT_ICEBERG;
	const char *const *key = inside ? engine : iceberg;
	const struct jspan *from = r->o;
	if (inside) {
		from = jspan_get(r->o, "metrics");
		if (!jspan_is(from, JSPAN_OBJECT))
			return err_set(r->err, ST_BAD_REQUEST, "metrics", "must be an object");
	}
	enum status st = jspan_need_i64(from, key[0], ST_BAD_REQUEST, &f->record_count, r->err);
	if (st == ST_OK)
		st = read_counts(r, from, key[1], &f->column_sizes, &f->n_column_sizes);
	if (st == ST_OK)
		st = read_counts(r, from, key[2], &f->value_counts, &f->n_value_counts);
	if (st == ST_OK)
		st = read_counts(r, from, key[3], &f->null_counts, &f->n_null_counts);
	if (st == ST_OK)
		st = read_counts(r, from, key[4], &f->nan_counts, &f->n_nan_counts);
	if (st == ST_OK)
		st = read_bounds(r, from, key[5], &f->lower_bounds, &f->n_lower_bounds);
	if (st == ST_OK)
		st = read_bounds(r, from, key[6], &f->upper_bounds, &f->n_upper_bounds);
	if (st == ST_OK && f->record_count <= 0)
		st = err_set(r->err, ST_BAD_REQUEST, key[0], "must be positive");
	if (st != ST_OK && inside)
		err_prefix(r->err, "metrics");
	return st;
}

static bool counts_known(const struct schema *s, const struct rpc_metric *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].field_id != FIELD_ID_ROW_ID &&
		    v[i].field_id != FIELD_ID_LAST_UPDATED_SEQ && !schema_find(s, v[i].field_id))
			return false;
	return true;
}

/* No message names the schema: the current one, unless the file has columns that only an earlier
 * one knows, because the table has changed since the engine planned. */
static const struct schema *schema_of(const struct metadata *m, const struct rpc_data_file *f)
{
	size_t n = metadata_schema_count(m);
	for (size_t i = 0; i <= n; i++) {
		const struct schema *s = i == 0 ? metadata_schema(m) : metadata_schema_at(m, n - i);
		if (counts_known(s, f->column_sizes, f->n_column_sizes) &&
		    counts_known(s, f->value_counts, f->n_value_counts) &&
		    counts_known(s, f->null_counts, f->n_null_counts))
			return s;
	}
	return metadata_schema(m);
}

/* ------------------------------------------------------------------ spec and tuple */

/* Trino's whole spec, which must be one of the table's. */
static enum status spec_of_text(struct reader *r, struct strv text, bool judge,
				const struct partition_spec **ret_spec, int32_t *ret_id)
{
	struct jdoc *doc = NULL;
	struct partition_spec spec;
	enum status st = jdoc_parse(strv_bytes(text), ST_BAD_REQUEST, &doc, r->err);
	if (st == ST_OK)
		st = partition_parse(jdoc_root(doc), ST_BAD_REQUEST, r->tmp, &spec, r->err);
	if (st == ST_OK) {
		*ret_id = spec.spec_id;
		*ret_spec = metadata_spec_by_id(r->m, spec.spec_id);
		if (judge && (!*ret_spec || !partition_same(*ret_spec, &spec)))
			st = err_set(r->err, ST_SPEC_UNKNOWN, "",
				     "not a partition spec of the table");
	}
	jdoc_free(doc);
	return st;
}

/* Required of files, optional and not judged of vectors. */
static enum status read_spec(struct reader *r, bool judge, const struct partition_spec **ret_spec,
			     int32_t *ret_id)
{
	const char *key = r->dialect == RPC_DIALECT_ICEBERG ? "spec-id" : "partitionSpecJson";
	enum status st;
	if (r->dialect == RPC_DIALECT_TRINO) {
		struct strv text;
		st = jspan_need_str(r->o, key, ST_BAD_REQUEST, r->tmp, &text, r->err);
		if (st != ST_OK)
			return st;
		st = spec_of_text(r, text, judge, ret_spec, ret_id);
		if (st != ST_OK)
			err_prefix(r->err, "%s", key);
		return st;
	}
	st = jspan_need_i32(r->o, key, ST_BAD_REQUEST, ret_id, r->err);
	if (st != ST_OK)
		return st;
	*ret_spec = metadata_spec_by_id(r->m, *ret_id);
	if (judge && !*ret_spec)
		return err_set(r->err, ST_SPEC_UNKNOWN, key,
			       "partition spec %d is not in the table", *ret_id);
	return ST_OK;
}

static enum status read_tuple(struct reader *r, struct rpc_data_file *f)
{
	const struct partition_spec *spec = NULL;
	bool iceberg = r->dialect == RPC_DIALECT_ICEBERG, has = false;
	const char *key = iceberg ? "partition" : "partitionDataJson";
	struct strv text = {NULL, 0};
	const struct schema *s = schema_of(r->m, f);
	f->schema_id = s->schema_id;
	enum status st = read_spec(r, true, &spec, &f->spec_id);
	if (st != ST_OK)
		return st;
	if (iceberg) {
		has = !absent(r, key);
		text = has ? jspan_text(jspan_get(r->o, key)) : text;
	} else {
		st = jspan_opt_str(r->o, key, ST_BAD_REQUEST, r->tmp, &text, &has, r->err);
		if (st != ST_OK)
			return st;
		/* Velox once wrote the empty text for no tuple. */
		has &= text.n > 0;
	}
	if (!has) {
		/* A spec that is left with void fields counts as none to the engines. */
		if (!partition_is_unpartitioned(spec))
			return err_set(r->err, ST_TUPLE_MISMATCH, key,
				       "no values for a spec of %zu fields", spec->n);
		f->n_partition = spec->n;
		return tuple_json_nulls(spec, r->a, &f->partition) ? ST_OK : full(r->err);
	}
	st = iceberg ? tuple_json_single(text, spec, r->m, s, r->a, &f->partition, r->err)
		     : tuple_json_read(text, spec, r->m, s, r->dialect != RPC_DIALECT_TRINO, r->a,
				       &f->partition, r->err);
	if (st != ST_OK)
		err_prefix(r->err, "%s", key);
	f->n_partition = spec->n;
	return st;
}

/* ------------------------------------------------------------------ the kinds */

/* Names of members that both families have. */
struct names {
	const char *path, *size, *format, *referenced, *offset, *length, *splits, *order;
};

static const struct names *names_of(enum rpc_dialect d)
{
	static const struct names engine = {
		"path",          "fileSizeInBytes",    "fileFormat",       "referencedDataFile",
		"contentOffset", "contentSizeInBytes", "fileSplitOffsets", "sortOrderId"};
	static const struct names iceberg = {
		"file-path",      "file-size-in-bytes",    "file-format",   "referenced-data-file",
		"content-offset", "content-size-in-bytes", "split-offsets", "sort-order-id"};
	return d == RPC_DIALECT_ICEBERG ? &iceberg : &engine;
}

static enum status upper(struct reader *r, struct strv *io_s)
{
	char *p = arena_alloc(r->a, io_s->n + 1);
	if (!p)
		return full(r->err);
	for (size_t i = 0; i < io_s->n; i++)
		p[i] = io_s->p[i] >= 'a' && io_s->p[i] <= 'z' ? (char)(io_s->p[i] - 'a' + 'A')
							      : io_s->p[i];
	io_s->p = p;
	return ST_OK;
}

static enum status read_splits(struct reader *r, const char *key, struct rpc_data_file *f)
{
	const struct jspan *array;
	enum status st = jspan_opt_array(r->o, key, ST_BAD_REQUEST, &array, r->err);
	if (st != ST_OK || !array)
		return st;
	f->split_offsets =
		arena_calloc(r->a, array->count ? array->count : 1, sizeof *f->split_offsets);
	if (!f->split_offsets)
		return full(r->err);
	JSPAN_EACH(e, array)
	if (!jspan_i64(e, &f->split_offsets[f->n_split_offsets++]))
		return bad_metric(key, "a value is no integer", r->err);
	return ST_OK;
}

/* What a data file and a file of position deletes have in common. */
static enum status read_file(struct reader *r, const struct names *k, struct rpc_data_file *f)
{
	enum status st = need_str(r, k->path, &f->path);
	if (st == ST_OK)
		st = need_str(r, k->format, &f->format);
	if (st == ST_OK)
		st = upper(r, &f->format);
	if (st == ST_OK)
		st = jspan_need_i64(r->o, k->size, ST_BAD_REQUEST, &f->file_size, r->err);
	if (st == ST_OK)
		st = read_metrics(r, f);
	if (st == ST_OK)
		st = read_splits(r, k->splits, f);
	return st == ST_OK ? read_tuple(r, f) : st;
}

/* Members of a data file that say that it is not simply new. */
static enum status only_new(struct reader *r, const struct names *k)
{
	if (!absent(r, k->referenced) || !absent(r, "rewriteInfo"))
		return err_set(r->err, ST_UNSUPPORTED,
			       absent(r, "rewriteInfo") ? k->referenced : "rewriteInfo",
			       "a data file that takes the place of another one is not taken");
	if (r->dialect == RPC_DIALECT_ICEBERG) {
		if (!absent(r, "first-row-id") || !absent(r, "data-sequence-number"))
			return err_set(r->err, ST_ROW_IDS,
				       absent(r, "first-row-id") ? "data-sequence-number"
								 : "first-row-id",
				       "a new file has none before its commit");
	}
	return ST_OK;
}

static enum status read_data(struct reader *r, const struct names *k, struct message *out)
{
	struct rpc_data_file *f = &out->file;
	enum status st = only_new(r, k);
	if (st == ST_OK)
		st = read_file(r, k, f);
	bool has = false;
	if (st == ST_OK)
		st = jspan_opt_i32(r->o, k->order, ST_BAD_REQUEST, &f->sort_order_id, &has, r->err);
	if (st != ST_OK)
		return st;
	f->has_sort_order_id =
		has && (r->dialect == RPC_DIALECT_TRINO || r->dialect == RPC_DIALECT_ICEBERG);
	f->new_row_count = f->record_count;
	out->kind = MESSAGE_DATA_FILE;
	return ST_OK;
}

static enum status read_delete_file(struct reader *r, const struct names *k, struct message *out)
{
	struct rpc_data_file f = {0};
	struct rpc_delete_file *d = &out->delete_file;
	bool has = false;
	struct strv *target = arena_calloc(r->a, 1, sizeof *target);
	if (!target)
		return full(r->err);
	enum status st = read_file(r, k, &f);
	if (st == ST_OK)
		st = opt_str(r, k->referenced, target, &has);
	if (st != ST_OK)
		return st;
	*d = (struct rpc_delete_file){.path = f.path,
				      .format = f.format,
				      .spec_id = f.spec_id,
				      .partition = f.partition,
				      .n_partition = f.n_partition,
				      .record_count = f.record_count,
				      .file_size = f.file_size,
				      .column_sizes = f.column_sizes,
				      .n_column_sizes = f.n_column_sizes,
				      .value_counts = f.value_counts,
				      .n_value_counts = f.n_value_counts,
				      .null_counts = f.null_counts,
				      .n_null_counts = f.n_null_counts,
				      .lower_bounds = f.lower_bounds,
				      .n_lower_bounds = f.n_lower_bounds,
				      .upper_bounds = f.upper_bounds,
				      .n_upper_bounds = f.n_upper_bounds,
				      .data_files = target,
				      .n_data_files = has};
	out->kind = MESSAGE_DELETE_FILE;
	return ST_OK;
}

/* Trino's tasks report what they deleted; the others wrote the whole vector, with what was deleted
 * before it, to a file. */
static enum status read_vector_bytes(struct reader *r, const struct names *k,
				     struct rpc_delete_vector *v)
{
	const struct jspan *text = jspan_get(r->o, "serializedDeletionVector");
	if (r->dialect == RPC_DIALECT_TRINO && !jspan_is_null(text))
		return bytes_of(r, text, "serializedDeletionVector", &v->vector);
	struct rpc_blob_ref *blob = arena_calloc(r->a, 1, sizeof *blob);
	if (!blob)
		return full(r->err);
	enum status st = need_str(r, k->path, &blob->path);
	if (st == ST_OK)
		st = jspan_need_i64(r->o, k->offset, ST_BAD_REQUEST, &blob->offset, r->err);
	if (st == ST_OK)
		st = jspan_need_i64(r->o, k->length, ST_BAD_REQUEST, &blob->length, r->err);
	v->blob = blob;
	v->includes_existing = true;
	return st;
}

static enum status read_vector(struct reader *r, const struct names *k, struct message *out)
{
	struct rpc_data_file f = {0};
	const struct partition_spec *spec = NULL;
	enum status st = need_str(r, k->referenced, &out->vector.data_file);
	if (st == ST_OK)
		st = read_metrics(r, &f);
	if (st == ST_OK)
		st = read_vector_bytes(r, k, &out->vector);
	const char *key = r->dialect == RPC_DIALECT_ICEBERG ? "spec-id" : "partitionSpecJson";
	if (st == ST_OK && !absent(r, key)) {
		out->has_spec = true;
		st = read_spec(r, false, &spec, &out->spec_id);
	}
	out->vector.cardinality = f.record_count;
	out->vector.provenance = RPC_PROVENANCE_ABSENT;
	out->kind = MESSAGE_VECTOR;
	return st;
}

/* Content of the file by any of its spellings; Iceberg wrote capitals before version 1.11. */
static bool content_is(struct strv s, const char *capitals, const char *kebab)
{
	return strv_eq(s, strv_of(capitals)) || strv_eq(s, strv_of(kebab));
}

static enum status read_kind(struct reader *r, struct message *out)
{
	const struct names *k = names_of(r->dialect);
	struct strv content = {NULL, 0}, format = {NULL, 0};
	enum status st = jspan_need_str(r->o, "content", ST_BAD_REQUEST, r->tmp, &content, r->err);
	if (st == ST_OK)
		st = jspan_need_str(r->o, k->format, ST_BAD_REQUEST, r->tmp, &format, r->err);
	if (st != ST_OK)
		return st;
	if (r->dialect == RPC_DIALECT_ICEBERG && !absent(r, "key-metadata"))
		return err_set(r->err, ST_ENCRYPTED, "key-metadata",
			       "encrypted files are not taken");
	if (content_is(content, "DATA", "data"))
		return read_data(r, k, out);
	if (content_is(content, "EQUALITY_DELETES", "equality-deletes"))
		return err_set(r->err, ST_UNSUPPORTED, "content", "equality deletes are not taken");
	if (!content_is(content, "POSITION_DELETES", "position-deletes"))
		return err_set(r->err, ST_BAD_REQUEST, "content", "unknown: %.*s",
			       STRV_ARG(content));
	if (strv_ieq(format, STRV("PUFFIN")) ||
	    (r->dialect == RPC_DIALECT_TRINO && !absent(r, "serializedDeletionVector")))
		return read_vector(r, k, out);
	return read_delete_file(r, k, out);
}

enum status message_read(const struct metadata *m, const struct rpc_task_message *in,
			 struct arena *a, struct message *ret_m, struct err *err)
{
	struct arena tmp;
	struct message out = {0};
	struct reader r = {.m = m, .dialect = in->dialect, .tmp = &tmp, .a = a, .err = err};
	arena_init(&tmp, SCRATCH_MAX);
	buf_init(&r.bytes, SCRATCH_MAX);
	enum status st = jspan_parse(in->json, ST_BAD_REQUEST, &tmp, &r.o, err);
	if (st == ST_OK && !jspan_is(r.o, JSPAN_OBJECT))
		st = err_set(err, ST_BAD_REQUEST, "", "must be an object");
	if (st == ST_OK)
		st = read_kind(&r, &out);
	buf_fini(&r.bytes);
	arena_fini(&tmp);
	if (st == ST_OK)
		*ret_m = out;
	return st;
}
