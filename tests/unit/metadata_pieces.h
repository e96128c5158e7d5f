/* What every written version must satisfy: its text in pieces is its text, and so is what its gzip member
 * holds. */
#ifndef TESTS_UNIT_METADATA_PIECES_H
#define TESTS_UNIT_METADATA_PIECES_H

#include "proto/base/gzip.h"
#include "proto/iceberg/metadata.h"
#include "tests/unit/unit.h"

static inline void pieces_check(const struct metadata *m, struct bytes whole)
{
	struct arena a;
	struct buf own, packed;
	struct pieces p;
	struct gzip_writer z;
	struct err err = {0};
	arena_init(&a, (size_t)16 << 20);
	buf_init(&own, (size_t)16 << 20);
	ck_assert(metadata_pieces(m, &own, &a, &p));
	ck_assert(pieces_are(&p, whole));
	ck_assert_uint_eq(pieces_size(&p), whole.n);
	ck_assert_uint_eq(p.n, metadata_snapshot_count(m) + 2);
	/* What cannot be held is said. */
	buf_clear(&own);
	own.max = 10;
	ck_assert(!metadata_pieces(m, &own, &a, &p));
	buf_fini(&own);
	buf_init(&own, (size_t)16 << 20);
	buf_init(&packed, (size_t)16 << 20);
	gzip_begin(&z, &packed);
	metadata_gzip(m, &z);
	UNIT_OK(gzip_end(&z, &err), &err);
	UNIT_OK(gzip_read(buf_bytes(&packed), &own, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&own), whole));
	ck_assert_uint_lt(packed.n, whole.n);
	/* Now with what was packed before. */
	buf_clear(&own);
	gzip_begin(&z, &own);
	metadata_gzip(m, &z);
	UNIT_OK(gzip_end(&z, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&own), buf_bytes(&packed)));
	buf_fini(&own);
	buf_fini(&packed);
	arena_fini(&a);
}

#endif
