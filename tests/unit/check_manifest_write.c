/* What we write, against the Java library's files of the same entries and against avro-c. */
#include "proto/avro/manifest_write.h"

#include <math.h>

#include <avro.h>

#include "proto/avro/avro_container.h"
#include "tests/unit/avro_golden.h"
#include "tests/unit/unit.h"

#define LIMIT ((size_t)64 << 20)
static const uint8_t sync_marker[16] = "sync marker 1234";

struct written {
	struct arena a;
	struct buf file;
	struct manifest_file row;
};

static struct manifest_params params_of(const struct golden *g, const struct manifest *m,
					enum codec codec)
{
	struct manifest_params p = {
		.format_version = m->format_version,
		.content = m->content,
		.schema = m->schema,
		.schema_id = 7,
		.spec_id = m->spec_id,
		.spec_fields = m->spec_fields,
		.partition = m->partition,
		.n_partition = m->n_partition,
		.snapshot_id = g->list.snapshot_id,
		.codec = codec,
	};
	memcpy(p.sync, sync_marker, sizeof p.sync);
	return p;
}

/* Takes back what the entries inherited, so that writing has to leave it out again. */
static const struct manifest_entry **raw_entries(struct arena *a, const struct manifest *m,
						 const struct manifest_file *row)
{
	const struct manifest_entry **list = arena_calloc(a, m->n, sizeof(void *));
	struct manifest_entry *raw = arena_calloc(a, m->n, sizeof *raw);
	ck_assert(list && raw);
	for (size_t i = 0; i < m->n; i++) {
		raw[i] = m->entries[i];
		if (raw[i].status == ENTRY_ADDED) {
			raw[i].snapshot_id = SNAPSHOT_NONE;
			if (raw[i].seq == row->seq)
				raw[i].seq = SEQ_NONE;
			/* Must be ignored by the writer. */
			raw[i].file_seq = 4711;
			if (m->format_version >= 3 && m->content == MANIFEST_DATA)
				raw[i].file.first_row_id = 4711;
		}
		list[i] = &raw[i];
	}
	return list;
}

static void write_golden(struct written *w, const struct golden *g, const struct manifest *m,
			 const struct manifest_file *row, enum codec codec)
{
	struct err err = {0};
	struct manifest_params p = params_of(g, m, codec);
	arena_init(&w->a, LIMIT);
	buf_init(&w->file, LIMIT);
	UNIT_OK(manifest_write(&p, raw_entries(&w->a, m, row), m->n, &w->file, &w->a, &w->row,
			       &err),
		&err);
}

static void written_fini(struct written *w)
{
	buf_fini(&w->file);
	arena_fini(&w->a);
}

/* Java's entries, written by us, read back as Java reads its own; and described by the same row. */
/* Java takes a lone -0.0 as the upper bound; ours includes both zeros, as the spec lets it. */
static void as_java_zeros(struct manifest_file *ours, const struct manifest_file *java,
			  const struct field *partition)
{
	static const uint8_t minus[8] = {0, 0, 0, 0, 0, 0, 0, 0x80}, plus[8] = {0};
	for (size_t i = 0; i < ours->n_partitions; i++) {
		struct partition_summary *s = &ours->partitions[i];
		struct bytes theirs = java->partitions[i].upper;
		if (partition[i].type->kind != TYPE_DOUBLE || theirs.n != 8 ||
		    memcmp(theirs.p, minus, 8) != 0)
			continue;
		ck_assert(bytes_eq(s->upper, (struct bytes){plus, 8}));
		s->upper = theirs;
	}
}

