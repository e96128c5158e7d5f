"""Guards taken out of the real statements, one at a time: the tests of the statements must notice
each."""

import os
import re
import subprocess

import pytest

from support.postgres import ROOT
from test_pg import database, finish, pgtest, sql, start  # noqa: F401  (fixtures)

EFFECTS = os.path.join(ROOT, "store/pg/migrations/0002_effects.sql")

# name: (function, text, what stands there instead)
MUTANTS = {
    "publish-epoch": ("publish", " AND h.epoch = p_epoch\n\t\tAND h.version", "\n\t\tAND h.version"),
    "publish-version": ("publish", "\n\t\tAND h.version = p_base;", ";"),
    "publish-sealed": ("publish", "t.state + 0 = 1 AND ", ""),
    "ledger-epoch": ("ledger", " AND h.epoch = p_epoch FOR SHARE", " FOR SHARE"),
    "ledger-published": ("ledger",
                         "OR EXISTS (SELECT FROM frazil.batch b WHERE b.batch = p_batch)", ""),
    "end-open": ("end_items", "AND t.state = 0 RETURNING", "RETURNING"),
    "stage-owner": ("stage_paths", "o.owner <> x.txn", "false"),
    "begin-incarnation": ("begin_items", "\n\t\t\t\t\tAND h.incarnation = x.incarnation", ""),
}


def function(name):
    with open(EFFECTS, encoding="utf-8") as f:
        text = f.read()
    found = re.search(r"CREATE FUNCTION frazil\." + name + r"\(.*?\n\$\$;\n", text, re.DOTALL)
    assert found, name
    return found.group(0).replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)


def failures(pgtest, conninfo):
    """What the tests of the statements say about this database."""
    text = ""
    for mode in ("effects", "races"):
        done = subprocess.run([pgtest, conninfo, mode], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=240)
        text += done.stdout
        if done.returncode or "FAILED" in done.stdout:
            return text
    return ""


def test_the_same_text_again_changes_nothing(pgtest, postgres, database):
    finish(start(pgtest, database, "migrate"))
    for name in sorted({m[0] for m in MUTANTS.values()}):
        sql(postgres, database, function(name))
    out = failures(pgtest, database)
    assert not out, out


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_missing_guard_is_found(pgtest, postgres, database, name):
    of, text, instead = MUTANTS[name]
    whole = function(of)
    assert whole.count(text) == 1, "the statement reads differently now"
    finish(start(pgtest, database, "migrate"))
    sql(postgres, database, whole.replace(text, instead))
    assert failures(pgtest, database), "nobody noticed"
