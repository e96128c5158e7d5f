/* Copies and checks of one file record. What the checks refuse is in check_manifest_write.c. */
#include "proto/avro/content_file.h"

#include "tests/unit/unit.h"

/* A copy shares nothing with its source. */
START_TEST(copy)
{
	char path[] = "s3://b/f", ref[] = "s3://b/d", format[] = "orc";
	uint8_t low[] = {1, 2}, high[] = {3}, key[] = {9}, part[] = {4, 0, 0, 0};
	struct metric m[] = {{1, 10}, {2, 20}}, other[] = {{3, 30}};
	struct bound lower[] = {{1, {low, 2}}}, upper[] = {{1, {high, 1}}};
	int64_t offsets[] = {4, 8};
	int32_t ids[] = {7};
	struct value v[] = {{.b = {part, 4}}, VALUE_NULL};
	struct content_file f = content_file_empty(), c;
	f.path = strv_of(path);
	f.format = strv_of(format);
	f.referenced_data_file = strv_of(ref);
	f.partition = (struct tuple){v, 2};
	f.column_sizes = f.value_counts = m;
	f.n_column_sizes = f.n_value_counts = 2;
	f.null_counts = f.nan_counts = other;
	f.n_null_counts = f.n_nan_counts = 1;
	f.lower = lower;
	f.upper = upper;
	f.n_lower = f.n_upper = 1;
	f.key_metadata = (struct bytes){key, 1};
	f.has_key_metadata = true;
	f.split_offsets = offsets;
	f.n_split_offsets = 2;
	f.equality_ids = ids;
	f.n_equality_ids = 1;
	f.spec_id = 5;
	struct arena a, b;
	arena_init(&a, 1 << 16);
	ck_assert(content_file_copy(&a, &f, &c));
	memset(path, 'x', sizeof path - 1);
	memset(ref, 'x', sizeof ref - 1);
	memset(format, 'x', sizeof format - 1);
	memset(low, 0, sizeof low);
	memset(high, 0, sizeof high);
	memset(key, 0, sizeof key);
	memset(part, 0, sizeof part);
	memset(m, 0, sizeof m);
	memset(other, 0, sizeof other);
	memset(lower, 0, sizeof lower);
	memset(upper, 0, sizeof upper);
	memset(offsets, 0, sizeof offsets);
	memset(ids, 0, sizeof ids);
	v[0].null = true;
	ck_assert(strv_eq(c.path, STRV("s3://b/f")) && strv_eq(c.format, STRV("orc")));
	ck_assert(strv_eq(c.referenced_data_file, STRV("s3://b/d")));
	ck_assert(c.partition.n == 2 && !c.partition.v[0].null && c.partition.v[1].null);
	ck_assert(get_u32le(c.partition.v[0].b.p) == 4);
	ck_assert(c.column_sizes[1].field_id == 2 && c.value_counts[1].v == 20);
	ck_assert(c.null_counts[0].v == 30 && c.nan_counts[0].field_id == 3);
	ck_assert(c.lower[0].field_id == 1 && c.lower[0].b.n == 2 && c.lower[0].b.p[1] == 2);
	ck_assert(c.upper[0].field_id == 1 && c.upper[0].b.p[0] == 3);
	ck_assert(c.has_key_metadata && c.key_metadata.p[0] == 9);
	ck_assert(c.split_offsets[1] == 8 && c.equality_ids[0] == 7 && c.spec_id == 5);
	/* Without memory nothing is touched. */
	f = c;
	for (size_t limit = 0; limit < a.used; limit += 16) {
		arena_init(&b, limit);
		c.path = STRV("old");
		ck_assert(!content_file_copy(&b, &f, &c));
		ck_assert(strv_eq(c.path, STRV("old")));
		arena_fini(&b);
	}
	arena_fini(&a);
}
END_TEST

/* Absent is never 0 or −1; and which records are vectors. */
START_TEST(kinds)
{
	struct content_file f = content_file_empty();
	ck_assert(f.first_row_id == ROW_ID_NONE && f.sort_order_id == SORT_ORDER_NONE);
	ck_assert(f.content_offset == OFFSET_NONE && f.content_size == OFFSET_NONE);
	ck_assert(!f.referenced_data_file.p && !f.has_key_metadata);
	f.format = STRV("Puffin");
	ck_assert(!content_file_is_dv(&f));
	f.content = CONTENT_POSITION_DELETES;
	ck_assert(content_file_is_dv(&f));
	f.format = STRV("parquet");
	ck_assert(!content_file_is_dv(&f));
	f.content_offset = 4;
	ck_assert(content_file_is_dv(&f));
}
END_TEST

/* The status is the caller's, the field the column's name; a file-scoped position delete of
 * version 2 is no vector. */
START_TEST(checks)
{
	struct content_file f = content_file_empty();
	struct err err = {0};
	f.path = STRV("p");
	f.format = STRV("PARQUET");
	UNIT_OK(content_file_check(&f, 1, ST_VALIDATION, &err), &err);
	f.referenced_data_file = STRV("d");
	UNIT_STATUS(content_file_check(&f, 1, ST_VALIDATION, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "referenced_data_file");
	f.content = CONTENT_POSITION_DELETES;
	UNIT_OK(content_file_check(&f, 2, ST_VALIDATION, &err), &err);
	UNIT_STATUS(content_file_check(&f, 1, ST_CORRUPT, &err), ST_CORRUPT);
	ck_assert_str_eq(err.field, "content");
	f.content = CONTENT_DATA;
	f.first_row_id = 0;
	UNIT_OK(content_file_check(&f, 3, ST_VALIDATION, &err), &err);
	UNIT_STATUS(content_file_check(&f, 2, ST_VALIDATION, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "first_row_id");
	f.first_row_id = -1;
	UNIT_STATUS(content_file_check(&f, 3, ST_VALIDATION, &err), ST_VALIDATION);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("content_file");
	TCase *t = tcase_create("content_file");
	tcase_add_test(t, copy);
	tcase_add_test(t, kinds);
	tcase_add_test(t, checks);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
