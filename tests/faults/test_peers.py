"""Peers that stall, vanish, never read or come in thousands. Others are served meanwhile, memory and descriptors are bounded."""

import os
import resource
import selectors
import socket
import struct
import time
import uuid

import pytest

import frazil
from frazil import api, wire
from support.neighbour import Neighbour
from support.postgres import ROOT


@pytest.fixture(scope="module", autouse=True)
def descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 30000), hard))
    assert hard >= 12000, "the limit of open files is %d: 12000 are needed" % hard


def rss(daemon):
    with open("/proc/%d/status" % daemon.process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) << 10


def fds(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.process.pid))


def metric(daemon, name):
    for line in daemon.admin.get("/metrics").body.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise KeyError(name)


def wait_until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "not within %d s" % seconds
        time.sleep(0.1)


def dial(port, send=b"", small=False):
    s = socket.socket()
    if small:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(30)
    s.connect(("127.0.0.1", port))
    if send:
        s.sendall(send)
    return s


def closed_by_server(socks, seconds):
    """How many of the sockets the server has closed by then; what it sends is read and dropped."""
    pick, gone, end = selectors.DefaultSelector(), 0, time.monotonic() + seconds
    for s in socks:
        s.setblocking(False)
        pick.register(s, selectors.EVENT_READ)
    left = len(socks)
    while left and time.monotonic() < end:
        for key, _ in pick.select(0.2):
            try:
                if key.fileobj.recv(65536):
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            pick.unregister(key.fileobj)
            left -= 1
            gone += 1
    pick.close()
    return gone


HELLO = wire.request("hello", 0, api.hello_record(False))
GET = b"GET /v1/config HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def plain(monkeypatch, make_daemon):
    """plain(settings): the daemon without sanitizers, whose memory is that of production."""
    monkeypatch.setenv("FRAZILD", os.path.join(ROOT, "build/gcc/frazild"))
    return lambda settings: make_daemon(settings=settings)


def many(port, n, send, first):
    """n connections that have each got a first answer of at least `first` bytes."""
    socks = []
    for at in range(0, n, 500):
        batch = [dial(port, send) for _ in range(min(500, n - at))]
        for s in batch:
            got = b""
            while len(got) < first:
                more = s.recv(4096)
                assert more, "closed after %d connections" % len(socks)
                got += more
        socks += batch
    return socks


def test_ten_thousand_workers(plain):
    """10,000 connections that have said Hello and are silent: at most 200 MiB."""
    d = plain({"rpc.max-connections": 10050})
    with Neighbour(d) as n:
        n.over.wait(1)
        before, open_before = rss(d), fds(d)
        socks = many(d.rpc_port, 10000, HELLO, 20)
        took = rss(d) - before
        assert metric(d, "frazil_rpc_connections") >= 10000
        assert took < 200 << 20, took
        # Each is alive still.
        for s in socks[::1000]:
            s.sendall(wire.request("status", 7, {"txn_id": uuid.uuid4()}))
            assert s.recv(4096)
        for s in socks:
            s.close()
        wait_until(lambda: fds(d) <= open_before + 2)


def test_two_thousand_readers(plain):
    """2,000 idle keep-alive connections: at most 100 MiB; one more waits and is served when another leaves."""
    d = plain({})
    with Neighbour(d) as n:
        n.over.wait(1)
        before, open_before = rss(d), fds(d)
        held = int(metric(d, "frazil_rest_connections"))
        socks = many(d.rest_port, 2000 - held, GET, 100)
        took = rss(d) - before
        assert took < 100 << 20, took
        late = [dial(d.rest_port, GET) for _ in range(3)]
        late[0].settimeout(0.3)
        with pytest.raises(TimeoutError):
            late[0].recv(1)
        for s in late:
            socks.pop().close()
            s.settimeout(10)
        for s in late:
            assert s.recv(100).startswith(b"HTTP/1.1 200 ")
        for s in socks + late:
            s.close()
        wait_until(lambda: fds(d) <= open_before + 2)


