#include "proto/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_fini(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	b->failed = false;
}

uint8_t *buf_room(struct buf *b, size_t n)
{
	if (b->failed)
		return NULL;
	if (n > b->max - b->n) {
		b->failed = true;
		return NULL;
	}
	size_t need = b->n + n;
	if (need > b->cap || !b->p) {
		size_t cap = b->cap ? b->cap : 256;
		while (cap < need)
			cap = cap > b->max / 2 ? b->max : cap * 2;
		uint8_t *p = realloc(b->p, cap);
		if (!p) {
			base_memory_note();
			b->failed = true;
			return NULL;
		}
		b->p = p;
		b->cap = cap;
	}
	uint8_t *at = b->p + b->n;
	b->n = need;
	return at;
}

void buf_reserve(struct buf *b, size_t n)
{
	if (b->failed || n > b->max - b->n)
		return;
	if (buf_room(b, n))
		b->n -= n;
	b->failed = false;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	uint8_t *at = buf_room(b, n);
	if (at)
		memcpy(at, p, n);
}

void buf_puts(struct buf *b, const char *z)
{
	buf_put(b, z, strlen(z));
}

void buf_putv(struct buf *b, struct strv s)
{
	buf_put(b, s.p, s.n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	/* One byte more for the NUL that vsnprintf writes; it is given back. */
	uint8_t *at = n < 0 ? NULL : buf_room(b, (size_t)n + 1);
	if (at) {
		vsnprintf((char *)at, (size_t)n + 1, fmt, again);
		b->n--;
	} else {
		b->failed = true;
	}
	va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
	ASSERT(n <= b->n);
	if (n < b->n)
		memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

uint8_t *buf_take(struct buf *b, size_t *ret_n)
{
	if (b->failed || b->n == 0) {
		*ret_n = 0;
		return NULL;
	}
	uint8_t *p = b->p;
	*ret_n = b->n;
	*b = (struct buf){.max = b->max};
	return p;
}
