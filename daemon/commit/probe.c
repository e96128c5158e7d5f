#include "daemon/commit/probe.h"

#include <stdlib.h>

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

static int by_key(const void *a, const void *b)
{
	return mview_key_cmp(*(const struct mkey *)a, *(const struct mkey *)b);
}

static struct probe *probe_of(struct needs *needs, struct mlist *list, const struct mkey *keys,
			      size_t n_keys)
{
	struct mkey sum = sum_of(keys, n_keys);
	for (struct probe *p = needs->probes; p; p = p->next)
		if (p->list == list && p->sum.hi == sum.hi && p->sum.lo == sum.lo)
			return p;
	struct probe *p = base_calloc(1, sizeof *p);
	p->list = mlist_ref(list);
	p->sum = sum;
	p->keys = base_calloc(n_keys ? n_keys : 1, sizeof *p->keys);
	p->n_keys = n_keys;
	if (n_keys) {
		memcpy(p->keys, keys, n_keys * sizeof *keys);
		qsort(p->keys, n_keys, sizeof *keys, by_key);
	}
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
		base_free(p->keys);
		base_free(p);
	}
}

/* The fewer are looked for among the more: this runs on the loop, for every manifest of a list. */
static bool has_any(const struct mview *v, const struct mkey *keys, size_t n)
{
	for (size_t i = 0; v->n_files < n && i < v->n_files; i++)
		if (bsearch(&v->files[i].key, keys, n, sizeof *keys, by_key))
			return true;
	for (size_t i = 0; v->n_files >= n && i < n; i++)
		if (mview_look(v, keys[i]))
			return true;
	return false;
}

enum cache_answer probe_list(struct cache *c, struct mlist *list, struct metadata *meta,
			     const struct mkey *keys, size_t n_keys, struct needs *needs,
			     const struct probe **ret_p, struct err *err)
{
	struct probe *p = probe_of(needs, list, keys, n_keys);
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
		p->views[i] = has_any(v, p->keys, n_keys) ? mview_ref(v) : mview_bare(v);
		cache_index_let(c, row, needs);
	}
	while (p->next_row < list->l.n && p->views[p->next_row])
		p->next_row++;
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}
