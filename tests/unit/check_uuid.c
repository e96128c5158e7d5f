#include "proto/base/uuid.h"
#include "tests/unit/unit.h"

static void same(struct uuid u, const char *text)
{
	char out[UUID_TEXT_LEN + 1];
	uuid_text(u, out);
	ck_assert_str_eq(out, text);
}

/* RFC 9562, appendix A.3 and A.6. */
START_TEST(vectors)
{
	static const uint8_t four[16] = {0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x33, 0x20,
					 0x5b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8};
	/* The top bits under version and variant are overwritten: any value will do. */
	static const uint8_t seven[10] = {0xfc, 0xc3, 0x58, 0xc4, 0xdc,
					  0x0c, 0x0c, 0x07, 0x39, 0x8f};
	struct uuid u;
	u = uuid_v4(four);
	same(u, "919108f7-52d1-4320-9bac-f847db4148a8");
	ck_assert_int_eq(uuid_version(u), 4);
	u = uuid_v7(1645557742000, seven);
	same(u, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
	ck_assert_int_eq(uuid_version(u), 7);
	ck_assert_int_eq(uuid_v7_ms(u), 1645557742000);
	ck_assert_int_eq(uuid_v7_ms(uuid_v7(((int64_t)1 << 48) - 1, seven)),
			 ((int64_t)1 << 48) - 1);
	ck_assert_int_eq(uuid_v7_ms(uuid_v7(0, seven)), 0);
}
END_TEST

START_TEST(parsing)
{
	struct uuid u, v;
	ck_assert(uuid_parse(STRV("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), &u));
	ck_assert(uuid_parse(STRV("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), &v));
	ck_assert(uuid_eq(u, v));
	same(u, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
	static const char *const bad[] = {
		"",
		"017f22e279b07cc398c4dc0c0c07398f",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398ff",
		"{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
		"017f22e2-79b0-7cc3-98c4+dc0c0c07398f",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
		"017f22e-279b0-7cc3-98c4-dc0c0c07398f",
		" 17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_msg(!uuid_parse(strv_of(bad[i]), &u), "%s", bad[i]);
		ck_assert(uuid_eq(u, v));
	}
	ck_assert(!uuid_is_nil(u));
	ck_assert(uuid_parse(STRV("00000000-0000-0000-0000-000000000000"), &u));
	ck_assert(uuid_is_nil(u));
}
END_TEST

/* Later version 7 ids sort after earlier ones: outcomes are kept in this order. */
START_TEST(order)
{
	uint8_t high[10], low[10] = {0};
	memset(high, 0xff, sizeof high);
	ck_assert_int_lt(uuid_cmp(uuid_v7(255, high), uuid_v7(256, low)), 0);
	ck_assert_int_lt(uuid_cmp(uuid_v7(1000, low), uuid_v7(1000, high)), 0);
	ck_assert_int_eq(uuid_cmp(uuid_v7(5, low), uuid_v7(5, low)), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("uuid");
	TCase *t = tcase_create("uuid");
	tcase_add_test(t, vectors);
	tcase_add_test(t, parsing);
	tcase_add_test(t, order);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
