/* Applies the updates of a commit to a copy of the base and finishes it: logs, timestamps, checks.
 * Schemas, specs and sort orders are in metadata_shape.c. */
#include <stdlib.h>

#include "proto/base/json.h"
#include "proto/iceberg/metadata_int.h"

/* Properties that are other members of the metadata in disguise. */
static const char *const reserved[] = {
	"format-version",      "uuid",
	"snapshot-count",      "current-snapshot-summary",
	"current-snapshot-id", "current-snapshot-timestamp-ms",
	"current-schema",      "default-partition-spec",
	"default-sort-order",
};

bool metadata_property_reserved(struct strv key)
{
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		if (strv_eq(key, strv_of(reserved[i])))
			return true;
	return false;
}

static bool push_id(struct metadata_change *c, int64_t **ids, size_t *n, size_t *cap, int64_t id)
{
	void *items = *ids;
	if (!arena_grow(&c->scratch, &items, cap, *n + 1, sizeof id))
		return false;
	*ids = items;
	(*ids)[(*n)++] = id;
	return true;
}

static bool has_id(const int64_t *ids, size_t n, int64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

static int cmp_i64(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a > b) - (a < b);
}

static bool was_removed(const struct metadata_change *c, int64_t id)
{
	return c->n_removed > 0 && bsearch(&id, c->removed, c->n_removed, sizeof id, cmp_i64);
}

/* ---- identity, version, location, properties ---- */

static enum status assign_uuid(struct metadata_change *c, struct uuid u)
{
	struct metadata *m = c->m;
	if (m->has_uuid && uuid_eq(m->uuid, u))
		return ST_OK;
	/* Files and other catalogs know the table by it. */
	if (c->base && c->base->has_uuid)
		return err_set(c->err, ST_VALIDATION, "uuid",
			       "Cannot reassign uuid of an existing table");
	m->uuid = u;
	m->has_uuid = c->changed = true;
	return ST_OK;
}

static enum status upgrade(struct metadata_change *c, int32_t version)
{
	struct metadata *m = c->m;
	if (version > METADATA_VERSION_MAX)
		return err_set(
			c->err, ST_VALIDATION, "format-version",
			"Cannot upgrade table to unsupported format version: v%d (supported: v%d)",
			(int)version, METADATA_VERSION_MAX);
	if (version < m->format_version)
		return err_set(c->err, ST_VALIDATION, "format-version",
			       "Cannot downgrade v%d table to v%d", m->format_version,
			       (int)version);
	if (version == m->format_version)
		return ST_OK;
	/* Only version 1 may list manifests inline. */
	for (size_t i = 0; m->format_version == 1 && i < m->snapshots.n; i++)
		if (!metasnap_at(&m->snapshots, i)->manifest_list.p)
			return err_set(c->err, ST_VALIDATION, "format-version",
				       "Cannot upgrade to v%d: snapshot %lld has no manifest list",
				       (int)version,
				       (long long)metasnap_at(&m->snapshots, i)->snapshot_id);
	if (!m->has_uuid) {
		m->uuid = c->ctx->new_uuid;
		m->has_uuid = true;
	}
	/* next_row_id is 0 already; snapshots made before keep no row ids. */
	m->format_version = version;
	c->changed = true;
	return ST_OK;
}

static enum status set_location(struct metadata_change *c, struct strv location)
{
	struct strv before = c->m->location;
	if (location.n == 0)
		return err_set(c->err, ST_BAD_REQUEST, "location",
			       "Invalid location: null or empty");
	if (!metadata_put_location(c->m, location))
		return metadata_limit(c->err);
	c->changed |= !strv_eq(before, c->m->location);
	return ST_OK;
}

