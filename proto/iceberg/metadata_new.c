/* A new table from a create request: ids are assigned anew, references between schema, spec and
 * order follow by column name, and the rest is a series of updates on an empty table. */
#include <stdio.h>

#include "proto/iceberg/metadata_int.h"

#define METRICS_COLUMN STRV("write.metadata.metrics.column.")

static enum status limit(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the request exceeds the memory limit");
}

static struct strv find(const struct metadata_create *c, struct strv key)
{
	for (size_t i = 0; i < c->n_properties; i++)
		if (strv_eq(c->properties[i].key, key))
			return c->properties[i].value;
	return (struct strv){NULL, 0};
}

static enum status read_version(const struct metadata_create *c, int32_t *ret, struct err *err)
{
	struct strv text = find(c, STRV("format-version"));
	int64_t v = METADATA_VERSION_DEFAULT;
	if (text.p && !strv_i64(text, &v))
		return err_set(err, ST_BAD_REQUEST, "properties",
			       "Property format-version must be an integer: %.*s",
			       STRV_ARG(strv_sub(text, 0, 32)));
	if (v < 1 || v > METADATA_VERSION_MAX)
		return err_set(err, ST_BAD_REQUEST, "properties",
			       "Unsupported format version: v%lld (supported: v%d)", (long long)v,
			       METADATA_VERSION_MAX);
	*ret = (int32_t)v;
	return ST_OK;
}

/* Properties that the table could not live with; looked at on create only. */
static enum status check_properties(const struct metadata_create *c, int32_t version,
				    struct err *err)
{
	static const char *const retry[] = {"commit.retry.num-retries", "commit.retry.min-wait-ms",
					    "commit.retry.max-wait-ms",
					    "commit.retry.total-timeout-ms"};
	int64_t n;
	for (size_t i = 0; i < ARRAY_SIZE(retry); i++) {
		struct strv v = find(c, strv_of(retry[i]));
		if (v.p && (!strv_i64(v, &n) || n < 0 || n > INT32_MAX))
			return err_set(err, ST_VALIDATION, "properties",
				       "Table property %s must have non negative integer value",
				       retry[i]);
	}
	for (size_t i = 0; i < c->n_properties; i++) {
		struct strv key = c->properties[i].key;
		if (!strv_starts(key, METRICS_COLUMN))
			continue;
		struct strv column = strv_sub(key, METRICS_COLUMN.n, key.n);
		if (!schema_find_name(c->schema, column))
			return err_set(
				err, ST_VALIDATION, "properties",
				"Invalid metrics config, could not find column %.*s in the schema",
				STRV_ARG(strv_sub(column, 0, 64)));
	}
	if (version < 3 && find(c, STRV("encryption.key-id")).p)
		return err_set(err, ST_VALIDATION, "properties",
			       "Encryption is not supported until v3");
	return ST_OK;
}

static enum status make_properties(const struct metadata_create *c, struct arena *a,
				   struct update *u, struct err *err)
{
	const struct strv codec = STRV("write.parquet.compression-codec");
	struct strv_pair *kv = arena_calloc(a, c->n_properties + 1, sizeof *kv);
	size_t n = 0;
	if (!kv)
		return limit(err);
	for (size_t i = 0; i < c->n_properties; i++)
		if (!metadata_property_reserved(c->properties[i].key))
			kv[n++] = c->properties[i];
	if (!find(c, codec).p)
		kv[n++] = (struct strv_pair){codec, STRV("zstd")};
	*u = (struct update){.kind = UPDATE_SET_PROPERTIES, .u.properties = {kv, n}};
	return ST_OK;
}

/* Source ids of one field in terms of the fresh schema. */
static enum status remap(const struct schema *from, const struct schema *to, struct arena *a,
			 int32_t *source_id, int32_t **source_ids, size_t n, const char *field,
			 struct err *err)
{
	int32_t *ids = NULL, one = *source_id;
	if (n > 0 && !(ids = arena_calloc(a, n, sizeof *ids)))
		return limit(err);
	for (size_t i = 0; i < n; i++)
		if (!schema_remap(from, to, (*source_ids)[i], &ids[i]))
			return err_set(err, ST_VALIDATION, field, "Cannot find source column: %d",
				       (int)(*source_ids)[i]);
	if (n == 0 && !schema_remap(from, to, one, source_id))
		return err_set(err, ST_VALIDATION, field, "Cannot find source column: %d",
			       (int)one);
	if (n > 0) {
		*source_ids = ids;
		*source_id = ids[0];
	}
	return ST_OK;
}

