/* Avro binary form of the records in rpc.h (Avro specification, "Binary Encoding"), driven by their
 * descriptors. An optional field is the union ["null", T], a UUID is fixed(16), a digest fixed(32).
 * Nothing of a decoded record points into the input. */
#ifndef PROTO_RPC_MSG_H
#define PROTO_RPC_MSG_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/rpc/rpc.h"

/* Longest text and byte value, most items of one array; a frame's size bounds them as well. */
#define MSG_TEXT_MAX ((size_t)16 << 20)
#define MSG_BYTES_MAX ((size_t)64 << 20)
#define MSG_ITEMS_MAX ((size_t)1 << 20)

/* Appends the canonical encoding: arrays are one block with its count, or none when empty.
 * `value` is a struct rpc_<record>. */
void msg_encode(const struct rpc_record *record, const void *value, struct buf *out);

/* Decodes exactly `in` into a new struct rpc_<record> in the arena. ST_BAD_REQUEST names the field
 * for bytes that are missing or left over, a bad union branch, symbol or boolean, a number out of
 * range, text that is not UTF-8 or holds U+0000; ST_TOO_LARGE for what passes a limit or the
 * arena's. */
MUST_CHECK enum status msg_decode(const struct rpc_record *record, struct bytes in, struct arena *a,
				  const void **ret_value, struct err *err);

/* The digest that stands in a fragment: SHA-256 over the canonical encoding of data_files, deletes,
 * delete_files, messages and manifests, one after the other. false when memory is gone. */
MUST_CHECK bool msg_fragment_digest(const struct rpc_fragment *f, struct digest *ret_d);

#endif
