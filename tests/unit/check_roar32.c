#include "proto/dv/roar32.h"

#include "tests/unit/golden.h"

static void canonical(const char *hex, struct buf *out)
{
	struct buf in;
	buf_init(&in, 1 << 16);
	golden_hex(hex, &in);
	size_t len = 0;
	uint64_t n = 0;
	struct err err = {0};
	UNIT_OK(roar32_check(buf_bytes(&in), &len, &n, &err), &err);
	ck_assert_uint_eq(len, in.n);
	buf_init(out, 1 << 16);
	roar32_canonical(buf_bytes(&in), out);
	ck_assert(buf_ok(out));
	buf_fini(&in);
}

/* Expected bytes follow from the format specification and from "a run only where smaller". */
START_TEST(containers_change)
{
	static const struct {
		const char *in, *want;
	} cases[] = {
		{"3a30000000000000", "3a30000000000000"},
		/* array of four neighbours -> run; the offset table goes, flags come */
		{"3a30000001000000 0000 0300 10000000 0700 0800 0900 0a00",
		 "3b300000 01 0000 0300 0100 0700 0300"},
		/* a run of three -> array of three */
		{"3b300000 01 0000 0200 0100 0700 0200",
		 "3a30000001000000 0000 0200 10000000 0700 0800 0900"},
		/* four containers keep offsets beside run flags: three singles and a run */
		{"3a30000004000000 0000 0000 0100 0000 0200 0000 0300 0300"
		 "28000000 2a000000 2c000000 2e000000 0100 0200 0300 0400 0500 0600 0700",
		 "3b300300 08 0000 0000 0100 0000 0200 0000 0300 0300"
		 "25000000 27000000 29000000 2b000000 0100 0200 0300 0100 0400 0300"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out, want;
		canonical(cases[i].in, &out);
		buf_init(&want, 1 << 16);
		golden_hex(cases[i].want, &want);
		ck_assert_msg(bytes_eq(buf_bytes(&out), buf_bytes(&want)), "case %zu", i);
		buf_fini(&out);
		buf_fini(&want);
	}
}
END_TEST

START_TEST(runs_become_bitmap)
{
	/* 2,048 runs of three values: 8,194 bytes as runs, 8,192 as a bitmap. */
	struct buf in, out;
	buf_init(&in, 1 << 16);
	buf_init(&out, 1 << 16);
	golden_hex("3b300000 01 0000 ff17 0008", &in);
	for (unsigned i = 0; i < 2048; i++) {
		uint8_t run[4];
		put_u16le(run, (uint16_t)(i * 32 + 1));
		put_u16le(run + 2, 2);
		buf_put(&in, run, 4);
	}
	size_t len;
	uint64_t n = 0;
	struct err err = {0};
	UNIT_OK(roar32_check(buf_bytes(&in), &len, &n, &err), &err);
	ck_assert_uint_eq(n, 6144);
	roar32_canonical(buf_bytes(&in), &out);
	ck_assert_uint_eq(out.n, 16 + 8192);
	for (size_t i = 0; i < 2048; i++)
		ck_assert_uint_eq(get_u32le(out.p + 16 + i * 4), 0xe);
	buf_fini(&in);
	buf_fini(&out);
}
END_TEST

START_TEST(trailing_bytes_are_left)
{
	struct buf in;
	buf_init(&in, 64);
	golden_hex("3a30000001000000 0000 0000 10000000 0500 ffff", &in);
	size_t len = 0;
	uint64_t n = 0;
	struct err err = {0};
	UNIT_OK(roar32_check(buf_bytes(&in), &len, &n, &err), &err);
	ck_assert_uint_eq(len, 18);
	ck_assert_uint_eq(n, 1);
	buf_fini(&in);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("roar32");
	TCase *t = tcase_create("canonical");
	tcase_add_test(t, containers_change);
	tcase_add_test(t, runs_become_bitmap);
	tcase_add_test(t, trailing_bytes_are_left);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
