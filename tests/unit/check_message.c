/* Task messages in the shape in which the engines' sources write them. */
#include "daemon/commit/intake/message.h"

#include "daemon/commit/intake/check.h"
#include "daemon/commit/intake/expand.h"
#include "tests/unit/core_table.h"
#include "tests/unit/golden_values.h"

/* Column 1 id, 2 p, then one of each type that partitions; spec 2 takes them all, spec 3 a bucket,
 * day, year and void, spec 4 only void. */
#define WIDE_FIELDS                                                                                \
	"{\"id\":3,\"name\":\"b\",\"required\":false,\"type\":\"boolean\"},"                       \
	"{\"id\":4,\"name\":\"d\",\"required\":false,\"type\":\"date\"},"                          \
	"{\"id\":5,\"name\":\"t\",\"required\":false,\"type\":\"time\"},"                          \
	"{\"id\":6,\"name\":\"ts\",\"required\":false,\"type\":\"timestamp\"},"                    \
	"{\"id\":7,\"name\":\"tz\",\"required\":false,\"type\":\"timestamptz\"},"                  \
	"{\"id\":8,\"name\":\"f\",\"required\":false,\"type\":\"float\"},"                         \
	"{\"id\":9,\"name\":\"g\",\"required\":false,\"type\":\"double\"},"                        \
	"{\"id\":10,\"name\":\"s\",\"required\":false,\"type\":\"string\"},"                       \
	"{\"id\":11,\"name\":\"x\",\"required\":false,\"type\":\"binary\"},"                       \
	"{\"id\":12,\"name\":\"y\",\"required\":false,\"type\":\"fixed[2]\"},"                     \
	"{\"id\":13,\"name\":\"u\",\"required\":false,\"type\":\"uuid\"},"                         \
	"{\"id\":14,\"name\":\"m\",\"required\":false,\"type\":\"decimal(9, 2)\"},"                \
	"{\"id\":15,\"name\":\"w\",\"required\":false,\"type\":\"decimal(38, 10)\"},"              \
	"{\"id\":16,\"name\":\"n\",\"required\":false,\"type\":\"timestamp_ns\"}"

static struct core_table *t;
static struct message got;
static struct err err;

static void spec_field(struct buf *b, int source, const char *transform)
{
	static int id = 1010;
	buf_printf(b, "%s{\"source-id\":%d,\"field-id\":%d,\"name\":\"f%d\",\"transform\":\"%s\"}",
		   b->p[b->n - 1] == '[' ? "" : ",", source, id, id, transform);
	id = id == 1999 ? 1010 : id + 1;
}

static void up(void)
{
	static struct core_table table;
	struct buf b;
	t = &table;
	ct_open(t, 3, "");
	ct_edit(t, "\"name\":\"p\",\"required\":false,\"type\":\"int\"}",
		"\"name\":\"p\",\"required\":false,\"type\":\"int\"}," WIDE_FIELDS);
	ct_edit(t, "\"last-column-id\":2", "\"last-column-id\":16");
	buf_init(&b, 65536);
	buf_puts(&b, "\"partition-specs\":[{\"spec-id\":2,\"fields\":[");
	for (int i = 1; i <= 16; i++)
		spec_field(&b, i, "identity");
	buf_puts(&b, "]},{\"spec-id\":3,\"fields\":[");
	spec_field(&b, 1, "bucket[8]");
	spec_field(&b, 6, "day");
	spec_field(&b, 4, "year");
	spec_field(&b, 10, "void");
	buf_puts(&b, "]},{\"spec-id\":4,\"fields\":[");
	spec_field(&b, 10, "void");
	buf_puts(&b, "]},");
	buf_putc(&b, 0);
	ct_edit(t, "\"partition-specs\":[", (const char *)b.p);
	ct_edit(t, "\"last-partition-id\":1000", "\"last-partition-id\":1999");
	buf_fini(&b);
}

static void down(void)
{
	ct_close(t);
}

static enum status read_it(enum rpc_dialect d, const char *json)
{
	struct rpc_task_message in = {.dialect = d, .json = strv_bytes(strv_of(json))};
	err = (struct err){0};
	got = (struct message){0};
	return message_read(t->meta, &in, &t->arena, &got, &err);
}

static void takes(enum rpc_dialect d, const char *json)
{
	UNIT_OK(read_it(d, json), &err);
}

static void refuses(enum rpc_dialect d, const char *json, enum status want, const char *field)
{
	enum status st = read_it(d, json);
	ck_assert_msg(st == want, "%s %s %s: %s", status_info(st)->name, err.field, err.msg, json);
	ck_assert_str_eq(err.field, field);
}

static void text_is(struct strv s, const char *z)
{
	ck_assert_msg(strv_eq(s, strv_of(z)), "%.*s is not %s", STRV_ARG(s), z);
}

static void bytes_are(struct bytes b, const char *hex)
{
	struct buf h;
	buf_init(&h, 4096);
	digest_hex(&h, b);
	text_is(buf_strv(&h), hex);
	buf_fini(&h);
}

/* A data file as Velox's sink reports it: keys in any order, since its writer sorts none. */
#define VELOX_FILE(spec, more)                                                                     \
	"{\"content\":\"DATA\",\"fileFormat\":\"PARQUET\",\"fileSizeInBytes\":1024,"               \
	"\"metrics\":{\"columnSizes\":{\"2\":48,\"1\":111},\"lowerBounds\":{\"1\":\"AQAAAAAAAAA="  \
	"\","                                                                                      \
	"\"2\":\"BwAAAA==\"},\"nanValueCounts\":{},\"nullValueCounts\":{\"1\":0,\"2\":3},"         \
	"\"recordCount\":10,\"upperBounds\":{\"1\":\"CgAAAAAAAAA=\"},"                             \
	"\"valueCounts\":{\"1\":10,\"2\":10}}," more "\"partitionSpecJson\":" spec                 \
	",\"path\":\"s3://bucket//t/data/p=7/0.parquet\","                                         \
	"\"sortOrderId\":0}"

