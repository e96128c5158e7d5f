"""PyIceberg, unmodified, commits to the same tables between a worker's Begin and Commit."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from support.lab import Lab, refused


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "pyice")
    yield lab
    lab.check()


@pytest.fixture(scope="module")
def catalog(daemon):
    return RestCatalog("frazil", uri=daemon.uri)


def rows(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array(["p%d" % i for i in ids])})


def test_appends_between(lab, catalog):
    """Both sides read the same head; the workers' commits move on to the new one, PyIceberg retries or fails typed."""
    t = lab.table("both", version=2, audited=False)
    t.append(3)
    theirs = catalog.load_table(t.name)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        files = t.files(2)
        txn.stage_files(files)
        theirs.append(rows(1000, 1001))
        txn.commit()
        t.added(*files)
    t.rows["theirs"] = [1000, 1001]
    # Its copy of the metadata is old by now.
    stale = catalog.load_table(t.name)
    t.append(1)
    try:
        stale.append(rows(1002))
        t.rows["more"] = [1002]
    except CommitFailedException:
        catalog.load_table(t.name).append(rows(1002))
        t.rows["more"] = [1002]
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()
    t.check()


def test_overwrite_between(lab, catalog):
    """Rewritten files are gone for whoever read them, unless the commit only appends."""
    t = lab.table("rewritten", version=2, audited=False)
    path, o = t.append(4)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        files = t.files(2)
        txn.stage_files(files)
        catalog.load_table(t.name).delete("id = 1")
        txn.commit()
    t.added(*files)
    t.rows["copy"] = [i for i in t.rows.pop(path) if i != 1]
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None
    with refused("FILE_GONE"):
        t.delete(path, [2], o.snapshot_id)
    assert sorted(catalog.load_table(t.name).scan().to_arrow()["id"].to_pylist()) == t.ids()
    t.delete(files[0]["path"], [0], t.head())
    t.check()


def test_rolled_back_by_pyiceberg(lab, catalog):
    t = lab.table("back", version=2, audited=False)
    _, o = t.append(2)
    path, later = t.append(3)
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None
    with lab.client() as c:
        txn = c.table(t.name).begin(kind="DELETE", read_snapshot_id=later.snapshot_id)
        txn.delete(path, [1])
        catalog.load_table(t.name).manage_snapshots().rollback_to_snapshot(o.snapshot_id).commit()
        with refused("SNAPSHOT_NOT_ANCESTOR"):
            txn.commit()
    t.dropped(path)
    t.append(1)
    t.check()
