"""Failures of other systems with concurrent commits, refs and history, each tried here. The case ids are those of the field-case list."""

import concurrent.futures
import os
import random
import threading
import time
import uuid

import pytest

from support import audit
from support.foreign import Writer, local, read_avro, write_avro
from support.lab import Lab, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "commits")
    yield lab
    lab.check()


def snapshot(t, parent="head", ref="main", **more):
    """An add-snapshot of the ref's head again; members of `more` win."""
    w = Writer(t, ref)
    w.load()
    path = w.new_path("avro")
    write_avro(path, w.list_schema, w.list_header, w.list)
    return {"snapshot-id": random.getrandbits(62) | 1, "parent-snapshot-id": w.parent["snapshot-id"] if parent == "head" else parent,
            "sequence-number": w.md["last-sequence-number"] + 1, "timestamp-ms": int(time.time() * 1000), "manifest-list": path,
            "summary": {"operation": "append"}, "schema-id": 0, "first-row-id": w.md["next-row-id"], "added-rows": 0, **more}


def set_ref(name, sid, kind="branch"):
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": sid}


def at(ref, sid):
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": sid}


def post(t, updates, requirements=()):
    return t.lab.rest.post(t.target, {"requirements": list(requirements), "updates": list(updates)})


def add(s, ref="main"):
    return [{"action": "add-snapshot", "snapshot": s}, set_ref(ref, s["snapshot-id"])]


def error(got, status, kind=None):
    assert got.status == status and (kind is None or got.error["type"] == kind), got
    return got.error


def test_the_same_request_again(lab):
    """case BC-131: the answer to a commit was lost, its bytes come again: never a plain conflict with itself."""
    t = lab.table("again", audited=False)
    _, o = t.append(5)
    s = snapshot(t)
    first = post(t, add(s), [at("main", o.snapshot_id)])
    assert first.status == 200
    again = post(t, add(s), [at("main", o.snapshot_id)])
    assert again.status == 200 or again.error["type"] == "CommitStateUnknownException", again
    assert [x["snapshot-id"] for x in t.metadata()["snapshots"]].count(s["snapshot-id"]) == 1
    # Later, behind the commits of others: its snapshot is still there, so it did happen.
    t.append(1)
    again = post(t, add(s), [at("main", o.snapshot_id)])
    assert again.status == 200 or again.error["type"] == "CommitStateUnknownException", again
    # An operator has halted the table meanwhile: that is no word on this request, which was done.
    halt = "/admin/tables/%s/" % t.metadata()["table-uuid"]
    assert t.lab.daemon.admin.post(halt + "halt", {"cause": "a look"}).status < 300
    again = post(t, add(s), [at("main", o.snapshot_id)])
    assert again.status == 200 and s["snapshot-id"] in [x["snapshot-id"] for x in again.json["metadata"]["snapshots"]], again
    error(post(t, add({**s, "snapshot-id": 5}), [at("main", o.snapshot_id)]), 409, "TableHaltedException")
    assert t.lab.daemon.admin.post(halt + "resume").status < 300
    # Another attempt under that id: the client's earlier one is there, its files are live.
    error(post(t, add({**s, "manifest-list": snapshot(t)["manifest-list"]}), [at("main", o.snapshot_id)]),
          500, "CommitStateUnknownException")


