"""PyIceberg: its catalog, its transactions, its own writer of Parquet. It writes no files of version 3, so that tables
are of version 2 where nothing else is said.
"""

import os

from catalog_suite import row, span

ALWAYS = ("namespace",)
SCHEMA = """
schema = pa.schema([("id", pa.int32()), ("region", pa.string()), ("name", pa.string()), ("score", pa.float64())])
"""
APPEND = "t.append(pa.Table.from_pylist(rows, schema=t.schema().as_arrow()))\n"


def create(c, name, rows=(), **properties):
    """ns.name with the rows of each append."""
    t = "%s.%s" % (c.ns, name)
    c.run(SCHEMA + """
t = catalog.create_table(name, schema=schema, properties=properties)
for rows in batches: """ + APPEND, name=t, properties=properties, batches=list(rows))
    return t


def work(c, t, text, **given):
    return c.run("t = table(name)\n" + text, name=t, **given)


def rows_of(rows):
    return sorted(rows, key=lambda r: r["id"])


def step_namespace(c):
    got = c.run("""
catalog.create_namespace(ns, {"kind": "tests", "note": "ü"})
for x in ("in1", "in2"): catalog.create_namespace((ns, x))
from pyiceberg.exceptions import *
said = []
for kind, f in ((NamespaceAlreadyExistsError, lambda: catalog.create_namespace(ns)), (NamespaceNotEmptyError, lambda: catalog.drop_namespace(ns)),
                (NoSuchNamespaceError, lambda: catalog.drop_namespace("absent_" + ns))):
    try: f()
    except kind as e: said.append(kind.__name__)
catalog.update_namespace_properties(ns, removals={"note"}, updates={"more": "1"})
catalog.drop_namespace((ns, "in2"))
p = catalog.load_namespace_properties(ns)
result = [said, sorted(map(list, catalog.list_namespaces(ns))), catalog.namespace_exists(ns), catalog.namespace_exists((ns, "in2")),
          p.get("kind"), p.get("note"), p.get("more")]""")
    c.equal(got, [["NamespaceAlreadyExistsError", "NamespaceNotEmptyError", "NoSuchNamespaceError"], [[c.ns, "in1"]], True, False,
                  "tests", None, "1"], "answers")


def step_table(c):
    t = create(c, "first", [span(0, 5)])
    got = c.run(SCHEMA + """
from pyiceberg.exceptions import *
said = []
for kind, f in ((TableAlreadyExistsError, lambda: catalog.create_table(name, schema=schema)), (NoSuchTableError, lambda: table(ns + ".absent")),
                (NoSuchNamespaceError, lambda: catalog.create_table(ns + ".absent.t", schema=schema))):
    try: f()
    except kind as e: said.append(kind.__name__)
catalog.rename_table(name, (ns, "in1", "second"))
result = [said, catalog.table_exists(name), sorted(map(list, catalog.list_tables((ns, "in1"))))]""", name=t)
    c.equal(got, [["TableAlreadyExistsError", "NoSuchTableError", "NoSuchNamespaceError"], False, [[c.ns, "in1", "second"]]], "answers")
    c.holds(c.ns + ".in1.second", span(0, 5))
    c.run('catalog.drop_table((ns, "in1", "second"))')
    c.check(not c.there(c.ns + ".in1.second"), "dropped, and there")


def step_ctas(c):
    """A table that begins with its rows: created in a transaction."""
    t = c.ns + ".created"
    c.run(SCHEMA + """
with catalog.create_table_transaction(name, schema=schema) as tx:
    tx.append(pa.Table.from_pylist(rows, schema=schema))
    tx.set_properties(a="b")""", name=t, rows=span(0, 9))
    c.operations(t, "append")
    c.equal(c.metadata(t)["properties"].get("a"), "b", "property")
    c.holds(t, span(0, 9))


def step_insert(c):
    t = create(c, "inserted", [span(0, 10), span(10, 12)])
    c.operations(t, "append", "append")
    c.equal([s["summary"]["total-records"] for s in c.snapshots(t)], ["10", "12"], "totals")
    c.holds(t, span(0, 12))


