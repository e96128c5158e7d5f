"""One namespace of a catalog as its REST clients see it: bodies to send, short calls, refusals, the files on disk."""

import json
import os
import urllib.parse

from support.openapi import Checked
from support.rest import segment

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "type": "long", "required": False},
    {"id": 2, "name": "data", "type": "string", "required": False}]}

# Every route of the specification.
ROUTES = """
GET /v1/config
POST /v1/oauth/tokens
GET POST /v1/{prefix}/namespaces
GET HEAD DELETE /v1/{prefix}/namespaces/{namespace}
POST /v1/{prefix}/namespaces/{namespace}/properties
GET POST /v1/{prefix}/namespaces/{namespace}/tables
GET /v1/{prefix}/namespaces/{namespace}/functions
GET /v1/{prefix}/namespaces/{namespace}/functions/{function}
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan
GET DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks
POST /v1/{prefix}/namespaces/{namespace}/register
GET POST DELETE HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister
GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign
POST /v1/{prefix}/tables/rename
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics
POST /v1/{prefix}/transactions/commit
GET POST /v1/{prefix}/namespaces/{namespace}/views
GET POST DELETE HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}
POST /v1/{prefix}/views/rename
POST /v1/{prefix}/namespaces/{namespace}/register-view
"""


def error(reply, code, kind=None, text=None):
    """The error of a reply, which must have this status, type and part of the message."""
    assert reply.status == code, reply
    e = reply.error
    assert e["code"] == code and kind in (None, e["type"]), e
    assert text is None or text in e["message"], e
    return e


def local(location):
    return urllib.parse.urlsplit(location).path


def representation(text, dialect="spark"):
    return {"type": "sql", "sql": text, "dialect": dialect}


def version(*queries, n=1, schema=0, space="x"):
    return {"version-id": n, "timestamp-ms": 1700000000000 + n, "schema-id": schema, "summary": {}, "default-namespace": [space],
            "representations": [representation(q) for q in queries or ["select 1"]]}


def column(fid, name, kind="long", **more):
    return {"id": fid, "name": name, "required": False, "type": kind, **{k.replace("_", "-"): v for k, v in more.items()}}


def struct(*fields, **more):
    return {"type": "struct", "fields": list(fields), **{k.replace("_", "-"): v for k, v in more.items()}}


def set_properties(**kv):
    return {"action": "set-properties", "updates": kv}


def creation(meta):
    """The updates by which clients commit a staged table."""
    return [{"action": "assign-uuid", "uuid": meta["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": meta["format-version"]},
            {"action": "add-schema", "schema": meta["schemas"][0], "last-column-id": meta["last-column-id"]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": meta["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": meta["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": meta["location"]},
            {"action": "set-properties", "updates": meta["properties"]}]


class Space:
    """A namespace of the daemon, made anew."""

    def __init__(self, daemon, *levels):
        self.daemon, self.levels = daemon, list(levels)
        self.rest = Checked(daemon.uri)
        self.at = "/v1/namespaces/" + segment("\x1f".join(levels))
        self.rest.want(200, "POST", "/v1/namespaces", {"namespace": self.levels})

    def table(self, name):
        return "%s/tables/%s" % (self.at, segment(name))

    def view(self, name):
        return "%s/views/%s" % (self.at, segment(name))

    def create(self, name, want=200, version=2, **more):
        body = {"name": name, "schema": SCHEMA, **more}
        body["properties"] = {"format-version": str(version), **(more.get("properties") or {})}
        return self.rest.want(want, "POST", self.at + "/tables", body)

    def create_view(self, name, *queries, want=200, **more):
        return self.rest.want(want, "POST", self.at + "/views", {
            "name": name, "schema": SCHEMA, "view-version": version(*queries), "properties": {}, **more})

    def load(self, name, **query):
        return self.rest.want(200, "GET", self.table(name), **query).json

    def meta(self, name):
        return self.load(name)["metadata"]

    def commit(self, name, *updates, requirements=(), want=200):
        return self.rest.want(want, "POST", self.table(name), {"requirements": list(requirements), "updates": list(updates)})

    def rename(self, a, b, kind="tables", to=None):
        return self.rest.post("/v1/%s/rename" % kind, {"source": {"namespace": self.levels, "name": a},
                                                       "destination": {"namespace": to or self.levels, "name": b}})

    def names(self, kind="tables"):
        return [i["name"] for i in self.rest.want(200, "GET", "%s/%s" % (self.at, kind)).json["identifiers"]]

    def snapshot(self, name, sid, parent=None, **more):
        """Updates that add a snapshot of no files and make it main's."""
        meta = self.meta(name)
        one = {"snapshot-id": sid, "sequence-number": meta["last-sequence-number"] + 1, "timestamp-ms": meta["last-updated-ms"] + 1,
               "manifest-list": meta["location"] + "/metadata/snap-%d.avro" % sid, "summary": {"operation": "append"}, "schema-id": 0, **more}
        if parent is not None:
            one["parent-snapshot-id"] = parent
        if meta["format-version"] >= 3:
            one.setdefault("first-row-id", meta["next-row-id"])
            one.setdefault("added-rows", 0)
        return [{"action": "add-snapshot", "snapshot": one},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": sid}]

    def stored(self):
        """Every file of the warehouse."""
        return sorted(os.path.join(at, f) for at, _, names in os.walk(self.daemon.warehouse) for f in names)


def document(location):
    with open(local(location), encoding="utf-8") as f:
        return json.load(f)
