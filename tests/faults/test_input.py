"""Hostile input on every surface: typed refusals that name the field, no effect on any row, others served meanwhile."""

import base64
import json
import os
import socket
import struct
import subprocess
import time
import uuid

import psycopg
import pytest

import frazil
from frazil import api, codec, wire
from support.daemon import binary
from support.lab import Lab, begin, fragment, plain
from support.neighbour import Neighbour

ROWS = ("warehouse", "namespace", "tabular", "head", "txn", "fragment", "batch", "object")


@pytest.fixture(scope="module")
def settings():
    return {"rest.max-body-bytes": 8388608, "rpc.max-frame-bytes": 1048576}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "input")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def table(lab):
    t = lab.table("t")
    t.first, t.base = t.append(10)
    return t


@pytest.fixture
def unmoved(daemon, lab, table, conninfo):
    """No row of any table and no file changes; somebody else reads all the time and waits at most two seconds."""
    def rows():
        with psycopg.connect(conninfo) as db:
            return {name: db.execute(
                "SELECT count(*), md5(coalesce(string_agg(x::text, '|' ORDER BY x::text), '')) FROM frazil.%s x" % name).fetchone()
                for name in ROWS}

    def files():
        return sorted(os.path.join(at, f) for at, _, names in os.walk(daemon.warehouse) for f in names)
    with Neighbour(daemon, commits=False) as n:
        before, stored = rows(), files()
        yield
        n.over.wait(0.2)
        assert rows() == before
        assert files() == stored


