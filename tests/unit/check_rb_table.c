/* Bodies of the table routes: requests in the form that Java's, DuckDB's and Trino's clients send
 * them, and answers. */
#include "proto/rest/rb_table.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"
#include "tests/unit/unit.h"

#define SCHEMA                                                                                     \
	"{\"type\":\"struct\",\"schema-id\":0,\"fields\":[{\"id\":0,\"name\":\"id\",\"type\":"     \
	"\"long\",\"required\":true},{\"id\":1,\"name\":\"ts\",\"type\":\"timestamptz\","          \
	"\"required\":false}]}"

static struct arena arena;
static struct err err;
static struct buf out;

static void setup(void)
{
	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 16);
	err = (struct err){0};
}
static void teardown(void)
{
	arena_fini(&arena);
	buf_fini(&out);
}

static struct bytes text(const char *z)
{
	return (struct bytes){(const uint8_t *)z, strlen(z)};
}

START_TEST(create)
{
	struct rb_table_create r;
	/* Spark: ids from 0 and explicit nulls. */
	UNIT_OK(rb_table_create_parse(
			text("{\"name\":\"t\",\"location\":null,\"schema\":" SCHEMA
			     ",\"partition-spec\":{\"spec-id\":0,\"fields\":[{\"name\":\"ts_day\","
			     "\"transform\":\"day\",\"source-id\":1,\"field-id\":1000}]},"
			     "\"write-order\":null,\"properties\":{\"owner\":\"root\"},"
			     "\"stage-create\":false}"),
			&arena, &r, &err),
		&err);
	ck_assert(strv_eq(r.name, STRV("t")));
	ck_assert_ptr_null(r.location.p);
	ck_assert_uint_eq(r.schema->n, 2);
	ck_assert_uint_eq(r.spec->n, 1);
	ck_assert_ptr_null(r.order);
	ck_assert_uint_eq(r.n_properties, 1);
	ck_assert(!r.stage);
	jdoc_free(r.doc);
	UNIT_OK(rb_table_create_parse(
			text("{\"name\":\"t\",\"location\":\"file:///w/t\",\"schema\":" SCHEMA
			     ",\"write-order\":{\"order-id\":1,\"fields\":[{\"transform\":"
			     "\"identity\",\"source-id\":0,\"direction\":\"asc\",\"null-order\":"
			     "\"nulls-first\"}]},\"stage-create\":true}"),
			&arena, &r, &err),
		&err);
	ck_assert(strv_eq(r.location, STRV("file:///w/t")));
	ck_assert_ptr_null(r.spec);
	ck_assert_uint_eq(r.order->n, 1);
	ck_assert(r.stage);
	jdoc_free(r.doc);
}
END_TEST

