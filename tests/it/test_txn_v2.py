"""Tables of format version 2: data files and files of position deletes by workers, races about one data file, the upgrade
in between and what old deletes leave behind. The auditor and PyIceberg read what they find."""

import concurrent.futures
import os
import tempfile

import psycopg
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from frazil import parquet
from support.audit import auditor
from support.foreign import Writer, local, read_avro
from support.lab import Lab, Peer, begin, ids, ref_of, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "v2")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


def delete_file(t, deletes, **options):
    return parquet.write_deletes(deletes, t.info, **options)


def delete(t, deletes, read, kind="DELETE", files=(), **options):
    """A commit of one delete file that stands."""
    with t.lab.client() as c:
        o = c.commit_once(t.name, kind=kind, data_files=files, delete_files=[delete_file(t, deletes, **options)],
                          read_snapshot_id=read)
    for path, positions in deletes.items():
        t.deleted(path, positions)
    t.added(*files)
    return o


def upgrade(t):
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None


def same_to_pyiceberg(catalog, t):
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()


def test_the_file():
    """What the client writes is what the spec says of such files: reserved field ids, order, no nulls."""
    with tempfile.TemporaryDirectory() as folder:
        info = {"format_version": 2, "data_location": "file://" + folder, "spec_json": '{"spec-id":4,"fields":[]}'}
        r = parquet.write_deletes({"file:///b": [7, 3, 7], "file:///a": [5]}, info)
        f = pq.ParquetFile(local(r["path"]))
        assert f.read().to_pydict() == {"file_path": ["file:///a", "file:///b", "file:///b"], "pos": [5, 3, 7]}
        assert [int(x.metadata[b"PARQUET:field_id"]) for x in f.schema_arrow] == [2147483546, 2147483545]
        assert not any(x.nullable for x in f.schema_arrow)
        assert (r["spec_id"], r["record_count"], r["data_files"]) == (4, 3, ["file:///a", "file:///b"])
        assert r["file_size"] == os.path.getsize(local(r["path"]))
        assert [b["value"] for b in r["lower_bounds"]] == [b"file:///a", (3).to_bytes(8, "little")]
        assert [b["value"] for b in r["upper_bounds"]] == [b"file:///b", (7).to_bytes(8, "little")]
        for wrong in ({}, {"a": []}, {"a": [-1]}):
            with pytest.raises(frazil.SchemaError):
                parquet.write_deletes(wrong, info)
        with pytest.raises(frazil.SchemaError):
            parquet.write_deletes({"a": [1]}, {**info, "format_version": 3})


def test_read_by_others(lab, catalog):
    t = lab.table("plain", version=2)
    a, _ = t.append(10)
    b, o = t.append(10)
    got = delete(t, {a: [0, 4, 9]}, o.snapshot_id)
    assert (got.rows_deleted, got.deletes, got.files) == (3, [], [])
    got = delete(t, {a: [1], b: [2, 3]}, got.snapshot_id)
    got = delete(t, {b: [5]}, got.snapshot_id, kind="ROW_DELTA", files=t.files(4))
    assert (got.rows_deleted, got.rows_inserted) == (1, 4) and got.files[0]["first_row_id"] is None
    t.check()
    same_to_pyiceberg(catalog, t)
    md = t.metadata()
    assert md["format-version"] == 2 and "next-row-id" not in md
    for s in md["snapshots"]:
        assert "first-row-id" not in s and "added-rows" not in s
        schema, _, rows = read_avro(s["manifest-list"])
        assert "first_row_id" not in [f["name"] for f in schema["fields"]]
        for row in rows:
            schema, header, entries = read_avro(row["manifest_path"])
            assert header["format-version"] == "2"
            assert all("first_row_id" not in e["data_file"] and "content_offset" not in e["data_file"] for e in entries)
    s = t.summary()
    assert (s["operation"], s["total-delete-files"], s["total-position-deletes"]) == ("overwrite", "3", "7")
    assert (s["added-delete-files"], s["added-position-delete-files"], s["added-position-deletes"]) == ("1", "1", "1")
    # One data file is named as the file's own.
    w = Writer(t)
    w.load()
    scopes = {e["data_file"]["file_path"]: e["data_file"]["referenced_data_file"] for row in w.list if row["content"] == 1
              for e in read_avro(row["manifest_path"])[2]}
    assert sorted(scopes.values(), key=str) == sorted([a, b, None], key=str)


