/* frazild: options and the list of steps. Exit codes: 0 stopped in order, 1 could not start or run,
 * 2 wrong options or configuration, 3 forced out of a drain. */
#include <getopt.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/bind/bind.h"
#include "daemon/bind/bind_metrics.h"
#include "daemon/bind/bind_rpc.h"
#include "daemon/bind/tcheck.h"
#include "daemon/admin/ad_health.h"
#include "daemon/app.h"
#include "daemon/net/auth.h"
#include "daemon/net/front.h"
#include "daemon/notify.h"
#include "daemon/rest/h_rest.h"
#include "daemon/rest/h_unplaced.h"

#define MMAP_BYTES (256 << 10)
#define EXIT_USAGE 2
#define SETS_MAX 256

extern char **environ;

/* In order of start; each may use those before it. */
static const struct app_step *const steps[] = {
	&notify_step,
	&front_routes_step,
	&auth_step,
	&ad_health_step,
	&front_admin_step,
	&bind_store_step,
	&bind_core_step,
	&bind_metrics_step,
	&tcheck_step,
	&h_rest_step,
	&h_unplaced_step,
	&bind_rpc_step,
	&front_rest_step,
	NULL,
};

struct options {
	const char *file; /* NULL: none */
	const char *sets[SETS_MAX];
	size_t n_sets;
	bool check, print, version, help;
};

static const char help_text[] =
	"Usage: frazild [options]\n"
	"Commit coordinator and REST catalog for Apache Iceberg tables.\n"
	"\n"
	"  --config FILE        read this file; default: none\n"
	"  --set SECTION.KEY=V  set one key; wins over file and environment; repeatable\n"
	"  --check-config       check the configuration and exit\n"
	"  --print-config       print the configuration in force with its origins and exit\n"
	"  --version            print the version and exit\n"
	"  --help               print this text and exit\n"
	"\n"
	"SIGTERM and SIGINT finish running work and stop; SIGHUP reloads the configuration.\n";

static void put(int fd, struct strv text)
{
	while (text.n) {
		ssize_t n = write(fd, text.p, text.n);
		if (n <= 0)
			return;
		text = strv_sub(text, (size_t)n, text.n);
	}
}

static void complain(const struct err *err)
{
	struct buf b;
	buf_init(&b, 4096);
	buf_printf(&b, "frazild: %s%s%s\n", err->field, err->field[0] ? ": " : "", err->msg);
	put(2, buf_strv(&b));
	buf_fini(&b);
}

static enum status parse(int argc, char **argv, struct options *o, struct err *err)
{
	static const struct option known[] = {
		{"config", required_argument, NULL, 'c'},
		{"set", required_argument, NULL, 's'},
		{"check-config", no_argument, NULL, 'k'},
		{"print-config", no_argument, NULL, 'p'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->file = optarg;
			break;
		case 's':
			if (o->n_sets == SETS_MAX)
				return err_set(err, ST_LIMIT, "--set", "more than %d", SETS_MAX);
			o->sets[o->n_sets++] = optarg;
			break;
		case 'k':
			o->check = true;
			break;
		case 'p':
			o->print = true;
			break;
		case 'v':
			o->version = true;
			break;
		case 'h':
			o->help = true;
			break;
		default:
			return err_set(err, ST_ILLEGAL_ARGUMENT, "",
				       "unknown option or missing value: %s; see --help",
				       argv[optind - 1]);
		}
	}
	if (optind < argc)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "unexpected argument: %s",
			       argv[optind]);
	return ST_OK;
}

/* All sources in order; also the app's reload. */
static enum status load(void *ctx, struct conf **ret_conf, struct err *err)
{
	const struct options *o = ctx;
	struct conf *c = conf_new();
	enum status st = o->file ? conf_apply_file(c, o->file, err) : ST_OK;
	if (st == ST_OK)
		st = conf_apply_env(c, environ, err);
	for (size_t i = 0; st == ST_OK && i < o->n_sets; i++)
		st = conf_apply_set(c, strv_of(o->sets[i]), err);
	if (st == ST_OK)
		st = conf_check(c, err);
	if (st != ST_OK) {
		conf_unref(c);
		return st;
	}
	*ret_conf = c;
	return ST_OK;
}

/* Descriptors: as many as the system lets us have, and a warning when the configured connections do
 * not fit. */
static void raise_limits(const struct conf *c)
{
	struct rlimit r;
	const int64_t others = 256;
	int64_t want = c->rest_max_connections + c->rpc_max_connections + others;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_max != RLIM_INFINITY && (int64_t)r.rlim_max < want)
		LOG(LOG_WARN, "app.limited", NULL,
		    "%lld descriptors for rest.max-connections, rpc.max-connections and others, "
		    "which need %lld",
		    (long long)r.rlim_max, (long long)want);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct err err = {0};
	struct conf *conf = NULL;
	/* What a job decodes goes back to the system with it; else the threads' heaps keep it. */
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	if (parse(argc, argv, &o, &err) != ST_OK) {
		complain(&err);
		return EXIT_USAGE;
	}
	if (o.help || o.version) {
		put(1, o.help ? (struct strv){help_text, sizeof help_text - 1}
			      : STRV("frazild " APP_VERSION "\n"));
		return 0;
	}
	if (load(&o, &conf, &err) != ST_OK) {
		complain(&err);
		return EXIT_USAGE;
	}
	if (o.print) {
		struct buf b;
		buf_init(&b, 4 * CONF_MAX_FILE);
		conf_print(conf, &b);
		put(1, buf_strv(&b));
		buf_fini(&b);
	}
	if (o.check || o.print) {
		conf_unref(conf);
		return 0;
	}
	static struct app app;
	app_init(&app, conf, steps);
	raise_limits(conf);
	app.load = load;
	app.load_ctx = &o;
	int code = app_run(&app);
	app_fini(&app);
	return code;
}
