/* All that a catalog holds, namespace by namespace, parents first, in pieces of bounded size. A
 * catalog that repeats a page token, gives pages without end, or names things where they do not
 * belong is told, never followed. */
#ifndef CLIENTS_CTL_CTL_WALK_H
#define CLIENTS_CTL_CTL_WALK_H

#include "clients/ctl/ctl_peer.h"
#include "clients/ctl/ctl_set.h"

/* Entries handed over at once. */
#define CTL_WALK_PIECE 256

enum ctl_entry_kind { CTL_NAMESPACE, CTL_TABLE, CTL_VIEW };

struct ctl_entry {
	enum ctl_entry_kind kind;
	const struct strv *levels;
	size_t n_levels;
	struct strv name; /* of a table or view */
	/* As far as they are known: a namespace's properties (a JSON object), identity and
	 * metadata file of a table or view. */
	struct strv properties, uuid, location;
};

/* "table" and so on. */
const char *ctl_entry_kind_name(enum ctl_entry_kind kind);
/* The name for people: levels joined by dots, or a JSON array when that would be ambiguous. */
void ctl_entry_name(const struct ctl_entry *e, char *out, size_t cap);

/* A name of the command line: parts between dots, or a JSON array of text. Parts live in the
 * arena. */
bool ctl_walk_parse(const char *text, struct arena *a, const struct strv **ret_levels, size_t *ret_n,
		    struct ctl_fault *f);

/* What to walk over; all when both are empty. */
struct ctl_walk_choice {
	const char *const *namespaces; /* with all below them */
	size_t n_namespaces;
	const char *const *tables; /* tables and views */
	size_t n_tables;
};

struct ctl_walk_sink {
	void *ctx;
	/* One namespace, or up to CTL_WALK_PIECE tables or views of one. Borrowed. False ends
	 * the walk. */
	bool (*entries)(void *ctx, const struct ctl_entry *v, size_t n);
	/* What could not be read: a namespace with its properties or what it holds, or a chosen
	 * table that is not there. */
	void (*missed)(void *ctx, const struct ctl_entry *e, const struct ctl_fault *f);
	/* The listing of all tables or all views of a namespace is complete; `names` are theirs.
	 * May be NULL. */
	void (*listed)(void *ctx, const struct ctl_entry *ns, enum ctl_entry_kind kind,
		       const struct ctl_set *names);
};

/* False when the walk could not begin (a fault) or the sink ended it (none). */
bool ctl_walk(struct ctl_peer *p, const struct ctl_walk_choice *choice,
	      const struct ctl_walk_sink *sink, struct ctl_fault *f);

/* Pages of one listing, `path` with its query, of the array `key`; each element is handed over.
 * False with a fault. */
bool ctl_walk_pages(struct ctl_peer_link *l, const struct buf *path, const char *key,
		    bool (*each)(void *ctx, const struct jspan *v, struct arena *a,
				 bool *ret_new, struct ctl_fault *f),
		    void (*page)(void *ctx), void *ctx, struct ctl_fault *f);

#endif
