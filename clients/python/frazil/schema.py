"""Iceberg schemas and Arrow: types with field ids, defaults, and data made to fit a table.

Type names and JSON forms are those of the table spec ("Schemas and Data Types", Appendix C and D).
"""

import datetime
import decimal
import json
import re
import struct
import uuid

import pyarrow as pa
import pyarrow.compute as pc

from .errors import SchemaError

ROW_ID = 2147483540
LAST_UPDATED = 2147483539

_SIMPLE = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.binary(16),
}
# Types that have no Arrow form here: an optional column of one is left out of the file and reads
# as null.
_ABSENT = re.compile(r"unknown|variant|geometry.*|geography.*")


class Field:
    """One field of an Iceberg struct, list or map."""

    def __init__(self, node):
        self.id = node["id"]
        self.name = node["name"]
        self.required = node["required"]
        self.type = Type(node["type"])
        self.write_default = node.get("write-default")

    def arrow(self, arrow_type=None):
        return pa.field(self.name, arrow_type or self.type.arrow(), nullable=not self.required,
                        metadata={b"PARQUET:field_id": str(self.id).encode()})


class Type:
    """kind is "struct", "list", "map" or the primitive's text."""

    def __init__(self, node):
        self.fields = []
        self.length = self.precision = self.scale = None
        if isinstance(node, str):
            self.kind = node
            m = re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", node)
            if m:
                self.kind, self.precision, self.scale = "decimal", int(m[1]), int(m[2])
            m = re.fullmatch(r"fixed\[\s*(\d+)\s*\]", node)
            if m:
                self.kind, self.length = "fixed", int(m[1])
            return
        self.kind = node["type"]
        if self.kind == "struct":
            self.fields = [Field(f) for f in node["fields"]]
        elif self.kind == "list":
            self.fields = [Field({"id": node["element-id"], "name": "element",
                                  "required": node["element-required"], "type": node["element"]})]
        elif self.kind == "map":
            self.fields = [Field({"id": node["key-id"], "name": "key", "required": True,
                                  "type": node["key"]}),
                           Field({"id": node["value-id"], "name": "value",
                                  "required": node["value-required"], "type": node["value"]})]
        else:
            raise SchemaError(f"the type {self.kind!r} is not known")

    @property
    def nested(self):
        return self.kind in ("struct", "list", "map")

    def writable(self):
        """Whether values of this type can be written to a file."""
        return not _ABSENT.fullmatch(self.kind) and all(
            f.type.writable() or not f.required and self.kind == "struct" for f in self.fields)

    def arrow(self):
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.kind == "fixed":
            return pa.binary(self.length)
        if self.kind == "struct":
            return pa.struct([f.arrow() for f in self.fields if f.type.writable()])
        if self.kind == "list":
            return pa.list_(self.fields[0].arrow())
        if self.kind == "map":
            return pa.map_(self.fields[0].arrow(), self.fields[1].arrow())
        if self.kind not in _SIMPLE:
            raise SchemaError(f"the type {self.kind!r} cannot be written")
        return _SIMPLE[self.kind]


class Schema:
    def __init__(self, text):
        node = json.loads(text)
        self.schema_id = node.get("schema-id", 0)
        self.fields = [Field(f) for f in node["fields"]]

    def arrow(self):
        return pa.schema([f.arrow() for f in self.fields if f.type.writable()])

    def path(self, field_id):
        """The fields from the root down to the one with this id, through structs only."""
        def walk(fields, above):
            for f in fields:
                if f.id == field_id:
                    return above + [f]
                if f.type.kind == "struct":
                    found = walk(f.type.fields, above + [f])
                    if found:
                        return found
            return None
        return walk(self.fields, [])


# Defaults: JSON single-value form to Python -------------------------------------------------------

_EPOCH = datetime.datetime(1970, 1, 1)


