#include "proto/rpc/msg_json.h"

#include "tests/unit/unit.h"

#define ARENA ((size_t)1 << 20)

static enum status decode(const struct rpc_record *r, const char *text, struct arena *a,
			  const void **ret_v, struct err *err)
{
	return msg_json_decode(r, strv_bytes(strv_of(text)), a, ret_v, err);
}

START_TEST(defaults_and_names)
{
	struct arena a;
	struct err err = {0};
	const void *v = NULL;
	arena_init(&a, ARENA);
	UNIT_OK(decode(&rpc_record_begin,
		       "{\"txn_id\":\"0190b3a0-0000-7000-8000-0000000000FF\",\"namespace\":[\"a\","
		       "\"b\"],"
		       "\"table\":\"t\",\"kind\":\"ROW_DELTA\",\"read_snapshot_id\":"
		       "9223372036854775807,"
		       "\"filter\":null,\"source\":{\"source_id\":\"s\",\"epoch\":1,\"seq_from\":-"
		       "5,"
		       "\"seq_to\":6}}",
		       &a, &v, &err),
		&err);
	const struct rpc_begin *b = v;
	ck_assert_uint_eq(b->txn_id.b[0], 0x01);
	ck_assert_uint_eq(b->txn_id.b[15], 0xff);
	ck_assert_uint_eq(b->warehouse.n, 0);
	ck_assert(strv_eq(b->ref, STRV("main")));
	ck_assert_uint_eq(b->n_namespace, 2);
	ck_assert(strv_eq(b->namespace[1], STRV("b")));
	ck_assert_int_eq(b->kind, RPC_KIND_ROW_DELTA);
	ck_assert_int_eq(b->isolation, RPC_ISOLATION_SNAPSHOT);
	ck_assert(b->has_read_snapshot_id && b->read_snapshot_id == INT64_MAX);
	ck_assert(!b->has_filter && !b->ordered);
	ck_assert_ptr_nonnull(b->source);
	ck_assert_int_eq(b->source->seq_from, -5);
	UNIT_OK(decode(&rpc_record_seal,
		       "{\"txn_id\":\"0190b3a0-0000-7000-8000-0000000000ff\",\"lease_token\":\"AP8="
		       "\"}",
		       &a, &v, &err),
		&err);
	const struct rpc_seal *s = v;
	ck_assert_int_eq(s->expected_files, RPC_EXPECTED_NONE);
	ck_assert_uint_eq(s->lease_token.n, 2);
	ck_assert_uint_eq(s->lease_token.p[1], 0xff);
	ck_assert_uint_eq(s->n_fragments, 0);
	arena_fini(&a);
}
END_TEST

START_TEST(text)
{
	/* Absent optional members are left out; order is the table's. */
	struct rpc_outcome o = {.state = RPC_STATE_REJECTED,
				.has_snapshot_id = true,
				.snapshot_id = INT64_MIN,
				.metadata_location = STRV("a\"b")};
	struct rpc_error e = {.code = 62,
			      .name = STRV("WRITE_WRITE"),
			      .retry = RPC_RETRY_NONE,
			      .effect = RPC_EFFECT_CLEAN};
	o.reject = &e;
	struct buf b;
	buf_init(&b, 4096);
	msg_json_encode(&rpc_record_outcome, &o, &b);
	static const char want[] =
		"{\"txn_id\":\"00000000-0000-0000-0000-000000000000\",\"state\":\"REJECTED\","
		"\"snapshot_id\":-9223372036854775808,\"metadata_location\":\"a\\\"b\","
		"\"rows_inserted\":0,\"rows_updated\":0,\"rows_deleted\":0,\"files\":[],"
		"\"deletes\":[],"
		"\"reject\":{\"code\":62,\"name\":\"WRITE_WRITE\",\"field\":\"\",\"message\":\"\","
		"\"retry\":\"NONE\",\"effect\":\"CLEAN\"},\"note\":\"\"}";
	ck_assert_uint_eq(b.n, sizeof want - 1);
	ck_assert_mem_eq(b.p, want, b.n);
	buf_fini(&b);
}
END_TEST

#define T "\"txn_id\":\"0190b3a0-0000-7000-8000-0000000000ff\""

