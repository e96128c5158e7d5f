"""Every typed refusal of the worker protocol, at the message that finds it; nothing of it reaches the table."""

import os
import socket
import struct

import pytest

import frazil
from frazil import dv
from support.foreign import Writer, local
from support.lab import Lab, Peer, begin, fragment, ids, ref_of, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "refuse")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def table(lab):
    """A table with one file, whose refused transactions leave no trace."""
    t = lab.table("shared")
    t.first, t.base = t.append(10)
    return t


def stage(lab, t, files=(), deletes=(), **options):
    with lab.client() as c:
        txn = c.table(t.name).begin(**options)
        try:
            return txn.stage_files(list(files), list(deletes))
        finally:
            txn.abort()


def vector(path, positions, **more):
    return {**frazil.txn.delete_record(path, positions), **more}


@pytest.mark.parametrize("kind", ["OVERWRITE", "REWRITE", "TRUNCATE"])
def test_kinds(lab, table, kind):
    """case BC-089: a rewrite that could lose the row ids is refused."""
    with lab.client() as c, refused("UNSUPPORTED"):
        c.table(table.name).begin(kind=kind, read_snapshot_id=table.base.snapshot_id)


@pytest.mark.parametrize("options,name", [
    (dict(isolation="SERIALIZABLE"), "UNSUPPORTED"), (dict(filter="{\"type\":\"true\"}"), "UNSUPPORTED"),
    (dict(source={"source_id": "s", "epoch": 0, "seq_from": 0, "seq_to": 1}), "UNSUPPORTED"),
    (dict(ref="none"), "NO_SUCH_REF"), (dict(ref=""), "BAD_REQUEST"), (dict(ttl_ms=-1), "BAD_REQUEST"),
    (dict(kind="DELETE"), "BAD_REQUEST"), (dict(kind="ROW_DELTA"), "BAD_REQUEST"),
    (dict(kind="DELETE", read_snapshot_id=1), "SNAPSHOT_TOO_OLD")])
def test_begin(lab, table, options, name):
    with lab.client() as c, refused(name):
        c.table(table.name).begin(**options)
    with lab.client() as c, refused(name):
        c.commit_once(table.name, data_files=table.files(1), **options)


def test_what_a_kind_may_stage(lab, table):
    with refused("BAD_REQUEST"):
        stage(lab, table, deletes=[vector(table.first, [1])])
    with refused("BAD_REQUEST"):
        stage(lab, table, files=table.files(1), kind="DELETE", read_snapshot_id=table.base.snapshot_id)


