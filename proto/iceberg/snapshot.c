#include "proto/iceberg/snapshot.h"

#include "proto/base/json.h"
#include "proto/base/jspan.h"
#include "proto/base/jwrite.h"

static const char *const known[] = {
	"snapshot-id",  "parent-snapshot-id", "sequence-number", "timestamp-ms",
	"summary",      "manifest-list",      "manifests",       "schema-id",
	"first-row-id", "added-rows",         "key-id",          NULL,
};

static enum status limit(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the snapshot exceeds the memory limit");
}

/* Fields whose "absent" is a constant, before members are read. */
static struct snapshot blank(void)
{
	return (struct snapshot){
		.parent_id = SNAPSHOT_NONE,
		.schema_id = SCHEMA_ID_NONE,
		.first_row_id = ROW_ID_NONE,
		.added_rows = ROW_ID_NONE,
	};
}

/* Rules of the format that both sources of a snapshot share. */
static enum status check(struct snapshot *s, enum status bad, struct err *err)
{
	if (s->snapshot_id == SNAPSHOT_NONE || s->snapshot_id == -1)
		return err_set(err, bad, "snapshot-id", "Invalid snapshot-id: %lld",
			       (long long)s->snapshot_id);
	if (s->sequence_number < 0)
		return err_set(err, bad, "sequence-number",
			       "Invalid sequence-number (cannot be negative): %lld",
			       (long long)s->sequence_number);
	/* Some writers store -1 for "none". */
	if (s->parent_id == -1)
		s->parent_id = SNAPSHOT_NONE;
	if (s->first_row_id == ROW_ID_NONE) {
		s->added_rows = ROW_ID_NONE;
		return ST_OK;
	}
	if (s->first_row_id < 0)
		return err_set(err, bad, "first-row-id",
			       "Invalid first-row-id (cannot be negative): %lld",
			       (long long)s->first_row_id);
	if (s->added_rows == ROW_ID_NONE)
		return err_set(err, bad, "added-rows",
			       "Invalid added-rows (required when first-row-id is set): null");
	if (s->added_rows < 0)
		return err_set(err, bad, "added-rows",
			       "Invalid added-rows (cannot be negative): %lld",
			       (long long)s->added_rows);
	return ST_OK;
}

/* Sorts one summary entry into the operation or the list. */
static void take_summary(struct snapshot *s, struct strv_pair *pairs, struct strv_pair kv)
{
	if (strv_eq(kv.key, STRV("operation")))
		s->operation = kv.value;
	else
		pairs[s->n_summary++] = kv;
	s->summary = pairs;
}

static enum status parse_summary(const struct jspan *v, enum status bad, struct arena *a,
				 struct snapshot *s, struct err *err)
{
	struct strv_pair *pairs = arena_calloc(a, v->count, sizeof *pairs), kv;
	if (!pairs)
		return limit(err);
	for (struct jspan_iter it = jspan_iter(v); jspan_next(&it);) {
		if (it.val->kind != JSPAN_STRING)
			return err_set(err, bad, "summary", "summary values must be strings");
		if (!jspan_str(it.key, a, &kv.key) || !jspan_str(it.val, a, &kv.value))
			return limit(err);
		take_summary(s, pairs, kv);
	}
	if (v->count > 0 && !s->operation.p)
		s->operation = STRV("overwrite");
	return ST_OK;
}

static enum status parse_manifests(const struct jspan *v, int format_version, enum status bad,
				   struct snapshot *s, struct err *err)
{
	const struct jspan *list = jspan_get(v, "manifests");
	if (s->manifest_list.p)
		return ST_OK;
	if (format_version > 1 || !jspan_is(list, JSPAN_ARRAY))
		return err_set(err, bad, "manifest-list",
			       "required field is missing: manifest-list");
	JSPAN_EACH(e, list)
	if (e->kind != JSPAN_STRING)
		return err_set(err, bad, "manifests", "manifests must be strings");
	s->manifests = jspan_text(list);
	return ST_OK;
}

