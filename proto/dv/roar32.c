#include "proto/dv/roar32.h"

#define COOKIE_PLAIN 12346u /* no run containers; a u32 count follows */
#define COOKIE_RUNS 12347u  /* low half; count - 1 in the high half, then the run flags */
#define OFFSETS_FROM 4u     /* with run flags, offsets are there from this many containers on */
#define CONTAINERS_MAX 65536u
#define ARRAY_MAX 4096u
#define BITMAP_BYTES 8192u
#define BITMAP_WORDS (BITMAP_BYTES / 8)

enum kind { ARRAY, BITMAP, RUN };

/* Where the parts of one bitmap lie. */
struct layout {
	uint32_t count;
	const uint8_t *flags;   /* bit i: container i is a run container; NULL when none is */
	const uint8_t *heads;   /* per container: u16 key, u16 cardinality - 1 */
	const uint8_t *offsets; /* NULL when absent */
	size_t at;              /* first byte of the first container */
};

static enum status corrupt(struct err *err, const char *field, const char *msg)
{
	return err_set(err, ST_DV_CORRUPT, field, "%s", msg);
}

static enum status layout_of(struct bytes data, struct layout *ret_l, struct err *err)
{
	struct layout l = {0};
	if (data.n < 4)
		return corrupt(err, "cookie", "the bitmap ends inside its cookie");
	uint32_t cookie = get_u32le(data.p);
	size_t at = 4;
	if (cookie == COOKIE_PLAIN) {
		if (data.n < 8)
			return corrupt(err, "containers", "the bitmap ends inside its count");
		l.count = get_u32le(data.p + 4);
		at = 8;
	} else if ((cookie & 0xffff) == COOKIE_RUNS) {
		l.count = (cookie >> 16) + 1;
		l.flags = data.p + at;
		at += (l.count + 7) / 8;
	} else {
		return corrupt(err, "cookie", "not a portable Roaring bitmap");
	}
	if (l.count > CONTAINERS_MAX)
		return corrupt(err, "containers", "more containers than there are keys");
	/* All sizes are small now: at most 65,536 containers. */
	if (at > data.n || data.n - at < (size_t)l.count * 4)
		return corrupt(err, "containers", "the bitmap ends inside its container heads");
	l.heads = data.p + at;
	at += (size_t)l.count * 4;
	if (!l.flags || l.count >= OFFSETS_FROM) {
		if (data.n - at < (size_t)l.count * 4)
			return corrupt(err, "offsets", "the bitmap ends inside its offset table");
		l.offsets = data.p + at;
		at += (size_t)l.count * 4;
	}
	l.at = at;
	*ret_l = l;
	return ST_OK;
}

static uint32_t head_key(const struct layout *l, uint32_t i)
{
	return get_u16le(l->heads + (size_t)i * 4);
}

static uint32_t head_cardinality(const struct layout *l, uint32_t i)
{
	return get_u16le(l->heads + (size_t)i * 4 + 2) + 1u;
}

static enum kind head_kind(const struct layout *l, uint32_t i)
{
	if (l->flags && l->flags[i / 8] >> (i % 8) & 1)
		return RUN;
	return head_cardinality(l, i) <= ARRAY_MAX ? ARRAY : BITMAP;
}

/* Bytes of container i at p, of which `left` are there; SIZE_MAX when it is cut off. */
static size_t container_bytes(const struct layout *l, uint32_t i, const uint8_t *p, size_t left)
{
	size_t n;
	switch (head_kind(l, i)) {
	case ARRAY:
		n = (size_t)head_cardinality(l, i) * 2;
		break;
	case BITMAP:
		n = BITMAP_BYTES;
		break;
	default:
		if (left < 2)
			return SIZE_MAX;
		n = 2 + (size_t)get_u16le(p) * 4;
	}
	return n <= left ? n : SIZE_MAX;
}

static uint32_t popcount(uint64_t w)
{
	return (uint32_t)__builtin_popcountll(w);
}

