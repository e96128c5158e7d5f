"""Failures that other catalogs had with names, lists and namespaces, as checks of this one."""

import concurrent.futures
import itertools
import threading
import time

import psycopg
import pytest

from support.catalog import ROUTES, SCHEMA, Space, error, set_properties, version
from support.openapi import Checked


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def spaces(rest, *all_levels):
    for levels in all_levels:
        rest.want(200, "POST", "/v1/namespaces", {"namespace": list(levels)})


def test_levels_and_dots(rest):
    """case BC-001: the separator splits, a dot does not."""
    spaces(rest, ["l"], ["l", "b"], ["l.b"])
    assert rest.get("/v1/namespaces/l%1Fb").json["namespace"] == ["l", "b"]
    assert rest.get("/v1/namespaces/l.b").json["namespace"] == ["l.b"]
    assert rest.get("/v1/namespaces?parent=l").json["namespaces"] == [["l", "b"]]
    for at in ("l%1Fb", "l.b"):
        assert rest.get("/v1/namespaces/%s/tables" % at).json["identifiers"] == []
    rest.want(200, "POST", "/v1/namespaces/l%1Fb/tables", {"name": "t", "schema": SCHEMA})
    assert rest.get("/v1/namespaces/l%1fb/tables").json["identifiers"] == [{"namespace": ["l", "b"], "name": "t"}]
    assert rest.get("/v1/namespaces/l.b/tables").json["identifiers"] == []
    rest.want(204, "DELETE", "/v1/namespaces/l.b")
    assert rest.get("/v1/namespaces/l.b").status == 404 and rest.head("/v1/namespaces/l%1Fb/tables/t").status == 204
    for bad in ("%1F", "l%1F", "%1Fl", "l%1F%1Fb"):
        error(rest.get("/v1/namespaces/" + bad), 400, "BadRequestException")


def test_percent_signs_and_slashes(daemon, rest):
    """case BC-003: a segment is split off first and decoded once, on every route."""
    ns = Space(daemon, "pct")
    for name in ("foo%2Fbar", "foo/bar"):
        made = ns.create(name, properties={"is": name}).json
        assert ns.load(name) == made and ns.meta(name)["properties"]["is"] == name
        assert rest.head(ns.table(name)).status == 204
        assert ns.commit(name, set_properties(k="v")).json["metadata"]["properties"].items() >= {"is": name, "k": "v"}.items()
    assert rest.get(ns.at + "/tables/foo%252Fbar").json["metadata"]["properties"]["is"] == "foo%2Fbar"
    assert rest.get(ns.at + "/tables/foo%2fbar").json["metadata"]["properties"]["is"] == "foo/bar"
    error(rest.get(ns.at + "/tables/foo/bar"), 404)
    assert ns.rename("foo%2Fbar", "50%/x").status == 204
    assert ns.names() == ["50%/x", "foo/bar"]
    assert rest.get(ns.at + "/tables/50%25%2Fx").json["metadata"]["properties"]["is"] == "foo%2Fbar"
    for bad in ("%zz", "%", "%2", "a%", "%C3%28", "%ff", "%ED%A0%80", "%C0%AF", "%00"):
        for method in ("GET", "DELETE"):
            error(rest.call(method, ns.at + "/tables/" + bad), 400, "BadRequestException")
            error(rest.call(method, "/v1/namespaces/" + bad), 400, "BadRequestException")
        error(rest.post(ns.at + "/tables/" + bad, {"requirements": [], "updates": []}), 400, "BadRequestException")
        assert rest.head(ns.at + "/tables/" + bad).status == 400
    for value in ("a%zz", "%C3", "%00"):
        error(rest.get("/v1/namespaces?parent=" + value), 400, "BadRequestException")


def test_warehouses_that_are_not_there(rest):
    """case BC-004: told at once, by config and by every route below a prefix."""
    for name in ("nope", "a/b", "file:///nowhere", "x" * 4096, "ma\u0308in", "MAIN"):
        e = error(rest.get("/v1/config", warehouse=name), 404, "NoSuchWarehouseException")
        assert len(e["message"]) < 1000
    first = rest.get("/v1/config").json
    assert rest.get("/v1/config", warehouse="").json == first
    error(rest.get("/v1/nope/namespaces"), 404, "NoSuchWarehouseException")
    error(rest.get("/v1/config?warehouse=%zz"), 400, "BadRequestException")


