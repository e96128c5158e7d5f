"""Several warehouses in one daemon: the same names in each, nothing of one seen or touched from another. case BC-004"""

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    return {n: str(tmp_path_factory.mktemp(n)) for n in ("second", "third", "free")}


@pytest.fixture(scope="module")
def settings(roots):
    return {"warehouse.name": "main", "fs.roots": "file://" + roots["free"],
            "warehouse.extra": "second=file://%(second)s,the third=file://%(third)s" % roots}


@pytest.fixture(scope="module")
def at(daemon):
    """Prefix of the routes of each warehouse, as the configuration tells it."""
    found = {}
    for name in ("main", "second", "the third"):
        prefix = daemon.rest.want(200, "GET", "/v1/config", warehouse=name).json["overrides"].get("prefix")
        found[name] = "/v1/" + prefix if prefix else "/v1"
        daemon.rest.want(200, "POST", found[name] + "/namespaces", {"namespace": ["same"]})
    assert len(set(found.values())) == 3
    return found


def create(daemon, at, name, location=None, **properties):
    return daemon.rest.post(at + "/namespaces/same/tables", {
        "name": name, "schema": SCHEMA, "properties": properties, **({"location": location} if location else {})})


def test_same_names(daemon, at, roots):
    """Each answers with its own; /v1/main and /v1 are the same."""
    made = {w: create(daemon, p, "t", **{"of": w}).json for w, p in at.items()}
    for w, p in at.items():
        got = daemon.rest.want(200, "GET", p + "/namespaces/same/tables/t").json
        assert got["metadata"]["table-uuid"] == made[w]["metadata"]["table-uuid"] and got["metadata"]["properties"]["of"] == w
        assert [i["name"] for i in daemon.rest.get(p + "/namespaces/same/tables").json["identifiers"]] == ["t"]
    assert made["second"]["metadata"]["location"].startswith("file://%(second)s/" % roots)
    assert made["the third"]["metadata"]["location"].startswith("file://%(third)s/" % roots)
    assert made["main"]["metadata"]["location"].startswith("file://" + daemon.warehouse)
    assert daemon.rest.get("/v1/main/namespaces/same/tables/t").json["metadata"]["properties"]["of"] == "main"
    daemon.rest.want(204, "DELETE", at["second"] + "/namespaces/same/tables/t")
    for w, status in (("main", 200), ("second", 404), ("the third", 200)):
        assert daemon.rest.get(at[w] + "/namespaces/same/tables/t").status == status


def test_own_roots(daemon, at, roots):
    """A location lies below the root of its own warehouse or fs.roots; another one's root is none of its."""
    for w, p in at.items():
        for root, status in ((daemon.warehouse, 200 if w == "main" else 400),
                             (roots["second"], 200 if w == "second" else 400),
                             (roots["third"], 200 if w == "the third" else 400), (roots["free"], 200), ("/etc", 400)):
            name = "l%d" % abs(hash((w, root)))
            got = create(daemon, p, name, "file://%s/%s" % (root, name))
            assert got.status == status, (w, root, got)
            name += "d"
            got = create(daemon, p, name, **{"write.data.path": "file://%s/%s" % (root, name)})
            assert got.status == status, (w, root, got)
    # The rule over folders knows no warehouse.
    where = "file://%s/shared" % roots["free"]
    assert create(daemon, at["second"], "f", where).status == 200
    got = create(daemon, at["main"], "f", where + "/in")
    assert got.status == 403 and got.error["type"] == "ForbiddenException"


def test_commits_stay_within(daemon, at, roots):
    assert create(daemon, at["second"], "moved").status == 200
    for root, status in ((daemon.warehouse, 400), (roots["third"], 400), (roots["second"], 200)):
        got = daemon.rest.post(at["second"] + "/namespaces/same/tables/moved", {"requirements": [], "updates": [
            {"action": "set-location", "location": "file://%s/went" % root}]})
        assert got.status == status, got
        got = daemon.rest.post(at["second"] + "/transactions/commit", {"table-changes": [
            {"identifier": {"namespace": ["same"], "name": "moved"}, "requirements": [], "updates": [
                {"action": "set-properties", "updates": {"write.metadata.path": "file://%s/m" % root}}]}]})
        assert got.status == (204 if status == 200 else 400), got


def test_rename_stays_within(daemon, at):
    """A rename names two tables of one warehouse: one of another is not there."""
    assert create(daemon, at["second"], "only_here").status == 200
    body = {"source": {"namespace": ["same"], "name": "only_here"}, "destination": {"namespace": ["same"], "name": "there"}}
    for w in ("main", "the third"):
        got = daemon.rest.post(at[w] + "/tables/rename", body)
        assert got.status == 404 and got.error["type"] == "NoSuchTableException"
    daemon.rest.want(200, "POST", at["second"] + "/namespaces", {"namespace": ["second_only"]})
    body["destination"]["namespace"] = ["second_only"]
    assert daemon.rest.post(at["second"] + "/tables/rename", body).status == 204
    assert daemon.rest.get(at["second"] + "/namespaces/second_only/tables/there").status == 200
    assert daemon.rest.get("/v1/namespaces/second_only").status == 404


def test_register_across(daemon, at):
    """One file is one table's: the other warehouse does not get it, nor does its root allow it."""
    made = create(daemon, at["second"], "mine").json
    for w, p in at.items():
        got = daemon.rest.post(p + "/namespaces/same/register", {"name": "copy", "metadata-location": made["metadata-location"]})
        assert got.status in ((409,) if w == "second" else (400,)), (w, got)


def test_pyiceberg(daemon, at):
    """Two catalogs at once, by name and by location."""
    one = load_catalog("one", type="rest", uri=daemon.uri, warehouse="main")
    two = load_catalog("two", type="rest", uri=daemon.uri, warehouse="the third")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
    for n, catalog in enumerate((one, two)):
        t = catalog.create_table("same.py", schema=rows.schema)
        t.append(rows.slice(n))
    assert one.load_table("same.py").scan().to_arrow().num_rows == 3
    assert two.load_table("same.py").scan().to_arrow().num_rows == 2
    two.rename_table("same.py", "same.py2")
    assert one.load_table("same.py").scan().to_arrow().num_rows == 3
    with pytest.raises(NoSuchTableError):
        one.load_table("same.py2")
    one.purge_table("same.py")
    assert two.load_table("same.py2").scan().to_arrow().num_rows == 2


def test_unknown(daemon):
    for got in (daemon.rest.get("/v1/config", warehouse="fourth"), daemon.rest.get("/v1/fourth/namespaces"),
                daemon.rest.post("/v1/fourth/namespaces", {"namespace": ["x"]})):
        assert got.status == 404 and got.error["type"] == "NoSuchWarehouseException", got
