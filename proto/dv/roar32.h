/* The portable byte form of one 32-bit Roaring bitmap (Roaring format specification): checking
 * bytes that came from outside, before any library sees them, and rewriting valid bytes into their
 * canonical form. Pure byte work, no Roaring library. */
#ifndef PROTO_DV_ROAR32_H
#define PROTO_DV_ROAR32_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

/* Bytes of an empty bitmap: cookie and a count of zero. */
#define ROAR32_EMPTY_BYTES 8

/* Checks the bitmap that starts at data.p and may be followed by other bytes; *ret_len is what it
 * takes, *ret_cardinality its number of values. Afterwards the bytes are safe for a reader that
 * trusts its input: counts, order and bounds of every container hold. ST_DV_CORRUPT otherwise. */
MUST_CHECK enum status roar32_check(struct bytes data, size_t *ret_len, uint64_t *ret_cardinality,
				    struct err *err);
/* Appends the canonical form of checked bytes (or bytes that the library wrote): arrays up to
 * 4,096 values, else bitmaps; runs only where strictly smaller than that. */
void roar32_canonical(struct bytes valid, struct buf *out);

#endif
