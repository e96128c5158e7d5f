"""The Python client against a server of a few lines that speaks the published schemas by fastavro."""

import asyncio
import io
import json
import os
import socket
import struct
import threading
import uuid

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil import codec, wire

AVSC = os.path.join(os.path.dirname(codec.__file__), "avsc")
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "v", "required": False, "type": "string"}]}


def oracle(name):
    with open(os.path.join(AVSC, name + ".avsc"), encoding="utf-8") as f:
        return fastavro.parse_schema(json.load(f))


ORACLE = {f[:-5]: oracle(f[:-5]) for f in os.listdir(AVSC)}
BY_TYPE = {s["frazil-type"]: n for n, s in ORACLE.items() if "frazil-type" in s}
TYPE_OF = {n: t for t, n in BY_TYPE.items()}


def error(name, code, retry="NONE", effect="CLEAN"):
    return "error", {"code": code, "name": name, "field": "f", "message": "m", "retry": retry,
                     "effect": effect}


class Server:
    """One thread for each connection. `script` maps a message's name to a list of actions taken in
    turn before the normal answer: "drop" closes after reading, a tuple is sent instead."""

    def __init__(self, folder, path=None):
        self.folder = folder
        self.script = {}
        self.seen = []
        self.connections = 0
        self.delay_answers = False
        self._lock = threading.Lock()
        if path:
            self._sock = socket.socket(socket.AF_UNIX)
            self._sock.bind(path)
            self.address = "unix:" + path
        else:
            self._sock = socket.socket()
            self._sock.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % self._sock.getsockname()[1]
        self._sock.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._sock.close()

    def _accept(self):
        while True:
            try:
                conn, _ = self._sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn):
        held = []
        data = b""
        with conn:
            while True:
                while len(data) < 4 or len(data) < 4 + struct.unpack(">I", data[:4])[0]:
                    more = conn.recv(65536)
                    if not more:
                        return
                    data += more
                n = 4 + struct.unpack(">I", data[:4])[0]
                whole, data = data[:n], data[n:]
                kind, version, request_id, crc = struct.unpack(">BBII", whole[4:14])
                assert crc == wire.crc32c_plain(whole[:10] + whole[14:]) and version == 1
                name = BY_TYPE[kind]
                value = fastavro.schemaless_reader(io.BytesIO(whole[14:]), ORACLE[name])
                with self._lock:
                    self.seen.append((name, value))
                    step = self.script[name].pop(0) if self.script.get(name) else None
                if step == "drop":
                    return
                answer = self._frame(step or self._answer(name, value), request_id)
                if not self.delay_answers or name == "hello":
                    conn.sendall(answer)
                    continue
                # Answers in the opposite order, four at a time.
                held.append(answer)
                if len(held) == 4:
                    conn.sendall(b"".join(reversed(held)))
                    held = []

    @staticmethod
    def _frame(answer, request_id):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, ORACLE[answer[0]], answer[1])
        return wire.frame(TYPE_OF[answer[0]], request_id, out.getvalue())

    def _answer(self, name, v):
        if name == "hello":
            return "hello_reply", {"version": 1, "server": "fake", "daemon_id": bytes(16),
                                   "max_frame_bytes": 1 << 20, "capabilities": []}
        if name == "begin":
            return "begin_reply", {
                "txn_id": v["txn_id"], "table_uuid": bytes(16), "incarnation": 1,
                "lease_token": b"token", "ttl_ms": 60000, "location": f"file://{self.folder}",
                "data_location": f"file://{self.folder}/data", "format_version": 3,
                "schema_id": 0, "schema_json": json.dumps(SCHEMA), "spec_id": 0,
                "spec_json": '{"spec-id": 0, "fields": []}', "sort_order_id": 0,
                "read_snapshot_id": v["read_snapshot_id"]}
        if name == "stage":
            f = v["fragment"]
            return "stage_reply", {"fragment_id": f["fragment_id"], "attempt": f["attempt"],
                                   "digest": f["digest"], "doomed": "NONE", "warnings": []}
        if name == "seal":
            return "seal_reply", {"set_digest": bytes(32)}
        if name == "heartbeat":
            return "heartbeat_reply", {"items": [
                {"txn_id": i["txn_id"], "state": "OPEN", "error": None} for i in v["items"]]}
        begin = v.get("begin", v)
        return "outcome", outcome(begin["txn_id"], {"abort": "ABORTED"}.get(name, "COMMITTED"))

    def names(self):
        return [n for n, _ in self.seen if n != "hello"]

    def last(self, name):
        return [v for n, v in self.seen if n == name][-1]