START_TEST(velox_data)
{
	takes(RPC_DIALECT_VELOX,
	      VELOX_FILE("1", "\"partitionDataJson\":\"{\\\"partitionValues\\\":[7]}\","));
	ck_assert_int_eq(got.kind, MESSAGE_DATA_FILE);
	const struct rpc_data_file *f = &got.file;
	/* Both slashes stay. */
	text_is(f->path, "s3://bucket//t/data/p=7/0.parquet");
	text_is(f->format, "PARQUET");
	ck_assert_int_eq(f->spec_id, 1);
	ck_assert_uint_eq(f->n_partition, 1);
	ck_assert_int_eq(f->partition[0].field_id, 1000);
	ck_assert(f->partition[0].has_value);
	bytes_are(f->partition[0].value, "07000000");
	ck_assert_int_eq(f->record_count, 10);
	ck_assert_int_eq(f->new_row_count, 10);
	ck_assert_int_eq(f->updated_row_count, 0);
	ck_assert(!f->has_row_ids);
	ck_assert_int_eq(f->file_size, 1024);
	ck_assert_int_eq(f->schema_id, 0);
	ck_assert_uint_eq(f->n_column_sizes, 2);
	ck_assert_int_eq(f->column_sizes[0].field_id, 2);
	ck_assert_int_eq(f->column_sizes[0].value, 48);
	ck_assert_uint_eq(f->n_value_counts, 2);
	ck_assert_uint_eq(f->n_null_counts, 2);
	ck_assert_int_eq(f->null_counts[1].value, 3);
	ck_assert_uint_eq(f->n_nan_counts, 0);
	ck_assert_uint_eq(f->n_lower_bounds, 2);
	ck_assert_int_eq(f->lower_bounds[0].field_id, 1);
	bytes_are(f->lower_bounds[0].value, "0100000000000000");
	ck_assert_uint_eq(f->n_upper_bounds, 1);
	bytes_are(f->upper_bounds[0].value, "0a00000000000000");
	ck_assert_uint_eq(f->n_split_offsets, 0);
	/* Always 0, whatever order the rows have: not believed. */
	ck_assert(!f->has_sort_order_id);
	/* Unpartitioned: absent, null, and the empty text of older versions. */
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", ""));
	ck_assert_uint_eq(got.file.n_partition, 0);
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", "\"partitionDataJson\":null,"));
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", "\"partitionDataJson\":\"\","));
	takes(RPC_DIALECT_VELOX,
	      VELOX_FILE("0", "\"partitionDataJson\":\"{\\\"partitionValues\\\":[]}\","));
	/* Only void is left: no tuple is reported, the manifest has a null. */
	takes(RPC_DIALECT_VELOX, VELOX_FILE("4", ""));
	ck_assert_uint_eq(got.file.n_partition, 1);
	ck_assert(!got.file.partition[0].has_value);
	/* A member of a later release. */
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", "\"writerVersion\":{\"a\":[1]},"));
}
END_TEST

/* A data file whose tuple is this text, quoted as the engines do. `spec` is JSON. */
static const char *with_tuple(const char *spec, const char *tuple)
{
	struct buf b;
	struct strv s;
	buf_init(&b, 65536);
	buf_printf(&b,
		   "{\"path\":\"file:///t/data/a.parquet\",\"fileSizeInBytes\":9,"
		   "\"metrics\":{\"recordCount\":1},\"partitionSpecJson\":%s,"
		   "\"fileFormat\":\"PARQUET\",\"content\":\"DATA\",\"partitionDataJson\":",
		   spec);
	jwrite_quote(&b, strv_of(tuple));
	buf_putc(&b, '}');
	ck_assert(buf_ok(&b) && arena_strv(&t->arena, buf_strv(&b), &s));
	buf_fini(&b);
	return s.p;
}

/* Trino sends the whole spec: that of the table, as text in the text. */
static const char *spec_text(int32_t id)
{
	struct buf b, q;
	struct jwrite w;
	struct strv s;
	buf_init(&b, 65536);
	buf_init(&q, 65536);
	jwrite_init(&w, &b);
	partition_write(&w, metadata_spec_by_id(t->meta, id));
	jwrite_quote(&q, buf_strv(&b));
	ck_assert(arena_strv(&t->arena, buf_strv(&q), &s));
	buf_fini(&b);
	buf_fini(&q);
	return s.p;
}

#define TUPLE(a, b, c, decimals)                                                                   \
	"{\"partitionValues\":[5000000000,-7," a ",19000,3600000001,1700000000123456,-1," b        \
	",1e300,\"a\\u00e4\\\"\"," c                                                               \
	",\"3q0=\",\"F79FC66e-29e3-4cb9-a5e9-6d2a9b3f1c00\"," decimals ",1700000000123456789]}"

/* The bytes are those of the table specification's single-value binary form. */
static void tuple_is(const char *decimal, const char *wide)
{
	const char *const want[16] = {"00f2052a01000000",
				      "f9ffffff",
				      "01",
				      "384a0000",
				      "01a493d600000000",
				      "40222018240a0600",
				      "ffffffffffffffff",
				      "0000c03f",
				      "9c7500883ce4377e",
				      "61c3a422",
				      "00ff",
				      "dead",
				      "f79fc66e29e34cb9a5e96d2a9b3f1c00",
				      decimal,
				      wide,
				      "15cd853dfe9c9717"};
	ck_assert_uint_eq(got.file.n_partition, 16);
	for (int i = 0; i < 16; i++) {
		ck_assert(got.file.partition[i].has_value);
		bytes_are(got.file.partition[i].value, want[i]);
	}
}

