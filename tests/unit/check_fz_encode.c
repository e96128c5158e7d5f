/* Messages of the client against the daemon's codec, which shares no code with avro-c. */
#include "clients/c/fz_encode.h"

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

static const void *finish(struct fz_encode *e, const struct rpc_record *record)
{
	const void *v = NULL;
	struct err err = {0};
	ck_assert_msg(fz_encode_close(e, &out) == FZ_OK, "%s: %s", error.field, error.message);
	UNIT_OK(msg_decode(record, buf_bytes(&out), &arena, &v, &err), &err);
	/* Canonical: the daemon's encoder writes the same bytes. */
	struct buf again;
	buf_init(&again, MAX);
	msg_encode(record, v, &again);
	ck_assert(bytes_eq(buf_bytes(&out), buf_bytes(&again)));
	buf_fini(&again);
	return v;
}

static void is_text(struct strv got, const char *want)
{
	ck_assert_msg(strv_eq(got, strv_of(want)), "%.*s is not %s", STRV_ARG(got), want);
}

/* Each published message has the number that the client uses for it, and the reply. */
START_TEST(numbers)
{
	for (const struct rpc_message *m = rpc_messages; m->type != RPC_MSG_NONE; m++) {
		ck_assert_str_eq(fz_schemas_name((int)m->type), m->record->name);
		ck_assert_int_eq((int)fz_schemas_reply((enum fz_msg)m->type), (int)m->reply);
		ck_assert_ptr_nonnull(fz_schemas_get(&schemas, (enum fz_msg)m->type));
	}
	ck_assert_ptr_null(fz_schemas_name(12));
	ck_assert_int_eq(FZ_MSG_HEARTBEAT_REPLY, RPC_MSG_HEARTBEAT_REPLY);
	ck_assert_int_eq(FZ_MSG_COMMIT_ONCE, RPC_MSG_COMMIT_ONCE);
	ck_assert_int_eq(FZ_MSG_ERROR, RPC_MSG_ERROR);
}
END_TEST

START_TEST(hello)
{
	struct fz_encode e;
	fz_encode_open(&e, &schemas, FZ_MSG_HELLO, MAX, &error);
	fz_encode_hello(&e, 1, 3, "w", true);
	const struct rpc_hello *h = finish(&e, &rpc_record_hello);
	ck_assert_int_eq(h->min_version, 1);
	ck_assert_int_eq(h->max_version, 3);
	is_text(h->client, "w");
	ck_assert_uint_eq(h->n_capabilities, 1);
	is_text(h->capabilities[0], "provenance");
}
END_TEST

static const char *const levels[] = {"a", "b\xc3\xa4"};
static const struct fz_source source = {"src", 7, 8, 9};
static const struct fz_begin begin_full = {.warehouse = "w",
					   .namespace_levels = levels,
					   .n_levels = 2,
					   .table = "t",
					   .ref = "r",
					   .kind = FZ_ROW_DELTA,
					   .isolation = FZ_SERIALIZABLE,
					   .has_read_snapshot = true,
					   .read_snapshot_id = INT64_MIN,
					   .filter = "true",
					   .ordered = true,
					   .source = &source,
					   .ttl_ms = INT64_MAX};

static void is_full_begin(const struct rpc_begin *b, struct uuid id)
{
	ck_assert(uuid_eq(b->txn_id, id));
	is_text(b->warehouse, "w");
	ck_assert_uint_eq(b->n_namespace, 2);
	is_text(b->namespace[1], levels[1]);
	is_text(b->table, "t");
	is_text(b->ref, "r");
	ck_assert_int_eq(b->kind, RPC_KIND_ROW_DELTA);
	ck_assert_int_eq(b->isolation, RPC_ISOLATION_SERIALIZABLE);
	ck_assert(b->has_read_snapshot_id && b->read_snapshot_id == INT64_MIN);
	ck_assert(b->has_filter && b->ordered);
	is_text(b->filter, "true");
	ck_assert_ptr_nonnull(b->source);
	is_text(b->source->source_id, "src");
	ck_assert_int_eq(b->source->epoch, 7);
	ck_assert_int_eq(b->source->seq_from, 8);
	ck_assert_int_eq(b->source->seq_to, 9);
	ck_assert_int_eq(b->ttl_ms, INT64_MAX);
}

