/* Updates against the reference implementation: every case of tests/golden/metadata/cases.json must
 * give what Iceberg's own builder made of it (results.json), except where the case says why not. */
#include <malloc.h>

#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/metasnap.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/sort.h"
#include "proto/iceberg/update.h"
#include "tests/unit/golden.h"
#include "tests/unit/metadata_pieces.h"

#define FOLDER "tests/golden/metadata/"
#define NOW INT64_C(2000000000000)

static struct jdoc *read_json(const char *path)
{
	struct buf b;
	struct err err = {0};
	struct jdoc *doc = NULL;
	buf_init(&b, (size_t)16 << 20);
	golden_read(path, &b);
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, &err), &err);
	buf_fini(&b);
	return doc;
}

static struct metadata *read_metadata(const char *path)
{
	struct buf b;
	struct err err = {0};
	struct metadata *m = NULL;
	buf_init(&b, (size_t)16 << 20);
	golden_read(path, &b);
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err), &err);
	buf_fini(&b);
	return m;
}

static struct jdoc *to_json(const struct metadata *m)
{
	struct buf b;
	struct err err = {0};
	struct jdoc *doc = NULL;
	buf_init(&b, (size_t)16 << 20);
	metadata_json(m, &b);
	pieces_check(m, buf_bytes(&b));
	ck_assert(buf_ok(&b));
	ck_assert_uint_ge(metadata_json_size(m), b.n);
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, &err), &err);
	buf_fini(&b);
	return doc;
}

/* Equal values; members in any order. */
static bool same(const struct jval *x, const struct jval *y)
{
	struct strv s, t;
	int64_t i, k;
	double r, q;
	if (jval_kind(x) != jval_kind(y) || jval_count(x) != jval_count(y))
		return false;
	if (jval_is_array(x)) {
		for (size_t n = 0; n < jval_count(x); n++)
			if (!same(jval_at(x, n), jval_at(y, n)))
				return false;
		return true;
	}
	if (jval_is_object(x)) {
		for (struct jval_iter it = jval_iter(x); jval_next(&it);) {
			char key[200];
			if (!strv_cstr(it.key, key, sizeof key) || !jval_get(y, key) ||
			    !same(it.val, jval_get(y, key)))
				return false;
		}
		return true;
	}
	if (jval_as_str(x, &s))
		return jval_as_str(y, &t) && strv_eq(s, t);
	if (jval_as_i64(x, &i))
		return jval_as_i64(y, &k) && i == k;
	if (jval_as_real(x, &r))
		return jval_as_real(y, &q) && r <= q && r >= q;
	bool b, c;
	return !jval_as_bool(x, &b) || (jval_as_bool(y, &c) && b == c);
}

/* The members of the document itself stand in the reference implementation's order. */
static void check_same(const char *name, const struct metadata *m, const struct jval *want)
{
	struct jdoc *doc = to_json(m);
	struct jval_iter x = jval_iter(jdoc_root(doc)), y = jval_iter(want);
	while (jval_next(&y)) {
		ck_assert_msg(jval_next(&x), "%s: member is missing: %.*s", name, STRV_ARG(y.key));
		ck_assert_msg(strv_eq(x.key, y.key), "%s: member %.*s instead of %.*s", name,
			      STRV_ARG(x.key), STRV_ARG(y.key));
		ck_assert_msg(same(x.val, y.val), "%s: member %.*s differs", name, STRV_ARG(x.key));
	}
	ck_assert_msg(!jval_next(&x), "%s: member %.*s is too much", name, STRV_ARG(x.key));
	jdoc_free(doc);
}

/* What parse makes of our own text is the same again. */
static void check_round(const char *name, const struct metadata *m)
{
	struct buf b, again;
	struct metadata *copy = NULL;
	struct err err = {0};
	buf_init(&b, (size_t)16 << 20);
	buf_init(&again, (size_t)16 << 20);
	metadata_json(m, &b);
	pieces_check(m, buf_bytes(&b));
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &copy, &err), &err);
	metadata_json(copy, &again);
	ck_assert_msg(bytes_eq(buf_bytes(&b), buf_bytes(&again)), "%s: text changes", name);
	metadata_unref(copy);
	buf_fini(&b);
	buf_fini(&again);
}

struct outcome {
	enum status st;
	struct metadata *m;
	bool changed;
	struct err err;
};