/* What is wrong with the values of a container, or NULL. */
static const char *values_fault(enum kind kind, const uint8_t *p, uint32_t cardinality)
{
	if (kind == ARRAY) {
		for (uint32_t i = 1; i < cardinality; i++)
			if (get_u16le(p + (size_t)i * 2) <= get_u16le(p + (size_t)i * 2 - 2))
				return "an array's values do not rise";
		return NULL;
	}
	if (kind == BITMAP) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < BITMAP_WORDS; i++)
			n += popcount(get_u64le(p + (size_t)i * 8));
		return n == cardinality ? NULL
					: "a bitmap holds another number of values than stated";
	}
	uint32_t runs = get_u16le(p), n = 0, free_from = 0;
	if (runs == 0)
		return "a run container without runs";
	for (uint32_t i = 0; i < runs; i++) {
		uint32_t start = get_u16le(p + 2 + (size_t)i * 4);
		uint32_t more = get_u16le(p + 4 + (size_t)i * 4);
		if (i > 0 && start < free_from)
			return "runs overlap, touch or do not rise";
		if (start + more > 65535)
			return "a run passes 65535";
		n += more + 1;
		/* The value right after a run would have belonged to it. */
		free_from = start + more + 2;
	}
	return n == cardinality ? NULL : "runs hold another number of values than stated";
}

/* What is wrong with container i, whose bytes begin at `at`, or NULL and its length. */
static const char *container_fault(const struct layout *l, uint32_t i, struct bytes data, size_t at,
				   const char **ret_field, size_t *ret_n)
{
	*ret_field = "key";
	if (i > 0 && head_key(l, i) <= head_key(l, i - 1))
		return "container keys do not rise";
	*ret_field = "offset";
	if (l->offsets && get_u32le(l->offsets + (size_t)i * 4) != at)
		return "the offset table does not fit the containers";
	*ret_field = "values";
	size_t n = container_bytes(l, i, data.p + at, data.n - at);
	if (n == SIZE_MAX)
		return "the bitmap ends inside a container";
	*ret_n = n;
	return values_fault(head_kind(l, i), data.p + at, head_cardinality(l, i));
}

enum status roar32_check(struct bytes data, size_t *ret_len, uint64_t *ret_cardinality,
			 struct err *err)
{
	struct layout l;
	enum status st = layout_of(data, &l, err);
	if (st != ST_OK)
		return st;
	size_t at = l.at;
	uint64_t total = 0;
	for (uint32_t i = 0; i < l.count; i++) {
		const char *field;
		size_t n = 0;
		const char *fault = container_fault(&l, i, data, at, &field, &n);
		if (fault) {
			st = corrupt(err, field, fault);
			err_prefix(err, "container[%u]", i);
			return st;
		}
		at += n;
		total += head_cardinality(&l, i);
	}
	*ret_len = at;
	*ret_cardinality = total;
	return ST_OK;
}

/* One container and the form that it takes in canonical bytes. */
struct plan {
	const uint8_t *p;
	uint32_t bytes;
	uint16_t runs;
	uint8_t from;
	uint8_t to;
};

static uint32_t count_runs(enum kind kind, const uint8_t *p, uint32_t cardinality)
{
	uint32_t runs = 0;
	if (kind == RUN)
		return get_u16le(p);
	if (kind == ARRAY) {
		for (uint32_t i = 0; i < cardinality; i++)
			runs += i == 0 || get_u16le(p + (size_t)i * 2) !=
						  get_u16le(p + (size_t)i * 2 - 2) + 1;
		return runs;
	}
	/* A run begins at every set bit whose lower neighbour is clear. */
	uint64_t below = 0;
	for (uint32_t i = 0; i < BITMAP_WORDS; i++) {
		uint64_t w = get_u64le(p + (size_t)i * 8);
		runs += popcount(w & ~(w << 1 | below));
		below = w >> 63;
	}
	return runs;
}

/* Runs found one after another; each put extends the last run or opens one. */
struct run_writer {
	uint8_t *p;
	uint32_t n;
	uint32_t start, last;
};

static void run_flush(struct run_writer *w)
{
	put_u16le(w->p + (size_t)w->n * 4, (uint16_t)w->start);
	put_u16le(w->p + (size_t)w->n * 4 + 2, (uint16_t)(w->last - w->start));
	w->n++;
}

static void run_put(struct run_writer *w, bool first, uint32_t v)
{
	if (!first && v == w->last + 1) {
		w->last = v;
		return;
	}
	if (!first)
		run_flush(w);
	w->start = w->last = v;
}

