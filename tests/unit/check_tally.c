/* Summaries of snapshots: counters and totals as the reference implementation writes them. */
#include "daemon/commit/tally.h"

#include "proto/iceberg/snapshot.h"
#include "tests/unit/unit.h"

static struct arena arena;

static struct content_file data(int64_t records, int64_t bytes)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_DATA;
	f.path = STRV("file:///t/data/a.parquet");
	f.record_count = records;
	f.file_size = bytes;
	return f;
}

static struct content_file vector(int64_t cardinality, int64_t blob, int64_t file)
{
	struct content_file f = content_file_empty();
	f.content = CONTENT_POSITION_DELETES;
	f.format = STRV("PUFFIN");
	f.path = STRV("file:///t/data/a.puffin");
	f.record_count = cardinality;
	f.file_size = file;
	f.content_offset = 4;
	f.content_size = blob;
	f.referenced_data_file = STRV("file:///t/data/a.parquet");
	return f;
}

static struct snapshot summary(const struct tally *t, const struct snapshot *parent)
{
	struct snapshot s = {.operation = tally_operation(t)};
	ck_assert(tally_summary(t, parent, NULL, 0, &s.summary, &s.n_summary));
	return s;
}

static void is(const struct snapshot *s, const char *key, const char *want)
{
	struct strv v = snapshot_summary(s, key);
	if (!want) {
		ck_assert_msg(v.p == NULL, "%s is there: %.*s", key, STRV_ARG(v));
		return;
	}
	ck_assert_msg(strv_eq(v, strv_of(want)), "%s: %.*s, want %s", key, STRV_ARG(v), want);
}

START_TEST(first_append)
{
	struct tally t;
	struct content_file a = data(60, 1000), b = data(40, 500);
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &a) && tally_add(&t, &b));
	t.created = 1;
	struct snapshot s = summary(&t, NULL);
	is(&s, "operation", "append");
	is(&s, "added-data-files", "2");
	is(&s, "added-records", "100");
	is(&s, "added-files-size", "1500");
	is(&s, "changed-partition-count", "1");
	is(&s, "manifests-created", "1");
	/* A counter is written only above zero, a total always. */
	is(&s, "deleted-data-files", NULL);
	is(&s, "added-dvs", NULL);
	is(&s, "manifests-kept", NULL);
	is(&s, "total-records", "100");
	is(&s, "total-files-size", "1500");
	is(&s, "total-data-files", "2");
	is(&s, "total-delete-files", "0");
	is(&s, "total-position-deletes", "0");
	is(&s, "total-equality-deletes", "0");
}
END_TEST

/* A vector of 3 positions replaced by one of 5: sizes are those of the blobs, not of the files. */
START_TEST(replaced_vector)
{
	struct strv_pair before[] = {{STRV("total-records"), STRV("100")},
				     {STRV("total-files-size"), STRV("1544")},
				     {STRV("total-data-files"), STRV("2")},
				     {STRV("total-delete-files"), STRV("1")},
				     {STRV("total-position-deletes"), STRV("3")},
				     {STRV("total-equality-deletes"), STRV("0")}};
	struct snapshot parent = {.summary = before, .n_summary = ARRAY_SIZE(before)};
	struct tally t;
	struct content_file old = vector(3, 44, 400), new = vector(5, 48, 410);
	tally_init(&t, &arena);
	ck_assert(tally_remove(&t, &old) && tally_add(&t, &new));
	struct snapshot s = summary(&t, &parent);
	is(&s, "operation", "delete");
	is(&s, "added-dvs", "1");
	is(&s, "removed-dvs", "1");
	is(&s, "added-delete-files", "1");
	is(&s, "removed-delete-files", "1");
	is(&s, "added-position-delete-files", NULL);
	is(&s, "added-position-deletes", "5");
	is(&s, "removed-position-deletes", "3");
	is(&s, "added-files-size", "48");
	is(&s, "removed-files-size", "44");
	is(&s, "total-position-deletes", "5");
	is(&s, "total-delete-files", "1");
	is(&s, "total-files-size", "1548");
	is(&s, "total-records", "100"); /* deleted rows stay in the files */
}
END_TEST

