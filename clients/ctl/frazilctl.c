/* frazilctl: looks at a running frazild, halts and resumes tables, moves catalogs in and out.
 * See frazilctl(1). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/ctl/ctl_cmd.h"
#include "clients/ctl/ctl_move.h"

#define TIMEOUT_MS 10000
/* One request of an import or export: a large table takes its time. */
#define MOVE_TIMEOUT_MS 60000
#define PARALLEL 4

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
	"  import --from URI | --from-file FILE\n"
	"                  register all that another REST catalog or a list holds; exit 0 when\n"
	"                  the target then holds it, 1 when something differs\n"
	"  export [--from URI]\n"
	"                  the list of a catalog, from which import puts it back\n"
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
	"import and export:\n"
	"      --from URI, --to URI          catalogs (to: FRAZILCTL_REST, http://127.0.0.1:8181)\n"
	"      --warehouse NAME              of the source\n"
	"      --token-file FILE             of the source: a bearer token\n"
	"      --credential-file FILE        id:secret, for its token endpoint\n"
	"      --oauth2-uri URI, --scope S   of the token endpoint\n"
	"      --header 'NAME: VALUE'        also more than once; --header-file FILE\n"
	"      --ca-file FILE                certificates to trust\n"
	"      --to-warehouse and so on      the same for the target\n"
	"      --namespace NAME, --table NAME  only those, also more than once\n"
	"      --parallel N                  requests at once (4)\n"
	"      --dry-run                     only look\n"
	"      --overwrite                   follow what has moved on at the source\n"
	"      --force                       take the source's file for the same table anyway\n"
	"      --output FILE                 export: in place of stdout\n"
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
		{"import", ctl_cmd_import, NULL, false},
		{"export", ctl_cmd_export, NULL, false},
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

/* Options of import and export that are one text, by their place in struct ctl_move_options. */
#define PEER(prefix, side)                                                                         \
	{prefix "warehouse", AT(side.warehouse)}, {prefix "token-file", AT(side.auth.token_file)}, \
		{prefix "credential-file", AT(side.auth.credential_file)},                         \
		{prefix "oauth2-uri", AT(side.auth.oauth_uri)},                                    \
		{prefix "scope", AT(side.auth.scope)},                                             \
		{prefix "header-file", AT(side.auth.header_file)},                                 \
	{                                                                                          \
		prefix "ca-file", AT(side.ca_file)                                                 \
	}
#define AT(member) offsetof(struct ctl_move_options, member)

static const struct {
	const char *name;
	size_t at;
} texts[] = {
	{"from", AT(source.uri)},    {"to", AT(target.uri)}, {"from-file", AT(from_file)},
	{"output", AT(output)},	     PEER("", source),	     PEER("to-", target),
};

enum {
	OPT_DRY_RUN = 256,
	OPT_OVERWRITE,
	OPT_FORCE,
	OPT_PARALLEL,
	OPT_NAMESPACE,
	OPT_TABLE,
	OPT_HEADER,
	OPT_TO_HEADER,
	OPT_TEXTS
};

static const struct option named[] = {
	{"admin", required_argument, NULL, 'a'},
	{"rpc", required_argument, NULL, 'r'},
	{"timeout", required_argument, NULL, 't'},
	{"json", no_argument, NULL, 'j'},
	{"halted", no_argument, NULL, 'H'},
	{"cause", required_argument, NULL, 'C'},
	{"limit", required_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{"overwrite", no_argument, NULL, OPT_OVERWRITE},
	{"force", no_argument, NULL, OPT_FORCE},
	{"parallel", required_argument, NULL, OPT_PARALLEL},
	{"namespace", required_argument, NULL, OPT_NAMESPACE},
	{"table", required_argument, NULL, OPT_TABLE},
	{"header", required_argument, NULL, OPT_HEADER},
	{"to-header", required_argument, NULL, OPT_TO_HEADER},
};

static bool append(const char **list, size_t *n, size_t max, const char *text)
{
	if (*n == max)
		return false;
	list[(*n)++] = text;
	return true;
}

/* An option of import or export. */
static bool take_moving(struct ctl_move_options *m, int o, const char *arg)
{
	int64_t n;
	switch (o) {
	case OPT_DRY_RUN:
		m->dry_run = true;
		return true;
	case OPT_OVERWRITE:
		m->overwrite = true;
		return true;
	case OPT_FORCE:
		m->force = true;
		return true;
	case OPT_PARALLEL:
		if (!strv_i64(strv_of(arg), &n) || n < 1 || n > CTL_CREW_MAX)
			return false;
		m->parallel = (size_t)n;
		return true;
	case OPT_NAMESPACE:
		return append(m->namespaces, &m->n_namespaces, CTL_CHOICE_MAX, arg);
	case OPT_TABLE:
		return append(m->tables, &m->n_tables, CTL_CHOICE_MAX, arg);
	case OPT_HEADER:
		return append(m->source.auth.headers, &m->source.auth.n_headers, CTL_HEADERS_MAX,
			      arg);
	case OPT_TO_HEADER:
		return append(m->target.auth.headers, &m->target.auth.n_headers, CTL_HEADERS_MAX,
			      arg);
	default:
		break;
	}
	if (o < OPT_TEXTS || (size_t)(o - OPT_TEXTS) >= ARRAY_SIZE(texts))
		return false;
	memcpy((char *)m + texts[o - OPT_TEXTS].at, &arg, sizeof arg);
	return true;
}

int main(int argc, char **argv)
{
	struct option options[ARRAY_SIZE(named) + ARRAY_SIZE(texts) + 1] = {0};
	const char *admin = getenv("FRAZILCTL_ADMIN"), *rpc = getenv("FRAZILCTL_RPC");
	const char *rest = getenv("FRAZILCTL_REST");
	static struct ctl_move_options move;
	struct ctl c = {.admin = admin ? admin : "http://127.0.0.1:8183",
			.rpc = rpc ? rpc : "127.0.0.1:8182",
			.timeout_ms = TIMEOUT_MS,
			.move = &move};
	int64_t ms;
	move.target.uri = rest ? rest : "http://127.0.0.1:8181";
	move.source.timeout_ms = move.target.timeout_ms = MOVE_TIMEOUT_MS;
	move.parallel = PARALLEL;
	memcpy(options, named, sizeof named);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		options[ARRAY_SIZE(named) + i] = (struct option){texts[i].name, required_argument,
								 NULL, OPT_TEXTS + (int)i};
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
			c.timeout_ms = move.source.timeout_ms = move.target.timeout_ms = (int)ms;
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
			if (!take_moving(&move, o, optarg))
				return usage();
		}
	}
	if (optind >= argc || argc - optind > 2)
		return usage();
	return run(&c, argv[optind], argv[optind + 1]);
}
