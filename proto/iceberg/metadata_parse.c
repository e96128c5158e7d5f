/* A metadata document into a version. Everything is copied, so the text may go away; what is not
 * modelled is kept as text. The order of the checks follows the reference implementation's reader,
 * so that a broken file gives the message that its users know. */
#include "proto/base/jspan.h"
#include "proto/iceberg/metadata_int.h"

struct reader {
	const struct jspan *o; /* the document */
	struct metadata *m;
	enum status bad;
	struct arena a; /* the index and unescaped text, gone after the parse */
	struct err *err;
};

static const char *const known[] = {
	"format-version",
	"table-uuid",
	"location",
	"last-sequence-number",
	"last-updated-ms",
	"last-column-id",
	"schema",
	"current-schema-id",
	"schemas",
	"partition-spec",
	"default-spec-id",
	"partition-specs",
	"last-partition-id",
	"default-sort-order-id",
	"sort-orders",
	"properties",
	"current-snapshot-id",
	"next-row-id",
	"encryption-keys",
	"refs",
	"snapshots",
	"statistics",
	"partition-statistics",
	"snapshot-log",
	"metadata-log",
	NULL,
};

static enum status must_exist(struct reader *r, const char *key)
{
	return err_set(r->err, r->bad, key, "%s must exist in format v%d", key,
		       r->m->format_version);
}

static enum status read_head(struct reader *r)
{
	struct metadata *m = r->m;
	struct strv text;
	int32_t version = 0;
	bool has = false;
	enum status st = jspan_need_i32(r->o, "format-version", r->bad, &version, r->err);
	if (st != ST_OK)
		return st;
	if (version > METADATA_VERSION_MAX)
		return err_set(r->err, ST_UNSUPPORTED, "format-version",
			       "Cannot read unsupported version %d", (int)version);
	if (version < 1)
		return err_set(r->err, r->bad, "format-version",
			       "Cannot read unsupported version %d", (int)version);
	m->format_version = version;
	if ((st = jspan_opt_str(r->o, "table-uuid", r->bad, &r->a, &text, &m->has_uuid, r->err)) !=
	    ST_OK)
		return st;
	if (m->has_uuid && !uuid_parse(text, &m->uuid))
		return err_set(r->err, r->bad, "table-uuid", "table-uuid is not a UUID");
	if ((st = jspan_need_str(r->o, "location", r->bad, &r->a, &text, r->err)) != ST_OK)
		return st;
	if (!metadata_put_location(m, text))
		return metadata_limit(r->err);
	if (version >= 2 && (st = jspan_need_i64(r->o, "last-sequence-number", r->bad,
						 &m->last_sequence_number, r->err)) != ST_OK)
		return st;
	if ((st = jspan_need_i32(r->o, "last-column-id", r->bad, &m->last_column_id, r->err)) !=
	    ST_OK)
		return st;
	if (version >= 3 &&
	    (st = jspan_need_i64(r->o, "next-row-id", r->bad, &m->next_row_id, r->err)) != ST_OK)
		return st;
	if ((st = jspan_opt_i64(r->o, "current-snapshot-id", r->bad, &m->current_snapshot_id, &has,
				r->err)) != ST_OK)
		return st;
	if (m->current_snapshot_id == -1)
		m->current_snapshot_id = SNAPSHOT_NONE;
	return jspan_need_i64(r->o, "last-updated-ms", r->bad, &m->last_updated_ms, r->err);
}

enum list_kind { LIST_SCHEMA, LIST_SPEC, LIST_ORDER };

static enum status read_part(struct reader *r, enum list_kind kind, const struct jspan *v,
			     int32_t id, struct metapart_list *l)
{
	struct metapart *p = NULL;
	struct strv text = jspan_text(v);
	enum status st;
	if (kind == LIST_SCHEMA)
		st = metapart_schema(text, id, r->bad, &p, r->err);
	else if (kind == LIST_SPEC)
		st = metapart_spec(text, id, r->bad, &p, r->err);
	else
		st = metapart_order(text, id, r->bad, &p, r->err);
	if (st != ST_OK)
		return st;
	if (p->key < 0) {
		metapart_unref(p);
		return err_set(r->err, r->bad, "", "the id is missing or negative");
	}
	return metapart_list_add(l, p, &r->m->arena) ? ST_OK : metadata_limit(r->err);
}

/* Reads the list member `key` and the id beside it; *ret_has false when an old document has none.
 */
