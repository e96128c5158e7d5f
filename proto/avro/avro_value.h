/* Values of partition tuples in Avro ("Avro" in Appendix A of the table spec): the Avro type of an
 * Iceberg primitive, and conversion from and to single-value binary form. */
#ifndef PROTO_AVRO_AVRO_VALUE_H
#define PROTO_AVRO_AVRO_VALUE_H

#include "proto/avro/avro_bin.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/value.h"

enum avro_wire {
	AVRO_WIRE_NULL,
	AVRO_WIRE_BOOLEAN,
	AVRO_WIRE_INT,
	AVRO_WIRE_LONG,
	AVRO_WIRE_FLOAT,
	AVRO_WIRE_DOUBLE,
	AVRO_WIRE_BYTES,
	AVRO_WIRE_STRING,
	AVRO_WIRE_FIXED
};

/* How a file encodes one value. */
struct avro_form {
	enum avro_wire wire;
	size_t fixed; /* bytes of AVRO_WIRE_FIXED */
};

/* "null", "boolean" … "string"; false for all other names. */
MUST_CHECK bool avro_value_wire(struct strv name, enum avro_wire *ret_wire);
/* Bytes of the fixed that holds a decimal of this precision. */
size_t avro_value_decimal_len(int32_t precision);
/* Writes the Avro type of a primitive. A fixed needs a name of its own: suffix, when not 0, is
 * appended to the usual one. Referring to an earlier definition would be legal, but PyIceberg does
 * not follow such references, and Java refuses a name that is defined twice. */
void avro_value_schema(struct jwrite *w, const struct type *t, int32_t suffix);
/* Whether two types would have the same usual name. */
bool avro_value_same_name(const struct type *x, const struct type *y);
/* Appends a value that is not null; false when it is none of type t. */
MUST_CHECK bool avro_value_put(struct buf *b, const struct type *t, const struct value *v);

/* Whether values of `form` can be read as type t, directly or by promotion. attrs: the object with
 * logicalType and the like, NULL when the schema gave a bare name. TYPE_UNKNOWN (the column was
 * dropped, so that its type is known to the file only) becomes the type that the file says. */
MUST_CHECK enum status avro_value_accept(struct avro_form form, const struct jval *attrs,
					 struct type *t, struct err *err);
/* Reads one value of an accepted form. Views point into the input, new bytes lie in the arena. */
MUST_CHECK enum status avro_value_get(struct avro_in *in, struct avro_form form,
				      const struct type *t, struct arena *a, struct value *ret_v,
				      struct err *err);

#endif