START_TEST(same_as_java)
{
	struct golden g = {0};
	struct err err = {0};
	int version = _i / 2 + 1;
	golden_open(&g, version);
	for (size_t i = 0; i < g.list.n; i++) {
		const struct jval *o = jval_at(g.rows, i), *entries = jval_get(o, "entries");
		const struct manifest_file *row = &g.list.rows[i];
		struct manifest *m = golden_manifest(&g, row), *again = NULL;
		struct written w;
		write_golden(&w, &g, m, row, _i % 2 ? CODEC_DEFLATE : CODEC_NULL);
		ck_assert_int_eq(w.row.length, (int64_t)w.file.n);
		UNIT_OK(manifest_read(buf_bytes(&w.file), row, m->partition, m->n_partition, LIMIT,
				      &again, &err),
			&err);
		ck_assert_uint_eq(again->n, jval_count(entries));
		for (size_t k = 0; k < again->n; k++)
			golden_entry(jval_at(entries, k), &again->entries[k]);
		ck_assert_int_eq(again->schema_id, 7);
		ck_assert(strv_eq(again->schema, m->schema));
		ck_assert(strv_eq(again->spec_fields, m->spec_fields));
		/* The rest of the row is the list's business. */
		ck_assert_int_eq(w.row.seq, version == 1 ? 0 : SEQ_NONE);
		ck_assert_int_eq(w.row.first_row_id, ROW_ID_NONE);
		w.row.path = row->path;
		w.row.length = row->length;
		w.row.seq = row->seq;
		if (w.row.min_seq == SEQ_NONE)
			w.row.min_seq = row->seq;
		w.row.first_row_id = row->first_row_id;
		as_java_zeros(&w.row, row, m->partition);
		golden_row(o, &w.row);
		manifest_unref(again);
		written_fini(&w);
		manifest_unref(m);
	}
	golden_close(&g);
}
END_TEST

/* ---- schemas ---- */

static bool free_text(struct strv key)
{
	return strv_eq(key, STRV("doc"));
}

static void same_json(const struct jval *java, const struct jval *ours, const char *at);

/* Where we differ on purpose: Avro names are ASCII (Java lets any letter through), and a fixed is
 * never named without being defined (PyIceberg does not follow such references). */
static bool exempt(const struct jval *java, const struct jval *ours)
{
	struct strv a = {"", 0}, b = {"", 0}, c = {"", 0};
	(void)!jval_as_str(java, &a);
	(void)!jval_as_str(ours, &b);
	(void)!jval_as_str(jval_get(ours, "type"), &c);
	return (strv_eq(a, STRV("s_x2Dtrunc\u00e9")) && strv_eq(b, STRV("s_x2Dtrunc_xE9"))) ||
	       ((strv_eq(a, STRV("decimal_11_2")) || strv_eq(a, STRV("uuid_fixed"))) &&
		strv_eq(c, STRV("fixed")));
}

static void same_object(const struct jval *java, const struct jval *ours, const char *at)
{
	struct strv name = {"", 0};
	(void)!jval_as_str(jval_get(java, "name"), &name);
	char path[512];
	for (struct jval_iter it = jval_iter(java); jval_next(&it);) {
		char key[64];
		if (free_text(it.key))
			continue;
		ck_assert(strv_cstr(it.key, key, sizeof key));
		snprintf(path, sizeof path, "%s.%.*s/%s", at, STRV_ARG(name), key);
		ck_assert_msg(jval_get(ours, key) != NULL, "%s is missing", path);
		same_json(it.val, jval_get(ours, key), path);
	}
	for (struct jval_iter it = jval_iter(ours); jval_next(&it);) {
		char key[64];
		ck_assert(strv_cstr(it.key, key, sizeof key));
		bool more = strv_eq(it.key, STRV("iceberg-field-name"));
		ck_assert_msg(more || jval_get(java, key) != NULL, "%s.%s is too much", at, key);
	}
}

