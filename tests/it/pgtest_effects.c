/* Every effect once as it should go, repeated, and refused. */
#include "tests/it/pgtest.h"
#include "tests/it/pgtest_make.h"

static void begin_and_stage(struct pgtest *t, struct admin *a)
{
	struct ran r;
	struct made m;
	make_table(t, a, &m, "ns1", "t1");
	EXPECT(m.incarnation > 0);

	/* Begin: once, repeated, other parameters, dropped table, time of the id. */
	struct txn_row row = make_txn(&m, 1);
	struct sql_effect e = {.kind = SQL_TXN_BEGIN, .u.begin = &row};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.sent && !r.r.lost && r.r.err.st == ST_OK && r.r.item.st == ST_OK);
	EXPECT(r.r.item.has_row && r.r.item.row.state == TXN_DB_OPEN && r.r.pg_ms > 0);
	EXPECT(r.r.item.row.read_snapshot == 77 && r.r.item.row.expires_pg_ms >= r.r.pg_ms);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.has_row);
	struct txn_row other = row;
	other.params.b[3] ^= 1;
	e.u.begin = &other;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_DIGEST_CONFLICT && !r.r.item.has_row);
	other = row;
	other.principal = STRV("mallory");
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_DIGEST_CONFLICT && !r.r.item.has_row);
	other = make_txn(&m, 2);
	other.incarnation++;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TABLE_GONE);
	other = make_txn_at(&m, 3, make_now_ms() + 3600000);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_CLOCK_SKEW);
	other = make_txn(&m, 4);
	other.ref = (struct strv){"a\0b", 3};
	pgtest_run(t, &e, &r);
	EXPECT(!r.r.sent && r.r.err.st == ST_ILLEGAL_ARGUMENT && r.times == 1);

	/* Stage: new, repeated, other digest, path of another open transaction. */
	struct strv paths[2] = {STRV("/w/t1/b.parquet"), STRV("/w/t1/a.parquet")};
	struct sql_stage_item st = make_stage(row.txn, "f1", 1, paths, 2);
	e = (struct sql_effect){.kind = SQL_TXN_STAGE, .u.stage = &st};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.state == TXN_DB_OPEN);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE state = 0") == 2);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.fragment") == 1);
	struct sql_stage_item bad = st;
	bad.row.digest.b[0] ^= 1;
	e.u.stage = &bad;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_DIGEST_CONFLICT);
	struct txn_row row2 = make_txn(&m, 5);
	struct sql_effect b2 = {.kind = SQL_TXN_BEGIN, .u.begin = &row2};
	pgtest_run(t, &b2, &r);
	EXPECT(r.r.item.st == ST_OK);
	struct strv clash[2] = {STRV("/w/t1/new.parquet"), STRV("/w/t1/a.parquet")};
	struct sql_stage_item st2 = make_stage(row2.txn, "f1", 1, clash, 2);
	e.u.stage = &st2;
	char before[33], after[33];
	admin_dump(a, before);
	pgtest_run(t, &e, &r);
	admin_dump(a, after);
	EXPECT(r.r.item.st == ST_DUPLICATE_PATH && !strcmp(r.path, "/w/t1/a.parquet"));
	EXPECT(!strcmp(before, after));
	struct sql_stage_item none = make_stage(make_txn(&m, 99).txn, "f", 1, NULL, 0);
	e.u.stage = &none;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_UNKNOWN && !r.r.item.has_row);

	/* Three in one turn: each judged by itself, one statement. */
	struct strv one = STRV("/w/t1/c.parquet");
	struct sql_stage_item s1 = make_stage(row2.txn, "g1", 1, &one, 1);
	struct sql_stage_item s2 = make_stage(row.txn, "g2", 1, &one, 1);
	struct sql_effect e1 = {.kind = SQL_TXN_STAGE, .u.stage = &s1};
	struct sql_effect e2 = {.kind = SQL_TXN_STAGE, .u.stage = &s2};
	struct sql_effect e3 = {.kind = SQL_TXN_STAGE, .u.stage = &none};
	struct ran r1, r2, r3;
	int64_t sent = pgfx_counters(t->fx, SQL_TXN_STAGE)->statements;
	pgtest_start(t, &e1, &r1);
	pgtest_start(t, &e2, &r2);
	pgtest_run(t, &e3, &r3);
	EXPECT(r1.done && r2.done);
	EXPECT(pgfx_counters(t->fx, SQL_TXN_STAGE)->statements == sent + 1);
	EXPECT(r1.r.item.st == ST_OK && r2.r.item.st == ST_DUPLICATE_PATH);
	EXPECT(r3.r.item.st == ST_TXN_UNKNOWN);

	/* A second attempt of the fragment lost: its file is queued with the seal, no other's is.
	 */
	struct strv lost[2] = {STRV("/w/t1/a2.parquet"), STRV("/w/t1/c.parquet")};
	struct sql_stage_item second = make_stage(row.txn, "f1", 2, lost, 1);
	e = (struct sql_effect){.kind = SQL_TXN_STAGE, .u.stage = &second};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK);

	/* Seal, repeated, other set; stage behind a seal; request. */
	struct sql_seal_item seal = {.txn = row.txn, .seal = {(const uint8_t *)"\1x", 2}};
	seal.set_digest.b[0] = 9;
	seal.losers = lost;
	seal.n_losers = 2;
	e = (struct sql_effect){.kind = SQL_TXN_SEAL, .u.seal = &seal};
	pgtest_run(t, &e, &r);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE state = 2") == 1);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE state = 2"
			    " AND path = '/w/t1/a2.parquet'") == 1);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.state == TXN_DB_SEALED);
	EXPECT(!r.r.item.row.commit_requested && r.r.item.row.seal.n == 2);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK);
	struct sql_seal_item seal2 = seal;
	seal2.set_digest.b[0] = 8;
	e.u.seal = &seal2;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_DIGEST_CONFLICT);
	struct sql_stage_item late = make_stage(row.txn, "late", 1, NULL, 0);
	e = (struct sql_effect){.kind = SQL_TXN_STAGE, .u.stage = &late};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_STATE && r.r.item.row.state == TXN_DB_SEALED);
	struct sql_request_item rq = {.txn = row.txn, .summary = {(const uint8_t *)"\1s", 2}};
	e = (struct sql_effect){.kind = SQL_TXN_REQUEST, .u.request = &rq};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.commit_requested);
	rq.txn = row2.txn;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_STATE && r.r.item.row.state == TXN_DB_OPEN);

	/* End: expiry not yet due, abort, repeated, not while sealed. */
	e = (struct sql_effect){.kind = SQL_TXN_END, .u.end = {row2.txn, TXN_DB_EXPIRED}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_STATE && r.r.item.row.state == TXN_DB_OPEN);
	e.u.end.to = TXN_DB_ABORTED;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.state == TXN_DB_ABORTED);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE state = 2") == 2);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK);
	e.u.end.txn = row.txn;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_STATE && r.r.item.row.state == TXN_DB_SEALED);

	/* The queue holds the sealed one with its fragment; a read finds both. */
	e = (struct sql_effect){.kind = SQL_QUEUE_READ, .u.table = m.table};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.n_items == 1 && r.fragments == 2);
	e = (struct sql_effect){.kind = SQL_TXN_READ, .u.txn = row.txn};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.fragments == 2 && !r.has_batch);
	e.u.txn = row2.txn;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.state == TXN_DB_ABORTED && r.fragments == 0);
	e.u.txn = none.row.txn;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_UNKNOWN && r.r.pg_ms > 0);
	e = (struct sql_effect){.kind = SQL_RECOVER};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.n_tables == 1 && r.r.secret.b[0] + r.r.secret.b[1] + r.r.secret.b[2] > 0);

	/* The aborted one's path is free again. */
	struct txn_row row3 = make_txn(&m, 6);
	struct sql_stage_item s3 = make_stage(row3.txn, "f", 1, &one, 1);
	struct sql_once_item once = make_once(&row3, &s3, 1);
	e = (struct sql_effect){.kind = SQL_TXN_ONCE, .u.once = &once};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK && r.r.item.row.state == TXN_DB_SEALED);
	EXPECT(r.r.item.row.commit_requested);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK);
	once.row.set_digest.b[0] ^= 1;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_DIGEST_CONFLICT);
	struct txn_row row4 = make_txn(&m, 7);
	struct sql_stage_item s4 = make_stage(row4.txn, "f", 1, &one, 1);
	struct sql_once_item once4 = make_once(&row4, &s4, 1);
	e.u.once = &once4;
	admin_dump(a, before);
	pgtest_run(t, &e, &r);
	admin_dump(a, after);
	EXPECT(r.r.item.st == ST_DUPLICATE_PATH && !strcmp(before, after));
}

