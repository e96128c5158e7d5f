#include "proto/iceberg/transform.h"

#include "proto/iceberg/value_text.h"

#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)

static const char *const plain_names[] = {
	[TRANSFORM_IDENTITY] = "identity", [TRANSFORM_YEAR] = "year", [TRANSFORM_MONTH] = "month",
	[TRANSFORM_DAY] = "day",           [TRANSFORM_HOUR] = "hour", [TRANSFORM_VOID] = "void",
};

/* "name[digits]"; false when the text has another shape. */
static bool with_argument(struct strv s, const char *name, struct strv *ret_digits)
{
	size_t n = strlen(name);
	if (s.n < n + 3 || !strv_ieq(strv_sub(s, 0, n), strv_of(name)) || s.p[n] != '[' ||
	    s.p[s.n - 1] != ']')
		return false;
	struct strv digits = strv_sub(s, n + 1, s.n - 1);
	for (size_t i = 0; i < digits.n; i++)
		if (digits.p[i] < '0' || digits.p[i] > '9')
			return false;
	*ret_digits = digits;
	return true;
}

enum status transform_parse(struct strv text, enum status bad, struct arena *a,
			    struct transform *ret_t, struct err *err)
{
	struct transform t = {.kind = TRANSFORM_UNKNOWN, .text = text};
	struct strv digits;
	int64_t n;
	for (size_t i = 0; i < ARRAY_SIZE(plain_names); i++)
		if (plain_names[i] && strv_ieq(text, strv_of(plain_names[i]))) {
			t.kind = (enum transform_kind)i;
			t.text = strv_of(plain_names[i]);
			*ret_t = t;
			return ST_OK;
		}
	bool bucket = with_argument(text, "bucket", &digits);
	if (bucket || with_argument(text, "truncate", &digits)) {
		if (!strv_i64(digits, &n) || n < 1 || n > INT32_MAX)
			return err_set(err, bad, "transform", "%s: %.*s (must be > 0)",
				       bucket ? "Invalid number of buckets"
					      : "Invalid truncate width",
				       STRV_ARG(digits));
		t.kind = bucket ? TRANSFORM_BUCKET : TRANSFORM_TRUNCATE;
		t.arg = (int32_t)n;
		char *p = arena_printf(a, "%s[%d]", bucket ? "bucket" : "truncate", (int)t.arg);
		t.text = strv_of(p);
	} else if (!arena_strv(a, text, &t.text)) {
		t.text.p = NULL;
	}
	if (!t.text.p)
		return err_set(err, ST_LIMIT, "transform",
			       "the text is larger than this server's limit");
	*ret_t = t;
	return ST_OK;
}

static bool is_micros(const struct type *t)
{
	return t->kind == TYPE_TIMESTAMP || t->kind == TYPE_TIMESTAMPTZ;
}

static bool is_nanos(const struct type *t)
{
	return t->kind == TYPE_TIMESTAMP_NS || t->kind == TYPE_TIMESTAMPTZ_NS;
}

bool transform_accepts(const struct transform *t, const struct type *source)
{
	switch (t->kind) {
	case TRANSFORM_IDENTITY:
		return type_is_primitive(source) && source->kind != TYPE_GEOMETRY &&
		       source->kind != TYPE_GEOGRAPHY;
	case TRANSFORM_BUCKET:
		switch (source->kind) {
		case TYPE_INT:
		case TYPE_LONG:
		case TYPE_DATE:
		case TYPE_TIME:
		case TYPE_DECIMAL:
		case TYPE_STRING:
		case TYPE_UUID:
		case TYPE_FIXED:
		case TYPE_BINARY:
			return true;
		default:
			return is_micros(source) || is_nanos(source);
		}
	case TRANSFORM_TRUNCATE:
		return source->kind == TYPE_INT || source->kind == TYPE_LONG ||
		       source->kind == TYPE_DECIMAL || source->kind == TYPE_STRING ||
		       source->kind == TYPE_BINARY;
	case TRANSFORM_YEAR:
	case TRANSFORM_MONTH:
	case TRANSFORM_DAY:
		return source->kind == TYPE_DATE || is_micros(source) || is_nanos(source);
	case TRANSFORM_HOUR:
		return is_micros(source) || is_nanos(source);
	default:
		return true;
	}
}

static const struct type type_int = {.kind = TYPE_INT};
static const struct type type_date = {.kind = TYPE_DATE};
static const struct type type_unknown = {.kind = TYPE_UNKNOWN};

const struct type *transform_result(const struct transform *t, const struct type *source)
{
	switch (t->kind) {
	case TRANSFORM_BUCKET:
	case TRANSFORM_YEAR:
	case TRANSFORM_MONTH:
	case TRANSFORM_HOUR:
		return &type_int;
	case TRANSFORM_DAY:
		return &type_date;
	case TRANSFORM_UNKNOWN:
		return &type_unknown;
	default:
		return source ? source : &type_unknown;
	}
}

/* Murmur3 */

static uint32_t rotl(uint32_t x, int r)
{
	return x << r | x >> (32 - r);
}

