/* Borrowed views of text and bytes: pointer and length, never assumed to end with a NUL. */
#ifndef PROTO_BASE_STRV_H
#define PROTO_BASE_STRV_H

#include <string.h>

#include "proto/base/base.h"

struct strv {
	const char *p;
	size_t n;
};

struct bytes {
	const uint8_t *p;
	size_t n;
};

/* One entry of a map of text: a property, a summary value. */
struct strv_pair {
	struct strv key, value;
};

#define STRV(lit) ((struct strv){"" lit, sizeof(lit) - 1})
/* For printf: "%.*s". Text longer than INT_MAX is cut, which only a log line would notice. */
#define STRV_ARG(s) ((int)((s).n > 0x7fffffff ? 0x7fffffff : (s).n)), ((s).p ? (s).p : "")

static inline struct strv strv_of(const char *z)
{
	return z ? (struct strv){z, strlen(z)} : (struct strv){NULL, 0};
}
static inline bool strv_eq(struct strv a, struct strv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline struct bytes strv_bytes(struct strv s)
{
	return (struct bytes){(const uint8_t *)s.p, s.n};
}
static inline struct strv bytes_strv(struct bytes b)
{
	return (struct strv){(const char *)b.p, b.n};
}

/* Order of unsigned bytes, shorter first on a common prefix: PostgreSQL's COLLATE "C". */
int strv_cmp(struct strv a, struct strv b);
/* Equal without regard to ASCII case. */
bool strv_ieq(struct strv a, struct strv b);
bool strv_starts(struct strv s, struct strv prefix);
bool strv_ends(struct strv s, struct strv suffix);
/* Index of the first c, or s.n. */
size_t strv_find(struct strv s, char c);
/* [from, to) clipped to the view. */
struct strv strv_sub(struct strv s, size_t from, size_t to);
/* Strict decimal: optional '-', digits only, no spaces, in range. */
MUST_CHECK bool strv_i64(struct strv s, int64_t *ret_v);
/* Well-formed UTF-8 without surrogates or overlong forms (RFC 3629); U+0000 is well-formed. */
bool strv_utf8(struct strv s);
/* Copies into dst and ends it with NUL; false when it does not fit or holds a NUL. */
MUST_CHECK bool strv_cstr(struct strv s, char *dst, size_t cap);
/* FNV-1a, 64 bits: for hash tables over trusted sizes only. */
uint64_t bytes_hash(struct bytes b);

#endif
