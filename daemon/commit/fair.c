#include "daemon/commit/fair.h"

/* A hold of h is followed by at least 4 h without: a fifth of all time at most. */
#define SHARE 5
/* The first hold, when nobody's round is known. */
#define FIRST_US INT64_C(1000000)
/* A client that sleeps longer between attempts does not compete. */
#define ROUND_MAX_US INT64_C(60000000)

/* Transactions compete when one was published this recently. */
#define COMPETES_US INT64_C(1000000)

static bool competes(const struct fair *f, int64_t now_us)
{
	return f->own_us > 0 && now_us - f->own_us < COMPETES_US;
}

void fair_own(struct fair *f, int64_t now_us)
{
	f->own_us = now_us;
}

void fair_refused(struct fair *f, int64_t now_us, int64_t max_us)
{
	f->refused_us = now_us;
	if (max_us <= 0 || now_us < f->next_us || !competes(f, now_us))
		return;
	int64_t span = f->round_us > 0 ? 4 * f->round_us : FIRST_US;
	/* A hold that ran out was too short: each attempt that fails makes the next one longer. */
	if (span > max_us || f->missed)
		span = max_us;
	f->missed = true;
	f->began_us = now_us;
	f->until_us = now_us + span;
	f->next_us = now_us + span * SHARE;
}

int64_t fair_wait(const struct fair *f, int64_t now_us, int64_t max_us)
{
	return max_us > 0 && f->next_us > now_us && competes(f, now_us) ? f->next_us : now_us;
}

bool fair_arrived(struct fair *f, int64_t now_us)
{
	if (f->refused_us > 0) {
		int64_t round = now_us - f->refused_us;
		if (round > ROUND_MAX_US)
			round = ROUND_MAX_US;
		if (round < 1)
			round = 1;
		f->round_us = f->round_us > 0 ? (3 * f->round_us + round) / 4 : round;
		f->refused_us = 0;
	}
	if (now_us >= f->until_us)
		return false;
	f->missed = false;
	f->until_us = now_us;
	f->next_us = f->began_us + (now_us - f->began_us) * SHARE;
	return true;
}
