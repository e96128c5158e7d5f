"""DuckDB's SQL: an attached catalog and DuckDB's own reader and writer."""

from catalog_suite import duck_rows, row, span

ALWAYS = ("namespace",)
COLUMNS = "(id INT, region VARCHAR, name VARCHAR, score DOUBLE)"


def q(table):
    namespace, _, name = table.rpartition(".")
    return 'ice."%s"."%s"' % (namespace, name)


def create(c, name, rows=(), more="", version=2):
    t = "%s.%s" % (c.ns, name)
    c.sql("CREATE TABLE %s %s %s WITH ('format-version' = '%d')" % (q(t), COLUMNS, more, version),
          *["INSERT INTO %s %s" % (q(t), duck_rows(a, b)) for a, b in rows])
    return t


def step_namespace(c):
    c.sql('CREATE SCHEMA ice."%s"' % c.ns, 'CREATE SCHEMA ice."%s.in1"' % c.ns, 'CREATE SCHEMA ice."%s.in2"' % c.ns,
          'CREATE SCHEMA IF NOT EXISTS ice."%s"' % c.ns)
    c.refused(lambda: c.sql('CREATE SCHEMA ice."%s"' % c.ns), "already exists")
    c.refused(lambda: c.sql('DROP SCHEMA ice."%s"' % c.ns), "Conflict_409.*not empty")
    c.sql('DROP SCHEMA ice."%s.in2"' % c.ns)
    c.equal(c.rest.get("/v1/namespaces", parent=c.ns).json["namespaces"], [[c.ns, "in1"]], "namespaces")


def step_table(c):
    t = create(c, "first", [(0, 5)])
    c.refused(lambda: create(c, "first"), "already exists")
    c.sql("ALTER TABLE %s RENAME TO second" % q(t))
    c.check(not c.there(t), "the old name is there")
    t = c.ns + ".second"
    c.equal(c.sql("SELECT table_name FROM duckdb_tables() WHERE schema_name = '%s'" % c.ns), [("second",)], "tables")
    c.holds(t, span(0, 5))
    c.sql("DROP TABLE " + q(t))
    c.check(not c.there(t), "dropped, and there")


def with_options(c, options, f):
    """The catalog attached otherwise, for one step."""
    c.engine.ask("attach", options=options)
    try:
        return f()
    finally:
        c.engine.ask("attach", options="")


def step_ctas(c):
    t = c.ns + ".ctas"
    text = "CREATE TABLE %s AS %s" % (q(t), duck_rows(0, 30))
    # It writes into the folder of a table that is only promised yet, and makes none.
    c.refused(lambda: c.sql(text), "Cannot open file .*/metadata/.*No such file")
    with_options(c, "STAGE_CREATE_TABLES false", lambda: c.sql(text))
    c.operations(t, "append")
    c.holds(t, span(0, 30))


def step_rtas(c):
    t = create(c, "rtas", [(0, 3)])
    c.sql("CREATE OR REPLACE TABLE %s AS %s" % (q(t), duck_rows(5, 7)))
    c.holds(t, span(5, 7))


def step_insert(c):
    t = create(c, "inserted", [(0, 10)])
    c.sql("INSERT INTO %s VALUES (10, 'us', 'n0010', 2.5), (11, 'ap', 'n0011', 2.75)" % q(t),
          "INSERT INTO %s (name, id) VALUES ('some', 12)" % q(t))
    c.operations(t, "append", "append", "append")
    c.holds(t, span(0, 12) + [{"id": 12, "region": None, "name": "some", "score": None}])


def step_overwrite(c):
    """Without a statement of its own: all of the table, in one transaction."""
    t = create(c, "overwritten", [(0, 10)])
    c.sql("BEGIN", "TRUNCATE " + q(t), "INSERT INTO %s %s" % (q(t), duck_rows(20, 23)), "COMMIT")
    c.holds(t, span(20, 23))


def step_delete(c):
    t = create(c, "deleted", [(0, 30)])
    c.sql("DELETE FROM %s WHERE id %% 10 = 4" % q(t), "DELETE FROM %s WHERE id %% 10 = 5" % q(t))
    c.operations(t, "append", "delete", "delete")
    c.holds(t, [r for r in span(0, 30) if r["id"] % 10 not in (4, 5)])
    c.sql("TRUNCATE " + q(t))
    c.holds(t, [])


def step_update(c):
    t = create(c, "updated", [(0, 20)])
    c.sql("UPDATE %s SET name = name || '!', score = 0 WHERE id >= 15" % q(t))
    c.holds(t, [{**r, "name": r["name"] + "!", "score": 0.0} if r["id"] >= 15 else r for r in span(0, 20)])