enum status snapshot_parse(const struct jspan *v, int format_version, enum status bad,
			   struct arena *a, struct snapshot *ret_s, struct err *err)
{
	struct snapshot s = blank();
	const struct jspan *summary = NULL;
	enum status st;
	if (!jspan_is(v, JSPAN_OBJECT))
		return err_set(err, bad, "", "a snapshot must be an object");
	if ((st = jspan_need_i64(v, "snapshot-id", bad, &s.snapshot_id, err)) != ST_OK ||
	    (st = jspan_opt_i64(v, "parent-snapshot-id", bad, &s.parent_id, NULL, err)) != ST_OK ||
	    (st = jspan_opt_i64(v, "sequence-number", bad, &s.sequence_number, NULL, err)) !=
		    ST_OK ||
	    (st = jspan_need_i64(v, "timestamp-ms", bad, &s.timestamp_ms, err)) != ST_OK ||
	    (st = jspan_opt_i32(v, "schema-id", bad, &s.schema_id, NULL, err)) != ST_OK ||
	    (st = jspan_opt_i64(v, "first-row-id", bad, &s.first_row_id, NULL, err)) != ST_OK ||
	    (st = jspan_opt_i64(v, "added-rows", bad, &s.added_rows, NULL, err)) != ST_OK ||
	    (st = jspan_opt_str(v, "manifest-list", bad, a, &s.manifest_list, NULL, err)) !=
		    ST_OK ||
	    (st = jspan_opt_str(v, "key-id", bad, a, &s.key_id, NULL, err)) != ST_OK ||
	    (st = jspan_opt_object(v, "summary", bad, &summary, err)) != ST_OK ||
	    (st = parse_manifests(v, format_version, bad, &s, err)) != ST_OK)
		return st;
	if (!jspan_extra(v, known, a, &s.extra))
		return limit(err);
	if (summary && (st = parse_summary(summary, bad, a, &s, err)) != ST_OK)
		return st;
	if ((st = check(&s, bad, err)) != ST_OK)
		return st;
	*ret_s = s;
	return ST_OK;
}

enum status snapshot_from_jval(const struct jval *v, struct arena *a, struct snapshot *ret_s,
			       struct err *err)
{
	const enum status bad = ST_BAD_REQUEST;
	struct snapshot s = blank();
	const struct jval *summary = NULL;
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "a snapshot must be an object");
	if (jval_get(v, "parent-snapshot-id") && jval_is_null(jval_get(v, "parent-snapshot-id")))
		return err_set(err, bad, "parent-snapshot-id",
			       "Cannot parse to a long value: parent-snapshot-id: null");
	if ((st = jval_need_i64(v, "snapshot-id", bad, &s.snapshot_id, err)) != ST_OK ||
	    (st = jval_opt_i64(v, "parent-snapshot-id", bad, &s.parent_id, NULL, err)) != ST_OK ||
	    (st = jval_opt_i64(v, "sequence-number", bad, &s.sequence_number, NULL, err)) !=
		    ST_OK ||
	    (st = jval_need_i64(v, "timestamp-ms", bad, &s.timestamp_ms, err)) != ST_OK ||
	    (st = jval_opt_i32(v, "schema-id", bad, &s.schema_id, NULL, err)) != ST_OK ||
	    (st = jval_opt_i64(v, "first-row-id", bad, &s.first_row_id, NULL, err)) != ST_OK ||
	    (st = jval_opt_i64(v, "added-rows", bad, &s.added_rows, NULL, err)) != ST_OK ||
	    (st = jval_need_str(v, "manifest-list", bad, &s.manifest_list, err)) != ST_OK ||
	    (st = jval_opt_str(v, "key-id", bad, &s.key_id, NULL, err)) != ST_OK ||
	    (st = jval_opt_object(v, "summary", bad, &summary, err)) != ST_OK)
		return st;
	struct strv_pair *pairs = arena_calloc(a, jval_count(summary), sizeof *pairs), kv;
	if (!pairs)
		return limit(err);
	for (struct jval_iter it = jval_iter(summary); jval_next(&it);) {
		kv.key = it.key;
		if (!jval_as_str(it.val, &kv.value))
			return err_set(err, bad, "summary", "summary values must be strings");
		take_summary(&s, pairs, kv);
	}
	if ((st = check(&s, bad, err)) != ST_OK)
		return st;
	*ret_s = s;
	return ST_OK;
}

