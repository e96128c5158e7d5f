"""iceberg-go: the library's calls, one an operation (go/main.go)."""

import os
import time

from catalog_suite import row, span

ALWAYS = ("namespace",)
REFS = {"write.delete.mode": "merge-on-read"}


def create(c, name, batches=(), spec=(), **properties):
    t = "%s.%s" % (c.ns, name)
    c.engine.ask("create", table=t, spec=spec, properties=properties)
    for rows in batches:
        c.engine.ask("append", table=t, rows=rows)
    return t


def step_namespace(c):
    names, there, properties = c.engine.ask("namespace", name=c.ns)
    c.equal((names, there), ([[c.ns, "in1"]], True), "namespaces")
    c.equal((properties.get("kind"), properties.get("note"), properties.get("more")), ("tests", None, "1"), "properties")


def step_table(c):
    t = create(c, "first", [span(0, 5)])
    c.equal(c.engine.ask("create", table=t), "exists", "created again")
    c.equal(c.engine.ask("rename", table=t, to=c.ns + ".in1.second"), True, "the new name")
    c.equal(c.engine.ask("list", name=c.ns + ".in1"), [[c.ns, "in1", "second"]], "tables")
    t = c.ns + ".in1.second"
    c.holds(t, span(0, 5))
    c.engine.ask("drop", table=t)
    c.check(not c.there(t), "dropped, and there")


def step_insert(c):
    t = create(c, "inserted", [span(0, 10), span(10, 12)])
    c.operations(t, "append", "append")
    c.equal([s["summary"]["total-records"] for s in c.snapshots(t)], ["10", "12"], "totals")
    c.holds(t, span(0, 12))


def step_overwrite(c):
    t = create(c, "overwritten", [span(0, 30)])
    c.engine.ask("overwrite", table=t, rows=[row(100, "x", "eu")], filter="region = eu")
    c.operations(t, "append", "overwrite")
    c.holds(t, [r for r in span(0, 30) if r["region"] != "eu"] + [row(100, "x", "eu")])


def step_delete(c):
    t = create(c, "deleted", [span(0, 20), span(20, 40)])
    c.engine.ask("delete", table=t, filter="id >= 20")
    c.engine.ask("delete", table=t, filter="id = 7")
    c.holds(t, [r for r in span(0, 20) if r["id"] != 7])
    t = create(c, "deleted2", [span(0, 20)], **REFS)
    for text in ("id = 3", "id = 4"):
        c.engine.ask("delete", table=t, filter=text)
    c.holds(t, [r for r in span(0, 20) if r["id"] not in (3, 4)])


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)


def step_v3(c):
    t = create(c, "v3", [span(0, 20), span(20, 40)], **{"format-version": "3"}, **REFS)
    before = {r["id"]: r["_row_id"] for r in c.engine.read(t, True)}
    for text in ("id = 3", "id = 23", "id = 4"):
        c.engine.ask("delete", table=t, filter=text)
    want = [r for r in span(0, 40) if r["id"] not in (3, 4, 23)]
    c.equal({r["id"]: r["_row_id"] for r in c.suite.engines["duckdb"].read(t, True)},
            {k: v for k, v in before.items() if k not in (3, 4, 23)}, "row ids by DuckDB")
    c.version(t, 3)
    c.holds(t, want)


def step_branch(c):
    t = create(c, "branched", [span(0, 10)])
    c.engine.ask("branch", table=t, ref="side")
    c.engine.ask("append", table=t, ref="side", rows=span(10, 15))
    c.refs(t, main="branch", side="branch")
    c.holds(t, span(0, 15), c.metadata(t)["refs"]["side"]["snapshot-id"])
    c.holds(t, span(0, 10))
    got = c.engine.ask("read", table=t, ref="side")["rows"]
    c.equal(sorted(r["id"] for r in got), list(range(15)), "rows of the branch")
    c.engine.ask("branch", table=t, ref="main", snapshot=c.metadata(t)["refs"]["side"]["snapshot-id"])
    c.engine.ask("drop-ref", table=t, ref="side")
    c.refs(t, main="branch")
    c.holds(t, span(0, 15))


