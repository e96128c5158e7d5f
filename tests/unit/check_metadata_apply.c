/* Updates against the reference implementation: every case of tests/golden/metadata/cases.json must
 * give what Iceberg's own builder made of it (results.json), except where the case says why not. */
#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/update.h"
#include "tests/unit/golden.h"

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
				      strv_eq(strv_of(o.err.field), STRV("location")) ||
				      java_ok == false,
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

static Suite *suite(void)
{
	Suite *s = suite_create("metadata_apply");
	TCase *t = tcase_create("metadata_apply");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, cases);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
