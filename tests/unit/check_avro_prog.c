/* Schemas of foreign writers and datums encoded by hand after "Binary Encoding" of the Avro spec.
 */
#include "proto/avro/avro_prog.h"

#include "proto/iceberg/ids.h"
#include "tests/unit/unit.h"

struct pair {
	int32_t k;
	int64_t v;
};
struct inner {
	int64_t l;
	bool b, has_b;
};
struct rec {
	int32_t i;
	struct strv s;
	struct inner in;
	struct pair *m;
	size_t n_m;
	int64_t *offs;
	size_t n_offs;
	struct tuple t;
};

#define AT(type, member) offsetof(type, member)
static struct type long_type = {.kind = TYPE_LONG}, date_type = {.kind = TYPE_DATE};
static struct type decimal_type = {.kind = TYPE_DECIMAL, .precision = 9, .scale = 2};
static struct type unknown_type = {.kind = TYPE_UNKNOWN};
static struct type timestamp_type = {.kind = TYPE_TIMESTAMP};
static const struct avro_col pair_cols[] = {
	{.id = 21,
	 .name = "key",
	 .kind = AVRO_I32,
	 .in = "rrr",
	 .must = true,
	 .off = AT(struct pair, k),
	 .flag = AVRO_NO_FLAG},
	{.id = 22,
	 .name = "value",
	 .kind = AVRO_I64,
	 .in = "rrr",
	 .must = true,
	 .off = AT(struct pair, v),
	 .flag = AVRO_NO_FLAG},
};
static const struct avro_col inner_cols[] = {
	{.id = 31,
	 .name = "l",
	 .kind = AVRO_I64,
	 .in = "rrr",
	 .must = true,
	 .off = AT(struct inner, l),
	 .flag = AVRO_NO_FLAG},
	{.id = 32,
	 .name = "b",
	 .kind = AVRO_BOOL,
	 .in = "ooo",
	 .off = AT(struct inner, b),
	 .flag = AT(struct inner, has_b)},
};
static const struct avro_col tuple_cols[] = {
	{.id = 1000,
	 .name = "p",
	 .kind = AVRO_VALUE,
	 .in = "ooo",
	 .off = 0,
	 .flag = AVRO_NO_FLAG,
	 .type = &long_type,
	 .label = {"pl", 2}},
	{.id = 1001,
	 .name = "p",
	 .kind = AVRO_VALUE,
	 .in = "ooo",
	 .off = sizeof(struct value),
	 .flag = AVRO_NO_FLAG,
	 .type = &date_type,
	 .label = {"pd", 2}},
	{.id = 1002,
	 .name = "p",
	 .kind = AVRO_VALUE,
	 .in = "ooo",
	 .off = 2 * sizeof(struct value),
	 .flag = AVRO_NO_FLAG,
	 .type = &decimal_type,
	 .label = {"pn", 2}},
	{.id = 1003,
	 .name = "p",
	 .kind = AVRO_VALUE,
	 .in = "ooo",
	 .off = 3 * sizeof(struct value),
	 .flag = AVRO_NO_FLAG,
	 .type = &unknown_type,
	 .label = {"pu", 2}},
	{.id = 1004,
	 .name = "p",
	 .kind = AVRO_VALUE,
	 .in = "ooo",
	 .off = 4 * sizeof(struct value),
	 .flag = AVRO_NO_FLAG,
	 .type = &timestamp_type,
	 .label = {"pt", 2}},
};
static const struct avro_col cols[] = {
	{.id = 1,
	 .name = "i",
	 .kind = AVRO_I32,
	 .in = "ooo",
	 .off = AT(struct rec, i),
	 .flag = AVRO_NO_FLAG},
	{.id = 2,
	 .name = "s",
	 .kind = AVRO_STR,
	 .in = "ooo",
	 .off = AT(struct rec, s),
	 .flag = AVRO_NO_FLAG},
	{.id = 3,
	 .name = "in",
	 .kind = AVRO_RECORD,
	 .in = "rrr",
	 .must = true,
	 .off = AT(struct rec, in),
	 .flag = AVRO_NO_FLAG,
	 .sub = inner_cols,
	 .n_sub = ARRAY_SIZE(inner_cols)},
	{.id = 4,
	 .name = "m",
	 .kind = AVRO_LIST,
	 .in = "ooo",
	 .off = AT(struct rec, m),
	 .flag = AT(struct rec, n_m),
	 .sub = pair_cols,
	 .n_sub = ARRAY_SIZE(pair_cols),
	 .elem = AVRO_RECORD,
	 .elem_size = sizeof(struct pair),
	 .map = true},
	{.id = 5,
	 .name = "offs",
	 .kind = AVRO_LIST,
	 .in = "ooo",
	 .off = AT(struct rec, offs),
	 .flag = AT(struct rec, n_offs),
	 .elem = AVRO_I64,
	 .elem_size = sizeof(int64_t),
	 .elem_id = 23},
	{.id = 6,
	 .name = "t",
	 .kind = AVRO_TUPLE,
	 .in = "ooo",
	 .off = AT(struct rec, t),
	 .flag = AVRO_NO_FLAG,
	 .sub = tuple_cols,
	 .n_sub = ARRAY_SIZE(tuple_cols)},
};

