"""Kills the daemon around each durable step of a change by REST that has an Idempotency-Key, and repeats the request with it.

What was decided at the moment of death stays as it was and is answered from its row; what was not is decided once, by the
repetition. Nothing half is seen in PostgreSQL, and no file stays that nobody names.
"""

import http.client
import json
import os
import subprocess
import time
import urllib.parse
import uuid

import pytest

from support.catalog import creation
from support.keyed import Keyed, key
from test_points import REST, steps

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
VERSION = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["x"],
           "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}
# Everything that a change can change; epochs and holders are the daemon's own.
STATE = """SELECT json_build_array(
    (SELECT json_agg(n ORDER BY n.namespace_id) FROM frazil.namespace n),
    (SELECT json_agg(t ORDER BY t.table_id) FROM frazil.tabular t),
    (SELECT json_agg(json_build_array(h.table_id, h.incarnation, h.version, h.metadata_location, h.last_batch) ORDER BY h.table_id)
        FROM frazil.head h),
    (SELECT json_agg(b.batch ORDER BY b.batch) FROM frazil.batch b),
    (SELECT json_agg(p ORDER BY p.path, p.table_id) FROM frazil.place p))"""


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 500}


def sql(conninfo, text):
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", text],
                          check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout.strip()


def until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "not within %d s" % seconds
        time.sleep(0.05)


