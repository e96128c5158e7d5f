"""What a schema may hold and how it may change: every V3 type, defaults, promotions, as a REST client sees it."""

import copy

import pytest
from pyiceberg.catalog.rest import RestCatalog

from support.lab import Lab

NESTED = {"list": {"type": "list", "element-id": 112, "element": "int", "element-required": True},
          "struct": {"type": "struct", "fields": [{"id": 113, "name": "x", "required": True, "type": "int"}]},
          "map": {"type": "map", "key-id": 114, "key": "string", "value-id": 115, "value": "int", "value-required": False}}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "rules")
    yield lab
    lab.check()


def field(fid, name, kind, required=False, **more):
    return {"id": fid, "name": name, "required": required, "type": kind, **{k.replace("_", "-"): v for k, v in more.items()}}


def schema(*fields):
    return {"type": "struct", "fields": list(fields)}


class Tables:
    """Creates tables of one column after the other, without rows."""

    def __init__(self, lab):
        self.lab, self.n = lab, 0
        self.target = "/v1/namespaces/%s/tables" % lab.space

    def create(self, *fields, version=3, want=200, spec=None, order=None):
        self.n += 1
        body = {"name": "c%d" % self.n, "schema": schema(*fields), "properties": {"format-version": str(version)}}
        if spec:
            body["partition-spec"] = {"fields": spec}
        if order:
            body["write-order"] = {"order-id": 1, "fields": order}
        return self.lab.rest.want(want, "POST", self.target, body)

    def load(self):
        return self.lab.rest.want(200, "GET", "%s/c%d" % (self.target, self.n)).json["metadata"]


@pytest.fixture(scope="module")
def tables(lab):
    return Tables(lab)


# What is sent and what a load shows; the same where there is no third. case BC-033, case BC-034
TYPES = [("timestamp_ns",), ("timestamptz_ns",), ("unknown",), ("variant",), ("geometry",), ("geometry(srid:4326)",),
         ("geometry(EPSG:3857)",), ("geometry(OGC:CRS84)", "geometry"), ("geography",), ("geography(srid:4326)",),
         ("geography(srid:4326, karney)",), ("geography(OGC:CRS84, vincenty)",), ("decimal( 9 , 2 )", "decimal(9, 2)"),
         ("decimal(38,38)", "decimal(38, 38)"), ("fixed[ 16 ]", "fixed[16]"), ("Decimal(9,2)", "decimal(9, 2)")]
V3_ONLY = {"timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"}


def same_type(a, b):
    return a.replace(" ", "").replace("(OGC:CRS84)", "") == b.replace(" ", "").replace("(OGC:CRS84)", "")


@pytest.mark.parametrize("row", TYPES, ids=lambda r: r[0])
def test_types(tables, row):
    sent, shown = row[0], row[-1]
    got = tables.create(field(1, "id", "long"), field(2, "v", sent),
                        field(3, "l", {"type": "list", "element-id": 4, "element": sent, "element-required": False}))
    for f in (got.json["metadata"]["schemas"][0]["fields"], tables.load()["schemas"][0]["fields"]):
        assert same_type(f[1]["type"], shown) and same_type(f[2]["type"]["element"], shown)
    if shown.split("(")[0] in V3_ONLY:
        for fields in ([field(2, "v", sent)], [field(3, "l", {"type": "list", "element-id": 4, "element": sent, "element-required": False})],
                       [field(5, "m", {"type": "map", "key-id": 6, "key": "int", "value-id": 7, "value": sent, "value-required": False})]):
            e = tables.create(*fields, version=2, want=400).error
            assert "v3" in e["message"] and ("v" in e["message"] or "l.element" in e["message"]), e


@pytest.mark.parametrize("text", ["decimal(39, 2)", "decimal(2, 9)", "decimal(9)", "decimal(0, 0)", "fixed[0]", "fixed[-1]", "fixed[]",
                                  "fixed[99999999999]", "geometry()", "geography(x, foo)", "timestamp_s", "varchar", "", "list", "tinyint"])
def test_texts_that_are_no_type(tables, text):
    tables.create(field(1, "v", text), want=400)


