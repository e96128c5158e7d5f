/* Idempotency keys: their form, what they are bound to, their lifetime in words. The rest needs
 * PostgreSQL: tests/it/test_rest_idempotency.py. */
#include "daemon/rest/h_idem.h"

#include "tests/unit/unit.h"

START_TEST(key_is_a_uuid_of_version_7)
{
	/* The specification's own example. */
	static const char good[] = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
	static const char *const bad[] = {
		"", "017F22E2-79B0-7CC3-98C4-DC0C0C07398", "017F22E2-79B0-7CC3-98C4-DC0C0C07398FF",
		"017F22E279B07CC398C4DC0C0C07398F", "017F22E2-79B0-7CC3-98C4-DC0C0C07398G",
		"{17F22E2-79B0-7CC3-98C4-DC0C0C07398}",
		"017F22E2-79B0-4CC3-98C4-DC0C0C07398F", /* version 4 */
		"017F22E2-79B0-1CC3-98C4-DC0C0C07398F",
		"017F22E2-79B0-7CC3-18C4-DC0C0C07398F", /* another variant */
		"017F22E2-79B0-7CC3-D8C4-DC0C0C07398F",
	};
	static const uint8_t bytes[16] = {0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3,
					  0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f};
	struct uuid u;
	struct err err = {0};
	UNIT_OK(h_idem_parse(strv_of(good), &u, &err), &err);
	ck_assert_mem_eq(u.b, bytes, sizeof bytes);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct err){0};
		UNIT_STATUS(h_idem_parse(strv_of(bad[i]), &u, &err), ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, "Idempotency-Key");
	}
}
END_TEST

START_TEST(bound_to_all_of_it)
{
	/* Each part counts, and none flows into the next one. */
	static const char *const v[][4] = {
		{"me", "POST", "/v1/namespaces", "{}"},	  {"you", "POST", "/v1/namespaces", "{}"},
		{"me", "DELETE", "/v1/namespaces", "{}"}, {"me", "POST", "/v1/namespaces?a=b", "{}"},
		{"me", "POST", "/v1/namespaces", "{ }"},  {"me", "POST", "/v1/namespaces{}", ""},
		{"", "mePOST", "/v1/namespaces", "{}"},	  {"me", "POST/v1/namespaces", "", "{}"},
	};
	struct digest d[ARRAY_SIZE(v)];
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		d[i] = h_idem_bound(strv_of(v[i][0]), strv_of(v[i][1]), strv_of(v[i][2]),
				    strv_bytes(strv_of(v[i][3])));
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		for (size_t k = 0; k < i; k++)
			ck_assert(!digest_eq(&d[i], &d[k]));
	struct digest again = h_idem_bound(STRV("me"), STRV("POST"), STRV("/v1/namespaces"),
					   strv_bytes(STRV("{}")));
	ck_assert(digest_eq(&d[0], &again));
}
END_TEST

START_TEST(lifetime_as_iso_8601)
{
	static const struct {
		int64_t ms;
		const char *text;
	} v[] = {{1800000, "PT30M"}, {86400000, "PT1440M"}, {90000, "PT90S"}, {1, "PT0.001S"},
		 {1500, "PT1.500S"}};
	char out[H_IDEM_DURATION_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		h_idem_duration(v[i].ms, out);
		ck_assert_str_eq(out, v[i].text);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("h_idem");
	TCase *t = tcase_create("all");
	tcase_add_test(t, key_is_a_uuid_of_version_7);
	tcase_add_test(t, bound_to_all_of_it);
	tcase_add_test(t, lifetime_as_iso_8601);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
