#include "proto/base/jspan.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/metasnap.h"
#include "tests/unit/unit.h"

static enum status parse(const char *text, int version, struct arena *a, struct snapshot *s,
			 struct err *err)
{
	const struct jspan *v = NULL;
	UNIT_OK(jspan_parse(strv_bytes(strv_of(text)), ST_CORRUPT, a, &v, err), err);
	return snapshot_parse(v, version, ST_CORRUPT, a, s, err);
}

static void write_is(const struct snapshot *s, const char *want)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, 10000);
	jwrite_init(&w, &b);
	snapshot_write(&w, s);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(want)), "%.*s", STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
}

/* Any order in, the reference implementation's order out. */
static const char all[] =
	"{\"sequence-number\":3,\"snapshot-id\":9007199254740993,\"parent-snapshot-id\":2,"
	"\"timestamp-ms\":4,\"summary\":{\"operation\":\"append\",\"a\\\"b\":\"c\\n\",\"z\":\"\"},"
	"\"manifest-list\":\"s3://b/l.avro\",\"schema-id\":5,\"first-row-id\":6,\"added-rows\":7,"
	"\"key-id\":\"k\",\"more\":[1.0]}";

START_TEST(everything)
{
	struct arena a;
	struct snapshot s;
	struct err err = {0};
	arena_init(&a, 100000);
	UNIT_OK(parse("{\"key-id\":\"k\",\"added-rows\":7,\"more\":[ 1.0 ],\"first-row-id\":6,"
		      "\"summary\":{\"a\\\"b\":\"c\\n\",\"operation\":\"append\",\"z\":\"\"},"
		      "\"manifest-list\":\"s3:\\/\\/b/l.avro\",\"schema-id\":5,\"timestamp-ms\":4,"
		      "\"parent-snapshot-id\":2,\"sequence-number\":3,\"snapshot-id\":"
		      "9007199254740993}",
		      3, &a, &s, &err),
		&err);
	write_is(&s, all);
	ck_assert(strv_eq(snapshot_summary(&s, "a\"b"), STRV("c\n")));
	ck_assert(strv_eq(snapshot_summary(&s, "operation"), STRV("append")));
	ck_assert_ptr_null(snapshot_summary(&s, "q").p);
	/* A block owns all of it, with escaped text beside its JSON. */
	struct metasnap *block = NULL;
	struct metasnap_list l = {0};
	UNIT_OK(metasnap_new(&s, &block, &err), &err);
	struct arena own;
	arena_init(&own, 100000);
	ck_assert(metasnap_append(&l, block, &own));
	arena_fini(&a);
	const struct snapshot *copy = metasnap_at(&l, 0);
	ck_assert(strv_eq(copy->raw, strv_of(all)));
	write_is(copy, all);
	ck_assert(strv_eq(snapshot_summary(copy, "a\"b"), STRV("c\n")));
	metasnap_fini(&l);
	arena_fini(&own);
}
END_TEST

START_TEST(little)
{
	struct arena a;
	struct snapshot s;
	struct err err = {0};
	arena_init(&a, 100000);
	UNIT_OK(parse("{\"snapshot-id\":1,\"timestamp-ms\":2,\"manifests\":[\"a\", \"b\"],"
		      "\"parent-snapshot-id\":null,\"summary\":null,\"schema-id\":null}",
		      1, &a, &s, &err),
		&err);
	ck_assert_int_eq(s.parent_id, SNAPSHOT_NONE);
	ck_assert_int_eq(s.sequence_number, 0);
	ck_assert_ptr_null(s.operation.p);
	write_is(&s, "{\"snapshot-id\":1,\"timestamp-ms\":2,\"manifests\":[\"a\", \"b\"]}");
	/* Version 2 has no inline manifests. */
	UNIT_STATUS(parse("{\"snapshot-id\":1,\"timestamp-ms\":2,\"manifests\":[\"a\"]}", 2, &a, &s,
			  &err),
		    ST_CORRUPT);
	ck_assert_str_eq(err.field, "manifest-list");
	UNIT_STATUS(
		parse("{\"snapshot-id\":1,\"timestamp-ms\":2,\"manifests\":[1]}", 1, &a, &s, &err),
		ST_CORRUPT);
	/* added-rows means nothing without first-row-id. */
	UNIT_OK(parse("{\"snapshot-id\":1,\"timestamp-ms\":2,\"manifest-list\":\"m\",\"added-"
		      "rows\":3,"
		      "\"summary\":{\"x\":\"y\"}}",
		      2, &a, &s, &err),
		&err);
	ck_assert_int_eq(s.added_rows, ROW_ID_NONE);
	ck_assert(strv_eq(s.operation, STRV("overwrite")));
	arena_fini(&a);
}
END_TEST

START_TEST(refs)
{
	static const struct {
		struct snapshot_ref r;
		const char *json; /* NULL: refused */
	} cases[] = {
		{{.name = {"main", 4}, .snapshot_id = 5},
		 "{\"snapshot-id\":5,\"type\":\"branch\"}"},
		{{.name = {"b", 1}, 5, false, 1, 2, 3},
		 "{\"snapshot-id\":5,\"type\":\"branch\",\"min-snapshots-to-keep\":1,"
		 "\"max-snapshot-age-ms\":2,\"max-ref-age-ms\":3}"},
		{{.name = {"t", 1}, .snapshot_id = 5, .tag = true, .max_ref_age_ms = 3},
		 "{\"snapshot-id\":5,\"type\":\"tag\",\"max-ref-age-ms\":3}"},
		{{.name = {"t", 1}, .tag = true, .min_snapshots_to_keep = 1}, NULL},
		{{.name = {"t", 1}, .tag = true, .max_snapshot_age_ms = 1}, NULL},
		{{.name = {"main", 4}, .tag = true}, NULL},
		{{.name = {"", 0}}, NULL},
		{{.name = {"b", 1}, .max_ref_age_ms = -1}, NULL},
		{{.name = {"b", 1}, .max_snapshot_age_ms = -1}, NULL},
		{{.name = {"b", 1}, .min_snapshots_to_keep = -1}, NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b;
		struct jwrite w;
		enum status st = snapshot_ref_check(&cases[i].r, ST_VALIDATION, NULL);
		ck_assert_int_eq(st, cases[i].json ? ST_OK : ST_VALIDATION);
		if (!cases[i].json)
			continue;
		buf_init(&b, 1000);
		jwrite_init(&w, &b);
		snapshot_ref_write(&w, &cases[i].r);
		ck_assert(strv_eq(buf_strv(&b), strv_of(cases[i].json)));
		buf_fini(&b);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("snapshot");
	TCase *t = tcase_create("snapshot");
	tcase_add_test(t, everything);
	tcase_add_test(t, little);
	tcase_add_test(t, refs);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
