"""Views over REST as raw requests, checked against the specification: every route, every refusal."""

import concurrent.futures
import gzip
import json
import os
import subprocess
import time
import urllib.parse
import uuid

import pytest
from pyiceberg.catalog.rest import RestCatalog

from support.keyed import Keyed, key
from support.openapi import Checked
from support.rest import segment

SCHEMA = {"type": "struct", "schema-id": 7, "fields": [
    {"id": 1, "name": "id", "type": "long", "required": False},
    {"id": 2, "name": "data", "type": "string", "required": False, "doc": "text"}]}


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


@pytest.fixture(scope="module")
def ns(daemon):
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["vw"]})
    return "/v1/namespaces/vw"


def error(reply, code, kind, text=None):
    assert reply.status == code, reply
    e = reply.error
    assert e["code"] == code and e["type"] == kind, e
    if text is not None:
        assert text in e["message"], e
    return e


def sql(text, dialect="spark"):
    return {"type": "sql", "sql": text, "dialect": dialect}


def version(*representations, n=1, schema=0, **more):
    return {"version-id": n, "timestamp-ms": 1700000000000 + n, "schema-id": schema, "summary": {"engine": "test"},
            "default-namespace": ["vw"], "representations": list(representations or [sql("select 1")]), **more}


def create(rest, ns, name, *representations, want=200, **more):
    r = rest.post(ns + "/views", {"name": name, "schema": SCHEMA, "view-version": version(*representations), "properties": {}, **more})
    assert r.status == want, r
    return r


def replace(rest, ns, name, *updates, requirements=()):
    return rest.post("%s/views/%s" % (ns, segment(name)), {"requirements": list(requirements), "updates": list(updates)})


def add(*representations, n=1, schema=0, **more):
    return [{"action": "add-view-version", "view-version": version(*representations, n=n, schema=schema, **more)},
            {"action": "set-current-view-version", "view-version-id": -1}]


def local(location):
    return urllib.parse.urlsplit(location).path


def test_create_and_load(daemon, rest, ns):
    made = create(rest, ns, "one", sql("select 1"), sql("SELECT 1", "trino"), properties={"comment": "mine"}).json
    md = made["metadata"]
    assert md["format-version"] == 1 and md["properties"] == {"comment": "mine"} and uuid.UUID(md["view-uuid"])
    assert md["location"].startswith("file://%s/vw/one-" % daemon.warehouse)
    # Whatever ids the client gave: the first version is 1, its schema 0.
    assert md["current-version-id"] == 1 and [s["schema-id"] for s in md["schemas"]] == [0]
    assert md["schemas"][0]["fields"] == SCHEMA["fields"]
    assert md["versions"] == [{**version(sql("select 1"), sql("SELECT 1", "trino")), "version-id": 1, "schema-id": 0}]
    assert md["version-log"] == [{"version-id": 1, "timestamp-ms": md["versions"][0]["timestamp-ms"]}]
    assert "/metadata/00000-" in made["metadata-location"]
    with open(local(made["metadata-location"])) as f:
        assert json.load(f) == md
    got = rest.get(ns + "/views/one")
    assert got.status == 200 and got.json == made
    assert rest.head(ns + "/views/one").status == 204
    assert rest.get(ns + "/views").json["identifiers"] == [{"namespace": ["vw"], "name": "one"}]
    daemon.restart(kill=True)
    assert rest.get(ns + "/views/one").json == made


def test_missing(rest, ns):
    for call in (rest.get, rest.delete):
        error(call(ns + "/views/none"), 404, "NoSuchViewException", "View does not exist: vw.none")
    assert rest.head(ns + "/views/none").status == 404
    error(replace(rest, ns, "none"), 404, "NoSuchViewException", "View does not exist: vw.none")
    body = {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {}}
    error(rest.post("/v1/namespaces/nobody/views", body), 404, "NoSuchNamespaceException", "Namespace does not exist: nobody")