static uint32_t mix_key(uint32_t k)
{
	return rotl(k * UINT32_C(0xcc9e2d51), 15) * UINT32_C(0x1b873593);
}

int32_t transform_murmur3(struct bytes b)
{
	uint32_t h = 0, tail = 0;
	size_t i = 0;
	for (; b.n - i >= 4; i += 4)
		h = rotl(h ^ mix_key(get_u32le(b.p + i)), 13) * 5 + UINT32_C(0xe6546b64);
	for (size_t k = b.n; k > i; k--)
		tail = tail << 8 | b.p[k - 1];
	h ^= mix_key(tail); /* no tail mixes to zero */
	h ^= (uint32_t)b.n;
	h = (h ^ h >> 16) * UINT32_C(0x85ebca6b);
	h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
	return (int32_t)(h ^ h >> 16);
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* A timestamp of either unit in microseconds. */
static int64_t micros_of(const struct type *t, const struct value *v)
{
	int64_t n = value_i64(t, v);
	return is_nanos(t) ? floor_div(n, 1000) : n;
}

bool transform_hash(const struct type *source, const struct value *v, int32_t *ret_hash)
{
	uint8_t eight[8];
	static const struct transform bucket = {.kind = TRANSFORM_BUCKET};
	if (v->null || !transform_accepts(&bucket, source))
		return false;
	switch (source->kind) {
	case TYPE_DECIMAL:
	case TYPE_STRING:
	case TYPE_UUID:
	case TYPE_FIXED:
	case TYPE_BINARY:
		*ret_hash = transform_murmur3(v->b);
		return true;
	default:
		/* As a long, and in microseconds, so that a promoted column keeps its buckets. */
		put_u64le(eight, (uint64_t)micros_of(source, v));
		*ret_hash = transform_murmur3((struct bytes){eight, sizeof eight});
		return true;
	}
}

/* Rounds towards negative infinity to a multiple of w. An int and a long wrap at the end of the
 * type as Java does; a decimal has no such end there, so sixteen bytes that overflow are refused.
 */
static bool truncate_number(const struct type *source, const struct value *in, int32_t w,
			    struct arena *a, struct value *ret_v)
{
	if (source->kind == TYPE_DECIMAL) {
		__int128 v = value_decimal(in), rest = v % w;
		return !__builtin_sub_overflow(v, rest < 0 ? rest + w : rest, &v) &&
		       value_of_decimal(v, a, ret_v);
	}
	int64_t v = value_i64(source, in), rest = v % w;
	uint64_t cut = (uint64_t)v - (uint64_t)(rest < 0 ? rest + w : rest);
	if (source->kind == TYPE_INT)
		return value_of_i64(source, (int32_t)(uint32_t)cut, a, ret_v);
	return value_of_i64(source, (int64_t)cut, a, ret_v);
}

/* Years, months, days or hours from 1970-01-01T00:00. */
static int64_t calendar_part(enum transform_kind kind, const struct type *source,
			     const struct value *in)
{
	int64_t year, days;
	int month, day;
	if (source->kind == TYPE_DATE) {
		days = value_i64(source, in);
	} else {
		int64_t us = micros_of(source, in);
		if (kind == TRANSFORM_HOUR)
			return floor_div(us, HOUR_US);
		days = floor_div(us, DAY_US);
	}
	if (kind == TRANSFORM_DAY)
		return days;
	value_text_civil(days, &year, &month, &day);
	return kind == TRANSFORM_YEAR ? year - 1970 : (year - 1970) * 12 + month - 1;
}

enum status transform_apply(const struct transform *t, const struct type *source,
			    const struct value *in, struct arena *a, struct value *ret_v,
			    struct err *err)
{
	int32_t hash;
	bool fits = true;
	if (t->kind == TRANSFORM_UNKNOWN)
		return err_set(err, ST_UNSUPPORTED, "transform",
			       "the transform %.*s is not known here", STRV_ARG(t->text));
	ASSERT(transform_accepts(t, source));
	if (in->null || t->kind == TRANSFORM_VOID) {
		*ret_v = VALUE_NULL;
		return ST_OK;
	}
	switch (t->kind) {
	case TRANSFORM_BUCKET: {
		bool hashed = transform_hash(source, in, &hash);
		ASSERT(hashed);
		fits = value_of_i64(&type_int, (hash & INT32_MAX) % t->arg, a, ret_v);
		break;
	}
	case TRANSFORM_TRUNCATE:
		if (source->kind == TYPE_STRING || source->kind == TYPE_BINARY)
			*ret_v = value_cut_lower(source, in, (size_t)t->arg);
		else
			fits = truncate_number(source, in, t->arg, a, ret_v);
		break;
	case TRANSFORM_YEAR:
	case TRANSFORM_MONTH:
	case TRANSFORM_DAY:
	case TRANSFORM_HOUR: {
		/* Hours of any int64 of microseconds exceed an int; the type has no room for them.
		 */
		int64_t n = calendar_part(t->kind, source, in);
		if (n < INT32_MIN || n > INT32_MAX)
			return err_set(err, ST_VALIDATION, "", "%.*s of the value is out of range",
				       STRV_ARG(t->text));
		fits = value_of_i64(&type_int, n, a, ret_v);
		break;
	}
	default:
		*ret_v = *in;
		break;
	}
	return fits ? ST_OK
		    : err_set(err, ST_LIMIT, "", "the values are larger than this server's limit");
}

/* A multiple of w; or what a value that lies within w of the least wraps to, above all multiples.
 */
static bool is_truncated(const struct type *type, const struct value *v, int32_t w)
{
	if (type->kind == TYPE_DECIMAL)
		return value_decimal(v) % w == 0;
	int64_t n = value_i64(type, v), most = type->kind == TYPE_INT ? INT32_MAX : INT64_MAX;
	/* Java's (n % w) + w overflows beyond this width, and its results are no multiples. */
	if (type->kind == TYPE_INT && w > INT32_MAX / 2)
		return true;
	return n % w == 0 || n > most - w;
}

bool transform_gives(const struct transform *t, const struct type *result, const struct value *v)
{
	if (v->null)
		return true;
	switch (t->kind) {
	case TRANSFORM_VOID:
		return false;
	case TRANSFORM_BUCKET: {
		int64_t n = value_i64(result, v);
		return n >= 0 && n < t->arg;
	}
	case TRANSFORM_TRUNCATE:
		if (result->kind == TYPE_STRING || result->kind == TYPE_BINARY)
			return value_cut_lower(result, v, (size_t)t->arg).b.n == v->b.n;
		return is_truncated(result, v, t->arg);
	default:
		return true;
	}
}

void transform_human(struct buf *b, const struct transform *t, const struct type *result,
		     const struct value *v)
{
	if (v->null) {
		buf_puts(b, "null");
		return;
	}
	switch (t->kind) {
	case TRANSFORM_YEAR:
		buf_printf(b, "%04lld", 1970 + (long long)value_i64(result, v));
		break;
	case TRANSFORM_MONTH: {
		int64_t n = value_i64(result, v), year = floor_div(n, 12);
		buf_printf(b, "%04lld-%02d", 1970 + (long long)year, (int)(n - year * 12) + 1);
		break;
	}
	case TRANSFORM_HOUR: {
		int64_t n = value_i64(result, v), days = floor_div(n, 24);
		value_text_date(b, days);
		buf_printf(b, "-%02d", (int)(n - days * 24));
		break;
	}
	default:
		value_text_human(b, result, v);
		break;
	}
}

/* Sources */

enum status transform_sources_parse(const struct jval *field, enum status bad, struct arena *a,
				    struct transform *io_t, int32_t *ret_id, int32_t **ret_ids,
				    size_t *ret_n, struct err *err)
{
	const struct jval *array = NULL;
	enum status st = jval_opt_array(field, "source-ids", bad, &array, err);
	if (st != ST_OK)
		return st;
	if (!array) {
		*ret_ids = NULL;
		*ret_n = 0;
		return jval_need_i32(field, "source-id", bad, ret_id, err);
	}
	size_t n = jval_count(array);
	if (n == 0)
		return err_set(err, bad, "source-ids", "a transform has at least one source");
	int32_t *ids = arena_calloc(a, n, sizeof *ids);
	if (!ids)
		return err_set(err, ST_LIMIT, "source-ids", "more than this server's limit");
	for (size_t i = 0; i < n; i++) {
		int64_t id;
		if (!jval_as_i64(jval_at(array, i), &id) || id < 0 || id > INT32_MAX)
			return err_set(err, bad, "source-ids", "element %zu is not a field id", i);
		ids[i] = (int32_t)id;
	}
	if (n > 1)
		io_t->kind = TRANSFORM_UNKNOWN;
	*ret_id = ids[0];
	*ret_ids = ids;
	*ret_n = n;
	return ST_OK;
}

void transform_sources_write(struct jwrite *w, int32_t id, const int32_t *ids, size_t n)
{
	if (n == 0) {
		jwrite_ki64(w, "source-id", id);
		return;
	}
	jwrite_key(w, "source-ids");
	jwrite_array(w);
	for (size_t i = 0; i < n; i++)
		jwrite_i64(w, ids[i]);
	jwrite_end_array(w);
}

bool transform_sources_bind(const struct schema *schema, const struct transform *t, int32_t id,
			    const int32_t *ids, size_t n, const struct type **ret_type,
			    const char **ret_why)
{
	for (size_t i = 0; i < n || i == 0; i++) {
		const struct schema_node *node = schema_find(schema, n > 0 ? ids[i] : id);
		if (!node) {
			*ret_why = "Cannot find source column";
			return false;
		}
		if (!type_is_primitive(node->type)) {
			*ret_why = "Invalid source type, not a primitive";
			*ret_type = node->type;
			return false;
		}
		if (node->in_list || node->in_map) {
			*ret_why = "Invalid source column, inside a list or map";
			return false;
		}
		if (!transform_accepts(t, node->type)) {
			*ret_why = "Invalid source type";
			*ret_type = node->type;
			return false;
		}
	}
	return true;
}
