/* Parsing of updates: what each action carries and what is refused. What they do to a table is in
 * check_metadata_apply.c. */
#include "proto/base/json.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"
#include "proto/iceberg/update.h"
#include "tests/unit/unit.h"

struct parsed {
	struct jdoc *doc;
	struct arena a;
	const struct update *u;
	size_t n;
	struct err err;
	enum status st;
};

static struct parsed parse(const char *text)
{
	struct parsed p = {0};
	arena_init(&p.a, (size_t)32 << 20);
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(text)), ST_BAD_REQUEST, &p.doc, &p.err), &p.err);
	p.st = update_parse(jdoc_root(p.doc), &p.a, &p.u, &p.n, &p.err);
	return p;
}

static void done(struct parsed *p)
{
	arena_fini(&p->a);
	jdoc_free(p->doc);
}

/* One element of each kind, in the order of the enum. */
static const char every[] =
	"[{\"action\":\"assign-uuid\",\"uuid\":\"9C12d441-03fe-4693-9a96-a0705ddf69c1\"},"
	"{\"action\":\"upgrade-format-version\",\"format-version\":3},"
	"{\"action\":\"set-location\",\"location\":\"s3://b\"},"
	"{\"action\":\"set-properties\",\"updated\":{\"z\":\"0\"},\"updates\":{\"b\":\"1\",\"a\":"
	"\"2\"}},"
	"{\"action\":\"remove-properties\",\"removals\":[\"x\",\"y\"]},"
	"{\"action\":\"add-schema\",\"last-column-id\":9,\"schema\":{\"type\":\"struct\","
	"\"schema-id\":4,\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":true,\"type\":\"long\"}]"
	"}},"
	"{\"action\":\"set-current-schema\",\"schema-id\":-1},"
	"{\"action\":\"remove-schemas\",\"schema-ids\":[1,2]},"
	"{\"action\":\"add-spec\",\"spec\":{\"fields\":[{\"name\":\"x\",\"transform\":\"identity\","
	"\"source-id\":1}]}},"
	"{\"action\":\"set-default-spec\",\"spec-id\":7},"
	"{\"action\":\"remove-partition-specs\",\"spec-ids\":[3]},"
	"{\"action\":\"add-sort-order\",\"sort-order\":{\"order-id\":1,\"fields\":[{\"transform\":"
	"\"identity\",\"source-id\":1,\"direction\":\"desc\",\"null-order\":\"nulls-last\"}]}},"
	"{\"action\":\"set-default-sort-order\",\"sort-order-id\":1},"
	"{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":9007199254740993,"
	"\"parent-snapshot-id\":2,\"sequence-number\":3,\"timestamp-ms\":4,\"summary\":{"
	"\"operation\":"
	"\"append\",\"k\":\"v\"},\"manifest-list\":\"m\",\"schema-id\":5,\"first-row-id\":6,"
	"\"added-rows\":7,\"key-id\":\"q\",\"whatever\":1}},"
	"{\"action\":\"set-snapshot-ref\",\"ref-name\":\"r\",\"type\":\"BRANCH\",\"snapshot-id\":1,"
	"\"max-ref-age-ms\":2,\"max-snapshot-age-ms\":3,\"min-snapshots-to-keep\":4},"
	"{\"action\":\"remove-snapshot-ref\",\"ref-name\":\"r\"},"
	"{\"action\":\"remove-snapshots\",\"snapshot-ids\":[9007199254740993]},"
	"{\"action\":\"set-statistics\",\"snapshot-id\":99,\"statistics\":{\"statistics-path\":"
	"\"p\","
	"\"snapshot-id\":1,\"file-size-in-bytes\":2,\"file-footer-size-in-bytes\":3,\"blob-"
	"metadata\":"
	"[{\"type\":\"t\",\"snapshot-id\":1,\"sequence-number\":2,\"fields\":[3],\"properties\":"
	"{\"a\":\"b\"},\"x\":1}]}},"
	"{\"action\":\"remove-statistics\",\"snapshot-id\":8},"
	"{\"action\":\"set-partition-statistics\",\"partition-statistics\":{\"snapshot-id\":1,"
	"\"statistics-path\":\"p\",\"file-size-in-bytes\":2}},"
	"{\"action\":\"remove-partition-statistics\",\"snapshot-id\":8},"
	"{\"action\":\"add-encryption-key\",\"encryption-key\":{\"key-id\":\"k\","
	"\"encrypted-key-metadata\":\"AQID\",\"encrypted-by-id\":\"j\",\"properties\":{\"a\":\"b\"}"
	"}},"
	"{\"action\":\"remove-encryption-key\",\"key-id\":\"k\"}]";

