/* The scanner keeps its open containers in a fixed array, so that depth costs no stack. Values are
 * appended to one growing array in document order; a container learns its size when it closes. */
#include "proto/base/jspan.h"

#include <stdlib.h>

/* Objects up to this size compare keys pairwise, larger ones sort them. */
#define PAIRWISE_MAX 48

struct scan {
	const char *p, *end, *begin;
	struct jspan *v;
	size_t n, cap;
	struct arena *a;
	enum status bad;
	struct err *err;
	struct strv *keys; /* scratch of check_keys */
	size_t keys_cap;
	uint32_t open[JSPAN_MAX_DEPTH]; /* indexes of the open containers */
	size_t depth;
};

static enum status bad_at(struct scan *s, const char *what)
{
	return err_set(s->err, s->bad, "", "not valid JSON at byte %zu: %s",
		       (size_t)(s->p - s->begin), what);
}

static enum status full(struct scan *s)
{
	return err_set(s->err, ST_LIMIT, "", "JSON document exceeds the memory limit");
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
		s->p++;
}

static struct jspan *push(struct scan *s, enum jspan_kind kind)
{
	void *items = s->v;
	if (s->n == UINT32_MAX || !arena_grow(s->a, &items, &s->cap, s->n + 1, sizeof *s->v))
		return NULL;
	s->v = items;
	struct jspan *v = &s->v[s->n++];
	*v = (struct jspan){.p = s->p, .skip = 1, .kind = (uint8_t)kind};
	return v;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at p, which has them; -1 otherwise. */
static int32_t hex4(const char *p, const char *end)
{
	int32_t v = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = hex_digit(p[i]);
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

/* At the backslash of an escape; moves past it. Surrogates must come in pairs. */
static bool scan_escape(struct scan *s)
{
	if (s->end - s->p < 2)
		return false;
	char c = s->p[1];
	if (c != 'u') {
		s->p += 2;
		return c && strchr("\"\\/bfnrt", c) != NULL;
	}
	int32_t u = hex4(s->p + 2, s->end);
	if (u < 0 || (u >= 0xdc00 && u <= 0xdfff))
		return false;
	s->p += 6;
	if (u < 0xd800 || u > 0xdbff)
		return true;
	if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
		return false;
	u = hex4(s->p + 2, s->end);
	s->p += 6;
	return u >= 0xdc00 && u <= 0xdfff;
}

static enum status scan_string(struct scan *s)
{
	const char *from = s->p;
	bool escaped = false, high = false;
	size_t at = s->n;
	if (!push(s, JSPAN_STRING))
		return full(s);
	for (s->p++;;) {
		if (s->p >= s->end)
			return bad_at(s, "text is not ended");
		unsigned char c = (unsigned char)*s->p;
		if (c == '"')
			break;
		if (c < 0x20)
			return bad_at(s, "control character in text");
		if (c == '\\') {
			escaped = true;
			if (!scan_escape(s))
				return bad_at(s, "malformed escape");
			continue;
		}
		high |= c >= 0x80;
		s->p++;
	}
	s->p++;
	s->v[at].n = (uint32_t)(s->p - from);
	s->v[at].escaped = escaped;
	if (high && !strv_utf8((struct strv){from, (size_t)(s->p - from)}))
		return bad_at(s, "text is not UTF-8");
	return ST_OK;
}

static size_t digits(struct scan *s)
{
	const char *from = s->p;
	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return (size_t)(s->p - from);
}

static enum status scan_number(struct scan *s)
{
	const char *from = s->p;
	size_t at = s->n;
	if (!push(s, JSPAN_NUMBER))
		return full(s);
	if (*s->p == '-')
		s->p++;
	const char *first = s->p;
	size_t n = digits(s);
	if (n == 0 || (n > 1 && *first == '0'))
		return bad_at(s, "malformed number");
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (digits(s) == 0)
			return bad_at(s, "malformed number");
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (digits(s) == 0)
			return bad_at(s, "malformed number");
	}
	s->v[at].n = (uint32_t)(s->p - from);
	return ST_OK;
}

static enum status scan_word(struct scan *s)
{
	static const struct {
		struct strv text;
		enum jspan_kind kind;
	} words[] = {
		{{"null", 4}, JSPAN_NULL}, {{"true", 4}, JSPAN_TRUE}, {{"false", 5}, JSPAN_FALSE}};
	struct strv rest = {s->p, (size_t)(s->end - s->p)};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strv_starts(rest, words[i].text))
			continue;
		struct jspan *v = push(s, words[i].kind);
		if (!v)
			return full(s);
		v->n = (uint32_t)words[i].text.n;
		s->p += v->n;
		return ST_OK;
	}
	return bad_at(s, "unexpected character");
}

