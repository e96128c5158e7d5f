"""The cleaner beside transactions: what nobody can commit any more goes, what a snapshot names never does."""

import glob
import os
import signal
import threading
import time

import psycopg
import pytest

import frazil
from support.foreign import Writer, local, read_avro
from support.lab import Lab, Peer, begin, fragment, ids, ref_of, refused


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 500}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "clean")
    yield lab
    lab.check()


def until_gone(*uris, seconds=15):
    end = time.monotonic() + seconds
    while any(os.path.exists(local(u)) for u in uris):
        assert time.monotonic() < end, [u for u in uris if os.path.exists(local(u))]
        time.sleep(0.05)


def rounds(lab):
    """A file that is aborted now and gone later: the cleaner has gone round this table's queue meanwhile."""
    t = lab.tables[0]
    for _ in range(2):
        with lab.client() as c:
            txn = c.table(t.name).begin()
            txn.stage_files(t.files(1))
            path = list(txn.staged.values())[0].data_files[0]["path"]
            txn.abort()
        until_gone(path)


def named(t):
    """Every object that some snapshot, the log or the head of the table names."""
    doc = t.load()
    md = doc["metadata"]
    found = {doc["metadata-location"]} | {e["metadata-file"] for e in md.get("metadata-log", [])}
    for s in md.get("snapshots", []):
        found.add(s["manifest-list"])
        for row in read_avro(s["manifest-list"])[2]:
            found.add(row["manifest_path"])
            found |= {e["data_file"]["file_path"] for e in read_avro(row["manifest_path"])[2]}
    return {local(f) for f in found}


def stored(t):
    return {f for f in glob.glob(local(t.metadata()["location"]) + "/**", recursive=True) if os.path.isfile(f)}


def test_files_that_nobody_commits(lab):
    """Of aborted, expired and rejected transactions, and fragments that Seal left out."""
    t = lab.table("nobody")
    path, o = t.append(5)
    t.change(path, [0], o.snapshot_id)
    aborted, expired, loser, winner, rejected = (t.files(1) for _ in range(5))
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(aborted)
        txn.abort()
        c.table(t.name).begin(ttl_ms=1000).stage_files(expired)
        txn = c.table(t.name).begin()
        txn.stage_files(loser, fragment_id="f", attempt=0)
        txn.stage_files(winner, fragment_id="f", attempt=1)
        txn.commit()
        t.added(*winner)
        with refused("ROW_MOVED", "WRITE_WRITE"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=rejected, deletes=[(path, [0])], read_snapshot_id=o.snapshot_id)
    until_gone(*[f[0]["path"] for f in (aborted, expired, loser, rejected)])
    assert stored(t) == named(t)


def test_replaced_vectors_stay_while_named(lab):
    """case BC-058"""
    t = lab.table("named")
    path, o = t.append(10)
    for i in range(4):
        t.delete(path, [i], o.snapshot_id)
    rounds(lab)
    assert named(t) <= stored(t)


def test_brought_again(lab):
    """Rejected, then staged under another id: the second one's files live."""
    t = lab.table("again")
    path, o = t.append(5)
    t.change(path, [0], o.snapshot_id)
    files = t.files(2)
    peer = Peer(lab.daemon)
    with lab.client() as c:
        with refused("WRITE_WRITE"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=files, deletes=[(path, [0])], read_snapshot_id=o.snapshot_id)
    me = ids(peer.call("begin", begin(t)))
    frag = fragment("f", files)
    peer.call("stage", {**me, "fragment": frag})
    rounds(lab)
    assert os.path.exists(local(files[0]["path"]))
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    assert peer.call("commit", {**me, "summary": []})["state"] == "COMMITTED"
    t.added(*files)
    # And a file of the table whose path is staged once more, and refused.
    with lab.client() as c, refused("DUPLICATE_PATH"):
        c.commit_once(t.name, data_files=files)
    txn = ids(peer.call("begin", begin(t)))
    peer.call("stage", {**txn, "fragment": frag})
    peer.call("abort", txn)
    rounds(lab)
    assert os.path.exists(local(files[0]["path"]))


