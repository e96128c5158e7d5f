"""Spark with Iceberg's Java runtime, the reference implementation: one session for all tables, for it takes long
to start. argv: the catalog's URI, the runtime's jar. JAVA_HOME must be a Java 17 or 21."""

import concurrent.futures
import datetime
import os
import re
import sys
import tempfile
import traceback

from worker import Map, read_many, rows_answer, serve, split


class Spark:
    def __init__(self, uri, jar):
        from pyspark.sql import SparkSession
        import pyspark
        tmp = tempfile.mkdtemp(prefix="frazil-spark-")
        settings = {
            "spark.driver.memory": "1g", "spark.driver.extraClassPath": jar, "spark.jars": "",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2", "spark.local.dir": tmp, "spark.sql.warehouse.dir": tmp + "/warehouse",
            "spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.ice.type": "rest",
            "spark.sql.catalog.ice.uri": uri, "spark.sql.catalog.ice.cache-enabled": "false",
        }
        builder = SparkSession.builder.master("local[2]").appName("interop")
        for k, v in settings.items():
            builder = builder.config(k, v)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.version = "%s, iceberg %s" % (
            pyspark.__version__, re.search(r"-([0-9.]+)\.jar$", os.path.basename(jar)).group(1))

    def op_hello(self, _):
        return {"engine": "spark", "version": self.version}

    def select(self, r):
        namespace, name = split(r["table"])
        extra = ", _row_id, _last_updated_sequence_number" if r.get("lineage") else ""
        at = " VERSION AS OF %s" % (repr(r["ref"]) if r.get("ref") else r["snapshot"]) if r.get("snapshot") else ""
        return "SELECT *%s FROM ice.%s.`%s`%s" % (
            extra, ".".join("`%s`" % x for x in namespace.split(".")), name, at)

    def op_read_many(self, request):
        """Many tables of the same columns in one query, which is many times faster than one each; where it fails, one
        by one."""
        out = []
        for first in range(0, len(request["reads"]), 20):
            some = request["reads"][first:first + 20]
            text = " UNION ALL ".join("SELECT %d AS which__, * FROM (%s)" % (i, self.select(r)) for i, r in enumerate(some))
            rows = [[] for _ in some]
            try:
                for row in self.session.sql(text).collect():
                    values = row.asDict(recursive=False)
                    rows[values.pop("which__")].append(values)
                out += [{"ok": rows_answer(x)} for x in rows]
            except Exception:
                traceback.print_exc()
                out += read_many(self, {"reads": some})
        return out

    def op_read(self, r):
        frame = self.session.sql(self.select(r))
        kinds = {f.name: f.dataType for f in frame.schema.fields}
        return rows_answer({k: self.convert(v, kinds[k]) for k, v in row.asDict(recursive=False).items()}
                           for row in frame.collect())

    def op_sql(self, r):
        """Rows of one statement, by column position."""
        return rows_answer({"c%d" % i: v for i, v in enumerate(row)} for row in self.session.sql(r["text"]).collect())

    def op_path(self, r):
        """A table by the folder that it lies in, no catalog asked."""
        return rows_answer(row.asDict(recursive=False) for row in self.session.read.format("iceberg").load(r["path"]).collect())

    def op_together(self, r):
        """Statements at the same time; for each what it was refused with, or null."""
        def one(text):
            try:
                self.session.sql(text).collect()
            except Exception as e:
                return ("%s: %s" % (type(e).__name__, e))[:2000]

        with concurrent.futures.ThreadPoolExecutor(len(r["texts"])) as pool:
            return list(pool.map(one, r["texts"]))

    def convert(self, v, kind):
        from pyspark.sql import types
        if v is None:
            return None
        if isinstance(kind, types.TimestampType):  # collect() gives the driver's local time
            return v.astimezone(datetime.timezone.utc)
        if isinstance(kind, types.MapType):
            return Map((self.convert(k, kind.keyType), self.convert(x, kind.valueType)) for k, x in v.items())
        if isinstance(kind, types.StructType):
            return {f.name: self.convert(v[f.name], f.dataType) for f in kind.fields}
        if isinstance(kind, types.ArrayType):
            return [self.convert(x, kind.elementType) for x in v]
        return v


serve(Spark(sys.argv[1], sys.argv[2]))
