/* Reading and writing table metadata: Iceberg's own valid and invalid documents with the messages
 * of its reader, strictness, what is kept, lookups. Updates are in check_metadata_apply.c. */
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"
#include "tests/unit/golden.h"
#include "tests/unit/metadata_pieces.h"

#define GOLDEN "tests/golden/iceberg/table-metadata/TableMetadata"
#define BASE "tests/golden/metadata/base-v3.json"

static struct buf text_of(const char *path)
{
	struct buf b;
	buf_init(&b, (size_t)1 << 20);
	golden_read(path, &b);
	return b;
}

static struct metadata *load(const char *path)
{
	struct buf b = text_of(path);
	struct err err = {0};
	struct metadata *m = NULL;
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err), &err);
	buf_fini(&b);
	return m;
}

/* The document with the first `from` replaced. */
static struct buf edit(const char *path, const char *from, const char *to)
{
	struct buf b = text_of(path), out;
	const uint8_t *hit = memmem(b.p, b.n, from, strlen(from));
	ck_assert_msg(hit != NULL, "not in the document: %s", from);
	buf_init(&out, (size_t)1 << 20);
	buf_put(&out, b.p, (size_t)(hit - b.p));
	buf_puts(&out, to);
	buf_put(&out, hit + strlen(from), b.n - (size_t)(hit - b.p) - strlen(from));
	buf_fini(&b);
	return out;
}

static struct metadata *load_edited(const char *path, const char *from, const char *to)
{
	struct buf b = edit(path, from, to);
	struct err err = {0};
	struct metadata *m = NULL;
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err), &err);
	buf_fini(&b);
	return m;
}

static struct buf written(const struct metadata *m)
{
	struct buf b;
	buf_init(&b, (size_t)1 << 20);
	metadata_json(m, &b);
	ck_assert(buf_ok(&b));
	pieces_check(m, buf_bytes(&b));
	return b;
}

static bool holds(const struct metadata *m, const char *text)
{
	struct buf b = written(m);
	bool found = memmem(b.p, b.n, text, strlen(text)) != NULL;
	buf_fini(&b);
	return found;
}

START_TEST(golden_invalid)
{
	static const struct {
		const char *name, *message;
		enum status st;
	} bad[] = {
		{"UnsupportedVersion", "Cannot read unsupported version", ST_UNSUPPORTED},
		{"V1MissingSchemaType", "Cannot parse type from json", ST_CORRUPT},
		{"V2CurrentSchemaNotFound",
		 "Cannot find schema with current-schema-id=2 from schemas", ST_CORRUPT},
		{"V2MissingSchemas", "schemas must exist in format v2", ST_CORRUPT},
		{"V2MissingPartitionSpecs", "partition-specs must exist in format v2", ST_CORRUPT},
		{"V2MissingLastPartitionId", "last-partition-id must exist in format v2",
		 ST_CORRUPT},
		{"V2MissingSortOrder", "sort-orders must exist in format v2", ST_CORRUPT},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char path[200];
		struct err err = {0};
		struct metadata *m = NULL;
		snprintf(path, sizeof path, GOLDEN "%s.json", bad[i].name);
		struct buf b = text_of(path);
		enum status st = metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err);
		ck_assert_msg(st == bad[i].st, "%s: %s", bad[i].name, status_info(st)->name);
		ck_assert_msg(strstr(err.msg, bad[i].message), "%s: %s", bad[i].name, err.msg);
		ck_assert_ptr_null(m);
		buf_fini(&b);
	}
}
END_TEST

