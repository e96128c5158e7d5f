"""Wrong clocks: timestamps in metadata never step back, whoever commits, and decide nothing."""

import json

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

import frazil
from support import audit, clocks, foreign
from support.lab import refused


def test_daemons_and_servers_ten_minutes_off(make_daemon, postgres):
    conninfo = postgres.database()
    daemon = make_daemon(conninfo)
    lab = clocks.history(daemon, conninfo)
    t = lab.tables[0]
    paths = clocks.versions(daemon, t)
    assert len(paths) > 25
    # The server's clock was ten minutes ahead for a while; nothing is dated before that any more.
    assert clocks.in_order(paths) >= clocks.now_ms() + (clocks.OFF_S - 120) * 1000
    for p in paths:
        with open(foreign.local(p)) as f:
            TableMetadataUtil.parse_obj(json.load(f))
    lab.check()
    audit.clean(daemon, t.name)


def test_snapshots_of_clients_with_wrong_clocks(make_daemon, postgres):
    """More than a minute ahead of the server: refused. Behind: as far as every reader takes it."""
    conninfo = postgres.database()
    daemon = make_daemon(conninfo)
    lab = clocks.Lab(daemon, "clocks")
    t = lab.table("client", audited=False)
    t.append(3)
    w = foreign.Writer(t)
    for off, status in ((90000, 400), (30000, 200), (-90000, 400), (0, 200)):
        w.commit("append", t.files(0) or [], want=status, timestamp_ms=clocks.now_ms() + off)
    t.append(2)
    clocks.in_order(clocks.versions(daemon, t), 60000)
    lab.check()


def test_ids_from_another_time(make_daemon, postgres):
    """The time in a transaction's id is judged by PostgreSQL's clock, not by the daemon's."""
    conninfo = postgres.database()
    daemon = make_daemon(conninfo, env=clocks.environment(-clocks.OFF_S))
    lab = clocks.Lab(daemon, "clocks")
    t = lab.table("ids")
    with lab.client() as c:
        for ahead, name in ((540, None), (660, "CLOCK_SKEW")):
            call = dict(data_files=t.files(1), txn_id=frazil.uuid7(clocks.now_ms() + ahead * 1000), info=t.info)
            if name:
                with refused(name):
                    c.commit_once(t.name, **call)
            else:
                c.commit_once(t.name, **call)
                t.added(*call["data_files"])
    lab.check()
