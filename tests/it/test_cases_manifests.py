"""Failures of other systems with manifests and manifest lists, each tried here. The case ids are those of the field-case list."""

import json
import os
import random
import shutil
import time

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from support import audit
from support.foreign import Writer, local, read_avro, write_avro
from support.lab import Lab, refused

# Field ids by name, from the table specification.
LIST_IDS = {"manifest_path": 500, "manifest_length": 501, "partition_spec_id": 502, "added_snapshot_id": 503,
            "added_files_count": 504, "existing_files_count": 505, "deleted_files_count": 506, "partitions": 507,
            "added_rows_count": 512, "existing_rows_count": 513, "deleted_rows_count": 514, "sequence_number": 515,
            "min_sequence_number": 516, "content": 517, "key_metadata": 519, "first_row_id": 520}
SUMMARY_IDS = {"contains_null": 509, "lower_bound": 510, "upper_bound": 511, "contains_nan": 518}
ENTRY_IDS = {"status": 0, "snapshot_id": 1, "data_file": 2, "sequence_number": 3, "file_sequence_number": 4}
FILE_IDS = {"content": 134, "file_path": 100, "file_format": 101, "partition": 102, "record_count": 103,
            "file_size_in_bytes": 104, "column_sizes": 108, "value_counts": 109, "null_value_counts": 110,
            "nan_value_counts": 137, "lower_bounds": 125, "upper_bounds": 128, "key_metadata": 131, "split_offsets": 132,
            "equality_ids": 135, "sort_order_id": 140, "first_row_id": 142, "referenced_data_file": 143,
            "content_offset": 144, "content_size_in_bytes": 145}
MAPS = {"column_sizes": (117, 118), "value_counts": (119, 120), "null_value_counts": (121, 122),
        "nan_value_counts": (138, 139), "lower_bounds": (126, 127), "upper_bounds": (129, 130)}
LISTS = {"split_offsets": 133, "equality_ids": 136, "partitions": 508}
NOT_V2 = {"first_row_id", "content_offset", "content_size_in_bytes"}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "manifests")
    yield lab
    lab.check()


def listed(t):
    w = Writer(t)
    w.load()
    return w.list


def header_schema(uri):
    """The Avro schema as the bytes have it: a library's parse may drop attributes."""
    with open(local(uri), "rb") as f:
        return json.loads(fastavro.reader(f).metadata["avro.schema"])


def fields_of(record):
    return {f["name"]: f for f in record["fields"]}


def inner(t):
    """The type within a union with null."""
    return next(x for x in t if x != "null") if isinstance(t, list) else t


def check_ids(record, want, version):
    got = fields_of(record)
    want = {k: v for k, v in want.items() if version >= 3 or k not in NOT_V2}
    assert {k: f.get("field-id") for k, f in got.items()} == want
    for name, (key, value) in MAPS.items():
        if name not in got:
            continue
        array = inner(got[name]["type"])
        assert array.get("logicalType") == "map", name
        assert [(f["name"], f["field-id"]) for f in array["items"]["fields"]] == [("key", key), ("value", value)]
    for name, element in LISTS.items():
        if name in got:
            assert inner(got[name]["type"])["element-id"] == element, name
    return got


@pytest.mark.parametrize("version", [2, 3])
def test_field_ids_everywhere(lab, version):
    """case BC-095: every field, element, key and value carries the id that the specification gives it."""
    t = lab.table("ids%d" % version, version=version,
                  spec={"spec-id": 0, "fields": [{"name": "n", "transform": "truncate[1]", "source-id": 2, "field-id": 1000}]})
    path, o = t.append(5)
    if version >= 3:
        t.delete(path, [1], o.snapshot_id)
    w = Writer(t)
    w.load()
    got = check_ids(header_schema(w.parent["manifest-list"]), LIST_IDS, version)
    summary = inner(got["partitions"]["type"])["items"]
    assert {f["name"]: f["field-id"] for f in summary["fields"]} == SUMMARY_IDS
    for row in w.list:
        schema = header_schema(row["manifest_path"])
        entry = fields_of(schema)
        assert {k: f["field-id"] for k, f in entry.items()} == ENTRY_IDS
        file = check_ids(inner(entry["data_file"]["type"]), FILE_IDS, version)
        assert {f["name"]: f["field-id"] for f in inner(file["partition"]["type"])["fields"]} == {"n": 1000}


