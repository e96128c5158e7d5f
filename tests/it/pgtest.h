/* The loop, an administrator's session beside the pool, and effects run to their end. */
#ifndef TESTS_IT_PGTEST_H
#define TESTS_IT_PGTEST_H

#include <stdio.h>
#include <stdlib.h>

#include "store/pg/pgfx.h"

extern int pgtest_failed;
#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #cond);                   \
			fflush(stdout);                                                            \
			pgtest_failed++;                                                           \
		}                                                                                  \
	} while (0)

struct pgtest {
	uv_loop_t *loop;
	const char *conninfo;
	struct pgpool_conf conf;
	struct pgpool *pool;
	struct pgfx *fx;
	enum pgpool_state state;
	int fenced;
	bool changed;
};

/* One effect and its answer; scalars and the first row are kept. */
struct ran {
	struct pgtest *t;
	bool done;
	int times;
	struct sql_result r;
	struct batch_row batch;
	bool has_batch;
	size_t fragments;
	struct table_id tables[32]; /* the first of them */
	bool gone[32];
	char path[128];
	char location[128];
	char name[128];
};

bool pgtest_until(struct pgtest *t, const bool *flag, uint64_t ms);
bool pgtest_until_state(struct pgtest *t, enum pgpool_state want, uint64_t ms);
void pgtest_sleep(struct pgtest *t, uint64_t ms);
void pgtest_open(struct pgtest *t, const char *conninfo);
void pgtest_close(struct pgtest *t);
/* Starts without waiting; `ran` lives until done. */
void pgtest_start(struct pgtest *t, const struct sql_effect *e, struct ran *ran);
/* Starts, flushes, waits; fails the test when no answer comes in ten seconds. */
void pgtest_run(struct pgtest *t, const struct sql_effect *e, struct ran *ran);

/* A second, ordinary session. */
struct admin;
struct admin *admin_open(struct pgtest *t);
struct pgtest *admin_test(struct admin *a);
void admin_close(struct admin *a);
void admin_script(struct admin *a, const char *sql);
int64_t admin_i64(struct admin *a, const char *sql);
/* A digest over every row of every table: equal means that nothing changed. */
void admin_dump(struct admin *a, char out[33]);

void pgtest_effects(struct pgtest *t);
void pgtest_races(struct pgtest *t);
void pgtest_lost(struct pgtest *t);
void pgtest_standby(struct pgtest *t);
void pgtest_storm(struct pgtest *t, unsigned seed);
void pgtest_restart(struct pgtest *t);
void pgtest_old(struct pgtest *t);
void pgtest_new(struct pgtest *t);
void pgtest_catalog(struct pgtest *t);
void pgtest_idem(struct pgtest *t);
void pgtest_tables(struct pgtest *t);

#endif
