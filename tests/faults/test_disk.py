"""A disk that is full or broken, at each call by which an object is written: what clients hear is true, and all goes on after."""

import errno
import os
import subprocess
import threading
import time

import pytest

import frazil
from support.foreign import local
from support.lab import Lab
from support.postgres import ROOT

CALLS = ["create", "write", "short-write", "fsync", "link", "fsync-folder"]


@pytest.fixture(scope="module")
def broken(postgres, tmp_path_factory):
    """(daemon, fault): the daemon without sanitizers and with the shim; fault(None) or fault(call, errno)."""
    from support.daemon import Daemon
    folder = tmp_path_factory.mktemp("shim")
    shim = str(folder / "shim.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", "-o", shim,
                    os.path.join(ROOT, "tests/faults/shim.c"), "-ldl"], check=True)
    control = folder / "control"
    control.write_text("none 0")
    kept = os.environ.get("FRAZILD")
    os.environ["FRAZILD"] = "build/gcc/frazild"
    home = tmp_path_factory.mktemp("frazild")
    d = Daemon(home, postgres.database(), {"rest.request-timeout-ms": 1500, "cleaner.interval-ms": 200, "cleaner.grace-ms": 400, "cleaner.tombstone-ms": 800},
               {"LD_PRELOAD": shim, "FAULT_ROOT": str(home / "warehouse"), "FAULT_CONTROL": str(control)})

    def fault(call=None, number=0):
        hits = folder / "control.hits"
        had = hits.stat().st_size if hits.exists() else 0
        (folder / "next").write_text("%s %d" % (call or "none", number))
        os.rename(folder / "next", control)
        hits.write_text("")
        return had
    yield d, fault
    fault()
    d.close()
    if kept is None:
        del os.environ["FRAZILD"]
    else:
        os.environ["FRAZILD"] = kept


@pytest.fixture(scope="module")
def lab(broken):
    lab = Lab(broken[0], "disk")
    yield lab
    broken[1]()
    lab.check()


def ask(lab, t, told, key, **call):
    def run():
        try:
            with frazil.Client(lab.daemon.rpc, retries=0, timeout=30) as c:
                told[key] = c.commit_once(t.name, info=t.info, max_wait_ms=1200, **call)
        except frazil.Error as e:
            told[key] = e
    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("call", CALLS)
def test_writes(broken, lab, call, number):
    d, fault = broken
    t = lab.table("w_%s_%d" % (call.replace("-", "_"), number))
    path, o = t.append(10)
    files = t.files(3)
    append = dict(kind="APPEND", data_files=files, txn_id=frazil.uuid7())
    delete = dict(kind="DELETE", deletes=[(path, [1, 2])], read_snapshot_id=o.snapshot_id, txn_id=frazil.uuid7())
    told = {}
    fault(call, number)
    threads = [ask(lab, t, told, "append", **append), ask(lab, t, told, "delete", **delete)]
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"disk": "full"}}]}
    got = lab.rest.call("POST", t.target, change)
    made = lab.rest.call("POST", "/v1/namespaces/disk/tables", {"name": t.short + "_new", "schema": t.metadata()["schemas"][0]})
    for thread in threads:
        thread.join(30)
    # Reads go on, nothing is visible.
    assert len(t.load()["metadata"]["snapshots"]) == 1
    assert d.admin.get("/readyz").status == 200
    assert fault() > 0, "the fault was never met"
    for key in told:
        e = told[key]
        assert isinstance(e, frazil.Error) or e.state in ("SEALED", "OPEN"), (key, e)
        # It was asked for and is durable: to say that nothing happened would be a lie.
        assert not isinstance(e, frazil.Error) or e.effect == "UNKNOWN", (key, e)
    assert got.status in (429, 500, 503, 504), got
    unknown = got.error["type"] in ("CommitStateUnknownException", "RequestTimeoutException")
    assert made.status in (429, 500), made
    # After the fault is over everything that was asked for is decided, once, with or without being asked again.
    for key, again in (("append", append), ("delete", delete)):
        with lab.client() as c:
            assert c.commit_once(t.name, info=t.info, **again).state == "COMMITTED"
    t.added(*files)
    t.deleted(path, [1, 2])
    time.sleep(0.3)
    done = t.metadata()["properties"].get("disk")
    assert done is None or unknown, (done, got)
    lab.rest.want(200, "POST", t.target, change)
    if made.error["type"] != "CommitStateUnknownException":
        lab.rest.want(404, "GET", "/v1/namespaces/disk/tables/%s_new" % t.short)
    t.append(2)
    t.check()


