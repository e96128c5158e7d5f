"""Failures of other catalogs on PostgreSQL, each tried here. The case ids are those of the field-case list."""

import concurrent.futures
import json
import os
import socket
import subprocess
import threading
import time

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from support.foreign import Writer, local
from support.lab import SCHEMA, Lab
from support.rest import segment


@pytest.fixture(scope="module")
def settings():
    return {"pg.connections": "4"}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "pg")
    yield lab
    lab.check()


def sql(conninfo, text):
    got = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", text],
                         check=True, capture_output=True, text=True, timeout=60)
    return got.stdout.strip()


def make(rest, name, space="pg"):
    return rest.post("/v1/namespaces/%s/tables" % space, {"name": name, "schema": SCHEMA, "properties": {"format-version": "3"}})


def test_serialization_failures(lab, conninfo):
    """cases BC-158, BC-159: 40001 now and then: never a 500; what was acknowledged is there, what was refused is not."""
    tables = [lab.table("ser%d" % i) for i in range(4)]
    for t in tables:
        t.append(1)
        t.info
    sql(conninfo, """CREATE FUNCTION public.now_and_then() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF random() < 0.3 THEN RAISE EXCEPTION 'try again' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER now_and_then BEFORE UPDATE ON frazil.head FOR EACH ROW EXECUTE FUNCTION public.now_and_then();
        CREATE TRIGGER now_and_then BEFORE INSERT ON frazil.tabular FOR EACH ROW EXECUTE FUNCTION public.now_and_then()""")
    try:
        def set_one(i):
            t = tables[i % 4]
            got = lab.rest.post(t.target, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k%d" % i: "v"}}]})
            return t, "k%d" % i, got

        def create(i):
            return i, make(lab.rest, "made%d" % i)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            sets = [pool.submit(set_one, i) for i in range(60)]
            creates = [pool.submit(create, i) for i in range(30)]
            sets, creates = [f.result() for f in sets], [f.result() for f in creates]
    finally:
        sql(conninfo, "DROP FUNCTION public.now_and_then() CASCADE")
    for t, key, got in sets:
        assert got.status in (200, 409, 429), got
        if got.status == 200:
            assert key in t.metadata()["properties"]
    assert sum(got.status == 200 for _, _, got in sets) > 20
    for i, got in creates:
        assert got.status in (200, 409, 429, 503), got
        there = lab.rest.get("/v1/namespaces/pg/tables/made%d" % i).status
        assert there == (200 if got.status == 200 else 404), (got, there)
    for t in tables:
        t.append(1)


def test_connections_come_back(lab, conninfo, daemon):
    """case BC-161: found, not found and broken off: no session stays in a transaction, the pool is whole."""
    t = lab.table("whole")
    t.append(1)

    def one(i):
        if i % 7 == 0:
            s = socket.create_connection(("127.0.0.1", daemon.rest_port))
            s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % t.target.encode())
            s.close()
            return 0
        return lab.rest.get(t.target if i % 3 else t.target + "-none").status
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(one, range(84)))
    assert set(got) == {0, 200, 404}
    assert sql(conninfo, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'") == "0"
    assert lab.rest.get(t.target).status == 200
    assert int(sql(conninfo, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")) <= 4 + 3


def test_a_locked_row(make_daemon, postgres):
    """case BC-162: somebody holds the row: those who wait get an answer in time, nothing was done, health and others go on."""
    conninfo = postgres.database()
    d = make_daemon(conninfo, settings={"pg.connections": "4", "rest.request-timeout-ms": "2000"})
    lab = Lab(d, "lock")
    t, other = lab.table("held"), lab.table("free")
    t.append(1)
    holder = subprocess.Popen(["psql", "-XqAt", "-d", conninfo], stdin=subprocess.PIPE, text=True)
    holder.stdin.write("BEGIN; SELECT * FROM frazil.head FOR UPDATE;\n")
    holder.stdin.flush()
    try:
        end = time.monotonic() + 10
        while sql(conninfo, "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'head'"
                            " AND l.mode = 'RowShareLock'") == "0":
            assert time.monotonic() < end
            time.sleep(0.02)

        def one(i):
            began = time.monotonic()
            got = lab.rest.post(t.target, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k%d" % i: "v"}}]})
            return got, time.monotonic() - began
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            waiting = [pool.submit(one, i) for i in range(20)]
            time.sleep(0.3)
            assert d.admin.get("/healthz").status == 200
            assert d.rest.get(other.target).status == 200
            got = [f.result() for f in waiting]
        for answer, took in got:
            # One was on its way and its outcome is open; of the others nothing was begun.
            assert answer.status in (429, 500, 504) and took < 15, (answer, took)
            if answer.status != 429:
                assert answer.error["type"] == "CommitStateUnknownException", answer
        assert int(sql(conninfo, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                 " AND application_name LIKE 'frazil%'")) <= 4 + 2
    finally:
        holder.stdin.close()
        holder.wait()
    t.append(1)
    assert t.metadata()["current-snapshot-id"]


@pytest.mark.parametrize("text", [r'a\u0000b', r'\ud800', r'\udc00x', b"\xff\xfe", b"\xc0\x80"], ids=["nul", "high", "low", "bytes", "overlong"])
def test_text_that_cannot_be_stored(lab, text):
    """case BC-164: lone surrogates and broken UTF-8 are 400 wherever they stand, NUL wherever PostgreSQL would have to keep
    it; nothing is changed. In a table's own properties, which only the metadata file holds, NUL stays what it is."""
    t = next((x for x in lab.tables if x.short == "text"), None) or lab.table("text")
    raw = text if isinstance(text, bytes) else text.encode()
    own = b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"%s"}}]}' % raw
    if raw == b"a\\u0000b":
        got = lab.rest.raw("POST", t.target, own, {"Content-Type": "application/json"})
        assert got.status == 200 and t.metadata()["properties"]["k"] == "a\0b"
        with open(local(t.load()["metadata-location"])) as f:
            assert json.load(f)["properties"]["k"] == "a\0b"
    before = t.load()
    for target, body in (
            *([] if raw == b"a\\u0000b" else [(t.target, own), (t.target, own.replace(b'"k"', b'"%s"' % raw))]),
            ("/v1/namespaces", b'{"namespace":["n","x%s"],"properties":{}}' % raw),
            ("/v1/namespaces/pg/properties", b'{"removals":[],"updates":{"k":"%s"}}' % raw),
            ("/v1/namespaces/pg/tables", b'{"name":"x%s","schema":{"type":"struct","fields":[]}}' % raw)):
        got = lab.rest.raw("POST", target, body, {"Content-Type": "application/json"})
        assert got.status == 400, (target, got)
    assert t.load() == before
    good = lab.rest.raw("POST", t.target, b'{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"\\ud83d\\ude00"}}]}',
                        {"Content-Type": "application/json"})
    assert good.status == 200 and t.metadata()["properties"]["k"] == "\U0001f600"