def test_file_that_a_branch_or_an_older_snapshot_names(lab):
    """Gone from main, named elsewhere, and somebody's abort has put its path into the queue. (case BC-147)"""
    t = lab.table("elsewhere")
    path, o = t.append(2)
    t.update([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": o.snapshot_id}])
    t.delete(path, [0, 1], o.snapshot_id)
    t.append(1)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files([{**t.files(1)[0], "path": path}])
        txn.abort()
    rounds(lab)
    assert os.path.exists(local(path))
    w = Writer(t, "b")
    w.load()
    assert path in [e["data_file"]["file_path"] for _, _, _, e in w.live()]


def test_condemned(lab, conninfo):
    """A path that is being deleted: refused until the cleaner has done with it."""
    t = lab.table("condemned")
    peer = Peer(lab.daemon)
    files = t.files(1)
    me = ids(peer.call("begin", begin(t)))
    peer.call("stage", {**me, "fragment": fragment("f", files)})
    peer.call("abort", me)
    with psycopg.connect(conninfo, autocommit=True) as db:
        # As a claim looks whose DELETE is on its way: not due again for long.
        n = db.execute("UPDATE frazil.object SET state = 3, since_ms = since_ms + 600000 WHERE path = %s", (files[0]["path"],)).rowcount
        assert n == 1
        other = ids(peer.call("begin", begin(t)))
        with refused("PATH_CONDEMNED"):
            peer.call("stage", {**other, "fragment": fragment("f", files)})
        with refused("PATH_CONDEMNED"):
            peer.call("commit_once", {"begin": begin(t), "fragments": [fragment("0", files)], "summary": []})
        assert peer.call("status", {"txn_id": other["txn_id"]})["state"] == "OPEN"
        db.execute("UPDATE frazil.object SET since_ms = since_ms - 1200000 WHERE path = %s", (files[0]["path"],))
        until_gone(files[0]["path"])
        end = time.monotonic() + 10
        while db.execute("SELECT 1 FROM frazil.object WHERE path = %s", (files[0]["path"],)).fetchall():
            assert time.monotonic() < end
            time.sleep(0.05)


def test_attempts_of_a_killed_daemon(make_daemon):
    """Killed in the middle of its writes: what it left behind is found by the ledger and goes, nothing else does. (case BC-148)"""
    d = make_daemon(settings={"cleaner.interval-ms": 50, "cleaner.grace-ms": 1500, "fs.put-delay-ms": 300})
    lab = Lab(d, "killed")
    t = lab.table("t")
    path, o = t.append(10)
    left = []
    for i in range(3):
        files = t.files(2)
        call = dict(kind="ROW_DELTA", data_files=files, deletes=[(path, [i])], read_snapshot_id=o.snapshot_id,
                    txn_id=frazil.uuid7(), info=t.info)

        def ask():
            with pytest.raises(frazil.ConnectionLost):
                with frazil.Client(d.rpc, retries=0) as c:
                    c.commit_once(t.name, **call)
        asker = threading.Thread(target=ask)
        asker.start()
        time.sleep(0.1 + 0.08 * i)
        d.process.send_signal(signal.SIGKILL)
        d.wait()
        asker.join()
        with psycopg.connect(d.settings["pg.conninfo"], autocommit=True) as db:
            left += db.execute("SELECT path FROM frazil.object WHERE state = 1").fetchall()
        d.start()
        with lab.client() as c:
            assert c.commit_once(t.name, **call).state == "COMMITTED"
        t.added(*files)
        t.deleted(path, [i])
    assert left, "no attempt was cut short"
    end = time.monotonic() + 15
    while stored(t) != named(t):
        assert time.monotonic() < end, (stored(t) - named(t), named(t) - stored(t))
        time.sleep(0.1)
    lab.check()


def test_purge(lab):
    """A drop with purge takes the table's files; a drop without leaves them."""
    for purge in (True, False):
        t = lab.table("purge%d" % purge)
        path, o = t.append(3)
        t.delete(path, [1], o.snapshot_id)
        files = {"file://" + f for f in named(t)}
        lab.rest.want(204, "DELETE", t.target, purgeRequested=str(purge).lower())
        lab.forget(t)
        if purge:
            until_gone(*files)
        else:
            rounds(lab)
            assert all(os.path.exists(local(f)) for f in files)
