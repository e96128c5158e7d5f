#!/usr/bin/env bash
# sim.sh PROGRAM SEEDS: kept seeds first, then 1..SEEDS. Prints its seconds.
set -eu
sim=$1
seeds=${2:-500}
from=$(date +%s)
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
for f in tests/sim/seeds/*; do
	[ -e "$f" ] || continue
	n=$(basename "$f")
	"$sim" --seed "${n%%-*}" || { echo "kept seed $n fails again"; exit 1; }
done
"$sim" --seeds "1..$seeds" --jobs "$(nproc)"
echo "sim: $seeds seeds in $(($(date +%s) - from)) s"
