/* Idempotency keys: a decision and its key's row are one statement, whichever comes second is undone. */
#include "store/pg/pg_idem.h"
#include "store/pg/pg_ns.h"
#include "store/pg/pg_tabular.h"
#include "tests/it/pgtest_make.h"

struct got {
	bool done;
	int times;
	struct err err;
	struct pg_idem_result idem;
	char location[64], answer[128];
};

static struct pgtest *t;
static struct pgcat *cat;
static struct got got;
static struct err err;

static void idem_done(void *ctx, const struct pg_idem_result *r)
{
	struct got *g = ctx;
	g->done = true;
	g->times++;
	g->err = r->err;
	g->idem = *r;
	snprintf(g->location, sizeof g->location, "%.*s", STRV_ARG(r->location));
	snprintf(g->answer, sizeof g->answer, "%.*s", STRV_ARG(bytes_strv(r->answer)));
}

static void ns_done(void *ctx, const struct pg_ns_result *r)
{
	struct got *g = ctx;
	g->done = true;
	g->times++;
	g->err = r->err;
	snprintf(g->answer, sizeof g->answer, "%.*s", STRV_ARG(bytes_strv(r->answer)));
}

static void tab_done(void *ctx, const struct pg_tabular_result *r)
{
	struct got *g = ctx;
	g->done = true;
	g->times++;
	g->err = r->err;
}

#define DO(call)                                                                                   \
	(memset(&got, 0, sizeof got), (call) != ST_OK ? err.st : finished())

static enum status finished(void)
{
	pgcat_flush(cat);
	return pgtest_until(t, &got.done, 5000) && got.times == 1 ? got.err.st : ST__COUNT;
}

static struct sql_idem key(uint8_t number, int16_t http, bool file)
{
	struct sql_idem k = {.set = true, .file = file, .http = http};
	k.key.b[15] = number;
	k.bound = digest_sha256((struct bytes){&number, 1});
	return k;
}

/* What is kept for a key; ST_NOT_FOUND when there is nothing. */
static enum status look(uint8_t number)
{
	memset(&got, 0, sizeof got);
	pg_idem_look(cat, key(number, 0, false).key, idem_done, &got);
	enum status st = finished();
	struct digest bound = key(number, 0, false).bound;
	if (st == ST_OK && got.idem.found)
		EXPECT(digest_eq(&got.idem.bound, &bound));
	return st == ST_OK && !got.idem.found ? ST_NOT_FOUND : st;
}

static const struct strv a1[] = {STRV("keyed")};
static const struct strv ns1[] = {STRV("ns1")};

static struct pg_path path(const struct strv *levels)
{
	return (struct pg_path){.warehouse = STRV("wh"), .levels = levels, .n = 1};
}

static void namespaces(void)
{
	const struct pg_idem one = {key(1, 200, false), strv_bytes(STRV("{\"a\": 1}"))};
	const struct pg_idem two = {.k = key(2, 204, false)}, three = {.k = key(3, 200, false)};
	const struct strv_pair p[] = {{STRV("k"), STRV("v")}};
	const struct strv gone[] = {STRV("none")};
	EXPECT(look(1) == ST_NOT_FOUND);
	EXPECT(DO(pg_ns_create(cat, path(a1), NULL, 0, &one, ns_done, &got, &err)) == ST_OK);
	EXPECT(look(1) == ST_OK && got.idem.http == 200 && !strcmp(got.answer, "{\"a\": 1}"));
	/* The decision comes first: a refusal writes no row and finds none. */
	EXPECT(DO(pg_ns_create(cat, path(a1), NULL, 0, &two, ns_done, &got, &err)) ==
	       ST_ALREADY_EXISTS);
	EXPECT(look(2) == ST_NOT_FOUND);
	/* A key that is there undoes what would have been done. */
	EXPECT(DO(pg_ns_drop(cat, path(a1), &one, ns_done, &got, &err)) == ST_KEY_DECIDED);
	EXPECT(DO(pg_ns_update(cat, path(a1), NULL, 0, p, 1, &one, ns_done, &got, &err)) ==
	       ST_KEY_DECIDED);
	EXPECT(DO(pg_ns_update(cat, path(a1), gone, 1, p, 1, &three, ns_done, &got, &err)) == ST_OK);
	EXPECT(!strcmp(got.answer, "{\"updated\" : [\"k\"], \"removed\" : [], \"missing\" : [\"none\"]}"));
	char sent[sizeof got.answer];
	memcpy(sent, got.answer, sizeof sent);
	EXPECT(look(3) == ST_OK && !strcmp(got.answer, sent));
	EXPECT(DO(pg_ns_drop(cat, path(a1), &two, ns_done, &got, &err)) == ST_OK);
	EXPECT(look(2) == ST_OK && got.idem.http == 204 && !got.idem.answer.p && !got.idem.location.p);
	EXPECT(DO(pg_ns_drop(cat, path(a1), &two, ns_done, &got, &err)) == ST_NO_SUCH_NAMESPACE);
	/* Without a key nothing is written, many times over. */
	EXPECT(DO(pg_ns_create(cat, path(a1), NULL, 0, NULL, ns_done, &got, &err)) == ST_OK);
	EXPECT(DO(pg_ns_drop(cat, path(a1), NULL, ns_done, &got, &err)) == ST_OK);
}