static enum status set_properties(struct metadata_change *c, const struct strv_pair *kv, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* A create request may carry the version as a property, as its clients write it. */
		int64_t version;
		if (!c->base && strv_eq(kv[i].key, STRV("format-version")) &&
		    strv_i64(kv[i].value, &version) && version >= 1 &&
		    version <= METADATA_VERSION_MAX) {
			enum status st = upgrade(c, (int32_t)version);
			if (st != ST_OK)
				return st;
			continue;
		}
		if (metadata_property_reserved(kv[i].key))
			return err_set(c->err, ST_VALIDATION, "updates",
				       "Cannot set reserved property: %.*s", STRV_ARG(kv[i].key));
		enum status st = metadata_check_property(kv[i].key, kv[i].value, ST_VALIDATION,
							 c->err);
		if (st != ST_OK)
			return st;
		size_t k = metadata_property_index(c->m, kv[i].key);
		if (k < c->m->n_properties && c->m->properties[k].value.p &&
		    strv_eq(c->m->properties[k].value, kv[i].value))
			continue;
		if (!metadata_put_property(c->m, kv[i].key, kv[i].value))
			return metadata_limit(c->err);
		c->changed = true;
	}
	return ST_OK;
}

static enum status remove_properties(struct metadata_change *c, const struct strv *keys, size_t n)
{
	bool some;
	metadata_drop_properties(c->m, keys, n, &some);
	c->changed |= some;
	return ST_OK;
}

/* ---- snapshots ---- */

static enum status check_sequence(struct metadata_change *c, const struct snapshot *s)
{
	const struct metadata *m = c->m;
	if (m->format_version == 1)
		return s->sequence_number == 0
			       ? ST_OK
			       : err_set(c->err, ST_VALIDATION, "snapshot.sequence-number",
					 "Sequence number must be 0 in v1: %lld",
					 (long long)s->sequence_number);
	/* A replaced table's first snapshot has no parent and may carry a number already used. */
	if (s->parent_id != SNAPSHOT_NONE && s->sequence_number <= m->last_sequence_number)
		return err_set(
			c->err, ST_COMMIT_FAILED, "snapshot.sequence-number",
			"Cannot add snapshot with sequence number %lld older than last sequence "
			"number %lld",
			(long long)s->sequence_number, (long long)m->last_sequence_number);
	return ST_OK;
}

/* Row ids of the snapshot; *ret_next: the table's next-row-id after it. */
static enum status check_row_ids(struct metadata_change *c, const struct snapshot *s,
				 int64_t *ret_next)
{
	int64_t next = c->m->next_row_id, end;
	*ret_next = next;
	if (c->m->format_version < 3)
		return s->first_row_id == ROW_ID_NONE
			       ? ST_OK
			       : err_set(c->err, ST_VALIDATION, "snapshot.first-row-id",
					 "Row ids are not supported until v3");
	if (s->first_row_id == ROW_ID_NONE)
		return err_set(c->err, ST_VALIDATION, "snapshot.first-row-id",
			       "Cannot add a snapshot: first-row-id is null");
	if (s->first_row_id < next)
		return err_set(c->err, ST_COMMIT_FAILED, "snapshot.first-row-id",
			       "Cannot add a snapshot, first-row-id is behind table next-row-id: "
			       "%lld < %lld",
			       (long long)s->first_row_id, (long long)next);
	if (s->added_rows == ROW_ID_NONE || s->added_rows < 0)
		return err_set(c->err, ST_VALIDATION, "snapshot.added-rows",
			       "Cannot add a snapshot: added-rows is null or negative");
	/* Counted from the snapshot's own start, which may lie above next: ranges never overlap. */
	if (!add_i64(s->first_row_id, s->added_rows, &end))
		return err_set(c->err, ST_VALIDATION, "snapshot.added-rows", "row ids are used up");
	*ret_next = end;
	return ST_OK;
}

/* Readers and the specification know four; version 1 may say none, and some of its writers left it out
 * of a summary. */
static enum status check_operation(struct metadata_change *c, struct snapshot *s)
{
	static const char *const known[] = {"append", "replace", "overwrite", "delete"};
	if (c->m->format_version < 2 && !s->operation.p) {
		s->operation = s->n_summary > 0 ? STRV("overwrite") : s->operation;
		return ST_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strv_eq(s->operation, strv_of(known[i])))
			return ST_OK;
	return err_set(c->err, ST_VALIDATION, "snapshot.summary.operation",
		       "must be append, replace, overwrite or delete: %.*s",
		       STRV_ARG(strv_sub(s->operation, 0, 64)));
}

