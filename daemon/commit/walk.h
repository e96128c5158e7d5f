/* Every object that the retained snapshots and the statistics of a table reach, manifest by manifest: resumed where it
 * stood when files were missing, each manifest once, and never more of them in memory than the
 * cache's budget allows beside the one that is looked at. */
#ifndef DAEMON_COMMIT_WALK_H
#define DAEMON_COMMIT_WALK_H

#include "daemon/commit/cache.h"

struct walk {
	struct metadata *meta; /* not owned */
	struct arena *arena;   /* not owned; for what has been seen */
	size_t snapshot, row;  /* where it stands */
	bool listed;	       /* the list's name has been told */
	struct mkey *seen;     /* manifests; a power of two many slots */
	size_t n_seen, cap_seen;
};

struct walk_told {
	void *ctx;
	/* A manifest list, manifest or statistics file. */
	void (*object)(void *ctx, struct strv path);
	/* Every entry of a manifest, deleted ones too. */
	void (*entry)(void *ctx, const struct manifest_entry *e);
};

/* HAVE: all has been told. WAIT: needs were recorded, run it again. FAIL: err; a file cannot be read
 * (for tolerant needs it is skipped: what it names is not told) or the arena is full (ST_LIMIT). */
enum cache_answer walk_run(struct walk *w, struct cache *c, struct needs *needs,
			   const struct walk_told *told, struct err *err);

#endif
