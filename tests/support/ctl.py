"""Runs frazilctl and reads its report of an import."""

import json
import os
import subprocess

from support.daemon import binary

CTL = os.path.join(os.environ.get("FRAZIL_CLIENTS") or os.path.dirname(binary()), "frazilctl")


def command(*args):
    return [CTL, *map(str, args)]


def environment(env):
    return {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1", **env}


def ctl(code, *args, said="", **env):
    got = subprocess.run(command(*args), capture_output=True, text=True, timeout=120, env=environment(env))
    assert got.returncode == code, (args, got.stdout[-4000:], got.stderr[-4000:])
    assert said in got.stderr and "runtime error" not in got.stderr and "Sanitizer" not in got.stderr
    return got.stdout


def move(code, source, target, *args, **kw):
    """The report: {name: row}, and its summary."""
    where = ["--from", source] if "://" in source else ["--from-file", source]
    told = json.loads(ctl(code, "-j", "import", *where, "--to", target, *args, **kw))
    rows = {}
    for r in told["items"]:
        key = (r["kind"], *r["name"])
        assert key not in rows or r["verdict"] == "failed", r
        rows[key] = r
    return rows, told["summary"]


def verdicts(rows):
    return {k: r["verdict"] for k, r in rows.items()}
