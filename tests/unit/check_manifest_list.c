/* Manifest lists against Java's, and the rules of writing one. Reading Java's rows is in
 * check_manifest.c. */
#include "proto/avro/manifest_list.h"

#include "proto/avro/avro_container.h"
#include "tests/unit/avro_golden.h"
#include "tests/unit/unit.h"

#define LIMIT ((size_t)64 << 20)

static struct manifest_list_params params_of(int version)
{
	return (struct manifest_list_params){
		.format_version = version,
		.snapshot_id = 3055729675574597004,
		.parent_snapshot_id = version == 2 ? SNAPSHOT_NONE : 3051729675574597004,
		.seq = 34,
		.first_row_id = 1000,
		.codec = CODEC_DEFLATE,
		.sync = "sync marker 1234",
	};
}

/* Java's rows written by us read as Java's, under the same header. */
START_TEST(same_as_java)
{
	struct golden g = {0};
	struct err err = {0};
	struct buf out, java;
	struct manifest_list list;
	char name[32];
	golden_open(&g, _i);
	buf_init(&out, LIMIT);
	struct manifest_list_params p = params_of(_i);
	UNIT_OK(manifest_list_write(&p, g.list.rows, g.list.n, &out, &err), &err);
	UNIT_OK(manifest_list_read(buf_bytes(&out), &g.a, &list, &err), &err);
	ck_assert_uint_eq(list.n, jval_count(g.rows));
	for (size_t i = 0; i < list.n; i++)
		golden_row(jval_at(g.rows, i), &list.rows[i]);
	ck_assert_int_eq(list.format_version, _i);
	ck_assert_int_eq(list.snapshot_id, p.snapshot_id);
	ck_assert_int_eq(list.parent_snapshot_id, p.parent_snapshot_id);
	ck_assert_int_eq(list.seq, _i == 1 ? SEQ_NONE : 34);
	ck_assert_int_eq(list.first_row_id, _i == 3 ? 1000 : ROW_ID_NONE);
	/* Header keys and values, beside the two schemas. */
	struct avro_container jc, oc;
	snprintf(name, sizeof name, "v%d-list.avro", _i);
	golden_load(name, &java);
	UNIT_OK(avro_container_open(buf_bytes(&java), &g.a, &jc, &err), &err);
	UNIT_OK(avro_container_open(buf_bytes(&out), &g.a, &oc, &err), &err);
	ck_assert_uint_eq(jc.n_meta, oc.n_meta);
	for (size_t i = 0; i < jc.n_meta; i++) {
		struct strv v;
		ck_assert(avro_container_meta(&oc, jc.meta[i].key, &v));
		if (!strv_ends(jc.meta[i].key, STRV(".schema")))
			ck_assert_msg(strv_eq(v, jc.meta[i].value), "%.*s: %.*s",
				      STRV_ARG(jc.meta[i].key), STRV_ARG(v));
	}
	buf_fini(&java);
	buf_fini(&out);
	golden_close(&g);
}
END_TEST

/* Ids and element ids in the order of Java's file, for both schemas of the header. */
static size_t ids_of(const struct avro_container *c, const char *key, struct buf *ret_ids)
{
	struct strv text;
	ck_assert(avro_container_meta(c, strv_of(key), &text));
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++) {
		struct strv rest = strv_sub(text, i, text.n);
		if (!strv_starts(rest, STRV("id\":")) || i == 0)
			continue;
		rest = strv_sub(rest, 4, rest.n);
		while (rest.n && rest.p[0] >= '0' && rest.p[0] <= '9') {
			buf_putc(ret_ids, (uint8_t)rest.p[0]);
			rest = strv_sub(rest, 1, rest.n);
		}
		buf_putc(ret_ids, ' ');
		n++;
	}
	return n;
}

