"""While a commit is being written: what waits behind it, who may still turn back, and repeats that meet it under way."""

import threading
import time

import pytest

import frazil
from support.lab import Lab, Peer, begin, fragment, ids, ref_of


@pytest.fixture(scope="module")
def settings():
    """Each object takes a while, so that a batch is under way for half a second."""
    return {"fs.put-delay-ms": 250}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "wait")
    yield lab
    lab.check()


class Later:
    """A call in a thread of its own."""

    def __init__(self, fn, *args):
        self.value = None
        self.thread = threading.Thread(target=self.run, args=(fn, args))
        self.thread.start()

    def run(self, fn, args):
        try:
            self.value = fn(*args)
        except Exception as e:
            self.value = e

    def get(self):
        self.thread.join(60)
        return self.value


def once(table, files, **options):
    return {"begin": begin(table, **options), "fragments": [fragment("0", files)], "summary": []}


def sealed(peer, table, files):
    me = ids(peer.call("begin", begin(table)))
    frag = fragment("f", files)
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    return me


def test_abort_in_the_queue(daemon, lab):
    """Behind a batch under way an Abort still wins; inside it the outcome tells who won."""
    t = lab.table("abort")
    t.info
    peer = Peer(daemon)
    inside, behind = t.files(2), t.files(2)
    a, b = sealed(peer, t, inside), sealed(peer, t, behind)
    first = Later(peer.call, "commit", {**a, "summary": []})
    time.sleep(0.1)
    second = Later(peer.call, "commit", {**b, "summary": []})
    time.sleep(0.05)
    got = peer.call("status", {"txn_id": b["txn_id"]})
    assert got["state"] == "SEALED" and "queue_position" in got
    late, good = Later(peer.call, "abort", a), Later(peer.call, "abort", b)
    assert first.get()["state"] == "COMMITTED" and late.get() == first.get()
    assert good.get()["state"] == "ABORTED" and second.get() == good.get()
    t.added(*inside)
    # Its files are free.
    assert peer.call("commit_once", once(t, behind))["state"] == "COMMITTED"
    t.added(*behind)


def test_short_waits(daemon, lab):
    """max_wait_ms gives the state as it is; asking again waits on and gets the outcome."""
    t = lab.table("short")
    t.info
    peer = Peer(daemon)
    files = t.files(2)
    record = {**once(t, files), "max_wait_ms": 50}
    start = time.monotonic()
    got = peer.call("commit_once", record)
    assert got["state"] == "SEALED" and time.monotonic() - start < 0.4, got
    out = peer.call("commit_once", {**record, "max_wait_ms": 0})
    assert out["state"] == "COMMITTED"
    t.added(*files)
    more = t.files(1)
    me = sealed(peer, t, more)
    assert peer.call("commit", {**me, "summary": [], "max_wait_ms": 20})["state"] == "SEALED"
    out = peer.call("commit", {**me, "summary": []})
    assert out["state"] == "COMMITTED" and peer.call("commit", {**me, "summary": []}) == out
    t.added(*more)


def test_repeats_under_way(daemon, lab):
    """The same CommitOnce from many connections at once is one transaction; another content is a conflict."""
    t = lab.table("repeats")
    t.info
    peer = Peer(daemon)
    files = t.files(3)
    record = once(t, files)
    calls = [Later(peer.call, "commit_once", record) for _ in range(8)]
    time.sleep(0.15)
    for other in ({**record, "fragments": [fragment("0", t.files(3))]},
                  {**record, "begin": {**record["begin"], "ordered": True}}):
        with pytest.raises(frazil.Conflict):
            peer.call("commit_once", other)
    calls += [Later(peer.call, "commit_once", record) for _ in range(4)]
    outs = [c.get() for c in calls]
    assert all(o == outs[0] for o in outs) and outs[0]["state"] == "COMMITTED", outs
    t.added(*files)


def test_connection_lost_under_way(daemon, lab):
    """Nobody waits any more: the commit is decided all the same."""
    t = lab.table("lost")
    t.info
    files = t.files(2)
    txn_id = frazil.uuid7()
    with pytest.raises(frazil.ConnectionLost):
        with frazil.Client(daemon.rpc, retries=0, timeout=0.15) as c:
            c.commit_once(t.name, data_files=files, txn_id=txn_id, info=t.info)
    with lab.client() as c:
        end = time.monotonic() + 20
        while c.status(txn_id).state != "COMMITTED":
            assert time.monotonic() < end
            time.sleep(0.05)
    t.added(*files)


def test_ordered(daemon, lab):
    """Ordered transactions are decided in the order of their commits, kinds mixed."""
    t = lab.table("ordered")
    path, o = t.append(20)
    outs = []
    with lab.client() as c:
        txns = []
        for i in range(6):
            if i % 2:
                x = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id, ordered=True)
                x.delete(path, [i])
                t.deleted(path, [i])
            else:
                x = c.table(t.name).begin(ordered=True)
                files = t.files(1)
                x.stage_files(files)
                t.added(*files)
            x.seal()
            txns.append(x)
        calls = []
        for x in txns:
            calls.append(Later(x.commit))
            time.sleep(0.02)
        outs = [k.get() for k in calls]
    assert [x.state for x in outs] == ["COMMITTED"] * 6, outs
    numbers = [x.sequence_number for x in outs]
    assert numbers == sorted(numbers), numbers


def test_rest_commit_between(daemon, lab):
    """A REST commit keeps its turn between workers' transactions, and sees what was published before it."""
    t = lab.table("rest")
    t.append(2)
    peer = Peer(daemon)
    before, after = t.files(2), t.files(2)
    one = Later(peer.call, "commit_once", once(t, before))
    time.sleep(0.1)
    rest = Later(t.update, [{"action": "set-properties", "updates": {"k": "v"}}])
    time.sleep(0.05)
    two = Later(peer.call, "commit_once", once(t, after))
    assert one.get()["state"] == two.get()["state"] == "COMMITTED"
    assert rest.get().json["metadata"]["properties"]["k"] == "v"
    t.added(*before, *after)
    stale = t.head()
    third = t.files(1)
    one = Later(peer.call, "commit_once", once(t, third))
    time.sleep(0.1)
    got = t.lab.rest.call("POST", t.target, {"requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": stale}], "updates": [
        {"action": "set-properties", "updates": {"k": "w"}}]})
    assert got.status == 409 and one.get()["state"] == "COMMITTED", got
    t.added(*third)


def test_dropped_under_way(daemon, lab):
    """A table that goes while a commit to it is written: ended, typed, and the daemon lives."""
    t = lab.table("dropped")
    t.append(2)
    peer = Peer(daemon)
    record = once(t, t.files(2))
    one = Later(peer.call, "commit_once", record)
    time.sleep(0.15)
    lab.rest.want(204, "DELETE", t.target)
    lab.forget(t)
    got = one.get()
    if isinstance(got, frazil.Error):
        assert got.name in ("TABLE_GONE", "COMMIT_UNKNOWN"), got
    else:
        assert got["state"] in ("COMMITTED", "ABORTED")
    out = peer.call("status", {"txn_id": record["begin"]["txn_id"]})
    assert out["state"] in ("COMMITTED", "ABORTED")
