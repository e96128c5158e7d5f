"""Tables over REST as raw requests: every route, every refusal, what a client's cache relies on."""

import concurrent.futures
import gzip
import json
import os
import time
import urllib.parse
import uuid

import pytest

from support.catalog import Space
from support.openapi import Checked
from support.rest import segment

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "type": "long", "required": False},
    {"id": 2, "name": "data", "type": "string", "required": False}]}


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def error(reply, code, kind, text=None):
    assert reply.status == code, reply
    e = reply.error
    assert e["code"] == code and e["type"] == kind, e
    if text is not None:
        assert text in e["message"], e
    return e


@pytest.fixture(scope="module")
def ns(daemon):
    """A namespace of the module's tests."""
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["db"]})
    return "/v1/namespaces/db"


def create(rest, ns, name, **more):
    r = rest.post(ns + "/tables", {"name": name, "schema": SCHEMA, **more})
    assert r.status == 200, r
    return r


def commit(rest, ns, name, updates, requirements=()):
    return rest.post("%s/tables/%s" % (ns, segment(name)),
                     {"requirements": list(requirements), "updates": updates})


def local(location):
    return urllib.parse.urlsplit(location).path


# ---- create and load

def test_create_and_load(daemon, rest, ns):
    made = create(rest, ns, "one", properties={"owner": "me", "format-version": "3"})
    table = made.json
    meta = table["metadata"]
    assert meta["format-version"] == 3 and meta["next-row-id"] == 0
    assert meta["last-column-id"] == 2 and meta["current-schema-id"] == 0
    assert meta["properties"]["owner"] == "me" and "format-version" not in meta["properties"]
    assert table["config"] == {}
    # Beneath the warehouse, in a folder of its own.
    assert meta["location"].startswith("file://%s/db/one-" % daemon.warehouse)
    assert table["metadata-location"].startswith(meta["location"] + "/metadata/00000-")
    with open(local(table["metadata-location"])) as f:
        assert json.load(f) == meta
    again = rest.get(ns + "/tables/one")
    assert again.json == table
    assert rest.head(ns + "/tables/one").status == 204
    other = create(rest, ns, "one2").json["metadata"]
    assert other["format-version"] == 2 and other["location"] != meta["location"]
    assert other["table-uuid"] != meta["table-uuid"]


def test_fields_are_numbered_anew(rest, ns):
    schema = {"type": "struct", "fields": [
        {"id": 0, "name": "s", "required": True, "type": {"type": "struct", "fields": [
            {"id": 7, "name": "x", "type": "int", "required": False}]}},
        {"id": 9, "name": "d", "type": "date", "required": False}]}
    r = rest.post(ns + "/tables", {
        "name": "numbered", "schema": schema, "location": None, "write-order": None,
        "partition-spec": {"spec-id": 0, "fields": [
            {"name": "d_year", "transform": "year", "source-id": 9, "field-id": 1000}]}})
    assert r.status == 200, r
    meta = r.json["metadata"]
    fields = meta["schemas"][0]["fields"]
    assert [f["id"] for f in fields] == [1, 2] and fields[0]["type"]["fields"][0]["id"] == 3
    assert meta["partition-specs"][0]["fields"][0]["source-id"] == 2
    assert meta["default-sort-order-id"] == 0


def test_name_taken_and_missing(rest, ns):
    create(rest, ns, "taken")
    error(rest.post(ns + "/tables", {"name": "taken", "schema": SCHEMA}), 409,
          "AlreadyExistsException", "Table already exists: db.taken")
    error(rest.post(ns + "/tables", {"name": "taken", "schema": SCHEMA, "stage-create": True}), 409,
          "AlreadyExistsException", "Table already exists: db.taken")
    error(rest.post("/v1/namespaces/nobody/tables", {"name": "t", "schema": SCHEMA}), 404,
          "NoSuchNamespaceException", "Namespace does not exist: nobody")
    for target in (ns + "/tables/nope", "/v1/namespaces/nobody/tables/t",
                   "/v1/namespaces/db%1Ftaken/tables/files"):
        error(rest.get(target), 404, "NoSuchTableException", "Table does not exist: ")
        assert rest.head(target).status == 404
        error(rest.delete(target), 404, "NoSuchTableException")
        error(rest.post(target, {"requirements": [], "updates": []}), 404, "NoSuchTableException")
    error(rest.get("/v1/namespaces/nobody/tables"), 404, "NoSuchNamespaceException")


