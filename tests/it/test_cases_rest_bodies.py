"""Failures that other catalogs had with bodies, views, tags and headers of REST clients, as checks of this one."""

import concurrent.futures
import json
import os
import socket
import threading
import uuid

import pytest
from pyiceberg.catalog.rest import RestCatalog

from support.catalog import SCHEMA, Space, column, document, error, local, set_properties, struct, version

REFUSALS = ("BadRequestException", "ValidationException", "IllegalArgumentException", "UnsupportedOperationException", "ForbiddenException")


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    return str(tmp_path_factory.mktemp("second"))


@pytest.fixture(scope="module")
def settings(second):
    return {"warehouse.extra": "two=file://" + second}


@pytest.fixture(scope="module")
def ns(daemon):
    return Space(daemon, "bodies")


def nulls(value, at=""):
    """Paths of every null within."""
    if value is None:
        yield at
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from nulls(inner, "%s.%s" % (at, key))


@pytest.mark.parametrize("v", [2, 3])
def test_nulls(ns, v):
    """case BC-007: null is as good as absent on the way in, and nothing that clients must parse is null on the way out."""
    may = {".config", ".storage-credentials", ".next-page-token", ".metadata.current-snapshot-id"}
    name = "nulls%d" % v
    body = {"name": name, "schema": SCHEMA, "location": None, "partition-spec": None, "write-order": None, "stage-create": None, "properties": None}
    if v == 3:
        body["properties"] = {"format-version": "3"}
    made = ns.rest.want(200, "POST", ns.at + "/tables", body)
    assert set(nulls(made.json)) <= may and set(nulls(document(made.json["metadata-location"]), ".metadata")) <= may
    got = ns.commit(name, set_properties(k="v"))
    assert set(nulls(got.json)) <= may and set(nulls(ns.load(name))) <= may
    got = ns.rest.want(200, "POST", ns.table(name), {"identifier": None, "requirements": [], "updates": [
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": None, "identifier-field-ids": None}, "last-column-id": None},
        {"action": "add-spec", "spec": {"spec-id": None, "fields": []}}]})
    assert set(nulls(got.json)) <= may
    where = got.json["metadata-location"]
    ns.rest.want(204, "DELETE", ns.table(name))
    got = ns.rest.want(200, "POST", ns.at + "/register", {"name": name, "metadata-location": where, "overwrite": None})
    assert set(nulls(got.json)) <= may
    view = {"name": "view%d" % v, "schema": SCHEMA, "view-version": {**version(), "default-catalog": None}, "properties": None, "location": None}
    assert not set(nulls(ns.rest.want(200, "POST", ns.at + "/views", view).json)) - may
    assert not set(nulls(ns.rest.get(ns.view("view%d" % v)).json)) - may
    got = ns.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["nul%d" % v], "properties": None})
    assert not set(nulls(got.json)) and not set(nulls(ns.rest.get("/v1/namespaces/nul%d" % v).json))
    assert set(nulls(ns.rest.get("/v1/namespaces").json)) <= may and set(nulls(ns.rest.get("/v1/config").json)) <= may


@pytest.mark.parametrize("v", [2, 3])
def test_tables_without_rows(daemon, ns, v):
    """case BC-008: what a reader looks for is there, and no snapshot is no snapshot however it is said."""
    name = "empty%d" % v
    made = ns.create(name, version=v).json
    for md in (made["metadata"], document(made["metadata-location"]), ns.meta(name)):
        for key in ("snapshots", "snapshot-log", "metadata-log"):
            assert md[key] == [], key
        assert md["refs"] == {} and md["properties"] is not None and "current-snapshot-id" in md
        assert md["current-snapshot-id"] is None if v == 3 else md["current-snapshot-id"] in (None, -1)
    assert RestCatalog("c", uri=daemon.uri).load_table("bodies." + name).current_snapshot() is None
    for n, said in enumerate((-1, None, ...)):
        doc = {**made["metadata"], "table-uuid": str(uuid.uuid4())}
        doc["location"] = "%s-%d" % (doc["location"], n)
        doc["current-snapshot-id"] = said
        if said is ...:
            del doc["current-snapshot-id"]
        path = os.path.join(daemon.warehouse, "%s-%d.metadata.json" % (name, n))
        with open(path, "w") as f:
            json.dump(doc, f)
        other = "%s_%d" % (name, n)
        ns.rest.want(200, "POST", ns.at + "/register", {"name": other, "metadata-location": "file://" + path})
        assert RestCatalog("c", uri=daemon.uri).load_table("bodies." + other).current_snapshot() is None
        ns.commit(other, set_properties(k="v"), requirements=[{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}])


