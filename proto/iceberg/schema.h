/* Table and view schemas (spec "Schemas and Data Types", Appendix C) with an index by field id and
 * by full name. Lives in the caller's arena; immutable once built. */
#ifndef PROTO_ICEBERG_SCHEMA_H
#define PROTO_ICEBERG_SCHEMA_H

#include "proto/iceberg/ids.h"
#include "proto/iceberg/types.h"

/* Greatest id that a table may use; the ids above belong to metadata columns (spec "Reserved Field
 * IDs"). */
#define SCHEMA_MAX_ID 2147483447

/* Anything in a schema that has a field id: a struct field, list element, map key or map value. */
struct schema_node {
	int32_t id;
	struct strv full_name;     /* "a.b", "l.element", "m.key", "m.value" */
	const struct field *field; /* NULL for list elements, map keys and values */
	const struct type *type;
	const struct schema_node *parent; /* NULL at the top */
	bool required;
	bool in_list, in_map;    /* some ancestor is one */
	bool in_optional_struct; /* some ancestor struct field is optional */
};

struct schema {
	int32_t schema_id; /* SCHEMA_ID_NONE when the JSON had none */
	struct field *fields;
	size_t n;
	int32_t *identifier_ids; /* ascending */
	size_t n_identifier;
	int32_t highest_id; /* of all nodes; 0 when there are none */
	struct type_extra extra;

	/* Index, built by schema_parse and schema_index. */
	struct schema_node *nodes; /* document order, parents before children */
	struct schema_node **by_id;
	struct schema_node **by_name;
	size_t n_nodes;
};

/* Parses and checks all that does not depend on the format version: ids unique and not reserved,
 * full names unique and not empty, identifier fields, defaults that fit their type. Structural
 * errors have status `bad`, broken rules too. Keeps no pointer into v. */
MUST_CHECK enum status schema_parse(const struct jval *v, enum status bad, struct arena *a,
				    struct schema *ret_schema, struct err *err);
/* Checks and indexes a schema whose fields and identifier_ids were filled by hand. */
MUST_CHECK enum status schema_index(struct schema *s, enum status bad, struct arena *a,
				    struct err *err);
/* Member order: type, schema-id, identifier-field-ids (when there are some), fields. */
void schema_write(struct jwrite *w, const struct schema *s);

/* NULL when there is none. */
const struct schema_node *schema_find(const struct schema *s, int32_t id);
const struct schema_node *schema_find_name(const struct schema *s, struct strv full_name);

/* Same ids, names, optionality, types, docs, defaults and identifier set; schema-id ignored. */
bool schema_same(const struct schema *x, const struct schema *y);
/* ST_VALIDATION when a type or an initial default needs a higher format version. */
MUST_CHECK enum status schema_check_version(const struct schema *s, int format_version,
					    struct err *err);
/* A copy whose ids are assigned anew from first_id on, as when a table is created: all fields of a
 * struct, then what is inside each; list element; map key, then value. schema_id is kept,
 * identifier fields follow. Strings are shared with `from`. */
MUST_CHECK enum status schema_fresh(const struct schema *from, int32_t first_id, struct arena *a,
				    struct schema *ret_schema, struct err *err);
/* The id in `to` of the column that has this id in `from`, matched by full name: rebinds source ids
 * of specs and sort orders. false when either is missing. */
MUST_CHECK bool schema_remap(const struct schema *from, const struct schema *to, int32_t id,
			     int32_t *ret_id);

#endif
