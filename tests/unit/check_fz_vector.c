#include "clients/c/fz_vector.h"

#include "clients/c/frazil.h"
#include "proto/base/digest.h"
#include "proto/dv/dv_blob.h"
#include "tests/unit/unit.h"

/* What the server's decoder reads from our blob, compared with the numbers that went in. */
static void round_trip(const uint64_t *v, size_t n, const uint64_t *want, size_t n_want)
{
	struct buf out;
	struct err err = {0};
	struct bitmap64 *set;
	int64_t cardinality = -1;
	buf_init(&out, (size_t)64 << 20);
	UNIT_OK(fz_vector_put(&out, v, n, &cardinality, &err), &err);
	ck_assert_int_eq(cardinality, (int64_t)n_want);
	UNIT_OK(dv_blob_decode(buf_bytes(&out), &set, &err), &err);
	ck_assert_uint_eq(bitmap64_cardinality(set), n_want);
	uint64_t *got = base_calloc(n_want + 1, sizeof *got);
	ck_assert_uint_eq(bitmap64_read(set, 0, got, n_want + 1), n_want);
	ck_assert(n_want == 0 || memcmp(got, want, n_want * sizeof *got) == 0);
	base_free(got);
	bitmap64_free(set);
	buf_fini(&out);
}

/* Written by hand after the Puffin specification; the same bytes as PyRoaring's. */
START_TEST(bytes_of_two)
{
	static const uint64_t v[] = {5, 0, 5};
	struct buf hex;
	uint8_t *blob;
	size_t size;
	int64_t cardinality;
	ck_assert_int_eq(fz_vector(v, 3, &blob, &size, &cardinality, NULL), FZ_OK);
	ck_assert_int_eq(cardinality, 2);
	buf_init(&hex, 1024);
	digest_hex(&hex, (struct bytes){blob, size});
	buf_putc(&hex, 0);
	ck_assert_str_eq((const char *)hex.p,
			 "00000024d1d339640100000000000000000000003a300000010000"
			 "0000000100100000000000050086d2574a");
	buf_fini(&hex);
	fz_free(blob);
}
END_TEST

START_TEST(edges)
{
	static const uint64_t one[] = {FZ_VECTOR_MAX_POSITION};
	static const uint64_t mixed[] = {1ull << 40,       0,          65536, 65535,
					 (1ull << 32) - 1, 1ull << 32, 0};
	static const uint64_t want[] = {0, 65535, 65536, (1ull << 32) - 1, 1ull << 32, 1ull << 40};
	round_trip(NULL, 0, NULL, 0);
	round_trip(one, 1, one, 1);
	round_trip(mixed, 7, want, 6);
}
END_TEST

/* Around the size where an array becomes a bitmap. */
START_TEST(containers)
{
	uint64_t *v = base_calloc(70000, sizeof *v);
	static const size_t sizes[] = {1, 4095, 4096, 4097, 65536, 70000};
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		for (size_t i = 0; i < sizes[s]; i++)
			v[i] = (7ull << 32) + i;
		round_trip(v, sizes[s], v, sizes[s]);
	}
	/* Descending, every third position: sorted again. */
	uint64_t *down = base_calloc(9000, sizeof *down);
	for (size_t i = 0; i < 9000; i++) {
		v[i] = 3 * i;
		down[8999 - i] = 3 * i;
	}
	round_trip(down, 9000, v, 9000);
	base_free(down);
	base_free(v);
}
END_TEST

START_TEST(refusals)
{
	static const uint64_t v[] = {1, FZ_VECTOR_MAX_POSITION + 1};
	struct fz_error e;
	struct buf out;
	struct err err = {0};
	uint8_t *blob;
	size_t size;
	int64_t cardinality;
	ck_assert_int_eq(fz_vector(v, 2, &blob, &size, &cardinality, &e), FZ_USAGE);
	ck_assert_str_eq(e.name, "ILLEGAL_ARGUMENT");
	ck_assert_str_eq(e.field, "positions[1]");
	buf_init(&out, 40);
	UNIT_STATUS(fz_vector_put(&out, v, 1, &cardinality, &err), ST_TOO_LARGE);
	buf_fini(&out);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fz_vector");
	TCase *t = tcase_create("all");
	tcase_add_test(t, bytes_of_two);
	tcase_add_test(t, edges);
	tcase_add_test(t, containers);
	tcase_add_test(t, refusals);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
