#include "proto/dv/bitmap64.h"

#include "proto/base/digest.h"
#include "tests/unit/golden.h"

static void add(struct bitmap64 *set, uint64_t pos)
{
	struct err err = {0};
	UNIT_OK(bitmap64_add(set, pos, &err), &err);
}

static void add_range(struct bitmap64 *set, uint64_t first, uint64_t end)
{
	struct err err = {0};
	UNIT_OK(bitmap64_add_range(set, first, end, &err), &err);
}

static void encode(const struct bitmap64 *set, struct buf *out)
{
	buf_init(out, 64 << 20);
	bitmap64_encode(set, out);
	ck_assert(buf_ok(out));
}

static struct bitmap64 *decode(struct bytes data)
{
	struct err err = {0};
	struct bitmap64 *set = NULL;
	UNIT_OK(bitmap64_decode(data, &set, &err), &err);
	return set;
}

/* --- bytes of the Java Roaring library: tests/golden/roaring/RoaringGolden.java --- */

static void each(struct bitmap64 *s, uint64_t from, uint64_t end, uint64_t step)
{
	for (uint64_t i = from; i < end; i += step)
		add(s, i);
}

static void blocks(struct bitmap64 *s, uint64_t count, uint64_t every, uint64_t length)
{
	for (uint64_t i = 0; i < count; i++)
		each(s, i * every, i * every + length, 1);
}

static void java_case(struct bitmap64 *s, int i)
{
	uint64_t x = 12345;
	switch (i) {
	case 0:
		return each(s, 0, 3, 1);
	case 1:
		return each(s, 0, 4, 1);
	case 2:
		each(s, 0, 3, 1);
		return each(s, 5, 8, 1);
	case 3:
		return each(s, 0, 8192, 2);
	case 4:
		return each(s, 0, 8194, 2);
	case 5:
		return each(s, 0, 200000, 3);
	case 6:
	case 7:
	case 8:
		return blocks(s, (uint64_t)(2040 + i), 32, 20);
	case 9:
		return each(s, 0, 65536, 1);
	case 10:
		return each(s, 0, 300000, 1);
	case 11:
		for (int k = 0; k < 100000; k++) {
			x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			add(s, (x >> 33) % 1000000);
		}
		return;
	default:
		return add(s, (UINT64_C(2) << 32) + 7);
	}
}

static const struct {
	size_t bytes;
	uint32_t crc;
} java_cases[] = {
	{34, 0xa1e9915b},   {27, 0x6203522c},    {31, 0xe6b73905},   {8220, 0xd770a90a},
	{8220, 0x097309ca}, {26890, 0x502fb700}, {8207, 0xe5e56576}, {8211, 0x7a688063},
	{8220, 0x2dfd5b2c}, {27, 0xcdfa5825},    {87, 0xbcf06a5b},   {126178, 0xc7964048},
	{54, 0x7fee3572},
};

START_TEST(java_bytes)
{
	struct bitmap64 *s = bitmap64_new(), *again = bitmap64_new();
	java_case(s, _i);
	struct buf out, other;
	encode(s, &out);
	ck_assert_uint_eq(out.n, java_cases[_i].bytes);
	ck_assert_uint_eq(digest_crc32(0, buf_bytes(&out)), java_cases[_i].crc);
	/* The same set with another history (through runs, bitmaps, unions) has the same bytes. */
	add_range(again, 0, 1 << 20);
	add_range(again, UINT64_C(2) << 32, (UINT64_C(2) << 32) + 100);
	bitmap64_intersect(again, s);
	ck_assert(bitmap64_equal(again, s));
	encode(again, &other);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&other)));
	struct bitmap64 *back = decode(buf_bytes(&out));
	ck_assert(bitmap64_equal(back, s));
	buf_fini(&out);
	buf_fini(&other);
	encode(back, &out);
	ck_assert_uint_eq(digest_crc32(0, buf_bytes(&out)), java_cases[_i].crc);
	buf_fini(&out);
	bitmap64_free(back);
	bitmap64_free(again);
	bitmap64_free(s);
}
END_TEST

