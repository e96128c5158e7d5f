#!/usr/bin/env python3
"""What the logs of failed suites say of the cause, in few lines, for whoever sees only the end of a long output.

usage: failures.py LINES NAME LOG [NAME LOG]...    prints at most LINES lines in all
"""

import re
import sys

WIDTH = 240
# What tells a failure, the most telling first; the number is the rank. Each as its tool prints it at the start of a line.
TELLING = [(rank, re.compile(text)) for rank, text in (
    (0, r"(FAILED|ERROR) \S"),  # pytest's summary, make unit, the interop suites
    (0, r"--- \S+: FAILED"),  # a suite of make test
    (0, r"\S+:\d+:[FE]:"),  # check
    (0, r"\S+?:\d+:(\d+:)? ((fatal )?error|undefined reference)|.*: undefined reference to "),  # compilers, linkers, lint
    (0, r"(==\d+==)?\s*(ERROR|WARNING): \w+Sanitizer: |.*: runtime error: "),
    (0, r"seed \d+(: at| failed|: two runs)|kept seed \d+ fails|mutant \S+: NOT FOUND"),
    (0, r"fuzz \S+: (FOUND|ran too little)|repeat: "),
    (1, r"\w*(Error|Exception|Failed|Exit)\b.*:|\S+\.\w*(Error|Exception|Failed): "),  # a program of Python that ended
    (2, r"E   +\S"),  # pytest's cause
    (3, r"make(\[\d+\])?: \*\*\* "),
)]
CLOSING = re.compile(r"interop: \d+ FAILED")


def telling(text):
    """[(rank, line)] in the order of the log."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in text.splitlines()]
    # A suite that repeats its failures at its end is believed.
    for i in range(len(lines) - 1, -1, -1):
        if CLOSING.match(lines[i]):
            return [(0 if CLOSING.match(x) or x.startswith("FAILED") else 1, x) for x in lines[i:] if x]
    seen, out = set(), []
    for line in lines:
        rank = next((r for r, pattern in TELLING if pattern.match(line)), None)
        if rank is not None and line not in seen:
            seen.add(line)
            out.append((rank, line))
    return out or [(0, x) for x in lines if x.strip()][-8:]


def brief(text, room):
    """At most so many lines; what does not fit is counted."""
    found = telling(text)
    chosen = sorted(sorted(range(len(found)), key=lambda i: found[i][0])[:room])
    lines = [found[i][1][:WIDTH] for i in chosen]
    if len(found) > room:
        lines = lines[:room - 1] + ["... and %d lines more" % (len(found) - room + 1)]
    return lines


def report(room, logs):
    """logs: [(name, text)]. A log with little to say leaves its room to the others."""
    room -= len(logs)
    out, left = {}, sorted(logs, key=lambda x: len(telling(x[1])))
    for i, (name, text) in enumerate(left):
        out[name] = brief(text, max(1, room // (len(left) - i)))
        room -= len(out[name])
    return [line for name, _ in logs for line in ["FAILED: " + name, *("  " + x for x in out[name])]]


def main():
    logs = []
    for name, path in zip(sys.argv[2::2], sys.argv[3::2]):
        with open(path, errors="replace") as f:
            logs.append((name, f.read()))
    print("\n".join(report(int(sys.argv[1]), logs)))


if __name__ == "__main__":
    main()
