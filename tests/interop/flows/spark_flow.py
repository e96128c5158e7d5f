"""Spark SQL with Iceberg's Java library. Tables are of version 3 with vectors where nothing else is said; each step has
tables of its own.
"""

import os
import time

from catalog_suite import COLUMNS, V3, row, span, spark_rows

ALWAYS = ("namespace",)
V2 = V3.replace("'3'", "'2'")


def create(c, name, rows=(), props=V3, more=""):
    """ns.name with rows, each range one file of one snapshot."""
    t = "%s.%s" % (c.ns, name)
    c.sql("CREATE TABLE ice.%s %s USING iceberg %s TBLPROPERTIES (%s)" % (t, COLUMNS, more, props),
          *["INSERT INTO ice.%s %s" % (t, spark_rows(a, b)) for a, b in rows])
    return t


def call(c, procedure, table, more=""):
    return c.sql("CALL ice.system.%s(table => '%s'%s)" % (procedure, table, more and ", " + more))


def count(c, what):
    return c.sql("SELECT count(*) FROM ice." + what)[0][0]


def step_namespace(c):
    c.sql("CREATE NAMESPACE ice.%s COMMENT 'flows' WITH PROPERTIES ('kind' = 'tests')" % c.ns, "CREATE NAMESPACE ice.%s.in1" % c.ns,
          "CREATE NAMESPACE ice.%s.in2" % c.ns, "CREATE NAMESPACE IF NOT EXISTS ice.%s.in1" % c.ns)
    c.equal(c.sql("SHOW NAMESPACES IN ice.%s" % c.ns), [("%s.in1" % c.ns,), ("%s.in2" % c.ns,)], "namespaces")
    c.refused(lambda: c.sql("CREATE NAMESPACE ice.%s.in1" % c.ns), "already exists|SCHEMA_ALREADY_EXISTS")
    c.refused(lambda: c.sql("DROP NAMESPACE ice." + c.ns), "not empty|SCHEMA_NOT_EMPTY")
    c.sql("ALTER NAMESPACE ice.%s SET PROPERTIES ('more' = 'yes')" % c.ns, "DROP NAMESPACE ice.%s.in2" % c.ns)
    got = c.rest.get("/v1/namespaces/" + c.ns).json["properties"]
    c.equal((got.get("comment"), got.get("more")), ("flows", "yes"), "properties")
    c.equal(c.sql("SHOW NAMESPACES IN ice.%s" % c.ns), [("%s.in1" % c.ns,)], "namespaces")


def step_table(c):
    t = create(c, "first", [(0, 5)])
    c.refused(lambda: create(c, "first"), "already exists|TABLE_OR_VIEW_ALREADY_EXISTS")
    c.sql("ALTER TABLE ice.%s RENAME TO %s.in1.second" % (t, c.ns))
    c.equal([r[1] for r in c.sql("SHOW TABLES IN ice.%s.in1" % c.ns)], ["second"], "tables")
    c.check(not c.there(t), "the old name is there")
    c.holds("%s.in1.second" % c.ns, span(0, 5))
    c.sql("DROP TABLE ice.%s.in1.second" % c.ns)
    c.check(not c.there("%s.in1.second" % c.ns), "dropped, and there")
    c.refused(lambda: c.sql("SELECT * FROM ice.%s.in1.second" % c.ns), "TABLE_OR_VIEW_NOT_FOUND|cannot be found")


def step_ctas(c):
    t = c.ns + ".ctas"
    c.sql("CREATE TABLE ice.%s USING iceberg PARTITIONED BY (region) TBLPROPERTIES (%s) AS %s" % (t, V3, spark_rows(0, 30)))
    c.operations(t, "append")
    c.equal(c.spec(t), [("region", "identity")], "spec")
    c.version(t, 3)
    c.holds(t, span(0, 30))


