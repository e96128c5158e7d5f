"""Engines that take long to set up or to run: older Sparks, Trino, Flink, iceberg-go read the same tables and go through their flows;
the Rust library's own parsers are an oracle. A tool that a machine lacks is named and left out.
"""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import time

import clients_suite
import engine
from catalog_suite import check
from model import UNKNOWN

HERE = os.path.dirname(os.path.abspath(__file__))
READERS = ("spark-4.0", "spark-3.5", "trino", "flink", "iceberg-go", "iceberg-rust-crate")


class Missing(Exception):
    """A tool that this machine does not have."""


def java_25():
    for at in sorted(glob.glob("/usr/lib/jvm/*25*")):
        if os.access(os.path.join(at, "bin/java"), os.X_OK):
            return os.path.join(at, "bin/java")
    raise Missing("a Java 25 below /usr/lib/jvm")


def trino(uri):
    java = java_25()
    pom = os.path.join(HERE, "trino/pom.xml")
    version = open(pom).read().partition("<version>4")[2].partition("<")[0]
    jars = engine.script("jars.sh", pom)
    # Trino's log takes the standard output; the answers come on another descriptor.
    return ["sh", "-c", 'exec "$@" 3>&1 1>&2', "sh", java, "-Xmx1500m", "-XX:+UseSerialGC", "--add-modules",
            "jdk.incubator.vector", "--sun-misc-unsafe-memory-access=allow", "-cp", jars + "/*",
            os.path.join(HERE, "trino/TrinoEngine.java"), uri, "4" + version], {}


def flink(uri):
    pom = os.path.join(HERE, "flink/pom.xml")
    version = open(pom).read().partition("<flink.version>")[2].partition("<")[0]
    opens = [x for p in ("lang", "util", "net", "nio", "time") for x in ("--add-opens", "java.base/java.%s=ALL-UNNAMED" % p)]
    return ["sh", "-c", 'exec "$@" 3>&1 1>&2', "sh", os.path.join(engine.java_home(), "bin/java"), "-Xmx1500m", *opens,
            "-cp", engine.script("jars.sh", pom) + "/*", os.path.join(HERE, "flink/FlinkEngine.java"), uri, version], {}


