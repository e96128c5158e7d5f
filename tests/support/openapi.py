"""A REST client that holds every answer of the catalog against the REST specification's schemas."""

import json
import os
import re

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from support.postgres import ROOT
from support.rest import Rest

NS = r"/v1/namespaces/[^/]+"
T, V = NS + r"/tables/[^/]+", NS + r"/views/[^/]+"
# Answers of 200 by method and path; None: this route has no body.
SCHEMAS = [
    ("GET", r"/v1/config", "CatalogConfig"),
    ("GET", r"/v1/namespaces", "ListNamespacesResponse"),
    ("POST", r"/v1/namespaces", "CreateNamespaceResponse"),
    ("GET", NS, "GetNamespaceResponse"),
    ("POST", NS + "/properties", "UpdateNamespacePropertiesResponse"),
    ("GET", NS + "/(tables|views)", "ListTablesResponse"),
    ("POST", NS + "/(tables|register)", "LoadTableResult"),
    ("GET", T, "LoadTableResult"),
    ("POST", T, "CommitTableResponse"),
    ("POST", T + "/unregister", "UnregisterTableResult"),
    ("GET", NS + "/functions", "ListFunctionsResponse"),
    ("POST", NS + "/(views|register-view)", "LoadViewResult"),
    ("GET", V, "LoadViewResult"),
    ("POST", V, "LoadViewResult"),
]


def strict(schema):
    """As JSON Schema 2020-12: "nullable" is a word of the older OpenAPI."""
    if isinstance(schema, list):
        return [strict(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: strict(v) for k, v in schema.items()}
    if out.pop("nullable", None) is True:
        out["type"] = [out["type"], "null"]
    return out


def validators():
    with open(os.path.join(ROOT, "tests/it/openapi/schemas.json"), encoding="utf-8") as f:
        document = strict(json.load(f))
    # The specification forgets the table without a snapshot, for which the reference
    # implementation writes null.
    document["components"]["schemas"]["TableMetadata"]["properties"]["current-snapshot-id"]["type"] = [
        "integer", "null"]
    registry = Registry().with_resource("spec", Resource(contents=document, specification=DRAFT202012))
    return lambda name: jsonschema.Draft202012Validator(
        {"$ref": "spec#/components/schemas/" + name}, registry=registry)


VALIDATOR = validators()


class Checked(Rest):
    def raw(self, method, target, body=None, headers=None):
        got = super().raw(method, target, body, headers)
        path = target.split("?")[0]
        if method == "HEAD" or got.status in (204, 304):
            assert got.body == b"", got
        elif got.status >= 400:
            assert got.headers["Content-Type"] == "application/json", got
            VALIDATOR("IcebergErrorResponse").validate(got.json)
            assert got.error["code"] == got.status, got
        else:
            assert got.status == 200, "Java takes no other success: %r" % got
            assert got.headers["Content-Type"] == "application/json", got
            name = [s for m, p, s in SCHEMAS if m == method and re.fullmatch(p, path)]
            assert name, "no schema is known for %s %s" % (method, path)
            VALIDATOR(name[0]).validate(got.json)
        assert got.headers["X-Request-Id"]
        return got
