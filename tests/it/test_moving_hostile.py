"""frazilctl import from catalogs that are wrong, slow, endless or guarded: it ends, says what it could not read, moves the rest,
and shows no secret. The source is our own fake, so that no other implementation's habits are taken for the protocol."""

import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from support.ctl import command, ctl, environment, move, verdicts
from support.fakecatalog import Answer, FakeCatalog, refusal
from support.lab import SCHEMA
from test_moving import load


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return {"fs.roots": "file://%s" % tmp_path_factory.getbasetemp()}


@pytest.fixture
def fakes(tmp_path):
    made = []

    def make(**kw):
        made.append(FakeCatalog(tmp_path, **kw))
        return made[-1]
    yield make
    for f in made:
        f.close()


@pytest.fixture
def space(request, daemon):
    """A namespace of this test's own."""
    return re.sub(r"\W+", "-", request.node.name)


def listing(path, what):
    return path.endswith("/" + what)


def failures(rows):
    return {k: r["message"] for k, r in rows.items() if r["verdict"] == "failed"}


@pytest.mark.parametrize("page", [None, 1, 3, 10])
def test_pages(daemon, fakes, space, page):
    """Ten names in pages that divide them and that do not; a source without pages. case BC-017"""
    fake = fakes(page=page)
    fake.namespace(space)
    for i in range(10):
        fake.table(space, "t%d" % i)
        fake.namespace(space, "n%d" % i)
    rows, _ = move(0, fake.uri, daemon.uri)
    assert len(rows) == 21 and set(verdicts(rows).values()) == {"registered"}


@pytest.mark.parametrize("kind", ["same", "two", "barren", "endless"])
def test_tokens_that_never_end(daemon, fakes, space, kind):
    """The same token again, two in turn, ever new ones without a new name: the listing ends with an error, what it gave is moved.
    case BC-017"""
    fake = fakes()
    fake.namespace(space)
    fake.namespace(space, "below")
    fake.table(space, "t")
    fake.table(space, "below", "u")
    asked = []

    def hook(c, method, path, query, headers, body):
        if not path.endswith(space + "/tables"):
            return None
        asked.append(query["pageToken"])
        assert len(asked) < 1000, "never ends"
        token = {"same": "x", "two": "x%d" % (len(asked) % 2), "barren": "x%d" % len(asked), "endless": "%d" % len(asked)}[kind]
        rows = [{"namespace": [space], "name": "t"}]
        if kind == "endless" and len(asked) < 150:  # new names are progress
            rows = []
        return Answer(value={"identifiers": rows, "next-page-token": token})
    fake.hook = hook
    rows, total = move(1, fake.uri, daemon.uri)
    (message,) = failures(rows).values()
    assert ("same page token" if kind in ("same", "two") else "nothing new") in message
    assert rows["namespace", space]["verdict"] in ("failed", "registered")
    assert rows["table", space, "below", "u"]["verdict"] == "registered" and total["finished"]
    assert (kind == "endless") != (("table", space, "t") in rows)
    assert len(asked) <= {"same": 2, "two": 3}.get(kind, 101)