def test_offered_routes_are_the_served_ones(daemon, rest):
    """case BC-005: config offers what is there and nothing else, in the specification's words."""
    routes = [(m, line.split()[-1]) for line in ROUTES.strip().splitlines() for m in line.split()[:-1]]
    assert len(routes) > 30
    offered = rest.get("/v1/config").json["endpoints"]
    assert len(offered) == len(set(offered))
    for e in offered:
        assert tuple(e.split(" ")) in routes, e
    for method, path in routes:
        if path in ("/v1/config", "/v1/oauth/tokens"):
            continue
        target = path.replace("{prefix}/", "")
        for part in ("namespace", "table", "view", "function", "plan-id"):
            target = target.replace("{%s}" % part, "of-nobody")
        got = daemon.rest.call(method, target, {} if method == "POST" else None)
        if "%s %s" % (method, path) in offered:
            assert got.status not in (405, 406, 500, 501, 503), (method, path, got)
            if got.status == 404 and method != "HEAD":
                assert got.error["message"] != "no such route", (method, path)
        else:
            error(got, got.status if got.status in (404, 405, 406) else 406)
            assert got.status == 406 or "route" in got.error["message"], (method, path, got)
    for kind in ("", "/tables/{table}", "/views/{view}"):
        assert "HEAD /v1/{prefix}/namespaces/{namespace}" + kind in offered


@pytest.mark.parametrize("kind", ["tables", "views", "namespaces"])
def test_pages_beside_others(daemon, rest, conninfo, kind):
    """case BC-014: each that is there all the time is met exactly once, whatever comes and goes meanwhile."""
    ns = Space(daemon, "walk-" + kind)
    names = sorted({("T%03d" if n % 3 else "t%03d") % n + ("ä€\U0001f600" if n % 5 == 0 else "") for n in range(151)})
    field = "namespaces" if kind == "namespaces" else "identifiers"
    target = "/v1/namespaces?parent=%s&" % ns.levels[0] if kind == "namespaces" else "%s/%s?" % (ns.at, kind)

    def make(name):
        if kind == "tables":
            return ns.create(name)
        if kind == "views":
            return ns.create_view(name)
        return rest.want(200, "POST", "/v1/namespaces", {"namespace": [ns.levels[0], name]})

    def drop(name):
        base = {"tables": ns.table, "views": ns.view}.get(kind)
        rest.want(204, "DELETE", base(name) if base else "/v1/namespaces/%s%%1F%s" % (ns.levels[0], name))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(make, names))
    stop, turns = threading.Event(), []

    def churn():
        while not stop.is_set():
            name = "%sx%d" % ("Tat"[len(turns) % 3], len(turns) % 50)
            make(name)
            drop(name)
            turns.append(name)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        turning = pool.submit(churn)
        try:
            for walk in itertools.count():
                if walk > 1 and len(turns) > 5 or turning.done():
                    break
                got, tokens, token = [], [], ""
                while token is not None:
                    page = rest.want(200, "GET", target + "pageSize=7&pageToken=" + token).json
                    got += [n[1] if kind == "namespaces" else n["name"] for n in page[field]]
                    token = page["next-page-token"]
                    tokens.append(token)
                assert len(set(got)) == len(got) and [n for n in got if n in set(names)] == names
                assert len(set(tokens)) == len(tokens)
        finally:
            stop.set()
        turning.result()


def test_whole_lists(daemon, rest, conninfo):
    """case BC-015: who does not ask for pages gets all of them."""
    ns = Space(daemon, "whole")
    ns.create("n")
    with psycopg.connect(conninfo) as db:
        columns = [r[0] for r in db.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'frazil.tabular'::regclass AND attnum > 0 AND NOT attisdropped "
            "AND attname NOT IN ('table_id', 'name')")]
        rest_of = ", ".join(columns)
        db.execute("INSERT INTO frazil.tabular (table_id, name, %s) SELECT gen_random_uuid(), 'n' || i, %s "
                   "FROM frazil.tabular, generate_series(1, 2499) i WHERE name = 'n'" % (rest_of, rest_of))
    got = rest.get(ns.at + "/tables").json
    assert len(got["identifiers"]) == 2500 and got["next-page-token"] is None
    assert len({i["name"] for i in got["identifiers"]}) == 2500
    assert rest.get(ns.at + "/tables?pageSize=10").json == got