def views(*updates, **more):
    return {"requirements": [], "updates": list(updates), **more}


def test_versions_of_views(ns):
    """case BC-036: an equal version is the old one, made current again at the time of now."""
    first = ns.create_view("vers", "select 1").json["metadata"]
    add = [{"action": "add-view-version", "view-version": version("select 2", n=5)}, {"action": "set-current-view-version", "view-version-id": -1}]
    assert ns.rest.want(200, "POST", ns.view("vers"), views(*add)).json["metadata"]["current-version-id"] == 2
    back = [{"action": "add-schema", "schema": first["schemas"][0]},
            {"action": "add-view-version", "view-version": version("select 1", n=6, schema=-1)},
            {"action": "set-current-view-version", "view-version-id": -1}]
    md = ns.rest.want(200, "POST", ns.view("vers"), views(*back)).json["metadata"]
    assert md["current-version-id"] == 1 and [v["version-id"] for v in md["versions"]] == [1, 2] and len(md["schemas"]) == 1
    log = [e["timestamp-ms"] for e in md["version-log"]]
    assert [e["version-id"] for e in md["version-log"]] == [1, 2, 1] and log == sorted(log) and log[2] > 1750000000000
    wider = struct(*SCHEMA["fields"], column(3, "x", "int"))
    other = [{"action": "add-schema", "schema": wider}, {"action": "add-view-version", "view-version": version("select 1", n=7, schema=-1)},
             {"action": "set-current-view-version", "view-version-id": -1}]
    md = ns.rest.want(200, "POST", ns.view("vers"), views(*other)).json["metadata"]
    assert md["current-version-id"] == 3 and md["versions"][-1]["schema-id"] == 1 and "-1" not in json.dumps(md["versions"])


def test_views_and_tables_of_one_name(daemon, ns):
    """case BC-037: optional members, locations, and a name that only one of them may have."""
    body = {"name": "bare", "schema": SCHEMA, "view-version": version()}
    ns.rest.want(200, "POST", ns.at + "/views", body)
    place = "file://%s/moved/bare" % daemon.warehouse
    md = ns.rest.want(200, "POST", ns.view("bare"), views({"action": "set-location", "location": place + "/"})).json
    assert md["metadata"]["location"].rstrip("/") == place and md["metadata-location"].startswith(place + "/metadata/")
    for bad in ("file:///etc/v", "s3://b/v", "", "file://%s/../v" % daemon.warehouse):
        assert error(ns.rest.post(ns.view("bare"), views({"action": "set-location", "location": bad})), 400)["type"] in REFUSALS
    files = ns.stored()
    error(ns.create("bare", want=409), 409, "AlreadyExistsException")
    ns.create("tab")
    before = ns.stored()
    error(ns.create_view("tab", want=409), 409, "AlreadyExistsException")
    assert ns.stored() == before and set(before) > set(files)

    def one(n):
        if n % 2:
            return ns.rest.post(ns.at + "/tables", {"name": "both", "schema": SCHEMA})
        return ns.rest.post(ns.at + "/views", {"name": "both", "schema": SCHEMA, "view-version": version()})
    with concurrent.futures.ThreadPoolExecutor(25) as pool:
        got = list(pool.map(one, range(50)))
    assert sorted(r.status for r in got) == [200] + [409] * 49
    assert (ns.names() + ns.names("views")).count("both") == 1


def test_tags_of_representations(ns):
    """case BC-038: a tag stands for one body; 304 is said to who has that one, and says the tag again."""
    ns.create("tagged")
    whole, cut = ns.rest.get(ns.table("tagged"), snapshots="all"), ns.rest.get(ns.table("tagged"), snapshots="refs")
    tags = {"all": whole.headers["ETag"], "refs": cut.headers["ETag"]}
    assert tags["all"] != tags["refs"]

    def ask(snapshots, match):
        return ns.rest.call("GET", ns.table("tagged"), headers={"If-None-Match": match}, snapshots=snapshots)
    for which, other in (("all", "refs"), ("refs", "all")):
        assert ask(which, tags[other]).status == 200 and ask(which, '"x"').status == 200
        for match in (tags[which], "W/" + tags[which], '"x", W/' + tags[which], '"a","b" , ' + tags[which], "*"):
            got = ask(which, match)
            assert got.status == 304 and got.headers["ETag"] == tags[which] and got.body == b"", (match, got)
    for broken in ('"', "W/", tags["all"][:-1], tags["all"].strip('"'), ",,,", '"a\\", ' + tags["all"]):
        assert ask("all", broken).status in (200, 304)
    ns.commit("tagged", set_properties(k="v"))
    for which in tags:
        got = ask(which, tags[which])
        assert got.status == 200 and got.headers["ETag"] not in tags.values()