def step_rtas(c):
    t = create(c, "rtas", [(0, 30)], more="PARTITIONED BY (region)")
    before = c.metadata(t)
    c.sql("CREATE OR REPLACE TABLE ice.%s USING iceberg PARTITIONED BY (bucket(2, id)) TBLPROPERTIES (%s) AS SELECT id, name FROM (%s)"
          % (t, V3, spark_rows(100, 120)))
    after = c.metadata(t)
    c.equal(after["table-uuid"], before["table-uuid"], "uuid")
    c.equal(c.spec(t), [("id", "bucket[2]")], "spec")
    c.equal(len(c.snapshots(t)), 2, "snapshots")
    c.holds(t, [{"id": i, "name": row(i)["name"]} for i in range(100, 120)])
    # What was replaced is still history.
    c.equal(c.sql("SELECT count(*), sum(id) FROM ice.%s VERSION AS OF %d" % (t, before["current-snapshot-id"])),
            [(30, sum(range(30)))], "history")
    c.sql("REPLACE TABLE ice.%s USING iceberg TBLPROPERTIES (%s) AS SELECT 1 AS id" % (t, V3))
    c.holds(t, [{"id": 1}])


def step_insert(c):
    t = create(c, "inserted", [(0, 10)])
    c.sql("INSERT INTO ice.%s VALUES (10, 'us', 'n0010', 2.5), (11, 'ap', 'n0011', 2.75)" % t,
          "INSERT INTO ice.%s (name, id, score, region) VALUES ('some', 12, NULL, NULL)" % t)
    c.operations(t, "append", "append", "append")
    c.equal([s["summary"]["total-records"] for s in c.snapshots(t)], ["10", "12", "13"], "totals")
    c.holds(t, span(0, 12) + [{"id": 12, "region": None, "name": "some", "score": None}])


def step_overwrite(c):
    t = create(c, "overwritten", [(0, 30)], more="PARTITIONED BY (region)")
    c.sql("INSERT OVERWRITE ice.%s PARTITION (region = 'eu') SELECT 100, 'new', 1.0D" % t)
    rows = [r for r in span(0, 30) if r["region"] != "eu"] + [row(100, "new", "eu")]
    rows[-1]["score"] = 1.0
    c.operations(t, "append", "overwrite")
    c.holds(t, rows)
    c.sql("INSERT OVERWRITE ice.%s %s" % (t, spark_rows(200, 203)))
    c.operations(t, "append", "overwrite", "overwrite")
    c.holds(t, span(200, 203))


def step_delete(c):
    t = create(c, "deleted", [(0, 30)], more="PARTITIONED BY (region)")
    c.sql("DELETE FROM ice.%s WHERE id %% 10 = 4" % t, "DELETE FROM ice.%s WHERE region = 'us'" % t,
          "DELETE FROM ice.%s WHERE id > 1000" % t)
    # Nothing holds the last one, which gives an empty snapshot.
    c.operations(t, "append", "delete", "delete", "delete")
    c.holds(t, [r for r in span(0, 30) if r["id"] % 10 != 4 and r["region"] != "us"])
    c.sql("DELETE FROM ice." + t)
    c.holds(t, [])


def step_update(c):
    t = create(c, "updated", [(0, 20)])
    c.sql("UPDATE ice.%s SET name = concat(name, '!'), score = 0 WHERE id >= 15" % t)
    c.operations(t, "append", "overwrite")
    c.holds(t, [{**r, "name": r["name"] + "!", "score": 0.0} if r["id"] >= 15 else r for r in span(0, 20)])


def step_merge(c):
    t = create(c, "merged", [(0, 20)])
    c.sql("""MERGE INTO ice.%s t USING (SELECT explode(array(5, 7, 1001)) AS id) s ON t.id = s.id
             WHEN MATCHED AND s.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged'
             WHEN NOT MATCHED THEN INSERT (id, region, name, score) VALUES (s.id, 'eu', 'new', 0)
             WHEN NOT MATCHED BY SOURCE AND t.id = 19 THEN DELETE""" % t)
    c.operations(t, "append", "overwrite")
    c.holds(t, [{**r, "name": "merged"} if r["id"] == 5 else r for r in span(0, 19) if r["id"] != 7] + [
        {"id": 1001, "region": "eu", "name": "new", "score": 0.0}])


def step_v3(c):
    """Row ids stay with their rows, as a reader with its own code sees them; deletes are vectors."""
    t = create(c, "v3", [(0, 20), (20, 40)])
    ids = "SELECT id, _row_id FROM ice.%s ORDER BY id" % t
    before = dict(c.sql(ids))
    c.sql("DELETE FROM ice.%s WHERE id %% 10 = 3" % t, "UPDATE ice.%s SET name = 'u' WHERE id %% 10 = 5" % t,
          "DELETE FROM ice.%s WHERE id %% 10 = 4" % t)
    after = dict(c.sql(ids))
    c.equal(after, {k: v for k, v in before.items() if k % 10 not in (3, 4)}, "row ids")
    others = c.suite.engines["duckdb"].read(t, True)
    c.equal({r["id"]: r["_row_id"] for r in others}, after, "row ids by DuckDB")
    c.equal(c.sql("SELECT DISTINCT file_format FROM ice.%s.delete_files" % t), [("PUFFIN",)], "format of delete files")
    c.holds(t, [{**r, "name": "u"} if r["id"] % 10 == 5 else r for r in span(0, 40) if r["id"] % 10 not in (3, 4)])