static int key_cmp(const void *x, const void *y)
{
	const struct strv *a = x, *b = y;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return a->n ? memcmp(a->p, b->p, a->n) : 0;
}

static enum status duplicate(struct scan *s, struct strv key)
{
	return err_set(s->err, s->bad, "", "not valid JSON at byte %zu: duplicate key \"%.*s\"",
		       (size_t)(s->p - s->begin), STRV_ARG(strv_sub(key, 0, 64)));
}

/* No two keys of an object may be the same text, however they are escaped. */
static enum status check_keys(struct scan *s, const struct jspan *o)
{
	void *keys = s->keys;
	if (o->count < 2)
		return ST_OK;
	if (!arena_grow(s->a, &keys, &s->keys_cap, o->count, sizeof *s->keys))
		return full(s);
	s->keys = keys;
	size_t n = 0;
	for (struct jspan_iter it = jspan_iter(o); jspan_next(&it);)
		if (!jspan_str(it.key, s->a, &s->keys[n++]))
			return full(s);
	if (n > PAIRWISE_MAX) {
		qsort(s->keys, n, sizeof *s->keys, key_cmp);
		for (size_t i = 1; i < n; i++)
			if (key_cmp(&s->keys[i - 1], &s->keys[i]) == 0)
				return duplicate(s, s->keys[i]);
		return ST_OK;
	}
	for (size_t i = 1; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (strv_eq(s->keys[i], s->keys[k]))
				return duplicate(s, s->keys[i]);
	return ST_OK;
}

/* At the bracket that ends the innermost container. */
static enum status close_container(struct scan *s)
{
	struct jspan *c = &s->v[s->open[--s->depth]];
	s->p++;
	c->n = (uint32_t)(s->p - c->p);
	c->skip = (uint32_t)(s->n - (size_t)(c - s->v));
	return c->kind == JSPAN_OBJECT ? check_keys(s, c) : ST_OK;
}

static enum status scan_key(struct scan *s)
{
	skip_space(s);
	if (s->p >= s->end || *s->p != '"')
		return bad_at(s, "a member name is expected");
	enum status st = scan_string(s);
	if (st != ST_OK)
		return st;
	skip_space(s);
	if (s->p >= s->end || *s->p != ':')
		return bad_at(s, "a colon is expected");
	s->p++;
	return ST_OK;
}

/* Opens a container; *ret_closed when it is empty and therefore complete. */
static enum status open_container(struct scan *s, bool *ret_closed)
{
	bool object = *s->p == '{';
	if (s->depth == JSPAN_MAX_DEPTH)
		return err_set(s->err, s->bad, "", "JSON is nested deeper than %d levels",
			       JSPAN_MAX_DEPTH);
	s->open[s->depth++] = (uint32_t)s->n;
	if (!push(s, object ? JSPAN_OBJECT : JSPAN_ARRAY))
		return full(s);
	s->p++;
	skip_space(s);
	*ret_closed = s->p < s->end && *s->p == (object ? '}' : ']');
	if (*ret_closed)
		return close_container(s);
	return object ? scan_key(s) : ST_OK;
}

/* After a complete value: counts it, then takes commas and closing brackets until another value
 * must follow or the root is complete. */
static enum status after_value(struct scan *s)
{
	enum status st = ST_OK;
	while (st == ST_OK && s->depth > 0) {
		struct jspan *c = &s->v[s->open[s->depth - 1]];
		bool object = c->kind == JSPAN_OBJECT;
		c->count++;
		skip_space(s);
		if (s->p >= s->end)
			return bad_at(s, "the text ends early");
		if (*s->p == ',') {
			s->p++;
			return object ? scan_key(s) : ST_OK;
		}
		if (*s->p != (object ? '}' : ']'))
			return bad_at(s, "a comma or closing bracket is expected");
		st = close_container(s);
	}
	return st;
}

static enum status scan_value(struct scan *s, bool *ret_complete)
{
	*ret_complete = true;
	skip_space(s);
	if (s->p >= s->end)
		return bad_at(s, "the text ends early");
	switch (*s->p) {
	case '{':
	case '[':
		return open_container(s, ret_complete);
	case '"':
		return scan_string(s);
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		return scan_number(s);
	default:
		return scan_word(s);
	}
}

enum status jspan_parse(struct bytes text, enum status bad, struct arena *a,
			const struct jspan **ret_root, struct err *err)
{
	const char *p = text.n ? (const char *)text.p : "";
	struct scan s = {.p = p, .begin = p, .end = p + text.n, .a = a, .bad = bad, .err = err};
	if (text.n >= UINT32_MAX)
		return err_set(err, ST_LIMIT, "", "JSON document is too large");
	do {
		bool complete;
		enum status st = scan_value(&s, &complete);
		if (st == ST_OK && complete)
			st = after_value(&s);
		if (st != ST_OK)
			return st;
	} while (s.depth > 0);
	skip_space(&s);
	if (s.p != s.end)
		return bad_at(&s, "text follows the value");
	*ret_root = s.v;
	return ST_OK;
}

struct jspan_iter jspan_iter(const struct jspan *object)
{
	struct jspan_iter it = {0};
	if (jspan_is(object, JSPAN_OBJECT)) {
		it.at = object + 1;
		it.end = object + object->skip;
	}
	return it;
}

bool jspan_next(struct jspan_iter *it)
{
	if (it->at == it->end)
		return false;
	it->key = it->at;
	it->val = it->at + 1;
	it->at = it->val + it->val->skip;
	return true;
}

/* Writes the code point's UTF-8; returns its length. */
static size_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	out[0] = (char)(lead[n] | c);
	return n;
}

