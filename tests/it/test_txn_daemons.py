"""Two daemons on one database, heads changed from outside, PostgreSQL and the daemon going away under load."""

import os
import random
import signal
import threading
import time

import psycopg
import pytest

import frazil
from support import crowd
from support.lab import Lab, Peer, begin, fragment, ids, ref_of, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "outside")
    yield lab
    lab.check()


def sql(conninfo, text, *args):
    with psycopg.connect(conninfo, autocommit=True) as db:
        cursor = db.execute(text, args)
        return cursor.fetchall() if cursor.description else []


def lock_holders(conninfo):
    """Sessions that hold the lock of the serving daemon: the only session lock that stays."""
    return [r[0] for r in sql(conninfo, "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted "
                                        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")]


def tables(daemon):
    return {t["name"].rpartition(".")[2]: t for t in daemon.admin.want(200, "GET", "/admin/tables").json["tables"]}


def start_standby(daemon):
    daemon.spawn()
    end = time.monotonic() + 20
    while True:
        try:
            got = daemon.admin.get("/readyz")
            if daemon.admin.get("/healthz").status == 200:
                return got
        except OSError:
            pass
        assert time.monotonic() < end and daemon.alive, daemon.log()[-3000:]
        time.sleep(0.05)


def test_second_daemon_waits_and_takes_over(make_daemon, postgres):
    conninfo = postgres.database()
    one = make_daemon(conninfo, settings={"fs.put-delay-ms": 700})
    lab = Lab(one, "two")
    t = lab.table("t")
    path, o = t.append(20)
    two = make_daemon(conninfo, start=False, settings={"warehouse.location": one.settings["warehouse.location"]})
    # The second one lives and is not ready; it serves nobody.
    assert start_standby(two).status == 503
    for _ in range(3):
        time.sleep(0.1)
        assert two.admin.get("/readyz").status == 503
        assert two.admin.get("/healthz").status == 200
    with pytest.raises((OSError, frazil.Error)):
        with frazil.Client(two.rpc, retries=0, timeout=2) as c:
            c.table(t.name).info()

    # The first one stands still in the middle of a commit: its objects are on their way.
    files = t.files(3)
    call = dict(kind="APPEND", data_files=files, txn_id=frazil.uuid7(), info=t.info)
    rest_files, told = t.files(2), {}

    def ask():
        try:
            with frazil.Client(one.rpc, retries=0, timeout=60) as c:
                told["once"] = c.commit_once(t.name, **call)
        except frazil.Error as e:
            told["once"] = e
    open_txn = ids(Peer(one).call("begin", begin(t)))
    frag = fragment("f", rest_files)
    Peer(one).call("stage", {**open_txn, "fragment": frag})
    asker = threading.Thread(target=ask)
    asker.start()
    time.sleep(0.35)
    assert len(lock_holders(conninfo)) == 1
    os.kill(one.process.pid, signal.SIGSTOP)
    try:
        version = sql(conninfo, "SELECT version FROM frazil.head")[0][0]
        for pid in lock_holders(conninfo):
            sql(conninfo, "SELECT pg_terminate_backend(%s)", pid)
        two.wait_ready()
        lab.daemon = two
        assert two.admin.get("/readyz").status == 200
        # The sealed commit that was asked for is decided by the second one without anybody asking again.
        with frazil.Client(two.rpc, timeout=30) as c:
            again = c.commit_once(t.name, **call)
        t.added(*files)
        # An open transaction goes on there with its token.
        Peer(two).call("seal", {**open_txn, "fragments": [ref_of(frag)]})
        assert Peer(two).call("commit", {**open_txn, "summary": []})["state"] == "COMMITTED"
        t.added(*rest_files)
        t.append(2)
        t.delete(path, [1], o.snapshot_id)
        head, ver = t.head(), sql(conninfo, "SELECT version FROM frazil.head")[0][0]
        assert ver > version
    finally:
        os.kill(one.process.pid, signal.SIGCONT)
    asker.join(60)
    # The first one publishes nothing; what it says is the truth or leaves it open.
    if isinstance(told["once"], frazil.Error):
        assert told["once"].effect == "UNKNOWN", told["once"]
    else:
        assert told["once"].snapshot_id == again.snapshot_id
    time.sleep(1)
    assert t.head() == head and sql(conninfo, "SELECT version FROM frazil.head")[0][0] == ver
    assert one.admin.get("/readyz").status == 503
    # It answers typed, or not at all, and never with a success of its own.
    for send in (lambda c: c.commit_once(t.name, **{**call, "txn_id": frazil.uuid7(), "data_files": t.files(1)}),
                 lambda c: c.table(t.name).begin()):
        try:
            with frazil.Client(one.rpc, retries=0, timeout=5) as c:
                send(c)
        except frazil.Error as e:
            assert e.name in ("UNAVAILABLE", "FENCED", "OVERLOADED", "COMMIT_UNKNOWN", "TIMEOUT", "") and \
                e.retry in ("SAME", "LATER"), e
        else:
            raise AssertionError("a fenced daemon accepted work")
    got = one.rest.call("POST", t.target, {"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"a": "b"}}]})
    assert got.status in (409, 429, 500, 503), got
    assert t.head() == head
    assert "ev=assert" not in one.log()
    # And once the second one is gone, the first one serves again.
    two.stop()
    one.wait_ready(30)
    end = time.monotonic() + 20
    while one.admin.get("/readyz").status != 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    lab.daemon = one
    crowd.again(lambda: t.append(1))
    lab.check()


def test_two_daemons_pass_work_on(make_daemon, postgres):
    """The first one is killed again and again while workers commit to whichever answers."""
    conninfo = postgres.database()
    one = make_daemon(conninfo)
    two = make_daemon(conninfo, start=False, settings={"warehouse.location": one.settings["warehouse.location"]})
    start_standby(two)
    lab = Lab(one, "pass")
    t = lab.table("t")
    t.append(5)
    stop, failed, done = threading.Event(), [], []

    def work(n):
        try:
            while not stop.is_set():
                files = t.files(2)
                txn_id = frazil.uuid7()
                turn = [n]

                def once():
                    turn[0] += 1
                    with frazil.Client((one, two)[turn[0] % 2].rpc, retries=0, timeout=10) as c:
                        return c.commit_once(t.name, data_files=files, txn_id=txn_id, info=t.info)
                got = crowd.again(once)
                assert got.state == "COMMITTED"
                done.append(files)
        except BaseException as e:
            failed.append(e)

    def wait_for(n):
        end = time.monotonic() + 40
        want = len(done) + n
        while len(done) < want:
            assert not failed, failed
            assert time.monotonic() < end
            time.sleep(0.02)
    team = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for x in team:
        x.start()
    try:
        wait_for(10)
        one.kill()
        wait_for(10)
        one.spawn()
        time.sleep(0.3)
        two.kill()
        wait_for(10)
    finally:
        stop.set()
        for x in team:
            x.join()
    assert not failed, failed
    for files in done:
        t.added(*files)
    lab.daemon = one
    lab.check()


# ---- changes from outside

def test_head_changed_from_outside(daemon, lab, conninfo):
    """Our epoch and another version: nobody who keeps the rules did that. The table halts and says so. (case BC-137)"""
    t = lab.table("halted")
    path, o = t.append(5)
    other = lab.table("beside")
    peer = Peer(daemon)
    open_txn = ids(peer.call("begin", begin(t)))
    files = t.files(2)
    frag = fragment("f", files)
    peer.call("stage", {**open_txn, "fragment": frag})
    peer.call("seal", {**open_txn, "fragments": [ref_of(frag)]})
    location = t.load()["metadata-location"]
    sql(conninfo, "UPDATE frazil.head h SET version = version + 7 FROM frazil.tabular b "
                  "WHERE b.table_id = h.table_id AND b.name = 'halted'")
    late = t.files(1)
    record = {"begin": begin(t), "fragments": [fragment("0", late)], "summary": []}
    with pytest.raises(frazil.Error) as e:
        peer.call("commit_once", record)
    # It was asked for and lives on: not a clean end.
    assert (e.value.name, e.value.effect) == ("COMMIT_UNKNOWN", "UNKNOWN") and "head" in e.value.message, e.value
    listed = tables(daemon)["halted"]
    assert listed["halted"] and listed["state"] == "halted" and "outside" in listed["cause"]
    # Reads and Status go on; new work is refused typed.
    assert t.load()["metadata-location"] == location
    assert len(lab.rest.want(200, "GET", "/v1/namespaces/outside/tables").json["identifiers"]) >= 2
    assert peer.call("status", {"txn_id": record["begin"]["txn_id"]})["state"] == "SEALED"
    assert peer.call("status", {"txn_id": open_txn["txn_id"]})["state"] == "SEALED"
    with refused("TABLE_HALTED"):
        peer.call("begin", begin(t))
    with refused("TABLE_HALTED"):
        peer.call("commit", {**open_txn, "summary": []})
    with refused("TABLE_HALTED"):
        peer.call("commit_once", {**record, "begin": begin(t)})
    for _ in range(2):
        with pytest.raises(frazil.Unknown):
            peer.call("commit_once", record)
    got = lab.rest.call("POST", t.target, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]})
    assert got.status == 409 and got.error["type"] == "TableHaltedException", got
    # Others do not notice.
    other.append(2)
    assert not tables(daemon)["beside"]["halted"]
    # The operator adopts what the head says now.
    halted = daemon.admin.want(200, "GET", "/admin/tables?halted=true").json["tables"]
    assert listed["table-uuid"] in [h["table-uuid"] for h in halted] and all(h["halted"] for h in halted)
    daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % listed["table-uuid"])
    halted = daemon.admin.want(200, "GET", "/admin/tables?halted=true").json["tables"]
    assert listed["table-uuid"] not in [h["table-uuid"] for h in halted]
    out = peer.call("commit_once", record)
    assert out["state"] == "COMMITTED"
    t.added(*late)
    assert not tables(daemon)["halted"]["halted"]
    assert peer.call("commit", {**open_txn, "summary": []})["state"] == "COMMITTED"
    t.added(*files)
    t.delete(path, [0], o.snapshot_id)


def test_metadata_that_is_missing(daemon, lab, conninfo):
    """A head that cannot be read halts the table at its load, also over a restart; resume tries again."""
    t = lab.table("missing")
    t.append(3)
    peer = Peer(daemon)
    me = ids(peer.call("begin", begin(t)))
    files = t.files(2)
    frag = fragment("f", files)
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    path = t.load()["metadata-location"].removeprefix("file://")
    os.rename(path, path + ".away")
    daemon.restart(kill=True)
    try:
        with refused("TABLE_HALTED"):
            peer.call("begin", begin(t))
        assert peer.call("status", {"txn_id": me["txn_id"]})["state"] == "SEALED"
        with refused("TABLE_HALTED"):
            peer.call("commit", {**me, "summary": []})
        listed = tables(daemon)["missing"]
        assert listed["halted"], listed
        daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % listed["table-uuid"])
        with refused("TABLE_HALTED"):
            peer.call("begin", begin(t))
    finally:
        os.rename(path + ".away", path)
    daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % listed["table-uuid"])
    assert peer.call("commit", {**me, "summary": []})["state"] == "COMMITTED"
    t.added(*files)


