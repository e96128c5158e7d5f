"""The same work with index.max-bytes small and large gives the same outcomes, rows and row ids."""

import os

import pytest

from frazil import errors, parquet
from support import audit
from support.daemon import Daemon
from support.lab import Lab

BUDGETS = {"large": 1 << 30, "1 MiB": 1 << 20, "64 KiB": 1 << 16}
GROUPS, COPIES = 2, 200


def counters(daemon):
    text = daemon.admin.get("/metrics").body.decode()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")}


class Work:
    """One workload; `told` is what the daemon answered, step by step, without names that are drawn."""

    def __init__(self, lab):
        self.lab, self.told = lab, []
        self.t = lab.table("work", audited=False, **{"commit.manifest.min-count-to-merge": "5"})

    def tell(self, step, *args, **options):
        try:
            got = step(*args, **options)
        except errors.Error as e:
            self.told.append(e.name)
            return None
        path, o = got if isinstance(got, tuple) else (args[0], got)
        self.told.append((o.rows_deleted, [d["deleted"] for d in o.deletes], [f["first_row_id"] for f in o.files]))
        return path, o.snapshot_id

    def many(self):
        """One large manifest: copies of one file under names of their own."""
        first = self.t.files(3)[0]
        source, made = parquet.local_path(first["path"]), []
        for i in range(COPIES):
            copy = "%s-%d.parquet" % (source[:-8], i)
            os.link(source, copy)
            made.append({**first, "path": first["path"].replace(source, copy)})
        with self.lab.client() as c:
            o = c.commit_once(self.t.name, kind="APPEND", data_files=made, info=self.t.info)
        for m in made:
            self.t.rows[m["path"]] = list(first.ids)
        return [m["path"] for m in made], o

    def run(self):
        t = self.t
        paths = []
        for _ in range(GROUPS):
            got, read = self.tell(self.many)
            paths.append(got)
        small = [self.tell(t.append, 6)[0] for _ in range(6)]
        old = read = t.head()
        for turn in range(2):
            for group in paths:
                self.tell(t.delete, group[turn], [turn], read)
                self.tell(t.delete, group[turn + 10], [0, 1, 2], read)  # the whole file goes
            self.tell(t.change, small[turn], [1, 3], read)
            self.tell(t.delete, small[turn], [1], old, provenance="MOVED")  # changed meanwhile
            self.tell(t.delete, small[turn], [0, 5], t.head())
            read = t.head()
        with self.lab.client() as c:
            with pytest.raises(errors.Error) as e:
                c.commit_once(t.name, kind="APPEND", data_files=[{**t.files(1)[0], "path": paths[1][50]}])
            self.told.append(e.value.name)
            with pytest.raises(errors.Error) as e:
                c.commit_once(t.name, kind="DELETE", deletes=[(paths[1][10], [0], None)], read_snapshot_id=t.head())
            self.told.append(e.value.name)
        for _ in range(6):
            self.tell(t.append, 2)
        self.before = counters(self.lab.daemon)
        self.lab.daemon.restart(kill=True)
        self.tell(t.delete, paths[1][100], [2], t.head())
        self.tell(t.append, 4)
        # Read by something that shares nothing with the daemon.
        found = sorted((r["id"], r["_row_id"]) for r in audit.rows(self.lab.daemon, t.name))
        assert [i for i, _ in found] == t.ids()
        return self.told, found


def test_same_answers(tmp_path, postgres):
    done = {}
    for name, budget in BUDGETS.items():
        daemon = Daemon(tmp_path / name.replace(" ", ""), postgres.database(), {"index.max-bytes": budget})
        try:
            work = Work(Lab(daemon, "budget"))
            done[name] = work.run()
            for seen in work.before, counters(daemon):
                assert seen["frazil_index_held_bytes"] <= budget
                if name == "large":
                    assert seen["frazil_index_dropped_total"] == 0
                    assert seen["frazil_index_files"] > GROUPS * COPIES / 2
            assert (work.before["frazil_index_dropped_total"] > 0) == (name != "large")
        finally:
            daemon.close()
    assert len(done["large"][0]) > 25 and {"ROW_MOVED", "WRITE_WRITE"} & set(map(str, done["large"][0]))
    for name, got in done.items():
        assert got == done["large"], name