def test_partitions(lab, catalog):
    """Spec and partition of a delete file are those of its data files; without names it is the whole partition's."""
    t = lab.table("parts", version=2, spec={"spec-id": 0, "fields": [
        {"source-id": 1, "field-id": 1000, "name": "id", "transform": "bucket[4]"}]})
    files = t.files(40)
    assert len(files) == 4
    # One call made all four: each has the ids that its bucket holds.
    for f in files:
        f.ids = pq.read_table(local(f["path"]))["id"].to_pylist()
    with lab.client() as c:
        o = c.commit_once(t.name, data_files=files)
    t.added(*files)
    one, two = files[0], files[1]
    good = dict(partition=one["partition"])
    with lab.client() as c:
        for record, status in (
                (delete_file(t, {one["path"]: [0]}, partition=two["partition"]), "TUPLE_MISMATCH"),
                (delete_file(t, {one["path"]: [0]}), "TUPLE_MISMATCH"),
                (delete_file(t, {one["path"]: [0], two["path"]: [0]}, **good), "TUPLE_MISMATCH"),
                (delete_file(t, {one["path"]: [0]}, spec_id=3, **good), "SPEC_UNKNOWN"),
                ({**delete_file(t, {"x": [0]}, partition=[{"field_id": 1000, "value": None}]), "data_files": []}, "FILE_GONE")):
            with refused(status):
                c.commit_once(t.name, kind="DELETE", delete_files=[record], read_snapshot_id=o.snapshot_id)
        unnamed = {**delete_file(t, {one["path"]: [1]}, **good), "data_files": []}
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        txn.stage_files(delete_files=[unnamed])
        txn.delete_file({two["path"]: [0]}, partition=two["partition"])
        lab.daemon.restart(kill=True)
    with lab.client() as c, refused("WRITE_WRITE"):
        # It came first: whoever changes rows of its partition has not seen that.
        txn.client = c
        txn.commit()
        t.deleted(one["path"], [1])
        t.deleted(two["path"], [0])
        c.commit_once(t.name, kind="ROW_DELTA", delete_files=[delete_file(t, {one["path"]: [2]}, **good)],
                      read_snapshot_id=o.snapshot_id)
    delete(t, {one["path"]: [2]}, t.head(), **good)
    t.check()
    same_to_pyiceberg(catalog, t)


