#include "proto/rpc/msg_json.h"

#include "proto/base/json.h"
#include "proto/base/jwrite.h"

/* As in msg.c the functions call each other along the descriptors only, so that input cannot drive
 * their depth. */

/* Encoding */

static void put_record(struct jwrite *w, const struct rpc_record *record, const uint8_t *base);

static void put_base64(struct jwrite *w, struct bytes b)
{
	struct buf text;
	buf_init(&text, SIZE_MAX);
	digest_base64(&text, b);
	if (buf_ok(&text))
		jwrite_str(w, buf_strv(&text));
	else
		w->b->failed = true;
	buf_fini(&text);
}

static void put_value(struct jwrite *w, const struct rpc_field *f, const uint8_t *at)
{
	switch (f->type) {
	case RPC_TYPE_BOOL:
		jwrite_bool(w, *(const bool *)(const void *)at);
		break;
	case RPC_TYPE_INT:
		jwrite_i64(w, *(const int32_t *)(const void *)at);
		break;
	case RPC_TYPE_LONG:
		jwrite_i64(w, *(const int64_t *)(const void *)at);
		break;
	case RPC_TYPE_STRING:
		jwrite_str(w, *(const struct strv *)(const void *)at);
		break;
	case RPC_TYPE_BYTES:
		put_base64(w, *(const struct bytes *)(const void *)at);
		break;
	case RPC_TYPE_UUID: {
		char text[UUID_TEXT_LEN + 1];
		uuid_text(*(const struct uuid *)(const void *)at, text);
		jwrite_str(w, strv_of(text));
		break;
	}
	case RPC_TYPE_DIGEST:
		put_base64(w, (struct bytes){at, sizeof(struct digest)});
		break;
	case RPC_TYPE_ENUM: {
		uint32_t v;
		memcpy(&v, at, sizeof v);
		jwrite_str(w, strv_of(rpc_symbol_name(f->list, v)));
		break;
	}
	case RPC_TYPE_RECORD:
		put_record(w, f->record, at);
		break;
	}
}

static void put_array(struct jwrite *w, const struct rpc_field *f, const uint8_t *base)
{
	size_t n;
	const uint8_t *items;
	memcpy(&n, base + f->aux, sizeof n);
	memcpy(&items, base + f->offset, sizeof items);
	jwrite_array(w);
	for (size_t i = 0; i < n; i++)
		put_value(w, f, items + i * rpc_value_size(f));
	jwrite_end_array(w);
}

static void put_record(struct jwrite *w, const struct rpc_record *record, const uint8_t *base)
{
	jwrite_object(w);
	for (size_t i = 0; i < record->n; i++) {
		const struct rpc_field *f = &record->fields[i];
		const uint8_t *at = base + f->offset;
		if (f->shape == RPC_OPTIONAL && f->type == RPC_TYPE_RECORD)
			memcpy(&at, base + f->offset, sizeof at);
		else if (f->shape == RPC_OPTIONAL && !*(const bool *)(base + f->aux))
			at = NULL;
		if (!at)
			continue;
		jwrite_key(w, f->name);
		if (f->shape == RPC_ARRAY)
			put_array(w, f, base);
		else
			put_value(w, f, at);
	}
	jwrite_end_object(w);
}

void msg_json_encode(const struct rpc_record *record, const void *value, struct buf *out)
{
	struct jwrite w;
	jwrite_init(&w, out);
	put_record(&w, record, value);
}

/* Decoding */

struct reader {
	struct arena *a;
	struct err *err;
};

static enum status bad(struct reader *r, const char *field, const char *what)
{
	return err_set(r->err, ST_BAD_REQUEST, field, "%s", what);
}

static enum status no_memory(struct reader *r)
{
	return err_set(r->err, ST_TOO_LARGE, "", "the message needs more memory than allowed");
}

static enum status get_record(struct reader *r, const struct rpc_record *record,
			      const struct jval *v, uint8_t *base);

/* Text is copied: the document is freed before the record is used. */
static enum status take_text(struct reader *r, struct strv s, struct strv *ret_s)
{
	if (strv_find(s, 0) < s.n)
		return bad(r, "", "the text holds U+0000");
	return arena_strv(r->a, s, ret_s) ? ST_OK : no_memory(r);
}

static enum status take_base64(struct reader *r, struct strv s, struct bytes *ret_b)
{
	struct buf b;
	buf_init(&b, s.n / 4 * 3 + 3);
	enum status st = ST_OK;
	if (!digest_unbase64(&b, s))
		st = bad(r, "", "the text is not base64");
	else if (!arena_bytes(r->a, buf_bytes(&b), ret_b))
		st = no_memory(r);
	buf_fini(&b);
	return st;
}

static enum status take_symbol(struct reader *r, const struct rpc_list *list, struct strv s,
			       void *at)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (strv_eq(strv_of(list->symbols[i].name), s)) {
			memcpy(at, &i, sizeof i);
			return ST_OK;
		}
	}
	return err_set(r->err, ST_BAD_REQUEST, "", "%s has no symbol of this name", list->name);
}

static enum status get_string_like(struct reader *r, const struct rpc_field *f, struct strv s,
				   void *at)
{
	struct bytes b;
	enum status st;
	switch (f->type) {
	case RPC_TYPE_STRING:
		return take_text(r, s, at);
	case RPC_TYPE_BYTES:
		return take_base64(r, s, at);
	case RPC_TYPE_UUID:
		return uuid_parse(s, at) ? ST_OK : bad(r, "", "the text is not a UUID");
	case RPC_TYPE_DIGEST:
		st = take_base64(r, s, &b);
		if (st != ST_OK)
			return st;
		if (b.n != sizeof(struct digest))
			return bad(r, "", "a digest has 32 bytes");
		memcpy(at, b.p, b.n);
		return ST_OK;
	default:
		return take_symbol(r, f->list, s, at);
	}
}

