/* How views change: creation, and the updates of a commit in their order. */
#include "proto/iceberg/view_int.h"

#include "proto/iceberg/schema.h"

#define LAST_ADDED (-1)
#define HISTORY_KEY "version.history.num-entries"
#define HISTORY_DEFAULT 10
#define DROP_DIALECT_KEY "replace.drop-dialect.allowed"

/* A copy of the base that is being changed: its arrays are its own. */
struct change {
	struct view *v;
	struct arena *a;
	int64_t now_ms;
	int32_t added_schema, added_version; /* LAST_ADDED: none yet */
	bool *fresh;			      /* by index of versions: added in this request */
	size_t cap_versions, cap_fresh, cap_schemas, cap_log, cap_properties;
	bool changed;
	struct err *err;
};

static enum status bad(struct change *c, const char *field, const char *what)
{
	return err_set(c->err, ST_BAD_REQUEST, field, "%s", what);
}

/* ------------------------------------------------------------------ small arrays */

static bool grow(struct change *c, const void *items, size_t n, size_t *cap, size_t size,
		 void **ret_items)
{
	if (n + 1 <= *cap) {
		*ret_items = (void *)(uintptr_t)items; /* ours: the view is under construction */
		return true;
	}
	size_t want = n * 2 + 4;
	void *p = arena_calloc(c->a, want, size);
	if (!p)
		return false;
	if (n)
		memcpy(p, items, n * size);
	*cap = want;
	*ret_items = p;
	return true;
}

static enum status push_version(struct change *c, const struct view_version *x, bool fresh)
{
	struct view *v = c->v;
	void *p, *f;
	if (!grow(c, v->versions, v->n_versions, &c->cap_versions, sizeof(struct view_version *),
		  &p) ||
	    !grow(c, c->fresh, v->n_versions, &c->cap_fresh, sizeof(bool), &f))
		return view_full(c->err);
	const struct view_version **all = p;
	all[v->n_versions] = x;
	c->fresh = f;
	c->fresh[v->n_versions++] = fresh;
	v->versions = all;
	return ST_OK;
}

static enum status push_log(struct change *c, int64_t at_ms, int32_t id)
{
	struct view *v = c->v;
	void *p;
	if (!grow(c, v->log, v->n_log, &c->cap_log, sizeof *v->log, &p))
		return view_full(c->err);
	struct view_log_entry *log = p;
	log[v->n_log++] = (struct view_log_entry){at_ms, id};
	v->log = log;
	return ST_OK;
}

/* ------------------------------------------------------------------ the updates */

static enum status assign_uuid(struct change *c, const struct jval *u)
{
	struct strv text;
	struct uuid uuid;
	enum status st = jval_need_str(u, "uuid", ST_BAD_REQUEST, &text, c->err);
	if (st != ST_OK)
		return st;
	if (!uuid_parse(text, &uuid))
		return bad(c, "uuid", "is not a UUID");
	return memcmp(&uuid, &c->v->uuid, sizeof uuid) == 0 ? ST_OK
							   : bad(c, "uuid", "Cannot reassign uuid");
}

static enum status upgrade(struct change *c, const struct jval *u)
{
	int32_t version;
	enum status st = jval_need_i32(u, "format-version", ST_BAD_REQUEST, &version, c->err);
	if (st == ST_OK && version < 1)
		return bad(c, "format-version", "Cannot downgrade a view");
	if (st == ST_OK && version > 1)
		return bad(c, "format-version", "Unsupported format version of a view");
	return st;
}

static enum status put_schema(struct change *c, struct schema *s)
{
	struct view *v = c->v;
	int32_t highest = -1;
	void *p;
	for (size_t i = 0; i < v->n_schemas; i++) {
		if (schema_same(v->schemas[i], s)) {
			c->added_schema = v->schemas[i]->schema_id;
			return ST_OK;
		}
		if (v->schemas[i]->schema_id > highest)
			highest = v->schemas[i]->schema_id;
	}
	if (highest == INT32_MAX)
		return bad(c, "schema", "schema ids are used up");
	s->schema_id = highest + 1;
	if (!grow(c, v->schemas, v->n_schemas, &c->cap_schemas, sizeof(struct schema *), &p))
		return view_full(c->err);
	const struct schema **all = p;
	all[v->n_schemas++] = s;
	v->schemas = all;
	c->added_schema = s->schema_id;
	c->changed = true;
	return ST_OK;
}

