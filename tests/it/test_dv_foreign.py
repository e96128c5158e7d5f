"""The vector and Puffin codecs against PyIceberg and pyroaring, both ways."""

import json
import os
import random
import struct
import subprocess
import zlib

import pyroaring
import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

DAEMON = os.environ.get("FRAZILD", "build/gcc-address/frazild")
TOOL = os.path.join(os.path.dirname(DAEMON), "it", "dvtool")

KEY = 1 << 32
RND = random.Random(7)
SETS = {
    "file:/w/one.parquet": [70000],
    "s3://b/two%20keys.parquet": [1, KEY + 1, KEY + 2**16],
    "array-limit": list(range(0, 4096 * 3, 3)),
    "bitmap-limit": list(range(0, 4097 * 3, 3)),
    "runs": [v for b in range(0, 10**6, 1000) for v in range(b, b + 300)],
    "full-container": list(range(65536, 131072)),
    "random": sorted(RND.sample(range(10_000_000), 20000)),
    "many-keys": sorted(RND.sample(range(20 * KEY), 500)),
}


def run(*args, data=None):
    assert os.path.exists(TOOL), "%s is not built: make SAN=address" % TOOL
    done = subprocess.run([TOOL, *args], input=data, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def write(path, sets):
    lines = [" ".join([name, *map(str, RND.sample(v, len(v)))]) for name, v in sets.items()]
    out = run("write", path, data="\n".join(lines).encode())
    return [tuple(map(int, line.split())) for line in out.decode().splitlines()]


def test_pyiceberg_and_pyroaring_read(tmp_path):
    path = str(tmp_path / "v.puffin")
    places = write(path, SETS)
    raw = open(path, "rb").read()
    vectors = deletion_vectors_from_puffin_file(PuffinFile(raw))
    assert [v.to_vector().to_pylist() for v in vectors] == list(SETS.values())
    (size,) = struct.unpack("<I", raw[-12:-8])
    blobs = json.loads(raw[-12 - size:-12])["blobs"]
    assert [(b["offset"], b["length"]) for b in blobs] == places
    for (name, want), blob in zip(SETS.items(), blobs):
        assert blob["properties"] == {
            "referenced-data-file": name, "cardinality": str(len(want))}
        frame = raw[blob["offset"]:blob["offset"] + blob["length"]]
        assert struct.unpack(">I", frame[:4])[0] == len(frame) - 8
        assert struct.unpack(">I", frame[-4:])[0] == zlib.crc32(frame[4:-4])
        assert list(pyroaring.BitMap64.deserialize(frame[8:-4])) == want


def framed(vector):
    body = b"\xd1\xd3\x39\x64" + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("optimize", [False, True])
def test_reads_pyroaring(tmp_path, name, optimize):
    bits = pyroaring.BitMap64(SETS[name])
    if optimize:
        bits.run_optimize()
    path = tmp_path / "v.bin"
    path.write_bytes(framed(bits.serialize()))
    assert list(map(int, run("blob", str(path)).split())) == SETS[name]


def test_keys_in_any_order(tmp_path):
    """As DuckDB may write them: one 32-bit bitmap a key, keys as they come, no runs."""
    keys = {5: [1, 2, 3], 0: list(range(0, 20000, 2)), 3: [7]}
    body = struct.pack("<Q", len(keys))
    for key, values in keys.items():
        body += struct.pack("<I", key) + pyroaring.BitMap(values).serialize()
    path = tmp_path / "v.bin"
    path.write_bytes(framed(body))
    want = sorted(key * KEY + v for key, values in keys.items() for v in values)
    assert list(map(int, run("blob", str(path)).split())) == want


def test_merge(tmp_path):
    path = str(tmp_path / "v.puffin")
    sets = {f"f{i}": RND.sample(range(300_000), RND.randrange(1, 3000)) for i in range(64)}
    sets["range"] = list(range(100_000, 200_000))
    write(path, sets)
    blob = run("merge", path)
    want = sorted(set().union(*sets.values()))
    assert list(pyroaring.BitMap64.deserialize(blob[8:-4])) == want
    assert zlib.crc32(blob[4:-4]) == struct.unpack(">I", blob[-4:])[0]