def test_one_space_of_names(rest, ns):
    create(rest, ns, "taken")
    error(create(rest, ns, "taken", want=409), 409, "AlreadyExistsException", "View already exists: vw.taken")
    table = {"name": "taken", "schema": SCHEMA}
    error(rest.post(ns + "/tables", table), 409, "AlreadyExistsException", "View with same name already exists: vw.taken")
    assert rest.post(ns + "/tables", {"name": "tab", "schema": SCHEMA}).status == 200
    error(create(rest, ns, "tab", want=409), 409, "AlreadyExistsException", "Table with same name already exists: vw.tab")
    error(rest.get(ns + "/views/tab"), 404, "NoSuchViewException")
    error(rest.get(ns + "/tables/taken"), 404, "NoSuchTableException")
    assert rest.delete(ns + "/views/tab").status == 404 and rest.head(ns + "/tables/tab").status == 204
    assert "tab" not in [i["name"] for i in rest.get(ns + "/views").json["identifiers"]]
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["holds"]})
    create(rest, "/v1/namespaces/holds", "v")
    error(rest.delete("/v1/namespaces/holds"), 409, "NamespaceNotEmptyException", "is not empty")


@pytest.mark.parametrize("change,kind", [
    ({"name": ""}, "BadRequestException"), ({"name": None}, "BadRequestException"), ({"schema": None}, "BadRequestException"),
    ({"view-version": None}, "BadRequestException"), ({"location": ""}, "BadRequestException"),
    ({"location": "file:///etc/v"}, None), ({"location": "s3://b/v"}, None),
    ({"properties": {"a": 1}}, "BadRequestException"),
    ({"view-version": {**version(), "default-namespace": None}}, "BadRequestException"),
    ({"view-version": {**version(), "representations": None}}, "BadRequestException"),
    ({"view-version": {**version(), "representations": [{"type": "sql", "sql": "x"}]}}, "BadRequestException"),
    ({"view-version": {**version(), "timestamp-ms": "now"}}, "BadRequestException"),
    ({"properties": {"version.history.num-entries": "0"}}, "IllegalArgumentException"),
    ({"view-version": version(sql("a", "trino"), sql("b", "TRINO"))}, "IllegalArgumentException")])
def test_bad_create(rest, ns, change, kind):
    body = {"name": "bad", "schema": SCHEMA, "view-version": version(), "properties": {}, **change}
    r = rest.post(ns + "/views", {k: v for k, v in body.items() if v is not None})
    assert r.status == 400 and kind in (None, r.error["type"]), r
    assert rest.head(ns + "/views/bad").status == 404


def test_two_queries_of_one_dialect(rest, ns):
    got = create(rest, ns, "twice", sql("a", "trino"), sql("b", "trino"), want=400)
    error(got, 400, "IllegalArgumentException", "Invalid view version: Cannot add multiple queries for dialect trino")