static void views(void)
{
	const struct uuid v = {{9, 9}}, before = {{0}};
	const struct pg_idem made = {.k = key(10, 200, true)}, next = {.k = key(11, 200, true)},
			     gone = {.k = key(12, 204, false)}, moved = {.k = key(13, 204, false)};
	EXPECT(DO(pg_tabular_view_create(cat, path(ns1), STRV("kv"), v, before, &STRV("/w/kv"), 1,
					 STRV("/w/kv/1.json"), &made, tab_done, &got, &err)) == ST_OK);
	EXPECT(look(10) == ST_OK && !strcmp(got.location, "/w/kv/1.json"));
	EXPECT(DO(pg_tabular_view_replace(cat, v, 1, before, &STRV("/w/kv"), 1, STRV("/w/kv/2.json"), &made, tab_done, &got,
					  &err)) == ST_KEY_DECIDED);
	EXPECT(DO(pg_tabular_view_replace(cat, v, 1, before, &STRV("/w/kv"), 1, STRV("/w/kv/2.json"), &next, tab_done, &got,
					  &err)) == ST_OK);
	EXPECT(look(11) == ST_OK && !strcmp(got.location, "/w/kv/2.json"));
	EXPECT(DO(pg_tabular_view_replace(cat, v, 1, before, &STRV("/w/kv"), 1, STRV("/w/kv/3.json"), &gone, tab_done, &got,
					  &err)) == ST_COMMIT_FAILED);
	EXPECT(look(12) == ST_NOT_FOUND);
	EXPECT(DO(pg_tabular_rename(cat, path(ns1), STRV("kv"), path(ns1), STRV("kw"),
				    PG_TABULAR_VIEW, &next, tab_done, &got, &err)) == ST_KEY_DECIDED);
	EXPECT(DO(pg_tabular_rename(cat, path(ns1), STRV("kv"), path(ns1), STRV("kw"),
				    PG_TABULAR_VIEW, &moved, tab_done, &got, &err)) == ST_OK);
	EXPECT(look(13) == ST_OK);
	EXPECT(DO(pg_tabular_view_drop(cat, v, &moved, tab_done, &got, &err)) == ST_KEY_DECIDED);
	EXPECT(DO(pg_tabular_view_drop(cat, v, &gone, tab_done, &got, &err)) == ST_OK);
	EXPECT(look(12) == ST_OK);
}

