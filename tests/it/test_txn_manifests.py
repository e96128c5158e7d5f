"""Finished manifests of workers, listed as they are: by PyIceberg for version 2, and for version 3 under the schema and
header of a manifest that Iceberg Java wrote."""

import hashlib
import json
import os
import time

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest
from pyiceberg.typedef import Record

import frazil
from frazil import errors, txn
from support import audit, manifests
from support.foreign import Writer, local, read_avro
from support.lab import Lab, Peer, begin, ids, ref_of, refused


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "adopt")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


class Manifest:
    """A manifest in the table's folder; `change` replaces members as manifests.java has them."""

    made = 0

    def __init__(self, table, files, **change):
        Manifest.made += 1
        md = table.metadata()
        self.path = "%s/metadata/worker-%d.avro" % (md["location"].rstrip("/"), Manifest.made)
        self.ref = manifests.java(md, files, self.path, **change)
        self.length, self.rows = self.ref["length"], self.ref["added_rows"]

    @property
    def hash(self):
        with open(local(self.path), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()


def listed(t):
    """The rows of the current manifest list, by path."""
    md = t.metadata()
    head = next(s for s in md["snapshots"] if s["snapshot-id"] == md["current-snapshot-id"])
    return {r["manifest_path"]: r for r in read_avro(head["manifest-list"])[2]}


def row_ids_are(lab, t, outcome):
    """What the outcome says of each file is what the raw files give."""
    first = {f["path"]: f["first_row_id"] for f in outcome.files}
    seen = [r for r in audit.rows(lab.daemon, t.name) if r["path"] in first]
    assert seen and all(r["_row_id"] == first[r["path"]] + r["pos"] for r in seen)


def test_listed_as_it_is(lab, catalog):
    t = lab.table("plain")
    t.append(3)
    own, a, b = t.files(2), t.files(5) + t.files(4), t.files(6)
    one, two = Manifest(t, a), Manifest(t, b)
    before = one.hash, two.hash
    with lab.client() as c:
        x = c.table(t.name).begin()
        x.stage_files(own, manifests=[one.ref, two.ref])
        got = x.commit()
    assert (one.hash, two.hash) == before
    assert [f["path"] for f in got.files] == [f["path"] for f in own + a + b] and got.rows_inserted == 17
    t.added(*own, *a, *b)
    rows = listed(t)
    for m, n in ((one, 2), (two, 1)):
        r = rows[m.path]
        assert (r["manifest_length"], r["added_files_count"], r["added_rows_count"]) == (m.length, n, m.rows)
        assert (r["existing_files_count"], r["deleted_files_count"], r["existing_rows_count"], r["deleted_rows_count"]) == (0, 0, 0, 0)
        assert r["added_snapshot_id"] == got.snapshot_id and r["sequence_number"] == r["min_sequence_number"] == got.sequence_number
    # Each manifest's rows are reserved in the list's order, and nothing overlaps.
    spans = sorted((r["first_row_id"], r["first_row_id"] + r["added_rows_count"]) for r in rows.values())
    assert all(x[1] <= y[0] for x, y in zip(spans, spans[1:])) and t.metadata()["next-row-id"] == spans[-1][1] == 20
    row_ids_are(lab, t, got)
    s = t.summary()
    assert (s["added-data-files"], s["added-records"], s["total-records"], s["operation"]) == ("4", "17", "20", "append")
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()
    # Rows of them can be deleted; a file that goes whole takes an entry out, and the others keep their metrics.
    path, keeps = a[0]["path"], a[1]["path"]
    t.delete(path, range(5), got.snapshot_id)
    t.delete(keeps, [1], t.head())
    w = Writer(t)
    w.load()
    live = {e["data_file"]["file_path"]: e for _, _, _, e in w.live()}
    assert path not in live and live[keeps]["data_file"]["lower_bounds"]
    assert live[keeps]["sequence_number"] == got.sequence_number
    t.check()


def test_beside_deletions_and_in_one_message(lab, catalog):
    t = lab.table("mixed")
    path, o = t.append(10)
    a, b = t.files(3), t.files(2)
    m = Manifest(t, a)
    with lab.client() as c:
        got = c.commit_once(t.name, kind="ROW_DELTA", data_files=b, deletes=[(path, [2])], manifests=[m.ref],
                            read_snapshot_id=o.snapshot_id)
    t.added(*b, *a)
    t.deleted(path, [2])
    assert m.path in listed(t) and (got.rows_inserted, got.rows_deleted) == (5, 1)
    row_ids_are(lab, t, got)
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()


def test_restart_between_stage_and_commit(lab, daemon):
    t = lab.table("restart")
    files = t.files(4)
    m = Manifest(t, files)
    peer = Peer(daemon)
    me = ids(peer.call("begin", begin(t)))
    frag = txn.fragment_record("f", 0, manifests=[m.ref])
    peer.call("stage", {**me, "fragment": frag})
    daemon.kill()
    daemon.start()
    for _ in range(100):
        try:
            peer.call("stage", {**me, "fragment": frag})
            break
        except (errors.Error, OSError):
            time.sleep(0.1)
    peer.call("seal", {**me, "fragments": [ref_of(frag)], "expected_files": 1, "expected_rows": 4})
    got = peer.call("commit", {**me, "summary": []})
    assert got["state"] == "COMMITTED" and got["files"][0]["path"] == files[0]["path"] and m.path in listed(t)
    t.added(*files)
    t.check()


def test_version_2_by_pyiceberg(lab, catalog):
    """An identity partition; the list says which names it holds."""
    spec = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "name", "transform": "identity"}]}
    t = lab.table("v2", version=2, spec=spec, audited=False)
    theirs = catalog.load_table(t.name)
    made = [f for _ in range(2) for f in t.files(1)]
    path = t.metadata()["location"] + "/metadata/py.avro"
    io = PyArrowFileIO()
    os.makedirs(os.path.dirname(local(path)), exist_ok=True)
    with write_manifest(2, theirs.spec(), theirs.schema(), io.new_output(path), None, "deflate") as w:
        for f in made:
            w.add_entry(ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=None, sequence_number=None, file_sequence_number=None,
                data_file=DataFile.from_args(
                    content=DataFileContent.DATA, file_path=f["path"], file_format=FileFormat.PARQUET,
                    partition=Record("n%d" % f.ids[0]), record_count=1, file_size_in_bytes=f["file_size"])))
    ref = {"path": path, "length": os.path.getsize(local(path)), "added_files": 2, "added_rows": 2}
    with lab.client() as c:
        got = c.commit_once(t.name, manifests=[ref])
    assert [f["first_row_id"] for f in got.files] == [None, None]
    (row,) = listed(t).values()
    assert row["manifest_path"] == path and row["partitions"] == [
        {"contains_null": False, "contains_nan": False, "lower_bound": b"n0", "upper_bound": b"n1"}]
    t.added(*made)
    theirs = catalog.load_table(t.name)
    assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert theirs.scan(row_filter="name = 'n1'").to_arrow()["id"].to_pylist() == [1]
    # Its snapshot id stands in what it writes by default.
    with write_manifest(2, theirs.spec(), theirs.schema(), io.new_output(path + "2"), 7, "deflate") as w:
        w.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, data_file=DataFile.from_args(
            content=DataFileContent.DATA, file_path=made[0]["path"], file_format=FileFormat.PARQUET,
            partition=Record("n0"), record_count=1, file_size_in_bytes=1)))
    bad = {"path": path + "2", "length": os.path.getsize(local(path + "2")), "added_files": 1, "added_rows": 1}
    with lab.client() as c, pytest.raises(frazil.Error) as e:
        c.commit_once(t.name, manifests=[bad])
    assert (e.value.name, e.value.field) == ("MANIFEST_UNFIT", "fragments[0].manifests[0].entries[0].snapshot_id")


