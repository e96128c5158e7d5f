/* Bodies of the view routes (REST spec: CreateViewRequest, CommitViewRequest, LoadViewResult). A
 * parsed request owns its document, from which everything is borrowed. */
#ifndef PROTO_REST_RB_VIEW_H
#define PROTO_REST_RB_VIEW_H

#include "proto/rest/rb_ident.h"

struct view;

/* Both parsers refuse a body that is larger than a view may be (ST_LIMIT). */
struct rb_view_create {
	struct jdoc *doc;
	struct strv name;
	struct strv location; /* n 0 when not given */
	const struct jval *schema;
	const struct jval *version;
	const struct strv_pair *properties;
	size_t n_properties;
};
MUST_CHECK enum status rb_view_create_parse(struct bytes body, struct arena *a,
					    struct rb_view_create *ret_req, struct err *err);

struct rb_view_commit {
	struct jdoc *doc;
	bool has_ident;
	struct rb_ident ident;
	const struct jval *requirements; /* NULL when not given */
	const struct jval *updates;
};
MUST_CHECK enum status rb_view_commit_parse(struct bytes body, struct arena *a,
					    struct rb_view_commit *ret_req, struct err *err);

/* Also the answer to create, commit and register. */
void rb_view_load_write(struct buf *b, struct strv location, const struct view *v);

#endif