@pytest.mark.parametrize("body", [
    {}, {"name": "x"}, {"name": "", "schema": SCHEMA}, {"name": "x", "schema": {"type": "struct"}},
    {"name": "x", "schema": SCHEMA, "location": "/"}, {"name": "x", "schema": SCHEMA, "location": ""},
    {"name": "x", "schema": SCHEMA, "location": "file:///etc/x"},
    {"name": "x", "schema": SCHEMA, "location": "s3://bucket/x"},
    {"name": "x", "schema": SCHEMA, "properties": {"format-version": "9"}},
    {"name": "x", "schema": SCHEMA, "properties": {"write.metadata.path": "file:///tmp"}},
    {"name": "x", "schema": SCHEMA, "partition-spec": {"fields": [
        {"name": "p", "transform": "identity", "source-id": 99}]}},
    {"name": "y" * 257, "schema": SCHEMA}])
def test_bad_create(rest, ns, body):
    r = rest.post(ns + "/tables", body)
    assert r.status == 400 and r.error["code"] == 400, r
    assert r.error["type"] in ("BadRequestException", "ValidationException",
                               "IllegalArgumentException", "UnsupportedOperationException")
    assert rest.head(ns + "/tables/x").status == 404


def test_location(daemon, rest, ns):
    where = "file://%s/mine/t" % daemon.warehouse
    meta = create(rest, ns, "placed", location=where + "/").json["metadata"]
    assert meta["location"] == where
    rest.want(200, "POST", "/v1/namespaces",
              {"namespace": ["own"], "properties": {"location": "file://%s/elsewhere/" % daemon.warehouse}})
    meta = create(rest, "/v1/namespaces/own", "t").json["metadata"]
    assert meta["location"].startswith("file://%s/elsewhere/t-" % daemon.warehouse)
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["own", "a b/.."]})
    meta = create(rest, "/v1/namespaces/own%1Fa+b%2F..", "..%/x").json["metadata"]
    assert meta["location"].startswith("file://%s/own/a_b_../_.__x-" % daemon.warehouse)


@pytest.mark.parametrize("name", [
    "with space", "a/b", "100%", "a%2Fb", "a+b", "täßle€", "dots.and.more", "..", "quote'\"\\", "snapshots"])
def test_names(rest, ns, name):
    create(rest, ns, name)
    assert rest.get(ns + "/tables/" + segment(name)).status == 200
    assert {"namespace": ["db"], "name": name} in rest.get(ns + "/tables").json["identifiers"]
    assert rest.delete(ns + "/tables/" + segment(name)).status == 204
    assert rest.head(ns + "/tables/" + segment(name)).status == 404


def test_create_race(rest, ns):
    """Many create one name at once: one wins, the others are told, nothing else is left."""
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda _: rest.post(ns + "/tables", {"name": "race", "schema": SCHEMA}),
                            range(12)))
    won = [r for r in got if r.status == 200]
    assert len(won) == 1
    for r in got:
        if r.status != 200:
            error(r, 409, "AlreadyExistsException", "Table already exists: db.race")
    assert rest.get(ns + "/tables/race").json == won[0].json


# ---- list

def test_list_pages(rest):
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["many"]})
    names = sorted("t%d" % i for i in range(11))
    for n in names:
        create(rest, "/v1/namespaces/many", n)
    whole = rest.get("/v1/namespaces/many/tables").json
    assert [i["name"] for i in whole["identifiers"]] == names and whole["next-page-token"] is None
    got, token = [], ""
    while token is not None:
        page = rest.get("/v1/namespaces/many/tables", pageToken=token, pageSize=4).json
        assert len(page["identifiers"]) <= 4
        got += [i["name"] for i in page["identifiers"]]
        token = page["next-page-token"]
    assert got == names
    assert rest.get("/v1/namespaces/many/views?pageToken=").json == {
        "identifiers": [], "next-page-token": None}
    error(rest.get("/v1/namespaces/many/tables?pageToken=2zz"), 400, "BadRequestException")


