#include "daemon/commit/used.h"

#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

/* Lists that are read at once. */
#define AHEAD 32

bool used_removes(const struct metadata *base, const struct metadata *fresh)
{
	for (size_t i = 0; i < metadata_spec_count(base); i++)
		if (!metadata_spec_by_id(fresh, metadata_spec_at(base, i)->spec_id))
			return true;
	return false;
}

static enum status one(const struct snapshot *s, const struct mlist *list,
		       const struct metadata *fresh, struct err *err)
{
	for (size_t i = 0; i < list->l.n; i++)
		if (!metadata_spec_by_id(fresh, list->l.rows[i].spec_id))
			return err_set(err, ST_COMMIT_FAILED, "updates",
				       "Cannot remove partition spec %d: snapshot %lld uses it",
				       (int)list->l.rows[i].spec_id, (long long)s->snapshot_id);
	return ST_OK;
}

static void ask_ahead(const struct metadata *fresh, size_t from, struct cache *c,
		      struct needs *needs)
{
	size_t n = metadata_snapshot_count(fresh);
	for (size_t i = from; i < n && i < from + AHEAD; i++) {
		const struct snapshot *s = metadata_snapshot_at(fresh, i);
		struct mlist *ignored;
		struct err unread = {0};
		/* One that cannot be read is told when it has its turn. */
		if (s->manifest_list.p)
			(void)cache_list(c, s->manifest_list, needs, &ignored, &unread);
	}
}

enum cache_answer used_specs(const struct metadata *base, const struct metadata *fresh,
			     size_t *io_snapshot, struct cache *c, struct needs *needs,
			     struct err *err)
{
	if (!used_removes(base, fresh))
		return CACHE_HAVE;
	for (; *io_snapshot < metadata_snapshot_count(fresh); ++*io_snapshot) {
		const struct snapshot *s = metadata_snapshot_at(fresh, *io_snapshot);
		struct mlist *list = NULL;
		if (!s->manifest_list.p) {
			err_set(err, ST_VALIDATION, "updates",
				"Cannot remove partition specs: snapshot %lld has no manifest list",
				(long long)s->snapshot_id);
			return CACHE_FAIL;
		}
		enum cache_answer ans = cache_list(c, s->manifest_list, needs, &list, err);
		if (ans == CACHE_WAIT)
			ask_ahead(fresh, *io_snapshot + 1, c, needs);
		if (ans == CACHE_FAIL) {
			if (err->st != ST_IO && err->st != ST_UNAVAILABLE &&
			    err->st != ST_OVERLOADED)
				err->st = ST_VALIDATION;
			err_prefix(err, "updates");
		}
		if (ans != CACHE_HAVE)
			return ans;
		if (one(s, list, fresh, err) != ST_OK)
			return CACHE_FAIL;
		needs_release(needs);
	}
	return CACHE_HAVE;
}

enum status used_list_check(const struct mlist *list, const struct metadata *m, struct err *err)
{
	for (size_t i = 0; i < list->l.n; i++)
		if (!metadata_spec_by_id(m, list->l.rows[i].spec_id))
			return err_set(err, ST_VALIDATION, "snapshot.manifest-list",
				       "partition spec %d of manifest %.*s is not in the table",
				       (int)list->l.rows[i].spec_id,
				       STRV_ARG(strv_sub(list->l.rows[i].path, 0, 96)));
	return ST_OK;
}