def test_files(lab, table):
    """What is wrong with a file's record, and the same through CommitOnce; the field is named."""
    good = table.files(3)[0]
    outside = "file://" + os.path.join(os.path.dirname(lab.daemon.warehouse), "outside.parquet")
    escape = table.info["data_location"] + "/../../" + os.path.basename(good["path"])
    bound = {"field_id": 1, "value": b"abc"}
    count = {"field_id": 1, "value": 3}
    for change, name, field in [
            ({"path": outside}, "PATH_OUTSIDE", "path"), ({"path": escape}, "PATH_OUTSIDE", "path"),
            ({"path": ""}, "BAD_REQUEST", "path"), ({"path": "s3://bucket/x.parquet"}, "PATH_OUTSIDE", "path"),
            ({"path": good["path"] + "x/../../../../../etc/passwd"}, "PATH_OUTSIDE", "path"),
            ({"spec_id": 7}, "SPEC_UNKNOWN", "spec_id"), ({"schema_id": 9}, "SCHEMA_UNKNOWN", "schema_id"),
            ({"partition": [{"field_id": 1000, "value": b"x"}]}, "TUPLE_MISMATCH", "partition"),
            ({"format": "CSV"}, "UNSUPPORTED", "format"),
            ({"record_count": 0}, "BAD_REQUEST", "record_count"), ({"record_count": -1}, "BAD_REQUEST", "record_count"),
            ({"file_size": 0}, "BAD_REQUEST", "file_size"),
            ({"sort_order_id": 4}, "BAD_REQUEST", "sort_order_id"),
            ({"split_offsets": [9, 4]}, "BAD_REQUEST", "split_offsets"),
            ({"split_offsets": [1 << 40]}, "BAD_REQUEST", "split_offsets"),
            ({"lower_bounds": [bound]}, "METRICS_INVALID", "lower_bounds"),
            ({"upper_bounds": [{"field_id": 77, "value": bytes(8)}]}, "METRICS_INVALID", "upper_bounds"),
            ({"value_counts": [{**count, "field_id": 77}]}, "METRICS_INVALID", "value_counts"),
            ({"null_counts": [{**count, "value": -1}]}, "METRICS_INVALID", "null_counts"),
            ({"nan_counts": [count, count]}, "METRICS_INVALID", "nan_counts"),
            ({"new_row_count": 1}, "ROW_IDS", "row_count"), ({"updated_row_count": 1}, "ROW_IDS", "row_count"),
            ({"has_row_ids": True, "new_row_count": 3, "updated_row_count": 1}, "ROW_IDS", "updated_row_count")]:
        bad = {**good, **change}
        with pytest.raises(frazil.Error) as e:
            stage(lab, table, files=[bad])
        assert e.value.name == name and field in e.value.field and e.value.effect == "CLEAN", (change, e.value, e.value.field)
        with lab.client() as c, refused(name):
            c.commit_once(table.name, data_files=[bad])
    # A link that leads out of the table.
    target = os.path.join(os.path.dirname(lab.daemon.warehouse), "real.parquet")
    with open(target, "wb") as f:
        f.write(bytes(good["file_size"]))
    link = table.info["data_location"] + "/link.parquet"
    os.symlink(target, local(link))
    with lab.client() as c, refused("PATH_OUTSIDE", "FILE_MISSING"):
        c.commit_once(table.name, data_files=[{**good, "path": link}])


def test_stored_files(lab, table):
    """Seal asks the store; CommitOnce decides after it has asked."""
    missing, short = table.files(2)[0], table.files(2)[0]
    os.unlink(local(missing["path"]))
    with open(local(short["path"]), "ab") as f:
        f.write(b"x")
    for file, name in ((missing, "FILE_MISSING"), (short, "SIZE_MISMATCH")):
        with lab.client() as c:
            txn = c.table(table.name).begin()
            txn.stage_files([file])
            for _ in range(2):
                with refused(name):
                    txn.seal()
            # Not the end: another attempt without the bad file can still be sealed.
            txn.abort()
            with refused(name):
                c.commit_once(table.name, data_files=[file])


def test_duplicate_paths(lab, table):
    one, two = table.files(2)[0], table.files(2)[0]
    with refused("DUPLICATE_PATH"):
        stage(lab, table, files=[one, one])
    with lab.client() as c:
        txn = c.table(table.name).begin()
        txn.stage_files([one])
        # The same in another fragment: found when both are sealed.
        txn.stage_files([one], fragment_id="again")
        with refused("DUPLICATE_PATH"):
            txn.seal()
        # In another open transaction, and in the table.
        with refused("DUPLICATE_PATH"):
            stage(lab, table, files=[one])
        with refused("DUPLICATE_PATH"):
            c.commit_once(table.name, data_files=[one, two])
        txn.abort()
        c.commit_once(table.name, data_files=[one, two])
        table.added(*[f for f in (one, two)])
        with refused("DUPLICATE_PATH"):
            c.commit_once(table.name, data_files=[one])
        txn = c.table(table.name).begin()
        txn.stage_files([two])
        with refused("DUPLICATE_PATH"):
            txn.commit()
        # The refused one's claim on a live file must not have it deleted.
        assert os.path.exists(local(two["path"]))


