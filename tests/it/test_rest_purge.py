"""Drop with purge: what goes, what stays, and what is told. The rule is one for any table: only what it reaches, beneath
its own folders, and nothing in a folder of another one."""

import glob
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from support.foreign import Writer, local, read_avro
from support.lab import Lab


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 20, "cleaner.grace-ms": 0, "cleaner.tombstone-ms": 300}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "purge")
    yield lab
    lab.check()


def stored(*folders):
    return {f for at in folders for f in glob.glob(local(at).rstrip("/") + "/**", recursive=True) if os.path.isfile(f)}


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def drop(lab, t, **query):
    lab.rest.want(204, "DELETE", t.target, **query)
    lab.forget(t)


def full(lab, name, **properties):
    """A table with data, vectors, two snapshots of a foreign writer, a tag, statistics of both kinds."""
    t = lab.table(name, **properties)
    path, o = t.append(5)
    t.delete(path, [1], o.snapshot_id)
    Writer(t).append(3)
    base = t.metadata()["location"].rstrip("/")
    for n in ("stats.puffin", "parts.parquet"):
        with open(local(base) + "/metadata/" + n, "wb") as f:
            f.write(b"x")
    t.update([{"action": "set-statistics", "snapshot-id": t.head(), "statistics": {
        "snapshot-id": t.head(), "statistics-path": base + "/metadata/stats.puffin", "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1, "blob-metadata": []}},
        {"action": "set-partition-statistics", "partition-statistics": {
            "snapshot-id": t.head(), "statistics-path": base + "/metadata/parts.parquet", "file-size-in-bytes": 1}},
        {"action": "set-snapshot-ref", "ref-name": "kept", "type": "tag", "snapshot-id": o.snapshot_id}])
    return t, base


@pytest.mark.parametrize("value,purges", [(None, False), ("false", False), ("False", False), ("", None), ("true", True),
                                          ("True", True), ("TRUE", True), ("yes", None), ("1", None), ("true ", None)])
def test_spellings(lab, value, purges):
    """case BC-050: only true, in any letter case, deletes."""
    t = lab.table("spell")
    t.append(1)
    files = stored(t.metadata()["location"])
    if purges is None:
        got = lab.rest.delete(t.target, purgeRequested=value)
        if got.status == 204:  # an empty value is none
            assert value == ""
            lab.forget(t)
        else:
            assert got.status == 400 and "purgeRequested" in got.error["message"]
            drop(lab, t)
    else:
        drop(lab, t, purgeRequested=value)
    if purges:
        until(lambda: not [f for f in files if os.path.exists(f)])
    else:
        time.sleep(0.2)
        assert all(os.path.exists(f) for f in files)


@pytest.mark.parametrize("end", ["", "/"])
def test_nothing_stays(lab, daemon, end):
    """Data, vectors, manifests and lists of all snapshots, metadata of the log, statistics; also below folders of its own
    elsewhere, and with a slash at the location's end. Neighbours whose names begin alike lose nothing. case BC-180"""
    root = "file://%s/own%d" % (daemon.warehouse, len(end))
    body = {"name": "n", "location": root + "/t" + end, "schema": {"type": "struct", "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"}, {"id": 2, "name": "name", "required": False, "type": "string"}]},
        "properties": {"format-version": "3"}}
    beside = root + "/t2"
    lab.rest.want(200, "POST", "/v1/namespaces/purge/tables", {**body, "name": "beside%d" % len(end), "location": beside})
    t, base = full(lab, "all%d" % len(end), **{"write.data.path": root + "/data" + end, "write.metadata.path": root + "/meta" + end})
    assert stored(root + "/data") and stored(root + "/meta")
    other = stored(beside)
    drop(lab, t, purgeRequested="true")
    until(lambda: not stored(base, root + "/data", root + "/meta"))
    assert other and stored(beside) == other


