/* What the core, PostgreSQL's statements and the object store have counted, for the metrics page. */
#ifndef DAEMON_BIND_BIND_METRICS_H
#define DAEMON_BIND_BIND_METRICS_H

#include "daemon/app.h"

/* After bind_core_step; copies the counters before each rendering. */
extern const struct app_step bind_metrics_step;

#endif
