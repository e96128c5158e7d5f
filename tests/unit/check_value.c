#include "proto/iceberg/value.h"

#include <math.h>

#include "tests/unit/golden_values.h"

static struct arena a;

static void setup(void)
{
	arena_init(&a, 16 << 20);
}

static void teardown(void)
{
	arena_fini(&a);
}

#define B(...)                                                                                     \
	((struct bytes){(const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})})
#define S(lit) strv_bytes(STRV(lit))

static struct type *type(const char *text)
{
	return golden_type(&a, strv_of(text));
}

static struct value val(struct bytes b)
{
	return (struct value){.b = b};
}

static struct value read(const char *text, struct bytes b, bool bound)
{
	struct err err = {0};
	struct value v = VALUE_NULL;
	UNIT_OK(value_read(type(text), b, bound, ST_CORRUPT, &a, &v, &err), &err);
	return v;
}

static void refuse(const char *text, struct bytes b, bool bound)
{
	struct err err = {0};
	struct value v = {.null = true, .b = {NULL, 77}};
	UNIT_STATUS(value_read(type(text), b, bound, ST_VALIDATION, &a, &v, &err), ST_VALIDATION);
	ck_assert_uint_eq(v.b.n, 77);
	ck_assert_msg(strstr(err.msg, type_name(type(text)).z) != NULL, "%s", err.msg);
}

START_TEST(lengths)
{
	static const struct {
		const char *type;
		size_t n;
	} rows[] = {{"boolean", 1},        {"int", 4},         {"long", 8},
		    {"float", 4},          {"double", 8},      {"date", 4},
		    {"timestamp", 8},      {"timestamptz", 8}, {"timestamp_ns", 8},
		    {"timestamptz_ns", 8}, {"uuid", 16},       {"fixed[7]", 7}};
	static const uint8_t zeros[40];
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t n = 0; n < sizeof zeros; n++)
			ck_assert_msg(value_valid(type(rows[i].type), (struct bytes){zeros, n}) ==
					      (n == rows[i].n),
				      "%s %zu", rows[i].type, n);
	refuse("unknown", B(0), false);
	refuse("int", B(0, 0, 0), false);
	refuse("int", (struct bytes){NULL, 0}, true);
}
END_TEST

START_TEST(text_must_be_utf8)
{
	ck_assert(value_valid(type("string"), S("na\xc3\xafve")));
	refuse("string", S("na\xc3"), false);
	refuse("string", S("\xed\xa0\x80"), false);
	ck_assert(value_valid(type("string"), (struct bytes){NULL, 0}));
	ck_assert(value_valid(type("binary"), S("na\xc3")));
}
END_TEST

START_TEST(time_of_day)
{
	/* 86400000000 is the first microsecond of the next day. */
	ck_assert(value_valid(type("time"), B(0xff, 0x5f, 0xd7, 0x1d, 0x14, 0, 0, 0)));
	refuse("time", B(0x00, 0x60, 0xd7, 0x1d, 0x14, 0, 0, 0), false);
	refuse("time", B(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), false);
}
END_TEST

START_TEST(canonical)
{
	/* "non-zero byte for true" */
	ck_assert(bytes_eq(read("boolean", B(7), false).b, B(1)));
	/* "using the minimum number of bytes for the value" */
	ck_assert(bytes_eq(read("decimal(9, 2)", B(0, 0, 0, 0, 5, 0x8c), false).b, B(5, 0x8c)));
	ck_assert(
		bytes_eq(read("decimal(9, 2)", B(0xff, 0xff, 0xfa, 0x74), false).b, B(0xfa, 0x74)));
	ck_assert(bytes_eq(read("decimal(9, 2)", B(0, 0x80), false).b, B(0, 0x80)));
	ck_assert(bytes_eq(read("decimal(9, 2)", B(0, 0), false).b, B(0)));
	refuse("decimal(9, 2)", (struct bytes){NULL, 0}, false);
	refuse("decimal(9, 2)", B(1, 0, 0, 0, 0), false);
	/* Any NaN is the one that Java writes. */
	ck_assert(bytes_eq(read("float", B(1, 0, 0x80, 0xff), false).b, B(0, 0, 0xc0, 0x7f)));
	ck_assert(bytes_eq(read("double", B(9, 0, 0, 0, 0, 0, 0xf0, 0xff), false).b,
			   B(0, 0, 0, 0, 0, 0, 0xf8, 0x7f)));
	/* Zeros of both signs stay apart. */
	ck_assert(bytes_eq(read("float", B(0, 0, 0, 0x80), false).b, B(0, 0, 0, 0x80)));
}
END_TEST

