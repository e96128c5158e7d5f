#include "daemon/commit/intake/colmetrics.h"

#include <math.h>
#include <stdlib.h>

#include "proto/iceberg/value.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

static enum status invalid(const char *name, size_t i, int32_t field_id, const char *what,
			   const char *why, struct err *err)
{
	enum status st = err_set(err, ST_METRICS_INVALID, "", "%s of column %d %s", what,
				 (int)field_id, why);
	err_prefix(err, "%s[%zu]", name, i);
	return st;
}

/* NULL: there is no such column. */
static const struct type *type_of(const struct schema *s, int32_t id)
{
	static const struct type type_long = {.kind = TYPE_LONG}, type_text = {.kind = TYPE_STRING};
	if (!s)
		return id == FIELD_ID_DELETE_FILE_PATH ? &type_text
		       : id == FIELD_ID_DELETE_POS     ? &type_long
						       : NULL;
	const struct schema_node *node = schema_find(s, id);
	if (node)
		return node->type;
	return id == FIELD_ID_ROW_ID || id == FIELD_ID_LAST_UPDATED_SEQ ? &type_long : NULL;
}

/* ---- counts ---- */

static int by_metric(const void *x, const void *y)
{
	int32_t a = ((const struct metric *)x)->field_id, b = ((const struct metric *)y)->field_id;
	return (a > b) - (a < b);
}

static enum status copy_metrics(const struct schema *s, const struct rpc_metric *in, size_t n,
				const char *name, struct arena *a, struct metric **ret_v,
				size_t *ret_n, struct err *err)
{
	struct metric *v = arena_calloc(a, n ? n : 1, sizeof *v);
	bool rises = true;
	if (!v)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		if (!type_of(s, in[i].field_id))
			return invalid(name, i, in[i].field_id, "metric",
				       "names no column of the schema", err);
		if (in[i].value < 0)
			return invalid(name, i, in[i].field_id, "metric", "is negative", err);
		v[i] = (struct metric){in[i].field_id, in[i].value};
		rises &= i == 0 || v[i - 1].field_id < v[i].field_id;
	}
	if (!rises)
		qsort(v, n, sizeof *v, by_metric);
	for (size_t i = 1; i < n && !rises; i++) {
		if (v[i - 1].field_id != v[i].field_id)
			continue;
		size_t at = n - 1;
		while (in[at].field_id != v[i].field_id)
			at--;
		return invalid(name, at, v[i].field_id, "metric", "stands twice", err);
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

/* Both lists rise. */
static enum status check_most(const struct metric *v, size_t n, const struct content_file *f,
			      const char *name, struct err *err)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		while (k < f->n_value_counts && f->value_counts[k].field_id < v[i].field_id)
			k++;
		if (k < f->n_value_counts && f->value_counts[k].field_id == v[i].field_id &&
		    v[i].v > f->value_counts[k].v)
			return invalid(name, i, v[i].field_id, "metric",
				       "exceeds the count of its values", err);
	}
	return ST_OK;
}

/* ---- bounds ---- */

/* A point: x and y, then z, m or both, as doubles. A coordinate that no row has is a NaN, which x
 * and y never are (spec "Bounds for Variant, Geometry, and Geography"). */
static bool is_point(struct bytes b)
{
	double d;
	if (b.n != 16 && b.n != 24 && b.n != 32)
		return false;
	for (size_t i = 0; i < 16; i += 8) {
		uint64_t bits = get_u64le(b.p + i);
		memcpy(&d, &bits, sizeof d);
		if (isnan(d))
			return false;
	}
	return true;
}

/* NULL when b is a bound of the type; *ret_b is then its canonical form, as all that compare values
 * need it. It may lie in the arena or share b. */
static const char *fault_of(const struct type *t, struct bytes b, struct arena *a,
			    struct bytes *ret_b)
{
	static const char undecodable[] = "does not decode as the column's type";
	struct value v;
	*ret_b = b;
	switch (t->kind) {
	case TYPE_FIXED:
		/* Writers cut long ones, as they do binary. */
		return b.n > 0 && b.n <= (size_t)t->length ? NULL : undecodable;
	case TYPE_GEOMETRY:
	case TYPE_GEOGRAPHY:
		return is_point(b) ? NULL : undecodable;
	case TYPE_VARIANT:
		/* An object: metadata of version 1, then a value. */
		return b.n > 3 && (b.p[0] & 0x0f) == 1 ? NULL : undecodable;
	default:
		if (value_read(t, b, false, ST_METRICS_INVALID, a, &v, NULL) != ST_OK)
			return undecodable;
		*ret_b = v.b;
		return value_is_nan(t, &v) ? "is not a number" : NULL;
	}
}

static int by_bound(const void *x, const void *y)
{
	int32_t a = ((const struct bound *)x)->field_id, b = ((const struct bound *)y)->field_id;
	return (a > b) - (a < b);
}

