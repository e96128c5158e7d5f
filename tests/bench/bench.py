#!/usr/bin/env python3
"""Measures the daemon on this machine, and the Java library's own commits beside it.

usage: bench.py [--long] [--only commits,batch,race,load,scale,deep,peers,state,parts]

Sections:
  commits  1, 16, 64 and 256 workers on one table, each with one small transaction at a time: appends of
           one data file, deletes of one row, both; local files, and 60 ms added to every write
  batch    one transaction and 256 that touch the same file: the same statements and writes (checked)
  race     100 workers delete one row each of one data file, at once, twice: all land (checked)
  load     loadTable of 10, 1,000 and 10,000 snapshots, all and refs, plain and packed, beside nginx serving the
           same bytes, Iceberg's REST test server on the same PostgreSQL, and SeaweedFS's Iceberg catalog
  scale    304 by a tag, a list of 10,000 tables, creates beside 50,000, commits of properties on one table and on
           many, beside the same two
  deep     one client and a table of 10,000 snapshots
  peers    the Java library against Iceberg's REST test server and with JdbcCatalog, on the same
           PostgreSQL and disk, and against the daemon's REST catalog
  state    tables of 10,000 and 100,000 files (--files for others), with the whole index in memory and with a
           megabyte of it; a kill and restart with 10,000 open transactions
  parts    vector merges and manifest entries a second, without a daemon

daemon, PG and client µs are CPU time a transaction of frazild, PostgreSQL and the load generator, which
share the machine. What was acknowledged is compared with the
table after every run; a difference fails. Results: standard output and build/bench/results.txt.
"""

import argparse
import base64
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "clients/python")]

import pyarrow as pa  # noqa: E402

import frazil  # noqa: E402
import peers  # noqa: E402
import scale  # noqa: E402
import state  # noqa: E402
from frazil import parquet  # noqa: E402
from support.daemon import Daemon  # noqa: E402
from support.postgres import Postgres  # noqa: E402

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "v", "required": False, "type": "string"}]}
SMALL = 10  # rows of an appended file
TARGETS = 8  # data files that deletions spread over
TARGET_ROWS = 1 << 20
DELAY_MS = 60
# Statements that take transactions in, one a turn of the loop whatever it has brought, and those that a
# batch itself causes. The lease, the cleaner and the horizon run on the clock.
INTAKE_SQL = ("catalog", "txn_once", "txn_request", "txn_read")
BATCH_SQL = ("ledger", "publish", "unledger", "batch_look", "head_read", "head_bump", "queue_read")
INTAKE_MAX = 12


