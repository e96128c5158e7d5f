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
