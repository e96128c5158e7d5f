"""The auditor for process tests: tables that the daemon wrote must be clean, every snapshot of them."""

import os
import sys

from support.postgres import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests/interop"))
import auditor  # noqa: E402


def rows(daemon, table):
    """Live rows of "ns.table", read from the raw files: columns, _row_id, _last_updated_sequence_number, path, pos."""
    return auditor.raw_rows(daemon.uri, table)


def clean(daemon, *tables):
    """Fails with the first violations of the strictest audit."""
    for table in tables:
        found = auditor.violations(daemon.uri, table)
        assert not found, "%s: %d violations: %s" % (table, len(found), found[:5])
