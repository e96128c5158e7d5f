"""Flink's SQL in batch mode over Iceberg's connector."""

from catalog_suite import span

ALWAYS = ("namespace",)
COLUMNS = "(id INT, region STRING, name STRING, score DOUBLE)"


def values(rows):
    return "VALUES " + ", ".join("(%d, '%s', '%s', CAST(%r AS DOUBLE))" % (r["id"], r["region"], r["name"], r["score"]) for r in rows)


def q(table):
    namespace, _, name = table.rpartition(".")
    return "ice.`%s`.`%s`" % (namespace, name)


def create(c, name, batches=(), more="", **properties):
    t = "%s.%s" % (c.ns, name)
    c.sql("CREATE TABLE %s %s %s WITH (%s)" % (q(t), COLUMNS, more, ", ".join("'%s' = '%s'" % x for x in {"format-version": 2, **properties}.items())),
          *["INSERT INTO %s %s" % (q(t), values(rows)) for rows in batches])
    return t


def step_namespace(c):
    c.sql("CREATE DATABASE ice.`%s`" % c.ns, "CREATE DATABASE ice.`%s.in1`" % c.ns, "CREATE DATABASE IF NOT EXISTS ice.`%s`" % c.ns)
    c.refused(lambda: c.sql("CREATE DATABASE ice.`%s`" % c.ns), "already exists|Could not execute")
    c.sql("ALTER DATABASE ice.`%s` SET ('more' = '1')" % c.ns)
    c.equal(c.rest.get("/v1/namespaces/" + c.ns).json["properties"].get("more"), "1", "property")
    c.sql("DROP DATABASE ice.`%s.in1`" % c.ns)
    c.check((c.ns,) in c.sql("SHOW DATABASES FROM ice"), "databases")


def step_table(c):
    t = create(c, "first", [span(0, 5)])
    c.refused(lambda: create(c, "first"), "already exists|Could not execute")
    c.sql("ALTER TABLE %s RENAME TO %s" % (q(t), "`second`"))
    c.check(not c.there(t), "the old name is there")
    t = c.ns + ".second"
    c.equal(c.sql("SHOW TABLES FROM ice.`%s`" % c.ns), [("second",)], "tables")
    c.holds(t, span(0, 5))
    c.sql("DROP TABLE " + q(t))
    c.check(not c.there(t), "dropped, and there")


def step_ctas(c):
    t, u = create(c, "source", [span(0, 9)]), c.ns + ".ctas"
    c.sql("CREATE TABLE %s WITH ('format-version' = '2') AS SELECT * FROM %s" % (q(u), q(t)))
    c.holds(u, span(0, 9))


def step_insert(c):
    t = create(c, "inserted", [span(0, 10), span(10, 12)])
    c.operations(t, "append", "append")
    c.holds(t, span(0, 12))


def step_overwrite(c):
    t = create(c, "overwritten", [span(0, 9)], more="PARTITIONED BY (region)")
    c.sql("INSERT OVERWRITE %s %s" % (q(t), values([r for r in span(30, 36) if r["region"] == "eu"])))
    c.operations(t, "append", "overwrite")
    c.holds(t, [r for r in span(0, 9) if r["region"] != "eu"] + [r for r in span(30, 36) if r["region"] == "eu"])


def step_delete(c):
    t = create(c, "deleted", [span(0, 9)])
    c.sql("DELETE FROM %s WHERE id = 3" % q(t))
    c.holds(t, [r for r in span(0, 9) if r["id"] != 3])


def step_update(c):
    t = create(c, "updated", [span(0, 9)])
    c.sql("UPDATE %s SET name = 'x' WHERE id = 3" % q(t))


def step_read(c):
    c.reads_base(False)


def step_v3(c):
    t = create(c, "v3", [span(0, 10), span(10, 12)], **{"format-version": 3})
    c.version(t, 3)
    got = c.suite.engines["duckdb"].read(t, True)
    c.equal(sorted(r["_row_id"] for r in got), list(range(12)), "row ids by DuckDB")
    c.holds(t, span(0, 12))


