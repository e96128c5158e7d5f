#!/usr/bin/env bash
# crash.sh: kills the daemon before and after each durable step (fault build), restarts it, repeats
# the clients' calls and checks the rows with a reader that shares no code.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup.sh test
began=$(date +%s)
make --no-print-directory -j"$(nproc)" CC=gcc SAN=address FAULT=1 all
env=$(scripts/venv.sh tests/requirements-it.txt)
FRAZILD=build/gcc-address-fault/frazild PYTHONPATH=clients/python \
	"$env/bin/python" -m pytest -q -p no:cacheprovider tests/crash
say "--- crash: ok, $(($(date +%s) - began)) s"
