"""Failures of other catalogs with the places of files, each tried here. The case ids are those of the field-case list."""

import itertools
import os
import re
import time

import pytest

import frazil
from support.catalog import SCHEMA, Space, local
from support.lab import Lab


@pytest.fixture(scope="module")
def settings():
    return {"cleaner.interval-ms": 50, "cleaner.grace-ms": 200, "cleaner.tombstone-ms": 1000}


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "files")
    yield lab
    lab.check()


def t_number(count=itertools.count()):
    return next(count)


def test_a_name_again_is_another_place(daemon):
    """case BC-191: what an earlier table of the name left lies in nobody's way, and a namespace says where its tables lie."""
    space = Space(daemon, "again")
    first = space.create("t").json["metadata"]["location"]
    os.makedirs(local(first) + "/data", exist_ok=True)
    with open(local(first) + "/data/left", "w") as f:
        f.write("behind")
    space.rest.want(204, "DELETE", space.table("t"))
    second = space.create("t").json["metadata"]["location"]
    assert second != first and not os.path.exists(local(second) + "/data")
    staged = [space.rest.want(200, "POST", space.at + "/tables", {"name": "ctas", "schema": SCHEMA, "stage-create": True}).json
              ["metadata"]["location"] for _ in range(3)]
    assert len(set(staged)) == 3
    where = "file://%s/its/own" % daemon.warehouse
    space.rest.want(200, "POST", space.at + "/properties", {"removals": [], "updates": {"location": where + "/"}})
    assert re.fullmatch(re.escape(where) + "/n-[0-9a-f]{32}", space.create("n").json["metadata"]["location"])


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "de_DE.ISO-8859-1", "tr_TR"])
def test_places_do_not_depend_on_the_locale(make_daemon, locale):
    """case BC-191"""
    d = make_daemon(env={"LC_ALL": locale})
    Space(d, "STRA\u00dfE")
    space = Space(d, "STRA\u00dfE", "I\u0131")
    names = ["stra\u00dfe", "I", "\u0131"]
    for name in names:
        location = space.create(name).json["metadata"]["location"]
        # Bytes that are not plain become '_' one by one: two for each of these letters in UTF-8.
        plain = [re.sub(r"[^\x00-\x7f]", lambda m: "_" * len(m.group().encode()), n) for n in ("STRA\u00dfE", "I\u0131", name)]
        assert re.fullmatch("file://%s/%s/%s/%s-[0-9a-f]{32}" % (re.escape(d.warehouse), *plain), location)
    assert sorted(space.names()) == sorted(names)


@pytest.mark.parametrize("change", [lambda p: p.replace("/data/", "//data/", 1), lambda p: p.replace("/data/", "/./data/", 1),
                                    lambda p: p.replace("/data/", "/data/../data/", 1), lambda p: p.replace("file:///", "file:/", 1),
                                    lambda p: p.rpartition("/")[0] + "//" + p.rpartition("/")[2]])
def test_another_spelling_is_no_path(lab, change):
    """case BC-184: a worker's path is text; one that a file system would fold into another is refused by name, never folded."""
    t = lab.table("spelled%d" % t_number())
    f = t.files(10)[0]
    path = change(f["path"])
    assert path != f["path"]
    with lab.client() as c:
        with pytest.raises(frazil.Error) as told:
            c.commit_once(t.name, data_files=[{**f, "path": path}])
        assert told.value.effect == "CLEAN" and told.value.field == "fragments[0].data_files[0].path", told.value
        o = c.commit_once(t.name, data_files=[f])
        t.added(f)
        with pytest.raises(frazil.Error):
            c.commit_once(t.name, kind="DELETE", deletes=[(path, [3])], read_snapshot_id=o.snapshot_id)
    assert len(t.metadata()["snapshots"]) == 1


def test_purges_through_deaths(make_daemon, postgres):
    """case BC-174: daemons that die in the middle of purges, one after the other: each is finished by the next, nothing else goes."""
    conninfo = postgres.database()
    settings = {"cleaner.interval-ms": 50, "cleaner.grace-ms": 0, "cleaner.tombstone-ms": 1000}
    one = make_daemon(conninfo, settings=settings)
    team = [one] + [make_daemon(conninfo, settings={**settings, "warehouse.location": one.settings["warehouse.location"]}, start=False)
                    for _ in range(2)]
    space = Space(one, "purged")
    kept = {local(space.create("kept%d" % i).json["metadata-location"]) for i in range(3)}
    for i in range(60):
        space.create("t%d" % i)
    for d in team[1:]:
        d.spawn()
    for i in range(60):
        assert space.rest.delete(space.table("t%d" % i), purgeRequested="true").status == 204

    def left():
        return {os.path.join(folder, n) for folder, _, names in os.walk(one.warehouse) for n in names}
    # One after the other serves and dies; the last one ends what they began.
    serving = one
    for n in (40, 20):
        end = time.monotonic() + 60
        while len(left()) - len(kept) > n and time.monotonic() < end:
            time.sleep(0.01)
        serving.kill()
        team.remove(serving)
        end = time.monotonic() + 30
        serving = None
        while serving is None:
            assert time.monotonic() < end
            for d in team:
                try:
                    if d.admin.get("/readyz").status == 200:
                        serving = d
                except OSError:
                    pass
            time.sleep(0.05)
    end = time.monotonic() + 60
    while left() != kept and time.monotonic() < end:
        time.sleep(0.1)
    assert left() == kept
    space.rest = type(space.rest)(serving.uri)
    assert sorted(space.names()) == ["kept0", "kept1", "kept2"]
