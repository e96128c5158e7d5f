/* Updates of a table's shape: schemas, partition specs, sort orders. What is added is bound to the
 * schema that is current at that point of the request. */
#include "proto/iceberg/metadata_int.h"

/* The id for a new entry: one above all others and those that went in this request, `first` for the
 * first. */
static enum status next_id(const struct metapart_list *l, int32_t first, int64_t gone, int32_t *ret,
			   struct err *err)
{
	int64_t id = gone >= first ? gone + 1 : first;
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

static enum status add_schema(struct metadata_change *c, const struct schema *s)
{
	struct metadata *m = c->m;
	struct metapart *p = NULL;
	int32_t id = 0, last = m->last_column_id;
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
	if ((st = metadata_check_evolution(c, s, last, true)) != ST_OK ||
	    (st = next_id(&m->schemas, 0, c->gone_schema, &id, c->err)) != ST_OK ||
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
	enum status st = metadata_check_evolution(c, metadata_schema_by_id(c->m, id),
						 c->m->last_column_id, false);
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
		if (ids[i] > c->gone_schema)
			c->gone_schema = ids[i];
		c->changed = true;
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
	enum status st = partition_assign_ids(s, specs, m->specs.n, m->format_version, ret_last,
					      c->err);
	/* Version 1 prescribes the ids by place. */
	return st == ST_OK && m->format_version >= 2
		       ? partition_check_reuse(s, specs, m->specs.n, c->err)
		       : st;
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
	    (st = next_id(&m->specs, 0, c->gone_spec, &id, c->err)) != ST_OK ||
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
		if (ids[i] > c->gone_spec)
			c->gone_spec = ids[i];
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
	if (order->n > 0 &&
	    (st = next_id(&m->orders, SORT_UNSORTED_ID + 1, -1, &id, c->err)) != ST_OK)
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
