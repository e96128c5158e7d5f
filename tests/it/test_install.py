"""What `make install` lays down: the list of files, units that systemd accepts, sockets and notices as the units say."""

import configparser
import glob
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

import pytest

import frazil
from support.daemon import Daemon, binary
from support.postgres import ROOT

ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("FRAZIL_", "MAKE")) and k not in ("MFLAGS", "DESTDIR", "PREFIX", "SAN", "FAULT", "CC", "V")}

# Becomes the program (second argument on) with the descriptors of the first as 3, 4 and so on.
STARTER = """import fcntl, os, sys
high = [fcntl.fcntl(int(f), fcntl.F_DUPFD, 100) for f in sys.argv[1].split(",")]
for i, f in enumerate(high):
    os.dup2(f, 3 + i)
    os.close(f)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""

FILES = {  # path below DESTDIR with PREFIX=/usr: mode
    "usr/bin/frazild": 0o755,
    "etc/frazil/frazild.ini": 0o644,
    "usr/lib/systemd/system/frazild.service": 0o644,
    "usr/lib/systemd/system/frazild.socket": 0o644,
    "usr/lib/systemd/system/frazild-rpc.socket": 0o644,
    "usr/lib/systemd/system/frazild-admin.socket": 0o644,
    "usr/lib/sysusers.d/frazil.conf": 0o644,
    "usr/lib/tmpfiles.d/frazil.conf": 0o644,
    "usr/share/man/man8/frazild.8": 0o644,
}


def run(*args, **kw):
    return subprocess.run(args, cwd=ROOT, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=ENV, timeout=300, **kw)


def make(target, dest, prefix="/usr"):
    """The files beside the binary under test; nothing is rebuilt for another compiler."""
    folder = os.path.relpath(os.path.dirname(binary()), ROOT)
    name = os.path.basename(folder)
    args = ["make", "--no-print-directory", "CC=" + name.split("-")[0], "B=" + folder]
    for san in ("address", "thread", "undefined"):
        if san in name:
            args.append("SAN=" + san)
    if "fault" in name:
        args.append("FAULT=1")
    done = run(*args, "DESTDIR=%s" % dest, "PREFIX=" + prefix, target)
    assert done.returncode == 0, done.stdout
    return done.stdout


def tree(top):
    return {os.path.relpath(os.path.join(folder, f), top): stat.S_IMODE(os.lstat(os.path.join(folder, f)).st_mode)
            for folder, _, files in os.walk(top) for f in files}


@pytest.fixture(scope="module")
def installed():
    top = tempfile.mkdtemp(prefix="frazil-install-")
    os.chmod(top, 0o755)
    make("install-daemon", top)
    yield top
    shutil.rmtree(top)


def unit(name):
    """Sections of a unit of the tree; of a key given twice the last value."""
    c = configparser.ConfigParser(strict=False, interpolation=None)
    c.optionxform = str
    c.read(os.path.join(ROOT, "systemd", name))
    return c


def test_files(installed):
    assert tree(installed) == FILES


def test_edited_configuration_is_kept(installed):
    ini = os.path.join(installed, "etc/frazil/frazild.ini")
    with open(ini) as f:
        shipped = f.read()
    try:
        with open(ini, "w") as f:
            f.write("[log]\nlevel = debug\n")
        make("install-daemon", installed)
        with open(ini) as f:
            assert f.read() == "[log]\nlevel = debug\n"
        with open(ini + ".new") as f:
            assert f.read() == shipped
    finally:
        with open(ini, "w") as f:
            f.write(shipped)
        if os.path.exists(ini + ".new"):
            os.remove(ini + ".new")


def test_other_prefix_and_uninstall(tmp_path):
    make("install-daemon", tmp_path, "/opt/frazil")
    text = (tmp_path / "opt/frazil/lib/systemd/system/frazild.service").read_text()
    assert "ExecStart=/opt/frazil/bin/frazild --config /etc/frazil/frazild.ini\n" in text
    make("uninstall-daemon", tmp_path, "/opt/frazil")
    assert set(tree(tmp_path)) == {"etc/frazil/frazild.ini"}


def test_configuration_is_accepted(installed):
    program, ini = os.path.join(installed, "usr/bin/frazild"), os.path.join(installed, "etc/frazil/frazild.ini")
    assert run(program, "--config", ini, "--check-config").returncode == 0
    shown = run(program, "--config", ini, "--print-config").stdout.splitlines()
    assert "location = file:///var/lib/frazil/warehouse" in shown
    assert "socket = /run/frazil/rpc.sock" in shown


# ---- systemd

needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@needs_systemd
def test_units_verify(installed):
    """The installed units in a root that has systemd's own; a warning is an error."""
    units = os.path.join(installed, "usr/lib/systemd/system")
    brought = []
    try:
        for where in ("/usr/lib/systemd/system", "/lib/systemd/system"):
            for path in glob.glob(where + "/*"):
                to = os.path.join(units, os.path.basename(path))
                if os.path.isfile(path) and not os.path.lexists(to):
                    shutil.copy(path, to)
                    brought.append(to)
        shell = os.path.join(installed, "bin/sh")
        os.mkdir(os.path.dirname(shell))
        shutil.copy("/bin/sh", shell)
        brought.append(shell)
        names = [os.path.join("/usr/lib/systemd/system", os.path.basename(p))
                 for p in glob.glob(os.path.join(ROOT, "systemd/*.s*et")) + [os.path.join(ROOT, "systemd/frazild.service")]]
        assert len(names) == 4
        done = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", "--root=" + installed, *names)
        assert (done.returncode, done.stdout) == (0, "")
        # The check can fail.
        path = os.path.join(units, "frazild.service")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace("NoNewPrivileges=yes", "NoNewPriviledges=yes"))
        try:
            assert "NoNewPriviledges" in run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                                             "--root=" + installed, names[-1]).stdout
        finally:
            with open(path, "w") as f:
                f.write(text)
    finally:
        for path in brought:
            os.remove(path)
        shutil.rmtree(os.path.join(installed, "bin"), ignore_errors=True)


