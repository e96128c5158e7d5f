/* Blocks compressed by other implementations (cramjam, python-zstandard, zlib through Python). */
#include "proto/avro/codec.h"

#include "tests/unit/unit.h"

static const uint8_t snappy[] = {0x80, 0x01, 0x3c, 0x64, 0x65, 0x6c, 0x65, 0x74, 0x69, 0x6f,
				 0x6e, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f, 0x72, 0x20, 0xfe,
				 0x10, 0x00, 0xbe, 0x10, 0x00, 0x9a, 0x29, 0x1e, 0x8d};
static const uint8_t zstd_sized[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0x80, 0xbd, 0x00,
				     0x00, 0x80, 0x64, 0x65, 0x6c, 0x65, 0x74, 0x69,
				     0x6f, 0x6e, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f,
				     0x72, 0x20, 0x01, 0x00, 0xda, 0xa4, 0x73, 0x09};
/* No content size in the frame, as streaming writers do. */
static const uint8_t zstd_unsized[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0xbd, 0x00,
				       0x00, 0x80, 0x64, 0x65, 0x6c, 0x65, 0x74, 0x69,
				       0x6f, 0x6e, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f,
				       0x72, 0x20, 0x01, 0x00, 0xda, 0xa4, 0x73, 0x09};
/* Asks for a window of 128 MiB. */
static const uint8_t zstd_window[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0xbd, 0x00,
				      0x00, 0x80, 0x64, 0x65, 0x6c, 0x65, 0x74, 0x69,
				      0x6f, 0x6e, 0x20, 0x76, 0x65, 0x63, 0x74, 0x6f,
				      0x72, 0x20, 0x01, 0x00, 0xda, 0xa4, 0x73, 0x09};
static const uint8_t deflated[] = {0x4b, 0x49, 0xcd, 0x49, 0x2d, 0xc9, 0xcc, 0xcf, 0x53, 0x28, 0x4b,
				   0x4d, 0x2e, 0xc9, 0x2f, 0x52, 0x48, 0xa1, 0x33, 0x1f, 0x00};
#define PLAIN                                                                                      \
	"deletion vector deletion vector deletion vector deletion vector "                         \
	"deletion vector deletion vector deletion vector deletion vector "

static const struct {
	enum codec codec;
	struct bytes in;
} blocks[] = {
	{CODEC_NULL, {(const uint8_t *)PLAIN, sizeof PLAIN - 1}},
	{CODEC_DEFLATE, {deflated, sizeof deflated}},
	{CODEC_SNAPPY, {snappy, sizeof snappy}},
	{CODEC_ZSTD, {zstd_sized, sizeof zstd_sized}},
	{CODEC_ZSTD, {zstd_unsized, sizeof zstd_unsized}},
};

START_TEST(foreign)
{
	struct buf out;
	struct err err = {0};
	buf_init(&out, sizeof PLAIN - 1); /* exactly enough */
	UNIT_OK(codec_decompress(blocks[_i].codec, blocks[_i].in, &out, &err), &err);
	ck_assert(strv_eq(buf_strv(&out), STRV(PLAIN)));
	buf_fini(&out);
	/* One byte less, also behind something else. */
	buf_init(&out, sizeof PLAIN - 1);
	buf_putc(&out, 'x');
	UNIT_STATUS(codec_decompress(blocks[_i].codec, blocks[_i].in, &out, &err), ST_LIMIT);
	buf_fini(&out);
}
END_TEST

/* Every cut and every flipped byte ends in an error or in other bytes, never in a fault. */
START_TEST(damaged)
{
	struct buf out;
	uint8_t copy[256];
	struct bytes in = blocks[_i].in;
	for (size_t n = 0; n < in.n; n++) {
		buf_init(&out, 1000);
		enum status st =
			codec_decompress(blocks[_i].codec, (struct bytes){in.p, n}, &out, NULL);
		ck_assert(st == ST_CORRUPT || (st == ST_OK && out.n != sizeof PLAIN - 1));
		buf_fini(&out);
		memcpy(copy, in.p, in.n);
		copy[n] ^= 0x11;
		buf_init(&out, 1000);
		st = codec_decompress(blocks[_i].codec, (struct bytes){copy, in.n}, &out, NULL);
		ck_assert(st == ST_OK || st == ST_CORRUPT || st == ST_LIMIT);
		/* Snappy is the one with a checksum. */
		if (blocks[_i].codec == CODEC_SNAPPY)
			ck_assert(st != ST_OK);
		buf_fini(&out);
	}
	if (blocks[_i].codec == CODEC_NULL)
		return;
	/* Bytes behind the end: one, or behind deflate five. */
	memset(copy, 7, sizeof copy);
	memcpy(copy, in.p, in.n);
	for (size_t more = 1; more <= 5; more++) {
		buf_init(&out, 1000);
		enum status st = codec_decompress(blocks[_i].codec,
						  (struct bytes){copy, in.n + more}, &out, NULL);
		bool overlooked = blocks[_i].codec == CODEC_DEFLATE && more <= 4;
		ck_assert_int_eq(st, overlooked ? ST_OK : ST_CORRUPT);
		buf_fini(&out);
	}
}
END_TEST

START_TEST(window)
{
	struct buf out;
	buf_init(&out, 1000);
	UNIT_STATUS(codec_decompress(CODEC_ZSTD, (struct bytes){zstd_window, sizeof zstd_window},
				     &out, NULL),
		    ST_CORRUPT);
	buf_fini(&out);
}
END_TEST

START_TEST(round_trip)
{
	struct buf plain, packed, out;
	struct err err = {0};
	size_t max = (size_t)1 << 24;
	buf_init(&plain, max);
	for (uint32_t i = 0; i < 300000; i++)
		buf_putc(&plain, (uint8_t)(i * i >> 7));
	for (enum codec c = CODEC_NULL; c <= CODEC_DEFLATE; c++) {
		buf_init(&packed, max);
		buf_init(&out, plain.n);
		buf_puts(&packed, "head");
		UNIT_OK(codec_compress(c, buf_bytes(&plain), &packed, &err), &err);
		ck_assert(c == CODEC_NULL || packed.n < plain.n);
		struct bytes body = {packed.p + 4, packed.n - 4};
		UNIT_OK(codec_decompress(c, body, &out, &err), &err);
		ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&plain)));
		buf_fini(&packed);
		buf_fini(&out);
		buf_init(&packed, 100);
		UNIT_STATUS(codec_compress(c, buf_bytes(&plain), &packed, &err), ST_LIMIT);
		buf_fini(&packed);
	}
	buf_fini(&plain);
}
END_TEST

START_TEST(names)
{
	enum codec c = CODEC_NULL;
	ck_assert(codec_from_name(STRV("zstandard"), &c) && c == CODEC_ZSTD);
	ck_assert(codec_from_name(STRV("deflate"), &c) && c == CODEC_DEFLATE);
	ck_assert(!codec_from_name(STRV("bzip2"), &c));
	ck_assert_str_eq(codec_name(CODEC_SNAPPY), "snappy");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("codec");
	TCase *t = tcase_create("codec");
	tcase_add_loop_test(t, foreign, 0, ARRAY_SIZE(blocks));
	tcase_add_loop_test(t, damaged, 0, ARRAY_SIZE(blocks));
	tcase_add_test(t, window);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