static enum status add_schema(struct change *c, const struct jval *u)
{
	struct schema *s;
	enum status st =
		view_schema_read(jval_get(u, "schema"), ST_BAD_REQUEST, c->a, &s, c->err);
	if (st != ST_OK) {
		err_prefix(c->err, "schema");
		return st;
	}
	return put_schema(c, s);
}

static enum status set_location(struct change *c, const struct jval *u)
{
	struct strv text;
	enum status st = jval_need_str(u, "location", ST_BAD_REQUEST, &text, c->err);
	if (st != ST_OK)
		return st;
	if (!text.n)
		return bad(c, "location", "must not be empty");
	if (strv_eq(text, c->v->location))
		return ST_OK;
	c->changed = true;
	return arena_strv(c->a, text, &c->v->location) ? ST_OK : view_full(c->err);
}

static struct strv_pair *property(struct change *c, struct strv key)
{
	for (size_t i = 0; i < c->v->n_properties; i++)
		if (strv_eq(c->v->properties[i].key, key))
			return (struct strv_pair *)(uintptr_t)&c->v->properties[i];
	return NULL;
}

static enum status put_property(struct change *c, const struct strv_pair *kv)
{
	struct view *v = c->v;
	struct strv_pair *old = property(c, kv->key);
	void *p;
	if (old && strv_eq(old->value, kv->value))
		return ST_OK;
	c->changed = true;
	if (old) {
		old->value = kv->value;
		return ST_OK;
	}
	if (v->n_properties >= VIEW_MAX_ENTRIES)
		return err_set(c->err, ST_LIMIT, "properties", "more than %zu properties",
			       VIEW_MAX_ENTRIES);
	if (!grow(c, v->properties, v->n_properties, &c->cap_properties, sizeof *v->properties, &p))
		return view_full(c->err);
	struct strv_pair *all = p;
	all[v->n_properties++] = *kv;
	v->properties = all;
	return ST_OK;
}

static enum status set_properties(struct change *c, const struct jval *u)
{
	const struct jval *map;
	const struct strv_pair *kv;
	size_t n;
	enum status st = jval_need_object(u, "updates", ST_BAD_REQUEST, &map, c->err);
	if (st == ST_OK)
		st = view_pairs(map, "updates", ST_BAD_REQUEST, c->a, &kv, &n, c->err);
	for (size_t i = 0; st == ST_OK && i < n; i++)
		st = put_property(c, &kv[i]);
	return st;
}

static enum status remove_properties(struct change *c, const struct jval *u)
{
	const struct jval *array;
	struct view *v = c->v;
	enum status st = jval_need_array(u, "removals", ST_BAD_REQUEST, &array, c->err);
	if (st == ST_OK)
		st = view_bounded(array, "removals", c->err);
	for (size_t i = 0; st == ST_OK && i < jval_count(array); i++) {
		struct strv key;
		if (!jval_as_str(jval_at(array, i), &key))
			return bad(c, "removals", "must be texts");
		struct strv_pair *old = property(c, key);
		if (!old)
			continue;
		size_t at = (size_t)(old - v->properties);
		memmove(old, old + 1, (v->n_properties - at - 1) * sizeof *old);
		v->n_properties--;
		c->changed = true;
	}
	return st;
}

static bool same_texts(const struct strv *x, size_t n, const struct strv *y, size_t m)
{
	for (size_t i = 0; i < n && n == m; i++)
		if (!strv_eq(x[i], y[i]))
			return false;
	return n == m;
}

static bool same_pairs(const struct strv_pair *x, size_t n, const struct strv_pair *y, size_t m)
{
	for (size_t i = 0; i < n && n == m; i++) {
		size_t k = 0;
		while (k < m && !(strv_eq(x[i].key, y[k].key) && strv_eq(x[i].value, y[k].value)))
			k++;
		if (k == m)
			return false;
	}
	return n == m;
}