static enum status make_spec(const struct metadata_create *c, const struct schema *fresh,
			     struct arena *a, struct partition_spec *ret, struct err *err)
{
	*ret = (struct partition_spec){.spec_id = 0};
	if (!c->spec)
		return ST_OK;
	ret->n = c->spec->n;
	ret->fields = arena_calloc(a, ret->n, sizeof *ret->fields);
	if (!ret->fields)
		return limit(err);
	for (size_t i = 0; i < ret->n; i++) {
		struct partition_field f = c->spec->fields[i];
		f.field_id = PARTITION_NO_ID;
		enum status st = remap(c->schema, fresh, a, &f.source_id, &f.source_ids,
				       f.n_source_ids, "partition-spec", err);
		if (st != ST_OK)
			return st;
		ret->fields[i] = f;
	}
	return ST_OK;
}

static enum status make_order(const struct metadata_create *c, const struct schema *fresh,
			      struct arena *a, struct sort_order *ret, struct err *err)
{
	*ret = (struct sort_order){.order_id = SORT_UNSORTED_ID};
	if (!c->order)
		return ST_OK;
	ret->n = c->order->n;
	ret->fields = arena_calloc(a, ret->n, sizeof *ret->fields);
	if (!ret->fields)
		return limit(err);
	for (size_t i = 0; i < ret->n; i++) {
		struct sort_field f = c->order->fields[i];
		enum status st = remap(c->schema, fresh, a, &f.source_id, &f.source_ids,
				       f.n_source_ids, "write-order", err);
		if (st != ST_OK)
			return st;
		ret->fields[i] = f;
	}
	return ST_OK;
}

static enum status make(const struct metadata_create *c, struct arena *a, struct metadata **ret_m,
			struct err *err)
{
	struct schema fresh;
	struct partition_spec spec;
	struct sort_order order;
	struct update u[9];
	int32_t version = 0;
	bool changed;
	enum status st;
	if ((st = read_version(c, &version, err)) != ST_OK ||
	    (st = check_properties(c, version, err)) != ST_OK ||
	    (st = schema_fresh(c->schema, 1, a, &fresh, err)) != ST_OK ||
	    (st = make_spec(c, &fresh, a, &spec, err)) != ST_OK ||
	    (st = make_order(c, &fresh, a, &order, err)) != ST_OK ||
	    (st = make_properties(c, a, &u[8], err)) != ST_OK)
		return st;
	u[0] = (struct update){.kind = UPDATE_UPGRADE_FORMAT_VERSION, .u.format_version = version};
	u[1] = (struct update){.kind = UPDATE_ADD_SCHEMA, .u.schema = &fresh};
	u[2] = (struct update){.kind = UPDATE_SET_CURRENT_SCHEMA, .u.id = UPDATE_LAST_ADDED};
	u[3] = (struct update){.kind = UPDATE_ADD_SPEC, .u.spec = &spec};
	u[4] = (struct update){.kind = UPDATE_SET_DEFAULT_SPEC, .u.id = UPDATE_LAST_ADDED};
	u[5] = (struct update){.kind = UPDATE_ADD_SORT_ORDER, .u.order = &order};
	u[6] = (struct update){.kind = UPDATE_SET_DEFAULT_SORT_ORDER, .u.id = UPDATE_LAST_ADDED};
	u[7] = (struct update){.kind = UPDATE_SET_LOCATION, .u.text = c->location};
	struct metadata_ctx ctx = {.now_ms = c->now_ms, .new_uuid = c->uuid};
	st = metadata_apply(NULL, u, ARRAY_SIZE(u), &ctx, ret_m, &changed, err);
	/* The client sent no list of updates: the path would name our own. */
	if (st != ST_OK && err && strv_starts(strv_of(err->field), STRV("updates["))) {
		const char *key = strstr(err->field, "].write.");
		char kept[sizeof err->field] = "";
		if (key)
			snprintf(kept, sizeof kept, "properties.%s", key + 2);
		memcpy(err->field, kept, sizeof kept);
	}
	return st;
}

enum status metadata_new(const struct metadata_create *c, struct metadata **ret_m, struct err *err)
{
	struct arena a;
	arena_init(&a, (size_t)64 << 20);
	enum status st = make(c, &a, ret_m, err);
	arena_fini(&a);
	return st;
}
