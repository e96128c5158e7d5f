#include "proto/base/gzip.h"
#include "tests/unit/unit.h"

/* `printf 'hello' | gzip -n -9`, by GNU gzip. */
static const uint8_t hello[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
				0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
				0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};

START_TEST(foreign)
{
	struct buf out;
	struct err err = {0};
	buf_init(&out, 100);
	UNIT_OK(gzip_read((struct bytes){hello, sizeof hello}, &out, &err), &err);
	ck_assert(strv_eq(buf_strv(&out), STRV("hello")));
	buf_fini(&out);
}
END_TEST

START_TEST(damage)
{
	struct err err = {0};
	uint8_t copy[sizeof hello + 1];
	struct buf out;
	/* Every cut is noticed. */
	for (size_t n = 0; n < sizeof hello; n++) {
		buf_init(&out, 100);
		UNIT_STATUS(gzip_read((struct bytes){hello, n}, &out, &err), ST_CORRUPT);
		ck_assert_str_eq(err.field, "gzip");
		buf_fini(&out);
	}
	memcpy(copy, hello, sizeof hello);
	copy[sizeof hello] = 0;
	buf_init(&out, 100);
	UNIT_STATUS(gzip_read((struct bytes){copy, sizeof copy}, &out, &err), ST_CORRUPT);
	buf_clear(&out);
	copy[19] ^= 1; /* the checksum */
	UNIT_STATUS(gzip_read((struct bytes){copy, sizeof hello}, &out, &err), ST_CORRUPT);
	buf_fini(&out);
	/* The content is larger than it may be. */
	buf_init(&out, 4);
	UNIT_STATUS(gzip_read((struct bytes){hello, sizeof hello}, &out, &err), ST_LIMIT);
	buf_fini(&out);
}
END_TEST

START_TEST(round_trip)
{
	struct buf text, packed, out;
	struct err err = {0};
	buf_init(&text, 1 << 20);
	buf_init(&packed, 1 << 20);
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 30000; i++)
		buf_printf(&text, "%d,", i * i);
	UNIT_OK(gzip_write(buf_bytes(&text), &packed, &err), &err);
	ck_assert_uint_lt(packed.n, text.n);
	UNIT_OK(gzip_read(buf_bytes(&packed), &out, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&text)));
	buf_fini(&text);
	buf_fini(&packed);
	buf_fini(&out);
}
END_TEST

/* However the content is cut, the member is that of the whole. */
START_TEST(pieces)
{
	struct buf text, packed, out;
	struct arena a;
	struct err err = {0};
	buf_init(&text, 1 << 20);
	buf_init(&packed, 1 << 20);
	buf_init(&out, 1 << 20);
	arena_init(&a, 1 << 20);
	for (int i = 0; i < 30000; i++)
		buf_printf(&text, "%d,", i * i);
	struct pieces p = {0};
	for (size_t at = 0, n = 0; at < text.n; at += n++)
		ck_assert(pieces_add(&p, &a,
				     (struct bytes){text.p + at,
						    n < text.n - at ? n : text.n - at}));
	ck_assert_uint_gt(p.n, 100);
	UNIT_OK(gzip_write_pieces(&p, &packed, &err), &err);
	UNIT_OK(gzip_read(buf_bytes(&packed), &out, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&text)));
	/* None, and one that is empty. */
	for (size_t n = 0; n < 2; n++) {
		struct bytes empty = {0};
		p = (struct pieces){.v = &empty, .n = n};
		buf_clear(&packed);
		buf_clear(&out);
		UNIT_OK(gzip_write_pieces(&p, &packed, &err), &err);
		UNIT_OK(gzip_read(buf_bytes(&packed), &out, &err), &err);
		ck_assert_uint_eq(out.n, 0);
	}
	buf_fini(&text);
	buf_fini(&packed);
	buf_fini(&out);
	arena_fini(&a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("gzip");
	TCase *t = tcase_create("gzip");
	tcase_add_test(t, foreign);
	tcase_add_test(t, damage);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, pieces);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
