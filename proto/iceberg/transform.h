/* Transforms of partition and sort fields (spec "Partition Transforms"): text, which types they
 * take and give, and their application to a value. */
#ifndef PROTO_ICEBERG_TRANSFORM_H
#define PROTO_ICEBERG_TRANSFORM_H

#include "proto/iceberg/schema.h"
#include "proto/iceberg/value.h"

enum transform_kind {
	TRANSFORM_IDENTITY,
	TRANSFORM_BUCKET,
	TRANSFORM_TRUNCATE,
	TRANSFORM_YEAR,
	TRANSFORM_MONTH,
	TRANSFORM_DAY,
	TRANSFORM_HOUR,
	TRANSFORM_VOID,
	TRANSFORM_UNKNOWN /* kept as text, never used to filter */
};

struct transform {
	enum transform_kind kind;
	int32_t arg;      /* bucket count or truncate width, > 0 */
	struct strv text; /* canonical; as given when unknown */
};

/* Text that names no transform of the spec gives TRANSFORM_UNKNOWN; a known one with a bad argument
 * is an error of status `bad`. The text is copied. */
MUST_CHECK enum status transform_parse(struct strv text, enum status bad, struct arena *a,
				       struct transform *ret_t, struct err *err);
static inline bool transform_eq(const struct transform *x, const struct transform *y)
{
	return strv_eq(x->text, y->text);
}
/* void and unknown take every type. */
bool transform_accepts(const struct transform *t, const struct type *source);
/* Result type: bucket, year, month and hour give int, day gives date, the others the source type.
 * source may be NULL (the column was dropped): TYPE_UNKNOWN then stands for "the source type". An
 * unknown transform gives TYPE_UNKNOWN: only the Avro schema of a manifest can tell. Borrowed from
 * static storage or from source. */
const struct type *transform_result(const struct transform *t, const struct type *source);
/* Applies t to a valid value of a type that it accepts. Unknown transforms have no result:
 * ST_UNSUPPORTED. Null gives null. */
MUST_CHECK enum status transform_apply(const struct transform *t, const struct type *source,
				       const struct value *in, struct arena *a, struct value *ret_v,
				       struct err *err);
/* Whether v, a valid value of `result` (transform_result's type) or null, can be a result of t: a
 * bucket below the count, a truncated value of the width. Results of Java count too, whose integers
 * wrap at the ends of the type. */
bool transform_gives(const struct transform *t, const struct type *result, const struct value *v);
/* The 32-bit hash of bucket (spec Appendix B), before the modulo. false for types without one. */
MUST_CHECK bool transform_hash(const struct type *source, const struct value *v, int32_t *ret_hash);
/* Murmur3, x86, 32 bits, seed 0. */
int32_t transform_murmur3(struct bytes b);
/* Appends the human form of a transform's result ("2017-11", "2017-11-16-22"), "null" for null;
 * `result` is transform_result's type. */
void transform_human(struct buf *b, const struct transform *t, const struct type *result,
		     const struct value *v);

/* The arguments of a transform in partition and sort fields. */

/* Reads "source-id", or "source-ids" of a transform with several arguments. *ret_ids is NULL with
 * the former; *ret_id is the first with the latter. No transform of several arguments is defined
 * yet, so that such a one becomes TRANSFORM_UNKNOWN. */
MUST_CHECK enum status transform_sources_parse(const struct jval *field, enum status bad,
					       struct arena *a, struct transform *io_t,
					       int32_t *ret_id, int32_t **ret_ids, size_t *ret_n,
					       struct err *err);
void transform_sources_write(struct jwrite *w, int32_t id, const int32_t *ids, size_t n);
/* Whether the sources exist, are primitive, lie in no list or map, and have a type that t accepts.
 * Otherwise false with the reason in *ret_why, and *ret_type set when the type is the reason. */
bool transform_sources_bind(const struct schema *schema, const struct transform *t, int32_t id,
			    const int32_t *ids, size_t n, const struct type **ret_type,
			    const char **ret_why);

#endif
