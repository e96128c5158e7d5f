"""A fresh Debian root from FRAZIL_DEBIAN (a tar of mmdebstrap), installed into and booted with systemd-nspawn."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

from support.postgres import ROOT

APT = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"]


MAY_NOT = "this machine lets nobody make mounts and networks of their own"


def may_contain():
    """Whether containers can be made here at all; what fails beyond that is a failure."""
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--net", "mount", "-t", "tmpfs", "none", "/mnt"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def base():
    """The tar of a minimal Debian that scripts/packages.sh made."""
    path = os.environ.get("FRAZIL_DEBIAN")
    assert path and os.path.exists(path), "FRAZIL_DEBIAN names no tar: run this by make packages"
    return path


def package():
    found = glob.glob(os.path.join(ROOT, "build/deb/frazild_*.deb"))
    assert len(found) == 1, "not one package in build/deb: %s" % found
    return found[0]


def children(pid):
    out = []
    for path in glob.glob("/proc/%d/task/*/children" % pid):
        with open(path) as f:
            out += map(int, f.read().split())
    return out


class Root:
    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="frazil-root-", dir="/var/tmp")
        os.chmod(self.top, 0o755)
        self.nspawn = self.leader = None
        subprocess.run(["tar", "-xpf", base(), "-C", self.top, "--exclude=./dev/*"], check=True)
        with open("/etc/resolv.conf") as f:
            self.write("etc/resolv.conf", f.read())
        # Nothing starts while packages are installed.
        self.write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)

    def path(self, name):
        return os.path.join(self.top, name.lstrip("/"))

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def files(self):
        """What a package may leave behind: everything but caches, logs and the package database."""
        out = set()
        for top in ("etc", "usr", "var/lib", "opt", "srv", "home", "root"):
            for folder, subs, names in os.walk(self.path(top)):
                at = os.path.relpath(folder, self.top)
                subs[:] = [s for s in subs if os.path.join(at, s) not in
                           ("var/lib/dpkg", "var/lib/apt", "var/lib/postgresql", "var/lib/systemd", "usr/share/man")]
                out |= {os.path.join(at, n) for n in names + subs}
        return out

    def run(self, *args, check=True, timeout=300):
        """In the booted machine, or else by itself with the network of this one."""
        if self.leader:
            command = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-r", "-w", *args]
        else:
            command = ["systemd-nspawn", "-q", "-D", self.top, "--register=no", "--keep-unit", "--", *args]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=timeout, env={"PATH": os.environ["PATH"], "DEBIAN_FRONTEND": "noninteractive",
                                                    "LC_ALL": "C.UTF-8", "SYSTEMD_PAGER": ""})
        assert not check or done.returncode == 0, "%s: exit %d\n%s\n%s" % (
            " ".join(args), done.returncode, done.stdout[-4000:], done.stderr[-4000:])
        return done

    def out(self, *args, **kw):
        return self.run(*args, **kw).stdout.strip()

    def until(self, *args, seconds=60):
        """Until the command succeeds; its output."""
        end = time.monotonic() + seconds
        while True:
            done = self.run(*args, check=False)
            if done.returncode == 0:
                return done.stdout
            assert time.monotonic() < end, "%s: exit %d\n%s\n%s" % (" ".join(args), done.returncode, done.stdout, done.stderr)
            time.sleep(0.2)

    def boot(self):
        """With systemd as process 1 and a network of its own: the usual ports are free there."""
        self.log = open(self.path("boot.log"), "w")
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "-D", self.top, "--register=no", "--keep-unit", "--boot", "--private-network",
             "--console=pipe"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 60
        while True:
            for pid in children(self.nspawn.pid):
                try:
                    if os.readlink("/proc/%d/ns/pid" % pid) != os.readlink("/proc/self/ns/pid"):
                        self.leader = pid
                except OSError:
                    pass
            if self.leader and self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip() in ("running", "degraded"):
                return
            if self.nspawn.poll() is not None or time.monotonic() > end:
                with open(self.path("boot.log")) as f:
                    raise AssertionError("systemd does not boot in a container here:\n%s" % f.read()[-4000:])
            time.sleep(0.2)

    def halt(self):
        if self.nspawn:
            for pid in (self.leader, self.nspawn.pid):
                if pid and self.nspawn.poll() is None:
                    os.kill(pid, signal.SIGKILL)
                    try:
                        self.nspawn.wait(10)
                    except subprocess.TimeoutExpired:
                        pass
            self.leader = None
            self.nspawn = None
            self.log.close()

    def remove(self):
        self.halt()
        shutil.rmtree(self.top, ignore_errors=True)
