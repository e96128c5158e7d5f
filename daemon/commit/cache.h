/* Decoded objects by path, with one budget. A lookup answers HAVE, or records what is missing in a
 * `needs` list; the core turns those into reads and runs the asking operation again when they have
 * all been answered. So every operation that needs files is a plain function that is run until it
 * misses nothing.
 *
 * What an operation has asked for is held for it until it lets go, whatever the budget: otherwise one
 * file could push out another for ever. Indexes, of which a large table has more than a small budget
 * holds, are asked for a part at a time and let go of at once (probe.h). */
#ifndef DAEMON_COMMIT_CACHE_H
#define DAEMON_COMMIT_CACHE_H

#include "daemon/commit/objects.h"
#include "daemon/commit/port.h"
#include "proto/base/list.h"

struct cache;
struct cache_item;

enum cache_answer {
	CACHE_HAVE, /* *ret is set: borrowed until the core's step ends, take a reference to keep it */
	CACHE_WAIT, /* recorded in needs */
	CACHE_FAIL, /* reading or decoding failed; err is filled, the next lookup tries again */
};

struct probe;

/* One operation's wish list and what is held for it; zeroed memory is an empty one. */
struct needs {
	struct cache_item **v;
	size_t n, cap;
	size_t bytes; /* estimate of what v will take */
	bool full;    /* something more was not recorded for lack of room */
	struct cache_item **held;
	size_t n_held, cap_held;
	struct probe *probes;
	/* For an operation that goes on without what cannot be read: a file that has failed for it
	 * is not read again, else two of them could keep it waiting for ever. */
	bool tolerant;
	uint64_t *failed;
	size_t n_failed, cap_failed;
	struct strv bad; /* the file that failed last, owned; empty: none */
};

struct cache *cache_new(size_t max_bytes);
void cache_free(struct cache *own_c);
void cache_set_budget(struct cache *c, size_t max_bytes);

enum cache_answer cache_list(struct cache *c, struct strv path, struct needs *needs,
			     struct mlist **ret_l, struct err *err);
/* The whole view of a manifest. `row` must live in `list`, of which a reference is kept while the
 * read is under way. WAIT without anything recorded: there is no room left in this round, after
 * other wishes were recorded. */
enum cache_answer cache_view(struct cache *c, struct mlist *list, const struct manifest_file *row,
			     struct metadata *meta, struct needs *needs, struct mview **ret_v,
			     struct err *err);
/* The same, a light view. */
enum cache_answer cache_index(struct cache *c, struct mlist *list, const struct manifest_file *row,
			      struct metadata *meta, struct needs *needs, struct mview **ret_v,
			      struct err *err);
/* What cache_index or cache_view answered is no longer held for the operation. */
void cache_index_let(struct cache *c, const struct manifest_file *row, struct needs *needs);
void cache_view_let(struct cache *c, const struct manifest_file *row, struct needs *needs);
enum cache_answer cache_vec(struct cache *c, const struct content_file *dv, struct needs *needs,
			    struct vec **ret_v, struct err *err);

/* What a publish has just made: kept without reading it back. References are taken. */
void cache_put_list(struct cache *c, struct strv path, struct mlist *l);
void cache_put_view(struct cache *c, struct strv path, int64_t first_row_id, int64_t seq,
		    struct mview *v);
/* Its light view. */
void cache_put_index(struct cache *c, struct strv path, int64_t first_row_id, int64_t seq,
		     struct mview *v);
void cache_put_vec(struct cache *c, struct strv path, int64_t offset, struct vec *v);

/* The wishes are on their way: an empty list for the next round. */
void needs_begin(struct needs *n);
/* Lets go of all that is held. The wishes of an operation that is given up are dropped too. */
void needs_release(struct needs *n);
void needs_fini(struct needs *n);

/* For the core's reading of missing items. An item on its way is asked for once. */
bool cache_item_begin(struct cache_item *it); /* true: not under way yet, issue this read */
const struct read_effect *cache_item_read(const struct cache_item *it);
/* Delivers the answer; references pass to the cache. */
void cache_item_done(struct cache *c, struct cache_item *it, struct read_result *res);
/* The list of waiters that the core hangs its gathers on. */
struct list *cache_item_waiters(struct cache_item *it);
/* Drops unpinned items until the budget holds, whole views first; called by the core between steps. */
void cache_trim(struct cache *c);
size_t cache_bytes(const struct cache *c);

struct core_index_stats cache_stats(const struct cache *c);

#endif
