"""What the blocking and the asyncio client have in common: names, arguments, hand-shake, retries.
Both define run(generator): the blocking one returns the result, the other a coroutine."""

import random

from . import codec, errors, txn, wire

CLIENT_NAME = "frazil-python/0.1.0"
# Requests whose repetition the server asks for, and that are safe because of their ids.
_REPEAT = ("SAME", "LATER")


def parse_address(address):
    """("unix", path) or ("tcp", host, port)."""
    if address.startswith("unix:"):
        path = address[5:]
        return "unix", path[2:] if path.startswith("//") else path
    if "/" in address:
        return "unix", address
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{address!r} is neither host:port nor a socket path")
    return "tcp", host.strip("[]"), int(port)


def hello_record(provenance):
    return {"min_version": wire.VERSION, "max_version": wire.VERSION, "client": CLIENT_NAME,
            "capabilities": ["provenance"] if provenance else []}


def check_hello(name, record):
    if name == "error":
        raise errors.from_record(record)
    if name != "hello_reply" or record["version"] != wire.VERSION:
        raise errors.ProtocolError("the server does not speak this version of the protocol")
    return record


def check_reply(message, name, record):
    """The reply's record; raises what an Error record says."""
    if name == "error":
        raise errors.from_record(record)
    want = codec.load(message).node["frazil-reply"]
    if codec.load(name).node["name"] != want:
        raise errors.ProtocolError(f"{message} was answered by {name}")
    return record


def repeats(error):
    return error.retry in _REPEAT


def told(error, unsure):
    """The error to raise: one that only refuses to look does not undo what an earlier attempt may have done."""
    if not unsure or not repeats(error) or isinstance(error, errors.Unknown):
        return error
    return errors.Unknown(error.message, code=error.code, name=error.name, field=error.field,
                          retry=error.retry, effect="UNKNOWN", outcome=error.outcome)


def pause(attempt):
    """Seconds before the next attempt: growing, with chance, so that clients do not march."""
    return min(2.0, 0.05 * 2 ** attempt) * (0.5 + random.random() / 2)


class FragmentApi(txn.Fragment):
    def append(self, data):
        return self._txn.client.run(self.add_append(data))

    def delete(self, data_file, positions, provenance=None):
        """Sends nothing; needs no await."""
        self.add_delete(data_file, positions, provenance)

    def delete_blob(self, data_file, path, offset, length, cardinality, provenance=None):
        """As delete(), by a vector that stands in a range of a file."""
        self.add_blob(data_file, path, offset, length, cardinality, provenance)

    def delete_file(self, deletes, spec_id=None, partition=()):
        """As Transaction.delete_file(); writes the file at once."""
        return self._txn.client.run(self.add_delete_file(deletes, spec_id, partition))

    def message(self, dialect, text):
        """The report of an engine's task, as in Transaction.stage_messages(). Sends nothing."""
        self.add_message(dialect, text)

    def update(self, data_file, positions, new_rows, row_ids):
        return self._txn.client.run(self.add_update(data_file, positions, new_rows, row_ids))

    def stage(self):
        return self._txn.client.run(self.run_stage())


