"""Clients of the REST port with secrets: tokens, the door, and what real clients do with a credential."""

import base64
import os
import signal
import time
import urllib.parse

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import OAuthError, UnauthorizedError

from frazil import txn
from support.lab import plain
from support.openapi import VALIDATOR
from support.rest import Rest
from support.wire import H, JSON, Wire

SECRET = "a long secret & more = 1"
CLIENTS = "# clients\nalice:%s\nbob:0123456789abcdef\n" % SECRET
TYPE = "urn:ietf:params:oauth:token-type:access_token"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    path = tmp_path_factory.mktemp("auth") / "clients"
    write(path, CLIENTS)
    return path


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


@pytest.fixture(scope="module")
def settings(clients):
    return {"auth.clients-file": str(clients), "auth.token-lifetime-ms": 60000}


@pytest.fixture
def rest(daemon):
    return Rest(daemon.uri)


def ask(rest, headers=None, **form):
    got = rest.raw("POST", "/v1/oauth/tokens", urllib.parse.urlencode(form).encode(),
                   {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})
    assert got.headers["Content-Type"] == "application/json" and got.headers["Cache-Control"] == "no-store"
    VALIDATOR("OAuthTokenResponse" if got.status == 200 else "OAuthError").validate(got.json)
    return got


def client(rest, who="alice", secret=SECRET, **more):
    return ask(rest, grant_type="client_credentials", client_id=who, client_secret=secret, **more)


def bearer(token):
    return {"Authorization": "Bearer " + token}


def basic(who, secret):
    code = urllib.parse.quote(who, safe="") + ":" + urllib.parse.quote(secret, safe="")
    return {"Authorization": "Basic " + base64.b64encode(code.encode()).decode()}


def closed(got):
    assert got.status == 401 and got.error["type"] == "NotAuthorizedException", got
    assert got.headers["WWW-Authenticate"].startswith("Bearer")


def test_token_opens(rest):
    got = client(rest, scope="catalog").json
    assert got["token_type"] == "bearer" and got["expires_in"] == 60 and got["scope"] == "catalog"
    conf = rest.call("GET", "/v1/config", headers=bearer(got["access_token"]))
    assert conf.status == 200 and "POST /v1/oauth/tokens" in conf.json["endpoints"]
    assert rest.call("GET", "/v1/namespaces", headers=bearer(got["access_token"])).status == 200
    again = ask(rest, basic("alice", SECRET), grant_type="client_credentials").json
    assert rest.call("GET", "/v1/namespaces", headers=bearer(again["access_token"])).status == 200


def test_door(rest, daemon):
    for headers in ({}, {"Authorization": "Bearer"}, bearer("None"), bearer("fz1.616c696365.9999999999.00"),
                    basic("alice", SECRET)):
        for method, path in (("GET", "/v1/config"), ("GET", "/v1/namespaces"), ("POST", "/v1/namespaces"),
                             ("DELETE", "/v1/namespaces/x"), ("POST", "/v1/transactions/commit"),
                             ("POST", "/frazil/v1/begin"), ("GET", "/v1/namespaces/x/tables/t/credentials")):
            closed(rest.call(method, path, {} if method == "POST" else None, headers=headers))
    # The operator's port has a door of its own: its address.
    assert daemon.admin.get("/healthz").status == 200


def metric(daemon, name):
    return next(float(line.split()[1]) for line in daemon.admin.get("/metrics").body.decode().splitlines() if line.startswith(name + " "))


def shown(token):
    return b"Authorization: Bearer " + token.encode() + b"\r\n"


