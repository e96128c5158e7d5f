/* A table or view as a catalog has it, as far as moving it needs. */
#ifndef CLIENTS_CTL_CTL_LOAD_H
#define CLIENTS_CTL_CTL_LOAD_H

#include "clients/ctl/ctl_walk.h"

struct ctl_load {
	struct ctl_peer_answer answer;
	bool found;
	struct strv uuid, location;
	const struct jspan *metadata;
};

/* False with a fault. A name that is not there is no fault. To be released in either case. */
bool ctl_load(struct ctl_peer_link *l, const struct ctl_entry *e, struct ctl_load *ret_load,
	      struct ctl_fault *f);
void ctl_load_release(struct ctl_load *l);
/* Whether a table's metadata log names the file: it was current before. */
bool ctl_load_had(struct ctl_load *l, struct strv location);
/* Whether a view's version log holds the last entry of the other's, and all properties are the
 * other's. */
bool ctl_load_follows(struct ctl_load *l, struct ctl_load *before);
/* Appends the dialects of a view's current version, ", " between them. */
void ctl_load_dialects(struct ctl_load *l, struct buf *b);
/* Whether each member of the object `want` is in `have` with the same text. */
bool ctl_load_holds(const struct jspan *have, const struct jspan *want, struct arena *a);

#endif
