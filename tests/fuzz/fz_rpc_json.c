/* Messages in JSON form: the first byte picks the message. What decodes comes back the same by way
 * of its Avro form. */
#include "proto/rpc/msg.h"
#include "proto/rpc/msg_json.h"

#define ARENA ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const struct rpc_message *m = rpc_message_of(data[0] % 21);
	if (!m)
		return 0;
	struct arena a, again;
	struct err err = {0};
	const void *v, *w;
	arena_init(&a, ARENA);
	if (msg_json_decode(m->record, (struct bytes){data + 1, size - 1}, &a, &v, &err) == ST_OK) {
		struct buf one, two;
		buf_init(&one, SIZE_MAX);
		buf_init(&two, SIZE_MAX);
		msg_encode(m->record, v, &one);
		arena_init(&again, SIZE_MAX);
		ASSERT(msg_decode(m->record, buf_bytes(&one), &again, &w, &err) == ST_OK);
		msg_encode(m->record, w, &two);
		ASSERT(bytes_eq(buf_bytes(&one), buf_bytes(&two)));
		buf_fini(&two);
		buf_fini(&one);
		arena_fini(&again);
	}
	arena_fini(&a);
	return 0;
}
