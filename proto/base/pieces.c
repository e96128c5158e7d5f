#include "proto/base/pieces.h"

bool pieces_add(struct pieces *p, struct arena *a, struct bytes one)
{
	void *v = p->v;
	if (one.n == 0)
		return true;
	if (!arena_grow(a, &v, &p->cap, p->n + 1, sizeof *p->v))
		return false;
	p->v = v;
	p->v[p->n++] = one;
	return true;
}

size_t pieces_size(const struct pieces *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].n;
	return n;
}

void pieces_join(const struct pieces *p, struct buf *b)
{
	buf_reserve(b, pieces_size(p));
	for (size_t i = 0; i < p->n; i++)
		buf_put(b, p->v[i].p, p->v[i].n);
}

bool pieces_are(const struct pieces *p, struct bytes whole)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct bytes *one = &p->v[i];
		if (one->n > whole.n || memcmp(one->p, whole.p, one->n) != 0)
			return false;
		whole.p += one->n;
		whole.n -= one->n;
	}
	return whole.n == 0;
}
