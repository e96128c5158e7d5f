"""Reading at scale: tables of many snapshots, long lists, namespaces of many siblings, and commits of properties; beside
Iceberg's REST test server on the same PostgreSQL and nginx serving the same bytes."""

import json
import os
import random
import urllib.parse
import uuid


def local(location):
    return urllib.parse.urlsplit(location).path


def with_history(daemon, source, name, n, folder):
    """Registers a table whose metadata is the source's with n snapshots: its last one, and before it others that list the
    same files. The location of the metadata file."""
    made = daemon.rest.want(200, "GET", "/v1/namespaces/bench/tables/" + source).json
    m = made["metadata"]
    last = m["snapshots"][-1]
    draw = random.Random(n)
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
    m = {**m, "table-uuid": str(uuid.uuid4()), "location": "file://" + os.path.join(folder, name), "snapshots": past + [last],
         "last-sequence-number": seq + n - 1, "last-updated-ms": ms + n - 1,
         "next-row-id": rows + n - 1 + last.get("added-rows", 0),
         "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in past + [last]],
         "metadata-log": []}
    at = os.path.join(folder, name, "metadata")
    os.makedirs(at, exist_ok=True)
    path = "file://" + os.path.join(at, "00000-%s.metadata.json" % uuid.uuid4())
    with open(local(path), "w") as f:
        json.dump(m, f)
    daemon.rest.want(200, "POST", "/v1/namespaces/bench/register", {"name": name, "metadata-location": path})
    return path
