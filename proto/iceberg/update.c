#include "proto/iceberg/update.h"

#include "proto/base/digest.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"

#define BAD ST_BAD_REQUEST
/* One statistics entry or encryption key as text. */
#define TEXT_MAX ((size_t)16 << 20)

static const struct strv actions[] = {
#define UPDATE(name, action, help) [UPDATE_##name] = {action, sizeof(action) - 1},
#include "proto/iceberg/update.tbl"
};

const char *update_action(enum update_kind kind)
{
	ASSERT(kind < UPDATE__COUNT);
	return actions[kind].p;
}

/* Of one change: each is applied to a document that may be large, and one that adds is compared with all
 * that was added before. */
#define UPDATES_MAX 32768
#define ADDS_MAX 2048

static enum status limit(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the request exceeds the memory limit");
}

/* ---- small values ---- */

static enum status parse_uuid(const struct jval *v, struct update *u, struct err *err)
{
	struct strv text;
	enum status st = jval_need_str(v, "uuid", BAD, &text, err);
	if (st == ST_OK && !uuid_parse(text, &u->u.uuid))
		return err_set(err, BAD, "uuid", "Invalid UUID: %.*s",
			       STRV_ARG(strv_sub(text, 0, 64)));
	return st;
}

static enum status parse_ids(const struct jval *v, const char *key, struct arena *a,
			     struct update *u, struct err *err)
{
	const struct jval *list = NULL;
	enum status st = jval_need_array(v, key, BAD, &list, err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(list);
	int64_t *wide = arena_calloc(a, n, sizeof *wide);
	int32_t *ids = arena_calloc(a, n, sizeof *ids);
	if (!wide || !ids)
		return limit(err);
	bool narrow = u->kind != UPDATE_REMOVE_SNAPSHOTS;
	for (size_t i = 0; i < n; i++) {
		if (!jval_as_i64(jval_at(list, i), &wide[i]) ||
		    (narrow && (wide[i] < INT32_MIN || wide[i] > INT32_MAX)))
			return err_set(err, BAD, key, "%s must be a list of integers", key);
		ids[i] = (int32_t)wide[i];
	}
	if (narrow) {
		u->u.ids.v = ids;
		u->u.ids.n = n;
	} else {
		u->u.snapshot_ids.v = wide;
		u->u.snapshot_ids.n = n;
	}
	return ST_OK;
}

static enum status parse_set_properties(const struct jval *v, struct arena *a, struct update *u,
					struct err *err)
{
	/* "updated" is what the first clients sent. */
	const struct jval *map = NULL;
	const char *key = !jval_get(v, "updates") && jval_get(v, "updated") ? "updated" : "updates";
	enum status st = jval_need_object(v, key, BAD, &map, err);
	if (st != ST_OK)
		return st;
	struct strv_pair *kv = arena_calloc(a, jval_count(map), sizeof *kv);
	if (!kv)
		return limit(err);
	size_t n = 0;
	for (struct jval_iter it = jval_iter(map); jval_next(&it); n++) {
		kv[n].key = it.key;
		if (!jval_as_str(it.val, &kv[n].value))
			return err_set(err, BAD, key, "property values must be strings");
	}
	u->u.properties.v = kv;
	u->u.properties.n = n;
	return ST_OK;
}

static enum status parse_remove_properties(const struct jval *v, struct arena *a, struct update *u,
					   struct err *err)
{
	const struct jval *list = NULL;
	const char *key = !jval_get(v, "removals") && jval_get(v, "removed") ? "removed" : "removals";
	enum status st = jval_need_array(v, key, BAD, &list, err);
	if (st != ST_OK)
		return st;
	size_t n = jval_count(list);
	struct strv *keys = arena_calloc(a, n, sizeof *keys);
	if (!keys)
		return limit(err);
	for (size_t i = 0; i < n; i++)
		if (!jval_as_str(jval_at(list, i), &keys[i]))
			return err_set(err, BAD, key, "%s must be a list of strings", key);
	u->u.keys.v = keys;
	u->u.keys.n = n;
	return ST_OK;
}

/* ---- schemas, specs, sort orders, snapshots ---- */

static enum status parse_part(const struct jval *v, const char *key, struct arena *a,
			      struct update *u, struct err *err)
{
	const struct jval *o = NULL;
	enum status st = jval_need_object(v, key, BAD, &o, err);
	if (st != ST_OK)
		return st;
	/* One of the four; the others stay untouched. */
	struct {
		struct schema schema;
		struct partition_spec spec;
		struct sort_order order;
		struct snapshot snapshot;
	} *p = arena_calloc(a, 1, sizeof *p);
	if (!p)
		return limit(err);
	switch (u->kind) {
	case UPDATE_ADD_SCHEMA:
		u->u.schema = &p->schema;
		st = schema_parse(o, BAD, a, &p->schema, err);
		break;
	case UPDATE_ADD_SPEC:
		u->u.spec = &p->spec;
		st = partition_parse(o, BAD, a, &p->spec, err);
		break;
	case UPDATE_ADD_SORT_ORDER:
		u->u.order = &p->order;
		st = sort_parse(o, BAD, a, &p->order, err);
		break;
	default:
		u->u.snapshot = &p->snapshot;
		st = snapshot_from_jval(o, a, &p->snapshot, err);
		break;
	}
	if (st != ST_OK)
		err_prefix(err, "%s", key);
	return st;
}

/* Retention values are positive; 0 stands for "absent" in the struct. */
static enum status parse_retention(const struct jval *v, const char *key, int64_t max, int64_t *ret,
				   struct err *err)
{
	bool has = false;
	int64_t n = 0;
	enum status st = jval_opt_i64(v, key, BAD, &n, &has, err);
	if (st == ST_OK && has && (n <= 0 || n > max))
		return err_set(err, BAD, key, "%s must be greater than 0", key);
	*ret = n;
	return st;
}

static enum status parse_ref(const struct jval *v, struct update *u, struct err *err)
{
	struct snapshot_ref *r = &u->u.ref;
	struct strv type;
	int64_t keep = 0;
	enum status st;
	if ((st = jval_need_str(v, "ref-name", BAD, &r->name, err)) != ST_OK ||
	    (st = jval_need_i64(v, "snapshot-id", BAD, &r->snapshot_id, err)) != ST_OK ||
	    (st = jval_need_str(v, "type", BAD, &type, err)) != ST_OK ||
	    (st = parse_retention(v, "min-snapshots-to-keep", INT32_MAX, &keep, err)) != ST_OK ||
	    (st = parse_retention(v, "max-snapshot-age-ms", INT64_MAX, &r->max_snapshot_age_ms,
				  err)) != ST_OK ||
	    (st = parse_retention(v, "max-ref-age-ms", INT64_MAX, &r->max_ref_age_ms, err)) !=
		    ST_OK)
		return st;
	r->min_snapshots_to_keep = (int32_t)keep;
	r->tag = strv_ieq(type, STRV("tag"));
	if (!r->tag && !strv_ieq(type, STRV("branch")))
		return err_set(err, BAD, "type", "Invalid snapshot ref type: %.*s",
			       STRV_ARG(strv_sub(type, 0, 64)));
	return snapshot_ref_check(r, BAD, err);
}

/* ---- statistics and keys: checked, then kept as text in canonical member order ---- */

static enum status copy_str(struct jwrite *w, const struct jval *o, const char *key, bool need,
			    struct err *err)
{
	struct strv s;
	bool has = true;
	enum status st = need ? jval_need_str(o, key, BAD, &s, err)
			      : jval_opt_str(o, key, BAD, &s, &has, err);
	if (st == ST_OK && has)
		jwrite_kstr(w, key, s);
	return st;
}

static enum status copy_i64(struct jwrite *w, const struct jval *o, const char *key,
			    struct err *err)
{
	int64_t n;
	enum status st = jval_need_i64(o, key, BAD, &n, err);
	if (st == ST_OK)
		jwrite_ki64(w, key, n);
	return st;
}

/* An optional map of strings. */
static enum status copy_map(struct jwrite *w, const struct jval *o, const char *key,
			    struct err *err)
{
	const struct jval *map = NULL;
	struct strv s;
	enum status st = jval_opt_object(o, key, BAD, &map, err);
	if (st != ST_OK || !map || jval_count(map) == 0)
		return st;
	jwrite_key(w, key);
	jwrite_object(w);
	for (struct jval_iter it = jval_iter(map); jval_next(&it);) {
		if (!jval_as_str(it.val, &s))
			return err_set(err, BAD, key, "values of %s must be strings", key);
		jwrite_keyv(w, it.key);
		jwrite_str(w, s);
	}
	jwrite_end_object(w);
	return ST_OK;
}

static enum status copy_blob(struct jwrite *w, const struct jval *o, struct err *err)
{
	const struct jval *fields = NULL;
	int64_t id;
	enum status st;
	jwrite_object(w);
	if ((st = copy_str(w, o, "type", true, err)) != ST_OK ||
	    (st = copy_i64(w, o, "snapshot-id", err)) != ST_OK ||
	    (st = copy_i64(w, o, "sequence-number", err)) != ST_OK ||
	    (st = jval_need_array(o, "fields", BAD, &fields, err)) != ST_OK)
		return st;
	jwrite_key(w, "fields");
	jwrite_array(w);
	for (size_t i = 0; i < jval_count(fields); i++) {
		if (!jval_as_i64(jval_at(fields, i), &id) || id < INT32_MIN || id > INT32_MAX)
			return err_set(err, BAD, "fields", "fields must be a list of field ids");
		jwrite_i64(w, id);
	}
	jwrite_end_array(w);
	st = copy_map(w, o, "properties", err);
	jwrite_end_object(w);
	return st;
}

static enum status write_stats(struct jwrite *w, const struct jval *o, bool partition,
			       struct err *err)
{
	const struct jval *blobs = NULL;
	enum status st;
	if ((st = copy_i64(w, o, "snapshot-id", err)) != ST_OK ||
	    (st = copy_str(w, o, "statistics-path", true, err)) != ST_OK ||
	    (st = copy_i64(w, o, "file-size-in-bytes", err)) != ST_OK || partition)
		return st;
	if ((st = copy_i64(w, o, "file-footer-size-in-bytes", err)) != ST_OK ||
	    (st = copy_str(w, o, "key-metadata", false, err)) != ST_OK ||
	    (st = jval_need_array(o, "blob-metadata", BAD, &blobs, err)) != ST_OK)
		return st;
	jwrite_key(w, "blob-metadata");
	jwrite_array(w);
	for (size_t i = 0; i < jval_count(blobs); i++) {
		if ((st = copy_blob(w, jval_at(blobs, i), err)) != ST_OK) {
			err_prefix(err, "blob-metadata[%zu]", i);
			return st;
		}
	}
	jwrite_end_array(w);
	return ST_OK;
}

static enum status write_key(struct jwrite *w, const struct jval *o, struct err *err)
{
	struct strv secret = {NULL, 0};
	struct buf plain;
	enum status st;
	if ((st = copy_str(w, o, "key-id", true, err)) != ST_OK ||
	    (st = jval_need_str(o, "encrypted-key-metadata", BAD, &secret, err)) != ST_OK)
		return st;
	buf_init(&plain, TEXT_MAX);
	bool ok = digest_unbase64(&plain, secret);
	buf_fini(&plain);
	if (!ok)
		return err_set(err, BAD, "encrypted-key-metadata",
			       "encrypted-key-metadata is not base64");
	jwrite_kstr(w, "encrypted-key-metadata", secret);
	if ((st = copy_str(w, o, "encrypted-by-id", false, err)) != ST_OK)
		return st;
	return copy_map(w, o, "properties", err);
}

/* The object under `key`, rewritten into *ret. */
static enum status parse_text(const struct jval *v, const char *key, struct arena *a,
			      const struct update *u, struct strv *ret, struct err *err)
{
	const struct jval *o = NULL;
	struct jwrite w;
	struct buf b;
	enum status st = jval_need_object(v, key, BAD, &o, err);
	if (st != ST_OK)
		return st;
	buf_init(&b, TEXT_MAX);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	st = u->kind == UPDATE_ADD_ENCRYPTION_KEY
		     ? write_key(&w, o, err)
		     : write_stats(&w, o, u->kind == UPDATE_SET_PARTITION_STATISTICS, err);
	if (st != ST_OK) {
		err_prefix(err, "%s", key);
	} else {
		jwrite_end_object(&w);
		if (!buf_ok(&b) || !arena_strv(a, buf_strv(&b), ret))
			st = limit(err);
	}
	buf_fini(&b);
	return st;
}

static enum status parse_stats(const struct jval *v, const char *key, struct arena *a,
			       struct update *u, struct err *err)
{
	enum status st = parse_text(v, key, a, u, &u->u.stats.json, err);
	if (st != ST_OK)
		return st;
	st = jval_need_str(jval_get(v, key), "statistics-path", BAD, &u->u.stats.path, err);
	if (st != ST_OK)
		return st;
	return jval_need_i64(jval_get(v, key), "snapshot-id", BAD, &u->u.stats.snapshot_id, err);
}

static enum status parse_key(const struct jval *v, struct arena *a, struct update *u,
			     struct err *err)
{
	enum status st = parse_text(v, "encryption-key", a, u, &u->u.key.json, err);
	if (st != ST_OK)
		return st;
	return jval_need_str(jval_get(v, "encryption-key"), "key-id", BAD, &u->u.key.key_id, err);
}

/* ---- dispatch ---- */

static enum status parse_body(const struct jval *v, struct arena *a, struct update *u,
			      struct err *err)
{
	switch (u->kind) {
	case UPDATE_ASSIGN_UUID:
		return parse_uuid(v, u, err);
	case UPDATE_UPGRADE_FORMAT_VERSION:
		return jval_need_i32(v, "format-version", BAD, &u->u.format_version, err);
	case UPDATE_SET_LOCATION:
		return jval_need_str(v, "location", BAD, &u->u.text, err);
	case UPDATE_SET_PROPERTIES:
		return parse_set_properties(v, a, u, err);
	case UPDATE_REMOVE_PROPERTIES:
		return parse_remove_properties(v, a, u, err);
	case UPDATE_ADD_SCHEMA:
		return parse_part(v, "schema", a, u, err);
	case UPDATE_SET_CURRENT_SCHEMA:
		return jval_need_i32(v, "schema-id", BAD, &u->u.id, err);
	case UPDATE_REMOVE_SCHEMAS:
		return parse_ids(v, "schema-ids", a, u, err);
	case UPDATE_ADD_SPEC:
		return parse_part(v, "spec", a, u, err);
	case UPDATE_SET_DEFAULT_SPEC:
		return jval_need_i32(v, "spec-id", BAD, &u->u.id, err);
	case UPDATE_REMOVE_SPECS:
		return parse_ids(v, "spec-ids", a, u, err);
	case UPDATE_ADD_SORT_ORDER:
		return parse_part(v, "sort-order", a, u, err);
	case UPDATE_SET_DEFAULT_SORT_ORDER:
		return jval_need_i32(v, "sort-order-id", BAD, &u->u.id, err);
	case UPDATE_ADD_SNAPSHOT:
		return parse_part(v, "snapshot", a, u, err);
	case UPDATE_SET_SNAPSHOT_REF:
		return parse_ref(v, u, err);
	case UPDATE_REMOVE_SNAPSHOT_REF:
		return jval_need_str(v, "ref-name", BAD, &u->u.text, err);
	case UPDATE_REMOVE_SNAPSHOTS:
		return parse_ids(v, "snapshot-ids", a, u, err);
	case UPDATE_SET_STATISTICS:
		return parse_stats(v, "statistics", a, u, err);
	case UPDATE_SET_PARTITION_STATISTICS:
		return parse_stats(v, "partition-statistics", a, u, err);
	case UPDATE_REMOVE_STATISTICS:
	case UPDATE_REMOVE_PARTITION_STATISTICS:
		return jval_need_i64(v, "snapshot-id", BAD, &u->u.stats.snapshot_id, err);
	case UPDATE_ADD_ENCRYPTION_KEY:
		return parse_key(v, a, u, err);
	case UPDATE_REMOVE_ENCRYPTION_KEY:
		return jval_need_str(v, "key-id", BAD, &u->u.text, err);
	case UPDATE__COUNT:
		break;
	}
	ASSERT(false);
	return ST_INTERNAL;
}

static enum status parse_one(const struct jval *v, struct arena *a, struct update *u,
			     struct err *err)
{
	struct strv action;
	size_t kind = 0;
	enum status st = jval_need_str(v, "action", BAD, &action, err);
	if (st != ST_OK)
		return st;
	while (kind < UPDATE__COUNT && !strv_ieq(action, actions[kind]))
		kind++;
	if (kind == UPDATE__COUNT)
		return err_set(err, BAD, "action", "Unknown update action: %.*s",
			       STRV_ARG(strv_sub(action, 0, 64)));
	u->kind = (enum update_kind)kind;
	return parse_body(v, a, u, err);
}

static bool adds(enum update_kind kind)
{
	switch (kind) {
	case UPDATE_ADD_SCHEMA:
	case UPDATE_ADD_SPEC:
	case UPDATE_ADD_SORT_ORDER:
	case UPDATE_ADD_SNAPSHOT:
	case UPDATE_SET_SNAPSHOT_REF:
	case UPDATE_SET_STATISTICS:
	case UPDATE_SET_PARTITION_STATISTICS:
	case UPDATE_ADD_ENCRYPTION_KEY:
		return true;
	default:
		return false;
	}
}

enum status update_parse(const struct jval *array, struct arena *a, const struct update **ret_u,
			 size_t *ret_n, struct err *err)
{
	size_t n = jval_count(array);
	if (!jval_is_null(array) && !jval_is_array(array))
		return err_set(err, BAD, "updates", "updates must be an array");
	if (n > UPDATES_MAX)
		return err_set(err, ST_LIMIT, "updates", "at most %d updates, these are %zu",
			       UPDATES_MAX, n);
	struct update *u = arena_calloc(a, n, sizeof *u);
	size_t n_adds = 0;
	if (!u)
		return limit(err);
	for (size_t i = 0; i < n; i++) {
		enum status st = parse_one(jval_at(array, i), a, &u[i], err);
		n_adds += st == ST_OK && adds(u[i].kind);
		if (n_adds > ADDS_MAX)
			return err_set(err, ST_LIMIT, "updates",
				       "at most %d that add a schema, spec, order, snapshot, ref, "
				       "statistics or key",
				       ADDS_MAX);
		if (st != ST_OK) {
			err_prefix(err, "updates[%zu]", i);
			return st;
		}
	}
	*ret_u = u;
	*ret_n = n;
	return ST_OK;
}
