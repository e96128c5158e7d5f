"""A pooler before PostgreSQL that gives every transaction another session. The case id is that of the field-case list."""

import socket
import subprocess
import threading
import time


def sql(conninfo, text):
    got = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", conninfo, "-c", text],
                         check=True, capture_output=True, text=True, timeout=60)
    return got.stdout.strip()


class Pooler(threading.Thread):
    """A proxy that gives each transaction of a client the other one of two server sessions, as poolers in transaction mode do."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def exactly(link, n):
        got = b""
        while len(got) < n:
            more = link.recv(n - len(got))
            if not more:
                raise OSError("closed")
            got += more
        return got

    def message(self, link):
        head = self.exactly(link, 5)
        return head + self.exactly(link, int.from_bytes(head[1:], "big") - 4)

    def until_ready(self, server):
        said = b""
        while True:
            m = self.message(server)
            said += m
            if m[:1] == b"Z":
                return said

    def serve(self, client):
        servers = []
        try:
            n = int.from_bytes(self.exactly(client, 4), "big")
            hello = n.to_bytes(4, "big") + self.exactly(client, n - 4)
            for _ in range(2):
                s = socket.socket(socket.AF_UNIX)
                servers.append(s)
                s.connect(self.path)
                s.sendall(hello)
                first = self.until_ready(s)
                if len(servers) == 1:
                    client.sendall(first)
            turn = 0
            while True:
                m = self.message(client)
                servers[turn].sendall(m)
                if m[:1] in b"QS":
                    client.sendall(self.until_ready(servers[turn]))
                    turn = 1 - turn
        except OSError:
            pass
        finally:
            for link in (client, *servers):
                link.close()


def test_behind_a_pooler(make_daemon, postgres):
    """case BC-167: sessions that are not ours for long cannot hold a lock or prepared statements: refused at the start, by name."""
    conninfo = postgres.database()
    words = dict(w.split("=", 1) for w in conninfo.split())
    pooler = Pooler("%s/.s.PGSQL.%s" % (words["host"], words.get("port", "5432")))
    through = " ".join("%s=%s" % kv for kv in {**words, "host": "127.0.0.1", "port": pooler.port, "sslmode": "disable",
                                                "gssencmode": "disable"}.items())
    d = make_daemon(through, start=False)
    d.spawn()
    end = time.monotonic() + 30
    while "a pooling proxy stands before PostgreSQL" not in d.log():
        assert time.monotonic() < end and d.alive, d.log()[-3000:]
        time.sleep(0.05)
    assert d.admin.get("/readyz").status == 503
    # Nothing was made there, and without the proxy it starts.
    assert sql(conninfo, "SELECT count(*) FROM pg_namespace WHERE nspname = 'frazil'") == "0"
    d.stop()
    pooler.listener.close()
    d.settings["pg.conninfo"] = conninfo
    d.start()
