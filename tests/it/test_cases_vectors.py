"""Failures of other systems with deletion vectors and Puffin, each tried here. The case ids are those of the field-case list."""

import json
import os
import struct
import threading
import zlib

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from frazil import dv
from support.foreign import Writer, local, read_avro
from support.lab import Lab, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "vectors")
    yield lab
    lab.check()


def entries(t, live=True):
    """Entries of the head's delete manifests as they stand in the files: (row of the list, entry)."""
    w = Writer(t)
    w.load()
    return [(row, e) for row in w.list if row["content"] == 1 for e in read_avro(row["manifest_path"])[2]
            if e["status"] != 2 or not live]


def vectors(t):
    """{data file: data_file record of its one live vector}"""
    out = {}
    for _, e in entries(t):
        assert e["data_file"]["referenced_data_file"] not in out, "two vectors of a file"
        out[e["data_file"]["referenced_data_file"]] = e["data_file"]
    return out


def positions(d):
    with open(local(d["file_path"]), "rb") as f:
        f.seek(d["content_offset"])
        return dv.decode(f.read(d["content_size_in_bytes"]))


def footer(path):
    """The JSON of a Puffin's footer, every fixed byte of the layout checked by hand."""
    with open(local(path), "rb") as f:
        b = f.read()
    assert b[:4] == b"PFA1" and b[-4:] == b"PFA1"
    assert b[-8:-4] == bytes(4), "flags"
    size, = struct.unpack("<i", b[-12:-8])
    start = len(b) - 12 - size
    assert b[start - 4:start] == b"PFA1"
    return json.loads(b[start:start + size])


def test_second_delete_replaces(lab):
    """case BC-053: one live vector, the union; the old entry DELETED in the same snapshot."""
    t = lab.table("second")
    path, o = t.append(100)
    t.delete(path, [1, 2], o.snapshot_id)
    first = vectors(t)[path]
    t.delete(path, [2, 3], o.snapshot_id)
    assert positions(vectors(t)[path]) == [1, 2, 3] and vectors(t)[path]["record_count"] == 3
    gone = [e for _, e in entries(t, live=False) if e["status"] == 2]
    assert [(e["data_file"]["file_path"], e["data_file"]["content_offset"], e["snapshot_id"]) for e in gone] == [
        (first["file_path"], first["content_offset"], t.head())]
    assert len(t.ids()) == 97
    # Both in one transaction, by two workers.
    u = lab.table("two")
    path, o = u.append(100)
    with lab.client() as c:
        txn = c.table(u.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        for name, deleted in (("a", [1, 2]), ("b", [2, 3])):
            txn.delete(path, deleted, fragment_id=name)
        txn.commit()
    u.deleted(path, [1, 2, 3])
    assert positions(vectors(u)[path]) == [1, 2, 3]
    # Fifty at once.
    failed = []

    def one(i):
        try:
            t2.delete(path2, [i, i + 1], o2.snapshot_id)
        except Exception as e:
            failed.append(e)
    t2 = lab.table("fifty")
    path2, o2 = t2.append(100)
    team = [threading.Thread(target=one, args=(i,)) for i in range(50)]
    for x in team:
        x.start()
    for x in team:
        x.join()
    assert not failed, failed
    assert positions(vectors(t2)[path2]) == list(range(51))


def test_layout(lab):
    """cases BC-054, BC-061, BC-065, BC-072, BC-077: the whole Puffin, places, sizes and the entry's members."""
    t = lab.table("layout")
    made = [t.append(30) for _ in range(3)]
    with lab.client() as c:
        c.commit_once(t.name, kind="DELETE", deletes=[(p, [1, 5, i + 10]) for i, (p, _) in enumerate(made)], read_snapshot_id=t.head())
    for i, (p, _) in enumerate(made):
        t.deleted(p, [1, 5, i + 10])
    for row, e in entries(t):
        d = e["data_file"]
        assert row["content"] == 1 and row["first_row_id"] is None
        assert (d["content"], d["file_format"].upper(), d["record_count"]) == (1, "PUFFIN", 3)
        assert d["file_size_in_bytes"] == os.path.getsize(local(d["file_path"]))
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds",
                     "split_offsets", "equality_ids", "sort_order_id", "first_row_id"):
            assert d.get(name) is None, name
        with open(local(d["file_path"]), "rb") as f:
            f.seek(d["content_offset"])
            blob = f.read(d["content_size_in_bytes"])
        assert struct.unpack(">I", blob[:4])[0] == len(blob) - 8 and blob[4:8] == b"\xd1\xd3\x39\x64"
        told = [b for b in footer(d["file_path"])["blobs"] if b["offset"] == d["content_offset"]]
        assert told == [{"type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1,
                         "offset": d["content_offset"], "length": d["content_size_in_bytes"],
                         "properties": {"referenced-data-file": d["referenced_data_file"], "cardinality": "3"}}]
    data = [e for row in _list(t) if row["content"] == 0 for e in read_avro(row["manifest_path"])[2]]
    assert all(e["data_file"]["referenced_data_file"] is None and e["data_file"]["content_offset"] is None for e in data)


