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