def _temporal(text, kind):
    """Ticks since the epoch of an ISO text; parsed by hand because of nanoseconds."""
    m = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?"
                     r"(Z|[+-]\d\d:\d\d)?", text)
    if not m or bool(m[4]) != kind.startswith("timestamptz"):
        raise SchemaError(f"{text!r} is not a default of type {kind}")
    if m[4] not in (None, "Z", "+00:00", "-00:00"):
        raise SchemaError(f"{text!r}: a default has the offset +00:00")
    whole = datetime.datetime.fromisoformat(f"{m[1]}T{m[2]}") - _EPOCH
    nanos = int((m[3] or "").ljust(9, "0") or 0)
    seconds = whole.days * 86400 + whole.seconds
    return seconds * 10**9 + nanos if kind.endswith("_ns") else seconds * 10**6 + nanos // 1000


def default_value(kind, value):
    """A Python value that pa.scalar(…, kind.arrow()) takes, for a write-default in JSON."""
    k = kind.kind
    if value is None:
        return None
    if k == "date":
        return datetime.date.fromisoformat(value)
    if k == "time":
        return datetime.time.fromisoformat(value)
    if k.startswith("timestamp"):
        return _temporal(value, k)
    if k == "uuid":
        return uuid.UUID(value).bytes
    if k in ("fixed", "binary"):
        return bytes.fromhex(value)
    if k == "decimal":
        return decimal.Decimal(value)
    if k == "struct":
        return {f.name: default_value(f.type, value[str(f.id)]) if str(f.id) in value
                else default_value(f.type, f.write_default) for f in kind.fields
                if f.type.writable()}
    if k == "list":
        return [default_value(kind.fields[0].type, v) for v in value]
    if k == "map":
        return [(default_value(kind.fields[0].type, a), default_value(kind.fields[1].type, b))
                for a, b in zip(value["keys"], value["values"])]
    return value


# Data ---------------------------------------------------------------------------------------------

def _fail(path, text):
    raise SchemaError(f"column {path}: {text}")


def _missing(field, n, path):
    if field.write_default is not None:
        value = default_value(field.type, field.write_default)
        return pa.array([value], type=field.type.arrow()).take(pa.array([0] * n, pa.int64()))
    if field.required:
        _fail(path, "is required, has no default, and is not in the data")
    return pa.nulls(n, field.type.arrow())