def _list(t):
    w = Writer(t)
    w.load()
    return w.list


def test_v2_manifests_have_v2_members(lab):
    """case BC-077: nothing of format version 3 in the files of a V2 table."""
    t = lab.table("v2", version=2)
    t.append(3)
    for row in _list(t):
        assert "first_row_id" not in row
        schema, header, _ = read_avro(row["manifest_path"])
        text = str(schema)
        assert header["format-version"] == "2"
        for word in ("first_row_id", "content_offset", "content_size_in_bytes"):
            assert word not in text, word


def test_shared_puffin(lab):
    """case BC-058: three vectors in one file of another writer; replacing or dropping one leaves the others alone."""
    t = lab.table("shared", audited=False)  # the other writer keeps no totals
    made = [t.append(10)[0] for _ in range(3)]
    sid = Writer(t).commit("delete", deletes={p: [i] for i, p in enumerate(made)})
    for i, p in enumerate(made):
        t.deleted(p, [i])
    before = vectors(t)
    assert len({d["file_path"] for d in before.values()}) == 1 and len({d["content_offset"] for d in before.values()}) == 3
    t.delete(made[1], [7], sid)
    after = vectors(t)
    assert after[made[0]] == before[made[0]] and after[made[2]] == before[made[2]]
    assert positions(after[made[1]]) == [1, 7]
    t.delete(made[2], range(10), t.head())
    assert set(vectors(t)) == {made[0], made[1]} and vectors(t)[made[0]] == before[made[0]]
    t.check()
    assert os.path.exists(local(before[made[0]]["file_path"]))


def test_rewrite_against_deletes(lab):
    """cases BC-056, BC-057: a rewrite planned before a deletion does not land after it, nor a deletion after the rewrite."""
    for name, gone in (("some", [5]), ("all", range(10))):
        t = lab.table("rewrite_" + name)
        path, o = t.append(10)
        t.append(2)
        base = t.head()
        files = t.files(0, ids=list(range(10)))
        deleted = t.delete(path, gone, base)
        w = Writer(t)
        w.commit("replace", files, want=409, parent=base)
        assert t.head() == deleted.snapshot_id
    # The other way round: the file was replaced since it was read.
    t = lab.table("replaced", version=2, audited=False)
    path, o = t.append(4)
    RestCatalog("c", uri=lab.daemon.uri).load_table(t.name).overwrite(_arrow([100]))
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None
    with refused("FILE_GONE"):
        t.delete(path, [1], o.snapshot_id)
    lab.forget(t)


def _arrow(ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(["x%d" % i for i in ids])})


def test_every_bit_of_the_frame(lab):
    """case BC-060: a flipped bit in length, magic, bitmap or checksum, or a wrong count, refuses the whole; nothing changes."""
    t = lab.table("bits")
    path, o = t.append(50)
    blob = dv.encode([1, 5, 7])
    head = t.metadata()
    for at in (3, 4, 8, 12, 20, len(blob) - 5, len(blob) - 4, len(blob) - 1):
        bad = bytearray(blob)
        bad[at] ^= 1
        with refused("DV_CORRUPT"):
            _raw_delete(lab, t, path, bytes(bad), 3, o.snapshot_id)
    for n in (2, 4, 0, -1):
        with refused("DV_CORRUPT", "BAD_REQUEST"):
            _raw_delete(lab, t, path, blob, n, o.snapshot_id)
    assert t.metadata() == head


