#!/usr/bin/env python3
"""Prints the numbered migrations as one C table. Usage: embed_sql.py FILE.sql... > header"""
import os
import re
import sys


def literal(text):
    out = []
    for line in text.split("\n"):
        line = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
        out.append('"%s\\n"' % line)
    return "\n".join(out)


def main():
    files = sorted(sys.argv[1:])
    numbers = []
    print("/* Made from store/pg/migrations by scripts/embed_sql.py. */")
    print("static const struct migration migrations[] = {")
    for path in files:
        m = re.match(r"(\d{4})_[a-z0-9_]+\.sql$", os.path.basename(path))
        if not m:
            sys.exit("embed_sql: %s is not NNNN_name.sql" % path)
        numbers.append(int(m.group(1)))
        with open(path, encoding="utf-8") as f:
            print('{%d, "%s",\n%s},' % (numbers[-1], os.path.basename(path), literal(f.read())))
    print("};")
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit("embed_sql: migrations are not numbered without gaps from 1: %s" % numbers)


if __name__ == "__main__":
    main()
