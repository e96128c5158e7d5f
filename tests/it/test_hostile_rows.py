"""Hands in the database under a running daemon: rows that vanish, statements that the server keeps refusing."""

import threading
import time

import psycopg
import pytest

import frazil
from support.lab import Lab, Peer, begin, fragment, ids, refused


@pytest.fixture(scope="module")
def settings():
    return {"commit.window-ms": 700, "txn.max-bytes": 1048576}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "hands")
    yield lab
    lab.check()


def sql(conninfo, text, *args):
    with psycopg.connect(conninfo, autocommit=True) as db:
        cursor = db.execute(text, args)
        return cursor.fetchall() if cursor.description else None


def send(lab, t, told, key, files, **more):
    def run():
        try:
            with lab.client() as c:
                told[key] = c.commit_once(t.name, data_files=files, info=t.info, **more)
        except frazil.Error as e:
            told[key] = e
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_row_of_a_waiting_transaction(lab, conninfo):
    """It is told so and does not hold up those that share its batch."""
    t = lab.table("waits")
    lost, kept, told = t.files(2), t.files(3), {}
    gone = frazil.uuid7()
    threads = [send(lab, t, told, "lost", lost, txn_id=gone), send(lab, t, told, "kept", kept)]
    for _ in range(200):
        if sql(conninfo, "SELECT count(*) FROM frazil.txn WHERE commit_requested AND state = 1")[0][0] == 2:
            break
        time.sleep(0.01)
    sql(conninfo, "DELETE FROM frazil.txn WHERE txn = %s", gone)
    for thread in threads:
        thread.join(30)
    assert told["lost"].name == "TXN_UNKNOWN", told
    assert told["kept"].state == "COMMITTED", told
    t.added(*kept)
    assert "txn.vanished" in {e["ev"] for e in lab.daemon.events()}


def test_row_of_an_open_transaction(lab, conninfo):
    t = lab.table("open")
    peer = Peer(lab.daemon)
    me = ids(peer.call("begin", begin(t)))
    sql(conninfo, "DELETE FROM frazil.txn WHERE txn = %s", me["txn_id"])
    for _ in range(2):
        with refused("TXN_UNKNOWN"):
            peer.call("stage", {**me, "fragment": fragment("f", t.files(1))})
    t.append(1)


def test_server_that_keeps_refusing(lab, conninfo):
    """The table halts and names the cause; the others go on, and a resume decides what waits."""
    t, told = lab.table("refused"), {}
    t.append(1)
    files = t.files(2)
    # A check that no row can pass is refused at every attempt.
    sql(conninfo, "ALTER TABLE frazil.batch ADD CONSTRAINT stop CHECK (batch_no <> 3 OR table_id <> '%s') NOT VALID"
        % t.metadata()["table-uuid"])
    thread = send(lab, t, told, "once", files, txn_id=frazil.uuid7())
    thread.join(30)
    assert told["once"].name == "COMMIT_UNKNOWN" and told["once"].effect == "UNKNOWN", told
    shown = next(x for x in lab.daemon.admin.get("/admin/tables").json["tables"] if x["halted"])
    assert "23514" in shown["cause"], shown
    with lab.client() as c, refused("TABLE_HALTED"):
        c.commit_once(t.name, data_files=t.files(1))
    lab.table("beside").append(1)
    assert len(t.load()["metadata"]["snapshots"]) == 1
    sql(conninfo, "ALTER TABLE frazil.batch DROP CONSTRAINT stop")
    lab.daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % shown["table-uuid"])
    for _ in range(200):
        if len(t.load()["metadata"]["snapshots"]) == 2:
            break
        time.sleep(0.05)
    t.added(*files)


def test_memory_of_open_transactions(lab):
    """The sum over all of them is bounded; each refusal comes before work, and ending some makes room."""
    t = lab.table("heavy")
    peer, open_txns = Peer(lab.daemon), []
    with pytest.raises(frazil.Error) as e:
        for n in range(4000):
            me = ids(peer.call("begin", begin(t)))
            open_txns.append(me)
            if n < 40:
                f = {**t.files(1)[0], "lower_bounds": [{"field_id": 2, "value": b"x" * 30000}],
                     "upper_bounds": [{"field_id": 2, "value": b"y" * 30000}]}
                peer.call("stage", {**me, "fragment": fragment("f", [f])})
    assert e.value.name == "OVERLOADED" and e.value.effect == "CLEAN" and "memory" in e.value.message, e.value
    assert len(open_txns) < 40
    for me in open_txns:
        peer.call("abort", me)
    t.append(3)