START_TEST(each)
{
	struct parsed p = parse(every);
	const struct update *u = p.u;
	ck_assert_msg(p.st == ST_OK, "%s: %s", p.err.field, p.err.msg);
	ck_assert_uint_eq(p.n, UPDATE__COUNT);
	for (size_t i = 0; i < p.n; i++)
		ck_assert_uint_eq(u[i].kind, i);
	ck_assert_uint_eq(u[UPDATE_ASSIGN_UUID].u.uuid.b[0], 0x9c);
	ck_assert_int_eq(u[UPDATE_UPGRADE_FORMAT_VERSION].u.format_version, 3);
	ck_assert(strv_eq(u[UPDATE_SET_LOCATION].u.text, STRV("s3://b")));
	ck_assert_uint_eq(u[UPDATE_SET_PROPERTIES].u.properties.n, 2);
	ck_assert(strv_eq(u[UPDATE_SET_PROPERTIES].u.properties.v[0].value, STRV("1")));
	ck_assert(strv_eq(u[UPDATE_REMOVE_PROPERTIES].u.keys.v[1], STRV("y")));
	ck_assert_int_eq(u[UPDATE_ADD_SCHEMA].u.schema->highest_id, 1);
	ck_assert_int_eq(u[UPDATE_SET_CURRENT_SCHEMA].u.id, UPDATE_LAST_ADDED);
	ck_assert_int_eq(u[UPDATE_REMOVE_SCHEMAS].u.ids.v[1], 2);
	ck_assert_int_eq(u[UPDATE_ADD_SPEC].u.spec->fields[0].field_id, PARTITION_NO_ID);
	ck_assert_int_eq(u[UPDATE_SET_DEFAULT_SPEC].u.id, 7);
	ck_assert_int_eq(u[UPDATE_REMOVE_SPECS].u.ids.v[0], 3);
	ck_assert(u[UPDATE_ADD_SORT_ORDER].u.order->fields[0].descending);
	const struct snapshot *s = u[UPDATE_ADD_SNAPSHOT].u.snapshot;
	ck_assert_int_eq(s->snapshot_id, INT64_C(9007199254740993));
	ck_assert_int_eq(s->parent_id, 2);
	ck_assert_int_eq(s->sequence_number, 3);
	ck_assert_int_eq(s->timestamp_ms, 4);
	ck_assert_int_eq(s->schema_id, 5);
	ck_assert_int_eq(s->first_row_id, 6);
	ck_assert_int_eq(s->added_rows, 7);
	ck_assert_uint_eq(s->n_summary, 1);
	ck_assert(strv_eq(s->operation, STRV("append")) && strv_eq(s->key_id, STRV("q")));
	const struct snapshot_ref *r = &u[UPDATE_SET_SNAPSHOT_REF].u.ref;
	ck_assert(!r->tag && r->max_ref_age_ms == 2 && r->max_snapshot_age_ms == 3 &&
		  r->min_snapshots_to_keep == 4);
	ck_assert_int_eq(u[UPDATE_REMOVE_SNAPSHOTS].u.snapshot_ids.v[0], INT64_C(9007199254740993));
	/* The outer snapshot-id is deprecated: the inner one counts. */
	ck_assert_int_eq(u[UPDATE_SET_STATISTICS].u.stats.snapshot_id, 1);
	ck_assert(strv_eq(
		u[UPDATE_SET_STATISTICS].u.stats.json,
		STRV("{\"snapshot-id\":1,\"statistics-path\":\"p\",\"file-size-in-bytes\":2,"
		     "\"file-footer-size-in-bytes\":3,\"blob-metadata\":[{\"type\":\"t\","
		     "\"snapshot-id\":1,\"sequence-number\":2,\"fields\":[3],\"properties\":"
		     "{\"a\":\"b\"}}]}")));
	ck_assert_int_eq(u[UPDATE_REMOVE_PARTITION_STATISTICS].u.stats.snapshot_id, 8);
	ck_assert(strv_eq(u[UPDATE_ADD_ENCRYPTION_KEY].u.key.json,
			  STRV("{\"key-id\":\"k\",\"encrypted-key-metadata\":\"AQID\","
			       "\"encrypted-by-id\":\"j\",\"properties\":{\"a\":\"b\"}}")));
	ck_assert_str_eq(update_action(UPDATE_REMOVE_SPECS), "remove-partition-specs");
	done(&p);
}
END_TEST

