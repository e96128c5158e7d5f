#include "daemon/commit/intake/tuple_json.h"

#include <math.h>
#include <stdlib.h>

#include "proto/base/jspan.h"
#include "proto/base/uuid.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/value_text.h"

/* The index of one tuple's text; a tuple has at most PARTITION_MAX_FIELDS values. */
#define SCRATCH_MAX ((size_t)16 << 20)
/* Longest text of a number that is looked at. */
#define NUMBER_MAX 400

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

bool tuple_json_nulls(const struct partition_spec *spec, struct arena *a,
		      struct rpc_partition_value **ret_v)
{
	struct rpc_partition_value *v = arena_calloc(a, spec->n ? spec->n : 1, sizeof *v);
	if (!v)
		return false;
	for (size_t i = 0; i < spec->n; i++)
		v[i].field_id = spec->fields[i].field_id;
	*ret_v = v;
	return true;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The exponent's text behind 'e': one of more than six digits fits no decimal. */
static bool exponent(struct strv s, int64_t *ret_v)
{
	if (s.n && s.p[0] == '+')
		s = strv_sub(s, 1, s.n);
	return s.n <= 7 && strv_i64(s, ret_v);
}

/* One more digit; false when v would reach the limit, ten times which may have more than 128 bits. */
static bool shift(unsigned __int128 *io_v, unsigned d, unsigned __int128 limit)
{
	if (*io_v >= limit / 10)
		return false;
	*io_v = *io_v * 10 + d;
	return true;
}

/* A JSON number as an integer of 10^-scale, exactly; false when digits would be lost or it has more
 * than `precision`. */
static bool decimal_of(struct strv s, int32_t scale, int32_t precision, __int128 *ret_v)
{
	unsigned __int128 v = 0, limit = 1;
	int64_t power = 0, zeros = 0, e = 0;
	bool minus = s.n && s.p[0] == '-', fraction = false;
	for (int32_t i = 0; i < precision; i++)
		limit *= 10;
	/* Zeros are held back until a digit follows, so that those at the end become an exponent.
	 */
	for (size_t i = minus; i < s.n; i++) {
		if (s.p[i] == '.') {
			fraction = true;
		} else if (digit(s.p[i])) {
			power -= fraction;
			zeros++;
			if (s.p[i] == '0')
				continue;
			for (; zeros > 1 && v; zeros--)
				if (!shift(&v, 0, limit))
					return false;
			zeros = 0;
			if (!shift(&v, (unsigned)(s.p[i] - '0'), limit))
				return false;
		} else if (!exponent(strv_sub(s, i + 1, s.n), &e)) {
			return false;
		} else {
			break;
		}
	}
	power += zeros + e + scale;
	if (v && power < 0)
		return false;
	for (; v && power > 0; power--)
		if (!shift(&v, 0, limit))
			return false;
	*ret_v = minus ? -(__int128)v : (__int128)v;
	return true;
}

/* false when it is no number of the type; infinities and NaN come as text. */
static bool real_of(const struct type *t, const struct jspan *j, struct arena *a, double *ret_d)
{
	char z[NUMBER_MAX + 1];
	struct strv s;
	if (jspan_is(j, JSPAN_STRING)) {
		if (!jspan_str(j, a, &s))
			return false;
		if (strv_ieq(s, STRV("NaN")))
			*ret_d = (double)NAN;
		else if (strv_eq(s, STRV("Infinity")))
			*ret_d = (double)INFINITY;
		else if (strv_eq(s, STRV("-Infinity")))
			*ret_d = -(double)INFINITY;
		else
			return false;
		return true;
	}
	if (!jspan_is(j, JSPAN_NUMBER) || !strv_cstr(jspan_text(j), z, sizeof z))
		return false;
	*ret_d = t->kind == TYPE_FLOAT ? (double)strtof(z, NULL) : strtod(z, NULL);
	return isfinite(*ret_d);
}

static bool unbase64(struct strv s, struct arena *a, struct bytes *ret_b, bool *ret_ok)
{
	struct buf b;
	buf_init(&b, s.n + 1);
	*ret_ok = digest_unbase64(&b, s);
	bool fits = !*ret_ok || arena_bytes(a, buf_bytes(&b), ret_b);
	buf_fini(&b);
	return fits;
}

/* One value that is not null. *ret_ok: it is of the type; false only when the arena is full. */
static bool read_value(const struct type *t, const struct jspan *j, bool unscaled, struct arena *a,
		       struct value *ret_v, bool *ret_ok)
{
	static const uint8_t bools[2] = {0, 1};
	struct uuid u;
	struct strv s, text = jspan_text(j);
	int64_t n;
	double d;
	__int128 wide;
	bool number = jspan_is(j, JSPAN_NUMBER);
	ret_v->null = false;
	*ret_ok = false;
	switch (t->kind) {
	case TYPE_BOOLEAN:
		*ret_ok = j->kind == JSPAN_TRUE || j->kind == JSPAN_FALSE;
		ret_v->b = (struct bytes){&bools[j->kind == JSPAN_TRUE], 1};
		return true;
	case TYPE_INT:
	case TYPE_DATE:
	case TYPE_LONG:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMPTZ:
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS:
		if (!jspan_i64(j, &n))
			return true;
		*ret_ok = t->kind == TYPE_TIME ? n >= 0 && n < INT64_C(86400000000)
			  : t->kind == TYPE_INT || t->kind == TYPE_DATE
				  ? n >= INT32_MIN && n <= INT32_MAX
				  : true;
		return !*ret_ok || value_of_i64(t, n, a, ret_v);
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		*ret_ok = real_of(t, j, a, &d);
		return !*ret_ok || value_of_double(t, d, a, ret_v);
	case TYPE_DECIMAL:
		if (!number)
			return true;
		for (size_t i = 0; i < text.n; i++)
			unscaled &= text.p[i] == '-' || digit(text.p[i]);
		*ret_ok = decimal_of(text, unscaled ? 0 : t->scale, t->precision, &wide);
		return !*ret_ok || value_of_decimal(wide, a, ret_v);
	case TYPE_STRING:
		if (!jspan_is(j, JSPAN_STRING))
			return true;
		*ret_ok = true;
		return jspan_str(j, a, &s) && arena_bytes(a, strv_bytes(s), &ret_v->b);
	case TYPE_UUID:
		if (!jspan_is(j, JSPAN_STRING))
			return true;
		if (!jspan_str(j, a, &s))
			return false;
		*ret_ok = uuid_parse(s, &u);
		return !*ret_ok || arena_bytes(a, (struct bytes){u.b, sizeof u.b}, &ret_v->b);
	case TYPE_FIXED:
	case TYPE_BINARY:
		if (!jspan_is(j, JSPAN_STRING))
			return true;
		return jspan_str(j, a, &s) && unbase64(s, a, &ret_v->b, ret_ok);
	default:
		/* The source column is gone, or its type partitions nothing: only null is left. */
		return true;
	}
}

static enum status no_value(const struct type *t, size_t i, struct err *err)
{
	enum status st =
		err_set(err, ST_TUPLE_MISMATCH, "", "cannot be read as %s", type_name(t).z);
	err_prefix(err, "[%zu]", i);
	return st;
}

static enum status wrong_arity(size_t have, const struct partition_spec *spec, struct err *err)
{
	return err_set(err, ST_TUPLE_MISMATCH, "", "%zu values for a spec of %zu fields", have,
		       spec->n);
}

/* Room for the values and their types; where the file's schema lacks a source column, the type of
 * today. */
static enum status begin(const struct partition_spec *spec, const struct metadata *m,
			 const struct schema *s, struct arena *a,
			 struct rpc_partition_value **ret_v, struct field **ret_types,
			 struct err *err)
{
	struct field *now;
	if (!tuple_json_nulls(spec, a, ret_v))
		return full(err);
	enum status st = partition_type(spec, s, a, ret_types, err);
	if (st == ST_OK)
		st = partition_type(spec, metadata_schema(m), a, &now, err);
	for (size_t i = 0; st == ST_OK && i < spec->n; i++)
		if ((*ret_types)[i].type->kind == TYPE_UNKNOWN)
			(*ret_types)[i].type = now[i].type;
	return st;
}

static enum status read_values(const struct jspan *root, const struct partition_spec *spec,
			       const struct metadata *m, const struct schema *s, bool unscaled,
			       struct arena *a, struct rpc_partition_value **ret_v, struct err *err)
{
	const struct jspan *array = jspan_get(root, "partitionValues");
	struct rpc_partition_value *v;
	struct field *types;
	size_t i = 0;
	if (!jspan_is(array, JSPAN_ARRAY))
		return err_set(err, ST_TUPLE_MISMATCH, "", "must be an array");
	if (array->count != spec->n)
		return wrong_arity(array->count, spec, err);
	enum status st = begin(spec, m, s, a, &v, &types, err);
	if (st != ST_OK)
		return st;
	JSPAN_EACH(j, array)
	{
		struct value one = VALUE_NULL;
		bool ok = true;
		if (!jspan_is_null(j)) {
			if (!read_value(types[i].type, j, unscaled, a, &one, &ok))
				return full(err);
			if (!ok)
				return no_value(types[i].type, i, err);
			v[i].has_value = true;
			v[i].value = one.b;
		}
		i++;
	}
	*ret_v = v;
	return ST_OK;
}

enum status tuple_json_read(struct strv json, const struct partition_spec *spec,
			    const struct metadata *m, const struct schema *s, bool unscaled,
			    struct arena *a, struct rpc_partition_value **ret_v, struct err *err)
{
	struct arena tmp;
	const struct jspan *root;
	arena_init(&tmp, SCRATCH_MAX);
	enum status st = jspan_parse(strv_bytes(json), ST_TUPLE_MISMATCH, &tmp, &root, err);
	if (st == ST_OK) {
		st = read_values(root, spec, m, s, unscaled, a, ret_v, err);
		if (st != ST_OK)
			err_prefix(err, "partitionValues");
	}
	arena_fini(&tmp);
	return st;
}

/* ------------------------------------------------------------------ single-value JSON */

static ptrdiff_t field_at(const struct partition_spec *spec, struct strv id)
{
	int64_t n;
	if (strv_i64(id, &n))
		for (size_t i = 0; i < spec->n; i++)
			if (spec->fields[i].field_id == n)
				return (ptrdiff_t)i;
	return -1;
}

static enum status read_single(const struct jval *root, const struct partition_spec *spec,
			       const struct metadata *m, const struct schema *s, struct arena *a,
			       struct rpc_partition_value **ret_v, struct err *err)
{
	struct rpc_partition_value *v;
	struct field *types;
	bool array = jval_is_array(root);
	if (!array && !jval_is_object(root))
		return err_set(err, ST_TUPLE_MISMATCH, "", "must be an array or an object");
	if (array ? jval_count(root) != spec->n : jval_count(root) > spec->n)
		return wrong_arity(jval_count(root), spec, err);
	enum status st = begin(spec, m, s, a, &v, &types, err);
	if (st != ST_OK)
		return st;
	struct jval_iter it = jval_iter(array ? NULL : root);
	for (size_t k = 0; array ? k < spec->n : jval_next(&it); k++) {
		ptrdiff_t at = array ? (ptrdiff_t)k : field_at(spec, it.key);
		struct value one;
		if (at < 0)
			return err_set(err, ST_TUPLE_MISMATCH, "", "the spec has no field %.*s",
				       STRV_ARG(it.key));
		const struct type *t = types[at].type;
		const struct jval *j = array ? jval_at(root, k) : it.val;
		st = value_text_parse(t, j, ST_TUPLE_MISMATCH, a, &one, err);
		if (st == ST_TUPLE_MISMATCH)
			return no_value(t, (size_t)at, err);
		if (st != ST_OK)
			return full(err);
		v[at].has_value = !one.null;
		/* Text of a string value belongs to the document. */
		if (!one.null && !arena_bytes(a, one.b, &v[at].value))
			return full(err);
	}
	*ret_v = v;
	return ST_OK;
}

enum status tuple_json_single(struct strv json, const struct partition_spec *spec,
			      const struct metadata *m, const struct schema *s, struct arena *a,
			      struct rpc_partition_value **ret_v, struct err *err)
{
	struct jdoc *doc = NULL;
	enum status st = jdoc_parse(strv_bytes(json), ST_TUPLE_MISMATCH, &doc, err);
	if (st == ST_OK)
		st = read_single(jdoc_root(doc), spec, m, s, a, ret_v, err);
	jdoc_free(doc);
	return st;
}
