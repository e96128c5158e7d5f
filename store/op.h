/* An asynchronous operation of a store, embedded in the caller's object. A start function that
 * answers ST_OK runs `done` exactly once, later, on the loop's thread; one that answers anything
 * else never runs it. Cancelling brings `done` forward; it still runs once, and never inside the
 * cancelling call. */
#ifndef STORE_OP_H
#define STORE_OP_H

#include "proto/base/err.h"
#include "proto/base/list.h"

enum op_state { OP_IDLE, OP_RUNNING };

struct op {
	/* err is never NULL and err->st is st. Results are borrowed until done returns; the
	 * operation is idle by then and may be started again or freed inside it. */
	void (*done)(struct op *op, enum status st, const struct err *err);
	void *ctx;
	int64_t deadline_mono_us; /* loop clock, microseconds; OP_NO_DEADLINE: none */
	struct list node;         /* the store's, while running */
	enum op_state state;
};

#define OP_NO_DEADLINE INT64_MAX

static inline void op_init(struct op *op,
			   void (*done)(struct op *, enum status, const struct err *), void *ctx)
{
	*op = (struct op){.done = done, .ctx = ctx, .deadline_mono_us = OP_NO_DEADLINE};
	list_init(&op->node);
}

#endif
