#include "proto/dv/puffin.h"

#include "proto/dv/dv_blob.h"
#include "tests/unit/golden.h"

#define GOLDEN "tests/golden/iceberg/puffin/"

static void parse_golden(const char *path, struct buf *file, struct arena *a, struct puffin_file *f)
{
	buf_init(file, 1 << 16);
	arena_init(a, 1 << 20);
	golden_read(path, file);
	struct err err = {0};
	UNIT_OK(puffin_parse_file(buf_bytes(file), ST_CORRUPT, a, f, &err), &err);
}

START_TEST(java_empty)
{
	struct buf file, out;
	struct arena a;
	struct puffin_file f;
	parse_golden(GOLDEN "empty-puffin-uncompressed.bin", &file, &a, &f);
	ck_assert_uint_eq(f.n_blobs, 0);
	ck_assert_uint_eq(f.n_props, 0);
	struct err err = {0};
	struct puffin_writer w;
	buf_init(&out, 4096);
	puffin_begin(&w, &out);
	UNIT_OK(puffin_finish(&w, (struct strv){0}, &err), &err);
	puffin_writer_fini(&w);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&file)));
	buf_fini(&out);
	buf_fini(&file);
	arena_fini(&a);
}
END_TEST

START_TEST(java_metrics)
{
	struct buf file, out;
	struct arena a;
	struct puffin_file f;
	parse_golden(GOLDEN "sample-metric-data-uncompressed.bin", &file, &a, &f);
	ck_assert_uint_eq(f.n_blobs, 2);
	ck_assert(strv_eq(f.blobs[0].type, STRV("some-blob")));
	ck_assert_int_eq(f.blobs[0].offset, 4);
	ck_assert_int_eq(f.blobs[0].length, 9);
	ck_assert_uint_eq(f.blobs[0].n_fields, 1);
	ck_assert_int_eq(f.blobs[0].fields[0], 1);
	ck_assert_int_eq(f.blobs[0].snapshot_id, 2);
	ck_assert_int_eq(f.blobs[0].sequence_number, 1);
	ck_assert(strv_eq(f.blobs[1].type, STRV("some-other-blob")));
	ck_assert_int_eq(f.blobs[1].offset, 13);
	ck_assert_int_eq(f.blobs[1].length, 83);
	struct strv by = {0};
	ck_assert(puffin_prop(f.props, f.n_props, "created-by", &by));
	ck_assert(strv_eq(by, STRV("Test 1234")));
	/* Written again from what was read: the same bytes. */
	struct err err = {0};
	struct puffin_writer w;
	buf_init(&out, 4096);
	puffin_begin(&w, &out);
	for (size_t i = 0; i < f.n_blobs; i++) {
		int64_t at = 0;
		struct bytes data = {file.p + f.blobs[i].offset, (size_t)f.blobs[i].length};
		UNIT_OK(puffin_add(&w, &f.blobs[i], data, &at, &err), &err);
		ck_assert_int_eq(at, f.blobs[i].offset);
	}
	UNIT_OK(puffin_finish(&w, by, &err), &err);
	puffin_writer_fini(&w);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&file)));
	buf_fini(&out);
	buf_fini(&file);
	arena_fini(&a);
}
END_TEST

START_TEST(java_compressed_blobs)
{
	struct buf file;
	struct arena a;
	struct puffin_file f;
	parse_golden(GOLDEN "sample-metric-data-compressed-zstd.bin", &file, &a, &f);
	ck_assert_uint_eq(f.n_blobs, 2);
	ck_assert(strv_eq(f.blobs[0].codec, STRV("zstd")));
	ck_assert_int_eq(f.blobs[0].length, 22);
	ck_assert_int_eq(f.blobs[1].length, 77);
	/* The footer of its own, as a ranged read would bring it. */
	size_t n = 0;
	struct err err = {0};
	struct bytes trailer = {file.p + file.n - PUFFIN_TRAILER, PUFFIN_TRAILER};
	UNIT_OK(puffin_footer_size(trailer, file.n, ST_CORRUPT, &n, &err), &err);
	ck_assert_uint_eq(n, 314);
	struct puffin_file g;
	UNIT_OK(puffin_parse((struct bytes){file.p + file.n - n, n}, file.n, ST_CORRUPT, &a, &g,
			     &err),
		&err);
	ck_assert_uint_eq(g.n_blobs, 2);
	buf_fini(&file);
	arena_fini(&a);
}
END_TEST