def _flat(array):
    """One array, without an offset into its buffers."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0) if array.num_chunks else pa.nulls(0, array.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if array.offset:
        array = array.take(pa.array(range(len(array)), pa.int64()))
    return array


def _conform_struct(array, kind, path):
    children, present = [], {f.name for f in array.type}
    known = {f.name for f in kind.fields}
    for name in present - known:
        _fail(f"{path}.{name}", "is not in the table")
    for f in kind.fields:
        if not f.type.writable():
            if f.name in present:
                _fail(f"{path}.{f.name}", f"type {f.type.kind} cannot be written")
            continue
        child = (pc.struct_field(array, f.name) if f.name in present
                 else _missing(f, len(array), f"{path}.{f.name}"))
        children.append(_conform(child, f, f"{path}.{f.name}", parent_nulls=array))
    return pa.StructArray.from_arrays(children, fields=list(kind.arrow()),
                                      mask=pc.is_null(array))


def _zero(kind, target):
    if kind.kind == "date":
        return pa.scalar(0, pa.int32()).cast(target)
    if kind.kind == "time" or kind.kind.startswith("timestamp"):
        return pa.scalar(0, pa.int64()).cast(target)
    value = {"boolean": False, "string": "", "binary": b"", "uuid": bytes(16),
             "fixed": bytes(kind.length or 0), "decimal": decimal.Decimal(0)}.get(kind.kind, 0)
    return pa.scalar(value, target)


def _filled(array, kind):
    """Without nulls: the writer wants none in a required field, not even beneath a null struct,
    where the value is never seen."""
    if kind.kind == "struct":
        children = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    if kind.kind == "list":
        return pa.ListArray.from_arrays(array.offsets, array.values, type=array.type)
    if kind.kind == "map":
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=array.type)
    return pc.fill_null(array, _zero(kind, array.type))


def _conform(array, field, path, parent_nulls=None):
    array = _checked(array, field, path, parent_nulls)
    return _filled(array, field.type) if field.required and array.null_count else array


def _checked(array, field, path, parent_nulls):
    array = _flat(array)
    kind, target = field.type, field.type.arrow()
    if field.required and array.null_count:
        nulls = pc.is_null(array)
        if parent_nulls is not None:
            nulls = pc.and_(nulls, pc.is_valid(parent_nulls))
        if pc.any(nulls).as_py():
            _fail(path, "is required and holds nulls")
    try:
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), target)
        if kind.kind == "struct":
            if not pa.types.is_struct(array.type):
                _fail(path, f"a struct is expected, not {array.type}")
            return _conform_struct(array, kind, path)
        if kind.kind == "list":
            array = array.cast(pa.list_(array.type.value_field))
            values = _conform(array.values, kind.fields[0], f"{path}.element")
            return pa.ListArray.from_arrays(array.offsets, values, type=target,
                                            mask=pc.is_null(array))
        if kind.kind == "map":
            keys = _conform(array.keys, kind.fields[0], f"{path}.key")
            items = _conform(array.items, kind.fields[1], f"{path}.value")
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=target,
                                           mask=pc.is_null(array))
        return _cast(array, kind, target, path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as e:
        return _fail(path, f"{array.type} does not fit {kind.kind}: {e}")


def _cast(array, kind, target, path):
    """Widening and exact casts only: a number that would lose something is refused."""
    source = array.type
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        if (source.tz is None) != (target.tz is None):
            _fail(path, f"{source} does not fit {kind.kind}: zones differ")
    elif kind.kind in ("uuid", "fixed") and pa.types.is_string(source):
        _fail(path, f"{source} does not fit {kind.kind}")
    elif kind.kind == "string" and not (pa.types.is_string(source)
                                        or pa.types.is_large_string(source)
                                        or pa.types.is_string_view(source)):
        _fail(path, f"{source} does not fit {kind.kind}")
    elif kind.kind == "float" and pa.types.is_floating(source) and source.bit_width > 32:
        _fail(path, f"{source} does not fit {kind.kind}")
    elif pa.types.is_boolean(source) != (kind.kind == "boolean"):
        _fail(path, f"{source} does not fit {kind.kind}")
    elif kind.kind in ("int", "long", "decimal", "date", "time") and pa.types.is_string(source):
        _fail(path, f"{source} does not fit {kind.kind}")
    return array.cast(target)


def conform(data, schema):
    """`data` (a table or record batch) as a table of exactly the schema's columns and types. A
    column that is not there takes its write-default; SchemaError for what does not fit."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    names = data.column_names
    for name in names:
        if names.count(name) > 1:
            _fail(name, "stands twice in the data")
        if name not in {f.name for f in schema.fields}:
            _fail(name, "is not in the table")
    arrays = []
    for f in schema.fields:
        if not f.type.writable():
            if f.name in names or f.required:
                _fail(f.name, f"type {f.type.kind} cannot be written")
            continue
        column = (data.column(f.name) if f.name in names
                  else _missing(f, data.num_rows, f.name))
        arrays.append(_conform(column, f, f.name))
    return pa.Table.from_arrays(arrays, schema=schema.arrow())


# Single-value binary (Appendix D) -----------------------------------------------------------------

def decimal_bytes(unscaled):
    """Shortest two's complement, big-endian."""
    bits = unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def unscaled_of(value, scale):
    return int(value.scaleb(scale, decimal.Context(prec=60)))


def single_value(kind, value):
    """Bytes of a value: whole numbers for dates and times (days, ticks), Decimal for decimals."""
    k = kind.kind
    if k == "boolean":
        return b"\x01" if value else b"\x00"
    if k in ("int", "date"):
        return struct.pack("<i", value)
    if k == "long" or k == "time" or k.startswith("timestamp"):
        return struct.pack("<q", value)
    if k == "float":
        return struct.pack("<f", value)
    if k == "double":
        return struct.pack("<d", value)
    if k == "string":
        return value.encode("utf-8")
    if k == "decimal":
        return decimal_bytes(unscaled_of(value, kind.scale))
    return bytes(value)


def raw_numbers(array):
    """Dates, times and timestamps as whole numbers; other arrays as they are."""
    t = array.type
    if pa.types.is_date32(t):
        return array.cast(pa.int32())
    if pa.types.is_time64(t) or pa.types.is_timestamp(t):
        return array.cast(pa.int64())
    return array
