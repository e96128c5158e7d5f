#include "proto/dv/dv_blob.h"

#include "tests/unit/golden.h"

static void add(struct bitmap64 *set, uint64_t first, uint64_t end)
{
	struct err err = {0};
	for (uint64_t pos = first; pos < end; pos++)
		UNIT_OK(bitmap64_add(set, pos, &err), &err);
}

/* The position sets that the Java tests build for their committed files. */
static void java_set(struct bitmap64 *s, int i)
{
	const uint64_t key1 = UINT64_C(1) << 32, mib = 1 << 16;
	switch (i) {
	case 0:
		return;
	case 1:
		for (uint64_t v = 1; v <= 9; v += 2)
			add(s, v, v + 1);
		return;
	case 2:
		add(s, 100, 102);
		return add(s, UINT64_C(2147483747), UINT64_C(2147483749));
	default:
		add(s, 5, 6);
		add(s, 7, 8);
		add(s, mib + 1, mib + 1000);
		add(s, 2 * mib + 1, 3 * mib - 1);
		add(s, key1 + 10, key1 + 11);
		add(s, key1 + 20, key1 + 21);
		add(s, key1 + mib + 10, key1 + mib + 500);
		return add(s, key1 + 2 * mib + 1, key1 + 3 * mib - 1);
	}
}

static const char *const java_files[] = {
	"empty-position-index.bin",
	"small-alternating-values-position-index.bin",
	"small-and-large-values-position-index.bin",
	"all-container-types-position-index.bin",
};

START_TEST(java_goldens)
{
	char path[200];
	snprintf(path, sizeof path, "tests/golden/iceberg/deletion-vectors/%s", java_files[_i]);
	struct buf file, out;
	buf_init(&file, 4096);
	buf_init(&out, 4096);
	golden_read(path, &file);
	struct err err = {0};
	struct bitmap64 *have = NULL, *want = bitmap64_new();
	java_set(want, _i);
	UNIT_OK(dv_blob_decode(buf_bytes(&file), &have, &err), &err);
	ck_assert(bitmap64_equal(have, want));
	UNIT_OK(dv_blob_encode(want, &out, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&file)));
	bitmap64_free(have);
	bitmap64_free(want);
	buf_fini(&file);
	buf_fini(&out);
}
END_TEST

/* Computed with other tools: a Roaring library and zlib's CRC. Written: ours must be the same;
 * else only read (sparse keys below the dense limit, as other engines write them). */
static const struct {
	const char *hex;
	uint64_t first, end;
	uint64_t also; /* 0: none */
	bool written;
} blobs[] = {
	{"00000022d1d339640100000000000000000000003a3000000100000000000000100000000000f7a6b4b5", 0,
	 1, 0, true},
	{"00000024d1d339640100000000000000000000003a30000001000000000001001000000000000500"
	 "86d2574a",
	 0, 1, 5, true},
	{"0000001fd1d339640100000000000000000000003b3000000100006300010000006300883cd529", 0, 100,
	 0, true},
	{"0000003ad1d339640300000000000000000000003a30000000000000010000003a3000000000000002000000"
	 "3a3000000100000000000000100000000000fabeda4e",
	 UINT64_C(1) << 33, (UINT64_C(1) << 33) + 1, 0, true},
	{"00000022d1d339640100000000000000020000003a3000000100000000000000100000000000d9f67d35",
	 UINT64_C(1) << 33, (UINT64_C(1) << 33) + 1, 0, false},
};

START_TEST(hex_goldens)
{
	struct buf b, out;
	buf_init(&b, 4096);
	buf_init(&out, 4096);
	golden_hex(blobs[_i].hex, &b);
	struct err err = {0};
	struct bitmap64 *have = NULL, *want = bitmap64_new();
	add(want, blobs[_i].first, blobs[_i].end);
	if (blobs[_i].also)
		add(want, blobs[_i].also, blobs[_i].also + 1);
	UNIT_OK(dv_blob_decode(buf_bytes(&b), &have, &err), &err);
	ck_assert(bitmap64_equal(have, want));
	UNIT_OK(dv_blob_encode(have, &out, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&b)) == blobs[_i].written);
	bitmap64_free(have);
	bitmap64_free(want);
	buf_fini(&b);
	buf_fini(&out);
}
END_TEST

static void refuse(struct bytes blob, const char *field)
{
	struct err err = {0};
	struct bitmap64 *s = NULL;
	UNIT_STATUS(dv_blob_decode(blob, &s, &err), ST_DV_CORRUPT);
	ck_assert_str_eq(err.field, field);
	ck_assert_ptr_null(s);
}

START_TEST(frame_checks)
{
	struct buf b;
	buf_init(&b, 4096);
	golden_hex(blobs[1].hex, &b);
	/* Cut anywhere, one byte more, any byte changed. */
	for (size_t n = 0; n < b.n; n++)
		refuse((struct bytes){b.p, n}, "length");
	for (size_t i = 0; i < b.n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			b.p[i] = (uint8_t)(b.p[i] ^ 1u << bit);
			refuse(buf_bytes(&b), i < 4 ? "length" : i < 8 ? "magic" : "crc");
			b.p[i] = (uint8_t)(b.p[i] ^ 1u << bit);
		}
	buf_putc(&b, 0);
	refuse(buf_bytes(&b), "length");
	/* A frame that is whole around a vector that is not: bitmap, then a byte left over. */
	buf_clear(&b);
	golden_hex("0000000dd1d339640000000000000000 00 00000000", &b);
	put_u32be(b.p + b.n - 4, 0);
	refuse(buf_bytes(&b), "crc");
	buf_fini(&b);
}
END_TEST

START_TEST(stated_numbers)
{
	struct bitmap64 *s = bitmap64_new();
	struct err err = {0};
	UNIT_OK(dv_blob_check_count(s, 0, &err), &err);
	UNIT_OK(dv_blob_check_range(s, 0, &err), &err);
	add(s, 0, 3);
	add(s, 99, 100);
	UNIT_OK(dv_blob_check_count(s, 4, &err), &err);
	UNIT_STATUS(dv_blob_check_count(s, 3, &err), ST_DV_CORRUPT);
	ck_assert_str_eq(err.field, "record_count");
	UNIT_STATUS(dv_blob_check_count(s, -4, &err), ST_DV_CORRUPT);
	UNIT_OK(dv_blob_check_range(s, 100, &err), &err);
	UNIT_STATUS(dv_blob_check_range(s, 99, &err), ST_POSITION_RANGE);
	ck_assert_str_eq(err.field, "positions");
	UNIT_STATUS(dv_blob_check_range(s, -1, &err), ST_POSITION_RANGE);
	struct buf small;
	buf_init(&small, 30);
	UNIT_STATUS(dv_blob_encode(s, &small, &err), ST_LIMIT);
	ck_assert(!buf_ok(&small));
	buf_fini(&small);
	bitmap64_free(s);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("dv_blob");
	TCase *t = tcase_create("frame");
	tcase_add_loop_test(t, java_goldens, 0, (int)ARRAY_SIZE(java_files));
	tcase_add_loop_test(t, hex_goldens, 0, (int)ARRAY_SIZE(blobs));
	tcase_add_test(t, frame_checks);
	tcase_add_test(t, stated_numbers);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
