/* Binary parameters of one statement, as PostgreSQL's wire format wants them: scalars and
 * one-dimensional arrays, built into one buffer. No libpq here. */
#ifndef STORE_PG_PGARGS_H
#define STORE_PG_PGARGS_H

#include "proto/base/buf.h"
#include "proto/base/uuid.h"

#define PGARGS_MAX 40
/* Largest parameter block of one statement; a caller with more items sends another statement. */
#define PGARGS_BYTES_MAX (64u << 20)

/* Object ids of element types (fixed in PostgreSQL's catalog since its beginning). */
enum pgargs_oid {
	PGARGS_BOOL = 16,
	PGARGS_BYTEA = 17,
	PGARGS_INT8 = 20,
	PGARGS_INT2 = 21,
	PGARGS_INT4 = 23,
	PGARGS_TEXT = 25,
	PGARGS_UUID = 2950,
};

struct pgargs {
	struct buf buf;
	int n;
	size_t at[PGARGS_MAX];  /* offset of each parameter */
	size_t len[PGARGS_MAX]; /* its bytes */
	bool null[PGARGS_MAX];
	size_t count_at; /* of the array being built */
	uint32_t count;
};

void pgargs_init(struct pgargs *a);
void pgargs_fini(struct pgargs *a);
void pgargs_clear(struct pgargs *a);
/* false when a parameter did not fit; nothing may be sent then. */
static inline bool pgargs_ok(const struct pgargs *a)
{
	return buf_ok(&a->buf);
}

void pgargs_null(struct pgargs *a);
void pgargs_bool(struct pgargs *a, bool v);
void pgargs_i16(struct pgargs *a, int16_t v);
void pgargs_i32(struct pgargs *a, int32_t v);
void pgargs_i64(struct pgargs *a, int64_t v);
void pgargs_uuid(struct pgargs *a, struct uuid u);
void pgargs_text(struct pgargs *a, struct strv s);
void pgargs_bytes(struct pgargs *a, struct bytes b);

/* One array parameter: begin, one put per element, end. */
void pgargs_array(struct pgargs *a, enum pgargs_oid element);
void pgargs_put_null(struct pgargs *a);
void pgargs_put_bool(struct pgargs *a, bool v);
void pgargs_put_i16(struct pgargs *a, int16_t v);
void pgargs_put_i32(struct pgargs *a, int32_t v);
void pgargs_put_i64(struct pgargs *a, int64_t v);
void pgargs_put_uuid(struct pgargs *a, struct uuid u);
void pgargs_put_text(struct pgargs *a, struct strv s);
void pgargs_put_bytes(struct pgargs *a, struct bytes b);
void pgargs_end(struct pgargs *a);

void pgargs_texts(struct pgargs *a, const struct strv *v, size_t n);

/* What a text column may hold: UTF-8 without U+0000, at most max bytes. Everything that goes into
 * SQL as text is judged here first, so that one bad item cannot fail the others of its statement.
 */
MUST_CHECK bool pgargs_text_ok(struct strv s, size_t max);

#endif
