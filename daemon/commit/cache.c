#include "daemon/commit/cache.h"

#include "daemon/commit/probe.h"
#include "proto/iceberg/metadata.h"

enum item_state { ITEM_MISSING, ITEM_READING, ITEM_READY, ITEM_FAILED };

struct cache_item {
	struct cache_item *next; /* hash chain */
	struct list lru;	 /* on the cache's list in every state; head = used last */
	struct list waiters;
	enum item_state state;
	struct strv path; /* owned, with a NUL */
	int64_t seq;	  /* of a manifest's row; else 0 */
	struct read_effect read;
	struct mlist *row_owner;
	struct metadata *meta;
	struct err err;
	size_t holds;	/* operations that asked for it */
	size_t held_at; /* its place in the held list of the last of them */
	size_t wish_at; /* likewise among the wishes */
	size_t bytes;
	struct mlist *list;
	struct mview *view;
	struct vec *vec;
};

struct cache {
	struct cache_item **buckets;
	size_t n_buckets, n_items;
	struct list lru;
	size_t bytes, max_bytes;
	struct core_index_stats stats;
};

struct cache *cache_new(size_t max_bytes)
{
	struct cache *c = base_calloc(1, sizeof *c);
	c->n_buckets = 256;
	c->buckets = base_calloc(c->n_buckets, sizeof *c->buckets);
	c->max_bytes = max_bytes;
	list_init(&c->lru);
	return c;
}

void cache_set_budget(struct cache *c, size_t max_bytes)
{
	c->max_bytes = max_bytes;
}

size_t cache_bytes(const struct cache *c)
{
	return c->bytes;
}

struct core_index_stats cache_stats(const struct cache *c)
{
	struct core_index_stats s = c->stats;
	s.bytes = (int64_t)c->bytes;
	return s;
}

static uint64_t key_hash(enum read_as as, struct strv path, int64_t offset, int64_t seq)
{
	uint64_t h = bytes_hash(strv_bytes(path)) ^ (uint64_t)seq << 32;
	return (h ^ (uint64_t)offset ^ (uint64_t)as << 56) * 1099511628211u;
}

static uint64_t hash_of(const struct cache_item *it)
{
	return key_hash(it->read.as, it->path, it->read.offset, it->seq);
}

static size_t bucket_of(const struct cache *c, uint64_t hash)
{
	return (size_t)(hash >> 7) & (c->n_buckets - 1);
}

/* How an item counts, when it comes (1) and when it goes (-1). */
static void tell_index(struct cache *c, const struct cache_item *it, int sign)
{
	if (it->read.as != READ_INDEX || !it->view)
		return;
	c->stats.index_bytes += sign * (int64_t)it->bytes;
	c->stats.index_files += sign * (int64_t)it->view->n_live;
}

static void drop_value(struct cache *c, struct cache_item *it)
{
	tell_index(c, it, -1);
	mlist_unref(it->list);
	mview_unref(it->view);
	vec_unref(it->vec);
	mlist_unref(it->row_owner);
	metadata_unref(it->meta);
	it->list = NULL;
	it->view = NULL;
	it->vec = NULL;
	it->row_owner = NULL;
	it->meta = NULL;
	c->bytes -= it->bytes;
	it->bytes = 0;
}

static void free_item(struct cache *c, struct cache_item *it)
{
	size_t at = bucket_of(c, hash_of(it));
	struct cache_item **p = &c->buckets[at];
	while (*p != it)
		p = &(*p)->next;
	*p = it->next;
	c->n_items--;
	drop_value(c, it);
	list_remove(&it->lru);
	base_free((char *)(uintptr_t)it->path.p);
	base_free(it);
}

void cache_free(struct cache *own_c)
{
	if (!own_c)
		return;
	LIST_FOR (n, tmp, &own_c->lru)
		free_item(own_c, LIST_ITEM(n, struct cache_item, lru));
	base_free(own_c->buckets);
	base_free(own_c);
}

static void grow(struct cache *c)
{
	size_t n = c->n_buckets * 2;
	struct cache_item **old = c->buckets;
	size_t n_old = c->n_buckets;
	c->buckets = base_calloc(n, sizeof *c->buckets);
	c->n_buckets = n;
	for (size_t i = 0; i < n_old; i++)
		while (old[i]) {
			struct cache_item *it = old[i];
			old[i] = it->next;
			size_t at = bucket_of(c, hash_of(it));
			it->next = c->buckets[at];
			c->buckets[at] = it;
		}
	base_free(old);
}

