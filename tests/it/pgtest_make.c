#include "tests/it/pgtest_make.h"

#include <time.h>

int64_t make_now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void make_catalog(struct admin *a)
{
	admin_script(a, "INSERT INTO frazil.warehouse (name, location) VALUES ('wh', '/w')"
			" ON CONFLICT DO NOTHING;"
			"INSERT INTO frazil.namespace (warehouse_id, parent, name)"
			" SELECT warehouse_id, '{}', n FROM frazil.warehouse,"
			" unnest(ARRAY['ns1', 'ns2']) n ON CONFLICT DO NOTHING");
}

static struct uuid id_of(const char *what, const char *name, int number)
{
	char text[96];
	int n = snprintf(text, sizeof text, "%s %s %d", what, name, number);
	struct digest d = digest_sha256((struct bytes){(const uint8_t *)text, (size_t)n});
	return uuid_v4(d.b);
}

static const struct strv ns_levels[] = {STRV("ns1"), STRV("ns2"), STRV("nowhere")};

struct sql_table_create make_create(struct made *m, const char *ns, const char *name, int batch)
{
	const struct strv *level = &ns_levels[!strcmp(ns, "ns1") ? 0 : !strcmp(ns, "ns2") ? 1 : 2];
	struct sql_table_create c = {
		.warehouse = STRV("wh"),
		.levels = level,
		.n_levels = 1,
		.name = strv_of(name),
		.table = m->table,
		.location = strv_of(m->location),
		.holder = m->holder,
		.last_seq = 0,
		.next_row_id = 0,
	};
	c.row.batch = make_batch_id(m, batch);
	c.row.table = m->table;
	c.row.batch_no = 1;
	c.row.outcomes = (struct bytes){(const uint8_t *)"\1", 1};
	c.row.metadata_location = strv_of(m->metadata);
	return c;
}

void make_ids(struct made *m, const char *name)
{
	snprintf(m->name, sizeof m->name, "%s", name);
	snprintf(m->location, sizeof m->location, "/w/%s", name);
	snprintf(m->metadata, sizeof m->metadata, "/w/%s/v1.json", name);
	m->table.u = id_of("table", name, 0);
	m->holder.u = id_of("daemon", "one", 0);
}

void make_table(struct pgtest *t, struct admin *a, struct made *m, const char *ns, const char *name)
{
	struct ran r;
	(void)a;
	memset(m, 0, sizeof *m);
	make_ids(m, name);
	m->batch = make_batch_id(m, 1);
	struct strv object = strv_of(m->metadata);
	struct sql_effect l = {.kind = SQL_LEDGER,
			       .u.ledger = {.table = m->table,
					    .epoch = -1,
					    .batch = m->batch,
					    .paths = &object,
					    .n_paths = 1}};
	pgtest_run(t, &l, &r);
	EXPECT(r.r.verdict == SQL_APPLIED && r.r.err.st == ST_OK);
	struct sql_table_create c = make_create(m, ns, m->name, 1);
	c.objects = &object;
	c.n_objects = 1;
	struct sql_effect e = {.kind = SQL_TABLE_CREATE, .u.create = &c};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATED && r.r.err.st == ST_OK && r.r.found);
	EXPECT(r.r.head.epoch == 1 && r.r.head.version == 1 && r.r.head.last_batch == 1);
	EXPECT(!strcmp(r.location, m->metadata));
	m->incarnation = r.r.head.incarnation;
}

void make_shared(struct pgtest *t, struct made *m, const char *name)
{
	struct ran r;
	make_ids(m, name);
	struct sql_table_create c = make_create(m, "ns1", m->name, 1);
	struct sql_effect e = {.kind = SQL_TABLE_CREATE, .u.create = &c};
	pgtest_run(t, &e, &r);
	EXPECT(r.r.created == SQL_CREATED || r.r.created == SQL_CREATE_EXISTS);
	EXPECT(r.r.found);
	m->incarnation = r.r.head.incarnation;
}

struct txn_row make_txn_at(const struct made *m, int number, int64_t id_ms)
{
	struct txn_row row = {
		.table = m->table,
		.incarnation = m->incarnation,
		.ref = STRV("main"),
		.kind = 1,
		.has_read_snapshot = true,
		.read_snapshot = 77,
		.principal = STRV("alice"),
		.begin = {(const uint8_t *)"\1begin", 6},
		.ttl_ms = 60000,
	};
	struct uuid u = id_of("txn", m->name, number);
	row.txn.u = uuid_v7(id_ms, u.b);
	row.params.b[0] = (uint8_t)number;
	return row;
}

struct txn_row make_txn(const struct made *m, int number)
{
	return make_txn_at(m, number, make_now_ms());
}

struct sql_stage_item make_stage(struct txn_id txn, const char *fragment, int attempt,
				 const struct strv *paths, size_t n)
{
	struct sql_stage_item s = {.paths = paths, .n_paths = n};
	s.row.txn = txn;
	s.row.fragment_id = strv_of(fragment);
	s.row.attempt = attempt;
	s.row.digest = digest_sha256(strv_bytes(s.row.fragment_id));
	s.row.payload = (struct bytes){(const uint8_t *)"\1payload", 8};
	return s;
}

struct sql_once_item make_once(const struct txn_row *row, const struct sql_stage_item *stages,
			       size_t n)
{
	struct sql_once_item o = {.row = *row, .stages = stages, .n_stages = n};
	o.row.state = TXN_DB_SEALED;
	o.row.has_set_digest = true;
	o.row.set_digest.b[0] = 5;
	o.row.commit_requested = true;
	o.row.seal = (struct bytes){(const uint8_t *)"\1s", 2};
	return o;
}

struct batch_id make_batch_id(const struct made *m, int number)
{
	return (struct batch_id){id_of("batch", m->name, number)};
}

struct sql_effect make_ledger(const struct made *m, int batch, int64_t epoch,
			      const struct strv *paths, size_t n)
{
	return (struct sql_effect){.kind = SQL_LEDGER,
				   .u.ledger = {.table = m->table,
						.incarnation = m->incarnation,
						.epoch = epoch,
						.batch = make_batch_id(m, batch),
						.holder = m->holder,
						.paths = paths,
						.n_paths = n}};
}

struct sql_publish make_publish(const struct made *m, int batch_no, const struct txn_id *txns,
				const uint8_t *states, size_t n, const struct strv *objects,
				size_t n_objects)
{
	static const int64_t snapshots[2] = {1234567890123, -5};
	struct sql_publish p = {
		.last_seq = 2, .next_row_id = 150, .objects = objects, .n_objects = n_objects};
	p.row.table = m->table;
	p.row.incarnation = m->incarnation;
	p.row.batch_no = batch_no;
	p.row.batch = make_batch_id(m, batch_no);
	p.row.epoch = 1;
	p.row.base_version = 1;
	p.row.txns = txns;
	p.row.txn_states = states;
	p.row.n_txns = n;
	p.row.outcomes = (struct bytes){(const uint8_t *)"\1out", 4};
	p.row.snapshots = snapshots;
	p.row.n_snapshots = 2;
	p.row.first_row_id = 100;
	p.row.added_rows = 50;
	p.row.metadata_location = STRV("/w/meta.json");
	return p;
}
