/* A set of texts that only grows, in memory with a limit. */
#ifndef CLIENTS_CTL_CTL_SET_H
#define CLIENTS_CTL_CTL_SET_H

#include "proto/base/arena.h"

struct ctl_set {
	struct arena arena; /* the texts */
	struct strv *slots;
	size_t n, cap; /* cap: a power of two, or 0 */
};

void ctl_set_init(struct ctl_set *s, size_t max_bytes);
void ctl_set_fini(struct ctl_set *s);
/* Empties it. */
void ctl_set_clear(struct ctl_set *s);
bool ctl_set_has(const struct ctl_set *s, struct strv text);
/* Copies the text. False when memory is at its limit. *ret_new (may be NULL): it was not there. */
MUST_CHECK bool ctl_set_add(struct ctl_set *s, struct strv text, bool *ret_new);

#endif
