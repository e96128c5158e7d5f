#include "store/pg/pgcheck.h"

#include <stdio.h>

#include "store/pg/pgc.h"

#define SERVER_VERSION_MIN 140000

/* The marker is set in one transaction and looked for in the next one: a proxy that gives every
 * transaction another server process loses it, or names a process that is not the handshake's. */
const char *const pgcheck_hello =
	"SELECT current_setting('server_version_num')::int4, "
	"current_setting('server_encoding')::text,"
	" current_setting('fsync')::text, current_setting('full_page_writes')::text,"
	" current_setting('synchronous_commit')::text, pg_is_in_recovery(), pg_backend_pid()::int4,"
	" set_config('frazil.session', pg_backend_pid()::text, false)";

/* synchronous_commit is raised to `on`, never lowered from `remote_apply`. Every statement finds its
 * rows by key: without this the planner, which sees small or never analysed tables and arrays of
 * unknown length, reads all of frazil.txn to join it with a handful of ids, and keeps that plan
 * while the table grows. */
void pgcheck_init(struct pgcheck *c)
{
	snprintf(c->setup, sizeof c->setup,
		 "SELECT pg_backend_pid()::int4, current_setting('frazil.session', true),"
		 " set_config('synchronous_commit', CASE WHEN %s THEN"
		 " current_setting('synchronous_commit') ELSE 'on' END, false),"
		 " set_config('statement_timeout', '%lld', false),"
		 " set_config('lock_timeout', '%lld', false),"
		 " set_config('default_transaction_isolation', 'read committed', false),"
		 " set_config('default_transaction_read_only', 'off', false),"
		 " set_config('search_path', 'pg_catalog', false),"
		 " set_config('client_min_messages', 'warning', false),"
		 " set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),"
		 " set_config('enable_hashjoin', 'off', false),"
		 " set_config('enable_mergejoin', 'off', false),"
		 " set_config('plan_cache_mode', 'force_generic_plan', false)",
		 c->allow_unsafe ? "true"
				 : "current_setting('synchronous_commit') = 'remote_apply'",
		 (long long)c->statement_timeout_ms, (long long)c->lock_timeout_ms);
}

static enum status pooled(struct err *err)
{
	return err_set(err, ST_UNAVAILABLE, "",
		       "a pooling proxy stands before PostgreSQL; connect to the server itself");
}

enum status pgcheck_on_hello(struct pgcheck *c, const struct pgres *res, int backend_pid,
			     struct err *err)
{
	struct pgrow r = {.res = res};
	int32_t version = pgrow_i32(&r, 0);
	struct strv encoding = pgrow_text(&r, 1), fsync = pgrow_text(&r, 2);
	struct strv pages = pgrow_text(&r, 3), sync = pgrow_text(&r, 4);
	bool recovery = pgrow_bool(&r, 5);
	int32_t pid = pgrow_i32(&r, 6);
	if (r.bad)
		return err_set(err, ST_UNAVAILABLE, "",
			       "PostgreSQL answered the first question oddly");
	c->server_version = version;
	if (version < SERVER_VERSION_MIN)
		return err_set(err, ST_UNAVAILABLE, "",
			       "PostgreSQL %d is too old; 14 or newer is needed", version / 10000);
	if (!strv_eq(encoding, STRV("UTF8")))
		return err_set(err, ST_UNAVAILABLE, "", "the database's encoding is %.*s, not UTF8",
			       STRV_ARG(encoding));
	if (recovery)
		return err_set(err, ST_UNAVAILABLE, "",
			       "the server is a standby (in recovery); connect to the primary");
	if (!c->allow_proxy && pid != backend_pid)
		return pooled(err);
	/* `off` cannot be repaired by the session alone: other settings of such a server are then
	 * as careless. `local` and `remote_write` are raised by the setup. */
	const char *off = !strv_eq(fsync, STRV("on"))   ? "fsync"
			  : !strv_eq(pages, STRV("on")) ? "full_page_writes"
			  : strv_eq(sync, STRV("off"))  ? "synchronous_commit"
							: NULL;
	c->unsafe = off != NULL;
	if (off && !c->allow_unsafe)
		return err_set(err, ST_UNAVAILABLE, "",
			       "%s is off on this server: a confirmed commit could be lost", off);
	return ST_OK;
}

enum status pgcheck_on_setup(struct pgcheck *c, const struct pgres *res, int backend_pid,
			     struct err *err)
{
	struct pgrow r = {.res = res};
	int32_t pid = pgrow_i32(&r, 0);
	struct strv marker = pgrow_text(&r, 1);
	int64_t v = 0;
	if (r.bad || !strv_i64(marker, &v) || v != pid)
		return pooled(err);
	if (!c->allow_proxy && pid != backend_pid)
		return pooled(err);
	return ST_OK;
}
