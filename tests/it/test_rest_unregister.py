"""Tables that leave the catalog with their files, functions, and routes that a file: warehouse cannot serve."""

import glob
import os
import threading
import time

import pytest

from support.foreign import Writer, local
from support.lab import Lab
from support.lab import refused as gone
from support.openapi import Checked


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 100, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "leave")


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def refused(reply, code, kind, text=""):
    assert reply.status == code and reply.error["type"] == kind and text in reply.error["message"], reply


def files(location):
    return {f for f in glob.glob(local(location) + "/**", recursive=True) if os.path.isfile(f)}


def rounds(lab, name):
    """The cleaner has gone round twice: what an aborted transaction of another table staged is gone."""
    t = lab.table(name)
    for _ in range(2):
        with lab.client() as c:
            txn = c.table(t.name).begin()
            txn.stage_files(t.files(1))
            path = local(list(txn.staged.values())[0].data_files[0]["path"])
            txn.abort()
        end = time.monotonic() + 15
        while os.path.exists(path):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_answer_and_files_left(lab, rest):
    t = lab.table("goes")
    path, o = t.append(5)
    t.delete(path, [1], o.snapshot_id)
    before = t.load()
    there = files(before["metadata"]["location"])
    got = rest.post(t.target + "/unregister")
    assert got.status == 200
    assert got.json["metadata-location"] == before["metadata-location"]
    assert got.json["metadata"] == before["metadata"]
    lab.forget(t)
    refused(rest.get(t.target), 404, "NoSuchTableException")
    refused(rest.post(t.target + "/unregister"), 404, "NoSuchTableException")
    rounds(lab, "goes_on")
    assert files(before["metadata"]["location"]) == there
    # And it comes back, here or elsewhere, as it was.
    ns = t.target.rsplit("/tables/", 1)[0]
    back = rest.post(ns + "/register", {"name": "back", "metadata-location": before["metadata-location"]})
    assert back.status == 200 and back.json["metadata"] == before["metadata"]


def test_missing(rest):
    refused(rest.post("/v1/namespaces/none/tables/t/unregister"), 404, "NoSuchTableException")
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["bare"]})
    refused(rest.post("/v1/namespaces/bare/tables/t/unregister"), 404, "NoSuchTableException")


@pytest.mark.parametrize("how", ["unregister", "drop"])
def test_staged_file_that_another_writer_committed(lab, rest, how):
    """A transaction ends with its table, or was aborted before; its files may be live through a commit of an
    engine's, which only the table's snapshots could tell: whoever goes on with the table finds them."""
    t = lab.table("adopted_" + how)
    t.append(1)
    with lab.client() as c:
        aborted, pending = t.files(3), t.files(3)
        first = c.table(t.name).begin()
        first.stage_files(aborted)
        second = c.table(t.name).begin()
        second.stage_files(pending)
        w = Writer(t)
        w.commit("append", files=aborted + pending)
        first.abort()
        if how == "unregister":
            last = rest.post(t.target + "/unregister").json
        else:
            last = t.load()
            rest.want(204, "DELETE", t.target)
        lab.forget(t)
        with gone("TABLE_GONE"):
            second.commit()
    rounds(lab, "adopted_on_" + how)
    assert all(os.path.exists(local(f["path"])) for f in aborted + pending)
    assert os.path.exists(local(last["metadata-location"]))


def test_purge_takes_what_nobody_committed(lab, rest):
    t = lab.table("purged")
    t.append(3)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        txn.stage_files(t.files(2))
        left = c.table(t.name).begin()
        left.stage_files(t.files(2))
        txn.abort()
        location = t.metadata()["location"]
        rest.want(204, "DELETE", t.target, purgeRequested="true")
    lab.forget(t)
    end = time.monotonic() + 15
    while files(location):
        assert time.monotonic() < end, files(location)
        time.sleep(0.05)


def test_answer_has_every_commit(lab, rest):
    """Commits race the end: each that was acknowledged is in the metadata that comes back."""
    t = lab.table("raced")
    keys = []

    def tracked(n):
        i = 0
        while True:
            key = "k%d-%d" % (n, i)
            got = rest.post(t.target, {"requirements": [],
                                       "updates": [{"action": "set-properties", "updates": {key: "1"}}]})
            if got.status != 200:
                assert got.status == 404, got
                return
            keys.append(key)
            i += 1

    threads = [threading.Thread(target=tracked, args=(n,)) for n in range(4)]
    for th in threads:
        th.start()
    time.sleep(0.5)
    last = rest.post(t.target + "/unregister")
    for th in threads:
        th.join(30)
        assert not th.is_alive()
    lab.forget(t)
    assert last.status == 200 and len(keys) > 4
    assert set(last.json["metadata"]["properties"]) >= set(keys)


def test_metadata_gone(lab, rest):
    t = lab.table("headless")
    where = local(t.load()["metadata-location"])
    os.rename(where, where + ".kept")
    time.sleep(0.02)  # a file that was there a millisecond ago counts as there
    try:
        refused(rest.post(t.target + "/unregister"), 404, "NotFoundException", "Failed to open input stream")
        assert rest.head(t.target).status == 204
    finally:
        os.rename(where + ".kept", where)
    assert rest.post(t.target + "/unregister").status == 200
    lab.forget(t)


def test_functions(rest):
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["fn"]})
    got = rest.get("/v1/namespaces/fn/functions")
    assert got.status == 200 and got.json == {"identifiers": [], "next-page-token": None}
    assert rest.get("/v1/namespaces/fn/functions", pageSize="5", pageToken="").json["identifiers"] == []
    refused(rest.get("/v1/namespaces/fn/functions", pageSize="0"), 400, "BadRequestException", "pageSize")
    refused(rest.get("/v1/namespaces/none/functions"), 404, "NoSuchNamespaceException", "none")
    refused(rest.get("/v1/namespaces/none/functions/f"), 404, "NoSuchNamespaceException", "none")
    refused(rest.get("/v1/namespaces/fn/functions/f%2Fg"), 404, "NoSuchFunctionException", "fn.f/g")
    assert rest.post("/v1/namespaces/fn/functions").status == 405


def test_not_offered(lab, rest):
    """A file: warehouse has no credentials to give and no requests to sign, scans are planned by clients."""
    t = lab.table("plain")
    offered = " ".join(rest.get("/v1/config").json["endpoints"])
    for method, tail in (("GET", "/credentials"), ("POST", "/sign"), ("POST", "/plan"), ("GET", "/plan/p1"),
                         ("DELETE", "/plan/p1"), ("POST", "/tasks")):
        got = rest.call(method, t.target + tail, {} if method == "POST" else None)
        refused(got, 406, "UnsupportedOperationException")
        assert tail.split("/")[1] not in offered
