/* A foreign snapshot against its predecessor: every kind of finding, and none for correct ones. */
#include "daemon/commit/verify.h"

#include "tests/unit/unit.h"

#define A STRV("file:///t/data/a.parquet")
#define B STRV("file:///t/data/b.parquet")

static struct mview *view(enum manifest_content content, const struct manifest_entry *e, size_t n)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, 65536);
	m->content = content;
	m->entries = arena_calloc(&m->arena, n ? n : 1, sizeof *e);
	for (size_t i = 0; i < n; i++)
		m->entries[i] = e[i];
	m->n = n;
	return mview_new(m);
}

static struct manifest_entry data(enum entry_status status, struct strv path, int64_t first)
{
	struct manifest_entry e = {.status = status, .snapshot_id = 1, .file = content_file_empty()};
	e.file.content = CONTENT_DATA;
	e.file.path = path;
	e.file.format = STRV("PARQUET");
	e.file.record_count = 10;
	e.file.first_row_id = first;
	return e;
}

static struct manifest_entry dv(enum entry_status status, struct strv of, int64_t positions)
{
	struct manifest_entry e = {.status = status, .snapshot_id = 1, .file = content_file_empty()};
	e.file.content = CONTENT_POSITION_DELETES;
	e.file.path = STRV("file:///t/data/x.puffin");
	e.file.format = STRV("PUFFIN");
	e.file.record_count = positions;
	e.file.referenced_data_file = of;
	e.file.content_offset = 4;
	e.file.content_size = 40;
	return e;
}

/* now: data manifest (fresh or not) and one fresh delete manifest; before: the same without fresh. */
static struct verify_out run(const struct manifest_entry *d, size_t n_d, bool fresh_data,
			     const struct manifest_entry *v, size_t n_v,
			     const struct manifest_entry *old_d, size_t n_old_d,
			     const struct manifest_entry *old_v, size_t n_old_v)
{
	struct mview *now[2] = {view(MANIFEST_DATA, d, n_d), view(MANIFEST_DELETES, v, n_v)};
	struct mview *before[2] = {view(MANIFEST_DATA, old_d, n_old_d),
				   view(MANIFEST_DELETES, old_v, n_old_v)};
	bool fresh[2] = {fresh_data, true};
	struct verify_out out = {0};
	verify_run(&(struct verify_snapshot){now, fresh, 2, before, 2}, &out);
	for (int i = 0; i < 2; i++) {
		mview_unref(now[i]);
		mview_unref(before[i]);
	}
	return out;
}

START_TEST(correct)
{
	struct manifest_entry d[] = {data(ENTRY_EXISTING, A, 0)};
	struct manifest_entry olds[] = {dv(ENTRY_ADDED, A, 3)};
	struct manifest_entry v[] = {dv(ENTRY_DELETED, A, 3), dv(ENTRY_ADDED, A, 5)};
	struct verify_out out = run(d, 1, true, v, 2, d, 1, olds, 1);
	ck_assert_int_eq(out.total, 0);
	/* The whole file goes, and its vector with it. */
	struct manifest_entry gone[] = {data(ENTRY_DELETED, A, 0)};
	out = run(gone, 1, true, v, 1, d, 1, olds, 1);
	ck_assert_int_eq(out.total, 0);
}
END_TEST

START_TEST(two_vectors)
{
	struct manifest_entry d[] = {data(ENTRY_EXISTING, A, 0), data(ENTRY_EXISTING, B, 10)};
	struct manifest_entry v[] = {dv(ENTRY_ADDED, A, 3), dv(ENTRY_ADDED, B, 1)};
	struct manifest_entry w[] = {dv(ENTRY_ADDED, A, 4)};
	struct mview *now[3] = {view(MANIFEST_DATA, d, 2), view(MANIFEST_DELETES, v, 2),
				view(MANIFEST_DELETES, w, 1)};
	bool fresh[3] = {false, true, true};
	struct verify_out out = {0};
	verify_run(&(struct verify_snapshot){.now = now, .fresh = fresh, .n_now = 3}, &out);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_TWO_VECTORS);
	ck_assert(strv_eq(out.v[0].path, A));
	for (int i = 0; i < 3; i++)
		mview_unref(now[i]);
	/* Both in one manifest. */
	struct manifest_entry both[] = {dv(ENTRY_ADDED, A, 3), dv(ENTRY_ADDED, A, 4)};
	out = run(d, 2, false, both, 2, d, 2, NULL, 0);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_TWO_VECTORS);
}
END_TEST

START_TEST(smaller)
{
	struct manifest_entry d[] = {data(ENTRY_EXISTING, A, 0)};
	struct manifest_entry olds[] = {dv(ENTRY_ADDED, A, 3)};
	struct manifest_entry v[] = {dv(ENTRY_DELETED, A, 3), dv(ENTRY_ADDED, A, 2)};
	struct verify_out out = run(d, 1, false, v, 2, d, 1, olds, 1);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_SMALLER);
	/* Taken away altogether while the file stays. */
	out = run(d, 1, false, v, 1, d, 1, olds, 1);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_SMALLER);
}
END_TEST

START_TEST(dangling)
{
	struct manifest_entry d[] = {data(ENTRY_EXISTING, A, 0)};
	struct manifest_entry v[] = {dv(ENTRY_ADDED, B, 3)};
	struct verify_out out = run(d, 1, false, v, 1, d, 1, NULL, 0);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_DANGLING);
	ck_assert(strv_eq(out.v[0].path, B));
	/* The data file goes, its old vector stays. */
	struct manifest_entry gone[] = {data(ENTRY_DELETED, A, 0)};
	struct manifest_entry kept[] = {dv(ENTRY_EXISTING, A, 3)};
	struct mview *now[2] = {view(MANIFEST_DATA, gone, 1), view(MANIFEST_DELETES, kept, 1)};
	bool fresh[2] = {true, false};
	out = (struct verify_out){0};
	verify_run(&(struct verify_snapshot){.now = now, .fresh = fresh, .n_now = 2}, &out);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_DANGLING);
	mview_unref(now[0]);
	mview_unref(now[1]);
}
END_TEST

START_TEST(row_ids)
{
	struct manifest_entry old[] = {data(ENTRY_ADDED, A, 100)};
	struct manifest_entry d[] = {data(ENTRY_EXISTING, A, 200)};
	struct verify_out out = run(d, 1, true, NULL, 0, old, 1, NULL, 0);
	ck_assert_int_eq(out.total, 1);
	ck_assert_int_eq(out.v[0].kind, VERIFY_ROW_IDS);
	/* Taken away is changed too; given for the first time is not. */
	d[0].file.first_row_id = ROW_ID_NONE;
	out = run(d, 1, true, NULL, 0, old, 1, NULL, 0);
	ck_assert_int_eq(out.total, 1);
	out = run(old, 1, true, NULL, 0, d, 1, NULL, 0);
	ck_assert_int_eq(out.total, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("verify");
	TCase *t = tcase_create("verify");
	tcase_add_test(t, correct);
	tcase_add_test(t, two_vectors);
	tcase_add_test(t, smaller);
	tcase_add_test(t, dangling);
	tcase_add_test(t, row_ids);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
