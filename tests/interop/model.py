"""What a table must hold, computed from the operations that were acknowledged, not from the server.

A row has a unique column `id`. Row ids and sequence numbers are kept where they can be known: for a
transaction of ours from its acknowledgement (and, when nobody else writes, predicted before it); for
a statement of a foreign engine from the rules of the format: an update keeps the row's id and takes
the new snapshot's number, an insert takes fresh ids. UNKNOWN stands where a writer is free.
"""

import re

UNKNOWN = object()


class Row:
    def __init__(self, values, row_id=UNKNOWN, seq=UNKNOWN, path=None, pos=None):
        self.values, self.row_id, self.seq, self.path, self.pos = values, row_id, seq, path, pos


class Wrong(Exception):
    """An acknowledgement contradicts what the format or the protocol promises."""


class Counters:
    """What all refs of a table share."""

    def __init__(self):
        self.seq = 0  # last sequence number; UNKNOWN after foreign commits
        self.next_row_id = 0
        self.ranges = []  # row-id ranges given out: (first, count, what)


class Table:
    """What one ref of a table must hold. beside: the model of another ref, from whose state this one goes on."""

    def __init__(self, name, columns=("id", "region", "name", "score"), lineage=True, ref="main", beside=None):
        self.name, self.columns, self.lineage, self.ref = name, columns, lineage, ref
        self.rows = {k: Row(r.values, r.row_id, r.seq, r.path, r.pos) for k, r in beside.rows.items()} if beside else {}
        self.counters = beside.counters if beside else Counters()
        self.snapshot = None  # of a ref that is not main: its head, for readers that know snapshots only
        self.in_bulk = False  # read together with others
        self.ours = ()  # manifests and snapshot ids for which no foreign writer's findings are allowed
        self.writers = []  # who committed, for the report

    @property
    def seq(self):
        return self.counters.seq

    @seq.setter
    def seq(self, value):
        self.counters.seq = value

    @property
    def next_row_id(self):
        return self.counters.next_row_id

    @next_row_id.setter
    def next_row_id(self, value):
        self.counters.next_row_id = value

    @property
    def ranges(self):
        return self.counters.ranges

    @property
    def title(self):
        return self.name if self.ref == "main" else "%s@%s" % (self.name, self.ref)

    def is_ours(self, rule, thing, detail):
        """Whether a finding is about something that frazil wrote."""
        named = re.match(r"snapshot (\d+) ", detail)
        return int(named.group(1)) in self.ours if named else thing in self.ours

    # ---- what frazil acknowledged
    def applied(self, outcome, alone=True):
        """Every commit of ours passes here. alone: nobody else writes, so the number can be predicted."""
        if outcome.state != "COMMITTED":
            raise Wrong("%s: state %s" % (self.name, outcome.state))
        if alone and self.seq is not UNKNOWN:
            if outcome.sequence_number != self.seq + 1:
                raise Wrong("%s: sequence number %s after %s" % (self.name, outcome.sequence_number, self.seq))
        if self.seq is UNKNOWN or outcome.sequence_number > self.seq:
            self.seq = outcome.sequence_number
        if "frazil" not in self.writers:
            self.writers.append("frazil")

    def inserted(self, outcome, files, rows, carried=None, alone=True, version=3):
        """files: [(path, first_row_id, count)] as acknowledged, read: rows of each by position, which must be
        `rows` in some order. carried: {id: row_id} for rows that keep an id of their own (an update)."""
        carried = carried or {}
        seen = []
        for path, first, count, held in files:
            if version < 3:
                if first is not None or count != len(held):
                    raise Wrong("%s: %s: first row id %s below version 3, %s rows" % (self.name, path, first, count))
                seen += held
                self.rows.update({v["id"]: Row(v, UNKNOWN, outcome.sequence_number, path, k) for k, v in enumerate(held)})
                continue
            if first is None or count != len(held):
                raise Wrong("%s: %s: first row id %s, %s rows acknowledged, %d in the file" % (
                    self.name, path, first, count, len(held)))
            for start, n, what in self.ranges:
                if first < start + n and start < first + count:
                    raise Wrong("%s: row ids %d+%d of %s overlap those of %s" % (self.name, first, count, path, what))
            self.ranges.append((first, count, path))
            if alone and self.next_row_id is not UNKNOWN and first < self.next_row_id:
                raise Wrong("%s: row ids from %d, %d is the next free" % (self.name, first, self.next_row_id))
            self.next_row_id = first + count if self.next_row_id is UNKNOWN else max(self.next_row_id, first + count)
            for pos, values in enumerate(held):
                seen.append(values)
                key = values["id"]
                self.rows[key] = Row(values, carried.get(key, first + pos), outcome.sequence_number, path, pos)
        key = lambda r: r["id"]
        if sorted(seen, key=key) != sorted(rows, key=key):
            raise Wrong("%s: the files hold other rows than were given" % self.name)

    def deleted(self, path, positions):
        gone = set(positions)
        for key in [k for k, r in self.rows.items() if r.path == path and r.pos in gone]:
            del self.rows[key]

    def where(self, test):
        """{path: ([pos], [Row])} of the live rows that pass."""
        out = {}
        for r in sorted(self.rows.values(), key=lambda r: (str(r.path), r.pos or 0)):
            if test(r.values):
                at = out.setdefault(r.path, ([], []))
                at[0].append(r.pos)
                at[1].append(r)
        return out

    # ---- what a foreign engine's statement means
    def foreign(self, writer):
        self.seq = self.next_row_id = UNKNOWN
        if writer not in self.writers:
            self.writers.append(writer)

    def sql_insert(self, writer, rows):
        self.foreign(writer)
        for values in rows:
            if values["id"] in self.rows:
                raise Wrong("the test inserts %s twice" % values["id"])
            self.rows[values["id"]] = Row(dict(values))

    def sql_delete(self, writer, test):
        self.foreign(writer)
        for key in [k for k, r in self.rows.items() if test(r.values)]:
            del self.rows[key]

    def sql_update(self, writer, test, change):
        """The row keeps its id; its number becomes that of a later snapshot."""
        self.foreign(writer)
        for r in self.rows.values():
            if test(r.values):
                r.values = {**r.values, **change(r.values)}
                r.seq, r.path, r.pos = UNKNOWN, None, None

    def numbered(self, raw):
        """The first commit after an upgrade gave row ids to the files of before: raw as in located(). Each file has one
        range, all of them lie together below the ids that were given out since."""
        wrong = self.differences(raw, True, len(raw) + 5)
        if wrong:
            raise Wrong("%s: %s" % (self.name, wrong[0]))
        at = {}
        for x in raw:
            r = self.rows[x["id"]]
            if (r.path, r.pos) != (x["path"], x["pos"]):
                raise Wrong("%s: row %s lies elsewhere" % (self.name, x["id"]))
            if r.row_id is UNKNOWN:
                at.setdefault(r.path, set()).add(x["_row_id"] - x["pos"])
                r.row_id = x["_row_id"]
        for path, firsts in at.items():
            if len(firsts) != 1:
                raise Wrong("%s: %s has row ids from %s" % (self.name, path, sorted(firsts)))
            n = 1 + max(r.pos for r in self.rows.values() if r.path == path)
            first = firsts.pop()
            for start, m, what in self.ranges:
                if first < start + m and start < first + n:
                    raise Wrong("%s: row ids %d+%d of %s overlap those of %s" % (self.name, first, n, path, what))
            self.ranges.append((first, n, path))

    def located(self, raw):
        """Takes over where rows lie, and the ids that were unknown, from an independent raw reader (not the
        server): [{"path", "pos", "_row_id", "_last_updated_sequence_number", columns}]. Known ids must agree."""
        wrong = self.differences(raw, True, len(raw) + 5)
        if wrong:
            raise Wrong("%s: %s" % (self.name, wrong[0]))
        for x in raw:
            r = self.rows[x["id"]]
            r.path, r.pos = x["path"], x["pos"]
            r.row_id, r.seq = x["_row_id"], x["_last_updated_sequence_number"]
        self.seq = UNKNOWN
        self.next_row_id = UNKNOWN

    # ---- judgement
    def differences(self, got, lineage, limit=5):
        """Text lines; empty when `got` (rows as engines give them) is this table."""
        out, seen, ids = [], set(), {}
        for g in got:
            key = g.get("id")
            if key in seen:
                out.append("row %s twice" % key)
                continue
            seen.add(key)
            r = self.rows.get(key)
            if r is None:
                out.append("row %s should not be there" % key)
                continue
            have = {c: g.get(c) for c in self.columns}
            want = {c: r.values.get(c) for c in self.columns}
            if have != want:
                out.append("row %s is %s, should be %s" % (key, have, want))
            if lineage:
                n, s = g.get("_row_id"), g.get("_last_updated_sequence_number")
                if n is None or s is None:
                    out.append("row %s: row id %s, sequence number %s" % (key, n, s))
                elif n in ids:
                    out.append("rows %s and %s have row id %s" % (key, ids[n], n))
                ids[n] = key
                if r.row_id is not UNKNOWN and n != r.row_id:
                    out.append("row %s has row id %s, should have %s" % (key, n, r.row_id))
                if r.seq is not UNKNOWN and s != r.seq:
                    out.append("row %s has sequence number %s, should have %s" % (key, s, r.seq))
        for key in self.rows:
            if key not in seen:
                out.append("row %s is missing" % key)
        return out if len(out) <= limit else out[:limit] + ["and %d more" % (len(out) - limit)]
