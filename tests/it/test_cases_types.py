"""What types, partition values and bounds broke elsewhere, tried here."""

import datetime
import re
import struct

import pyarrow as pa
import pytest
from pyiceberg import expressions as ex
from pyiceberg.catalog.rest import RestCatalog

from frazil import parquet
from support import audit
from support.foreign import read_avro
from support.lab import Lab, refused
from test_wide import blank, record


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "tcases")


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


def create(lab, name, fields, spec=(), version=3):
    lab.rest.want(200, "POST", "/v1/namespaces/%s/tables" % lab.space, {
        "name": name, "properties": {"format-version": str(version)},
        "schema": {"type": "struct", "fields": [
            {"id": i + 1, "name": n, "required": False, "type": t} for i, (n, t) in enumerate(fields)]},
        "partition-spec": {"fields": [{"source-id": s, "field-id": 1000 + i, "name": n, "transform": t}
                                      for i, (s, n, t) in enumerate(spec)]}})
    return "%s.%s" % (lab.space, name)


def update(lab, name, *updates, want=200):
    return lab.rest.want(want, "POST", "/v1/namespaces/%s/tables/%s" % tuple(name.split(".")), {"requirements": [], "updates": list(updates)})


def append(lab, name, **columns):
    with lab.client() as c:
        files = parquet.write(pa.table(columns), c.table(name).info())
        return files, c.commit_once(name, data_files=files)


def manifests(lab, name, content=0):
    """(list row, Avro schema, header, entries)"""
    md = lab.rest.want(200, "GET", "/v1/namespaces/%s/tables/%s" % tuple(name.split("."))).json["metadata"]
    head = next(s for s in md["snapshots"] if s["snapshot-id"] == md["current-snapshot-id"])
    _, _, rows = read_avro(head["manifest-list"])
    return [(r, *read_avro(r["manifest_path"])) for r in rows if r["content"] == content]


def live(lab, name):
    return {e["data_file"]["file_path"]: e["data_file"] for *_, entries in manifests(lab, name) for e in entries if e["status"] != 2}


def longs(*v):
    return pa.array(v, pa.int64())


def test_names_that_avro_does_not_take(daemon, lab, catalog):
    """case BC-103"""
    names = ["1st", "a-b", "a.b", "ä/ö", "\U0001f600", "_x2D", "a_x2Db", "a b"]
    name = create(lab, "names", [("id", "long")], [(1, n, "bucket[%d]" % (i + 2)) for i, n in enumerate(names)])
    append(lab, name, id=longs(*range(12)))
    for _, schema, _, entries in manifests(lab, name):
        part = next(f for f in next(f for f in schema["fields"] if f["name"] == "data_file")["type"]["fields"] if f["name"] == "partition")
        fields = part["type"]["fields"]
        assert [f["field-id"] for f in fields] == list(range(1000, 1008))
        assert len({f["name"] for f in fields}) == 8 and all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", f["name"]) for f in fields)
        for f, n in zip(fields, names):
            assert f.get("iceberg-field-name", f["name"]) == n
    t = catalog.load_table(name)
    for i in range(12):
        assert t.scan(row_filter=ex.EqualTo("id", i)).to_arrow()["id"].to_pylist() == [i]
    audit.clean(daemon, name)


