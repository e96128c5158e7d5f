/* Manifest entries a second, encoded and decoded: entries with six maps of ten columns and one
 * partition value. Prints one line a codec. Usage: bench_manifest [entries] [rounds] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proto/avro/manifest_list.h"
#include "proto/avro/manifest_write.h"

#define COLUMNS 10
#define LIMIT ((size_t)1 << 31)

struct load {
	struct metric sizes[COLUMNS], counts[COLUMNS], nulls[COLUMNS], nans[COLUMNS];
	struct bound lower[COLUMNS], upper[COLUMNS];
	uint8_t bytes[COLUMNS][8];
	struct value day;
	uint8_t day_bytes[4];
	char path[120];
};

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill(struct load *l, struct manifest_entry *e, size_t i)
{
	for (int32_t c = 0; c < COLUMNS; c++) {
		l->sizes[c] = (struct metric){c + 1, (int64_t)(i * 7919 % 5000000)};
		l->counts[c] = (struct metric){c + 1, 100000};
		l->nulls[c] = (struct metric){c + 1, (int64_t)i % 13};
		l->nans[c] = (struct metric){c + 1, 0};
		put_u64le(l->bytes[c], i * 1000003 + (uint64_t)c);
		l->lower[c] = (struct bound){c + 1, {l->bytes[c], 8}};
		l->upper[c] = (struct bound){c + 1, {l->bytes[c], 8}};
	}
	int n = snprintf(l->path, sizeof l->path,
			 "s3://bucket/warehouse/db/table/data/day=%zu/00000-%zu-a1b2c3d4.parquet",
			 i % 30, i);
	put_u32le(l->day_bytes, (uint32_t)(19000 + i % 30));
	l->day = (struct value){.b = {l->day_bytes, 4}};
	*e = (struct manifest_entry){.status = ENTRY_ADDED,
				     .snapshot_id = SNAPSHOT_NONE,
				     .seq = SEQ_NONE,
				     .file_seq = SEQ_NONE,
				     .file = content_file_empty()};
	struct content_file *f = &e->file;
	f->path = (struct strv){l->path, (size_t)n};
	f->format = STRV("PARQUET");
	f->partition = (struct tuple){&l->day, 1};
	f->record_count = 100000;
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

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	static struct type date = {.kind = TYPE_DATE};
	struct field day = {.id = 1000, .name = STRV("day"), .type = &date};
	struct load *loads = base_calloc(n, sizeof *loads);
	struct manifest_entry *entries = base_calloc(n, sizeof *entries);
	const struct manifest_entry **list = base_calloc(n, sizeof(void *));
	for (size_t i = 0; i < n; i++) {
		fill(&loads[i], &entries[i], i);
		list[i] = &entries[i];
	}
	for (enum codec c = CODEC_NULL; c <= CODEC_DEFLATE; c++) {
		struct manifest_params p = {
			.format_version = 3,
			.schema = STRV("{}"),
			.spec_fields = STRV("[]"),
			.partition = &day,
			.n_partition = 1,
			.snapshot_id = 1,
			.codec = c,
		};
		struct arena a;
		struct buf out;
		struct manifest_file row = {0};
		struct err err = {0};
		double encode = 0, decode = 0;
		size_t memory = 0;
		arena_init(&a, LIMIT);
		buf_init(&out, LIMIT);
		for (size_t r = 0; r < rounds; r++) {
			struct manifest *m = NULL;
			double t = seconds();
			buf_clear(&out);
			if (manifest_write(&p, list, n, &out, &a, &row, &err) != ST_OK)
				return 1;
			encode += seconds() - t;
			row.seq = 1;
			row.first_row_id = 0;
			t = seconds();
			if (manifest_read(buf_bytes(&out), &row, &day, 1, LIMIT, &m, &err) != ST_OK)
				return 1;
			decode += seconds() - t;
			memory = m->arena.used;
			manifest_unref(m);
		}
		double all = (double)(n * rounds);
		printf("manifest %s: encode %.0f entries/s, decode %.0f entries/s, %.0f bytes an "
		       "entry, %.0f in memory\n",
		       codec_name(c), all / encode, all / decode, (double)out.n / (double)n,
		       (double)memory / (double)n);
		buf_fini(&out);
		arena_fini(&a);
	}
	base_free(list);
	base_free(entries);
	base_free(loads);
	return 0;
}
