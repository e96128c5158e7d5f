#include "proto/dv/bitmap64.h"

#include <roaring/roaring.h>
#include <stdlib.h>

#include "proto/dv/roar32.h"

/* The library's "safe" reader bounds its reads only: it takes runs past 65535, false counts and
 * unsorted arrays, and then writes outside its memory. So it sees checked bytes only. */

struct entry {
	uint32_t key;
	roaring_bitmap_t *bits; /* never empty, except inside decode */
};

struct bitmap64 {
	struct entry *items; /* keys rise */
	size_t n;
	size_t cap;
};

static uint32_t key_of(uint64_t pos)
{
	return (uint32_t)(pos >> 32);
}

static uint64_t pos_of(uint32_t key, uint32_t low)
{
	return (uint64_t)key << 32 | low;
}

struct bitmap64 *bitmap64_new(void)
{
	return base_calloc(1, sizeof(struct bitmap64));
}

void bitmap64_free(struct bitmap64 *own_set)
{
	if (!own_set)
		return;
	for (size_t i = 0; i < own_set->n; i++)
		roaring_bitmap_free(own_set->items[i].bits);
	base_free(own_set->items);
	base_free(own_set);
}

/* Room for one more; bounded by BITMAP64_MAX_KEYS at every caller. */
static void grow(struct bitmap64 *set)
{
	if (set->n < set->cap)
		return;
	set->cap = set->cap ? set->cap * 2 : 2;
	set->items = base_realloc_array(set->items, set->cap, sizeof *set->items);
}

static void append(struct bitmap64 *set, uint32_t key, roaring_bitmap_t *own_bits)
{
	ASSERT(own_bits);
	grow(set);
	set->items[set->n++] = (struct entry){key, own_bits};
}

struct bitmap64 *bitmap64_clone(const struct bitmap64 *set)
{
	struct bitmap64 *copy = bitmap64_new();
	for (size_t i = 0; i < set->n; i++)
		append(copy, set->items[i].key, roaring_bitmap_copy(set->items[i].bits));
	return copy;
}