#define SNAP(members)                                                                              \
	"[{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":1,\"timestamp-ms\":2,"        \
	"\"manifest-list\":\"m\"" members "}}]"
#define REF(members)                                                                               \
	"[{\"action\":\"set-snapshot-ref\",\"ref-name\":\"r\",\"snapshot-id\":1" members "}]"

static const struct {
	const char *json, *field;
} bad[] = {
	{"{}", "updates"},
	{"[null]", "updates[0].action"},
	{"[{\"action\":\"set-location\",\"location\":\"x\"},{\"action\":\"fly\"}]",
	 "updates[1].action"},
	{"[{\"action\":\"enable-row-lineage\"}]", "updates[0].action"},
	{"[{\"action\":\"add-view-version\"}]", "updates[0].action"},
	{"[{\"action\":\"assign-uuid\",\"uuid\":null}]", "updates[0].uuid"},
	{"[{\"action\":\"assign-uuid\",\"uuid\":\"9c12d441\"}]", "updates[0].uuid"},
	{"[{\"action\":\"upgrade-format-version\",\"format-version\":\"3\"}]",
	 "updates[0].format-version"},
	{"[{\"action\":\"set-location\"}]", "updates[0].location"},
	{"[{\"action\":\"set-properties\"}]", "updates[0].updates"},
	{"[{\"action\":\"set-properties\",\"updates\":{\"a\":1}}]", "updates[0].updates"},
	{"[{\"action\":\"set-properties\",\"updates\":{\"a\":null}}]", "updates[0].updates"},
	{"[{\"action\":\"remove-properties\",\"removals\":[1]}]", "updates[0].removals"},
	{"[{\"action\":\"remove-properties\"}]", "updates[0].removals"},
	{"[{\"action\":\"add-schema\"}]", "updates[0].schema"},
	{"[{\"action\":\"set-current-schema\",\"schema-id\":1.0}]", "updates[0].schema-id"},
	{"[{\"action\":\"remove-schemas\",\"schema-ids\":1}]", "updates[0].schema-ids"},
	{"[{\"action\":\"remove-schemas\",\"schema-ids\":[4294967296]}]", "updates[0].schema-ids"},
	{"[{\"action\":\"remove-snapshots\",\"snapshot-ids\":[\"1\"]}]", "updates[0].snapshot-ids"},
	{SNAP(",\"parent-snapshot-id\":null"), "updates[0].snapshot.parent-snapshot-id"},
	{SNAP(",\"summary\":{\"operation\":1}"), "updates[0].snapshot.summary"},
	{SNAP(",\"sequence-number\":-1"), "updates[0].snapshot.sequence-number"},
	{SNAP(",\"first-row-id\":0"), "updates[0].snapshot.added-rows"},
	{SNAP(",\"first-row-id\":0,\"added-rows\":-1"), "updates[0].snapshot.added-rows"},
	{SNAP(",\"first-row-id\":-1,\"added-rows\":1"), "updates[0].snapshot.first-row-id"},
	{"[{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":-1,\"timestamp-ms\":2,"
	 "\"manifest-list\":\"m\"}}]",
	 "updates[0].snapshot.snapshot-id"},
	{"[{\"action\":\"add-snapshot\",\"snapshot\":{\"snapshot-id\":1,\"timestamp-ms\":2,"
	 "\"manifests\":[\"m\"]}}]",
	 "updates[0].snapshot.manifest-list"},
	{REF(""), "updates[0].type"},
	{REF(",\"type\":\"twig\""), "updates[0].type"},
	{REF(",\"type\":\"branch\",\"max-ref-age-ms\":0"), "updates[0].max-ref-age-ms"},
	{REF(",\"type\":\"branch\",\"min-snapshots-to-keep\":2147483648"),
	 "updates[0].min-snapshots-to-keep"},
	{REF(",\"type\":\"tag\",\"min-snapshots-to-keep\":1"), "updates[0].min-snapshots-to-keep"},
	{REF(",\"type\":\"tag\",\"max-snapshot-age-ms\":1"), "updates[0].max-snapshot-age-ms"},
	{"[{\"action\":\"set-snapshot-ref\",\"ref-name\":\"main\",\"type\":\"tag\",\"snapshot-id\":"
	 "1}]",
	 "updates[0].type"},
	{"[{\"action\":\"set-snapshot-ref\",\"ref-name\":\"\",\"type\":\"tag\",\"snapshot-id\":1}]",
	 "updates[0].ref-name"},
	{"[{\"action\":\"set-statistics\",\"statistics\":{\"snapshot-id\":1}}]",
	 "updates[0].statistics.statistics-path"},
	{"[{\"action\":\"set-statistics\",\"statistics\":{\"snapshot-id\":1,\"statistics-path\":"
	 "\"p\","
	 "\"file-size-in-bytes\":2,\"file-footer-size-in-bytes\":3,\"blob-metadata\":[{\"type\":"
	 "\"t\","
	 "\"snapshot-id\":1,\"sequence-number\":2,\"fields\":[\"3\"]}]}}]",
	 "updates[0].statistics.blob-metadata[0].fields"},
	{"[{\"action\":\"remove-statistics\"}]", "updates[0].snapshot-id"},
	{"[{\"action\":\"add-encryption-key\",\"encryption-key\":{\"key-id\":\"k\","
	 "\"encrypted-key-metadata\":\"?\"}}]",
	 "updates[0].encryption-key.encrypted-key-metadata"},
};