def outcome(txn_id, state, reject=None):
    return {"txn_id": txn_id, "state": state, "snapshot_id": 9, "sequence_number": 2,
            "batch_no": 1, "batch_id": bytes(16), "metadata_location": "m", "rows_inserted": 3,
            "rows_updated": 0, "rows_deleted": 0, "files": [], "deletes": [], "reject": reject,
            "queue_position": None, "note": ""}


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path)
    yield s
    s.close()


@pytest.fixture
def client(server):
    with frazil.Client(server.address, timeout=10) as c:
        yield c


ROWS = pa.table({"id": [1, 2, 3], "v": ["a", None, "c"]})


def test_append(server, client):
    with client.table("a.b.t").begin() as txn:
        staged = txn.append(ROWS)
    assert txn.outcome.state == "COMMITTED" and txn.outcome.snapshot_id == 9
    assert server.names() == ["begin", "stage", "seal", "commit"]
    begin = server.last("begin")
    assert begin["namespace"] == ["a", "b"] and begin["table"] == "t" and begin["kind"] == "APPEND"
    assert uuid.UUID(bytes=begin["txn_id"]).version == 7 and begin["txn_id"] == txn.id.bytes
    (f,) = server.last("stage")["fragment"]["data_files"]
    assert f["path"].startswith(f"file://{server.folder}/data/") and f["record_count"] == 3
    assert pq.read_table(f["path"][7:]).num_rows == 3
    seal = server.last("seal")
    assert (seal["expected_files"], seal["expected_rows"], seal["expected_deleted"]) == (1, 3, 0)
    assert seal["fragments"] == [{"fragment_id": "0", "attempt": 0, "digest": staged.digest}]
    assert seal["lease_token"] == b"token"


def test_delete_and_update(server, client):
    txn = client.table("a.t").begin(kind="row_delta", read_snapshot_id=77)
    txn.delete("file:///x", [5, 0, 5], provenance="dead")
    txn.update("file:///y", [1], pa.table({"id": [2]}), [40])
    txn.commit(summary={"k": 1})
    first, second = [v["fragment"] for n, v in server.seen if n == "stage"]
    (d,) = first["deletes"]
    assert d["cardinality"] == 2 and d["provenance"] == "DEAD" and not d["includes_existing"]
    assert d["vector"].hex() == "00000024d1d339640100000000000000000000003a3000000100000000000100" \
        "100000000000050086d2574a"
    assert second["deletes"][0]["provenance"] == "MOVED"
    (f,) = second["data_files"]
    assert f["has_row_ids"] and f["new_row_count"] == 0 and f["updated_row_count"] == 1
    assert pq.read_table(f["path"][7:]).column("_row_id").to_pylist() == [40]
    assert server.last("begin")["read_snapshot_id"] == 77
    assert server.last("seal")["expected_deleted"] == 3
    assert server.last("commit")["summary"] == [{"key": "k", "value": "1"}]
    assert first["fragment_id"] != second["fragment_id"]


def test_fragment_of_several_things(server, client):
    txn = client.table("a.t").begin(kind="ROW_DELTA", read_snapshot_id=1)
    f = txn.fragment("task-7", attempt=2)
    f.append(ROWS)
    f.delete("x", [1])
    assert server.names() == ["begin"]
    f.stage()
    sent = server.last("stage")["fragment"]
    assert sent["fragment_id"] == "task-7" and sent["attempt"] == 2
    assert len(sent["data_files"]) == 1 and len(sent["deletes"]) == 1