static enum status copy_bounds(const struct schema *s, const struct rpc_bound *in, size_t n,
			       const char *name, struct arena *a, struct bound **ret_v,
			       size_t *ret_n, struct err *err)
{
	struct bound *v = arena_calloc(a, n ? n : 1, sizeof *v);
	bool rises = true;
	if (!v)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		const struct type *t = type_of(s, in[i].field_id);
		struct bytes b = {NULL, 0};
		const char *why =
			t ? fault_of(t, in[i].value, a, &b) : "names no column of the schema";
		if (why)
			return invalid(name, i, in[i].field_id, "bound", why, err);
		v[i].field_id = in[i].field_id;
		if (!arena_bytes(a, b, &v[i].b))
			return full(err);
		rises &= i == 0 || v[i - 1].field_id < v[i].field_id;
	}
	if (!rises)
		qsort(v, n, sizeof *v, by_bound);
	for (size_t i = 1; i < n && !rises; i++) {
		if (v[i - 1].field_id != v[i].field_id)
			continue;
		size_t at = n - 1;
		while (in[at].field_id != v[i].field_id)
			at--;
		return invalid(name, at, v[i].field_id, "bound", "stands twice", err);
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

/* x of a geography may be inverted: the box then crosses the antimeridian. */
static bool is_inverted_box(const struct type *t, struct bytes lower, struct bytes upper)
{
	for (size_t i = t->kind == TYPE_GEOGRAPHY ? 8 : 0; i < lower.n && i < upper.n; i += 8) {
		uint64_t lo_bits = get_u64le(lower.p + i), hi_bits = get_u64le(upper.p + i);
		double lo, hi;
		memcpy(&lo, &lo_bits, sizeof lo);
		memcpy(&hi, &hi_bits, sizeof hi);
		if (lo > hi) /* false when either is a NaN */
			return true;
	}
	return false;
}

static bool is_inverted(const struct type *t, struct bytes lower, struct bytes upper)
{
	struct value lo = {.b = lower}, hi = {.b = upper};
	if (t->kind == TYPE_GEOMETRY || t->kind == TYPE_GEOGRAPHY)
		return is_inverted_box(t, lower, upper);
	return value_has_order(t) && value_cmp(t, &lo, &hi) > 0;
}

/* Some readers order UUIDs as unsigned bytes, some as two signed numbers, and the writer's order is
 * not known: only bounds whose halves agree in sign mean the same to all. */
static bool orders_agree(struct bytes lower, struct bytes upper)
{
	return !((lower.p[0] ^ upper.p[0]) & 0x80) && !((lower.p[8] ^ upper.p[8]) & 0x80);
}

static bool is_uuid(const struct schema *s, int32_t id)
{
	return type_of(s, id)->kind == TYPE_UUID;
}

/* Keeps the uuid bounds of `v` whose counterpart in `other` agrees; both lists rise. */
static size_t keep_agreed(const struct schema *s, struct bound *v, size_t n,
			  const struct bound *other, size_t n_other)
{
	size_t kept = 0, k = 0;
	for (size_t i = 0; i < n; i++) {
		while (k < n_other && other[k].field_id < v[i].field_id)
			k++;
		bool paired = k < n_other && other[k].field_id == v[i].field_id;
		if (!is_uuid(s, v[i].field_id) || (paired && orders_agree(v[i].b, other[k].b)))
			v[kept++] = v[i];
	}
	return kept;
}

static enum status check_pairs(const struct schema *s, struct content_file *f, struct err *err)
{
	size_t k = 0;
	for (size_t i = 0; i < f->n_lower; i++) {
		int32_t id = f->lower[i].field_id;
		while (k < f->n_upper && f->upper[k].field_id < id)
			k++;
		if (k == f->n_upper || f->upper[k].field_id != id)
			continue;
		const struct type *t = type_of(s, id);
		if (t->kind != TYPE_UUID && is_inverted(t, f->lower[i].b, f->upper[k].b))
			return invalid("lower_bounds", i, id, "bound", "lies above the upper one",
				       err);
	}
	/* The upper list first against the whole lower one; what is left of it decides the lower.
	 */
	f->n_upper = keep_agreed(s, f->upper, f->n_upper, f->lower, f->n_lower);
	f->n_lower = keep_agreed(s, f->lower, f->n_lower, f->upper, f->n_upper);
	return ST_OK;
}

enum status colmetrics_check(const struct schema *s, const struct rpc_data_file *in,
			     struct arena *a, struct content_file *f, struct err *err)
{
	enum status st = copy_metrics(s, in->column_sizes, in->n_column_sizes, "column_sizes", a,
				      &f->column_sizes, &f->n_column_sizes, err);
	if (st == ST_OK)
		st = copy_metrics(s, in->value_counts, in->n_value_counts, "value_counts", a,
				  &f->value_counts, &f->n_value_counts, err);
	if (st == ST_OK)
		st = copy_metrics(s, in->null_counts, in->n_null_counts, "null_counts", a,
				  &f->null_counts, &f->n_null_counts, err);
	if (st == ST_OK)
		st = copy_metrics(s, in->nan_counts, in->n_nan_counts, "nan_counts", a,
				  &f->nan_counts, &f->n_nan_counts, err);
	if (st == ST_OK)
		st = check_most(f->null_counts, f->n_null_counts, f, "null_counts", err);
	if (st == ST_OK)
		st = check_most(f->nan_counts, f->n_nan_counts, f, "nan_counts", err);
	if (st == ST_OK)
		st = copy_bounds(s, in->lower_bounds, in->n_lower_bounds, "lower_bounds", a,
				 &f->lower, &f->n_lower, err);
	if (st == ST_OK)
		st = copy_bounds(s, in->upper_bounds, in->n_upper_bounds, "upper_bounds", a,
				 &f->upper, &f->n_upper, err);
	return st == ST_OK ? check_pairs(s, f, err) : st;
}