static struct uuid some_id(void)
{
	struct uuid u;
	fz_new_id(u.b);
	ck_assert_int_eq(uuid_version(u), 7);
	return u;
}

START_TEST(begin)
{
	struct fz_encode e;
	struct uuid id = some_id();
	fz_encode_open(&e, &schemas, FZ_MSG_BEGIN, MAX, &error);
	fz_encode_begin(&e, id, &begin_full);
	is_full_begin(finish(&e, &rpc_record_begin), id);
	/* Nothing given: the defaults of the schema. */
	buf_clear(&out);
	struct fz_begin little = {.namespace_levels = levels, .n_levels = 1, .table = "t"};
	fz_encode_open(&e, &schemas, FZ_MSG_BEGIN, MAX, &error);
	fz_encode_begin(&e, id, &little);
	const struct rpc_begin *b = finish(&e, &rpc_record_begin);
	is_text(b->ref, "main");
	ck_assert(!b->has_read_snapshot_id && !b->has_filter && !b->source && !b->ordered);
}
END_TEST

static const uint64_t positions[] = {9, 1, 9};
static const struct fz_partition tuple[] = {{1000, "\x01", 1}, {1001, NULL, 0}, {1002, "", 0}};
static const struct fz_metric metrics[] = {{1, 10}, {2, -1}};
static const struct fz_bound bounds[] = {{1, "\0x", 2}};
static const int64_t offsets[] = {4, 400};
static const struct fz_data_file files[] = {
	{.path = "file:///f",
	 .spec_id = 1,
	 .schema_id = 2,
	 .partition = tuple,
	 .n_partition = 3,
	 .record_count = 10,
	 .file_size = 1000,
	 .column_sizes = metrics,
	 .n_column_sizes = 2,
	 .value_counts = metrics,
	 .n_value_counts = 1,
	 .null_counts = metrics,
	 .n_null_counts = 2,
	 .nan_counts = metrics,
	 .n_nan_counts = 1,
	 .lower_bounds = bounds,
	 .n_lower_bounds = 1,
	 .upper_bounds = bounds,
	 .n_upper_bounds = 1,
	 .split_offsets = offsets,
	 .n_split_offsets = 2,
	 .has_sort_order = true,
	 .sort_order_id = 3,
	 .has_row_ids = true,
	 .new_row_count = 4,
	 .updated_row_count = 5},
	{.path = "file:///g", .format = "ORC", .record_count = 1}};
static const struct fz_delete deletes[] = {{.data_file = "file:///d",
					    .positions = positions,
					    .n_positions = 3,
					    .provenance = FZ_MOVED},
					   {.data_file = "file:///e",
					    .blob = "xyz",
					    .blob_size = 3,
					    .cardinality = 44,
					    .includes_existing = true},
					   {.data_file = "file:///f",
					    .blob_path = "file:///v",
					    .blob_offset = 4,
					    .blob_length = 50,
					    .cardinality = 6}};
static const char *const targets[] = {"file:///d", "file:///e"};
static const struct fz_delete_file delete_files[] = {{.path = "file:///pd",
						      .spec_id = 1,
						      .partition = tuple,
						      .n_partition = 3,
						      .record_count = 7,
						      .file_size = 70,
						      .column_sizes = metrics,
						      .n_column_sizes = 2,
						      .lower_bounds = bounds,
						      .n_lower_bounds = 1,
						      .data_files = targets,
						      .n_data_files = 2}};
static const struct fz_task_message tasks[] = {{FZ_VELOX, "{}", 2}, {FZ_ICEBERG, "[]", 2}};
static const struct fz_manifest manifests[] = {{"file:///m", 900, 2, 30}};
static const struct fz_fragment fragment = {.fragment_id = "frag",
					    .attempt = 3,
					    .data_files = files,
					    .n_data_files = 2,
					    .deletes = deletes,
					    .n_deletes = 3,
					    .delete_files = delete_files,
					    .n_delete_files = 1,
					    .manifests = manifests,
					    .n_manifests = 1};

