#include "proto/iceberg/view.h"

#include "proto/iceberg/schema.h"

#include "tests/unit/unit.h"

#define SCHEMA0                                                                                    \
	"{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":"  \
	"true,\"type\":\"long\"}]}"
#define SQL(text, dialect)                                                                         \
	"{\"type\":\"sql\",\"sql\":\"" text "\",\"dialect\":\"" dialect "\"}"
#define VERSION(id, schema, representations)                                                       \
	"{\"version-id\":" #id ",\"timestamp-ms\":100" #id ",\"schema-id\":" #schema               \
	",\"summary\":{\"user\":\"u\"},\"default-catalog\":\"c\",\"default-namespace\":[\"a\","     \
	"\"b\"],\"representations\":[" representations "]}"
#define VIEW_OF(uuid, schemas, current, versions, log)                                             \
	"{\"view-uuid\":\"" uuid "\",\"format-version\":1,\"location\":\"s3://b/v\",\"properties\"" \
	":{\"k\":\"v\"},\"schemas\":[" schemas "],\"current-version-id\":" #current               \
	",\"versions\":[" versions "],\"version-log\":[" log "]}"
#define UUID "fa6506c3-7681-40c8-86dc-e36561f83385"
#define GOOD                                                                                       \
	VIEW_OF(UUID, SCHEMA0, 2,                                                                  \
		VERSION(1, 0, SQL("a", "spark")) "," VERSION(2, 0, SQL("b", "spark")),             \
		"{\"timestamp-ms\":1001,\"version-id\":1},{\"timestamp-ms\":1002,\"version-id\":2}")

static enum status try(const char *json, struct view **ret_v, struct err *err)
{
	return view_read(strv_bytes(strv_of(json)), false, ret_v, err);
}

static struct view *view(const char *json)
{
	struct err err = {0};
	struct view *v = NULL;
	UNIT_OK(try(json, &v, &err), &err);
	return v;
}

static void check_text(const struct view *v, const char *want)
{
	struct buf b;
	buf_init(&b, VIEW_MAX_BYTES);
	view_write(&b, v);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(want)), "%.*s\nwant %s", STRV_ARG(buf_strv(&b)),
		      want);
	buf_fini(&b);
}

/* The view spec's fields in the reference implementation's order: what is read is written. */
START_TEST(round_trip)
{
	struct view *v = view(GOOD);
	ck_assert_uint_eq(v->n_versions, 2);
	ck_assert(strv_eq(v->versions[1]->default_catalog, STRV("c")));
	ck_assert(strv_eq(v->versions[1]->dialects[0], STRV("spark")));
	ck_assert(strv_eq(view_property(v, "k"), STRV("v")) && !view_property(v, "none").p);
	check_text(v, GOOD);
	view_free(v);
	/* Members that are not known here stay, at the end of what holds them. */
	const char *more =
		"{\"view-uuid\":\"" UUID "\",\"format-version\":1,\"location\":\"l\",\"schemas\":[" SCHEMA0
		"],\"current-version-id\":1,\"versions\":[{\"version-id\":1,\"timestamp-ms\":5,"
		"\"schema-id\":0,\"summary\":{},\"default-namespace\":[],\"representations\":["
		"{\"type\":\"future\",\"x\":[1]}],\"y\":{\"z\":null}}],\"version-log\":[],"
		"\"of-tomorrow\":[true]}";
	v = view(more);
	ck_assert(!v->versions[0]->dialects[0].p);
	check_text(v, more);
	view_free(v);
}
END_TEST