def step_branch(c):
    t = create(c, "branched", [(0, 10)])
    main = c.metadata(t)["current-snapshot-id"]
    c.sql("ALTER TABLE ice.%s CREATE BRANCH side RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS" % t,
          "INSERT INTO ice.%s.branch_side %s" % (t, spark_rows(10, 15)), "DELETE FROM ice.%s.branch_side WHERE id = 3" % t)
    c.refs(t, main="branch", side="branch")
    side = c.metadata(t)["refs"]["side"]
    c.equal((side["max-ref-age-ms"], side["min-snapshots-to-keep"]), (7 * 86400000, 3), "retention")
    want = [r for r in span(0, 15) if r["id"] != 3]
    c.holds(t, want, side["snapshot-id"])
    c.holds(t, span(0, 10))
    c.equal(c.sql("SELECT count(*) FROM ice.%s VERSION AS OF 'side'" % t), [(14,)], "rows of the branch")
    c.equal(c.sql("SELECT count(*) FROM ice.%s.branch_side" % t), [(14,)], "rows of the branch")
    c.equal(c.sql("CALL ice.system.fast_forward('%s', 'main', 'side')" % t), [("main", main, side["snapshot-id"])], "fast forward")
    c.holds(t, want)
    # Written aside under an id, then published.
    c.sql("ALTER TABLE ice.%s SET TBLPROPERTIES ('write.wap.enabled' = 'true')" % t, "SET spark.wap.id = w1",
          "INSERT INTO ice.%s %s" % (t, spark_rows(20, 22)), "RESET spark.wap.id")
    c.holds(t, want)
    c.sql("CALL ice.system.publish_changes('%s', 'w1')" % t)
    c.holds(t, want + span(20, 22))
    c.sql("ALTER TABLE ice.%s DROP BRANCH side" % t)
    c.refs(t, main="branch")


def step_tag(c):
    t = create(c, "tagged", [(0, 10)])
    first = c.metadata(t)["current-snapshot-id"]
    c.sql("ALTER TABLE ice.%s CREATE TAG one RETAIN 365 DAYS" % t, "INSERT INTO ice.%s %s" % (t, spark_rows(10, 12)),
          "ALTER TABLE ice.%s CREATE TAG two" % t)
    c.refs(t, main="branch", one="tag", two="tag")
    c.equal((c.metadata(t)["refs"]["one"]["snapshot-id"], c.metadata(t)["refs"]["one"]["max-ref-age-ms"]), (first, 365 * 86400000), "tag")
    c.equal(c.sql("SELECT count(*) FROM ice.%s VERSION AS OF 'one'" % t) + c.sql("SELECT count(*) FROM ice.%s.tag_two" % t),
            [(10,), (12,)], "rows of the tags")
    c.refused(lambda: c.sql("INSERT INTO ice.%s.tag_one %s" % (t, spark_rows(0, 1))), "time travel|specific snapshot")
    c.sql("ALTER TABLE ice.%s REPLACE TAG one AS OF VERSION %d" % (t, c.metadata(t)["current-snapshot-id"]),
          "ALTER TABLE ice.%s DROP TAG two" % t)
    c.refs(t, main="branch", one="tag")
    c.equal(c.sql("SELECT count(*) FROM ice.%s VERSION AS OF 'one'" % t), [(12,)], "rows of the moved tag")
    c.holds(t, span(0, 12))


