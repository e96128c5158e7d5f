/* Bodies of the namespace routes (REST spec: CreateNamespaceRequest and its siblings). A parsed
 * request owns its document; text is borrowed from it, arrays from the arena. */
#ifndef PROTO_REST_RB_NS_H
#define PROTO_REST_RB_NS_H

#include "proto/rest/rb_ident.h"

struct rb_ns_create {
	struct jdoc *doc;
	const struct strv *levels;
	size_t n_levels;
	const struct strv_pair *properties;
	size_t n_properties;
};
MUST_CHECK enum status rb_ns_create_parse(struct bytes body, struct arena *a,
					  struct rb_ns_create *ret_req, struct err *err);

struct rb_ns_update {
	struct jdoc *doc;
	const struct strv *removals; /* each once, in order of bytes */
	size_t n_removals;
	const struct strv_pair *updates;
	size_t n_updates;
};
/* A key that is both removed and updated is ST_UNPROCESSABLE. */
MUST_CHECK enum status rb_ns_update_parse(struct bytes body, struct arena *a,
					  struct rb_ns_update *ret_req, struct err *err);

/* Index of a key among the removals, or their number. */
size_t rb_ns_removal(const struct rb_ns_update *req, struct strv key);

/* {"namespace":[…],"properties":{…}} of create and load. properties_json: an object, verbatim. */
void rb_ns_write(struct buf *b, const struct strv *levels, size_t n, struct strv properties_json);
void rb_ns_properties_write(struct buf *b, const struct strv_pair *v, size_t n);
/* Direct children of the parent; more: another page follows the last name. */
void rb_ns_list_write(struct buf *b, const struct strv *parent, size_t n_parent,
		      const struct strv *names, size_t n, bool more, uint64_t list);
/* removed: which of the removals were there. */
void rb_ns_updated_write(struct buf *b, const struct rb_ns_update *req, const bool *removed);

#endif
