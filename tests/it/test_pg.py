"""store/pg against a real server: connections, migrations, and every durable step with its guard.

The work is done by build/.../it/pgtest; this starts servers and gets in its way."""

import os
import subprocess
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


def test_catalog(pgtest, database):
    run(pgtest, database, "catalog")


def test_second_daemon_is_a_standby(pgtest, database):
    first = start(pgtest, database, "up", 2500)
    time.sleep(1.0)
    out = run(pgtest, database, "up")
    assert out.index("state standby") < out.index("state up")
    finish(first)


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
