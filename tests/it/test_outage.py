"""The daemon killed at any moment, drained, and PostgreSQL gone underneath: nothing acknowledged is lost."""

import random
import signal
import time

from support import crowd


def test_killed_at_random(daemon):
    chance = random.Random(20260101)
    team = crowd.Crowd(daemon, "killed")
    try:
        for _ in range(5):
            team.wait_for(10)
            time.sleep(chance.random() * 0.2)
            daemon.kill()
            daemon.start()
        team.wait_for(10)
    finally:
        team.stopping.set()
    team.end()


def test_drained_while_workers_commit(daemon):
    team = crowd.Crowd(daemon, "drained")
    try:
        for _ in range(2):
            team.wait_for(10)
            daemon.stop()
            daemon.start()
        team.wait_for(10)
    finally:
        team.stopping.set()
    team.end()


def test_postgres_restarts_underneath(daemon, postgres):
    team = crowd.Crowd(daemon, "pg")
    try:
        for crash in (False, True):
            team.wait_for(10)
            postgres.crash() if crash else postgres.stop()
            # Reads of the catalog fail typed, or wait; they never hang for ever or tell a wrong state.
            got = daemon.rest.get("/v1/namespaces/crowd/tables")
            assert got.status in (200, 503), got
            assert daemon.admin.get("/healthz").status == 200
            time.sleep(0.5)
            postgres.start()
            team.wait_for(10)
    finally:
        team.stopping.set()
    team.end()
    assert daemon.process.poll() is None


def test_term_ends_in_order(make_daemon):
    d = make_daemon()
    crowd.create(d, "term")
    d.process.send_signal(signal.SIGTERM)
    assert d.wait(30) == 0
    d.judge()
