"""The model must see each kind of wrong answer, or the suite proves nothing. run: python3 test_model.py"""

import copy
import os
import sys
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import Table, Wrong  # noqa: E402


def outcome(seq, state="COMMITTED"):
    return types.SimpleNamespace(state=state, sequence_number=seq)


def rows(*ids):
    return [{"id": i, "region": "eu", "name": "n%d" % i, "score": i / 4} for i in ids]


class Model(unittest.TestCase):
    def setUp(self):
        self.t = Table("t")
        self.t.applied(outcome(1))
        self.t.inserted(outcome(1), [("f", 0, 3, rows(1, 2, 3))], rows(1, 2, 3))
        self.good = [{**r, "_row_id": k, "_last_updated_sequence_number": 1} for k, r in enumerate(rows(1, 2, 3))]

    def test_equal(self):
        self.assertEqual(self.t.differences(self.good, True), [])
        self.assertEqual(self.t.differences(list(reversed(self.good)), True), [])

    def test_each_difference_is_seen(self):
        for change in (
                lambda g: g.pop(), lambda g: g.append(dict(g[0])), lambda g: g.append({**g[0], "id": 9}),
                lambda g: g[1].update(name="x"), lambda g: g[1].update(score=None), lambda g: g[1].update(_row_id=7),
                lambda g: g[1].update(_row_id=0), lambda g: g[1].update(_row_id=None),
                lambda g: g[1].update(_last_updated_sequence_number=2), lambda g: g[1].pop("_last_updated_sequence_number")):
            got = [dict(r) for r in self.good]
            change(got)
            self.assertNotEqual(self.t.differences(got, True), [])

    def test_deletes(self):
        self.t.deleted("f", [1])
        self.assertEqual(self.t.differences([self.good[0], self.good[2]], True), [])
        self.assertNotEqual(self.t.differences(self.good, True), [])
        self.assertEqual({p: v[0] for p, v in self.t.where(lambda r: True).items()}, {"f": [0, 2]})

    def test_update_keeps_the_id(self):
        self.t.deleted("f", [0])
        self.t.applied(outcome(2))
        new = [{**rows(1)[0], "name": "u"}]
        self.t.inserted(outcome(2), [("g", 3, 1, new)], new, {1: 0})
        got = [{**new[0], "_row_id": 0, "_last_updated_sequence_number": 2}] + self.good[1:]
        self.assertEqual(self.t.differences(got, True), [])

    def test_wrong_acknowledgements(self):
        for bad in (
                lambda: self.t.applied(outcome(2, "OPEN")), lambda: self.t.applied(outcome(3)),
                lambda: self.t.inserted(outcome(2), [("g", 2, 1, rows(4))], rows(4)),
                lambda: self.t.inserted(outcome(2), [("g", None, 1, rows(4))], rows(4)),
                lambda: self.t.inserted(outcome(2), [("g", 3, 2, rows(4))], rows(4)),
                lambda: self.t.inserted(outcome(2), [("g", 3, 1, rows(4))], rows(5))):
            self.setUp()
            self.assertRaises(Wrong, bad)

    def test_branches_share_the_counters(self):
        side = Table("t", ref="side", beside=self.t)
        side.deleted("f", [0])
        side.applied(outcome(2))
        side.inserted(outcome(2), [("g", 3, 1, rows(4))], rows(4))
        self.assertEqual(self.t.differences(self.good, True), [])
        self.assertEqual(side.differences(self.good[1:] + [{**rows(4)[0], "_row_id": 3, "_last_updated_sequence_number": 2}],
                                          True), [])
        self.t.applied(outcome(3))
        self.assertRaises(Wrong, lambda: self.t.inserted(outcome(3), [("h", 3, 1, rows(5))], rows(5)))

    def test_upgraded(self):
        t = Table("old")
        t.applied(outcome(1))
        self.assertRaises(Wrong, lambda: t.inserted(outcome(1), [("f", 0, 3, rows(1, 2, 3))], rows(1, 2, 3), version=2))
        t.inserted(outcome(1), [("f", None, 3, rows(1, 2, 3))], rows(1, 2, 3), version=2)
        raw = [{**g, "path": "f", "pos": k} for k, g in enumerate(self.good)]
        for change in (lambda g: g[1].update(_row_id=9), lambda g: g[1].update(path="g"), lambda g: g[0].update(_row_id=None),
                       lambda g: g[0].update(_last_updated_sequence_number=2)):
            got = [dict(r) for r in raw]
            change(got)
            self.assertRaises(Wrong, lambda: copy.deepcopy(t).numbered(got))
        t.numbered(raw)
        self.assertEqual([r.row_id for r in t.rows.values()], [0, 1, 2])
        t.applied(outcome(2))
        self.assertRaises(Wrong, lambda: t.inserted(outcome(2), [("g", 2, 1, rows(4))], rows(4)))

    def test_foreign_statements(self):
        self.t.sql_update("spark", lambda r: r["id"] == 2, lambda r: {"name": "z"})
        self.t.sql_insert("spark", rows(8))
        self.t.sql_delete("spark", lambda r: r["id"] == 1)
        got = [{**rows(2)[0], "name": "z", "_row_id": 1, "_last_updated_sequence_number": 5}, self.good[2],
               {**rows(8)[0], "_row_id": 90, "_last_updated_sequence_number": 5}]
        self.assertEqual(self.t.differences(got, True), [])
        got[0]["_row_id"] = 91  # an update must not move the row to a new id
        self.assertNotEqual(self.t.differences(got, True), [])


if __name__ == "__main__":
    unittest.main()
