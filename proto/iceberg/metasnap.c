/* Blocks and chunks are immutable once another list can see them, and their counts are atomic: a
 * job may build a new version while the loop drops an old one. A chunk with a single reference is
 * still private to the list that made it and may be appended to. */
#include "proto/iceberg/metasnap.h"

#include "proto/base/gzip.h"
#include "proto/base/jwrite.h"

struct metasnap {
	uint32_t refs;
	size_t memory; /* bytes of it all */
	struct snapshot s;
	/* followed by the summary pairs, the JSON and strings that the JSON holds only escaped */
};

/* text: the JSON with a comma behind it. It stands here too, so that a walk over all texts looks at no
 * block. */
struct entry {
	int64_t id;
	struct metasnap *s;
	struct bytes text;
};

struct metasnap_chunk {
	uint32_t refs;
	uint32_t n, cap; /* cap grows to METASNAP_CHUNK: most tables have few snapshots */
	size_t bytes;    /* JSON of all, one comma each */
	size_t memory;   /* of the blocks */
	struct entry *e;
	/* Its JSON packed, the last comma too, made when it is first asked for; only of a full chunk,
	 * which never changes. */
	struct gzip_part *packed;
};

#define SNAPSHOT_MAX_BYTES ((size_t)64 << 20)

/* Finds strings inside the rendered JSON, in writing order, so that they need no second copy. Any
 * equal bytes serve; the cursor only makes the search short. */
struct place {
	struct strv raw;
	size_t at;
	char *tail; /* NULL in the counting pass */
	size_t tail_n;
};

static void place(struct place *pl, struct strv *s)
{
	if (!s->p)
		return;
	const char *hit = memmem(pl->raw.p + pl->at, pl->raw.n - pl->at, s->n ? s->p : "", s->n);
	if (hit) {
		pl->at = (size_t)(hit - pl->raw.p) + s->n;
		s->p = hit;
		return;
	}
	if (pl->tail) {
		memcpy(pl->tail + pl->tail_n, s->p, s->n);
		s->p = pl->tail + pl->tail_n;
	}
	pl->tail_n += s->n;
}

static void place_all(struct place *pl, struct snapshot *s, struct strv_pair *pairs)
{
	place(pl, &s->operation);
	for (size_t i = 0; i < s->n_summary; i++) {
		struct strv_pair kv = s->summary[i];
		place(pl, &kv.key);
		place(pl, &kv.value);
		if (pairs)
			pairs[i] = kv;
	}
	place(pl, &s->manifest_list);
	place(pl, &s->manifests);
	place(pl, &s->key_id);
	place(pl, &s->extra);
}

/* json: canonical text of *s. A comma follows the copy. */
static struct metasnap *block(const struct snapshot *s, struct strv json)
{
	struct place count = {.raw = json};
	struct snapshot copy = *s;
	size_t pairs_n, total;
	place_all(&count, &copy, NULL);
	if (!mul_size(s->n_summary, sizeof(struct strv_pair), &pairs_n) ||
	    !add_size(sizeof(struct metasnap), pairs_n, &total) ||
	    !add_size(total, json.n + 1 + count.tail_n, &total))
		return NULL;
	struct buf room;
	buf_init(&room, total);
	uint8_t *p = buf_room(&room, total);
	size_t n;
	if (!p)
		return NULL;
	p = buf_take(&room, &n);
	struct metasnap *b = (struct metasnap *)(void *)p;
	struct strv_pair *pairs = (struct strv_pair *)(void *)(p + sizeof *b);
	char *raw = (char *)p + sizeof *b + pairs_n;
	memcpy(raw, json.p, json.n);
	raw[json.n] = ',';
	struct place put = {.raw = {raw, json.n}, .tail = raw + json.n + 1};
	*b = (struct metasnap){.refs = 1, .memory = total, .s = *s};
	place_all(&put, &b->s, pairs);
	b->s.summary = pairs;
	b->s.raw = put.raw;
	return b;
}

enum status metasnap_new(const struct snapshot *s, struct metasnap **ret_b, struct err *err)
{
	struct buf json;
	struct jwrite w;
	buf_init(&json, SNAPSHOT_MAX_BYTES);
	jwrite_init(&w, &json);
	snapshot_write(&w, s);
	struct metasnap *b = buf_ok(&json) ? block(s, buf_strv(&json)) : NULL;
	buf_fini(&json);
	if (!b)
		return err_set(err, ST_LIMIT, "", "the snapshot exceeds the memory limit");
	*ret_b = b;
	return ST_OK;
}

void metasnap_unref(struct metasnap *own_b)
{
	if (own_b && __atomic_sub_fetch(&own_b->refs, 1, __ATOMIC_ACQ_REL) == 0)
		base_free(own_b);
}

