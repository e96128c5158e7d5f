"""Reading at scale: tables of many snapshots, long lists, namespaces of many siblings, commits of properties. Beside the
daemon the same requests by the same client go to Iceberg's REST test server on the same PostgreSQL, SeaweedFS's Iceberg
catalog and, for loads, an nginx that serves the same bytes."""

import concurrent.futures
import gzip
import json
import os
import threading
import time

import frazil
import peers
import weed
from frazil import parquet
from support import siblings
from support.history import with_history
from support.rest import Rest
from webload import Nginx, post, wrk

CREATE = '{"name":"new_%d","schema":' + json.dumps(siblings.SCHEMA) + "}"
SET = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"n":"%d"}}]}'
CONNECTIONS = 16  # of those who write
FEW = 8


class Catalog:
    """One REST catalog and what there is in it."""

    def __init__(self, name, uri, prefix="", conninfo=None):
        self.name, self.uri, self.rest, self.conninfo = name, uri, Rest(uri, timeout=300), conninfo
        self.at = "/v1/" + prefix
        self.rest.call("POST", self.at + "namespaces", {"namespace": ["bench"], "properties": {}})

    def table(self, name, space="bench"):
        return "%snamespaces/%s/tables/%s" % (self.at, space, name)

    def make(self, name, n, path):
        """A table of n snapshots: the file is registered, or what cannot register gets snapshots by commits."""
        if path:
            self.rest.want(200, "POST", self.at + "namespaces/bench/register", {"name": name, "metadata-location": path})
            return
        m = self.create(name)["metadata"]
        for first in range(1, n + 1, 500):
            last = min(n, first + 499)
            updates = [{"action": "add-snapshot", "snapshot": {
                "snapshot-id": i, "sequence-number": i, "timestamp-ms": m["last-updated-ms"] + i, "schema-id": 0,
                "manifest-list": "%s/metadata/snap-%d.avro" % (m["location"], i), "summary": {
                    "operation": "append", "added-data-files": "1", "added-records": "10", "total-records": str(10 * i)},
                **({"parent-snapshot-id": i - 1} if i > 1 else {})}} for i in range(first, last + 1)]
            updates.append({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": last})
            self.rest.want(200, "POST", self.table(name), {"requirements": [], "updates": updates})

    def create(self, name, space="bench"):
        return self.rest.want(200, "POST", self.at + "namespaces/%s/tables" % space, {
            "name": name, "schema": siblings.SCHEMA}).json


class Others:
    """The catalogs that are measured beside the daemon; those that cannot be had are said so once."""

    def __init__(self, postgres, folder, report):
        self.closing, self.all = [], []
        conninfo = postgres.database()
        fixture = peers.fixture(conninfo, os.path.join(folder, "scale-fixture"))
        self.closing.append(fixture)
        self.fixture = Catalog("REST test server", fixture.properties["uri"], conninfo=conninfo)
        seaweed = weed.Weed(os.path.join(folder, "weed"))
        self.closing.append(seaweed)
        self.weed = None if seaweed.why else Catalog("SeaweedFS", seaweed.uri, seaweed.bucket + "/")
        if seaweed.why:
            report.say("SeaweedFS is left out: " + seaweed.why)

    def close(self):
        for c in self.closing:
            c.close()


def number(x):
    return "-" if x is None else "{:,.0f}".format(x) if x >= 10 else "%.1f" % x


def loads(us, others, report, sizes, seconds, metadata, folder):
    """Each size, all snapshots and those of refs, plain and packed; with nginx in turns. With 50 connections the slowest would
    not answer the largest in the time that there is."""
    report.head("loadTable, 50 connections, %d for 10,000 snapshots" % FEW, "snapshots", "of", "kB", "gzip kB", "frazil/s", "nginx/s",
                "ratio", "gzip: frazil/s", "nginx/s", "ratio", "REST test server/s", "gzip", "SeaweedFS/s")
    nginx, lines = Nginx(), []
    packing = ["Accept-Encoding: gzip"]
    warm = [others.fixture]
    try:
        for n in sizes:
            name = "history%d" % n
            path = with_history(metadata, name, n, folder)
            for c in (us, others.fixture):
                c.make(name, n, path)
            if others.weed:
                others.weed.make(name, n, None)
            crowd_of = 50 if n < 10000 else FEW
            for query, of in (("", "all"), ("?snapshots=refs", "refs")):
                row, ratios = [], []
                for headers in ([], packing):
                    url = us.uri + us.table(name) + query
                    reply = us.rest.raw("GET", us.table(name) + query, headers=dict(h.split(": ") for h in headers))
                    plain = gzip.decompress(reply.body) if headers else reply.body
                    assert len(json.loads(plain)["metadata"]["snapshots"]) == (n if of == "all" else 1)
                    theirs = nginx.url("table", reply.body)
                    pairs = [(wrk(url, seconds, crowd_of, headers).per_second, wrk(theirs, seconds, crowd_of).per_second)
                             for _ in range(2)]
                    ours, bare = (sum(x) / 2 for x in zip(*pairs))
                    row.append((len(reply.body) / 1e3, ours, bare, ours / bare))
                    ratios.append("%.2f" % (ours / bare))
                for c in warm:
                    wrk(c.uri + c.table(name), 4)  # the Java machine's
                warm = []
                slow = seconds if n < 10000 else max(4, seconds)
                java = [wrk(others.fixture.uri + others.fixture.table(name) + query, slow, crowd_of, h).per_second
                        for h in ([], packing)]
                weeds = wrk(others.weed.uri + others.weed.table(name) + query, slow, crowd_of).per_second if others.weed else None
                (kb, ours, bare, _), (gz, packed, gbare, _) = row
                report.row(n, of, kb, gz, ours, bare, ratios[0], packed, gbare, ratios[1], *java, number(weeds))
                lines.append("| {:,}, {} | {:,.0f} / {:,.0f} | {} / {} | {} / {} | {} / {} | {} / {} | {} |".format(
                    n, of, kb, gz, number(ours), number(packed), number(bare), number(gbare), *ratios, *map(number, java),
                    number(weeds)))
    finally:
        nginx.close()
    report.readme += ["| loadTable, 50 connections (%d for 10,000): plain / gzip | kB | frazil/s | nginx/s | ratio | " % FEW +
                      "REST test server/s | SeaweedFS/s |", "| --- | --- | --- | --- | --- | --- | --- |", *lines, ""]


def crowd(c, n):
    """Tables p0 … that commits of properties spread over."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: c.create("p%d" % i), range(n)))


def lists(c, n, seconds):
    """(whole, first page of 1,000) a second."""
    siblings.siblings(c, "list", n)
    at = c.at + "namespaces/list/tables"
    got = c.rest.want(200, "GET", at).json
    assert len(got["identifiers"]) == n
    return (wrk(c.uri + at, seconds, 8).per_second, wrk(c.uri + at + "?pageToken=&pageSize=1000", seconds, 8).per_second)


def others_wait(daemon, target, seconds):
    """The longest time, ms, that a small request waits while the long list is asked for over and over."""
    rest, stop, worst = daemon.rest, threading.Event(), []

    def ask():
        while not stop.is_set():
            began = time.monotonic()
            rest.get("/v1/config")
            worst.append((time.monotonic() - began) * 1e3)
            time.sleep(0.002)
    t = threading.Thread(target=ask)
    t.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rest.want(200, "GET", target)
    stop.set()
    t.join()
    worst.sort()
    return worst[len(worst) * 99 // 100]


def work(us, daemon, others, report, o, folder):
    """Everything but loads, in requests a second."""
    rows = {}
    seconds = o.scale_seconds

    def put(what, who, value):
        rows.setdefault(what, {})[who.name] = value
    known = "history%d" % o.load_snapshots[0]
    catalogs = [c for c in (us, others.fixture, others.weed) if c]
    for c in catalogs:
        tag = c.rest.get(c.table(known)).headers.get("ETag")
        if tag:
            put("load of a known version: 304", c,
                number(wrk(c.uri + c.table(known), seconds, headers=["If-None-Match: " + tag]).per_second))
    for c in (us, others.fixture):
        whole, page = lists(c, 10000, seconds)
        put("list of 10,000 tables", c, number(whole))
        put("a page of 1,000 of them", c, number(page))
    wait = others_wait(daemon, us.at + "namespaces/list/tables", seconds)
    for c in (us, others.fixture):
        siblings.siblings(c, "crowded", 50000)
        c.rest.want(200, "POST", c.at + "namespaces", {"namespace": ["roomy"]})
    for c in catalogs[:2]:
        for space, what in (("roomy", "create in an empty namespace"), ("crowded", "create beside 50,000")):
            r = post(folder, c.uri, c.at + "namespaces/%s/tables" % space, CREATE, seconds, CONNECTIONS)
            put(what, c, number(r.good))
    for c in catalogs:
        crowd(c, o.scale_tables)
        for paths in (1, o.scale_tables):
            what = "commits of properties, " + ("one table" if paths == 1 else "{:,} tables".format(paths))
            r = post(folder, c.uri, c.table("p%d"), SET, seconds, CONNECTIONS, paths=paths, may_refuse=True)
            put(what, c, number(r.good) + (" (%s refused)" % number(r.per_second - r.good) if r.refused else ""))
    report.head("requests a second, %d connections that write, 8 that list, 50 that load" % CONNECTIONS,
                "what".ljust(34), *(c.name.rjust(24) for c in catalogs))
    for what, cells in rows.items():
        report.row(what.ljust(34), *(cells.get(c.name, "-").rjust(24) for c in catalogs))
    report.say("  the list of 10,000 asked for over and over: 99 of 100 other requests take %.1f ms at most" % wait)
    report.readme += ["| Requests/s | frazil | REST test server | SeaweedFS |", "| --- | --- | --- | --- |"]
    report.readme += ["| %s | %s |" % (what, " | ".join(cells.get(n, "") for n in ("frazil", "REST test server", "SeaweedFS")))
                      for what, cells in rows.items()]
    report.readme.append("")


def median(step, n=9):
    took = []
    for _ in range(n):
        began = time.monotonic()
        step()
        took.append((time.monotonic() - began) * 1e3)
    return sorted(took)[n // 2]


def write(path, data):
    """What the store does for an object: a temporary file, written, synced, named; the folder synced."""
    with open(path + ".tmp", "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.link(path + ".tmp", path)
    os.unlink(path + ".tmp")
    d = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(d)
    os.close(d)


def deep(us, daemon, report, metadata, folder, n=10000):
    """One client and a table of n snapshots: what a load and a commit take, and the daemon's own part of the commit: all but
    the write of a file as large as its metadata."""
    name, small = "deep%d" % n, "deep1"
    for table, snapshots in ((name, n), (small, 1)):
        us.make(table, snapshots, with_history(metadata, table, snapshots, os.path.join(daemon.warehouse, "deep")))
    body = us.rest.want(200, "GET", us.table(name)).body
    load = median(lambda: us.rest.raw("GET", us.table(name)))
    refs = median(lambda: us.rest.raw("GET", us.table(name) + "?snapshots=refs"))
    took = {}
    with frazil.Client(daemon.rpc) as c:
        for table in (small, name):
            info = c.table("bench." + table).info()
            files = iter([parquet.write(siblings.rows(), info) for _ in range(10)])
            c.commit_once("bench." + table, kind="APPEND", data_files=next(files), info=info)
            took[table] = median(lambda t=table, i=info, f=files: c.commit_once("bench." + t, kind="APPEND", data_files=next(f),
                                                                                info=i))
    at = iter(range(100))
    floor = median(lambda: write(os.path.join(daemon.warehouse, "floor%d" % next(at)), body))
    least = median(lambda: write(os.path.join(daemon.warehouse, "floor%d" % next(at)), b"x" * 2000))
    own = (took[name] - floor) - (took[small] - least)  # below 0: less than two writes differ
    report.head("one client, a table of {:,} snapshots, ms".format(n), "MB", "load", "of refs", "commit", "commit, 1 snapshot",
                "write of such a file", "more of the daemon's own")
    report.row("%.1f" % (len(body) / 1e6), load, refs, took[name], took[small], floor, own)
    report.readme += ["- A table of {:,} snapshots ({:.1f} MB of metadata), one client: a load takes {:.1f} ms, of `refs` {:.1f} ms; a "
                      "commit {:.0f} ms, on a table of one snapshot {:.0f}; the write of such a file by a program that does nothing else {:.0f}."
                      .format(n, len(body) / 1e6, load, refs, took[name], took[small], floor)]