def test_table_changes_before_the_commit(lab):
    """The version moves on: typed. The spec of its files stays until it has ended. Nothing is listed."""
    t = lab.table("upgraded", version=2, audited=False)
    m = Manifest(t, t.files(1))
    with lab.client() as c:
        x = c.table(t.name).begin()
        x.stage_files(manifests=[m.ref])
        t.update([{"action": "upgrade-format-version", "format-version": 3}])
        with refused("FORMAT_CHANGED"):
            x.commit()
    t.version = 3
    t = lab.table("respec")
    m = Manifest(t, t.files(1))
    with lab.client() as c:
        x = c.table(t.name).begin()
        x.stage_files(manifests=[m.ref])
        t.update([{"action": "add-spec", "spec": {"spec-id": 1, "fields": [
            {"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[4]"}]}},
            {"action": "set-default-spec", "spec-id": 1}, {"action": "remove-partition-specs", "spec-ids": [0]}], want=409)
        x.abort()
    assert t.head() in (None, -1)


def test_files_that_nobody_commits(lab):
    t = lab.table("garbage")
    lost, kept = t.files(2), t.files(2)
    one, two = Manifest(t, lost), Manifest(t, kept)
    with lab.client() as c:
        x = c.table(t.name).begin()
        x.stage_files(manifests=[one.ref])
        x.abort()
        c.commit_once(t.name, manifests=[two.ref])
    t.added(*kept)
    end = time.monotonic() + 15
    while os.path.exists(local(one.path)) or os.path.exists(local(lost[0]["path"])):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)
    assert os.path.exists(local(two.path)) and os.path.exists(local(kept[0]["path"]))
    # Once it is listed, neither it nor its files are somebody's to bring.
    with lab.client() as c:
        with refused("DUPLICATE_PATH"):
            c.commit_once(t.name, data_files=kept)
        with refused("DUPLICATE_PATH"):
            c.commit_once(t.name, manifests=[Manifest(t, kept).ref])
        with refused("DUPLICATE_PATH"):
            c.commit_once(t.name, manifests=[Manifest(t, t.files(1) * 2).ref])
    t.check()