@pytest.mark.parametrize("transport", ["tcp", "json"])
def test_refusals(lab, transport):
    """On every transport, at Stage and at Seal."""
    t = lab.table("refused_" + transport, version=2)
    a, o = t.append(10)
    good = delete_file(t, {a: [1, 3]})
    peer = Peer(lab.daemon, transport)
    other = a.replace("/data/", "/data/x")
    for change, status in (
            ({"data_files": [other]}, "FILE_GONE"), ({"data_files": [a, a]}, "BAD_REQUEST"), ({"data_files": [""]}, "BAD_REQUEST"),
            ({"path": "file:///etc/passwd"}, "PATH_OUTSIDE"), ({"format": "PUFFIN"}, "UNSUPPORTED"),
            ({"record_count": 0}, "BAD_REQUEST"), ({"file_size": -1}, "BAD_REQUEST"),
            ({"column_sizes": [{"field_id": 1, "value": 1}]}, "METRICS_INVALID"),
            ({"upper_bounds": [{"field_id": 2147483545, "value": (10).to_bytes(8, "little")}]}, "POSITION_RANGE"),
            ({"lower_bounds": [], "upper_bounds": [{"field_id": 2147483546, "value": b"file:///a"}]}, "METRICS_INVALID")):
        mine = begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)
        me = ids(peer.call("begin", mine))
        with refused(status):
            peer.call("stage", {**me, "fragment": frazil.txn.fragment_record("f", 0, delete_files=[{**good, **change}])})
        peer.call("abort", {**me, "reason": ""})
    for change, status in (({"file_size": good["file_size"] + 1}, "SIZE_MISMATCH"),
                           ({"path": good["path"].replace("frazil-", "nowhere-")}, "FILE_MISSING")):
        me = ids(peer.call("begin", begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)))
        f = frazil.txn.fragment_record("f", 0, delete_files=[{**good, **change}])
        peer.call("stage", {**me, "fragment": f})
        with refused(status):
            peer.call("seal", {**me, "fragments": [ref_of(f)]})
        peer.call("abort", {**me, "reason": ""})
    me = ids(peer.call("begin", begin(t)))
    with refused("BAD_REQUEST"):
        peer.call("stage", {**me, "fragment": frazil.txn.fragment_record("f", 0, delete_files=[good])})
    peer.call("abort", {**me, "reason": ""})
    # All of that left nothing; the same file goes in.
    me = ids(peer.call("begin", begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)))
    f = frazil.txn.fragment_record("f", 0, delete_files=[good])
    peer.call("stage", {**me, "fragment": f})
    for wrong in ({"expected_deleted": 1}, {"expected_files": 1}):
        with refused("BAD_REQUEST"):
            peer.call("seal", {**me, "fragments": [ref_of(f)], **wrong})
    peer.call("seal", {**me, "fragments": [ref_of(f)], "expected_deleted": 2, "expected_files": 0})
    assert peer.call("commit", {**me, "max_wait_ms": 0, "summary": []})["state"] == "COMMITTED"
    t.deleted(a, [1, 3])
    with refused("DUPLICATE_PATH"):
        with lab.client() as c:
            c.commit_once(t.name, kind="DELETE", delete_files=[good], read_snapshot_id=t.head())


def queue_of(lab, *records):
    """State of each path's row: 0 staged, 2 queued for deletion, None without one."""
    with psycopg.connect(lab.daemon.settings["pg.conninfo"], autocommit=True) as db:
        rows = dict(db.execute("SELECT path, state FROM frazil.object").fetchall())
    return [rows.get(r["path"]) for r in records]


def test_staged_twice(lab):
    """The path belongs to the transaction that staged it first; losers of attempts and what is given up are garbage,
    what was committed is not."""
    t = lab.table("twice", version=2)
    a, o = t.append(6)
    with lab.client() as c:
        x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        y = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        x.delete_file({a: [0]}, fragment_id="task", attempt=0)
        loser = x.staged["task"].record["delete_files"][0]
        x.delete_file({a: [1]}, fragment_id="task", attempt=1)
        with refused("DUPLICATE_PATH"):
            y.stage_files(delete_files=[loser])
        x.commit()
        given_up = y.delete_file({a: [2]}).record["delete_files"][0]
        held = queue_of(lab, loser, given_up, x.staged["task"].record["delete_files"][0])
        y.abort()
    assert held == [2, 0, None]
    assert queue_of(lab, given_up) == [2]
    t.deleted(a, [1])
    t.check()


def run_all(calls):
    """Outcome or the status of its refusal, of each."""
    def one(call):
        try:
            return call()
        except frazil.Error as e:
            assert e.effect == "CLEAN", e
            return e.name
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def test_many_deleters(lab, catalog):
    """Deletions of one data file all land, in few snapshots; so do those that meet the same rows."""
    t = lab.table("crowd", version=2)
    a, o = t.append(50)
    records = [delete_file(t, {a: [i, (i + 1) % 50]}) for i in range(24)]

    def call(record):
        def run():
            with lab.client() as c:
                return c.commit_once(t.name, kind="DELETE", delete_files=[record], read_snapshot_id=o.snapshot_id)
        return run
    got = run_all([call(r) for r in records])
    assert all(isinstance(x, frazil.txn.Outcome) for x in got), got
    t.deleted(a, range(25))
    assert len({x.snapshot_id for x in got}) < 24
    t.check()
    same_to_pyiceberg(catalog, t)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("first,second,lands", [
    ("DELETE", "DELETE", True), ("DELETE", "ROW_DELTA", False), ("ROW_DELTA", "DELETE", False), ("ROW_DELTA", "ROW_DELTA", False)])
