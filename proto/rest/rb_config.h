/* Answer of GET /v1/config (REST spec: CatalogConfig). */
#ifndef PROTO_REST_RB_CONFIG_H
#define PROTO_REST_RB_CONFIG_H

#include "proto/base/jwrite.h"

/* prefix p NULL: paths carry none. endpoints: as the specification spells them. key_lifetime: ISO
 * 8601, p NULL when idempotency keys are not supported. */
void rb_config_write(struct buf *b, struct strv prefix, const struct strv *endpoints, size_t n,
		     struct strv key_lifetime);

#endif