START_TEST(promoted_bounds)
{
	ck_assert_int_eq(
		value_i64(type("long"),
			  &(struct value){0, read("long", B(0xfe, 0xff, 0xff, 0xff), true).b}),
		-2);
	struct value d = read("double", B(0, 0, 0x90, 0xc0), true);
	ck_assert(value_double(type("double"), &d) == -4.5);
	/* 2017-11-16, 17486 days: spec Appendix B gives 1510871468000000 for 22:31:08 of that day.
	 */
	struct value ts = read("timestamp", B(0x4e, 0x44, 0, 0), true);
	ck_assert_int_eq(value_i64(type("timestamp"), &ts), 1510871468000000 - 81068000000);
	struct value ns = read("timestamp_ns", B(0x4e, 0x44, 0, 0), true);
	ck_assert_int_eq(value_i64(type("timestamp_ns"), &ns),
			 (1510871468000000 - 81068000000) * 1000);
	/* Only a timestamp without zone was a date before. */
	refuse("timestamptz", B(0x4e, 0x44, 0, 0), true);
	refuse("long", B(1, 0, 0, 0), false);
	/* Days beyond the range of nanoseconds. */
	refuse("timestamp_ns", B(0xff, 0xff, 0xff, 0x7f), true);
	/* Some writers cut bounds of fixed. */
	ck_assert_uint_eq(read("fixed[32]", B(1, 2, 3), true).b.n, 3);
	refuse("fixed[32]", B(1, 2, 3), false);
	refuse("fixed[2]", B(1, 2, 3), true);
}
END_TEST

static struct value num(const char *t, int64_t n)
{
	struct value v;
	ck_assert(value_of_i64(type(t), n, &a, &v));
	return v;
}

static struct value flt(const char *t, double d)
{
	struct value v;
	ck_assert(value_of_double(type(t), d, &a, &v));
	return v;
}

static int sign(int c)
{
	return (c > 0) - (c < 0);
}

