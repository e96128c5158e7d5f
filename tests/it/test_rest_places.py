"""Where tables and views may lie: none in, around or at a place of another one."""

import os
import threading
import time
import uuid

import psycopg
import pytest

from support.openapi import Checked

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture(scope="module")
def space(daemon):
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["p"]})
    return "/v1/namespaces/p"


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


@pytest.fixture
def base(daemon):
    """A folder of this test's own in the warehouse, as a URI."""
    return "file://%s/%s" % (daemon.warehouse, uuid.uuid4().hex)


def name():
    return "t" + uuid.uuid4().hex


def create(rest, space, location=None, properties=None, called=None, **more):
    body = {"name": called or name(), "schema": SCHEMA, "properties": properties or {}, **more}
    if location:
        body["location"] = location
    return rest.post(space + "/tables", body)


def made(rest, space, location=None, properties=None, **more):
    got = create(rest, space, location, properties, **more)
    assert got.status == 200, got
    return got.json


def taken(got):
    assert got.status == 403 and got.error["type"] == "ForbiddenException" and "overlaps" in got.error["message"], got


def refused(got, field=None):
    """Refused before anything was stored, for the spelling or because it lies elsewhere."""
    assert got.status == 400, got
    assert field is None or field in got.error["message"], got


def view_body(location, called=None, **properties):
    return {"name": called or name(), "location": location, "schema": {"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False}]}, "properties": properties,
        "view-version": {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {},
                         "default-namespace": ["p"], "representations": [
                             {"type": "sql", "sql": "select 1 id", "dialect": "spark"}]}}


def test_inside_around_at(rest, space, base):
    """case BC-180, BC-183, BC-193: a neighbour whose name begins alike is none of it."""
    made(rest, space, base + "/a/t")
    for where in ("/a/t", "/a/t/", "/a/t/in", "/a/t/in/deeper", "/a", "/a//t", "/a//t//in"):
        taken(create(rest, space, base + where))
    for where in ("/a/t2", "/a/t_bak", "/a/t.", "/a/t-", "/a/t%"):
        made(rest, space, base + where)
    assert len([t for t in rest.get(space + "/tables").json["identifiers"]]) >= 6


def test_spellings(rest, space, base, daemon):
    """The same folder in other words. case BC-189, BC-204"""
    made(rest, space, base + "/ab/ü")
    bare = base[len("file://"):]
    for where in ("file:" + bare + "/ab", bare + "/ab/ü/x", "FILE://" + bare + "/ab", base + "/%61b",
                  base + "/a%62/%c3%bc/y", base + "/ab/%C3%BC"):
        taken(create(rest, space, where))
    for where in (base + "/ab/./u", base + "/x/../ab", base + "/x/%2e%2e/ab", base + "/x/.%2E/ab", base + "/ab/%2e",
                  base + "/x%2Fy", base + "/x%5cy", base + "/x\\y", base + "/x%00", base + "/x\n", base + "/x ",
                  " " + base + "/x", base + "/x\u00a0", base + "/\u3000", "/", "file:///", "w/t", "s3://b/t", "file://host/x"):
        refused(create(rest, space, where), "location")  # case BC-194, BC-196
        refused(create(rest, space, base + "/fine", {"write.data.path": where}), "write.data.path")
    refused(create(rest, space, base + "/" + "x" * 200 * 12), "location")
    deep = base + "/d" * 300
    made(rest, space, deep)
    taken(create(rest, space, deep + "/e"))
    taken(create(rest, space, base + "/d" * 100))


def test_folders_of_properties(rest, space, base):
    """case BC-200, BC-213: those within the own location are fine."""
    own = {"write.data.path": base + "/t/d", "write.metadata.path": base + "/t/m"}
    t = made(rest, space, base + "/t", own, called="own")
    assert t["metadata-location"].startswith(base + "/t/m/")
    rest.want(200, "POST", space + "/tables/own", {"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"x": "1"}}]})
    made(rest, space, base + "/u", {"write.data.path": base + "/shared"}, called="mover")
    for key in ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"):
        for where in ("/t", "/t/d/x", "/shared", "/shared/x", "/"):
            got = create(rest, space, base + "/v", {key: base + where})
            taken(got)
            taken(rest.post(space + "/tables/mover", {"requirements": [], "updates": [
                {"action": "set-properties", "updates": {key: base + where}}]}) if where.startswith("/t") else got)
        refused(create(rest, space, base + "/v", {key: "file:///etc"}), key)
        refused(rest.post(space + "/tables/mover", {"requirements": [], "updates": [
            {"action": "set-location", "location": base + "/u"},
            {"action": "set-properties", "updates": {key: "file:///etc"}}]}), key)
    taken(create(rest, space, base + "/shared/t"))
    # Nothing of the refused commits is there.
    got = rest.get(space + "/tables/mover").json["metadata"]
    assert got["properties"]["write.data.path"] == base + "/shared" and got["location"] == base + "/u"


def test_moves(rest, space, base):
    """A table that moves gives the old folder free and takes the new one."""
    made(rest, space, base + "/a", called="m1")
    made(rest, space, base + "/b", {"write.data.path": base + "/data"}, called="m2")

    def move(table, where):
        return rest.post(space + "/tables/" + table, {"requirements": [], "updates": [
            {"action": "set-location", "location": base + where}]})
    taken(move("m1", "/b"))
    taken(move("m1", "/b/x"))
    taken(move("m1", "/"))
    taken(move("m1", "/data/1"))
    refused(rest.post(space + "/tables/m1", {"requirements": [], "updates": [
        {"action": "set-location", "location": "file:///etc/x"}]}), "updates[0].location")
    assert move("m1", "/c").status == 200
    made(rest, space, base + "/a")
    taken(create(rest, space, base + "/c"))
    assert rest.post(space + "/tables/m2", {"requirements": [], "updates": [
        {"action": "remove-properties", "removals": ["write.data.path"]}]}).status == 200
    made(rest, space, base + "/data")
    rest.want(204, "DELETE", space + "/tables/m1")
    made(rest, space, base + "/c")


def test_staged(rest, space, base):
    """The commit decides; a staged creation holds nothing. case BC-199"""
    refused(create(rest, space, "file:///etc/x", **{"stage-create": True}), "location")
    called = name()
    doc = made(rest, space, base + "/s", called=called, **{"stage-create": True})["metadata"]
    made(rest, space, base + "/s/inner")
    updates = [{"action": "assign-uuid", "uuid": doc["table-uuid"]},
               {"action": "upgrade-format-version", "format-version": doc["format-version"]},
               {"action": "add-schema", "schema": doc["schemas"][0], "last-column-id": 1},
               {"action": "set-current-schema", "schema-id": -1},
               {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
               {"action": "set-default-spec", "spec-id": -1},
               {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
               {"action": "set-default-sort-order", "sort-order-id": -1},
               {"action": "set-location", "location": doc["location"]}]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    taken(rest.post("%s/tables/%s" % (space, called), body))
    assert rest.head("%s/tables/%s" % (space, called)).status == 404
    updates[-1]["location"] = base + "/s2"
    assert rest.post("%s/tables/%s" % (space, called), body).status == 200


def test_register(rest, space, base, daemon):
    """case BC-045, BC-193, BC-203: what the file says is what counts."""
    t = made(rest, space, base + "/r", called="reg")
    rest.want(204, "DELETE", space + "/tables/reg")
    other = made(rest, space, base + "/r/below", called="reg_other")
    again = {"name": "reg", "metadata-location": t["metadata-location"]}
    taken(rest.post(space + "/register", again))
    taken(rest.post(space + "/register", {**again, "name": "reg_other2", "overwrite": True}))
    # In place of the one that is in the way it fits.
    assert rest.post(space + "/register", {**again, "name": "reg_other", "overwrite": True}).status == 200
    taken(rest.post(space + "/register", {"name": "back", "metadata-location": other["metadata-location"]}))
    rest.want(204, "DELETE", space + "/tables/reg_other")
    assert rest.post(space + "/register", {"name": "back", "metadata-location": other["metadata-location"]}).status == 200
    # The document's own location and folders are judged, not only where it lies.
    path = other["metadata-location"][len("file://"):]
    text = open(path).read()
    for old, new in ((base + "/r/below", "file:///etc/elsewhere"), ('"properties":{', '"properties":{"write.data.path":"file:///etc",')):
        fake = path.replace(".metadata.json", uuid.uuid4().hex + ".metadata.json")
        with open(fake, "w") as f:
            f.write(text.replace(old, new))
        assert open(fake).read() != text
        refused(rest.post(space + "/register", {"name": name(), "metadata-location": "file://" + fake}))


def test_views(rest, space, base):
    """case BC-037: a view's place is one like a table's."""
    made(rest, space, base + "/t")
    v = rest.post(space + "/views", view_body(base + "/v", "v1"))
    assert v.status == 200
    for where in ("/t", "/t/v", "/v", "/v/x", "/"):
        taken(rest.post(space + "/views", view_body(base + where)))
    taken(rest.post(space + "/views", view_body(base + "/w", **{"write.metadata.path": base + "/t/meta"})))
    refused(rest.post(space + "/views", view_body(base + "/x/../t")), "location")
    taken(create(rest, space, base + "/v/t"))
    assert len(os.listdir((base + "/v/metadata")[len("file://"):])) == 1

    def change(*updates):
        return rest.post(space + "/views/v1", {"requirements": [], "updates": list(updates)})
    taken(change({"action": "set-location", "location": base + "/t/v"}))
    taken(change({"action": "set-properties", "updates": {"write.metadata.path": base + "/t"}}))
    refused(change({"action": "set-location", "location": "file:///etc/v"}), "location")
    assert change({"action": "set-location", "location": base + "/v2"}).status == 200
    made(rest, space, base + "/v")
    rest.want(204, "DELETE", space + "/views/v1")
    made(rest, space, base + "/v2")
    again = {"name": name(), "metadata-location": v.json["metadata-location"]}
    taken(rest.post(space + "/register-view", again))


def test_several_at_once(rest, space, base):
    """One request over several tables: judged as it leaves them all, and nothing of a refused one is there."""
    made(rest, space, base + "/a", called="s1")
    made(rest, space, base + "/b", called="s2")

    def commit(**moves):
        return rest.post("/v1/transactions/commit", {"table-changes": [
            {"identifier": {"namespace": ["p"], "name": n}, "requirements": [], "updates": [
                {"action": "set-location", "location": base + where}]} for n, where in moves.items()]})

    def where():
        return [rest.get(space + "/tables/" + n).json["metadata"]["location"][len(base):] for n in ("s1", "s2")]
    taken(commit(s1="/c", s2="/c/d"))
    taken(commit(s1="/c", s2="/c"))
    refused(commit(s1="/c", s2="/../e"), "location")
    assert where() == ["/a", "/b"]
    assert commit(s1="/b", s2="/a").status == 204 and where() == ["/b", "/a"]
    taken(create(rest, space, base + "/a/x"))
    made(rest, space, base + "/c")


def test_one_of_a_race(daemon, rest, space, base):
    """Creations of places that overlap: exactly one wins, whatever their spelling."""
    for k in range(12):
        at = "%s/%d/x" % (base, k)
        wanted = [at, at + "/y", "%s/%d" % (base, k), at + "//y/z", at + "/"] + [at + "/y/%d" % i for i in range(3)]
        got = [None] * len(wanted)
        gate = threading.Barrier(len(wanted))

        def run(i):
            gate.wait()
            got[i] = create(daemon.rest, space, wanted[i]).status
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(wanted))]
        [t.start() for t in threads]
        [t.join() for t in threads]
        won = [w.rstrip("/").replace("//", "/") + "/" for w, s in zip(wanted, got) if s == 200]
        assert set(got) <= {200, 403} and won, got
        for a in won:
            assert not [b for b in won if b != a and b.startswith(a)], won
        assert len(won) == len(set(won))


def test_many_siblings(daemon, rest, space, base, conninfo):
    """A creation among 50,000 siblings costs what one among few does. Public failure: minutes of 5,000."""
    def cost():
        spent = []
        for _ in range(15):
            since = time.monotonic()
            made(daemon.rest, space, base + "/" + uuid.uuid4().hex)
            spent.append(time.monotonic() - since)
        return sorted(spent)[len(spent) // 2]
    before = cost()
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("""WITH ns AS (SELECT namespace_id FROM frazil.namespace WHERE name = 'p'), made AS (
            INSERT INTO frazil.tabular (table_id, namespace_id, name, kind, location, placed)
            SELECT gen_random_uuid(), ns.namespace_id, 'sib' || i, 1, %(base)s || '/s' || i, true
            FROM ns, generate_series(1, 50000) i RETURNING table_id, location)
            INSERT INTO frazil.place SELECT frazil.place_of(location), table_id FROM made""", {"base": base})
        after = cost()
        taken(create(rest, space, base + "/s777/x"))
        taken(create(rest, space, base))
        plan = "\n".join(r[0] for r in db.execute("""EXPLAIN SELECT o.path FROM frazil.place o
            WHERE o.path > 'x/' COLLATE "C" AND o.path < 'x0' COLLATE "C" ORDER BY o.path LIMIT 1"""))
        assert "Index" in plan and "Seq Scan" not in plan
        db.execute("DELETE FROM frazil.tabular WHERE name LIKE 'sib%'")
    print("create: %.1f ms before, %.1f ms among 50,000" % (before * 1e3, after * 1e3))
    assert after < before * 3 + 0.02


def test_allowed(make_daemon):
    """warehouse.allow-overlap; and later without it the old ones go on."""
    d = make_daemon(settings={"warehouse.allow-overlap": "yes"})
    base = "file://" + d.warehouse
    d.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["p"]})
    space = "/v1/namespaces/p"
    for called, where in (("a", "/x"), ("b", "/x"), ("c", "/x/y")):
        made(d.rest, space, base + where, called=called)
    d.stop()
    d.start(**{"warehouse.allow-overlap": "no"})
    for called in "abc":
        for updates in ({"x": "1"}, {"write.metadata.path": base + "/meta-" + called}):
            got = d.rest.post(space + "/tables/" + called, {"requirements": [], "updates": [
                {"action": "set-properties", "updates": updates}]})
            assert got.status == 200, got
    taken(create(d.rest, space, base + "/x/z"))
    taken(d.rest.post(space + "/tables/a", {"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"write.data.path": base + "/x/y"}}]}))


def test_upgrade(make_daemon, postgres):
    """Tables from before the list of places, overlapping ones too: the start goes through, their folders are
    read from their metadata, and they count from then on."""
    conninfo = postgres.database()
    d = make_daemon(conninfo, settings={"warehouse.allow-overlap": "yes"})
    base = "file://" + d.warehouse
    d.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["p"]})
    space = "/v1/namespaces/p"
    made(d.rest, space, base + "/x", {"write.data.path": base + "/data"}, called="a")
    made(d.rest, space, base + "/x/y", called="b")
    lost = made(d.rest, space, base + "/lost", {"write.data.path": base + "/data2"}, called="lost")
    d.stop()
    os.rename(lost["metadata-location"][len("file://"):], d.warehouse + "/aside")
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("DELETE FROM frazil.place")
        db.execute("UPDATE frazil.tabular SET placed = false")
        db.execute("INSERT INTO frazil.place SELECT frazil.place_of(location), table_id FROM frazil.tabular")
        d.start(**{"warehouse.allow-overlap": "no"})
        end = time.monotonic() + 20
        while db.execute("SELECT count(*) FROM frazil.tabular WHERE NOT placed").fetchone()[0] != 1:
            assert time.monotonic() < end, d.log()[-3000:]
            time.sleep(0.05)
    taken(create(d.rest, space, base + "/data/x"))
    assert "ev=places.unread" in d.log()
    # A commit tells them too.
    os.rename(d.warehouse + "/aside", lost["metadata-location"][len("file://"):])
    made(d.rest, space, base + "/free")


def test_unread_table_stops_what_may_be_its(make_daemon, postgres):
    """After an upgrade the metadata of one table cannot be read: what may lie in its folders stays, the rest is cleaned."""
    conninfo = postgres.database()
    fast = {"cleaner.interval-ms": 50, "cleaner.grace-ms": 0}
    d = make_daemon(conninfo, settings={"cleaner.interval-ms": 3600000})
    base = "file://" + d.warehouse
    d.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["p"]})
    space = "/v1/namespaces/p"
    read = made(d.rest, space, base + "/read", {"write.data.path": base + "/data"}, called="read")
    lost = made(d.rest, space, base + "/lost", {"write.metadata.path": base + "/lostmeta"}, called="lost")
    gone = made(d.rest, space, base + "/gone", {"write.metadata.path": base + "/gonemeta"}, called="gone")
    where, gone_file = lost["metadata-location"][len("file://"):], gone["metadata-location"][len("file://"):]
    assert "/lostmeta/" in where and "/gonemeta/" in gone_file
    d.stop()
    os.rename(where, d.warehouse + "/aside")
    goes, waits = [base + "/read/a"], [base + "/data/b", base + "/lostmeta/c"]
    for p in goes + waits:
        os.makedirs(os.path.dirname(p[len("file://"):]), exist_ok=True)
        open(p[len("file://"):], "w").close()

    def there(uris):
        return [u for u in uris if os.path.exists(u[len("file://"):])]

    def gauge():
        return [x for x in d.admin.get("/metrics").body.decode().splitlines() if x.startswith("frazil_places_unread ")][0].split()[-1]

    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("DELETE FROM frazil.place")
        db.execute("UPDATE frazil.tabular SET placed = false")
        db.execute("INSERT INTO frazil.place SELECT frazil.place_of(location), table_id FROM frazil.tabular")
        for p in goes + waits:
            db.execute("INSERT INTO frazil.object (path, table_id, state, since_ms) VALUES (%s, %s, 2, 0)", (p, read["metadata"]["table-uuid"]))
        d.start()
        end = time.monotonic() + 20
        while gauge() != "1":
            assert time.monotonic() < end
            time.sleep(0.05)
        # A purge in the meantime: its own location is its own, another folder may be the unread one's.
        own = base + "/gone/x"
        os.makedirs(d.warehouse + "/gone", exist_ok=True)
        open(own[len("file://"):], "w").close()
        db.execute("INSERT INTO frazil.object (path, table_id, state, since_ms) VALUES (%s, %s, 2, 0)", (own, gone["metadata"]["table-uuid"]))
        d.rest.want(204, "DELETE", space + "/tables/gone", purgeRequested="true")
        d.restart(**fast)
        while there(goes + [own]):
            assert time.monotonic() < end, there(goes + [own])
            time.sleep(0.05)
        time.sleep(0.5)
        assert there(waits) == waits and os.path.exists(gone_file)
        assert db.execute("SELECT count(*) FROM frazil.object").fetchone()[0] == 3
        assert "ev=cleaner.waits" in d.log() and "ev=places.unread" in d.log()
        d.stop()
        os.rename(d.warehouse + "/aside", where)
        d.start(**fast)
        end = time.monotonic() + 20
        while there(waits[:1]) or os.path.exists(gone_file):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert gauge() == "0"
        # Now the list knows that it lies in another's folder.
        assert there(waits) == waits[1:]


def test_upgrade_of_a_busy_table(make_daemon, postgres):
    """Between the look at an old table's metadata and the note of its folders somebody commits: it is looked at again. The
    cleaner waits until all are known."""
    conninfo = postgres.database()
    d = make_daemon(conninfo)
    d.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["p"]})
    made(d.rest, "/v1/namespaces/p", "file://%s/busy" % d.warehouse)
    d.stop()
    with psycopg.connect(conninfo) as other, psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("UPDATE frazil.tabular SET placed = false")
        other.execute("SELECT 1 FROM frazil.head FOR UPDATE")
        d.start()
        end = time.monotonic() + 20
        while not db.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                             " AND query LIKE '%note_places%'").fetchone()[0]:
            assert time.monotonic() < end, d.log()[-3000:]
            time.sleep(0.05)
        other.execute("UPDATE frazil.head SET version = version + 1")
        other.commit()
        while db.execute("SELECT count(*) FROM frazil.tabular WHERE NOT placed").fetchone()[0]:
            assert time.monotonic() < end, d.log()[-3000:]
            time.sleep(0.05)
