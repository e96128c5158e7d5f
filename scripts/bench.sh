#!/usr/bin/env bash
# bench.sh [arguments of tests/bench/bench.py]: what `make bench` runs, with a release build.
# BENCH=long measures longer and more; otherwise it takes less than ten minutes.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup.sh test bench
began=$(date +%s)
make --no-print-directory -j"$(nproc)" CC=gcc all bench-build
env=$(scripts/venv.sh tests/requirements-it.txt)
export BENCH_COMMAND="${BENCH:+BENCH=$BENCH }make bench"
[ $# = 0 ] || BENCH_COMMAND="scripts/bench.sh $*"
FRAZILD=build/gcc/frazild "$env/bin/python" tests/bench/bench.py "$@"
say "--- bench: ok, $(($(date +%s) - began)) s"