def test_slow_and_half_open(make_daemon):
    """Case BC-223. Heads, bodies and frames that never end, answers that nobody reads, connections that never speak."""
    d = make_daemon(settings={"rest.request-timeout-ms": 2000, "rest.idle-timeout-ms": 2000})
    with Neighbour(d) as n:
        n.over.wait(0.5)
        open_before = fds(d)
        length = b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\n{"
        chunked = b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"
        kinds = {
            "silent": [dial(d.rest_port) for _ in range(100)],
            "head": [dial(d.rest_port, b"G") for _ in range(100)],
            "header": [dial(d.rest_port, b"GET / HTTP/1.1\r\nHost: ") for _ in range(100)],
            "body": [dial(d.rest_port, length) for _ in range(100)],
            "chunk": [dial(d.rest_port, chunked) for _ in range(100)],
            "hello": [dial(d.rpc_port) for _ in range(100)],
            "hello in part": [dial(d.rpc_port, HELLO[:9]) for _ in range(100)],
        }
        feed = {"head": b"E", "header": b"x", "body": b" ", "chunk": b" ", "hello in part": b""}
        for _ in range(8):
            for kind, byte in feed.items():
                for s in kinds[kind]:
                    try:
                        s.send(byte)
                    except OSError:
                        pass
            n.over.wait(0.5)
        for kind, socks in kinds.items():
            assert closed_by_server(socks, 14) == len(socks), kind
            for s in socks:
                s.close()
        wait_until(lambda: fds(d) <= open_before + 2)
        # Whoever vanished without a word, in the middle of a request.
        for port, send in ((d.rest_port, GET[:-2]), (d.rpc_port, HELLO + b"\0\0\1")):
            for _ in range(100):
                s = dial(port, send)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()
        wait_until(lambda: fds(d) <= open_before + 2)


def test_answers_that_nobody_reads(plain):
    """A session sends requests and reads no reply: it stops being read, and is closed; memory stays bounded."""
    d = plain({"rpc.max-frame-bytes": 1048576})
    with Neighbour(d) as n:
        n.over.wait(0.5)
        before = rss(d)
        request = wire.request("status", 3, {"txn_id": uuid.uuid4()})
        socks = [dial(d.rpc_port, HELLO, small=True) for _ in range(20)]
        left = dict.fromkeys(socks, b"")
        for s in socks:
            s.setblocking(False)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for s in socks:
                try:
                    out = left[s] or request * 2000
                    left[s] = out[s.send(out):]  # the stream stays one of whole requests
                except OSError:
                    pass
            time.sleep(0.005)
        assert rss(d) - before < 150 << 20, rss(d) - before
        # And readers of a large document who ask for it again and again.
        t = n.lab.table("large", **{"p%d" % i: "v" * 1000 for i in range(3000)})
        get = ("GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % t.target).encode()
        readers = [dial(d.rest_port, get * 20, small=True) for _ in range(100)]
        n.over.wait(2)
        assert rss(d) - before < 250 << 20, rss(d) - before
        assert metric(d, "frazil_rpc_connections") >= 1
        # The deadline for a reply to be read is half a minute, that for the rest of a frame a minute.
        wait_until(lambda: metric(d, "frazil_rpc_connections") <= 2, 90)
        for s in socks:
            s.close()
        socks = [dial(d.rpc_port, HELLO, small=True) for _ in range(5)]
        for s in socks:
            s.setblocking(False)
            for _ in range(200):
                try:
                    s.send(request * 2000)
                except OSError:
                    time.sleep(0.002)
    # A drain does not wait for them either.
    began = time.monotonic()
    d.stop()
    assert time.monotonic() - began < 15
    for s in socks + readers:
        s.close()


def busy(daemon):
    """Seconds of processor time so far."""
    with open("/proc/%d/stat" % daemon.process.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("port", ["rest", "rpc"])
def test_noise(make_daemon, port):
    """Bytes that are no protocol at all, in many lengths; then the peer stops sending. No connection stays, none spins."""
    d = make_daemon(settings={"rest.idle-timeout-ms": 3000})
    at = d.rest_port if port == "rest" else d.rpc_port
    state, socks = 12345, []
    with Neighbour(d) as n:
        for size in [1, 2, 3, 4, 13, 14, 15, 100, 1000, 10000, 100000, 1000000] * 3:
            out = bytearray()
            while len(out) < size:
                state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
                out += state.to_bytes(8, "little")
            s = dial(at)
            try:
                s.sendall(bytes(out[:size]))
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            socks.append(s)
        n.over.wait(0.5)
    began = busy(d)
    time.sleep(1)
    assert busy(d) - began < 0.5
    assert closed_by_server(socks, 15) == len(socks)


def test_more_than_descriptors(make_daemon):
    """No descriptor left for a connection: it is refused or waits, the rest goes on."""
    d = make_daemon(start=False)
    d.spawn()
    d.wait_ready()
    # The sanitizer holds none; PostgreSQL, listeners and the loop have some thirty.
    resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (120, 120))
    with Neighbour(d, slow=5) as n:
        socks = []
        for port in (d.rest_port, d.rpc_port):
            for _ in range(100):
                socks.append(dial(port, HELLO if port == d.rpc_port else GET))
        n.over.wait(2)
        for s in socks:
            s.close()
        n.over.wait(1)
    with frazil.Client(d.rpc, timeout=10) as c:
        c.table(n.table.name).info()