START_TEST(refused)
{
	static const char *const bad[] = {
		"{",
		"[]",
		"{\"format-version\":1}",
		VIEW_OF("x", SCHEMA0, 1, VERSION(1, 0, SQL("a", "s")), ""),
		/* Cannot find current version 1234 in view versions. */
		VIEW_OF(UUID, SCHEMA0, 1234, VERSION(1, 0, SQL("a", "s")), ""),
		/* Cannot find schema with id 7. */
		VIEW_OF(UUID, SCHEMA0, 1, VERSION(1, 7, SQL("a", "s")), ""),
		VIEW_OF(UUID, SCHEMA0, 1, "", ""),
		VIEW_OF(UUID, "", 1, VERSION(1, 0, SQL("a", "s")), ""),
		VIEW_OF(UUID, SCHEMA0 "," SCHEMA0, 1, VERSION(1, 0, SQL("a", "s")), ""),
		VIEW_OF(UUID, SCHEMA0, 1,
			VERSION(1, 0, SQL("a", "s")) "," VERSION(1, 0, SQL("b", "s")), ""),
		/* One dialect twice, in any case. */
		VIEW_OF(UUID, SCHEMA0, 1, VERSION(1, 0, SQL("a", "s") "," SQL("b", "S")), ""),
		VIEW_OF(UUID, SCHEMA0, 1, VERSION(1, 0, "{\"type\":\"sql\",\"sql\":\"a\"}"), ""),
		VIEW_OF(UUID, SCHEMA0, 1, VERSION(1, 0, "7"), ""),
		VIEW_OF(UUID, SCHEMA0, 1, VERSION(1, 0, SQL("a", "s")), "{\"version-id\":1}"),
		VIEW_OF(UUID, "{\"type\":\"struct\",\"fields\":[]}", 1,
			VERSION(1, 0, SQL("a", "s")), ""),
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};
		struct view *v = NULL;
		enum status st = try(bad[i], &v, &err);
		ck_assert_msg(st == ST_CORRUPT, "%zu: %s", i, status_info(st)->name);
		ck_assert_ptr_null(v);
	}
	struct err err = {0};
	struct view *v = NULL;
	UNIT_STATUS(try("{\"format-version\":2,\"view-uuid\":\"" UUID "\"}", &v, &err),
		    ST_UNSUPPORTED);
	UNIT_STATUS(view_read(strv_bytes(STRV("{}")), true, &v, &err), ST_CORRUPT);
}
END_TEST

static enum status commit(const char *base, const char *requirements, const char *updates,
			  struct view **ret_v, bool *ret_changed, struct err *err)
{
	struct view *v = view(base);
	struct jdoc *r = NULL, *u = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(requirements)), ST_BAD_REQUEST, &r, err), err);
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(updates)), ST_BAD_REQUEST, &u, err), err);
	enum status st =
		view_commit(v, jdoc_root(r), jdoc_root(u), 5000, ret_v, ret_changed, err);
	jdoc_free(r);
	jdoc_free(u);
	view_free(v);
	return st;
}

#define ADD(version) "{\"action\":\"add-view-version\",\"view-version\":" version "}"
#define CURRENT(id) "{\"action\":\"set-current-view-version\",\"view-version-id\":" #id "}"

