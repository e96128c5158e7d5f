"""What frazil's workers write (Writer), and tables that it and foreign engines write in turn."""

import asyncio
import copy
import concurrent.futures
import threading
import time
import types
import urllib.parse

import pyarrow as pa
import pyarrow.parquet as pq

import auditor
import frazil
from catalog_suite import V3, COLUMNS, check, duck_rows, row, span, spark_rows
from model import Row, Table
from support.rest import Rest, segment

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "int"},
    {"id": 2, "name": "region", "required": False, "type": "string"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
    {"id": 4, "name": "score", "required": False, "type": "double"}]}
ARROW = pa.schema([("id", pa.int32()), ("region", pa.string()), ("name", pa.string()), ("score", pa.float64())])
BY_REGION = {"spec-id": 0, "fields": [
    {"source-id": 2, "field-id": 1000, "name": "region", "transform": "identity"}]}


def arrow(rows):
    return pa.Table.from_pylist(rows, schema=ARROW)


class Writer:
    """One ref of a table with its model: every call commits through a worker and applies the acknowledgement to it."""

    def __init__(self, suite, client, namespace, name, spec=None, create=True, model=None, version=3):
        self.uri, self.client, self.version = suite.uri, client, version
        self.rest = Rest(suite.uri)
        self.path = "/v1/namespaces/%s/tables" % segment(namespace)
        self.model = model or Table("%s.%s" % (namespace, name))
        self.name = name
        if create:
            body = {"name": name, "schema": SCHEMA, "properties": {"format-version": str(version)}}
            if spec:
                body["partition-spec"] = spec
            made = self.rest.want(200, "POST", self.path, body).json
            check(made["metadata"]["format-version"] == version, "format version", made["metadata"]["format-version"])
        self.table = client.table(self.model.name)

    def snapshot(self):
        """The snapshot that a worker reads: what a planner would take from the catalog."""
        return self.metadata()["refs"][self.model.ref]["snapshot-id"]

    def metadata(self):
        return self.rest.want(200, "GET", "%s/%s" % (self.path, segment(self.name))).json["metadata"]

    def change(self, *updates):
        """Table updates through REST."""
        self.rest.want(200, "POST", "%s/%s" % (self.path, segment(self.name)), {
            "requirements": [{"type": "assert-table-uuid", "uuid": self.metadata()["table-uuid"]}],
            "updates": list(updates)})

    def branch(self, name):
        """A writer of a new branch at this ref's head."""
        self.change({"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": self.snapshot()})
        other = copy.copy(self)
        other.model = Table(self.model.name, ref=name, beside=self.model)
        return other

    def upgrade(self):
        self.change({"action": "upgrade-format-version", "format-version": 3})
        self.version = 3

    def begin(self, kind="APPEND"):
        """Kinds that delete read this ref's head."""
        read = {} if kind == "APPEND" else {"read_snapshot_id": self.snapshot()}
        return self.table.begin(kind=kind, ref=self.model.ref, **read)

    # ---- acknowledgements
    def files(self, outcome):
        out = []
        for f in outcome.files:
            path = urllib.parse.unquote(f["path"][7:] if f["path"].startswith("file://") else f["path"])
            held = pq.read_table(path, partitioning=None).select(ARROW.names).to_pylist()
            out.append((f["path"], f["first_row_id"], f["record_count"], held))
        return out

    def counts(self, outcome, inserted=0, updated=0, deleted=0):
        have = (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted)
        check(have == (inserted, updated, deleted), self.model.name, "counts", have, (inserted, updated, deleted))

    # ---- operations
    def append(self, rows, alone=True):
        txn = self.begin()
        txn.append(arrow(rows))
        o = txn.commit()
        self.model.applied(o, alone)
        self.model.inserted(o, self.files(o), rows, alone=alone, version=self.version)
        self.counts(o, inserted=len(rows))

    def delete(self, test, stage=None):
        """stage: how the positions travel, {path: positions} to a transaction."""
        found = self.model.where(test)
        check(found, self.model.name, "nothing to delete")
        txn = self.begin("DELETE")
        if stage:
            stage(txn, {path: positions for path, (positions, _) in found.items()})
        else:
            for path, (positions, _) in found.items():
                txn.delete(path, positions)
        o = txn.commit()
        self.model.applied(o)
        for path, (positions, _) in found.items():
            self.model.deleted(path, positions)
        self.counts(o, deleted=sum(len(v[0]) for v in found.values()))

    def delete_together(self, tests):
        """One worker for each test, all planned on one snapshot, all committing at once."""
        snapshot = self.snapshot()
        work = [self.model.where(t) for t in tests]

        def one(found):
            txn = self.table.begin(kind="DELETE", ref=self.model.ref, read_snapshot_id=snapshot)
            for path, (positions, _) in found.items():
                txn.delete(path, positions)
            return txn.commit()

        with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
            outcomes = list(pool.map(one, work))
        for o, found in zip(outcomes, work):
            self.model.applied(o, alone=False)
            self.counts(o, deleted=sum(len(v[0]) for v in found.values()))
            for path, (positions, _) in found.items():
                self.model.deleted(path, positions)

    def row_delta(self, rows, test):
        found = self.model.where(test)
        txn = self.begin("ROW_DELTA")
        txn.append(arrow(rows))
        for path, (positions, _) in found.items():
            txn.delete(path, positions)
        o = txn.commit()
        self.model.applied(o)
        for path, (positions, _) in found.items():
            self.model.deleted(path, positions)
        self.model.inserted(o, self.files(o), rows)
        self.counts(o, inserted=len(rows), deleted=sum(len(v[0]) for v in found.values()))

    def update(self, test, change):
        found = self.model.where(test)
        txn = self.begin("ROW_DELTA")
        new, carried = [], {}
        for path, (positions, rows) in found.items():
            fresh = [{**r.values, **change(r.values)} for r in rows]
            txn.update(path, positions, arrow(fresh), [r.row_id for r in rows])
            new += fresh
            carried.update({r.values["id"]: r.row_id for r in rows})
        o = txn.commit()
        self.model.applied(o)
        for path, (positions, _) in found.items():
            self.model.deleted(path, positions)
        self.model.inserted(o, self.files(o), new, carried)
        self.counts(o, updated=len(new))


