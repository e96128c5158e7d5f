"""Reading at scale: what many loads share, what a tag and a page stand for, tables and lists that are long."""

import concurrent.futures
import gzip
import json
import socket
import threading

import frazil
import pytest
from frazil import parquet
from pyiceberg.table import StaticTable

from support.catalog import Space, local, set_properties
from support.daemon import Daemon
from support.history import with_history
from support.lab import Lab, data
from support.siblings import name_of, siblings

CROWD = 60


def counters(daemon):
    text = daemon.admin.get("/metrics").body.decode()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")}


def statements(daemon):
    return counters(daemon)['frazil_sql_statements_total{kind="catalog"}']


@pytest.fixture(scope="module")
def space(daemon):
    return Space(daemon, "scale")


@pytest.fixture(scope="module")
def lab(daemon):
    return Lab(daemon, "lab")


# ---- many at once

def burst(daemon, targets):
    """One connection each, all requests on their way before the first answer is read. The answers' heads and bodies."""
    links = [socket.create_connection(("127.0.0.1", daemon.rest_port), timeout=60) for _ in targets]
    try:
        for link, target in zip(links, targets):
            link.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % target.encode())
        out = []
        for link in links:
            got = b""
            while piece := link.recv(1 << 16):
                got += piece
            out.append(got.partition(b"\r\n\r\n")[::2])
        return out
    finally:
        for link in links:
            link.close()


def test_loads_at_once_share_a_statement(daemon, space):
    names = ["shared%d" % i for i in range(4)]
    for name in names:
        space.create(name)
    want = {space.table(n): daemon.rest.get(space.table(n)).body for n in names}
    nobody = space.table("nobody")
    targets = [space.table(names[i % 4]) if i % 5 else nobody for i in range(CROWD)]
    before = statements(daemon)
    for _ in range(3):
        for target, (head, body) in zip(targets, burst(daemon, targets)):
            if target == nobody:
                assert head.startswith(b"HTTP/1.1 404 ") and b"NoSuchTableException" in body
            else:
                assert head.startswith(b"HTTP/1.1 200 ") and body == want[target]
    # A statement each would be 180.
    assert statements(daemon) - before <= 3 * CROWD / 2


def test_who_loads_after_a_commit_sees_it(daemon, space):
    """case BC-175: however many loads share a statement, none is answered by one that began before it was asked for."""
    space.create("fresh")
    target = space.table("fresh")
    acknowledged, wrong, stop = [0], [], threading.Event()

    def load():
        while not stop.is_set():
            least = acknowledged[0]
            got = int(daemon.rest.get(target).json["metadata"]["properties"].get("n", 0))
            if got < least:
                wrong.append((got, least))

    readers = [threading.Thread(target=load) for _ in range(6)]
    for r in readers:
        r.start()
    try:
        for n in range(1, 60):
            daemon.rest.want(200, "POST", target, {"requirements": [], "updates": [set_properties(n=str(n))]})
            acknowledged[0] = n
    finally:
        stop.set()
        for r in readers:
            r.join()
    assert not wrong


# ---- tags

def test_tags_in_every_form(daemon, space):
    """case BC-038: lists, weak forms, an asterisk; what stands in another tag's quotes is not ours."""
    space.create("tagged")
    url = space.table("tagged")
    tag = daemon.rest.get(url).headers["ETag"]

    def status(*lines):
        """Each line is a header of its own."""
        link = socket.create_connection(("127.0.0.1", daemon.rest_port), timeout=60)
        with link:
            head = "".join("If-None-Match: %s\r\n" % line for line in lines)
            link.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n" % (url, head)).encode())
            got = b""
            while piece := link.recv(1 << 16):
                got += piece
        return int(got.split()[1])

    for known in [tag, "W/" + tag, '"x", ' + tag, '"x",W/"y" ,\t' + tag, tag + ', "z"', "*", " * ", ', ,' + tag, '"a,b", ' + tag,
                  '"", ' + tag]:
        assert status(known) == 304, known
    assert status('"x"', tag) == 304 and status('"x"', '"y"') == 200
    bare = tag.strip('"')
    for foreign in ['"x"', "", bare, '"x', '"a,*,b"', '"*"', '"x" ' + tag, "w/" + tag, "x, " + tag, '"%s,"' % bare, '"x%s"' % bare,
                    "*, *", "W/", '"' + tag + '"']:
        assert status(foreign) == 200, foreign


