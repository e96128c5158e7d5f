"""The container image, built by buildah from a locally made Debian and run as its configuration says."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import debian
from support.postgres import ROOT, Postgres


pytestmark = pytest.mark.skipif(not debian.may_contain(), reason=debian.MAY_NOT)


class Buildah:
    """buildah with a storage of its own; chroot isolation needs no container runtime."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="frazil-image-", dir="/var/tmp")
        conf = os.path.join(self.top, "storage.conf")
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith(("FRAZIL_", "STORAGE_"))},
                    "CONTAINERS_STORAGE_CONF": conf, "BUILDAH_ISOLATION": "chroot"}
        # Not every file system carries an overlay; the other driver copies and is slow.
        for driver in ("overlay", "vfs"):
            with open(conf, "w") as f:
                f.write('[storage]\ndriver = "%s"\ngraphroot = "%s/%s"\nrunroot = "%s/run"\n' % (
                    driver, self.top, driver, self.top))
            self.driver = driver
            try:
                self.run("mount", self.run("from", "scratch"))
                return
            except AssertionError:
                if driver == "vfs":
                    self.remove()
                    raise

    def run(self, *args, timeout=900):
        done = subprocess.run(["buildah", *args], cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        assert done.returncode == 0, "buildah %s: exit %d\n%s\n%s" % (
            " ".join(args), done.returncode, done.stdout[-3000:], done.stderr[-6000:])
        return done.stdout.strip()

    def remove(self):
        subprocess.run(["buildah", "rm", "--all"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["buildah", "rmi", "--all", "--force"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-q", os.path.join(self.top, self.driver, "overlay")], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)


@pytest.fixture(scope="module")
def buildah():
    b = Buildah()
    try:
        made = b.run("from", "scratch")
        b.run("add", "-q", made, debian.base(), "/")
        b.run("config", "--cmd", "/bin/bash", made)
        b.run("commit", "-q", "--rm", made, "debian:bookworm")
        # What a clone holds: files that git knows, as they lie here.
        context = os.path.join(b.top, "context")
        os.mkdir(context)
        names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                               check=True, stdout=subprocess.PIPE).stdout
        pack = subprocess.run(["tar", "-c", "--null", "--ignore-failed-read", "-T", "-"], cwd=ROOT, input=names,
                              check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", context], input=pack, check=True)
        b.run("build", "--pull-never", "--isolation", "chroot", "--format", "docker", "-q", "-t", "frazild", context)
        yield b
    finally:
        b.remove()


@pytest.fixture(scope="module")
def config(buildah):
    return json.loads(buildah.run("inspect", "--type", "image", "frazild"))["Docker"]["config"]


@pytest.fixture(scope="module")
def container(buildah):
    return buildah.run("from", "--pull-never", "frazild")


@pytest.fixture(scope="module")
def database():
    cluster = Postgres()
    try:
        conninfo = cluster.database()
        fields = dict(f.split("=", 1) for f in conninfo.split())
        # The image's user is another than the cluster's; this folder alone is opened to it.
        os.chmod(fields["host"], 0o755)
        yield fields["host"], conninfo.replace(fields["host"], "/postgres")
    finally:
        cluster.remove()


def test_small_and_without_rights(buildah, config, container):
    """No compiler, no headers, no package but the libraries; not root, by number."""
    assert config["User"] == "818:818"
    assert config["Entrypoint"] == ["/usr/bin/frazild", "--config", "/etc/frazil/frazild.ini"]
    assert set(config["ExposedPorts"]) == {"8181/tcp", "8182/tcp", "8183/tcp"}
    inside = buildah.run("run", container, "--", "sh", "-c",
                         "id -u; id -g; dpkg-query -W -f '${Package}\\n'; ls /src /usr/include /tmp 2>&1; test -w /etc/frazil && echo writable; true").split("\n")
    assert inside[:2] == ["818", "818"]
    added = set(inside) - set(buildah_base_packages(buildah))
    assert not [p for p in added if p.endswith("-dev") or p in ("gcc", "make", "cpp", "binutils", "systemd", "curl")]
    assert "libmicrohttpd12" in added and "libpq5" in added
    assert "writable" not in inside
    assert buildah.run("run", container, "--", "/usr/bin/frazild", "--version").startswith("frazild ")


def buildah_base_packages(buildah):
    base = buildah.run("from", "--pull-never", "debian:bookworm")
    try:
        return buildah.run("run", base, "--", "dpkg-query", "-W", "-f", "${Package}\\n").split("\n")
    finally:
        buildah.run("rm", base)


def daemon_in(pid):
    """The frazild in the network of a process, by its number here."""
    net = os.readlink("/proc/%d/ns/net" % pid)
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % name) as f:
                if f.read() == "frazild\n" and os.readlink("/proc/%s/ns/net" % name) == net:
                    return int(name)
        except OSError:
            pass
    return None


def test_runs_and_is_healthy(buildah, config, container, database):
    """Entry point, user and health check of the image; unhealthy until it can serve; SIGTERM ends it in order."""
    folder, conninfo = database
    check = config["Healthcheck"]["Test"]
    assert check[0] == "CMD" and config.get("StopSignal", "SIGTERM") == "SIGTERM"
    command = ["buildah", "run", "--isolation", "chroot", "-v", folder + ":/postgres", "--env", "FRAZIL_PG_CONNINFO=" + conninfo,
               container, "--", *config["Entrypoint"]]
    log = os.path.join(buildah.top, "log")
    # A network of its own: the ports are those of the image.
    with open(log, "w") as out:
        run = subprocess.Popen(["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command], cwd=ROOT,
                               env=buildah.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def text():
        with open(log) as f:
            return f.read()

    def healthy():
        return subprocess.run(["nsenter", "-t", str(run.pid), "-n", "buildah", "run", "--isolation", "chroot", container, "--",
                               "timeout", "5", *check[1:]], env=buildah.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def ask(path):
        code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"
        return subprocess.run(["nsenter", "-t", str(run.pid), "-n", sys.executable, "-c", code, path], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    try:
        end = time.monotonic() + 90
        while "ev=app.ready" not in text():
            assert run.poll() is None and time.monotonic() < end, text()
            time.sleep(0.1)
        pid = daemon_in(run.pid)
        with open("/proc/%d/status" % pid) as f:
            status = f.read()
        assert "Uid:\t818\t818\t818\t818\n" in status and "Gid:\t818\t818\t818\t818\n" in status
        assert healthy()
        assert "defaults" in json.loads(ask("http://127.0.0.1:8181/v1/config"))
        os.kill(pid, signal.SIGSTOP)
        try:
            assert not healthy()
        finally:
            os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGTERM)
        assert run.wait(60) == 0, text()
        assert "level=error" not in text()
    finally:
        pid = daemon_in(run.pid) if run.poll() is None else None
        if pid:
            os.kill(pid, signal.SIGKILL)
        if run.poll() is None:
            run.wait(30)


def test_other_addresses_need_a_word(buildah, container):
    """From outside of a container it is reachable only when that was asked for: no authentication is configured."""
    args = ["run", "--env", "FRAZIL_REST_LISTEN=0.0.0.0:8181", container, "--", "/usr/bin/frazild", "--check-config"]
    done = subprocess.run(["buildah", *args], env=buildah.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode != 0 and "auth.allow-anonymous" in done.stdout
    buildah.run("run", "--env", "FRAZIL_REST_LISTEN=0.0.0.0:8181", "--env", "FRAZIL_AUTH_ALLOW_ANONYMOUS=yes", container, "--",
                "/usr/bin/frazild", "--check-config")