static struct cache_item *item_of(struct cache *c, enum read_as as, struct strv path,
				  int64_t offset, int64_t seq)
{
	uint64_t hash = key_hash(as, path, offset, seq);
	size_t at = bucket_of(c, hash);
	for (struct cache_item *it = c->buckets[at]; it; it = it->next)
		if (it->read.as == as && it->read.offset == offset && it->seq == seq &&
		    strv_eq(it->path, path)) {
			list_remove(&it->lru);
			list_push_front(&c->lru, &it->lru);
			return it;
		}
	struct cache_item *it = base_calloc(1, sizeof *it);
	char *p = base_alloc(path.n + 1);
	if (path.n)
		memcpy(p, path.p, path.n);
	p[path.n] = 0;
	it->path = (struct strv){p, path.n};
	it->seq = seq;
	it->read = (struct read_effect){.as = as, .path = it->path, .offset = offset, .length = -1};
	list_init(&it->lru);
	list_init(&it->waiters);
	if (c->n_items >= c->n_buckets)
		grow(c);
	at = bucket_of(c, hash);
	it->next = c->buckets[at];
	c->buckets[at] = it;
	c->n_items++;
	list_push_front(&c->lru, &it->lru);
	return it;
}

/* Where the item stands in the held list, n_held when it does not. */
static size_t held_at(const struct needs *needs, const struct cache_item *it)
{
	if (!it->holds)
		return needs->n_held;
	if (it->held_at < needs->n_held && needs->held[it->held_at] == it)
		return it->held_at;
	size_t i = 0;
	while (i < needs->n_held && needs->held[i] != it)
		i++;
	return i;
}

static void hold(struct needs *needs, struct cache_item *it)
{
	if (held_at(needs, it) < needs->n_held)
		return;
	if (needs->n_held == needs->cap_held) {
		needs->cap_held = needs->cap_held ? needs->cap_held * 2 : 8;
		needs->held = base_realloc_array(needs->held, needs->cap_held,
						 sizeof(struct cache_item *));
	}
	it->held_at = needs->n_held;
	needs->held[needs->n_held++] = it;
	it->holds++;
}

static void let(struct needs *needs, struct cache_item *it)
{
	size_t i = held_at(needs, it);
	if (i == needs->n_held)
		return;
	it->holds--;
	needs->held[i] = needs->held[--needs->n_held];
	needs->held[i]->held_at = i;
}

void needs_begin(struct needs *n)
{
	n->n = n->bytes = 0;
	n->full = false;
}

void needs_release(struct needs *n)
{
	while (n->n_held)
		n->held[--n->n_held]->holds--;
	probe_free_all(n);
	needs_begin(n);
}

static void need(struct needs *needs, struct cache_item *it)
{
	if (it->wish_at < needs->n && needs->v[it->wish_at] == it)
		return;
	for (size_t i = 0; it->holds && i < needs->n; i++)
		if (needs->v[i] == it)
			return;
	hold(needs, it);
	it->wish_at = needs->n;
	if (needs->n == needs->cap) {
		needs->cap = needs->cap ? needs->cap * 2 : 8;
		needs->v = base_realloc_array(needs->v, needs->cap, sizeof *needs->v);
	}
	needs->v[needs->n++] = it;
}

void needs_fini(struct needs *n)
{
	needs_release(n);
	base_free(n->held);
	base_free(n->v);
	base_free(n->failed);
	base_free((char *)(uintptr_t)n->bad.p);
	*n = (struct needs){0};
}

static bool failed_before(const struct needs *needs, const struct cache_item *it)
{
	uint64_t h = hash_of(it);
	for (size_t i = 0; i < needs->n_failed; i++)
		if (needs->failed[i] == h)
			return true;
	return false;
}

static void note_failed(struct needs *needs, const struct cache_item *it)
{
	if (!needs->tolerant)
		return;
	if (needs->n_failed == needs->cap_failed) {
		needs->cap_failed = needs->cap_failed ? needs->cap_failed * 2 : 8;
		needs->failed = base_realloc_array(needs->failed, needs->cap_failed,
						   sizeof *needs->failed);
	}
	needs->failed[needs->n_failed++] = hash_of(it);
}

static enum cache_answer fail(const struct cache_item *it, struct needs *needs)
{
	char *p = base_alloc(it->path.n + 1);
	memcpy(p, it->path.p, it->path.n);
	p[it->path.n] = 0;
	base_free((char *)(uintptr_t)needs->bad.p);
	needs->bad = (struct strv){p, it->path.n};
	return CACHE_FAIL;
}