@pytest.mark.parametrize("message", ["begin", "stage", "seal", "commit"])
def test_lost_connection_repeats_the_same_message(server, client, message):
    server.script[message] = ["drop", "drop"]
    txn = client.table("a.t").begin()
    txn.append(ROWS)
    assert txn.commit().state == "COMMITTED"
    sent = [v for n, v in server.seen if n == message]
    assert len(sent) == 3 and sent[0] == sent[1] == sent[2]
    assert server.connections == 3


def test_retry_as_the_server_says(server, client):
    server.script["begin"] = [error("OVERLOADED", 18, "LATER")]
    server.script["commit"] = [error("COMMIT_UNKNOWN", 20, "SAME", "UNKNOWN")]
    txn = client.table("a.t").begin()
    assert txn.commit().state == "COMMITTED"
    assert server.names() == ["begin", "begin", "seal", "commit", "commit"]
    assert server.connections == 1


@pytest.mark.parametrize("answer,kind", [
    (error("DIGEST_CONFLICT", 45), frazil.Conflict),
    (error("TXN_EXPIRED", 42), frazil.TransactionOver),
    (error("WRITE_WRITE", 62), frazil.Rejected),
    (error("OVERLOADED", 18, "LATER"), frazil.Overloaded),
    (error("COMMIT_UNKNOWN", 20, "SAME", "UNKNOWN"), frazil.Unknown),
    (error("COMMIT_FAILED", 14, "REFRESH"), frazil.Error),
])
def test_typed_errors(server, answer, kind):
    server.script["begin"] = [answer] * 3
    with frazil.Client(server.address, retries=1) as c:
        with pytest.raises(frazil.Error) as e:
            c.table("a.t").begin()
    assert type(e.value) is kind
    a = answer[1]
    assert (e.value.code, e.value.name, e.value.field, e.value.retry, e.value.effect) == (
        a["code"], a["name"], "f", a["retry"], a["effect"])
    assert len(server.names()) == (2 if a["retry"] in ("SAME", "LATER") else 1)


@pytest.mark.parametrize("first", ["drop", error("COMMIT_UNKNOWN", 20, "SAME", "UNKNOWN")])
def test_an_open_outcome_stays_open(server, first):
    """What an earlier attempt may have done is not undone by a later one that is only refused."""
    busy = error("UNAVAILABLE", 21, "LATER")
    server.script["commit_once"] = [first, busy]
    with frazil.Client(server.address, retries=1) as c:
        with pytest.raises(frazil.Unknown) as e:
            c.commit_once("a.b", kind="DELETE", deletes=[("file:///x", [1])], read_snapshot_id=1)
    assert (e.value.name, e.value.effect) == ("UNAVAILABLE", "UNKNOWN")
    server.script["commit_once"] = [busy, busy]

    async def go():
        async with frazil.AsyncClient(server.address, retries=1) as c:
            await c.commit_once("a.b", kind="DELETE", deletes=[("file:///x", [1])], read_snapshot_id=1)
    with pytest.raises(frazil.Error) as e:
        asyncio.run(go())
    assert (e.value.name, e.value.effect) == ("UNAVAILABLE", "CLEAN")


def test_final_states_raise(server, client):
    txn = client.table("a.t").begin()
    server.script["commit"] = [
        ("outcome", outcome(txn.id.bytes, "REJECTED", error("FILE_GONE", 60)[1])),
        ("outcome", outcome(txn.id.bytes, "EXPIRED")),
        ("outcome", outcome(txn.id.bytes, "SEALED"))]
    with pytest.raises(frazil.Rejected) as e:
        txn.commit()
    assert e.value.name == "FILE_GONE" and e.value.outcome.state == "REJECTED"
    with pytest.raises(frazil.TransactionOver):
        txn.commit()
    assert txn.commit(max_wait_ms=5).state == "SEALED"
    assert txn.commit().state == "COMMITTED"
    assert server.names().count("seal") == 1
    assert txn.abort("late").state == "ABORTED"
    assert client.status(txn.id).state == "COMMITTED"


def test_exception_aborts(server, client):
    with pytest.raises(KeyError):
        with client.table("a.t").begin():
            raise KeyError("x")
    assert server.names() == ["begin", "abort"]