# Right defaults and their canonical form; case BC-032.
DEFAULTS = [
    ("boolean", True), ("int", 7), ("int", -2**31), ("long", 2**63 - 1), ("float", 1.5), ("double", -0.25), ("double", 3, 3.0),
    ("decimal(9, 2)", "14.20"), ("decimal(9, 2)", "-0.01"), ("date", "2017-11-16"), ("time", "22:31:08.123456"),
    ("time", "22:31:08", "22:31:08.000000"), ("timestamp", "2017-11-16T22:31:08.123456"),
    ("timestamptz", "2017-11-16T22:31:08.123456+00:00"), ("timestamptz", "2017-11-16T22:31:08Z", "2017-11-16T22:31:08.000000+00:00"),
    ("timestamp_ns", "2024-01-01T00:00:00.12", "2024-01-01T00:00:00.120000000"),
    ("timestamptz_ns", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000000+00:00"),
    ("string", ""), ("string", "naïve \U0001f600"), ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"), ("fixed[4]", "000102ff"),
    ("binary", ""), ("binary", "00FF", "00ff"), (NESTED["struct"], {}), (NESTED["list"], [1, 2]),
    (NESTED["map"], {"keys": ["a"], "values": [1]})]


@pytest.mark.parametrize("row", DEFAULTS, ids=lambda r: str(r[0])[:20] + str(r[1])[:20])
def test_defaults(tables, row):
    kind, sent, shown = row[0], row[1], row[-1]
    got = tables.create(field(1, "id", "long"), field(2, "d", copy.deepcopy(kind), initial_default=sent, write_default=sent))
    for md in (got.json["metadata"], tables.load()):
        have = md["schemas"][0]["fields"][1]
        assert have["initial-default"] == shown and have["write-default"] == shown
    e = tables.create(field(2, "d", copy.deepcopy(kind), initial_default=sent), version=2, want=400).error
    assert "until v3" in e["message"], e


@pytest.mark.parametrize("kind,value", [
    ("boolean", 1), ("int", "1"), ("int", 2**31), ("int", 1.5), ("long", 2**63), ("float", 1e39), ("float", "NaN"), ("decimal(9, 2)", "14.2"),
    ("decimal(9, 2)", 14.2), ("decimal(9, 2)", "99999999.99"), ("date", "2023-02-29"), ("date", 17486), ("time", "24:00:00"),
    ("timestamp", "2017-11-16T22:31:08+00:00"), ("timestamptz", "2017-11-16T22:31:08"), ("timestamptz", "2017-11-16T22:31:08+01:00"),
    ("timestamp_ns", "2300-01-01T00:00:00"), ("string", 1), ("uuid", "x"), ("fixed[4]", "0001"), ("binary", "0"), ("unknown", 1),
    ("variant", 1), ("variant", {}), ("geometry", "POINT (1 2)"), ("geography", "00"), (NESTED["list"], [None]), (NESTED["list"], [1.5]),
    (NESTED["struct"], {"113": 1}), (NESTED["map"], {"keys": ["a"], "values": []}), (NESTED["map"], [])], ids=str)
def test_values_that_are_no_default(tables, kind, value):
    for which in ("initial_default", "write_default"):
        tables.create(field(2, "d", copy.deepcopy(kind), **{which: value}), want=400)


def test_nulls_and_unknown_members(tables):
    """Null is no default; members that the table spec does not define come back."""
    got = tables.create(field(1, "g", "geometry", initial_default=None, write_default=None, x_note={"k": [1, 2.5]}),
                        field(2, "u", "unknown", doc=None)).json["metadata"]["schemas"][0]["fields"]
    assert got == [{"id": 1, "name": "g", "required": False, "type": "geometry", "x-note": {"k": [1, 2.5]}},
                   {"id": 2, "name": "u", "required": False, "type": "unknown"}]
    for bad in (field(1, "u", "unknown", required=True),
                field(1, "l", {"type": "list", "element-id": 2, "element": "unknown", "element-required": True}),
                field(1, "m", {"type": "map", "key-id": 2, "key": "unknown", "value-id": 3, "value": "int", "value-required": False})):
        assert "unknown" in tables.create(bad, want=400).error["message"]


def test_sources(tables):
    """Which types partition and sort fields take."""
    for kind, transform, ok in [
            ("unknown", "identity", True), ("unknown", "void", True), ("unknown", "bucket[4]", False), ("variant", "identity", False),
            ("geometry", "identity", False), ("geography", "identity", False), ("geometry", "bucket[4]", False),
            ("timestamp_ns", "hour", True), ("timestamptz_ns", "bucket[4]", True), ("timestamp_ns", "truncate[4]", False),
            ("date", "hour", False), ("boolean", "bucket[4]", False), ("float", "bucket[4]", False), ("double", "truncate[4]", False),
            ("uuid", "truncate[4]", False), ("fixed[4]", "truncate[4]", False), ("time", "day", False), ("string", "year", False),
            (NESTED["list"], "identity", False), ("long", "bucket[0]", False), ("long", "truncate[-1]", True), ("long", "zorder", True)]:
        made = tables.create(field(1, "v", copy.deepcopy(kind)), want=200 if ok else 400,
                             spec=[{"source-id": 1, "field-id": 1000, "name": "p", "transform": transform}])
        if ok:
            assert made.json["metadata"]["partition-specs"][0]["fields"][0]["transform"] == transform
        if transform != "void":
            tables.create(field(1, "v", copy.deepcopy(kind)), want=200 if ok else 400, order=[
                {"source-id": 1, "transform": transform, "direction": "asc", "null-order": "nulls-first"}])


# ---- changes of a table that has rows

class Live:
    def __init__(self, lab, name, *fields, version=3, spec=None):
        self.t = lab.table(name, version=version)
        self.fields = [field(1, "id", "long"), field(2, "name", "string")]
        self.change(*fields)
        if spec:
            self.t.update([{"action": "add-spec", "spec": {"fields": spec}}, {"action": "set-default-spec", "spec-id": -1}])
        lab.forget(self.t)  # its columns are this module's
        self.snapshot()

    def snapshot(self):
        import frazil
        from frazil import parquet
        import pyarrow as pa
        with frazil.Client(self.t.lab.daemon.rpc) as c:
            info = c.table(self.t.name).info()
            files = parquet.write(pa.table({"id": pa.array([1], pa.int64())}), info)
            c.commit_once(self.t.name, data_files=files)

    def change(self, *fields, want=200):
        got = self.t.update([{"action": "add-schema", "schema": schema(*self.fields, *fields)},
                             {"action": "set-current-schema", "schema-id": -1}], want=want)
        return got.error["message"] if want != 200 else None


ALL = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "string",
       "uuid", "fixed[4]", "fixed[5]", "binary", "decimal(9, 2)", "decimal(10, 2)", "decimal(10, 3)", "unknown", "variant", "geometry",
       "geometry(srid:4326)", "geography"]