/* Equal but for id and time. */
static bool same_version(const struct view_version *x, const struct view_version *y)
{
	return x->schema_id == y->schema_id && (x->default_catalog.p != NULL) ==
						       (y->default_catalog.p != NULL) &&
	       strv_eq(x->default_catalog, y->default_catalog) &&
	       same_texts(x->default_namespace, x->n_default_namespace, y->default_namespace,
			  y->n_default_namespace) &&
	       same_texts(x->representations, x->n_representations, y->representations,
			  y->n_representations) &&
	       same_pairs(x->summary, x->n_summary, y->summary, y->n_summary) &&
	       strv_eq(x->extra, y->extra);
}

static enum status put_new_version(struct change *c, struct view_version *x)
{
	struct view *v = c->v;
	int32_t highest = 0;
	if (x->schema_id == LAST_ADDED) {
		if (c->added_schema == LAST_ADDED)
			return bad(c, "schema-id",
				   "Cannot set last added schema: no schema has been added");
		x->schema_id = c->added_schema;
	}
	if (!view_schema_by_id(v, x->schema_id))
		return err_set(c->err, ST_BAD_REQUEST, "schema-id",
			       "Cannot add version with unknown schema: %d", x->schema_id);
	for (size_t i = 0; i < v->n_versions; i++) {
		if (same_version(v->versions[i], x)) {
			c->added_version = v->versions[i]->id;
			return ST_OK;
		}
		if (v->versions[i]->id > highest)
			highest = v->versions[i]->id;
	}
	if (highest == INT32_MAX)
		return bad(c, "version-id", "version ids are used up");
	x->id = highest + 1;
	c->added_version = x->id;
	c->changed = true;
	return push_version(c, x, true);
}

static enum status add_version(struct change *c, const struct jval *u)
{
	struct view_version *x = arena_calloc(c->a, 1, sizeof *x);
	if (!x)
		return view_full(c->err);
	enum status st = view_version_read(jval_get(u, "view-version"), ST_BAD_REQUEST, c->a, x,
					   c->err);
	if (st == ST_OK)
		st = put_new_version(c, x);
	if (st != ST_OK && st != ST_ILLEGAL_ARGUMENT)
		err_prefix(c->err, "view-version");
	return st;
}

static bool is_fresh(const struct change *c, int32_t id)
{
	for (size_t i = 0; i < c->v->n_versions; i++)
		if (c->v->versions[i]->id == id)
			return c->fresh[i];
	return false;
}

static enum status make_current(struct change *c, int32_t id)
{
	if (id == LAST_ADDED) {
		if (c->added_version == LAST_ADDED)
			return bad(c, "view-version-id",
				   "Cannot set last version id: no current version id has been set");
		id = c->added_version;
	}
	const struct view_version *x = view_version_by_id(c->v, id);
	if (!x)
		return err_set(c->err, ST_BAD_REQUEST, "view-version-id",
			       "Cannot set current version to unknown version: %d", id);
	if (c->v->current_version_id == id)
		return ST_OK;
	c->v->current_version_id = id;
	c->changed = true;
	return push_log(c, is_fresh(c, id) ? x->timestamp_ms : c->now_ms, id);
}

static enum status set_current(struct change *c, const struct jval *u)
{
	int32_t id;
	enum status st = jval_need_i32(u, "view-version-id", ST_BAD_REQUEST, &id, c->err);
	return st == ST_OK ? make_current(c, id) : st;
}

static enum status update(struct change *c, const struct jval *u)
{
	static const struct {
		const char *action;
		enum status (*apply)(struct change *c, const struct jval *u);
	} kinds[] = {
#define VIEW_UPDATE(name, action, function) {action, function},
#include "proto/iceberg/view_update.tbl"
	};
	struct strv action;
	if (!jval_is_object(u))
		return bad(c, "", "must be an object");
	enum status st = jval_need_str(u, "action", ST_BAD_REQUEST, &action, c->err);
	if (st != ST_OK)
		return st;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strv_ieq(action, strv_of(kinds[i].action)))
			return kinds[i].apply(c, u);
	return err_set(c->err, ST_BAD_REQUEST, "action", "Unknown or unsupported view update: %.*s",
		       STRV_ARG(strv_sub(action, 0, 64)));
}

/* ------------------------------------------------------------------ what a whole must keep */