START_TEST(range_history)
{
	/* Three neighbours take six bytes as a run and as an array: a tie goes to the array, even
	 * for a set that was built from a range. */
	struct bitmap64 *s = bitmap64_new();
	add_range(s, 0, 3);
	struct buf out;
	encode(s, &out);
	ck_assert_uint_eq(digest_crc32(0, buf_bytes(&out)), java_cases[0].crc);
	buf_fini(&out);
	bitmap64_free(s);
}
END_TEST

/* --- vectors of other writers --- */

START_TEST(format_spec_files)
{
	struct buf b;
	buf_init(&b, 4096);
	golden_read("tests/golden/iceberg/deletion-vectors/64map32bitvals.bin", &b);
	struct bitmap64 *s = decode(buf_bytes(&b)), *want = bitmap64_new();
	each(want, 0, 10, 1);
	ck_assert(bitmap64_equal(s, want));
	bitmap64_free(s);
	bitmap64_free(want);
	buf_clear(&b);
	golden_read("tests/golden/iceberg/deletion-vectors/64mapempty.bin", &b);
	s = decode(buf_bytes(&b));
	ck_assert(bitmap64_empty(s));
	bitmap64_free(s);
	buf_clear(&b);
	golden_read("tests/golden/iceberg/deletion-vectors/64mapspreadvals.bin", &b);
	s = decode(buf_bytes(&b));
	ck_assert_uint_eq(bitmap64_cardinality(s), 100);
	/* Ten values from 0 on under each key 0..9. */
	for (uint64_t key = 0; key < 10; key++)
		for (uint64_t v = 0; v < 10; v++)
			ck_assert(bitmap64_contains(s, key << 32 | v));
	bitmap64_free(s);
	buf_clear(&b);
	golden_read("tests/golden/iceberg/deletion-vectors/64maphighvals.bin", &b);
	struct err err = {0};
	s = NULL;
	UNIT_STATUS(bitmap64_decode(buf_bytes(&b), &s, &err), ST_DV_CORRUPT);
	ck_assert_ptr_null(s);
	buf_fini(&b);
}
END_TEST

START_TEST(liberal_forms)
{
	static const struct {
		const char *hex;
		uint64_t first, n;
	} cases[] = {
		/* keys 2 and 0, in that order, as DuckDB may write them */
		{"0200000000000000 02000000 3a30000001000000 0000 0000 10000000 0900"
		 "00000000 3a30000001000000 0000 0000 10000000 0400",
		 4, 2},
		/* an empty bitmap under a sparse key */
		{"0100000000000000 07000000 3a30000000000000", 0, 0},
		/* run flags present, none set */
		{"0100000000000000 00000000 3b300000 00 0000 0100 0100 0300", 1, 2},
		/* one run, which canonical bytes would hold as an array */
		{"0100000000000000 00000000 3b300000 01 0000 0000 0100 0500 0000", 5, 1},
		/* a full container */
		{"0100000000000000 00000000 3b300000 01 0000 ffff 0100 0000 ffff", 0, 65536},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b;
		buf_init(&b, 4096);
		golden_hex(cases[i].hex, &b);
		struct bitmap64 *s = decode(buf_bytes(&b));
		ck_assert_uint_eq(bitmap64_cardinality(s), cases[i].n);
		if (cases[i].n)
			ck_assert(bitmap64_contains(s, cases[i].first));
		bitmap64_free(s);
		buf_fini(&b);
	}
}
END_TEST

/* --- malformed --- */

#define ONE "0100000000000000 00000000 "

