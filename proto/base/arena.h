/* Bump allocator with a limit fixed at init: all memory whose size depends on input and that dies
 * with one request, batch or job. Not shared between threads. */
#ifndef PROTO_BASE_ARENA_H
#define PROTO_BASE_ARENA_H

#include "proto/base/strv.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	size_t used;  /* bytes handed out, all chunks */
	size_t limit; /* bytes that may be handed out */
};

void arena_init(struct arena *a, size_t limit);
/* Frees everything; the arena may be used again with the same limit. */
void arena_reset(struct arena *a);
/* The same, but keeps its last chunk, if that has at most `keep` bytes, for the next to come. */
void arena_recycle(struct arena *a, size_t keep);
void arena_fini(struct arena *a);

/* 16-byte aligned, uninitialised; NULL when the limit would be passed or memory is gone. */
MUST_CHECK void *arena_alloc(struct arena *a, size_t n);
/* count × size, zeroed; NULL also on overflow. */
MUST_CHECK void *arena_calloc(struct arena *a, size_t count, size_t size);
/* Copies; false on exhaustion. An empty view copies to an empty view with a non-NULL pointer.
 * The copy of a strv is followed by a NUL, which is not counted. */
MUST_CHECK bool arena_strv(struct arena *a, struct strv s, struct strv *ret_s);
MUST_CHECK bool arena_bytes(struct arena *a, struct bytes b, struct bytes *ret_b);
/* Formatted, followed by a NUL; NULL on exhaustion. */
MUST_CHECK char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Grows an arena array geometrically so that it holds `need` elements of `size` bytes; the old
 * storage stays allocated until reset. false on exhaustion, *items and *cap then unchanged. */
MUST_CHECK bool arena_grow(struct arena *a, void **items, size_t *cap, size_t need, size_t size);

#endif