static struct bytes blob_of(uint64_t first, uint64_t end, struct buf *out)
{
	struct bitmap64 *s = bitmap64_new();
	struct err err = {0};
	UNIT_OK(bitmap64_add_range(s, first, end, &err), &err);
	buf_init(out, 4096);
	UNIT_OK(dv_blob_encode(s, out, &err), &err);
	bitmap64_free(s);
	return buf_bytes(out);
}

START_TEST(vectors)
{
	struct buf one, two, out;
	struct bytes a = blob_of(0, 100, &one), b = blob_of(7, 8, &two);
	struct err err = {0};
	struct puffin_writer w;
	int64_t at_a = 0, at_b = 0;
	buf_init(&out, 1 << 16);
	puffin_begin(&w, &out);
	UNIT_OK(puffin_add_vector(&w, a, STRV("file:/w/t/data/a \"1\".parquet"), 100, &at_a, &err),
		&err);
	UNIT_OK(puffin_add_vector(&w, b, STRV("s3://b/t/b%20.parquet"), 1, &at_b, &err), &err);
	UNIT_OK(puffin_finish(&w, STRV("frazil test"), &err), &err);
	puffin_writer_fini(&w);
	/* Members and their order as the Java writer has them; 39 and 42 are the blobs' sizes. */
	static const char footer[] =
		"{\"blobs\":[{\"type\":\"deletion-vector-v1\",\"fields\":[2147483645],"
		"\"snapshot-id\":-1,\"sequence-number\":-1,\"offset\":4,\"length\":39,"
		"\"properties\":{\"referenced-data-file\":\"file:/w/t/data/a \\\"1\\\".parquet\","
		"\"cardinality\":\"100\"}},{\"type\":\"deletion-vector-v1\",\"fields\":[2147483645]"
		","
		"\"snapshot-id\":-1,\"sequence-number\":-1,\"offset\":43,\"length\":42,"
		"\"properties\":{\"referenced-data-file\":\"s3://b/t/b%20.parquet\","
		"\"cardinality\":\"1\"}}],\"properties\":{\"created-by\":\"frazil test\"}}";
	size_t text = sizeof footer - 1;
	ck_assert_uint_eq(out.n, 4 + 39 + 42 + 4 + text + 12);
	ck_assert_mem_eq(out.p + 85 + 4, footer, text);
	struct arena mem;
	arena_init(&mem, 1 << 16);
	struct puffin_file f;
	UNIT_OK(puffin_parse_file(buf_bytes(&out), ST_CORRUPT, &mem, &f, &err), &err);
	const struct puffin_blob *v = NULL;
	struct strv name = STRV("s3://b/t/b%20.parquet");
	UNIT_OK(puffin_vector_at(&f, at_b, 42, name, 1, ST_CORRUPT, &v, &err), &err);
	ck_assert_int_eq(v->offset, 43);
	static const struct {
		int64_t offset, length;
		struct strv name;
		int64_t n;
		const char *field;
	} wrong[] = {
		{44, 42, STRV("s3://b/t/b%20.parquet"), 1, "content_offset"},
		{43, 41, STRV("s3://b/t/b%20.parquet"), 1, "content_offset"},
		{43, 42, STRV("s3://b/t/b .parquet"), 1, "referenced-data-file"},
		{43, 42, STRV("s3://b/t/b%20.parquet"), 2, "cardinality"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		v = NULL;
		UNIT_STATUS(puffin_vector_at(&f, wrong[i].offset, wrong[i].length, wrong[i].name,
					     wrong[i].n, ST_DV_CORRUPT, &v, &err),
			    ST_DV_CORRUPT);
		ck_assert_ptr_null(v);
		ck_assert_str_eq(err.field, wrong[i].field);
	}
	arena_fini(&mem);
	buf_fini(&out);
	buf_fini(&one);
	buf_fini(&two);
}
END_TEST

/* A file with four bytes of blobs around this footer text. */
static void make(struct buf *b, const char *json)
{
	uint8_t word[4];
	buf_clear(b);
	buf_puts(b, "PFA1abcdPFA1");
	buf_puts(b, json);
	put_u32le(word, (uint32_t)strlen(json));
	buf_put(b, word, 4);
	put_u32le(word, 0);
	buf_put(b, word, 4);
	buf_puts(b, "PFA1");
}

#define BLOB(type, fields, offset, length, more)                                                   \
	"{\"blobs\":[{\"type\":" type ",\"fields\":" fields                                        \
	",\"snapshot-id\":-1,\"sequence-number\":-1,\"offset\":" offset ",\"length\":" length more \
	"}]}"

static const struct {
	const char *json;
	const char *field; /* NULL: must be taken */
} footers[] = {
	{BLOB("\"deletion-vector-v1\"", "[]", "4", "4", ""), NULL},
	{BLOB("\"never-heard-of\"", "[1,2]", "8", "0", ",\"properties\":{}"), NULL},
	{BLOB("\"x\"", "[]", "4", "4", ",\"compression-codec\":null"), NULL},
	{BLOB("1", "[]", "4", "4", ""), "blobs[0].type"},
	{BLOB("\"x\"", "{}", "4", "4", ""), "blobs[0].fields"},
	{BLOB("\"x\"", "[2147483648]", "4", "4", ""), "blobs[0].fields[0]"},
	{BLOB("\"x\"", "[1,\"2\"]", "4", "4", ""), "blobs[0].fields[1]"},
	{BLOB("\"x\"", "[]", "3", "4", ""), "blobs[0].offset"},
	{BLOB("\"x\"", "[]", "-1", "4", ""), "blobs[0].offset"},
	{BLOB("\"x\"", "[]", "9", "0", ""), "blobs[0].offset"},
	{BLOB("\"x\"", "[]", "4", "5", ""), "blobs[0].length"},
	{BLOB("\"x\"", "[]", "4", "-1", ""), "blobs[0].length"},
	{BLOB("\"x\"", "[]", "8", "9223372036854775807", ""), "blobs[0].length"},
	{BLOB("\"x\"", "[]", "4.0", "4", ""), "blobs[0].offset"},
	{BLOB("\"x\"", "[]", "4", "4", ",\"properties\":{\"cardinality\":1}"),
	 "blobs[0].properties.cardinality"},
	{BLOB("\"x\"", "[]", "4", "4", ",\"properties\":[]"), "blobs[0].properties"},
	{"{\"blobs\":[1]}", "blobs[0]"},
	{"{\"blobs\":[{}]}", "blobs[0].type"},
	{"{\"blobs\":{}}", "blobs"},
	{"{}", "blobs"},
	{"[]", "footer"},
};

START_TEST(footer_json)
{
	struct buf b;
	struct arena a;
	struct puffin_file f = {0};
	struct err err = {0};
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 16);
	make(&b, footers[_i].json);
	enum status st = puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err);
	ck_assert_int_eq(st, footers[_i].field ? ST_CORRUPT : ST_OK);
	ck_assert_str_eq(err.field, footers[_i].field ? footers[_i].field : "");
	ck_assert_uint_eq(f.n_blobs, footers[_i].field ? 0 : 1);
	arena_fini(&a);
	buf_fini(&b);
}
END_TEST

