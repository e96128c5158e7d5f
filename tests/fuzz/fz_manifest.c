/* Manifests, under the spec of the seeds: what reads must be writable in version 3 and then read
 * the same. The first byte chooses content and the row's numbers. */
#include <stddef.h>
#include <stdint.h>

#include "proto/avro/manifest_list.h"
#include "proto/avro/manifest_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT ((size_t)16 << 20)

static struct type types[] = {
	{.kind = TYPE_BOOLEAN},
	{.kind = TYPE_INT},
	{.kind = TYPE_LONG},
	{.kind = TYPE_FLOAT},
	{.kind = TYPE_DOUBLE},
	{.kind = TYPE_DATE},
	{.kind = TYPE_TIME},
	{.kind = TYPE_TIMESTAMP},
	{.kind = TYPE_TIMESTAMPTZ},
	{.kind = TYPE_STRING},
	{.kind = TYPE_UUID},
	{.kind = TYPE_BINARY},
	{.kind = TYPE_DECIMAL, .precision = 11, .scale = 2},
	{.kind = TYPE_UNKNOWN},
};
static struct field fields[ARRAY_SIZE(types)];

static void round_trip(const struct manifest *m, const struct manifest_file *row)
{
	struct manifest_params p = {
		.format_version = 3,
		.content = m->content,
		.spec_id = m->spec_id,
		.partition = m->partition,
		.n_partition = m->n_partition,
		.snapshot_id = 7,
	};
	struct arena a;
	struct buf out;
	struct err err;
	struct manifest_file made;
	struct manifest *back = NULL;
	arena_init(&a, LIMIT);
	buf_init(&out, LIMIT);
	const struct manifest_entry **list = arena_calloc(&a, m->n, sizeof(void *));
	for (size_t i = 0; list && i < m->n; i++)
		list[i] = &m->entries[i];
	if (list && m->n && manifest_write(&p, list, m->n, &out, &a, &made, &err) == ST_OK) {
		enum status st = manifest_read(buf_bytes(&out), row, m->partition, m->n_partition,
					       LIMIT, &back, &err);
		ASSERT(st == ST_OK || st == ST_LIMIT);
		for (size_t i = 0; st == ST_OK && i < m->n; i++) {
			const struct manifest_entry *x = &m->entries[i], *y = &back->entries[i];
			ASSERT(x->status == y->status && x->seq == y->seq);
			ASSERT(x->snapshot_id == y->snapshot_id);
			ASSERT(strv_eq(x->file.path, y->file.path));
			ASSERT(tuple_eq(&x->file.partition, &y->file.partition));
			ASSERT(x->file.n_lower == y->file.n_lower);
			ASSERT(x->file.n_split_offsets == y->file.n_split_offsets);
		}
		manifest_unref(back);
	}
	buf_fini(&out);
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct manifest_file row = manifest_file_empty();
	struct manifest *m = NULL;
	struct err err;
	row.content = data[0] & 1 ? MANIFEST_DELETES : MANIFEST_DATA;
	row.seq = data[0] & 2 ? 0 : 34;
	row.added_snapshot_id = 5;
	row.first_row_id = data[0] & 4 ? ROW_ID_NONE : 1000;
	row.spec_id = data[0] & 8 ? 0 : data[0] & 16 ? 4 : 3;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		fields[i] = (struct field){
			.id = 1000 + (int32_t)i, .name = STRV("p"), .type = &types[i]};
	if (manifest_read((struct bytes){data + 1, size - 1}, &row, fields,
			  data[0] & 8 ? 0 : ARRAY_SIZE(fields), LIMIT, &m, &err) == ST_OK)
		round_trip(m, &row);
	manifest_unref(m);
	return 0;
}
