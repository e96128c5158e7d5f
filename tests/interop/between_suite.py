"""What Spark does to a table between Stage and Commit of workers' transactions: maintenance, moves of the ref, changes
of rows, replacement and drop. Each transaction has exactly the outcome that the protocol promises, and every
reader sees exactly the rows that were acknowledged.
"""

import time

import auditor
import frazil
from catalog_suite import check, row, spark_rows, span
from frazil_suite import Writer, arrow
from support.rest import Rest

MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
MAINTENANCE = "TIMESTAMP '2100-01-01 00:00:00'"  # everything is older


class Pending:
    """A staged transaction and what it means to the model. deletes, updates: tests of rows; read: a snapshot."""

    def __init__(self, w, inserts=(), deletes=None, updates=None, read=None, seal=True):
        self.w, self.inserts = w, list(inserts)
        self.gone = {p: list(v[0]) for p, v in w.model.where(deletes).items()} if deletes else {}
        moved = w.model.where(updates) if updates else {}
        self.moved = {p: list(v[0]) for p, v in moved.items()}
        self.fresh = [{**r.values, "name": "w" + r.values["name"]} for _, some in moved.values() for r in some]
        self.carried = {r.values["id"]: r.row_id for _, some in moved.values() for r in some}
        check(bool(deletes) == bool(self.gone) and bool(updates) == bool(moved), w.model.name, "no rows to change")
        kind = "APPEND" if not deletes and not updates else "ROW_DELTA" if inserts or updates else "DELETE"
        options = {} if kind == "APPEND" else {"read_snapshot_id": read or w.snapshot()}
        self.txn = w.table.begin(kind=kind, ref=w.model.ref, **options)
        if inserts:
            self.txn.append(arrow(self.inserts))
        for path, positions in self.gone.items():
            self.txn.delete(path, positions)
        for path, (positions, some) in moved.items():
            self.txn.update(path, positions, arrow([{**r.values, "name": "w" + r.values["name"]} for r in some]),
                            [r.row_id for r in some])
        if seal:
            self.txn.seal()

    def lands(self, overlap=0):
        """overlap: positions that others have deleted meanwhile."""
        m, o = self.w.model, self.txn.commit()
        m.applied(o, alone=False)
        n = sum(len(v) for v in self.gone.values())
        self.w.counts(o, inserted=len(self.inserts), updated=len(self.fresh), deleted=n - overlap)
        for path, positions in [*self.gone.items(), *self.moved.items()]:
            m.deleted(path, positions)
        m.inserted(o, self.w.files(o), self.inserts + self.fresh, self.carried, alone=False)

    def refused(self, name):
        try:
            o = self.txn.commit()
        except frazil.Error as e:
            check(e.name == name and e.effect == "CLEAN", self.w.model.name, "refused with", e.name, e.effect, e, "not", name)
        else:
            check(False, self.w.model.name, "not refused:", o.state)
        o = self.txn.status()
        check(o.state == ("ABORTED" if name == "TABLE_GONE" else "REJECTED") and o.reject["name"] == name, "status", o.raw)