def step_overwrite(c):
    t = create(c, "overwritten", [span(0, 30)])
    work(c, t, 't.overwrite(pa.Table.from_pylist(rows, schema=t.schema().as_arrow()), expr.EqualTo("region", "eu"))', rows=[row(100, "x", "eu")])
    c.holds(t, [r for r in span(0, 30) if r["region"] != "eu"] + [row(100, "x", "eu")])
    t = c.ns + ".overwritten2"
    c.run(SCHEMA + """
t = catalog.create_table(name, schema=schema)
with t.update_spec() as u: u.add_identity("region")
""" + APPEND + """
t.dynamic_partition_overwrite(pa.Table.from_pylist(more, schema=t.schema().as_arrow()))""", name=t, rows=span(0, 30), more=[row(101, "y", "us")])
    c.operations(t, "append", "delete", "append")
    c.holds(t, [r for r in span(0, 30) if r["region"] != "us"] + [row(101, "y", "us")])


def step_delete(c):
    t = create(c, "deleted", [span(0, 20), span(20, 40)])
    work(c, t, 't.delete(expr.GreaterThanOrEqual("id", 20)); t.delete("id = 7 or region = \'ap\'")')
    c.operations(t, "append", "append", "delete", "overwrite")
    c.holds(t, [r for r in span(0, 20) if r["id"] != 7 and r["region"] != "ap"])


def step_merge(c):
    t = create(c, "merged", [span(0, 20)])
    got = work(c, t, """
u = t.upsert(pa.Table.from_pylist(rows, schema=t.schema().as_arrow()), join_cols=["id"])
result = [u.rows_updated, u.rows_inserted]""", rows=[row(3, "changed"), row(4), row(50, "new")])
    c.equal(got, [1, 1], "updated, inserted")
    c.holds(t, [row(3, "changed") if r["id"] == 3 else r for r in span(0, 20)] + [row(50, "new")])


def step_v3(c):
    t = create(c, "v3", **{"format-version": "3"})
    c.version(t, 3)
    work(c, t, APPEND, rows=span(0, 5))


def step_branch(c):
    t = create(c, "branched", [span(0, 10)])
    work(c, t, """
t.manage_snapshots().create_branch(snapshot_id=t.current_snapshot().snapshot_id, branch_name="side", max_ref_age_ms=604800000,
                                   max_snapshot_age_ms=86400000, min_snapshots_to_keep=2).commit()""")
    side = c.metadata(t)["refs"]["side"]
    c.equal((side["max-ref-age-ms"], side["max-snapshot-age-ms"], side["min-snapshots-to-keep"]), (604800000, 86400000, 2), "retention")
    got = work(c, t, """
t.append(pa.Table.from_pylist(rows, schema=t.schema().as_arrow()), branch="side")
t.delete("id = 3", branch="side")
result = t.scan().use_ref("side").to_arrow().to_pylist()""", rows=span(10, 15))
    want = [r for r in span(0, 15) if r["id"] != 3]
    c.equal(rows_of(got), want, "rows of the branch")
    c.refs(t, main="branch", side="branch")
    c.holds(t, want, c.metadata(t)["refs"]["side"]["snapshot-id"])
    c.holds(t, span(0, 10))
    work(c, t, "t.manage_snapshots().set_current_snapshot(ref_name='side').commit()\nt.manage_snapshots().remove_branch('side').commit()")
    c.refs(t, main="branch")
    c.holds(t, want)


def step_tag(c):
    t = create(c, "tagged", [span(0, 10)])
    got = work(c, t, """
t.manage_snapshots().create_tag(t.current_snapshot().snapshot_id, "one", max_ref_age_ms=86400000).create_tag(
    t.current_snapshot().snapshot_id, "two").commit()
""" + APPEND + """
result = len(t.scan().use_ref("one").to_arrow())
t.manage_snapshots().remove_tag("two").commit()""", rows=span(10, 12))
    c.equal(got, 10, "rows of the tag")
    c.refs(t, main="branch", one="tag")
    c.equal(c.metadata(t)["refs"]["one"]["max-ref-age-ms"], 86400000, "retention")
    c.holds(t, span(0, 12))