START_TEST(same_ids)
{
	static const char *const keys[] = {"avro.schema", "iceberg.schema"};
	struct golden g = {0};
	struct err err = {0};
	struct buf out, java, x, y;
	struct avro_container jc, oc;
	char name[32];
	golden_open(&g, _i);
	buf_init(&out, LIMIT);
	struct manifest_list_params p = params_of(_i);
	UNIT_OK(manifest_list_write(&p, g.list.rows, g.list.n, &out, &err), &err);
	snprintf(name, sizeof name, "v%d-list.avro", _i);
	golden_load(name, &java);
	UNIT_OK(avro_container_open(buf_bytes(&java), &g.a, &jc, &err), &err);
	UNIT_OK(avro_container_open(buf_bytes(&out), &g.a, &oc, &err), &err);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		buf_init(&x, LIMIT);
		buf_init(&y, LIMIT);
		ck_assert_uint_eq(ids_of(&jc, keys[i], &x), ids_of(&oc, keys[i], &y));
		ck_assert_uint_ge(x.n, 12 * 4);
		ck_assert_msg(strv_eq(buf_strv(&x), buf_strv(&y)), "%s: %.*s, ours %.*s", keys[i],
			      STRV_ARG(buf_strv(&x)), STRV_ARG(buf_strv(&y)));
		buf_fini(&x);
		buf_fini(&y);
	}
	buf_fini(&java);
	buf_fini(&out);
	golden_close(&g);
}
END_TEST

/* ---- rules ---- */

static struct manifest_file row_of(enum manifest_content content)
{
	struct manifest_file r = manifest_file_empty();
	r.path = STRV("s3://b/m.avro");
	r.length = 5000;
	r.content = content;
	r.has_file_counts = r.has_row_counts = true;
	if (content == MANIFEST_DATA)
		r.first_row_id = 1000;
	return r;
}

static enum status try_write(const struct manifest_list_params *p, const struct manifest_file *row,
			     struct manifest_file *ret_row, struct arena *a, struct err *err)
{
	struct buf out;
	struct manifest_list list = {0};
	buf_init(&out, LIMIT);
	enum status st = manifest_list_write(p, row, 1, &out, err);
	if (st == ST_OK) {
		UNIT_OK(manifest_list_read(buf_bytes(&out), a, &list, err), err);
		ck_assert_uint_eq(list.n, 1);
		*ret_row = list.rows[0];
	}
	buf_fini(&out);
	return st;
}

START_TEST(rules)
{
	struct manifest_list_params p1 = params_of(1), p2 = params_of(2), p3 = params_of(3);
	struct arena a;
	struct err err = {0};
	struct manifest_file r = row_of(MANIFEST_DATA), got;
	arena_init(&a, LIMIT);
	/* New manifests take the list's numbers. */
	UNIT_OK(try_write(&p3, &r, &got, &a, &err), &err);
	ck_assert_int_eq(got.seq, 34);
	ck_assert_int_eq(got.min_seq, 34);
	ck_assert_int_eq(got.added_snapshot_id, p3.snapshot_id);
	ck_assert_int_eq(got.first_row_id, 1000);
	ck_assert(got.partitions == NULL && got.has_file_counts);
	r.min_seq = 5;
	UNIT_OK(try_write(&p3, &r, &got, &a, &err), &err);
	ck_assert_int_eq(got.min_seq, 5);
	/* Kept ones must have their own. */
	r.added_snapshot_id = 1;
	UNIT_STATUS(try_write(&p3, &r, &got, &a, &err), ST_INTERNAL);
	ck_assert_str_eq(err.field, "manifests[0].sequence_number");
	r.seq = 9;
	UNIT_OK(try_write(&p3, &r, &got, &a, &err), &err);
	ck_assert_int_eq(got.seq, 9);
	ck_assert_int_eq(got.added_snapshot_id, 1);
	r.min_seq = SEQ_NONE;
	UNIT_OK(try_write(&p3, &r, &got, &a, &err), &err);
	ck_assert_int_eq(got.min_seq, 9);
	/* Row ids: on every data manifest, on no other, and not before version 3. */
	r = row_of(MANIFEST_DATA);
	r.first_row_id = ROW_ID_NONE;
	UNIT_STATUS(try_write(&p3, &r, &got, &a, &err), ST_INTERNAL);
	ck_assert_str_eq(err.field, "manifests[0].first_row_id");
	UNIT_OK(try_write(&p2, &r, &got, &a, &err), &err);
	r = row_of(MANIFEST_DELETES);
	UNIT_OK(try_write(&p3, &r, &got, &a, &err), &err);
	ck_assert_int_eq(got.content, MANIFEST_DELETES);
	r.first_row_id = 5;
	UNIT_STATUS(try_write(&p3, &r, &got, &a, &err), ST_INTERNAL);
	UNIT_STATUS(try_write(&p2, &r, &got, &a, &err), ST_INTERNAL);
	r.first_row_id = ROW_ID_NONE;
	UNIT_STATUS(try_write(&p1, &r, &got, &a, &err), ST_INTERNAL);
	ck_assert_str_eq(err.field, "manifests[0].content");
	/* Counts may be missing in version 1 only. */
	r = row_of(MANIFEST_DATA);
	r.first_row_id = ROW_ID_NONE;
	r.has_row_counts = false;
	r.added_rows = 4;
	UNIT_STATUS(try_write(&p2, &r, &got, &a, &err), ST_INTERNAL);
	UNIT_OK(try_write(&p1, &r, &got, &a, &err), &err);
	ck_assert(got.has_file_counts && !got.has_row_counts && got.added_rows == 0);
	ck_assert_int_eq(got.seq, 0);
	ck_assert_int_eq(got.content, MANIFEST_DATA);
	arena_fini(&a);
}
END_TEST

