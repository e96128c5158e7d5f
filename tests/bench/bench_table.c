/* Writes the metadata of a table of many files, which need not exist, for a daemon to register: one
 * snapshot, FILES data files with six maps of ten columns, PER of them a manifest, 30 partitions.
 * Prints the path of the metadata file. Usage: bench_table FOLDER FILES [PER] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/avro/manifest_list.h"
#include "proto/avro/manifest_write.h"

#define COLUMNS 10
#define LIMIT ((size_t)1 << 31)
#define RECORDS 100000
#define DAYS 30
#define SNAPSHOT 77
#define SPEC_FIELDS                                                                                \
	"[{\"name\":\"day\",\"transform\":\"identity\",\"source-id\":11,\"field-id\":1000}]"

struct load {
	struct metric sizes[COLUMNS], counts[COLUMNS], nulls[COLUMNS], nans[COLUMNS];
	struct bound lower[COLUMNS], upper[COLUMNS];
	uint8_t bytes[COLUMNS][8];
	struct value day;
	uint8_t day_bytes[4];
	char path[400];
};

static void fill(struct load *l, struct manifest_entry *e, size_t i, const char *folder)
{
	for (int32_t c = 0; c < COLUMNS; c++) {
		l->sizes[c] = (struct metric){c + 1, (int64_t)(i * 7919 % 5000000)};
		l->counts[c] = (struct metric){c + 1, RECORDS};
		l->nulls[c] = (struct metric){c + 1, (int64_t)i % 13};
		l->nans[c] = (struct metric){c + 1, 0};
		put_u64le(l->bytes[c], i * 1000003 + (uint64_t)c);
		l->lower[c] = (struct bound){c + 1, {l->bytes[c], 8}};
		l->upper[c] = (struct bound){c + 1, {l->bytes[c], 8}};
	}
	int n = snprintf(l->path, sizeof l->path, "file://%s/data/day=%zu/00000-%zu-a1b2c3d4.parquet",
			 folder, i % DAYS, i);
	put_u32le(l->day_bytes, (uint32_t)(19000 + i % DAYS));
	l->day = (struct value){.b = {l->day_bytes, 4}};
	*e = (struct manifest_entry){.status = ENTRY_ADDED,
				     .snapshot_id = SNAPSHOT,
				     .seq = SEQ_NONE,
				     .file_seq = SEQ_NONE,
				     .file = content_file_empty()};
	struct content_file *f = &e->file;
	f->path = (struct strv){l->path, (size_t)n};
	f->format = STRV("PARQUET");
	f->partition = (struct tuple){&l->day, 1};
	f->record_count = RECORDS;
	f->file_size = 12345678;
	f->column_sizes = l->sizes;
	f->value_counts = l->counts;
	f->null_counts = l->nulls;
	f->nan_counts = l->nans;
	f->lower = l->lower;
	f->upper = l->upper;
	f->n_column_sizes = f->n_value_counts = f->n_null_counts = f->n_nan_counts = COLUMNS;
	f->n_lower = f->n_upper = COLUMNS;
}

static void save(const char *path, struct buf *b)
{
	FILE *f = fopen(path, "wb");
	struct bytes data = buf_bytes(b);
	if (!f || fwrite(data.p, 1, data.n, f) != data.n || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	buf_clear(b);
}

static void schema(struct buf *b)
{
	buf_printf(b, "{\"type\":\"struct\",\"schema-id\":0,\"fields\":[");
	for (int c = 1; c <= COLUMNS; c++)
		buf_printf(b, "{\"id\":%d,\"name\":\"c%d\",\"required\":false,\"type\":\"long\"},", c,
			   c);
	buf_printf(b, "{\"id\":11,\"name\":\"day\",\"required\":false,\"type\":\"date\"}]}");
}

static void metadata(struct buf *b, const char *folder, struct strv schema_json, size_t files)
{
	int64_t rows = (int64_t)files * RECORDS, ms = 1700000000000;
	buf_printf(b,
		   "{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-%012zx\","
		   "\"location\":\"file://%s\",\"last-sequence-number\":1,"
		   "\"last-updated-ms\":%" PRId64 ",\"last-column-id\":11,\"current-schema-id\":0,"
		   "\"schemas\":[%.*s],\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,"
		   "\"fields\":" SPEC_FIELDS "}],\"last-partition-id\":1000,"
		   "\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],"
		   "\"next-row-id\":%" PRId64 ",\"current-snapshot-id\":%d,"
		   "\"refs\":{\"main\":{\"type\":\"branch\",\"snapshot-id\":%d}},\"snapshots\":[{"
		   "\"snapshot-id\":%d,\"sequence-number\":1,\"timestamp-ms\":%" PRId64 ","
		   "\"manifest-list\":\"file://%s/metadata/snap.avro\",\"schema-id\":0,"
		   "\"first-row-id\":0,\"added-rows\":%" PRId64 ",\"summary\":{"
		   "\"operation\":\"append\",\"total-records\":\"%" PRId64 "\","
		   "\"total-data-files\":\"%zu\",\"total-delete-files\":\"0\","
		   "\"total-position-deletes\":\"0\",\"total-equality-deletes\":\"0\","
		   "\"total-files-size\":\"0\"}}]}",
		   files, folder, ms, STRV_ARG(schema_json), rows, SNAPSHOT, SNAPSHOT, SNAPSHOT, ms,
		   folder, rows, rows, files);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *folder = argv[1];
	size_t n = strtoul(argv[2], NULL, 10), per = argc > 3 ? strtoul(argv[3], NULL, 10) : 10000;
	static struct type date = {.kind = TYPE_DATE};
	struct field day = {.id = 1000, .name = STRV("day"), .type = &date};
	size_t n_rows = (n + per - 1) / per;
	struct load *loads = base_calloc(per, sizeof *loads);
	struct manifest_entry *entries = base_calloc(per, sizeof *entries);
	const struct manifest_entry **list = base_calloc(per, sizeof(struct manifest_entry *));
	struct manifest_file *rows = base_calloc(n_rows, sizeof *rows);
	struct arena a;
	struct buf out, text;
	struct err err = {0};
	char path[512];
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	buf_init(&text, LIMIT);
	schema(&text);
	struct manifest_params p = {.format_version = 3,
				    .schema = buf_strv(&text),
				    .spec_fields = STRV(SPEC_FIELDS),
				    .partition = &day,
				    .n_partition = 1,
				    .snapshot_id = SNAPSHOT,
				    .codec = CODEC_DEFLATE};
	for (size_t r = 0; r < n_rows; r++) {
		size_t many = n - r * per < per ? n - r * per : per;
		for (size_t i = 0; i < many; i++) {
			fill(&loads[i], &entries[i], r * per + i, folder);
			list[i] = &entries[i];
		}
		if (manifest_write(&p, list, many, &out, &a, &rows[r], &err) != ST_OK)
			return 1;
		snprintf(path, sizeof path, "%s/metadata/m%zu.avro", folder, r);
		save(path, &out);
		char *uri = arena_printf(&a, "file://%s", path);
		/* The entries, into which the summaries point, are filled anew. */
		struct manifest_file row = rows[r];
		if (!uri || !manifest_file_copy(&a, &row, &rows[r]))
			return 1;
		rows[r].path = strv_of(uri);
		rows[r].seq = rows[r].min_seq = 1;
		rows[r].added_snapshot_id = SNAPSHOT;
		rows[r].first_row_id = (int64_t)(r * per) * RECORDS;
	}
	struct manifest_list_params lp = {.format_version = 3,
					  .snapshot_id = SNAPSHOT,
					  .parent_snapshot_id = SNAPSHOT_NONE,
					  .seq = 1,
					  .first_row_id = 0,
					  .codec = CODEC_DEFLATE};
	if (manifest_list_write(&lp, rows, n_rows, &out, &err) != ST_OK)
		return 1;
	snprintf(path, sizeof path, "%s/metadata/snap.avro", folder);
	save(path, &out);
	metadata(&out, folder, buf_strv(&text), n);
	snprintf(path, sizeof path, "%s/metadata/v1.metadata.json", folder);
	save(path, &out);
	printf("file://%s\n", path);
	buf_fini(&text);
	buf_fini(&out);
	arena_fini(&a);
	base_free(rows);
	base_free(list);
	base_free(entries);
	base_free(loads);
	return 0;
}