@pytest.mark.parametrize("framing", [b"Content-Length: 4000000\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"])
def test_door_before_the_body(daemon, rest, framing, expect):
    """All that a head tells is answered when it is here: the final status in place of 100, and nothing is waited for."""
    good = shown(client(rest).json["access_token"])
    for proof, bad in ((b"", False), (b"Authorization: Basic YTpi\r\n", False), (b"Authorization: Bearer\r\n", False), (shown("None"), True)):
        for target in (b"/v1/namespaces", b"/frazil/v1/begin", b"/v1/transactions/commit"):
            with Wire(daemon) as w:
                status, headers, _ = w.send(b"POST " + target + b" HTTP/1.1\r\n" + H + JSON + proof + framing + expect + b"\r\n").answer()
                assert status == 401 and headers[b"connection"] == b"close", (proof, status, headers)
                # RFC 6750, 3: a reason for who has shown a token, none for who has not.
                assert headers[b"www-authenticate"] == b'Bearer realm="frazil"' + (b', error="invalid_token"' if bad else b""), headers
                w.over()
    for head, want in ((b"POST /v1/nothing HTTP/1.1\r\n" + H + JSON, 404), (b"PUT /v1/namespaces HTTP/1.1\r\n" + H + JSON + good, 405),
                       (b"POST /v1/namespaces HTTP/1.1\r\n" + H + good + b"Content-Type: text/plain\r\n", 415),
                       (b"POST /v1/namespaces/a%zz HTTP/1.1\r\n" + H + JSON + good, 400),
                       (b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + good * 2, 400)):
        with Wire(daemon) as w:
            assert w.send(head + framing + expect + b"\r\n").answer()[0] == want, head
            w.over()
    if expect:  # who may come in is asked for the body
        with Wire(daemon) as w:
            assert w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + good + framing + expect + b"\r\n").answer()[0] == 100


def test_door_in_a_pipeline(daemon, rest):
    """A refusal leaves the connection in step where no body or a short one comes; else nothing behind it is served."""
    good = shown(client(rest).json["access_token"])
    with Wire(daemon) as w:
        w.send(b"GET /v1/config HTTP/1.1\r\n" + H + b"\r\n" + b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Content-Length: 0\r\n\r\n" +
               b"GET /v1/config HTTP/1.1\r\n" + H + good + b"\r\n")
        assert [w.answer()[0] for _ in range(3)] == [401, 401, 200]
        body = b'{"namespace":["piped"]}'
        w.send(b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + good + b"Content-Length: %d\r\n\r\n" % len(body) + body +
               b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body +
               b"GET /v1/namespaces/piped HTTP/1.1\r\n" + H + good + b"\r\n" +
               b"POST /v1/namespaces HTTP/1.1\r\n" + H + JSON + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
               b"DELETE /v1/namespaces/piped HTTP/1.1\r\n" + H + good + b"\r\n")
        assert [w.answer()[0] for _ in range(4)] == [200, 401, 200, 401]
        w.over()
    assert rest.call("DELETE", "/v1/namespaces/piped", headers=bearer(client(rest).json["access_token"])).status == 204


def test_nobody_fills_the_memory(make_daemon, clients):
    """Eight of the largest bodies may be in memory: none of them is a stranger's, and of forms for tokens there is one at most."""
    d = make_daemon(settings={"auth.clients-file": str(clients), "rest.max-body-bytes": 200000})
    rest = Rest(d.uri)
    token = client(rest).json["access_token"]
    held = []
    for target, kind, n in ((b"/v1/namespaces", JSON, 200000), (b"/v1/oauth/tokens", b"Content-Type: application/x-www-form-urlencoded\r\n", 65536)):
        for _ in range(40):
            w = Wire(d)
            held.append(w.send(b"POST " + target + b" HTTP/1.1\r\n" + H + kind + b"Content-Length: %d\r\n\r\n" % n + b" " * (n - 50)))
    for w in held[:40]:
        assert w.answer()[0] == 401
    deadline = time.monotonic() + 20
    while metric(d, "frazil_rest_body_bytes") < 190000:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert metric(d, "frazil_rest_body_bytes") <= 200000
    text = '{"namespace":["%s"],"properties":{"k":"%s"}}' % ("large", "v" * 190000)
    got = rest.raw("POST", "/v1/namespaces", text.encode(), {"Content-Type": "application/json", **bearer(token)})
    assert got.status == 200, got
    for w in held:
        w.sock.close()
    for framing in (b"Content-Length: 65537\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n10001\r\n" + b"a" * 65537 + b"\r\n0\r\n\r\n"):
        with Wire(d) as w:
            assert w.send(b"POST /v1/oauth/tokens HTTP/1.1\r\n" + H + framing).answer()[0] == 413


