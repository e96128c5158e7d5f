#include "proto/iceberg/view.h"

#include "proto/base/gzip.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/view_int.h"

enum status view_full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the view is larger than this server's limit");
}

enum status view_bounded(const struct jval *v, const char *field, struct err *err)
{
	if (jval_count(v) <= VIEW_MAX_ENTRIES)
		return ST_OK;
	return err_set(err, ST_LIMIT, field, "more than %zu entries", VIEW_MAX_ENTRIES);
}

enum status view_new(struct view **ret_v)
{
	struct view *v = base_calloc(1, sizeof *v);
	arena_init(&v->arena, VIEW_ARENA_BYTES);
	*ret_v = v;
	return ST_OK;
}

void view_free(struct view *own_v)
{
	if (!own_v)
		return;
	arena_fini(&own_v->arena);
	base_free(own_v);
}

static const struct jval *member(const struct jval *o, const char *key)
{
	const struct jval *v = jval_get(o, key);
	return jval_is_null(v) ? NULL : v;
}

/* ------------------------------------------------------------------ reading */

enum status view_pairs(const struct jval *object, const char *field, enum status bad,
		       struct arena *a, const struct strv_pair **ret_v, size_t *ret_n,
		       struct err *err)
{
	size_t n = jval_count(object), i = 0;
	if (!jval_is_null(object) && !jval_is_object(object))
		return err_set(err, bad, field, "must be an object of text values");
	enum status st = view_bounded(object, field, err);
	if (st != ST_OK)
		return st;
	struct strv_pair *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return view_full(err);
	if (n)
		for (struct jval_iter it = jval_iter(object); jval_next(&it); i++) {
			struct strv value;
			if (!jval_as_str(it.val, &value))
				return err_set(err, bad, field, "the value of %.*s must be text",
					       STRV_ARG(strv_sub(it.key, 0, 64)));
			if (!arena_strv(a, it.key, &v[i].key) ||
			    !arena_strv(a, value, &v[i].value))
				return view_full(err);
		}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

static enum status texts(const struct jval *o, const char *key, enum status bad, struct arena *a,
			 const struct strv **ret_v, size_t *ret_n, struct err *err)
{
	const struct jval *array;
	enum status st = jval_need_array(o, key, bad, &array, err);
	if (st == ST_OK)
		st = view_bounded(array, key, err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(array);
	struct strv *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return view_full(err);
	for (size_t i = 0; i < n; i++) {
		struct strv s;
		if (!jval_as_str(jval_at(array, i), &s))
			return err_set(err, bad, key, "must be texts");
		if (!arena_strv(a, s, &v[i]))
			return view_full(err);
	}
	*ret_v = v;
	*ret_n = n;
	return ST_OK;
}

static bool dump(const struct jval *v, struct arena *a, struct strv *ret_json)
{
	struct buf b;
	buf_init(&b, VIEW_MAX_BYTES);
	jval_dump(&b, v);
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_json);
	buf_fini(&b);
	return ok;
}

/* Members whose names are not among the known ones, so that they survive a rewriting. */
static bool keep_extra(const struct jval *o, const char *const *known, size_t n, struct arena *a,
		       struct strv *ret_extra)
{
	struct buf b;
	buf_init(&b, VIEW_MAX_BYTES);
	for (struct jval_iter it = jval_iter(o); jval_next(&it);) {
		size_t i = 0;
		while (i < n && !strv_eq(it.key, strv_of(known[i])))
			i++;
		if (i < n)
			continue;
		buf_putc(&b, ',');
		jwrite_quote(&b, it.key);
		buf_putc(&b, ':');
		jval_dump(&b, it.val);
	}
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_extra);
	buf_fini(&b);
	return ok;
}