def test_vectors(lab, table):
    read = table.base.snapshot_id
    good = vector(table.first, [1, 2])
    flipped = bytearray(good["vector"])
    flipped[-6] ^= 1
    inner = dv.encode([0, 3])
    for change, name in [
            ({"vector": bytes(flipped)}, "DV_CORRUPT"), ({"vector": good["vector"][:-1]}, "DV_CORRUPT"),
            ({"vector": b""}, "DV_CORRUPT"), ({"vector": b"\0" * 64}, "DV_CORRUPT"), ({"cardinality": 3}, "DV_CORRUPT"),
            ({"cardinality": -1}, "DV_CORRUPT"), ({"vector": inner + b"x"}, "DV_CORRUPT"),
            (vector(table.first, [9, 10]), "POSITION_RANGE"), (vector(table.first, [1 << 40]), "POSITION_RANGE"),
            (vector(table.first, []), "BAD_REQUEST"), ({"data_file": "file:///none"}, "FILE_GONE"),
            ({"data_file": table.first.replace("file://", "file:")}, "FILE_GONE")]:
        with refused(name):
            stage(lab, table, deletes=[{**good, **change}], kind="DELETE", read_snapshot_id=read)
        with lab.client() as c, refused(name):
            c.commit_once(table.name, kind="DELETE", deletes=[{**good, **change}], read_snapshot_id=read)
    with refused("BAD_REQUEST"):
        stage(lab, table, deletes=[good, good], kind="DELETE", read_snapshot_id=read)


def test_file_of_a_later_snapshot(lab, table):
    """The read snapshot did not have the file: its rows cannot have been read."""
    later, _ = table.append(2)
    with refused("FILE_GONE"):
        stage(lab, table, deletes=[vector(later, [0])], kind="DELETE", read_snapshot_id=table.base.snapshot_id)


def test_partition_tuples(lab):
    spec = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[4]"}]}
    t = lab.table("tuples", spec=spec)
    files = t.files(8)
    with lab.client() as c:
        for f in files:
            # Rows of several buckets were written to several files; the model only needs their sum.
            part = f["partition"]
            for wrong in ([], part + part, [{**part[0], "field_id": 1001}], [{**part[0], "value": b"abc"}]):
                with refused("TUPLE_MISMATCH"):
                    c.commit_once(t.name, data_files=[{**f, "partition": wrong}])
        c.commit_once(t.name, data_files=files)
    lab.forget(t)


def test_old_versions(lab):
    """Below version 3 there are no vectors and no row ids; version 1 takes no staged commit."""
    t = lab.table("v2", version=2)
    path, o = t.append(5)
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        with refused("UNSUPPORTED"):
            txn.delete(path, [1])
        txn.abort()
        with refused("UNSUPPORTED"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=t.files(1), deletes=[(path, [1])], read_snapshot_id=o.snapshot_id)
        with refused("ROW_IDS"):
            c.commit_once(t.name, data_files=[{**t.files(1)[0], "has_row_ids": True}])
    assert o.files[0]["first_row_id"] is None
    old = lab.table("v1", version=1)
    with lab.client() as c, refused("UNSUPPORTED"):
        c.table(old.name).begin()


def upgrade(t):
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version = 3
    t._info = None


def test_upgrade_between(lab):
    t = lab.table("upgraded", version=2)
    t.append(4)
    files = t.files(2)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(files)
        upgrade(t)
        o = txn.commit()
        # Rows of before the upgrade come first.
        assert [f["first_row_id"] for f in o.files] == [4]
    t.added(*files)


def test_legacy_deletes(lab):
    """Old position deletes that may apply to a file refuse its deletion, and only its. (case BC-069)"""
    t = lab.table("legacy", version=2, audited=False)
    old, _ = t.append(6)
    Writer(t).commit("delete", position_deletes={old: [1]})
    t.deleted(old, [1])
    young, _ = t.append(4)
    upgrade(t)
    for restart in (False, True):
        with pytest.raises(frazil.Rejected) as e:
            t.delete(old, [2], t.head())
        assert e.value.name == "LEGACY_DELETES" and "foreign-" in e.value.message, e.value
        t.delete(young, [int(restart)], t.head())
        lab.daemon.restart(kill=True)
    t.append(2)
    t.check()


