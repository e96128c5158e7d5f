"""Trino's SQL over its Iceberg connector."""

import os
import time

from catalog_suite import row, span

ALWAYS = ("namespace",)
COLUMNS = "(id INTEGER, region VARCHAR, name VARCHAR, score DOUBLE)"
SELECT = ("SELECT CAST(i AS INTEGER) AS id, element_at(ARRAY['eu','us','ap'], CAST(i %% 3 AS INTEGER) + 1) AS region, "
          "CAST('n' || lpad(CAST(i AS VARCHAR), 4, '0') AS VARCHAR) AS name, CAST(i AS DOUBLE) / 4 AS score FROM UNNEST(sequence(%d, %d)) s(i)")


def rows(a, b):
    return SELECT % (a, b - 1)


def q(table):
    namespace, _, name = table.rpartition(".")
    return 'ice."%s"."%s"' % (namespace, name)


def hidden(table, what):
    namespace, _, name = table.rpartition(".")
    return 'ice."%s"."%s$%s"' % (namespace, name, what)


def create(c, name, batches=(), **properties):
    t = "%s.%s" % (c.ns, name)
    c.sql("CREATE TABLE %s %s %s" % (q(t), COLUMNS, with_(properties)), *["INSERT INTO %s %s" % (q(t), rows(a, b)) for a, b in batches])
    return t


def with_(properties):
    return properties and "WITH (%s)" % ", ".join("%s = %s" % x for x in properties.items()) or ""


def step_namespace(c):
    c.sql('CREATE SCHEMA ice."%s"' % c.ns, 'CREATE SCHEMA ice."%s.in1"' % c.ns, 'CREATE SCHEMA ice."%s.in2"' % c.ns,
          'CREATE SCHEMA IF NOT EXISTS ice."%s"' % c.ns)
    c.refused(lambda: c.sql('CREATE SCHEMA ice."%s"' % c.ns), "already exists")
    c.refused(lambda: c.sql('DROP SCHEMA ice."%s"' % c.ns), "not empty|Cannot drop")
    c.sql('DROP SCHEMA ice."%s.in2"' % c.ns)
    c.equal(sorted(x for x, in c.sql("SHOW SCHEMAS FROM ice") if x.startswith(c.ns)), [c.ns, c.ns + ".in1"], "schemas")


def step_table(c):
    t = create(c, "first", [(0, 5)])
    c.refused(lambda: create(c, "first"), "already exists")
    c.sql('ALTER TABLE %s RENAME TO ice."%s.in1".second' % (q(t), c.ns))
    c.check(not c.there(t), "the old name is there")
    t = c.ns + ".in1.second"
    c.equal(c.sql('SHOW TABLES FROM ice."%s.in1"' % c.ns), [("second",)], "tables")
    c.holds(t, span(0, 5))
    c.sql("DROP TABLE " + q(t))
    c.check(not c.there(t), "dropped, and there")


def step_ctas(c):
    t = c.ns + ".ctas"
    c.sql("CREATE TABLE %s WITH (partitioning = ARRAY['region']) AS %s" % (q(t), rows(0, 30)))
    c.equal(c.spec(t), [("region", "identity")], "spec")
    c.holds(t, span(0, 30))


def step_rtas(c):
    t = create(c, "rtas", [(0, 30)])
    uuid = c.metadata(t)["table-uuid"]
    c.sql("CREATE OR REPLACE TABLE %s WITH (partitioning = ARRAY['bucket(id, 2)']) AS SELECT id, name FROM (%s)" % (q(t), rows(100, 120)))
    c.equal((c.metadata(t)["table-uuid"], c.spec(t)), (uuid, [("id", "bucket[2]")]), "uuid, spec")
    c.holds(t, [{"id": i, "name": row(i)["name"]} for i in range(100, 120)])


def step_insert(c):
    t = create(c, "inserted", [(0, 10)])
    c.sql("INSERT INTO %s VALUES (10, 'us', 'n0010', 2.5), (11, 'ap', 'n0011', 2.75)" % q(t),
          "INSERT INTO %s (name, id) VALUES ('some', 12)" % q(t))
    c.equal({s["summary"]["operation"] for s in c.snapshots(t) if "total-records" in s["summary"] and s["summary"]["total-records"] != "0"},
            {"append"}, "operations")
    c.holds(t, span(0, 12) + [{"id": 12, "region": None, "name": "some", "score": None}])