def test_preferences_on_two_lines(daemon, space):
    space.create("lines")
    link = socket.create_connection(("127.0.0.1", daemon.rest_port), timeout=60)
    with link:
        link.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: br\r\nAccept-Encoding: gzip\r\n\r\n"
                     % space.table("lines").encode())
        got = b""
        while piece := link.recv(1 << 16):
            got += piece
    assert b"\r\nContent-Encoding: gzip\r\n" in got and b"\r\nVary: Accept-Encoding\r\n" in got


# ---- long lists

MANY = 12000


@pytest.fixture(scope="module")
def many(daemon):
    siblings(daemon, "many", MANY)
    return "/v1/namespaces/many/tables"


def test_a_long_list_whole_and_in_pages(daemon, many):
    """case BC-014, BC-015, BC-017: 12,000 tables in one answer, or in pages of at most 10,000."""
    want = sorted(name_of(i) for i in range(1, MANY + 1))
    whole = daemon.rest.want(200, "GET", many).json
    assert [i["name"] for i in whole["identifiers"]] == want and whole["next-page-token"] is None
    assert all(i["namespace"] == ["many"] for i in whole["identifiers"])
    sizes, got, token = [], [], ""
    while token is not None:
        page = daemon.rest.want(200, "GET", many, pageToken=token, pageSize=10**9).json
        sizes.append(len(page["identifiers"]))
        got += [i["name"] for i in page["identifiers"]]
        token = page["next-page-token"]
    assert sizes == [10000, 2000] and got == want
    page = daemon.rest.want(200, "GET", many, pageToken="").json
    assert len(page["identifiers"]) == 1000


def test_a_token_is_good_for_its_list_alone(daemon, many):
    """It is no place in another list, and nothing else is one."""
    for parent in (["bound"], ["bound", "in"]):
        daemon.rest.want(200, "POST", "/v1/namespaces", {"namespace": parent})
    token = daemon.rest.want(200, "GET", many, pageToken="", pageSize=5).json["next-page-token"]
    assert daemon.rest.want(200, "GET", many, pageToken=token, pageSize=5).json["identifiers"]
    ns = "/v1/namespaces/"
    for other in ["many/views", "bound/tables", "bound%1Fin/tables"]:
        got = daemon.rest.get(ns + other, pageToken=token)
        assert got.status == 400 and got.error["type"] == "BadRequestException" and "pageToken" in got.error["message"], other
    assert daemon.rest.get("/v1/namespaces", pageToken=token).status == 400
    spaces = daemon.rest.want(200, "GET", "/v1/namespaces", pageToken="", pageSize=1).json["next-page-token"]
    assert spaces and daemon.rest.get("/v1/namespaces", pageToken=spaces, pageSize=1).status == 200
    assert daemon.rest.get("/v1/namespaces", parent="bound", pageToken=spaces).status == 400
    assert daemon.rest.get(many, pageToken=spaces).status == 400
    for bad in [token[:-1], token + "0", token.upper() if token.upper() != token else "x", "1" + token[1:], "2", "null"]:
        assert daemon.rest.get(many, pageToken=bad).status == 400, bad


# ---- tables of many snapshots

DEEP = 10000


def deepen(daemon, lab, name, n):
    """A registered table of n snapshots, whose last one is real; the answer to its registration."""
    source = lab.table(name + "-source", audited=False)
    source.append(3)
    metadata = daemon.rest.want(200, "GET", "/v1/namespaces/lab/tables/%s-source" % name).json["metadata"]
    path = with_history(metadata, name, n, daemon.warehouse)
    return daemon.rest.want(200, "POST", "/v1/namespaces/lab/register", {"name": name, "metadata-location": path}).json