static enum status add_snapshot(struct metadata_change *c, const struct snapshot *given)
{
	struct snapshot own = *given;
	const struct snapshot *s = &own;
	struct metadata *m = c->m;
	struct metasnap *block = NULL;
	const char *missing = !m->schemas.n  ? "schema"
			      : !m->specs.n  ? "partition spec"
			      : !m->orders.n ? "sort order"
					     : NULL;
	int64_t next;
	enum status st;
	if (missing)
		return err_set(c->err, ST_VALIDATION, "snapshot",
			       "Attempting to add a snapshot before a %s is added", missing);
	if (metadata_snapshot(m, s->snapshot_id))
		return err_set(c->err, ST_VALIDATION, "snapshot.snapshot-id",
			       "Snapshot already exists for id: %lld", (long long)s->snapshot_id);
	if (s->schema_id != SCHEMA_ID_NONE && !metadata_schema_by_id(m, s->schema_id))
		return err_set(c->err, ST_VALIDATION, "snapshot.schema-id",
			       "Cannot add a snapshot with unknown schema: %d", (int)s->schema_id);
	if ((st = check_operation(c, &own)) != ST_OK || (st = check_sequence(c, s)) != ST_OK ||
	    (st = check_row_ids(c, s, &next)) != ST_OK)
		return st;
	if ((st = metasnap_new(s, &block, c->err)) != ST_OK)
		return st;
	if (!metasnap_append(&m->snapshots, block, &m->arena) ||
	    !push_id(c, &c->added, &c->n_added, &c->cap_added, s->snapshot_id))
		return metadata_limit(c->err);
	if (s->sequence_number > m->last_sequence_number)
		m->last_sequence_number = s->sequence_number;
	m->next_row_id = next;
	c->changed = true;
	return ST_OK;
}

static void remove_parts(struct metapart_list *l, const int64_t *ids, size_t n)
{
	size_t keep = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (bsearch(&l->v[i]->key, ids, n, sizeof *ids, cmp_i64))
			metapart_unref(l->v[i]);
		else
			l->v[keep++] = l->v[i];
	}
	l->n = keep;
}

/* Refs at the removed snapshots are looked at when all updates are through: a later one may move
 * or remove them. */
static enum status remove_snapshots(struct metadata_change *c, const int64_t *ids, size_t n)
{
	struct metadata *m = c->m;
	size_t from = c->n_removed, gone;
	if (n == 0)
		return ST_OK;
	for (size_t i = 0; i < n; i++)
		if (!push_id(c, &c->removed, &c->n_removed, &c->cap_removed, ids[i]))
			return metadata_limit(c->err);
	qsort(c->removed + from, n, sizeof *ids, cmp_i64);
	if (!metasnap_remove(&m->snapshots, c->removed + from, n, &m->arena, &gone))
		return metadata_limit(c->err);
	if (gone == 0) {
		c->n_removed = from;
		return ST_OK;
	}
	remove_parts(&m->stats, c->removed + from, n);
	remove_parts(&m->pstats, c->removed + from, n);
	qsort(c->removed, c->n_removed, sizeof *ids, cmp_i64);
	c->changed = true;
	return ST_OK;
}

/* Clients send an update for each snapshot that expires: those in a row go in one pass. */
static enum status remove_run(struct metadata_change *c, const struct update *updates, size_t n,
			      size_t *io_i)
{
	size_t all = 0, end = *io_i;
	for (; end < n && updates[end].kind == UPDATE_REMOVE_SNAPSHOTS; end++)
		all += updates[end].u.snapshot_ids.n;
	int64_t *ids = arena_calloc(&c->scratch, all + 1, sizeof *ids);
	if (!ids)
		return metadata_limit(c->err);
	all = 0;
	for (size_t i = *io_i; i < end; i++)
		for (size_t k = 0; k < updates[i].u.snapshot_ids.n; k++)
			ids[all++] = updates[i].u.snapshot_ids.v[k];
	*io_i = end - 1;
	return remove_snapshots(c, ids, all);
}

/* ---- refs ---- */

static bool ref_eq(const struct snapshot_ref *x, const struct snapshot_ref *y)
{
	return x->snapshot_id == y->snapshot_id && x->tag == y->tag &&
	       x->min_snapshots_to_keep == y->min_snapshots_to_keep &&
	       x->max_snapshot_age_ms == y->max_snapshot_age_ms &&
	       x->max_ref_age_ms == y->max_ref_age_ms;
}

