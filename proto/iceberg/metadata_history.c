/* Snapshots and refs of a metadata version: lookup, ancestry, the refs-only list. */
#include "proto/iceberg/metadata_int.h"

int64_t metadata_current_snapshot_id(const struct metadata *m)
{
	return m->current_snapshot_id;
}

const struct snapshot *metadata_snapshot(const struct metadata *m, int64_t id)
{
	size_t i = metasnap_find(&m->snapshots, id, m->snapshots.n);
	return i == METASNAP_NOT_FOUND ? NULL : metasnap_at(&m->snapshots, i);
}

const struct snapshot *metadata_current_snapshot(const struct metadata *m)
{
	return m->current_snapshot_id == SNAPSHOT_NONE
		       ? NULL
		       : metadata_snapshot(m, m->current_snapshot_id);
}

size_t metadata_snapshot_count(const struct metadata *m)
{
	return m->snapshots.n;
}

const struct snapshot *metadata_snapshot_at(const struct metadata *m, size_t i)
{
	return metasnap_at(&m->snapshots, i);
}

const struct snapshot *metadata_parent(const struct metadata *m, const struct snapshot *s)
{
	return s->parent_id == SNAPSHOT_NONE ? NULL : metadata_snapshot(m, s->parent_id);
}

bool metadata_is_ancestor(const struct metadata *m, int64_t ancestor, int64_t of)
{
	size_t at = metasnap_find(&m->snapshots, of, m->snapshots.n);
	/* A document may hold a cycle of parents; a path is never longer than the list. */
	for (size_t steps = 0; at != METASNAP_NOT_FOUND && steps < m->snapshots.n; steps++) {
		const struct snapshot *s = metasnap_at(&m->snapshots, at);
		if (s->snapshot_id == ancestor)
			return true;
		/* The parent may be expired and yet be the one that is asked for. */
		if (s->parent_id == SNAPSHOT_NONE || s->parent_id == ancestor)
			return s->parent_id == ancestor && ancestor != SNAPSHOT_NONE;
		at = metasnap_find(&m->snapshots, s->parent_id, at);
	}
	return false;
}

/* The oldest entry of the log since when main has been on the line of its head without a break. Heads of
 * one line stand in the log in their order, so that one walk along the parents meets them all. */
static int64_t line_since(const struct metadata *m, const struct snapshot *head)
{
	int64_t since = m->n_slog ? m->slog[m->n_slog - 1].timestamp_ms : 0;
	const struct snapshot *at = head;
	size_t steps = 0;
	for (size_t i = m->n_slog; i-- > 0;) {
		while (at && at->snapshot_id != m->slog[i].snapshot_id &&
		       steps++ < m->snapshots.n)
			at = metadata_parent(m, at);
		if (!at || at->snapshot_id != m->slog[i].snapshot_id)
			return since;
		since = m->slog[i].timestamp_ms;
	}
	return since;
}

bool metadata_left(const struct metadata *m, struct strv branch, int64_t snapshot,
		   int64_t *ret_since_ms)
{
	const struct snapshot_ref *r = metadata_ref_by_name(m, branch);
	const struct snapshot *head = r ? metadata_snapshot(m, r->snapshot_id) : NULL;
	if (r && !head)
		return false;
	const struct snapshot *at = head;
	for (size_t steps = 0; at && steps <= m->snapshots.n; steps++) {
		if (at->snapshot_id == snapshot || at->parent_id == snapshot)
			return false;
		const struct snapshot *parent = metadata_parent(m, at);
		if (!parent && at->parent_id != SNAPSHOT_NONE)
			return false;
		at = parent;
	}
	if (at)
		return false; /* a cycle of parents */
	*ret_since_ms = head && strv_eq(branch, SNAPSHOT_REF_MAIN) ? line_since(m, head) : 0;
	return true;
}

const struct snapshot_ref *metadata_ref_by_name(const struct metadata *m, struct strv name)
{
	size_t i = metadata_ref_index(m, name);
	return i < m->n_refs ? &m->snapshot_refs[i] : NULL;
}

const struct snapshot_ref *metadata_refs(const struct metadata *m, size_t *ret_n)
{
	*ret_n = m->n_refs;
	return m->snapshot_refs;
}

static bool named(const struct metadata *m, int64_t id)
{
	for (size_t i = 0; i < m->n_refs; i++)
		if (m->snapshot_refs[i].snapshot_id == id)
			return true;
	return false;
}

void metadata_refs_json(const struct metadata *m, struct buf *b)
{
	bool some = false;
	for (size_t i = 0; i < m->snapshots.n; i++) {
		const struct snapshot *s = metasnap_at(&m->snapshots, i);
		if (!named(m, s->snapshot_id))
			continue;
		if (some)
			buf_putc(b, ',');
		buf_putv(b, s->raw);
		some = true;
	}
}
