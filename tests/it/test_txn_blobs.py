"""Vectors by reference: the range of a file that a worker wrote. Its bytes count as they are at Stage, nothing needs
the file afterwards, and it goes when the transaction has ended. The files are made here, with pyroaring and by Java."""

import json
import os
import struct
import time
import zlib

import pyroaring
import pytest
from pyiceberg.catalog import load_catalog

import frazil
from frazil import errors, txn
from support.foreign import local
from support.lab import Lab, Peer, begin, ids, ref_of, refused

GOLDEN = "tests/golden/iceberg/deletion-vectors/small-alternating-values-position-index.bin"  # 1 3 5 7 9


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "blobs")
    yield lab
    lab.check()


def blob_of(positions):
    body = b"\xd1\xd3\x39\x64" + pyroaring.BitMap64(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


class Puffin:
    """A file in the table's data folder; `at` are the ranges of its blobs."""

    made = 0

    def __init__(self, table, *blobs, name=None):
        Puffin.made += 1
        self.uri = "%s/v-%d.puffin" % (table.info["data_location"], Puffin.made) if name is None else name
        body, self.at = b"PFA1", []
        for b in blobs:
            self.at.append((len(body), len(b)))
            body += b
        footer = json.dumps({"blobs": [
            {"type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1,
             "offset": o, "length": n, "properties": {}} for o, n in self.at]}).encode()
        os.makedirs(os.path.dirname(local(self.uri)), exist_ok=True)
        with open(local(self.uri), "wb") as f:
            f.write(body + b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1")

    def delete(self, i, data_file, cardinality, **more):
        return {**txn.blob_record(data_file, self.uri, *self.at[i], cardinality), **more}


def until_gone(uri, seconds=15):
    end = time.monotonic() + seconds
    while os.path.exists(local(uri)):
        assert time.monotonic() < end, uri
        time.sleep(0.05)


def test_many_vectors_in_one_file(lab):
    """Two data files, two tasks for one of them, and a vector of Java's; the file is not needed after Stage."""
    t = lab.table("many")
    (a, _), (b, o) = t.append(20), t.append(10)
    with open(GOLDEN, "rb") as f:
        java = f.read()
    p = Puffin(t, java, blob_of([0, 2]), blob_of([3, 11]))
    with lab.client() as c:
        x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        x.stage_files(deletes=[p.delete(0, a, 5), p.delete(1, b, 2)], fragment_id="0")
        # A second task, one position of which the first has, too; another attempt of it lost.
        lost = Puffin(t, blob_of([19]))
        x.stage_files(deletes=[lost.delete(0, a, 1)], fragment_id="1", attempt=0)
        x.stage_files(deletes=[p.delete(2, a, 2)], fragment_id="1", attempt=1)
        os.unlink(local(p.uri))
        got = x.commit()
    assert got.rows_deleted == 8 and {d["data_file"]: d["deleted"] for d in got.deletes} == {a: 6, b: 2}
    t.deleted(a, [1, 3, 5, 7, 9, 11])
    t.deleted(b, [0, 2])
    t.check()
    until_gone(lost.uri)


def test_file_is_kept_until_the_end_and_then_goes(lab):
    t = lab.table("kept")
    path, o = t.append(10)
    for end in ("commit", "abort"):
        p = Puffin(t, blob_of([4]))
        with lab.client() as c:
            x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
            f = x.fragment()
            f.delete_blob(path, p.uri, *p.at[0], 1)
            f.stage()
            time.sleep(1)
            assert os.path.exists(local(p.uri))
            getattr(x, end)()
        until_gone(p.uri)
    t.deleted(path, [4])
    # In one message, and rejected.
    p, q = Puffin(t, blob_of([5])), Puffin(t, blob_of([4, 6]))
    with lab.client() as c:
        c.commit_once(t.name, kind="DELETE", deletes=[p.delete(0, path, 1)], read_snapshot_id=o.snapshot_id)
        t.deleted(path, [5])
        with refused("WRITE_WRITE", "ROW_MOVED"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=t.files(1), deletes=[q.delete(0, path, 2)],
                          read_snapshot_id=o.snapshot_id)
    until_gone(p.uri)
    until_gone(q.uri)
    t.check()


def test_what_was_deleted_before_is_folded(lab):
    """A writer that merges sends old positions along with new ones; counted is what is new."""
    t = lab.table("folded")
    path, o = t.append(10)
    o = t.delete(path, [0, 1, 2], o.snapshot_id)
    for includes in (True, False):
        first = 3 if includes else 5
        p = Puffin(t, blob_of([0, 1, 2, first]))
        with lab.client() as c:
            o = c.commit_once(t.name, kind="DELETE", deletes=[p.delete(0, path, 4, includes_existing=includes)],
                              read_snapshot_id=o.snapshot_id)
        assert o.rows_deleted == 1 and o.deletes == [{"data_file": path, "deleted": 1, "overlap": 0}]
        t.deleted(path, [first])
    t.check()


def test_restart_between_stage_and_commit(lab, daemon):
    t = lab.table("restart")
    path, o = t.append(10)
    p = Puffin(t, blob_of([2, 8]))
    peer = Peer(daemon)
    me = ids(peer.call("begin", begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)))
    frag = txn.fragment_record("f", 0, deletes=[p.delete(0, path, 2)])
    peer.call("stage", {**me, "fragment": frag})
    os.unlink(local(p.uri))
    daemon.kill()
    daemon.start()
    # The same message again is answered from what was stored.
    for _ in range(100):
        try:
            assert peer.call("stage", {**me, "fragment": frag})["fragment_id"] == "f"
            break
        except (errors.Error, OSError):
            time.sleep(0.1)
    peer.call("seal", {**me, "fragments": [ref_of(frag)], "expected_deleted": 2})
    got = peer.call("commit", {**me, "summary": []})
    assert got["state"] == "COMMITTED" and got["rows_deleted"] == 2
    t.deleted(path, [2, 8])
    t.check()


def test_same_path_written_again(lab):
    """What stands in a file is looked at each time: a name may come back with other bytes."""
    t = lab.table("again")
    path, o = t.append(10)
    p = Puffin(t, blob_of([1]))
    with lab.client() as c:
        x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        x.stage_files(deletes=[p.delete(0, path, 1)])
        x.abort()
        until_gone(p.uri)
        p = Puffin(t, blob_of([7]), name=p.uri)
        for _ in range(100):
            try:
                got = c.commit_once(t.name, kind="DELETE", deletes=[p.delete(0, path, 1)], read_snapshot_id=o.snapshot_id)
                break
            except frazil.Error as e:
                assert e.name == "PATH_CONDEMNED", e
                time.sleep(0.1)
                p = Puffin(t, blob_of([7]), name=p.uri)
    assert got.rows_deleted == 1
    t.deleted(path, [7])
    t.check()


def test_json_mirror(lab):
    t = lab.table("json")
    path, o = t.append(10)
    p = Puffin(t, blob_of([3]))
    peer = Peer(lab.daemon, "json")
    d = p.delete(0, path, 1)
    del d["vector"]
    me = ids(peer.call("begin", begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)))
    frag = txn.fragment_record("f", 0, deletes=[p.delete(0, path, 1)])
    peer.call("stage", {**me, "fragment": {**frag, "deletes": [d]}})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    assert peer.call("commit", {**me, "summary": []})["rows_deleted"] == 1
    t.deleted(path, [3])


