"""Starts frazild for a test, ends it in every way that matters, and judges what it left behind."""

import ctypes
import os
import re
import signal
import socket
import subprocess
import time

from support.postgres import ROOT
from support.rest import Rest

# What a sanitizer or a failed assertion writes; none of it may appear in any run.
REPORTS = re.compile(
    r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehavior|runtime error:|ev=assert\.fail")


def free_ports(n):
    """Distinct ports that were free a moment ago."""
    held = []
    try:
        for _ in range(n):
            s = socket.socket()
            s.bind(("127.0.0.1", 0))
            held.append(s)
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


def binary():
    """FRAZILD, or the sanitizer build. A test that finds no daemon fails; it does not pass over."""
    path = os.environ.get("FRAZILD", "build/gcc-address/frazild")
    path = os.path.join(ROOT, path)
    if not os.access(path, os.X_OK):
        raise RuntimeError("%s is not built: make SAN=address, or set FRAZILD" % path)
    return path


def die_with_parent():
    """Linux: the daemon ends when the test runner does, however that happens."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Daemon:
    """One frazild on ports of its own. Settings are those of frazild.ini, as "section.key": value."""

    def __init__(self, folder, conninfo, settings=None, env=None, start=True):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.rest_port, self.rpc_port, self.admin_port = free_ports(3)
        self.warehouse = os.path.join(self.folder, "warehouse")
        os.makedirs(self.warehouse, exist_ok=True)
        self.log_path = os.path.join(self.folder, "frazild.log")
        self.settings = {
            "rest.listen": "127.0.0.1:%d" % self.rest_port,
            "rpc.listen": "127.0.0.1:%d" % self.rpc_port,
            "admin.listen": "127.0.0.1:%d" % self.admin_port,
            "pg.conninfo": conninfo,
            "warehouse.location": "file://" + self.warehouse,
            **(settings or {}),
        }
        self.env = env or {}
        self.process = None
        self.read_to = 0  # the log was judged up to here
        if start:
            self.start()

    # ---- addresses
    @property
    def uri(self):
        return "http://127.0.0.1:%d" % self.rest_port

    @property
    def rpc(self):
        return "127.0.0.1:%d" % self.rpc_port

    @property
    def rest(self):
        return Rest(self.uri)

    @property
    def admin(self):
        return Rest("http://127.0.0.1:%d" % self.admin_port)

    # ---- life
    def command(self, **settings):
        args = [binary()]
        for key, value in {**self.settings, **settings}.items():
            args += ["--set", "%s=%s" % (key, value)]
        return args

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FRAZIL_", "PG"))}
        env["ASAN_OPTIONS"] = "abort_on_error=1:detect_leaks=1:strict_string_checks=1"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
        env["TSAN_OPTIONS"] = "halt_on_error=0:exitcode=66"
        return {**env, **self.env}

    def spawn(self, **settings):
        """Starts the process and does not wait for it."""
        assert self.process is None, "still running"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(**settings), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, env=self.environment(), preexec_fn=die_with_parent)
        return self.process

    def start(self, timeout=120, **settings):
        self.spawn(**settings)
        self.wait_ready(timeout)

    def wait_ready(self, timeout=120):
        end = time.monotonic() + timeout
        while True:
            code = self.process.poll()
            if code is not None:
                self.process = None
                raise AssertionError("frazild ended with %d at start:\n%s" % (code, self.log()[-4000:]))
            try:
                # 401: it serves those who have a token.
                if Rest(self.uri, timeout=5).get("/v1/config").status in (200, 401):
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise AssertionError("frazild is not ready after %d s:\n%s" % (timeout, self.log()[-4000:]))
            time.sleep(0.02)

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def wait(self, timeout=60):
        """Waits for an end that somebody else caused; the exit status, negative for a signal."""
        code = self.process.wait(timeout)
        self.process = None
        return code

    def kill(self):
        """As a power cut: SIGKILL."""
        self.process.kill()
        self.wait()
        self.judge()

    def stop(self, timeout=60):
        """As an operator: SIGTERM, a drain, exit status 0."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
            raise AssertionError("frazild does not end on SIGTERM:\n%s" % self.log()[-4000:])
        self.judge()
        assert code == 0, "exit status %d after SIGTERM:\n%s" % (code, self.log()[-4000:])

    def restart(self, kill=False, **settings):
        if self.alive:
            self.kill() if kill else self.stop()
        self.process = None
        self.start(**settings)

    # ---- what it wrote
    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def events(self, name=None):
        """Log lines as dicts of their fields, those of one event if named."""
        out = []
        for line in self.log().splitlines():
            fields = dict(re.findall(r'(\w+)=("(?:\\.|[^"\\])*"|\S*)', line))
            fields = {k: v[1:-1] if v[:1] == '"' else v for k, v in fields.items()}
            if "ev" in fields and (name is None or fields["ev"] == name):
                out.append(fields)
        return out

    def judge(self):
        """Fails when a sanitizer or an assertion spoke since the last judgement."""
        text = self.log()
        fresh, self.read_to = text[self.read_to:], len(text)
        found = REPORTS.search(fresh)
        assert not found, fresh[max(0, found.start() - 1000):found.start() + 6000]

    def close(self):
        """The end of a test: a running daemon must drain, and nothing may have been reported."""
        if self.alive:
            self.stop()
        elif self.process is not None:
            code = self.wait()
            raise AssertionError("frazild had ended with %d:\n%s" % (code, self.log()[-6000:]))
        self.judge()