START_TEST(tuples)
{
	/* A whole number is unscaled where Velox writes it and Presto reads it; with a point or an
	 * exponent, as Presto's and Trino's own writers have it, it is the value. */
	takes(RPC_DIALECT_VELOX, with_tuple("2", TUPLE("true", "1.5", "\"AP8=\"", "1234,-1")));
	tuple_is("04d2", "ff");
	takes(RPC_DIALECT_PRESTO, with_tuple("2", TUPLE("true", "1.5", "\"AP8=\"", "-1234,1000")));
	tuple_is("fb2e", "03e8");
	takes(RPC_DIALECT_PRESTO, with_tuple("2", TUPLE("true", "1.5", "\"AP8=\"", "12.34,1E-7")));
	tuple_is("04d2", "03e8");
	const char *spec = spec_text(2);
	takes(RPC_DIALECT_TRINO, with_tuple(spec, TUPLE("true", "1.5", "\"AP8=\"", "12.34,1E-7")));
	tuple_is("04d2", "03e8");
	takes(RPC_DIALECT_TRINO, with_tuple(spec, TUPLE("true", "1.5", "\"AP8=\"", "12,0E-10")));
	tuple_is("04b0", "00");
	/* All 38 digits. */
	takes(RPC_DIALECT_TRINO,
	      with_tuple(spec, TUPLE("true", "1.5", "\"AP8=\"",
				     "0.50,1000000000000000000000000000.0000000005")));
	tuple_is("32", "0785ee10d5da46d900f436a000000005");
	/* A float by its text, once rounded. */
	takes(RPC_DIALECT_VELOX, with_tuple("2", TUPLE("true", "15e-1", "\"AP8=\"", "1234,-1")));
	tuple_is("04d2", "ff");
	takes(RPC_DIALECT_VELOX,
	      with_tuple("2", "{\"partitionValues\":[null,null,null,null,null,null,null,"
			      "\"Infinity\",\"NaN\",null,\"\",null,null,null,null,null]}"));
	ck_assert(!got.file.partition[0].has_value && !got.file.partition[15].has_value);
	bytes_are(got.file.partition[7].value, "0000807f");
	bytes_are(got.file.partition[8].value, "000000000000f87f");
	ck_assert(got.file.partition[10].has_value);
	ck_assert_uint_eq(got.file.partition[10].value.n, 0);
	/* Results of transforms: a bucket and a year as int, a day as a date's days. */
	takes(RPC_DIALECT_VELOX, with_tuple("3", "{\"partitionValues\":[3,19675,52,null]}"));
	bytes_are(got.file.partition[0].value, "03000000");
	bytes_are(got.file.partition[1].value, "db4c0000");
	bytes_are(got.file.partition[2].value, "34000000");
	ck_assert(!got.file.partition[3].has_value);
}
END_TEST

START_TEST(tuples_refused)
{
	static const struct {
		const char *at;
		const char *values;
	} wrong[] = {
		{"[0]", "9223372036854775808,null,null"},
		{"[0]", "\"1\",null,null"},
		{"[0]", "1.0,null,null"},
		{"[1]", "null,2147483648,null"},
		{"[1]", "null,true,null"},
		{"[2]", "null,null,1"},
	};
	static const struct {
		int at;
		const char *value;
	} more[] = {
		{3, "\"2024-01-01\""},
		{4, "-1"},
		{4, "86400000000"},
		{5, "\"2024-01-01T00:00:00\""},
		{7, "\"nan(1)\""},
		{7, "1e39"},
		{8, "1e400"},
		{8, "\"inf\""},
		{9, "1"},
		{10, "\"AP8\""},
		{10, "\"AP8=\\n\""},
		{10, "1"},
		{12, "\"f79fc66e\""},
		{13, "\"12.34\""},
		{13, "12.345"},
		{13, "10000000.00"},
		{13, "1000000000"},
		{13, "1e9999999999"},
		{13, "1e-3"},
		{14, "1e28"},
		/* Ten times 35 of these powers passes 128 bits. */
		{14, "3.5e28"},
		{14, "350000000000000000000000000000000000001"},
		{14, "-34028236692093846346337460743.1768211457"},
		{15, "1.5"},
	};
	char text[1000], field[100];
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof text,
			 "{\"partitionValues\":[%s,null,null,null,null,null,null,null,null,null,"
			 "null,null,null,null]}",
			 wrong[i].values);
		snprintf(field, sizeof field, "partitionDataJson.partitionValues%s", wrong[i].at);
		refuses(RPC_DIALECT_VELOX, with_tuple("2", text), ST_TUPLE_MISMATCH, field);
	}
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		size_t n = (size_t)snprintf(text, sizeof text, "{\"partitionValues\":[");
		for (int k = 0; k < 16; k++)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", k ? "," : "",
					      k == more[i].at ? more[i].value : "null");
		snprintf(text + n, sizeof text - n, "]}");
		snprintf(field, sizeof field, "partitionDataJson.partitionValues[%d]", more[i].at);
		refuses(RPC_DIALECT_PRESTO, with_tuple("2", text), ST_TUPLE_MISMATCH, field);
	}
	/* Arity: Velox skips a field that it has no column for. */
	refuses(RPC_DIALECT_VELOX, with_tuple("3", "{\"partitionValues\":[3,19675]}"),
		ST_TUPLE_MISMATCH, "partitionDataJson.partitionValues");
	refuses(RPC_DIALECT_VELOX, with_tuple("1", "{\"partitionValues\":[7,8]}"),
		ST_TUPLE_MISMATCH, "partitionDataJson.partitionValues");
	refuses(RPC_DIALECT_VELOX, with_tuple("0", "{\"partitionValues\":[7]}"), ST_TUPLE_MISMATCH,
		"partitionDataJson.partitionValues");
	refuses(RPC_DIALECT_VELOX, with_tuple("1", ""), ST_TUPLE_MISMATCH, "partitionDataJson");
	refuses(RPC_DIALECT_VELOX, with_tuple("1", "{}"), ST_TUPLE_MISMATCH,
		"partitionDataJson.partitionValues");
	refuses(RPC_DIALECT_VELOX, with_tuple("1", "[7]"), ST_TUPLE_MISMATCH,
		"partitionDataJson.partitionValues");
	refuses(RPC_DIALECT_VELOX, with_tuple("1", "{\"partitionValues\":[7]"), ST_TUPLE_MISMATCH,
		"partitionDataJson");
	refuses(RPC_DIALECT_VELOX, with_tuple("9", "{\"partitionValues\":[7]}"), ST_SPEC_UNKNOWN,
		"partitionSpecJson");
}
END_TEST

