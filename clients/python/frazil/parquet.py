"""Arrow tables to Parquet data files: field ids, metrics, one file per partition tuple."""

import json
import math
import os
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from . import partition, schema as sch
from .errors import SchemaError

BOUND_LENGTH = 16
ROW_GROUP_ROWS = 1 << 20

# Columns of a file of position deletes.
DELETE_PATH, DELETE_POS = 2147483546, 2147483545


def write(data, info, *, row_ids=None, name=None):
    """Writes `data` below info["data_location"] and returns the DataFile records.

    info: a BeginReply. row_ids: a row id (or None) for each row of `data`; the files then carry
    the column _row_id, and _last_updated_sequence_number as null. name: how file names begin.
    A file is durable when this returns.
    """
    schema = sch.Schema(info["schema_json"])
    spec = partition.Spec(info["spec_json"], schema)
    table = sch.conform(data, schema)
    if row_ids is not None:
        table = _with_row_ids(table, row_ids, info)
    files = []
    for i, (values, part) in enumerate(spec.split(table)):
        if part.num_rows == 0:
            continue
        path = f"{info['data_location'].rstrip('/')}/{name or 'frazil'}-{i:05d}-{uuid.uuid4()}" \
               ".parquet"
        metadata, size = _write_file(part, schema, path)
        files.append(_data_file(part, schema, path, size, metadata, values, spec.spec_id, row_ids))
    return files


def _with_row_ids(table, row_ids, info):
    if info["format_version"] < 3:
        raise SchemaError("row ids need a table of format version 3")
    if hasattr(row_ids, "to_pylist"):
        row_ids = row_ids.to_pylist()
    ids = pa.array(list(row_ids), pa.int64())
    if len(ids) != table.num_rows:
        raise SchemaError(f"{table.num_rows} rows have {len(ids)} row ids")
    table = table.append_column(_reserved("_row_id", sch.ROW_ID), ids)
    return table.append_column(_reserved("_last_updated_sequence_number", sch.LAST_UPDATED),
                               pa.nulls(len(ids), pa.int64()))


def _reserved(name, field_id):
    return pa.field(name, pa.int64(), nullable=True,
                    metadata={b"PARQUET:field_id": str(field_id).encode()})


def write_deletes(deletes, info, *, spec_id=None, partition=(), name=None):
    """Writes one file of position deletes below info["data_location"] and returns its DeleteFile
    record, which names the data files. For tables of format version 2.

    deletes: {data file, exactly as in its manifest: positions}, all of one spec and partition.
    spec_id: theirs, the table's current one by default; partition: values as in a DataFile record.
    """
    if info["format_version"] != 2:
        raise SchemaError("files of position deletes need a table of format version 2")
    rows = [(path, pos) for path in sorted(deletes) for pos in sorted(set(deletes[path]))]
    if not rows or any(pos < 0 for _, pos in rows):
        raise SchemaError("there is no position to delete, or a negative one")
    paths = pa.array([path for path, _ in rows], pa.string())
    positions = pa.array([pos for _, pos in rows], pa.int64())
    table = pa.Table.from_arrays([paths, positions], schema=pa.schema([
        _required("file_path", pa.string(), DELETE_PATH), _required("pos", pa.int64(), DELETE_POS)]))
    location = f"{info['data_location'].rstrip('/')}/{name or 'frazil'}-{uuid.uuid4()}" \
               "-deletes.parquet"
    metadata, size = _write_table(table, location)
    low, high = (min(p for _, p in rows), max(p for _, p in rows))
    # Whole paths, not cut: equal ones tell readers that the file is of one data file.
    ends = {DELETE_PATH: (rows[0][0].encode(), rows[-1][0].encode()),
            DELETE_POS: (low.to_bytes(8, "little"), high.to_bytes(8, "little"))}
    sizes = [sum(metadata.row_group(g).column(i).total_compressed_size
                 for g in range(metadata.num_row_groups)) for i in range(2)]
    counts = {"value_counts": len(rows), "null_counts": 0}
    return {
        "path": location, "format": "PARQUET",
        "spec_id": json.loads(info["spec_json"])["spec-id"] if spec_id is None else spec_id,
        "partition": list(partition), "record_count": len(rows), "file_size": size,
        "column_sizes": [{"field_id": i, "value": n} for i, n in zip(ends, sizes)],
        **{k: [{"field_id": i, "value": n} for i in ends] for k, n in counts.items()},
        "lower_bounds": [{"field_id": i, "value": low} for i, (low, _) in ends.items()],
        "upper_bounds": [{"field_id": i, "value": high} for i, (_, high) in ends.items()],
        "data_files": sorted(deletes),
    }


def _required(name, kind, field_id):
    return pa.field(name, kind, nullable=False,
                    metadata={b"PARQUET:field_id": str(field_id).encode()})


def local_path(location):
    """The path of a file: location or of one without a scheme; None for others."""
    if location.startswith("file:"):
        path = location[5:]
        return "/" + path.lstrip("/") if path.startswith("//") else path
    return location if "://" not in location else None


def _write_file(table, schema, location):
    return _write_table(_annotated(table, schema), location)


