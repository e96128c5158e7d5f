/* Framing of the worker protocol. A frame is
 *
 *   +0   u32  bytes that follow this field: 10 + payload
 *   +4   u8   message type
 *   +5   u8   message version
 *   +6   u32  request id, chosen by the client and returned with the answer
 *   +10  u32  CRC-32C over bytes 0 to 9 and the payload
 *   +14       payload: one Avro record
 *
 * all numbers big-endian. After a frame that is refused the stream cannot be trusted: close it. */
#ifndef PROTO_RPC_FRAME_H
#define PROTO_RPC_FRAME_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

#define FRAME_HEADER 14
/* Largest frame by default, header included. */
#define FRAME_MAX ((size_t)64 << 20)

struct frame {
	uint8_t type;
	uint8_t version;
	uint32_t request_id;
	struct bytes payload;
};

/* Reads one frame from the start of `in`. *ret_used is the frame's size, 0 when `in` holds only a
 * part of it (the rest of *ret_f is then unset). The payload is borrowed from `in`. ST_TOO_LARGE
 * for a length above max_frame as soon as the length is there, ST_BAD_REQUEST for a length below
 * the header's or a wrong checksum. */
MUST_CHECK enum status frame_parse(struct bytes in, size_t max_frame, struct frame *ret_f,
				   size_t *ret_used, struct err *err);

/* Appends a frame in two steps, so that the payload is encoded in place: frame_open returns where
 * the frame starts, frame_close fills in length and checksum. A full buffer poisons it. */
size_t frame_open(struct buf *out, uint8_t type, uint8_t version, uint32_t request_id);
void frame_close(struct buf *out, size_t start);

/* Appends a whole frame. */
void frame_put(struct buf *out, const struct frame *f);

#endif
