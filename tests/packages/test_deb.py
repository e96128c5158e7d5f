"""The Debian package in a fresh Debian with systemd and PostgreSQL: installed, run, upgraded, removed. The tests go in order."""

import json
import os
import re
import shutil
import stat
import time

import pytest

import debian

pytestmark = pytest.mark.skipif(not debian.may_contain(), reason=debian.MAY_NOT)

SERVICE = "frazild.service"
SOCKETS = ("frazild.socket", "frazild-rpc.socket", "frazild-admin.socket")


@pytest.fixture(scope="module")
def root():
    r = debian.Root()
    try:
        r.run("sh", "-c", "apt-get update -qq && %s postgresql systemd-sysv dbus curl" % " ".join(debian.APT))
        r.before = r.files()
        shutil.copy(debian.package(), r.path("mnt/frazild.deb"))
        r.run(*debian.APT, "/mnt/frazild.deb")
        os.remove(r.path("usr/sbin/policy-rc.d"))
        r.before.discard("usr/sbin/policy-rc.d")
        r.boot()
        yield r
    finally:
        r.remove()


def show(root, name, unit=SERVICE):
    return root.out("systemctl", "show", "-P", name, unit)


def ready(root):
    return root.until("curl", "-sf", "-m", "5", "http://127.0.0.1:8183/readyz")


def rest(root, method, path, value=None):
    """Status and JSON of a REST call inside."""
    args = ["curl", "-s", "-m", "20", "-X", method, "-w", "\n%{http_code}", "http://127.0.0.1:8181" + path]
    if value is not None:
        args += ["-H", "Content-Type: application/json", "-d", json.dumps(value)]
    body, status = root.out(*args).rsplit("\n", 1)
    return int(status), json.loads(body or "null")


def test_installed(root):
    version = root.out("dpkg-query", "-W", "-f", "${Version}", "frazild")
    assert root.out("frazild", "--version") == "frazild " + version
    root.run("runuser", "-u", "frazil", "--", "frazild", "--config", "/etc/frazil/frazild.ini", "--check-config")
    assert root.out("dpkg", "--verify", "frazild") == ""
    assert re.fullmatch(r"frazil:x:\d+:\d+:.*:/var/lib/frazil:/usr/sbin/nologin", root.out("getent", "passwd", "frazil"))
    assert root.out("stat", "-c", "%U:%G:%a", "/var/lib/frazil/warehouse") == "frazil:frazil:2770"
    # A first installation starts and enables nothing.
    for unit in (SERVICE, *SOCKETS):
        assert show(root, "ActiveState", unit) == "inactive"
        assert show(root, "UnitFileState", unit) == "disabled"
    assert root.out("systemd-analyze", "verify", "--man=no", SERVICE, *SOCKETS) == ""