def test_refused(lab):
    """What is wrong with a range or with what stands there: the name of the status and the member, on both ways."""
    t = lab.table("refused")
    path, o = t.append(10)
    good = blob_of([1, 2])
    flipped = good[:-6] + bytes([good[-6] ^ 1]) + good[-5:]
    zipped = zlib.compress(good)
    beyond, none = blob_of([9, 10]), blob_of([])
    p = Puffin(t, good, flipped, zipped, beyond, none, b"theta-sketch" * 4)
    size = os.path.getsize(local(p.uri))
    first = p.at[0]
    target = os.path.join(os.path.dirname(lab.daemon.warehouse), "real.puffin")
    with open(target, "wb") as f:
        f.write(good)
    link = t.info["data_location"] + "/link.puffin"
    os.symlink(target, local(link))
    gone = Puffin(t, good)
    os.unlink(local(gone.uri))

    def ref(path=p.uri, offset=first[0], length=first[1]):
        return {"path": path, "offset": offset, "length": length}

    base = p.delete(0, path, 2)
    for change, name, field in [
            ({"blob": ref(gone.uri)}, "FILE_MISSING", "blob.path"),
            ({"blob": ref(offset=first[0] + 1)}, "DV_CORRUPT", "blob"),
            ({"blob": ref(length=first[1] - 1)}, "DV_CORRUPT", "blob.length"),
            ({"blob": ref(length=first[1] + 1)}, "DV_CORRUPT", "blob.length"),
            ({"blob": ref(offset=size - 8)}, "DV_CORRUPT", "blob.length"),
            ({"blob": ref(offset=1 << 40)}, "DV_CORRUPT", "blob.length"),
            ({"blob": ref(length=8)}, "DV_CORRUPT", "blob.length"),
            ({"blob": ref(offset=-1)}, "BAD_REQUEST", "blob.offset"),
            ({"blob": ref(length=0)}, "BAD_REQUEST", "blob.length"),
            ({"blob": ref(offset=2, length=(1 << 63) - 1)}, "BAD_REQUEST", "blob.length"),
            ({"blob": ref(length=1 << 40)}, "TOO_LARGE", "blob.length"),
            (p.delete(1, path, 2), "DV_CORRUPT", "blob.crc"),
            (p.delete(2, path, 2), "DV_CORRUPT", "blob"),
            (p.delete(3, path, 2), "POSITION_RANGE", "positions"),
            (p.delete(4, path, 0), "BAD_REQUEST", "blob"),
            (p.delete(5, path, 2), "DV_CORRUPT", "blob"),
            ({"cardinality": 3}, "DV_CORRUPT", "cardinality"),
            ({"cardinality": -1}, "DV_CORRUPT", "cardinality"),
            ({"vector": good}, "BAD_REQUEST", "blob"),
            ({"blob": None}, "DV_CORRUPT", "vector"),
            ({"blob": ref("")}, "BAD_REQUEST", "blob.path"),
            ({"blob": ref("s3://bucket/v.puffin")}, "PATH_OUTSIDE", "blob.path"),
            ({"blob": ref("file:///etc/passwd")}, "PATH_OUTSIDE", "blob.path"),
            ({"blob": ref(t.info["data_location"] + "/../../v.puffin")}, "PATH_OUTSIDE", "blob.path"),
            ({"blob": ref("file://" + target)}, "PATH_OUTSIDE", "blob.path"),
            ({"blob": ref(link)}, "PATH_OUTSIDE", "blob.path"),
            ({"blob": ref(t.info["data_location"])}, ("PATH_OUTSIDE", "UNAVAILABLE", "FILE_MISSING"), "blob"),
            ({"data_file": path + "x"}, "FILE_GONE", "data_file")]:
        names = (name,) if isinstance(name, str) else name
        with lab.client() as c:
            x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
            with pytest.raises(frazil.Error) as e:
                x.stage_files(deletes=[{**base, **change}])
            assert e.value.name in names and field in e.value.field and e.value.effect == "CLEAN", (change, e.value, e.value.field)
            x.abort()
            with refused(*names):
                c.commit_once(t.name, kind="DELETE", deletes=[{**base, **change}], read_snapshot_id=o.snapshot_id)
    assert os.path.exists(local(p.uri))