@pytest.mark.parametrize("version", [2, 3])
def test_promoted_partitions_and_bounds(daemon, lab, catalog, version):
    """case BC-107: manifests that are rewritten after the promotion of a column hold its new type."""
    name = create(lab, "promoted%d" % version, [("k", "int"), ("f", "float"), ("d", "decimal(4, 1)")],
                  [(1, "k", "identity"), (2, "f", "identity"), (3, "d", "truncate[10]")], version)
    import decimal
    D = decimal.Decimal
    files, _ = append(lab, name, k=pa.array([7, 7, 8, -9], pa.int32()), f=pa.array([0.1, 0.1, -1.5, 2.5], pa.float32()),
                      d=pa.array([D("1.5"), D("1.7"), D("-99.9"), D("0.0")], pa.decimal128(4, 1)))
    gone = next(f for f in files if f["partition"][0]["value"] == struct.pack("<i", 8))
    with open(parquet.local_path(gone["path"]), "rb") as f:
        content = f.read()
    fields = [{"id": 1, "name": "k", "required": False, "type": "long"}, {"id": 2, "name": "f", "required": False, "type": "double"},
              {"id": 3, "name": "d", "required": False, "type": "decimal(20, 1)"}]
    update(lab, name, {"action": "add-schema", "schema": {"type": "struct", "fields": fields}}, {"action": "set-current-schema", "schema-id": -1})
    append(lab, name, k=longs(1 << 40), f=pa.array([1e300]), d=pa.array([D("123456789012.5")], pa.decimal128(20, 1)))
    count, sevens = 5, 2
    if version == 3:  # the old manifest is written anew without the file
        with lab.client() as c:
            head = catalog.load_table(name).metadata.current_snapshot_id
            two = next(f["path"] for f in files if f["record_count"] == 2)
            c.commit_once(name, kind="DELETE", deletes=[(gone["path"], [0]), (two, [1])], read_snapshot_id=head)
        count, sevens = 3, 1
        (row, schema, _, (vector,)), = manifests(lab, name, 1)
        assert list(vector["data_file"]["partition"].values()) == list(live(lab, name)[two]["partition"].values())
        assert vector["data_file"]["partition"]["k"] == 7 and len(row["partitions"][0]["lower_bound"]) == 8
        rows = {row["manifest_path"]: row for row, *_ in manifests(lab, name)}
        for row, schema, _, entries in manifests(lab, name):
            k, f, d = row["partitions"]
            assert len(k["lower_bound"]) == 8 and len(f["lower_bound"]) == 8, rows
            for e in entries:
                part = list(e["data_file"]["partition"].values())
                assert struct.unpack("<q", k["lower_bound"])[0] <= part[0] <= struct.unpack("<q", k["upper_bound"])[0]
    # A worker that began before: its file is of the old schema.
    old = {**gone, "path": gone["path"].replace(".parquet", "-again.parquet")}
    with open(parquet.local_path(old["path"]), "wb") as f:
        f.write(content)
    with lab.client() as c:
        c.commit_once(name, data_files=[old])
    held = live(lab, name)
    assert list(held[old["path"]]["partition"].values())[:2] == [8, -1.5]
    assert {len(b["value"]) for b in held[old["path"]]["lower_bounds"] if b["key"] == 1} == {4}
    t = catalog.load_table(name)
    assert len(t.scan().to_arrow()) == count + 1
    for value, n in ((7, sevens), (-9, 1), (1 << 40, 1)):
        assert len(t.scan(row_filter=ex.EqualTo("k", value), selected_fields=("k",)).to_arrow()) == n, value


def test_dates_that_became_timestamps(lab):
    """case BC-107, the promotion of version 3: days stay days."""
    name = create(lab, "days", [("d", "date"), ("id", "long")], [(1, "d_day", "day")])
    days = [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]
    files, o = append(lab, name, d=pa.array(days), id=longs(1, 2))
    update(lab, name, {"action": "add-schema", "schema": {"type": "struct", "fields": [
        {"id": 1, "name": "d", "required": False, "type": "timestamp"}, {"id": 2, "name": "id", "required": False, "type": "long"}]}},
        {"action": "set-current-schema", "schema-id": -1})
    append(lab, name, d=pa.array([datetime.datetime(1969, 12, 31, 23, 59)]), id=longs(3))
    with lab.client() as c:
        c.commit_once(name, kind="DELETE", deletes=[(files[1]["path"], [0])], read_snapshot_id=o.snapshot_id)
    parts = sorted(str(list(f["partition"].values())[0]) for f in live(lab, name).values())
    assert parts == ["1969-12-31", "1969-12-31"]
    assert all(len(b["value"]) in (4, 8) for f in live(lab, name).values() for b in f["lower_bounds"] if b["key"] == 1)


def test_case_of_formats(lab, catalog):
    """case BC-121"""
    name = create(lab, "formats", [("id", "long")])
    with lab.client() as c:
        info = c.table(name).info()
        files = [record(info, p, 1, format=f) for p, f in zip(blank(info["data_location"], 5), ("parquet", "Parquet", "orc", "avro", "PARQUET"))]
        c.commit_once(name, data_files=files)
        for bad in ("csv", "puffin", "", "parquet "):
            with refused("UNSUPPORTED"):
                c.commit_once(name, data_files=[record(info, blank(info["data_location"], 1)[0], 1, format=bad)])
    assert sorted(f["file_format"] for f in live(lab, name).values()) == ["AVRO", "ORC", "PARQUET", "PARQUET", "PARQUET"]
    assert catalog.load_table(name).scan().count() == 5


