#include "daemon/bind/mcache.h"

#include "daemon/commit/decode.h"
#include "proto/base/digest.h"
#include "proto/base/gzip.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/view.h"
#include "proto/rest/rb_table.h"
#include "proto/rest/rb_view.h"
#include "store/obj/obj.h"

#define BUCKETS 4096
/* Decoding or writing more than this is a job. */
#define INLINE_BYTES ((size_t)64 << 10)
/* A file that was there this short a time ago counts as there. */
#define LOOK_AGE_US INT64_C(1000)
/* Files that are read and decoded at a time. Each may be large, and what is read counts in the cache
 * only when it is decoded; a thread of the pool and a core each have enough to do with these. */
#define READS_MAX 8
/* Beside the metadata: location, quotes, "config". */
#define BODY_SPARE ((size_t)64 << 10)

/* At most one thing happens to an entry at a time. */
enum busy { IDLE, QUEUED, READING, BUILDING, LOOKING };

struct mcache_entry {
	size_t refs; /* the cache's own counts */
	struct mcache *cache;
	struct strv location; /* owned */
	bool view;
	struct uuid table; /* or view */
	bool has_table;
	struct list by_location, by_table, lru; /* on no list: not in the cache any more */
	struct list waiters;
	struct list queued; /* for a read */
	struct metadata *m; /* of a table */
	struct bytes body[MCACHE_REFS_GZIP]; /* owned; p NULL until built */
	char etag[MCACHE_REFS_GZIP][MCACHE_ETAG_LEN + 1]; /* of the bodies that were asked for */
	size_t cost;	      /* as counted in the cache */
	int64_t looked_us;    /* when the file was last seen to be there */

	enum busy busy;
	struct obj_op op;
	struct loop_job job;
	uint8_t *own_data; /* of the file, while it is decoded */
	struct bytes data;
	struct read_result read;
	enum mcache_rep building;
	struct buf out;
};

struct mcache {
	struct loop *loop;
	struct obj_store *obj;
	size_t max_bytes;
	struct list lru; /* most recent first */
	size_t reading;
	struct list queue; /* entries whose read waits */
	struct mcache_stats stats;
	struct list by_location[BUCKETS];
	struct list by_table[BUCKETS];
};

struct mcache *mcache_new(struct loop *loop, struct obj_store *obj, size_t max_bytes)
{
	struct mcache *c = base_calloc(1, sizeof *c);
	c->loop = loop;
	c->obj = obj;
	c->max_bytes = max_bytes;
	list_init(&c->lru);
	list_init(&c->queue);
	for (size_t i = 0; i < BUCKETS; i++) {
		list_init(&c->by_location[i]);
		list_init(&c->by_table[i]);
	}
	return c;
}

static struct list *location_bucket(struct mcache *c, struct strv location)
{
	return &c->by_location[bytes_hash(strv_bytes(location)) % BUCKETS];
}

static struct list *table_bucket(struct mcache *c, struct uuid table)
{
	return &c->by_table[bytes_hash((struct bytes){table.b, sizeof table.b}) % BUCKETS];
}

/* ------------------------------------------------------------------ entries */

struct mcache_entry *mcache_ref(struct mcache_entry *e)
{
	e->refs++;
	return e;
}

void mcache_unref(struct mcache_entry *own_e)
{
	struct mcache_entry *e = own_e;
	ASSERT(e->refs > 0);
	if (--e->refs > 0)
		return;
	ASSERT(e->busy == IDLE && list_empty(&e->waiters));
	metadata_unref(e->m);
	for (size_t i = 0; i < ARRAY_SIZE(e->body); i++)
		base_free((void *)(uintptr_t)e->body[i].p); /* ours, const only for readers */
	base_free((void *)(uintptr_t)e->location.p);
	base_free(e);
}

struct metadata *mcache_metadata(const struct mcache_entry *e)
{
	return e->m;
}

struct strv mcache_location(const struct mcache_entry *e)
{
	return e->location;
}

struct bytes mcache_body(const struct mcache_entry *e, enum mcache_rep rep)
{
	ASSERT(rep != MCACHE_METADATA && e->body[rep - 1].p);
	return e->body[rep - 1];
}

