"""frazilctl import and export between two daemons, and from a small catalog of our own: what is moved, what is kept, and how a
run that was cut goes on."""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from support.ctl import command, ctl, environment, move, verdicts
from support.fakecatalog import Answer, FakeCatalog, refusal
from support.lab import SCHEMA, data
from support.rest import namespace, segment


@pytest.fixture
def pair(make_daemon, tmp_path):
    """Two catalogs that may read each other's folders."""
    one = make_daemon(start=False)
    two = make_daemon(start=False)
    for a, b in ((one, two), (two, one)):
        a.settings["fs.roots"] = "file://%s,file://%s" % (b.warehouse, tmp_path)
        a.start()
    return one, two


def make_table(daemon, *name, properties=None):
    ns = "/v1/namespaces/" + namespace(*name[:-1])
    return daemon.rest.want(200, "POST", ns + "/tables", {
        "name": name[-1], "schema": SCHEMA, "properties": properties or {}}).json


def make_view(daemon, *name, dialects=("spark",)):
    ns = "/v1/namespaces/" + namespace(*name[:-1])
    return daemon.rest.want(200, "POST", ns + "/views", {
        "name": name[-1], "schema": SCHEMA, "properties": {}, "view-version": {
            "version-id": 1, "timestamp-ms": 1700000000001, "schema-id": 0, "summary": {}, "default-namespace": ["a"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": d} for d in dialects]}}).json


def target_of(kind, *name):
    return "/v1/namespaces/%s/%s/%s" % (namespace(*name[:-1]), kind, segment(name[-1]))


def load(daemon, *name, kind="tables"):
    return daemon.rest.want(200, "GET", target_of(kind, *name)).json


NAMES = ["plain", "with.dot", "with/slash", "per%cent", "ünï–🧊", "sp ace", 'quo"te', "plus+and&amp?#"]


def test_there_and_back(pair, tmp_path):
    """Everything arrives as it was: namespaces with properties, odd names, data with its history, views. Then the list of it, and
    back into an emptied catalog."""
    one, two = pair
    catalog = RestCatalog("one", uri=one.uri)
    for levels, properties in ((("a",), {"owner": "ü"}), (("a", "b.c"), {}), (("a", "b.c", "d/e%"), {"deep": "yes"}), (("empty",), {})):
        one.rest.want(200, "POST", "/v1/namespaces", {"namespace": list(levels), "properties": properties})
    for n in NAMES:
        make_table(one, "a", "b.c", n, properties={"n": n})
    make_table(one, "a", "b.c", "d/e%", "deep")
    make_view(one, "a", "v1", dialects=("spark", "trino"))
    make_view(one, "a", "b.c", "v.2/ü")
    made = catalog.create_table("a.data", schema=pa.schema([("id", pa.int64()), ("name", pa.string())]),
                                properties={"format-version": "2", "commit.note": "x"})
    made.append(data(range(10)))
    made.append(data(range(10, 15)))
    made.delete("id < 3")
    rows, total = move(1, one.uri, two.uri, "--dry-run")
    assert set(verdicts(rows).values()) == {"new"} and total["new"] == 4 + len(NAMES) + 1 + 2 + 1 and total["dry-run"]
    assert two.rest.want(200, "GET", "/v1/namespaces").json["namespaces"] == []
    rows, total = move(0, one.uri, two.uri)
    assert set(verdicts(rows).values()) == {"registered"} and total["registered"] == len(rows) == 4 + len(NAMES) + 4
    assert rows["view", "a", "v1"]["dialects"] == "spark, trino"
    tables = [("a", "b.c", n) for n in NAMES] + [("a", "b.c", "d/e%", "deep"), ("a", "data")]
    for name in tables:
        here, there = load(one, *name), load(two, *name)
        assert here["metadata-location"] == there["metadata-location"]
        assert set(here["metadata"]) == set(there["metadata"])
        for key, value in here["metadata"].items():
            assert there["metadata"][key] == value, (name, key)
    for name in (("a", "v1"), ("a", "b.c", "v.2/ü")):
        assert load(one, *name, kind="views") == load(two, *name, kind="views")
    for levels in (("a",), ("a", "b.c"), ("a", "b.c", "d/e%"), ("empty",)):
        path = "/v1/namespaces/" + namespace(*levels)
        assert one.rest.want(200, "GET", path).json == two.rest.want(200, "GET", path).json
    want = sorted(made.scan().to_arrow().to_pylist(), key=lambda r: r["id"])
    got = RestCatalog("two", uri=two.uri).load_table("a.data").scan().to_arrow().to_pylist()
    assert len(want) == 12 and sorted(got, key=lambda r: r["id"]) == want
    # Once more: nothing is done.
    rows, total = move(0, one.uri, two.uri)
    assert set(verdicts(rows).values()) == {"same"} and total["same"] == total["same"] == len(rows)
    text = ctl(0, "import", "--from", one.uri, "--to", two.uri)
    assert text == "%d looked at: same %d\n" % (len(rows), len(rows))
    # Out: a line each, and a last one that counts them.
    lists = [str(tmp_path / n) for n in ("one.jsonl", "two.jsonl")]
    for daemon, path in zip(pair, lists):
        assert ctl(0, "export", "--from", daemon.uri, "--output", path) == ""
        assert ctl(0, "export", FRAZILCTL_REST=daemon.uri) == open(path, encoding="utf-8").read()
    lines = [sorted(open(p, encoding="utf-8").read().splitlines()) for p in lists]
    assert lines[0] == lines[1]
    parsed = [json.loads(line) for line in open(lists[0], encoding="utf-8")]
    assert parsed[0] == {"format": "frazil-catalog-list", "version": 1}
    assert parsed[-1] == {"end": {"namespaces": 4, "tables": len(tables), "views": 2}}
    assert {"namespace": ["a"], "properties": {"owner": "ü"}} in parsed
    assert {"table": ["a", "data"], "uuid": str(made.metadata.table_uuid), "metadata-location": made.metadata_location} in parsed
    # Emptied, without a purge, and put back from the list.
    for name in tables:
        two.rest.want(204, "DELETE", target_of("tables", *name))
    for name in (("a", "v1"), ("a", "b.c", "v.2/ü")):
        two.rest.want(204, "DELETE", target_of("views", *name))
    for levels in (("a", "b.c", "d/e%"), ("a", "b.c"), ("a",), ("empty",)):
        two.rest.want(204, "DELETE", "/v1/namespaces/" + namespace(*levels))
    rows, total = move(0, lists[0], two.uri)
    assert set(verdicts(rows).values()) == {"registered"} and len(rows) == 4 + len(tables) + 2
    assert ctl(0, "export", "--from", two.uri).splitlines()[-1] == open(lists[0], encoding="utf-8").read().splitlines()[-1]
    assert load(two, "a", "data") == load(one, "a", "data")
    assert set(verdicts(move(0, lists[0], two.uri)[0]).values()) == {"same"}


def test_choice(pair, tmp_path):
    one, two = pair
    for levels in (("x",), ("x", "y"), ("x", "y.z"), ("w",)):
        one.rest.want(200, "POST", "/v1/namespaces", {"namespace": list(levels), "properties": {"is": levels[-1]}})
        make_table(one, *levels, "t")
        make_table(one, *levels, "u")
    rows, _ = move(1, one.uri, two.uri, "--dry-run", "--namespace", "x.y")
    assert sorted(rows) == [("namespace", "x"), ("namespace", "x", "y"), ("table", "x", "y", "t"), ("table", "x", "y", "u")]
    rows, _ = move(1, one.uri, two.uri, "--dry-run", "--table", '["x","y.z","u"]', "--table", "w.t", "--table", "w.none")
    assert sorted(rows) == [("namespace", "w"), ("namespace", "x"), ("namespace", "x", "y.z"), ("table", "w", "none"),
                            ("table", "w", "t"), ("table", "x", "y.z", "u")]
    assert rows["table", "w", "none"]["verdict"] == "failed"
    path = str(tmp_path / "list")
    ctl(0, "export", "--from", one.uri, "--output", path)
    rows, _ = move(0, path, two.uri, "--table", "x.t", "--namespace", "x.y")
    assert sorted(rows) == [("namespace", "x"), ("namespace", "x", "y"), ("table", "x", "t"), ("table", "x", "y", "t"),
                            ("table", "x", "y", "u")]
    assert set(verdicts(rows).values()) == {"registered"}
    listed = ctl(0, "export", "--from", two.uri, "--table", "x.y.u").splitlines()
    assert [json.loads(r).get("table") for r in listed if "table" in json.loads(r)] == [["x", "y", "u"]]
    for wrong in ("", "a..b", ".a", '["a"', '["a",1]', "[]", '[""]'):
        ctl(2, "import", "--from", one.uri, "--to", two.uri, "--namespace", wrong, said="JSON array")
    ctl(2, "import", "--from", one.uri, "--to", two.uri, "--table", "a", said="namespace")


def test_the_source_moves_on(pair):
    """Import, then the writers stop, then once more with --overwrite. What the target has committed itself is never lost."""
    one, two = pair
    one.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["m"], "properties": {"a": "1"}})
    for n in ("still", "source", "target", "both", "again", "gone"):
        make_table(one, "m", n)
    make_view(one, "m", "v")
    move(0, one.uri, two.uri)

    def commit(daemon, name, key):
        daemon.rest.want(200, "POST", target_of("tables", "m", name), {
            "requirements": [], "updates": [{"action": "set-properties", "updates": {key: "1"}}]})

    commit(one, "source", "s")
    commit(one, "source", "s2")
    commit(two, "target", "t")
    commit(one, "both", "s")
    commit(two, "both", "t")
    one.rest.want(204, "DELETE", target_of("tables", "m", "again"))
    make_table(one, "m", "again")
    one.rest.want(204, "DELETE", target_of("tables", "m", "gone"))
    one.rest.want(200, "POST", "/v1/namespaces/m/properties", {"updates": {"a": "2"}})
    two.rest.want(200, "POST", "/v1/namespaces/m/properties", {"updates": {"mine": "x"}})
    one.rest.want(200, "POST", target_of("views", "m", "v"), {"requirements": [], "updates": [
        {"action": "set-properties", "updates": {"comment": "late"}}]})
    before = {n: load(two, "m", n) for n in ("target", "both", "again")}
    want = {("namespace", "m"): "properties", ("table", "m", "still"): "same", ("table", "m", "source"): "moved-on",
            ("table", "m", "target"): "ahead", ("table", "m", "both"): "diverged", ("table", "m", "again"): "other-uuid",
            ("table", "m", "gone"): "only-here", ("view", "m", "v"): "moved-on"}
    rows, total = move(1, one.uri, two.uri)
    assert verdicts(rows) == want and total["finished"]
    assert rows["table", "m", "source"]["metadata-location"] == load(one, "m", "source")["metadata-location"]
    assert rows["table", "m", "source"]["target-metadata-location"] == load(two, "m", "source")["metadata-location"]
    assert verdicts(move(1, one.uri, two.uri, "--overwrite", "--dry-run")[0]) == want
    rows, _ = move(1, one.uri, two.uri, "--overwrite")
    assert verdicts(rows) == {**want, ("namespace", "m"): "updated", ("table", "m", "source"): "overwritten",
                              ("view", "m", "v"): "overwritten"}
    assert load(two, "m", "source") == load(one, "m", "source")
    assert load(two, "m", "v", kind="views") == load(one, "m", "v", kind="views")
    assert two.rest.want(200, "GET", "/v1/namespaces/m").json["properties"] == {"a": "2", "mine": "x"}
    for n, was in before.items():
        assert load(two, "m", n) == was
    # The same table whatever both did; another table is never replaced.
    rows, _ = move(1, one.uri, two.uri, "--force")
    assert rows["table", "m", "both"]["verdict"] == rows["table", "m", "target"]["verdict"] == "overwritten"
    assert rows["table", "m", "again"]["verdict"] == "other-uuid" and load(two, "m", "again") == before["again"]
    assert load(two, "m", "both") == load(one, "m", "both")


def test_a_list_that_is_not_whole(pair, tmp_path):
    """A cut or edited list moves nothing at all."""
    one, two = pair
    one.rest.want(200, "POST", "/v1/namespaces", {"namespace": ["l"]})
    make_table(one, "l", "t")
    good = ctl(0, "export", "--from", one.uri).splitlines()
    path = tmp_path / "bad"
    other = good[1].replace("l", "m", 1)
    for lines, said in ((good[:-1], "cut"), (good[:2] + good[3:], "counts"), (good + good[1:2], "behind the end"),
                        (good[1:], "no list"), ([good[0].replace("1", "2"), *good[1:]], "no list"), ([], "no list"),
                        (good[:1] + ['{"namespace":[]}'] + good[1:], "named"), (good[:1] + ["{"] + good[1:], ":2: "),
                        (good[:1] + ['{"table":["t"],"uuid":"x","metadata-location":"y"}'] + good[1:], "named"),
                        (good[:1] + ['{"table":["l","u"],"uuid":"x"}'] + good[1:], "uuid"),
                        (good[:1] + [other[:-1]] + good[1:], ":2: ")):
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        ctl(2, "import", "--from-file", path, "--to", two.uri, said=said)
    ctl(2, "import", "--from-file", tmp_path / "none", "--to", two.uri, said="No such file")
    assert two.rest.want(200, "GET", "/v1/namespaces").json["namespaces"] == []


def test_out_of_reach(pair, tmp_path):
    """Where the daemon cannot read, the report says so with the refusal, and the rest is moved."""
    _, two = pair
    fake = FakeCatalog(tmp_path)
    try:
        fake.namespace("r")
        fake.table("r", "good")
        away = fake.table("r", "s3")
        fake.tables["r", "s3"] = ("s3://bucket/t/metadata/00000-x.metadata.json", fake.tables["r", "s3"][1])
        fake.table("r", "outside")
        fake.tables["r", "outside"] = ("file:///usr/share/none/00000-x.metadata.json", fake.tables["r", "outside"][1])
        fake.put(fake.tables, ("r", "split"), {**fake.tables["r", "good"][1], "location": "file://%s/split" % tmp_path})
        wrong = json.load(open(urllib.parse.urlsplit(away).path, encoding="utf-8"))
        wrong["location"] = "s3://bucket/t"
        path = tmp_path / "00000-split.metadata.json"
        path.write_text(json.dumps(wrong))
        fake.tables["r", "split"] = ("file://%s" % path, wrong)
        fake.table("r", "lost")
        os.unlink(urllib.parse.urlsplit(fake.tables["r", "lost"][0]).path)
        broken = fake.table("r", "broken")
        with open(urllib.parse.urlsplit(broken).path, "w", encoding="utf-8") as f:
            f.write("{")
        rows, total = move(1, fake.uri, two.uri)
        assert {k[2]: v for k, v in verdicts(rows).items() if k[0] == "table"} == {
            "good": "registered", "s3": "out-of-reach", "outside": "out-of-reach", "split": "out-of-reach",
            "lost": "out-of-reach", "broken": "refused"}
        for n in ("s3", "outside", "split"):
            assert rows["table", "r", n]["status"] == 400 and rows["table", "r", n]["type"] and "location" in rows["table", "r", n]["message"]
        assert rows["table", "r", "lost"]["type"].startswith("NotFound"), rows["table", "r", "lost"]
        assert total["out-of-reach"] == 4 and total["refused"] == 1
        text = ctl(1, "import", "--from", fake.uri, "--to", two.uri)
        (line,) = [x for x in text.splitlines() if " r.s3 " in x]
        assert line.startswith("out-of-reach  table") and "s3://bucket/t/metadata/00000-x.metadata.json" in line
    finally:
        fake.close()


def files_below(folder):
    return {os.path.join(at, n) for at, _, names in os.walk(folder) for n in names}


def test_the_source_keeps_its_files(pair):
    """Commits, expiry and a drop with and without purge at the target: of the source's files only those go that a purge of the
    registered table reaches, and another table's never."""
    one, two = pair
    for d in (one, two):
        d.stop()
        d.settings.update({"cleaner.grace-ms": 0, "cleaner.interval-ms": 50, "cleaner.tombstone-ms": 0})
        d.start()
    catalog, target = RestCatalog("one", uri=one.uri), RestCatalog("two", uri=two.uri)
    catalog.create_namespace("k")
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    for n in ("kept", "dropped", "purged", "other"):
        t = catalog.create_table("k." + n, schema=schema)
        t.append(data(range(5)))
        t.append(data(range(5, 9)))
    before = files_below(one.warehouse)
    move(0, one.uri, two.uri)
    for n in ("kept", "dropped", "purged"):
        t = target.load_table("k." + n)
        t.append(data(range(20, 25)))
        t.maintenance.expire_snapshots().by_id(t.metadata.snapshots[0].snapshot_id).commit()
    target.drop_table("k.dropped")
    time.sleep(1)
    assert before <= files_below(one.warehouse), "the source's files stay"
    for n in ("kept", "dropped", "purged", "other"):
        assert len(catalog.load_table("k." + n).scan().to_arrow()) == 9
    purged = {f for f in before if os.path.basename(os.path.dirname(os.path.dirname(f))).startswith("purged-")}
    assert len(purged) > 5
    target.purge_table("k.purged")
    end = time.monotonic() + 20
    while time.monotonic() < end and purged & files_below(one.warehouse) == purged:
        time.sleep(0.1)
    time.sleep(1)
    assert before - purged <= files_below(one.warehouse), "nothing beside the purged table's own files"
    assert len(catalog.load_table("k.other").scan().to_arrow()) == len(catalog.load_table("k.dropped").scan().to_arrow()) == 9
    assert len(target.load_table("k.kept").scan().to_arrow()) == 14


def test_goes_on_after_an_end(pair, tmp_path):
    """kill -9 in the middle, a lost source, a lost target: the next run ends in the same state, whatever was done."""
    _, two = pair
    fake = FakeCatalog(tmp_path, page=7)
    try:
        for ns in range(4):
            fake.namespace("n%d" % ns, no=str(ns))
            for t in range(25):
                fake.table("n%d" % ns, "t%02d" % t)
        fake.hook = lambda c, method, path, query, headers, body: time.sleep(0.01)
        for wait in (0.2, 0.5, 0.9):
            p = subprocess.Popen(command("import", "--from", fake.uri, "--to", two.uri, "--parallel", "3"),
                                 stdout=subprocess.DEVNULL, env=environment({}))
            time.sleep(wait)
            p.send_signal(signal.SIGKILL)
            p.wait()
        dropped = []

        def drop(c, method, path, query, headers, body):
            # Every fifth request loses its connection before the answer, every seventh waits for another try.
            dropped.append(path)
            if len(dropped) % 5 == 0:
                return Answer(drop=True)
            return refusal(503, headers={"Retry-After": "0"}) if len(dropped) % 7 == 0 else None
        fake.hook = drop
        rows, total = move(0, fake.uri, two.uri)
        assert total["finished"] and len(rows) == 104 and set(verdicts(rows).values()) <= {"same", "registered"}
        assert "same" in verdicts(rows).values() and len(dropped) > 100
        fake.hook = None
        # The target ends in the middle; and again.
        for ns in range(2):
            for t in range(25):
                two.rest.want(204, "DELETE", target_of("tables", "n%d" % ns, "t%02d" % t))
        killer = threading.Timer(0.3, lambda: two.process.kill())
        slow = lambda c, method, path, query, headers, body: time.sleep(0.02)  # noqa: E731
        fake.hook = slow
        killer.start()
        ctl(3, "-t", "2000", "import", "--from", fake.uri, "--to", two.uri, "--parallel", "2", said=two.uri)
        two.wait()
        two.start()
        fake.hook = None
        rows, total = move(0, fake.uri, two.uri)
        assert len(rows) == 104 and total["finished"]
        for ns in range(4):
            for t in range(25):
                assert load(two, "n%d" % ns, "t%02d" % t)["metadata-location"] == fake.tables["n%d" % ns, "t%02d" % t][0]
    finally:
        fake.close()


def test_warehouses(make_daemon, tmp_path):
    """Prefixes on both sides: the second warehouse of one daemon to the second of another."""
    extra = {"warehouse.extra": "se cond ü=file://%s/second" % tmp_path, "fs.roots": "file://%s" % tmp_path}
    one, two = make_daemon(settings=extra), make_daemon(settings=extra)
    prefix = "/v1/" + segment("se cond ü")
    one.rest.want(200, "POST", prefix + "/namespaces", {"namespace": ["p"]})
    made = one.rest.want(200, "POST", prefix + "/namespaces/p/tables", {"name": "t", "schema": SCHEMA}).json
    args = ("--warehouse", "se cond ü", "--to-warehouse", "se cond ü")
    rows, _ = move(0, one.uri, two.uri, *args)
    assert len(rows) == 2
    assert two.rest.want(200, "GET", prefix + "/namespaces/p/tables/t").json["metadata"] == made["metadata"]
    assert two.rest.want(200, "GET", "/v1/namespaces").json["namespaces"] == []
    ctl(4, "import", "--from", one.uri, "--to", two.uri, "--warehouse", "none", said="none")
