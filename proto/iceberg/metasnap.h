/* The snapshot list of table metadata as a persistent vector: snapshots are shared blocks, held by
 * shared chunks, so that a new version of a long list copies only what changed. Internal to
 * metadata. */
#ifndef PROTO_ICEBERG_METASNAP_H
#define PROTO_ICEBERG_METASNAP_H

#include "proto/base/pieces.h"
#include "proto/iceberg/snapshot.h"

#define METASNAP_CHUNK 128

struct gzip_writer;
struct metasnap; /* one snapshot with everything it points to, refcounted */

struct metasnap_chunk;

struct metasnap_list {
	struct metasnap_chunk **chunks; /* in the owner's arena; each slot holds one reference */
	size_t *start;                  /* index of each chunk's first snapshot */
	size_t n_chunks, cap;
	size_t n;     /* snapshots */
	size_t bytes; /* of their canonical JSON with commas */
};

/* Copies *s, every string included, and renders its canonical JSON. */
MUST_CHECK enum status metasnap_new(const struct snapshot *s, struct metasnap **ret_b,
				    struct err *err);
void metasnap_unref(struct metasnap *own_b);

/* Shares all chunks of `from`; `to` is filled from zero. */
MUST_CHECK bool metasnap_copy(struct metasnap_list *to, const struct metasnap_list *from,
			      struct arena *a);
void metasnap_fini(struct metasnap_list *l);
/* Appends; the block is consumed, also on failure (false: the arena is full). */
MUST_CHECK bool metasnap_append(struct metasnap_list *l, struct metasnap *own_b, struct arena *a);
/* Removes every snapshot whose id is in the ascending array; chunks before the first one removed
 * stay shared. *ret_removed: how many. */
MUST_CHECK bool metasnap_remove(struct metasnap_list *l, const int64_t *ids, size_t n,
				struct arena *a, size_t *ret_removed);

#define METASNAP_NOT_FOUND SIZE_MAX
const struct snapshot *metasnap_at(const struct metasnap_list *l, size_t i);
/* Index of an id, looking first at the neighbours of `hint` (histories are linear); any hint is
 * allowed. */
size_t metasnap_find(const struct metasnap_list *l, int64_t id, size_t hint);
/* Bytes that its snapshots take, shared ones included. */
size_t metasnap_memory(const struct metasnap_list *l);
/* The same text as that of metasnap_json, borrowed from the list; false: the arena is full. */
MUST_CHECK bool metasnap_pieces(const struct metasnap_list *l, struct arena *a, struct pieces *p);
/* Packs that text into the member; what other versions share is packed once. */
void metasnap_gzip(const struct metasnap_list *l, struct gzip_writer *w);
/* Appends the JSON of all, joined by commas. */
void metasnap_json(const struct metasnap_list *l, struct buf *b);

#endif
