/* Catalogs moved in and out: what both commands are told, and one entry taken over by the
 * target. */
#ifndef CLIENTS_CTL_CTL_MOVE_H
#define CLIENTS_CTL_CTL_MOVE_H

#include "clients/ctl/ctl_crew.h"
#include "clients/ctl/ctl_load.h"
#include "clients/ctl/ctl_report.h"

#define CTL_CHOICE_MAX 256

struct ctl_move_options {
	struct ctl_peer_options source, target;
	const char *from_file; /* import: a list in place of a source */
	const char *output;    /* export: NULL for stdout */
	const char *namespaces[CTL_CHOICE_MAX], *tables[CTL_CHOICE_MAX];
	size_t n_namespaces, n_tables;
	size_t parallel; /* 1 .. CTL_CREW_MAX */
	bool dry_run, overwrite, force;
};

/* What became of an entry. */
struct ctl_moved {
	struct ctl_row row; /* its texts live in `keep` */
	struct ctl_fault fault;
	struct buf keep;
};

/* Has the target hold what the source holds, unless that would lose what the target holds.
 * `source` is NULL when the entry came from a list and says all. Safe from several threads, each
 * with its links. To be released. */
void ctl_move(const struct ctl_move_options *o, struct ctl_peer_link *source,
	      struct ctl_peer_link *target, const struct ctl_entry *e, struct ctl_moved *ret_moved);
void ctl_move_release(struct ctl_moved *m);

#endif