def http(daemon, data):
    """(status, body) of the first answer to these bytes."""
    with socket.create_connection(("127.0.0.1", daemon.rest_port)) as s:
        s.settimeout(60)
        try:
            s.sendall(data)
        except OSError:
            pass  # refused before all of it was read
        got = b""
        while b"\r\n\r\n" not in got:
            more = s.recv(65536)
            assert more, got
            got += more
        head, body = got.split(b"\r\n\r\n", 1)
        length = next((int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length")), 0)
        while len(body) < length:
            more = s.recv(65536)
            assert more, got
            body += more
        assert len(body) == length
        return int(head.split()[1]), head, body


def request(daemon, method, target, body=None, more=b""):
    length = b"" if body is None else b"Content-Length: %d\r\n" % len(body)
    if isinstance(target, str):
        target = target.encode()
    return http(daemon, method.encode() + b" " + target + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + length + more + b"\r\n" + (body or b""))


def modelled(got, statuses, where=None):
    """An answer of the error model with one of these statuses; `where` must stand in the message."""
    status, head, body = got
    assert status in statuses, (status, body[:300])
    assert b"application/json" in head, head
    error = json.loads(body)["error"]
    assert error["code"] == status and error["type"].endswith(("Exception", "Error")) and error["message"], error
    assert where is None or where in error["message"], error
    return error


REQUESTS = ("begin", "stage", "seal", "commit", "commit_once", "status", "abort", "heartbeat")
DEEP = b"[" * 100000
BODIES = [
    b"", b" ", b"{", b"[]", b"null", b"1", b'"x"', b"{}x", b"{},{}", b"{'a':1}", b'{"a":1,}', b'{"a":1,"a":2}', b'{"a":01}', b'{"a":+1}',
    b'{"a":1e999}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":9223372036854775808}', b'{"a":"\x00"}', b'{"a":"\n"}', b'{"a":"\\x"}',
    b'{"a":"\\ud800"}', b'{"a":"\\udc00\\ud800"}', b'\xff\xfe{\x00}\x00', b'\xef\xbb\xbf{}', b'{"a":"\xc3"}', b'{"a":"\xc0\x80"}',
    b'{"a":"\xed\xa0\x80"}', b'{"a":"\xf4\x90\x80\x80"}', b'{"\xff":1}', DEEP, b'{"a":' * 100000, b'{"zz":' + b"[" * 65 + b"]" * 65 + b"}",
    b'{"zz":' + DEEP, b'[' + b"[]," * 2000000 + b"[]]", b'{"a":[' + b"1," * 4000000 + b"1]}", b"\0" * 1000, b"{" + b" " * 8000000,
]


def posts(t):
    return ["/v1/namespaces", "/v1/namespaces/input/properties", "/v1/namespaces/input/tables", t.target, "/v1/namespaces/input/register",
            "/v1/transactions/commit", "/v1/tables/rename", "/v1/input/namespaces"]


def test_bodies_of_every_route(daemon, table, unmoved):
    """Cases BC-222, BC-230: what is not strict JSON in UTF-8, too deep, too many parts."""
    for target in posts(table):
        for body in BODIES:
            modelled(request(daemon, "POST", target, body), (400, 404, 413))
    for message in REQUESTS:
        for body in BODIES:
            status, _, got = request(daemon, "POST", "/frazil/v1/" + message, body)
            told = json.loads(got)
            assert status == 400 and told["name"] in ("BAD_REQUEST", "LIMIT", "TOO_LARGE") and told["effect"] == "CLEAN", (message, body[:40], told)


def test_targets(daemon, table, unmoved):
    """Case BC-229 and raw targets that another server may read differently."""
    for target, statuses in [
            ("/v1/namespaces/%00", (400,)), ("/v1/namespaces/%zz", (400,)), ("/v1/namespaces/%2", (400,)), ("/v1/namespaces/%", (400,)),
            ("/v1/namespaces/%ff", (400,)), ("/v1/namespaces/%c0%80", (400,)), ("/v1/namespaces/%ed%a0%80", (400,)),
            ("/v1/namespaces/input%2Ftables", (404,)), ("/v1/namespaces/input/tables%2Ft", (404,)), ("/v1/namespaces/input/tables/%2e%2e", (404,)),
            ("/v1/namespaces/../config", (404,)), ("/v1/namespaces/input/tables/..%2f..%2f..%2fetc%2fpasswd", (404,)),
            ("/v1/namespaces/input%1F", (400,)), ("/v1/namespaces/%1F", (400,)), ("/v1/namespaces/a%1F%1Fb", (400,)), ("/v1//namespaces", (404,)),
            ("/v1/namespaces/%01", (404,)), ("/v1/namespaces/" + "x" * 20000, (400, 404, 414)), ("/v1/namespaces/" + "a%1F" * 5000 + "a", (400, 404)),
            ("/v1/namespaces/" + "%41" * 9000, (400, 404)), ("/" + "a/" * 10000, (404,)), ("/v1/namespaces/" + "n" * 40000, (414,)),
            ("/v1/config?warehouse=%zz", (400,)), ("/v1/config?warehouse=none", (400, 404)), ("/v1/namespaces?parent=%00", (400,)),
            ("/v1/namespaces?parent=%", (400,)), ("/v1/namespaces?pageSize=0", (400,)), ("/v1/namespaces?pageSize=-5&pageToken=", (400,)),
            ("/v1/namespaces?pageSize=99999999999999999999&pageToken=", (400,)), ("/v1/namespaces?pageSize=1x&pageToken=", (400,)),
            ("/v1/namespaces?pageToken=%ff", (400,)), ("/v1/namespaces?pageToken=AAAA", (400,)), ("/v1/namespaces?parent=none", (404,)),
            ("/v1/config?" + "&".join("a=b" for _ in range(100)), (400,)),
            ("/v1/config?" + "&".join("a=b" for _ in range(2000)), (431,)), ("/v1/config?x=" + "y" * 40000, (414,)), ("*", (400,)),
            ("no-slash", (400,)), ("/v1/namespaces/input/tables/t?snapshots=none", (400,)), ("http://", (400, 404)), ("/v1/none/namespaces", (404,))]:
        modelled(request(daemon, "GET", target), statuses)
    for target in (b"/v1/\x01", b"/v1/\x7f", b"/v1/\xff\xfe"):
        modelled(request(daemon, "GET", target), (400, 404))
    for target in ("/v1/config?", "/v1/config?&&", "/v1/config?=x", "/v1/config?a;b=c", "/v1/config?a=1&a=2", "/v1/namespaces?parent=input&x=%20+y"):
        assert request(daemon, "GET", target)[0] == 200, target


def test_methods(daemon, table, unmoved):
    """405 with Allow, unknown methods, and HEAD without a body; case BC-219."""
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "CONNECT", "FOO", "get", "G" * 3000):
        got = request(daemon, method, "/v1/config")
        modelled(got, (405, 400))
        assert got[0] == 400 or b"Allow: GET" in got[1], got
    for target in ("/", "/v2/config", "/v1", "/v1/", "/v1/views", "/metrics", "/healthz", "/admin/tables", "/frazil/v1/", "/frazil/v2/begin"):
        modelled(request(daemon, "GET", target), (404, 405)) if not target.startswith("/frazil/v1") else None
    for target, status in ((table.target, (200, 204)), ("/v1/namespaces/none", (404,)), ("/v1/namespaces/input", (204,)), ("/v1/none", (404,))):
        with socket.create_connection(("127.0.0.1", daemon.rest_port)) as s:
            s.settimeout(20)
            s.sendall(("HEAD %s HTTP/1.1\r\nHost: h\r\n\r\nGET /v1/config HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" % target).encode())
            got = b""
            while more := s.recv(65536):
                got += more
        answers = got.split(b"HTTP/1.1 ")[1:]
        assert len(answers) == 2 and int(answers[0][:3]) in status and answers[0].endswith(b"\r\n\r\n"), got
        assert answers[1].startswith(b"200")


def test_expectations(daemon, unmoved):
    """Case BC-220: a refusal by the head comes before the body, and 100 before a body that is wanted."""
    large = b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n"
    modelled(http(daemon, large), (413,))
    with socket.create_connection(("127.0.0.1", daemon.rest_port)) as s:
        s.settimeout(10)
        s.sendall(b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(b"[]")
        assert s.recv(100).startswith(b"HTTP/1.1 400 ")


def test_sizes(daemon, unmoved):
    """Case BC-225: one byte over the limit is 413 with the error model, announced or in chunks; what is announced is not read."""
    limit = 8388608
    modelled(http(daemon, b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (limit + 1)), (413,))
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    modelled(http(daemon, b"POST /v1/namespaces HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 9 + b"0\r\n\r\n"), (413,))
    modelled(request(daemon, "POST", "/v1/namespaces", b"{" + b" " * (limit - 1)), (400,))
    modelled(request(daemon, "POST", "/v1/namespaces", b"\x1f\x8b\x08" + bytes(100), b"Content-Encoding: gzip\r\n"), (400, 415))


def field(fid, name="c", kind="long", **more):
    return {"id": fid, "name": name, "required": False, "type": kind, **more}


def nested(levels):
    kind = "int"
    for n in range(levels):
        kind = {"type": "list", "element-id": n + 10, "element-required": False, "element": kind}
    return kind


def schema(*fields, **more):
    return {"type": "struct", "schema-id": 0, "fields": list(fields), **more}


@pytest.mark.parametrize("body,where", [
    ({"namespace": "input"}, "namespace"), ({"namespace": []}, "namespace"), ({"namespace": [1]}, "namespace"), ({"namespace": [""]}, "namespace"),
    ({"namespace": ["a\0b"]}, "namespace"), ({"namespace": ["a\x1fb"]}, "namespace"), ({"namespace": ["x"] * 10000}, "namespace"),
    ({"namespace": ["x" * 5000]}, "namespace"), ({"namespace": ["x"], "properties": []}, "properties"),
    ({"namespace": ["x"], "properties": {"a": 1}}, "properties"), ({"namespace": ["x"], "properties": {"a\0": "b"}}, "NUL")])
def test_namespaces(daemon, body, where, unmoved):
    """Case BC-235: caps for the levels of a namespace."""
    modelled(request(daemon, "POST", "/v1/namespaces", json.dumps(body).encode()), (400,), where)


@pytest.mark.parametrize("change,where", [
    ({"name": 1}, "name"), ({"name": ""}, "name"), ({"name": "a\0b"}, "name"), ({"name": "x" * 5000}, "name"), ({"schema": None}, "schema"),
    ({"schema": []}, "schema"), ({"schema": {"type": "struct"}}, "fields"), ({"schema": schema(field(1), field(1, "d"))}, ""),
    ({"schema": schema(field(1), field(2))}, ""), ({"schema": schema(field(-1))}, ""), ({"schema": schema(field(1 << 31))}, ""),
    ({"schema": schema(field(1, kind="none"))}, "type"), ({"schema": schema(field(1, kind="decimal(39,0)"))}, ""),
    ({"schema": schema(field(1, kind="decimal(5,9)"))}, ""), ({"schema": schema(field(1, kind="fixed[-1]"))}, ""),
    ({"schema": schema(field(1, kind="fixed[99999999999]"))}, ""), ({"schema": schema(field(1, kind=nested(62)))}, ""),
    ({"schema": schema(field(1), **{"identifier-field-ids": [7]})}, "identifier"),
    ({"schema": schema(field(1, **{"initial-default": "x"}))}, "default"),
    ({"partition-spec": {"fields": [{"source-id": 9, "name": "p", "transform": "identity"}]}}, ""),
    ({"partition-spec": {"fields": [{"source-id": 1, "name": "p", "transform": "bucket[0]"}]}}, ""),
    ({"partition-spec": {"fields": [{"source-id": 1, "name": "p"}]}}, "transform"), ({"partition-spec": []}, "spec"),
    ({"write-order": {"order-id": 1, "fields": [{"source-id": 9, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}}, ""),
    ({"write-order": {"order-id": 1, "fields": [{"source-id": 1, "transform": "identity", "direction": "up", "null-order": "nulls-first"}]}}, ""),
    ({"location": "file:///etc"}, "location"), ({"location": "file:///tmp/../etc/x"}, "location"), ({"location": "s3://b/x"}, "location"),
    ({"location": "http://127.0.0.1/x"}, "location"), ({"location": "relative"}, "location"), ({"location": "file:///a\0b"}, "location"),
    ({"properties": {"write.metadata.path": "file:///etc"}}, "write.metadata.path"), ({"properties": {"format-version": "9"}}, "format version"),
    ({"properties": {"format-version": "x"}}, "format-version"), ({"properties": {"a": None}}, "properties"), ({"stage-create": "yes"}, "stage")])
def test_tables(daemon, change, where, unmoved):
    body = {"name": "bad", "schema": schema(field(1)), **change}
    modelled(request(daemon, "POST", "/v1/namespaces/input/tables", json.dumps(body).encode()), (400,), where)


SNAP = {"snapshot-id": 77, "sequence-number": 99, "timestamp-ms": int(time.time() * 1000), "manifest-list": "file:///none", "summary": {"operation": "append"},
        "schema-id": 0, "first-row-id": 10, "added-rows": 0}


@pytest.mark.parametrize("updates,where", [
    ("x", "updates"), ({}, "updates"), ([1], "updates[0]"), ([{}], "updates[0].action"), ([{"action": "none"}], "updates[0].action"),
    ([{"action": 5}], "updates[0].action"), ([{"action": "set-properties", "updates": []}], "updates"),
    ([{"action": "set-properties", "updates": {"a": 1}}], "updates[0]"), ([{"action": "remove-properties", "removals": [1]}], "removals"),
    ([{"action": "set-location", "location": "file:///etc"}], "location"), ([{"action": "set-location", "location": ""}], ""),
    ([{"action": "upgrade-format-version", "format-version": 99}], ""), ([{"action": "upgrade-format-version", "format-version": 1}], ""),
    ([{"action": "set-current-schema", "schema-id": 99}], ""), ([{"action": "set-default-spec", "spec-id": 99}], ""),
    ([{"action": "remove-partition-specs", "spec-ids": [0]}], ""), ([{"action": "remove-schemas", "schema-ids": "x"}], "schema-ids"),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "snapshot-id": "x"}}], "snapshot-id"),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "sequence-number": 0}}], ""),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "timestamp-ms": 1 << 62}}], "timestamp-ms"),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "first-row-id": -1}}], "first-row-id"),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "added-rows": -1}}], "added-rows"),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "added-rows": (1 << 63) - 1}}], ""),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "summary": {}}}], ""),
    ([{"action": "add-snapshot", "snapshot": {**SNAP, "parent-snapshot-id": "x"}}], "parent-snapshot-id"),
    ([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 12345}], ""),
    ([{"action": "set-snapshot-ref", "ref-name": "b", "type": "other", "snapshot-id": 1}], "type"),
    ([{"action": "set-statistics", "snapshot-id": 1, "statistics": []}], "statistics"),
    ([{"action": "add-encryption-key", "encryption-key": {}}], "key-id"), ([{"action": "assign-uuid", "uuid": "x"}], "uuid"),
    ([{"action": "add-schema", "schema": schema(field(1, kind=nested(62)))}], "")])
