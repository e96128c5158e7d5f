#include "proto/rest/rb_commit.h"

#include <stdlib.h>

static enum status parse_change(const struct jval *v, struct arena *a, struct rb_change *ret_c,
				struct err *err)
{
	struct rb_change c = {0};
	const struct jval *ident = jval_get(v, "identifier");
	enum status st = ST_OK;
	if (!jval_is_null(ident)) {
		c.has_ident = true;
		st = rb_ident_parse(ident, "identifier", a, &c.ident, err);
	}
	if (st == ST_OK)
		st = requirement_parse(jval_get(v, "requirements"), a, &c.requirements,
				       &c.n_requirements, err);
	if (st == ST_OK)
		st = update_parse(jval_get(v, "updates"), a, &c.updates, &c.n_updates, err);
	if (st != ST_OK)
		return st;
	c.create = requirement_is_create(c.requirements, c.n_requirements);
	*ret_c = c;
	return ST_OK;
}

enum status rb_commit_parse(struct bytes body, struct arena *a, struct rb_commit *ret_req,
			    struct err *err)
{
	struct rb_commit r = {.n = 1};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	r.changes = arena_calloc(a, 1, sizeof *r.changes);
	if (!r.changes)
		st = err_set(err, ST_LIMIT, "", "the request is too large");
	else
		st = parse_change(jdoc_root(r.doc), a, r.changes, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

static int by_ident(const void *x, const void *y)
{
	const struct rb_ident *a = *(const struct rb_ident *const *)x;
	const struct rb_ident *b = *(const struct rb_ident *const *)y;
	if (a->n_levels != b->n_levels)
		return a->n_levels < b->n_levels ? -1 : 1;
	for (size_t i = 0; i < a->n_levels; i++) {
		int d = strv_cmp(a->levels[i], b->levels[i]);
		if (d)
			return d;
	}
	return strv_cmp(a->name, b->name);
}

/* The specification does not say what two changes of one table mean; guessing could lose one. */
static enum status refuse_twice(const struct rb_commit *r, struct arena *a, struct err *err)
{
	const struct rb_ident **v = arena_calloc(a, r->n, sizeof *v);
	if (!v)
		return err_set(err, ST_LIMIT, "", "the request is too large");
	for (size_t i = 0; i < r->n; i++)
		v[i] = &r->changes[i].ident;
	qsort(v, r->n, sizeof *v, by_ident);
	for (size_t i = 1; i < r->n; i++) {
		char text[128];
		if (by_ident(&v[i - 1], &v[i]) != 0)
			continue;
		rb_dotted(v[i]->levels, v[i]->n_levels, v[i]->name, text, sizeof text);
		return err_set(err, ST_BAD_REQUEST, "table-changes", "table %s is named twice",
			       text);
	}
	return ST_OK;
}

static enum status parse_changes(const struct jval *list, struct arena *a, struct rb_commit *r,
				 struct err *err)
{
	r->n = jval_count(list);
	if (r->n == 0)
		return err_set(err, ST_BAD_REQUEST, "table-changes", "must name a table");
	r->changes = arena_calloc(a, r->n, sizeof *r->changes);
	if (!r->changes)
		return err_set(err, ST_LIMIT, "", "the request is too large");
	for (size_t i = 0; i < r->n; i++) {
		const struct jval *v = jval_at(list, i);
		enum status st = ST_OK;
		if (!jval_is_object(v))
			st = err_set(err, ST_BAD_REQUEST, "", "must be an object");
		else
			st = parse_change(v, a, &r->changes[i], err);
		if (st == ST_OK && !r->changes[i].has_ident)
			st = err_set(err, ST_BAD_REQUEST, "identifier", "is missing");
		if (st != ST_OK) {
			err_prefix(err, "table-changes[%zu]", i);
			return st;
		}
	}
	return refuse_twice(r, a, err);
}

enum status rb_commit_parse_many(struct bytes body, struct arena *a, struct rb_commit *ret_req,
				 struct err *err)
{
	struct rb_commit r = {0};
	const struct jval *list;
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	st = jval_need_array(jdoc_root(r.doc), "table-changes", ST_BAD_REQUEST, &list, err);
	if (st == ST_OK)
		st = parse_changes(list, a, &r, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}