def test_wildcards_are_letters(lab):
    """case BC-165: underscore, percent and backslash in names stand for themselves."""
    rest = lab.rest
    for name in ("a_b", "aXb", "a%", "a\\b", "a%c"):
        rest.want(200, "POST", "/v1/namespaces", {"namespace": [name], "properties": {}})
    assert make(rest, "t", segment("aXb")).status == 200
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["a%", "child"], "properties": {}})
    assert rest.want(200, "GET", "/v1/namespaces/a_b/tables").json["identifiers"] == []
    assert rest.get("/v1/namespaces", parent="a%").json["namespaces"] == [["a%", "child"]]
    assert rest.get("/v1/namespaces", parent="a%c").json["namespaces"] == []
    assert rest.delete("/v1/namespaces/a_b").status == 204
    assert rest.delete("/v1/namespaces/" + segment("a%")).status == 409
    assert rest.get("/v1/namespaces/aXb/tables/t").status == 200
    assert rest.get("/v1/namespaces/" + segment("a\\b")).status == 200


def test_names_share_no_key(lab):
    """case BC-170: levels are levels: a dot in a name joins nothing."""
    rest = lab.rest
    for levels in (["q.r"], ["q"], ["q", "r"], ["q", "t"]):
        rest.want(200, "POST", "/v1/namespaces", {"namespace": levels, "properties": {}})
    made = {}
    for levels, name in ((["q.r"], "t"), (["q", "r"], "t"), (["q"], "r.t"), (["q"], "t")):
        got = make(rest, name, segment("\x1f".join(levels)))
        assert got.status == 200, got
        made["\x1f".join(levels), name] = got.json["metadata"]["table-uuid"]
    assert len(set(made.values())) == 4
    assert rest.delete("/v1/namespaces/%s/tables/t" % segment("q.r")).status == 204
    del made["q.r", "t"]
    for (levels, name), uid in made.items():
        got = rest.want(200, "GET", "/v1/namespaces/%s/tables/%s" % (segment(levels), segment(name))).json
        assert got["metadata"]["table-uuid"] == uid
    assert rest.get("/v1/namespaces/%s/tables/t" % segment("q.r")).status == 404


@pytest.mark.parametrize("total", ["5000000000", "abc", "", "-3", "99999999999999999999"])
def test_totals_of_others(lab, total):
    """case BC-171: a total beyond 32 bits is kept up, one that is no number is left out; the append lands."""
    t = lab.table(audited=False)
    t.append(2)
    w = Writer(t)
    files = t.files(3)
    w.commit("append", files, summary={"total-records": total, "total-data-files": "2"})
    t.added(*files)
    t.append(4)
    got = t.summary().get("total-records")
    assert got == ("5000000004" if total == "5000000000" else None) or (got == "9"), got
    assert t.summary()["added-records"] == "4"


