"""Metadata files: names, folders, gzip, how long they stay, and whose they are."""

import gzip
import json
import os
import threading
import time
import uuid

import psycopg
import pytest
from pyiceberg.table import StaticTable

from support.foreign import local
from support.lab import SCHEMA, Lab, Peer, begin, fragment, ids

CODEC = "write.metadata.compression-codec"
KEEP_ONE = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 500}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "files")
    yield lab
    lab.check()


def ns(lab):
    return "/v1/namespaces/" + lab.space


def put(**properties):
    return {"action": "set-properties", "updates": {k: str(v) for k, v in properties.items()}}


def stored(location):
    """The metadata document as its file has it: gzipped exactly when the name says so."""
    with open(local(location), "rb") as f:
        data = f.read()
    packed = location.endswith(".gz.metadata.json") or location.endswith(".metadata.json.gz")
    assert (data[:2] == b"\x1f\x8b") == packed, location
    return json.loads(gzip.decompress(data) if packed else data)


def log(t):
    return [e["metadata-file"] for e in t.metadata()["metadata-log"]]


def until(done, seconds=15):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def rounds(lab):
    """The cleaner has been round: what was queued before this call is decided."""
    t = lab.table("r" + uuid.uuid4().hex[:8])
    with lab.client() as c:
        for _ in range(2):
            txn = c.table(t.name).begin()
            files = t.files(1)
            txn.stage_files(files)
            txn.abort()
            until(lambda: not os.path.exists(local(files[0]["path"])))


@pytest.mark.parametrize("codec", ["gzip", "GZIP", "Gzip"])
def test_gzip(daemon, lab, codec):
    """case BC-044: written with the right name, by every writer, read again after a restart and by others."""
    t = lab.table("packed-" + codec, **{CODEC: codec})
    first = t.load()
    assert first["metadata-location"].startswith(first["metadata"]["location"] + "/metadata/00000-")
    assert first["metadata-location"].endswith(".gz.metadata.json") and stored(first["metadata-location"]) == first["metadata"]
    t.update([put(a=1)])
    path, o = t.append(5)
    t.delete(path, [1], o.snapshot_id)
    now = t.load()
    assert now["metadata-location"].rsplit("/", 1)[1].startswith("00003-")
    assert now["metadata-location"].endswith(".gz.metadata.json") and stored(now["metadata-location"]) == now["metadata"]
    assert len(now["metadata"]["metadata-log"]) == 3
    daemon.restart()
    assert t.load() == now
    path, o = t.append(5)
    now = t.load()
    assert stored(now["metadata-location"]) == now["metadata"]
    table = StaticTable.from_metadata(now["metadata-location"])
    assert table.metadata.snapshots[-1].snapshot_id == o.snapshot_id and table.properties[CODEC] == codec
    # The version that says none is not packed any more.
    t.update([put(**{CODEC: "NONE"})])
    now = t.load()
    assert now["metadata-location"].endswith(".metadata.json") and not now["metadata-location"].endswith(".gz.metadata.json")
    assert stored(now["metadata-location"]) == now["metadata"] and len(now["metadata"]["metadata-log"]) == 5
    t.update([{"action": "remove-properties", "removals": [CODEC]}])
    t.append(1)


