"""Iceberg's own REST Compatibility Kit against a daemon: every test passes but those that the kit switches off itself."""

import os
import subprocess
import tempfile

from mixed_suite import jdk
from support.daemon import Daemon
from support.postgres import ROOT

HERE = os.path.join(ROOT, "tests/interop/kit")
# Switched off for every REST server: empty namespaces, names with a slash, nested namespaces, a test of the fixture's own.
OFF = {"createAndDropEmptyNamespace", "listNamespacesWithEmptyNamespace", "listTablesInEmptyNamespace", "listViewsInEmptyNamespace",
       "namespacePropertiesOnEmptyNamespace", "testTableNameWithSlash", "testNamespaceWithSlash", "testListNestedNamespaces",
       "testDropNamespaceWithNestedNamespace", "createTableInUniqueLocation"}
# These come back in the second run.
NAMES = {"testTableNameWithSlash", "testNamespaceWithSlash", "testListNestedNamespaces", "testDropNamespaceWithNestedNamespace"}
PASS = 147
HANGS = 1800  # seconds, many times what the slowest machine takes


def classes(jars):
    out = os.path.join(ROOT, "build/interop/kit")
    subprocess.run([os.path.join(jdk(), "javac"), "-nowarn", "-d", out, "-cp", jars + "/*", os.path.join(HERE, "Kit.java")], check=True)
    return out + ":" + jars + "/*"


def once(database, folder, path, *args, **properties):
    """{result: [test], "why": lines about those that failed} of one run, against a warehouse of its own: the kit leaves files behind. Some of its tests choose
    locations below /tmp themselves."""
    os.makedirs(folder)
    with tempfile.TemporaryDirectory() as scratch:
        daemon = Daemon(folder, database, {"warehouse.name": "rck_warehouse", "fs.roots": "file:///tmp"})
        try:
            words = {"rck.local": "false", "rck.requires-namespace-create": "true", "rck.supports-names-with-dot": "true",
                     "uri": daemon.uri, "java.io.tmpdir": scratch, "org.slf4j.simpleLogger.defaultLogLevel": "error", **properties}
            got = subprocess.run(
                [os.path.join(jdk(), "java"), "-Xmx1g", "-XX:+UseSerialGC", *["-D%s=%s" % w for w in words.items()], "-cp", path,
                 "org.apache.iceberg.rest.Kit", *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=HANGS).stdout
        finally:
            daemon.close()
    with open(os.path.join(folder, "kit.log"), "w") as f:
        f.write(got)
    out = {"passed": [], "failed": [], "skipped": [], "why": []}
    for line in got.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("passed", "failed", "skipped"):
            out[word].append(rest.split(" ")[0].split(".")[-1])
            if word == "failed":
                out["why"].append(rest)
    if not out["passed"]:
        out["why"] += got.splitlines()[-3:]
    return out


def run(postgres, folder, report, full=False):
    jars = subprocess.run([os.path.join(ROOT, "scripts/jars.sh"), os.path.join(HERE, "pom.xml")], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.strip()
    path = classes(jars)
    ways = [("as it is", {})]
    if full:
        ways += [("snapshot-loading-mode=REFS", {"snapshot-loading-mode": "REFS"}), ("rest-page-size=2", {"rest-page-size": "2"})]

    def judge(name, got, good, more=()):
        counts = "%d passed, %d failed, %d switched off by the kit" % tuple(len(got[k]) for k in ("passed", "failed", "skipped"))
        print("kit    %s: %s: %s" % (name, counts, "ok" if good else "FAILED"), flush=True)
        if good:
            report.count("kit", "ok")
        else:
            report.fail("kit", name, [*(got["why"][:6] or [counts]), *more])

    for n, (name, properties) in enumerate(ways):
        got = once(postgres.database(), os.path.join(folder, "kit%d" % n), path, **properties)
        judge(name, got, not got["failed"] and len(got["passed"]) == PASS and set(got["skipped"]) == OFF,
              ["switched off: %s" % " ".join(sorted(set(got["skipped"]) ^ OFF))])
    got = once(postgres.database(), os.path.join(folder, "names"), path, "more")
    judge("names with slashes, nested namespaces", got, not got["failed"] and NAMES <= set(got["passed"]),
          ["missing: %s" % " ".join(sorted(NAMES - set(got["passed"])))])
