"""Rules of a commit that need the files: what is in use stays, what comes with a creation is judged, nothing is written for nothing."""

import concurrent.futures
import glob
import json
import os
import time
import uuid

import psycopg
import pytest

from frazil import errors, parquet
from support.foreign import local
from support.lab import Lab, data

CURRENT = "current-snapshot-id"


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "rules")
    yield lab
    lab.check()


def ns(lab):
    return "/v1/namespaces/" + lab.space


def commit(t, *updates, requirements=()):
    return t.lab.rest.post(t.target, {"requirements": list(requirements), "updates": list(updates)})


def spec(*fields):
    return {"action": "add-spec", "spec": {"fields": [{"name": n, "transform": tr, "source-id": s} for n, tr, s in fields]}}


def default_spec(n=-1):
    return {"action": "set-default-spec", "spec-id": n}


def main(snapshot):
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot}


def remove(*snapshots):
    return {"action": "remove-snapshots", "snapshot-ids": list(snapshots)}


def test_specs_in_use(lab):
    """A spec goes when no manifest of a kept snapshot is written under it, and not before."""
    t = lab.table("specs")
    t.update([spec(("b", "bucket[2]", 1)), default_spec()])
    # Under spec 1; then the head lists manifests of both.
    with lab.client() as c:
        info = c.table(t.name).info()
        first = c.commit_once(t.name, kind="APPEND", data_files=parquet.write(data(range(4)), info), info=info)
        t.update([default_spec(0)])
        info = c.table(t.name).info()
        second = c.commit_once(t.name, kind="APPEND", data_files=parquet.write(data(range(4, 6)), info), info=info)
    before = t.load()
    got = commit(t, {"action": "remove-partition-specs", "spec-ids": [1]})
    assert got.status == 409 and got.error["type"] == "CommitFailedException", got
    assert "Cannot remove partition spec 1: snapshot %d uses it" % first.snapshot_id in got.error["message"]
    assert t.load() == before
    # A snapshot that only a tag keeps counts too; the head alone does not need spec 0 any more.
    tag = {"action": "set-snapshot-ref", "ref-name": "kept", "type": "tag", "snapshot-id": second.snapshot_id}
    t.update([tag, main(first.snapshot_id), default_spec(1)])
    got = commit(t, {"action": "remove-partition-specs", "spec-ids": [0]})
    assert got.status == 409 and "snapshot %d uses it" % second.snapshot_id in got.error["message"], got
    # In one request with what makes it unused.
    second_list = next(s for s in t.metadata()["snapshots"] if s["snapshot-id"] == second.snapshot_id)
    md = t.update([{"action": "remove-snapshot-ref", "ref-name": "kept"}, remove(second.snapshot_id),
                   {"action": "remove-partition-specs", "spec-ids": [0, 77]}]).json["metadata"]
    assert [s["spec-id"] for s in md["partition-specs"]] == [1]
    # Nobody brings it back by a manifest list.
    again = {**second_list, "sequence-number": md["last-sequence-number"] + 1, "first-row-id": md["next-row-id"],
             "added-rows": second_list["added-rows"]}
    got = commit(t, {"action": "add-snapshot", "snapshot": again}, main(again["snapshot-id"]))
    assert got.status == 400 and "partition spec 0 of manifest" in got.error["message"], got
    assert t.metadata() == md
    lab.forget(t)


def test_spec_removed_under_a_writer(lab):
    """Removal and an append under the spec at the same time: whoever is second is refused, and the table stays readable."""
    for n in range(6):
        t = lab.table("race%d" % n)
        t.update([spec(("b", "bucket[2]", 1)), default_spec()])
        with lab.client() as c, concurrent.futures.ThreadPoolExecutor(2) as pool:
            info = c.table(t.name).info()
            t.update([default_spec(0)])
            files = parquet.write(data(range(3)), info)

            def append():
                time.sleep(0.002 * n)
                try:
                    c.commit_once(t.name, kind="APPEND", data_files=files, info=info)
                    return True
                except errors.Error as e:
                    assert e.name in ("SPEC_UNKNOWN",), e
                    return False
            a = pool.submit(append)
            b = pool.submit(commit, t, {"action": "remove-partition-specs", "spec-ids": [1]})
            assert (b.result().status == 200) != a.result(), b.result()
            assert b.result().status in (200, 409)
        if a.result():
            md = t.metadata()
            assert len(md["partition-specs"]) == 2 and md[CURRENT] is not None
        lab.forget(t)


