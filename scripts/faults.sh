#!/usr/bin/env bash
# faults.sh: the daemon under hostile peers, input and files, thousands of connections, disks that
# fail or are full, and at its memory limit; each time somebody who behaves is served meanwhile.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup.sh test
began=$(date +%s)
make --no-print-directory -j"$(nproc)" CC=gcc SAN=address all
make --no-print-directory -j"$(nproc)" CC=gcc all
env=$(scripts/venv.sh tests/requirements-it.txt)
PYTHONPATH=clients/python "$env/bin/python" -m pytest -q -p no:cacheprovider --durations=8 tests/faults
say "--- faults: ok, $(($(date +%s) - began)) s"
