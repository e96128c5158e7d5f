#include "proto/rpc/msg.h"

#include <avro.h>
#include <stdio.h>

#include "proto/rpc/msg_json.h"
#include "tests/unit/rpc_sample.h"
#include "tests/unit/unit.h"

#define ARENA ((size_t)4 << 20)
#define B(lit) ((struct bytes){(const uint8_t *)(lit), sizeof(lit) - 1})

/* Bytes written by hand from the Avro specification's rules. */

START_TEST(hand_made_abort)
{
	/* txn_id 16 bytes, lease_token "tok", reason "no" */
	static const char raw[] = "0123456789abcdef\x06tok\x04no";
	struct rpc_abort m = {.lease_token = B("tok"), .reason = STRV("no")};
	memcpy(m.txn_id.b, "0123456789abcdef", 16);
	struct buf b;
	buf_init(&b, 1024);
	msg_encode(&rpc_record_abort, &m, &b);
	ck_assert_uint_eq(b.n, sizeof raw - 1);
	ck_assert_mem_eq(b.p, raw, b.n);
	buf_fini(&b);
}
END_TEST

START_TEST(hand_made_outcome)
{
	/* state COMMITTED = 2 -> 04; snapshot 64 -> 02 80 01; sequence absent; batch -65 -> 02 81
	 * 01; batch_id absent; location "m"; rows 1 0 2; one file without row id; no deletes; no
	 * reject; queue position 0 present; note empty */
	static const char raw[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
				  "\x04\x02\x80\x01\x00\x02\x81\x01\x00\x02m\x02\x00\x04"
				  "\x02\x02p\x00\x06\x00"
				  "\x00\x00\x02\x00\x00";
	struct arena a;
	struct err err = {0};
	const void *v = NULL;
	arena_init(&a, ARENA);
	UNIT_OK(msg_decode(&rpc_record_outcome, B(raw), &a, &v, &err), &err);
	const struct rpc_outcome *o = v;
	ck_assert_uint_eq(o->txn_id.b[15], 1);
	ck_assert_int_eq(o->state, RPC_STATE_COMMITTED);
	ck_assert(o->has_snapshot_id && o->snapshot_id == 64);
	ck_assert(!o->has_sequence_number);
	ck_assert(o->has_batch_no && o->batch_no == -65);
	ck_assert(!o->has_batch_id);
	ck_assert(strv_eq(o->metadata_location, STRV("m")));
	ck_assert(o->rows_inserted == 1 && o->rows_updated == 0 && o->rows_deleted == 2);
	ck_assert_uint_eq(o->n_files, 1);
	ck_assert(strv_eq(o->files[0].path, STRV("p")) && o->files[0].record_count == 3);
	ck_assert(!o->files[0].has_first_row_id);
	ck_assert_uint_eq(o->n_deletes, 0);
	ck_assert_ptr_null(o->reject);
	ck_assert(o->has_queue_position && o->queue_position == 0);
	ck_assert_uint_eq(o->note.n, 0);
	arena_fini(&a);
}
END_TEST

START_TEST(array_blocks)
{
	/* Hello 1..1, client "", capabilities "a", "b", "c" in a plain block of one and a block of
	 * two that states its size (4 bytes). */
	static const char raw[] = "\x02\x02\x00\x02\x02"
				  "a\x03\x08\x02"
				  "b\x02"
				  "c\x00";
	struct arena a;
	struct err err = {0};
	const void *v = NULL;
	arena_init(&a, ARENA);
	UNIT_OK(msg_decode(&rpc_record_hello, B(raw), &a, &v, &err), &err);
	const struct rpc_hello *h = v;
	ck_assert_uint_eq(h->n_capabilities, 3);
	ck_assert(strv_eq(h->capabilities[2], STRV("c")));
	arena_fini(&a);
}
END_TEST

/* Each row breaks one rule; the status and the field must say which. */
static const struct {
	const char *what;
	const struct rpc_record *record;
	struct bytes raw;
	enum status st;
	const char *field;
} hostile[] = {
	{"nothing", &rpc_record_hello, {(const uint8_t *)"", 0}, ST_BAD_REQUEST, "min_version"},
	{"cut number",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x82", 1},
	 ST_BAD_REQUEST,
	 "min_version"},
	{"eleven bytes of number",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11},
	 ST_BAD_REQUEST,
	 "min_version"},
	{"65 bits",
	 &rpc_record_hello,
	 {(const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10},
	 ST_BAD_REQUEST,
	 "min_version"},
	{"33 bits",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x80\x80\x80\x80\x10\x02\x00\x00", 8},
	 ST_BAD_REQUEST,
	 "min_version"},
	{"trailing byte",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\x00\x00", 5},
	 ST_BAD_REQUEST,
	 ""},
	{"negative length",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x01\x00", 4},
	 ST_BAD_REQUEST,
	 "client"},
	{"length beyond the end",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x06"
			   "ab",
	  5},
	 ST_BAD_REQUEST,
	 "client"},
	{"overlong UTF-8",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x04\xc0\x80\x00", 6},
	 ST_BAD_REQUEST,
	 "client"},
	{"U+0000 in text",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x02\x00\x00", 5},
	 ST_BAD_REQUEST,
	 "client"},
	{"bad text in an item",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\x04\x02"
			   "a\x02\xff\x00",
	  9},
	 ST_BAD_REQUEST,
	 "capabilities[1]"},
	{"more items than bytes",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13},
	 ST_BAD_REQUEST,
	 "capabilities"},
	{"smallest count",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00", 15},
	 ST_BAD_REQUEST,
	 "capabilities"},
	{"block size too small",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\x01\x02\x02"
			   "a\x00",
	  8},
	 ST_BAD_REQUEST,
	 "capabilities"},
	{"block size negative",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\x01\x01\x02"
			   "a\x00",
	  8},
	 ST_BAD_REQUEST,
	 "capabilities"},
	{"no terminator",
	 &rpc_record_hello,
	 {(const uint8_t *)"\x02\x02\x00\x02\x02"
			   "a",
	  6},
	 ST_BAD_REQUEST,
	 "capabilities"},
	{"cut fixed",
	 &rpc_record_status,
	 {(const uint8_t *)"0123456789abcde", 15},
	 ST_BAD_REQUEST,
	 "txn_id"},
	{"union branch 2",
	 &rpc_record_partition_value,
	 {(const uint8_t *)"\x02\x04", 2},
	 ST_BAD_REQUEST,
	 "value"},
	{"union branch -1",
	 &rpc_record_partition_value,
	 {(const uint8_t *)"\x02\x01", 2},
	 ST_BAD_REQUEST,
	 "value"},
	{"unknown symbol",
	 &rpc_record_error,
	 {(const uint8_t *)"\x02\x00\x00\x00\x08\x00", 6},
	 ST_BAD_REQUEST,
	 "retry"},
	{"negative symbol",
	 &rpc_record_error,
	 {(const uint8_t *)"\x02\x00\x00\x00\x00\x01", 6},
	 ST_BAD_REQUEST,
	 "effect"},
	{"boolean 2",
	 &rpc_record_delete_vector,
	 {(const uint8_t *)"\x00\x00\x00\x00\x02", 5},
	 ST_BAD_REQUEST,
	 "includes_existing"},
};

