#include "clients/ctl/ctl_crew.h"

#include <pthread.h>
#include <stdatomic.h>

struct crew {
	void (*work)(void *ctx, size_t thread, size_t i);
	void *ctx;
	size_t n;
	atomic_size_t next;
};

struct hand {
	struct crew *crew;
	size_t no;
	pthread_t thread;
};

static void *labour(void *arg)
{
	struct hand *h = arg;
	struct crew *c = h->crew;
	for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
		c->work(c->ctx, h->no, i);
	return NULL;
}

void ctl_crew_run(size_t threads, size_t n, void (*work)(void *ctx, size_t thread, size_t i),
		  void *ctx)
{
	struct crew c = {.work = work, .ctx = ctx, .n = n};
	struct hand hands[CTL_CREW_MAX];
	size_t started = 1;
	ASSERT(threads >= 1 && threads <= CTL_CREW_MAX);
	hands[0] = (struct hand){.crew = &c};
	for (; started < threads && started < n; started++) {
		hands[started] = (struct hand){.crew = &c, .no = started};
		/* Fewer hands do the same work. */
		if (pthread_create(&hands[started].thread, NULL, labour, &hands[started]) != 0)
			break;
	}
	labour(&hands[0]);
	for (size_t i = 1; i < started; i++)
		pthread_join(hands[i].thread, NULL);
}
