"""The cleaner's pace follows what is due: many tables, loaded or not, each has its turn, and one with much does not keep the
others waiting."""

import os
import time
import uuid

import psycopg
import pytest

from support.foreign import local
from support.lab import Lab

TABLES = int(os.environ.get("CLEANER_TABLES", "300"))


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 500, "cleaner.grace-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "pace")


@pytest.fixture
def db(conninfo):
    with psycopg.connect(conninfo, autocommit=True) as c:
        yield c


def rows(db):
    return db.execute("SELECT count(*) FROM frazil.object").fetchone()[0]


def queue(db, table, paths, since=0, **more):
    with db.cursor() as c:
        c.executemany("INSERT INTO frazil.object (path, table_id, state, since_ms, epoch) VALUES (%s, %s, 2, %s, %s)",
                      [(p, table, since, more.get("epoch", 0)) for p in paths])


def statements(daemon, kind):
    return float([x for x in daemon.admin.get("/metrics").body.decode().splitlines()
                  if x.startswith('frazil_sql_statements_total{kind="%s"}' % kind)][0].split()[-1])


def test_many_tables(lab, daemon, db):
    """None of them is loaded. Each has a file that nobody names and one that its head names."""
    made = []
    for i in range(TABLES):
        doc = lab.rest.want(200, "POST", "/v1/namespaces/pace/tables", {"name": "t%d" % i, "schema": {"type": "struct", "fields": [
            {"id": 1, "name": "id", "required": False, "type": "long"}]}}).json
        path = doc["metadata"]["location"] + "/data/left.parquet"
        os.makedirs(os.path.dirname(local(path)))
        open(local(path), "w").close()
        made.append((doc["metadata"]["table-uuid"], path, doc["metadata-location"]))
    daemon.restart()
    for table, path, where in made:
        queue(db, table, [path, where])
    since = time.monotonic()
    while rows(db):
        assert time.monotonic() < since + 120, rows(db)
        time.sleep(0.05)
    print("%d tables with a due file each: %.1f s" % (TABLES, time.monotonic() - since))
    assert not [p for _, p, _ in made if os.path.exists(local(p))]
    assert all(os.path.exists(local(w)) for _, _, w in made)
    # Nothing is due any more: a round is one statement.
    claims, asked = statements(daemon, "clean_claim"), statements(daemon, "clean_due")
    time.sleep(2)
    assert statements(daemon, "clean_claim") == claims
    assert 2 <= statements(daemon, "clean_due") - asked <= 6


def test_one_with_much(lab, db, daemon):
    """Ids on both sides of the one with much: neither waits for its end."""
    t = lab.table("between")
    t.append(1)
    base = t.metadata()["location"]
    much = ["%s/data/%05d.parquet" % (base, i) for i in range(20000)]
    few = {}
    for i in range(40):
        at = str(uuid.UUID(int=(uuid.uuid4().int >> 4) | (i % 16) << 124))  # no such table
        few[at] = "%s/data/few%d.parquet" % (base, i)
    lab.forget(t)
    lab.rest.want(204, "DELETE", t.target)
    with db.transaction():
        queue(db, str(uuid.UUID(int=(8 << 124) + 1)), much, epoch=1)
        for at, path in few.items():
            queue(db, at, [path], epoch=1)
    end = time.monotonic() + 60
    while db.execute("SELECT 1 FROM frazil.object WHERE path LIKE '%/few%'").fetchall():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert rows(db) > 10000
    while rows(db):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_unreadable_table_holds_up_nobody(lab, db, daemon):
    """Nothing of it is deleted, and its paths go back into the queue; the others' go."""
    bad, good = lab.table("bad", audited=False), lab.table("good")
    bad.append(1)
    good.append(1)
    paths = ["%s/data/left.parquet" % t.metadata()["location"] for t in (bad, good)]
    for p in paths:
        open(local(p), "w").close()
    where = bad.load()["metadata-location"]
    ids = [t.metadata()["table-uuid"] for t in (bad, good)]
    lab.forget(bad)
    daemon.stop()
    with open(local(where), "rb") as f:
        text = f.read()
    with open(local(where), "wb") as f:
        f.write(b"{")
    daemon.start()
    for table, path in zip(ids, paths):
        queue(db, table, [path])
    end = time.monotonic() + 20
    while os.path.exists(local(paths[1])) or not [e for e in daemon.events("cleaner.unreadable") if e.get("table") == ids[0] or ids[0] in e["msg"]]:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert os.path.exists(local(paths[0]))
    end = time.monotonic() + 5
    while db.execute("SELECT state FROM frazil.object WHERE path = %s", (paths[0],)).fetchone()[0] != 2:
        assert time.monotonic() < end
    with open(local(where), "wb") as f:
        f.write(text)
    end = time.monotonic() + 20
    while os.path.exists(local(paths[0])):
        assert time.monotonic() < end
        time.sleep(0.05)