static void is_fragment(const struct rpc_fragment *f)
{
	struct digest d;
	is_text(f->fragment_id, "frag");
	ck_assert_int_eq(f->attempt, 3);
	ck_assert(msg_fragment_digest(f, &d) && digest_eq(&d, &f->digest));
	ck_assert_uint_eq(f->n_data_files, 2);
	const struct rpc_data_file *a = &f->data_files[0], *b = &f->data_files[1];
	is_text(a->format, "PARQUET");
	is_text(b->format, "ORC");
	ck_assert_uint_eq(a->n_partition, 3);
	ck_assert(a->partition[0].has_value && !a->partition[1].has_value);
	ck_assert(a->partition[2].has_value && a->partition[2].value.n == 0);
	ck_assert(a->n_column_sizes == 2 && a->column_sizes[1].value == -1);
	ck_assert(a->n_value_counts == 1 && a->n_null_counts == 2 && a->n_nan_counts == 1);
	ck_assert(a->n_lower_bounds == 1 && a->lower_bounds[0].value.n == 2 &&
		  a->n_upper_bounds == 1);
	ck_assert(a->n_split_offsets == 2 && a->split_offsets[1] == 400);
	ck_assert(a->has_sort_order_id && a->sort_order_id == 3 && !b->has_sort_order_id);
	ck_assert(a->has_row_ids && a->new_row_count == 4 && a->updated_row_count == 5);
	ck_assert(a->spec_id == 1 && a->schema_id == 2 && a->record_count == 10);
	ck_assert_int_eq(a->file_size, 1000);
	ck_assert_uint_eq(f->n_deletes, 3);
	ck_assert_int_eq(f->deletes[0].cardinality, 2);
	ck_assert_int_eq(f->deletes[0].provenance, RPC_PROVENANCE_MOVED);
	ck_assert_int_eq(f->deletes[1].cardinality, 44);
	ck_assert(f->deletes[1].includes_existing && f->deletes[1].vector.n == 3);
	ck_assert(!f->deletes[1].blob && f->deletes[2].blob && f->deletes[2].vector.n == 0);
	is_text(f->deletes[2].blob->path, "file:///v");
	ck_assert(f->deletes[2].blob->offset == 4 && f->deletes[2].blob->length == 50);
	ck_assert(f->n_delete_files == 1 && f->n_manifests == 1);
	const struct rpc_delete_file *pd = &f->delete_files[0];
	is_text(pd->path, "file:///pd");
	is_text(pd->format, "PARQUET");
	ck_assert(pd->spec_id == 1 && pd->n_partition == 3 && pd->record_count == 7);
	ck_assert(pd->file_size == 70 && pd->n_column_sizes == 2 && pd->n_value_counts == 0);
	ck_assert(pd->n_lower_bounds == 1 && pd->n_upper_bounds == 0 && pd->n_data_files == 2);
	is_text(pd->data_files[1], "file:///e");
	is_text(f->manifests[0].path, "file:///m");
	ck_assert(f->manifests[0].length == 900 && f->manifests[0].added_files == 2 &&
		  f->manifests[0].added_rows == 30);
}

START_TEST(stage)
{
	struct fz_encode e;
	struct digest digest;
	struct fz_totals totals;
	struct uuid id = some_id();
	struct fz_lease lease = {id, {(const uint8_t *)"tok", 3}};
	fz_encode_open(&e, &schemas, FZ_MSG_STAGE, MAX, &error);
	fz_encode_stage(&e, &lease, &fragment, &digest, &totals);
	const struct rpc_stage *s = finish(&e, &rpc_record_stage);
	ck_assert(uuid_eq(s->txn_id, id) && s->lease_token.n == 3);
	is_fragment(&s->fragment);
	ck_assert(digest_eq(&digest, &s->fragment.digest));
	/* The files of the manifest count, and what the ranges are said to hold. */
	ck_assert(totals.files == 4 && totals.rows == 41 && totals.deleted == 59);
	ck_assert(!totals.unknown);
}
END_TEST

