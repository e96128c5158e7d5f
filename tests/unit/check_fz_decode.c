/* Answers as the daemon's codec writes them, whole, cut, and altered byte by byte. */
#include "clients/c/fz_decode.h"

#include "proto/rpc/msg.h"
#include "tests/unit/unit.h"

#define MAX ((size_t)1 << 20)

static struct fz_schemas schemas;
static struct buf out;
static struct arena arena;
static struct fz_error error;

static void setup(void)
{
	fz_schemas_init(&schemas);
	buf_init(&out, MAX);
	arena_init(&arena, MAX);
}

static void teardown(void)
{
	fz_schemas_fini(&schemas);
	buf_fini(&out);
	arena_fini(&arena);
}

static struct fz_decoded decode(int msg)
{
	struct fz_decoded d = {0};
	ck_assert_msg(fz_decode(&schemas, msg, buf_bytes(&out), &arena, &d, &error) == FZ_OK, "%s",
		      error.message);
	return d;
}

/* Every shorter form and every form with one more byte is refused; no single altered byte is
 * trusted with memory. */
static void hostile(int msg)
{
	struct fz_decoded d;
	for (size_t n = 0; n < out.n; n++) {
		arena_reset(&arena);
		uint8_t *cut = base_alloc(n); /* so that a read behind the end is seen */
		memcpy(cut, out.p, n);
		enum fz_status st =
			fz_decode(&schemas, msg, (struct bytes){cut, n}, &arena, &d, &error);
		base_free(cut);
		ck_assert_int_eq(st, FZ_PROTOCOL);
		ck_assert_str_eq(error.field, fz_schemas_name(msg));
	}
	for (size_t i = 0; i < out.n; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			out.p[i] = (uint8_t)(out.p[i] ^ 1u << bit);
			arena_reset(&arena);
			enum fz_status st =
				fz_decode(&schemas, msg, buf_bytes(&out), &arena, &d, &error);
			ck_assert(st == FZ_OK || st == FZ_PROTOCOL);
			out.p[i] = (uint8_t)(out.p[i] ^ 1u << bit);
		}
	buf_putc(&out, 0);
	ck_assert_int_eq(fz_decode(&schemas, msg, buf_bytes(&out), &arena, &d, &error),
			 FZ_PROTOCOL);
	buf_clear(&out);
	arena_reset(&arena);
}

START_TEST(outcome)
{
	struct rpc_file_outcome files[] = {{.path = STRV("file:///a"),
					    .first_row_id = 7,
					    .has_first_row_id = true,
					    .record_count = 3},
					   {.path = STRV("file:///b"), .record_count = 4}};
	struct rpc_delete_outcome deletes[] = {{STRV("file:///c"), 5, 6}};
	struct rpc_error reject = {60,        STRV("FILE_GONE"), STRV("f"),
				   STRV("m"), RPC_RETRY_NONE,    RPC_EFFECT_CLEAN};
	struct rpc_outcome o = {.txn_id = {{1, 2}},
				.state = RPC_STATE_REJECTED,
				.snapshot_id = -5,
				.has_snapshot_id = true,
				.batch_no = 8,
				.has_batch_no = true,
				.batch_id = {{9}},
				.has_batch_id = true,
				.metadata_location = STRV("loc"),
				.rows_inserted = 1,
				.rows_updated = 2,
				.rows_deleted = INT64_MAX,
				.files = files,
				.n_files = 2,
				.deletes = deletes,
				.n_deletes = 1,
				.reject = &reject,
				.queue_position = 0,
				.has_queue_position = true,
				.note = STRV("n")};
	msg_encode(&rpc_record_outcome, &o, &out);
	const struct fz_outcome *got = decode(FZ_MSG_OUTCOME).outcome;
	ck_assert(got->txn_id[1] == 2 && got->state == FZ_STATE_REJECTED);
	ck_assert(got->has_snapshot && got->snapshot_id == -5 && !got->has_sequence_number);
	ck_assert(got->has_batch_no && got->batch_no == 8 && got->has_batch_id);
	ck_assert_int_eq(got->batch_id[0], 9);
	ck_assert_str_eq(got->metadata_location, "loc");
	ck_assert(got->rows_inserted == 1 && got->rows_updated == 2 &&
		  got->rows_deleted == INT64_MAX);
	ck_assert(got->n_files == 2 && got->files[0].has_first_row_id &&
		  got->files[0].first_row_id == 7);
	ck_assert_str_eq(got->files[1].path, "file:///b");
	ck_assert(!got->files[1].has_first_row_id && got->files[1].record_count == 4);
	ck_assert(got->n_deletes == 1 && got->deletes[0].deleted == 5 &&
		  got->deletes[0].overlap == 6);
	ck_assert_str_eq(got->reject->name, "FILE_GONE");
	ck_assert_int_eq(got->reject->status, FZ_REJECTED);
	ck_assert(got->has_queue_position && got->queue_position == 0);
	ck_assert_str_eq(got->note, "n");
	hostile(FZ_MSG_OUTCOME);
}
END_TEST