/* Summaries in all their forms survive a copy, a write and a read. */
START_TEST(summaries)
{
	struct manifest_list_params p = params_of(2);
	struct partition_summary s[] = {
		{.contains_null = true},
		{.contains_nan = true, .has_contains_nan = true},
		{.has_contains_nan = true,
		 .lower = {(const uint8_t *)"", 0},
		 .upper = {(const uint8_t *)"zz", 2}},
	};
	struct arena a;
	struct err err = {0};
	struct manifest_file r = row_of(MANIFEST_DATA), copy, got;
	arena_init(&a, LIMIT);
	r.first_row_id = ROW_ID_NONE;
	r.partitions = s;
	r.n_partitions = ARRAY_SIZE(s);
	r.key_metadata = (struct bytes){(const uint8_t *)"k", 1};
	r.has_key_metadata = true;
	ck_assert(manifest_file_copy(&a, &r, &copy));
	memset(s, 0, sizeof s);
	UNIT_OK(try_write(&p, &copy, &got, &a, &err), &err);
	ck_assert_uint_eq(got.n_partitions, 3);
	const struct partition_summary *t = got.partitions;
	ck_assert(t[0].contains_null && !t[0].has_contains_nan && !t[0].lower.p && !t[0].upper.p);
	ck_assert(!t[1].contains_null && t[1].has_contains_nan && t[1].contains_nan);
	ck_assert(t[2].lower.p && t[2].lower.n == 0);
	ck_assert(strv_eq(bytes_strv(t[2].upper), STRV("zz")));
	ck_assert(got.has_key_metadata && got.key_metadata.n == 1);
	/* An empty list is not an absent one. */
	r.n_partitions = 0;
	UNIT_OK(try_write(&p, &r, &got, &a, &err), &err);
	ck_assert(got.partitions != NULL && got.n_partitions == 0);
	ck_assert(manifest_file_copy(&a, &got, &copy) && copy.partitions != NULL);
	r.partitions = NULL;
	UNIT_OK(try_write(&p, &r, &got, &a, &err), &err);
	ck_assert_ptr_null(got.partitions);
	arena_fini(&a);
}
END_TEST

START_TEST(empty)
{
	struct manifest_list_params p = params_of(3);
	struct manifest_list list;
	struct arena a;
	struct buf out;
	struct err err = {0};
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	UNIT_OK(manifest_list_write(&p, NULL, 0, &out, &err), &err);
	UNIT_OK(manifest_list_read(buf_bytes(&out), &a, &list, &err), &err);
	ck_assert_uint_eq(list.n, 0);
	ck_assert_int_eq(list.first_row_id, 1000);
	size_t whole = out.n;
	buf_fini(&out);
	for (size_t max = 0; max < whole; max += 211) {
		buf_init(&out, max);
		UNIT_STATUS(manifest_list_write(&p, NULL, 0, &out, &err), ST_LIMIT);
		buf_fini(&out);
	}
	arena_fini(&a);
}
END_TEST

/* Old names, old order, no header keys, counts missing or null: columns go by id. DuckDB leaves the
 * header keys out as well, and something in the row id of a delete manifest. */