def step_tag(c):
    t = create(c, "tagged", [span(0, 10)])
    c.engine.ask("tag", table=t, ref="one")
    c.engine.ask("tag", table=t, ref="two")
    c.engine.ask("append", table=t, rows=span(10, 12))
    c.engine.ask("drop-ref", table=t, ref="two")
    c.refs(t, main="branch", one="tag")
    c.equal(c.metadata(t)["refs"]["one"]["max-ref-age-ms"], 86400000, "retention")
    c.equal(len(c.engine.ask("read", table=t, ref="one")["rows"]), 10, "rows of the tag")
    c.holds(t, span(0, 12))


def step_travel(c):
    t = create(c, "travelled", [span(0, 10), span(10, 20)])
    c.engine.ask("delete", table=t, filter="id < 5")
    c.equal([len(c.engine.read(t, False, s["snapshot-id"])) for s in c.snapshots(t)], [10, 20, 15], "rows by snapshot")
    c.equal(c.engine.ask("as-of", table=t), [10, 20, 15], "rows by time")
    c.holds(t, span(5, 20))


def step_rollback(c):
    t = create(c, "rolled", [span(0, 10), span(10, 20)])
    first = c.snapshots(t)[0]["snapshot-id"]
    c.engine.ask("rollback", table=t, snapshot=first)
    c.equal(c.metadata(t)["current-snapshot-id"], first, "current snapshot")
    c.holds(t, span(0, 10))


def step_schema(c):
    t = create(c, "evolving", [span(0, 4)])
    c.engine.ask("schema", table=t)
    c.engine.ask("append", table=t, rows=[{"note": "n", "id": 4, "region": "eu", "title": "t"}])
    fields = c.schema(t)["fields"]
    c.equal([(f["name"], f["type"]) for f in fields], [("note", "string"), ("id", "long"), ("region", "string"), ("title", "string")], "columns")
    c.holds(t, [{"note": None, "id": r["id"], "region": r["region"], "title": r["name"]} for r in span(0, 4)] + [
        {"note": "n", "id": 4, "region": "eu", "title": "t"}])
    c.audited[t] = None
    c.refused(lambda: c.engine.ask("narrow", table=t), "cannot|invalid|promot")


def step_spec(c):
    t = create(c, "parted", [span(0, 12)], spec=[["region", "identity"]])
    c.engine.ask("spec", table=t, removals=["p_region"], spec=[["id", "bucket[4]"], ["name", "truncate[2]"]])
    c.engine.ask("append", table=t, rows=span(12, 24))
    c.equal(c.spec(t), [("id", "bucket[4]"), ("name", "truncate[2]")], "spec")
    c.holds(t, span(0, 24))


def step_properties(c):
    t = create(c, "ordered", [span(0, 3)], a="1")
    c.engine.ask("properties", table=t, properties={"b": "ü"}, removals=["a"])
    m = c.metadata(t)
    c.equal((m["properties"].get("a"), m["properties"]["b"]), (None, "ü"), "properties")
    order = next(o for o in m["sort-orders"] if o["order-id"] == m["default-sort-order-id"])
    c.equal([(f["transform"], f["direction"], f["null-order"]) for f in order["fields"]],
            [("identity", "asc", "nulls-last"), ("bucket[4]", "desc", "nulls-last")], "order")
    c.holds(t, span(0, 3))


def step_upgrade(c):
    t = create(c, "upgraded", [span(0, 20)], **{"format-version": "2"}, **REFS)
    c.engine.ask("delete", table=t, filter="id = 3")
    c.engine.ask("upgrade", table=t, version=3)
    c.version(t, 3)
    c.engine.ask("append", table=t, rows=span(20, 25))
    c.engine.ask("delete", table=t, filter="id = 4")
    c.holds(t, [r for r in span(0, 25) if r["id"] not in (3, 4)])


def step_inspect(c):
    t = create(c, "looked", [span(0, 9), span(9, 12)], **REFS)
    c.engine.ask("delete", table=t, filter="id = 0")
    c.engine.ask("tag", table=t, ref="x")
    c.equal(c.engine.ask("inspect", table=t), {"snapshots": 3, "history": 3, "refs": 2, "files": 2, "delete files": 1, "manifests": 3,
                                              "entries": 3, "partitions": 1, "position deletes": 1}, "metadata tables")


def step_view(c):
    got = c.engine.ask("view", table=c.ns + ".view1", sql="SELECT 1 AS x")
    c.equal(got, ["SELECT 1 AS x", "SELECT 2 AS x", [[c.ns, "view2"]], False], "views")


