/* Metadata of tables and views by its file's location: a table's parsed version, and the bytes of the
 * answers, immutable and counted. Filled by what the core makes current and by reads of the object store; bounded by
 * bytes, least recently used first out. Loop thread only. */
#ifndef DAEMON_BIND_MCACHE_H
#define DAEMON_BIND_MCACHE_H

#include "daemon/loop.h"
#include "proto/base/err.h"

struct mcache;
struct mcache_entry;
struct metadata;
struct obj_store;

/* What a waiter needs ready: the metadata alone, or an answer with all snapshots, or one with only
 * those that a ref names; each of the two gzipped as well. */
enum mcache_rep {
	MCACHE_METADATA,
	MCACHE_ALL,
	MCACHE_REFS,
	MCACHE_ALL_GZIP,
	MCACHE_REFS_GZIP,
};

struct mcache_wait {
	struct list node;
	enum mcache_rep rep;
	bool view; /* the file is a view's: there is nothing but the answer, plain and gzipped */
	/* entry is a reference that becomes the callee's; NULL when err says why not. ST_NOT_FOUND:
	 * the file is gone. */
	void (*done)(struct mcache_wait *w, struct mcache_entry *own_entry, const struct err *err);
};

/* loop and obj outlive it. */
struct mcache *mcache_new(struct loop *loop, struct obj_store *obj, size_t max_bytes);
/* Nobody may be waiting; references that others hold stay good. */
void mcache_free(struct mcache *own_cache);

/* A version that was just written or read. Replaces an older one of the same table. */
void mcache_put(struct mcache *c, struct strv location, struct metadata *m);
/* Brings the metadata of this file and calls w->done exactly once, possibly before this returns.
 * The store is asked whether the file is still there unless it answered less than a millisecond
 * ago; callers that come while it is being asked share the answer. */
void mcache_load(struct mcache *c, struct strv location, struct mcache_wait *w);

struct mcache_entry *mcache_ref(struct mcache_entry *e);
void mcache_unref(struct mcache_entry *own_e);
struct metadata *mcache_metadata(const struct mcache_entry *e);
struct strv mcache_location(const struct mcache_entry *e);
/* The answer that was waited for; lives as long as the entry. */
struct bytes mcache_body(const struct mcache_entry *e, enum mcache_rep rep);

#define MCACHE_ETAG_LEN 34
/* Strong entity tag of a representation, with its quotes, ended with NUL. A function of location
 * and representation alone: the same on every daemon. */
void mcache_etag(struct strv location, enum mcache_rep rep, char out[MCACHE_ETAG_LEN + 1]);
/* The same of an entry, made once; lives as long as the entry. */
const char *mcache_entry_etag(struct mcache_entry *e, enum mcache_rep rep);

struct mcache_stats {
	size_t entries, bytes;
	int64_t hits, reads, looks, builds, evicted;
};
struct mcache_stats mcache_stats(const struct mcache *c);

#endif
