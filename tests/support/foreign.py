"""A writer that shares nothing with the daemon: manifests and lists by fastavro, vectors in Puffin, committed over REST.

The Avro schemas are copied from a manifest that the table already has; the contents are this module's own.
"""

import json
import os
import random
import struct
import time
import uuid

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from frazil import dv, parquet


def local(uri):
    return parquet.local_path(uri)


def read_avro(uri):
    """(schema, header, records)"""
    with open(local(uri), "rb") as f:
        r = fastavro.reader(f)
        return r.writer_schema, {k: v for k, v in r.metadata.items() if not k.startswith("avro.")}, list(r)


def write_avro(uri, schema, header, records):
    with open(local(uri), "wb") as f:
        fastavro.writer(f, schema, records, codec="deflate", metadata=header)
    return os.path.getsize(local(uri))


def puffin(uri, vectors):
    """Writes {data file: positions} and returns {data file: (offset, length, cardinality)}."""
    body, blobs, places = b"PFA1", [], {}
    for path, positions in vectors.items():
        blob = dv.encode(sorted(positions))
        places[path] = (len(body), len(blob), len(positions))
        blobs.append({"type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1,
                      "offset": len(body), "length": len(blob),
                      "properties": {"referenced-data-file": path, "cardinality": str(len(positions))}})
        body += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    body += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
    with open(local(uri), "wb") as f:
        f.write(body)
    return places