def test_spec_that_goes(lab):
    """A spec stays while an open transaction has files of it; once it is gone, none can be staged under it."""
    t = lab.table("went")
    t.append(2)
    t.update([{"action": "add-spec", "spec": {"spec-id": 1, "fields": [
        {"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]}}])
    f = {**t.files(1)[0], "spec_id": 1, "partition": [{"field_id": 1000, "value": (5).to_bytes(8, "little")}]}
    gone = [{"action": "remove-partition-specs", "spec-ids": [1]}]
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files([f])
        txn.seal()
        t.update(gone, want=409)
        txn.abort()
        t.update(gone)
        txn = c.table(t.name).begin()
        with refused("SPEC_UNKNOWN"):
            txn.stage_files([f])
            txn.seal()


def test_expired_read_snapshot(lab):
    """case BC-154: a client's expiry of the snapshot that a transaction reads ends in a commit or in a clean refusal."""
    t = lab.table("expired")
    path, o = t.append(10)
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        late = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        txn.delete(path, [1])
        t.append(1)
        t.update([{"action": "remove-snapshots", "snapshot-ids": [o.snapshot_id]}])
        # Nothing to subtract from any more; but what was staged before can be judged by the record.
        with refused("SNAPSHOT_TOO_OLD"):
            late.delete(path, [2])
        assert txn.commit().rows_deleted == 1
        t.deleted(path, [1])
        with refused("SNAPSHOT_TOO_OLD"):
            c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)


@pytest.mark.parametrize("restart", [False, True])
def test_rolled_back(daemon, lab, restart):
    t = lab.table("rolled%d" % restart)
    path, o = t.append(10)
    files = t.files(3)
    with lab.client() as c:
        mid = c.commit_once(t.name, data_files=files)
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=mid.snapshot_id)
        txn.delete(path, [1])
        assert c.status(mid.txn_id).note == ""
        t.update([{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": o.snapshot_id}])
        since = t.metadata()["snapshot-log"][-1]["timestamp-ms"]
        if restart:
            daemon.restart(kill=True)
        with refused("SNAPSHOT_NOT_ANCESTOR"):
            txn.commit()
        # Appends go on, deletes of what is there too; the rolled back file is gone.
        t.append(2)
        t.delete(path, [1], o.snapshot_id)
        with refused("SNAPSHOT_NOT_ANCESTOR", "FILE_GONE"):
            c.commit_once(t.name, kind="DELETE", deletes=[(files[0]["path"], [0])], read_snapshot_id=mid.snapshot_id)
        # It did commit; its snapshot is no longer the table's.
        got = c.status(mid.txn_id)
        assert (got.state, got.note) == ("COMMITTED", "not in the history of main since %d" % since), got.raw
        assert c.status(o.txn_id).note == ""
        t.update([{"action": "set-snapshot-ref", "ref-name": "side", "type": "branch", "snapshot-id": o.snapshot_id}])
        side = t.append(1, ref="side")[1]
        assert c.status(side.txn_id).note == ""
        t.update([{"action": "remove-snapshot-ref", "ref-name": "side"}])
        assert c.status(side.txn_id).note == "not in the history of side any more"


def test_tags_and_branches_that_go(lab):
    t = lab.table("refs")
    _, o = t.append(2)
    for name, kind in (("b", "branch"), ("tag", "tag")):
        t.update([{"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": o.snapshot_id}])
    with lab.client() as c:
        with refused("NO_SUCH_REF"):
            c.table(t.name).begin(ref="tag")
        txn = c.table(t.name).begin(ref="b")
        txn.stage_files(t.files(1))
        t.update([{"action": "remove-snapshot-ref", "ref-name": "b"}])
        with refused("NO_SUCH_REF"):
            txn.commit()


@pytest.mark.parametrize("sealed", [False, True])
def test_dropped_and_made_anew(lab, sealed):
    t = lab.table("dropped%d" % sealed)
    t.append(2)
    peer = Peer(lab.daemon)
    b = begin(t)
    me = ids(peer.call("begin", b))
    frag = fragment("f", t.files(1))
    peer.call("stage", {**me, "fragment": frag})
    if sealed:
        peer.call("seal", {**me, "fragments": [ref_of(frag)]})
    lab.rest.want(204, "DELETE", t.target)
    lab.forget(t)
    def gone():
        """Every message about it, also after a restart."""
        with refused("TABLE_GONE"):
            peer.call("stage", {**me, "fragment": fragment("g", t.files(1))})
        if not sealed:
            with refused("TABLE_GONE"):
                peer.call("seal", {**me, "fragments": [ref_of(frag)]})
        for got in (peer.call("status", {"txn_id": me["txn_id"]}), peer.call("commit", {**me, "summary": []}),
                    peer.call("abort", me)):
            assert got["state"] == "ABORTED" and got["reject"]["name"] == "TABLE_GONE", got
        assert peer.call("heartbeat", {"items": [me]})["items"][0]["state"] == "ABORTED"

    gone()
    with refused("NO_SUCH_TABLE"):
        peer.call("begin", begin(t))
    anew = lab.table("dropped%d" % sealed)
    with refused("DIGEST_CONFLICT", "TABLE_GONE"):
        peer.call("begin", b)
    gone()
    lab.daemon.restart(kill=True)
    peer = Peer(lab.daemon)
    gone()
    anew.append(3)


@pytest.mark.parametrize("how", ["register", "create"])
def test_replaced_between_begin_and_commit(lab, how):
    """Another table under the same name, or the same one registered over itself: a new incarnation. What was begun
    on the old one ends; an abort of its client before stays an abort."""
    t = lab.table("replaced_" + how)
    path, o = t.append(4)
    peer = Peer(lab.daemon)
    open_one, sealed, given_up = (ids(peer.call("begin", begin(t))) for _ in range(3))
    frag = fragment("f", t.files(1))
    peer.call("stage", {**sealed, "fragment": frag})
    peer.call("seal", {**sealed, "fragments": [ref_of(frag)]})
    assert peer.call("abort", given_up)["state"] == "ABORTED"
    mine = begin(t, kind="DELETE", read_snapshot_id=o.snapshot_id)
    deleter = ids(peer.call("begin", mine))
    folder = "/v1/namespaces/%s/" % lab.space
    if how == "register":
        lab.rest.want(200, "POST", folder + "register", {
            "name": t.short, "metadata-location": t.load()["metadata-location"], "overwrite": True})
    else:
        lab.rest.want(204, "DELETE", t.target)
        lab.forget(t)
        t = lab.table(t.short)
        path, o = t.append(4)
    for restart in (False, True):
        for me in (open_one, sealed, deleter):
            got = peer.call("commit", {**me, "summary": []})
            assert got["state"] == "ABORTED" and got["reject"]["name"] == "TABLE_GONE", got
        with refused("TABLE_GONE"):
            peer.call("stage", {**deleter, "fragment": fragment("f", (), [(path, [1])])})
        with refused("TABLE_GONE"):
            peer.call("seal", {**open_one, "fragments": []})
        if how == "register":  # the same message, the same answer; no later one helps it
            assert ids(peer.call("begin", mine)) == deleter
        else:
            with refused("DIGEST_CONFLICT"):
                peer.call("begin", mine)
        got = peer.call("status", {"txn_id": given_up["txn_id"]})
        assert got["state"] == "ABORTED" and "reject" not in got, got
        if not restart:
            lab.daemon.restart(kill=True)
            peer = Peer(lab.daemon)
    t._info = None
    t.append(2)
    t.delete(path, [1], t.head())


def test_summaries(lab, table):
    with lab.client() as c:
        for key in ("operation", "added-records", "total-data-files", ""):
            with refused("BAD_REQUEST"):
                c.commit_once(table.name, data_files=table.files(1), summary={key: "1"})
        with refused("BAD_REQUEST"):
            c.commit_once(table.name, data_files=table.files(1), summary={"k%d" % i: "v" for i in range(2000)})


def test_size_of_a_frame(lab, table):
    """The client refuses what the server would; the server closes a connection that lies."""
    with lab.client() as c:
        limit = c.hello["max_frame_bytes"]
    with socket.create_connection(("127.0.0.1", lab.daemon.rpc_port)) as s:
        s.sendall(struct.pack(">I", limit + 1) + bytes(64))
        s.settimeout(10)
        while s.recv(65536):
            pass
    assert lab.daemon.alive
