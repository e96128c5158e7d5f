/* A namespace, table or view that is moved: its name, for people and for machines, and what is
 * known of it. Whoever knows entries hands them to a sink. */
#ifndef CLIENTS_CTL_CTL_ENTRY_H
#define CLIENTS_CTL_CTL_ENTRY_H

#include "clients/ctl/ctl_fault.h"
#include "clients/ctl/ctl_set.h"

/* Levels of a namespace. */
#define CTL_LEVELS_MAX 32
/* Entries handed over at once. */
#define CTL_PIECE 256

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
bool ctl_entry_parse(const char *text, struct arena *a, const struct strv **ret_levels, size_t *ret_n,
		    struct ctl_fault *f);

/* What to walk over; all when both are empty. */
struct ctl_choice {
	const char *const *namespaces; /* with all below them */
	size_t n_namespaces;
	const char *const *tables; /* tables and views */
	size_t n_tables;
};

struct ctl_sink {
	void *ctx;
	/* One namespace, or up to CTL_PIECE tables or views of one. Borrowed. False ends
	 * the walk. */
	bool (*entries)(void *ctx, const struct ctl_entry *v, size_t n);
	/* What could not be read: a namespace with its properties or what it holds, or a chosen
	 * table that is not there. False ends the walk. */
	bool (*missed)(void *ctx, const struct ctl_entry *e, const struct ctl_fault *f);
	/* The listing of all tables or all views of a namespace is complete; `names` are theirs.
	 * May be NULL. */
	void (*listed)(void *ctx, const struct ctl_entry *ns, enum ctl_entry_kind kind,
		       const struct ctl_set *names);
};

#endif
