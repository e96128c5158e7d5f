#include "clients/ctl/ctl_set.h"

#define FIRST_SLOTS 64

void ctl_set_init(struct ctl_set *s, size_t max_bytes)
{
	*s = (struct ctl_set){0};
	arena_init(&s->arena, max_bytes);
}

void ctl_set_clear(struct ctl_set *s)
{
	base_free(s->slots);
	s->slots = NULL;
	s->n = s->cap = 0;
	arena_reset(&s->arena);
}

void ctl_set_fini(struct ctl_set *s)
{
	ctl_set_clear(s);
	arena_fini(&s->arena);
}

/* Where the text is or would be. */
static struct strv *slot(const struct ctl_set *s, struct strv text)
{
	size_t i = (size_t)bytes_hash(strv_bytes(text)) & (s->cap - 1);
	while (s->slots[i].p && !strv_eq(s->slots[i], text))
		i = (i + 1) & (s->cap - 1);
	return &s->slots[i];
}

bool ctl_set_has(const struct ctl_set *s, struct strv text)
{
	return s->cap && slot(s, text)->p;
}

static bool grow(struct ctl_set *s)
{
	struct ctl_set bigger = *s;
	bigger.cap = s->cap ? s->cap * 2 : FIRST_SLOTS;
	/* The slots count as what they hold does. */
	if (bigger.cap * sizeof *s->slots > s->arena.limit)
		return false;
	bigger.slots = base_calloc(bigger.cap, sizeof *bigger.slots);
	for (size_t i = 0; i < s->cap; i++)
		if (s->slots[i].p)
			*slot(&bigger, s->slots[i]) = s->slots[i];
	base_free(s->slots);
	*s = bigger;
	return true;
}

bool ctl_set_add(struct ctl_set *s, struct strv text, bool *ret_new)
{
	if (2 * (s->n + 1) > s->cap && !grow(s))
		return false;
	struct strv *at = slot(s, text);
	if (ret_new)
		*ret_new = !at->p;
	if (at->p)
		return true;
	if (!arena_strv(&s->arena, text, at))
		return false;
	s->n++;
	return true;
}
