/* What the store step holds; for the other files of this folder. */
#ifndef DAEMON_BIND_BIND_STORE_H
#define DAEMON_BIND_BIND_STORE_H

#include "daemon/bind/bind.h"
#include "store/pg/pgcat.h"
#include "store/pg/pgfx.h"

struct bind_store {
	struct app *app;
	struct fs *fs;
	struct pgpool *pool;
	struct pgfx *fx;
	struct pgcat *cat;
	struct loop_hook flush; /* sends what a turn has asked for */
	struct loop_timer patience; /* of the names that wait, see pgcat_flush */
	bool started;
	bool heard;   /* it is known whether the database can be had */
	bool standby; /* the lock was lost and has not come back */
};

/* Something was submitted: flush at the end of this turn. */
void bind_store_arm(struct bind_store *s);
/* Another daemon may serve the database. */
bool bind_store_standby(const struct app *app);

#endif
