#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/requirement.h"
#include "tests/unit/golden.h"

#define U "9c12d441-03fe-4693-9a96-a0705ddf69c1"

static struct metadata *base(void)
{
	struct buf b;
	struct err err = {0};
	struct metadata *m = NULL;
	buf_init(&b, (size_t)1 << 20);
	golden_read("tests/golden/metadata/base-v3.json", &b);
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err), &err);
	buf_fini(&b);
	return m;
}

/* Parses and checks; the status of whichever failed first. */
static enum status run(const char *text, const struct metadata *m, bool *ret_create,
		       struct err *err)
{
	struct jdoc *doc = NULL;
	struct arena a;
	const struct requirement *r = NULL;
	size_t n = 0;
	arena_init(&a, 100000);
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_BAD_REQUEST, &doc, err), err);
	enum status st = requirement_parse(jdoc_root(doc), &a, &r, &n, err);
	jdoc_free(doc); /* nothing is borrowed from it */
	if (st == ST_OK && ret_create)
		*ret_create = requirement_is_create(r, n);
	if (st == ST_OK)
		st = requirement_check(r, n, m, err);
	arena_fini(&a);
	return st;
}

/* Texts after "Requirement failed: " as the reference implementation words them; NULL: it holds.
 * The second one is for a table that does not exist. */
static const struct {
	const char *json, *fails, *fails_without;
} cases[] = {
	{"{\"type\":\"assert-create\"}", "table already exists", NULL},
	{"{\"type\":\"assert-table-uuid\",\"uuid\":\"" U "\"}", NULL, "table does not exist"},
	{"{\"type\":\"ASSERT-table-uuid\",\"uuid\":\"9C12D441-03FE-4693-9A96-A0705DDF69C1\"}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-table-uuid\",\"uuid\":\"00000000-0000-4000-8000-000000000001\"}",
	 "UUID does not match: expected " U " != 00000000-0000-4000-8000-000000000001",
	 "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\",\"snapshot-id\":4}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\",\"snapshot-id\":3}",
	 "branch main has changed: expected id 3 != 4", "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"t\",\"snapshot-id\":3}",
	 "tag t has changed: expected id 3 != 2", "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"t\",\"snapshot-id\":null}",
	 "tag t was created concurrently", "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"new\",\"snapshot-id\":null}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"new\",\"snapshot-id\":4}",
	 "branch or tag new is missing, expected 4", "table does not exist"},
	{"{\"type\":\"assert-last-assigned-field-id\",\"last-assigned-field-id\":3}", NULL, NULL},
	{"{\"type\":\"assert-last-assigned-field-id\",\"last-assigned-field-id\":4}",
	 "last assigned field id changed: expected id 4 != 3", NULL},
	{"{\"type\":\"assert-current-schema-id\",\"current-schema-id\":1}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-current-schema-id\",\"current-schema-id\":0}",
	 "current schema changed: expected id 0 != 1", "table does not exist"},
	{"{\"type\":\"assert-last-assigned-partition-id\",\"last-assigned-partition-id\":1001}",
	 NULL, NULL},
	{"{\"type\":\"assert-last-assigned-partition-id\",\"last-assigned-partition-id\":999}",
	 "last assigned partition id changed: expected id 999 != 1001", NULL},
	{"{\"type\":\"assert-default-spec-id\",\"default-spec-id\":0}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-default-spec-id\",\"default-spec-id\":1}",
	 "default partition spec changed: expected id 1 != 0", "table does not exist"},
	{"{\"type\":\"assert-default-sort-order-id\",\"default-sort-order-id\":1}", NULL,
	 "table does not exist"},
	{"{\"type\":\"assert-default-sort-order-id\",\"default-sort-order-id\":2}",
	 "default sort order changed: expected id 2 != 1", "table does not exist"},
};