/* Position delete files count as delete files with their whole size, and are no data files. */
START_TEST(position_deletes)
{
	struct strv_pair before[] = {{STRV("total-records"), STRV("100")},
				     {STRV("total-data-files"), STRV("2")},
				     {STRV("total-delete-files"), STRV("3")},
				     {STRV("total-position-deletes"), STRV("7")},
				     {STRV("total-files-size"), STRV("1000")}};
	struct snapshot parent = {.summary = before, .n_summary = ARRAY_SIZE(before)};
	struct content_file f = data(4, 60), g = data(2, 50);
	f.content = g.content = CONTENT_POSITION_DELETES;
	struct tally t;
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &f));
	ck_assert(strv_eq(tally_operation(&t), STRV("delete")));
	ck_assert(tally_remove(&t, &g));
	struct snapshot s = summary(&t, &parent);
	is(&s, "added-data-files", NULL);
	is(&s, "added-records", NULL);
	is(&s, "added-dvs", NULL);
	is(&s, "added-delete-files", "1");
	is(&s, "removed-delete-files", "1");
	is(&s, "added-position-delete-files", "1");
	is(&s, "removed-position-delete-files", "1");
	is(&s, "added-position-deletes", "4");
	is(&s, "removed-position-deletes", "2");
	is(&s, "added-files-size", "60");
	is(&s, "total-delete-files", "3");
	is(&s, "total-position-deletes", "9");
	is(&s, "total-files-size", "1010");
	is(&s, "total-records", "100");
	is(&s, "total-data-files", "2");
	struct content_file d = data(1, 1);
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &f) && tally_add(&t, &d));
	ck_assert(strv_eq(tally_operation(&t), STRV("overwrite")));
}
END_TEST

START_TEST(missing_totals)
{
	struct strv_pair before[] = {{STRV("total-records"), STRV("x")},
				     {STRV("total-data-files"), STRV("0")}};
	struct snapshot parent = {.summary = before, .n_summary = ARRAY_SIZE(before)};
	struct tally t;
	struct content_file f = data(10, 100);
	tally_init(&t, &arena);
	ck_assert(tally_remove(&t, &f));
	struct snapshot s = summary(&t, &parent);
	is(&s, "deleted-data-files", "1");
	is(&s, "deleted-records", "10");
	is(&s, "total-records", NULL);    /* does not parse */
	is(&s, "total-data-files", NULL); /* would be negative */
	is(&s, "total-files-size", NULL); /* the parent has none */
}
END_TEST

START_TEST(labels)
{
	struct content_file f = data(1, 1), dv = vector(1, 40, 100);
	struct tally t;
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &f) && tally_add(&t, &dv));
	ck_assert(strv_eq(tally_operation(&t), STRV("overwrite")));
	tally_init(&t, &arena);
	ck_assert(tally_remove(&t, &f));
	ck_assert(strv_eq(tally_operation(&t), STRV("delete")));
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &f) && tally_remove(&t, &f));
	ck_assert(strv_eq(tally_operation(&t), STRV("overwrite")));
}
END_TEST

START_TEST(partitions)
{
	struct tally t;
	struct value v[40];
	uint8_t bytes[40][4];
	struct content_file f = data(1, 1);
	tally_init(&t, &arena);
	for (int round = 0; round < 3; round++)
		for (uint32_t i = 0; i < 40; i++) {
			put_u32le(bytes[i], i);
			v[i] = (struct value){.b = {bytes[i], 4}};
			f.partition = (struct tuple){&v[i], 1};
			ck_assert(tally_add(&t, &f));
		}
	ck_assert_uint_eq(t.n_parts, 40);
	f.spec_id = 1; /* the same tuple under another spec */
	ck_assert(tally_add(&t, &f));
	ck_assert_uint_eq(t.n_parts, 41);
}
END_TEST

START_TEST(own_properties)
{
	struct tally t;
	struct content_file f = data(7, 9);
	struct strv_pair more[] = {{STRV("owner"), STRV("me")},
				   {STRV("added-records"), STRV("1000")},
				   {STRV("operation"), STRV("delete")}};
	struct snapshot s = {0};
	tally_init(&t, &arena);
	ck_assert(tally_add(&t, &f));
	ck_assert(tally_summary(&t, NULL, more, 3, &s.summary, &s.n_summary));
	is(&s, "owner", "me");
	is(&s, "added-records", "7");
	size_t n = 0;
	for (size_t i = 0; i < s.n_summary; i++)
		n += strv_eq(s.summary[i].key, STRV("added-records")) ||
		     strv_eq(s.summary[i].key, STRV("operation"));
	ck_assert_uint_eq(n, 1);
}
END_TEST

static void up(void)
{
	arena_init(&arena, (size_t)1 << 20);
}

static void down(void)
{
	arena_fini(&arena);
}

static Suite *suite(void)
{
	Suite *s = suite_create("tally");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, up, down);
	tcase_add_test(t, first_append);
	tcase_add_test(t, replaced_vector);
	tcase_add_test(t, position_deletes);
	tcase_add_test(t, missing_totals);
	tcase_add_test(t, labels);
	tcase_add_test(t, partitions);
	tcase_add_test(t, own_properties);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
