#!/usr/bin/env bash
# sim_mutants.sh PROGRAM SEEDS: runs each planted error until a seed finds it; fails when none does.
set -u
sim=$1
seeds=${2:-400}
fail=0
for m in $(grep -rhoE 'MUTANT\("[a-z-]+"\)' daemon/commit tests/sim | sed 's/.*"\(.*\)".*/\1/' | sort -u); do
	out=$("$sim" --mutant "$m" --first --jobs "$(nproc)" --seeds "1..$seeds" 2>/dev/null)
	found=$(printf '%s\n' "$out" | sed -n 's/^seed \([0-9]*\) failed .*/\1/p' | head -1)
	if [ -z "$found" ]; then
		echo "mutant $m: NOT FOUND in $seeds seeds"
		fail=1
	else
		why=$("$sim" --mutant "$m" --seed "$found" 2>&1 >/dev/null | head -1 | cut -c1-120)
		echo "mutant $m: found by $why"
	fi
done
exit $fail
