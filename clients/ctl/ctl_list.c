/* Lists of the admin port: tables, transactions, batches, findings. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "clients/c/frazil.h"
#include "clients/ctl/ctl_admin.h"
#include "proto/base/jwrite.h"

/* Rows printed as text, or gathered as JSON. */
struct listing {
	const struct ctl *c;
	void (*line)(const struct jval *row);
	bool (*wanted)(const struct listing *l, const struct jval *row);
	const char *pick;
	struct buf out;
	struct jwrite w;
	size_t found;
};

static void listing_init(struct listing *l, const struct ctl *c,
			 void (*line)(const struct jval *row))
{
	*l = (struct listing){.c = c, .line = line};
	buf_init(&l->out, CTL_OUT_MAX);
	jwrite_init(&l->w, &l->out);
}

static void add(void *ctx, const struct jval *row)
{
	struct listing *l = ctx;
	struct buf one;
	if (l->wanted && !l->wanted(l, row))
		return;
	l->found++;
	if (!l->c->json) {
		l->line(row);
		return;
	}
	buf_init(&one, CTL_OUT_MAX);
	jval_dump(&one, row);
	jwrite_raw(&l->w, buf_strv(&one));
	buf_fini(&one);
}

static int listing_end(struct listing *l, int code)
{
	if (l->c->json && code == CTL_OK)
		admin_print(&l->out);
	buf_fini(&l->out);
	return code;
}

