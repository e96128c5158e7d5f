/* Sort orders (spec "Sorting", Appendix C). Lives in the caller's arena. */
#ifndef PROTO_ICEBERG_SORT_H
#define PROTO_ICEBERG_SORT_H

#include "proto/iceberg/ids.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/transform.h"

#define SORT_UNSORTED_ID 0 /* reserved for the order without fields */

struct sort_field {
	struct transform transform;
	int32_t source_id;   /* the first of source_ids when there are some */
	int32_t *source_ids; /* NULL unless the JSON used "source-ids" */
	size_t n_source_ids;
	bool descending;
	bool nulls_last;
	struct type_extra extra;
};

struct sort_order {
	int32_t order_id;
	struct sort_field *fields;
	size_t n;
	struct type_extra extra;
};

/* Parses {"order-id", "fields"}; a missing order-id is SORT_ORDER_NONE. */
MUST_CHECK enum status sort_parse(const struct jval *v, enum status bad, struct arena *a,
				  struct sort_order *ret_order, struct err *err);
void sort_write(struct jwrite *w, const struct sort_order *order);
/* Equal field lists; order-id ignored. */
bool sort_same(const struct sort_order *x, const struct sort_order *y);
/* Whether the order holds under a schema: sources exist, are primitive, and their types are
 * accepted. ST_VALIDATION otherwise. */
MUST_CHECK enum status sort_check(const struct sort_order *order, const struct schema *schema,
				  struct err *err);

#endif
