"""Tables that share a folder: what one has done with may be live in another, and stays. case BC-193"""

import glob
import json
import os
import time
import uuid

import pytest
from pyiceberg.catalog import load_catalog

from support.foreign import Writer, local
from support.lab import Lab


@pytest.fixture(scope="module")
def settings():
    return {"warehouse.allow-overlap": "yes", "cleaner.interval-ms": 20, "cleaner.grace-ms": 0, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "shared")
    yield lab
    lab.check()


def ids(daemon, table):
    catalog = load_catalog("t", type="rest", uri=daemon.uri)
    return sorted(catalog.load_table(table).scan().to_arrow()["id"].to_pylist())


def aborted(lab, t, files=None):
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(files or t.files(3))
        path = list(txn.staged.values())[0].data_files[0]["path"]
        txn.abort()
    return path


def kept(daemon):
    return float([x for x in daemon.admin.get("/metrics").body.decode().splitlines()
                  if x.startswith("frazil_cleaner_shared_total ")][0].split()[-1])


def until(what, seconds=15):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_same_data_path(lab, daemon):
    """A file that A's worker gave up is B's by add-files; the cleaner looks in A's snapshots only."""
    data = "file://%s/common" % daemon.warehouse
    a = lab.table("a", **{"write.data.path": data})
    b = lab.table("b", **{"write.data.path": data})
    b.append(2)
    alone = lab.table("alone")
    files = a.files(4)
    before = kept(daemon)
    with lab.client() as c:
        txn = c.table(a.name).begin()
        txn.stage_files(files)
        Writer(b).commit("append", files)
        b.added(*files)
        txn.abort()
    until(lambda: kept(daemon) > before)
    assert os.path.exists(local(files[0]["path"]))
    assert len(ids(daemon, b.name)) == 6
    # A folder of one table alone is cleaned as ever.
    path = aborted(lab, alone)
    until(lambda: not os.path.exists(local(path)))
    # As soon as the other is gone, so is the reason to keep its files.
    lab.rest.want(204, "DELETE", b.target)
    lab.forget(b)
    path = aborted(lab, a)
    until(lambda: not os.path.exists(local(path)))
    assert os.path.exists(local(files[0]["path"]))


def clone(lab, t, short):
    """A second table on the same location: the document with another uuid, registered."""
    doc = t.load()
    path = os.path.join(local(doc["metadata"]["location"]), "metadata", "00000-%s.metadata.json" % uuid.uuid4())
    with open(path, "w") as f:
        json.dump({**doc["metadata"], "table-uuid": str(uuid.uuid4())}, f)
    lab.rest.want(200, "POST", "/v1/namespaces/shared/register", {"name": short, "metadata-location": "file://" + path})


def test_two_on_one_location(lab, daemon):
    """Neither's clean-up nor purge touches a file, until only one is left."""
    t = lab.table("one", **{"write.metadata.delete-after-commit.enabled": "true",
                            "write.metadata.previous-versions-max": "1"})
    for i in range(3):
        path, o = t.append(5)
    t.delete(path, [0], o.snapshot_id)
    clone(lab, t, "two")
    want = ids(daemon, "shared.two")
    before = kept(daemon)
    there = {f for f in glob.glob(local(t.metadata()["location"]) + "/**", recursive=True) if os.path.isfile(f)}
    for i in range(3):
        t.append(1)
    aborted(lab, t)
    until(lambda: kept(daemon) > before + 1)
    assert all(os.path.exists(f) for f in there)
    assert ids(daemon, "shared.two") == want
    lab.rest.want(204, "DELETE", t.target, purgeRequested="true")
    lab.forget(t)
    time.sleep(0.5)
    assert all(os.path.exists(f) for f in there)
    assert ids(daemon, "shared.two") == want
    # The last one takes what it reaches.
    lab.rest.want(204, "DELETE", "/v1/namespaces/shared/tables/two", purgeRequested="true")
    until(lambda: not os.path.exists(local(path)))


def test_a_table_inside(lab, daemon):
    """A table below another's location: a purge of the outer one leaves it alone."""
    outer = lab.table("outer")
    outer.append(3)
    at = outer.metadata()["location"]
    lab.rest.want(200, "POST", "/v1/namespaces/shared/tables", {"name": "inner", "location": at + "/data",
                  "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}})
    files = glob.glob(local(at) + "/data/*.parquet")
    assert files
    manifests = glob.glob(local(at) + "/metadata/*.avro")
    lab.rest.want(204, "DELETE", outer.target, purgeRequested="true")
    lab.forget(outer)
    until(lambda: not [m for m in manifests if os.path.exists(m)])
    assert [f for f in files if os.path.exists(f)] == files
    assert lab.rest.get("/v1/namespaces/shared/tables/inner").status == 200