def test_wrong_listings(daemon, fakes, space):
    """What is listed where it does not belong is named and not followed: cycles, other namespaces' tables, other shapes."""
    fake = fakes()
    wrong = {
        "self": ("n", [[space, "self"]]), "root": ("n", [[space]]), "up": ("n", []), "two": ("n", [[space, "two", "a", "b"]]),
        "text": ("n", ["a"]), "empty": ("n", [[space, "empty", ""]]), "number": ("n", [[space, "number", 1]]),
        "deep": ("n", [[space] * 40]), "other": ("t", [{"namespace": [space], "name": "t"}]), "bare": ("t", ["t"]),
        "none": ("t", [{"namespace": [space, "none"]}]), "void": ("t", [{"namespace": [space, "void"], "name": ""}]),
        "object": ("t", {"a": 1}), "absent": ("t", None)}
    fake.namespace(space)
    for n in wrong:
        fake.namespace(space, n)
    fake.table(space, "t")

    def hook(c, method, path, query, headers, body):
        name = query.get("parent", "").partition("\x1f")[2]
        if name in wrong and wrong[name][0] == "n":
            return Answer(value={"namespaces": wrong[name][1]})
        if listing(path, "tables"):
            name = path.split("/")[-2].partition("%1F")[2]
            if name in wrong and wrong[name][0] == "t":
                return Answer(value={} if wrong[name][1] is None else {"identifiers": wrong[name][1]})
        return None
    fake.hook = hook
    told = json.loads(ctl(1, "-j", "import", "--from", fake.uri, "--to", daemon.uri))["items"]
    bad = {r["name"][1] for r in told if r["verdict"] == "failed"}
    assert bad == set(wrong) - {"up"}, told
    assert {r["verdict"] for r in told} == {"failed", "registered"}
    # A cycle through other names ends at the depth that a namespace may have.
    loop = fakes()
    loop.namespace(space)

    def down(c, method, path, query, headers, body):
        parent = query.get("parent")
        if parent:
            return Answer(value={"namespaces": [parent.split("\x1f") + ["again"]]})
        if "/namespaces/" in path and "again" in path:
            levels = c.levels(path.split("/")[3])
            return Answer(value={"identifiers": []} if path.count("/") > 3 else {"namespace": list(levels), "properties": {}})
        return None
    loop.hook = down
    rows, _ = move(1, loop.uri, daemon.uri)
    (said,) = [r for r in failures(rows).items() if "32 levels" in r[1]]
    assert len(rows) <= 34 and len(said[0]) >= 32


def test_names_twice(daemon, fakes, space):
    """A name on two pages is one table."""
    fake = fakes(page=2)
    fake.namespace(space)
    for n in "abc":
        fake.table(space, n)
    hooked = []

    def hook(c, method, path, query, headers, body):
        if not listing(path, "tables"):
            return None
        hooked.append(path)
        at = int(query["pageToken"] or 0)
        pages = [["a", "b"], ["b", "a"], ["c", "c"]]
        return Answer(value={"identifiers": [{"namespace": [space], "name": n} for n in pages[at]],
                             "next-page-token": str(at + 1) if at < 2 else None})
    fake.hook = hook
    told = json.loads(ctl(0, "-j", "import", "--from", fake.uri, "--to", daemon.uri))["items"]
    assert [r["name"][-1] for r in told if r["kind"] == "table"] == ["a", "b", "c"] and len(hooked) == 3


BAD_BODIES = [b"", b"{", b"null", b"[]", b'{"a":1,"a":2}', b'{"a":"\xff"}', b"[" * 100000, b"<html>no</html>",
              b'{"metadata-location":1,"metadata":{}}', b'{"metadata-location":"x"}', b'{"metadata":{"table-uuid":"x"}}',
              b'{"metadata-location":null,"metadata":{"table-uuid":"x"}}', b'{"metadata-location":"x","metadata":{"table-uuid":5}}']


def test_wrong_bodies(daemon, fakes, space):
    fake = fakes()
    fake.namespace(space)
    for i in range(len(BAD_BODIES)):
        fake.table(space, "t%02d" % i)
    fake.table(space, "good")
    bodies = iter(BAD_BODIES)
    fake.hook = lambda c, method, path, query, headers, body: Answer(
        body=next(bodies)) if "/tables/t" in path else None
    rows, _ = move(1, fake.uri, daemon.uri, "--parallel", "1")
    assert len(failures(rows)) == len(BAD_BODIES) and rows["table", space, "good"]["verdict"] == "registered"
    # Of the configuration: nothing can be done.
    for body, said in ((b"", "configuration"), (b"{", "JSON"), (b"[]", "configuration"), (b'"x"', "configuration")):
        fake.hook = lambda c, method, path, query, headers, b, body=body: Answer(body=body)
        ctl(4, "import", "--from", fake.uri, "--to", daemon.uri, said=said)


