"""The asyncio client: the names and arguments of the blocking one, every call a coroutine."""

import asyncio
import itertools

from . import api, codec, errors, txn, wire


class _Connection:
    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._frames = wire.Reader()
        self._ids = itertools.count(1)
        self._waiting = {}
        self._task = None
        self.broken = None
        self.hello = None

    @classmethod
    async def open(cls, address, timeout, provenance):
        connect = (asyncio.open_unix_connection(address[1]) if address[0] == "unix"
                   else asyncio.open_connection(*address[1:]))
        self = cls(*await asyncio.wait_for(connect, timeout))
        try:
            self.hello = await asyncio.wait_for(self._shake_hands(provenance), timeout)
        except BaseException:
            self._writer.close()
            raise
        self._task = asyncio.ensure_future(self._read())
        return self

    async def _shake_hands(self, provenance):
        self._writer.write(wire.request("hello", 0, api.hello_record(provenance)))
        while True:
            data = await self._reader.read(65536)
            if not data:
                raise ConnectionError("the server closed the connection")
            for kind, _, _, payload in self._frames.feed(data):
                return api.check_hello(*wire.answer(kind, payload))

    async def _read(self):
        try:
            while True:
                data = await self._reader.read(262144)
                if not data:
                    raise ConnectionError("the server closed the connection")
                for kind, _, request_id, payload in self._frames.feed(data):
                    waiting = self._waiting.pop(request_id, None)
                    if waiting is not None and not waiting.done():
                        waiting.set_result((kind, payload))
        except (OSError, errors.ProtocolError) as e:
            self.close(e)

    async def request(self, kind, payload, timeout):
        if self.broken:
            raise ConnectionError(str(self.broken))
        request_id = next(self._ids) & 0xFFFFFFFF
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting
        try:
            self._writer.write(wire.frame(kind, request_id, payload))
            await self._writer.drain()
            return await asyncio.wait_for(waiting, timeout)
        except asyncio.TimeoutError:
            self.close(TimeoutError("no answer"))
            raise TimeoutError(f"no answer within {timeout} s") from None
        finally:
            self._waiting.pop(request_id, None)

    def close(self, why=None):
        if self.broken:
            return
        self.broken = why or ConnectionError("closed")
        waiting, self._waiting = self._waiting, {}
        for w in waiting.values():
            if not w.done():
                w.set_exception(ConnectionError(str(self.broken)))
        if self._task and self._task is not asyncio.current_task():
            self._task.cancel()
        self._writer.close()


class AsyncTransaction(api.TxnApi):
    """Leaving the `async with` block commits, an exception aborts."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        if kind is None:
            if self.outcome is None or not self.outcome.final:
                await self.commit()
            return
        try:
            await self.abort(f"{kind.__name__}")
        except errors.Error:
            # The first exception tells what went wrong; the transaction expires by itself.
            pass


class AsyncClient(api.ClientApi):
    """AsyncClient("host:port") or AsyncClient("unix:/path"): connects with the first call."""

    transaction_class = AsyncTransaction

    def __init__(self, address, timeout=60.0, retries=5, warehouse=None, provenance=False):
        super().__init__(address, timeout, retries, warehouse, provenance)
        self._conn = None
        self._conn_lock = asyncio.Lock()
        self._closed = False

    async def __aenter__(self):
        await self._attempts(self._connection)
        return self

    async def __aexit__(self, *exc):
        await self.close()

    async def close(self):
        self._closed = True
        if self._conn:
            self._conn.close()

    async def _connection(self):
        async with self._conn_lock:
            if self._closed:
                raise errors.Error("the client is closed")
            if self._conn is None or self._conn.broken:
                self._conn = await _Connection.open(self.address, self.timeout, self.provenance)
                self.hello = self._conn.hello
            return self._conn

    async def _attempts(self, once):
        unsure = False
        for attempt in itertools.count():
            try:
                return await once()
            except (OSError, asyncio.TimeoutError) as e:
                unsure = True
                if attempt >= self.retries:
                    raise errors.ConnectionLost(f"no connection: {e}", retry="SAME",
                                                effect="UNKNOWN") from e
            except errors.Error as e:
                unsure = unsure or e.effect == "UNKNOWN"
                if attempt >= self.retries or not api.repeats(e):
                    raise api.told(e, unsure)
            await asyncio.sleep(api.pause(attempt))

    async def call(self, message, record):
        """Sends one message and returns the reply's record; repeats where that is safe."""
        payload = codec.load(message).encode(record)
        self.check_size(payload)
        kind = codec.messages()[1][message]
        timeout = self.timeout + txn.wait_of(message, record)

        async def once():
            conn = await self._connection()
            answer = await conn.request(kind, payload, timeout)
            return api.check_reply(message, *wire.answer(*answer))
        return await self._attempts(once)

    async def run(self, steps):
        """Drives one of the generators of txn.py; files are written in a thread."""
        try:
            item = next(steps)
            while True:
                try:
                    result = (await self.call(*item[1:]) if item[0] == "call"
                              else await asyncio.get_running_loop().run_in_executor(None, item[1]))
                except Exception as e:
                    item = steps.throw(e)
                else:
                    item = steps.send(result)
        except StopIteration as end:
            return end.value
