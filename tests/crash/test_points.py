"""Kills the daemon at each named crash point, before and after its durable step, restarts it and repeats the calls.

The points are the rows of crash.tbl; the fault build dies at the one that FAULT_CRASH names. Whatever was
acknowledged must be there, each row once, and a repeated call must get the first one's outcome.
"""

import glob
import os
import re
import threading
import time

import pyarrow as pa
import pytest

import frazil
import frazil.txn
from frazil import parquet
from support import audit
from support.crowd import SCHEMA, again, rows
from support.postgres import ROOT

# Steps that test_catalog_points.py reaches: tables coming and going, ends, dropped attempts, the cleaner.
ELSEWHERE = ("table.", "tables.", "clean.", "txn.end", "batch.unledger")
# Steps that test_rest_points.py reaches: what the core knows nothing of.
REST = ("ns.", "tabular.", "view.", "idem.", "warehouse.", "place.")


def steps():
    found = []
    for path in glob.glob(os.path.join(ROOT, "daemon/*/crash.tbl")):
        with open(path, encoding="utf-8") as f:
            found += re.findall(r'^CRASH\(\w+,\s*"([a-z_.-]+)"', f.read(), re.M)
    return found


def points(elsewhere=False):
    found = [p for p in steps() if p.startswith(ELSEWHERE) == elsewhere and not p.startswith(REST)]
    assert found, "no crash.tbl with rows"
    return ["%s:%s" % (p, when) for p in found for when in ("before", "after")]


@pytest.fixture(scope="module")
def table(daemon):
    """A table with one file of 100 rows, made before any fault; the module's daemon has ended then."""
    daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["crash"], "properties": {}})
    return daemon


class Supervised:
    """Starts the daemon with a fault, and without one when it has died of it."""

    def __init__(self, daemon, point, on_death=None):
        self.daemon, self.deaths, self.over, self.on_death = daemon, 0, False, on_death
        daemon.env = {"FAULT_CRASH": point}
        daemon.restart()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.over:
            process = self.daemon.process
            if process is not None and process.poll() is not None:
                assert process.returncode == -9, self.daemon.log()[-4000:]
                self.deaths += 1
                self.daemon.wait()
                if self.on_death:
                    self.on_death()
                self.daemon.env = {}
                self.daemon.start()
            time.sleep(0.01)

    def end(self):
        self.over = True
        self.thread.join()
        if self.deaths and self.daemon.process is not None:
            # A daemon dies with the thread that started it: one more restart, in this one.
            self.daemon.wait()
            self.daemon.start()


def commit(client, name, info, txn_id, staged, call):
    if not staged:
        return client.commit_once(name, txn_id=txn_id, info=info, **call)
    call = dict(call)
    files, deletes = call.pop("data_files", []), call.pop("deletes", [])
    txn = client.table(name).begin(txn_id=txn_id, **call)
    txn.stage_files(files, [frazil.txn.delete_record(*d) for d in deletes])
    return txn.commit()


@pytest.mark.parametrize("point", points())
def test_point(table, point):
    daemon = table
    name = "crash.t_%s" % re.sub(r"\W", "_", point)
    daemon.rest.want(200, "POST", "/v1/namespaces/crash/tables", {
        "name": name.partition(".")[2], "schema": SCHEMA, "properties": {"format-version": "3"}})
    with frazil.Client(daemon.rpc) as client:
        info = client.table(name).info()
        base = client.commit_once(name, kind="APPEND", data=rows(0, 100), info=info)
    path, snapshot = base.files[0]["path"], base.snapshot_id
    files = [parquet.write(rows(1000 + 10 * i, 10), info) for i in range(4)]
    fresh = pa.table({"id": pa.array([90, 91], pa.int64()), "name": pa.array(["new", "new"])})
    moved = parquet.write(fresh, info, row_ids=[base.files[0]["first_row_id"] + i for i in (90, 91)])
    # (staged, arguments): whole transactions in one message, and ones of Begin, Stage, Seal and Commit.
    calls = [(False, dict(kind="APPEND", data_files=files[0])), (True, dict(kind="APPEND", data_files=files[1])),
             (False, dict(kind="DELETE", deletes=[(path, [1, 2, 3])], read_snapshot_id=snapshot)),
             (True, dict(kind="DELETE", deletes=[(path, [4, 5])], read_snapshot_id=snapshot)),
             (False, dict(kind="ROW_DELTA", data_files=files[2], deletes=[(path, [6])], read_snapshot_id=snapshot)),
             (True, dict(kind="ROW_DELTA", data_files=moved, deletes=[(path, [90, 91], "MOVED")], read_snapshot_id=snapshot)),
             (False, dict(kind="APPEND", data_files=files[3]))]
    ids = [frazil.uuid7() for _ in calls]
    outcomes = [None] * len(calls)
    staged_id, staged_rows = frazil.uuid7(), rows(2000, 10)

    def staged():
        """The long way: each message on its own, repeated with the same ids and the same file."""
        made = parquet.write(staged_rows, info)

        def call():
            with frazil.Client(daemon.rpc, retries=0) as client:
                txn = client.table(name).begin(kind="APPEND", txn_id=staged_id)
                txn.stage_files(made, [], fragment_id="0")
                return txn.commit()
        outcome = again(call)
        assert outcome.state == "COMMITTED", outcome.raw
    run = Supervised(daemon, point)
    try:
        def one(i):
            def call():
                with frazil.Client(daemon.rpc, retries=0) as client:
                    return commit(client, name, info, ids[i], *calls[i])
            outcomes[i] = again(call)
        # Half one after the other, half at once.
        for i in range(0, 3):
            one(i)
        staged()
        team = [threading.Thread(target=one, args=(i,)) for i in range(3, len(calls))]
        for t in team:
            t.start()
        for t in team:
            t.join()
    finally:
        run.end()
    assert all(outcomes), outcomes
    assert run.deaths == 1, "the point was reached %d times" % run.deaths
    # The same ids again: the same outcomes.
    with frazil.Client(daemon.rpc) as client:
        for i, call in enumerate(calls):
            o = commit(client, name, info, ids[i], *call)
            assert (o.state, o.snapshot_id, o.sequence_number) == (
                "COMMITTED", outcomes[i].snapshot_id, outcomes[i].sequence_number)
    want = set(range(100)) - {1, 2, 3, 4, 5, 6} | set(range(1000, 1040)) | set(range(2000, 2010))
    found = audit.rows(daemon, name)
    assert sorted(r["id"] for r in found) == sorted(want)
    assert {r["id"]: r["_row_id"] for r in found if r["id"] in (90, 91)} == {
        i: base.files[0]["first_row_id"] + i for i in (90, 91)}
    assert [r["name"] for r in found if r["id"] in (90, 91)] == ["new", "new"]
    audit.clean(daemon, name)