def test_schemas_in_use(lab):
    t = lab.table("schemas")
    t.append(2)
    md = t.metadata()
    wider = {**md["schemas"][0], "fields": md["schemas"][0]["fields"] + [{"id": 3, "name": "n", "required": False, "type": "int"}]}
    t.update([{"action": "add-schema", "schema": wider}, {"action": "set-current-schema", "schema-id": -1}])
    got = commit(t, {"action": "remove-schemas", "schema-ids": [0]})
    assert got.status == 409 and "snapshot %d uses it" % md[CURRENT] in got.error["message"], got
    got = commit(t, {"action": "remove-schemas", "schema-ids": [1]})
    assert got.status == 400, got


def test_schemas_in_use_within_one_request(lab):
    """A schema that comes, is used and goes in one request; and of a table that is only coming."""
    t = lab.table("passing", audited=False)
    t.append(2)
    md = t.metadata()
    one = md["snapshots"][0]
    wider = {**md["schemas"][0], "fields": md["schemas"][0]["fields"] + [{"id": 3, "name": "n", "required": False, "type": "int"}]}
    s = {**one, "snapshot-id": 77, "parent-snapshot-id": one["snapshot-id"], "sequence-number": 2, "first-row-id": md["next-row-id"],
         "added-rows": 0, "schema-id": 1}
    add, gone = {"action": "add-snapshot", "snapshot": s}, {"action": "remove-schemas", "schema-ids": [1]}
    got = commit(t, {"action": "add-schema", "schema": wider}, add, gone)
    assert got.status == 409 and "snapshot 77 uses it" in got.error["message"], got
    # Its id is not given again: the snapshot would be read by another schema.
    got = commit(t, {"action": "add-schema", "schema": wider}, add, gone, {"action": "add-schema", "schema": {
        **wider, "fields": md["schemas"][0]["fields"] + [{"id": 4, "name": "o", "required": False, "type": "int"}]}})
    assert got.status == 409, got
    assert t.metadata() == md
    body = creation({**one, "schema-id": 0})
    at = next(i for i, u in enumerate(body["updates"]) if u["action"] == "set-current-schema")
    narrow = body["updates"][at - 1]["schema"]
    body["updates"] += [{"action": "add-schema", "schema": {**narrow, "fields": narrow["fields"] + wider["fields"][2:]}},
                        {"action": "set-current-schema", "schema-id": 1}, {"action": "remove-schemas", "schema-ids": [0]}]
    got = lab.rest.post("%s/tables/coming" % ns(lab), body)
    assert got.status == 409 and "Cannot remove schema 0" in got.error["message"], got
    assert lab.rest.head("%s/tables/coming" % ns(lab)).status == 404


def test_spec_ids_are_not_given_again(lab):
    """A spec that goes and one that comes in one request: manifests under the first are not read by the second."""
    t = lab.table("again", audited=False)
    t.update([spec(("b", "bucket[2]", 1)), default_spec()])
    with lab.client() as c:
        info = c.table(t.name).info()
        c.commit_once(t.name, kind="APPEND", data_files=parquet.write(data(range(4)), info), info=info)
    t.update([default_spec(0)])
    md = t.metadata()
    got = commit(t, {"action": "remove-partition-specs", "spec-ids": [1]}, spec(("n", "identity", 2)))
    assert got.status == 409 and "Cannot remove partition spec 1" in got.error["message"], got
    assert t.metadata() == md
    lab.forget(t)


def test_spec_of_an_open_transaction(lab, daemon):
    """A worker has staged files under a spec that no snapshot needs: were it removed, the next spec would get its id, and the values
    of the one would be read as those of the other. Also after a restart."""
    t = lab.table("staged")
    t.update([spec(("b", "bucket[2]", 1)), default_spec()])
    with lab.client(retries=5) as c:
        x = c.table(t.name).begin(kind="APPEND")
        x.append(data([1, 1, 1]))
        t.update([default_spec(0)])
        gone = {"action": "remove-partition-specs", "spec-ids": [1]}
        for _ in range(2):
            got = commit(t, gone)
            assert got.status == 409 and "an open transaction has files of it" in got.error["message"], got
            daemon.restart()
        x.abort()
        t.update([gone])
        md = t.update([spec(("n", "identity", 2))]).json["metadata"]
        assert [s["spec-id"] for s in md["partition-specs"]] == [0, 1]


def test_main_put_back(lab):
    """What a replacement may do to columns is for its own rows: main does not come back to the old ones."""
    t = lab.table("back")
    _, o = t.append(3)
    md = t.metadata()
    fields = md["schemas"][0]["fields"]
    away = {"action": "remove-snapshot-ref", "ref-name": "main"}
    odd = [{"action": "add-schema", "schema": {**md["schemas"][0], "fields": [{**fields[0], "type": "string"}, fields[1]]}},
           {"action": "set-current-schema", "schema-id": -1}]
    got = commit(t, away, *odd, main(o.snapshot_id))
    assert got.status == 400 and "Cannot put main back" in got.error["message"], got
    got = commit(t, away, main(o.snapshot_id))
    assert got.status == 200 and got.json["metadata"][CURRENT] == o.snapshot_id


