"""iceberg-rust as its crates bring it: the calls of its REST catalog, its Parquet writer and its transactions (rust/src/engine.rs)."""

import auditor
import frazil
from catalog_suite import span

ALWAYS = ("namespace",)


def create(c, name, batches=(), **properties):
    t = "%s.%s" % (c.ns, name)
    c.engine.ask("create", table=t, properties=properties)
    for rows in batches:
        c.engine.ask("append", table=t, rows=rows)
    return t


def step_namespace(c):
    again, gone, names, properties = c.engine.ask("namespace", name=c.ns)
    c.equal((again, gone, names), ("NamespaceAlreadyExists", True, [[c.ns, "in1"]]), "namespaces")
    c.equal(properties.get("note"), "ü", "property")


def step_table(c):
    t = create(c, "first", [span(0, 5)])
    c.equal(c.engine.ask("create", table=t), "exists", "created again")
    c.equal(c.engine.ask("rename", table=t, to=c.ns + ".in1.second"), True, "the new name")
    c.equal(c.engine.ask("list", name=c.ns + ".in1"), ["second"], "tables")
    t = c.ns + ".in1.second"
    c.holds(t, span(0, 5))
    c.engine.ask("drop", table=t)
    c.check(not c.there(t), "dropped, and there")


def step_insert(c):
    t = create(c, "inserted", [span(0, 10), span(10, 12)])
    c.operations(t, "append", "append")
    c.equal([s["summary"]["total-records"] for s in c.snapshots(t)], ["10", "12"], "totals")
    c.holds(t, span(0, 12))


def step_read(c):
    c.reads_base(False)


def step_v3(c):
    """Appends, the second one behind a worker's vector: the rows have the ids that the catalog counts."""
    t = create(c, "v3", [span(0, 20)], **{"format-version": "3"})
    c.version(t, 3)
    gone = next(r for r in auditor.raw_rows(c.suite.uri, t) if r["id"] == 7)
    with frazil.Client(c.suite.rpc) as client:
        client.commit_once(t, kind="DELETE", deletes=[(gone["path"], [gone["pos"]])], read_snapshot_id=c.metadata(t)["current-snapshot-id"])
    c.engine.ask("append", table=t, rows=span(20, 24))
    want = [r for r in span(0, 24) if r["id"] != 7]
    c.equal({r["id"]: r["_row_id"] for r in c.suite.engines["duckdb"].read(t, True)}, {r["id"]: r["id"] for r in want}, "row ids by DuckDB")
    c.holds(t, want)


def step_travel(c):
    t = create(c, "travelled", [span(0, 10), span(10, 20)])
    for s, want in zip(c.snapshots(t), (span(0, 10), span(0, 20))):
        c.same(c.engine.read(t, False, s["snapshot-id"]), want, "rows of a snapshot")
    c.holds(t, span(0, 20))


def step_schema(c):
    t = create(c, "evolving", [span(0, 4)])
    c.engine.ask("change", table=t, add="note", remove="score")
    c.engine.ask("append", table=t, rows=[{"id": 4, "region": "eu", "name": "t", "note": 7}])
    c.equal([(f["name"], f["type"]) for f in c.schema(t)["fields"]],
            [("id", "int"), ("region", "string"), ("name", "string"), ("note", "long")], "columns")
    c.holds(t, [{"id": r["id"], "region": r["region"], "name": r["name"], "note": None} for r in span(0, 4)] + [
        {"id": 4, "region": "eu", "name": "t", "note": 7}])
    c.audited[t] = None


def step_properties(c):
    t = create(c, "ordered", [span(0, 3)], a="1")
    c.engine.ask("change", table=t, set={"b": "ü"}, unset=["a"], order="id")
    m = c.metadata(t)
    c.equal((m["properties"].get("a"), m["properties"]["b"]), (None, "ü"), "properties")
    order = next(o for o in m["sort-orders"] if o["order-id"] == m["default-sort-order-id"])
    c.equal([(f["transform"], f["direction"], f["null-order"]) for f in order["fields"]], [("identity", "desc", "nulls-last")], "order")
    c.holds(t, span(0, 3))


def step_upgrade(c):
    t = create(c, "upgraded", [span(0, 20)])
    c.engine.ask("change", table=t, version=3)
    c.version(t, 3)
    c.engine.ask("append", table=t, rows=span(20, 25))
    c.holds(t, span(0, 25))


def step_inspect(c):
    t = create(c, "looked", [span(0, 9), span(9, 12)])
    c.equal(c.engine.ask("inspect", table=t), {"snapshots": 2, "manifests": 2}, "metadata tables")


def step_expire(c):
    t = create(c, "expired", [span(0, 5), span(5, 10), span(10, 15)])
    last = [s["snapshot-id"] for s in c.snapshots(t)][-1]
    c.engine.ask("change", table=t, expire=1)
    c.equal([s["snapshot-id"] for s in c.snapshots(t)], [last], "snapshots that stay")
    c.holds(t, span(0, 15))


def step_statistics(c):
    t = create(c, "counted", [span(0, 5)])
    c.engine.ask("statistics", table=t)
    c.equal([b["properties"] for s in c.metadata(t)["statistics"] for b in s["blob-metadata"]], [{"ndv": "5"}], "statistics")


def step_transaction(c):
    t = create(c, "together", [span(0, 5)])
    before = c.location(t)
    c.engine.ask("change", table=t, rows=span(5, 8), set={"a": "b"}, order="id")
    c.equal(c.metadata(t)["metadata-log"][-1]["metadata-file"], before, "more than one commit: the file before")
    c.equal(c.metadata(t)["properties"].get("a"), "b", "property")
    c.holds(t, span(0, 8))


def step_conflict(c):
    t = create(c, "raced", [span(0, 10)])
    c.engine.ask("conflict", table=t, rows=span(12, 14), more=span(10, 12))
    c.operations(t, "append", "append", "append")
    c.holds(t, span(0, 14))


def step_register(c):
    t = create(c, "enrolled", [span(0, 10)])
    uuid, location = c.metadata(t)["table-uuid"], c.location(t)
    c.engine.ask("drop", table=t)
    t = c.ns + ".in1.again"
    c.equal(c.engine.ask("register", table=t, location=location), uuid, "uuid")
    c.engine.ask("append", table=t, rows=span(10, 12))
    c.holds(t, span(0, 12))


def step_purge(c):
    t = create(c, "purged", [span(0, 10)])
    at = c.metadata(t)["location"]
    c.engine.ask("purge", table=t)
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)
