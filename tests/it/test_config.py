"""Options and configuration of frazild, as a user meets them."""
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def frazild_path():
    named = os.environ.get("FRAZILD")
    found = [Path(named)] if named else sorted(ROOT.glob("build/*/frazild"))
    if not found or not found[0].exists():
        pytest.skip("frazild is not built")
    return str(found[0])


def run(*args, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FRAZIL_")}
    clean.update(env or {})
    return subprocess.run([frazild_path(), *args], capture_output=True, text=True, env=clean, timeout=20)


def test_version_and_help():
    assert run("--version").stdout.split()[0] == "frazild"
    text = run("--help").stdout
    for option in ("--config", "--set", "--check-config", "--print-config", "--version"):
        assert option in text


@pytest.mark.parametrize("args", [["--nope"], ["--config"], ["stray"], ["--set", "pg.connections"],
                                  ["--set", "pg.nope=1"], ["--config", "/nonexistent.ini"]])
def test_wrong_options_exit_2(args):
    done = run(*args, "--check-config")
    assert done.returncode == 2
    assert done.stderr.startswith("frazild: ") and done.stdout == ""


def test_error_names_file_and_line(tmp_path):
    ini = tmp_path / "f.ini"
    ini.write_text("[pg]\nconnections = 2\nbogus = 1\n")
    done = run("--config", str(ini), "--check-config")
    assert done.returncode == 2
    assert f"{ini}:3:" in done.stderr and "bogus" in done.stderr


def test_sources_in_order(tmp_path):
    ini = tmp_path / "f.ini"
    ini.write_text("[commit]\nwindow-ms = 1\nqueue-max = 2\nbatch-max-txns = 3\n")
    done = run("--config", str(ini), "--set", "commit.batch-max-txns=33", "--print-config",
               env={"FRAZIL_COMMIT_QUEUE_MAX": "22", "FRAZIL_COMMIT_BATCH_MAX_TXNS": "23"})
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    for line in ("window-ms = 1", "queue-max = 22", "batch-max-txns = 33", "connections = 4"):
        assert line in lines
    # The origin stands above the value.
    assert lines[lines.index("window-ms = 1") - 1] == f"# {ini}:2"


def test_printed_configuration_can_be_read(tmp_path):
    ini = tmp_path / "f.ini"
    first = run("--set", "pg.conninfo=host=/x dbname=y", "--print-config").stdout
    ini.write_text(first)
    second = run("--config", str(ini), "--print-config").stdout
    values = [[x for x in t.splitlines() if not x.startswith("#")] for t in (first, second)]
    assert values[0] == values[1]
    assert "conninfo = host=/x dbname=y" in values[0]


def test_shipped_file_changes_nothing():
    shipped = run("--config", str(ROOT / "conf" / "frazild.ini"), "--print-config").stdout
    assert shipped == run("--print-config").stdout


def test_foreign_address_needs_a_decision():
    done = run("--set", "rest.listen=0.0.0.0:8181", "--check-config")
    assert done.returncode == 2 and "auth.allow-anonymous" in done.stderr
    done = run("--set", "rest.listen=0.0.0.0:8181", "--set", "auth.allow-anonymous=yes", "--check-config")
    assert done.returncode == 0


def test_misspelt_environment_is_refused():
    done = run("--check-config", env={"FRAZIL_PG_CONECTIONS": "2"})
    assert done.returncode == 2 and "FRAZIL_PG_CONECTIONS" in done.stderr


@pytest.mark.parametrize("key", ["admin.listen", "rest.listen", "rpc.listen"])
def test_port_in_use_exits_1(tmp_path, conninfo, key):
    """An address that somebody else holds: a message, and an end in order, whichever step it is."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        settings = {"admin.listen": "127.0.0.1:0", "rest.listen": "127.0.0.1:0", "rpc.listen": "127.0.0.1:0",
                    "pg.conninfo": conninfo, "warehouse.location": "file://%s/w" % tmp_path,
                    key: "127.0.0.1:%d" % held.getsockname()[1]}
        done = run(*[a for k, v in settings.items() for a in ("--set", "%s=%s" % (k, v))])
    assert done.returncode == 1, done.stderr
    assert "ddress already in use" in done.stderr and "ev=assert" not in done.stderr


def every_key():
    """(key, kind, default, min, max) of conf.tbl, read as text: the rows, not what the daemon makes of them."""
    rows = re.findall(r'^CONF\(\w+, (\w+), "([a-z0-9.-]+)", "([^"]*)", (\d+), (\d+), (?:HOT|COLD),',
                      (ROOT / "conf/conf.tbl").read_text(encoding="utf-8"), re.M)
    assert len(rows) == len(re.findall(r"^CONF\(", (ROOT / "conf/conf.tbl").read_text(encoding="utf-8"), re.M)) > 30
    return [(key, kind, default, int(low), int(high)) for kind, key, default, low, high in rows]


def another(key, kind, default, low, high):
    """A good value that is not the default, and one that is wrong (None: every text is good)."""
    if kind == "INT":
        return str(low if str(low) != default else low + 1), str(high + 1)
    if kind == "BOOL":
        return {"no": "yes", "yes": "no"}[default], "perhaps"
    if kind == "LEVEL":
        return "debug", "loud"
    if kind == "VERIFY":
        return "reject", "sometimes"
    texts = {"rest.listen": "127.0.0.1:1", "rpc.listen": "127.0.0.1:2", "admin.listen": "127.0.0.1:3", "rpc.socket": "/tmp/s",
             "pg.conninfo": "dbname=other", "warehouse.name": "other", "warehouse.location": "file:///o",
             "warehouse.extra": "more=file:///m", "fs.roots": "file:///r"}
    value = texts.get(key)
    if value is None:  # a key that this test has not met: any text that its form may take
        value = {"file": "/tmp/f", "listen": "127.0.0.1:4", "url": "http://127.0.0.1:4/x", "uri": "http://127.0.0.1:4/x"}.get(
            re.split(r"[.-]", key)[-1], "other")
    return value, None


def variable(key):
    return "FRAZIL_" + re.sub(r"[.-]", "_", key).upper()


def test_every_key_by_environment():
    """Containers configure by environment alone: each key of the table, its value and where it came from."""
    keys = every_key()
    assert len({variable(row[0]) for row in keys}) == len(keys), "two keys of one variable"
    values = {row[0]: another(*row)[0] for row in keys}
    done = run("--print-config", env={variable(k): v for k, v in values.items()})
    assert done.returncode == 0, done.stderr
    got, section = {}, None
    lines = done.stdout.splitlines()
    for above, line in zip([""] + lines, lines):
        if line.startswith("["):
            section = line[1:-1]
        elif " = " in line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            got[section + "." + key] = (value, above)
    assert got == {k: (v, "# environment " + variable(k)) for k, v in values.items()}


@pytest.mark.parametrize("row", [r for r in every_key() if another(*r)[1] is not None], ids=lambda r: r[0])
def test_wrong_value_by_environment(row):
    """The variable is named, for nobody sees a line of a file."""
    done = run("--check-config", env={variable(row[0]): another(*row)[1]})
    assert done.returncode == 2 and variable(row[0]) in done.stderr, done.stderr