def test_part_of_a_request_again(lab):
    """case BC-131: what is there of a request does not tell all of it: neither that it was done nor that it was not."""
    t = lab.table("part", audited=False)
    _, o = t.append(5)
    # Staged first, then the same with a ref: main has never been there.
    s = snapshot(t)
    assert post(t, add(s)[:1]).status == 200
    error(post(t, add(s), [at("main", o.snapshot_id)]), 500, "CommitStateUnknownException")
    assert t.head() == o.snapshot_id
    # Two snapshots of one request, as a MERGE makes them; the first is expired since.
    a = snapshot(t)
    b = {**snapshot(t, parent=a["snapshot-id"]), "sequence-number": a["sequence-number"] + 1}
    both = [{"action": "add-snapshot", "snapshot": a}, *add(b)]
    assert post(t, both, [at("main", o.snapshot_id)]).status == 200
    assert post(t, both, [at("main", o.snapshot_id)]).status == 200
    assert post(t, [{"action": "remove-snapshots", "snapshot-ids": [a["snapshot-id"]]}]).status == 200
    error(post(t, both, [at("main", o.snapshot_id)]), 500, "CommitStateUnknownException")
    # Rolled back since: it was done, and is not what main says.
    assert post(t, [set_ref("main", o.snapshot_id)]).status == 200
    error(post(t, add(b), [at("main", o.snapshot_id)]), 500, "CommitStateUnknownException")
    assert t.head() == o.snapshot_id


def test_dropped_and_created_again(lab, daemon):
    """cases BC-131, BC-151: repeated drops say that it is gone; of twenty at once one did it."""
    t = lab.table("gone")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        got = [f.result().status for f in [pool.submit(daemon.rest.delete, t.target) for _ in range(20)]]
    assert sorted(got) == [204] + [404] * 19
    lab.forget(t)


def test_empty_updates_write_nothing(lab):
    """case BC-151: requirements are judged, nothing is written."""
    t = lab.table("empty")
    t.append(2)
    before = t.load()
    folder = os.path.dirname(local(before["metadata-location"]))
    files = sorted(os.listdir(folder))
    for updates in ([], [{"action": "remove-properties", "removals": ["none"]}], [{"action": "remove-snapshot-ref", "ref-name": "none"}]):
        got = post(t, updates, [{"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"]}])
        assert got.status == 200 and got.json["metadata-location"] == before["metadata-location"], got
    error(post(t, [], [at("main", 1)]), 409, "CommitFailedException")
    assert sorted(os.listdir(folder)) == files


def test_every_metadata_file_stays(lab):
    """case BC-132: many committers at once, a slow one between write and pointer: as many snapshots as answers, no file lost."""
    t = lab.table("many", **{"write.metadata.previous-versions-max": "300"})
    t.append(1)

    def one(i):
        for _ in range(40):
            got = post(t, [{"action": "set-properties", "updates": {"k%d" % i: str(i)}}])
            if got.status == 200:
                return got.json
        raise AssertionError(got)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        got = [f.result() for f in [pool.submit(one, i) for i in range(60)]]
    assert len({g["metadata-location"] for g in got}) == 60
    now = t.load()
    log = [e["metadata-file"] for e in now["metadata"]["metadata-log"]] + [now["metadata-location"]]
    assert len(set(log)) == len(log) and {g["metadata-location"] for g in got} <= set(log)
    assert all(os.path.exists(local(f)) for f in log)
    for g in got[:5]:
        import json
        with open(local(g["metadata-location"])) as f:
            assert json.load(f) == g["metadata"]


def test_a_stale_overwrite(lab):
    """cases BC-134, BC-144: a commit against a moved ref is refused, not replayed; what was removed stays removed."""
    t = lab.table("stale", audited=False)
    one, o = t.append(3)
    two, _ = t.append(3)
    base = t.head()
    s = snapshot(t, summary={"operation": "overwrite"})  # lists both files
    t.delete(one, range(3), base)
    t.delete(two, range(3), base)
    error(post(t, add(s), [at("main", base)]), 409, "CommitFailedException")
    assert audit.rows(lab.daemon, t.name) == [] and t.ids() == []
    # Without an assertion of a ref both of two changes survive.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        got = [f.result().status for f in [pool.submit(post, t, [{"action": "set-properties", "updates": {k: "1"}}]) for k in "ab"]]
    assert got == [200, 200] and {"a", "b"} <= set(t.metadata()["properties"])
    t.append(1)