static void put_as_runs(const struct plan *c, uint32_t cardinality, uint8_t *out)
{
	put_u16le(out, c->runs);
	struct run_writer w = {.p = out + 2};
	if (c->from == ARRAY) {
		for (uint32_t i = 0; i < cardinality; i++)
			run_put(&w, i == 0, get_u16le(c->p + (size_t)i * 2));
	} else {
		bool first = true;
		for (uint32_t i = 0; i < BITMAP_WORDS; i++)
			for (uint64_t word = get_u64le(c->p + (size_t)i * 8); word;
			     word &= word - 1) {
				run_put(&w, first, i * 64 + (uint32_t)__builtin_ctzll(word));
				first = false;
			}
	}
	run_flush(&w);
	ASSERT(w.n == c->runs);
}

static void put_runs_as(const struct plan *c, uint8_t *out)
{
	if (c->to == BITMAP)
		memset(out, 0, BITMAP_BYTES);
	for (uint32_t i = 0; i < c->runs; i++) {
		uint32_t v = get_u16le(c->p + 2 + (size_t)i * 4);
		uint32_t end = v + get_u16le(c->p + 4 + (size_t)i * 4);
		for (; v <= end; v++) {
			if (c->to == ARRAY) {
				put_u16le(out, (uint16_t)v);
				out += 2;
			} else {
				out[v / 8] = (uint8_t)(out[v / 8] | 1u << (v % 8));
			}
		}
	}
}

static struct plan plan_of(const struct layout *l, uint32_t i, const uint8_t *p)
{
	uint32_t card = head_cardinality(l, i);
	struct plan c = {.p = p, .from = (uint8_t)head_kind(l, i)};
	c.runs = (uint16_t)count_runs(c.from, p, card);
	uint32_t plain = card <= ARRAY_MAX ? card * 2 : BITMAP_BYTES;
	uint32_t as_runs = 2 + 4u * c.runs;
	c.to = as_runs < plain ? RUN : card <= ARRAY_MAX ? ARRAY : BITMAP;
	c.bytes = as_runs < plain ? as_runs : plain;
	return c;
}

static void put_container(const struct plan *c, uint32_t cardinality, uint8_t *out)
{
	if (c->from == c->to)
		memcpy(out, c->p, c->bytes);
	else if (c->to == RUN)
		put_as_runs(c, cardinality, out);
	else
		put_runs_as(c, out);
}

void roar32_canonical(struct bytes valid, struct buf *out)
{
	struct layout l;
	enum status st = layout_of(valid, &l, NULL);
	ASSERT(st == ST_OK);
	struct plan *plans = base_calloc(l.count ? l.count : 1, sizeof *plans);
	size_t at = l.at, body = 0;
	bool any_run = false;
	for (uint32_t i = 0; i < l.count; i++) {
		size_t n = container_bytes(&l, i, valid.p + at, valid.n - at);
		ASSERT(n != SIZE_MAX);
		plans[i] = plan_of(&l, i, valid.p + at);
		any_run |= plans[i].to == RUN;
		body += plans[i].bytes;
		at += n;
	}
	bool offsets = !any_run || l.count >= OFFSETS_FROM;
	size_t flags = any_run ? (l.count + 7) / 8 : 0;
	size_t head = (any_run ? 4 + flags : 8) + (size_t)l.count * (offsets ? 8 : 4);
	uint8_t *p = buf_room(out, head + body);
	if (p) {
		uint8_t *w = p;
		if (any_run) {
			put_u32le(w, COOKIE_RUNS | (l.count - 1) << 16);
			w += 4;
			memset(w, 0, flags);
			for (uint32_t i = 0; i < l.count; i++)
				if (plans[i].to == RUN)
					w[i / 8] = (uint8_t)(w[i / 8] | 1u << (i % 8));
			w += flags;
		} else {
			put_u32le(w, COOKIE_PLAIN);
			put_u32le(w + 4, l.count);
			w += 8;
		}
		if (l.count)
			memcpy(w, l.heads, (size_t)l.count * 4);
		w += (size_t)l.count * 4;
		size_t pos = head;
		for (uint32_t i = 0; offsets && i < l.count; i++, w += 4) {
			put_u32le(w, (uint32_t)pos);
			pos += plans[i].bytes;
		}
		for (uint32_t i = 0; i < l.count; i++) {
			put_container(&plans[i], head_cardinality(&l, i), w);
			w += plans[i].bytes;
		}
		ASSERT(w == p + head + body);
	}
	base_free(plans);
}