static enum status move_main(struct metadata_change *c, const struct snapshot *s)
{
	struct metadata *m = c->m;
	int64_t ts = s->timestamp_ms;
	if (s->snapshot_id == m->current_snapshot_id)
		return ST_OK; /* only its retention changes */
	/* A snapshot made elsewhere or earlier becomes current now, by the clock of the log. */
	if (!has_id(c->added, c->n_added, s->snapshot_id)) {
		ts = c->ctx->now_ms;
		if (ts < m->last_updated_ms)
			ts = m->last_updated_ms;
		if (m->n_slog > 0 && ts < m->slog[m->n_slog - 1].timestamp_ms)
			ts = m->slog[m->n_slog - 1].timestamp_ms;
	}
	m->current_snapshot_id = s->snapshot_id;
	return metadata_put_slog(m, ts, s->snapshot_id) &&
			       push_id(c, &c->mains, &c->n_mains, &c->cap_mains, s->snapshot_id)
		       ? ST_OK
		       : metadata_limit(c->err);
}

static enum status set_ref(struct metadata_change *c, const struct snapshot_ref *r)
{
	const struct snapshot_ref *old = metadata_ref_by_name(c->m, r->name);
	const struct snapshot *s = metadata_snapshot(c->m, r->snapshot_id);
	enum status st = snapshot_ref_check(r, ST_VALIDATION, c->err);
	if (st != ST_OK)
		return st;
	if (!s)
		return err_set(c->err, ST_VALIDATION, "snapshot-id",
			       "Cannot set %.*s to unknown snapshot: %lld",
			       STRV_ARG(strv_sub(r->name, 0, 64)), (long long)r->snapshot_id);
	if (old && ref_eq(old, r))
		return ST_OK;
	/* A replacement takes main away, may give its columns any type, and brings rows of its own. */
	if (strv_eq(r->name, SNAPSHOT_REF_MAIN) && !old && c->base &&
	    c->base->current_snapshot_id != SNAPSHOT_NONE &&
	    c->m->current_schema_id != c->base->current_schema_id &&
	    !has_id(c->added, c->n_added, r->snapshot_id))
		return err_set(c->err, ST_VALIDATION, "snapshot-id",
			       "Cannot put main back on snapshot %lld: the schema was replaced",
			       (long long)r->snapshot_id);
	if (!metadata_put_ref(c->m, r))
		return metadata_limit(c->err);
	c->changed = true;
	return strv_eq(r->name, SNAPSHOT_REF_MAIN) ? move_main(c, s) : ST_OK;
}

static enum status remove_ref(struct metadata_change *c, struct strv name)
{
	struct metadata *m = c->m;
	size_t i = metadata_ref_index(m, name);
	if (i == m->n_refs)
		return ST_OK;
	m->n_refs--;
	memmove(m->snapshot_refs + i, m->snapshot_refs + i + 1,
		(m->n_refs - i) * sizeof *m->snapshot_refs);
	if (strv_eq(name, SNAPSHOT_REF_MAIN))
		m->current_snapshot_id = SNAPSHOT_NONE;
	c->changed = true;
	return ST_OK;
}

/* ---- statistics, encryption keys ---- */

static enum status set_stats(struct metadata_change *c, struct metapart_list *l,
			     int64_t snapshot_id, struct strv path, struct strv json)
{
	struct metapart *p = NULL;
	if (!metadata_snapshot(c->m, snapshot_id))
		return err_set(c->err, ST_VALIDATION, "statistics.snapshot-id",
			       "Cannot set statistics of unknown snapshot: %lld",
			       (long long)snapshot_id);
	enum status st = metapart_text(json, snapshot_id, path, &p, c->err);
	if (st != ST_OK)
		return st;
	c->changed = true;
	size_t at = metapart_list_index(l, snapshot_id);
	if (at == l->n)
		return metapart_list_add(l, p, &c->m->arena) ? ST_OK : metadata_limit(c->err);
	/* In place of the first; a foreign document may hold more than one. */
	metapart_unref(l->v[at]);
	l->v[at] = p;
	for (size_t i = l->n; --i > at;)
		if (l->v[i]->key == snapshot_id)
			metapart_list_remove(l, i);
	return ST_OK;
}

static void remove_stats(struct metadata_change *c, struct metapart_list *l, int64_t snapshot_id)
{
	size_t before = l->n;
	remove_parts(l, &snapshot_id, 1);
	c->changed |= l->n != before;
}

