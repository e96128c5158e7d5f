"""No memory left: what is as large as its input fails typed; where the process ends, the restart is one after kill -9."""

import json
import os
import resource
import socket
import threading
import time

import pytest

import frazil
from support.lab import Lab
from support.postgres import ROOT


def size(daemon):
    with open("/proc/%d/status" % daemon.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmSize")) << 10


def post(daemon, target, body):
    """(status, body) or None when the connection ended."""
    try:
        with socket.create_connection(("127.0.0.1", daemon.rest_port), 30) as s:
            s.sendall(b"POST %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (target.encode(), len(body)) + body)
            got = b""
            while more := s.recv(65536):
                got += more
        return int(got.split()[1]), got.split(b"\r\n\r\n", 1)[1]
    except (OSError, IndexError):
        return None


@pytest.mark.parametrize("spare", [0, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20])
def test_address_space(make_daemon, monkeypatch, spare):
    """The limit is set `spare` bytes above what the daemon has; large and many small requests come at once."""
    monkeypatch.setenv("FRAZILD", os.path.join(ROOT, "build/gcc/frazild"))
    d = make_daemon(settings={"rest.max-body-bytes": 33554432, "rest.request-timeout-ms": 3000})
    lab = Lab(d, "memory")
    t = lab.table("t")
    path, o = t.append(20)
    calls, told = [], {}
    for n in range(6):
        files = t.files(2)
        calls.append(("append", dict(kind="APPEND", data_files=files), files))
        calls.append(("delete", dict(kind="DELETE", deletes=[(path, [n])], read_snapshot_id=o.snapshot_id), n))
    for _, call, _ in calls:
        call["txn_id"] = frazil.uuid7()
    big = json.dumps({"requirements": [{"type": "assert-table-uuid", "uuid": "x"}],
                      "updates": [{"action": "set-properties", "updates": {"k%d" % i: "v" * 100 for i in range(150000)}}]}).encode()
    answers = []
    resource.prlimit(d.process.pid, resource.RLIMIT_AS, (size(d) + spare, resource.RLIM_INFINITY))

    def commit(n):
        for at in range(n, len(calls), 3):
            try:
                with frazil.Client(d.rpc, retries=0, timeout=10) as c:
                    told[at] = c.commit_once(t.name, info=t.info, **calls[at][1])
            except (frazil.Error, OSError) as e:
                told[at] = e

    def load():
        for _ in range(3):
            answers.append(post(d, t.target, big))
            answers.append(post(d, "/v1/namespaces/memory/tables", b'{"name":"x","schema":' + b"[" + b"1," * 1000000 + b"1]}"))
    threads = [threading.Thread(target=commit, args=(n,)) for n in range(3)] + [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for got in answers:
        if got is not None:
            assert got[0] in (400, 404, 413, 429, 500, 503), got
            assert json.loads(got[1])["error"]["code"] == got[0], got
    # A clean refusal is one: nothing of it is there, now or later.
    clean = {at for at, e in told.items() if isinstance(e, frazil.Error) and e.effect == "CLEAN"}
    if d.alive:
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        time.sleep(0.5)  # it may be ending just now
    if not d.alive:
        # Our own end: an assertion that names its place, or the C library's.
        assert d.process.returncode in (-6, -11, -9), d.log()[-2000:]
        assert d.process.returncode == -6, d.log()[-2000:]
        d.process = None
        d.read_to = len(d.log())
        d.start()
    for at, outcome in told.items():
        if not isinstance(outcome, Exception):
            with frazil.Client(d.rpc, timeout=20) as c:
                again = c.commit_once(t.name, info=t.info, **calls[at][1])
            assert (again.state, again.snapshot_id, again.sequence_number) == ("COMMITTED", outcome.snapshot_id, outcome.sequence_number)
    for at, (kind, call, what) in enumerate(calls):
        if at in clean and kind == "append":
            # It must not have happened: its files are free for another transaction.
            call = {**call, "txn_id": frazil.uuid7()}
        with frazil.Client(d.rpc, timeout=20) as c:
            assert c.commit_once(t.name, info=t.info, **call).state == "COMMITTED"
        t.added(*what) if kind == "append" else t.deleted(path, [what])
    lab.check()