def test_gzip_of_a_creating_commit(lab, rest):
    """What a client creates by a commit is packed like the rest."""
    staged = rest.want(200, "POST", ns(lab) + "/tables", {"name": "late", "schema": SCHEMA, "stage-create": True,
                                                          "properties": {CODEC: "gzip", "format-version": "3"}}).json
    assert "metadata-location" not in staged or staged["metadata-location"] is None
    md = staged["metadata"]
    made = rest.want(200, "POST", ns(lab) + "/tables/late", {"requirements": [{"type": "assert-create"}], "updates": [
        {"action": "assign-uuid", "uuid": md["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-schema", "schema": md["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": md["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": md["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": md["location"]},
        {"action": "set-properties", "updates": md["properties"]}]}).json
    assert made["metadata-location"].endswith(".gz.metadata.json") and stored(made["metadata-location"]) == made["metadata"]


def test_unknown_codec(lab, rest):
    """case BC-044: refused wherever it could come in, with its name; nothing is changed."""
    t = lab.table("codec")
    before = t.load()

    def refused(reply):
        assert reply.status == 400 and CODEC in reply.error["message"] and "Invalid codec name: zstd" in reply.error["message"], reply

    bad = put(**{CODEC: "zstd"})
    refused(rest.post(t.target, {"requirements": [], "updates": [bad]}))
    refused(rest.post(ns(lab) + "/tables", {"name": "no", "schema": SCHEMA, "properties": {CODEC: "zstd"}}))
    refused(rest.post(ns(lab) + "/tables", {"name": "no", "schema": SCHEMA, "stage-create": True, "properties": {CODEC: "zstd"}}))
    refused(rest.post(ns(lab) + "/tables/no", {"requirements": [{"type": "assert-create"}], "updates": [bad]}))
    md = before["metadata"]
    foreign = local(md["location"]) + "/metadata/00009-foreign.metadata.json"
    with open(foreign, "w") as f:
        json.dump({**md, "table-uuid": str(uuid.uuid4()), "properties": {CODEC: "zstd"}}, f)
    refused(rest.post(ns(lab) + "/register", {"name": "no", "metadata-location": "file://" + foreign}))
    for key, value in (("write.metadata.previous-versions-max", "many"), ("write.metadata.previous-versions-max", "2147483648"),
                       ("write.metadata.path", "")):
        got = rest.post(t.target, {"requirements": [], "updates": [put(**{key: value})]})
        assert got.status == 400 and key in got.error["message"], got
    assert t.load() == before and rest.head(ns(lab) + "/tables/no").status == 404


def gone(lab, t):
    """Dropped without its files: what is registered on its location is alone there."""
    lab.rest.want(204, "DELETE", t.target)
    lab.forget(t)


@pytest.mark.parametrize("ending", [".gz.metadata.json", ".metadata.json.gz"])
def test_register_packed(daemon, lab, rest, ending):
    """case BC-044: both spellings are read; the next version has the usual one."""
    t = lab.table("source" + ending.replace(".", "-"))
    t.append(3)
    md = t.metadata()
    doc = {**md, "table-uuid": str(uuid.uuid4()), "properties": {CODEC: "gzip"}}
    where = md["location"] + "/metadata/00007-" + str(uuid.uuid4()) + ending
    with gzip.open(local(where), "wt") as f:
        json.dump(doc, f)
    gone(lab, t)
    name = "reg" + ending.replace(".", "-")
    made = rest.want(200, "POST", ns(lab) + "/register", {"name": name, "metadata-location": where}).json
    assert made["metadata-location"] == where and made["metadata"]["table-uuid"] == doc["table-uuid"]
    assert made["metadata"]["snapshots"] == md["snapshots"]
    r = rest.want(200, "POST", "%s/tables/%s" % (ns(lab), name), {"requirements": [], "updates": [put(b=2)]}).json
    number = r["metadata-location"].rsplit("/", 1)[1].split("-")[0]
    assert number == "00008" and r["metadata-location"].endswith(".gz.metadata.json")
    assert r["metadata"]["metadata-log"][-1]["metadata-file"] == where and stored(r["metadata-location"]) == r["metadata"]


def test_register_broken(daemon, lab, rest):
    """case BC-044: what is packed and does not say so, the other way round, cut, more than one member, and a bomb."""
    t = lab.table("broken")
    md = t.metadata()
    doc = json.dumps({**md, "table-uuid": str(uuid.uuid4())}).encode()
    packed = gzip.compress(doc)
    tries = {"plain.gz.metadata.json": doc, "packed.metadata.json": packed, "cut.gz.metadata.json": packed[:-9],
             "two.gz.metadata.json": packed + packed, "more.metadata.json.gz": packed + b"\0", "none.gz.metadata.json": b"",
             "half.gz.metadata.json": gzip.compress(doc[:len(doc) // 2])}
    for name, data in tries.items():
        where = md["location"] + "/metadata/" + name
        with open(local(where), "wb") as f:
            f.write(data)
        got = rest.post(ns(lab) + "/register", {"name": "broken-reg", "metadata-location": where})
        assert got.status == 400 and "metadata-location" in got.error["message"], (name, got)


def test_bomb(daemon, lab, rest):
    """case BC-044: 1 GiB of blanks in a megabyte is refused; the daemon does not hold it all."""
    t = lab.table("bomb")
    where = t.metadata()["location"] + "/metadata/00001-bomb.gz.metadata.json"
    with gzip.open(local(where), "wb", compresslevel=9) as f:
        for _ in range(64):
            f.write(b" " * (16 << 20))

    def high():
        with open("/proc/%d/status" % daemon.process.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) // 1024

    before = high()
    got = rest.post(ns(lab) + "/register", {"name": "bomb-reg", "metadata-location": where})
    assert got.status in (400, 413), got
    assert high() - before < 900, (before, high())


def test_folder(daemon, lab):
    """write.metadata.path outside the location: new files lie there, those of before and there both go when their time is over."""
    own = "file://%s/apart/%s" % (daemon.warehouse, uuid.uuid4())
    t = lab.table("apart", **KEEP_ONE)
    home = t.metadata()["location"]
    first = t.load()["metadata-location"]
    t.update([put(**{"write.metadata.path": own + "//"})])
    second = t.load()["metadata-location"]
    assert first.startswith(home + "/metadata/") and second.startswith(own + "/00001-"), second
    path, o = t.append(3)
    third = t.load()["metadata-location"]
    # Manifests and lists lie beside them.
    assert t.metadata()["snapshots"][-1]["manifest-list"].startswith(own + "/")
    assert log(t) == [second]
    until(lambda: not os.path.exists(local(first)))
    t.delete(path, [0], o.snapshot_id)
    assert log(t) == [third]
    until(lambda: not os.path.exists(local(second)))
    t.update([{"action": "remove-properties", "removals": ["write.metadata.path"]}])
    assert t.load()["metadata-location"].startswith(home + "/metadata/00004-")
    # Before the folder was left its files still belonged to the table.
    until(lambda: not os.path.exists(local(third)))
    t.check()


def test_versions_kept(lab):
    """previous-versions-max counts the log; without the other property the files stay."""
    t = lab.table("kept", **{"write.metadata.previous-versions-max": "2"})
    seen = [t.load()["metadata-location"]]
    for i in range(5):
        t.update([put(i=i)])
        seen.append(t.load()["metadata-location"])
    assert log(t) == seen[3:5]
    t.update([put(**{"write.metadata.delete-after-commit.enabled": "TRUE"})])
    assert log(t) == seen[4:6]
    rounds(lab)
    # Only what falls off from now on goes.
    assert [os.path.exists(local(f)) for f in seen] == [True, True, True, False, True, True]
    t.update([put(**{"write.metadata.previous-versions-max": "-7"})])
    assert len(log(t)) == 1


def test_no_files_of_others(daemon, lab, rest, tmp_path):
    """The log of a registered table names files that are not its own: they fall off and stay."""
    t = lab.table("others", **KEEP_ONE)
    md = t.metadata()
    other = lab.table("neighbour").load()["metadata-location"]
    beside = "%s-2/metadata/00001-x.metadata.json" % md["location"]
    own = md["location"] + "/metadata/00001-own.metadata.json"
    climb = md["location"] + "/metadata/../../climb.metadata.json"
    for f in (beside, own, climb):
        os.makedirs(os.path.dirname(local(f)), exist_ok=True)
        with open(local(f), "w") as out:
            out.write("{}")
    files = [other, beside, own, climb]
    where = md["location"] + "/metadata/00005-" + str(uuid.uuid4()) + ".metadata.json"
    with open(local(where), "w") as f:
        json.dump({**md, "table-uuid": str(uuid.uuid4()),
                   "metadata-log": [{"timestamp-ms": md["last-updated-ms"], "metadata-file": n} for n in files]}, f)
    gone(lab, t)
    rest.want(200, "POST", ns(lab) + "/register", {"name": "others-reg", "metadata-location": where})
    rest.want(200, "POST", ns(lab) + "/tables/others-reg", {"requirements": [], "updates": [put(a=1)]})
    until(lambda: not os.path.exists(local(own)))
    rounds(lab)
    assert all(os.path.exists(local(f)) for f in (other, beside, climb, where))


def test_named_again(lab, rest):
    """A version that fell off becomes the current one by a register before it is deleted: it stays."""
    t = lab.table("again", **KEEP_ONE)
    first = t.load()
    t.update([put(a=1)])
    t.update([put(a=2)])
    got = rest.post(ns(lab) + "/register", {"name": "again", "metadata-location": first["metadata-location"], "overwrite": True})
    if got.status == 404:
        pytest.skip("the cleaner was first")
    assert got.status == 200 and got.json == first
    rounds(lab)
    assert os.path.exists(local(first["metadata-location"])) and t.load() == first
    t.update([put(a=3)])
    t.update([put(a=4)])
    until(lambda: not os.path.exists(local(first["metadata-location"])))


def test_statistics_stay(lab):
    """A file that a transaction staged and gave up, and that a statistics entry names, is not deleted."""
    t = lab.table("stats", audited=False)  # what the entries name is no Puffin file
    _, o = t.append(2)
    peer = Peer(lab.daemon)
    files = t.files(1) + t.files(1) + t.files(1)
    me = ids(peer.call("begin", begin(t)))
    peer.call("stage", {**me, "fragment": fragment("f", files)})
    paths = [f["path"] for f in files]
    size = os.path.getsize(local(paths[0]))
    t.update([{"action": "set-statistics", "statistics": {"snapshot-id": o.snapshot_id, "statistics-path": paths[0],
                                                          "file-size-in-bytes": size, "file-footer-size-in-bytes": 9, "blob-metadata": []}},
              {"action": "set-partition-statistics", "partition-statistics": {
                  "snapshot-id": o.snapshot_id, "statistics-path": paths[1], "file-size-in-bytes": size}}])
    peer.call("abort", me)
    until(lambda: not os.path.exists(local(paths[2])))
    assert os.path.exists(local(paths[0])) and os.path.exists(local(paths[1]))


def test_several_tables_and_files_that_leave_the_log(lab, daemon):
    """case BC-136: metadata that falls out of the log goes after the decision over several tables, never before: not when
    one of them is refused, and not when PostgreSQL's sessions end in the middle of it."""
    made = [lab.table("mt%d" % i, **KEEP_ONE) for i in range(2)]

    def commit(value, requirements=()):
        return daemon.rest.post("/v1/transactions/commit", {"table-changes": [
            {"identifier": {"namespace": [lab.space], "name": t.target.rsplit("/", 1)[1]}, "updates": [put(k=value)],
             "requirements": list(requirements) if t is made[1] else []} for t in made]})

    def all_there():
        for t in made:
            doc = t.load()
            for where in [doc["metadata-location"]] + [e["metadata-file"] for e in doc["metadata"]["metadata-log"]]:
                assert os.path.exists(local(where)), where

    for i in range(3):
        assert commit(i).status == 204
    for i in range(3):
        got = commit("no", [{"type": "assert-default-spec-id", "default-spec-id": 9}])
        assert got.status == 409, got
    rounds(lab)
    all_there()
    conninfo = daemon.settings["pg.conninfo"]
    for i in range(6):
        with psycopg.connect(conninfo, autocommit=True) as sql:
            thread = threading.Thread(target=commit, args=("cut%d" % i,))
            thread.start()
            time.sleep(0.002 * i)
            sql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND pid <> pg_backend_pid()")
            thread.join(60)
            assert not thread.is_alive()
        until(lambda: daemon.rest.get("/v1/config").status == 200 and daemon.admin.get("/readyz").status == 200, 30)
        all_there()
    until(lambda: commit("last").status == 204, 30)
    rounds(lab)
    all_there()
    assert [t.metadata()["properties"]["k"] for t in made] == ["last"] * 2