def test_refused(lab):
    t = lab.table("refused", audited=False)
    t.append(1)
    files = t.files(2)
    good = Manifest(t, files)
    gone = Manifest(t, files)
    os.unlink(local(gone.path))
    bound = [{"key": 1, "value": b"abc"}]
    bad = "MANIFEST_UNFIT"
    for change, name, field in [
            ({"entry": {"status": 0, "snapshot_id": 5, "sequence_number": 1, "file_sequence_number": 1}}, bad, "entries[0].status"),
            ({"entry": {"status": 2, "snapshot_id": 5, "sequence_number": 1, "file_sequence_number": 1}}, bad, "entries[0].status"),
            ({"entry": {"snapshot_id": 5}}, bad, "entries[0].snapshot_id"),
            ({"entry": {"sequence_number": 5}}, bad, "entries[0].sequence_number"),
            ({"entry": {"file_sequence_number": 5}}, bad, "entries[0].file_sequence_number"),
            ({"file": {"first_row_id": 0}}, bad, "entries[0].first_row_id"),
            ({"file": {"content": 1}}, bad, "entries[0].content"),
            ({"header": {"content": "deletes"}}, bad, "content"),
            ({"header": {"format-version": "2"}}, bad, "format-version"),
            ({"header": {"format-version": "x"}}, bad, "format-version"),
            ({"header": {"partition-spec-id": "7"}}, "SPEC_UNKNOWN", "partition-spec-id"),
            ({"header": {"schema": json.dumps({"type": "struct", "schema-id": 9, "fields": []}), "schema-id": None}}, "SCHEMA_UNKNOWN", "schema"),
            ({"header": {"schema": "{}", "schema-id": None}}, bad, "schema"),
            ({"header": {"schema-id": "8"}}, "SCHEMA_UNKNOWN", "schema"),
            ({"file": {"file_path": "file:///etc/passwd"}}, "PATH_OUTSIDE", "entries[0].path"),
            ({"file": {"file_format": "CSV"}}, "UNSUPPORTED", "entries[0].format"),
            ({"file": {"record_count": 0}}, "BAD_REQUEST", "entries[0].record_count"),
            ({"file": {"file_size_in_bytes": 0}}, "BAD_REQUEST", "entries[0].file_size"),
            ({"file": {"lower_bounds": bound}}, "METRICS_INVALID", "entries[0].lower_bounds"),
            ({"file": {"value_counts": [{"key": 77, "value": 1}]}}, "METRICS_INVALID", "entries[0].value_counts"),
            ({"file": {"sort_order_id": 4}}, "BAD_REQUEST", "entries[0].sort_order_id"),
            ({"file": {"key_metadata": b"k"}}, "ENCRYPTED", "entries[0].key_metadata")]:
        refuses(lab, t, Manifest(t, files, **change).ref, name, field)
    with open(local(good.path), "rb") as f:
        raw = f.read()
    for i, (text, name) in enumerate([(raw[:-20], bad), (raw[:100], bad), (b"PFA1" + bytes(50), bad), (raw[:200] + raw[201:], bad)]):
        cut = "%s/metadata/cut-%d.avro" % (t.metadata()["location"], i)
        with open(local(cut), "wb") as f:
            f.write(text)
        refuses(lab, t, {**good.ref, "path": cut, "length": len(text)}, name, "manifests[0]")
    for change, name, field in [
            ({"length": good.length - 1}, "SIZE_MISMATCH", "length"), ({"length": good.length + 1}, "SIZE_MISMATCH", "length"),
            ({"length": 0}, "BAD_REQUEST", "length"), ({"length": 1 << 50}, "TOO_LARGE", "length"),
            ({"added_files": 2}, bad, "added_files"), ({"added_files": 0}, "BAD_REQUEST", "added_files"),
            ({"added_rows": 3}, bad, "added_rows"), ({"added_rows": -2}, "BAD_REQUEST", "added_rows"),
            ({"path": gone.path}, "FILE_MISSING", "path"), ({"path": ""}, "BAD_REQUEST", "path"),
            ({"path": "s3://b/m.avro"}, "PATH_OUTSIDE", "path")]:
        refuses(lab, t, {**good.ref, **change}, name, field)
    with lab.client() as c:
        x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=t.head())
        with refused("BAD_REQUEST"):
            x.stage_files(manifests=[good.ref])
        # It is there with its size when the transaction is sealed, and so are its files.
        x = c.table(t.name).begin()
        x.stage_files(manifests=[good.ref])
        os.unlink(local(good.path))
        with refused("FILE_MISSING"):
            x.seal()
        x.abort()
        odd = t.files(1)
        odd[0]["file_size"] += 1
        x = c.table(t.name).begin()
        x.stage_files(manifests=[Manifest(t, odd).ref])
        with refused("SIZE_MISMATCH"):
            x.seal()


def refuses(lab, t, ref, name, field):
    with lab.client() as c:
        x = c.table(t.name).begin()
        with pytest.raises(frazil.Error) as e:
            x.stage_files(manifests=[ref])
        assert e.value.name == name and field in e.value.field and e.value.effect == "CLEAN", (name, field, e.value, e.value.field)
        x.abort()
        with refused(name):
            c.commit_once(t.name, manifests=[ref])
