"""Fixtures of the process tests: one PostgreSQL cluster a run, one database and one daemon a module."""

import pytest

from support.daemon import Daemon
from support.postgres import Postgres


@pytest.fixture(scope="session")
def postgres():
    cluster = Postgres()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="module")
def conninfo(postgres):
    """The connection string of a new, empty database."""
    return postgres.database()


@pytest.fixture(scope="module")
def settings():
    """Settings of the module's daemon; a module overrides this fixture to add its own."""
    return {}


@pytest.fixture(scope="module")
def daemon(conninfo, tmp_path_factory, settings):
    d = Daemon(tmp_path_factory.mktemp("frazild"), conninfo, settings)
    yield d
    d.close()


@pytest.fixture(autouse=True)
def judged(request):
    """After each test that used the module's daemon: still alive, and no report in its log."""
    yield
    if "daemon" in request.fixturenames:
        d = request.getfixturevalue("daemon")
        d.judge()
        assert d.process is None or d.alive, d.log()[-6000:]


@pytest.fixture
def rest(daemon):
    return daemon.rest


@pytest.fixture
def make_daemon(postgres, tmp_path_factory):
    """make_daemon(conninfo=None, **Daemon's arguments): further daemons, closed at the end of the test."""
    made = []

    def make(conninfo=None, **kw):
        d = Daemon(tmp_path_factory.mktemp("frazild"), conninfo or postgres.database(), **kw)
        made.append(d)
        return d

    yield make
    for d in made:
        d.close()