def test_branches_share_the_numbers(lab):
    """case BC-135: a stale sequence number on another branch is a race, 409; anew it lands, and numbers only rise."""
    t = lab.table("numbers", audited=False)
    _, o = t.append(2)
    post(t, [set_ref("b", o.snapshot_id)])
    one, two = snapshot(t), snapshot(t, ref="b")
    assert post(t, add(one), [at("main", o.snapshot_id)]).status == 200
    error(post(t, add(two, "b"), [at("b", o.snapshot_id)]), 409, "CommitFailedException")
    two = snapshot(t, ref="b")
    assert post(t, add(two, "b"), [at("b", o.snapshot_id)]).status == 200
    t.append(1)
    numbers = [s["sequence-number"] for s in t.metadata()["snapshots"]]
    assert numbers == sorted(set(numbers))


def test_removal_of_what_a_ref_needs(lab):
    """cases BC-139, BC-140: a snapshot that a tag or branch names is never removed from under it, nor named when it is gone."""
    t = lab.table("refs", audited=False)
    ids = [t.append(1)[1].snapshot_id for _ in range(5)]
    t.update([set_ref("t", ids[1], "tag"), set_ref("b", ids[2])])
    before = t.metadata()
    got = post(t, [{"action": "remove-snapshots", "snapshot-ids": [ids[1]]}])
    if got.status == 200:  # then the tag goes with it
        assert "t" not in got.json["metadata"]["refs"]
        pytest.fail("a snapshot was removed from under its tag")
    assert got.status in (400, 409) and t.metadata() == before
    # Planned before the tag was made, committed after.
    plan = [{"action": "remove-snapshots", "snapshot-ids": [ids[0], ids[3]]}]
    t.update([set_ref("late", ids[3], "tag")])
    assert post(t, plan).status in (400, 409)
    got = post(t, [{"action": "remove-snapshots", "snapshot-ids": [ids[0]]}])
    assert got.status == 200, got
    assert {s["snapshot-id"] for s in got.json["metadata"]["snapshots"]} == set(ids[1:])
    error(post(t, [set_ref("ghost", ids[0], "tag")]), 400)
    for sid in ids[1:]:
        s = next(x for x in t.metadata()["snapshots"] if x["snapshot-id"] == sid)
        for row in read_avro(s["manifest-list"])[2]:
            for e in read_avro(row["manifest_path"])[2]:
                assert os.path.exists(local(e["data_file"]["file_path"]))
    t.append(1)


def test_ids_of_snapshots(lab):
    """case BC-142: an id is given once; another snapshot under a known id is refused, also within one request. Of a
    committed id that is no conflict: a client keeps the id for all attempts of its own, and one of them is there."""
    t = lab.table("sid", audited=False)
    _, o = t.append(2)
    s = snapshot(t)
    error(post(t, add({**s, "snapshot-id": o.snapshot_id})), 500, "CommitStateUnknownException")
    other = snapshot(t)
    assert post(t, add(s) + add({**other, "snapshot-id": s["snapshot-id"], "sequence-number": s["sequence-number"] + 1,
                                 "parent-snapshot-id": s["snapshot-id"]})).status in (400, 409)
    for bad in (-1, 1 << 63, 1.5, "7"):
        assert post(t, add({**s, "snapshot-id": bad})).status == 400, bad
    assert [x["snapshot-id"] for x in t.metadata()["snapshots"]] == [o.snapshot_id]
    ids = [t.append(1)[1].snapshot_id for _ in range(5)]
    assert all(0 < i < 1 << 63 for i in ids) and len(set(ids)) == 5


