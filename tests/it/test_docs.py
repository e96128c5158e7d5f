"""The pages for operators and engine authors name what the tables of the sources name, no more and no less."""

import os
import re

from support.postgres import ROOT


def text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def test_refusals_are_those_of_the_status_table():
    rows = re.findall(r'^STATUS\((\w+), \d+, "[^"]*", (\d+), (\w+), (\w+), "([^"]*)"\)', text("proto/base/status.tbl"), re.M)
    want = {name: (code, retry, effect, meaning) for name, code, retry, effect, meaning in rows if int(code) >= 40}
    got = {m[1]: (m[0],) + m[2:] for m in re.findall(
        r"^\| (\d+) \| `(\w+)` \| (\w+) \| (\w+) \| (.*) \|$", text("docs/commit.md"), re.M)}
    assert len(want) > 30 and got == want


def test_every_metric_is_explained():
    names = set(re.findall(r'^(?:COUNTER|GAUGE|HISTOGRAM)\(\w+, "(\w+)"', text("daemon/admin/metrics.tbl"), re.M))
    told, last = set(), None
    for name in re.findall(r"`(frazil_\w+|_\w+)`", text("docs/operations.md")):
        # "frazil_a_b", "_c" stands for frazil_a_c.
        last = name if name.startswith("frazil") else last.rpartition("_")[0] + name
        told.add(last)
    assert len(names) > 30
    assert names - told == set(), "not explained"
    assert told - names == set(), "explained, but there is no such metric"


def test_every_event_is_explained():
    events = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "daemon")):
        for f in files:
            if f.endswith(".c"):
                source = text(folder, f)
                for call in re.findall(r"\b(?:LOG|LOG_ERR|core_log)\(([^;]{0,200})", source):
                    events |= set(re.findall(r'"([a-z]+\.[a-z]+)"', call)[:1])
    assert len(events) > 25
    told = set(re.findall(r"`([a-z]+\.[a-z]+)`", text("docs/operations.md")))
    assert events - told == set(), "not explained"
    gone = {t for t in told - events if not re.search(r"\bCONF\(\w+, \w+, \"%s" % re.escape(t), text("conf/conf.tbl"))}
    assert gone - {"rpc.md"} == set(), "explained, but nothing logs it"


def test_every_key_named_exists():
    keys = set(re.findall(r'^CONF\(\w+, \w+, "([^"]+)"', text("conf/conf.tbl"), re.M))
    for page in ("docs/operations.md", "docs/commit.md"):
        named = set(re.findall(r"`((?:rest|rpc|admin|auth|pg|commit|txn|cleaner|drain|log|fs|jobs|warehouse)\.[a-z-]+)(?: = \w+)?`",
                               text(page)))
        events = set(re.findall(r"`([a-z]+\.[a-z]+)`", text("docs/operations.md")))
        assert {n for n in named - keys if n not in events} == set(), page


def test_every_verdict_and_option_of_moving_is_explained():
    page = text("docs/frazilctl.1").replace("\\-", "-")
    rows = re.findall(r'^VERDICT\(\w+, "([^"]+)", ([01]), "([^"]+)"\)', text("clients/ctl/ctl_verdict.tbl"), re.M)
    assert len(rows) > 10
    for word, differs, meaning in rows:
        line = "%s%s.%s" % (meaning[0].upper(), meaning[1:], " Exit 1." if differs == "1" else "")
        assert ".TP\n.B %s\n%s\n" % (word, line) in page, word
    source = text("clients/ctl/frazilctl.c")
    options = set(re.findall(r'^\t\{"([a-z-]+)", (?:required|no)_argument', source, re.M))
    options |= set(re.findall(r'\{"([a-z-]+)", AT\(', source))
    peers = set(re.findall(r'\{?\s*prefix "([a-z0-9-]+)", AT\(', source))
    assert len(options) > 15 and len(peers) == 7
    options |= peers | {"to-" + p for p in peers}
    told = set(re.findall(r"--([a-z][a-z0-9-]+)", page))
    assert options - told == set(), "not explained"
    assert told - options == set(), "explained, but there is no such option"
