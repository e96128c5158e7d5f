/* What every written version must satisfy: its text in pieces is its text. */
#ifndef TESTS_UNIT_METADATA_PIECES_H
#define TESTS_UNIT_METADATA_PIECES_H

#include "proto/iceberg/metadata.h"
#include "tests/unit/unit.h"

static inline void pieces_check(const struct metadata *m, struct bytes whole)
{
	struct arena a;
	struct buf own;
	struct pieces p;
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
	arena_fini(&a);
}

#endif