static void same_json(const struct jval *java, const struct jval *ours, const char *at)
{
	if (exempt(java, ours))
		return;
	ck_assert_msg(jval_kind(java) == jval_kind(ours), "%s: other kind", at);
	struct strv a = {"", 0}, b = {"", 0};
	int64_t x = 0, y = 0;
	bool p = false, q = false;
	switch (jval_kind(java)) {
	case JK_OBJECT:
		same_object(java, ours, at);
		return;
	case JK_ARRAY:
		ck_assert_msg(jval_count(java) == jval_count(ours), "%s: other length", at);
		for (size_t i = 0; i < jval_count(java); i++)
			same_json(jval_at(java, i), jval_at(ours, i), at);
		return;
	case JK_STR:
		ck_assert(jval_as_str(java, &a) && jval_as_str(ours, &b));
		ck_assert_msg(strv_eq(a, b), "%s: %.*s, ours %.*s", at, STRV_ARG(a), STRV_ARG(b));
		return;
	case JK_INT:
		ck_assert(jval_as_i64(java, &x) && jval_as_i64(ours, &y));
		ck_assert_msg(x == y, "%s: %lld, ours %lld", at, (long long)x, (long long)y);
		return;
	case JK_BOOL:
		ck_assert(jval_as_bool(java, &p) && jval_as_bool(ours, &q));
		ck_assert_msg(p == q, "%s: differs", at);
		return;
	default:
		ck_assert_msg(jval_is_null(java), "%s: unexpected kind", at);
	}
}

static struct jdoc *header_json(struct bytes file, struct arena *a, const char *key)
{
	struct avro_container c;
	struct err err = {0};
	struct strv text;
	struct jdoc *doc = NULL;
	UNIT_OK(avro_container_open(file, a, &c, &err), &err);
	ck_assert(avro_container_meta(&c, strv_of(key), &text));
	UNIT_OK(jdoc_parse(strv_bytes(text), ST_CORRUPT, &doc, &err), &err);
	return doc;
}

static void same_header(struct bytes java, struct bytes ours, struct arena *a, const char *key)
{
	struct jdoc *x = header_json(java, a, key), *y = header_json(ours, a, key);
	same_json(jdoc_root(x), jdoc_root(y), key);
	jdoc_free(x);
	jdoc_free(y);
}

/* Both schemas of the header, member by member: ids, element ids, logical types, adjust-to-utc,
 * names, order, defaults. Version 1 is compared in check_v1 below. */
START_TEST(same_schema)
{
	struct golden g = {0};
	golden_open(&g, _i);
	for (size_t i = 0; i < g.list.n; i++) {
		struct buf java;
		struct written w;
		struct manifest *m = golden_manifest(&g, &g.list.rows[i]);
		golden_manifest_bytes(&g.list.rows[i], &java);
		write_golden(&w, &g, m, &g.list.rows[i], CODEC_DEFLATE);
		struct bytes jb = buf_bytes(&java), ob = buf_bytes(&w.file);
		same_header(jb, ob, &w.a, "avro.schema");
		same_header(jb, ob, &w.a, "iceberg.schema");
		same_header(jb, ob, &w.a, "partition-spec");
		same_header(jb, ob, &w.a, "schema");
		struct avro_container jc, oc;
		struct err err = {0};
		UNIT_OK(avro_container_open(jb, &w.a, &jc, &err), &err);
		UNIT_OK(avro_container_open(ob, &w.a, &oc, &err), &err);
		/* Java leaves out schema-id. */
		ck_assert_uint_eq(oc.n_meta, jc.n_meta + 1);
		static const char *const keys[] = {"format-version", "content", "partition-spec-id",
						   "avro.codec"};
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			struct strv x, y;
			ck_assert(avro_container_meta(&jc, strv_of(keys[k]), &x));
			ck_assert(avro_container_meta(&oc, strv_of(keys[k]), &y));
			ck_assert(strv_eq(x, y));
		}
		written_fini(&w);
		buf_fini(&java);
		manifest_unref(m);
	}
	golden_close(&g);
}
END_TEST

