#include "daemon/net/route.h"

#include "tests/unit/unit.h"

static struct arena arena;
static struct err err;
static struct route_hit hit;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
}
static void teardown(void)
{
	arena_fini(&arena);
}

static enum status on(enum route_surface surface, const char *method, const char *target)
{
	memset(&hit, 0, sizeof hit);
	memset(&err, 0, sizeof err);
	return route_match(surface, strv_of(method), strv_of(target), &arena, &hit, &err);
}

static enum status rest(const char *method, const char *target)
{
	return on(ROUTE_REST, method, target);
}

static bool is(struct strv s, const char *z)
{
	return strv_eq(s, strv_of(z));
}

START_TEST(paths)
{
	UNIT_OK(rest("GET", "/v1/config?warehouse=main"), &err);
	ck_assert_int_eq(hit.route, ROUTE_config);
	ck_assert(is(route_arg(&hit, "warehouse")->value.text, "main"));
	ck_assert_ptr_null(route_arg(&hit, "other"));
	UNIT_OK(rest("GET", "/v1/namespaces"), &err);
	ck_assert_int_eq(hit.route, ROUTE_ns_list);
	ck_assert_ptr_null(hit.prefix.p);
	UNIT_OK(rest("POST", "/v1/main/namespaces/a/tables/t"), &err);
	ck_assert_int_eq(hit.route, ROUTE_table_commit);
	ck_assert(is(hit.prefix, "main") && is(hit.params[0].text, "a") &&
		  is(hit.params[1].text, "t"));
	ck_assert_uint_eq(hit.n_params, 2);
	UNIT_OK(rest("HEAD", "/v1/namespaces/a/tables/t"), &err);
	ck_assert_int_eq(hit.route, ROUTE_table_exists);
	UNIT_OK(rest("HEAD", "/v1/namespaces"), &err);
	ck_assert_int_eq(hit.route, ROUTE_ns_list);
	UNIT_OK(rest("POST", "/v1/tables/rename"), &err);
	ck_assert_int_eq(hit.route, ROUTE_table_rename);
	UNIT_OK(rest("POST", "/v1/w/tables/rename"), &err);
	ck_assert_int_eq(hit.route, ROUTE_table_rename);
	/* A table named like a literal, a namespace named like one. */
	UNIT_OK(rest("GET", "/v1/namespaces/namespaces/tables/tables"), &err);
	ck_assert_int_eq(hit.route, ROUTE_table_load);
	ck_assert_ptr_null(hit.prefix.p);
	/* An encoded letter is the same letter. */
	UNIT_OK(rest("GET", "/v1/%6Eamespaces"), &err);
	ck_assert_int_eq(hit.route, ROUTE_ns_list);
	UNIT_OK(rest("GET", "http://h:1/v1/config"), &err);
	ck_assert_int_eq(hit.route, ROUTE_config);
}
END_TEST

