#!/usr/bin/env bash
# test.sh: what `make test` runs. Each suite prints its seconds; all run, then one failure fails.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
scripts/setup.sh test
scripts/promtool.sh >/dev/null
jobs=$(nproc)
failed=

suite() {
	name=$1
	shift
	began=$(date +%s)
	say "--- $name"
	if "$@"; then verdict=ok; else
		verdict=FAILED
		failed="$failed $name"
	fi
	say "--- $name: $verdict, $(($(date +%s) - began)) s"
}

# Two compilers with all warnings; the units once plain by each, once under ASan and UBSan.
suite lint make --no-print-directory lint
suite generated make --no-print-directory gen-check
suite gcc make --no-print-directory -j"$jobs" CC=gcc all unit
suite clang make --no-print-directory -j"$jobs" CC=clang all unit
suite units-asan make --no-print-directory -j"$jobs" CC=gcc SAN=address all unit
# What runs on threads, and the daemon under a crowd of workers, under ThreadSanitizer.
suite threads make --no-print-directory -j"$jobs" CC=gcc threads
[ ! -d tests/sim ] || suite sim make --no-print-directory CC=gcc sim SEEDS="${SEEDS:-500}"
[ ! -d tests/sim ] || suite sim-asan make --no-print-directory CC=gcc SAN=address sim SEEDS=40
[ ! -d tests/sim ] || suite sim-mutants make --no-print-directory CC=gcc sim-mutants
if [ -x build/gcc-address/frazild ] || [ -d clients/python ]; then
	env=$(scripts/venv.sh tests/requirements-it.txt)
	suite processes env PYTHONPATH=clients/python "$env/bin/python" -m pytest -q --maxfail=10 \
		-p no:cacheprovider tests/it
fi
if [ -n "$failed" ]; then
	say "FAILED:$failed"
	exit 1
fi
say "all suites passed"