static enum status create(const struct jval *c, struct arena *a, struct outcome *o)
{
	struct schema schema;
	struct partition_spec spec;
	struct sort_order order;
	const struct jval *v;
	struct metadata_create req = {.now_ms = NOW, .schema = &schema};
	memset(req.uuid.b, 7, 16);
	ck_assert(jval_as_str(jval_get(c, "location"), &req.location));
	enum status st = schema_parse(jval_get(c, "schema"), ST_BAD_REQUEST, a, &schema, &o->err);
	if (st == ST_OK && (v = jval_get(c, "partition-spec"))) {
		st = partition_parse(v, ST_BAD_REQUEST, a, &spec, &o->err);
		req.spec = &spec;
	}
	if (st == ST_OK && (v = jval_get(c, "write-order"))) {
		st = sort_parse(v, ST_BAD_REQUEST, a, &order, &o->err);
		req.order = &order;
	}
	if (st != ST_OK)
		return st;
	v = jval_get(c, "properties");
	struct strv_pair kv[10];
	for (struct jval_iter it = jval_iter(v); jval_next(&it);) {
		kv[req.n_properties].key = it.key;
		ck_assert(jval_as_str(it.val, &kv[req.n_properties++].value));
	}
	req.properties = kv;
	o->changed = true;
	return metadata_new(&req, &o->m, &o->err);
}

static struct outcome run(const struct jval *c)
{
	struct outcome o = {0};
	struct metadata *base = NULL;
	struct strv file;
	struct arena a;
	const struct update *u = NULL;
	size_t n = 0;
	struct metadata_ctx ctx = {.now_ms = NOW};
	memset(ctx.new_uuid.b, 7, 16);
	arena_init(&a, (size_t)16 << 20);
	if (jval_get(c, "create")) {
		o.st = create(jval_get(c, "create"), &a, &o);
		arena_fini(&a);
		return o;
	}
	if (jval_as_str(jval_get(c, "base"), &file)) {
		char path[300];
		snprintf(path, sizeof path, FOLDER "%.*s", STRV_ARG(file));
		base = read_metadata(path);
		ctx.base_location = STRV("s3://b/metadata/00007-x.metadata.json");
	}
	o.st = update_parse(jval_get(c, "updates"), &a, &u, &n, &o.err);
	if (o.st == ST_OK)
		o.st = metadata_apply(base, u, n, &ctx, &o.m, &o.changed, &o.err);
	arena_fini(&a);
	metadata_unref(base);
	return o;
}

static void one(const struct jval *c, const struct jval *want)
{
	struct strv name, text;
	char z[100];
	bool changed, java_changed = false;
	ck_assert(jval_as_str(jval_get(c, "name"), &name) && strv_cstr(name, z, sizeof z));
	ck_assert(jval_as_str(jval_get(want, "name"), &text) && strv_eq(name, text));
	struct outcome o = run(c);
	bool differs = jval_get(c, "differs") != NULL;
	bool java_ok = jval_as_bool(jval_get(want, "changed"), &java_changed);
	enum status st;
	if (jval_as_str(jval_get(c, "status"), &text)) {
		ck_assert(status_from_name(text, &st));
		ck_assert_msg(o.st == st, "%s: %s instead of %s: %s", z, status_info(o.st)->name,
			      status_info(st)->name, o.err.msg);
	} else if (differs) {
		/* We accept, and say whether that is a change. */
		ck_assert_msg(o.st == ST_OK, "%s: %s %s", z, o.err.field, o.err.msg);
		ck_assert(jval_as_bool(jval_get(c, "changed"), &changed));
		ck_assert_msg(o.changed == changed, "%s: changed", z);
	} else if (!java_ok) {
		ck_assert_msg(o.st == ST_VALIDATION || o.st == ST_BAD_REQUEST, "%s: %s", z,
			      status_info(o.st)->name);
	} else {
		ck_assert_msg(o.st == ST_OK, "%s: %s %s", z, o.err.field, o.err.msg);
		ck_assert_msg(o.changed == java_changed, "%s: changed", z);
		check_same(z, o.m, jval_get(want, "result"));
	}
	if (jval_as_str(jval_get(c, "message"), &text))
		ck_assert_msg(memmem(o.err.msg, strlen(o.err.msg), text.p, text.n) != NULL,
			      "%s: %s", z, o.err.msg);
	if (o.st != ST_OK) {
		ck_assert_msg(strv_starts(strv_of(o.err.field), STRV("updates")) ||
				      strv_ends(strv_of(o.err.field), STRV("-log")) ||
				      strv_eq(strv_of(o.err.field), STRV("location")) || !java_ok ||
				      jval_get(c, "create"),
			      "%s: field %s", z, o.err.field);
		ck_assert_ptr_null(o.m);
	} else {
		check_round(z, o.m);
	}
	metadata_unref(o.m);
}

