/* Messages in Avro form: the first byte picks the message. What decodes must encode to bytes that
 * decode to the same encoding again, and its JSON form must come back as the same message. */
#include "proto/rpc/msg.h"
#include "proto/rpc/msg_json.h"

#define ARENA ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct rpc_record *r, const void *v, struct buf *ret_b)
{
	buf_init(ret_b, SIZE_MAX);
	msg_encode(r, v, ret_b);
	ASSERT(buf_ok(ret_b));
}

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
	if (msg_decode(m->record, (struct bytes){data + 1, size - 1}, &a, &v, &err) == ST_OK) {
		struct buf one, two, json;
		encode(m->record, v, &one);
		arena_init(&again, SIZE_MAX);
		ASSERT(msg_decode(m->record, buf_bytes(&one), &again, &w, &err) == ST_OK);
		encode(m->record, w, &two);
		ASSERT(bytes_eq(buf_bytes(&one), buf_bytes(&two)));
		buf_init(&json, SIZE_MAX);
		msg_json_encode(m->record, v, &json);
		ASSERT(msg_json_decode(m->record, buf_bytes(&json), &again, &w, &err) == ST_OK);
		buf_fini(&two);
		encode(m->record, w, &two);
		ASSERT(bytes_eq(buf_bytes(&one), buf_bytes(&two)));
		struct digest d;
		if (m->type == RPC_MSG_STAGE)
			ASSERT(msg_fragment_digest(&((const struct rpc_stage *)v)->fragment, &d));
		buf_fini(&json);
		buf_fini(&two);
		buf_fini(&one);
		arena_fini(&again);
	}
	arena_fini(&a);
	return 0;
}