START_TEST(refuses)
{
	struct arena a;
	struct err err = {0};
	const void *v = &err;
	arena_init(&a, ARENA);
	enum status st = msg_decode(hostile[_i].record, hostile[_i].raw, &a, &v, &err);
	ck_assert_msg(st == hostile[_i].st && strcmp(err.field, hostile[_i].field) == 0,
		      "%s: %s field=%s", hostile[_i].what, status_info(st)->name, err.field);
	ck_assert_ptr_eq(v, &err); /* untouched */
	arena_fini(&a);
}
END_TEST

START_TEST(every_prefix_is_refused)
{
	struct arena a;
	arena_init(&a, ARENA);
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		struct rpc_sample s = {&a, (uint64_t)m->type};
		void *value = arena_calloc(&a, 1, m->record->size);
		ck_assert_ptr_nonnull(value);
		rpc_sample_record(&s, m->record, value);
		struct buf b;
		buf_init(&b, 1 << 20);
		msg_encode(m->record, value, &b);
		for (size_t n = 0; n < b.n; n += n < 300 ? 1 : 37) {
			struct arena tmp;
			struct err err = {0};
			const void *v;
			arena_init(&tmp, ARENA);
			UNIT_STATUS(msg_decode(m->record, (struct bytes){b.p, n}, &tmp, &v, &err),
				    ST_BAD_REQUEST);
			arena_fini(&tmp);
		}
		buf_fini(&b);
	}
	arena_fini(&a);
}
END_TEST

START_TEST(arena_limit)
{
	/* Many small records: memory grows faster than input and must stop at the arena's limit. */
	struct buf b;
	struct arena a;
	struct err err = {0};
	const void *v;
	buf_init(&b, 1 << 20);
	buf_put(&b, "\x80\x80\x04", 3); /* 32768 items */
	for (int i = 0; i < 32768; i++) {
		buf_put(&b, "0123456789abcdef", 16);
		buf_putc(&b, 0);
	}
	buf_putc(&b, 0);
	arena_init(&a, 100000);
	UNIT_STATUS(msg_decode(&rpc_record_heartbeat, buf_bytes(&b), &a, &v, &err), ST_TOO_LARGE);
	ck_assert_str_eq(err.field, "items");
	arena_fini(&a);
	arena_init(&a, ARENA);
	UNIT_OK(msg_decode(&rpc_record_heartbeat, buf_bytes(&b), &a, &v, &err), &err);
	ck_assert_uint_eq(((const struct rpc_heartbeat *)v)->n_items, 32768);
	arena_fini(&a);
	buf_fini(&b);
}
END_TEST

