#include "clients/c/fz_scan.h"

/* Deeper than any published schema; bounds the recursion. */
#define DEPTH_MAX 16

struct cursor {
	const uint8_t *p;
	size_t n;
	size_t items;
	const char *why;
};

static bool bad(struct cursor *c, const char *why)
{
	if (!c->why)
		c->why = why;
	return false;
}

static bool get_long(struct cursor *c, int64_t *ret_v)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < 10; i++) {
		if (c->n == 0)
			return bad(c, "a number is cut");
		uint8_t byte = *c->p++;
		c->n--;
		if (i == 9 && byte > 1)
			return bad(c, "a number has more than 64 bits");
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret_v = (int64_t)(v >> 1 ^ (~(v & 1) + 1));
			return true;
		}
	}
	return bad(c, "a number has more than 10 bytes");
}

static bool skip(struct cursor *c, uint64_t n, struct strv *ret_s)
{
	if (n > c->n)
		return bad(c, "a length passes the end");
	*ret_s = (struct strv){(const char *)c->p, (size_t)n};
	c->p += n;
	c->n -= (size_t)n;
	return true;
}

static bool sized(struct cursor *c, struct strv *ret_s)
{
	int64_t n;
	if (!get_long(c, &n))
		return false;
	if (n < 0)
		return bad(c, "a length is negative");
	return skip(c, (uint64_t)n, ret_s);
}

static bool value(struct cursor *c, avro_schema_t schema, int depth);

/* Blocks of a count and, when it is negative, a size in bytes, which must be the true one. */
static bool array(struct cursor *c, avro_schema_t items, int depth)
{
	for (;;) {
		int64_t count, size = -1;
		if (!get_long(c, &count))
			return false;
		if (count == 0)
			return true;
		if (count < 0) {
			if (count == INT64_MIN || !get_long(c, &size) || size < 0)
				return bad(c, "a block's size is wrong");
			count = -count;
		}
		/* No published item is empty, so each takes a byte at least. */
		if ((uint64_t)count > c->n)
			return bad(c, "a block has more items than bytes");
		const uint8_t *start = c->p;
		for (int64_t i = 0; i < count; i++) {
			c->items++;
			if (!value(c, items, depth + 1))
				return false;
		}
		if (size >= 0 && (size_t)size != (size_t)(c->p - start))
			return bad(c, "a block's size is wrong");
	}
}

static bool record(struct cursor *c, avro_schema_t schema, int depth)
{
	size_t fields = avro_schema_record_size(schema);
	for (size_t i = 0; i < fields; i++)
		if (!value(c, avro_schema_record_field_get_by_index(schema, (int)i), depth + 1))
			return false;
	return true;
}

static bool value(struct cursor *c, avro_schema_t schema, int depth)
{
	int64_t v;
	struct strv s;
	if (depth > DEPTH_MAX)
		return bad(c, "the schema is too deep");
	switch (avro_typeof(schema)) {
	case AVRO_BOOLEAN:
		return skip(c, 1, &s) && (s.p[0] == 0 || s.p[0] == 1 || bad(c, "no boolean"));
	case AVRO_INT32:
		return get_long(c, &v) && ((v >= INT32_MIN && v <= INT32_MAX) ||
					   bad(c, "an int has more than 32 bits"));
	case AVRO_INT64:
		return get_long(c, &v);
	case AVRO_STRING:
		return sized(c, &s) && ((strv_utf8(s) && strv_find(s, 0) == s.n) ||
					bad(c, "text is not UTF-8 or holds a NUL"));
	case AVRO_BYTES:
		return sized(c, &s);
	case AVRO_FIXED:
		return skip(c, (uint64_t)avro_schema_fixed_size(schema), &s);
	case AVRO_ENUM:
		return get_long(c, &v) &&
		       ((v >= 0 && v < avro_schema_enum_number_of_symbols(schema)) ||
			bad(c, "an unknown symbol"));
	case AVRO_UNION:
		if (!get_long(c, &v))
			return false;
		if (v < 0 || (uint64_t)v >= avro_schema_union_size(schema))
			return bad(c, "an unknown branch of a union");
		return value(c, avro_schema_union_branch(schema, (int)v), depth + 1);
	case AVRO_NULL:
		return true;
	case AVRO_ARRAY:
		return array(c, avro_schema_array_items(schema), depth);
	case AVRO_RECORD:
		return record(c, schema, depth);
	case AVRO_LINK:
		return value(c, avro_schema_link_target(schema), depth + 1);
	default:
		return bad(c, "a type that no message has");
	}
}

bool fz_scan(avro_schema_t schema, struct bytes data, size_t *ret_items, const char **ret_why)
{
	struct cursor c = {.p = data.p, .n = data.n};
	if (value(&c, schema, 0) && (c.n == 0 || bad(&c, "bytes follow the record"))) {
		*ret_items = c.items;
		return true;
	}
	*ret_why = c.why;
	return false;
}
