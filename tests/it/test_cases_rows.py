"""Failures of other systems with row lineage, each tried here. The case ids are those of the field-case list."""

import concurrent.futures
import os
import random
import time

import pytest

from support import audit
from support.foreign import Writer, read_avro, write_avro
from support.lab import Lab, refused

MAX = (1 << 63) - 1


@pytest.fixture(scope="module")
def lab(daemon):
    lab = Lab(daemon, "rows")
    yield lab
    lab.check()


def listed(t, ref="main"):
    w = Writer(t, ref)
    w.load()
    return w.list


def snapshot(w, **more):
    """An add-snapshot of `w`'s parent again, with its manifests; members of `more` win, None leaves one out."""
    sid = random.getrandbits(62) | 1
    path = w.new_path("avro")
    write_avro(path, w.list_schema, w.list_header, w.list)
    s = {"snapshot-id": sid, "parent-snapshot-id": w.parent["snapshot-id"], "sequence-number": w.md["last-sequence-number"] + 1,
         "timestamp-ms": int(time.time() * 1000), "manifest-list": path, "summary": {"operation": "append"},
         "schema-id": 0, "first-row-id": w.md.get("next-row-id"), "added-rows": 0, **more}
    return {k: v for k, v in s.items() if v is not None}


def commit(t, *snapshots, ref="main", requirements=()):
    updates = []
    for s in snapshots:
        updates += [{"action": "add-snapshot", "snapshot": s},
                    {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": s["snapshot-id"]}]
    return t.lab.rest.post(t.target, {"requirements": list(requirements), "updates": updates})


def ranges_are_disjoint(t):
    spans = sorted((s["first-row-id"], s["added-rows"]) for s in t.metadata()["snapshots"])
    for (a, n), (b, _) in zip(spans, spans[1:]):
        assert a + n <= b, spans
    return spans


def test_the_loser_numbers_anew(lab):
    """case BC-078: two writers prepare 10 and 20 rows on one base; the second one's numbers are refused until they are new."""
    t = lab.table("loser", audited=False)
    t.append(1)
    base = t.metadata()
    stale = Writer(t)
    stale.load()
    one = Writer(t)
    one.append(10)
    late = snapshot(stale)
    got = commit(t, late)
    assert (got.status, got.error["type"]) == (409, "CommitFailedException"), got
    two = Writer(t)
    two.append(20)
    md = t.metadata()
    assert md["next-row-id"] == base["next-row-id"] + 30
    assert ranges_are_disjoint(t) == [(0, 1), (1, 10), (11, 20)]
    assert sorted(r["_row_id"] for r in audit.rows(lab.daemon, t.name)) == list(range(31))


def test_first_row_id_against_the_table(lab):
    """cases BC-079, BC-090: behind the table is a race (409); absent, negative or a hole below is malformed (400)."""
    t = lab.table("first", audited=False)
    path, o = t.append(100)
    t.update([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": o.snapshot_id}])
    w = Writer(t, "b")
    w.load()
    t.append(50)
    old = {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": o.snapshot_id}
    seq = t.metadata()["last-sequence-number"] + 1
    before = t.metadata()
    got = commit(t, snapshot(w, **{"first-row-id": 100, "sequence-number": seq}), ref="b", requirements=[old])
    assert (got.status, got.error["type"]) == (409, "CommitFailedException"), got
    for change in ({"first-row-id": None}, {"first-row-id": -1}, {"added-rows": None}, {"added-rows": -5}, {"first-row-id": 1.5}):
        got = commit(t, snapshot(w, **{"first-row-id": 150, "sequence-number": seq, **change}), ref="b", requirements=[old])
        assert got.status == 400, (change, got)
    assert t.metadata() == before
    # A hole is allowed; the table goes on behind it.
    got = commit(t, snapshot(w, **{"first-row-id": 160, "sequence-number": seq, "added-rows": 5}), ref="b", requirements=[old])
    assert got.status == 400 or (got.status == 200 and got.json["metadata"]["next-row-id"] == 165), got
    t.append(3)
    ranges_are_disjoint(t)


def test_every_snapshot_tells_its_range(lab):
    """case BC-090: both members on every snapshot of format version 3, none on version 2 whatever a client sends."""
    t = lab.table("told")
    for n in (4, 7):
        t.append(n)
    md = t.metadata()
    assert [(s["first-row-id"], s["added-rows"]) for s in md["snapshots"]] == [(0, 4), (4, 7)] and md["next-row-id"] == 11
    v2 = lab.table("told2", version=2, audited=False)
    v2.append(4)
    w = Writer(v2)
    w.load()
    got = commit(v2, snapshot(w, **{"first-row-id": 0, "added-rows": 3}))
    assert got.status in (200, 400)
    md = v2.metadata()
    assert "next-row-id" not in md and all("first-row-id" not in s and "added-rows" not in s for s in md["snapshots"])


def test_merged_manifests_keep_row_ids(lab):
    """cases BC-080, BC-112, BC-113, BC-155: entries copied to another manifest get their ids and numbers written out."""
    t = lab.table("merge", **{"commit.manifest.min-count-to-merge": "3"})
    seen = {}
    for i in range(7):
        path, o = t.append(3)
        seen[path] = (o.files[0]["first_row_id"], o.sequence_number, o.snapshot_id)
        if i == 3:
            t.delete(path, [1], o.snapshot_id)
    rows = [r for r in listed(t) if r["content"] == 0]
    assert len(rows) < 7, "nothing was merged"
    for row in rows:
        for e in read_avro(row["manifest_path"])[2]:
            d = e["data_file"]
            if e["status"] == 0:
                assert (d["first_row_id"], e["sequence_number"], e["snapshot_id"]) == seen[d["file_path"]]
                assert e["file_sequence_number"] == e["sequence_number"]
                assert row["min_sequence_number"] <= e["sequence_number"]
    by_path = {r["path"]: r["_row_id"] - r["pos"] for r in audit.rows(lab.daemon, t.name)}
    assert by_path == {p: first for p, (first, _, _) in seen.items()}
    ranges_are_disjoint(t)


def test_deletes_take_no_ids(lab):
    """cases BC-082, BC-092, BC-104: a snapshot of data and vectors numbers the rows of the data alone, deleted ones included."""
    t = lab.table("both")
    path, o = t.append(100)
    files = t.files(40, ids=[t.rows[path][p] for p in range(40)], row_ids=list(range(40)))
    more = t.files(10)
    with lab.client() as c:
        c.commit_once(t.name, kind="ROW_DELTA", data_files=files + more, deletes=[(path, range(40), "MOVED")],
                      read_snapshot_id=o.snapshot_id)
    t.deleted(path, range(40))
    t.added(*files, *more)
    rows = listed(t)
    fresh = [r for r in rows if r["added_snapshot_id"] == t.head()]
    assert sorted(r["content"] for r in fresh) == [0, 1]
    for r in fresh:
        assert (r["first_row_id"] is None) == (r["content"] == 1)
        assert read_avro(r["manifest_path"])[1]["content"] == ("deletes" if r["content"] else "data")
        assert {e["data_file"]["content"] for e in read_avro(r["manifest_path"])[2]} == {r["content"]}
    md = t.metadata()
    assert md["snapshots"][-1]["first-row-id"] == 100 and md["next-row-id"] == 150
    # 60 of the 100 rows are live; the next file still starts behind all that were ever numbered.
    _, got = t.append(1)
    assert got.files[0]["first_row_id"] == 150


def crafted(t, entries, drop=()):
    """Replaces the head by one with a manifest of these (status, rows, sequence number, file sequence number), over REST.
    Returns the paths."""
    w = Writer(t)
    w.load()
    schema, header, old = read_avro(next(r for r in w.list if r["content"] == 0)["manifest_path"])
    sid, seq = random.getrandbits(62) | 1, w.md["last-sequence-number"] + 1
    made = []
    for status, n, number, file_number in entries:
        f = t.files(n)[0]
        made.append((status, f))
        e = w.entry(old[0], sid, {"content": 0, "file_path": f["path"], "file_format": "PARQUET",
                                  "record_count": n, "file_size_in_bytes": f["file_size"]})
        e.update(status=status, sequence_number=number, file_sequence_number=file_number)
        entries[len(made) - 1] = e
    row = w.manifest(schema, header, 0, entries, sid, seq, None)
    row["min_sequence_number"] = min([e["sequence_number"] for e in entries if e["sequence_number"] is not None] + [seq])
    path = w.new_path("avro")
    write_avro(path, w.list_schema, {**w.list_header, "snapshot-id": str(sid), "sequence-number": str(seq)}, [row])
    got = commit(t, {"snapshot-id": sid, "parent-snapshot-id": w.parent["snapshot-id"], "sequence-number": seq,
                     "timestamp-ms": int(time.time() * 1000), "manifest-list": path, "schema-id": 0,
                     "summary": {"operation": "overwrite"}})
    assert got.status == 200, got
    t.rows = {f["path"]: list(f.ids) for status, f in made if status != 2}
    t.gone = set()
    return [f["path"] for _, f in made]


def upgrade(t):
    t.update([{"action": "upgrade-format-version", "format-version": 3}])
    t.version, t._info = 3, None


def test_deleted_entries_take_no_ids(lab):
    """cases BC-083, BC-085: after an upgrade live entries are numbered in order; a DELETED one between takes nothing."""
    t = lab.table("between", version=2, audited=False)
    t.append(2)
    a, _, c = crafted(t, [(1, 10, None, None), (2, 99, 1, 1), (1, 5, None, None)])
    upgrade(t)
    d, got = t.append(7)
    row = next(r for r in listed(t) if r["added_snapshot_id"] != got.snapshot_id)
    first = row["first_row_id"]
    assert got.files[0]["first_row_id"] >= first + 15 and t.metadata()["next-row-id"] == got.files[0]["first_row_id"] + 7
    where = {r["path"]: r["_row_id"] - r["pos"] for r in audit.rows(lab.daemon, t.name)}
    assert where == {a: first, c: first + 10, d: got.files[0]["first_row_id"]}


def test_manifests_in_their_order(lab):
    """case BC-083: each manifest starts where the one before it ends."""
    t = lab.table("order", version=2)
    for n in (5, 7, 11):
        t.append(n)
    upgrade(t)
    t.append(2)
    rows = listed(t)
    spans = sorted((r["first_row_id"], r["existing_rows_count"] + r["added_rows_count"]) for r in rows)
    assert [a for a, _ in spans] == [sum(n for _, n in spans[:i]) for i in range(4)]
    assert sorted(n for _, n in spans) == [2, 5, 7, 11] and t.metadata()["next-row-id"] == 25


def test_data_sequence_number_is_inherited(lab):
    """case BC-088: a rewritten file with an older data sequence number keeps both, also in a merged manifest."""
    t = lab.table("older", version=2, audited=False, **{"commit.manifest.min-count-to-merge": "2"})
    for _ in range(4):
        t.append(1)
    path, = crafted(t, [(1, 6, 1, None)])
    upgrade(t)
    for _ in range(3):
        t.append(1)
    found = [e for r in listed(t) if r["content"] == 0 for e in read_avro(r["manifest_path"])[2] if e["data_file"]["file_path"] == path]
    assert [(e["status"], e["sequence_number"], e["file_sequence_number"]) for e in found] == [(0, 1, 5)]
    read = {r["_last_updated_sequence_number"] for r in audit.rows(lab.daemon, t.name) if r["path"] == path}
    assert read == {1}


def test_the_last_row_ids(lab, daemon):
    """case BC-086: near 2^63 the addition is checked; what does not fit is refused and changes nothing."""
    t = lab.table("last", audited=False)
    where = t.load()["metadata-location"]
    lab.rest.want(204, "DELETE", t.target)
    local = where.removeprefix("file://")
    with open(local) as f:
        text = f.read()
    assert '"next-row-id":0' in text
    moved = os.path.join(os.path.dirname(local), "00000-edited.metadata.json")
    with open(moved, "w") as f:
        f.write(text.replace('"next-row-id":0', '"next-row-id":9223372036854775800'))
    lab.rest.want(200, "POST", "/v1/namespaces/rows/register", {"name": "last", "metadata-location": "file://" + moved})
    t._info = None
    t.append(5)
    assert t.metadata()["next-row-id"] == 9223372036854775805
    before = t.metadata()
    files = t.files(100)
    with refused("ROW_IDS", "LIMIT", "VALIDATION", "TOO_LARGE", "BAD_REQUEST"), lab.client() as c:
        c.commit_once(t.name, kind="APPEND", data_files=files)
    for n in (-1, MAX):
        bad = dict(t.files(3)[0], record_count=n, new_row_count=n)
        with refused("BAD_REQUEST", "ROW_IDS", "LIMIT", "METRICS_INVALID", "VALIDATION"), lab.client() as c:
            c.commit_once(t.name, kind="APPEND", data_files=[bad])
    assert t.metadata() == before
    w = Writer(t)
    w.load()
    got = commit(t, snapshot(w, **{"added-rows": 100}))
    assert got.status == 400, got
    t.append(2)
    lab.forget(t)


def test_metrics_of_lineage_columns(lab):
    """case BC-091: counts and bounds of the two reserved columns are taken as such; any other unknown column is refused."""
    t = lab.table("reserved")
    path, o = t.append(5)
    f = t.files(2)[0]
    for name in ("value_counts", "null_counts", "column_sizes"):
        f[name] = list(f[name]) + [{"field_id": i, "value": 2} for i in (2147483540, 2147483539)]
    f["lower_bounds"] = list(f["lower_bounds"]) + [{"field_id": 2147483540, "value": bytes(8)}]
    with lab.client() as c:
        got = c.commit_once(t.name, kind="APPEND", data_files=[f])
    t.added(f)
    # They are no columns of the table: ids go on as they would, and every reader passes over them (lab.check).
    assert got.files[0]["first_row_id"] == 5
    t.delete(f["path"], [1], got.snapshot_id)
    f = t.files(2)[0]
    f["lower_bounds"] = list(f["lower_bounds"]) + [{"field_id": 2147483540, "value": bytes(7)}]
    with refused("METRICS_INVALID"), lab.client() as c:
        c.commit_once(t.name, kind="APPEND", data_files=[f])
    f = t.files(2)[0]
    f["value_counts"] = list(f["value_counts"]) + [{"field_id": 999, "value": 2}]
    with refused("METRICS_INVALID"), lab.client() as c:
        c.commit_once(t.name, kind="APPEND", data_files=[f])


def test_two_snapshots_in_one_request(lab):
    """case BC-093: each add-snapshot sees the next row id that the one before it left; otherwise all of it is refused."""
    t = lab.table("pair", audited=False)
    t.append(10)
    w = Writer(t)
    w.load()
    next_id, seq = w.md["next-row-id"], w.md["last-sequence-number"]
    one = snapshot(w, **{"added-rows": 10, "sequence-number": seq + 1})
    for first in (next_id, next_id + 5):
        two = snapshot(w, **{"first-row-id": first, "added-rows": 5, "sequence-number": seq + 2,
                             "parent-snapshot-id": one["snapshot-id"]})
        got = commit(t, one, two)
        assert got.status in (400, 409), got
    assert t.metadata()["next-row-id"] == next_id
    two = snapshot(w, **{"first-row-id": next_id + 10, "added-rows": 5, "sequence-number": seq + 2,
                         "parent-snapshot-id": one["snapshot-id"]})
    got = commit(t, one, two)
    assert got.status == 200 and got.json["metadata"]["next-row-id"] == next_id + 15, got
    assert [e["snapshot-id"] for e in got.json["metadata"]["snapshot-log"]][-1] == two["snapshot-id"]


def test_appends_at_once_share_no_id(lab):
    """cases BC-078, BC-092: thirty writers at once; every row id once, as many as rows."""
    t = lab.table("crowd")
    t.info
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        got = [f.result() for f in [pool.submit(t.append, n % 5 + 1) for n in range(30)]]
    spans = sorted((o.files[0]["first_row_id"], o.files[0]["record_count"]) for _, o in got)
    assert all(a + n <= b for (a, n), (b, _) in zip(spans, spans[1:]))
    assert t.metadata()["next-row-id"] == sum(n for _, n in spans)