def test_refused(rest):
    def says(got, http, error, text=""):
        assert got.status == http and got.json["error"] == error and text in got.json["error_description"], got
    says(client(rest, "alice", "wrong wrong wrong"), 401, "invalid_client")
    says(client(rest, "nobody", SECRET), 401, "invalid_client")
    says(client(rest, "bob", SECRET), 401, "invalid_client")
    says(ask(rest, grant_type="client_credentials", client_secret=SECRET), 401, "invalid_client")
    says(ask(rest, basic("alice", "x"), grant_type="client_credentials", client_id="alice", client_secret=SECRET),
         401, "invalid_client")
    says(ask(rest, grant_type="password", username="a", password="b"), 400, "unsupported_grant_type")
    says(ask(rest), 400, "invalid_request", "grant_type")
    says(ask(rest, grant_type=EXCHANGE, subject_token="x", subject_token_type=TYPE), 400, "invalid_grant")
    says(ask(rest, grant_type=EXCHANGE, subject_token="x", subject_token_type="jwt"), 400, "invalid_request")
    got = rest.get("/v1/oauth/tokens")
    assert got.status in (401, 405)


def test_exchange(rest):
    token = client(rest).json["access_token"]
    bobs = client(rest, "bob", "0123456789abcdef").json["access_token"]
    form = {"grant_type": EXCHANGE, "subject_token": token, "subject_token_type": TYPE}
    got = ask(rest, bearer(token), **form).json
    assert got["issued_token_type"] == TYPE
    assert rest.call("GET", "/v1/config", headers=bearer(got["access_token"])).status == 200
    assert ask(rest, basic("alice", SECRET), **form).status == 200
    assert ask(rest, basic("bob", "0123456789abcdef"), **form).json["error"] == "invalid_grant"
    assert ask(rest, basic("bob", "0123456789abcdef"), **{**form, "subject_token": bobs}).status == 200


def test_over(daemon, rest, clients):
    """A restart does not end a token, a changed file does; a file that cannot be used changes nothing."""
    token = client(rest).json["access_token"]
    daemon.kill()
    daemon.start()
    assert rest.call("GET", "/v1/config", headers=bearer(token)).status == 200
    write(clients, CLIENTS + "carol:fedcba9876543210\n")
    daemon.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 10
    while client(rest, "carol", "fedcba9876543210").status != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    closed(rest.call("GET", "/v1/config", headers=bearer(token)))
    old = client(rest).json["access_token"]
    write(clients, "broken\n")
    daemon.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 10
    while "ev=auth.kept" not in daemon.log():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert rest.call("GET", "/v1/config", headers=bearer(old)).status == 200
    # Nor does one that would be waited for.
    os.unlink(clients)
    os.mkfifo(clients, 0o600)
    daemon.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 10
    while daemon.log().count("ev=auth.kept") < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert rest.call("GET", "/v1/config", headers=bearer(old)).status == 200
    os.unlink(clients)
    write(clients, CLIENTS)
    assert SECRET not in daemon.log() and old not in daemon.log()


def test_pyiceberg(daemon, rest):
    with pytest.raises((UnauthorizedError, OAuthError)):
        RestCatalog("no", uri=daemon.uri)
    with pytest.raises((UnauthorizedError, OAuthError)):
        RestCatalog("no", uri=daemon.uri, credential="alice:wrong wrong wrong")
    catalog = RestCatalog("yes", uri=daemon.uri, credential="alice:" + SECRET)
    catalog.create_namespace("mine")
    assert catalog.list_namespaces() == [("mine",)]
    token = client(rest).json["access_token"]
    assert RestCatalog("tok", uri=daemon.uri, token=token).namespace_exists("mine")


def test_principal(rest):
    """A transaction is its client's: another one may not even learn of it."""
    mine = bearer(client(rest).json["access_token"])
    bobs = bearer(client(rest, "bob", "0123456789abcdef").json["access_token"])
    rest.call("POST", "/v1/namespaces", {"namespace": ["pr"]}, headers=mine)
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    made = rest.call("POST", "/v1/namespaces/pr/tables", {"name": "t", "schema": schema, "properties": {"format-version": "3"}},
                     headers=mine)
    assert made.status == 200
    body = plain(txn.begin_record("pr.t", None))
    begun = rest.call("POST", "/frazil/v1/begin", body, headers=mine)
    assert begun.status == 200, begun
    again = rest.call("POST", "/frazil/v1/begin", body, headers=mine)
    assert again.json["lease_token"] == begun.json["lease_token"]
    other = rest.call("POST", "/frazil/v1/begin", body, headers=bobs)
    assert other.status == 409 and begun.json["lease_token"].encode() not in other.body, other
