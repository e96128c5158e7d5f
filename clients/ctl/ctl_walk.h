/* All that a catalog holds, namespace by namespace, parents first, in pieces of bounded size. A
 * catalog that repeats a page token, gives pages without end, or names things where they do not
 * belong is told, never followed. */
#ifndef CLIENTS_CTL_CTL_WALK_H
#define CLIENTS_CTL_CTL_WALK_H

#include "clients/ctl/ctl_entry.h"
#include "clients/ctl/ctl_peer.h"
#include "clients/ctl/ctl_set.h"

/* False when the walk could not begin (a fault) or the sink ended it (none). */
bool ctl_walk(struct ctl_peer *p, const struct ctl_choice *choice,
	      const struct ctl_sink *sink, struct ctl_fault *f);

/* Pages of one listing, `path` with its query, of the array `key`; each element is handed over.
 * False with a fault. */
bool ctl_walk_pages(struct ctl_peer_link *l, const struct buf *path, const char *key,
		    bool (*each)(void *ctx, const struct jspan *v, struct arena *a,
				 bool *ret_new, struct ctl_fault *f),
		    void (*page)(void *ctx), void *ctx, struct ctl_fault *f);

#endif
