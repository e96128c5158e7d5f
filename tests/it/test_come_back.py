"""Tables that were dropped and come back while the cleaner is at work on what they left: whatever is live in the table that
comes is not deleted without a look, in no order of the two."""

import contextlib
import glob
import json
import os
import threading
import time
import uuid

import psycopg
import pytest

from support.foreign import local
from support.lab import Lab


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 3600000}  # its statements are run by hand


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "back")


@pytest.fixture
def db(conninfo):
    with psycopg.connect(conninfo, autocommit=True) as c:
        c.execute("TRUNCATE frazil.object")
        yield c


def gone(db):
    """Tables that the cleaner chooses as gone."""
    return [t for t, gone in db.execute("SELECT * FROM frazil.clean_due(%s, 0, 0, 1000)", (uuid.UUID(int=0),)).fetchall() if gone]


def take(db, tables):
    """What it would delete without reading their metadata."""
    return {p for t in tables for (p,) in db.execute("SELECT frazil.clean_take(%s, true, 0, 0, 1000)", (t,)).fetchall()}


def claim(db):
    return take(db, gone(db))


def made(lab, name):
    t = lab.table(name, audited=False)
    t.append(3)
    t.append(2)
    lab.forget(t)
    doc = t.load()
    files = {f for f in glob.glob(local(doc["metadata"]["location"]) + "/**", recursive=True) if os.path.isfile(f)}
    assert len(files) > 6
    return t, doc["metadata-location"], {"file://" + f for f in files}


def register(lab, t, where, **more):
    return lab.rest.post("/v1/namespaces/back/register", {"name": t.short, "metadata-location": where, **more})


def drop(lab, t, purge):
    lab.rest.want(204, "DELETE", t.target, purgeRequested=str(purge).lower())


def until_locked(db):
    end = time.monotonic() + 10
    while not db.execute("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").fetchall():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextlib.contextmanager
def beside(work):
    out = []
    thread = threading.Thread(target=lambda: out.append(work()))
    thread.start()
    yield out
    thread.join()


def test_registered_after_it_was_chosen(lab, db):
    """The cleaner has chosen the purged table; it comes back; the cleaner claims. And when it goes once more, nobody has said
    that its files are garbage."""
    t, where, files = made(lab, "chosen")
    drop(lab, t, True)
    assert db.execute("SELECT count(*) FROM frazil.object WHERE state = 2 AND epoch = 1").fetchone()[0] >= len(files) - 1
    chosen = gone(db)
    assert chosen
    assert register(lab, t, where).status == 200
    assert take(db, chosen) == set()
    drop(lab, t, False)
    assert not claim(db)
    assert not db.execute("SELECT path FROM frazil.object").fetchall()


def test_registered_while_it_is_claimed(lab, db, conninfo):
    """The register waits for the claim, then for its deletions, and is told to come again."""
    t, where, files = made(lab, "claimed")
    drop(lab, t, True)
    with psycopg.connect(conninfo) as cleaner:
        taken = claim(cleaner)
        assert taken and taken <= files
        with beside(lambda: register(lab, t, where)) as got:
            until_locked(db)
            cleaner.commit()
    assert got[0].status == 429 and "being deleted" in got[0].error["message"], got
    assert "Retry-After" in got[0].headers
    assert lab.rest.get(t.target).status == 404
    # The deletions are done (none was: all files are still there).
    with beside(lambda: register(lab, t, where)) as got:
        time.sleep(0.4)
        db.execute("SELECT frazil.clean_done(%s, '{}', '{}')", (list(taken),))
    assert got[0].status == 200, got
    assert lab.rest.get(t.target).json["metadata-location"] == where


def test_register_first(lab, db, conninfo):
    """One that is not through yet holds the rows: the claim leaves them."""
    t, where, files = made(lab, "first")
    drop(lab, t, True)
    with psycopg.connect(conninfo) as comes:
        # The part of a register that judges, in a transaction that is still open.
        md = json.load(open(local(where)))
        assert comes.execute("SELECT frazil.take_back(%s, %s, %s)", (md["table-uuid"], md["location"], where)).fetchone()[0]
        assert not claim(db)
    assert not claim(db), "no longer sure to be garbage"