def test_ten_thousand_snapshots(daemon, lab):
    """case BC-177, BC-039: every representation is of the same table, and a commit of one who has seen only those of refs
    keeps the others."""
    made = deepen(daemon, lab, "deep", DEEP)
    url = "/v1/namespaces/lab/tables/deep"
    ids = [s["snapshot-id"] for s in made["metadata"]["snapshots"]]
    assert len(set(ids)) == DEEP
    whole = daemon.rest.raw("GET", url)
    refs = daemon.rest.raw("GET", url + "?snapshots=refs")
    for plain, query in ((whole, ""), (refs, "?snapshots=refs")):
        packed = daemon.rest.raw("GET", url + query, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
        assert len(packed.body) < len(plain.body) / 4
    assert whole.json == made
    seen = refs.json
    assert [s["snapshot-id"] for s in seen["metadata"]["snapshots"]] == [made["metadata"]["current-snapshot-id"]]
    assert seen["metadata-location"] == made["metadata-location"]
    assert {k: v for k, v in seen["metadata"].items() if k != "snapshots"} == {
        k: v for k, v in made["metadata"].items() if k != "snapshots"}
    assert len({daemon.rest.raw("GET", url + q, headers=h).headers["ETag"] for q in ("", "?snapshots=refs")
                for h in ({}, {"Accept-Encoding": "gzip"})}) == 4
    daemon.rest.want(200, "POST", url, {"requirements": [
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": seen["metadata"]["current-snapshot-id"]}],
        "updates": [set_properties(seen="refs")]})
    after = daemon.rest.get(url).json["metadata"]
    assert [s["snapshot-id"] for s in after["snapshots"]] == ids and after["properties"]["seen"] == "refs"


def same_everywhere(daemon, url):
    """File, plain and packed answer hold the same text of the current metadata. It as JSON."""
    whole = daemon.rest.want(200, "GET", url)
    packed = daemon.rest.raw("GET", url, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.body) == whole.body
    location = whole.json["metadata-location"]
    with (gzip.open if location.endswith(".gz.metadata.json") else open)(local(location), "rb") as f:
        text = f.read()
    assert whole.body == b'{"metadata-location":%s,"metadata":%s,"config":{}}' % (json.dumps(location).encode(), text)
    return whole.json["metadata"]


def test_commits_to_a_long_history(daemon, lab):
    """case BC-177, BC-044: of a long history a commit writes again only what it changed; what it wrote is the whole
    table, in the file, plain or packed, and in each answer, whoever committed and whatever was removed before."""
    made = deepen(daemon, lab, "long", 1000)["metadata"]
    url = "/v1/namespaces/lab/tables/long"
    ids = [s["snapshot-id"] for s in made["snapshots"]]

    def commit(*updates):
        for head in ({}, {"Accept-Encoding": "gzip"}):
            got = daemon.rest.call("POST", url, {"requirements": [], "updates": list(updates)}, headers=head)
            assert got.status == 200
            body = gzip.decompress(got.body) if got.headers["Content-Encoding"] else got.body
            assert json.loads(body)["metadata"]["snapshots"] == same_everywhere(daemon, url)["snapshots"]
            updates = (set_properties(again="yes"), *updates[1:])

    def check():
        now = same_everywhere(daemon, url)
        assert [s["snapshot-id"] for s in now["snapshots"]] == ids
        known = {s["snapshot-id"]: s for s in made["snapshots"]}
        assert all(known.get(s["snapshot-id"], s) == s for s in now["snapshots"])
        assert [e["snapshot-id"] for e in now["snapshot-log"]] == ids[len(ids) - len(now["snapshot-log"]):]
        table = StaticTable.from_metadata(daemon.rest.get(url).json["metadata-location"])
        assert [s.snapshot_id for s in table.metadata.snapshots] == ids

    def append():
        with frazil.Client(daemon.rpc) as c:
            info = c.table("lab.long").info()
            return c.commit_once("lab.long", kind="APPEND", data_files=parquet.write(data([1, 2]), info), info=info).snapshot_id
    for codec in ("none", "gzip", "none"):
        commit(set_properties(**{"write.metadata.compression-codec": codec}))
        check()
        ids.append(append())
        check()
        gone = ids[100:300:7]
        commit({"action": "remove-snapshots", "snapshot-ids": gone})
        ids = [i for i in ids if i not in gone]
        check()
        daemon.restart()
        check()


def test_a_cold_table_is_read_once(daemon, lab):
    """case BC-177: many who load a large table at once share one read of its file and one answer of each kind."""
    deepen(daemon, lab, "cold", 2000)
    url = "/v1/namespaces/lab/tables/cold"
    want = daemon.rest.get(url).body
    daemon.restart()
    before = counters(daemon)
    for head, body in burst(daemon, [url] * 20):
        assert head.startswith(b"HTTP/1.1 200 ") and body == want
    after = counters(daemon)
    assert after["frazil_metadata_cache_reads_total"] - before["frazil_metadata_cache_reads_total"] == 1


def test_many_large_tables_in_a_small_cache(tmp_path, postgres):
    """case BC-177: what is kept is bounded by rest.cache-bytes, whatever many ask for at once; all are served."""
    small = 2 << 20
    d = Daemon(tmp_path / "small", postgres.database(), {"rest.cache-bytes": small})
    try:
        lab = Lab(d, "lab")
        want = {}
        for i in range(8):
            deepen(d, lab, "large%d" % i, 1500)
            url = "/v1/namespaces/lab/tables/large%d" % i
            want[url] = d.rest.get(url).json
            assert len(json.dumps(want[url])) > small / 2
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for url, got in zip(list(want) * 3, pool.map(d.rest.get, list(want) * 3)):
                assert got.status == 200 and got.json == want[url]
        assert 0 <= counters(d)["frazil_metadata_cache_bytes"] <= small
    finally:
        d.close()