def _write_table(table, location):
    path = local_path(location)
    collector = []
    options = dict(compression="zstd", store_decimal_as_integer=True, store_schema=False,
                   row_group_size=ROW_GROUP_ROWS, metadata_collector=collector)
    if path is None:
        fs, inner = pyarrow.fs.FileSystem.from_uri(location)
        pq.write_table(table, inner, filesystem=fs, **options)
        return collector[0], fs.get_file_info(inner).size
    folder = os.path.dirname(path)
    _make_folder(folder)
    with open(path, "xb") as f:
        pq.write_table(table, f, **options)
        f.flush()
        os.fsync(f.fileno())
    _sync_folder(folder)
    return collector[0], os.stat(path).st_size


def _make_folder(folder):
    """Creates a folder and those above it, each made durable in its parent."""
    missing = []
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.makedirs(path, exist_ok=True)
        _sync_folder(os.path.dirname(path))


def _sync_folder(folder):
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _annotated(table, schema):
    """UUID columns get Parquet's UUID annotation, where this version of pyarrow can give it."""
    if not hasattr(pa, "uuid"):
        return table
    for f in schema.fields:
        if f.type.kind == "uuid":
            i = table.schema.get_field_index(f.name)
            column = table.column(i)
            chunks = [pa.ExtensionArray.from_storage(pa.uuid(), c) for c in column.chunks]
            table = table.set_column(i, f.arrow(pa.uuid()), pa.chunked_array(chunks, pa.uuid()))
    return table


# Metrics ------------------------------------------------------------------------------------------

def _leaves(fields, path):
    """(field, path of names) of the leaf columns in file order; no path beneath lists and maps,
    which have sizes but no counts and bounds."""
    for f in fields:
        if not f.type.writable():
            continue
        here = None if path is None else path + [f.name]
        if f.type.kind == "struct":
            yield from _leaves(f.type.fields, here)
        elif f.type.nested:
            yield from _leaves(f.type.fields, None)
        else:
            yield f, here


def _data_file(table, schema, path, size, metadata, values, spec_id, row_ids):
    record = {
        "path": path, "format": "PARQUET", "spec_id": spec_id, "partition": values,
        "record_count": table.num_rows, "file_size": size, "schema_id": schema.schema_id,
        "column_sizes": [], "value_counts": [], "null_counts": [], "nan_counts": [],
        "lower_bounds": [], "upper_bounds": [],
        "split_offsets": [_row_group_start(metadata.row_group(i))
                          for i in range(metadata.num_row_groups)],
        "sort_order_id": None, "has_row_ids": row_ids is not None,
        "new_row_count": table.num_rows, "updated_row_count": 0,
    }
    if row_ids is not None:
        fresh = table.column("_row_id").null_count
        record["new_row_count"] = fresh
        record["updated_row_count"] = table.num_rows - fresh
    for i, (field, names) in enumerate(_leaves(schema.fields, [])):
        sizes = sum(metadata.row_group(g).column(i).total_compressed_size
                    for g in range(metadata.num_row_groups))
        record["column_sizes"].append({"field_id": field.id, "value": sizes})
        if names is not None:
            _add_metrics(record, field, _leaf_array(table, names))
    return record


def _row_group_start(group):
    column = group.column(0)
    if column.dictionary_page_offset is not None:
        return min(column.dictionary_page_offset, column.data_page_offset)
    return column.data_page_offset


def _leaf_array(table, names):
    array = table.column(names[0])
    for name in names[1:]:
        array = pc.struct_field(array, name)
    return array


def _add_metrics(record, field, array):
    def add(what, value):
        record[what].append({"field_id": field.id, "value": value})

    add("value_counts", len(array))
    add("null_counts", array.null_count)
    if field.type.kind in ("float", "double"):
        nan = pc.is_nan(array)
        add("nan_counts", pc.sum(nan).as_py() or 0)
        array = pc.drop_null(array.filter(pc.invert(nan)))
    low, high = bounds(field.type, array)
    if low is not None:
        add("lower_bounds", low)
    if high is not None:
        add("upper_bounds", high)


def bounds(kind, array):
    """Lower and upper bound as single-value binary; None where there is none."""
    both = pc.min_max(sch.raw_numbers(array))
    low, high = both["min"].as_py(), both["max"].as_py()
    if low is None:
        return None, None
    if kind.kind in ("float", "double"):
        # The sign of a zero bound covers both zeros.
        low = -0.0 if low == 0 else low
        high = 0.0 if high == 0 else high
        if math.isnan(low) or math.isnan(high):
            return None, None
    if kind.kind == "string":
        low, high = low[:BOUND_LENGTH], _round_up_text(high)
    elif kind.kind == "binary":
        low, high = low[:BOUND_LENGTH], _round_up_bytes(high)
    return (sch.single_value(kind, low),
            None if high is None else sch.single_value(kind, high))


def _round_up_text(text):
    """The text, or a short one that is not less: the cut prefix with its last character raised."""
    if len(text) <= BOUND_LENGTH:
        return text
    prefix = text[:BOUND_LENGTH]
    while prefix:
        code = ord(prefix[-1]) + 1
        if code == 0xD800:
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(code)
        prefix = prefix[:-1]
    return None


def _round_up_bytes(data):
    if len(data) <= BOUND_LENGTH:
        return data
    prefix = data[:BOUND_LENGTH].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None
