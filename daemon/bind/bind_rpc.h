/* The worker protocol on the core: the step that owns its listeners and its sink. */
#ifndef DAEMON_BIND_BIND_RPC_H
#define DAEMON_BIND_BIND_RPC_H

#include "daemon/app.h"

extern const struct app_step bind_rpc_step;

#endif
