"""Kills the daemon around the durable steps of tables coming and going, of transactions that end without a commit, of
dropped attempts and of the cleaner, and repeats the calls as their clients would."""

import os
import time

import pytest

import frazil
from frazil import parquet
from support import audit
from support.catalog import creation
from support.crowd import SCHEMA, again, rows
from test_points import Supervised, points


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 300, "cleaner.tombstone-ms": 500}


def local(uri):
    return uri[len("file://"):] if uri.startswith("file://") else uri


def rest(daemon, *args):
    """Repeats until answered; REST has no ids, so the caller judges what a repeat may meet."""
    def call():
        got = daemon.rest.call(*args)
        if got.status in (429, 500, 502, 503, 504):
            raise OSError("HTTP %d" % got.status)
        return got
    return again(call)


def until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "not within %d s" % seconds
        time.sleep(0.05)


@pytest.mark.parametrize("point", points(elsewhere=True))
def test_point(daemon, point):
    space = "p_" + point.replace(".", "_").replace(":", "_")
    route = "/v1/namespaces/%s/tables" % space
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": [space], "properties": {}})
    broken = {}

    def mend():
        if broken:
            os.remove(broken["folder"])
            os.rename(broken["folder"] + ".away", broken["folder"])
            broken.clear()
    run = Supervised(daemon, point, mend)
    try:
        # A create that is repeated may find its own table; there is one, and it works.
        got = rest(daemon, "POST", route, {"name": "t", "schema": SCHEMA, "properties": {"format-version": "3"}})
        assert got.status == 200 or got.error["type"] == "AlreadyExistsException", got
        listed = rest(daemon, "GET", route).json["identifiers"]
        assert listed == [{"namespace": [space], "name": "t"}]
        doc = rest(daemon, "GET", route + "/t").json
        name = space + ".t"
        base_id = frazil.uuid7()

        def touch():
            with frazil.Client(daemon.rpc, retries=0) as client:
                return client.table(name).info()
        info = again(touch)
        base = parquet.write(rows(0, 100), info)

        def append(files, txn_id):
            def call():
                with frazil.Client(daemon.rpc, retries=0) as client:
                    return client.commit_once(name, kind="APPEND", data_files=files, txn_id=txn_id, info=info)
            return again(call)
        first = append(base, base_id)
        assert first.state == "COMMITTED"
        # A property by REST: the same request twice changes nothing twice.
        change = {"requirements": [{"type": "assert-table-uuid", "uuid": doc["metadata"]["table-uuid"]}],
                  "updates": [{"action": "set-properties", "updates": {"owner": "me"}}]}
        assert rest(daemon, "POST", route + "/t", change).status == 200
        # A transaction that is given up; its file goes, and only that.
        loser, loser_id = parquet.write(rows(500, 5), info), frazil.uuid7()

        def give_up():
            with frazil.Client(daemon.rpc, retries=0) as client:
                try:
                    txn = client.table(name).begin(kind="APPEND", txn_id=loser_id)
                    txn.stage_files(loser, [], fragment_id="0")
                    return txn.abort().state
                except frazil.TransactionOver:
                    return client.status(loser_id).state
        assert again(give_up) == "ABORTED"
        if point.startswith("batch.unledger"):
            # The place of the batch's objects is taken away: the attempt fails and is dropped.
            folder = os.path.join(local(doc["metadata"]["location"]), "metadata")
            broken["folder"] = folder
            os.rename(folder, folder + ".away")
            open(folder, "w").close()
        more, more_id = parquet.write(rows(1000, 10), info), frazil.uuid7()
        second = append(more, more_id)
        assert second.state == "COMMITTED"
        # A restarted daemon cleans what is due, whatever it has loaded; meanwhile somebody uses the table.
        until(lambda: again(touch) and not os.path.exists(local(loser[0]["path"])))
        # A property of this table and a new one beside it, in one request; the same again does nothing twice.
        new = rest(daemon, "POST", route, {"name": "twin", "schema": SCHEMA, "stage-create": True, "properties": {}}).json["metadata"]
        both = {"table-changes": [
            {"identifier": {"namespace": [space], "name": "twin"}, "requirements": [{"type": "assert-create"}], "updates": creation(new)},
            {"identifier": {"namespace": [space], "name": "t"}, "requirements": change["requirements"],
             "updates": [{"action": "set-properties", "updates": {"twin": "yes"}}]}]}
        assert rest(daemon, "POST", "/v1/transactions/commit", both).status == 204
        assert rest(daemon, "GET", route + "/twin").json["metadata"]["table-uuid"] == new["table-uuid"]
        # Another table goes while this one stays.
        rest(daemon, "POST", route, {"name": "gone", "schema": SCHEMA, "properties": {}})
        assert rest(daemon, "DELETE", route + "/gone").status in (204, 404)
        assert rest(daemon, "HEAD", route + "/gone").status == 404
        until(lambda: run.deaths == 1)
    finally:
        run.end()
        mend()
    assert run.deaths == 1, "the point was reached %d times" % run.deaths
    # Repeated once more: the same answers.
    for files, txn_id, outcome in ((base, base_id, first), (more, more_id, second)):
        o = append(files, txn_id)
        assert (o.state, o.snapshot_id, o.sequence_number) == ("COMMITTED", outcome.snapshot_id, outcome.sequence_number)
    assert again(give_up) == "ABORTED"
    now = daemon.rest.want(200, "GET", route + "/t").json["metadata"]
    assert now["table-uuid"] == doc["metadata"]["table-uuid"] and now["properties"]["owner"] == "me"
    assert now["properties"]["twin"] == "yes"
    found = audit.rows(daemon, name)
    assert sorted(r["id"] for r in found) == list(range(100)) + list(range(1000, 1010))
    audit.clean(daemon, name)
