"""The admin port: readiness, metrics as promtool wants them, pages of what waits, was decided, or is wrong."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
import uuid

import pytest

import frazil
from frazil import wire
from support.foreign import Writer
from support.lab import Lab, Peer, begin, fragment, ids, ref_of, refused
from support.postgres import ROOT


@pytest.fixture(scope="module")
def settings():
    return {"txn.max-open": 20000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "adm")
    yield lab
    lab.check()


def get(daemon, target, **query):
    return daemon.admin.want(200, "GET", target, **query).json


# ---- health and readiness

def test_ready(daemon, lab):
    assert get(daemon, "/healthz") == {"status": "ok"} and get(daemon, "/readyz") == {"ready": True}
    assert "frazil_ready 1\n" in daemon.admin.get("/metrics").body.decode()


def test_not_ready_while_draining(make_daemon):
    """A commit is being written: the daemon lives, is not ready, and ends when it is done."""
    d = make_daemon(settings={"fs.put-delay-ms": 1000})
    t = Lab(d, "drain").table("t")
    peer = Peer(d)
    frag = fragment("f", t.files(1))
    me = ids(peer.call("begin", begin(t)))
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    peer.call("commit", {**me, "summary": [], "max_wait_ms": 1})
    end = time.monotonic() + 20
    while not get(d, "/admin/batches")["in-flight"]:
        assert time.monotonic() < end
        time.sleep(0.01)
    d.process.send_signal(signal.SIGTERM)
    seen = set()
    while d.process.poll() is None:
        try:
            got = d.admin.get("/readyz")
            assert d.admin.get("/healthz").status == 200
        except OSError:
            continue  # the port closes last
        seen.add((got.status, got.json.get("reason")))
        time.sleep(0.02)
    assert seen - {(200, None)} == {(503, "draining")}, seen
    assert d.wait() == 0


def test_a_check_ends_with_the_daemon(make_daemon):
    """Stopped in the middle of a check: the daemon drains all the same."""
    d = make_daemon()
    t = Lab(d, "check").table("t")
    for _ in range(20):
        t.append(1)
    for _ in range(3):
        d.admin.want(202, "POST", "/admin/tables/%s/check" % t.metadata()["table-uuid"])
        d.restart()


def test_not_ready_without_postgresql(daemon, postgres, lab):
    """case BC-233: alive is not ready, and being asked often costs no connection to PostgreSQL."""
    for _ in range(300):
        assert daemon.admin.get("/readyz").status == 200 and daemon.admin.get("/healthz").status == 200
    t = lab.table("away")
    t.append(1)
    at = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    postgres.stop()
    try:
        # The session of the lock may be the first that is seen to end: fenced, until it cannot be had again.
        end, reason = time.monotonic() + 20, None
        while reason != "PostgreSQL cannot be used":
            assert time.monotonic() < end, reason
            time.sleep(0.05)
            got = daemon.admin.get("/readyz")
            reason = got.json["reason"] if got.status == 503 else None
        assert daemon.admin.get("/healthz").status == 200
        assert "frazil_ready 0\n" in daemon.admin.get("/metrics").body.decode()
        assert daemon.admin.get("/admin/txns").status == 200
        # An operator's words are refused cleanly: afterwards nothing is halted.
        for word in ("halt", "resume"):
            got = daemon.admin.call("POST", at + word, {})
            assert got.status == 503 and got.error["type"] == "ServiceUnavailableException", got
    finally:
        postgres.start()
        end = time.monotonic() + 30
        while daemon.admin.get("/readyz").status != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
    assert halted(daemon) == {}
    t.append(1)


# ---- metrics

@pytest.fixture(scope="session")
def promtool():
    done = subprocess.run([os.path.join(ROOT, "scripts/promtool.sh")], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, "promtool cannot be had"

    def check(text):
        return subprocess.run([done.stdout.strip(), "check", "metrics"], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    return check


def test_metrics(daemon, lab, promtool):
    """promtool finds nothing, and finds what is planted; counters and histograms are what their names say."""
    lab.table("counted").append(2)
    assert re.search(r'^frazil_rpc_seconds_count{message="commit_once"} [1-9]', daemon.admin.get("/metrics").body.decode(), re.M)
    got = daemon.admin.want(200, "GET", "/metrics")
    text = got.body.decode()
    assert got.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    done = promtool(text)
    assert (done.returncode, done.stdout) == (0, "")
    for planted in (text.replace("frazil_batches_total", "frazil_batches"),   # a counter without its end
                    text.replace("# HELP frazil_batches_total Batches that were published.\n", ""),
                    text.replace("# TYPE frazil_ready gauge", "# TYPE frazil_ready gauges"),
                    text.replace("frazil_rest_seconds", "frazil_rest_milliseconds")):
        assert planted != text and promtool(planted).returncode != 0, promtool(planted)
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    for name, kind in types.items():
        assert name.startswith("frazil_") and (kind == "counter") == name.endswith("_total"), name
        if kind == "histogram":
            assert name.endswith("_seconds")
            buckets = re.findall(r'^%s_bucket\{([^}]*)le="([^"]+)"\} (\d+)$' % name, text, re.M)
            for labels in {b[0] for b in buckets}:
                rows = [(float(le), int(n)) for of, le, n in buckets if of == labels]
                assert rows == sorted(rows) and rows[-1][0] == float("inf")
                count = re.search(r"^%s_count\{%s\} (\d+)$" % (name, re.escape(labels.rstrip(","))), text, re.M)
                assert int(count.group(1)) == rows[-1][1]
    # No series twice, and no counter goes back.
    series = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len({s[0] for s in series}) == len(series)
    later = dict(line.rsplit(" ", 1) for line in daemon.admin.get("/metrics").body.decode().splitlines() if line[0] != "#")
    for name, value in series:
        if types.get(name.partition("{")[0]) == "counter":
            assert float(later[name]) >= float(value), name


# ---- transactions

def open_many(daemon, table, n):
    """Ids of n new transactions, begun over one connection."""
    made = [frazil.uuid7() for _ in range(n)]
    host, port = daemon.rpc.split(":")
    with socket.create_connection((host, int(port)), 60) as s:
        s.sendall(wire.request("hello", 0, frazil.api.hello_record(False)))
        reader, answered = wire.Reader(), 0
        for at in range(0, n, 500):
            part = made[at:at + 500]
            s.sendall(b"".join(wire.request("begin", at + i + 1, begin(table, txn_id=x)) for i, x in enumerate(part)))
            while answered < at + len(part) + 1:
                for kind, _, _, payload in reader.feed(s.recv(1 << 20)):
                    assert wire.answer(kind, payload)[0] in ("hello_reply", "begin_reply")
                    answered += 1
    return made


def pages(daemon, target, name, key, **query):
    rows, sizes, cursor = [], [], None
    while True:
        got = daemon.admin.want(200, "GET", target, **query, **({} if cursor is None else {key: cursor}))
        assert len(got.body) < 300000
        rows += got.json[name]
        sizes.append(len(got.json[name]))
        cursor = got.json.get("next")
        if cursor is None:
            return rows, sizes


def test_many_open_transactions(make_daemon):
    """Ten thousand: each page is small and quick, together they are all, oldest first, each once."""
    d = make_daemon(settings={"txn.max-open": 20000})
    lab = Lab(d, "many")
    table, other = lab.table("t"), lab.table("u")
    made = sorted(open_many(d, table, 10000), key=lambda u: u.bytes)
    mine = sorted(open_many(d, other, 3), key=lambda u: u.bytes)
    start = time.monotonic()
    first = get(d, "/admin/txns")
    assert len(first["transactions"]) == 100 and first["next"] == str(made[99])
    rows, sizes = pages(d, "/admin/txns", "transactions", "after", limit=100000)
    assert sizes == [500] * 20 + [3] and [r["txn-id"] for r in rows] == [str(u) for u in made + mine]
    assert time.monotonic() - start < 20
    (row,) = [r for r in rows if r["txn-id"] == str(made[7])]
    assert (row["state"], row["kind"], row["ref"], row["table"]) == ("open", "APPEND", "main", "main.many.t")
    assert row["expires-ms"] > row["created-ms"] > 0 and not row["commit-requested"]
    uuid_of = {t["name"]: t["table-uuid"] for t in get(d, "/admin/tables")["tables"]}
    rows, _ = pages(d, "/admin/txns", "transactions", "after", table=uuid_of["main.many.u"], limit=2)
    assert [r["txn-id"] for r in rows] == [str(u) for u in mine]
    totals = get(d, "/admin/tables")["totals"]
    assert totals == {"tables": 2, "halted": 0, "transactions": 10003, "batches-in-flight": 0}
    assert 'frazil_pending_txns{state="open"} 10003\n' in d.admin.get("/metrics").body.decode()


@pytest.mark.parametrize("target, field", [
    ("/admin/txns?limit=0", "limit"), ("/admin/txns?limit=x", "limit"), ("/admin/txns?after=1", "after"),
    ("/admin/txns?table=x", "table"), ("/admin/findings?before=-1", "before"), ("/admin/tables/x/batches", "table"),
    ("/admin/tables?limit=1e3", "limit")])
def test_bad_pages(daemon, target, field):
    got = daemon.admin.get(target)
    assert got.status == 400 and got.error["message"].startswith(field + ":"), got


# ---- tables and batches

def test_pages_of_tables(daemon, lab):
    names = {lab.table("page%d" % i).name for i in range(5)}
    for name in names:
        with frazil.Client(daemon.rpc) as c:
            c.table(name).begin().abort()
    rows, sizes = pages(daemon, "/admin/tables", "tables", "after", limit=2)
    assert max(sizes) == 2 and {"main." + n for n in names} <= {r["name"] for r in rows}
    assert [r["table-uuid"] for r in rows] == sorted({r["table-uuid"] for r in rows})


def test_batches(make_daemon):
    d = make_daemon()
    lab = Lab(d, "batches")
    t = lab.table("t")
    _, first = t.append(2)
    t.append(3)
    t.update([{"action": "set-properties", "updates": {"a": "b"}}])
    d.restart(**{"fs.put-delay-ms": 1500})
    target = "/admin/tables/%s/batches" % t.metadata()["table-uuid"]
    peer = Peer(d)
    frag = fragment("f", t.files(1))
    me = ids(peer.call("begin", begin(t)))
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    (row,) = get(d, "/admin/txns")["transactions"]
    assert (row["state"], row["fragments"], row["files"]) == ("sealed", 1, 1)
    assert peer.call("commit", {**me, "summary": [], "max_wait_ms": 1})["state"] == "SEALED"
    end = time.monotonic() + 20
    while not (now := get(d, "/admin/batches")["in-flight"]):
        assert time.monotonic() < end
    (now,) = now
    assert now["table"] == "main.batches.t" and now["transactions"] == 1 and not now["rest"]
    assert now["state"] in ("gathering", "encoding", "ledger", "writing", "publishing")
    assert get(d, target)["in-flight"][0]["batch-id"] == now["batch-id"]
    assert get(d, "/admin/txns")["transactions"][0]["state"] == "batched"
    out = peer.call("commit", {**me, "summary": []})
    assert get(d, "/admin/batches")["in-flight"] == []
    rows, sizes = pages(d, target, "decided", "before", limit=2)
    assert sizes == [2, 2, 1] and [r["batch-no"] for r in rows] == [5, 4, 3, 2, 1]
    assert (rows[0]["batch-id"], rows[0]["last-snapshot-id"], rows[0]["committed"]) == (now["batch-id"], out["snapshot_id"], 1)
    # A REST commit without a snapshot; the appends; the table's creation.
    assert (rows[1]["transactions"], rows[1]["snapshots"]) == (0, 0)
    assert (rows[3]["last-snapshot-id"], rows[3]["first-row-id"], rows[3]["added-rows"]) == (first.snapshot_id, 0, 2)
    assert rows[4]["metadata-location"].endswith(".metadata.json")
    got = d.admin.get("/admin/tables/%s/batches" % uuid.uuid4())
    assert got.status == 404 and got.error["type"] == "NoSuchTableException"


# ---- what is wrong

def test_findings(daemon, lab):
    t = lab.table("findings", audited=False)
    lab.forget(t)
    path, _ = t.append(5)
    ghosts = [path + "-ghost%d" % i for i in range(3)]
    for ghost in ghosts:
        Writer(t).commit("delete", deletes={ghost: [1]})
    table = t.metadata()["table-uuid"]
    rows, sizes = pages(daemon, "/admin/findings", "findings", "before", table=table, limit=2)
    assert [r["file"] for r in rows] == ghosts[::-1] and sizes == [2, 1]
    assert {(r["kind"], r["table"], r["table-uuid"]) for r in rows} == {("dangling-vector", "main.adm.findings", table)}
    got = get(daemon, "/admin/findings")
    assert got["total"] >= 3 and got["findings"][0]["no"] == got["total"]
    assert get(daemon, "/admin/findings", table=str(uuid.uuid4()))["findings"] == []


def test_halted_by_a_missing_file(daemon, lab):
    """Shown: status, cause, the file, batch and transactions. Restored and resumed, all is decided."""
    t = lab.table("broken")
    t.append(3)
    snapshot = t.metadata()["snapshots"][-1]
    path = snapshot["manifest-list"].removeprefix("file://")
    daemon.restart(kill=True)
    os.rename(path, path + ".away")
    files = t.files(2)
    record = {"begin": begin(t), "fragments": [fragment("0", files)], "summary": []}
    peer = Peer(daemon)
    try:
        with pytest.raises(frazil.Error) as e:
            peer.call("commit_once", record)
        assert e.value.name == "COMMIT_UNKNOWN", e.value
        (shown,) = get(daemon, "/admin/tables", halted="true")["tables"]
        halt = shown["halt"]
        assert shown["name"] == "main.adm.broken" and shown["cause"] and halt["object"].endswith(path), shown
        assert halt["transactions"] == [str(record["begin"]["txn_id"])] and halt["transactions-total"] == 1
        assert halt["batch-no"] == shown["last-batch"] + 1 and halt["status"] == "NOT_FOUND" and halt["since-ms"] > 0
        assert 'frazil_tables{state="halted"} 1\n' in daemon.admin.get("/metrics").body.decode()
    finally:
        os.rename(path + ".away", path)
    daemon.admin.want(204, "POST", "/admin/tables/%s/resume" % shown["table-uuid"])
    assert peer.call("commit_once", record)["state"] == "COMMITTED"
    t.added(*files)
    assert get(daemon, "/admin/tables", halted="true")["tables"] == []


# ---- an operator's check

def checked(daemon, table):
    """The result of a check, when it is over."""
    if not hasattr(table, "uuid"):
        table.uuid = table.metadata()["table-uuid"]
    no = daemon.admin.want(202, "POST", "/admin/tables/%s/check" % table.uuid).json["check"]
    end = time.monotonic() + 30
    while (got := get(daemon, "/admin/check"))["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert got["check"] == no and got["ended-ms"] >= got["began-ms"] > 0
    return got


@contextlib.contextmanager
def damaged(path, change):
    """The file with other bytes, or away."""
    path = path.removeprefix("file://")
    with open(path, "rb") as f:
        whole = f.read()
    mode = os.stat(path).st_mode
    os.remove(path)
    try:
        if change:
            with open(path, "wb") as f:
                f.write(change(whole))
        yield
    finally:
        with open(path, "wb") as f:
            f.write(whole)
        os.chmod(path, mode)


def test_check(daemon, lab):
    """Every kind of file, missing and damaged in each way that can be seen; branches and tags are looked at too."""
    t = lab.table("looked")
    empty = checked(daemon, lab.table("nothing"))
    assert (empty["snapshots"], empty["findings-total"]) == (0, 0)
    path, o = t.append(5)
    t.update([{"action": "set-snapshot-ref", "ref-name": "old", "type": "tag", "snapshot-id": o.snapshot_id}])
    t.delete(path, [1, 3], o.snapshot_id)
    t.append(3)
    got = checked(daemon, t)
    assert got["findings"] == [] and (got["snapshots"], got["files"], got["vectors"]) == (2, 3, 1), got
    md = t.metadata()
    lists = [s["manifest-list"] for s in md["snapshots"]]
    folder = os.path.dirname(lists[-1].removeprefix("file://"))
    manifests = ["file://" + os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".avro") and "snap-" not in n]
    puffins = ["file://" + os.path.join(r, n) for r, _, names in os.walk(os.path.dirname(folder)) for n in names
               if n.endswith(".puffin")]
    assert len(puffins) == 1 and manifests
    flip = lambda at: lambda b: b[:at] + bytes([b[at] ^ 0x55]) + b[at + 1:]  # noqa: E731
    cases = [(path, None, "missing"), (path, lambda b: b + b"x", "size"), (path, lambda b: b[:-1], "size"),
             (lists[-1], None, "missing"), (lists[-1], lambda b: b[:40], "corrupt"), (lists[0], None, "missing"),
             (puffins[0], None, "missing"), (puffins[0], flip(20), "corrupt")]
    cases += [(m, change, kind) for m in manifests[:2] for change, kind in (
        (None, "missing"), (flip(100), "corrupt"), (lambda b: b[:-3], "size"))]
    for file, change, kind in cases:
        with damaged(file, change):
            got = checked(daemon, t)
        assert {(f["kind"], f["object"]) for f in got["findings"]} == {(kind, file)}, (file, kind, got)
        assert got["findings-total"] == len(got["findings"]) and all(f["message"] for f in got["findings"])
    with damaged(t.load()["metadata-location"], lambda b: b"{"):
        (found,) = checked(daemon, t)["findings"]
        assert found["kind"] == "corrupt"
    assert checked(daemon, t)["findings"] == []
    assert daemon.admin.call("POST", "/admin/tables/%s/check" % uuid.uuid4()).status == 404
    assert daemon.admin.call("POST", "/admin/tables/x/check").status == 400


# ---- an operator's halt

def halted(daemon):
    """Halted tables by name, when no table is loading."""
    end = time.monotonic() + 20
    while any(t["state"] == "loading" for t in get(daemon, "/admin/tables", limit=500)["tables"]):
        assert time.monotonic() < end
        time.sleep(0.02)
    return {t["name"]: t for t in get(daemon, "/admin/tables", halted="true")["tables"]}


def halted_again(daemon, name):
    """After a restart: the daemon serves before it knows every table."""
    end = time.monotonic() + 20
    while name not in halted(daemon):
        assert time.monotonic() < end
        time.sleep(0.02)
    return halted(daemon)[name]


def sealed(peer, table, files):
    me = ids(peer.call("begin", begin(table)))
    frag = fragment("f", files)
    peer.call("stage", {**me, "fragment": frag})
    peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    return me


def test_halt(daemon, lab):
    """Nothing is published until the resume, over a restart too; reads and Status are served."""
    t, beside = lab.table("stopped"), lab.table("running")
    t.append(3)
    location = t.load()["metadata-location"]
    at = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    peer = Peer(daemon)
    files = t.files(2)
    me = sealed(peer, t, files)
    going, gone = ids(peer.call("begin", begin(t))), ids(peer.call("begin", begin(t)))
    late = [t.files(1), t.files(2)]
    frags = [fragment("f%d" % i, f) for i, f in enumerate(late)]
    daemon.admin.want(204, "POST", at + "halt", {"cause": "surgery"})
    assert peer.call("abort", gone)["state"] == "ABORTED"
    for frag in frags:
        peer.call("stage", {**going, "fragment": frag})
        shown = halted_again(daemon, "main.adm.stopped")
        assert shown["cause"] == "halted by an operator: surgery" and shown["halt"]["by-operator"] is True
        assert 0 < shown["halt"]["since-ms"] and "batch-no" not in shown["halt"]
        for call, record in (("begin", begin(t)), ("commit", {**me, "summary": []}),
                             ("commit_once", {"begin": begin(t), "fragments": [fragment("0", t.files(1))], "summary": []})):
            with refused("TABLE_HALTED"):
                peer.call(call, record)
        got = lab.rest.call("POST", t.target, {"requirements": [], "updates": [
            {"action": "set-properties", "updates": {"a": "b"}}]})
        assert got.status == 409 and got.error["type"] == "TableHaltedException" and "surgery" in got.error["message"], got
        assert t.load()["metadata-location"] == location
        assert peer.call("status", {"txn_id": me["txn_id"]})["state"] == "SEALED"
        beside.append(1)
        daemon.restart(kill=True)
    peer.call("seal", {**going, "fragments": [ref_of(f) for f in frags]})
    # Halted again: the new word counts. Resumed: what waits is decided.
    daemon.admin.want(204, "POST", at + "halt", None)
    daemon.admin.want(204, "POST", at + "resume")
    assert halted(daemon) == {}
    assert peer.call("commit", {**me, "summary": []})["state"] == "COMMITTED"
    t.added(*files)
    assert peer.call("commit", {**going, "summary": []})["state"] == "COMMITTED"
    t.added(*late[0], *late[1])
    t.append(1)
    daemon.restart(kill=True)
    assert halted(daemon) == {}


def test_halt_waits_for_the_batch_under_way(make_daemon):
    d = make_daemon()
    lab = Lab(d, "way")
    t = lab.table("t")
    t.append(1)
    d.restart(**{"fs.put-delay-ms": 1500})
    at = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    peer = Peer(d)
    first, second = t.files(2), t.files(2)
    a, b = sealed(peer, t, first), sealed(peer, t, second)
    assert peer.call("commit", {**a, "summary": [], "max_wait_ms": 1})["state"] == "SEALED"
    end = time.monotonic() + 20
    while not get(d, "/admin/batches")["in-flight"]:
        assert time.monotonic() < end
    peer.call("commit", {**b, "summary": [], "max_wait_ms": 1})
    d.admin.want(204, "POST", at + "halt", {"cause": "stop"})
    assert get(d, "/admin/batches")["in-flight"] == []
    assert peer.call("status", {"txn_id": a["txn_id"]})["state"] == "COMMITTED"
    t.added(*first)
    head = t.head()
    time.sleep(0.5)
    assert peer.call("status", {"txn_id": b["txn_id"]})["state"] == "SEALED" and t.head() == head
    d.restart()
    halted_again(d, "main.way.t")
    d.admin.want(204, "POST", at + "resume")
    assert peer.call("commit", {**b, "summary": []})["state"] == "COMMITTED"
    t.added(*second)
    lab.check()


def test_halt_ends_with_its_table(daemon, lab):
    t = lab.table("replaced")
    t.append(1)
    at = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    daemon.admin.want(204, "POST", at + "halt", {})
    lab.rest.want(204, "DELETE", t.target)
    lab.forget(t)
    assert "main.adm.replaced" not in halted(daemon)
    lab.table("replaced").append(1)
    got = daemon.admin.call("POST", at + "halt", {})
    assert got.status == 404 and got.error["type"] == "NoSuchTableException", got


@pytest.mark.parametrize("body", [b"x", b"[]", b'{"cause":1}', b'{"cause":"%s"}' % (b"x" * 121), b'{"cause":"\xff"}'])
def test_bad_halts(daemon, lab, body):
    got = daemon.admin.raw("POST", "/admin/tables/%s/halt" % uuid.uuid4(), body)
    assert got.status == 400, got
    assert daemon.admin.call("POST", "/admin/tables/x/halt", {}).status == 400


def test_halt_needs_the_daemon_that_serves(daemon, make_daemon, conninfo, lab):
    t = lab.table("served")
    t.append(1)
    at = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    two = make_daemon(conninfo, start=False, settings={"warehouse.location": daemon.settings["warehouse.location"]})
    two.spawn()
    end = time.monotonic() + 20
    while True:
        try:
            got = two.admin.call("POST", at + "halt", {})
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)
    assert got.status in (406, 503), got
