"""HTTP as bytes on a socket: framing, limits, refusals. Each answer is JSON and each connection ends or goes on in step."""

import concurrent.futures
import gzip
import json
import signal
import socket
import threading
import time
import zlib

import pytest

from support.catalog import Space, set_properties
from support.wire import H, JSON, LAST, Wire, ask, post

@pytest.fixture(scope="module")
def settings():
    return {"rest.max-body-bytes": 4194304}


@pytest.fixture(scope="module")
def ns(daemon):
    return Space(daemon, "http")


SMUGGLED = b"DELETE /v1/namespaces/prey HTTP/1.1\r\n" + H + b"\r\n"


@pytest.mark.parametrize("headers,body", [
    (b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}"), (b"Content-Length: 2\r\nContent-Length: 50\r\n", b"{}"),
    (b"Content-Length: 50\r\nContent-Length: 2\r\n", b"{}"), (b"Content-Length: 2, 2\r\n", b"{}"), (b"Content-Length: +2\r\n", b"{}"),
    (b"Content-Length: -2\r\n", b"{}"), (b"Content-Length: 0x2\r\n", b"{}"), (b"Content-Length: 2 \t 2\r\n", b"{}"), (b"Content-Length: 2;\r\n", b"{}"),
    (b"Content-Length:\r\n", b"{}"), (b"Content-Length: two\r\n", b"{}"), (b"Content-Length : 2\r\n", b"{}"), (b" Content-Length: 2\r\n", b"{}"),
    (b"Content-Length: 18446744073709551618\r\n", b"{}"), (b"Content-Length: 9223372036854775808\r\n", b"{}"),
    (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n"),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n"),
    (b"Transfer-Encoding: identity\r\n", b""), (b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
    (b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"), (b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n"),
    (b"Transfer-Encoding:\r\n chunked\r\n", b"0\r\n\r\n"), (b"X: y\r\n\tContent-Length: 2\r\n", b""), (b"Transfer-Encoding: \"chunked\"\r\n", b"0\r\n\r\n"),
    (b"Host: other\r\n", b""), (b"Content\x00-Length: 2\r\n", b"{}"), (b"X: a\x00b\r\n", b""), (b"Content-Length: 2\x00\r\nX: y\r\n", b"{}"),
    (b"Content_Length\t: 2\r\n", b"{}"), (b"\r: x\r\n", b""), (b"X: y\rContent-Length: 2\r\n", b"{}"), (b"=bad= x\r\n", b"")])
def test_heads_that_two_servers_read_differently(daemon, headers, body):
    """What stands behind is never taken for a request, whatever the head is taken for."""
    daemon.rest.post("/v1/namespaces", {"namespace": ["prey"]})
    with Wire(daemon) as w:
        w.send(b"POST /v1/namespaces/prey/properties HTTP/1.1\r\n" + H + headers + b"\r\n" + body + SMUGGLED)
        status, _, _ = w.answer()
        if status != 400:
            assert status in (413, 501), (status, headers)
        w.over()
    assert daemon.rest.head("/v1/namespaces/prey").status == 204


@pytest.mark.parametrize("body,status", [
    (b"2\r\n{}\r\n0\r\n\r\n", 400), (b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", 400), (b"2;a=b;c=\"d\"\r\n{}\r\n0;e\r\n\r\n", 400), (b"0002\r\n{}\r\n0\r\nX: y\r\nZ: w\r\n\r\n", 400),
    (b"zz\r\n{}\r\n0\r\n\r\n", 0), (b"-2\r\n{}\r\n0\r\n\r\n", 0), (b"+2\r\n{}\r\n0\r\n\r\n", 0), (b"0x2\r\n{}\r\n0\r\n\r\n", 0), (b"2\r\n{}0\r\n\r\n", 0),
    (b"2\r\n{}xx0\r\n\r\n", 0), (b"\r\n", 0), (b";a\r\n", 0), (b"ffffffffffffffff\r\n{}", 0), (b"10000000000000002\r\n{}\r\n0\r\n\r\n", 0),
    (b"7fffffffffffffff\r\n{}", 0), (b"fffffff\r\n{}", 0), (b"1" * 5000 + b"\r\n", 0), (b"2;" + b"a" * 4000 + b"\r\n{}\r\n0\r\n\r\n", 400),
    (b" 2\r\n{}\r\n0\r\n\r\n", 0), (b"2 \r\n{}\r\n0\r\n\r\n", 0), (b"2\n{}\n0\n\n", 0)])
def test_chunks(daemon, body, status):
    """A body in chunks: the JSON `{}` is refused for what it says, what is no chunk is refused as such."""
    with Wire(daemon) as w:
        w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + LAST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        w.sock.shutdown(socket.SHUT_WR)
        got = w.answer()
        if status == 400:
            assert got[0] == 400 and "namespace" in json.loads(got[2])["error"]["message"]
        else:
            assert got is None or 400 <= got[0] < 500, got


def test_a_chunked_creation(daemon):
    for n, cut in enumerate((1, 7, 100)):
        body = json.dumps({"namespace": ["chunked%d" % n], "properties": {"k": "ä" * 50}}).encode()
        chunks = b"".join(b"%X\r\n%s\r\n" % (len(body[i:i + cut]), body[i:i + cut]) for i in range(0, len(body), cut)) + b"0\r\n\r\n"
        with Wire(daemon) as w:
            for i in range(0, len(chunks), 97):
                w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks[:97] if i == 0 else chunks[i:i + 97])
            assert w.answer()[0] == 200
            assert w.send(b"GET /v1/namespaces/chunked%d HTTP/1.1\r\n" % n + H + b"\r\n").answer()[0] == 200


