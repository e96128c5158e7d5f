#include "proto/rest/rb_view.h"

#include "proto/iceberg/view.h"

static enum status open_body(struct bytes body, struct jdoc **ret_doc, struct err *err)
{
	if (body.n > VIEW_MAX_BYTES)
		return err_set(err, ST_LIMIT, "", "a view has at most %zu bytes", VIEW_MAX_BYTES);
	return rb_open(body, ret_doc, err);
}

enum status rb_view_create_parse(struct bytes body, struct arena *a,
				 struct rb_view_create *ret_req, struct err *err)
{
	struct rb_view_create r = {0};
	enum status st = open_body(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	st = rb_new_parse(root, &r.name, &r.location, err);
	if (st == ST_OK)
		st = jval_need_object(root, "schema", ST_BAD_REQUEST, &r.schema, err);
	if (st == ST_OK)
		st = jval_need_object(root, "view-version", ST_BAD_REQUEST, &r.version, err);
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

enum status rb_view_commit_parse(struct bytes body, struct arena *a,
				 struct rb_view_commit *ret_req, struct err *err)
{
	struct rb_view_commit r = {0};
	enum status st = open_body(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc), *ident = jval_get(root, "identifier");
	if (!jval_is_null(ident)) {
		r.has_ident = true;
		st = rb_ident_parse(ident, "identifier", a, &r.ident, err);
	}
	if (st == ST_OK)
		st = jval_opt_array(root, "requirements", ST_BAD_REQUEST, &r.requirements, err);
	if (st == ST_OK)
		st = jval_need_array(root, "updates", ST_BAD_REQUEST, &r.updates, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

void rb_view_load_write(struct buf *b, struct strv location, const struct view *v)
{
	buf_puts(b, "{\"metadata-location\":");
	jwrite_quote(b, location);
	buf_puts(b, ",\"metadata\":");
	view_write(b, v);
	buf_puts(b, ",\"config\":{}}");
}
