"""Tables of format version 2 that workers delete from by files of position deletes, and what is left of such files
after an upgrade: by frazil's workers and by Spark.
"""

import concurrent.futures
import time

import auditor
import frazil
from catalog_suite import COLUMNS, check, row, span, spark_rows
from frazil_suite import Writer, arrow
from matrix_suite import AFTER_REGION, BY_REGION
from model import Table
from support.rest import Rest

SPECS = {"unpartitioned": None, "identity": BY_REGION, "evolved": BY_REGION}
MERGE_ON_READ = "'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"


class DeleteFiles(Writer):
    """A writer that knows spec and partition of its data files, as a planner does."""

    def __init__(self, *args, **options):
        super().__init__(*args, version=2, **options)
        self.places = {}

    def kept(self, staged):
        for f in staged.data_files:
            self.places[f["path"]] = f["spec_id"], f["partition"]

    def append(self, rows, alone=True):
        txn = self.begin()
        self.kept(txn.append(arrow(rows)))
        o = txn.commit()
        self.model.applied(o, alone)
        self.model.inserted(o, self.files(o), rows, alone=alone, version=self.version)
        self.counts(o, inserted=len(rows))

    def stage(self, txn, found, wide):
        """wide: one file for all data files of a partition, else one for each data file."""
        groups = {}
        for path, (positions, _) in found.items():
            spec, partition = self.places[path]
            groups.setdefault((spec, repr(partition), None if wide else path), []).append((path, positions, partition))
        for (spec, _, _), some in groups.items():
            txn.delete_file({path: positions for path, positions, _ in some}, spec, some[0][2])

    def remove(self, test, wide=False, change=None, fresh=()):
        """A DELETE; with change an update of those rows; with fresh rows beside them."""
        found = self.model.where(test)
        check(found, self.model.name, "nothing to delete")
        new = list(fresh) + [{**r.values, **change(r.values)} for _, some in found.values() for r in some if change]
        txn = self.begin("ROW_DELTA" if new else "DELETE")
        self.stage(txn, found, wide)
        if new:
            self.kept(txn.append(arrow(new)))
        o = txn.commit()
        self.model.applied(o)
        for path, (positions, _) in found.items():
            self.model.deleted(path, positions)
        self.model.inserted(o, self.files(o), new, version=2)
        self.counts(o, inserted=len(new), deleted=sum(len(v[0]) for v in found.values()))

    def remove_together(self, tests):
        """One worker for each test, all planned on one snapshot, all at once; each lands."""
        snapshot = self.snapshot()
        work = [self.model.where(t) for t in tests]

        def one(found):
            txn = self.table.begin(kind="DELETE", read_snapshot_id=snapshot)
            self.stage(txn, found, True)
            return txn.commit()

        with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
            outcomes = list(pool.map(one, work))
        for o, found in zip(outcomes, work):
            self.model.applied(o, alone=False)
            for path, (positions, _) in found.items():
                self.model.deleted(path, positions)


def refused(name, f, *args):
    try:
        f(*args)
    except frazil.Error as e:
        check(e.name == name and e.effect == "CLEAN", "refused with", e.name, e)
        return e
    check(False, "not refused:", name)


def native(suite, client, ns, spec):
    """Version 2 to the end."""
    w = DeleteFiles(suite, client, ns, "fz_v2_" + spec, SPECS[spec])
    w.append(span(0, 30))
    if spec == "evolved":
        w.remove(lambda r: r["id"] % 10 == 9)
        w.change({"action": "add-spec", "spec": AFTER_REGION}, {"action": "set-default-spec", "spec-id": -1})
    w.append(span(30, 60))
    w.remove(lambda r: r["id"] % 10 == 3)
    w.remove(lambda r: r["id"] % 10 == 4, wide=True)
    w.remove_together([lambda r, d=d: r["id"] % 10 == d for d in (1, 2, 5, 6)])
    w.remove(lambda r: r["id"] in (7, 37), change=lambda r: {"name": "u" + r["name"]})
    w.remove(lambda r: r["id"] in (7, 8), fresh=span(100, 105), wide=True)
    w.append(span(105, 110))
    # Files without a live row, and rows of all of it.
    w.remove(lambda r: 105 <= r["id"])
    md = w.metadata()
    check(md["format-version"] == 2 and "next-row-id" not in md, w.model.name, "has row ids")
    w.model.lineage = False
    return [w.model]


