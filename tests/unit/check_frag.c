/* Fragments: what is taken from a message, what the stored form gives back, what a read snapshot
 * takes away, and packed seals. */
#include "daemon/commit/state.h"

#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/intake/check.h"
#include "tests/unit/frag_case.h"

START_TEST(decoding)
{
	struct frag *f = decoded();
	ck_assert(strv_eq(f->id, STRV("task-1")));
	ck_assert_int_eq(f->attempt, 3);
	ck_assert(digest_eq(&f->digest, &in.digest));
	ck_assert_uint_eq(f->n_files, 2);
	ck_assert_int_eq(f->rows, 20);
	ck_assert_int_eq(f->rows_updated, 4);
	ck_assert_uint_eq(f->n_deletes, 2);
	ck_assert_int_eq(f->positions, 6);
	positions_are(&f->deletes[0], "4-8");
	positions_are(&f->deletes[1], "7");
	/* Not stated beside new files: the rows were written again. */
	ck_assert(!f->deletes[0].dead && !f->deletes[1].dead);
	txn_is(RPC_KIND_DELETE);
	in.n_data_files = 0;
	vectors[1].provenance = RPC_PROVENANCE_MOVED;
	f = decoded();
	ck_assert(f->deletes[0].dead && !f->deletes[1].dead);
}
END_TEST

START_TEST(refusals)
{
	struct frag *f = NULL;
	struct err err = {0};
	in.digest.b[5] ^= 1;
	UNIT_STATUS(frag_decode(t->meta, &x, &in, &f, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "digest");
	txn_is(RPC_KIND_APPEND);
	refused(ST_BAD_REQUEST, "deletes");
	txn_is(RPC_KIND_DELETE);
	refused(ST_BAD_REQUEST, "data_files");
	txn_is(RPC_KIND_ROW_DELTA);
	in.fragment_id = STRV("");
	refused(ST_BAD_REQUEST, "fragment_id");
	char name[256];
	memset(name, 'n', sizeof name);
	in.fragment_id = (struct strv){name, 256};
	refused(ST_BAD_REQUEST, "fragment_id");
	in.fragment_id.n = 255;
	(void)decoded();
	in.n_data_files = in.n_deletes = 0;
	refused(ST_BAD_REQUEST, "");
	in.n_data_files = in.n_deletes = 2;
	files[1].path = files[0].path;
	refused(ST_DUPLICATE_PATH, "data_files.path");
	files[1].path = ct_path(t, "y");
	files[1].file_size = 0;
	refused(ST_BAD_REQUEST, "data_files[1].file_size");
	files[1].file_size = 100;
	vectors[1].data_file = vectors[0].data_file;
	refused(ST_BAD_REQUEST, "deletes.data_file");
	vectors[1].data_file = ct_path(t, "b");
	vectors[1].cardinality = 2;
	refused(ST_DV_CORRUPT, "deletes[1].cardinality");
	vectors[1].cardinality = -1;
	refused(ST_DV_CORRUPT, "deletes[1].cardinality");
	vectors[1].vector = blob("");
	vectors[1].cardinality = 0;
	refused(ST_BAD_REQUEST, "deletes[1].vector");
	vectors[1].vector = blob("7");
	vectors[1].cardinality = 1;
	((uint8_t *)(uintptr_t)vectors[1].vector.p)[vectors[1].vector.n - 1] ^= 1; /* the CRC */
	digest();
	UNIT_STATUS(frag_decode(t->meta, &x, &in, &f, &err), ST_DV_CORRUPT);
	ck_assert(strv_starts(strv_of(err.field), STRV("deletes[1].vector")));
}
END_TEST

/* A worker may send the rows that it saw deleted along with those that it deletes. */
START_TEST(subtracting)
{
	struct err err = {0};
	struct frag *f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	positions_are(&f->deletes[0], "6-8");
	positions_are(&f->deletes[1], "7");
	ck_assert_int_eq(f->positions, 6); /* as stated */
	/* Of the read snapshot, not of the head. */
	x.row.read_snapshot = 1001;
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	positions_are(&f->deletes[0], "4-8");
	vectors[1].data_file = ct_path(t, "nowhere");
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_FILE_GONE);
	ck_assert_str_eq(err.field, "deletes[1].data_file");
	vectors[1].data_file = ct_path(t, "b");
	vectors[1].vector = blob("100");
	err = (struct err){0};
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_POSITION_RANGE);
	vectors[1].vector = blob("99");
	x.row.read_snapshot = 4711;
	err = (struct err){0};
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_SNAPSHOT_TOO_OLD);
	/* Nothing to look up without deletions. */
	in.n_deletes = 0;
	err = (struct err){0};
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
}
END_TEST