START_TEST(golden_v2)
{
	struct metadata *m = load(GOLDEN "V2Valid.json");
	size_t n;
	struct uuid u, want;
	ck_assert(uuid_parse(STRV("9c12d441-03fe-4693-9a96-a0705ddf69c1"), &want));
	ck_assert(metadata_uuid(m, &u) && uuid_eq(u, want));
	ck_assert_int_eq(metadata_format_version(m), 2);
	ck_assert(strv_eq(metadata_location(m), STRV("s3://bucket/test/location")));
	ck_assert_int_eq(metadata_last_sequence_number(m), 34);
	ck_assert_int_eq(metadata_last_updated_ms(m), INT64_C(1602638573590));
	ck_assert_int_eq(metadata_last_column_id(m), 3);
	ck_assert_int_eq(metadata_last_partition_id(m), 1000);
	ck_assert_uint_eq(metadata_schema_count(m), 2);
	ck_assert_int_eq(metadata_schema(m)->schema_id, 1);
	ck_assert_uint_eq(metadata_schema(m)->n_identifier, 2);
	ck_assert_uint_eq(metadata_schema_by_id(m, 0)->n, 1);
	ck_assert_ptr_null(metadata_schema_by_id(m, 2));
	ck_assert_int_eq(metadata_spec(m)->fields[0].field_id, 1000);
	ck_assert_int_eq(metadata_default_sort_order_id(m), 3);
	ck_assert_uint_eq(metadata_sort_order(m)->n, 2);
	ck_assert_int_eq(metadata_current_snapshot_id(m), INT64_C(3055729675574597004));
	const struct snapshot *s = metadata_current_snapshot(m), *p = metadata_parent(m, s);
	ck_assert_int_eq(s->sequence_number, 1);
	ck_assert_int_eq(s->schema_id, 1);
	ck_assert(strv_eq(s->operation, STRV("append")));
	ck_assert(strv_eq(s->manifest_list, STRV("s3://a/b/2.avro")));
	ck_assert_int_eq(p->snapshot_id, INT64_C(3051729675574597004));
	ck_assert_int_eq(p->parent_id, SNAPSHOT_NONE);
	ck_assert_int_eq(p->schema_id, SCHEMA_ID_NONE);
	ck_assert_int_eq(p->first_row_id, ROW_ID_NONE);
	ck_assert(metadata_is_ancestor(m, p->snapshot_id, s->snapshot_id));
	ck_assert(metadata_is_ancestor(m, s->snapshot_id, s->snapshot_id));
	ck_assert(!metadata_is_ancestor(m, s->snapshot_id, p->snapshot_id));
	/* No refs in the document: main comes from the current snapshot. */
	const struct snapshot_ref *r = metadata_refs(m, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert(strv_eq(r->name, SNAPSHOT_REF_MAIN) && !r->tag);
	metadata_snapshot_log(m, &n);
	ck_assert_uint_eq(n, 2);
	metadata_unref(m);
}
END_TEST

START_TEST(golden_others)
{
	struct metadata *m = load(GOLDEN "V1Valid.json");
	ck_assert_int_eq(metadata_format_version(m), 1);
	ck_assert_int_eq(metadata_current_snapshot_id(m), SNAPSHOT_NONE);
	ck_assert_int_eq(metadata_last_partition_id(m), 1000);
	ck_assert_int_eq(metadata_default_spec_id(m), 0);
	ck_assert_uint_eq(metadata_sort_order(m)->n, 0);
	ck_assert(holds(m, "\"schema\":{") && holds(m, "\"partition-spec\":[{"));
	ck_assert(holds(m, "\"current-snapshot-id\":-1"));
	metadata_unref(m);
	m = load(GOLDEN "V2ValidMinimal.json");
	ck_assert_uint_eq(metadata_snapshot_count(m), 0);
	ck_assert(!holds(m, "\"schema\":{"));
	metadata_unref(m);
	m = load(GOLDEN "V3ValidMinimal.json");
	ck_assert_int_eq(metadata_next_row_id(m), 0);
	ck_assert(strv_eq(metadata_schema(m)->fields[0].initial_default, STRV("1")));
	ck_assert(holds(m, "\"current-snapshot-id\":null"));
	metadata_unref(m);
	m = load(GOLDEN "StatisticsFiles.json");
	ck_assert(holds(
		m, "\"statistics\":[{\"snapshot-id\":3055729675574597004,"
		   "\"statistics-path\":\"s3://a/b/stats.puffin\",\"file-size-in-bytes\":413,"));
	metadata_unref(m);
	m = load(GOLDEN "PartitionStatisticsFiles.json");
	ck_assert(holds(m, "\"partition-statistics\":[{\"snapshot-id\":3055729675574597004,"));
	metadata_unref(m);
}
END_TEST

/* One wrong thing each, in a document that is otherwise valid. */
static const struct {
	const char *from, *to, *field;
} broken[] = {
	{"\"format-version\": 3", "\"format-version\": \"3\"", "format-version"},
	{"\"format-version\": 3", "\"format-version\": 0", "format-version"},
	{"\"format-version\": 3", "\"format-version\": 3, \"format-version\": 3", ""},
	{"\"table-uuid\": \"9c", "\"table-uuid\": \"zz", "table-uuid"},
	{"\"table-uuid\"", "\"uuid\"", "table-uuid"},
	{"\"location\"", "\"locus\"", "location"},
	{"\"s3://b/t\"", "\"\"", "location"},
	{"\"last-sequence-number\": 4", "\"last-sequence-number\": 3", "snapshots"},
	{"\"last-sequence-number\": 4", "\"last-sequence-number\": 4.5", "last-sequence-number"},
	{"\"last-updated-ms\": 1700000000004", "\"last-updated-ms\": 1699999940003",
	 "last-updated-ms"},
	{"\"last-column-id\": 3", "\"last-column-id\": 3000000000", "last-column-id"},
	{"\"next-row-id\": 100", "\"next-row-id\": -1", "next-row-id"},
	{"\"next-row-id\"", "\"next-row\"", "next-row-id"},
	{"\"default-spec-id\": 0", "\"default-spec-id\": 7", "default-spec-id"},
	{"\"default-sort-order-id\": 1", "\"default-sort-order-id\": 7", "default-sort-order-id"},
	{"\"spec-id\": 1", "\"spec-id\": 0", "partition-specs"},
	{"\"order-id\": 0", "\"order-id\": 1", "sort-orders"},
	{"\"owner\": \"me\"", "\"owner\": 1", "properties"},
	{"\"current-snapshot-id\": 4", "\"current-snapshot-id\": 3", "refs"},
	{"\"current-snapshot-id\": 4", "\"current-snapshot-id\": null", "refs"},
	{"\"snapshot-id\": 3,\n   \"type\"", "\"snapshot-id\": 33,\n   \"type\"", "refs"},
	{"\"max-ref-age-ms\": 9", "\"max-ref-age-ms\": 0", "refs.max-ref-age-ms"},
	{"\"max-ref-age-ms\": 9", "\"min-snapshots-to-keep\": 9", "refs.min-snapshots-to-keep"},
	{"\"type\": \"tag\"", "\"type\": \"label\"", "refs.type"},
	{"\"snapshot-id\": 2,\n   \"parent", "\"snapshot-id\": 1,\n   \"parent", "snapshots"},
	{"\"first-row-id\": 25", "\"first-row-id\": -25", "snapshots[1].first-row-id"},
	{"\"added-rows\": 25", "\"added-row\": 25", "snapshots[0].added-rows"},
	{"\"manifest-list\"", "\"manifest\"", "snapshots[0].manifest-list"},
	{"\"added-records\": \"5\"", "\"added-records\": 5", "snapshots[0].summary"},
	{"\"statistics-path\"", "\"path\"", "statistics[0].statistics-path"},
	{"\"encrypted-key-metadata\"", "\"key-metadata\"",
	 "encryption-keys[0].encrypted-key-metadata"},
	{"\"timestamp-ms\": 1700000000001,\n   \"snapshot-id\"",
	 "\"timestamp-ms\": 1700000060003,\n   \"snapshot-id\"", "snapshot-log"},
	{"\"timestamp-ms\": 1700000000001,\n   \"metadata-file\"",
	 "\"timestamp-ms\": 1700000060003,\n   \"metadata-file\"", "metadata-log"},
	{"\"metadata-file\"", "\"file\"", "metadata-log.metadata-file"},
	{"\"type\": \"long\"", "\"type\": \"longer\"", NULL},
	{"\"refs\": {", "\"refs\": [{", ""},
	{"\"me\"", "\"m\xff\"", ""},
};

START_TEST(strict)
{
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct buf b = edit(BASE, broken[i].from, broken[i].to);
		struct err err = {0};
		struct metadata *m = NULL;
		enum status st = metadata_parse(buf_bytes(&b), ST_CORRUPT, &m, &err);
		ck_assert_msg(st == ST_CORRUPT, "%s: %s", broken[i].to, status_info(st)->name);
		ck_assert_ptr_null(m);
		if (broken[i].field)
			ck_assert_msg(strcmp(err.field, broken[i].field) == 0, "%s: %s (%s)",
				      broken[i].to, err.field, err.msg);
		buf_fini(&b);
	}
}
END_TEST

