/* What must hold between the members of a metadata version, whoever made it. */
#include <stdlib.h>

#include "proto/iceberg/metadata_int.h"

/* Clocks of several writers stand in the logs; the reference implementation allows this much. */
#define SKEW_MS ((int64_t)60000)

static enum status check_main(const struct metadata *m, enum status bad, struct err *err)
{
	const struct snapshot_ref *main_ref = metadata_ref_by_name(m, SNAPSHOT_REF_MAIN);
	if (m->current_snapshot_id == SNAPSHOT_NONE)
		return main_ref ? err_set(err, bad, "refs",
					  "Current snapshot is not set, but main branch exists: "
					  "%lld",
					  (long long)main_ref->snapshot_id)
				: ST_OK;
	if (!main_ref || main_ref->snapshot_id != m->current_snapshot_id)
		return err_set(err, bad, "refs",
			       "Current snapshot ID does not match main branch (%lld != %lld)",
			       (long long)m->current_snapshot_id,
			       main_ref ? (long long)main_ref->snapshot_id : -1LL);
	return ST_OK;
}

static enum status check_logs(const struct metadata *m, enum status bad, struct err *err)
{
	/* Differences of arbitrary stored times may not fit in 64 bits. */
	int64_t last = INT64_MIN + SKEW_MS;
	for (size_t i = 0; i < m->n_slog; last = m->slog[i++].timestamp_ms)
		if (m->slog[i].timestamp_ms < last - SKEW_MS || m->slog[i].timestamp_ms < 0)
			return err_set(err, bad, "snapshot-log",
				       "Expected sorted snapshot log entries.");
	if (m->n_slog > 0 && m->last_updated_ms < last - SKEW_MS)
		return err_set(
			err, bad, "last-updated-ms",
			"Invalid update timestamp %lld: before last snapshot log entry at %lld",
			(long long)m->last_updated_ms, (long long)last);
	last = INT64_MIN + SKEW_MS;
	for (size_t i = 0; i < m->n_mlog; last = m->mlog[i++].timestamp_ms)
		if (m->mlog[i].timestamp_ms < last - SKEW_MS || m->mlog[i].timestamp_ms < 0)
			return err_set(err, bad, "metadata-log",
				       "Expected sorted previous metadata log entries.");
	if (m->n_mlog > 0 && m->last_updated_ms < last - SKEW_MS)
		return err_set(
			err, bad, "last-updated-ms",
			"Invalid update timestamp %lld: before the latest metadata log entry "
			"timestamp %lld",
			(long long)m->last_updated_ms, (long long)last);
	return ST_OK;
}

static bool unique(const struct metapart_list *l)
{
	for (size_t i = 1; i < l->n; i++)
		for (size_t k = 0; k < i; k++)
			if (l->v[i]->key == l->v[k]->key)
				return false;
	return true;
}

enum status metadata_check(const struct metadata *m, enum status bad, struct err *err)
{
	if (!metadata_schema(m))
		return err_set(err, bad, "current-schema-id",
			       "Cannot find schema with current-schema-id=%d from schemas",
			       (int)m->current_schema_id);
	if (!metadata_spec(m))
		return err_set(err, bad, "default-spec-id",
			       "Cannot find the default partition spec: default-spec-id=%d",
			       (int)m->default_spec_id);
	if (!metadata_sort_order(m))
		return err_set(err, bad, "default-sort-order-id",
			       "Cannot find the default sort order: default-sort-order-id=%d",
			       (int)m->default_order_id);
	if (m->format_version >= 2 && !m->has_uuid)
		return err_set(err, bad, "table-uuid", "UUID is required in format v%d",
			       m->format_version);
	if (m->location.n == 0)
		return err_set(err, bad, "location", "Invalid location: null or empty");
	if (m->last_sequence_number < 0 || (m->format_version == 1 && m->last_sequence_number != 0))
		return err_set(err, bad, "last-sequence-number",
			       "Sequence number must be 0 in v1 and never negative: %lld",
			       (long long)m->last_sequence_number);
	if (m->next_row_id < 0)
		return err_set(err, bad, "next-row-id",
			       "Invalid next-row-id (cannot be negative): %lld",
			       (long long)m->next_row_id);
	enum status st = check_main(m, bad, err);
	return st == ST_OK ? check_logs(m, bad, err) : st;
}

enum status metadata_check_bindings(const struct metadata *m, enum status bad, struct err *err)
{
	const struct schema *schema = metadata_schema(m);
	enum status st = partition_check_schema(metadata_spec(m), schema, err);
	const char *where = "partition-specs";
	if (st == ST_OK) {
		st = sort_check(metadata_sort_order(m), schema, err);
		where = "sort-orders";
	}
	if (st == ST_OK)
		return ST_OK;
	if (err && st == ST_VALIDATION)
		err->st = bad;
	err_prefix(err, "%s", where);
	return st == ST_VALIDATION ? bad : st;
}

static int cmp_i64(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
	return (a > b) - (a < b);
}

static enum status check_refs(const struct metadata *m, const int64_t *ids, enum status bad,
			      struct err *err)
{
	for (size_t i = 0; i < m->n_refs; i++)
		if (!bsearch(&m->snapshot_refs[i].snapshot_id, ids, m->snapshots.n, sizeof *ids,
			     cmp_i64))
			return err_set(err, bad, "refs",
				       "Snapshot for reference %.*s does not exist in the existing "
				       "snapshots list",
				       STRV_ARG(strv_sub(m->snapshot_refs[i].name, 0, 64)));
	return ST_OK;
}

enum status metadata_check_lists(const struct metadata *m, enum status bad, struct err *err)
{
	if (!unique(&m->schemas))
		return err_set(err, bad, "schemas", "Two schemas have the same schema-id");
	if (!unique(&m->specs))
		return err_set(err, bad, "partition-specs", "Two specs have the same spec-id");
	if (!unique(&m->orders))
		return err_set(err, bad, "sort-orders", "Two sort orders have the same order-id");
	struct arena scratch;
	arena_init(&scratch, METADATA_MAX_BYTES);
	size_t n = m->snapshots.n;
	int64_t *ids = arena_calloc(&scratch, n, sizeof *ids);
	enum status st = ids ? ST_OK : metadata_limit(err);
	for (size_t i = 0; i < n && st == ST_OK; i++) {
		const struct snapshot *s = metasnap_at(&m->snapshots, i);
		ids[i] = s->snapshot_id;
		if (s->sequence_number > m->last_sequence_number)
			st = err_set(err, bad, "snapshots",
				     "Invalid snapshot with sequence number %lld greater than last "
				     "sequence number %lld",
				     (long long)s->sequence_number,
				     (long long)m->last_sequence_number);
	}
	if (st == ST_OK)
		qsort(ids, n, sizeof *ids, cmp_i64);
	for (size_t i = 1; i < n && st == ST_OK; i++)
		if (ids[i] == ids[i - 1])
			st = err_set(err, bad, "snapshots", "Two snapshots have the same id: %lld",
				     (long long)ids[i]);
	if (st == ST_OK)
		st = check_refs(m, ids, bad, err);
	arena_fini(&scratch);
	return st;
}
