/* Values of primitive types in the spec's single-value binary form (Appendix D), as manifests carry
 * them in bounds and as partition tuples. A `struct value` is canonical: equal values of a type
 * have equal bytes. Text and JSON forms are in value_text.h. */
#ifndef PROTO_ICEBERG_VALUE_H
#define PROTO_ICEBERG_VALUE_H

#include "proto/iceberg/types.h"

struct value {
	bool null;
	struct bytes b; /* unused when null; may be empty for string and binary */
};

struct tuple {
	struct value *v;
	size_t n;
};

#define VALUE_NULL ((struct value){.null = true})

/* Whether b decodes as a value of type t: length, UTF-8, range of time, width of decimal. Variants
 * and geometries are not looked into, any bytes pass; for unknown and nested types none do. */
bool value_valid(const struct type *t, struct bytes b);
/* Checks b and makes it canonical (boolean 0 or 1, one NaN, shortest decimal). With `bound`, what
 * column bounds may hold besides is converted or kept: bytes written before the column was promoted
 * (int for long, float for double, date for timestamp) and a fixed that was cut. The result may
 * share b; a new form lies in the arena. Status `bad` when b does not decode. */
MUST_CHECK enum status value_read(const struct type *t, struct bytes b, bool bound, enum status bad,
				  struct arena *a, struct value *ret_v, struct err *err);
/* Number types as integers: int, long, date, time, timestamps (days, micros or nanos). Asserts on
 * other types and on null. */
int64_t value_i64(const struct type *t, const struct value *v);
/* The canonical value of such a type; asserts that the number fits. false when the arena is
 * exhausted, as in the functions below. */
MUST_CHECK bool value_of_i64(const struct type *t, int64_t n, struct arena *a, struct value *ret_v);
/* float and double. A double that is stored as float is rounded. */
double value_double(const struct type *t, const struct value *v);
MUST_CHECK bool value_of_double(const struct type *t, double d, struct arena *a,
				struct value *ret_v);
/* Decimals of up to 38 digits: the unscaled number. */
__int128 value_decimal(const struct value *v);
MUST_CHECK bool value_of_decimal(__int128 unscaled, struct arena *a, struct value *ret_v);

/* Whether bounds of this type have an order (all but unknown, variant, geometry, geography and
 * nested types). */
bool value_has_order(const struct type *t);
/* NaN of float and double; false for other types. */
bool value_is_nan(const struct type *t, const struct value *v);
/* Order of two valid values that are not null: numbers by value with -0 before +0 and NaN last,
 * booleans false first, everything else by unsigned bytes. Negative, zero or positive. */
int value_cmp(const struct type *t, const struct value *x, const struct value *y);
static inline bool value_eq(const struct value *x, const struct value *y)
{
	return x->null ? y->null : !y->null && bytes_eq(x->b, y->b);
}
MUST_CHECK bool value_copy(struct arena *a, const struct value *v, struct value *ret_v);

/* Tuples of canonical values. Equality by position; nulls are equal to each other. */
bool tuple_eq(const struct tuple *x, const struct tuple *y);
uint64_t tuple_hash(const struct tuple *t);
MUST_CHECK bool tuple_copy(struct arena *a, const struct tuple *t, struct tuple *ret_t);

/* Bounds of string and binary cut to `length` code points or bytes (Iceberg metrics use 16); other
 * types and short values pass unchanged. For the upper bound the last unit that can be
 * incremented is, and the rest dropped; *ret_has is false when none can be: there is no bound. */
struct value value_cut_lower(const struct type *t, const struct value *v, size_t length);
MUST_CHECK bool value_cut_upper(const struct type *t, const struct value *v, size_t length,
				struct arena *a, struct value *ret_v, bool *ret_has);

#endif
