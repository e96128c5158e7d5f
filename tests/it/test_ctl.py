"""frazilctl against the daemon: text, JSON and exit codes; what make install lays down."""

import json
import os
import subprocess

import pytest

import frazil
from support.daemon import binary, free_ports
from support.foreign import Writer
from support.lab import Lab

ROOT = os.path.join(os.path.dirname(__file__), "../..")
BUILD = os.environ.get("FRAZIL_CLIENTS") or os.path.dirname(binary())


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "ctl")
    yield lab
    lab.check()


@pytest.fixture
def ctl(daemon):
    """ctl(code, argument...): stdout of a run that must end with this code, and what stderr must hold."""
    def run(code, *args, said="", **env):
        addresses = {"FRAZILCTL_ADMIN": "http://127.0.0.1:%d" % daemon.admin_port, "FRAZILCTL_RPC": daemon.rpc}
        got = subprocess.run([os.path.join(BUILD, "frazilctl"), *map(str, args)], capture_output=True, text=True,
                             timeout=60, env={**os.environ, **addresses, **env})
        assert got.returncode == code, (args, got.stdout, got.stderr)
        assert said in got.stderr and "runtime error" not in got.stderr
        return got.stdout
    return run


def test_tables_and_transactions(lab, daemon, ctl):
    table = lab.table("one")
    f = table.files(4)
    with frazil.Client(daemon.rpc) as c:
        outcome = c.commit_once(table.name, data_files=f)
        table.added(*f)
        (shown,) = json.loads(ctl(0, "--json", "table", table.name))
        assert shown["name"] == "main." + table.name and shown["last-batch"] == outcome.batch_no and not shown["halted"]
        assert table.metadata()["table-uuid"] == shown["table-uuid"]
        assert json.loads(ctl(0, "-j", "table", shown["table-uuid"].upper())) == [shown]
        listed = json.loads(ctl(0, "-j", "tables"))
        assert shown in listed and json.loads(ctl(0, "-j", "tables", "--halted")) == []
        line = next(row for row in ctl(0, "tables").splitlines() if shown["table-uuid"] in row)
        assert line.startswith(shown["table-uuid"]) and "HALTED" not in line
        # Transactions, in a final state and before.
        told = json.loads(ctl(0, "-j", "txn", outcome.txn_id))
        assert (told["state"], told["snapshot-id"], told["rows-inserted"]) == ("COMMITTED", outcome.snapshot_id, 4)
        assert told["files"] == [f[0]["path"]] and told["txn-id"] == str(outcome.txn_id)
        assert "COMMITTED" in ctl(0, "txn", outcome.txn_id)
        txn = c.table(table.name).begin()
        assert json.loads(ctl(1, "-j", "txn", txn.id))["state"] == "OPEN"
        txn.abort()
        assert "ABORTED" in ctl(1, "txn", txn.id)
    ctl(4, "txn", frazil.uuid7(), said="TXN_UNKNOWN")
    ctl(4, "table", "ctl.none", said="ctl.none")
    ctl(4, "resume", "ctl.none", said="ctl.none")
    assert json.loads(ctl(0, "-j", "resume", table.name)) == {"table-uuid": shown["table-uuid"], "resumed": True}


def test_lists(lab, daemon, ctl):
    table = lab.table("lists", audited=False)
    lab.forget(table)
    path, _ = table.append(4)
    table.append(2)
    with frazil.Client(daemon.rpc) as c:
        txns = [c.table(table.name).begin() for _ in range(3)]
        for args in ((table.name,), ("lists",)):
            told = json.loads(ctl(0, "-j", "txns", *args))
            assert [t["txn-id"] for t in told] == sorted(str(t.id) for t in txns) and told[0]["state"] == "open"
        assert len(json.loads(ctl(0, "-j", "-n", "2", "txns", table.name))) == 2
        lines = ctl(0, "txns").splitlines()
        assert [line for line in lines if line.startswith(str(txns[1].id)) and "main.ctl.lists@main" in line]
        for t in txns:
            t.abort()
    assert json.loads(ctl(0, "-j", "txns", table.name)) == []
    told = json.loads(ctl(0, "-j", "batches", table.name))
    assert [b["batch-no"] for b in told["decided"]] == [3, 2, 1] and told["in-flight"] == []
    assert len(json.loads(ctl(0, "-j", "batches", table.name, "-n", "1"))["decided"]) == 1
    assert "transactions 1, committed 1" in ctl(0, "batches", table.name).splitlines()[0]
    assert json.loads(ctl(0, "-j", "batches")) == {"in-flight": []}
    assert ctl(0, "-j", "batch", table.name) == ctl(0, "-j", "batches", table.name)
    Writer(table).commit("delete", deletes={path + "-ghost": [1]})
    (found,) = json.loads(ctl(0, "-j", "findings", table.name))
    assert (found["kind"], found["file"]) == ("dangling-vector", path + "-ghost")
    assert path + "-ghost" in ctl(0, "findings")
    for command in ("txns", "batches", "findings"):
        ctl(4, command, "ctl.none", said="ctl.none")
    ctl(4, "batches", frazil.uuid7(), said="UUID")