def test_one_file_has_one_transaction(lab):
    t = lab.table("owner")
    path, o = t.append(10)
    p = Puffin(t, blob_of([1]), blob_of([2]))
    with lab.client() as c:
        one = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        one.stage_files(deletes=[p.delete(0, path, 1)])
        with refused("DUPLICATE_PATH"):
            c.commit_once(t.name, kind="DELETE", deletes=[p.delete(1, path, 1)], read_snapshot_id=o.snapshot_id)
        # Not the same file for vectors and for rows: neither in one fragment nor in two.
        two = c.table(t.name).begin(kind="ROW_DELTA", read_snapshot_id=o.snapshot_id)
        odd = t.files(1)[0]
        q = Puffin(t, blob_of([3]), name=odd["path"])
        odd["file_size"] = os.path.getsize(local(odd["path"]))
        with refused("DUPLICATE_PATH"):
            two.stage_files(data_files=[odd], deletes=[q.delete(0, path, 1)])
        two.stage_files(data_files=[odd], fragment_id="a")
        two.stage_files(deletes=[q.delete(0, path, 1)], fragment_id="b")
        with refused("DUPLICATE_PATH"):
            two.seal()
        two.abort()
        one.commit()
        t.deleted(path, [1])


def test_one_fragment_twice_in_one_message(lab, daemon):
    """Refused before any vector is read: the first of the two would otherwise have none."""
    t = lab.table("twins")
    path, o = t.append(10)
    p = Puffin(t, blob_of([4]), blob_of([5]))
    twins = [txn.fragment_record("0", 0, [], [p.delete(i, path, 1)]) for i in (0, 1)]
    with refused("BAD_REQUEST"):
        Peer(daemon).call("commit_once", {"begin": begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id), "fragments": twins,
                                          "summary": []})
    t.check()


def test_older_tables_have_no_vectors(lab):
    t = lab.table("v2", version=2)
    path, o = t.append(3)
    p = Puffin(t, blob_of([1]))
    with lab.client() as c, refused("UNSUPPORTED"):
        c.commit_once(t.name, kind="DELETE", deletes=[p.delete(0, path, 1)], read_snapshot_id=o.snapshot_id)


def test_another_reader_agrees(lab, daemon):
    catalog = load_catalog("frazil", type="rest", uri=daemon.uri)
    for t in lab.tables[:3]:
        assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()
