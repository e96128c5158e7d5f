"""What a catalog of many tables costs: no statement of any route reads a whole table of rows."""

import concurrent.futures
import time

import psycopg
import pytest

import frazil
from support.catalog import SCHEMA, Space, set_properties, version
from support.lab import Lab

MANY = 20000


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 200}


def columns(db, table, *changed):
    return [r[0] for r in db.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = ''",
        ["frazil." + table]) if r[0] not in changed]


def multiply(db, table, where, **changed):
    """Copies of one row, with these columns as expressions of the number `i` and of the made-up table's id `u.id`."""
    same = columns(db, table, *changed)
    db.execute("INSERT INTO frazil.%s (%s) SELECT %s FROM (SELECT * FROM frazil.%s WHERE %s LIMIT 1) r, made u" % (
        table, ", ".join(list(changed) + same), ", ".join(list(changed.values()) + ["r." + c for c in same]), table, where))


def test_no_scan_of_many_rows(daemon, conninfo):
    """case BC-178"""
    lab = Lab(daemon, "scan")
    t = lab.table("t")
    t.append(5)
    ns = Space(daemon, "many")
    ns.create("one")
    ns.create_view("v")
    daemon.stop()
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("CREATE TEMP TABLE made AS SELECT i, gen_random_uuid() AS id FROM generate_series(1, %d) i" % MANY)
        db.execute("INSERT INTO frazil.namespace (warehouse_id, parent, name) SELECT 1, '{}', 'ns' || i FROM made")
        multiply(db, "tabular", "name = 't'", table_id="u.id", name="'n' || u.i",
                 namespace_id="(SELECT max(namespace_id) FROM frazil.namespace WHERE name = 'many') + 0 * u.i", location="r.location || u.i")
        multiply(db, "head", "true", table_id="u.id")
        multiply(db, "txn", "state = 2", txn="u.id", table_id="u.id")
        multiply(db, "batch", "true", batch="u.id", table_id="u.id")
        db.execute("VACUUM ANALYZE")
    daemon.process = None
    daemon.start()
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("SELECT pg_stat_reset()")
    rest = ns.rest
    ns.create("two", properties={"k": "v"})
    ns.create("staged", **{"stage-create": True})
    ns.commit("two", set_properties(a="b"))
    for method, target in (("GET", ns.table("two")), ("HEAD", ns.table("two")), ("GET", ns.table("none")), ("GET", ns.at), ("HEAD", ns.at), ("GET", "/v1/namespaces"),
                           ("GET", "/v1/namespaces?parent=many"), ("GET", ns.at + "/views"), ("GET", ns.view("v")), ("HEAD", ns.view("v"))):
        assert rest.call(method, target).status < 500
    for start in ("", None):
        token = rest.get(ns.at + "/tables?pageSize=50&pageToken=").json["next-page-token"]
        rest.want(200, "GET", ns.at + "/tables?pageSize=50&pageToken=" + token)
    rest.want(200, "GET", "/v1/namespaces?pageSize=10&pageToken=")
    assert ns.rename("two", "three").status == 204 and ns.rename("v", "w", "views").status == 204
    where = rest.want(200, "GET", ns.table("three")).json["metadata-location"]
    rest.want(204, "DELETE", ns.table("three"))
    rest.want(200, "POST", ns.at + "/register", {"name": "three", "metadata-location": where})
    rest.want(204, "DELETE", ns.table("three") + "?purgeRequested=true")
    rest.want(200, "POST", ns.view("w"), {"requirements": [], "updates": [set_properties(a="b")]})
    rest.want(204, "DELETE", ns.view("w"))
    ns.create_view("x")
    for name in ("one",):
        rest.want(204, "POST", "/v1/transactions/commit", {"table-changes": [
            {"identifier": {"namespace": ["many"], "name": name}, "requirements": [], "updates": [set_properties(z="z")]}]})
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["ns-new"]})
    rest.want(200, "POST", "/v1/namespaces/ns-new/properties", {"updates": {"a": "b"}})
    rest.want(409, "DELETE", ns.at)
    rest.want(204, "DELETE", "/v1/namespaces/ns-new")
    t.append(3)
    with frazil.Client(daemon.rpc) as c:
        assert c.table(t.name).info()
    for target in ("/admin/tables", "/admin/txns", "/readyz", "/metrics"):
        assert daemon.admin.get(target).status == 200
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert {r.status for r in pool.map(lambda i: rest.post(ns.at + "/tables", {"name": "c%d" % i, "schema": SCHEMA}), range(20))} == {200}
    assert rest.post(ns.at + "/views", {"name": "y", "schema": SCHEMA, "view-version": version()}).status == 200
    time.sleep(3)  # rounds of the cleaner, and the counters of idle connections
    daemon.restart()
    with psycopg.connect(conninfo, autocommit=True) as db:
        got = db.execute("SELECT s.relname, s.seq_scan, s.seq_tup_read, s.idx_scan FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid "
                         "WHERE s.schemaname = 'frazil' AND c.reltuples > 1000").fetchall()
    # Register alone looks through all heads, for a table that has this metadata file already.
    scanned = {r[0]: r[1:] for r in got if r[1] > (r[0] == "head")}
    assert len(got) >= 5 and not scanned, scanned
    lab.check()