def step_rewrite(c):
    t = create(c, "rewritten", [span(a, a + 5) for a in range(0, 30, 5)])
    c.equal(c.engine.ask("rewrite", table=t), [6, 1], "files")
    c.equal(c.snapshots(t)[-1]["summary"]["operation"], "replace", "operation")
    c.holds(t, span(0, 30))


def step_manifests(c):
    t = create(c, "listed", [span(0, 5), span(5, 10), span(10, 15)])
    c.equal(c.engine.ask("manifests", table=t), [3, 1], "rewritten")
    c.operations(t, "append", "append", "append", "replace")
    c.holds(t, span(0, 15))


def step_expire(c):
    t = create(c, "expired", [span(0, 5), span(5, 10), span(10, 15)])
    first, second, third = [s["snapshot-id"] for s in c.snapshots(t)]
    c.engine.ask("tag", table=t, ref="keep", snapshot=second)
    c.engine.ask("expire", table=t)
    c.equal([s["snapshot-id"] for s in c.snapshots(t)], [second, third], "snapshots that stay")
    c.holds(t, span(0, 10), second)
    c.holds(t, span(0, 15))


def step_orphans(c):
    t = create(c, "orphaned", [span(0, 5), span(5, 10)], **REFS)
    c.engine.ask("delete", table=t, filter="id = 3")
    at = c.metadata(t)["location"]
    planted = "/" + at.partition(":")[2].lstrip("/") + "/data/planted.parquet"
    open(planted, "w").close()
    old = c.files(at)
    then = time.time() - 10 * 86400
    for f in old:
        os.utime(f, (then, then))
    c.engine.ask("orphans", table=t)
    c.equal(sorted(set(old) - set(c.files(at))), [planted], "files removed")
    c.holds(t, [r for r in span(0, 10) if r["id"] != 3])


def step_statistics(c):
    t = create(c, "counted", [span(0, 5)])
    c.engine.ask("statistics", table=t)
    c.equal([b["properties"] for s in c.metadata(t)["statistics"] for b in s["blob-metadata"]], [{"ndv": "5"}], "statistics")


def step_transaction(c):
    t = create(c, "together", [span(0, 5)])
    before = c.location(t)
    c.engine.ask("transaction", table=t, rows=span(5, 8), filter="id = 1")
    c.equal(c.metadata(t)["metadata-log"][-1]["metadata-file"], before, "more than one commit: the file before")
    c.equal(c.metadata(t)["properties"].get("a"), "b", "property")
    c.holds(t, [r for r in span(0, 8) if r["id"] != 1])


def step_tables(c):
    """Both or neither."""
    t, u = create(c, "pair1", [span(0, 5)]), create(c, "pair2", [span(0, 5)])
    c.engine.ask("tables", tables=[t, u], rows=span(5, 8))
    c.holds(t, span(0, 8))
    c.holds(u, span(0, 8))
    at = c.location(t)
    c.refused(lambda: c.engine.ask("tables", tables=[t, u], rows=span(20, 22), ref="between", more=span(30, 31)), "(?i)conflict|requirement|failed")
    c.equal(c.location(t), at, "metadata after a transaction that was refused")
    c.holds(u, span(0, 8) + span(30, 31))


def step_conflict(c):
    t = create(c, "raced", [span(0, 10)])
    appended, deleted = c.engine.ask("conflict", table=t, rows=span(10, 12), more=span(12, 14))
    c.holds(t, [r for r in span(0, 14 if appended else 12) if r["id"] != 1 and (r["id"] != 2 or not deleted)])


def step_register(c):
    t = create(c, "enrolled", [span(0, 10)])
    uuid, location = c.metadata(t)["table-uuid"], c.location(t)
    c.engine.ask("drop", table=t)
    t = c.ns + ".in1.again"
    c.engine.ask("register", table=t, location=location)
    c.equal(c.metadata(t)["table-uuid"], uuid, "uuid")
    c.engine.ask("append", table=t, rows=span(10, 12))
    c.holds(t, span(0, 12))


def step_purge(c):
    t = create(c, "purged", [span(0, 10)])
    at = c.metadata(t)["location"]
    c.engine.ask("drop", table=t, purge=True)
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)