START_TEST(foreign)
{
	static const char schema[] =
		"{\"type\":\"record\",\"name\":\"manifest_file\",\"fields\":["
		"{\"name\":\"added_data_files_count\",\"type\":[\"int\",\"null\"],\"field-id\":504}"
		","
		"{\"name\":\"manifest_path\",\"type\":\"string\",\"field-id\":500},"
		"{\"name\":\"manifest_length\",\"type\":\"int\",\"field-id\":501},"
		"{\"name\":\"partition_spec_id\",\"type\":\"int\",\"field-id\":502},"
		"{\"name\":\"x\",\"type\":\"string\"},"
		"{\"name\":\"content\",\"type\":\"int\",\"field-id\":517},"
		"{\"name\":\"id\",\"type\":[\"null\",\"long\"],\"field-id\":520},"
		"{\"name\":\"added_snapshot_id\",\"type\":\"long\",\"field-id\":503},"
		"{\"name\":\"added_rows_count\",\"type\":\"long\",\"field-id\":512},"
		"{\"name\":\"existing_rows_count\",\"type\":\"long\",\"field-id\":513},"
		"{\"name\":\"deleted_rows_count\",\"type\":[\"null\",\"long\"],\"field-id\":514}]}";
	struct strv rows[] = {
		/* 1 file added; length 9, spec 2, deletes, id -1, snapshot 5; rows 1 2 3 */
		STRV("\x00\x02"
		     "\x02"
		     "p"
		     "\x12\x04"
		     "\x02"
		     "?"
		     "\x02"
		     "\x02\x01"
		     "\x0a"
		     "\x02\x04\x02\x06"),
		/* all rows but one */
		STRV("\x02"
		     "\x02"
		     "q"
		     "\x12\x04"
		     "\x02"
		     "?"
		     "\x00"
		     "\x00"
		     "\x0a"
		     "\x02\x04\x00"),
	};
	struct avro_writer w;
	struct avro_meta meta = {STRV("avro.schema"), strv_of(schema)};
	struct manifest_list list;
	struct arena a;
	struct buf out;
	struct err err = {0};
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	UNIT_OK(avro_container_begin(&w, &out, CODEC_DEFLATE, (const uint8_t *)schema, &meta, 1,
				     &err),
		&err);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_putv(&w.block, rows[i]);
		UNIT_OK(avro_container_datum(&w, &err), &err);
	}
	UNIT_OK(avro_container_end(&w, &err), &err);
	UNIT_OK(manifest_list_read(buf_bytes(&out), &a, &list, &err), &err);
	ck_assert_int_eq(list.format_version, 0);
	ck_assert_int_eq(list.snapshot_id, SNAPSHOT_NONE);
	ck_assert_uint_eq(list.n, 2);
	const struct manifest_file *r = list.rows;
	ck_assert(strv_eq(r[0].path, STRV("p")) && r[0].length == 9 && r[0].spec_id == 2);
	ck_assert(r[0].content == MANIFEST_DELETES && r[0].first_row_id == ROW_ID_NONE);
	ck_assert(!r[0].has_file_counts && r[0].added_files == 0);
	ck_assert(r[0].has_row_counts && r[0].added_rows == 1 && r[0].existing_rows == 2 &&
		  r[0].deleted_rows == 3);
	ck_assert(r[0].seq == 0 && r[0].min_seq == 0 && r[0].added_snapshot_id == 5);
	ck_assert(!r[1].has_row_counts && r[1].added_rows == 0 && !r[1].partitions);
	avro_container_fini(&w);
	buf_fini(&out);
	arena_fini(&a);
}
END_TEST

/* Every cut and every flipped byte of Java's file. */
START_TEST(damaged)
{
	struct buf file;
	struct arena a;
	arena_init(&a, 1 << 20);
	golden_load("v3-list.avro", &file);
	for (size_t n = 0; n < file.n; n += n < file.n - 700 ? 37 : 1) {
		struct manifest_list list = {0};
		struct err err = {0};
		uint8_t *copy = base_alloc(n);
		memcpy(copy, file.p, n);
		enum status st = manifest_list_read((struct bytes){copy, n}, &a, &list, &err);
		ck_assert(st == ST_CORRUPT || (st == ST_OK && list.n == 0));
		arena_reset(&a);
		base_free(copy);
		file.p[n] ^= 0x41;
		st = manifest_list_read(buf_bytes(&file), &a, &list, &err);
		ck_assert(st == ST_OK || err.st == st);
		arena_reset(&a);
		file.p[n] ^= 0x41;
	}
	buf_fini(&file);
	arena_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("manifest_list");
	TCase *t = tcase_create("manifest_list");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, same_as_java, 1, 4);
	tcase_add_loop_test(t, same_ids, 1, 4);
	tcase_add_test(t, rules);
	tcase_add_test(t, summaries);
	tcase_add_test(t, empty);
	tcase_add_test(t, foreign);
	tcase_add_test(t, damaged);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