def test_clocks_of_clients(lab):
    """case BC-143: a snapshot from the future is refused; one a little behind keeps the log in order."""
    t = lab.table("clock", audited=False)
    t.append(1)
    s = snapshot(t)
    error(post(t, add({**s, "timestamp-ms": s["timestamp-ms"] + 3600 * 1000})), 400)
    got = post(t, add({**s, "timestamp-ms": s["timestamp-ms"] + 20 * 1000}))
    assert got.status == 200, got
    t.append(1)
    t.append(1)
    md = t.metadata()
    stamps = [e["timestamp-ms"] for e in md["snapshot-log"]]
    assert all(b >= a for a, b in zip(stamps, stamps[1:])), stamps
    assert md["last-updated-ms"] >= stamps[-1]
    by_id = {s["snapshot-id"]: s for s in md["snapshots"]}
    assert all(by_id[e["snapshot-id"]]["timestamp-ms"] == e["timestamp-ms"] for e in md["snapshot-log"])


def test_several_changes_in_one_request(lab):
    """case BC-146: applied in order to a copy; only the last current snapshot is in the log; contradictions are refused."""
    t = lab.table("order", audited=False)
    _, o = t.append(1)
    s2 = snapshot(t)
    s3 = {**snapshot(t), "parent-snapshot-id": s2["snapshot-id"], "sequence-number": s2["sequence-number"] + 1}
    error(post(t, add(s2), [at("main", o.snapshot_id), at("main", s2["snapshot-id"])]), 409)
    got = post(t, add(s2) + add(s3), [at("main", o.snapshot_id)])
    assert got.status == 200, got
    md = got.json["metadata"]
    assert [e["snapshot-id"] for e in md["snapshot-log"]] == [o.snapshot_id, s3["snapshot-id"]]
    assert {s["snapshot-id"] for s in md["snapshots"]} == {o.snapshot_id, s2["snapshot-id"], s3["snapshot-id"]}
    got = post(t, [set_ref("x", o.snapshot_id, "tag"), {"action": "remove-snapshot-ref", "ref-name": "x"},
                   set_ref("main", s3["snapshot-id"]), {"action": "remove-snapshot-ref", "ref-name": "never"}])
    assert got.status == 200 and set(got.json["metadata"]["refs"]) == {"main"}
    error(post(t, [set_ref("main", 12345)]), 400)
    t.append(1)


