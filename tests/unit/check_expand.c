/* Fragments of engines' messages: what stands in their place once they are read. */
#include "daemon/commit/intake/expand.h"

#include "tests/unit/frag_case.h"

/* Trino's report of a vector; the spec that it states is not looked up. */
static struct rpc_task_message trino(const char *data_file, const char *positions, int spec, int n)
{
	struct buf b;
	struct strv s;
	buf_init(&b, 65536);
	buf_printf(&b,
		   "{\"path\":\"\",\"fileFormat\":\"PARQUET\",\"fileSizeInBytes\":0,\"metrics\":"
		   "{\"recordCount\":%d},\"partitionSpecJson\":\"{\\\"spec-id\\\":%d,"
		   "\\\"fields\\\":[]}\",\"content\":\"POSITION_DELETES\",\"referencedDataFile\":"
		   "\"file:///t/data/%s.parquet\",\"serializedDeletionVector\":\"",
		   n, spec, data_file);
	digest_base64(&b, blob(positions));
	buf_puts(&b, "\"}");
	ck_assert(arena_strv(&t->arena, buf_strv(&b), &s));
	buf_fini(&b);
	return (struct rpc_task_message){RPC_DIALECT_TRINO, strv_bytes(s)};
}

#define VELOX_FILE(path, more)                                                                     \
	{                                                                                          \
		RPC_DIALECT_VELOX,                                                                 \
			strv_bytes(STRV("{\"content\":\"DATA\",\"fileFormat\":\"PARQUET\","        \
					"\"fileSizeInBytes\":77,\"metrics\":{\"recordCount\":6},"  \
					"\"partitionSpecJson\":0," more "\"path\":\"" path "\"}")) \
	}

/* The parts of messages are treated as the worker's own. */
START_TEST(messages)
{
	struct rpc_task_message m[4] = {trino("a", "3-9", 0, 7), trino("b", "7", 1, 1),
					VELOX_FILE("file:///t/data/v.parquet", ""),
					trino("a", "20", 1, 1)};
	struct err err = {0};
	struct frag *again = NULL;
	in.n_deletes = 0;
	in.n_data_files = 1;
	in.messages = m;
	in.n_messages = 4;
	struct frag *f = decoded();
	ck_assert_uint_eq(f->n_files, 2);
	ck_assert(strv_eq(f->files[1].path, STRV("file:///t/data/v.parquet")));
	ck_assert_int_eq(f->rows, 16);
	ck_assert_int_eq(f->rows_updated, 2);
	/* Two tasks on one data file are two vectors, joined at Seal. */
	ck_assert_uint_eq(f->n_deletes, 3);
	ck_assert_int_eq(f->positions, 9);
	ck_assert(!f->deletes[0].dead);
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	positions_are(&f->deletes[0], "6-9");
	positions_are(&f->deletes[1], "7");
	positions_are(&f->deletes[2], "20");
	/* Both files are of spec 0. */
	ck_assert_msg(strv_starts(f->warning, STRV("2 vectors state another partition spec")),
		      "%.*s", STRV_ARG(f->warning));
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = {.payload = f->payload};
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert_uint_eq(again->n_files, 2);
	ck_assert_uint_eq(again->n_deletes, 3);
	ck_assert_int_eq(again->positions, 9);
	positions_are(&again->deletes[0], "6-9");
	ck_assert(digest_eq(&again->digest, &in.digest));
	/* Nothing is said of provenance: dead where the transaction only deletes. */
	txn_is(RPC_KIND_DELETE);
	in.n_data_files = 0;
	in.n_messages = 2;
	m[1] = trino("b", "7", 0, 1);
	f = decoded();
	ck_assert(f->deletes[0].dead && f->deletes[1].dead);
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	ck_assert_uint_eq(f->warning.n, 0);
}
END_TEST

/* A vector as DuckDB writes it: keys in the order of a hash table. */
static struct bytes any_order(struct bytes blob, bool twice)
{
	struct buf b;
	struct bytes out;
	/* Frame, magic, count, then two entries: key, cookie, one container of one value. */
	const size_t entry = 4 + 8 + 4 + 4 + 2, head = 16;
	ck_assert_uint_eq(blob.n, head + 2 * entry + 4);
	buf_init(&b, 4096);
	buf_put(&b, blob.p, head);
	buf_put(&b, blob.p + head + entry, entry);
	buf_put(&b, blob.p + (twice ? head + entry : head), entry);
	uint8_t crc[4];
	put_u32be(crc, digest_crc32(0, (struct bytes){b.p + 4, b.n - 4}));
	buf_put(&b, crc, 4);
	ck_assert(arena_bytes(&t->arena, buf_bytes(&b), &out));
	buf_fini(&b);
	return out;
}

START_TEST(keys_in_any_order)
{
	struct err err = {0};
	struct frag *again = NULL;
	(void)ct_append(t, CT_MAIN, "big", INT64_C(10000000000));
	ct_commit(t);
	ct_batch(t);
	txn_is(RPC_KIND_DELETE);
	struct bytes sorted = blob("5 4294967303");
	vectors[0].data_file = ct_path(t, "big");
	vectors[0].vector = any_order(sorted, false);
	vectors[0].cardinality = 2;
	in.n_data_files = 0;
	in.n_deletes = 1;
	ck_assert(!bytes_eq(vectors[0].vector, sorted));
	struct frag *f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	positions_are(&f->deletes[0], "5 4294967303");
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = {.payload = f->payload};
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	positions_are(&again->deletes[0], "5 4294967303");
	vectors[0].vector = any_order(sorted, true);
	refused(ST_DV_CORRUPT, "deletes[0].vector.key");
}
END_TEST

START_TEST(messages_refused)
{
	struct rpc_task_message m[2] = {trino("b", "7", 0, 1),
					VELOX_FILE("file:///t/data/v.parquet", "")};
	in.messages = m;
	in.n_messages = 2;
	m[0] = trino("b", "7", 0, 2);
	refused(ST_DV_CORRUPT, "messages[0].cardinality");
	m[0] = (struct rpc_task_message)VELOX_FILE("file:///x/v.parquet", "");
	refused(ST_PATH_OUTSIDE, "messages[0].path");
	m[0] = (struct rpc_task_message)VELOX_FILE("file:///t/data/v.parquet",
						   "\"partitionDataJson\":\"{}\",");
	refused(ST_TUPLE_MISMATCH, "messages[0].partitionDataJson.partitionValues");
	m[0] = m[1];
	refused(ST_DUPLICATE_PATH, "data_files.path");
	m[0] = (struct rpc_task_message){.dialect = RPC_DIALECT_PRESTO};
	refused(ST_BAD_REQUEST, "messages[0]");
	/* The kind is held against what the messages report. */
	m[0] = trino("b", "7", 0, 1);
	in.n_data_files = in.n_deletes = 0;
	txn_is(RPC_KIND_DELETE);
	refused(ST_BAD_REQUEST, "data_files");
	txn_is(RPC_KIND_APPEND);
	refused(ST_BAD_REQUEST, "deletes");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("expand");
	TCase *c = tcase_create("expand");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, messages);
	tcase_add_test(c, keys_in_any_order);
	tcase_add_test(c, messages_refused);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