def step_merge(c):
    t = create(c, "merged", [(0, 20)])
    c.sql("""MERGE INTO %s t USING (SELECT unnest([5, 7, 1001]) AS id) s ON t.id = s.id
             WHEN MATCHED THEN UPDATE SET name = 'merged'
             WHEN NOT MATCHED THEN INSERT (id, region, name, score) VALUES (s.id, 'eu', 'new', 0)""" % q(t))
    c.holds(t, [{**r, "name": "merged"} if r["id"] in (5, 7) else r for r in span(0, 20)] + [
        {"id": 1001, "region": "eu", "name": "new", "score": 0.0}])


def step_v3(c):
    t = create(c, "v3", [(0, 20), (20, 40)], version=3)
    ids = "SELECT id, _row_id FROM %s ORDER BY id" % q(t)
    before = dict(c.sql(ids))
    c.sql("DELETE FROM %s WHERE id %% 10 = 3" % q(t), "UPDATE %s SET name = 'u' WHERE id %% 10 = 5" % q(t),
          "DELETE FROM %s WHERE id %% 10 = 4" % q(t))
    c.equal(dict(c.sql(ids)), {k: v for k, v in before.items() if k % 10 not in (3, 4)}, "row ids")
    c.version(t, 3)
    c.holds(t, [{**r, "name": "u"} if r["id"] % 10 == 5 else r for r in span(0, 40) if r["id"] % 10 not in (3, 4)])


def step_travel(c):
    t = create(c, "travelled", [(0, 10), (10, 20)])
    c.sql("DELETE FROM %s WHERE id < 5" % q(t))
    shots = c.snapshots(t)
    c.equal([c.sql("SELECT count(*) FROM %s AT (VERSION => %d)" % (q(t), s["snapshot-id"]))[0][0] for s in shots], [10, 20, 15], "by snapshot")
    c.equal([c.sql("SELECT count(*) FROM %s AT (TIMESTAMP => make_timestamptz(%d * 1000))" % (q(t), s["timestamp-ms"]))[0][0] for s in shots],
            [10, 20, 15], "by time")
    for s, want in zip(shots, (span(0, 10), span(0, 20), span(5, 20))):
        c.holds(t, want, s["snapshot-id"])
    c.holds(t, span(5, 20))


def step_schema(c):
    t = create(c, "evolving", [(0, 4)])
    c.sql(*["ALTER TABLE %s %s" % (q(t), x) for x in (
        "ADD COLUMN note VARCHAR", "RENAME COLUMN name TO title", "ALTER id TYPE BIGINT", "DROP COLUMN score", "ADD COLUMN score VARCHAR")])
    c.sql("INSERT INTO %s (id, region, title, note, score) VALUES (4, 'eu', 't', 'n', 'late')" % q(t))
    fields = c.schema(t)["fields"]
    c.equal([(f["name"], f["type"]) for f in fields], [
        ("id", "long"), ("region", "string"), ("title", "string"), ("note", "string"), ("score", "string")], "columns")
    c.holds(t, [{"id": r["id"], "region": r["region"], "title": r["name"], "note": None, "score": None} for r in span(0, 4)] + [
        {"id": 4, "region": "eu", "title": "t", "score": "late", "note": "n"}])
    c.audited[t] = None
    c.refused(lambda: c.sql("ALTER TABLE %s ALTER id TYPE INT" % q(t)), "can't be altered")


def step_spec(c):
    t = create(c, "parted", [(0, 12)], more="PARTITIONED BY (region)")
    c.sql("ALTER TABLE %s SET PARTITIONED BY (bucket(4, id), truncate(2, name))" % q(t), "INSERT INTO %s %s" % (q(t), duck_rows(12, 24)))
    c.equal(c.spec(t), [("id", "bucket[4]"), ("name", "truncate[2]")], "spec")
    c.sql("ALTER TABLE %s RESET PARTITIONED BY" % q(t), "INSERT INTO %s %s" % (q(t), duck_rows(24, 30)))
    c.equal(c.spec(t), [], "spec")
    c.holds(t, span(0, 30))


def step_properties(c):
    t = create(c, "ordered", [(0, 3)])
    c.sql("CALL set_iceberg_table_properties(%s, {'a': '1', 'b': 'ü'})" % q(t), "CALL remove_iceberg_table_properties(%s, ['a'])" % q(t))
    m = c.metadata(t)["properties"]
    c.equal((m.get("a"), m["b"]), (None, "ü"), "properties")
    c.check(("b", "ü") in c.sql("SELECT * FROM iceberg_table_properties(%s)" % q(t)), "properties as told")
    c.holds(t, span(0, 3))
    c.sql("ALTER TABLE %s SET SORTED BY (id ASC)" % q(t))
    c.equal(len(c.metadata(t)["sort-orders"]), 2, "sort orders")


