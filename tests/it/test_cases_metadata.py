"""Failures that other catalogs had with commits of REST clients, as checks of this one."""

import copy
import uuid

import pytest

from support.catalog import SCHEMA, Space, column, creation, document, error, set_properties, struct

BIG = 9007199254740993  # a double rounds it to ...992
REFUSALS = ("BadRequestException", "ValidationException", "IllegalArgumentException", "UnsupportedOperationException")


@pytest.fixture(scope="module")
def settings():
    return {"rest.verify-snapshots": "off"}  # the snapshots here name lists that are nowhere


@pytest.fixture(scope="module")
def ns(daemon):
    return Space(daemon, "commits")


def same_head(ns, name):
    """What must not change when a commit is refused."""
    return ns.load(name)


def test_requirements_on_refs(ns):
    """case BC-010: the null is said, and a missing key is no null."""
    ns.create("refs")
    must = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    first = ns.snapshot("refs", 101)
    ns.commit("refs", *first, requirements=[must])
    before = same_head(ns, "refs")
    k = set_properties(k="v")
    for bad in ({"type": "assert-ref-snapshot-id", "ref": "main"}, {"type": "assert-ref-snapshot-id", "snapshot-id": None},
                {"type": "assert-ref-snapshot-id", "ref-name": "main", "snapshot-id": None}, {"type": "assert-ref-snapshot-id"}):
        error(ns.commit("refs", k, requirements=[bad], want=400), 400)
    error(ns.commit("refs", k, requirements=[must], want=409), 409, "CommitFailedException")
    error(ns.commit("refs", k, requirements=[{**must, "snapshot-id": 102}], want=409), 409, "CommitFailedException")
    error(ns.commit("refs", k, requirements=[{**must, "ref": "none", "snapshot-id": 101}], want=409), 409, "CommitFailedException")
    assert same_head(ns, "refs") == before
    ns.commit("refs", k, requirements=[{**must, "ref": "none"}, {**must, "snapshot-id": 101}])


