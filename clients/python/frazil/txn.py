"""Transactions without sockets. Every operation is a generator that yields requests and takes their
answers, so that the blocking and the asyncio client share the whole logic.

A yielded item is ("call", message, record), answered by the reply's record, or ("do", function),
answered by the function's result: it may write files and is run beside the loop by asyncio.
"""

import dataclasses
import hashlib
import os
import time
import uuid

from . import codec, dv, errors, parquet

_FINAL = ("COMMITTED", "REJECTED", "ABORTED", "EXPIRED", "LOST")


def uuid7(ms=None):
    """A version 7 UUID (RFC 9562) of now, or of a Unix time in milliseconds."""
    ms = time.time_ns() // 1_000_000 if ms is None else ms
    raw = bytearray(ms.to_bytes(6, "big") + os.urandom(10))
    raw[6] = raw[6] & 0x0F | 0x70
    raw[8] = raw[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(raw))


class Outcome:
    """State of a transaction and what it did: the members of the Outcome record as attributes."""

    def __init__(self, record):
        self.raw = record
        self.__dict__.update(record)

    @property
    def final(self):
        return self.raw["state"] in _FINAL

    def __repr__(self):
        return f"<Outcome {self.raw['state']} txn={self.raw['txn_id']} " \
               f"snapshot={self.raw['snapshot_id']}>"


@dataclasses.dataclass
class Staged:
    fragment_id: str
    attempt: int
    digest: bytes
    doomed: str
    warnings: list
    record: dict

    @property
    def data_files(self):
        return self.record["data_files"]

    @property
    def deletes(self):
        return self.record["deletes"]


def raise_if_lost(outcome):
    """The outcome, unless it is final without having committed."""
    if outcome.state == "REJECTED":
        reject = outcome.reject or {"message": "rejected", "code": 0, "name": "", "field": "",
                                    "retry": "NONE", "effect": "CLEAN"}
        found = errors.from_record(reject, outcome)
        if isinstance(found, errors.Rejected):
            raise found
        raise errors.Rejected(found.message, code=found.code, name=found.name, field=found.field,
                              retry=found.retry, effect=found.effect, outcome=outcome)
    if outcome.final and outcome.state != "COMMITTED":
        # Its table went and took it along, or simply its state.
        why = outcome.reject or {"message": f"the transaction is {outcome.state.lower()}",
                                 "name": outcome.state}
        raise errors.TransactionOver(why["message"], name=why["name"], outcome=outcome)
    return outcome


def table_name(name):
    """(levels of the namespace, table) from "a.b.t" or ("a", "b", "t")."""
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    if len(parts) < 2 or not all(parts):
        raise ValueError(f"{name!r} names no table: namespace and table are needed")
    return list(parts[:-1]), parts[-1]


def begin_record(name, warehouse, *, kind="APPEND", read_snapshot_id=None, ref="main", txn_id=None,
                 isolation="SNAPSHOT", filter=None, ordered=False, source=None, ttl_ms=0):
    namespace, table = table_name(name)
    return {
        "txn_id": uuid.UUID(str(txn_id)) if txn_id else uuid7(),
        "warehouse": warehouse or "", "namespace": namespace, "table": table, "ref": ref,
        "kind": kind.upper(), "isolation": isolation.upper(),
        "read_snapshot_id": read_snapshot_id, "filter": filter, "ordered": ordered,
        "source": source, "ttl_ms": ttl_ms,
    }


def delete_record(data_file, positions, provenance=None, includes_existing=False):
    positions = dv.unique(positions)
    return {"data_file": data_file, "vector": dv.encode(positions), "cardinality": len(positions),
            "provenance": (provenance or "ABSENT").upper(), "includes_existing": includes_existing}


def blob_record(data_file, path, offset, length, cardinality, provenance=None,
                includes_existing=False):
    """Deletes by a vector that stands in a range of a file, which the server fetches."""
    return {"data_file": data_file, "vector": b"", "cardinality": cardinality,
            "provenance": (provenance or "ABSENT").upper(), "includes_existing": includes_existing,
            "blob": {"path": path, "offset": offset, "length": length}}


