#include "proto/iceberg/value.h"

#include <math.h>

#define DAY_US INT64_C(86400000000)

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the values are larger than this server's limit");
}

/* Bytes of a type whose values all have one length; 0 for the others. */
static size_t width(const struct type *t)
{
	switch (t->kind) {
	case TYPE_BOOLEAN:
		return 1;
	case TYPE_INT:
	case TYPE_FLOAT:
	case TYPE_DATE:
		return 4;
	case TYPE_LONG:
	case TYPE_DOUBLE:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMPTZ:
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS:
		return 8;
	case TYPE_UUID:
		return 16;
	default:
		return 0;
	}
}

/* Two's complement, big-endian: drops leading bytes that only repeat the sign. */
static struct bytes shortest(struct bytes b)
{
	while (b.n > 1 &&
	       ((b.p[0] == 0x00 && b.p[1] < 0x80) || (b.p[0] == 0xff && b.p[1] >= 0x80))) {
		b.p++;
		b.n--;
	}
	return b;
}

/* Bytes that every number of this many decimal digits fits in. Values are held to this width, not
 * to the digits: truncating a negative decimal may take one value past them. */
static size_t decimal_width(int32_t precision)
{
	unsigned __int128 most = 1;
	size_t n = 1;
	for (int32_t i = 0; i < precision; i++)
		most *= 10;
	while ((most - 1) >> (8 * n - 1))
		n++;
	return n;
}

bool value_valid(const struct type *t, struct bytes b)
{
	switch (t->kind) {
	case TYPE_STRING:
		return strv_utf8(bytes_strv(b));
	case TYPE_BINARY:
	case TYPE_VARIANT:
	case TYPE_GEOMETRY:
	case TYPE_GEOGRAPHY:
		return true;
	case TYPE_FIXED:
		return b.n == (size_t)t->length;
	case TYPE_DECIMAL:
		return b.n > 0 && shortest(b).n <= decimal_width(t->precision);
	case TYPE_TIME:
		return b.n == 8 && get_u64le(b.p) < (uint64_t)DAY_US;
	case TYPE_UNKNOWN:
	case TYPE_STRUCT:
	case TYPE_LIST:
	case TYPE_MAP:
		return false;
	default:
		return b.n == width(t);
	}
}

static double get_double(const uint8_t *p)
{
	uint64_t bits = get_u64le(p);
	double d;
	memcpy(&d, &bits, sizeof d);
	return d;
}

static float get_float(const uint8_t *p)
{
	uint32_t bits = get_u32le(p);
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static bool of_bits(uint64_t bits, size_t n, struct arena *a, struct value *ret_v)
{
	uint8_t *p = arena_alloc(a, n);
	if (!p)
		return false;
	if (n == 4)
		put_u32le(p, (uint32_t)bits);
	else
		put_u64le(p, bits);
	*ret_v = (struct value){.b = {p, n}};
	return true;
}

/* Every NaN is one value (spec "Scan Planning", note on partition equality). */
#define NAN32 UINT32_C(0x7fc00000)
#define NAN64 UINT64_C(0x7ff8000000000000)

static bool of_double(double d, struct arena *a, struct value *ret_v)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	return of_bits(isnan(d) ? NAN64 : bits, 8, a, ret_v);
}

/* Bounds of a column that was promoted since, and those of fixed, which some writers cut. */
static enum status read_bound(const struct type *t, struct bytes b, struct arena *a,
			      struct value *ret_v, bool *ret_done, struct err *err)
{
	int64_t unit = t->kind == TYPE_TIMESTAMP ? DAY_US : DAY_US * 1000, n;
	*ret_done = true;
	if (t->kind == TYPE_FIXED && b.n > 0 && b.n < (size_t)t->length) {
		*ret_v = (struct value){.b = b};
		return ST_OK;
	}
	if (b.n == 4 && t->kind == TYPE_LONG)
		return value_of_i64(t, (int32_t)get_u32le(b.p), a, ret_v) ? ST_OK : no_memory(err);
	if (b.n == 4 && t->kind == TYPE_DOUBLE)
		return of_double((double)get_float(b.p), a, ret_v) ? ST_OK : no_memory(err);
	if (b.n == 4 && (t->kind == TYPE_TIMESTAMP || t->kind == TYPE_TIMESTAMP_NS) &&
	    !__builtin_mul_overflow((int64_t)(int32_t)get_u32le(b.p), unit, &n))
		return value_of_i64(t, n, a, ret_v) ? ST_OK : no_memory(err);
	*ret_done = false;
	return ST_OK;
}

