#include "store/pg/pgrow.h"

bool pgrow_null(const struct pgrow *r, int col)
{
	struct bytes b;
	return !pgres_value(r->res, r->row, col, &b) || !b.p;
}

struct bytes pgrow_bytes(struct pgrow *r, int col)
{
	struct bytes b;
	if (!pgres_value(r->res, r->row, col, &b))
		r->bad = true;
	return b;
}

struct strv pgrow_text(struct pgrow *r, int col)
{
	return bytes_strv(pgrow_bytes(r, col));
}

static const uint8_t *fixed(struct pgrow *r, int col, size_t n)
{
	static const uint8_t zero[16];
	struct bytes b = pgrow_bytes(r, col);
	if (b.n != n) {
		r->bad = true;
		return zero;
	}
	return b.p;
}

bool pgrow_bool(struct pgrow *r, int col)
{
	return fixed(r, col, 1)[0] != 0;
}

int16_t pgrow_i16(struct pgrow *r, int col)
{
	const uint8_t *p = fixed(r, col, 2);
	return (int16_t)(p[0] << 8 | p[1]);
}

int32_t pgrow_i32(struct pgrow *r, int col)
{
	return (int32_t)get_u32be(fixed(r, col, 4));
}

int64_t pgrow_i64(struct pgrow *r, int col)
{
	return (int64_t)get_u64be(fixed(r, col, 8));
}

struct uuid pgrow_uuid(struct pgrow *r, int col)
{
	struct uuid u;
	memcpy(u.b, fixed(r, col, sizeof u.b), sizeof u.b);
	return u;
}

struct pgrow_array_view pgrow_array(struct pgrow *r, int col)
{
	struct bytes b = pgrow_bytes(r, col);
	struct pgrow_array_view a = {.rest = b};
	if (!b.n)
		return a;
	if (b.n < 12 || get_u32be(b.p) > 1 || (get_u32be(b.p) == 1 && b.n < 20)) {
		r->bad = a.bad = true;
		return a;
	}
	if (get_u32be(b.p) == 0)
		return (struct pgrow_array_view){0};
	a.n = get_u32be(b.p + 12);
	a.rest = (struct bytes){b.p + 20, b.n - 20};
	/* Every element has at least its length word. */
	if (a.n > a.rest.n / 4) {
		r->bad = a.bad = true;
		a.n = 0;
	}
	return a;
}

struct bytes pgrow_array_next(struct pgrow_array_view *a)
{
	struct bytes none = {NULL, 0};
	if (a->bad || a->rest.n < 4) {
		a->bad = true;
		return none;
	}
	uint32_t n = get_u32be(a->rest.p);
	a->rest.p += 4;
	a->rest.n -= 4;
	if (n == UINT32_MAX)
		return none;
	if (n > a->rest.n) {
		a->bad = true;
		return none;
	}
	struct bytes b = {a->rest.p, n};
	a->rest.p += n;
	a->rest.n -= n;
	return b;
}