# The arrays of a fragment, in the order in which its digest covers them.
PARTS = ("data_files", "deletes", "delete_files", "messages", "manifests")


def fragment_record(fragment_id, attempt, data_files=(), deletes=(), delete_files=(), messages=(),
                    manifests=()):
    fields = codec.load("fragment").fields
    parts = dict(zip(PARTS, map(list, (data_files, deletes, delete_files, messages, manifests))))
    digest = hashlib.sha256(b"".join(fields[p].encode(parts[p]) for p in PARTS)).digest()
    return {"fragment_id": fragment_id, "attempt": attempt, "digest": digest, **parts}


def properties(summary):
    return [{"key": k, "value": str(v)} for k, v in (summary or {}).items()]


class Fragment:
    """What one task produces; nothing is sent before stage()."""

    def __init__(self, txn, fragment_id, attempt):
        self._txn = txn
        self.fragment_id = fragment_id
        self.attempt = attempt
        self.data_files = []
        self.deletes = []
        self.delete_files = []
        self.messages = []
        self.manifests = []

    def add_append(self, data):
        self.data_files += yield "do", lambda: parquet.write(data, self._txn.info,
                                                             name=self._txn.file_prefix())

    def add_delete(self, data_file, positions, provenance=None):
        self.deletes.append(delete_record(data_file, positions, provenance))

    def add_blob(self, data_file, path, offset, length, cardinality, provenance=None):
        self.deletes.append(blob_record(data_file, path, offset, length, cardinality, provenance))

    def add_delete_file(self, deletes, spec_id=None, partition=()):
        self.delete_files.append((yield "do", lambda: parquet.write_deletes(
            deletes, self._txn.info, spec_id=spec_id, partition=partition,
            name=self._txn.file_prefix())))

    def add_message(self, dialect, text):
        """text: the JSON of one task of VELOX, PRESTO, TRINO or ICEBERG, as the engine made it."""
        raw = text.encode() if isinstance(text, str) else bytes(text)
        self.messages.append({"dialect": dialect.upper(), "json": raw})

    def add_manifest(self, path, length, added_files, added_rows):
        self.manifests.append({"path": path, "length": length, "added_files": added_files,
                               "added_rows": added_rows})

    def add_update(self, data_file, positions, new_rows, row_ids):
        self.data_files += yield "do", lambda: parquet.write(new_rows, self._txn.info,
                                                             row_ids=row_ids,
                                                             name=self._txn.file_prefix())
        self.add_delete(data_file, positions, "MOVED")

    def run_stage(self):
        return (yield from self._txn.run_stage(self.fragment_id, self.attempt,
                                               **{p: getattr(self, p) for p in PARTS}))


