/* The decision over several tables: all of it or nothing, whatever refuses it and whatever comes between. */
#include "tests/it/pgtest_make.h"

#define MANY 1024

/* Two tables with something to publish, one that is only judged, and one that comes. */
struct group {
	struct made m[4];
	char names[4][24];
	char objects[4][64];
	struct strv paths[4];
	struct sql_publish p[3];
	struct sql_table_create c;
	const struct sql_publish *parts[3];
	const struct sql_table_create *creates[1];
	struct sql_tables_commit k;
	struct sql_effect e;
};

static int by_table(const void *x, const void *y)
{
	const struct sql_publish *a = *(const struct sql_publish *const *)x;
	const struct sql_publish *b = *(const struct sql_publish *const *)y;
	return uuid_cmp(a->row.table.u, b->row.table.u);
}

static void make_group(struct pgtest *t, struct admin *a, struct group *g, const char *name)
{
	struct ran r;
	memset(g, 0, sizeof *g);
	for (int i = 0; i < 3; i++) {
		snprintf(g->names[i], sizeof g->names[i], "%s%d", name, i);
		make_table(t, a, &g->m[i], "ns1", g->names[i]);
		snprintf(g->objects[i], sizeof g->objects[0], "/w/%s%d/v2.json", name, i);
		g->paths[i] = strv_of(g->objects[i]);
		g->p[i] = make_publish(&g->m[i], 2, NULL, NULL, 0, &g->paths[i], i < 2);
		g->p[i].row.epoch = 1;
		g->parts[i] = &g->p[i];
		if (i == 2) {
			g->p[i].row.batch_no = 0;
			continue;
		}
		struct sql_effect l = make_ledger(&g->m[i], 2, 1, &g->paths[i], 1);
		pgtest_run(t, &l, &r);
		EXPECT(r.r.verdict == SQL_APPLIED);
	}
	snprintf(g->names[3], sizeof g->names[3], "%s3", name);
	make_ids(&g->m[3], g->names[3]);
	g->paths[3] = strv_of(g->m[3].metadata);
	struct sql_effect l = make_ledger(&g->m[3], 1, -1, &g->paths[3], 1);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	g->c = make_create(&g->m[3], "ns2", g->names[3], 1);
	g->c.objects = &g->paths[3];
	g->c.n_objects = 1;
	g->creates[0] = &g->c;
	qsort(g->parts, 3, sizeof g->parts[0], by_table);
	g->k = (struct sql_tables_commit){g->parts, 3, g->creates, 1, {0}};
	g->e = (struct sql_effect){.kind = SQL_TABLES_COMMIT, .u.tables = &g->k};
}

static size_t place_of(const struct group *g, int i)
{
	for (size_t k = 0; k < 3; k++)
		if (g->parts[k] == &g->p[i])
			return k;
	return 99;
}

static int64_t head_of(struct admin *a, const struct made *m, const char *column)
{
	char sql[256], uuid[UUID_TEXT_LEN + 1];
	uuid_text(m->table.u, uuid);
	snprintf(sql, sizeof sql, "SELECT coalesce(max(%s), -1) FROM frazil.head WHERE table_id = '%s'",
		 column, uuid);
	return admin_i64(a, sql);
}

/* Refused without a trace. */
static void refused(struct pgtest *t, struct admin *a, struct group *g, size_t at,
		    enum sql_create_verdict created)
{
	char before[33], after[33];
	struct ran r;
	admin_dump(a, before);
	pgtest_run(t, &g->e, &r);
	admin_dump(a, after);
	EXPECT(r.r.err.st == ST_OK && r.r.verdict == SQL_REFUSED && r.r.at == at);
	EXPECT(at < g->k.n_parts || r.r.created == created);
	EXPECT(!strcmp(before, after));
}

static void all(struct pgtest *t, struct admin *a)
{
	static struct group g;
	char before[33], after[33];
	struct ran r;
	make_group(t, a, &g, "all");
	pgtest_run(t, &g.e, &r);
	EXPECT(r.r.err.st == ST_OK && r.r.verdict == SQL_APPLIED && r.r.pg_ms > 0);
	for (int i = 0; i < 2; i++) {
		EXPECT(head_of(a, &g.m[i], "version") == 2 && head_of(a, &g.m[i], "last_batch") == 2);
		EXPECT(head_of(a, &g.m[i], "epoch") == 1);
	}
	EXPECT(head_of(a, &g.m[2], "version") == 1 && head_of(a, &g.m[2], "last_batch") == 1);
	EXPECT(head_of(a, &g.m[3], "version") == 1 && head_of(a, &g.m[3], "epoch") == 1);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/all%'") == 0);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.batch b JOIN frazil.tabular t USING (table_id)"
			    " WHERE t.name LIKE 'all%'") == 6);
	struct sql_effect look = {.kind = SQL_BATCH_LOOK,
				  .u.look = {g.m[1].table, g.p[1].row.batch}};
	pgtest_run(t, &look, &r);
	EXPECT(r.r.found);
	/* Sent again: it knows itself. */
	admin_dump(a, before);
	pgtest_run(t, &g.e, &r);
	admin_dump(a, after);
	EXPECT(r.r.verdict == SQL_APPLIED && !strcmp(before, after));
}

