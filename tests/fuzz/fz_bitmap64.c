/* Vectors: whatever is taken must come back from its canonical bytes, and every operation on it
 * must hold. The first two bytes (little-endian) are the length of the first of two
 * vectors. */
#include <stddef.h>
#include <stdint.h>

#include "proto/dv/bitmap64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bitmap64 *round_trip(const struct bitmap64 *s)
{
	struct buf out;
	struct bitmap64 *back = NULL;
	buf_init(&out, 256 << 20);
	bitmap64_encode(s, &out);
	ASSERT(buf_ok(&out));
	enum status st = bitmap64_decode(buf_bytes(&out), &back, NULL);
	ASSERT(st == ST_OK);
	ASSERT(bitmap64_equal(s, back));
	ASSERT(bitmap64_cardinality(s) == bitmap64_cardinality(back));
	buf_fini(&out);
	return back;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t cut = get_u16le(data);
	cut = cut < size - 2 ? cut : size - 2;
	struct bitmap64 *a = NULL, *b = NULL;
	struct err err;
	data += 2;
	size -= 2;
	if (bitmap64_decode((struct bytes){data, cut}, &a, &err) != ST_OK)
		a = NULL;
	if (bitmap64_decode((struct bytes){data + cut, size - cut}, &b, &err) != ST_OK)
		b = NULL;
	if (a)
		bitmap64_free(round_trip(a));
	if (a && b) {
		uint64_t first, common = bitmap64_common(a, b);
		ASSERT(bitmap64_first_common(a, b, &first) == (common > 0));
		ASSERT(common == 0 || (bitmap64_contains(a, first) && bitmap64_contains(b, first)));
		struct bitmap64 *u = bitmap64_clone(a), *d = bitmap64_clone(a),
				*i = bitmap64_clone(a);
		const struct bitmap64 *const others[] = {b, b};
		ASSERT(bitmap64_union(u, others, 2, &err) == ST_OK);
		uint64_t na = bitmap64_cardinality(a), nb = bitmap64_cardinality(b);
		ASSERT(bitmap64_cardinality(u) == na + nb - common);
		bitmap64_subtract(d, b);
		ASSERT(bitmap64_cardinality(d) == na - common);
		ASSERT(bitmap64_common(d, b) == 0);
		bitmap64_intersect(i, b);
		ASSERT(bitmap64_cardinality(i) == common);
		bitmap64_free(round_trip(u));
		bitmap64_free(round_trip(d));
		bitmap64_free(round_trip(i));
		bitmap64_free(u);
		bitmap64_free(d);
		bitmap64_free(i);
	}
	bitmap64_free(a);
	bitmap64_free(b);
	return 0;
}