def test_replace(rest, ns):
    first = create(rest, ns, "rep").json
    r = replace(rest, ns, "rep", {"action": "set-properties", "updates": {"a": "1"}}, *add(sql("select 2"), n=9),
                requirements=[{"type": "assert-view-uuid", "uuid": first["metadata"]["view-uuid"].upper()}])
    assert r.status == 200, r
    md = r.json["metadata"]
    assert md["current-version-id"] == 2 and [v["version-id"] for v in md["versions"]] == [1, 2]
    assert [e["version-id"] for e in md["version-log"]] == [1, 2] and md["properties"] == {"a": "1"}
    assert md["version-log"][1]["timestamp-ms"] == 1700000000009
    assert "/metadata/00001-" in r.json["metadata-location"]
    assert os.path.exists(local(first["metadata-location"]))
    assert rest.get(ns + "/views/rep").json == r.json
    # Nothing new: nothing is written, an equal version is the old one.
    again = replace(rest, ns, "rep", {"action": "set-properties", "updates": {"a": "1"}}, *add(sql("select 2"), n=4))
    assert again.status == 200 and again.json == r.json
    # Back to the first; the log tells it with the time of now.
    back = replace(rest, ns, "rep", {"action": "set-current-view-version", "view-version-id": 1}).json["metadata"]
    assert [e["version-id"] for e in back["version-log"]] == [1, 2, 1] and back["version-log"][2]["timestamp-ms"] > 1750000000000
    # A new schema and a version of it.
    wider = {"type": "struct", "fields": SCHEMA["fields"] + [{"id": 3, "name": "x", "type": "int", "required": False}]}
    got = replace(rest, ns, "rep", {"action": "add-schema", "schema": wider}, *add(sql("select 3"), n=5, schema=-1))
    md = got.json["metadata"]
    assert [s["schema-id"] for s in md["schemas"]] == [0, 1] and md["versions"][-1]["schema-id"] == 1
    got = replace(rest, ns, "rep", {"action": "remove-properties", "removals": ["a", "none"]},
                  {"action": "upgrade-format-version", "format-version": 1},
                  {"action": "assign-uuid", "uuid": first["metadata"]["view-uuid"]})
    assert got.status == 200 and not got.json["metadata"].get("properties")


@pytest.mark.parametrize("update", [
    {"action": "fly"}, {"action": "assign-uuid", "uuid": str(uuid.uuid4())}, {"action": "upgrade-format-version", "format-version": 2},
    {"action": "upgrade-format-version", "format-version": 0}, {"action": "set-current-view-version", "view-version-id": 77},
    {"action": "set-current-view-version", "view-version-id": -1}, {"action": "set-location", "location": ""},
    {"action": "set-location", "location": "file:///etc/v"},
    {"action": "add-view-version", "view-version": version(schema=55)}, {"action": "add-view-version", "view-version": version(schema=-1)},
    {"action": "add-view-version", "view-version": version(sql("a", "x"), sql("b", "X"))},
    {"action": "set-properties", "updates": {"version.history.num-entries": "-3"}}, {"action": "add-snapshot"}, [], 5])
def test_bad_replace(rest, ns, update):
    if rest.head(ns + "/views/badrep").status == 404:
        create(rest, ns, "badrep")
    before = rest.get(ns + "/views/badrep").json
    r = replace(rest, ns, "badrep", {"action": "set-properties", "updates": {"half": "done"}}, update)
    assert r.status == 400, r
    assert rest.get(ns + "/views/badrep").json == before


