/* Container framing by hand-made bytes ("Object Container Files" of the Avro spec). */
#include "proto/avro/avro_container.h"

#include "tests/unit/unit.h"

/* magic | map | sync. \x14 is the zig-zag of 10 and so on. */
#define MAGIC "Obj\x01"
#define SYNC "0123456789abcdef"
#define CODEC_NULL_ENTRY                                                                           \
	"\x14"                                                                                     \
	"avro.codec"                                                                               \
	"\x08"                                                                                     \
	"null"
#define K1                                                                                         \
	"\x02"                                                                                     \
	"k"                                                                                        \
	"\x02"                                                                                     \
	"v"

struct opened {
	struct arena a;
	struct avro_container c;
	enum status st;
};

static struct opened open_text(struct strv text)
{
	struct opened o;
	struct err err = {0};
	arena_init(&o.a, 1 << 20);
	o.st = avro_container_open(strv_bytes(text), &o.a, &o.c, &err);
	ck_assert_int_eq(o.st, err.st);
	return o;
}

static const struct {
	struct strv text;
	enum status want;
	size_t n_meta;
} headers[] = {
	{STRV(MAGIC "\x04" K1 CODEC_NULL_ENTRY "\x00" SYNC), ST_OK, 2},
	{STRV(MAGIC "\x02" K1 "\x00" SYNC), ST_OK, 1}, /* codec absent: null */
	{STRV(MAGIC "\x00" SYNC), ST_OK, 0},
	/* Two map blocks, the second with a negative count and its length. */
	{STRV(MAGIC "\x02" K1 "\x01\x20" CODEC_NULL_ENTRY "\x00" SYNC), ST_OK, 2},
	{STRV("Obj\x02\x00" SYNC), ST_CORRUPT, 0},
	{STRV(""), ST_CORRUPT, 0},
	{STRV(MAGIC "\x04" K1 K1 "\x00" SYNC), ST_CORRUPT, 0}, /* a key twice */
	{STRV(MAGIC "\x02\x01"
		    "k"
		    "\x02"
		    "v"
		    "\x00" SYNC),
	 ST_CORRUPT, 0}, /* length -1 */
	{STRV(MAGIC "\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
		    "k"),
	 ST_CORRUPT, 0},
	/* Eleven bytes of varint; and ten bytes with more than 64 bits. */
	{STRV(MAGIC "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" SYNC), ST_CORRUPT, 0},
	{STRV(MAGIC "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02" SYNC), ST_CORRUPT, 0},
	/* Count of INT64_MIN, whose negation does not exist. */
	{STRV(MAGIC "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" SYNC), ST_CORRUPT, 0},
	{STRV(MAGIC "\xfe\xff\xff\xff\x0f" SYNC), ST_LIMIT, 0}, /* 2^31 - 1 entries */
	{STRV(MAGIC "\x02\x14"
		    "avro.codec"
		    "\x0a"
		    "bzip2"
		    "\x00" SYNC),
	 ST_UNSUPPORTED, 0},
	{STRV(MAGIC "\x00"
		    "0123456789abcde"),
	 ST_CORRUPT, 0},
};

START_TEST(header)
{
	struct opened o = open_text(headers[_i].text);
	ck_assert_int_eq(o.st, headers[_i].want);
	if (o.st == ST_OK) {
		struct strv v;
		ck_assert_uint_eq(o.c.n_meta, headers[_i].n_meta);
		ck_assert_int_eq(o.c.codec, CODEC_NULL);
		ck_assert(!avro_container_meta(&o.c, STRV("absent"), &v));
		if (headers[_i].n_meta)
			ck_assert(avro_container_meta(&o.c, STRV("k"), &v) &&
				  strv_eq(v, STRV("v")));
	}
	arena_fini(&o.a);
}
END_TEST

#define HEAD MAGIC "\x00" SYNC
static const struct {
	struct strv text;
	enum status want;
	size_t blocks, datums;
} bodies[] = {
	{STRV(HEAD), ST_OK, 0, 0},
	{STRV(HEAD "\x04\x06"
		   "abc" SYNC "\x02\x00" SYNC),
	 ST_OK, 2, 3},
	{STRV(HEAD "\x00\x00" SYNC), ST_OK, 1, 0},
	{STRV(HEAD "\x04\x06"
		   "abc"
		   "0123456789abcdeF"),
	 ST_CORRUPT, 0, 0},
	{STRV(HEAD "\x04\x06"
		   "abc"),
	 ST_CORRUPT, 0, 0},
	{STRV(HEAD "\x04\x08"
		   "abc" SYNC),
	 ST_CORRUPT, 0, 0},
	{STRV(HEAD "\x03\x06"
		   "abc" SYNC),
	 ST_CORRUPT, 0, 0}, /* count -2 */
	{STRV(HEAD "\x04\x05"
		   "abc" SYNC),
	 ST_CORRUPT, 0, 0}, /* length -3 */
	{STRV(HEAD "\x04"), ST_CORRUPT, 0, 0},
};

