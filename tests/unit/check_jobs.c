/* Job bodies on threads, as the daemon runs them: several at once over one shared plan and its
 * metadata, while the loop's thread reads and counts references of both. Each must make the same
 * bytes; ThreadSanitizer judges what they touch. */
#include <pthread.h>
#include <stdio.h>

#include "daemon/commit/decode.h"
#include "daemon/commit/encode.h"
#include "proto/dv/bitmap64.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/rpc.h"
#include "tests/unit/unit.h"

#define THREADS 4
#define FILES 8
#define ROWS 1000

static const char DOCUMENT[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1700000000004,"
	"\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":false,\"type\":\"long\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]}],"
	"\"last-partition-id\":999,\"default-sort-order-id\":0,"
	"\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{},\"next-row-id\":0,"
	"\"snapshots\":[],\"refs\":{}}";

static struct metadata *parsed(struct bytes document)
{
	struct metadata *m = NULL;
	struct err err = {0};
	UNIT_OK(metadata_parse(document, ST_CORRUPT, &m, &err), &err);
	return m;
}

/* ------------------------------------------------------------------ a table with a plan */

struct bench {
	struct cache *cache;
	struct reflog *log;
	struct metadata *base;
	int64_t last_id;
	char paths[FILES][64];
	struct content_file files[FILES];
	int32_t schemas[FILES];
	struct bitmap64 *gone[FILES];
	struct plan_delete deletes[FILES];
	struct plan_txn txns[FILES];
};

static struct reflog *log_of(void *ctx, struct strv ref, int64_t head)
{
	struct bench *b = ctx;
	if (!b->log)
		b->log = reflog_new(ref, head);
	return b->log;
}

static int64_t new_id(void *ctx)
{
	struct bench *b = ctx;
	return ++b->last_id;
}

static struct plan *planned(struct bench *b, size_t n)
{
	struct plan_in in = {.base = b->base,
			     .txns = b->txns,
			     .n_txns = n,
			     .log_of = log_of,
			     .new_snapshot_id = new_id,
			     .ctx = b,
			     .max_bytes = (size_t)64 << 20};
	struct needs needs = {0};
	struct plan *p = NULL;
	struct err err = {0};
	enum plan_answer answer = plan_run(&in, b->cache, &needs, &p, &err);
	ck_assert_msg(answer == PLAN_DONE, "answer %d: %s: %s", (int)answer, err.field, err.msg);
	needs_fini(&needs);
	return p;
}

static struct encode_in input(const struct plan *p, const char *path)
{
	return (struct encode_in){.plan = p,
				  .metadata_path = strv_of(path),
				  .base_location = STRV("file:///t/metadata/00000-a.metadata.json"),
				  .now_ms = INT64_C(1800000000000),
				  .commit_uuid = {{1, 2, 3}},
				  .max_bytes = (size_t)64 << 20};
}

/* One file a transaction, published: the cache holds what was written, as after a real batch. */
static void append(struct bench *b)
{
	for (size_t i = 0; i < FILES; i++) {
		snprintf(b->paths[i], sizeof b->paths[i], "file:///t/data/%zu.parquet", i);
		b->files[i] = content_file_empty();
		b->files[i].content = CONTENT_DATA;
		b->files[i].path = strv_of(b->paths[i]);
		b->files[i].format = STRV("PARQUET");
		b->files[i].record_count = ROWS;
		b->files[i].file_size = 4000;
		b->txns[i] = (struct plan_txn){.kind = RPC_KIND_APPEND,
					       .ref = STRV("main"),
					       .files = &b->files[i],
					       .schema_ids = &b->schemas[i],
					       .n_files = 1};
	}
	struct plan *p = planned(b, FILES);
	struct encode_in in = input(p, "file:///t/metadata/00001-a.metadata.json");
	struct encode_out *out = encode_out_new(in.max_bytes);
	encode_run(&in, out);
	UNIT_OK(out->err.st, &out->err);
	for (size_t i = 0; i < out->n_lists; i++)
		cache_put_list(b->cache, out->lists[i].path, out->lists[i].list);
	for (size_t i = 0; i < out->n_views; i++) {
		const struct encode_view *v = &out->views[i];
		cache_put_index(b->cache, v->path, v->first_row_id, v->seq, v->view);
		cache_put_view(b->cache, v->path, v->first_row_id, v->seq, v->view);
	}
	plan_published(p);
	metadata_unref(b->base);
	b->base = metadata_ref(out->metadata);
	encode_out_free(out);
	plan_free(p);
}

/* Each transaction deletes from one file; every other also appends one. */
static struct plan *delete(struct bench *b)
{
	for (size_t i = 0; i < FILES; i++) {
		struct err err = {0};
		b->gone[i] = bitmap64_new();
		for (uint64_t r = 0; r < 50; r++)
			UNIT_OK(bitmap64_add(b->gone[i], r * 7 + i, &err), &err);
		b->deletes[i] = (struct plan_delete){.data_file = strv_of(b->paths[i]),
						     .positions = b->gone[i],
						     .dead = true};
		b->txns[i] = (struct plan_txn){.kind = RPC_KIND_DELETE,
					       .ref = STRV("main"),
					       .has_read = true,
					       .read_snapshot = b->last_id,
					       .deletes = &b->deletes[i],
					       .n_deletes = 1};
	}
	return planned(b, FILES);
}

/* ------------------------------------------------------------------ threads */

struct job {
	pthread_t thread;
	struct encode_in in;
	struct encode_out *out;
};

static void *encode(void *arg)
{
	struct job *j = arg;
	encode_run(&j->in, j->out);
	return NULL;
}

START_TEST(encode_together)
{
	struct bench b = {.cache = cache_new((size_t)64 << 20),
			  .base = parsed((struct bytes){(const uint8_t *)DOCUMENT,
							sizeof DOCUMENT - 1})};
	append(&b);
	struct plan *p = delete(&b);
	struct job jobs[THREADS];
	for (size_t i = 0; i < THREADS; i++) {
		jobs[i].in = input(p, "file:///t/metadata/00002-a.metadata.json");
		jobs[i].out = encode_out_new(jobs[i].in.max_bytes);
		ck_assert_int_eq(pthread_create(&jobs[i].thread, NULL, encode, &jobs[i]), 0);
	}
	/* REST commits only write finished metadata, whose references the loop counts meanwhile. */
	struct job rest[2];
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		rest[i].in = input(NULL, "file:///t/metadata/00002-b.metadata.json");
		rest[i].in.metadata = b.base;
		rest[i].in.base = b.base;
		rest[i].out = encode_out_new(rest[i].in.max_bytes);
		ck_assert_int_eq(pthread_create(&rest[i].thread, NULL, encode, &rest[i]), 0);
	}
	/* What the loop does with the head meanwhile: loadTable's bytes, references, the next head. */
	for (int i = 0; i < 50; i++) {
		struct metadata *m = metadata_ref(b.base);
		struct buf text;
		buf_init(&text, 1 << 20);
		metadata_json(m, &text);
		buf_fini(&text);
		metadata_unref(m);
	}
	for (size_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(jobs[i].thread, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		ck_assert_int_eq(pthread_join(rest[i].thread, NULL), 0);
		UNIT_OK(rest[i].out->err.st, &rest[i].out->err);
		ck_assert_uint_eq(rest[i].out->n_objects, 1);
		encode_out_free(rest[i].out);
	}
	const struct encode_out *first = jobs[0].out;
	UNIT_OK(first->err.st, &first->err);
	/* One Puffin file, manifest of vectors, list and metadata at least. */
	ck_assert_uint_ge(first->n_objects, 4);
	ck_assert_uint_eq(first->n_snapshots, 1);
	for (size_t i = 1; i < THREADS; i++) {
		const struct encode_out *o = jobs[i].out;
		UNIT_OK(o->err.st, &o->err);
		ck_assert_uint_eq(o->n_objects, first->n_objects);
		for (size_t k = 0; k < o->n_objects; k++) {
			ck_assert(strv_eq(o->objects[k].path, first->objects[k].path));
			struct buf joined;
			buf_init(&joined, 1 << 20);
			pieces_join(&first->objects[k].content, &joined);
			ck_assert(pieces_are(&o->objects[k].content, buf_bytes(&joined)));
			buf_fini(&joined);
		}
	}
	for (size_t i = 0; i < THREADS; i++)
		encode_out_free(jobs[i].out);
	plan_free(p);
	for (size_t i = 0; i < FILES; i++)
		bitmap64_free(b.gone[i]);
	metadata_unref(b.base);
	reflog_free(b.log);
	cache_free(b.cache);
}
END_TEST

struct reading {
	pthread_t thread;
	struct read_result result;
};

static void *decode(void *arg)
{
	struct reading *r = arg;
	struct read_effect read = {.as = READ_METADATA,
				   .path = STRV("file:///t/metadata/00000-a.metadata.json"),
				   .length = -1};
	decode_run(&read, (struct bytes){(const uint8_t *)DOCUMENT, sizeof DOCUMENT - 1},
		   &r->result);
	return NULL;
}

/* Parsers keep nothing between calls. */
START_TEST(decode_together)
{
	struct reading r[THREADS] = {0};
	for (size_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&r[i].thread, NULL, decode, &r[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(r[i].thread, NULL), 0);
		UNIT_OK(r[i].result.err.st, &r[i].result.err);
		ck_assert_int_eq(metadata_format_version(r[i].result.own_metadata), 3);
		metadata_unref(r[i].result.own_metadata);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("jobs");
	TCase *t = tcase_create("jobs");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, encode_together);
	tcase_add_test(t, decode_together);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
