#include "daemon/commit/walk.h"

#include "proto/iceberg/metadata.h"

/* Lists that are read at once. */
#define AHEAD 32

static struct mkey *slot_of(struct mkey *slots, size_t cap, struct mkey key)
{
	size_t at = (size_t)key.hi & (cap - 1);
	while ((slots[at].hi || slots[at].lo) &&
	       (slots[at].hi != key.hi || slots[at].lo != key.lo))
		at = (at + 1) & (cap - 1);
	return &slots[at];
}

static bool has_seen(const struct walk *w, struct mkey key)
{
	const struct mkey *at = w->cap_seen ? slot_of(w->seen, w->cap_seen, key) : NULL;
	return at && at->hi == key.hi && at->lo == key.lo;
}

static bool see(struct walk *w, struct mkey key)
{
	if (w->n_seen * 2 >= w->cap_seen) {
		size_t cap = w->cap_seen ? w->cap_seen * 2 : 64;
		struct mkey *more = arena_calloc(w->arena, cap, sizeof *more);
		if (!more)
			return false;
		for (size_t i = 0; i < w->cap_seen; i++)
			if (w->seen[i].hi || w->seen[i].lo)
				*slot_of(more, cap, w->seen[i]) = w->seen[i];
		w->seen = more;
		w->cap_seen = cap;
	}
	*slot_of(w->seen, w->cap_seen, key) = key;
	w->n_seen++;
	return true;
}

/* Lists of the snapshots that follow: they will be asked for soon. */
static void ask_ahead(struct walk *w, struct cache *c, struct needs *needs)
{
	size_t n = metadata_snapshot_count(w->meta), from = w->snapshot + 1;
	for (size_t i = from; i < n && i < from + AHEAD; i++) {
		const struct snapshot *s = metadata_snapshot_at(w->meta, i);
		struct mlist *ignored;
		struct err unread = {0};
		/* One that cannot be read is told when it has its turn: it is read again. */
		if (s->manifest_list.p)
			(void)cache_list(c, s->manifest_list, needs, &ignored, &unread);
	}
}

static enum cache_answer one_list(struct walk *w, struct mlist *list, struct cache *c,
				  struct needs *needs, const struct walk_told *told,
				  struct err *err)
{
	bool waiting = false;
	for (size_t i = w->row; i < list->l.n; i++) {
		const struct manifest_file *row = &list->l.rows[i];
		struct mkey key = mview_key(row->path);
		struct mview *v = NULL;
		enum cache_answer ans = CACHE_HAVE;
		bool known = has_seen(w, key);
		if (!known)
			ans = cache_view(c, list, row, w->meta, needs, &v, err);
		if (ans == CACHE_FAIL && !needs->tolerant)
			return ans;
		if (ans == CACHE_WAIT) {
			waiting = true;
			if (needs->full)
				break;
		}
		if (waiting)
			continue;
		w->row = i + 1;
		if (known)
			continue;
		told->object(told->ctx, row->path);
		for (size_t e = 0; v && e < v->m->n; e++)
			told->entry(told->ctx, &v->m->entries[e]);
		cache_view_let(c, row, needs);
		if (!see(w, key)) {
			err_set(err, ST_LIMIT, "", "the table has too many manifests");
			return CACHE_FAIL;
		}
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

enum cache_answer walk_run(struct walk *w, struct cache *c, struct needs *needs,
			   const struct walk_told *told, struct err *err)
{
	for (; w->snapshot < metadata_snapshot_count(w->meta); w->snapshot++) {
		const struct snapshot *s = metadata_snapshot_at(w->meta, w->snapshot);
		struct mlist *list = NULL;
		if (!s->manifest_list.p)
			continue;
		if (!w->listed)
			told->object(told->ctx, s->manifest_list);
		w->listed = true;
		enum cache_answer ans = cache_list(c, s->manifest_list, needs, &list, err);
		if (ans == CACHE_WAIT)
			ask_ahead(w, c, needs);
		if (ans == CACHE_HAVE)
			ans = one_list(w, list, c, needs, told, err);
		else if (ans == CACHE_FAIL && needs->tolerant)
			ans = CACHE_HAVE;
		if (ans != CACHE_HAVE)
			return ans;
		w->row = 0;
		w->listed = false;
		needs_release(needs);
	}
	for (size_t i = 0; i < metadata_statistics_count(w->meta); i++)
		told->object(told->ctx, metadata_statistics_path(w->meta, i));
	return CACHE_HAVE;
}