SNAP = {"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 0, "manifest-list": "file:///x", "summary": {"operation": "append"}}
STATISTICS = {"snapshot-id": 1, "statistics-path": "file:///x", "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
# The members that the specification requires, with values of the right type.
UPDATES = [
    {"action": "assign-uuid", "uuid": str(uuid.uuid4())}, {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": struct(column(1, "id"))}, {"action": "set-current-schema", "schema-id": 0},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": 0},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": 0}, {"action": "add-snapshot", "snapshot": SNAP},
    {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 1},
    {"action": "remove-snapshots", "snapshot-ids": [1]}, {"action": "remove-snapshot-ref", "ref-name": "b"},
    {"action": "set-location", "location": "file:///x"}, {"action": "set-properties", "updates": {"k": "v"}},
    {"action": "remove-properties", "removals": ["k"]}, {"action": "set-statistics", "statistics": STATISTICS},
    {"action": "remove-statistics", "snapshot-id": 1},
    {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": 1, "statistics-path": "file:///x", "file-size-in-bytes": 1}},
    {"action": "remove-partition-statistics", "snapshot-id": 1}, {"action": "remove-partition-specs", "spec-ids": [0]},
    {"action": "remove-schemas", "schema-ids": [0]},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AAAA"}},
    {"action": "remove-encryption-key", "key-id": "k"}]
REQUIREMENTS = [
    {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}, {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": None},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2}, {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999}, {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0}]
# Members of an object within, by the member that holds it.
WITHIN = {"schema": ("type", "fields"), "spec": ("fields",), "sort-order": ("fields",), "statistics": STATISTICS,
          "partition-statistics": ("snapshot-id", "statistics-path", "file-size-in-bytes"), "snapshot": ("snapshot-id", "timestamp-ms", "manifest-list", "summary"),
          "encryption-key": ("key-id", "encrypted-key-metadata")}


def spoilt(good, tag):
    """(what, value, member) with one required member missing or of another type."""
    for key in good:
        within = WITHIN.get(key, ()) if isinstance(good[key], dict) else ()
        for path in [(key,)] + [(key, inner) for inner in within]:
            values = [..., None, "x", 1.5, True, {"no": 1}, [None]]
            at = good
            for step in path:
                at = at[step]
            for value in values:
                if value is None and path == ("snapshot-id",) and tag == "type":
                    continue
                if isinstance(value, str) and isinstance(at, str) and path[-1] not in (tag, "uuid"):
                    continue  # any text may be one
                bad = copy.deepcopy(good)
                holder = bad
                for step in path[:-1]:
                    holder = holder[step]
                if value is ...:
                    del holder[path[-1]]
                else:
                    holder[path[-1]] = value
                yield bad, path[-1]


@pytest.mark.parametrize("good", UPDATES + REQUIREMENTS, ids=lambda g: g.get("action") or g["type"])
def test_members_that_are_required(ns, good):
    """case BC-011: each is there and of its type, or the request is refused and names it. Nothing is taken for zero."""
    name = "members"
    if name not in ns.names():
        ns.create(name)
        ns.commit(name, *ns.snapshot(name, 1))
    before = same_head(ns, name)
    tag = "action" if "action" in good else "type"
    n = 0
    for bad, member in spoilt(good, tag):
        updates, requirements = ([bad], []) if tag == "action" else ([set_properties(k="v")], [bad])
        got = ns.rest.post(ns.table(name), {"requirements": requirements, "updates": updates})
        assert got.status == 400, (bad, got)
        assert member in got.error["message"], (bad, got)
        n += 1
    assert n >= 10 and same_head(ns, name) == before


def test_numbers_of_64_bits(ns):
    """case BC-012: ids are told and compared digit by digit."""
    ns.create("digits")
    for sid, parent in ((BIG, None), (9223372036854775807, BIG)):
        ns.commit("digits", *ns.snapshot("digits", sid, parent, summary={"operation": "append", "source-snapshot-id": str(sid)}))
    md = ns.load("digits")
    for shown in (md["metadata"], document(md["metadata-location"])):
        assert [s["snapshot-id"] for s in shown["snapshots"]] == [BIG, 9223372036854775807]
        assert [s["summary"]["source-snapshot-id"] for s in shown["snapshots"]] == [str(BIG), "9223372036854775807"]
        assert shown["snapshots"][1]["parent-snapshot-id"] == BIG and shown["current-snapshot-id"] == 9223372036854775807
    must = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 9223372036854775806}
    error(ns.commit("digits", set_properties(k="v"), requirements=[must], want=409), 409, "CommitFailedException")
    error(ns.commit("digits", {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": BIG - 1}, want=400), 400)
    ns.commit("digits", {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": BIG})
    assert ns.meta("digits")["refs"]["b"]["snapshot-id"] == BIG
    before = same_head(ns, "digits")
    for text in ("1e3", "1.0", "9223372036854775808", "1e0", "0x1", "01", "+1", "%d.0" % BIG, "-9223372036854775809"):
        body = '{"requirements":[{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":%s}],"updates":[]}' % text
        error(ns.rest.raw("POST", ns.table("digits"), body.encode(), {"Content-Type": "application/json"}), 400)
        body = '{"requirements":[],"updates":[{"action":"set-current-schema","schema-id":%s}]}' % text
        error(ns.rest.raw("POST", ns.table("digits"), body.encode(), {"Content-Type": "application/json"}), 400)
    assert same_head(ns, "digits") == before


def test_minus_one(ns):
    """case BC-026: -1 is what this request added last, known before or not; without an addition it is nothing."""
    ns.create("minus")
    schema = ns.meta("minus")["schemas"][0]
    last = {"action": "set-current-schema", "schema-id": -1}
    md = ns.commit("minus", {"action": "add-schema", "schema": schema}, last).json["metadata"]
    assert md["current-schema-id"] == 0 and len(md["schemas"]) == 1
    one, two = [struct(*schema["fields"], column(3, n)) for n in "ab"]
    md = ns.commit("minus", {"action": "add-schema", "schema": one}, {"action": "add-schema", "schema": two}, last).json["metadata"]
    assert md["current-schema-id"] == 2 and [s["schema-id"] for s in md["schemas"]] == [0, 1, 2]
    assert next(s for s in md["schemas"] if s["schema-id"] == 2)["fields"][-1]["name"] == "b"
    md = ns.commit("minus", {"action": "add-schema", "schema": one}, last).json["metadata"]
    assert md["current-schema-id"] == 1 and len(md["schemas"]) == 3
    spec = {"spec-id": 9, "fields": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}]}
    md = ns.commit("minus", {"action": "add-spec", "spec": spec}, {"action": "set-default-spec", "spec-id": -1}).json["metadata"]
    assert md["default-spec-id"] == 1
    md = ns.commit("minus", {"action": "add-spec", "spec": {"spec-id": 4, "fields": []}}, {"action": "set-default-spec", "spec-id": -1}).json["metadata"]
    assert md["default-spec-id"] == 0 and len(md["partition-specs"]) == 2
    order = {"order-id": 5, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}]}
    for _ in range(2):
        md = ns.commit("minus", {"action": "add-sort-order", "sort-order": order}, {"action": "set-default-sort-order", "sort-order-id": -1}).json["metadata"]
        assert md["default-sort-order-id"] == 1 and len(md["sort-orders"]) == 2
    for alone in (last, {"action": "set-default-spec", "spec-id": -1}, {"action": "set-default-sort-order", "sort-order-id": -1}):
        error(ns.commit("minus", alone, want=400), 400)
    md = document(ns.load("minus")["metadata-location"])
    assert min([md["current-schema-id"], md["default-spec-id"], md["default-sort-order-id"]] + [s["schema-id"] for s in md["schemas"]]
               + [s["spec-id"] for s in md["partition-specs"]] + [s["order-id"] for s in md["sort-orders"]]) == 0


def test_last_column_id(ns):
    """case BC-027: needs not be sent, and never goes down."""
    ns.create("columns", schema=struct(*[column(i, "c%d" % i) for i in range(1, 11)]))
    nine = struct(*[column(i, "c%d" % i) for i in range(1, 10)])
    current = {"action": "set-current-schema", "schema-id": -1}
    for n, (sent, want) in enumerate(((3, 10), (None, 10), (50, 50), (1, 50))):
        fields = nine["fields"][:9 - n]
        update = {"action": "add-schema", "schema": struct(*fields)}
        if sent is not None:
            update["last-column-id"] = sent
        got = ns.commit("columns", update, current).json["metadata"]
        assert got["last-column-id"] in (want, max(10, got["last-column-id"])) and got["last-column-id"] >= 10
    last = got["last-column-id"]
    got = ns.commit("columns", {"action": "add-schema", "schema": struct(*fields, column(last + 1, "new"))}, current).json["metadata"]
    assert got["last-column-id"] == last + 1
    must = {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last}
    error(ns.commit("columns", set_properties(k="v"), requirements=[must], want=409), 409, "CommitFailedException")


def test_field_ids_are_not_used_again(ns):
    """case BC-029"""
    inner = {"type": "struct", "fields": [column(4, "x", "int")]}
    ns.create("reuse", schema=struct(column(1, "id"), column(2, "name", "string"), column(3, "s", inner)))
    assert ns.meta("reuse")["last-column-id"] == 4
    current = {"action": "set-current-schema", "schema-id": -1}
    without = struct(column(1, "id"), column(3, "s", inner))
    ns.commit("reuse", {"action": "add-schema", "schema": without}, current)
    before = same_head(ns, "reuse")
    for bad in (struct(*without["fields"], column(2, "name", "int")), struct(*without["fields"], column(2, "else", "date")),
                struct(column(1, "id"), column(4, "x", "int")),
                struct(*without["fields"], column(2147483540, "r")), struct(*without["fields"], column(2147483448, "r")),
                struct(*without["fields"], column(2147483645, "r")), struct(*without["fields"], column(-5, "r")),
                struct(*without["fields"], column(1, "r"))):
        error(ns.commit("reuse", {"action": "add-schema", "schema": bad}, current, want=400), 400)
    assert same_head(ns, "reuse") == before
    # Another transform or source under an id of a partition field that was given out.
    ns.commit("reuse", {"action": "add-spec", "spec": {"spec-id": 1, "fields": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}]}})
    before = same_head(ns, "reuse")
    for transform, source in (("bucket[4]", 1), ("identity", 4)):
        bad = {"spec-id": 2, "fields": [{"name": "q", "transform": transform, "source-id": source, "field-id": 1000}]}
        error(ns.commit("reuse", {"action": "add-spec", "spec": bad}, want=400), 400)
    assert same_head(ns, "reuse") == before


def test_identifier_fields(ns):
    """case BC-049"""
    inner = {"type": "struct", "fields": [{**column(4, "x", "int"), "required": True}]}
    # Tables are created with ids of their own: those of the one level come first.
    base = [column(1, "opt"), {**column(2, "must"), "required": True}, {**column(3, "s", inner), "required": True},
            {**column(5, "d", "double"), "required": True}, {**column(6, "f", "float"), "required": True},
            {**column(7, "l", {"type": "list", "element-id": 8, "element": "int", "element-required": True}), "required": True}]
    ns.create("idents", schema=struct(*base))
    fields = ns.meta("idents")["schemas"][0]["fields"]
    ids = {f["name"]: f["id"] for f in fields}
    child, element = fields[2]["type"]["fields"][0]["id"], fields[5]["type"]["element-id"]
    current = {"action": "set-current-schema", "schema-id": -1}
    before = same_head(ns, "idents")
    for bad in (ids["opt"], ids["d"], ids["f"], ids["s"], ids["l"], element, 99, 0, -1):
        update = {"action": "add-schema", "schema": struct(*fields, identifier_field_ids=[bad])}
        error(ns.commit("idents", update, current, want=400), 400)
    for bad in (1, 3, 5, 6, 7, 8, 99, 0, -1):
        error(ns.create("never", want=400, schema=struct(*base, identifier_field_ids=[bad])), 400)
    assert same_head(ns, "idents") == before
    md = ns.commit("idents", {"action": "add-schema", "schema": struct(*fields, identifier_field_ids=[child, ids["must"]])}, current).json["metadata"]

    def now(md):
        return next(s for s in md["schemas"] if s["schema-id"] == md["current-schema-id"])
    assert sorted(now(md)["identifier-field-ids"]) == sorted([child, ids["must"]])
    grown = struct(*now(md)["fields"], column(md["last-column-id"] + 1, "more"), identifier_field_ids=now(md)["identifier-field-ids"])
    md = ns.commit("idents", {"action": "add-schema", "schema": grown}, current).json["metadata"]
    assert sorted(now(md)["identifier-field-ids"]) == sorted([child, ids["must"]])
    gone = struct(*[f for f in now(md)["fields"] if f["name"] != "must"], identifier_field_ids=now(md)["identifier-field-ids"])
    error(ns.commit("idents", {"action": "add-schema", "schema": gone}, current, want=400), 400)


def test_format_versions(ns):
    """case BC-025: the version it has is fine, a lower one is not; what V2 does not know is named."""
    ns.create("versions")
    assert ns.commit("versions", {"action": "upgrade-format-version", "format-version": 2}).json["metadata"]["format-version"] == 2
    error(ns.commit("versions", {"action": "upgrade-format-version", "format-version": 1}, want=400), 400)
    assert ns.commit("versions", {"action": "upgrade-format-version", "format-version": 3}).json["metadata"]["format-version"] == 3
    for bad in (2, 1, 0, 4, 99, -1):
        error(ns.commit("versions", {"action": "upgrade-format-version", "format-version": bad}, want=400), 400)
    for n, first in enumerate((1, 2, 3)):
        meta = ns.create("made%d" % n, **{"stage-create": True}, version=max(first, 2)).json["metadata"]
        updates = creation(meta)
        updates[1]["format-version"] = first
        got = ns.rest.post(ns.table("made%d" % n), {"requirements": [{"type": "assert-create"}], "updates": updates})
        assert got.status == 200 and got.json["metadata"]["format-version"] >= first or error(got, 400)["message"], got
    for kind in ("variant", "timestamp_ns", "timestamptz_ns", "unknown", "geometry", "geography"):
        for name, where in (("own", kind), ("l.element", {"type": "list", "element-id": 9, "element": kind, "element-required": False}),
                            ("m.value", {"type": "map", "key-id": 8, "key": "int", "value-id": 9, "value": kind, "value-required": False})):
            e = error(ns.create("never", want=400, schema=struct(column(5, name.split(".")[0], where))), 400)
            assert e["type"] in REFUSALS and name.split(".")[-1] in e["message"], e
    assert ns.rest.head(ns.table("never")).status == 404


def test_staged_tables(ns):
    """case BC-024: a staged table is nowhere until it is committed, and then once."""
    names, files = ns.names(), ns.stored()
    a = ns.create("stg", **{"stage-create": True}).json
    b = ns.create("stg", **{"stage-create": True}, schema=struct(column(1, "other", "date"))).json
    assert a.get("metadata-location") is None and b.get("metadata-location") is None
    assert ns.rest.get(ns.table("stg")).status == 404 and ns.rest.head(ns.table("stg")).status == 404
    assert ns.names() == names and ns.stored() == files
    must = [{"type": "assert-create"}]
    made = ns.commit("stg", *creation(a["metadata"]), requirements=must).json
    assert made["metadata"]["table-uuid"] == a["metadata"]["table-uuid"] and made["metadata"]["schemas"] == a["metadata"]["schemas"]
    error(ns.commit("stg", *creation(b["metadata"]), requirements=must, want=409), 409)
    assert ns.load("stg") == made
    # One that is never committed is in nobody's way.
    ns.create("stg2", **{"stage-create": True})
    ns.create("stg2")
    assert ns.names() == sorted(names + ["stg", "stg2"])


def test_created_anew_under_the_name(ns):
    """case BC-046: a commit is for the table that the client saw, not for what has its name now."""
    old = ns.create("again").json["metadata"]
    must = {"type": "assert-table-uuid", "uuid": old["table-uuid"]}
    ns.commit("again", set_properties(a="1"), requirements=[{**must, "uuid": old["table-uuid"].upper()}])
    ns.rest.want(204, "DELETE", ns.table("again"))
    new = ns.create("again").json
    assert new["metadata"]["table-uuid"] != old["table-uuid"] and new["metadata"]["location"] != old["location"]
    error(ns.commit("again", set_properties(b="1"), requirements=[must], want=409), 409, "CommitFailedException")
    for bad in ("", "x", old["table-uuid"][:-1], old["table-uuid"] + "0", "{%s}" % old["table-uuid"]):
        error(ns.commit("again", set_properties(b="1"), requirements=[{**must, "uuid": bad}], want=400), 400)
    assert ns.load("again") == new


def test_refs_only(ns):
    """case BC-039: the list of snapshots alone is cut, and who commits after such a load takes none away."""
    ns.create("cut")
    for n in range(1, 6):
        ns.commit("cut", *ns.snapshot("cut", n, n - 1 or None))
    ns.commit("cut", {"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 2},
              {"action": "set-snapshot-ref", "ref-name": "t", "type": "tag", "snapshot-id": 3})
    whole, cut = ns.load("cut"), ns.load("cut", snapshots="refs")
    assert ns.load("cut", snapshots="all") == whole
    assert [s["snapshot-id"] for s in cut["metadata"]["snapshots"]] == [2, 3, 5]
    assert [s["snapshot-id"] for s in whole["metadata"]["snapshots"]] == [1, 2, 3, 4, 5]
    for part in (whole, cut):
        part["metadata"].pop("snapshots")
    assert cut == whole
    md = ns.commit("cut", set_properties(k="v")).json["metadata"]
    assert [s["snapshot-id"] for s in md["snapshots"]] == [1, 2, 3, 4, 5] == [s["snapshot-id"] for s in ns.meta("cut")["snapshots"]]
    for bad in ("bogus", "refs,all"):
        error(ns.rest.get(ns.table("cut"), snapshots=bad), 400, "BadRequestException", "snapshots")


def test_statistics(ns):
    """case BC-040: one entry a snapshot, what is in it stays, and it goes with its snapshot."""
    ns.create("stats")
    where = ns.meta("stats")["location"]
    for n in (1, 2):
        ns.commit("stats", *ns.snapshot("stats", n, n - 1 or None))
    blob = {"type": "vendor-x", "snapshot-id": 1, "sequence-number": 1, "fields": [1], "properties": {"a": "b", "ü": ""}}

    def stats(n, path, **more):
        return {"action": "set-statistics", "snapshot-id": n, "statistics": {
            "snapshot-id": n, "statistics-path": where + path, "file-size-in-bytes": 10, "file-footer-size-in-bytes": 4, "blob-metadata": [blob], **more}}

    def partition(n, path):
        return {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": n, "statistics-path": where + path, "file-size-in-bytes": 10}}
    ns.commit("stats", stats(1, "/a"), partition(1, "/pa"))
    md = ns.commit("stats", stats(1, "/b"), partition(1, "/pb"), stats(2, "/c")).json["metadata"]
    assert [(s["snapshot-id"], s["statistics-path"]) for s in md["statistics"]] == [(1, where + "/b"), (2, where + "/c")]
    assert md["statistics"][0]["blob-metadata"] == [blob]
    assert [(s["snapshot-id"], s["statistics-path"]) for s in md["partition-statistics"]] == [(1, where + "/pb")]
    for _ in range(2):
        md = ns.commit("stats", {"action": "remove-statistics", "snapshot-id": 2}, {"action": "remove-partition-statistics", "snapshot-id": 2}).json["metadata"]
        assert [s["snapshot-id"] for s in md["statistics"]] == [1]
    md = ns.commit("stats", {"action": "remove-snapshots", "snapshot-ids": [1]}).json["metadata"]
    assert not md.get("statistics") and not md.get("partition-statistics")
    assert document(ns.load("stats")["metadata-location"]) == md


def test_summaries(ns):
    """case BC-042: an unknown operation is refused, as the specification lists four."""
    ns.create("sums")
    for summary in ({"operation": "banana"}, {}, {"added": "1"}, {"operation": None}, {"operation": "APPEND"}):
        error(ns.commit("sums", *ns.snapshot("sums", 1, summary=summary), want=400), 400)
    for n, operation in enumerate(("append", "replace", "overwrite", "delete")):
        ns.commit("sums", *ns.snapshot("sums", n + 1, n or None, summary={"operation": operation, "own": "x"}))
    assert [s["summary"]["operation"] for s in ns.meta("sums")["snapshots"]] == ["append", "replace", "overwrite", "delete"]
