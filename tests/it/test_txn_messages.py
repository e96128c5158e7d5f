"""Commit messages of Velox, Presto, Trino and Iceberg as fragments; what they commit is read by PyIceberg and the auditor."""

import base64
import os
import zlib

import pyroaring
import pytest
from pyiceberg.catalog.rest import RestCatalog

from frazil import dv, parquet, txn
from support import messages
from support.foreign import Writer, local, read_avro
from support.lab import Lab, Peer, begin, ids, plain, ref_of, refused

DIALECTS = ["VELOX", "PRESTO", "TRINO", "ICEBERG"]
SPEC = {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "id_bucket"},
                   {"source-id": 2, "transform": "identity", "name": "name"}]}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "reports")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


def stage(lab, t, dialect, texts, kind="APPEND", read=None):
    with lab.client() as c:
        with c.table(t.name).begin(kind=kind, read_snapshot_id=read) as x:
            staged = x.stage_messages(dialect, *texts)
            return staged, x.commit()


def theirs(catalog, t):
    return sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist())


def entry(t, path):
    """The data file's entry as it stands in its manifest."""
    w = Writer(t)
    w.load()
    return next(e["data_file"] for row in w.list if row["content"] == 0
                for e in read_avro(row["manifest_path"])[2] if e["data_file"]["file_path"] == path)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_insert(lab, catalog, dialect):
    t = lab.table("insert_" + dialect.lower())
    files = t.files(5) + t.files(3)
    texts = [messages.data(dialect, f, t.metadata()) for f in files]
    staged, o = stage(lab, t, dialect, texts)
    t.added(*files)
    assert staged.warnings == [] and o.rows_inserted == 8
    assert [(f["path"], f["first_row_id"]) for f in o.files] == [(files[0]["path"], 0), (files[1]["path"], 5)]
    assert theirs(catalog, t) == t.ids()
    e = entry(t, files[0]["path"])
    assert e["record_count"] == 5 and e["file_format"] == "PARQUET"
    got = {name: {m["key"]: m["value"] for m in e[name]} for name in ("value_counts", "lower_bounds")}
    assert got["value_counts"] == {1: 5, 2: 5} and got["lower_bounds"][1] == (0).to_bytes(8, "little")
    # Velox and Presto state no order that could be believed.
    assert e["sort_order_id"] == (None if dialect in ("VELOX", "PRESTO") else 0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_partitioned(lab, catalog, dialect):
    t = lab.table("parts_" + dialect.lower(), spec=SPEC)
    files, texts = [], []
    for _ in range(4):
        f, = t.files(1)
        bucket = int.from_bytes(f["partition"][0]["value"], "little")
        texts.append(messages.data(dialect, f, t.metadata(), [bucket, "n%d" % f.ids[0]]))
        files.append(f)
    stage(lab, t, dialect, texts)
    t.added(*files)
    assert theirs(catalog, t) == t.ids()
    for i in t.ids():
        rows = catalog.load_table(t.name).scan(row_filter="name = 'n%d' and id = %d" % (i, i)).to_arrow()
        assert rows["id"].to_pylist() == [i]
    for wrong, field in ((["n0"], ""), ([bucket, 7], "[1]"), ([str(bucket), "n3"], "[0]")):
        with refused("TUPLE_MISMATCH"):
            stage(lab, t, dialect, [messages.data(dialect, f, t.metadata(), wrong)])


def test_vector_of_trino(lab, catalog):
    """Positions in the message; two tasks on one data file are joined. BC-053."""
    t = lab.table("trino_vectors")
    path, o = t.append(50)
    other, o = t.append(10)
    texts = [messages.vector(path, dv.encode([1, 2, 40]), 3), messages.vector(other, dv.encode([9]), 1),
             messages.vector(path, dv.encode([2, 3]), 2)]
    staged, o = stage(lab, t, "TRINO", texts, "DELETE", o.snapshot_id)
    t.deleted(path, [1, 2, 3, 40])
    t.deleted(other, [9])
    assert staged.warnings == [] and o.rows_deleted == 5
    assert theirs(catalog, t) == t.ids()
    # What was deleted at the read snapshot is taken off, and overlaps in silence.
    staged, o = stage(lab, t, "TRINO", [messages.vector(path, dv.encode([3, 4]), 2)], "DELETE", o.snapshot_id)
    t.deleted(path, [4])
    assert o.rows_deleted == 1
    assert theirs(catalog, t) == t.ids()


def test_merge(lab, catalog):
    """Both sinks' messages in one fragment. Nothing says that the deleted rows are gone: beside new files they count as
    moved, so that a concurrent delete of the same row is told."""
    t = lab.table("merge")
    path, o = t.append(20)
    files = t.files(2, ids=t.rows[path][4:6])
    texts = [messages.data("TRINO", files[0], t.metadata()), messages.vector(path, dv.encode([4, 5]), 2)]
    with lab.client() as c:
        late = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        late.delete(path, [5])
        _, done = stage(lab, t, "TRINO", texts, "ROW_DELTA", o.snapshot_id)
        with refused("ROW_MOVED", "WRITE_WRITE"):
            late.commit()
    t.added(*files)
    t.deleted(path, [4, 5])
    assert (done.rows_inserted, done.rows_deleted) == (2, 2)
    assert theirs(catalog, t) == t.ids()


def test_spec_of_the_delete(lab, catalog):
    """case BC-070: the data file's spec and tuple, whatever the writer states; a difference is told."""
    t = lab.table("evolved", spec=SPEC)
    path, o = t.append(1)
    t.update([{"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1}])
    now = t.metadata()["default-spec-id"]
    text = messages.vector(path, dv.encode([0]), 1, {"spec-id": now, "fields": []})
    t.append(1)
    staged, o = stage(lab, t, "TRINO", [text], "DELETE", t.head())
    t.deleted(path, [0])
    assert len(staged.warnings) == 1 and "partition spec" in staged.warnings[0] and path in staged.warnings[0]
    assert theirs(catalog, t) == t.ids()


def test_paths_stay(lab):
    """A path is taken as it is or not at all: one slash more is another name, which no delete finds and no new local
    file may have."""
    t = lab.table("slashes")
    f, = t.files(3)
    doubled = f["path"].replace("/data/", "//data/", 1)
    with refused("PATH_OUTSIDE"):
        stage(lab, t, "VELOX", [messages.data("VELOX", {**f, "path": doubled}, t.metadata())])
    stage(lab, t, "VELOX", [messages.data("VELOX", f, t.metadata())])
    t.added(f)
    assert entry(t, f["path"])["file_path"] == f["path"]
    with refused("FILE_GONE"):
        stage(lab, t, "TRINO", [messages.vector(doubled, dv.encode([0]), 1)], "DELETE", t.head())


def test_refusals(lab):
    t = lab.table("refused")
    path, o = t.append(4)
    f, = t.files(2)
    md = t.metadata()

    def bad(dialect, text, *names, kind="ROW_DELTA"):
        with refused(*names):
            stage(lab, t, dialect, [text], kind, o.snapshot_id)

    for dialect in DIALECTS:
        bad(dialect, messages.data(dialect, {**f, "record_count": 0}, md), "BAD_REQUEST")
        bad(dialect, messages.data(dialect, {**f, "spec_id": 0, "path": "file:///etc/x"}, md), "PATH_OUTSIDE")
        bad(dialect, messages.data(dialect, f, md) + "x", "BAD_REQUEST")
        bad(dialect, messages.data(dialect, f, md)[:-1] + ',"content":"DATA"}', "BAD_REQUEST")
        bad(dialect, messages.data(dialect, f, md, content="EQUALITY_DELETES"), "UNSUPPORTED")
        bad(dialect, messages.data(dialect, {**f, "file_size": f["file_size"] + 1}, md), "SIZE_MISMATCH")
    bad("VELOX", messages.data("VELOX", {**f, "spec_id": 4}, md), "SPEC_UNKNOWN")
    bad("TRINO", messages.data("TRINO", f, md, rewriteInfo={"oldFilePath": path}), "UNSUPPORTED")
    bad("ICEBERG", messages.data("ICEBERG", f, md, **{"first-row-id": 0}), "ROW_IDS")
    blob = dv.encode([1])
    bad("TRINO", messages.vector(path, blob, 2), "DV_CORRUPT")
    bad("TRINO", messages.vector(path, blob[:-1] + bytes([blob[-1] ^ 1]), 1), "DV_CORRUPT")
    bad("TRINO", messages.vector(path, blob[4:-4], 1), "DV_CORRUPT")
    bad("TRINO", messages.vector(path, dv.encode([4]), 1), "POSITION_RANGE")
    bad("TRINO", messages.vector(path + "x", blob, 1), "FILE_GONE")
    bad("TRINO", messages.vector(path, blob, 1), "BAD_REQUEST", kind="APPEND")
    assert t.head() == o.snapshot_id
    stage(lab, t, "VELOX", [messages.data("VELOX", f, md)])
    t.added(f)


def test_json_mirror(lab, daemon):
    """bytes are base64 in the mirror, so the message is too; CommitOnce takes messages as Stage does."""
    t = lab.table("mirror")
    f, = t.files(2)
    text = messages.data("VELOX", f, t.metadata())
    record = txn.fragment_record("0", 0, messages=[{"dialect": "VELOX", "json": text.encode()}])
    assert plain(record)["messages"] == [{"dialect": "VELOX", "json": base64.b64encode(text.encode()).decode()}]
    o = Peer(daemon, "json").call("commit_once", {
        "begin": begin(t, kind="APPEND"), "fragments": [record], "summary": [], "max_wait_ms": 0})
    assert o["state"] == "COMMITTED" and o["rows_inserted"] == 2
    t.added(f)


def test_repeated(lab, daemon):
    """The same Stage again is the same fragment, other text under its name is not, not even the same report."""
    t = lab.table("repeated")
    f, = t.files(2)
    text = messages.data("PRESTO", f, t.metadata())
    peer = Peer(daemon)
    mine = ids(peer.call("begin", begin(t, kind="APPEND")))
    record = txn.fragment_record("0", 0, messages=[{"dialect": "PRESTO", "json": text.encode()}])
    first = peer.call("stage", {**mine, "fragment": record})
    assert peer.call("stage", {**mine, "fragment": record}) == first
    other = txn.fragment_record("0", 0, messages=[{"dialect": "PRESTO", "json": (" " + text).encode()}])
    with refused("DIGEST_CONFLICT"):
        peer.call("stage", {**mine, "fragment": other})
    peer.call("seal", {**mine, "fragments": [ref_of(record)], "expected_files": 1, "expected_rows": 2,
                       "expected_deleted": 0})
    # Sealed and answered from the rows: the message is not needed again.
    daemon.kill()
    daemon.start()
    assert Peer(daemon).call("commit", {**mine, "max_wait_ms": 0, "summary": []})["state"] == "COMMITTED"
    t.added(f)


def test_vector_as_duckdb_writes_it(lab, catalog):
    """Keys of the vector in any order are taken and written in order; one key twice is not."""
    t = lab.table("duck")
    path, o = t.append(10)
    low = pyroaring.BitMap([1, 7]).serialize()
    none = pyroaring.BitMap().serialize()

    def framed(*parts):
        body = b"\xd1\xd3\x39\x64" + len(parts).to_bytes(8, "little") + b"".join(
            key.to_bytes(4, "little") + bits for key, bits in parts)
        return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    with refused("DV_CORRUPT"):
        stage(lab, t, "TRINO", [messages.vector(path, framed((0, low), (0, none)), 2)], "DELETE", o.snapshot_id)
    stage(lab, t, "TRINO", [messages.vector(path, framed((3, none), (1, none), (0, low)), 2)], "DELETE", o.snapshot_id)
    t.deleted(path, [1, 7])
    assert theirs(catalog, t) == t.ids()


PUFFIN = ["VELOX", "PRESTO", "ICEBERG"]


def folder(path):
    return path.rpartition("/")[0]


@pytest.mark.parametrize("dialect", PUFFIN)
def test_vector_in_puffin(lab, catalog, dialect):
    """The sink wrote a file for the data file, beside it, with what was deleted before it in it: only the rest is new.
    Several vectors may share a file (case BC-058), two may name one data file."""
    t = lab.table("puffin_" + dialect.lower())
    path, o = t.append(30)
    other, o = t.append(10)
    o = t.delete(path, [1, 2], o.snapshot_id)
    made = messages.write_puffin(folder(path), {path: [1, 2, 5, 6], other: [9]})
    again = messages.write_puffin(folder(path), {path: [1, 2, 6, 7]}, fields=())
    texts = [messages.puffin(dialect, d, **at) for found in (made, again) for d, at in found.items()]
    staged, o = stage(lab, t, dialect, texts, "DELETE", o.snapshot_id)
    t.deleted(path, [5, 6, 7])
    t.deleted(other, [9])
    assert staged.warnings == []
    assert o.rows_deleted == 4 and {d["data_file"]: (d["deleted"], d["overlap"]) for d in o.deletes} == {
        path: (3, 0), other: (1, 0)}
    assert theirs(catalog, t) == t.ids()


@pytest.mark.parametrize("dialect", PUFFIN)
def test_puffin_refused(lab, dialect):
    """cases BC-054, BC-060, BC-061"""
    t = lab.table("puffin_bad_" + dialect.lower())
    path, o = t.append(30)
    at = messages.write_puffin(folder(path), {path: [3, 4]})[path]

    def bad(*names, **more):
        with refused(*names):
            stage(lab, t, dialect, [messages.puffin(dialect, path, **{**at, **more})], "DELETE", o.snapshot_id)

    bad("DV_CORRUPT", count=3)
    bad("DV_CORRUPT", offset=at["offset"] + 8)
    bad("DV_CORRUPT", length=at["length"] - 1)
    bad("DV_CORRUPT", length=at["length"] + 1)
    bad("BAD_REQUEST", count=0)
    bad("FILE_MISSING", path=at["path"] + "x")
    bad("PATH_OUTSIDE", path="file:///etc/passwd")
    bad("DV_CORRUPT", "BAD_REQUEST", offset=-1)
    far = messages.write_puffin(folder(path), {path: [30]})[path]
    with refused("POSITION_RANGE"):
        stage(lab, t, dialect, [messages.puffin(dialect, path, **far)], "DELETE", o.snapshot_id)
    stage(lab, t, dialect, [messages.puffin(dialect, path, **at)], "DELETE", o.snapshot_id)
    t.deleted(path, [3, 4])


def test_once_again_without_its_file(lab, daemon):
    """A CommitOnce that comes again is answered by what was decided, though its Puffin file is gone by then."""
    t = lab.table("once_again")
    path, o = t.append(5)
    at = messages.write_puffin(folder(path), {path: [2]})[path]
    record = txn.fragment_record("0", 0, messages=[
        {"dialect": "VELOX", "json": messages.puffin("VELOX", path, **at).encode()}])
    body = {"begin": begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id), "fragments": [record], "summary": [],
            "max_wait_ms": 0}
    first = Peer(daemon).call("commit_once", body)
    assert first["state"] == "COMMITTED" and first["rows_deleted"] == 1
    t.deleted(path, [2])
    os.remove(local(at["path"])) if os.path.exists(local(at["path"])) else None
    daemon.restart(kill=True)  # nothing but the rows remembers it
    assert Peer(daemon).call("commit_once", body)["snapshot_id"] == first["snapshot_id"]
    body["begin"]["txn_id"] = txn.uuid7()
    with refused("FILE_MISSING"):
        Peer(daemon).call("commit_once", body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_position_deletes(lab, catalog, dialect):
    """Files of position deletes on format version 2; on version 3 they are refused like any other."""
    t = lab.table("posdel_" + dialect.lower(), version=2)
    path, _ = t.append(10)
    other, o = t.append(4)
    both = parquet.write_deletes({path: [1], other: [2]}, t.info)
    one = parquet.write_deletes({path: [5, 6]}, t.info)
    texts = [messages.deletes(dialect, d, t.metadata()) for d in (one, both)]
    stage(lab, t, dialect, texts[:1], "DELETE", o.snapshot_id)
    t.deleted(path, [5, 6])
    with refused("WRITE_WRITE"):  # names no data file, so that any delete of the partition meets it
        stage(lab, t, dialect, texts[1:] + [messages.data(dialect, t.files(1)[0], t.metadata())], "ROW_DELTA", o.snapshot_id)
    stage(lab, t, dialect, texts[1:], "DELETE", t.head())
    t.deleted(path, [1])
    t.deleted(other, [2])
    assert theirs(catalog, t) == t.ids()
    with refused("BAD_REQUEST"):
        stage(lab, t, dialect, [messages.deletes(dialect, {**one, "record_count": 0}, t.metadata())], "DELETE", t.head())
    with refused("UNSUPPORTED"):
        stage(lab, t, "TRINO", [messages.vector(path, dv.encode([0]), 1)], "DELETE", t.head())
    v3 = lab.table("posdel_v3_" + dialect.lower())
    path, o = v3.append(3)
    late = parquet.write_deletes({path: [1]}, v3.info if "format_version" not in v3.info else {**v3.info, "format_version": 2})
    with refused("UNSUPPORTED"):
        stage(lab, v3, dialect, [messages.deletes(dialect, late, v3.metadata())], "DELETE", o.snapshot_id)
