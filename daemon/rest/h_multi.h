/* Commits of several tables in one request. */
#ifndef DAEMON_REST_H_MULTI_H
#define DAEMON_REST_H_MULTI_H

#include "daemon/rest/h_rest.h"
#include "proto/rest/rb_commit.h"

/* Answers the call: 204 when all changes are published, else none is. */
void h_multi_commit(struct call *own_call, const struct rb_commit *own_req);

#endif