/* Spellings of "no current snapshot" and of "no parent" that stand in files. */
START_TEST(lenient)
{
	static const char *const none[] = {"\"current-snapshot-id\": -1", "\"x\": 1",
					   "\"current-snapshot-id\": null"};
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct metadata *m = load_edited("tests/golden/metadata/empty-v3.json",
						 "\"current-snapshot-id\": null", none[i]);
		ck_assert_int_eq(metadata_current_snapshot_id(m), SNAPSHOT_NONE);
		ck_assert_ptr_null(metadata_current_snapshot(m));
		metadata_unref(m);
	}
	struct metadata *m =
		load_edited(BASE, "\"parent-snapshot-id\": 1", "\"parent-snapshot-id\": -1");
	ck_assert_int_eq(metadata_snapshot(m, 2)->parent_id, SNAPSHOT_NONE);
	ck_assert(!metadata_is_ancestor(m, 1, 4));
	int64_t since;
	ck_assert(metadata_left(m, SNAPSHOT_REF_MAIN, 1, &since));
	metadata_unref(m);
	m = load_edited(BASE, "\"owner\"", "\"owner\"");
	ck_assert(!metadata_left(m, SNAPSHOT_REF_MAIN, 1, &since));
	ck_assert(!metadata_left(m, SNAPSHOT_REF_MAIN, 4, &since));
	ck_assert(metadata_left(m, STRV("none"), 4, &since) && since == 0);
	ck_assert(metadata_left(m, STRV("b"), 4, &since) && since == 0);
	metadata_unref(m);
	/* A ring of parents ends the walk. */
	m = load_edited(BASE, "\"parent-snapshot-id\": 1", "\"parent-snapshot-id\": 4");
	ck_assert(!metadata_is_ancestor(m, 1, 4));
	ck_assert(!metadata_left(m, SNAPSHOT_REF_MAIN, 1, &since));
	metadata_unref(m);
	m = load_edited(BASE, "\"main\"", "\"other\"");
	ck_assert_int_eq(metadata_ref_by_name(m, SNAPSHOT_REF_MAIN)->snapshot_id, 4);
	metadata_unref(m);
	m = load_edited(BASE, "\"s3://b/t\"", "\"s3://b/t//\"");
	ck_assert(strv_eq(metadata_location(m), STRV("s3://b/t")));
	metadata_unref(m);
}
END_TEST

