#include "daemon/bind/crash.h"

#ifdef FRAZIL_FAULT

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/pg/pgcat.h"

/* What a row names: a kind of the core's statements, or one of these. */
#define CRASH_PUT (-1)
#define CRASH_DELETE (-2)
#define CRASH_VIEW_PUT (-3)
#define CATALOG_FIRST 1000
#define CRASH_CATALOG(name) (CATALOG_FIRST + PGSQL_##name)
_Static_assert(SQL_KIND_COUNT < CATALOG_FIRST, "one number for two steps");

static const struct {
	const char *name;
	int step;
} points[] = {
#define CRASH(NAME, name, step, help) {name, step},
#include "daemon/bind/crash.tbl"
};

static void reach(int step, bool after)
{
	const char *want = getenv("FAULT_CRASH");
	struct strv text = strv_of(want);
	size_t colon = strv_find(text, ':');
	if (!want || !strv_eq(strv_sub(text, colon + 1, text.n), after ? STRV("after") : STRV("before")))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++)
		if (points[i].step == step && strv_eq(strv_of(points[i].name), strv_sub(text, 0, colon)))
			kill(getpid(), SIGKILL);
}

void crash_point(const struct effect *e, bool after)
{
	if (e->kind == FX_SQL)
		reach((int)e->u.sql.kind, after);
	else if (e->kind == FX_PUT)
		reach(CRASH_PUT, after);
	else if (e->kind == FX_DELETE)
		reach(CRASH_DELETE, after);
}

static void statement(enum pgsql stmt, bool after)
{
	reach(CATALOG_FIRST + (int)stmt, after);
}

void crash_watch(struct pgcat *cat)
{
	pgcat_on_step(cat, statement);
}

void crash_view_put(bool after)
{
	reach(CRASH_VIEW_PUT, after);
}

#else
/* An empty file is no C. */
extern int crash_nothing;
#endif
