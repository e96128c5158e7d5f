"""GET /v1/config: what is offered is there, and warehouses by name and by location."""

import pytest

from support.openapi import Checked
from support.rest import segment

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}

# What this server offers, in the specification's spelling.
OFFERED = {
    "GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}", "HEAD /v1/{prefix}/namespaces/{namespace}",
    "DELETE /v1/{prefix}/namespaces/{namespace}", "POST /v1/{prefix}/namespaces/{namespace}/properties",
    "GET /v1/{prefix}/namespaces/{namespace}/tables", "POST /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
    "POST /v1/{prefix}/namespaces/{namespace}/register", "POST /v1/{prefix}/tables/rename",
    "POST /v1/{prefix}/transactions/commit",
    "GET /v1/{prefix}/namespaces/{namespace}/views", "POST /v1/{prefix}/namespaces/{namespace}/views",
    "GET /v1/{prefix}/namespaces/{namespace}/views/{view}", "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}", "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
    "GET /v1/{prefix}/namespaces/{namespace}/functions", "GET /v1/{prefix}/namespaces/{namespace}/functions/{function}",
    "POST /v1/{prefix}/namespaces/{namespace}/register-view", "POST /v1/{prefix}/views/rename"}


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    return str(tmp_path_factory.mktemp("second"))


@pytest.fixture(scope="module")
def settings(second):
    return {"warehouse.name": "main", "warehouse.extra": "other place=file://" + second}


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def test_default(rest, daemon):
    got = rest.get("/v1/config").json
    assert got["defaults"] == {} and got["overrides"] == {}
    assert set(got["endpoints"]) == OFFERED and len(got["endpoints"]) == len(OFFERED)
    for same in ("", "main", "file://" + daemon.warehouse, "file:" + daemon.warehouse + "/"):
        assert rest.get("/v1/config", warehouse=same).json == got
    # A client without credentials sends this.
    assert rest.call("GET", "/v1/config", headers={"Authorization": "Bearer None"}).json == got


def test_offered_is_there(rest):
    """No offered route answers that it is not offered."""
    for endpoint in OFFERED:
        method, path = endpoint.split(" ")
        path = path.replace("{prefix}/", "").replace("{namespace}", "nsx").replace("{table}", "tx")
        got = rest.call(method, path, {} if method == "POST" else None)
        assert got.status not in (405, 406, 500, 501), (endpoint, got)


def test_other_warehouse(daemon, rest, second):
    got = rest.get("/v1/config", warehouse="other place").json
    assert got["overrides"] == {"prefix": "other%20place"}
    assert rest.get("/v1/config", warehouse="file://" + second).json == got
    at = "/v1/other%20place"
    plain = daemon.rest
    assert plain.post(at + "/namespaces", {"namespace": ["only"]}).status == 200
    made = plain.post(at + "/namespaces/only/tables", {"name": "t", "schema": SCHEMA})
    assert made.json["metadata"]["location"].startswith("file://%s/only/t-" % second)
    # The two do not see each other's names.
    assert rest.get("/v1/namespaces/only").status == 404
    assert plain.get("/v1/main/namespaces/only").status == 404
    assert plain.get("/v1/%s/namespaces" % segment("file://" + second)).json["namespaces"] == [["only"]]


def test_unknown_warehouse(rest):
    for reply in (rest.get("/v1/config", warehouse="nope"), rest.get("/v1/config", warehouse="file:///nope"),
                  rest.get("/v1/nope/namespaces")):
        assert reply.status == 404 and reply.error["type"] == "NoSuchWarehouseException"
    assert rest.get("/v2/config").status == 404


def test_not_a_route(rest):
    for method, target in (("PUT", "/v1/namespaces"), ("DELETE", "/v1/config"), ("PATCH", "/v1/namespaces/a")):
        got = rest.call(method, target)
        assert got.status == 405 and got.headers["Allow"]
