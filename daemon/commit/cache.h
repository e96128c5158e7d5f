/* Decoded objects by path, with one budget. A lookup answers HAVE, or records what is missing in a
 * `needs` list; the core turns those into reads and runs the asking operation again when they have
 * all been answered. So every operation that needs files is a plain function that is run until it
 * misses nothing. */
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

/* One operation's wish list; zeroed memory is an empty one. */
struct needs {
	struct cache_item **v;
	size_t n, cap;
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
/* `row` must live in `list`, of which a reference is kept while the read is under way. */
enum cache_answer cache_view(struct cache *c, struct mlist *list, const struct manifest_file *row,
			     struct metadata *meta, struct needs *needs, struct mview **ret_v,
			     struct err *err);
enum cache_answer cache_vec(struct cache *c, const struct content_file *dv, struct needs *needs,
			    struct vec **ret_v, struct err *err);

/* What a publish has just made: kept without reading it back. References are taken. */
void cache_put_list(struct cache *c, struct strv path, struct mlist *l);
void cache_put_view(struct cache *c, struct strv path, int64_t first_row_id, struct mview *v);
void cache_put_vec(struct cache *c, struct strv path, int64_t offset, struct vec *v);

void needs_fini(struct needs *n);

/* For the core's reading of missing items. An item on its way is asked for once. */
bool cache_item_begin(struct cache_item *it); /* true: not under way yet, issue this read */
const struct read_effect *cache_item_read(const struct cache_item *it);
/* Delivers the answer; references pass to the cache. */
void cache_item_done(struct cache *c, struct cache_item *it, struct read_result *res);
/* The list of waiters that the core hangs its gathers on. */
struct list *cache_item_waiters(struct cache_item *it);
/* Drops unpinned items until the budget holds; called by the core between steps. */
void cache_trim(struct cache *c);
size_t cache_bytes(const struct cache *c);

#endif