@pytest.mark.parametrize("overrides, said", [
    ({"prefix": "a b"}, "prefix"), ({"prefix": "a?b"}, "prefix"), ({"prefix": "%zz"}, "prefix"),
    ({"namespace-separator": "/"}, "namespace-separator"), ({"namespace-separator": "%1"}, "namespace-separator"),
    ({"uri": "http://127.0.0.1:1/other"}, "another address")])
def test_wrong_configuration(daemon, fakes, overrides, said):
    ctl(4, "import", "--from", fakes(overrides=overrides).uri, "--to", daemon.uri, said=said)


def test_statuses(daemon, fakes, space):
    """Refusals are told with their type; 429 and 503 are waited for, 5xx of reads are tried again, a redirect is not followed."""
    fake, count = fakes(), {}
    fake.namespace(space)
    for n in ("busy", "away", "error", "broken", "moved", "denied", "patient"):
        fake.table(space, n)

    def hook(c, method, path, query, headers, body):
        name = path.rpartition("/")[2]
        if "/tables/" not in path:
            return None
        count[name] = count.get(name, 0) + 1
        first = count[name] < 3
        return {"busy": refusal(429, headers={"Retry-After": "1"}) if first else None,
                "away": refusal(503) if first else None,
                "error": refusal(500, body=b"oops") if first else None,
                "broken": refusal(502),
                "moved": Answer(302, headers={"Location": c.uri + "/v1/config"}),
                "denied": refusal(403, "ForbiddenException", "not you\x1b[31m"),
                "patient": refusal(429, headers={"Retry-After": "3600"})}[name]
    fake.hook = hook
    began = time.monotonic()
    rows, _ = move(1, fake.uri, daemon.uri, "--parallel", "8")
    took = time.monotonic() - began
    got = {k[2]: r for k, r in rows.items() if k[0] == "table"}
    assert {n for n, r in got.items() if r["verdict"] == "registered"} == {"busy", "away", "error"}
    assert took >= 2 and count["busy"] == 3 and count["broken"] > 3 and count["moved"] == count["denied"] == count["patient"] == 1
    assert got["moved"]["status"] == 302 and "redirect" in got["moved"]["message"]
    assert got["denied"]["type"] == "ForbiddenException" and got["denied"]["message"].startswith("not you")
    assert "\x1b" not in ctl(1, "import", "--from", fake.uri, "--to", daemon.uri)
    assert "3600" in got["patient"]["message"] and got["broken"]["status"] == 502


def test_answers_of_the_target_lost(daemon, fakes, space):
    """The target does what it is told and the answer is lost, or says that it does not know: looked at again, done once."""
    fake, middle, count = fakes(), fakes(), {}
    fake.namespace(space, a="b")
    for i in range(12):
        fake.table(space, "t%02d" % i)
    fake.view(space, "v")

    def forward(c, method, path, query, headers, body):
        kind = path.rpartition("/")[2]
        n = count[kind] = count.get(kind, 0) + 1
        writes = method == "POST" and kind in ("register", "register-view", "namespaces")
        if writes and n % 4 == 2:
            return Answer(drop=True)
        got = daemon.rest.raw(method, urllib.parse.quote(path, safe="/%") + ("?" + urllib.parse.urlencode(query) if query else ""),
                              body or None, {"Content-Type": "application/json"})
        if writes and n % 4 in (1, 3):
            return Answer(drop=True) if n % 4 == 1 else refusal(500, "CommitStateUnknownException", "perhaps")
        return Answer(got.status, body=got.body)
    middle.hook = forward
    rows, total = move(0, fake.uri, middle.uri, "--parallel", "1")
    assert len(rows) == total["registered"] == 14 and count["register"] > 12
    for name, (location, _) in fake.tables.items():
        assert load(daemon, *name)["metadata-location"] == location
    assert set(verdicts(move(0, fake.uri, daemon.uri)[0]).values()) == {"same"}


