"""Clocks that are wrong: a daemon's by a preloaded library, PostgreSQL's by the function that all statements ask."""

import hashlib
import json
import os
import subprocess
import time

import psycopg

from support import foreign
from support.lab import Lab
from support.postgres import ROOT

OFF_S = 600


def preload():
    """The library, built once for its text."""
    source = os.path.join(ROOT, "tests/support/shift_clock.c")
    with open(source, "rb") as f:
        made = os.path.join(ROOT, "build/shift_clock-%s.so" % hashlib.sha256(f.read()).hexdigest()[:16])
    if not os.path.exists(made):
        os.makedirs(os.path.dirname(made), exist_ok=True)
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", made + ".%d" % os.getpid(), source], check=True)
        os.rename(made + ".%d" % os.getpid(), made)
    return made


def environment(seconds):
    """For a daemon whose wall clock is off; the library comes before the sanitizer's, which would complain."""
    return {"LD_PRELOAD": preload(), "SHIFT_CLOCK_S": str(seconds),
            "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0:verify_asan_link_order=0"}


def shift_postgres(conninfo, seconds):
    """As after a failover to a server with another clock."""
    with psycopg.connect(conninfo, autocommit=True) as db:
        db.execute("CREATE OR REPLACE FUNCTION frazil.now_ms() RETURNS int8 LANGUAGE sql VOLATILE AS "
                   "$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 + %d $$" % (seconds * 1000))


def history(daemon, conninfo):
    """A table through every clock: each step another daemon, whose clock and whose PostgreSQL's are off in another way,
    with a kill between. Returns the lab; its table is "clocks.t"."""
    lab = Lab(daemon, "clocks")
    t = lab.table("t", **{"write.metadata.previous-versions-max": "1000"})
    path, first = t.append(60)
    t.update([{"action": "set-snapshot-ref", "ref-name": "side", "type": "branch", "snapshot-id": first.snapshot_id}])
    for k, (wall, server) in enumerate([(OFF_S, 0), (-OFF_S, OFF_S), (OFF_S, -OFF_S), (-OFF_S, -OFF_S), (0, 0)]):
        shift_postgres(conninfo, server)
        daemon.env = environment(wall)
        daemon.restart(kill=True)
        t.append(2)
        t.delete(path, [4 * k, 4 * k + 1], t.head())
        t.append(1, ref="side")
        t.change(path, [4 * k + 2], t.head())
        t.update([{"action": "set-properties", "updates": {"step": str(k)}}])
    return lab


def versions(daemon, table):
    """Every metadata file of a table, oldest first, as far as its log goes."""
    md = table.metadata()
    return [x["metadata-file"] for x in md["metadata-log"]] + [table.load()["metadata-location"]]


def in_order(paths, slack_ms=0):
    """The rule by which readers judge: no log steps back by more than a minute, nothing is later than the file says. A
    client's own snapshot may be dated a little before its parent; never one of ours."""
    last = 0
    for p in paths:
        with open(foreign.local(p)) as f:
            md = json.load(f)
        for log in (md.get("snapshot-log", []), md.get("metadata-log", [])):
            stamps = [x["timestamp-ms"] for x in log] + [md["last-updated-ms"]]
            assert all(b >= a - 60000 for a, b in zip(stamps, stamps[1:])), (p, stamps)
        assert md["last-updated-ms"] >= last, (p, last)
        last = md["last-updated-ms"]
        for s in md.get("snapshots", []):
            assert s["timestamp-ms"] <= last, (p, s)
        by_id = {s["snapshot-id"]: s for s in md.get("snapshots", [])}
        for s in by_id.values():
            parent = by_id.get(s.get("parent-snapshot-id"))
            assert not parent or parent["timestamp-ms"] <= s["timestamp-ms"] + slack_ms, (p, s)
    return last


def now_ms():
    return int(time.time() * 1000)
