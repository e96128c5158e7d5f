/* Manifests of workers, under a small table: what is taken must be complete. */
#include <stddef.h>
#include <stdint.h>

#include "daemon/commit/intake/adopt.h"
#include "proto/iceberg/metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT ((size_t)16 << 20)

static const char table[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"s3://b\",\"last-sequence-number\":0,\"last-updated-ms\":1,"
	"\"last-column-id\":2,\"schemas\":[{\"type\":\"struct\",\"schema-id\":7,\"fields\":["
	"{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"},"
	"{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"string\"}]}],"
	"\"current-schema-id\":7,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},"
	"{\"spec-id\":1,\"fields\":[{\"source-id\":1,\"field-id\":1000,\"name\":\"id_bucket\","
	"\"transform\":\"bucket[4]\"}]}],\"default-spec-id\":0,\"last-partition-id\":1000,"
	"\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"default-sort-order-id\":0,"
	"\"next-row-id\":0}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct metadata *m;
	struct adopted *got = NULL;
	struct err err;
	if (!m)
		ASSERT(metadata_parse(strv_bytes(strv_of(table)), ST_CORRUPT, &m, &err) == ST_OK);
	struct rpc_manifest_ref ref = {STRV("m"), (int64_t)size, 2, 130};
	if (adopt_read((struct bytes){data, size}, &ref, m, LIMIT, &got, &err) == ST_OK) {
		ASSERT(got->n == 2 && got->format_version == 3);
		for (size_t i = 0; i < got->n; i++)
			ASSERT(got->files[i].path.n && got->files[i].record_count > 0);
	}
	adopt_free(got);
	return 0;
}
