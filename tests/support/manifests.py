"""Manifests of data files of an unpartitioned table, as a worker would write them: under the Avro schema and the header
of a manifest that Iceberg Java wrote, with nothing set that readers inherit."""

import json
import os

import fastavro

from support.foreign import local, write_avro

GOLDEN = os.path.join(os.path.dirname(__file__), "..", "golden", "manifests", "v%d-plain.avro")


def java(md, files, path, version=None, entry=None, file=None, header=None):
    """Writes `files` (DataFile records) for a table with metadata `md`; entry, file and header replace members of all.
    Returns the ManifestRef."""
    with open(GOLDEN % (md["format-version"] if version is None else version), "rb") as f:
        r = fastavro.reader(f)
        schema, template = r.writer_schema, next(iter(r))
        head = {k: v for k, v in r.metadata.items() if not k.startswith("avro.")}
    current = next(s for s in md["schemas"] if s["schema-id"] == md["current-schema-id"])
    # Java leaves the id beside the schema out; the specification wants it there.
    head = {**head, "schema": json.dumps(current), "schema-id": str(current["schema-id"]), **(header or {})}
    head = {k: v for k, v in head.items() if v is not None}
    entries = [{
        **{k: None for k in template}, "status": 1, **(entry or {}),
        "data_file": {**{k: None for k in template["data_file"]}, "content": 0, "file_path": f["path"],
                      "file_format": "PARQUET", "partition": {}, "record_count": f["record_count"],
                      "file_size_in_bytes": f["file_size"],
                      "lower_bounds": [{"key": b["field_id"], "value": b["value"]} for b in f["lower_bounds"]],
                      "upper_bounds": [{"key": b["field_id"], "value": b["value"]} for b in f["upper_bounds"]],
                      **(file or {})}} for f in files]
    os.makedirs(os.path.dirname(local(path)), exist_ok=True)
    return {"path": path, "length": write_avro(path, schema, head, entries), "added_files": len(files),
            "added_rows": sum(f["record_count"] for f in files)}
