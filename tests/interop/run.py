#!/usr/bin/env python3
"""Foreign engines against a catalog: who reads and writes what, compared with a model of the tables.

usage: run.py [--uri URI] [--parts catalog,frazil,matrix,messages,between,clock,types,files,mixed,clients,kit,contract] [--engines spark,duckdb,...] [--no-audit]
Without --uri it starts PostgreSQL and the daemon (FRAZILD, default build/gcc/frazild). Exit 1 when a
reader differs from the model, an auditor's rule is broken, or an engine fails in a way not known of
exactly its version. What an engine does not offer is printed with its version, never left out.
"""

import argparse
import concurrent.futures
import importlib
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "clients/python")]

import auditor  # noqa: E402
import catalog_suite  # noqa: E402
from engine import ALONE, ENGINES, Cannot, Engine, EngineError  # noqa: E402
from known import FAULTS, FINDINGS  # noqa: E402
from report import Report  # noqa: E402


class Suite:
    def __init__(self, uri, engines, folder, report, auditing=True):
        self.auditing, self.proof = auditing, None
        self.full, self.full_engines = False, None
        self.postgres = self.warehouse = self.admin = None  # of a run that starts its own
        self.uri, self.report, self.folder = uri, report, folder
        self.engines = {n: Engine(n, uri, os.path.join(folder, n + ".log")) for n in engines if n not in ALONE}
        self.alone = [n for n in engines if n in ALONE]
        self.tables = []
        self.base = None  # what clients_suite.py reads with all clients
        self.versions = {}  # of writers that are no engine of the list
        self.cannot = {}  # (engine, what) -> reason: printed once
        self.spared = {}  # fault of an engine -> tables on which it did not strike

    def part(self, name, f, *args):
        """Runs one writer; its failure is the suite's failure, the others go on."""
        if self.only and self.only not in name:
            return []
        began = time.monotonic()
        try:
            made = f(*args) or []
            self.tables += made
            self.report.count(name, "ok")
            print("ok     %s: %d tables, %.1f s" % (name, len(made), time.monotonic() - began), flush=True)
            return made
        except Exception as e:
            self.report.broke(name, e)
            return []

    only = None

    def metric(self, name):
        """A number of the daemon, labels included; None of one that somebody else started."""
        if not self.admin:
            return None
        for line in self.admin.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return int(float(line.rpartition(" ")[2]))
        raise KeyError(name)

    def has(self, *names):
        return all(n in self.engines for n in names)

    # ---- reading
    def compare(self, engine, table, lineage, rows=None):
        """rows: as read before, or what was raised then."""
        what = "%s%s" % (table.title, " with row ids" if lineage else "")
        fault = next((f for f in FAULTS if f[0] == engine.name and f[1] == engine.version and
                      re.search(f[2], table.name)), None)
        try:
            rows = engine.read(table.name, lineage, table.snapshot) if rows is None else rows
            if isinstance(rows, Exception):
                raise rows
            lines = table.differences(rows, lineage)
        except Cannot as e:
            if lineage and "lineage" not in engine.offers:
                self.cannot.setdefault((engine.name, "row ids"), str(e))
                self.report.count(engine.name, "cannot")
            else:
                self.report.fail(engine.name, what + ": refused", [str(e)])
            return
        except EngineError as e:
            lines = str(e).splitlines()[:6]
        if not lines:
            self.report.count(engine.name, "ok")
            if fault:
                self.spared[fault] = self.spared.get(fault, 0) + 1
        elif fault:
            self.report.count(engine.name, "known")
            print("known  %s %s on %s: %s; here: %s" % (engine.name, engine.version, what, fault[3], lines[0]))
        else:
            self.report.fail(engine.name, what, lines)

    def read_all(self):
        """The engines side by side: each is a process of its own."""
        def one(engine):
            try:
                self.read_by(engine)
            except Exception as e:
                self.report.broke(engine.name, e)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(one, self.engines.values()))

    def read_by(self, engine, bulk=None):
        """Tables in bulk once each, with row ids where engine and table have them; without a list of them: those that may
        be read so, and the others twice."""
        began = time.monotonic()
        alone = bulk is None
        bulk = [t for t in self.tables if t.in_bulk] if alone else bulk
        lineage = "lineage" in engine.offers
        for table, rows in zip(bulk, engine.read_many([
                (t.name, lineage and t.lineage, t.ref if t.snapshot else None, t.snapshot) for t in bulk]) if bulk else ()):
            self.compare(engine, table, lineage and table.lineage, rows)
        for table in [t for t in self.tables if not t.in_bulk] if alone else ():
            self.compare(engine, table, False)
            if table.lineage:
                self.compare(engine, table, True)
        print("read   %s %s: %d tables, %.1f s" % (
            engine.name, engine.version, len(self.tables if alone else bulk), time.monotonic() - began), flush=True)

    # ---- auditing
    def audit_all(self):
        began = time.monotonic()
        seen = set()
        for table in self.tables:
            foreign = [w for w in table.writers if w != "frazil"]
            try:
                found = auditor.violations(self.uri, table.name) if table.name not in seen else []
                seen.add(table.name)
            except auditor.Unreadable as e:
                self.report.fail("auditor", table.name, str(e).splitlines()[-3:])
                continue
            allowed = {rule for w in foreign for rule in FINDINGS.get((w, self.version_of(w)), ())}
            bad = [v for v in found if v[0] not in allowed or table.is_ours(*v)]
            known = sorted({v[0] for v in found} & allowed)
            if known:
                self.report.count("auditor", "foreign findings")
                print("audit  %s: in snapshots of %s, known of it: %s" % (
                    table.name, " and ".join("%s %s" % (w, self.version_of(w)) for w in foreign),
                    ", ".join("%s x%d" % (rule, sum(v[0] == rule for v in found)) for rule in known)))
            if bad:
                first = {v[0]: v for v in reversed(bad)}
                self.report.fail("auditor", table.name, [
                    "%s (%d times): %s: %s" % (rule, sum(v[0] == rule for v in bad), v[1], v[2][:300])
                    for rule, v in sorted(first.items())])
            else:
                self.report.count("auditor", "ok")
            # The auditor's own reading of the rows is one more reader.
            rows = auditor.raw_rows(self.uri, table.name, table.ref)
            lines = table.differences(rows, table.lineage)
            if lines:
                self.report.fail("auditor", table.title + ": rows", lines)
        print("audit  %d tables, %.1f s" % (len(self.tables), time.monotonic() - began), flush=True)

    def prove_auditor(self, table):
        """Starts the auditor's own proof beside the rest: corrupted copies of a table, each of which it must see."""
        log = open(os.path.join(self.folder, "auditor-proof.log"), "w+")
        self.proof = subprocess.Popen([
            sys.executable, os.path.join(HERE, "audit/selftest.py"), auditor.metadata_location(self.uri, table)],
            stdout=log, stderr=log), log

    def end_proof(self):
        if not self.proof:
            return
        process, log = self.proof
        status = process.wait()
        log.seek(0)
        lines = log.read().splitlines()
        log.close()
        if status:
            self.report.fail("auditor", "its own proof", [x for x in lines if not x.startswith("ok")][-20:])
        else:
            self.report.count("auditor", "proof")
            print("ok     auditor: %s" % lines[-1], flush=True)

    def version_of(self, name):
        return self.engines[name].version if name in self.engines else self.versions.get(name, "?")

    def close(self):
        for e in self.engines.values():
            e.close()

    def summary(self):
        for (engine, what), reason in sorted(self.cannot.items()):
            print("cannot %s %s: %s: %s" % (engine, self.version_of(engine), what, reason))
        for fault, n in self.spared.items():
            print("note   %s %s reads %d tables rightly this time (%s)" % (fault[0], fault[1], n, fault[3]))
        names = sorted({n for n, _ in self.report.counts})
        for n in names:
            print("%-14s %s" % (n, ", ".join("%s %d" % (v, c) for (e, v), c in sorted(self.report.counts.items()) if e == n)))