def step_travel(c):
    t = create(c, "travelled", [span(0, 10), span(10, 20)])
    work(c, t, 't.delete("id < 5")')
    got = work(c, t, """
result = [[len(t.scan(snapshot_id=s.snapshot_id).to_arrow()), len(t.scan(snapshot_id=t.snapshot_as_of_timestamp(s.timestamp_ms).snapshot_id).to_arrow())]
          for s in t.snapshots()]""")
    c.equal(got, [[10, 10], [20, 20], [15, 15]], "rows by snapshot, by time")
    for s, want in zip(c.snapshots(t), (span(0, 10), span(0, 20), span(5, 20))):
        c.holds(t, want, s["snapshot-id"])
    c.holds(t, span(5, 20))


def step_rollback(c):
    t = create(c, "rolled", [span(0, 10), span(10, 20)])
    first, second = [s["snapshot-id"] for s in c.snapshots(t)]
    work(c, t, "t.manage_snapshots().rollback_to_snapshot(snapshot_id).commit()", snapshot_id=first)
    c.holds(t, span(0, 10))
    work(c, t, "t.manage_snapshots().set_current_snapshot(snapshot_id).commit()", snapshot_id=second)
    c.holds(t, span(0, 20))
    work(c, t, "t.manage_snapshots().rollback_to_timestamp(at).commit()", at=c.snapshots(t)[1]["timestamp-ms"] - 1)
    c.holds(t, span(0, 10))


def step_schema(c):
    t = create(c, "evolving", [span(0, 4)])
    work(c, t, """
from pyiceberg.types import *
with t.update_schema() as u:
    u.add_column("note", StringType(), doc="a note")
    u.add_column("place", StructType(NestedField(100, "x", IntegerType(), required=False)))
with t.update_schema(allow_incompatible_changes=True) as u:
    u.add_column(("place", "y"), DoubleType())
    u.rename_column("name", "title")
    u.update_column("id", LongType())
    u.delete_column("score")
    u.move_first("note")
with t.update_schema() as u: u.add_column("score", StringType())
""" + APPEND, rows=[{"note": "n", "id": 4, "region": "eu", "title": "t", "place": {"x": 1, "y": 0.5}, "score": "late"}])
    fields = c.schema(t)["fields"]
    c.equal([f["name"] for f in fields], ["note", "id", "region", "title", "place", "score"], "columns")
    c.equal((fields[0].get("doc"), fields[1]["type"]), ("a note", "long"), "note, id")
    c.holds(t, [{"id": r["id"], "region": r["region"], "title": r["name"], "note": None, "score": None, "place": None} for r in span(0, 4)] + [
        {"id": 4, "region": "eu", "title": "t", "score": "late", "note": "n", "place": {"x": 1, "y": 0.5}}])
    c.audited[t] = None
    c.refused(lambda: work(c, t, """
from pyiceberg.types import *
with t.update_schema() as u: u.update_column("id", IntegerType())"""), "Cannot (change|promote)")


def step_spec(c):
    t = create(c, "parted", [span(0, 12)])
    work(c, t, """
from pyiceberg.transforms import *
with t.update_spec() as u: u.add_identity("region")
""" + APPEND + """
with t.update_spec() as u:
    u.add_field("id", BucketTransform(4), "shard")
    u.remove_field("region")
t.append(pa.Table.from_pylist(more, schema=t.schema().as_arrow()))
with t.update_spec() as u: u.rename_field("shard", "part")""", rows=span(12, 24), more=span(24, 30))
    c.equal(c.spec(t), [("id", "bucket[4]")], "spec")
    c.equal(len(c.metadata(t)["partition-specs"]), 4, "specs")
    c.holds(t, span(0, 30))


