"""Commits of several tables in one request: all of it is seen, or nothing, whoever else is at work."""

import concurrent.futures
import http.client
import random
import threading
import time

import psycopg
import pytest

from support.catalog import creation, document, error, set_properties
from support.lab import Lab
from test_cases_commit import add, at, snapshot


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "multi")
    yield lab
    lab.check()


def change(name, updates, requirements=(), ns="multi"):
    return {"identifier": {"namespace": [ns], "name": name}, "requirements": list(requirements), "updates": list(updates)}


def commit(lab, *changes):
    return lab.rest.post("/v1/transactions/commit", {"table-changes": list(changes)})


def tables(lab, *names, rows=3, audited=False):
    """With rows in them. Not for the auditor: the snapshots of these tests list what is there once more."""
    made = []
    for name in names:
        t = lab.table(name, audited=audited)
        _, o = t.append(rows)
        t.at = o.snapshot_id
        made.append(t)
    return made


def load(lab, name):
    return lab.rest.want(200, "GET", "/v1/namespaces/multi/tables/" + name).json["metadata"]


def staged(lab, name):
    body = {"name": name, "schema": {"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False}]}, "stage-create": True, "properties": {"format-version": "3"}}
    return lab.rest.want(200, "POST", "/v1/namespaces/multi/tables", body).json["metadata"]


def ids(meta):
    return [s["snapshot-id"] for s in meta.get("snapshots", [])]


def test_all_of_it(lab):
    """Two snapshots, a property, a table that is only required, and a new table: one answer, all visible."""
    a, b, c, d = tables(lab, "a1", "b1", "c1", "d1")
    sa, sb, new = snapshot(a), snapshot(b), staged(lab, "n1")
    before = load(lab, "d1")
    got = commit(lab, change("b1", add(sb), [at("main", b.at)]), change("a1", add(sa), [at("main", a.at)]),
                 change("c1", [set_properties(owner="me")]), change("d1", [], [at("main", d.at)]),
                 change("n1", creation(new), [{"type": "assert-create"}]))
    assert got.status == 204 and got.body == b"", got
    assert load(lab, "a1")["current-snapshot-id"] == sa["snapshot-id"]
    assert load(lab, "b1")["current-snapshot-id"] == sb["snapshot-id"]
    assert load(lab, "c1")["properties"]["owner"] == "me"
    assert load(lab, "d1") == before
    assert load(lab, "n1")["table-uuid"] == new["table-uuid"]
    # Workers go on, on all of them.
    for t in (a, b, c, d):
        t.append(2)


@pytest.mark.parametrize("bad", ["first", "second", "required", "create", "gone", "namespace", "view", "updates"])
def test_nothing_of_it(lab, bad):
    """One part that cannot be: the answer names it, and neither rows nor names show a trace of the others."""
    a, b, c = tables(lab, "a_" + bad, "b_" + bad, "c_" + bad)
    sa, sb, new = snapshot(a), snapshot(b), staged(lab, "n_" + bad)
    lab.rest.post("/v1/namespaces/multi/views", {"name": "v_" + bad, "schema": {"type": "struct", "schema-id": 0, "fields": []},
                  "view-version": {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["multi"],
                                   "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}, "properties": {}})
    before = [load(lab, t + bad) for t in ("a_", "b_", "c_")]
    changes = [change("a_" + bad, add(sa), [at("main", a.at if bad != "first" else 17)]),
               change("b_" + bad, add(sb), [at("main", b.at if bad != "second" else 17)]),
               change("c_" + bad, [], [at("main", c.at if bad != "required" else 17)]),
               change("n_" + bad, creation(new), [{"type": "assert-create"}])]
    want = {"first": (409, "CommitFailedException", "a_first"), "second": (409, "CommitFailedException", "b_second"),
            "required": (409, "CommitFailedException", "c_required"), "create": (409, "CommitFailedException", "already exists"),
            "gone": (404, "NoSuchTableException", "nope"), "namespace": (404, "NoSuchNamespaceException", "nowhere"),
            "view": (409, "AlreadyExistsException", "v_view"), "updates": (400, None, "c_updates")}[bad]
    if bad == "create":
        changes.append(change("c_create2", creation(staged(lab, "c_create2")), [{"type": "assert-create"}]))
        lab.rest.want(200, "POST", "/v1/namespaces/multi/tables", {
            "name": "c_create2", "schema": {"type": "struct", "schema-id": 0, "fields": []}, "properties": {}})
    elif bad == "gone":
        changes.append(change("nope", [set_properties(a="1")]))
    elif bad == "namespace":
        changes.append(change("x", creation(new), [{"type": "assert-create"}], ns="nowhere"))
    elif bad == "view":
        changes.append(change("v_view", creation(staged(lab, "other")), [{"type": "assert-create"}]))
    elif bad == "updates":
        changes[2]["updates"] = [{"action": "set-current-schema", "schema-id": 77}]
    e = error(commit(lab, *changes), *want)
    if e["type"] == "CommitFailedException":
        assert e["message"].startswith("Requirement failed"), e
    assert [load(lab, t + bad) for t in ("a_", "b_", "c_")] == before
    assert lab.rest.get("/v1/namespaces/multi/tables/n_" + bad).status == 404
    for t in (a, b, c):
        t.append(1)


def test_named_twice(lab):
    tables(lab, "twice")
    error(commit(lab, change("twice", [set_properties(a="1")]), change("twice", [set_properties(b="1")])), 400,
          "BadRequestException", "twice")


def test_too_many(lab):
    changes = [change("m%d" % i, [set_properties(a="1")]) for i in range(1025)]
    error(commit(lab, *changes), 413, None, "at most 1024")


def test_the_same_request_again(lab):
    """case BC-131: the answer was lost, the bytes come again: never a conflict that makes a client delete live files."""
    a, b, c = tables(lab, "a2", "b2", "c2")
    sa, sb, new = snapshot(a), snapshot(b), staged(lab, "n2")
    both = [change("a2", add(sa), [at("main", a.at)]), change("b2", add(sb), [at("main", b.at)])]
    made = [change("c2", [set_properties(owner="one")]), change("n2", creation(new), [{"type": "assert-create"}])]
    assert commit(lab, *both, *made).status == 204
    assert commit(lab, *both, *made).status == 204
    for t in (a, b, c):
        t.append(1)
    assert commit(lab, *both, *made).status == 204
    assert ids(load(lab, "a2")).count(sa["snapshot-id"]) == 1
    # A change that leaves no trace of its own and would do something now: nobody knows.
    c.properties = load(lab, "c2")["properties"]
    assert commit(lab, change("c2", [set_properties(owner="two")])).status == 204
    error(commit(lab, *both, *made), 500, "CommitStateUnknownException")
    assert load(lab, "c2")["properties"]["owner"] == "two"
    # Another request that brings one of its snapshots again, and a new one: its client must not delete the files of the first.
    fresh = snapshot(b)
    error(commit(lab, both[0], change("b2", add(fresh), [at("main", fresh["parent-snapshot-id"])])), 500, "CommitStateUnknownException")
    assert fresh["snapshot-id"] not in ids(load(lab, "b2"))


@pytest.mark.parametrize("what", ["created", "there", "renamed", "view"])
def test_the_same_request_after_a_drop(lab, what):
    """case BC-131: the answer was lost, a table of the request has gone since: what it left in the other is live, and no answer
    says that nothing happened."""
    a, b = tables(lab, "p_" + what, "q_" + what)
    s, new = snapshot(a), staged(lab, "r_" + what)
    other = change("r_" + what, creation(new), [{"type": "assert-create"}]) if what == "created" else change("q_" + what, add(snapshot(b)))
    both = [other, change("p_" + what, add(s), [at("main", a.at)])]
    gone = "/v1/namespaces/multi/tables/" + other["identifier"]["name"]
    assert commit(lab, *both).status == 204
    if what == "renamed":
        assert lab.rest.post("/v1/tables/rename", {"source": other["identifier"], "destination": {"namespace": ["multi"], "name": "moved"}}).status == 204
    else:
        assert lab.rest.delete(gone).status == 204
        if what != "created":
            lab.forget(b)
    if what == "view":
        lab.rest.want(200, "POST", "/v1/namespaces/multi/views", {
            "name": "q_view", "schema": {"type": "struct", "schema-id": 0, "fields": []}, "properties": {},
            "view-version": {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["multi"],
                             "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}})
    error(commit(lab, *both), 500, "CommitStateUnknownException")
    assert load(lab, "p_" + what)["current-snapshot-id"] == s["snapshot-id"]
    if what == "created":
        assert lab.rest.head(gone).status == 404
    # One that brings nothing of its own is told the truth.
    if what == "there":
        error(commit(lab, change("p_there", add(snapshot(a))), other), 404, "NoSuchTableException", "q_there")
    if what == "renamed":
        lab.forget(b)


def test_two_copies_at_once(lab):
    """A client gave up on its connection and asks again while its request is under way: both copies name a table that neither of
    them finds, and both are told that it is done."""
    for turn in range(6):
        a, = tables(lab, "s%d" % turn)
        s, new = snapshot(a), staged(lab, "t%d" % turn)
        both = [change("s%d" % turn, add(s), [at("main", a.at)]), change("t%d" % turn, creation(new), [{"type": "assert-create"}])]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            got = [f.result() for f in [pool.submit(commit, lab, *both) for _ in range(4)]]
        assert {g.status for g in got} == {204}, got
        assert ids(load(lab, "s%d" % turn)).count(s["snapshot-id"]) == 1


@pytest.mark.parametrize("how", ["expired", "halted"])
def test_part_of_it_is_out_of_reach(lab, how):
    """case BC-131: the answer was lost, and before the bytes come again a part's snapshot was expired, or its table halted."""
    a, b = tables(lab, "ag_" + how, "bg_" + how)
    sa, sb = snapshot(a), snapshot(b)
    parts = [change("ag_" + how, add(sa), [at("main", a.at)]), change("bg_" + how, add(sb), [at("main", b.at)])]
    assert commit(lab, *parts).status == 204
    at_b = "/v1/namespaces/multi/tables/bg_" + how
    admin = "/admin/tables/%s/" % load(lab, "bg_" + how)["table-uuid"]
    if how == "expired":
        lab.rest.want(200, "POST", at_b, {"requirements": [], "updates": [
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": b.at},
            {"action": "remove-snapshots", "snapshot-ids": [sb["snapshot-id"]]}]})
    else:
        lab.daemon.admin.want(204, "POST", admin + "halt", {"cause": "surgery"})
        # Alone it is known again, whether or not its table takes commits.
        lab.rest.want(200, "POST", at_b, {"requirements": parts[1]["requirements"], "updates": parts[1]["updates"]})
        error(lab.rest.post(at_b, {"requirements": [], "updates": [set_properties(a="1")]}), 409, "TableHaltedException")
    error(commit(lab, *parts), 500, "CommitStateUnknownException")
    assert ids(load(lab, "ag_" + how)).count(sa["snapshot-id"]) == 1
    if how == "halted":
        lab.daemon.admin.want(204, "POST", admin + "resume")
        assert commit(lab, *parts).status == 204


def waiting(conninfo, what):
    """Until a statement of the daemon that calls this function waits for a lock."""
    end = time.monotonic() + 10
    with psycopg.connect(conninfo, autocommit=True) as db:
        while not db.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s",
                             ("%frazil." + what + "(%",)).fetchone()[0]:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_replaced_while_reserved(lab, conninfo):
    """A table that a transaction holds is registered over, and the transaction then fails for another reason: what it held was
    history, and the table of today takes commits."""
    made = []
    for name in ("w1", "w2"):
        lab.table(name, audited=False).update([set_properties(loaded="yes")])
        made.append((load(lab, name)["table-uuid"], name))
    (_, low), (high_uuid, high) = sorted(made)
    at_low, at_high = ("/v1/namespaces/multi/tables/" + n for n in (low, high))
    location = lab.rest.want(200, "GET", at_low).json["metadata-location"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool, psycopg.connect(conninfo) as db:
        db.execute("SELECT 1 FROM frazil.head WHERE table_id = %s FOR UPDATE", (high_uuid,))
        alone = pool.submit(lab.rest.post, at_high, {"requirements": [], "updates": [set_properties(a="1")]})
        waiting(conninfo, "ledger")
        both = pool.submit(commit, lab, change(low, [set_properties(a="1")]), change(high, [set_properties(b="1")], [at("main", 77)]))
        time.sleep(0.5)
        lab.rest.want(200, "POST", "/v1/namespaces/multi/register", {"name": low, "metadata-location": location, "overwrite": True})
        db.rollback()
        assert alone.result().status == 200
        # 409 if it was so slow that it met the new one.
        assert both.result().status in (404, 409)
    lab.rest.want(200, "POST", at_low, {"requirements": [], "updates": [set_properties(a="2")]})
    assert load(lab, low)["properties"]["a"] == "2"


def test_created_where_one_was_dropped(lab, conninfo):
    """The uuid of a creation is that of a table which is dropped while the statement waits: where the new one lies is known all
    the same, nobody else gets the place, and the cleaner has nothing to wait for."""
    lab.table("stays", audited=False)
    old = lab.rest.want(200, "POST", "/v1/namespaces/multi/tables", {"name": "old", "schema": {"type": "struct", "fields": []}}).json
    new = {**staged(lab, "new"), "table-uuid": old["metadata"]["table-uuid"]}
    with concurrent.futures.ThreadPoolExecutor(1) as pool, psycopg.connect(conninfo) as db, \
            psycopg.connect(conninfo, autocommit=True) as look:
        db.execute("SELECT 1 FROM frazil.namespace FOR UPDATE")
        both = pool.submit(commit, lab, change("stays", [set_properties(a="1")]),
                           change("new", creation(new), [{"type": "assert-create"}]))
        waiting(conninfo, "commit_tables")
        # What the drop of another daemon's client does; here it might wait behind the statement.
        assert look.execute("SELECT done FROM frazil.head h, frazil.drop_head(h.table_id, h.incarnation, '{}', false)"
                            " WHERE h.table_id = %s", (new["table-uuid"],)).fetchone()[0]
        db.rollback()
        assert both.result().status == 204
        assert look.execute("SELECT count(*) FROM frazil.tabular WHERE NOT placed").fetchone()[0] == 0
    error(lab.rest.post("/v1/namespaces/multi/tables", {"name": "thief", "schema": {"type": "struct", "fields": []},
                        "location": load(lab, "new")["location"]}), 403, "ForbiddenException")


def test_any_order_no_deadlock(lab, daemon):
    """Eight clients, transactions over tables in every order, workers beside them: each is whole or not there, and none waits
    for ever."""
    names = ["o%d" % i for i in range(5)]
    ts = dict(zip(names, tables(lab, *names)))
    stop, done, refused = threading.Event(), [], []

    def client(seed):
        r = random.Random(seed)
        for _ in range(12):
            some = r.sample(names, r.randint(2, 4))
            new = {n: snapshot(ts[n]) for n in some}
            got = commit(lab, *[change(n, add(new[n]), [at("main", new[n]["parent-snapshot-id"])]) for n in some])
            assert got.status in (204, 409, 429), got
            (done if got.status == 204 else refused).append({n: new[n]["snapshot-id"] for n in some})

    def worker(name):
        while not stop.is_set():
            ts[name].append(1)
            time.sleep(0.02)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        workers = [pool.submit(worker, n) for n in names[:2]]
        clients = [pool.submit(client, i) for i in range(8)]
        for f in clients:
            f.result(timeout=120)
        stop.set()
        for f in workers:
            f.result(timeout=60)
    have = {n: set(ids(load(lab, n))) for n in names}
    for t in done:
        assert all(sid in have[n] for n, sid in t.items())
    for t in refused:
        assert not any(sid in have[n] for n, sid in t.items())
    assert done, "nobody got through"


def test_one_instant(lab, conninfo):
    """Whoever reads both heads at one instant finds both parts of a transaction or neither."""
    a, b = tables(lab, "i1", "i2")
    uuids = [load(lab, n)["table-uuid"] for n in ("i1", "i2")]
    stop = threading.Event()
    seen = set()

    def reader():
        with psycopg.connect(conninfo, autocommit=True) as db:
            while not stop.is_set():
                rows = db.execute("SELECT metadata_location FROM frazil.head WHERE table_id = ANY (%s::uuid[])", (uuids,)).fetchall()
                turns = [document(x[0])["properties"].get("turn") for x in rows]
                assert len(turns) == 2 and turns[0] == turns[1], turns
                seen.add(turns[0])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        f = pool.submit(reader)
        for turn in range(60):
            parts = [change(n, [set_properties(turn=str(turn))]) for n in ("i1", "i2")]
            random.shuffle(parts)
            assert commit(lab, *parts).status == 204
        stop.set()
        f.result()
    assert len(seen) > 5


def test_created_again(lab):
    """The creation of one table whose answer was lost: the same bytes again are no conflict, another's are."""
    mine, other = staged(lab, "again"), staged(lab, "again")
    route = "/v1/namespaces/multi/tables/again"
    want = {"requirements": [{"type": "assert-create"}], "updates": creation(mine)}
    first = lab.rest.want(200, "POST", route, want)
    assert lab.rest.want(200, "POST", route, want).json == first.json
    error(lab.rest.post(route, {**want, "updates": creation(other)}), 409, "CommitFailedException", "already exists")
    assert load(lab, "again")["table-uuid"] == mine["table-uuid"]
    # Renamed before its creation comes again: the files are in use, under another name.
    lab.rest.want(204, "POST", "/v1/tables/rename", {
        "source": {"namespace": ["multi"], "name": "again"}, "destination": {"namespace": ["multi"], "name": "again_renamed"}})
    error(lab.rest.post(route, want), 500, "CommitStateUnknownException", "another name")
    error(commit(lab, change("again", want["updates"], want["requirements"])), 500, "CommitStateUnknownException", "another name")
    assert lab.rest.get(route).status == 404


def test_killed_again_and_again(make_daemon):
    """kill -9 while transactions run: each is whole or not there, and what was acknowledged is there."""
    daemon = make_daemon()
    lab = Lab(daemon, "multi")
    names = ["k%d" % i for i in range(4)]
    ts = dict(zip(names, tables(lab, *names)))
    stop, told, tried = threading.Event(), [], []

    def client(seed):
        r, turn = random.Random(seed), 0
        while not stop.is_set():
            turn += 1
            some = r.sample(names, 2)
            try:
                new = {n: snapshot(ts[n]) for n in some}
                mark = {n: new[n]["snapshot-id"] for n in some}
                tried.append(mark)
                if commit(lab, *[change(n, add(new[n]), [at("main", new[n]["parent-snapshot-id"])]) for n in some]).status == 204:
                    told.append(mark)
            except (OSError, http.client.HTTPException, ValueError, AssertionError):
                time.sleep(0.05)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client, i) for i in range(4)]
        for _ in range(6):
            time.sleep(0.7)
            daemon.restart(kill=True)
        time.sleep(0.5)
        stop.set()
        for f in clients:
            f.result(timeout=60)
    have = {n: set(ids(load(lab, n))) for n in names}
    halves = [m for m in tried if len({sid in have[n] for n, sid in m.items()}) != 1]
    assert not halves, halves
    lost = [m for m in told if not all(sid in have[n] for n, sid in m.items())]
    assert not lost, lost
    assert len(told) >= 5, (len(told), len(tried))
