"""The life of a transaction, message by message, on every transport: repeats get the same answer in every state,
also after the daemon was killed; strangers learn nothing; what is not committed ends by itself."""

import time

import pytest

import frazil
from support import audit
from support.lab import Lab, Peer, begin, fragment, ids, plain, ref_of, refused


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return {"rpc.socket": str(tmp_path_factory.mktemp("s") / "rpc.sock"), "cleaner.interval-ms": 100}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "life")
    yield lab
    lab.check()


def without_ttl(reply):
    return {k: v for k, v in reply.items() if k != "ttl_ms"}


class Play:
    """One transaction's messages; every message sent so far is repeated after each new one."""

    def __init__(self, table, peer, **options):
        self.peer = peer
        self.begin = begin(table, **options)
        self.id = {"txn_id": self.begin["txn_id"]}
        self.sent, self.table = {}, table

    def send(self, message, record):
        """Sends twice; both answers are the same."""
        got = self.peer.call(message, record)
        self.sent[message] = (record, got)
        again = self.peer.call(message, record)
        assert without_ttl(again) == without_ttl(got), message
        return got

    def repeat(self):
        for message, (record, got) in self.sent.items():
            assert without_ttl(self.peer.call(message, record)) == without_ttl(got), message

    def strangers(self):
        """Another token, and other parameters: refused in every state, and the refusal is always the same."""
        wrong = {**self.id, "lease_token": bytes(32)}
        frag = fragment("x", deletes=[("file:///x", [1])])
        for message, more in (("stage", {"fragment": frag}), ("seal", {"fragments": []}),
                              ("commit", {"summary": []}), ("abort", {})):
            with pytest.raises(frazil.Error) as e:
                self.peer.call(message, {**wrong, **more})
            assert (e.value.name, e.value.field, e.value.effect) == ("TOKEN_MISMATCH", "lease_token", "CLEAN"), message
            assert e.value.message == "the token is not this transaction's"
        for change in ({"kind": "ROW_DELTA"}, {"ref": "other"}, {"ordered": True}):
            with refused("DIGEST_CONFLICT", "NO_SUCH_REF", "BAD_REQUEST"):
                self.peer.call("begin", {**self.begin, **change})
        with pytest.raises(frazil.Conflict) as e:
            self.peer.call("begin", {**self.begin, "ordered": True})
        assert e.value.outcome is None and str(self.table.name) not in e.value.message
        with pytest.raises(frazil.Conflict):
            self.peer.call("commit_once", {"begin": {**self.begin, "ordered": True},
                                           "fragments": [fragment("f", self.files)], "summary": []})

    def state(self):
        return self.peer.call("status", self.id)["state"]

    def lease(self):
        got = self.peer.call("heartbeat", {"items": [
            {**self.id, "lease_token": self.token}, {**self.id, "lease_token": bytes(32)},
            {"txn_id": frazil.uuid7(), "lease_token": self.token}]})["items"]
        assert [i.get("error", {}).get("name") for i in got[1:]] == ["TOKEN_MISMATCH", "TXN_UNKNOWN"]
        assert "error" not in got[0], got[0]
        return got[0]["state"]


