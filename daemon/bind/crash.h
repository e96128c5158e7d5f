/* Crash points (crash.tbl). Outside the fault build they are nothing. FAULT_CRASH=noun.step:before
 * or :after makes the process end there by SIGKILL, at its first time. */
#ifndef DAEMON_BIND_CRASH_H
#define DAEMON_BIND_CRASH_H

#include "daemon/commit/port.h"

struct pgcat;

#ifdef FRAZIL_FAULT
void crash_point(const struct effect *e, bool after);
/* Around the catalog's statements, from now on. */
void crash_watch(struct pgcat *cat);
void crash_view_put(bool after);
#else
static inline void crash_point(const struct effect *e, bool after)
{
	(void)e;
	(void)after;
}
static inline void crash_watch(struct pgcat *cat)
{
	(void)cat;
}
static inline void crash_view_put(bool after)
{
	(void)after;
}
#endif

#endif