static const struct {
	const char *hex;
	const char *field;
} bad[] = {
	{"", "bitmap.count"},
	{"01000000000000", "bitmap.count"},
	{"0100000000000000", "bitmap.count"},
	{"ffffffffffffffff 00000000 3a30000000000000", "bitmap.count"},
	{"0000000000000000 00", "bitmap"},
	{ONE "3a30000000000000 00", "bitmap"},
	{"0100000000000000 ffffff7f 3a30000000000000", "bitmap[0].key"},
	{"0100000000000000 ffffffff 3a30000000000000", "bitmap[0].key"},
	{"0200000000000000 05000000 3a30000000000000 05000000 3a30000000000000", "key"},
	{ONE "3930000001000000 00000000", "bitmap[0].cookie"},
	{ONE "3c30000001000000 00000000", "bitmap[0].cookie"},
	/* container count of -1, and one more than there are keys */
	{ONE "3a300000ffffffff 00000000", "bitmap[0].containers"},
	{ONE "3a30000001000100 00000000", "bitmap[0].containers"},
	{ONE "3a30000002000000 0000 0000", "bitmap[0].containers"},
	{ONE "3a30000001000000 0000 0000", "bitmap[0].offsets"},
	{ONE "3b30ffff 01 0000 0000", "bitmap[0].containers"},
	/* offsets: off by one, and pointing at itself */
	{ONE "3a30000001000000 0000 0000 11000000 0000", "bitmap[0].container[0].offset"},
	{ONE "3a30000001000000 0000 0000 00000000 0000", "bitmap[0].container[0].offset"},
	{ONE "3a30000002000000 0000 0000 0100 0000 18000000 18000000 0000 0000",
	 "bitmap[0].container[1].offset"},
	/* container keys equal and falling */
	{ONE "3a30000002000000 0100 0000 0100 0000 18000000 1a000000 0000 0000",
	 "bitmap[0].container[1].key"},
	{ONE "3a30000002000000 0100 0000 0000 0000 18000000 1a000000 0000 0000",
	 "bitmap[0].container[1].key"},
	/* arrays: unsorted, repeated, cut off */
	{ONE "3a30000001000000 0000 0100 10000000 0500 0400", "bitmap[0].container[0].values"},
	{ONE "3a30000001000000 0000 0100 10000000 0500 0500", "bitmap[0].container[0].values"},
	{ONE "3a30000001000000 0000 0100 10000000 0500", "bitmap[0].container[0].values"},
	{ONE "3a30000001000000 0000 0010 10000000 0500", "bitmap[0].container[0].values"},
	/* runs: none, past 65535, touching, overlapping, falling, miscounted, cut off */
	{ONE "3b300000 01 0000 0000 0000", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0100 0100 ffff 0100", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 ffff 0100 0100 ffff", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0300 0200 0000 0100 0200 0100", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0300 0200 0000 0100 0100 0100", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0300 0200 0500 0100 0000 0100", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0500 0100 0000 0100", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0100 0100 0000", "bitmap[0].container[0].values"},
	{ONE "3b300000 01 0000 0100 01", "bitmap[0].container[0].values"},
	{ONE "3b30", "bitmap.count"},
	{ONE "3b3000000100000000", "bitmap[0].container[0].values"},
};

START_TEST(malformed)
{
	struct buf b;
	buf_init(&b, 4096);
	golden_hex(bad[_i].hex, &b);
	struct err err = {0};
	struct bitmap64 *s = NULL;
	/* Exact-size heap copy, so that the sanitizer sees one byte too far. */
	uint8_t *copy = malloc(b.n ? b.n : 1);
	memcpy(copy, b.p ? b.p : (const uint8_t *)"", b.n);
	UNIT_STATUS(bitmap64_decode((struct bytes){copy, b.n}, &s, &err), ST_DV_CORRUPT);
	ck_assert_ptr_null(s);
	ck_assert_str_eq(err.field, bad[_i].field);
	free(copy);
	buf_fini(&b);
}
END_TEST

START_TEST(bitmap_container_lies)
{
	/* A bitmap container of 5,000 values whose stated number is one off, either way. */
	struct bitmap64 *s = bitmap64_new();
	each(s, 0, 10000, 2);
	struct buf out;
	encode(s, &out);
	/* count 8, key 4, cookie and count 8, then the container's key and cardinality - 1 */
	ck_assert_uint_eq(get_u16le(out.p + 22), 4999);
	for (int off = -1; off <= 1; off++) {
		put_u16le(out.p + 22, (uint16_t)(4999 + off));
		struct bitmap64 *back = NULL;
		struct err err = {0};
		enum status st = bitmap64_decode(buf_bytes(&out), &back, &err);
		ck_assert_int_eq(st, off ? ST_DV_CORRUPT : ST_OK);
		if (off)
			ck_assert_str_eq(err.field, "bitmap[0].container[0].values");
		bitmap64_free(back);
	}
	/* Every cut of it is refused. */
	for (size_t n = 0; n < out.n; n += 1 + n / 40) {
		struct bitmap64 *back = NULL;
		UNIT_STATUS(bitmap64_decode((struct bytes){out.p, n}, &back, NULL), ST_DV_CORRUPT);
	}
	buf_fini(&out);
	bitmap64_free(s);
}
END_TEST

START_TEST(limits)
{
	struct bitmap64 *s = bitmap64_new();
	struct err err = {0};
	/* Java: RoaringPositionBitmap.MAX_POSITION = 9223372030412324864 */
	ck_assert_uint_eq(BITMAP64_MAX_POSITION, UINT64_C(9223372030412324864));
	add(s, BITMAP64_MAX_POSITION);
	UNIT_STATUS(bitmap64_add(s, BITMAP64_MAX_POSITION + 1, &err), ST_LIMIT);
	ck_assert_str_eq(err.field, "position");
	UNIT_STATUS(bitmap64_add_range(s, 5, BITMAP64_MAX_POSITION + 2, &err), ST_LIMIT);
	UNIT_STATUS(bitmap64_add_range(s, 0, UINT64_C(1) << 60, &err), ST_LIMIT);
	UNIT_STATUS(bitmap64_add(s, UINT64_MAX, &err), ST_LIMIT);
	ck_assert_uint_eq(bitmap64_cardinality(s), 1);
	uint64_t max = 0;
	ck_assert(bitmap64_max(s, &max));
	ck_assert_uint_eq(max, BITMAP64_MAX_POSITION);
	/* So high a key is written alone, not after two billion empty ones. */
	struct buf out;
	encode(s, &out);
	ck_assert_uint_eq(out.n, 8 + 4 + 18);
	struct bitmap64 *back = decode(buf_bytes(&out));
	ck_assert(bitmap64_equal(s, back));
	/* A low half above the highest position's is refused when read, too. */
	out.p[out.n - 2] = 1;
	struct bitmap64 *none = NULL;
	UNIT_STATUS(bitmap64_decode(buf_bytes(&out), &none, &err), ST_LIMIT);
	bitmap64_free(back);
	bitmap64_free(s);
	/* Dense up to key 64, sparse above. */
	for (uint64_t key = 64; key <= 65; key++) {
		s = bitmap64_new();
		add(s, key << 32);
		buf_fini(&out);
		encode(s, &out);
		ck_assert_uint_eq(get_u64le(out.p), key == 64 ? 65 : 1);
		bitmap64_free(s);
	}
	buf_fini(&out);
	/* A full buffer is an error, not a cut vector. */
	s = bitmap64_new();
	each(s, 0, 100, 3);
	buf_init(&out, 50);
	bitmap64_encode(s, &out);
	ck_assert(!buf_ok(&out));
	buf_fini(&out);
	bitmap64_free(s);
}
END_TEST

/* --- set operations against one bool per position --- */

#define SPAN 300000
/* The model's positions straddle a key boundary. */
#define BASE (UINT64_C(0x1ffff0000))

static uint64_t seed;

static uint32_t rnd(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % below);
}