def test_gc_disabled(lab, daemon):
    """gc.enabled = false keeps data and delete files, and that is told."""
    t, base = full(lab, "gc", **{"gc.enabled": "false"})
    data = {f for f in stored(base) if "/data/" in f}
    assert len(data) > 2
    drop(lab, t, purgeRequested="true")
    until(lambda: stored(base) == data)
    assert "ev=purge.kept" in daemon.log()


def test_files_of_elsewhere(lab, daemon):
    """A file that the table names outside of its folders is another's, whoever that is."""
    t = lab.table("elsewhere")
    t.append(2)
    path = "file://%s/elsewhere.parquet" % daemon.warehouse
    (f,) = t.files(2)
    os.rename(local(f["path"]), local(path))
    f["path"] = path
    Writer(t).commit("append", [f])
    t.added(f)
    base = t.metadata()["location"]
    drop(lab, t, purgeRequested="true")
    until(lambda: not stored(base))
    assert os.path.exists(local(path))
    assert "1 outside of its folders" in daemon.log()


def test_unreadable(lab, daemon):
    """A manifest that cannot be read: what it names stays, all else goes, and it is told."""
    t = lab.table("broken")
    t.append(2)
    first = {f for f in stored(t.metadata()["location"]) if f.endswith(".parquet")}
    t.append(2)
    base = t.metadata()["location"]
    md = t.metadata()
    row = read_avro(next(s for s in md["snapshots"] if s.get("parent-snapshot-id") is None)["manifest-list"])[2][0]
    daemon.stop()
    with open(local(row["manifest_path"]), "wb") as f:
        f.write(b"no avro")
    daemon.start()
    drop(lab, t, purgeRequested="true")
    until(lambda: stored(base) <= first | {local(row["manifest_path"])})
    assert first <= stored(base)
    assert "unreadable" in daemon.log()


def test_committed_to_between_walk_and_drop(lab, conninfo):
    """A publish is on its way when the purge has walked the table; the drop comes behind it."""
    t = lab.table("between")
    t.append(2)
    base = t.metadata()["location"]
    lab.forget(t)
    with psycopg.connect(conninfo) as lock, psycopg.connect(conninfo, autocommit=True) as db, ThreadPoolExecutor() as pool:
        lock.execute("LOCK TABLE frazil.batch IN SHARE MODE")
        commit = pool.submit(t.append, 3)
        until(lambda: db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                 " AND wait_event_type = 'Lock'").fetchone()[0])
        purge = pool.submit(lab.rest.delete, t.target, purgeRequested="true")
        time.sleep(0.5)
        assert not purge.done() and not commit.done()
        lock.rollback()
        assert commit.result()[1].state == "COMMITTED"
        assert purge.result().status == 204
    until(lambda: not stored(base))


def test_many_files(lab, daemon):
    """A purge of 20,000 files in one manifest; other requests are answered meanwhile."""
    t = lab.table("many")
    t.append(1)
    base = t.metadata()["location"].rstrip("/")
    os.makedirs(local(base) + "/data/m")
    files = [{"path": "%s/data/m/%06d.parquet" % (base, i), "record_count": 1, "file_size": 10} for i in range(20000)]
    for f in files:
        open(local(f["path"]), "w").close()
    Writer(t).commit("append", files)
    since, slowest = time.monotonic(), 0
    import threading
    done = []
    worker = threading.Thread(target=lambda: done.append(lab.rest.delete(t.target, purgeRequested="true").status))
    worker.start()
    while not done:
        at = time.monotonic()
        assert lab.rest.get("/v1/config").status == 200
        slowest = max(slowest, time.monotonic() - at)
    worker.join()
    lab.forget(t)
    assert done == [204], daemon.log()[-1500:]
    print("purge of 20,000 files: %.2f s to the answer, slowest other answer %.3f s" % (time.monotonic() - since, slowest))
    assert slowest < 2
    until(lambda: len(stored(base)) < 20000, 60)
