"""iceberg-rust 0.11 through DataFusion: its own manifest, Puffin, vector and Parquet reading. The catalog is asked
for the metadata's location alone. argv: the catalog's URI.

The library comes as the wheel pyiceberg-core; its table provider speaks DataFusion 54 only.
"""

import importlib.metadata
import json
import sys
import tempfile
import urllib.parse
import urllib.request
import warnings

from worker import Cannot, arrow_rows, rows_answer, serve, split


class Rust:
    def __init__(self, uri):
        import datafusion
        from pyiceberg_core.datafusion import IcebergDataFusionTable
        warnings.simplefilter("ignore")
        self.uri, self.datafusion, self.provider = uri, datafusion, IcebergDataFusionTable

    def op_hello(self, _):
        return {"engine": "iceberg-rust", "version": importlib.metadata.version("pyiceberg-core")}

    def op_read(self, r):
        if r.get("lineage"):
            raise Cannot("no row lineage columns")
        import pyarrow as pa
        namespace, name = split(r["table"])
        url = "%s/v1/namespaces/%s/tables/%s" % (
            self.uri, urllib.parse.quote(namespace.replace(".", "\x1f"), safe=""), urllib.parse.quote(name, safe=""))
        with urllib.request.urlopen(url) as got:
            loaded = json.load(got)
        location = loaded["metadata-location"]
        if r.get("snapshot"):
            # The table provider reads the current snapshot only: it gets a metadata file that calls this one so.
            with tempfile.NamedTemporaryFile("w", suffix=".metadata.json", delete=False) as f:
                json.dump({**loaded["metadata"], "current-snapshot-id": r["snapshot"], "refs": {
                    "main": {"type": "branch", "snapshot-id": r["snapshot"]}}, "snapshot-log": []}, f)
            location = "file://" + f.name
        if location.startswith("file:") and not location.startswith("file://"):
            location = "file://" + location[5:]
        context = self.datafusion.SessionContext()
        context.register_table("t", self.provider(
            identifier=r["table"].split("."), metadata_location=location, file_io_properties={}))
        frame = context.sql("select * from t")
        return rows_answer(arrow_rows(pa.Table.from_batches(frame.collect(), schema=frame.schema())))


serve(Rust(sys.argv[1]))