enum status value_read(const struct type *t, struct bytes b, bool bound, enum status bad,
		       struct arena *a, struct value *ret_v, struct err *err)
{
	static const uint8_t bools[2] = {0, 1};
	if (bound) {
		bool done;
		enum status st = read_bound(t, b, a, ret_v, &done, err);
		if (st != ST_OK || done)
			return st;
	}
	if (!value_valid(t, b))
		return err_set(err, bad, "", "%zu bytes are not a value of type %s", b.n,
			       type_name(t).z);
	if (t->kind == TYPE_BOOLEAN)
		b = (struct bytes){&bools[b.p[0] != 0], 1};
	else if (t->kind == TYPE_DECIMAL)
		b = shortest(b);
	else if (t->kind == TYPE_FLOAT && isnan(get_float(b.p)))
		return of_bits(NAN32, 4, a, ret_v) ? ST_OK : no_memory(err);
	else if (t->kind == TYPE_DOUBLE && isnan(get_double(b.p)))
		return of_bits(NAN64, 8, a, ret_v) ? ST_OK : no_memory(err);
	*ret_v = (struct value){.b = b};
	return ST_OK;
}

int64_t value_i64(const struct type *t, const struct value *v)
{
	size_t n = width(t);
	ASSERT(!v->null && (n == 4 || n == 8) && v->b.n == n);
	ASSERT(t->kind != TYPE_FLOAT && t->kind != TYPE_DOUBLE);
	return n == 4 ? (int32_t)get_u32le(v->b.p) : (int64_t)get_u64le(v->b.p);
}

bool value_of_i64(const struct type *t, int64_t n, struct arena *a, struct value *ret_v)
{
	size_t w = width(t);
	ASSERT((w == 4 || w == 8) && t->kind != TYPE_FLOAT && t->kind != TYPE_DOUBLE);
	ASSERT(w == 8 || (n >= INT32_MIN && n <= INT32_MAX));
	return of_bits((uint64_t)n, w, a, ret_v);
}

double value_double(const struct type *t, const struct value *v)
{
	ASSERT(!v->null && (t->kind == TYPE_FLOAT || t->kind == TYPE_DOUBLE) && v->b.n == width(t));
	return t->kind == TYPE_FLOAT ? (double)get_float(v->b.p) : get_double(v->b.p);
}

bool value_of_double(const struct type *t, double d, struct arena *a, struct value *ret_v)
{
	if (t->kind == TYPE_DOUBLE)
		return of_double(d, a, ret_v);
	ASSERT(t->kind == TYPE_FLOAT);
	float f = (float)d;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return of_bits(isnan(f) ? NAN32 : bits, 4, a, ret_v);
}

__int128 value_decimal(const struct value *v)
{
	ASSERT(!v->null && v->b.n > 0 && v->b.n <= 16);
	unsigned __int128 u = v->b.p[0] >= 0x80 ? ~(unsigned __int128)0 : 0;
	for (size_t i = 0; i < v->b.n; i++)
		u = u << 8 | v->b.p[i];
	return (__int128)u;
}

bool value_of_decimal(__int128 unscaled, struct arena *a, struct value *ret_v)
{
	uint8_t *p = arena_alloc(a, 16);
	if (!p)
		return false;
	unsigned __int128 u = (unsigned __int128)unscaled;
	for (size_t i = 16; i-- > 0; u >>= 8)
		p[i] = (uint8_t)u;
	*ret_v = (struct value){.b = shortest((struct bytes){p, 16})};
	return true;
}

bool value_has_order(const struct type *t)
{
	return type_is_primitive(t) && t->kind != TYPE_UNKNOWN && t->kind != TYPE_GEOMETRY &&
	       t->kind != TYPE_GEOGRAPHY;
}

bool value_is_nan(const struct type *t, const struct value *v)
{
	if (v->null || (t->kind != TYPE_FLOAT && t->kind != TYPE_DOUBLE))
		return false;
	return isnan(value_double(t, v));
}

static int cmp_double(double x, double y)
{
	if (isnan(x) || isnan(y))
		return (isnan(x) != 0) - (isnan(y) != 0);
	if (x == y)
		return (signbit(y) != 0) - (signbit(x) != 0);
	return x < y ? -1 : 1;
}

