"""The auditor (audit/) as the runner uses it: violations by rule, and the rows with their places."""

import contextlib
import io
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "audit"))
import audit  # noqa: E402
import scan  # noqa: E402


class Unreadable(Exception):
    pass


def violations(uri, table, strict=True):
    """[(rule, object, detail)] over every snapshot, rows scanned too."""
    out = io.StringIO()
    args = ["--uri", uri, "--table", table, "--scan", "--all-snapshots", "--json"] + ["--strict"] * strict
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = audit.main(args)
    if status not in (0, 1):
        raise Unreadable(out.getvalue()[-2000:])
    found = json.loads(out.getvalue().splitlines()[-1])
    return [(v["rule"], v["object"], v["detail"]) for v in found["violations"]]


def raw_rows(uri, table, ref="main"):
    """Live rows of a ref, each with "path" and "pos", read from the raw files; the catalog gives the location alone."""
    args = audit_arguments(uri, table)
    au = audit.Audit(args)
    location, _ = audit.from_rest(args)
    md = audit.read_metadata(au.st, location)
    au.run(md, location)
    head = au.refs.get(ref)
    if not head:
        return []
    return [{**row, "path": path, "pos": pos} for path, pos, row in scan.live(au, au.snaps[head["snapshot-id"]])]


def metadata_location(uri, table):
    return audit.from_rest(audit_arguments(uri, table))[0]


class audit_arguments:
    prefix = token = None
    ref, all_snapshots, strict, waive, relocate, skip_orphans, no_orphans = "main", False, False, set(), None, True, False

    def __init__(self, uri, table):
        self.uri, self.table = uri, table
