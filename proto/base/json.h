/* Reading JSON with typed getters whose errors name the member. jansson stays inside json.c.
 * Parsing is strict: UTF-8, no duplicate keys, no trailing text, bounded depth and size. Integers
 * are 64-bit; a number with a fraction or exponent is not an integer. For whole table metadata use
 * jspan, which keeps the text. */
#ifndef PROTO_BASE_JSON_H
#define PROTO_BASE_JSON_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

struct jdoc; /* owns the tree */
struct jval; /* borrowed from its document */

#define JDOC_MAX_DEPTH 64
/* The tree of a text of n bytes may take JDOC_MIN_BYTES + JDOC_FACTOR × n bytes: a hostile text of
 * empty arrays would take 40 times its size, an ordinary one takes three to six times. */
#define JDOC_MIN_BYTES ((size_t)16 << 20)
#define JDOC_FACTOR 12

enum jval_kind { JK_NULL, JK_BOOL, JK_INT, JK_REAL, JK_STR, JK_ARRAY, JK_OBJECT };

/* field: what to call the document in errors ("body"). Error status is `bad` as given by the
 * caller (ST_BAD_REQUEST for requests, ST_CORRUPT for stored files). */
MUST_CHECK enum status jdoc_parse(struct bytes text, enum status bad, struct jdoc **ret_doc,
				  struct err *err);
void jdoc_free(struct jdoc *own_doc);
const struct jval *jdoc_root(const struct jdoc *doc);

/* v may be NULL in all of these: an absent member. */
enum jval_kind jval_kind(const struct jval *v); /* JK_NULL when absent */
bool jval_is_null(const struct jval *v);	/* absent or null */
bool jval_is_object(const struct jval *v);
bool jval_is_array(const struct jval *v);
size_t jval_count(const struct jval *v); /* elements or members; 0 for others */
const struct jval *jval_at(const struct jval *array, size_t i);
const struct jval *jval_get(const struct jval *object, const char *key); /* NULL when absent */

/* Values as they are; false when v is of another kind. */
MUST_CHECK bool jval_as_str(const struct jval *v, struct strv *ret_s);
MUST_CHECK bool jval_as_i64(const struct jval *v, int64_t *ret_v);
MUST_CHECK bool jval_as_bool(const struct jval *v, bool *ret_v);
MUST_CHECK bool jval_as_real(const struct jval *v, double *ret_v); /* integers too */

/* Required members of an object: absent, null or of another kind is status `bad` with
 * field = key. */
MUST_CHECK enum status jval_need_str(const struct jval *o, const char *key, enum status bad,
				     struct strv *ret_s, struct err *err);
MUST_CHECK enum status jval_need_i64(const struct jval *o, const char *key, enum status bad,
				     int64_t *ret_v, struct err *err);
MUST_CHECK enum status jval_need_i32(const struct jval *o, const char *key, enum status bad,
				     int32_t *ret_v, struct err *err);
MUST_CHECK enum status jval_need_bool(const struct jval *o, const char *key, enum status bad,
				      bool *ret_v, struct err *err);
MUST_CHECK enum status jval_need_array(const struct jval *o, const char *key, enum status bad,
				       const struct jval **ret_v, struct err *err);
MUST_CHECK enum status jval_need_object(const struct jval *o, const char *key, enum status bad,
					const struct jval **ret_v, struct err *err);
/* Optional members: absent or null leaves *ret untouched (set a default first); another kind is an
 * error. *ret_has may be NULL. */
MUST_CHECK enum status jval_opt_str(const struct jval *o, const char *key, enum status bad,
				    struct strv *ret_s, bool *ret_has, struct err *err);
MUST_CHECK enum status jval_opt_i64(const struct jval *o, const char *key, enum status bad,
				    int64_t *ret_v, bool *ret_has, struct err *err);
MUST_CHECK enum status jval_opt_i32(const struct jval *o, const char *key, enum status bad,
				    int32_t *ret_v, bool *ret_has, struct err *err);
MUST_CHECK enum status jval_opt_bool(const struct jval *o, const char *key, enum status bad,
				     bool *ret_v, bool *ret_has, struct err *err);
MUST_CHECK enum status jval_opt_array(const struct jval *o, const char *key, enum status bad,
				      const struct jval **ret_v, struct err *err);
MUST_CHECK enum status jval_opt_object(const struct jval *o, const char *key, enum status bad,
				       const struct jval **ret_v, struct err *err);

/* Walks the members in document order:
 *   for (struct jval_iter it = jval_iter(o); jval_next(&it);) use(it.key, it.val); */
struct jval_iter {
	const struct jval *object;
	void *at;
	struct strv key;
	const struct jval *val;
};
struct jval_iter jval_iter(const struct jval *object);
bool jval_next(struct jval_iter *it);

/* Appends a value, which may be absent (null), as compact JSON text in document order. A number with
 * a fraction is written with 17 digits, which read back as the same double. */
void jval_dump(struct buf *b, const struct jval *v);

#endif
