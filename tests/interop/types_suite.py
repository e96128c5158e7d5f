"""Types as foreign engines see them: every transform of every type pruned by SQL filters, defaults, and the types of version 3 that
an engine writes and a worker deletes from.
"""

import math
import time

import pyarrow as pa

import auditor
import frazil
from catalog_suite import check
from engine import EngineError
from frazil import parquet
from support import edges
from support.rest import Rest

# What an engine does not take, with its own words; others must work.
CANNOT = {
    "spark": {"time": "Spark does not support time fields", "timestamp_ns": "Cannot convert unsupported type to Spark",
              "timestamptz_ns": "Cannot convert unsupported type to Spark"},
    "duckdb": {"timestamptz_ns": "Unrecognized primitive type", "unknown": "Unrecognized primitive type", "geography": "Geography support"},
}
# Transforms by which an engine of this very version prunes wrongly, found one by one; the reference implementation
# differs from it in each. DuckDB takes months and days before 1970 for those after, truncates decimals without
# their sign, and hashes UUIDs in its own byte order; Java reads a length before fixed values in tuples.
FAULTS = {
    ("duckdb", "1.5.5"): {"decimal(9, 2)": ("truncate[50]",), "decimal(38, 10)": ("truncate[50]",), "timestamp": ("month", "day"),
                          "timestamptz": ("month", "day"), "timestamp_ns": ("month", "day"), "uuid": ("bucket[5]",)},
    ("spark", "4.1.4, iceberg 1.12.0"): {"fixed[3]": ("identity",)},
}
ORDERED = ("int", "long", "decimal(9, 2)", "decimal(38, 10)", "date", "timestamp", "timestamptz", "string")


