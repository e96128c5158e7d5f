"""DuckDB with its iceberg extension: an independent C++ reader and writer. argv: the catalog's URI.

The extensions come as wheels and are loaded by path; nothing is fetched.
"""

import glob
import importlib
import os
import sys

from worker import Map, rows_answer, serve, split


class DuckDB:
    def __init__(self, uri):
        import duckdb
        self.duckdb = duckdb
        self.db = duckdb.connect(config={
            "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": 2,
            "memory_limit": "1GB"})
        for name in ("httpfs", "avro", "iceberg"):
            at = os.path.dirname(importlib.import_module("duckdb_extension_" + name).__file__)
            file = glob.glob(os.path.join(at, "**", name + ".duckdb_extension"), recursive=True)[0]
            self.db.execute("LOAD '%s'" % file)
        self.attach = "ATTACH '' AS ice (TYPE iceberg, ENDPOINT '%s', AUTHORIZATION_TYPE 'none'%%s)" % uri
        self.attached = False

    def execute(self, text):
        if not self.attached:
            self.db.execute(self.attach % "")
            self.attached = True
        return self.db.execute(text)

    def op_attach(self, r):
        """The catalog anew, with other options."""
        if self.attached:
            self.db.execute("DETACH ice")
        self.db.execute(self.attach % (r["options"] and ", " + r["options"]))
        self.attached = True

    def op_hello(self, _):
        return {"engine": "duckdb", "version": self.duckdb.__version__}

    def op_read(self, r):
        namespace, name = split(r["table"])
        extra = ", _row_id, _last_updated_sequence_number" if r.get("lineage") else ""
        at = " AT (VERSION => %d)" % r["snapshot"] if r.get("snapshot") else ""
        got = self.execute('SELECT *%s FROM ice."%s"."%s"%s' % (extra, namespace, name, at))
        heads = [(d[0], str(d[1])) for d in got.description]
        return rows_answer(
            {n: Map(v.items()) if v is not None and kind.startswith("MAP") else v
             for (n, kind), v in zip(heads, row)} for row in got.fetchall())

    def op_sql(self, r):
        """One statement; a failed transaction is rolled back, so that the next request starts clean."""
        try:
            return rows_answer(
                {"c%d" % i: v for i, v in enumerate(row)} for row in self.execute(r["text"]).fetchall())
        except Exception:
            try:
                self.db.execute("ROLLBACK")
            except self.duckdb.Error:
                pass
            raise


serve(DuckDB(sys.argv[1]))
