"""What unmodified clients do with the catalog, feature by feature: each step of a client's flow (flows/) is one feature with an
exact result, read back by clients that share no code with it, and every table that is left is audited.

A step works, or the client cannot, with the message that flows/limits.py expects of exactly its version; anything
else fails, also a limit that is gone. The result is a table for README, which must hold the same.

    python3 tests/interop/clients_suite.py      writes the table of build/interop/clients.json into README
"""

import glob
import importlib
import json
import os
import re
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
if __name__ == "__main__":
    sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "clients/python")]

from flows.limits import LACKS, LIMITS, REMARKS  # noqa: E402

MADE = os.path.join(ROOT, "build/interop/clients.json")
BEGIN, END = "<!-- clients: begin -->\n", "<!-- clients: end -->\n"
# The rows of the table. A step is named by the word before the colon.
FEATURES = {
    "namespace": "namespaces: create, nest, list, properties, drop",
    "table": "tables: create, list, rename, drop",
    "ctas": "CREATE TABLE AS SELECT",
    "rtas": "CREATE OR REPLACE TABLE AS SELECT",
    "insert": "insert, append",
    "overwrite": "overwrite what a condition names",
    "delete": "DELETE",
    "update": "UPDATE",
    "merge": "MERGE, upsert",
    "read": "read version 3: what workers wrote and deleted",
    "lineage": "read row ids and sequence numbers",
    "v3": "write version 3 (deletion vectors, row ids)",
    "branch": "branches: create, write, read, move on",
    "tag": "tags: create, read, drop",
    "travel": "time travel by snapshot and by time",
    "rollback": "roll back, choose a snapshot",
    "schema": "schema evolution",
    "spec": "partition evolution",
    "properties": "properties, sort order",
    "upgrade": "from version 2 to 3",
    "inspect": "metadata tables",
    "view": "views: create, read, replace, drop",
    "rewrite": "rewrite data files",
    "manifests": "rewrite manifests",
    "expire": "expire snapshots",
    "orphans": "remove orphan files",
    "statistics": "statistics files",
    "transaction": "several changes of a table in one commit",
    "tables": "several tables in one commit",
    "conflict": "two writers: the later is retried or refused",
    "register": "register a table by its metadata",
    "purge": "drop with purge",
}
# name: the module of flows/, the title of the column. The first are of every run, the others of a full one.
CLIENTS = {"spark": "Spark", "pyiceberg": "PyIceberg", "duckdb": "DuckDB", "iceberg-rust": "iceberg-rust", "iceberg-java": "Iceberg Java"}
FULL = {"spark-4.0": "Spark", "spark-3.5": "Spark", "trino": "Trino", "flink": "Flink", "iceberg-go": "iceberg-go",
        "iceberg-rust-crate": "iceberg-rust, the crate"}
# Engines that read what a client wrote, none of its own family. Arrow, with which PyIceberg reads, does not know the encoding of
# Trino's files of positions.
READERS = {"trino": ("duckdb",), "pyiceberg": ("duckdb",), "duckdb": ("pyiceberg",), "iceberg-rust": ("pyiceberg",)}

ROUNDS = 500  # of the cleaner, in which whatever may go has gone
HANGS = 1800  # seconds until this is given up: not a measure of anything