/* A table of format version 2 and a fragment of delete files: one names, one does not. */
static struct rpc_delete_file *delete_files(int32_t kind)
{
	static struct rpc_delete_file d[2];
	static struct strv names[2];
	down();
	static struct core_table ct;
	t = &ct;
	ct_open(t, 2, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	(void)ct_append(t, CT_MAIN, "b", 100);
	ct_commit(t);
	ct_batch(t);
	table = (struct table){.meta = t->meta};
	x = (struct txn){.table = &table};
	arena_init(&x.arena, (size_t)1 << 20);
	list_init(&x.frags);
	txn_is(kind);
	x.format_version = 2;
	names[0] = ct_path(t, "b");
	names[1] = ct_path(t, "a");
	for (int i = 0; i < 2; i++)
		d[i] = (struct rpc_delete_file){.path = ct_path(t, i ? "q" : "p"),
						.format = STRV("PARQUET"),
						.record_count = 4,
						.file_size = 90};
	d[0].data_files = names;
	d[0].n_data_files = 2;
	in = (struct rpc_fragment){.fragment_id = STRV("task-1"),
				   .delete_files = d,
				   .n_delete_files = 2};
	return d;
}

START_TEST(files_of_deletes)
{
	struct err err = {0};
	struct rpc_delete_file *d = delete_files(RPC_KIND_DELETE);
	struct frag *f = decoded(), *again = NULL;
	ck_assert_uint_eq(f->n_delete_files, 2);
	ck_assert_int_eq(f->positions, 8);
	ck_assert(f->delete_files[0].told && !f->delete_files[1].told);
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	ck_assert_uint_eq(frag_n_objects(f), 2);
	ck_assert(strv_eq(frag_object(f, 1)->path, ct_path(t, "q")));
	/* Stored with what the read snapshot had. */
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = {.payload = f->payload};
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert_int_eq(again->positions, 8);
	ck_assert_uint_eq(again->n_delete_files, 2);
	for (int i = 0; i < 2; i++) {
		const struct plan_delete_file *g = &again->delete_files[i];
		ck_assert(g->told == !i && g->n_names == 2);
		ck_assert(strv_eq(g->file.path, d[i].path) && g->file.record_count == 4);
		ck_assert(!g->file.referenced_data_file.p);
		ck_assert(frag_among(g->names, 2, ct_path(t, "a")) &&
			  frag_among(g->names, 2, ct_path(t, "b")));
	}
	/* One name is the file's scope; one of a partition without names is not. */
	d[0].n_data_files = 1;
	f = decoded();
	ck_assert(strv_eq(f->delete_files[0].file.referenced_data_file, ct_path(t, "b")));
	ct_batch(t);
	struct plan_txn *one = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, one, ct_in(t, ct_data(t, "c", 10), 7));
	ct_commit(t);
	table.meta = t->meta;
	txn_is(RPC_KIND_DELETE);
	uint8_t seven[4] = {7};
	struct rpc_partition_value v = {
		.field_id = 1000, .has_value = true, .value = {seven, 4}};
	d[1].spec_id = 1;
	d[1].partition = &v;
	d[1].n_partition = 1;
	f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	ck_assert_uint_eq(f->delete_files[1].n_names, 1);
	ck_assert(frag_pack(&x, f));
	row.payload = f->payload;
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert(!again->delete_files[1].told && again->delete_files[1].n_names == 1);
	ck_assert(!again->delete_files[1].file.referenced_data_file.p);
}
END_TEST