def test_schema_error_sends_nothing(server, client):
    txn = client.table("a.t").begin()
    with pytest.raises(frazil.SchemaError):
        txn.append(pa.table({"v": ["x"]}))
    assert server.names() == ["begin"]


def test_no_server(tmp_path):
    with pytest.raises(frazil.ConnectionLost) as e:
        frazil.Client(str(tmp_path / "none.sock"), retries=1)
    assert e.value.effect == "UNKNOWN"


def test_wrong_digest_is_noticed(server, client):
    txn = client.table("a.t").begin()
    server.script["stage"] = [("stage_reply", {
        "fragment_id": "0", "attempt": 0, "digest": bytes(32), "doomed": "NONE", "warnings": []})]
    with pytest.raises(frazil.ProtocolError):
        txn.append(ROWS)


def test_too_large_is_not_sent(server, client):
    txn = client.table("a.t").begin(kind="DELETE", read_snapshot_id=1)
    with pytest.raises(frazil.Error, match="TOO_LARGE"):
        txn.stage_files(deletes=[{"data_file": "x", "vector": bytes(2 << 20), "cardinality": 1}])
    assert server.names() == ["begin"]


def test_unix_socket_and_commit_once(tmp_path):
    server = Server(tmp_path, str(tmp_path / "s"))
    with frazil.Client(server.address, warehouse="w") as c:
        o = c.commit_once("a.t", kind="DELETE", deletes=[("x", [3])], read_snapshot_id=5)
        assert o.state == "COMMITTED" and server.names() == ["commit_once"]
        sent = server.last("commit_once")
        assert sent["begin"]["warehouse"] == "w" and sent["begin"]["read_snapshot_id"] == 5
        assert sent["fragments"][0]["deletes"][0]["cardinality"] == 1
        c.commit_once("a.t", data=ROWS)
        assert server.names()[1:] == ["begin", "abort", "commit_once"]
        assert len(server.last("commit_once")["fragments"][0]["data_files"]) == 1
    server.close()


def test_threads_share_one_connection(server, client):
    server.delay_answers = True
    results = []

    def work():
        results.append(client.table("a.t").begin().id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    # Four answers in the opposite order, each reached its caller.
    assert {r.bytes for r in results} == {v["txn_id"] for n, v in server.seen if n == "begin"}
    assert len(results) == 4 and server.connections == 1


def test_asyncio(server):
    server.delay_answers = True

    async def main():
        async with frazil.AsyncClient(server.address) as c:
            async def one(i):
                txn = await c.table("a.t").begin(kind="DELETE", read_snapshot_id=i)
                await txn.delete("x", [i])
                return txn, await txn.commit()
            return await asyncio.gather(*(one(i) for i in range(4)))

    done = asyncio.run(main())
    assert all(o.state == "COMMITTED" and o.txn_id == t.id for t, o in done)
    assert server.connections == 1 and len(server.names()) == 16


def test_asyncio_lost_connection_and_files(server):
    async def main():
        async with frazil.AsyncClient(server.address) as c:
            server.script["stage"] = ["drop"]
            async with await c.table("a.t").begin() as txn:
                await txn.append(ROWS)
            beats = await c.heartbeat([txn])
            return txn.outcome, beats

    o, beats = asyncio.run(main())
    assert o.state == "COMMITTED" and beats[0]["state"] == "OPEN"
    sent = [v for n, v in server.seen if n == "stage"]
    assert len(sent) == 2 and sent[0] == sent[1]


def test_hello(server, client):
    assert client.hello["server"] == "fake"
    with frazil.Client(server.address, provenance=True):
        assert server.last("hello")["capabilities"] == ["provenance"]
    server.script["hello"] = [("hello_reply", {
        "version": 2, "server": "x", "daemon_id": bytes(16), "max_frame_bytes": 1 << 20,
        "capabilities": []})]
    with pytest.raises(frazil.ProtocolError):
        frazil.Client(server.address)


def test_uuid7():
    assert frazil.uuid7(0x0123456789AB).bytes[:6].hex() == "0123456789ab"
    u = frazil.uuid7()
    assert u.version == 7 and u.variant == uuid.RFC_4122