def test_last_pages(daemon, rest):
    """case BC-017: no token is given twice, and the last page has none."""
    ns = Space(daemon, "last")
    for n in range(10):
        ns.create("t%d" % n)

    def page(token):
        return rest.want(200, "GET", ns.at + "/tables?pageSize=5&pageToken=" + token).json
    first = page("")
    assert len(first["identifiers"]) == 5 and first["next-page-token"]
    second = page(first["next-page-token"])
    assert len(second["identifiers"]) == 5 and second["next-page-token"] != first["next-page-token"]
    if second["next-page-token"] is not None:
        assert page(second["next-page-token"]) == {"identifiers": [], "next-page-token": None}
    for n in range(5, 10):
        rest.want(204, "DELETE", ns.table("t%d" % n))
    assert page(first["next-page-token"]) == {"identifiers": [], "next-page-token": None}


def test_what_is_missing_is_told(daemon, rest):
    """case BC-018: a missing parent is told apart from a missing object, in lists, loads and what is created."""
    ns = Space(daemon, "told")
    no_ns = "NoSuchNamespaceException"
    for target in ("/v1/namespaces?parent=nope", "/v1/namespaces/nope/tables", "/v1/namespaces/nope/views", "/v1/namespaces/nope"):
        error(rest.get(target), 404, no_ns, "nope")
    error(rest.post("/v1/namespaces/nope/tables", {"name": "t", "schema": SCHEMA}), 404, no_ns)
    error(rest.post("/v1/namespaces/nope/views", {"name": "v", "schema": SCHEMA, "view-version": version(), "properties": {}}), 404, no_ns)
    error(rest.get(ns.table("nope")), 404, "NoSuchTableException", "told.nope")
    error(rest.get(ns.view("nope")), 404, "NoSuchViewException", "told.nope")
    # Clients of a table take this type for "create it": Java's catalog looks for the table alone.
    error(rest.get("/v1/namespaces/nope/tables/t"), 404, "NoSuchTableException", "nope.t")


def test_renames(daemon, rest):
    """case BC-020"""
    ns = Space(daemon, "ren")
    for name in "ab":
        ns.create(name)
    ns.create_view("v")
    exists = "AlreadyExistsException"
    for a, b, kind in (("a", "b", "tables"), ("a", "v", "tables"), ("v", "a", "views")):
        error(ns.rename(a, b, kind), 409, exists)
    error(ns.rename("a", "x", to=["nope"]), 404, "NoSuchNamespaceException")
    error(ns.rename("nope", "x"), 404, "NoSuchTableException")
    error(ns.rename("v", "x", "tables"), 404, "NoSuchTableException")
    error(ns.rename("a", "x", "views"), 404, "NoSuchViewException")
    same = [ns.rename("a", "a").status for _ in range(2)] + [ns.rename("v", "v", "views").status]
    assert len(set(same)) == 1 and same[0] in (204, 409)
    assert ns.names() == ["a", "b"] and ns.names("views") == ["v"]
    sources = ["s%d" % n for n in range(20)]
    for name in sources:
        ns.create(name)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        got = list(pool.map(lambda name: ns.rename(name, "target"), sources))
    assert sorted(r.status for r in got) == [204] + [409] * 19
    kept = ns.names()
    assert "target" in kept and len([n for n in sources if n in kept]) == 19
    for name in kept:
        assert ns.load(name)


def test_namespaces_that_hold_something(daemon, rest):
    """case BC-021: whatever is committed keeps its namespace, what is only staged does not."""
    for kind in ("table", "view", "child"):
        ns = Space(daemon, "hold-" + kind)
        if kind == "table":
            ns.create("t")
        elif kind == "view":
            ns.create_view("t")
        else:
            spaces(rest, [ns.levels[0], "c"])
        error(rest.delete(ns.at), 409, "NamespaceNotEmptyException")
        assert rest.head(ns.at).status == 204
    ns = Space(daemon, "hold-staged")
    ns.create("t", **{"stage-create": True})
    rest.want(204, "DELETE", ns.at)
    error(rest.get(ns.table("t")), 404)


