"""The Avro codec against fastavro, under the schemas as published."""

import io
import json
import os
import random
import uuid

import fastavro
import pytest

from frazil import codec, errors, txn, wire

AVSC = os.path.join(os.path.dirname(codec.__file__), "avsc")
NAMES = sorted(f[:-5] for f in os.listdir(AVSC))
EDGES = [0, -1, 1, 63, 64, -64, -65, 2**31 - 1, -2**31, 2**63 - 1, -2**63, 8191]


def raw_schema(name):
    with open(os.path.join(AVSC, name + ".avsc"), encoding="utf-8") as f:
        return json.load(f)


def sample(node, rnd, named):
    if isinstance(node, list):
        return sample(node[1], rnd, named) if rnd.random() < 0.6 else None
    if isinstance(node, str):
        if node in named:
            return sample(named[node], rnd, named)
        return {"int": lambda: rnd.choice(EDGES[:9]), "long": lambda: rnd.choice(EDGES),
                "boolean": lambda: rnd.random() < 0.5,
                "string": lambda: rnd.choice(["", "a", "café", "\U0001f427 \"\\\n"]),
                "bytes": lambda: rnd.randbytes(rnd.randrange(50))}[node]()
    if "name" in node:
        named[node["name"]] = node
    kind = node["type"]
    if kind == "array":
        # The type must be seen even when the array stays empty: later fields name it.
        sample(node["items"], rnd, named)
        return [sample(node["items"], rnd, named) for _ in range(rnd.randrange(4))]
    if kind == "fixed":
        return rnd.randbytes(node["size"])
    if kind == "enum":
        return rnd.choice(node["symbols"])
    return {f["name"]: sample(f["type"], rnd, named) for f in node["fields"]}


def plain(value):
    """UUIDs as bytes, as fastavro has them."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


@pytest.mark.parametrize("name", NAMES)
def test_against_fastavro(name):
    oracle = fastavro.parse_schema(raw_schema(name))
    ours = codec.load(name)
    rnd = random.Random(name)
    for _ in range(50):
        value = sample(raw_schema(name), rnd, {})
        out = io.BytesIO()
        fastavro.schemaless_writer(out, oracle, value)
        assert ours.encode(value) == out.getvalue()
        assert plain(ours.decode(out.getvalue())) == value
        assert fastavro.schemaless_reader(io.BytesIO(ours.encode(value)), oracle) == value


@pytest.mark.parametrize("name", NAMES)
def test_every_prefix_is_refused(name):
    value = sample(raw_schema(name), random.Random(7), {})
    data = codec.load(name).encode(value)
    for n in range(len(data)):
        with pytest.raises(errors.ProtocolError):
            codec.load(name).decode(data[:n])
    with pytest.raises(errors.ProtocolError):
        codec.load(name).decode(data + b"\0")


def test_defaults_are_the_schemas():
    begin = {"txn_id": uuid.UUID(int=1), "table": "t", "kind": "APPEND", "namespace": ["a"]}
    back = codec.load("begin").decode(codec.load("begin").encode(begin))
    assert back["ref"] == "main" and back["isolation"] == "SNAPSHOT" and back["source"] is None
    with pytest.raises(ValueError, match="kind is missing"):
        codec.load("begin").encode({k: v for k, v in begin.items() if k != "kind"})
    with pytest.raises(ValueError, match="no field"):
        codec.load("begin").encode({**begin, "colour": 1})


def test_digest_by_hand():
    import hashlib
    f = txn.fragment_record("x", 0, [], [{
        "data_file": "f", "vector": b"vv", "cardinality": 1, "provenance": "ABSENT",
        "includes_existing": False}])
    assert f["digest"] == hashlib.sha256(b"\x00\x02\x02f\x04vv\x02\x00\x00\x00\x00" +
                                         bytes(3)).digest()
    f = txn.fragment_record(
        "x", 0, [], [txn.blob_record("f", "p", 4, 44, 2, "moved")], [],
        [{"dialect": "ICEBERG", "json": b"{}"}],
        [{"path": "m", "length": 5, "added_files": 2, "added_rows": 3}])
    assert f["digest"] == hashlib.sha256(
        b"\x00\x02\x02f\x00\x04\x04\x00\x02\x02p\x08\x58\x00\x00\x02\x06\x04{}\x00"
        b"\x02\x02m\x0a\x04\x06\x00").digest()


def test_frame_by_hand():
    # CRC-32C of "123456789" is the check value of RFC 3720's polynomial.
    assert wire.crc32c_plain(b"123456789") == 0xE3069283
    assert wire.crc32c_plain(b"56789", wire.crc32c_plain(b"1234")) == 0xE3069283
    raw = wire.frame(3, 0xDEADBEEF, b"hi")
    assert raw[:10] == bytes([0, 0, 0, 12, 3, 1, 0xDE, 0xAD, 0xBE, 0xEF]) and raw[14:] == b"hi"
    assert int.from_bytes(raw[10:14], "big") == wire.crc32c_plain(raw[:10] + b"hi")
    reader = wire.Reader()
    got = [f for b in raw + raw for f in reader.feed(bytes([b]))]
    assert got == [(3, 1, 0xDEADBEEF, b"hi")] * 2
    with pytest.raises(errors.ProtocolError):
        list(wire.Reader().feed(raw[:14] + b"ho"))
    with pytest.raises(errors.ProtocolError):
        list(wire.Reader().feed(b"\xff\xff\xff\xff"))