/* Version 1: one column more, several less, and a required snapshot id. */
START_TEST(check_v1)
{
	struct golden g = {0};
	golden_open(&g, 1);
	struct buf java;
	struct written w;
	struct manifest *m = golden_manifest(&g, &g.list.rows[0]);
	golden_manifest_bytes(&g.list.rows[0], &java);
	write_golden(&w, &g, m, &g.list.rows[0], CODEC_DEFLATE);
	struct jdoc *x = header_json(buf_bytes(&java), &w.a, "avro.schema");
	struct jdoc *y = header_json(buf_bytes(&w.file), &w.a, "avro.schema");
	const struct jval *jf = jval_get(jdoc_root(x), "fields");
	const struct jval *of = jval_get(jdoc_root(y), "fields");
	ck_assert_uint_eq(jval_count(jf), 3);
	ck_assert_uint_eq(jval_count(of), 3);
	same_json(jval_at(jf, 0), jval_at(of, 0), "status");
	same_json(jval_at(jf, 2), jval_at(of, 2), "data_file");
	struct strv type;
	ck_assert(jval_as_str(jval_get(jval_at(of, 1), "type"), &type));
	ck_assert(strv_eq(type, STRV("long")));
	jdoc_free(x);
	jdoc_free(y);
	struct avro_container c;
	struct err err = {0};
	struct strv v;
	UNIT_OK(avro_container_open(buf_bytes(&w.file), &w.a, &c, &err), &err);
	ck_assert(!avro_container_meta(&c, STRV("content"), &v));
	ck_assert(avro_container_meta(&c, STRV("format-version"), &v) && strv_eq(v, STRV("1")));
	written_fini(&w);
	buf_fini(&java);
	manifest_unref(m);
	golden_close(&g);
}
END_TEST

/* ---- avro-c ---- */

static avro_value_t member(avro_value_t *v, const char *name)
{
	avro_value_t out;
	ck_assert_msg(avro_value_get_by_name(v, name, &out, NULL) == 0, "no %s", name);
	if (avro_value_get_type(&out) == AVRO_UNION) {
		avro_value_t branch;
		ck_assert_int_eq(avro_value_get_current_branch(&out, &branch), 0);
		out = branch;
	}
	return out;
}

static int64_t as_long(avro_value_t v)
{
	int32_t i = 0;
	int64_t l = 0;
	if (avro_value_get_int(&v, &i) == 0)
		return i;
	ck_assert_int_eq(avro_value_get_long(&v, &l), 0);
	return l;
}

static void oracle_datum(avro_value_t *v, const struct manifest_entry *e)
{
	const struct content_file *f = &e->file;
	avro_value_t file = member(v, "data_file"), path = member(&file, "file_path");
	const char *text = NULL;
	size_t n = 0;
	ck_assert_int_eq(as_long(member(v, "status")), e->status);
	ck_assert_int_eq(avro_value_get_string(&path, &text, &n), 0);
	ck_assert(strv_eq((struct strv){text, n - 1}, f->path));
	ck_assert_int_eq(as_long(member(&file, "record_count")), f->record_count);
	ck_assert_int_eq(as_long(member(&file, "file_size_in_bytes")), f->file_size);
	avro_value_t part = member(&file, "partition"), map = member(&file, "column_sizes");
	ck_assert_int_eq(avro_value_get_size(&part, &n), 0);
	ck_assert_uint_eq(n, f->partition.n);
	for (size_t i = 0; i < n; i++) {
		avro_value_t u, branch;
		ck_assert_int_eq(avro_value_get_by_index(&part, i, &u, NULL), 0);
		ck_assert_int_eq(avro_value_get_current_branch(&u, &branch), 0);
		ck_assert_int_eq(avro_value_get_type(&branch) == AVRO_NULL, f->partition.v[i].null);
	}
	ck_assert_int_eq(avro_value_get_type(&map) == AVRO_NULL, f->n_column_sizes == 0);
	for (size_t i = 0; i < f->n_column_sizes; i++) {
		avro_value_t pair;
		ck_assert_int_eq(avro_value_get_by_index(&map, i, &pair, NULL), 0);
		ck_assert_int_eq(as_long(member(&pair, "key")), f->column_sizes[i].field_id);
		ck_assert_int_eq(as_long(member(&pair, "value")), f->column_sizes[i].v);
	}
}

