"""Partition transforms (table spec, "Partition Transforms" and Appendix B) and splitting of rows."""

import datetime
import decimal
import json
import re
import struct

import pyarrow as pa
import pyarrow.compute as pc

from .errors import SchemaError
from .schema import Type, decimal_bytes, raw_numbers, single_value, unscaled_of

_DAY = 86400


def murmur3(data, seed=0):
    """Murmur3, x86, 32 bits; signed."""
    m = 0xFFFFFFFF
    h = seed
    whole = len(data) & ~3
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * 0xCC9E2D51 & m
        k = (k << 15 | k >> 17) & m
        h ^= k * 0x1B873593 & m
        h = (h << 13 | h >> 19) & m
        h = (h * 5 + 0xE6546B64) & m
    if whole < len(data):
        k = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & m
        k = (k << 15 | k >> 17) & m
        h ^= k * 0x1B873593 & m
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & m
    h = (h ^ h >> 13) * 0xC2B2AE35 & m
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def bucket_hash(kind, value):
    """Hash of a source value; the same number hashes alike as int, long, date or time."""
    k = kind.kind
    if k.endswith("_ns"):
        value //= 1000
    if k in ("int", "long", "date", "time") or k.startswith("timestamp"):
        return murmur3(struct.pack("<q", value))
    if k == "decimal":
        return murmur3(decimal_bytes(unscaled_of(value, kind.scale)))
    if k == "string":
        return murmur3(value.encode("utf-8"))
    if k in ("uuid", "fixed", "binary"):
        return murmur3(bytes(value))
    raise SchemaError(f"the type {k} has no bucket transform")


def _truncate(kind, value, width):
    k = kind.kind
    if k in ("int", "long"):
        return value - value % width
    if k == "decimal":
        unscaled = unscaled_of(value, kind.scale)
        return decimal.Decimal(unscaled - unscaled % width).scaleb(-kind.scale,
                                                                   decimal.Context(prec=60))
    if k == "string":
        return value[:width]
    if k == "binary":
        return bytes(value)[:width]
    raise SchemaError(f"the type {k} has no truncate transform")


def _seconds(kind, value):
    if kind.kind == "date":
        return value * _DAY
    return value // (10**9 if kind.kind.endswith("_ns") else 10**6)


def _months(kind, value):
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=_seconds(kind, value) // _DAY)
    return (day.year - 1970) * 12 + day.month - 1


class Transform:
    """One transform of one source type: apply(value) and the type of its results."""

    def __init__(self, text, source):
        self.source = source
        m = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", text)
        name, arg = (m[1], int(m[2]) if m[2] else None) if m else (text, None)
        kind = source.kind
        temporal = kind == "date" or kind.startswith("timestamp")
        self.result = Type("int")
        if name == "identity":
            self.result, self.apply = source, lambda v: v
        elif name == "void":
            self.result, self.apply = source, lambda v: None
        elif name == "bucket" and arg:
            self.apply = lambda v: (bucket_hash(source, v) & 0x7FFFFFFF) % arg
        elif name == "truncate" and arg:
            self.result, self.apply = source, lambda v: _truncate(source, v, arg)
        elif name == "year" and temporal:
            self.apply = lambda v: _months(source, v) // 12
        elif name == "month" and temporal:
            self.apply = lambda v: _months(source, v)
        elif name == "day" and temporal:
            self.result = Type("date")
            self.apply = lambda v: _seconds(source, v) // _DAY
        elif name == "hour" and kind.startswith("timestamp"):
            self.apply = lambda v: _seconds(source, v) // 3600
        else:
            raise SchemaError(f"the transform {text!r} of a {kind} is not known")


class Spec:
    def __init__(self, text, schema):
        node = json.loads(text)
        self.spec_id = node["spec-id"]
        self.fields = []
        for f in node["fields"]:
            path = schema.path(f["source-id"]) if "source-id" in f else None
            if not path:
                raise SchemaError(f"partition field {f['name']}: its source is not a column")
            self.fields.append((f["field-id"], path, Transform(f["transform"], path[-1].type)))

    def split(self, table):
        """[(tuple as PartitionValue dicts, rows)], rows in their order within each part."""
        if not self.fields or table.num_rows == 0:
            return [([], table)] if not self.fields else []
        key, columns, size = None, [], 1
        for _, path, transform in self.fields:
            codes, values = _codes(table, path, transform)
            columns.append((size, values))
            key = codes if key is None else pc.add(key, pc.multiply(codes, size))
            size *= len(values)
            if size >= 1 << 62:
                raise SchemaError("the data has too many distinct partition tuples")
        order = pc.sort_indices(key)
        table, key = table.take(order), key.take(order)
        runs = pc.value_counts(key)
        parts, at = [], 0
        for run in runs:
            code, n = run["values"].as_py(), run["counts"].as_py()
            parts.append((self._tuple(code, columns), table.slice(at, n)))
            at += n
        return parts

    def _tuple(self, code, columns):
        values = []
        for (field_id, _, transform), (size, distinct) in zip(self.fields, columns):
            v = distinct[code // size % len(distinct)]
            values.append({"field_id": field_id, "value":
                           None if v is None else single_value(transform.result, v)})
        return values


def _codes(table, path, transform):
    """A number for each row and the transformed values by number."""
    array = table.column(path[0].name).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    for f in path[1:]:
        array = pc.struct_field(array, f.name)
    array = raw_numbers(array)
    encoded = array.dictionary_encode(null_encoding="encode")
    numbers, values, code_of = {}, [], []
    for v in encoded.dictionary.to_pylist():
        v = None if v is None else transform.apply(v)
        # Floats are told apart by their bytes: NaN equals itself, the two zeros differ.
        k = None if v is None else single_value(transform.result, v)
        if k not in numbers:
            numbers[k] = len(values)
            values.append(v)
        code_of.append(numbers[k])
    return pa.array(code_of, pa.int64()).take(encoded.indices), values
