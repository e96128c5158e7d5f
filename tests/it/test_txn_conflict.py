"""Who wins when two transactions touch the same rows, in either order, also with a restart between, and when other
engines commit between Begin and Commit. What is not known to be harmless is refused."""

import threading

import pytest

from support.foreign import Writer
from support.lab import Lab, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "conflict")
    yield lab
    lab.check()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("first,second,outcome", [
    ("delete", "change", "WRITE_WRITE"), ("change", "delete", "ROW_MOVED"), ("change", "change", "WRITE_WRITE"),
    ("delete", "delete", None)])
def test_two_of_ours(daemon, lab, first, second, outcome, restart):
    t = lab.table("%s_%s_%d" % (first, second, restart))
    path, o = t.append(10)
    t.row_id(path)
    getattr(t, first)(path, [1, 2], o.snapshot_id)
    if restart:
        daemon.restart(kill=True)
    if outcome:
        with refused(outcome):
            getattr(t, second)(path, [2, 3], o.snapshot_id)
    else:
        # After a restart the snapshots themselves tell that nothing was moved.
        got = t.delete(path, [2, 3], o.snapshot_id)
        assert got.deletes == [{"data_file": path, "deleted": 1, "overlap": 1}] and got.rows_deleted == 1
    # Read anew, or other rows: no conflict.
    getattr(t, second)(path, [4, 5], o.snapshot_id)
    getattr(t, second)(path, [7], t.head())


@pytest.mark.parametrize("restart", [False, True])
def test_moved_in_the_worker_s_words(daemon, lab, restart):
    """A DELETE that says MOVED is one half of an update; DEAD beside data files is not believed."""
    t = lab.table("words%d" % restart)
    path, o = t.append(10)
    t.delete(path, [1], o.snapshot_id, provenance="MOVED")
    if restart:
        daemon.restart(kill=True)
    with refused("ROW_MOVED"):
        t.delete(path, [1, 2], o.snapshot_id)
    files = t.files(1)
    with lab.client() as c:
        c.commit_once(t.name, kind="ROW_DELTA", data_files=files, deletes=[(path, [4], "DEAD")], read_snapshot_id=o.snapshot_id)
        t.added(*files)
        t.deleted(path, [4])
        with refused("ROW_MOVED"):
            t.delete(path, [4], o.snapshot_id)
        with refused("WRITE_WRITE"):
            c.commit_once(t.name, kind="ROW_DELTA", data_files=t.files(1), deletes=[(path, [1], "DEAD")],
                          read_snapshot_id=o.snapshot_id)


def test_one_reject_touches_nobody_else(daemon, lab):
    """Twenty transactions that wait at once: those that conflict are refused, each of the others counts once."""
    t = lab.table("batch")
    path, o = t.append(40)
    t.change(path, [0], o.snapshot_id)
    done = [None] * 20
    calls = []
    for i in range(20):
        if i % 4 == 3:
            calls.append((dict(kind="DELETE", deletes=[(path, [0, 10 + i])], read_snapshot_id=o.snapshot_id), None))
        elif i % 2:
            calls.append((dict(kind="DELETE", deletes=[(path, [10 + i])], read_snapshot_id=o.snapshot_id), None))
        else:
            files = t.files(2)
            calls.append((dict(kind="APPEND", data_files=files), files))

    def one(i):
        try:
            with lab.client() as c:
                done[i] = c.commit_once(t.name, info=t.info, **calls[i][0])
        except Exception as e:
            done[i] = e
    team = [threading.Thread(target=one, args=(i,)) for i in range(20)]
    for x in team:
        x.start()
    for x in team:
        x.join()
    for i, got in enumerate(done):
        if i % 4 == 3:
            assert getattr(got, "name", None) == "ROW_MOVED", (i, got)
        elif i % 2:
            assert got.state == "COMMITTED" and got.rows_deleted == 1, (i, got)
            t.deleted(path, [10 + i])
        else:
            assert got.state == "COMMITTED", (i, got)
            t.added(*calls[i][1])