/* An Avro reader that shares no code with us decodes every datum. */
START_TEST(oracle)
{
	struct golden g = {0};
	golden_open(&g, _i);
	for (size_t i = 0; i < g.list.n; i++) {
		struct written w;
		struct manifest *m = golden_manifest(&g, &g.list.rows[i]);
		write_golden(&w, &g, m, &g.list.rows[i], CODEC_DEFLATE);
		FILE *f = fmemopen(w.file.p, w.file.n, "rb");
		avro_file_reader_t r;
		ck_assert_msg(avro_file_reader_fp(f, "ours", 0, &r) == 0, "%s", avro_strerror());
		avro_schema_t schema = avro_file_reader_get_writer_schema(r);
		avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
		avro_value_t v;
		ck_assert_int_eq(avro_generic_value_new(iface, &v), 0);
		size_t n = 0;
		while (avro_file_reader_read_value(r, &v) == 0) {
			ck_assert_uint_lt(n, m->n);
			oracle_datum(&v, &m->entries[n++]);
			avro_value_reset(&v);
		}
		ck_assert_uint_eq(n, m->n);
		avro_value_decref(&v);
		avro_value_iface_decref(iface);
		avro_schema_decref(schema);
		avro_file_reader_close(r);
		fclose(f);
		written_fini(&w);
		manifest_unref(m);
	}
	golden_close(&g);
}
END_TEST

/* ---- refusals and edges ---- */

static struct type long_type = {.kind = TYPE_LONG};
static struct type fixed_type = {.kind = TYPE_FIXED, .length = 3};
static struct type double_type = {.kind = TYPE_DOUBLE};

static struct manifest_entry plain_entry(void)
{
	struct manifest_entry e = {.status = ENTRY_ADDED,
				   .snapshot_id = SNAPSHOT_NONE,
				   .seq = SEQ_NONE,
				   .file_seq = SEQ_NONE,
				   .file = content_file_empty()};
	e.file.path = STRV("s3://b/f.parquet");
	e.file.format = STRV("PARQUET");
	e.file.record_count = 5;
	e.file.file_size = 99;
	return e;
}

static struct manifest_entry dv_entry(void)
{
	struct manifest_entry e = plain_entry();
	e.file.content = CONTENT_POSITION_DELETES;
	e.file.format = STRV("puffin");
	e.file.referenced_data_file = STRV("s3://b/f.parquet");
	e.file.content_offset = 4;
	e.file.content_size = 40;
	return e;
}

static struct manifest_params plain_params(int version)
{
	return (struct manifest_params){
		.format_version = version,
		.schema = STRV("{\"type\":\"struct\",\"fields\":[]}"),
		.spec_fields = STRV("[]"),
		.snapshot_id = SNAPSHOT_NONE,
		.codec = CODEC_NULL,
	};
}

static enum status try_write(const struct manifest_params *p, const struct manifest_entry *e,
			     struct manifest_file *ret_row, struct err *err)
{
	struct arena a;
	struct buf out;
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	enum status st = manifest_write(p, &e, e ? 1 : 0, &out, &a, ret_row, err);
	ret_row->partitions = NULL;
	buf_fini(&out);
	arena_fini(&a);
	return st;
}

static void refused(const struct manifest_params *p, const struct manifest_entry *e,
		    const char *field)
{
	struct manifest_file row;
	struct err err = {0};
	UNIT_STATUS(try_write(p, e, &row, &err), ST_INTERNAL);
	ck_assert_msg(strstr(err.field, field) != NULL, "%s: field is %s (%s)", field, err.field,
		      err.msg);
}