/* What a task reports is not read here: Seal then states no totals. */
START_TEST(task_messages)
{
	struct fz_encode e;
	struct digest digest;
	struct fz_totals totals;
	struct fz_ref ref = {"frag", 3, {{1}}};
	struct fz_lease lease = {some_id(), {(const uint8_t *)"tok", 3}};
	struct fz_fragment f = {.fragment_id = "frag", .messages = tasks, .n_messages = 2};
	fz_encode_open(&e, &schemas, FZ_MSG_STAGE, MAX, &error);
	fz_encode_stage(&e, &lease, &f, &digest, &totals);
	const struct rpc_stage *s = finish(&e, &rpc_record_stage);
	struct digest d;
	ck_assert(msg_fragment_digest(&s->fragment, &d) && digest_eq(&d, &digest));
	ck_assert_uint_eq(s->fragment.n_messages, 2);
	ck_assert_int_eq(s->fragment.messages[0].dialect, RPC_DIALECT_VELOX);
	ck_assert_int_eq(s->fragment.messages[1].dialect, RPC_DIALECT_ICEBERG);
	ck_assert_mem_eq(s->fragment.messages[1].json.p, "[]", 2);
	ck_assert(totals.unknown);
	buf_clear(&out);
	fz_encode_open(&e, &schemas, FZ_MSG_SEAL, MAX, &error);
	fz_encode_seal(&e, &lease, &ref, 1, &totals);
	const struct rpc_seal *seal = finish(&e, &rpc_record_seal);
	ck_assert_int_eq(seal->expected_files, RPC_EXPECTED_NONE);
	ck_assert_int_eq(seal->expected_rows, RPC_EXPECTED_NONE);
	ck_assert_int_eq(seal->expected_deleted, RPC_EXPECTED_NONE);
}
END_TEST

START_TEST(commit_once)
{
	struct fz_encode e;
	struct fz_property summary[] = {{"k", "v"}, {"k2", ""}};
	struct fz_fragment two[] = {fragment, {.fragment_id = "empty"}};
	struct uuid id = some_id();
	fz_encode_open(&e, &schemas, FZ_MSG_COMMIT_ONCE, MAX, &error);
	fz_encode_commit_once(&e, id, &begin_full, two, 2, 77, summary, 2);
	const struct rpc_commit_once *c = finish(&e, &rpc_record_commit_once);
	is_full_begin(&c->begin, id);
	ck_assert_uint_eq(c->n_fragments, 2);
	is_fragment(&c->fragments[0]);
	ck_assert_int_eq(c->max_wait_ms, 77);
	is_text(c->summary[1].key, "k2");
}
END_TEST

START_TEST(small_ones)
{
	struct fz_encode e;
	struct uuid id = some_id();
	struct fz_lease lease = {id, {(const uint8_t *)"tok", 3}};
	struct fz_ref refs[] = {{"x", 1, {{1}}}, {"y", 0, {{2}}}};
	struct fz_totals totals = {.files = 3, .rows = 4, .deleted = 5};
	fz_encode_open(&e, &schemas, FZ_MSG_SEAL, MAX, &error);
	fz_encode_seal(&e, &lease, refs, 2, &totals);
	const struct rpc_seal *s = finish(&e, &rpc_record_seal);
	ck_assert(s->n_fragments == 2 && s->fragments[0].attempt == 1 && s->expected_files == 3);
	ck_assert(s->fragments[1].digest.b[0] == 2 && s->expected_rows == 4 &&
		  s->expected_deleted == 5);
	buf_clear(&out);
	fz_encode_open(&e, &schemas, FZ_MSG_HEARTBEAT, MAX, &error);
	fz_encode_heartbeat(&e, &lease, 1);
	const struct rpc_heartbeat *h = finish(&e, &rpc_record_heartbeat);
	ck_assert(h->n_items == 1 && uuid_eq(h->items[0].txn_id, id));
	buf_clear(&out);
	fz_encode_open(&e, &schemas, FZ_MSG_ABORT, MAX, &error);
	fz_encode_abort(&e, &lease, NULL);
	const struct rpc_abort *a = finish(&e, &rpc_record_abort);
	ck_assert(a->reason.n == 0 && uuid_eq(a->txn_id, id));
	buf_clear(&out);
	fz_encode_open(&e, &schemas, FZ_MSG_COMMIT, MAX, &error);
	fz_encode_commit(&e, &lease, 5, NULL, 0);
	ck_assert_int_eq(((const struct rpc_commit *)finish(&e, &rpc_record_commit))->max_wait_ms,
			 5);
	buf_clear(&out);
	fz_encode_open(&e, &schemas, FZ_MSG_STATUS, MAX, &error);
	fz_encode_status(&e, id);
	ck_assert(uuid_eq(((const struct rpc_status *)finish(&e, &rpc_record_status))->txn_id, id));
}
END_TEST