class Writer:
    """Commits to a lab.Table as another engine would; `ref` is the branch."""

    def __init__(self, table, ref="main"):
        self.table, self.ref = table, ref

    def load(self):
        self.md = self.table.metadata()
        refs = self.md.get("refs", {})
        head = refs.get(self.ref)
        self.parent = next(s for s in self.md["snapshots"] if s["snapshot-id"] == head["snapshot-id"])
        self.list_schema, self.list_header, self.list = read_avro(self.parent["manifest-list"])

    def new_path(self, ext, folder="metadata"):
        base = self.md["location"].rstrip("/") + "/" + folder
        os.makedirs(local(base), exist_ok=True)
        return "%s/foreign-%s.%s" % (base, uuid.uuid4(), ext)

    def live(self):
        """(row of the list, schema, header, entry) of every live entry, sequence numbers inherited."""
        for row in self.list:
            schema, header, entries = read_avro(row["manifest_path"])
            for e in entries:
                if e["status"] == 2:
                    continue
                if e["sequence_number"] is None:
                    e["sequence_number"] = e["file_sequence_number"] = row["sequence_number"]
                if e["snapshot_id"] is None:
                    e["snapshot_id"] = row["added_snapshot_id"]
                yield row, schema, header, e

    def commit(self, operation, files=(), deletes=None, position_deletes=None, equality=None, want=200, parent=None,
               summary=None, timestamp_ms=None):
        """files: DataFile records; deletes: {path: positions} as vectors; position_deletes: the same as a V2 file.
        equality: ids of rows that are deleted by value."""
        self.load()
        sid = random.getrandbits(62) | 1
        seq = self.md["last-sequence-number"] + 1
        version = self.md["format-version"]
        rows, all_rows = [], list(self.list)
        schema, header, template = None, None, None
        for row in self.list:
            if row["content"] == 0:
                schema, header, entries = read_avro(row["manifest_path"])
                template = entries[0]
        added_rows = 0
        if files:
            entries = [self.entry(template, sid, {
                "content": 0, "file_path": f["path"], "file_format": "PARQUET", "record_count": f["record_count"],
                "file_size_in_bytes": f["file_size"]}) for f in files]
            added_rows = sum(f["record_count"] for f in files)
            rows.append(self.manifest(schema, header, 0, entries, sid, seq, self.md.get("next-row-id", 0) if version >= 3 else None))
        if deletes:
            deletes = {p: set(v) for p, v in deletes.items()}
            entries = []
            for row in [r for r in all_rows if r["content"] == 1]:
                _, _, old = read_avro(row["manifest_path"])
                hit = [e for e in old if e["status"] != 2 and e["data_file"]["referenced_data_file"] in deletes
                       and e["data_file"]["file_format"].upper() == "PUFFIN"]
                if not hit:
                    continue
                all_rows.remove(row)
                for e in [x for x in old if x["status"] != 2]:
                    if e["sequence_number"] is None:
                        e["sequence_number"] = e["file_sequence_number"] = row["sequence_number"]
                    e["snapshot_id"] = e["snapshot_id"] or row["added_snapshot_id"]
                    d = e["data_file"]
                    e["status"] = 0
                    if e in hit:
                        with open(local(d["file_path"]), "rb") as f:
                            f.seek(d["content_offset"])
                            deletes[d["referenced_data_file"]] |= set(dv.decode(f.read(d["content_size_in_bytes"])))
                        e["status"], e["snapshot_id"] = 2, sid
                    entries.append(e)
            path = self.new_path("puffin", "data")
            for name, (offset, length, n) in puffin(path, deletes).items():
                entries.append(self.entry(template, sid, {
                    "content": 1, "file_path": path, "file_format": "PUFFIN", "record_count": n,
                    "file_size_in_bytes": os.path.getsize(local(path)), "referenced_data_file": name,
                    "content_offset": offset, "content_size_in_bytes": length}))
            rows.append(self.manifest(schema, header, 1, entries, sid, seq, None))
        if position_deletes:
            path = self.new_path("parquet", "data")
            pairs = sorted((p, i) for p, v in position_deletes.items() for i in v)
            pq.write_table(pa.table({"file_path": [p for p, _ in pairs], "pos": pa.array([i for _, i in pairs], pa.int64())},
                                    schema=pa.schema([
                                        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
                                        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})])), local(path))
            entry = self.entry(template, sid, {"content": 1, "file_path": path, "file_format": "PARQUET",
                                               "record_count": len(pairs), "file_size_in_bytes": os.path.getsize(local(path))})
            rows.append(self.manifest(schema, header, 1, [entry], sid, seq, None))
        if equality:
            path = self.new_path("parquet", "data")
            pq.write_table(pa.table({"id": pa.array(equality, pa.int64())},
                                    schema=pa.schema([pa.field("id", pa.int64(), True, {"PARQUET:field_id": "1"})])), local(path))
            entry = self.entry(template, sid, {"content": 2, "file_path": path, "file_format": "PARQUET", "equality_ids": [1],
                                               "record_count": len(equality), "file_size_in_bytes": os.path.getsize(local(path))})
            rows.append(self.manifest(schema, header, 1, [entry], sid, seq, None))
        list_path = self.new_path("avro")
        write_avro(list_path, self.list_schema, {**self.list_header, "snapshot-id": str(sid), "sequence-number": str(seq),
                                                 "parent-snapshot-id": str(self.parent["snapshot-id"])}, all_rows + rows)
        snapshot = {"snapshot-id": sid, "parent-snapshot-id": self.parent["snapshot-id"], "sequence-number": seq,
                    "timestamp-ms": timestamp_ms or int(time.time() * 1000), "manifest-list": list_path,
                    "summary": {"operation": operation, **(summary or {}),
                                **({"added-data-files": str(len(files)), "added-records": str(added_rows)} if files else {})},
                    "schema-id": self.md["current-schema-id"]}
        if version >= 3:
            snapshot.update({"first-row-id": self.md["next-row-id"], "added-rows": added_rows})
        self.table.update(
            [{"action": "add-snapshot", "snapshot": snapshot},
             {"action": "set-snapshot-ref", "ref-name": self.ref, "type": "branch", "snapshot-id": sid}],
            [{"type": "assert-ref-snapshot-id", "ref": self.ref, "snapshot-id": parent or self.parent["snapshot-id"]}], want)
        return sid

    def entry(self, template, sid, file):
        blank = {k: None for k in template["data_file"]}
        return {**{k: None for k in template}, "status": 1, "snapshot_id": sid,
                "data_file": {**blank, "partition": template["data_file"]["partition"], **file}}

    def manifest(self, schema, header, content, entries, sid, seq, first_row_id):
        path = self.new_path("avro")
        header = {**header, "content": "deletes" if content else "data"}
        n = write_avro(path, schema, header, entries)
        count = {s: [e for e in entries if e["status"] == s] for s in (0, 1, 2)}
        low = [e["sequence_number"] for e in count[0]] + [seq]
        row = {k: None for k in self.list[0]}
        row.update({"manifest_path": path, "manifest_length": n, "partition_spec_id": self.list[0]["partition_spec_id"],
                    "content": content, "sequence_number": seq, "min_sequence_number": min(low), "added_snapshot_id": sid,
                    "partitions": []})
        for s, word in ((1, "added"), (0, "existing"), (2, "deleted")):
            row["%s_files_count" % word] = len(count[s])
            row["%s_rows_count" % word] = sum(e["data_file"]["record_count"] for e in count[s])
        if "first_row_id" in row:
            row["first_row_id"] = first_row_id
        return row

    def append(self, n=5, **more):
        files = self.table.files(n)
        sid = self.commit("append", files, **more)
        if self.ref == "main":
            self.table.added(*files)
        return files[0]["path"], sid

    def delete(self, path, positions, **more):
        sid = self.commit("delete", deletes={path: positions}, **more)
        if self.ref == "main":
            self.table.deleted(path, positions)
        return sid

    def change(self, path, positions, **more):
        """An UPDATE: a vector and a new file in one snapshot; the rows keep their ids."""
        t = self.table
        files = t.files(len(positions), ids=[t.rows[path][p] for p in positions],
                        row_ids=[t.row_id(path) + p for p in positions])
        sid = self.commit("overwrite", files, {path: positions}, **more)
        if self.ref == "main":
            t.deleted(path, positions)
            t.added(*files)
        return sid
