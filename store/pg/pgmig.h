/* Numbered migrations (migrations/NNNN_*.sql, embedded): brings the schema to this binary's version
 * in one transaction under an advisory lock. Running it again, or from two places at once, is
 * harmless. */
#ifndef STORE_PG_PGMIG_H
#define STORE_PG_PGMIG_H

#include "store/pg/pgc.h"

struct pgmig {
	struct pgc *c;
	void (*done)(struct pgmig *m, const struct err *err); /* err->st ST_OK, or why not */
	int32_t from, version;                                /* before and after */
	/* own */
	struct pgc_op op;
	size_t next;
	int phase;
};

/* The newest migration of this binary. */
int32_t pgmig_version(void);
/* c: ready, ordinary (not pipelined), nothing in flight. `done` runs once; after a failure the
 * caller closes the connection, which rolls everything back. */
void pgmig_run(struct pgmig *m, struct pgc *c,
	       void (*done)(struct pgmig *m, const struct err *err));

#endif