def test_runs(root):
    """The commands of the README; then a table is made and its metadata lies in the warehouse."""
    root.run("runuser", "-u", "postgres", "--", "createuser", "frazil")
    root.run("runuser", "-u", "postgres", "--", "createdb", "-O", "frazil", "-E", "UTF8", "-T", "template0", "frazil")
    root.run("systemctl", "enable", "--now", "frazild")
    assert (show(root, "ActiveState"), show(root, "SubState"), show(root, "StatusText")) == ("active", "running", "serving")
    # It was told to be ready only when it is.
    assert rest(root, "GET", "/v1/config")[0] == 200
    ready(root)
    root.run("frazilctl", "check")
    assert root.out("stat", "-c", "%U:%G", "/proc/" + show(root, "MainPID")) == "frazil:frazil"
    assert root.out("stat", "-c", "%U:%G:%a", "/run/frazil/rpc.sock") == "frazil:frazil:660"
    assert rest(root, "POST", "/v1/namespaces", {"namespace": ["ns"], "properties": {}})[0] == 200
    status, table = rest(root, "POST", "/v1/namespaces/ns/tables", {
        "name": "t", "properties": {"format-version": "3"}, "schema": {
            "type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}})
    assert status == 200, table
    path = table["metadata-location"]
    assert path.startswith("file:///var/lib/frazil/warehouse/")
    made = os.lstat(root.path(path[len("file://"):]))
    folder = os.lstat(root.path("/var/lib/frazil/warehouse"))
    assert (made.st_uid, made.st_gid) == (folder.st_uid, folder.st_gid)
    assert stat.S_IMODE(made.st_mode) & 0o007 == 0
    log = root.out("journalctl", "-u", "frazild", "-o", "cat")
    assert "ev=app.limited" not in log and not re.search(r"level=(warn|error)", log), log


def test_confined(root):
    """No capability, no new privileges, a filter of system calls, nothing writable but its own folders."""
    pid = show(root, "MainPID")
    status = dict(line.split(":\t", 1) for line in root.out("cat", "/proc/%s/status" % pid).splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    mounts = [line.split() for line in root.out("cat", "/proc/%s/mounts" % pid).splitlines()]
    options = {m[1]: m[3].split(",") for m in mounts}
    assert "ro" in options["/"] and "rw" in options["/var/lib/frazil"] and "rw" in options["/run/frazil"]


def test_without_postgresql(root):
    """A restart does not hang where there is no PostgreSQL, and the daemon serves when it comes."""
    version = root.out("sh", "-c", "ls /usr/lib/postgresql")
    root.run("systemctl", "stop", "postgresql@%s-main" % version)
    try:
        root.run("systemctl", "restart", "frazild", timeout=60)
        assert (show(root, "ActiveState"), show(root, "StatusText")) == ("active", "PostgreSQL cannot be used")
        assert root.run("curl", "-sf", "http://127.0.0.1:8183/readyz", check=False).returncode != 0
    finally:
        root.run("systemctl", "start", "postgresql@%s-main" % version)
    ready(root)
    root.until("sh", "-c", "[ \"$(systemctl show -P StatusText frazild)\" = serving ]")


def test_reload(root):
    root.run("systemctl", "reload", "frazild")
    root.until("sh", "-c", "[ \"$(systemctl show -P StatusText frazild)\" = 'serving, reloaded' ]")


def test_watchdog(root):
    """A daemon that hangs is ended and started again, and knows its tables."""
    root.write("etc/systemd/system/frazild.service.d/test.conf", "[Service]\nWatchdogSec=2s\nRestartSec=100ms\nWatchdogSignal=SIGKILL\n")
    try:
        root.run("systemctl", "daemon-reload")
        root.run("systemctl", "restart", "frazild")
        pid = show(root, "MainPID")
        time.sleep(3)
        assert show(root, "MainPID") == pid, "ended although it was fed"
        root.run("sh", "-c", "kill -STOP " + pid)
        root.until("sh", "-c", "[ \"$(systemctl show -P NRestarts frazild)\" -ge 1 ]")
        ready(root)
        assert show(root, "MainPID") != pid
        assert rest(root, "GET", "/v1/namespaces/ns/tables/t")[0] == 200
        assert "watchdog" in root.out("journalctl", "-u", "frazild", "-o", "cat")
    finally:
        shutil.rmtree(root.path("etc/systemd/system/frazild.service.d"))
        root.run("systemctl", "daemon-reload")


def test_wrong_configuration_is_not_retried(root):
    ini = root.path("etc/frazil/frazild.ini")
    with open(ini) as f:
        shipped = f.read()
    try:
        with open(ini, "a") as f:
            f.write("\n[nope]\nkey = 1\n")
        assert root.run("systemctl", "restart", "frazild", check=False).returncode != 0
        time.sleep(3)
        assert (show(root, "ActiveState"), show(root, "ExecMainStatus"), show(root, "NRestarts")) == ("failed", "2", "0")
        assert "frazild.ini" in root.out("journalctl", "-u", "frazild", "-o", "cat", "-n", "10")
    finally:
        with open(ini, "w") as f:
            f.write(shipped)
    root.run("systemctl", "restart", "frazild")


def test_sockets(root):
    """systemd holds the sockets: a first connection starts the daemon, and a restart refuses none."""
    root.run("systemctl", "stop", "frazild")
    root.run("systemctl", "enable", "--now", "frazild.socket")
    for unit in SOCKETS:
        assert show(root, "ActiveState", unit) == "active"
        assert show(root, "UnitFileState", unit) == "enabled"
    assert show(root, "ActiveState") == "inactive"
    assert rest(root, "GET", "/v1/namespaces/ns/tables/t")[0] == 200
    assert show(root, "ActiveState") == "active"
    pid = show(root, "MainPID")
    root.run("sh", "-c", """systemctl --no-block restart frazild
        while [ "$(systemctl show -P MainPID frazild)" = %s ]; do curl -sf -m 30 -o /dev/null http://127.0.0.1:8181/v1/config || exit 1; done
        curl -sf -m 30 -o /dev/null http://127.0.0.1:8181/v1/config""" % pid)
    ready(root)
    # All three are systemd's: the daemon closed none of its own.
    owners = root.out("sh", "-c", "for f in /proc/1/fd/*; do readlink $f; done")
    for port in (8181, 8182, 8183):
        lines = [x.split() for x in root.out("cat", "/proc/net/tcp").splitlines() if x.split()[1].endswith(":%04X" % port)]
        listening = [x for x in lines if x[3] == "0A"]
        assert len(listening) == 1 and "socket:[%s]" % listening[0][9] in owners, port


def test_upgrade(root):
    """The same package again: an edited configuration stays, a running daemon is taken along."""
    ini = root.path("etc/frazil/frazild.ini")
    with open(ini, "a") as f:
        f.write("\n# edited\n")
    pid = show(root, "MainPID")
    root.run("dpkg", "-i", "/mnt/frazild.deb")
    with open(ini) as f:
        assert f.read().endswith("# edited\n")
    assert show(root, "MainPID") not in (pid, "0")
    ready(root)
    assert rest(root, "GET", "/v1/namespaces/ns/tables/t")[0] == 200


def test_removed(root):
    root.run("apt-get", "remove", "-y", "-qq", "frazild")
    for unit in (SERVICE, *SOCKETS):
        assert root.run("systemctl", "is-active", unit, check=False).returncode != 0
    assert not os.path.exists(root.path("usr/bin/frazild"))
    assert os.path.exists(root.path("etc/frazil/frazild.ini"))
    root.run("apt-get", "purge", "-y", "-qq", "frazild")
    left = {p for p in root.files() - root.before}
    # Tables are kept; nothing else is. Libraries and the user belong to the system.
    assert {p for p in left if "frazil" in p and not p.startswith("var/lib/frazil")} == set()
    assert any(p.endswith(".metadata.json") for p in left)
    # With no tables the folders go too.
    shutil.rmtree(root.path("var/lib/frazil/warehouse/"))
    os.mkdir(root.path("var/lib/frazil/warehouse"))
    shutil.copy(debian.package(), root.path("mnt/frazild.deb"))
    root.run("dpkg", "-i", "/mnt/frazild.deb")
    root.run("dpkg", "--purge", "frazild")
    assert not os.path.exists(root.path("var/lib/frazil"))
    assert root.out("systemctl", "list-unit-files", "frazild*", "--no-legend", check=False) == ""