START_TEST(refusals)
{
	struct manifest_params v1 = plain_params(1), v2 = plain_params(2), v3 = plain_params(3);
	struct manifest_params d2 = v2, d3 = v3;
	d2.content = d3.content = MANIFEST_DELETES;
	struct manifest_file row;
	struct err err = {0};
	struct manifest_entry e = plain_entry(), x;
	UNIT_OK(try_write(&v2, &e, &row, &err), &err);
	ck_assert_int_eq(row.added_files, 1);
	ck_assert_int_eq(row.added_rows, 5);
	refused(&v2, NULL, "entries");
	refused(&v1, &e, "snapshot_id");
	e.status = ENTRY_EXISTING;
	refused(&v2, &e, "snapshot_id");
	e.snapshot_id = 1;
	refused(&v2, &e, "sequence_number");
	e.seq = 4;
	refused(&v2, &e, "file_sequence_number");
	e.file_seq = SEQ_UNKNOWN;
	UNIT_OK(try_write(&v2, &e, &row, &err), &err);
	ck_assert_int_eq(row.min_seq, 4);
	e.status = ENTRY_DELETED;
	UNIT_OK(try_write(&v2, &e, &row, &err), &err);
	/* A deleted file keeps no number alive. */
	ck_assert_int_eq(row.min_seq, SEQ_NONE);
	e = plain_entry();
	e.seq = 3;
	UNIT_OK(try_write(&v3, &e, &row, &err), &err);
	ck_assert_int_eq(row.min_seq, 3);

	x = plain_entry();
	x.file.path.n = 0;
	refused(&v3, &x, "file_path");
	x = plain_entry();
	x.file.record_count = -1;
	refused(&v3, &x, "record_count");
	x = plain_entry();
	x.file.spec_id = 1;
	refused(&v3, &x, "partition");
	x = plain_entry();
	x.file.content = CONTENT_EQUALITY_DELETES;
	refused(&d3, &x, "equality_ids");
	int32_t ids[] = {1};
	x.file.equality_ids = ids;
	x.file.n_equality_ids = 1;
	refused(&v3, &x, "content");
	UNIT_OK(try_write(&d3, &x, &row, &err), &err);
	x.file.first_row_id = 1;
	refused(&d3, &x, "first_row_id");
	x = plain_entry();
	refused(&d3, &x, "content");
	x.file.content_offset = 4;
	refused(&v3, &x, "content_offset");

	x = dv_entry();
	UNIT_OK(try_write(&d3, &x, &row, &err), &err);
	refused(&d2, &x, "file_format");
	x.file.referenced_data_file = (struct strv){NULL, 0};
	refused(&d3, &x, "referenced_data_file");
	x = dv_entry();
	x.file.content_size = OFFSET_NONE;
	refused(&d3, &x, "content_size_in_bytes");
	x = dv_entry();
	x.file.content_offset = OFFSET_NONE;
	refused(&d3, &x, "content_offset");
	x = dv_entry();
	x.file.format = STRV("PARQUET");
	refused(&d3, &x, "file_format");
}
END_TEST

/* Rows that pass 63 bits, and a buf that is too small. */
START_TEST(limits)
{
	struct manifest_params p = plain_params(2);
	struct manifest_entry e = plain_entry();
	e.file.record_count = INT64_MAX / 2 + 1;
	const struct manifest_entry *two[] = {&e, &e};
	struct arena a;
	struct buf out;
	struct manifest_file row;
	struct err err = {0};
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	UNIT_STATUS(manifest_write(&p, two, 2, &out, &a, &row, &err), ST_LIMIT);
	ck_assert(strstr(err.field, "record_count") != NULL);
	size_t whole = out.n;
	buf_fini(&out);
	for (size_t max = 0; max < whole; max += 97) {
		buf_init(&out, max);
		UNIT_STATUS(manifest_write(&p, two, 1, &out, &a, &row, &err), ST_LIMIT);
		buf_fini(&out);
	}
	arena_fini(&a);
}
END_TEST