def test_epoch_bumped_from_outside(daemon, lab, conninfo):
    """Fenced once, and back: what was asked for is decided, no later than when somebody asks again."""
    t = lab.table("bumped")
    path, o = t.append(5)
    sql(conninfo, "UPDATE frazil.head h SET epoch = epoch + 1 FROM frazil.tabular b "
                  "WHERE b.table_id = h.table_id AND b.name = 'bumped'")
    files = t.files(2)
    call = dict(data_files=files, txn_id=frazil.uuid7(), info=t.info)
    with lab.client() as c:
        try:
            c.commit_once(t.name, **call)
        except frazil.Error as e:
            assert e.retry == "SAME" and e.effect == "UNKNOWN", (e, e.effect)
        got = crowd.again(lambda: c.commit_once(t.name, **call))
        assert got.state == "COMMITTED"
        t.added(*files)
    assert not tables(daemon)["bumped"]["halted"]
    counters = daemon.admin.want(200, "GET", "/admin/tables").json["counters"]
    assert counters["fenced"] >= 1
    t.delete(path, [1], o.snapshot_id)
    # A REST commit that finds the epoch moved: no conflict, and its retry lands.
    sql(conninfo, "UPDATE frazil.head h SET epoch = epoch + 1 FROM frazil.tabular b "
                  "WHERE b.table_id = h.table_id AND b.name = 'bumped'")
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    got = lab.rest.call("POST", t.target, body)
    assert got.status in (200, 429), got
    if got.status == 429:
        lab.rest.want(200, "POST", t.target, body)
    assert t.metadata()["properties"]["a"] == "b"