@pytest.mark.parametrize("kind", ["tables", "views", "namespaces", "staged"])
def test_drop_beside_create(daemon, rest, conninfo, kind):
    """case BC-021: the one or the other wins, and nothing is without its namespace afterwards."""
    both = 0
    for n in range(15):
        ns = Space(daemon, "race-%s-%d" % (kind, n))
        bodies = {"tables": ("/tables", {"name": "t", "schema": SCHEMA}),
                  "views": ("/views", {"name": "t", "schema": SCHEMA, "view-version": version(), "properties": {}}),
                  "staged": ("/tables/t", {"requirements": [{"type": "assert-create"}], "updates": [
                      {"action": "add-schema", "schema": SCHEMA}, {"action": "set-current-schema", "schema-id": -1},
                      {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": -1},
                      {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                      {"action": "set-default-sort-order", "sort-order-id": -1}]})}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            if kind == "namespaces":
                made = pool.submit(rest.post, "/v1/namespaces", {"namespace": ns.levels + ["c"]})
            else:
                made = pool.submit(rest.post, ns.at + bodies[kind][0], bodies[kind][1])
            time.sleep(0.001 * (n % 10))
            dropped = rest.delete(ns.at)
        pair = (made.result().status, dropped.status)
        assert pair in ((200, 409), (404, 204)), (pair, made.result())
        assert rest.head(ns.at).status == (204 if pair[0] == 200 else 404)
        both |= 1 << (pair[0] == 200)
    with psycopg.connect(conninfo) as db:
        assert db.execute("SELECT count(*) FROM frazil.tabular t WHERE NOT EXISTS "
                          "(SELECT 1 FROM frazil.namespace n WHERE n.namespace_id = t.namespace_id)").fetchone()[0] == 0


def test_properties_of_namespaces(rest):
    """case BC-023: all of a request is applied or none of it, and the answer lists what was."""
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["props"], "properties": {"a": "1"}})
    at = "/v1/namespaces/props"
    got = rest.want(200, "POST", at + "/properties", {"removals": ["a", "zz"], "updates": {"b": "2", "c": "3"}}).json
    assert got["removed"] == ["a"] and got["missing"] == ["zz"] and sorted(got["updated"]) == ["b", "c"]
    assert rest.get(at).json["properties"] == {"b": "2", "c": "3"}
    error(rest.post(at + "/properties", {"removals": ["b"], "updates": {"b": "9", "d": "1"}}), 422)
    assert rest.get(at).json["properties"] == {"b": "2", "c": "3"}
    got = rest.want(200, "POST", at + "/properties", {"removals": ["b", "c"]}).json
    assert sorted(got["removed"]) == ["b", "c"] and got["updated"] == [] and not got.get("missing")
    assert rest.get(at).json["properties"] == {}
    for body in ({}, {"removals": [], "updates": {}}, {"removals": None, "updates": None}):
        got = rest.post(at + "/properties", body)
        assert got.status == 200 and got.json["updated"] == got.json["removed"] == [], got


def test_the_only_property_of_a_table(daemon):
    """case BC-023: the last one can go too."""
    ns = Space(daemon, "only")
    ns.create("t", properties={"k": "v"})
    ns.commit("t", {"action": "remove-properties", "removals": list(ns.meta("t")["properties"])})
    assert ns.meta("t")["properties"] == {}
    assert ns.commit("t", {"action": "remove-properties", "removals": ["k"]}).json["metadata"]["properties"] == {}


@pytest.mark.parametrize("kind", ["tables", "views", "namespaces"])
def test_lists_beside_drops(daemon, rest, kind):
    """case BC-051: what vanishes meanwhile is not listed, and fails no list."""
    ns = Space(daemon, "lists-" + kind)
    end = time.monotonic() + 3
    target = "/v1/namespaces?parent=" + ns.levels[0] if kind == "namespaces" else "%s/%s" % (ns.at, kind)

    def turn(who):
        n = 0
        while time.monotonic() < end:
            name = "w%d" % who
            if kind == "namespaces":
                rest.want(200, "POST", "/v1/namespaces", {"namespace": ns.levels + [name]})
                rest.want(204, "DELETE", "/v1/namespaces/%s%%1F%s" % (ns.levels[0], name))
            else:
                (ns.create if kind == "tables" else ns.create_view)(name)
                rest.want(204, "DELETE", (ns.table if kind == "tables" else ns.view)(name))
            n += 1
        return n

    def show(_):
        n = 0
        while time.monotonic() < end:
            rest.want(200, "GET", target)
            n += 1
        return n
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        turned, shown = [pool.submit(turn, i) for i in range(4)], [pool.submit(show, i) for i in range(4)]
        assert min(f.result() for f in turned) > 2 and min(f.result() for f in shown) > 5