/* Index of the first entry whose key is >= key. */
static size_t lower_bound(const struct bitmap64 *set, uint32_t key)
{
	size_t lo = 0, hi = set->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (set->items[mid].key < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const roaring_bitmap_t *find(const struct bitmap64 *set, uint32_t key)
{
	size_t i = lower_bound(set, key);
	return i < set->n && set->items[i].key == key ? set->items[i].bits : NULL;
}

static enum status too_high(struct err *err)
{
	return err_set(err, ST_LIMIT, "position", "a position is above %llu",
		       (unsigned long long)BITMAP64_MAX_POSITION);
}

static enum status too_many_keys(struct err *err, const char *field)
{
	return err_set(err, ST_LIMIT, field, "more than %zu distinct high halves of positions",
		       BITMAP64_MAX_KEYS);
}

/* The bitmap of this key, made when absent; NULL at the limit of keys. */
static roaring_bitmap_t *obtain(struct bitmap64 *set, uint32_t key)
{
	size_t i = lower_bound(set, key);
	if (i < set->n && set->items[i].key == key)
		return set->items[i].bits;
	if (set->n >= BITMAP64_MAX_KEYS)
		return NULL;
	grow(set);
	memmove(set->items + i + 1, set->items + i, (set->n - i) * sizeof *set->items);
	roaring_bitmap_t *bits = roaring_bitmap_create();
	ASSERT(bits);
	set->items[i] = (struct entry){key, bits};
	set->n++;
	return bits;
}

enum status bitmap64_add(struct bitmap64 *set, uint64_t pos, struct err *err)
{
	if (pos > BITMAP64_MAX_POSITION)
		return too_high(err);
	roaring_bitmap_t *bits = obtain(set, key_of(pos));
	if (!bits)
		return too_many_keys(err, "position");
	roaring_bitmap_add(bits, (uint32_t)pos);
	return ST_OK;
}

enum status bitmap64_add_range(struct bitmap64 *set, uint64_t first, uint64_t end, struct err *err)
{
	if (end <= first)
		return ST_OK;
	uint64_t last = end - 1;
	if (last > BITMAP64_MAX_POSITION)
		return too_high(err);
	uint32_t from = key_of(first), to = key_of(last);
	/* Keys in between may be there already; counting them all as new is precise enough. */
	if (set->n + (to - from) + 1u > BITMAP64_MAX_KEYS)
		return too_many_keys(err, "position");
	for (uint32_t key = from; key <= to; key++) {
		roaring_bitmap_t *bits = obtain(set, key);
		ASSERT(bits);
		roaring_bitmap_add_range_closed(bits, key == from ? (uint32_t)first : 0,
						key == to ? (uint32_t)last : UINT32_MAX);
	}
	return ST_OK;
}

bool bitmap64_contains(const struct bitmap64 *set, uint64_t pos)
{
	const roaring_bitmap_t *bits = find(set, key_of(pos));
	return bits && roaring_bitmap_contains(bits, (uint32_t)pos);
}

uint64_t bitmap64_cardinality(const struct bitmap64 *set)
{
	uint64_t n = 0;
	for (size_t i = 0; i < set->n; i++)
		n += roaring_bitmap_get_cardinality(set->items[i].bits);
	return n;
}

bool bitmap64_empty(const struct bitmap64 *set)
{
	return set->n == 0;
}

bool bitmap64_max(const struct bitmap64 *set, uint64_t *ret_pos)
{
	if (set->n == 0)
		return false;
	const struct entry *e = &set->items[set->n - 1];
	*ret_pos = pos_of(e->key, roaring_bitmap_maximum(e->bits));
	return true;
}

bool bitmap64_equal(const struct bitmap64 *a, const struct bitmap64 *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (a->items[i].key != b->items[i].key ||
		    !roaring_bitmap_equals(a->items[i].bits, b->items[i].bits))
			return false;
	return true;
}

size_t bitmap64_memory(const struct bitmap64 *set)
{
	size_t n = sizeof *set + set->cap * sizeof *set->items;
	for (size_t i = 0; i < set->n; i++)
		n += sizeof(roaring_bitmap_t) + 64 +
		     roaring_bitmap_portable_size_in_bytes(set->items[i].bits);
	return n;
}

/* One bitmap of a union's input. */
struct part {
	uint32_t key;
	const roaring_bitmap_t *bits;
};

static int part_cmp(const void *a, const void *b)
{
	uint32_t x = ((const struct part *)a)->key, y = ((const struct part *)b)->key;
	return x < y ? -1 : x > y;
}

static size_t distinct_keys(const struct part *parts, size_t n)
{
	size_t keys = 0;
	for (size_t i = 0; i < n; i++)
		keys += i == 0 || parts[i].key != parts[i - 1].key;
	return keys;
}

enum status bitmap64_union(struct bitmap64 *set, const struct bitmap64 *const *others, size_t n,
			   struct err *err)
{
	size_t total = set->n, k = 0;
	for (size_t i = 0; i < n; i++) {
		ASSERT(others[i] != set);
		total += others[i]->n;
	}
	/* One allocation larger than needed keeps the count of zero simple. */
	struct part *parts = base_calloc(total + 1, sizeof *parts);
	for (size_t j = 0; j < set->n; j++)
		parts[k++] = (struct part){set->items[j].key, set->items[j].bits};
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < others[i]->n; j++)
			parts[k++] =
				(struct part){others[i]->items[j].key, others[i]->items[j].bits};
	qsort(parts, total, sizeof *parts, part_cmp);
	if (distinct_keys(parts, total) > BITMAP64_MAX_KEYS) {
		base_free(parts);
		return too_many_keys(err, "bitmap.count");
	}
	struct bitmap64 all = {0};
	const roaring_bitmap_t **group = base_calloc(total + 1, sizeof *group);
	for (size_t i = 0, j; i < total; i = j) {
		for (j = i; j < total && parts[j].key == parts[i].key; j++)
			group[j - i] = parts[j].bits;
		append(&all, parts[i].key,
		       j - i == 1 ? roaring_bitmap_copy(group[0])
				  : roaring_bitmap_or_many(j - i, group));
	}
	base_free(group);
	base_free(parts);
	struct bitmap64 old = *set;
	*set = all;
	for (size_t i = 0; i < old.n; i++)
		roaring_bitmap_free(old.items[i].bits);
	base_free(old.items);
	return ST_OK;
}

/* Drops entries that became empty; the order stays. */
static void drop_empty(struct bitmap64 *set)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n; i++) {
		if (roaring_bitmap_is_empty(set->items[i].bits))
			roaring_bitmap_free(set->items[i].bits);
		else
			set->items[n++] = set->items[i];
	}
	set->n = n;
}