void snapshot_write(struct jwrite *w, const struct snapshot *s)
{
	jwrite_object(w);
	if (s->sequence_number > 0)
		jwrite_ki64(w, "sequence-number", s->sequence_number);
	jwrite_ki64(w, "snapshot-id", s->snapshot_id);
	if (s->parent_id != SNAPSHOT_NONE)
		jwrite_ki64(w, "parent-snapshot-id", s->parent_id);
	jwrite_ki64(w, "timestamp-ms", s->timestamp_ms);
	if (s->operation.p) {
		jwrite_key(w, "summary");
		jwrite_object(w);
		jwrite_kstr(w, "operation", s->operation);
		for (size_t i = 0; i < s->n_summary; i++) {
			jwrite_keyv(w, s->summary[i].key);
			jwrite_str(w, s->summary[i].value);
		}
		jwrite_end_object(w);
	}
	if (s->manifest_list.p) {
		jwrite_kstr(w, "manifest-list", s->manifest_list);
	} else {
		jwrite_key(w, "manifests");
		jwrite_raw(w, s->manifests);
	}
	if (s->schema_id != SCHEMA_ID_NONE)
		jwrite_ki64(w, "schema-id", s->schema_id);
	if (s->first_row_id != ROW_ID_NONE)
		jwrite_ki64(w, "first-row-id", s->first_row_id);
	if (s->added_rows != ROW_ID_NONE)
		jwrite_ki64(w, "added-rows", s->added_rows);
	if (s->key_id.p)
		jwrite_kstr(w, "key-id", s->key_id);
	if (s->extra.n > 0)
		jwrite_raw(w, s->extra);
	jwrite_end_object(w);
}

struct strv snapshot_summary(const struct snapshot *s, const char *key)
{
	struct strv want = strv_of(key);
	if (strv_eq(want, STRV("operation")))
		return s->operation;
	for (size_t i = 0; i < s->n_summary; i++)
		if (strv_eq(s->summary[i].key, want))
			return s->summary[i].value;
	return (struct strv){NULL, 0};
}

enum status snapshot_ref_check(const struct snapshot_ref *r, enum status bad, struct err *err)
{
	if (r->name.n == 0)
		return err_set(err, bad, "ref-name", "Invalid reference name: empty");
	if (r->tag && strv_eq(r->name, SNAPSHOT_REF_MAIN))
		return err_set(err, bad, "type", "Cannot set main as a tag: it must be a branch");
	if (r->tag && (r->min_snapshots_to_keep != 0 || r->max_snapshot_age_ms != 0))
		return err_set(
			err, bad,
			r->min_snapshots_to_keep ? "min-snapshots-to-keep" : "max-snapshot-age-ms",
			"Tags do not support setting %s",
			r->min_snapshots_to_keep ? "minSnapshotsToKeep" : "maxSnapshotAgeMs");
	if (r->min_snapshots_to_keep < 0)
		return err_set(err, bad, "min-snapshots-to-keep",
			       "Min snapshots to keep must be greater than 0");
	if (r->max_snapshot_age_ms < 0)
		return err_set(err, bad, "max-snapshot-age-ms",
			       "Max snapshot age must be greater than 0 ms");
	if (r->max_ref_age_ms < 0)
		return err_set(err, bad, "max-ref-age-ms",
			       "Max reference age must be greater than 0");
	return ST_OK;
}

void snapshot_ref_write(struct jwrite *w, const struct snapshot_ref *r)
{
	jwrite_object(w);
	jwrite_ki64(w, "snapshot-id", r->snapshot_id);
	jwrite_kstr(w, "type", r->tag ? STRV("tag") : STRV("branch"));
	if (r->min_snapshots_to_keep)
		jwrite_ki64(w, "min-snapshots-to-keep", r->min_snapshots_to_keep);
	if (r->max_snapshot_age_ms)
		jwrite_ki64(w, "max-snapshot-age-ms", r->max_snapshot_age_ms);
	if (r->max_ref_age_ms)
		jwrite_ki64(w, "max-ref-age-ms", r->max_ref_age_ms);
	jwrite_end_object(w);
}