# ---- caching

def test_entity_tags(rest, ns):
    made = create(rest, ns, "tagged")
    assert "ETag" in made.headers.keys()  # in this very spelling: a client's map is case-sensitive
    tag = made.headers["ETag"]
    assert tag[0] == tag[-1] == '"'
    url = ns + "/tables/tagged"
    loaded = rest.get(url)
    assert loaded.headers["ETag"] == tag and rest.get(url + "?snapshots=all").headers["ETag"] == tag
    refs = rest.get(url + "?snapshots=refs")
    assert refs.status == 200 and refs.headers["ETag"] != tag
    same = rest.call("GET", url, headers={"If-None-Match": tag})
    assert same.status == 304 and same.body == b"" and same.headers["ETag"] == tag
    assert rest.call("GET", url, headers={"If-None-Match": 'W/"x", ' + tag}).status == 304
    assert rest.call("GET", url, headers={"If-None-Match": '"other"'}).status == 200
    assert rest.call("GET", url + "?snapshots=refs", headers={"If-None-Match": tag}).status == 200
    changed = commit(rest, ns, "tagged", [{"action": "set-properties", "updates": {"a": "b"}}])
    assert changed.status == 200 and changed.headers["ETag"] != tag
    now = rest.call("GET", url, headers={"If-None-Match": tag})
    assert now.status == 200 and now.headers["ETag"] == changed.headers["ETag"]
    assert now.json["metadata"]["properties"]["a"] == "b"
    error(rest.get(url + "?snapshots=some"), 400, "BadRequestException", "snapshots")


@pytest.mark.parametrize("accept,packed", [
    ("gzip", True), ("deflate, GZIP;q=0.5", True), ("*", True), ("x-gzip, br", True), ("gzip;q=0, *", False), ("gzip; q=0.000", False),
    ("gzip;q=0.5, identity", False), ("identity;q=0.5, gzip;q=0.8", True), ("identity;q=0.5, gzip;q=0.5", True),
    ("identity;q=0, *", True), ("*;q=0.1, identity", False), ("*;q=0", False), ("gzip;q=1.000", True), ("gzip;Q=0.001", True),
    ("identity", False), ("br, *;q=0", False), ("", False)])
def test_packed_answers(daemon, rest, ns, accept, packed):
    """gzip for who accepts it, with a tag of its own; either tag of a version is known, none of another."""
    if rest.head(ns + "/tables/packed").status == 404:
        create(rest, ns, "packed", properties={"long": "x" * 5000})
    url = ns + "/tables/packed"
    plain = rest.get(url)
    raw = daemon.rest.raw("GET", url, headers={"Accept-Encoding": accept} if accept else {})
    assert raw.status == 200 and raw.headers["Vary"] == "Accept-Encoding"
    assert raw.headers.get("Content-Encoding") == ("gzip" if packed else None)
    assert (gzip.decompress(raw.body) if packed else raw.body) == plain.body
    assert (raw.headers["ETag"] != plain.headers["ETag"]) == packed
    refs = daemon.rest.raw("GET", url + "?snapshots=refs", headers={"Accept-Encoding": accept})
    tags = {plain.headers["ETag"], raw.headers["ETag"]}
    assert refs.headers["ETag"] not in tags
    for tag in tags:
        same = daemon.rest.raw("GET", url, headers={"Accept-Encoding": accept, "If-None-Match": tag})
        assert same.status == 304 and same.headers["ETag"] == tag and same.body == b""
    assert daemon.rest.raw("GET", url, headers={"Accept-Encoding": accept, "If-None-Match": refs.headers["ETag"]}).status == 200


def test_packed_commits(daemon, rest, ns):
    """The answer to a commit is packed when it is long."""
    create(rest, ns, "longer", properties={"long%d" % i: "x" * 900 for i in range(100)})
    body = json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}).encode()
    got = daemon.rest.raw("POST", ns + "/tables/longer", body, {"Accept-Encoding": "gzip", "Content-Type": "application/json"})
    assert got.status == 200 and got.headers["Content-Encoding"] == "gzip" and len(got.body) < 20000
    assert json.loads(gzip.decompress(got.body)) == rest.get(ns + "/tables/longer").json


