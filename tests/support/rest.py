"""A small HTTP and JSON client of the standard library: shows the bytes as they come, hides nothing."""

import http.client
import json
import urllib.parse


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # http.client's message: names in any case
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error model of the REST specification: {message, type, code}."""
        return self.json["error"]

    def __repr__(self):
        return "<%d %s>" % (self.status, self.body[:400])


class Rest:
    """base: "http://127.0.0.1:PORT". Each request is a connection of its own."""

    def __init__(self, base, timeout=60):
        parts = urllib.parse.urlsplit(base)
        self.host, self.port, self.timeout = parts.hostname, parts.port, timeout

    def raw(self, method, target, body=None, headers=None):
        """target goes out as it is; body: bytes or None."""
        link = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            link.request(method, target, body=body, headers=headers or {})
            got = link.getresponse()
            return Reply(got.status, got.headers, got.read())
        finally:
            link.close()

    def call(self, method, target, value=None, headers=None, **query):
        """value: sent as JSON. query: added to the target, percent-encoded."""
        if query:
            target += "?" + urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})
        headers = dict(headers or {})
        body = None
        if value is not None:
            body = json.dumps(value).encode()
            headers.setdefault("Content-Type", "application/json")
        return self.raw(method, target, body, headers)

    def get(self, target, **query):
        return self.call("GET", target, **query)

    def head(self, target, **query):
        return self.call("HEAD", target, **query)

    def post(self, target, value=None, **query):
        return self.call("POST", target, {} if value is None else value, **query)

    def delete(self, target, **query):
        return self.call("DELETE", target, **query)

    def want(self, status, method, target, value=None, **query):
        """The reply, which must have this status."""
        got = self.call(method, target, value, **query)
        if got.status != status:
            raise AssertionError("%s %s: %r, wanted %d" % (method, target, got, status))
        return got


def segment(text):
    """A path segment; a namespace of several levels joins them with U+001F first."""
    return urllib.parse.quote(text, safe="")


def namespace(*levels):
    return segment("\x1f".join(levels))
