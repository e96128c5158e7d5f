/* An operator's check of a table: whether everything that its refs name is there and reads. One runs at a
 * time, in the background, with a few files under way; its result stays until the next one. */
#ifndef DAEMON_BIND_TCHECK_H
#define DAEMON_BIND_TCHECK_H

#include "daemon/app.h"

/* POST admin/tables/{table-id}/check, GET admin/check. After bind_core_step. */
extern const struct app_step tcheck_step;

#endif