START_TEST(decoding)
{
	/* Java writes a space as '+' and a plus as %2B; an encoded slash belongs to the name. */
	UNIT_OK(rest("GET", "/v1/namespaces/a+b%2Bc%20d/tables/x%2Fy%C3%A9"), &err);
	ck_assert(is(hit.params[0].text, "a b+c d"));
	ck_assert(is(hit.params[1].text, "x/y\xc3\xa9"));
	ck_assert(is(hit.params[1].raw, "x%2Fy%C3%A9"));
	static const char *const bad[] = {
		"/v1/namespaces/a%00b",
		"/v1/namespaces/a%",
		"/v1/namespaces/a%2",
		"/v1/namespaces/a%zz",
		"/v1/namespaces/a%C3",
		"/v1/namespaces/%ED%A0%80",
		"/v1/config?w=%00",
		"/v1/config?w=%",
		"/v1/namespaces/a\x1f",
		"/v1/namespaces/a b",
		"v1/config",
		"*",
		"",
		"/v1/config?%ff=1",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(rest("GET", bad[i]) == ST_BAD_REQUEST, "%s", bad[i]);
}
END_TEST

START_TEST(namespaces)
{
	struct strv *levels = NULL;
	size_t n = 0;
	UNIT_OK(rest("GET", "/v1/namespaces/a%1Fb%2Fc%1fd+e"), &err);
	UNIT_OK(route_namespace(&arena, hit.params[0].raw, "namespace", &levels, &n, &err), &err);
	ck_assert_uint_eq(n, 3);
	ck_assert(is(levels[0], "a") && is(levels[1], "b/c") && is(levels[2], "d e"));
	UNIT_OK(route_namespace(&arena, STRV("a%251Fb"), "namespace", &levels, &n, &err), &err);
	ck_assert_uint_eq(n, 1);
	ck_assert(is(levels[0], "a%1Fb"));
	static const char *const bad[] = {"", "%1F", "a%1F", "%1Fa", "a%1F%1Fb", "a%1F%00"};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(route_namespace(&arena, strv_of(bad[i]), "namespace", &levels, &n,
					      &err) == ST_BAD_REQUEST,
			      "%s", bad[i]);
}
END_TEST

START_TEST(refusals)
{
	static const char *const unknown[] = {
		"/",
		"/v1",
		"/v1/",
		"/v2/config",
		"/v1/config/x",
		"/healthz",
		"/v1/w/config",
		"/v1/w",
		"/v1/namespaces/",
		"/v1//namespaces",
		"//",
		"/v1/a/b/c/d/e",
		"/frazil/v1",
		"/v1/namespaces//tables",
		"/v1/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
	};
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		ck_assert_msg(rest("GET", unknown[i]) == ST_NOT_FOUND, "%s", unknown[i]);
	UNIT_STATUS(rest("PUT", "/v1/w/namespaces/a"), ST_METHOD_NOT_ALLOWED);
	ck_assert_str_eq(hit.allow, "GET, HEAD, DELETE");
	UNIT_STATUS(rest("get", "/v1/config"), ST_METHOD_NOT_ALLOWED);
	UNIT_STATUS(rest("DELETE", "/v1/tables/rename"), ST_METHOD_NOT_ALLOWED);
	ck_assert_str_eq(hit.allow, "POST");

	char many[1000] = "/v1/config?";
	for (int i = 0; i <= ROUTE_ARGS_MAX; i++)
		memcpy(many + strlen(many), "a=1&", 5);
	UNIT_STATUS(rest("GET", many), ST_BAD_REQUEST);
	/* One less, empty parts do not count. */
	UNIT_OK(rest("GET", "/v1/config?&&a&=b&c=&"), &err);
	ck_assert_uint_eq(hit.n_args, 3);
	ck_assert_uint_eq(route_arg(&hit, "a")->value.text.n, 0);
}
END_TEST

START_TEST(others)
{
	UNIT_OK(rest("POST", "/frazil/v1/begin%20x?y=1"), &err);
	ck_assert_int_eq(hit.route, ROUTE_mirror);
	ck_assert(is(hit.rest, "begin%20x"));
	UNIT_OK(on(ROUTE_ADMIN, "GET", "/healthz"), &err);
	ck_assert_int_eq(hit.route, ROUTE_healthz);
	UNIT_OK(on(ROUTE_ADMIN, "POST", "/admin/tables/x/resume"), &err);
	ck_assert(is(hit.params[0].text, "x"));
	UNIT_STATUS(on(ROUTE_ADMIN, "GET", "/v1/config"), ST_NOT_FOUND);
	UNIT_STATUS(on(ROUTE_ADMIN, "GET", "/frazil/v1/x"), ST_NOT_FOUND);
}
END_TEST

/* Clients compare these strings with the specification's. */
START_TEST(endpoints)
{
	static const struct {
		enum route route;
		const char *text;
	} want[] = {
		{ROUTE_ns_list, "GET /v1/{prefix}/namespaces"},
		{ROUTE_table_exists, "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"},
		{ROUTE_table_metrics,
		 "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"},
		{ROUTE_table_register, "POST /v1/{prefix}/namespaces/{namespace}/register"},
		{ROUTE_txn_commit, "POST /v1/{prefix}/transactions/commit"},
		{ROUTE_view_load, "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"},
	};
	struct buf b;
	buf_init(&b, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		buf_clear(&b);
		ck_assert(route_endpoint(want[i].route, &b));
		ck_assert(is(buf_strv(&b), want[i].text));
	}
	ck_assert(!route_endpoint(ROUTE_mirror, &b) && !route_endpoint(ROUTE_metrics, &b));
	ck_assert(route_is_commit(ROUTE_table_commit) && route_is_commit(ROUTE_txn_commit));
	ck_assert(!route_is_commit(ROUTE_table_load));
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("route");
	TCase *t = tcase_create("route");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, paths);
	tcase_add_test(t, decoding);
	tcase_add_test(t, namespaces);
	tcase_add_test(t, refusals);
	tcase_add_test(t, others);
	tcase_add_test(t, endpoints);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
