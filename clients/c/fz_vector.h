/* Writes deletion-vector-v1 blobs (Puffin specification): sets of 64-bit positions as roaring
 * bitmaps with array and bitmap containers, framed by length, magic and CRC-32. */
#ifndef CLIENTS_C_FZ_VECTOR_H
#define CLIENTS_C_FZ_VECTOR_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

/* The format's keys of 32 bits end at 2^31 - 2, so that a reader in Java can hold them. */
#define FZ_VECTOR_MAX_POSITION ((UINT64_C(2147483646) << 32) + UINT64_C(0x80000000))

/* Appends the blob of the set; positions may come in any order and repeat. *ret_cardinality counts
 * distinct ones. ST_ILLEGAL_ARGUMENT with field "positions[i]" above the maximum, ST_TOO_LARGE when
 * the blob would not fit `out` or pass 2 GiB, or memory for the sort is gone. */
MUST_CHECK enum status fz_vector_put(struct buf *out, const uint64_t *positions, size_t n,
				     int64_t *ret_cardinality, struct err *err);

#endif
