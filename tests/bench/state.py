"""How the daemon carries much state: tables of many files, many open transactions."""

import asyncio
import os
import subprocess
import time

import frazil
import pyarrow as pa
from frazil import aio, parquet

OPEN = 10_000
RESTART_MAX = 5.0  # seconds; the aim is 2 on a quiet machine
INDEX_MAX = 64  # bytes a live file
DAY = 19000


def rss(daemon):
    with open("/proc/%d/status" % daemon.process.pid) as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def metric(daemon, name):
    text = daemon.admin.get("/metrics").body.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def timed(step, *args, **options):
    began = time.monotonic()
    got = step(*args, **options)
    return got, (time.monotonic() - began) * 1e3


def row():
    columns = {"c%d" % c: pa.array([c], pa.int64()) for c in range(1, 11)}
    return pa.table({**columns, "day": pa.array([DAY], pa.int32()).cast(pa.date32())})


class Big:
    """A registered table of n files of which none exists, and commits on it, in ms."""

    def __init__(self, daemon, program, n):
        self.daemon, self.n, self.name = daemon, n, "bench.files%d" % n
        self.folder = os.path.join(daemon.warehouse, "files%d" % n)
        os.makedirs(self.folder + "/metadata")
        os.makedirs(self.folder + "/data")
        got = subprocess.run([program, self.folder, str(n)], stdout=subprocess.PIPE, text=True, check=True)
        daemon.rest.call("POST", "/v1/namespaces", {"namespace": ["bench"], "properties": {}})
        daemon.rest.want(200, "POST", "/v1/namespaces/bench/register", {
            "name": "files%d" % n, "metadata-location": got.stdout.strip()})

    def head(self):
        return self.daemon.rest.want(200, "GET", "/v1/namespaces/bench/tables/files%d" % self.n).json["metadata"][
            "current-snapshot-id"]

    def append(self):
        with frazil.Client(self.daemon.rpc) as c:
            info = c.table(self.name).info()
            made = parquet.write(row(), info)
            return timed(c.commit_once, self.name, kind="APPEND", data_files=made, info=info)[1]

    def delete(self, file, position):
        path = "file://%s/data/day=%d/00000-%d-a1b2c3d4.parquet" % (self.folder, file % 30, file)
        with frazil.Client(self.daemon.rpc) as c:
            return timed(c.commit_once, self.name, kind="DELETE", deletes=[(path, [position], None)],
                         read_snapshot_id=self.head())[1]


def files(make, folder, program, report, sizes, budgets=(None, 1 << 20)):
    """For each size: the first commit after a start, which reads the index; what stays in memory; then the cost of
    further commits. With the small budget the index of the larger tables does not fit."""
    report.head("tables of many files, ms", "files", "budget", "first commit", "append", "delete", "index B/file", "RSS B/file",
                "held MiB")
    for budget in budgets:
        for n in sizes:
            settings = {"index.max-bytes": budget} if budget else {}
            daemon = make("files%d-%s" % (n, budget), settings)
            try:
                big = Big(daemon, program, n)
                daemon.restart(kill=True)
                with frazil.Client(daemon.rpc) as c:
                    c.table(big.name).info()
                before = rss(daemon)
                first = big.append()
                after, held = rss(daemon), metric(daemon, "frazil_index_bytes")
                per = held / max(1, metric(daemon, "frazil_index_files"))
                appends = sorted(big.append() for _ in range(5))
                deletes = sorted(big.delete(n // 2 + i, i) for i in range(5))
                report.row(n, "-" if budget is None else budget, first, appends[2], deletes[2], per, (after - before) / n,
                           metric(daemon, "frazil_index_held_bytes") / (1 << 20))
                if budget is None:
                    assert per <= INDEX_MAX + 16384 / n, per
                else:
                    assert metric(daemon, "frazil_index_held_bytes") <= budget
            finally:
                daemon.close()


async def _begin(address, table, info, template, first, n):
    async with aio.AsyncClient(address) as c:
        for i in range(first, first + n):
            t = await c.table(table).begin(kind="APPEND", ttl_ms=3600000)
            await t.stage_files([{**template, "path": template["path"][:-8] + "-%d.parquet" % i}], fragment_id="f")


async def _crowd(address, table, info, template, n, workers=64):
    await asyncio.gather(*(_begin(address, table, info, template, w * n // workers, (w + 1) * n // workers - w * n // workers)
                           for w in range(workers)))


def restart(make, report, n=OPEN):
    """kill -9 with many open transactions, each with a staged file: until something new is published."""
    daemon = make("restart", {})
    try:
        daemon.rest.call("POST", "/v1/namespaces", {"namespace": ["bench"], "properties": {}})
        daemon.rest.want(200, "POST", "/v1/namespaces/bench/tables", {
            "name": "open", "properties": {"format-version": "3"}, "schema": {
                "type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "c1", "required": False, "type": "long"}]}})
        with frazil.Client(daemon.rpc) as c:
            info = c.table("bench.open").info()
        template = parquet.write(pa.table({"c1": pa.array([1], pa.int64())}), info)[0]
        fill = timed(asyncio.run, _crowd(daemon.rpc, "bench.open", info, template, n))[1]
        more = parquet.write(pa.table({"c1": pa.array([2], pa.int64())}), info)
        daemon.kill()
        began = time.monotonic()
        daemon.spawn()
        while True:
            try:
                with frazil.Client(daemon.rpc, retries=0, timeout=30) as c:
                    c.commit_once("bench.open", kind="APPEND", data_files=more, info=info)
                break
            except (OSError, frazil.errors.Error):
                time.sleep(0.01)
        took = time.monotonic() - began
        daemon.wait_ready()
        opened = metric(daemon, 'frazil_pending_txns{state="open"}')
        report.head("restart after kill -9", "open txns", "fill s", "first publish s", "RSS MiB")
        report.row(int(opened), fill / 1e3, took, rss(daemon) / (1 << 20))
        assert opened == n, opened
        assert took <= RESTART_MAX, took
    finally:
        daemon.close()