def test_cache_counts(daemon, rest, ns):
    """Loads of a table that this daemon made read no file."""
    def value(name):
        line = [x for x in daemon.admin.get("/metrics").body.decode().splitlines()
                if x.startswith(("frazil_metadata_cache_%s " % name, "frazil_metadata_cache_%s_total " % name))]
        return float(line[0].split()[-1])
    create(rest, ns, "counted")
    reads, hits = value("reads"), value("hits")
    for _ in range(5):
        assert rest.get(ns + "/tables/counted").status == 200
    assert value("reads") == reads and value("hits") >= hits + 5
    assert value("entries") >= 1 and value("bytes") > 1000


def test_missing_file(rest, ns):
    made = create(rest, ns, "lost").json
    url = ns + "/tables/lost"
    tag = rest.get(url).headers["ETag"]
    time.sleep(0.01)
    os.unlink(local(made["metadata-location"]))
    want = "Failed to open input stream for file: " + made["metadata-location"]
    assert error(rest.get(url), 404, "NotFoundException")["message"] == want
    assert error(rest.get(url), 404, "NotFoundException")["message"] == want
    error(rest.call("GET", url, headers={"If-None-Match": tag}), 404, "NotFoundException")


# ---- commits

def test_commit(rest, ns):
    first = create(rest, ns, "c").json
    uid = first["metadata"]["table-uuid"]
    r = commit(rest, ns, "c", [{"action": "set-properties", "updates": {"k": "v"}}],
               [{"type": "assert-table-uuid", "uuid": uid.upper()}])
    assert r.status == 200, r
    assert r.json["metadata-location"] != first["metadata-location"]
    assert "/metadata/00001-" in r.json["metadata-location"]
    assert r.json["metadata"]["metadata-log"][-1]["metadata-file"] == first["metadata-location"]
    assert rest.get(ns + "/tables/c").json == r.json
    # Nothing changes: nothing is written.
    same = commit(rest, ns, "c", [{"action": "set-properties", "updates": {"k": "v"}}])
    assert same.status == 200 and same.json["metadata-location"] == r.json["metadata-location"]
    named = rest.post(ns + "/tables/c", {
        "identifier": {"namespace": ["db"], "name": "c"}, "requirements": [], "updates": [
            {"action": "remove-properties", "removals": ["k"]}]})
    assert named.status == 200 and "k" not in named.json["metadata"]["properties"]


def test_commit_requirements(rest, ns):
    create(rest, ns, "req")
    change = [{"action": "set-properties", "updates": {"k": "v"}}]
    for requirement, text in (
            ({"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}, "UUID does not match"),
            ({"type": "assert-current-schema-id", "current-schema-id": 4}, "current schema changed"),
            ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 4},
             "last assigned field id changed"),
            ({"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 4},
             "last assigned partition id changed"),
            ({"type": "assert-default-spec-id", "default-spec-id": 4}, "default partition spec changed"),
            ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 4}, "branch or tag main is missing"),
            ({"type": "assert-create"}, "table already exists")):
        e = error(commit(rest, ns, "req", change, [requirement]), 409, "CommitFailedException")
        assert e["message"].startswith("Requirement failed: " + text), e
    assert "k" not in rest.get(ns + "/tables/req").json["metadata"]["properties"]


@pytest.mark.parametrize("body", [
    {"requirements": [], "updates": [{"action": "fly"}]},
    {"requirements": [{"type": "assert-moon"}], "updates": []},
    {"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 77}]},
    {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 1}]},
    {"requirements": [], "updates": [{"action": "set-location", "location": ""}]},
    {"requirements": [], "updates": [{"action": "set-location", "location": "file:///etc/t"}]},
    {"requirements": [], "updates": [{"action": "set-location", "location": "s3://b/t"}]},
    {"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"write.metadata.path": "file:///etc/t"}}]},
    {"identifier": {"namespace": ["db"], "name": "other"}, "requirements": [], "updates": []},
    {"requirements": {}, "updates": []}, []])
