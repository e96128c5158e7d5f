"""The engines as the runner sees them: processes that answer requests (engines/worker.py)."""

import glob
import json
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# name: lock file, program, what it offers beside reading rows
ENGINES = {
    "spark": ("requirements-spark.txt", "spark_engine.py", {"lineage", "write"}),
    "duckdb": ("requirements.txt", "duckdb_engine.py", {"lineage", "write"}),
    "pyiceberg": ("requirements.txt", "pyiceberg_engine.py", set()),
    "polars": ("requirements.txt", "polars_engine.py", set()),
    "iceberg-rust": ("requirements-rust.txt", "rust_engine.py", set()),
}
SPARK_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def java_library(uri):
    import javalib
    version = re.search("<iceberg.version>([^<]+)", open(javalib.POM).read()).group(1)
    return [os.path.join(javalib.jdk(), "java"), "-Xmx1g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp", javalib.class_path(), "JavaEngine", uri, version], {}


# Clients that go through their flows (clients_suite.py) and read no other tables.
ALONE = {"iceberg-java": java_library}


class Cannot(Exception):
    """The engine says that it does not offer this."""


class EngineError(Exception):
    """The engine failed."""


def script(*args):
    return subprocess.run([os.path.join(ROOT, "scripts", args[0]), *args[1:]], check=True, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.strip()


def python_of(lock):
    return os.path.join(script("venv.sh", os.path.join(HERE, lock)), "bin/python")


def java_home():
    """Spark's client fails on Java 24 and later; the system's Java may be anything."""
    for pattern in ("/usr/lib/jvm/*17*", "/usr/lib/jvm/*21*"):
        for at in sorted(glob.glob(pattern)):
            if os.access(os.path.join(at, "bin/java"), os.X_OK):
                return at
    raise RuntimeError("no Java 17 or 21 below /usr/lib/jvm: run scripts/setup.sh interop")


class Engine:
    """Started at construction, answers when it is up: several start side by side."""

    def __init__(self, name, uri, log, command=None, offers=()):
        """command: (arguments, environment) of one that is not in the list, with what it offers."""
        self.name = name
        env = dict(os.environ)
        if command:
            args, more = command
            env.update(more)
            self.offers = set(offers)
        else:
            lock, program, self.offers = ENGINES[name]
            args = [python_of(lock), os.path.join(HERE, "engines", program), uri]
        if name == "spark":
            args += [glob.glob(os.path.join(script("jars.sh", SPARK_JAR), "*.jar"))[0]]
            env["JAVA_HOME"] = java_home()
        self.log = open(log, "ab")
        self.process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env,
                                        text=True, bufsize=1)
        self.log_path = log
        self.hello = None

    def ask(self, op, **request):
        try:
            self.process.stdin.write(json.dumps({"op": op, **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            with open(self.log_path, errors="replace") as f:
                raise EngineError("%s ended: %s" % (self.name, f.read()[-3000:]))
        got = json.loads(line)
        if "cannot" in got:
            raise Cannot(got["cannot"])
        if "error" in got:
            raise EngineError("%s: %s" % (self.name, got["error"]))
        return got["ok"]

    @property
    def version(self):
        if self.hello is None:
            self.hello = self.ask("hello")
        return self.hello["version"]

    def read(self, table, lineage=False, snapshot=None):
        return self.ask("read", table=table, lineage=lineage, snapshot=snapshot)["rows"]

    def read_many(self, reads):
        """[(table, lineage, ref, snapshot)]: for each its rows, or the Cannot or EngineError that it met."""
        got = self.ask("read_many", reads=[
            {"table": t, "lineage": lineage, "ref": ref, "snapshot": snapshot} for t, lineage, ref, snapshot in reads])
        return [x["ok"]["rows"] if "ok" in x else Cannot(x["cannot"]) if "cannot" in x else EngineError(x["error"])
                for x in got]

    def sql(self, *texts):
        """Runs statements; the rows of the last."""
        rows = []
        for text in texts:
            rows = self.ask("sql", text=text)["rows"]
        return rows

    def run(self, text):
        return self.ask("run", text=text)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