def cache(name):
    root = os.environ.get("FRAZIL_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "frazil")
    return os.path.join(root, name)


def digest(folder, *files):
    text = b"".join(open(os.path.join(folder, f), "rb").read() for f in files)
    return hashlib.sha256(text).hexdigest()[:16]


def iceberg_go(uri):
    go = shutil.which("go")
    if not go:
        raise Missing("a Go toolchain")
    folder = os.path.join(HERE, "go")
    program = cache("frazil-go-" + digest(folder, "go.mod", "go.sum", "main.go"))
    if not os.path.exists(program):
        print("set-up: the Go library (minutes)", flush=True)
        subprocess.run([go, "build", "-mod=readonly", "-buildvcs=false", "-o", program, "."], cwd=folder, check=True,
                       stdin=subprocess.DEVNULL)
    return [program, uri], {}


def spark(lock, jar):
    def command(uri):
        return [engine.python_of(lock), os.path.join(HERE, "engines/spark_engine.py"), uri,
                glob.glob(os.path.join(engine.script("jars.sh", jar), "*.jar"))[0]], {"JAVA_HOME": engine.java_home()}
    return command


def rust_program(name):
    """One of the two programs on the Rust library."""
    cargo = shutil.which("cargo")
    if not cargo:
        raise Missing("cargo")
    folder = os.path.join(HERE, "rust")
    target = cache("cargo-oracle")
    stamp = os.path.join(target, digest(folder, "Cargo.toml", "Cargo.lock", "src/main.rs", "src/engine.rs"))
    if not os.path.exists(stamp):
        print("set-up: the Rust library (minutes)", flush=True)
        subprocess.run([cargo, "build", "-q", "--locked", "--manifest-path", os.path.join(folder, "Cargo.toml"), "--target-dir", target],
                       check=True, stdin=subprocess.DEVNULL)
        open(stamp, "w").close()
    return os.path.join(target, "debug", name)


def rust_crate(uri):
    with open(os.path.join(HERE, "rust/Cargo.toml")) as f:
        version = f.read().partition('iceberg = "=')[2].partition('"')[0]
    return [rust_program("frazil-rust"), uri, version], {}


# name: command, what it offers
COMMANDS = {
    "spark-4.0": (spark("requirements-spark40.txt", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"), {"lineage"}),
    "spark-3.5": (spark("requirements-spark35.txt", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0"), {"lineage"}),
    "trino": (trino, {"lineage"}),
    "flink": (flink, set()),
    "iceberg-go": (iceberg_go, {"lineage"}),
    "iceberg-rust-crate": (rust_crate, {"flow alone"}),  # the package of it reads all tables in every run
}


# ---- the oracle
def disjoint(ranges, what):
    end = 0
    for first, n, name in sorted(ranges):
        check(first >= end, what, "row ids from", first, "of", name, "overlap")
        end = first + n


def judge(model, got):
    """A table of ours by the oracle's view: the numbers of version 3 as the format wants them."""
    name = model.name
    check("error" not in got, name, got.get("error"))
    check(got["format-version"] == 3, name, "format version", got["format-version"])
    if model.next_row_id is not UNKNOWN:
        check(got["next-row-id"] >= model.next_row_id, name, "next row id", got["next-row-id"], model.next_row_id)
    given = {path: first for first, _, path in model.ranges}
    known = {}  # snapshot -> {manifest: first row id}; other lines of history may have numbered it otherwise
    new = []
    for s in sorted(got["snapshots"], key=lambda s: s["sequence-number"]):
        live, vectors, spans = {}, {}, []
        if s["first-row-id"] is not None:  # of before an upgrade there is none
            check(s["first-row-id"] + s["added-rows"] <= got["next-row-id"], name, "rows of snapshot", s["snapshot-id"])
            new.append((s["first-row-id"], s["added-rows"], s["snapshot-id"]))
        for m in s["manifests"]:
            if m["data"] and s["first-row-id"] is not None:
                check(m["first-row-id"] is not None, name, "no first row id:", m["path"])
                before = known.get(s["parent"], {}).get(m["path"], m["first-row-id"])
                check(before == m["first-row-id"], name, "changed:", m["path"], before, m["first-row-id"])
                known.setdefault(s["snapshot-id"], {})[m["path"]] = m["first-row-id"]
                spans.append((m["first-row-id"], m["rows"], m["path"]))
                check(m["first-row-id"] + m["rows"] <= s["first-row-id"] + s["added-rows"], name, "beyond:", m["path"])
            for f in m["files"]:
                if not f["live"]:
                    continue
                if m["data"]:
                    live[f["path"]] = f
                    if s["first-row-id"] is not None and f["first-row-id"] is not None and f["path"] in given \
                            and model.ref == "main":
                        check(given[f["path"]] == f["first-row-id"], name, "acknowledged", given[f["path"]], f)
                else:
                    vectors.setdefault(f["referenced"], []).append(f)
        disjoint(spans, name)
        for path, v in vectors.items():
            check(path in live and len(v) == 1 and 0 < v[0]["rows"] < live[path]["rows"], name, "vectors of", path, v)
    disjoint(new, name)


def oracle(suite):
    program = rust_program("frazil-oracle")
    ours = [t for t in suite.tables if t.in_bulk and t.lineage and t.writers == ["frazil"]]
    names = sorted({t.name for t in ours})
    got = subprocess.run([program, suite.uri], input="".join(n + "\n" for n in names), text=True, stdout=subprocess.PIPE, check=True)
    answers = {a["table"]: a["answer"] for a in map(json.loads, got.stdout.splitlines())}
    for t in ours:
        judge(t, answers[t.name])
    print("oracle %d tables by the Rust library: versions, row ids and vectors" % len(names), flush=True)


# ---- all
def run(suite, parts=("clients",)):
    """Each engine reads all tables, then does what it can do; one Java at a time."""
    missing = []
    tables = [t for t in suite.tables if t.columns == ("id", "region", "name", "score")]
    for name in suite.full_engines or READERS:
        began = time.monotonic()
        try:
            command, offers = COMMANDS[name]
            e = engine.Engine(name, suite.uri, os.path.join(suite.folder, name + ".log"), command(suite.uri), offers)
        except Missing as what:
            missing.append("%s: needs %s" % (name, what))
            continue
        except subprocess.CalledProcessError as failed:
            missing.append("%s: could not be set up: %s" % (name, failed))
            continue
        suite.engines[name] = e
        try:
            if tables and "flow alone" not in offers:
                suite.read_by(e, bulk=tables)
            if "clients" in parts:
                clients_suite.run(suite, suite.rpc, {name: e})
        except engine.EngineError as failed:
            suite.report.fail(name, "ended", str(failed).splitlines()[-5:])
        e.close()
        print("       %s took %.0f s" % (name, time.monotonic() - began), flush=True)
    try:
        if tables:
            suite.part("oracle", oracle, suite)
    except Missing as what:
        missing.append("oracle: needs %s" % what)
    for line in missing:
        print("missing %s" % line)