def step_branch(c):
    """It writes into branches that are there."""
    t = create(c, "branched", [span(0, 10)])
    m = c.metadata(t)
    c.equal(c.rest.call("POST", c.path(t), {"requirements": [], "updates": [
        {"action": "set-snapshot-ref", "ref-name": "side", "type": "branch", "snapshot-id": m["current-snapshot-id"]}]}).status, 200, "branch")
    c.sql("INSERT INTO %s /*+ OPTIONS('branch'='side') */ %s" % (q(t), values(span(10, 12))))
    c.equal(len(c.sql("SELECT * FROM %s /*+ OPTIONS('branch'='side') */" % q(t))), 12, "rows of the branch")
    c.holds(t, span(0, 12), c.metadata(t)["refs"]["side"]["snapshot-id"])
    c.holds(t, span(0, 10))


def step_tag(c):
    t = create(c, "tagged", [span(0, 10)])
    m = c.metadata(t)
    c.equal(c.rest.call("POST", c.path(t), {"requirements": [], "updates": [
        {"action": "set-snapshot-ref", "ref-name": "one", "type": "tag", "snapshot-id": m["current-snapshot-id"]}]}).status, 200, "tag")
    c.sql("INSERT INTO %s %s" % (q(t), values(span(10, 12))))
    c.equal(len(c.sql("SELECT * FROM %s /*+ OPTIONS('tag'='one') */" % q(t))), 10, "rows of the tag")
    c.holds(t, span(0, 12))


def step_travel(c):
    t = create(c, "travelled", [span(0, 10), span(10, 12)])
    shots = c.snapshots(t)
    c.equal([len(c.sql("SELECT * FROM %s /*+ OPTIONS('snapshot-id'='%d') */" % (q(t), s["snapshot-id"]))) for s in shots], [10, 12], "by snapshot")
    c.equal([len(c.sql("SELECT * FROM %s /*+ OPTIONS('as-of-timestamp'='%d') */" % (q(t), s["timestamp-ms"]))) for s in shots], [10, 12], "by time")
    c.holds(t, span(0, 12))


def step_schema(c):
    t = create(c, "evolving", [span(0, 3)])
    c.sql("ALTER TABLE %s ADD (note STRING COMMENT 'a note')" % q(t), "ALTER TABLE %s RENAME name TO title" % q(t),
          "ALTER TABLE %s MODIFY (id BIGINT)" % q(t), "ALTER TABLE %s DROP score" % q(t))
    c.sql("INSERT INTO %s VALUES (CAST(4 AS BIGINT), 'eu', 't', 'n')" % q(t))
    c.equal([(f["name"], f["type"]) for f in c.schema(t)["fields"]], [("id", "long"), ("region", "string"), ("title", "string"), ("note", "string")],
            "columns")
    c.holds(t, [{"id": r["id"], "region": r["region"], "title": r["name"], "note": None} for r in span(0, 3)] + [
        {"id": 4, "region": "eu", "title": "t", "note": "n"}])
    c.audited[t] = None


def step_properties(c):
    t = create(c, "ordered", [span(0, 3)], a=1)
    c.sql("ALTER TABLE %s SET ('b' = 'ü')" % q(t), "ALTER TABLE %s RESET ('a')" % q(t))
    m = c.metadata(t)
    c.equal((m["properties"].get("a"), m["properties"]["b"]), (None, "ü"), "properties")
    c.holds(t, span(0, 3))


def step_upgrade(c):
    t = create(c, "upgraded", [span(0, 5)])
    c.sql("ALTER TABLE %s SET ('format-version' = '3')" % q(t))
    c.version(t, 3)
    c.sql("INSERT INTO %s %s" % (q(t), values(span(5, 8))))
    c.holds(t, span(0, 8))


def step_inspect(c):
    t = create(c, "looked", [span(0, 9), span(9, 12)])
    tables = ["ice.`%s`.`looked$%s`" % (c.ns, x) for x in ("snapshots", "history", "refs", "manifests", "data_files")]
    c.equal([len(c.sql("SELECT 1 FROM " + x)) for x in tables], [2, 2, 1, 2, 2], "metadata tables")


def step_view(c):
    t = create(c, "seen", [span(0, 3)])
    c.sql("CREATE VIEW ice.`%s`.view1 AS SELECT id FROM %s" % (c.ns, q(t)))
    c.equal(len(c.sql("SELECT * FROM ice.`%s`.view1" % c.ns)), 3, "rows")


def step_purge(c):
    t = create(c, "purged", [span(0, 5)])
    at = c.metadata(t)["location"]
    c.sql("DROP TABLE " + q(t))
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)