START_TEST(velox_vector)
{
	/* The sink writes no partition data and the spec of its own plan. */
	takes(RPC_DIALECT_VELOX,
	      "{\"content\":\"POSITION_DELETES\",\"contentOffset\":4,\"contentSizeInBytes\":46,"
	      "\"fileFormat\":\"PUFFIN\",\"fileSizeInBytes\":412,\"metrics\":{\"recordCount\":3},"
	      "\"partitionSpecJson\":0,\"path\":\"file:///t/data/p=7/dv-1b4e28ba.puffin\","
	      "\"referencedDataFile\":\"file:///t/data/p=7/0.parquet\"}");
	ck_assert_int_eq(got.kind, MESSAGE_VECTOR);
	text_is(got.vector.data_file, "file:///t/data/p=7/0.parquet");
	ck_assert_uint_eq(got.vector.vector.n, 0);
	ck_assert(got.vector.blob != NULL);
	text_is(got.vector.blob->path, "file:///t/data/p=7/dv-1b4e28ba.puffin");
	ck_assert_int_eq(got.vector.blob->offset, 4);
	ck_assert_int_eq(got.vector.blob->length, 46);
	ck_assert_int_eq(got.vector.cardinality, 3);
	ck_assert(got.vector.includes_existing);
	ck_assert_int_eq(got.vector.provenance, RPC_PROVENANCE_ABSENT);
	ck_assert(got.has_spec);
	ck_assert_int_eq(got.spec_id, 0);
}
END_TEST

START_TEST(presto)
{
	/* Every member is there, empty ones as null; a rolling upgrade leaves some out. */
	takes(RPC_DIALECT_PRESTO,
	      "{\"path\":\"file:///t/data/a.parquet\",\"fileSizeInBytes\":321,\"metrics\":{"
	      "\"recordCount\":2,\"columnSizes\":{\"1\":30},\"valueCounts\":{\"1\":2},"
	      "\"nullValueCounts\":{\"1\":0},\"nanValueCounts\":null,\"lowerBounds\":{\"1\":"
	      "\"AQAAAAAAAAA=\"},\"upperBounds\":null},\"partitionSpecJson\":0,"
	      "\"partitionDataJson\":null,\"fileFormat\":\"PARQUET\",\"referencedDataFile\":null,"
	      "\"content\":\"DATA\",\"contentOffset\":null,\"contentSizeInBytes\":null}");
	ck_assert_int_eq(got.kind, MESSAGE_DATA_FILE);
	ck_assert_uint_eq(got.file.n_lower_bounds, 1);
	ck_assert_uint_eq(got.file.n_upper_bounds, 0);
	takes(RPC_DIALECT_PRESTO,
	      "{\"path\":\"file:///t/data/d.puffin\",\"fileSizeInBytes\":321,\"metrics\":{"
	      "\"recordCount\":2,\"columnSizes\":null,\"valueCounts\":null,"
	      "\"nullValueCounts\":null,\"lowerBounds\":null,\"upperBounds\":null},"
	      "\"partitionSpecJson\":1,\"partitionDataJson\":\"{\\\"partitionValues\\\":[7]}\","
	      "\"fileFormat\":\"PUFFIN\",\"referencedDataFile\":\"file:///t/data/a.parquet\","
	      "\"content\":\"POSITION_DELETES\",\"contentOffset\":4,\"contentSizeInBytes\":50}");
	ck_assert_int_eq(got.kind, MESSAGE_VECTOR);
	ck_assert_int_eq(got.vector.blob->length, 50);
	ck_assert_int_eq(got.spec_id, 1);
	/* Position deletes of format version 2, with the file that they name and without. */
	takes(RPC_DIALECT_PRESTO,
	      "{\"path\":\"file:///t/data/d.parquet\",\"fileSizeInBytes\":321,\"metrics\":{"
	      "\"recordCount\":2},\"partitionSpecJson\":1,\"partitionDataJson\":"
	      "\"{\\\"partitionValues\\\":[7]}\",\"fileFormat\":\"PARQUET\","
	      "\"referencedDataFile\":\"file:///t/data/a.parquet\","
	      "\"content\":\"POSITION_DELETES\"}");
	ck_assert_int_eq(got.kind, MESSAGE_DELETE_FILE);
	text_is(got.delete_file.path, "file:///t/data/d.parquet");
	ck_assert_int_eq(got.delete_file.spec_id, 1);
	ck_assert_uint_eq(got.delete_file.n_partition, 1);
	ck_assert_int_eq(got.delete_file.record_count, 2);
	ck_assert_int_eq(got.delete_file.file_size, 321);
	ck_assert_uint_eq(got.delete_file.n_data_files, 1);
	text_is(got.delete_file.data_files[0], "file:///t/data/a.parquet");
	takes(RPC_DIALECT_PRESTO,
	      "{\"path\":\"file:///t/data/d.orc\",\"fileSizeInBytes\":321,\"metrics\":{"
	      "\"recordCount\":2},\"partitionSpecJson\":0,\"fileFormat\":\"ORC\","
	      "\"content\":\"POSITION_DELETES\"}");
	text_is(got.delete_file.format, "ORC");
	ck_assert_uint_eq(got.delete_file.n_data_files, 0);
}
END_TEST