def test_two_deleters(lab, first, second, lands, restart):
    """One after the other, both having read the same snapshot; also when another daemon has to tell what happened."""
    t = lab.table("two_%s_%s_%d" % (first.lower(), second.lower(), restart), version=2)
    a, _ = t.append(10)
    b, o = t.append(10)

    def go(kind, path, positions, read):
        return delete(t, {path: positions}, read, kind=kind, files=t.files(1) if kind == "ROW_DELTA" else ())
    go(first, a, [1, 2], o.snapshot_id)
    if restart:
        lab.daemon.restart(kill=True)
    if lands:
        go(second, a, [2, 3], o.snapshot_id)
    else:
        with refused("WRITE_WRITE"):
            go(second, a, [2, 3], o.snapshot_id)
    go(second, b, [5], o.snapshot_id)
    go(second, a, [7], t.head())
    t.check()


def test_update_and_delete_race(lab):
    """At the same time: never both, and no row twice or lost."""
    t = lab.table("race", version=2)
    a, o = t.append(8)
    for i in range(4):
        read = t.head()
        moved = t.files(1, ids=[t.rows[a][2 * i]])
        records = [delete_file(t, {a: [2 * i]}), delete_file(t, {a: [2 * i]})]

        def update():
            with lab.client() as c:
                return c.commit_once(t.name, kind="ROW_DELTA", data_files=moved, delete_files=records[:1], read_snapshot_id=read)

        def remove():
            with lab.client() as c:
                return c.commit_once(t.name, kind="DELETE", delete_files=records[1:], read_snapshot_id=read)
        up, down = run_all([update, remove])
        assert {up if isinstance(up, str) else "ok", down if isinstance(down, str) else "ok"} == {"ok", "WRITE_WRITE"}
        t.deleted(a, [2 * i])
        if not isinstance(up, str):
            t.added(*moved)
        t.check()


def test_beside_pyiceberg(lab, catalog):
    """Files that PyIceberg rewrites while positions of them are staged are gone, or were deleted whole."""
    t = lab.table("beside", version=2, audited=False)
    a, _ = t.append(4)
    b, o = t.append(4)
    record = delete_file(t, {a: [1]})
    catalog.load_table(t.name).delete("id = %d" % t.rows[a][0])
    with lab.client() as c, refused("WRITE_WRITE"):
        c.commit_once(t.name, kind="DELETE", delete_files=[record], read_snapshot_id=o.snapshot_id)
    delete(t, {b: [1]}, o.snapshot_id)
    left = sorted(set(t.ids()) - {t.rows[a][0]})
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == left
    lab.forget(t)


def test_upgrade_between(lab):
    """Staged delete files are worth nothing any more, in whatever state the upgrade finds their transaction."""
    t = lab.table("upgraded", version=2)
    a, o = t.append(6)
    files = t.files(2)
    with lab.client() as c:
        def opened(kind="DELETE"):
            return c.table(t.name).begin(kind=kind, read_snapshot_id=o.snapshot_id)
        sealed, staged, fresh, delta, vector = opened(), opened(), opened(), opened("ROW_DELTA"), opened()
        sealed.delete_file({a: [0]})
        sealed.seal()
        staged.delete_file({a: [1]})
        delta.delete_file({a: [2]})
        delta.stage_files(t.files(1))
        late = delete_file(t, {a: [3]})
        upgrade(t)
        for x in (sealed, staged, delta):
            with refused("FORMAT_CHANGED"):
                x.commit()
        with refused("FORMAT_CHANGED"):
            fresh.stage_files(delete_files=[late])
        fresh.abort()
        # Begun before, but the table takes vectors now.
        vector.delete(a, [4])
        vector.commit()
        t.deleted(a, [4])
        with refused("UNSUPPORTED"):
            c.commit_once(t.name, kind="DELETE", delete_files=[late], read_snapshot_id=t.head())
        c.commit_once(t.name, data_files=files)
    t.added(*files)