def test_many_requests_at_once(daemon, ns):
    """Requests sent without waiting are answered in their order, HEAD without a body and refusals between them."""
    if not ns.names():
        ns.create("t")
    rounds = []
    for n in range(50):
        rounds += [(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n", 200, False), (b"HEAD " + ns.table("t").encode() + b" HTTP/1.1\r\n" + H + b"\r\n", 204, True),
                   (b"HEAD /v1/namespaces/none HTTP/1.1\r\n" + H + b"\r\n", 404, True), (b"GET /v1/none HTTP/1.1\r\n" + H + b"\r\n", 404, False),
                   (b"HEAD /v1/config HTTP/1.1\r\n" + H + b"\r\n", 200, True), (b"PUT /v1/config HTTP/1.1\r\n" + H + b"Content-Length: 3\r\n\r\nabc", 405, False),
                   (post(body=b"{}"), 400, False), (b"HEAD /v1/nothing HTTP/1.1\r\n" + H + b"\r\n", 404, True),
                   (post(b"/v1/namespaces/http/properties", JSON, json.dumps({"updates": {"n": str(n)}}).encode()), 200, False)]
    with Wire(daemon, 60) as w:
        writer = threading.Thread(target=w.send, args=(b"".join(r[0] for r in rounds),))
        writer.start()
        for request, status, head in rounds:
            got = w.answer(head)
            assert got and got[0] == status, (request, got)
        writer.join()
        w.sock.shutdown(socket.SHUT_WR)
        w.over()
    assert daemon.rest.get(ns.at).json["properties"]["n"] == "49"


def test_old_http(daemon, ns):
    """HTTP/1.0: no Host needed, one answer a connection unless asked, no chunks; its Expect is none."""
    with Wire(daemon) as w:
        assert w.send(b"GET /v1/config HTTP/1.0\r\n\r\n").answer()[0] == 200
        w.over()
    with Wire(daemon) as w:
        for _ in range(2):
            assert w.send(b"GET /v1/config HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").answer()[0] == 200
    with Wire(daemon) as w:
        w.send(b"POST /v1/namespaces HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}")
        assert w.answer()[0] == 400
        w.over()
    for bad, statuses in ((b"GET /v1/config\r\n\r\n", (400, 505)), (b"GET /v1/config HTTP/0.9\r\n\r\n", (400, 505)), (b"GET /v1/config HTTP/2.0\r\n" + H + b"\r\n", (505,)),
                          (b"GET /v1/config HTTP/1.2\r\n" + H + b"\r\n", (200, 505)), (b"GET /v1/config HTTPS/1.1\r\n" + H + b"\r\n", (400, 505)),
                          (b"GET /v1/config http/1.1\r\n" + H + b"\r\n", (400, 505)), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, 400)),
                          (b"GET  /v1/config HTTP/1.1\r\n" + H + b"\r\n", (200, 400, 505)), (b"GET /v1/config HTTP/1.1 x\r\n" + H + b"\r\n", (400, 505)),
                          (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", (400, 505)), (b" GET /v1/config HTTP/1.1\r\n" + H + b"\r\n", (400, 505)),
                          (b"GET /v1/con\tfig HTTP/1.1\r\n" + H + b"\r\n", (400, 404)), (b"G\x00T /v1/config HTTP/1.1\r\n" + H + b"\r\n", (400, 405)),
                          (b"GET /v1/con\x00fig HTTP/1.1\r\n" + H + b"\r\n", (400,)), (b"\r\n" * 40000 + b"GET", (400, 414, 431))):
        with Wire(daemon) as w:
            w.send(bad)
            try:
                w.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = w.answer()
            assert got is None or got[0] in statuses, (bad[:60], got)
            assert got is None or w.over()
    # One empty line before a request is common after a body.
    assert ask(daemon, b"\r\nGET /v1/config HTTP/1.1\r\n" + H + b"\r\n")[0] == 200


