/* Arbitrary bytes as a metadata file. What is accepted must be written and read back to the same
 * text, must answer every accessor, and must take an append. */
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append(const struct metadata *m)
{
	struct snapshot s = {
		.snapshot_id = 77,
		.parent_id = metadata_current_snapshot_id(m),
		.sequence_number = 0,
		.timestamp_ms = metadata_last_updated_ms(m),
		.schema_id = metadata_current_schema_id(m),
		.first_row_id = ROW_ID_NONE,
		.added_rows = ROW_ID_NONE,
		.manifest_list = STRV("m"),
		.operation = STRV("append"),
	};
	if (metadata_format_version(m) >= 2 &&
	    !add_i64(metadata_last_sequence_number(m), 1, &s.sequence_number))
		return;
	if (metadata_format_version(m) >= 3) {
		s.first_row_id = metadata_next_row_id(m);
		s.added_rows = 1;
	}
	struct update u[] = {
		{.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = &s},
		{.kind = UPDATE_SET_SNAPSHOT_REF,
		 .u.ref = {.name = SNAPSHOT_REF_MAIN, .snapshot_id = s.snapshot_id}},
	};
	struct metadata_ctx ctx = {.now_ms = 1, .base_location = STRV("s3://b/1-x")};
	struct metadata *next;
	bool changed;
	if (metadata_apply(m, u, ARRAY_SIZE(u), &ctx, &next, &changed, NULL) != ST_OK)
		return;
	ASSERT(changed && metadata_current_snapshot_id(next) == 77);
	ASSERT(metadata_last_updated_ms(next) >= metadata_last_updated_ms(m));
	metadata_unref(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metadata *m, *copy;
	struct buf b, again;
	if (metadata_parse((struct bytes){data, size}, ST_CORRUPT, &m, NULL) != ST_OK)
		return 0;
	buf_init(&b, METADATA_MAX_BYTES);
	buf_init(&again, METADATA_MAX_BYTES);
	metadata_json(m, &b);
	ASSERT(buf_ok(&b));
	enum status st = metadata_parse(buf_bytes(&b), ST_CORRUPT, &copy, NULL);
	ASSERT(st == ST_OK);
	metadata_json(copy, &again);
	ASSERT(bytes_eq(buf_bytes(&b), buf_bytes(&again)));
	ASSERT(metadata_schema(m) && metadata_spec(m) && metadata_sort_order(m));
	for (size_t i = 0; i < metadata_snapshot_count(m); i++) {
		const struct snapshot *s = metadata_snapshot_at(m, i);
		ASSERT(metadata_snapshot(m, s->snapshot_id) == s);
		(void)metadata_is_ancestor(m, metadata_snapshot_at(m, 0)->snapshot_id,
					   s->snapshot_id);
	}
	append(m);
	metadata_unref(m);
	metadata_unref(copy);
	buf_fini(&b);
	buf_fini(&again);
	return 0;
}
