"""What tasks of other engines report, and manifests that workers wrote, committed through frazil, read by all: one
table for each dialect, and one for manifests.

The files are pyarrow's, the Puffin files are written by hand around another roaring library; only the commit is
frazil's.
"""

import time

import frazil
from catalog_suite import row, span
from frazil import dv, parquet
from frazil_suite import BY_REGION, Writer, arrow
from support import manifests, messages
from support.rest import Rest


class Reporter(Writer):
    """Commits what a coordinator of an engine would have been told."""

    dialect = None

    def insert(self, rows):
        txn = self.begin()
        records = parquet.write(arrow(rows), txn.info)
        md = self.metadata()
        texts = []
        for f in records:
            values = [v["value"].decode() if v["value"] is not None else None for v in f["partition"]]
            texts.append(messages.data(self.dialect, f, md, values))
        txn.stage_messages(self.dialect, *texts)
        o = txn.commit()
        self.model.applied(o)
        self.model.inserted(o, self.files(o), rows)
        self.counts(o, inserted=len(rows))

    def report(self, txn, found):
        """Trino's tasks send positions; the others a Puffin file, with what was deleted before in it."""
        if self.dialect == "TRINO":
            texts = [messages.vector(path, dv.encode(some), len(some)) for path, some in found.items()]
        else:
            texts = []
            for path, some in found.items():
                self.old.setdefault(path, set()).update(some)
                made = messages.write_puffin(path.rpartition("/")[0], {path: sorted(self.old[path])})
                texts.append(messages.puffin(self.dialect, path, **made[path]))
        txn.stage_messages(self.dialect, *texts)

    def remove(self, test):
        self.delete(test, self.report)


def table(suite, client, ns, dialect, spec):
    w = Reporter(suite, client, ns, "msg_%s" % dialect.lower(), spec)
    w.dialect, w.old = dialect, {}
    w.insert(span(0, 40))
    w.insert(span(40, 60))
    w.remove(lambda r: r["id"] % 10 == 3)
    w.remove(lambda r: r["id"] % 10 in (4, 5))
    w.insert([row(900)])
    w.remove(lambda r: r["id"] in (0, 900))
    w.model.in_bulk = True
    return [w.model]


class Lister(Writer):
    """Brings its files in a finished manifest, which the table then lists."""

    def insert(self, rows):
        txn = self.begin()
        files = parquet.write(arrow(rows), txn.info)
        md = self.metadata()
        ref = manifests.java(md, files, "%s/metadata/worker-%s.avro" % (md["location"].rstrip("/"), txn.id))
        txn.stage_files(manifests=[ref])
        o = txn.commit()
        self.model.applied(o)
        self.model.inserted(o, self.files(o), rows)
        self.counts(o, inserted=len(rows))


def listed(suite, client, ns):
    w = Lister(suite, client, ns, "listed", None)
    w.insert(span(0, 40))
    w.append(span(40, 50))
    w.insert(span(50, 60))
    w.delete(lambda r: r["id"] % 10 == 3)
    w.delete(lambda r: 50 <= r["id"] < 60)
    w.insert([row(900)])
    return [w.model]


def run(suite, rpc):
    ns = "m%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        for dialect, spec in (("VELOX", None), ("PRESTO", BY_REGION), ("TRINO", BY_REGION), ("ICEBERG", None)):
            suite.part("messages of " + dialect.lower(), table, suite, client, ns, dialect, spec)
        suite.part("finished manifests", listed, suite, client, ns)
