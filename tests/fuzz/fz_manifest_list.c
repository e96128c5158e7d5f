/* Manifest lists: what reads must be writable in its version and then read the same. */
#include <stddef.h>
#include <stdint.h>

#include "proto/avro/manifest_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct manifest_list *list, struct arena *a)
{
	struct manifest_list_params p = {
		.format_version = 1,
		.snapshot_id = 1,
		.parent_snapshot_id = SNAPSHOT_NONE,
	};
	struct manifest_list back;
	struct buf out;
	struct err err;
	if (list->n == 0)
		return;
	for (p.format_version = 1; p.format_version <= 3; p.format_version++) {
		buf_init(&out, (size_t)8 << 20);
		/* Rows of another version, without counts or row ids are refused, which is fine. */
		if (manifest_list_write(&p, list->rows, list->n, &out, &err) == ST_OK) {
			enum status st = manifest_list_read(buf_bytes(&out), a, &back, &err);
			ASSERT(st == ST_OK || st == ST_LIMIT);
			for (size_t i = 0; st == ST_OK && i < list->n; i++) {
				const struct manifest_file *x = &list->rows[i], *y = &back.rows[i];
				ASSERT(strv_eq(x->path, y->path) && x->length == y->length);
				ASSERT(x->content == y->content && x->spec_id == y->spec_id);
				ASSERT(x->n_partitions == y->n_partitions);
			}
		}
		buf_fini(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct manifest_list list = {0};
	struct err err;
	arena_init(&a, (size_t)16 << 20);
	if (manifest_list_read((struct bytes){data, size}, &a, &list, &err) == ST_OK)
		again(&list, &a);
	arena_fini(&a);
	return 0;
}
