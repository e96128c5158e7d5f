"""PyIceberg with pyarrow: its own metadata, planning and vector reading; writes V2. argv: the catalog's URI."""

import sys

from worker import LINEAGE, Cannot, arrow_rows, rows_answer, serve


class PyIceberg:
    def __init__(self, uri):
        import pyiceberg
        self.version = pyiceberg.__version__
        self.uri = uri
        self.made = None

    @property
    def catalog(self):
        if self.made is None:
            from pyiceberg.catalog import load_catalog
            self.made = load_catalog(
                "ice", **{"type": "rest", "uri": self.uri, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"})
        return self.made

    def op_hello(self, _):
        return {"engine": "pyiceberg", "version": self.version}

    def op_read(self, r):
        t = self.catalog.load_table(r["table"])
        names = tuple(f.name for f in t.schema().fields) + LINEAGE if r.get("lineage") else ("*",)
        try:
            scan = t.scan(snapshot_id=r.get("snapshot"), selected_fields=names)
            return rows_answer(arrow_rows(scan.to_arrow()))
        except ValueError as e:
            if r.get("lineage") and "_row_id" in str(e):
                raise Cannot("no row lineage columns: %s" % e)
            raise

    def op_run(self, r):
        """Python text that sees `catalog`, `pa`, `table` (a loader) and what is given, and leaves its answer in `result`."""
        import pyarrow as pa
        from pyiceberg import expressions
        scope = {"catalog": self.catalog, "pa": pa, "expr": expressions, "table": self.catalog.load_table, "result": None,
                 **r.get("given", {})}
        exec(r["text"], scope)  # the text is the test's own
        return scope["result"]


serve(PyIceberg(sys.argv[1]))