def step_travel(c):
    t = create(c, "travelled", [(0, 10), (10, 20)])
    c.sql("DELETE FROM ice.%s WHERE id < 5" % t)
    shots = c.snapshots(t)
    c.equal([count(c, "%s VERSION AS OF %d" % (t, s["snapshot-id"])) for s in shots], [10, 20, 15], "rows by snapshot")
    c.equal([count(c, "%s TIMESTAMP AS OF %f" % (t, s["timestamp-ms"] / 1000)) for s in shots], [10, 20, 15], "rows by time")
    c.refused(lambda: count(c, "%s TIMESTAMP AS OF 1000000000" % t), "older than|Cannot find a snapshot")
    for s, want in zip(shots, (span(0, 10), span(0, 20), span(5, 20))):
        c.holds(t, want, s["snapshot-id"])
    c.holds(t, span(5, 20))


def step_rollback(c):
    t = create(c, "rolled", [(0, 10), (10, 20), (20, 30)])
    first, second, third = [s["snapshot-id"] for s in c.snapshots(t)]
    c.equal(call(c, "rollback_to_snapshot", t, "snapshot_id => %d" % first), [(third, first)], "rolled back")
    c.holds(t, span(0, 10))
    c.equal(call(c, "set_current_snapshot", t, "snapshot_id => %d" % third), [(first, third)], "set")
    c.holds(t, span(0, 30))
    call(c, "rollback_to_snapshot", t, "snapshot_id => %d" % first)
    c.equal(call(c, "cherrypick_snapshot", t, "snapshot_id => %d" % third)[0][0], third, "picked")
    c.holds(t, span(0, 10) + span(20, 30))
    c.refs(t, main="branch")


def step_schema(c):
    t = create(c, "evolving", [(0, 4)])
    c.sql("ALTER TABLE ice.%s ADD COLUMNS (note STRING COMMENT 'a note', place STRUCT<x: INT, y: INT>, tags ARRAY<STRING>)" % t,
          "ALTER TABLE ice.%s ADD COLUMN place.z DOUBLE" % t, "ALTER TABLE ice.%s RENAME COLUMN name TO title" % t,
          "ALTER TABLE ice.%s ALTER COLUMN id TYPE BIGINT" % t, "ALTER TABLE ice.%s DROP COLUMN score" % t,
          "ALTER TABLE ice.%s ALTER COLUMN note FIRST" % t, "ALTER TABLE ice.%s ADD COLUMN score STRING AFTER id" % t,
          "INSERT INTO ice.%s (id, score, region, title, note, place, tags) VALUES "
          "(4, 'late', 'eu', 't', 'n', named_struct('x', 1, 'y', 2, 'z', 0.5D), array('a', 'b'))" % t)
    fields = c.schema(t)["fields"]
    c.equal([f["name"] for f in fields], ["note", "id", "score", "region", "title", "place", "tags"], "columns")
    c.equal((fields[0].get("doc"), fields[1]["type"]), ("a note", "long"), "note, id")
    c.check(len({f["id"] for f in fields}) == 7 and all(f["id"] != 4 for f in fields), "ids are used again", fields)
    bare = {"note": None, "score": None, "place": None, "tags": None}
    c.holds(t, [{"id": r["id"], "region": r["region"], "title": r["name"], **bare} for r in span(0, 4)] + [
        {"id": 4, "region": "eu", "title": "t", "score": "late", "note": "n", "place": {"x": 1, "y": 2, "z": 0.5}, "tags": ["a", "b"]}])
    c.audited[t] = None
    c.refused(lambda: c.sql("ALTER TABLE ice.%s ALTER COLUMN id TYPE INT" % t), "Cannot|NOT_SUPPORTED")


def step_spec(c):
    t = create(c, "parted", [(0, 12)], more="PARTITIONED BY (region)")
    c.sql("ALTER TABLE ice.%s ADD PARTITION FIELD bucket(4, id) AS shard" % t, "INSERT INTO ice.%s %s" % (t, spark_rows(12, 24)),
          "ALTER TABLE ice.%s REPLACE PARTITION FIELD region WITH truncate(2, name)" % t,
          "INSERT INTO ice.%s %s" % (t, spark_rows(24, 30)), "ALTER TABLE ice.%s DROP PARTITION FIELD shard" % t,
          "INSERT INTO ice.%s %s" % (t, spark_rows(30, 33)), "DELETE FROM ice.%s WHERE id %% 5 = 0" % t)
    c.equal(c.spec(t), [("name", "truncate[2]")], "spec")
    c.equal(len(c.metadata(t)["partition-specs"]), 4, "specs")
    # DuckDB 1.5.5 reads vectors wrongly under several specs.
    c.holds(t, [r for r in span(0, 33) if r["id"] % 5], readers=("pyiceberg",))


