/* Strict JSON (RFC 8259) as an index over its text: every value keeps its exact bytes, so that
 * members nobody here models survive untouched and numbers keep their spelling. One pass, no
 * recursion: grammar, UTF-8, duplicate keys (compared after unescaping), depth. The index lives in
 * the caller's arena and borrows the text. */
#ifndef PROTO_BASE_JSPAN_H
#define PROTO_BASE_JSPAN_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

/* A part of JDOC_MAX_DEPTH levels inside an array of a document. */
#define JSPAN_MAX_DEPTH 66

enum jspan_kind {
	JSPAN_NULL,
	JSPAN_FALSE,
	JSPAN_TRUE,
	JSPAN_NUMBER,
	JSPAN_STRING,
	JSPAN_ARRAY,
	JSPAN_OBJECT,
};

/* A value. Its children follow it in memory: first child at v + 1, v + skip is what comes after v.
 * An object's children alternate key (a string), value. */
struct jspan {
	const char *p;  /* the text, quotes and brackets included */
	uint32_t n;     /* bytes of text, below 4 GiB */
	uint32_t skip;  /* values in this subtree, itself included */
	uint32_t count; /* elements or members */
	uint8_t kind;   /* enum jspan_kind */
	bool escaped;   /* string: holds a backslash */
};

/* Indexes the whole text. Status is `bad` for malformed text, ST_LIMIT when the arena is full. */
MUST_CHECK enum status jspan_parse(struct bytes text, enum status bad, struct arena *a,
				   const struct jspan **ret_root, struct err *err);

static inline struct strv jspan_text(const struct jspan *v)
{
	return (struct strv){v->p, v->n};
}
static inline bool jspan_is(const struct jspan *v, enum jspan_kind kind)
{
	return v && v->kind == kind;
}
/* Absent or null. */
static inline bool jspan_is_null(const struct jspan *v)
{
	return !v || v->kind == JSPAN_NULL;
}

/* Elements of an array; none when v is NULL or of another kind.
 *   JSPAN_EACH (e, array) use(e); */
static inline const struct jspan *jspan_first(const struct jspan *v)
{
	return jspan_is(v, JSPAN_ARRAY) ? v + 1 : v;
}
static inline const struct jspan *jspan_end(const struct jspan *v)
{
	return jspan_is(v, JSPAN_ARRAY) ? v + v->skip : v;
}
#define JSPAN_EACH(e, array)                                                                       \
	for (const struct jspan *e = jspan_first(array), *e##_end_ = jspan_end(array);             \
	     e != e##_end_; e += e->skip)

/* Members of an object, in document order:
 *   for (struct jspan_iter it = jspan_iter(o); jspan_next(&it);) use(it.key, it.val); */
struct jspan_iter {
	const struct jspan *at, *end;
	const struct jspan *key, *val;
};
struct jspan_iter jspan_iter(const struct jspan *object);
bool jspan_next(struct jspan_iter *it);

/* Value of the member with this (plain ASCII) name; NULL when absent or v is no object. */
const struct jspan *jspan_get(const struct jspan *object, const char *key);

/* Unescaped text of a string: a view into the document when nothing is escaped, else a copy in the
 * arena. false when v is no string or the arena is full. */
MUST_CHECK bool jspan_str(const struct jspan *v, struct arena *a, struct strv *ret_s);
/* A number without fraction or exponent that fits; false otherwise. */
MUST_CHECK bool jspan_i64(const struct jspan *v, int64_t *ret_v);
MUST_CHECK bool jspan_i32(const struct jspan *v, int32_t *ret_v);

/* Required members: absent, null or of another kind is status `bad`, field = key. */
MUST_CHECK enum status jspan_need_str(const struct jspan *o, const char *key, enum status bad,
				      struct arena *a, struct strv *ret_s, struct err *err);
MUST_CHECK enum status jspan_need_i64(const struct jspan *o, const char *key, enum status bad,
				      int64_t *ret_v, struct err *err);
MUST_CHECK enum status jspan_need_i32(const struct jspan *o, const char *key, enum status bad,
				      int32_t *ret_v, struct err *err);
/* Optional members: absent or null leaves *ret untouched and answers ST_OK with *ret_has false
 * (ret_has may be NULL). */
MUST_CHECK enum status jspan_opt_str(const struct jspan *o, const char *key, enum status bad,
				     struct arena *a, struct strv *ret_s, bool *ret_has,
				     struct err *err);
MUST_CHECK enum status jspan_opt_i64(const struct jspan *o, const char *key, enum status bad,
				     int64_t *ret_v, bool *ret_has, struct err *err);
MUST_CHECK enum status jspan_opt_i32(const struct jspan *o, const char *key, enum status bad,
				     int32_t *ret_v, bool *ret_has, struct err *err);
/* An array or object; absent or null gives NULL. */
MUST_CHECK enum status jspan_opt_array(const struct jspan *o, const char *key, enum status bad,
				       const struct jspan **ret_v, struct err *err);
MUST_CHECK enum status jspan_opt_object(const struct jspan *o, const char *key, enum status bad,
					const struct jspan **ret_v, struct err *err);

/* Members of an object beside the NULL-ended list of known names, joined as `"k":v,…` with compact
 * values; n 0 when there are none. false when the arena is full. */
MUST_CHECK bool jspan_extra(const struct jspan *object, const char *const *known, struct arena *a,
			    struct strv *ret_s);

/* Appends the value without the white space between its tokens; every token keeps its spelling. */
void jspan_compact(const struct jspan *v, struct buf *b);

#endif