def test_limits(daemon, fakes, space):
    """A body without end, a slow answer, a connection that closes: bounded memory, bounded time."""
    fake = fakes()
    fake.namespace(space)
    fake.table(space, "huge")
    fake.table(space, "good")
    fake.hook = lambda c, method, path, query, headers, body: Answer(endless=True) if path.endswith("/huge") else None
    args = command("-j", "import", "--from", fake.uri, "--to", daemon.uri, "--parallel", "1")
    p = subprocess.Popen(args, stdout=subprocess.PIPE, text=True, env=environment({}))
    told = json.loads(p.stdout.read())
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    rows = {r["name"][-1]: r for r in told["items"]}
    assert p.returncode == 1 and "larger than 32 MiB" in rows["huge"]["message"] and rows["good"]["verdict"] == "registered"
    assert used.ru_maxrss < 400 << 10, used.ru_maxrss
    # Slow beyond the timeout: the run ends, with the exit code of an unreachable catalog.
    fake.hook = lambda c, method, path, query, headers, body: Answer(delay=5) if path.endswith("/huge") else None
    began = time.monotonic()
    ctl(3, "-t", "200", "import", "--from", fake.uri, "--to", daemon.uri, said="imeout")
    assert time.monotonic() - began < 30
    # Lost in the middle: the run ends there and not after as many waits as there are namespaces.
    for i in range(20):
        fake.namespace("%s-%d" % (space, i))
    fake.hook = lambda c, method, path, query, headers, body: Answer(drop=True) if path.endswith(space + "-3") else None
    began = time.monotonic()
    text = ctl(3, "import", "--from", fake.uri, "--to", daemon.uri, said=fake.uri)
    assert time.monotonic() - began < 30 and "not finished" in text and space + "-4" not in text
    fake.hook = lambda c, method, path, query, headers, body: Answer(drop=True)
    ctl(3, "import", "--from", fake.uri, "--to", daemon.uri, said=fake.uri)
    ctl(3, "import", "--from", "http://127.0.0.1:1", "--to", daemon.uri, said="127.0.0.1:1")
    ctl(3, "import", "--from", fake.uri, "--to", "http://127.0.0.1:1", said="127.0.0.1:1")


def test_wrong_options(daemon, fakes, tmp_path):
    fake = fakes()
    base = ["import", "--from", fake.uri, "--to", daemon.uri]
    ctl(2, "import", said="--from")
    ctl(2, *base, "--from-file", "x", said="--from")
    ctl(2, "export", "--from", fake.uri, "--overwrite", said="export")
    for uri in ("ftp://x", "file:///etc/passwd", "http://user:pw@host", "http://h/?a=b", "http://", "x"):
        got = ctl(2, "import", "--from", uri, "--to", daemon.uri, said="address")
        assert got == ""
    for args in (["--parallel", "0"], ["--parallel", "33"], ["--parallel", "x"], ["--nope"], ["extra"]):
        ctl(2, *base, *args)
    secret = tmp_path / "secret"
    secret.write_text("")
    ctl(2, *base, "--token-file", secret, said="no token")
    secret.write_text("nocolon")
    ctl(2, *base, "--credential-file", secret, said="id:secret")
    ctl(2, *base, "--credential-file", secret, "--token-file", secret, said="give one")
    ctl(2, *base, "--token-file", tmp_path / "none", said="No such file")
    ctl(2, *base, "--header", "Authorization: Bearer x", said="file")
    ctl(2, *base, "--header", "nothing", said="Name: value")
    ctl(2, *base, "--header", "A: b\r\nC: d", said="Name: value")
    secret.write_text("x" * 70000)
    ctl(2, *base, "--token-file", secret, said="64 KiB")


