/* Manifests against files that the Java library wrote and read. */
#include "proto/avro/manifest.h"

#include "proto/avro/avro_container.h"
#include "proto/avro/manifest_cols.h"
#include "proto/avro/manifest_list.h"
#include "tests/unit/avro_golden.h"
#include "tests/unit/unit.h"

/* Every row, entry and inherited value of Java's files, versions 1 to 3. */
START_TEST(java)
{
	struct golden g = {0};
	golden_open(&g, _i);
	ck_assert_int_eq(g.list.format_version, _i);
	ck_assert_uint_eq(jval_count(g.rows), g.list.n);
	ck_assert_uint_eq(g.list.n, _i == 1 ? 2 : 3);
	for (size_t i = 0; i < g.list.n; i++) {
		const struct jval *o = jval_at(g.rows, i), *entries = jval_get(o, "entries");
		golden_row(o, &g.list.rows[i]);
		struct manifest *m = golden_manifest(&g, &g.list.rows[i]);
		ck_assert_int_eq(m->format_version, _i);
		ck_assert_uint_eq(m->n, jval_count(entries));
		for (size_t k = 0; k < m->n; k++)
			golden_entry(jval_at(entries, k), &m->entries[k]);
		ck_assert_ptr_eq(manifest_ref(m), m);
		manifest_unref(m);
		manifest_unref(m);
	}
	golden_close(&g);
}
END_TEST

/* ---- files that no writer of ours would make ---- */

#define LIMIT ((size_t)1 << 20)

struct raw {
	struct arena a;
	struct buf file;
	struct manifest_file row;
};

static struct manifest_entry data_entry(enum entry_status status)
{
	struct manifest_entry e = {.status = status,
				   .snapshot_id = SNAPSHOT_NONE,
				   .seq = SEQ_NONE,
				   .file_seq = SEQ_NONE,
				   .file = content_file_empty()};
	e.file.path = STRV("s3://b/f.parquet");
	e.file.format = STRV("parquet");
	e.file.record_count = 10;
	return e;
}

/* Writes entries as they are, without any of the writer's rules. header: NULL-ended pairs. */
static void raw_init(struct raw *r, const struct manifest_entry *e, size_t n,
		     const char *const *header)
{
	struct avro_writer w;
	struct manifest_cols cols;
	struct jwrite j;
	struct buf schema;
	struct err err = {0};
	struct avro_meta meta[8] = {{STRV("avro.schema"), {NULL, 0}}};
	size_t n_meta = 1;
	arena_init(&r->a, LIMIT);
	buf_init(&r->file, LIMIT);
	buf_init(&schema, LIMIT);
	ck_assert(manifest_cols_entry(NULL, 0, &r->a, &cols, NULL));
	jwrite_init(&j, &schema);
	avro_record_schema(&j, "manifest_entry", cols.cols, cols.n, 3);
	meta[0].value = buf_strv(&schema);
	for (; header && *header; header += 2)
		meta[n_meta++] = (struct avro_meta){strv_of(header[0]), strv_of(header[1])};
	UNIT_OK(avro_container_begin(&w, &r->file, CODEC_NULL, (const uint8_t *)"0123456789abcdef",
				     meta, n_meta, &err),
		&err);
	for (size_t i = 0; i < n; i++) {
		ck_assert_ptr_null(avro_record_put(&w.block, cols.cols, cols.n, 3, &e[i]));
		UNIT_OK(avro_container_datum(&w, &err), &err);
	}
	UNIT_OK(avro_container_end(&w, &err), &err);
	avro_container_fini(&w);
	buf_fini(&schema);
	r->row = manifest_file_empty();
	r->row.seq = 34;
	r->row.added_snapshot_id = 77;
	r->row.first_row_id = 1000;
}

static void raw_fini(struct raw *r)
{
	buf_fini(&r->file);
	arena_fini(&r->a);
}

static struct manifest *raw_read(struct raw *r)
{
	struct manifest *m = NULL;
	struct err err = {0};
	UNIT_OK(manifest_read(buf_bytes(&r->file), &r->row, NULL, 0, LIMIT, &m, &err), &err);
	return m;
}

static void raw_refuse(struct raw *r, const char *field)
{
	struct manifest *m = NULL;
	struct err err = {0};
	UNIT_STATUS(manifest_read(buf_bytes(&r->file), &r->row, NULL, 0, LIMIT, &m, &err),
		    ST_CORRUPT);
	ck_assert_msg(strstr(err.field, field) != NULL, "%s: field %s, %s", field, err.field,
		      err.msg);
	ck_assert_ptr_null(m);
}

/* Spec, "First Row ID Inheritance": explicit ids do not move the counter, deleted entries take
 * nothing, and without an id in the row every file is without. */
