/* jansson has names of its own for nearly everything that starts with json_; ours are jdoc_ and
 * jval_. A jdoc is the root json_t under another name; the type never leaves this file. */
#include "proto/base/json.h"

#include <jansson.h>
#include <stdlib.h>

/* jansson takes a lack of memory for a fault of the text in most places and says so. */
static void *noted_malloc(size_t n)
{
	void *p = malloc(n);
	if (!p)
		base_memory_note();
	return p;
}

/* Before any thread parses. */
static void __attribute__((constructor)) use_noted_malloc(void)
{
	json_set_alloc_funcs(noted_malloc, free);
}

static const json_t *in(const struct jval *v)
{
	return (const json_t *)v;
}

static const struct jval *out(const json_t *v)
{
	return (const struct jval *)v;
}

/* Heap bytes of jansson 2.14's parts, allocator included: an array with its first eight slots, an
 * object with its first eight buckets, a member beside its value, any other value. */
#define COST_ARRAY 144
#define COST_OBJECT 272
#define COST_MEMBER 96
#define COST_VALUE 72

/* jansson bounds recursion at 2048; ours is tighter and is checked on the text, before a tree of
 * that shape exists. So is what the tree will take: jansson has no limit for it. */
static enum status check_shape(struct bytes t, enum status bad, struct err *err)
{
	size_t depth = 0, cost = 0, limit;
	bool str = false;
	if (!mul_size(t.n, JDOC_FACTOR, &limit) || !add_size(limit, JDOC_MIN_BYTES, &limit))
		limit = SIZE_MAX;
	for (size_t i = 0; i < t.n; i++) {
		uint8_t c = t.p[i];
		if (str) {
			if (c == '\\')
				i++;
			else if (c == '"')
				str = false;
			continue;
		}
		switch (c) {
		case '"':
			str = true;
			break;
		case '{':
		case '[':
			if (++depth > JDOC_MAX_DEPTH)
				return err_set(err, bad, "", "JSON is nested deeper than %d levels",
					       JDOC_MAX_DEPTH);
			cost += c == '{' ? COST_OBJECT : COST_ARRAY;
			break;
		case '}':
		case ']':
			depth -= depth > 0;
			break;
		case ':':
			cost += COST_MEMBER;
			break;
		case ',':
			cost += COST_VALUE;
			break;
		default:
			break;
		}
		if (cost > limit)
			return err_set(err, ST_LIMIT, "", "JSON of too many small parts: its tree "
							  "would take over %zu MiB",
				       limit >> 20);
	}
	return ST_OK;
}

enum status jdoc_parse(struct bytes text, enum status bad, struct jdoc **ret_doc, struct err *err)
{
	json_error_t je;
	enum status st = check_shape(text, bad, err);
	if (st != ST_OK)
		return st;
	json_t *root = json_loadb(text.n ? (const char *)text.p : "", text.n,
				  JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
	if (!root)
		return err_set(err, bad, "", "not valid JSON at byte %d: %s", je.position, je.text);
	*ret_doc = (struct jdoc *)root;
	return ST_OK;
}

void jdoc_free(struct jdoc *own_doc)
{
	json_decref((json_t *)own_doc);
}

const struct jval *jdoc_root(const struct jdoc *doc)
{
	return (const struct jval *)doc;
}

enum jval_kind jval_kind(const struct jval *v)
{
	static const enum jval_kind kinds[] = {
		[JSON_OBJECT] = JK_OBJECT, [JSON_ARRAY] = JK_ARRAY, [JSON_STRING] = JK_STR,
		[JSON_INTEGER] = JK_INT,   [JSON_REAL] = JK_REAL,   [JSON_TRUE] = JK_BOOL,
		[JSON_FALSE] = JK_BOOL,	   [JSON_NULL] = JK_NULL,
	};
	return v ? kinds[json_typeof(in(v))] : JK_NULL;
}

bool jval_is_null(const struct jval *v)
{
	return jval_kind(v) == JK_NULL;
}

bool jval_is_object(const struct jval *v)
{
	return jval_kind(v) == JK_OBJECT;
}

bool jval_is_array(const struct jval *v)
{
	return jval_kind(v) == JK_ARRAY;
}

size_t jval_count(const struct jval *v)
{
	if (jval_is_array(v))
		return json_array_size(in(v));
	return jval_is_object(v) ? json_object_size(in(v)) : 0;
}

const struct jval *jval_at(const struct jval *array, size_t i)
{
	return jval_is_array(array) ? out(json_array_get(in(array), i)) : NULL;
}

const struct jval *jval_get(const struct jval *object, const char *key)
{
	return jval_is_object(object) ? out(json_object_get(in(object), key)) : NULL;
}

bool jval_as_str(const struct jval *v, struct strv *ret_s)
{
	if (jval_kind(v) != JK_STR)
		return false;
	*ret_s = (struct strv){json_string_value(in(v)), json_string_length(in(v))};
	return true;
}

bool jval_as_i64(const struct jval *v, int64_t *ret_v)
{
	if (jval_kind(v) != JK_INT)
		return false;
	*ret_v = json_integer_value(in(v));
	return true;
}

bool jval_as_bool(const struct jval *v, bool *ret_v)
{
	if (jval_kind(v) != JK_BOOL)
		return false;
	*ret_v = json_is_true(in(v));
	return true;
}

bool jval_as_real(const struct jval *v, double *ret_v)
{
	if (jval_kind(v) != JK_REAL && jval_kind(v) != JK_INT)
		return false;
	*ret_v = json_number_value(in(v));
	return true;
}

static bool as_i32(const struct jval *v, int32_t *ret_v)
{
	int64_t wide;
	if (!jval_as_i64(v, &wide) || wide < INT32_MIN || wide > INT32_MAX)
		return false;
	*ret_v = (int32_t)wide;
	return true;
}

static bool as_array(const struct jval *v, const struct jval **ret_v)
{
	if (!jval_is_array(v))
		return false;
	*ret_v = v;
	return true;
}

static bool as_object(const struct jval *v, const struct jval **ret_v)
{
	if (!jval_is_object(v))
		return false;
	*ret_v = v;
	return true;
}

static enum status missing(const char *key, enum status bad, struct err *err)
{
	return err_set(err, bad, key, "required field is missing: %s", key);
}

static enum status mistyped(const char *key, enum status bad, const char *kind, struct err *err)
{
	return err_set(err, bad, key, "field %s must be %s", key, kind);
}

/* One required and one optional getter per kind, from one row. */
#define GETTERS(suffix, type, as, kind)                                                             \
	enum status jval_need_##suffix(const struct jval *o, const char *key, enum status bad,      \
				       type *ret_v, struct err *err)                                \
	{                                                                                           \
		const struct jval *v = jval_get(o, key);                                            \
		if (jval_is_null(v))                                                                \
			return missing(key, bad, err);                                              \
		return as(v, ret_v) ? ST_OK : mistyped(key, bad, kind, err);                        \
	}