def step_delete(c):
    t = create(c, "deleted", [(0, 30)], partitioning="ARRAY['region']")
    c.sql("DELETE FROM %s WHERE id %% 10 = 4" % q(t), "DELETE FROM %s WHERE region = 'us'" % q(t))
    c.holds(t, [r for r in span(0, 30) if r["id"] % 10 != 4 and r["region"] != "us"])
    c.sql("TRUNCATE TABLE " + q(t))
    c.holds(t, [])


def step_update(c):
    t = create(c, "updated", [(0, 20)])
    c.sql("UPDATE %s SET name = name || '!', score = 0 WHERE id >= 15" % q(t))
    c.holds(t, [{**r, "name": r["name"] + "!", "score": 0.0} if r["id"] >= 15 else r for r in span(0, 20)])


def step_merge(c):
    t = create(c, "merged", [(0, 20)])
    c.sql("""MERGE INTO %s t USING (VALUES 5, 7, 1001) s(id) ON t.id = s.id
             WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged'
             WHEN NOT MATCHED THEN INSERT (id, region, name, score) VALUES (s.id, 'eu', 'new', 0)""" % q(t))
    c.holds(t, [{**r, "name": "merged"} if r["id"] == 5 else r for r in span(0, 20) if r["id"] != 7] + [
        {"id": 1001, "region": "eu", "name": "new", "score": 0.0}])


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)


def step_v3(c):
    t = create(c, "v3", [(0, 20), (20, 40)], format_version=3)
    ids = 'SELECT id, "$row_id" FROM ' + q(t)
    before = dict(c.sql(ids))
    c.sql("DELETE FROM %s WHERE id %% 10 = 3" % q(t), "UPDATE %s SET name = 'u' WHERE id %% 10 = 5" % q(t),
          "DELETE FROM %s WHERE id %% 10 = 4" % q(t))
    after = dict(c.sql(ids))
    c.equal(after, {k: v for k, v in before.items() if k % 10 not in (3, 4)}, "row ids")
    c.equal({r["id"]: r["_row_id"] for r in c.suite.engines["duckdb"].read(t, True)}, after, "row ids by DuckDB")
    c.version(t, 3)
    c.holds(t, [{**r, "name": "u"} if r["id"] % 10 == 5 else r for r in span(0, 40) if r["id"] % 10 not in (3, 4)])


def step_branch(c):
    t = create(c, "branched", [(0, 10)])
    c.sql("CREATE BRANCH side IN TABLE " + q(t), "INSERT INTO %s @ side %s" % (q(t), rows(10, 15)), "DELETE FROM %s @ side WHERE id = 3" % q(t))
    c.refs(t, main="branch", side="branch")
    want = [r for r in span(0, 15) if r["id"] != 3]
    c.holds(t, want, c.metadata(t)["refs"]["side"]["snapshot-id"])
    c.holds(t, span(0, 10))
    c.equal(c.sql("SELECT count(*) FROM %s FOR VERSION AS OF 'side'" % q(t)), [(14,)], "rows of the branch")
    c.sql("ALTER BRANCH main IN TABLE %s FAST FORWARD TO side" % q(t), "DROP BRANCH side IN TABLE " + q(t))
    c.refs(t, main="branch")
    c.holds(t, want)


def step_travel(c):
    t = create(c, "travelled", [(0, 10), (10, 20)])
    c.sql("DELETE FROM %s WHERE id < 5" % q(t))
    shots = c.snapshots(t)[-3:]
    c.equal([c.sql("SELECT count(*) FROM %s FOR VERSION AS OF %d" % (q(t), s["snapshot-id"]))[0][0] for s in shots], [10, 20, 15], "by snapshot")
    c.equal([c.sql("SELECT count(*) FROM %s FOR TIMESTAMP AS OF from_unixtime_nanos(%d000000)" % (q(t), s["timestamp-ms"]))[0][0] for s in shots],
            [10, 20, 15], "by time")
    c.holds(t, span(5, 20))


def step_rollback(c):
    t = create(c, "rolled", [(0, 10), (10, 20)])
    first = c.snapshots(t)[-2]["snapshot-id"]
    c.sql("ALTER TABLE %s EXECUTE rollback_to_snapshot(snapshot_id => %d)" % (q(t), first))
    c.equal(c.metadata(t)["current-snapshot-id"], first, "current snapshot")
    c.holds(t, span(0, 10))