START_TEST(begin_reply)
{
	struct rpc_begin_reply b = {.txn_id = {{1}},
				    .table_uuid = {{2}},
				    .incarnation = 3,
				    .lease_token = {(const uint8_t *)"to\0k", 4},
				    .ttl_ms = 5,
				    .location = STRV("l"),
				    .data_location = STRV("d"),
				    .format_version = 3,
				    .schema_id = 6,
				    .schema_json = STRV("{}"),
				    .spec_id = 7,
				    .spec_json = STRV("[]"),
				    .sort_order_id = 8,
				    .read_snapshot_id = 9,
				    .has_read_snapshot_id = true};
	msg_encode(&rpc_record_begin_reply, &b, &out);
	struct fz_decoded d = decode(FZ_MSG_BEGIN_REPLY);
	ck_assert(d.token.n == 4 && memcmp(d.token.p, "to\0k", 4) == 0);
	ck_assert(d.info->table_uuid[0] == 2 && d.info->incarnation == 3 && d.info->ttl_ms == 5);
	ck_assert_str_eq(d.info->data_location, "d");
	ck_assert_str_eq(d.info->schema_json, "{}");
	ck_assert(d.info->format_version == 3 && d.info->schema_id == 6 && d.info->spec_id == 7);
	ck_assert(d.info->sort_order_id == 8 && d.info->has_read_snapshot);
	ck_assert_int_eq(d.info->read_snapshot_id, 9);
	hostile(FZ_MSG_BEGIN_REPLY);
}
END_TEST

START_TEST(others)
{
	struct strv warnings[] = {STRV("w1"), STRV("w2")};
	struct rpc_stage_reply s = {STRV("f"), 2, {{3}}, RPC_DOOMED_CERTAIN, warnings, 2};
	msg_encode(&rpc_record_stage_reply, &s, &out);
	const struct fz_staged *staged = decode(FZ_MSG_STAGE_REPLY).staged;
	ck_assert(staged->attempt == 2 && staged->digest[0] == 3 &&
		  staged->doomed == FZ_DOOMED_CERTAIN);
	ck_assert_str_eq(staged->warnings[1], "w2");
	hostile(FZ_MSG_STAGE_REPLY);
	struct rpc_error none = {40,        STRV("TXN_UNKNOWN"), STRV(""),
				 STRV("m"), RPC_RETRY_LATER,     RPC_EFFECT_UNKNOWN};
	struct rpc_lease_state items[] = {{.txn_id = {{4}}, .state = RPC_STATE_SEALED},
					  {.txn_id = {{5}}, .error = &none}};
	struct rpc_heartbeat_reply h = {items, 2};
	msg_encode(&rpc_record_heartbeat_reply, &h, &out);
	struct fz_decoded d = decode(FZ_MSG_HEARTBEAT_REPLY);
	ck_assert(d.n_leases == 2 && d.leases[0].state == FZ_STATE_SEALED && !d.leases[0].error);
	ck_assert_int_eq(d.leases[1].error->retry, FZ_RETRY_LATER);
	ck_assert_int_eq(d.leases[1].error->effect, FZ_EFFECT_UNKNOWN);
	hostile(FZ_MSG_HEARTBEAT_REPLY);
	msg_encode(&rpc_record_error, &none, &out);
	ck_assert_str_eq(decode(FZ_MSG_ERROR).error->name, "TXN_UNKNOWN");
	hostile(FZ_MSG_ERROR);
}
END_TEST

/* Blocks with a size, as other writers make them; and counts that lie. */
START_TEST(blocks)
{
	struct fz_decoded d;
	static const uint8_t sized[] = "\x02"
				       "f"
				       "\x00"
				       "................................"
				       "\x00"
				       "\x03\x08\x02"
				       "a"
				       "\x02"
				       "b"
				       "\x00";
	static const uint8_t lies[][12] = {"\x03\x06\x02"
					   "a"
					   "\x02"
					   "b", /* wrong size */
					   "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02",
					   "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
					   "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"};
	buf_put(&out, sized, sizeof sized - 1);
	const struct fz_staged *s = decode(FZ_MSG_STAGE_REPLY).staged;
	ck_assert_uint_eq(s->n_warnings, 2);
	ck_assert_str_eq(s->warnings[1], "b");
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		buf_clear(&out);
		buf_put(&out, sized, 36);
		buf_put(&out, lies[i], sizeof lies[i]);
		ck_assert_int_eq(fz_decode(&schemas, FZ_MSG_STAGE_REPLY, buf_bytes(&out), &arena,
					   &d, &error),
				 FZ_PROTOCOL);
	}
}
END_TEST

START_TEST(limits)
{
	struct fz_decoded d;
	struct strv *warnings = base_calloc(3000, sizeof *warnings);
	struct rpc_stage_reply s = {.warnings = warnings, .n_warnings = 3000};
	msg_encode(&rpc_record_stage_reply, &s, &out);
	ck_assert_int_eq(
		fz_decode(&schemas, FZ_MSG_STAGE_REPLY, buf_bytes(&out), &arena, &d, &error),
		FZ_PROTOCOL);
	ck_assert_str_eq(error.name, "TOO_LARGE");
	base_free(warnings);
	for (int msg = -1; msg < 300; msg++) {
		const char *name = fz_schemas_name(msg);
		if (!name || fz_schemas_reply((enum fz_msg)msg) != 0) {
			ck_assert_int_eq(
				fz_decode(&schemas, msg, buf_bytes(&out), &arena, &d, &error),
				FZ_PROTOCOL);
			ck_assert_str_eq(error.field, "frame.type");
		}
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fz_decode");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, outcome);
	tcase_add_test(t, begin_reply);
	tcase_add_test(t, others);
	tcase_add_test(t, blocks);
	tcase_add_test(t, limits);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