START_TEST(trino)
{
	struct buf b;
	buf_init(&b, 65536);
	buf_printf(&b,
		   "{\"path\":\"file:///t/data/a.parquet\",\"fileFormat\":\"PARQUET\","
		   "\"fileSizeInBytes\":999,\"metrics\":{\"recordCount\":5,\"columnSizes\":"
		   "{\"1\":40}},\"partitionSpecJson\":%s,\"partitionDataJson\":"
		   "\"{\\\"partitionValues\\\":[7]}\",\"content\":\"DATA\",\"referencedDataFile\":"
		   "null,\"fileSplitOffsets\":[4,500],\"sortOrderId\":0,"
		   "\"serializedDeletionVector\":null,\"rewriteInfo\":null}",
		   spec_text(1));
	buf_putc(&b, 0);
	takes(RPC_DIALECT_TRINO, (const char *)b.p);
	ck_assert_int_eq(got.kind, MESSAGE_DATA_FILE);
	ck_assert_int_eq(got.file.spec_id, 1);
	bytes_are(got.file.partition[0].value, "07000000");
	ck_assert_uint_eq(got.file.n_split_offsets, 2);
	ck_assert_int_eq(got.file.split_offsets[1], 500);
	ck_assert(got.file.has_sort_order_id);
	/* The vector itself, no file: path and size are empty, the format is the table's. Bytes of
	 * {0, 5} as the reference implementation writes them. */
	buf_clear(&b);
	buf_printf(&b,
		   "{\"path\":\"\",\"fileFormat\":\"PARQUET\",\"fileSizeInBytes\":0,\"metrics\":"
		   "{\"recordCount\":2},\"partitionSpecJson\":%s,\"partitionDataJson\":null,"
		   "\"content\":\"POSITION_DELETES\",\"referencedDataFile\":"
		   "\"file:///t/data/a.parquet\",\"fileSplitOffsets\":null,\"sortOrderId\":0,"
		   "\"serializedDeletionVector\":\"AAAAJNHTOWQBAAAAAAAAAAAAAAA6MAAAAQAAAAAAAQAQAAAA"
		   "AAAFAIbSV0o=\",\"rewriteInfo\":null}",
		   spec_text(0));
	buf_putc(&b, 0);
	takes(RPC_DIALECT_TRINO, (const char *)b.p);
	ck_assert_int_eq(got.kind, MESSAGE_VECTOR);
	bytes_are(got.vector.vector,
		  "00000024d1d339640100000000000000000000003a3000000100000000000100"
		  "100000000000050086d2574a");
	ck_assert(!got.vector.blob);
	ck_assert_int_eq(got.vector.cardinality, 2);
	ck_assert(!got.vector.includes_existing);
	ck_assert(got.has_spec);
	buf_fini(&b);
	/* Another table's spec, or this one's with another transform. */
	refuses(RPC_DIALECT_TRINO, with_tuple("\"{\\\"spec-id\\\":7,\\\"fields\\\":[]}\"", ""),
		ST_SPEC_UNKNOWN, "partitionSpecJson");
	refuses(RPC_DIALECT_TRINO,
		with_tuple("\"{\\\"spec-id\\\":1,\\\"fields\\\":[{\\\"name\\\":\\\"p\\\","
			   "\\\"transform\\\":\\\"bucket[4]\\\",\\\"source-id\\\":2,"
			   "\\\"field-id\\\":1000}]}\"",
			   "{\"partitionValues\":[7]}"),
		ST_SPEC_UNKNOWN, "partitionSpecJson");
	refuses(RPC_DIALECT_TRINO, with_tuple("1", ""), ST_BAD_REQUEST, "partitionSpecJson");
	refuses(RPC_DIALECT_TRINO, with_tuple("\"{\"", ""), ST_BAD_REQUEST, "partitionSpecJson");
	refuses(RPC_DIALECT_VELOX, with_tuple("\"0\"", ""), ST_BAD_REQUEST, "partitionSpecJson");
}
END_TEST

