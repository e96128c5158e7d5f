"""A small Iceberg REST catalog of our own to move from: honest by default, and as hostile as a test asks for.

It shares no code with the daemon. Tables are metadata files without snapshots, written below a folder.
"""

import http.server
import json
import os
import threading
import time
import urllib.parse
import uuid

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def table_metadata(location, **more):
    return {"format-version": 2, "table-uuid": str(uuid.uuid4()), "location": location, "last-sequence-number": 0,
            "last-updated-ms": 1700000000000, "last-column-id": 1, "current-schema-id": 0, "schemas": [SCHEMA],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
            "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {"made": "by hand"},
            "current-snapshot-id": -1, "refs": {}, "snapshots": [], "statistics": [], "partition-statistics": [],
            "snapshot-log": [], "metadata-log": [], **more}


def view_metadata(location, sql="select 1", dialect="spark", **more):
    return {"format-version": 1, "view-uuid": str(uuid.uuid4()), "location": location, "current-version-id": 1,
            "versions": [{"version-id": 1, "timestamp-ms": 1700000000000, "schema-id": 0, "summary": {},
                          "default-namespace": ["x"], "representations": [{"type": "sql", "sql": sql, "dialect": dialect}]}],
            "version-log": [{"version-id": 1, "timestamp-ms": 1700000000000}], "schemas": [SCHEMA], "properties": {}, **more}


class Answer:
    """What a hook gives instead of the honest answer."""

    def __init__(self, status=200, value=None, headers=None, body=None, delay=0, drop=False, endless=False):
        self.status, self.headers, self.delay, self.drop, self.endless = status, headers or {}, delay, drop, endless
        self.body = body if body is not None else json.dumps(value if value is not None else {}).encode()


def refusal(status, kind="SomeException", message="no", **more):
    return Answer(status, {"error": {"message": message, "type": kind, "code": status}}, **more)


class FakeCatalog:
    """namespaces: {levels: properties}; tables and views: {levels + (name,): (metadata location, metadata)}."""

    def __init__(self, folder, prefix=None, separator=None, page=None, endpoints=True, overrides=None, base=""):
        self.folder, self.prefix, self.page, self.base = str(folder), prefix, page, base
        self.separator = separator
        self.namespaces, self.tables, self.views = {}, {}, {}
        self.overrides, self.endpoints = overrides or {}, endpoints
        self.hook = None  # hook(catalog, method, path, query, headers, body) -> Answer or None
        self.seen = []  # (method, raw target)
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def uri(self):
        return "http://127.0.0.1:%d%s" % (self.server.server_address[1], self.base)

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # ---- what it holds
    def namespace(self, *levels, **properties):
        for n in range(1, len(levels)):
            self.namespaces.setdefault(tuple(levels[:n]), {})
        self.namespaces[tuple(levels)] = properties

    def put(self, kind, name, metadata, version=0):
        folder = urllib.parse.urlsplit(metadata["location"]).path + "/metadata"
        os.makedirs(folder, exist_ok=True)
        path = "%s/%05d-%s.metadata.json" % (folder, version, uuid.uuid4())
        with open(path, "w", encoding="utf-8") as f:
            json.dump(metadata, f)
        kind[tuple(name)] = ("file://" + path, metadata)
        return "file://" + path

    def table(self, *name, location=None, **more):
        return self.put(self.tables, name, table_metadata(location or "file://%s/%s" % (self.folder, uuid.uuid4()), **more))

    def view(self, *name, **more):
        return self.put(self.views, name, view_metadata("file://%s/%s" % (self.folder, uuid.uuid4()), **more))

    def commit(self, *name, **changes):
        """The table's next metadata file, with the one before in its log."""
        before, metadata = self.tables[tuple(name)]
        log = metadata["metadata-log"] + [{"timestamp-ms": metadata["last-updated-ms"], "metadata-file": before}]
        after = {**metadata, "last-updated-ms": metadata["last-updated-ms"] + 1, "metadata-log": log, **changes}
        return self.put(self.tables, name, after, len(log))

    # ---- the protocol
    def answer(self, method, target, headers, body):
        parts = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        with self.lock:
            self.seen.append((method, target))
        if self.hook:
            got = self.hook(self, method, parts.path, query, headers, body)
            if got is not None:
                return got
        path = parts.path.removeprefix(self.base)
        if path == "/v1/config":
            overrides = dict(self.overrides)
            if self.prefix:
                overrides["prefix"] = self.prefix
            if self.separator:
                overrides["namespace-separator"] = self.separator
            value = {"defaults": {}, "overrides": overrides}
            if self.endpoints:
                value["endpoints"] = ["GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}",
                                      "GET /v1/{prefix}/namespaces/{namespace}/tables",
                                      "GET /v1/{prefix}/namespaces/{namespace}/views"]
            return Answer(value=value)
        root = "/v1/" + (self.prefix + "/" if self.prefix else "") + "namespaces"
        if not path.startswith(root):
            return refusal(404, "NotFound", path)
        segments = path[len(root):].split("/")[1:]
        if not segments:
            return self.children(query)
        ns = self.levels(segments[0])
        if ns not in self.namespaces:
            return refusal(404, "NoSuchNamespaceException", "Namespace does not exist")
        if len(segments) == 1:
            return Answer(value={"namespace": list(ns), "properties": self.namespaces[ns]})
        held = {"tables": self.tables, "views": self.views}[segments[1]]
        if len(segments) == 2:
            names = sorted(n[-1] for n in held if n[:-1] == ns)
            return self.paged("identifiers", [{"namespace": list(ns), "name": n} for n in names], query)
        name = urllib.parse.unquote(segments[2])
        if ns + (name,) not in held:
            return refusal(404, "NoSuchTableException" if segments[1] == "tables" else "NoSuchViewException", "no " + name)
        location, metadata = held[ns + (name,)]
        return Answer(value={"metadata-location": location, "metadata": metadata, "config": {"secret": "never shown"}})

    def levels(self, raw):
        return tuple(urllib.parse.unquote(p) for p in raw.split(self.separator or "%1F"))

    def children(self, query):
        parent = query.get("parent", "")
        above = tuple(parent.split(urllib.parse.unquote(self.separator or "%1F"))) if parent else ()
        return self.paged("namespaces", sorted(list(n) for n in self.namespaces if n[:-1] == above), query)

    def paged(self, key, rows, query):
        if self.page is None or "pageToken" not in query:
            return Answer(value={key: rows})
        at = int(query["pageToken"] or 0)
        more = at + self.page < len(rows)
        return Answer(value={key: rows[at:at + self.page], "next-page-token": str(at + self.page) if more else None})

    def handler(catalog):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                a = catalog.answer(self.command, self.path, self.headers, body)
                if a.delay:
                    time.sleep(a.delay)
                if a.drop:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(a.status)
                for k, v in a.headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Type", "application/json")
                if a.endless:
                    self.close_connection = True
                    self.end_headers()
                    try:
                        for _ in range(4096):
                            self.wfile.write(b" " * 65536)
                    except OSError:
                        pass
                    return
                self.send_header("Content-Length", str(len(a.body)))
                self.end_headers()
                self.wfile.write(a.body)

            do_GET = do_POST = do_DELETE = do_HEAD = serve
        return Handler