@pytest.mark.parametrize("separator, levels", [("%1F", ("a.b", "c/d")), (".", ("a", "c/d")), ("%2E", ("a", "ü")), ("::", ("a:b", "c"))])
def test_separators(daemon, fakes, space, separator, levels):
    """Whatever joins the levels in the source's paths; a prefix that is encoded; an address with a path."""
    fake = fakes(prefix="ware%20house", separator=separator, base="/api/catalog")
    fake.namespace(space, *levels, why="x")
    fake.table(space, *levels, "t/1.%")
    rows, _ = move(0, fake.uri + "/", daemon.uri)
    assert rows["table", space, *levels, "t/1.%"]["verdict"] == "registered"
    assert load(daemon, space, *levels, "t/1.%")["metadata"]["properties"] == {"made": "by hand"}


def test_a_name_with_the_separator(daemon, fakes, space):
    """Where the path would be ambiguous the namespace is reported, not read as another one."""
    fake = fakes(separator=".")
    fake.namespace(space)
    fake.table(space, "t")
    fake.namespaces[(space, "a.b")] = {}
    fake.namespaces[(space, "a")] = {}
    rows, _ = move(1, fake.uri, daemon.uri)
    assert "separates levels" in rows["namespace", space, "a.b"]["message"]
    assert rows["namespace", space, "a"]["verdict"] == rows["table", space, "t"]["verdict"] == "registered"


def test_without_views(daemon, fakes, space):
    """A source that says that it has none is not asked; one that says nothing is asked once."""
    fake = fakes(endpoints=False)
    for n in range(3):
        fake.namespace("%s%d" % (space, n))
    fake.hook = lambda c, method, path, query, headers, body: refusal(404, "NotFound") if listing(path, "views") else None
    move(0, fake.uri, daemon.uri)
    assert len([t for _, t in fake.seen if "/views" in t]) == 1
    fake.seen.clear()
    fake.hook = lambda c, method, path, query, headers, body: Answer(
        value={"defaults": {}, "overrides": {}, "endpoints": ["GET /v1/{prefix}/namespaces"]}) if path == "/v1/config" else None
    move(0, fake.uri, daemon.uri)
    assert not [t for _, t in fake.seen if "/views" in t]


# ---- who we are

def test_static_token(daemon, fakes, space, tmp_path):
    """The token and secret headers reach the source and nothing else: no argument, no output."""
    token, key = "s3cr3t.tok-en", "an0ther-s3cret"
    fake = fakes()
    fake.namespace(space)
    fake.table(space, "t")

    def hook(c, method, path, query, headers, body):
        if headers.get("Authorization") != "Bearer " + token or headers.get("X-Key") != key or headers.get("X-Open") != "yes":
            return refusal(401, "NotAuthorizedException", "who is " + str(headers.get("Authorization")))
        return None
    fake.hook = hook
    files = {"token": token + "\n", "old": "expired\n", "headers": "X-Key: %s\r\n\n" % key}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    args = ["--header", "X-Open: yes", "--header-file", tmp_path / "headers"]
    rows, _ = move(0, fake.uri, daemon.uri, "--token-file", tmp_path / "token", *args)
    assert set(verdicts(rows).values()) == {"registered"}
    text = ctl(0, "import", "--from", fake.uri, "--to", daemon.uri, "--token-file", tmp_path / "token", *args)
    assert token not in text and key not in text and "never shown" not in text
    ctl(4, "import", "--from", fake.uri, "--to", daemon.uri, "--token-file", tmp_path / "old", *args, said="NotAuthorized")
    assert daemon.log().count(token) == 0


