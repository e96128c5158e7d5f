/* A few threads that share out numbered work. */
#ifndef CLIENTS_CTL_CTL_CREW_H
#define CLIENTS_CTL_CTL_CREW_H

#include "proto/base/base.h"

#define CTL_CREW_MAX 32

/* Calls work(ctx, thread, i) for each i < n, thread < threads, from as many threads, and returns
 * when all is done. */
void ctl_crew_run(size_t threads, size_t n, void (*work)(void *ctx, size_t thread, size_t i),
		  void *ctx);

#endif
