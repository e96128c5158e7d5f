"""Snapshots of REST clients that contradict their files: told, refused, or not looked at."""

import pytest

from support import audit, foreign
from support.foreign import Writer
from support.lab import Lab, refused


@pytest.fixture(scope="module", params=["warn", "reject", "off"])
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def conninfo(postgres, mode):
    return postgres.database()


@pytest.fixture(scope="module")
def settings(mode):
    return {"rest.verify-snapshots": mode}


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "verify")


def findings(daemon, path):
    """Log lines about a file; of a long path they have the end."""
    return [e for e in daemon.events("rest.finding") if path[-60:] in str(e)]


def test_a_correct_writer_is_never_told_of(lab, daemon, mode):
    t = lab.table("correct")
    path, o = t.append(10)
    t.delete(path, [1, 2, 3], o.snapshot_id)
    Writer(t).delete(path, [4])
    Writer(t).append(3)
    Writer(t).change(path, [5])
    assert not findings(daemon, path)


def test_a_vector_without_its_file(lab, daemon, mode):
    t = lab.table("dangling")
    path, _ = t.append(10)
    ghost = path + "-ghost"
    Writer(t).commit("delete", deletes={ghost: [1]}, want=400 if mode == "reject" else 200)
    assert len(findings(daemon, ghost)) == (mode != "off")
    t.append(2)


def test_a_vector_that_revives_rows(lab, daemon, mode, monkeypatch):
    t = lab.table("smaller")
    path, o = t.append(10)
    last = t.delete(path, [1, 2, 3], o.snapshot_id)
    monkeypatch.setattr(foreign.dv, "decode", lambda *_: [])
    w = Writer(t)
    sid = w.commit("delete", deletes={path: [7]}, want=400 if mode == "reject" else 200)
    monkeypatch.undo()
    assert bool(findings(daemon, path)) == (mode != "off")
    if mode == "reject":
        assert t.head() == last.snapshot_id
        t.delete(path, [7], last.snapshot_id)
        return
    if mode == "off":
        # Nobody looked: what the client wrote is the state from which all goes on.
        t.delete(path, [8], sid)
        assert sorted(r["pos"] for r in audit.rows(daemon, t.name)) == [0, 1, 2, 3, 4, 5, 6, 9]
    else:
        with refused("TABLE_INCONSISTENT"):
            t.delete(path, [8], sid)
    t.append(2)
