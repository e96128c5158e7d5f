/* What happens when something comes between the sending of a statement and its execution, or
 * between its commit and its answer. */
#include <signal.h>

#include "tests/it/pgtest_make.h"

/* Waits until as many sessions of the pool wait for a lock. */
static void until_waiting(struct admin *a, int64_t n)
{
	for (int i = 0; i < 200; i++) {
		if (admin_i64(a, "SELECT count(*) FROM pg_stat_activity WHERE application_name ="
				 " 'frazild' AND wait_event_type = 'Lock'"
				 " AND datname = current_database()") >= n)
			return;
		pgtest_sleep(admin_test(a), 10);
	}
	EXPECT(n < 0); /* nobody waits */
}

struct publishable {
	struct made m;
	struct txn_row rows[2];
	struct txn_id ids[2];
	uint8_t states[2];
	struct strv object;
	struct sql_publish p;
	struct sql_effect e;
};

/* A table with two sealed transactions and a ledger, ready to publish. */
static void make_publishable(struct pgtest *t, struct admin *a, struct publishable *x,
			     const char *name, int64_t epoch)
{
	static char objects[16][64];
	static int made;
	struct ran r;
	make_table(t, a, &x->m, "ns1", name);
	for (int i = 0; i < 2; i++) {
		static char paths[32][64];
		char *path = paths[made * 2 + i];
		snprintf(path, sizeof paths[0], "/w/%s/%d.parquet", name, i);
		struct strv p = strv_of(path);
		x->rows[i] = make_txn(&x->m, 10 + i);
		x->ids[i] = x->rows[i].txn;
		x->states[i] = TXN_DB_COMMITTED;
		struct sql_stage_item st = make_stage(x->ids[i], "f", 1, &p, 1);
		struct sql_once_item once = make_once(&x->rows[i], &st, 1);
		struct sql_effect e = {.kind = SQL_TXN_ONCE, .u.once = &once};
		pgtest_run(t, &e, &r);
		EXPECT(r.r.item.st == ST_OK);
	}
	snprintf(objects[made], sizeof objects[0], "/w/%s/m.avro", name);
	x->object = strv_of(objects[made++]);
	struct sql_effect l = make_ledger(&x->m, 2, epoch, &x->object, 1);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	x->p = make_publish(&x->m, 2, x->ids, x->states, 2, &x->object, 1);
	x->p.row.epoch = epoch;
	x->e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &x->p};
}

static void at(struct admin *a, const char *fmt, const struct made *m)
{
	char sql[512], uuid[UUID_TEXT_LEN + 1];
	uuid_text(m->table.u, uuid);
	snprintf(sql, sizeof sql, fmt, uuid);
	admin_script(a, sql);
}

/* Sends the effect while `change` is not committed yet, commits, and wants a refusal that changed
 * nothing else. */
