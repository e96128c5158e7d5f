#!/usr/bin/env python3
"""The demonstration of `make run`: eight workers change one table at once, and a foreign reader counts.

usage: demo.py REST_URI RPC_ADDRESS

Each worker is a process of its own and stages inserts, as Parquet files, and deletions of rows that all
lie in the same first data file; then all ask for their commits at the same time. DuckDB, which shares no code with the daemon, then counts the rows,
adds up their ids and looks at their row ids. Exit 1 when it does not agree.
"""

import asyncio
import glob
import importlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients/python"))

WORKERS = 8
ROUNDS = 5  # each worker: an insert and a delete a round
FIRST = 8000  # rows of the first data file
ROWS = 250  # rows of each insert
GONE = 40  # positions of each delete

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "worker", "required": False, "type": "int"},
    {"id": 3, "name": "note", "required": False, "type": "string"}]}


def rest(method, uri, value=None):
    request = urllib.request.Request(uri, method=method, headers={"Content-Type": "application/json"},
                                     data=None if value is None else json.dumps(value).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as got:
            body = got.read()
            return got.status, json.loads(body) if body else None
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read() or b"null")


def batch(first, n, worker):
    import pyarrow as pa
    return pa.table({
        "id": pa.array(range(first, first + n), pa.int64()),
        "worker": pa.array([worker] * n, pa.int32()),
        "note": pa.array(["row %d" % i for i in range(first, first + n)], pa.string()),
    }, schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("worker", pa.int32()), ("note", pa.string())]))


async def work_async(rpc, table, number, path, snapshot, ready, results):
    """Stages everything, waits for the others, then asks for all commits at once."""
    import frazil
    took, snapshots = [], set()

    async def insert(k):
        txn = await t.begin(kind="APPEND")
        await txn.append(batch(FIRST + (number * ROUNDS + k) * ROWS, ROWS, number))
        await txn.seal()
        return txn

    async def delete(k):
        txn = await t.begin(kind="DELETE", read_snapshot_id=snapshot)
        start = (number * ROUNDS + k) * GONE
        await txn.delete(path, list(range(start, start + GONE)))
        await txn.seal()
        return txn

    async def commit(txn):
        began = time.monotonic()
        outcome = await txn.commit()
        took.append(time.monotonic() - began)
        snapshots.add(outcome.snapshot_id)

    async with frazil.AsyncClient(rpc) as client:
        t = client.table(table)
        staged = await asyncio.gather(*[f(k) for k in range(ROUNDS) for f in (insert, delete)])
        ready.wait()
        await asyncio.gather(*[commit(txn) for txn in staged])
    results.put((number, took, sorted(snapshots)))


def work(*args):
    """One worker: its ids and its positions are its own, its data file is everybody's."""
    try:
        asyncio.run(work_async(*args))
    except BaseException:
        args[-2].abort()  # nobody waits for this one
        raise


def count(uri, namespace, name):
    """What DuckDB sees: rows, sum of the ids, distinct row ids."""
    import duckdb
    db = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    for extension in ("httpfs", "avro", "iceberg"):
        at = os.path.dirname(importlib.import_module("duckdb_extension_" + extension).__file__)
        db.execute("LOAD '%s'" % glob.glob(os.path.join(at, "**", extension + ".duckdb_extension"), recursive=True)[0])
    db.execute("ATTACH '' AS ice (TYPE iceberg, ENDPOINT '%s', AUTHORIZATION_TYPE 'none')" % uri)
    got = db.execute("SELECT count(*), sum(id), count(DISTINCT _row_id) FROM ice.%s.%s" % (namespace, name)).fetchone()
    return duckdb.__version__, got


def main():
    uri, rpc = sys.argv[1].rstrip("/"), sys.argv[2]
    import frazil
    namespace, name = "demo", "run_%d" % time.time_ns()
    status, got = rest("POST", uri + "/v1/namespaces", {"namespace": [namespace], "properties": {}})
    if status not in (200, 409):
        raise SystemExit("demo: creating the namespace: %s %s" % (status, got))
    status, got = rest("POST", "%s/v1/namespaces/%s/tables" % (uri, namespace), {
        "name": name, "schema": SCHEMA, "properties": {"format-version": "3"}})
    if status != 200:
        raise SystemExit("demo: creating the table: %s %s" % (status, got))
    print("table %s.%s, format version %d" % (namespace, name, got["metadata"]["format-version"]))

    with frazil.Client(rpc) as client:
        txn = client.table("%s.%s" % (namespace, name)).begin(kind="APPEND")
        txn.append(batch(0, FIRST, -1))
        first = txn.commit()
    path = first.files[0]["path"]
    print("one data file of %d rows; now %d workers at once, each with %d inserts of %d rows and %d deletes of %d rows of that file"
          % (FIRST, WORKERS, ROUNDS, ROWS, ROUNDS, GONE), flush=True)

    # Fresh processes: nothing of this one's connection is inherited.
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(WORKERS + 1), context.Queue()
    workers = [context.Process(target=work, args=(rpc, "%s.%s" % (namespace, name), n, path, first.snapshot_id, ready, results),
                               daemon=True) for n in range(WORKERS)]
    # Ctrl-C is for this process: the workers, which end with it, never see it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for w in workers:
        w.start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ready.wait(60)
    except threading.BrokenBarrierError:
        raise SystemExit("demo: a worker failed") from None
    began = time.monotonic()
    done = []
    while len(done) < WORKERS:
        if any(w.exitcode for w in workers):
            raise SystemExit("demo: a worker failed")
        try:
            done.append(results.get(timeout=1))
        except Exception:
            if time.monotonic() - began > 120:
                raise SystemExit("demo: the workers do not end")
    elapsed = time.monotonic() - began
    for w in workers:
        w.join()

    took = sorted(t for _, ts, _ in done for t in ts)
    transactions = WORKERS * ROUNDS * 2
    status, got = rest("GET", "%s/v1/namespaces/%s/tables/%s" % (uri, namespace, name))
    metadata = got["metadata"]
    snapshots = len(metadata["snapshots"]) - 1  # without the first append
    summary = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])["summary"]
    print("%d transactions in %.0f ms: median %.0f ms, slowest %.0f ms; %d snapshots; %s deletion vector(s) over %s data files"
          % (transactions, elapsed * 1000, took[len(took) // 2] * 1000, took[-1] * 1000, snapshots,
             summary.get("total-delete-files"), summary.get("total-data-files")))

    rows = FIRST + WORKERS * ROUNDS * (ROWS - GONE)
    ids = sum(range(WORKERS * ROUNDS * GONE, FIRST + WORKERS * ROUNDS * ROWS))
    version, (seen, total, distinct) = count(uri, namespace, name)
    agree = seen == rows and total == ids and distinct == rows
    print("expected %d rows; DuckDB %s counts %d, sum of ids %s, %d distinct row ids: %s" % (
        rows, version, seen, "right" if total == ids else "WRONG", distinct, "agrees" if agree else "DOES NOT AGREE"))
    return 0 if agree and summary.get("total-delete-files") == "1" else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
