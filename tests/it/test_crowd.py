"""Many workers on one table at once, through the Python client: each acknowledged row once, none else."""

import asyncio
import collections

import pyarrow as pa
import pytest

import frazil
from support import audit

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "who", "required": False, "type": "string"}]}


def rows(first, n, who):
    return pa.table({"id": pa.array(range(first, first + n), pa.int64()), "who": pa.array([who] * n)})


@pytest.fixture
def table(rest):
    """table(name): an empty V3 table "crowd.name"."""
    def make(name):
        rest.post("/v1/namespaces", {"namespace": ["crowd"], "properties": {}})
        rest.want(200, "POST", "/v1/namespaces/crowd/tables", {
            "name": name, "schema": SCHEMA, "properties": {"format-version": "3"}})
        return "crowd." + name
    return make


def vectors(rest, name):
    """(live delete files, data files) by the newest summary."""
    md = rest.want(200, "GET", "/v1/namespaces/crowd/tables/" + name).json["metadata"]
    head = next(s for s in md["snapshots"] if s["snapshot-id"] == md["current-snapshot-id"])["summary"]
    return int(head["total-delete-files"]), int(head["total-data-files"]), md


def test_hundred_deletes_of_one_file_twice(daemon, rest, table):
    name = table("race")

    async def go():
        async with frazil.AsyncClient(daemon.rpc, retries=0) as client:
            base = await client.commit_once(name, kind="APPEND", data=rows(0, 1000, "base"))
            path, snapshot = base.files[0]["path"], base.snapshot_id
            for turn in range(2):
                done = await asyncio.gather(*[client.commit_once(
                    name, kind="DELETE", deletes=[(path, [turn * 100 + i])], read_snapshot_id=snapshot) for i in range(100)])
                assert [d.state for d in done] == ["COMMITTED"] * 100
                assert sum(d.rows_deleted for d in done) == 100
                # Many transactions share a snapshot, or nothing was merged.
                assert len({d.snapshot_id for d in done}) <= 50
    asyncio.run(go())
    assert sorted(r["id"] for r in audit.rows(daemon, name)) == list(range(200, 1000))
    assert vectors(rest, "race")[:2] == (1, 1)
    audit.clean(daemon, name)


def test_workers_at_once(daemon, rest, table):
    """32 workers, 12 transactions each in turn: an append, a delete of the shared file, a delete of one's own row."""
    name = table("workers")
    workers, turns = 32, 4
    ranges, kept = [], collections.Counter()

    async def worker(client, n, path, snapshot):
        for k in range(turns):
            first = 10000 + (n * turns + k) * 5
            o = await client.commit_once(name, kind="APPEND", data=rows(first, 5, "w%d" % n))
            ranges.append((o.files[0]["first_row_id"], o.files[0]["record_count"]))
            kept.update(range(first, first + 5))
            d = await client.commit_once(name, kind="DELETE", deletes=[(path, [n * turns + k])], read_snapshot_id=snapshot)
            assert d.rows_deleted == 1
            kept.subtract([n * turns + k])
            d = await client.commit_once(name, kind="DELETE", deletes=[(o.files[0]["path"], [3])],
                                         read_snapshot_id=o.snapshot_id)
            assert d.rows_deleted == 1
            kept.subtract([first + 3])

    async def go():
        async with frazil.AsyncClient(daemon.rpc) as client:
            base = await client.commit_once(name, kind="APPEND", data=rows(0, 500, "base"))
            kept.update(range(500))
            ranges.append((base.files[0]["first_row_id"], 500))
            await asyncio.gather(*[worker(client, n, base.files[0]["path"], base.snapshot_id) for n in range(workers)])
    asyncio.run(go())
    found = audit.rows(daemon, name)
    assert collections.Counter(r["id"] for r in found) == +kept
    assert len({r["_row_id"] for r in found}) == len(found)
    end = 0
    for first, n in sorted(ranges):
        assert first >= end, "row-id ranges overlap"
        end = first + n
    deletes, data, md = vectors(rest, "workers")
    assert data == 1 + workers * turns and deletes == 1 + workers * turns
    assert md["next-row-id"] >= end
    assert len(md["snapshots"]) < 3 * workers * turns
    audit.clean(daemon, name)


def test_overlapping_deletes(daemon, table):
    """Several workers delete the same rows: each commit stands, every row is counted once."""
    name = table("overlap")

    async def go():
        async with frazil.AsyncClient(daemon.rpc) as client:
            base = await client.commit_once(name, kind="APPEND", data=rows(0, 50, "base"))
            path = base.files[0]["path"]
            done = await asyncio.gather(*[client.commit_once(
                name, kind="DELETE", deletes=[(path, range(n, n + 10))], read_snapshot_id=base.snapshot_id)
                for n in range(0, 20, 2)], return_exceptions=True)
            return done
    done = asyncio.run(go())
    good = [d for d in done if not isinstance(d, Exception)]
    for d in done:
        # A refusal is a typed write conflict, never something else.
        assert not isinstance(d, Exception) or (isinstance(d, frazil.Rejected) and d.name == "WRITE_WRITE"), d
    gone = set()
    for n, d in zip(range(0, 20, 2), done):
        if d in good:
            gone |= set(range(n, n + 10))
    assert good and sum(d.rows_deleted for d in good) == len(gone)
    assert {r["id"] for r in audit.rows(daemon, name)} == set(range(50)) - gone
    audit.clean(daemon, name)
