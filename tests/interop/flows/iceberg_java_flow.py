"""Iceberg's Java library: its calls, one an operation (java/JavaEngine.java), above all those that no SQL of an engine makes."""

from catalog_suite import span

ALWAYS = ("namespace",)


def create(c, name, batches=(), **properties):
    t = "%s.%s" % (c.ns, name)
    c.engine.ask("create", table=t, properties={"format-version": "2", **properties})
    for rows in batches:
        c.engine.ask("append", table=t, rows=rows)
    return t


def step_namespace(c):
    again, dropped, names, properties = c.engine.ask("namespace", name=c.ns)
    c.equal((again, dropped, names), (True, True, [c.ns + ".in1"]), "namespaces")
    c.equal((properties.get("kind"), properties.get("note"), properties.get("more")), ("tests", None, "1"), "properties")


def step_table(c):
    t = create(c, "first", [span(0, 5)])
    c.equal(c.engine.ask("create", table=t), "exists", "created again")
    c.equal(c.engine.ask("rename", table=t, to=c.ns + ".in1.second"), True, "the new name")
    c.equal(c.engine.ask("list", name=c.ns + ".in1"), ["second"], "tables")
    t = c.ns + ".in1.second"
    c.holds(t, span(0, 5))
    c.equal(c.engine.ask("drop", table=t), True, "dropped")
    c.check(not c.there(t), "dropped, and there")


def step_insert(c):
    t = create(c, "inserted", [span(0, 10), span(10, 12)])
    c.operations(t, "append", "append")
    c.holds(t, span(0, 12))


def step_delete(c):
    """Of whole files."""
    t = create(c, "deleted", [span(0, 20), span(20, 40)])
    c.engine.ask("delete", table=t, **{"from": 20})
    c.refused(lambda: c.engine.ask("delete", table=t, **{"from": 7}), "some, but not all, rows match")
    c.holds(t, span(0, 20))


def step_read(c):
    c.reads_base(False)


def step_v3(c):
    t = create(c, "v3", [span(0, 20)], **{"format-version": "3"})
    for positions in ([3, 4], [7]):
        c.engine.ask("delete-positions", table=t, positions=positions)
    c.engine.ask("append", table=t, rows=span(20, 24))
    want = [r for r in span(0, 24) if r["id"] not in (3, 4, 7)]
    c.equal({r["id"]: r["_row_id"] for r in c.suite.engines["duckdb"].read(t, True)}, {r["id"]: r["id"] for r in want}, "row ids by DuckDB")
    c.version(t, 3)
    c.holds(t, want)


def step_view(c):
    c.equal(c.engine.ask("view", table=c.ns + ".view1"), ["SELECT 1 AS x", "SELECT 2 AS x", ["view2"], True], "views")


def step_transaction(c):
    t = create(c, "together", [span(0, 5), span(5, 10)])
    before = c.location(t)
    c.engine.ask("transaction", table=t, rows=span(10, 13), below=5)
    c.equal(c.metadata(t)["metadata-log"][-1]["metadata-file"], before, "more than one commit: the file before")
    c.equal(c.metadata(t)["properties"].get("a"), "b", "property")
    c.operations(t, "append", "append", "append", "delete")
    c.holds(t, span(5, 13))


def step_tables(c):
    """RESTCatalog.commitTransaction: all or nothing."""
    all3 = [create(c, "three%d" % i, [span(0, 5), span(5, 10)], **{"format-version": str(2 + i % 2)}) for i in range(3)]
    before = [c.location(t) for t in all3]
    c.equal(c.engine.ask("tables", tables=all3, rows=span(10, 13), below=5), 3, "tables")
    for t, old in zip(all3, before):
        c.equal(c.metadata(t)["metadata-log"][-1]["metadata-file"], old, "more than one commit: the file before")
        c.operations(t, "append", "append", "append", "delete")
        c.holds(t, span(5, 13))
    # The last one moves on before the decision: none of the three may have changed by it.
    before = [c.location(t) for t in all3]
    c.refused(lambda: c.engine.ask("tables", tables=all3, rows=span(20, 22), below=20, more=span(13, 15)), "CommitFailedException")
    c.equal([c.location(t) for t in all3[:2]], before[:2], "metadata after a transaction that was refused")
    c.equal(c.metadata(all3[2])["metadata-log"][-1]["metadata-file"], before[2], "more than the change between")
    for t in all3[:2]:
        c.holds(t, span(5, 13))
    c.holds(all3[2], span(5, 15))


def step_conflict(c):
    t = create(c, "raced", [span(0, 10)])
    said = c.engine.ask("conflict", table=t, more=span(10, 12), rows=span(12, 14), last=span(14, 15))
    c.check("Found conflicting files" in said, "the later write was not refused:", said)
    c.holds(t, span(0, 15))


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
    c.equal(c.engine.ask("drop", table=t, purge=True), True, "dropped")
    c.check(not c.there(t), "dropped, and there")
    c.emptied(at)