@needs_systemd
def test_exposure_is_low():
    """At most 3.0 of 10."""
    path = os.path.join(ROOT, "systemd/frazild.service")
    done = run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=30", path)
    assert done.returncode == 0, done.stdout
    assert float(re.search(r"Overall exposure level for frazild.service: ([0-9.]+)", done.stdout).group(1)) <= 3.0


@pytest.mark.skipif(not shutil.which("systemd-sysusers"), reason="no systemd-sysusers")
def test_user(installed, tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group"):
        (tmp_path / "etc" / name).write_text("")
    done = run("systemd-sysusers", "--root=%s" % tmp_path, os.path.join(ROOT, "systemd/frazil.sysusers"))
    assert done.returncode == 0, done.stdout
    user = (tmp_path / "etc/passwd").read_text().split(":")
    assert user[0] == "frazil" and 0 < int(user[2]) < 1000 and user[5] == "/var/lib/frazil" and user[6].strip().endswith("nologin")
    assert (tmp_path / "etc/group").read_text().startswith("frazil:")


class Notices:
    """What the daemon tells systemd."""

    def __init__(self, folder):
        self.path = os.path.join(str(folder), "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.lines = []

    def until(self, line, seconds=60):
        end = time.monotonic() + seconds
        while line not in self.lines:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            self.lines += self.socket.recv(65536).decode().split("\n")


def test_sockets_readiness_and_watchdog(tmp_path, conninfo):
    """Started as frazild.service with frazild.socket starts it: three sockets under the names of the units."""
    names = {unit(os.path.basename(p))["Socket"]["FileDescriptorName"]: unit(os.path.basename(p))["Socket"]["ListenStream"]
             for p in glob.glob(os.path.join(ROOT, "systemd/*.socket"))}
    assert names == {"rest": "127.0.0.1:8181", "rpc": "127.0.0.1:8182", "admin": "127.0.0.1:8183"}
    assert unit("frazild.service")["Service"]["Type"] == "notify"
    held = {}
    for name in ("admin", "rest", "rpc"):
        held[name] = socket.create_server(("127.0.0.1", 0), backlog=64)
    notices = Notices(tmp_path)
    # What is configured is in use by others, so that only the sockets handed over can serve.
    daemon = Daemon(tmp_path / "d", conninfo, start=False, env={
        "LISTEN_FDS": "3", "LISTEN_FDNAMES": ":".join(held), "NOTIFY_SOCKET": notices.path, "WATCHDOG_USEC": "400000"})
    blockers = [socket.create_server(("127.0.0.1", port)) for port in (daemon.rest_port, daemon.rpc_port, daemon.admin_port)]
    # A connection before the start waits in the kernel and is served.
    early = socket.create_connection(held["rest"].getsockname())
    early.sendall(b"GET /v1/config HTTP/1.1\r\nHost: x\r\n\r\n")
    numbers = [s.fileno() for s in held.values()]
    with open(daemon.log_path, "ab") as log:
        process = subprocess.Popen([sys.executable, "-c", STARTER, ",".join(map(str, numbers)), *daemon.command()],
                                   pass_fds=numbers, env=daemon.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        notices.until("READY=1")
        early.settimeout(30)
        assert early.recv(65536).startswith(b"HTTP/1.1 200")
        for name, path, want in (("admin", "/readyz", b" 200 "), ("rest", "/v1/config", b" 200 ")):
            with socket.create_connection(held[name].getsockname()) as s:
                s.settimeout(30)
                s.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
                assert want in s.recv(65536)
        with frazil.Client("127.0.0.1:%d" % held["rpc"].getsockname()[1]):
            pass  # Hello was answered
        for _ in range(3):
            notices.lines.clear()
            notices.until("WATCHDOG=1", 10)
        process.send_signal(signal.SIGTERM)
        notices.until("STOPPING=1")
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for s in (*held.values(), *blockers, early, notices.socket):
            s.close()


def test_a_daemon_that_waits_has_started(tmp_path, make_daemon, postgres):
    """A standby, and one whose PostgreSQL is away: systemd hears READY=1 and why it does not serve; /readyz is false."""
    conninfo = postgres.database()
    first = make_daemon(conninfo)
    kinds = {"standby": (conninfo, "standby: another daemon serves this database"),
             "down": ("host=/nowhere user=frazil dbname=frazil", "PostgreSQL cannot be used")}
    for kind, (where, reason) in kinds.items():
        folder = tmp_path / kind
        folder.mkdir()
        notices = Notices(folder)
        with notices.socket:
            waiting = make_daemon(where, start=False, env={"NOTIFY_SOCKET": notices.path, "WATCHDOG_USEC": "400000"})
            waiting.spawn()
            notices.until("READY=1")
            notices.until("STATUS=" + reason)
            assert "STATUS=serving" not in notices.lines
            notices.until("WATCHDOG=1")
            got = waiting.admin.get("/readyz")
            assert (got.status, got.json) == (503, {"ready": False, "reason": reason})
            assert waiting.admin.get("/healthz").status == 200
            if kind == "standby":
                first.stop()
                notices.until("STATUS=serving")
                assert waiting.admin.get("/readyz").json == {"ready": True}
            waiting.stop()
            notices.until("STOPPING=1")
            assert notices.lines.count("READY=1") == 1


@pytest.mark.parametrize("wrong, message", [
    (lambda: socket.create_server(("0.0.0.0", 0)), "auth.allow-anonymous"),
    (lambda: socket.create_server(("::", 0), family=socket.AF_INET6), "auth.allow-anonymous"),
    (socket.socket, "not a listening stream socket"),
    (lambda: socket.socket(type=socket.SOCK_DGRAM), "not a listening stream socket"),
    (lambda: open("/dev/null"), "not a listening stream socket"),
])
@pytest.mark.parametrize("name", ["admin", "rest", "rpc"])
def test_sockets_obey_the_configuration(tmp_path, conninfo, name, wrong, message):
    """systemd's units are no way around the rule over addresses."""
    daemon = Daemon(tmp_path / "d", conninfo, start=False, env={"LISTEN_FDS": "1", "LISTEN_FDNAMES": name})
    with wrong() as held:
        done = subprocess.run([sys.executable, "-c", STARTER, str(held.fileno()), *daemon.command()], pass_fds=[held.fileno()],
                              env=daemon.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 1 and message in done.stdout, done.stdout


# ---- manual

def test_manual():
    """The page names every option and no key that is not there."""
    page = os.path.join(ROOT, "docs/frazild.8")
    with open(page) as f:
        text = f.read().replace("\\-", "-")
    for option in re.findall(r"^  (--[a-z-]+)", run(binary(), "--help").stdout, re.M):
        assert option in text, option
    with open(os.path.join(ROOT, "conf/conf.tbl")) as f:
        keys = set(re.findall(r'^CONF\(\w+, \w+, "([^"]+)"', f.read(), re.M))
    sections = {k.split(".")[0] for k in keys}
    named = {k for k in re.findall(r"\b([a-z]+\.[a-z-]+)\b", text) if k.split(".")[0] in sections}
    assert named and named <= keys | {"rpc.sock"}, named - keys
    if shutil.which("groff"):
        done = run("groff", "-man", "-ww", "-Tutf8", "-z", page)
        assert (done.returncode, done.stdout) == (0, "")


# ---- Debian package

def test_package_files():
    """The version is the daemon's; units in the package's scripts are those of the tree; each script stops at an error."""
    def text(*path):
        with open(os.path.join(ROOT, *path)) as f:
            return f.read()
    version = re.match(r"frazil \(([^)]+)\)", text("debian/changelog")).group(1)
    assert run(binary(), "--version").stdout.split()[1] == version
    units = sorted(os.listdir(os.path.join(ROOT, "systemd")))
    units = {u for u in units if u.endswith((".service", ".socket"))}
    for script in ("prerm", "postrm"):
        assert set(re.findall(r"[a-z-]+\.(?:service|socket)\b", text("debian/frazild." + script))) == units
    for script in ("postinst", "prerm", "postrm"):
        assert text("debian/frazild." + script).startswith("#!/bin/sh\nset -e\n")
        assert run("sh", "-n", "debian/frazild." + script).returncode == 0
    # What the build needs is what the set-up installs.
    wanted = re.search(r"^Build-Depends:(.*?)^\S", text("debian/control"), re.M | re.S).group(1)
    setup = text("scripts/setup.sh")
    for package in re.findall(r"[a-z0-9.+-]+", wanted):
        assert package in setup or package in ("dpkg-dev", "libcurl4-gnutls-dev"), package
