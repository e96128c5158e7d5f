#!/usr/bin/env python3
"""embed_avsc.py FILE.avsc...: the published schemas of messages as rows FZ_AVSC(type, version, "Name", "Reply",
"json"), ordered by type, for the C client. Documentation is left out."""

import json
import sys


def bare(node):
    """The schema without what only people read."""
    if isinstance(node, dict):
        return {k: bare(v) for k, v in node.items() if k != "doc" and not k.startswith("frazil-")}
    if isinstance(node, list):
        return [bare(v) for v in node]
    return node


def main():
    rows = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            schema = json.load(f)
        if "frazil-type" not in schema:  # a part of messages, not one itself
            continue
        text = json.dumps(json.dumps(bare(schema), separators=(",", ":")))
        rows.append((schema["frazil-type"], 'FZ_AVSC(%d, %d, "%s", "%s", %s)' % (
            schema["frazil-type"], schema["frazil-version"], schema["name"],
            schema.get("frazil-reply", ""), text)))
    print("\n".join(row for _, row in sorted(rows)))


if __name__ == "__main__":
    main()