def raw(daemon, *lines, body=b""):
    """(status, head, body) of a request of these lines."""
    with socket.create_connection(("127.0.0.1", daemon.rest_port)) as s:
        s.settimeout(30)
        s.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        got = b""
        while more := s.recv(65536):
            got += more
    head, body = got.split(b"\r\n\r\n", 1)
    return int(head.split()[1]), head, body


@pytest.mark.parametrize("lines", [
    [b"X-Iceberg-Access-Delegation: vended-credentials, remote-signing"], [b"X-Iceberg-Access-Delegation: remote-signing,foo"],
    [b"X-Iceberg-Access-Delegation: vended-credentials", b"X-Iceberg-Access-Delegation: remote-signing"],
    [b"x-iceberg-access-delegation: vended-credentials\xff"], [b"X-Iceberg-Access-Delegation: " + b"," * 8192], [b"X-Iceberg-Access-Delegation:"],
    [b"X-Iceberg-Access-Delegation: \x80\x81, ,,vended-credentials"]])
def test_delegation_headers(daemon, ns, lines):
    """case BC-041: whatever the list says, it is a list; a warehouse of files has nothing to delegate."""
    if "deleg" not in ns.names():
        ns.create("deleg")
    for target in (ns.table("deleg"), "/v1/config"):
        status, _, body = raw(daemon, b"GET " + target.encode() + b" HTTP/1.1", b"Host: h", b"Connection: close", *lines)
        assert status in (200, 400), body
        got = json.loads(body)
        assert status == 400 or target == "/v1/config" or (got["config"] == {} and not got.get("storage-credentials"))


def test_reports_and_docs(ns):
    """case BC-047"""
    md = ns.create("rep", schema=struct(column(1, "a", doc=None), column(2, "b", doc="text"))).json["metadata"]
    assert "doc" not in md["schemas"][0]["fields"][0] and md["schemas"][0]["fields"][1]["doc"] == "text"
    target = ns.table("rep") + "/metrics"
    good = {"report-type": "commit-report", "table-name": "bodies.rep", "snapshot-id": 1, "sequence-number": 1, "operation": "append", "metrics": {}}
    assert ns.rest.post(target, good).status == 204
    assert ns.rest.post(target, {"report-type": "of-nobody", "x": [1]}).status == 204
    assert ns.rest.post(target, {**good, "metadata": {"k": "v" * (5 << 20)}}).status in (204, 413)
    for bad in (b"[]", b"{", b"", b"null", b'{"report-type":1}', b'"x"'):
        error(ns.rest.raw("POST", target, bad, {"Content-Type": "application/json"}), 400, "BadRequestException")


def test_who_is_not_asked_does_not_purge(daemon, ns):
    """case BC-050: without a plain true no file goes."""
    for n, query in enumerate(("", "?purgeRequested=false", "?purgeRequested=False", "?purgeRequested=FALSE")):
        made = ns.create("drop%d" % n).json
        folder = os.path.dirname(local(made["metadata-location"]))
        files = sorted(os.listdir(folder))
        ns.rest.want(204, "DELETE", ns.table("drop%d" % n) + query)
        assert sorted(os.listdir(folder)) == files
        ns.rest.want(200, "POST", ns.at + "/register", {"name": "drop%d" % n, "metadata-location": made["metadata-location"]})
        assert ns.load("drop%d" % n) == made
    for bad in ("yes", "1", "tru", "true false", "null"):
        error(ns.rest.delete(ns.table("drop0"), purgeRequested=bad), 400, "BadRequestException", "purgeRequested")
    assert ns.rest.head(ns.table("drop0")).status == 204


# ---- what must not be reached or told

