/* Room for clients that commit finished snapshots. Such a client reads the head, writes its files
 * and asks; while batches follow each other without a pause its head is always stale. After a
 * refusal the table's own batches therefore wait until it has come back, for a bounded time and at
 * most a fifth of all time. */
#ifndef DAEMON_COMMIT_FAIR_H
#define DAEMON_COMMIT_FAIR_H

#include <stdbool.h>
#include <stdint.h>

/* All zero to begin with. Times are of the loop clock, in microseconds. */
struct fair {
	int64_t refused_us; /* the last refusal that no attempt has followed; 0 = none */
	int64_t round_us;   /* from refusal to next attempt, smoothed; 0 = not measured yet */
	int64_t began_us, until_us; /* the last hold */
	bool missed;	    /* nobody came back during it */
	int64_t next_us;    /* no hold begins before */
	int64_t own_us;	    /* when a batch of transactions was last published; 0 = never */
};

/* A batch of transactions was published. Refusals count for a second after it: clients that lose
 * against each other are none of this. */
void fair_own(struct fair *f, int64_t now_us);

/* A client was refused because the head had moved: holds until it is back, at most four of its measured
 * rounds (a second when none is) and max_us; max_us alone after a hold in vain; 0 = never. Nothing when a
 * hold would exceed its share. */
void fair_refused(struct fair *f, int64_t now_us, int64_t max_us);
/* When a refusal should be told: now_us, or the earliest time at which a hold may begin with it. */
int64_t fair_wait(const struct fair *f, int64_t now_us, int64_t max_us);
/* A client's attempt arrives: ends the hold. True if there was one: the attempt goes first. */
bool fair_arrived(struct fair *f, int64_t now_us);

#endif