def test_history_with_equal_numbers(lab, daemon):
    """case BC-172: snapshots of a V1 table all have number 0, registered ones may repeat; both load and go on."""
    rest = lab.rest
    assert rest.post("/v1/namespaces/pg/tables", {"name": "v1", "schema": SCHEMA, "properties": {"format-version": "1"}}).status == 200
    c = RestCatalog("c", uri=daemon.uri)
    for i in range(3):
        c.load_table("pg.v1").append(pa.table({"id": pa.array([i], pa.int64()), "name": ["x"]}))
    target = "/v1/namespaces/pg/tables/v1"
    upgrade = {"requirements": [], "updates": [{"action": "upgrade-format-version", "format-version": 2}]}
    assert rest.post(target, upgrade).status == 200
    with frazil.Client(daemon.rpc) as client:
        o = client.commit_once("pg.v1", kind="APPEND", data=pa.table({"id": pa.array([10], pa.int64()), "name": ["x"]}))
    assert o.sequence_number == 1
    md = rest.get(target).json
    assert [s.get("sequence-number", 0) for s in md["metadata"]["snapshots"]] == [0, 0, 0, 1]
    # Two snapshots of one number, as a broken writer may have left them.
    doc = md["metadata"]
    doc["snapshots"][1]["sequence-number"] = doc["snapshots"][2]["sequence-number"] = 1
    where = os.path.join(os.path.dirname(local(md["metadata-location"])), "00042-same.metadata.json")
    with open(where, "w") as f:
        json.dump(doc, f)
    rest.want(204, "DELETE", target)
    rest.want(200, "POST", "/v1/namespaces/pg/register", {"name": "v1", "metadata-location": "file://" + where})
    with frazil.Client(daemon.rpc) as client:
        o = client.commit_once("pg.v1", kind="APPEND", data=pa.table({"id": pa.array([11], pa.int64()), "name": ["x"]}))
    assert o.sequence_number == 2
    assert sorted(c.load_table("pg.v1").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11]


def test_a_reader_sees_what_was_answered(lab):
    """case BC-175: whoever loads after a commit was answered sees it, however many loads were under way; never an old uuid."""
    t = lab.table("fresh")
    t.append(1)
    stop, failed = threading.Event(), []
    seen = {"n": 0}

    def reader():
        while not stop.is_set():
            low = seen["n"]
            got = lab.rest.get(t.target)
            n = int(got.json["metadata"]["properties"].get("n", "0"))
            if n < low:
                failed.append((n, low))
    team = [threading.Thread(target=reader) for _ in range(4)]
    for x in team:
        x.start()
    for n in range(1, 40):
        assert lab.rest.post(t.target, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"n": str(n)}}]}).status == 200
        seen["n"] = n
    stop.set()
    for x in team:
        x.join()
    assert not failed, failed
    old = t.metadata()["table-uuid"]
    lab.rest.want(204, "DELETE", t.target)
    lab.forget(t)
    assert make(lab.rest, "fresh").status == 200
    assert all(lab.rest.get(t.target).json["metadata"]["table-uuid"] != old for _ in range(20))


def test_dump_and_restore(make_daemon, postgres, tmp_path):
    """case BC-176: a dump restored elsewhere, with a search path of its own, serves the same tables and goes on."""
    conninfo = postgres.database()
    d = make_daemon(conninfo)
    lab = Lab(d, "dump")
    t = lab.table("t")
    path, o = t.append(10)
    before = t.load()
    d.stop()
    dump = str(tmp_path / "dump.sql")
    subprocess.run(["pg_dump", "-d", conninfo, "--no-owner", "-f", dump], check=True, timeout=60)
    fresh = postgres.database()
    name = fresh.split("dbname=")[1].split()[0]
    sql(fresh, "ALTER DATABASE %s SET search_path = pg_catalog" % name)
    subprocess.run(["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", fresh, "-f", dump], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)
    e = make_daemon(fresh, settings={"warehouse.location": d.settings["warehouse.location"]})
    lab.daemon = e
    assert t.load() == before
    t.delete(path, [3], o.snapshot_id)
    t.append(2)
    lab.table("new").append(1)
    lab.check()
    assert e.rest.delete(t.target).status == 204


def test_eight_at_once(make_daemon, postgres):
    """case BC-179: eight daemons on an empty database: one serves, the others wait, the schema is whole."""
    conninfo = postgres.database()
    team = [make_daemon(conninfo, start=False) for _ in range(8)]
    for d in team:
        d.spawn()
    end, serving = time.monotonic() + 30, []
    while not serving:
        assert time.monotonic() < end
        time.sleep(0.05)
        serving = [d for d in team if _ready(d)]
    assert len(serving) == 1 and all(d.alive for d in team)
    lab = Lab(serving[0], "eight")
    lab.table("t").append(3)
    lab.check()
    assert sql(conninfo, "SELECT count(*) FROM frazil.warehouse") == "1"


def _ready(d):
    try:
        return d.rest.get("/v1/config").status == 200
    except OSError:
        return False