def test_leftovers(lab):
    """After an upgrade, deletions that meet old deletes are refused by name; everything else works on."""
    t = lab.table("leftovers", version=2)
    a, _ = t.append(6)
    b, _ = t.append(6)
    own, o = t.append(6)
    o = delete(t, {a: [0]}, o.snapshot_id)
    upgrade(t)
    w = Writer(t)
    w.load()
    old = [e["data_file"]["file_path"] for row in w.list if row["content"] == 1 for e in read_avro(row["manifest_path"])[2]]
    young, _ = t.append(6)
    for restart in (False, True):
        with pytest.raises(frazil.Rejected) as e:
            t.delete(a, [1], t.head())
        assert e.value.name == "LEGACY_DELETES", e.value
        assert all(os.path.basename(p) in e.value.message for p in (old[0], a)), e.value
        # The old file is of one data file alone.
        t.delete(b, [1 + restart], t.head())
        t.delete(young, [restart], t.head())
        t.change(own, [2 + restart], t.head())
        lab.daemon.restart(kill=True)
    t.check()


def test_leftovers_under_a_vector(lab):
    """Another engine's vector holds the old positions: the old file is out of use for that data file."""
    t = lab.table("covered", version=2, audited=False)
    a, o = t.append(6)
    delete(t, {a: [0]}, o.snapshot_id)
    upgrade(t)
    t.append(2)
    Writer(t).commit("delete", deletes={a: [0, 5]})
    t.deleted(a, [5])
    t.delete(a, [2], t.head())
    t.check()


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes(lab, version):
    """Of another engine: they reach older data by value, so a vector cannot tell what they hide; on version 2 whoever has
    not read them meets them, and who has goes on."""
    t = lab.table("equality_%d" % version, version=version, audited=False)
    a, o = t.append(6)
    if version == 2:
        record = delete_file(t, {a: [1]})
    Writer(t).commit("delete", equality=[t.rows[a][0]])
    t.deleted(a, [0])
    young, _ = t.append(3)
    if version == 2:
        with lab.client() as c, refused("WRITE_WRITE"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=t.files(1), delete_files=[record], read_snapshot_id=o.snapshot_id)
        delete(t, {a: [1], young: [0]}, t.head())
    else:
        with pytest.raises(frazil.Rejected) as e:
            t.delete(a, [1], t.head())
        assert e.value.name == "LEGACY_DELETES" and "foreign-" in e.value.message and os.path.basename(a) in e.value.message
        t.delete(young, [0], t.head())
        # case BC-076: by value only what is older goes; data of the same snapshot is not reached.
        files = t.files(3)
        Writer(t).commit("overwrite", files, equality=[t.rows[young][1]])
        t.added(*files)
        t.deleted(young, [1])
        t.delete(files[0]["path"], [2], t.head())
        with refused("LEGACY_DELETES"):
            t.delete(young, [2], t.head())
        t.append(1)
        t.check()


def test_on_a_branch(lab):
    """Deletes of one branch say nothing of the other's copy of the data file."""
    t = lab.table("branches", version=2)
    a, o = t.append(6)
    t.update([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": o.snapshot_id}])
    with lab.client() as c:
        c.commit_once(t.name, kind="ROW_DELTA", ref="b", data_files=t.files(1), delete_files=[delete_file(t, {a: [0, 1]})],
                      read_snapshot_id=o.snapshot_id)
        with refused("WRITE_WRITE"):
            c.commit_once(t.name, kind="DELETE", ref="b", delete_files=[delete_file(t, {a: [2]})], read_snapshot_id=o.snapshot_id)
    delete(t, {a: [5]}, o.snapshot_id)
    assert sorted(r["pos"] for r in auditor.raw_rows(lab.daemon.uri, t.name, "b") if r["path"] == a) == [2, 3, 4, 5]


def test_leftovers_of_a_partition(lab):
    """An old delete file that names several data files may reach all of its partition, but nothing younger."""
    t = lab.table("wide", version=2)
    a, _ = t.append(4)
    b, _ = t.append(4)
    c, o = t.append(4)
    delete(t, {a: [0], b: [0]}, o.snapshot_id)
    upgrade(t)
    young, _ = t.append(4)
    for path in (a, b, c):
        with refused("LEGACY_DELETES"):
            t.delete(path, [1], t.head())
    t.delete(young, [1], t.head())
    t.check()
