/* Vector merges a second: N framed one-position vectors are decoded and united with the vector that
 * a data file has, and the new one is encoded. Prints one line a size. Usage: bench_dv [rounds] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proto/dv/dv_blob.h"

#define MERGED 256
#define LIMIT ((size_t)64 << 20)

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Far apart and never twice: an odd step modulo a power of two. */
static uint64_t position(uint64_t i)
{
	return i * 40503 % (1 << 22);
}

static void make(uint64_t first, uint64_t n, struct buf *out)
{
	struct bitmap64 *set = bitmap64_new();
	struct err err = {0};
	for (uint64_t i = first; i < first + n; i++)
		if (bitmap64_add(set, position(i), &err) != ST_OK)
			exit(1);
	if (dv_blob_encode(set, out, &err) != ST_OK)
		exit(1);
	bitmap64_free(set);
}

/* One data file's share of a batch, from bytes to bytes. */
static size_t merge(struct bytes old, const struct buf *news, struct buf *out)
{
	struct bitmap64 *set, *add[MERGED];
	struct err err = {0};
	if (dv_blob_decode(old, &set, &err) != ST_OK)
		exit(1);
	for (size_t i = 0; i < MERGED; i++)
		if (dv_blob_decode(buf_bytes(&news[i]), &add[i], &err) != ST_OK)
			exit(1);
	if (bitmap64_union(set, (const struct bitmap64 *const *)add, MERGED, &err) != ST_OK ||
	    dv_blob_encode(set, out, &err) != ST_OK)
		exit(1);
	size_t n = bitmap64_cardinality(set);
	for (size_t i = 0; i < MERGED; i++)
		bitmap64_free(add[i]);
	bitmap64_free(set);
	return n;
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
	static const uint64_t sizes[] = {0, 1000, 100000, 1000000};
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		struct buf old, out, news[MERGED];
		buf_init(&old, LIMIT);
		buf_init(&out, LIMIT);
		make(0, sizes[s], &old);
		for (size_t i = 0; i < MERGED; i++) {
			buf_init(&news[i], LIMIT);
			make(sizes[s] + i, 1, &news[i]);
		}
		double t = seconds();
		for (size_t r = 0; r < rounds; r++) {
			buf_clear(&out);
			if (merge(buf_bytes(&old), news, &out) != sizes[s] + MERGED)
				exit(1);
		}
		t = seconds() - t;
		printf("vectors: %d merged into one of %llu positions: %.0f vectors/s, %.0f µs a "
		       "merge, %zu bytes\n",
		       MERGED, (unsigned long long)sizes[s], (double)(rounds * MERGED) / t,
		       t / (double)rounds * 1e6, out.n);
		for (size_t i = 0; i < MERGED; i++)
			buf_fini(&news[i]);
		buf_fini(&old);
		buf_fini(&out);
	}
	return 0;
}
