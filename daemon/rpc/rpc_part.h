/* The worker protocol as a part of the daemon: listeners by configuration, the JSON mirror on the
 * REST port, metrics. A step that owns the sink calls these two from its start and stop. */
#ifndef DAEMON_RPC_RPC_PART_H
#define DAEMON_RPC_RPC_PART_H

#include "daemon/rpc/listen.h"

struct app;

/* Listens at rpc.listen and rpc.socket, takes ROUTE_mirror, sets app->rpc. On an error nothing is
 * left. */
MUST_CHECK enum status rpc_part_start(struct app *app, const struct rpc_sink *sink,
				      struct err *err);
/* Drains; stopped(app) is called once, later, when no connection and no request is left, the JSON
 * mirror's apart: those end with the REST port. app->rpc is NULL then. */
void rpc_part_stop(struct app *app, void (*stopped)(struct app *app));
/* NULL when nothing listens. */
const struct rpc_server *rpc_part_server(const struct app *app);

#endif
