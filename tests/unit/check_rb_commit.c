/* Commit requests as PyIceberg, Java and DuckDB send them, and what is refused. */
#include "proto/rest/rb_commit.h"
#include "tests/unit/unit.h"

#define IDENT(name) "\"identifier\":{\"namespace\":[\"db\"],\"name\":\"" name "\"}"
#define SNAPSHOT                                                                                   \
	"{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":7,\"sequence-number\":1,"      \
	"\"timestamp-ms\":1700000000000,\"manifest-list\":\"file:///w/l.avro\",\"summary\":"       \
	"{\"operation\":\"append\"},\"schema-id\":0}},{\"action\":\"set-snapshot-ref\","           \
	"\"ref-name\":\"main\",\"type\":\"branch\",\"snapshot-id\":7}"

static struct arena arena;
static struct err err;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
	err = (struct err){0};
}
static void teardown(void)
{
	arena_fini(&arena);
}

static struct bytes text(const char *z)
{
	return (struct bytes){(const uint8_t *)z, strlen(z)};
}

START_TEST(one)
{
	struct rb_commit r;
	UNIT_OK(rb_commit_parse(text("{" IDENT("t") ",\"requirements\":[{\"type\":"
				     "\"assert-ref-snapshot-id\",\"ref\":\"main\","
				     "\"snapshot-id\":null}],\"updates\":[" SNAPSHOT "]}"),
				&arena, &r, &err),
		&err);
	ck_assert_uint_eq(r.n, 1);
	ck_assert(r.changes[0].has_ident);
	ck_assert(strv_eq(r.changes[0].ident.name, STRV("t")));
	ck_assert_uint_eq(r.changes[0].n_requirements, 1);
	ck_assert_int_eq(r.changes[0].requirements[0].snapshot_id, SNAPSHOT_NONE);
	ck_assert_uint_eq(r.changes[0].n_updates, 2);
	ck_assert_int_eq(r.changes[0].updates[0].kind, UPDATE_ADD_SNAPSHOT);
	ck_assert_int_eq(r.changes[0].updates[0].u.snapshot->snapshot_id, 7);
	ck_assert(!r.changes[0].create);
	jdoc_free(r.doc);
	/* Java names no table in the body. */
	UNIT_OK(rb_commit_parse(text("{\"requirements\":[{\"type\":\"assert-create\"}],"
				     "\"updates\":[]}"),
				&arena, &r, &err),
		&err);
	ck_assert(!r.changes[0].has_ident);
	ck_assert(r.changes[0].create);
	jdoc_free(r.doc);
}
END_TEST

START_TEST(one_refused)
{
	static const struct {
		const char *body, *field;
	} bad[] = {
		{"{\"updates\":[{\"action\":\"enable-row-lineage\"}]}", "updates[0].action"},
		{"{\"updates\":[{\"action\":\"set-properties\",\"updates\":{\"a\":1}}]}", NULL},
		{"{\"updates\":{}}", "updates"},
		{"{\"requirements\":[{\"type\":\"assert-moon\"}],\"updates\":[]}",
		 "requirements[0].type"},
		{"{\"requirements\":[{\"type\":\"assert-create\"},{\"type\":"
		 "\"assert-default-spec-id\",\"default-spec-id\":0}],\"updates\":[]}",
		 "requirements"},
		{"{\"identifier\":{\"namespace\":[],\"name\":\"t\"},\"updates\":[]}",
		 "identifier.namespace"},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rb_commit r;
		err = (struct err){0};
		UNIT_STATUS(rb_commit_parse(text(bad[i].body), &arena, &r, &err), ST_BAD_REQUEST);
		if (bad[i].field)
			ck_assert_str_eq(err.field, bad[i].field);
	}
}
END_TEST

START_TEST(many)
{
	struct rb_commit r;
	/* DuckDB's only way to commit. */
	UNIT_OK(rb_commit_parse_many(
			text("{\"table-changes\":[{" IDENT("t") ",\"requirements\":[{\"type\":"
			     "\"assert-table-uuid\",\"uuid\":"
			     "\"9c12d441-03fe-4693-9a96-a0705ddf69c1\"}],\"updates\":[" SNAPSHOT
			     "]},{" IDENT("u") ",\"requirements\":[],\"updates\":[]}]}"),
			&arena, &r, &err),
		&err);
	ck_assert_uint_eq(r.n, 2);
	ck_assert_uint_eq(r.changes[0].n_updates, 2);
	ck_assert(strv_eq(r.changes[1].ident.name, STRV("u")));
	jdoc_free(r.doc);
}
END_TEST

START_TEST(many_refused)
{
	static const struct {
		const char *body, *field;
	} bad[] = {
		{"{}", "table-changes"},
		{"{\"table-changes\":[]}", "table-changes"},
		{"{\"table-changes\":[1]}", "table-changes[0]"},
		{"{\"table-changes\":[{\"updates\":[]}]}", "table-changes[0].identifier"},
		{"{\"table-changes\":[{" IDENT("t") "},{" IDENT("u") "},{" IDENT("t") "}]}",
		 "table-changes"},
		{"{\"table-changes\":[{" IDENT("t") "},{" IDENT("u") ",\"updates\":[{}]}]}",
		 "table-changes[1].updates[0].action"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rb_commit r;
		err = (struct err){0};
		UNIT_STATUS(rb_commit_parse_many(text(bad[i].body), &arena, &r, &err),
			    ST_BAD_REQUEST);
		ck_assert_str_eq(err.field, bad[i].field);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rb_commit");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, one);
	tcase_add_test(t, one_refused);
	tcase_add_test(t, many);
	tcase_add_test(t, many_refused);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