def test_client_credentials(daemon, fakes, space, tmp_path):
    """The token endpoint of the source: form, scope, expiry in the middle of a run, refusals that repeat the secret."""
    fake = fakes(prefix="w")
    fake.namespace(space)
    for i in range(8):
        fake.table(space, "t%d" % i)
    issued, secret = [], "p:ss/w%rd ü"
    seen = []

    def hook(c, method, path, query, headers, body):
        if path == "/v1/oauth/tokens":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            assert headers["Content-Type"] == "application/x-www-form-urlencoded" and "Authorization" not in headers
            seen.append(form)
            if form["client_secret"] != secret:
                return Answer(401, {"error": "invalid_client", "error_description": "bad secret " + form["client_secret"]})
            issued.append("token-%d" % len(issued))
            return Answer(value={"access_token": issued[-1], "token_type": "bearer", "expires_in": 3600})
        # Each token is good for ten requests.
        if headers.get("Authorization") != "Bearer " + issued[-1] if issued else True:
            return refusal(401, "NotAuthorizedException", "expired")
        used[issued[-1]] = used.get(issued[-1], 0) + 1
        return refusal(401, "NotAuthorizedException", "expired") if used[issued[-1]] > 10 else None
    used = {}
    fake.hook = hook
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("my:%s\n" % secret, encoding="utf-8")
    bad.write_text("my:hidden-thing")
    rows, _ = move(0, fake.uri, daemon.uri, "--credential-file", good, "--parallel", "1")
    assert len(rows) == 9 and set(verdicts(rows).values()) == {"registered"}
    assert len(issued) >= 2 and seen[0] == {"grant_type": "client_credentials", "client_id": "my", "client_secret": secret,
                                            "scope": "catalog"}
    got = subprocess.run(command("import", "--from", fake.uri, "--to", daemon.uri, "--credential-file", bad, "--scope", "PRINCIPAL_ROLE:ALL"),
                         capture_output=True, text=True, timeout=60, env=environment({}))
    assert got.returncode == 4 and "invalid_client" in got.stderr and "hidden-thing" not in got.stderr + got.stdout
    assert seen[-1]["scope"] == "PRINCIPAL_ROLE:ALL"
    # Another token endpoint, and answers that are none.
    other = fakes()
    for body, said in ((b"{}", "access_token"), (b"x", "access_token"), (b'{"access_token":"a\\nb"}', "access_token"),
                       (b'{"access_token":"a","expires_in":"x"}', "expires_in")):
        other.hook = lambda c, method, path, query, headers, b, body=body: Answer(body=body)
        ctl(4, "import", "--from", fake.uri, "--to", daemon.uri, "--credential-file", good, "--oauth2-uri", other.uri + "/any", said=said)
    assert {t for _, t in other.seen} == {"/any"}


def test_two_guarded_daemons(make_daemon, tmp_path):
    """Source and target each with clients of its own: tokens on both sides, taken anew when the source's are ended in the middle."""
    secrets = {"one": "o" * 40, "two": "t" * 40}
    files = {}
    for n, secret in secrets.items():
        for name, text in ((n + ".clients", "mover:%s\n" % secret), (n + ".secret", "mover:%s\n" % secret)):
            files[name] = tmp_path / name
            files[name].write_text(text)
            files[name].chmod(0o600)
    (tmp_path / "w").mkdir()
    one, two = (make_daemon(settings={
        "auth.clients-file": str(files[n + ".clients"]), "warehouse.location": "file://%s/w" % tmp_path}, start=False) for n in secrets)
    for d in (one, two):
        d.spawn()
        end = time.monotonic() + 30
        while True:
            try:
                if d.rest.get("/v1/config").status == 401:
                    break
            except OSError:
                assert time.monotonic() < end and d.alive, d.log()
                time.sleep(0.05)
    got = one.rest.raw("POST", "/v1/oauth/tokens", urllib.parse.urlencode({
        "grant_type": "client_credentials", "client_id": "mover", "client_secret": secrets["one"]}).encode(),
        {"Content-Type": "application/x-www-form-urlencoded"})
    token = got.json["access_token"]
    headers = {"Authorization": "Bearer " + token}
    assert one.rest.call("POST", "/v1/namespaces", {"namespace": ["g"]}, headers).status == 200
    for i in range(30):
        assert one.rest.call("POST", "/v1/namespaces/g/tables", {"name": "t%02d" % i, "schema": SCHEMA}, headers).status == 200
    ctl(4, "import", "--from", one.uri, "--to", two.uri, "--credential-file", files["one.secret"], said="NotAuthorized")
    ctl(4, "import", "--from", one.uri, "--to", two.uri, "--to-credential-file", files["two.secret"], said="NotAuthorized")
    ctl(4, "import", "--from", one.uri, "--to", two.uri, "--credential-file", files["two.secret"], "--to-credential-file",
        files["two.secret"], said="invalid_client")
    both = ("--credential-file", files["one.secret"], "--to-credential-file", files["two.secret"])

    # A change of the file ends all tokens.
    def end_tokens():
        with open(files["one.clients"], "a", encoding="utf-8") as f:
            f.write("other:%s\n" % ("x" * 40))
        one.process.send_signal(signal.SIGHUP)

    timer = threading.Timer(0.3, end_tokens)
    timer.start()
    rows, total = move(0, one.uri, two.uri, *both, "--parallel", "1")
    timer.join()
    assert total["registered"] == 31
    # A token from a file, on one side.
    time.sleep(0.5)
    got = one.rest.raw("POST", "/v1/oauth/tokens", urllib.parse.urlencode({
        "grant_type": "client_credentials", "client_id": "mover", "client_secret": secrets["one"]}).encode(),
        {"Content-Type": "application/x-www-form-urlencoded"})
    (tmp_path / "token").write_text(got.json["access_token"])
    rows, _ = move(0, one.uri, two.uri, "--token-file", tmp_path / "token", *both[2:])
    assert set(verdicts(rows).values()) == {"same"}
    assert ctl(0, "export", "--from", one.uri, *both[:2]).count("metadata-location") == 30
    for d in (one, two):
        log = d.log()
        assert not [s for s in (*secrets.values(), got.json["access_token"]) if s in log]