def step_properties(c):
    t = create(c, "ordered", [span(0, 3)], a="1")
    work(c, t, """
from pyiceberg.transforms import *
from pyiceberg.table.sorting import *
with t.transaction() as tx:
    tx.set_properties({"b": "ü"})
    tx.remove_properties("a")
with t.update_sort_order() as u: u.asc("region", IdentityTransform(), NullOrder.NULLS_LAST).desc("id", BucketTransform(4), NullOrder.NULLS_LAST)
""")
    m = c.metadata(t)
    c.equal((m["properties"].get("a"), m["properties"]["b"]), (None, "ü"), "properties")
    order = next(o for o in m["sort-orders"] if o["order-id"] == m["default-sort-order-id"])
    c.equal([(f["transform"], f["direction"], f["null-order"]) for f in order["fields"]],
            [("identity", "asc", "nulls-last"), ("bucket[4]", "desc", "nulls-last")], "order")
    c.holds(t, span(0, 3))


def step_upgrade(c):
    t = create(c, "upgraded", [span(0, 10)], **{"format-version": "2"})
    work(c, t, "with t.transaction() as tx: tx.upgrade_table_version(3)")
    c.version(t, 3)
    c.holds(t, span(0, 10))


def step_inspect(c):
    t = create(c, "looked", [span(0, 9), span(9, 12)])
    got = work(c, t, """
t.manage_snapshots().create_tag(t.current_snapshot().snapshot_id, "x").commit()
i = t.inspect
result = [i.snapshots()["operation"].to_pylist(), len(i.history()), sorted(i.refs()["name"].to_pylist()), sum(i.files()["record_count"].to_pylist()),
          len(i.manifests()), len(i.metadata_log_entries()) >= 3, len(i.entries()), len(i.all_manifests()), i.partitions()["record_count"].to_pylist()]""")
    c.equal(got, [["append", "append"], 2, ["main", "x"], 12, 2, True, 2, 3, [12]], "metadata tables")


def step_view(c):
    got = c.run("""
from pyiceberg.exceptions import *
from pyiceberg.schema import Schema
from pyiceberg.types import *
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
version = ViewVersion(version_id=1, schema_id=0, timestamp_ms=1700000000000, summary={"engine": "tests"}, default_namespace=[ns],
                      representations=[SQLViewRepresentation(type="sql", sql="SELECT 1 AS x", dialect="spark")])
v = catalog.create_view((ns, "view1"), Schema(NestedField(1, "x", IntegerType(), required=False)), version, properties={"a": "b"})
said = []
try: catalog.create_view((ns, "view1"), Schema(NestedField(1, "x", IntegerType(), required=False)), version)
except ViewAlreadyExistsError: said.append("exists")
w = catalog.load_view((ns, "view1"))
result = [said, sorted(map(list, catalog.list_views(ns))), catalog.view_exists((ns, "view1")), w.metadata.versions[-1].representations[0].root.sql
          if hasattr(w.metadata.versions[-1].representations[0], "root") else w.metadata.versions[-1].representations[0].sql]
catalog.drop_view((ns, "view1"))
result.append(catalog.view_exists((ns, "view1")))""")
    c.equal(got, [["exists"], [[c.ns, "view1"]], True, "SELECT 1 AS x", False], "views")


def step_expire(c):
    t = create(c, "expired", [span(0, 5), span(5, 10), span(10, 15)])
    first, second, third = [s["snapshot-id"] for s in c.snapshots(t)]
    work(c, t, """
t.manage_snapshots().create_tag(second, "keep").commit()
from datetime import datetime, timedelta
t.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()""", second=second)
    c.equal([s["snapshot-id"] for s in c.snapshots(t)], [second, third], "snapshots that stay")
    c.holds(t, span(0, 10), second)
    c.holds(t, span(0, 15))


