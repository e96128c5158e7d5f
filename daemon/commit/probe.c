#include "daemon/commit/probe.h"

/* Order does not count. */
static struct mkey sum_of(const struct mkey *keys, size_t n)
{
	struct mkey s = {n, 0};
	for (size_t i = 0; i < n; i++) {
		s.hi += keys[i].hi;
		s.lo += keys[i].lo;
	}
	return s;
}

static struct probe *probe_of(struct needs *needs, struct mlist *list, struct mkey sum)
{
	for (struct probe *p = needs->probes; p; p = p->next)
		if (p->list == list && p->sum.hi == sum.hi && p->sum.lo == sum.lo)
			return p;
	struct probe *p = base_calloc(1, sizeof *p);
	p->list = mlist_ref(list);
	p->sum = sum;
	p->views = base_calloc(list->l.n ? list->l.n : 1, sizeof(struct mview *));
	p->next = needs->probes;
	needs->probes = p;
	return p;
}

void probe_free_all(struct needs *n)
{
	while (n->probes) {
		struct probe *p = n->probes;
		n->probes = p->next;
		for (size_t i = 0; i < p->list->l.n; i++)
			mview_unref(p->views[i]);
		mlist_unref(p->list);
		base_free(p->views);
		base_free(p);
	}
}

static bool has_any(const struct mview *v, const struct mkey *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mview_look(v, keys[i]))
			return true;
	return false;
}

enum cache_answer probe_list(struct cache *c, struct mlist *list, struct metadata *meta,
			     const struct mkey *keys, size_t n_keys, struct needs *needs,
			     const struct probe **ret_p, struct err *err)
{
	struct probe *p = probe_of(needs, list, sum_of(keys, n_keys));
	bool waiting = false;
	*ret_p = p;
	for (size_t i = p->next_row; i < list->l.n; i++) {
		const struct manifest_file *row = &list->l.rows[i];
		struct mview *v = NULL;
		if (p->views[i])
			continue;
		enum cache_answer ans = cache_index(c, list, row, meta, needs, &v, err);
		if (ans == CACHE_FAIL) {
			p->failed = row;
			return ans;
		}
		if (ans == CACHE_WAIT) {
			waiting = true;
			if (needs->full)
				break;
			continue;
		}
		p->views[i] = has_any(v, keys, n_keys) ? mview_ref(v) : mview_bare(v);
		cache_index_let(c, row, needs);
	}
	while (p->next_row < list->l.n && p->views[p->next_row])
		p->next_row++;
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}
