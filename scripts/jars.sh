#!/usr/bin/env bash
# jars.sh GROUP:ARTIFACT:VERSION | POM: prints a folder with that artifact, or with all dependencies
# of a pom.xml, fetching it with mvn first when it is not there.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
what=${1:?artifact or pom.xml}
cache=$(cache_root)
if [ -f "$what" ]; then hash=$(sha256sum <"$what" | cut -c1-16); else hash=$(printf %s "$what" | sha256sum | cut -c1-16); fi
out=$cache/jars-$hash
if [ ! -f "$out/complete" ]; then
	mkdir -p "$cache"
	exec 9>"$out.lock"
	flock 9
	if [ ! -f "$out/complete" ]; then
		command -v mvn >/dev/null 2>&1 || die "mvn is missing: run scripts/setup.sh interop"
		say "set-up: Java archives of $what"
		rm -rf "$out.new" "$out"
		mkdir "$out.new"
		if [ -f "$what" ]; then
			mvn -q -B -f "$what" dependency:copy-dependencies -DoutputDirectory="$out.new" >&2
		else
			mvn -q -B dependency:copy -Dartifact="$what" -DoutputDirectory="$out.new" >&2
		fi
		touch "$out.new/complete"
		mv "$out.new" "$out"
	fi
fi
printf '%s\n' "$out"
