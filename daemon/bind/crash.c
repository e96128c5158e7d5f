#include "daemon/bind/crash.h"

#ifdef FRAZIL_FAULT

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CRASH_PUT (-1)
#define CRASH_DELETE (-2)

static const struct {
	const char *name;
	int sql;
} points[] = {
#define CRASH(NAME, name, sql, help) {name, sql},
#include "daemon/bind/crash.tbl"
};

void crash_point(const struct effect *e, bool after)
{
	const char *want = getenv("FAULT_CRASH");
	struct strv text = strv_of(want);
	size_t colon = strv_find(text, ':');
	if (!want || !strv_eq(strv_sub(text, colon + 1, text.n), after ? STRV("after") : STRV("before")))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		bool here = e->kind == FX_SQL	   ? points[i].sql == (int)e->u.sql.kind
			    : e->kind == FX_PUT	   ? points[i].sql == CRASH_PUT
			    : e->kind == FX_DELETE ? points[i].sql == CRASH_DELETE
						   : false;
		if (here && strv_eq(strv_of(points[i].name), strv_sub(text, 0, colon)))
			kill(getpid(), SIGKILL);
	}
}

#else
/* An empty file is no C. */
extern int crash_nothing;
#endif