def test_manifest_header(lab):
    """case BC-096: every key of the header; the spec is the array of its fields; ids need not start at 0."""
    t = lab.table("header", spec={"spec-id": 0, "fields": [{"name": "n", "transform": "truncate[2]", "source-id": 2, "field-id": 1000}]})
    for i in range(3):
        fields = [{"id": 1, "name": "id", "required": False, "type": "long"},
                  {"id": 2, "name": "name", "required": False, "type": "string"}]
        fields += [{"id": 3 + k, "name": "more%d" % k, "required": False, "type": "int"} for k in range(i + 1)]
        t.update([{"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
                  {"action": "set-current-schema", "schema-id": -1},
                  {"action": "add-spec", "spec": {"fields": [{"name": "b%d" % i, "transform": "bucket[%d]" % (i + 2), "source-id": 1}]}},
                  {"action": "set-default-spec", "spec-id": -1}])
    t._info = None
    path, o = t.append(1)
    md = t.metadata()
    assert (md["current-schema-id"], md["default-spec-id"]) == (3, 3)
    for row in listed(t):
        _, header, _ = read_avro(row["manifest_path"])
        assert header["format-version"] == "3" and header["schema-id"] == "3" and header["partition-spec-id"] == "3"
        assert header["content"] == "data"
        assert json.loads(header["partition-spec"]) == [s for s in md["partition-specs"] if s["spec-id"] == 3][0]["fields"]
        assert json.loads(header["schema"])["schema-id"] == 3
        assert [f["id"] for f in json.loads(header["schema"])["fields"]] == [1, 2, 3, 4, 5]


def replant(lab, t, name, change):
    """Registers the table again behind a manifest list (and manifests) that `change(w, rows)` wrote: returns the Table."""
    w = Writer(t)
    w.load()
    path = change(w)
    md = t.metadata()
    where = t.load()["metadata-location"]
    text = json.dumps(md).replace(w.parent["manifest-list"], path)
    new = os.path.join(os.path.dirname(local(where)), "00099-%s.metadata.json" % name)
    with open(new, "w") as f:
        f.write(text)
    lab.rest.want(204, "DELETE", t.target)
    lab.rest.want(200, "POST", "/v1/namespaces/%s/register" % lab.space, {"name": t.short, "metadata-location": "file://" + new})
    t._info = None
    return t


def carried(t, seen):
    """Rows of the head's list that stood in `seen` already, by path."""
    return {r["manifest_path"]: r for r in listed(t) if r["manifest_path"] in seen}


def test_list_without_its_header(lab):
    """case BC-110: the version of a list that does not state it is seen by its fields; numbers and contents are carried."""
    t = lab.table("bare", audited=False)
    path, o = t.append(5)
    t.delete(path, [1], o.snapshot_id)
    before = {r["manifest_path"]: r for r in listed(t)}

    def change(w):
        path = w.new_path("avro")
        write_avro(path, w.list_schema, {}, w.list)
        return path
    replant(lab, t, "bare", change)
    t.append(3)
    assert carried(t, before) == before
    t.delete(path, [2], t.head())
    t.check()
    # Ours states all of them.
    w = Writer(t)
    w.load()
    assert {k: w.list_header[k] for k in ("format-version", "snapshot-id", "parent-snapshot-id", "sequence-number")} == {
        "format-version": "3", "snapshot-id": str(w.parent["snapshot-id"]), "sequence-number": str(w.parent["sequence-number"]),
        "parent-snapshot-id": str(w.parent["parent-snapshot-id"])}
    assert w.list_header["first-row-id"] == str(w.parent["first-row-id"])


def test_list_with_a_schema_of_its_own(lab):
    """case BC-116: other order, further fields, key metadata: decoded by the file's schema, carried whole."""
    t = lab.table("strange", audited=False)
    path, o = t.append(5)
    before = {r["manifest_path"]: r for r in listed(t)}

    def change(w):
        schema = header_schema(w.parent["manifest-list"])
        schema["fields"].reverse()
        schema["fields"].insert(0, {"name": "of_tomorrow", "field-id": 9999, "default": None, "type": ["null", {
            "type": "record", "name": "rX", "fields": [{"name": "a", "type": "string", "field-id": 9998},
                                                        {"name": "b", "type": {"type": "array", "items": "long", "element-id": 9997},
                                                         "field-id": 9996}]}]})
        rows = [{**r, "of_tomorrow": {"a": "x", "b": [1, 2]}, "key_metadata": b"\1\2"} for r in w.list]
        path = w.new_path("avro")
        with open(local(path), "wb") as f:
            fastavro.writer(f, schema, rows, metadata=w.list_header)
        return path
    replant(lab, t, "strange", change)
    t.append(3)
    assert carried(t, before) == {p: {**r, "key_metadata": b"\1\2"} for p, r in before.items()}
    t.check()


def test_absent_optional_columns(lab):
    """case BC-111: absent columns are nulls and inherit; a merge writes what was inherited; EXISTING without numbers is corrupt."""
    t = lab.table("absent", version=2, audited=False, **{"commit.manifest.min-count-to-merge": "2"})
    path, o = t.append(5)

    def without(status, n=None):
        def change(w):
            row = dict(w.list[0])
            schema = header_schema(row["manifest_path"])
            schema["fields"] = [f for f in schema["fields"] if f["name"] not in ("snapshot_id", "sequence_number", "file_sequence_number")]
            _, header, entries = read_avro(row["manifest_path"])
            new = w.new_path("avro")
            with open(local(new), "wb") as f:
                fastavro.writer(f, schema, [{**e, "status": status} for e in entries], metadata=header)
            row.update(manifest_path=new, manifest_length=os.path.getsize(local(new)))
            if status == 0:
                row.update(added_files_count=0, added_rows_count=0, existing_files_count=1, existing_rows_count=5)
            out = w.new_path("avro")
            write_avro(out, w.list_schema, w.list_header, [row])
            return out
        return change
    replant(lab, t, "absent", without(1))
    for _ in range(3):
        t.append(1)
    found = [e for r in listed(t) for e in read_avro(r["manifest_path"])[2] if e["data_file"]["file_path"] == path]
    assert [(e["status"], e["snapshot_id"], e["sequence_number"], e["file_sequence_number"]) for e in found] == [
        (0, o.snapshot_id, o.sequence_number, o.sequence_number)]
    t.check()
    bad = lab.table("absent0", version=2, audited=False, **{"commit.manifest.min-count-to-merge": "2"})
    bad.append(5)
    replant(lab, bad, "absent0", without(0))
    before = bad.metadata()
    # The merge cannot go on and must not guess: the table halts, and what was asked for stays undecided.
    with pytest.raises(frazil.Error) as e:
        for _ in range(2):
            bad.append(1)
    assert e.value.name in ("COMMIT_UNKNOWN", "TABLE_HALTED", "CORRUPT") and "number" in str(e.value), e.value
    with refused("TABLE_HALTED"):
        bad.append(1)
    assert len(bad.metadata()["snapshots"]) <= len(before["snapshots"]) + 1
    lab.forget(bad)


def test_sequence_number_zero(lab, daemon):
    """case BC-112: files of a V1 table keep sequence number 0 after the upgrade; 0 is a number, not "unset"."""
    lab.rest.want(200, "POST", "/v1/namespaces/manifests/tables", {
        "name": "v1", "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"},
                                                               {"id": 2, "name": "name", "required": False, "type": "string"}]},
        "properties": {"format-version": "1", "commit.manifest.min-count-to-merge": "2"}})
    c = RestCatalog("c", uri=daemon.uri)
    c.load_table("manifests.v1").append(pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}))
    lab.rest.want(200, "POST", "/v1/namespaces/manifests/tables/v1", {
        "requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 3}]})
    with frazil.Client(daemon.rpc) as client:
        for i in range(3):
            client.commit_once("manifests.v1", kind="APPEND", data=pa.table({"id": pa.array([10 + i], pa.int64()), "name": ["x"]}))
    md = lab.rest.want(200, "GET", "/v1/namespaces/manifests/tables/v1").json["metadata"]
    head = next(s for s in md["snapshots"] if s["snapshot-id"] == md["current-snapshot-id"])
    _, _, rows = read_avro(head["manifest-list"])
    low = [r for r in rows if r["min_sequence_number"] == 0]
    assert len(low) == 1 and all(r["min_sequence_number"] >= 0 and r["sequence_number"] >= 0 for r in rows)
    entries = [e for r in rows for e in read_avro(r["manifest_path"])[2]]
    old = [e for e in entries if e["data_file"]["record_count"] == 2]
    assert len(old) == 1
    if old[0]["status"] == 0 and low[0]["sequence_number"] != 0:
        assert (old[0]["sequence_number"], old[0]["file_sequence_number"]) == (0, 0)
    found = audit.rows(daemon, "manifests.v1")
    assert sorted(r["id"] for r in found) == [1, 2, 10, 11, 12]
    assert {r["_last_updated_sequence_number"] for r in found if r["id"] < 10} == {0}


def test_deleted_entries(lab):
    """case BC-114: DELETED names the deleting snapshot and keeps the numbers; the next rewrite drops it."""
    t = lab.table("deleted")
    first, one = t.append(3)
    keep, _ = t.append(3)
    two = t.delete(first, range(3), one.snapshot_id)
    found = [(r, e) for r in listed(t) for e in read_avro(r["manifest_path"])[2] if e["data_file"]["file_path"] == first]
    assert [(e["status"], e["snapshot_id"], e["sequence_number"], e["file_sequence_number"]) for _, e in found] == [
        (2, two.snapshot_id, one.sequence_number, one.sequence_number)]
    assert [(r["deleted_files_count"], r["deleted_rows_count"]) for r, _ in found] == [(1, 3)]
    t.append(1)
    assert not [e for r in listed(t) for e in read_avro(r["manifest_path"])[2]
                if e["data_file"]["file_path"] == first and r["added_snapshot_id"] == t.head()]
    assert keep in {e["data_file"]["file_path"] for r in listed(t) for e in read_avro(r["manifest_path"])[2] if e["status"] != 2}


def test_nulls_and_empty_lists(lab):
    """case BC-117: no split offsets is null, disorder is refused, an unpartitioned list's summaries stay as they were."""
    t = lab.table("offsets")
    f = t.files(2)[0]
    f["split_offsets"] = []
    with lab.client() as c:
        c.commit_once(t.name, kind="APPEND", data_files=[f])
    t.added(f)
    e, = [e for r in listed(t) for e in read_avro(r["manifest_path"])[2]]
    assert e["data_file"]["split_offsets"] is None and e["data_file"]["equality_ids"] is None
    for bad in ([8, 4], [4, 4], [-1], [1 << 40]):
        f = t.files(2)[0]
        f["split_offsets"] = bad
        with refused("BAD_REQUEST"), lab.client() as c:
            c.commit_once(t.name, kind="APPEND", data_files=[f])
    kept = {}
    for _ in range(3):
        t.append(1)
        for r in listed(t):
            assert kept.setdefault(r["manifest_path"], r["partitions"]) == r["partitions"] and not r["partitions"]


def test_manifests_of_several_specs(lab):
    """case BC-118: a merge stays within one spec; tuples are those of their own spec."""
    t = lab.table("specs", spec={"spec-id": 0, "fields": [{"name": "n", "transform": "truncate[2]", "source-id": 2, "field-id": 1000}]},
                  **{"commit.manifest.min-count-to-merge": "3"})
    tuples, files = {}, []
    specs = [None, [{"name": "b", "transform": "truncate[100]", "source-id": 1}],
             [{"name": "n", "transform": "void", "source-id": 2}, {"name": "i", "transform": "identity", "source-id": 1}]]
    for k, spec in enumerate(specs):
        if spec:
            t.update([{"action": "add-spec", "spec": {"fields": spec}}, {"action": "set-default-spec", "spec-id": -1}])
            t._info = None
        for _ in range(4):
            path, o = t.append(1)
            files.append((k, path, o))
            w = Writer(t)
            w.load()
            for row, _, _, e in w.live():
                now = (row["partition_spec_id"], e["data_file"]["partition"])
                assert tuples.setdefault(e["data_file"]["file_path"], now) == now
    for k in range(3):
        path = next(p for s, p, _ in files if s == k)
        t.delete(path, [0], t.head())
        del tuples[path]
    rows = [r for r in listed(t) if r["content"] == 0]
    assert len(rows) < 9, "nothing was merged"
    for r in rows:
        assert read_avro(r["manifest_path"])[1]["partition-spec-id"] == str(r["partition_spec_id"])
        for e in read_avro(r["manifest_path"])[2]:
            if e["status"] != 2:
                assert (r["partition_spec_id"], e["data_file"]["partition"]) == tuples.pop(e["data_file"]["file_path"])
    assert not tuples


def test_the_same_path_again(lab):
    """case BC-124: a path counts once: staged again by the same task it is the same, by another or when live it is refused."""
    t = lab.table("twice")
    files = t.files(4)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(files, fragment_id="a")
        txn.stage_files(files, fragment_id="a")
        with refused("DUPLICATE_PATH"), lab.client() as other:
            other.commit_once(t.name, kind="APPEND", data_files=files)
        txn.commit()
    t.added(*files)
    for again in (files, [dict(files[0], path=files[0]["path"].replace("file:///", "FILE:///"))],
                  [dict(files[0], path=files[0]["path"].replace("file:///", "file:////"))]):
        with refused("DUPLICATE_PATH", "PATH_OUTSIDE", "BAD_REQUEST"), lab.client() as c:
            c.commit_once(t.name, kind="APPEND", data_files=again)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        more = t.files(2)
        txn.stage_files(more, fragment_id="a")
        with refused("DUPLICATE_PATH"):
            txn.stage_files(more, fragment_id="b")
            txn.commit()
        txn.abort()
    live = [e["data_file"]["file_path"] for r in listed(t) for e in read_avro(r["manifest_path"])[2]]
    assert live == [files[0]["path"]] and t.summary()["total-records"] == "4"


def test_kinds_of_entries_must_agree(lab):
    """case BC-104: a delete manifest that a client lists as data is told of, and no deletion builds on it."""
    t = lab.table("kinds", audited=False)
    path, o = t.append(5)
    w = Writer(t)
    w.load()
    sid = random.getrandbits(62) | 1
    schema, header, entries = read_avro(w.list[0]["manifest_path"])
    puffin = w.new_path("puffin", "data")
    shutil.copy(local(path), local(puffin))
    entry = w.entry(entries[0], sid, {"content": 1, "file_path": puffin, "file_format": "PUFFIN", "record_count": 1,
                                      "file_size_in_bytes": os.path.getsize(local(puffin)), "referenced_data_file": path,
                                      "content_offset": 4, "content_size_in_bytes": 40})
    row = w.manifest(schema, header, 0, [entry], sid, w.md["last-sequence-number"] + 1, w.md["next-row-id"])
    out = w.new_path("avro")
    write_avro(out, w.list_schema, {**w.list_header, "snapshot-id": str(sid)}, w.list + [row])
    got = lab.rest.post(t.target, {"requirements": [], "updates": [
        {"action": "add-snapshot", "snapshot": {
            "snapshot-id": sid, "parent-snapshot-id": w.parent["snapshot-id"], "sequence-number": w.md["last-sequence-number"] + 1,
            "timestamp-ms": int(time.time() * 1000), "manifest-list": out, "schema-id": 0, "summary": {"operation": "append"},
            "first-row-id": w.md["next-row-id"], "added-rows": 1}},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": sid}]})
    assert got.status in (200, 400), got
    if got.status == 200:
        with pytest.raises(Exception) as e:
            t.delete(path, [1], sid)
        assert getattr(e.value, "name", "") in ("CORRUPT", "TABLE_INCONSISTENT", "TABLE_HALTED", "SNAPSHOT_TOO_OLD"), e.value
    lab.forget(t)
