/* JSON mirror of the records in rpc.h: the same names, 64-bit numbers as numbers, bytes and digests
 * as base64, UUIDs as text, symbols by name. Driven by the same descriptors as the binary form. */
#ifndef PROTO_RPC_MSG_JSON_H
#define PROTO_RPC_MSG_JSON_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/rpc/rpc.h"

/* Appends one JSON object; absent optional members are left out. */
void msg_json_encode(const struct rpc_record *record, const void *value, struct buf *out);

/* Decodes one JSON object into a new struct rpc_<record> in the arena, under the same rules as
 * msg_decode. An absent array is empty, an absent member with a default takes it; any other absent
 * or unknown member is ST_BAD_REQUEST. */
MUST_CHECK enum status msg_json_decode(const struct rpc_record *record, struct bytes text,
				       struct arena *a, const void **ret_value, struct err *err);

#endif