def step_upgrade(c):
    t = create(c, "upgraded", [(0, 20)])
    c.sql("DELETE FROM %s WHERE id %% 10 = 3" % q(t), "ALTER TABLE %s SET ('format-version' = '3')" % q(t))
    c.version(t, 3)
    c.sql("DELETE FROM %s WHERE id %% 10 = 4" % q(t), "INSERT INTO %s %s" % (q(t), duck_rows(20, 25)))
    c.holds(t, [r for r in span(0, 25) if r["id"] % 10 not in (3, 4) or r["id"] >= 20])


def step_inspect(c):
    t = create(c, "looked", [(0, 9), (9, 12)])
    want = [(s["sequence-number"], s["snapshot-id"]) for s in c.snapshots(t)]
    c.equal(c.sql("SELECT sequence_number, snapshot_id FROM iceberg_snapshots(%s) ORDER BY 1" % q(t)), want, "snapshots")
    c.equal(c.sql("SELECT sum(record_count), count(*) FROM iceberg_metadata(%s)" % q(t)), [(12, 2)], "files")


def step_view(c):
    c.sql('CREATE VIEW ice."%s".view1 AS SELECT 1 AS x' % c.ns)
    c.equal(c.sql('SELECT * FROM ice."%s".view1' % c.ns), [(1,)], "rows")


def step_transaction(c):
    t = create(c, "together", [(0, 5)])
    before = c.location(t)
    c.sql("BEGIN", "INSERT INTO %s %s" % (q(t), duck_rows(5, 8)), "DELETE FROM %s WHERE id = 1" % q(t),
          "UPDATE %s SET name = 'x' WHERE id = 2" % q(t), "COMMIT")
    c.equal(c.metadata(t)["metadata-log"][-1]["metadata-file"], before, "more than one commit: the file before")
    want = [row(2, "x") if r["id"] == 2 else r for r in span(0, 8) if r["id"] != 1]
    c.holds(t, want)
    at = c.location(t)
    c.sql("BEGIN", "INSERT INTO %s %s" % (q(t), duck_rows(50, 60)), "ROLLBACK")
    c.equal(c.location(t), at, "metadata after a transaction that was given up")
    c.holds(t, want)


def step_tables(c):
    """Both or neither."""
    t, u = create(c, "pair1", [(0, 5)]), create(c, "pair2", [(0, 5)])
    c.sql("BEGIN", "INSERT INTO %s %s" % (q(t), duck_rows(5, 8)), "DELETE FROM %s WHERE id = 1" % q(u),
          "UPDATE %s SET name = 'x' WHERE id = 2" % q(u), "COMMIT")
    both = (span(0, 8), [row(2, "x") if r["id"] == 2 else r for r in span(0, 5) if r["id"] != 1])
    c.holds(t, both[0])
    c.holds(u, both[1])
    # The second table has moved on meanwhile, so that its half is refused: the first stays as it was.
    first, second = c.location(t), c.location(u)
    c.sql("BEGIN", "INSERT INTO %s %s" % (q(t), duck_rows(20, 22)), "DELETE FROM %s WHERE id = 3" % q(u))
    got = c.rest.call("POST", c.path(u), {"requirements": [], "updates": [{"action": "remove-snapshot-ref", "ref-name": "main"}]})
    c.equal(got.status, 200, "a change between")
    moved = c.location(u)
    c.refused(lambda: c.sql("COMMIT"), "Conflict_409")
    c.equal((c.location(t), c.location(u)), (first, moved), "metadata after a transaction that was refused")
    c.check(moved != second, "nothing was changed between")
    c.holds(t, both[0])
    c.audited[u] = []


def step_conflict(c):
    t = create(c, "raced", [(0, 10)])
    c.sql("BEGIN", "INSERT INTO %s %s" % (q(t), duck_rows(10, 12)))
    got = c.rest.call("POST", c.path(t), {"requirements": [], "updates": [{"action": "remove-snapshot-ref", "ref-name": "main"}]})
    c.equal(got.status, 200, "a change between")
    at = c.location(t)
    c.refused(lambda: c.sql("COMMIT"), "Conflict_409")
    c.equal(c.location(t), at, "metadata after the refusal")
    c.sql("INSERT INTO %s %s" % (q(t), duck_rows(20, 22)))
    c.holds(t, span(20, 22))


def step_purge(c):
    t = create(c, "purged", [(0, 10)])
    at = c.metadata(t)["location"]
    with_options(c, "PURGE_REQUESTED true", lambda: c.sql("DROP TABLE " + q(t)))
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)