/* The texts of the reference implementation's own tests, before and since its version 1.11. */
START_TEST(iceberg)
{
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":0,\"content\":\"DATA\",\"file-path\":\"/path/to/"
	      "data-with-stats.parquet\","
	      "\"file-format\":\"PARQUET\",\"partition\":{},\"file-size-in-bytes\":350,"
	      "\"record-count\":10,"
	      "\"column-sizes\":{\"keys\":[3,4],\"values\":[100,200]},"
	      "\"value-counts\":{\"keys\":[3,4],\"values\":[90,180]},"
	      "\"null-value-counts\":{\"keys\":[3,4],\"values\":[10,20]},"
	      "\"nan-value-counts\":{\"keys\":[3,4],\"values\":[0,0]},"
	      "\"lower-bounds\":{\"keys\":[3,4],\"values\":[\"01000000\",\"02000000\"]},"
	      "\"upper-bounds\":{\"keys\":[3,4],\"values\":[\"05000000\",\"0A000000\"]},"
	      "\"split-offsets\":[128,256],\"sort-order-id\":1}");
	ck_assert_int_eq(got.kind, MESSAGE_DATA_FILE);
	text_is(got.file.path, "/path/to/data-with-stats.parquet");
	ck_assert_int_eq(got.file.file_size, 350);
	ck_assert_int_eq(got.file.record_count, 10);
	ck_assert_int_eq(got.file.value_counts[1].field_id, 4);
	ck_assert_int_eq(got.file.value_counts[1].value, 180);
	ck_assert_int_eq(got.file.nan_counts[0].value, 0);
	bytes_are(got.file.upper_bounds[1].value, "0a000000");
	ck_assert_uint_eq(got.file.n_split_offsets, 2);
	ck_assert(got.file.has_sort_order_id);
	ck_assert_int_eq(got.file.sort_order_id, 1);
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":1,\"content\":\"data\",\"file-path\":\"/path/to/data-a.parquet\","
	      "\"file-format\":\"parquet\",\"partition\":[1],\"file-size-in-bytes\":10,"
	      "\"record-count\":1,\"sort-order-id\":0}");
	bytes_are(got.file.partition[0].value, "01000000");
	text_is(got.file.format, "PARQUET");
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":1,\"content\":\"data\",\"file-path\":\"/path/to/data-a.parquet\","
	      "\"file-format\":\"parquet\",\"partition\":{\"1000\":1},\"file-size-in-bytes\":10,"
	      "\"record-count\":1}");
	bytes_are(got.file.partition[0].value, "01000000");
	ck_assert(!got.file.has_sort_order_id);
	/* A null is left out of an object. */
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":1,\"content\":\"data\",\"file-path\":\"/path/to/data-a.parquet\","
	      "\"file-format\":\"parquet\",\"partition\":{},\"file-size-in-bytes\":10,"
	      "\"record-count\":1}");
	ck_assert_uint_eq(got.file.n_partition, 1);
	ck_assert(!got.file.partition[0].has_value);
	/* Dates and times are text here. */
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":2,\"content\":\"data\",\"file-path\":\"/path/to/data-a.parquet\","
	      "\"file-format\":\"parquet\",\"partition\":[1,2,true,\"2022-01-08\","
	      "\"01:00:00.000001\",\"2023-11-14T22:13:20.123456\","
	      "\"1969-12-31T23:59:59.999999+00:00\",1.5,1e300,\"s\",\"00FF\",\"DEAD\","
	      "\"f79fc66e-29e3-4cb9-a5e9-6d2a9b3f1c00\",\"12.34\",\"0.0000001000\","
	      "\"2023-11-14T22:13:20.123456789\"],\"file-size-in-bytes\":10,\"record-count\":1}");
	bytes_are(got.file.partition[3].value, "384a0000");
	bytes_are(got.file.partition[5].value, "40222018240a0600");
	bytes_are(got.file.partition[9].value, "73");
	bytes_are(got.file.partition[10].value, "00ff");
	bytes_are(got.file.partition[14].value, "03e8");
	bytes_are(got.file.partition[15].value, "15cd853dfe9c9717");
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":0,\"content\":\"position-deletes\",\"file-path\":\"/path/to/"
	      "dv.puffin\","
	      "\"file-format\":\"puffin\",\"partition\":[],\"file-size-in-bytes\":1234,"
	      "\"record-count\":9,\"referenced-data-file\":\"/path/to/data.parquet\","
	      "\"content-offset\":4,\"content-size-in-bytes\":40}");
	ck_assert_int_eq(got.kind, MESSAGE_VECTOR);
	ck_assert_int_eq(got.vector.blob->offset, 4);
	text_is(got.vector.data_file, "/path/to/data.parquet");
	takes(RPC_DIALECT_ICEBERG,
	      "{\"spec-id\":1,\"content\":\"POSITION_DELETES\",\"file-path\":"
	      "\"/path/to/"
	      "delete-a.parquet\",\"file-format\":\"PARQUET\",\"partition\":{\"1000\":9},"
	      "\"file-size-in-bytes\":1234,\"record-count\":9}");
	ck_assert_int_eq(got.kind, MESSAGE_DELETE_FILE);
	bytes_are(got.delete_file.partition[0].value, "09000000");
	ck_assert_uint_eq(got.delete_file.n_data_files, 0);
	refuses(RPC_DIALECT_ICEBERG,
		"{\"spec-id\":0,\"content\":\"EQUALITY_DELETES\",\"file-path\":"
		"\"/path/to/"
		"delete-with-stats.parquet\",\"file-format\":\"PARQUET\",\"partition\":{},"
		"\"file-size-in-bytes\":1234,\"record-count\":10,\"equality-ids\":[3]}",
		ST_UNSUPPORTED, "content");
#define ICEBERG_FILE(more)                                                                         \
	"{\"spec-id\":1,\"content\":\"data\",\"file-path\":\"/a.parquet\",\"file-format\":"        \
	"\"parquet\",\"file-size-in-bytes\":10,\"record-count\":1," more "}"
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":[1],\"key-metadata\":\"00\""),
		ST_ENCRYPTED, "key-metadata");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":[1],\"first-row-id\":0"),
		ST_ROW_IDS, "first-row-id");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":[1],\"data-sequence-number\":0"),
		ST_ROW_IDS, "data-sequence-number");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":[1,2]"), ST_TUPLE_MISMATCH,
		"partition");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":{\"1001\":2}"), ST_TUPLE_MISMATCH,
		"partition");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":[\"1\"]"), ST_TUPLE_MISMATCH,
		"partition[0]");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"partition\":7"), ST_TUPLE_MISMATCH,
		"partition");
	refuses(RPC_DIALECT_ICEBERG, ICEBERG_FILE("\"sort-order-id\":0"), ST_TUPLE_MISMATCH,
		"partition");
	refuses(RPC_DIALECT_ICEBERG,
		ICEBERG_FILE("\"partition\":[1],\"value-counts\":{\"keys\":[1],\"values\":[]}"),
		ST_BAD_REQUEST, "value-counts");
	refuses(RPC_DIALECT_ICEBERG,
		ICEBERG_FILE(
			"\"partition\":[1],\"lower-bounds\":{\"keys\":[1],\"values\":[\"0\"]}"),
		ST_BAD_REQUEST, "lower-bounds");
}
END_TEST

/* A table whose spec 1 is identity of one column of this type. */
static void table_of(const char *type)
{
	char to[200];
	ct_close(t);
	ct_open(t, 3, "");
	snprintf(to, sizeof to, "\"name\":\"p\",\"required\":false,\"type\":\"%s\"", type);
	ct_edit(t, "\"name\":\"p\",\"required\":false,\"type\":\"int\"", to);
}

static void gives(const char *hex)
{
	struct content_file f;
	UNIT_OK(check_data_file(t->meta, &got.file, &t->arena, &f, &err), &err);
	ck_assert_uint_eq(f.partition.n, 1);
	bytes_are(f.partition.v[0].b, hex);
}

/* What the reference implementation and the JSON generator of Presto and Trino write for the edge
 * values of every type. */
