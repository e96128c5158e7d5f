#include "proto/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Chunks double up to 1 MiB; a larger request gets a chunk of its own. The first is small: every
 * schema and spec of every idle table has an arena. */
#define CHUNK_MIN ((size_t)480)
#define CHUNK_MAX ((size_t)1 << 20)
#define ALIGN ((size_t)16)

struct arena_chunk {
	struct arena_chunk *next;
	size_t cap;
	size_t used;
	size_t pad; /* keeps data[] aligned to 16 */
	uint8_t data[];
};
_Static_assert(offsetof(struct arena_chunk, data) % 16 == 0, "chunk data must be aligned");

void arena_init(struct arena *a, size_t limit)
{
	*a = (struct arena){NULL, 0, limit};
}

void arena_reset(struct arena *a)
{
	while (a->head) {
		struct arena_chunk *c = a->head;
		a->head = c->next;
		free(c);
	}
	a->used = 0;
}

void arena_recycle(struct arena *a, size_t keep)
{
	struct arena_chunk *last = a->head;
	if (last && last->cap <= keep) {
		a->head = last->next;
		arena_reset(a);
		last->next = NULL;
		last->used = 0;
		a->head = last;
	} else {
		arena_reset(a);
	}
}

void arena_fini(struct arena *a)
{
	arena_reset(a);
	a->limit = 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
	size_t want;
	if (!add_size(n ? n : 1, ALIGN - 1, &want))
		return NULL;
	want &= ~(ALIGN - 1);
	if (want > a->limit - a->used)
		return NULL;
	struct arena_chunk *c = a->head;
	if (!c || c->cap - c->used < want) {
		size_t cap = c ? c->cap * 2 : CHUNK_MIN;
		if (cap > CHUNK_MAX)
			cap = CHUNK_MAX;
		if (cap < want)
			cap = want;
		size_t whole;
		if (!add_size(sizeof *c, cap, &whole))
			return NULL;
		struct arena_chunk *fresh = malloc(whole);
		if (!fresh) {
			base_memory_note();
			return NULL;
		}
		*fresh = (struct arena_chunk){.next = c, .cap = cap};
		a->head = c = fresh;
	}
	void *p = c->data + c->used;
	c->used += want;
	a->used += want;
	return p;
}

void *arena_calloc(struct arena *a, size_t count, size_t size)
{
	size_t n;
	if (!mul_size(count, size, &n))
		return NULL;
	void *p = arena_alloc(a, n);
	if (p)
		memset(p, 0, n);
	return p;
}

bool arena_strv(struct arena *a, struct strv s, struct strv *ret_s)
{
	size_t n;
	if (!add_size(s.n, 1, &n))
		return false;
	char *p = arena_alloc(a, n);
	if (!p)
		return false;
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	*ret_s = (struct strv){p, s.n};
	return true;
}

bool arena_bytes(struct arena *a, struct bytes b, struct bytes *ret_b)
{
	uint8_t *p = arena_alloc(a, b.n);
	if (!p)
		return false;
	if (b.n)
		memcpy(p, b.p, b.n);
	*ret_b = (struct bytes){p, b.n};
	return true;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
	if (p)
		vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

bool arena_grow(struct arena *a, void **items, size_t *cap, size_t need, size_t size)
{
	if (need <= *cap)
		return true;
	size_t want = *cap ? *cap : 8, n;
	while (want < need)
		if (!mul_size(want, 2, &want))
			return false;
	if (!mul_size(want, size, &n))
		return false;
	void *p = arena_alloc(a, n);
	if (!p)
		return false;
	if (*cap)
		memcpy(p, *items, *cap * size);
	*items = p;
	*cap = want;
	return true;
}
