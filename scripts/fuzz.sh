#!/usr/bin/env bash
# fuzz.sh FOLDER [NAME]: runs the fuzz targets of FOLDER, two at a time, FUZZ_SECONDS each.
# A finding (crash, leak, hang, memory) is printed with the command that repeats it; exit 1.
# FUZZ_SEED=n repeats the same inputs on every run, so that a gate judges the change and not its
# luck; without it each run looks elsewhere.
set -eu
cd "$(dirname "$0")/.."
folder=$1
only=${2:-}
seconds=${FUZZ_SECONDS:-60}

one() {
	bin=$1
	name=${bin##*/fz_}
	corpus=build/fuzz-corpus/$name
	found=build/fuzz-findings/$name
	mkdir -p "$corpus" "$found"
	seeds=
	[ -d "tests/fuzz/seeds/$name" ] && seeds=tests/fuzz/seeds/$name
	log=$found/log
	# Threads of a decoder are none, so one process is the whole run.
	if "$bin" -seed="${FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$found/" "$corpus" $seeds >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		cov=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
		echo "fuzz $name: ok, ${runs:-0} runs, ${cov:-0} edges"
		# A target that ran nothing or saw no code proves nothing.
		[ "${runs:-0}" -gt 100 ] && [ "${cov:-0}" -gt 5 ] || { echo "fuzz $name: ran too little"; exit 1; }
	else
		echo "fuzz $name: FOUND"
		tail -n 40 "$log"
		echo "repeat: $bin $(find "$found" -type f ! -name log -print | tail -n 1)"
		exit 1
	fi
}
export -f one
export seconds

list=
for bin in "$folder"/fz_*; do
	[ -f "$bin" ] && [ -x "$bin" ] || continue
	[ -z "$only" ] || [ "${bin##*/fz_}" = "$only" ] || continue
	list="$list$bin
"
done
[ -n "$list" ] || { echo "fuzz: no targets"; exit 1; }
printf %s "$list" | xargs -P 2 -I{} bash -euc 'one {}'
