"""Somebody who behaves, while others do not: reads and commits all the time and notes how long it took."""

import http.client
import json
import threading
import time

import frazil
from support.lab import Lab


class Neighbour:
    """with Neighbour(daemon): ...  At the end: nothing failed, nobody waited long, every row is there.

    It keeps one connection of each kind, made before anything else happens. slow: the longest wait allowed, in seconds.
    """

    def __init__(self, daemon, slow=2.0, pause=0.02, commits=True):
        self.daemon, self.slow, self.pause, self.commits = daemon, slow, pause, commits
        self.lab = Lab(daemon, "beside%d" % (time.monotonic_ns() % 10**9))
        self.table = self.lab.table("t")
        self.table.append(1)
        self.link = http.client.HTTPConnection("127.0.0.1", daemon.rest_port, timeout=30)
        self.client = frazil.Client(daemon.rpc, retries=0, timeout=30)
        self.waits, self.failed = [], []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def get(self, target):
        self.link.request("GET", target)
        got = self.link.getresponse()
        body = got.read()
        assert got.status == 200, (got.status, body[:300])
        return json.loads(body)

    def turn(self):
        began = time.monotonic()
        self.get("/v1/config")
        self.waits.append(("config", time.monotonic() - began))
        began = time.monotonic()
        self.get(self.table.target)
        self.waits.append(("load", time.monotonic() - began))
        if self.commits:
            files = self.table.files(1)
            began = time.monotonic()
            self.client.commit_once(self.table.name, data_files=files, info=self.table.info)
            self.waits.append(("commit", time.monotonic() - began))
            self.table.added(*files)

    def run(self):
        try:
            while not self.over.is_set():
                self.turn()
                self.over.wait(self.pause)
        except BaseException as e:
            self.failed.append(e)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        end = time.monotonic() + 10
        while kind is None and len(self.waits) < 9 and not self.failed and time.monotonic() < end:
            time.sleep(0.01)
        self.over.set()
        self.thread.join(60)
        if kind is not None:
            return
        assert not self.thread.is_alive() and not self.failed, self.failed
        assert len(self.waits) >= 9, self.waits
        worst = sorted(self.waits, key=lambda w: -w[1])
        assert worst[0][1] <= self.slow, worst[:5]
        self.link.close()
        self.client.close()
        self.lab.check()
