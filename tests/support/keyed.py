"""A client that sends an Idempotency-Key with each change and repeats requests with it."""

import os
import time
import uuid

from support.openapi import Checked

KEEP = ("ETag", "Content-Type", "Content-Encoding", "Vary")


def key():
    """A UUID of version 7 (RFC 9562), which this Python's library does not make."""
    n = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    n = n & ~(0xf << 76) | 7 << 76
    return str(uuid.UUID(int=n & ~(3 << 62) | 2 << 62))


class Keyed(Checked):
    def send(self, k, method, target, value=None, **headers):
        return self.call(method, target, value, headers={"Idempotency-Key": k, **headers})

    def twice(self, method, target, value=None, **headers):
        """The answer, which a repetition must bring byte for byte; and its key."""
        k = key()
        first = self.send(k, method, target, value, **headers)
        self.repeat(first, k, method, target, value, **headers)
        return first, k

    def repeat(self, first, k, method, target, value=None, **headers):
        again = self.send(k, method, target, value, **headers)
        same(first, again)


def same(first, again):
    assert again.status == first.status, (first, again)
    assert again.body == first.body, (first, again)
    for name in KEEP:
        assert again.headers[name] == first.headers[name], name
