/* Updates of a table's shape: schemas, partition specs, sort orders. What is added is bound to the
 * schema that is current at that point of the request. */
#include "proto/iceberg/metadata_int.h"

#include <stdio.h>
#include <stdlib.h>

/* The id for a new entry: one above all others, `first` for the first. */
static enum status next_id(const struct metapart_list *l, int32_t first, int32_t *ret,
			   struct err *err)
{
	int64_t id = first;
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->key >= id)
			id = l->v[i]->key + 1;
	if (id > INT32_MAX)
		return err_set(err, ST_VALIDATION, "", "ids are used up");
	*ret = (int32_t)id;
	return ST_OK;
}

static enum status add(struct metadata_change *c, struct metapart_list *l, struct metapart *own_p)
{
	c->changed = true;
	return metapart_list_add(l, own_p, &c->m->arena) ? ST_OK : metadata_limit(c->err);
}

/* ---- schemas ---- */

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

/* Files of the current snapshot must stay readable under the new schema. A replaced table, whose
 * main branch was removed earlier in the request, has none: its columns keep their ids by name and
 * may take any type. A schema that the table had already may bring back a required column. */
static enum status check_evolution(struct metadata_change *c, const struct schema *to, bool added)
{
	const struct schema *from = metadata_schema(c->m);
	if (!from || c->m->current_snapshot_id == SNAPSHOT_NONE)
		return ST_OK;
	for (size_t i = 0; i < to->n_nodes; i++) {
		const struct schema_node *old = schema_find(from, to->nodes[i].id);
		enum status st = old ? check_column(c, old, &to->nodes[i]) : ST_OK;
		if (st == ST_OK && added)
			st = check_required(c, from, old, &to->nodes[i]);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

static enum status add_schema(struct metadata_change *c, const struct schema *s)
{
	struct metadata *m = c->m;
	struct metapart *p = NULL;
	int32_t id = 0;
	enum status st = schema_check_version(s, m->format_version, c->err);
	if (st != ST_OK)
		return st;
	if (s->highest_id > m->last_column_id) {
		m->last_column_id = s->highest_id;
		c->changed = true;
	}
	for (size_t i = 0; i < m->schemas.n; i++) {
		if (schema_same(&m->schemas.v[i]->u.schema, s)) {
			c->last_schema = (int32_t)m->schemas.v[i]->key;
			return ST_OK;
		}
	}
	if ((st = check_evolution(c, s, true)) != ST_OK ||
	    (st = next_id(&m->schemas, 0, &id, c->err)) != ST_OK ||
	    (st = metapart_schema_copy(s, id, &p, c->err)) != ST_OK)
		return st;
	c->last_schema = id;
	return add(c, &m->schemas, p);
}

static enum status set_schema(struct metadata_change *c, int32_t id)
{
	if (id == UPDATE_LAST_ADDED && (id = c->last_schema) < 0)
		return err_set(c->err, ST_VALIDATION, "schema-id",
			       "Cannot set last added schema: no schema has been added");
	if (!metadata_schema_by_id(c->m, id))
		return err_set(c->err, ST_VALIDATION, "schema-id",
			       "Cannot set current schema to unknown schema: %d", (int)id);
	enum status st = check_evolution(c, metadata_schema_by_id(c->m, id), false);
	if (st != ST_OK)
		return st;
	c->changed |= id != c->m->current_schema_id;
	c->m->current_schema_id = id;
	return ST_OK;
}

static enum status remove_schemas(struct metadata_change *c, const int32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = metapart_list_index(&c->m->schemas, ids[i]);
		if (ids[i] == c->m->current_schema_id)
			return err_set(c->err, ST_VALIDATION, "schema-ids",
				       "Cannot remove the current schema: %d", (int)ids[i]);
		if (at == c->m->schemas.n)
			continue;
		if (ids[i] == c->last_schema)
			c->last_schema = -1;
		metapart_list_remove(&c->m->schemas, at);
		c->changed = c->removed_schemas = true;
	}
	return ST_OK;
}

/* What a new spec or order is bound to. A client that creates a table may make its schema the
 * current one only at the end; the first schema, id 0, is the one that it will be. */
static const struct schema *bound_schema(const struct metadata *m)
{
	const struct schema *current = metadata_schema(m);
	return current ? current : metadata_schema_by_id(m, 0);
}

/* ---- partition specs ---- */

/* Ids of the fields: those of the request, else those of equal fields of other specs, else new. */
static enum status number_spec(struct metadata_change *c, struct partition_spec *s,
			       int32_t *ret_last)
{
	struct metadata *m = c->m;
	const struct partition_spec **specs = arena_calloc(&c->scratch, m->specs.n, sizeof *specs);
	struct partition_field *fields = arena_calloc(&c->scratch, s->n, sizeof *fields);
	if (!specs || !fields)
		return metadata_limit(c->err);
	for (size_t i = 0; i < m->specs.n; i++)
		specs[i] = &m->specs.v[i]->u.spec;
	if (s->n > 0)
		memcpy(fields, s->fields, s->n * sizeof *fields);
	s->fields = fields;
	return partition_assign_ids(s, specs, m->specs.n, m->format_version, ret_last, c->err);
}

static enum status add_spec(struct metadata_change *c, const struct partition_spec *spec)
{
	struct metadata *m = c->m;
	struct partition_spec own = *spec;
	struct metapart *p = NULL;
	int32_t last = m->last_partition_id, id = 0;
	const struct schema *schema = bound_schema(m);
	enum status st;
	if (!schema)
		return err_set(c->err, ST_VALIDATION, "spec",
			       "Cannot add a spec before a schema is set");
	for (size_t i = 0; i < m->specs.n; i++) {
		if (partition_compatible(&m->specs.v[i]->u.spec, spec)) {
			c->last_spec = (int32_t)m->specs.v[i]->key;
			return ST_OK;
		}
	}
	if ((st = number_spec(c, &own, &last)) != ST_OK ||
	    (st = partition_check(&own, schema, m->format_version, c->err)) != ST_OK ||
	    (st = next_id(&m->specs, 0, &id, c->err)) != ST_OK ||
	    (st = metapart_spec_copy(&own, id, &p, c->err)) != ST_OK)
		return st;
	if (last > m->last_partition_id)
		m->last_partition_id = last;
	c->last_spec = id;
	return add(c, &m->specs, p);
}

static enum status set_spec(struct metadata_change *c, int32_t id)
{
	if (id == UPDATE_LAST_ADDED && (id = c->last_spec) < 0)
		return err_set(c->err, ST_VALIDATION, "spec-id",
			       "Cannot set last added spec: no spec has been added");
	if (!metadata_spec_by_id(c->m, id))
		return err_set(c->err, ST_VALIDATION, "spec-id",
			       "Cannot set default partition spec to unknown spec: %d", (int)id);
	c->changed |= id != c->m->default_spec_id;
	c->m->default_spec_id = id;
	return ST_OK;
}

static enum status remove_specs(struct metadata_change *c, const int32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = metapart_list_index(&c->m->specs, ids[i]);
		if (ids[i] == c->m->default_spec_id)
			return err_set(c->err, ST_VALIDATION, "spec-ids",
				       "Cannot remove the default partition spec: %d", (int)ids[i]);
		if (at == c->m->specs.n)
			continue;
		if (ids[i] == c->last_spec)
			c->last_spec = -1;
		metapart_list_remove(&c->m->specs, at);
		c->changed = true;
	}
	return ST_OK;
}