static const struct rec empty = {.i = INT32_MIN};

struct fixture {
	struct arena a;
	struct rec r;
	struct err err;
};

static enum status decode(struct fixture *f, const char *fields, struct strv data)
{
	struct buf schema;
	struct avro_prog *p = NULL;
	f->r = empty;
	f->err = (struct err){0};
	arena_init(&f->a, 1 << 20);
	unknown_type = (struct type){.kind = TYPE_UNKNOWN};
	buf_init(&schema, 1 << 20);
	buf_printf(&schema, "{\"type\":\"record\",\"name\":\"top\",\"fields\":[%s]}", fields);
	enum status st =
		avro_prog_compile(buf_strv(&schema), cols, ARRAY_SIZE(cols), &f->a, &p, &f->err);
	/* The program keeps nothing of the text. */
	memset(schema.p, 'x', schema.n);
	buf_fini(&schema);
	if (st == ST_OK) {
		struct avro_in in = avro_bin_in(strv_bytes(data));
		size_t items = data.n;
		st = avro_prog_run(p, &in, &f->r, &items, &f->a, &f->err);
		if (st == ST_OK && avro_bin_left(&in))
			st = ST_BAD_REQUEST; /* the test's own mark for bytes left */
	}
	return st;
}

#define F(id, type) "{\"name\":\"f" #id "\",\"field-id\":" #id ",\"type\":" type "}"
#define X(type) "{\"name\":\"x\",\"type\":" type "}"
#define INNER F(3, "{\"type\":\"record\",\"name\":\"in\",\"fields\":[" F(31, "\"long\"") "]}")

/* The least that is required: in.l = 5. */
START_TEST(least)
{
	struct fixture f;
	ck_assert_int_eq(decode(&f, INNER, STRV("\x0a")), ST_OK);
	ck_assert_int_eq(f.r.in.l, 5);
	ck_assert(!f.r.in.has_b && f.r.i == INT32_MIN && !f.r.s.p && !f.r.t.v && f.r.n_m == 0);
	arena_fini(&f.a);
}
END_TEST

/* Every kind of unknown column is skipped, in front and behind; the wanted ones come in another
 * order, promoted, with unions both ways round and named types used again. */
#define PAIRS                                                                                      \
	"{\"type\":\"array\",\"logicalType\":\"map\",\"items\":{\"type\":\"record\","              \
	"\"name\":\"ns.pair\",\"fields\":[" F(22, "\"int\"") "," X("\"string\"") "," F(            \
		21, "\"int\"") "]}}"
