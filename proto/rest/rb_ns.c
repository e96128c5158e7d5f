#include "proto/rest/rb_ns.h"

#include <stdlib.h>

enum status rb_ns_create_parse(struct bytes body, struct arena *a, struct rb_ns_create *ret_req,
			       struct err *err)
{
	struct rb_ns_create r = {0};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	st = rb_texts_parse(jval_get(root, "namespace"), "namespace", a, &r.levels, &r.n_levels,
			    err);
	if (st == ST_OK)
		st = rb_levels_check(r.levels, r.n_levels, "namespace", err);
	if (st == ST_OK)
		st = rb_pairs_parse(jval_get(root, "properties"), "properties", a, &r.properties,
				    &r.n_properties, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

static int by_text(const void *x, const void *y)
{
	return strv_cmp(*(const struct strv *)x, *(const struct strv *)y);
}

/* Drops repeated removals (the specification calls them a set) and refuses a key that is updated
 * too. Sorted, so that a body full of keys costs no more than its sorting. */
static enum status settle(struct rb_ns_update *r, struct arena *a, struct err *err)
{
	struct strv *v = arena_calloc(a, r->n_removals + 1, sizeof *v);
	size_t kept = 0;
	if (!v)
		return err_set(err, ST_LIMIT, "removals", "the request is too large");
	if (r->n_removals) {
		memcpy(v, r->removals, r->n_removals * sizeof *v);
		qsort(v, r->n_removals, sizeof *v, by_text);
	}
	for (size_t i = 0; i < r->n_removals; i++) {
		if (memchr(v[i].p, 0, v[i].n))
			return err_set(err, ST_BAD_REQUEST, "removals",
				       "keys must not hold U+0000");
		if (kept == 0 || !strv_eq(v[kept - 1], v[i]))
			v[kept++] = v[i];
	}
	for (size_t i = 0; i < r->n_updates && kept; i++)
		if (bsearch(&r->updates[i].key, v, kept, sizeof *v, by_text))
			return err_set(err, ST_UNPROCESSABLE, "updates",
				       "Cannot set and remove the same key: %.*s",
				       STRV_ARG(strv_sub(r->updates[i].key, 0, 128)));
	r->removals = v;
	r->n_removals = kept;
	return ST_OK;
}

enum status rb_ns_update_parse(struct bytes body, struct arena *a, struct rb_ns_update *ret_req,
			       struct err *err)
{
	struct rb_ns_update r = {0};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	if (!jval_is_null(jval_get(root, "removals")))
		st = rb_texts_parse(jval_get(root, "removals"), "removals", a, &r.removals,
				    &r.n_removals, err);
	if (st == ST_OK)
		st = rb_pairs_parse(jval_get(root, "updates"), "updates", a, &r.updates,
				    &r.n_updates, err);
	if (st == ST_OK)
		st = settle(&r, a, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

size_t rb_ns_removal(const struct rb_ns_update *req, struct strv key)
{
	if (req->n_removals == 0)
		return 0;
	const struct strv *hit =
		bsearch(&key, req->removals, req->n_removals, sizeof *req->removals, by_text);
	return hit ? (size_t)(hit - req->removals) : req->n_removals;
}

void rb_ns_write(struct buf *b, const struct strv *levels, size_t n, struct strv properties_json)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_key(&w, "namespace");
	rb_levels_write(&w, levels, n);
	jwrite_key(&w, "properties");
	jwrite_raw(&w, properties_json);
	jwrite_end_object(&w);
}

void rb_ns_properties_write(struct buf *b, const struct strv_pair *v, size_t n)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	for (size_t i = 0; i < n; i++) {
		jwrite_keyv(&w, v[i].key);
		jwrite_str(&w, v[i].value);
	}
	jwrite_end_object(&w);
}

void rb_ns_list_write(struct buf *b, const struct strv *parent, size_t n_parent,
		      const struct strv *names, size_t n, bool more, uint64_t list)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_key(&w, "namespaces");
	jwrite_array(&w);
	for (size_t i = 0; i < n; i++) {
		jwrite_array(&w);
		for (size_t k = 0; k < n_parent; k++)
			jwrite_str(&w, parent[k]);
		jwrite_str(&w, names[i]);
		jwrite_end_array(&w);
	}
	jwrite_end_array(&w);
	rb_next_write(&w, list, more && n ? names[n - 1] : (struct strv){NULL, 0});
	jwrite_end_object(&w);
}

void rb_ns_updated_write(struct buf *b, const struct rb_ns_update *req, const bool *removed)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_key(&w, "updated");
	jwrite_array(&w);
	for (size_t i = 0; i < req->n_updates; i++)
		jwrite_str(&w, req->updates[i].key);
	jwrite_end_array(&w);
	for (int there = 1; there >= 0; there--) {
		jwrite_key(&w, there ? "removed" : "missing");
		jwrite_array(&w);
		for (size_t i = 0; i < req->n_removals; i++)
			if (removed[i] == (there == 1))
				jwrite_str(&w, req->removals[i]);
		jwrite_end_array(&w);
	}
	jwrite_end_object(&w);
}
