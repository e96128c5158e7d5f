#include "proto/base/err.h"
#include "tests/unit/unit.h"

/* Every row is complete, and its wire number is its own: clients keep these numbers. */
START_TEST(table)
{
	for (int i = 0; i < ST__COUNT; i++) {
		const struct status_info *a = status_info((enum status)i);
		enum status back = ST__COUNT;
		ck_assert_ptr_nonnull(a->name);
		ck_assert_msg(a->http >= 200 && a->http < 600, "%s", a->name);
		ck_assert_msg(a->help[0] != 0, "%s", a->name);
		ck_assert_msg((a->iceberg_type[0] == 0) == (i == ST_OK), "%s", a->name);
		ck_assert(status_from_rpc(a->rpc_code, &back));
		ck_assert_int_eq(back, i);
		back = ST__COUNT;
		ck_assert(status_from_name(strv_of(a->name), &back));
		ck_assert_int_eq(back, i);
		/* "It may have happened" must never be told to be final, or clients lose commits.
		 */
		if (a->effect == EFFECT_UNKNOWN)
			ck_assert_msg(a->retry == RETRY_SAME, "%s", a->name);
	}
	enum status st = ST_IO;
	ck_assert(!status_from_rpc(-1, &st));
	ck_assert(!status_from_name(STRV("NO_SUCH_NAME"), &st));
	ck_assert_int_eq(st, ST_IO);
	/* The error types and statuses that the REST specification fixes. */
	ck_assert_int_eq(status_info(ST_COMMIT_FAILED)->http, 409);
	ck_assert_str_eq(status_info(ST_COMMIT_FAILED)->iceberg_type, "CommitFailedException");
	ck_assert_str_eq(status_info(ST_NO_SUCH_TABLE)->iceberg_type, "NoSuchTableException");
	ck_assert_str_eq(status_info(ST_COMMIT_UNKNOWN)->iceberg_type,
			 "CommitStateUnknownException");
}
END_TEST

START_TEST(fill)
{
	struct err err = {0};
	ck_assert_int_eq(err_set(&err, ST_VALIDATION, "summary", "%d of %s", 3, "x"),
			 ST_VALIDATION);
	ck_assert_int_eq(err.st, ST_VALIDATION);
	ck_assert_str_eq(err.field, "summary");
	ck_assert_str_eq(err.msg, "3 of x");
	err_detail(&err, "errno %d", 5);
	ck_assert_str_eq(err.detail, "errno 5");
	err_prefix(&err, "snapshot");
	err_prefix(&err, "updates[%d]", 2);
	ck_assert_str_eq(err.field, "updates[2].snapshot.summary");
	/* A later fill forgets the detail of the earlier one. */
	ck_assert_int_eq(err_set(&err, ST_IO, NULL, "gone"), ST_IO);
	ck_assert_str_eq(err.field, "");
	ck_assert_str_eq(err.detail, "");
	err_prefix(&err, "file");
	ck_assert_str_eq(err.field, "file");
	/* An index follows without a dot. */
	ck_assert_int_eq(err_set(&err, ST_VALIDATION, "[7]", "m"), ST_VALIDATION);
	err_prefix(&err, "refs");
	ck_assert_str_eq(err.field, "refs[7]");
	/* Callers who do not ask get the status alone. */
	ck_assert_int_eq(err_set(NULL, ST_IO, "x", "y"), ST_IO);
	err_prefix(NULL, "x");
	err_detail(NULL, "x");
}
END_TEST

/* Text that does not fit is cut before a character, never inside one. */
START_TEST(cut)
{
	struct err err = {0};
	char wide[400];
	for (size_t shift = 0; shift < 4; shift++) {
		size_t n = 0;
		while (n < shift)
			wide[n++] = 'x';
		while (n + 4 < sizeof wide) {
			memcpy(wide + n, "\xf0\x9f\xa7\x8a", 4);
			n += 4;
		}
		wide[n] = 0;
		ck_assert_int_eq(err_set(&err, ST_VALIDATION, wide, "%s", wide), ST_VALIDATION);
		err_detail(&err, "%s", wide);
		ck_assert(strv_utf8(strv_of(err.msg)));
		ck_assert(strv_utf8(strv_of(err.field)));
		ck_assert(strv_utf8(strv_of(err.detail)));
		ck_assert_uint_gt(strlen(err.msg), sizeof err.msg - 5);
		ck_assert_uint_gt(strlen(err.field), sizeof err.field - 5);
		err_prefix(&err, "%s", "outer");
		ck_assert(strv_utf8(strv_of(err.field)));
		ck_assert(strv_starts(strv_of(err.field), STRV("outer.")));
		err_prefix(&err, "%s", wide);
		ck_assert(strv_utf8(strv_of(err.field)));
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("err");
	TCase *t = tcase_create("err");
	tcase_add_test(t, table);
	tcase_add_test(t, fill);
	tcase_add_test(t, cut);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