/* Unescapes text that the scanner has accepted; never longer than its source. */
static size_t unescape(struct strv s, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p = s.p, *end = s.p + s.n;
	size_t n = 0;
	while (p < end) {
		if (*p != '\\') {
			out[n++] = *p++;
		} else if (p[1] != 'u') {
			out[n++] = to[strchr(from, p[1]) - from];
			p += 2;
		} else {
			uint32_t u = (uint32_t)hex4(p + 2, end);
			p += 6;
			if (u >= 0xd800 && u <= 0xdbff) {
				u = 0x10000 + ((u - 0xd800) << 10) +
				    ((uint32_t)hex4(p + 2, end) - 0xdc00);
				p += 6;
			}
			n += put_utf8(out + n, u);
		}
	}
	return n;
}

bool jspan_str(const struct jspan *v, struct arena *a, struct strv *ret_s)
{
	if (!jspan_is(v, JSPAN_STRING))
		return false;
	struct strv inner = {v->p + 1, v->n - 2};
	if (v->escaped) {
		char *out = arena_alloc(a, inner.n);
		if (!out)
			return false;
		inner = (struct strv){out, unescape(inner, out)};
	}
	*ret_s = inner;
	return true;
}

const struct jspan *jspan_get(const struct jspan *object, const char *key)
{
	struct strv want = strv_of(key);
	for (struct jspan_iter it = jspan_iter(object); jspan_next(&it);) {
		struct strv have = {it.key->p + 1, it.key->n - 2};
		char small[256];
		/* Each escape is at most six times its character. */
		if (it.key->escaped && have.n <= 6 * want.n && have.n <= sizeof small)
			have = (struct strv){small, unescape(have, small)};
		if (strv_eq(have, want))
			return it.val;
	}
	return NULL;
}

bool jspan_i64(const struct jspan *v, int64_t *ret_v)
{
	return jspan_is(v, JSPAN_NUMBER) && strv_i64(jspan_text(v), ret_v);
}