void bitmap64_subtract(struct bitmap64 *set, const struct bitmap64 *other)
{
	ASSERT(set != other);
	for (size_t i = 0; i < set->n; i++) {
		const roaring_bitmap_t *b = find(other, set->items[i].key);
		if (b)
			roaring_bitmap_andnot_inplace(set->items[i].bits, b);
	}
	drop_empty(set);
}

void bitmap64_intersect(struct bitmap64 *set, const struct bitmap64 *other)
{
	ASSERT(set != other);
	for (size_t i = 0; i < set->n; i++) {
		const roaring_bitmap_t *b = find(other, set->items[i].key);
		if (b)
			roaring_bitmap_and_inplace(set->items[i].bits, b);
		else
			roaring_bitmap_clear(set->items[i].bits);
	}
	drop_empty(set);
}

uint64_t bitmap64_common(const struct bitmap64 *a, const struct bitmap64 *b)
{
	uint64_t n = 0;
	for (size_t i = 0; i < a->n; i++) {
		const roaring_bitmap_t *y = find(b, a->items[i].key);
		if (y)
			n += roaring_bitmap_and_cardinality(a->items[i].bits, y);
	}
	return n;
}

bool bitmap64_first_common(const struct bitmap64 *a, const struct bitmap64 *b, uint64_t *ret_pos)
{
	for (size_t i = 0; i < a->n; i++) {
		const roaring_bitmap_t *y = find(b, a->items[i].key);
		if (!y || !roaring_bitmap_intersect(a->items[i].bits, y))
			continue;
		roaring_bitmap_t *both = roaring_bitmap_and(a->items[i].bits, y);
		ASSERT(both && !roaring_bitmap_is_empty(both));
		*ret_pos = pos_of(a->items[i].key, roaring_bitmap_minimum(both));
		roaring_bitmap_free(both);
		return true;
	}
	return false;
}

#define READ_CHUNK 256

size_t bitmap64_read(const struct bitmap64 *set, uint64_t from, uint64_t *out, size_t cap)
{
	size_t n = 0;
	for (size_t i = lower_bound(set, key_of(from)); i < set->n && n < cap; i++) {
		const struct entry *e = &set->items[i];
		roaring_uint32_iterator_t it;
		roaring_init_iterator(e->bits, &it);
		if (e->key == key_of(from))
			roaring_move_uint32_iterator_equalorlarger(&it, (uint32_t)from);
		uint32_t chunk[READ_CHUNK];
		while (it.has_value && n < cap) {
			size_t want = cap - n < READ_CHUNK ? cap - n : READ_CHUNK;
			uint32_t got = roaring_read_uint32_iterator(&it, chunk, (uint32_t)want);
			for (uint32_t k = 0; k < got; k++)
				out[n++] = pos_of(e->key, chunk[k]);
		}
	}
	return n;
}

/* --- bytes --- */

static void put_u32(struct buf *out, uint32_t v)
{
	uint8_t b[4];
	put_u32le(b, v);
	buf_put(out, b, sizeof b);
}

void bitmap64_encode(const struct bitmap64 *set, struct buf *out)
{
	static const uint8_t none[ROAR32_EMPTY_BYTES] = {0x3a, 0x30};
	uint32_t max_key = set->n ? set->items[set->n - 1].key : 0;
	bool dense = set->n && max_key <= BITMAP64_DENSE_KEY;
	uint8_t count[8];
	put_u64le(count, dense ? (uint64_t)max_key + 1 : set->n);
	buf_put(out, count, sizeof count);
	struct buf raw;
	buf_init(&raw, BITMAP64_MAX_BYTES);
	uint32_t next = 0;
	for (size_t i = 0; i < set->n && buf_ok(out); i++) {
		const struct entry *e = &set->items[i];
		for (; dense && next < e->key; next++) {
			put_u32(out, next);
			buf_put(out, none, sizeof none);
		}
		next = e->key + 1;
		put_u32(out, e->key);
		buf_clear(&raw);
		/* The library's own choice of containers depends on the set's history. */
		uint8_t *p = buf_room(&raw, roaring_bitmap_portable_size_in_bytes(e->bits));
		if (!p) {
			out->failed = true;
			break;
		}
		size_t wrote = roaring_bitmap_portable_serialize(e->bits, (char *)p);
		ASSERT(wrote == raw.n);
		roar32_canonical(buf_bytes(&raw), out);
	}
	buf_fini(&raw);
}

