/* What may become of columns. The reference server takes any finished schema; here the files of the
 * current snapshot must stay readable under it, and an id names one column for ever (spec "Schema
 * Evolution", "Default values"). */
#include <stdio.h>
#include <stdlib.h>

#include "proto/iceberg/metadata_int.h"

/* A date that feeds a partition may only become a timestamp when the partition value stays. */
static bool date_partition_changes(const struct metadata *m, int32_t id)
{
	for (size_t i = 0; i < m->specs.n; i++) {
		const struct partition_spec *spec = &m->specs.v[i]->u.spec;
		for (size_t k = 0; k < spec->n; k++) {
			enum transform_kind t = spec->fields[k].transform.kind;
			if (spec->fields[k].source_id == id && t != TRANSFORM_YEAR &&
			    t != TRANSFORM_MONTH && t != TRANSFORM_DAY && t != TRANSFORM_VOID)
				return true;
		}
	}
	return false;
}

/* Whether a default, in canonical JSON, stayed the same value when its column was promoted. Numbers
 * keep their text; a float that was rounded may be written out as the double that it is. */
static bool same_default(const struct schema_node *from, const struct schema_node *to)
{
	struct strv x = from->field->initial_default, y = to->field->initial_default;
	const char *more =
		to->type->kind == TYPE_TIMESTAMP ? "T00:00:00.000000\"" : "T00:00:00.000000000\"";
	if (!x.p != !y.p)
		return false;
	if (!x.p || strv_eq(x, y))
		return true;
	if (from->type->kind == TYPE_DATE && to->type->kind != TYPE_DATE) {
		x.n--; /* the quote */
		return strv_starts(y, x) && strv_eq(strv_sub(y, x.n, y.n), strv_of(more));
	}
	char narrow[64], wide[64];
	if (from->type->kind != TYPE_FLOAT || to->type->kind != TYPE_DOUBLE ||
	    x.n >= sizeof narrow || y.n >= sizeof wide)
		return false;
	snprintf(narrow, sizeof narrow, "%.*s", STRV_ARG(x));
	snprintf(wide, sizeof wide, "%.*s", STRV_ARG(y));
	return (double)strtof(narrow, NULL) == strtod(wide, NULL);
}

static enum status refuse_column(struct metadata_change *c, const struct schema_node *to,
				 const char *why)
{
	return err_set(c->err, ST_VALIDATION, "schema.fields", "%s %.*s", why,
		       STRV_ARG(strv_sub(to->full_name, 0, 64)));
}

static enum status check_column(struct metadata_change *c, const struct schema_node *from,
				const struct schema_node *to)
{
	bool date = from->type->kind == TYPE_DATE && to->type->kind != TYPE_DATE;
	bool ok = type_is_nested(from->type) ||
				  (type_is_nested(to->type) && from->type->kind != TYPE_UNKNOWN)
			  ? from->type->kind == to->type->kind
			  : type_promotes(from->type, to->type, c->m->format_version);
	if (!ok || (date && date_partition_changes(c->m, to->id)))
		return err_set(c->err, ST_VALIDATION, "schema.fields",
			       "Cannot change column type: %.*s: %s -> %s",
			       STRV_ARG(strv_sub(to->full_name, 0, 64)), type_name(from->type).z,
			       type_name(to->type).z);
	if (from->field && to->field && !same_default(from, to))
		return refuse_column(c, to, "Cannot change the initial default of column");
	return ST_OK;
}

/* A required column whose values old rows have: they held it all along, or its default fills them
 * (spec "Default values"). New fields of a new struct, or of one that was unknown, are absent
 * with it. */
static enum status check_required(struct metadata_change *c, const struct schema *from,
				  const struct schema_node *old, const struct schema_node *to)
{
	if (!to->required || (old && old->required))
		return ST_OK;
	if (old)
		return refuse_column(c, to,
				     "Cannot change column nullability: optional -> required:");
	bool fills = to->field && to->field->initial_default.p && to->field->write_default.p;
	const struct schema_node *above = to->parent ? schema_find(from, to->parent->id) : NULL;
	if (fills || (to->parent && (!above || !type_is_nested(above->type))))
		return ST_OK;
	return refuse_column(
		c, to, "Incompatible change: cannot add required column without a default value:");
}

/* The column of this id in the newest schema that has it. */
static const struct schema_node *known_column(const struct metadata *m, int32_t id)
{
	const struct schema_node *found = NULL;
	int64_t newest = -1;
	for (size_t i = 0; i < m->schemas.n; i++) {
		const struct schema_node *n = schema_find(&m->schemas.v[i]->u.schema, id);
		if (n && m->schemas.v[i]->key > newest) {
			newest = m->schemas.v[i]->key;
			found = n;
		}
	}
	return found;
}

static bool same_place(const struct schema_node *x, const struct schema_node *y)
{
	return (x->parent ? x->parent->id : 0) == (y->parent ? y->parent->id : 0);
}

/* A column that the current schema has not: new, or one that was dropped and comes back as it was. Data
 * files know columns by nothing but their ids. */
static enum status check_id(struct metadata_change *c, const struct schema_node *to, int32_t last)
{
	if (to->id > last)
		return ST_OK;
	const struct schema_node *was = known_column(c->m, to->id);
	if (!was)
		return err_set(c->err, ST_VALIDATION, "schema.fields",
			       "Cannot reuse field id %d for %.*s: new columns begin at %d",
			       (int)to->id, STRV_ARG(strv_sub(to->full_name, 0, 64)),
			       (int)last + 1);
	if (!same_place(was, to))
		return refuse_column(c, to, "Cannot move to another parent the field id of column");
	return check_column(c, was, to);
}

/* A replaced table, whose main branch was removed earlier in the request, has no current snapshot:
 * its columns keep their ids by name and may take any type. A schema that the table had already may
 * bring back a required column. */
enum status metadata_check_evolution(struct metadata_change *c, const struct schema *to,
				     int32_t last, bool added)
{
	const struct schema *from = metadata_schema(c->m);
	bool data = c->m->current_snapshot_id != SNAPSHOT_NONE;
	enum status st = ST_OK;
	if (!from || !c->base)
		return ST_OK;
	for (size_t i = 0; i < to->n_nodes && st == ST_OK; i++) {
		const struct schema_node *old = schema_find(from, to->nodes[i].id);
		if (!old)
			st = added ? check_id(c, &to->nodes[i], last) : ST_OK;
		else if (!same_place(old, &to->nodes[i]))
			st = refuse_column(c, &to->nodes[i], "Cannot move to another parent column");
		else if (data)
			st = check_column(c, old, &to->nodes[i]);
		if (st == ST_OK && added && data)
			st = check_required(c, from, old, &to->nodes[i]);
	}
	return st;
}
