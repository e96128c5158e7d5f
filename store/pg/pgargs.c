#include "store/pg/pgargs.h"

void pgargs_init(struct pgargs *a)
{
	memset(a, 0, sizeof *a);
	buf_init(&a->buf, PGARGS_BYTES_MAX);
}

void pgargs_fini(struct pgargs *a)
{
	buf_fini(&a->buf);
}

void pgargs_clear(struct pgargs *a)
{
	buf_clear(&a->buf);
	a->n = 0;
}

static void arg_open(struct pgargs *a, bool null)
{
	ASSERT(a->n < PGARGS_MAX);
	a->at[a->n] = a->buf.n;
	a->len[a->n] = 0;
	a->null[a->n] = null;
	a->n++;
}

static void arg_close(struct pgargs *a)
{
	a->len[a->n - 1] = a->buf.n - a->at[a->n - 1];
}

static void put_be16(struct buf *b, uint16_t v)
{
	uint8_t w[2] = {(uint8_t)(v >> 8), (uint8_t)v};
	buf_put(b, w, sizeof w);
}

static void put_be32(struct buf *b, uint32_t v)
{
	uint8_t w[4];
	put_u32be(w, v);
	buf_put(b, w, sizeof w);
}

static void put_be64(struct buf *b, uint64_t v)
{
	uint8_t w[8];
	put_u64be(w, v);
	buf_put(b, w, sizeof w);
}

void pgargs_null(struct pgargs *a)
{
	arg_open(a, true);
}

void pgargs_bool(struct pgargs *a, bool v)
{
	arg_open(a, false);
	buf_putc(&a->buf, v);
	arg_close(a);
}

void pgargs_i16(struct pgargs *a, int16_t v)
{
	arg_open(a, false);
	put_be16(&a->buf, (uint16_t)v);
	arg_close(a);
}

void pgargs_i32(struct pgargs *a, int32_t v)
{
	arg_open(a, false);
	put_be32(&a->buf, (uint32_t)v);
	arg_close(a);
}

void pgargs_i64(struct pgargs *a, int64_t v)
{
	arg_open(a, false);
	put_be64(&a->buf, (uint64_t)v);
	arg_close(a);
}

void pgargs_uuid(struct pgargs *a, struct uuid u)
{
	arg_open(a, false);
	buf_put(&a->buf, u.b, sizeof u.b);
	arg_close(a);
}

void pgargs_text(struct pgargs *a, struct strv s)
{
	pgargs_bytes(a, strv_bytes(s));
}

void pgargs_bytes(struct pgargs *a, struct bytes b)
{
	arg_open(a, false);
	if (b.n)
		buf_put(&a->buf, b.p, b.n);
	arg_close(a);
}

/* ------------------------------------------------------------------ arrays
 * dimensions, has-nulls flag, element type, then per dimension its length and lower bound. An
 * array of no elements has one dimension of length zero here, which the server accepts. */

void pgargs_array(struct pgargs *a, enum pgargs_oid element)
{
	arg_open(a, false);
	put_be32(&a->buf, 1);
	put_be32(&a->buf, 1);
	put_be32(&a->buf, (uint32_t)element);
	a->count_at = a->buf.n;
	a->count = 0;
	put_be32(&a->buf, 0);
	put_be32(&a->buf, 1);
}

void pgargs_end(struct pgargs *a)
{
	if (buf_ok(&a->buf))
		put_u32be(a->buf.p + a->count_at, a->count);
	arg_close(a);
}

static void element(struct pgargs *a, uint32_t n)
{
	a->count++;
	put_be32(&a->buf, n);
}

void pgargs_put_null(struct pgargs *a)
{
	element(a, UINT32_MAX);
}

void pgargs_put_bool(struct pgargs *a, bool v)
{
	element(a, 1);
	buf_putc(&a->buf, v);
}

void pgargs_put_i16(struct pgargs *a, int16_t v)
{
	element(a, 2);
	put_be16(&a->buf, (uint16_t)v);
}

void pgargs_put_i32(struct pgargs *a, int32_t v)
{
	element(a, 4);
	put_be32(&a->buf, (uint32_t)v);
}

void pgargs_put_i64(struct pgargs *a, int64_t v)
{
	element(a, 8);
	put_be64(&a->buf, (uint64_t)v);
}

void pgargs_put_uuid(struct pgargs *a, struct uuid u)
{
	element(a, sizeof u.b);
	buf_put(&a->buf, u.b, sizeof u.b);
}

void pgargs_put_text(struct pgargs *a, struct strv s)
{
	pgargs_put_bytes(a, strv_bytes(s));
}

void pgargs_put_bytes(struct pgargs *a, struct bytes b)
{
	if (b.n > PGARGS_BYTES_MAX) {
		a->buf.failed = true;
		return;
	}
	element(a, (uint32_t)b.n);
	if (b.n)
		buf_put(&a->buf, b.p, b.n);
}

void pgargs_texts(struct pgargs *a, const struct strv *v, size_t n)
{
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < n; i++)
		pgargs_put_text(a, v[i]);
	pgargs_end(a);
}

bool pgargs_text_ok(struct strv s, size_t max)
{
	return s.n <= max && strv_utf8(s) && strv_find(s, '\0') == s.n;
}
