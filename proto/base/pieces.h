/* Bytes that lie in several places, in their order: to be written or sent without being joined
 * first. The list lives in an arena, the bytes are borrowed. */
#ifndef PROTO_BASE_PIECES_H
#define PROTO_BASE_PIECES_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"

struct pieces {
	struct bytes *v;
	size_t n, cap;
};

/* Appends one; false when the arena is full. Empty bytes are left out. */
MUST_CHECK bool pieces_add(struct pieces *p, struct arena *a, struct bytes one);
size_t pieces_size(const struct pieces *p);
/* Appends all bytes to the buffer. */
void pieces_join(const struct pieces *p, struct buf *b);
/* Whether they are these bytes, however they are cut. */
bool pieces_are(const struct pieces *p, struct bytes whole);

#endif
