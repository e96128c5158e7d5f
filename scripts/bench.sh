#!/usr/bin/env bash
# bench.sh [arguments of tests/bench/bench.py]: what `make bench` runs, with a release build.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup.sh test bench
began=$(date +%s)
make --no-print-directory -j"$(nproc)" CC=gcc all
env=$(scripts/venv.sh tests/requirements-it.txt)
FRAZILD=build/gcc/frazild "$env/bin/python" tests/bench/bench.py "$@"
say "--- bench: ok, $(($(date +%s) - began)) s"