/* avro-c as a second reader and writer, under the published schema. */

static bool same_value(const struct rpc_field *f, const void *at, avro_value_t *v);

static bool same_record(const struct rpc_record *r, const void *value, avro_value_t *v)
{
	const uint8_t *base = value;
	for (size_t i = 0; i < r->n; i++) {
		const struct rpc_field *f = &r->fields[i];
		const void *at = base + f->offset;
		avro_value_t sub, item;
		if (avro_value_get_by_name(v, f->name, &sub, NULL) != 0)
			return false;
		if (f->shape == RPC_ONE) {
			if (!same_value(f, at, &sub))
				return false;
		} else if (f->shape == RPC_ARRAY) {
			size_t n, have = 0;
			const uint8_t *items;
			memcpy(&n, base + f->aux, sizeof n);
			memcpy(&items, at, sizeof items);
			avro_value_get_size(&sub, &have);
			if (have != n)
				return false;
			for (size_t k = 0; k < n; k++) {
				avro_value_get_by_index(&sub, k, &item, NULL);
				if (!same_value(f, items + k * rpc_value_size(f), &item))
					return false;
			}
		} else {
			int branch = -1;
			if (f->type == RPC_TYPE_RECORD)
				memcpy(&at, base + f->offset, sizeof at);
			else if (!*(const bool *)(base + f->aux))
				at = NULL;
			avro_value_get_discriminant(&sub, &branch);
			if (branch != (at ? 1 : 0))
				return false;
			avro_value_get_current_branch(&sub, &item);
			if (at && !same_value(f, at, &item))
				return false;
		}
	}
	return true;
}

static bool same_value(const struct rpc_field *f, const void *at, avro_value_t *v)
{
	int i;
	int32_t i32;
	int64_t i64;
	const char *text;
	const void *p;
	size_t n;
	switch (f->type) {
	case RPC_TYPE_BOOL:
		return avro_value_get_boolean(v, &i) == 0 && (i != 0) == *(const bool *)at;
	case RPC_TYPE_INT:
		return avro_value_get_int(v, &i32) == 0 && i32 == *(const int32_t *)at;
	case RPC_TYPE_LONG:
		return avro_value_get_long(v, &i64) == 0 && i64 == *(const int64_t *)at;
	case RPC_TYPE_STRING:
		return avro_value_get_string(v, &text, &n) == 0 &&
		       strv_eq((struct strv){text, n - 1}, *(const struct strv *)at);
	case RPC_TYPE_BYTES:
		return avro_value_get_bytes(v, &p, &n) == 0 &&
		       bytes_eq((struct bytes){p, n}, *(const struct bytes *)at);
	case RPC_TYPE_UUID:
		return avro_value_get_fixed(v, &p, &n) == 0 && n == 16 && memcmp(p, at, 16) == 0;
	case RPC_TYPE_DIGEST:
		return avro_value_get_fixed(v, &p, &n) == 0 && n == 32 && memcmp(p, at, 32) == 0;
	case RPC_TYPE_ENUM: {
		uint32_t e;
		memcpy(&e, at, sizeof e);
		avro_schema_t s = avro_value_get_schema(v);
		return avro_value_get_enum(v, &i) == 0 && (uint32_t)i == e &&
		       strcmp(avro_schema_enum_get(s, i), f->list->symbols[e].name) == 0;
	}
	case RPC_TYPE_RECORD:
		return same_record(f->record, at, v);
	}
	return false;
}

static avro_schema_t published(const char *name)
{
	char path[200], text[65536];
	snprintf(path, sizeof path, "proto/rpc/%s.avsc", name);
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s cannot be read (run from the top of the tree)", path);
	size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	ck_assert_uint_lt(n, sizeof text);
	avro_schema_t schema;
	ck_assert_msg(avro_schema_from_json_length(text, n, &schema) == 0, "%s: %s", path,
		      avro_strerror());
	return schema;
}