static void publish(struct pgtest *t, struct admin *a)
{
	struct ran r;
	struct made m;
	char before[33], after[33];
	make_table(t, a, &m, "ns1", "t2");
	struct strv p1 = STRV("/w/t2/1.parquet"), p2 = STRV("/w/t2/2.parquet");
	struct txn_row rows[3] = {make_txn(&m, 21), make_txn(&m, 22), make_txn(&m, 23)};
	struct sql_stage_item st[2] = {make_stage(rows[0].txn, "f", 1, &p1, 1),
				       make_stage(rows[1].txn, "f", 1, &p2, 1)};
	struct sql_once_item once[2] = {make_once(&rows[0], &st[0], 1),
					make_once(&rows[1], &st[1], 1)};
	for (int i = 0; i < 2; i++) {
		struct sql_effect e = {.kind = SQL_TXN_ONCE, .u.once = &once[i]};
		pgtest_run(t, &e, &r);
		EXPECT(r.r.item.st == ST_OK);
	}
	struct sql_effect e = {.kind = SQL_HEAD_READ, .u.table = m.table};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.found && r.r.head.epoch == 1 && r.r.head.version == 1 &&
	       r.r.head.last_batch == 1);
	EXPECT(!strcmp(r.name, "wh.ns1.t2"));

	/* Ledger: right epoch, wrong epoch. */
	struct strv objects[3] = {STRV("/w/t2/m-2.avro"), STRV("/w/t2/v2.json"),
				  STRV("/w/t2/old-attempt.avro")};
	struct sql_effect l = make_ledger(&m, 2, 1, objects, 3);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.err.st == ST_OK);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	l.u.ledger.epoch = 2;
	admin_dump(a, before);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);

	/* Publish refused by each part of the guard, by a transaction that is not sealed, and by a
	 * missing ledger row; nothing changes. */
	struct txn_id ids[3] = {rows[0].txn, rows[1].txn, rows[2].txn};
	uint8_t states[3] = {TXN_DB_COMMITTED, TXN_DB_REJECTED, TXN_DB_COMMITTED};
	struct sql_publish p = make_publish(&m, 2, ids, states, 2, objects, 2);
	e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &p};
	p.row.epoch = 2;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && r.r.err.st == ST_OK);
	p.row.epoch = 1;
	p.row.base_version = 2;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);
	p.row.base_version = 1;
	p.row.incarnation++;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);
	p.row.incarnation--;
	p.row.n_txns = 3;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && r.r.err.st == ST_OK && !r.r.lost);
	p.row.n_txns = 2;
	struct strv strange[1] = {STRV("/w/t2/never.avro")};
	p.objects = strange;
	p.n_objects = 1;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.err.st == ST_INTERNAL && r.r.sent && !r.r.lost);
	admin_dump(a, after);
	EXPECT(!strcmp(before, after));
	e = (struct sql_effect){.kind = SQL_BATCH_LOOK, .u.look = {m.table, p.row.batch}};
	pgtest_run(t, &e, &r);
	EXPECT(!r.r.found && r.r.pg_ms > 0);

	/* And done. */
	p.objects = objects;
	p.n_objects = 2;
	struct strv gone[1] = {STRV("/w/t2/v0.json")};
	p.garbage = gone;
	p.n_garbage = 1;
	e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &p};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.err.st == ST_OK);
	e = (struct sql_effect){.kind = SQL_BATCH_LOOK, .u.look = {m.table, p.row.batch}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.found && r.has_batch && r.batch.n_txns == 2 && r.batch.n_snapshots == 2);
	EXPECT(r.batch.base_version == 1 && r.batch.first_row_id == 100 && r.batch.epoch == 1);
	e = (struct sql_effect){.kind = SQL_TXN_READ, .u.txn = ids[0]};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.row.state == TXN_DB_COMMITTED && r.has_batch && r.r.item.row.batch_no == 2);
	/* queued: the rejected one's file, the old attempt's object, the old metadata */
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t2/%' "
			    "AND state = 2 AND path IN ('/w/t2/2.parquet', "
			    "'/w/t2/old-attempt.avro', '/w/t2/v0.json')") == 3);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t2/%'") == 3);
	e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &p};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);
	/* The ledger statement of the same batch, late: nothing is put on the ledger again. */
	l.u.ledger.epoch = 1;
	l.u.ledger.n_paths = 2; /* the published ones, which have no row now */
	admin_dump(a, before);
	pgtest_run(t, &l, &r);
	admin_dump(a, after);
	EXPECT(r.r.err.st == ST_INTERNAL && !strcmp(before, after));
	/* Sealed is over: Abort is answered from the row. */
	e = (struct sql_effect){.kind = SQL_TXN_END, .u.end = {ids[0], TXN_DB_ABORTED}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_STATE && r.r.item.row.state == TXN_DB_COMMITTED);
	/* A commit through REST: no transactions. */
	struct sql_publish rest = make_publish(&m, 3, NULL, NULL, 0, NULL, 0);
	rest.row.base_version = 2;
	e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &rest};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);

	/* Bump: the epoch read, then no longer. */
	struct sql_head_bump bump = {m.table, m.incarnation, 1, m.holder};
	e = (struct sql_effect){.kind = SQL_HEAD_BUMP, .u.bump = bump};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.head.epoch == 2 && r.r.head.version == 3);
	EXPECT(!strcmp(r.name, "wh.ns1.t2"));
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && !r.r.found && r.r.pg_ms > 0);

	/* Unledger: never after a publish of that id. */
	struct sql_effect u = {.kind = SQL_UNLEDGER, .u.unledger = {m.table, p.row.batch, 9}};
	pgtest_run(t, &u, &r);
	EXPECT(r.r.verdict == SQL_REFUSED);
	struct strv lost[1] = {STRV("/w/t2/lost.avro")};
	l = make_ledger(&m, 4, 2, lost, 1);
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	u.u.unledger.batch = l.u.ledger.batch;
	u.u.unledger.epoch = 2;
	pgtest_run(t, &u, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path = '/w/t2/lost.avro'"
			    " AND state = 2") == 1);
}