def test_replace_on_a_stale_base(lab):
    """case BC-150: a replaced table keeps what others committed meanwhile, and what was expired stays away."""
    t = lab.table("replace", audited=False)
    ids = [t.append(1)[1].snapshot_id for _ in range(3)]
    old = t.metadata()
    s = snapshot(t, parent=None)
    later = t.append(1)[1].snapshot_id
    t.update([{"action": "remove-snapshots", "snapshot-ids": [ids[0]]}])
    replace = [{"action": "add-schema", "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}},
               {"action": "set-current-schema", "schema-id": -1}, {"action": "remove-snapshot-ref", "ref-name": "main"}]
    got = post(t, replace + add({k: v for k, v in s.items() if v is not None}), [{"type": "assert-table-uuid", "uuid": old["table-uuid"]}])
    if got.status != 200:  # its sequence number is old: anew, as a client does
        error(got, 409, "CommitFailedException")
        s = {k: v for k, v in snapshot(t, parent=None).items() if v is not None}
        got = post(t, replace + add(s), [{"type": "assert-table-uuid", "uuid": old["table-uuid"]}])
    assert got.status == 200, got
    known = {x["snapshot-id"] for x in got.json["metadata"]["snapshots"]}
    assert later in known and ids[0] not in known and s["snapshot-id"] in known
    assert got.json["metadata"]["current-snapshot-id"] == s["snapshot-id"]
    lab.forget(t)


def test_roll_back_and_go_on(lab):
    """case BC-157: after a rollback the head follows, numbers and ids are not used again, the new parent is the old snapshot."""
    t = lab.table("back", audited=False)
    path, one = t.append(10)
    two_path, two = t.append(5)
    t.delete(path, [1], two.snapshot_id)
    three = t.head()
    t.update([set_ref("main", one.snapshot_id)])
    md = t.metadata()
    assert md["current-snapshot-id"] == one.snapshot_id and md["snapshot-log"][-1]["snapshot-id"] == one.snapshot_id
    t.dropped(two_path)
    t.gone.clear()
    _, four = t.append(2)
    md = t.metadata()
    new = next(s for s in md["snapshots"] if s["snapshot-id"] == four.snapshot_id)
    assert new["parent-snapshot-id"] == one.snapshot_id and new["sequence-number"] == 4 and new["first-row-id"] == 15
    assert {s["snapshot-id"] for s in md["snapshots"]} == {one.snapshot_id, two.snapshot_id, three, four.snapshot_id}
    w = Writer(t)
    w.load()
    live = [e["data_file"]["file_path"] for _, _, _, e in w.live()]
    assert two_path not in live and not [r for r in w.list if r["content"] == 1]


def test_merging_beside_competitors(lab):
    """case BC-155: appends and deletes while manifests merge all the time and REST clients race: parent plus changes, each time."""
    t = lab.table("compete", audited=False, **{"commit.manifest.min-count-to-merge": "2"})
    path, o = t.append(60)
    stop, failed = threading.Event(), []

    def rest():
        try:
            while not stop.is_set():
                try:
                    Writer(t).append(1)
                except AssertionError as e:
                    if "409" not in str(e):
                        raise
        except Exception as e:
            failed.append(e)

    def worker(i):
        try:
            for k in range(5):
                t.delete(path, [i * 5 + k], o.snapshot_id)
                t.append(2)
        except Exception as e:
            failed.append(e)
    lock = threading.Lock()
    take = t.files

    def files(*a, **k):
        with lock:
            return take(*a, **k)
    t.files = files
    team = [threading.Thread(target=worker, args=(i,)) for i in range(6)]
    rival = threading.Thread(target=rest)
    for x in team + [rival]:
        x.start()
    for x in team:
        x.join()
    stop.set()
    rival.join()
    assert not failed, failed
    t.files = take
    # Every snapshot's files against its parent's: only what it says it added or removed.
    md = t.metadata()
    by_id = {s["snapshot-id"]: s for s in md["snapshots"]}

    def live(s):
        out = set()
        for row in read_avro(s["manifest-list"])[2]:
            for e in read_avro(row["manifest_path"])[2]:
                if e["status"] != 2 and row["content"] == 0:
                    assert e["data_file"]["file_path"] not in out
                    out.add(e["data_file"]["file_path"])
        return out
    for s in md["snapshots"]:
        parent = by_id.get(s.get("parent-snapshot-id"))
        if parent:
            assert live(parent) <= live(s)
            assert len(live(s) - live(parent)) == int(s["summary"].get("added-data-files", 0))


def test_nothing_live_is_an_orphan(lab, daemon):
    """cases BC-147, BC-148: after refused and lost attempts exactly the files of published snapshots are there, all of them."""
    t = lab.table("orphans")
    path, o = t.append(10)
    t.delete(path, [1], o.snapshot_id)
    lost = t.files(2)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(lost)
        daemon.restart(kill=True)
    t.append(1)
    # Staged by a worker that has not committed yet: no orphan.
    assert os.path.exists(local(lost[0]["path"]))
    for s in t.metadata()["snapshots"]:
        assert os.path.exists(local(s["manifest-list"]))
        for row in read_avro(s["manifest-list"])[2]:
            assert os.path.exists(local(row["manifest_path"]))
            for e in read_avro(row["manifest_path"])[2]:
                assert os.path.exists(local(e["data_file"]["file_path"]))


def test_unknown_table_uuid(lab):
    """case BC-137: an answer of success carries the metadata that the pointer names."""
    t = lab.table("truth")
    got = post(t, [{"action": "set-properties", "updates": {"a": "1"}}])
    assert got.status == 200 and t.load() == {k: v for k, v in got.json.items()}
    error(post(t, [{"action": "set-properties", "updates": {"a": "2"}}], [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]), 409)
    assert t.metadata()["properties"]["a"] == "1"
