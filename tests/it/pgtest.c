/* Drives store/pg against a real server for tests/it/test_pg.py. Usage: pgtest CONNINFO COMMAND …
 * Prints one line per fact; exits 0 when the command's expectations held. */
#include "tests/it/pgtest.h"

int pgtest_failed;

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	struct pgtest t = {
		.loop = uv_default_loop(),
		.conf =
			{
				.size = 3,
				.connect_timeout_ms = 3000,
				.statement_timeout_ms = 3000,
				.lock_timeout_ms = 2500,
				.tcp_user_timeout_ms = 5000,
				.exclusive = strcmp(argv[2], "migrate") && strcmp(argv[2], "storm"),
			},
	};
	if (!strcmp(argv[2], "storm"))
		t.conf.size = 5; /* two lanes */
	uint64_t ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	pgtest_open(&t, argv[1]);
	if (!strcmp(argv[2], "wait")) { /* for the first state that is not down */
		while (t.state == PGPOOL_DOWN && !t.changed)
			pgtest_sleep(&t, 20);
	} else {
		EXPECT(pgtest_until_state(&t, PGPOOL_UP, 20000));
	}
	if (!pgtest_failed && !strcmp(argv[2], "effects"))
		pgtest_effects(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "races"))
		pgtest_races(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "tables"))
		pgtest_tables(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "catalog"))
		pgtest_catalog(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "idem"))
		pgtest_idem(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "lost"))
		pgtest_lost(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "standby"))
		pgtest_standby(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "storm"))
		pgtest_storm(&t, (unsigned)ms);
	else if (!pgtest_failed && !strcmp(argv[2], "restart"))
		pgtest_restart(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "old"))
		pgtest_old(&t);
	else if (!pgtest_failed && !strcmp(argv[2], "new"))
		pgtest_new(&t);
	else if (ms)
		pgtest_sleep(&t, ms);
	pgtest_close(&t);
	uv_run(t.loop, UV_RUN_DEFAULT);
	uv_loop_close(t.loop);
	printf("%s\n", pgtest_failed ? "failed" : "ok");
	return pgtest_failed != 0;
}