static int entry_cmp(const void *a, const void *b)
{
	uint32_t x = ((const struct entry *)a)->key, y = ((const struct entry *)b)->key;
	return x < y ? -1 : x > y;
}

/* Entry i of the list: key and bitmap; *at moves behind it. */
static enum status decode_entry(struct bitmap64 *set, struct bytes data, size_t *at,
				struct err *err)
{
	if (data.n - *at < 4)
		return err_set(err, ST_DV_CORRUPT, "key", "the vector ends inside a key");
	uint32_t key = get_u32le(data.p + *at);
	if (key > key_of(BITMAP64_MAX_POSITION))
		return err_set(err, ST_DV_CORRUPT, "key", "key %u is out of range", key);
	*at += 4;
	struct bytes rest = {data.p + *at, data.n - *at};
	size_t len = 0;
	uint64_t card = 0;
	enum status st = roar32_check(rest, &len, &card, err);
	if (st != ST_OK)
		return st;
	roaring_bitmap_t *bits =
		roaring_bitmap_portable_deserialize_safe((const char *)rest.p, len);
	if (!bits)
		return err_set(err, ST_LIMIT, "", "no memory for a bitmap of %zu bytes", len);
	append(set, key, bits);
	if (roaring_bitmap_get_cardinality(bits) != card)
		return err_set(err, ST_DV_CORRUPT, "", "the bitmap's count is inconsistent");
	*at += len;
	return ST_OK;
}

static enum status decode_into(struct bitmap64 *set, struct bytes data, struct err *err)
{
	if (data.n > BITMAP64_MAX_BYTES)
		return err_set(err, ST_LIMIT, "length", "a vector is longer than %zu bytes",
			       BITMAP64_MAX_BYTES);
	if (data.n < 8)
		return err_set(err, ST_DV_CORRUPT, "bitmap.count", "the vector has no count");
	uint64_t count = get_u64le(data.p);
	/* No bitmap takes less than its key and an empty bitmap. */
	if (count > (data.n - 8) / (4 + ROAR32_EMPTY_BYTES))
		return err_set(err, ST_DV_CORRUPT, "bitmap.count",
			       "%llu bitmaps do not fit the vector's length",
			       (unsigned long long)count);
	if (count > BITMAP64_MAX_KEYS)
		return too_many_keys(err, "bitmap.count");
	size_t at = 8;
	for (uint64_t i = 0; i < count; i++) {
		enum status st = decode_entry(set, data, &at, err);
		if (st != ST_OK) {
			err_prefix(err, "bitmap[%llu]", (unsigned long long)i);
			return st;
		}
	}
	if (at != data.n)
		return err_set(err, ST_DV_CORRUPT, "bitmap", "%zu bytes are left over",
			       data.n - at);
	if (set->n > 1)
		qsort(set->items, set->n, sizeof *set->items, entry_cmp);
	for (size_t i = 1; i < set->n; i++)
		if (set->items[i].key == set->items[i - 1].key)
			return err_set(err, ST_DV_CORRUPT, "key", "key %u is there twice",
				       set->items[i].key);
	drop_empty(set);
	uint64_t max;
	if (bitmap64_max(set, &max) && max > BITMAP64_MAX_POSITION)
		return too_high(err);
	return ST_OK;
}

enum status bitmap64_decode(struct bytes data, struct bitmap64 **ret_set, struct err *err)
{
	struct bitmap64 *set = bitmap64_new();
	enum status st = decode_into(set, data, err);
	if (st != ST_OK) {
		bitmap64_free(set);
		return st;
	}
	*ret_set = set;
	return ST_OK;
}