def test_requirements(rest, ns):
    create(rest, ns, "req")
    change = {"action": "set-properties", "updates": {"k": "v"}}
    e = error(replace(rest, ns, "req", change, requirements=[{"type": "assert-view-uuid", "uuid": str(uuid.uuid4())}]),
              409, "CommitFailedException")
    assert e["message"].startswith("Requirement failed: view UUID does not match"), e
    for bad in ({"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}, {"type": "assert-view-uuid", "uuid": "x"}, {"type": "assert-view-uuid"}):
        assert replace(rest, ns, "req", change, requirements=[bad]).status == 400
    assert rest.post(ns + "/views/req", {"identifier": {"namespace": ["vw"], "name": "other"}, "requirements": [],
                                         "updates": [change]}).status == 400
    assert "properties" not in rest.get(ns + "/views/req").json["metadata"]


def test_dialects_are_not_lost(rest, ns):
    create(rest, ns, "dia", sql("a", "spark"), sql("b", "trino"))
    r = replace(rest, ns, "dia", *add(sql("c", "Spark")))
    error(r, 400, "BadRequestException", "loss of view dialects")
    assert replace(rest, ns, "dia", *add(sql("c", "Spark"), sql("d", "TRINO"))).status == 200
    r = replace(rest, ns, "dia", {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}, *add(sql("e", "spark")))
    assert r.status == 200, r


def test_history(rest, ns):
    """Ten versions are kept, or as many as the property says; the log begins behind the last one that went."""
    create(rest, ns, "hist", properties={"version.history.num-entries": "3"})
    for i in range(2, 7):
        md = replace(rest, ns, "hist", *add(sql("select %d" % i), n=i)).json["metadata"]
    assert [v["version-id"] for v in md["versions"]] == [4, 5, 6] and [e["version-id"] for e in md["version-log"]] == [4, 5, 6]
    md = replace(rest, ns, "hist", {"action": "set-current-view-version", "view-version-id": 4}).json["metadata"]
    md = replace(rest, ns, "hist", {"action": "set-properties", "updates": {"version.history.num-entries": "1"}}).json["metadata"]
    assert [v["version-id"] for v in md["versions"]] == [4] and [e["version-id"] for e in md["version-log"]] == [4]
    # Those that one commit adds all stay.
    more = [u for i in range(7, 10) for u in add(sql("select %d" % i), n=i)[:1]]
    md = replace(rest, ns, "hist", *more).json["metadata"]
    assert [v["version-id"] for v in md["versions"]] == [4, 5, 6, 7]


def test_commits_at_once(rest, ns):
    """Each commit is made on what the others left: none is lost."""
    create(rest, ns, "busy")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: replace(rest, ns, "busy", {"action": "set-properties", "updates": {"k%d" % i: "v"}}), range(24)))
    good = [i for i, r in enumerate(got) if r.status == 200]
    assert {r.status for r in got} <= {200, 409} and len(good) >= 12
    now = rest.get(ns + "/views/busy").json
    assert set(now["metadata"]["properties"]) == {"k%d" % i for i in good}
    # A file for each commit that stands, none of the attempts that did not.
    folder = os.path.dirname(local(now["metadata-location"]))
    deadline = 50
    while len(os.listdir(folder)) > len(good) + 1 and deadline:
        time.sleep(0.1)
        deadline -= 1
    assert len(os.listdir(folder)) == len(good) + 1


def test_a_cleaner_that_does_not_wait(make_daemon):
    """Without a grace a file that is being written counts as given up: another one is written, or nothing has happened."""
    d = make_daemon(settings={"cleaner.interval-ms": 50, "cleaner.grace-ms": 0, "cleaner.tombstone-ms": 0, "fs.put-delay-ms": 15})
    rest, at = Checked(d.uri), "/v1/namespaces/vw"
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["vw"]})
    body = {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {}}
    answers, named, last = [], set(), None
    for i in range(40):
        r = rest.post(at + "/views", {**body, "name": "v%d" % i}) if i % 2 else replace(
            rest, at, "v0", {"action": "set-properties", "updates": {"k": str(i)}}) if i else create(rest, at, "v0")
        assert r.status == 200 or r.error["type"] in ("CommitFailedException", "TooManyRequestsException"), r
        answers.append(r.status)
        if r.status == 200:
            named.add(local(r.json["metadata-location"]))
            last = r.json if i % 2 == 0 else last
            assert rest.get("%s/views/%s" % (at, "v%d" % i if i % 2 else "v0")).json == r.json
        elif i % 2:
            assert rest.head("%s/views/v%d" % (at, i)).status == 404
    assert answers.count(200) >= 20 and rest.get(at + "/views/v0").json == last
    end = time.monotonic() + 20
    found = None
    while found != named and time.monotonic() < end:
        time.sleep(0.1)
        found = {os.path.join(folder, n) for folder, _, names in os.walk(d.warehouse) for n in names}
    assert found == named


