/* The binary encoding of Avro's primitives ("Binary Encoding" of the Avro spec): zig-zag varints,
 * length-prefixed bytes, little-endian floats. Readers check every length against the bytes left.
 * Inline, because a manifest entry is some two hundred of these. */
#ifndef PROTO_AVRO_AVRO_BIN_H
#define PROTO_AVRO_AVRO_BIN_H

#include "proto/base/buf.h"

#define AVRO_BIN_LONG_MAX 10 /* bytes of the longest varint */

struct avro_in {
	const uint8_t *p, *end;
};

static inline struct avro_in avro_bin_in(struct bytes b)
{
	return (struct avro_in){b.p, b.p + b.n};
}
static inline size_t avro_bin_left(const struct avro_in *in)
{
	return (size_t)(in->end - in->p);
}

/* false when the input ends early or the number has more than 64 bits. */
static inline bool avro_bin_get_long(struct avro_in *in, int64_t *ret_v)
{
	uint64_t z = 0;
	const uint8_t *p = in->p;
	for (unsigned shift = 0; p < in->end && shift < 64; shift += 7) {
		uint8_t c = *p++;
		if (shift == 63 && c > 1)
			return false;
		z |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			in->p = p;
			*ret_v = (int64_t)(z >> 1) ^ -(int64_t)(z & 1);
			return true;
		}
	}
	return false;
}
static inline bool avro_bin_get_int(struct avro_in *in, int32_t *ret_v)
{
	int64_t v = 0;
	if (!avro_bin_get_long(in, &v) || v < INT32_MIN || v > INT32_MAX)
		return false;
	*ret_v = (int32_t)v;
	return true;
}
/* The view points into the input. */
static inline bool avro_bin_get_fixed(struct avro_in *in, size_t n, struct bytes *ret_b)
{
	if (n > avro_bin_left(in))
		return false;
	*ret_b = (struct bytes){in->p, n};
	in->p += n;
	return true;
}
static inline bool avro_bin_get_bytes(struct avro_in *in, struct bytes *ret_b)
{
	int64_t n = 0;
	if (!avro_bin_get_long(in, &n) || n < 0 || (uint64_t)n > avro_bin_left(in))
		return false;
	return avro_bin_get_fixed(in, (size_t)n, ret_b);
}

static inline void avro_bin_put_long(struct buf *b, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	uint8_t tmp[AVRO_BIN_LONG_MAX];
	size_t n = 0;
	for (; z > 0x7f; z >>= 7)
		tmp[n++] = (uint8_t)(z | 0x80);
	tmp[n++] = (uint8_t)z;
	if (!b->failed && b->cap - b->n >= n) {
		memcpy(b->p + b->n, tmp, n);
		b->n += n;
	} else {
		buf_put(b, tmp, n);
	}
}
static inline void avro_bin_put_bytes(struct buf *b, struct bytes v)
{
	avro_bin_put_long(b, (int64_t)v.n);
	buf_put(b, v.p, v.n);
}

#endif