START_TEST(foreign)
{
	static const char schema[] =
		X("\"null\"") "," X("\"boolean\"") "," X("\"float\"") "," X(
			"\"doub"
			"le\"") "," X("{\"type\":\"fixed\",\"name\":\"four\",\"size\":4}") "," X("\"four\"") "," X("{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}") "," X("\"e\"") "," X("{\"type\":\"map\",\"values\":\"long\"}") "," X("{\"type\":\"array\",\"items\":[\"null\",\"string\"]}") "," F(4, "[" PAIRS
																																						   ",\"null\"]") "," X("{\"type\":\"array\",\"items\":\"ns."
																																								       "pair\"}") "," F(2, "[\"string\","
																																											   "\"null\"]") "," F(3,
																																													      "{"
																																													      "\""
																																													      "ty"
																																													      "pe"
																																													      "\""
																																													      ":"
																																													      "\""
																																													      "re"
																																													      "co"
																																													      "rd"
																																													      "\""
																																													      ","
																																													      "\""
																																													      "na"
																																													      "me"
																																													      "\""
																																													      ":"
																																													      "\""
																																													      "in"
																																													      "\""
																																													      ","
																																													      "\""
																																													      "fi"
																																													      "el"
																																													      "ds"
																																													      "\""
																																													      ":"
																																													      "[" F(32, "[\"null\",\"boolean\"]") "," X("\"bytes\"") "," F(
																																														      31,
																																														      "\"int\"") "]}") "," F(1,
																																																	     "{\"type\":{\"type\":\"int\"}}") "," F(5,
																																																						    "[\"null\",{\"type\":\"array\",\"items\":\"long\",\"element-id\":23}]") "," F(77,
																																																																  "[\"null\",\"in\"]");
	struct strv data = STRV(
		/* boolean, float, double, fixed twice, enum twice */
		"\x01"
		"ffff"
		"dddddddd"
		"1234"
		"5678"
		"\x00"
		"\x00"
		/* map: one pair, then the end; array: null, "ab", end */
		"\x02\x02"
		"k"
		"\x80\x01\x00"
		"\x04\x00\x02\x04"
		"ab"
		"\x00"
		/* union branch 0; a block of one with its byte length, a block of two, the end */
		"\x00"
		"\x01\x06"
		"\x0e\x00\x02"
		"\x04"
		"\x10\x02"
		"z"
		"\x04"
		"\x12\x00\x06"
		"\x00"
		/* skipped pairs: one */
		"\x02"
		"\x0e\x02"
		"q"
		"\x02"
		"\x00"
		/* s = "hi" */
		"\x00\x04"
		"hi"
		/* in: b = true, bytes "x", l = -3 */
		"\x02\x01"
		"\x02"
		"x"
		"\x05"
		/* i = 9; offs = 4, 2^33; the unknown union: an inner record, b null, bytes "", 1 */
		"\x12"
		"\x02\x04\x08\x80\x80\x80\x80\x40\x00"
		"\x02\x00\x00\x02");
	struct fixture f;
	enum status st = decode(&f, schema, data);
	ck_assert_msg(st == ST_OK, "%s: %s %s", status_info(st)->name, f.err.field, f.err.msg);
	ck_assert_uint_eq(f.r.n_m, 3);
	static const struct pair want[] = {{1, 7}, {2, 8}, {3, 9}};
	for (size_t i = 0; i < 3; i++)
		ck_assert(f.r.m[i].k == want[i].k && f.r.m[i].v == want[i].v);
	ck_assert(strv_eq(f.r.s, STRV("hi")));
	ck_assert(f.r.in.has_b && f.r.in.b && f.r.in.l == -3);
	ck_assert_int_eq(f.r.i, 9);
	ck_assert_uint_eq(f.r.n_offs, 2);
	ck_assert(f.r.offs[0] == 4 && f.r.offs[1] == INT64_C(1) << 33);
	arena_fini(&f.a);
	/* Cut anywhere it is an error, never a fault. */
	for (size_t n = 0; n < data.n; n++) {
		uint8_t *copy = base_alloc(n);
		memcpy(copy, data.p, n);
		st = decode(&f, schema, (struct strv){(const char *)copy, n});
		ck_assert_msg(st == ST_CORRUPT, "%zu: %s", n, status_info(st)->name);
		arena_fini(&f.a);
		base_free(copy);
	}
}
END_TEST

/* Partition values: int for long, plain int for date, bytes for decimal (here with needless sign
 * bytes), a type that only the file knows, and a date written before the column became timestamp.
 */