def test_rename(rest, ns):
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["vw", "deep"]})
    made = create(rest, ns, "old").json

    def rename(source, destination, space=("vw",)):
        return rest.post("/v1/views/rename", {"source": {"namespace": ["vw"], "name": source},
                                              "destination": {"namespace": list(space), "name": destination}})
    assert rename("old", "new", ("vw", "deep")).status == 204
    assert rest.head(ns + "/views/old").status == 404
    assert rest.get("/v1/namespaces/%s/views/new" % segment("vw\x1fdeep")).json == made
    create(rest, ns, "old")
    create(rest, ns, "other")
    error(rename("old", "other"), 409, "AlreadyExistsException", "Cannot rename vw.old to vw.other. View already exists")
    assert rest.post(ns + "/tables", {"name": "tt", "schema": SCHEMA}).status == 200
    error(rename("old", "tt"), 409, "AlreadyExistsException", "Cannot rename vw.old to vw.tt. Table already exists")
    error(rename("nope", "x"), 404, "NoSuchViewException", "View does not exist: vw.nope")
    error(rename("tt", "x"), 404, "NoSuchViewException")
    error(rename("old", "x", ("nobody",)), 404, "NoSuchNamespaceException")


def test_drop_and_register(daemon, rest, ns):
    made = create(rest, ns, "reg").json
    where = made["metadata-location"]
    target = ns + "/register-view"
    error(rest.post(target, {"name": "reg", "metadata-location": where}), 409, "AlreadyExistsException", "View already exists: vw.reg")
    error(rest.post(target, {"name": "reg2", "metadata-location": where}), 409, "AlreadyExistsException")
    assert rest.delete(ns + "/views/reg").status == 204
    error(rest.delete(ns + "/views/reg"), 404, "NoSuchViewException")
    r = rest.post(target, {"name": "reg", "metadata-location": where})
    assert r.status == 200 and r.json == made
    assert replace(rest, ns, "reg", *add(sql("select 2"))).status == 200
    # Iceberg Java gzips view metadata; members that nobody knows yet survive a commit.
    doc = {**made["metadata"], "view-uuid": str(uuid.uuid4()), "location": made["metadata"]["location"] + "-packed", "of-tomorrow": {"x": [1, 2]}}
    packed = os.path.join(daemon.warehouse, "00003-%s.gz.metadata.json" % uuid.uuid4())
    with open(packed, "wb") as f:
        f.write(gzip.compress(json.dumps(doc).encode()))
    r = rest.post(target, {"name": "packed", "metadata-location": "file://" + packed})
    assert r.status == 200 and r.json["metadata"] == doc, r
    r = replace(rest, ns, "packed", *add(sql("select 3")))
    assert r.json["metadata"]["of-tomorrow"] == {"x": [1, 2]} and "/00004-" in r.json["metadata-location"]
    for name, text in (("a", "{"), ("b", '{"format-version":1}'), ("c", json.dumps({**doc, "format-version": 2})),
                       ("d", json.dumps({**doc, "current-version-id": 1234}))):
        bad = os.path.join(daemon.warehouse, name + ".metadata.json")
        with open(bad, "w") as f:
            f.write(text)
        got = rest.post(target, {"name": "n", "metadata-location": "file://" + bad})
        assert got.status in (400, 406), got
    for bad in ("/etc/passwd", "s3://b/m.json", ""):
        assert rest.post(target, {"name": "n", "metadata-location": bad}).status == 400
    gone = "file://%s/none.metadata.json" % daemon.warehouse
    error(rest.post(target, {"name": "n", "metadata-location": gone}), 404, "NotFoundException", gone)
    assert rest.post(ns + "/tables", {"name": "tx", "schema": SCHEMA}).status == 200
    error(rest.post(target, {"name": "tx", "metadata-location": where}), 409, "AlreadyExistsException", "Table with same name already exists")
    error(rest.post("/v1/namespaces/nobody/register-view", {"name": "n", "metadata-location": where}), 404, "NoSuchNamespaceException")