static size_t key_index(const struct metadata *m, struct strv key_id)
{
	size_t i = 0;
	while (i < m->keys.n && !strv_eq(m->keys.v[i]->name, key_id))
		i++;
	return i;
}

static enum status add_key(struct metadata_change *c, struct strv key_id, struct strv json)
{
	struct metadata *m = c->m;
	struct metapart *p = NULL;
	if (m->format_version < 3)
		return err_set(c->err, ST_VALIDATION, "encryption-key",
			       "Encryption keys are not supported until v3");
	if (key_index(m, key_id) < m->keys.n)
		return ST_OK;
	enum status st = metapart_text(json, 0, key_id, &p, c->err);
	if (st != ST_OK)
		return st;
	c->changed = true;
	return metapart_list_add(&m->keys, p, &m->arena) ? ST_OK : metadata_limit(c->err);
}

static enum status apply_one(struct metadata_change *c, const struct update *u)
{
	struct metadata *m = c->m;
	size_t i;
	switch (u->kind) {
	case UPDATE_ASSIGN_UUID:
		return assign_uuid(c, u->u.uuid);
	case UPDATE_UPGRADE_FORMAT_VERSION:
		return upgrade(c, u->u.format_version);
	case UPDATE_SET_LOCATION:
		return set_location(c, u->u.text);
	case UPDATE_SET_PROPERTIES:
		return set_properties(c, u->u.properties.v, u->u.properties.n);
	case UPDATE_REMOVE_PROPERTIES:
		return remove_properties(c, u->u.keys.v, u->u.keys.n);
	case UPDATE_ADD_SNAPSHOT:
		return add_snapshot(c, u->u.snapshot);
	case UPDATE_SET_SNAPSHOT_REF:
		return set_ref(c, &u->u.ref);
	case UPDATE_REMOVE_SNAPSHOT_REF:
		return remove_ref(c, u->u.text);
	case UPDATE_SET_STATISTICS:
		return set_stats(c, &m->stats, u->u.stats.snapshot_id, u->u.stats.path,
				 u->u.stats.json);
	case UPDATE_SET_PARTITION_STATISTICS:
		return set_stats(c, &m->pstats, u->u.stats.snapshot_id, u->u.stats.path,
				 u->u.stats.json);
	case UPDATE_REMOVE_STATISTICS:
		remove_stats(c, &m->stats, u->u.stats.snapshot_id);
		return ST_OK;
	case UPDATE_REMOVE_PARTITION_STATISTICS:
		remove_stats(c, &m->pstats, u->u.stats.snapshot_id);
		return ST_OK;
	case UPDATE_ADD_ENCRYPTION_KEY:
		return add_key(c, u->u.key.key_id, u->u.key.json);
	case UPDATE_REMOVE_ENCRYPTION_KEY:
		i = key_index(m, u->u.text);
		if (i < m->keys.n) {
			metapart_list_remove(&m->keys, i);
			c->changed = c->removed_keys = true;
		}
		return ST_OK;
	default:
		return metadata_shape(c, u);
	}
}

/* ---- finishing ---- */

/* Whether what a snapshot names was there until this request: with the base, or when the snapshot came. A
 * foreign document may name what was gone already. */
static bool had_schema(const struct metadata_change *c, const struct snapshot *s)
{
	return has_id(c->added, c->n_added, s->snapshot_id) ||
	       (c->base && metadata_schema_by_id(c->base, s->schema_id));
}

static bool had_key(const struct metadata_change *c, const struct snapshot *s)
{
	return has_id(c->added, c->n_added, s->snapshot_id) ||
	       (c->base && key_index(c->base, s->key_id) < c->base->keys.n);
}

static enum status check_schemas(struct metadata_change *c)
{
	const struct metadata *m = c->m;
	for (size_t i = 0; c->gone_schema >= 0 && i < m->snapshots.n; i++) {
		const struct snapshot *s = metasnap_at(&m->snapshots, i);
		if (s->schema_id != SCHEMA_ID_NONE && !metadata_schema_by_id(m, s->schema_id) &&
		    had_schema(c, s))
			return err_set(c->err, ST_COMMIT_FAILED, "updates",
				       "Cannot remove schema %d: snapshot %lld uses it",
				       (int)s->schema_id, (long long)s->snapshot_id);
	}
	return ST_OK;
}

