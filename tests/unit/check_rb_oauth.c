/* Bodies and headers of the token endpoint; requests of RFC 6749 and RFC 8693. */
#include "proto/rest/rb_oauth.h"
#include "tests/unit/unit.h"

static struct arena arena;
static struct err err;
static struct rb_grant g;
static enum rb_oauth_error why;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
	err = (struct err){0};
	g = (struct rb_grant){0};
}
static void teardown(void)
{
	arena_fini(&arena);
}

static enum status parse(const char *z)
{
	err = (struct err){0};
	return rb_grant_parse((struct bytes){(const uint8_t *)z, strlen(z)}, &arena, &g, &why, &err);
}

START_TEST(credentials)
{
	/* As Iceberg's Java client sends it. */
	UNIT_OK(parse("grant_type=client_credentials&client_id=me&client_secret=s%26%3D%2B%C3%A9+x&scope=catalog"), &err);
	ck_assert_int_eq(g.kind, RB_GRANT_CLIENT);
	ck_assert(strv_eq(g.client_id, STRV("me")));
	ck_assert(strv_eq(g.client_secret, STRV("s&=+\xc3\xa9 x")));
	ck_assert(strv_eq(g.scope, STRV("catalog")));
	UNIT_OK(parse("&&grant_type=client_credentials&audience=x&&client_id=&resource"), &err);
	ck_assert(g.client_id.p && g.client_id.n == 0 && !g.client_secret.p && !g.scope.p);
}
END_TEST

START_TEST(exchange)
{
	UNIT_OK(parse("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=a.b"
		      "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"),
		&err);
	ck_assert_int_eq(g.kind, RB_GRANT_EXCHANGE);
	ck_assert(strv_eq(g.subject_token, STRV("a.b")));
	UNIT_STATUS(parse("grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=a"
			  "&subject_token_type=urn:ietf:params:oauth:token-type:id_token"),
		    ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "subject_token_type");
	UNIT_STATUS(parse("grant_type=urn:ietf:params:oauth:grant-type:token-exchange"), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "subject_token");
	ck_assert_int_eq(why, RB_OAUTH_INVALID_REQUEST);
}
END_TEST

START_TEST(refused)
{
	static const struct {
		const char *body, *field;
		enum rb_oauth_error why;
	} v[] = {
		{"", "grant_type", RB_OAUTH_INVALID_REQUEST},
		{"client_id=a", "grant_type", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=", "grant_type", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=password", "grant_type", RB_OAUTH_UNSUPPORTED_GRANT},
		{"grant_type=client_credentials&client_id=a&client_id=a", "client_id", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=client_credentials&client_id=%", "body", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=client_credentials&client_id=%4", "body", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=client_credentials&client_id=%zz", "body", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=client_credentials&client_id=%00", "body", RB_OAUTH_INVALID_REQUEST},
		{"grant_type=client_credentials&client_id=%ff", "body", RB_OAUTH_INVALID_REQUEST},
	};
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		UNIT_STATUS(parse(v[i].body), ST_BAD_REQUEST);
		ck_assert_msg(!strcmp(err.field, v[i].field) && why == v[i].why, "%s: %s", v[i].body, err.field);
	}
	struct buf b;
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 65; i++)
		buf_puts(&b, "a=b&");
	UNIT_STATUS(rb_grant_parse(buf_bytes(&b), &arena, &g, &why, &err), ST_BAD_REQUEST);
	while (b.n <= RB_OAUTH_BODY_MAX)
		buf_puts(&b, "&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&");
	UNIT_STATUS(rb_grant_parse(buf_bytes(&b), &arena, &g, &why, &err), ST_BAD_REQUEST);
	buf_fini(&b);
}
END_TEST

START_TEST(headers)
{
	struct strv id, secret, token;
	/* RFC 6749 §2.3.1. */
	ck_assert(rb_oauth_basic(STRV("Basic czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3"), &arena, &id, &secret));
	ck_assert(strv_eq(id, STRV("s6BhdRkqt3")) && strv_eq(secret, STRV("7Fjfp0ZBr1KtDRbnfVdmIw")));
	ck_assert(rb_oauth_basic(STRV("bASIC   YSUzQTpiJTNB"), &arena, &id, &secret)); /* "a%3A:b%3A" */
	ck_assert(strv_eq(id, STRV("a:")) && strv_eq(secret, STRV("b:")));
	static const char *const bad[] = {"", "Basic", "Basic ", "Basic !!!!", "Basic YQ==", "Basic YTo=x", "Bearer YTpi", "BasicYTpi"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!rb_oauth_basic(strv_of(bad[i]), &arena, &id, &secret), "%s", bad[i]);
	ck_assert(!rb_oauth_basic((struct strv){NULL, 0}, &arena, &id, &secret));
	ck_assert(rb_oauth_bearer(STRV("bearer mF_9.B5f-4.1JqM "), &token) && strv_eq(token, STRV("mF_9.B5f-4.1JqM")));
	ck_assert(!rb_oauth_bearer(STRV("Bearer "), &token) && !rb_oauth_bearer(STRV("Basic YTpi"), &token));
}
END_TEST

static void wrote(struct buf *b, const char *want)
{
	ck_assert_msg(buf_ok(b) && strv_eq(buf_strv(b), strv_of(want)), "%.*s", STRV_ARG(buf_strv(b)));
	buf_fini(b);
	buf_init(b, 4096);
}

START_TEST(answers)
{
	struct buf b;
	buf_init(&b, 4096);
	rb_oauth_token_write(&b, STRV("t"), 3600, (struct strv){NULL, 0}, false);
	wrote(&b, "{\"access_token\":\"t\",\"token_type\":\"bearer\",\"expires_in\":3600}");
	rb_oauth_token_write(&b, STRV("t"), 60, STRV("catalog"), true);
	wrote(&b, "{\"access_token\":\"t\",\"token_type\":\"bearer\",\"expires_in\":60,\"issued_token_type\":"
		  "\"urn:ietf:params:oauth:token-type:access_token\",\"scope\":\"catalog\"}");
	err_set(&err, ST_NOT_AUTHORIZED, "client_id", "is \"unknown\"");
	rb_oauth_error_write(&b, RB_OAUTH_INVALID_CLIENT, &err);
	wrote(&b, "{\"error\":\"invalid_client\",\"error_description\":\"client_id: is \\\"unknown\\\"\"}");
	ck_assert_int_eq(rb_oauth_http(RB_OAUTH_INVALID_CLIENT), 401);
	ck_assert_int_eq(rb_oauth_http(RB_OAUTH_INVALID_GRANT), 400);
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rb_oauth");
	TCase *t = tcase_create("rb_oauth");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, credentials);
	tcase_add_test(t, exchange);
	tcase_add_test(t, refused);
	tcase_add_test(t, headers);
	tcase_add_test(t, answers);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