static void none(struct pgtest *t, struct admin *a)
{
	static struct group g;
	struct ran r;
	char before[33], after[33];
	make_group(t, a, &g, "none");
	for (int i = 0; i < 3; i++) {
		g.p[i].row.epoch = 2;
		refused(t, a, &g, place_of(&g, i), SQL_CREATED);
		g.p[i].row.epoch = 1;
		g.p[i].row.base_version = 7;
		refused(t, a, &g, place_of(&g, i), SQL_CREATED);
		g.p[i].row.base_version = 1;
		g.p[i].row.incarnation += 1000;
		refused(t, a, &g, place_of(&g, i), SQL_CREATED);
		g.p[i].row.incarnation -= 1000;
	}
	g.c.name = strv_of(g.names[0]);
	g.c.levels--; /* ns1 */
	refused(t, a, &g, 3, SQL_CREATE_NAME_TABLE);
	g.c.levels += 2; /* nowhere */
	refused(t, a, &g, 3, SQL_CREATE_NO_NAMESPACE);
	g.c.levels--;
	g.c.name = strv_of(g.names[3]);
	struct table_id own = g.c.table;
	g.c.table = g.m[1].table;
	refused(t, a, &g, 3, SQL_CREATE_UUID_LIVE);
	g.c.table = own;
	/* An object of the second that is not on the ledger: an error, and nothing of the others. */
	struct strv missing = STRV("/w/none/missing.json");
	const struct strv *had = g.p[1].objects;
	g.p[1].objects = &missing;
	admin_dump(a, before);
	pgtest_run(t, &g.e, &r);
	admin_dump(a, after);
	EXPECT(r.r.sent && !r.r.lost && r.r.err.st == ST_INTERNAL && !strcmp(before, after));
	g.p[1].objects = had;
	pgtest_run(t, &g.e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
}

static void races(struct pgtest *t, struct admin *a, struct admin *b)
{
	static struct group g;
	make_group(t, a, &g, "race");
	for (int i = 0; i < 3; i++) {
		races_refused(t, a, b, &g.e,
			      "BEGIN; UPDATE frazil.head SET epoch = epoch + 1 WHERE table_id = '%s'",
			      &g.m[i]);
		g.p[i].row.epoch++;
		races_refused(t, a, b, &g.e,
			      "BEGIN; UPDATE frazil.head SET version = version + 1 WHERE table_id = '%s'",
			      &g.m[i]);
		g.p[i].row.base_version++;
	}
	/* Somebody creates a table of that name; %s is not its id, but some table's. */
	races_refused(t, a, b, &g.e,
		      "BEGIN; SELECT 1 FROM frazil.namespace WHERE name = 'ns2' FOR NO KEY UPDATE;"
		      " INSERT INTO frazil.tabular (table_id, namespace_id, name, kind, location)"
		      " SELECT overlay('%s' placing '77' from 1)::uuid, namespace_id, 'race3', 0, '/w/other'"
		      " FROM frazil.namespace WHERE name = 'ns2'",
		      &g.m[0]);
	admin_script(a, "DELETE FROM frazil.tabular WHERE location = '/w/other'");
	/* A drop of one of them. */
	races_refused(t, a, b, &g.e, "BEGIN; SELECT frazil.end_table('%s')", &g.m[1]);
	EXPECT(head_of(a, &g.m[0], "version") == 2 && head_of(a, &g.m[3], "version") == -1);
}

/* As many as a request may have: created by one statement, then published by one. */
static void many(struct pgtest *t, struct admin *a)
{
	static struct made m[MANY];
	static char names[MANY][24];
	static struct sql_table_create c[MANY];
	static struct sql_publish p[MANY];
	static const struct sql_table_create *creates[MANY];
	static const struct sql_publish *parts[MANY];
	struct ran r;
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "many%d", i);
		make_ids(&m[i], names[i]);
		c[i] = make_create(&m[i], "ns1", names[i], 1);
		creates[i] = &c[i];
	}
	struct sql_tables_commit k = {NULL, 0, creates, MANY, {0}};
	struct sql_effect e = {.kind = SQL_TABLES_COMMIT, .u.tables = &k};
	int64_t began = make_now_ms();
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.err.st == ST_OK);
	printf("note: %d tables created in %lld ms\n", MANY, (long long)(make_now_ms() - began));
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.tabular WHERE name LIKE 'many%'") == MANY);
	for (int i = 0; i < MANY; i++) {
		m[i].incarnation = head_of(a, &m[i], "incarnation");
		p[i] = make_publish(&m[i], 2, NULL, NULL, 0, NULL, 0);
		p[i].row.epoch = 1;
		parts[i] = &p[i];
	}
	qsort(parts, MANY, sizeof parts[0], by_table);
	k = (struct sql_tables_commit){parts, MANY, NULL, 0, {0}};
	began = make_now_ms();
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.err.st == ST_OK);
	printf("note: %d tables published in %lld ms\n", MANY, (long long)(make_now_ms() - began));
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.head h JOIN frazil.tabular t USING (table_id)"
			    " WHERE t.name LIKE 'many%' AND h.version = 2") == MANY);
}

void pgtest_tables(struct pgtest *t)
{
	struct admin *a = admin_open(t), *b = admin_open(t);
	make_catalog(a);
	all(t, a);
	none(t, a);
	races(t, a, b);
	many(t, a);
	admin_close(b);
	admin_close(a);
}
