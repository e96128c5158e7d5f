"""The set-up scripts on the machines that break such scripts: odd folders, no root, missing packages."""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile

import pytest

from support.postgres import ROOT

ENV = {k: v for k, v in os.environ.items() if not k.startswith("FRAZIL_")}


def run(folder, *args, env=None, **kw):
    return subprocess.run(args, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env or ENV, timeout=120, **kw)


@pytest.fixture
def clone():
    """clone(name): the scripts in a new folder of that name; data that they make elsewhere is removed."""
    made = []

    def make(name, base="/var/tmp", mode=0o755):
        top = tempfile.mkdtemp(prefix="frazil-scripts-", dir=base)
        os.chmod(top, mode)
        made.append(top)
        folder = os.path.join(top, name)
        os.makedirs(folder)
        shutil.copytree(os.path.join(ROOT, "scripts"), os.path.join(folder, "scripts"))
        return folder

    yield make
    for top in made:
        for folder, subs, _ in os.walk(top):
            if os.path.exists(os.path.join(folder, "scripts/pg.sh")):
                run(folder, "scripts/pg.sh", "stop")
            var = os.path.join(folder, "var")
            if os.path.islink(var) and os.readlink(var).startswith("/var/tmp/frazil-"):
                shutil.rmtree(os.readlink(var), ignore_errors=True)
        shutil.rmtree(top, ignore_errors=True)


def works(folder):
    got = run(folder, "scripts/pg.sh", "start")
    assert got.returncode == 0, got
    got = run(folder, "scripts/pg.sh", "psql", "-d", "frazil", "-Atc",
              "select current_setting('listen_addresses') || '/' || current_setting('server_encoding') || '/' || "
              "current_setting('fsync')")
    assert got.stdout == "/UTF8/on\n", got
    # Starting what runs is no error, and stopping twice neither.
    for word in ("start", "status", "stop", "stop"):
        assert run(folder, "scripts/pg.sh", word).returncode == 0
    assert run(folder, "scripts/pg.sh", "status").returncode == 3


def test_plain_folder(clone):
    folder = clone("plain")
    works(folder)
    assert stat.S_ISDIR(os.lstat(os.path.join(folder, "var")).st_mode)


def test_server_does_not_run_as_root(clone):
    folder = clone("who")
    assert run(folder, "scripts/pg.sh", "start").returncode == 0
    owner = os.stat(os.path.join(folder, "var/pg/data")).st_uid
    assert owner == (pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else os.getuid())
    assert stat.S_IMODE(os.stat(os.path.join(folder, "var/pg")).st_mode) == 0o700


@pytest.mark.parametrize("name", ["a space", "x" * 90, "quote'"])
def test_folder_that_cannot_hold_it(clone, name):
    folder = clone(name)
    works(folder)
    var = os.path.join(folder, "var")
    assert os.path.islink(var)
    assert os.readlink(var).startswith("/var/tmp/frazil-%d-" % os.getuid())


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")
def test_folder_closed_to_postgres(clone):
    folder = clone("closed", mode=0o700)
    works(folder)
    assert os.path.islink(os.path.join(folder, "var"))


def test_copied_clone_gets_its_own_data(clone):
    folder = clone("first copy")
    assert run(folder, "scripts/pg.sh", "start").returncode == 0
    second = clone("second copy")
    os.symlink(os.readlink(os.path.join(folder, "var")), os.path.join(second, "var"))
    assert run(second, "scripts/pg.sh", "status").returncode == 3
    assert os.readlink(os.path.join(second, "var")) != os.readlink(os.path.join(folder, "var"))


def test_var_that_is_in_the_way(clone):
    folder = clone("in the way")
    os.makedirs(os.path.join(folder, "var/precious"))
    got = run(folder, "scripts/pg.sh", "start")
    assert got.returncode == 2 and "move it away" in got.stderr
    assert os.path.isdir(os.path.join(folder, "var/precious"))


def test_given_data_root(clone):
    folder = clone("given")
    with tempfile.TemporaryDirectory(prefix="frazil-scripts-", dir="/var/tmp") as top:
        os.chmod(top, 0o755)
        env = {**ENV, "FRAZIL_VAR": top + "/data"}
        assert run(folder, "scripts/pg.sh", "start", env=env).returncode == 0
        assert run(folder, "scripts/pg.sh", "stop", env=env).returncode == 0
        assert os.path.exists(top + "/data/pg/data/PG_VERSION")
        assert not os.path.lexists(os.path.join(folder, "var"))
        for bad in (top + "/a b", top + "/" + "x" * 90):
            assert run(folder, "scripts/pg.sh", "start", env={**ENV, "FRAZIL_VAR": bad}).returncode == 2


def test_set_up_comes_before_the_data_root(clone):
    """The choice of the data root asks what the user postgres can enter: chosen before the set-up made
    that user, the first run put its data where no later run looked."""
    folder = clone("order")
    with open(os.path.join(folder, "scripts/setup.sh"), "w") as f:
        f.write("#!/bin/sh\ntest ! -e var && test ! -L var && echo FIRST\nexit 7\n")
    env = {**ENV, "FRAZIL_REST_LISTEN": "127.0.0.1:1"}
    got = run(folder, "scripts/run.sh", env=env)
    assert got.returncode == 7 and "FIRST" in got.stdout
    assert not os.path.lexists(os.path.join(folder, "var"))


def test_missing_packages_without_root(clone):
    """Nobody asks for a password: the exact command is printed, and nothing was started."""
    folder = clone("bare")
    tools = os.path.join(folder, "tools")
    os.mkdir(tools)
    for name, text in (("dpkg-query", "exit 1"), ("sudo", "exit 1"), ("id", "echo 1000"), ("apt-get", "echo RAN; exit 1")):
        path = os.path.join(tools, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n%s\n" % text)
        os.chmod(path, 0o755)
    got = run(folder, "scripts/setup.sh", "test", env={**ENV, "PATH": tools + ":" + ENV["PATH"]})
    assert got.returncode == 2
    assert "sudo sh -c '" in got.stderr and "libmicrohttpd-dev" in got.stderr and "RAN" not in got.stdout


def test_environment_is_made_once(clone):
    folder = clone("env")
    lock = os.path.join(folder, "lock.txt")
    with open(lock, "w") as f:
        f.write("# no packages\n")
    env = {**ENV, "FRAZIL_CACHE": os.path.join(folder, "cache")}
    first = run(folder, "scripts/venv.sh", "lock.txt", env=env)
    assert first.returncode == 0, first
    python = os.path.join(first.stdout.strip(), "bin/python")
    got = run(folder, python, "-c", "import sys; print(sys.prefix)")
    assert got.stdout.strip() == first.stdout.strip()
    again = run(folder, "scripts/venv.sh", "lock.txt", env=env)
    assert again.stdout == first.stdout and "set-up" not in again.stderr
    # What an interrupted set-up left is made anew.
    os.remove(os.path.join(first.stdout.strip(), "complete"))
    third = run(folder, "scripts/venv.sh", "lock.txt", env=env)
    assert third.returncode == 0 and "set-up" in third.stderr
    with open(lock, "a") as f:
        f.write("# another\n")
    assert run(folder, "scripts/venv.sh", "lock.txt", env=env).stdout != first.stdout
