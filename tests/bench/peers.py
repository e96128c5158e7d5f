"""The Java library's own commits beside ours: Iceberg's REST test server on its JdbcCatalog, and the
JdbcCatalog in the client itself, both in the PostgreSQL cluster that the daemon uses."""

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

from support.daemon import die_with_parent, free_ports
from support.postgres import ROOT

HERE = os.path.join(ROOT, "tests/bench/java")
VERSION = re.search(r"<iceberg.version>([^<]+)", open(os.path.join(HERE, "pom.xml")).read()).group(1)


def home():
    """A JDK 17 or 21: the library's Hadoop classes fail on 24 and later."""
    for pattern in ("/usr/lib/jvm/*17*", "/usr/lib/jvm/*21*"):
        for at in sorted(glob.glob(pattern)):
            if os.access(os.path.join(at, "bin/javac"), os.X_OK):
                return at
    raise RuntimeError("no JDK 17 or 21 below /usr/lib/jvm: run scripts/setup.sh bench")


def class_path():
    """Archives and our classes, compiled when the sources have changed."""
    jars = subprocess.run([os.path.join(ROOT, "scripts/jars.sh"), os.path.join(HERE, "pom.xml")], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.strip()
    sources = sorted(glob.glob(os.path.join(HERE, "*.java")))
    digest = hashlib.sha256(b"".join(open(s, "rb").read() for s in sources)).hexdigest()[:16]
    classes = os.path.join(ROOT, "build/bench/java-" + digest)
    if not os.path.isdir(classes):
        shutil.rmtree(classes + ".new", ignore_errors=True)
        subprocess.run([os.path.join(home(), "bin/javac"), "-nowarn", "-d", classes + ".new", "-cp", jars + "/*", *sources],
                       check=True)
        os.rename(classes + ".new", classes)
    return classes + ":" + jars + "/*"


def jdbc_uri(conninfo):
    """The same unix socket as the daemon's."""
    part = dict(re.findall(r"(\w+)=(\S+)", conninfo))
    return ("jdbc:postgresql://localhost/%s?sslMode=disable&socketFactory=org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg"
            "&socketFactoryArg=%s/.s.PGSQL.%s" % (part["dbname"], part["host"], part["port"])), part["user"]


def java(main, args, properties, heap="1g", **kw):
    command = [os.path.join(home(), "bin/java"), "-Xmx" + heap, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    command += ["-D%s=%s" % kv for kv in properties.items()]
    return subprocess.Popen(command + ["-cp", class_path(), main, *map(str, args)], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, preexec_fn=die_with_parent, **kw)


class Peer:
    """What a client is given to reach a catalog."""

    def __init__(self, name, properties, process=None):
        self.name, self.properties, self.process = name, properties, process

    def run(self, what, clients, n, warmup, delay=0):
        """append: n seconds; race: n rounds. The lines that Peers prints."""
        p = java("Peers", [what, clients, n, warmup],
                 {**self.properties, "put-delay-ms": delay, "rest-metrics-reporting-enabled": "false"},
                 heap="2g", stderr=subprocess.PIPE)
        out, err = p.communicate(timeout=600)
        if p.returncode:
            raise RuntimeError("%s: %s" % (self.name, err[-2000:]))
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process.stdout.close()


def rest(name, uri):
    return Peer(name, {"type": "rest", "uri": uri, "io-impl": "LocalFiles"})


def jdbc(conninfo, folder):
    uri, user = jdbc_uri(conninfo)
    os.makedirs(folder, exist_ok=True)
    return Peer("JdbcCatalog", {
        "type": "jdbc", "uri": uri, "jdbc.user": user, "jdbc.password": "x", "jdbc.schema-version": "V1", "clients": 1,
        "warehouse": "file://" + folder, "io-impl": "LocalFiles"})


def fixture(conninfo, folder, delay=0):
    """Iceberg's REST test server with 8 connections."""
    uri, user = jdbc_uri(conninfo)
    os.makedirs(folder, exist_ok=True)
    port = free_ports(1)[0]
    process = java("org.apache.iceberg.rest.RESTCatalogServer", [], {"put-delay-ms": delay}, stderr=subprocess.DEVNULL, env={
        **os.environ, "CATALOG_REST_PORT": str(port), "CATALOG_WAREHOUSE": "file://" + folder, "CATALOG_URI": uri,
        "CATALOG_JDBC_USER": user, "CATALOG_JDBC_PASSWORD": "x", "CATALOG_CLIENTS": "8", "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_IO__IMPL": "LocalFiles"})
    peer = rest("REST test server", "http://127.0.0.1:%d" % port)
    peer.process = process
    for _ in range(1200):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/v1/config" % port, timeout=5).close()
            return peer
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("the REST test server ended with %d" % process.returncode) from None
            time.sleep(0.1)
    peer.close()
    raise RuntimeError("the REST test server does not answer")
