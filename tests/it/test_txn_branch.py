"""Branches: live files, vectors, row ids and sequence numbers belong to the ref; the counters are the table's."""

import threading

import pytest

from frazil import dv
from support import audit
from support.foreign import Writer, read_avro
from support.lab import Lab, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "branch")
    yield lab
    lab.check()


def branch(t, name, snapshot):
    t.update([{"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": snapshot}])


def state(t, ref):
    """({data file: (first row id, sequence number)}, {data file: deleted positions}) of a branch, from its manifests."""
    w = Writer(t, ref)
    w.load()
    files, vectors = {}, {}
    for row, _, _, e in w.live():
        d = e["data_file"]
        if row["content"] == 0:
            files[d["file_path"]] = (d.get("first_row_id"), e["sequence_number"])
        else:
            assert d["referenced_data_file"] not in vectors, "two vectors for a file"
            with open(d["file_path"].removeprefix("file://"), "rb") as f:
                f.seek(d["content_offset"])
                vectors[d["referenced_data_file"]] = dv.decode(f.read(d["content_size_in_bytes"]))
    return files, vectors


def test_one_file_two_vectors(daemon, lab):
    t = lab.table("two")
    path, o = t.append(10)
    branch(t, "b", o.snapshot_id)
    t.delete(path, [1], o.snapshot_id)
    t.delete(path, [2], o.snapshot_id, ref="b")
    t.delete(path, [3], o.snapshot_id)
    # The same rows elsewhere are no conflict, not even for an update.
    t.change(path, [4], o.snapshot_id)
    t.delete(path, [4], o.snapshot_id, ref="b")
    daemon.restart(kill=True)
    t.delete(path, [5], t.head())
    t.delete(path, [1], o.snapshot_id, ref="b")
    main, b = state(t, "main"), state(t, "b")
    assert main[1][path] == [1, 3, 4, 5] and b[1][path] == [1, 2, 4]
    assert main[0][path][1] == b[0][path][1] == 1


def test_interleaved(lab):
    """Forty transactions at once on two branches: each branch gets its own, in as few snapshots as they need."""
    t = lab.table("mixed")
    path, o = t.append(50)
    branch(t, "b", o.snapshot_id)
    failed, appended = [], []

    def one(i):
        try:
            ref = ("main", "b")[i % 2]
            if i % 4 < 2:
                t.delete(path, [i], o.snapshot_id, ref=ref)
            else:
                appended.append((ref, t.append(2, ref=ref)))
        except Exception as e:
            failed.append(e)
    t.info
    team = [threading.Thread(target=one, args=(i,)) for i in range(40)]
    for x in team:
        x.start()
    for x in team:
        x.join()
    assert not failed, failed
    main, b = state(t, "main"), state(t, "b")
    assert main[1][path] == [i for i in range(40) if i % 4 == 0]
    assert b[1][path] == [i for i in range(40) if i % 4 == 1]
    for ref, (name, got) in appended:
        assert name in (main if ref == "main" else b)[0]
        assert name not in (b if ref == "main" else main)[0]
    # Row ids and sequence numbers are the table's: disjoint over both branches.
    spans = sorted((got.files[0]["first_row_id"], got.files[0]["record_count"]) for _, (_, got) in appended)
    assert all(a + n <= c for (a, n), (c, _) in zip(spans, spans[1:])) and spans[0][0] >= 50
    md = t.metadata()
    assert md["next-row-id"] >= spans[-1][0] + 2
    numbers = [s["sequence-number"] for s in md["snapshots"]]
    assert len(set(numbers)) == len(numbers) and max(numbers) == md["last-sequence-number"]


def test_read_snapshot_of_another_branch(lab):
    t = lab.table("other")
    path, o = t.append(5)
    branch(t, "b", o.snapshot_id)
    _, mine = t.append(1)
    with refused("SNAPSHOT_NOT_ANCESTOR"):
        t.delete(path, [0], mine.snapshot_id, ref="b")
    t.delete(path, [0], o.snapshot_id, ref="b")


def test_file_emptied_on_one_branch_only(lab):
    t = lab.table("emptied")
    path, o = t.append(3)
    t.append(2)
    branch(t, "b", t.head())
    t.delete(path, [0, 1, 2], o.snapshot_id)
    assert path not in state(t, "main")[0]
    t.delete(path, [1], o.snapshot_id, ref="b")
    assert state(t, "b")[1][path] == [1]


def test_fast_forward(lab):
    """A branch that is put on main's line goes on from there."""
    t = lab.table("forward")
    path, o = t.append(5)
    branch(t, "b", o.snapshot_id)
    got = t.delete(path, [1], o.snapshot_id, ref="b")
    t.update([{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": got.snapshot_id}])
    t.deleted(path, [1])
    t.delete(path, [2], got.snapshot_id)
    # Whether the row was moved on the other branch is not known on this one.
    with refused("ROW_MOVED"):
        t.delete(path, [1], o.snapshot_id)


def test_branches_after_an_upgrade(lab):
    """Each branch's old manifests get their first row ids when the branch is first written; none is used twice."""
    t = lab.table("old", version=2)
    t.append(6)
    base = t.head()
    branch(t, "b", base)
    t.append(4)
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None
    t.append(3)
    t.append(2, ref="b")
    first = next(iter(t.rows))
    t.delete(first, [1], base)
    t.delete(first, [2], base, ref="b")
    main, b = state(t, "main"), state(t, "b")
    assert main[1][first] == [1] and b[1][first] == [2]
    w = Writer(t)
    taken = []
    for ref in ("main", "b"):
        w = Writer(t, ref)
        w.load()
        for row in w.list:
            if row["content"] == 0:
                assert row["first_row_id"] is not None
                taken.append((row["first_row_id"], row["existing_rows_count"] + row["added_rows_count"], ref, row["manifest_path"]))
    for ref in ("main", "b"):
        spans = sorted((a, n) for a, n, r, _ in taken if r == ref)
        assert all(a + n <= c for (a, n), (c, _) in zip(spans, spans[1:])), spans
    assert max(a + n for a, n, _, _ in taken) <= t.metadata()["next-row-id"]
    assert len({r["_row_id"] for r in audit.rows(lab.daemon, t.name)}) == len(t.ids())
    assert read_avro(w.parent["manifest-list"])[2]