static void chunk_unref(struct metasnap_chunk *own_c)
{
	if (__atomic_sub_fetch(&own_c->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (uint32_t i = 0; i < own_c->n; i++)
		metasnap_unref(own_c->e[i].s);
	base_free(own_c->packed);
	base_free(own_c->e);
	base_free(own_c);
}

static void chunk_put(struct metasnap_chunk *c, struct metasnap *own_b)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 2;
		c->e = base_realloc_array(c->e, c->cap, sizeof *c->e);
	}
	c->e[c->n++] = (struct entry){own_b->s.snapshot_id,
				      own_b,
				      {(const uint8_t *)own_b->s.raw.p, own_b->s.raw.n + 1}};
	c->bytes += own_b->s.raw.n + 1;
	c->memory += own_b->memory;
}

/* A private chunk with the first n blocks of `from` (NULL: empty). */
static struct metasnap_chunk *chunk_new(const struct metasnap_chunk *from, uint32_t n)
{
	struct metasnap_chunk *c = base_calloc(1, sizeof *c);
	c->refs = 1;
	for (uint32_t i = 0; i < n; i++) {
		__atomic_add_fetch(&from->e[i].s->refs, 1, __ATOMIC_RELAXED);
		chunk_put(c, from->e[i].s);
	}
	return c;
}

static bool grow(struct metasnap_list *l, size_t need, struct arena *a)
{
	void *chunks = l->chunks, *start = l->start;
	size_t cap = l->cap, cap_start = l->cap;
	if (!arena_grow(a, &chunks, &cap, need, sizeof(struct metasnap_chunk *)) ||
	    !arena_grow(a, &start, &cap_start, need, sizeof(size_t)))
		return false;
	l->chunks = chunks;
	l->start = start;
	l->cap = cap;
	return true;
}

bool metasnap_copy(struct metasnap_list *to, const struct metasnap_list *from, struct arena *a)
{
	struct metasnap_list l = {0};
	if (!grow(&l, from->n_chunks + 1, a))
		return false;
	for (size_t i = 0; i < from->n_chunks; i++) {
		__atomic_add_fetch(&from->chunks[i]->refs, 1, __ATOMIC_RELAXED);
		l.chunks[i] = from->chunks[i];
		l.start[i] = from->start[i];
	}
	l.n_chunks = from->n_chunks;
	l.n = from->n;
	l.bytes = from->bytes;
	*to = l;
	return true;
}

void metasnap_fini(struct metasnap_list *l)
{
	for (size_t i = 0; i < l->n_chunks; i++)
		chunk_unref(l->chunks[i]);
	*l = (struct metasnap_list){0};
}

bool metasnap_append(struct metasnap_list *l, struct metasnap *own_b, struct arena *a)
{
	struct metasnap_chunk *last = l->n_chunks ? l->chunks[l->n_chunks - 1] : NULL;
	if (last && last->n < METASNAP_CHUNK) {
		if (__atomic_load_n(&last->refs, __ATOMIC_ACQUIRE) > 1) {
			l->chunks[l->n_chunks - 1] = chunk_new(last, last->n);
			chunk_unref(last);
			last = l->chunks[l->n_chunks - 1];
		}
	} else {
		if (!grow(l, l->n_chunks + 1, a)) {
			metasnap_unref(own_b);
			return false;
		}
		last = chunk_new(NULL, 0);
		l->start[l->n_chunks] = l->n;
		l->chunks[l->n_chunks++] = last;
	}
	chunk_put(last, own_b);
	l->n++;
	l->bytes += own_b->s.raw.n + 1;
	return true;
}