START_TEST(tuples)
{
	static const char schema[] = INNER "," F(
		6,
		"{\"type\":\"record\",\"name\":\"r102\",\"fields\":[" F(
			1003,
			"[\"null\",{\"type\":\"long\",\"logicalType\":\"timestamp-"
			"nanos\","
			"\"adjust-to-utc\":true}]") "," F(1002,
							  "[\"null\",{\"type\":"
							  "\"bytes\",\"logicalType\":"
							  "\"decimal\","
							  "\"precision\":9,\"scale\":2}"
							  "]") "," F(1000,
								     "[\"int\","
								     "\"null\"]") "," F(1001,
											"\"int"
											"\"") "," F(1004,
												    "[\"null\",{\"type\":\"int\",\"logicalType\":\"date\"}]") "]}");
	struct fixture f;
	enum status st = decode(&f, schema,
				STRV("\x0a"
				     "\x02\x06"
				     "\x02\x06\xff\xff\x80"
				     "\x00\x07"
				     "\x02"
				     "\x02\x02"));
	ck_assert_msg(st == ST_OK, "%s: %s %s", status_info(st)->name, f.err.field, f.err.msg);
	ck_assert_uint_eq(f.r.t.n, 5);
	const struct value *v = f.r.t.v;
	ck_assert(!v[0].null && v[0].b.n == 8 && (int64_t)get_u64le(v[0].b.p) == -4);
	ck_assert(!v[1].null && v[1].b.n == 4 && get_u32le(v[1].b.p) == 1);
	ck_assert(!v[2].null && v[2].b.n == 1 && v[2].b.p[0] == 0x80);
	ck_assert(!v[3].null && v[3].b.n == 8 && get_u64le(v[3].b.p) == 3);
	ck_assert_int_eq(unknown_type.kind, TYPE_TIMESTAMPTZ_NS);
	ck_assert(!v[4].null && get_u64le(v[4].b.p) == UINT64_C(86400000000));
	arena_fini(&f.a);
}
END_TEST

#define PART(id, type)                                                                             \
	INNER "," F(6, "{\"type\":\"record\",\"name\":\"r102\",\"fields\":[" F(id, type) "]}")

static const struct {
	const char *schema;
	const char *field; /* in the error */
	enum status want;
} bad_schemas[] = {
	{"", "in", ST_CORRUPT},
	{F(1, "\"int\""), "in", ST_CORRUPT},
	{F(3, "{\"type\":\"record\",\"name\":\"in\",\"fields\":[]}"), "l", ST_CORRUPT},
	{F(3, "\"long\""), "in", ST_CORRUPT},
	{INNER "," F(1, "\"float\""), "i", ST_CORRUPT},
	{INNER "," F(1, "\"string\""), "i", ST_CORRUPT},
	{INNER "," F(1, "[\"null\",\"double\"]"), "i", ST_CORRUPT},
	{INNER "," F(2, "{\"type\":\"fixed\",\"name\":\"q\",\"size\":2}"), "s", ST_CORRUPT},
	{INNER "," F(2, "{\"type\":\"enum\",\"name\":\"q\",\"symbols\":[]}"), "s", ST_CORRUPT},
	{INNER "," F(4, "{\"type\":\"map\",\"values\":\"long\"}"), "m", ST_CORRUPT},
	{INNER "," F(4, "\"bytes\""), "m", ST_CORRUPT},
	{INNER "," F(5, "{\"type\":\"array\",\"items\":\"string\"}"), "offs", ST_CORRUPT},
	{INNER "," F(1, "\"int\"") "," F(1, "\"int\""), "i", ST_CORRUPT}, /* an id twice */
	{INNER "," F(1, "\"nowhere\""), "i", ST_CORRUPT},
	{INNER "," F(1, "[]"), "i", ST_CORRUPT},
	{INNER "," F(1, "7"), "i", ST_CORRUPT},
	{INNER "," F(1, "{}"), "i", ST_CORRUPT},
	{INNER ",7", "", ST_CORRUPT},
	{INNER "," X("{\"type\":\"fixed\",\"name\":\"q\",\"size\":-1}"), "", ST_CORRUPT},
	{INNER "," X("{\"type\":\"fixed\",\"size\":1}"), "", ST_CORRUPT}, /* no name */
	{INNER "," X("{\"type\":\"fixed\",\"name\":\"q\",\"size\":1}") "," X(
		 "{\"type\":\"fixed\",\"name\":\"q\",\"size\":2}"),
	 "", ST_CORRUPT}, /* twice */
	{INNER "," X("{\"type\":\"array\"}"), "", ST_CORRUPT},
	{INNER "," X("{\"type\":\"record\",\"name\":\"q\"}"), "", ST_CORRUPT},
	/* Types that contain themselves, directly and through a union. */
	{INNER "," X("{\"type\":\"record\",\"name\":\"q\",\"fields\":[" X("\"q\"") "]}"), "",
	 ST_CORRUPT},
	{INNER "," X("{\"type\":\"record\",\"name\":\"q\",\"fields\":[" X("[\"null\",\"q\"]") "]}"),
	 "", ST_CORRUPT},
	{PART(1000, "\"string\""), "partition.pl", ST_CORRUPT},
	{PART(1000, "\"double\""), "partition.pl", ST_CORRUPT},
	{PART(1001, "\"long\""), "partition.pd", ST_CORRUPT},
	{PART(1002, "\"long\""), "partition.pn", ST_CORRUPT},
	{PART(1003, "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":99}"),
	 "partition.pu", ST_CORRUPT},
	/* Thousands of seconds would pass for millionths. */
	{PART(1004, "{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}"), "partition.pt",
	 ST_CORRUPT},
};

