/* What a session must be before the daemon trusts it: a server that keeps what it confirms, and the
 * same server process for every statement. */
#ifndef STORE_PG_PGCHECK_H
#define STORE_PG_PGCHECK_H

#include "proto/base/err.h"

struct pgres;

struct pgcheck {
	bool allow_unsafe; /* fsync, full_page_writes or synchronous_commit may be off */
	bool allow_proxy;  /* a proxy that pools by session may stand in between */
	int64_t statement_timeout_ms, lock_timeout_ms;
	/* Results of the last check */
	int32_t server_version;
	bool unsafe; /* allowed, yet to be told loudly */
	char setup[1280];
};

/* Builds the setup statement from the settings above. */
void pgcheck_init(struct pgcheck *c);
extern const char *const pgcheck_hello;
/* UNAVAILABLE with the cause in msg when the server may not be used. */
MUST_CHECK enum status pgcheck_on_hello(struct pgcheck *c, const struct pgres *res, int backend_pid,
					struct err *err);
MUST_CHECK enum status pgcheck_on_setup(struct pgcheck *c, const struct pgres *res, int backend_pid,
					struct err *err);

#endif