int value_cmp(const struct type *t, const struct value *x, const struct value *y)
{
	ASSERT(!x->null && !y->null);
	switch (t->kind) {
	case TYPE_INT:
	case TYPE_LONG:
	case TYPE_DATE:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMPTZ:
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS: {
		int64_t a = value_i64(t, x), b = value_i64(t, y);
		return (a > b) - (a < b);
	}
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		return cmp_double(value_double(t, x), value_double(t, y));
	case TYPE_DECIMAL: {
		__int128 a = value_decimal(x), b = value_decimal(y);
		return (a > b) - (a < b);
	}
	default:
		return strv_cmp(bytes_strv(x->b), bytes_strv(y->b));
	}
}

bool value_copy(struct arena *a, const struct value *v, struct value *ret_v)
{
	struct value out = {.null = v->null};
	if (!v->null && !arena_bytes(a, v->b, &out.b))
		return false;
	*ret_v = out;
	return true;
}

bool tuple_eq(const struct tuple *x, const struct tuple *y)
{
	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (!value_eq(&x->v[i], &y->v[i]))
			return false;
	return true;
}

uint64_t tuple_hash(const struct tuple *t)
{
	uint64_t h = t->n;
	for (size_t i = 0; i < t->n; i++) {
		const struct value *v = &t->v[i];
		/* The multiplier keeps positions apart, the constant keeps null from empty. */
		h = h * UINT64_C(0x9e3779b97f4a7c15) + (v->null ? 0x6e756c6c : bytes_hash(v->b));
		h ^= h >> 29;
	}
	return h;
}

bool tuple_copy(struct arena *a, const struct tuple *t, struct tuple *ret_t)
{
	struct tuple out = {arena_calloc(a, t->n, sizeof *out.v), t->n};
	if (t->n > 0 && !out.v)
		return false;
	for (size_t i = 0; i < t->n; i++)
		if (!value_copy(a, &t->v[i], &out.v[i]))
			return false;
	*ret_t = out;
	return true;
}

/* Bounds */

/* Bytes of the first `count` code points of valid UTF-8. */
static size_t utf8_prefix(struct bytes b, size_t count)
{
	size_t i = 0;
	while (i < b.n && count > 0) {
		i++;
		while (i < b.n && (b.p[i] & 0xc0) == 0x80)
			i++;
		count--;
	}
	return i;
}

struct value value_cut_lower(const struct type *t, const struct value *v, size_t length)
{
	struct value out = *v;
	if (v->null)
		return out;
	if (t->kind == TYPE_STRING)
		out.b.n = utf8_prefix(v->b, length);
	else if (t->kind == TYPE_BINARY && v->b.n > length)
		out.b.n = length;
	return out;
}

static uint32_t utf8_get(const uint8_t *p, size_t n)
{
	static const uint8_t mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = p[0] & mask[n];
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return c;
}

static size_t utf8_put(uint8_t *p, uint32_t c)
{
	static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		p[i] = (uint8_t)(0x80 | (c & 0x3f));
	p[0] = (uint8_t)(lead[n] | c);
	return n;
}

/* Increments the last code point that can be and drops what follows it; false when none can. p has
 * room for one more byte, because the next code point may be longer. */
static bool string_next(uint8_t *p, size_t *n)
{
	while (*n > 0) {
		size_t at = *n - 1;
		while ((p[at] & 0xc0) == 0x80)
			at--;
		uint32_t c = utf8_get(p + at, *n - at) + 1;
		if (c == 0xd800) /* surrogates are not characters */
			c = 0xe000;
		if (c <= 0x10ffff) {
			*n = at + utf8_put(p + at, c);
			return true;
		}
		*n = at;
	}
	return false;
}

static bool binary_next(uint8_t *p, size_t *n)
{
	while (*n > 0) {
		if (p[*n - 1] < 0xff) {
			p[*n - 1]++;
			return true;
		}
		--*n;
	}
	return false;
}

bool value_cut_upper(const struct type *t, const struct value *v, size_t length, struct arena *a,
		     struct value *ret_v, bool *ret_has)
{
	struct value cut = value_cut_lower(t, v, length);
	if (v->null || cut.b.n == v->b.n) {
		*ret_v = *v;
		*ret_has = true;
		return true;
	}
	uint8_t *p = arena_alloc(a, cut.b.n + 1);
	if (!p)
		return false;
	if (cut.b.n > 0)
		memcpy(p, cut.b.p, cut.b.n);
	size_t n = cut.b.n;
	*ret_has = t->kind == TYPE_STRING ? string_next(p, &n) : binary_next(p, &n);
	if (*ret_has)
		*ret_v = (struct value){.b = {p, n}};
	return true;
}