START_TEST(unknown_members)
{
	struct metadata *m = load_edited(
		BASE, "\"owner\"", "\"esc\\u0061p\\u00e9\": \"\\ud83d\\ude00\\n\", \"owner\"");
	ck_assert(strv_eq(metadata_property(m, "escapé"), STRV("😀\n")));
	metadata_unref(m);
	m = load_edited(
		BASE, "\"format-version\": 3,",
		"\"format-version\": 3, \"n\\u0065w\": [ 1.50 , 1e400,{ \"a b\" : null } ],");
	ck_assert(holds(m, ",\"n\\u0065w\":[1.50,1e400,{\"a b\":null}]}"));
	metadata_unref(m);
	m = load_edited(BASE, "\"sequence-number\": 2,",
			"\"sequence-number\": 2, \"x\": 12345678901234567890, \"y\": { },");
	ck_assert(holds(m, "\"added-rows\":25,\"x\":12345678901234567890,\"y\":{}}"));
	metadata_unref(m);
	m = load_edited(BASE, "\"required\": true,", "\"required\": true, \"zz\": [true],");
	ck_assert(holds(m, "\"zz\":[true]"));
	metadata_unref(m);
	m = load_edited(BASE, "\"file-footer-size-in-bytes\": 42,",
			"\"file-footer-size-in-bytes\": 42, \"key-metadata\": \"AA==\",");
	ck_assert(holds(m, "\"key-metadata\":\"AA==\""));
	metadata_unref(m);
}
END_TEST

START_TEST(only_refs)
{
	struct metadata *m = load(BASE), *part = NULL;
	struct buf b;
	struct err err = {0};
	buf_init(&b, (size_t)1 << 20);
	metadata_json_refs(m, &b);
	UNIT_OK(metadata_parse(buf_bytes(&b), ST_CORRUPT, &part, &err), &err);
	/* main 4, b 3, t 2; snapshot 1 is nobody's head. All else is unchanged. */
	ck_assert_uint_eq(metadata_snapshot_count(part), 3);
	ck_assert_ptr_null(metadata_snapshot(part, 1));
	ck_assert(metadata_is_ancestor(part, 1, 4)); /* named as a parent */
	size_t n, k;
	metadata_snapshot_log(part, &n);
	ck_assert_uint_eq(n, 4);
	metadata_refs(part, &n);
	metadata_refs(m, &k);
	ck_assert_uint_eq(n, k);
	buf_fini(&b);
	metadata_unref(m);
	metadata_unref(part);
}
END_TEST

START_TEST(properties)
{
	struct metadata *m = load(BASE);
	size_t n;
	metadata_properties(m, &n);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(metadata_property_i64(m, "write.metadata.previous-versions-max", 100), 3);
	ck_assert_int_eq(metadata_property_i64(m, "owner", 100), 100);
	ck_assert_int_eq(metadata_property_i64(m, "none", -5), -5);
	ck_assert_ptr_null(metadata_property(m, "none").p);
	ck_assert_ptr_null(metadata_encryption_key_id(m).p);
	metadata_unref(m);
	m = load_edited(BASE, "\"owner\"", "\"encryption.key-id\"");
	ck_assert(strv_eq(metadata_encryption_key_id(m), STRV("me")));
	metadata_unref(m);
}
END_TEST