@pytest.mark.parametrize("transport,kill", [("tcp", False), ("unix", False), ("json", False), ("tcp", True)])
def test_life(daemon, lab, transport, kill):
    table = lab.table("life_%s_%d" % (transport, kill))
    play = Play(table, Peer(daemon, transport))

    def between():
        if kill:
            daemon.restart(kill=True)
        play.repeat()
        play.strangers()

    play.files = table.files(7)
    info = play.send("begin", play.begin)
    me = ids(info)
    play.token = me["lease_token"]
    assert (info["format_version"], info["schema_id"], info["spec_id"]) == (3, 0, 0)
    between()
    assert play.state() == "OPEN" and play.lease() == "OPEN"
    with refused("TXN_STATE"):
        play.peer.call("commit", {**me, "summary": []})

    frag = fragment("f", play.files)
    got = play.send("stage", {**me, "fragment": frag})
    assert (got["fragment_id"], got["attempt"], got["doomed"]) == ("f", 0, "NONE")
    between()
    # The same attempt with other content.
    with refused("DIGEST_CONFLICT"):
        play.peer.call("stage", {**me, "fragment": fragment("f", table.files(1))})
    # A digest that is not the fragment's.
    with refused("BAD_REQUEST"):
        play.peer.call("stage", {**me, "fragment": {**fragment("g", table.files(1)), "digest": bytes(32)}})
    with refused("FRAGMENT_MISSING"):
        play.peer.call("seal", {**me, "fragments": [{**ref_of(frag), "fragment_id": "other"}]})
    with refused("FRAGMENT_MISSING"):
        play.peer.call("seal", {**me, "fragments": [{**ref_of(frag), "attempt": 1}]})
    with refused("DIGEST_CONFLICT"):
        play.peer.call("seal", {**me, "fragments": [{**ref_of(frag), "digest": bytes(32)}]})
    with refused("BAD_REQUEST"):
        play.peer.call("seal", {**me, "fragments": []})
    for wrong in ({"expected_files": 2}, {"expected_rows": 8}, {"expected_deleted": 1}):
        with refused("BAD_REQUEST"):
            play.peer.call("seal", {**me, "fragments": [ref_of(frag)], **wrong})
    # Another attempt of the task: Seal decides which one counts.
    loser = fragment("f", table.files(3), attempt=1)
    play.peer.call("stage", {**me, "fragment": loser})
    assert play.state() == "OPEN"

    play.send("seal", {**me, "fragments": [ref_of(frag)], "expected_files": 1, "expected_rows": 7,
                       "expected_deleted": 0})
    between()
    assert play.state() == "SEALED" and play.lease() == "SEALED"
    with refused("DIGEST_CONFLICT"):
        play.peer.call("seal", {**me, "fragments": [ref_of(loser)]})
    with refused("TXN_STATE"):
        play.peer.call("stage", {**me, "fragment": fragment("late", table.files(1))})

    out = play.send("commit", {**me, "summary": [{"key": "job", "value": "42"}]})
    assert out["state"] == "COMMITTED" and out["rows_inserted"] == 7
    table.added(*play.files)
    if kill:
        daemon.restart(kill=True)
    play.repeat()
    play.strangers()
    assert play.peer.call("status", play.id) == out
    assert play.peer.call("abort", {**me, "reason": "too late"}) == out
    with refused("TXN_STATE"):
        play.peer.call("stage", {**me, "fragment": fragment("late", table.files(1))})
    assert table.summary()["job"] == "42"


@pytest.mark.parametrize("transport", ["tcp", "json"])
def test_once(daemon, lab, transport):
    table = lab.table("once_" + transport)
    peer = Peer(daemon, transport)
    files = table.files(5)
    record = {"begin": begin(table), "fragments": [fragment("0", files)], "summary": [], "max_wait_ms": 0}
    out = peer.call("commit_once", record)
    assert out["state"] == "COMMITTED"
    table.added(*files)
    other = {**record, "fragments": [fragment("0", table.files(5))]}
    for kill in (False, True):
        assert peer.call("commit_once", record) == out
        assert peer.call("status", {"txn_id": record["begin"]["txn_id"]}) == out
        # The same id with other content opens nothing.
        with pytest.raises(frazil.Conflict):
            peer.call("commit_once", other)
        with pytest.raises(frazil.Conflict):
            peer.call("commit_once", {**record, "begin": {**record["begin"], "kind": "ROW_DELTA"}})
        if not kill:
            daemon.restart(kill=True)
    # A rejected one: final too, and repeated as it was.
    record = {"begin": begin(table), "fragments": [fragment("0", files)], "summary": [], "max_wait_ms": 0}
    out = peer.call("commit_once", record)
    assert out["state"] == "REJECTED" and out["reject"]["name"] == "DUPLICATE_PATH", out
    daemon.restart(kill=True)
    assert peer.call("commit_once", record) == out


def test_once_with_an_open_id(daemon, lab):
    """The id of an open transaction is not a CommitOnce's: refused, and the transaction goes on."""
    table = lab.table("open_id")
    peer = Peer(daemon)
    b = begin(table)
    me = ids(peer.call("begin", b))
    files = table.files(2)
    for _ in range(2):
        with refused("DIGEST_CONFLICT", "TXN_STATE"):
            peer.call("commit_once", {"begin": b, "fragments": [fragment("0", table.files(1))], "summary": []})
    frag = fragment("0", files)
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    assert peer.call("commit", {**me, "summary": []})["state"] == "COMMITTED"
    table.added(*files)


