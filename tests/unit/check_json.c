#include "proto/base/json.h"
#include "proto/base/jwrite.h"
#include "tests/unit/unit.h"

static struct jdoc *parse(const char *text)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_BAD_REQUEST, &d, &err), &err);
	return d;
}

static void refuse(const char *text)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	UNIT_STATUS(jdoc_parse(strv_bytes(strv_of(text)), ST_CORRUPT, &d, &err), ST_CORRUPT);
	ck_assert_int_eq(err.st, ST_CORRUPT);
	ck_assert_ptr_null(d);
}

START_TEST(strictness)
{
	refuse("");
	refuse("{\"a\":1,\"a\":2}");
	refuse("{\"a\":1} x");
	refuse("\"\xc3\"");
	refuse("[9223372036854775808]");
	char deep[JDOC_MAX_DEPTH + 2];
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	refuse(deep);
	/* Brackets inside text are not depth. */
	char text[200] = "\"";
	memset(text + 1, '[', 150);
	text[151] = '"';
	jdoc_free(parse(text));
}
END_TEST

/* Texts whose trees are many times their size are refused before there is a tree; ordinary ones of the
 * same length are not. */
START_TEST(size_of_the_tree)
{
	static const struct {
		const char *part;
		bool good;
	} rows[] = {
		{"[],", false},
		{"{},", false},
		{"1,", false},
		{"\"\",", false},
		{"[1],", false},
		{"{\"a\":{}},", false},
		{"{\"type\":\"assert-ref-snapshot-id\",\"ref\":\"main\",\"snapshot-id\":1},", true},
		{"{\"key\":\"write.metadata.previous-versions-max\",\"value\":\"100\"},", true},
		{"\"a property's key of an ordinary length\",", true},
		/* Inside text nothing counts. */
		{"\"[],{},[],{},[],{},[],{},[],{},[],{}\",", true},
	};
	size_t size = (size_t)4 << 20;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b;
		struct err err = {0};
		struct jdoc *d = NULL;
		buf_init(&b, size + 1000);
		buf_putc(&b, '[');
		while (b.n < size)
			buf_puts(&b, rows[i].part);
		b.p[b.n - 1] = ']';
		enum status st = jdoc_parse(buf_bytes(&b), ST_BAD_REQUEST, &d, &err);
		ck_assert_msg(st == (rows[i].good ? ST_OK : ST_LIMIT), "%s: %s", rows[i].part,
			      err.msg);
		jdoc_free(d);
		buf_fini(&b);
	}
	jdoc_free(parse("[[],[],[],[],[],[]]"));
}
END_TEST

START_TEST(getters)
{
	struct jdoc *d = parse("{\"s\":\"x\\u0000y\",\"i\":-9223372036854775808,\"n\":null,"
			       "\"r\":1.5,\"b\":true,\"a\":[1,2],\"o\":{\"k\":3},\"w\":2147483648}");
	const struct jval *o = jdoc_root(d), *part = NULL;
	struct err err = {0};
	struct strv s;
	int64_t i = 7;
	int32_t n = 7;
	bool b = false, has = true;
	UNIT_OK(jval_need_str(o, "s", ST_BAD_REQUEST, &s, &err), &err);
	ck_assert_uint_eq(s.n, 3);
	UNIT_OK(jval_need_i64(o, "i", ST_BAD_REQUEST, &i, &err), &err);
	ck_assert_int_eq(i, INT64_MIN);
	UNIT_STATUS(jval_need_i64(o, "r", ST_BAD_REQUEST, &i, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "r");
	UNIT_STATUS(jval_need_i64(o, "n", ST_VALIDATION, &i, &err), ST_VALIDATION);
	UNIT_STATUS(jval_need_i32(o, "w", ST_VALIDATION, &n, &err), ST_VALIDATION);
	ck_assert_int_eq(n, 7);
	UNIT_OK(jval_opt_i64(o, "absent", ST_BAD_REQUEST, &i, &has, &err), &err);
	ck_assert(!has);
	UNIT_OK(jval_need_bool(o, "b", ST_BAD_REQUEST, &b, &err), &err);
	ck_assert(b);
	UNIT_OK(jval_need_array(o, "a", ST_BAD_REQUEST, &part, &err), &err);
	ck_assert_uint_eq(jval_count(part), 2);
	size_t members = 0;
	for (struct jval_iter it = jval_iter(o); jval_next(&it);)
		members++;
	ck_assert_uint_eq(members, 8);
	jdoc_free(d);
}
END_TEST

START_TEST(writing)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, 1000);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	jwrite_keyv(&w, STRV("a\"b"));
	jwrite_str(&w, STRV("\x01\n\\/é"));
	jwrite_key(&w, "l");
	jwrite_array(&w);
	jwrite_i64(&w, INT64_MIN);
	jwrite_null(&w);
	jwrite_object(&w);
	jwrite_end_object(&w);
	jwrite_end_array(&w);
	jwrite_kbool(&w, "t", true);
	jwrite_end_object(&w);
	struct strv want =
		STRV("{\"a\\\"b\":\"\\u0001\\n\\\\/é\",\"l\":[-9223372036854775808,null,{}],\"t\":true}");
	ck_assert(strv_eq(buf_strv(&b), want));
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("json");
	tcase_add_test(t, strictness);
	tcase_add_test(t, size_of_the_tree);
	tcase_add_test(t, getters);
	tcase_add_test(t, writing);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