/* Without names every data manifest of the spec is read, but not all are kept meanwhile. */
START_TEST(untold_in_a_small_cache)
{
	struct err err = {0};
	struct rpc_delete_file *d = delete_files(RPC_KIND_DELETE);
	char name[16];
	for (int i = 0; i < 20; i++) {
		ct_batch(t);
		snprintf(name, sizeof name, "n%d", i);
		(void)ct_append(t, CT_MAIN, name, 100);
		ct_commit(t);
	}
	ct_batch(t);
	table.meta = t->meta;
	txn_is(RPC_KIND_DELETE);
	d[0] = d[1];
	in.n_delete_files = 1;
	struct frag *f = decoded();
	cache_free(t->cache);
	t->cache = cache_new(10000);
	struct core c = {.cache = t->cache, .conf = {.request_max_bytes = (size_t)1 << 20}};
	struct needs needs = {0};
	size_t most = 0;
	enum cache_answer ans;
	while ((ans = frag_subtract(&c, &x, t->meta, f, &needs, &err)) == CACHE_WAIT) {
		ct_serve(t, &needs);
		most = cache_bytes(t->cache) > most ? cache_bytes(t->cache) : most;
	}
	ck_assert_int_eq(ans, CACHE_HAVE);
	ck_assert_uint_eq(f->delete_files[0].n_names, 22);
	ck_assert(frag_among(f->delete_files[0].names, 1, ct_path(t, "a")));
	ck_assert_msg(most < 120000, "%zu bytes", most);
	needs_fini(&needs);
}
END_TEST

START_TEST(files_of_deletes_refused)
{
	struct err err = {0};
	struct rpc_delete_file *d = delete_files(RPC_KIND_APPEND);
	refused(ST_BAD_REQUEST, "delete_files");
	txn_is(RPC_KIND_ROW_DELTA);
	x.format_version = 2;
	/* No vectors beside them, in this version. */
	in.deletes = vectors;
	in.n_deletes = 1;
	vectors[0].data_file = ct_path(t, "a");
	vectors[0].vector = blob("4-8");
	refused(ST_UNSUPPORTED, "deletes");
	in.n_deletes = 0;
	d[1].path = d[0].path;
	refused(ST_DUPLICATE_PATH, "data_files.path");
	d[1].path = ct_path(t, "q");
	struct strv twice[2] = {ct_path(t, "a"), ct_path(t, "a")};
	d[1].data_files = twice;
	d[1].n_data_files = 2;
	refused(ST_BAD_REQUEST, "delete_files[1].data_files");
	twice[1] = STRV("");
	refused(ST_BAD_REQUEST, "delete_files[1].data_files");
	d[1].n_data_files = 1;
	d[1].spec_id = 9;
	refused(ST_SPEC_UNKNOWN, "delete_files[1].spec_id");
	d[1].spec_id = 0;
	twice[0] = ct_path(t, "nowhere");
	struct frag *f = decoded();
	ck_assert_int_eq(subtract(f, &err), CACHE_FAIL);
	ck_assert_int_eq(err.st, ST_FILE_GONE);
	ck_assert_str_eq(err.field, "delete_files[1].data_files");
	/* The table has moved on; or it was so at Begin. */
	ct_upgrade(t);
	refused(ST_FORMAT_CHANGED, "delete_files");
	x.format_version = 3;
	refused(ST_UNSUPPORTED, "delete_files");
}
END_TEST

static struct fragment_row row_of(const struct frag *f)
{
	return (struct fragment_row){.fragment_id = f->id,
				     .attempt = f->attempt,
				     .digest = f->digest,
				     .payload = f->payload};
}

/* Two vectors of one fragment in one file that the worker wrote. */
START_TEST(ranges)
{
	struct rpc_blob_ref range[2] = {{ct_path(t, "w.puffin"), 4, 50},
					{ct_path(t, "w.puffin"), 54, 40}};
	struct err err = {0};
	for (int i = 0; i < 2; i++) {
		vectors[i].blob = &range[i];
		vectors[i].vector = (struct bytes){0};
	}
	struct frag *f = decoded(), *again = NULL;
	ck_assert_uint_eq(f->n_blobs, 2);
	ck_assert(f->blobs[1].at == 1 && f->blobs[1].offset == 54 && f->blobs[1].length == 40);
	ck_assert(!f->deletes[0].positions && !f->deletes[1].positions);
	ck_assert_int_eq(f->positions, 6);
	ck_assert_uint_eq(f->n_spent, 1);
	ck_assert(strv_eq(f->spent[0], ct_path(t, "w.puffin")));
	/* What the ranges are found to hold. */
	for (int i = 0; i < 2; i++)
		UNIT_OK(frag_positions(&x, bitmap64_clone(ct_set(t, i ? "7" : "4-8")),
				       f->blobs[i].cardinality, "blob", &f->deletes[i], &err),
			&err);
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	positions_are(&f->deletes[0], "6-8");
	ck_assert(frag_pack(&x, f));
	/* The row tells apart what two readings of one message have found. */
	ck_assert(digest_eq(&f->digest, &in.digest) && !digest_eq(&f->stored, &f->digest));
	struct frag *other = decoded();
	for (int i = 0; i < 2; i++)
		UNIT_OK(frag_positions(&x, bitmap64_clone(ct_set(t, i ? "9" : "4-8")),
				       f->blobs[i].cardinality, "blob", &other->deletes[i], &err),
			&err);
	ck_assert_int_eq(subtract(other, &err), CACHE_HAVE);
	ck_assert(frag_pack(&x, other));
	ck_assert(!digest_eq(&f->stored, &other->stored));
	/* From the row alone. */
	struct fragment_row row = row_of(f);
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	positions_are(&again->deletes[0], "6-8");
	positions_are(&again->deletes[1], "7");
	ck_assert_int_eq(again->positions, 6);
	ck_assert_uint_eq(again->n_spent, 1);
	ck_assert(strv_eq(again->spent[0], ct_path(t, "w.puffin")));
	ck_assert(digest_eq(&again->digest, &in.digest));
}
END_TEST

