"""Polars: a Parquet and deletion vector reader of its own in Rust; planning by the plugin polars-iceberg over
PyIceberg's catalog (without the plugin PyIceberg plans, which gives one data file several vectors, and
Polars refuses). argv: the catalog's URI."""

import sys

from worker import LINEAGE, Cannot, Map, rows_answer, serve


class Polars:
    def __init__(self, uri):
        import polars
        self.pl = polars
        self.uri = uri
        self.catalog = None

    def op_hello(self, _):
        return {"engine": "polars", "version": self.pl.__version__}

    def op_read(self, r):
        if self.catalog is None:
            from pyiceberg.catalog import load_catalog
            self.catalog = load_catalog(
                "ice", **{"type": "rest", "uri": self.uri, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
        lazy = self.pl.scan_iceberg(
            self.catalog.load_table(r["table"]), snapshot_id=r.get("snapshot"), reader_override="native")
        if r.get("lineage"):
            lazy = lazy.select(self.pl.all(), *[self.pl.col(c) for c in LINEAGE])
        try:
            frame = lazy.collect()
        except self.pl.exceptions.ColumnNotFoundError as e:
            if r.get("lineage"):
                raise Cannot("no row lineage columns: %s" % e)
            raise
        kinds = dict(frame.schema)
        return rows_answer({k: self.convert(v, kinds[k]) for k, v in row.items()} for row in frame.to_dicts())

    def convert(self, v, kind):
        """Maps come as dicts, or as lists of key and value structs."""
        if v is None:
            return None
        if type(kind).__name__ == "Map":
            return Map(v.items() if isinstance(v, dict) else ((x["key"], x["value"]) for x in v))
        if isinstance(kind, self.pl.List) and isinstance(kind.inner, self.pl.Struct) and \
                [f.name for f in kind.inner.fields] == ["key", "value"]:
            return Map((x["key"], x["value"]) for x in v)
        return v


serve(Polars(sys.argv[1]))