static void expect(enum status st, const char *fails, const struct err *err, const char *json)
{
	char want[250];
	ck_assert_msg(st == (fails ? ST_COMMIT_FAILED : ST_OK), "%s: %s", json, err->msg);
	snprintf(want, sizeof want, "Requirement failed: %s", fails ? fails : "");
	if (fails)
		ck_assert_str_eq(err->msg, want);
}

START_TEST(each)
{
	struct metadata *m = base();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[300];
		struct err err = {0};
		snprintf(text, sizeof text, "[%s]", cases[i].json);
		expect(run(text, m, NULL, &err), cases[i].fails, &err, text);
		err = (struct err){0};
		expect(run(text, NULL, NULL, &err), cases[i].fails_without, &err, text);
	}
	metadata_unref(m);
}
END_TEST

START_TEST(lists)
{
	struct metadata *m = base();
	struct err err = {0};
	bool create = true;
	UNIT_OK(run("[]", m, &create, &err), &err);
	ck_assert(!create);
	UNIT_OK(run("null", NULL, &create, &err), &err);
	UNIT_OK(run("[{\"type\":\"assert-create\"}]", NULL, &create, &err), &err);
	ck_assert(create);
	/* The first that fails is reported. */
	UNIT_STATUS(run("[{\"type\":\"assert-current-schema-id\",\"current-schema-id\":1},"
			"{\"type\":\"assert-default-spec-id\",\"default-spec-id\":5},"
			"{\"type\":\"assert-current-schema-id\",\"current-schema-id\":6}]",
			m, NULL, &err),
		    ST_COMMIT_FAILED);
	ck_assert_str_eq(err.msg,
			 "Requirement failed: default partition spec changed: expected id 5 != 0");
	metadata_unref(m);
}
END_TEST

static const struct {
	const char *json, *field;
} bad[] = {
	{"{}", "requirements"},
	{"[1]", "requirements[0].type"},
	{"[{\"uuid\":1}]", "requirements[0].type"},
	{"[{\"type\":\"assert-create\"},{\"type\":\"assert-moon\"}]", "requirements[1].type"},
	{"[{\"type\":\"assert-create\"},{\"type\":\"assert-default-spec-id\",\"default-spec-id\":1}"
	 "]",
	 "requirements"},
	{"[{\"type\":\"assert-table-uuid\"}]", "requirements[0].uuid"},
	{"[{\"type\":\"assert-table-uuid\",\"uuid\":\"x\"}]", "requirements[0].uuid"},
	{"[{\"type\":\"assert-ref-snapshot-id\",\"snapshot-id\":1}]", "requirements[0].ref"},
	{"[{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"m\",\"snapshot-id\":\"1\"}]",
	 "requirements[0].snapshot-id"},
	{"[{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"m\",\"snapshot-id\":-9223372036854775808}"
	 "]",
	 "requirements[0].snapshot-id"},
	/* case BC-010: a dropped null is no null. */
	{"[{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"m\"}]", "requirements[0].snapshot-id"},
	{"[{\"type\":\"assert-ref-snapshot-id\",\"ref-name\":\"m\",\"snapshot-id\":null}]",
	 "requirements[0].ref"},
	{"[{\"type\":\"assert-default-spec-id\"}]", "requirements[0].default-spec-id"},
	{"[{\"type\":\"assert-default-spec-id\",\"default-spec-id\":2147483648}]",
	 "requirements[0].default-spec-id"},
};

START_TEST(malformed)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};
		enum status st = run(bad[i].json, NULL, NULL, &err);
		ck_assert_msg(st == ST_BAD_REQUEST, "%s: %s", bad[i].json, status_info(st)->name);
		ck_assert_str_eq(err.field, bad[i].field);
	}
	struct err err = {0};
	UNIT_STATUS(run("[{\"type\":\"assert-moon\"}]", NULL, NULL, &err), ST_BAD_REQUEST);
	ck_assert_ptr_nonnull(strstr(err.msg, "assert-moon"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("requirement");
	TCase *t = tcase_create("requirement");
	tcase_add_test(t, each);
	tcase_add_test(t, lists);
	tcase_add_test(t, malformed);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