START_TEST(row_ids)
{
	struct manifest_entry e[5] = {data_entry(ENTRY_ADDED), data_entry(ENTRY_EXISTING),
				      data_entry(ENTRY_DELETED), data_entry(ENTRY_EXISTING),
				      data_entry(ENTRY_ADDED)};
	for (size_t i = 1; i < 4; i++)
		e[i].seq = e[i].file_seq = 12;
	e[1].file.first_row_id = 500;
	struct raw r;
	raw_init(&r, e, 5, NULL);
	struct manifest *m = raw_read(&r);
	static const int64_t want[] = {1000, 500, ROW_ID_NONE, 1010, 1020};
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(m->entries[i].file.first_row_id, want[i]);
	manifest_unref(m);
	r.row.first_row_id = ROW_ID_NONE;
	m = raw_read(&r);
	for (size_t i = 0; i < 5; i++)
		ck_assert_int_eq(m->entries[i].file.first_row_id, ROW_ID_NONE);
	manifest_unref(m);
	r.row.first_row_id = INT64_MAX - 15;
	raw_refuse(&r, "first_row_id");
	raw_fini(&r);
}
END_TEST

/* Spec, "Sequence Number Inheritance": only added files inherit; in a manifest numbered 0, which
 * comes from version 1, all do. */
START_TEST(sequence_numbers)
{
	struct manifest_entry e[3] = {data_entry(ENTRY_ADDED), data_entry(ENTRY_ADDED),
				      data_entry(ENTRY_EXISTING)};
	e[1].seq = 5;
	e[1].snapshot_id = 3;
	e[2].seq = 7; /* its file number was not recorded */
	struct raw r;
	raw_init(&r, e, 3, NULL);
	struct manifest *m = raw_read(&r);
	static const int64_t seq[] = {34, 5, 7}, file[] = {34, 34, SEQ_UNKNOWN};
	static const int64_t snapshot[] = {77, 3, 77};
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(m->entries[i].seq, seq[i]);
		ck_assert_int_eq(m->entries[i].file_seq, file[i]);
		ck_assert_int_eq(m->entries[i].snapshot_id, snapshot[i]);
	}
	ck_assert_int_eq(m->format_version, 1); /* nothing said otherwise */
	ck_assert_int_eq(m->schema_id, SCHEMA_ID_NONE);
	manifest_unref(m);
	raw_fini(&r);
	e[2].seq = SEQ_NONE;
	raw_init(&r, e, 3, NULL);
	raw_refuse(&r, "entries[2].sequence_number");
	r.row.seq = 0;
	m = raw_read(&r);
	ck_assert_int_eq(m->entries[2].seq, 0);
	ck_assert_int_eq(m->entries[2].file_seq, 0);
	manifest_unref(m);
	raw_fini(&r);
}
END_TEST

static struct manifest_entry dv_entry(void)
{
	struct manifest_entry e = data_entry(ENTRY_ADDED);
	e.file.content = CONTENT_POSITION_DELETES;
	e.file.format = STRV("PUFFIN");
	e.file.referenced_data_file = STRV("s3://b/f.parquet");
	e.file.content_offset = 4;
	e.file.content_size = 40;
	return e;
}

static void one_refused(struct manifest_entry e, enum manifest_content content, const char *field)
{
	struct raw r;
	raw_init(&r, &e, 1, NULL);
	r.row.content = content;
	raw_refuse(&r, field);
	raw_fini(&r);
}

START_TEST(vectors)
{
	struct manifest_entry e = dv_entry(), x;
	struct raw r;
	/* A number of its own in drafts of version 3; and an id that deletes cannot have. */
	uint32_t legacy = 3;
	memcpy(&e.file.content, &legacy, sizeof legacy);
	e.file.first_row_id = 7;
	raw_init(&r, &e, 1, NULL);
	r.row.content = MANIFEST_DELETES;
	struct manifest *m = raw_read(&r);
	ck_assert_int_eq(m->entries[0].file.content, CONTENT_POSITION_DELETES);
	ck_assert(content_file_is_dv(&m->entries[0].file));
	ck_assert_int_eq(m->entries[0].file.first_row_id, ROW_ID_NONE);
	manifest_unref(m);
	raw_fini(&r);
	e.file.content_offset = OFFSET_NONE;
	one_refused(e, MANIFEST_DELETES, "entries[0].content");
	one_refused(dv_entry(), MANIFEST_DATA, "entries[0].content");
	x = dv_entry();
	x.file.content_size = OFFSET_NONE;
	one_refused(x, MANIFEST_DELETES, "content_size_in_bytes");
	x = dv_entry();
	x.file.content_offset = -1;
	one_refused(x, MANIFEST_DELETES, "content_offset");
	x = dv_entry();
	x.file.referenced_data_file = (struct strv){NULL, 0};
	one_refused(x, MANIFEST_DELETES, "referenced_data_file");
	x = dv_entry();
	x.file.format = STRV("parquet");
	one_refused(x, MANIFEST_DELETES, "file_format");
	x = dv_entry();
	x.file.content_offset = x.file.content_size = OFFSET_NONE;
	one_refused(x, MANIFEST_DELETES, "content_offset");
	uint32_t none = 4;
	x = dv_entry();
	memcpy(&x.file.content, &none, sizeof none);
	one_refused(x, MANIFEST_DELETES, "entries[0].content");
}
END_TEST