def test_encryption_keys_in_use(lab):
    """A key stays while a snapshot or another key needs it."""
    t = lab.table("keys", audited=False)
    t.append(1)

    def key(name, **more):
        return {"action": "add-encryption-key", "encryption-key": {"key-id": name, "encrypted-key-metadata": "YWJj", **more}}

    def gone(name):
        return {"action": "remove-encryption-key", "key-id": name}
    t.update([key("k1", **{"encrypted-by-id": "k2"}), key("k2", **{"encrypted-by-id": "outside"}), key("k3")])
    md = t.metadata()
    s = {**md["snapshots"][0], "snapshot-id": 78, "parent-snapshot-id": md[CURRENT], "sequence-number": 2, "first-row-id": md["next-row-id"],
         "added-rows": 0, "key-id": "k1"}
    t.update([{"action": "add-snapshot", "snapshot": s}])
    for name, why in (("k1", "snapshot 78 uses it"), ("k2", "key k1 is encrypted by it")):
        got = commit(t, gone(name))
        assert got.status == 409 and got.error["type"] == "CommitFailedException" and why in got.error["message"], got
    t.update([gone("k3")])
    t.update([remove(78), gone("k1"), gone("k2")])
    assert "encryption-keys" not in t.metadata() or not t.metadata()["encryption-keys"]


def test_numbers_used_up(lab):
    """A client's snapshot took the last sequence number: what comes after it is refused, and the table is not halted."""
    t = lab.table("last", audited=False)
    t.append(1)
    md = t.metadata()
    s = {**md["snapshots"][0], "snapshot-id": 79, "parent-snapshot-id": md[CURRENT], "sequence-number": 2 ** 63 - 1,
         "first-row-id": md["next-row-id"], "added-rows": 0}
    t.update([{"action": "add-snapshot", "snapshot": s}])
    with pytest.raises(errors.Error) as refusal:
        t.append(1)
    assert refusal.value.name == "LIMIT" and "used up" in str(refusal.value), refusal.value
    got = commit(t, {"action": "add-snapshot", "snapshot": {**s, "snapshot-id": 80}})
    assert got.status == 409, got
    t.update([{"action": "set-properties", "updates": {"still": "there"}}])


def test_upgraded_within_its_creation(lab):
    """A snapshot of version 2 and the upgrade behind it, in the commit that creates the table."""
    t = lab.table("two", version=2)
    t.append(3)
    body = creation(t.metadata()["snapshots"][0])
    body["updates"][1]["format-version"] = 2
    body["updates"].append({"action": "upgrade-format-version", "format-version": 3})
    got = lab.rest.post("%s/tables/risen" % ns(lab), body)
    assert got.status == 200 and got.json["metadata"]["next-row-id"] == 0, got


def test_expiry_and_a_new_ref(lab):
    """A snapshot that a tag has just taken is not removed by an expiry that had not seen the tag, in either order."""
    t = lab.table("expiry")
    ids = [t.append(1)[1].snapshot_id for _ in range(9)]
    for n, victim in enumerate(ids[:8]):
        name = "t%d" % n
        tag = {"action": "set-snapshot-ref", "ref-name": name, "type": "tag" if n % 2 else "branch", "snapshot-id": victim}
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [(commit, t, remove(victim)), (commit, t, tag)]
            a, b = [pool.submit(*j) for j in (jobs if n % 4 < 2 else jobs[::-1])]
            expired, tagged = (a, b) if n % 4 < 2 else (b, a)
            expired, tagged = expired.result(), tagged.result()
        md = t.metadata()
        have = {s["snapshot-id"] for s in md["snapshots"]}
        assert {r["snapshot-id"] for r in md["refs"].values()} <= have
        assert (expired.status, tagged.status) in ((200, 400), (409, 200)), (expired, tagged)
        assert (victim in have) == (tagged.status == 200) == (name in md["refs"])
        if expired.status == 409:
            assert "still referenced by " + name in expired.error["message"]
    # One request may move or drop the ref and remove what it had.
    for name, r in list(t.metadata()["refs"].items()):
        if name != "main":
            assert commit(t, remove(r["snapshot-id"]), {"action": "remove-snapshot-ref", "ref-name": name}).status == 200
    md = t.metadata()
    assert md["refs"] == {"main": md["refs"]["main"]} and [s["snapshot-id"] for s in md["snapshots"]] == ids[8:]
    # History before a removed snapshot is unknown.
    assert [e["snapshot-id"] for e in md["snapshot-log"]] == ids[8:]