def test_overwrite(lab, db):
    """Refused: the table that is there stays as it is, its transactions live."""
    t, where, _ = made(lab, "over")
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(t.files(2))
        db.execute("INSERT INTO frazil.object (path, table_id, state, since_ms) VALUES ('file:///x', %s, 3, frazil.now_ms())",
                   (t.metadata()["table-uuid"],))
        assert register(lab, t, where, overwrite=True).status == 429
        assert txn.commit().state == "COMMITTED"
    db.execute("DELETE FROM frazil.object WHERE path = 'file:///x'")
    assert register(lab, t, where, overwrite=True).status == 200
    assert lab.rest.get(t.target).json["metadata-location"] == where


def test_under_another_uuid(lab, db):
    """A copy of the metadata names the same files: they lie beneath its location."""
    t, where, files = made(lab, "copy")
    md = json.load(open(local(where)))
    md["table-uuid"] = str(uuid.uuid4())
    copy = where.replace(".metadata.json", "-copy.metadata.json")
    with open(local(copy), "w") as f:
        json.dump(md, f)
    drop(lab, t, True)
    db.execute("UPDATE frazil.object SET state = 3 WHERE path = %s", (where,))
    assert register(lab, t, copy).status == 429
    db.execute("UPDATE frazil.object SET state = 2 WHERE path = %s", (where,))
    assert register(lab, t, copy).status == 200
    drop(lab, t, False)
    assert not claim(db)


def test_metadata_of_a_create_that_was_given_up(lab, db):
    """Its file stands in the ledger; somebody registers it. It is no garbage any more, also when the table has gone again."""
    t, where, _ = made(lab, "given_up")
    drop(lab, t, False)
    db.execute("TRUNCATE frazil.object")
    db.execute("INSERT INTO frazil.object (path, table_id, owner, epoch, state, since_ms) VALUES (%s, %s, %s, -1, 1, 1)",
               (where, json.load(open(local(where)))["table-uuid"], uuid.uuid4()))
    assert register(lab, t, where).status == 200
    drop(lab, t, False)
    assert not claim(db)


def test_metadata_that_was_overwritten(lab, db, daemon):
    """The file that a live table names holds another table's document: not registered, whatever its uuid. Not every head is
    read for it."""
    t, where, _ = made(lab, "overwritten")
    with open(local(where)) as f:
        md = json.load(f)
    with open(local(where), "w") as f:
        json.dump({**md, "table-uuid": str(uuid.uuid4()), "location": md["location"] + "-other"}, f)
    daemon.restart()  # it remembers what it has read
    got = lab.rest.post("/v1/namespaces/back/register", {"name": "second", "metadata-location": where})
    assert got.status == 409 and got.error["type"] == "AlreadyExistsException" and "metadata location" in got.error["message"], got
    with db.transaction(force_rollback=True):
        db.execute("INSERT INTO frazil.head SELECT gen_random_uuid(), 1, 1, gen_random_uuid(), 1, 'file:///x/' || i, 1, 1, 1"
                   " FROM generate_series(1, 20000) i")
        read = "SELECT seq_tup_read FROM pg_stat_xact_user_tables WHERE schemaname = 'frazil' AND relname = 'head'"
        before = db.execute(read).fetchone()[0]
        for name in ("second", "third"):
            (verdict,) = db.execute("SELECT (frazil.create_table('main', '{}', 'back', %s, gen_random_uuid(), 'file:///n', false,"
                                    " gen_random_uuid(), gen_random_uuid(), 0, '', '{}', 0, 0, %s, 0, 0, '{}')).verdict",
                                    (name, where if name == "second" else "file:///n/m.json")).fetchone()
            assert verdict == (6 if name == "second" else 0)
        assert db.execute(read).fetchone()[0] == before