static enum cache_answer answer(struct cache_item *it, struct needs *needs, struct err *err)
{
	if (it->state != ITEM_READY && needs->n_failed && failed_before(needs, it)) {
		*err = it->err;
		if (err->st == ST_OK)
			err_set(err, ST_IO, "", "the file could not be read");
		return fail(it, needs);
	}
	switch (it->state) {
	case ITEM_READY:
		hold(needs, it);
		return CACHE_HAVE;
	case ITEM_FAILED:
		/* Told once; whoever asks again means a new attempt. */
		*err = it->err;
		it->state = ITEM_MISSING;
		note_failed(needs, it);
		return fail(it, needs);
	case ITEM_MISSING:
	case ITEM_READING:
		break;
	}
	need(needs, it);
	return CACHE_WAIT;
}

enum cache_answer cache_list(struct cache *c, struct strv path, struct needs *needs,
			     struct mlist **ret_l, struct err *err)
{
	struct cache_item *it = item_of(c, READ_MANIFEST_LIST, path, 0, 0);
	enum cache_answer ans = answer(it, needs, err);
	if (ans == CACHE_HAVE)
		*ret_l = it->list;
	return ans;
}

/* Whether one more manifest fits into this round; the first always does. */
static bool has_room(const struct cache *c, const struct needs *needs, size_t more)
{
	return needs->n == 0 || needs->bytes + more <= c->max_bytes / 2;
}

/* What a manifest will take when it is there, roughly. */
static size_t estimate(enum read_as as, const struct manifest_file *row)
{
	size_t files = row->length > 0 ? (size_t)row->length / 64 : 0;
	if (row->has_file_counts && row->added_files >= 0 && row->existing_files >= 0)
		files = (size_t)row->added_files + (size_t)row->existing_files;
	return files * (as == READ_INDEX ? 64 : 1500);
}

static enum cache_answer manifest(struct cache *c, enum read_as as, struct mlist *list,
				  const struct manifest_file *row, struct metadata *meta,
				  struct needs *needs, struct mview **ret_v, struct err *err)
{
	/* What an entry inherits comes from its row, and rows of one path may differ, between branches
	 * or because it was listed anew: those numbers are part of the identity. */
	struct cache_item *it = item_of(c, as, row->path, row->first_row_id, row->seq);
	bool missing = it->state == ITEM_MISSING || it->state == ITEM_READING;
	size_t more = missing ? estimate(as, row) : 0, before = needs->n;
	if (missing && !has_room(c, needs, more)) {
		needs->full = true;
		return CACHE_WAIT;
	}
	enum cache_answer ans = answer(it, needs, err);
	if (ans == CACHE_HAVE) {
		c->stats.hits++;
		*ret_v = it->view;
	} else if (ans == CACHE_WAIT && needs->n > before) {
		c->stats.misses++;
		needs->bytes += more;
	}
	if (ans == CACHE_WAIT && it->state == ITEM_MISSING) {
		mlist_unref(it->row_owner);
		metadata_unref(it->meta);
		it->row_owner = mlist_ref(list);
		it->meta = metadata_ref(meta);
		it->read.row = row;
		it->read.metadata = it->meta;
		it->read.length = row->length;
	}
	return ans;
}

enum cache_answer cache_view(struct cache *c, struct mlist *list, const struct manifest_file *row,
			     struct metadata *meta, struct needs *needs, struct mview **ret_v,
			     struct err *err)
{
	return manifest(c, READ_MANIFEST, list, row, meta, needs, ret_v, err);
}

enum cache_answer cache_index(struct cache *c, struct mlist *list, const struct manifest_file *row,
			      struct metadata *meta, struct needs *needs, struct mview **ret_v,
			      struct err *err)
{
	return manifest(c, READ_INDEX, list, row, meta, needs, ret_v, err);
}

void cache_index_let(struct cache *c, const struct manifest_file *row, struct needs *needs)
{
	let(needs, item_of(c, READ_INDEX, row->path, row->first_row_id, row->seq));
}

void cache_view_let(struct cache *c, const struct manifest_file *row, struct needs *needs)
{
	let(needs, item_of(c, READ_MANIFEST, row->path, row->first_row_id, row->seq));
}

