"""Gzipped metadata files as foreign readers take them: by path, without the catalog's help, for a REST client never opens one."""

import gzip
import os
import shutil
import urllib.parse
import uuid

import clock_suite
import frazil
import pyarrow as pa
from catalog_suite import check
from frazil import parquet
from support.rest import Rest

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


class Files:
    def __init__(self, suite, rpc):
        self.suite, self.rest = suite, Rest(suite.uri)
        self.client = frazil.Client(rpc)
        self.space = "f" + uuid.uuid4().hex[:8]
        self.rest.want(200, "POST", "/v1/namespaces", {"namespace": [self.space]})

    def made(self, version, apart):
        """A table of ten rows, two of them deleted, and its current metadata file."""
        name = "v%d%s" % (version, "apart" if apart else "")
        properties = {"format-version": str(version), "write.metadata.compression-codec": "gzip"}
        if apart:
            properties["write.metadata.path"] = "file://%s/%s-metadata" % (self.suite.warehouse, self.space)
        at = "/v1/namespaces/%s/tables" % self.space
        self.rest.want(200, "POST", at, {"name": name, "schema": SCHEMA, "properties": properties})
        full = "%s.%s" % (self.space, name)
        info = self.client.table(full).info()
        files = parquet.write(pa.table({"id": pa.array(range(10), pa.int64())}), info)
        out = self.client.commit_once(full, kind="APPEND", data_files=files, info=info)
        want = list(range(10))
        if version >= 3:
            self.client.commit_once(full, kind="DELETE", deletes=[(files[0]["path"], [3, 7])], read_snapshot_id=out.snapshot_id)
            want = [i for i in want if i not in (3, 7)]
        location = self.rest.want(200, "GET", "%s/%s" % (at, name)).json["metadata-location"]
        check(location.endswith(".gz.metadata.json") and ("-metadata/" in location) == apart, "name", location)
        with open(urllib.parse.urlsplit(location).path, "rb") as f:
            gzip.decompress(f.read())
        return full, location, want

    def read(self, engine, full, location, want):
        if engine.name == "duckdb":
            rows = engine.sql("SELECT id FROM iceberg_scan('%s', metadata_compression_codec = 'gzip')" % location)
            got = [r["c0"] for r in rows]
        elif engine.name == "spark":
            # By folder alone Java reads the tables of Hadoop's naming: the same bytes under that name.
            folder = os.path.join(self.suite.folder, uuid.uuid4().hex, "metadata")
            os.makedirs(folder)
            shutil.copy(urllib.parse.urlsplit(location).path, os.path.join(folder, "v1.gz.metadata.json"))
            with open(os.path.join(folder, "version-hint.text"), "w") as f:
                f.write("1")
            got = [r["id"] for r in engine.ask("path", path=os.path.dirname(folder))["rows"]]
        else:
            got = [r["id"] for r in engine.read(full)]
        check(sorted(got) == want, engine.name, location, sorted(got))

    def all(self):
        for version, apart in ((2, False), (3, False), (3, True)):
            full, location, want = self.made(version, apart)
            for engine in self.suite.engines.values():
                if engine.name in ("pyiceberg", "polars"):
                    continue  # they ask the catalog; a process test has PyIceberg open the file
                self.read(engine, full, location, want)
                self.suite.report.count(engine.name, "ok")

    # ---- views
    def view(self, apart):
        """A view of two versions and two properties, its current metadata file and what the catalog says of it."""
        at, name = "/v1/namespaces/%s/views" % self.space, "view%s" % ("apart" if apart else "")
        properties = {"write.metadata.compression-codec": "gzip", "comment": "ü–🧊"}
        if apart:
            properties["write.metadata.path"] = "file://%s/%s-of-views" % (self.suite.warehouse, self.space)

        def version(n):
            return {"version-id": n, "timestamp-ms": 1700000000000 + n, "schema-id": 0, "summary": {"engine": "tests"},
                    "default-namespace": [self.space], "representations": [
                        {"type": "sql", "sql": "select %d -- ü" % n, "dialect": d} for d in ("spark", "trino")]}
        self.rest.want(200, "POST", at, {"name": name, "schema": SCHEMA, "properties": properties, "view-version": version(1)})
        self.rest.want(200, "POST", "%s/%s" % (at, name), {"requirements": [], "updates": [
            {"action": "add-view-version", "view-version": version(2)}, {"action": "set-current-view-version", "view-version-id": -1}]})
        got = self.rest.want(200, "GET", "%s/%s" % (at, name)).json
        location, want = got["metadata-location"], got["metadata"]
        check(location.endswith(".gz.metadata.json") and len(want["versions"]) == 2, "view", location, want)
        path = urllib.parse.urlsplit(location).path
        with open(path, "rb") as f:
            check(f.read(2) == b"\x1f\x8b", "not gzipped:", path)
        return path, want

    def all_views(self):
        """By Java's parser, which opens the file itself, and by PyIceberg's, which is given the text."""
        for apart in (False, True):
            path, want = self.view(apart)
            read = clock_suite.views([path])[0]
            check(isinstance(read, dict) and view_facts(read) == view_facts(want), "Java reads", path, read, "not", want)
            if self.suite.has("pyiceberg"):
                read = self.suite.engines["pyiceberg"].ask("run", given={"path": path}, text="""
import gzip
from pyiceberg.view.metadata import ViewMetadata
with gzip.open(path) as f:
    result = ViewMetadata.model_validate_json(f.read()).model_dump(mode="json", by_alias=True)
""")
                check(view_facts(read) == view_facts(want), "PyIceberg reads", path, read, "not", want)
                self.suite.report.count("pyiceberg", "ok")


def view_facts(m):
    """What must not differ, whoever has read it."""
    return (m["view-uuid"], m["format-version"], m["location"], m["current-version-id"], m["properties"],
            [(v["version-id"], v["timestamp-ms"], v["schema-id"], v["summary"], v["default-namespace"], [
                (r["type"], r["sql"], r["dialect"]) for r in v["representations"]]) for v in m["versions"]],
            [[(f["id"], f["name"], f["type"], f["required"]) for f in s["fields"]] for s in m["schemas"]],
            [(x["version-id"], x["timestamp-ms"]) for x in m["version-log"]])


def run(suite, rpc):
    if suite.warehouse:
        suite.part("gzipped metadata files", Files(suite, rpc).all)
        suite.part("gzipped metadata files of views", Files(suite, rpc).all_views)