def step_schema(c):
    t = create(c, "evolving", [(0, 4)])
    c.sql(*["ALTER TABLE %s %s" % (q(t), x) for x in (
        "ADD COLUMN note VARCHAR COMMENT 'a note'", "RENAME COLUMN name TO title", "ALTER COLUMN id SET DATA TYPE BIGINT", "DROP COLUMN score",
        "ADD COLUMN place ROW(x INTEGER)", "ADD COLUMN place.y DOUBLE")])
    c.sql("INSERT INTO %s (id, region, title, note, place) VALUES (4, 'eu', 't', 'n', ROW(1, 0.5))" % q(t))
    c.equal([(f["name"], f.get("doc")) for f in c.schema(t)["fields"]],
            [("id", None), ("region", None), ("title", None), ("note", "a note"), ("place", None)], "columns")
    c.holds(t, [{"id": r["id"], "region": r["region"], "title": r["name"], "note": None, "place": None} for r in span(0, 4)] + [
        {"id": 4, "region": "eu", "title": "t", "note": "n", "place": {"x": 1, "y": 0.5}}])
    c.audited[t] = None
    c.refused(lambda: c.sql("ALTER TABLE %s ALTER COLUMN id SET DATA TYPE INTEGER" % q(t)), "Failed to set column type|Cannot change")


def step_spec(c):
    t = create(c, "parted", [(0, 12)], partitioning="ARRAY['region']")
    c.sql("ALTER TABLE %s SET PROPERTIES partitioning = ARRAY['bucket(id, 4)', 'truncate(name, 2)']" % q(t),
          "INSERT INTO %s %s" % (q(t), rows(12, 24)))
    c.equal(c.spec(t), [("id", "bucket[4]"), ("name", "truncate[2]")], "spec")
    c.holds(t, span(0, 24))


def step_properties(c):
    t = create(c, "ordered", [(0, 3)], sorted_by="ARRAY['region DESC NULLS LAST']")
    c.sql("ALTER TABLE %s SET PROPERTIES max_commit_retry = 7, sorted_by = ARRAY['id']" % q(t), "COMMENT ON TABLE %s IS 'ü'" % q(t),
          "INSERT INTO %s %s" % (q(t), rows(3, 6)))
    m = c.metadata(t)
    c.equal((m["properties"]["commit.retry.num-retries"], m["properties"]["comment"]), ("7", "ü"), "properties")
    order = next(o for o in m["sort-orders"] if o["order-id"] == m["default-sort-order-id"])
    c.equal([(f["source-id"], f["transform"], f["direction"], f["null-order"]) for f in order["fields"]],
            [(1, "identity", "asc", "nulls-first")], "order")
    c.holds(t, span(0, 6))


def step_upgrade(c):
    t = create(c, "upgraded", [(0, 20)], format_version=2)
    c.sql("DELETE FROM %s WHERE id %% 10 = 3" % q(t), "ALTER TABLE %s SET PROPERTIES format_version = 3" % q(t))
    c.version(t, 3)
    c.sql("DELETE FROM %s WHERE id %% 10 = 4" % q(t), "INSERT INTO %s %s" % (q(t), rows(20, 25)))
    c.holds(t, [r for r in span(0, 25) if r["id"] % 10 not in (3, 4) or r["id"] >= 20])


def step_inspect(c):
    t = create(c, "looked", [(0, 9), (9, 12)], partitioning="ARRAY['region']")
    c.sql("DELETE FROM %s WHERE id = 0" % q(t))
    n = len(c.snapshots(t))
    c.equal([c.sql("SELECT count(*) FROM " + hidden(t, x))[0][0] for x in ("snapshots", "history", "refs", "partitions")], [n, n, 1, 3], "tables")
    c.equal(c.sql("SELECT sum(record_count) FROM %s WHERE content = 0" % hidden(t, "files")), [(12,)], "files")
    c.check(c.sql("SELECT count(*) FROM " + hidden(t, "manifests"))[0][0] >= 3, "manifests")
    c.check(c.sql("SELECT count(*) FROM " + hidden(t, "metadata_log_entries"))[0][0] >= 3, "log of metadata")


def step_view(c):
    t = create(c, "seen", [(0, 10)])
    v = c.ns + ".view1"
    c.sql("CREATE VIEW %s AS SELECT id, name FROM %s WHERE id > 6" % (q(v), q(t)))
    c.equal(sorted(c.sql("SELECT * FROM " + q(v))), [(i, row(i)["name"]) for i in range(7, 10)], "rows")
    c.sql("CREATE OR REPLACE VIEW %s AS SELECT count(*) AS n FROM %s" % (q(v), q(t)))
    c.equal(c.sql("SELECT * FROM " + q(v)), [(10,)], "rows after the change")
    got = c.rest.get("/v1/namespaces/%s/views/view1" % c.ns).json["metadata"]
    c.equal((len(got["versions"]), got["versions"][-1]["representations"][0]["dialect"]), (2, "trino"), "versions, dialect")
    c.sql('ALTER VIEW %s RENAME TO ice."%s".view2' % (q(v), c.ns))
    c.equal(c.rest.head("/v1/namespaces/%s/views/view1" % c.ns).status, 404, "the old name")
    c.sql('DROP VIEW ice."%s".view2' % c.ns)
    c.equal(c.rest.get("/v1/namespaces/%s/views" % c.ns).json["identifiers"], [], "views")