/* What a deletion vector's blob may and may not be. */
START_TEST(vector_rules)
{
#define DV_PROPS ",\"properties\":{\"referenced-data-file\":\"f\",\"cardinality\":\"1\"}"
	static const struct {
		const char *json;
		const char *field;
	} cases[] = {
		{BLOB("\"deletion-vector-v1\"", "[]", "4", "4", DV_PROPS), NULL},
		{BLOB("\"deletion-vector-v1\"", "[2147483645]", "4", "4", DV_PROPS), NULL},
		{BLOB("\"deletion-vector-v2\"", "[]", "4", "4", DV_PROPS), "type"},
		{BLOB("\"deletion-vector-v1\"", "[]", "4", "4",
		      ",\"compression-codec\":\"zstd\"" DV_PROPS),
		 "compression-codec"},
		{BLOB("\"deletion-vector-v1\"", "[]", "4", "4", ""), "referenced-data-file"},
		{BLOB("\"deletion-vector-v1\"", "[]", "4", "4",
		      ",\"properties\":{\"referenced-data-file\":\"f\"}"),
		 "cardinality"},
		{BLOB("\"deletion-vector-v1\"", "[]", "4", "4",
		      ",\"properties\":{\"referenced-data-file\":\"f\",\"cardinality\":\"1 \"}"),
		 "cardinality"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b;
		struct arena a;
		struct puffin_file f = {0};
		struct err err = {0};
		const struct puffin_blob *v = NULL;
		buf_init(&b, 1 << 16);
		arena_init(&a, 1 << 16);
		make(&b, cases[i].json);
		UNIT_OK(puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err), &err);
		enum status st = puffin_vector_at(&f, 4, 4, STRV("f"), 1, ST_CORRUPT, &v, &err);
		ck_assert_int_eq(st, cases[i].field ? ST_CORRUPT : ST_OK);
		ck_assert_str_eq(err.field, cases[i].field ? cases[i].field : "");
		arena_fini(&a);
		buf_fini(&b);
	}
}
END_TEST