def step_properties(c):
    t = create(c, "ordered", [(0, 3)])
    c.sql("ALTER TABLE ice.%s SET TBLPROPERTIES ('a' = '1', 'b' = 'ü', 'comment' = 'c')" % t,
          "ALTER TABLE ice.%s UNSET TBLPROPERTIES ('a')" % t,
          "ALTER TABLE ice.%s WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY region ASC NULLS LAST, bucket(4, id) DESC" % t,
          "INSERT INTO ice.%s %s" % (t, spark_rows(3, 9)))
    m = c.metadata(t)
    c.equal((m["properties"].get("a"), m["properties"]["b"], m["properties"]["comment"], m["properties"]["write.distribution-mode"]),
            (None, "ü", "c", "hash"), "properties")
    order = next(o for o in m["sort-orders"] if o["order-id"] == m["default-sort-order-id"])
    c.equal([(f["transform"], f["direction"], f["null-order"]) for f in order["fields"]],
            [("identity", "asc", "nulls-last"), ("bucket[4]", "desc", "nulls-last")], "order")
    c.sql("ALTER TABLE ice.%s WRITE UNORDERED" % t)
    c.equal(c.metadata(t)["default-sort-order-id"], 0, "order")
    c.holds(t, span(0, 9))


def step_upgrade(c):
    t = create(c, "upgraded", [(0, 20)], props=V2)
    c.sql("DELETE FROM ice.%s WHERE id %% 10 = 3" % t)
    c.version(t, 2)
    c.sql("ALTER TABLE ice.%s SET TBLPROPERTIES ('format-version' = '3')" % t)
    c.version(t, 3)
    c.refused(lambda: c.sql("ALTER TABLE ice.%s SET TBLPROPERTIES ('format-version' = '2')" % t), "downgrade")
    c.sql("DELETE FROM ice.%s WHERE id %% 10 = 4" % t, "INSERT INTO ice.%s %s" % (t, spark_rows(20, 25)))
    c.check(all(n is not None for _, n in c.sql("SELECT id, _row_id FROM ice." + t)), "rows without ids")
    c.holds(t, [r for r in span(0, 25) if r["id"] % 10 not in (3, 4) or r["id"] >= 20])


def step_inspect(c):
    t = create(c, "looked", [(0, 9), (9, 12)], more="PARTITIONED BY (region)")
    c.sql("DELETE FROM ice.%s WHERE id = 0" % t, "ALTER TABLE ice.%s CREATE TAG x" % t)
    c.equal(c.sql("SELECT operation FROM ice.%s.snapshots ORDER BY committed_at" % t), [("append",), ("append",), ("delete",)], "snapshots")
    c.equal(count(c, t + ".history WHERE is_current_ancestor"), 3, "history")
    c.equal(c.sql("SELECT name, type FROM ice.%s.refs ORDER BY name" % t), [("main", "BRANCH"), ("x", "TAG")], "refs")
    c.equal(c.sql("SELECT sum(record_count) FROM ice.%s.data_files" % t), [(12,)], "data files")
    c.equal(c.sql("SELECT partition.region, record_count FROM ice.%s.partitions ORDER BY 1" % t),
            [("ap", 4), ("eu", 4), ("us", 4)], "partitions")
    c.equal(count(c, t + ".delete_files"), 1, "delete files")
    c.equal(count(c, t + ".position_deletes"), 1, "position deletes")
    c.check(count(c, t + ".metadata_log_entries") >= 4, "log of metadata")
    c.equal(count(c, t + ".manifests"), 3, "manifests")
    c.check(count(c, t + ".all_entries") >= count(c, t + ".entries") > 0, "entries")