static struct bitmap64 *random_set(bool *model)
{
	struct bitmap64 *s = bitmap64_new();
	memset(model, 0, SPAN);
	for (uint32_t r = rnd(6); r > 0; r--) {
		uint32_t from = rnd(SPAN), n = rnd(rnd(2) ? 70000 : 50);
		n = n < SPAN - from ? n : SPAN - from;
		add_range(s, BASE + from, BASE + from + n);
		memset(model + from, 1, n);
	}
	uint32_t window = rnd(2) ? SPAN : 9000;
	for (uint32_t i = rnd(6000); i > 0; i--) {
		uint32_t v = rnd(window);
		add(s, BASE + v);
		model[v] = true;
	}
	return s;
}

static void same(const struct bitmap64 *s, const bool *model)
{
	static uint64_t got[SPAN];
	size_t n = 0, at = 0;
	/* In pages of odd size. */
	for (uint64_t from = 0;; from = got[n - 1] + 1) {
		size_t more = bitmap64_read(s, from, got + n, n + 777 <= SPAN ? 777 : SPAN - n);
		n += more;
		if (more == 0)
			break;
	}
	uint64_t max = 0;
	for (size_t v = 0; v < SPAN; v++)
		if (model[v]) {
			ck_assert(at < n);
			max = BASE + v;
			ck_assert_uint_eq(got[at++], BASE + v);
		}
	ck_assert_uint_eq(at, n);
	ck_assert_uint_eq(bitmap64_cardinality(s), n);
	ck_assert(bitmap64_empty(s) == (n == 0));
	uint64_t have = 0;
	ck_assert(bitmap64_max(s, &have) == (n > 0));
	ck_assert_uint_eq(have, max);
	struct buf out;
	encode(s, &out);
	struct bitmap64 *back = decode(buf_bytes(&out));
	ck_assert(bitmap64_equal(s, back));
	bitmap64_free(back);
	buf_fini(&out);
}