START_TEST(frame)
{
	struct buf b;
	struct arena a;
	struct puffin_file f = {0};
	struct err err = {0};
	buf_init(&b, 1 << 16);
	arena_init(&a, 1 << 16);
	make(&b, "{\"blobs\":[]}");
	UNIT_OK(puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err), &err);
	/* Any cut, from either end. */
	for (size_t n = 0; n < b.n; n++) {
		UNIT_STATUS(puffin_parse_file((struct bytes){b.p, n}, ST_CORRUPT, &a, &f, &err),
			    ST_CORRUPT);
		if (n > 0)
			UNIT_STATUS(puffin_parse_file((struct bytes){b.p + n, b.n - n}, ST_CORRUPT,
						      &a, &f, &err),
				    ST_CORRUPT);
	}
	/* Each of the three magics. */
	const size_t magics[] = {0, 8, b.n - 4};
	for (size_t i = 0; i < 3; i++) {
		b.p[magics[i]] ^= 0x20;
		UNIT_STATUS(puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err), ST_CORRUPT);
		ck_assert_str_eq(err.field, "magic");
		b.p[magics[i]] ^= 0x20;
	}
	/* Flags: a compressed footer, and bits that no version knows. */
	for (size_t i = 0; i < 32; i++) {
		b.p[b.n - 8 + i / 8] = (uint8_t)(1u << i % 8);
		UNIT_STATUS(puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err),
			    ST_UNSUPPORTED);
		ck_assert_str_eq(err.field, "flags");
		b.p[b.n - 8 + i / 8] = 0;
	}
	/* Payload sizes: one off, negative, larger than the file. */
	const uint32_t sizes[] = {11, 13, 0, 0xffffffff, 0x80000000, 1000};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_u32le(b.p + b.n - 12, sizes[i]);
		UNIT_STATUS(puffin_parse_file(buf_bytes(&b), ST_CORRUPT, &a, &f, &err), ST_CORRUPT);
	}
	/* A footer with a byte too many, or too few, before it. */
	make(&b, "{\"blobs\":[]}");
	for (size_t from = 7; from <= 9; from++) {
		struct bytes footer = {b.p + from, b.n - from};
		UNIT_STATUS(puffin_parse(footer, b.n, ST_CORRUPT, &a, &f, &err),
			    from == 8 ? ST_OK : ST_CORRUPT);
		if (from != 8)
			ck_assert_str_eq(err.field, "footer-payload-size");
	}
	make(&b, "{\"blobs\":[]");
	UNIT_STATUS(puffin_parse_file(buf_bytes(&b), ST_DV_CORRUPT, &a, &f, &err), ST_DV_CORRUPT);
	arena_fini(&a);
	buf_fini(&b);
}
END_TEST

START_TEST(limits)
{
	struct buf out;
	struct puffin_writer w;
	struct err err = {0};
	int64_t at = 7;
	buf_init(&out, 100);
	puffin_begin(&w, &out);
	uint8_t data[200] = {0};
	UNIT_STATUS(
		puffin_add_vector(&w, (struct bytes){data, sizeof data}, STRV("a"), 1, &at, &err),
		ST_LIMIT);
	ck_assert_int_eq(at, 7);
	UNIT_STATUS(puffin_finish(&w, STRV("x"), &err), ST_LIMIT);
	puffin_writer_fini(&w);
	buf_fini(&out);
	struct arena a;
	struct puffin_file f;
	arena_init(&a, 64);
	buf_init(&out, 4096);
	make(&out, footers[0].json);
	UNIT_STATUS(puffin_parse_file(buf_bytes(&out), ST_CORRUPT, &a, &f, &err), ST_LIMIT);
	arena_fini(&a);
	buf_fini(&out);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("puffin");
	TCase *t = tcase_create("puffin");
	tcase_add_test(t, java_empty);
	tcase_add_test(t, java_metrics);
	tcase_add_test(t, java_compressed_blobs);
	tcase_add_test(t, vectors);
	tcase_add_loop_test(t, footer_json, 0, (int)ARRAY_SIZE(footers));
	tcase_add_test(t, vector_rules);
	tcase_add_test(t, frame);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