def test_bad_commit(rest, ns, body):
    if rest.head(ns + "/tables/bad").status == 404:
        create(rest, ns, "bad")
    r = rest.post(ns + "/tables/bad", body)
    assert r.status == 400 and r.error["type"] in (
        "BadRequestException", "ValidationException", "UnsupportedOperationException"), r


def test_not_json(rest, ns):
    for target in (ns + "/tables", "/v1/transactions/commit", "/v1/namespaces", "/v1/tables/rename"):
        for body in (b"", b"{", b"\xff\xfe", b"null", b'{"name":"a","name":"b"}'):
            error(rest.raw("POST", target, body), 400, "BadRequestException")


def test_concurrent_commits(rest, ns):
    """Requirements are checked again on each new head: none is lost, none is applied twice."""
    create(rest, ns, "busy", properties={"n": "0"})

    def one(i):
        return commit(rest, ns, "busy", [{"action": "set-properties", "updates": {"k%d" % i: "v"}}])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(one, range(24)))
    assert [r.status for r in got] == [200] * 24
    assert len({r.json["metadata-location"] for r in got}) == 24
    props = rest.get(ns + "/tables/busy").json["metadata"]["properties"]
    assert all(props.get("k%d" % i) == "v" for i in range(24))

    def schema(i):
        fields = SCHEMA["fields"] + [{"id": 3, "name": "c%d" % i, "type": "int", "required": False}]
        return commit(rest, ns, "busy", [
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields}},
            {"action": "set-current-schema", "schema-id": -1}],
            [{"type": "assert-current-schema-id", "current-schema-id": 0}])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = [r.status for r in pool.map(schema, range(8))]
    assert got.count(200) == 1 and got.count(409) == 7


# ---- staged tables

def staged(rest, ns, name):
    r = create(rest, ns, name, **{"stage-create": True, "properties": {"format-version": "3"}})
    table = r.json
    assert table.get("metadata-location") is None
    assert rest.head("%s/tables/%s" % (ns, name)).status == 404
    return table["metadata"]


