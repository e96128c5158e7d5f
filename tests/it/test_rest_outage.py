"""PostgreSQL away: the catalog answers typed, in the form that tells clients whether to repeat."""

import time

import pytest

from support.openapi import Checked

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def test_without_postgres(rest, postgres):
    assert rest.post("/v1/namespaces", {"namespace": ["db"]}).status == 200
    made = rest.post("/v1/namespaces/db/tables", {"name": "t", "schema": SCHEMA})
    assert made.status == 200
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    try:
        postgres.stop()
        end = time.monotonic() + 20
        for reply in (rest.get("/v1/namespaces/db/tables/t"), rest.get("/v1/namespaces/db/tables"),
                      rest.get("/v1/namespaces"), rest.post("/v1/namespaces", {"namespace": ["late"]})):
            assert reply.status == 503 and reply.headers["Retry-After"], reply
            assert reply.error["type"] == "ServiceUnavailableException"
        # On these routes 503 would mean "may have happened"; nothing was started.
        for reply in (rest.post("/v1/namespaces/db/tables/t", change),
                      rest.post("/v1/namespaces/db/tables", {"name": "u", "schema": SCHEMA}),
                      rest.post("/v1/tables/rename", {
                          "source": {"namespace": ["db"], "name": "t"},
                          "destination": {"namespace": ["db"], "name": "v"}})):
            assert reply.status == 429 and reply.headers["Retry-After"], reply
        assert rest.get("/v1/config").status == 200
        assert time.monotonic() < end, "answers took long"
    finally:
        postgres.start()
    end = time.monotonic() + 30
    while rest.get("/v1/namespaces/db/tables/t").status != 200:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert rest.get("/v1/namespaces/db/tables/t").json == made.json
    assert rest.get("/v1/namespaces/db/tables").json["identifiers"] == [{"namespace": ["db"], "name": "t"}]
    # Reads are back before the lock is that lets this daemon write: till then it says to come again.
    done = rest.post("/v1/namespaces/db/tables/t", change)
    while done.status == 429 and time.monotonic() < end:
        time.sleep(0.1)
        done = rest.post("/v1/namespaces/db/tables/t", change)
    assert done.status == 200 and done.json["metadata"]["properties"]["a"] == "b", done