START_TEST(entries)
{
	struct manifest_entry x = data_entry(ENTRY_ADDED);
	uint32_t none = 3;
	memcpy(&x.status, &none, sizeof none);
	one_refused(x, MANIFEST_DATA, "status");
	x = data_entry(ENTRY_ADDED);
	x.file.record_count = -1;
	one_refused(x, MANIFEST_DATA, "record_count");
	x = data_entry(ENTRY_ADDED);
	x.file.file_size = -5;
	one_refused(x, MANIFEST_DATA, "file_size_in_bytes");
	x = data_entry(ENTRY_ADDED);
	x.file.path = STRV("");
	one_refused(x, MANIFEST_DATA, "file_path");
	x = data_entry(ENTRY_ADDED);
	x.file.content = CONTENT_EQUALITY_DELETES;
	one_refused(x, MANIFEST_DELETES, "equality_ids");
	x = data_entry(ENTRY_ADDED);
	one_refused(x, MANIFEST_DELETES, "content");
}
END_TEST

START_TEST(headers)
{
	static const struct {
		const char *header[3];
		const char *field;
	} cases[] = {
		{{"content", "deletes"}, "content"},
		{{"content", "junk"}, "content"},
		{{"partition-spec-id", "1"}, "partition-spec-id"},
		{{"partition-spec-id", "x"}, "partition-spec-id"},
		{{"partition-spec-id", "4294967296"}, "partition-spec-id"},
		{{"schema-id", ""}, "schema-id"},
		{{"format-version", "two"}, "format-version"},
		{{"schema", "\xff"}, "schema"},
	};
	struct manifest_entry e = data_entry(ENTRY_ADDED);
	struct raw r;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		raw_init(&r, &e, 1, cases[i].header);
		raw_refuse(&r, cases[i].field);
		raw_fini(&r);
	}
	static const char *const v4[] = {"format-version", "4", NULL};
	struct manifest *m = NULL;
	struct err err = {0};
	raw_init(&r, &e, 1, v4);
	r.row.path = STRV("s3://b/metadata/x-m0.avro");
	UNIT_STATUS(manifest_read(buf_bytes(&r.file), &r.row, NULL, 0, LIMIT, &m, &err),
		    ST_UNSUPPORTED);
	ck_assert_str_eq(err.field, "x-m0.avro.format-version");
	ck_assert_str_eq(err.detail, "manifest s3://b/metadata/x-m0.avro");
	raw_fini(&r);
}
END_TEST

/* Every cut and every flipped byte of a real file, exactly sized so that a read past the end is
 * seen; and every memory limit. */
START_TEST(damaged)
{
	struct golden g = {0};
	golden_open(&g, 3);
	const struct manifest_file *row = &g.list.rows[2];
	struct buf file;
	golden_manifest_bytes(row, &file);
	size_t s = golden_spec(&g, row);
	for (size_t n = 0; n < file.n; n += n < file.n - 800 ? 61 : 1) {
		struct manifest *m = NULL;
		struct err err = {0};
		uint8_t *copy = base_alloc(n);
		memcpy(copy, file.p, n);
		enum status st = manifest_read((struct bytes){copy, n}, row, g.partition[s],
					       g.specs[s].n, GOLDEN_LIMIT, &m, &err);
		/* Cut exactly behind the header it is a file without entries. */
		ck_assert(st == ST_CORRUPT || (st == ST_OK && m->n == 0));
		manifest_unref(m);
		base_free(copy);
		m = NULL;
		file.p[n] ^= 0x41;
		st = manifest_read(buf_bytes(&file), row, g.partition[s], g.specs[s].n, 1 << 20, &m,
				   &err);
		manifest_unref(m);
		file.p[n] ^= 0x41;
	}
	for (size_t limit = 0; limit < 20000; limit += 1111) {
		struct manifest *m = NULL;
		UNIT_STATUS(manifest_read(buf_bytes(&file), row, g.partition[s], g.specs[s].n,
					  limit, &m, NULL),
			    ST_LIMIT);
	}
	buf_fini(&file);
	golden_close(&g);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("manifest");
	TCase *t = tcase_create("manifest");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, java, 1, 4);
	tcase_add_test(t, row_ids);
	tcase_add_test(t, sequence_numbers);
	tcase_add_test(t, vectors);
	tcase_add_test(t, entries);
	tcase_add_test(t, headers);
	tcase_add_test(t, damaged);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