static void refused(const struct fz_fragment *f, size_t max, const char *name, const char *field)
{
	struct fz_encode e;
	struct digest digest;
	struct fz_totals totals;
	struct fz_lease lease = {.token = {(const uint8_t *)"tok", 3}};
	fz_encode_open(&e, &schemas, FZ_MSG_STAGE, max, &error);
	fz_encode_stage(&e, &lease, f, &digest, &totals);
	ck_assert_int_eq(fz_encode_close(&e, &out), FZ_USAGE);
	ck_assert_str_eq(error.name, name);
	ck_assert_str_eq(error.field, field);
	ck_assert_int_eq(error.effect, FZ_EFFECT_CLEAN);
}

START_TEST(refusals)
{
	struct fz_data_file nameless = {.record_count = 1};
	struct fz_data_file not_utf8 = {.path = "\xff"};
	struct fz_data_file huge[] = {{.path = "a", .record_count = INT64_MAX},
				      {.path = "b", .record_count = 1}};
	struct fz_delete odd = {.data_file = "d", .provenance = (enum fz_provenance)3};
	struct fz_delete both = {.data_file = "d", .blob = "x", .blob_size = 1, .blob_path = "p"};
	struct fz_manifest no_path = {.path = ""};
	struct fz_delete_file unnamed = {.record_count = 1};
	struct fz_task_message foreign = {(enum fz_dialect)4, "{}", 2};
#define FRAGMENT(...) &(struct fz_fragment){.fragment_id = "f", __VA_ARGS__}
	refused(FRAGMENT(.data_files = &nameless, .n_data_files = 1), MAX, "ILLEGAL_ARGUMENT",
		"path");
	refused(FRAGMENT(.data_files = &not_utf8, .n_data_files = 1), MAX, "ILLEGAL_ARGUMENT",
		"path");
	refused(FRAGMENT(.data_files = huge, .n_data_files = 2), MAX, "ILLEGAL_ARGUMENT",
		"record_count");
	refused(FRAGMENT(.deletes = &odd, .n_deletes = 1), MAX, "ILLEGAL_ARGUMENT", "provenance");
	refused(FRAGMENT(.deletes = &both, .n_deletes = 1), MAX, "ILLEGAL_ARGUMENT", "blob");
	refused(FRAGMENT(.manifests = &no_path, .n_manifests = 1), MAX, "ILLEGAL_ARGUMENT",
		"path");
	refused(FRAGMENT(.delete_files = &unnamed, .n_delete_files = 1), MAX, "ILLEGAL_ARGUMENT",
		"path");
	refused(FRAGMENT(.messages = &foreign, .n_messages = 1), MAX, "ILLEGAL_ARGUMENT",
		"dialect");
	refused(&fragment, 200, "TOO_LARGE", "");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fz_encode");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, numbers);
	tcase_add_test(t, hello);
	tcase_add_test(t, begin);
	tcase_add_test(t, stage);
	tcase_add_test(t, task_messages);
	tcase_add_test(t, commit_once);
	tcase_add_test(t, small_ones);
	tcase_add_test(t, refusals);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