def step_statistics(c):
    t = create(c, "counted", [span(0, 5)])
    work(c, t, """
from pyiceberg.table.statistics import *
s = t.current_snapshot().snapshot_id
path = t.location() + "/metadata/counted.puffin"
with t.update_statistics() as u:
    u.set_statistics(StatisticsFile(snapshot_id=s, statistics_path=path, file_size_in_bytes=100, file_footer_size_in_bytes=50, blob_metadata=[
        BlobMetadata(type="apache-datasketches-theta-v1", snapshot_id=s, sequence_number=1, fields=[1], properties={"ndv": "5"})]))""")
    got = c.metadata(t)["statistics"]
    c.equal([(s["snapshot-id"], s["blob-metadata"][0]["properties"]) for s in got], [(c.metadata(t)["current-snapshot-id"], {"ndv": "5"})],
            "statistics")
    work(c, t, "with t.update_statistics() as u: u.remove_statistics(t.current_snapshot().snapshot_id)")
    c.equal(c.metadata(t).get("statistics", []), [], "statistics")
    c.holds(t, span(0, 5))


def step_transaction(c):
    t = create(c, "together", [span(0, 5)])
    before = c.location(t)
    work(c, t, """
from pyiceberg.types import *
with t.transaction() as tx:
    with tx.update_schema() as u: u.add_column("note", StringType())
    tx.append(pa.Table.from_pylist(rows, schema=tx.table_metadata.schema().as_arrow()))
    tx.set_properties(a="b")
    tx.delete("id = 1")""", rows=[{**r, "note": "x"} for r in span(5, 8)])
    log = c.metadata(t)["metadata-log"]
    c.equal(log[-1]["metadata-file"], before, "more than one commit: the file before")
    c.equal(c.metadata(t)["properties"].get("a"), "b", "property")
    want = [{**r, "note": "x" if r["id"] >= 5 else None} for r in span(0, 8) if r["id"] != 1]
    c.holds(t, want)
    # What raises in between leaves nothing.
    at = c.location(t)
    c.refused(lambda: work(c, t, """
with t.transaction() as tx:
    tx.set_properties(never="1")
    raise ValueError("given up")"""), "given up")
    c.equal(c.location(t), at, "metadata after a transaction that was given up")


def step_conflict(c):
    t = create(c, "raced", [span(0, 10)])
    got = work(c, t, """
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.types import *
a, b = table(name), table(name)
a.append(pa.Table.from_pylist(rows, schema=t.schema().as_arrow()))
try:
    b.append(pa.Table.from_pylist(more, schema=t.schema().as_arrow()))
    result = ["done"]
except CommitFailedException: result = ["refused"]
a, b = table(name), table(name)
with a.update_schema() as u: u.add_column("x", StringType())
try:
    with b.update_schema() as u: u.add_column("y", StringType())
    result.append("done")
except CommitFailedException: result.append("refused")
a, b = table(name), table(name)
a.delete("id = 1")
try:
    b.delete("id = 2")
    result.append("done")
except (CommitFailedException, ValidationException): result.append("refused")""", rows=span(10, 12), more=span(12, 14))
    c.equal(got[1], "refused", "two changes of the schema")
    have = [{**r, "x": None} for r in span(0, 12 + 2 * (got[0] == "done")) if r["id"] != 1 and (r["id"] != 2 or got[2] == "refused")]
    c.holds(t, have)


def step_register(c):
    t = create(c, "enrolled", [span(0, 10)])
    before, location = c.metadata(t), c.location(t)
    c.run("""
catalog.drop_table(name)
catalog.register_table((ns, "in1", "again"), location)""", name=t, location=location)
    t = c.ns + ".in1.again"
    c.equal(c.metadata(t)["table-uuid"], before["table-uuid"], "uuid")
    c.holds(t, span(0, 10))


def step_purge(c):
    t = create(c, "purged", [span(0, 10)])
    at = c.metadata(t)["location"]
    c.run("catalog.purge_table(name)", name=t)
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)


def step_read(c):
    c.reads_base(False)


def step_lineage(c):
    c.reads_base(True)
