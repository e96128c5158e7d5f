"""A catalog moved into a daemon and on into another one: from Iceberg's own REST test server and back to it, with frazilctl.

What foreign clients read is the same from both sides, and every field of what a load gives is."""

import json
import os
import sys
import time

from engine import Engine
from support.ctl import ctl, move, verdicts
from support.daemon import Daemon
from support.rest import Rest, segment

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
import peers  # noqa: E402

NS = "moved"
COLUMNS = "(id INT, region VARCHAR, name VARCHAR, score DOUBLE)"
ROWS = ("SELECT i::INT AS id, ['eu','us','ap'][(i % 3) + 1] AS region, 'n' || i AS name, i / 4.0::DOUBLE AS score "
        "FROM range({}, {}) r(i)")
# Its server takes neither a slash nor a percent sign in a name.
NAMES = ("with.dot", "with space", "ünï–🧊")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


class Side:
    """A catalog with the clients that read from it."""

    def __init__(self, uri, folder, name):
        self.uri, self.rest = uri, Rest(uri)
        # The library's test server takes nothing but its own.
        config = self.rest.want(200, "GET", "/v1/config").json
        self.separator = config["overrides"].get("namespace-separator", config["defaults"].get("namespace-separator", "%1F"))
        self.engines = {n: Engine(n, uri, os.path.join(folder, "%s-%s.log" % (name, n))) for n in ("duckdb", "pyiceberg")}

    def path(self, *levels):
        return "/v1/namespaces/" + self.separator.join(segment(v) for v in levels)

    def rows(self, table):
        return {n: sorted(e.read(table, False), key=lambda r: r["id"]) for n, e in self.engines.items()}

    def load(self, kind, *name):
        return self.rest.want(200, "GET", "%s/%s/%s" % (self.path(*name[:-1]), kind, segment(name[-1]))).json

    def close(self):
        for e in self.engines.values():
            e.close()