static enum status read_list(struct reader *r, enum list_kind kind, const char *key,
			     const char *id_key, struct metapart_list *l, int32_t *ret_id,
			     bool *ret_has)
{
	const struct jspan *list = NULL;
	enum status st = jspan_opt_array(r->o, key, r->bad, &list, r->err);
	*ret_has = list != NULL;
	if (st != ST_OK)
		return st;
	if (!list)
		return r->m->format_version > 1 ? must_exist(r, key) : ST_OK;
	size_t i = 0;
	JSPAN_EACH(v, list)
	{
		if ((st = read_part(r, kind, v, -1, l)) != ST_OK) {
			err_prefix(r->err, "%s[%zu]", key, i);
			return st;
		}
		i++;
	}
	return jspan_need_i32(r->o, id_key, r->bad, ret_id, r->err);
}

static enum status read_schemas(struct reader *r)
{
	struct metadata *m = r->m;
	bool has;
	enum status st = read_list(r, LIST_SCHEMA, "schemas", "current-schema-id", &m->schemas,
				   &m->current_schema_id, &has);
	if (st != ST_OK)
		return st;
	if (has)
		return metadata_schema(m) ? ST_OK
					  : err_set(r->err, r->bad, "current-schema-id",
						    "Cannot find schema with current-schema-id=%d "
						    "from schemas",
						    (int)m->current_schema_id);
	const struct jspan *v = jspan_get(r->o, "schema");
	if (jspan_is_null(v))
		return err_set(r->err, r->bad, "schema", "required field is missing: schema");
	const struct jspan *type = jspan_get(v, "type");
	if (!jspan_is(type, JSPAN_STRING) || !strv_eq(jspan_text(type), STRV("\"struct\"")))
		return err_set(r->err, r->bad, "schema.type", "Cannot parse type from json: %.*s",
			       STRV_ARG(strv_sub(jspan_text(v), 0, 100)));
	if ((st = read_part(r, LIST_SCHEMA, v, jspan_get(v, "schema-id") ? -1 : 0, &m->schemas)) !=
	    ST_OK) {
		err_prefix(r->err, "schema");
		return st;
	}
	m->current_schema_id = (int32_t)m->schemas.v[0]->key;
	return ST_OK;
}

static enum status read_specs(struct reader *r)
{
	struct metadata *m = r->m;
	bool has;
	enum status st = read_list(r, LIST_SPEC, "partition-specs", "default-spec-id", &m->specs,
				   &m->default_spec_id, &has);
	if (st != ST_OK)
		return st;
	if (!has) {
		const struct jspan *v = jspan_get(r->o, "partition-spec");
		if (!jspan_is(v, JSPAN_ARRAY))
			return err_set(r->err, r->bad, "partition-spec",
				       "required field is missing: partition-spec");
		if ((st = read_part(r, LIST_SPEC, v, 0, &m->specs)) != ST_OK) {
			err_prefix(r->err, "partition-spec");
			return st;
		}
		m->default_spec_id = 0;
	}
	st = jspan_opt_i32(r->o, "last-partition-id", r->bad, &m->last_partition_id, &has, r->err);
	if (st != ST_OK || has)
		return st;
	if (m->format_version > 1)
		return must_exist(r, "last-partition-id");
	for (size_t i = 0; i < m->specs.n; i++) {
		int32_t last = partition_last_id(&m->specs.v[i]->u.spec);
		if (last > m->last_partition_id)
			m->last_partition_id = last;
	}
	return ST_OK;
}

static enum status read_orders(struct reader *r)
{
	static const struct sort_order unsorted = {.order_id = SORT_UNSORTED_ID};
	struct metadata *m = r->m;
	struct metapart *p = NULL;
	bool has;
	enum status st = read_list(r, LIST_ORDER, "sort-orders", "default-sort-order-id",
				   &m->orders, &m->default_order_id, &has);
	if (st != ST_OK || has)
		return st;
	m->default_order_id = SORT_UNSORTED_ID;
	if ((st = metapart_order_copy(&unsorted, SORT_UNSORTED_ID, &p, r->err)) != ST_OK)
		return st;
	return metapart_list_add(&m->orders, p, &m->arena) ? ST_OK : metadata_limit(r->err);
}

static enum status read_properties(struct reader *r)
{
	const struct jspan *o = NULL;
	struct strv key, value;
	enum status st = jspan_opt_object(r->o, "properties", r->bad, &o, r->err);
	for (struct jspan_iter it = jspan_iter(o); st == ST_OK && jspan_next(&it);) {
		if (it.val->kind != JSPAN_STRING)
			return err_set(r->err, r->bad, "properties",
				       "property values must be strings");
		if (!jspan_str(it.key, &r->a, &key) || !jspan_str(it.val, &r->a, &value) ||
		    !metadata_put_property(r->m, key, value))
			return metadata_limit(r->err);
	}
	return st;
}