static const struct {
	const struct rpc_record *record;
	const char *text;
	const char *field;
} hostile[] = {
	{&rpc_record_status, "", NULL},
	{&rpc_record_status, "[]", ""},
	{&rpc_record_status, "{}", "txn_id"},
	{&rpc_record_status, "{\"txn_id\":null}", "txn_id"},
	{&rpc_record_status, "{\"txn_id\":\"0190b3a0\"}", "txn_id"},
	{&rpc_record_status, "{" T ",\"extra\":1}", "extra"},
	{&rpc_record_status, "{" T "," T "}", NULL},
	{&rpc_record_abort, "{" T ",\"lease_token\":\"AP8\"}", "lease_token"},
	{&rpc_record_abort, "{" T ",\"lease_token\":[1]}", "lease_token"},
	{&rpc_record_abort, "{" T ",\"lease_token\":\"\",\"reason\":null}", "reason"},
	{&rpc_record_abort, "{" T ",\"lease_token\":\"\",\"reason\":\"a\\u0000b\"}", "reason"},
	{&rpc_record_hello, "{\"min_version\":2147483648,\"max_version\":1}", "min_version"},
	{&rpc_record_hello, "{\"min_version\":1.0,\"max_version\":1}", "min_version"},
	{&rpc_record_hello, "{\"min_version\":\"1\",\"max_version\":1}", "min_version"},
	{&rpc_record_hello, "{\"min_version\":1,\"max_version\":1,\"capabilities\":{}}",
	 "capabilities"},
	{&rpc_record_hello, "{\"min_version\":1,\"max_version\":1,\"capabilities\":[\"a\",3]}",
	 "capabilities[1]"},
	{&rpc_record_commit, "{" T ",\"lease_token\":\"\",\"max_wait_ms\":9223372036854775808}",
	 NULL},
	{&rpc_record_commit, "{" T ",\"lease_token\":\"\",\"summary\":[{\"key\":\"k\"}]}",
	 "summary[0].value"},
	{&rpc_record_begin, "{" T ",\"table\":\"t\",\"kind\":\"append\"}", "kind"},
	{&rpc_record_begin, "{" T ",\"table\":\"t\",\"kind\":0}", "kind"},
	{&rpc_record_begin, "{" T ",\"table\":\"t\",\"kind\":\"APPEND\",\"ordered\":1}", "ordered"},
	{&rpc_record_begin, "{" T ",\"table\":\"t\",\"kind\":\"APPEND\",\"source\":{\"x\":1}}",
	 "source.x"},
	{&rpc_record_fragment_ref, "{\"fragment_id\":\"f\",\"digest\":\"AAAA\"}", "digest"},
	{&rpc_record_fragment_ref, "{\"fragment_id\":\"f\",\"digest\":3}", "digest"},
};

START_TEST(refuses)
{
	struct arena a;
	struct err err = {0};
	const void *v = &err;
	arena_init(&a, ARENA);
	enum status st = decode(hostile[_i].record, hostile[_i].text, &a, &v, &err);
	ck_assert_msg(st == ST_BAD_REQUEST, "%s: %s", hostile[_i].text, status_info(st)->name);
	if (hostile[_i].field)
		ck_assert_str_eq(err.field, hostile[_i].field);
	ck_assert_ptr_eq(v, &err);
	arena_fini(&a);
}
END_TEST

START_TEST(arena_limit)
{
	struct buf b;
	struct arena a;
	struct err err = {0};
	const void *v;
	buf_init(&b, 1 << 20);
	buf_puts(&b, "{\"items\":[");
	for (int i = 0; i < 2000; i++)
		buf_printf(&b, "%s{" T ",\"lease_token\":\"\"}", i ? "," : "");
	buf_puts(&b, "]}");
	arena_init(&a, 10000);
	UNIT_STATUS(msg_json_decode(&rpc_record_heartbeat, buf_bytes(&b), &a, &v, &err),
		    ST_TOO_LARGE);
	arena_fini(&a);
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("msg_json");
	TCase *c = tcase_create("msg_json");
	tcase_add_test(c, defaults_and_names);
	tcase_add_test(c, text);
	tcase_add_loop_test(c, refuses, 0, (int)ARRAY_SIZE(hostile));
	tcase_add_test(c, arena_limit);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