def creation(meta):
    return [
        {"action": "assign-uuid", "uuid": meta["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": meta["format-version"]},
        {"action": "add-schema", "schema": meta["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": meta["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": meta["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": meta["location"]},
        {"action": "set-properties", "updates": meta["properties"]}]


def test_staged(rest, ns):
    meta = staged(rest, ns, "staged")
    other = staged(rest, ns, "staged")
    must = [{"type": "assert-create"}]
    r = commit(rest, ns, "staged", creation(meta), must)
    assert r.status == 200, r
    got = r.json["metadata"]
    assert got["table-uuid"] == meta["table-uuid"] and got["location"] == meta["location"]
    assert got["format-version"] == 3 and got["schemas"] == meta["schemas"]
    assert rest.get(ns + "/tables/staged").json == r.json
    assert rest.get(ns + "/tables/staged").headers["ETag"] == r.headers["ETag"]
    error(commit(rest, ns, "staged", creation(other), must), 409, "CommitFailedException",
          "Requirement failed: table already exists")
    error(commit(rest, ns, "staged2", creation(other), must + [
        {"type": "assert-table-uuid", "uuid": other["table-uuid"]}]), 400, "BadRequestException")
    error(rest.post("/v1/namespaces/nobody/tables/t", {"requirements": must, "updates": creation(other)}),
          404, "NoSuchNamespaceException")
    # Without a location it gets one.
    bare = [u for u in creation(other) if u["action"] not in ("set-location", "assign-uuid")]
    r = commit(rest, ns, "unplaced", bare, must)
    assert r.status == 200 and "/db/unplaced-" in r.json["metadata"]["location"], r


def test_staged_in_the_order_of_duckdb(rest, ns):
    """Its spec and order come before the schema is the current one, by id and not by -1."""
    meta = staged(rest, ns, "duck")
    updates = creation(meta)
    updates.append(updates.pop(3))
    for u in updates:
        for key in ("spec-id", "sort-order-id", "schema-id"):
            if u["action"].startswith("set-") and key in u:
                u[key] = 0
    assert updates[-1] == {"action": "set-current-schema", "schema-id": 0}
    r = commit(rest, ns, "duck", updates, [{"type": "assert-create"}])
    assert r.status == 200 and r.json["metadata"]["current-schema-id"] == 0, r


def test_staged_race(rest, ns):
    metas = [staged(rest, ns, "srace") for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda m: commit(rest, ns, "srace", creation(m), [{"type": "assert-create"}]),
                            metas))
    assert sorted(r.status for r in got) == [200] + [409] * 7
    won = [r for r in got if r.status == 200][0]
    assert rest.get(ns + "/tables/srace").json == won.json


# ---- the route of transactions

def test_transaction_of_one(rest, ns):
    create(rest, ns, "x1")
    ident = {"namespace": ["db"], "name": "x1"}
    r = rest.post("/v1/transactions/commit", {"table-changes": [{
        "identifier": ident, "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}]})
    assert r.status == 204 and r.body == b""
    assert rest.get(ns + "/tables/x1").json["metadata"]["properties"]["a"] == "1"
    meta = staged(rest, ns, "x2")
    r = rest.post("/v1/transactions/commit", {"table-changes": [{
        "identifier": {"namespace": ["db"], "name": "x2"}, "requirements": [{"type": "assert-create"}],
        "updates": creation(meta)}]})
    assert r.status == 204, r
    assert rest.get(ns + "/tables/x2").json["metadata"]["table-uuid"] == meta["table-uuid"]


def test_transactions_refused(rest, ns):
    create(rest, ns, "x3")

    def change(name):
        return {"identifier": {"namespace": ["db"], "name": name}, "requirements": [],
                "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    error(rest.post("/v1/transactions/commit", {"table-changes": []}), 400, "BadRequestException")
    error(rest.post("/v1/transactions/commit", {"table-changes": [change("x3")] * 2}), 400,
          "BadRequestException", "twice")
    error(rest.post("/v1/transactions/commit", {"table-changes": [change("nope")]}), 404,
          "NoSuchTableException", "Table does not exist: db.nope")
    bad = change("x3")
    bad["requirements"] = [{"type": "assert-default-spec-id", "default-spec-id": 9}]
    error(rest.post("/v1/transactions/commit", {"table-changes": [bad]}), 409, "CommitFailedException")


# ---- rename, drop, register

def rename(rest, a, b):
    return rest.post("/v1/tables/rename", {
        "source": {"namespace": a[:-1], "name": a[-1]}, "destination": {"namespace": b[:-1], "name": b[-1]}})


def test_rename(rest, ns):
    made = create(rest, ns, "before").json
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["db2"]})
    assert rename(rest, ["db", "before"], ["db2", "after"]).status == 204
    assert rest.get("/v1/namespaces/db2/tables/after").json == made
    error(rest.get(ns + "/tables/before"), 404, "NoSuchTableException")
    create(rest, ns, "before")
    error(rename(rest, ["db", "before"], ["db2", "after"]), 409, "AlreadyExistsException",
          "Cannot rename db.before to db2.after. Table already exists")
    error(rename(rest, ["db", "none"], ["db2", "x"]), 404, "NoSuchTableException",
          "Table does not exist: db.none")
    error(rename(rest, ["db", "before"], ["nobody", "x"]), 404, "NoSuchNamespaceException",
          "Namespace does not exist: nobody")
    # A renamed table goes on.
    r = commit(rest, "/v1/namespaces/db2", "after", [{"action": "set-properties", "updates": {"a": "b"}}])
    assert r.status == 200


def test_drop(rest, ns):
    made = create(rest, ns, "d").json
    error(rest.delete(ns + "/tables/d?purgeRequested=maybe"), 400, "BadRequestException", "purgeRequested")
    assert rest.delete(ns + "/tables/d?purgeRequested=False").status == 204
    assert os.path.exists(local(made["metadata-location"]))
    error(rest.delete(ns + "/tables/d"), 404, "NoSuchTableException", "Table does not exist: db.d")
    create(rest, ns, "d")
    assert rest.delete(ns + "/tables/d?purgeRequested=True").status == 204
    assert rest.head(ns + "/tables/d").status == 404
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["full"]})
    create(rest, "/v1/namespaces/full", "t")
    error(rest.delete("/v1/namespaces/full"), 409, "NamespaceNotEmptyException", "is not empty")
    assert rest.delete("/v1/namespaces/full/tables/t").status == 204
    assert rest.delete("/v1/namespaces/full").status == 204


def test_register(daemon, rest, ns):
    made = create(rest, ns, "reg").json
    where = made["metadata-location"]
    error(rest.post(ns + "/register", {"name": "reg", "metadata-location": where}), 409,
          "AlreadyExistsException", "Table already exists: db.reg")
    # The same table cannot live under two names.
    error(rest.post(ns + "/register", {"name": "reg2", "metadata-location": where}), 409,
          "AlreadyExistsException")
    assert rest.delete(ns + "/tables/reg").status == 204
    r = rest.post(ns + "/register", {"name": "reg", "metadata-location": where})
    assert r.status == 200 and r.json == made and "ETag" in r.headers
    newer = commit(rest, ns, "reg", [{"action": "set-properties", "updates": {"a": "b"}}]).json
    assert newer["metadata-location"] != where
    r = rest.post(ns + "/register", {"name": "reg", "metadata-location": where, "overwrite": True})
    assert r.status == 200 and r.json == made, r
    assert rest.get(ns + "/tables/reg").json == made
    after = commit(rest, ns, "reg", [{"action": "set-properties", "updates": {"c": "d"}}])
    assert after.status == 200 and "a" not in after.json["metadata"]["properties"]

    gone = "file://%s/none/metadata/00000-x.metadata.json" % daemon.warehouse
    error(rest.post(ns + "/register", {"name": "n", "metadata-location": gone}), 404,
          "NotFoundException", gone)
    broken = os.path.join(daemon.warehouse, "broken.metadata.json")
    with open(broken, "w") as f:
        f.write('{"format-version": 2}')
    r = rest.post(ns + "/register", {"name": "n", "metadata-location": "file://" + broken})
    assert r.status == 400, r
    for bad in ("/etc/passwd", "s3://b/m.json", "file://%s/../x" % daemon.warehouse, ""):
        assert rest.post(ns + "/register", {"name": "n", "metadata-location": bad}).status == 400
    error(rest.post("/v1/namespaces/nobody/register", {"name": "n", "metadata-location": where}), 404,
          "NoSuchNamespaceException")
    assert rest.head(ns + "/tables/n").status == 404


# ---- the rest

def test_metrics_reports(rest, ns):
    create(rest, ns, "metered")
    url = ns + "/tables/metered/metrics"
    assert rest.post(url, {"report-type": "scan-report", "table-name": "db.metered", "snapshot-id": 1,
                           "filter": True, "schema-id": 0, "projected-field-ids": [],
                           "projected-field-names": [], "metrics": {}}).status == 204
    assert rest.post(url, {"report-type": "of-tomorrow"}).status == 204
    error(rest.post(url, {}), 400, "BadRequestException")
    error(rest.post(ns + "/tables/nope/metrics", {"report-type": "scan-report"}), 404,
          "NoSuchTableException")


def test_restart(daemon, ns):
    made = create(daemon.rest, ns, "stays").json
    daemon.restart()
    assert daemon.rest.get(ns + "/tables/stays").json == made
    r = commit(daemon.rest, ns, "stays", [{"action": "set-properties", "updates": {"a": "b"}}])
    assert r.status == 200


def test_stopped_behind_a_large_body(make_daemon):
    """A stop right behind the answer to a large body, whose document is still being freed: an orderly end."""
    daemon = make_daemon()
    space = Space(daemon, "stopped")
    space.create("t")
    gone = [{"action": "remove-snapshots", "snapshot-ids": [i + 1]} for i in range(20000)]
    for _ in range(3):
        daemon.rest.want(200, "POST", space.table("t"), {"requirements": [], "updates": gone})
        daemon.restart()