START_TEST(order)
{
	const struct type *l = type("long"), *f = type("float"), *s = type("string"),
			  *dec = type("decimal(38, 0)");
	int64_t ints[] = {INT64_MIN, -256, -1, 0, 1, 255, 256, INT64_MAX};
	double reals[] = {-INFINITY, -1.5, -0.0, 0.0, 1e-40, 2, INFINITY, NAN};
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < 8; k++) {
			int want = (i > k) - (i < k);
			struct value x = num("long", ints[i]), y = num("long", ints[k]);
			ck_assert_int_eq(sign(value_cmp(l, &x, &y)), want);
			x = flt("float", reals[i]);
			y = flt("float", reals[k]);
			ck_assert_int_eq(sign(value_cmp(f, &x, &y)), want);
			ck_assert(value_of_decimal(ints[i], &a, &x) &&
				  value_of_decimal(ints[k], &a, &y));
			ck_assert_int_eq(sign(value_cmp(dec, &x, &y)), want);
		}
	struct value nan = flt("double", NAN), one = flt("double", 1);
	ck_assert(value_is_nan(type("double"), &nan));
	ck_assert(!value_is_nan(type("double"), &one));
	ck_assert(!value_is_nan(type("binary"), &nan));
	/* U+FF5E sorts before U+1F600, although its UTF-16 form is greater. */
	struct value bmp = val(S("\xef\xbd\x9e")), astral = val(S("\xf0\x9f\x98\x80")),
		     empty = val(S(""));
	ck_assert_int_lt(value_cmp(s, &bmp, &astral), 0);
	ck_assert_int_lt(value_cmp(s, &empty, &bmp), 0);
	/* UUIDs compare as unsigned bytes. */
	struct value u1 = val(B(0x7f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		     u2 = val(B(0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	ck_assert_int_lt(value_cmp(type("uuid"), &u1, &u2), 0);
	ck_assert(!value_has_order(type("geometry")) && !value_has_order(type("variant")));
	ck_assert(value_has_order(type("uuid")));
}
END_TEST

START_TEST(decimals)
{
	struct value v;
	ck_assert(value_of_decimal(1420, &a, &v));
	ck_assert(bytes_eq(v.b, B(5, 0x8c)));
	ck_assert(value_decimal(&v) == 1420);
	ck_assert(value_of_decimal(-129, &a, &v));
	ck_assert(bytes_eq(v.b, B(0xff, 0x7f)));
	ck_assert(value_decimal(&v) == -129);
	__int128 least = (__int128)((unsigned __int128)1 << 127);
	ck_assert(value_of_decimal(least, &a, &v));
	ck_assert_uint_eq(v.b.n, 16);
	ck_assert(value_decimal(&v) == least);
}
END_TEST

START_TEST(tuples)
{
	struct value x[3] = {val(S("a")), VALUE_NULL, val(S(""))},
		     y[3] = {val(S("a")), VALUE_NULL, val(S(""))};
	struct tuple tx = {x, 3}, ty = {y, 3}, copy;
	ck_assert(tuple_eq(&tx, &ty));
	ck_assert_uint_eq(tuple_hash(&tx), tuple_hash(&ty));
	ck_assert(tuple_copy(&a, &tx, &copy));
	ck_assert(tuple_eq(&copy, &tx) && copy.v[0].b.p != x[0].b.p);
	/* Null is not empty, and places count. */
	y[1] = val(S(""));
	ck_assert(!tuple_eq(&tx, &ty));
	ck_assert_uint_ne(tuple_hash(&tx), tuple_hash(&ty));
	struct value p[2] = {val(S("a")), val(S("b"))}, q[2] = {val(S("b")), val(S("a"))};
	ck_assert_uint_ne(tuple_hash(&(struct tuple){p, 2}), tuple_hash(&(struct tuple){q, 2}));
	ck_assert(!tuple_eq(&(struct tuple){p, 2}, &(struct tuple){p, 1}));
	ck_assert(tuple_eq(&(struct tuple){NULL, 0}, &(struct tuple){NULL, 0}));
}
END_TEST

static void upper(const char *t, struct bytes in, size_t length, bool want_has, struct bytes want)
{
	struct value v = val(in), out = VALUE_NULL;
	bool has = !want_has;
	ck_assert(value_cut_upper(type(t), &v, length, &a, &out, &has));
	ck_assert(has == want_has);
	if (has) {
		ck_assert(bytes_eq(out.b, want));
		ck_assert_int_ge(value_cmp(type(t), &out, &v), 0);
	}
}

START_TEST(cut_bounds)
{
	struct value v = val(S("a\xc3\xa9\xf0\x9f\x98\x80z"));
	ck_assert(
		bytes_eq(value_cut_lower(type("string"), &v, 3).b, S("a\xc3\xa9\xf0\x9f\x98\x80")));
	ck_assert(bytes_eq(value_cut_lower(type("string"), &v, 4).b, v.b));
	ck_assert(bytes_eq(value_cut_lower(type("binary"), &v, 2).b, S("a\xc3")));
	ck_assert(bytes_eq(value_cut_lower(type("fixed[8]"), &v, 2).b, v.b));
	upper("string", S("abc"), 3, true, S("abc"));
	upper("string", S("abc"), 2, true, S("ac"));
	/* 0x7f grows to two bytes; U+D7FF skips the surrogates. */
	upper("string", S("a\x7f!"), 2, true, S("a\xc2\x80"));
	upper("string", S("\xed\x9f\xbf!"), 1, true, S("\xee\x80\x80"));
	upper("string", S("\xef\xbf\xbf!"), 1, true, S("\xf0\x90\x80\x80"));
	/* U+10FFFF has no next. */
	upper("string", S("b\xf4\x8f\xbf\xbf!"), 2, true, S("c"));
	upper("string", S("\xf4\x8f\xbf\xbf\xf4\x8f\xbf\xbf!"), 2, false, S(""));
	upper("binary", B(1, 2, 3), 2, true, B(1, 3));
	upper("binary", B(1, 0xff, 3), 2, true, B(2));
	upper("binary", B(0xff, 0xff, 3), 2, false, B(0));
	upper("long", B(1, 2, 3, 4, 5, 6, 7, 8), 2, true, B(1, 2, 3, 4, 5, 6, 7, 8));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("value");
	TCase *t = tcase_create("value");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, lengths);
	tcase_add_test(t, text_must_be_utf8);
	tcase_add_test(t, time_of_day);
	tcase_add_test(t, canonical);
	tcase_add_test(t, promoted_bounds);
	tcase_add_test(t, order);
	tcase_add_test(t, decimals);
	tcase_add_test(t, tuples);
	tcase_add_test(t, cut_bounds);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
