#include "store/pg/pgmig.h"

#include <stdio.h>

struct migration {
	int32_t number;
	const char *name;
	const char *sql;
};

#include "gen/pg_migrations.h"

#define DEADLINE_US (120 * 1000000ll)

enum phase { LOCK, EXISTS, VERSION, MIGRATE, COMMIT, DONE };

int32_t pgmig_version(void)
{
	return migrations[ARRAY_SIZE(migrations) - 1].number;
}

static void on_answer(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		      const struct err *err);

static void finish(struct pgmig *m, const struct err *err)
{
	m->phase = DONE;
	m->done(m, err);
}

static void fail_text(struct pgmig *m, const char *text)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "schema: %s", text);
	finish(m, &err);
}

static void go(struct pgmig *m)
{
	bool ok = true;
	m->op.done = on_answer;
	m->op.deadline_us = (int64_t)(uv_hrtime() / 1000) + DEADLINE_US;
	switch ((enum phase)m->phase) {
	case LOCK:
		/* The lock's number is the text "frazilm" read as bytes. */
		ok = pgc_script(
			m->c,
			"BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0;"
			" SET LOCAL client_min_messages = warning;"
			" SELECT pg_advisory_xact_lock(x'6672617a696c6d'::int8)",
			&m->op);
		break;
	case EXISTS:
		ok = pgc_query(m->c, "SELECT to_regclass('frazil.schema_info') IS NOT NULL",
			       &m->op);
		break;
	case VERSION:
		ok = pgc_query(m->c, "SELECT version, min_binary FROM frazil.schema_info", &m->op);
		break;
	case MIGRATE:
		while (m->next < ARRAY_SIZE(migrations) && migrations[m->next].number <= m->from)
			m->next++;
		if (m->next < ARRAY_SIZE(migrations)) {
			ok = pgc_script(m->c, migrations[m->next].sql, &m->op);
			break;
		}
		m->phase = COMMIT;
		/* fallthrough */
	case COMMIT: {
		char sql[128];
		snprintf(sql, sizeof sql,
			 "UPDATE frazil.schema_info SET version = greatest(version, %d); COMMIT",
			 (int)pgmig_version());
		ok = pgc_script(m->c, sql, &m->op);
		break;
	}
	case DONE:
		return;
	}
	if (!ok)
		fail_text(m, "the connection was lost");
}

static void on_answer(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		      const struct err *err)
{
	struct pgmig *m = CONTAINER_OF(op, struct pgmig, op);
	struct pgrow r = {.res = res};
	if (end != PGC_ROWS) {
		struct err why = *err;
		if (m->phase == MIGRATE)
			err_prefix(&why, "%s", migrations[m->next].name);
		finish(m, &why);
		return;
	}
	switch ((enum phase)m->phase) {
	case LOCK:
		m->phase = EXISTS;
		break;
	case EXISTS:
		m->phase = pgrow_bool(&r, 0) ? VERSION : MIGRATE;
		break;
	case VERSION: {
		m->from = pgrow_i32(&r, 0);
		int32_t min_binary = pgrow_i32(&r, 1);
		if (r.bad) {
			fail_text(m, "frazil.schema_info has no row");
			return;
		}
		m->version = m->from;
		if (min_binary > pgmig_version()) {
			fail_text(m, "the database was migrated by a newer release that no longer "
				     "admits this one");
			return;
		}
		m->phase = MIGRATE;
		break;
	}
	case MIGRATE:
		m->next++;
		break;
	case COMMIT: {
		struct err none = {0};
		if (m->version < pgmig_version())
			m->version = pgmig_version();
		finish(m, &none);
		return;
	}
	case DONE:
		return;
	}
	go(m);
}

void pgmig_run(struct pgmig *m, struct pgc *c, void (*done)(struct pgmig *m, const struct err *err))
{
	memset(m, 0, sizeof *m);
	m->c = c;
	m->done = done;
	m->phase = LOCK;
	go(m);
}