def test_sessions_ended_under_load(daemon, conninfo):
    """Every session of the daemon is ended by the server, again and again: answers stay exact."""
    team = crowd.Crowd(daemon, "sessions", workers=4, base=400)
    try:
        for _ in range(4):
            team.wait_for(8)
            sql(conninfo, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                          "WHERE datname = current_database() AND pid <> pg_backend_pid()")
        team.wait_for(8)
    finally:
        team.stopping.set()
    team.end()


def test_term_answers_what_is_in_flight(make_daemon):
    """SIGTERM while commits are written: each gets its outcome before the daemon ends."""
    d = make_daemon(settings={"fs.put-delay-ms": 300})
    lab = Lab(d, "term")
    t = lab.table("t")
    t.append(2)
    got, calls = {}, {}

    def one(i):
        try:
            with frazil.Client(d.rpc, retries=0) as c:
                got[i] = c.commit_once(t.name, data_files=calls[i], info=t.info)
        except frazil.Error as e:
            got[i] = e
    for i in range(6):
        calls[i] = t.files(2)
    team = [threading.Thread(target=one, args=(i,)) for i in calls]
    for x in team:
        x.start()
    time.sleep(0.25)
    d.stop()
    for x in team:
        x.join()
    assert all(getattr(o, "state", None) == "COMMITTED" for o in got.values()), got
    for files in calls.values():
        t.added(*files)
    d.start()
    lab.check()