def catalog_part(suite):
    ns = "c%d" % (int(time.time()) % 100000)
    made = []
    if suite.has("pyiceberg"):
        made += suite.part("pyiceberg client", catalog_suite.pyiceberg, suite.engines["pyiceberg"], ns + "_py")
    if suite.has("duckdb"):
        made += suite.part("duckdb client", catalog_suite.duckdb, suite.engines["duckdb"], ns + "_dk")
    if suite.has("spark"):
        made += suite.part("spark client", catalog_suite.spark, suite.engines["spark"], ns + "_sp")
    if suite.has("spark", "duckdb") and any(t.name.endswith("sp_plain") for t in made):
        suite.part("spark and duckdb in turn", catalog_suite.across, suite.engines["spark"], suite.engines["duckdb"],
                   ns + "_sp", made)
    if suite.has("spark"):
        base = []
        suite.part("spark's table of every change", lambda: base.append(
            catalog_suite.audit_base(suite.engines["spark"], ns + "_sp")))
        if base and suite.auditing:
            suite.prove_auditor(base[0])


# The modules of each part of the run, in this order.
PARTS = {"frazil": ("frazil_suite",), "matrix": ("matrix_suite", "v2_suite"), "messages": ("message_suite",),
         "between": ("between_suite",), "types": ("types_suite",), "files": ("files_suite",), "clients": ("clients_suite",),
         "mixed": ("mixed_suite",)}


