/* A listener that turns HTTP requests into calls, routes them and runs their handlers: one for
 * REST, one for the admin port, each a step of the app. */
#ifndef DAEMON_NET_FRONT_H
#define DAEMON_NET_FRONT_H

#include "daemon/app.h"
#include "daemon/net/call.h"

/* Makes the route table; the first step, so that later ones can set their handlers. */
extern const struct app_step front_routes_step;
/* The admin port; early, so that readiness can be asked while the rest starts. */
extern const struct app_step front_admin_step;
/* The REST port; after all that its handlers need. */
extern const struct app_step front_rest_step;

/* Where it listens (a port of 0 took a free one); out holds ADDR_TEXT_MAX bytes. */
void front_address(const struct front *f, char *out);

/* For call only. */
bool front_is_rest(const struct front *f);
/* The handler is done with the call. */
void front_release(struct call *own_call);
/* Answers for a handler that has not: call's own. */
void call_overdue(struct call *call);

#endif