class TxnApi(txn.TxnState):
    """A transaction: `id`, `token`, `info` (BeginReply), `staged`, `outcome` (the last one)."""

    def __init__(self, client, begin, info):
        super().__init__(begin, info)
        self.client = client

    def append(self, data, fragment_id=None, attempt=0):
        """Writes the rows to new data files and stages them as one fragment."""
        return self.client.run(self.run_append(data, fragment_id, attempt))

    def delete(self, data_file, positions, provenance=None, fragment_id=None, attempt=0):
        """Stages positions of rows to delete; data_file exactly as in the manifest."""
        return self.client.run(self.run_delete(data_file, positions, provenance, fragment_id,
                                               attempt))

    def delete_file(self, deletes, spec_id=None, partition=(), fragment_id=None, attempt=0):
        """On format version 2: writes {data file: positions} as one file of position deletes and
        stages it. The data files are of one spec (spec_id, the current one by default) and
        partition (values as in partition of data_file.avsc)."""
        return self.client.run(self.run_delete_file(deletes, spec_id, partition, fragment_id,
                                                    attempt))

    def update(self, data_file, positions, new_rows, row_ids, fragment_id=None, attempt=0):
        """Deletes the old rows as moved and writes new_rows, which keep the given row ids."""
        return self.client.run(self.run_update(data_file, positions, new_rows, row_ids,
                                               fragment_id, attempt))

    def stage_messages(self, dialect, *texts, fragment_id=None, attempt=0):
        """Stages what tasks of an engine report, as one fragment: the JSON (str or bytes) of VELOX,
        PRESTO, TRINO or ICEBERG (content files), as the engine made it."""
        return self.client.run(self.run_messages(dialect, texts, fragment_id, attempt))

    def fragment(self, fragment_id=None, attempt=0):
        """Collects several things into one fragment; call its stage() at the end."""
        return FragmentApi(self, fragment_id, attempt)

    def stage_files(self, data_files=(), deletes=(), fragment_id=None, attempt=0, delete_files=(),
                    messages=(), manifests=()):
        """Stages records made elsewhere: dicts as in fragment.avsc."""
        return self.client.run(self.run_stage(
            fragment_id, attempt, data_files=data_files, deletes=deletes,
            delete_files=delete_files, messages=messages, manifests=manifests))

    def seal(self, expected=True):
        return self.client.run(self.run_seal(expected))

    def commit(self, max_wait_ms=0, summary=None):
        """Seals if needed and waits for the outcome. Raises Rejected or TransactionOver; an
        outcome that is not final (max_wait_ms passed) is returned: call again."""
        return self.client.run(self.run_commit(max_wait_ms, summary))

    def status(self):
        return self.client.run(self.run_status())

    def abort(self, reason=""):
        """The answer may say COMMITTED: then the abort came too late."""
        return self.client.run(self.run_abort(reason))


class TableApi:
    def __init__(self, client, name, warehouse):
        txn.table_name(name)
        self.client = client
        self.name = name
        self.warehouse = warehouse

    def begin(self, **options):
        """kind, read_snapshot_id, ref, txn_id, isolation, filter, ordered, source, ttl_ms."""
        return self.client.run(txn.run_begin(
            self.name, self.warehouse,
            lambda begin, info: self.client.transaction_class(self.client, begin, info), options))

    def info(self):
        """The BeginReply of a transaction that is given up at once: schema, spec, location."""
        return self.client.run(txn.run_info(self.name, self.warehouse))


class ClientApi:
    table_class = TableApi
    transaction_class = TxnApi

    def __init__(self, address, timeout=60.0, retries=5, warehouse=None, provenance=False):
        self.address = parse_address(address)
        self.timeout = timeout
        self.retries = retries
        self.warehouse = warehouse
        self.provenance = provenance
        self.hello = None

    def table(self, name, warehouse=None):
        return self.table_class(self, name, warehouse or self.warehouse)

    def status(self, txn_id):
        def ask():
            return txn.Outcome((yield "call", "status", {"txn_id": txn_id}))
        return self.run(ask())

    def heartbeat(self, txns):
        """Renews many transactions; a dict {txn_id, state, error} for each."""
        return self.run(txn.run_heartbeat(txns))

    def commit_once(self, name, *, data=None, deletes=(), data_files=(), delete_files=(),
                    messages=(), manifests=(), info=None, summary=None, max_wait_ms=0,
                    warehouse=None, **options):
        """A whole transaction in one message. data: rows to append (info, a BeginReply, saves the
        look-up of schema and location); deletes: (data file, positions[, provenance]) each."""
        return self.run(txn.run_commit_once(
            name, warehouse or self.warehouse, data=data, deletes=deletes, data_files=data_files,
            delete_files=delete_files, messages=messages, manifests=manifests, info=info, summary=summary, max_wait_ms=max_wait_ms, **options))

    def check_size(self, payload):
        limit = self.hello["max_frame_bytes"] if self.hello else wire.MAX_FRAME
        if len(payload) + wire.HEADER.size > limit:
            raise errors.Error(f"the message has {len(payload)} bytes, a frame may have {limit}",
                               name="TOO_LARGE")
