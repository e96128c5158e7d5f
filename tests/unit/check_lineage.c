#include "daemon/commit/lineage.h"
#include "tests/unit/unit.h"

static struct manifest_file data(const char *path, int64_t first, int64_t rows)
{
	struct manifest_file f = manifest_file_empty();
	f.path = strv_of(path);
	f.content = MANIFEST_DATA;
	f.has_row_counts = true;
	f.added_rows = rows;
	f.first_row_id = first;
	return f;
}

static struct manifest_list list_of(struct manifest_file *rows, size_t n)
{
	struct manifest_list l = {0};
	l.rows = rows;
	l.n = n;
	return l;
}

static enum status check(struct manifest_file *rows, size_t n, const struct manifest_list *known,
			 int64_t low, int64_t end)
{
	struct manifest_list l = list_of(rows, n);
	struct err err = {0};
	return lineage_check(&l, &known, known ? 1 : 0, low, end, &err);
}

/* Iceberg spec, "First Row ID Assignment": numbers run on in list order over existing and added
 * rows; a manifest that has one keeps it; delete manifests have none. */
START_TEST(assigning)
{
	struct manifest_file rows[4] = {data("a", 0, 10), data("b", ROW_ID_NONE, 5),
					data("c", ROW_ID_NONE, 7), data("d", ROW_ID_NONE, 3)};
	struct mview *views[4] = {NULL};
	struct err err = {0};
	int64_t next = 10;
	rows[1].existing_rows = 2;
	rows[2].content = MANIFEST_DELETES;
	UNIT_OK(lineage_assign(rows, views, 4, &next, &err), &err);
	ck_assert_int_eq(rows[0].first_row_id, 0);
	ck_assert_int_eq(rows[1].first_row_id, 10);
	ck_assert_int_eq(rows[2].first_row_id, ROW_ID_NONE);
	ck_assert_int_eq(rows[3].first_row_id, 17);
	ck_assert_int_eq(next, 20);
	rows[0] = data("a", ROW_ID_NONE, INT64_MAX);
	UNIT_STATUS(lineage_assign(rows, views, 1, &next, &err), ST_LIMIT);
}
END_TEST

/* The example of that section: 1000 is next; a manifest that has 925 keeps it, the others get 1000,
 * 1125 and 1225, and 1375 is next. Deleted rows do not count. */
START_TEST(worked_example)
{
	struct manifest_file rows[4] = {data("kept", 925, 75), data("added1", ROW_ID_NONE, 100),
					data("added2", ROW_ID_NONE, 0),
					data("added3", ROW_ID_NONE, 125)};
	struct mview *views[4] = {NULL};
	struct err err = {0};
	int64_t next = 1000;
	rows[1].existing_rows = 25;
	rows[2].existing_rows = 100;
	rows[2].deleted_rows = 70;
	rows[3].existing_rows = 25;
	UNIT_OK(lineage_assign(rows, views, 4, &next, &err), &err);
	ck_assert_int_eq(rows[0].first_row_id, 925);
	ck_assert_int_eq(rows[1].first_row_id, 1000);
	ck_assert_int_eq(rows[2].first_row_id, 1125);
	ck_assert_int_eq(rows[3].first_row_id, 1225);
	ck_assert_int_eq(next, 1375);
}
END_TEST

START_TEST(checking)
{
	struct manifest_file old[1] = {data("a", 0, 10)};
	struct manifest_list known = list_of(old, 1);
	struct manifest_file rows[3] = {data("a", 0, 10), data("b", 10, 5), data("c", 15, 5)};
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_OK);
	/* Gaps are allowed, other writers leave them; anything else is not. */
	ck_assert_int_eq(check(rows, 3, &known, 10, 40), ST_OK);
	ck_assert_int_eq(check(rows, 3, &known, 10, 19), ST_VALIDATION);
	ck_assert_int_eq(check(rows, 3, &known, 11, 20), ST_VALIDATION);
	ck_assert_int_eq(check(rows, 3, NULL, 10, 20), ST_VALIDATION);
	rows[2].first_row_id = 14;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_VALIDATION);
	rows[2].first_row_id = ROW_ID_NONE;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_VALIDATION);
	rows[2].content = MANIFEST_DELETES;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_OK);
	/* DuckDB leaves any number there: it means nothing on deletes. */
	rows[2].first_row_id = 7936040924389585713;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_OK);
	rows[0].first_row_id = 1;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_VALIDATION);
	rows[0].first_row_id = 0;
	rows[1].added_rows = INT64_MAX;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_VALIDATION);
	rows[1].added_rows = -1;
	ck_assert_int_eq(check(rows, 3, &known, 10, 20), ST_VALIDATION);
}
END_TEST

/* Two snapshots in one request: the second's list names the first's manifest, which lies above the
 * table's next-row-id and may not be overlapped. */
START_TEST(two_snapshots)
{
	struct manifest_file first[2] = {data("a", 0, 10), data("b", 10, 1)};
	struct manifest_list known = list_of(first, 2);
	struct manifest_file rows[3] = {data("a", 0, 10), data("b", 10, 1), data("c", 11, 1)};
	ck_assert_int_eq(check(rows, 3, &known, 10, 23), ST_OK);
	rows[2].first_row_id = 10;
	ck_assert_int_eq(check(rows, 3, &known, 10, 23), ST_VALIDATION);
	rows[2].first_row_id = 9;
	ck_assert_int_eq(check(rows, 3, &known, 10, 23), ST_VALIDATION);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("lineage");
	TCase *t = tcase_create("lineage");
	tcase_add_test(t, assigning);
	tcase_add_test(t, worked_example);
	tcase_add_test(t, checking);
	tcase_add_test(t, two_snapshots);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
