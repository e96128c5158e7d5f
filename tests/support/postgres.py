"""A PostgreSQL cluster of a test run's own: made, started and removed by scripts/pg.sh."""

import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Postgres:
    def __init__(self):
        # Not below the runner's temporary folder: the user postgres must be able to enter it, and a
        # socket's path is short.
        self.folder = tempfile.mkdtemp(prefix="frazil-it-", dir="/var/tmp")
        os.chmod(self.folder, 0o711)
        self.made = 0
        try:
            self.start()
        except BaseException:
            self.remove()
            raise

    def run(self, *args, check=True):
        return subprocess.run(
            [os.path.join(ROOT, "scripts/pg.sh"), *args], check=check, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, "FRAZIL_VAR": self.folder, "PG_INITDB_OPTS": "--no-sync"}).stdout.strip()

    def start(self):
        self.run("start")

    def stop(self):
        self.run("stop")

    def crash(self):
        """Ends all of its processes at once, without a checkpoint."""
        self.run("crash")

    def database(self):
        """The connection string of a new, empty database."""
        self.made += 1
        name = "t%d" % self.made
        self.run("createdb", name)
        return self.run("conninfo", name)

    def remove(self):
        self.run("stop", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