class Between:
    def __init__(self, suite, client, ns):
        self.suite, self.client, self.ns, self.spark = suite, client, ns, suite.engines["spark"]

    def table(self, name, **properties):
        """Two data files of twenty rows, a vector on the first: id 9 is gone."""
        w = Writer(self.suite, self.client, self.ns, name)
        if properties:
            w.change({"action": "set-properties", "updates": properties})
        w.append(span(0, 20))
        w.append(span(20, 40))
        w.delete(lambda r: r["id"] == 9)
        return w

    def call(self, procedure, w, **arguments):
        self.spark.sql("CALL ice.system.%s(table => '%s'%s)" % (
            procedure, w.model.name, "".join(", %s => %s" % a for a in arguments.items())))
        w.model.foreign("spark")

    def end(self, *writers):
        """Whatever happened, the table goes on; rows lie where an independent reader finds them."""
        for w in writers:
            w.model.located(auditor.raw_rows(w.uri, w.model.name, w.model.ref))
            w.append([row(950), row(951)])
            w.delete(lambda r: r["id"] == 950)
        for w in writers:
            w.model.in_bulk = True
            if w.model.ref != "main":
                w.model.snapshot = w.snapshot()
        return [w.model for w in writers]

    # ---- maintenance
    def rewrite_manifests(self):
        """The same files under other manifests: nobody is disturbed."""
        w = self.table("between_manifests", **{"commit.manifest-merge.enabled": "false"})
        work = [Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] in (3, 23)),
                Pending(w, updates=lambda r: r["id"] in (4, 24), seal=False)]
        self.call("rewrite_manifests", w)
        for p in work:
            p.lands()
        return self.end(w)

    def rewrite_data_files(self):
        """The files went, their rows live elsewhere under their ids: who names the files is told."""
        w = self.table("between_files")
        work = Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] == 3), \
            Pending(w, updates=lambda r: r["id"] == 24, seal=False), Pending(w, span(110, 112), lambda r: r["id"] == 25)
        self.call("rewrite_data_files", w, options="map('rewrite-all', 'true')")
        work[0].lands()
        for p in work[1:]:
            p.refused("FILE_GONE")
        m = w.model
        for r in m.rows.values():
            if r.values["id"] < 100:
                r.path = r.pos = None
        return self.end(w)

    def expire_snapshots(self):
        """What was staged is judged by the record; who comes after the snapshot has gone is told. No vector that lives
        goes with one that does not."""
        w = self.table("between_expire")
        read = w.snapshot()
        work = Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] in (3, 23)), \
            Pending(w, updates=lambda r: r["id"] == 24, seal=False)
        late = w.table.begin(kind="DELETE", read_snapshot_id=read)
        path, at = next((r.path, r.pos) for r in w.model.rows.values() if r.values["id"] == 5)
        w.delete(lambda r: r["id"] == 8)
        w.append(span(60, 62))
        self.call("expire_snapshots", w, older_than=MAINTENANCE, retain_last=1)
        check(len(w.metadata()["snapshots"]) == 1, "snapshots are left:", len(w.metadata()["snapshots"]))
        for f in (lambda: late.delete(path, [at]), lambda: w.table.begin(kind="DELETE", read_snapshot_id=read)):
            try:
                f()
                check(False, "an expired snapshot was taken")
            except frazil.Error as e:
                check(e.name == "SNAPSHOT_TOO_OLD", "an expired snapshot:", e.name, e)
        for p in work:
            p.lands()
        return self.end(w)

    # ---- moves of the ref
    def rollback(self):
        w = self.table("between_rollback")
        base = w.snapshot()
        old = Pending(w, deletes=lambda r: r["id"] == 2)
        w.delete(lambda r: r["id"] == 8)
        w.append(span(60, 62))
        work = Pending(w, deletes=lambda r: r["id"] == 3), Pending(w, updates=lambda r: r["id"] == 24, seal=False), \
            Pending(w, deletes=lambda r: r["id"] == 60)
        append = Pending(w, span(100, 103))
        before = dict(w.model.rows)
        self.spark.sql("CALL ice.system.rollback_to_snapshot('%s', %d)" % (w.model.name, base))
        w.model.foreign("spark")
        kept = {r.values["id"] for r in before.values()}
        w.model.rows = {k: r for k, r in before.items() if k < 60}
        raw = {x["id"]: x for x in auditor.raw_rows(w.uri, w.model.name)}
        check(set(raw) == kept - {60, 61} | {8}, "rows after the rollback", sorted(raw))
        x = raw[8]
        w.model.rows[8] = type(before[0])(row(8), x["_row_id"], x["_last_updated_sequence_number"], x["path"], x["pos"])
        for p in work:
            p.refused("SNAPSHOT_NOT_ANCESTOR")
        append.lands()
        old.lands()
        return self.end(w)

    def cherrypick(self):
        """A snapshot that was staged aside comes in as an append: no row of before is touched."""
        w = self.table("between_cherry", **{"write.wap.enabled": "true"})
        # The id is only of writes: where it is set, reads take the snapshot aside.
        self.spark.sql("SET spark.wap.id = aside")
        try:
            self.spark.sql("INSERT INTO ice.%s %s" % (w.model.name, spark_rows(200, 205)))
        finally:
            self.spark.sql("RESET spark.wap.id")
        aside = next(s["snapshot-id"] for s in w.metadata()["snapshots"] if s["summary"].get("wap.id") == "aside")
        w.model.foreign("spark")
        w.append(span(60, 62))  # else it would be a fast-forward
        work = Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] in (3, 23)), \
            Pending(w, updates=lambda r: r["id"] == 24, seal=False)
        self.spark.sql("CALL ice.system.cherrypick_snapshot('%s', %d)" % (w.model.name, aside))
        w.model.sql_insert("spark", span(200, 205))
        for p in work:
            p.lands()
        return self.end(w)

    def fast_forward(self):
        """Main takes over a branch on which Spark has deleted and updated: as if it had been done on main."""
        w = self.table("between_forward", **MERGE_ON_READ)
        side = w.branch("side")
        t = "ice.%s.branch_side" % w.model.name
        work = Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] in (3, 23)), \
            Pending(w, updates=lambda r: r["id"] == 24, seal=False)
        lost = Pending(w, deletes=lambda r: r["id"] in (5, 12)), Pending(w, updates=lambda r: r["id"] == 7)
        self.spark.sql("DELETE FROM %s WHERE id = 7" % t, "UPDATE %s SET name = 'sp' WHERE id = 5" % t)
        side.model.sql_delete("spark", lambda r: r["id"] == 7)
        side.model.sql_update("spark", lambda r: r["id"] == 5, lambda r: {"name": "sp"})
        self.spark.sql("CALL ice.system.fast_forward('%s', 'main', 'side')" % w.model.name)
        w.model.sql_delete("spark", lambda r: r["id"] == 7)
        w.model.sql_update("spark", lambda r: r["id"] == 5, lambda r: {"name": "sp"})
        lost[0].refused("ROW_MOVED")
        lost[1].refused("WRITE_WRITE")
        for p in work:
            p.lands()
        return self.end(w, side)

    # ---- rows
    def row_changes(self):
        w = self.table("between_rows", **MERGE_ON_READ)
        work = Pending(w, deletes=lambda r: r["id"] in (3, 11)), Pending(w, deletes=lambda r: r["id"] in (5, 12)), \
            Pending(w, updates=lambda r: r["id"] in (4, 6)), Pending(w, updates=lambda r: r["id"] in (7, 10), seal=False), \
            Pending(w, deletes=lambda r: r["id"] in (13, 33)), Pending(w, updates=lambda r: r["id"] in (14, 34))
        t = "ice." + w.model.name
        self.spark.sql("DELETE FROM %s WHERE id IN (3, 4)" % t)
        w.model.sql_delete("spark", lambda r: r["id"] == 4)
        work[0].lands(overlap=1)
        work[2].refused("WRITE_WRITE")
        self.spark.sql("UPDATE %s SET name = 'sp' WHERE id IN (5, 7)" % t)
        w.model.sql_update("spark", lambda r: r["id"] in (5, 7), lambda r: {"name": "sp"})
        work[1].refused("ROW_MOVED")
        work[3].refused("WRITE_WRITE")
        for p in work[4:]:
            p.lands()
        return self.end(w)

    def copy_on_write(self):
        """The file is written again without the row: it is gone, whatever else was to be deleted from it."""
        w = self.table("between_cow", **{"write.delete.mode": "copy-on-write"})
        work = Pending(w, deletes=lambda r: r["id"] == 3), Pending(w, updates=lambda r: r["id"] == 6, seal=False)
        other = Pending(w, deletes=lambda r: r["id"] == 33)
        self.spark.sql("DELETE FROM ice.%s WHERE id = 5" % w.model.name)
        w.model.sql_delete("spark", lambda r: r["id"] == 5)
        for p in work:
            p.refused("FILE_GONE")
        other.lands()
        for r in w.model.rows.values():
            if r.values["id"] < 20:
                r.path = r.pos = None
        return self.end(w)

    # ---- the table itself
    def replaced(self):
        """Spark's replacement keeps the table and gives main another history: what read the old one is told; an append
        read nothing and lands beside the new rows."""
        w = self.table("between_replace")
        work = Pending(w, deletes=lambda r: r["id"] == 3), Pending(w, updates=lambda r: r["id"] == 24, seal=False)
        append = Pending(w, span(100, 103))
        self.spark.sql("CREATE OR REPLACE TABLE ice.%s USING iceberg TBLPROPERTIES ('format-version'='3') AS %s" % (
            w.model.name, spark_rows(300, 310)))
        w.model.rows = {}
        w.model.sql_insert("spark", span(300, 310))
        for p in work:
            p.refused("SNAPSHOT_NOT_ANCESTOR")
        append.lands()
        return self.end(w)

    def emptied(self):
        """Replaced by a table without a snapshot."""
        w = self.table("between_empty")
        work = Pending(w, deletes=lambda r: r["id"] == 3), Pending(w, updates=lambda r: r["id"] == 24, seal=False)
        append = Pending(w, span(100, 103))
        self.spark.sql("CREATE OR REPLACE TABLE ice.%s (id INT, region STRING, name STRING, score DOUBLE) USING iceberg "
                       "TBLPROPERTIES ('format-version'='3')" % w.model.name)
        w.model.foreign("spark")
        w.model.rows = {}
        for p in work:
            p.refused("SNAPSHOT_NOT_ANCESTOR")
        append.lands()
        return self.end(w)

    def dropped(self):
        """And made anew under its name: nothing of before reaches it."""
        w = self.table("between_drop")
        work = Pending(w, span(100, 103)), Pending(w, deletes=lambda r: r["id"] == 3, seal=False)
        t = "ice." + w.model.name
        self.spark.sql("DROP TABLE " + t)
        work[0].refused("TABLE_GONE")
        self.spark.sql("CREATE TABLE %s USING iceberg TBLPROPERTIES ('format-version'='3') AS %s" % (t, spark_rows(0, 5)))
        work[1].refused("TABLE_GONE")
        anew = Writer(self.suite, self.client, self.ns, "between_drop", create=False)
        anew.model.sql_insert("spark", span(0, 5))
        return self.end(anew)


def run(suite, rpc):
    if not suite.has("spark"):
        return
    ns = "b%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        b = Between(suite, client, ns)
        for name in ("rewrite_manifests", "rewrite_data_files", "expire_snapshots", "rollback", "cherrypick", "fast_forward",
                     "row_changes", "copy_on_write", "replaced", "emptied", "dropped"):
            suite.part("spark between stage and commit: " + name, getattr(b, name))