static bool in_sorted(const int64_t *ids, size_t n, int64_t id)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (ids[mid] == id)
			return true;
		if (ids[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

static bool chunk_hit(const struct metasnap_chunk *c, const int64_t *ids, size_t n)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (in_sorted(ids, n, c->e[i].id))
			return true;
	return false;
}

bool metasnap_remove(struct metasnap_list *l, const int64_t *ids, size_t n, struct arena *a,
		     size_t *ret_removed)
{
	size_t keep = 0, before = l->n;
	while (keep < l->n_chunks && !chunk_hit(l->chunks[keep], ids, n))
		keep++;
	*ret_removed = 0;
	if (keep == l->n_chunks)
		return true;
	/* The tail moves into a list of its own and comes back packed. */
	struct metasnap_list tail = {0};
	if (!grow(&tail, l->n_chunks - keep, a))
		return false;
	for (size_t i = keep; i < l->n_chunks; i++)
		tail.chunks[tail.n_chunks++] = l->chunks[i];
	l->n_chunks = keep;
	l->n = keep ? l->start[keep - 1] + l->chunks[keep - 1]->n : 0;
	l->bytes = 0;
	for (size_t i = 0; i < keep; i++)
		l->bytes += l->chunks[i]->bytes;
	bool ok = true;
	for (size_t i = 0; i < tail.n_chunks && ok; i++) {
		const struct metasnap_chunk *c = tail.chunks[i];
		for (uint32_t k = 0; k < c->n && ok; k++) {
			if (in_sorted(ids, n, c->e[k].id))
				continue;
			__atomic_add_fetch(&c->e[k].s->refs, 1, __ATOMIC_RELAXED);
			ok = metasnap_append(l, c->e[k].s, a);
		}
	}
	metasnap_fini(&tail);
	*ret_removed = before - l->n;
	return ok;
}

static size_t chunk_of(const struct metasnap_list *l, size_t i)
{
	size_t lo = 0, hi = l->n_chunks;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (l->start[mid] <= i)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

const struct snapshot *metasnap_at(const struct metasnap_list *l, size_t i)
{
	ASSERT(i < l->n);
	size_t c = chunk_of(l, i);
	return &l->chunks[c]->e[i - l->start[c]].s->s;
}

static bool id_at(const struct metasnap_list *l, size_t i, int64_t id)
{
	if (i >= l->n)
		return false;
	size_t c = chunk_of(l, i);
	return l->chunks[c]->e[i - l->start[c]].id == id;
}

size_t metasnap_find(const struct metasnap_list *l, int64_t id, size_t hint)
{
	for (size_t d = 0; d <= 2; d++) {
		if (hint >= d && id_at(l, hint - d, id))
			return hint - d;
		if (hint < l->n && id_at(l, hint + d, id))
			return hint + d;
	}
	/* Newest first: what is asked for is mostly near the end. */
	for (size_t c = l->n_chunks; c-- > 0;)
		for (uint32_t i = l->chunks[c]->n; i-- > 0;)
			if (l->chunks[c]->e[i].id == id)
				return l->start[c] + i;
	return METASNAP_NOT_FOUND;
}

size_t metasnap_memory(const struct metasnap_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n_chunks; i++) {
		const struct metasnap_chunk *c = l->chunks[i];
		const struct gzip_part *packed = __atomic_load_n(&c->packed, __ATOMIC_ACQUIRE);
		n += sizeof *c + c->memory + c->cap * sizeof *c->e +
		     (packed ? gzip_part_memory(packed) : 0);
	}
	return n;
}

bool metasnap_pieces(const struct metasnap_list *l, struct arena *a, struct pieces *p)
{
	size_t left = l->n;
	for (size_t c = 0; c < l->n_chunks; c++) {
		for (uint32_t i = 0; i < l->chunks[c]->n; i++) {
			struct bytes text = l->chunks[c]->e[i].text;
			text.n -= --left == 0;
			if (!pieces_add(p, a, text))
				return false;
		}
	}
	return true;
}

/* Versions share it, and jobs ask at the same time: the first one's stays. */
static const struct gzip_part *packed_of(struct metasnap_chunk *c)
{
	struct gzip_part *have = __atomic_load_n(&c->packed, __ATOMIC_ACQUIRE);
	struct bytes texts[METASNAP_CHUNK];
	ASSERT(c->n == METASNAP_CHUNK);
	if (have)
		return have;
	for (uint32_t i = 0; i < c->n; i++)
		texts[i] = c->e[i].text;
	struct gzip_part *own = gzip_part_new(&(struct pieces){.v = texts, .n = c->n});
	if (own && !__atomic_compare_exchange_n(&c->packed, &have, own, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE)) {
		base_free(own);
		return have;
	}
	return own;
}

void metasnap_gzip(const struct metasnap_list *l, struct gzip_writer *w)
{
	for (size_t c = 0; c < l->n_chunks; c++) {
		struct metasnap_chunk *chunk = l->chunks[c];
		bool last = c + 1 == l->n_chunks;
		const struct gzip_part *part = last ? NULL : packed_of(chunk);
		if (part) {
			gzip_put_part(w, part);
			continue;
		}
		for (uint32_t i = 0; i < chunk->n; i++) {
			struct bytes text = chunk->e[i].text;
			text.n -= last && i + 1 == chunk->n;
			gzip_put(w, text);
		}
	}
}

void metasnap_json(const struct metasnap_list *l, struct buf *b)
{
	for (size_t c = 0; c < l->n_chunks; c++)
		for (uint32_t i = 0; i < l->chunks[c]->n; i++)
			buf_put(b, l->chunks[c]->e[i].text.p, l->chunks[c]->e[i].text.n);
	if (l->n > 0 && buf_ok(b))
		b->n--; /* the last comma */
}