def step_view(c):
    t = create(c, "seen", [(0, 10)])
    v, w = c.ns + ".view1", c.ns + ".view2"
    c.sql("CREATE VIEW ice.%s (k COMMENT 'key', what) COMMENT 'a view' TBLPROPERTIES ('p' = '1') AS SELECT id, name FROM ice.%s WHERE id > 6"
          % (v, t))
    c.equal(c.sql("SELECT k, what FROM ice.%s ORDER BY k" % v), [(i, row(i)["name"]) for i in range(7, 10)], "rows")
    c.equal([r[1] for r in c.sql("SHOW VIEWS IN ice.%s" % c.ns)], ["view1"], "views")
    c.refused(lambda: c.sql("CREATE VIEW ice.%s AS SELECT 1 AS x" % t), "already exists|ALREADY_EXISTS")
    c.sql("CREATE OR REPLACE VIEW ice.%s AS SELECT count(*) AS n FROM ice.%s" % (v, t))
    c.equal(c.sql("SELECT * FROM ice." + v), [(10,)], "rows after the change")
    c.sql("ALTER VIEW ice.%s SET TBLPROPERTIES ('q' = '2')" % v, "ALTER VIEW ice.%s UNSET TBLPROPERTIES ('q')" % v,
          "ALTER VIEW ice.%s RENAME TO ice.%s" % (v, w))
    got = c.rest.get("/v1/namespaces/%s/views/view2" % c.ns).json["metadata"]
    c.equal(len(got["versions"]), 2, "versions")
    c.equal(got["versions"][-1]["representations"][0]["dialect"], "spark", "dialect")
    c.equal(c.rest.head("/v1/namespaces/%s/views/view1" % c.ns).status, 404, "the old name")
    c.sql("DROP VIEW ice." + w)
    c.equal(c.sql("SHOW VIEWS IN ice.%s" % c.ns), [], "views")


def step_rewrite(c):
    t = create(c, "rewritten", [(a, a + 5) for a in range(0, 30, 5)])
    c.sql("DELETE FROM ice.%s WHERE id %% 5 = 1" % t)
    want = [r for r in span(0, 30) if r["id"] % 5 != 1]
    before = dict(c.sql("SELECT id, _row_id FROM ice." + t))
    files, added = call(c, "rewrite_data_files", t, "options => map('rewrite-all', 'true')")[0][:2]
    c.equal((files, added, count(c, t + ".data_files")), (6, 1, 1), "files rewritten")
    c.equal(c.snapshots(t)[-1]["summary"]["operation"], "replace", "operation")
    c.equal(dict(c.sql("SELECT id, _row_id FROM ice." + t)), before, "row ids")
    c.holds(t, want)
    call(c, "rewrite_data_files", t, "strategy => 'sort', sort_order => 'region,id DESC', options => map('rewrite-all', 'true')")
    c.holds(t, want)
    t = create(c, "rewritten2", [(0, 20)], props=V2)
    c.sql("DELETE FROM ice.%s WHERE id = 3" % t, "DELETE FROM ice.%s WHERE id = 4" % t)
    got = call(c, "rewrite_position_delete_files", t, "options => map('rewrite-all', 'true')")[0]
    c.equal((got[0], got[1], count(c, t + ".delete_files")), (1, 1, 1), "delete files rewritten")
    c.holds(t, [r for r in span(0, 20) if r["id"] not in (3, 4)])


def step_manifests(c):
    t = create(c, "listed", [(0, 5), (5, 10), (10, 15)])
    c.equal(count(c, t + ".manifests"), 3, "manifests")
    c.equal(call(c, "rewrite_manifests", t), [(3, 1)], "rewritten")
    c.equal(count(c, t + ".manifests"), 1, "manifests")
    c.operations(t, "append", "append", "append", "replace")
    c.holds(t, span(0, 15))


def step_expire(c):
    t = create(c, "expired", [(0, 5), (5, 10)])
    c.sql("ALTER TABLE ice.%s CREATE TAG keep" % t, "DELETE FROM ice.%s WHERE id < 5" % t, "INSERT OVERWRITE ice.%s %s" % (t, spark_rows(20, 25)))
    first, tagged, deleted, last = [s["snapshot-id"] for s in c.snapshots(t)]
    lists = {s["snapshot-id"]: s["manifest-list"] for s in c.snapshots(t)}
    got = call(c, "expire_snapshots", t, "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")[0]
    c.equal([s["snapshot-id"] for s in c.snapshots(t)], [tagged, last], "snapshots that stay")
    c.equal({k: os.path.exists(v.partition(":")[2]) for k, v in lists.items()},
            {first: False, tagged: True, deleted: False, last: True}, "lists that stay")
    c.check(got[0] == 0 and got[4] == 2, "deleted files", got)  # the tag holds the data; two lists go
    c.holds(t, span(20, 25))
    c.holds(t, span(0, 10), tagged)
    # Now without the tag.
    c.sql("ALTER TABLE ice.%s DROP TAG keep" % t)
    got = call(c, "expire_snapshots", t, "older_than => TIMESTAMP '2100-01-01 00:00:00'")[0]
    c.check(got[0] == 2 and got[4] == 1, "deleted files", got)
    c.equal([s["snapshot-id"] for s in c.snapshots(t)], [last], "snapshots that stay")
    c.holds(t, span(20, 25))