def test_expectations(daemon):
    """case BC-220: 100 for a body that is wanted, the refusal at once for one that is not, 417 for other expectations."""
    with Wire(daemon) as w:
        w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Content-Length: 2\r\nExpect: 100-Continue\r\n\r\n")
        began = time.monotonic()
        assert w.answer()[0] == 100 and time.monotonic() - began < 1
        assert w.send(b"{}").answer()[0] == 400
        # The connection goes on in step.
        assert w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n").answer()[0] == 200
    for headers, status in ((b"Content-Length: 9999999999\r\n", 413), (b"Content-Length: 2\r\nContent-Length: 2\r\n", 400),
                            (b"Content-Encoding: gzip\r\nContent-Length: 20\r\n", 415)):
        with Wire(daemon) as w:
            assert w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + headers + b"Expect: 100-continue\r\n\r\n").answer()[0] == status
            w.over()
    for expect in (b"200-ok", b"100-continue, x", b"", b"x" * 500):
        with Wire(daemon) as w:
            w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Content-Length: 2\r\nExpect: " + expect + b"\r\n\r\n{}")
            got = w.answer()
            assert got[0] == (400 if expect == b"" else 417), (expect, got)


def test_white_space_behind_a_value(daemon):
    """RFC 9110, 5.5: it is no part of the value; only what frames a body is taken without."""
    key = b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    for header in (b"Expect: 100-continue \t", b"Content-Encoding: identity ", b"Content-Encoding:  ", b"Idempotency-Key: " + key + b" \t "):
        named = json.dumps({"namespace": ["space%d" % len(header)]}).encode()
        got = ask(daemon, post(headers=JSON + header + b"\r\n", body=named))
        assert got[0] == 200, (header, got)
    for header, body in ((b"Content-Length: 2 ", b"{}"), (b"Transfer-Encoding: chunked ", b"2\r\n{}\r\n0\r\n\r\n")):
        assert ask(daemon, b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + header + b"\r\n\r\n" + body)[0] == 400


