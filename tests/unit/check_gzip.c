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

static struct bytes nth(const struct buf *text, size_t i, size_t of)
{
	size_t from = text->n * i / of, to = text->n * (i + 1) / of;
	return (struct bytes){text->p + from, to - from};
}

/* Parts that were packed before stand between what is packed now, in any order. */
START_TEST(parts)
{
	enum { CUTS = 7 };
	struct buf text, packed, out;
	struct gzip_writer w;
	struct gzip_part *part[CUTS];
	struct err err = {0};
	buf_init(&text, 1 << 20);
	buf_init(&packed, 1 << 20);
	buf_init(&out, 1 << 20);
	for (int i = 0; i < 30000; i++)
		buf_printf(&text, "%d,", i * i);
	for (size_t i = 0; i < CUTS; i++) {
		/* However a part's content is cut. */
		struct bytes whole = nth(&text, i, CUTS);
		struct bytes cut[] = {{whole.p, 10}, {0}, {whole.p + 10, whole.n - 10}};
		part[i] = gzip_part_new(&(struct pieces){.v = cut, .n = ARRAY_SIZE(cut)});
		ck_assert_ptr_nonnull(part[i]);
		ck_assert_uint_lt(gzip_part_memory(part[i]), whole.n);
	}
	for (unsigned as_part = 0; as_part < 1 << CUTS; as_part++) {
		buf_clear(&packed);
		buf_clear(&out);
		gzip_begin(&w, &packed);
		for (size_t i = 0; i < CUTS; i++) {
			if (as_part & 1u << i)
				gzip_put_part(&w, part[i]);
			else
				gzip_put(&w, nth(&text, i, CUTS));
		}
		UNIT_OK(gzip_end(&w, &err), &err);
		UNIT_OK(gzip_read(buf_bytes(&packed), &out, &err), &err);
		ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&text)));
	}
	/* No room: told at the end, wherever it was. */
	for (size_t max = 0; max < packed.n; max += 1009) {
		struct buf small;
		buf_init(&small, max);
		gzip_begin(&w, &small);
		gzip_put(&w, nth(&text, 0, CUTS));
		for (size_t i = 1; i < CUTS; i++)
			gzip_put_part(&w, part[i]);
		UNIT_STATUS(gzip_end(&w, &err), ST_LIMIT);
		buf_fini(&small);
	}
	/* Nothing at all, and a part of nothing. */
	struct gzip_part *empty = gzip_part_new(&(struct pieces){0});
	for (int i = 0; i < 2; i++) {
		buf_clear(&packed);
		buf_clear(&out);
		gzip_begin(&w, &packed);
		if (i)
			gzip_put_part(&w, empty);
		UNIT_OK(gzip_end(&w, &err), &err);
		UNIT_OK(gzip_read(buf_bytes(&packed), &out, &err), &err);
		ck_assert_uint_eq(out.n, 0);
	}
	base_free(empty);
	for (size_t i = 0; i < CUTS; i++)
		base_free(part[i]);
	buf_fini(&text);
	buf_fini(&packed);
	buf_fini(&out);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("gzip");
	TCase *t = tcase_create("gzip");
	tcase_add_test(t, foreign);
	tcase_add_test(t, damage);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, parts);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