/* Engines that read a view by a dialect must not lose it by another engine's replace. */
static enum status keeps_dialects(struct change *c, const struct view_version *before)
{
	const struct view_version *now = view_version_by_id(c->v, c->v->current_version_id);
	if (!before || !now || strv_ieq(view_property(c->v, DROP_DIALECT_KEY), STRV("true")))
		return ST_OK;
	for (size_t i = 0; i < before->n_representations; i++) {
		size_t k = 0;
		if (!before->dialects[i].p)
			continue;
		while (k < now->n_representations &&
		       !(now->dialects[k].p && strv_ieq(now->dialects[k], before->dialects[i])))
			k++;
		if (k == now->n_representations)
			return err_set(c->err, ST_BAD_REQUEST, "",
				       "Cannot replace view due to loss of view dialects "
				       "(" DROP_DIALECT_KEY "=false): %.*s",
				       STRV_ARG(strv_sub(before->dialects[i], 0, 64)));
	}
	return ST_OK;
}

/* Drops the oldest versions beyond the number to keep, never the current one or a new one; the log
 * begins behind the last entry of a dropped one. */
static enum status trim(struct change *c)
{
	struct view *v = c->v;
	struct strv text = view_property(v, HISTORY_KEY);
	int64_t most = HISTORY_DEFAULT;
	if (text.p && (!strv_i64(text, &most) || most <= 0))
		return err_set(c->err, ST_ILLEGAL_ARGUMENT, "",
			       HISTORY_KEY " must be positive but was %.*s",
			       STRV_ARG(strv_sub(text, 0, 32)));
	const struct view_version **kept =
		arena_calloc(c->a, v->n_versions, sizeof(struct view_version *));
	if (!kept)
		return view_full(c->err);
	size_t fixed = 0, n = 0, from = 0;
	for (size_t i = 0; i < v->n_versions; i++)
		fixed += c->fresh[i] || v->versions[i]->id == v->current_version_id;
	size_t room = (uint64_t)most > fixed ? (size_t)most - fixed : 0;
	for (size_t i = 0; i < v->n_versions; i++) {
		/* Ids rise with time: how many that may go are newer? */
		size_t newer = 0;
		const struct view_version *x = v->versions[i];
		bool stays = c->fresh[i] || x->id == v->current_version_id;
		for (size_t k = 0; k < v->n_versions && !stays; k++)
			newer += !c->fresh[k] && v->versions[k]->id != v->current_version_id &&
				 v->versions[k]->id > x->id;
		if (stays || newer < room)
			kept[n++] = x;
	}
	v->versions = kept;
	v->n_versions = n;
	for (size_t i = 0; i < v->n_log; i++)
		if (!view_version_by_id(v, v->log[i].version_id))
			from = i + 1;
	v->log += from;
	v->n_log -= from;
	return ST_OK;
}

static enum status check_requirements(const struct view *base, const struct jval *array,
				      struct err *err)
{
	enum status st = ST_OK;
	if (!jval_is_null(array) && !jval_is_array(array))
		return err_set(err, ST_BAD_REQUEST, "requirements", "must be an array");
	st = view_bounded(array, "requirements", err);
	for (size_t i = 0; st == ST_OK && i < jval_count(array); i++) {
		const struct jval *r = jval_at(array, i);
		struct strv type, text;
		struct uuid uuid;
		st = jval_need_str(r, "type", ST_BAD_REQUEST, &type, err);
		if (st == ST_OK && !strv_ieq(type, STRV("assert-view-uuid")))
			st = err_set(err, ST_BAD_REQUEST, "type",
				     "Unknown requirement type of a view: %.*s",
				     STRV_ARG(strv_sub(type, 0, 64)));
		if (st == ST_OK)
			st = jval_need_str(r, "uuid", ST_BAD_REQUEST, &text, err);
		if (st == ST_OK && !uuid_parse(text, &uuid))
			st = err_set(err, ST_BAD_REQUEST, "uuid", "is not a UUID");
		if (st != ST_OK) {
			err_prefix(err, "requirements[%zu]", i);
			return st;
		}
		if (memcmp(&uuid, &base->uuid, sizeof uuid) != 0) {
			char was[37];
			uuid_text(base->uuid, was);
			st = err_set(err, ST_COMMIT_FAILED, "",
				     "Requirement failed: view UUID does not match: "
				     "expected %s != %.*s",
				     was, STRV_ARG(text));
		}
	}
	return st;
}