class Report:
    """Tables on standard output and, at the end, in a file."""

    def __init__(self):
        self.lines = []
        self.readme = []  # lines ready for README.md
        self.widths = []

    def say(self, text=""):
        print(text, flush=True)
        self.lines.append(text)

    def head(self, title, *columns):
        self.say()
        self.say(title)
        self.widths = [max(8, len(c)) for c in columns]
        self.row(*columns)

    def row(self, *cells):
        text = [("%.0f" if abs(c) >= 100 else "%.1f") % c if isinstance(c, float) else str(c) for c in cells]
        self.say("  " + "  ".join(t.rjust(w) for t, w in zip(text, self.widths)))

    def save(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")


def rows(n):
    return pa.table({"id": pa.array(range(n), pa.int64()), "v": pa.array(["row"] * n)})


def counters(daemon):
    """Samples of the metrics page, name with labels -> value."""
    text = daemon.admin.get("/metrics").body.decode()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")}


def difference(after, before, pattern):
    return sum(v - before.get(k, 0) for k, v in after.items() if re.fullmatch(pattern, k))


def sql_kind(kind):
    return r'frazil_sql_statements_total\{kind="%s"\}' % kind


def puts(after, before):
    return difference(after, before, r'frazil_object_requests_total\{kind="put"\}')


def statements(after, before, kinds=INTAKE_SQL + BATCH_SQL):
    return {k: int(difference(after, before, sql_kind(k))) for k in kinds if difference(after, before, sql_kind(k))}


def postgres_cpu_us(folder):
    """Of all processes of the cluster, those that have ended included."""
    with open(os.path.join(folder, "pg/data/postmaster.pid")) as f:
        parent = f.readline().strip()
    ticks = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if pid == parent:
            ticks += sum(map(int, fields[11:15]))
        elif fields[1] == parent:
            ticks += sum(map(int, fields[11:13]))
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")


class Table:
    """A fresh table with what the load generator needs: a template file, files to delete from."""

    made = 0
    postgres = ""  # folder of the cluster

    def __init__(self, daemon, folder, targets=0):
        Table.made += 1
        self.daemon, self.name = daemon, "t%d" % Table.made
        self.base_rows = self.base_deleted = 0
        daemon.rest.call("POST", "/v1/namespaces", {"namespace": ["bench"], "properties": {}})
        daemon.rest.want(200, "POST", "/v1/namespaces/bench/tables", {
            "name": self.name, "schema": SCHEMA, "properties": {"format-version": "3"}})
        self.files = os.path.join(folder, self.name)
        with frazil.Client(daemon.rpc) as c:
            info = c.table("bench." + self.name).info()
            template = parquet.write(rows(SMALL), info)[0]
            with open(self.files + ".json", "w") as f:
                json.dump({k: v for k, v in template.items() if v is not None}, f,
                          default=lambda b: base64.b64encode(b).decode())
            self.snapshot = 0
            if targets:
                self.delete_from(c, info, targets)

    def delete_from(self, client, info, n):
        first = parquet.write(rows(TARGET_ROWS), info)[0]
        made = [first]
        source = parquet.local_path(first["path"])
        for i in range(1, n):
            copy = "%s-%d.parquet" % (source[:-8], i)
            os.link(source, copy)
            made.append({**first, "path": first["path"].replace(source, copy)})
        o = client.commit_once("bench." + self.name, kind="APPEND", data_files=made, info=info)
        self.snapshot = o.snapshot_id
        self.base_rows = TARGET_ROWS * n
        with open(self.files + ".targets", "w") as f:
            f.writelines("%s %d\n" % (m["path"], TARGET_ROWS) for m in made)

    def metadata(self):
        return self.daemon.rest.want(200, "GET", "/v1/namespaces/bench/tables/" + self.name).json["metadata"]

    def load(self, mode, workers, *options):
        """Runs the generator; its result, with the counters that moved meanwhile."""
        args = [os.path.join(ROOT, "build/gcc/bench/load"), "--rpc", self.daemon.rpc, "--pid", str(self.daemon.process.pid),
                "--table", self.name, "--mode", mode, "--workers", str(workers), "--tag", "w%d" % self.base_rows,
                "--template", self.files + ".json", *map(str, options)]
        if mode != "append":
            args += ["--targets", self.files + ".targets", "--snapshot", str(self.snapshot),
                     "--first", str(self.base_deleted)]
        before, cpu = counters(self.daemon), postgres_cpu_us(Table.postgres)
        got = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
        result = json.loads(got.stdout or "{}")
        if got.returncode:
            raise RuntimeError("load %s: %s" % (" ".join(args[1:]), result.get("first_error", "")))
        after = counters(self.daemon)
        result["postgres_cpu_us"] = postgres_cpu_us(Table.postgres) - cpu
        result["puts"] = puts(after, before)
        result["statements"] = statements(after, before)
        result["published"] = difference(after, before, "frazil_batches_total")
        self.base_rows += SMALL * result["appends"]
        self.base_deleted += result["deletes"]
        return result

    def check(self):
        """Every acknowledged row and deletion is in the table, and none else."""
        metadata = self.metadata()
        last = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])["summary"]
        have = int(last["total-records"]), int(last.get("total-position-deletes", 0))
        if have != (self.base_rows, self.base_deleted):
            raise AssertionError("the table has %d rows and %d deleted, acknowledged were %d and %d" % (
                *have, self.base_rows, self.base_deleted))
        return len(metadata["snapshots"])


# ---- sections
def commits(daemon, folder, report, o, delay):
    rates = {}
    where = "local files with %d ms added to every write" % delay if delay else "local files"
    report.head("commits on one table, " + where,
                "mode", "workers", "txn/s", "p50 ms", "p99 ms", "txn/batch", "daemon µs", "PG µs", "client µs", "PUT/batch",
                "SQL/batch", "snapshots")
    for mode in o.modes:
        for workers in o.workers:
            table = Table(daemon, folder, 0 if mode == "append" else TARGETS)
            if mode == "mixed" and workers == 1:
                continue  # one worker does one thing
            r = table.load(mode, workers, "--seconds", o.seconds, "--warmup", 1)
            n, batches = r["in_window"], max(1, r["published"])
            rate = n / (r["window_us"] / 1e6)
            rates[mode, workers] = rate
            report.row(mode, workers, rate, r["p50_us"] / 1e3, r["p99_us"] / 1e3, r["committed"] / batches,
                       r["daemon_cpu_us"] / max(1, n), r["postgres_cpu_us"] / max(1, r["committed"]),
                       r["own_cpu_us"] / max(1, n), r["puts"] / batches,
                       sum(r["statements"].values()) / batches, table.check())
    return rates