START_TEST(cases)
{
	struct jdoc *c = read_json(FOLDER "cases.json"), *r = read_json(FOLDER "results.json");
	size_t n = jval_count(jdoc_root(c));
	ck_assert_uint_gt(n, 140);
	ck_assert_uint_eq(jval_count(jdoc_root(r)), n);
	for (size_t i = 0; i < n; i++)
		one(jval_at(jdoc_root(c), i), jval_at(jdoc_root(r), i));
	jdoc_free(c);
	jdoc_free(r);
}
END_TEST

/* ---- long histories against a plain model ---- */

#define IDS 700

struct model {
	int64_t ids[IDS]; /* in list order */
	size_t n;
	int64_t main, branch; /* SNAPSHOT_NONE: no such ref */
	int64_t last_seq, next_row;
};

static uint64_t rnd(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static size_t model_find(const struct model *k, int64_t id)
{
	size_t i = 0;
	while (i < k->n && k->ids[i] != id)
		i++;
	return i;
}

static void check_model(const struct model *k, const struct metadata *m)
{
	const struct snapshot_ref *b = metadata_ref_by_name(m, STRV("b"));
	ck_assert_uint_eq(metadata_snapshot_count(m), k->n);
	for (size_t i = 0; i < k->n; i++) {
		const struct snapshot *s = metadata_snapshot_at(m, i);
		ck_assert_int_eq(s->snapshot_id, k->ids[i]);
		if (i % 37 == 0)
			ck_assert_ptr_eq(metadata_snapshot(m, k->ids[i]), s);
	}
	ck_assert_int_eq(metadata_current_snapshot_id(m), k->main);
	ck_assert_int_eq(b ? b->snapshot_id : SNAPSHOT_NONE, k->branch);
	ck_assert_int_eq(metadata_last_sequence_number(m), k->last_seq);
	ck_assert_int_eq(metadata_next_row_id(m), k->next_row);
}

/* One random request; the model takes it over only when the table does. */
static struct metadata *step(struct metadata *m, struct model *k, uint64_t *seed, int64_t id)
{
	struct update u[4];
	struct snapshot s = {.snapshot_id = id,
			     .parent_id = k->main,
			     .sequence_number = k->last_seq + 1,
			     .timestamp_ms = NOW + id,
			     .schema_id = 1,
			     .first_row_id = k->next_row,
			     .added_rows = (int64_t)(rnd(seed) % 10),
			     .manifest_list = STRV("l\"ist"),
			     .operation = STRV("append"),
			     .summary = (struct strv_pair[]){{STRV("k\n"), STRV("")}},
			     .n_summary = 1};
	struct metadata_ctx ctx = {.now_ms = NOW + id, .base_location = STRV("s3://b/1-x")};
	struct model next = *k;
	int64_t gone[40];
	size_t n = 0, n_gone = 0;
	struct err err = {0};
	struct metadata *out = NULL;
	bool changed;
	if (rnd(seed) % 8 < 6 && k->n < IDS) {
		u[n++] = (struct update){.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s};
		next.ids[next.n++] = id;
		next.last_seq++;
		next.next_row += s.added_rows;
		if (rnd(seed) % 4) {
			u[n++] = (struct update){
				.kind = UPDATE_SET_SNAPSHOT_REF,
				.u.ref = {.name = SNAPSHOT_REF_MAIN, .snapshot_id = id}};
			next.main = id;
		}
	}
	if (k->n > 0 && rnd(seed) % 5 == 0) {
		next.branch = k->ids[rnd(seed) % k->n];
		u[n++] = (struct update){.kind = UPDATE_SET_SNAPSHOT_REF,
					 .u.ref = {.name = STRV("b"), .snapshot_id = next.branch}};
	}
	if (k->n > 0 && rnd(seed) % 50 == 0) {
		for (size_t want = rnd(seed) % ARRAY_SIZE(gone); n_gone < want; n_gone++) {
			gone[n_gone] = k->ids[rnd(seed) % k->n];
			size_t at = model_find(&next, gone[n_gone]);
			if (at < next.n)
				memmove(next.ids + at, next.ids + at + 1,
					(--next.n - at) * sizeof *next.ids);
		}
		u[n++] = (struct update){.kind = UPDATE_REMOVE_SNAPSHOTS,
					 .u.snapshot_ids = {gone, n_gone}};
	}
	bool legal = (next.main == SNAPSHOT_NONE || model_find(&next, next.main) < next.n) &&
		     (next.branch == SNAPSHOT_NONE || model_find(&next, next.branch) < next.n);
	enum status st = metadata_apply(m, u, n, &ctx, &out, &changed, &err);
	ck_assert_msg(st == (legal ? ST_OK : ST_COMMIT_FAILED), "%s %s", err.field, err.msg);
	if (st != ST_OK)
		return m;
	ck_assert_int_ge(metadata_last_updated_ms(out), metadata_last_updated_ms(m));
	metadata_unref(m);
	*k = next;
	return out;
}

/* What a version says that it takes is what the heap gives for it, about. */
static void check_memory(const struct metadata *m)
{
#ifndef __SANITIZE_ADDRESS__
	struct buf b;
	struct metadata *copy = NULL;
	struct err err = {0};
	buf_init(&b, (size_t)16 << 20);
	metadata_json(m, &b);
	struct mallinfo2 i = mallinfo2();
	size_t before = i.uordblks + i.hblkhd;
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &copy, &err), &err);
	i = mallinfo2();
	size_t took = i.uordblks + i.hblkhd - before, said = metadata_memory(copy);
	ck_assert_uint_gt(said, took * 3 / 4);
	ck_assert_uint_lt(said, took * 5 / 4);
	metadata_unref(copy);
	buf_fini(&b);
