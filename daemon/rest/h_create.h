/* Commits that create their table, for the commit routes. */
#ifndef DAEMON_REST_H_CREATE_H
#define DAEMON_REST_H_CREATE_H

#include "daemon/rest/h_rest.h"
#include "proto/rest/rb_commit.h"

/* Answers the call: 204 on the route of several tables, else the table. change and what the place
 * points at live as long as the call and own_doc. */
void h_create_commit(struct call *own_call, const struct h_place *place,
		     const struct rb_change *change, struct jdoc *own_doc);

/* The first metadata of a table that a change creates, and its file. ns_location: where the namespace
 * wants its tables; may be empty. *own_m is the caller's. */
MUST_CHECK enum status h_create_build(struct call *call, const struct h_place *place,
				      const struct rb_change *change, struct strv ns_location,
				      struct metadata **own_m, struct strv *ret_file, struct err *err);
/* A table may move only to where the store can write. */
MUST_CHECK enum status h_check_places(const struct call *call, const struct h_place *place,
				      const struct rb_change *change, struct err *err);

#endif
