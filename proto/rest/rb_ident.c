#include "proto/rest/rb_ident.h"

#include "proto/base/digest.h"

enum status rb_open(struct bytes body, struct jdoc **ret_doc, struct err *err)
{
	struct jdoc *doc = NULL;
	enum status st = jdoc_parse(body, ST_BAD_REQUEST, &doc, err);
	if (st != ST_OK)
		return st;
	if (!jval_is_object(jdoc_root(doc))) {
		jdoc_free(doc);
		return err_set(err, ST_BAD_REQUEST, "", "the body must be a JSON object");
	}
	*ret_doc = doc;
	return ST_OK;
}

bool rb_ident_eq(const struct rb_ident *a, const struct rb_ident *b)
{
	if (a->n_levels != b->n_levels || !strv_eq(a->name, b->name))
		return false;
	for (size_t i = 0; i < a->n_levels; i++)
		if (!strv_eq(a->levels[i], b->levels[i]))
			return false;
	return true;
}

/* Why a name cannot be, or NULL. */
static const char *name_fault(struct strv name, bool level)
{
	if (name.n == 0)
		return "a name must not be empty";
	if (name.n > RB_NAME_BYTES_MAX)
		return "a name must not be longer than 256 bytes";
	if (!strv_utf8(name) || memchr(name.p, 0, name.n))
		return "a name must be UTF-8 text without U+0000";
	if (level && memchr(name.p, 0x1f, name.n))
		return "a namespace must not hold U+001F, which separates its levels";
	return NULL;
}

static const char *levels_fault(const struct strv *levels, size_t n)
{
	size_t total = 0;
	if (n == 0)
		return "a namespace must have a level";
	if (n > RB_LEVELS_MAX)
		return "a namespace must not have more than 32 levels";
	for (size_t i = 0; i < n; i++) {
		const char *why = name_fault(levels[i], true);
		if (why)
			return why;
		total += levels[i].n;
	}
	return total > RB_LEVELS_BYTES_MAX ? "a namespace must not be longer than 1600 bytes"
					   : NULL;
}

bool rb_name_possible(struct strv name)
{
	return !name_fault(name, false);
}

bool rb_levels_possible(const struct strv *levels, size_t n)
{
	return !levels_fault(levels, n);
}

enum status rb_name_check(struct strv name, const char *field, struct err *err)
{
	const char *why = name_fault(name, false);
	return why ? err_set(err, ST_BAD_REQUEST, field, "%s", why) : ST_OK;
}

enum status rb_levels_check(const struct strv *levels, size_t n, const char *field, struct err *err)
{
	const char *why = levels_fault(levels, n);
	return why ? err_set(err, ST_BAD_REQUEST, field, "%s", why) : ST_OK;
}

