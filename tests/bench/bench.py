#!/usr/bin/env python3
"""Measures the daemon on this machine: commits on one table, racing deletes, loadTable beside nginx.

usage: bench.py [--seconds S] [--writers 1,16,64,256] [--delays 0,60] [--only commits,deletes,load]

Each writer commits one small data file a transaction and waits for its publication before the next, so
throughput is writers / latency. The writers run in two processes of the Python client on the same
cores as the daemon; the daemon's own CPU time a transaction is shown beside. Files are made before.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "clients/python")]

import pyarrow as pa  # noqa: E402

import frazil  # noqa: E402
from frazil import parquet  # noqa: E402
from support.daemon import Daemon  # noqa: E402
from support.postgres import Postgres  # noqa: E402

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "v", "required": False, "type": "string"}]}
PROCESSES = 2


def rows(n):
    return pa.table({"id": pa.array(range(n), pa.int64()), "v": pa.array(["v%d" % i for i in range(n)])})


def make_table(daemon, name):
    daemon.rest.call("POST", "/v1/namespaces", {"namespace": ["bench"], "properties": {}})
    daemon.rest.want(200, "POST", "/v1/namespaces/bench/tables", {
        "name": name, "schema": SCHEMA, "properties": {"format-version": "3"}})
    with frazil.Client(daemon.rpc) as c:
        return c.table("bench." + name).info()


def copies(record, n, tag):
    """n data files of the same bytes under names of their own."""
    source = parquet.local_path(record["file_path"])
    out = []
    for i in range(n):
        path = "%s.%s-%d.parquet" % (source[:-8], tag, i)
        os.link(source, path)
        out.append({**record, "file_path": record["file_path"][:-len(source)] + path})
    return out


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metric(daemon, pattern):
    """Sum of the samples whose name and labels match; None without any."""
    found = [float(line.rsplit(" ", 1)[1]) for line in daemon.admin.get("/metrics").body.decode().splitlines()
             if not line.startswith("#") and re.match(pattern, line)]
    return sum(found) if found else None


def quantile(sorted_values, q):
    return sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))]


# ---- writers: each process runs its share as coroutines over one connection
async def share(rpc, table, info, record, writers, seconds, tag, results):
    took = []
    end = time.monotonic() + seconds

    async def one(client, files):
        for f in files:
            if time.monotonic() > end:
                return
            began = time.monotonic()
            await client.commit_once(table, kind="APPEND", data_files=[f], info=info)
            took.append(time.monotonic() - began)

    made = copies(record, writers * 40 + int(seconds * 2500), tag)
    async with frazil.AsyncClient(rpc) as client:
        end = time.monotonic() + seconds
        began = time.monotonic()
        await asyncio.gather(*[one(client, made[i::writers]) for i in range(writers)])
        elapsed = time.monotonic() - began
    results.put((elapsed, took))


def run_share(*args):
    asyncio.run(share(*args))


def commits(daemon, writers, seconds, delay):
    name = "commits_%d_%d" % (writers, delay)
    info = make_table(daemon, name)
    record = parquet.write(rows(10), info)[0]
    processes = min(PROCESSES, writers)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    before, sql, puts = cpu_seconds(daemon.process.pid), metric(daemon, "frazil_pg_statements_total"), metric(
        daemon, "frazil_object_puts_total")
    team = [context.Process(target=run_share, args=(
        daemon.rpc, "bench." + name, info, record, writers // processes, seconds, "w%d" % n, results)) for n in range(processes)]
    for p in team:
        p.start()
    got = [results.get() for _ in team]
    for p in team:
        p.join()
    took = sorted(t for _, ts in got for t in ts)
    elapsed = max(e for e, _ in got)
    cpu = cpu_seconds(daemon.process.pid) - before
    metadata = daemon.rest.want(200, "GET", "/v1/namespaces/bench/tables/%s" % name).json["metadata"]
    snapshots = len(metadata["snapshots"])
    # What was acknowledged must be there, or the figure means nothing.
    last = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])
    assert int(last["summary"]["total-records"]) == 10 * len(took), (last["summary"], len(took))
    line = {"writers": writers, "put_delay_ms": delay, "txn_per_s": round(len(took) / elapsed, 1),
            "p50_ms": round(quantile(took, 0.5) * 1000, 1), "p99_ms": round(quantile(took, 0.99) * 1000, 1),
            "txn_per_snapshot": round(len(took) / snapshots, 1), "daemon_cpu_us_per_txn": round(cpu / len(took) * 1e6)}
    if sql is not None:
        line["sql_per_snapshot"] = round((metric(daemon, "frazil_pg_statements_total") - sql) / snapshots, 1)
    if puts is not None:
        line["puts_per_snapshot"] = round((metric(daemon, "frazil_object_puts_total") - puts) / snapshots, 1)
    print("commits  " + "  ".join("%s=%s" % kv for kv in line.items()), flush=True)
    return line


# ---- 100 workers delete one row each of one data file
async def race(rpc, table, path, snapshot, base, n):
    async with frazil.AsyncClient(rpc, retries=0) as client:
        done = await asyncio.gather(*[client.commit_once(
            table, kind="DELETE", deletes=[(path, [base + i])], read_snapshot_id=snapshot) for i in range(n)],
            return_exceptions=True)
    return [d for d in done if not isinstance(d, Exception)], [d for d in done if isinstance(d, Exception)]


def deletes(daemon):
    info = make_table(daemon, "race")
    with frazil.Client(daemon.rpc) as c:
        o = c.commit_once("bench.race", kind="APPEND", data=rows(1000), info=info)
    for turn in range(2):
        began = time.monotonic()
        good, bad = asyncio.run(race(daemon.rpc, "bench.race", o.files[0]["path"], o.snapshot_id, turn * 100, 100))
        print("deletes  turn=%d  landed=%d of 100  snapshots=%d  ms=%.0f%s" % (
            turn + 1, len(good), len({g.snapshot_id for g in good}), (time.monotonic() - began) * 1000,
            "  first error: %r" % bad[0] if bad else ""), flush=True)
        assert len(good) == 100


# ---- loadTable beside nginx serving the same bytes
NGINX = """
worker_processes 1; daemon off; pid %(folder)s/pid; error_log %(folder)s/error.log;
events { worker_connections 256; }
http { access_log off; default_type application/json; keepalive_requests 1000000; client_body_temp_path %(folder)s;
 proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s; uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s;
 server { listen 127.0.0.1:%(port)d; root %(folder)s/www; } }
