#!/usr/bin/env bash
# run.sh [arguments of run.py]: what `make interop` runs: sets up the engines, builds the daemon, compares.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib.sh
scripts/setup.sh test interop
began=$(date +%s)
make --no-print-directory -j"$(nproc)" CC=gcc all
env=$(scripts/venv.sh tests/requirements-it.txt)
"$env/bin/python" tests/interop/test_model.py
FRAZILD=${FRAZILD:-build/gcc/frazild} "$env/bin/python" tests/interop/run.py "$@"
say "--- interop: ok, $(($(date +%s) - began)) s"
