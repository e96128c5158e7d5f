/* Growable byte buffer with a maximum fixed at init. The first failed append poisons the buffer:
 * later appends do nothing and buf_ok says false, so that an encoder checks once at its end. */
#ifndef PROTO_BASE_BUF_H
#define PROTO_BASE_BUF_H

#include "proto/base/strv.h"

struct buf {
	uint8_t *p;
	size_t n;
	size_t cap;
	size_t max;
	bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_fini(struct buf *b);
/* Empties and un-poisons; keeps the storage. */
void buf_clear(struct buf *b);

static inline bool buf_ok(const struct buf *b)
{
	return !b->failed;
}
static inline struct bytes buf_bytes(const struct buf *b)
{
	return (struct bytes){b->p, b->n};
}
static inline struct strv buf_strv(const struct buf *b)
{
	return (struct strv){(const char *)b->p, b->n};
}

void buf_put(struct buf *b, const void *p, size_t n);
static inline void buf_putc(struct buf *b, uint8_t c)
{
	if (b->n < b->cap && b->n < b->max && !b->failed)
		b->p[b->n++] = c;
	else
		buf_put(b, &c, 1);
}
void buf_puts(struct buf *b, const char *z);
void buf_putv(struct buf *b, struct strv s);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Makes room for n bytes and returns it uninitialised, already counted; NULL when poisoned. */
MUST_CHECK uint8_t *buf_room(struct buf *b, size_t n);
/* Allocates for n bytes more, once instead of by doubling; a hint: never poisons. */
void buf_reserve(struct buf *b, size_t n);
/* Drops the first n bytes (n <= b->n). */
void buf_consume(struct buf *b, size_t n);
/* Hands the storage to the caller, who base_free()s it; the buffer is empty afterwards.
 * NULL with *ret_n 0 when poisoned or empty. */
uint8_t *buf_take(struct buf *b, size_t *ret_n);

#endif