# ---- in turn with foreign engines
def continue_foreign(suite, client, model, engine_name, sql):
    """frazil appends to, deletes from and updates a table that others wrote; then they write again, and frazil again."""
    ns, _, name = model.name.rpartition(".")
    w = Writer(suite, client, ns, name, create=False, model=model)
    model.located(auditor.raw_rows(suite.uri, model.name))
    w.append([row(i) for i in range(3000, 3010)])
    w.delete(lambda r: r["id"] % 10 == 1)
    w.delete_together([lambda r: r["id"] % 10 == 2, lambda r: r["id"] % 100 == 45, lambda r: r["id"] % 100 == 48])
    w.update(lambda r: r["id"] in (9, 3005), lambda r: {"name": "fz"})
    t = sql["table"](ns, name)
    engine = suite.engines[engine_name]
    engine.sql("DELETE FROM %s WHERE id = 3006 OR id = 19" % t, "UPDATE %s SET name = 'back' WHERE id IN (3007, 9)" % t,
               "INSERT INTO %s %s" % (t, sql["rows"](4000, 4005)))
    model.sql_delete(engine_name, lambda r: r["id"] in (3006, 19))
    model.sql_update(engine_name, lambda r: r["id"] in (3007, 9), lambda r: {"name": "back"})
    model.sql_insert(engine_name, span(4000, 4005))
    model.located(auditor.raw_rows(suite.uri, model.name))
    w.delete(lambda r: r["id"] in (3008, 4001, 29))
    w.update(lambda r: r["id"] == 4002, lambda r: {"name": "last"})


SQL = {
    "spark": {"table": lambda ns, t: "ice.%s.%s" % (ns, t), "rows": spark_rows},
    "duckdb": {"table": lambda ns, t: 'ice."%s"."%s"' % (ns, t), "rows": duck_rows},
}


def foreign_first(suite, client, ns, engine_name):
    engine, sql = suite.engines[engine_name], SQL[engine_name]
    name = engine_name + "_first"
    t = sql["table"](ns, name)
    if engine_name == "spark":
        engine.sql("CREATE TABLE %s %s USING iceberg TBLPROPERTIES (%s)" % (t, COLUMNS, V3))
    else:
        engine.sql("CREATE TABLE %s (id INT, region VARCHAR, name VARCHAR, score DOUBLE) WITH ('format-version' = '3')" % t)
    model = Table("%s.%s" % (ns, name))
    for a in (0, 30):
        engine.sql("INSERT INTO %s %s" % (t, sql["rows"](a, a + 30)))
        model.sql_insert(engine_name, span(a, a + 30))
    engine.sql("DELETE FROM %s WHERE id %% 10 = 3" % t, "UPDATE %s SET name = 'own' WHERE id IN (4, 34)" % t)
    model.sql_delete(engine_name, lambda r: r["id"] % 10 == 3)
    model.sql_update(engine_name, lambda r: r["id"] in (4, 34), lambda r: {"name": "own"})
    continue_foreign(suite, client, model, engine_name, sql)
    return [model]


