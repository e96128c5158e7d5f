"""Data files of the Python client: field ids, types, metrics and partition tuples against PyIceberg."""

import datetime
import decimal
import json
import os
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.io.pyarrow import (compute_statistics_plan,
                                  data_file_statistics_from_parquet_metadata,
                                  parquet_path_to_id_mapping, pyarrow_to_schema)
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.utils.datetime import micros_to_timestamp

import frazil
from frazil import parquet, partition
from frazil.schema import Type

COLUMNS = [
    (1, "id", "long", True), (2, "name", "string", False), (3, "score", "double", False),
    (4, "ratio", "float", False), (5, "ok", "boolean", False), (6, "day", "date", False),
    (7, "at", "timestamptz", False), (8, "local", "timestamp", False), (9, "clock", "time", False),
    (10, "price", "decimal(9, 2)", False), (11, "big", "decimal(30, 4)", False),
    (12, "key", "uuid", False), (13, "code", "fixed[4]", False), (14, "raw", "binary", False),
    (15, "n", "int", False),
]
NESTED = [
    {"id": 20, "name": "place", "required": False, "type": {"type": "struct", "fields": [
        {"id": 21, "name": "city", "required": True, "type": "string"},
        {"id": 22, "name": "zip", "required": False, "type": "int"}]}},
    {"id": 23, "name": "tags", "required": False, "type": {
        "type": "list", "element-id": 24, "element": "string", "element-required": False}},
    {"id": 25, "name": "attrs", "required": False, "type": {
        "type": "map", "key-id": 26, "key": "string", "value-id": 27, "value": "long",
        "value-required": False}},
]


def field(i, name, kind, required, **more):
    return {"id": i, "name": name, "required": required, "type": kind, **more}


def info_of(folder, fields, spec=(), version=3):
    return {"schema_json": json.dumps({"type": "struct", "schema-id": 4, "fields": list(fields)}),
            "spec_json": json.dumps({"spec-id": 7, "fields": list(spec)}),
            "data_location": f"file://{folder}/data", "format_version": version}


ALL = [field(*c) for c in COLUMNS] + NESTED


def rows(n=50):
    rnd = random.Random(11)
    utc = datetime.timezone.utc

    def maybe(v):
        return None if rnd.random() < 0.2 else v

    out = []
    for i in range(n):
        t = datetime.datetime(1960 + i, 3, 1 + i % 28, i % 24, 5, 6, 789)
        out.append({
            "id": i * 7 - 100, "name": maybe("a long text of more than sixteen " + chr(97 + i % 26)),
            "score": maybe(rnd.choice([float("nan"), 0.0, -0.0, 1.5, -3.25])),
            "ratio": maybe(float(i)), "ok": maybe(i % 2 == 0), "day": maybe(t.date()),
            "at": maybe(t.replace(tzinfo=utc)), "local": maybe(t), "clock": maybe(t.time()),
            "price": maybe(decimal.Decimal(i * 101 - 999).scaleb(-2)),
            "big": maybe(decimal.Decimal(i - 20) * 10**20), "key": maybe(uuid.UUID(int=i << 90).bytes),
            "code": maybe(bytes([i, 255 - i, 0, 1])), "raw": maybe(bytes([255] * 15 + [i] * 9)),
            "n": maybe(-i),
            "place": maybe({"city": f"c{i:02d}", "zip": maybe(i)}),
            "tags": maybe(["x", None][: i % 3]), "attrs": maybe([("k", i)]),
        })
    return out


def table_of(fields, data):
    schema = frazil.parquet.sch.Schema(json.dumps({"schema-id": 0, "fields": fields})).arrow()
    return pa.Table.from_pylist(data, schema=pa.schema(
        [pa.field(f.name, f.type) for f in schema]))


def local(record):
    assert record["path"].startswith("file:///")
    return record["path"][7:]


def iceberg_schema():
    return Schema.model_validate({"type": "struct", "schema-id": 4, "fields": ALL})