START_TEST(own_properties)
{
	static const struct {
		const char *key, *value;
		bool ok;
	} all[] = {
		{"write.metadata.compression-codec", "gzip", true},
		{"write.metadata.compression-codec", "GZip", true},
		{"write.metadata.compression-codec", "NONE", true},
		{"write.metadata.compression-codec", "zstd", false},
		{"write.metadata.compression-codec", "", false},
		{"write.metadata.compression-codec", "gzip ", false},
		{"write.metadata.previous-versions-max", "-1", true},
		{"write.metadata.previous-versions-max", "2147483647", true},
		{"write.metadata.previous-versions-max", "2147483648", false},
		{"write.metadata.previous-versions-max", "1.5", false},
		{"write.metadata.previous-versions-max", "", false},
		{"write.metadata.path", "", false},
		{"write.metadata.path", "s3://b/m", true},
		{"write.metadata.delete-after-commit.enabled", "perhaps", true},
		{"anything", "", true},
	};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct err err = {0};
		enum status st = metadata_check_property(strv_of(all[i].key), strv_of(all[i].value),
							 ST_VALIDATION, &err);
		ck_assert_msg((st == ST_OK) == all[i].ok, "%s=%s", all[i].key, all[i].value);
		if (!all[i].ok)
			ck_assert_str_eq(err.field, all[i].key);
	}
	struct metadata *m = load_edited(
		BASE, "\"owner\":", "\"write.metadata.compression-codec\":\"lz4\",\"owner\":");
	struct err err = {0};
	UNIT_STATUS(metadata_check_properties(m, ST_CORRUPT, &err), ST_CORRUPT);
	ck_assert_str_eq(err.field, "properties.write.metadata.compression-codec");
	ck_assert(!metadata_wants_gzip(m));
	metadata_unref(m);
	m = load_edited(BASE, "\"owner\":",
			"\"write.metadata.compression-codec\":\"GZIP\",\"owner\":");
	ck_assert(metadata_wants_gzip(m));
	UNIT_OK(metadata_check_properties(m, ST_CORRUPT, &err), &err);
	metadata_unref(m);
}
END_TEST

START_TEST(file_names)
{
	char out[METADATA_FILE_NAME_MAX];
	struct uuid u;
	ck_assert(uuid_parse(STRV("9c12d441-03fe-4693-9a96-a0705ddf69c1"), &u));
	static const struct {
		const char *base, *want;
		bool gzip;
	} names[] = {
		{"", "00000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json", false},
		{"s3://b/t/metadata/00009-abc.metadata.json",
		 "00010-9c12d441-03fe-4693-9a96-a0705ddf69c1.gz.metadata.json", true},
		{"s3://b/t-1/metadata/99999-abc.gz.metadata.json",
		 "100000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json", false},
		{"s3://b/4-5/v3.metadata.json",
		 "00000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json", false},
		{"s3://b/-5-x", "00000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json", false},
		{"9223372036854775807-x",
		 "00000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		metadata_file_name(strv_of(names[i].base), u, names[i].gzip, out);
		ck_assert_str_eq(out, names[i].want);
	}
	ck_assert(metadata_file_gzip(STRV("a/00001-x.gz.metadata.json")));
	ck_assert(metadata_file_gzip(STRV("a/v1.metadata.json.gz")));
	ck_assert(!metadata_file_gzip(STRV("a/gz.metadata.json.x")));
}
END_TEST

/* Any cut of a document is refused, without a leak or a stray read. */
START_TEST(cuts)
{
	struct buf b = text_of(GOLDEN "V3ValidMinimal.json");
	for (size_t n = 0; n + 1 < b.n; n += 7) {
		struct metadata *m = NULL;
		UNIT_STATUS(metadata_parse((struct bytes){b.p, n}, ST_CORRUPT, &m, NULL),
			    ST_CORRUPT);
	}
	buf_fini(&b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("metadata");
	TCase *t = tcase_create("metadata");
	tcase_add_test(t, golden_invalid);
	tcase_add_test(t, golden_v2);
	tcase_add_test(t, golden_others);
	tcase_add_test(t, strict);
	tcase_add_test(t, lenient);
	tcase_add_test(t, unknown_members);
	tcase_add_test(t, only_refs);
	tcase_add_test(t, properties);
	tcase_add_test(t, own_properties);
	tcase_add_test(t, file_names);
	tcase_add_test(t, cuts);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
