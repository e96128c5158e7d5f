"""store/pg against a real server: connections, migrations, and every durable step with its guard.

The work is done by build/.../it/pgtest; this starts servers and gets in its way."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

from support.postgres import ROOT


@pytest.fixture(scope="session")
def pgtest():
    """Built with sanitizers, so that a leak or a bad access fails the test."""
    subprocess.run(["make", "--no-print-directory", "SAN=address", "build/gcc-address/it/pgtest"],
                   cwd=ROOT, check=True, stdin=subprocess.DEVNULL,
                   env={**os.environ, "CC": "ccache gcc" if os.path.exists("/usr/bin/ccache") else "gcc"})
    return os.path.join(ROOT, "build/gcc-address/it/pgtest")


@pytest.fixture
def database(postgres):
    return postgres.database()


def start(pgtest, *args):
    return subprocess.Popen([pgtest, *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process, seconds=120):
    out, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, out
    assert "FAILED" not in out, out
    return out


def run(pgtest, *args):
    return finish(start(pgtest, *args))


def sql(postgres, conninfo, text):
    name = dict(word.split("=", 1) for word in conninfo.split())["dbname"]
    return postgres.run("psql", "-d", name, "-AtXqc", text)


def test_migrations_twice_and_concurrently(pgtest, postgres, database):
    """case BC-179"""
    processes = [start(pgtest, database, "migrate") for _ in range(4)]
    for p in processes:
        finish(p)
    first = sql(postgres, database, "SELECT version, encode(secret, 'hex') FROM frazil.schema_info")
    run(pgtest, database, "migrate")
    again = sql(postgres, database, "SELECT version, encode(secret, 'hex') FROM frazil.schema_info")
    assert first == again
    version, secret = first.split("|")
    newest = max(int(n[:4]) for n in os.listdir(os.path.join(ROOT, "store/pg/migrations")))
    assert int(version) == newest
    assert len(secret) == 64 and len(set(secret)) > 4


def test_a_binary_too_old_is_refused(pgtest, postgres, database):
    run(pgtest, database, "migrate")
    sql(postgres, database, "UPDATE frazil.schema_info SET version = 9999, min_binary = 9999")
    out = run(pgtest, database, "wait", 10)
    assert "state down" in out and "newer release" in out
    sql(postgres, database, "UPDATE frazil.schema_info SET min_binary = 1")
    assert "state up" in run(pgtest, database, "up")


def test_effects(pgtest, database):
    run(pgtest, database, "effects")


def test_several_tables(pgtest, database):
    run(pgtest, database, "tables")


def test_the_model_and_the_server_agree(database):
    """Effects of simulated runs, crashes and lost replies included, executed on both."""
    env = {**os.environ, "CC": "ccache gcc" if os.path.exists("/usr/bin/ccache") else "gcc"}
    subprocess.run(["make", "--no-print-directory", "SAN=address", "build/gcc-address/it/pgreplay"],
                   cwd=ROOT, check=True, stdin=subprocess.DEVNULL, env=env)
    # The simulator ends with its world in memory.
    done = subprocess.run([os.path.join(ROOT, "build/gcc-address/it/pgreplay"), database, "1", "18"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=240, env={**env, "ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout


def test_catalog(pgtest, database):
    run(pgtest, database, "catalog")


def test_idempotency_keys(pgtest, database):
    run(pgtest, database, "idem")


def test_second_daemon_is_a_standby(pgtest, database):
    first = start(pgtest, database, "up", 2500)
    time.sleep(1.0)
    out = run(pgtest, database, "up")
    assert out.index("state standby") < out.index("state up")
    finish(first)


def test_a_stopped_daemon_wakes_up_fenced(pgtest, postgres, database):
    old = start(pgtest, database, "old")
    for line in old.stdout:
        if line.startswith("ready"):
            break
    old.send_signal(signal.SIGSTOP)
    try:
        ended = sql(postgres, database, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE application_name = 'frazild control' AND datname = current_database()")
        assert ended == "1"
        run(pgtest, database, "new")
    finally:
        old.send_signal(signal.SIGCONT)
    finish(old)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_careless_server_is_refused(pgtest, postgres, database, setting):
    postgres.run("psql", "-d", "postgres", "-qc", "ALTER SYSTEM SET %s = off" % setting)
    postgres.run("psql", "-d", "postgres", "-qc", "SELECT pg_reload_conf()")
    time.sleep(0.5)
    try:
        out = run(pgtest, database, "wait", 10)
        assert "state down %s is off" % setting in out
    finally:
        postgres.run("psql", "-d", "postgres", "-qc", "ALTER SYSTEM RESET %s" % setting)
        postgres.run("psql", "-d", "postgres", "-qc", "SELECT pg_reload_conf()")
        time.sleep(0.5)
    assert "state up" in run(pgtest, database, "up")


def test_races(pgtest, database):
    run(pgtest, database, "races")


def test_a_cancelled_wait_for_a_standby_is_unknown(pgtest, postgres, database):
    try:
        run(pgtest, database, "standby")
    finally:
        postgres.run("psql", "-d", "postgres", "-qc", "SET synchronous_commit = local",
                     "-c", "ALTER SYSTEM RESET synchronous_standby_names")
        postgres.run("psql", "-d", "postgres", "-qc", "SELECT pg_reload_conf()")


def test_opposite_orders_never_deadlock(pgtest, postgres, database):
    run(pgtest, database, "migrate")
    storms = [start(pgtest, database, "storm", seed) for seed in (1, 2, 3)]
    for p in storms:
        finish(p)
    # Every open transaction's paths are its own, and only its own.
    assert sql(postgres, database, "SELECT count(*) FROM frazil.object o JOIN frazil.txn t"
               " ON t.txn = o.owner WHERE o.state = 0 AND t.state > 1") == "0"
    assert sql(postgres, database, "SELECT deadlocks FROM pg_stat_database"
               " WHERE datname = current_database()") == "0"


def test_the_server_restarts_underneath(pgtest, postgres, database):
    p = start(pgtest, database, "restart")
    for line in p.stdout:
        if line.startswith("ready"):
            break
    time.sleep(1.5)
    postgres.crash()
    time.sleep(0.5)
    postgres.start()
    finish(p)


def test_a_name_is_looked_up_on_the_way(pgtest):
    out = run(pgtest, "host=no-such-host.invalid dbname=x user=x", "wait", 10)
    assert "state down" in out and "cannot be resolved" in out
    # A name that is there, but nobody listens: the address was tried.
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        out = run(pgtest, "host=localhost port=%d dbname=x user=x" % free.getsockname()[1], "wait", 10)
    assert "state down" in out and "refused" in out


class Swallower:
    """A proxy that forwards everything until a client's bytes hold `word`; then it forwards these
    too, waits for the server's answer, keeps it and cuts the connection. Once."""

    def __init__(self, conninfo, word):
        words = dict(w.split("=", 1) for w in conninfo.split())
        self.target = os.path.join(words["host"], ".s.PGSQL." + words["port"])
        self.word = word
        self.swallowed = 0
        self.folder = tempfile.mkdtemp(prefix="frazil-proxy-", dir="/var/tmp")
        words["host"] = self.folder
        self.conninfo = " ".join("%s=%s" % w for w in words.items())
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(os.path.join(self.folder, ".s.PGSQL." + words["port"]))
        self.server.listen(32)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            up = socket.socket(socket.AF_UNIX)
            up.connect(self.target)
            state = {"cut": False}
            threading.Thread(target=self.forward, args=(client, up, state), daemon=True).start()
            threading.Thread(target=self.back, args=(up, client, state), daemon=True).start()

    def forward(self, client, up, state):
        try:
            while data := client.recv(65536):
                # A Bind names the prepared statement behind an empty portal name.
                if self.word in data and not self.swallowed:
                    self.swallowed += 1
                    state["cut"] = True
                up.sendall(data)
        except OSError:
            pass

    def back(self, up, client, state):
        try:
            while data := up.recv(65536):
                if state["cut"]:
                    time.sleep(0.2)
                    break
                client.sendall(data)
        except OSError:
            pass
        for s in (client, up):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def test_a_lost_answer_is_found_again(pgtest, postgres, database):
    """case BC-130"""
    run(pgtest, database, "migrate")
    proxy = Swallower(database, b"\0PUBLISH\0")
    try:
        run(pgtest, proxy.conninfo, "lost")
        assert proxy.swallowed == 1
    finally:
        proxy.close()
