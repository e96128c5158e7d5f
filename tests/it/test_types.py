"""Every transform on every type it takes: tuples that workers stage, as two foreign readers see them.

PyIceberg computes what each tuple must be and prunes by it; fastavro shows what the manifests hold. A wrong
result prunes a file that a filter must find, so each value is looked for by filters of its own column.
"""

import datetime
import math
import os
import struct
import uuid

import pytest
from pyiceberg import expressions as ex
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DoubleType, FloatType

import frazil
from frazil import parquet
from support import audit
from support.edges import CASES, V3, make, rows_of, short, us, version_of
from support.foreign import read_avro
from support.lab import Lab, Peer, begin, fragment, ids

@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "types")


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


def ticks(kind, value):
    """What PyIceberg's transforms and literals take for a value of the table."""
    if value is None or kind in V3:
        return value
    if kind == "date":
        return (value - datetime.date(1970, 1, 1)).days
    if kind == "time":
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    if kind.startswith("timestamp"):
        return (value.replace(tzinfo=None) - us(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    return value


def data_manifests(table):
    """(row of the list, header, entries) of the current snapshot's manifests."""
    _, _, rows = read_avro(table.current_snapshot().manifest_list)
    return [(r, *read_avro(r["manifest_path"])) for r in rows if r["content"] == 0]


LOGICAL = {
    "date": ("int", {"logicalType": "date"}), "time": ("long", {"logicalType": "time-micros"}),
    "timestamp": ("long", {"logicalType": "timestamp-micros", "adjust-to-utc": False}),
    "timestamptz": ("long", {"logicalType": "timestamp-micros", "adjust-to-utc": True}),
    "timestamp_ns": ("long", {"logicalType": "timestamp-nanos", "adjust-to-utc": False}),
    "timestamptz_ns": ("long", {"logicalType": "timestamp-nanos", "adjust-to-utc": True}),
    "uuid": ("fixed", {"logicalType": "uuid", "size": 16}), "fixed[3]": ("fixed", {"size": 3}),
    "decimal(9, 2)": ("fixed", {"logicalType": "decimal", "precision": 9, "scale": 2, "size": 4}),
    "decimal(38, 10)": ("fixed", {"logicalType": "decimal", "precision": 38, "scale": 10, "size": 16}),
    "binary": ("bytes", {}), "string": ("string", {}), "boolean": ("boolean", {}), "int": ("int", {}), "long": ("long", {}),
    "float": ("float", {}), "double": ("double", {}),
}


def raw(kind, v):
    """A partition value that fastavro read, as PyIceberg's transforms give it."""
    if isinstance(v, datetime.datetime):
        v = v.replace(tzinfo=None) - us(1970, 1, 1)
        return v // datetime.timedelta(microseconds=1)
    if kind == "uuid" and isinstance(v, bytes):
        return uuid.UUID(bytes=v)
    if isinstance(v, (datetime.date, datetime.time)):
        return ticks("date" if isinstance(v, datetime.date) else "time", v)
    return v


def check_avro_type(kind, avro):
    """The stored type of a partition value: fixed where the table spec says fixed. case BC-129, case BC-106"""
    avro = next(t for t in avro if t != "null")
    name, more = LOGICAL[kind]
    have = avro if isinstance(avro, dict) else {"type": avro}
    assert have["type"] == name, (kind, avro)
    for key, value in more.items():
        assert have[key] == value, (kind, avro)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) and math.isnan(b)
    return a == b


def check_summaries(kinds, row, tuples):
    """Bounds of the list enclose the values, cut or not; nulls and NaN are told. case BC-098, case BC-100, case BC-109"""
    summaries = row["partitions"]
    if "uuid" in map(str, kinds) and summaries is None:
        return
    for i, (kind, s) in enumerate(zip(kinds, summaries)):
        values = [t[i] for t in tuples]
        floats = isinstance(kind, (FloatType, DoubleType))
        nan = [v for v in values if floats and v is not None and math.isnan(v)]
        rest = [v for v in values if v is not None and not (floats and math.isnan(v))]
        assert s["contains_null"] == (None in values), (kind, s)
        assert s["contains_nan"] == bool(nan), (kind, s)
        if not rest:
            assert s["lower_bound"] is None and s["upper_bound"] is None, (kind, s)
            continue
        low, high = from_bytes(kind, s["lower_bound"]), from_bytes(kind, s["upper_bound"])
        key = lambda v: v.bytes if isinstance(v, uuid.UUID) else v  # noqa: E731
        assert key(low) <= min(map(key, rest)) and key(high) >= max(map(key, rest)), (kind, low, high, rest)
        if floats and 0.0 in rest:
            assert (low, math.copysign(1, low)) != (0.0, 1.0) and (high, math.copysign(1, high)) != (0.0, -1.0)


def filters(kind, value):
    """Filters that the value passes. PyIceberg 0.12 finds no infinite floats, and reads doubles in tuples as floats."""
    if value is None:
        return [ex.IsNull("v")]
    if kind in ("float", "double") and math.isnan(value):
        return [ex.IsNaN("v")]
    if kind in ("float", "double") and (math.isinf(value) or abs(value) in (1e300, 5e-324)):
        return []
    if kind == "uuid":  # PyIceberg 0.12 compares its literal's bytes with the tuple's UUID
        return [ex.NotNull("v")]
    if kind == "boolean":
        return [ex.EqualTo("v", value)]
    literal = value
    if kind in ("date", "time") or kind.startswith("timestamp"):
        literal = value.isoformat()
    return [ex.EqualTo("v", literal), ex.And(ex.GreaterThanOrEqual("v", literal), ex.LessThanOrEqual("v", literal)),
            ex.In("v", [literal])]


@pytest.mark.parametrize("kind", list(CASES))
def test_transforms(daemon, lab, catalog, kind):
    name, all_transforms = make(lab.rest, lab.space, short(kind), kind)
    values, rows = rows_of(kind)
    with lab.client() as c:
        table = c.table(name)
        info = table.info()
        # Two commits, the greatest values first, so that bounds of the second list are made of both.
        for part in (rows.slice(len(values) // 2), rows.slice(0, len(values) // 2)):
            c.commit_once(name, data_files=parquet.write(part, info))
        files = parquet.write(rows.slice(0, 1), info)
        refuse(lab, table, kind, all_transforms, parquet.write(rows.slice(1), info))
        for f in files:
            os.unlink(parquet.local_path(f["path"]))
    t = catalog.load_table(name)
    source = t.schema().find_field("v").field_type
    bound = [parse_transform(x) for x in all_transforms]
    kinds = [b.result_type(source) for b in bound]
    want = [tuple(None if v is None or b.transform(source)(ticks(kind, v)) is None else
                  b.transform(source)(ticks(kind, v)) for b in bound) for v in values]
    # Each file holds rows of one tuple, which is what PyIceberg computes.
    manifests = data_manifests(t)
    audit.clean(daemon, name)
    rows_at = {}
    for r in audit.rows(daemon, name):
        rows_at[r["k"]] = r["path"]
    assert sorted(rows_at) == list(range(len(values)))
    stored = {e["data_file"]["file_path"]: tuple(raw(kind, v) for v in e["data_file"]["partition"].values())
              for _, _, _, entries in manifests for e in entries}
    for k, tup in enumerate(want):
        for i, w in enumerate(tup):
            assert same(stored[rows_at[k]][i], w), (kind, all_transforms[i], values[k], stored[rows_at[k]][i], w)
    for row, schema, _, entries in manifests:
        fields = next(f["type"] for f in next(
            f["type"] for f in schema["fields"] if f["name"] == "data_file")["fields"] if f["name"] == "partition")["fields"]
        check_avro_type(kind, fields[0]["type"])
        check_summaries(kinds, row, [want[k] for k, path in rows_at.items()
                                     if path in {e["data_file"]["file_path"] for e in entries}])
    if version_of(kind) == 3:  # PyIceberg does not read manifests with nanoseconds in the tuple
        return
    planned = {task.file.file_path for task in t.scan().plan_files()}
    for k, v in enumerate(values):
        for f in filters(kind, v):
            found = {task.file.file_path for task in t.scan(row_filter=f).plan_files()}
            assert rows_at[k] in found, (kind, v, f)
            assert len(found) < len(planned), (kind, v, f)
    got = t.scan().to_arrow().sort_by("k")
    assert got["k"].to_pylist() == list(range(len(values)))
    have = [v.bytes if isinstance(v, uuid.UUID) else v for v in got["v"].to_pylist()]
    assert all(same(a, b.bytes if isinstance(b, uuid.UUID) else b) for a, b in zip(have, values)), have


WIDTHS = {"boolean": 1, "int": 4, "date": 4, "float": 4, "long": 8, "double": 8, "time": 8, "timestamp": 8, "timestamptz": 8,
          "timestamp_ns": 8, "timestamptz_ns": 8, "uuid": 16, "fixed[3]": 3}


def bad_values(kind):
    """Bytes that are no value of the type."""
    if kind in WIDTHS:
        yield from (bytes(WIDTHS[kind] - 1), bytes(WIDTHS[kind] + 1), b"")
    elif kind.startswith("decimal"):
        yield from (b"", b"\x01" + bytes(4 if "9" in kind.split(",")[0] else 16))
    elif kind == "string":
        yield from (b"\xff", b"\xc3", b"\xed\xa0\x80")
    if kind == "time":
        yield struct.pack("<q", 86400 * 10**6)
        yield struct.pack("<q", -1)


def refuse(lab, table, kind, transforms, files):
    """Tuples and bounds that the type or a transform cannot have; the transaction itself goes on."""
    good = next(f for f in files if all(p["value"] is not None for p in f["partition"] if p["field_id"] != 1001))
    bad = []
    for i, text in enumerate(transforms):
        def changed(value, i=i):
            part = [dict(p) for p in good["partition"]]
            part[i]["value"] = value
            return {**good, "partition": part}
        result = kind if text in ("identity", "void") or text.startswith("truncate") else "date" if text == "day" else "int"
        if text == "void":
            bad.append((changed(good["partition"][0]["value"]), "TUPLE_MISMATCH", "partition[%d]" % i))
            continue
        bad += [(changed(v), "TUPLE_MISMATCH", "partition[%d]" % i) for v in bad_values(result)]
        impossible = {"bucket[5]": [struct.pack("<i", 5), struct.pack("<i", -1)],
                      "truncate[10]": [struct.pack("<i" if kind == "int" else "<q", 7)],
                      "truncate[50]": [b"\x07"], "truncate[3]": [b"abcd"]}.get(text, [])
        bad += [(changed(v), "TUPLE_MISMATCH", "partition[%d]" % i) for v in impossible]
    for v in bad_values(kind):
        if kind == "fixed[3]" and len(v) == 2:  # a cut bound
            continue
        for name in ("lower_bounds", "upper_bounds"):
            bad.append(({**good, name: [{"field_id": 2, "value": v}]}, "METRICS_INVALID", name + "[0]"))
    if kind in ("float", "double"):
        nan = struct.pack("<f" if kind == "float" else "<d", math.nan)
        for name in ("lower_bounds", "upper_bounds"):
            bad.append(({**good, name: [{"field_id": 2, "value": nan}]}, "METRICS_INVALID", name + "[0]"))
    low, high = [{"field_id": 1, "value": struct.pack("<q", 9)}], [{"field_id": 1, "value": struct.pack("<q", 3)}]
    bad.append(({**good, "lower_bounds": low, "upper_bounds": high}, "METRICS_INVALID", "lower_bounds[0]"))
    peer = Peer(lab.daemon)
    me = ids(peer.call("begin", begin(table)))
    for n, (record, status, field) in enumerate(bad):
        with pytest.raises(frazil.Error) as e:
            peer.call("stage", {**me, "fragment": fragment("f%d" % n, [record])})
        assert e.value.name == status and field in e.value.field, (kind, record, e.value, e.value.field)
    peer.call("abort", {**me, "reason": ""})
