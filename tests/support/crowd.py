"""A crowd of workers that keeps its own books, for tests in which the daemon or PostgreSQL dies meanwhile."""

import threading
import time

import pyarrow as pa

import frazil
from frazil import parquet
from support import audit

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "name", "required": False, "type": "string"}]}


def rows(first, n):
    return pa.table({"id": pa.array(range(first, first + n), pa.int64()),
                     "name": pa.array(["n%d" % i for i in range(first, first + n)])})


def create(daemon, name):
    """A V3 table "crowd.name"."""
    daemon.rest.post("/v1/namespaces", {"namespace": ["crowd"], "properties": {}})
    daemon.rest.want(200, "POST", "/v1/namespaces/crowd/tables", {
        "name": name, "schema": SCHEMA, "properties": {"format-version": "3"}})
    return "crowd." + name


def again(f, seconds=90):
    """Repeats a call with the same ids until it is answered, as a worker must."""
    end = time.monotonic() + seconds
    while True:
        try:
            return f()
        except (frazil.ConnectionLost, frazil.Unknown, frazil.Overloaded, OSError) as e:
            if time.monotonic() > end:
                raise AssertionError("no answer within %d s: %r" % (seconds, e))
            time.sleep(0.05)
        except frazil.Error as e:
            if e.retry not in ("SAME", "LATER") or time.monotonic() > end:
                raise
            time.sleep(0.05)


class Crowd:
    """`workers` threads append and delete until stopped; each call has an id and is repeated until answered."""

    def __init__(self, daemon, name, workers=6, base=600):
        self.daemon, self.name, self.workers = daemon, create(daemon, name), workers
        with frazil.Client(daemon.rpc) as client:
            self.info = client.table(self.name).info()
            self.base = client.commit_once(self.name, kind="APPEND", data=rows(0, base), info=self.info)
        self.size = base
        self.lock = threading.Lock()
        self.kept = set(range(base))
        self.calls = []  # (arguments, outcome)
        self.failed = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(workers)]
        for t in self.threads:
            t.start()

    def call(self, **arguments):
        arguments["txn_id"] = frazil.uuid7()

        def once():
            with frazil.Client(self.daemon.rpc, retries=0, timeout=20) as client:
                return client.commit_once(self.name, info=self.info, **arguments)
        outcome = again(once)
        with self.lock:
            self.calls.append((arguments, outcome))
        return outcome

    def work(self, n):
        try:
            k = 0
            while not self.stopping.is_set():
                first = 10000 + n * 100000 + k * 5
                files = parquet.write(rows(first, 5), self.info)
                self.call(kind="APPEND", data_files=files)
                with self.lock:
                    self.kept |= set(range(first, first + 5))
                at = n * (self.size // self.workers) + k
                if k < self.size // self.workers:
                    self.call(kind="DELETE", deletes=[(self.base.files[0]["path"], [at])], read_snapshot_id=self.base.snapshot_id)
                    with self.lock:
                        self.kept.discard(at)
                k += 1
        except BaseException as e:
            self.failed.append(e)

    def done(self):
        with self.lock:
            return len(self.calls)

    def wait_for(self, more, seconds=60):
        """Until `more` further calls were answered: the daemon works."""
        want, end = self.done() + more, time.monotonic() + seconds
        while self.done() < want:
            assert not self.failed, self.failed
            assert time.monotonic() < end, "%d calls in %d s" % (self.done() - want + more, seconds)
            time.sleep(0.01)

    def end(self):
        """Stops the workers and judges: each acknowledged row once, none else; repeated calls answered as before."""
        self.stopping.set()
        for t in self.threads:
            t.join(120)
            assert not t.is_alive(), "a worker hangs"
        assert not self.failed, self.failed
        with frazil.Client(self.daemon.rpc) as client:
            for arguments, outcome in self.calls[-60:]:
                o = client.commit_once(self.name, info=self.info, **arguments)
                assert (o.state, o.snapshot_id, o.sequence_number) == ("COMMITTED", outcome.snapshot_id, outcome.sequence_number)
        found = audit.rows(self.daemon, self.name)
        assert sorted(r["id"] for r in found) == sorted(self.kept)
        assert len({r["_row_id"] for r in found}) == len(found)
        ranges = sorted((f["first_row_id"], f["record_count"]) for _, o in self.calls for f in o.files)
        for (a, n), (b, _) in zip(ranges, ranges[1:]):
            assert a + n <= b, "row-id ranges overlap"
        audit.clean(self.daemon, self.name)
