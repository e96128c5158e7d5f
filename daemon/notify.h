/* systemd: readiness and watchdog. Does nothing when not started by it. The only user of
 * libsystemd. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include "daemon/app.h"

/* Last step: everything before it has started. Tells READY=1, then feeds the watchdog at half its
 * interval from the loop, so that a loop that hangs is seen. */
extern const struct app_step notify_step;

void notify_stopping(void);
/* The descriptor handed over by socket activation under this name (FileDescriptorName=), or -1. */
int notify_listen_fd(const char *name);
/* As above. ILLEGAL_ARGUMENT with the name as field when it is no listening stream socket, or at an
 * address that the configuration would not allow. */
MUST_CHECK enum status notify_listen(const struct conf *c, const char *name, int *ret_fd,
				     struct err *err);

#endif