enum cache_answer cache_vec(struct cache *c, const struct content_file *dv, struct needs *needs,
			    struct vec **ret_v, struct err *err)
{
	struct cache_item *it = item_of(c, READ_VECTOR, dv->path, dv->content_offset, 0);
	enum cache_answer ans = answer(it, needs, err);
	if (ans == CACHE_HAVE) {
		*ret_v = it->vec;
	} else if (ans == CACHE_WAIT && it->state == ITEM_MISSING) {
		it->read.length = dv->content_size;
		it->read.cardinality = dv->record_count;
	}
	return ans;
}

static void ready(struct cache *c, struct cache_item *it, size_t bytes)
{
	it->state = ITEM_READY;
	it->bytes = bytes;
	c->bytes += bytes;
	tell_index(c, it, 1);
}

void cache_put_list(struct cache *c, struct strv path, struct mlist *l)
{
	struct cache_item *it = item_of(c, READ_MANIFEST_LIST, path, 0, 0);
	if (it->state != ITEM_MISSING && it->state != ITEM_FAILED)
		return;
	it->list = mlist_ref(l);
	ready(c, it, l->arena.used);
}

void cache_put_view(struct cache *c, struct strv path, int64_t first_row_id, int64_t seq,
		    struct mview *v)
{
	struct cache_item *it = item_of(c, READ_MANIFEST, path, first_row_id, seq);
	if (it->state != ITEM_MISSING && it->state != ITEM_FAILED)
		return;
	it->view = mview_ref(v);
	ready(c, it, mview_memory(v));
}

void cache_put_index(struct cache *c, struct strv path, int64_t first_row_id, int64_t seq,
		     struct mview *v)
{
	struct cache_item *it = item_of(c, READ_INDEX, path, first_row_id, seq);
	if (it->state != ITEM_MISSING && it->state != ITEM_FAILED)
		return;
	it->view = mview_light(v);
	ready(c, it, mview_memory(it->view));
}

void cache_put_vec(struct cache *c, struct strv path, int64_t offset, struct vec *v)
{
	struct cache_item *it = item_of(c, READ_VECTOR, path, offset, 0);
	if (it->state != ITEM_MISSING && it->state != ITEM_FAILED)
		return;
	it->vec = vec_ref(v);
	ready(c, it, bitmap64_memory(v->set));
}

bool cache_item_begin(struct cache_item *it)
{
	if (it->state != ITEM_MISSING)
		return false;
	it->state = ITEM_READING;
	return true;
}

const struct read_effect *cache_item_read(const struct cache_item *it)
{
	return &it->read;
}

struct list *cache_item_waiters(struct cache_item *it)
{
	return &it->waiters;
}

void cache_item_done(struct cache *c, struct cache_item *it, struct read_result *res)
{
	ASSERT(it->state == ITEM_READING);
	if (res->err.st != ST_OK) {
		it->state = ITEM_FAILED;
		it->err = res->err;
	} else {
		switch (it->read.as) {
		case READ_MANIFEST_LIST:
			it->list = res->own_list;
			res->own_list = NULL;
			ready(c, it, it->list->arena.used);
			break;
		case READ_MANIFEST:
		case READ_INDEX:
			it->view = res->own_view;
			res->own_view = NULL;
			ready(c, it, mview_memory(it->view));
			break;
		case READ_VECTOR:
			it->vec = vec_new(res->own_vector);
			res->own_vector = NULL;
			ready(c, it, bitmap64_memory(it->vec->set));
			break;
		case READ_METADATA:
		case READ_ADOPTED:
		case READ_BLOB:
			ASSERT_NEVER("neither metadata nor a worker's file is cached here");
		}
	}
	/* The row is no longer needed: a decoded manifest borrows nothing from it. */
	mlist_unref(it->row_owner);
	metadata_unref(it->meta);
	it->row_owner = NULL;
	it->meta = NULL;
	it->read.row = NULL;
	it->read.metadata = NULL;
}

static bool pinned(const struct cache_item *it)
{
	return it->holds || it->state == ITEM_READING || !list_empty(&it->waiters) ||
	       (it->list && it->list->refs > 1) || (it->vec && it->vec->refs > 1) ||
	       (it->view && it->view->refs > 1);
}

static void trim(struct cache *c, bool views_only)
{
	for (struct list *n = c->lru.prev, *prev; n != &c->lru && c->bytes > c->max_bytes;
	     n = prev) {
		prev = n->prev;
		struct cache_item *it = LIST_ITEM(n, struct cache_item, lru);
		if (pinned(it) || (views_only && it->read.as != READ_MANIFEST))
			continue;
		c->stats.dropped += it->bytes > 0;
		free_item(c, it);
	}
}

void cache_trim(struct cache *c)
{
	trim(c, true);
	trim(c, false);
}