class TxnState:
    """Ids, token and staged fragments of one transaction. Not for several threads at once."""

    def __init__(self, begin, info):
        self.begin = begin
        self.info = info
        self.id = begin["txn_id"]
        self.token = info["lease_token"]
        self.staged = {}
        self.sealed = None
        self.outcome = None

    def file_prefix(self):
        return str(self.id)

    def _ids(self):
        return {"txn_id": self.id, "lease_token": self.token}

    def _name(self, fragment_id):
        """A name that the same calls in the same order get again."""
        return str(len(self.staged)) if fragment_id is None else str(fragment_id)

    def run_stage(self, fragment_id, attempt, **parts):
        record = fragment_record(self._name(fragment_id), attempt, **parts)
        reply = yield "call", "stage", {**self._ids(), "fragment": record}
        if reply["digest"] != record["digest"]:
            raise errors.ProtocolError("the server computed another digest of the fragment")
        staged = Staged(reply["fragment_id"], reply["attempt"], reply["digest"], reply["doomed"],
                        reply["warnings"], record)
        self.staged[staged.fragment_id] = staged
        return staged

    def run_append(self, data, fragment_id=None, attempt=0):
        f = Fragment(self, fragment_id, attempt)
        yield from f.add_append(data)
        return (yield from f.run_stage())

    def run_delete(self, data_file, positions, provenance=None, fragment_id=None, attempt=0):
        f = Fragment(self, fragment_id, attempt)
        f.add_delete(data_file, positions, provenance)
        return (yield from f.run_stage())

    def run_messages(self, dialect, texts, fragment_id=None, attempt=0):
        f = Fragment(self, fragment_id, attempt)
        for text in texts:
            f.add_message(dialect, text)
        return (yield from f.run_stage())

    def run_delete_file(self, deletes, spec_id=None, partition=(), fragment_id=None, attempt=0):
        f = Fragment(self, fragment_id, attempt)
        yield from f.add_delete_file(deletes, spec_id, partition)
        return (yield from f.run_stage())

    def run_update(self, data_file, positions, new_rows, row_ids, fragment_id=None, attempt=0):
        f = Fragment(self, fragment_id, attempt)
        yield from f.add_update(data_file, positions, new_rows, row_ids)
        return (yield from f.run_stage())

    def run_seal(self, expected=True):
        """expected: state the totals of what was staged, so that a loss is noticed; what task
        messages hold is not known here, with one of them none are stated."""
        staged = list(self.staged.values())
        record = {**self._ids(), "fragments": [
            {"fragment_id": s.fragment_id, "attempt": s.attempt, "digest": s.digest}
            for s in staged]}
        parts = {p: [x for s in staged for x in s.record[p]] for p in PARTS}
        if expected and not parts["messages"]:
            files, manifests = parts["data_files"], parts["manifests"]
            record["expected_files"] = len(files) + sum(m["added_files"] for m in manifests)
            record["expected_rows"] = sum(f["record_count"] for f in files) + \
                sum(m["added_rows"] for m in manifests)
            record["expected_deleted"] = sum(d["cardinality"] for d in parts["deletes"]) + \
                sum(d["record_count"] for d in parts["delete_files"])
        self.sealed = yield "call", "seal", record
        return self.sealed

    def run_commit(self, max_wait_ms=0, summary=None):
        if self.sealed is None:
            yield from self.run_seal()
        reply = yield "call", "commit", {**self._ids(), "max_wait_ms": max_wait_ms,
                                         "summary": properties(summary)}
        self.outcome = Outcome(reply)
        return raise_if_lost(self.outcome)

    def run_status(self):
        self.outcome = Outcome((yield "call", "status", {"txn_id": self.id}))
        return self.outcome

    def run_abort(self, reason=""):
        self.outcome = Outcome((yield "call", "abort", {**self._ids(), "reason": reason}))
        return self.outcome


def run_begin(name, warehouse, make, options):
    record = begin_record(name, warehouse, **options)
    return make(record, (yield "call", "begin", record))


def run_info(name, warehouse):
    """What a worker must know in order to write: from a transaction that is given up at once."""
    record = begin_record(name, warehouse)
    reply = yield "call", "begin", record
    yield "call", "abort", {"txn_id": record["txn_id"], "lease_token": reply["lease_token"],
                            "reason": "schema look-up"}
    return reply


def run_commit_once(name, warehouse, *, data=None, deletes=(), data_files=(), delete_files=(),
                    messages=(), manifests=(), info=None, summary=None, max_wait_ms=0, **options):
    begin = begin_record(name, warehouse, **options)
    files = list(data_files)
    if data is not None:
        if info is None:
            info = yield from run_info(name, warehouse)
        files += yield "do", lambda: parquet.write(data, info, name=str(begin["txn_id"]))
    records = [d if isinstance(d, dict) else delete_record(*d) for d in deletes]
    reply = yield "call", "commit_once", {
        "begin": begin, "fragments": [fragment_record("0", 0, files, records, delete_files,
                                                       messages, manifests)],
        "summary": properties(summary), "max_wait_ms": max_wait_ms}
    return raise_if_lost(Outcome(reply))


def run_heartbeat(txns):
    reply = yield "call", "heartbeat", {
        "items": [{"txn_id": t.id, "lease_token": t.token} for t in txns]}
    return reply["items"]


def wait_of(message, record):
    """Seconds that the server may take on purpose before it answers."""
    return record.get("max_wait_ms", 0) / 1000 if message in ("commit", "commit_once") else 0
