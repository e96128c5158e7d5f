"""Sixty-four workers on one table, beside a client of the Java library that commits to it through REST.

Each worker has its own rows of the data files that all share, so that what must be left is known from the
acknowledgements alone. All do their turns at full speed; then they go on, one transaction after the other, until the other
client has had its share. That the workers do not starve it is judged by the attempts that its commits took,
never by time: a busy machine is slow, and no less fair.
"""

import asyncio
import json
import os
import re
import subprocess
import threading
import time

import auditor
import frazil
from catalog_suite import check, row
from frazil_suite import Writer, arrow
from javalib import POM, class_path, jdk
from model import Row, Table
from support.daemon import die_with_parent
from support.rest import Rest

WORKERS, TURNS, LINKS = 64, 50, 8
SHARED = 4  # data files that all workers delete from
FOREIGN = 16  # commits that the Java client must land meanwhile
# Of a commit: after a lost race the workers wait, so that the second attempt lands unless the wait ran out. Who is not waited
# for needs dozens beside such a crowd: it loses whenever a batch comes between its reading and its asking.
ATTEMPTS_MAX, ATTEMPTS_MEAN = 24, 4
PACE = 0.02  # seconds between transactions after the turns: still several for each attempt, and a history that can be audited
HANGS = 1800  # seconds until this is given up: not a measure of anything
FIRST_FOREIGN = 90000000
RETRIES = {"commit.retry.num-retries": str(ATTEMPTS_MAX - 1), "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "500",
           "commit.retry.total-timeout-ms": str(HANGS * 1000),
           # Otherwise each attempt rewrites the manifests of all the others.
           "commit.manifest-merge.enabled": "false"}


