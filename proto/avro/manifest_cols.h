/* The columns of manifests and manifest lists, in the order in which they are written ("Manifests",
 * "Manifest Lists" of the table spec). */
#ifndef PROTO_AVRO_MANIFEST_COLS_H
#define PROTO_AVRO_MANIFEST_COLS_H

#include "proto/avro/avro_record.h"
#include "proto/base/arena.h"

struct manifest_cols {
	const struct avro_col *cols;
	size_t n;
};

/* Columns of struct manifest_entry with the given tuple: the table is copied into the arena, since
 * its partition column depends on the spec; types are copied as well, and a reader fills in those
 * that are unknown. ret_types (may be NULL): the copied types, in order. false on exhaustion. */
MUST_CHECK bool manifest_cols_entry(const struct field *partition, size_t n, struct arena *a,
				    struct manifest_cols *ret_cols, struct type **ret_types);
/* Columns of struct manifest_file; version 1 orders them otherwise. */
struct manifest_cols manifest_cols_list(int version);

#endif
