"""Deletion vector blobs (Puffin spec, "deletion-vector-v1"): positions to framed bytes and back."""

import operator
import struct
import sys
import zlib
from array import array

_MAGIC = b"\xd1\xd3\x39\x64"
_COOKIE_PLAIN = 12346
_COOKIE_RUNS = 12347
_ARRAY_MAX = 4096
# Highest position that the format can hold: the last 32-bit key is 2^31 - 2.
MAX_POSITION = (2147483646 << 32) + 0x80000000


def _little(values, code):
    a = array(code, values)
    if sys.byteorder == "big":
        a.byteswap()
    return a.tobytes()


def _container(values):
    """Low 16 bits, ascending: a sorted array, or a bitmap where that is smaller."""
    if len(values) <= _ARRAY_MAX:
        return _little(values, "H")
    bits = bytearray(8192)
    for v in values:
        bits[v >> 3] |= 1 << (v & 7)
    return bytes(bits)


def _bitmap32(values):
    """Portable roaring form of ascending 32-bit numbers, without run containers."""
    groups = {}
    for v in values:
        groups.setdefault(v >> 16, []).append(v & 0xFFFF)
    bodies = [_container(g) for g in groups.values()]
    head = struct.pack("<II", _COOKIE_PLAIN, len(groups))
    head += b"".join(struct.pack("<HH", key, len(g) - 1) for key, g in groups.items())
    at = len(head) + 4 * len(groups)
    for body in bodies:
        head += struct.pack("<I", at)
        at += len(body)
    return head + b"".join(bodies)


def unique(positions):
    """Ascending distinct positions of any iterable of whole numbers or an Arrow array."""
    if hasattr(positions, "to_pylist"):
        positions = positions.to_pylist()
    return sorted({operator.index(v) for v in positions})


def encode(positions):
    """The framed blob of a set of positions; duplicates are one position."""
    values = unique(positions)
    if values and (values[0] < 0 or values[-1] > MAX_POSITION):
        raise ValueError("a position is negative or beyond what the format holds")
    groups = {}
    for v in values:
        groups.setdefault(v >> 32, []).append(v & 0xFFFFFFFF)
    body = _MAGIC + struct.pack("<Q", len(groups))
    body += b"".join(struct.pack("<I", key) + _bitmap32(g) for key, g in groups.items())
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def _read32(data, at):
    """Values of one 32-bit bitmap and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    start, runs = at, b""
    if cookie & 0xFFFF == _COOKIE_RUNS:
        n = (cookie >> 16) + 1
        runs = data[at + 4:at + 4 + (n + 7) // 8]
        at += 4 + len(runs)
        has_offsets = n >= 4
    elif cookie == _COOKIE_PLAIN:
        (n,) = struct.unpack_from("<I", data, at + 4)
        at += 8
        has_offsets = True
    else:
        raise ValueError("not a roaring bitmap")
    if n > 65536:
        raise ValueError("a bitmap has too many containers")
    heads = [struct.unpack_from("<HH", data, at + 4 * i) for i in range(n)]
    at += 4 * n
    if has_offsets:
        at += 4 * n
    values = []
    for i, (key, less_one) in enumerate(heads):
        base = key << 16
        if runs and runs[i >> 3] >> (i & 7) & 1:
            (count,) = struct.unpack_from("<H", data, at)
            at += 2
            for _ in range(count):
                first, more = struct.unpack_from("<HH", data, at)
                at += 4
                values.extend(range(base + first, base + first + more + 1))
        elif less_one + 1 <= _ARRAY_MAX:
            low = struct.unpack_from(f"<{less_one + 1}H", data, at)
            values.extend(base + v for v in low)
            at += 2 * len(low)
        else:
            for k, b in enumerate(data[at:at + 8192]):
                while b:
                    values.append(base + 8 * k + (b & -b).bit_length() - 1)
                    b &= b - 1
            at += 8192
    if at > len(data) or at < start:
        raise ValueError("a bitmap is cut")
    return values, at


def decode(blob):
    """Ascending positions of a framed blob. ValueError when its frame or bitmap is broken."""
    try:
        (n,) = struct.unpack_from(">I", blob, 0)
        body = bytes(blob[4:4 + n])
        (crc,) = struct.unpack_from(">I", blob, 4 + n)
        if len(blob) != n + 8 or body[:4] != _MAGIC or zlib.crc32(body) != crc:
            raise ValueError("length, magic or checksum is wrong")
        (count,) = struct.unpack_from("<Q", body, 4)
        at, values = 12, []
        for _ in range(count):
            (key,) = struct.unpack_from("<I", body, at)
            low, at = _read32(body, at + 4)
            values.extend((key << 32) + v for v in low)
    except struct.error as e:
        raise ValueError(f"the blob is cut: {e}") from None
    if at != len(body):
        raise ValueError("bytes follow the last bitmap")
    return sorted(values)
