"""Reports of engines' tasks, in the shape in which the sources of each engine write them, from a DataFile record."""

import base64
import json
import os
import uuid
import zlib

import pyroaring

from support.foreign import local


def _counts(record, name):
    return {str(m["field_id"]): m["value"] for m in record[name]}


def _bounds(record, name):
    return {str(b["field_id"]): base64.b64encode(b["value"]).decode() for b in record[name]}


def _metrics(record):
    return {"recordCount": record["record_count"], "columnSizes": _counts(record, "column_sizes"),
            "valueCounts": _counts(record, "value_counts"), "nullValueCounts": _counts(record, "null_counts"),
            "nanValueCounts": _counts(record, "nan_counts"), "lowerBounds": _bounds(record, "lower_bounds"),
            "upperBounds": _bounds(record, "upper_bounds")}


def _spec(metadata, spec_id):
    return next(s for s in metadata["partition-specs"] if s["spec-id"] == spec_id)


def data(dialect, record, metadata, values=(), **more):
    """The report of a data file; values: the tuple as JSON values of the engines' form."""
    tuple_json = json.dumps({"partitionValues": list(values)}) if values else None
    if dialect == "VELOX":
        m = {"path": record["path"], "fileSizeInBytes": record["file_size"], "metrics": _metrics(record),
             "partitionSpecJson": record["spec_id"], "sortOrderId": 0, "fileFormat": record["format"],
             "content": "DATA"}
        if values:
            m["partitionDataJson"] = tuple_json
    elif dialect == "PRESTO":
        m = {"path": record["path"], "fileSizeInBytes": record["file_size"], "metrics": _metrics(record),
             "partitionSpecJson": record["spec_id"], "partitionDataJson": tuple_json,
             "fileFormat": record["format"], "referencedDataFile": None, "content": "DATA",
             "contentOffset": None, "contentSizeInBytes": None}
    elif dialect == "TRINO":
        m = {"path": record["path"], "fileFormat": record["format"], "fileSizeInBytes": record["file_size"],
             "metrics": _metrics(record), "partitionSpecJson": json.dumps(_spec(metadata, record["spec_id"])),
             "partitionDataJson": tuple_json, "content": "DATA", "referencedDataFile": None,
             "fileSplitOffsets": record["split_offsets"], "sortOrderId": 0, "serializedDeletionVector": None,
             "rewriteInfo": None}
    else:
        def columns(name, value):
            return {"keys": [x["field_id"] for x in record[name]], "values": [value(x) for x in record[name]]}

        m = {"spec-id": record["spec_id"], "content": "data", "file-path": record["path"],
             "file-format": record["format"].lower(), "partition": list(values),
             "file-size-in-bytes": record["file_size"], "record-count": record["record_count"],
             "split-offsets": record["split_offsets"], "sort-order-id": 0}
        for key, name in (("column-sizes", "column_sizes"), ("value-counts", "value_counts"),
                          ("null-value-counts", "null_counts"), ("nan-value-counts", "nan_counts")):
            m[key] = columns(name, lambda x: x["value"])
        for key, name in (("lower-bounds", "lower_bounds"), ("upper-bounds", "upper_bounds")):
            m[key] = columns(name, lambda x: x["value"].hex().upper())
    return json.dumps({**m, **more})


def deletes(dialect, record, metadata, values=(), **more):
    """The report of a file of position deletes, from a DeleteFile record; its data file when it names one alone."""
    d = {**record, "nan_counts": [], "split_offsets": []}
    target = record["data_files"][0] if len(record["data_files"]) == 1 else None
    if dialect == "ICEBERG":
        return data(dialect, d, metadata, values, **{"content": "position-deletes", "referenced-data-file": target,
                                                     **more})
    return data(dialect, d, metadata, values, content="POSITION_DELETES", referencedDataFile=target, **more)


def vector(data_file, blob, count, spec=None, **more):
    """Trino's report of what it deleted from a data file: the vector itself."""
    return json.dumps({
        "path": "", "fileFormat": "PARQUET", "fileSizeInBytes": 0, "metrics": {"recordCount": count},
        "partitionSpecJson": json.dumps(spec or {"spec-id": 0, "fields": []}), "partitionDataJson": None,
        "content": "POSITION_DELETES", "referencedDataFile": data_file, "fileSplitOffsets": None,
        "sortOrderId": 0, "serializedDeletionVector": base64.b64encode(blob).decode(), "rewriteInfo": None, **more})


def puffin(dialect, data_file, path, size, offset, length, count, spec_id=0, **more):
    """The report of a vector in a Puffin file; Velox says nothing of the tuple."""
    if dialect == "ICEBERG":
        m = {"spec-id": spec_id, "content": "position-deletes", "file-path": path, "file-format": "puffin",
             "partition": [], "file-size-in-bytes": size, "record-count": count,
             "referenced-data-file": data_file, "content-offset": offset, "content-size-in-bytes": length}
    else:
        m = {"path": path, "fileSizeInBytes": size, "metrics": {"recordCount": count},
             "partitionSpecJson": spec_id, "fileFormat": "PUFFIN", "referencedDataFile": data_file,
             "content": "POSITION_DELETES", "contentOffset": offset, "contentSizeInBytes": length}
        if dialect == "PRESTO":
            m["partitionDataJson"] = None
    return json.dumps({**m, **more})


def framed(bitmap):
    """A vector of one 32-bit bitmap, framed by hand and serialized by another implementation."""
    body = b"\xd1\xd3\x39\x64" + (1).to_bytes(8, "little") + bytes(4) + bitmap.serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def write_puffin(folder, deleted, fields=(2147483645,), **properties):
    """A Puffin file as an engine's sink leaves it, {data file: positions}: {data file: its part of puffin()}."""
    path = "%s/dv-%s.puffin" % (folder, uuid.uuid4())
    out, blobs, found = b"PFA1", [], {}
    for data_file, positions in deleted.items():
        blob = framed(pyroaring.BitMap(positions))
        blobs.append({"type": "deletion-vector-v1", "fields": list(fields), "snapshot-id": -1, "sequence-number": -1,
                      "offset": len(out), "length": len(blob), "properties": {
                          "referenced-data-file": data_file, "cardinality": str(len(set(positions))), **properties}})
        found[data_file] = {"offset": len(out), "length": len(blob), "count": len(set(positions))}
        out += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    out += b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    with open(local(path), "wb") as f:
        f.write(out)
        os.fsync(f.fileno())
    return {d: {"path": path, "size": len(out), **at} for d, at in found.items()}
