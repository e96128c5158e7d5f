"""The blocking client. Calls of several threads share one connection and are pipelined on it."""

import itertools
import socket
import threading
import time

from . import api, codec, errors, txn, wire


class _Slot:
    """Where a thread waits for its answer."""

    def __init__(self):
        self.ready = threading.Event()
        self.answer = None
        self.error = None


class _Connection:
    """One socket and the thread that reads it. Broken once, it stays broken."""

    def __init__(self, address, timeout, provenance):
        if address[0] == "unix":
            self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._sock.settimeout(timeout)
            self._sock.connect(address[1])
        else:
            self._sock = socket.create_connection(address[1:], timeout)
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ids = itertools.count(1)
        self._slots = {}
        self._lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._reader = wire.Reader()
        self.broken = None
        try:
            self.hello = self._shake_hands(provenance)
        except BaseException:
            self._sock.close()
            raise
        self._sock.settimeout(None)
        threading.Thread(target=self._read, name="frazil-reader", daemon=True).start()

    def _shake_hands(self, provenance):
        self._sock.sendall(wire.request("hello", 0, api.hello_record(provenance)))
        while True:
            data = self._sock.recv(65536)
            if not data:
                raise ConnectionError("the server closed the connection")
            for kind, _, _, payload in self._reader.feed(data):
                return api.check_hello(*wire.answer(kind, payload))

    def _read(self):
        try:
            while True:
                data = self._sock.recv(262144)
                if not data:
                    raise ConnectionError("the server closed the connection")
                for kind, _, request_id, payload in self._reader.feed(data):
                    with self._lock:
                        slot = self._slots.pop(request_id, None)
                    if slot is not None:
                        slot.answer = (kind, payload)
                        slot.ready.set()
        except (OSError, errors.ProtocolError) as e:
            self.close(e)

    def request(self, kind, payload, timeout):
        """(type, payload) of the answer; OSError when the connection breaks or time passes."""
        slot = _Slot()
        with self._lock:
            if self.broken:
                raise ConnectionError(str(self.broken))
            request_id = next(self._ids) & 0xFFFFFFFF
            self._slots[request_id] = slot
        try:
            with self._send_lock:
                self._sock.sendall(wire.frame(kind, request_id, payload))
        except OSError as e:
            self.close(e)
            raise
        if not slot.ready.wait(timeout):
            self.close(TimeoutError(f"no answer within {timeout} s"))
            raise TimeoutError(f"no answer within {timeout} s")
        if slot.error:
            raise ConnectionError(str(slot.error))
        return slot.answer

    def close(self, why=None):
        with self._lock:
            if self.broken:
                return
            self.broken = why or ConnectionError("closed")
            slots, self._slots = self._slots, {}
        # Wakes the reading thread; the descriptor itself goes with the last reference.
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()
        for slot in slots.values():
            slot.error = self.broken
            slot.ready.set()


class Transaction(api.TxnApi):
    """Leaving the `with` block commits, an exception aborts."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            if self.outcome is None or not self.outcome.final:
                self.commit()
            return
        try:
            self.abort(f"{kind.__name__}")
        except errors.Error:
            # The first exception tells what went wrong; the transaction expires by itself.
            pass


class Client(api.ClientApi):
    """Client("host:port") or Client("unix:/path"): connects at once."""

    transaction_class = Transaction

    def __init__(self, address, timeout=60.0, retries=5, warehouse=None, provenance=False):
        super().__init__(address, timeout, retries, warehouse, provenance)
        self._conn = None
        self._conn_lock = threading.Lock()
        self._closed = False
        self._attempts(lambda: self._connection())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self._closed = True
        with self._conn_lock:
            if self._conn:
                self._conn.close()

    def _connection(self):
        with self._conn_lock:
            if self._closed:
                raise errors.Error("the client is closed")
            if self._conn is None or self._conn.broken:
                self._conn = _Connection(self.address, self.timeout, self.provenance)
                self.hello = self._conn.hello
            return self._conn

    def _attempts(self, once):
        unsure = False
        for attempt in itertools.count():
            try:
                return once()
            except OSError as e:
                unsure = True
                if attempt >= self.retries:
                    raise errors.ConnectionLost(f"no connection: {e}", retry="SAME",
                                                effect="UNKNOWN") from e
            except errors.Error as e:
                unsure = unsure or e.effect == "UNKNOWN"
                if attempt >= self.retries or not api.repeats(e):
                    raise api.told(e, unsure)
            time.sleep(api.pause(attempt))

    def call(self, message, record):
        """Sends one message and returns the reply's record; repeats where that is safe."""
        payload = codec.load(message).encode(record)
        self.check_size(payload)
        kind = codec.messages()[1][message]
        timeout = self.timeout + txn.wait_of(message, record)

        def once():
            answer = self._connection().request(kind, payload, timeout)
            return api.check_reply(message, *wire.answer(*answer))
        return self._attempts(once)

    def run(self, steps):
        """Drives one of the generators of txn.py."""
        try:
            item = next(steps)
            while True:
                try:
                    result = self.call(*item[1:]) if item[0] == "call" else item[1]()
                except Exception as e:
                    item = steps.throw(e)
                else:
                    item = steps.send(result)
        except StopIteration as end:
            return end.value