def _raw_delete(lab, t, path, blob, cardinality, read):
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=read)
        try:
            return txn.stage_files(deletes=[{"data_file": path, "vector": blob, "cardinality": cardinality,
                                             "provenance": "DEAD", "includes_existing": False}])
        finally:
            txn.abort()


def _frame(bitmaps):
    """A framed vector with a right checksum around any bytes."""
    body = b"\xd1\xd3\x39\x64" + bitmaps
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


ARRAY5 = bytes.fromhex("3a3000000100000000000000100000000500")  # portable roaring: the one value 5
UNSORTED = bytes.fromhex("3a3000000100000000000100100000000500" + "0300")
RUNS = bytes.fromhex("3b300000010000" + "0900" + "0200" + "00000500" + "03000400")  # 0-5 and 3-7 overlap


@pytest.mark.parametrize("what,bitmaps", [
    ("2^63 bitmaps", struct.pack("<Q", 1 << 63)),
    ("a key twice", struct.pack("<Q", 2) + (struct.pack("<I", 5) + ARRAY5) * 2),
    ("the highest key", struct.pack("<QI", 1, 0xffffffff) + ARRAY5),
    ("overlapping runs", struct.pack("<QI", 1, 0) + RUNS),
    ("an unsorted array", struct.pack("<QI", 1, 0) + UNSORTED),
    ("one byte more", struct.pack("<QI", 1, 0) + ARRAY5 + b"\0"),
    ("one byte less", struct.pack("<QI", 1, 0) + ARRAY5[:-1]),
    ("nothing", b"")], ids=lambda x: x if isinstance(x, str) else "")
def test_malformed_bitmaps(lab, what, bitmaps):
    """case BC-063: malformed roaring data behind a right checksum."""
    t = next((x for x in lab.tables if x.short == "malformed"), None) or lab.table("malformed")
    if not t.rows:
        t.append(10)
    with refused("DV_CORRUPT"):
        _raw_delete(lab, t, next(iter(t.rows)), _frame(bitmaps), 1, t.head())
    assert t.metadata()["last-sequence-number"] == 1


def test_nothing_to_delete(lab):
    """case BC-066: no deletion, no vector, no snapshot."""
    t = lab.table("nothing")
    path, o = t.append(10)
    last = t.delete(path, [3], o.snapshot_id)
    folder = os.path.dirname(local(path))
    objects = sorted(os.listdir(folder))
    with refused("BAD_REQUEST", "DV_CORRUPT"):
        _raw_delete(lab, t, path, dv.encode([]), 0, o.snapshot_id)
    got = t.delete(path, [3], o.snapshot_id)
    assert got.state == "COMMITTED" and got.deletes[0]["overlap"] == 1 and got.deletes[0]["deleted"] == 0
    assert sorted(os.listdir(folder)) == objects
    assert vectors(t)[path]["record_count"] == 1
    assert positions(vectors(t)[path]) == [3] and last.deletes[0]["deleted"] == 1


def test_delete_before_its_file(lab, daemon):
    """case BC-067: a deletion of a file that is staged but not published is refused, whatever dies between; then it counts once."""
    t = lab.table("early")
    _, o = t.append(3)
    files = t.files(5)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(files)
        with refused("FILE_GONE"):
            t.delete(files[0]["path"], [3], o.snapshot_id)
    daemon.restart(kill=True)
    path, got = t.append(5)
    daemon.restart(kill=True)
    t.delete(path, [3], got.snapshot_id)
    assert positions(vectors(t)[path]) == [3]


def test_spec_of_the_data_file(lab):
    """case BC-070: after a change of the spec a vector keeps spec and tuple of its data file; nulls and void included."""
    t = lab.table("spec", spec={"spec-id": 0, "fields": [{"name": "n", "transform": "truncate[1]", "source-id": 2, "field-id": 1000}]})
    old, o = t.append(10)
    t.update([{"action": "add-spec", "spec": {"spec-id": 1, "fields": [
        {"name": "n", "transform": "void", "source-id": 2, "field-id": 1000},
        {"name": "b", "transform": "truncate[100]", "source-id": 1, "field-id": 1001}]}},
        {"action": "set-default-spec", "spec-id": -1}])
    t._info = None
    with lab.client() as c:
        files = t.files(8)
        got = c.commit_once(t.name, kind="APPEND", data_files=files, info=t.info)
        t.added(*files)
    with lab.client() as c:
        c.commit_once(t.name, kind="DELETE", deletes=[(old, [1]), (files[0]["path"], [0])], read_snapshot_id=got.snapshot_id)
    t.deleted(old, [1])
    t.deleted(files[0]["path"], [0])
    data = {e["data_file"]["file_path"]: (row["partition_spec_id"], e["data_file"]["partition"])
            for row in _list(t) if row["content"] == 0 for e in read_avro(row["manifest_path"])[2]}
    for row, e in entries(t):
        d = e["data_file"]
        assert (row["partition_spec_id"], d["partition"]) == data[d["referenced_data_file"]]
        assert str(row["partition_spec_id"]) == read_avro(row["manifest_path"])[1]["partition-spec-id"]
    assert {row["partition_spec_id"] for row, _ in entries(t)} == {0, 1}