def test_null_partition_values(daemon, lab, catalog):
    """case BC-123: a null concerns its row and field alone, also in manifests that are written anew."""
    name = create(lab, "nulls", [("a", "long"), ("b", "string")], [(1, "a", "identity"), (2, "b", "identity")])
    files, o = append(lab, name, a=longs(1, None, 2, None, 3), b=pa.array(["x", "y", None, None, "z"]))
    with lab.client() as c:
        last = next(f for f in files if f["partition"][1]["value"] == b"z")
        c.commit_once(name, kind="DELETE", deletes=[(last["path"], [0])], read_snapshot_id=o.snapshot_id)
    parts = sorted((str(v) for v in (tuple(f["partition"].values()) for f in live(lab, name).values())))
    assert parts == sorted(["(1, 'x')", "(None, 'y')", "(2, None)", "(None, None)"])
    t = catalog.load_table(name)
    assert t.scan().count() == 4
    for f, n in ((ex.IsNull("a"), 2), (ex.IsNull("b"), 2), (ex.NotNull("a"), 2), (ex.EqualTo("a", 2), 1), (ex.EqualTo("b", "y"), 1)):
        assert t.scan(row_filter=f).to_arrow().num_rows == n, f
    audit.clean(daemon, name)


def test_milliseconds(daemon, lab, catalog):
    """case BC-125: bounds and partitions are in microseconds, and instants before 1970 round down."""
    name = create(lab, "millis", [("ts", "timestamp")], [(1, "d", "day"), (1, "h", "hour")], version=2)
    append(lab, name, ts=pa.array([-1, 0, 86400000, 1510871468123], pa.timestamp("ms")))
    found = {}
    for f in live(lab, name).values():
        low = struct.unpack("<q", next(b["value"] for b in f["lower_bounds"] if b["key"] == 1))[0]
        found[low] = (str(list(f["partition"].values())[0]), list(f["partition"].values())[1])
    assert found == {-1000: ("1969-12-31", -1), 0: ("1970-01-01", 0), 86400000000: ("1970-01-02", 24),
                     1510871468123000: ("2017-11-16", 419686)}
    t = catalog.load_table(name)
    assert t.scan(row_filter=ex.EqualTo("ts", "1969-12-31T23:59:59.999000")).to_arrow().num_rows == 1
    assert {s.summary.operation.value for s in t.metadata.snapshots} == {"append"}
    audit.clean(daemon, name)


def test_sort_orders(lab, catalog):
    """case BC-127: what a file states must be an order of the table; an equal one is not added again."""
    name = create(lab, "orders", [("id", "long"), ("s", "string")])
    order = {"order-id": 9, "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}
    for _ in range(2):
        update(lab, name, {"action": "add-sort-order", "sort-order": order}, {"action": "set-default-sort-order", "sort-order-id": -1})
        md = catalog.load_table(name).metadata
        assert md.default_sort_order_id == 1 and [o.order_id for o in md.sort_orders] == [0, 1]
    with lab.client() as c:
        info = c.table(name).info()
        paths = blank(info["data_location"], 4)
        with refused("BAD_REQUEST"):
            c.commit_once(name, data_files=[record(info, paths[0], 1, sort_order_id=7)])
        c.commit_once(name, data_files=[record(info, p, 1, sort_order_id=i) for p, i in zip(paths[1:], (0, 1, None))])
    assert {p: f["sort_order_id"] for p, f in live(lab, name).items()} == dict(zip(paths[1:], (0, 1, None)))


def point(*v):
    return struct.pack("<%dd" % len(v), *v)


def test_bounds_of_version_3_types(lab):
    """Geometries, geographies and variants: their bounds are stored as they came, and refused where they are none.
    case BC-120 (an inverted x of a geography stays), case BC-108"""
    name = create(lab, "spatial", [("id", "long"), ("g", "geometry"), ("h", "geography"), ("v", "variant"), ("u", "unknown"), ("b", "boolean"),
                                   ("d", "double"), ("n", "timestamp_ns"), ("x", "uuid")])
    inf = float("inf")
    low = {1: struct.pack("<q", -5), 2: point(1, 2), 3: point(170, -10), 4: b"\x01\x00\x00\x0c\x01", 6: b"\0", 7: struct.pack("<d", -inf),
           8: struct.pack("<q", -1001), 9: bytes([0x10]) + bytes(15)}
    high = {1: struct.pack("<q", 5), 2: point(3, 4), 3: point(-170, 10), 4: b"\x01\x00\x00\x0c\x02", 6: b"\x01", 7: struct.pack("<d", inf),
            8: struct.pack("<q", 1001), 9: bytes([0xf0]) + bytes(15)}
    def bounds(d):
        return [{"field_id": k, "value": v} for k, v in d.items()]
    with lab.client() as c:
        info = c.table(name).info()
        paths = blank(info["data_location"], 2)
        c.commit_once(name, data_files=[record(info, paths[0], 3, lower_bounds=bounds(low), upper_bounds=bounds(high), null_counts=[
            {"field_id": 5, "value": 3}], value_counts=[{"field_id": 5, "value": 3}])])
        for k, v in ((2, b""), (2, point(1)), (2, point(float("nan"), 1)), (2, point(5, 5)), (3, point(-180, 20)), (4, b""), (5, b""),
                     (6, b""), (6, b"\0\0"), (7, struct.pack("<d", float("nan"))), (8, bytes(4)), (9, bytes(15))):
            with refused("METRICS_INVALID"):
                c.commit_once(name, data_files=[record(info, paths[1], 3, lower_bounds=bounds({**low, k: v}), upper_bounds=bounds(high))])
    f = live(lab, name)[paths[0]]
    # Readers differ on the order of uuids: bounds that only one of the orders has are not stored.
    assert {b["key"]: b["value"] for b in f["lower_bounds"]} == {k: v for k, v in low.items() if k != 9}
    assert {b["key"]: b["value"] for b in f["upper_bounds"]} == {k: v for k, v in high.items() if k != 9}


def test_partitions_of_unknown_columns(daemon, lab):
    """A column of no type yet can be a source: its tuples are null until it gets a type, and old ones stay null."""
    name = create(lab, "unknowns", [("id", "long"), ("u", "unknown")], [(2, "p", "identity"), (2, "q", "void")])
    null = [{"field_id": 1000, "value": None}, {"field_id": 1001, "value": None}]
    with lab.client() as c:
        info = c.table(name).info()
        paths = blank(info["data_location"], 4)
        with refused("TUPLE_MISMATCH"):
            c.commit_once(name, data_files=[record(info, paths[0], 1, partition=[{"field_id": 1000, "value": b""}, null[1]])])
        o = c.commit_once(name, data_files=[record(info, p, 1, partition=null) for p in paths[:2]])
    update(lab, name, {"action": "add-schema", "schema": {"type": "struct", "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"}, {"id": 2, "name": "u", "required": False, "type": "string"}]}},
        {"action": "set-current-schema", "schema-id": -1})
    with lab.client() as c:
        # One file of each schema, and the first manifest written anew.
        c.commit_once(name, data_files=[record(info, paths[2], 1, partition=null)])
        c.commit_once(name, data_files=[record(info, paths[3], 1, schema_id=1, partition=[{"field_id": 1000, "value": b"x"}, null[1]])])
        c.commit_once(name, kind="DELETE", deletes=[(paths[0], [0])], read_snapshot_id=o.snapshot_id)
    assert {p: list(f["partition"].values()) for p, f in live(lab, name).items()} == {
        paths[1]: [None, None], paths[2]: [None, None], paths[3]: ["x", None]}