#else
	(void)m;
#endif
}

START_TEST(histories)
{
	uint64_t seed = 7;
	struct model k = {.main = SNAPSHOT_NONE, .branch = SNAPSHOT_NONE};
	struct metadata *m = read_metadata(FOLDER "empty-v3.json");
	for (int64_t id = 1; id <= 2500; id++) {
		m = step(m, &k, &seed, id);
		check_model(&k, m);
		if (id % 250 == 0)
			check_round("history", m);
	}
	ck_assert_uint_gt(k.n, METASNAP_CHUNK);
	check_memory(m);
	metadata_unref(m);
}
END_TEST

/* A failed or successful apply leaves its base as it was, and parts outlive it. */
START_TEST(immutable)
{
	struct metadata *base = read_metadata(FOLDER "base-v3.json"), *next = NULL, *bad = NULL;
	struct buf before, after;
	struct err err = {0};
	bool changed;
	struct snapshot s = {.snapshot_id = 9,
			     .parent_id = 4,
			     .sequence_number = 5,
			     .schema_id = 1,
			     .timestamp_ms = NOW,
			     .first_row_id = 100,
			     .operation = STRV("append"),
			     .manifest_list = STRV("x")};
	struct update u[] = {
		{.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s},
		{.kind = UPDATE_SET_SNAPSHOT_REF,
		 .u.ref = {.name = SNAPSHOT_REF_MAIN, .snapshot_id = 9}},
		{.kind = UPDATE_SET_CURRENT_SCHEMA, .u.id = 77},
	};
	struct metadata_ctx ctx = {.now_ms = NOW, .base_location = STRV("s3://b/1-x")};
	buf_init(&before, (size_t)1 << 20);
	buf_init(&after, (size_t)1 << 20);
	metadata_json(base, &before);
	UNIT_STATUS(metadata_apply(base, u, 3, &ctx, &bad, &changed, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "updates[2].schema-id");
	ck_assert_ptr_null(bad);
	UNIT_OK(metadata_apply(base, u, 2, &ctx, &next, &changed, &err), &err);
	metadata_json(base, &after);
	ck_assert(bytes_eq(buf_bytes(&before), buf_bytes(&after)));
	ck_assert_ptr_eq(metadata_schema(base), metadata_schema(next));
	ck_assert_ptr_eq(metadata_snapshot(base, 1), metadata_snapshot(next, 1));
	metadata_unref(base);
	check_round("immutable", next);
	metadata_unref(next);
	buf_fini(&before);
	buf_fini(&after);
}
END_TEST

/* What clock and logs of the base say outranks a clock that runs behind. */
START_TEST(clocks)
{
	struct metadata *base = read_metadata(FOLDER "base-v3.json"), *m = NULL;
	struct err err = {0};
	bool changed;
	size_t n;
	struct update u = {.kind = UPDATE_SET_SNAPSHOT_REF,
			   .u.ref = {.name = SNAPSHOT_REF_MAIN, .snapshot_id = 2}};
	struct metadata_ctx ctx = {.now_ms = 5, .base_location = STRV("s3://b/1-x")};
	UNIT_OK(metadata_apply(base, &u, 1, &ctx, &m, &changed, &err), &err);
	ck_assert_int_eq(metadata_last_updated_ms(m), INT64_C(1700000000004));
	const struct metadata_snapshot_log_entry *log = metadata_snapshot_log(m, &n);
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(log[4].snapshot_id, 2);
	ck_assert_int_eq(log[4].timestamp_ms, INT64_C(1700000000004));
	metadata_unref(base);
	metadata_unref(m);
}
END_TEST

/* The deepest schema that a request can carry is written to a document that can be read. */
START_TEST(deep_schemas)
{
	int taken = 0;
	for (int levels = 1; levels < 40; levels++) {
		struct buf b;
		struct outcome o = {0};
		struct jdoc *doc = NULL;
		struct arena a;
		buf_init(&b, 100000);
		buf_puts(&b,
			 "{\"location\":\"s3://b\",\"schema\":{\"type\":\"struct\",\"fields\":[");
		for (int i = 1; i < levels; i++)
			buf_printf(&b,
				   "{\"id\":%d,\"name\":\"f\",\"required\":false,\"type\":"
				   "{\"type\":\"struct\",\"fields\":[",
				   i);
		buf_printf(&b, "{\"id\":%d,\"name\":\"f\",\"required\":false,\"type\":\"int\"}",
			   levels);
		for (int i = 1; i < levels; i++)
			buf_puts(&b, "]}}");
		buf_puts(&b, "]}}");
		o.st = jdoc_parse(buf_bytes(&b), ST_BAD_REQUEST, &doc, &o.err);
		arena_init(&a, (size_t)1 << 20);
		if (o.st == ST_OK)
			o.st = create(jdoc_root(doc), &a, &o);
		if (o.st == ST_OK) {
			check_round("deep", o.m);
			taken = levels;
		} else {
			ck_assert_int_eq(o.st, ST_BAD_REQUEST);
		}
		metadata_unref(o.m);
		jdoc_free(doc);
		arena_fini(&a);
		buf_fini(&b);
	}
	ck_assert_int_gt(taken, 15);
	ck_assert_int_lt(taken, 39);
}
END_TEST

/* A version 1 snapshot that lists its manifests inline has no place in version 2. */
START_TEST(inline_manifests)
{
	static const char text[] =
		"{\"format-version\":1,\"location\":\"s3://"
		"b\",\"last-updated-ms\":1,\"last-column-id\":1,"
		"\"schema\":{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":"
		"true,"
		"\"type\":\"int\"}]},\"partition-spec\":[{\"name\":\"x\",\"transform\":"
		"\"identity\","
		"\"source-id\":1}],\"current-snapshot-id\":5,\"snapshots\":[{\"snapshot-id\":5,"
		"\"timestamp-ms\":1,\"manifests\":[\"a\",\"b\"]}]}";
	struct metadata *m = NULL, *next = NULL;
	struct err err = {0};
	struct uuid id;
	bool changed;
	struct metadata_ctx ctx = {.now_ms = NOW, .base_location = STRV("s3://b/1-x")};
	struct update u = {.kind = UPDATE_UPGRADE_FORMAT_VERSION, .u.format_version = 2};
	UNIT_OK(metadata_parse(strv_bytes(strv_of(text)), ST_CORRUPT, &m, &err), &err);
	ck_assert(!metadata_uuid(m, &id));
	/* The field id that the document leaves out. */
	ck_assert_int_eq(metadata_spec(m)->fields[0].field_id, 1000);
	ck_assert_int_eq(metadata_last_partition_id(m), 1000);
	check_round("inline", m);
	UNIT_STATUS(metadata_apply(m, &u, 1, &ctx, &next, &changed, &err), ST_VALIDATION);
	ck_assert_str_eq(err.field, "updates[0].format-version");
	metadata_unref(m);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("metadata_apply");
	TCase *t = tcase_create("metadata_apply");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, cases);
	tcase_add_test(t, histories);
	tcase_add_test(t, immutable);
	tcase_add_test(t, clocks);
	tcase_add_test(t, deep_schemas);
	tcase_add_test(t, inline_manifests);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