def test_check_of_a_table(lab, daemon, ctl):
    table = lab.table("checked")
    path, o = table.append(5)
    table.delete(path, [1, 3], o.snapshot_id)
    table.append(2)
    told = json.loads(ctl(0, "-j", "check", table.name))
    assert (told["state"], told["table"], told["findings"]) == ("done", "main.ctl.checked", [])
    # Two appends and the vector; each manifest is read.
    assert (told["snapshots"], told["files"], told["vectors"]) == (1, 3, 1) and told["manifests"] >= 3
    assert told["metadata-location"] == table.load()["metadata-location"]
    assert ctl(0, "check", "checked").startswith("main.ctl.checked: ")
    name = path.removeprefix("file://")
    os.rename(name, name + ".away")
    try:
        (found,) = json.loads(ctl(1, "-j", "check", table.name))["findings"]
        assert (found["kind"], found["object"]) == ("missing", path)
        assert "missing" in ctl(1, "check", table.name).splitlines()[1]
    finally:
        os.rename(name + ".away", name)
    ctl(0, "check", table.metadata()["table-uuid"])
    ctl(4, "check", "ctl.none", said="ctl.none")
    ctl(4, "check", frazil.uuid7(), said="UUID")


def test_halt_and_resume(lab, daemon, ctl):
    table = lab.table("stopped")
    _, o = table.append(2)
    id = table.metadata()["table-uuid"]
    assert json.loads(ctl(0, "-j", "halt", "stopped", "--cause", "l'été \"42\"")) == {"table-uuid": id, "halted": True}
    (shown,) = json.loads(ctl(0, "-j", "tables", "--halted"))
    assert shown["table-uuid"] == id and shown["cause"] == "halted by an operator: l'été \"42\"" and shown["halt"]["by-operator"]
    assert "HALTED: halted by an operator" in ctl(0, "table", table.name)
    assert json.loads(ctl(1, "-j", "check"))["halted"] == 1
    assert "COMMITTED" in ctl(0, "txn", o.txn_id)
    ctl(0, "resume", table.name)
    ctl(0, "check")
    ctl(4, "halt", "ctl.none", said="ctl.none")
    ctl(4, "halt", table.name, "--cause", "x" * 121, said="cause")
    table.append(1)


def test_a_name_of_two_tables(lab, daemon, ctl):
    lab.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["ctl2"], "properties": {}})
    pair = [lab.table("twin"), Lab.__new__(Lab)]
    pair[1].__dict__.update(daemon=daemon, space="ctl2", tables=[])
    pair[1] = pair[1].table("twin")
    with frazil.Client(daemon.rpc) as c:
        for t in pair:
            f = t.files(1)
            c.commit_once(t.name, data_files=f)
            t.added(*f)
    shown = json.loads(ctl(0, "-j", "table", "twin"))
    assert {s["table-uuid"] for s in shown} == {t.metadata()["table-uuid"] for t in pair}
    ctl(4, "resume", "twin", said="2 tables")
    assert {s["name"] for s in shown} == {"main.ctl.twin", "main.ctl2.twin"}
    for name in (shown[0]["table-uuid"], shown[1]["name"], "ctl2.twin"):
        ctl(0, "resume", name)
    for name in ("win", ".twin", "l.twin", ""):
        ctl(4, "table", name)