def test_sources_that_were_dropped(daemon, lab, catalog):
    """A spec of the past whose column is gone: its files are deleted from, and their manifests written anew, with the types they had."""
    import uuid
    name = create(lab, "dropped", [("id", "long"), ("a", "decimal(9, 2)"), ("u", "uuid"), ("s", "string")],
                  [(2, "a", "identity"), (3, "u", "identity"), (4, "s", "truncate[2]"), (4, "b", "bucket[4]")])
    import decimal
    files, o = append(lab, name, id=longs(1, 1, 2, 3), a=pa.array([decimal.Decimal(x) for x in ("-1.28", "-1.28", "7.00", "0.00")], pa.decimal128(9, 2)),
                      u=pa.array([uuid.UUID(int=i).bytes for i in (5, 5, 2**127, 7)], pa.binary(16)), s=pa.array(["xyz", "xyz", "é\U0001f600z", None]))
    before = {p: list(f["partition"].values()) for p, f in live(lab, name).items()}
    update(lab, name, {"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1},
           {"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}},
           {"action": "set-current-schema", "schema-id": -1})
    daemon.restart(kill=True)  # nothing is known of the old schema but what the files say
    two, gone = [next(f["path"] for f in files if f["record_count"] == n) for n in (2, 1)]
    with lab.client() as c:
        c.commit_once(name, kind="DELETE", deletes=[(two, [1])], read_snapshot_id=o.snapshot_id)
        c.commit_once(name, kind="DELETE", deletes=[(gone, [0])], read_snapshot_id=o.snapshot_id)
    append(lab, name, id=longs(9))
    after = {p: list(f["partition"].values()) for p, f in live(lab, name).items()}
    del before[gone]
    assert {p: v for p, v in after.items() if v} == before
    (_, _, _, entries), = manifests(lab, name, 1)
    assert [list(e["data_file"]["partition"].values()) for e in entries] == [before[two]]
    ids = sorted(r["id"] for r in audit.rows(daemon, name))
    assert len(ids) == 3 and ids[0] == 1 and ids[2] == 9
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == ids
    audit.clean(daemon, name)
