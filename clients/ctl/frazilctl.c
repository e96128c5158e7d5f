/* frazilctl: looks at a running frazild, halts and resumes tables. See frazilctl(1). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/ctl/ctl_cmd.h"
#include "proto/base/strv.h"

#define TIMEOUT_MS 10000

static const char usage_text[] =
	"usage: frazilctl [OPTION]... COMMAND\n"
	"\n"
	"  status          health, readiness, tables in memory, counters\n"
	"  check           exit 0 when the daemon is ready and no table is halted, else 1\n"
	"  check TABLE     read all that its refs name: metadata, manifests, vectors; sizes of\n"
	"                  files; exit 0 when nothing is wrong, else 1\n"
	"  txn ID          state and outcome of a transaction; exit 0 when it is committed, else "
	"1\n"
	"  tables          tables in memory, with their last batch and queue; --halted: only "
	"those\n"
	"  table TABLE     one of them, by UUID, name or the end of its name\n"
	"  txns [TABLE]    transactions that are not final, the oldest first\n"
	"  batch [TABLE]   batches under way; with TABLE also what was decided, newest first;\n"
	"                  also spelt batches\n"
	"  findings [TABLE]\n"
	"                  what snapshots of REST clients contradict, newest first\n"
	"  halt TABLE      publish nothing for a table until its resume; --cause: why\n"
	"  resume TABLE    clear the halt of a table\n"
	"  version         versions of this program, its library and the daemon\n"
	"\n"
	"  -a, --admin URL       admin port (FRAZILCTL_ADMIN, http://127.0.0.1:8183)\n"
	"  -r, --rpc ADDRESS     worker port or socket (FRAZILCTL_RPC, 127.0.0.1:8182)\n"
	"  -t, --timeout MS      of one command (10000)\n"
	"  -j, --json            one JSON value a command\n"
	"      --halted          tables: only those that wait for an operator\n"
	"      --cause TEXT      halt: why, for those who look at the table\n"
	"  -n, --limit N         lists: at most so many rows (all; decided batches: 20)\n"
	"  -h, --help\n"
	"\n"
	"exit: 0 yes, 1 no, 2 usage, 3 no daemon answered, 4 the daemon refused\n";

static int usage(void)
{
	fputs(usage_text, stderr);
	return CTL_USAGE;
}

static int run(const struct ctl *c, const char *command, const char *arg)
{
	static const struct {
		const char *name;
		int (*plain)(const struct ctl *);
		int (*with)(const struct ctl *, const char *);
		bool optional; /* the argument may be left out */
	} commands[] = {
		{"status", ctl_cmd_status, NULL, false},
		{"check", NULL, ctl_cmd_check, true},
		{"tables", ctl_cmd_tables, NULL, false},
		{"version", ctl_cmd_version, NULL, false},
		{"txn", NULL, ctl_cmd_txn, false},
		{"txns", NULL, ctl_cmd_txns, true},
		{"table", NULL, ctl_cmd_table, false},
		{"batches", NULL, ctl_cmd_batches, true},
		{"batch", NULL, ctl_cmd_batches, true},
		{"findings", NULL, ctl_cmd_findings, true},
		{"halt", NULL, ctl_cmd_halt, false},
		{"resume", NULL, ctl_cmd_resume, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, command) != 0)
			continue;
		if (commands[i].with)
			return arg || commands[i].optional ? commands[i].with(c, arg) : usage();
		return arg ? usage() : commands[i].plain(c);
	}
	return usage();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"admin", required_argument, NULL, 'a'},
						{"rpc", required_argument, NULL, 'r'},
						{"timeout", required_argument, NULL, 't'},
						{"json", no_argument, NULL, 'j'},
						{"halted", no_argument, NULL, 'H'},
						{"cause", required_argument, NULL, 'C'},
						{"limit", required_argument, NULL, 'n'},
						{"help", no_argument, NULL, 'h'},
						{NULL, 0, NULL, 0}};
	const char *admin = getenv("FRAZILCTL_ADMIN"), *rpc = getenv("FRAZILCTL_RPC");
	struct ctl c = {.admin = admin ? admin : "http://127.0.0.1:8183",
			.rpc = rpc ? rpc : "127.0.0.1:8182",
			.timeout_ms = TIMEOUT_MS};
	int64_t ms;
	for (int o; (o = getopt_long(argc, argv, "a:r:t:n:jh", options, NULL)) != -1;) {
		switch (o) {
		case 'a':
			c.admin = optarg;
			break;
		case 'r':
			c.rpc = optarg;
			break;
		case 't':
			if (!strv_i64(strv_of(optarg), &ms) || ms < 1 || ms > 3600000)
				return usage();
			c.timeout_ms = (int)ms;
			break;
		case 'C':
			c.cause = optarg;
			break;
		case 'n':
			if (!strv_i64(strv_of(optarg), &ms) || ms < 1 || ms > 1000000)
				return usage();
			c.limit = (size_t)ms;
			break;
		case 'j':
			c.json = true;
			break;
		case 'H':
			c.halted = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return CTL_OK;
		default:
			return usage();
		}
	}
	if (optind >= argc || argc - optind > 2)
		return usage();
	return run(&c, argv[optind], argv[optind + 1]);
}