static enum status representations(const struct jval *o, enum status bad, struct arena *a,
				   struct view_version *v, struct err *err)
{
	const struct jval *array;
	enum status st = jval_need_array(o, "representations", bad, &array, err);
	if (st == ST_OK)
		st = view_bounded(array, "representations", err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(array);
	struct strv *json = arena_calloc(a, n ? n : 1, sizeof *json);
	struct strv *dialects = arena_calloc(a, n ? n : 1, sizeof *dialects);
	if (!json || !dialects)
		return view_full(err);
	for (size_t i = 0; i < n; i++) {
		const struct jval *r = jval_at(array, i);
		struct strv type, sql;
		if (!jval_is_object(r))
			return err_set(err, bad, "representations", "must be objects");
		st = jval_need_str(r, "type", bad, &type, err);
		if (st == ST_OK && strv_ieq(type, STRV("sql"))) {
			st = jval_need_str(r, "sql", bad, &sql, err);
			if (st == ST_OK)
				st = jval_need_str(r, "dialect", bad, &dialects[i], err);
			if (st == ST_OK && !arena_strv(a, dialects[i], &dialects[i]))
				return view_full(err);
		}
		if (st != ST_OK) {
			err_prefix(err, "representations[%zu]", i);
			return st;
		}
		for (size_t k = 0; k < i && dialects[i].p; k++)
			if (dialects[k].p && strv_ieq(dialects[k], dialects[i]))
				return err_set(err, bad == ST_CORRUPT ? bad : ST_ILLEGAL_ARGUMENT,
					       "",
					       "Invalid view version: Cannot add multiple queries "
					       "for dialect %.*s",
					       STRV_ARG(strv_sub(dialects[i], 0, 64)));
		if (!dump(r, a, &json[i]))
			return view_full(err);
	}
	v->representations = json;
	v->dialects = dialects;
	v->n_representations = n;
	return ST_OK;
}

enum status view_version_read(const struct jval *o, enum status bad, struct arena *a,
			      struct view_version *ret_v, struct err *err)
{
	static const char *const known[] = {
		"version-id",      "timestamp-ms",      "schema-id",      "summary",
		"default-catalog", "default-namespace", "representations"};
	struct view_version v = {0};
	bool has = false;
	if (!jval_is_object(o))
		return err_set(err, bad, "", "must be an object");
	enum status st = jval_need_i32(o, "version-id", bad, &v.id, err);
	if (st == ST_OK)
		st = jval_need_i64(o, "timestamp-ms", bad, &v.timestamp_ms, err);
	if (st == ST_OK)
		st = jval_need_i32(o, "schema-id", bad, &v.schema_id, err);
	if (st == ST_OK)
		st = view_pairs(jval_get(o, "summary"), "summary", bad, a, &v.summary,
				&v.n_summary, err);
	if (st == ST_OK)
		st = jval_opt_str(o, "default-catalog", bad, &v.default_catalog, &has, err);
	if (st == ST_OK && has && !arena_strv(a, v.default_catalog, &v.default_catalog))
		st = view_full(err);
	if (st == ST_OK)
		st = texts(o, "default-namespace", bad, a, &v.default_namespace,
			   &v.n_default_namespace, err);
	if (st == ST_OK)
		st = representations(o, bad, a, &v, err);
	if (st == ST_OK && !keep_extra(o, known, ARRAY_SIZE(known), a, &v.extra))
		st = view_full(err);
	if (st == ST_OK)
		*ret_v = v;
	return st;
}

enum status view_schema_read(const struct jval *o, enum status bad, struct arena *a,
			     struct schema **ret_s, struct err *err)
{
	struct schema *s = arena_calloc(a, 1, sizeof *s);
	if (!s)
		return view_full(err);
	if (!jval_is_object(o))
		return err_set(err, bad, "schema", "must be an object");
	enum status st = schema_parse(o, bad, a, s, err);
	if (st == ST_OK)
		*ret_s = s;
	return st;
}

const struct view_version *view_version_by_id(const struct view *v, int32_t id)
{
	for (size_t i = 0; i < v->n_versions; i++)
		if (v->versions[i]->id == id)
			return v->versions[i];
	return NULL;
}

const struct schema *view_schema_by_id(const struct view *v, int32_t id)
{
	for (size_t i = 0; i < v->n_schemas; i++)
		if (v->schemas[i]->schema_id == id)
			return v->schemas[i];
	return NULL;
}

enum status view_check(const struct view *v, enum status bad, struct err *err)
{
	if (!v->location.n)
		return err_set(err, bad, "location", "Invalid location: empty");
	if (!v->n_versions)
		return err_set(err, bad, "versions", "Invalid view: no versions were added");
	for (size_t i = 0; i < v->n_versions; i++) {
		const struct view_version *x = v->versions[i];
		if (view_version_by_id(v, x->id) != x)
			return err_set(err, bad, "versions", "version %d stands twice", x->id);
		if (!view_schema_by_id(v, x->schema_id))
			return err_set(err, bad, "versions", "Cannot find schema with id %d",
				       x->schema_id);
	}
	for (size_t i = 0; i < v->n_schemas; i++)
		if (view_schema_by_id(v, v->schemas[i]->schema_id) != v->schemas[i])
			return err_set(err, bad, "schemas", "schema %d stands twice",
				       v->schemas[i]->schema_id);
	if (!view_version_by_id(v, v->current_version_id))
		return err_set(err, bad, "current-version-id",
			       "Cannot find current version %d in view versions",
			       v->current_version_id);
	return ST_OK;
}

static enum status read_schemas(const struct jval *o, struct view *v, struct err *err)
{
	const struct jval *array;
	enum status st = jval_need_array(o, "schemas", ST_CORRUPT, &array, err);
	if (st == ST_OK)
		st = view_bounded(array, "schemas", err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(array);
	const struct schema **s = arena_calloc(&v->arena, n ? n : 1, sizeof(struct schema *));
	if (!s)
		return view_full(err);
	for (size_t i = 0; i < n; i++) {
		struct schema *one;
		st = view_schema_read(jval_at(array, i), ST_CORRUPT, &v->arena, &one, err);
		if (st == ST_OK && one->schema_id == SCHEMA_ID_NONE)
			st = err_set(err, ST_CORRUPT, "schema-id", "is missing");
		if (st != ST_OK) {
			err_prefix(err, "schemas[%zu]", i);
			return st;
		}
		s[i] = one;
	}
	v->schemas = s;
	v->n_schemas = n;
	return ST_OK;
}

static enum status read_versions(const struct jval *o, struct view *v, struct err *err)
{
	const struct jval *array;
	enum status st = jval_need_array(o, "versions", ST_CORRUPT, &array, err);
	if (st == ST_OK)
		st = view_bounded(array, "versions", err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(array);
	struct view_version *x = arena_calloc(&v->arena, n ? n : 1, sizeof *x);
	const struct view_version **all =
		arena_calloc(&v->arena, n ? n : 1, sizeof(struct view_version *));
	if (!x || !all)
		return view_full(err);
	for (size_t i = 0; i < n; i++) {
		st = view_version_read(jval_at(array, i), ST_CORRUPT, &v->arena, &x[i], err);
		if (st != ST_OK) {
			err_prefix(err, "versions[%zu]", i);
			return st;
		}
		all[i] = &x[i];
	}
	v->versions = all;
	v->n_versions = n;
	return ST_OK;
}

static enum status read_log(const struct jval *o, struct view *v, struct err *err)
{
	const struct jval *array;
	enum status st = jval_need_array(o, "version-log", ST_CORRUPT, &array, err);
	if (st == ST_OK)
		st = view_bounded(array, "version-log", err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(array);
	struct view_log_entry *log = arena_calloc(&v->arena, n ? n : 1, sizeof *log);
	if (!log)
		return view_full(err);
	for (size_t i = 0; i < n && st == ST_OK; i++) {
		const struct jval *e = jval_at(array, i);
		st = jval_need_i64(e, "timestamp-ms", ST_CORRUPT, &log[i].timestamp_ms, err);
		if (st == ST_OK)
			st = jval_need_i32(e, "version-id", ST_CORRUPT, &log[i].version_id, err);
		if (st != ST_OK)
			err_prefix(err, "version-log[%zu]", i);
	}
	v->log = log;
	v->n_log = n;
	return st;
}

static enum status read_view(const struct jval *o, struct view *v, struct err *err)
{
	static const char *const known[] = {
		"view-uuid", "format-version",     "location", "properties",
		"schemas",   "current-version-id", "versions", "version-log"};
	struct strv uuid;
	int32_t version;
	if (!jval_is_object(o))
		return err_set(err, ST_CORRUPT, "", "view metadata must be an object");
	enum status st = jval_need_i32(o, "format-version", ST_CORRUPT, &version, err);
	if (st == ST_OK && version != 1)
		st = err_set(err, version > 1 ? ST_UNSUPPORTED : ST_CORRUPT, "format-version",
			     "view format version %d is not supported", version);
	if (st == ST_OK)
		st = jval_need_str(o, "view-uuid", ST_CORRUPT, &uuid, err);
	if (st == ST_OK && !uuid_parse(uuid, &v->uuid))
		st = err_set(err, ST_CORRUPT, "view-uuid", "is not a UUID");
	if (st == ST_OK)
		st = jval_need_str(o, "location", ST_CORRUPT, &v->location, err);
	if (st == ST_OK && !arena_strv(&v->arena, v->location, &v->location))
		st = view_full(err);
	if (st == ST_OK)
		st = view_pairs(member(o, "properties"), "properties", ST_CORRUPT, &v->arena,
				&v->properties, &v->n_properties, err);
	if (st == ST_OK)
		st = read_schemas(o, v, err);
	if (st == ST_OK)
		st = jval_need_i32(o, "current-version-id", ST_CORRUPT, &v->current_version_id,
				   err);
	if (st == ST_OK)
		st = read_versions(o, v, err);
	if (st == ST_OK)
		st = read_log(o, v, err);
	if (st == ST_OK && !keep_extra(o, known, ARRAY_SIZE(known), &v->arena, &v->extra))
		st = view_full(err);
	return st == ST_OK ? view_check(v, ST_CORRUPT, err) : st;
}

enum status view_read(struct bytes file, bool gzip, struct view **ret_v, struct err *err)
{
	struct jdoc *doc = NULL;
	struct buf plain;
	struct view *v;
	enum status st = ST_OK;
	buf_init(&plain, VIEW_MAX_BYTES);
	if (gzip)
		st = gzip_read(file, &plain, err);
	if (st == ST_OK)
		st = jdoc_parse(gzip ? buf_bytes(&plain) : file, ST_CORRUPT, &doc, err);
	buf_fini(&plain);
	if (st == ST_OK)
		st = view_new(&v);
	if (st != ST_OK)
		return st;
	st = read_view(jdoc_root(doc), v, err);
	jdoc_free(doc);
	if (st != ST_OK)
		view_free(v);
	else
		*ret_v = v;
	return st;
}

/* ------------------------------------------------------------------ writing */

static void put_pairs(struct jwrite *w, const char *key, const struct strv_pair *v, size_t n)
{
	jwrite_key(w, key);
	jwrite_object(w);
	for (size_t i = 0; i < n; i++) {
		jwrite_keyv(w, v[i].key);
		jwrite_str(w, v[i].value);
	}
	jwrite_end_object(w);
}

static void put_version(struct jwrite *w, const struct view_version *x)
{
	jwrite_object(w);
	jwrite_ki64(w, "version-id", x->id);
	jwrite_ki64(w, "timestamp-ms", x->timestamp_ms);
	jwrite_ki64(w, "schema-id", x->schema_id);
	put_pairs(w, "summary", x->summary, x->n_summary);
	if (x->default_catalog.p)
		jwrite_kstr(w, "default-catalog", x->default_catalog);
	jwrite_key(w, "default-namespace");
	jwrite_array(w);
	for (size_t i = 0; i < x->n_default_namespace; i++)
		jwrite_str(w, x->default_namespace[i]);
	jwrite_end_array(w);
	jwrite_key(w, "representations");
	jwrite_array(w);
	for (size_t i = 0; i < x->n_representations; i++)
		jwrite_raw(w, x->representations[i]);
	jwrite_end_array(w);
	buf_putv(w->b, x->extra);
	jwrite_end_object(w);
}

void view_write(struct buf *b, const struct view *v)
{
	struct jwrite w;
	char uuid[37];
	uuid_text(v->uuid, uuid);
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_kstr(&w, "view-uuid", strv_of(uuid));
	jwrite_ki64(&w, "format-version", 1);
	jwrite_kstr(&w, "location", v->location);
	if (v->n_properties)
		put_pairs(&w, "properties", v->properties, v->n_properties);
	jwrite_key(&w, "schemas");
	jwrite_array(&w);
	for (size_t i = 0; i < v->n_schemas; i++)
		schema_write(&w, v->schemas[i]);
	jwrite_end_array(&w);
	jwrite_ki64(&w, "current-version-id", v->current_version_id);
	jwrite_key(&w, "versions");
	jwrite_array(&w);
	for (size_t i = 0; i < v->n_versions; i++)
		put_version(&w, v->versions[i]);
	jwrite_end_array(&w);
	jwrite_key(&w, "version-log");
	jwrite_array(&w);
	for (size_t i = 0; i < v->n_log; i++) {
		jwrite_object(&w);
		jwrite_ki64(&w, "timestamp-ms", v->log[i].timestamp_ms);
		jwrite_ki64(&w, "version-id", v->log[i].version_id);
		jwrite_end_object(&w);
	}
	jwrite_end_array(&w);
	buf_putv(b, v->extra);
	jwrite_end_object(&w);
}

struct strv view_property(const struct view *v, const char *key)
{
	for (size_t i = 0; i < v->n_properties; i++)
		if (strv_eq(v->properties[i].key, strv_of(key)))
			return v->properties[i].value;
	return (struct strv){NULL, 0};
}
