/* Arbitrary JSON as the body of a table commit, applied to nothing and to a small table: whatever
 * is accepted leaves metadata that can be read again, and the base as it was. */
#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char table[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"s3://b/t\",\"last-sequence-number\":2,\"last-updated-ms\":1700000000004,"
	"\"last-column-id\":2,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\",\"schema-"
	"id\":0,"
	"\"fields\":[{\"id\":1,\"name\":\"x\",\"required\":true,\"type\":\"long\"},"
	"{\"id\":2,\"name\":\"y\",\"required\":false,\"type\":\"date\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[{\"name\":\"x\","
	"\"transform\":\"identity\",\"source-id\":1,\"field-id\":1000}]}],\"last-partition-id\":"
	"1000,"
	"\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],"
	"\"properties\":{},"
	"\"current-snapshot-id\":2,\"next-row-id\":10,\"refs\":{\"main\":{\"snapshot-id\":2,"
	"\"type\":"
	"\"branch\"},\"t\":{\"snapshot-id\":1,\"type\":\"tag\"}},\"snapshots\":[{\"sequence-"
	"number\":1,"
	"\"snapshot-id\":1,\"timestamp-ms\":1700000000001,\"manifest-list\":\"a\",\"schema-id\":0,"
	"\"first-row-id\":0,\"added-rows\":5},{\"sequence-number\":2,\"snapshot-id\":2,"
	"\"parent-snapshot-id\":1,\"timestamp-ms\":1700000000002,\"manifest-list\":\"b\",\"schema-"
	"id\":0,"
	"\"first-row-id\":5,\"added-rows\":5}],\"snapshot-log\":[{\"timestamp-ms\":1700000000001,"
	"\"snapshot-id\":1},{\"timestamp-ms\":1700000000002,\"snapshot-id\":2}]}";

static void apply(const struct metadata *base, const struct update *u, size_t n)
{
	struct metadata_ctx ctx = {.now_ms = 1700000000009, .base_location = STRV("s3://b/1-x")};
	struct metadata *m, *copy;
	bool changed;
	struct buf b;
	if (metadata_apply(base, u, n, &ctx, &m, &changed, NULL) != ST_OK)
		return;
	ASSERT(changed || m == base);
	buf_init(&b, METADATA_MAX_BYTES);
	metadata_json(m, &b);
	enum status st = metadata_parse(buf_bytes(&b), ST_CORRUPT, &copy, NULL);
	ASSERT(st == ST_OK);
	if (base) {
		ASSERT(metadata_last_column_id(m) >= metadata_last_column_id(base));
		ASSERT(metadata_last_partition_id(m) >= metadata_last_partition_id(base));
		ASSERT(metadata_last_sequence_number(m) >= metadata_last_sequence_number(base));
		ASSERT(metadata_next_row_id(m) >= metadata_next_row_id(base));
	}
	metadata_unref(copy);
	metadata_unref(m);
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metadata *base;
	struct jdoc *doc;
	struct arena a;
	const struct update *u;
	const struct requirement *r;
	size_t n;
	if (jdoc_parse((struct bytes){data, size}, ST_BAD_REQUEST, &doc, NULL) != ST_OK)
		return 0;
	enum status st = metadata_parse(strv_bytes(strv_of(table)), ST_CORRUPT, &base, NULL);
	ASSERT(st == ST_OK);
	arena_init(&a, (size_t)16 << 20);
	const struct jval *root = jdoc_root(doc);
	if (requirement_parse(jval_get(root, "requirements"), &a, &r, &n, NULL) == ST_OK) {
		(void)!requirement_check(r, n, base, NULL);
		(void)!requirement_check(r, n, NULL, NULL);
	}
	if (update_parse(jval_is_array(root) ? root : jval_get(root, "updates"), &a, &u, &n,
			 NULL) == ST_OK) {
		apply(base, u, n);
		apply(NULL, u, n);
	}
	arena_fini(&a);
	metadata_unref(base);
	jdoc_free(doc);
	return 0;
}