def test_whole_file(lab):
    """A file whose rows are all gone leaves; deleting from it again is an overlap, or FILE_GONE when it is not known."""
    t = lab.table("whole")
    path, o = t.append(3)
    t.append(4)
    t.row_id(path)
    t.delete(path, [0], o.snapshot_id)
    got = t.delete(path, [1, 2], o.snapshot_id)
    assert got.rows_deleted == 2
    assert (t.summary()["total-data-files"], t.summary()["total-delete-files"]) == ("1", "0")
    got = t.delete(path, [1, 2], o.snapshot_id)
    assert (got.rows_deleted, got.deletes[0]["overlap"], got.snapshot_id) == (0, 2, None)
    with refused("FILE_GONE"):
        t.delete(path, [1], t.head())
    with refused("FILE_GONE"):
        t.change(path, [1], o.snapshot_id)
    lab.daemon.restart(kill=True)
    with refused("FILE_GONE"):
        t.delete(path, [1], o.snapshot_id)


# ---- commits of other engines

def test_foreign_append_between(lab):
    t = lab.table("fappend", audited=False)
    path, o = t.append(10)
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        txn.delete(path, [1, 2])
        more = c.table(t.name).begin()
        files = t.files(3)
        more.stage_files(files)
        other, _ = Writer(t).append(5)
        assert txn.commit().rows_deleted == 2
        t.deleted(path, [1, 2])
        Writer(t).append(5)
        more.commit()
        t.added(*files)
        # And rows that the other engine wrote.
        t.delete(other, [0], t.head())
        t.change(other, [1], t.head())
    t.check()


@pytest.mark.parametrize("restart", [False, True])
def test_foreign_delete_between(daemon, lab, restart):
    """A pure deletion of another engine is harmless to a DELETE of the same rows while it is known to be one. (case BC-056)"""
    t = lab.table("fdelete%d" % restart, audited=False)
    path, o = t.append(10)
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        txn.delete(path, [1, 2])
        Writer(t).delete(path, [2, 3])
        if restart:
            daemon.restart(kill=True)
        got = txn.commit()
        assert got.deletes == [{"data_file": path, "deleted": 1, "overlap": 1}]
        t.deleted(path, [1, 2])
        with refused("WRITE_WRITE"):
            t.change(path, [3, 4], o.snapshot_id)
    t.delete(path, [5], o.snapshot_id)
    t.check()


def test_foreign_update_between(lab):
    t = lab.table("fupdate", audited=False)
    path, o = t.append(10)
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=o.snapshot_id)
        txn.delete(path, [1, 2])
        Writer(t).change(path, [2, 3])
        with refused("ROW_MOVED"):
            txn.commit()
        with refused("WRITE_WRITE"):
            t.change(path, [3], o.snapshot_id)
        t.delete(path, [4], o.snapshot_id)
    t.check()


def test_update_in_two_foreign_snapshots(lab):
    """A vector first and the new file second: as moved as in one snapshot."""
    t = lab.table("ftwo", audited=False)
    path, o = t.append(10)
    w = Writer(t)
    row = t.row_id(path) + 2
    w.delete(path, [2])
    files = t.files(1, ids=[t.rows[path][2]], row_ids=[row])
    w.commit("append", files)
    t.added(*files)
    with refused("ROW_MOVED"):
        t.delete(path, [2], o.snapshot_id)
    t.delete(path, [3], o.snapshot_id)
    t.check()


def test_stale_foreign_commit(lab):
    """Two that read the same head: the second one is refused and may be built again."""
    t = lab.table("stale", audited=False)
    t.append(3)
    w = Writer(t)
    w.load()
    old = w.parent["snapshot-id"]
    t.append(3)
    w.commit("append", t.files(2), parent=old, want=409)
    w.append(2)
    t.check()