def step_rewrite(c):
    t = create(c, "rewritten", [(a, a + 5) for a in range(0, 20, 5)], format_version=3)
    c.sql("DELETE FROM %s WHERE id %% 5 = 1" % q(t))
    before = dict(c.sql('SELECT id, "$row_id" FROM ' + q(t)))
    c.sql("ALTER TABLE %s EXECUTE optimize" % q(t))
    c.equal(c.snapshots(t)[-1]["summary"]["operation"], "replace", "operation")
    # As many files as it has writers.
    c.check(c.sql("SELECT count(*) FROM %s WHERE content = 0" % hidden(t, "files"))[0][0] in (1, 2), "files")
    c.equal(dict(c.sql('SELECT id, "$row_id" FROM ' + q(t))), before, "row ids")
    c.holds(t, [r for r in span(0, 20) if r["id"] % 5 != 1])


def step_manifests(c):
    t = create(c, "listed", [(0, 5), (5, 10), (10, 15)])
    c.sql("ALTER TABLE %s EXECUTE optimize_manifests" % q(t))
    c.equal(c.sql("SELECT count(*) FROM " + hidden(t, "manifests")), [(1,)], "manifests")
    c.holds(t, span(0, 15))


def step_expire(c):
    t = create(c, "expired", [(0, 5), (5, 10), (10, 15)])
    lists = [s["manifest-list"].partition(":")[2] for s in c.snapshots(t)]
    c.sql("ALTER TABLE %s EXECUTE expire_snapshots(retention_threshold => '0s')" % q(t))
    c.equal([s["manifest-list"].partition(":")[2] for s in c.snapshots(t)], lists[-1:], "snapshots that stay")
    c.equal([os.path.exists(x) for x in lists], [False] * (len(lists) - 1) + [True], "lists that stay")
    c.holds(t, span(0, 15))


def step_orphans(c):
    t = create(c, "orphaned", [(0, 5), (5, 10)])
    c.sql("DELETE FROM %s WHERE id = 3" % q(t))
    at = c.metadata(t)["location"]
    planted = "/" + at.partition(":")[2].lstrip("/") + "/data/planted.parquet"
    open(planted, "w").close()
    old = c.files(at)
    then = time.time() - 10 * 86400
    for f in old:
        os.utime(f, (then, then))
    c.sql("ALTER TABLE %s EXECUTE remove_orphan_files(retention_threshold => '7d')" % q(t))
    c.equal(sorted(set(old) - set(c.files(at))), [planted], "files removed")
    c.holds(t, [r for r in span(0, 10) if r["id"] != 3])


def step_statistics(c):
    t = create(c, "counted", [(0, 20)])
    c.sql("ANALYZE " + q(t))
    m = c.metadata(t)
    got = {b["fields"][0]: b["properties"]["ndv"] for s in m["statistics"] if s["snapshot-id"] == m["current-snapshot-id"] for b in s["blob-metadata"]}
    c.equal(got, {1: "20", 2: "3", 3: "20", 4: "20"}, "distinct values")
    c.holds(t, span(0, 20))


def step_register(c):
    t = create(c, "enrolled", [(0, 10)])
    m, location = c.metadata(t), c.location(t)
    c.sql("CALL ice.system.unregister_table('%s', 'enrolled')" % c.ns)
    c.check(not c.there(t), "unregistered, and there")
    c.sql("CALL ice.system.register_table(schema_name => '%s', table_name => 'again', table_location => '%s', metadata_file_name => '%s')"
          % (c.ns, m["location"], location.rpartition("/")[2]))
    t = c.ns + ".again"
    c.equal(c.metadata(t)["table-uuid"], m["table-uuid"], "uuid")
    c.sql("INSERT INTO %s %s" % (q(t), rows(10, 12)))
    c.holds(t, span(0, 12))


def step_purge(c):
    t = create(c, "purged", [(0, 10)])
    at = c.metadata(t)["location"]
    c.sql("DROP TABLE " + q(t))
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)