def test_merged_delete_manifests(lab):
    """cases BC-071, BC-113: merging delete manifests copies every member of a vector's entry as it was."""
    t = lab.table("merged", **{"commit.manifest.min-count-to-merge": "4"})
    made = [t.append(10)[0] for _ in range(6)]
    seen = {}
    for p in made:
        t.delete(p, [1], t.head())
        for row, e in entries(t):
            d = e["data_file"]
            key = d["referenced_data_file"]
            now = ({k: d[k] for k in ("file_path", "content_offset", "content_size_in_bytes", "file_size_in_bytes", "record_count")},
                   row["sequence_number"] if e["sequence_number"] is None else e["sequence_number"],
                   row["added_snapshot_id"] if e["snapshot_id"] is None else e["snapshot_id"])
            assert seen.setdefault(key, now) == now
    assert set(seen) == set(made)
    assert len([r for r in _list(t) if r["content"] == 1]) < 6, "nothing was merged"


def test_positions_beyond(lab):
    """case BC-073: a position that the file does not have refuses the fragment; others are not touched."""
    t = lab.table("beyond")
    path, o = t.append(10)
    for bad in (10, 1 << 32, (1 << 62) + 1):
        with refused("POSITION_RANGE", "DV_CORRUPT"):
            _raw_delete(lab, t, path, dv.encode([0, bad]), 2, o.snapshot_id)
    t.delete(path, [9], o.snapshot_id)
    assert positions(vectors(t)[path]) == [9]


def test_counters(lab):
    """case BC-074: the summary's counters, recounted by hand from the manifests of each snapshot."""
    t = lab.table("counters")
    path, o = t.append(10)
    other, _ = t.append(5)

    def told(**want):
        s = t.summary()
        for k, v in want.items():
            assert s.get(k.replace("_", "-"), "0") == str(v), (k, v, s)
        live = vectors(t)
        assert s["total-delete-files"] == str(len(live))
        assert s["total-position-deletes"] == str(sum(d["record_count"] for d in live.values()))
    t.delete(path, [1, 2], t.head())
    told(added_dvs=1, added_delete_files=1, added_position_deletes=2, removed_dvs=0, total_records=15, total_data_files=2)
    t.delete(path, [2, 3], t.head())
    told(added_dvs=1, removed_dvs=1, added_position_deletes=3, removed_position_deletes=2, added_delete_files=1,
         removed_delete_files=1, total_records=15)
    t.delete(path, range(10), t.head())
    told(removed_dvs=1, removed_position_deletes=3, removed_delete_files=1, deleted_data_files=1, deleted_records=10,
         total_records=5, total_data_files=1)
    assert other in t.rows


def test_wrong_puffin_of_another_writer(lab):
    """case BC-054: a vector without its frame in a snapshot of a REST client: told, and no deletion builds on it."""
    t = lab.table("bare", audited=False)
    path, o = t.append(10)
    w = Writer(t)
    w.load()
    sid = Writer(t).commit("delete", deletes={path: [1]})
    d = vectors(t)[path]
    with open(local(d["file_path"]), "r+b") as f:
        f.seek(d["content_offset"] + 4)
        f.write(b"\0\0\0\0")
    with pytest.raises(frazil.Error) as e:
        t.delete(path, [2], sid)
    assert e.value.name in ("TABLE_INCONSISTENT", "CORRUPT", "TABLE_HALTED", "DV_CORRUPT", "SNAPSHOT_TOO_OLD"), e.value
    t.append(2)
    lab.forget(t)