void mcache_etag(struct strv location, enum mcache_rep rep, char out[MCACHE_ETAG_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	struct digest_ctx ctx;
	const uint8_t kind = (uint8_t)(rep - MCACHE_ALL);
	ASSERT(rep != MCACHE_METADATA);
	digest_init(&ctx);
	digest_add(&ctx, (struct bytes){&kind, 1});
	digest_add(&ctx, strv_bytes(location));
	struct digest d = digest_fini(&ctx);
	out[0] = out[MCACHE_ETAG_LEN - 1] = '"';
	for (size_t i = 0; i < 16; i++) {
		out[1 + 2 * i] = digits[d.b[i] >> 4];
		out[2 + 2 * i] = digits[d.b[i] & 15];
	}
	out[MCACHE_ETAG_LEN] = '\0';
}

const char *mcache_entry_etag(struct mcache_entry *e, enum mcache_rep rep)
{
	ASSERT(rep != MCACHE_METADATA);
	if (!e->etag[rep - 1][0])
		mcache_etag(e->location, rep, e->etag[rep - 1]);
	return e->etag[rep - 1];
}

static bool linked(const struct mcache_entry *e)
{
	return !list_empty(&e->by_location);
}

/* Takes it out of the cache; whoever waits for it or holds it is served all the same. */
static void drop(struct mcache_entry *e)
{
	if (!linked(e))
		return;
	list_remove(&e->by_location);
	list_remove(&e->by_table);
	list_remove(&e->lru);
	e->cache->stats.entries--;
	e->cache->stats.bytes -= e->cost;
	mcache_unref(e);
}

static void evict(struct mcache *c)
{
	struct list *at = c->lru.prev;
	while (c->stats.bytes > c->max_bytes && at != &c->lru) {
		struct mcache_entry *e = LIST_ITEM(at, struct mcache_entry, lru);
		at = at->prev;
		if (e->busy != IDLE || !list_empty(&e->waiters))
			continue;
		c->stats.evicted++;
		drop(e);
	}
}

/* After the entry has grown. */
static void recount(struct mcache_entry *e)
{
	size_t cost = sizeof *e + e->location.n;
	for (size_t i = 0; i < ARRAY_SIZE(e->body); i++)
		cost += e->body[i].n;
	if (e->m)
		cost += metadata_memory(e->m);
	if (linked(e)) {
		e->cache->stats.bytes += cost - e->cost;
		e->cost = cost;
		evict(e->cache);
	}
}

static struct mcache_entry *find(struct mcache *c, struct strv location, bool view)
{
	struct list *bucket = location_bucket(c, location);
	LIST_FOR (n, tmp, bucket) {
		struct mcache_entry *e = LIST_ITEM(n, struct mcache_entry, by_location);
		if (e->view == view && strv_eq(e->location, location)) {
			list_remove(&e->lru);
			list_push_front(&c->lru, &e->lru);
			return e;
		}
	}
	return NULL;
}

static struct mcache_entry *add(struct mcache *c, struct strv location, bool view)
{
	struct mcache_entry *e = base_calloc(1, sizeof *e);
	char *copy = base_alloc(location.n + 1);
	memcpy(copy, location.p, location.n);
	copy[location.n] = '\0';
	e->refs = 1;
	e->cache = c;
	e->view = view;
	e->location = (struct strv){copy, location.n};
	list_init(&e->by_location);
	list_init(&e->by_table);
	list_init(&e->lru);
	list_init(&e->waiters);
	list_init(&e->queued);
	list_push_front(location_bucket(c, location), &e->by_location);
	list_push_front(&c->lru, &e->lru);
	c->stats.entries++;
	return e;
}

/* What the file holds is known now. Another version of the same table or view will hardly be asked for
 * again and makes room. */
static void filled(struct mcache_entry *e)
{
	struct mcache *c = e->cache;
	e->looked_us = loop_mono_us(c->loop);
	if (e->has_table && linked(e)) {
		struct list *bucket = table_bucket(c, e->table);
		LIST_FOR (n, tmp, bucket) {
			struct mcache_entry *old = LIST_ITEM(n, struct mcache_entry, by_table);
			if (old->view == e->view && uuid_eq(old->table, e->table))
				drop(old);
		}
		list_push_front(bucket, &e->by_table);
	}
	recount(e);
}

static void set_metadata(struct mcache_entry *e, struct metadata *m)
{
	e->m = metadata_ref(m);
	e->has_table = metadata_uuid(m, &e->table);
	filled(e);
}

void mcache_put(struct mcache *c, struct strv location, struct metadata *m)
{
	struct mcache_entry *e = find(c, location, false);
	if (!e)
		e = add(c, location, false);
	if (e->m)
		e->looked_us = loop_mono_us(c->loop);
	else
		set_metadata(e, m);
}

/* ------------------------------------------------------------------ work on one entry */

static void advance(struct mcache_entry *e);

static void fail_all(struct mcache_entry *e, const struct err *err)
{
	struct list *n;
	mcache_ref(e);
	drop(e);
	while ((n = list_pop_front(&e->waiters)) != NULL) {
		struct mcache_wait *w = LIST_ITEM(n, struct mcache_wait, node);
		w->done(w, NULL, err);
	}
	mcache_unref(e);
}

/* The busy time held a reference. */
static void over(struct mcache_entry *e)
{
	e->busy = IDLE;
	advance(e);
	if (linked(e))
		evict(e->cache);
	mcache_unref(e);
}

/* A read has ended; e was read. Another may begin: advance starts it, unless it is not needed any
 * more. */
static void read_over(struct mcache_entry *e)
{
	struct mcache *c = e->cache;
	struct list *n;
	c->reading--;
	over(e);
	while (c->reading < READS_MAX && (n = list_pop_front(&c->queue)) != NULL)
		over(LIST_ITEM(n, struct mcache_entry, queued));
}

/* A view is small: its answer is made at once, and is all that is kept of it. */
static void decode_view(struct mcache_entry *e)
{
	struct view *v = NULL;
	buf_init(&e->out, 2 * VIEW_MAX_BYTES);
	if (view_read(e->data, metadata_file_gzip(e->location), &v, &e->read.err) != ST_OK)
		return;
	rb_view_load_write(&e->out, e->location, v);
	e->table = v->uuid;
	view_free(v);
	if (!buf_ok(&e->out))
		err_set(&e->read.err, ST_LIMIT, "", "the view is too large");
}

static void decode_body(struct loop_job *job)
{
	struct mcache_entry *e = CONTAINER_OF(job, struct mcache_entry, job);
	const struct read_effect what = {
		.as = READ_METADATA, .path = e->location, .length = -1};
	base_memory_reset();
	if (e->view)
		decode_view(e);
	else
		decode_run(&what, e->data, &e->read);
	err_memory(&e->read.err);
}

static void keep_view(struct mcache_entry *e)
{
	size_t n = 0;
	uint8_t *p = buf_take(&e->out, &n);
	e->body[MCACHE_ALL - 1] = (struct bytes){p, n};
	e->has_table = true;
	filled(e);
}

static void decoded(struct loop_job *job)
{
	struct mcache_entry *e = CONTAINER_OF(job, struct mcache_entry, job);
	struct read_result r = e->read;
	base_free(e->own_data);
	e->own_data = NULL;
	e->read = (struct read_result){0};
	e->busy = IDLE;
	if (r.err.st != ST_OK)
		fail_all(e, &r.err);
	else if (e->view)
		keep_view(e);
	else if (!e->m) /* else the core was faster */
		set_metadata(e, r.own_metadata);
	metadata_unref(r.own_metadata);
	if (e->view)
		buf_fini(&e->out);
	read_over(e);
}

static void got(struct op *op, enum status st, const struct err *err)
{
	struct mcache_entry *e = op->ctx;
	size_t n = 0;
	if (st != ST_OK) {
		struct err why = *err;
		e->busy = IDLE;
		fail_all(e, &why);
		read_over(e);
		return;
	}
	e->own_data = obj_take(&e->op, &n);
	e->data = (struct bytes){e->own_data, n};
	e->job.run = decode_body;
	e->job.done = decoded;
	if (n > INLINE_BYTES) {
		loop_job_start(e->cache->loop, &e->job, true);
	} else {
		decode_body(&e->job);
		decoded(&e->job);
	}
}

static void start_read(struct mcache_entry *e)
{
	struct err err = {0};
	if (e->cache->reading == READS_MAX) {
		e->busy = QUEUED;
		mcache_ref(e);
		list_push_back(&e->cache->queue, &e->queued);
		return;
	}
	op_init(&e->op.op, got, e);
	if (obj_get(e->cache->obj, e->location, NULL,
		    e->view ? VIEW_MAX_BYTES : METADATA_MAX_BYTES, &e->op, &err) != ST_OK) {
		fail_all(e, &err);
		return;
	}
	e->cache->stats.reads++;
	e->cache->reading++;
	e->busy = READING;
	mcache_ref(e);
}

static void looked(struct op *op, enum status st, const struct err *err)
{
	struct mcache_entry *e = op->ctx;
	struct err why = *err;
	e->busy = IDLE;
	/* Only a clear no counts: PostgreSQL says that this is the table's metadata, and we have it. */
	if (st == ST_NOT_FOUND)
		fail_all(e, &why);
	else
		e->looked_us = loop_mono_us(e->cache->loop);
	over(e);
}

static void start_look(struct mcache_entry *e)
{
	struct err err = {0};
	op_init(&e->op.op, looked, e);
	if (obj_stat(e->cache->obj, e->location, &e->op, &err) != ST_OK) {
		e->looked_us = loop_mono_us(e->cache->loop);
		return;
	}
	e->cache->stats.looks++;
	e->busy = LOOKING;
	mcache_ref(e);
}

static void build_body(struct loop_job *job)
{
	struct mcache_entry *e = CONTAINER_OF(job, struct mcache_entry, job);
	bool refs = e->building == MCACHE_REFS || e->building == MCACHE_REFS_GZIP;
	if (e->view) {
		if (gzip_write(e->body[MCACHE_ALL - 1], &e->out, NULL) != ST_OK)
			buf_clear(&e->out); /* an empty answer is none */
		return;
	}
	if (e->building < MCACHE_ALL_GZIP)
		rb_table_load_write(&e->out, e->location, e->m, refs);
	else if (rb_table_load_gzip(&e->out, e->location, e->m, refs, NULL) != ST_OK)
		buf_clear(&e->out);
}

static void built(struct loop_job *job)
{
	struct mcache_entry *e = CONTAINER_OF(job, struct mcache_entry, job);
	size_t n = 0;
	uint8_t *p = buf_take(&e->out, &n);
	buf_fini(&e->out);
	e->busy = IDLE;
	if (p) {
		e->body[e->building - 1] = (struct bytes){p, n};
		recount(e);
	} else {
		struct err err;
		err_set(&err, ST_INTERNAL, "", "the table's metadata is too large");
		fail_all(e, &err);
	}
	over(e);
}

static void start_build(struct mcache_entry *e, enum mcache_rep rep)
{
	size_t size = e->view ? e->body[MCACHE_ALL - 1].n : metadata_json_size(e->m);
	e->cache->stats.builds++;
	e->busy = BUILDING;
	e->building = rep;
	mcache_ref(e);
	buf_init(&e->out, METADATA_MAX_BYTES + BODY_SPARE);
	e->job.run = build_body;
	e->job.done = built;
	if (size > INLINE_BYTES) {
		loop_job_start(e->cache->loop, &e->job, true);
	} else {
		build_body(&e->job);
		built(&e->job);
	}
}

static bool is_filled(const struct mcache_entry *e)
{
	return e->view ? e->body[MCACHE_ALL - 1].p != NULL : e->m != NULL;
}

static bool has(const struct mcache_entry *e, enum mcache_rep rep)
{
	return rep == MCACHE_METADATA ? is_filled(e) : e->body[rep - 1].p != NULL;
}

/* Starts the next thing that a waiter needs, or serves all. Each start either makes the entry busy,
 * or has done its work, or has failed all. */
static void advance(struct mcache_entry *e)
{
	mcache_ref(e);
	while (e->busy == IDLE && !list_empty(&e->waiters)) {
		struct mcache_wait *need = NULL;
		if (!is_filled(e)) {
			start_read(e);
			continue;
		}
		LIST_FOR (n, tmp, &e->waiters) {
			struct mcache_wait *w = LIST_ITEM(n, struct mcache_wait, node);
			if (!has(e, w->rep))
				need = w;
		}
		if (need) {
			start_build(e, need->rep);
			continue;
		}
		if (loop_mono_us(e->cache->loop) - e->looked_us > LOOK_AGE_US) {
			start_look(e);
			continue;
		}
		struct mcache_wait *w =
			LIST_ITEM(list_pop_front(&e->waiters), struct mcache_wait, node);
		w->done(w, mcache_ref(e), NULL);
	}
	mcache_unref(e);
}

void mcache_load(struct mcache *c, struct strv location, struct mcache_wait *w)
{
	struct mcache_entry *e = find(c, location, w->view);
	if (e)
		c->stats.hits++;
	else
		e = add(c, location, w->view);
	list_init(&w->node);
	list_push_back(&e->waiters, &w->node);
	advance(e);
}

struct mcache_stats mcache_stats(const struct mcache *c)
{
	return c->stats;
}

void mcache_free(struct mcache *own_cache)
{
	struct mcache *c = own_cache;
	LIST_FOR (n, tmp, &c->lru) {
		struct mcache_entry *e = LIST_ITEM(n, struct mcache_entry, lru);
		ASSERT(e->busy == IDLE && list_empty(&e->waiters));
		drop(e);
	}
	base_free(c);
}
