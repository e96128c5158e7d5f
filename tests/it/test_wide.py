"""Tables at the far end of shape: 1,000 columns, 10,000 files, 100 partition specs. Times are printed, not judged."""

import os
import struct
import time
import uuid

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual

from frazil import parquet
from support import audit
from support.foreign import read_avro
from support.lab import Lab


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "wide")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


class Clock:
    def __init__(self):
        self.times, self.last = [], time.monotonic()

    def __call__(self, what):
        now = time.monotonic()
        self.times.append("%s %.2f s" % (what, now - self.last))
        self.last = now

    def show(self, name, capsys):
        with capsys.disabled():
            print("\n%s: %s" % (name, ", ".join(self.times)))


KINDS = ["long", "int", "double", "string", "date", "timestamp", "decimal(9, 2)", "boolean", "timestamp_ns", "binary"]
ONE = {"long": struct.pack("<q", 1), "int": struct.pack("<i", 1), "double": struct.pack("<d", 1.5), "string": b"a" * 16,
       "date": struct.pack("<i", 1), "timestamp": struct.pack("<q", 1), "decimal(9, 2)": b"\x05\x8c", "boolean": b"\0",
       "timestamp_ns": struct.pack("<q", 1), "binary": b"\xff" * 16}


def blank(folder, n, size=64):
    """`n` files that nobody opens: readers that count rows need only the metadata."""
    os.makedirs(parquet.local_path(folder), exist_ok=True)
    paths = ["%s/%s-%05d.parquet" % (folder, uuid.uuid4().hex[:8], i) for i in range(n)]
    for path in paths:
        with open(parquet.local_path(path), "wb") as f:
            f.write(bytes(size))
    return paths


def record(info, path, rows, size=64, partition=(), **more):
    return {"path": path, "format": "PARQUET", "spec_id": 0, "partition": list(partition), "record_count": rows, "file_size": size, "schema_id": 0, "column_sizes": [],
            "value_counts": [], "null_counts": [], "nan_counts": [], "lower_bounds": [], "upper_bounds": [], "split_offsets": [],
            "sort_order_id": None, "has_row_ids": False, "new_row_count": rows, "updated_row_count": 0, **more}


def test_thousand_columns(daemon, lab, catalog, capsys):
    """Metrics of every column in every file, and a column more."""
    clock = Clock()
    fields = [{"id": i + 1, "name": "c%04d" % i, "required": False, "type": KINDS[i % len(KINDS)]} for i in range(1000)]
    target = "/v1/namespaces/wide/tables"
    lab.rest.want(200, "POST", target, {"name": "columns", "schema": {"type": "struct", "fields": fields},
                                        "properties": {"format-version": "3"}})
    clock("create")
    with lab.client() as c:
        info = c.table("wide.columns").info()
        rows = pa.table({"c0000": pa.array(range(10), pa.int64()), "c0003": ["t%d" % i for i in range(10)]})
        c.commit_once("wide.columns", data_files=parquet.write(rows, info))
        clock("commit of a real file")
        counts = [{"field_id": f["id"], "value": 10} for f in fields]
        zeros = [{"field_id": f["id"], "value": 0} for f in fields]
        bounds = [{"field_id": f["id"], "value": ONE[f["type"]]} for f in fields]
        files = [record(info, path, 10, column_sizes=counts, value_counts=counts, null_counts=zeros, nan_counts=zeros, lower_bounds=bounds,
                        upper_bounds=bounds) for path in blank(info["data_location"], 20)]
        c.commit_once("wide.columns", data_files=files)
        clock("commit of 20 files with 6,000 metrics each")
    lab.rest.want(200, "POST", target + "/columns", {"requirements": [], "updates": [
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields + [{"id": 1001, "name": "more", "required": False, "type": "int"}]}},
        {"action": "set-current-schema", "schema-id": -1}]})
    clock("another column")
    assert len(lab.rest.want(200, "GET", target + "/columns").json["metadata"]["schemas"][1]["fields"]) == 1001
    clock("load")
    t = catalog.load_table("wide.columns")
    assert t.scan().count() == 210
    clock("PyIceberg's count")
    for task in t.scan(row_filter=EqualTo("c0999", b"\xff" * 16)).plan_files():
        assert len(task.file.lower_bounds) == 1000
    real = [task for task in t.scan(row_filter=And(GreaterThanOrEqual("c0000", 5), EqualTo("c0001", 1))).plan_files()]
    assert not real  # the real file has nulls there, the others no 5
    clock.show("1,000 columns", capsys)


