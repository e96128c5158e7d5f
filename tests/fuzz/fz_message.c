/* Task messages: any text in every dialect; what is taken must be text that the wire can carry. */
#include <stddef.h>
#include <stdint.h>

#include "daemon/commit/intake/check.h"
#include "daemon/commit/intake/message.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char table[] =
	"{\"format-version\":3,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","
	"\"location\":\"file:///t\",\"last-sequence-number\":0,\"last-updated-ms\":1700000000000,"
	"\"last-column-id\":7,\"current-schema-id\":0,\"schemas\":[{\"type\":\"struct\","
	"\"schema-id\":0,\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":\"long\"}"
	","
	"{\"id\":2,\"name\":\"b\",\"required\":false,\"type\":\"decimal(38, 3)\"},"
	"{\"id\":3,\"name\":\"c\",\"required\":false,\"type\":\"binary\"},"
	"{\"id\":4,\"name\":\"d\",\"required\":false,\"type\":\"timestamp\"},"
	"{\"id\":5,\"name\":\"e\",\"required\":false,\"type\":\"double\"},"
	"{\"id\":6,\"name\":\"f\",\"required\":false,\"type\":\"uuid\"},"
	"{\"id\":7,\"name\":\"g\",\"required\":false,\"type\":\"string\"}]}],"
	"\"default-spec-id\":0,\"partition-specs\":[{\"spec-id\":0,\"fields\":[]},"
	"{\"spec-id\":1,\"fields\":["
	"{\"source-id\":1,\"field-id\":1000,\"name\":\"a\",\"transform\":\"identity\"},"
	"{\"source-id\":2,\"field-id\":1001,\"name\":\"b\",\"transform\":\"identity\"},"
	"{\"source-id\":3,\"field-id\":1002,\"name\":\"c\",\"transform\":\"identity\"},"
	"{\"source-id\":4,\"field-id\":1003,\"name\":\"d\",\"transform\":\"day\"},"
	"{\"source-id\":5,\"field-id\":1004,\"name\":\"e\",\"transform\":\"identity\"},"
	"{\"source-id\":6,\"field-id\":1005,\"name\":\"f\",\"transform\":\"identity\"},"
	"{\"source-id\":7,\"field-id\":1006,\"name\":\"g\",\"transform\":\"void\"}]}],"
	"\"last-partition-id\":1006,\"default-sort-order-id\":0,\"sort-orders\":[{\"order-id\":0,"
	"\"fields\":[]}],\"next-row-id\":0}";

static void laws(const struct metadata *m, const struct message *msg, struct arena *a)
{
	struct rpc_fragment f = {0}, *back;
	struct content_file checked;
	struct buf b;
	switch (msg->kind) {
	case MESSAGE_DATA_FILE:
		f.data_files = (struct rpc_data_file *)(uintptr_t)&msg->file;
		f.n_data_files = 1;
		ASSERT(msg->file.new_row_count == msg->file.record_count);
		if (check_data_file(m, &msg->file, a, &checked, NULL) == ST_OK)
			ASSERT(strv_eq(checked.path, msg->file.path));
		break;
	case MESSAGE_VECTOR:
		f.deletes = (struct rpc_delete_vector *)(uintptr_t)&msg->vector;
		f.n_deletes = 1;
		ASSERT(!msg->vector.blob || !msg->vector.vector.n);
		break;
	case MESSAGE_DELETE_FILE:
		f.delete_files = (struct rpc_delete_file *)(uintptr_t)&msg->delete_file;
		f.n_delete_files = 1;
		break;
	}
	buf_init(&b, 64 << 20);
	msg_encode(&rpc_record_fragment, &f, &b);
	if (buf_ok(&b)) {
		enum status st = msg_decode(&rpc_record_fragment, buf_bytes(&b), a,
					    (const void **)&back, NULL);
		ASSERT(st == ST_OK || st == ST_TOO_LARGE || st == ST_LIMIT);
	}
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct metadata *m;
	if (!m) {
		enum status st = metadata_parse(strv_bytes(strv_of(table)), ST_CORRUPT, &m, NULL);
		ASSERT(st == ST_OK);
	}
	for (int d = RPC_DIALECT_VELOX; d <= RPC_DIALECT_ICEBERG; d++) {
		struct rpc_task_message in = {(enum rpc_dialect)d, {data, size}};
		struct message msg;
		struct arena a;
		struct err err = {0};
		arena_init(&a, 16 << 20);
		if (message_read(m, &in, &a, &msg, &err) == ST_OK)
			laws(m, &msg, &a);
		else
			ASSERT(err.st != ST_OK);
		arena_fini(&a);
	}
	return 0;
}
