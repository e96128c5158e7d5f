/* Intrusive doubly linked list with a sentinel. A node that is on no list points at itself, so
 * that removing twice is harmless and "is it on a list?" can be asked. */
#ifndef PROTO_BASE_LIST_H
#define PROTO_BASE_LIST_H

#include "proto/base/base.h"

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}
static inline void list_push_back(struct list *l, struct list *node)
{
	ASSERT(list_empty(node));
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}
static inline void list_push_front(struct list *l, struct list *node)
{
	list_push_back(l->next, node);
}
static inline struct list *list_pop_front(struct list *l)
{
	if (list_empty(l))
		return NULL;
	struct list *n = l->next;
	list_remove(n);
	return n;
}

#define LIST_ITEM(node, type, member) CONTAINER_OF(node, type, member)
/* `it` may be removed inside the loop; `tmp` may not. */
#define LIST_FOR(it, tmp, l)                                                                       \
	for (struct list *it = (l)->next, *tmp = it->next; it != (l); it = tmp, tmp = it->next)

#endif
