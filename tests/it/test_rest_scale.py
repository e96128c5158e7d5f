"""Reading at scale: what many loads share, what a tag and a page stand for, tables and lists that are long."""

import socket
import threading

import pytest

from support.catalog import Space, set_properties

CROWD = 60


def counters(daemon):
    text = daemon.admin.get("/metrics").body.decode()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")}


def statements(daemon):
    return counters(daemon)['frazil_sql_statements_total{kind="catalog"}']


@pytest.fixture(scope="module")
def space(daemon):
    return Space(daemon, "scale")


# ---- many at once

def burst(daemon, targets):
    """One connection each, all requests on their way before the first answer is read. The answers' heads and bodies."""
    links = [socket.create_connection(("127.0.0.1", daemon.rest_port), timeout=60) for _ in targets]
    try:
        for link, target in zip(links, targets):
            link.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % target.encode())
        out = []
        for link in links:
            got = b""
            while piece := link.recv(1 << 16):
                got += piece
            out.append(got.partition(b"\r\n\r\n")[::2])
        return out
    finally:
        for link in links:
            link.close()


def test_loads_at_once_share_a_statement(daemon, space):
    names = ["shared%d" % i for i in range(4)]
    for name in names:
        space.create(name)
    want = {space.table(n): daemon.rest.get(space.table(n)).body for n in names}
    nobody = space.table("nobody")
    targets = [space.table(names[i % 4]) if i % 5 else nobody for i in range(CROWD)]
    before = statements(daemon)
    for _ in range(3):
        for target, (head, body) in zip(targets, burst(daemon, targets)):
            if target == nobody:
                assert head.startswith(b"HTTP/1.1 404 ") and b"NoSuchTableException" in body
            else:
                assert head.startswith(b"HTTP/1.1 200 ") and body == want[target]
    # A statement each would be 180.
    assert statements(daemon) - before <= 3 * CROWD / 2


def test_who_loads_after_a_commit_sees_it(daemon, space):
    """case BC-175: however many loads share a statement, none is answered by one that began before it was asked for."""
    space.create("fresh")
    target = space.table("fresh")
    acknowledged, wrong, stop = [0], [], threading.Event()

    def load():
        while not stop.is_set():
            least = acknowledged[0]
            got = int(daemon.rest.get(target).json["metadata"]["properties"].get("n", 0))
            if got < least:
                wrong.append((got, least))

    readers = [threading.Thread(target=load) for _ in range(6)]
    for r in readers:
        r.start()
    try:
        for n in range(1, 60):
            daemon.rest.want(200, "POST", target, {"requirements": [], "updates": [set_properties(n=str(n))]})
            acknowledged[0] = n
    finally:
        stop.set()
        for r in readers:
            r.join()
    assert not wrong