static void when(const struct jval *row, const char *key, char out[32])
{
	struct tm tm;
	time_t s = (time_t)(admin_number(row, key) / 1000);
	if (!gmtime_r(&s, &tm) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(out, 32, "-");
}

/* ---- tables ---- */

static void table_line(const struct jval *t)
{
	struct strv name = admin_text(t, "name"), id = admin_text(t, "table-uuid");
	struct strv state = admin_text(t, "state"), cause = admin_text(t, "cause");
	struct strv object = admin_text(jval_get(t, "halt"), "object");
	printf("%-36.*s  %-30.*s  %-9.*s  batch %" PRId64 "  queued %" PRId64 "%s%.*s%s%.*s\n",
	       STRV_ARG(id), STRV_ARG(name), STRV_ARG(state), admin_number(t, "last-batch"),
	       admin_number(t, "queued"), admin_true(t, "halted") ? "  HALTED: " : "",
	       STRV_ARG(cause), object.n ? "  " : "", STRV_ARG(object));
}

/* Whether `which` is the table's UUID, its whole name (warehouse.namespace.table), or the end of
 * it. */
static bool is_named(const struct jval *t, const char *which)
{
	struct strv name = admin_text(t, "name"), w = strv_of(which);
	if (strv_ieq(admin_text(t, "table-uuid"), w) || strv_eq(name, w))
		return true;
	return w.n > 0 && name.n > w.n && strv_ends(name, w) && name.p[name.n - w.n - 1] == '.';
}

static bool picked(const struct listing *l, const struct jval *row)
{
	return !l->pick || is_named(row, l->pick);
}

static int show_tables(const struct ctl *c, const char *pick, size_t *ret_found)
{
	struct listing l;
	listing_init(&l, c, table_line);
	l.wanted = picked;
	l.pick = pick;
	jwrite_array(&l.w);
	int code = admin_pages(c, c->halted ? "/admin/tables?halted=true" : "/admin/tables",
			       "tables", "after", pick ? 0 : c->limit, NULL, add, &l);
	jwrite_end_array(&l.w);
	*ret_found = l.found;
	return listing_end(&l, code);
}

int ctl_cmd_tables(const struct ctl *c)
{
	size_t found;
	return show_tables(c, NULL, &found);
}

int ctl_cmd_table(const struct ctl *c, const char *which)
{
	size_t found;
	int code = show_tables(c, which, &found);
	if (code == CTL_OK && found == 0) {
		fprintf(stderr, "frazilctl: no table in memory is %s\n", which);
		code = CTL_REFUSED;
	}
	return code;
}

struct search {
	const char *which;
	char *id;
	size_t found;
};

static void look(void *ctx, const struct jval *row)
{
	struct search *s = ctx;
	if (is_named(row, s->which) && strv_cstr(admin_text(row, "table-uuid"), s->id, 37))
		s->found++;
}

int ctl_find_table(const struct ctl *c, const char *which, char ret_id[37])
{
	uint8_t id[16];
	struct search s = {which, ret_id, 0};
	if (fz_id_parse(which, id)) {
		fz_id_text(id, ret_id);
		return CTL_OK;
	}
	int code = admin_pages(c, "/admin/tables", "tables", "after", 0, NULL, look, &s);
	if (code != CTL_OK || s.found == 1)
		return code;
	if (s.found == 0)
		fprintf(stderr, "frazilctl: no table in memory is %s\n", which);
	else
		fprintf(stderr, "frazilctl: %zu tables are named %s: say more of the name\n",
			s.found, which);
	return CTL_REFUSED;
}

/* "PATH?table=UUID", or PATH without a table. */
static int with_table(const struct ctl *c, const char *which, const char *path, char url[128])
{
	char id[37];
	if (!which) {
		snprintf(url, 128, "%s", path);
		return CTL_OK;
	}
	int code = ctl_find_table(c, which, id);
	if (code == CTL_OK)
		snprintf(url, 128, "%s?table=%s", path, id);
	return code;
}

/* ---- transactions ---- */

static void txn_line(const struct jval *x)
{
	char begun[32];
	struct strv id = admin_text(x, "txn-id"), state = admin_text(x, "state");
	struct strv kind = admin_text(x, "kind"), table = admin_text(x, "table");
	struct strv ref = admin_text(x, "ref");
	when(x, "created-ms", begun);
	printf("%-36.*s  %-7.*s  %-9.*s  %.*s@%.*s  fragments %" PRId64 "  begun %s\n",
	       STRV_ARG(id), STRV_ARG(state), STRV_ARG(kind), STRV_ARG(table), STRV_ARG(ref),
	       admin_number(x, "fragments"), begun);
}

static int plain_list(const struct ctl *c, const char *which, const char *path, const char *name,
		      const char *cursor, void (*line)(const struct jval *row))
{
	char url[128];
	struct listing l;
	int code = with_table(c, which, path, url);
	if (code != CTL_OK)
		return code;
	listing_init(&l, c, line);
	jwrite_array(&l.w);
	code = admin_pages(c, url, name, cursor, c->limit, NULL, add, &l);
	jwrite_end_array(&l.w);
	return listing_end(&l, code);
}

int ctl_cmd_txns(const struct ctl *c, const char *which)
{
	return plain_list(c, which, "/admin/txns", "transactions", "after", txn_line);
}

/* ---- findings ---- */

static void finding_line(const struct jval *x)
{
	char found[32];
	struct strv table = admin_text(x, "table"), kind = admin_text(x, "kind");
	struct strv file = admin_text(x, "file");
	when(x, "found-ms", found);
	printf("%s  %-15.*s  %.*s  %.*s\n", found, STRV_ARG(kind), STRV_ARG(table), STRV_ARG(file));
}

int ctl_cmd_findings(const struct ctl *c, const char *which)
{
	return plain_list(c, which, "/admin/findings", "findings", "before", finding_line);
}

/* ---- batches ---- */

static void flight_line(const struct jval *b)
{
	struct strv table = admin_text(b, "table"), state = admin_text(b, "state");
	printf("%8" PRId64 "  %-10.*s  %.*s  transactions %" PRId64 "%s  writes open %" PRId64 "\n",
	       admin_number(b, "batch-no"), STRV_ARG(state), STRV_ARG(table),
	       admin_number(b, "transactions"), admin_true(b, "rest") ? " (REST)" : "",
	       admin_number(b, "writes-open"));
}

static void decided_line(const struct jval *b)
{
	char at[32];
	when(b, "decided-ms", at);
	printf("%8" PRId64 "  decided     %s  transactions %" PRId64 ", committed %" PRId64
	       "  snapshots %" PRId64 "  rows added %" PRId64 "\n",
	       admin_number(b, "batch-no"), at, admin_number(b, "transactions"),
	       admin_number(b, "committed"), admin_number(b, "snapshots"),
	       admin_number(b, "added-rows"));
}

/* Of the first page only: what is under way does not go on with the pages. */
static void flights(void *ctx, const struct jval *root)
{
	struct listing *l = ctx;
	const struct jval *v = jval_get(root, "in-flight");
	if (l->pick)
		return;
	l->pick = "seen";
	jwrite_key(&l->w, "in-flight");
	jwrite_array(&l->w);
	for (size_t i = 0; i < jval_count(v); i++)
		add(l, jval_at(v, i));
	jwrite_end_array(&l->w);
	jwrite_key(&l->w, "decided");
	jwrite_array(&l->w);
	l->line = decided_line;
}

int ctl_cmd_batches(const struct ctl *c, const char *which)
{
	char id[37], url[128];
	struct listing l;
	int code = CTL_OK;
	if (which) {
		code = ctl_find_table(c, which, id);
		if (code != CTL_OK)
			return code;
		snprintf(url, sizeof url, "/admin/tables/%s/batches", id);
	}
	listing_init(&l, c, flight_line);
	jwrite_object(&l.w);
	if (which) {
		code = admin_pages(c, url, "decided", "before", c->limit ? c->limit : 20, flights,
				   add, &l);
		if (l.pick)
			jwrite_end_array(&l.w);
	} else {
		jwrite_key(&l.w, "in-flight");
		jwrite_array(&l.w);
		code = admin_pages(c, "/admin/batches", "in-flight", "after", c->limit, NULL, add,
				   &l);
		jwrite_end_array(&l.w);
	}
	jwrite_end_object(&l.w);
	return listing_end(&l, code);
}