START_TEST(refusals)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct parsed p = parse(bad[i].json);
		ck_assert_msg(p.st == ST_BAD_REQUEST, "%s: %s", bad[i].json,
			      status_info(p.st)->name);
		ck_assert_msg(strcmp(p.err.field, bad[i].field) == 0, "%s: %s", bad[i].json,
			      p.err.field);
		ck_assert_ptr_null(p.u);
		done(&p);
	}
	struct parsed p = parse("[{\"action\":\"fly\"}]");
	ck_assert_ptr_nonnull(strstr(p.err.msg, "fly"));
	done(&p);
}
END_TEST

/* Each that adds is compared with what is there; each that removes is not. */
START_TEST(many)
{
	static const char add[] = "{\"action\":\"set-snapshot-ref\",\"ref-name\":\"r\",\"type\":\"tag\","
				  "\"snapshot-id\":1}";
	static const char remove[] = "{\"action\":\"remove-snapshots\",\"snapshot-ids\":[1]}";
	for (int i = 0; i < 4; i++) {
		size_t n = i < 2 ? 2048 + (size_t)i : 32768 + (size_t)i - 2;
		struct buf b;
		buf_init(&b, (size_t)16 << 20);
		for (size_t k = 0; k < n; k++) {
			buf_puts(&b, k ? "," : "[");
			buf_puts(&b, i < 2 ? add : remove);
		}
		buf_puts(&b, "]");
		buf_putc(&b, 0);
		struct parsed p = parse((const char *)b.p);
		ck_assert_int_eq(p.st, i % 2 ? ST_LIMIT : ST_OK);
		done(&p);
		buf_fini(&b);
	}
}
END_TEST

/* A full arena is a typed error wherever it strikes. */
START_TEST(small_arena)
{
	struct err err = {0};
	struct jdoc *doc = NULL;
	UNIT_OK(jdoc_parse(strv_bytes(strv_of(every)), ST_BAD_REQUEST, &doc, &err), &err);
	for (size_t limit = 0; limit < 12000; limit += 97) {
		struct arena a;
		const struct update *u;
		size_t n;
		arena_init(&a, limit);
		enum status st = update_parse(jdoc_root(doc), &a, &u, &n, &err);
		ck_assert_msg(st == ST_OK || st == ST_LIMIT, "%zu: %s", limit, err.msg);
		arena_fini(&a);
	}
	jdoc_free(doc);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("update");
	TCase *t = tcase_create("update");
	tcase_add_test(t, each);
	tcase_add_test(t, refusals);
	tcase_add_test(t, many);
	tcase_add_test(t, small_arena);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