START_TEST(create_refused)
{
	static const struct {
		const char *body, *field;
	} bad[] = {
		{"{}", "name"},
		{"{\"name\":\"t\"}", "schema"},
		{"{\"name\":1,\"schema\":" SCHEMA "}", "name"},
		{"{\"name\":\"\",\"schema\":" SCHEMA "}", "name"},
		{"{\"name\":\"t\",\"location\":\"\",\"schema\":" SCHEMA "}", "location"},
		{"{\"name\":\"t\",\"location\":7,\"schema\":" SCHEMA "}", "location"},
		{"{\"name\":\"t\",\"stage-create\":\"yes\",\"schema\":" SCHEMA "}", "stage-create"},
		{"{\"name\":\"t\",\"properties\":{\"a\":null},\"schema\":" SCHEMA "}",
		 "properties"},
		{"{\"name\":\"t\",\"partition-spec\":{},\"schema\":" SCHEMA "}",
		 "partition-spec.fields"},
		{"{\"name\":\"t\",\"write-order\":{\"fields\":[{}]},\"schema\":" SCHEMA "}", NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rb_table_create r;
		err = (struct err){0};
		UNIT_STATUS(rb_table_create_parse(text(bad[i].body), &arena, &r, &err),
			    ST_BAD_REQUEST);
		if (bad[i].field)
			ck_assert_str_eq(err.field, bad[i].field);
		else
			ck_assert(strv_starts(strv_of(err.field), STRV("write-order")));
	}
}
END_TEST

START_TEST(registering)
{
	struct rb_table_register r;
	UNIT_OK(rb_table_register_parse(text("{\"name\":\"t\",\"metadata-location\":"
					     "\"file:///w/m.json\"}"),
					&r, &err),
		&err);
	ck_assert(!r.overwrite);
	ck_assert(strv_eq(r.metadata_location, STRV("file:///w/m.json")));
	jdoc_free(r.doc);
	UNIT_OK(rb_table_register_parse(text("{\"name\":\"t\",\"metadata-location\":\"x\","
					     "\"overwrite\":true}"),
					&r, &err),
		&err);
	ck_assert(r.overwrite);
	jdoc_free(r.doc);
	UNIT_STATUS(rb_table_register_parse(text("{\"name\":\"t\"}"), &r, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "metadata-location");
	UNIT_STATUS(rb_table_register_parse(text("{\"name\":\"t\",\"metadata-location\":\"\"}"), &r,
					    &err),
		    ST_BAD_REQUEST);
}
END_TEST

START_TEST(renaming)
{
	struct rb_rename r;
	/* The specification's example. */
	UNIT_OK(rb_rename_parse(
			text("{\"source\":{\"namespace\":[\"accounting\",\"tax\"],\"name\":"
			     "\"paid\"},\"destination\":{\"namespace\":[\"accounting\",\"tax\"],"
			     "\"name\":\"owed\"}}"),
			&arena, &r, &err),
		&err);
	ck_assert(strv_eq(r.source.name, STRV("paid")));
	ck_assert(strv_eq(r.destination.name, STRV("owed")));
	jdoc_free(r.doc);
	UNIT_STATUS(rb_rename_parse(text("{\"source\":{\"namespace\":[\"a\"],\"name\":\"b\"}}"),
				    &arena, &r, &err),
		    ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "destination");
}
END_TEST

START_TEST(reports)
{
	UNIT_OK(rb_report_check(text("{\"report-type\":\"scan-report\",\"table-name\":\"a.b\"}"),
				&err),
		&err);
	UNIT_OK(rb_report_check(text("{\"report-type\":\"of-2031\"}"), &err), &err);
	UNIT_STATUS(rb_report_check(text("{}"), &err), ST_BAD_REQUEST);
	UNIT_STATUS(rb_report_check(text("not json"), &err), ST_BAD_REQUEST);
}
END_TEST

START_TEST(list)
{
	const struct strv levels[] = {STRV("accounting"), STRV("tax")};
	const struct strv names[] = {STRV("owed"), STRV("paid")};
	rb_table_list_write(&out, levels, 2, names, 2, false, 1);
	ck_assert(strv_eq(buf_strv(&out),
			  STRV("{\"identifiers\":[{\"namespace\":[\"accounting\",\"tax\"],\"name\":"
			       "\"owed\"},{\"namespace\":[\"accounting\",\"tax\"],\"name\":"
			       "\"paid\"}],\"next-page-token\":null}")));
}
END_TEST

START_TEST(load)
{
	struct rb_table_create r;
	struct metadata *m = NULL;
	struct jdoc *doc = NULL;
	struct strv s;
	int64_t v = 0;
	UNIT_OK(rb_table_create_parse(text("{\"name\":\"t\",\"schema\":" SCHEMA "}"), &arena, &r,
				      &err),
		&err);
	const struct metadata_create c = {.uuid = {{1}},
					  .now_ms = 1700000000000,
					  .location = STRV("file:///w/t"),
					  .schema = r.schema};
	UNIT_OK(metadata_new(&c, &m, &err), &err);
	rb_table_load_write(&out, STRV("file:///w/t/metadata/0 \"q\".json"), m, false);
	UNIT_OK(jdoc_parse(buf_bytes(&out), ST_CORRUPT, &doc, &err), &err);
	const struct jval *root = jdoc_root(doc);
	UNIT_OK(jval_need_str(root, "metadata-location", ST_CORRUPT, &s, &err), &err);
	ck_assert(strv_eq(s, STRV("file:///w/t/metadata/0 \"q\".json")));
	UNIT_OK(jval_need_i64(jval_get(root, "metadata"), "last-column-id", ST_CORRUPT, &v, &err),
		&err);
	ck_assert_int_eq(v, 2); /* ids are assigned anew from 1 */
	ck_assert(jval_is_object(jval_get(root, "config")));
	jdoc_free(doc);
	buf_clear(&out);
	rb_table_load_write(&out, (struct strv){NULL, 0}, m, true);
	UNIT_OK(jdoc_parse(buf_bytes(&out), ST_CORRUPT, &doc, &err), &err);
	ck_assert_ptr_null(jval_get(jdoc_root(doc), "metadata-location"));
	jdoc_free(doc);
	metadata_unref(m);
	jdoc_free(r.doc);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rb_table");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, create);
	tcase_add_test(t, create_refused);
	tcase_add_test(t, registering);
	tcase_add_test(t, renaming);
	tcase_add_test(t, reports);
	tcase_add_test(t, list);
	tcase_add_test(t, load);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
