"""Gzipped metadata files as foreign readers take them: by path, without the catalog's help, for a REST client never opens one."""

import gzip
import os
import shutil
import urllib.parse
import uuid

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


def run(suite, rpc):
    if suite.warehouse:
        suite.part("gzipped metadata files", Files(suite, rpc).all)