START_TEST(bad_schema)
{
	struct fixture f;
	ck_assert_int_eq(decode(&f, bad_schemas[_i].schema, STRV("\x0a")), bad_schemas[_i].want);
	ck_assert_str_eq(f.err.field, bad_schemas[_i].field);
	arena_fini(&f.a);
}
END_TEST

#define NULLS INNER "," X("{\"type\":\"array\",\"items\":\"null\"}")
static const struct {
	const char *schema;
	struct strv data;
	enum status want;
} bad_datums[] = {
	{INNER, STRV(""), ST_CORRUPT},
	{F(3,
	   "[\"null\",{\"type\":\"record\",\"name\":\"in\",\"fields\":[" F(31, "\"long\"") "]}]"),
	 STRV("\x00"), ST_CORRUPT}, /* null where a value must be */
	{F(3,
	   "{\"type\":\"record\",\"name\":\"in\",\"fields\":[" F(31, "[\"null\",\"long\"]") "]}"),
	 STRV("\x00"), ST_CORRUPT},
	{INNER "," F(1, "[\"null\",\"int\"]"), STRV("\x0a\x04"), ST_CORRUPT}, /* branch 2 of 2 */
	{INNER "," F(1, "[\"null\",\"int\"]"), STRV("\x0a\x01"), ST_CORRUPT}, /* branch -1 */
	{INNER "," F(1, "\"int\""), STRV("\x0a\x80\x80\x80\x80\x10"), ST_CORRUPT}, /* 2^31 */
	{INNER "," F(2, "\"string\""), STRV("\x0a\x02\xff"), ST_CORRUPT},          /* not UTF-8 */
	{INNER "," F(2, "\"string\""), STRV("\x0a\x03"), ST_CORRUPT},
	{INNER "," F(2, "\"string\""), STRV("\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	 ST_CORRUPT},
	{INNER "," X("\"bytes\""),
	 STRV("\x0a\x06"
	      "ab"),
	 ST_CORRUPT},
	{PART(1001, "\"boolean\""), STRV("\x0a\x02"), ST_CORRUPT},
	{PART(1003, "\"boolean\""), STRV("\x0a\x02"), ST_CORRUPT}, /* neither 0 nor 1 */
	/* Lists: more items than bytes, a block length that is a lie, INT64_MIN items. */
	{INNER "," F(5, "{\"type\":\"array\",\"items\":\"long\"}"), STRV("\x0a\x08\x02\x02"),
	 ST_CORRUPT},
	{INNER "," F(5, "{\"type\":\"array\",\"items\":\"long\"}"), STRV("\x0a\x01\x08\x02\x00"),
	 ST_CORRUPT},
	{INNER "," F(5, "{\"type\":\"array\",\"items\":\"long\"}"),
	 STRV("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ST_CORRUPT},
	/* Items without bytes: a few are fine, 2^62 are not. */
	{NULLS, STRV("\x0a\x04\x00"), ST_OK},
	{NULLS, STRV("\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"), ST_CORRUPT},
	{NULLS, STRV("\x0a\x04\x04\x04\x04\x00"), ST_CORRUPT},
};

START_TEST(bad_datum)
{
	struct fixture f;
	ck_assert_int_eq(decode(&f, bad_datums[_i].schema, bad_datums[_i].data),
			 bad_datums[_i].want);
	arena_fini(&f.a);
}
END_TEST

/* Named types that refer to named types: few characters, very many types. */
START_TEST(bomb)
{
	struct buf b;
	struct fixture f;
	buf_init(&b, 1 << 20);
	buf_puts(&b, INNER);
	for (int level = 0; level < 11; level++) {
		buf_printf(&b,
			   ",{\"name\":\"x\",\"type\":{\"type\":\"record\",\"name\":\"t%d\","
			   "\"fields\":[",
			   level);
		for (int i = 0; level && i < 40; i++)
			buf_printf(&b, "%s{\"name\":\"x\",\"type\":\"t%d\"}", i ? "," : "",
				   level - 1);
		buf_puts(&b, "]}}");
	}
	buf_putc(&b, 0);
	ck_assert(buf_ok(&b));
	ck_assert_int_eq(decode(&f, (const char *)b.p, STRV("\x0a")), ST_LIMIT);
	arena_fini(&f.a);
	buf_fini(&b);
}
END_TEST

/* A plain name is looked up in the namespace of the record around it. */
START_TEST(namespaces)
{
	static const char schema[] = X("{\"type\":\"fixed\",\"name\":\"a.q\",\"size\":1}") "," X(
		"{\"type\":\"fixed\","
		"\"name\":\"q\","
		"\"namespace\":\"b\","
		"\"size\":2}") "," X("{\"type\":\"record\",\"name\":\"b.r\","
				     "\"fields\":[" X("\"q\"") "," X("\"a.q\"") "]"
										"}") "," INNER;
	struct fixture f;
	ck_assert_int_eq(decode(&f, schema,
				STRV("1"
				     "22"
				     "33"
				     "4"
				     "\x0a")),
			 ST_OK);
	ck_assert_int_eq(f.r.in.l, 5);
	arena_fini(&f.a);
	ck_assert_int_eq(decode(&f,
				X("{\"type\":\"fixed\",\"name\":\"a.q\",\"size\":1}") "," X(
					"\"q\"") "," INNER,
				STRV("1"
				     "1"
				     "\x0a")),
			 ST_CORRUPT);
	arena_fini(&f.a);
}
END_TEST

/* A fixed defined again in the same words: PyIceberg does so. */
START_TEST(twice)
{
	struct fixture f;
	ck_assert_int_eq(decode(&f,
				X("{\"type\":\"fixed\",\"name\":\"q\",\"size\":1}") "," X(
					"{\"type\":\"fixed\",\"name\":\"q\",\"size\":1,"
					"\"logicalType\":\"x\"}") "," INNER,
				STRV("1"
				     "1"
				     "\x0a")),
			 ST_OK);
	arena_fini(&f.a);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("avro_prog");
	TCase *t = tcase_create("avro_prog");
	tcase_add_test(t, least);
	tcase_add_test(t, foreign);
	tcase_add_test(t, tuples);
	tcase_add_loop_test(t, bad_schema, 0, ARRAY_SIZE(bad_schemas));
	tcase_add_loop_test(t, bad_datum, 0, ARRAY_SIZE(bad_datums));
	tcase_add_test(t, bomb);
	tcase_add_test(t, namespaces);
	tcase_add_test(t, twice);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