def test_media_types(daemon):
    """JSON is taken, with any parameters and in any case; another type that is told is 415, before it is read."""
    body = json.dumps({"namespace": ["http", "media"]}).encode()
    n = 0
    for kind in (b"application/json", b"Application/JSON; charset=utf-8", b"application/json;charset=ISO-8859-1", b"application/vnd.x+json", b"", None):
        n += 1
        named = json.dumps({"namespace": ["media%d" % n], "properties": {"größe": "名前 \U0001f600"}}, ensure_ascii=False).encode()
        got = ask(daemon, post(headers=b"" if kind is None else b"Content-Type: " + kind + b"\r\n", body=named))
        assert got[0] == 200, (kind, got)
        # case BC-230: whatever the charset says, JSON is UTF-8.
        assert daemon.rest.get("/v1/namespaces/media%d" % n).json["properties"] == {"größe": "名前 \U0001f600"}
    for kind in (b"text/plain", b"application/x-www-form-urlencoded", b"text/html", b"application/octet-stream", b"multipart/form-data; boundary=x",
                 b"application/jsonx", b"json", b"application/xml", b"*/*", b"application/json, text/plain", b"text/json+x"):
        got = ask(daemon, post(headers=b"Content-Type: " + kind + b"\r\n", body=body))
        assert got[0] == 415 and "Content-Type" in json.loads(got[2])["error"]["message"], (kind, got)
        got = ask(daemon, post(b"/frazil/v1/status", headers=b"Content-Type: " + kind + b"\r\n", body=b"{}"))
        assert got[0] == 415, (kind, got)
    # No body, no type.
    assert ask(daemon, b"DELETE /v1/namespaces/media1 HTTP/1.1\r\n" + H + b"Content-Type: text/plain\r\n\r\n")[0] == 204


@pytest.mark.parametrize("coding", [b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"compress", b"gzip, gzip", b"identity, gzip", b"nonsense"])
def test_packed_requests(daemon, coding):
    """No client packs its requests; one that does is told so, and a small body cannot become a large one here. case BC-225"""
    body = json.dumps({"namespace": ["packed"]}).encode()
    packed = zlib.compress(body) if coding == b"deflate" else gzip.compress(body)
    for data in (packed, gzip.compress(b" " * (64 << 20))):
        got = ask(daemon, post(headers=JSON + b"Content-Encoding: " + coding + b"\r\n", body=data))
        assert got[0] == 415 and "Content-Encoding" in json.loads(got[2])["error"]["message"], got
    assert daemon.rest.head("/v1/namespaces/packed").status == 404
    for plain in (b"identity", b"Identity", b""):
        assert ask(daemon, post(headers=JSON + b"Content-Encoding: " + plain + b"\r\n", body=b"{}"))[0] == 400


def test_sizes(daemon, ns):
    """case BC-225: to the byte, with a length and in chunks; told before it is read; and the next request is served."""
    limit = 4194304

    def body(n):
        text = json.dumps({"namespace": ["sized"], "properties": {"k": ""}}).encode()
        return text[:-1] + b" " * (n - len(text)) + b"}"
    assert ask(daemon, post(headers=JSON, body=body(limit)))[0] == 200
    daemon.rest.want(204, "DELETE", "/v1/namespaces/sized")
    assert ask(daemon, post(headers=JSON, body=body(limit + 1)))[0] == 413
    for n, status in ((limit, 200), (limit + 1, 413)):
        text = body(n)
        with Wire(daemon) as w:
            w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Transfer-Encoding: chunked\r\n\r\n" +
                   b"".join(b"%x\r\n%s\r\n" % (len(text[i:i + 65536]), text[i:i + 65536]) for i in range(0, n, 65536)) + b"0\r\n\r\n")
            assert w.answer()[0] == status
            assert w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n").answer()[0] == 200
    with Wire(daemon) as w:  # nothing of it is waited for
        assert w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + b"Content-Length: %d\r\n\r\n" % (limit + 1)).answer()[0] == 413
        w.over()
    many = {"k%05d" % i: "v" * 30 for i in range(50000)}
    ns.create("large")
    assert ns.commit("large", set_properties(**many)).status == 200
    for head, status in ((b"X: " + b"y" * 20000 + b"\r\n", 200), (b"X: " + b"y" * 40000 + b"\r\n", 431), (b"a: b\r\n" * 200, 200), (b"a: b\r\n" * 10000, 431),
                         (b"a" * 40000 + b": b\r\n", 431)):
        assert ask(daemon, b"GET /v1/config HTTP/1.1\r\n" + H + head + b"\r\n")[0] == status, head[:10]
    for n, status in ((10000, 404), (40000, 414)):
        assert ask(daemon, b"GET /v1/" + b"n" * n + b" HTTP/1.1\r\n" + H + b"\r\n")[0] == status
    assert ask(daemon, b"G" * 40000 + b" / HTTP/1.1\r\n" + H + b"\r\n")[0] in (400, 414, 431)


