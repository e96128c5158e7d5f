/* Liveness, readiness and metrics on the admin port: GET /healthz (200 while the loop turns),
 * /readyz (503 while starting, draining or when a part says why not), /metrics. The operator's
 * routes over tables (ROUTE_admin_tables, ROUTE_admin_resume) are set by the part that knows
 * tables. */
#ifndef DAEMON_ADMIN_AD_HEALTH_H
#define DAEMON_ADMIN_AD_HEALTH_H

#include "daemon/app.h"

/* Sets the handlers; after front_routes_step. */
extern const struct app_step ad_health_step;

#endif
