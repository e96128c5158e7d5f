"""Files that are broken, cut, changed or lie elsewhere, read as table metadata, lists, manifests and vectors: typed, named, no effect."""

import gzip
import json
import os
import shutil
import time
import uuid

import psycopg
import pytest

import frazil
from support.foreign import Writer, local, read_avro, write_avro
from support.lab import Lab
from support.neighbour import Neighbour


@pytest.fixture(scope="module")
def settings():
    return {"rest.verify-snapshots": "reject"}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "files")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def model(lab):
    """The metadata document of a table with a vector, as bytes, and the folder to put others beside it."""
    t = lab.table("model")
    path, o = t.append(10)
    t.delete(path, [1], o.snapshot_id)
    location = t.load()["metadata-location"]
    with open(local(location), "rb") as f:
        return f.read(), os.path.dirname(local(location))


def rows(conninfo):
    with psycopg.connect(conninfo) as db:
        return [db.execute("SELECT count(*) FROM frazil.%s" % t).fetchone()[0] for t in ("tabular", "head", "batch", "txn", "object")]


def register(lab, path):
    return lab.rest.call("POST", "/v1/namespaces/files/register", {"name": "r", "metadata-location": "file://" + path})


def member(doc, path, value):
    """A copy of the document with one member changed, or removed."""
    doc = json.loads(doc)
    at = doc
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return json.dumps(doc).encode()