static enum status read_snapshots(struct reader *r)
{
	const struct jspan *list = NULL;
	enum status st = jspan_opt_array(r->o, "snapshots", r->bad, &list, r->err);
	size_t i = 0;
	if (st != ST_OK)
		return st;
	JSPAN_EACH(v, list)
	{
		struct snapshot s;
		struct metasnap *block = NULL;
		st = snapshot_parse(v, r->m->format_version, r->bad, &r->a, &s, r->err);
		if (st == ST_OK)
			st = metasnap_new(&s, &block, r->err);
		if (st == ST_OK && !metasnap_append(&r->m->snapshots, block, &r->m->arena))
			st = metadata_limit(r->err);
		if (st != ST_OK) {
			err_prefix(r->err, "snapshots[%zu]", i);
			return st;
		}
		i++;
	}
	return ST_OK;
}

/* Retention values are positive; 0 stands for "absent" in the struct. */
static enum status read_retention(struct reader *r, const struct jspan *v, const char *key,
				  int64_t max, int64_t *ret)
{
	bool has = false;
	int64_t n = 0;
	enum status st = jspan_opt_i64(v, key, r->bad, &n, &has, r->err);
	if (st == ST_OK && has && (n <= 0 || n > max))
		return err_set(r->err, r->bad, key, "%s must be greater than 0", key);
	*ret = n;
	return st;
}

static enum status read_ref(struct reader *r, struct strv name, const struct jspan *v)
{
	struct snapshot_ref ref = {.name = name};
	struct strv type;
	int64_t keep = 0;
	enum status st;
	if ((st = jspan_need_i64(v, "snapshot-id", r->bad, &ref.snapshot_id, r->err)) != ST_OK ||
	    (st = jspan_need_str(v, "type", r->bad, &r->a, &type, r->err)) != ST_OK ||
	    (st = read_retention(r, v, "min-snapshots-to-keep", INT32_MAX, &keep)) != ST_OK ||
	    (st = read_retention(r, v, "max-snapshot-age-ms", INT64_MAX,
				 &ref.max_snapshot_age_ms)) != ST_OK ||
	    (st = read_retention(r, v, "max-ref-age-ms", INT64_MAX, &ref.max_ref_age_ms)) != ST_OK)
		return st;
	ref.min_snapshots_to_keep = (int32_t)keep;
	ref.tag = strv_ieq(type, STRV("tag"));
	if (!ref.tag && !strv_ieq(type, STRV("branch")))
		return err_set(r->err, r->bad, "type", "Invalid snapshot ref type: %.*s",
			       STRV_ARG(strv_sub(type, 0, 64)));
	if ((st = snapshot_ref_check(&ref, r->bad, r->err)) != ST_OK)
		return st;
	return metadata_put_ref(r->m, &ref) ? ST_OK : metadata_limit(r->err);
}

static enum status read_refs(struct reader *r)
{
	struct metadata *m = r->m;
	const struct jspan *o = NULL;
	struct strv name;
	enum status st = jspan_opt_object(r->o, "refs", r->bad, &o, r->err);
	for (struct jspan_iter it = jspan_iter(o); st == ST_OK && jspan_next(&it);) {
		if (!jspan_str(it.key, &r->a, &name))
			return metadata_limit(r->err);
		st = read_ref(r, name, it.val);
		if (st != ST_OK)
			err_prefix(r->err, "refs");
	}
	if (st != ST_OK || m->current_snapshot_id == SNAPSHOT_NONE ||
	    metadata_ref_by_name(m, SNAPSHOT_REF_MAIN))
		return st;
	struct snapshot_ref main_ref = {.name = SNAPSHOT_REF_MAIN,
					.snapshot_id = m->current_snapshot_id};
	return metadata_put_ref(m, &main_ref) ? ST_OK : metadata_limit(r->err);
}

/* Statistics files and encryption keys stay text; only what must be there is looked at. */
static enum status read_text(struct reader *r, const struct jspan *v, const char *id_key,
			     const char *name_key, const char *const *strings,
			     const char *const *numbers, struct metapart_list *l)
{
	int64_t id = 0, n;
	struct strv name = {NULL, 0}, text;
	struct metapart *p = NULL;
	enum status st = ST_OK;
	if (id_key)
		st = jspan_need_i64(v, id_key, r->bad, &id, r->err);
	if (st == ST_OK && name_key)
		st = jspan_need_str(v, name_key, r->bad, &r->a, &name, r->err);
	for (; st == ST_OK && *strings; strings++)
		st = jspan_need_str(v, *strings, r->bad, &r->a, &text, r->err);
	for (; st == ST_OK && *numbers; numbers++)
		st = jspan_need_i64(v, *numbers, r->bad, &n, r->err);
	if (st != ST_OK)
		return st;
	struct buf b;
	buf_init(&b, v->n);
	jspan_compact(v, &b);
	st = metapart_text(buf_strv(&b), id, name, &p, r->err);
	buf_fini(&b);
	if (st == ST_OK && !metapart_list_add(l, p, &r->m->arena))
		st = metadata_limit(r->err);
	return st;
}