def batch(daemon, folder, report):
    """commit.window-ms makes the daemon wait, so that all of a burst stand in one batch."""
    report.head("one batch of 1 and of 256 transactions that touch the same files", "mode", "txns", "batches", "PUT",
                "SQL of the batch", "SQL of the intake", "statements")
    for mode in ("append", "delete"):
        table = Table(daemon, folder, 1)
        table.load(mode, 1, "--once")
        costs = []
        for n in (1, 256):
            r = table.load(mode, n, "--once", "--connections", 1)
            cost = {k: v for k, v in r["statements"].items() if k in BATCH_SQL}
            intake = sum(v for k, v in r["statements"].items() if k in INTAKE_SQL)
            costs.append((r["batches"], r["puts"], cost))
            report.row(mode, n, r["batches"], int(r["puts"]), sum(cost.values()), intake,
                       " ".join("%s=%d" % kv for kv in r["statements"].items()))
            assert intake <= INTAKE_MAX, r["statements"]
        table.check()
        if costs[0] != costs[1]:
            raise AssertionError("a batch of 256 costs %r, one of 1 %r" % (costs[1], costs[0]))


def race(daemon, folder, report):
    report.head("100 workers delete one row each of one data file at once, twice", "round", "landed", "snapshots", "ms")
    table = Table(daemon, folder, 1)
    landed = 0
    for turn in (1, 2):
        r = table.load("delete", 100, "--once")
        landed += r["committed"]
        report.row(turn, r["committed"], r["snapshots"], r["window_us"] / 1e3)
    table.check()
    assert landed == 200, landed
    return landed


def at_scale(postgres, daemon, folder, report, o, only):
    table = Table(daemon, folder)
    table.load("append", 1, "--once")
    source = table.metadata()
    us = scale.Catalog("frazil", daemon.uri, conninfo=daemon.settings["pg.conninfo"])
    others = scale.Others(postgres, folder, report) if {"load", "scale"} & set(only) else None
    try:
        if others:
            scale.loads(us, others, report, o.load_snapshots, o.load_seconds, source, daemon.warehouse)
        if "scale" in only:
            scale.work(us, daemon, others, report, o, folder)
        if "deep" in only:
            scale.deep(us, daemon, report, source, folder)
    finally:
        if others:
            others.close()


def beside(report, o, peer, n, delay, rates):
    r = peer.run("append", n, o.peer_seconds, o.peer_warmup, delay)[0]
    if r["errors"] or r["snapshots"] != r["acknowledged"]:
        raise AssertionError("%s: %r" % (peer.name, r))
    rate = r["commits"] / r["seconds"]
    ours = rates.get(("append", n, delay))
    report.row(peer.name, n, delay, rate, r["p50_ms"], r["p99_ms"], "%.0f" % ours if ours else "-",
               "%.0f x" % (ours / max(rate, 0.1)) if ours else "-")


def beside_race(report, peer, o, landed):
    got = peer.run("race", 100, 2, o.peer_warmup)
    theirs = sum(r["landed"] for r in got)
    report.row(peer.name, "%d of 200" % theirs, "%.0f" % (sum(r["seconds"] for r in got) * 500),
               "%s of 200" % (landed if landed else "-"), "%.0f x" % (landed / max(1, theirs)) if landed else "-")


def java_peers(postgres, daemon, folder, report, o, rates, landed):
    """Appends that retry until they land, then racing deletes."""
    plain = [("REST test server", lambda d: peers.fixture(postgres.database(), os.path.join(folder, "fixture%d" % d), d)),
             ("JdbcCatalog", lambda d: peers.jdbc(postgres.database(), os.path.join(folder, "jdbc%d" % d)))]
    report.head("appends by the Java library %s, beside frazil's workers of the same number" % peers.VERSION,
                "to".ljust(16), "clients", "delay ms", "commits/s", "p50 ms", "p99 ms", "frazil/s", "ratio")
    for delay in o.delays:
        for _, make in plain:
            peer = make(delay)
            try:
                for n in o.peer_clients if not delay else [16]:
                    beside(report, o, peer, n, delay, rates)
            finally:
                peer.close()
    beside(report, o, peers.rest("frazil's REST", daemon.uri), 16, 0, rates)
    report.head("100 clients delete one row each of one data file at once, twice", "to".ljust(16), "landed", "ms a round",
                "frazil".rjust(10), "ratio")
    for _, make in plain:
        peer = make(0)
        try:
            beside_race(report, peer, o, landed)
        finally:
            peer.close()


