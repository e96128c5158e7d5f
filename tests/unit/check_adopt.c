/* Manifests that no list names yet: what is read of them, and which may be listed as they are. */
#include "daemon/commit/intake/adopt.h"

#include "tests/unit/core_table.h"
#include "tests/unit/golden.h"

#define LIMIT ((size_t)1 << 22)

static struct core_table *t;

static void up(void)
{
	static struct core_table ct;
	t = &ct;
	ct_open(t, 3, "");
}

static void down(void)
{
	ct_close(t);
}

/* What Java wrote: snapshot ids stand there, all else is left to the list. */
START_TEST(java)
{
	static const char *const names[] = {"tests/golden/manifests/v2-plain.avro",
					    "tests/golden/manifests/v3-plain.avro"};
	for (int i = 0; i < 2; i++) {
		struct buf b;
		struct manifest_head h;
		struct manifest *m = NULL;
		struct err err = {0};
		buf_init(&b, LIMIT);
		golden_read(names[i], &b);
		UNIT_OK(manifest_read_head(buf_bytes(&b), LIMIT, &h, &err), &err);
		ck_assert(h.data && h.format_version == 2 + i && h.spec_id == 0);
		ck_assert_int_eq(h.schema_id, 7); /* of the schema: Java has no key for it */
		UNIT_OK(manifest_read_unlisted(buf_bytes(&b), 0, NULL, 0, LIMIT, &m, &err), &err);
		ck_assert_uint_eq(m->n, 2);
		for (size_t k = 0; k < 2; k++) {
			const struct manifest_entry *e = &m->entries[k];
			ck_assert(e->status == ENTRY_ADDED && e->seq == SEQ_NONE);
			ck_assert_int_eq(e->snapshot_id, INT64_C(3055729675574597004));
			ck_assert_int_eq(e->file_seq, SEQ_NONE);
			ck_assert_int_eq(e->file.first_row_id, ROW_ID_NONE);
			ck_assert_int_eq(e->file.record_count, k ? 30 : 100);
		}
		manifest_unref(m);
		buf_fini(&b);
	}
}
END_TEST

static struct manifest_entry entry_of(const char *name, int64_t rows)
{
	struct manifest_entry e = {.status = ENTRY_ADDED,
				   .snapshot_id = SNAPSHOT_NONE,
				   .seq = SEQ_NONE,
				   .file_seq = SEQ_NONE,
				   .file = content_file_empty()};
	e.file.path = ct_path(t, name);
	e.file.format = STRV("PARQUET");
	e.file.record_count = rows;
	e.file.file_size = 1000;
	return e;
}

static enum status read_back(struct manifest_entry *e, size_t n, int version, int32_t schema_id,
			     int32_t rows, struct adopted **ret_a, struct err *err)
{
	struct manifest_params p = {.format_version = version,
				    .content = MANIFEST_DATA,
				    .schema = STRV("{}"),
				    .schema_id = schema_id,
				    .spec_fields = STRV("[]"),
				    .snapshot_id = SNAPSHOT_NONE};
	const struct manifest_entry *v[4];
	struct manifest_file row;
	struct buf b;
	for (size_t i = 0; i < n; i++)
		v[i] = &e[i];
	buf_init(&b, LIMIT);
	UNIT_OK(manifest_write(&p, v, n, &b, &t->arena, &row, err), err);
	struct rpc_manifest_ref ref = {STRV("m"), (int64_t)b.n, (int32_t)n, rows};
	enum status st = adopt_read(buf_bytes(&b), &ref, t->meta, LIMIT, ret_a, err);
	buf_fini(&b);
	return st;
}

START_TEST(taken)
{
	struct manifest_entry e[2] = {entry_of("a", 10), entry_of("b", 5)};
	struct adopted *got = NULL;
	struct err err = {0};
	struct metric counts[] = {{1, 10}};
	e[0].file.value_counts = counts;
	e[0].file.n_value_counts = 1;
	UNIT_OK(read_back(e, 2, 3, 0, 15, &got, &err), &err);
	ck_assert(got->n == 2 && got->format_version == 3);
	for (size_t i = 0; i < 2; i++) {
		ck_assert(strv_eq(got->files[i].path, e[i].file.path));
		ck_assert(strv_eq(got->records[i].path, e[i].file.path));
		ck_assert_int_eq(got->records[i].new_row_count, i ? 5 : 10);
		ck_assert_uint_eq(got->records[i].n_value_counts, 0);
		ck_assert_int_eq(got->files[i].file_size, 1000);
	}
	adopt_free(got);
}
END_TEST

static void unfit(struct manifest_entry *e, int version, int32_t schema_id, int32_t rows,
		  enum status want, const char *field)
{
	struct adopted *got = NULL;
	struct err err = {0};
	enum status st = read_back(e, 1, version, schema_id, rows, &got, &err);
	ck_assert_msg(st == want, "%s %s %s", status_info(st)->name, err.field, err.msg);
	ck_assert_str_eq(err.field, field);
	ck_assert(!got);
}

START_TEST(refused)
{
	struct manifest_entry e = entry_of("a", 10);
	unfit(&e, 2, 0, 10, ST_MANIFEST_UNFIT, "format-version");
	unfit(&e, 3, 9, 10, ST_SCHEMA_UNKNOWN, "schema");
	unfit(&e, 3, 0, 11, ST_MANIFEST_UNFIT, "added_rows");
	e.snapshot_id = 7;
	unfit(&e, 3, 0, 10, ST_MANIFEST_UNFIT, "entries[0].snapshot_id");
	e.snapshot_id = SNAPSHOT_NONE;
	e.seq = 7;
	unfit(&e, 3, 0, 10, ST_MANIFEST_UNFIT, "entries[0].sequence_number");
	e.snapshot_id = 7;
	e.file_seq = 7;
	e.status = ENTRY_EXISTING;
	unfit(&e, 3, 0, 10, ST_MANIFEST_UNFIT, "entries[0].status");
	e.status = ENTRY_DELETED;
	unfit(&e, 3, 0, 10, ST_MANIFEST_UNFIT, "entries[0].status");
	e = entry_of("a", 10);
	struct metric counts[] = {{77, 10}};
	e.file.null_counts = counts;
	e.file.n_null_counts = 1;
	unfit(&e, 3, 0, 10, ST_METRICS_INVALID, "entries[0].null_counts[0]");
	e = entry_of("a", 10);
	e.file.path = STRV("file:///elsewhere/a.parquet");
	unfit(&e, 3, 0, 10, ST_PATH_OUTSIDE, "entries[0].path");
	struct rpc_manifest_ref ref = {STRV("m"), 4, 1, 1};
	struct adopted *got = NULL;
	struct err err = {0};
	struct bytes junk = {(const uint8_t *)"Obj\x01", 4};
	ck_assert_int_eq(adopt_read(junk, &ref, t->meta, LIMIT, &got, &err), ST_MANIFEST_UNFIT);
	ref.length = 5;
	ck_assert_int_eq(adopt_read(junk, &ref, t->meta, LIMIT, &got, &err), ST_SIZE_MISMATCH);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("adopt");
	TCase *c = tcase_create("adopt");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, java);
	tcase_add_test(c, taken);
	tcase_add_test(c, refused);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