def test_nothing_else_is_opened(daemon, ns, tmp_path):
    """case BC-216, case BC-203: no URI of a request makes the daemon connect or read elsewhere, and no text of a file is told."""
    secret = tmp_path / "x.metadata.json"
    secret.write_text('{"format-version": 2, "marker": "swordfish"}')
    hits = []
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(5)
        port = s.getsockname()[1]

        def serve():
            try:
                while True:
                    hits.append(s.accept()[1])
            except OSError:
                pass
        watching = threading.Thread(target=serve, daemon=True)
        watching.start()
        os.symlink(str(secret), os.path.join(daemon.warehouse, "link.metadata.json"))
        os.symlink(str(tmp_path), os.path.join(daemon.warehouse, "linked"))
        ns.create("canary")
        before = ns.load("canary")
        bads = ["file://%s" % secret, "http://127.0.0.1:%d/x" % port, "https://127.0.0.1:%d/x" % port, "ftp://127.0.0.1:%d/x" % port,
                "s3://other/x", "S3://other/x", "s3://b@evil/x", "s3://127.0.0.1:%d/x" % port, "file://127.0.0.1:%d/x" % port, str(secret),
                "hdfs://127.0.0.1:%d/x" % port, "jdbc:x", "file:/etc/passwd", "\\\\127.0.0.1\\x",
                "file://%s/link.metadata.json" % daemon.warehouse, "file://%s/linked/x.metadata.json" % daemon.warehouse]
        for bad in bads:
            for target in ("/register", "/register-view"):
                got = ns.rest.post(ns.at + target, {"name": "never", "metadata-location": bad})
                assert got.status in (400, 403, 404), (bad, got)
                assert b"swordfish" not in got.body and b"root:" not in got.body
            snapshot = ns.snapshot("canary", 1, **{"manifest-list": bad})
            got = ns.rest.post(ns.table("canary"), {"requirements": [], "updates": snapshot})
            assert got.status in (400, 403), (bad, got)
            assert b"swordfish" not in got.body
        s.shutdown(socket.SHUT_RDWR)
    watching.join(5)
    assert hits == [] and ns.load("canary") == before


def test_hosts_change_nothing(daemon, ns):
    """case BC-217, case BC-234: what a client or a proxy calls the server is in no answer."""
    if "hosts" not in ns.names():
        ns.create("hosts")
    lists = ([b"Host: evil.example"], [b"Host: evil.example:443"], [b"Host: [::1]:8181"], [b"Host: 127.0.0.1:8181", b"X-Forwarded-Host: evil.example"],
             [b"hOST: h", b"X-Forwarded-Port: 443", b"x-forwarded-proto: https"], [b"Host: h", b"Forwarded: host=evil.example"],
             [b"Host: h", b"aUTHORIZATION: bearer x"], [b"Host: h", b"X-Iceberg-Access-Delegation:"], [b"Host: h", b"If-None-Match:"],
             [b"Host: h", b"Accept-Encoding:"], [b"Host: h", b"Content-Type:"])
    for target in (b"/v1/config", ns.table("hosts").encode()):
        seen = set()
        for lines in lists:
            status, head, body = raw(daemon, b"GET " + target + b" HTTP/1.1", b"Connection: close", *lines)
            assert status == 200 and b"evil" not in head + body, (lines, body)
            seen.add(body)
        assert len(seen) == 1
    for lines in ([], [b"Host: a", b"Host: a"], [b"Host: a", b"hOSt: b"]):
        status, head, body = raw(daemon, b"GET /v1/config HTTP/1.1", b"Connection: close", *lines)
        assert status == 400 and json.loads(body)["error"]["code"] == 400 and b"application/json" in head


def test_tags_of_warehouses(daemon, ns):
    """case BC-207: the tag of one warehouse's table says nothing in another."""
    ns.create("shared")
    tag = ns.rest.get(ns.table("shared")).headers["ETag"]
    rest = daemon.rest
    rest.want(200, "POST", "/v1/two/namespaces", {"namespace": ns.levels})
    rest.want(200, "POST", "/v1/two/namespaces/bodies/tables", {"name": "shared", "schema": SCHEMA})
    got = rest.call("GET", "/v1/two/namespaces/bodies/tables/shared", headers={"If-None-Match": tag})
    assert got.status == 200 and got.headers["ETag"] != tag


