"""`make run` as a user sees it: demonstrates, serves, stops what it started, knows whose port it is."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from support.daemon import free_ports
from support.postgres import ROOT


@pytest.fixture(scope="module")
def environment():
    """A data root and ports of this module's own."""
    top = tempfile.mkdtemp(prefix="frazil-run-", dir="/var/tmp")
    os.chmod(top, 0o711)
    rest, rpc, admin = free_ports(3)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FRAZIL_", "MAKE"))}
    env.update(FRAZIL_VAR=top, FRAZIL_REST_LISTEN="127.0.0.1:%d" % rest, FRAZIL_RPC_LISTEN="127.0.0.1:%d" % rpc,
               FRAZIL_ADMIN_LISTEN="127.0.0.1:%d" % admin, CC="gcc")
    yield env
    subprocess.run([os.path.join(ROOT, "scripts/pg.sh"), "stop"], env=env, stdout=subprocess.DEVNULL)
    shutil.rmtree(top, ignore_errors=True)


def make_run(env, **more):
    return subprocess.run(["make", "-s", "-C", ROOT, "run"], env={**env, **more}, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)


def port(env, which):
    return int(env["FRAZIL_%s_LISTEN" % which].rpartition(":")[2])


def is_open(number):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", number)) == 0


def stopped(env):
    status = subprocess.run([os.path.join(ROOT, "scripts/pg.sh"), "status"], env=env, stdout=subprocess.DEVNULL).returncode
    return status == 3 and not any(is_open(port(env, w)) for w in ("REST", "RPC", "ADMIN"))


def test_twice_with_once(environment):
    for _ in range(2):
        got = make_run(environment, ONCE="1")
        assert got.returncode == 0, got.stdout
        assert ": agrees" in got.stdout and "curl -s http://127.0.0.1:%d" % port(environment, "REST") in got.stdout
        assert stopped(environment)


def test_serves_until_interrupted(environment):
    log = tempfile.TemporaryFile("w+")
    first = subprocess.Popen(["make", "-s", "-C", ROOT, "run"], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log, start_new_session=True, text=True)
    try:
        end = time.monotonic() + 200
        while True:
            log.seek(0)
            text = log.read()
            if "Ctrl-C stops" in text:
                break
            assert first.poll() is None and time.monotonic() < end, text
            time.sleep(0.2)
        second = make_run(environment)
        assert second.returncode == 0, second.stdout
        assert "demonstrating against it" in second.stdout and ": agrees" in second.stdout
        assert is_open(port(environment, "REST"))
    finally:
        os.killpg(first.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
        first.wait(60)
        log.close()
    assert stopped(environment)


@pytest.mark.parametrize("which", ["REST", "RPC", "ADMIN"])
def test_port_of_another_program_is_named(environment, which):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", port(environment, which)))
        s.listen()
        got = make_run(environment, ONCE="1")
    assert got.returncode != 0
    assert "port %d belongs to another program: \"" % port(environment, which) in got.stdout, got.stdout
    assert "pid=%d" % os.getpid() in got.stdout
    assert stopped(environment)