PROMOTES = {"int": {"long"}, "float": {"double"}, "decimal(9, 2)": {"decimal(10, 2)"}, "date": {"timestamp", "timestamp_ns"},
            "unknown": set(ALL)}


def test_promotions(lab):
    """Every pair of types: what the spec promotes, and nothing else."""
    live = Live(lab, "promote", *[field(10 + i, "c%d" % i, kind) for i, kind in enumerate(ALL)])
    before = live.t.metadata()
    for i, kind in enumerate(ALL):
        bad = [field(10 + i, "c%d" % i, to) for to in ALL if to != kind and to not in PROMOTES.get(kind, ())]
        bad += [field(10 + i, "c%d" % i, copy.deepcopy(NESTED["list"]))] if kind != "unknown" else []
        for f in bad:
            assert "Cannot change column type" in live.change(f, want=400), f
    assert live.t.metadata() == before
    pairs = [(kind, to) for kind, all_to in PROMOTES.items() for to in sorted(all_to - {kind}) if kind != "unknown"]
    pairs += [("unknown", "uuid"), ("unknown", "variant"), ("unknown", "geometry"), ("unknown", NESTED["list"]), ("unknown", NESTED["map"])]
    for i, (kind, to) in enumerate(pairs):
        other = Live(lab, "to%d" % i, field(10, "c", kind))
        other.change(field(10, "c", copy.deepcopy(to)))
        old = next(s["schema-id"] for s in other.t.metadata()["schemas"] if [f["type"] for f in s["fields"] if f["id"] == 10] == [kind])
        # No way back, by neither update.
        other.t.update([{"action": "set-current-schema", "schema-id": old}], want=400)
        other.change(field(10, "c", kind), want=400)