static void create_and_drop(struct pgtest *t, struct admin *a)
{
	struct ran r;
	struct made m, n;
	make_table(t, a, &m, "ns1", "t3");
	struct sql_table_create c = make_create(&m, "ns1", "t3", 31);
	struct sql_effect e = {.kind = SQL_TABLE_CREATE, .u.create = &c};
	pgtest_run(t, &e, &r); /* the same batch id again */
	EXPECT(r.r.created == SQL_CREATE_EXISTS || r.r.created == SQL_CREATE_NAME_TABLE);
	c.row.batch = m.batch;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_EXISTS && r.r.found && r.r.head.version == 1);
	c = make_create(&m, "ns1", "t3", 32);
	c.table.u.b[5] ^= 1;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_NAME_TABLE);
	c = make_create(&m, "nowhere", "t3", 33);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_NO_NAMESPACE);
	c = make_create(&m, "ns1", "t3-again", 34);
	c.row.metadata_location = STRV("/w/elsewhere.json");
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_UUID_LIVE);
	c.table.u.b[5] ^= 3;
	c.row.metadata_location = STRV("/w/t3/v1.json");
	admin_script(a, "INSERT INTO frazil.place (path, table_id) SELECT '/w/t3/', t.table_id"
			" FROM frazil.tabular t WHERE t.name = 't3'");
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATE_LOCATION_LIVE);

	/* Overwrite with the same uuid: a new incarnation, the old one's transactions end. */
	struct txn_row row = make_txn(&m, 35);
	struct strv p = STRV("/w/t3/x.parquet");
	struct sql_stage_item st = make_stage(row.txn, "f", 1, &p, 1);
	struct sql_once_item once = make_once(&row, &st, 1);
	struct sql_effect o = {.kind = SQL_TXN_ONCE, .u.once = &once};
	pgtest_run(t, &o, &r);
	EXPECT(r.r.item.st == ST_OK);
	c = make_create(&m, "ns1", "t3", 36);
	c.overwrite = true;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATED && r.r.head.incarnation > m.incarnation);
	EXPECT(r.r.head.epoch == 1);
	n = m;
	n.incarnation = r.r.head.incarnation;
	e = (struct sql_effect){.kind = SQL_TXN_READ, .u.txn = row.txn};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.row.state == TXN_DB_ABORTED && r.r.item.row.batch_no == TXN_BATCH_GONE);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path = '/w/t3/x.parquet'"
			    " AND state = 2") == 1);
	struct txn_row old = make_txn(&m, 37);
	e = (struct sql_effect){.kind = SQL_TXN_BEGIN, .u.begin = &old};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TABLE_GONE);

	/* Beneath this table, beneath one inside it, and beside one whose name begins alike. */
	struct strv purge[3] = {STRV("/w/t3/purged.parquet"), STRV("/w/t3/in/data/1.parquet"),
				STRV("/w/t3/inner/2.parquet")};
	admin_script(a, "INSERT INTO frazil.tabular (table_id, namespace_id, name, kind, location)"
			" SELECT gen_random_uuid(), namespace_id, 'in', 1, '/w/t3/in/'"
			" FROM frazil.namespace WHERE name = 'ns2';"
			" INSERT INTO frazil.place (path, table_id) SELECT '/w/t3/in/', table_id"
			" FROM frazil.tabular WHERE name = 'in'");
	e = (struct sql_effect){.kind = SQL_TABLE_DROP,
				.u.drop = {m.table, m.incarnation, 99, true, true, purge, 3}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && r.r.n_paths == 0); /* the old incarnation */
	EXPECT(!r.r.found);
	e.u.drop.incarnation = n.incarnation;
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_REFUSED && r.r.found && r.r.n_paths == 0); /* another version */
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t3/purged%'") == 0);
	e.u.drop.version = admin_i64(a, "SELECT max(h.version) FROM frazil.head h JOIN frazil.tabular t"
					" USING (table_id) WHERE t.name = 't3'");
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.found && r.r.n_paths == 1);
	EXPECT(!strcmp(r.path, "/w/t3/in/data/1.parquet"));
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t3/in%'"
			    " AND state = 2") == 1);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t3/purged%'"
			    " AND state = 2") == 1);
	e = (struct sql_effect){.kind = SQL_HEAD_READ, .u.table = m.table};
	pgtest_run(t, &e, &r);
	EXPECT(!r.r.found && r.r.pg_ms > 0);
}