def test_ten_thousand_files(daemon, lab, catalog, capsys):
    clock = Clock()
    target = "/v1/namespaces/wide/tables"
    lab.rest.want(200, "POST", target, {
        "name": "files", "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]},
        "partition-spec": {"fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[100]"}]},
        "properties": {"format-version": "3"}})
    with lab.client(timeout=120) as c:
        info = c.table("wide.files").info()
        paths = blank(info["data_location"], 10000)
        clock("write the files")
        bound = [{"field_id": 1, "value": struct.pack("<q", 5)}]
        records = [record(info, path, 1 + i % 3, partition=[{"field_id": 1000, "value": struct.pack("<i", i % 100)}],
                          lower_bounds=bound, upper_bounds=bound) for i, path in enumerate(paths)]
        txn = c.table("wide.files").begin()
        for i in range(0, 10000, 1000):
            txn.stage_files(records[i:i + 1000])
        clock("stage")
        txn.seal()
        clock("seal")
        o = txn.commit()
        clock("commit")
        assert len(o.files) == 10000
        rows = sum(r["record_count"] for r in records)
        assert sorted(f["first_row_id"] for f in o.files)[-1] < rows
        # One row of one file of them.
        c.commit_once("wide.files", kind="DELETE", deletes=[(paths[4711], [0])], read_snapshot_id=o.snapshot_id)
        clock("delete a row")
        c.commit_once("wide.files", data_files=[record(info, blank(info["data_location"], 1)[0], 1, partition=[{"field_id": 1000, "value": None}])])
        clock("append a file")
    got = lab.rest.want(200, "GET", target + "/files").json["metadata"]
    clock("load")
    summary = got["snapshots"][-1]["summary"]
    assert (summary["total-data-files"], summary["total-records"], summary["total-position-deletes"]) == ("10001", str(rows + 1), "1")
    t = catalog.load_table("wide.files")
    tasks = list(t.scan().plan_files())
    assert len(tasks) == 10001 and sum(task.file.record_count for task in tasks) == rows + 1
    # PyIceberg gives the vector to every file of the partition and lets the reader choose.
    assert all(len(task.delete_files) == 1 for task in tasks if task.file.file_path == paths[4711])
    clock("PyIceberg's plan")
    clock.show("10,000 files", capsys)


def test_hundred_specs(daemon, lab, catalog, capsys):
    """A spec for each of a hundred commits; files of old specs are deleted from and replaced. case BC-118, case BC-070"""
    clock = Clock()
    t = lab.table("specs")
    paths = []
    for i in range(100):
        transforms = ["bucket[%d]" % (i + 2), "truncate[%d]" % (i + 1)][i % 2:i % 2 + 1]
        if i % 10 == 0:
            transforms = ["void", "identity"]
        t.update([{"action": "add-spec", "spec": {"fields": [
            {"source-id": 1, "name": "p%d_%d" % (i, k), "transform": x} for k, x in enumerate(transforms)]}},
            {"action": "set-default-spec", "spec-id": -1}])
        t._info = None
        files = t.files(2, ids=[i, i] if i % 3 else [i])  # one partition, whatever the spec
        assert len(files) == 1
        with lab.client() as c:
            c.commit_once(t.name, data_files=files)
        t.added(*files)
        paths.append(files[0]["path"])
    clock("100 specs and commits")
    md = t.metadata()
    assert len(md["partition-specs"]) == 101 and md["default-spec-id"] == 100
    clock("load")
    # Vectors, and files that lose all of their rows, of every second spec at once.
    read = t.head()
    with lab.client() as c:
        c.commit_once(t.name, kind="DELETE", deletes=[(p, [0]) for p in paths[::2]], read_snapshot_id=read)
        for p in paths[::2]:
            t.deleted(p, [0])
    clock("delete from 50 specs")
    t.append(1)
    assert sum(m["partition_spec_id"] < 100 for m in read_avro(catalog.load_table(t.name).current_snapshot().manifest_list)[2]) > 100
    found = catalog.load_table(t.name)
    assert len(found.specs()) == 101
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == t.ids()
    clock("PyIceberg's rows")
    audit.clean(daemon, t.name)
    clock("audit")
    clock.show("100 specs", capsys)
