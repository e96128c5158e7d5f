"""Vector blobs against published bytes, pyroaring and pyiceberg."""

import json
import random
import struct
import zlib

import pyroaring
import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from frazil import dv

# Complete blobs of other implementations: the plain one, runs, dense keys as Java writes them.
GOLDEN = {
    "00000022d1d339640100000000000000000000003a3000000100000000000000100000000000f7a6b4b5": [0],
    "00000024d1d339640100000000000000000000003a3000000100000000000100100000000000050086d2574a":
        [0, 5],
    "0000001fd1d339640100000000000000000000003b3000000100006300010000006300883cd529":
        list(range(100)),
    "0000003ad1d339640300000000000000000000003a30000000000000010000003a3000000000000002000000"
    "3a3000000100000000000000100000000000fabeda4e": [2**33],
    "00000022d1d339640100000000000000020000003a3000000100000000000000100000000000d9f67d35": [2**33],
}


def test_golden():
    for text, positions in GOLDEN.items():
        assert dv.decode(bytes.fromhex(text)) == positions
    sparse = [t for t, p in GOLDEN.items() if p in ([0], [0, 5], [2**33]) and "3b30" not in t]
    for positions in ([0], [0, 5], [2**33]):
        assert dv.encode(positions).hex() in sparse


SETS = {
    "empty": [],
    "one": [70000],
    "two keys": [1, 2**32 + 1, 2**32 + 2**16],
    "array limit": range(0, 4096 * 3, 3),
    "bitmap": range(0, 60000, 2),
    "full container": range(65536, 131072),
    "random": random.Random(5).sample(range(10_000_000), 20000),
}


@pytest.mark.parametrize("name", SETS)
def test_readers(name):
    positions = sorted(SETS[name])
    blob = dv.encode(reversed(positions))
    assert dv.decode(blob) == positions
    # Frame, by the rules of the Puffin spec.
    assert struct.unpack(">I", blob[:4])[0] == len(blob) - 8
    assert zlib.crc32(blob[4:-4]) == struct.unpack(">I", blob[-4:])[0]
    assert list(pyroaring.BitMap64.deserialize(blob[8:-4])) == positions
    # PyIceberg 0.12 cannot build an empty array of unknown type.
    if positions:
        assert read_by_pyiceberg(blob, len(positions)) == positions


def read_by_pyiceberg(blob, cardinality):
    """Through a Puffin file made by hand (Puffin spec, "File structure")."""
    footer = json.dumps({"blobs": [{
        "type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1,
        "sequence-number": -1, "offset": 4, "length": len(blob),
        "properties": {"referenced-data-file": "f", "cardinality": str(cardinality)}}]}).encode()
    raw = b"PFA1" + blob + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"
    (vector,) = deletion_vectors_from_puffin_file(PuffinFile(raw))
    return vector.to_vector().to_pylist()


def test_bytes_equal_pyroaring():
    for name in ("one", "array limit", "bitmap", "random"):
        positions = sorted(SETS[name])
        # Where no run container is smaller CRoaring writes the same portable bytes.
        assert dv.encode(positions)[8 + 8 + 4:-4] == pyroaring.BitMap(positions).serialize()


def test_reads_runs_of_pyroaring():
    positions = sorted({*range(10, 5000), *range(70000, 70010), 10**6})
    bitmap = pyroaring.BitMap(positions)
    bitmap.run_optimize()
    body = b"\xd1\xd3\x39\x64" + struct.pack("<QI", 1, 0) + bitmap.serialize()
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    assert dv.decode(blob) == positions


def test_refuses():
    with pytest.raises(ValueError):
        dv.encode([-1])
    with pytest.raises(ValueError):
        dv.encode([dv.MAX_POSITION + 1])
    with pytest.raises(TypeError):
        dv.encode([1.5])
    blob = dv.encode([1, 2, 3])
    for i in range(len(blob)):
        broken = bytearray(blob)
        broken[i] ^= 1
        with pytest.raises(ValueError):
            dv.decode(bytes(broken))
        with pytest.raises(ValueError):
            dv.decode(blob[:i])