/* A view of its own with the same contents. */
static enum status copy(const struct view *base, struct view **ret_v, struct err *err)
{
	struct buf b;
	buf_init(&b, VIEW_MAX_BYTES);
	view_write(&b, base);
	enum status st = buf_ok(&b) ? view_read(buf_bytes(&b), false, ret_v, err) : view_full(err);
	buf_fini(&b);
	return st;
}

static enum status apply(struct change *c, const struct view *base, const struct jval *updates)
{
	if (!jval_is_array(updates))
		return bad(c, "updates", "must be an array");
	enum status st = view_bounded(updates, "updates", c->err);
	if (st != ST_OK)
		return st;
	c->fresh = arena_calloc(c->a, c->v->n_versions + 1, sizeof(bool));
	if (!c->fresh)
		return view_full(c->err);
	c->cap_fresh = c->v->n_versions + 1;
	for (size_t i = 0; st == ST_OK && i < jval_count(updates); i++) {
		st = update(c, jval_at(updates, i));
		if (st != ST_OK && st != ST_ILLEGAL_ARGUMENT)
			err_prefix(c->err, "updates[%zu]", i);
	}
	if (st == ST_OK)
		st = keeps_dialects(c, view_version_by_id(base, base->current_version_id));
	if (st == ST_OK)
		st = trim(c);
	return st == ST_OK ? view_check(c->v, ST_BAD_REQUEST, c->err) : st;
}

enum status view_commit(const struct view *base, const struct jval *requirements,
			const struct jval *updates, int64_t now_ms, struct view **ret_v,
			bool *ret_changed, struct err *err)
{
	struct view *v = NULL;
	enum status st = check_requirements(base, requirements, err);
	if (st == ST_OK)
		st = copy(base, &v, err);
	if (st != ST_OK)
		return st;
	struct change c = {.v = v,
			   .a = &v->arena,
			   .now_ms = now_ms,
			   .added_schema = LAST_ADDED,
			   .added_version = LAST_ADDED,
			   .err = err};
	st = apply(&c, base, updates);
	if (st != ST_OK) {
		view_free(v);
		return st;
	}
	*ret_v = v;
	*ret_changed = c.changed;
	return ST_OK;
}

enum status view_create(const struct view_create *in, struct view **ret_v, struct err *err)
{
	struct view *v = NULL;
	struct schema *s;
	enum status st = view_new(&v);
	if (st != ST_OK)
		return st;
	struct change c = {.v = v,
			   .a = &v->arena,
			   .added_schema = LAST_ADDED,
			   .added_version = LAST_ADDED,
			   .err = err};
	struct view_version *x = arena_calloc(c.a, 1, sizeof *x);
	v->uuid = in->uuid;
	if (!x || !arena_strv(c.a, in->location, &v->location))
		st = view_full(err);
	if (st == ST_OK) {
		st = view_schema_read(in->schema, ST_BAD_REQUEST, c.a, &s, err);
		if (st != ST_OK)
			err_prefix(err, "schema");
	}
	if (st == ST_OK)
		st = put_schema(&c, s);
	if (st == ST_OK) {
		st = view_version_read(in->version, ST_BAD_REQUEST, c.a, x, err);
		if (st != ST_OK && st != ST_ILLEGAL_ARGUMENT)
			err_prefix(err, "view-version");
	}
	for (size_t i = 0; st == ST_OK && i < in->n_properties; i++) {
		struct strv_pair kv;
		if (!arena_strv(c.a, in->properties[i].key, &kv.key) ||
		    !arena_strv(c.a, in->properties[i].value, &kv.value))
			st = view_full(err);
		else
			st = put_property(&c, &kv);
	}
	if (st == ST_OK) {
		x->schema_id = c.added_schema;
		st = put_new_version(&c, x);
	}
	if (st == ST_OK)
		st = make_current(&c, c.added_version);
	if (st == ST_OK)
		st = trim(&c);
	if (st == ST_OK)
		st = view_check(v, ST_BAD_REQUEST, err);
	if (st != ST_OK)
		view_free(v);
	else
		*ret_v = v;
	return st;
}