/* Without its key a manifest list, or another key, is noise for ever. */
static enum status check_keys(struct metadata_change *c)
{
	const struct metadata *m = c->m;
	for (size_t i = 0; c->removed_keys && i < m->snapshots.n; i++) {
		const struct snapshot *s = metasnap_at(&m->snapshots, i);
		if (s->key_id.p && key_index(m, s->key_id) == m->keys.n && had_key(c, s))
			return err_set(c->err, ST_COMMIT_FAILED, "updates",
				       "Cannot remove encryption key %.*s: snapshot %lld uses it",
				       STRV_ARG(strv_sub(s->key_id, 0, 64)),
				       (long long)s->snapshot_id);
	}
	for (size_t i = 0; c->removed_keys && i < m->keys.n; i++) {
		struct jdoc *doc = NULL;
		struct strv by = {NULL, 0};
		bool has = false;
		enum status st = jdoc_parse(strv_bytes(m->keys.v[i]->json), ST_VALIDATION, &doc, c->err);
		if (st == ST_OK)
			st = jval_opt_str(jdoc_root(doc), "encrypted-by-id", ST_VALIDATION, &by, &has,
					  c->err);
		/* One that the table never held is a key service's. */
		if (st == ST_OK && has && key_index(m, by) == m->keys.n && c->base &&
		    key_index(c->base, by) < c->base->keys.n)
			st = err_set(c->err, ST_COMMIT_FAILED, "updates",
				     "Cannot remove encryption key %.*s: key %.*s is encrypted by it",
				     STRV_ARG(strv_sub(by, 0, 64)),
				     STRV_ARG(strv_sub(m->keys.v[i]->name, 0, 64)));
		jdoc_free(doc);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

/* A ref may not lose its snapshot: expiry carries no requirement and may race with a new tag. */
static enum status check_removed(struct metadata_change *c)
{
	const struct metadata *m = c->m;
	for (size_t i = 0; i < m->n_refs; i++) {
		int64_t id = m->snapshot_refs[i].snapshot_id;
		if (was_removed(c, id) && !metadata_snapshot(m, id))
			return err_set(
				c->err, ST_COMMIT_FAILED, "updates",
				"Cannot remove snapshot %lld: it is still referenced by %.*s",
				(long long)id, STRV_ARG(strv_sub(m->snapshot_refs[i].name, 0, 64)));
	}
	enum status st = check_schemas(c);
	return st == ST_OK ? check_keys(c) : st;
}

/* History as time travel reads it: snapshots that were current only inside this request never were;
 * what precedes a removed snapshot is unknown. */
static enum status finish_slog(struct metadata_change *c)
{
	struct metadata *m = c->m;
	bool removed = c->n_removed > 0, passing = false;
	for (size_t i = 0; i < c->n_mains; i++)
		passing |= c->mains[i] != m->current_snapshot_id &&
			   has_id(c->added, c->n_added, c->mains[i]);
	if (!passing && !removed)
		return ST_OK;
	size_t keep = 0, hint = 0;
	for (size_t i = 0; i < m->n_slog; i++) {
		int64_t id = m->slog[i].snapshot_id;
		size_t at = was_removed(c, id) && !metadata_snapshot(m, id)
				    ? METASNAP_NOT_FOUND
				    : metasnap_find(&m->snapshots, id, hint);
		if (at == METASNAP_NOT_FOUND) {
			if (removed)
				keep = 0;
			continue;
		}
		hint = at + 1;
		if (passing && id != m->current_snapshot_id && has_id(c->mains, c->n_mains, id) &&
		    has_id(c->added, c->n_added, id))
			continue;
		m->slog[keep++] = m->slog[i];
	}
	m->n_slog = keep;
	/* A foreign document may have had no log at all. */
	if (keep > 0 && m->current_snapshot_id != SNAPSHOT_NONE &&
	    m->slog[keep - 1].snapshot_id != m->current_snapshot_id)
		return err_set(c->err, ST_VALIDATION, "snapshot-log",
			       "Cannot set invalid snapshot log: latest entry is not the current "
			       "snapshot");
	return ST_OK;
}

static enum status finish_mlog(struct metadata_change *c)
{
	struct metadata *m = c->m;
	if (!c->base || c->ctx->base_location.n == 0)
		return ST_OK;
	if (!metadata_put_mlog(m, c->base->last_updated_ms, c->ctx->base_location))
		return metadata_limit(c->err);
	int64_t max = metadata_log_max(m);
	size_t keep = (uint64_t)max > SIZE_MAX ? SIZE_MAX : (size_t)max;
	if (m->n_mlog > keep) {
		m->mlog += m->n_mlog - keep;
		m->cap_mlog = m->n_mlog = keep;
	}
	return ST_OK;
}

/* The clock never runs behind what the table has seen, whoever wrote it. */
static void finish_time(struct metadata_change *c)
{
	struct metadata *m = c->m;
	int64_t ts = c->ctx->now_ms;
	if (c->base && ts < c->base->last_updated_ms)
		ts = c->base->last_updated_ms;
	if (m->n_slog > 0 && ts < m->slog[m->n_slog - 1].timestamp_ms)
		ts = m->slog[m->n_slog - 1].timestamp_ms;
	for (size_t i = 0; i < c->n_added; i++) {
		const struct snapshot *s = metadata_snapshot(m, c->added[i]);
		const struct snapshot *parent = s ? metadata_parent(m, s) : NULL;
		if (parent && ts < parent->timestamp_ms)
			ts = parent->timestamp_ms;
	}
	m->last_updated_ms = ts;
}

static enum status finish(struct metadata_change *c)
{
	enum status st;
	metadata_settle_properties(c->m);
	if ((st = check_removed(c)) != ST_OK || (st = finish_slog(c)) != ST_OK ||
	    (st = finish_mlog(c)) != ST_OK)
		return st;
	finish_time(c);
	if ((st = metadata_check(c->m, ST_VALIDATION, c->err)) != ST_OK ||
	    (st = metadata_check_bindings(c->m, ST_VALIDATION, c->err)) != ST_OK)
		return st;
	return metadata_json_size(c->m) > METADATA_MAX_BYTES ? metadata_limit(c->err) : ST_OK;
}

/* An empty table at the version that the request names first. */
static struct metadata *start(const struct update *updates, size_t n,
			      const struct metadata_ctx *ctx)
{
	struct metadata *m = metadata_blank();
	m->format_version = METADATA_VERSION_DEFAULT;
	for (size_t i = 0; i < n; i++) {
		int32_t version = updates[i].u.format_version;
		if (updates[i].kind != UPDATE_UPGRADE_FORMAT_VERSION)
			continue;
		/* A version out of range fails when the update is applied. */
		if (version >= 1 && version <= METADATA_VERSION_MAX)
			m->format_version = version;
		break;
	}
	m->uuid = ctx->new_uuid;
	m->has_uuid = true;
	return m;
}

enum status metadata_apply(const struct metadata *base, const struct update *updates, size_t n,
			   const struct metadata_ctx *ctx, struct metadata **ret_m,
			   bool *ret_changed, struct err *err)
{
	struct metadata_change c = {
		.base = base,
		.ctx = ctx,
		.err = err,
		.changed = !base,
		.last_schema = -1,
		.last_spec = -1,
		.last_order = -1,
		.gone_schema = -1,
		.gone_spec = -1,
	};
	enum status st = ST_OK;
	if (!base)
		c.m = start(updates, n, ctx);
	else if ((st = metadata_copy(base, &c.m, err)) != ST_OK)
		return st;
	arena_init(&c.scratch, METADATA_MAX_BYTES);
	for (size_t i = 0; i < n && st == ST_OK; i++) {
		st = updates[i].kind == UPDATE_REMOVE_SNAPSHOTS ? remove_run(&c, updates, n, &i)
								 : apply_one(&c, &updates[i]);
		if (st != ST_OK)
			err_prefix(err, "updates[%zu]", i);
	}
	if (st == ST_OK && c.changed)
		st = finish(&c);
	arena_fini(&c.scratch);
	if (st != ST_OK || !c.changed) {
		metadata_unref(c.m);
		c.m = st == ST_OK ? metadata_ref(base) : NULL;
	}
	if (st == ST_OK) {
		*ret_m = c.m;
		*ret_changed = c.changed;
	}
	return st;
}