class Client:
    """A client at work: what its flow calls."""

    def __init__(self, suite, engine, ns, base):
        from support.rest import Rest
        self.suite, self.engine, self.ns, self.base = suite, engine, ns, base
        self.rest = Rest(suite.uri)
        self.readers = READERS.get(engine.name, ("pyiceberg", "duckdb"))
        self.audited = {}  # table -> its rows, or None when only the rules are asked

    # ---- the client
    def sql(self, *texts):
        """Rows of the last statement, each a tuple."""
        return [tuple(r.values()) for r in self.engine.sql(*texts)]

    def run(self, text, **given):
        """A program in the client's own language, with values that it sees by name."""
        return self.engine.ask("run", text=text, given={"ns": self.ns, **given})

    # ---- what the catalog says
    def path(self, table):
        namespace, _, name = table.rpartition(".")
        return "/v1/namespaces/%s/tables/%s" % (namespace.replace(".", "%1F"), name)

    def metadata(self, table):
        return self.rest.get(self.path(table)).json["metadata"]

    def location(self, table):
        return self.rest.get(self.path(table)).json["metadata-location"]

    def there(self, table):
        return self.rest.head(self.path(table)).status == 204

    def snapshots(self, table):
        return sorted(self.metadata(table).get("snapshots", ()), key=lambda s: s["sequence-number"])

    def schema(self, table):
        m = self.metadata(table)
        return next(s for s in m["schemas"] if s["schema-id"] == m["current-schema-id"])

    def spec(self, table):
        """[(column, transform)] of the default spec."""
        m = self.metadata(table)
        names = {f["id"]: f["name"] for s in m["schemas"] for f in s["fields"]}
        spec = next(s for s in m["partition-specs"] if s["spec-id"] == m["default-spec-id"])
        return [(names[f["source-id"]], f["transform"]) for f in spec["fields"]]

    # ---- judgement
    def check(self, ok, *what):
        from catalog_suite import check
        check(ok, *what)

    def equal(self, got, want, what):
        self.check(got == want, what, "is", repr(got)[:300], "should be", repr(want)[:300])

    def same(self, got, want, what):
        """Rows in any order."""
        got, want = ordered(got), ordered(want)
        self.check(got == want, "%s: %d rows, should be %d; not wanted: %s; missing: %s" % (
            what, len(got), len(want), [r for r in got if r not in want][:3], [r for r in want if r not in got][:3]))

    def operations(self, table, *want):
        self.equal([s["summary"]["operation"] for s in self.snapshots(table)], list(want), "operations of " + table)

    def refs(self, table, **want):
        """want: the type of each ref."""
        self.equal({k: r["type"] for k, r in self.metadata(table).get("refs", {}).items()}, want, "refs of " + table)

    def version(self, table, n):
        self.equal(self.metadata(table)["format-version"], n, "format version of " + table)

    def holds(self, table, rows, snapshot=None, readers=None):
        """The rows, by the other clients; at a snapshot, or now, and then the raw files are read too, when the flow has ended."""
        for name in self.readers if readers is None else readers:
            got = self.suite.engines[name].read(table, False, snapshot)
            self.same(got, rows, "%s, read by %s" % (table, name))
        if snapshot is None:
            self.audited[table] = rows

    def reads_base(self, lineage):
        """The table that workers made, row for row as it was acknowledged to them."""
        lines = self.base.differences(self.engine.read(self.base.name, lineage), lineage)
        self.check(not lines, *lines)

    def emptied(self, location):
        """No file is left there, but for checksums that Hadoop's file system keeps for itself. The cleaner is given rounds, not
        time alone: on a busy machine it goes as slowly as all the rest."""
        rounds = 'frazil_sql_statements_total{kind="clean_claim"}'
        began, first = time.monotonic(), self.suite.metric(rounds) or 0
        while True:
            left = [f for f in self.files(location) if not f.endswith(".crc")]
            passed = time.monotonic() - began
            if not left or passed > HANGS or passed > 20 and (self.suite.metric(rounds) or ROUNDS) - first >= ROUNDS:
                break
            time.sleep(0.2)
        self.check(not left, "files are left:", left[:3])

    @staticmethod
    def files(location):
        at = "/" + location.partition(":")[2].lstrip("/")
        return [f for f in glob.glob(at + "/**", recursive=True) if os.path.isfile(f)]

    def refused(self, f, pattern):
        """A statement or a call that must not go through: the client refuses, or was refused, with these words."""
        from engine import EngineError
        try:
            f()
        except EngineError as e:
            self.check(re.search(pattern, str(e)), "refused with", str(e)[:300])
            return
        self.check(False, "not refused:", pattern)


