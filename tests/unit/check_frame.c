#include "proto/rpc/frame.h"
#include "tests/unit/unit.h"

/* Made by hand; CRC-32C of the ten bytes and "hi" computed by a bitwise loop below. */
static uint32_t slow_crc32c(const uint8_t *p, size_t n, const uint8_t *q, size_t m)
{
	uint32_t v = 0xffffffff;
	for (size_t i = 0; i < n + m; i++) {
		v ^= i < n ? p[i] : q[i - n];
		for (int k = 0; k < 8; k++)
			v = v & 1 ? v >> 1 ^ 0x82f63b78 : v >> 1;
	}
	return ~v;
}

static void by_hand(uint8_t out[16])
{
	static const uint8_t head[10] = {0, 0, 0, 12, 3, 1, 0xde, 0xad, 0xbe, 0xef};
	uint32_t crc = slow_crc32c(head, 10, (const uint8_t *)"hi", 2);
	memcpy(out, head, 10);
	for (int i = 0; i < 4; i++)
		out[10 + i] = (uint8_t)(crc >> (24 - 8 * i));
	memcpy(out + 14, "hi", 2);
}

START_TEST(layout)
{
	uint8_t want[16];
	by_hand(want);
	struct buf b;
	buf_init(&b, 1024);
	frame_put(&b, &(struct frame){3, 1, 0xdeadbeef, {(const uint8_t *)"hi", 2}});
	ck_assert_uint_eq(b.n, 16);
	ck_assert_mem_eq(b.p, want, 16);
	buf_fini(&b);
}
END_TEST

START_TEST(reads_by_parts)
{
	uint8_t raw[32];
	by_hand(raw);
	by_hand(raw + 16);
	struct err err = {0};
	for (size_t n = 0; n < 16; n++) {
		struct frame f;
		size_t used = 99;
		UNIT_OK(frame_parse((struct bytes){raw, n}, 100, &f, &used, &err), &err);
		ck_assert_uint_eq(used, 0);
	}
	for (size_t n = 16; n <= 32; n++) {
		struct frame f = {0};
		size_t used = 99;
		UNIT_OK(frame_parse((struct bytes){raw, n}, 100, &f, &used, &err), &err);
		ck_assert_uint_eq(used, 16);
		ck_assert_uint_eq(f.type, 3);
		ck_assert_uint_eq(f.version, 1);
		ck_assert_uint_eq(f.request_id, 0xdeadbeef);
		ck_assert_uint_eq(f.payload.n, 2);
		ck_assert_mem_eq(f.payload.p, "hi", 2);
	}
}
END_TEST

START_TEST(every_flipped_bit_is_seen)
{
	for (size_t bit = 32; bit < 16 * 8; bit++) {
		uint8_t raw[16];
		by_hand(raw);
		raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct frame f;
		size_t used;
		struct err err = {0};
		UNIT_STATUS(frame_parse((struct bytes){raw, 16}, 100, &f, &used, &err),
			    ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, "frame.crc");
	}
}
END_TEST

START_TEST(lengths)
{
	struct frame f;
	size_t used;
	struct err err = {0};
	/* A length that cannot hold the header is refused before the rest arrives. */
	for (uint8_t n = 0; n < 10; n++) {
		uint8_t raw[4] = {0, 0, 0, n};
		UNIT_STATUS(frame_parse((struct bytes){raw, 4}, 100, &f, &used, &err),
			    ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, "frame.length");
	}
	uint8_t huge[4] = {0xff, 0xff, 0xff, 0xff};
	UNIT_STATUS(frame_parse((struct bytes){huge, 4}, FRAME_MAX, &f, &used, &err), ST_TOO_LARGE);
	/* The limit counts the whole frame. */
	uint8_t raw[16];
	by_hand(raw);
	UNIT_OK(frame_parse((struct bytes){raw, 16}, 16, &f, &used, &err), &err);
	UNIT_STATUS(frame_parse((struct bytes){raw, 4}, 15, &f, &used, &err), ST_TOO_LARGE);
	UNIT_STATUS(frame_parse((struct bytes){raw, 4}, 0, &f, &used, &err), ST_TOO_LARGE);
	/* An empty payload is a frame. */
	struct buf b;
	buf_init(&b, 1024);
	frame_put(&b, &(struct frame){9, 1, 7, {NULL, 0}});
	UNIT_OK(frame_parse(buf_bytes(&b), 100, &f, &used, &err), &err);
	ck_assert_uint_eq(used, 14);
	ck_assert_uint_eq(f.payload.n, 0);
	buf_fini(&b);
}
END_TEST

START_TEST(full_buffer_poisons)
{
	struct buf b;
	buf_init(&b, 15);
	frame_put(&b, &(struct frame){9, 1, 7, {(const uint8_t *)"ab", 2}});
	ck_assert(!buf_ok(&b));
	buf_fini(&b);
	buf_init(&b, 10);
	frame_put(&b, &(struct frame){9, 1, 7, {NULL, 0}});
	ck_assert(!buf_ok(&b));
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("frame");
	TCase *c = tcase_create("frame");
	tcase_add_test(c, layout);
	tcase_add_test(c, reads_by_parts);
	tcase_add_test(c, every_flipped_bit_is_seen);
	tcase_add_test(c, lengths);
	tcase_add_test(c, full_buffer_poisons);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