enum status rb_texts_parse(const struct jval *array, const char *field, struct arena *a,
			   const struct strv **ret_v, size_t *ret_n, struct err *err)
{
	size_t n = jval_count(array);
	if (!jval_is_array(array))
		return err_set(err, ST_BAD_REQUEST, field, "must be an array of text");
	struct strv *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return err_set(err, ST_LIMIT, field, "the request is too large");
	for (size_t i = 0; i < n; i++) {
		if (!jval_as_str(jval_at(array, i), &v[i])) {
			err_set(err, ST_BAD_REQUEST, "", "must be text");
			err_prefix(err, "%s[%zu]", field, i);
			return ST_BAD_REQUEST;
		}
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

enum status rb_pairs_parse(const struct jval *object, const char *field, struct arena *a,
			   const struct strv_pair **ret_v, size_t *ret_n, struct err *err)
{
	size_t n = jval_count(object), i = 0;
	if (!jval_is_null(object) && !jval_is_object(object))
		return err_set(err, ST_BAD_REQUEST, field, "must be an object of text values");
	struct strv_pair *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return err_set(err, ST_LIMIT, field, "the request is too large");
	if (n > 0) {
		for (struct jval_iter it = jval_iter(object); jval_next(&it); i++) {
			v[i].key = it.key;
			if (!jval_as_str(it.val, &v[i].value))
				return err_set(err, ST_BAD_REQUEST, field,
					       "the value of %.*s must be text",
					       STRV_ARG(strv_sub(it.key, 0, 64)));
			if (memchr(it.key.p, 0, it.key.n) ||
			    (v[i].value.n && memchr(v[i].value.p, 0, v[i].value.n)))
				return err_set(err, ST_BAD_REQUEST, field,
					       "keys and values must not hold U+0000");
		}
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

enum status rb_new_parse(const struct jval *root, struct strv *ret_name, struct strv *ret_location,
			 struct err *err)
{
	bool has = false;
	enum status st = jval_need_str(root, "name", ST_BAD_REQUEST, ret_name, err);
	if (st == ST_OK)
		st = rb_name_check(*ret_name, "name", err);
	if (st == ST_OK)
		st = jval_opt_str(root, "location", ST_BAD_REQUEST, ret_location, &has, err);
	if (st == ST_OK && has && ret_location->n == 0)
		st = err_set(err, ST_BAD_REQUEST, "location", "must not be empty");
	return st;
}

enum status rb_ident_parse(const struct jval *v, const char *field, struct arena *a,
			   struct rb_ident *ret_ident, struct err *err)
{
	struct rb_ident ident;
	if (!jval_is_object(v))
		return err_set(err, ST_BAD_REQUEST, field, "must be a table identifier");
	enum status st = rb_texts_parse(jval_get(v, "namespace"), "namespace", a, &ident.levels,
					&ident.n_levels, err);
	if (st == ST_OK)
		st = jval_need_str(v, "name", ST_BAD_REQUEST, &ident.name, err);
	if (st == ST_OK)
		st = rb_levels_check(ident.levels, ident.n_levels, "namespace", err);
	if (st == ST_OK)
		st = rb_name_check(ident.name, "name", err);
	if (st != ST_OK) {
		err_prefix(err, "%s", field);
		return st;
	}
	*ret_ident = ident;
	return ST_OK;
}

void rb_levels_write(struct jwrite *w, const struct strv *levels, size_t n)
{
	jwrite_array(w);
	for (size_t i = 0; i < n; i++)
		jwrite_str(w, levels[i]);
	jwrite_end_array(w);
}

void rb_dotted(const struct strv *levels, size_t n, struct strv name, char *out, size_t cap)
{
	size_t at = 0;
	bool cut = false;
	ASSERT(cap > 0);
	for (size_t i = 0; i < n + (name.n > 0) && !cut; i++) {
		struct strv s = i < n ? levels[i] : name;
		if (i > 0 && at + 1 < cap)
			out[at++] = '.';
		size_t room = cap - 1 - at;
		cut = s.n > room;
		if (cut)
			s.n = room;
		if (s.n)
			memcpy(out + at, s.p, s.n);
		at += s.n;
	}
	/* A cut may have left the beginning of a character. */
	while (cut && at > 0 && !strv_utf8((struct strv){out, at}))
		at--;
	out[at] = '\0';
}

#define TOKEN_VERSION '2'
#define LIST_ID_BYTES 8

/* The same on every daemon. Lengths count, so that no two lists have the same bytes. */
uint64_t rb_list_id(struct strv what, struct strv warehouse, const struct strv *levels, size_t n)
{
	struct digest_ctx ctx;
	digest_init(&ctx);
	for (size_t i = 0; i < n + 2; i++) {
		struct strv s = i == 0 ? what : i == 1 ? warehouse : levels[i - 2];
		uint8_t length[8];
		put_u64be(length, s.n);
		digest_add(&ctx, (struct bytes){length, sizeof length});
		digest_add(&ctx, strv_bytes(s));
	}
	return get_u64be(digest_fini(&ctx).b);
}

void rb_token_write(struct buf *b, uint64_t list, struct strv last_name)
{
	uint8_t id[LIST_ID_BYTES];
	put_u64be(id, list);
	buf_putc(b, TOKEN_VERSION);
	digest_hex(b, (struct bytes){id, sizeof id});
	digest_hex(b, strv_bytes(last_name));
}

void rb_next_write(struct jwrite *w, uint64_t list, struct strv last_name)
{
	struct buf token;
	jwrite_key(w, "next-page-token");
	if (last_name.n == 0) {
		jwrite_null(w);
		return;
	}
	buf_init(&token, 2 * (LIST_ID_BYTES + RB_NAME_BYTES_MAX) + 1);
	rb_token_write(&token, list, last_name);
	jwrite_str(w, buf_strv(&token));
	buf_fini(&token);
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum status rb_token_parse(struct strv token, uint64_t list, struct arena *a,
			   struct strv *ret_after, struct err *err)
{
	if (token.n == 0) {
		*ret_after = (struct strv){"", 0};
		return ST_OK;
	}
	size_t n = (token.n - 1) / 2;
	if (token.p[0] != TOKEN_VERSION || token.n % 2 == 0 || n <= LIST_ID_BYTES ||
	    n > LIST_ID_BYTES + RB_NAME_BYTES_MAX)
		return err_set(err, ST_BAD_REQUEST, "pageToken", "not a token of this server");
	char *p = arena_alloc(a, n);
	if (!p)
		return err_set(err, ST_LIMIT, "pageToken", "the request is too large");
	for (size_t i = 0; i < n; i++) {
		int high = nibble(token.p[1 + 2 * i]), low = nibble(token.p[2 + 2 * i]);
		if (high < 0 || low < 0)
			return err_set(err, ST_BAD_REQUEST, "pageToken",
				       "not a token of this server");
		p[i] = (char)(high << 4 | low);
	}
	if (get_u64be((const uint8_t *)p) != list)
		return err_set(err, ST_BAD_REQUEST, "pageToken", "a token of another list");
	struct strv name = {p + LIST_ID_BYTES, n - LIST_ID_BYTES};
	if (!rb_name_possible(name))
		return err_set(err, ST_BAD_REQUEST, "pageToken", "not a token of this server");
	*ret_after = name;
	return ST_OK;
}