def test_methods_and_routes(daemon, ns):
    """405 tells what is allowed, a route that is none is 404, and both are JSON; HEAD of them has no body."""
    table = ns.at + "/tables"
    for method, target, allow in (("PUT", "/v1/namespaces", {"GET", "POST"}), ("OPTIONS", "/v1/config", {"GET"}), ("PATCH", table, {"GET", "POST"}),
                                  ("GET", "/v1/tables/rename", {"POST"}), ("TRACE", table + "/x", {"GET", "HEAD", "POST", "DELETE"}),
                                  ("DELETE", "/v1/transactions/commit", {"POST"}), ("BREW", "/v1/config", {"GET"}), ("get", "/v1/config", {"GET"})):
        status, headers, _ = ask(daemon, b"%s %s HTTP/1.1\r\n" % (method.encode(), target.encode()) + H + LAST + b"\r\n")
        assert status == 405 and allow <= set(headers[b"allow"].decode().split(", ")), (method, target, headers)
    for target in ("/", "/v1", "/v1/", "/v1/x", "/v1/config/", "/v1/config/x", "//v1/config", "/V1/config", "/v1/Config", "/v1/namespaces/a/b", "/v1/a/b/c/d/e/f/g/h",
                   "/v3/config", "/v1/namespaces//tables", "/favicon.ico", "/v1/%2e%2e/config", "/v1/..", "/healthz", "/metrics", "/admin/tables"):
        status, headers, _ = ask(daemon, b"GET %s HTTP/1.1\r\n" % target.encode() + H + LAST + b"\r\n")
        assert status == 404, (target, status)
        with Wire(daemon) as w:
            got = w.send(b"HEAD %s HTTP/1.1\r\n" % target.encode() + H + LAST + b"\r\n").answer(head=True)
            assert got[0] == 404 and w.over()
    for accept in (b"text/html", b"*/*;q=0", b"application/xml", b"", b"\xff"):
        status, headers, _ = ask(daemon, b"GET /v1/config HTTP/1.1\r\n" + H + b"Accept: " + accept + b"\r\n\r\n")
        assert status == 200 and headers[b"content-type"] == b"application/json"
    for target in (b"http://h/v1/config", b"https://other:1/v1/config", b"HTTP://h/v1/config"):
        assert ask(daemon, b"GET " + target + b" HTTP/1.1\r\n" + H + b"\r\n")[0] == 200, target


def test_bodies_where_none_belongs(daemon):
    """GET, HEAD and DELETE may bring one: it is read and the connection stays in step."""
    for method in (b"GET", b"HEAD", b"DELETE"):
        with Wire(daemon) as w:
            w.send(method + b" /v1/namespaces/nobody HTTP/1.1\r\n" + H + b"Content-Length: 46\r\n\r\n" + b"GET /v1/config HTTP/1.1\r\nHost: h\r\n\r\n          ")
            assert w.answer(head=method == b"HEAD")[0] == 404
            assert w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n").answer()[0] == 200