def test_updates(daemon, table, updates, where, unmoved):
    body = {"requirements": [], "updates": updates}
    modelled(request(daemon, "POST", table.target, json.dumps(body).encode()), (400, 409), where)


@pytest.mark.parametrize("requirements,where", [
    ("x", "requirements"), ([1], "requirements[0]"), ([{"type": "none"}], "requirements[0].type"), ([{"type": "assert-ref-snapshot-id"}], "ref"),
    ([{"type": "assert-table-uuid", "uuid": 1}], "uuid"), ([{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "x"}], "snapshot-id")])
def test_requirements(daemon, table, requirements, where, unmoved):
    body = {"requirements": requirements, "updates": []}
    modelled(request(daemon, "POST", table.target, json.dumps(body).encode()), (400,), where)


def test_long_lists(daemon, table, unmoved):
    """Case BC-235. Lists as long as a body holds: bounded time, no quadratic work, others wait at most two seconds."""
    one = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    for build in [
            lambda n: {"requirements": [one] * n, "updates": []},
            lambda n: {"requirements": [one], "updates": [{"action": "set-properties", "updates": {"k": "v"}}] * n},
            lambda n: {"requirements": [one], "updates": [{"action": "remove-properties", "removals": ["k%d" % i for i in range(n)]}]},
            lambda n: {"requirements": [one], "updates": [{"action": "remove-snapshots", "snapshot-ids": list(range(n))}]}]:
        took = []
        for n in (30000, 60000):
            body = json.dumps(build(n)).encode()
            began = time.monotonic()
            modelled(request(daemon, "POST", table.target, body), (400, 409))
            took.append(time.monotonic() - began)
        assert took[1] < 5 and took[1] < 4 * took[0] + 0.5, took