def step_orphans(c):
    """All of the table's files are old; what no metadata names goes, and nothing else."""
    t = create(c, "orphaned", [(0, 5), (5, 10)])
    c.sql("DELETE FROM ice.%s WHERE id = 3" % t, "ALTER TABLE ice.%s SET TBLPROPERTIES ('a' = 'b')" % t)
    at = c.metadata(t)["location"]
    planted = "/" + at.partition(":")[2].lstrip("/") + "/data/planted.parquet"
    open(planted, "w").close()
    old = c.files(at)
    then = time.time() - 10 * 86400
    for f in old:
        os.utime(f, (then, then))
    got = call(c, "remove_orphan_files", t)
    c.equal([r[0].rpartition("/")[2] for r in got], ["planted.parquet"], "orphans")
    c.equal(sorted(set(old) - set(c.files(at))), [planted], "files removed")
    c.sql("INSERT INTO ice.%s %s" % (t, spark_rows(10, 12)))
    c.holds(t, [r for r in span(0, 12) if r["id"] != 3])


def step_statistics(c):
    t = create(c, "counted", [(0, 20)], more="PARTITIONED BY (region)")
    path = call(c, "compute_table_stats", t, "columns => array('id', 'region')")[0][0]
    m = c.metadata(t)
    c.equal([(s["statistics-path"], s["snapshot-id"]) for s in m["statistics"]], [(path, m["current-snapshot-id"])], "statistics")
    ndv = {b["fields"][0]: b["properties"]["ndv"] for b in m["statistics"][0]["blob-metadata"]}
    c.equal(sorted(ndv.values(), key=int), ["3", "20"], "distinct values")
    path = call(c, "compute_partition_stats", t)[0][0]
    c.equal([s["statistics-path"] for s in c.metadata(t)["partition-statistics"]], [path], "statistics of partitions")
    c.sql("INSERT INTO ice.%s %s" % (t, spark_rows(20, 22)))
    c.holds(t, span(0, 22))


def step_conflict(c):
    """Statements at the same time: appends are retried until all are in; changes of the same rows are not both done."""
    t = create(c, "raced", [(0, 10)])
    texts = ["INSERT INTO ice.%s %s" % (t, spark_rows(a, a + 2)) for a in (10, 12, 14, 16)]
    c.equal(c.engine.ask("together", texts=texts), [None] * 4, "appends at once")
    c.operations(t, *["append"] * 5)
    c.holds(t, span(0, 18))
    said = c.engine.ask("together", texts=["UPDATE ice.%s SET score = score + 100" % t] * 2)
    lost = [x for x in said if x]
    c.check(all("ValidationException" in x or "CommitFailed" in x or "conflicting" in x.lower() for x in lost), "refused with", lost)
    c.check(len(lost) < 2, "both were refused", lost)
    c.holds(t, [{**r, "score": r["score"] + 100 * (2 - len(lost))} for r in span(0, 18)])


def step_register(c):
    t = create(c, "enrolled", [(0, 10)])
    c.sql("DELETE FROM ice.%s WHERE id = 3" % t)
    before, location = c.metadata(t), c.location(t)
    c.sql("DROP TABLE ice." + t)
    got = call(c, "register_table", "%s.in1.again" % c.ns, "metadata_file => '%s'" % location)
    c.equal((got[0][0], got[0][1]), (before["current-snapshot-id"], 10), "registered")  # records of data files
    t = c.ns + ".in1.again"
    c.equal(c.metadata(t)["table-uuid"], before["table-uuid"], "uuid")
    c.sql("INSERT INTO ice.%s %s" % (t, spark_rows(10, 12)))
    c.holds(t, [r for r in span(0, 12) if r["id"] != 3])


def step_purge(c):
    t = create(c, "purged", [(0, 10), (10, 20)])
    c.sql("DELETE FROM ice.%s WHERE id = 3" % t)
    at = c.metadata(t)["location"]
    c.equal(len([f for f in c.files(at) if f.endswith(".parquet")]), 2, "data files")
    c.sql("DROP TABLE ice.%s PURGE" % t)
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)