@pytest.mark.parametrize("size", [10, 400000])
def test_packed_metadata(daemon, rest, ns, size):
    """Gzipped when the property says so, as Iceberg Java does with views, in the loop or by the pool. (case BC-044)"""
    codec = "write.metadata.compression-codec"
    name = "gz%d" % size
    made = create(rest, ns, name, properties={codec: "GZIP", "long": "x" * size}).json
    for n, got in enumerate((made, replace(rest, ns, name, *add(sql("select 2"))).json)):
        assert got["metadata-location"].endswith(".gz.metadata.json") and "/%05d-" % n in got["metadata-location"]
        with gzip.open(local(got["metadata-location"])) as f:
            assert json.load(f) == got["metadata"]
    assert rest.get(ns + "/views/" + name).json == got
    plain = replace(rest, ns, name, {"action": "set-properties", "updates": {codec: "none"}}).json
    assert not plain["metadata-location"].endswith(".gz.metadata.json")
    with open(local(plain["metadata-location"])) as f:
        assert json.load(f) == plain["metadata"]
    for refused in (replace(rest, ns, name, {"action": "set-properties", "updates": {codec: "zstd"}}),
                    rest.post(ns + "/views", {"name": "never", "schema": SCHEMA, "view-version": version(), "properties": {codec: "lz4"}})):
        assert refused.status == 400 and codec in refused.error["message"], refused
    doc = {**plain["metadata"], "view-uuid": str(uuid.uuid4()), "properties": {codec: "zstd"}}
    where = os.path.join(daemon.warehouse, "%s.metadata.json" % uuid.uuid4())
    with open(where, "w") as f:
        json.dump(doc, f)
    refused = rest.post(ns + "/register-view", {"name": "never", "metadata-location": "file://" + where})
    assert refused.status == 400 and codec in refused.error["message"], refused
    assert rest.get(ns + "/views/" + name).json == plain


def test_more_than_a_view_has(daemon, rest, ns):
    """Every count is bounded: what would be looked through for long is refused at once, and nothing is changed."""
    made = create(rest, ns, "big").json
    many = {"k%06d" % i: "v" for i in range(150000)}
    some = {"k%06d" % i: "v" for i in range(1000)}
    reps = [sql("x", "d%d" % i) for i in range(1100)]
    began = time.monotonic()
    for updates in ([{"action": "set-properties", "updates": many}], [{"action": "set-properties", "updates": some}] * 1100,
                    [{"action": "set-properties", "updates": some}, {"action": "set-properties", "updates": {"m%d" % i: "" for i in range(30)}}],
                    [{"action": "remove-properties", "removals": list(many)[:2000]}], add(*reps),
                    [u for i in range(1025) for u in add(sql("select %d" % i), n=i + 2)[:1]],
                    [{"action": "add-view-version", "view-version": version(n=3, **{"default-namespace": ["a"] * 1025})}]):
        got = replace(rest, ns, "big", *updates)
        assert 400 <= got.status < 500, (str(updates)[:60], got.status)
    for change in ({"properties": many}, {"view-version": version(*reps)}, {"properties": {"long": "x" * (5 << 20)}}):
        body = {"name": "big2", "schema": SCHEMA, "view-version": version(), "properties": {}, **change}
        assert 400 <= rest.post(ns + "/views", body).status < 500
    assert time.monotonic() - began < 20, "looked through for long"
    assert rest.get(ns + "/views/big").json == made and rest.head(ns + "/views/big2").status == 404
    assert replace(rest, ns, "big", {"action": "set-properties", "updates": some}).status == 200


def test_where_metadata_lies(daemon, rest, ns):
    own = "file://%s/elsewhere" % daemon.warehouse
    made = create(rest, ns, "placed", location=own + "/v/", properties={"write.metadata.path": own + "/meta/"}).json
    assert made["metadata"]["location"].rstrip("/") == own + "/v" and made["metadata-location"].startswith(own + "/meta/00000-")