START_TEST(ranges_refused)
{
	struct rpc_blob_ref range = {ct_path(t, "w.puffin"), 4, 50};
	struct plan_delete d = {0};
	struct err err = {0};
	vectors[1].blob = &range;
	refused(ST_BAD_REQUEST, "deletes[1].blob"); /* bytes and a range */
	vectors[1].vector = (struct bytes){0};
	(void)decoded();
	range.offset = -1;
	refused(ST_BAD_REQUEST, "deletes[1].blob.offset");
	range.offset = 4;
	range.length = 0;
	refused(ST_BAD_REQUEST, "deletes[1].blob.length");
	range.length = INT64_MAX;
	refused(ST_BAD_REQUEST, "deletes[1].blob.length");
	range.length = (1 << 20) + 1; /* more than a transaction may hold */
	refused(ST_TOO_LARGE, "deletes[1].blob.length");
	range.length = 50;
	range.path = STRV("file:///elsewhere/w.puffin");
	refused(ST_PATH_OUTSIDE, "deletes[1].blob.path");
	range.path = ct_path(t, "../../w.puffin");
	refused(ST_PATH_OUTSIDE, "deletes[1].blob.path");
	range.path = STRV("");
	refused(ST_BAD_REQUEST, "deletes[1].blob.path");
	range.path = files[0].path;
	refused(ST_DUPLICATE_PATH, "deletes.blob.path");
	vectors[1].blob = NULL;
	refused(ST_DV_CORRUPT, "deletes[1].vector.length"); /* neither */
	/* What the range is found to hold. */
	UNIT_STATUS(frag_positions(&x, bitmap64_clone(ct_set(t, "1-3")), 4, "blob", &d, &err),
		    ST_DV_CORRUPT);
	ck_assert_str_eq(err.field, "cardinality");
	UNIT_STATUS(frag_positions(&x, bitmap64_new(), 0, "blob", &d, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "blob");
	ck_assert(!d.positions);
}
END_TEST

/* A manifest's files join those of the fragment, and stand in the row with them. */
START_TEST(manifests)
{
	struct rpc_manifest_ref ref = {ct_path(t, "m.avro"), 500, 2, 30};
	struct err err = {0};
	in.manifests = &ref;
	in.n_manifests = 1;
	ref.length = 0;
	refused(ST_BAD_REQUEST, "manifests[0].length");
	ref.length = INT64_MAX;
	refused(ST_TOO_LARGE, "manifests[0].length");
	ref.length = 500;
	ref.added_files = 0;
	refused(ST_BAD_REQUEST, "manifests[0].added_files");
	ref.added_files = 2;
	ref.added_rows = -1;
	refused(ST_BAD_REQUEST, "manifests[0].added_rows");
	ref.added_rows = 30;
	ref.path = STRV("file:///m.avro");
	refused(ST_PATH_OUTSIDE, "manifests[0].path");
	ref.path = ct_path(t, "m.avro");
	txn_is(RPC_KIND_DELETE);
	in.n_data_files = 0;
	refused(ST_BAD_REQUEST, "manifests");
	in.n_data_files = 2;
	txn_is(RPC_KIND_ROW_DELTA);
	struct frag *f = decoded(), *again = NULL;
	ck_assert(f->n_files == 2 && f->n_manifests == 1 && frag_n_objects(f) == 3);
	/* As read from it. */
	struct rpc_data_file records[2];
	struct content_file found[2];
	for (int i = 0; i < 2; i++) {
		records[i] = files[i];
		records[i].path = ct_path(t, i ? "n" : "m");
		records[i].has_row_ids = false;
		records[i].record_count = records[i].new_row_count = 15;
		records[i].updated_row_count = 0;
		UNIT_OK(check_data_file(t->meta, &records[i], &x.arena, &found[i], &err), &err);
	}
	struct adopted got = {
		.format_version = 3, .records = records, .files = found, .n = 2};
	f->manifests[0].got = &got;
	UNIT_OK(intake_join(&x, f, &err), &err);
	UNIT_OK(intake_join(&x, f, &err), &err); /* once */
	ck_assert(f->n_files == 4 && f->rows == 50 && frag_n_objects(f) == 5);
	ck_assert(f->adopted[0].first == 2 && f->adopted[0].n == 2);
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = row_of(f);
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert(again->n_files == 4 && again->rows == 50 && again->n_manifests == 1);
	ck_assert(strv_eq(again->files[3].path, ct_path(t, "n")));
	const struct plan_adopted *ad = again->adopted;
	ck_assert(ad->first == 2 && ad->n == 2 && ad->format_version == 3 && ad->length == 500);
	ck_assert(strv_eq(ad->path, ref.path));
	/* One of its files is the fragment's, too. */
	found[1].path = files[1].path;
	f = decoded();
	f->manifests[0].got = &got;
	UNIT_STATUS(intake_join(&x, f, &err), ST_DUPLICATE_PATH);
}
END_TEST

/* What is stored gives back what will be judged, whatever is stated in the message. */
START_TEST(stored)
{
	struct err err = {0};
	struct frag *f = decoded(), *again = NULL;
	ck_assert_int_eq(subtract(f, &err), CACHE_HAVE);
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = row_of(f);
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert(strv_eq(again->id, f->id));
	ck_assert_int_eq(again->attempt, 3);
	ck_assert(digest_eq(&again->digest, &in.digest));
	ck_assert(again->durable);
	ck_assert_int_eq(again->positions, 6);
	ck_assert_int_eq(again->rows, 20);
	ck_assert_int_eq(again->rows_updated, 4);
	ck_assert_uint_eq(again->n_files, 2);
	ck_assert(strv_eq(again->files[1].path, ct_path(t, "y")));
	ck_assert_uint_eq(again->n_deletes, 2);
	ck_assert(strv_eq(again->deletes[0].data_file, ct_path(t, "a")));
	positions_are(&again->deletes[0], "6-8");
	ck_assert(!again->deletes[0].dead);
	txn_is(RPC_KIND_DELETE);
	in.n_data_files = 0;
	vectors[1].provenance = RPC_PROVENANCE_MOVED;
	f = decoded();
	ck_assert(frag_pack(&x, f));
	row = row_of(f);
	UNIT_OK(frag_unpack(&x, &row, &again, &err), &err);
	ck_assert(again->deletes[0].dead && !again->deletes[1].dead);
}
END_TEST

START_TEST(stored_damaged)
{
	struct err err = {0};
	struct frag *f = decoded(), *again = NULL;
	ck_assert(frag_pack(&x, f));
	struct fragment_row row = row_of(f);
	for (size_t n = 0; n < f->payload.n; n++) {
		row.payload.n = n;
		ck_assert_int_ne(frag_unpack(&x, &row, &again, &err), ST_OK);
	}
	row = row_of(f);
	((uint8_t *)(uintptr_t)row.payload.p)[0]++;
	UNIT_STATUS(frag_unpack(&x, &row, &again, &err), ST_CORRUPT);
	ck_assert(!again);
}
END_TEST

START_TEST(finding)
{
	char name[24];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "task-%d", i / 2);
		in.fragment_id = strv_of(name);
		in.attempt = i % 2;
		frag_keep(&x, decoded());
	}
	ck_assert_uint_eq(x.n_frags, 100);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "task-%d", i / 2);
		struct frag *f = frag_find(&x, strv_of(name), i % 2);
		ck_assert(f && strv_eq(f->id, strv_of(name)) && f->attempt == i % 2);
	}
	ck_assert(!frag_find(&x, STRV("task-1"), 2));
	ck_assert(!frag_find(&x, STRV("task-50"), 0));
}
END_TEST