def as_map(metrics):
    return {m["field_id"]: m["value"] for m in metrics}


def test_types_and_field_ids(tmp_path):
    (f,) = parquet.write(table_of(ALL, rows()), info_of(tmp_path, ALL))
    assert f["schema_id"] == 4 and f["spec_id"] == 7 and f["partition"] == []
    assert f["file_size"] == os.stat(local(f)).st_size
    back = pq.ParquetFile(local(f))
    # PyIceberg derives the same schema from the file alone: ids, names, types, nullability.
    assert pyarrow_to_schema(back.schema_arrow).as_struct() == iceberg_schema().as_struct()
    physical = {back.schema.column(i).path: back.schema.column(i)
                for i in range(len(back.schema))}
    # Table spec, Appendix A "Parquet": small decimals are integers, UUIDs are annotated.
    assert physical["price"].physical_type == "INT32"
    assert physical["big"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert physical["key"].logical_type.type == "UUID" and physical["key"].length == 16
    assert json.loads(physical["at"].logical_type.to_json())["isAdjustedToUTC"] is True
    assert json.loads(physical["local"].logical_type.to_json())["isAdjustedToUTC"] is False
    read = back.read()
    want = table_of(ALL, rows())
    for name in want.column_names:
        got = read.column(name)
        if name == "key":
            got = pa.chunked_array([c.storage for c in got.chunks])
        if name == "score":
            assert str(got.to_pylist()) == str(want.column(name).to_pylist())
        else:
            assert got.to_pylist() == want.column(name).to_pylist(), name


def test_metrics(tmp_path):
    data = rows()
    (f,) = parquet.write(table_of(ALL, data), info_of(tmp_path, ALL))
    schema = iceberg_schema()
    stats = data_file_statistics_from_parquet_metadata(
        pq.read_metadata(local(f)), compute_statistics_plan(schema, {}),
        parquet_path_to_id_mapping(schema))
    oracle = stats.to_serialized_dict()
    assert f["record_count"] == stats.record_count == 50
    assert f["split_offsets"] == stats.split_offsets
    assert as_map(f["column_sizes"]) == stats.column_sizes
    repeated = {24, 26, 27}
    assert as_map(f["value_counts"]) == {
        k: v for k, v in stats.value_counts.items() if k not in repeated}
    assert as_map(f["null_counts"]) == {
        k: v for k, v in stats.null_value_counts.items() if k not in repeated}
    # From the rows themselves: what NaN counts and bounds must be.
    nan = sum(1 for r in data if r["score"] is not None and r["score"] != r["score"])
    assert as_map(f["nan_counts"]) == {3: nan, 4: 0} and nan > 0
    low, high = as_map(f["lower_bounds"]), as_map(f["upper_bounds"])
    for i, name, kind, _ in COLUMNS:
        values = [r[name] for r in data if r[name] is not None and r[name] == r[name]]
        if name in ("name", "raw"):
            continue
        field_type = schema.find_type(i)
        if name == "key":
            assert low[i] == min(values) and high[i] == max(values)
            continue
        if name == "score":
            assert from_bytes(field_type, low[i]) == min(values) == -3.25
            assert from_bytes(field_type, high[i]) == max(values)
            continue
        if name in ("price", "big"):
            assert from_bytes(field_type, low[i]) == min(values)
            assert from_bytes(field_type, high[i]) == max(values)
            continue
        # PyIceberg's statistics come from the file's own footer.
        if i in oracle["lower_bounds"]:
            assert low[i] == oracle["lower_bounds"][i] and high[i] == oracle["upper_bounds"][i], name
        assert from_bytes(field_type, low[i]) == from_bytes(field_type, to_bytes(
            field_type, min(values))), name
    assert low[2] == b"a long text of m" and high[2] == b"a long text of n"
    assert low[14] == bytes([255] * 15 + [min(r["raw"][15] for r in data if r["raw"])])
    assert high[14][:15] == bytes([255] * 15) and len(high[14]) == 16
    assert high[14] > max(r["raw"] for r in data if r["raw"])
    places = [r["place"] for r in data if r["place"]]
    assert low[21] == min(p["city"] for p in places).encode()
    assert not repeated & set(low)


@pytest.mark.parametrize("text,want", [
    ("short", "short"), ("x" * 16, "x" * 16), ("x" * 17, "x" * 15 + "y"),
    ("x" * 15 + "\ud7ff" + "z", "x" * 15 + "\ue000"),
    ("x" * 15 + "\U0010ffff" + "z", "x" * 14 + "y"), ("\U0010ffff" * 17, None)])
def test_upper_bound_of_text(text, want):
    assert parquet._round_up_text(text) == want


def test_zero_and_nan_bounds():
    double = Type("double")
    low, high = parquet.bounds(double, pa.array([0.0, 0.0]))
    assert low == bytes(7) + b"\x80" and high == bytes(8)
    assert parquet.bounds(double, pa.array([], pa.float64())) == (None, None)
    assert parquet._round_up_bytes(b"\xff" * 20) is None


def test_write_default(tmp_path):
    defaults = [
        field(1, "id", "long", True), field(2, "a", "int", True, **{"write-default": 5}),
        field(3, "b", "string", False, **{"write-default": "x", "initial-default": "y"}),
        field(4, "c", "date", True, **{"write-default": "2024-02-29"}),
        field(5, "d", "timestamptz", True, **{"write-default": "2024-02-29T01:02:03.5+00:00"}),
        field(6, "e", "timestamp_ns", True, **{"write-default": "1969-12-31T23:59:59.999999999"}),
        field(7, "f", "uuid", True, **{"write-default": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}),
        field(8, "g", "binary", True, **{"write-default": "00ff"}),
        field(9, "h", "decimal(9, 2)", True, **{"write-default": "14.20"}),
        field(10, "i", {"type": "list", "element-id": 11, "element": "int",
                        "element-required": True}, True, **{"write-default": [1, 2]}),
        field(12, "j", "string", False), field(13, "k", "time", True,
                                              **{"write-default": "22:31:08.123456"}),
        field(14, "l", "variant", False),
    ]
    (f,) = parquet.write(pa.table({"id": [1, 2]}), info_of(tmp_path, defaults))
    got = pq.read_table(local(f))
    assert "l" not in got.column_names
    utc = datetime.timezone.utc
    want = {"id": 1, "a": 5, "b": "x", "c": datetime.date(2024, 2, 29),
            "d": datetime.datetime(2024, 2, 29, 1, 2, 3, 500000, utc),
            "f": uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "g": b"\0\xff",
            "h": decimal.Decimal("14.20"), "i": [1, 2], "j": None,
            "k": datetime.time(22, 31, 8, 123456)}
    first = got.drop_columns(["e"]).to_pylist()[0]
    assert {k: v for k, v in first.items()} == want
    assert got.column("e").cast(pa.int64()).to_pylist() == [-1, -1]
    # A column that is there is taken as it is, null included.
    (f,) = parquet.write(pa.table({"id": [3], "b": pa.array([None], pa.string())}),
                         info_of(tmp_path, defaults))
    assert pq.read_table(local(f)).column("b").to_pylist() == [None]


@pytest.mark.parametrize("table,match", [
    ({"id": [1], "extra": [1]}, "extra"),
    ({"name": ["x"]}, "id"),
    ({"id": [1, None]}, "nulls"),
    ({"id": [1.5]}, "id"),
    ({"id": ["1"]}, "id"),
    ({"id": [1], "n": [2**40]}, "n"),
    ({"id": [1], "name": [5]}, "name"),
    ({"id": [1], "local": pa.array([0], pa.timestamp("us", "UTC"))}, "zones"),
    ({"id": [1], "price": [decimal.Decimal("1.234")]}, "price"),
    ({"id": [1], "code": [b"abc"]}, "code"),
    ({"id": [1], "ratio": pa.array([0.1], pa.float64())}, "ratio"),
    ({"id": [1], "place": [{"zip": 1}]}, "place.city"),
    ({"id": [1], "place": [{"city": None}]}, "place.city"),
    ({"id": [1], "place": [{"city": "x", "street": "y"}]}, "place.street"),
])
def test_data_that_does_not_fit(tmp_path, table, match):
    with pytest.raises(frazil.SchemaError, match=match):
        parquet.write(pa.table(table), info_of(tmp_path, ALL))
    assert not os.path.exists(tmp_path / "data") or not os.listdir(tmp_path / "data")


def test_nested_nulls_and_slices(tmp_path):
    data = table_of(ALL, rows()).slice(10, 20)
    (f,) = parquet.write(data, info_of(tmp_path, ALL))
    got = pq.read_table(local(f))
    for name in ("place", "tags", "attrs", "id"):
        assert got.column(name).to_pylist() == data.column(name).to_pylist()


def test_row_ids(tmp_path):
    fields = [field(1, "id", "long", True)]
    (f,) = parquet.write(pa.table({"id": [1, 2, 3]}), info_of(tmp_path, fields),
                         row_ids=[100, None, 7])
    assert f["has_row_ids"] and f["new_row_count"] == 1 and f["updated_row_count"] == 2
    read = pq.ParquetFile(local(f)).schema_arrow
    # Reserved field ids of the table spec.
    assert read.field("_row_id").metadata[b"PARQUET:field_id"] == b"2147483540"
    assert read.field("_last_updated_sequence_number").metadata[b"PARQUET:field_id"] == \
        b"2147483539"
    got = pq.read_table(local(f))
    assert got.column("_row_id").to_pylist() == [100, None, 7]
    assert got.column("_last_updated_sequence_number").to_pylist() == [None] * 3
    assert set(as_map(f["value_counts"])) == {1}
    with pytest.raises(frazil.SchemaError):
        parquet.write(pa.table({"id": [1]}), info_of(tmp_path, fields, version=2), row_ids=[1])
    with pytest.raises(frazil.SchemaError):
        parquet.write(pa.table({"id": [1]}), info_of(tmp_path, fields), row_ids=[1, 2])


TRANSFORMS = [
    ("long", "identity"), ("string", "identity"), ("boolean", "identity"), ("date", "identity"),
    ("decimal(9, 2)", "identity"), ("double", "identity"),
    ("int", "bucket[16]"), ("long", "bucket[16]"), ("string", "bucket[7]"), ("date", "bucket[16]"),
    ("timestamptz", "bucket[16]"), ("timestamp", "bucket[5]"), ("time", "bucket[16]"),
    ("decimal(9, 2)", "bucket[16]"), ("uuid", "bucket[16]"), ("binary", "bucket[16]"),
    ("fixed[4]", "bucket[16]"),
    ("int", "truncate[10]"), ("long", "truncate[10]"), ("string", "truncate[3]"),
    ("decimal(9, 2)", "truncate[50]"), ("binary", "truncate[2]"),
    ("date", "year"), ("date", "month"), ("date", "day"), ("timestamp", "year"),
    ("timestamptz", "month"), ("timestamp", "day"), ("timestamptz", "hour"), ("string", "void"),
]


@pytest.mark.parametrize("kind,transform", TRANSFORMS)
def test_transforms(tmp_path, kind, transform):
    column = next(c for c in COLUMNS if c[2] == kind)
    fields = [field(1, "id", "long", True)]
    if column[0] != 1:
        fields.append(field(*column))
    spec = [{"source-id": column[0], "field-id": 1000, "name": "p", "transform": transform}]
    data = rows(49) + [dict.fromkeys(r, None) | {"id": 999} for r in rows(1)]
    names = [f["name"] for f in fields]
    table = table_of(fields, [{k: r[k] for k in names} for r in data])
    files = parquet.write(table, info_of(tmp_path, fields, spec))
    oracle = parse_transform(transform)
    source = Schema.model_validate({"type": "struct", "fields": fields}).find_type(column[0])
    result = oracle.result_type(source)
    apply = oracle.transform(source)
    seen = []
    for f in files:
        ((value),) = [p["value"] for p in f["partition"]]
        assert f["partition"][0]["field_id"] == 1000
        got = pq.read_table(local(f))
        # PyIceberg transforms its internal numbers of dates and times.
        column_data = got.column(column[1])
        if hasattr(column_data.type, "storage_type"):
            column_data = pa.chunked_array([c.storage for c in column_data.chunks])
        internal = parquet.sch.raw_numbers(column_data).to_pylist()
        for v in internal:
            v = uuid.UUID(bytes=v) if kind == "uuid" and v is not None else v
            want = apply(v)
            if want is None:
                assert value is None
            elif isinstance(want, float):
                assert str(from_bytes(result, value)) == str(want)
            else:
                assert value == to_bytes(result, want), (v, want)
        assert len(internal) == f["record_count"]
        seen += got.column("id").to_pylist()
    assert sorted(seen) == sorted(r["id"] for r in data)
    tuples = [f["partition"][0]["value"] for f in files]
    assert len(tuples) == len(set(tuples))


# Table spec, Appendix B "32-bit Hash Requirements".
@pytest.mark.parametrize("kind,value,want", [
    ("int", 34, 2017239379), ("long", 34, 2017239379),
    ("decimal(9, 2)", decimal.Decimal("14.20"), -500754589),
    ("date", 17486, -653330422), ("time", 81068000000, -662762989),
    ("timestamp", 1510871468000000, -2047944441),
    ("timestamp_ns", 1510871468000001001, -1207196810),
    ("string", "iceberg", 1210000089),
    ("uuid", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
    ("fixed[4]", b"\0\1\2\3", -188683207), ("binary", b"\0\1\2\3", -188683207),
])
def test_hash(kind, value, want):
    assert partition.bucket_hash(Type(kind), value) == want


def test_several_partition_fields(tmp_path):
    fields = [field(1, "id", "long", True), field(2, "name", "string", False), NESTED[0]]
    spec = [{"source-id": 2, "field-id": 1000, "name": "name", "transform": "identity"},
            {"source-id": 22, "field-id": 1001, "name": "zip", "transform": "bucket[2]"}]
    data = [{"id": i, "name": "ab"[i % 2] if i % 5 else None,
             "place": {"city": "x", "zip": i % 7} if i % 3 else None} for i in range(60)]
    files = parquet.write(table_of(fields, data), info_of(tmp_path, fields, spec))
    zips = parse_transform("bucket[2]").transform(
        Schema.model_validate({"type": "struct", "fields": fields}).find_type(22))
    want = {}
    for r in data:
        key = (r["name"], zips(r["place"]["zip"]) if r["place"] else None)
        want.setdefault(key, []).append(r["id"])
    got = {}
    for f in files:
        name, bucket = [p["value"] for p in f["partition"]]
        key = (name.decode() if name is not None else None,
               int.from_bytes(bucket, "little") if bucket is not None else None)
        assert key not in got
        got[key] = pq.read_table(local(f)).column("id").to_pylist()
    assert got == want


def test_unknown_transform_and_empty(tmp_path):
    fields = [field(1, "id", "long", True)]
    spec = [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "zorder"}]
    with pytest.raises(frazil.SchemaError):
        parquet.write(pa.table({"id": [1]}), info_of(tmp_path, fields, spec))
    assert parquet.write(pa.table({"id": pa.array([], pa.int64())}),
                         info_of(tmp_path, fields)) == []


def test_locations():
    assert parquet.local_path("file:///a/b") == "/a/b"
    assert parquet.local_path("file:/a/b") == "/a/b"
    assert parquet.local_path("/a/b") == "/a/b"
    assert parquet.local_path("s3://bucket/b") is None
    assert micros_to_timestamp(0).year == 1970