class Beside:
    """The Java client as a process: its acknowledged commits, and whether it has had its share."""

    def __init__(self, uri, table, log):
        self.acks, self.enough, self.first = [], threading.Event(), None
        self.before = None  # commits that it had landed when the crowd began
        namespace, _, name = table.rpartition(".")
        self.process = subprocess.Popen(
            [os.path.join(jdk(), "java"), "-Xmx1536m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", class_path(),
             "Beside", uri, namespace, name, str(FIRST_FOREIGN)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, preexec_fn=die_with_parent)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.acks.append(json.loads(line))
            self.first = self.first or time.monotonic()
            if self.before is not None and len(self.acks) >= self.before + FOREIGN:
                self.enough.set()
        self.enough.set()  # it ended, for whatever reason: nobody waits any longer

    def end(self):
        """After its commit under way."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        status = self.process.wait(HANGS)
        self.reader.join()
        self.process.stdout.close()
        return status


class Book:
    """What the acknowledgements say: {id: (values, row id, sequence number)} and the row-id ranges."""

    def __init__(self):
        self.rows, self.ranges, self.snapshots, self.transactions = {}, [], set(), 0

    def ack(self, outcome, inserted=(), updated=(), deleted=()):
        """inserted, updated: values in the order of the file; updated rows keep their ids."""
        have = (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted)
        check(outcome.state == "COMMITTED" and have == (len(inserted), len(updated), len(deleted)), outcome.raw)
        self.transactions += 1
        self.snapshots.add(outcome.snapshot_id)
        for f in outcome.files:
            self.ranges.append((f["first_row_id"], f["record_count"]))
        for i, r in enumerate(inserted):
            self.rows[r["id"]] = (r, outcome.files[0]["first_row_id"] + i, outcome.sequence_number)
        for r in updated:
            self.rows[r["id"]] = (r, self.rows[r["id"]][1], outcome.sequence_number)
        for key in deleted:
            del self.rows[key]


async def staged(table, kind, snapshot, fill):
    """A transaction of several messages: begin, stage, seal, commit."""
    txn = await table.begin(kind=kind, read_snapshot_id=snapshot)
    fragment = txn.fragment()
    await fill(fragment)
    await fragment.stage()
    await txn.seal()
    return await txn.commit()


async def worker(client, name, info, n, shared, snapshot, book, beside, pace):
    """Turn k uses position n * TURNS + k of a shared file, if it deletes there at all."""
    table, k, mine = client.table(name), 0, None
    while k < TURNS or not beside.enough.is_set():
        if k >= TURNS:
            async with pace:
                await asyncio.sleep(PACE)
        first = 100000 + n * 1000000 + k * 10
        path, ids = shared[(n + k) % SHARED]
        at = n * TURNS + k
        kind = k % 5 if k < TURNS else (0, 4)[k % 2]
        if kind == 0:
            rows = [row(first), row(first + 1)]
            o = await client.commit_once(name, kind="APPEND", data=arrow(rows), info=info)
            book.ack(o, inserted=rows)
            mine = (o.files[0]["path"], o.snapshot_id, first)
        elif kind == 1:
            o = await client.commit_once(name, kind="DELETE", deletes=[(path, [at])], read_snapshot_id=snapshot)
            book.ack(o, deleted=[ids[at]])
        elif kind == 2:
            rows = [row(first), row(first + 1), row(first + 2)]

            async def both(fragment):
                await fragment.append(arrow(rows))
                fragment.delete(path, [at])
            book.ack(await staged(table, "ROW_DELTA", snapshot, both), inserted=rows, deleted=[ids[at]])
        elif kind == 3:
            key = ids[at]
            new = row(key, name="updated by %d" % n)

            async def update(fragment):
                await fragment.update(path, [at], arrow([new]), [book.rows[key][1]])
            book.ack(await staged(table, "ROW_DELTA", snapshot, update), updated=[new])
        else:
            path, read, key = mine
            o = await client.commit_once(name, kind="DELETE", deletes=[(path, [1])], read_snapshot_id=read)
            book.ack(o, deleted=[key + 1])
        k += 1


async def crowd(rpc, name, info, shared, snapshot, book, beside):
    clients, pace = [frazil.AsyncClient(rpc) for _ in range(LINKS)], asyncio.Lock()
    try:
        await asyncio.wait_for(asyncio.gather(*[
            worker(clients[n % LINKS], name, info, n, shared, snapshot, book, beside, pace) for n in range(WORKERS)]), HANGS)
    finally:
        for c in clients:
            await c.close()


def disjoint(ranges):
    end = 0
    for first, n in sorted(ranges):
        check(first >= end, "row ids from %d were given twice" % first)
        end = first + n


def vectors(uri, name, deleted_from, snapshots):
    """At most one live vector a data file, by the manifests of the head as an independent reader sees them.
    The manifests that these snapshots brought."""
    args = auditor.audit_arguments(uri, name)
    au = auditor.audit.Audit(args)
    location, _ = auditor.audit.from_rest(args)
    au.run(auditor.audit.read_metadata(au.st, location), location)
    state = au.states[au.refs["main"]["snapshot-id"]]
    more = {path: len(v) for path, v in state.dvs.items() if len(v) != 1}
    check(not more, "data files with several vectors:", more)
    check(deleted_from <= set(state.dvs), "shared files without a vector")
    return {r["manifest_path"] for r in state.recs if r["added_snapshot_id"] in snapshots}


def mixed(suite, client, ns, rpc):
    w = Writer(suite, client, ns, "fz_mixed")
    w.rest.want(200, "POST", "%s/fz_mixed" % w.path, {
        "requirements": [], "updates": [{"action": "set-properties", "updates": RETRIES}]})
    book, shared, per = Book(), [], WORKERS * TURNS
    for i in range(SHARED):
        rows = [row(i * per + j) for j in range(per)]
        o = client.commit_once(w.model.name, kind="APPEND", data=arrow(rows))
        book.ack(o, inserted=rows)
        shared.append((o.files[0]["path"], [r["id"] for r in rows]))
    snapshot, info = w.snapshot(), w.table.info()
    book.transactions, book.snapshots = 0, set()
    with open(os.path.join(suite.folder, "beside.log"), "w+") as log:
        beside = Beside(suite.uri, w.model.name, log)
        try:
            while not beside.first and beside.process.poll() is None:
                time.sleep(0.05)  # the Java machine starts, or ends
            beside.first, beside.before = time.monotonic(), len(beside.acks)
            began, before = beside.first, beside.before
            asyncio.run(crowd(rpc, w.model.name, info, shared, snapshot, book, beside))
            elapsed, landed = time.monotonic() - began, len(beside.acks) - before
        finally:
            status = beside.end()
        log.seek(0)
        said = log.read()[-3000:]
    among = beside.acks[before:before + landed]
    took, tries = sorted(a["ms"] for a in among), [a["attempts"] for a in among]
    print("mixed  %d transactions of workers in %d snapshots and %d commits through REST (median %d ms, attempts %s) in %.1f s" % (
        book.transactions, len(book.snapshots), landed, took[len(took) // 2] if took else -1, tries, elapsed), flush=True)
    check(status != 3, "starved: after", landed, "commits the REST client lost", ATTEMPTS_MAX, "races in a row")
    check(status == 0, "the Java client ended with", status, said)
    check(book.transactions >= WORKERS * TURNS, "transactions", book.transactions)
    check(landed >= FOREIGN, "the REST client landed", landed, "commits of at least", FOREIGN)
    check(sum(tries) <= ATTEMPTS_MEAN * landed, "starved: attempts of the REST client's commits:", tries)
    check(sum(tries) > landed, "no race was lost: the workers did not press the REST client")
    check(len(book.snapshots) < book.transactions / 2, "no batching:", len(book.snapshots), "snapshots")

    model = Table(w.model.name)
    model.writers = ["frazil", "java"]
    for key, (values, row_id, seq) in book.rows.items():
        model.rows[key] = Row(values, row_id, seq)
    for ack in beside.acks:
        for key in ack["ids"]:
            if ack["op"] == "append":
                model.rows[key] = Row({"id": key, "region": "java", "name": "j%d" % key, "score": key / 4})
            else:
                del model.rows[key]
    disjoint(book.ranges)
    model.ours = book.snapshots | vectors(suite.uri, w.model.name, {path for path, _ in shared}, book.snapshots)
    suite.versions["java"] = "iceberg " + re.search("<iceberg.version>([^<]+)", open(POM).read()).group(1)
    return [model]


def run(suite, rpc):
    ns = "m%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        suite.part("64 workers beside a Java client", mixed, suite, client, ns, rpc)