def parts(report):
    report.say()
    report.say("parts, without a daemon")
    for program in ("bench_dv", "bench_manifest"):
        got = subprocess.run([os.path.join(ROOT, "build/gcc/bench", program)], stdout=subprocess.PIPE, text=True, check=True)
        for line in got.stdout.splitlines():
            report.say("  " + line)


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/loadavg") as f:
        load_now = f.read().split()[0]
    return "%s, %d cores shared by daemon, PostgreSQL and clients; load before %s" % (model, os.cpu_count(), load_now)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--long", action="store_true", default=os.environ.get("BENCH") == "long")
    p.add_argument("--only", default="commits,batch,race,load,scale,deep,peers,state,parts")
    p.add_argument("--workers", default="1,16,64,256")
    p.add_argument("--modes", default="append,delete,mixed")
    p.add_argument("--delays", default="0,%d" % DELAY_MS)
    p.add_argument("--seconds", type=float)
    p.add_argument("--snapshots", default="10,1000,10000")
    p.add_argument("--files", default=os.environ.get("BENCH_FILES"))
    o = p.parse_args()
    only = o.only.split(",")
    o.seconds = o.seconds or (15 if o.long else 3)
    o.workers, o.modes = [int(w) for w in o.workers.split(",")], o.modes.split(",")
    o.files = [int(n) for n in (o.files or ("10000,100000,1000000" if o.long else "10000,100000")).split(",")]
    o.delays = [int(d) for d in o.delays.split(",")]
    o.load_snapshots, o.load_seconds = [int(n) for n in o.snapshots.split(",")], 8 if o.long else 1
    o.scale_seconds, o.scale_tables = (10, 1000) if o.long else (2, 1000)
    o.peer_clients, o.peer_seconds, o.peer_warmup = ([1, 16, 64, 128], 20, 15) if o.long else ([1, 16, 64], 5, 4)
    os.environ.setdefault("FRAZILD", "build/gcc/frazild")

    report = Report()
    report.say("frazil %s, %s UTC, %s" % (
        subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True,
                       check=False).stdout.strip(), time.strftime("%Y-%m-%d %H:%M", time.gmtime()), machine()))
    report.say("command: %s" % (os.environ.get("BENCH_COMMAND") or " ".join(["tests/bench/bench.py", *sys.argv[1:]])))
    postgres = Postgres()
    Table.postgres = postgres.folder
    folder = tempfile.mkdtemp(prefix="frazil-bench-", dir="/var/tmp")
    rates, landed = {}, None

    def daemon_of(name, settings):
        return Daemon(os.path.join(folder, name), postgres.database(), settings)

    try:
        if "parts" in only:
            parts(report)
        for delay in o.delays if "commits" in only else []:
            d = daemon_of("delay%d" % delay, {"fs.put-delay-ms": delay})
            try:
                rates.update({(*k, delay): v for k, v in commits(d, folder, report, o, delay).items()})
            finally:
                d.close()
        if "batch" in only:
            d = daemon_of("window", {"commit.window-ms": 300})
            try:
                batch(d, folder, report)
            finally:
                d.close()
        if "state" in only:
            state.files(daemon_of, folder, os.path.join(ROOT, "build/gcc/bench/bench_table"), report, o.files)
            state.restart(daemon_of, report)
        d = daemon_of("plain", {})
        try:
            if "race" in only:
                landed = race(d, folder, report)
            if {"load", "scale", "deep"} & set(only):
                at_scale(postgres, d, folder, report, o, only)
            if "peers" in only:
                java_peers(postgres, d, folder, report, o, rates, landed)
        finally:
            d.close()
        if report.readme:
            report.say()
            report.say("for README.md:")
            for line in report.readme:
                report.say(line)
    finally:
        report.save(os.path.join(ROOT, "build/bench/results.txt"))
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