@pytest.mark.parametrize("call,number", [("nameless", errno.EOPNOTSUPP), ("nameless", errno.EISDIR), ("link-nameless", errno.ENOENT)])
def test_without_nameless_files(broken, lab, call, number):
    """File systems, and containers without /proc, in which a file must have a name from the start: it is written by another one."""
    d, fault = broken
    t = lab.table("n_%s_%d" % (call.replace("-", "_"), number))
    fault(call, number)
    t.append(10)
    assert fault() > 0, "the fault was never met"
    t.append(2)
    t.check()
    home = os.path.dirname(local(t.load()["metadata-location"]))
    assert not [n for n in os.listdir(home) if n.startswith(".")]


@pytest.mark.parametrize("call", ["open", "read"])
def test_reads(broken, lab, call):
    """A file that cannot be read: typed, nothing is decided on it, and later it is."""
    d, fault = broken
    t = lab.table("r_" + call)
    path, o = t.append(10)
    t.delete(path, [0], o.snapshot_id)
    d.restart(kill=True)
    fault(call, errno.EIO)
    told = {}
    delete = dict(kind="DELETE", deletes=[(path, [3])], read_snapshot_id=o.snapshot_id, txn_id=frazil.uuid7())
    thread = ask(lab, t, told, "delete", **delete)
    got = lab.rest.get(t.target)
    thread.join(30)
    assert got.status in (500, 503) and got.error["type"] in ("InternalServerError", "ServiceUnavailableException"), got
    assert isinstance(told["delete"], frazil.Error), told
    assert fault() > 0
    with lab.client() as c:
        assert c.commit_once(t.name, info=t.info, **delete).state == "COMMITTED"
    t.deleted(path, [3])
    t.check()


def test_deletes(broken, lab):
    """The cleaner cannot delete: it tries again, and the file goes when it can."""
    d, fault = broken
    t = lab.table("deletes")
    t.append(1)
    fault("unlink", errno.EIO)
    with lab.client() as c:
        txn = c.table(t.name).begin()
        files = t.files(1)
        txn.stage_files(files)
        txn.abort()
    end = time.monotonic() + 5
    while fault("unlink", errno.EIO) == 0:
        assert time.monotonic() < end
        time.sleep(0.3)
    assert os.path.exists(local(files[0]["path"]))
    fault()
    end = time.monotonic() + 20
    while os.path.exists(local(files[0]["path"])):
        assert time.monotonic() < end
        time.sleep(0.1)
    t.append(1)


def test_killed_on_a_full_disk(broken, lab):
    """Killed while nothing can be written, started again on the full disk: what was acknowledged is there, and goes on later."""
    d, fault = broken
    t = lab.table("killed")
    path, o = t.append(10)
    files, told = t.files(2), {}
    once = dict(kind="APPEND", data_files=files, txn_id=frazil.uuid7())
    fault("write", errno.ENOSPC)
    thread = ask(lab, t, told, "once", **once)
    time.sleep(0.5)
    d.restart(kill=True)
    thread.join(30)
    assert [r for r in t.load()["metadata"]["snapshots"]][-1]["snapshot-id"] == o.snapshot_id
    fault()
    with lab.client() as c:
        assert c.commit_once(t.name, info=t.info, **once).state == "COMMITTED"
    t.added(*files)
    t.check()
