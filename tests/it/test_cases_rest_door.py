"""The door of a catalog with secrets: closed on every route, and no start without what it needs to judge."""

import os
import subprocess

import pytest

from support.catalog import ROUTES, error
from support.rest import Rest

SECRET = "open-barley-0123456789"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("door") / "clients"
    path.write_text("alice:%s\n" % SECRET)
    path.chmod(0o600)
    return {"auth.clients-file": str(path), "log.level": "debug"}


def test_every_route_is_closed(daemon):
    """case BC-211: without a token, and with one that is none, every route says 401, offered or not."""
    targets = [("POST", "/frazil/v1/" + m) for m in ("begin", "stage", "seal", "commit", "commit_once", "status", "abort", "heartbeat")]
    for line in ROUTES.strip().splitlines():
        for method in line.split()[:-1]:
            targets.append((method, line.split()[-1].replace("/{prefix}", "")))
    targets = [(m, t.replace("{", "").replace("}", "")) for m, t in targets if t != "/v1/oauth/tokens"]
    assert len(targets) > 40
    for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer "}, {"Authorization": "Bearer x"}, {"Authorization": "bearer " + SECRET},
                    {"Authorization": "Negotiate x"}, {"Authorization": "Bearer \xff\xfe"}, {"Authorization": "Bearer " + "x" * 8000}):
        for method, target in targets:
            got = daemon.rest.call(method, target, {} if method == "POST" else None, headers=headers)
            assert got.status == 401, (method, target, got)
            if method != "HEAD":
                assert error(got, 401, "NotAuthorizedException")
            assert got.headers["WWW-Authenticate"]
    # A body is not judged before its sender is; case BC-209: what was sent is in no answer and not in the log.
    got = Rest(daemon.uri).raw("POST", "/v1/namespaces", b"{" * 100000, {"Content-Type": "text/plain", "Authorization": "Bearer " + SECRET})
    assert got.status == 401 and SECRET.encode() not in got.body and SECRET not in daemon.log()


@pytest.mark.parametrize("what", ["missing", "empty", "comment", "folder", "garbage", "open to all", "bytes", "twice"])
def test_no_start_without_clients(make_daemon, tmp_path, what):
    """case BC-211: a file that names nobody, or that anybody may read, is no reason to let all in."""
    path = tmp_path / "clients"
    good = "alice:%s\n" % SECRET
    if what == "folder":
        path.mkdir()
    elif what != "missing":
        path.write_bytes({"empty": b"", "comment": b"# nobody\n\n", "garbage": b"alice\n", "open to all": good.encode(), "bytes": b"\xff\xfe:\x00\n",
                          "twice": 2 * good.encode()}[what])
        path.chmod(0o644 if what == "open to all" else 0o600)
    d = make_daemon("dbname=none host=/none", start=False)
    ended = subprocess.run(d.command(**{"auth.clients-file": str(path)}), env=d.environment(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    assert ended.returncode > 0 and "auth.clients-file" in ended.stdout, ended
    assert SECRET not in ended.stdout


def test_secrets_do_not_open_other_ports(make_daemon, tmp_path):
    """case BC-211: the ports that ask for no token stay on this machine."""
    path = tmp_path / "clients"
    path.write_text("alice:%s\n" % SECRET)
    path.chmod(0o600)
    d = make_daemon("dbname=none host=/none", start=False)
    for key, good in (("rest.listen", True), ("rpc.listen", False), ("admin.listen", False)):
        ended = subprocess.run(d.command(**{"auth.clients-file": str(path), key: "0.0.0.0:8181"}) + ["--check-config"], env=d.environment(),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
        assert (ended.returncode == 0) == good, (key, ended)
        assert good or key in ended.stdout, ended
    assert os.path.exists(path)