/* fixed values, NaN only, empty-string bounds, and two fields whose sanitised names meet. */
START_TEST(tuples)
{
	struct field fields[] = {
		{.id = 1000, .name = STRV("a b"), .type = &fixed_type},
		{.id = 1001, .name = STRV("a_x20b"), .type = &double_type},
		{.id = 1002, .name = STRV("a_b"), .type = &fixed_type},
		{.id = 1003, .name = STRV("a b"), .type = &long_type},
		{.id = 1004, .name = STRV("\U0001f600"), .type = &long_type},
	};
	static const uint8_t abc[] = {1, 2, 3}, nan[] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
	static const uint8_t max[] = {255, 255, 255, 255, 255, 255, 255, 127};
	struct value v[] = {
		{.b = {abc, 3}}, {.b = {nan, 8}}, VALUE_NULL, {.b = {max, 8}}, VALUE_NULL};
	struct manifest_params p = plain_params(3);
	p.partition = fields;
	p.n_partition = ARRAY_SIZE(fields);
	struct manifest_entry e = plain_entry();
	e.file.partition = (struct tuple){v, ARRAY_SIZE(v)};
	const struct manifest_entry *one = &e;
	struct arena a;
	struct buf out;
	struct manifest_file row;
	struct manifest *m = NULL;
	struct err err = {0};
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	UNIT_OK(manifest_write(&p, &one, 1, &out, &a, &row, &err), &err);
	ck_assert(bytes_eq(row.partitions[0].lower, v[0].b) && !row.partitions[0].contains_nan);
	ck_assert(row.partitions[1].contains_nan && !row.partitions[1].lower.p);
	ck_assert(row.partitions[2].contains_null && !row.partitions[2].upper.p);
	row.seq = 1;
	row.added_snapshot_id = 9;
	UNIT_OK(manifest_read(buf_bytes(&out), &row, fields, ARRAY_SIZE(fields), LIMIT, &m, &err),
		&err);
	ck_assert_int_eq(m->entries[0].snapshot_id, 9);
	ck_assert(tuple_eq(&m->entries[0].file.partition, &e.file.partition));
	manifest_unref(m);
	/* The names that an Avro parser sees. */
	struct jdoc *doc = header_json(buf_bytes(&out), &a, "avro.schema");
	const struct jval *file = jval_at(jval_get(jdoc_root(doc), "fields"), 4);
	const struct jval *part = jval_at(jval_get(jval_get(file, "type"), "fields"), 3);
	const struct jval *cols = jval_get(jval_get(part, "type"), "fields");
	/* The second one is legal as it is, yet taken. */
	static const char *const names[] = {"a_x20b", "a_x20b_1001", "a_b", "a_x20b_1003",
					    "_xD83D_xDE00"};
	ck_assert_uint_eq(jval_count(cols), 5);
	for (size_t i = 0; i < 5; i++) {
		struct strv name = {"", 0};
		ck_assert(jval_as_str(jval_get(jval_at(cols, i), "name"), &name));
		ck_assert_msg(strv_eq(name, strv_of(names[i])), "%.*s", STRV_ARG(name));
	}
	jdoc_free(doc);
	/* A value of another size than its type's is no partition value. */
	v[0].b.n = 2;
	buf_clear(&out);
	UNIT_STATUS(manifest_write(&p, &one, 1, &out, &a, &row, &err), ST_INTERNAL);
	buf_fini(&out);
	arena_fini(&a);
}
END_TEST

/* Bounds that are right for both orders of UUIDs, or none at all. */
START_TEST(uuid_bounds)
{
	static struct type uuid = {.kind = TYPE_UUID};
	struct field field = {.id = 1000, .name = STRV("u"), .type = &uuid};
	static const uint8_t low[16] = {1}, high[16] = {2}, top[16] = {0x80},
			     mid[16] = {1, [8] = 0x80};
	static const struct {
		const uint8_t *x, *y;
		bool bounds;
	} cases[] = {{low, high, true}, {low, top, false}, {low, mid, false}, {top, top, true}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct value v[2] = {{.b = {cases[i].x, 16}}, {.b = {cases[i].y, 16}}};
		struct manifest_entry e[2] = {plain_entry(), plain_entry()};
		e[0].file.partition = (struct tuple){&v[0], 1};
		e[1].file.partition = (struct tuple){&v[1], 1};
		const struct manifest_entry *list[] = {&e[0], &e[1], &e[0]};
		struct manifest_params p = plain_params(3);
		p.partition = &field;
		p.n_partition = 1;
		struct arena a;
		struct buf out;
		struct manifest_file row;
		struct err err = {0};
		arena_init(&a, LIMIT);
		buf_init(&out, LIMIT);
		UNIT_OK(manifest_write(&p, list, 3, &out, &a, &row, &err), &err);
		ck_assert_int_eq(row.partitions != NULL, cases[i].bounds);
		ck_assert_uint_eq(row.n_partitions, cases[i].bounds);
		if (cases[i].bounds) {
			ck_assert(memcmp(row.partitions[0].lower.p, cases[i].x, 16) == 0);
			ck_assert(memcmp(row.partitions[0].upper.p, cases[i].y, 16) == 0);
		}
		buf_fini(&out);
		arena_fini(&a);
	}
}
END_TEST