def test_tls(daemon, fakes, space, tmp_path):
    """A certificate that --ca-file vouches for, and one that nobody does."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    fake = fakes()
    fake.namespace(space)
    fake.table(space, "t")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    fake.server.socket = context.wrap_socket(fake.server.socket, server_side=True, do_handshake_on_connect=False)
    uri = fake.uri.replace("http:", "https:")
    rows, _ = move(0, uri, daemon.uri, "--ca-file", cert)
    assert rows["table", space, "t"]["verdict"] == "registered"
    began = time.monotonic()
    ctl(3, "import", "--from", uri, "--to", daemon.uri, said="certificate")
    ctl(3, "import", "--from", uri, "--to", daemon.uri, "--ca-file", tmp_path / "none", said=uri)
    assert time.monotonic() - began < 8, "what another try cannot change is not tried again"


def test_export_from_a_hostile_source(fakes, space, tmp_path):
    """What cannot be read is told and left out, the list stays a whole one; a lost source leaves no file."""
    fake = fakes(page=1)
    fake.namespace(space, note="\u2028 'x'")
    fake.table(space, "good")
    fake.table(space, "bad")
    fake.table(space, "dropped")
    hooks = {"bad": refusal(403, "ForbiddenException", "no"), "dropped": refusal(404, "NoSuchTableException", "gone")}
    fake.hook = lambda c, method, path, query, headers, body: hooks.get(path.rpartition("/")[2]) if "/tables/" in path else None
    out = tmp_path / "list"
    ctl(1, "export", "--from", fake.uri, "--output", out, said="%s.bad: ForbiddenException" % space)
    lines = [json.loads(x) for x in out.read_text(encoding="utf-8").splitlines()]
    assert [x for x in lines if "table" in x] == [{"table": [space, "good"], "uuid": fake.tables[space, "good"][1]["table-uuid"],
                                                   "metadata-location": fake.tables[space, "good"][0]}]
    assert lines[1] == {"namespace": [space], "properties": {"note": "\u2028 'x'"}} and lines[-1]["end"]["tables"] == 1
    lost = tmp_path / "lost"
    fake.hook = lambda c, method, path, query, headers, body: Answer(drop=True) if "/tables/" in path else None
    ctl(3, "export", "--from", fake.uri, "--output", lost, said=fake.uri)
    assert not lost.exists() and not [p for p in os.listdir(tmp_path) if p.startswith("lost")]
    ctl(2, "export", "--from", fake.uri, "--output", "/nonexistent/x", said="/nonexistent/x")
