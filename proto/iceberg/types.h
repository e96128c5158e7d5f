/* Iceberg types and struct fields (spec "Schemas and Data Types", Appendix C): text, JSON and rules
 * that concern one type alone. Everything lives in the caller's arena and is immutable once built.
 * Symbols are type_; walks descend with a bound of JDOC_MAX_DEPTH. */
#ifndef PROTO_ICEBERG_TYPES_H
#define PROTO_ICEBERG_TYPES_H

#include "proto/base/arena.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"

enum type_kind {
	TYPE_BOOLEAN,
	TYPE_INT,
	TYPE_LONG,
	TYPE_FLOAT,
	TYPE_DOUBLE,
	TYPE_DATE,
	TYPE_TIME,
	TYPE_TIMESTAMP,
	TYPE_TIMESTAMPTZ,
	TYPE_TIMESTAMP_NS,
	TYPE_TIMESTAMPTZ_NS,
	TYPE_STRING,
	TYPE_UUID,
	TYPE_FIXED,
	TYPE_BINARY,
	TYPE_DECIMAL,
	TYPE_UNKNOWN,
	TYPE_VARIANT,
	TYPE_GEOMETRY,
	TYPE_GEOGRAPHY,
	TYPE_STRUCT,
	TYPE_LIST,
	TYPE_MAP
};

#define TYPE_DECIMAL_MAX_PRECISION 38

/* A member that the spec does not define, kept so that a rewrite loses nothing. */
struct type_member {
	struct strv key;
	struct strv json; /* compact JSON text of the value */
};

struct type_extra {
	struct type_member *m;
	size_t n;
};

struct field;

struct type {
	enum type_kind kind;
	int32_t length;             /* fixed: bytes */
	int32_t precision, scale;   /* decimal */
	struct strv crs, algorithm; /* geometry, geography; p NULL for the default */
	union {
		struct {
			struct field *fields;
			size_t n;
		} st;
		struct {
			int32_t element_id;
			bool element_required;
			struct type *element;
		} list;
		struct {
			int32_t key_id;
			struct type *key;
			int32_t value_id;
			bool value_required;
			struct type *value;
		} map;
	} u;
	struct type_extra extra; /* struct, list and map only */
};

struct field {
	int32_t id;
	struct strv name;
	bool required;
	struct type *type;
	struct strv doc;
	bool has_doc;
	struct strv initial_default,
		write_default; /* canonical JSON text; p NULL when absent or null */
	struct type_extra extra;
};

static inline bool type_is_nested(const struct type *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_LIST || t->kind == TYPE_MAP;
}
/* All that is neither nested nor variant. */
static inline bool type_is_primitive(const struct type *t)
{
	return !type_is_nested(t) && t->kind != TYPE_VARIANT;
}

/* "long", "struct", without parameters. Static storage. */
const char *type_kind_name(enum type_kind kind);
/* Parses the text of a type that is not nested ("decimal(9, 2)", "fixed[16]"), in any case and with
 * spaces inside the parameters; the result lies in the arena and keeps no pointer into text. */
MUST_CHECK enum status type_parse_text(struct strv text, enum status bad, struct arena *a,
				       struct type **ret_type, struct err *err);
/* Appends the canonical text of a type that is not nested; of a nested one a short description for
 * messages ("struct<...>"). */
void type_text(struct buf *b, const struct type *t);
/* As type_text, cut to fit and ended with NUL: for messages. */
struct type_name {
	char z[64];
};
struct type_name type_name(const struct type *t);

/* Parses a type's JSON: a string or an object of struct, list or map. `bad` is the status of an
 * error (ST_BAD_REQUEST for requests, ST_CORRUPT for stored files). Strings are copied. */
MUST_CHECK enum status type_parse(const struct jval *v, enum status bad, struct arena *a,
				  struct type **ret_type, struct err *err);
/* Parses the "fields" array of a struct or schema. */
MUST_CHECK enum status type_parse_fields(const struct jval *array, enum status bad, struct arena *a,
					 struct field **ret_fields, size_t *ret_n, struct err *err);
void type_write(struct jwrite *w, const struct type *t);
/* Writes the JSON array of fields. */
void type_write_fields(struct jwrite *w, const struct field *fields, size_t n);

/* Members of an object beside the NULL-ended list of known keys, copied as text; and back. */
MUST_CHECK enum status type_extra_parse(const struct jval *object, const char *const *known,
					struct arena *a, struct type_extra *ret_extra,
					struct err *err);
void type_extra_write(struct jwrite *w, const struct type_extra *extra);

/* Equal in kind, parameters and, for nested types, in all of the fields (type_fields_eq). */
bool type_eq(const struct type *x, const struct type *y);
/* Equal ids, names, optionality, types, docs and defaults, in order; unknown members are ignored.
 */
bool type_fields_eq(const struct field *x, size_t nx, const struct field *y, size_t ny);
/* The lowest format version that has this type, not looking inside nested ones: 1 or 3. */
int type_min_version(const struct type *t);
/* Whether a column may change from one type to the other under a format version (spec "Schema
 * Evolution"): true for equal types. Nested types are not compared. A date column that is a
 * partition source has further limits, which the caller knows. */
bool type_promotes(const struct type *from, const struct type *to, int format_version);

#endif