def test_nothing_inner_is_told(make_daemon, postgres, tmp_path):
    """case BC-209: neither answers nor the log hold a password, SQL, or what a client sent as its credentials."""
    database = postgres.database()
    d = make_daemon(database + " password=sesame-open", settings={"log.level": "debug"})
    ns = Space(d, "inner")
    made = ns.create("t").json
    bodies = []
    for target in ("/v1/config", ns.table("t"), ns.table("nope"), "/v1/nope", ns.at + "/tables?pageToken=%27;--"):
        bodies.append(d.rest.call("GET", target, headers={"Authorization": "Bearer open-barley", "Cookie": "a=open-barley"}).body)
    bodies.append(d.rest.call("POST", "/v1/oauth/tokens", headers={"Authorization": "Basic b3Blbi1iYXJsZXk="}).body)
    with open(local(made["metadata-location"]), "w") as f:
        f.write('{"swordfish": ')
    d.restart()
    got = d.rest.get(ns.table("t"))
    assert got.status >= 400
    bodies.append(got.body)
    text = b"".join(bodies)
    for marker in (b"sesame-open", b"open-barley", b"b3Blbi1iYXJsZXk", b"SELECT", b"frazil.", b"swordfish"):
        assert marker not in text, marker
    for marker in ("sesame-open", "open-barley", "b3Blbi1iYXJsZXk", "swordfish"):
        assert marker not in d.log(), marker
    with open(local(made["metadata-location"]), "w") as f:
        json.dump(made["metadata"], f)


def test_a_broken_file_is_no_success(daemon, ns):
    """case BC-227: what cannot be served whole is an error, never a shortened 200."""
    for n, spoil in enumerate((lambda t: t[:-5], lambda t: t[:len(t) // 2], lambda t: "", lambda t: t + "}", lambda t: t.replace("{", "[", 1),
                               lambda t: t.replace('"schemas"', '"scheme"', 1), lambda t: "\0" * len(t))):
        made = ns.create("spoilt%d" % n).json
        path = local(made["metadata-location"])
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(spoil(text))
    daemon.restart()
    for n in range(7):
        got = ns.rest.get(ns.table("spoilt%d" % n))
        assert got.status == 500 and got.error["type"] == "CorruptFileException", got
        assert int(got.headers["Content-Length"]) == len(got.body)
        got = ns.rest.post(ns.table("spoilt%d" % n), {"requirements": [], "updates": [set_properties(k="v")]})
        assert got.status in (409, 500), got
        ns.rest.want(204, "DELETE", ns.table("spoilt%d" % n))
    assert "st=CORRUPT" in daemon.log()


DEFAULTS = [("int", 7, 8), ("string", "", "x"), ("decimal(9, 2)", "14.20", "0.01"), ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000000"),
            ("date", "2024-02-29", "1969-12-31"), ("binary", "00ff", ""), ("boolean", False, True), ("long", -9223372036854775808, 9007199254740993)]


def test_defaults_stay(daemon):
    """case BC-030: defaults are the same after creation, commits, loads and register."""
    ns = Space(daemon, "defaults")
    ns.rest = daemon.rest  # the specification's schema wants a number to be of one type alone, which no number is
    fields = [column(1, "id")] + [column(i + 2, "c%d" % i, kind, initial_default=first, write_default=first) for i, (kind, first, _) in enumerate(DEFAULTS)]
    made = ns.create("defaults", version=3, schema=struct(*fields)).json

    def same(md, written=1):
        schema = next(s for s in md["schemas"] if s["schema-id"] == md["current-schema-id"])
        got = [(f["initial-default"], f["write-default"]) for f in schema["fields"][1:1 + len(DEFAULTS)]]
        assert got == [(d[1], d[written]) for d in DEFAULTS] and [type(g[0]) for g in got] == [type(d[1]) for d in DEFAULTS]
        return schema["fields"]
    for md in (made["metadata"], ns.meta("defaults"), document(made["metadata-location"])):
        kept = same(md)
    current = {"action": "set-current-schema", "schema-id": -1}
    where = ns.commit("defaults", set_properties(k="v")).json["metadata-location"]
    same(ns.meta("defaults"))
    ns.rest.want(204, "DELETE", ns.table("defaults"))
    same(ns.rest.want(200, "POST", ns.at + "/register", {"name": "defaults", "metadata-location": where}).json["metadata"])
    changed = [kept[0]] + [{**f, "write-default": DEFAULTS[i][2]} for i, f in enumerate(kept[1:])] + [column(made["metadata"]["last-column-id"] + 1, "new")]
    same(ns.commit("defaults", {"action": "add-schema", "schema": struct(*changed)}, current).json["metadata"], 2)
    same(document(ns.load("defaults")["metadata-location"]), 2)
    for kind, value in (("geometry", "POINT (1 2)"), ("geography", "POINT (1 2)"), ("variant", {}), ("unknown", 1)):
        bad = struct(column(1, "id"), column(2, "g", kind, initial_default=value))
        error(ns.create("never", want=400, version=3, schema=bad), 400)
        ns.create("null-" + kind, version=3, schema=struct(column(1, "id"), column(2, "g", kind, initial_default=None, write_default=None)))
