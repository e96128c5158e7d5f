"""Avro binary encoding of the protocol's records, from the published schemas in avsc/.

Values: records are dicts, enums and strings str, arrays lists, an absent optional field None,
`Uuid` uuid.UUID, other fixed and bytes values bytes. A member that is left out takes the schema's
default. Encoding is canonical: an array is one block, or none when empty.
"""

import functools
import json
import os
import uuid

from .errors import ProtocolError

_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "avsc")


class Schema:
    """A compiled schema: encode(value) -> bytes, decode(bytes) -> value."""

    def __init__(self, write, read, node):
        self._write = write
        self._read = read
        self.node = node

    def encode(self, value):
        out = bytearray()
        self._write(out, value)
        return bytes(out)

    def decode(self, data):
        data = bytes(data)
        value, at = self._read(data, 0)
        if at != len(data):
            raise ProtocolError(f"{len(data) - at} bytes follow the message")
        return value

    def field(self, name):
        """The schema of one field of a record."""
        return self.fields[name]

    fields = {}


def put_long(out, v):
    z = (v << 1) ^ (v >> 63)
    while z > 0x7F:
        out.append(z & 0x7F | 0x80)
        z >>= 7
    out.append(z)


def get_long(data, at):
    z = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ProtocolError("a number of the message is cut or too long")
        c = data[at]
        at += 1
        z |= (c & 0x7F) << shift
        if c < 0x80:
            break
        shift += 7
    if z >> 64:
        raise ProtocolError("a number has more than 64 bits")
    return (z >> 1) ^ -(z & 1), at


def _take(data, at, n):
    if n < 0 or n > len(data) - at:
        raise ProtocolError("the message ends inside a value")
    return data[at:at + n], at + n


def _integer(bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def write(out, v):
        if not isinstance(v, int) or isinstance(v, bool) or not low <= v <= high:
            raise ValueError(f"{v!r} is not a whole number of {bits} bits")
        put_long(out, v)

    def read(data, at):
        v, at = get_long(data, at)
        if not low <= v <= high:
            raise ProtocolError(f"a number has more than {bits} bits")
        return v, at

    return write, read


def _boolean():
    def write(out, v):
        out.append(1 if v else 0)

    def read(data, at):
        b, at = _take(data, at, 1)
        if b[0] > 1:
            raise ProtocolError("a boolean is neither 0 nor 1")
        return b[0] == 1, at

    return write, read


def _blob(text):
    def write(out, v):
        raw = v.encode("utf-8") if text else bytes(v)
        put_long(out, len(raw))
        out += raw

    def read(data, at):
        n, at = get_long(data, at)
        raw, at = _take(data, at, n)
        if not text:
            return raw, at
        try:
            return raw.decode("utf-8"), at
        except UnicodeDecodeError as e:
            raise ProtocolError(f"text is not UTF-8: {e}") from None

    return write, read


def _fixed(size, is_uuid):
    def write(out, v):
        if is_uuid:
            v = v if isinstance(v, uuid.UUID) else uuid.UUID(v) if isinstance(v, str) else v
            v = v.bytes if isinstance(v, uuid.UUID) else v
        if len(v) != size:
            raise ValueError(f"{size} bytes are expected, not {len(v)}")
        out += v

    def read(data, at):
        raw, at = _take(data, at, size)
        return (uuid.UUID(bytes=raw) if is_uuid else raw), at

    return write, read


def _enum(node):
    symbols = node["symbols"]
    number = {s: i for i, s in enumerate(symbols)}

    def write(out, v):
        if v not in number:
            raise ValueError(f"{v!r} is not one of {', '.join(symbols)}")
        put_long(out, number[v])

    def read(data, at):
        i, at = get_long(data, at)
        if not 0 <= i < len(symbols):
            raise ProtocolError(f"{node['name']} has no symbol {i}")
        return symbols[i], at

    return write, read


def _array(item):
    def write(out, v):
        v = list(v)
        if v:
            put_long(out, len(v))
            for x in v:
                item._write(out, x)
        out.append(0)

    def read(data, at):
        items = []
        while True:
            n, at = get_long(data, at)
            if n == 0:
                return items, at
            if n < 0:
                n = -n
                _, at = get_long(data, at)
            if n > len(data) - at:
                raise ProtocolError("an array has more items than bytes follow")
            for _ in range(n):
                x, at = item._read(data, at)
                items.append(x)

    return write, read


def _optional(item):
    def write(out, v):
        if v is None:
            out.append(0)
        else:
            out.append(2)
            item._write(out, v)

    def read(data, at):
        branch, at = get_long(data, at)
        if branch not in (0, 1):
            raise ProtocolError("a union has two branches")
        return item._read(data, at) if branch else (None, at)

    return write, read


def _record(name, fields):
    known = {f[0] for f in fields}

    def write(out, v):
        extra = set(v) - known
        if extra:
            raise ValueError(f"{name} has no field {sorted(extra)[0]}")
        for field, schema, default, required in fields:
            if field in v:
                x = v[field]
            elif required:
                raise ValueError(f"{name}.{field} is missing")
            else:
                x = default
            try:
                schema._write(out, x)
            except (TypeError, AttributeError) as e:
                raise ValueError(f"{name}.{field}: {x!r}: {e}") from None

    def read(data, at):
        v = {}
        for field, schema, _, _ in fields:
            v[field], at = schema._read(data, at)
        return v, at

    return write, read


def _compile(node, named, space):
    if isinstance(node, list):
        if len(node) != 2 or node[0] != "null":
            raise ValueError("only unions of null and one type")
        return Schema(*_optional(_compile(node[1], named, space)), node)
    if isinstance(node, str):
        simple = {"int": lambda: _integer(32), "long": lambda: _integer(64), "boolean": _boolean,
                  "string": lambda: _blob(True), "bytes": lambda: _blob(False)}
        return Schema(*simple[node](), node) if node in simple else named[node.split(".")[-1]]
    kind = node["type"]
    if kind == "array":
        return Schema(*_array(_compile(node["items"], named, space)), node)
    if kind == "fixed":
        schema = Schema(*_fixed(node["size"], node["name"] == "Uuid"), node)
    elif kind == "enum":
        schema = Schema(*_enum(node), node)
    elif kind == "record":
        fields, by_name = [], {}
        for f in node["fields"]:
            sub = _compile(f["type"], named, space)
            fields.append((f["name"], sub, f.get("default"), "default" not in f))
            by_name[f["name"]] = sub
        schema = Schema(*_record(node["name"], fields), node)
        schema.fields = by_name
    else:
        return _compile(kind, named, space)
    named[node["name"]] = schema
    return schema


@functools.lru_cache(maxsize=None)
def load(name):
    """The schema published as <name>.avsc, for instance "begin_reply"."""
    with open(os.path.join(_DIR, name + ".avsc"), encoding="utf-8") as f:
        return _compile(json.load(f), {}, "frazil")


def encode(schema, value):
    return schema.encode(value)


def decode(schema, data):
    return schema.decode(data)


@functools.lru_cache(maxsize=None)
def messages():
    """(name by type number, type number by name) of all messages."""
    by_type = {}
    for file in os.listdir(_DIR):
        name, ext = os.path.splitext(file)
        if ext == ".avsc":
            number = load(name).node.get("frazil-type")
            if number is not None:
                by_type[number] = name
    return by_type, {n: t for t, n in by_type.items()}
