/* A set of row positions: 64 bits wide, kept as a sorted array of {high 32 bits, 32-bit Roaring
 * bitmap}. The only file pair that touches the Roaring library. Pure; a set that is not being
 * changed may be read by several threads. Byte form: "64-bit portable" of the Roaring format
 * specification, as the Puffin specification uses it for deletion-vector-v1. */
#ifndef PROTO_DV_BITMAP64_H
#define PROTO_DV_BITMAP64_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

/* Highest position that the reference implementation takes: key 2^31 - 2, low half 2^31. */
#define BITMAP64_MAX_POSITION (((uint64_t)2147483646 << 32) + UINT64_C(0x80000000))
/* Our own limit on the number of distinct high halves; a data file has one or two. */
#define BITMAP64_MAX_KEYS ((size_t)1 << 20)
/* Encoded bytes, at most: a signed 32-bit length in the reference implementation. */
#define BITMAP64_MAX_BYTES ((size_t)INT32_MAX - 12)
/* Written with every key from 0 to the highest, as the reference implementation does, up to this
 * highest key; above it only the keys in use, which every reader accepts too. */
#define BITMAP64_DENSE_KEY 64

struct bitmap64;

/* Never NULL; the set is empty. Free with bitmap64_free, which accepts NULL. */
struct bitmap64 *bitmap64_new(void);
void bitmap64_free(struct bitmap64 *own_set);
struct bitmap64 *bitmap64_clone(const struct bitmap64 *set);

/* ST_LIMIT, field "position", above BITMAP64_MAX_POSITION or BITMAP64_MAX_KEYS; the set is then
 * unchanged. Adding what is there already is no error. */
MUST_CHECK enum status bitmap64_add(struct bitmap64 *set, uint64_t pos, struct err *err);
/* Adds first .. end - 1; nothing when end <= first. A range may cross high halves. */
MUST_CHECK enum status bitmap64_add_range(struct bitmap64 *set, uint64_t first, uint64_t end,
					  struct err *err);
bool bitmap64_contains(const struct bitmap64 *set, uint64_t pos);
uint64_t bitmap64_cardinality(const struct bitmap64 *set);
bool bitmap64_empty(const struct bitmap64 *set);
/* false when the set is empty. */
bool bitmap64_max(const struct bitmap64 *set, uint64_t *ret_pos);
bool bitmap64_equal(const struct bitmap64 *a, const struct bitmap64 *b);
/* Rough heap bytes, for cache budgets. */
size_t bitmap64_memory(const struct bitmap64 *set);

/* set ∪= others[0..n). One pass per key, so that many small sets cost little each. Entries may
 * not be `set` itself. ST_LIMIT above BITMAP64_MAX_KEYS, the set then unchanged. */
MUST_CHECK enum status bitmap64_union(struct bitmap64 *set, const struct bitmap64 *const *others,
				      size_t n, struct err *err);
/* set −= other. */
void bitmap64_subtract(struct bitmap64 *set, const struct bitmap64 *other);
/* set ∩= other. */
void bitmap64_intersect(struct bitmap64 *set, const struct bitmap64 *other);
/* |a ∩ b| without building it. */
uint64_t bitmap64_common(const struct bitmap64 *a, const struct bitmap64 *b);
/* The lowest position in both; false when there is none. */
bool bitmap64_first_common(const struct bitmap64 *a, const struct bitmap64 *b, uint64_t *ret_pos);

/* Copies up to cap positions that are >= from, ascending, into out; returns how many. The next
 * page starts at out[returned - 1] + 1. */
size_t bitmap64_read(const struct bitmap64 *set, uint64_t from, uint64_t *out, size_t cap);

/* Appends the canonical bytes: a function of the set alone, not of how it was built. Containers
 * are arrays up to 4,096 values, else bitmaps, and become runs only where that is strictly
 * smaller: byte for byte what the reference implementation writes for positions that were added
 * one by one. A full buffer shows in buf_ok. */
void bitmap64_encode(const struct bitmap64 *set, struct buf *out);
/* Takes array, bitmap and run containers, sparse and dense keys in any order. Everything that the
 * format leaves no room for is ST_DV_CORRUPT (a limit of ours: ST_LIMIT) with a field such as
 * "bitmap[2].container[7].values"; no byte may be left over. */
MUST_CHECK enum status bitmap64_decode(struct bytes data, struct bitmap64 **ret_set,
				       struct err *err);

#endif
