/* Preloaded into a daemon: its wall clock is off by SHIFT_CLOCK_S seconds; the others run as they do. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts);

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	long code = syscall(SYS_clock_gettime, clock, ts);
	const char *by = getenv("SHIFT_CLOCK_S");
	if (code == 0 && clock == CLOCK_REALTIME && by)
		ts->tv_sec += strtol(by, NULL, 10);
	return (int)code;
}
