/* Namespaces, names and views: every verdict, and paging by the last name. */
#include "store/pg/pg_ns.h"
#include "store/pg/pg_tabular.h"
#include "tests/it/pgtest_make.h"

struct got {
	bool done;
	int times;
	struct err err;
	char names[256]; /* joined by commas; properties as k=v */
	char updated[64], removed[64], missing[64];
	bool more, found;
	struct pg_tabular_row row;
	char location[64], metadata[64], ns_location[64];
	enum pg_tabular_kind taken_by;
};

static struct pgtest *t;
static struct pgcat *cat;
static struct got got;
static struct err err;

static void join(char *out, size_t cap, const struct strv *v, size_t n)
{
	size_t at = 0;
	out[0] = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%.*s", i ? "," : "", STRV_ARG(v[i]));
}

static void ns_done(void *ctx, const struct pg_ns_result *r)
{
	struct got *g = ctx;
	g->done = true;
	g->times++;
	g->err = r->err;
	join(g->names, sizeof g->names, r->names, r->n_names);
	size_t at = 0;
	for (size_t i = 0; i < r->n_properties; i++)
		at += (size_t)snprintf(g->names + at, sizeof g->names - at, "%s%.*s=%.*s",
				       i ? "," : "", STRV_ARG(r->properties[i].key),
				       STRV_ARG(r->properties[i].value));
	join(g->updated, sizeof g->updated, r->updated, r->n_updated);
	join(g->removed, sizeof g->removed, r->removed, r->n_removed);
	join(g->missing, sizeof g->missing, r->missing, r->n_missing);
	g->more = r->more;
}

static void tab_done(void *ctx, const struct pg_tabular_result *r)
{
	struct got *g = ctx;
	g->done = true;
	g->times++;
	g->err = r->err;
	join(g->names, sizeof g->names, r->names, r->n_names);
	g->more = r->more;
	g->found = r->found;
	g->row = r->row;
	g->taken_by = r->taken_by;
	join(g->location, sizeof g->location, &r->row.location, 1);
	join(g->ns_location, sizeof g->ns_location, &r->ns_location, 1);
	join(g->metadata, sizeof g->metadata, &r->row.metadata_location, 1);
}

/* Runs one call to its end; the status of the call itself, or of its result. */
#define DO(call)                                                                                   \
	(memset(&got, 0, sizeof got),                                                              \
	 (call) != ST_OK                                                                           \
		 ? err.st                                                                          \
		 : (pgcat_flush(cat),                                                              \
		    pgtest_until(t, &got.done, 5000) && got.times == 1 ? got.err.st : ST__COUNT))

static struct pg_path path(const struct strv *levels, size_t n)
{
	return (struct pg_path){.warehouse = STRV("wh"), .levels = levels, .n = n};
}

static const struct strv a1[] = {STRV("a")};
static const struct strv ab[] = {STRV("a"), STRV("b.c")};
static const struct strv abc[] = {STRV("a"), STRV("b.c"), STRV("d")};
static const struct strv zz[] = {STRV("zz")};
static const struct strv ns1[] = {STRV("ns1")};

