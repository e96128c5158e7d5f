"""Tables of many snapshots, made by writing their metadata: a commit at a time would take minutes."""

import json
import os
import random
import uuid

from support.catalog import local


def history(m, n, draw):
    """The metadata with n snapshots: its last one, and before it others that list the same files."""
    last = m["snapshots"][-1]
    seq, ms, rows = last["sequence-number"], last["timestamp-ms"], last.get("first-row-id", 0)
    past, parent = [], None
    for i in range(n - 1):
        s = {**last, "snapshot-id": draw.getrandbits(62), "sequence-number": seq + i, "timestamp-ms": ms + i,
             "first-row-id": rows + i, "added-rows": 1, "manifest-list": last["manifest-list"][:-5] + "-%d.avro" % i}
        s.pop("parent-snapshot-id", None)
        if parent is not None:
            s["parent-snapshot-id"] = parent
        parent = s["snapshot-id"]
        past.append(s)
    last = {**last, "sequence-number": seq + n - 1, "timestamp-ms": ms + n - 1, "first-row-id": rows + n - 1}
    if parent is not None:
        last["parent-snapshot-id"] = parent
    every = past + [last]
    return {**m, "table-uuid": str(uuid.uuid4()), "snapshots": every, "last-sequence-number": seq + n - 1,
            "last-updated-ms": ms + n - 1, "next-row-id": rows + n - 1 + last.get("added-rows", 0), "metadata-log": [],
            "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in every]}


def with_history(metadata, name, n, folder):
    """Writes the metadata file of a table with n snapshots, to be registered; its location."""
    at = os.path.join(folder, name)
    os.makedirs(at + "/metadata", exist_ok=True)
    path = "file://%s/metadata/00000-%s.metadata.json" % (at, uuid.uuid4())
    with open(local(path), "w") as f:
        json.dump({**history(metadata, n, random.Random(n)), "location": "file://" + at}, f)
    return path