def test_health(daemon, ctl):
    told = json.loads(ctl(0, "-j", "status"))
    assert told["healthy"] is True and told["ready"] is True and told["halted"] == 0
    assert told["counters"]["batches"] >= 0
    assert "ready    yes" in ctl(0, "check") and "counters" not in json.loads(ctl(0, "-j", "check"))
    (port,) = free_ports(1)
    ctl(3, "check", "x", FRAZILCTL_ADMIN="http://127.0.0.1:%d" % port, said="connect")
    ctl(3, "check", FRAZILCTL_ADMIN="http://127.0.0.1:%d" % port, said="connect")
    ctl(3, "-t", "2000", "txn", frazil.uuid7(), FRAZILCTL_RPC="127.0.0.1:%d" % port, said="connect")
    version = json.loads(ctl(0, "-j", "version"))
    assert version["frazilctl"] == version["libfrazil"] and version["protocol"] == 1 and version["server"]
    assert "server" not in json.loads(ctl(0, "-j", "version", FRAZILCTL_RPC="127.0.0.1:%d" % port))


def test_not_ready(make_daemon, conninfo, daemon, ctl):
    """A second daemon on the same database is alive but not ready."""
    other = make_daemon(conninfo, start=False)
    other.spawn()
    address = "http://127.0.0.1:%d" % other.admin_port
    for _ in range(300):
        got = subprocess.run([os.path.join(BUILD, "frazilctl"), "-a", address, "-j", "check"], capture_output=True,
                             text=True, timeout=60)
        if got.returncode != 3:
            break
    told = json.loads(got.stdout)
    assert got.returncode == 1 and told["healthy"] and not told["ready"] and told["reason"]


@pytest.mark.parametrize("args", [(), ("nothing",), ("txn",), ("txn", "x"), ("status", "x"), ("--none",),
                                  ("-t", "0", "check"), ("-t", "1s", "check"), ("table", "a", "b"),
                                  ("-n", "0", "txns"), ("txns", "a", "b"), ("-n",)])
def test_usage(ctl, args):
    assert ctl(2, *args) == ""


def test_help_and_manual_agree(ctl):
    told = ctl(0, "--help")
    with open(os.path.join(ROOT, "docs/frazilctl.1"), encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-")
    with open(os.path.join(ROOT, "clients/ctl/frazilctl.bash"), encoding="utf-8") as f:
        completion = f.read()
    for word in ("status", "check", "txn", "txns", "tables", "table", "batch", "batches", "findings", "halt", "resume", "version",
                 "--admin", "--rpc", "--timeout", "--json", "--halted", "--cause", "--limit", "--help"):
        assert word in told and word in manual and word in completion, word


def test_completion(ctl):
    def words(*line):
        script = 'source clients/ctl/frazilctl.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _frazilctl; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        return subprocess.run(["bash", "-c", script, "x", *line], cwd=ROOT, capture_output=True, text=True,
                              check=True).stdout.split()
    assert words("frazilctl", "ta") == ["tables", "table"]
    assert words("frazilctl", "--js") == ["--json"]
    assert words("frazilctl", "-j", "txn", "") == []


def test_install(tmp_path):
    """A program builds from the installed files alone, and runs with the shared library."""
    san = ["SAN=address"] if "address" in BUILD else []
    if not BUILD.endswith("build/gcc" + ("-address" if san else "")):
        pytest.skip("built by another compiler than make's default")
    tree = tmp_path / "tree"
    subprocess.run(["make", "-s", "CC=gcc", *san, "DESTDIR=%s" % tree, "PREFIX=/usr", "install-clients"], cwd=ROOT,
                   check=True, capture_output=True)
    lib = tree / "usr/lib"
    assert os.readlink(lib / "libfrazil.so") == "libfrazil.so.0"
    assert (lib / "libfrazil.so.0").exists() and (lib / "libfrazil.a").exists()
    for name in ("bin/frazilctl", "share/man/man1/frazilctl.1", "share/man/man3/frazil.3",
                 "share/bash-completion/completions/frazilctl"):
        assert (tree / "usr" / name).exists(), name
    env = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(tree)}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libfrazil"], env=env, capture_output=True, text=True,
                           check=True).stdout.split()
    source = tree / "usr/share/doc/libfrazil/examples/worker.c"
    subprocess.run(["gcc", *(["-fsanitize=address,undefined"] if san else []), source, "-o", tmp_path / "worker",
                    *flags], check=True)
    got = subprocess.run([tmp_path / "worker"], env={**os.environ, "LD_LIBRARY_PATH": str(lib)}, capture_output=True,
                         text=True)
    assert got.returncode == 2 and "usage" in got.stderr