def test_strange_ids(daemon, lab):
    table = lab.table("ids")
    peer = Peer(daemon)
    unknown = {"txn_id": frazil.uuid7(), "lease_token": bytes(32)}
    for message, more in (("status", None), ("stage", {"fragment": fragment("f", table.files(1))}),
                          ("seal", {"fragments": []}), ("commit", {"summary": []}), ("abort", {})):
        with refused("TXN_UNKNOWN"):
            peer.call(message, {"txn_id": unknown["txn_id"]} if more is None else {**unknown, **more})
    with refused("BAD_REQUEST"):
        peer.call("begin", begin(table, txn_id="f81d4fae-7dec-41d0-a765-00a0c91e6bf6"))
    with refused("CLOCK_SKEW"):
        peer.call("begin", begin(table, txn_id=frazil.uuid7(int(time.time() * 1000) + 11 * 60000)))
    # The horizon of a table moves once the cleaner has gone round.
    daemon.restart()
    time.sleep(0.5)
    with refused("HORIZON_PASSED"):
        peer.call("begin", begin(table, txn_id=frazil.uuid7(1_000_000_000)))
    with refused("NO_SUCH_TABLE"):
        peer.call("begin", {**begin(table), "table": "none"})
    with refused("NO_SUCH_TABLE", "NO_SUCH_NAMESPACE"):
        peer.call("begin", {**begin(table), "namespace": ["none"]})
    with refused("NO_SUCH_WAREHOUSE"):
        peer.call("begin", {**begin(table), "warehouse": "none"})


def wait_state(peer, me, state, seconds=8):
    end = time.monotonic() + seconds
    while True:
        got = peer.call("status", {"txn_id": me["txn_id"]})
        if got["state"] == state:
            return got
        assert got["state"] in ("OPEN", "SEALED") and time.monotonic() < end, got
        time.sleep(0.1)


def test_time_to_live(daemon, lab):
    """OPEN and SEALED transactions end by themselves; one whose lease is renewed does not."""
    table = lab.table("ttl")
    peer = Peer(daemon)
    made, was_sealed = [], []
    for i in range(4):
        me = ids(peer.call("begin", begin(table, ttl_ms=1500)))
        files = table.files(2)
        frag = fragment("f", files)
        peer.call("stage", {**me, "fragment": frag})
        seal = {**me, "fragments": [ref_of(frag)]}
        if i % 2:
            peer.call("seal", seal)
            was_sealed.append(seal)
        made.append((me, seal, files))
    start = time.monotonic()
    renewed = made[2:]
    while time.monotonic() - start < 4:
        got = peer.call("heartbeat", {"items": [m for m, _, _ in renewed]})["items"]
        assert [(i["state"], i.get("error")) for i in got] == [("OPEN", None), ("SEALED", None)]
        time.sleep(0.3)
    for me, seal, files in made[:2]:
        out = wait_state(peer, me, "EXPIRED", 1)
        for _ in range(2):
            assert peer.call("status", {"txn_id": me["txn_id"]}) == out
            assert peer.call("commit", {**me, "summary": []}) == out
            assert peer.call("abort", {**me}) == out
            with refused("TXN_EXPIRED"):
                peer.call("stage", {**me, "fragment": fragment("late", table.files(1))})
            if seal not in was_sealed:
                with refused("TXN_EXPIRED"):
                    peer.call("seal", seal)
        # The files are free again.
        again = ids(peer.call("begin", begin(table)))
        peer.call("stage", {**again, "fragment": fragment("f", files)})
        peer.call("abort", {**again})
    for me, seal, files in renewed:
        peer.call("seal", seal)
        assert peer.call("commit", {**me, "summary": []})["state"] == "COMMITTED"
        table.added(*files)


def test_time_to_live_over_a_restart(daemon, lab):
    table = lab.table("ttl_restart")
    peer = Peer(daemon)
    made = []
    for i in range(2):
        me = ids(peer.call("begin", begin(table, ttl_ms=1200)))
        frag = fragment("f", table.files(2))
        peer.call("stage", {**me, "fragment": frag})
        if i:
            peer.call("seal", {**me, "fragments": [ref_of(frag)]})
        made.append(me)
    daemon.kill()
    time.sleep(1.3)
    daemon.start()
    for me in made:
        wait_state(peer, me, "EXPIRED")