static struct bytes float_bytes(const struct type *t, double d, struct arena *a)
{
	struct value v;
	ck_assert(value_of_double(t, d, a, &v));
	return v.b;
}

/* NaN is no bound, infinities are, and a zero stands for both zeros. case BC-100 */
START_TEST(float_bounds)
{
	static struct type types[] = {{.kind = TYPE_FLOAT}, {.kind = TYPE_DOUBLE}};
	static const struct {
		double v[3];
		bool nan, bounds;
		double lower, upper;
	} cases[] = {
		{{(double)NAN, (double)NAN, (double)NAN}, true, false, 0, 0},
		{{0.0, 0.0, 0.0}, false, true, -0.0, 0.0},
		{{-0.0, -0.0, -0.0}, false, true, -0.0, 0.0},
		{{-0.0, 0.0, (double)NAN}, true, true, -0.0, 0.0},
		{{0.0, 1.5, -0.0}, false, true, -0.0, 1.5},
		{{-2.0, -0.0, -1.0}, false, true, -2.0, 0.0},
		{{(double)INFINITY, 0.0, (double)-INFINITY},
		 false,
		 true,
		 (double)-INFINITY,
		 (double)INFINITY},
		{{(double)INFINITY, (double)NAN, 3.0}, true, true, 3.0, (double)INFINITY},
	};
	for (size_t n = 0; n < 2 * ARRAY_SIZE(cases); n++) {
		size_t i = n / 2;
		struct type *t = &types[n % 2];
		struct field field = {.id = 1000, .name = STRV("d"), .type = t};
		struct manifest_params p = plain_params(3);
		struct manifest_entry e[3];
		const struct manifest_entry *list[] = {&e[0], &e[1], &e[2]};
		struct value v[3];
		struct arena a;
		struct buf out;
		struct manifest_file row;
		struct err err = {0};
		arena_init(&a, LIMIT);
		buf_init(&out, LIMIT);
		p.partition = &field;
		p.n_partition = 1;
		for (size_t k = 0; k < 3; k++) {
			v[k] = (struct value){.b = float_bytes(t, cases[i].v[k], &a)};
			e[k] = plain_entry();
			e[k].file.partition = (struct tuple){&v[k], 1};
		}
		UNIT_OK(manifest_write(&p, list, 3, &out, &a, &row, &err), &err);
		const struct partition_summary *s = &row.partitions[0];
		ck_assert(s->has_contains_nan && s->contains_nan == cases[i].nan);
		ck_assert((s->lower.p != NULL) == cases[i].bounds);
		if (cases[i].bounds) {
			ck_assert(bytes_eq(s->lower, float_bytes(t, cases[i].lower, &a)));
			ck_assert(bytes_eq(s->upper, float_bytes(t, cases[i].upper, &a)));
		}
		buf_fini(&out);
		arena_fini(&a);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("manifest_write");
	TCase *t = tcase_create("manifest_write");
	tcase_add_loop_test(t, same_as_java, 0, 6);
	tcase_add_loop_test(t, same_schema, 2, 4);
	tcase_add_test(t, check_v1);
	tcase_add_loop_test(t, oracle, 1, 4);
	tcase_add_test(t, refusals);
	tcase_add_test(t, limits);
	tcase_add_test(t, tuples);
	tcase_add_test(t, uuid_bounds);
	tcase_add_test(t, float_bounds);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
