/* Clients and their tokens. */
#include "daemon/net/auth.h"
#include "tests/unit/unit.h"

#define ONE "alice:0123456789abcdef\n"

static struct err err;

static enum status parse(const char *z, struct auth **ret)
{
	err = (struct err){0};
	return auth_parse((struct bytes){(const uint8_t *)z, strlen(z)}, ret, &err);
}

START_TEST(files)
{
	struct auth *a = NULL;
	struct strv name;
	UNIT_OK(parse("# who may come\n\n  bob:with:colon and space \r\n" ONE "carol:0123456789abcdef", &a), &err);
	ck_assert(auth_client(a, STRV("alice"), STRV("0123456789abcdef"), &name) && strv_eq(name, STRV("alice")));
	ck_assert(auth_client(a, STRV("bob"), STRV("with:colon and space"), &name));
	ck_assert(auth_client(a, STRV("carol"), STRV("0123456789abcdef"), &name));
	ck_assert(!auth_client(a, STRV("alice"), STRV("0123456789abcdeF"), &name));
	ck_assert(!auth_client(a, STRV("alice"), (struct strv){NULL, 0}, &name));
	ck_assert(!auth_client(a, STRV("Alice"), STRV("0123456789abcdef"), &name));
	ck_assert(!auth_client(a, (struct strv){NULL, 0}, STRV("0123456789abcdef"), &name));
	auth_free(a);
	static const char *const bad[] = {
		"", "# none\n", "alice\n", ":0123456789abcdef", "alice:short", "alice:0123456789abcde",
		ONE ONE, "al\xff:0123456789abcdef"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		UNIT_STATUS(parse(bad[i], &a), ST_ILLEGAL_ARGUMENT);
		ck_assert_str_eq(err.field, "auth.clients-file");
		/* What is wrong is told without what is secret. */
		ck_assert(!strstr(err.msg, "0123") && !strstr(err.msg, "short"));
	}
	struct buf b;
	buf_init(&b, 1 << 20);
	for (int i = 0; i <= AUTH_CLIENTS_MAX; i++)
		buf_printf(&b, "c%d:0123456789abcdef\n", i);
	UNIT_STATUS(auth_parse(buf_bytes(&b), &a, &err), ST_ILLEGAL_ARGUMENT);
	buf_fini(&b);
}
END_TEST

START_TEST(tokens)
{
	struct auth *a, *same, *other;
	struct strv name;
	struct buf b, evil;
	UNIT_OK(parse(ONE "bob:fedcba9876543210\n", &a), &err);
	UNIT_OK(parse(ONE "bob:fedcba9876543210\n", &same), &err);
	UNIT_OK(parse(ONE "bob:fedcba9876543211\n", &other), &err);
	buf_init(&b, 4096);
	auth_issue(a, STRV("alice"), 1000, &b);
	struct strv t = buf_strv(&b);
	UNIT_OK(auth_check(a, t, 999, false, &name, &err), &err);
	ck_assert(strv_eq(name, STRV("alice")));
	UNIT_OK(auth_check(same, t, 0, false, &name, &err), &err);
	UNIT_STATUS(auth_check(a, t, 1000, false, &name, &err), ST_NOT_AUTHORIZED);
	ck_assert_str_eq(err.msg, "the token has expired");
	UNIT_OK(auth_check(a, t, 1000, true, &name, &err), &err);
	UNIT_STATUS(auth_check(other, t, 0, true, &name, &err), ST_NOT_AUTHORIZED);
	/* Any byte changed, dropped or added makes it somebody else's. */
	for (size_t i = 0; i < t.n; i++) {
		b.p[i] ^= 1;
		UNIT_STATUS(auth_check(a, t, 0, true, &name, &err), ST_NOT_AUTHORIZED);
		b.p[i] ^= 1;
		UNIT_STATUS(auth_check(a, strv_sub(t, 0, i), 0, true, &name, &err), ST_NOT_AUTHORIZED);
	}
	buf_init(&evil, 1 << 20);
	buf_putv(&evil, t);
	buf_putc(&evil, '0');
	UNIT_STATUS(auth_check(a, buf_strv(&evil), 0, true, &name, &err), ST_NOT_AUTHORIZED);
	while (evil.n < 100000)
		buf_putc(&evil, '.');
	UNIT_STATUS(auth_check(a, buf_strv(&evil), 0, true, &name, &err), ST_NOT_AUTHORIZED);
	buf_fini(&evil);
	buf_fini(&b);
	auth_free(a);
	auth_free(same);
	auth_free(other);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("auth");
	TCase *t = tcase_create("auth");
	tcase_add_test(t, files);
	tcase_add_test(t, tokens);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
