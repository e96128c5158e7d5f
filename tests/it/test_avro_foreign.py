"""Manifests between frazil's codec and PyIceberg, both ways; and Java, where there is one.

frazil's side is tests/tools/avro_tool.c: `rewrite` encodes, `dump` decodes. The expected values of
the first direction are what the Java library read from its own files (tests/golden/manifests).
"""

import json
import os
import pathlib
import subprocess

import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, read_manifest_list,
    write_manifest, write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform, DayTransform, IdentityTransform, TruncateTransform, VoidTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType,
    LongType, NestedField, StringType, TimestampType, TimestamptzType, TimeType, UUIDType,
)

TOP = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = TOP / "tests/golden/manifests"


@pytest.fixture(scope="module")
def tool():
    build = os.path.dirname(os.environ.get("FRAZILD", "build/gcc/frazild"))
    path = os.path.join(build, "tools/avro_tool")
    name = os.path.basename(build).split("-")
    settings = ["CC=" + name[0]] + ["SAN=" + s for s in name[1:2]]
    subprocess.run(["make", "-s", path] + settings, cwd=TOP, check=True)

    def run(*args):
        done = subprocess.run([TOP / path, *map(str, args)], cwd=TOP, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


def pairs(mapping):
    return [x for k in sorted(mapping or {}) for x in (k, mapping[k])]


def hexed(mapping):
    return [x.hex() if isinstance(x, bytes) else x for x in pairs(mapping)]


def entry_of(e, types):
    """A PyIceberg entry in the form of the golden JSON."""
    f = e.data_file
    tuple_ = [None if v is None else to_bytes(t, v).hex() for t, v in zip(types, f.partition, strict=True)]
    return {
        "status": e.status.value, "snapshot_id": e.snapshot_id, "sequence_number": e.sequence_number,
        "file_sequence_number": e.file_sequence_number, "content": int(f.content),
        "file_path": f.file_path, "file_format": f.file_format.value, "partition": tuple_,
        "record_count": f.record_count, "file_size_in_bytes": f.file_size_in_bytes,
        "column_sizes": pairs(f.column_sizes), "value_counts": pairs(f.value_counts),
        "null_value_counts": pairs(f.null_value_counts),
        "nan_value_counts": pairs(f.nan_value_counts), "lower_bounds": hexed(f.lower_bounds),
        "upper_bounds": hexed(f.upper_bounds),
        "key_metadata": f.key_metadata.hex() if f.key_metadata else None,
        "split_offsets": f.split_offsets or [], "equality_ids": f.equality_ids or [],
        "sort_order_id": f.sort_order_id,
    }


def row_of(m):
    parts = [{"contains_null": s.contains_null, "contains_nan": s.contains_nan,
              "lower_bound": None if s.lower_bound is None else s.lower_bound.hex(),
              "upper_bound": None if s.upper_bound is None else s.upper_bound.hex()}
             for s in m.partitions or []]
    return {
        "partition_spec_id": m.partition_spec_id, "content": int(m.content),
        "sequence_number": m.sequence_number, "min_sequence_number": m.min_sequence_number,
        "added_snapshot_id": m.added_snapshot_id, "added_files_count": m.added_files_count,
        "existing_files_count": m.existing_files_count,
        "deleted_files_count": m.deleted_files_count, "added_rows_count": m.added_rows_count,
        "existing_rows_count": m.existing_rows_count, "deleted_rows_count": m.deleted_rows_count,
        "partitions": parts,
    }


# Ours tell both zeros where there is one, since readers disagree about their order; Java tells the one that it saw.
NEGATIVE_ZERO, ZERO = "0000000000000080", "0000000000000000"


def same(want, got, where):
    for key, value in got.items():
        if key == "partitions" and want[key]:
            # Only floats have NaN.
            want[key] = [{**p, "upper_bound": ZERO} if p["contains_nan"] and p["upper_bound"] == NEGATIVE_ZERO else p for p in want[key]]
        assert want[key] == value, (where, key)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_ours(tool, tmp_path, version):
    tool("rewrite", GOLDEN / f"v{version}-list.avro", tmp_path)
    golden = json.loads((GOLDEN / f"v{version}.json").read_text())
    schema = Schema(**golden["schema"])
    specs = {s["spec-id"]: PartitionSpec(**s) for s in golden["specs"]}
    io = PyArrowFileIO()
    rows = list(read_manifest_list(io.new_input(str(tmp_path / f"v{version}-list.avro"))))
    assert len(rows) == len(golden["rows"]) == (2 if version == 1 else 3)
    for want, m in zip(golden["rows"], rows):
        same(want, row_of(m), m.manifest_path)
        assert m.manifest_length == os.path.getsize(m.manifest_path)
        if version == 3 and m.partition_spec_id == 3:
            continue  # nanoseconds in the tuple: PyIceberg does not know their Avro type
        types = [f.field_type for f in specs[m.partition_spec_id].partition_type(schema).fields]
        entries = m.fetch_manifest_entry(io, discard_deleted=False)
        assert len(entries) == len(want["entries"])
        for i, (expected, e) in enumerate(zip(want["entries"], entries)):
            same(expected, entry_of(e, types), (m.manifest_path, i))


SCHEMA = Schema(
    NestedField(1, "b", BooleanType(), required=False),
    NestedField(2, "i", IntegerType(), required=False),
    NestedField(3, "l", LongType(), required=False),
    NestedField(4, "f", FloatType(), required=False),
    NestedField(5, "d", DoubleType(), required=False),
    NestedField(6, "dt", DateType(), required=False),
    NestedField(7, "t", TimeType(), required=False),
    NestedField(8, "ts", TimestampType(), required=False),
    NestedField(9, "tz", TimestamptzType(), required=False),
    NestedField(10, "s", StringType(), required=False),
    NestedField(11, "u", UUIDType(), required=False),
    NestedField(12, "fx", FixedType(3), required=False),
    NestedField(13, "bin", BinaryType(), required=False),
    NestedField(14, "dec", DecimalType(11, 2), required=False),
)
TRANSFORMS = [("id " + f.name, f.field_id, IdentityTransform()) for f in SCHEMA.fields] + [
    ("b16", 3, BucketTransform(16)), ("tr", 10, TruncateTransform(2)), ("day", 8, DayTransform()),
    ("gone", 11, VoidTransform()),
]
SPEC = PartitionSpec(*[PartitionField(source, 1000 + i, transform, name)
                       for i, (name, source, transform) in enumerate(TRANSFORMS)], spec_id=4)


def tuples():
    import decimal
    import uuid
    full = [True, -7, 1 << 40, 0.5, float("nan"), 19000, 86399999999, -1, 1700000000123456, "h\u00e9",
            uuid.UUID(int=5), b"\x00\xff\x01", b"", decimal.Decimal("-1.28"), 3, "h", 19000, None]
    return [full, [None] * len(full)]


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
@pytest.mark.parametrize("version", [1, 2])
def test_ours_reads_pyiceberg(tool, tmp_path, version, codec):
    io = PyArrowFileIO()
    snapshot, seq = 1234567890123456789, 9
    made = []
    path = str(tmp_path / "m.avro")
    with write_manifest(version, SPEC, SCHEMA, io.new_output(path), snapshot, codec) as w:
        for n, values in enumerate(tuples()):
            f = DataFile.from_args(
                content=DataFileContent.DATA, file_path=f"s3://b/{n}.parquet",
                file_format=FileFormat.PARQUET, partition=Record(*values), record_count=10 + n,
                file_size_in_bytes=1 << 33, column_sizes={1: 5, 300: 1 << 34} if n else None,
                value_counts={1: 10}, null_value_counts={1: 0}, nan_value_counts={},
                lower_bounds={1: b"\x00"}, upper_bounds={1: b""}, key_metadata=None,
                split_offsets=[4, 1 << 33], equality_ids=None, sort_order_id=None if n else 1)
            w.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot,
                                          sequence_number=None, file_sequence_number=None,
                                          data_file=f))
            made.append(f)
        if version == 2:
            old = ManifestEntry.from_args(status=ManifestEntryStatus.EXISTING, snapshot_id=5,
                                          sequence_number=3, file_sequence_number=2,
                                          data_file=made[0])
            w.existing(old)
    manifest = w.to_manifest_file()
    listed = str(tmp_path / "list.avro")
    with write_manifest_list(version, io.new_output(listed), snapshot, 5, seq, codec) as w:
        w.add_manifests([manifest])
    ours = json.loads(tool("dump", listed))
    assert ours["format-version"] == version
    assert ours["snapshot-id"] == snapshot and ours["parent-snapshot-id"] == 5
    [row] = ours["rows"]
    [theirs] = list(read_manifest_list(io.new_input(listed)))
    same(row, row_of(theirs), "row")
    assert row["added_files_count"] == 2 and row["added_rows_count"] == 21
    types = [f.field_type for f in SPEC.partition_type(SCHEMA).fields]
    entries = theirs.fetch_manifest_entry(io, discard_deleted=False)
    assert len(entries) == len(row["entries"]) == 1 + version
    for i, e in enumerate(entries):
        same(row["entries"][i], entry_of(e, types), i)
    assert row["entries"][0]["sequence_number"] == (9 if version == 2 else 0)


@pytest.mark.skipif(not os.environ.get("FRAZIL_JAVA"), reason="FRAZIL_JAVA=1 runs it: JDK and Maven")
def test_java_reads_ours(tool, tmp_path):
    for version in (1, 2, 3):
        tool("rewrite", GOLDEN / f"v{version}-list.avro", tmp_path)
    subprocess.run([TOP / "tests/golden/make_manifests.sh", tmp_path], check=True, timeout=300)
    for version in (1, 2, 3):
        want = json.loads((GOLDEN / f"v{version}.json").read_text())["rows"]
        got = json.loads((tmp_path / f"v{version}.json").read_text())["rows"]
        assert len(want) == len(got)
        for x, y in zip(want, got):
            for key in x:
                if key not in ("manifest_path", "manifest_length"):
                    assert x[key] == y[key], (version, key)