START_TEST(java)
{
	struct jdoc *d = golden_load("tests/golden/messages_java.json");
	const struct jval *rows = jval_get(jdoc_root(d), "rows");
	size_t n_iceberg = 0, n_engine = 0;
	for (size_t i = 0; i < jval_count(rows); i++) {
		const struct jval *row = jval_at(rows, i);
		struct strv type = golden_str(row, "type"), hex = golden_str(row, "bytes"), text;
		char z[100], want[200];
		ck_assert(strv_cstr(type, z, sizeof z) && strv_cstr(hex, want, sizeof want));
		table_of(z);
		if (jval_as_str(jval_get(row, "iceberg"), &text)) {
			struct rpc_task_message in = {RPC_DIALECT_ICEBERG, strv_bytes(text)};
			UNIT_OK(message_read(t->meta, &in, &t->arena, &got, &err), &err);
			gives(want);
			n_iceberg++;
		}
		if (!jval_as_str(jval_get(row, "engine"), &text))
			continue;
		struct strv copy;
		ck_assert(arena_strv(&t->arena, text, &copy));
		takes(RPC_DIALECT_TRINO, with_tuple(spec_text(1), copy.p));
		gives(want);
		takes(RPC_DIALECT_PRESTO, with_tuple("1", copy.p));
		gives(want);
		n_engine++;
	}
	ck_assert_uint_gt(n_iceberg, 70);
	ck_assert_uint_gt(n_engine, 70);
	jdoc_free(d);
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *from, *to, *field;
		enum status st;
	} edits[] = {
		{"\"path\":", "\"path\":null,\"p\":", "path", ST_BAD_REQUEST},
		{"\"path\":", "\"path\":5,\"p\":", "path", ST_BAD_REQUEST},
		{"t/data/p=7", "t/\\u0000/p=7", "path", ST_BAD_REQUEST},
		{"t/data/p=7", "t/\\ud800/p=7", "", ST_BAD_REQUEST},
		{"PARQUET", "PAR\\u0000", "fileFormat", ST_BAD_REQUEST},
		{"1024", "1024.5", "fileSizeInBytes", ST_BAD_REQUEST},
		{"1024", "\"1024\"", "fileSizeInBytes", ST_BAD_REQUEST},
		{"\"metrics\":{", "\"metrics\":null,\"m\":{", "metrics", ST_BAD_REQUEST},
		{"\"recordCount\":10", "\"recordCount\":0", "metrics.recordCount", ST_BAD_REQUEST},
		{"\"recordCount\":10", "\"recordCount\":-1", "metrics.recordCount", ST_BAD_REQUEST},
		{"\"recordCount\":10", "\"rows\":10", "metrics.recordCount", ST_BAD_REQUEST},
		{"\"2\":48", "\"x\":48", "metrics.columnSizes", ST_BAD_REQUEST},
		{"\"2\":48", "\"2\":\"48\"", "metrics.columnSizes", ST_BAD_REQUEST},
		{"\"2\":48", "\"99999999999\":48", "metrics.columnSizes", ST_BAD_REQUEST},
		{"\"2\":48", "\"1\":48", "", ST_BAD_REQUEST},
		{"BwAAAA==", "BwAAAA", "metrics.lowerBounds", ST_BAD_REQUEST},
		{"\"BwAAAA==\"", "7", "metrics.lowerBounds", ST_BAD_REQUEST},
		{"\"valueCounts\":{", "\"valueCounts\":5,\"v\":{", "metrics.valueCounts",
		 ST_BAD_REQUEST},
		{"\"partitionSpecJson\":0", "\"partitionSpecJson\":null", "partitionSpecJson",
		 ST_BAD_REQUEST},
		{"\"partitionSpecJson\":0", "\"partitionSpecJson\":4294967296", "partitionSpecJson",
		 ST_BAD_REQUEST},
		{"\"PARQUET\"", "null", "fileFormat", ST_BAD_REQUEST},
		{"\"DATA\"", "\"MORE\"", "content", ST_BAD_REQUEST},
		{"\"DATA\"", "0", "content", ST_BAD_REQUEST},
		{"\"DATA\"", "\"EQUALITY_DELETES\"", "content", ST_UNSUPPORTED},
		{"\"sortOrderId\":0", "\"sortOrderId\":\"0\"", "sortOrderId", ST_BAD_REQUEST},
		{"\"sortOrderId\":0", "\"referencedDataFile\":\"x\"", "referencedDataFile",
		 ST_UNSUPPORTED},
		{"\"sortOrderId\":0", "\"rewriteInfo\":{}", "rewriteInfo", ST_UNSUPPORTED},
		{"\"sortOrderId\":0", "\"fileSplitOffsets\":[null]", "fileSplitOffsets",
		 ST_BAD_REQUEST},
		{"\"sortOrderId\":0", "\"partitionDataJson\":7", "partitionDataJson",
		 ST_BAD_REQUEST},
		{"}}", "}", "", ST_BAD_REQUEST},
		{"\"path\":\"s3", "\"path\":\"\xc3", "", ST_BAD_REQUEST},
	};
	static const char base[] = VELOX_FILE("0", "");
	for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
		char text[2000];
		const char *at = strstr(base, edits[i].from);
		ck_assert_msg(at != NULL, "%s", edits[i].from);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - base), base, edits[i].to,
			 at + strlen(edits[i].from));
		refuses(RPC_DIALECT_VELOX, text, edits[i].st, edits[i].field);
	}
	refuses(RPC_DIALECT_VELOX, "", ST_BAD_REQUEST, "");
	refuses(RPC_DIALECT_VELOX, "[]", ST_BAD_REQUEST, "");
	/* A vector without the parts that say where it is. */