static void against_avro_c(const struct rpc_message *m, avro_value_iface_t *iface, uint64_t seed)
{
	struct arena a;
	struct buf b, again;
	struct err err = {0};
	arena_init(&a, ARENA);
	buf_init(&b, 1 << 20);
	buf_init(&again, 1 << 20);
	struct rpc_sample s = {&a, seed};
	void *value = arena_calloc(&a, 1, m->record->size);
	ck_assert_ptr_nonnull(value);
	rpc_sample_record(&s, m->record, value);
	msg_encode(m->record, value, &b);

	avro_value_t v;
	avro_generic_value_new(iface, &v);
	avro_reader_t rd = avro_reader_memory((const char *)b.p, (int64_t)b.n);
	ck_assert_msg(avro_value_read(rd, &v) == 0, "%s: %s", m->name, avro_strerror());
	/* Everything was consumed: one byte more cannot be read. */
	char c;
	ck_assert_int_ne(avro_read(rd, &c, 1), 0);
	avro_reader_free(rd);
	ck_assert_msg(same_record(m->record, value, &v), "%s seed %lu", m->name,
		      (unsigned long)seed);

	/* What avro-c writes for the same value decodes to the same value. */
	static char out[1 << 20];
	avro_writer_t wr = avro_writer_memory(out, sizeof out);
	ck_assert_int_eq(avro_value_write(wr, &v), 0);
	const void *back = NULL;
	UNIT_OK(msg_decode(m->record,
			   (struct bytes){(const uint8_t *)out, (size_t)avro_writer_tell(wr)}, &a,
			   &back, &err),
		&err);
	avro_writer_free(wr);
	ck_assert(same_record(m->record, back, &v));
	msg_encode(m->record, back, &again);
	ck_assert(bytes_eq(buf_bytes(&b), buf_bytes(&again)));
	avro_value_decref(&v);

	/* And by way of JSON. */
	buf_clear(&again);
	msg_json_encode(m->record, value, &again);
	UNIT_OK(msg_json_decode(m->record, buf_bytes(&again), &a, &back, &err), &err);
	buf_clear(&again);
	msg_encode(m->record, back, &again);
	ck_assert(bytes_eq(buf_bytes(&b), buf_bytes(&again)));
	buf_fini(&again);
	buf_fini(&b);
	arena_fini(&a);
}

START_TEST(oracle)
{
	const struct rpc_message *m = &rpc_messages[_i];
	avro_schema_t schema = published(m->name);
	avro_value_iface_t *iface = avro_generic_class_from_schema(schema);
	for (uint64_t seed = 1; seed <= 40; seed++)
		against_avro_c(m, iface, seed);
	avro_value_iface_decref(iface);
	avro_schema_decref(schema);
}
END_TEST

START_TEST(fragment_digest)
{
	/* SHA-256 of 00 00 00 00 00, five empty arrays, as sha256sum prints it. */
	static const uint8_t empty[32] = {0x88, 0x55, 0x50, 0x8a, 0xad, 0xe1, 0x6e, 0xc5,
					  0x73, 0xd2, 0x1e, 0x6a, 0x48, 0x5d, 0xfd, 0x0a,
					  0x76, 0x24, 0x08, 0x5c, 0x1a, 0x14, 0xb5, 0xec,
					  0xdd, 0x64, 0x85, 0xde, 0x0c, 0x68, 0x39, 0xa4};
	struct rpc_fragment f = {.fragment_id = STRV("x")};
	struct digest d;
	ck_assert(msg_fragment_digest(&f, &d));
	ck_assert_mem_eq(d.b, empty, 32);
	/* 00 | 02 02 "f" 04 "vv" 02 00 00, no blob, 00 | 00 | 02 TRINO 04 "{}" 00 |
	 * 02 02 "m" 0a 04 06 00 */
	static const char raw[] = "\x00\x02\x02"
				  "f\x04vv\x02\x00\x00\x00\x00\x00"
				  "\x02\x04\x04{}\x00\x02\x02m\x0a\x04\x06\x00";
	struct rpc_delete_vector dv = {.data_file = STRV("f"), .vector = B("vv"), .cardinality = 1};
	f.deletes = &dv;
	f.n_deletes = 1;
	struct rpc_task_message task = {.dialect = RPC_DIALECT_TRINO, .json = B("{}")};
	f.messages = &task;
	f.n_messages = 1;
	struct rpc_manifest_ref manifest = {STRV("m"), 5, 2, 3};
	f.manifests = &manifest;
	f.n_manifests = 1;
	ck_assert(msg_fragment_digest(&f, &d));
	struct digest want = digest_sha256(B(raw));
	ck_assert_mem_eq(d.b, want.b, 32);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("msg");
	TCase *c = tcase_create("msg");
	int messages = 0;
	while (rpc_messages[messages].name)
		messages++;
	tcase_set_timeout(c, 60);
	tcase_add_test(c, hand_made_abort);
	tcase_add_test(c, hand_made_outcome);
	tcase_add_test(c, array_blocks);
	tcase_add_loop_test(c, refuses, 0, (int)ARRAY_SIZE(hostile));
	tcase_add_test(c, every_prefix_is_refused);
	tcase_add_test(c, arena_limit);
	tcase_add_loop_test(c, oracle, 0, messages);
	tcase_add_test(c, fragment_digest);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