static void namespaces(void)
{
	struct strv_pair p[2] = {{STRV("owner"), STRV("eve \xf0\x9f\x90\x98")},
				 {STRV("k"), STRV("")}};
	EXPECT(DO(pg_ns_warehouse(cat, STRV("w2"), STRV("/w2"), false, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_warehouse(cat, STRV("w2"), STRV("/x"), false, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_create(cat, path(ab, 2), NULL, 0, NULL, ns_done, &got, &err)) ==
	       ST_NO_SUCH_NAMESPACE);
	EXPECT(!strcmp(got.err.msg, "Namespace does not exist: a"));
	EXPECT(DO(pg_ns_create(cat, path(a1, 1), p, 2, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_create(cat, path(a1, 1), p, 2, NULL, ns_done, &got, &err)) == ST_ALREADY_EXISTS);
	EXPECT(!strcmp(got.err.msg, "Namespace already exists: a"));
	EXPECT(DO(pg_ns_create(cat, path(ab, 2), NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_create(cat, path(abc, 3), NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	struct pg_path other = path(a1, 1);
	other.warehouse = STRV("nope");
	EXPECT(DO(pg_ns_create(cat, other, NULL, 0, NULL, ns_done, &got, &err)) == ST_NO_SUCH_WAREHOUSE);
	/* A warehouse in use keeps its location. */
	other.warehouse = STRV("w2");
	EXPECT(DO(pg_ns_create(cat, other, NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_warehouse(cat, STRV("w2"), STRV("/y"), false, ns_done, &got, &err)) ==
	       ST_ALREADY_EXISTS);
	EXPECT(DO(pg_ns_load(cat, path(a1, 1), ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "k=,owner=eve \xf0\x9f\x90\x98"));
	EXPECT(DO(pg_ns_load(cat, path(ab, 2), ns_done, &got, &err)) == ST_OK && !got.names[0]);
	EXPECT(DO(pg_ns_load(cat, path(zz, 1), ns_done, &got, &err)) == ST_NO_SUCH_NAMESPACE);
	struct strv remove[2] = {STRV("owner"), STRV("ghost")};
	struct strv_pair set[1] = {{STRV("new"), STRV("1")}};
	EXPECT(DO(pg_ns_update(cat, path(a1, 1), remove, 2, set, 1, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.updated, "new") && !strcmp(got.removed, "owner"));
	EXPECT(!strcmp(got.missing, "ghost"));
	EXPECT(DO(pg_ns_load(cat, path(a1, 1), ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "k=,new=1"));
	EXPECT(DO(pg_ns_update(cat, path(zz, 1), NULL, 0, NULL, 0, NULL, ns_done, &got, &err)) ==
	       ST_NO_SUCH_NAMESPACE);
	/* Children only, paged by the last name; order of bytes: B before a. */
	static const struct strv upper[] = {STRV("B")};
	EXPECT(DO(pg_ns_create(cat, path(upper, 1), NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_list(cat, path(NULL, 0), STRV(""), 0, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "B,a,ns1,ns2") && !got.more);
	EXPECT(DO(pg_ns_list(cat, path(NULL, 0), STRV(""), 2, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "B,a") && got.more);
	EXPECT(DO(pg_ns_list(cat, path(NULL, 0), STRV("a"), 2, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "ns1,ns2") && !got.more);
	EXPECT(DO(pg_ns_list(cat, path(a1, 1), STRV(""), 0, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "b.c"));
	EXPECT(DO(pg_ns_list(cat, path(abc, 3), STRV(""), 0, ns_done, &got, &err)) == ST_OK);
	EXPECT(!got.names[0]);
	EXPECT(DO(pg_ns_list(cat, path(zz, 1), STRV(""), 0, ns_done, &got, &err)) ==
	       ST_NO_SUCH_NAMESPACE);
	other.warehouse = STRV("nope");
	other.n = 0;
	EXPECT(DO(pg_ns_list(cat, other, STRV(""), 0, ns_done, &got, &err)) ==
	       ST_NO_SUCH_WAREHOUSE);
	EXPECT(DO(pg_ns_drop(cat, path(ab, 2), NULL, ns_done, &got, &err)) == ST_NAMESPACE_NOT_EMPTY);
	EXPECT(DO(pg_ns_drop(cat, path(abc, 3), NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_drop(cat, path(ab, 2), NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_drop(cat, path(ab, 2), NULL, ns_done, &got, &err)) == ST_NO_SUCH_NAMESPACE);
	EXPECT(!strcmp(got.err.msg, "Namespace does not exist: a.b.c"));
	/* Refused before anything is sent. */
	static const struct strv nul[] = {{"a\0b", 3}}, bad[] = {{"\xff", 1}}, empty[] = {STRV("")};
	EXPECT(pg_ns_load(cat, path(nul, 1), ns_done, &got, &err) == ST_BAD_REQUEST);
	EXPECT(pg_ns_load(cat, path(bad, 1), ns_done, &got, &err) == ST_BAD_REQUEST);
	EXPECT(pg_ns_load(cat, path(empty, 1), ns_done, &got, &err) == ST_BAD_REQUEST);
	struct strv_pair nulp[1] = {{STRV("k"), {"x\0y", 3}}};
	EXPECT(pg_ns_create(cat, path(zz, 1), nulp, 1, NULL, ns_done, &got, &err) == ST_BAD_REQUEST);
	/* 1,024 bytes that do not compress still fit into the index. */
	static char longest[1025];
	for (size_t i = 0; i < 1024; i++)
		longest[i] = (char)('!' + (i * i * 31 + i * 7) % 90);
	struct strv wide[] = {{longest, 1024}};
	EXPECT(DO(pg_ns_create(cat, path(wide, 1), NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_drop(cat, path(wide, 1), NULL, ns_done, &got, &err)) == ST_OK);
}

static int32_t resolves_under_way(void)
{
	return pgcat_resolve_queue(cat)->in_flight;
}

/* However many ask, and however often for the same name: one statement, and one more for all who
 * come before it has been answered. None of them is answered by a statement older than its question. */
static void shared_names(struct pg_path ns, struct uuid t1, struct uuid t2)
{
	static struct got g[301];
	memset(g, 0, sizeof g);
	int64_t sent = pgcat_statements(cat);
	for (int i = 0; i < 200; i++)
		EXPECT(pg_tabular_resolve(cat, ns, i % 2 ? STRV("t2") : STRV("t1"), tab_done, &g[i],
					  &err) == ST_OK);
	EXPECT(!pgcat_flush(cat));
	EXPECT(pgcat_statements(cat) == sent + 1 && resolves_under_way() == 1);
	for (int i = 200; i < 300; i++)
		EXPECT(pg_tabular_resolve(cat, ns, STRV("t1"), tab_done, &g[i], &err) == ST_OK);
	EXPECT(pgcat_flush(cat)); /* they wait */
	EXPECT(pgcat_statements(cat) == sent + 1);
	EXPECT(pgtest_until(t, &g[199].done, 5000));
	EXPECT(!g[200].done && resolves_under_way() == 0);
	EXPECT(!pgcat_flush(cat));
	EXPECT(pgcat_statements(cat) == sent + 2);
	EXPECT(pgtest_until(t, &g[299].done, 5000));
	for (int i = 0; i < 300; i++)
		EXPECT(g[i].times == 1 && g[i].found &&
		       uuid_eq(g[i].row.table.u, i < 200 && i % 2 ? t2 : t1));
	/* A statement that is not answered in time holds nobody up. */
	EXPECT(pg_tabular_resolve(cat, ns, STRV("t1"), tab_done, &g[300], &err) == ST_OK);
	pgcat_resolve_queue(cat)->in_flight++;
	pgcat_resolve_queue(cat)->sent_us = pgcat_now_us();
	EXPECT(pgcat_flush(cat) && pgcat_statements(cat) == sent + 2);
	pgcat_resolve_queue(cat)->sent_us -= PGCAT_PATIENCE_US;
	EXPECT(!pgcat_flush(cat) && pgcat_statements(cat) == sent + 3);
	pgcat_resolve_queue(cat)->in_flight--;
	EXPECT(pgtest_until(t, &g[300].done, 5000) && g[300].found);
	/* Names that differ share one too, up to 256; "a"."bc" is not "ab"."c". */
	static struct got far[600];
	memset(far, 0, sizeof far);
	static struct strv level[600], name[600];
	static char text[600][16];
	sent = pgcat_statements(cat);
	for (int i = 0; i < 600; i++) {
		snprintf(text[i], sizeof text[i], "%06d", i / 6);
		level[i] = (struct strv){text[i], (size_t)(i % 5 + 1)};
		name[i] = (struct strv){text[i] + i % 5 + 1, (size_t)(5 - i % 5)};
		EXPECT(pg_tabular_resolve(cat, path(&level[i], 1), name[i], tab_done, &far[i],
					  &err) == ST_OK);
	}
	while (pgcat_flush(cat))
		EXPECT(pgtest_until(t, &far[0].done, 5000));
	for (int i = 0; i < 600; i++)
		EXPECT(pgtest_until(t, &far[i].done, 5000) &&
		       far[i].err.st == ST_NO_SUCH_NAMESPACE);
	/* Of six in a row five differ. */
	EXPECT(pgcat_statements(cat) == sent + 2);
}

static void names(struct admin *a)
{
	struct made m, n;
	make_table(t, a, &m, "ns1", "t1");
	make_table(t, a, &n, "ns1", "t2");
	struct pg_path p1 = path(ns1, 1);
	static const struct strv ns2[] = {STRV("ns2")};
	struct pg_path p2 = path(ns2, 1);
	EXPECT(DO(pg_tabular_resolve(cat, p1, STRV("t1"), tab_done, &got, &err)) == ST_OK);
	EXPECT(got.found && uuid_eq(got.row.table.u, m.table.u) &&
	       got.row.incarnation == m.incarnation);
	EXPECT(got.row.kind == PG_TABULAR_TABLE && got.row.version == 1 && got.row.epoch == 1);
	EXPECT(!strcmp(got.metadata, m.metadata) && !strcmp(got.location, "/w/t1"));
	EXPECT(uuid_eq(got.row.holder.u, m.holder.u));
	EXPECT(DO(pg_tabular_resolve(cat, p1, STRV("nope"), tab_done, &got, &err)) == ST_OK);
	EXPECT(!got.found && !got.ns_location[0]);
	struct strv_pair where[1] = {{STRV("location"), STRV("/w/there")}};
	EXPECT(DO(pg_ns_update(cat, p2, NULL, 0, where, 1, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_tabular_resolve(cat, p2, STRV("nope"), tab_done, &got, &err)) == ST_OK);
	EXPECT(!got.found && !strcmp(got.ns_location, "/w/there"));
	EXPECT(DO(pg_tabular_resolve(cat, path(zz, 1), STRV("t1"), tab_done, &got, &err)) ==
	       ST_NO_SUCH_NAMESPACE);
	/* Several in one turn, one of them deep: each gets its own. */
	struct got g[3] = {0};
	EXPECT(pg_tabular_resolve(cat, path(abc, 3), STRV("t1"), tab_done, &g[0], &err) == ST_OK);
	EXPECT(pg_tabular_resolve(cat, p1, STRV("t2"), tab_done, &g[1], &err) == ST_OK);
	EXPECT(pg_tabular_resolve(cat, p1, STRV("t1"), tab_done, &g[2], &err) == ST_OK);
	pgcat_flush(cat);
	EXPECT(pgtest_until(t, &g[2].done, 5000) && g[0].done && g[1].done);
	EXPECT(g[0].err.st == ST_NO_SUCH_NAMESPACE);
	EXPECT(uuid_eq(g[1].row.table.u, n.table.u) && uuid_eq(g[2].row.table.u, m.table.u));
	shared_names(p1, m.table.u, n.table.u);

	const struct uuid before = {{0}}; /* a file that nobody writes now */
	struct uuid v = m.table.u;
	v.b[0] ^= 0x55;
	EXPECT(DO(pg_tabular_view_create(cat, p1, STRV("v1"), v, before, &STRV("/w/v1"), 1,
					 STRV("/w/v1/1.json"), NULL, tab_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_tabular_view_create(cat, p1, STRV("v1"), v, before, &STRV("/w/v1"), 1,
					 STRV("/w/v1/1.json"), NULL, tab_done, &got, &err)) ==
	       ST_ALREADY_EXISTS);
	EXPECT(got.taken_by == PG_TABULAR_VIEW);
	EXPECT(DO(pg_tabular_view_create(cat, p1, STRV("t1"), v, before, &STRV("/w/v1"), 1,
					 STRV("/w/v1/1.json"), NULL, tab_done, &got, &err)) ==
	       ST_ALREADY_EXISTS);
	EXPECT(got.taken_by == PG_TABULAR_TABLE);
	EXPECT(DO(pg_tabular_view_create(cat, path(zz, 1), STRV("v1"), v, before, &STRV("/w/v1"), 1,
					 STRV("/w/v1/1.json"), NULL, tab_done, &got, &err)) ==
	       ST_NO_SUCH_NAMESPACE);
	struct ran r;
	struct sql_table_create c = make_create(&m, "ns1", "v1", 9);
	c.table.u.b[1] ^= 1;
	struct sql_effect e = {.kind = SQL_TABLE_CREATE, .u.create = &c};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_NAME_VIEW);
	EXPECT(DO(pg_tabular_resolve(cat, p1, STRV("v1"), tab_done, &got, &err)) == ST_OK);
	EXPECT(got.found && got.row.kind == PG_TABULAR_VIEW && got.row.version == 1);
	EXPECT(DO(pg_tabular_view_replace(cat, v, 1, before, &STRV("/w/v1"), 1, STRV("/w/v1/2.json"), NULL, tab_done, &got, &err)) ==
	       ST_OK);
	EXPECT(DO(pg_tabular_view_replace(cat, v, 1, before, &STRV("/w/v1"), 1, STRV("/w/v1/3.json"), NULL, tab_done, &got, &err)) ==
	       ST_COMMIT_FAILED);
	EXPECT(DO(pg_tabular_resolve(cat, p1, STRV("v1"), tab_done, &got, &err)) == ST_OK);
	EXPECT(got.row.version == 2 && !strcmp(got.metadata, "/w/v1/2.json"));

	EXPECT(DO(pg_tabular_list(cat, p1, PG_TABULAR_TABLE, STRV(""), 1, tab_done, &got, &err)) ==
	       ST_OK);
	EXPECT(!strcmp(got.names, "t1") && got.more);
	EXPECT(DO(pg_tabular_list(cat, p1, PG_TABULAR_TABLE, STRV("t1"), 1, tab_done, &got,
				  &err)) == ST_OK);
	EXPECT(!strcmp(got.names, "t2") && !got.more);
	EXPECT(DO(pg_tabular_list(cat, p1, PG_TABULAR_VIEW, STRV(""), 0, tab_done, &got, &err)) ==
	       ST_OK);
	EXPECT(!strcmp(got.names, "v1"));
	EXPECT(DO(pg_tabular_list(cat, path(zz, 1), PG_TABULAR_VIEW, STRV(""), 0, tab_done, &got,
				  &err)) == ST_NO_SUCH_NAMESPACE);

#define RENAME(from, name, to, to_name, kind)                                                      \
	DO(pg_tabular_rename(cat, from, STRV(name), to, STRV(to_name), kind, NULL, tab_done, &got, &err))
	EXPECT(RENAME(path(zz, 1), "t1", p2, "x", PG_TABULAR_TABLE) == ST_NO_SUCH_NAMESPACE);
	EXPECT(!strcmp(got.err.msg, "Namespace does not exist: zz"));
	EXPECT(RENAME(p1, "v1", p2, "x", PG_TABULAR_TABLE) == ST_NO_SUCH_TABLE);
	EXPECT(RENAME(p1, "t1", p2, "x", PG_TABULAR_VIEW) == ST_NO_SUCH_VIEW);
	EXPECT(RENAME(p1, "t1", path(zz, 1), "x.y", PG_TABULAR_TABLE) == ST_NO_SUCH_NAMESPACE);
	EXPECT(!strcmp(got.err.msg, "Namespace does not exist: zz"));
	EXPECT(RENAME(p1, "t1", p1, "t2", PG_TABULAR_TABLE) == ST_ALREADY_EXISTS);
	EXPECT(got.taken_by == PG_TABULAR_TABLE);
	EXPECT(RENAME(p1, "t1", p1, "v1", PG_TABULAR_TABLE) == ST_ALREADY_EXISTS);
	EXPECT(got.taken_by == PG_TABULAR_VIEW);
	EXPECT(RENAME(p1, "t1", p2, "moved", PG_TABULAR_TABLE) == ST_OK);
	EXPECT(DO(pg_tabular_resolve(cat, p2, STRV("moved"), tab_done, &got, &err)) == ST_OK);
	EXPECT(got.found && got.row.incarnation == m.incarnation);
	EXPECT(DO(pg_ns_drop(cat, p2, NULL, ns_done, &got, &err)) == ST_NAMESPACE_NOT_EMPTY);
	EXPECT(DO(pg_tabular_view_drop(cat, v, NULL, tab_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_tabular_view_drop(cat, v, NULL, tab_done, &got, &err)) == ST_NO_SUCH_VIEW);
	EXPECT(DO(pg_tabular_view_drop(cat, m.table.u, NULL, tab_done, &got, &err)) == ST_NO_SUCH_VIEW);
}

/* ------------------------------------------------------------------ files of views */

static const struct uuid old = {{0}}; /* the attempt of a file that was there before */

static int64_t objects(struct admin *a)
{
	return admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/vf%'");
}

static enum status create_vf(struct uuid v, struct uuid attempt, struct strv file)
{
	return DO(pg_tabular_view_create(cat, path(ns1, 1), STRV("vf"), v, attempt, &STRV("/w/vf"),
					 1, file, NULL, tab_done, &got, &err));
}

static enum status replace_vf(struct uuid v, int64_t version, struct uuid attempt, struct strv file)
{
	return DO(pg_tabular_view_replace(cat, v, version, attempt, &STRV("/w/vf"), 1, file, NULL,
					  tab_done, &got, &err));
}

static enum status ledger_vf(struct uuid v, struct uuid attempt, struct strv file)
{
	return DO(pg_tabular_view_ledger(cat, v, attempt, file, tab_done, &got, &err));
}

/* What is claimed of the view, which has no head, and what a look then spares. */
static size_t claim_vf(struct uuid v, struct ran *ret)
{
	struct sql_effect e = {.kind = SQL_CLEAN_CLAIM,
			       .u.claim = {.table = {v}, .gone = true, .tombstone_ms = 60000, .max = 100}};
	pgtest_sleep(t, 2);
	pgtest_run(t, &e, ret);
	return ret->r.n_paths;
}

static size_t spared_vf(struct strv file)
{
	struct ran r;
	struct sql_effect e = {.kind = SQL_CLEAN_LOOK, .u.clean_look = {.paths = &file, .n_paths = 1}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	return r.r.n_paths;
}

static void view_files(struct admin *a)
{
	const struct uuid v = {{7, 1}}, first = {{7, 2}}, second = {{7, 3}}, third = {{7, 4}};
	struct ran r;
	admin_script(a, "UPDATE frazil.tabular SET placed = true"); /* those of the tests before */
	/* A file that is on the ledger is its attempt's alone. */
	EXPECT(ledger_vf(v, first, STRV("/w/vf/1.json")) == ST_OK && objects(a) == 1);
	EXPECT(ledger_vf(v, second, STRV("/w/vf/1.json")) == ST_PATH_CONDEMNED);
	EXPECT(create_vf(v, second, STRV("/w/vf/1.json")) == ST_PATH_CONDEMNED);
	EXPECT(create_vf(v, old, STRV("/w/vf/1.json")) == ST_PATH_CONDEMNED);
	EXPECT(create_vf(v, first, STRV("/w/vf/9.json")) == ST_PATH_CONDEMNED);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.tabular WHERE name = 'vf'") == 0);
	EXPECT(create_vf(v, first, STRV("/w/vf/1.json")) == ST_OK && objects(a) == 0);
	EXPECT(replace_vf(v, 1, first, STRV("/w/vf/1.json")) == ST_PATH_CONDEMNED);
	/* A refused attempt's row stays until the cleaner has taken the file. */
	EXPECT(ledger_vf(v, second, STRV("/w/vf/2.json")) == ST_OK);
	EXPECT(ledger_vf(v, third, STRV("/w/vf/3.json")) == ST_OK);
	EXPECT(replace_vf(v, 1, second, STRV("/w/vf/2.json")) == ST_OK);
	EXPECT(replace_vf(v, 1, third, STRV("/w/vf/3.json")) == ST_COMMIT_FAILED && objects(a) == 1);
	EXPECT(claim_vf(v, &r) == 1 && !strcmp(r.path, "/w/vf/3.json"));
	EXPECT(replace_vf(v, 2, third, STRV("/w/vf/3.json")) == ST_PATH_CONDEMNED);
	EXPECT(replace_vf(v, 2, old, STRV("/w/vf/3.json")) == ST_PATH_CONDEMNED);
	EXPECT(admin_i64(a, "SELECT view_version FROM frazil.tabular WHERE name = 'vf'") == 2);
	EXPECT(spared_vf(STRV("/w/vf/3.json")) == 0);
	/* One that is queued only may be had again. */
	admin_script(a, "UPDATE frazil.object SET state = 2 WHERE path = '/w/vf/3.json'");
	EXPECT(replace_vf(v, 2, old, STRV("/w/vf/3.json")) == ST_OK && objects(a) == 0);
	/* Whatever the queue says, what the view names is spared, and what lies in another's place. */
	admin_script(a, "INSERT INTO frazil.object (path, table_id, epoch, state, since_ms)"
			" SELECT p, table_id, -1, 2, 0 FROM frazil.tabular,"
			" unnest(ARRAY['/w/vf/3.json', '/w/vf/2.json', '/w/vo/1.json']) p"
			" WHERE name = 'vf'");
	EXPECT(DO(pg_tabular_view_create(cat, path(ns1, 1), STRV("vo"), second, old, &STRV("/w/vo"), 1,
					 STRV("/w/vo/0.json"), NULL, tab_done, &got, &err)) == ST_OK);
	EXPECT(claim_vf(v, &r) == 3);
	EXPECT(spared_vf(STRV("/w/vf/3.json")) == 1 && spared_vf(STRV("/w/vo/1.json")) == 1);
	EXPECT(spared_vf(STRV("/w/vf/2.json")) == 0);
	/* A table that has come back is not a view: nothing in its place goes by this door. */
	admin_script(a, "UPDATE frazil.tabular SET kind = 0 WHERE name = 'vf'");
	EXPECT(spared_vf(STRV("/w/vf/2.json")) == 1);
	admin_script(a, "UPDATE frazil.tabular SET kind = 1 WHERE name = 'vf'");
	EXPECT(DO(pg_tabular_view_drop(cat, v, NULL, tab_done, &got, &err)) == ST_OK);
	EXPECT(spared_vf(STRV("/w/vf/3.json")) == 0);
	EXPECT(DO(pg_tabular_view_drop(cat, second, NULL, tab_done, &got, &err)) == ST_OK);
	admin_script(a, "DELETE FROM frazil.object WHERE path LIKE '/w/v%'");
}

void pgtest_catalog(struct pgtest *test)
{
	t = test;
	struct admin *a = admin_open(t);
	make_catalog(a);
	cat = pgcat_new(t->pool);
	namespaces();
	names(a);
	view_files(a);
	pgcat_free(cat);
	admin_close(a);
}
