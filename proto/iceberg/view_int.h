/* What the two halves of views share: reading members into a view's arena. */
#ifndef PROTO_ICEBERG_VIEW_INT_H
#define PROTO_ICEBERG_VIEW_INT_H

#include "proto/iceberg/view.h"

#define VIEW_ARENA_BYTES (VIEW_MAX_BYTES * 8)

MUST_CHECK enum status view_full(struct err *err);
/* Refuses an array or object of more entries than a view may have. */
MUST_CHECK enum status view_bounded(const struct jval *v, const char *field, struct err *err);
MUST_CHECK enum status view_new(struct view **ret_v);
/* An object of texts, copied; absent or null gives none. */
MUST_CHECK enum status view_pairs(const struct jval *object, const char *field, enum status bad,
				  struct arena *a, const struct strv_pair **ret_v, size_t *ret_n,
				  struct err *err);
/* A version as it stands in metadata or in a request. Two queries of one dialect are
 * ST_ILLEGAL_ARGUMENT in a request. */
MUST_CHECK enum status view_version_read(const struct jval *o, enum status bad, struct arena *a,
					 struct view_version *ret_v, struct err *err);
MUST_CHECK enum status view_schema_read(const struct jval *o, enum status bad, struct arena *a,
					struct schema **ret_s, struct err *err);
const struct view_version *view_version_by_id(const struct view *v, int32_t id);
const struct schema *view_schema_by_id(const struct view *v, int32_t id);
/* The rules that every view keeps: a location, versions, a current one, known schemas. */
MUST_CHECK enum status view_check(const struct view *v, enum status bad, struct err *err);

#endif