def ordered(rows):
    return sorted(json.dumps(r, sort_keys=True) for r in rows)


def made_by_workers(suite, rpc):
    """Partitioned, with vectors that were merged and rows that were updated: its model."""
    import frazil
    from frazil_suite import BY_REGION, Writer
    from catalog_suite import span
    from support.rest import Rest
    ns = "k%d_base" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        w = Writer(suite, client, ns, "base", BY_REGION)
        w.append(span(0, 30))
        w.append(span(30, 60))
        for digits in ((1, 2), (3, 4)):
            w.delete_together([lambda r, d=d: r["id"] % 10 == d for d in digits])
        w.update(lambda r: r["id"] % 17 == 0, lambda r: {"name": "u" + r["name"]})
    return w.model


def audit(client, known):
    """Every table that the flow left."""
    import auditor
    broken = {}
    for table, rows in client.audited.items():
        if not client.there(table):
            continue
        for rule, thing, detail in auditor.violations(client.suite.uri, table):
            if rule not in known:
                broken.setdefault(rule, []).append("%s: %s: %s" % (table, thing, detail[:200]))
        if rows is not None:
            got = [{k: r[k] for k in rows[0]} if rows else r for r in auditor.raw_rows(client.suite.uri, table)]
            client.same(got, rows, table + ", raw")
    client.check(not broken, "rules broken: ", {rule: (len(lines), lines[0]) for rule, lines in sorted(broken.items())})


def flow(suite, name, engine, base):
    """{feature: [verdict, reason]} of one client."""
    from engine import Cannot, EngineError
    from known import FINDINGS
    module = importlib.import_module("flows.%s_flow" % re.sub("-[0-9.]+$", "", name).replace("-", "_"))
    ns = "k%d_%s" % (int(time.time()) % 100000, re.sub("[^a-z]", "", name) + re.sub("[^0-9]", "", name))
    client = Client(suite, engine, ns, base)
    limits, lacks, remarks = LIMITS.get((name, engine.version), {}), LACKS.get(name, {}), REMARKS.get(name, {})
    out = {}
    for feature in FEATURES:
        step = getattr(module, "step_" + feature, None)
        if suite.only and suite.only not in ("%s %s" % (name, feature)) and feature not in module.ALWAYS:
            continue
        if step is None:
            if feature in lacks or None in lacks:
                out[feature] = ["lacks", lacks.get(feature, lacks.get(None))]
            else:
                suite.report.fail(name, feature, ["no step, and flows/limits.py gives no reason"])
            continue
        if feature in lacks:
            suite.report.fail(name, feature, ["flows/limits.py says that it has no such thing, but there is a step"])
        began = time.monotonic()
        try:
            step(client)
            verdict, lines = "works", []
        except Exception as e:
            # What the flow itself does wrong is no limit of a client.
            expected = isinstance(e, (Cannot, EngineError)) or type(e).__name__ == "Failed"
            lines = [x for x in str(e).splitlines() if not x.startswith("\tat ")] if expected else \
                traceback.format_exc().splitlines()[-12:]
            verdict = "fails"
            if expected and feature in limits and re.search(limits[feature][0], str(e)):
                verdict = "cannot"
        if verdict == "fails":
            suite.report.fail(name, feature, lines[:6])
        elif verdict == "works" and feature in limits:
            suite.report.fail(name, feature, ["works, but flows/limits.py says: " + limits[feature][1]])
        else:
            suite.report.count(name, verdict)
        out[feature] = [verdict, limits[feature][1] if verdict == "cannot" else remarks.get(feature, "")]
        print("%-6s %s %s: %.1f s%s" % (verdict, name, feature, time.monotonic() - began,
                                        ": " + lines[0][:200] if verdict == "cannot" else ""), flush=True)
    suite.part(name + "'s tables", audit, client, FINDINGS.get((name, engine.version), ()))
    return out