#define VECTOR(more)                                                                               \
	"{\"content\":\"POSITION_DELETES\",\"fileFormat\":\"PUFFIN\",\"fileSizeInBytes\":412,"     \
	"\"metrics\":{\"recordCount\":3},\"path\":\"file:///t/x.puffin\"," more "}"
	refuses(RPC_DIALECT_VELOX, VECTOR("\"contentOffset\":4,\"contentSizeInBytes\":5"),
		ST_BAD_REQUEST, "referencedDataFile");
	refuses(RPC_DIALECT_VELOX, VECTOR("\"referencedDataFile\":\"a\",\"contentSizeInBytes\":5"),
		ST_BAD_REQUEST, "contentOffset");
	refuses(RPC_DIALECT_VELOX, VECTOR("\"referencedDataFile\":\"a\",\"contentOffset\":5"),
		ST_BAD_REQUEST, "contentSizeInBytes");
	refuses(RPC_DIALECT_TRINO,
		VECTOR("\"referencedDataFile\":\"a\",\"serializedDeletionVector\":\"A\""),
		ST_BAD_REQUEST, "serializedDeletionVector");
	takes(RPC_DIALECT_VELOX, VECTOR("\"referencedDataFile\":\"a\",\"contentOffset\":4,"
					"\"contentSizeInBytes\":5"));
	ck_assert(!got.has_spec);
}
END_TEST

/* A column that went while the engine was writing: the file keeps the schema that knows it. */
START_TEST(older_schema)
{
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", ""));
	ck_assert_int_eq(got.file.schema_id, 0);
	ct_edit(t, "\"current-schema-id\":0", "\"current-schema-id\":1");
	takes(RPC_DIALECT_VELOX, VELOX_FILE("0", ""));
	ck_assert_int_eq(got.file.schema_id, 0);
	takes(RPC_DIALECT_VELOX, with_tuple("0", ""));
	ck_assert_int_eq(got.file.schema_id, 1);
}
END_TEST

START_TEST(arena_full)
{
	struct rpc_task_message in = {
		.dialect = RPC_DIALECT_VELOX,
		.json = strv_bytes(STRV(VELOX_FILE(
			"1", "\"partitionDataJson\":\"{\\\"partitionValues\\\":[7]}\",")))};
	bool taken = false;
	for (size_t max = 0; !taken; max += 8) {
		struct arena a;
		struct message m;
		arena_init(&a, max);
		enum status st = message_read(t->meta, &in, &a, &m, &err);
		ck_assert(st == ST_OK || st == ST_TOO_LARGE || st == ST_LIMIT);
		taken = st == ST_OK;
		arena_fini(&a);
		ck_assert_uint_lt(max, 65536);
	}
}
END_TEST

START_TEST(expanding)
{
	struct rpc_task_message messages[] = {
		{RPC_DIALECT_VELOX,
		 strv_bytes(STRV(VECTOR("\"referencedDataFile\":\"a\",\"contentOffset\":4,"
					"\"contentSizeInBytes\":5,\"partitionSpecJson\":7")))},
		{RPC_DIALECT_VELOX, strv_bytes(STRV(VELOX_FILE("0", "")))},
		{RPC_DIALECT_PRESTO,
		 strv_bytes(
			 STRV("{\"path\":\"d\",\"fileSizeInBytes\":3,\"metrics\":{"
			      "\"recordCount\":2},\"partitionSpecJson\":0,\"fileFormat\":\"ORC\","
			      "\"content\":\"POSITION_DELETES\"}"))},
		{RPC_DIALECT_VELOX, strv_bytes(STRV("{}"))}};
	struct rpc_data_file file = {.path = STRV("own")};
	struct rpc_delete_vector vector = {.data_file = STRV("own")};
	struct rpc_fragment in = {.fragment_id = STRV("f"),
				  .attempt = 2,
				  .data_files = &file,
				  .n_data_files = 1,
				  .deletes = &vector,
				  .n_deletes = 1,
				  .messages = messages,
				  .n_messages = 3};
	struct expand e;
	UNIT_OK(expand_fragment(t->meta, &in, &t->arena, &e, &err), &err);
	text_is(e.all.fragment_id, "f");
	ck_assert_int_eq(e.all.attempt, 2);
	ck_assert_uint_eq(e.all.n_messages, 0);
	ck_assert_uint_eq(e.all.n_data_files, 2);
	text_is(e.all.data_files[0].path, "own");
	text_is(e.all.data_files[1].path, "s3://bucket//t/data/p=7/0.parquet");
	ck_assert_uint_eq(e.all.n_deletes, 2);
	text_is(e.all.deletes[1].data_file, "a");
	ck_assert(!e.specs[0].has && e.specs[1].has && e.specs[1].id == 7);
	ck_assert_uint_eq(e.all.n_delete_files, 1);
	text_is(e.all.delete_files[0].path, "d");
	err_set(&err, ST_BAD_REQUEST, "x", "y");
	expand_blame_file(&e, 0, &err);
	ck_assert_str_eq(err.field, "data_files[0].x");
	err_set(&err, ST_BAD_REQUEST, "x", "y");
	expand_blame_file(&e, 1, &err);
	ck_assert_str_eq(err.field, "messages[1].x");
	err_set(&err, ST_BAD_REQUEST, "x", "y");
	expand_blame_delete(&e, 1, &err);
	ck_assert_str_eq(err.field, "messages[0].x");
	err_set(&err, ST_BAD_REQUEST, "x", "y");
	expand_blame_delete_file(&e, 0, &err);
	ck_assert_str_eq(err.field, "messages[2].x");
	in.n_messages = 4;
	UNIT_STATUS(expand_fragment(t->meta, &in, &t->arena, &e, &err), ST_BAD_REQUEST);
	ck_assert_str_eq(err.field, "messages[3].content");
	/* Nothing is copied without messages. */
	in.n_messages = 0;
	UNIT_OK(expand_fragment(t->meta, &in, &t->arena, &e, &err), &err);
	ck_assert_ptr_eq(e.all.data_files, &file);
	ck_assert_ptr_null(e.specs);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("message");
	TCase *c = tcase_create("message");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, velox_data);
	tcase_add_test(c, tuples);
	tcase_add_test(c, tuples_refused);
	tcase_add_test(c, velox_vector);
	tcase_add_test(c, presto);
	tcase_add_test(c, trino);
	tcase_add_test(c, iceberg);
	tcase_add_test(c, java);
	tcase_add_test(c, refusals);
	tcase_add_test(c, older_schema);
	tcase_add_test(c, arena_full);
	tcase_add_test(c, expanding);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
