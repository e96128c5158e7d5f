/* Commits that create their table, for the commit routes. */
#ifndef DAEMON_REST_H_CREATE_H
#define DAEMON_REST_H_CREATE_H

#include "daemon/rest/h_rest.h"
#include "proto/rest/rb_commit.h"

/* Answers the call: 204 on the route of several tables, else the table. change and what the place
 * points at live as long as the call and own_doc. */
void h_create_commit(struct call *own_call, const struct h_place *place,
		     const struct rb_change *change, struct jdoc *own_doc);

#endif
