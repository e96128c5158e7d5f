"""Every metadata file of a run in the eyes of the Java library, those of daemons with wrong clocks among them."""

import glob
import gzip
import json
import os
import subprocess

import javalib
from catalog_suite import check
from support import clocks
from support.daemon import Daemon


def refusals(paths):
    """(how many were taken, lines about the others)"""
    got = subprocess.run(
        [os.path.join(javalib.jdk(), "java"), "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp",
         javalib.class_path(), "LoadVersions"], input="\n".join(paths), text=True, stdout=subprocess.PIPE, check=True)
    lines = got.stdout.splitlines()
    return int(lines[-1]), lines[:-1]


def metadata(path):
    """A metadata file; None when it has gone: the cleaner goes round meanwhile."""
    try:
        with open(path, "rb") as f:
            text = f.read()
    except FileNotFoundError:
        return None
    return json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)


def views(paths):
    """What the Java library reads of views' metadata files, or the text of its refusal, for each."""
    got = subprocess.run(
        [os.path.join(javalib.jdk(), "java"), "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", javalib.class_path(), "ReadViews"],
        input="\n".join(paths), text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    return [line if line.startswith("refused") else json.loads(line) for line in got]


def load(folder):
    """All metadata files below a warehouse: those of tables, and those of views, which have the same names."""
    files = {p: metadata(p) for p in sorted(glob.glob(os.path.join(folder, "**/*.metadata.json"), recursive=True))}
    paths = [p for p, doc in files.items() if doc and "view-uuid" not in doc]
    of_views = [p for p, doc in files.items() if doc and "view-uuid" in doc]
    for path, read in zip(of_views, views(of_views) if of_views else (), strict=True):
        wanted = {k: files[path][k] for k in ("view-uuid", "location", "current-version-id", "versions", "schemas", "version-log")}
        check(not os.path.exists(path) or isinstance(read, dict) and {k: read.get(k) for k in wanted} == wanted, "view", path, read)
    taken, lines = refusals(paths)
    gone = [p for p in paths if not os.path.exists(p)]
    lines = [line for line in lines if not line.startswith(tuple(p + ": " for p in gone))]
    check(not lines and taken >= len(paths) - len(gone), "metadata files that the Java library refuses:", lines[:5])
    return len(paths) + len(of_views)


def clocks_off(suite):
    conninfo = suite.postgres.database()
    daemon = Daemon(os.path.join(suite.folder, "clocks"), conninfo)
    try:
        lab = clocks.history(daemon, conninfo)
        paths = clocks.versions(daemon, lab.tables[0])
        clocks.in_order(paths)
        lab.check()
        check(load(daemon.warehouse) >= len(paths), "versions", len(paths))
        # A log that steps back by two minutes is what it would refuse.
        md = lab.tables[0].metadata()
        md["metadata-log"][-2]["timestamp-ms"] = md["metadata-log"][-1]["timestamp-ms"] + 120000
        wrong = os.path.join(suite.folder, "steps-back.metadata.json")
        with open(wrong, "w") as f:
            json.dump(md, f)
        taken, lines = refusals([wrong])
        check(taken == 0 and "sorted" in lines[0], "a log that steps back was taken:", lines)
    finally:
        daemon.close()


def run(suite):
    if suite.postgres:
        suite.part("java loads what daemons with wrong clocks wrote", clocks_off, suite)


def load_all(suite):
    n = load(suite.warehouse)
    print("java   loads %d metadata files" % n, flush=True)
