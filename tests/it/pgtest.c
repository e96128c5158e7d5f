/* Drives store/pg against a real server for tests/it/test_pg.py. Usage: pgtest CONNINFO COMMAND …
 * Prints one line per fact; exits 0 when the command's expectations held. */
#include <stdio.h>
#include <stdlib.h>

#include "store/pg/pgpool.h"

static uv_loop_t *loop;
static enum pgpool_state state;
static bool wanted_state;

static void changed(void *ctx, enum pgpool_state st, const struct err *err)
{
	static const char *const names[] = {"down", "standby", "up", "fenced"};
	(void)ctx;
	state = st;
	wanted_state = true;
	printf("state %s %s %s\n", names[st], err->msg, err->detail);
	fflush(stdout);
}

static void ticked(uv_timer_t *t)
{
	*(bool *)t->data = true;
}

/* Runs the loop until *flag or the time is up; false when it is up. */
static bool run_until(bool *flag, uint64_t ms)
{
	bool late = false;
	uv_timer_t t;
	uv_timer_init(loop, &t);
	t.data = &late;
	uv_timer_start(&t, ticked, ms, 0);
	while (!*flag && !late)
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&t, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	return *flag;
}

static bool run_until_state(enum pgpool_state want, uint64_t ms)
{
	uint64_t end = uv_hrtime() / 1000000 + ms;
	while (state != want) {
		uint64_t now = uv_hrtime() / 1000000;
		wanted_state = false;
		if (now >= end || !run_until(&wanted_state, end - now))
			return state == want;
	}
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	loop = uv_default_loop();
	struct pgpool_conf conf = {
		.conninfo = argv[1],
		.size = 3,
		.connect_timeout_ms = 3000,
		.statement_timeout_ms = 3000,
		.lock_timeout_ms = 2000,
		.tcp_user_timeout_ms = 5000,
		.exclusive = true,
		.changed = changed,
	};
	int rc = 1;
	if (!strcmp(argv[2], "up")) {
		uint64_t hold_ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
		struct pgpool *pool = pgpool_new(loop, &conf);
		rc = run_until_state(PGPOOL_UP, 5000) ? 0 : 1;
		bool never = false;
		if (hold_ms)
			run_until(&never, hold_ms);
		pgpool_free(pool);
	} else if (!strcmp(argv[2], "migrate")) {
		conf.exclusive = false;
		conf.size = 1;
		struct pgpool *pool = pgpool_new(loop, &conf);
		rc = run_until_state(PGPOOL_UP, 20000) ? 0 : 1;
		pgpool_free(pool);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	return rc;
}