def frazil_first(suite, client, ns, engine_name):
    """A partitioned table of ours that a foreign engine changes, and frazil again."""
    w = Writer(suite, client, ns, "fz_then_" + engine_name, BY_REGION)
    w.append(span(0, 30))
    w.append(span(30, 60))
    w.delete(lambda r: r["id"] % 10 == 3)
    continue_foreign(suite, client, w.model, engine_name, SQL[engine_name])
    return [w.model]


# ---- a crowd of workers beside a client that commits through REST
WORKERS, TURNS, FOREIGN = 64, 50, 16
# See mixed_suite.py: lost races of a commit, and what the workers do while the other client works on.
RETRIES, LOST_MEAN, PACE = 23, 3, 0.02


async def crowd_workers(rpc, name, base, enough, kept):
    """Each worker: at least TURNS transactions, by turns an append and a delete of the file that all share; more until
    the foreign client has had its share."""
    async def one(client, n):
        k = 0
        while k < TURNS or not enough.is_set():
            if k >= TURNS:
                async with pace:
                    await asyncio.sleep(PACE)
            key = 10000 + n * 100000 + k
            if k % 2 == 0 or k >= TURNS:
                o = await client.commit_once(name, kind="APPEND", data=arrow([row(key)]))
                kept[key] = (o.files[0]["first_row_id"], o.sequence_number)
            else:
                at = n * TURNS // 2 + k // 2
                await client.commit_once(name, kind="DELETE", deletes=[(base.files[0]["path"], [at])],
                                         read_snapshot_id=base.snapshot_id)
                del kept[at]
            k += 1

    pace = asyncio.Lock()
    async with frazil.AsyncClient(rpc) as client:
        await asyncio.gather(*[one(client, n) for n in range(WORKERS)])


def crowd(suite, client, ns, rpc):
    """Every acknowledged row once and none else; the foreign client is not starved, which the races that it lost tell."""
    w = Writer(suite, client, ns, "fz_crowd")
    n = WORKERS * TURNS // 2
    w.append(span(0, n))
    path, (_, rows) = next(iter(w.model.where(lambda r: True).items()))
    kept = {r.values["id"]: (r.row_id, r.seq) for r in rows}
    base = types.SimpleNamespace(files=[{"path": path}], snapshot_id=w.snapshot())
    enough, landed, failed, times = threading.Event(), [], [], [time.monotonic()]
    spark = suite.engines["spark"]
    spark.sql("ALTER TABLE ice.%s SET TBLPROPERTIES ('commit.retry.num-retries'='%d', "
              "'commit.retry.min-wait-ms'='10', 'commit.retry.max-wait-ms'='200')" % (w.model.name, RETRIES))
    lost = suite.metric("frazil_commit_stale_total")

    def foreign():
        try:
            for i in range(FOREIGN):
                spark.sql("INSERT INTO ice.%s SELECT %d, 'eu', 'sp', 0.5D" % (w.model.name, 9000000 + i))
                landed.append(9000000 + i)
                times.append(time.monotonic())
        except Exception as e:
            failed.append(e)
        finally:
            enough.set()

    beside = threading.Thread(target=foreign)
    beside.start()
    asyncio.run(crowd_workers(rpc, w.model.name, base, enough, kept))
    beside.join()
    lost = None if lost is None else suite.metric("frazil_commit_stale_total") - lost
    print("crowd  %d workers, %d transactions, beside them %d commits of spark in %.1f s; the slowest %.1f s; %s lost races" % (
        WORKERS, WORKERS * TURNS, len(landed), times[-1] - times[0],
        max([b - a for a, b in zip(times, times[1:])], default=0), lost), flush=True)
    check(not failed and len(landed) == FOREIGN, "commits of Spark beside the workers:", len(landed), failed)
    check(lost is None or lost <= LOST_MEAN * FOREIGN, "starved: Spark lost", lost, "races for", FOREIGN, "commits")
    model = Table(w.model.name)
    model.writers = ["frazil", "spark"]
    for key, (row_id, seq) in kept.items():
        model.rows[key] = Row(row(key), row_id, seq)
    for key in landed:
        model.rows[key] = Row({"id": key, "region": "eu", "name": "sp", "score": 0.5})
    ids = sorted(r for r, _ in kept.values())
    check(len(set(ids)) == len(ids), "a row id was acknowledged twice")
    return [model]


def run(suite, rpc):
    ns = "f%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    with frazil.Client(rpc) as client:
        if suite.has("spark"):
            suite.part("64 workers beside spark", crowd, suite, client, ns, rpc)
        for name in ("duckdb", "spark"):
            if suite.has(name):
                suite.part("%s, then frazil, and back" % name, foreign_first, suite, client, ns, name)
                suite.part("frazil, then %s, and back" % name, frazil_first, suite, client, ns, name)
