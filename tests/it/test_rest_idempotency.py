"""Idempotency-Key: the effect once, the answer again (REST specification, parameter idempotency-key)."""

import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import threading
import time
import uuid

import pytest

from support.keyed import Keyed, key, same

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


def properties(**kv):
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": kv}]}


@pytest.fixture
def rest(daemon):
    return Keyed(daemon.uri)


@pytest.fixture
def ns(rest):
    """A namespace of the test's own: its path."""
    name = "n" + os.urandom(6).hex()
    rest.want(200, "POST", "/v1/namespaces", {"namespace": [name]})
    return name


def sql(conninfo, text):
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", text],
                          check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout.strip()


def metric(daemon, outcome):
    text = daemon.admin.get("/metrics").body.decode()
    line = [t for t in text.splitlines()
            if t.startswith('frazil_idempotency_answers_total{outcome="%s"}' % outcome)]
    return float(line[0].split()[1])


def table_updates(location):
    """What a client sends to create a table by a commit."""
    return [{"action": "assign-uuid", "uuid": str(uuid.uuid4())},
            {"action": "upgrade-format-version", "format-version": 3},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": {}}]


def view(name):
    return {"name": name, "schema": SCHEMA, "properties": {},
            "view-version": {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {},
                             "default-namespace": ["x"],
                             "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}}


# ---------------------------------------------------------------- advertised

def test_lifetime_is_advertised(rest):
    assert rest.get("/v1/config").json["idempotency-key-lifetime"] == "PT30M"


@pytest.mark.parametrize("ms,text", [(1000, "PT1S"), (90500, "PT90.500S"), (0, None)])
def test_lifetime_as_configured(make_daemon, ms, text):
    d = make_daemon(settings={"rest.idempotency-lifetime-ms": ms})
    assert d.rest.get("/v1/config").json.get("idempotency-key-lifetime") == text
    if ms == 0:
        # Not advertised, not looked at: not even a key that is none.
        got = Keyed(d.uri).send("nonsense", "POST", "/v1/namespaces", {"namespace": ["a"]})
        assert got.status == 200


@pytest.mark.parametrize("bad", ["", "x", "017F22E2-79B0-7CC3-98C4-DC0C0C07398", str(uuid.uuid4()),
                                 "017F22E279B07CC398C4DC0C0C07398F",
                                 "{17F22E2-79B0-7CC3-98C4-DC0C0C07398F", str(uuid.uuid1()),
                                 "017F22E2-79B0-7CC3-18C4-DC0C0C07398F"])
def test_key_must_be_a_uuid_of_version_7(rest, ns, bad):
    # case BC-153
    got = rest.send(bad, "DELETE", "/v1/namespaces/" + ns)
    assert got.status == 400 and got.error["message"].startswith("Idempotency-Key"), got
    assert rest.get("/v1/namespaces/" + ns).status == 200
    # Reads do not look at it.
    assert rest.send(bad, "GET", "/v1/namespaces/" + ns).status == 200
    assert rest.send(bad, "HEAD", "/v1/namespaces/" + ns).status == 204


def test_case_of_a_key_does_not_matter(rest):
    k, body = key(), {"namespace": ["n" + os.urandom(6).hex()]}
    first = rest.send(k.lower(), "POST", "/v1/namespaces", body)
    assert first.status == 200
    same(first, rest.send(k.upper(), "POST", "/v1/namespaces", body))


# ---------------------------------------------------------------- the answer again

def test_every_mutation(rest, daemon):
    """Each would fail or make another thing if it were done twice."""
    name = "n" + os.urandom(6).hex()
    at = "/v1/namespaces/" + name
    made = []

    def twice(status, method, target, value=None):
        got, k = rest.twice(method, target, value)
        assert got.status == status, (method, target, got)
        made.append((got, k, method, target, value))
        return got

    twice(200, "POST", "/v1/namespaces", {"namespace": [name], "properties": {"a": "\u00e4\"\\", "b": "2"}})
    got = twice(200, "POST", at + "/properties", {"removals": ["b", "none"], "updates": {"c": "\u00e9"}})
    assert got.json == {"updated": ["c"], "removed": ["b"], "missing": ["none"]}
    table = twice(200, "POST", at + "/tables", {"name": "t", "schema": SCHEMA})
    twice(200, "POST", at + "/tables", {"name": "s", "schema": SCHEMA, "stage-create": True})
    twice(200, "POST", at + "/tables/t", properties(x="1"))
    twice(200, "POST", at + "/tables/t", properties(x="1"))  # changes nothing: another key, same state
    commit = properties(y="1")
    twice(204, "POST", "/v1/transactions/commit",
          {"table-changes": [{"identifier": {"namespace": [name], "name": "t"}, **commit}]})
    twice(200, "POST", at + "/tables/u", {
        "requirements": [{"type": "assert-create"}],
        "updates": table_updates("file://%s/made-%s" % (daemon.warehouse, name))})
    twice(204, "POST", "/v1/tables/rename", {"source": {"namespace": [name], "name": "t"},
                                             "destination": {"namespace": [name], "name": "t2"}})
    twice(204, "POST", "/v1/transactions/commit", {"table-changes": [
        {"identifier": {"namespace": [name], "name": "t2"}, **properties(m="1")},
        {"identifier": {"namespace": [name], "name": "u"}, **properties(m="1")}]})
    last = rest.get(at + "/tables/t2").json["metadata-location"]
    gone = twice(200, "POST", at + "/tables/t2/unregister")
    assert gone.json["metadata-location"] == last
    twice(200, "POST", at + "/register", {"name": "r", "metadata-location": last})
    twice(200, "POST", at + "/views", view("v"))
    twice(200, "POST", at + "/views/v", {
        "requirements": [], "updates": [{"action": "set-properties", "updates": {"z": "1"}}]})
    twice(204, "POST", "/v1/views/rename", {"source": {"namespace": [name], "name": "v"},
                                            "destination": {"namespace": [name], "name": "v2"}})
    last = rest.get(at + "/views/v2").json["metadata-location"]
    twice(204, "DELETE", at + "/views/v2")
    twice(200, "POST", at + "/register-view", {"name": "v3", "metadata-location": last})
    twice(204, "DELETE", at + "/views/v3")
    twice(204, "DELETE", at + "/tables/r")
    twice(204, "DELETE", at + "/tables/u?purgeRequested=true")
    twice(204, "DELETE", at)
    # Long after, and from another process: still what it was, not what has become of it.
    assert table.json["metadata"]["properties"].get("x") is None
    daemon.restart(kill=True)
    for got, k, method, target, value in made:
        rest.repeat(got, k, method, target, value)
    assert rest.get(at).status == 404


def test_the_original_answer_after_other_commits(rest, ns):
    at = "/v1/namespaces/%s/tables" % ns
    rest.want(200, "POST", at, {"name": "t", "schema": SCHEMA})
    first, k = rest.twice("POST", at + "/t", properties(n="1"))
    for i in range(2, 5):
        rest.want(200, "POST", at + "/t", properties(n=str(i)))
    rest.repeat(first, k, "POST", at + "/t", properties(n="1"))
    assert first.json["metadata"]["properties"]["n"] == "1"
    assert rest.get(at + "/t").json["metadata"]["properties"]["n"] == "4"
    rest.want(204, "DELETE", at + "/t")
    rest.repeat(first, k, "POST", at + "/t", properties(n="1"))


def test_gzip_answers(rest, ns, daemon):
    at = "/v1/namespaces/%s/tables" % ns
    rest.want(200, "POST", at, {"name": "t", "schema": SCHEMA})
    big = {"p%d" % i: "v" * 100 for i in range(2000)}
    zipped = {"Accept-Encoding": "gzip"}
    k, body = key(), json.dumps(properties(**big)).encode()
    plain = daemon.rest  # the other one reads JSON
    first = plain.raw("POST", at + "/t", body, {"Idempotency-Key": k, **zipped})
    assert first.status == 200 and first.headers["Content-Encoding"] == "gzip"
    same(first, plain.raw("POST", at + "/t", body, {"Idempotency-Key": k, **zipped}))


def test_errors_are_answers_too(rest, ns):
    at = "/v1/namespaces/" + ns
    rest.want(200, "POST", at + "/tables", {"name": "t", "schema": SCHEMA})
    made = []
    for status, method, target, value in (
            (409, "POST", "/v1/namespaces", {"namespace": [ns]}),
            (409, "DELETE", at, None),
            (409, "POST", at + "/tables", {"name": "t", "schema": SCHEMA}),
            (404, "DELETE", at + "/tables/none", None),
            (404, "POST", at + "/tables/none", properties(a="b")),
            (409, "POST", at + "/tables/t", {
                "requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}],
                "updates": []}),
            (400, "POST", at + "/tables/t", {"requirements": [], "updates": [{"action": "no such"}]}),
            (422, "POST", at + "/properties", {"removals": ["a"], "updates": {"a": "b"}})):
        got, k = rest.twice(method, target, value)
        assert got.status == status, (method, target, got)
        made.append((got, k, method, target, value))
    # What made them fail is gone; they are answered as before, and nothing happens.
    rest.want(204, "DELETE", at + "/tables/t")
    rest.want(204, "DELETE", at)
    for got, k, method, target, value in made:
        rest.repeat(got, k, method, target, value)
    assert rest.get(at).status == 404


# ---------------------------------------------------------------- what a key is bound to

def test_a_key_is_for_one_request(rest, ns, daemon):
    # case BC-153
    at = "/v1/namespaces/" + ns
    rest.want(200, "POST", at + "/tables", {"name": "t", "schema": SCHEMA})
    k, body = key(), properties(a="1")
    first = rest.send(k, "POST", at + "/tables/t", body)
    assert first.status == 200
    refused = metric(daemon, "refused")
    others = (("POST", at + "/tables/t", properties(a="2")),
              ("POST", at + "/tables/t?x=y", body),
              ("DELETE", at + "/tables/t", None),
              ("POST", at + "/tables/none", body),
              ("POST", "/v1/namespaces", {"namespace": ["other"]}))
    texts = set()
    for method, target, value in others:
        got = rest.send(k, method, target, value)
        assert got.status == 400, (method, target, got)
        texts.add(got.body)
    # One text for all of them: nothing of the first request shows.
    assert len(texts) == 1
    text = texts.pop()
    assert b"Idempotency-Key" in text and ns.encode() not in text
    assert metric(daemon, "refused") == refused + len(others)
    assert rest.get(at + "/tables/t").json["metadata"]["properties"]["a"] == "1"
    assert rest.get("/v1/namespaces/other").status == 404
    rest.repeat(first, k, "POST", at + "/tables/t", body)


# ---------------------------------------------------------------- at once, lost, killed

def test_twenty_at_once(rest, ns, daemon):
    # case BC-153
    at = "/v1/namespaces/" + ns
    table = rest.want(200, "POST", at + "/tables", {"name": "t", "schema": SCHEMA}).json
    for method, target, value in (("POST", at + "/tables/t", properties(a="1")),
                                  ("POST", at + "/tables", {"name": "u", "schema": SCHEMA}),
                                  ("DELETE", at + "/tables/t", None)):
        k = key()
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            got = list(pool.map(lambda _: rest.send(k, method, target, value), range(20)))
        assert got[0].status in (200, 204), got[0]
        for g in got[1:]:
            same(got[0], g)
        if value and "updates" in value:
            log = got[0].json["metadata"]["metadata-log"]
            assert [e["metadata-file"] for e in log] == [table["metadata-location"]], "one commit"
    assert metric(daemon, "replayed") >= 19 * 3


class Cut(threading.Thread):
    """A proxy for one request that throws its answer away."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.to = self.server.getsockname()[1], port
        self.answer = b""
        self.start()

    def run(self):
        client, _ = self.server.accept()
        with client, socket.create_connection(("127.0.0.1", self.to)) as there:
            def forward():
                while data := client.recv(65536):
                    there.sendall(data)
            threading.Thread(target=forward, daemon=True).start()
            self.answer = there.recv(65536)
            client.shutdown(socket.SHUT_RDWR)
        self.server.close()


def test_lost_answers(rest, ns, daemon):
    # case BC-131
    at = "/v1/namespaces/" + ns
    for method, target, value in (("POST", at + "/tables", {"name": "t", "schema": SCHEMA}),
                                  ("POST", at + "/tables/t", properties(a="1")),
                                  ("POST", "/v1/tables/rename", {
                                      "source": {"namespace": [ns], "name": "t"},
                                      "destination": {"namespace": [ns], "name": "t2"}}),
                                  ("POST", "/v1/transactions/commit", {"table-changes": [{
                                      "identifier": {"namespace": [ns], "name": "t2"},
                                      **properties(b="1")}]}),
                                  ("DELETE", at + "/tables/t2", None)):
        k, proxy = key(), Cut(daemon.rest_port)
        with pytest.raises((OSError, http.client.HTTPException)):
            Keyed("http://127.0.0.1:%d" % proxy.port).send(k, method, target, value)
        proxy.join(30)
        head, _, body = proxy.answer.partition(b"\r\n\r\n")
        got = rest.send(k, method, target, value)
        assert head.startswith(b"HTTP/1.1 %d" % got.status) and got.status in (200, 204), (head, got)
        if len(body) < 60000:
            assert got.body == body


def held(conninfo, lock):
    """A session that holds a lock until its input ends."""
    p = subprocess.Popen(["psql", "-XAtq", "-d", conninfo], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    p.stdin.write("BEGIN; %s; SELECT 'held';\n" % lock)
    p.stdin.flush()
    while p.stdout.readline().strip() != "held":
        assert p.poll() is None
    return p


def waiting(conninfo, n):
    end = time.monotonic() + 30
    while int(sql(conninfo, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")) < n:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("what", ["namespace", "table", "commit", "drop"])
def test_a_statement_that_outlives_its_daemon(make_daemon, postgres, what):
    """The first attempt's statement waits for a lock while its daemon is killed; the client repeats at
    the next daemon, before it is decided. It happens once, and both tell the same."""
    conninfo = postgres.database()
    d = make_daemon(conninfo)
    rest = Keyed(d.uri)
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["a"]})
    rest.want(200, "POST", "/v1/namespaces/a/tables", {"name": "t", "schema": SCHEMA})
    method, target, value, lock = {
        "namespace": ("POST", "/v1/namespaces", {"namespace": ["a", "b"]},
                      "SELECT FROM frazil.namespace FOR UPDATE"),
        "table": ("POST", "/v1/namespaces/a/tables", {"name": "u", "schema": SCHEMA},
                  "SELECT FROM frazil.namespace FOR UPDATE"),
        "commit": ("POST", "/v1/namespaces/a/tables/t", properties(x="1"),
                   "LOCK TABLE frazil.batch IN SHARE MODE"),
        "drop": ("DELETE", "/v1/namespaces/a/tables/t", None,
                 "SELECT FROM frazil.head FOR KEY SHARE"),
    }[what]
    k = key()
    session = held(conninfo, lock)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(rest.send, k, method, target, value)
        waiting(conninfo, 1)
        d.kill()
        with pytest.raises((OSError, http.client.HTTPException)):
            first.result(30)
        d.start()
        second = pool.submit(rest.send, k, method, target, value)
        time.sleep(0.5)
        session.stdin.close()
        session.wait(30)
        got = second.result(60)
    end = time.monotonic() + 30
    while got.status in (429, 500, 503, 504) and time.monotonic() < end:
        got = rest.send(k, method, target, value)
    assert got.status in (200, 204), got
    rest.repeat(got, k, method, target, value)
    assert sql(conninfo, "SELECT count(*) FROM frazil.idem WHERE key = '%s'" % k) == "1"
    if what == "commit":
        log = rest.get("/v1/namespaces/a/tables/t").json["metadata"]["metadata-log"]
        assert len(log) == 1, log


def test_server_errors_are_not_kept(make_daemon, postgres):
    # case BC-153
    conninfo = postgres.database()
    d = make_daemon(conninfo)
    rest = Keyed(d.uri)
    k, body = key(), {"namespace": ["late"]}
    try:
        postgres.stop()
        got = rest.send(k, "POST", "/v1/namespaces", body)
        assert got.status == 503 and got.headers["Retry-After"], got
        commit = rest.send(key(), "POST", "/v1/namespaces/late/tables/t", properties(a="b"))
        assert commit.status == 429 and commit.headers["Retry-After"], commit
    finally:
        postgres.start()
    end = time.monotonic() + 30
    while (got := rest.send(k, "POST", "/v1/namespaces", body)).status != 200:
        assert got.status == 503 and time.monotonic() < end, got
        time.sleep(0.1)
    rest.repeat(got, k, "POST", "/v1/namespaces", body)


def test_the_row_is_part_of_the_decision(make_daemon, postgres):
    """A server that cannot write the row does not do the thing either."""
    conninfo = postgres.database()
    rest = Keyed(make_daemon(conninfo).uri)
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["a"]})
    rest.want(200, "POST", "/v1/namespaces/a/tables", {"name": "t", "schema": SCHEMA})
    sql(conninfo, "ALTER TABLE frazil.idem ADD CONSTRAINT none CHECK (false) NOT VALID")
    for method, target, value in (("POST", "/v1/namespaces", {"namespace": ["b"]}),
                                  ("POST", "/v1/namespaces/a/tables", {"name": "u", "schema": SCHEMA}),
                                  ("POST", "/v1/namespaces/a/properties", {"updates": {"p": "q"}}),
                                  ("POST", "/v1/tables/rename", {
                                      "source": {"namespace": ["a"], "name": "t"},
                                      "destination": {"namespace": ["a"], "name": "t2"}}),
                                  ("DELETE", "/v1/namespaces/a/tables/t", None),
                                  ("POST", "/v1/namespaces/a/views", view("v"))):
        assert rest.send(key(), method, target, value).status >= 429, (method, target)
    assert rest.get("/v1/namespaces").json["namespaces"] == [["a"]]
    assert rest.get("/v1/namespaces/a").json["properties"] == {}
    tables = rest.get("/v1/namespaces/a/tables").json["identifiers"]
    assert tables == [{"namespace": ["a"], "name": "t"}]
    assert rest.get("/v1/namespaces/a/views").json["identifiers"] == []
    sql(conninfo, "ALTER TABLE frazil.idem DROP CONSTRAINT none")
    rest.twice("DELETE", "/v1/namespaces/a/tables/t")


# ---------------------------------------------------------------- lifetime

def test_after_its_lifetime_a_key_is_new(make_daemon, postgres):
    conninfo = postgres.database()
    d = make_daemon(conninfo, settings={"rest.idempotency-lifetime-ms": 1000,
                                        "cleaner.interval-ms": 100, "cleaner.grace-ms": 0})
    rest = Keyed(d.uri)
    k, body = key(), {"namespace": ["a"]}
    assert rest.send(k, "POST", "/v1/namespaces", body).status == 200
    end = time.monotonic() + 30
    while sql(conninfo, "SELECT count(*) FROM frazil.idem") != "0":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert rest.send(k, "POST", "/v1/namespaces", body).status == 409


def test_the_cleaner_spares_what_an_answer_is_made_from(make_daemon, postgres):
    conninfo = postgres.database()
    d = make_daemon(conninfo, settings={"cleaner.interval-ms": 50, "cleaner.grace-ms": 0,
                                        "cleaner.tombstone-ms": 0})
    rest = Keyed(d.uri)
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["a"]})
    at = "/v1/namespaces/a/tables"
    first, k = rest.twice("POST", at, {"name": "t", "schema": SCHEMA})
    other = rest.want(200, "POST", at + "/t", properties(x="1")).json["metadata-location"]
    rest.want(204, "DELETE", at + "/t?purgeRequested=true")
    end = time.monotonic() + 30
    while os.path.exists(other[len("file://"):]):
        assert time.monotonic() < end
        time.sleep(0.05)
    rest.repeat(first, k, "POST", at, {"name": "t", "schema": SCHEMA})
    location = first.json["metadata-location"][len("file://"):]
    assert os.path.exists(location)
    sql(conninfo, "DELETE FROM frazil.idem")
    while os.path.exists(location):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("table, since", [("'00000000-0000-4000-8000-000000000001'", "i"), ("gen_random_uuid()", "i"),
                                          ("gen_random_uuid()", "frazil.now_ms() + 1000000000")])
def test_what_is_spared_or_not_due_holds_up_no_others(make_daemon, postgres, table, since):
    """Paths of one dropped table or of many that must not be taken, more than the cleaner looks at in a round, all there before the
    garbage of a purge."""
    conninfo = postgres.database()
    d = make_daemon(conninfo, settings={"cleaner.interval-ms": 50, "cleaner.grace-ms": 0, "cleaner.tombstone-ms": 0})
    rest = Keyed(d.uri)
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["a"]})
    made = rest.want(200, "POST", "/v1/namespaces/a/tables", {"name": "t", "schema": SCHEMA}).json
    sql(conninfo, """WITH o AS (INSERT INTO frazil.object (path, table_id, epoch, state, since_ms)
        SELECT 'file:///spared/' || i, %s, 1, 2, %s FROM generate_series(1, 1000) i RETURNING path)
        INSERT INTO frazil.idem SELECT gen_random_uuid(), '', 200, path, NULL, frazil.now_ms() FROM o""" % (table, since))
    if since != "i":
        sql(conninfo, "DELETE FROM frazil.idem")
    rest.want(204, "DELETE", "/v1/namespaces/a/tables/t?purgeRequested=true")
    end = time.monotonic() + 10
    while os.path.exists(made["metadata-location"][len("file://"):]):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert sql(conninfo, "SELECT count(*) FROM frazil.object WHERE path LIKE 'file:///spared/%' AND state = 2") == "1000"