def literal(engine, kind, v):
    if kind == "boolean":
        return str(v).upper()
    if kind in ("int", "long"):
        return str(v)
    if kind in ("float", "double"):
        return "CAST('%s' AS %s)" % ({"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(v), repr(v)), kind.upper())
    if kind.startswith("decimal"):
        return "CAST('%s' AS %s)" % (format(v, "f"), kind.upper())
    if kind in ("date", "time"):
        return "%s '%s'" % (kind.upper(), v.isoformat())
    if kind == "timestamp_ns":
        return "make_timestamp_ns(%d)" % v
    if kind == "timestamp":
        return "%s '%s'" % ("TIMESTAMP_NTZ" if engine == "spark" else "TIMESTAMP", v.isoformat(" "))
    if kind == "timestamptz":
        text = v.replace(tzinfo=None).isoformat(" ")
        return "TIMESTAMP '%s UTC'" % text if engine == "spark" else "TIMESTAMPTZ '%s+00'" % text
    if kind == "string":
        return "CAST(X'%s' AS STRING)" % v.encode().hex() if engine == "spark" else "'%s'" % v
    if kind == "uuid":
        return "'%s'" % v if engine == "spark" else "UUID '%s'" % v
    return "X'%s'" % v.hex() if engine == "spark" else "from_hex('%s')" % v.hex()


def questions(engine, kind, values):
    """[(condition, the k of all rows that hold it)]"""
    out = [("v IS NULL", {0}), ("v IS NOT NULL", set(range(1, len(values))))]
    floats = kind in ("float", "double")
    for i, v in enumerate(values[1:], 1):
        if floats and v == 0:  # the zeros are two values to some planners and one to SQL: a range holds both
            out.append(("v BETWEEN %s AND %s" % (literal(engine, kind, -0.0), literal(engine, kind, 0.0)),
                        {k for k, x in enumerate(values) if x == 0 and x is not None}))
            continue
        if floats and math.isnan(v):  # DuckDB 1.5.5 finds no NaN by equality
            out.append(("isnan(v)", {i}))
            continue
        if kind == "timestamp_ns" and abs(v) > 9 * 10**18:  # no literal of DuckDB's
            continue
        out.append(("v = " + literal(engine, kind, v), {k for k, x in enumerate(values) if x == v}))
        if kind in ORDERED:
            out.append(("v < " + literal(engine, kind, v), {k for k, x in enumerate(values) if x is not None and x < v}))
    return out


class Types:
    def __init__(self, suite, rpc):
        self.suite, self.uri, self.rest = suite, suite.uri, Rest(suite.uri)
        self.space = "ty%d" % (int(time.time()) % 100000)
        self.rest.want(200, "POST", "/v1/namespaces", {"namespace": [self.space], "properties": {}})
        self.client = frazil.Client(rpc)
        self.engines = [e for e in suite.engines.values() if e.name in CANNOT]

    def refuses(self, engine, kind, name):
        """Whether the engine says that it has no such type; that it says so is checked."""
        said = CANNOT[engine.name].get(kind)
        if said is None:
            return False
        try:
            engine.sql("SELECT * FROM ice.%s" % name)
        except Exception as e:
            check(said in str(e), engine.name, kind, e)
            self.suite.cannot.setdefault((engine.name, "type " + kind), said)
            return True
        print("note   %s %s reads %s this time" % (engine.name, engine.version, kind))
        return False

    # ---- partitions
    def filled(self, name, kind, without=()):
        name, _ = edges.make(self.rest, self.space, name, kind, without)
        values, rows = edges.rows_of(kind)
        info = self.client.table(name).info()
        for part in (rows.slice(len(values) // 2), rows.slice(0, len(values) // 2)):
            self.client.commit_once(name, data_files=parquet.write(part, info))
        bad = auditor.violations(self.uri, name)
        check(not bad, kind, bad[:3])
        return name, values

    def asked(self, engine, kind, name, values):
        """Differences of one engine's answers to all filters."""
        asked = questions(engine.name, kind, values)
        got = engine.sql(" UNION ALL ".join("SELECT %d AS q, k FROM ice.%s WHERE %s" % (i, name, text) for i, (text, _) in enumerate(asked)))
        found = [[] for _ in asked]
        for row in got:
            found[row["c0"]].append(row["c1"])
        return ["%s %s: %s finds %s, wanted %s" % (engine.name, kind, text, sorted(have), sorted(want))
                for (text, want), have in zip(asked, found) if sorted(have) != sorted(want)]

    def partitions(self, kind):
        name, values = self.filled(edges.short(kind), kind)
        for engine in self.engines:
            if self.refuses(engine, kind, name):
                continue
            faults = FAULTS.get((engine.name, engine.version), {}).get(kind)
            try:
                lines = self.asked(engine, kind, name, values)
            except EngineError as e:
                if not faults:
                    raise
                lines = [str(e).splitlines()[0]]
            if not faults:
                check(not lines, *lines[:3])
                continue
            if lines:
                print("known  %s %s on %s by %s: %s" % (engine.name, engine.version, kind, ", ".join(faults), lines[0][:160]))
            else:
                print("note   %s %s reads %s rightly this time" % (engine.name, engine.version, kind))
            other, _ = self.filled("%s_%s" % (edges.short(kind), engine.name), kind, faults)
            lines = self.asked(engine, kind, other, values)
            check(not lines, *lines[:3])

    def from_java(self, kind):
        """Tuples of the reference implementation: Spark writes each value twice, a worker deletes one of the two, and so the
        vectors' entries repeat tuples that we only read."""
        spark = self.suite.engines["spark"]
        name, _ = edges.make(self.rest, self.space, edges.short(kind) + "_java", kind, version=3, **{"write.spark.fanout.enabled": "true"})
        values, _ = edges.rows_of(kind)
        texts = ["CAST(NULL AS %s)" % ("STRING" if kind == "uuid" else "BINARY") if kind in ("uuid", "binary") else "NULL"]
        texts += [literal("spark", kind, v) for v in values[1:]]
        spark.sql("INSERT INTO ice.%s VALUES %s" % (name, ", ".join("(%d, %s), (%d, %s)" % (k, t, k + 100, t) for k, t in enumerate(texts))))
        self.delete(name, *range(len(values)), column="k")
        want = [k + 100 for k in range(len(values))]
        for engine in self.engines:
            got = sorted(r["c0"] for r in engine.sql("SELECT k FROM ice.%s" % name))
            check(got == want, engine.name, name, got, "wanted", want)
        bad = [v for v in auditor.violations(self.uri, name) if v[0].startswith("DV")]
        check(not bad, kind, bad[:3])

    # ---- tables of the suite's own
    def create(self, name, *fields, version=3):
        self.rest.want(200, "POST", "/v1/namespaces/%s/tables" % self.space, {
            "name": name, "properties": {"format-version": str(version)}, "schema": {"type": "struct", "fields": list(fields)}})
        return "%s.%s" % (self.space, name)

    def change(self, name, *fields):
        self.rest.want(200, "POST", "/v1/namespaces/%s/tables/%s" % tuple(name.split(".")), {"requirements": [], "updates": [
            {"action": "add-schema", "schema": {"type": "struct", "fields": list(fields)}}, {"action": "set-current-schema", "schema-id": -1}]})

    def head(self, name):
        return self.rest.want(200, "GET", "/v1/namespaces/%s/tables/%s" % tuple(name.split("."))).json["metadata"]["current-snapshot-id"]

    def append(self, name, *ids):
        return self.client.commit_once(name, data=pa.table({"id": pa.array(ids, pa.int64())}))

    def delete(self, name, *ids, column="id"):
        """A worker deletes rows wherever they lie."""
        where = {}
        for r in auditor.raw_rows(self.uri, name):
            if r[column] in ids:
                where.setdefault(r["path"], []).append(r["pos"])
        check(sum(map(len, where.values())) == len(ids), name, "rows to delete", where)
        self.client.commit_once(name, kind="DELETE", deletes=list(where.items()), read_snapshot_id=self.head(name))

    def same(self, name, want, columns="*", engines=None):
        for engine in engines or self.engines:
            got = [tuple(r.values()) for r in engine.sql("SELECT %s FROM ice.%s ORDER BY id" % (columns, name))]
            check(got == want, engine.name, name, got, "wanted", want)

    def defaults(self):
        """Columns that come after rows, with defaults: what every engine reads in the old rows, and what workers write."""
        id_ = field(1, "id", "long")
        name = self.create("defaults", id_)
        self.append(name, 1)
        columns = [("a", "int", 7, 8), ("b", "string", "x", "é"), ("c", "decimal(9, 2)", "14.20", "-1.00"), ("d", "date", "2017-11-16", "1969-12-31"),
                   ("e", "timestamp", "2017-11-16T22:31:08.123456", "1969-12-31T23:59:59.999999"), ("f", "binary", "00ff", ""),
                   ("g", "double", 1.5, -2.5), ("h", "boolean", True, False),
                   ("u", "uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000001")]
        fields = [id_] + [field(10 + i, n, t, **{"initial-default": x, "write-default": y}) for i, (n, t, x, y) in enumerate(columns)]
        self.change(name, *fields)
        self.append(name, 2)
        old, new = tuple(c[2] for c in columns), tuple(c[3] for c in columns)
        self.same(name, [(1, *old), (2, *new)])
        written = [2]
        for i, engine in enumerate(self.engines):
            engine.sql("INSERT INTO ice.%s (id) VALUES (%d)" % (name, 3 + i))
            written.append(3 + i)
        self.same(name, [(1, *old)] + [(i, *new) for i in written])
        for engine in self.engines:
            got = engine.sql("SELECT id FROM ice.%s WHERE a = 7 AND b = 'x'" % name)
            check([r["c0"] for r in got] == [1], engine.name, "filter on a default", got)
        # Without the last column's old rows: a vector over rows that hold defaults.
        self.delete(name, 1, 2)
        self.same(name, [(i, *new) for i in written[1:]])
        # The defaults go along when their columns are promoted, and the write default may change.
        fields[1] = field(10, "a", "long", **{"initial-default": 7, "write-default": 1 << 40})
        fields[4] = field(13, "d", "timestamp", **{"initial-default": "2017-11-16T00:00:00", "write-default": "2020-01-01T00:00:00"})
        self.change(name, *fields)
        self.append(name, 9)
        self.same(name, [(i, 8) for i in written[1:]] + [(9, 1 << 40)], "id, a")

    def variants(self):
        spark, duck = self.suite.engines["spark"], self.suite.engines["duckdb"]
        name = self.space + ".variants"
        spark.sql("CREATE TABLE ice.%s (id bigint, v variant) TBLPROPERTIES('format-version'='3')" % name,
                  "INSERT INTO ice.%s SELECT id, parse_json('{\"a\":' || id || ',\"b\":[1,\"x\"]}') FROM range(6)" % name)
        self.delete(name, 2, 4)
        self.append(name, 8)  # a worker has no variants: null
        want = [(0, 0), (1, 1), (3, 3), (5, 5), (8, None)]
        self.same(name, want, "id, variant_get(v, '$.a', 'int')", [spark])
        got = [(r["c0"], r["c1"] and r["c1"]["a"]) for r in duck.sql("SELECT id, v FROM ice.%s ORDER BY id" % name)]
        check(got == want, "duckdb", name, got)
        # Spark cannot read what DuckDB shreds when some rows are null.
        name = self.create("variants2", field(1, "id", "long"), field(2, "v", "variant"))
        duck.sql("INSERT INTO ice.%s VALUES (1, {'a': 6}::VARIANT), (2, NULL), (3, {'a': 7}::VARIANT)" % name)
        self.delete(name, 1)
        self.append(name, 4)
        got = [(r["c0"], r["c1"] and r["c1"]["a"]) for r in duck.sql("SELECT id, v FROM ice.%s ORDER BY id" % name)]
        check(got == [(2, None), (3, 7), (4, None)], "duckdb", name, got)

    def geometries(self):
        spark, duck = self.suite.engines["spark"], self.suite.engines["duckdb"]
        name = self.create("geometries", field(1, "id", "long"), field(2, "g", "geometry"))
        duck.sql("INSERT INTO ice.%s VALUES (1, 'POINT(1 2)'::GEOMETRY), (2, 'POINT(-3 4)'::GEOMETRY), (3, NULL)" % name)
        self.delete(name, 1)
        self.append(name, 4)
        point = b"\x01\x01\0\0\0\0\0\0\0\0\0\x08\xc0\0\0\0\0\0\0\x10@".hex()
        self.same(name, [(2, point), (3, None), (4, None)], engines=[duck])
        check(len(spark.sql("SELECT id FROM ice.%s WHERE g IS NOT NULL" % name)) == 1, "spark", name)

    def nanoseconds(self):
        duck = self.suite.engines["duckdb"]
        name = self.create("nanoseconds", field(1, "id", "long"), field(2, "n", "timestamp_ns"))
        duck.sql("INSERT INTO ice.%s VALUES (1, make_timestamp_ns(-1)), (2, make_timestamp_ns(1510871468123456789)), (3, NULL)" % name)
        self.client.commit_once(name, data=pa.table({"id": pa.array([4], pa.int64()), "n": pa.array([-1001], pa.int64()).cast(pa.timestamp("ns"))}))
        self.delete(name, 3)
        self.same(name, [(1, -1), (2, 1510871468123456789), (4, -1001)], "id, epoch_ns(n)", [duck])
        got = duck.sql("SELECT id FROM ice.%s WHERE n < make_timestamp_ns(-1000)" % name)
        check([r["c0"] for r in got] == [4], "duckdb", name, got)

    def unknowns(self):
        """A column of no type yet, then of one."""
        spark = self.suite.engines["spark"]
        name = self.create("unknowns", field(1, "id", "long"), field(2, "u", "unknown"))
        self.append(name, 1)
        spark.sql("INSERT INTO ice.%s VALUES (2, NULL)" % name)
        self.same(name, [(1, None), (2, None)], engines=[spark])
        for engine in self.engines:
            self.refuses(engine, "unknown", name)
        self.change(name, field(1, "id", "long"), field(2, "u", "string"))
        self.client.commit_once(name, data=pa.table({"id": pa.array([3], pa.int64()), "u": ["now"]}))
        self.delete(name, 1)
        self.same(name, [(2, None), (3, "now")], engines=[spark])


def field(fid, name, kind, **more):
    return {"id": fid, "name": name, "required": False, "type": kind, **more}


def run(suite, rpc):
    t = Types(suite, rpc)
    for kind in edges.CASES:
        suite.part("types %s" % kind, t.partitions, kind)
    if suite.has("spark"):
        faults = FAULTS.get(("spark", suite.engines["spark"].version), {})
        for kind in edges.CASES:
            if kind not in CANNOT["spark"] and kind not in faults:
                suite.part("types %s of Java" % kind, t.from_java, kind)
    suite.part("types defaults", t.defaults)
    if suite.has("duckdb"):
        suite.part("types nanoseconds", t.nanoseconds)
    if suite.has("spark"):
        suite.part("types unknown", t.unknowns)
    if suite.has("spark", "duckdb"):
        suite.part("types variant", t.variants)
        suite.part("types geometry", t.geometries)
    t.client.close()