def test_daemons_that_stand_still_at_random(make_daemon, postgres):
    """Either daemon stops for a while at any moment and may lose its lock meanwhile: each answer stays true. (case BC-168)"""
    chance = random.Random(20261130)
    conninfo = postgres.database()
    one = make_daemon(conninfo, settings={"fs.put-delay-ms": 10})
    two = make_daemon(conninfo, start=False, settings={
        "warehouse.location": one.settings["warehouse.location"], "fs.put-delay-ms": 10})
    start_standby(two)
    lab = Lab(one, "still")
    t = lab.table("t")
    path, o = t.append(400)
    t.info
    stop, failed, done, lock = threading.Event(), [], [], threading.Lock()

    def work(n):
        try:
            k = 0
            while not stop.is_set():
                with lock:
                    files = t.files(2)
                at = n * 100 + k
                txn_id, turn = frazil.uuid7(), [n]
                call = dict(kind="ROW_DELTA", data_files=files, deletes=[(path, [at])], read_snapshot_id=o.snapshot_id)

                def once():
                    turn[0] += 1
                    with frazil.Client((one, two)[turn[0] % 2].rpc, retries=0, timeout=3) as c:
                        return c.commit_once(t.name, txn_id=txn_id, info=t.info, **call)
                got = crowd.again(once)
                assert got.state == "COMMITTED" and got.rows_deleted == 1, got
                done.append((files, at, txn_id, call, got))
                k += 1
                assert k < 100
                time.sleep(0.05)
        except BaseException as e:
            failed.append(e)
    team = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for x in team:
        x.start()
    try:
        for _ in range(4):
            victim = chance.choice((one, two))
            time.sleep(0.3 + chance.random() * 0.5)
            os.kill(victim.process.pid, signal.SIGSTOP)
            try:
                for pid in lock_holders(conninfo):
                    sql(conninfo, "SELECT pg_terminate_backend(%s)", pid)
                time.sleep(0.5 + chance.random() * 1.5)
            finally:
                os.kill(victim.process.pid, signal.SIGCONT)
        want, end = len(done) + 15, time.monotonic() + 40
        while len(done) < want and not failed:
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        stop.set()
        for x in team:
            x.join()
    assert not failed, failed
    for files, at, _, _, _ in done:
        t.added(*files)
        t.deleted(path, [at])
    serving = one if one.admin.get("/readyz").status == 200 else two
    lab.daemon = serving
    with lab.client(retries=5) as c:
        for _, _, txn_id, call, got in done[:10] + done[-10:]:
            again = c.commit_once(t.name, txn_id=txn_id, info=t.info, **call)
            assert (again.snapshot_id, again.batch_id) == (got.snapshot_id, got.batch_id)
    lab.check()