void races_refused(struct pgtest *t, struct admin *a, struct admin *b,
		   const struct sql_effect *e, const char *change, const struct made *m)
{
	char before[33], after[33];
	struct ran r;
	at(a, change, m);
	pgtest_start(t, e, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	EXPECT(!r.done);
	admin_script(a, "COMMIT");
	admin_dump(a, before);
	EXPECT(pgtest_until(t, &r.done, 5000));
	admin_dump(a, after);
	EXPECT(r.r.sent && !r.r.lost && r.r.err.st == ST_OK && r.r.verdict == SQL_REFUSED);
	/* The dump before may already hold what the refused statement would have done; then the
	 * verdict above would be APPLIED. */
	EXPECT(!strcmp(before, after));
}

#define BUMP "BEGIN; UPDATE frazil.head SET epoch = epoch + 1 WHERE table_id = '%s'"

static void guards(struct pgtest *t, struct admin *a, struct admin *b)
{
	struct publishable x;
	struct ran r;
	make_publishable(t, a, &x, "g1", 1);
	races_refused(t, a, b, &x.e, BUMP, &x.m);
	struct sql_effect l = make_ledger(&x.m, 3, 2, &x.object, 0);
	struct strv fresh = STRV("/w/g1/fresh.avro");
	l.u.ledger.paths = &fresh;
	l.u.ledger.n_paths = 1;
	races_refused(t, a, b, &l, BUMP, &x.m);
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {x.m.table, x.m.incarnation, 3, x.m.holder}};
	races_refused(t, a, b, &bump, BUMP, &x.m);
	struct sql_effect drop = {.kind = SQL_TABLE_DROP,
				  .u.drop = {.table = x.m.table, .incarnation = x.m.incarnation}};
	races_refused(t, a, b, &drop,
		       "BEGIN; UPDATE frazil.head SET incarnation = incarnation + 100"
		       " WHERE table_id = '%s'",
		       &x.m);

	make_publishable(t, a, &x, "g2", 1);
	races_refused(t, a, b, &x.e,
		       "BEGIN; UPDATE frazil.head SET version = version + 1"
		       " WHERE table_id = '%s'",
		       &x.m);
	/* The head lets it through, a transaction does not: the head's update is undone too. */
	make_publishable(t, a, &x, "g3", 1);
	races_refused(t, a, b, &x.e,
		       "BEGIN; UPDATE frazil.txn SET state = 5, final_ms = 1 WHERE table_id = '%s'"
		       " AND txn = (SELECT max(txn::text)::uuid FROM frazil.txn"
		       " WHERE table_id = txn.table_id AND state = 1)",
		       &x.m);

	/* An item: the state changes under it; its neighbour of the same statement goes through. */
	make_publishable(t, a, &x, "g4", 1);
	struct txn_row open[2] = {make_txn(&x.m, 30), make_txn(&x.m, 31)};
	struct sql_seal_item seal[2];
	struct sql_effect es[2];
	struct ran rs[2];
	for (int i = 0; i < 2; i++) {
		struct sql_effect e = {.kind = SQL_TXN_BEGIN, .u.begin = &open[i]};
		pgtest_run(t, &e, &r);
		seal[i] = (struct sql_seal_item){.txn = open[i].txn};
		es[i] = (struct sql_effect){.kind = SQL_TXN_SEAL, .u.seal = &seal[i]};
	}
	char sql[256], uuid[UUID_TEXT_LEN + 1];
	uuid_text(open[0].txn.u, uuid);
	snprintf(sql, sizeof sql,
		 "BEGIN; UPDATE frazil.txn SET state = 4, final_ms = 1 WHERE txn = '%s'", uuid);
	admin_script(a, sql);
	pgtest_start(t, &es[0], &rs[0]);
	pgtest_start(t, &es[1], &rs[1]);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	admin_script(a, "COMMIT");
	EXPECT(pgtest_until(t, &rs[1].done, 5000) && rs[0].done);
	EXPECT(rs[0].r.item.st == ST_TXN_STATE && rs[0].r.item.row.state == TXN_DB_ABORTED);
	EXPECT(rs[1].r.item.st == ST_OK && rs[1].r.item.row.state == TXN_DB_SEALED);

	/* A Begin that waits behind a drop finds the table gone. */
	struct txn_row late = make_txn(&x.m, 32);
	struct sql_effect e = {.kind = SQL_TXN_BEGIN, .u.begin = &late};
	at(a, "BEGIN; SELECT frazil.end_table('%s')", &x.m);
	pgtest_start(t, &e, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	admin_script(a, "COMMIT");
	EXPECT(pgtest_until(t, &r.done, 5000) && r.r.item.st == ST_TABLE_GONE);

	/* A Begin behind an advance of the horizon is refused by the new one. */
	make_publishable(t, a, &x, "g5", 1);
	late = make_txn(&x.m, 33);
	at(a,
	   "BEGIN; UPDATE frazil.horizon SET closed_before = frazil.now_ms() + 100000"
	   " WHERE table_id = '%s'",
	   &x.m);
	pgtest_start(t, &e, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	admin_script(a, "COMMIT");
	EXPECT(pgtest_until(t, &r.done, 5000) && r.r.item.st == ST_HORIZON_PASSED);

	/* A claim that waits for nothing takes nothing that is being staged again. */
	struct strv path = STRV("/w/g6/x.parquet");
	make_publishable(t, a, &x, "g6", 1);
	struct txn_row again = make_txn(&x.m, 34);
	e.u.begin = &again;
	pgtest_run(t, &e, &r);
	struct sql_stage_item st = make_stage(again.txn, "f", 1, &path, 1);
	at(a,
	   "INSERT INTO frazil.object (path, table_id, state, since_ms)"
	   " VALUES ('/w/g6/x.parquet', '%s', 2, 0); BEGIN;"
	   " SELECT 1 FROM frazil.object WHERE path = '/w/g6/x.parquet' FOR UPDATE",
	   &x.m);
	struct sql_effect stage = {.kind = SQL_TXN_STAGE, .u.stage = &st};
	pgtest_start(t, &stage, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	struct sql_effect claim = {.kind = SQL_CLEAN_CLAIM, .u.claim = {x.m.table, false, 0, 60000, 10}};
	struct ran rc;
	pgtest_start(t, &claim, &rc);
	EXPECT(pgtest_until(t, &rc.done, 2000) && rc.r.n_paths == 0);
	admin_script(a, "COMMIT");
	EXPECT(pgtest_until(t, &r.done, 5000) && r.r.item.st == ST_OK);
	pgtest_run(t, &claim, &rc);
	EXPECT(rc.r.n_paths == 0);
}

/* The server gives up a lock wait: an error, nothing written, the connection lives on. Then its
 * process is stopped: our own deadline, unknown; the bump waits for it and the look is final. */
static void deadlines(struct pgtest *t, struct admin *a, struct admin *b)
{
	struct publishable x;
	struct ran r;
	make_publishable(t, a, &x, "d1", 1);
	at(a, "BEGIN; SELECT 1 FROM frazil.head WHERE table_id = '%s' FOR UPDATE", &x.m);
	int ready = pgpool_ready(t->pool);
	pgtest_run(t, &x.e, &r);
	EXPECT(r.r.sent && !r.r.lost && r.r.err.st == ST_UNAVAILABLE);
	EXPECT(pgpool_ready(t->pool) == ready);
	pgtest_start(t, &x.e, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	int64_t pid = admin_i64(b, "SELECT pid::int8 FROM pg_stat_activity WHERE application_name ="
				   " 'frazild' AND wait_event_type = 'Lock'"
				   " AND datname = current_database()");
	EXPECT(kill((pid_t)pid, SIGSTOP) == 0);
	EXPECT(pgtest_until(t, &r.done, 8000));
	EXPECT(r.r.sent && r.r.lost && r.times == 1);
	EXPECT(pgpool_ready(t->pool) == ready - 1);
	admin_script(a, "COMMIT");
	EXPECT(kill((pid_t)pid, SIGCONT) == 0);
	pgtest_sleep(t, 500);
	EXPECT(pgpool_ready(t->pool) == ready);
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {x.m.table, x.m.incarnation, 1, x.m.holder}};
	pgtest_run(t, &bump, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.head.epoch == 2);
	bool moved = r.r.head.version == 2;
	struct sql_effect look = {.kind = SQL_BATCH_LOOK, .u.look = {x.m.table, x.p.row.batch}};
	pgtest_run(t, &look, &r);
	EXPECT(r.r.found == moved);
}

/* Killed while it waits: unknown, and the look says that it never was. */
static void killed(struct pgtest *t, struct admin *a, struct admin *b)
{
	struct publishable x;
	struct ran r;
	make_publishable(t, a, &x, "k1", 1);
	at(a, "BEGIN; SELECT 1 FROM frazil.head WHERE table_id = '%s' FOR UPDATE", &x.m);
	pgtest_start(t, &x.e, &r);
	while (pgfx_flush(t->fx))
		;
	until_waiting(b, 1);
	EXPECT(admin_i64(b, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
			    " application_name = 'frazild' AND wait_event_type = 'Lock'"
			    " AND datname = current_database()") == 1);
	EXPECT(pgtest_until(t, &r.done, 5000) && r.r.sent && r.r.lost);
	admin_script(a, "COMMIT");
	/* Its table's connection is away for a moment: nothing is sent. */
	struct sql_effect look = {.kind = SQL_BATCH_LOOK, .u.look = {x.m.table, x.p.row.batch}};
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {x.m.table, x.m.incarnation, 1, x.m.holder}};
	pgtest_start(t, &bump, &r);
	while (pgfx_flush(t->fx))
		;
	EXPECT(r.done && !r.r.sent && r.r.err.st == ST_UNAVAILABLE);
	pgtest_sleep(t, 700);
	pgtest_run(t, &bump, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.head.version == 1);
	pgtest_run(t, &look, &r);
	EXPECT(!r.r.found && !r.r.lost);
	/* The control session: fenced, then ours again. */
	int fenced = t->fenced;
	EXPECT(admin_i64(b, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE"
			    " application_name = 'frazild control'"
			    " AND datname = current_database()") == 1);
	EXPECT(pgtest_until_state(t, PGPOOL_FENCED, 5000) && t->fenced == fenced + 1);
	EXPECT(pgtest_until_state(t, PGPOOL_UP, 5000));
}

void pgtest_races(struct pgtest *t)
{
	struct admin *a = admin_open(t), *b = admin_open(t);
	make_catalog(a);
	guards(t, a, b);
	deadlines(t, a, b);
	killed(t, a, b);
	admin_close(a);
	admin_close(b);
}

/* Behind a proxy that swallows the answer of the first publish and cuts: the commit stands. */
void pgtest_lost(struct pgtest *t)
{
	struct admin *a = admin_open(t);
	struct publishable x;
	struct ran r;
	make_catalog(a);
	make_publishable(t, a, &x, "l1", 1);
	pgtest_run(t, &x.e, &r);
	EXPECT(r.r.sent && r.r.lost && r.times == 1);
	pgtest_sleep(t, 700);
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {x.m.table, x.m.incarnation, 1, x.m.holder}};
	pgtest_run(t, &bump, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.head.version == 2);
	struct sql_effect look = {.kind = SQL_BATCH_LOOK, .u.look = {x.m.table, x.p.row.batch}};
	pgtest_run(t, &look, &r);
	EXPECT(r.r.found && r.batch.n_txns == 2);
	admin_close(a);
}

/* A wait for a synchronous standby is cancelled: the commit is there, but it counts as unknown. */
void pgtest_standby(struct pgtest *t)
{
	struct admin *a = admin_open(t);
	struct publishable x;
	struct ran r;
	admin_script(a, "SET synchronous_commit = local");
	make_catalog(a);
	make_publishable(t, a, &x, "s1", 1);
	admin_script(a, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	admin_script(a, "SELECT pg_reload_conf()");
	pgtest_sleep(t, 500);
	pgtest_start(t, &x.e, &r);
	while (pgfx_flush(t->fx))
		;
	int64_t n = 0;
	for (int i = 0; i < 100 && n == 0; i++) {
		pgtest_sleep(t, 20);
		n = admin_i64(a, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity"
				 " WHERE wait_event = 'SyncRep' AND datname = current_database()");
	}
	EXPECT(n == 1);
	EXPECT(pgtest_until(t, &r.done, 3000));
	EXPECT(r.r.sent && r.r.lost && r.r.err.st == ST_COMMIT_UNKNOWN);
	admin_script(a, "ALTER SYSTEM RESET synchronous_standby_names");
	admin_script(a, "SELECT pg_reload_conf()");
	pgtest_sleep(t, 500);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.batch WHERE batch_no = 2") == 1);
	admin_close(a);
}

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

/* Several of these run at once on the same transactions and paths, each in its own order: no
 * statement may fail, whatever its items are answered. */
void pgtest_storm(struct pgtest *t, unsigned seed)
{
	enum { TXNS = 40, PATHS = 25, ROUNDS = 60 };
	uint32_t seed_state = seed;
	struct admin *a = admin_open(t);
	struct made m;
	struct ran r;
	make_catalog(a);
	memset(&m, 0, sizeof m);
	/* One makes the table, the others find it. */
	make_shared(t, &m, "storm");
	static struct txn_row rows[TXNS];
	static struct strv paths[PATHS];
	static char texts[PATHS][32];
	static struct ran rans[TXNS];
	static struct sql_stage_item stages[TXNS];
	static struct strv chosen[TXNS][4];
	int64_t base = admin_i64(a, "SELECT (created_ms / 60000 * 60000)::int8 FROM frazil.batch"
				    " ORDER BY created_ms LIMIT 1");
	for (int i = 0; i < PATHS; i++) {
		snprintf(texts[i], sizeof texts[i], "/w/storm/%02d", i);
		paths[i] = strv_of(texts[i]);
	}
	for (int i = 0; i < TXNS; i++)
		rows[i] = make_txn_at(&m, i, base);
	for (int round = 0; round < ROUNDS; round++) {
		char fragment[32];
		snprintf(fragment, sizeof fragment, "%u-%d", seed, round);
		int shift = (int)(draw(&seed_state) % TXNS);
		int step = draw(&seed_state) % 2 ? 1 : TXNS - 1;
		for (int k = 0; k < TXNS; k++) {
			int i = (shift + k * step) % TXNS;
			struct sql_effect e = {.kind = SQL_TXN_BEGIN, .u.begin = &rows[i]};
			if (round % 3 == 1) {
				for (int p = 0; p < 4; p++)
					chosen[i][p] =
						paths[(draw(&seed_state) % 6) * 4 + (uint32_t)p];
				stages[i] = make_stage(rows[i].txn, fragment, 1, chosen[i], 4);
				e = (struct sql_effect){.kind = SQL_TXN_STAGE,
							.u.stage = &stages[i]};
			} else if (round % 3 == 2) {
				e = (struct sql_effect){.kind = SQL_TXN_END,
							.u.end = {rows[i].txn, TXN_DB_EXPIRED}};
				if (draw(&seed_state) % 200 == 0)
					e.u.end.to = TXN_DB_ABORTED;
			}
			pgtest_start(t, &e, &rans[i]);
		}
		struct sql_effect claim = {.kind = SQL_CLEAN_CLAIM, .u.claim = {m.table, false, 0, 0, 5}};
		pgtest_run(t, &claim, &r);
		EXPECT(r.r.err.st == ST_OK);
		for (int i = 0; i < TXNS; i++) {
			EXPECT(pgtest_until(t, &rans[i].done, 5000));
			EXPECT(rans[i].r.sent && !rans[i].r.lost && rans[i].r.err.st == ST_OK);
		}
		if (pgtest_failed)
			break;
	}
	/* At the end no path belongs to two, and none of an open one is queued or claimed. */
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE state NOT IN (0, 2, 3)") ==
	       0);
	admin_close(a);
}

/* Effects without pause while the server goes away and comes back: each is answered once, and at
 * the end it works again. */
void pgtest_restart(struct pgtest *t)
{
	struct admin *a = admin_open(t);
	struct made m;
	struct ran r[3];
	int applied = 0, lost = 0, unsent = 0, error = 0;
	make_catalog(a);
	make_table(t, a, &m, "ns1", "r1");
	admin_close(a);
	printf("ready\n");
	fflush(stdout);
	int64_t epoch = 1;
	/* Until it has been away, is back, and has worked for a while. */
	uint64_t end = uv_hrtime() + 60000000000ull;
	int good = 0;
	for (int i = 0; uv_hrtime() < end && good < 100; i++) {
		struct txn_row row = make_txn(&m, 1000 + i);
		struct sql_effect e[3] = {
			{.kind = SQL_TXN_BEGIN, .u.begin = &row},
			{.kind = SQL_HEAD_READ, .u.table = m.table},
			{.kind = SQL_HEAD_BUMP,
			 .u.bump = {m.table, m.incarnation, epoch, m.holder}},
		};
		for (int k = 0; k < 3; k++)
			pgtest_start(t, &e[k], &r[k]);
		for (int k = 0; k < 3; k++) {
			EXPECT(pgtest_until(t, &r[k].done, 10000) && r[k].times == 1);
			applied += r[k].r.sent && !r[k].r.lost && r[k].r.err.st == ST_OK;
			lost += r[k].r.lost;
			unsent += !r[k].r.sent;
			error += r[k].r.sent && !r[k].r.lost && r[k].r.err.st != ST_OK;
		}
		/* An unknown bump: read again, and go on from there. */
		if (r[1].r.found && r[1].r.head.epoch > epoch)
			epoch = r[1].r.head.epoch;
		else if (r[2].r.verdict == SQL_APPLIED && r[2].r.found)
			epoch = r[2].r.head.epoch;
		if (!r[0].r.sent)
			pgtest_sleep(t, 50);
		bool works = r[0].r.sent && !r[0].r.lost && r[0].r.err.st == ST_OK;
		good = t->fenced && t->state == PGPOOL_UP && works ? good + 1 : 0;
	}
	printf("applied %d lost %d unsent %d error %d fenced %d\n", applied, lost, unsent, error,
	       t->fenced);
	EXPECT(t->state == PGPOOL_UP && t->fenced == 1);
	EXPECT(applied > 100 && unsent > 0);
	EXPECT(r[0].r.item.st == ST_OK && !r[0].r.lost);
}

/* The daemon that had the lock: is stopped after "ready", loses its lock's session, wakes up when
 * another one has taken over and published. Nothing of it may come through. */
void pgtest_old(struct pgtest *t)
{
	struct admin *a = admin_open(t);
	struct publishable x;
	struct ran r;
	char before[33], after[33];
	make_catalog(a);
	make_publishable(t, a, &x, "p4", 1);
	printf("ready\n");
	fflush(stdout);
	pgtest_sleep(t, 1500);
	admin_dump(a, before);
	pgtest_run(t, &x.e, &r);
	EXPECT(r.r.sent && !r.r.lost && r.r.err.st == ST_OK && r.r.verdict == SQL_REFUSED);
	struct strv fresh = STRV("/w/p4/late.avro");
	struct sql_effect l = make_ledger(&x.m, 9, 1, &fresh, 1);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);
	admin_dump(a, after);
	EXPECT(!strcmp(before, after));
	EXPECT(t->fenced == 1);
	struct sql_effect read = {.kind = SQL_HEAD_READ, .u.table = x.m.table};
	pgtest_run(t, &read, &r);
	EXPECT(r.r.head.epoch == 2 && r.r.head.version == 2 && r.r.head.last_batch == 2);
	admin_close(a);
}

/* The one that takes over: reads, bumps, publishes. */
void pgtest_new(struct pgtest *t)
{
	struct made m;
	struct ran r;
	memset(&m, 0, sizeof m);
	make_ids(&m, "p4");
	struct sql_effect read = {.kind = SQL_HEAD_READ, .u.table = m.table};
	pgtest_run(t, &read, &r);
	EXPECT(r.r.found && r.r.head.epoch == 1);
	m.incarnation = r.r.head.incarnation;
	m.holder.u.b[0] ^= 1;
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {m.table, m.incarnation, 1, m.holder}};
	pgtest_run(t, &bump, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.head.epoch == 2);
	EXPECT(uuid_eq(r.r.head.holder.u, m.holder.u));
	/* What the old one had queued is all there. */
	struct sql_effect queue = {.kind = SQL_QUEUE_READ, .u.table = m.table};
	pgtest_run(t, &queue, &r);
	EXPECT(r.r.n_items == 2 && r.fragments == 2);
	struct sql_publish p = make_publish(&m, 2, NULL, NULL, 0, NULL, 0);
	p.row.epoch = 2;
	p.row.batch.u.b[3] ^= 1;
	struct sql_effect e = {.kind = SQL_PUBLISH, .u.publish = &p};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
}