def documents(good):
    deep = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    yield from [("empty", b""), ("blank", b" \n"), ("null", b"null"), ("array", b"[]"), ("text", b'"x"'), ("noise", os.urandom(5000)),
                ("half", good[:len(good) // 2]), ("without end", good.rstrip()[:-1]), ("trailing", good + b"x"), ("twice", good + good),
                ("deep", deep), ("zero byte", good[:50] + b"\0" + good[50:]), ("latin", good.replace(b"model", b"mod\xe9l", 1)),
                ("same member twice", good.rstrip()[:-1] + b',"location":"file:///x"}'),
                ("unknown and deep", good.rstrip()[:-1] + b',"zz":' + b"[" * 5000 + b"]" * 5000 + b"}")]
    for key in ("format-version", "table-uuid", "location", "last-updated-ms", "last-column-id", "schemas", "current-schema-id", "partition-specs",
                "default-spec-id", "last-partition-id", "last-sequence-number", "next-row-id", "snapshots", "sort-orders", "default-sort-order-id"):
        yield key + " of another type", member(good, [key], {"a": [1]} if key != "snapshots" else "x")
        if key not in ("snapshots",):
            yield key + " missing", member(good, [key], None)
    for path, value in [
            (["format-version"], 99), (["format-version"], 0), (["table-uuid"], "not-a-uuid"), (["current-schema-id"], 77), (["default-spec-id"], 77),
            (["default-sort-order-id"], 77), (["current-snapshot-id"], 77), (["next-row-id"], -5), (["last-sequence-number"], -1),
            (["snapshots", 0, "snapshot-id"], "x"), (["snapshots", 0, "manifest-list"], 5), (["snapshots", 0, "summary"], []),
            (["snapshots", 0, "sequence-number"], 1 << 62), (["refs", "main", "snapshot-id"], 12345), (["refs", "main", "type"], "other"),
            (["schemas", 0, "fields", 0, "type"], "none"), (["schemas", 0, "fields", 0, "id"], 0x7fffffff + 1), (["schemas", 0, "fields", 0], 5),
            (["partition-specs", 0, "fields"], [{"source-id": 99, "field-id": 1000, "name": "x", "transform": "identity"}]), (["properties"], {"a": 1}),
            (["snapshot-log"], [{"timestamp-ms": "x"}]), (["metadata-log"], "x")]:
        yield "%s = %s" % (path, value), member(good, path, value)


def test_metadata_documents(daemon, lab, model, conninfo):
    """Case BC-222 for registered documents, and every member of one."""
    good, folder = model
    before = rows(conninfo)
    with Neighbour(daemon, commits=False):
        before = rows(conninfo)
        for n, (what, text) in enumerate(documents(good)):
            for packed in (False, True):
                path = os.path.join(folder, "bad-%d%s.metadata.json" % (n, ".gz" if packed else ""))
                with open(path, "wb") as f:
                    f.write(gzip.compress(text) if packed else text)
                got = register(lab, path)
                assert got.status in (400, 409), (what, got)
                assert got.error["code"] == got.status and len(got.error["message"]) > 5, (what, got)
                os.unlink(path)
        assert rows(conninfo) == before


def test_packed_documents(lab, model, conninfo):
    """gzip that is cut, damaged, followed by bytes, or a bomb."""
    good, folder = model
    packed = gzip.compress(good)
    bomb = gzip.compress(b" " * (1 << 30), 9)
    before = rows(conninfo)
    for what, text in [("cut", packed[:-1]), ("half", packed[:len(packed) // 2]), ("head", packed[:8]), ("crc", packed[:-6] + b"\0\0" + packed[-4:]),
                       ("size", packed[:-4] + b"\1\0\0\0"), ("flipped", packed[:40] + bytes([packed[40] ^ 255]) + packed[41:]), ("bomb", bomb),
                       ("plain", good), ("twice", packed + packed[:20])]:
        path = os.path.join(folder, "packed.gz.metadata.json")
        with open(path, "wb") as f:
            f.write(text)
        got = register(lab, path)
        os.unlink(path)
        if what == "plain":
            assert got.status in (200, 400, 409), got
            continue
        assert got.status == 400, (what, got)
    after = rows(conninfo)
    assert after[0] - before[0] in (0, 1)


def test_places(lab, model, tmp_path):
    """Links, folders, pipes and devices where a document is expected; outside the roots through a link."""
    good, folder = model
    outside = tmp_path / "outside.metadata.json"
    outside.write_bytes(good)
    os.symlink(outside, os.path.join(folder, "link.metadata.json"))
    os.symlink(tmp_path, os.path.join(folder, "linked"))
    os.mkdir(os.path.join(folder, "folder.metadata.json"))
    os.mkfifo(os.path.join(folder, "pipe.metadata.json"))
    for name in ("link.metadata.json", "linked/outside.metadata.json", "folder.metadata.json", "pipe.metadata.json", "none.metadata.json",
                 "x" * 300 + ".metadata.json", "a/" * 500 + "x.metadata.json", "none/none.metadata.json", "../../../../../../etc/passwd"):
        began = time.monotonic()
        got = register(lab, os.path.join(folder, name))
        assert got.status in (400, 404, 500) and got.error["message"], (name, got)
        assert time.monotonic() - began < 5, name
    os.unlink(os.path.join(folder, "pipe.metadata.json"))


def damaged(data):
    """The same bytes cut, extended, flipped and replaced, by name."""
    yield "empty", b""
    yield "noise", os.urandom(2000)
    yield "magic", b"XYZ" + data[3:]
    yield "json", b'{"a":1}'
    for n in range(1, 12):
        yield "cut at %d/12" % n, data[:len(data) * n // 12]
    for n in range(0, 24):
        at = len(data) * n // 24
        yield "flipped at %d/24" % n, data[:at] + bytes([data[at] ^ 0x5a]) + data[at + 1:]


@pytest.mark.parametrize("what", ["list", "manifest"])
def test_lists_and_manifests(daemon, lab, what):
    """A client's snapshot whose list or manifest is damaged: refused, or harmless; the table goes on."""
    t = lab.table("damaged_" + what)
    t.append(5)
    t.append(5)
    w = Writer(t)
    w.load()
    source = w.parent["manifest-list"] if what == "list" else w.list[0]["manifest_path"]
    with open(local(source), "rb") as f:
        good = f.read()
    head = t.head()
    with Neighbour(daemon, slow=3):
        for n, (how, data) in enumerate(damaged(good)):
            path = w.new_path("avro")
            with open(local(path), "wb") as f:
                f.write(data)
            listed = path
            if what == "manifest":
                listed = w.new_path("avro")
                changed = [{**row, "manifest_path": path, "manifest_length": len(data), "existing_files_count": 1, "added_files_count": 0,
                            "existing_rows_count": row["added_rows_count"], "added_rows_count": 0} for row in w.list[:1]] + w.list[1:]
                write_avro(listed, w.list_schema, w.list_header, changed)
            md = t.metadata()
            snapshot = {"snapshot-id": 1000 + n, "parent-snapshot-id": head, "sequence-number": md["last-sequence-number"] + 1,
                        "timestamp-ms": int(time.time() * 1000), "manifest-list": listed, "summary": {"operation": "replace"}, "schema-id": 0,
                        "first-row-id": md["next-row-id"], "added-rows": 0}
            got = lab.rest.call("POST", t.target, {
                "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}],
                "updates": [{"action": "add-snapshot", "snapshot": snapshot},
                            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1000 + n}]})
            if got.status == 200:
                # A flipped bit in a statistic is nobody's to find; the head goes back for the next one.
                assert how.startswith("flipped"), how
                t.update([{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": head}])
                continue
            assert got.status == 400 and got.error["type"] == "ValidationException" and "updates[0]" in got.error["message"], (how, got)
            assert t.head() == head
    lab.forget(t)


def test_damage_behind_a_table(daemon, lab):
    """Files of the head are damaged afterwards: reads of the metadata go on, deletions are typed, other tables do not notice, and
    all goes on when the files are whole again."""
    t = lab.table("behind")
    path, o = t.append(10)
    t.delete(path, [1, 2], o.snapshot_id)
    head = t.head()
    with_lists = next(s for s in t.metadata()["snapshots"] if s["snapshot-id"] == head)["manifest-list"]
    manifests = [row["manifest_path"] for row in read_avro(with_lists)[2]]
    puffin = next(e["data_file"]["file_path"] for m in manifests for e in read_avro(m)[2] if e["data_file"]["content"] == 1)
    for target in [with_lists, *manifests, puffin]:
        kept = local(target) + ".kept"
        shutil.copy(local(target), kept)
        with open(kept, "rb") as f:
            good = f.read()
        # A flipped bit of an Avro file may be anything; the vector has a checksum of its own, behind it.
        for how in ("cut", "gone", "link") + (("flipped",) if target == puffin else ()):
            daemon.kill()
            os.unlink(local(target))
            if how == "cut":
                with open(local(target), "wb") as f:
                    f.write(good[:14 if target == puffin else len(good) // 2])
            elif how == "flipped":
                with open(local(target), "wb") as f:
                    f.write(good[:14] + bytes([good[14] ^ 255]) + good[15:])
            elif how == "link":
                os.symlink(kept, local(target))
            daemon.start()
            call = dict(kind="DELETE", deletes=[(path, [3])], read_snapshot_id=head, txn_id=frazil.uuid7(), max_wait_ms=1500)
            with lab.client() as c:
                try:
                    told = c.commit_once(t.name, info=t.info, **call)
                except frazil.Error as e:
                    told = e
            assert isinstance(told, frazil.Error) and told.name in (
                "SNAPSHOT_TOO_OLD", "TABLE_HALTED", "COMMIT_UNKNOWN", "TIMEOUT", "CORRUPT", "UNAVAILABLE"), (target, how, told)
            assert t.head() == head
            if how == "gone":
                with Neighbour(daemon):
                    pass
            if os.path.lexists(local(target)):
                os.unlink(local(target))
            shutil.copy(kept, local(target))
            daemon.kill()
            daemon.start()
            for shown in daemon.admin.get("/admin/tables?halted=true").json["tables"]:
                daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % shown["table-uuid"])
        os.unlink(kept)
    with lab.client() as c:
        last = t.head()
        c.commit_once(t.name, info=t.info, kind="DELETE", deletes=[(path, [5])], read_snapshot_id=head)
    assert t.head() != last
    lab.forget(t)