def test_abort(daemon, lab):
    """Of an open, a sealed and a queued transaction; the files can be brought again."""
    table = lab.table("abort")
    peer = Peer(daemon)
    for seal in (False, True):
        me = ids(peer.call("begin", begin(table)))
        files = table.files(2)
        frag = fragment("f", files)
        peer.call("stage", {**me, "fragment": frag})
        if seal:
            peer.call("seal", {**me, "fragments": [ref_of(frag)]})
        out = peer.call("abort", {**me, "reason": "test"})
        assert out["state"] == "ABORTED"
        for kill in (False, True):
            assert peer.call("abort", {**me, "reason": "again"}) == out
            assert peer.call("status", {"txn_id": me["txn_id"]}) == out
            assert peer.call("commit", {**me, "summary": []}) == out
            with refused("TXN_ABORTED"):
                peer.call("stage", {**me, "fragment": fragment("late", files)})
            if not kill:
                daemon.restart(kill=True)
        again = ids(peer.call("begin", begin(table)))
        peer.call("stage", {**again, "fragment": frag})
        peer.call("seal", {**again, "fragments": [ref_of(frag)]})
        assert peer.call("commit", {**again, "summary": []})["state"] == "COMMITTED"
        table.added(*files)


def test_empty_transaction_cannot_be_sealed(daemon, lab):
    table = lab.table("empty")
    peer = Peer(daemon)
    me = ids(peer.call("begin", begin(table)))
    with refused("BAD_REQUEST"):
        peer.call("seal", {**me, "fragments": []})
    with refused("BAD_REQUEST"):
        peer.call("stage", {**me, "fragment": fragment("f")})
    peer.call("abort", me)


def test_everything_deleted_already(daemon, lab):
    """COMMITTED without a snapshot, with the overlap told; repeated, also after a restart."""
    table = lab.table("nothing")
    path, o = table.append(10)
    table.delete(path, [1, 2], o.snapshot_id)
    head = table.head()
    peer = Peer(daemon)
    record = {"begin": begin(table, kind="DELETE", read_snapshot_id=o.snapshot_id),
              "fragments": [fragment("0", deletes=[(path, [1, 2])])], "summary": []}
    out = peer.call("commit_once", record)
    assert out["state"] == "COMMITTED" and "snapshot_id" not in out and out["rows_deleted"] == 0
    assert out["deletes"] == [{"data_file": path, "deleted": 0, "overlap": 2}]
    assert table.head() == head
    # Read after the delete: nothing is new, hence nothing can conflict.
    record = {"begin": begin(table, kind="DELETE", read_snapshot_id=head),
              "fragments": [fragment("0", deletes=[(path, [1, 2])])], "summary": []}
    out = peer.call("commit_once", record)
    assert out["state"] == "COMMITTED" and "snapshot_id" not in out and out["rows_deleted"] == 0
    assert table.head() == head
    # Partly new: counted exactly.
    got = table.delete(path, [2, 3], o.snapshot_id)
    assert (got.rows_deleted, got.deletes) == (1, [{"data_file": path, "deleted": 1, "overlap": 1}])
    daemon.restart(kill=True)
    assert peer.call("commit_once", record) == out


def test_mirror_refuses_strange_bodies(daemon, lab):
    table = lab.table("mirror")
    good = plain(begin(table))
    for body in ({**good, "more": 1}, {**good, "txn_id": "x"}, {**good, "kind": "append"}, {**good, "ttl_ms": "1"},
                 {k: v for k, v in good.items() if k != "table"}, {**good, "ttl_ms": 1 << 63}, [], 3):
        got = daemon.rest.call("POST", "/frazil/v1/begin", body)
        assert got.status == 400 and got.json["name"] == "BAD_REQUEST", (body, got)
    assert daemon.rest.call("POST", "/frazil/v1/hello", {}).status == 404
    assert daemon.rest.call("POST", "/frazil/v1/none", {}).status == 404
    got = daemon.rest.call("POST", "/frazil/v1/begin", good)
    assert got.status == 200 and got.json["txn_id"] == good["txn_id"]
    got = daemon.rest.call("POST", "/frazil/v1/status", {"txn_id": str(frazil.uuid7())})
    assert got.status == 404 and got.json["name"] == "TXN_UNKNOWN"