START_TEST(body)
{
	struct opened o = open_text(bodies[_i].text);
	ck_assert_int_eq(o.st, ST_OK);
	size_t n = 0, blocks = 0, datums = 0;
	enum status st = avro_container_count(&o.c, &n, NULL);
	ck_assert_int_eq(st, bodies[_i].want);
	for (bool more = true; more;) {
		int64_t count = 0;
		struct bytes data;
		st = avro_container_next(&o.c, &o.a, &more, &count, &data, NULL);
		if (st != ST_OK)
			break;
		if (more) {
			blocks++;
			datums += (size_t)count;
		}
	}
	ck_assert_int_eq(st, bodies[_i].want);
	ck_assert_uint_eq(blocks, bodies[_i].blocks);
	ck_assert_uint_eq(datums, bodies[_i].datums);
	if (st == ST_OK)
		ck_assert_uint_eq(n, datums);
	arena_fini(&o.a);
}
END_TEST

/* What is written has the layout of the spec, and blocks close at their size. */
START_TEST(writing)
{
	struct avro_writer w;
	struct buf out;
	struct err err = {0};
	struct avro_meta meta = {STRV("k"), STRV("v")};
	buf_init(&out, 1 << 20);
	UNIT_OK(avro_container_begin(&w, &out, CODEC_NULL, (const uint8_t *)SYNC, &meta, 1, &err),
		&err);
	ck_assert(strv_eq(buf_strv(&out), headers[0].text));
	size_t head = out.n;
	for (int i = 0; i < 3; i++) {
		buf_putc(&w.block, (uint8_t)('a' + i));
		UNIT_OK(avro_container_datum(&w, &err), &err);
	}
	UNIT_OK(avro_container_end(&w, &err), &err);
	ck_assert(strv_eq(strv_sub(buf_strv(&out), head, out.n), STRV("\x06\x06"
								      "abc" SYNC)));
	head = out.n;
	UNIT_OK(avro_container_end(&w, &err), &err);
	ck_assert_uint_eq(out.n, head); /* no empty block */
	uint8_t *room = buf_room(&w.block, AVRO_BLOCK_BYTES);
	ck_assert_ptr_nonnull(room);
	memset(room, 0, AVRO_BLOCK_BYTES);
	UNIT_OK(avro_container_datum(&w, &err), &err);
	ck_assert_uint_gt(out.n, head + AVRO_BLOCK_BYTES);
	ck_assert_uint_eq(w.block.n, 0);
	avro_container_fini(&w);
	buf_fini(&out);
}
END_TEST

/* Zig-zag varints of the spec's table and the ends of the range. */
START_TEST(varints)
{
	static const struct {
		int64_t v;
		struct strv bytes;
	} cases[] = {
		{0, STRV("\x00")},
		{-1, STRV("\x01")},
		{1, STRV("\x02")},
		{-2, STRV("\x03")},
		{-64, STRV("\x7f")},
		{64, STRV("\x80\x01")},
		{INT64_MAX, STRV("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
		{INT64_MIN, STRV("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b;
		struct avro_in in = avro_bin_in(strv_bytes(cases[i].bytes));
		int64_t v = 7;
		int32_t n = 7;
		buf_init(&b, 100);
		avro_bin_put_long(&b, cases[i].v);
		ck_assert(strv_eq(buf_strv(&b), cases[i].bytes));
		ck_assert(avro_bin_get_long(&in, &v) && v == cases[i].v);
		ck_assert_uint_eq(avro_bin_left(&in), 0);
		in = avro_bin_in(strv_bytes(cases[i].bytes));
		ck_assert_int_eq(avro_bin_get_int(&in, &n), v >= INT32_MIN && v <= INT32_MAX);
		buf_fini(&b);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("avro_container");
	TCase *t = tcase_create("avro_container");
	tcase_add_loop_test(t, header, 0, ARRAY_SIZE(headers));
	tcase_add_loop_test(t, body, 0, ARRAY_SIZE(bodies));
	tcase_add_test(t, writing);
	tcase_add_test(t, varints);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
