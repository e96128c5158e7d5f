/* systemd: readiness and watchdog. Does nothing when not started by it. The only user of
 * libsystemd. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include "daemon/app.h"

/* First step: feeds the watchdog at half its interval from the loop, also while other steps wait or
 * drain, so that a loop that hangs is seen. */
extern const struct app_step notify_step;

/* Tells systemd what the daemon does now, if that is news: READY=1 once, when it serves or when a step
 * waits for the world (a database that is away, the lock that another daemon holds), because a
 * daemon that waits works as it should; STATUS says which. */
void notify_tell(struct app *app);

void notify_stopping(void);
/* The descriptor handed over by socket activation under this name (FileDescriptorName=), or -1. */
int notify_listen_fd(const char *name);
/* As above. ILLEGAL_ARGUMENT with the name as field when it is no listening stream socket, or at an
 * address that the configuration would not allow. */
MUST_CHECK enum status notify_listen(const struct conf *c, const char *name, int *ret_fd,
				     struct err *err);

#endif