/* ---- sort orders ---- */

static enum status add_order(struct metadata_change *c, const struct sort_order *order)
{
	struct metadata *m = c->m;
	struct metapart *p = NULL;
	int32_t id = SORT_UNSORTED_ID;
	const struct schema *schema = bound_schema(m);
	enum status st;
	if (!schema)
		return err_set(c->err, ST_VALIDATION, "sort-order",
			       "Cannot add a sort order before a schema is set");
	for (size_t i = 0; i < m->orders.n; i++) {
		if (sort_same(&m->orders.v[i]->u.order, order)) {
			c->last_order = (int32_t)m->orders.v[i]->key;
			return ST_OK;
		}
	}
	if ((st = sort_check(order, schema, c->err)) != ST_OK)
		return st;
	if (order->n > 0 && (st = next_id(&m->orders, SORT_UNSORTED_ID + 1, &id, c->err)) != ST_OK)
		return st;
	if (metadata_sort_order_by_id(m, id))
		return err_set(c->err, ST_VALIDATION, "sort-order",
			       "Sort order id 0 is reserved for the unsorted order");
	if ((st = metapart_order_copy(order, id, &p, c->err)) != ST_OK)
		return st;
	c->last_order = id;
	return add(c, &m->orders, p);
}

static enum status set_order(struct metadata_change *c, int32_t id)
{
	if (id == UPDATE_LAST_ADDED && (id = c->last_order) < 0)
		return err_set(c->err, ST_VALIDATION, "sort-order-id",
			       "Cannot set last added sort order: no sort order has been added");
	if (!metadata_sort_order_by_id(c->m, id))
		return err_set(c->err, ST_VALIDATION, "sort-order-id",
			       "Cannot set default sort order to unknown sort order: %d", (int)id);
	c->changed |= id != c->m->default_order_id;
	c->m->default_order_id = id;
	return ST_OK;
}

enum status metadata_shape(struct metadata_change *c, const struct update *u)
{
	switch (u->kind) {
	case UPDATE_ADD_SCHEMA:
		return add_schema(c, u->u.schema);
	case UPDATE_SET_CURRENT_SCHEMA:
		return set_schema(c, u->u.id);
	case UPDATE_REMOVE_SCHEMAS:
		return remove_schemas(c, u->u.ids.v, u->u.ids.n);
	case UPDATE_ADD_SPEC:
		return add_spec(c, u->u.spec);
	case UPDATE_SET_DEFAULT_SPEC:
		return set_spec(c, u->u.id);
	case UPDATE_REMOVE_SPECS:
		return remove_specs(c, u->u.ids.v, u->u.ids.n);
	case UPDATE_ADD_SORT_ORDER:
		return add_order(c, u->u.order);
	case UPDATE_SET_DEFAULT_SORT_ORDER:
		return set_order(c, u->u.id);
	default:
		ASSERT(false);
		return ST_INTERNAL;
	}
}