START_TEST(updates)
{
	struct err err = {0};
	struct view *v = NULL;
	bool changed = false;
	UNIT_OK(commit(GOOD, "[]", "[]", &v, &changed, &err), &err);
	ck_assert(!changed);
	check_text(v, GOOD);
	view_free(v);
	/* The version that is there already, by what it says; ids and times do not count. */
	UNIT_OK(commit(GOOD, "[]", "[" ADD(VERSION(9, 0, SQL("a", "spark"))) "," CURRENT(-1) "]", &v,
		       &changed, &err),
		&err);
	ck_assert(changed && v->n_versions == 2 && v->current_version_id == 1);
	/* An old version becomes current now; a new one at its own time. */
	ck_assert(v->n_log == 3 && v->log[2].version_id == 1 && v->log[2].timestamp_ms == 5000);
	view_free(v);
	UNIT_OK(commit(GOOD, "[{\"type\":\"assert-view-uuid\",\"uuid\":\"" UUID "\"}]",
		       "[" ADD(VERSION(9, 0, SQL("c", "Spark"))) "," CURRENT(3) "]", &v, &changed,
		       &err),
		&err);
	ck_assert(changed && v->n_versions == 3 && v->versions[2]->id == 3);
	ck_assert(v->log[2].version_id == 3 && v->log[2].timestamp_ms == 1009);
	view_free(v);
	/* What engines other than the writing one read must not go. */
	UNIT_STATUS(commit(GOOD, "[]", "[" ADD(VERSION(9, 0, SQL("c", "trino"))) "," CURRENT(3) "]",
			   &v, &changed, &err),
		    ST_BAD_REQUEST);
	UNIT_STATUS(commit(GOOD,
			   "[{\"type\":\"assert-view-uuid\","
			   "\"uuid\":\"00000000-0000-0000-0000-000000000000\"}]",
			   "[]", &v, &changed, &err),
		    ST_COMMIT_FAILED);
	UNIT_STATUS(commit(GOOD, "[]", "[" CURRENT(-1) "]", &v, &changed, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "updates[0].view-version-id");
}
END_TEST

/* Spec: version.history.num-entries bounds the versions; the log starts behind the last lost one. */
START_TEST(history)
{
	struct err err = {0};
	struct view *v = NULL;
	bool changed = false;
	UNIT_OK(commit(GOOD, "[]",
		       "[{\"action\":\"set-properties\",\"updates\":{\"version.history.num-entries\":"
		       "\"2\"}}," ADD(VERSION(9, 0, SQL("c", "spark"))) "," CURRENT(-1) "]",
		       &v, &changed, &err),
		&err);
	ck_assert_uint_eq(v->n_versions, 2);
	ck_assert(v->versions[0]->id == 2 && v->versions[1]->id == 3);
	ck_assert(v->n_log == 2 && v->log[0].version_id == 2 && v->log[1].version_id == 3);
	view_free(v);
	UNIT_STATUS(commit(GOOD, "[]",
			   "[{\"action\":\"set-properties\",\"updates\":"
			   "{\"version.history.num-entries\":\"many\"}}]",
			   &v, &changed, &err),
		    ST_ILLEGAL_ARGUMENT);
}
END_TEST

START_TEST(creation)
{
	struct err err = {0};
	struct jdoc *d = NULL;
	struct view *v = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(STRV("{\"s\":" SCHEMA0 ",\"v\":" VERSION(44, 77,
									   SQL("a", "t")) "}")),
			   ST_BAD_REQUEST, &d, &err),
		&err);
	const struct strv_pair kv[] = {{STRV("k"), STRV("v")}};
	struct view_create c = {.location = STRV("s3://b/v"),
				.schema = jval_get(jdoc_root(d), "s"),
				.version = jval_get(jdoc_root(d), "v"),
				.properties = kv,
				.n_properties = 1};
	ck_assert(uuid_parse(STRV(UUID), &c.uuid));
	UNIT_OK(view_create(&c, &v, &err), &err);
	jdoc_free(d);
	/* Whatever ids the request gave: version 1 with schema 0, in the log at its own time. */
	ck_assert(v->current_version_id == 1 && v->n_versions == 1 && v->n_schemas == 1);
	ck_assert(v->versions[0]->schema_id == 0 && v->versions[0]->timestamp_ms == 10044);
	ck_assert(v->n_log == 1 && v->log[0].version_id == 1 && v->log[0].timestamp_ms == 10044);
	view_free(v);
	c.location.n = 0;
	c.schema = NULL;
	UNIT_STATUS(view_create(&c, &v, &err), ST_BAD_REQUEST);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("view");
	TCase *t = tcase_create("view");
	tcase_add_test(t, round_trip);
	tcase_add_test(t, refused);
	tcase_add_test(t, updates);
	tcase_add_test(t, history);
	tcase_add_test(t, creation);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
