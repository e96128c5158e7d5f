#!/usr/bin/env python3
"""make.py OPENAPI.YAML > rest.json: the routes that the daemon serves, of Iceberg's REST specification
(open-api/rest-catalog-open-api.yaml, Apache License 2.0), with these differences:

- no prefix: the default warehouse has none;
- no security: the daemon has no authentication as yet;
- every error is wrapped. The specification declares the bare model for 406 and most errors of views, while its
  examples and every client expect the wrapped one;
- a namespace whose parent is missing is 404.
"""

import json
import sys

import yaml

NOT_SERVED = ("/plan", "/tasks", "/sign", "/credentials", "/oauth/")
WRAPPED = {"$ref": "#/components/schemas/IcebergErrorResponse"}


def plain(x, names=False):
    if isinstance(x, dict):
        return {k: plain(v, k in ("properties", "schemas")) for k, v in x.items() if names or k not in ("description", "summary", "externalDocs")}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return x


def wrap(responses):
    for status, answer in responses.items():
        for body in answer.get("content", {}).values():
            if not str(status).startswith("2") and body.get("schema", {}).get("$ref", "").endswith("/ErrorModel"):
                body["schema"] = WRAPPED
                body.pop("examples", None)
                body.pop("example", None)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        document = yaml.safe_load(f)
    document.pop("security", None)
    document["servers"] = [{"url": "http://127.0.0.1:8181"}]
    paths = {}
    for path, item in document["paths"].items():
        if any(word in path for word in NOT_SERVED):
            continue
        item["parameters"] = [p for p in item.get("parameters", []) if not p.get("$ref", "").endswith("/prefix")]
        for op in item.values():
            if isinstance(op, dict):
                op.pop("security", None)
                wrap(op["responses"])
        paths[path.replace("{prefix}/", "")] = item
    wrap(document["components"]["responses"])
    paths["/v1/namespaces"]["post"]["responses"]["404"] = {"description": "", "content": {"application/json": {"schema": WRAPPED}}}
    document["paths"] = paths
    out = plain(document)
    every = [out["components"]["responses"]] + [op["responses"] for item in out["paths"].values()
                                                    for op in item.values() if "responses" in op]
    for answer in (a for answers in every for a in answers.values() if "$ref" not in a):
        answer["description"] = ""
    json.dump(out, sys.stdout, indent=1)
    print()


main()