def test_promotions_in_version_2(lab):
    live = Live(lab, "promote2", field(10, "d", "date"), field(11, "i", "int"), version=2)
    live.change(field(10, "d", "timestamp"), field(11, "i", "int"), want=400)
    live.change(field(10, "d", "date"), field(11, "i", "long"))


def test_promoted_partition_sources(lab):
    """A date may become a timestamp only where its partition values stay."""
    for transform, want in (("identity", 400), ("bucket[4]", 400), ("year", 200), ("month", 200), ("day", 200), ("void", 200)):
        live = Live(lab, "source_" + transform[:4], field(10, "d", "date"),
                    spec=[{"source-id": 10, "field-id": 1000, "name": "p", "transform": transform}])
        live.change(field(10, "d", "timestamp"), want=want)


def test_changes_of_defaults(lab):
    """case BC-030, case BC-032: an initial default never changes, a write default may."""
    live = Live(lab, "defaults", field(10, "a", "int", initial_default=7, write_default=7), field(11, "b", "date", initial_default="2017-11-16"),
                field(12, "c", "string"), field(13, "f", "float", initial_default=0.1))
    same = [field(11, "b", "date", initial_default="2017-11-16"), field(12, "c", "string"), field(13, "f", "float", initial_default=0.1)]
    first = field(10, "a", "int", initial_default=7, write_default=7)
    for bad in ([field(10, "a", "int", initial_default=8)], [field(10, "a", "int", write_default=7)], [field(10, "a", "int", initial_default=None)]):
        assert "initial default" in live.change(*bad, *same, want=400)
    # A column that had none does not get one: its old rows hold null.
    assert "initial default" in live.change(first, same[0], field(12, "c", "string", initial_default="x"), same[2], want=400)
    live.change(field(10, "a", "int", initial_default=7, write_default=9), same[0], field(12, "c", "string", write_default="x"), same[2])
    # Promoted with the column.
    for stamp in ("2017-11-16T00:00:01.000000", "2017-11-17T00:00:00.000000"):
        live.change(first, field(11, "b", "timestamp", initial_default=stamp), *same[1:], want=400)
    live.change(field(10, "a", "long", initial_default=7), field(11, "b", "timestamp", initial_default="2017-11-16T00:00:00"), same[1],
                field(13, "f", "double", initial_default=0.1))
    got = {f["name"]: f.get("initial-default") for f in live.t.load()["metadata"]["schemas"][-1]["fields"]}
    assert got == {"id": None, "name": None, "a": 7, "b": "2017-11-16T00:00:00.000000", "c": None, "f": 0.1}


def test_required_columns(lab):
    """New rows and old ones must both have a value."""
    live = Live(lab, "required", field(10, "s", {"type": "struct", "fields": [field(11, "x", "int")]}))
    had = field(10, "s", {"type": "struct", "fields": [field(11, "x", "int")]})
    assert "required" in live.change(had, field(20, "r", "int", required=True), want=400)
    assert "required" in live.change(had, field(20, "r", "int", required=True, initial_default=1), want=400)
    assert "required" in live.change(had, field(20, "r", "int", required=True, write_default=1), want=400)
    assert "required" in live.change(field(10, "s", {"type": "struct", "fields": [field(11, "x", "int", required=True)]}), want=400)
    assert "required" in live.change(field(10, "s", {"type": "struct", "fields": [field(11, "x", "int"), field(12, "y", "int", required=True)]}),
                                     want=400)
    live.change(had, field(20, "r", "int", required=True, initial_default=1, write_default=2),
                field(21, "n", {"type": "struct", "fields": [field(22, "x", "int", required=True)]}))


def test_defaults_reach_readers(daemon, lab):
    """A column with an initial default, added after rows were written: PyIceberg knows it, workers write the write default."""
    import frazil
    import pyarrow as pa
    live = Live(lab, "reach")
    live.change(field(10, "d", "int", initial_default=7, write_default=8))
    with frazil.Client(daemon.rpc) as c:
        c.commit_once(live.t.name, data=pa.table({"id": pa.array([2], pa.int64())}))
    t = RestCatalog("frazil", uri=daemon.uri).load_table(live.t.name)
    f = t.schema().find_field("d")
    assert (f.initial_default, f.write_default) == (7, 8)
    assert sorted(t.scan().to_arrow().select(["id", "d"]).to_pylist(), key=lambda r: r["id"]) == [{"id": 1, "d": 7}, {"id": 2, "d": 8}]
