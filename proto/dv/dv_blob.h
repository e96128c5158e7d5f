/* The deletion-vector-v1 blob of the Puffin specification: u32 big-endian length of magic and
 * vector, magic D1 D3 39 64, the vector (bitmap64), u32 big-endian CRC-32 of magic and vector. */
#ifndef PROTO_DV_DV_BLOB_H
#define PROTO_DV_DV_BLOB_H

#include "proto/dv/bitmap64.h"

#define DV_BLOB_TYPE "deletion-vector-v1"
#define DV_BLOB_MIN_BYTES 20 /* the empty vector */

/* Appends one blob. ST_LIMIT, field "length", when it would pass 2 GiB or the buffer's maximum;
 * the buffer is then poisoned. */
MUST_CHECK enum status dv_blob_encode(const struct bitmap64 *set, struct buf *out, struct err *err);
/* blob is exactly the manifest's content_size_in_bytes bytes at content_offset. Checks stored
 * length, magic and CRC, then the vector; ST_DV_CORRUPT or ST_LIMIT. Free *ret_set with
 * bitmap64_free. */
MUST_CHECK enum status dv_blob_decode(struct bytes blob, struct bitmap64 **ret_set,
				      struct err *err);
/* ST_DV_CORRUPT, field "record_count", unless the set has exactly that many positions: a vector's
 * record_count in a manifest, its property "cardinality" in Puffin. */
MUST_CHECK enum status dv_blob_check_count(const struct bitmap64 *set, int64_t record_count,
					   struct err *err);
/* ST_POSITION_RANGE, field "positions", when a position is not below the data file's
 * record_count. */
MUST_CHECK enum status dv_blob_check_range(const struct bitmap64 *set, int64_t file_records,
					   struct err *err);

#endif