def clock_part(suite):
    import clock_suite
    clock_suite.run(suite)
    if suite.warehouse:
        suite.part("java loads every version of all tables", clock_suite.load_all, suite)


def full_part(suite, parts):
    import full_suite
    full_suite.run(suite, parts)


def run(suite, parts, rpc):
    step = suite.report.step
    if "catalog" in parts:
        step("catalog", catalog_part, suite)
    for part, modules in PARTS.items():
        for module in modules if part in parts else ():
            step(part, importlib.import_module(module).run, suite, rpc)
    if "clock" in parts:
        step("clock", clock_part, suite)
    step("reading", suite.read_all)
    suite.rpc = rpc
    if suite.full:
        step("full", full_part, suite, parts)
    if suite.auditing:
        step("audit", suite.audit_all)
        step("audit", suite.end_proof)
    suite.close()
    suite.summary()


def own(a, parts, names, folder, report):
    """A run with a PostgreSQL and daemons of its own."""
    os.environ.setdefault("FRAZILD", "build/gcc/frazild")
    from support.daemon import Daemon
    from support.postgres import Postgres
    postgres = Postgres()
    try:
        # Every snapshot of an engine is looked at, and none may seem to contradict its files.
        daemon = Daemon(folder, postgres.database(), {
            "rest.verify-snapshots": "reject",
            # What is deleted goes at once: purged files are gone when it is looked, and whatever is deleted wrongly is missed.
            "cleaner.interval-ms": "20", "cleaner.grace-ms": "2000",
            "rest.idempotency-lifetime-ms": "5000", **dict(s.split("=", 1) for s in a.set)})
        try:
            suite = Suite(daemon.uri, names, folder, report, not a.no_audit)
            suite.full = a.full
            suite.full_engines = a.full_engines and a.full_engines.split(",")
            suite.postgres, suite.warehouse, suite.admin = postgres, daemon.warehouse, daemon.admin
            run(suite, parts, daemon.rpc)
        finally:
            daemon.close()
        for part in ("moving", "kit", "contract"):
            if part in parts:
                report.step(part, importlib.import_module(part + "_suite").run, postgres, folder, report, a.full)
    finally:
        postgres.remove()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--uri")
    p.add_argument("--rpc")
    p.add_argument("--parts", default="catalog,frazil,matrix,messages,between,clock,types,files,mixed,clients,moving,kit,contract")
    p.add_argument("--engines", default=",".join([*ENGINES, *ALONE]))
    p.add_argument("--no-audit", action="store_true")
    p.add_argument("--full", action="store_true", help="also the engines of full_suite.py")
    p.add_argument("--full-engines", help="of these the named ones alone")
    p.add_argument("--only", help="writers of the frazil part whose name holds this text")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of the daemon that is started")
    a = p.parse_args()
    names, parts = a.engines.split(","), a.parts.split(",")
    unknown = set(parts) - {*PARTS, "catalog", "clock", "moving", "kit", "contract"}
    if unknown:
        p.error("no such part: " + ", ".join(sorted(unknown)))
    Suite.only = a.only
    folder = tempfile.mkdtemp(prefix="frazil-interop-")
    print("logs   %s" % folder)
    report = Report()
    if a.uri:
        report.step("run", lambda: run(Suite(a.uri, names, folder, report, not a.no_audit), parts, a.rpc))
    else:
        report.step("run", own, a, parts, names, folder, report)
    # Whatever was printed before: these are the last lines.
    sys.stderr.flush()
    print("\n".join(report.closing()), flush=True)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