def test_register_of_what_the_cleaner_knows(rest, ns, conninfo):
    """A queued file is had out of the queue; one that is being deleted is to be asked for later, with the same key too."""
    made = create(rest, ns, "queued").json
    assert rest.delete(ns + "/views/queued").status == 204

    def rows(text):
        return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", text], check=True, capture_output=True,
                              text=True).stdout.strip()
    rows("INSERT INTO frazil.object (path, table_id, epoch, state, since_ms) VALUES ('%s', '%s', -1, 3, frazil.now_ms())"
         % (made["metadata-location"], made["metadata"]["view-uuid"]))
    body, k = {"name": "queued", "metadata-location": made["metadata-location"]}, key()
    keyed = Keyed("http://%s:%d" % (rest.host, rest.port))
    for _ in range(2):
        got = keyed.send(k, "POST", ns + "/register-view", body)
        assert error(got, 429, "TooManyRequestsException") and got.headers["Retry-After"], got
        assert rest.head(ns + "/views/queued").status == 404
    rows("UPDATE frazil.object SET state = 2 WHERE path = '%s'" % made["metadata-location"])
    assert keyed.send(k, "POST", ns + "/register-view", body).json == made
    assert rows("SELECT count(*) FROM frazil.object WHERE path = '%s'" % made["metadata-location"]) == "0"


def test_pages(rest):
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["paged"]})
    for i in range(5):
        create(rest, "/v1/namespaces/paged", "v%d" % i)
    names, token = [], ""
    while token is not None:
        page = rest.get("/v1/namespaces/paged/views", pageToken=token, pageSize=2).json
        names += [i["name"] for i in page["identifiers"]]
        token = page.get("next-page-token")
    assert names == ["v%d" % i for i in range(5)]


def test_loads_of_known_versions(daemon, rest, ns):
    """A version is read once; whoever has it is told so, packed or plain, until there is another."""
    made = create(rest, ns, "known").json
    raw, at = daemon.rest, ns + "/views/known"

    def reads():
        text = daemon.admin.get("/metrics").body.decode()
        return float(next(t for t in text.splitlines() if t.startswith("frazil_metadata_cache_reads_total")).split()[1])
    first = raw.raw("GET", at)
    assert first.status == 200 and first.json == made and "Accept-Encoding" in first.headers["Vary"]
    packed = raw.raw("GET", at, None, {"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == first.body
    tags = [first.headers["ETag"], packed.headers["ETag"]]
    assert tags[0] != tags[1] and all(t[0] == t[-1] == '"' for t in tags)
    before = reads()
    for etag in (*tags, "W/" + tags[0], '"other", ' + tags[1], "*"):
        got = raw.raw("GET", at, None, {"If-None-Match": etag})
        assert got.status == 304 and not got.body and got.headers["ETag"] in tags, (etag, got)
        assert raw.raw("GET", at, None, {"If-None-Match": etag, "Accept-Encoding": "gzip"}).status == 304
    for etag in ('"other"', tags[0][1:-1]):
        assert raw.raw("GET", at, None, {"If-None-Match": etag}).body == first.body
    assert reads() == before
    changed = replace(rest, ns, "known", *add(sql("select 2"), n=2)).json
    for etag in tags:
        got = raw.raw("GET", at, None, {"If-None-Match": etag})
        assert got.status == 200 and got.json == changed and got.headers["ETag"] not in tags
    # Another daemon tells the same.
    daemon.restart(kill=True)
    again = raw.raw("GET", at, None, {"If-None-Match": got.headers["ETag"]})
    assert again.status == 304
    # The file is asked for all the same.
    os.unlink(local(changed["metadata-location"]))
    time.sleep(0.05)
    error(raw.raw("GET", at, None, {"If-None-Match": got.headers["ETag"]}), 404, "NotFoundException")
    assert rest.delete(at).status == 204


def test_missing_file(rest, ns):
    made = create(rest, ns, "lost").json
    os.unlink(local(made["metadata-location"]))
    error(rest.get(ns + "/views/lost"), 404, "NotFoundException", made["metadata-location"])
    assert rest.delete(ns + "/views/lost").status == 204


def test_pyiceberg(daemon, rest, ns):
    create(rest, ns, "py")
    c = RestCatalog("c", uri=daemon.uri)
    assert c.view_exists("vw.py") and ("vw", "py") in [tuple(v) for v in c.list_views("vw")]
    c.drop_view("vw.py")
    assert not c.view_exists("vw.py")