def test_staged_deletions_over_restarts(daemon, lab):
    """What a worker staged is judged by its read snapshot, which may be gone by then: two tasks on one file, rows
    that were deleted already, an update; the daemon is killed between any two messages."""
    table = lab.table("deletions")
    path, o = table.append(20)
    table.row_id(path)
    read = table.delete(path, [0, 1], o.snapshot_id).snapshot_id
    peer = Peer(daemon)
    kills = 0

    def kill():
        nonlocal kills
        daemon.restart(kill=True)
        kills += 1
    me = ids(peer.call("begin", begin(table, kind="ROW_DELTA", read_snapshot_id=read)))
    kill()
    moved = table.files(2, ids=[table.rows[path][p] for p in (5, 6)], row_ids=[table.row_id(path) + p for p in (5, 6)])
    fresh = table.files(3)
    # The first task names a row that its read snapshot had lost: no conflict, it is not new.
    one = fragment("one", moved, [(path, [0, 5, 6], "MOVED")])
    two = fragment("two", fresh, [(path, [7, 8])])
    peer.call("stage", {**me, "fragment": one})
    kill()
    peer.call("stage", {**me, "fragment": two})
    table.append(1)
    table.update([{"action": "remove-snapshots", "snapshot-ids": [read]}])
    kill()
    seal = {**me, "fragments": [ref_of(one), ref_of(two)], "expected_files": 2, "expected_rows": 5, "expected_deleted": 5}
    first = peer.call("seal", seal)
    kill()
    assert peer.call("seal", seal) == first
    assert peer.call("status", {"txn_id": me["txn_id"]})["state"] == "SEALED"
    out = peer.call("commit", {**me, "summary": []})
    # After the restart the record of the removed snapshot is gone with it: refused typed, or judged right.
    if out["state"] == "REJECTED":
        assert out["reject"]["name"] == "SNAPSHOT_NOT_ANCESTOR", out
    else:
        assert (out["rows_inserted"], out["rows_updated"], out["rows_deleted"]) == (3, 2, 2), out
        table.added(*moved, *fresh)
        table.deleted(path, [5, 6, 7, 8])
    kill()
    assert peer.call("commit", {**me, "summary": []}) == out
    assert peer.call("stage", {**me, "fragment": two})["fragment_id"] == "two"
    assert kills == 5


def test_update_over_restarts(daemon, lab):
    """As above while the read snapshot stays: the outcome is exact."""
    table = lab.table("update")
    path, o = table.append(20)
    first_id = table.row_id(path)
    read = table.delete(path, [0, 1], o.snapshot_id).snapshot_id
    peer = Peer(daemon)
    me = ids(peer.call("begin", begin(table, kind="ROW_DELTA", read_snapshot_id=read)))
    moved = table.files(2, ids=[table.rows[path][p] for p in (5, 6)], row_ids=[first_id + p for p in (5, 6)])
    fresh = table.files(3)
    one, two = fragment("one", moved, [(path, [0, 5, 6], "MOVED")]), fragment("two", fresh, [(path, [7, 8])])
    for f in (one, two):
        peer.call("stage", {**me, "fragment": f})
    daemon.restart(kill=True)
    peer.call("seal", {**me, "fragments": [ref_of(one), ref_of(two)]})
    daemon.restart(kill=True)
    out = peer.call("commit", {**me, "summary": []})
    assert out["state"] == "COMMITTED", out
    assert (out["rows_inserted"], out["rows_updated"], out["rows_deleted"]) == (3, 2, 2), out
    assert out["deletes"] == [{"data_file": path, "deleted": 4, "overlap": 0}]
    table.added(*moved, *fresh)
    table.deleted(path, [5, 6, 7, 8])
    kept = {r["id"]: r["_row_id"] for r in audit.rows(daemon, table.name)}
    assert [kept[table.rows[path][p]] for p in (5, 6)] == [first_id + 5, first_id + 6]
