/* Holds the simulator's model of the SQL effects against a server: every effect that the model
 * executes in a simulated run is executed there too, at the model's time, and must be answered
 * alike. Usage: pgreplay CONNINFO FIRST LAST [SQL to run before] */
int sim_main(int argc, char **argv);
#define main sim_main
#include "tests/sim/sim.c"
#undef main

#include "tests/it/pgtest.h"

int pgtest_failed;

static struct pgtest t;
static struct admin *admin;
static long replayed, by_kind[SQL_KIND_COUNT];
static bool catalog;
static uint64_t at_seed;

static void differ(const struct world *w, const struct sql_effect *e, const char *what,
		   int64_t model, int64_t server)
{
	printf("FAILED seed %llu effect %ld kind %d at %lld: %s: model %lld, server %lld\n",
	       (unsigned long long)at_seed, replayed, (int)e->kind, (long long)world_pg_ms(w), what,
	       (long long)model, (long long)server);
	fflush(stdout);
	pgtest_failed++;
}

#define SAME(what, a, b)                                                                           \
	do {                                                                                       \
		if ((int64_t)(a) != (int64_t)(b))                                                  \
			differ(w, e, what, (int64_t)(a), (int64_t)(b));                            \
	} while (0)

static void same_head(const struct world *w, const struct sql_effect *e, const struct head_row *m,
		      const struct ran *r)
{
	const struct head_row *s = &r->r.head;
	SAME("head.incarnation", m->incarnation, s->incarnation);
	SAME("head.epoch", m->epoch, s->epoch);
	SAME("head.version", m->version, s->version);
	SAME("head.last_batch", m->last_batch, s->last_batch);
	SAME("head.last_seq", m->last_seq, s->last_seq);
	SAME("head.next_row_id", m->next_row_id, s->next_row_id);
	SAME("head.holder", 1, uuid_eq(m->holder.u, s->holder.u));
	SAME("head.location", 1, strv_eq(m->metadata_location, strv_of(r->location)));
}

static void same_item(const struct world *w, const struct sql_effect *e,
		      const struct sql_item_result *m, const struct ran *r)
{
	const struct sql_item_result *s = &r->r.item;
	SAME("item.st", m->st, s->st);
	SAME("item.has_row", m->has_row, s->has_row);
	if (m->has_row && s->has_row) {
		SAME("row.state", m->row.state, s->row.state);
		SAME("row.commit_requested", m->row.commit_requested, s->row.commit_requested);
		SAME("row.has_set_digest", m->row.has_set_digest, s->row.has_set_digest);
		SAME("row.batch_no", m->row.batch_no, s->row.batch_no);
		SAME("row.incarnation", m->row.incarnation, s->row.incarnation);
		SAME("row.expires", m->row.expires_pg_ms, s->row.expires_pg_ms);
	}
	SAME("fragments", m->n_fragments, r->fragments);
	SAME("batch", m->batch != NULL, r->has_batch);
	if (m->batch && r->has_batch)
		SAME("batch_no", m->batch->batch_no, r->batch.batch_no);
}

static void same(const struct world *w, const struct sql_effect *e, const struct sql_result *m,
		 const struct ran *r)
{
	SAME("sent and answered", 1, r->r.sent && !r->r.lost);
	SAME("error", m->err.st != ST_OK, r->r.err.st != ST_OK);
	if (m->err.st != ST_OK || r->r.err.st != ST_OK)
		return;
	switch (e->kind) {
	case SQL_HEAD_READ:
		SAME("found", m->found, r->r.found);
		if (m->found && r->r.found)
			same_head(w, e, &m->head, r);
		break;
	case SQL_HEAD_BUMP:
		SAME("verdict", m->verdict, r->r.verdict);
		if (m->verdict == SQL_APPLIED && r->r.verdict == SQL_APPLIED)
			same_head(w, e, &m->head, r);
		break;
	case SQL_TABLE_CREATE:
		SAME("created", m->created, r->r.created);
		if (m->created == SQL_CREATED && r->r.created == SQL_CREATED)
			same_head(w, e, &m->head, r);
		break;
	case SQL_TABLES_COMMIT:
		SAME("verdict", m->verdict, r->r.verdict);
		if (m->verdict == SQL_REFUSED && r->r.verdict == SQL_REFUSED) {
			SAME("at", m->at, r->r.at);
			if (m->at >= e->u.tables->n_parts)
				SAME("created", m->created, r->r.created);
		}
		break;
	case SQL_RECOVER:
		SAME("tables", m->n_tables, r->r.n_tables);
		break;
	case SQL_QUEUE_READ: {
		size_t fragments = 0;
		for (size_t i = 0; i < m->n_items; i++)
			fragments += m->items[i].n_fragments;
		SAME("items", m->n_items, r->r.n_items);
		SAME("fragments", fragments, r->fragments);
		SAME("halted", m->halted.n, r->r.halted.n);
		break;
	}
	case SQL_BATCH_LOOK:
		SAME("found", m->found, r->r.found);
		if (m->batch && r->has_batch)
			SAME("txns", m->batch->n_txns, r->batch.n_txns);
		break;
	case SQL_LEDGER:
	case SQL_PUBLISH:
	case SQL_UNLEDGER:
	case SQL_TABLE_DROP:
		SAME("found", m->found, r->r.found);
		SAME("verdict", m->verdict, r->r.verdict);
		break;
	case SQL_HALT:
		SAME("verdict", m->verdict, r->r.verdict);
		break;
	case SQL_CLEAN_DUE:
		SAME("tables", m->n_tables, r->r.n_tables);
		for (size_t i = 0; i < m->n_tables && i < ARRAY_SIZE(r->tables); i++) {
			SAME("the table", 1, uuid_eq(m->tables[i].u, r->tables[i].u));
			SAME("gone", m->gone[i], r->gone[i]);
		}
		SAME("next", 1, uuid_eq(m->next.u, r->r.next.u));
		break;
	case SQL_CLEAN_CLAIM:
	case SQL_CLEAN_LOOK:
		SAME("paths", m->n_paths, r->r.n_paths);
		break;
	case SQL_CLEAN_DONE:
		break;
	default:
		same_item(w, e, &m->item, r);
		break;
	}
}