/* The tables that have something due, without the one given. */
static size_t due(struct pgtest *t, struct ran *r, struct table_id after, int32_t max)
{
	struct sql_effect e = {.kind = SQL_CLEAN_DUE, .u.clean_due = {after, 0, 0, max}};
	pgtest_run(t, &e, r);
	EXPECT(r->r.err.st == ST_OK && r->r.n_tables <= ARRAY_SIZE(r->tables));
	return r->r.n_tables;
}

static bool is_due(struct pgtest *t, struct table_id table, bool gone)
{
	struct ran r;
	const struct table_id nil = {0};
	for (size_t i = due(t, &r, nil, 32); i-- > 0;)
		if (uuid_eq(r.tables[i].u, table.u))
			return r.gone[i] == gone;
	return false;
}

/* One after the other: each once, in their order, with an end. */
static void due_by_one(struct pgtest *t)
{
	struct ran all, one;
	struct table_id at = {0};
	size_t n = due(t, &all, at, 32);
	EXPECT(n >= 2 && uuid_is_nil(all.r.next.u));
	for (size_t i = 0; i < n; i++) {
		EXPECT(due(t, &one, at, 1) == 1 && uuid_eq(one.tables[0].u, all.tables[i].u));
		EXPECT(i == 0 || uuid_cmp(all.tables[i - 1].u, all.tables[i].u) < 0);
		at = one.r.next;
		EXPECT(uuid_eq(at.u, one.tables[0].u));
	}
	EXPECT(due(t, &one, at, 1) == 0 && uuid_is_nil(one.r.next.u));
}