# ---- the table
def markdown(results):
    """The table and, below it, what the marks mean. results: {client: {"title", "version", "features"}}"""
    notes, lines = [], []
    names = [n for n in {**CLIENTS, **FULL} if n in results]

    def mark(name, feature):
        verdict, reason = results[name]["features"].get(feature, ("fails", ""))
        if reason and reason not in notes:
            notes.append(reason)
        return {"works": "yes", "cannot": "no", "lacks": "–", "fails": "**fails**"}[verdict] + (
            " <sup>%d</sup>" % (notes.index(reason) + 1) if reason else "")

    lines.append("| | %s |" % " | ".join("%s %s" % (results[n]["title"], results[n]["version"]) for n in names))
    lines.append("| --- |" + " --- |" * len(names))
    for feature, title in FEATURES.items():
        lines.append("| %s | %s |" % (title, " | ".join(mark(n, feature) for n in names)))
    lines.append("")
    lines += ["%d. %s" % (i, reason) for i, reason in enumerate(notes, 1)]
    return "".join(line + "\n" for line in lines)


def in_readme():
    """What stands between the marks, and the text before and behind."""
    with open(os.path.join(ROOT, "README.md")) as f:
        text = f.read()
    before, began, rest = text.partition(BEGIN)
    inside, ended, behind = rest.partition(END)
    return (before, inside, behind) if began and ended else None


def stored():
    """The results of all clients that ever ran in this checkout; README is made from them."""
    try:
        with open(os.path.join(HERE, "flows/results.json")) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def judge(suite, results):
    """README tells what this run has seen."""
    kept = stored()
    stale = [n for n in results if kept.get(n) != results[n]]
    where = in_readme()
    if stale or where is None or where[1] != markdown(kept):
        suite.report.fail("clients", "the table of README is not what was seen here", [
            "differs: %s" % (", ".join(stale) or "README.md itself"), "python3 tests/interop/clients_suite.py writes it anew"])
    else:
        suite.report.count("clients", "README ok")


def run(suite, rpc, full=None):
    """full: {name: Engine} of clients beside the suite's own."""
    from engine import ALONE, Engine
    results = {}
    base = suite.base = suite.base or made_by_workers(suite, rpc)
    for name, title in {**CLIENTS, **FULL}.items():
        engine = (full or {}).get(name) if name in FULL else suite.engines.get(name) if full is None else None
        alone = full is None and name in suite.alone
        if alone:
            engine = Engine(name, suite.uri, os.path.join(suite.folder, name + ".log"), ALONE[name](suite.uri))
        if engine:
            results[name] = {"title": title, "version": engine.version, "features": flow(suite, name, engine, base)}
        if alone:
            engine.close()
    os.makedirs(os.path.dirname(MADE), exist_ok=True)
    try:
        with open(MADE) as f:
            before = json.load(f)
    except FileNotFoundError:
        before = {}
    if not suite.only:
        with open(MADE, "w") as f:
            json.dump({**before, **results}, f, indent=1, sort_keys=True)
        with open(MADE.replace(".json", ".md"), "w") as f:
            f.write(markdown(results))
        judge(suite, results)
    return results


def main():
    """What the runs of this machine have seen becomes what README says; a run with a failure is none."""
    kept = stored()
    with open(MADE) as f:
        for name, result in json.load(f).items():
            bad = [k for k, v in result["features"].items() if v[0] == "fails"]
            if bad:
                print("%s is left out: %s failed" % (name, ", ".join(bad)))
            else:
                kept[name] = result
    with open(os.path.join(HERE, "flows/results.json"), "w") as f:
        json.dump(kept, f, indent=1, sort_keys=True)
        f.write("\n")
    before, _, behind = in_readme()
    with open(os.path.join(ROOT, "README.md"), "w") as f:
        f.write(before + BEGIN + markdown(kept) + END + behind)


if __name__ == "__main__":
    main()