START_TEST(against_model)
{
	static bool a[SPAN], b[SPAN], c[SPAN], r[SPAN];
	seed = (uint64_t)_i + 1;
	struct bitmap64 *x = random_set(a), *y = random_set(b), *z = random_set(c);
	same(x, a);
	uint64_t common = 0, first = 0, got = 0;
	for (uint32_t v = SPAN; v-- > 0;)
		if (a[v] && b[v]) {
			common++;
			first = BASE + v;
		}
	ck_assert_uint_eq(bitmap64_common(x, y), common);
	ck_assert(bitmap64_first_common(x, y, &got) == (common > 0));
	ck_assert_uint_eq(got, first);
	for (int k = 0; k < 1000; k++) {
		uint32_t v = rnd(SPAN);
		ck_assert(bitmap64_contains(x, BASE + v) == a[v]);
	}
	struct bitmap64 *d = bitmap64_clone(x);
	ck_assert(bitmap64_equal(d, x));
	bitmap64_subtract(d, y);
	for (size_t v = 0; v < SPAN; v++)
		r[v] = a[v] && !b[v];
	same(d, r);
	ck_assert(!bitmap64_first_common(d, y, &got));
	bitmap64_free(d);
	d = bitmap64_clone(x);
	bitmap64_intersect(d, y);
	for (size_t v = 0; v < SPAN; v++)
		r[v] = a[v] && b[v];
	same(d, r);
	bitmap64_free(d);
	const struct bitmap64 *others[] = {y, z, y};
	struct err err = {0};
	d = bitmap64_clone(x);
	UNIT_OK(bitmap64_union(d, others, 3, &err), &err);
	for (size_t v = 0; v < SPAN; v++)
		r[v] = a[v] || b[v] || c[v];
	same(d, r);
	same(y, b);
	bitmap64_free(d);
	d = bitmap64_new();
	UNIT_OK(bitmap64_union(d, NULL, 0, &err), &err);
	ck_assert(bitmap64_empty(d));
	UNIT_OK(bitmap64_union(d, others, 1, &err), &err);
	ck_assert(bitmap64_equal(d, y));
	bitmap64_free(d);
	bitmap64_free(x);
	bitmap64_free(y);
	bitmap64_free(z);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("bitmap64");
	TCase *t = tcase_create("bytes");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, java_bytes, 0, (int)ARRAY_SIZE(java_cases));
	tcase_add_test(t, range_history);
	tcase_add_test(t, format_spec_files);
	tcase_add_test(t, liberal_forms);
	tcase_add_loop_test(t, malformed, 0, (int)ARRAY_SIZE(bad));
	tcase_add_test(t, bitmap_container_lies);
	tcase_add_test(t, limits);
	suite_add_tcase(s, t);
	t = tcase_create("sets");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, against_model, 0, 12);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