static enum status read_texts(struct reader *r, const char *key, const char *id_key,
			      const char *name_key, const char *const *strings,
			      const char *const *numbers, struct metapart_list *l)
{
	const struct jspan *list = NULL;
	size_t i = 0;
	enum status st = jspan_opt_array(r->o, key, r->bad, &list, r->err);
	if (st != ST_OK)
		return st;
	JSPAN_EACH(v, list)
	{
		if ((st = read_text(r, v, id_key, name_key, strings, numbers, l)) != ST_OK) {
			err_prefix(r->err, "%s[%zu]", key, i);
			return st;
		}
		i++;
	}
	return ST_OK;
}

static enum status read_side_files(struct reader *r)
{
	static const char *const none[] = {NULL};
	static const char *const sizes[] = {"file-size-in-bytes", "file-footer-size-in-bytes",
					    NULL};
	static const char *const size[] = {"file-size-in-bytes", NULL};
	static const char *const secret[] = {"encrypted-key-metadata", NULL};
	struct metadata *m = r->m;
	enum status st = read_texts(r, "statistics", "snapshot-id", "statistics-path", none,
				    sizes, &m->stats);
	if (st == ST_OK)
		st = read_texts(r, "partition-statistics", "snapshot-id", "statistics-path", none,
				size, &m->pstats);
	if (st == ST_OK)
		st = read_texts(r, "encryption-keys", NULL, "key-id", secret, none, &m->keys);
	return st;
}

static enum status read_logs(struct reader *r)
{
	const struct jspan *slog = NULL, *mlog = NULL;
	int64_t ts, id;
	struct strv file;
	enum status st;
	if ((st = jspan_opt_array(r->o, "snapshot-log", r->bad, &slog, r->err)) != ST_OK ||
	    (st = jspan_opt_array(r->o, "metadata-log", r->bad, &mlog, r->err)) != ST_OK)
		return st;
	JSPAN_EACH(v, slog)
	{
		if ((st = jspan_need_i64(v, "timestamp-ms", r->bad, &ts, r->err)) != ST_OK ||
		    (st = jspan_need_i64(v, "snapshot-id", r->bad, &id, r->err)) != ST_OK) {
			err_prefix(r->err, "snapshot-log");
			return st;
		}
		if (!metadata_put_slog(r->m, ts, id))
			return metadata_limit(r->err);
	}
	JSPAN_EACH(v, mlog)
	{
		if ((st = jspan_need_i64(v, "timestamp-ms", r->bad, &ts, r->err)) != ST_OK ||
		    (st = jspan_need_str(v, "metadata-file", r->bad, &r->a, &file, r->err)) !=
			    ST_OK) {
			err_prefix(r->err, "metadata-log");
			return st;
		}
		if (!metadata_put_mlog(r->m, ts, file))
			return metadata_limit(r->err);
	}
	return ST_OK;
}

static enum status read_all(struct reader *r)
{
	static enum status (*const steps[])(struct reader *) = {
		read_head,      read_schemas,    read_specs, read_orders, read_properties,
		read_snapshots, read_side_files, read_refs,  read_logs,
	};
	enum status st = ST_OK;
	if (!jspan_is(r->o, JSPAN_OBJECT))
		return err_set(r->err, r->bad, "", "Cannot parse metadata from a non-object");
	for (size_t i = 0; st == ST_OK && i < ARRAY_SIZE(steps); i++)
		st = steps[i](r);
	struct strv extra = {NULL, 0};
	if (st == ST_OK && (!jspan_extra(r->o, known, &r->a, &extra) ||
			    !arena_strv(&r->m->arena, extra, &r->m->extra)))
		st = metadata_limit(r->err);
	if (st == ST_OK)
		st = metadata_check(r->m, r->bad, r->err);
	return st == ST_OK ? metadata_check_lists(r->m, r->bad, r->err) : st;
}

enum status metadata_parse(struct bytes json, enum status bad, struct metadata **ret_m,
			   struct err *err)
{
	if (json.n > METADATA_MAX_BYTES)
		return metadata_limit(err);
	struct reader r = {.m = metadata_blank(), .bad = bad, .err = err};
	/* The index takes 24 bytes a value, up to four times that while it grows. */
	arena_init(&r.a, ((size_t)64 << 20) + 16 * json.n);
	enum status st = jspan_parse(json, bad, &r.a, &r.o, err);
	if (st == ST_OK)
		st = read_all(&r);
	arena_fini(&r.a);
	if (st == ST_OK)
		*ret_m = r.m;
	else
		metadata_unref(r.m);
	return st;
}