"""


def wrk(url, seconds):
    got = subprocess.run(["wrk", "-t1", "-c50", "-d%ds" % seconds, url], stdout=subprocess.PIPE, text=True, check=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", got)
    assert not bad, got
    return float(re.search(r"Requests/sec:\s*([0-9.]+)", got).group(1))


def load(daemon, seconds):
    from support.daemon import free_ports
    info = make_table(daemon, "load")
    with frazil.Client(daemon.rpc) as c:
        for _ in range(10):
            c.commit_once("bench.load", kind="APPEND", data=rows(10), info=info)
    target = "/v1/namespaces/bench/tables/load"
    body = daemon.rest.want(200, "GET", target).body
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    folder = tempfile.mkdtemp(prefix="frazil-bench-", dir="/var/tmp")
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/www")
    with open(folder + "/www/load", "wb") as f:
        f.write(body)
    port = free_ports(1)[0]
    with open(folder + "/nginx.conf", "w") as f:
        f.write(NGINX % {"folder": folder, "port": port})
    server = subprocess.Popen([nginx, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"])
    try:
        time.sleep(0.5)
        theirs = wrk("http://127.0.0.1:%d/load" % port, seconds)
        ours = wrk(daemon.uri + target, seconds)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print("load     bytes=%d  loadTable/s=%.0f  nginx/s=%.0f  ratio=%.2f" % (len(body), ours, theirs, ours / theirs), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--writers", default="1,16,64,256")
    p.add_argument("--delays", default="0,60")
    p.add_argument("--only", default="commits,deletes,load")
    a = p.parse_args()
    os.environ.setdefault("FRAZILD", "build/gcc/frazild")
    only = a.only.split(",")
    postgres = Postgres()
    folder = tempfile.mkdtemp(prefix="frazil-bench-")
    try:
        for delay in map(int, a.delays.split(",")):
            daemon = Daemon(os.path.join(folder, str(delay)), postgres.database(), {"fs.put-delay-ms": delay})
            try:
                if "commits" in only:
                    for writers in map(int, a.writers.split(",")):
                        commits(daemon, writers, a.seconds, delay)
                if delay == 0 and "deletes" in only:
                    deletes(daemon)
                if delay == 0 and "load" in only:
                    load(daemon, int(a.seconds))
            finally:
                daemon.close()
    finally:
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