def leftovers(suite, client, ns, spec):
    """Old delete files beside vectors."""
    w = DeleteFiles(suite, client, ns, "fz_v2_left_" + spec, SPECS[spec])
    w.append(span(0, 30))
    if spec == "evolved":
        w.change({"action": "add-spec", "spec": AFTER_REGION}, {"action": "set-default-spec", "spec-id": -1})
    w.append(span(30, 60))
    w.remove(lambda r: r["id"] % 10 == 3 and r["id"] < 30)
    w.upgrade()
    w.append(span(60, 90))
    w.model.numbered(auditor.raw_rows(w.uri, w.model.name))
    e = refused("LEGACY_DELETES", w.delete, lambda r: r["id"] < 10)
    check("-deletes.parquet" in str(e), "names no delete file:", e)
    w.delete(lambda r: r["id"] % 10 == 4 and r["id"] >= 30)
    w.delete_together([lambda r: r["id"] == 45, lambda r: r["id"] in (46, 66), lambda r: r["id"] == 67])
    w.update(lambda r: r["id"] in (31, 61), lambda r: {"name": "u" + r["name"]})
    w.model.in_bulk = True
    return [w.model]


def spark_leftovers(suite, client, ns):
    """Spark's delete files on version 2; after the upgrade everything but their data files can be deleted from, and all
    when Spark has rewritten them."""
    spark = suite.engines["spark"]
    name = "sp_v2_left"
    t = "ice.%s.%s" % (ns, name)
    model = Table("%s.%s" % (ns, name))
    spark.sql("CREATE TABLE %s %s USING iceberg TBLPROPERTIES (%s)" % (t, COLUMNS, MERGE_ON_READ),
              "INSERT INTO %s %s" % (t, spark_rows(0, 30)), "INSERT INTO %s %s" % (t, spark_rows(30, 60)),
              "DELETE FROM %s WHERE id %% 10 = 3 AND id < 30" % t)
    model.sql_insert("spark", span(0, 60))
    model.sql_delete("spark", lambda r: r["id"] % 10 == 3 and r["id"] < 30)
    w = Writer(suite, client, ns, name, create=False, model=model, version=2)
    check(len(spark.sql("SELECT file_path FROM %s.delete_files" % t)) == 1, "Spark wrote no delete file")
    w.upgrade()
    w.append([row(i) for i in range(60, 70)])
    model.located(auditor.raw_rows(suite.uri, model.name))
    refused("LEGACY_DELETES", w.delete, lambda r: r["id"] < 10)
    w.delete(lambda r: r["id"] in (31, 61))
    w.update(lambda r: r["id"] in (32, 62), lambda r: {"name": "u" + r["name"]})
    spark.sql("CALL ice.system.rewrite_data_files(table => '%s.%s', options => map('rewrite-all', 'true'))" % (ns, name))
    model.foreign("spark")
    model.located(auditor.raw_rows(suite.uri, model.name))
    w.delete(lambda r: r["id"] in (4, 34, 64))
    w.update(lambda r: r["id"] in (5, 35), lambda r: {"name": "w" + r["name"]})
    return [model]


def run(suite, rpc):
    ns = "v%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        for spec in SPECS:
            suite.part("version 2, %s" % spec, native, suite, client, ns, spec)
            suite.part("upgraded with old deletes, %s" % spec, leftovers, suite, client, ns, spec)
        if suite.has("spark"):
            suite.part("spark's old deletes", spark_leftovers, suite, client, ns)