@pytest.mark.parametrize("name", ["set", "remove", "snapshots", "schemas"])
def test_long_lists_that_are_applied(daemon, lab, name):
    """Case BC-235: the same where every update is done."""
    t = lab.table("long_" + name)
    t.append(1)
    make = {"set": lambda n: [{"action": "set-properties", "updates": {"k%d" % i: "v"}} for i in range(n)],
            "remove": lambda n: [{"action": "remove-properties", "removals": ["k%d" % i for i in range(n)]}],
            "snapshots": lambda n: [{"action": "remove-snapshots", "snapshot-ids": list(range(1, n))}],
            "schemas": lambda n: [{"action": "add-schema", "schema": schema(*t.metadata()["schemas"][0]["fields"], field(9 + i, "c%d" % i))}
                                  for i in range(n // 100)]}[name]
    with Neighbour(daemon, slow=4):
        for n in (10000, 20000):
            began = time.monotonic()
            got = request(daemon, "POST", t.target, json.dumps({"requirements": [], "updates": make(n)}).encode())
            assert got[0] in (200, 400), got[2][:300]
            assert time.monotonic() - began < 8


def test_many_properties(daemon, lab):
    """Set, changed and removed among many: each where it was, none lost."""
    t = lab.table("properties")
    t.append(1)
    want = {k: v for k, v in t.metadata()["properties"].items()}
    t.update([{"action": "set-properties", "updates": {"k%d" % i: "a" for i in range(5000)}}])
    want.update({"k%d" % i: "a" for i in range(5000)})
    t.update([{"action": "set-properties", "updates": {"k%d" % i: "b" for i in range(0, 5000, 3)}},
              {"action": "remove-properties", "removals": ["k%d" % i for i in range(0, 5000, 2)] + ["none", "k2", "k2"]},
              {"action": "set-properties", "updates": {"k4": "c", "new": "d"}}])
    want.update({"k%d" % i: "b" for i in range(0, 5000, 3)})
    # What one request removes and sets again stays where it was.
    for i in range(0, 5000, 2):
        if i != 4:
            del want["k%d" % i]
    want.update({"k4": "c", "new": "d"})
    assert list(t.metadata()["properties"].items()) == list(want.items())
    modelled(request(daemon, "POST", t.target, json.dumps({"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"k": "v"}}] * 32769}).encode()), (400,), "updates")


@pytest.mark.parametrize("location,where", [
    ("file:///etc/passwd", "metadata-location"), ("file:///proc/self/mem", "metadata-location"), ("/etc/passwd", "metadata-location"),
    ("file:///none/../../etc/passwd", "metadata-location"), ("", "metadata-location"), ("s3://x/y", "metadata-location"),
    ("file://host/x", "metadata-location"), ("file:///a\0b", "metadata-location")])
def test_register_paths(daemon, location, where, unmoved):
    body = {"name": "bad", "metadata-location": location}
    modelled(request(daemon, "POST", "/v1/namespaces/input/register", json.dumps(body).encode()), (400,), where)


# ---- the worker protocol

def records(t):
    """A valid record of every request, for a transaction that does not exist where one is named."""
    who = {"txn_id": frazil.uuid7(), "lease_token": bytes(32)}
    files = [dict(t.files(1)[0])]
    frag = fragment("f", files)
    vector = fragment("d", [], [(t.first, [1, 2])])
    return {
        "begin": begin(t), "stage": {**who, "fragment": frag},
        "seal": {**who, "fragments": [{k: frag[k] for k in ("fragment_id", "attempt", "digest")}]},
        "commit": {**who, "summary": [{"key": "a", "value": "b"}]}, "status": {"txn_id": who["txn_id"]}, "abort": who, "heartbeat": {"items": [who]},
        "commit_once": {"begin": begin(t, kind="ROW_DELTA", read_snapshot_id=t.base.snapshot_id), "fragments": [frag, vector], "summary": []},
    }


class Line:
    """A connection that sends frames as they are given."""

    def __init__(self, daemon):
        self.sock = socket.create_connection(("127.0.0.1", daemon.rpc_port))
        self.sock.settimeout(30)
        self.reader, self.answers = wire.Reader(), []
        self.sock.sendall(wire.request("hello", 1, api.hello_record(False)))
        self.answer()

    def answer(self):
        """(name, record) of the next answer; None when the server closed."""
        while not self.answers:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.answers += [wire.answer(kind, payload) for kind, _, _, payload in self.reader.feed(data)]
        return self.answers.pop(0)

    def ask(self, kind, payload):
        self.sock.sendall(wire.frame(kind, 5, payload))
        return self.answer()

    def refused(self, kind, payload, names=("BAD_REQUEST",)):
        name, told = self.ask(kind, payload)
        assert name == "error" and told["name"] in names and told["effect"] == "CLEAN", (name, told, payload[:60])
        return told


@pytest.fixture(scope="module")
def samples(table):
    return records(table)


def test_messages_cut_and_changed(daemon, table, samples, unmoved):
    """Every request cut at many places, followed by bytes, with counts and lengths that are not there. The session goes on."""
    line = Line(daemon)
    kinds = {name: kind for kind, name in codec.messages()[0].items()}
    for name, record in samples.items():
        payload = codec.load(name).encode(record)
        for at in sorted({len(payload) * n // 23 for n in range(23)}):
            line.refused(kinds[name], payload[:at])
        line.refused(kinds[name], payload + b"\0")
        line.refused(kinds[name], b"\xff" * 11 + payload)
        # Arrays of 2^62 items, of a negative count, texts of 2^40 bytes: wherever a byte is 2 or more it may be one of those.
        for at in sorted({len(payload) * n // 17 for n in range(17)}):
            for planted in (b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x40"):
                told = line.ask(kinds[name], payload[:at] + planted + payload[at:])
                assert told and (told[0] != "error" or told[1]["effect"] == "CLEAN"), told
    assert line.ask(kinds["status"], codec.load("status").encode({"txn_id": uuid.uuid4()}))[1]["name"] == "TXN_UNKNOWN"


def test_frames(daemon, unmoved):
    """Wrong checksum, length, type and version; what comes before Hello."""
    hello = wire.request("hello", 1, api.hello_record(False))
    status = wire.request("status", 2, {"txn_id": uuid.uuid4()})
    flipped = bytearray(status)
    flipped[-1] ^= 1
    for data, name in [
            (hello + bytes(flipped), "BAD_REQUEST"), (hello + struct.pack(">I", 0), "BAD_REQUEST"), (hello + struct.pack(">I", 9) + bytes(9), "BAD_REQUEST"),
            (hello + struct.pack(">I", 1 << 31) + bytes(10), "TOO_LARGE"), (hello + struct.pack(">I", 1048577) + bytes(10), "TOO_LARGE"),
            (status, "BAD_REQUEST"), (wire.request("hello", 1, {**api.hello_record(False), "min_version": 50, "max_version": 60}), "UNSUPPORTED"),
            (wire.request("hello", 1, {**api.hello_record(False), "min_version": 3, "max_version": 1}), "UNSUPPORTED")]:
        with socket.create_connection(("127.0.0.1", daemon.rpc_port)) as s:
            s.settimeout(20)
            s.sendall(data)
            got, reader = [], wire.Reader()
            while more := s.recv(65536):
                got += [wire.answer(kind, payload) for kind, _, _, payload in reader.feed(more)]
        assert got[-1][0] == "error" and got[-1][1]["name"] == name, (data[:40], got)
    line = Line(daemon)
    kinds = {name: kind for kind, name in codec.messages()[0].items()}
    for kind in sorted({*range(0, 256, 7), *kinds.values()} - {kinds[n] for n in REQUESTS}):
        line.refused(kind, b"", ("UNSUPPORTED", "BAD_REQUEST"))
    line.sock.sendall(wire.frame(kinds["status"], 5, b"", version=9))
    assert line.answer()[1]["name"] == "BAD_REQUEST"


def test_mirror_of_wrong_types(daemon, table, samples, unmoved):
    """Every member of every message as every other JSON type, missing, unknown: the refusal names the member."""
    for name, record in samples.items():
        good = plain(record)
        for key, value in good.items():
            for bad in (None, 1, -1, 1.5, True, "x", [], {}, [[]], [None], 1 << 70, "\0", "\ud7ff" * 3):
                if type(bad) is type(value) and bad in ([], {}, "x", 1):
                    continue
                body = json.dumps({**good, key: bad}).encode()
                status, _, got = request(daemon, "POST", "/frazil/v1/" + name, body)
                told = json.loads(got)
                assert status in (400, 403, 404, 409), (name, key, bad, told)
                assert told["effect"] == "CLEAN", told
                assert status != 400 or told["field"] or "JSON" in told["message"], (name, key, bad, told)
        status, _, got = request(daemon, "POST", "/frazil/v1/" + name, json.dumps({**good, "none": 1}).encode())
        assert status == 400 and "none" in json.loads(got)["field"] + json.loads(got)["message"], got
    for name in ("hello", "none", "error", "outcome", "begin/x", "", "%00", "%zz"):
        got = request(daemon, "POST", "/frazil/v1/" + name, b"{}")
        assert got[0] in (400, 404), (name, got)
    modelled(request(daemon, "GET", "/frazil/v1/begin"), (405,))


# ---- configuration

@pytest.mark.parametrize("key,value", [
    ("rest.listen", ""), ("rest.listen", "x"), ("rest.listen", "127.0.0.1"), ("rest.listen", "127.0.0.1:99999"), ("rest.listen", "127.0.0.1:-1"),
    ("rest.listen", "0.0.0.0:0"), ("rest.max-connections", "0"), ("rest.max-connections", "-1"), ("rest.max-connections", "2147483648000"),
    ("rest.max-body-bytes", "10k"), ("rest.max-body-bytes", ""), ("rest.max-body-bytes", "abc"), ("rest.max-body-bytes", "9223372036854775808"),
    ("rest.request-timeout-ms", "0"), ("rest.idle-timeout-ms", "0"), ("rpc.max-frame-bytes", "0"), ("rpc.max-frame-bytes", "1e6"),
    ("rpc.socket", "/" + "x" * 200), ("pg.connections", "0"), ("pg.connections", "65"), ("pg.allow-unsafe", "maybe"), ("pg.conninfo", "no such=thing"),
    ("warehouse.name", ""), ("warehouse.location", ""), ("warehouse.location", "s3://x"), ("warehouse.location", "relative/x"),
    ("warehouse.location", "file:///a/../b"), ("warehouse.extra", "x"), ("warehouse.extra", "a=b,a=c"), ("fs.roots", "x"), ("commit.batch-max-txns", "0"),
    ("commit.queue-max", "0"), ("commit.window-ms", "-1"), ("txn.max-open", "0"), ("txn.max-bytes", "0"), ("txn.ttl-default-ms", "0"),
    ("txn.ttl-max-ms", "99999999999999"), ("cleaner.interval-ms", "0"), ("cleaner.grace-ms", "-1"), ("jobs.threads", "0"), ("jobs.threads", "100000"),
    ("log.level", "loud"), ("rest.verify-snapshots", "perhaps"), ("none.key", "1"), ("rest.none", "1"), ("", "1")])
def test_configuration(make_daemon, key, value):
    """Case BC-232: nonsense ends the start at once with a message that names the key, never a silent default."""
    d = make_daemon("dbname=none host=/none", start=False)
    began = time.monotonic()
    ended = subprocess.run(d.command() + ["--set", "%s=%s" % (key, value)], env=d.environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    assert ended.returncode > 0 and time.monotonic() - began < 5, ended
    assert (key or "key").encode() in ended.stdout, ended.stdout


@pytest.mark.parametrize("text", [
    b"[rest]\nlisten", b"[rest\nlisten=x", b"listen=x", b"[]\na=b", b"[rest]\n=x", b"[rest]\nmax-connections=1\nmax-connections=2", b"\xff\xfe\n",
    b"[rest]\nlisten=\x00\n", b"[none]\na=b\n", b"[rest]\nlisten = 127.0.0.1:0\n[rest]\nmax-body-bytes = x\n", b"[" + b"a" * 100000, b"[rest]\n" + b"a" * 1000000 + b"=1\n"], ids=range(12))
def test_configuration_file(make_daemon, tmp_path, text):
    (tmp_path / "f.ini").write_bytes(text)
    d = make_daemon("dbname=none host=/none", start=False)
    ended = subprocess.run([binary(), "--config", str(tmp_path / "f.ini")], env=d.environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
    assert ended.returncode == 2 and ended.stdout.strip(), ended
    d.judge()
