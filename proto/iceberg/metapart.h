/* Shared immutable parts of table metadata other than snapshots: schemas, specs, sort orders,
 * statistics entries, encryption keys. Each holds its canonical JSON and, where there is one, the
 * parsed form. Internal to metadata. */
#ifndef PROTO_ICEBERG_METAPART_H
#define PROTO_ICEBERG_METAPART_H

#include "proto/base/buf.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"

struct metapart {
	uint32_t refs;
	int64_t key;      /* schema, spec or order id; snapshot id of a statistics entry */
	struct strv name; /* key-id of an encryption key, path of a statistics file; inside the arena */
	struct strv json; /* canonical; own storage */
	union {
		struct schema schema;
		struct partition_spec spec;
		struct sort_order order;
	} u;
	struct arena arena;
};

struct metapart_list {
	struct metapart **v; /* in the owner's arena; each slot holds one reference */
	size_t n, cap;
};

/* From JSON text. Errors are `bad`. A spec may lack field ids and ids may be missing: the caller's
 * id (>= 0) then, or instead of the one in the text, counts. */
MUST_CHECK enum status metapart_schema(struct strv json, int32_t id, enum status bad,
				       struct metapart **ret_p, struct err *err);
/* `json` may also be the bare array of fields of a version 1 document. */
MUST_CHECK enum status metapart_spec(struct strv json, int32_t id, enum status bad,
				     struct metapart **ret_p, struct err *err);
MUST_CHECK enum status metapart_order(struct strv json, int32_t id, enum status bad,
				      struct metapart **ret_p, struct err *err);
/* From structs of someone else's memory, with this id. */
MUST_CHECK enum status metapart_schema_copy(const struct schema *s, int32_t id,
					    struct metapart **ret_p, struct err *err);
MUST_CHECK enum status metapart_spec_copy(const struct partition_spec *s, int32_t id,
					  struct metapart **ret_p, struct err *err);
MUST_CHECK enum status metapart_order_copy(const struct sort_order *o, int32_t id,
					   struct metapart **ret_p, struct err *err);
/* Text only: statistics (key = snapshot id, name = path) and encryption keys (name). */
MUST_CHECK enum status metapart_text(struct strv json, int64_t key, struct strv name,
				     struct metapart **ret_p, struct err *err);
void metapart_unref(struct metapart *own_p);

/* Shares all of `from`. */
MUST_CHECK bool metapart_list_copy(struct metapart_list *to, const struct metapart_list *from,
				   struct arena *a);
void metapart_list_fini(struct metapart_list *l);
/* The part is consumed, also on failure (false: the arena is full). */
MUST_CHECK bool metapart_list_add(struct metapart_list *l, struct metapart *own_p, struct arena *a);
void metapart_list_remove(struct metapart_list *l, size_t i);
/* NULL when there is none. */
struct metapart *metapart_list_find(const struct metapart_list *l, int64_t key);
size_t metapart_list_index(const struct metapart_list *l,
			   int64_t key);                               /* l->n when there is none */
void metapart_list_json(const struct metapart_list *l, struct buf *b); /* joined by commas */

#endif