static void tables(struct admin *a)
{
	struct made m;
	struct ran r;
	make_table(t, a, &m, "ns1", "keyed");
	const struct strv object = STRV("/w/keyed/v2.json");
	struct sql_effect l = make_ledger(&m, 2, 1, &object, 1);
	pgtest_run(t, &l, &r);
	struct sql_publish p = make_publish(&m, 2, NULL, NULL, 0, &object, 1);
	struct sql_effect e = {.kind = SQL_PUBLISH, .u.publish = &p};
	struct sql_effect read = {.kind = SQL_HEAD_READ, .u.table = m.table};
	p.row.metadata_location = object;
	/* The guard is judged before the key. */
	p.idem = key(1, 200, true);
	p.row.epoch++;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && r.r.err.st == ST_OK);
	p.row.epoch--;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_KEY_TAKEN && r.r.err.st == ST_OK && !r.r.lost);
	pgtest_run(t, &read, &r);
	EXPECT(r.r.head.version == 1 && r.r.head.last_batch == 1);
	struct sql_effect b = {.kind = SQL_BATCH_LOOK, .u.look = {m.table, p.row.batch}};
	pgtest_run(t, &b, &r);
	EXPECT(!r.r.found);
	p.idem = key(20, 200, true);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	EXPECT(look(20) == ST_OK && got.idem.http == 200 && !strcmp(got.location, object.p));

	/* Creations, and drops with the last metadata or without. */
	struct made other = {0};
	make_ids(&other, "keyed2");
	struct sql_table_create c = make_create(&other, "ns1", "keyed2", 1);
	struct sql_effect ce = {.kind = SQL_TABLE_CREATE, .u.create = &c};
	c.idem = key(20, 200, true);
	pgtest_run(t, &ce, &r);
	EXPECT(r.r.verdict == SQL_KEY_TAKEN && r.r.err.st == ST_OK);
	c.idem = key(21, 200, true);
	pgtest_run(t, &ce, &r);
	EXPECT(r.r.created == SQL_CREATED);
	EXPECT(look(21) == ST_OK && !strcmp(got.location, other.metadata));
	/* Sent again: its own batch row is there, its key does not stand in the way. */
	pgtest_run(t, &ce, &r);
	EXPECT(r.r.created == SQL_CREATE_EXISTS && r.r.verdict == SQL_REFUSED);
	struct sql_effect d = {.kind = SQL_TABLE_DROP,
			       .u.drop = {.table = m.table, .incarnation = m.incarnation}};
	d.u.drop.idem = key(21, 204, false);
	pgtest_run(t, &d, &r);
	EXPECT(r.r.verdict == SQL_KEY_TAKEN);
	d.u.drop.idem = key(22, 200, true);
	pgtest_run(t, &d, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	EXPECT(look(22) == ST_OK && !strcmp(got.location, object.p));
	pgtest_run(t, &d, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);

	/* A file that an answer is made from stays queued, whoever claims. */
	admin_script(a, "INSERT INTO frazil.object (path, table_id, epoch, state, since_ms) SELECT p,"
			" '00000000-0000-0000-0000-000000000009', 1, 2, 0 FROM"
			" unnest(ARRAY['/w/keyed/v2.json', '/w/keyed/other']) p");
	struct sql_effect claim = {.kind = SQL_CLEAN_CLAIM, .u.claim = {.gone = true, .max = 10}};
	claim.u.claim.table.u.b[15] = 9;
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 1 && !strcmp(r.path, "/w/keyed/other"));
}

static void kept(void)
{
	const struct sql_idem k = key(30, 409, false);
	const struct strv none = {NULL, 0};
	EXPECT(DO(pg_idem_keep(cat, &k, none, strv_bytes(STRV("no")), idem_done, &got, &err)) == ST_OK);
	EXPECT(got.idem.found);
	EXPECT(look(30) == ST_OK && got.idem.http == 409 && !strcmp(got.answer, "no"));
	EXPECT(DO(pg_idem_keep(cat, &k, none, strv_bytes(STRV("yes")), idem_done, &got, &err)) == ST_OK);
	EXPECT(!got.idem.found);
	EXPECT(look(30) == ST_OK && !strcmp(got.answer, "no"));
	/* Many at once share a statement; each finds its own. */
	struct got many[100] = {0};
	int64_t before = pgcat_statements(cat);
	for (int i = 0; i < 100; i++)
		pg_idem_look(cat, key(i % 2 ? 30 : 99, 0, false).key, idem_done, &many[i]);
	pgcat_flush(cat);
	for (int i = 0; i < 100; i++)
		EXPECT(pgtest_until(t, &many[i].done, 5000) && many[i].err.st == ST_OK &&
		       many[i].idem.found == (i % 2 == 1));
	EXPECT(pgcat_statements(cat) == before + 2);
	/* Young ones stay; of the others as many go as asked. */
	EXPECT(DO(pg_idem_forget(cat, 3600000, 100, idem_done, &got, &err)) == ST_OK);
	EXPECT(!got.idem.found && look(30) == ST_OK);
	EXPECT(DO(pg_idem_forget(cat, -1000, 1, idem_done, &got, &err)) == ST_OK);
	EXPECT(look(1) == ST_NOT_FOUND && look(30) == ST_OK);
	EXPECT(DO(pg_idem_forget(cat, -1000, 100, idem_done, &got, &err)) == ST_OK);
	EXPECT(look(30) == ST_NOT_FOUND);
}

void pgtest_idem(struct pgtest *test)
{
	t = test;
	struct admin *a = admin_open(t);
	make_catalog(a);
	cat = pgcat_new(t->pool);
	namespaces();
	views();
	tables(a);
	kept();
	pgcat_free(cat);
	admin_close(a);
}