START_TEST(seals)
{
	struct frag *f[3];
	const char *names[3] = {"one", "two", "three"};
	struct err err = {0};
	for (int i = 0; i < 3; i++) {
		in.fragment_id = strv_of(names[i]);
		files[0].record_count = 10 + i;
		files[0].new_row_count = 8;
		f[i] = decoded();
		frag_keep(&x, f[i]);
	}
	struct frag *order[2] = {f[2], f[0]}, **w = NULL;
	size_t n = 0;
	struct bytes seal, refs;
	ck_assert(frag_pack_seal(&x.arena, order, 2, &seal));
	UNIT_OK(frag_winners(&x, seal, &w, &n, &err), &err);
	ck_assert_uint_eq(n, 2);
	ck_assert_ptr_eq(w[0], f[2]);
	ck_assert_ptr_eq(w[1], f[0]);
	struct digest d;
	ck_assert(frag_sealed(seal, STRV("one"), 3, &d) && digest_eq(&d, &f[0]->digest));
	ck_assert(!frag_sealed(seal, STRV("one"), 2, &d));
	ck_assert(!frag_sealed(seal, STRV("two"), 3, &d));
	struct rpc_fragment_ref r[2] = {
		{.fragment_id = STRV("three"), .attempt = 3, .digest = f[2]->digest},
		{.fragment_id = STRV("one"), .attempt = 3, .digest = f[0]->digest}};
	ck_assert(frag_pack_refs(&x.arena, r, 2, &refs));
	ck_assert(bytes_eq(refs, seal));
	/* Damage, other digests and fragments without rows. */
	for (size_t k = 0; k < seal.n; k++) {
		struct bytes cut = {seal.p, k};
		UNIT_STATUS(frag_winners(&x, cut, &w, &n, &err), ST_CORRUPT);
		(void)frag_sealed(cut, STRV("one"), 3, &d);
	}
	r[1].digest.b[0] ^= 1;
	ck_assert(frag_pack_refs(&x.arena, r, 2, &refs));
	UNIT_STATUS(frag_winners(&x, refs, &w, &n, &err), ST_CORRUPT);
	r[1] = r[0];
	r[1].fragment_id = STRV("four");
	ck_assert(frag_pack_refs(&x.arena, r, 2, &refs));
	UNIT_STATUS(frag_winners(&x, refs, &w, &n, &err), ST_CORRUPT);
	struct buf b;
	buf_init(&b, 65536);
	buf_put(&b, seal.p, seal.n);
	buf_putc(&b, 0);
	UNIT_STATUS(frag_winners(&x, buf_bytes(&b), &w, &n, &err), ST_CORRUPT);
	b.p[0]++;
	UNIT_STATUS(frag_winners(&x, buf_bytes(&b), &w, &n, &err), ST_CORRUPT);
	ck_assert(!frag_sealed(buf_bytes(&b), STRV("one"), 3, &d));
	buf_fini(&b);
	ck_assert_uint_eq(n, 2);
}
END_TEST

START_TEST(texts)
{
	struct strv v[4] = {STRV("b"), STRV("a"), STRV("c"), STRV("ab")};
	ck_assert_int_eq(frag_twice(v, 4), -1);
	ck_assert(frag_among(v, 4, STRV("ab")) && !frag_among(v, 4, STRV("d")));
	v[3] = STRV("a");
	ptrdiff_t at = frag_twice(v, 4);
	ck_assert(at > 0 && strv_eq(v[at], STRV("a")));
	ck_assert_int_eq(frag_twice(v, 0), -1);
	ck_assert(!frag_among(v, 0, STRV("a")));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("frag");
	TCase *c = tcase_create("frag");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, decoding);
	tcase_add_test(c, refusals);
	tcase_add_test(c, ranges);
	tcase_add_test(c, manifests);
	tcase_add_test(c, ranges_refused);
	tcase_add_test(c, subtracting);
	tcase_add_test(c, files_of_deletes);
	tcase_add_test(c, untold_in_a_small_cache);
	tcase_add_test(c, files_of_deletes_refused);
	tcase_add_test(c, stored);
	tcase_add_test(c, stored_damaged);
	tcase_add_test(c, finding);
	tcase_add_test(c, seals);
	tcase_add_test(c, texts);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
