"""Namespaces over REST: every route, every refusal."""

import pytest

from support.openapi import Checked


@pytest.fixture
def rest(daemon):
    return Checked(daemon.uri)


def error(reply, code, kind, text=None):
    """The reply is an error of the specification's model."""
    assert reply.status == code, reply.body
    e = reply.json["error"]
    assert e["code"] == code and e["type"] == kind, e
    if text is not None:
        assert text in e["message"], e
    return e


def test_life(rest):
    r = rest.post("/v1/namespaces", {"namespace": ["life"], "properties": {"owner": "Hank", "a": "1"}})
    assert r.status == 200
    assert r.json == {"namespace": ["life"], "properties": {"owner": "Hank", "a": "1"}}
    error(rest.post("/v1/namespaces", {"namespace": ["life"]}), 409, "AlreadyExistsException",
          "Namespace already exists: life")
    assert rest.get("/v1/namespaces/life").json == {
        "namespace": ["life"], "properties": {"owner": "Hank", "a": "1"}}
    assert rest.head("/v1/namespaces/life").status == 204
    r = rest.post("/v1/namespaces/life/properties",
                  {"removals": ["a", "nope"], "updates": {"owner": "Raoul", "b": "2"}})
    assert r.status == 200
    got = r.json
    assert sorted(got["updated"]) == ["b", "owner"]
    assert got["removed"] == ["a"] and got["missing"] == ["nope"]
    assert rest.get("/v1/namespaces/life").json["properties"] == {"owner": "Raoul", "b": "2"}
    assert rest.delete("/v1/namespaces/life").status == 204
    error(rest.get("/v1/namespaces/life"), 404, "NoSuchNamespaceException",
          "Namespace does not exist: life")
    error(rest.delete("/v1/namespaces/life"), 404, "NoSuchNamespaceException")
    assert rest.head("/v1/namespaces/life").status == 404


def test_missing_parts(rest):
    error(rest.post("/v1/namespaces", {"namespace": ["nobody", "x"]}), 404, "NoSuchNamespaceException")
    error(rest.get("/v1/namespaces?parent=nobody"), 404, "NoSuchNamespaceException",
          "Namespace does not exist: nobody")
    error(rest.post("/v1/namespaces/nobody/properties", {"updates": {"a": "b"}}), 404,
          "NoSuchNamespaceException")


@pytest.mark.parametrize("body", [
    {}, {"namespace": []}, {"namespace": "a"}, {"namespace": [""]}, {"namespace": ["a", 1]},
    {"namespace": ["a"], "properties": {"k": 1}}, {"namespace": ["a\u001fb"]}, [], "x",
    {"namespace": ["x" * 257]}, {"namespace": ["n"] * 33}])
def test_bad_create(rest, body):
    error(rest.post("/v1/namespaces", body), 400, "BadRequestException")


def test_key_twice(rest):
    rest.post("/v1/namespaces", {"namespace": ["twice"]})
    error(rest.post("/v1/namespaces/twice/properties", {"removals": ["a"], "updates": {"a": "b"}}),
          422, "UnprocessableEntityException")


def test_levels_and_children(rest):
    for levels in (["top"], ["top", "b"], ["top", "a"], ["top", "a", "deep"], ["topper"]):
        assert rest.post("/v1/namespaces", {"namespace": levels}).status == 200
    assert rest.get("/v1/namespaces?parent=top").json == {
        "namespaces": [["top", "a"], ["top", "b"]], "next-page-token": None}
    assert rest.get("/v1/namespaces?parent=top%1Fa").json["namespaces"] == [["top", "a", "deep"]]
    all_top = rest.get("/v1/namespaces").json["namespaces"]
    assert ["top"] in all_top and ["topper"] in all_top and all(len(n) == 1 for n in all_top)
    assert rest.get("/v1/namespaces?parent=").json["namespaces"] == all_top
    assert rest.get("/v1/namespaces/top%1Fa%1Fdeep").status == 200
    error(rest.delete("/v1/namespaces/top%1Fa"), 409, "NamespaceNotEmptyException", "is not empty")
    assert rest.delete("/v1/namespaces/top%1Fa%1Fdeep").status == 204
    assert rest.delete("/v1/namespaces/top%1Fa").status == 204


def test_pages(rest):
    assert rest.post("/v1/namespaces", {"namespace": ["pages"]}).status == 200
    names = ["n%02d" % i for i in range(7)]
    for n in names:
        assert rest.post("/v1/namespaces", {"namespace": ["pages", n]}).status == 200
    whole = rest.get("/v1/namespaces?parent=pages&pageSize=3").json
    assert len(whole["namespaces"]) == 7 and whole["next-page-token"] is None
    got, token, turns = [], "", 0
    while token is not None:
        page = rest.get("/v1/namespaces?parent=pages&pageSize=3&pageToken=" + token).json
        got += [n[1] for n in page["namespaces"]]
        token = page["next-page-token"]
        turns += 1
        if turns == 1:  # what comes and goes in front of the token changes nothing behind it
            rest.delete("/v1/namespaces/pages%1Fn00")
            rest.post("/v1/namespaces", {"namespace": ["pages", "a"]})
    assert got == names and turns == 3
    error(rest.get("/v1/namespaces?pageToken=junk"), 400, "BadRequestException", "pageToken")
    error(rest.get("/v1/namespaces?pageToken=&pageSize=0"), 400, "BadRequestException", "pageSize")


@pytest.mark.parametrize("name,raw", [
    ("a b", "a+b"), ("a b2", "a%20b2"), ("a/b", "a%2Fb"), ("a%2Fb", "a%252Fb"), ("a+b", "a%2Bb"),
    ("äöü€", "%C3%A4%C3%B6%C3%BC%E2%82%AC"), ("a.b", "a.b"), ("..", "%2E%2E"), ("'\"\\;--", "%27%22%5C%3B--")])
def test_names(rest, name, raw):
    assert rest.post("/v1/namespaces", {"namespace": [name]}).status == 200
    assert rest.get("/v1/namespaces/" + raw).json["namespace"] == [name]
    assert [name] in rest.get("/v1/namespaces").json["namespaces"]
    assert rest.delete("/v1/namespaces/" + raw).status == 204


def test_very_many_properties(rest):
    """All but a few of very many keys go at once: that is a matter of seconds, for whoever asks and for all who wait behind."""
    rest.want(200, "POST", "/v1/namespaces", {"namespace": ["keys"]})
    at = "/v1/namespaces/keys"
    rest.want(200, "POST", at + "/properties", {"updates": {"k%d" % i: "v" * 20 for i in range(150000)}, "removals": []})
    got = rest.want(200, "POST", at + "/properties", {"updates": {"k3": "w", "new": ""}, "removals": ["k%d" % i for i in range(10, 150002)]}).json
    assert sorted(got["updated"]) == ["k3", "new"] and sorted(got["missing"]) == ["k150000", "k150001"] and len(got["removed"]) == 149990
    assert rest.want(200, "GET", at).json["properties"] == {**{"k%d" % i: "v" * 20 for i in range(10)}, "k3": "w", "new": ""}
