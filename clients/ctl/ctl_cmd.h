/* What frazilctl does, one function a command. Each returns the exit code. */
#ifndef CLIENTS_CTL_CTL_CMD_H
#define CLIENTS_CTL_CTL_CMD_H

#include "proto/base/base.h"

enum ctl_exit {
	CTL_OK = 0,
	CTL_NO = 1,          /* the answer is no: not ready, halted, not committed */
	CTL_USAGE = 2,       /* the command line */
	CTL_UNREACHABLE = 3, /* no daemon answered */
	CTL_REFUSED = 4      /* the daemon refused, or what was asked for does not exist */
};

struct ctl_move_options;

struct ctl {
	const char *admin; /* "http://127.0.0.1:8183" */
	const char *rpc;   /* "127.0.0.1:8182" or a socket */
	int timeout_ms;
	bool json;
	bool halted; /* tables: only those that wait for an operator */
	const char *cause; /* halt: why; NULL: not told */
	size_t limit; /* lists: rows at most; 0: all, of decided batches 20 */
	const struct ctl_move_options *move; /* import, export */
};

/* All that a catalog or a list holds into the target, and the list of a catalog. */
int ctl_cmd_import(const struct ctl *c);
int ctl_cmd_export(const struct ctl *c);
int ctl_cmd_status(const struct ctl *c);
/* The daemon's health, or with a table whether all its files are there and read. */
int ctl_cmd_check(const struct ctl *c, const char *which);
int ctl_cmd_version(const struct ctl *c);
int ctl_cmd_txn(const struct ctl *c, const char *id);
int ctl_cmd_tables(const struct ctl *c);
/* `which` is a UUID, a whole name as the daemon lists it, or the last parts of one. */
int ctl_cmd_table(const struct ctl *c, const char *which);
/* `which` may be NULL: of all tables. */
int ctl_cmd_txns(const struct ctl *c, const char *which);
int ctl_cmd_batches(const struct ctl *c, const char *which);
int ctl_cmd_findings(const struct ctl *c, const char *which);
/* The UUID of a table. What names several is refused. An exit code; a refusal was said. */
int ctl_find_table(const struct ctl *c, const char *which, char ret_id[37]);
int ctl_cmd_halt(const struct ctl *c, const char *which);
int ctl_cmd_resume(const struct ctl *c, const char *which);

#endif