@pytest.mark.parametrize("data,answered", [
    (b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n", True), (b"GET /v1/config HTTP/1.1\r\n" + H, False), (b"GET /v1/co", False), (b"", False),
    (b"POST /v1/namespaces HTTP/1.1\r\n" + H + b"Content-Length: 9\r\n\r\n{}", False), (post(body=b"{}"), True),
    (b"POST /v1/namespaces HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}", False)])
def test_peers_that_end_their_half(daemon, data, answered):
    """Whoever sends no more gets what it asked for, and its connection is not kept for more than a moment."""
    for wait in (0, 1.5):
        with Wire(daemon) as w:
            time.sleep(wait)
            began = time.monotonic()
            w.send(data)
            w.sock.shutdown(socket.SHUT_WR)
            got = w.answer()
            assert (got is not None) == answered, got
            w.over()
            assert time.monotonic() - began < 10


@pytest.mark.parametrize("text", [
    '{"namespace":["dup"],"namespace":["dup2"]}', '{"namespace":["dup"],"properties":{"k":"a","k":"b"}}', '{"namespace":["dup"],"properties":{"k":"a","\\u006b":"b"}}',
    '{"namespace":["dup"],"zz":' + "[" * 100 + "]" * 100 + "}", '{"namespace":["dup"],"zz":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}",
    '{"namespace":["dup"],"zz":1e400}', '{"namespace":["dup"],"zz":-}', '{"namespace":["dup"],"zz":.5}', '{"namespace":["dup"],"zz":1.}', '{"namespace":["du\\u0000p"]}',
    '{"namespace":["dup"]} {}', '{"namespace":["dup"],}', "{'namespace':['dup']}", '{"namespace":["dup"]/**/}', '\ufeff{"namespace":["dup"]}', '{"namespace":["\\ud83d"]}'])
def test_json_that_is_none(daemon, text):
    got = ask(daemon, post(headers=JSON, body=text.encode()))
    assert got[0] == 400, got
    assert daemon.rest.head("/v1/namespaces/dup").status == 404 and daemon.rest.head("/v1/namespaces/dup2").status == 404


def test_numbers_that_say_the_same(daemon, ns):
    """A token's or an id's digits are exact; sizes that no number holds are refused."""
    for text in ("1e2", "5.0", "0x10", "1_000", "٣", "", " 5", "+5", "5 "):
        got = daemon.rest.raw("GET", ns.at + "/tables?pageToken=&pageSize=" + "".join("%%%02X" % b for b in text.encode()))
        assert got.status == 400, (text, got)


def test_overload_is_told_before_work(make_daemon, postgres):
    """A commit route says 429 and when to come again, never 503; the rest says 503."""
    d = make_daemon(settings={"rest.max-body-bytes": 65536})
    ns = Space(d, "busy")
    ns.create("t")
    body = json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v" * 60000}}]}).encode()
    held = []
    # Eight of the largest bodies may be in memory: these are all but complete.
    for _ in range(8):
        w = Wire(d)
        w.send(b"POST " + ns.table("t").encode() + b" HTTP/1.1\r\n" + H + JSON + b"Content-Length: 65536\r\n\r\n" + b" " * 65500)
        held.append(w)
    time.sleep(2)  # they have been read by now
    got = ask(d, post(ns.table("t").encode(), JSON, body))
    assert got[0] == 429 and got[1][b"retry-after"] == b"1", got
    assert json.loads(got[2])["error"]["type"] == "TooManyRequestsException"
    # What needs no memory is served, and all of it once the others have gone.
    assert ask(d, b"GET " + ns.table("t").encode() + b" HTTP/1.1\r\n" + H + b"\r\n")[0] == 200
    for w in held:
        w.sock.close()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        got = ask(d, post(ns.table("t").encode(), JSON, body))
        if got[0] == 200:
            break
        time.sleep(0.05)
    assert got[0] == 200, got


def test_connections_at_the_limit(make_daemon):
    """Beyond the limit they wait, are served when others leave, and nothing is lost meanwhile."""
    d = make_daemon(settings={"rest.max-connections": 8})
    held = [Wire(d) for _ in range(8)]
    for w in held:
        assert w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n").answer()[0] == 200
    late = [Wire(d) for _ in range(8)]
    for w in late:
        w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n")
    for w in held:
        assert w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n").answer()[0] == 200
        w.sock.close()
    for w in late:
        assert w.answer()[0] == 200
        w.sock.close()


def test_slow_readers_get_all_of_it(make_daemon):
    """Who reads slowly but steadily gets the whole of a large answer, longer than a request may take."""
    d = make_daemon(settings={"rest.request-timeout-ms": 3000})
    ns = Space(d, "slow")
    ns.create("t", properties={"k%05d" % i: "v" * 100 for i in range(30000)})
    want = d.rest.get(ns.table("t")).body
    assert len(want) > 3 << 20
    get = b"GET " + ns.table("t").encode() + b" HTTP/1.1\r\n" + H + b"\r\n"

    def read(pause, part):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            s.connect(("127.0.0.1", d.rest_port))
            s.settimeout(60)
            s.sendall(get)
            got = b""
            while b"\r\n\r\n" not in got or len(got.split(b"\r\n\r\n", 1)[1]) < len(want):
                try:
                    more = s.recv(part)
                except ConnectionResetError:
                    break
                if not more:
                    break
                got += more
                time.sleep(pause)
            return got.split(b"\r\n\r\n", 1)[1]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        steady = [pool.submit(read, 0.1, 131072) for _ in range(3)]
        fast = [d.rest.get(ns.table("t")).body == want for _ in range(3)]
        assert all(fast) and all(f.result() == want for f in steady)


def test_keep_alive_over_a_restart(make_daemon):
    """case BC-226: clients that keep their connections see answers or ends between answers, never half of one."""
    d = make_daemon()
    ns = Space(d, "roll")
    ns.create("t")
    stop, acknowledged, faults = threading.Event(), [], []

    def reader():
        w, n = None, 0
        while not stop.is_set():
            try:
                w = w or Wire(d)
            except OSError:
                time.sleep(0.01)
                continue
            got = w.send(b"GET " + ns.table("t").encode() + b" HTTP/1.1\r\n" + H + b"\r\n").answer()
            if got is None:  # closed before the request was taken
                w = None
                continue
            if got[0] not in (200, 503):
                faults.append(got)
            n += 1
            if got[1].get(b"connection", b"").lower() == b"close":
                w = None
        return n

    def writer(k):
        n = 0
        while not stop.is_set():
            n += 1
            body = json.dumps({"requirements": [], "updates": [set_properties(**{"w%d-%d" % (k, n): "v"})]}).encode()
            try:
                got = ask(d, post(ns.table("t").encode(), JSON + LAST, body))
            except OSError:
                time.sleep(0.01)
                continue
            if got is None:
                continue
            if got[0] == 200:
                acknowledged.append("w%d-%d" % (k, n))
            elif got[0] not in (409, 429, 500):
                faults.append(got)
        return n
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(reader) for _ in range(4)] + [pool.submit(writer, k) for k in range(2)]
        try:
            for _ in range(3):
                time.sleep(0.5)
                d.restart()
            time.sleep(0.5)
        finally:
            stop.set()
        assert min(t.result() for t in tasks) > 10
    assert not faults, faults[:3]
    props = ns.meta("t")["properties"]
    assert len(acknowledged) > 10 and all(k in props for k in acknowledged)


def test_a_second_signal_ends_it(make_daemon):
    """case BC-226: who asks twice does not wait for the slow."""
    d = make_daemon()
    with Wire(d) as w:
        w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + b"Content-Length: 5\r\n\r\n{")
        d.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        began = time.monotonic()
        d.process.send_signal(signal.SIGTERM)
        d.wait(20)
        assert time.monotonic() - began < 5
