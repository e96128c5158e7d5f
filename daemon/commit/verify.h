/* What a foreign snapshot says against its own files and its predecessor's: two vectors for a data
 * file, a vector smaller than the one before, a vector without its data file, changed row ids (Iceberg
 * spec, "Deletion Vectors", "First Row ID Inheritance"). Part of the encode job: it reads views under
 * references that the loop holds. */
#ifndef DAEMON_COMMIT_VERIFY_H
#define DAEMON_COMMIT_VERIFY_H

#include "daemon/commit/objects.h"

enum verify_kind {
	VERIFY_TWO_VECTORS,
	VERIFY_SMALLER,	 /* rows come back to life */
	VERIFY_DANGLING, /* the data file is not in the snapshot */
	VERIFY_ROW_IDS,
	VERIFY_UNREADABLE,
};

struct verify_finding {
	enum verify_kind kind;
	struct strv path; /* of the data file, in the snapshot's views; VERIFY_UNREADABLE: the file */
};

/* One added snapshot. */
struct verify_snapshot {
	/* Parallel to the list's rows: whole where fresh, bare where no path of those is. */
	struct mview **now;
	bool *fresh; /* not in the parent's list */
	size_t n_now;
	struct mview **before; /* of the parent, likewise; none without one */
	size_t n_before;
};

#define VERIFY_MAX 64

struct verify_out {
	struct verify_finding v[VERIFY_MAX]; /* the first ones */
	size_t n;
	int64_t total;
};

void verify_run(const struct verify_snapshot *s, struct verify_out *out);
/* "two-vectors" and so on, for machines. */
const char *verify_word(enum verify_kind kind);
void verify_note(struct verify_out *out, enum verify_kind kind, struct strv path);
/* Fills err with the finding and its path, whose end counts when it is long. */
void verify_err(const struct verify_finding *f, enum status st, struct err *err);

#endif