static void clean_and_forget(struct pgtest *t, struct admin *a)
{
	struct ran r;
	struct made m;
	make_table(t, a, &m, "ns1", "t4");
	struct txn_row row = make_txn(&m, 41), again = make_txn(&m, 42);
	struct strv p = STRV("/w/t4/x.parquet");
	struct sql_effect e = {.kind = SQL_TXN_BEGIN, .u.begin = &row};
	pgtest_run(t, &e, &r);
	struct sql_stage_item st = make_stage(row.txn, "f", 1, &p, 1);
	struct sql_effect s = {.kind = SQL_TXN_STAGE, .u.stage = &st};
	pgtest_run(t, &s, &r);
	EXPECT(r.r.item.st == ST_OK);
	struct sql_effect claim = {.kind = SQL_CLEAN_CLAIM, .u.claim = {m.table, false, 0, 60000, 100}};
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 0 && r.r.pg_ms > 0); /* an open owner */
	EXPECT(!is_due(t, m.table, false));
	e = (struct sql_effect){.kind = SQL_TXN_END, .u.end = {row.txn, TXN_DB_ABORTED}};
	pgtest_run(t, &e, &r);
	claim.u.claim.grace_ms = 3600000;
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 0);
	claim.u.claim.grace_ms = 0;
	EXPECT(is_due(t, m.table, false));
	/* Chosen as one that is gone, and it is there: its paths may be live. */
	admin_script(a, "UPDATE frazil.object SET epoch = 1 WHERE path = '/w/t4/x.parquet'");
	claim.u.claim.gone = true;
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 0);
	claim.u.claim.gone = false;
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 1 && !strcmp(r.path, "/w/t4/x.parquet"));
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 0);
	/* Given back: it can be staged, and claimed. */
	struct sql_clean_done back = {.back = &p, .n_back = 1};
	struct sql_effect give = {.kind = SQL_CLEAN_DONE, .u.clean_done = &back};
	pgtest_run(t, &give, &r);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path = '/w/t4/x.parquet'"
			    " AND state = 2") == 1);
	admin_script(a, "UPDATE frazil.object SET epoch = 0 WHERE path = '/w/t4/x.parquet'");
	pgtest_sleep(t, 2);
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 1);
	/* Claimed: staging it is condemned. */
	e = (struct sql_effect){.kind = SQL_TXN_BEGIN, .u.begin = &again};
	pgtest_run(t, &e, &r);
	struct sql_stage_item st2 = make_stage(again.txn, "f", 1, &p, 1);
	s.u.stage = &st2;
	pgtest_run(t, &s, &r);
	EXPECT(r.r.item.st == ST_PATH_CONDEMNED && !strcmp(r.path, "/w/t4/x.parquet"));
	struct sql_clean_done d = {.unsure = &p, .n_unsure = 1};
	struct sql_effect done = {.kind = SQL_CLEAN_DONE, .u.clean_done = &d};
	pgtest_run(t, &done, &r);
	EXPECT(r.r.err.st == ST_OK);
	claim.u.claim.tombstone_ms = 0;
	pgtest_sleep(t, 5);
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 1); /* silent for the tombstone time: claimed again */
	d = (struct sql_clean_done){.deleted = &p, .n_deleted = 1};
	pgtest_run(t, &done, &r);
	pgtest_run(t, &s, &r);
	EXPECT(r.r.item.st == ST_OK);
	/* Leftovers: a ledger row of an epoch that is over; objects of a table that is gone. */
	struct strv o[1] = {STRV("/w/t4/orphan.avro")};
	struct sql_effect l = make_ledger(&m, 43, 1, o, 1);
	pgtest_run(t, &l, &r);
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 0);
	EXPECT(!is_due(t, m.table, false));
	struct sql_effect bump = {.kind = SQL_HEAD_BUMP,
				  .u.bump = {m.table, m.incarnation, 1, m.holder}};
	pgtest_run(t, &bump, &r);
	EXPECT(is_due(t, m.table, false));
	pgtest_run(t, &claim, &r);
	EXPECT(r.r.n_paths == 1 && !strcmp(r.path, "/w/t4/orphan.avro"));
	e = (struct sql_effect){.kind = SQL_TABLE_DROP,
				.u.drop = {.table = m.table, .incarnation = m.incarnation}};
	pgtest_run(t, &e, &r);
	EXPECT(!strcmp(r.location, m.metadata));
	/* Whether a staged path is live nobody can tell any more: it is forgotten, on disk it stays.
	 * What an attempt of ours wrote and what a purge named goes. */
	struct ran all;
	due_by_one(t);
	EXPECT(is_due(t, m.table, true));
	const struct table_id nil = {0};
	size_t n_due = due(t, &all, nil, 32);
	claim.u.claim.gone = true;
	for (size_t i = 0; i < n_due; i++) {
		claim.u.claim.table = all.tables[i];
		if (all.gone[i])
			pgtest_run(t, &claim, &r);
	}
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path = '/w/t4/x.parquet'") == 0);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path = '/w/t4/orphan.avro'"
			    " AND state = 3") == 1);
	EXPECT(admin_i64(a, "SELECT count(*) FROM frazil.object WHERE path LIKE '/w/t3/purged%'"
			    " AND state = 3") == 1);

	/* Horizon: an open transaction holds it back; behind it rows go and unknown ids are
	 * refused, known ones answered. The server's clock is ours for this part. */
	make_table(t, a, &m, "ns1", "t5");
	struct txn_row open = make_txn(&m, 51), done1 = make_txn(&m, 52);
	e = (struct sql_effect){.kind = SQL_TXN_BEGIN, .u.begin = &open};
	pgtest_run(t, &e, &r);
	struct sql_stage_item none = make_stage(done1.txn, "f", 1, NULL, 0);
	struct sql_once_item once = make_once(&done1, &none, 1);
	e = (struct sql_effect){.kind = SQL_TXN_ONCE, .u.once = &once};
	pgtest_run(t, &e, &r);
	uint8_t state = TXN_DB_COMMITTED;
	struct sql_publish p5 = make_publish(&m, 2, &done1.txn, &state, 1, NULL, 0);
	e = (struct sql_effect){.kind = SQL_PUBLISH, .u.publish = &p5};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.verdict == SQL_APPLIED);
	admin_script(a, "ALTER FUNCTION frazil.now_ms() RENAME TO now_ms_real;"
			"CREATE FUNCTION frazil.now_ms() RETURNS int8 LANGUAGE sql VOLATILE AS"
			" 'SELECT frazil.now_ms_real() + 7200000'");
	struct sql_effect h = {.kind = SQL_HORIZON, .u.horizon = {3600000}};
	pgtest_run(t, &h, &r);
	EXPECT(r.r.err.st == ST_OK);
	char sql[256], uuid[UUID_TEXT_LEN + 1];
	uuid_text(m.table.u, uuid);
	snprintf(sql, sizeof sql, "SELECT closed_before FROM frazil.horizon WHERE table_id = '%s'",
		 uuid);
	EXPECT(admin_i64(a, sql) == uuid_v7_ms(open.txn.u));
	e = (struct sql_effect){.kind = SQL_TXN_END, .u.end = {open.txn, TXN_DB_EXPIRED}};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK); /* its time to live has passed by now */
	e = (struct sql_effect){.kind = SQL_TXN_READ, .u.txn = done1.txn};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_OK); /* held back by the open one, whose id is older */
	admin_script(a, "CREATE OR REPLACE FUNCTION frazil.now_ms() RETURNS int8 LANGUAGE sql"
			" VOLATILE AS 'SELECT frazil.now_ms_real() + 14400000'");
	pgtest_run(t, &h, &r);
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_TXN_UNKNOWN);
	e = (struct sql_effect){.kind = SQL_BATCH_LOOK, .u.look = {m.table, p5.row.batch}};
	pgtest_run(t, &e, &r);
	EXPECT(!r.r.found);
	e = (struct sql_effect){.kind = SQL_TXN_BEGIN, .u.begin = &done1};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.item.st == ST_HORIZON_PASSED);
	/* The clock steps back: the horizon does not. */
	int64_t closed = admin_i64(a, "SELECT max(closed_before) FROM frazil.horizon");
	admin_script(a, "DROP FUNCTION frazil.now_ms();"
			"ALTER FUNCTION frazil.now_ms_real() RENAME TO now_ms");
	pgtest_run(t, &h, &r);
	EXPECT(admin_i64(a, "SELECT max(closed_before) FROM frazil.horizon") == closed);
}

void pgtest_effects(struct pgtest *t)
{
	struct admin *a = admin_open(t);
	make_catalog(a);
	begin_and_stage(t, a);
	publish(t, a);
	create_and_drop(t, a);
	clean_and_forget(t, a);
	admin_close(a);
}