#define OPTIONAL(suffix, type, as, kind)                                                            \
	enum status jval_opt_##suffix(const struct jval *o, const char *key, enum status bad,       \
				      type *ret_v, bool *ret_has, struct err *err)                  \
	{                                                                                           \
		const struct jval *v = jval_get(o, key);                                            \
		bool has = !jval_is_null(v);                                                        \
		if (has && !as(v, ret_v))                                                           \
			return mistyped(key, bad, kind, err);                                       \
		if (ret_has)                                                                        \
			*ret_has = has;                                                             \
		return ST_OK;                                                                       \
	}

#define OPTIONAL_PART(suffix, as, kind)                                                             \
	enum status jval_opt_##suffix(const struct jval *o, const char *key, enum status bad,       \
				      const struct jval **ret_v, struct err *err)                   \
	{                                                                                           \
		const struct jval *v = jval_get(o, key);                                            \
		if (jval_is_null(v) || as(v, ret_v))                                                \
			return ST_OK;                                                               \
		return mistyped(key, bad, kind, err);                                               \
	}

GETTERS(str, struct strv, jval_as_str, "a string")
GETTERS(i64, int64_t, jval_as_i64, "an integer")
GETTERS(i32, int32_t, as_i32, "a 32-bit integer")
GETTERS(bool, bool, jval_as_bool, "true or false")
GETTERS(array, const struct jval *, as_array, "an array")
GETTERS(object, const struct jval *, as_object, "an object")
OPTIONAL(str, struct strv, jval_as_str, "a string")
OPTIONAL(i64, int64_t, jval_as_i64, "an integer")
OPTIONAL(i32, int32_t, as_i32, "a 32-bit integer")
OPTIONAL(bool, bool, jval_as_bool, "true or false")
OPTIONAL_PART(array, as_array, "an array")
OPTIONAL_PART(object, as_object, "an object")

struct jval_iter jval_iter(const struct jval *object)
{
	return (struct jval_iter){.object = jval_is_object(object) ? object : NULL};
}

bool jval_next(struct jval_iter *it)
{
	if (!it->object)
		return false;
	/* jansson's iterators want a mutable object though they only read it. */
	json_t *o = (json_t *)(uintptr_t)it->object;
	it->at = it->at ? json_object_iter_next(o, it->at) : json_object_iter(o);
	if (!it->at)
		return false;
	it->key = (struct strv){json_object_iter_key(it->at), json_object_iter_key_len(it->at)};
	it->val = out(json_object_iter_value(it->at));
	return true;
}

static int dump_put(const char *p, size_t n, void *to)
{
	struct buf *b = to;
	buf_put(b, p, n);
	return buf_ok(b) ? 0 : -1;
}

void jval_dump(struct buf *b, const struct jval *v)
{
	if (!v)
		buf_puts(b, "null");
	else if (json_dump_callback(in(v), dump_put, b, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		b->failed = true;
}
