"""Tables with a small model beside them, peers on every transport, and typed refusals, for process tests."""

import base64
import contextlib
import uuid

import pyarrow as pa

import frazil
from frazil import errors, parquet, txn
from support import audit
from support.rest import Rest

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "name", "required": False, "type": "string"}]}


def data(ids, tag="n"):
    return pa.table({"id": pa.array(list(ids), pa.int64()), "name": pa.array(["%s%d" % (tag, i) for i in ids])})


@contextlib.contextmanager
def refused(*names):
    """The block must be refused with one of these statuses, and nothing may have happened."""
    try:
        yield
    except errors.Error as e:
        assert e.name in names, e
        assert e.effect == "CLEAN", (e, e.effect)
    else:
        raise AssertionError("not refused, wanted " + " or ".join(names))


# ---- messages on every transport

def plain(value):
    """A record as the JSON mirror writes it: ids as text, bytes as base64, absent members left out."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


class Peer:
    """call(message, record): the reply as plain(); refusals are raised. Nothing is repeated."""

    def __init__(self, daemon, transport="tcp"):
        self.daemon, self.transport = daemon, transport

    def call(self, message, record):
        if self.transport == "json":
            got = Rest(self.daemon.uri).call("POST", "/frazil/v1/" + message, plain(record))
            if got.status != 200:
                found = errors.from_record({"effect": "CLEAN", "field": "", "retry": "NONE", **got.json})
                found.http = got.status
                raise found
            return got.json
        address = self.daemon.rpc if self.transport == "tcp" else "unix:" + self.daemon.settings["rpc.socket"]
        with frazil.Client(address, retries=0, timeout=30) as client:
            return plain(client.call(message, record))


def begin(table, **options):
    return txn.begin_record(table.name, None, **options)


def ids(reply):
    """Id and token of a Begin's reply, for later messages."""
    return {"txn_id": uuid.UUID(reply["txn_id"]), "lease_token": base64.b64decode(reply["lease_token"])}


def fragment(name, files=(), deletes=(), attempt=0):
    return txn.fragment_record(name, attempt, list(files), [txn.delete_record(*d) for d in deletes])


def ref_of(record):
    return {k: record[k] for k in ("fragment_id", "attempt", "digest")}


# ---- tables and their model

class Table:
    """"ns.name" and what it must hold: for each data file the ids by position, and the positions that are gone."""

    def __init__(self, lab, name, version, properties, spec):
        self.lab, self.short, self.version = lab, name, version
        self.name = lab.space + "." + name
        self.target = "/v1/namespaces/%s/tables/%s" % (lab.space, name)
        self.rows, self.gone, self.next, self.kept = {}, set(), 0, {}
        body = {"name": name, "schema": SCHEMA, "properties": {"format-version": str(version), **properties}}
        if spec:
            body["partition-spec"] = spec
        lab.rest.want(200, "POST", "/v1/namespaces/%s/tables" % lab.space, body)
        self._info = None

    @property
    def info(self):
        if self._info is None:
            with frazil.Client(self.lab.daemon.rpc) as c:
                self._info = c.table(self.name).info()
        return self._info

    def load(self):
        return self.lab.rest.want(200, "GET", self.target).json

    def metadata(self):
        return self.load()["metadata"]

    def head(self):
        return self.metadata().get("current-snapshot-id")

    def summary(self):
        md = self.metadata()
        return next(s for s in md["snapshots"] if s["snapshot-id"] == md["current-snapshot-id"])["summary"]

    def update(self, updates, requirements=(), want=200):
        return self.lab.rest.want(want, "POST", self.target, {
            "requirements": list(requirements), "updates": list(updates)})

    # what to commit
    def files(self, n, row_ids=None, ids=None):
        """DataFile records of new files with `n` new ids, written but not known to the model."""
        if ids is None:
            ids = range(self.next, self.next + n)
            self.next += n
        made = parquet.write(data(ids), self.info, row_ids=row_ids)
        for f in made:
            f["ids"] = list(ids)
        return [_Files(f) for f in made]

    # what has been committed
    def added(self, *files):
        for f in files:
            self.rows[f["path"]] = list(f.ids)

    def deleted(self, path, positions):
        self.gone |= {(path, p) for p in positions}

    def dropped(self, path):
        del self.rows[path]

    def ids(self):
        return sorted(i for path, ids in self.rows.items() for p, i in enumerate(ids) if (path, p) not in self.gone)

    # commits that stand
    def append(self, n=10, **options):
        files = self.files(n)
        with frazil.Client(self.lab.daemon.rpc) as c:
            o = c.commit_once(self.name, kind="APPEND", data_files=files, info=self.info, **options)
        if options.get("ref", "main") == "main":
            self.added(*files)
        return files[0]["path"], o

    def delete(self, path, positions, read, provenance=None, **options):
        with frazil.Client(self.lab.daemon.rpc) as c:
            o = c.commit_once(self.name, kind="DELETE", deletes=[(path, positions, provenance)], read_snapshot_id=read, **options)
        if options.get("ref", "main") == "main":
            self.deleted(path, positions)
        return o

    def change(self, path, positions, read, **options):
        """An UPDATE: the rows move to a new file and keep their row ids."""
        files = self.files(len(positions), ids=[self.rows[path][p] for p in positions],
                           row_ids=[self.row_id(path) + p for p in positions])
        with frazil.Client(self.lab.daemon.rpc) as c:
            o = c.commit_once(self.name, kind="ROW_DELTA", data_files=files, deletes=[(path, positions, "MOVED")],
                              read_snapshot_id=read, **options)
        if options.get("ref", "main") == "main":
            self.deleted(path, positions)
            self.added(*files)
        return files[0]["path"], o

    def row_id(self, path):
        """First row id of a data file of main, from the raw files."""
        if path not in self.kept:
            for r in audit.rows(self.lab.daemon, self.name):
                if r["path"] == path:
                    self.kept[path] = r["_row_id"] - r["pos"]
        return self.kept[path]

    def check(self):
        found = audit.rows(self.lab.daemon, self.name)
        assert sorted(r["id"] for r in found) == self.ids(), self.name
        if self.version >= 3:
            assert len({r["_row_id"] for r in found}) == len(found), self.name


class _Files(dict):
    """A DataFile record that remembers the ids of its rows."""

    def __init__(self, record):
        self.ids = record.pop("ids")
        super().__init__(record)


class Lab:
    """A namespace of one daemon; check() compares every table with its model and runs the auditor."""

    def __init__(self, daemon, space):
        self.daemon, self.space, self.tables = daemon, space, []
        self.rest.want(200, "POST", "/v1/namespaces", {"namespace": [space], "properties": {}})

    @property
    def rest(self):
        return self.daemon.rest

    def table(self, name=None, version=3, audited=True, spec=None, **properties):
        t = Table(self, name or "t%d" % len(self.tables), version, properties, spec)
        t.audited = audited
        self.tables.append(t)
        return t

    def forget(self, table):
        """The table is gone, or not frazil's to answer for any more."""
        self.tables.remove(table)

    def check(self):
        for t in self.tables:
            if t.metadata().get("current-snapshot-id", -1) in (None, -1):
                assert not t.ids(), t.name
                continue
            t.check()
            if t.audited:
                audit.clean(self.daemon, t.name)

    def client(self, **options):
        return frazil.Client(self.daemon.rpc, **{"retries": 0, "timeout": 30, **options})

