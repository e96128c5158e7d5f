"""The matrix: every shape of change under every partitioning, on main and on a branch, on tables that began with
format version 3 and on tables that were upgraded to it.

On a branch main goes another way meanwhile: the same data files have other vectors there, and the row ids of
both come from one counter. Both are read.
"""

import asyncio
import concurrent.futures
import itertools
import os
import time

import auditor
import frazil
from catalog_suite import check, row, span
from frazil.txn import Outcome
from frazil_suite import BY_REGION, Writer, arrow
from support import foreign
from support.rest import Rest

BY_BUCKET = {"spec-id": 0, "fields": [
    {"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[4]"}]}
VOID = {"spec-id": 0, "fields": [
    {"source-id": 2, "field-id": 1000, "name": "region_void", "transform": "void"},
    {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[2]"}]}
AFTER_REGION = {"spec-id": 1, "fields": [
    {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[4]"}]}
SPECS = {"unpartitioned": None, "identity": BY_REGION, "bucket": BY_BUCKET, "evolved": BY_REGION, "void": VOID}


# ---- shapes: what happens after the appends
def shape_append(w):
    w.append(span(60, 72))


def shape_first_vector(w):
    w.delete(lambda r: r["id"] % 10 == 3)


def shape_merged(w):
    """Four workers on the same data files, twice: vectors are made, then replaced, each the union."""
    for digits in ((1, 2, 3, 4), (5, 6, 7, 8)):
        w.delete_together([lambda r, d=d: r["id"] % 10 == d for d in digits])


def shape_whole_file(w):
    """A file loses half of its rows, then the others: it leaves with its vector."""
    path = next(iter(w.model.where(lambda r: True)))
    mine = {r.values["id"] for r in w.model.where(lambda r: True)[path][1]}
    half = set(sorted(mine)[: len(mine) // 2])
    w.delete(lambda r: r["id"] in half)
    w.delete(lambda r: r["id"] in mine)


def shape_row_delta(w):
    w.row_delta(span(500, 510), lambda r: r["id"] % 10 == 7)
    w.row_delta(span(510, 512), lambda r: r["id"] in (500, 8))


def shape_update(w):
    settle(w)
    w.update(lambda r: r["id"] % 17 == 0, lambda r: {"name": "u" + r["name"]})
    w.update(lambda r: r["id"] in (17, 18), lambda r: {"name": "v" + r["name"], "score": -1.0})
    w.delete(lambda r: r["id"] == 17)


def shape_staged_blob(w):
    """The positions travel in Puffin files that workers wrote: two vectors in one file, then a vector over another."""
    def stage(txn, found):
        path = "%s/worker-%s.puffin" % (txn.info["data_location"].rstrip("/"), txn.id)
        os.makedirs(os.path.dirname(foreign.local(path)), exist_ok=True)
        f = txn.fragment()
        for name, (offset, length, n) in foreign.puffin(path, found).items():
            f.delete_blob(name, path, offset, length, n)
        f.stage()
    w.delete(lambda r: r["id"] % 10 == 3, stage)
    w.delete(lambda r: r["id"] % 10 in (4, 5), stage)


async def asked_at_once(client, txns):
    async with frazil.AsyncClient("%s:%d" % client.address[1:]) as c:
        return [Outcome(r) for r in await asyncio.gather(*[
            c.call("commit", {"txn_id": t.id, "lease_token": t.token, "max_wait_ms": 0, "summary": []}) for t in txns])]


def shape_batch(w):
    """Sixteen transactions of all kinds are asked for at once: far fewer snapshots, each row as acknowledged."""
    settle(w)
    work = []
    for i in range(16):
        if i % 3 == 0:
            rows, found, kind = span(600 + 4 * i, 604 + 4 * i), {}, "APPEND"
        else:
            found = w.model.where(lambda r, i=i: r["id"] % 30 == i)
            kind = "DELETE" if i % 3 == 1 else "ROW_DELTA"
            rows = [{**r.values, "name": "b" + r.values["name"]} for _, some in found.values() for r in some] if i % 3 == 2 else []
        txn = w.begin(kind)
        if kind == "APPEND":
            txn.append(arrow(rows))
        for path, (positions, old) in found.items():
            if kind == "DELETE":
                txn.delete(path, positions)
            else:
                txn.update(path, positions, arrow([{**r.values, "name": "b" + r.values["name"]} for r in old]),
                           [r.row_id for r in old])
        txn.seal()
        work.append((kind, rows, found, txn))
    outcomes = asyncio.run(asked_at_once(w.client, [x[3] for x in work]))
    for (kind, rows, found, _), o in zip(work, outcomes):
        w.model.applied(o, alone=False)
        n = sum(len(v[0]) for v in found.values())
        w.counts(o, **{"APPEND": {"inserted": len(rows)}, "DELETE": {"deleted": n}, "ROW_DELTA": {"updated": n}}[kind])
        for path, (positions, _) in found.items():
            w.model.deleted(path, positions)
        carried = {r.values["id"]: r.row_id for _, some in found.values() for r in some} if kind == "ROW_DELTA" else {}
        w.model.inserted(o, w.files(o), rows, carried, alone=False)
    snapshots = len({o.snapshot_id for o in outcomes})
    check(snapshots < 12, "sixteen transactions in %d snapshots" % snapshots)


SHAPES = {"append": shape_append, "first_vector": shape_first_vector, "merged": shape_merged,
          "whole_file": shape_whole_file, "row_delta": shape_row_delta, "update": shape_update, "staged_blob": shape_staged_blob,
          "batch": shape_batch}


def settle(w):
    """The rows of before an upgrade get their ids with the first commit after it."""
    if w.unnumbered:
        w.append([row(90 + len(w.model.ref))])
        learn(w)


def learn(w):
    """By an independent reader's view, once."""
    if w.unnumbered:
        w.model.numbered(auditor.raw_rows(w.uri, w.model.name, w.model.ref))
        w.unnumbered = False


def cell(suite, client, ns, spec, shape, branch, upgraded):
    """One table; the models of its refs."""
    name = "fz_%s_%s%s%s" % (spec, shape, "_branch" * branch, "_up" * upgraded)
    w = Writer(suite, client, ns, name, SPECS[spec], version=2 if upgraded else 3)
    w.unnumbered = upgraded
    w.append(span(0, 30))
    if spec == "evolved":
        if not upgraded:
            w.delete(lambda r: r["id"] % 10 == 9)
        w.change({"action": "add-spec", "spec": AFTER_REGION}, {"action": "set-default-spec", "spec-id": -1})
    w.append(span(30, 60))
    main = w
    if branch:
        w = main.branch("side")
    if upgraded:
        main.upgrade()
        w.version = 3
    if branch:
        main.delete(lambda r: r["id"] % 10 == 6)
        learn(main)
    SHAPES[shape](w)
    learn(w)
    made = [w.model]
    if branch:
        main.append(span(800, 803))
        w.model.snapshot = w.snapshot()
        made.append(main.model)
    md = main.metadata()
    check(md["format-version"] == 3 and md["next-row-id"] >= main.model.next_row_id, name, "next row id", md["next-row-id"])
    for m in made:
        m.in_bulk = True
    return made


def run(suite, rpc):
    ns = "x%d" % (int(time.time()) % 100000)
    Rest(suite.uri).want(200, "POST", "/v1/namespaces", {"namespace": [ns], "properties": {}})
    cells = list(itertools.product((False, True), (False, True), SPECS, SHAPES))
    with frazil.Client(rpc) as client:
        for upgraded, branch in itertools.product((False, True), (False, True)):
            for spec in SPECS:
                some = [c for c in cells if c[:3] == (upgraded, branch, spec)]

                def row_of_cells(some=some):
                    with concurrent.futures.ThreadPoolExecutor(2) as pool:
                        return sum(pool.map(lambda c: cell(suite, client, ns, c[2], c[3], c[1], c[0]), some), [])
                suite.part("matrix %s, %s, %s" % (spec, "branch" if branch else "main", "upgraded" if upgraded else "native"),
                           row_of_cells)