static enum status get_value(struct reader *r, const struct rpc_field *f, const struct jval *v,
			     void *at)
{
	struct strv s;
	int64_t n;
	switch (f->type) {
	case RPC_TYPE_BOOL:
		return jval_as_bool(v, at) ? ST_OK : bad(r, "", "a boolean is expected");
	case RPC_TYPE_INT:
		if (!jval_as_i64(v, &n) || n < INT32_MIN || n > INT32_MAX)
			return bad(r, "", "a whole number of 32 bits is expected");
		*(int32_t *)at = (int32_t)n;
		return ST_OK;
	case RPC_TYPE_LONG:
		return jval_as_i64(v, at) ? ST_OK
					  : bad(r, "", "a whole number of 64 bits is expected");
	case RPC_TYPE_RECORD:
		if (!jval_is_object(v))
			return bad(r, "", "an object is expected");
		return get_record(r, f->record, v, at);
	default:
		return jval_as_str(v, &s) ? get_string_like(r, f, s, at)
					  : bad(r, "", "a text is expected");
	}
}

/* Defaults are rows of rpc.tbl; one that does not parse is our bug. */
static enum status get_default(struct reader *r, const struct rpc_field *f, void *at)
{
	int64_t n;
	struct strv def = strv_of(f->def);
	switch (f->type) {
	case RPC_TYPE_BOOL:
		*(bool *)at = strv_eq(def, STRV("true"));
		return ST_OK;
	case RPC_TYPE_INT:
		ASSERT(strv_i64(def, &n) && n >= INT32_MIN && n <= INT32_MAX);
		*(int32_t *)at = (int32_t)n;
		return ST_OK;
	case RPC_TYPE_LONG:
		ASSERT(strv_i64(def, &n));
		*(int64_t *)at = n;
		return ST_OK;
	default:
		return get_string_like(r, f, def, at);
	}
}

static enum status get_array(struct reader *r, const struct rpc_field *f, const struct jval *v,
			     uint8_t *base)
{
	if (!jval_is_array(v))
		return bad(r, "", "an array is expected");
	size_t n = jval_count(v), size = rpc_value_size(f);
	uint8_t *items = NULL;
	if (n > 0) {
		items = arena_calloc(r->a, n, size);
		if (!items)
			return no_memory(r);
	}
	for (size_t i = 0; i < n; i++) {
		enum status st = get_value(r, f, jval_at(v, i), items + i * size);
		if (st != ST_OK) {
			err_prefix(r->err, "[%zu]", i);
			return st;
		}
	}
	memcpy(base + f->offset, &items, sizeof items);
	memcpy(base + f->aux, &n, sizeof n);
	return ST_OK;
}

static enum status get_field(struct reader *r, const struct rpc_field *f, const struct jval *v,
			     uint8_t *base)
{
	if (f->shape == RPC_ARRAY)
		return v ? get_array(r, f, v, base) : ST_OK;
	if (f->shape == RPC_ONE) {
		if (v)
			return get_value(r, f, v, base + f->offset);
		return f->def ? get_default(r, f, base + f->offset)
			      : bad(r, "", "the member is missing");
	}
	if (jval_is_null(v))
		return ST_OK;
	if (f->type != RPC_TYPE_RECORD) {
		*(bool *)(base + f->aux) = true;
		return get_value(r, f, v, base + f->offset);
	}
	void *sub = arena_calloc(r->a, 1, f->record->size);
	if (!sub)
		return no_memory(r);
	memcpy(base + f->offset, &sub, sizeof sub);
	return get_value(r, f, v, sub);
}

static bool knows(const struct rpc_record *record, struct strv name)
{
	for (size_t i = 0; i < record->n; i++) {
		if (strv_eq(strv_of(record->fields[i].name), name))
			return true;
	}
	return false;
}

static enum status get_record(struct reader *r, const struct rpc_record *record,
			      const struct jval *v, uint8_t *base)
{
	for (struct jval_iter it = jval_iter(v); jval_next(&it);) {
		if (!knows(record, it.key)) {
			enum status st = err_set(r->err, ST_BAD_REQUEST, "",
						 "%s has no such member", record->name);
			err_prefix(r->err, "%.*s", STRV_ARG(it.key));
			return st;
		}
	}
	for (size_t i = 0; i < record->n; i++) {
		const struct rpc_field *f = &record->fields[i];
		enum status st = get_field(r, f, jval_get(v, f->name), base);
		if (st != ST_OK) {
			err_prefix(r->err, "%s", f->name);
			return st;
		}
	}
	return ST_OK;
}

enum status msg_json_decode(const struct rpc_record *record, struct bytes text, struct arena *a,
			    const void **ret_value, struct err *err)
{
	struct jdoc *doc = NULL;
	struct reader r = {a, err};
	enum status st = jdoc_parse(text, ST_BAD_REQUEST, &doc, err);
	if (st != ST_OK)
		return st;
	void *value = arena_calloc(a, 1, record->size);
	if (!value)
		st = no_memory(&r);
	else if (!jval_is_object(jdoc_root(doc)))
		st = bad(&r, "", "an object is expected");
	else
		st = get_record(&r, record, jdoc_root(doc), value);
	jdoc_free(doc);
	if (st == ST_OK)
		*ret_value = value;
	return st;
}