bool jspan_i32(const struct jspan *v, int32_t *ret_v)
{
	int64_t wide;
	if (!jspan_i64(v, &wide) || wide < INT32_MIN || wide > INT32_MAX)
		return false;
	*ret_v = (int32_t)wide;
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

enum status jspan_opt_str(const struct jspan *o, const char *key, enum status bad, struct arena *a,
			  struct strv *ret_s, bool *ret_has, struct err *err)
{
	const struct jspan *v = jspan_get(o, key);
	bool has = !jspan_is_null(v);
	if (has && v->kind != JSPAN_STRING)
		return mistyped(key, bad, "a string", err);
	if (has && !jspan_str(v, a, ret_s))
		return err_set(err, ST_LIMIT, key, "JSON document exceeds the memory limit");
	if (ret_has)
		*ret_has = has;
	return ST_OK;
}

enum status jspan_opt_i64(const struct jspan *o, const char *key, enum status bad, int64_t *ret_v,
			  bool *ret_has, struct err *err)
{
	const struct jspan *v = jspan_get(o, key);
	bool has = !jspan_is_null(v);
	if (has && !jspan_i64(v, ret_v))
		return mistyped(key, bad, "an integer", err);
	if (ret_has)
		*ret_has = has;
	return ST_OK;
}

enum status jspan_opt_i32(const struct jspan *o, const char *key, enum status bad, int32_t *ret_v,
			  bool *ret_has, struct err *err)
{
	const struct jspan *v = jspan_get(o, key);
	bool has = !jspan_is_null(v);
	if (has && !jspan_i32(v, ret_v))
		return mistyped(key, bad, "a 32-bit integer", err);
	if (ret_has)
		*ret_has = has;
	return ST_OK;
}

enum status jspan_need_str(const struct jspan *o, const char *key, enum status bad, struct arena *a,
			   struct strv *ret_s, struct err *err)
{
	bool has = false;
	enum status st = jspan_opt_str(o, key, bad, a, ret_s, &has, err);
	return st == ST_OK && !has ? missing(key, bad, err) : st;
}

enum status jspan_need_i64(const struct jspan *o, const char *key, enum status bad, int64_t *ret_v,
			   struct err *err)
{
	bool has = false;
	enum status st = jspan_opt_i64(o, key, bad, ret_v, &has, err);
	return st == ST_OK && !has ? missing(key, bad, err) : st;
}

enum status jspan_need_i32(const struct jspan *o, const char *key, enum status bad, int32_t *ret_v,
			   struct err *err)
{
	bool has = false;
	enum status st = jspan_opt_i32(o, key, bad, ret_v, &has, err);
	return st == ST_OK && !has ? missing(key, bad, err) : st;
}

static enum status opt_container(const struct jspan *o, const char *key, enum jspan_kind kind,
				 const char *name, enum status bad, const struct jspan **ret_v,
				 struct err *err)
{
	const struct jspan *v = jspan_get(o, key);
	if (!jspan_is_null(v) && v->kind != kind)
		return mistyped(key, bad, name, err);
	*ret_v = jspan_is_null(v) ? NULL : v;
	return ST_OK;
}

enum status jspan_opt_array(const struct jspan *o, const char *key, enum status bad,
			    const struct jspan **ret_v, struct err *err)
{
	return opt_container(o, key, JSPAN_ARRAY, "an array", bad, ret_v, err);
}

enum status jspan_opt_object(const struct jspan *o, const char *key, enum status bad,
			     const struct jspan **ret_v, struct err *err)
{
	return opt_container(o, key, JSPAN_OBJECT, "an object", bad, ret_v, err);
}

void jspan_compact(const struct jspan *v, struct buf *b)
{
	const char *p = v->p, *end = v->p + v->n, *from = p;
	bool text = false;
	for (; p < end; p++) {
		if (*p == '"') {
			text = !text;
		} else if (*p == '\\') {
			p++; /* only inside text */
		} else if (!text && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
			buf_put(b, from, (size_t)(p - from));
			from = p + 1;
		}
	}
	buf_put(b, from, (size_t)(end - from));
}

static bool listed(const char *const *known, struct strv key)
{
	for (; *known; known++)
		if (strv_eq(key, strv_of(*known)))
			return true;
	return false;
}

bool jspan_extra(const struct jspan *object, const char *const *known, struct arena *a,
		 struct strv *ret_s)
{
	struct buf b;
	struct strv key;
	bool ok = true;
	buf_init(&b, object->n);
	for (struct jspan_iter it = jspan_iter(object); jspan_next(&it) && ok;) {
		ok = jspan_str(it.key, a, &key);
		if (!ok || listed(known, key))
			continue;
		if (b.n > 0)
			buf_putc(&b, ',');
		buf_putv(&b, jspan_text(it.key));
		buf_putc(&b, ':');
		jspan_compact(it.val, &b);
	}
	ok = ok && buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_s);
	buf_fini(&b);
	return ok;
}