def test_nothing_changes(lab, conninfo):
    """Updates that change nothing write nothing: no file, no version, no batch."""
    t = lab.table("same", owner="me")
    t.append(2)
    t.update([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": t.head(), "max-ref-age-ms": 5}])
    md = t.metadata()
    same = [
        [], [{"action": "set-properties", "updates": {"owner": "me"}}], [{"action": "set-properties", "updates": {}}],
        [{"action": "remove-properties", "removals": ["absent"]}], [{"action": "set-location", "location": md["location"] + "/"}],
        [{"action": "upgrade-format-version", "format-version": 3}], [{"action": "assign-uuid", "uuid": md["table-uuid"].upper()}],
        [{"action": "add-schema", "schema": md["schemas"][0]}, {"action": "set-current-schema", "schema-id": -1}],
        [{"action": "add-spec", "spec": {"fields": []}}, default_spec()],
        [{"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}, {"action": "set-default-sort-order", "sort-order-id": -1}],
        [main(md[CURRENT])], [{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": md[CURRENT], "max-ref-age-ms": 5}],
        [{"action": "remove-snapshot-ref", "ref-name": "absent"}], [remove(1, 2)], [{"action": "remove-schemas", "schema-ids": [9]}],
        [{"action": "remove-partition-specs", "spec-ids": [9]}], [{"action": "remove-statistics", "snapshot-id": 1}],
        [{"action": "remove-partition-statistics", "snapshot-id": 1}], [{"action": "remove-encryption-key", "key-id": "absent"}]]

    def state():
        with psycopg.connect(conninfo, autocommit=True) as db:
            rows = db.execute("SELECT h.version, h.metadata_location, (SELECT count(*) FROM frazil.batch b WHERE b.table_id = h.table_id),"
                              " (SELECT count(*) FROM frazil.object o WHERE o.table_id = h.table_id) FROM frazil.head h WHERE h.table_id = %s",
                              (md["table-uuid"],)).fetchall()
        return rows, sorted(glob.glob(local(md["location"]) + "/**", recursive=True))
    before, doc = state(), t.load()
    for updates in same:
        got = commit(t, *updates, requirements=[{"type": "assert-table-uuid", "uuid": md["table-uuid"]}])
        assert got.status == 200 and got.json["metadata-location"] == doc["metadata-location"] and got.json["metadata"] == md, (updates, got)
    # A requirement that fails is told all the same.
    got = commit(t, requirements=[{"type": "assert-current-schema-id", "current-schema-id": 5}])
    assert got.status == 409 and got.error["message"].startswith("Requirement failed: current schema changed")
    assert state() == before and t.load() == doc


def test_properties_that_go_and_come(lab):
    """Removed and set again within one request, in every order; the last word counts."""
    t = lab.table("words", a="1", b="2", c="", **{"k%d" % i: "v" for i in range(40)})
    before = t.metadata()["properties"]

    def put(**kv):
        return {"action": "set-properties", "updates": kv}

    def drop(*keys):
        return {"action": "remove-properties", "removals": list(keys)}
    t.update([drop("a", "a", "absent"), put(a=""), drop("b"), put(b="3"), drop("b"), drop("c"), put(c=""), put(d="4"), drop("d"), drop("k7"),
              put(k7="w"), drop("k8")])
    after = {k: v for k, v in before.items() if k not in ("b", "k8")}
    assert t.metadata()["properties"] == {**after, "a": "", "c": "", "k7": "w"}


def test_many_removals(lab):
    """A request with a removal for each of very many properties, and one with many requirements: answered in time, as all else is."""
    t = lab.table("removals")
    t.update([{"action": "set-properties", "updates": {"k%d" % i: "v" for i in range(150000)}}])
    got = commit(t, *[{"action": "remove-properties", "removals": ["k%d" % i]} for i in range(32000)])
    assert got.status == 200, got
    assert len([k for k in got.json["metadata"]["properties"] if k.startswith("k")]) == 118000
    none = {"type": "assert-ref-snapshot-id", "ref": "none", "snapshot-id": None}
    assert commit(t, requirements=[none] * 32768).status == 200
    got = commit(t, requirements=[none] * 32769)
    assert got.status == 400 and "requirements: at most 32768" in got.error["message"], got


def creation(snapshot):
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"},
                                           {"id": 2, "name": "name", "required": False, "type": "string"}]}
    updates = [{"action": "assign-uuid", "uuid": str(uuid.uuid4())}, {"action": "upgrade-format-version", "format-version": 3},
               {"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1},
               {"action": "add-spec", "spec": {"fields": []}}, default_spec(),
               {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}, {"action": "set-default-sort-order", "sort-order-id": -1},
               {"action": "add-snapshot", "snapshot": snapshot}, main(snapshot["snapshot-id"])]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def created(lab, name, snapshot):
    return lab.rest.post("%s/tables/%s" % (ns(lab), name), creation(snapshot))


def test_snapshot_of_a_creation(lab):
    """What comes with a creation is judged as in any commit: row ids, specs, the clock, the list's presence."""
    t = lab.table("origin")
    t.append(7)
    snapshot = t.metadata()["snapshots"][0]
    bucketed = lab.table("bucketed", spec={"fields": [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "bucket[2]"}]})
    bucketed.update([spec(), default_spec()])
    bucketed.append(3)
    foreign = bucketed.metadata()["snapshots"][0]
    files = set(glob.glob(lab.daemon.warehouse + "/**", recursive=True))
    for what, bad in (("row ids", {**snapshot, "added-rows": 6}), ("clock", {**snapshot, "timestamp-ms": int(time.time() * 1000) + 120000}),
                      ("list", {**snapshot, "manifest-list": snapshot["manifest-list"] + "x"}), ("operation", {**snapshot, "summary": {"operation": "x"}}),
                      ("spec", foreign)):
        got = created(lab, "made", bad)
        assert got.status == 400, (what, got)
    assert lab.rest.head(ns(lab) + "/tables/made").status == 404
    assert set(glob.glob(lab.daemon.warehouse + "/**", recursive=True)) == files
    got = created(lab, "made", snapshot)
    assert got.status == 200 and got.json["metadata"]["next-row-id"] == 7, got


def test_creations_of_one_transaction(lab):
    """One of several new tables brings a snapshot that cannot be: none of them is made, and no file of theirs stays."""
    t = lab.table("origin2")
    t.append(5)
    snapshot = t.metadata()["snapshots"][0]
    files = set(glob.glob(lab.daemon.warehouse + "/**/*.metadata.json", recursive=True))

    def both(second):
        return lab.rest.post("/v1/transactions/commit", {"table-changes": [
            {"identifier": {"namespace": [lab.space], "name": name}, **creation(s)} for name, s in (("pair1", snapshot), ("pair2", second))]})
    for bad in ({**snapshot, "added-rows": 4}, {**snapshot, "manifest-list": snapshot["manifest-list"] + "x"},
                {**snapshot, "timestamp-ms": int(time.time() * 1000) + 120000}):
        got = both(bad)
        assert got.status == 400 and "table-changes[1]" in got.error["message"], got
        for name in ("pair1", "pair2"):
            assert lab.rest.head("%s/tables/%s" % (ns(lab), name)).status == 404
    end = time.monotonic() + 15
    while set(glob.glob(lab.daemon.warehouse + "/**/*.metadata.json", recursive=True)) != files:
        assert time.monotonic() < end, "files of creations that never were"
        time.sleep(0.1)
    assert both(snapshot).status == 204
    for name in ("pair1", "pair2"):
        assert lab.rest.get("%s/tables/%s" % (ns(lab), name)).json["metadata"]["next-row-id"] == 5


def test_old_snapshots_without_operation(lab, daemon):
    """case BC-042: what older writers left out is kept as it is."""
    t = lab.table("older", version=2)
    t.append(1)
    t.append(1)
    md = t.metadata()
    md["table-uuid"] = str(uuid.uuid4())
    del md["snapshots"][0]["summary"]
    md["snapshots"][1]["summary"].pop("operation")
    # A folder of its own: two tables share none.
    md["location"] += "-older"
    os.makedirs(local(md["location"] + "/metadata"))
    where = md["location"] + "/metadata/00009-" + str(uuid.uuid4()) + ".metadata.json"
    with open(local(where), "w") as f:
        json.dump(md, f)
    made = daemon.rest.want(200, "POST", ns(lab) + "/register", {"name": "older2", "metadata-location": where}).json["metadata"]
    target = ns(lab) + "/tables/older2"
    later = daemon.rest.want(200, "POST", target, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}).json["metadata"]
    assert "summary" not in made["snapshots"][0] and later["snapshots"] == made["snapshots"]
    assert made["snapshots"][1]["summary"]["operation"] == "overwrite"
    assert {k: v for k, v in made["snapshots"][1]["summary"].items() if k != "operation"} == md["snapshots"][1]["summary"]
    assert os.path.exists(local(where))