/* The simulator's names have no levels. */
static const struct sql_table_create *in_ns(struct world *w, const struct sql_table_create *from)
{
	static const struct strv ns = STRV("ns");
	struct sql_table_create *k = world_alloc(w, sizeof *k);
	*k = *from;
	k->warehouse = STRV("wh");
	k->levels = &ns;
	k->n_levels = 1;
	return k;
}

static void on_executed(struct world *w, const struct flight *fl)
{
	const struct sql_effect *e = &fl->e.u.sql;
	struct ran r;
	char sql[256];
	/* The model keeps what a horizon would forget. */
	if (pgtest_failed || e->kind == SQL_HORIZON)
		return;
	snprintf(sql, sizeof sql, "UPDATE public.clock SET v = %lld", (long long)world_pg_ms(w));
	admin_script(admin, sql);
	if (e->kind == SQL_TABLE_CREATE || e->kind == SQL_TABLES_COMMIT) {
		int64_t creates = e->kind == SQL_TABLE_CREATE ? 1 : (int64_t)e->u.tables->n_creates;
		if (!catalog)
			admin_script(
				admin,
				"INSERT INTO frazil.warehouse (name, location) VALUES ('wh', '/');"
				"INSERT INTO frazil.namespace (warehouse_id, parent, name)"
				" SELECT warehouse_id, '{}', 'ns' FROM frazil.warehouse");
		catalog = true;
		if (fl->res.created == SQL_CREATED && fl->res.head.incarnation > 0) {
			snprintf(sql, sizeof sql,
				 "SELECT setval('frazil.incarnation', %lld, false)",
				 (long long)(fl->res.head.incarnation - creates + 1));
			admin_script(admin, sql);
		}
	}
	struct sql_effect copy = *e;
	struct sql_tables_commit tables;
	if (e->kind == SQL_TABLE_CREATE) {
		copy.u.create = in_ns(w, e->u.create);
	} else if (e->kind == SQL_TABLES_COMMIT) {
		const struct sql_table_create **v =
			world_alloc(w, (e->u.tables->n_creates + 1) * sizeof(void *));
		tables = *e->u.tables;
		for (size_t i = 0; i < tables.n_creates; i++)
			v[i] = in_ns(w, tables.creates[i]);
		tables.creates = v;
		copy.u.tables = &tables;
	}
	pgtest_run(&t, &copy, &r);
	same(w, e, &fl->res, &r);
	replayed++;
	by_kind[e->kind]++;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	t.loop = uv_default_loop();
	t.conf = (struct pgpool_conf){.size = 3,
				      .connect_timeout_ms = 3000,
				      .statement_timeout_ms = 3000,
				      .lock_timeout_ms = 2500,
				      .tcp_user_timeout_ms = 5000,
				      .exclusive = true};
	pgtest_open(&t, argv[1]);
	EXPECT(pgtest_until_state(&t, PGPOOL_UP, 20000));
	admin = admin_open(&t);
	admin_script(admin, "SET synchronous_commit = off; CREATE TABLE public.clock (v int8);"
			    "INSERT INTO public.clock VALUES (0);"
			    "CREATE OR REPLACE FUNCTION frazil.now_ms() RETURNS int8 LANGUAGE sql"
			    " VOLATILE AS 'SELECT v FROM public.clock'");
	if (argc > 4) /* another text of some function: is it found? */
		admin_script(admin, argv[4]);
	pg_executed = on_executed;
	effects_only = true;
	uint64_t last = strtoull(argv[3], NULL, 10);
	for (at_seed = strtoull(argv[2], NULL, 10); at_seed <= last && !pgtest_failed; at_seed++) {
		admin_script(admin,
			     "TRUNCATE frazil.idem, frazil.halt, frazil.txn, frazil.fragment, frazil.batch, frazil.object,"
			     " frazil.head, frazil.horizon, frazil.place, frazil.tabular, frazil.namespace,"
			     " frazil.warehouse");
		catalog = false;
		run(at_seed, false, false);
	}
	printf("replayed %ld effects; by kind:", replayed);
	for (int k = 0; k < SQL_KIND_COUNT; k++)
		printf(" %ld", by_kind[k]);
	printf("\n");
	admin_close(admin);
	pgtest_close(&t);
	uv_run(t.loop, UV_RUN_DEFAULT);
	uv_loop_close(t.loop);
	printf("%s\n", pgtest_failed ? "failed" : "ok");
	return pgtest_failed != 0;
}