class Place:
    """A namespace of the test's own, and the metadata files that its client has heard of."""

    def __init__(self, daemon):
        self.rest, self.daemon, self.named = Keyed(daemon.uri), daemon, set()
        self.ns = "n" + os.urandom(6).hex()
        self.at = "/v1/namespaces/" + self.ns
        self.rest.want(200, "POST", "/v1/namespaces", {"namespace": [self.ns], "properties": {"old": "1"}})

    def heard(self, reply):
        if reply.body and "metadata-location" in reply.json:
            self.named.add(urllib.parse.urlsplit(reply.json["metadata-location"]).path)
        return reply

    def table(self, name):
        return self.heard(self.rest.want(200, "POST", self.at + "/tables", {"name": name, "schema": SCHEMA})).json

    def view(self, name="v"):
        return self.heard(self.rest.want(200, "POST", self.at + "/views", self.view_body(name))).json

    def view_body(self, name):
        return {"name": name, "schema": SCHEMA, "view-version": VERSION, "properties": {}}

    def staged(self, name):
        return self.rest.want(200, "POST", self.at + "/tables", {"name": name, "schema": SCHEMA, "stage-create": True}).json["metadata"]

    def change(self, **kv):
        return {"requirements": [], "updates": [{"action": "set-properties", "updates": kv or {"a": "1"}}]}

    def ident(self, name):
        return {"namespace": [self.ns], "name": name}

    def files(self):
        top = os.path.join(self.daemon.warehouse, self.ns)
        return {os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names}

    # ---- what is asked for: method, target, body

    def ns_create(self):
        return "POST", "/v1/namespaces", {"namespace": [self.ns, "sub"], "properties": {"a": "\u00e4"}}

    def ns_update(self):
        return "POST", self.at + "/properties", {"removals": ["old", "none"], "updates": {"new": "2"}}

    def ns_drop(self):
        return "DELETE", self.at, None

    def table_create(self):
        return "POST", self.at + "/tables", {"name": "t", "schema": SCHEMA}

    def table_commit(self):
        self.table("t")
        return "POST", self.at + "/tables/t", self.change()

    def unchanged(self):
        self.table("t")
        self.heard(self.rest.want(200, "POST", self.at + "/tables/t", self.change()))
        return "POST", self.at + "/tables/t", self.change()

    def commit_creation(self):
        return "POST", self.at + "/tables/t", {"requirements": [{"type": "assert-create"}], "updates": creation(self.staged("t"))}

    def several(self):
        self.table("t")
        return "POST", "/v1/transactions/commit", {"table-changes": [
            {"identifier": self.ident("t"), **self.change()},
            {"identifier": self.ident("u"), "requirements": [{"type": "assert-create"}], "updates": creation(self.staged("u"))}]}

    def register(self):
        made = self.table("t")
        self.rest.want(204, "DELETE", self.at + "/tables/t")
        return "POST", self.at + "/register", {"name": "t", "metadata-location": made["metadata-location"]}

    def register_over(self):
        made = self.table("t")
        self.heard(self.rest.want(200, "POST", self.at + "/tables/t", self.change()))
        return "POST", self.at + "/register", {"name": "t", "metadata-location": made["metadata-location"], "overwrite": True}

    def unregister(self):
        self.table("t")
        return "POST", self.at + "/tables/t/unregister", None

    def drop(self):
        self.table("t")
        return "DELETE", self.at + "/tables/t", None

    def purge(self):
        self.table("t")
        self.rest.want(200, "POST", self.at + "/tables/t", self.change())
        self.named.clear()
        return "DELETE", self.at + "/tables/t?purgeRequested=true", None

    def rename(self):
        self.table("t")
        return "POST", "/v1/tables/rename", {"source": self.ident("t"), "destination": self.ident("u")}

    def stage(self):
        return "POST", self.at + "/tables", {"name": "t", "schema": SCHEMA, "stage-create": True}

    def missing(self):
        return "DELETE", self.at + "/tables/t", None

    def conflict(self):
        self.table("t")
        return "POST", self.at + "/tables/t", {**self.change(), "requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]}

    def view_create(self):
        return "POST", self.at + "/views", self.view_body("v")

    def view_replace(self):
        self.view()
        return "POST", self.at + "/views/v", self.change()

    def view_register(self):
        made = self.view()
        self.rest.want(204, "DELETE", self.at + "/views/v")
        return "POST", self.at + "/register-view", {"name": "w", "metadata-location": made["metadata-location"]}

    def view_rename(self):
        self.view()
        return "POST", "/v1/views/rename", {"source": self.ident("v"), "destination": self.ident("w")}

    def view_drop(self):
        self.view()
        return "DELETE", self.at + "/views/v", None


# What is asked for, its answer, the step that decides it, the durable steps before that one.
CASES = [
    ("ns_create", 200, "ns.create", ()), ("ns_update", 200, "ns.update", ()), ("ns_drop", 204, "ns.drop", ()),
    ("table_create", 200, "table.create", ("batch.ledger", "batch.put")),
    ("table_commit", 200, "batch.publish", ("head.bump", "batch.ledger", "batch.put")),
    ("commit_creation", 200, "table.create", ("batch.put",)),
    ("several", 204, "tables.commit", ("head.bump", "batch.ledger", "batch.put")),
    ("register", 200, "table.create", ()), ("register_over", 200, "table.create", ()),
    ("unregister", 200, "table.drop", ()), ("drop", 204, "table.drop", ()), ("purge", 204, "table.drop", ()),
    ("rename", 204, "tabular.rename", ()),
    ("view_create", 200, "view.create", ("view.ledger", "view.put")),
    ("view_replace", 200, "view.replace", ("view.ledger", "view.put")),
    ("view_register", 200, "view.create", ()), ("view_rename", 204, "tabular.rename", ()), ("view_drop", 204, "view.drop", ()),
    # These change nothing; their answers are kept all the same.
    ("stage", 200, "idem.keep", ()), ("unchanged", 200, "idem.keep", ()), ("missing", 404, "idem.keep", ()),
    ("conflict", 409, "idem.keep", ())]


@pytest.mark.parametrize("what,status,step,decides,when", [
    (what, status, step, step == decider, when) for what, status, decider, others in CASES for step in (*others, decider)
    for when in ("before", "after")])
def test_point(daemon, conninfo, what, status, step, decides, when):
    place, k = Place(daemon), key()
    request = getattr(place, what)()
    before = sql(conninfo, STATE)
    daemon.env = {"FAULT_CRASH": "%s:%s" % (step, when)}
    daemon.restart()
    try:
        with pytest.raises((OSError, http.client.HTTPException)):
            place.rest.send(k, *request)
        assert daemon.wait() == -9
    finally:
        daemon.env = {}
    at_death = sql(conninfo, STATE)
    row = sql(conninfo, "SELECT row_to_json(i) FROM frazil.idem i WHERE key = '%s'" % k)
    decided, changes = decides and when == "after", step != "idem.keep"
    assert bool(row) == decided
    assert (at_death != before) == (decided and changes)
    daemon.start()
    got = place.rest.send(k, *request)
    end = time.monotonic() + 30
    while got.status in (429, 500, 503, 504) and time.monotonic() < end:
        got = place.rest.send(k, *request)
    assert got.status == status, got
    place.heard(got)
    now = sql(conninfo, STATE)
    if decided:
        assert now == at_death and json.loads(row)["status"] == status
        assert what == "stage" or json.loads(row)["location"] == (got.json if got.body else {}).get("metadata-location")
    assert (now != before) == changes
    for _ in range(2):
        place.rest.repeat(got, k, *request)
    assert sql(conninfo, STATE) == now
    kept = sql(conninfo, "SELECT row_to_json(i) FROM frazil.idem i WHERE key = '%s'" % k)
    assert kept == row if decided else kept
    # What the dead daemon had begun to write is gone in time, and nothing else is.
    sql(conninfo, "DELETE FROM frazil.idem")
    for table in place.rest.call("GET", place.at + "/tables").json.get("identifiers", []):
        doc = place.heard(place.rest.want(200, "GET", "%s/tables/%s" % (place.at, table["name"]))).json["metadata"]
        place.named |= {urllib.parse.urlsplit(e["metadata-file"]).path for e in doc.get("metadata-log", [])}
        # A restarted daemon cleans the tables that somebody uses.
        place.heard(place.rest.want(200, "POST", "%s/tables/%s" % (place.at, table["name"]), place.change(last="1")))
    until(lambda: sql(conninfo, "SELECT count(*) FROM frazil.object") == "0")
    assert place.files() == place.named


@pytest.mark.parametrize("when", ["before", "after"])
def test_keys_are_forgotten_all_the_same(make_daemon, postgres, when):
    conninfo = postgres.database()
    daemon = make_daemon(conninfo, settings={"rest.idempotency-lifetime-ms": 1000, "cleaner.interval-ms": 50})
    rest, k, body = Keyed(daemon.uri), key(), {"namespace": ["a"]}
    assert rest.send(k, "POST", "/v1/namespaces", body).status == 200
    daemon.stop()
    daemon.env = {"FAULT_CRASH": "idem.forget:" + when}
    daemon.spawn()
    assert daemon.wait() == -9
    daemon.env = {}
    daemon.start()
    until(lambda: sql(conninfo, "SELECT count(*) FROM frazil.idem") == "0")
    assert rest.send(k, "POST", "/v1/namespaces", body).status == 409


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["warehouse.ensure", "place.note"])
def test_starts(make_daemon, postgres, step, when):
    """What a daemon does by itself when it starts: the next one goes on with it."""
    conninfo = postgres.database()
    daemon = make_daemon(conninfo)
    place = Place(daemon)
    places = {place.table("t%d" % i)["metadata"]["location"] for i in range(3)}
    want = "SELECT count(*), count(*) FILTER (WHERE t.placed) FROM frazil.tabular t JOIN frazil.place p USING (table_id)"
    assert sql(conninfo, want) == "3|3" and len(places) == 3
    daemon.stop()
    # As an upgrade finds it: where older tables keep their files is not known yet.
    sql(conninfo, "UPDATE frazil.tabular SET placed = false; DELETE FROM frazil.place")
    warehouses = sql(conninfo, "SELECT json_agg(w) FROM frazil.warehouse w")
    daemon.env = {"FAULT_CRASH": "%s:%s" % (step, when)}
    daemon.spawn()
    assert daemon.wait() == -9
    daemon.env = {}
    daemon.start()
    until(lambda: sql(conninfo, want) == "3|3")
    assert sql(conninfo, "SELECT json_agg(w) FROM frazil.warehouse w") == warehouses
    for location in places:
        got = place.rest.post(place.at + "/tables", {"name": "in", "schema": SCHEMA, "location": location + "/in"})
        assert got.status == 403, got


def test_every_step_is_reached():
    """The rows of crash.tbl that this file answers for."""
    mine = {step for _, _, decider, others in CASES for step in (*others, decider)}
    mine |= {"idem.forget", "warehouse.ensure", "place.note"}
    assert {s for s in steps() if s.startswith(REST)} <= mine