def fill(side):
    """Two clients' tables of both versions with deletes, odd names, a namespace below, a view; the names of what was made."""
    rest, duck, py = side.rest, side.engines["duckdb"], side.engines["pyiceberg"]
    rest.want(200, "POST", "/v1/namespaces", {"namespace": [NS], "properties": {"owner": "ü", "location": "file:///nowhere/x"}})
    rest.want(200, "POST", "/v1/namespaces", {"namespace": [NS, "inner"], "properties": {"deep": "yes"}})
    for version, name in ((2, "dk_v2"), (3, "dk_v3")):
        t = 'ice."%s".%s' % (NS, name)
        duck.sql("CREATE TABLE %s %s WITH ('format-version' = '%d')" % (t, COLUMNS, version), "INSERT INTO %s %s" % (t, ROWS.format(0, 40)),
                 "INSERT INTO %s %s" % (t, ROWS.format(40, 60)), "DELETE FROM %s WHERE id %% 10 = 3" % t)
    py.run(f"""
schema = pa.schema([("id", pa.int32()), ("region", pa.string()), ("name", pa.string()), ("score", pa.float64())])
t = catalog.create_table("{NS}.py_v2", schema=schema, properties={{"format-version": "2", "k": "v"}})
t.append(pa.Table.from_pylist([{{"id": i, "region": "eu", "name": "x", "score": 0.5}} for i in range(9)], schema=t.schema().as_arrow()))
t.delete("id = 4")
with t.update_schema() as u: u.rename_column("name", "title")""")
    for n in NAMES:
        rest.want(200, "POST", side.path(NS, "inner") + "/tables", {"name": n, "schema": SCHEMA})
    rest.want(200, "POST", "/v1/namespaces/%s/views" % NS, {
        "name": "v", "schema": SCHEMA, "properties": {"comment": "c"}, "view-version": {
            "version-id": 1, "timestamp-ms": 1700000000001, "schema-id": 0, "summary": {"a": "b"}, "default-namespace": [NS],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": d} for d in ("spark", "trino")]}})
    return [(NS, t) for t in ("dk_v2", "dk_v3", "py_v2")] + [(NS, "inner", n) for n in NAMES]


def differences(a, b, tables, views=()):
    """Lines about what the two catalogs do not say alike."""
    out = []
    for kind, names in (("tables", tables), ("views", views)):
        for name in names:
            x, y = a.load(kind, *name), b.load(kind, *name)
            if x["metadata-location"] != y["metadata-location"]:
                out.append("%s: %s here, %s there" % (name, y["metadata-location"], x["metadata-location"]))
            x, y = x["metadata"], y["metadata"]
            out += ["%s: %s is %r here, %r there" % (name, k, y.get(k), x.get(k)) for k in sorted(set(x) | set(y))
                    if settled(k, x.get(k)) != settled(k, y.get(k))]
    for levels in ((NS,), (NS, "inner")):
        x, y = (s.rest.want(200, "GET", s.path(*levels)).json["properties"] for s in (a, b))
        out += ["%s: properties %r" % (levels, y)] if not x.items() <= y.items() else []
    return out


def settled(key, value):
    """Both spellings of nothing that the specification allows."""
    if key == "current-snapshot-id" and value == -1:
        return None
    return None if value in ([], {}) else value


def same_rows(a, b):
    out = []
    for t in ("dk_v2", "dk_v3", "py_v2"):
        x, y = a.rows("%s.%s" % (NS, t)), b.rows("%s.%s" % (NS, t))
        if len(x["duckdb"]) < 7 or x != y:
            out.append("%s: %d and %d rows: %s" % (t, len(x["duckdb"]), len(y["duckdb"]), [
                (n, v, w) for n in x for v, w in zip(x[n], y[n]) if v != w][:4]))
    return out


def run(postgres, folder, report, full=False):
    began = time.monotonic()
    folder = os.path.join(folder, "moving")
    first = peers.fixture(postgres.database(), os.path.join(folder, "first"))
    second = peers.fixture(postgres.database(), os.path.join(folder, "second"))
    daemon = Daemon(os.path.join(folder, "frazil"), postgres.database(), {"fs.roots": "file://%s" % folder})
    sides = []

    def step(name, lines):
        print("moving %s: %s" % (name, "FAILED" if lines else "ok"), flush=True)
        if lines:
            report.fail("moving", name, [str(line)[:500] for line in lines[:20]])
        else:
            report.count("moving", "ok")
    try:
        sides += [Side(p, folder, n) for p, n in ((first.properties["uri"], "first"), (daemon.uri, "frazil"))]
        there, here = sides
        tables = fill(there)
        view = (NS, "v")
        n = 2 + len(tables) + 1
        rows, _ = move(1, there.uri, here.uri, "--dry-run")
        step("dry run sees everything", [rows] if list(verdicts(rows).values()) != ["new"] * n else [])
        rows, _ = move(0, there.uri, here.uri)
        step("%d tables, views and namespaces in" % n, [rows] if list(verdicts(rows).values()) != ["registered"] * n else [])
        step("every field of every load is the same", differences(there, here, tables, [view]))
        step("DuckDB and PyIceberg read the same rows from both", same_rows(there, here))
        rows, _ = move(0, there.uri, here.uri)
        step("once more does nothing", [rows] if set(verdicts(rows).values()) != {"same"} else [])
        # Commits at the source meanwhile: two steps.
        there.engines["duckdb"].sql('INSERT INTO ice."%s".dk_v3 %s' % (NS, ROWS.format(100, 105)))
        rows, _ = move(1, there.uri, here.uri)
        step("a commit at the source is seen", [] if rows["table", NS, "dk_v3"]["verdict"] == "moved-on" else [rows])
        rows, _ = move(0, there.uri, here.uri, "--overwrite")
        step("and followed", [] if rows["table", NS, "dk_v3"]["verdict"] == "overwritten" else [rows])
        step("with the same rows", same_rows(there, here))
        # From here on the daemon's: commits of both clients, then the list, and on into another catalog of the library's.
        here.engines["duckdb"].sql('INSERT INTO ice."%s".dk_v3 %s' % (NS, ROWS.format(200, 207)), 'DELETE FROM ice."%s".dk_v2 WHERE id = 1' % NS)
        here.engines["pyiceberg"].run(f't = catalog.load_table("{NS}.py_v2"); t.delete("id = 5")')
        rows, _ = move(1, there.uri, here.uri, "--overwrite")
        got = {k[-1]: v for k, v in verdicts(rows).items() if v != "same"}
        step("commits here are not lost", [got] if got != {"dk_v3": "ahead", "dk_v2": "ahead", "py_v2": "ahead"} else [])
        path = os.path.join(folder, "frazil.list")
        ctl(0, "export", "--from", here.uri, "--output", path)
        with open(path, encoding="utf-8") as f:
            end = json.loads(f.read().splitlines()[-1])["end"]
        step("the list is whole", [] if end == {"namespaces": 2, "tables": len(tables), "views": 1} else [end])
        back = Side(second.properties["uri"], folder, "second")
        sides.append(back)
        offers = back.rest.get("/v1/config").json.get("endpoints", ())
        views = [view] if any(e.endswith("/register-view") for e in offers) else []
        rows, _ = move(0 if views else 1, path, back.uri)
        other = {k: v for k, v in verdicts(rows).items() if v != "registered"}
        step("out to the library's server%s" % ("" if views else ", which registers no views"),
             [other] if list(other.values()) != ([] if views else ["refused"]) else [])
        step("every field of every load is the same there", differences(here, back, tables, views))
        step("DuckDB and PyIceberg read the same rows there", same_rows(here, back))
    finally:
        for s in sides:
            s.close()
        first.close()
        second.close()
        daemon.close()
    print("moving %.1f s" % (time.monotonic() - began), flush=True)
