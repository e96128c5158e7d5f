"""Frames of the worker protocol: header, checksum, messages. No sockets here."""

import functools
import struct
import sys

try:
    import google_crc32c
except ImportError:
    google_crc32c = None

from . import codec
from .errors import ProtocolError

VERSION = 1
HEADER = struct.Struct(">IBBII")
MAX_FRAME = 64 << 20


@functools.lru_cache(maxsize=None)
def _tables():
    """Two tables of 16 bits each, so that a step of the loop takes four bytes."""
    t = [[], [], [], []]
    for i in range(256):
        v = i
        for _ in range(8):
            v = v >> 1 ^ (0x82F63B78 if v & 1 else 0)
        t[0].append(v)
    for k in (1, 2, 3):
        t[k] = [v >> 8 ^ t[0][v & 255] for v in t[k - 1]]
    low = [t[3][i & 255] ^ t[2][i >> 8] for i in range(65536)]
    high = [t[1][i & 255] ^ t[0][i >> 8] for i in range(65536)]
    return t[0], low, high


def crc32c(data, crc=0):
    """CRC-32C (Castagnoli) of data, continuing from crc."""
    if google_crc32c is not None:
        return google_crc32c.extend(crc, bytes(data))
    return crc32c_plain(data, crc)


def crc32c_plain(data, crc=0):
    """The same without a library: some 10 MB/s, enough for all but large vectors."""
    byte, low, high = _tables()
    crc ^= 0xFFFFFFFF
    data = memoryview(data)
    whole = len(data) & ~3
    if sys.byteorder == "little":
        words = data[:whole].cast("B").cast("I") if whole else ()
    else:
        words = struct.unpack(f"<{whole // 4}I", data[:whole])
    for w in words:
        x = crc ^ w
        crc = low[x & 0xFFFF] ^ high[x >> 16]
    for b in data[whole:]:
        crc = crc >> 8 ^ byte[(crc ^ b) & 255]
    return crc ^ 0xFFFFFFFF


def frame(kind, request_id, payload, version=VERSION):
    head = struct.pack(">IBBI", len(payload) + 10, kind, version, request_id)
    return head + struct.pack(">I", crc32c(payload, crc32c(head))) + payload


class Reader:
    """Takes bytes as they come, gives whole frames."""

    def __init__(self, max_frame=MAX_FRAME):
        self._buf = bytearray()
        self._max = max_frame

    def feed(self, data):
        """Yields (type, version, request id, payload) for every frame that is complete."""
        self._buf += data
        while len(self._buf) >= 4:
            after = int.from_bytes(self._buf[:4], "big")
            if after < 10 or after + 4 > self._max:
                raise ProtocolError(f"a frame of {after + 4} bytes")
            if len(self._buf) < after + 4:
                return
            whole = bytes(self._buf[:after + 4])
            del self._buf[:after + 4]
            _, kind, version, request_id, crc = HEADER.unpack_from(whole)
            if crc32c(whole[14:], crc32c(whole[:10])) != crc:
                raise ProtocolError("the checksum of a frame is wrong")
            yield kind, version, request_id, whole[14:]


def request(name, request_id, record):
    """The frame of a request. ValueError when the record does not fit its schema."""
    return frame(codec.messages()[1][name], request_id, codec.load(name).encode(record))


def answer(kind, payload):
    """(name, record) of an answer."""
    name = codec.messages()[0].get(kind)
    if name is None:
        raise ProtocolError(f"no message has type {kind}")
    return name, codec.load(name).decode(payload)
