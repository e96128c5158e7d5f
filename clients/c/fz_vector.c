#include "clients/c/fz_vector.h"

#include <stdlib.h>

#include "clients/c/fz_error.h"
#include "proto/base/digest.h"

#define COOKIE_PLAIN 12346 /* no run containers; an offset for each container */
#define ARRAY_MAX 4096     /* members above which a bitmap is the smaller container */
#define BITMAP_BYTES 8192

static const uint8_t magic[4] = {0xd1, 0xd3, 0x39, 0x64};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Sorted distinct positions in memory of their own, or NULL. */
static uint64_t *sorted(const uint64_t *positions, size_t n, size_t *ret_n)
{
	size_t size;
	if (!mul_size(n, sizeof *positions, &size))
		return NULL;
	uint64_t *v = malloc(size ? size : 1);
	if (!v)
		return NULL;
	bool ascending = true;
	for (size_t i = 0; i < n; i++) {
		v[i] = positions[i];
		ascending = ascending && (i == 0 || v[i - 1] <= v[i]);
	}
	if (!ascending)
		qsort(v, n, sizeof *v, by_value);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || v[kept - 1] != v[i])
			v[kept++] = v[i];
	*ret_n = kept;
	return v;
}

static void put_u16(struct buf *b, uint16_t v)
{
	uint8_t *p = buf_room(b, 2);
	if (p)
		put_u16le(p, v);
}

static void put_u32(struct buf *b, uint32_t v)
{
	uint8_t *p = buf_room(b, 4);
	if (p)
		put_u32le(p, v);
}

/* How many of v[0..n) share their bits above `shift` with the first. */
static size_t group(const uint64_t *v, size_t n, int shift)
{
	size_t i = 1;
	while (i < n && v[i] >> shift == v[0] >> shift)
		i++;
	return i;
}

static size_t container_bytes(size_t members)
{
	return members <= ARRAY_MAX ? 2 * members : BITMAP_BYTES;
}

static void put_container(struct buf *b, const uint64_t *v, size_t n)
{
	if (n <= ARRAY_MAX) {
		for (size_t i = 0; i < n; i++)
			put_u16(b, (uint16_t)v[i]);
		return;
	}
	uint8_t *bits = buf_room(b, BITMAP_BYTES);
	if (!bits)
		return;
	memset(bits, 0, BITMAP_BYTES);
	for (size_t i = 0; i < n; i++) {
		uint16_t low = (uint16_t)v[i];
		bits[low >> 3] = (uint8_t)(bits[low >> 3] | 1u << (low & 7));
	}
}

/* The portable form of one 32-bit bitmap: cookie, count, keys with members less one, offsets from
 * its start, containers. */
static void put_bitmap32(struct buf *b, const uint64_t *v, size_t n)
{
	size_t containers = 0, k;
	for (size_t i = 0; i < n; i += group(v + i, n - i, 16))
		containers++;
	put_u32(b, COOKIE_PLAIN);
	put_u32(b, (uint32_t)containers);
	for (size_t i = 0; i < n; i += k) {
		k = group(v + i, n - i, 16);
		put_u16(b, (uint16_t)(v[i] >> 16));
		put_u16(b, (uint16_t)(k - 1));
	}
	size_t at = 8 + 8 * containers;
	for (size_t i = 0; i < n; i += k) {
		k = group(v + i, n - i, 16);
		put_u32(b, (uint32_t)at);
		at += container_bytes(k);
	}
	for (size_t i = 0; i < n; i += k) {
		k = group(v + i, n - i, 16);
		put_container(b, v + i, k);
	}
}

enum status fz_vector_put(struct buf *out, const uint64_t *positions, size_t n,
			  int64_t *ret_cardinality, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (positions[i] > FZ_VECTOR_MAX_POSITION) {
			enum status st =
				err_set(err, ST_ILLEGAL_ARGUMENT, "", "%llu is no position",
					(unsigned long long)positions[i]);
			err_prefix(err, "positions[%zu]", i);
			return st;
		}
	size_t kept = 0, groups = 0, k;
	uint64_t *v = sorted(positions, n, &kept);
	if (!v)
		return err_set(err, ST_TOO_LARGE, "positions", "no memory to sort %zu positions",
			       n);
	size_t start = out->n;
	if (buf_room(out, 4))
		buf_put(out, magic, sizeof magic);
	for (size_t i = 0; i < kept; i += group(v + i, kept - i, 32))
		groups++;
	put_u32(out, (uint32_t)groups);
	put_u32(out, 0);
	for (size_t i = 0; i < kept; i += k) {
		k = group(v + i, kept - i, 32);
		put_u32(out, (uint32_t)(v[i] >> 32));
		put_bitmap32(out, v + i, k);
	}
	free(v);
	uint8_t *crc = buf_room(out, 4);
	if (!crc || out->n - start - 8 > INT32_MAX) {
		out->failed = true;
		return err_set(err, ST_TOO_LARGE, "positions", "the vector does not fit");
	}
	size_t body = out->n - start - 8;
	put_u32be(out->p + start, (uint32_t)body);
	put_u32be(crc, digest_crc32(0, (struct bytes){out->p + start + 4, body}));
	*ret_cardinality = (int64_t)kept;
	return ST_OK;
}

enum fz_status fz_vector(const uint64_t *positions, size_t n_positions, uint8_t **ret_blob,
			 size_t *ret_size, int64_t *ret_cardinality, struct fz_error *err)
{
	struct buf out;
	struct err base = {0};
	buf_init(&out, (size_t)INT32_MAX + 8);
	if (fz_vector_put(&out, positions, n_positions, ret_cardinality, &base) != ST_OK) {
		buf_fini(&out);
		return fz_error_base(err, &base);
	}
	*ret_blob = buf_take(&out, ret_size);
	buf_fini(&out);
	return FZ_OK;
}
