"""HTTP as bytes on a socket; every refusal that passes is held against the error model."""

import json
import socket

H = b"Host: h\r\n"
JSON = b"Content-Type: application/json\r\n"
LAST = b"Connection: close\r\n"


class Wire:
    """A connection of bytes; answers are read one by one and by their own framing."""

    def __init__(self, daemon, timeout=20):
        self.sock = socket.create_connection(("127.0.0.1", daemon.rest_port))
        self.sock.settimeout(timeout)
        self.got = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass  # refused before all of it was read
        return self

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        self.got += data
        return bool(data)

    def answer(self, head=False):
        """(status, headers, body), or None at the end. head: the request was HEAD."""
        while b"\r\n\r\n" not in self.got:
            if not self.more():
                assert self.got == b"", self.got
                return None
        top, self.got = self.got.split(b"\r\n\r\n", 1)
        lines = top.split(b"\r\n")
        version, status = lines[0].split()[:2]
        assert version in (b"HTTP/1.1", b"HTTP/1.0"), lines[0]
        headers = {k.strip().lower(): v.strip() for k, v in (line.split(b":", 1) for line in lines[1:])}
        status = int(status)
        if status == 100:
            return status, headers, b""
        n = 0 if head or status in (204, 304) else int(headers.get(b"content-length", 0))
        while len(self.got) < n:
            assert self.more(), "cut in an answer"
        body, self.got = self.got[:n], self.got[n:]
        if status >= 400 and not head:
            error = json.loads(body)["error"]
            assert headers[b"content-type"] == b"application/json", headers
            assert error["code"] == status and error["message"] and error["type"].endswith(("Exception", "Error")), error
        return status, headers, body

    def over(self):
        """Nothing more comes, and the server closes."""
        assert self.answer() is None
        return True


def ask(daemon, data, head=False):
    with Wire(daemon) as w:
        return w.send(data).answer(head)


def post(target=b"/v1/namespaces", headers=b"", body=b""):
    return b"POST " + target + b" HTTP/1.1\r\n" + H + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body
