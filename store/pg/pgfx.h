/* Executes SQL effects: collects what one turn of the loop asks for, sends items of one kind
 * together, answers every effect exactly once. Semantics of each kind: proto/commit/sqlport.h.
 *
 * Two effects on one transaction, or on one table, keep their order only if the second is
 * submitted after the first was answered; then it is a matter of course. */
#ifndef STORE_PG_PGFX_H
#define STORE_PG_PGFX_H

#include "proto/commit/sqlport.h"
#include "store/pg/pgpool.h"

struct pgfx;

/* The result and what it points at are valid until return. May submit; must not flush. */
typedef void (*pgfx_done)(void *ctx, const struct sql_result *res);

struct pgfx_counter {
	int64_t effects;    /* submitted */
	int64_t statements; /* sent */
	int64_t bytes;      /* of parameters */
	int64_t refused;    /* answered, guard did not hold or typed refusal of an item */
	int64_t rejected;   /* the server answered with an error */
	int64_t lost;       /* outcome unknown */
	int64_t unsent;
};

struct pgfx *pgfx_new(struct pgpool *pool);
/* After pgpool_free; effects that were never sent are answered as such. */
void pgfx_free(struct pgfx *own_fx);

/* Copies *fx; what it points at stays valid until done. done never runs inside this call. */
void pgfx_submit(struct pgfx *fx, const struct sql_effect *effect, pgfx_done done, void *ctx);
/* Called at the end of a turn of the loop: sends what is there. True: call again soon, answers of
 * this call have asked for more. */
bool pgfx_flush(struct pgfx *fx);
/* Effects not yet answered. */
size_t pgfx_pending(const struct pgfx *fx);
const struct pgfx_counter *pgfx_counters(const struct pgfx *fx, enum sql_kind kind);

#endif
