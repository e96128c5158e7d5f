/* Partition specs (spec "Partitioning", Appendix C). Lives in the caller's arena. */
#ifndef PROTO_ICEBERG_PARTITION_H
#define PROTO_ICEBERG_PARTITION_H

#include "proto/iceberg/ids.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/transform.h"

#define PARTITION_NO_ID INT32_MIN /* spec-id or field-id that the JSON left out */
/* Names and ids are checked pair by pair; real specs have a handful of fields. */
#define PARTITION_MAX_FIELDS 1000

struct partition_field {
	int32_t source_id; /* the first of source_ids when there are some */
	int32_t field_id;  /* PARTITION_NO_ID until assigned */
	struct strv name;
	struct transform transform;
	int32_t *source_ids; /* NULL unless the JSON used "source-ids" */
	size_t n_source_ids;
	struct type_extra extra;
};

struct partition_spec {
	int32_t spec_id;
	struct partition_field *fields;
	size_t n;
	struct type_extra extra;
};

/* Parses {"spec-id", "fields"}. A missing spec-id is PARTITION_NO_ID; field ids are there for all
 * fields or for none. Field ids are unique. */
MUST_CHECK enum status partition_parse(const struct jval *v, enum status bad, struct arena *a,
				       struct partition_spec *ret_spec, struct err *err);
/* Parses only the array of fields, as format version 1 stores it in "partition-spec". */
MUST_CHECK enum status partition_parse_fields(const struct jval *array, enum status bad,
					      struct arena *a, struct partition_spec *ret_spec,
					      struct err *err);
void partition_write(struct jwrite *w, const struct partition_spec *spec);
void partition_write_fields(struct jwrite *w, const struct partition_spec *spec);

static inline bool partition_is_unpartitioned(const struct partition_spec *spec)
{
	for (size_t i = 0; i < spec->n; i++)
		if (spec->fields[i].transform.kind != TRANSFORM_VOID)
			return false;
	return true;
}
/* Same sources, transforms and names, position by position; ids ignored: such a spec is reused
 * instead of added. */
bool partition_compatible(const struct partition_spec *x, const struct partition_spec *y);
/* Compatible, and the field ids are equal too. */
bool partition_same(const struct partition_spec *x, const struct partition_spec *y);
/* Whether the spec may be added to a table with this current schema: sources, types, names and, in
 * format version 1, ids 1000, 1001, … ST_VALIDATION otherwise. */
MUST_CHECK enum status partition_check(const struct partition_spec *spec,
				       const struct schema *schema, int format_version,
				       struct err *err);
/* Whether a spec of the table still holds under another schema: sources exist and their types are
 * accepted. ST_VALIDATION otherwise. Names are not looked at. */
MUST_CHECK enum status partition_check_schema(const struct partition_spec *spec,
					      const struct schema *schema, struct err *err);
/* Fills in missing field ids: that of an equal (source, transform) among `specs` while not yet
 * taken in this spec, else the next above *io_last_id. Format version 1 numbers from 1000.
 * *io_last_id grows to the greatest id used. */
MUST_CHECK enum status partition_assign_ids(struct partition_spec *spec,
					    const struct partition_spec *const *specs,
					    size_t n_specs, int format_version, int32_t *io_last_id,
					    struct err *err);
/* Greatest field id, PARTITION_FIELD_ID_FIRST - 1 when there are no fields. */
/* ST_VALIDATION when a field has the id that another source or transform has in one of the specs: their
 * tuples are joined by these ids. */
MUST_CHECK enum status partition_check_reuse(const struct partition_spec *spec,
					     const struct partition_spec *const *specs,
					     size_t n_specs, struct err *err);
int32_t partition_last_id(const struct partition_spec *spec);
/* The struct type of partition tuples: one optional field per spec field, with the partition
 * field's id and name and the transform's result type. A dropped source column gives TYPE_UNKNOWN
 * where the type depends on it; readers of a manifest pass the schema stored in the manifest. */
MUST_CHECK enum status partition_type(const struct partition_spec *spec,
				      const struct schema *schema, struct arena *a,
				      struct field **ret_fields, struct err *err);
/* Appends "name=value/name=value" with both sides percent-encoded, as data paths and summaries have
 * it; types are those of partition_type. */
void partition_path(struct buf *b, const struct partition_spec *spec, const struct field *types,
		    const struct tuple *t);

#endif
