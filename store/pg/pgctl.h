/* The control session: an ordinary connection that holds the lock "one daemon a database", runs the
 * migrations, and proves by its life that the lock is still ours. Reconnects by itself. */
#ifndef STORE_PG_PGCTL_H
#define STORE_PG_PGCTL_H

#include "store/pg/pgc.h"
#include "store/pg/pgcheck.h"

enum pgctl_event {
	PGCTL_DOWN,    /* no session; trying again. err says why */
	PGCTL_STANDBY, /* another daemon holds the lock; asking again every second */
	PGCTL_HELD,    /* the lock is ours and the schema is at this binary's version */
	PGCTL_FENCED,  /* the session that held the lock is gone: another may serve now */
};

struct pgctl;

struct pgctl_conf {
	const char *conninfo;
	int64_t connect_timeout_us;
	int64_t tcp_user_timeout_ms;
	bool exclusive; /* false: no lock; for tools that only migrate */
	struct pgcheck check;
	void *ctx;
	void (*event)(void *ctx, enum pgctl_event ev, const struct err *err);
};

struct pgctl *pgctl_new(uv_loop_t *loop, const struct pgctl_conf *conf);
/* No more events; memory goes with the loop's next turns. */
void pgctl_free(struct pgctl *own_ctl);
/* The server allowed to be unsafe is: to be logged loudly. */
bool pgctl_unsafe(const struct pgctl *ctl);

#endif
